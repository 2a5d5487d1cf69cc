// The elementwise table: the shards, the loops of conversions, and those of results in another format than the operands'.
// Compiled once per instruction set.
#include <iterator>

#include "backends/cpu/map/map.hpp"
#include "librepdl/ops/convert.hpp"
#include "librepdl/ops/other_format.hpp"

namespace repdl::cpu::REPDL_ISA {

#include "map_shards.inc"
static_assert(std::size(map_shards) == ops::shard_count, "backends/CMakeLists.txt cuts elementwise.def otherwise");

namespace {

template <class From, class To>
void convert_loop(const void* const* in, void* out, std::int64_t n, const double*, bool*) {
  const auto* x = static_cast<const num::stored<From>*>(in[0]);
  auto* y = static_cast<To*>(out);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = num::convert_body<To, From>::eval(num::load(x[i]));
}

template <class Op, class T, bool Nearest, class... Options>
void wide_loop(const void* const* in, void* out, std::int64_t n, [[maybe_unused]] const double* options, bool*) {
  auto* to = static_cast<double*>(out);
  const auto run = [=](const auto&... p) {
    num::with_places<Op::arity>([&]<int... K>() {
      const auto over = [&](const auto* const... x) {
#pragma omp simd
        for (std::int64_t i = 0; i < n; ++i) to[i] = num::evaluate_wide<Op, Nearest>(x[i]..., p...);
      };
      over(static_cast<const T*>(in[K])...);
    });
  };
  if constexpr (sizeof...(Options) == 0) {
    run();
  } else {
    num::parameters p;
    for (int i = 0; i < ops::option_list::most; ++i) p.value[i] = options[i];
    run(p);
  }
}
template <class Op, class T, bool Nearest>
constexpr ops::loops<map_kernels::loop> wide_loops() {
  ops::loops<map_kernels::loop> l{wide_loop<Op, T, Nearest>, nullptr};
  if constexpr (ops::elementwise_rows[static_cast<int>(Op::id)].options.count() > 0) {
    l.with_options = wide_loop<Op, T, Nearest, num::parameters>;
  }
  return l;
}

constexpr map_kernels make_table() {
  map_kernels t{};
  t.shards = map_shards;
  ops::for_each_format<ops::ALL>([&]<class From>() {
    ops::for_each_format<ops::ALL>([&]<class To>() {
      t.convert[static_cast<int>(dtype_of<From>)][static_cast<int>(dtype_of<To>)] = convert_loop<From, To>;
    });
  });
  ops::for_each_elementwise([&]<class Op>() {
    if constexpr (Op::result == ops::result_kind::any_float) {
      constexpr int row = ops::any_float_index(Op::id);
      ops::for_each_format<ops::FLOATS>([&]<class T>() {
        constexpr int format = static_cast<int>(dtype_of<T>);
        if constexpr (!std::is_same_v<T, double>) t.to_nearest[row][format] = wide_loops<Op, T, true>();
        t.to_odd[row][format] = wide_loops<Op, T, false>();
      });
    }
  });
  return t;
}

}  // namespace

constinit const map_kernels map_table = make_table();

}  // namespace repdl::cpu::REPDL_ISA
