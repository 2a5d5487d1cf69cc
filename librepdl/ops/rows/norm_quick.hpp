// Norms of binary64 and their gradients: quick rules (quick_rule.hpp) of the formulas in norm.hpp and norm_backward.hpp.
//
// u = 2^-53. Of a row: n; sums of pairs hi + lo, |lo| <= 3.1 u |hi|, compensated ones whose low parts take the los too (num/sums.hpp).
// A row's height h is at most the additions that a term passes. With t the errors of adding up the his, M the sum of |hi|,
//     sum |t| <= h (1 + h u) u M,  sum |lo| <= 3.1 u M,  all added up in 2 h additions: off by 2 h (h + 3.1) u^2 M (1 + 2 h u).
// What the terms err by themselves, 8.2 u^2 |hi| at most (below), is added to that:
//     eta = 3 (h + 2)^2 u^2,   |S - s| <= 2/3 eta M (1 + 2 h u) + 8.2 u^2 M <= eta M (1 - 2^-6),  as 1 <= h <= 2^25.                     (S)
// The 2^-6 is room for an M that is itself computed, and for what errors of errors are.
//
// Errors of double-doubles: `mul` 8 u^2 of the product, `add_within` 6 u^2 (|x| + |y|), `divided` 16 u^2 of the quotient, `inverse_root` 32 u^2
// of itself; of x and y whose lo is larger than normalised ones' are, after cancellation, `mul` errs by u times that more, which is below u^3
// (|x| + |y|) of before, and nothing beside the u^2 (|x| + |y|) that the bound of it has left.
//
// Forward. d = x - c exactly, two_sum; D, Q the sums of d and d^2, m' = D / n, W = Q - D m' + n eps, X = W / n, r = 1 / sqrt(X):
//     d^2         h^2 + 2 h l, l^2 <= u^2 h^2 left out: hi is fl(h^2), and lo errs by 2 u^2 + 3.1 u^2 of hi in its two additions. 6.2 u^2
//     D, Q        eta M, M the sum of |d|, which is added up, too; eta Q                                                              (S)
//     D m'        D^2 <= M^2 <= n Q: 2 |D| eta M / n and less for D, 2 eta Q; m' 16 u^2 and the product 8 u^2 of Q
//     Q - D m'    of eta Q + 2 eta Q + 24 u^2 Q; and 12 u^2 Q:  (3 eta + 37 u^2) Q with second order terms
//     W           6 u^2 W more, as neither term is negative
//     X           16 u^2 of itself more. With k = Q / (n X):  tau = (3 eta + 37 u^2) k + 23 u^2 of itself, and k is computed with X
//     r           |(1 + t)^(-1/2) - 1| <= 0.5516 |t| for |t| <= tau <= 2^-5: 0.5625 tau + 32 u^2 of itself
//     z = d - m'  |d| + |m'| <= |z| + 2 |m'|: 6 u^2 |z| + 12 u^2 |m'|, and m' 16 u^2 of itself and eta M / n
//     y = z r w   |z r w| (6 u^2 + 8 u^2 + 8 u^2 + what r has) + |w| r (eta M / n + 28 u^2 |m'|)
//     y + b       2 u^2 of itself, and 2 u^2 more for the ends of the rounding test: u |lo|, |lo| <= 2 u |hi|
// Constants in the code are larger by a tenth at least: room for k, r and the errors, which are computed, and for second order terms.
// What underflows: of a d^2 less than 2^-1068 is lost, of n of them less than 2^-1015: nothing beside u^2 W, as W >= 2^-800. Of m' and of
// eta M / n 2^-1068, and as much of z r: |w| (r + 1) 2^-1060 in y, for which there is lost_below (it is no subnormal number, which some
// processors are slow with). Of z r w 2^-1068: nothing beside u^2 |y|, as |y| >= 2^-900. What overflows is not finite, or NaN in its low
// part, and comes out as such.
//
// Backward, t = g w and d = x - m exactly; A, B the sums of t and t d, r given; a = A / n, b = r^2 B / n, y = r ((t - a) - d b):
//     t d         hi is fl(h h'), |lo| <= 3 u |hi|; h l' errs by u^2, l h' added to it by 3 u^2, both added to the error of hi by 3 u^2, l l' <=
//                 u^2 |hi| is left out: 8.1 u^2 of hi
//     A, B        eta M_A, eta M_B                                                                                                     (S)
//     a           eta M_A / n, and 16 u^2 of itself;   b: eta M_B r^2 / n, and 16 u^2 + 8 u^2, r^2 being exact; d b 8 u^2 more
//     t - a       6 u^2 (|t| + |a|);  v = (t - a) - d b: 6 u^2 (|t - a| + |d b|), |t - a| <= |v| + |d b|, |t| <= |v| + |d b| + |a|
//     v           in all 12 u^2 |v| + (12 + 16) u^2 |a| + (6 + 12 + 32) u^2 |d b|, and what A and B err by
//     y           r times that, 8 u^2 of itself, and 2 u^2 for the ends
// 2^-400 <= r <= 2^400. A t that underflows loses less than 2^-1071, |d| times that in B: M_B takes 2^-900 |d| of each element beside |t d|, of
// which eta is more. Else what is lost is below 2^-1060 in v, or |d| (r^2 + 1) times that.
//
// To a weight: the sum of g r (x - m), or of g (x - m), as B. Of given statistics r is of W + eps, exactly, and d of the mean: as forward,
// without m'.
#pragma once

#include "librepdl/ops/rows/norm_binary64.hpp"
#include "librepdl/ops/rows/quick_rule.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// ------------------------------------------------------------------------------------------------------ double-doubles

// x + y within 6 u^2 (|x| + |y|) = 6 u^2 N, in 11 operations. |s.lo|, and the sum of low parts, are u N at most: their roundings err by u^2 N
// and 2 u^2 N. Where s.hi is less than what is added to it, at most 2.1 u N, fast_two_sum errs by u (2.2 u N), and |lo| <= 7 u^2 N.
REPDL_HD dd add_within(dd x, dd y) {
  const dd s = two_sum(x.hi, y.hi);
  return fast_two_sum(s.hi, s.lo + (x.lo + y.lo));
}
REPDL_HD dd negated(dd x) { return {-x.hi, -x.lo}; }

// x / n within 16 u^2 of itself, `inverse` being RN(1 / n). q is off by 2.1 u, so x.hi - p.hi is exact (Sterbenz), and what is left, 3.2 u |x| at
// most, is computed within (2.2 + 3.2) u^2 |x|; its product with the inverse errs by 2.1 u of itself. Of a q that underflows q n is exact.
REPDL_HD dd divided(dd x, double n, double inverse) {
  const double q = x.hi * inverse;
  const dd p = two_prod(q, n);
  return fast_two_sum(q, (((x.hi - p.hi) - p.lo) + x.lo) * inverse);
}

// 1 / sqrt(x) within 32 u^2 of itself, x in [2^-900, 2^900]. y is off by 2 u; e = 1 - x y^2, 5.2 u at most: 1 - c.hi is exact, the roundings of the
// others err by (5.1 + 1.1 + 1.1 + 2.2 + 5.3) u^2, x.lo times q.lo is u^2. y (1 + e / 2): half of that, 2.7 u^2 for the product, and 3/8 e^2
// = 10.2 u^2 for the rest of the series.
REPDL_HD dd inverse_root(dd x) {
  const double y = row_math<double>::reciprocal_root(x.hi);
  const dd q = two_prod(y, y);
  const dd c = two_prod(x.hi, q.hi);
  const double e = ((1 - c.hi) - c.lo) - (x.hi * q.lo + x.lo * q.hi);
  return fast_two_sum(y, 0.5 * e * y);
}

// RN of a number that neither it nor its double-double's parts under- or overflow in; any other is undecided.
REPDL_HD decided64 round_near(const wide64& v) {
  const decided64 r = round_enclosed(v.value, v.error);
  return {r.value, r.decided && is_in_middle(v.value.hi)};
}

// ------------------------------------------------------------------------------------------------------------------ sums

inline constexpr double lost_below = 0x1p-960;

REPDL_HD void add_pair(compensated_sum<double>& to, dd x) {
  to.add(x.hi);
  to.lo += x.lo;
}
REPDL_HD dd square_pair(dd d) {
  const dd p = two_prod(d.hi, d.hi);
  return {p.hi, math<double>::muladd(d.hi + d.hi, d.lo, p.lo)};
}
REPDL_HD dd product_pair(dd t, dd d) {
  const dd p = two_prod(t.hi, d.hi);
  return {p.hi, p.lo + math<double>::muladd(t.hi, d.lo, t.lo * d.hi)};
}

struct sum_height {
  std::int64_t additions;

  REPDL_HD void add() { ++additions; }
  REPDL_HD void merge(const sum_height& o) { additions = (o.additions > additions ? o.additions : additions) + 1; }
  // Infinite where no bound is known.
  REPDL_HD double eta() const { return compensated_bound(additions + 2, 1.0); }
};
// A sum whose error is known, as the wide rules have it.
template <class Sum>
REPDL_HD wide_sum<double> within(const Sum& s, double error) {
  return {{s.hi, s.lo, 0.0}, error};
}

// D and M, if there is a mean, and Q.
template <bool Centred>
struct quick_norm_sums {
  twice_tracked_sum<double> first;  // whose error is known: means of few bits are ties
  double magnitude;
  compensated_sum<double> second;
  sum_height height;

  REPDL_HD void start(const wide_row_given&) { *this = {}; }
  REPDL_HD void add(const dd& d, const double*) {
    if constexpr (Centred) {
      first.add(d);
      magnitude += magnitude_of(d.hi);
    }
    add_pair(second, square_pair(d));
    height.add();
  }
  REPDL_HD void merge(const quick_norm_sums& o) {
    if constexpr (Centred) {
      first.merge(o.first);
      magnitude += o.magnitude;
    }
    second.merge(o.second);
    height.merge(o.height);
  }
  // Every d is 0.
  REPDL_HD bool is_constant() const { return Centred && magnitude == 0; }
  REPDL_HD wide_norm_sums<Centred> enclosed(const wide_row_given& o) const {
    const double squares = second.total().hi;
    const double eta = squares <= 0x1p900 ? height.eta() : infinity;
    const double lost = is_constant() ? 0.0 : static_cast<double>(o.length) * lost_below;
    return {o.top, within(first, eta * magnitude), within(second, eta * squares + lost)};
  }
};

// B and M_B; of_g: all bits that the gs have, but for their signs.
struct quick_product_sum {
  compensated_sum<double> sum;
  double magnitude;
  std::uint64_t of_g;

  REPDL_HD void add(double g, dd t, dd d) {
    add_pair(sum, product_pair(t, d));
    magnitude = math<double>::muladd(magnitude_of(d.hi), magnitude_of(t.hi) + 0x1p-900, magnitude);
    of_g |= bits_of(magnitude_of(g));
  }
  REPDL_HD void merge(const quick_product_sum& o) {
    sum.merge(o.sum);
    magnitude += o.magnitude;
    of_g |= o.of_g;
  }
};
// A and M_A, if there is a mean, and those.
template <bool Centred>
struct quick_gradient_sums {
  compensated_sum<double> first;
  double magnitude;
  quick_product_sum second;
  sum_height height;

  REPDL_HD void start(const wide_row_given&) { *this = {}; }
  REPDL_HD void add(const dd& d, const double* x) {
    const dd t = two_prod(x[0], x[2]);
    if constexpr (Centred) {
      add_pair(first, t);
      magnitude += magnitude_of(t.hi);
    }
    second.add(x[0], t, d);
    height.add();
  }
  REPDL_HD void merge(const quick_gradient_sums& o) {
    if constexpr (Centred) {
      first.merge(o.first);
      magnitude += o.magnitude;
    }
    second.merge(o.second);
    height.merge(o.height);
  }
};

// ----------------------------------------------------------------------------------------------------------------- rules

// What y is made with.
struct quick_norm_numbers {
  bool is_known;
  bool is_constant;  // z = 0
  bool biased;
  dd offset;        // -m'
  dd rstd;          // r
  double relative;  // what z r w errs by, of itself
  double absolute;  // and of |w|
};
// z r w, of z r.
REPDL_HD wide64 scaled(const quick_norm_numbers& r, dd z_r, double w) {
  const dd y = mul(z_r, w);
  return {y, math<double>::muladd(magnitude_of(y.hi), r.relative, magnitude_of(w) * r.absolute)};
}
REPDL_HD wide64 with_bias(const wide64& a, double b) {
  const dd y = num::add(a.value, b);
  return {y, math<double>::muladd(magnitude_of(y.hi), 0x1p-103, a.error)};
}

// Of a known row, zeros that `near` leaves undecided, of a finite z: z = 0, or w = 0 where z 0 is added to b:
REPDL_HD decided64 zero_with_bias(const quick_norm_numbers& r, bool is_zero, const double* x) {
  const double y = 0.0 * x[1];
  return {canonical(r.biased ? (y + x[2]) + 0.0 : y), r.is_known && (is_zero || (r.biased && x[1] == 0))};
}
// and x w = 0, without a bias.
REPDL_HD decided64 zero_of_product(const quick_norm_numbers& r, const double* x) {
  return {canonical(x[0] * x[1]), r.is_known && (x[0] == 0 || x[1] == 0)};
}

template <ops::op_id Op, bool Centred>
struct quick_norm_rule {
  static constexpr bool keeps_term = false;
  using sums = quick_norm_sums<Centred>;
  using numbers = quick_norm_numbers;

  REPDL_HD static dd term(const wide_row_given& o, const double* x) {
    if constexpr (Centred) return two_sum(x[0], -o.top);
    return {x[0], 0.0};
  }
  REPDL_HD static numbers prepare(const wide_row_given& o, const sums& s) {
    const auto n = static_cast<double>(o.length);
    const double inverse = 1 / n;
    const double eta = s.height.eta();
    const dd squares = s.second.total();
    dd spread = squares;
    numbers r{};
    r.is_constant = s.is_constant();
    r.biased = o.biased;
    if constexpr (Centred) {
      const dd sum = s.first.total();
      r.offset = negated(divided(sum, n, inverse));
      spread = add_within(spread, mul(sum, r.offset));
    }
    spread = add_within(spread, two_prod(n, o.eps));
    r.rstd = inverse_root(divided(spread, n, inverse));
    const double k = squares.hi * inverse * (r.rstd.hi * r.rstd.hi);
    const double tau = (4 * eta + 0x1p-100) * k + 0x1p-101;
    r.is_known = spread.hi >= 0x1p-800 && spread.hi <= 0x1p900 && squares.hi <= 0x1p900 && tau <= 0x1p-5;
    r.relative = r.is_known ? 0.5625 * tau + 0x1p-100 : infinity;
    r.absolute = lost_below;
    if constexpr (Centred) {
      const double error = eta * s.magnitude * inverse * (1 + 0x1p-4) + 0x1p-100 * magnitude_of(r.offset.hi);
      r.absolute += r.rstd.hi * (error + lost_below);
    }
    return r;
  }
  // y, within its error.
  REPDL_HD static wide64 near(const numbers& r, const dd& d, const double* x) {
    if constexpr (Centred) {
      return with_bias(scaled(r, mul(add_within(d, r.offset), r.rstd), x[1]), x[2]);
    } else {
      return scaled(r, mul(r.rstd, d.hi), x[1]);
    }
  }
  REPDL_HD static decided64 element(const numbers& r, const dd& d, const double* x) {
    const decided64 y = round_near(near(r, d, x));
    if (y.decided) return y;
    return Centred ? zero_with_bias(r, r.is_constant, x) : zero_of_product(r, x);
  }
  REPDL_HD static decided64 result(const wide_row_given& o, const numbers&, const sums& s, int what) {
    if constexpr (Centred) {
      if (what == 1) {  // the mean of x: (D + n c) / n
        twice_tracked_sum<double> sum = s.first;
        sum.add(two_prod(static_cast<double>(o.length), o.top));
        return certify_mean_of_sum(sum, 0.0, o.length);
      }
    }
    return wide_rule<Op>::template settle<wide64>(o, s.enclosed(o), nullptr, what);
  }
};
template <>
struct quick_rule<ops::op_id::layer_norm> : quick_norm_rule<ops::op_id::layer_norm, true> {};
template <>
struct quick_rule<ops::op_id::batch_norm_running> : quick_norm_rule<ops::op_id::batch_norm_running, true> {};
template <>
struct quick_rule<ops::op_id::rms_norm> : quick_norm_rule<ops::op_id::rms_norm, false> {};

template <bool Centred>
struct quick_norm_gradient_rule {
  static constexpr bool keeps_term = false;
  using sums = quick_gradient_sums<Centred>;
  struct numbers {
    bool is_known;
    bool is_zero;  // every g is 0
    dd a;          // -a
    dd b;          // -b
    double rstd;   // r
    double fixed;  // |r| times this,
    double by_d;   // and |r| |d| times this
  };

  REPDL_HD static dd term(const wide_row_given& o, const double* x) {
    if constexpr (Centred) return two_sum(x[1], -o.top);
    return {x[1], 0.0};
  }
  REPDL_HD static numbers prepare(const wide_row_given& o, const sums& s) {
    const auto n = static_cast<double>(o.length);
    const double inverse = 1 / n;
    const double eta = s.height.eta() * inverse * (1 + 0x1p-10);
    const double size = magnitude_of(o.g);
    const double square = o.g * o.g;
    numbers r{};
    r.rstd = o.g;
    r.b = negated(mul(divided(s.second.sum.total(), n, inverse), two_prod(o.g, o.g)));
    r.by_d = square * (eta * s.second.magnitude + lost_below) * (1 + 0x1p-10) +
             (magnitude_of(r.b.hi) * 0x1p-100 + lost_below);
    r.fixed = lost_below;
    if constexpr (Centred) {
      r.a = negated(divided(s.first.total(), n, inverse));
      r.fixed += eta * s.magnitude + magnitude_of(r.a.hi) * 0x1p-100;
    }
    r.is_known = size >= 0x1p-400 && size <= 0x1p400 && s.magnitude <= 0x1p900 && s.second.magnitude <= 0x1p900 &&
                 r.fixed + r.by_d < infinity;
    r.is_zero = s.second.of_g == 0;
    if (!r.is_known) r.fixed = infinity;
    return r;
  }
  REPDL_HD static wide64 near(const numbers& r, const dd& d, const double* x) {
    dd v = two_prod(x[0], x[2]);
    if constexpr (Centred) {
      v = add_within(add_within(v, r.a), mul(d, r.b));
    } else {
      v = add_within(v, mul(r.b, d.hi));
    }
    const dd y = mul(v, r.rstd);
    const double error = math<double>::muladd(magnitude_of(d.hi), r.by_d, r.fixed);
    return {y, math<double>::muladd(magnitude_of(y.hi), 0x1p-101, magnitude_of(r.rstd) * error)};
  }
  REPDL_HD static decided64 element(const numbers& r, const dd& d, const double* x) {
    const decided64 y = round_near(near(r, d, x));
    if (y.decided) return y;
    const bool is_zero = r.is_zero || (!Centred && x[1] == 0 && (x[0] == 0 || x[2] == 0));
    return {zero_of_sign(sign_bit(r.rstd)), r.is_known && is_zero};
  }
  REPDL_HD static decided64 result(const wide_row_given&, const numbers&, const sums&, int) { return {0.0, false}; }
};
template <>
struct quick_rule<ops::op_id::layer_norm_backward> : quick_norm_gradient_rule<true> {};
template <>
struct quick_rule<ops::op_id::rms_norm_backward> : quick_norm_gradient_rule<false> {};

// Of a sum of t (x - m), t = `factor` of an element, and what wide numbers make of it.
template <ops::op_id Op>
struct quick_product_rule {
  static constexpr bool keeps_term = false;
  struct sums : quick_product_sum {
    sum_height height;

    REPDL_HD void start(const wide_row_given&) { *this = {}; }
    REPDL_HD void add(const dd& d, const double* x) {
      quick_product_sum::add(x[0], quick_rule<Op>::factor(x), d);
      height.add();
    }
    REPDL_HD void merge(const sums& o) {
      quick_product_sum::merge(o);
      height.merge(o.height);
    }
  };
  struct numbers {
    bool is_known;
  };

  REPDL_HD static numbers prepare(const wide_row_given&, const sums&) { return {true}; }
  REPDL_HD static decided64 element(const numbers&, const dd&, const double*) { return {0.0, false}; }
  REPDL_HD static decided64 result(const wide_row_given& o, const numbers&, const sums& s, int what) {
    const double eta = s.magnitude <= 0x1p900 ? s.height.eta() : infinity;
    const double error = eta * s.magnitude + static_cast<double>(o.length) * lost_below;
    const bool is_zero = s.of_g == 0 && error < infinity;
    typename wide_rule<Op>::template late<wide64> all{};
    all.sum = within(s.sum, is_zero ? 0.0 : error);
    return wide_rule<Op>::template settle<wide64>(o, all, nullptr, what);
  }
};
template <>
struct quick_rule<ops::op_id::layer_norm_weight_backward> : quick_product_rule<ops::op_id::layer_norm_weight_backward> {
  REPDL_HD static dd term(const wide_row_given&, const double* x) { return two_sum(x[1], -x[2]); }
  REPDL_HD static dd factor(const double* x) { return two_prod(x[0], x[3]); }
};
template <>
struct quick_rule<ops::op_id::rms_norm_weight_backward> : quick_product_rule<ops::op_id::rms_norm_weight_backward> {
  REPDL_HD static dd term(const wide_row_given&, const double* x) { return {x[1], 0.0}; }
  REPDL_HD static dd factor(const double* x) { return two_prod(x[0], x[2]); }
};

// ----------------------------------------------------------------------------------------------------- given statistics

template <ops::op_id Op>
struct quick_given_rule {
  static constexpr bool keeps_term = false;
  using numbers = quick_norm_numbers;
  struct sums {
    double nothing;

    REPDL_HD void start(const wide_row_given&) { nothing = 0; }
    REPDL_HD void add(const dd&, const double*) {}
    REPDL_HD void merge(const sums&) {}
  };

  REPDL_HD static numbers prepare(const wide_row_given& o, const sums&) {
    const dd v = two_sum(o.g, o.eps);
    const bool is_known = v.hi >= 0x1p-800 && v.hi <= 0x1p900;
    return {is_known, false, o.biased, {}, inverse_root(v), is_known ? 0x1p-100 : infinity, lost_below};
  }
  REPDL_HD static decided64 result(const wide_row_given&, const numbers&, const sums&, int) { return {0.0, false}; }
};
template <>
struct quick_rule<ops::op_id::batch_norm_inference> : quick_given_rule<ops::op_id::batch_norm_inference> {
  REPDL_HD static dd term(const wide_row_given& o, const double* x) { return two_sum(x[0], -o.top); }
  REPDL_HD static wide64 near(const numbers& r, const dd& d, const double* x) {
    return with_bias(scaled(r, mul(d, r.rstd), x[1]), x[2]);
  }
  REPDL_HD static decided64 element(const numbers& r, const dd& d, const double* x) {
    const decided64 y = round_near(near(r, d, x));
    return y.decided || !is_finite(d.hi) ? y : zero_with_bias(r, d.hi == 0, x);
  }
};
template <>
struct quick_rule<ops::op_id::batch_norm_inference_backward>
    : quick_given_rule<ops::op_id::batch_norm_inference_backward> {
  REPDL_HD static dd term(const wide_row_given&, const double* x) { return {x[0], 0.0}; }
  REPDL_HD static wide64 near(const numbers& r, const dd& d, const double* x) {
    return scaled(r, mul(r.rstd, d.hi), x[1]);
  }
  REPDL_HD static decided64 element(const numbers& r, const dd& d, const double* x) {
    const decided64 y = round_near(near(r, d, x));
    return y.decided ? y : zero_of_product(r, x);
  }
};
template <>
struct quick_rule<ops::op_id::batch_norm_inference_weight_backward>
    : quick_product_rule<ops::op_id::batch_norm_inference_weight_backward> {
  REPDL_HD static dd term(const wide_row_given& o, const double* x) { return two_sum(x[1], -o.top); }
  REPDL_HD static dd factor(const double* x) { return {x[0], 0.0}; }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
