// Elementwise operations whose results have another format than the operands (librepdl/ops/elementwise/other_format.hpp): one kernel for
// each operation and format of the operands. It computes in binary64, and rounds where it stores.
#pragma once

#include "backends/cuda/map/map.cuh"
#include "librepdl/ops/elementwise/other_format.hpp"

namespace repdl::cuda {
namespace {

// Options: nothing, or num::parameters.
template <class Op, class T, class... Options>
struct wide_operation : Options... {
  static constexpr int arity = Op::arity;
  static constexpr unsigned booleans = 0;
  using input = T;
  template <bool Nearest>
  __device__ double eval(const T* x) const {
    return num::with_places<arity>([&]<int... K>() {
      return num::evaluate_wide<Op, Nearest>(x[K]..., static_cast<const Options&>(*this)...);
    });
  }
};

// Elements i, i + threads, ...
template <class F, class To>
__device__ void store_as(const operands<F>& p, const typename F::input (&x)[batch][F::arity],
                         const std::int64_t (&at)[batch], std::int64_t i) {
#pragma unroll
  for (int j = 0; j < batch; ++j) {
    constexpr bool nearest = std::is_same_v<To, double>;
    const double r = p.template eval<nearest>(x[j]);
    if (i + j * threads >= p.count) continue;
    if constexpr (nearest) {
      static_cast<To*>(p.out)[at[j]] = r;
    } else {
      static_cast<To*>(p.out)[at[j]] = num::narrow<To>(r);
    }
  }
}

// Any strides; fewer than 2^31 elements, or contiguous ones. A warp's elements are side by side.
template <class F>
__global__ void __launch_bounds__(threads)
    map_to_format(const operands<F> p, dtype to, bool contiguous, counter* counters) {
  using In = typename F::input;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads * batch + threadIdx.x;
  if (i == 0) count_elements(counters, tier::proved, p.count);
  if (i >= p.count) return;
  In x[batch][F::arity];
  std::int64_t out[batch];
#pragma unroll
  for (int j = 0; j < batch; ++j) {
    const std::int64_t element = i + j * threads < p.count ? i + j * threads : i;
    std::int64_t at[F::arity + 1];
    if (contiguous) {
#pragma unroll
      for (int a = 0; a <= F::arity; ++a) at[a] = element;
    } else {
      p.axes.locate(static_cast<std::uint32_t>(element), at);
    }
#pragma unroll
    for (int a = 0; a < F::arity; ++a) x[j][a] = read_element(p, a, at[a]);
    out[j] = at[F::arity];
  }
  switch (to) {
    case dtype::f16:
      return store_as<F, f16>(p, x, out, i);
    case dtype::bf16:
      return store_as<F, bf16>(p, x, out, i);
    case dtype::f32:
      return store_as<F, float>(p, x, out, i);
    default:
      if constexpr (!std::is_same_v<In, double>) store_as<F, double>(p, x, out, i);
  }
}

template <class F>
void launch_to_format(const plan::map_plan& plan, const job& j, const map_space&) {
  operands<F> p{};
  const bool contiguous = set_operands(p, plan);
  const auto go = [&](const operands<F>& part) {
    launch_kernel<map_to_format<F>>(j, blocks_of(part.count, batch), threads, 0, part, plan.out_type, contiguous,
                                    j.counters);
  };
  if (contiguous) return go(p);
  in_parts(p, size_of(plan.out_type), most_strided(j.device), go);
}

}  // namespace
}  // namespace repdl::cuda
