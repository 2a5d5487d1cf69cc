// Elementwise inner loops: the registry's bodies, vectorised by the compiler. Compiled once per shard and instruction set.
#pragma once

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
    if constexpr (num::has_exact_body<Op, T, Options...>) {
      auto* to = static_cast<T*>(out);
      for (std::int64_t i = 0; i < n; ++i) {
        result r = num::evaluate<Op>(x[i], y[i], z[i], p...);  // were it const, g++ 12 would keep it in memory
        to[i] = r.value;
        open[i] = !r.decided;
      }
    } else {
      static_assert(dtype_of<result> == ops::result_type(Op::result, dtype_of<T>));
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

template <int Shard>
constexpr map_shard make_map_shard() {
  return ops::make_shard<Shard, map_kernels::loop>(
      []<class Op, class T, class... Options>() { return loop<Op, T, Options...>; });
}

}  // namespace
}  // namespace repdl::cpu::REPDL_ISA
