// Elementwise inner loops: the registry's bodies, vectorised by the compiler. Compiled once per instruction set.
#include "backends/cpu/map/map.hpp"
#include "librepdl/ops/bodies.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

// Options: nothing, or num::parameters.
template <class Op, class T, class... Options>
void loop(const void* const* in, void* out, std::int64_t n, const double* options, bool* open) {
  const auto* x = static_cast<const T*>(in[0]);
  const auto* y = Op::arity > 1 ? static_cast<const T*>(in[1]) : x;
  const auto* z = Op::arity > 2 ? static_cast<const T*>(in[2]) : x;
  const auto run = [=](const auto&... p) {
    using result = decltype(num::evaluate<Op>(*x, *y, *z, p...));
    if constexpr (num::has_exact_body<Op, T>) {
      auto* to = static_cast<T*>(out);
      for (std::int64_t i = 0; i < n; ++i) {
        result r = num::evaluate<Op>(x[i], y[i], z[i], p...);  // were it const, g++ 12 would keep it in memory
        to[i] = r.value;
        open[i] = !r.decided;
      }
    } else {
      static_assert(std::is_same_v<result, std::conditional_t<Op::result == ops::result_kind::same, T, bool>>);
      auto* to = static_cast<result*>(out);
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) to[i] = num::evaluate<Op>(x[i], y[i], z[i], p...);
    }
  };
  if constexpr (sizeof...(Options) == 0) {
    run();
  } else {
    num::parameters p;
    for (int i = 0; i < ops::option_list::most; ++i) p.value[i] = options[i];
    run(p);
  }
}

template <class From, class To>
void convert_loop(const void* const* in, void* out, std::int64_t n, const double*, bool*) {
  const auto* x = static_cast<const From*>(in[0]);
  auto* y = static_cast<To*>(out);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = num::convert_body<To, From>::eval(x[i]);
}

constexpr map_kernels make_table() {
  map_kernels t{};
  ops::for_each_elementwise([&]<class Op>() {
    ops::for_each_format<Op::formats>([&]<class T>() {
      map_kernels::loops& l = t.elementwise[static_cast<int>(Op::id)][static_cast<int>(dtype_of<T>)];
      static_assert(num::has_body<Op, T> || num::has_body<Op, T, num::parameters>);
      if constexpr (num::has_body<Op, T>) l.plain = loop<Op, T>;
      if constexpr (num::has_body<Op, T, num::parameters>) l.with_options = loop<Op, T, num::parameters>;
    });
  });
  ops::for_each_format<ops::FLOATS>([&]<class From>() {
    ops::for_each_format<ops::FLOATS>([&]<class To>() {
      t.convert[static_cast<int>(dtype_of<From>)][static_cast<int>(dtype_of<To>)] = convert_loop<From, To>;
    });
  });
  return t;
}

}  // namespace

constinit const map_kernels map_table = make_table();

}  // namespace repdl::cpu::REPDL_ISA
