// One step of AdamW (contract, section 4): the moments are linear formulas (step.hpp); the parameter is
//
//     p' = RN_T(P),   P = p A - lr (m / c1) / (sqrt(v / c2) + eps),   A = 1 - lr wd,   m, v the new moments.
//
// p and the gradient are of the format T, f16, bf16 or f32, the moments f32. Domain: as step.hpp; c1, c2 doubles in [2^-53, 1]; lr, wd of either sign; eps >= 0; every binary32 p, m, v.
//
// Tier binary64: the formula with k = RN(lr / c1), r = RN(1 / c2), a = RN(A). u = 2^-53.
//     v r            2u (r, product)           its root then u, and u for the root's own rounding: 2u
//     root + eps     3u: both are >= 0
//     k m            2u                        divided by the root: 2 + 3 + 1 = 6u
//     p a            2u                        difference: u |P|
// |error| <= 7u(|p a| + |k m / ...|) with room for second order terms, and 16u times that satisfies (C) of certify.hpp.
// Nothing over- or underflows: k <= 2^253, the denominator is 0 or in [2^-200, 2^201] (v >= 2^-149 has a root above
// 2^-75), so the quotient is 0 or in [2^-550, 2^581]. A non-finite result is that of the formula tree and final; v < 0
// gives NaN, v = -0 counts as 0 (eps + -0 is +0: a sum).
//
// Tier exact, on the CPU: adamw_formula. CUDA, whose threads have no room for its numbers, compares P with midpoints t of
// neighbouring floats in integers. With X = p A - t, Y = X c1 and Q = Y eps - lr m, and s = sqrt(v / c2), s + eps > 0,
//     sign(P - t) = sign(Y s + Q),
// and where Y and Q have opposite signs that of Y s + Q is found by comparing Y^2 v with Q^2 c2. No tie is missed, and
// nothing is approximated: it always decides. How many bits that takes:
//     X    a step_accumulator: p, -(lr wd) p and t are multiples of 2^-653; |X| < 2^530: 19 words
//     Y    |c1| <= 1 has 53 bits: 1186 + 53 = 1239 bits, 20 words
//     Q    Y eps is a multiple of 2^(-656 - 105 - 252) = 2^-1013 below 2^731, lr m one of 2^-453 below 2^329;
//          aligned at the lower of their exponents: 731 + 1013 + 1 = 1745 bits, 28 words
//     Q^2 c2: 56 words and one;   Y^2 v: 40 words and one
// Trailing zero words are dropped first; ordinary numbers take 400 to 900 bits in Q^2 c2.
// Checked by tests/step_test.cpp against exact rationals and intervals of 4000 bits.
#pragma once

#include "librepdl/num/algebraic.hpp"
#include "librepdl/ops/step.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

struct adamw_param {
  double lr, c1, c2, eps, k, r;
  dd lr_wd;  // lr wd, exactly
  double a;
};

struct adamw_stages {
  adamw_first_moment first_moment;
  adamw_second_moment second_moment;
  adamw_param param;
};

inline adamw_stages make_adamw_stages(double lr, double beta1, double beta2, double eps, double wd, double c1,
                                      double c2) {
  const dd k1 = two_sum(1.0, -beta1);
  const dd k2 = two_sum(1.0, -beta2);
  const dd lr_wd = two_prod(lr, wd);
  // 1 - hi - lo: rounded once if 1 - hi is exact, else |1 - hi| >= 1/2 (hi is outside [1/2, 2]) and the tail's rounding
  // is of second order. A = 0 gives 0.
  const dd difference = two_sum(1.0, -lr_wd.hi);
  const double a = difference.hi + (difference.lo - lr_wd.lo);
  adamw_stages s{};
  set_coefficient(s.first_moment, 0, beta1);
  set_coefficient(s.first_moment, 1, k1.hi, k1.lo);
  set_coefficient(s.second_moment, 0, beta2);
  set_coefficient(s.second_moment, 1, k2.hi, k2.lo);
  s.param = {lr, c1, c2, eps + 0.0, lr / c1, 1 / c2, lr_wd, a};
  return s;
}

REPDL_HD int sign_of(double x) { return static_cast<int>(x > 0) - static_cast<int>(x < 0); }

struct estimate {
  double value;
  double magnitude;
};
REPDL_HD estimate guess_param(const adamw_param& c, double p, double m, double v) {
  const double denominator = sqrt(v * c.r) + c.eps;
  const double move = c.k * m / denominator;
  const double kept = p * c.a;
  return {kept - move, magnitude_of(kept) + magnitude_of(move)};
}

// By tier binary64. `force` is 0, or +inf: undecided.
template <class T>
REPDL_HD outcome attempt(const adamw_param& c, double force, float p, float m, float v) {
  const estimate s = guess_param(c, static_cast<double>(p), static_cast<double>(m), static_cast<double>(v));
  return test<T>(s.value, 0x1p-49 * s.magnitude + force);
}

// Whether P follows from what is not finite or 0; else m = 0 says that the quotient is 0.
template <class T>
REPDL_HD bool is_special(const adamw_param& c, double p, double& m, double v, T* result) {
  const double zero = 0;
  const auto infinite = [](bool negative) {
    return from_bits<T>(static_cast<storage_of<T>>(format<T>::infinity | (negative ? sign_mask<T> : 0)));
  };
  *result = from_bits<T>(format<T>::nan);
  if (!(v >= 0) || p != p || m != m) return true;
  const bool v_infinite = v == infinity;
  const bool by_zero = v == zero && c.eps == zero;
  // The quotient lr (m / c1) / denominator: NaN, an infinity of sign `direction`, or finite.
  const int numerator = sign_of(c.lr) * sign_of(m);
  const bool m_infinite = !is_finite(m);
  if (m_infinite && (c.lr == zero || v_infinite)) return true;
  if (by_zero && numerator == 0) return true;
  const int direction = m_infinite || by_zero ? numerator : 0;
  if (!is_finite(p)) {
    const int kept = sign_of(p) * sign_of(c.a);
    if (kept != 0 && kept != direction) *result = infinite(kept < 0);
    return true;
  }
  if (direction != 0) {
    *result = infinite(direction > 0);
    return true;
  }
  if (v_infinite || numerator == 0) m = 0;  // the quotient is 0: P = p A
  return false;
}

// Tier exact on the CPU: P as a formula (algebraic.hpp). A ball of 4096 bits always decides. With U, V and powers as there, in bits:
//     A                  U 509, power >= -506;  p A less a midpoint t, e: U 786, power >= -655 (x = lr wd of 106 bits, 2^-400 to 2^400)
//     sqrt(v / c2)       U 25, V 39, power -75 to 117;  + eps: U 396, V 39, power >= -252;  times c1: U 449, power >= -358
//     lr m               U 77, power >= -401;  the quotient: U 116, V 449, power -518 to 610
//     e - quotient       U < 786 + 449 + 518 + 104, or 116 + 610 + 655, V 449, power >= -655
// |P| < 2^581: it is off by 2^(581 - 4080), and 2^(-655 - 1860 - 449) is the least that it can be.
struct adamw_formula {
  const adamw_param& c;
  double p, m, v;
  template <int L>
  REPDL_HD_CALL surd<L> eval() const {
    const auto of = [](double x) { return dyadic<L>(x); };
    const algebraic<L> kept = of(p) * (of(1) - of(c.lr_wd.hi) - of(c.lr_wd.lo));
    if (m == 0) return {kept, 1};
    return {kept - of(c.lr) * of(m) / (of(c.c1) * (square_root(of(v) / of(c.c2)) + of(c.eps))), 2};
  }
};

// By tier exact.
template <class T>
T decide(const adamw_param& c, float p, float m, float v) {
  adamw_formula f{c, static_cast<double>(p), static_cast<double>(m), static_cast<double>(v)};
  T special{};
  if (is_special(c, f.p, f.m, f.v, &special)) return special;
  const decided_value<T> r = decide_surd<T>(f, 2048);
  return r.decided ? r.value : round_surd<T, 64>(f.eval<64>()).value;
}

// Where the exact tier of a GPU keeps its numbers: shared memory.
struct adamw_scratch {
  natural<20> y;   // |X|, then |Y|
  natural<29> q;   // |Y eps|, then |Q|
  natural<29> lm;  // |lr m|
  natural<58> left;
  natural<58> right;
};

// The value of the number of T with that place in the order of all of them: 0 is +0 and -0, k > 0 the pattern k, -k its
// negative. Infinity's pattern stands for 2^(emax + 1), as it does in rounding.
template <class T>
class adamw_decision {
  using F = format<T>;
  static constexpr std::int32_t greatest_place = F::infinity;

 public:
  REPDL_HD adamw_decision(const adamw_param& c, float p, float m, float v, adamw_scratch& scratch)
      : c_(c), p_(static_cast<double>(p)), m_(static_cast<double>(m)), v_(static_cast<double>(v)), scratch_(scratch) {}

  // RN(P), non-finite operands included.
  REPDL_HD T value() {
    T result{};
    return is_special(c_, p_, m_, v_, &result) ? result : search();
  }

 private:
  // The sign of P - t, t = +-significand 2^exponent. m = 0 says that the quotient is 0.
  REPDL_HD int compare_with(std::uint64_t significand, int exponent, bool negative) {
    natural<20>& y = scratch_.y;
    int y_sign = 0;
    int y_exponent = step_accumulator::lsb;
    {
      step_accumulator x;
      add_product(x, 1.0, p_);
      add_product(x, -c_.lr_wd.hi, p_);
      add_product(x, -c_.lr_wd.lo, p_);
      x.add_scaled(significand, exponent, !negative);
      y_sign = x.sign();
      if (x.negative()) x.negate();
      y.size = 0;
      for (int i = 0; i < step_accumulator::words; ++i) {
        const std::uint64_t word = x.word(i);
        if (y.size != 0 || word != 0) {
          y.word[y.size++] = word;
        } else {
          y_exponent += 64;
        }
      }
      trim(y);
    }
    if (m_ == 0) return y_sign;
    const auto c1 = decompose(c_.c1);
    multiply(y, c1.significand);
    y_exponent += c1.exponent;
    // Q = Y eps - lr m
    natural<29>& q = scratch_.q;
    natural<29>& lm = scratch_.lm;
    const auto eps = decompose(c_.eps);
    const auto lr = decompose(c_.lr);
    const auto m = decompose(m_);
    assign(q, y);
    multiply(q, eps.significand);
    assign(lm, lr.significand);
    multiply(lm, m.significand);
    int q_exponent = y_exponent + eps.exponent;
    const int lm_exponent = lr.exponent + m.exponent;
    int q_sign = 0;
    const int eps_part = q.size == 0 ? 0 : y_sign;
    const int lm_part = lm.size == 0 ? 0 : lr.negative != m.negative ? 1 : -1;  // of -lr m
    if (eps_part == 0) {
      assign(q, lm);
      q_exponent = lm_exponent;
      q_sign = lm_part;
    } else if (lm_part == 0) {
      q_sign = eps_part;
    } else {
      if (q_exponent > lm_exponent) {
        shift_left(q, q_exponent - lm_exponent);
        q_exponent = lm_exponent;
      } else {
        shift_left(lm, lm_exponent - q_exponent);
      }
      if (eps_part == lm_part) {
        add(q, lm);
        q_sign = eps_part;
      } else {
        q_sign = subtract(q, lm) * eps_part;
      }
    }
    int sign = 0;  // of Y s + Q
    if (y_sign == 0 || v_ == 0 || y_sign == q_sign) {
      sign = q_sign;
    } else if (q_sign == 0) {
      sign = y_sign;
    } else {
      const auto v = decompose(v_);
      const auto c2 = decompose(c_.c2);
      multiply(y, y, scratch_.left);
      multiply(scratch_.left, v.significand);
      multiply(q, q, scratch_.right);
      multiply(scratch_.right, c2.significand);
      sign = y_sign * compare(scratch_.left, 2 * y_exponent + v.exponent, scratch_.right, 2 * q_exponent + c2.exponent);
    }
    return sign;
  }

  // The sign of P - (the midpoint between places k and k + 1): (2 significand + 1) 2^(exponent - 1) of the one nearer
  // to 0.
  REPDL_HD int compare_above(std::int32_t k) {
    const std::uint32_t b = static_cast<std::uint32_t>(k >= 0 ? k : -k - 1);
    constexpr std::uint32_t hidden = 1u << (F::precision - 1);
    const std::uint32_t e = b >> (F::precision - 1);
    const std::uint64_t significand = (b & (hidden - 1)) | (e != 0 ? hidden : 0u);
    return compare_with(2 * significand + 1, static_cast<int>(e != 0 ? e : 1) + F::emin - F::precision - 1, k < 0);
  }

  // The place of RN(P) is the least k with P < midpoint(k), or the even one of k, k + 1 where P is that midpoint. From
  // the binary64 guess, in steps that double, then by bisection: two comparisons where the guess is right.
  REPDL_HD T search() {
    const double guess = m_ == 0 ? p_ * c_.a : guess_param(c_, p_, m_, v_).value;
    const T nearest = rounded<T>(guess);
    const storage_of<T> b = is_nan(nearest) ? storage_of<T>{} : to_bits(nearest);
    const auto size = static_cast<std::int32_t>(b & static_cast<storage_of<T>>(~sign_mask<T>));
    std::int64_t low = (b & sign_mask<T>) != 0 ? -size : size;  // then: P > midpoint(low - 1)
    std::int64_t high = low;                                    // then: P < midpoint(high)
    std::int64_t step = 1;
    for (;;) {
      const int side = high >= greatest_place ? -1 : compare_above(static_cast<std::int32_t>(high));
      if (side == 0) return tie(static_cast<std::int32_t>(high));
      if (side < 0) break;
      low = high + 1;
      high = high + step < greatest_place ? high + step : greatest_place;
      step *= 2;
    }
    if (low == high && step == 1) {  // nothing is known below
      for (;;) {
        const int side = low <= -greatest_place ? 1 : compare_above(static_cast<std::int32_t>(low - 1));
        if (side == 0) return tie(static_cast<std::int32_t>(low - 1));
        if (side > 0) break;
        high = low - 1;
        low = low - step > -greatest_place ? low - step : -greatest_place;
        step *= 2;
      }
    }
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      const int side = compare_above(static_cast<std::int32_t>(middle));
      if (side == 0) return tie(static_cast<std::int32_t>(middle));
      if (side < 0) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return at_place(static_cast<std::int32_t>(low));
  }
  REPDL_HD T tie(std::int32_t k) { return at_place((k & 1) == 0 ? k : k + 1); }
  // A zero keeps the sign of P; P = 0 is +0.
  REPDL_HD T at_place(std::int32_t k) {
    const bool negative = k < 0 || (k == 0 && compare_with(0, -149, false) < 0);
    const auto magnitude = static_cast<storage_of<T>>(k < 0 ? -k : k);
    return from_bits<T>(static_cast<storage_of<T>>(magnitude | (negative ? sign_mask<T> : 0)));
  }

  const adamw_param& c_;
  double p_, m_, v_;
  adamw_scratch& scratch_;
};

template <class T>
REPDL_HD T decide(const adamw_param& c, float p, float m, float v, adamw_scratch& scratch) {
  return adamw_decision<T>(c, p, m, v, scratch).value();
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
