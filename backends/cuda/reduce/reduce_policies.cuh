// What reductions accumulate. A policy is a partial result of some terms of one output: take() adds terms, merge()
// joins two partial results, finish() decides the output or gives up. Integers and selections are exact in any order;
// for the floating-point policies every order has the same proved bound. Terms come as binary32 numbers, which those of every format
// T are; only the result is rounded to T.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cuda/reduce/reduce.cuh"
#include "librepdl/num/certify.hpp"
#include "librepdl/num/dd.hpp"
#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/order.hpp"
#include "librepdl/num/sums.hpp"

namespace repdl::cuda {

// The sum of N = 2^h numbers by a binary tree of height h; overwrites them.
template <int N, class T>
__device__ T tree_sum(T* v) {
  if constexpr (N == 1) {
    return v[0];
  } else {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) v[i] += v[i + N / 2];
    return tree_sum<N / 2>(v);
  }
}

// One term as a binary64 number, exactly.
template <int Inputs>
__device__ double term_of(float x, [[maybe_unused]] float y) {
  if constexpr (Inputs == 1) return static_cast<double>(x);
  if constexpr (Inputs == 2) return static_cast<double>(x) * static_cast<double>(y);
}

template <int Inputs, class T, class Sum>  // double, num::dd
__device__ num::decided_value<T> certify_sum(Sum s, double e, const reduce_parameters& p) {
  if constexpr (Inputs == 2) {
    if (p.is_root) return num::certify_root<T>(s, e);
  }
  return p.is_mean ? num::certify_mean<T>(s, e, p.length) : num::certify<T>(s, e);
}
// The mean of nothing.
template <class T>
__device__ bool is_undefined(const reduce_parameters& p, T* out) {
  if (!p.is_mean || p.length != 0) return false;
  *out = num::from_bits<T>(num::format<T>::nan);
  return true;
}

// Binary64 tier: a compensated sum of batches of 16 terms, which a binary tree of height 4 adds up plainly. `magnitude` is known
// within 2^-21 (binary32 trees of height 4, then binary64). One that overflows makes the bound infinite: undecided.
template <int Inputs, class T>
struct fast_sum {
  static constexpr tier decides = tier::binary64;
  static constexpr int inputs = Inputs;
  static constexpr bool batched = true;
  using element = T;
  using output = T;

  num::measured_sum sum;

  __device__ void take(const reduce_parameters&, float x, float y, std::int64_t) {
    sum.add_term(term_of<Inputs>(x, y));
  }
  template <class Index>
  __device__ void take_batch(const reduce_parameters&, const float (&x)[batch_terms], const float (&y)[batch_terms],
                             const Index&) {
    double t[batch_terms];
#pragma unroll
    for (int i = 0; i < batch_terms; ++i) t[i] = term_of<Inputs>(x[i], y[i]);
    double size = 0;
    if constexpr (Inputs == 1) {
      float a[batch_terms];
#pragma unroll
      for (int i = 0; i < batch_terms; ++i) a[i] = fabsf(x[i]);
      size = static_cast<double>(tree_sum<batch_terms>(a));
    } else {
      // A product of floats may lie below binary32's range: its magnitude is added in binary64.
#pragma unroll
      for (int i = 0; i < batch_terms; ++i) size += fabs(t[i]);
    }
    sum.add_term(tree_sum<batch_terms>(t), size);
  }
  __device__ void merge(const fast_sum& o) { sum.merge(o.sum); }
  __device__ bool finish(const reduce_parameters& p, T* out) const {
    if (p.forced) return false;
    if (is_undefined(p, out)) return true;
    if (!num::is_finite(sum.hi)) {
      *out = num::non_finite_result<T>(sum.hi);
      return true;
    }
    if constexpr (Inputs == 1 && std::is_same_v<T, f16>) {
      if (p.exact) {  // lo is 0
        *out = certify_sum<Inputs, T>(sum.hi, 0.0, p).value;
        return true;
      }
    }
    const num::decided_value<T> c = certify_sum<Inputs, T>(sum.total(), sum.bound(p.height, 4), p);
    if (c.decided) *out = c.value;
    return c.decided;
  }
};

// Double-double tier: dd_bound, and the lattice rule of dd.hpp, which decides zeros and ties. `plain` is an ordinary
// binary64 sum: it shows infinities and NaN.
template <int Inputs, class T>
struct dd_sum {
  static constexpr tier decides = tier::double_double;
  static constexpr int inputs = Inputs;
  static constexpr bool batched = false;
  using element = T;
  using output = T;

  num::dd sum = {0, 0};
  double magnitude = 0;
  double plain = 0;
  int lsb = num::no_lsb;

  __device__ void take(const reduce_parameters&, float x, float y, std::int64_t) {
    const double t = term_of<Inputs>(x, y);
    sum = num::add(sum, t);
    magnitude += fabs(t);
    plain += t;
    int e = num::lsb_exponent(x);
    if constexpr (Inputs == 2) e += num::lsb_exponent(y);
    lsb = min(lsb, e);
  }
  __device__ void merge(const dd_sum& o) {
    sum = num::add(sum, o.sum);
    magnitude += o.magnitude;
    plain += o.plain;
    lsb = min(lsb, o.lsb);
  }
  __device__ bool finish(const reduce_parameters& p, T* out) const {
    if (p.forced) return false;
    if (!num::is_finite(plain)) {
      *out = num::non_finite_result<T>(plain);
      return true;
    }
    if (p.height > num::greatest_height) return false;
    const double e = num::lattice_holds_dd(magnitude, lsb) ? 0.0 : num::dd_bound(p.height, magnitude);
    const num::decided_value<T> c = certify_sum<Inputs, T>(sum, e, p);
    if (c.decided) *out = c.value;
    return c.decided;
  }
};

// Exact tier: integers (fixed_point.hpp). Always decides.
template <int Inputs, class T>
struct exact_sum {
  static constexpr tier decides = tier::exact;
  static constexpr int inputs = Inputs;
  static constexpr bool batched = false;
  using element = T;
  using output = T;
  num::exact_sum<float, Inputs> sum;

  __device__ void take(const reduce_parameters&, float x, float y, std::int64_t) {
    if constexpr (Inputs == 1) {
      sum.add(x);
    } else {
      sum.add_product(x, y);
    }
  }
  __device__ void merge(const exact_sum& o) { sum.merge(o.sum); }
  __device__ bool finish(const reduce_parameters& p, T* out) const {
    if (is_undefined(p, out)) return true;
    *out = p.is_mean ? sum.template mean<T>(p.length) : sum.template round<T>();
    if constexpr (Inputs == 2) {
      if (p.is_root) *out = sum.template root<T>();
    }
    return true;
  }
};

// A sum of products g x without the terms with x > 0.
template <class Sum>
struct without_positive : Sum {
  static_assert(Sum::inputs == 2);
  __device__ void take(const reduce_parameters& p, float g, float x, std::int64_t i) {
    Sum::take(p, x > 0 ? 0.0f : g, x > 0 ? 0.0f : x, i);
  }
  template <class Index>
  __device__ void take_batch(const reduce_parameters& p, const float (&g)[batch_terms], const float (&x)[batch_terms],
                             const Index& index_of) {
    float kept[2][batch_terms];
#pragma unroll
    for (int i = 0; i < batch_terms; ++i) {
      kept[0][i] = x[i] > 0 ? 0.0f : g[i];
      kept[1][i] = x[i] > 0 ? 0.0f : x[i];
    }
    Sum::take_batch(p, kept[0], kept[1], index_of);
  }
};

template <class T>
struct extremum {
  static constexpr tier decides = tier::proved;
  static constexpr int inputs = 1;
  static constexpr bool batched = true;
  using element = T;
  using output = T;

  std::int32_t key = num::no_key;

  __device__ void take(const reduce_parameters& p, float x, float, std::int64_t) {
    key = max(key, num::order_key(x, p.flip));
  }
  template <class Index>
  __device__ void take_batch(const reduce_parameters& p, const float (&x)[batch_terms], const float (&)[batch_terms],
                             const Index&) {
#pragma unroll
    for (int i = 0; i < batch_terms; ++i) key = max(key, num::order_key(x[i], p.flip));
  }
  __device__ void merge(const extremum& o) { key = max(key, o.key); }
  __device__ bool finish(const reduce_parameters& p, T* out) const {
    *out = num::narrow<T>(num::order_value(key, p.flip));  // exact
    return true;
  }
};

// Of elements without their signs.
template <class P>
struct of_magnitudes : P {
  static_assert(P::inputs == 1);
  __device__ void take(const reduce_parameters& p, float x, float y, std::int64_t i) { P::take(p, fabsf(x), y, i); }
  template <class Index>
  __device__ void take_batch(const reduce_parameters& p, const float (&x)[batch_terms], const float (&y)[batch_terms],
                             const Index& index_of) {
    float a[batch_terms];
#pragma unroll
    for (int i = 0; i < batch_terms; ++i) a[i] = fabsf(x[i]);
    P::take_batch(p, a, y, index_of);
  }
};

// The first index of the extremum.
template <class T>
struct arg_extremum {
  static constexpr tier decides = tier::proved;
  static constexpr int inputs = 1;
  static constexpr bool batched = true;
  using element = T;
  using output = std::int64_t;

  std::int32_t key = num::no_key;
  std::int64_t index = INT64_MAX;

  __device__ void offer(std::int32_t k, std::int64_t i) {
    if (k > key || (k == key && i < index)) {
      key = k;
      index = i;
    }
  }
  __device__ void take(const reduce_parameters& p, float x, float, std::int64_t i) {
    offer(num::order_key(x, p.flip), i);
  }
  template <class Index>
  __device__ void take_batch(const reduce_parameters& p, const float (&x)[batch_terms], const float (&)[batch_terms],
                             const Index& index_of) {
#pragma unroll
    for (int i = 0; i < batch_terms; ++i) offer(num::order_key(x[i], p.flip), index_of(i));
  }
  __device__ void merge(const arg_extremum& o) { offer(o.key, o.index); }
  __device__ bool finish(const reduce_parameters&, std::int64_t* out) const {
    *out = index;
    return true;
  }
};

}  // namespace repdl::cuda
