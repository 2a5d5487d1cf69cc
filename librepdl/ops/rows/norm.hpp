// Norms: layer_norm (group_norm and batch_norm are the same of other rows) and rms_norm, as rules (rule.hpp).
//
// With c the first element of a row of n, d_j = x_j - c, D = sum d_j, Q = sum d_j^2, and everything else exact:
//     m = c + D / n,   V = n Q - D^2 = n^2 v,   y = (n d - D) w / sqrt(V + n^2 eps) + b,   rstd = n / sqrt(V + n^2 eps).
// Little cancels where c is as near m as the others are; where it is an outlier, Q is n^2 v at most. In rows of one number d, D and Q
// are 0, exactly. rms_norm: c = 0 and D = 0.
//
// Tier binary64. u = 2^-53, h the height of the sums, g = (h + 6) u, which has room for second order terms; k = 1, or 2 where D is
// rounded down (deviation_sums).
//     d_j             u |d_j|: a difference of binary32 numbers, which may be 2^277 apart
//     D               k (h + 2) u sum |d_j| <= k g sqrt(n Q);   D (1 / n): k g sqrt(Q / n) + 2 u |D / n|
//     Q               (h + 6) u Q (d rounded down: 2 u)
//     D / n           with e what D errs by, over n: e <= k g sqrt(Q / n), or what is known of it
//     Q - D (D / n)   over n: (h + 6) u Q / n + (2 |D / n| + e) e + 4 u Q / n, as D^2 <= n Q;   times 1 / n, + eps: 3 u
//     rstd            with q = rstd^2 ((g + 4 u) Q / n + (2 |D / n| + e) e) <= 1/16: |(1 + t)^(-1/2) - 1| <= 0.5516 |t|: 0.5625 q + 4 u of
//                     itself
//     z = (d - D / n) rstd     2 u |d - D / n| + a,  a = e + 4 u |D / n|, for the difference, as |d| is at most the sum of both; then
//                     what rstd has, and u. rstd e = E, and rstd sqrt(Q / n) <= (rstd^2 Q / n + 1) / 2
//     y = z w + b     |w| (|z| r + s) + u |y|,  r = 0.5625 q + 12 u,  s = rstd a (1 + 1/8)
// No overflow: |d| < 2^129. What is 0 or subnormal in between is so only where x is: d^2 >= 2^-298.
//
// batch_norm_running, q = momentum, M and W the running statistics before:
//     M' = (1 - q) M + q m,   W' = (1 - q) W + q v n / (n - 1).
//     1 - q           u of itself, and each product u; m as a result of its own; the sum u: M' is off by q (what m is) + 6 u of both
//     v n / (n - 1)   v as it enters the root, (2 k + 1) g Q / n + 4 u of itself; 3 u for n / (n - 1) and the product
// With q and 1 - q at least 2^-200 and 2^-53, or 0, nothing over- or underflows.
//
// Late tiers: the formulas above. Of balls the sums are those of x and x^2, exactly (c = 0), and so are the operands of the root, of the
// quotient, and of the comparison of y with a midpoint t, the sign of (n x - S) w + (b - t) sqrt(V + n^2 eps): of squares, where the
// terms have opposite signs. Bits: n x - S 340 (multiples of 2^-149 below 2^(129 + 62)), times w 364, squared 728; V + n^2 eps 620
// (2^-298 to 2^320), (b - t)^2 560, their product 1180. 24 limbs have 1536. n M' = n M + q (S - n M), n (n - 1) W' = n (n - 1) W + q (V -
// n (n - 1) W), V = n^2 v: multiples of 2^-551 below 2^383; a quotient by n or n (n - 1) is a midpoint only where it is exact.
#pragma once

#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/formula.hpp"
#include "librepdl/num/wide.hpp"
#include "librepdl/ops/rows/rule.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// ------------------------------------------------------------------------------------------------------------- binary64

// D and Q of a row; gap: what D errs by, where that is known better than by g (else infinite).
template <class R>
struct deviations {
  R first;
  R second;
  R gap;
};
template <class R>
struct deviation_sums {
  static constexpr int k = 1;
  R first{};
  R second{};

  REPDL_HD void add(const R*, R, R d) {
    first = row_math<R>::add(first, d);
    second = math<R>::muladd(d, d, second);
  }
  REPDL_HD void merge(const deviation_sums& o) {
    first += o.first;
    second += o.second;
  }
  REPDL_HD deviations<R> of_row() const { return {first, second, math<R>::all(infinity)}; }
  template <class Lane = double>
  deviation_sums<Lane> lane(int l) const {
    return {first[l], second[l]};
  }
};
struct deviation_total {
  dd first{};
  dd second{};
  double gap = 0;

  template <class R>
  REPDL_HD void join(const deviation_sums<R>& s) {
    const deviations<R> part = s.of_row();
    first = num::add(first, part.first);
    second = num::add(second, part.second);
    gap += part.gap + lost_by_addition();
  }
  REPDL_HD void join(const deviation_total& o) {
    first = num::add(first, o.first);
    second = num::add(second, o.second);
    gap += o.gap + lost_by_addition();
  }
  // Sums that cancel later are off by 2^-104 of themselves.
  REPDL_HD double lost_by_addition() const { return 0x1p-100 * magnitude_of(first.hi); }
  template <class R>
  REPDL_HD deviations<R> of_row() const {
    const double lost = gap * (1 + 0x1p-20) + 0x1p-51 * magnitude_of(first.hi);
    return {math<R>::all(first.hi), math<R>::all(second.hi), math<R>::all(lost)};
  }
};

template <class R>
struct norm_numbers {
  R sum, gap;            // D, and what it errs by
  R centre, offset;      // m = centre + offset (0 is -0 there, so that d - offset is +0 where it is 0), which is off by
  R slack;               // a
  R rstd;                // off by a relative
  R relative, absolute;  // r, s
  R zero;                // +0 where there is a bias: an exact zero that is a sum; else -0
  R least;               // not 0 where y = z 0 has the sign of a z that is not exact
};

// What every number within f of y rounds to. -0 is -0 - 0 and -(0 - 0).
template <class T, class R>
REPDL_HD verdict<R> rounded_within(R y, R f) {
  using M = row_math<R>;
  return verdict_of<T, R>({M::add(y, -f), -M::add(-y, -f)});
}
// The same at the least cost. least: of norm_numbers.
template <class R>
struct quick_within {
  template <class T>
  REPDL_HD static verdict<R> of(R y, R f, R) {
    return rounded_within<T>(y, f);
  }
};
// ---------------------------------------------------------------------------------------------------------- late tiers

// The sums of d and d^2 in an arithmetic. plain: of x, not finite where an x is not.
template <class A, bool Centred>
struct norm_sums;
template <class R, bool Centred>
struct norm_sums<wide<R>, Centred> {
  R centre{};
  R plain{};
  wide_sum<R> first;
  wide_sum<R> second;

  REPDL_HD void start(R top) {
    if constexpr (Centred) centre = top;
  }
  REPDL_HD void add(R x) {
    plain += x;
    const double_word<R> d = two_sum(x, -centre);
    const double_word<R> square = mul(d, d);
    const R zero{};
    const R lost = 0x1p-103 * magnitude_of(square.hi);
    if constexpr (Centred) first.add(d, zero);
    second.add(square, d.lo == 0.0 ? zero : lost);
  }
  REPDL_HD void merge(const norm_sums& o) {
    plain += o.plain;
    first.merge(o.first);
    second.merge(o.second);
  }
  norm_sums<wide<double>, Centred> lane(int l) const {
    return {centre[l], plain[l], num::lane(first, l), num::lane(second, l)};
  }
  REPDL_HD wide<R> sum(std::int64_t n) const { return first.total(n); }
  REPDL_HD wide<R> squares(std::int64_t n) const { return second.total(n); }
};
template <int L, bool Centred>
struct norm_sums<ball<L>, Centred> {
  static constexpr double centre = 0;
  exact_accumulator<float, 1> first;
  exact_accumulator<float, 2> second;
  double plain = 0;

  REPDL_HD void start(double) {}
  REPDL_HD void add(double x) {
    plain += x;
    if (!is_finite(x)) return;
    const auto f = static_cast<float>(x);
    if constexpr (Centred) first.add(f);
    second.add_product(f, f);
  }
  REPDL_HD void merge(const norm_sums& o) {
    plain += o.plain;
    first.merge(o.first);
    second.merge(o.second);
  }
  REPDL_HD ball<L> sum(std::int64_t) const { return arithmetic<ball<L>>::of_limbs(limbs_of_sum<8>(first)); }
  REPDL_HD ball<L> squares(std::int64_t) const { return arithmetic<ball<L>>::of_limbs(limbs_of_sum<16>(second)); }
};

REPDL_HD void negate(wide<double>& a) { a = negated(a); }
template <int L>
REPDL_HD void negate(ball<L>& a) {
  if (!a.middle.is_zero()) a.middle.negative ^= 1;
}

// a / sqrt(v) + b, v > 0.
template <class A>
REPDL_HD_CALL A over_root(A a, A v, double b) {
  to_square_root(v);
  divide_by(a, v);
  add_value(a, b);
  return a;
}
REPDL_HD certified round_over_root(dtype to, const wide<double>& a, const wide<double>& v, double b) {
  return round_to(to, over_root(a, v, b));
}
// Of balls: as a formula, with the sides of midpoints, of which 512 bits leave one.
using few_limbs = ball<8>;
template <int L>
struct quotient_by_root {
  const ball<L>& a;
  const ball<L>& v;
  double b;
  few_limbs value;
};
template <int L>
REPDL_HD const few_limbs& enclosure(const quotient_by_root<L>& f) {
  return f.value;
}
template <int L>
REPDL_HD_CALL int side_of(const quotient_by_root<L>& f, const few_limbs& m) {
  ball<L> rest = widen_ball<L>(negated(m));
  add_value(rest, f.b);
  const int first = sign_in(f.a);
  const int second = sign_in(rest);
  if (first == 2 || second == 2) return 2;
  if (first * second >= 0) return first != 0 ? first : second;
  multiply_by(rest, rest);
  multiply_by(rest, f.v);
  ball<L> square = f.a;
  multiply_by(square, f.a);
  negate(square);
  add_to(rest, square);
  const int order = sign_in(rest);
  return order == 2 ? 2 : -order * first;
}
template <int L>
REPDL_HD few_limbs with_few_limbs(const ball<L>& a) {
  bool inexact = false;
  const multi_limb<8> m = normalise<8, L>(a.middle.limb, a.middle.exponent, a.middle.negative, &inexact);
  return {m, add(a.radius, rounding_error(m, inexact))};
}
// About 0: within 2^-500 of b, which is far below the least midpoint.
template <int L>
REPDL_HD_CALL certified round_over_root(dtype to, const ball<L>& a, const ball<L>& v, double b) {
  const quotient_by_root<L> f{a, v, b, over_root(with_few_limbs(a), with_few_limbs(v), b)};
  const int side = side_of(f, arithmetic<few_limbs>::number(0));
  if (side == 0) return {0.0f, true};
  if (side != 2 && sign_in(f.value) == 2 && f.value.radius.below_power(-200)) return {side < 0 ? -0.0f : 0.0f, true};
  return with_format(to, [&]<class T>() { return widened(round_formula<T, 8>(f)); });
}

// Of Q: V + n^2 eps. On a GPU what functions keep is memory of every thread: these have theirs for themselves.
template <class A>
REPDL_HD_CALL void to_spread(A& squares, const A& sum, std::int64_t n, double eps) {
  multiply_by_count(squares, n);
  A other = sum;
  multiply_by(other, sum);
  negate(other);
  add_to(squares, other);
  other = arithmetic<A>::number(eps);
  multiply_by_count(other, n);
  multiply_by_count(other, n);
  add_to(squares, other);
}
// Of D: n (x - c) - D.
template <class A>
REPDL_HD_CALL void to_deviation(A& sum, float x, double centre, std::int64_t n) {
  A d = arithmetic<A>::number(static_cast<double>(x));
  add_value(d, -centre);
  multiply_by_count(d, n);
  negate(sum);
  add_to(sum, d);
}

// RN(c + D / n). A sum that is one binary64 number decides ties.
REPDL_HD certified round_mean(dtype to, double centre, const wide<double>& sum, std::int64_t n) {
  wide<double> s = arithmetic<wide<double>>::number(centre);
  multiply_by_count(s, n);
  add_to(s, sum);
  const bool exact = s.error == 0 && s.value.lo == 0;
  return with_format(to, [&]<class T>() {
    return widened(exact ? certify_mean<T>(s.value.hi, 0.0, n) : certify_mean<T>(s.value, s.error * (1 + 0x1p-10), n));
  });
}
template <int L>
REPDL_HD_CALL certified round_mean(dtype to, double, const ball<L>& sum, std::int64_t n) {
  if (is_zero(sum)) return {0.0f, true};
  few_limbs mean = with_few_limbs(sum);  // all of it; midpoints are 2^-340 of it away, or nothing
  few_limbs count = arithmetic<few_limbs>::number(1);
  multiply_by_count(count, n);
  divide_by(mean, count);
  return round_to(to, mean);
}

// ---------------------------------------------------------------------------------------------------------------- rules

template <bool Centred>
struct norm_rule : plain_rule {
  static constexpr row_look look = Centred ? row_look::first : row_look::nothing;
  static constexpr row_inputs inputs = {{0, 1, Centred ? 2 : -1}};
  static constexpr float absent[most_elements] = {0.0f, 1.0f, -0.0f};
  static constexpr bool has_factors = true;
  static constexpr int results = Centred ? 2 : 1;  // mean, rstd
  static constexpr bool exact_totals = true;
  static constexpr int exact_limbs = 24;

  static row_bounds bounds(std::int64_t, std::int64_t height, std::int64_t) {
    return {0, 0, 0, static_cast<double>(height + 6) * 0x1p-53};
  }
  REPDL_HD static row_class classify(const row_call& c, const row_operands&, float) {
    return {c.length == 0, float_of(canonical_nan_f32)};
  }
  template <class R>
  REPDL_HD static R term(const R* x, R top) {
    return Centred ? x[0] - top : x[0];
  }
  template <class R>
  using sums = deviation_sums<R>;
  using total = deviation_total;
  template <class R>
  using numbers = norm_numbers<R>;
  template <class R>
  REPDL_HD static numbers<R> prepare(const row_call& c, const row_given<R>&, R top, const deviations<R>& s) {
    using M = row_math<R>;
    const R zero = M::all(0.0);
    const double n = static_cast<double>(c.length);
    const double part = 1 / n;
    const double g = c.bounds.sum;
    const R offset = Centred ? -(zero - s.first * part) : zero;
    const R squares = s.second * part;
    const R rstd = M::reciprocal_root((Centred ? s.second - s.first * offset : s.second) * part + c.eps);
    const R ratio = squares * (rstd * rstd);
    constexpr int k = deviation_sums<R>::k;
    const R of_offset = 0x1p-51 * magnitude_of(offset);
    const R of_sums = (0.5 * k * g) * (ratio + 1.0);
    const R known = g < 1 ? s.gap : M::all(infinity);
    const R gap = known * part;
    const R by_gap = rstd * gap;
    const R by_bound = squares > 0.0 ? of_sums : zero;
    const R spread = by_gap < by_bound ? by_gap : by_bound;
    const R of_first = Centred ? ((2.0 * rstd) * magnitude_of(offset) + spread) * spread : zero;
    const R q = (g + 0x1p-51) * ratio + of_first;
    const R relative = (0.5625 * q + 0x1.8p-50) * (1 + 0x1p-10);
    return {s.first,
            known,
            Centred ? top : zero,
            offset,
            Centred ? (gap < infinity ? gap : g * M::root(squares)) + of_offset : zero,
            rstd,
            q < 0x1p-4 ? relative : M::all(infinity),
            Centred ? (spread + rstd * of_offset) * 1.125 : zero,
            M::all(c.biased ? 0.0 : -0.0),
            c.biased || !Centred ? zero : (squares > 0.0 ? M::all(0x1p-1000) : zero)};
  }
  // z and y; y, and f, which it errs by.
  template <class R>
  struct middle {
    R z, y;
  };
  template <class R>
  REPDL_HD static middle<R> middle_of(const numbers<R>& r, const R* x) {
    using M = row_math<R>;
    const R z = (Centred ? M::add(x[0] - r.centre, -r.offset) : x[0]) * r.rstd;
    return {z, Centred ? M::add(M::muladd(z, x[1], x[2]), r.zero) : z * x[1]};
  }
  template <class R>
  struct estimate {
    R y, f;
  };
  template <class R>
  REPDL_HD static estimate<R> estimate_of(const numbers<R>& r, const R* x) {
    using M = math<R>;
    const auto [z, y] = middle_of(r, x);
    const R of_z = M::muladd(magnitude_of(z), r.relative, r.absolute);
    return {y, M::muladd(magnitude_of(x[1]), of_z, M::muladd(magnitude_of(y), M::all(0x1p-51), r.least))};
  }
  template <class T, class R>
  REPDL_HD static verdict<R> element(const numbers<R>& r, const R* x, R) {
    const estimate<R> e = estimate_of(r, x);
    return quick_within<R>::template of<T>(e.y, e.f, r.least);
  }
  // The same where |w| <= W and |b| <= B: |z w| <= |y| (1 + 2 u) + |b|, so y is off by less than (r (1 + 2 u) + u) |y| + C, C = r B +
  // s W. y (1 - e) - C and y (1 + e) + C, C with y's sign, are off by 4 u |y| + u C more: e = r + 8 u, C of 2^-10 more. Of y = -0 and
  // C = 0 they are +0 and -0, which leaves it undecided. rms_norm: b = 0 and s = 0, so C = 0.
  template <class R>
  struct limits {
    R near, far;  // 1 - e, 1 + e
    R most;       // C
  };
  template <class R>
  static limits<R> limits_of(const numbers<R>& r, double w, double b) {
    const R e = r.relative + 0x1p-50;
    return {1.0 - e, 1.0 + e, (r.relative * b + r.absolute * w) * (1 + 0x1p-10) + r.least};
  }
  template <class T, class R>
  static verdict<R> element_within(const numbers<R>& r, const limits<R>& l, const R* x) {
    using M = row_math<R>;
    const R y = middle_of(r, x).y;
    if constexpr (!Centred) return verdict_of<T, R>({y * l.near, y * l.far});
    const R c = M::from_bits(M::to_bits(l.most) | (M::to_bits(y) & 0x8000000000000000));
    return verdict_of<T, R>({M::muladd(y, l.near, -c), M::muladd(y, l.far, c)});
  }
  template <class R>
  REPDL_HD static ends<R> result(const row_call& c, const numbers<R>& r, R, int k) {
    if (Centred && k == 0) {
      if constexpr (std::is_same_v<R, double>) {
        const double n = static_cast<double>(c.length);
        const dd all = two_prod(n, r.centre);
        const dd s = two_sum(all.hi, r.sum);
        if (r.gap == 0 && all.lo == 0 && s.lo == 0) {
          const double mean = divide_to_odd(s.hi + 0.0, n);
          return {mean, mean};
        }
      }
      const R m = (r.centre + r.offset) + 0.0;
      const R f = r.slack * (1 + 0x1p-10) + 0x1p-51 * magnitude_of(m);
      return {m - f, m + f};
    }
    const R e = r.rstd * r.relative;
    return {r.rstd - e, r.rstd + e};
  }

  template <class A>
  using late = norm_sums<A, Centred>;
  template <class A>
  REPDL_HD static certified settle(dtype to, const row_call& c, const row_operands&, const late<A>& s, const float* x,
                                   int what) {
    const bool is_mean = Centred && what == 1;
    const float nan = float_of(canonical_nan_f32);
    if (!is_finite(s.plain)) return {is_mean ? canonical(static_cast<float>(s.plain)) : nan, true};
    const std::int64_t n = c.length;
    A sum = s.sum(n);
    if (is_mean) return round_mean(to, s.centre, sum, n);

    A v = s.squares(n);
    to_spread(v, sum, n, c.eps);
    if (is_zero(v)) return {what == 0 ? nan : static_cast<float>(infinity), true};
    if (sign_in(v) != 1) return {0.0f, false};
    if (what != 0) {
      A count = arithmetic<A>::number(1);
      multiply_by_count(count, n);
      return round_over_root(to, count, v, 0.0);
    }

    to_deviation(sum, x[0], s.centre, n);
    const auto w = static_cast<double>(x[1]);
    const double b = c.biased ? static_cast<double>(x[2]) : 0.0;
    const int sign = sign_in(sum);
    if (sign == 2) return {0.0f, false};
    if (sign == 0 || w == 0 || !is_finite(w) || !is_finite(b)) {
      // Of n d - D only the sign matters; 0 is +0 but where it is x.
      const double z = sign != 0 ? static_cast<double>(sign) : Centred ? 0.0 : static_cast<double>(x[0]);
      const double y = z * w;
      return {canonical(static_cast<float>(c.biased ? (y + b) + 0.0 : y)), true};
    }
    multiply_by_value(sum, w);
    return round_over_root(to, sum, v, b);
  }
};
template <>
struct row_rule<ops::op_id::layer_norm> : norm_rule<true> {};

// ------------------------------------------------------------------------------------------------- batch_norm_running

template <class R>
struct running_numbers : norm_numbers<R> {
  R variance, of_variance;  // v n / (n - 1), and what it errs by beside some u
};

// RN((1 - momentum) former + momentum p / divisor), as (former divisor + momentum (p - former divisor)) / divisor. p is used up.
template <class A>
REPDL_HD_CALL certified round_average(dtype to, A& p, const A& divisor, double former, double momentum) {
  A own = divisor;
  multiply_by_value(own, former);
  negate(own);
  add_to(p, own);
  negate(own);
  multiply_by_value(p, momentum);
  add_to(p, own);
  if (is_zero(p)) return {0.0f, true};
  divide_by(p, divisor);
  return round_to(to, p);
}

struct running_norm_rule : norm_rule<true> {
  using base = norm_rule<true>;
  // x, running_mean, running_var, weight, bias
  static constexpr row_inputs inputs = {{0, 3, 4}, -1, -1, -1, {1, 2}};
  static constexpr bool others_of_rows = true;
  static constexpr int results = 4;  // mean, rstd, running_mean, running_var

  REPDL_HD static float counterpart(const row_operands& o, int k) { return k < 2 ? 0.0f : o.former[k - 2]; }
  template <class R>
  using numbers = running_numbers<R>;
  template <class R>
  REPDL_HD static numbers<R> prepare(const row_call& c, const row_given<R>& own, R top, const deviations<R>& s) {
    const norm_numbers<R> all = base::prepare<R>(c, own, top, s);
    const double n = static_cast<double>(c.length);
    const double part = 1 / n;
    constexpr int k = deviation_sums<R>::k;
    const double scale = n / (n - 1);
    const R variance = ((s.second - s.first * all.offset) * part) * scale;
    return {all, variance, ((2 * k + 1) * c.bounds.sum * scale) * (s.second * part)};
  }
  template <class R>
  REPDL_HD static ends<R> result(const row_call& c, const numbers<R>& r, R at, int k) {
    if (k < 2) return base::result<R>(c, r, at, k);
    const double q = c.momentum;
    const R own = (1 - q) * at;
    const R of_batch = q * (k == 2 ? r.centre + r.offset : r.variance);
    const R y = (own + of_batch) + 0.0;
    const R f = 0x1p-50 * (magnitude_of(own) + magnitude_of(of_batch)) +
                (q * (1 + 0x1p-10)) * (k == 2 ? r.slack : r.of_variance);
    return {y - f, y + f};
  }

  template <class A>
  REPDL_HD static certified settle(dtype to, const row_call& c, const row_operands& o, const late<A>& s, const float* x,
                                   int what) {
    if (what < 3) return base::settle<A>(to, c, o, s, x, what);
    const std::int64_t n = c.length;
    const bool is_mean = what == 3;
    const auto former = static_cast<double>(o.former[what - 3]);
    const double q = c.momentum;
    if (!is_finite(s.plain) || !is_finite(former) || (!is_mean && n == 1)) {
      const double nan = double_of(format<double>::nan);
      const double of_batch = is_mean ? (is_finite(s.plain) ? 0.0 : s.plain) : is_finite(s.plain) && n != 1 ? 0.0 : nan;
      return {canonical(static_cast<float>((1 - q) * former + q * of_batch)), true};
    }
    A divisor = arithmetic<A>::number(1);
    multiply_by_count(divisor, n);
    A sum = s.sum(n);
    if (is_mean) {
      A all = arithmetic<A>::number(s.centre);
      multiply_by_count(all, n);
      add_to(all, sum);
      return round_average(to, all, divisor, former, q);
    }
    A v = s.squares(n);
    to_spread(v, sum, n, 0.0);
    multiply_by_count(divisor, n - 1);
    return round_average(to, v, divisor, former, q);
  }
};
template <>
struct row_rule<ops::op_id::batch_norm_running> : running_norm_rule {};
template <>
struct row_rule<ops::op_id::rms_norm> : norm_rule<false> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
