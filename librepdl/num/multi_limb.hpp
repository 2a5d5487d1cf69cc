// Multi-limb floating-point numbers: 64 Limbs significant bits, exponents that never run out, host and device.
//
// Method: schoolbook integer arithmetic on 64-bit limbs (D. E. Knuth, TAOCP vol. 2, 4.3.1, algorithms A, S, M, D),
// every result truncated to Limbs limbs. A number is (-1)^negative · W / 2^(64 Limbs) · 2^exponent with W an integer of
// exactly 64 Limbs bits, or 0. One ulp of it is 2^(exponent - 64 Limbs), at most 2^(1 - 64 Limbs) of its value.
//
// Error of add, multiply, divide: |result - exact| <= (1 + 2^-60) ulp(result), and *inexact is left alone when the
// result is exact (it is set otherwise, and only ever set). Every other function here is exact, or says what it bounds.
// Exponents: inputs are floats, doubles and integers of limited exponent, and no formula multiplies more than a few
// numbers, so that 64 bits are never filled (exponents of e^x stay below 2^15).
//
// No allocation, no recursion, no tables; loops have constant trip counts. Checked by tests/numerics/multi_limb_test.cpp against
// MPFR, at 128, 256, 512, 1024 and 2048 bits.
#pragma once

#include "librepdl/num/fixed_point.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// --------------------------------------------------------------------------------------- fractions: fixed point in [0,
// 1)

// sum limb[i] 2^(64 (i - N)); a unit is 2^(-64 N).
template <int N>
struct fraction {
  std::uint64_t limb[N];
};

template <int N>
REPDL_HD fraction<N> zero_fraction() {
  fraction<N> a;
  REPDL_LIMB_LOOP(N)
  for (int i = 0; i < N; ++i) a.limb[i] = 0;
  return a;
}

// a += b mod 1; the carry out.
template <int N>
REPDL_HD std::uint64_t add_to(fraction<N>& a, const fraction<N>& b) {
  std::uint64_t carry = 0;
  REPDL_LIMB_LOOP(N)
  for (int i = 0; i < N; ++i) a.limb[i] = add_carry(a.limb[i], b.limb[i], &carry);
  return carry;
}
// a = b - a mod 1; 1 if b >= a.
template <int N>
REPDL_HD std::uint64_t subtract_from(const fraction<N>& b, fraction<N>& a) {
  std::uint64_t carry = 1;
  REPDL_LIMB_LOOP(N)
  for (int i = 0; i < N; ++i) a.limb[i] = add_carry(b.limb[i], ~a.limb[i], &carry);
  return carry;
}
// The sign of a - b.
template <int N>
REPDL_HD int compare(const fraction<N>& a, const fraction<N>& b) {
  for (int i = N - 1; i >= 0; --i) {
    if (a.limb[i] != b.limb[i]) return a.limb[i] < b.limb[i] ? -1 : 1;
  }
  return 0;
}

// w[2N] = a · b.
template <int N>
REPDL_HD_CALL void multiply_limbs(const std::uint64_t* a, const std::uint64_t* b, std::uint64_t* w) {
  REPDL_LIMB_LOOP(N)
  for (int i = 0; i < N; ++i) w[i] = 0;
  REPDL_LIMB_LOOP(N)
  for (int i = 0; i < N; ++i) {
    std::uint64_t carry = 0;
    REPDL_LIMB_LOOP(N)
    for (int j = 0; j < N; ++j) w[i + j] = multiply_add(a[i], b[j], w[i + j], &carry);
    w[i + N] = carry;
  }
}

// a = a · b rounded down: less than one unit below.
template <int N>
REPDL_HD_CALL void multiply_by(fraction<N>& a, const fraction<N>& b) {
  std::uint64_t w[2 * N];
  multiply_limbs<N>(a.limb, b.limb, w);
  REPDL_LIMB_LOOP(N)
  for (int i = 0; i < N; ++i) a.limb[i] = w[N + i];
}

// a = (head + a) / k rounded down, head < k < 2^32: less than one unit below.
template <int N>
REPDL_HD_CALL void divide_by(fraction<N>& a, std::uint32_t k, std::uint64_t head = 0) {
  std::uint64_t rest = head;
  REPDL_LIMB_LOOP(N)
  for (int i = N - 1; i >= 0; --i) {
    const std::uint64_t high = rest << 32 | a.limb[i] >> 32;
    const std::uint64_t first = high / k;
    const std::uint64_t low = (high - first * k) << 32 | (a.limb[i] & 0xffffffffu);
    const std::uint64_t second = low / k;
    rest = low - second * k;
    a.limb[i] = first << 32 | second;
  }
}

// a / 2^by rounded down, by >= 0.
template <int N>
REPDL_HD_CALL fraction<N> shift_right(const fraction<N>& a, std::int64_t by) {
  fraction<N> r;
  const std::int64_t limbs = by >> 6;
  const int bits = static_cast<int>(by & 63);
  REPDL_LIMB_LOOP(N)
  for (int i = 0; i < N; ++i) {
    const std::int64_t from = i + limbs;
    const std::uint64_t low = from < N ? a.limb[from] : 0;
    const std::uint64_t high = from + 1 < N ? a.limb[from + 1] : 0;
    r.limb[i] = bits == 0 ? low : low >> bits | high << (64 - bits);
  }
  return r;
}

// ---------------------------------------------------------------------------------------------------- floating point

template <int Limbs>
struct multi_limb {
  std::uint64_t limb[Limbs];  // the highest bit is set, or all are 0
  std::int64_t exponent;      // 0 for zero
  std::uint64_t negative;     // 1: negative; 0 for zero

  REPDL_HD bool is_zero() const { return limb[Limbs - 1] == 0; }
};

template <int L>
REPDL_HD multi_limb<L> zero_limbs() {
  multi_limb<L> a;
  REPDL_LIMB_LOOP(L)
  for (int i = 0; i < L; ++i) a.limb[i] = 0;
  a.exponent = 0;
  a.negative = 0;
  return a;
}

// (-1)^negative · sum w[i] 2^(64 i) · 2^(exponent - 64 M), truncated.
template <int L, int M>
REPDL_HD_CALL multi_limb<L> normalise(const std::uint64_t* w, std::int64_t exponent, std::uint64_t negative,
                                      bool* inexact) {
  int top = -1;
  REPDL_LIMB_LOOP(M)
  for (int i = 0; i < M; ++i) top = w[i] != 0 ? i : top;
  if (top < 0) return zero_limbs<L>();
  const int shift = leading_zeros(w[top]);
  multi_limb<L> r;
  REPDL_LIMB_LOOP(L)
  for (int i = 0; i < L; ++i) {
    const int at = top - i;
    const std::uint64_t high = at >= 0 ? w[at] : 0;
    const std::uint64_t low = at >= 1 ? w[at - 1] : 0;
    r.limb[L - 1 - i] = shift == 0 ? high : high << shift | low >> (64 - shift);
  }
  std::uint64_t lost = 0;
  REPDL_LIMB_LOOP(M)
  for (int i = 0; i < M - L; ++i) lost |= i < top - L ? w[i] : i == top - L ? w[i] << shift : 0;
  if (lost != 0) *inexact = true;
  r.exponent = exponent - 64 * (M - 1 - top) - shift;
  r.negative = negative;
  return r;
}

template <int L>
REPDL_HD_ONCE multi_limb<L> limbs_of(std::uint64_t a, std::int64_t scale = 0, bool negative = false) {  // a 2^scale
  bool inexact = false;
  return normalise<L, 1>(&a, 64 + scale, negative ? 1 : 0, &inexact);
}
template <int L>
REPDL_HD multi_limb<L> limbs_of_power(std::int64_t power, bool negative = false) {  // 2^power
  return limbs_of<L>(1, power, negative);
}
template <int L>
REPDL_HD multi_limb<L> limbs_of_value(double x) {  // finite x, exactly
  const std::uint64_t b = bits_of(x);
  const int e = static_cast<int>(b >> 52) & 0x7ff;
  return limbs_of<L>((b & 0xfffffffffffffull) | (e != 0 ? 0x10000000000000ull : 0), (e != 0 ? e : 1) - 1075,
                     (b >> 63) != 0);
}
// An exact accumulator, exactly when its words fit: L >= words.
template <int L, int lsb, int words>
REPDL_HD_CALL multi_limb<L> limbs_of_sum(const fixed_point<lsb, words>& a) {
  static_assert(L >= words);
  fixed_point<lsb, words> m = a;
  if (a.negative()) m.negate();
  std::uint64_t w[words];
  REPDL_LIMB_LOOP(words)
  for (int i = 0; i < words; ++i) w[i] = m.word(i);
  bool inexact = false;
  return normalise<L, words>(w, 64 * words + lsb, a.negative() ? 1 : 0, &inexact);
}
// More limbs: exact.
template <int L, int M>
REPDL_HD multi_limb<L> widen_limbs(const multi_limb<M>& a) {
  static_assert(L >= M);
  multi_limb<L> r;
  REPDL_LIMB_LOOP(L)
  for (int i = 0; i < L; ++i) r.limb[i] = i >= L - M ? a.limb[i >= L - M ? i - (L - M) : 0] : 0;
  r.exponent = a.exponent;
  r.negative = a.negative;
  return r;
}

template <int L>
REPDL_HD multi_limb<L> negated(multi_limb<L> a) {
  a.negative = a.is_zero() ? 0 : a.negative ^ 1;
  return a;
}
template <int L>
REPDL_HD multi_limb<L> scaled(multi_limb<L> a, std::int64_t power) {  // a 2^power
  a.exponent += a.is_zero() ? 0 : power;
  return a;
}

// The sign of |a| - |b|.
template <int L>
REPDL_HD int compare_magnitudes(const multi_limb<L>& a, const multi_limb<L>& b) {
  if (a.is_zero() || b.is_zero()) return static_cast<int>(!a.is_zero()) - static_cast<int>(!b.is_zero());
  if (a.exponent != b.exponent) return a.exponent < b.exponent ? -1 : 1;
  REPDL_LIMB_LOOP(L)
  for (int i = L - 1; i >= 0; --i) {
    if (a.limb[i] != b.limb[i]) return a.limb[i] < b.limb[i] ? -1 : 1;
  }
  return 0;
}

// a + b. With x the operand of the larger exponent, y the other one, d >= 0 the difference: y is shifted right by d
// into Limbs limbs and a guard limb below. d <= 64: nothing is lost and the exact sum is truncated. d > 64: less than a
// unit of the guard limb is lost, 2^-64 ulp(x), and the result is above |x|/2, whose ulp is ulp(x)/2 at least.
template <int L>
REPDL_HD_ONCE multi_limb<L> add(const multi_limb<L>& a, const multi_limb<L>& b, bool* inexact) {
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  const bool ordered = a.exponent >= b.exponent;
  const multi_limb<L>& x = ordered ? a : b;
  const multi_limb<L>& y = ordered ? b : a;
  const std::int64_t d = x.exponent - y.exponent;
  const std::int64_t limbs = d >> 6;
  const int bits = static_cast<int>(d & 63);
  std::uint64_t s[L + 2];  // guard, limbs, carry
  std::uint64_t lost = 0;
  REPDL_LIMB_LOOP(L + 1)
  for (int i = 0; i < L + 1; ++i) {
    const std::int64_t from = i - 1 + limbs;
    const std::uint64_t low = from >= 0 && from < L ? y.limb[from] : 0;
    const std::uint64_t high = from + 1 < L ? y.limb[from + 1] : 0;
    s[i] = bits == 0 ? low : low >> bits | high << (64 - bits);
  }
  REPDL_LIMB_LOOP(L)
  for (int i = 0; i < L; ++i) {
    const std::int64_t to = i + 1 - limbs;  // where bit 0 of this limb would land, in limbs, before the bit shift
    lost |= to < 0 ? y.limb[i] : to == 0 && bits != 0 ? y.limb[i] << (64 - bits) : 0;
  }
  s[L + 1] = 0;
  std::uint64_t negative = x.negative;
  if (x.negative == y.negative) {
    std::uint64_t carry = 0;
    REPDL_LIMB_LOOP(L)
    for (int i = 0; i < L; ++i) s[i + 1] = add_carry(s[i + 1], x.limb[i], &carry);
    s[L + 1] = carry;
  } else {
    std::uint64_t carry = 1;
    s[0] = add_carry(0, ~s[0], &carry);
    REPDL_LIMB_LOOP(L)
    for (int i = 0; i < L; ++i) s[i + 1] = add_carry(x.limb[i], ~s[i + 1], &carry);
    if (carry == 0) {  // |x| < |y|, which needs d = 0
      negative ^= 1;
      carry = 1;
      REPDL_LIMB_LOOP(L + 1)
      for (int i = 0; i < L + 1; ++i) s[i] = add_carry(~s[i], 0, &carry);
    }
  }
  if (lost != 0) *inexact = true;
  return normalise<L, L + 2>(s, x.exponent + 64, negative, inexact);
}

template <int L>
REPDL_HD_ONCE multi_limb<L> multiply(const multi_limb<L>& a, const multi_limb<L>& b, bool* inexact) {
  std::uint64_t w[2 * L];
  multiply_limbs<L>(a.limb, b.limb, w);
  return normalise<L, 2 * L>(w, a.exponent + b.exponent, a.negative ^ b.negative, inexact);
}

// a k, k < 2^64.
template <int L>
REPDL_HD_ONCE multi_limb<L> multiply(const multi_limb<L>& a, std::uint64_t k, bool* inexact) {
  std::uint64_t w[L + 1];
  std::uint64_t carry = 0;
  REPDL_LIMB_LOOP(L)
  for (int i = 0; i < L; ++i) w[i] = multiply_add(a.limb[i], k, 0, &carry);
  w[L] = carry;
  return normalise<L, L + 1>(w, a.exponent + 64, a.negative, inexact);
}

// a / b, b != 0: algorithm D on 32-bit digits, floor(A 2^(64 L) / B) and whether a remainder is left. B has its top bit
// set, so no normalisation. The quotient has 64 L or 64 L + 1 bits.
template <int L>
REPDL_HD_ONCE multi_limb<L> divide(const multi_limb<L>& a, const multi_limb<L>& b, bool* inexact) {
  if (a.is_zero()) return a;
  constexpr int n = 2 * L;  // digits of the divisor
  std::uint32_t u[2 * n + 1];
  std::uint32_t v[n];
  std::uint32_t q[n + 2];
  REPDL_LIMB_LOOP(n)
  for (int i = 0; i < n; ++i) u[i] = 0;
  REPDL_LIMB_LOOP(L)
  for (int i = 0; i < L; ++i) {
    u[n + 2 * i] = static_cast<std::uint32_t>(a.limb[i]);
    u[n + 2 * i + 1] = static_cast<std::uint32_t>(a.limb[i] >> 32);
    v[2 * i] = static_cast<std::uint32_t>(b.limb[i]);
    v[2 * i + 1] = static_cast<std::uint32_t>(b.limb[i] >> 32);
  }
  u[2 * n] = 0;
  q[n + 1] = 0;
  const std::uint64_t lead = v[n - 1];
  REPDL_LIMB_LOOP(7)
  for (int j = n; j >= 0; --j) {
    const std::uint64_t two = static_cast<std::uint64_t>(u[j + n]) << 32 | u[j + n - 1];
    std::uint64_t guess = two / lead;
    std::uint64_t rest = two - guess * lead;
    while (guess >> 32 != 0 || guess * v[n - 2] > (rest << 32 | u[j + n - 2])) {
      --guess;
      rest += lead;
      if (rest >> 32 != 0) break;
    }
    std::uint64_t borrow = 0;
    REPDL_LIMB_LOOP(n)
    for (int i = 0; i < n; ++i) {
      const std::uint64_t p = guess * v[i] + borrow;
      const std::uint64_t low = p & 0xffffffffu;
      borrow = (p >> 32) + static_cast<std::uint64_t>(u[i + j] < low);
      u[i + j] = static_cast<std::uint32_t>(u[i + j] - low);
    }
    const bool negative = u[j + n] < borrow;
    u[j + n] = static_cast<std::uint32_t>(u[j + n] - borrow);
    if (negative) {
      --guess;
      std::uint64_t carry = 0;
      REPDL_LIMB_LOOP(n)
      for (int i = 0; i < n; ++i) {
        carry += static_cast<std::uint64_t>(u[i + j]) + v[i];
        u[i + j] = static_cast<std::uint32_t>(carry);
        carry >>= 32;
      }
      u[j + n] = static_cast<std::uint32_t>(u[j + n] + carry);
    }
    q[j] = static_cast<std::uint32_t>(guess);
  }
  std::uint32_t remainder = 0;
  REPDL_LIMB_LOOP(n)
  for (int i = 0; i < n; ++i) remainder |= u[i];
  if (remainder != 0) *inexact = true;
  std::uint64_t w[L + 1];
  REPDL_LIMB_LOOP(L + 1)
  for (int i = 0; i < L + 1; ++i) w[i] = static_cast<std::uint64_t>(q[2 * i + 1]) << 32 | q[2 * i];
  return normalise<L, L + 1>(w, a.exponent - b.exponent + 64, a.negative ^ b.negative, inexact);
}

// About a: the 53 leading bits, truncated; exponent in [-1000, 1000].
template <int L>
REPDL_HD double double_near(const multi_limb<L>& a) {
  const double m = static_cast<double>(a.limb[L - 1] >> 11);
  const double v = a.is_zero() ? 0.0 : m * power_of_two(static_cast<int>(a.exponent) - 53);
  return a.negative != 0 ? -v : v;
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
