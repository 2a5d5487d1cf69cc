// What reductions accumulate. A policy is a partial result of some terms of one output: take() adds terms, merge()
// joins two partial results, finish() decides the output or gives up. Integers and selections are exact in any order;
// for the floating-point policies what is proved holds in every order. Terms come as binary32 numbers, which those of
// every format T are but binary64, and integers as they are; only the result is rounded to T. `resident`: the blocks that a
// multiprocessor has registers for.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cuda/reduce/reduce.cuh"
#include "librepdl/num/certify.hpp"
#include "librepdl/num/dd.hpp"
#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/integer_sum.hpp"
#include "librepdl/num/order.hpp"
#include "librepdl/num/sums.hpp"
#include "librepdl/ops/sums/scaled_sum.hpp"
#include "librepdl/ops/sums/spread.hpp"

namespace repdl::cuda {

// What a term of type T comes as.
template <class T>
using term_type = std::conditional_t<std::is_integral_v<T>, T, std::conditional_t<sizeof(T) == 8, double, float>>;
template <class T>
__device__ term_type<T> as_term(T x) {
  if constexpr (std::is_same_v<T, term_type<T>>) {
    return x;
  } else {
    return num::widen_to_float(x);
  }
}

// Additions and fused products rounded down (Up = false) or up, of binary32 and binary64 numbers.
template <bool Up>
__device__ double add_directed(double a, double b) {
  return Up ? __dadd_ru(a, b) : __dadd_rd(a, b);
}
template <bool Up>
__device__ float add_directed(float a, float b) {
  return Up ? __fadd_ru(a, b) : __fadd_rd(a, b);
}
template <bool Up>
__device__ double fma_directed(double a, double b, double c) {
  return Up ? __fma_ru(a, b, c) : __fma_rd(a, b, c);
}

// One term as a binary64 number, exactly.
template <int Inputs>
__device__ double term_of(float x, [[maybe_unused]] float y) {
  if constexpr (Inputs == 1) return static_cast<double>(x);
  if constexpr (Inputs == 2) return static_cast<double>(x) * static_cast<double>(y);
}

template <int Inputs, class T>
__device__ num::decided_value<T> certify_sum(num::dd s, double e, const reduce_parameters& p) {
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

// Binary64 tier: the sum twice, every addition rounded down in one and up in the other. By induction over any tree of
// additions, low <= S <= high, which needs no bound; and where all additions are exact, low = S = high, which decides
// ties. Sixteen terms of f16 and bf16 are added up in binary32 first: mostly exactly, as multiples of the least of
// their last places.
//
// What is not finite: of finite terms low may become -inf, in binary32, and high +inf, but never the reverse. So low =
// +inf says that a term is +inf, high = -inf that one is -inf, and no term is of the other sign. Where both are NaN, a
// term is, or low met a term +inf and high a term -inf. In each case both ends have the bits of the result; where ends
// differ, nothing is said.
template <int Inputs, class T>
struct fast_sum {
  static constexpr tier decides = tier::binary64;
  static constexpr int inputs = Inputs;
  static constexpr bool batched = true;
  static constexpr int resident = Inputs == 1 && sizeof(T) == 2 ? 4 : 3;
  using element = T;
  using term = float;
  using output = T;

  double low = 0;
  double high = 0;

  __device__ void take(const reduce_parameters&, float x, float y, std::int64_t) {
    const double t = term_of<Inputs>(x, y);
    low = add_directed<false>(low, t);
    high = add_directed<true>(high, t);
  }
  template <class Index>
  __device__ void take_batch(const reduce_parameters&, const float (&x)[batch_terms], const float (&y)[batch_terms],
                             const Index&) {
    low = add_directed<false>(low, sum_of_batch<false>(x, y));
    high = add_directed<true>(high, sum_of_batch<true>(x, y));
  }
  __device__ void merge(const fast_sum& o) {
    low = add_directed<false>(low, o.low);
    high = add_directed<true>(high, o.high);
  }
  __device__ bool finish(const reduce_parameters& p, T* out) const {
    if (p.forced) return false;
    if (is_undefined(p, out)) return true;
    *out = rounded_end(low, p);
    return num::to_bits(*out) == num::to_bits(rounded_end(high, p));
  }

 private:
  // In four chains.
  template <bool Up>
  static __device__ double sum_of_batch(const float (&x)[batch_terms], const float (&y)[batch_terms]) {
    constexpr int chains = 4;
    std::conditional_t<Inputs == 1 && sizeof(T) == 2, float, double> s[chains];
#pragma unroll
    for (int i = 0; i < chains; ++i) {
      if constexpr (Inputs == 1) s[i] = x[i];
      if constexpr (Inputs == 2) s[i] = term_of<2>(x[i], y[i]);
    }
#pragma unroll
    for (int i = chains; i < batch_terms; ++i) {
      auto& c = s[i % chains];
      if constexpr (Inputs == 1) c = add_directed<Up>(c, static_cast<std::remove_reference_t<decltype(c)>>(x[i]));
      if constexpr (Inputs == 2) c = fma_directed<Up>(x[i], y[i], c);
    }
    return add_directed<Up>(add_directed<Up>(s[0], s[1]), add_directed<Up>(s[2], s[3]));
  }
  // Of a quotient or a root: monotone, and rounded once, by way of odd numbers. -0 says that S is 0, which is +0.
  static __device__ T rounded_end(double v, const reduce_parameters& p) {
    if (!num::is_finite(v)) return num::non_finite_result<T>(v);
    v += 0.0;
    if (p.is_mean) v = num::divide_to_odd(v, static_cast<double>(p.length));
    if constexpr (Inputs == 2) {
      if (p.is_root) v = num::root_to_odd(v);
    }
    return num::rounded<T>(v);
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
  using term = float;
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

// Of binary64 terms, the first tier: a compensated sum. Infinities, NaN and what overflows make the bound NaN or infinite, and say nothing.
template <int Inputs>
struct wide_sum {
  static constexpr tier decides = tier::double_double;
  static constexpr int inputs = Inputs;
  static constexpr bool batched = true;
  static constexpr int resident = 3;
  using element = double;
  using term = double;
  using output = double;

  num::measured_sum sum;

  __device__ void take(const reduce_parameters&, double x, [[maybe_unused]] double y, std::int64_t) {
    if constexpr (Inputs == 1) {
      sum.add_term(x);
    } else {
      const num::dd product = num::two_prod(x, y);
      sum.add_term(product.hi);
      sum.lo += product.lo;
    }
  }
  template <class Index>
  __device__ void take_batch(const reduce_parameters& p, const double (&x)[batch_terms], const double (&y)[batch_terms],
                             const Index&) {
#pragma unroll
    for (int i = 0; i < batch_terms; ++i) take(p, x[i], Inputs == 1 ? 0.0 : y[i], 0);
  }
  __device__ void merge(const wide_sum& o) { sum.merge(o.sum); }
  __device__ bool finish(const reduce_parameters& p, double* out) const {
    if (p.forced) return false;
    if (is_undefined(p, out)) return true;
    const num::decided_value<double> c = certify_sum<Inputs, double>(sum.total(), bound(p), p);
    if (c.decided) *out = c.value;
    return c.decided;
  }
  __device__ bool finish_scaled(const num::wide_scaled_sum& scale, const reduce_parameters& p, double* out) const {
    if (p.forced) return false;
    const num::decided_value<double> c = scale.certify(sum.total(), bound(p));
    if (c.decided) *out = c.value;
    return c.decided;
  }

 private:
  __device__ double bound(const reduce_parameters& p) const {
    return num::wide_compensated_bound(p.height, sum.magnitude, Inputs == 1 ? 0 : p.length + 1);
  }
};

// Exact tier: integers (fixed_point.hpp). Always decides.
template <int Inputs, class T>
struct exact_sum {
  static constexpr tier decides = tier::exact;
  static constexpr int inputs = Inputs;
  static constexpr bool batched = false;
  using element = T;
  using term = term_type<T>;
  using output = T;
  num::exact_sum<term, Inputs> sum;

  __device__ void take(const reduce_parameters&, term x, term y, std::int64_t) {
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
  __device__ bool finish_scaled(const num::wide_scaled_sum& scale, const reduce_parameters&, double* out) const {
    *out = scale.round(sum);
    return true;
  }
};

// Of integers, exactly: their sum, or with an Output of binary64 their mean. Sixteen of 32 bits and less add up to one of 64.
template <class T, class Output>
struct integer_sum {
  static constexpr tier decides = tier::proved;
  static constexpr int inputs = 1;
  static constexpr bool batched = true;
  static constexpr int resident = 3;
  using element = T;
  using term = T;
  using output = Output;

  num::integer_sum sum;

  __device__ void take(const reduce_parameters&, T x, T, std::int64_t) { sum.add_integer(num::integer_value(x)); }
  template <class Index>
  __device__ void take_batch(const reduce_parameters&, const T (&x)[batch_terms], const T (&)[batch_terms],
                             const Index&) {
    if constexpr (sizeof(T) == 8) {
#pragma unroll
      for (int i = 0; i < batch_terms; ++i) sum.add_integer(x[i]);
    } else {
      std::int64_t batch = 0;
#pragma unroll
      for (int i = 0; i < batch_terms; ++i) batch += num::integer_value(x[i]);
      sum.add_integer(batch);
    }
  }
  __device__ void merge(const integer_sum& o) { sum.merge(o.sum); }
  __device__ bool finish(const reduce_parameters& p, Output* out) const {
    if constexpr (std::is_same_v<Output, double>) {
      *out = num::mean_of(sum, p.length);
    } else {
      *out = num::wrapped(sum);
    }
    return true;
  }
};

// alpha times a sum of products of binary64, and beta times a bias: the term that comes after the others.
template <class Sum>
struct scaled : Sum {
  static_assert(Sum::inputs == 2);
  double bias = 0;

  __device__ void take(const reduce_parameters& p, double x, double y, std::int64_t i) {
    if (i == p.length) {
      bias = x;
    } else {
      Sum::take(p, x, y, i);
    }
  }
  __device__ bool finish(const reduce_parameters& p, double* out) const {
    return Sum::finish_scaled({p.alpha, p.beta, bias}, p, out);
  }
};

// Of binary64 terms the differences from another one, and their squares (spread.hpp).
struct wide_spread {
  static constexpr tier decides = tier::double_double;
  static constexpr int inputs = 2;
  static constexpr bool batched = true;
  static constexpr int resident = 3;
  using element = double;
  using term = double;
  using output = double;

  num::spread_sum<double> sum;

  __device__ void take(const reduce_parameters&, double x, double first, std::int64_t) { sum.add(x, first); }
  template <class Index>
  __device__ void take_batch(const reduce_parameters&, const double (&x)[batch_terms],
                             const double (&first)[batch_terms], const Index&) {
#pragma unroll
    for (int i = 0; i < batch_terms; ++i) sum.add(x[i], first[i]);
  }
  __device__ void merge(const wide_spread& o) { sum.merge(o.sum); }
  __device__ bool finish(const reduce_parameters& p, double* out) const {
    const num::spread_formula f = spread_of(p);
    if (p.forced) return false;
    if (!f.is_defined()) {
      *out = num::double_of(num::format<double>::nan);
      return true;
    }
    const double eta = num::compensated_bound(p.height + 2, 1);
    const num::decided_value<double> c =
        num::certify_spread(f, sum.sum.total(), sum.squares.total(), sum.magnitude, eta);
    if (c.decided) *out = c.value;
    return c.decided;
  }
  static __device__ num::spread_formula spread_of(const reduce_parameters& p) {
    return {p.length, p.correction, p.is_root};
  }
};
struct exact_spread {
  static constexpr tier decides = tier::exact;
  static constexpr int inputs = 2;
  static constexpr bool batched = false;
  using element = double;
  using term = double;
  using output = double;

  num::exact_spread sum;

  __device__ void take(const reduce_parameters&, double x, double, std::int64_t) { sum.add(x); }
  __device__ void merge(const exact_spread& o) { sum.merge(o.sum); }
  __device__ bool finish(const reduce_parameters& p, double* out) const {
    const num::spread_formula f = wide_spread::spread_of(p);
    *out = f.is_defined() ? sum.round(f) : num::double_of(num::format<double>::nan);
    return true;
  }
};

// The tiers before the exact one; the same, where there is only one.
template <int Inputs, class T>
struct first_sums {
  using fast = fast_sum<Inputs, T>;
  using late = dd_sum<Inputs, T>;
};
template <int Inputs>
struct first_sums<Inputs, double> {
  using fast = wide_sum<Inputs>;
  using late = fast;
};

// A sum of products g x without the terms with x > 0.
template <class Sum>
struct without_positive : Sum {
  static_assert(Sum::inputs == 2);
  using term = typename Sum::term;
  __device__ void take(const reduce_parameters& p, term g, term x, std::int64_t i) {
    Sum::take(p, x > 0 ? term{0} : g, x > 0 ? term{0} : x, i);
  }
  template <class Index>
  __device__ void take_batch(const reduce_parameters& p, const term (&g)[batch_terms], const term (&x)[batch_terms],
                             const Index& index_of) {
    term kept[2][batch_terms];
#pragma unroll
    for (int i = 0; i < batch_terms; ++i) {
      kept[0][i] = x[i] > 0 ? term{0} : g[i];
      kept[1][i] = x[i] > 0 ? term{0} : x[i];
    }
    Sum::take_batch(p, kept[0], kept[1], index_of);
  }
};

// Of a batch, by max.NaN: NaN wins, and -0 < +0.
__device__ inline float greatest(const float (&x)[batch_terms]) {
  constexpr int chains = 4;
  float m[chains];
#pragma unroll
  for (int i = 0; i < batch_terms; ++i) {
    if (i < chains) {
      m[i] = x[i];
    } else {
      asm("max.NaN.f32 %0, %0, %1;" : "+f"(m[i % chains]) : "f"(x[i]));
    }
  }
#pragma unroll
  for (int i = 1; i < chains; ++i) asm("max.NaN.f32 %0, %0, %1;" : "+f"(m[0]) : "f"(m[i]));
  return m[0];
}
// For the minimum, of the negated terms.
__device__ inline void flip_signs(const float (&x)[batch_terms], std::uint32_t flip, float (&to)[batch_terms]) {
#pragma unroll
  for (int i = 0; i < batch_terms; ++i) to[i] = num::float_of(num::bits_of(x[i]) ^ flip);
}

template <class T>
struct extremum {
  static constexpr tier decides = tier::proved;
  static constexpr int inputs = 1;
  static constexpr bool batched = true;
  static constexpr int resident = 4;
  using element = T;
  using term = term_type<T>;
  using output = T;

  using key_type = num::order_key_of<term>;
  key_type key = num::no_key_of<key_type>;

  __device__ void take(const reduce_parameters& p, term x, term, std::int64_t) {
    key = max(key, num::order_key(x, p.flip));
  }
  template <class Index>
  __device__ void take_batch(const reduce_parameters& p, const term (&x)[batch_terms], const term (&)[batch_terms],
                             const Index&) {
    if constexpr (!std::is_same_v<term, float>) {
#pragma unroll
      for (int i = 0; i < batch_terms; ++i) key = max(key, num::order_key(x[i], p.flip));
    } else {
      float v[batch_terms];
      flip_signs(x, p.flip, v);
      key = max(key, num::order_key(greatest(v), num::order_max));
    }
  }
  __device__ void merge(const extremum& o) { key = max(key, o.key); }
  __device__ bool finish(const reduce_parameters& p, T* out) const {
    if constexpr (std::is_integral_v<T>) {
      *out = num::order_value<T>(key, p.flip);
    } else {
      *out = num::narrow<T>(num::order_value<term>(key, p.flip));  // exact
    }
    return true;
  }
};

// Of elements without their signs.
template <class P>
struct of_magnitudes : P {
  static_assert(P::inputs == 1);
  using term = typename P::term;
  __device__ void take(const reduce_parameters& p, term x, term y, std::int64_t i) { P::take(p, fabs(x), y, i); }
  template <class Index>
  __device__ void take_batch(const reduce_parameters& p, const term (&x)[batch_terms], const term (&y)[batch_terms],
                             const Index& index_of) {
    term a[batch_terms];
#pragma unroll
    for (int i = 0; i < batch_terms; ++i) a[i] = fabs(x[i]);
    P::take_batch(p, a, y, index_of);
  }
};

// The first index of the extremum. It is 0, which no index is before, until a key is greater than no_key (order.hpp).
template <class T>
struct arg_extremum {
  static constexpr tier decides = tier::proved;
  static constexpr int inputs = 1;
  static constexpr bool batched = true;
  static constexpr int resident = 3;
  using element = T;
  using term = term_type<T>;
  using output = std::int64_t;

  using key_type = num::order_key_of<term>;
  key_type key = num::no_key_of<key_type>;
  std::int64_t index = 0;

  __device__ void offer(key_type k, std::int64_t i) {
    if (k > key || (k == key && i < index)) {
      key = k;
      index = i;
    }
  }
  __device__ void take(const reduce_parameters& p, term x, term, std::int64_t i) {
    offer(num::order_key(x, p.flip), i);
  }
  template <class Index>
  __device__ void take_batch(const reduce_parameters& p, const term (&x)[batch_terms], const term (&)[batch_terms],
                             const Index& index_of) {
    // A thread's indices increase: of equal terms the first stays.
    if constexpr (!std::is_same_v<term, float>) {
      int first = -1;
#pragma unroll
      for (int i = 0; i < batch_terms; ++i) {
        const key_type k = num::order_key(x[i], p.flip);
        if (k > key) {
          key = k;
          first = i;
        }
      }
      if (first >= 0) index = index_of(first);
    } else {
      take_narrow_batch(p, x, index_of);
    }
  }
  __device__ void merge(const arg_extremum& o) { offer(o.key, o.index); }
  __device__ bool finish(const reduce_parameters&, std::int64_t* out) const {
    *out = index;
    return true;
  }

 private:
  template <class Index>
  __device__ void take_narrow_batch(const reduce_parameters& p, const float (&x)[batch_terms], const Index& index_of) {
    float v[batch_terms];
    flip_signs(x, p.flip, v);
    const float m = greatest(v);
    const std::int32_t k = num::order_key(m, num::order_max);
    if (k <= key) return;
    key = k;
    int first = 0;
#pragma unroll
    for (int i = batch_terms - 1; i >= 0; --i) {
      if (num::bits_of(v[i]) == num::bits_of(m) || v[i] != v[i]) first = i;  // with a NaN m is one
    }
    index = index_of(first);
  }
};

}  // namespace repdl::cuda
