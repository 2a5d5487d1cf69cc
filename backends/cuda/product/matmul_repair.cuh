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
  __device__ void merge_lanes() {
#pragma unroll
    for (int distance = 16; distance >= 1; distance /= 2) {
      merge({__shfl_xor_sync(full_warp, hi, distance), __shfl_xor_sync(full_warp, lo, distance)});
    }
  }
  // Of sums from a start.
  template <class T, bool Scaled>
  __device__ num::decided_value<T> finish(const product& p, double magnitude, int lsb, const T* bias) {
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
    const bool exact = num::lattice_holds_dd(magnitude, lsb, 8 * (p.k + 64));
    const double e = exact ? 0.0 : num::compensated_bound(2 * (p.k + 64), magnitude);
    if constexpr (Scaled) return num::certify_scaled<T>(p.alpha, p.beta, total(), e, c);
    return num::certify<T>(total(), e);
  }
};

// A sum of products of two numbers of 24 bits, from a start g: s - g + rest, in four operations each. m is the magnitude as it was computed, at least
// M (1 - 2^-20), M the sum of the terms' magnitudes; 2^E <= m < 2^(E + 1), q = 2^(E + 3) <= 8 m, g = 1.5 q. s stays within [q, 2 q], q / 2 = 2^(E + 2) to either
// side of g: partial sums are below 2^(E + 1) (1 + 2^-19), roundings together below K 2^-53 q, K <= 2^26. There all numbers are multiples of v = 2^-52 q, so
// h = fl(s + a b) - s is exact, and so is a b - h: it is at most v / 2, and of a b's 48 bits those that lie below v, or a b itself where that is at most v / 2.
// `rest`, K additions of numbers of at most v / 2 = u q, is off by K u K u q <= 8 K^2 u^2 m: less than what compensated_bound has for a height of 2 K. Its
// errors, in the sense of lattice_holds_dd, are 8 K: their magnitudes are together at most K u q <= 8 K u m.
// Parts of it, of all lanes and up to eight warps, from the same start, err by no more together; merging them (dot_sum) takes 2 x 13 additions at most to a rest of up
// to 8 K u m and 13 u m of two_sum's errors, off by less than 2^8 (K + 2) u^2 m: with all that, and a bias, compensated_bound of 2 (K + 64).
// What is not finite makes s so. Where m is not, there is such a term.
struct sum_from_start {
  double at, rest = 0;

  sum_from_start() = default;
  static __device__ double start(double magnitude) {
    return num::is_finite(magnitude) && magnitude > 0 ? 1.5 * num::power_of_two(exponent_of(magnitude) + 3) : 1.5;
  }
  static __device__ int exponent_of(double x) { return static_cast<int>(num::bits_of(x) >> 52 & 0x7ff) - 1023; }
  __device__ explicit sum_from_start(double magnitude) : at(start(magnitude)) {}
  __device__ void add_product(double a, double b) {
    const double next = __fma_rn(a, b, at);
    rest += __fma_rn(a, b, at - next);
    at = next;
  }
  __device__ void add_terms(float x, float y) { add_product(static_cast<double>(x), static_cast<double>(y)); }
  __device__ dot_sum finish(double magnitude) const { return {{at - start(magnitude), rest}}; }
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
  __device__ void add_terms_to(Sum& sum, int part, int parts) const {
    const T* const of_a = reinterpret_cast<const T*>(a);
    const T* const of_b = reinterpret_cast<const T*>(b);
    const std::int64_t lane = part * 32 + lane_of_thread();
    const std::int64_t lanes = parts * 32;
    std::int64_t begin = 0;
    if (packed) {  // 16 bytes at a time
      constexpr int unit = 16 / sizeof(T);
      struct alignas(16) terms {
        T of[unit];
      };
      begin = k / unit * unit;
      const auto add_pieces = [&]<int Count>(std::int64_t& i) {
        for (; i + (Count - 1) * lanes * unit < begin; i += Count * lanes * unit) {
          terms x[Count], y[Count];
#pragma unroll
          for (int n = 0; n < Count; ++n) {
            x[n] = *reinterpret_cast<const terms*>(of_a + i + n * lanes * unit);
            y[n] = *reinterpret_cast<const terms*>(of_b + i + n * lanes * unit);
          }
#pragma unroll
          for (int n = 0; n < Count; ++n) {
#pragma unroll
            for (int m = 0; m < unit; ++m)
              sum.add_terms(num::widen_to_float(x[n].of[m]), num::widen_to_float(y[n].of[m]));
          }
        }
      };
      std::int64_t i = lane * unit;
      add_pieces.template operator()<3>(i);
      add_pieces.template operator()<1>(i);
    }
#pragma unroll 4
    for (std::int64_t i = begin + lane; i < k; i += lanes) {
      sum.add_terms(num::widen_to_float(of_a[i * step_a]), num::widen_to_float(of_b[i * step_b]));
    }
  }
  // Those of a warp, of `parts` warps.
  template <class Sum>
  __device__ void add_to(Sum& sum, int part = 0, int parts = 1) const {
    switch (type) {
      case dtype::f16:
        return add_terms_to<f16>(sum, part, parts);
      case dtype::bf16:
        return add_terms_to<bf16>(sum, part, parts);
      default:
        add_terms_to<float>(sum, part, parts);
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

// An output that a warp decides. `magnitude`, `lsb`: the product of its lines' norms, and the sum of their lattices.
template <class T, bool Scaled>
struct open_output {
  const product& p;
  T* const to;
  const T* const bias;
  const near_rows rows;
  const double magnitude;
  const int lsb;

  __device__ open_output(const product& of, const batch_pointers<T>& at, std::int64_t batch, std::int64_t row,
                         std::int64_t col, double m, int l)
      : p(of),
        to(at.out + row * of.out_row + col * of.out_col),
        bias(bias_of(of, at, row, col)),
        rows(of, batch, row, col),
        magnitude(m),
        lsb(l) {}
  // All lanes have what is a warp's, of `parts` warps.
  __device__ dot_sum add_up(int part = 0, int parts = 1) const {
    sum_from_start sum(magnitude);
    rows.add_to(sum, part, parts);
    dot_sum total = sum.finish(magnitude);
    total.merge_lanes();
    return total;
  }
  // Writes it. Returns the tier.
  __device__ tier decide(num::decided_value<T> result) const {
    const tier by = result.decided ? tier::double_double : tier::exact;
    if (!result.decided) result.value = dot_exact<T, Scaled>(rows, bias, p.alpha, p.beta);
    if (lane_of_thread() == 0) *to = result.value;
    return by;
  }
  __device__ tier decide(dot_sum sum) const { return decide(sum.template finish<T, Scaled>(p, magnitude, lsb, bias)); }
  __device__ tier decide_exactly() const { return decide(num::decided_value<T>{T{}, false}); }
};
// Begins with the tier `first`.
template <class T, bool Scaled>
__device__ tier repair_output(const product& p, const batch_pointers<T>& at, tier first, std::int64_t batch,
                              std::int64_t row, std::int64_t col, double magnitude, int lsb) {
  const open_output<T, Scaled> open(p, at, batch, row, col, magnitude, lsb);
  return first <= tier::double_double ? open.decide(open.add_up()) : open.decide_exactly();
}

}  // namespace repdl::cuda
