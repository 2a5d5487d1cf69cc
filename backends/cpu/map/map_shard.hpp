// Elementwise inner loops: the registry's bodies, vectorised by the compiler. Compiled once per shard and instruction set.
#pragma once

#include "backends/cpu/map/map.hpp"
#include "librepdl/ops/bodies.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

// Options: nothing, or num::parameters.
template <class Op, class T, class... Options>
void loop(const void* const* in, void* out, std::int64_t n, const double* options, bool* open) {
  const auto* x = static_cast<const num::stored<ops::operand_of<Op, T, 0>>*>(in[0]);
  const auto* y = static_cast<const num::stored<ops::operand_of<Op, T, 1>>*>(in[Op::arity > 1 ? 1 : 0]);
  const auto* z = static_cast<const num::stored<ops::operand_of<Op, T, 2>>*>(in[Op::arity > 2 ? 2 : 0]);
  const auto run = [=](const auto&... p) {
    using result = decltype(num::evaluate<Op>(num::load(*x), num::load(*y), num::load(*z), p...));
    if constexpr (num::has_exact_body<Op, T>) {
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
      for (std::int64_t i = 0; i < n; ++i) {
        to[i] = num::evaluate<Op>(num::load(x[i]), num::load(y[i]), num::load(z[i]), p...);
      }
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
