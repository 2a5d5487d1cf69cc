// Exact sums: fixed-point integers wide enough for every finite term, in registers or local memory.
//
// Method: U. Kulisch, "Computer Arithmetic and Validity" (2013), ch. 8, the complete register: the value is
// N · 2^lsb_exponent with N a two's complement integer of `words` 64-bit words. Additions are integer additions: exact
// in any order, nothing to prove. Rounding looks at N once.
//
// Why it always decides: N is the exact sum as long as |N| < 2^(64 words - 1), and the sizes allow 2^62 terms:
//   sum_accumulator  terms of f32:      |x| < 2^128, multiples of 2^-149: 277 + 62 + sign = 340 bits <= 384 - 2
//   dot_accumulator  products of f32:   |ab| < 2^256, multiples of 2^-298: 554 + 62 + sign = 617 bits <= 640 - 2
// (the two spare bits are used by the division in mean_to_float). Terms must be finite: special_terms sees the others.
// Checked by tests/num_test.cpp against GMP.
#pragma once

#include "librepdl/num/certify.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// Local arrays with variable indices are spilled to memory on a GPU; there every word is visited instead.
#if defined(__CUDA_ARCH__)
inline constexpr bool index_words = false;
#else
inline constexpr bool index_words = true;
#endif

// Sets *carry to the carry out of a + b + *carry (0 or 1).
REPDL_HD std::uint64_t add_carry(std::uint64_t a, std::uint64_t b, std::uint64_t* carry) {
  const std::uint64_t s = a + b;
  const std::uint64_t r = s + *carry;
  *carry = static_cast<std::uint64_t>(s < a) | static_cast<std::uint64_t>(r < s);
  return r;
}

REPDL_HD int leading_zeros(std::uint64_t x) {  // x != 0
#if defined(__CUDA_ARCH__)
  return __clzll(static_cast<long long>(x));
#else
  return __builtin_clzll(x);
#endif
}

template <int lsb_exponent_, int words_>
class fixed_point {
 public:
  static constexpr int lsb = lsb_exponent_;
  static constexpr int words = words_;

  REPDL_HD fixed_point() {
    for (int i = 0; i < words; ++i) w_[i] = 0;
  }

  // += (-1)^negative · m · 2^exponent, exponent >= lsb.
  REPDL_HD void add_scaled(std::uint64_t m, int exponent, bool negative) {
    const int shift = exponent - lsb;
    const int at = shift >> 6;
    const int by = shift & 63;
    const std::uint64_t low = m << by;
    const std::uint64_t high = (m >> 1) >> (63 - by);
    if constexpr (index_words) {
      if (m == 0) return;
      if (!negative) {
        std::uint64_t carry = 0;
        w_[at] = add_carry(w_[at], low, &carry);
        if (at + 1 < words) w_[at + 1] = add_carry(w_[at + 1], high, &carry);
        for (int i = at + 2; carry != 0 && i < words; ++i) carry = static_cast<std::uint64_t>(++w_[i] == 0);
      } else {
        std::uint64_t carry = 1;  // a - b = a + ~b + 1
        w_[at] = add_carry(w_[at], ~low, &carry);
        if (at + 1 < words) w_[at + 1] = add_carry(w_[at + 1], ~high, &carry);
        for (int i = at + 2; carry == 0 && i < words; ++i) carry = static_cast<std::uint64_t>(w_[i]-- != 0);
      }
    } else {
      const std::uint64_t flip = negative ? ~std::uint64_t{0} : 0;
      std::uint64_t carry = negative ? 1 : 0;
      for (int i = 0; i < words; ++i) {
        const std::uint64_t term = i == at ? low : i == at + 1 ? high : 0;
        w_[i] = add_carry(w_[i], term ^ flip, &carry);
      }
    }
  }

  // Finite values that are multiples of 2^lsb.
  REPDL_HD void add(float x) {
    const std::uint32_t b = bits_of(x);
    const std::uint32_t e = (b >> 23) & 0xff;
    add_scaled((b & 0x7fffffu) | (e != 0 ? 0x800000u : 0u), static_cast<int>(e != 0 ? e : 1) - 150, (b >> 31) != 0);
  }
  REPDL_HD void add(double x) {
    const std::uint64_t b = bits_of(x);
    const int e = static_cast<int>(b >> 52) & 0x7ff;
    std::uint64_t m = (b & 0xfffffffffffffull) | (e != 0 ? 0x10000000000000ull : 0);
    int exponent = (e != 0 ? e : 1) - 1075;
    if (exponent < lsb) {  // the bits below 2^lsb are zero by precondition
      m = lsb - exponent > 63 ? 0 : m >> (lsb - exponent);
      exponent = lsb;
    }
    add_scaled(m, exponent, (b >> 63) != 0);
  }
  // += a · b exactly: a 48-bit significand.
  REPDL_HD void add_product(float a, float b) {
    const std::uint32_t x = bits_of(a);
    const std::uint32_t y = bits_of(b);
    const std::uint32_t ex = (x >> 23) & 0xff;
    const std::uint32_t ey = (y >> 23) & 0xff;
    const std::uint64_t mx = (x & 0x7fffffu) | (ex != 0 ? 0x800000u : 0u);
    const std::uint64_t my = (y & 0x7fffffu) | (ey != 0 ? 0x800000u : 0u);
    add_scaled(mx * my, static_cast<int>(ex != 0 ? ex : 1) + static_cast<int>(ey != 0 ? ey : 1) - 300,
               ((x ^ y) >> 31) != 0);
  }
  REPDL_HD void merge(const fixed_point& other) {
    std::uint64_t carry = 0;
    for (int i = 0; i < words; ++i) w_[i] = add_carry(w_[i], other.w_[i], &carry);
  }
  REPDL_HD void negate() {
    std::uint64_t carry = 1;
    for (int i = 0; i < words; ++i) w_[i] = add_carry(~w_[i], 0, &carry);
  }

  REPDL_HD bool is_zero() const {
    std::uint64_t any = 0;
    for (int i = 0; i < words; ++i) any |= w_[i];
    return any == 0;
  }
  REPDL_HD bool negative() const { return (w_[words - 1] >> 63) != 0; }
  REPDL_HD int sign() const { return negative() ? -1 : is_zero() ? 0 : 1; }
  // The sign of *this - other.
  REPDL_HD int compare(const fixed_point& other) const {
    fixed_point d = other;
    d.negate();
    d.merge(*this);
    return d.sign();
  }

  // RN(value), ties to even, subnormals, overflow to infinity; an exact zero is +0.
  REPDL_HD float round_to_float() const {
    fixed_point magnitude = *this;
    if (negative()) magnitude.negate();
    return magnitude.round_magnitude(lsb, false, negative());
  }

  // RN(value / n), 1 <= n < 2^62, lsb <= -149: the quotient of 4|N| by n in units of 2^(lsb - 2), one bit at a time,
  // and whether a remainder is left. Two more bits than the finest float (2^-149) has, so that the half and the rest
  // below it are told apart.
  REPDL_HD float mean_to_float(std::int64_t n) const {
    static_assert(lsb <= -149);
    fixed_point q = *this;
    if (negative()) q.negate();
    for (int i = words - 1; i >= 0; --i) q.w_[i] = q.w_[i] << 2 | (i != 0 ? q.w_[i > 0 ? i - 1 : 0] >> 62 : 0);
    const std::uint64_t divisor = static_cast<std::uint64_t>(n);
    std::uint64_t rest = 0;
    for (int i = words - 1; i >= 0; --i) {
      std::uint64_t word = q.w_[i];
      std::uint64_t quotient = 0;
      if ((word | rest) != 0) {
        for (int bit = 63; bit >= 0; --bit) {
          rest = rest << 1 | ((word >> bit) & 1);
          const bool fits = rest >= divisor;
          rest -= fits ? divisor : 0;
          quotient = quotient << 1 | static_cast<std::uint64_t>(fits);
        }
      }
      q.w_[i] = quotient;
    }
    return q.round_magnitude(lsb - 2, rest != 0, negative());
  }

  REPDL_HD std::uint64_t word(int i) const { return w_[i]; }

 private:
  // RN of (-1)^negative · (N + a fraction in (0, 1) if `inexact`) · 2^unit, for N = *this >= 0. If N is 0 and inexact,
  // the result is a zero of that sign; N = 0 exactly is +0. `inexact` requires unit <= -151.
  REPDL_HD float round_magnitude(int unit, bool inexact, bool is_negative) const {
    std::uint64_t top = 0;  // the highest nonzero word
    int index = 0;
    for (int i = 0; i < words; ++i) {
      if (w_[i] != 0) {
        top = w_[i];
        index = i;
      }
    }
    const std::uint32_t sign = is_negative ? 0x80000000u : 0u;
    if (top == 0) return float_of(inexact ? sign : 0u);
    const int width = 64 * index + 64 - leading_zeros(top);  // 2^(width-1) <= N < 2^width
    const int exponent = width - 1 + unit;
    const int last = exponent < -126 ? -149 : exponent - 23;  // the exponent of the result's last bit
    const int drop = last - unit;                             // low bits of N to round away
    std::uint64_t kept = 0;                                   // N >> (drop - 1) when drop >= 1: one bit more
    std::uint64_t below = inexact ? 1 : 0;
    const int shift = drop - 1;
    if (shift < 0) {
      // N has at most 24 bits above or at `last`, and its unit is not below it: exact.
      kept = w_[0] << (1 - drop);
    } else {
      for (int i = 0; i < words; ++i) {
        const int from = 64 * i - shift;  // bit 0 of word i lands here
        if (from <= -64) {
          below |= w_[i];
        } else if (from < 0) {
          kept |= w_[i] >> -from;
          below |= w_[i] << (64 + from);
        } else if (from < 64) {
          kept |= w_[i] << from;
        }
      }
    }
    const std::uint64_t half = kept & 1;
    std::uint32_t m = static_cast<std::uint32_t>(kept >> 1);
    m += static_cast<std::uint32_t>(half & ((below != 0 ? 1 : 0) | (m & 1)));
    if (exponent > 127) return float_of(sign | 0x7f800000u);
    // m has its leading bit at 2^23 for normal numbers; a carry out of the significand steps the exponent, up to
    // infinity.
    const std::uint32_t biased = exponent < -126 ? 0u : static_cast<std::uint32_t>(exponent + 126) << 23;
    return float_of(sign | (biased + m));
  }

  std::uint64_t w_[words];
};

using sum_accumulator = fixed_point<-149, 6>;
using dot_accumulator = fixed_point<-298, 10>;

// The terms that fixed_point cannot hold (contract, section 3, rule 1).
struct special_terms {
  bool nan = false;
  bool positive = false;
  bool negative = false;

  REPDL_HD void add(double x) {
    nan |= x != x;
    positive |= x == infinity;
    negative |= x == -infinity;
  }
  REPDL_HD void add_product(float a, float b) { add(static_cast<double>(a) * static_cast<double>(b)); }
  REPDL_HD void merge(const special_terms& o) {
    nan |= o.nan;
    positive |= o.positive;
    negative |= o.negative;
  }
  REPDL_HD bool any() const { return nan | positive | negative; }
  REPDL_HD float value() const {
    return nan || (positive && negative) ? float_of(canonical_nan_f32) : float_of(positive ? 0x7f800000u : 0xff800000u);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
