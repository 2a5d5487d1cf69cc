// The later tiers of the exact matrix product, for outputs that the first one left: double-double with the lattice rule, then exact
// integers. A warp has an output, and reads both of its lines.
#pragma once

#include "backends/cuda/product/exact_dot.cuh"
#include "backends/cuda/product/matmul.hpp"
#include "librepdl/num/dd.hpp"
#include "librepdl/num/sums.hpp"
#include "librepdl/ops/sums/scaled_sum.hpp"

namespace repdl::cuda {

// Double-double tier. The terms' magnitudes are bounded by the product of norms.
struct dot_sum : num::compensated_sum<double> {
  __device__ void add_terms(float x, float y) { add(static_cast<double>(x) * static_cast<double>(y)); }
  __device__ void merge_lanes(int distance) {
    merge({__shfl_xor_sync(full_warp, hi, distance), __shfl_xor_sync(full_warp, lo, distance)});
  }
  // `height`: additions so far; `errors`: how many, each of at most 2^-53 of the magnitude, lo is the sum of.
  template <class T, bool Scaled>
  __device__ num::decided_value<T> finish(const product& p, double magnitude, int lsb, std::int64_t height,
                                          std::int64_t errors, const T* bias) {
    const double c = bias == nullptr ? 0.0 : num::widen(*bias);
    if constexpr (!Scaled) {
      if (bias != nullptr) {
        add(c);
        magnitude += fabs(c);
        lsb = min(lsb, num::lsb_exponent(*bias));
      }
    }
    const double plain = Scaled ? p.alpha * hi + p.beta * c : hi;
    if (!num::is_finite(plain)) return {num::non_finite_result<T>(plain), true};
    if (p.k > greatest_k) return {T{}, false};
    const bool exact = num::lattice_holds_dd(magnitude, lsb, errors);
    const double e = exact ? 0.0 : num::compensated_bound(height + 1, magnitude);
    if constexpr (Scaled) return num::certify_scaled<T>(p.alpha, p.beta, total(), e, c);
    return num::certify<T>(total(), e);
  }
};

// The two rows of an output as the caller has them, or copies of them: a lane takes every 32nd term, or 16 bytes of them.
struct near_rows {
  dtype type;
  bool packed;  // they begin at multiples of 16 bytes, and their terms lie side by side
  const char* a;
  const char* b;
  std::int64_t step_a, step_b, k;

  static __device__ const char* row_of(const operand_source& s, std::int64_t batch, std::int64_t row) {
    const std::int64_t size = s.type == dtype::f32 ? 4 : 2;
    return static_cast<const char*>(s.data) + (s.batch.offset<0>(batch) + row * s.row_stride) * size;
  }
  __device__ near_rows(const product& p, std::int64_t batch, std::int64_t row, std::int64_t col)
      : type(p.near_a.type),
        packed(p.near_packed),
        a(row_of(p.near_a, batch, row)),
        b(row_of(p.near_b, batch, col)),
        step_a(p.near_a.k_stride),
        step_b(p.near_b.k_stride),
        k(p.k) {}
  template <class T, class Sum>
  __device__ void add_terms_to(Sum& sum) const {
    const T* const of_a = reinterpret_cast<const T*>(a);
    const T* const of_b = reinterpret_cast<const T*>(b);
    std::int64_t i = 0;
    if (packed) {  // 16 bytes at a time
      constexpr int unit = 16 / sizeof(T);
#pragma unroll 4
      for (; i + 32 * unit <= k; i += 32 * unit) {
        alignas(16) T x[unit], y[unit];
        *reinterpret_cast<uint4*>(x) = *reinterpret_cast<const uint4*>(of_a + i + unit * lane_of_thread());
        *reinterpret_cast<uint4*>(y) = *reinterpret_cast<const uint4*>(of_b + i + unit * lane_of_thread());
#pragma unroll
        for (int n = 0; n < unit; ++n) sum.add_terms(num::widen_to_float(x[n]), num::widen_to_float(y[n]));
      }
    }
#pragma unroll 4
    for (i += lane_of_thread(); i < k; i += 32) {
      sum.add_terms(num::widen_to_float(of_a[i * step_a]), num::widen_to_float(of_b[i * step_b]));
    }
  }
  template <class Sum>
  __device__ void add_to(Sum& sum) const {
    switch (type) {
      case dtype::f16:
        return add_terms_to<f16>(sum);
      case dtype::bf16:
        return add_terms_to<bf16>(sum);
      default:
        add_terms_to<float>(sum);
    }
  }
};
struct exact_terms : exact_dot {
  __device__ void add_terms(float x, float y) { add_product(x, y); }
};

// alpha, beta: of a product that is scaled.
template <class T, bool Scaled, class Rows>
__device__ __noinline__ T dot_exact(const Rows rows, const T* bias, double alpha, double beta) {
  exact_terms sum;
  rows.add_to(sum);
  if constexpr (Scaled) {
    sum.merge_lanes();
    const double c = bias == nullptr ? 0.0 : num::widen(*bias);
    if (sum.special.any() || !num::is_finite(c)) {
      const double s = sum.special.any() ? num::widen(sum.special.value()) : 0.0;
      return num::narrow<T>(alpha * s + beta * c);
    }
    return num::round_scaled<T>(alpha, beta, sum.finite, c);
  } else {
    if (bias != nullptr && lane_of_thread() == 0) sum.add(*bias);
    sum.merge_lanes();
    return sum.round();
  }
}

template <class T>
__device__ const T* bias_of(const product& p, const batch_pointers<T>& at, std::int64_t row, std::int64_t col) {
  return at.bias == nullptr ? nullptr : at.bias + row * p.bias_row + col * p.bias_col;
}

// Decides an output, beginning with the tier `first`, and writes it. `magnitude`, `lsb`: the product of its lines' norms, and the sum of their lattices. Returns the
// tier.
template <class T, bool Scaled>
__device__ tier repair_output(const product& p, const batch_pointers<T>& at, tier first, std::int64_t batch,
                              std::int64_t row, std::int64_t col, double magnitude, int lsb) {
  const T* const bias = bias_of(p, at, row, col);
  const near_rows rows(p, batch, row, col);
  num::decided_value<T> result{T{}, false};
  tier by = tier::double_double;
  if (first <= tier::double_double) {
    dot_sum sum;
    rows.add_to(sum);
#pragma unroll
    for (int distance = 16; distance >= 1; distance /= 2) sum.merge_lanes(distance);
    result = sum.finish<T, Scaled>(p, magnitude, lsb, p.k / 32 + 1 + 6, p.k + 64, bias);
  }
  if (!result.decided) {
    result.value = dot_exact<T, Scaled>(rows, bias, p.alpha, p.beta);
    by = tier::exact;
  }
  if (lane_of_thread() == 0) at.out[row * p.out_row + col * p.out_col] = result.value;
  return by;
}

}  // namespace repdl::cuda
