// The last tier of `exponential` and of the keys of `multinomial`: RN(-ln u / rate), decided in multi-limb balls.
//
// Why it decides. A key of u = 1 is 0. Otherwise ln u is transcendental, the logarithm of a rational number other than 1
// (Lindemann), and so is its quotient by the rational number rate: it is no midpoint, and more bits decide. Next to 1
// the value is k (1 + k 2^(-bits - 1) + ...) / (2^bits rate), u = 1 - k 2^-bits, k = 1/2 or an integer, at least 2^-66 of
// itself away from the rational number that it approaches. Elsewhere 256 bits are enough unless a word is closer to a
// boundary than any of 2^64 can be expected to be.
#pragma once

#include "librepdl/ops/random/exponential.hpp"
#include "librepdl/ops/random/normal_exact.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// -ln u, u = (a1 + 1) 2^-bits, or 1 - 2^-(bits + 1) where that is 1.
template <int L>
REPDL_HD ball<L> minus_log_of_draw(std::uint64_t a1, int bits) {
  if (a1 != ~std::uint64_t{0} >> (64 - bits)) return minus_log_of<L>(a1, bits);
  ball<L> r = exact_ball(limbs_of<L>(1, -bits - 1, true));
  to_logarithm_1p_small(r);
  return negated(r);
}

template <int L>
REPDL_HD_CALL ball<L> exponential_at(std::uint64_t a1, int bits, double rate) {
  ball<L> r = minus_log_of_draw<L>(a1, bits);
  divide_by(r, exact_ball(limbs_of_value<L>(rate)));
  return r;
}

// a1 < 2^bits, bits = 32 or 64. budget_bits as in normal_exact.
template <class T>
REPDL_HD decided_value<T> exponential_by_balls(std::uint64_t a1, int bits, double rate, int budget_bits) {
  decided_value<T> r{T{}, false};
  if (budget_bits >= 256) r = round_ball<T>(exponential_at<4>(a1, bits, rate));
  if (!r.decided && budget_bits >= 512) r = round_ball<T>(exponential_at<8>(a1, bits, rate));
  if (!r.decided && budget_bits >= 1024) r = round_ball<T>(exponential_at<16>(a1, bits, rate));
  if (!r.decided && budget_bits >= 2048) r = round_ball<T>(exponential_at<32>(a1, bits, rate));
  return r;
}
// A draw: never 0.
template <class T>
REPDL_HD decided_value<T> exponential_exact(std::uint64_t a1, int bits, double rate, int budget_bits) {
  const decided_value<T> r = exponential_by_balls<T>(a1, bits, rate, budget_bits);
  return {at_least_positive(r.value), r.decided};
}

// The key of a weight; u = (a1 + 1) 2^-64.
REPDL_HD decided_value<double> exponential_key(std::uint64_t a1, double weight, int budget_bits) {
  if (a1 == ~std::uint64_t{0}) return {0.0, true};
  return exponential_by_balls<double>(a1, 64, weight, budget_bits);
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
