// The last tier of `normal`: RN_T(mean + stddev · sqrt(-2 ln u1) · cos|sin(2 pi u2)), decided in multi-limb balls.
//
// Why it decides. Exact cases: stddev = 0, u1 = 1, or the cosine or sine 0: the value is mean. Otherwise z = sqrt(-2 ln
// u1) · c is transcendental: were z algebraic, so would -2 ln u1 = (z / c)^2 be (c = cos or sin of a rational multiple
// of pi is algebraic), but the logarithm of a rational number other than 1 is transcendental (Lindemann). stddev z !=
// 0, so the value is no midpoint, and more bits decide, unless r = stddev z is too small to be seen beside a mean that
// is itself a midpoint or representable. That part is separated: for |r| < 2^(E - 60), E the exponent of mean, mean and
// every boundary of T between mean / 2 and 2 mean is a multiple of 2^(E - 54) (at most 53 bits and a half), or of
// something coarser among subnormal numbers, so none lies strictly between mean and mean + r, and r is replaced by
// +-2^(E - 60). |z| >= sqrt(-2 ln(1 - 2^-64)) sin(2 pi 2^-64) > 2^-94; everything else is in multi_limb exponents: no
// range limits. Any 256 bits are enough unless an input is closer to a boundary than any of 2^128 pairs can be expected
// to be.
#pragma once

#include "librepdl/num/multi_limb_functions.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// -ln u1, u1 = (a1 + 1) 2^-bits < 1; a1 is left of 2^bits - 1.
template <int L>
REPDL_HD ball<L> minus_log_of(std::uint64_t a1, int bits) {
  const std::uint64_t ones = ~std::uint64_t{0} >> (64 - bits);
  ball<L> r = exact_ball(limbs_of<L>(ones - a1, -bits, true));  // u1 - 1
  if (r.middle.exponent <= -33) {
    to_logarithm_1p_small(r);
  } else {
    r = logarithm(limbs_of<L>(a1 + 1, -bits));
  }
  r.middle.negative ^= 1;
  return r;
}

// sqrt(-2 ln u1).
template <int L>
REPDL_HD_CALL ball<L> normal_radius(std::uint64_t a1, int bits) {
  return square_root(scaled(minus_log_of<L>(a1, bits), 1));
}

// stddev z; not for the exact cases.
template <int L>
REPDL_HD_CALL ball<L> normal_deviation(std::uint64_t a1, std::uint64_t turn, int bits, bool sine, double stddev) {
  ball<L> z = normal_radius<L>(a1, bits);
  const circular_value<L> c = circular<L>(turn, sine);
  multiply_by(z, c.value);
  multiply_by_value(z, stddev);
  return z;
}

// The value, or one on the same side of every boundary; not for the exact cases. Independent of T, so that the formats
// share it. mean has 53 bits, and r at least 60 places below counts: 512 bits show both.
template <int L>
REPDL_HD_CALL ball<(L < 8 ? 8 : L)> normal_at(std::uint64_t a1, std::uint64_t turn, int bits, bool sine, double mean,
                                              double stddev) {
  constexpr int W = L < 8 ? 8 : L;
  ball<W> r = widen_ball<W>(normal_deviation<L>(a1, turn, bits, sine, stddev));
  const std::int64_t tiny = limbs_of_value<1>(mean).exponent - 1 - 60;
  if (mean != 0 && upper(r).below_power(tiny)) r = exact_ball(limbs_of_power<W>(tiny, r.middle.negative != 0));
  add_value(r, mean);
  return r;
}

// T = f16, bf16, float, double. bits = 32 or 64: u1 = (a1 + 1) 2^-bits, u2 = a2 2^-bits, a1, a2 < 2^bits. mean and
// stddev finite. budget_bits: 256, 512, 1024, 2048; less than 256 leaves everything but the exact cases undecided.
template <class T>
REPDL_HD decided_value<T> normal_exact(std::uint64_t a1, std::uint64_t a2, int bits, bool sine, double mean,
                                       double stddev, int budget_bits) {
  const std::uint64_t ones = ~std::uint64_t{0} >> (64 - bits);
  const std::uint64_t turn = a2 << (64 - bits);
  const bool zero = (turn << 1) == 0 ? sine : (turn << 2) == 0 && !sine;  // cos or sin of a multiple of a quarter turn
  if (a1 == ones || stddev == 0 || zero) return round_ball<T>(exact_ball(limbs_of_value<1>(mean)));
  decided_value<T> r{T{}, false};
  if (budget_bits >= 256) r = round_ball<T>(normal_at<4>(a1, turn, bits, sine, mean, stddev));
  if (!r.decided && budget_bits >= 512) r = round_ball<T>(normal_at<8>(a1, turn, bits, sine, mean, stddev));
  if (!r.decided && budget_bits >= 1024) r = round_ball<T>(normal_at<16>(a1, turn, bits, sine, mean, stddev));
  if (!r.decided && budget_bits >= 2048) r = round_ball<T>(normal_at<32>(a1, turn, bits, sine, mean, stddev));
  return r;
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
