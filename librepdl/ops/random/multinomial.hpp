// Draws in proportion to weights (contract, section 6) of binary32, which f16 and bf16 are widened to, or of binary64.
//
// With replacement: the first i with C_i 2^64 > W C_n, C_i the exact sum of the weights up to i. In units of 2^-149, or of
// 2^-1074, weights are integers below 2^277, or 2^2098, and so are sums of 2^40 of them below 2^317, or 2^2138 (weight_sum).
// C_i is an integer, so C_i 2^64 > W C_n if and only if C_i > floor(W C_n / 2^64).
//
// Of each chunk of a row its exact sum is kept, added to those before it (`upto`), this rounded to binary64 (`rounded`), and of each
// weight the sum in binary64 of its chunk's weights up to it (`within`). A search in these says which i it might be; whether it is
// is asked of C_i and C_(i-1), and where they cannot tell, exact sums say it. With u = 2^-53, and first-order terms:
//   `rounded`: rounded() rounds each limb, and a sum for each but the first: 35 u. `within`: weights are exact, an element is made
//   of chunk terms >= 0 in any order: (chunk - 1) u = 127 u. Their sum, A = rounded + within: 163 u |A|, below 2^-45 |A|.
//   t = W 2^-64 rounded: u of W, 35 u, u of the product: below 2^-47 t.
// So A > (1 + 2^-44) t says that C_i > W C_n / 2^64, and A <= (1 - 2^-44) t that it is not, with room for the rounding of these
// products. Of binary32 in units of 2^-149: sums are integers, 0 or from 1 to 2^317, and t is 0 or from 2^-64: nothing over-
// or underflows. Of binary64 in units of 2^41: sums are below 2^1023. What underflows, of 128 weights, of the limbs and of t,
// is less than 2^-950, and asks for a distance of 2^-900 more; where sums are smaller, exact ones decide.
//
// Without replacement: the keys RN(-ln u / w) in binary64, by exponential.hpp's second tier and its last, with the weight for the
// rate: weights lie in [2^-149, 2^128). Those of binary64 are m 2^k, m a whole number below 2^53: the key of m times 2^-k,
// which is exact, or infinite where the quotient is rounded to infinity; below 2^-1022 it would be rounded twice, and the last
// tier decides. Keys are >= +0, and in the order of their bits.
#pragma once

#include "librepdl/num/fixed_point.hpp"
#include "librepdl/ops/random/exponential.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

inline constexpr std::int64_t draw_chunk = 128;

// Of weights of T.
template <class T>
using weight_of = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class W>
REPDL_HD bool is_weight(W w) {
  return w >= 0 && w < static_cast<W>(infinity);
}

template <class W>
struct weight_sum {
  static constexpr bool wide = std::is_same_v<W, double>;
  static constexpr int limbs = wide ? 34 : 5;
  std::uint64_t limb[limbs];

  // w: a weight.
  REPDL_HD void add(W w) {
    const integral_parts p = decompose(w);
    const int shift = p.exponent - least_exponent<W>;
    const int at = shift / 64, by = shift % 64;
    const std::uint64_t low = p.significand << by, high = (p.significand >> 1) >> (63 - by);
    std::uint64_t carry = 0;
    if constexpr (wide) {  // high is below the top limb
      limb[at] = add_carry(limb[at], low, &carry);
      limb[at + 1] = add_carry(limb[at + 1], high, &carry);
      for (int i = at + 2; carry != 0 && i < limbs; ++i) carry = ++limb[i] == 0 ? 1 : 0;
    } else {
      REPDL_UNROLL
      for (int i = 0; i < limbs; ++i) {
        limb[i] = add_carry(limb[i], i == at ? low : i == at + 1 ? high : 0, &carry);
      }
    }
  }
  REPDL_HD void add(const weight_sum& other) {
    std::uint64_t carry = 0;
    REPDL_UNROLL
    for (int i = 0; i < limbs; ++i) limb[i] = add_carry(limb[i], other.limb[i], &carry);
  }
  REPDL_HD bool is_zero() const {
    std::uint64_t any = 0;
    REPDL_UNROLL
    for (int i = 0; i < limbs; ++i) any |= limb[i];
    return any == 0;
  }
  REPDL_HD bool above(const weight_sum& other) const {
    bool is = false;  // of the limbs below
    REPDL_UNROLL
    for (int i = 0; i < limbs; ++i) is = limb[i] > other.limb[i] || (limb[i] == other.limb[i] && is);
    return is;
  }
  // In weight_units.
  REPDL_HD double rounded() const {
    double x = 0;
    double scale = wide ? 0x1p997 : 0x1p256;  // of the top limb
    REPDL_UNROLL
    for (int i = limbs - 1; i >= 0; --i) {
      x += static_cast<double>(limb[i]) * scale;
      scale *= 0x1p-64;
    }
    return x;
  }
  // floor(w times this / 2^64)
  REPDL_HD weight_sum part(std::uint64_t w) const {
    weight_sum r{};
    std::uint64_t above_it = 0;  // the high word of the product before
    std::uint64_t carry = 0;
    REPDL_UNROLL
    for (int i = 0; i < limbs; ++i) {
      std::uint64_t high = 0;
      const std::uint64_t low = multiply_wide(limb[i], w, &high);
      const std::uint64_t digit = add_carry(low, above_it, &carry);
      if (i > 0) r.limb[i - 1] = digit;
      above_it = high;
    }
    r.limb[limbs - 1] = above_it + carry;
    return r;
  }
};

// The weight in units of 2^-149 or 2^41.
REPDL_HD double weight_units(float w) { return static_cast<double>(w) * 0x1p149; }
REPDL_HD double weight_units(double w) { return w * 0x1p-41; }

// The sums of one row.
template <class W>
struct row_sums {
  std::int64_t n;
  const double* within;       // [n]
  const weight_sum<W>* upto;  // [chunks], with the chunk itself
  const double* rounded;      // [chunks]

  REPDL_HD std::int64_t chunks() const { return (n + draw_chunk - 1) / draw_chunk; }

  // The first i with C_i 2^64 > w C_n, or -1 where only exact sums can tell.
  REPDL_HD std::int64_t find(std::uint64_t w) const {
    const double t = static_cast<double>(w) * 0x1p-64 * rounded[chunks() - 1];
    std::int64_t c = 0;
    for (std::int64_t last = chunks() - 1; c < last;) {
      const std::int64_t middle = (c + last) / 2;
      if (rounded[middle] > t) {
        last = middle;
      } else {
        c = middle + 1;
      }
    }
    const std::int64_t first = c * draw_chunk;
    const double before = c == 0 ? 0.0 : rounded[c - 1];
    std::int64_t i = first;
    for (std::int64_t last = (n - first < draw_chunk ? n : first + draw_chunk) - 1; i < last;) {
      const std::int64_t middle = (i + last) / 2;
      if (before + within[middle] > t) {
        last = middle;
      } else {
        i = middle + 1;
      }
    }
    const double here = before + within[i], former = i == first ? before : before + within[i - 1];
    constexpr double underflown = weight_sum<W>::wide ? 0x1p-900 : 0;
    const bool is_above = here > t * (1 + 0x1p-44) + underflown;
    return is_above && (i == 0 || former <= t * (1 - 0x1p-44) - underflown) ? i : -1;
  }

  // The same; weight(i) is a weight.
  template <class Weight>
  REPDL_HD std::int64_t find_exactly(std::uint64_t w, Weight weight) const {
    const weight_sum<W> t = upto[chunks() - 1].part(w);
    std::int64_t c = 0;
    for (std::int64_t last = chunks() - 1; c < last;) {
      const std::int64_t middle = (c + last) / 2;
      if (upto[middle].above(t)) {
        last = middle;
      } else {
        c = middle + 1;
      }
    }
    weight_sum<W> sum{};
    if (c > 0) sum = upto[c - 1];
    std::int64_t i = c * draw_chunk;
    for (;; ++i) {  // ends: the sum with the whole chunk is above
      sum.add(weight(i));
      if (sum.above(t)) return i;
    }
  }
};

// The key of a weight is that of m, in binary64, times 2^-k.
struct key_weight {
  double m;
  int k;
  REPDL_HD explicit key_weight(float w) : m(static_cast<double>(w)), k(0) {}
  REPDL_HD explicit key_weight(double w) {
    const integral_parts p = decompose(w);
    m = static_cast<double>(p.significand);
    k = p.exponent;
  }
};
// By two powers, the first of which changes no bit.
template <class W>
REPDL_HD double scaled_key(double key, int k) {
  if constexpr (!weight_sum<W>::wide) return key;
  const int half = k / 2;
  const auto power = [](int e) { return double_of(static_cast<std::uint64_t>(1023 + e) << 52); };
  return key * power(-half) * power(half - k);
}
template <class W>
REPDL_HD bool is_rounded_once(double key) {
  return !weight_sum<W>::wide || key >= 0x1p-1022;
}

// What is sorted where there is no key: after all keys, which are up to the pattern of infinity.
inline constexpr std::uint64_t key_of_bad = ~std::uint64_t{0}, key_of_zero = key_of_bad - 1,
                               key_undecided = key_of_bad - 2;

}  // namespace REPDL_ISA
}  // namespace repdl::num
