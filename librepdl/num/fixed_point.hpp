// Exact sums: fixed-point integers wide enough for every finite term, in registers or local memory.
//
// Method: U. Kulisch, "Computer Arithmetic and Validity" (2013), ch. 8, the complete register: the value is
// N · 2^lsb_exponent with N a two's complement integer of `words` 64-bit words. Additions are integer additions: exact
// in any order, nothing to prove. Rounding looks at N once.
//
// Why it always decides: N is the exact sum as long as |N| < 2^(64 words - 1). exact_accumulator<From, Factors> has room for 2^62
// terms, each a product of so many numbers of From: magnitudes below 2^(Factors (emax + 1)), multiples of 2^(Factors lsb). Of
// binary32, one factor: 277 + 62 + sign = 340 bits in 384 - 2 (the division in mean() uses the two spare bits); two factors: 617 in
// 640 - 2. Terms must be finite: special_terms sees the others; exact_sum is both.
// Checked by tests/numerics/num_test.cpp against GMP.
#pragma once

#include "librepdl/num/certify.hpp"
#include "librepdl/num/format.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// Local arrays with variable indices are spilled to memory on a GPU; there every word is visited instead, unless they are too many for
// registers.
template <int words>
inline constexpr bool index_words = !on_device || words > 24;

// Sets *carry to the carry out of a + b + *carry (0 or 1).
REPDL_HD std::uint64_t add_carry(std::uint64_t a, std::uint64_t b, std::uint64_t* carry) {
  const std::uint64_t s = a + b;
  const std::uint64_t r = s + *carry;
  *carry = static_cast<std::uint64_t>(s < a) | static_cast<std::uint64_t>(r < s);
  return r;
}

// The exponent of T's least number.
template <class T>
inline constexpr int least_exponent = format<T>::emin - format<T>::precision + 1;

// RN_T of (-1)^negative (top + f) 2^(e - 63), 0 <= f < 1, f != 0 if below != 0; top has its leading bit, so that 2^e <= |value| <
// 2^(e + 1). Ties to even; subnormals, overflow.
template <class T>
REPDL_HD storage_of<T> round_leading(bool negative, std::uint64_t top, std::uint64_t below, std::int64_t e) {
  using F = format<T>;
  using storage = storage_of<T>;
  const storage sign = negative ? sign_mask<T> : storage{0};
  if (e > F::emax) return static_cast<storage>(sign | F::infinity);
  const std::int64_t keep = e < F::emin ? F::precision - (F::emin - e) : F::precision;  // bits before the rounding
  if (keep < 0) return sign;
  const int k = static_cast<int>(keep);
  below |= top << (k + 1);
  const std::uint64_t kept = k == 0 ? 0 : top >> (64 - k);
  const std::uint64_t half = (top >> (63 - k)) & 1;
  const std::uint64_t m = kept + (half & (static_cast<std::uint64_t>(below != 0) | (kept & 1)));
  // The leading bit of m is the 1 by which a normal number's biased exponent exceeds e - emin; a carry steps it.
  const std::uint64_t exponent = e < F::emin ? 0 : static_cast<std::uint64_t>(e - F::emin);
  return static_cast<storage>(sign | ((exponent << (F::precision - 1)) + m));
}

// A finite number of T: (-1)^negative significand 2^exponent, exponent >= least_exponent<T>.
struct integral_parts {
  std::uint64_t significand;
  int exponent;
  bool negative;
};
template <class T>
REPDL_HD integral_parts decompose(T x) {
  using F = format<T>;
  const std::uint64_t b = to_bits(x);
  const std::uint64_t hidden = std::uint64_t{1} << (F::precision - 1);
  const auto e = static_cast<int>(b >> (F::precision - 1) & (2 * F::emax + 1));
  return {(b & (hidden - 1)) | (e != 0 ? hidden : 0), (e != 0 ? e : 1) - 1 + least_exponent<T>,
          (b & sign_mask<T>) != 0};
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
    if constexpr (index_words<words>) {
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

  // += x 2^lsb.
  REPDL_HD void add_integer(std::int64_t x) {
    std::uint64_t carry = 0;
    w_[0] = add_carry(w_[0], static_cast<std::uint64_t>(x), &carry);
    const std::uint64_t above = x < 0 ? ~std::uint64_t{0} : 0;
    for (int i = 1; i < words; ++i) w_[i] = add_carry(w_[i], above, &carry);
  }
  // Finite values that are multiples of 2^lsb.
  template <class T>
  REPDL_HD void add(T x) {
    auto v = decompose(x);
    if constexpr (least_exponent<T> < lsb) {
      if (v.exponent < lsb) {  // the bits below 2^lsb are zero by precondition
        v.significand = lsb - v.exponent > 63 ? 0 : v.significand >> (lsb - v.exponent);
        v.exponent = lsb;
      }
    }
    add_scaled(v.significand, v.exponent, v.negative);
  }
  // += a b exactly.
  template <class T>
  REPDL_HD void add_product(T a, T b) {
    const auto x = decompose(a);
    const auto y = decompose(b);
    const int exponent = x.exponent + y.exponent;
    const bool negative = x.negative != y.negative;
    if constexpr (2 * format<T>::precision <= 64) {
      add_scaled(x.significand * y.significand, exponent, negative);
    } else {
      std::uint64_t high = 0;
      const std::uint64_t low = multiply_wide(x.significand, y.significand, &high);
      add_scaled(low, exponent, negative);
      add_scaled(high, exponent + 64, negative);
    }
  }
  template <class T>
  requires(3 * format<T>::precision <= 128) REPDL_HD void add_product(T a, T b, T c) {
    const auto x = decompose(a);
    const auto y = decompose(b);
    const auto z = decompose(c);
    const int exponent = x.exponent + y.exponent + z.exponent;
    const bool negative = (x.negative != y.negative) != z.negative;
    std::uint64_t high = 0;
    const std::uint64_t low = multiply_wide(x.significand * y.significand, z.significand, &high);
    add_scaled(low, exponent, negative);
    add_scaled(high, exponent + 64, negative);
  }
  REPDL_HD void merge(const fixed_point& other) {
    std::uint64_t carry = 0;
    for (int i = 0; i < words; ++i) w_[i] = add_carry(w_[i], other.w_[i], &carry);
  }
  REPDL_HD void negate() {
    std::uint64_t carry = 1;
    for (int i = 0; i < words; ++i) w_[i] = add_carry(~w_[i], 0, &carry);
  }

  // *= factor; of a value >= 0 whose product fits.
  REPDL_HD void multiply_by(std::uint64_t factor) {
    std::uint64_t carry = 0;
    for (int i = 0; i < words; ++i) {
      std::uint64_t high = 0;
      const std::uint64_t low = multiply_wide(w_[i], factor, &high);
      w_[i] = low + carry;
      carry = high + static_cast<std::uint64_t>(w_[i] < low);
    }
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

  // RN_T(value), ties to even, subnormals, overflow to infinity; an exact zero is +0.
  template <class T = float>
  REPDL_HD T round() const {
    fixed_point magnitude = *this;
    if (negative()) magnitude.negate();
    return magnitude.template round_magnitude<T>(lsb, false, negative());
  }

  // RN_T(value / n), 1 <= n < 2^62: the quotient of 4|N| by n in units of 2^(lsb - 2), one bit at a time, and whether a
  // remainder is left. Two more bits than the finest number has, so that the half and the rest below it are told apart.
  template <class T = float>
  REPDL_HD T mean(std::int64_t n) const {
    static_assert(lsb <= least_exponent<T>);
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
    return q.template round_magnitude<T>(lsb - 2, rest != 0, negative());
  }

  REPDL_HD std::uint64_t word(int i) const { return w_[i]; }

 private:
  // RN_T of (-1)^negative · (N + a fraction in (0, 1) if `inexact`) · 2^unit, for N = *this >= 0. If N is 0 and inexact,
  // the result is a zero of that sign; N = 0 exactly is +0. `inexact` requires unit <= least_exponent<T> - 2.
  template <class T>
  REPDL_HD T round_magnitude(int unit, bool inexact, bool is_negative) const {
    std::uint64_t top = 0;  // the highest nonzero word
    std::uint64_t next = 0;
    std::uint64_t below = inexact ? 1 : 0;
    int index = 0;
    for (int i = 0; i < words; ++i) {
      if (w_[i] == 0) continue;
      // What was highest so far is the word under this one, or further below.
      const bool adjacent = top != 0 && index == i - 1;
      below |= next | (adjacent ? 0 : top);
      next = adjacent ? top : 0;
      top = w_[i];
      index = i;
    }
    const storage_of<T> sign = is_negative ? sign_mask<T> : storage_of<T>{0};
    if (top == 0) return from_bits<T>(inexact ? sign : storage_of<T>{0});
    const int shift = leading_zeros(top);
    const std::uint64_t leading = top << shift | (next >> 1) >> (63 - shift);
    return from_bits<T>(round_leading<T>(is_negative, leading, below | next << shift, unit + 64 * index + 63 - shift));
  }

  std::uint64_t w_[words];
};

// to += factor s, exactly: factor is a multiple of 2^(ToLsb - Lsb), and `to` has room for it.
template <int ToLsb, int ToWords, int Lsb, int Words>
REPDL_HD void add_multiple(fixed_point<ToLsb, ToWords>& to, fixed_point<Lsb, Words> s, double factor) {
  integral_parts a = decompose(factor);
  if (a.significand == 0) return;
  const int zeros = trailing_zeros(a.significand);  // 10^12 is an integer, though decompose says 2^-13 times one
  a.significand >>= zeros;
  a.exponent += zeros;
  const bool negative = s.negative();
  if (negative) s.negate();
  for (int i = 0; i < Words; ++i) {
    std::uint64_t high = 0;
    const std::uint64_t low = multiply_wide(s.word(i), a.significand, &high);
    const int exponent = Lsb + 64 * i + a.exponent;
    to.add_scaled(low, exponent, negative != a.negative);
    to.add_scaled(high, exponent + 64, negative != a.negative);
  }
}

// Bits for 2^62 terms, each a product of `factors` numbers of From, a sign, and two to spare.
template <class From>
constexpr int accumulator_words(int factors) {
  return (factors * (format<From>::emax + 1 - least_exponent<From>)+62 + 1 + 2 + 63) / 64;
}
template <class From, int Factors>
using exact_accumulator = fixed_point<Factors * least_exponent<From>, accumulator_words<From>(Factors)>;
using sum_accumulator = exact_accumulator<float, 1>;
using dot_accumulator = exact_accumulator<float, 2>;
static_assert(sum_accumulator::words == 6 && dot_accumulator::words == 10);

// (M + f) 2^exponent, 0 <= f < 1, M = high 2^64 + low of 127 or 128 bits, and f = 0 only if nothing was `cut`. Or high = 0: the value is 0.
struct first_bits {
  std::uint64_t high, low;
  bool cut;
  std::int64_t exponent;
};
// Of s >= 0, s = N 2^lsb, with an even exponent.
template <class Sum>
REPDL_HD first_bits first_bits_of(const Sum& s) {
  constexpr int lsb = Sum::lsb;
  int top = Sum::words - 1;
  while (top >= 0 && s.word(top) == 0) --top;
  if (top < 0) return {0, 0, false, 0};
  const int bits = 64 * top + 64 - leading_zeros(s.word(top));
  int k = bits - 128;
  if (((lsb + k) & 1) != 0) ++k;
  const auto bits_from = [&](int at) {  // 64 of N, from a place that may be negative
    const auto word = [&](int i) { return i >= 0 && i < Sum::words ? s.word(i) : std::uint64_t{0}; };
    const int i = at >> 6, by = at & 63;
    return by == 0 ? word(i) : word(i) >> by | word(i + 1) << (64 - by);
  };
  bool cut = false;
  for (int i = 0; 64 * i < k; ++i) cut |= (64 * (i + 1) <= k ? s.word(i) : s.word(i) << (64 - (k & 63))) != 0;
  return {bits_from(k + 64), bits_from(k), cut, lsb + k};
}
// RN_T(sqrt a), a > 0, of an even exponent: with r = floor(sqrt M), of 64 bits, the root is (r + f) 2^(exponent / 2), 0 <= f < 1, and f = 0 only
// if r^2 = M and nothing was cut off.
template <class T>
REPDL_HD T round_root(const first_bits& a) {
  // Bit by bit: rest = M - r^2 of the bits so far, at most 2 r.
  std::uint64_t r = 0, rest = 0, carry = 0;  // rest has 65 bits
  for (int i = 63; i >= 0; --i) {
    const std::uint64_t two = i >= 32 ? a.high >> (2 * (i - 32)) & 3 : a.low >> (2 * i) & 3;
    const std::uint64_t upper = carry << 2 | rest >> 62;  // rest 4 + two >= 4 r + 1?
    const std::uint64_t lower = rest << 2 | two;
    const std::uint64_t subtrahend = r << 2 | 1, above = r >> 62;
    const bool fits = upper > above || (upper == above && lower >= subtrahend);
    rest = fits ? lower - subtrahend : lower;
    carry = fits ? upper - above - static_cast<std::uint64_t>(lower < subtrahend) : upper;
    r = r << 1 | static_cast<std::uint64_t>(fits);
  }
  const std::uint64_t below = static_cast<std::uint64_t>((rest | carry) != 0 || a.cut);
  return from_bits<T>(round_leading<T>(false, r, below, a.exponent / 2 + 63));
}
// RN_T(sqrt s) of s >= 0.
template <class T, class Sum>
REPDL_HD T round_wide_root(const Sum& s) {
  const first_bits a = first_bits_of(s);
  return a.high == 0 ? T{} : round_root<T>(a);
}
// The same, of the narrower formats by way of RO(s): certify_root.
template <class T, class Sum>
REPDL_HD T round_root(const Sum& s) {
  if constexpr (std::is_same_v<T, double>) return round_wide_root<T>(s);
  const double nearest = s.template round<double>();
  Sum rest = s;
  rest.add(-nearest);
  return rounded<T>(root_to_odd(round_to_odd(nearest, static_cast<double>(rest.sign()))));
}

// The first bits of n / d, n >= 0, d > 0 below half of what its words hold, with an even exponent: a bit at a time.
template <class Dividend, class Divisor>
REPDL_HD first_bits first_bits_of_quotient(const Dividend& n, const Divisor& d) {
  first_bits q = {0, 0, false, 0};
  int at = 64 * Dividend::words - 1;
  while (at >= 0 && n.word(at >> 6) == 0) at -= 64;
  if (at < 0) return q;
  std::uint64_t rest[Divisor::words] = {};
  for (int bits = 0;; --at) {
    std::uint64_t in = at < 0 ? 0 : n.word(at >> 6) >> (at & 63) & 1;
    bool fits = true;  // rest >= d, of what the words so far say
    for (int i = 0; i < Divisor::words; ++i) {
      const std::uint64_t word = rest[i] << 1 | in;
      in = rest[i] >> 63;
      rest[i] = word;
      fits = word > d.word(i) || (word == d.word(i) && fits);
    }
    std::uint64_t carry = 1;  // a - b = a + ~b + 1
    for (int i = 0; fits && i < Divisor::words; ++i) rest[i] = add_carry(rest[i], ~d.word(i), &carry);
    q.high = q.high << 1 | q.low >> 63;
    q.low = q.low << 1 | static_cast<std::uint64_t>(fits);
    bits += bits != 0 || fits ? 1 : 0;
    q.exponent = Dividend::lsb - Divisor::lsb + at;
    if (bits == 128 || (bits == 127 && (q.exponent & 1) == 0)) break;
  }
  for (int i = 0; i < Divisor::words; ++i) q.cut |= rest[i] != 0;
  for (int i = 0; 64 * i < at; ++i) q.cut |= (64 * (i + 1) <= at ? n.word(i) : n.word(i) << (64 - (at & 63))) != 0;
  return q;
}

// RN_T((-1)^negative a 2^power); 0 is +0.
template <class T>
REPDL_HD T round_first_bits(const first_bits& a, bool negative = false, int power = 0) {
  if (a.high == 0) return T{};
  const int shift = leading_zeros(a.high);  // 0 or 1
  const std::uint64_t top = shift == 0 ? a.high : a.high << 1 | a.low >> 63;
  const auto below = static_cast<std::uint64_t>(a.cut || a.low << shift != 0);
  return from_bits<T>(round_leading<T>(negative, top, below, a.exponent + (127 - shift + power)));
}
// RN_T(2^power n / d) of any n, and a d > 0 as above.
template <class T, class Dividend, class Divisor>
REPDL_HD T round_quotient(Dividend n, const Divisor& d, int power = 0) {
  const bool negative = n.negative();
  if (negative) n.negate();
  return round_first_bits<T>(first_bits_of_quotient(n, d), negative, power);
}

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
  REPDL_HD void merge(const special_terms& o) {
    nan |= o.nan;
    positive |= o.positive;
    negative |= o.negative;
  }
  REPDL_HD bool any() const { return nan | positive | negative; }
  template <class T = float>
  REPDL_HD T value() const {
    using F = format<T>;
    return from_bits<T>(nan || (positive && negative)
                            ? F::nan
                            : static_cast<storage_of<T>>(F::infinity | (positive ? 0 : sign_mask<T>)));
  }
};

// A sum of any terms, numbers of From or products of two of them, exactly.
template <class From, int Factors>
struct exact_sum {
  exact_accumulator<From, Factors> finite;
  special_terms special;

  REPDL_HD void add(From x) {
    const double v = widen(x);
    if (is_finite(v)) {
      finite.add(x);
    } else {
      special.add(v);
    }
  }
  REPDL_HD void add_product(From x, From y) {
    static_assert(Factors == 2);
    const double v = widen(x) * widen(y);
    const bool has_value = sizeof(From) < 8 ? is_finite(v) : is_finite(widen(x)) && is_finite(widen(y));
    if (has_value) {
      finite.add_product(x, y);
    } else {
      special.add(v);
    }
  }
  REPDL_HD void merge(const exact_sum& o) {
    finite.merge(o.finite);
    special.merge(o.special);
  }
  template <class T = From>
  REPDL_HD T round() const {
    return special.any() ? special.template value<T>() : finite.template round<T>();
  }
  // Of the sum's root; of terms that are not negative.
  template <class T = From>
  REPDL_HD T root() const {
    return special.any() ? special.template value<T>() : round_root<T>(finite);
  }
  // Of n >= 1 terms.
  template <class T = From>
  REPDL_HD T mean(std::int64_t n) const {
    return special.any() ? special.template value<T>() : finite.template mean<T>(n);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
