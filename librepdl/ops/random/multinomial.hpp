// Draws in proportion to weights (contract, section 6).
//
// With replacement: the first i with C_i 2^64 > W C_n, C_i the exact sum of the weights up to i. In units of 2^-149 weights are
// integers below 2^277, and so are sums of 2^40 of them below 2^317 (weight_sum). C_i is an integer, so C_i 2^64 > W C_n if and only
// if C_i > floor(W C_n / 2^64).
//
// Of each chunk of a row its exact sum is kept, added to those before it (`upto`), this rounded to binary64 (`rounded`), and of each
// weight the sum in binary64 of its chunk's weights up to it (`within`). A search in these says which i it might be; whether it is
// is asked of C_i and C_(i-1), and where they cannot tell, exact sums say it. With u = 2^-53, and first-order terms:
//   `rounded`: rounded() has five steps, each of them rounds a limb and a sum: 10 u. `within`: weights are exact, an element is made
//   of chunk terms >= 0 in any order: (chunk - 1) u = 127 u. Their sum, A = rounded + within: 138 u |A|, below 2^-45 |A|.
//   t = W 2^-64 rounded: u of W, 10 u, u of the product: below 2^-49 t.
// So A > (1 + 2^-44) t says that C_i > W C_n / 2^64, and A <= (1 - 2^-44) t that it is not, with room for the rounding of these
// products. Sums in these units are integers, 0 or from 1 to 2^317, and t is 0 or from 2^-64: nothing over- or underflows.
//
// Without replacement: the keys RN(-ln u / w) in binary64, by exponential.hpp's second tier and its last, with the weight for the
// rate: weights lie in [2^-149, 2^128). Keys are >= +0, and in the order of their bits.
#pragma once

#include "librepdl/num/fixed_point.hpp"
#include "librepdl/ops/random/exponential.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

inline constexpr std::int64_t draw_chunk = 128;

REPDL_HD bool is_weight(float w) { return w >= 0 && w < static_cast<float>(infinity); }

struct weight_sum {
  static constexpr int limbs = 5;
  std::uint64_t limb[limbs];

  // w: a weight.
  REPDL_HD void add(float w) {
    const std::uint32_t bits = bits_of(w) & 0x7fffffff;  // -0 is 0
    const std::uint32_t exponent = bits >> 23;
    const std::uint64_t m = exponent == 0 ? bits : (bits & 0x7fffff) | 0x800000;
    const int shift = exponent == 0 ? 0 : static_cast<int>(exponent) - 1;
    const int at = shift / 64, by = shift % 64;
    const std::uint64_t low = m << by, high = by > 40 ? m >> (64 - by) : 0;
    std::uint64_t carry = 0;
    REPDL_UNROLL
    for (int i = 0; i < limbs; ++i) {
      limb[i] = add_carry(limb[i], i == at ? low : i == at + 1 ? high : 0, &carry);
    }
  }
  REPDL_HD void add(const weight_sum& other) {
    std::uint64_t carry = 0;
    REPDL_UNROLL
    for (int i = 0; i < limbs; ++i) limb[i] = add_carry(limb[i], other.limb[i], &carry);
  }
  REPDL_HD bool is_zero() const { return (limb[0] | limb[1] | limb[2] | limb[3] | limb[4]) == 0; }
  REPDL_HD bool above(const weight_sum& other) const {
    bool is = false;  // of the limbs below
    REPDL_UNROLL
    for (int i = 0; i < limbs; ++i) is = limb[i] > other.limb[i] || (limb[i] == other.limb[i] && is);
    return is;
  }
  REPDL_HD double rounded() const {
    double x = 0;
    REPDL_UNROLL
    for (int i = limbs - 1; i >= 0; --i) x = x * 0x1p64 + static_cast<double>(limb[i]);
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

// The weight in units of 2^-149.
REPDL_HD double weight_units(float w) { return static_cast<double>(w) * 0x1p149; }

// The sums of one row.
struct row_sums {
  std::int64_t n;
  const double* within;    // [n]
  const weight_sum* upto;  // [chunks], with the chunk itself
  const double* rounded;   // [chunks]

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
    return here > t * (1 + 0x1p-44) && former <= t * (1 - 0x1p-44) ? i : -1;
  }

  // The same; weight(i) is a weight.
  template <class Weight>
  REPDL_HD std::int64_t find_exactly(std::uint64_t w, Weight weight) const {
    const weight_sum t = upto[chunks() - 1].part(w);
    std::int64_t c = 0;
    for (std::int64_t last = chunks() - 1; c < last;) {
      const std::int64_t middle = (c + last) / 2;
      if (upto[middle].above(t)) {
        last = middle;
      } else {
        c = middle + 1;
      }
    }
    weight_sum sum{};
    if (c > 0) sum = upto[c - 1];
    std::int64_t i = c * draw_chunk;
    for (;; ++i) {  // ends: the sum with the whole chunk is above
      sum.add(weight(i));
      if (sum.above(t)) return i;
    }
  }
};

// What is sorted where there is no key: after all keys, which are below the pattern of infinity.
inline constexpr std::uint64_t key_of_bad = ~std::uint64_t{0}, key_of_zero = key_of_bad - 1,
                               key_undecided = key_of_bad - 2;

}  // namespace REPDL_ISA
}  // namespace repdl::num
