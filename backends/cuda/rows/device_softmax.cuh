// The softmax family on a GPU: what stands in place of softmax.hpp's parts, and beside its rules.
#pragma once

#include "backends/cuda/rows/device_rule.cuh"

namespace repdl::num {
inline namespace REPDL_ISA {

// -------------------------------------------------------------------------------------------------- weights, logarithms

// Terms are added under a condition: fewer instructions than choosing what is added.
template <>
struct weight_sums<double, true> {
  double rest = 0;
  std::int32_t count = 0;

  // By the upper half of a gap: 0, or, of -inf, one that no number has.
  REPDL_HD void add([[maybe_unused]] const double* at, [[maybe_unused]] double max, [[maybe_unused]] double weight) {
#if defined(__CUDA_ARCH__)
    asm("{\n.reg .pred below, present;\n"
        "setp.ne.u32 below, %2, 0;\n"
        "setp.lt.and.u32 present, %2, 0xfff00000, below;\n"
        "@present add.rn.f64 %0, %0, %3;\n"
        "@!below add.s32 %1, %1, 1;\n}"
        : "+d"(rest), "+r"(count)
        : "r"(__double2hiint(at[0] - max)), "d"(weight));
#endif
  }
  REPDL_HD void merge(const weight_sums& o) {
    rest += o.rest;
    count += o.count;
  }
  REPDL_HD row_weights<double> of_row() const { return {rest, static_cast<double>(count)}; }
};

// The bits of binary64 below a binary32 number's last one, 29 of them, say how far v is from a midpoint, 2^28, in its own
// ulps, from 2^-125 to 2^126. v errs by less than `margin` of them. Of narrower formats they are the upper 29 of those below the last
// one: the margin in their units is less by the bits that are left out, and rounded up; 1 more for those, which are cut off, and for what
// above_subnormals rounds.
inline constexpr unsigned no_margin = 0x10000000u;  // what this test decides nothing with
REPDL_HD unsigned margin_of(double relative, unsigned roundings) {
  return relative < 0x1p-26 ? static_cast<unsigned>(relative * 0x1p53) + roundings : no_margin;
}
template <class T>
REPDL_HD bool is_far_from_midpoints(double v, unsigned margin) {
  const std::uint64_t bits = bits_of(above_subnormals<T>(v));
  constexpr int unused = 24 - format<T>::precision;
  if constexpr (unused != 0) margin = margin < no_margin ? (margin >> unused) + 2 : no_margin;
  const auto below = static_cast<unsigned>(bits >> unused) & 0x1fffffffu;
  const unsigned upper = static_cast<unsigned>(bits >> 32) & 0x7fffffffu;
  return (below - (0x10000000u - margin) > 2 * margin) & has_midpoints_in_place<T>(upper);
}
template <>
struct weight_factor<double> {
  double value;  // NaN: nothing is to be decided
  double bound;
  unsigned margin;

  // H(q) - ln S, where bounds_of_rows has ln n, with ln S >= 0.69 (biased exponent of S - 1023).
  REPDL_HD static weight_factor of(double f, double bound, double sum) {
    bound -= 0.69 * 0x1p-53 * static_cast<double>(static_cast<int>(bits_of(sum) >> 52) - 1023);
    return {bound < 1 && is_finite(f) ? f : double_of(format<double>::nan), bound, margin_of(bound, 2)};
  }
  // With the gap of this element, |d| <= 0.7 (1023 - biased exponent of e^d), in place of the greatest one.
  REPDL_HD ends<double> times(double e, double gap) const {
    const double p = e * value;
    const auto exponent = static_cast<double>(1023 - static_cast<int>(bits_of(e) >> 52));
    const double b = bound - (gap - (0.7 * exponent < gap ? 0.7 * exponent : gap)) * 0x1p-53;
    return {p * (1 - b), p * (1 + b)};
  }
  // A product below 2^-151 is a zero.
  template <class T>
  REPDL_HD verdict<double> product(double e) const {
    const double p = e * value;
    const unsigned upper = static_cast<unsigned>(bits_of(p) >> 32) & 0x7fffffffu;
    return {value_of<T>(p), !(is_far_from_midpoints<T>(p, margin) | (upper < 0x36800000u))};
  }
};
// v = (x - max) - R errs by what R does, which is not more of v than of R, and by two roundings, of numbers that are not larger.
template <>
struct logarithm_numbers<double> {
  double max;
  row_logarithm<double> log;
  unsigned margin;
  unsigned around;  // both sides of a midpoint, in eighths

  REPDL_HD static logarithm_numbers of(double max, const row_logarithm<double>& log) {
    const unsigned margin = margin_of(log.relative, 4);
    return {max, log, margin, margin < no_margin ? 16 * margin : 0xffffffffu};
  }
  // x = -inf: so is v. Of binary32 v is 0 or below, and where it is -2^-125 or more away from it the lower word says how far it is from a
  // midpoint, in eighths of its units: of what overflows, and of -inf, it does not matter.
  template <class T>
  REPDL_HD verdict<double> element(double x) const {
    const double v = (x - max) - log.value;
    const auto upper = static_cast<unsigned>(bits_of(v) >> 32);
    if constexpr (std::is_same_v<T, float>) {
      const unsigned from = (static_cast<unsigned>(bits_of(v)) << 3) - (0x80000000u - 8 * margin);
      return {static_cast<float>(v), !((from > around) & (upper >= 0xb8200000u))};
    }
    const bool absent = upper == 0xfff00000u;
    return {absent ? static_cast<float>(v) : value_of<T>(v), !(is_far_from_midpoints<T>(v, margin) | absent)};
  }
};

// Elements in binary32. What they are between has room for 2^-33 more than what is known in binary64, whose test leaves nothing undecided that
// this one decides.
//
// e f, from an e cut to binary32: below it by 2^-23 of itself and 2^-149 at most. Towards 0 the product is cut. Away from it f is more by
// 2^-22 (1 + 2^-8), of which e, f's rounding and the product's take 2^-22; what is lost below the normal numbers is |f| 2^-149 and 2^-150.
struct quick_factor {
  float inner, outer, least;
  bool known;

  __device__ static quick_factor of(const weight_factor<double>& f) {
    const double size = magnitude_of(f.value);
    const bool known = ((size > 0x1p-100) | (size == 0)) & (size < 0x1p100) & (f.bound < 0x1p-40);
    const auto least = static_cast<float>(0x1p-148 * (size > 1 ? size : 1.0));
    return {__double2float_rz(f.value * (1 - 0x1p-32)), static_cast<float>(f.value * (1 + 0x1.01p-22)),
            copysignf(least, static_cast<float>(f.value)), known};
  }
  __device__ ends<float> times(float e) const { return {__fmul_rz(e, inner), __fmaf_rn(e, outer, least)}; }
};
// (x - max) - R, rounded down and up. The stand-in for a tiny R is between 0 and 2^-149.
struct quick_gap {
  float max;
  float low, high;  // of R
  bool known;

  __device__ static quick_gap of(const logarithm_numbers<double>& r) {
    const row_logarithm<double>& log = r.log;
    const double slack = log.slack + 0x1p-32 * log.value;
    return {static_cast<float>(r.max), __double2float_rd(log.value - slack), __double2float_ru(log.value + slack),
            log.relative < 1};
  }
  __device__ ends<float> from(float x) const {
    return {__fsub_rd(__fsub_rd(x, max), high), __fsub_ru(__fsub_ru(x, max), low)};
  }
};

// g (p - t) / n.
template <ops::op_id Op>
struct device_weight_rule : row_rule<Op> {
  using quick = quick_factor;
  __device__ static quick quick_of(const weight_factor<double>& r) { return quick::of(r); }
  __device__ static ends<float> quick_ends(const quick& q, const float*, float weight) { return q.times(weight); }
};
template <>
struct device_rule<ops::op_id::softmax> : device_weight_rule<ops::op_id::softmax> {};
template <>
struct device_rule<ops::op_id::logsumexp_backward> : device_weight_rule<ops::op_id::logsumexp_backward> {};
template <>
struct device_rule<ops::op_id::cross_entropy_backward> : device_weight_rule<ops::op_id::cross_entropy_backward> {};

template <>
struct device_rule<ops::op_id::log_softmax> : row_rule<ops::op_id::log_softmax> {
  using quick = quick_gap;
  __device__ static quick quick_of(const logarithm_numbers<double>& r) { return quick::of(r); }
  __device__ static ends<float> quick_ends(const quick& q, const float* x, float) { return q.from(x[0]); }
};

// ------------------------------------------------------------------------------------------------- gradients from outputs

// y (g - P) in binary32, v = 2^-24, P = high + low within 2^-48 of itself: the difference z is off by 2 v |z|, as the first one is
// exact, or half of |high| at least, and z -+ f by v |z| each. The products with |y| are rounded towards the ends, which then take its
// sign. An exact zero is +0.
struct quick_softmax_gradient {
  float high, low, error;
  bool known;

  __device__ static quick_softmax_gradient of(double hi, double lo, double slack) {
    const auto high = static_cast<float>(hi);
    const double error = (slack + 0x1p-46 * magnitude_of(hi)) * (1 + 0x1p-20);
    return {high, static_cast<float>((hi - static_cast<double>(high)) + lo), __double2float_ru(error),
            error + magnitude_of(hi) < 0x1p100};
  }
  __device__ ends<float> at(float g, float y) const {
    const float z = __fadd_rn(__fsub_rn(__fsub_rn(g, high), low), 0.0f);
    const float f = __fmaf_ru(fabsf(z), 0x1.9p-23f, error);
    const float size = fabsf(y);
    const float inner = fmaxf(__fmul_rd(size, __fsub_rn(z, f)), -__builtin_inff());
    const float outer = __fmul_ru(size, __fadd_rn(z, f));
    const std::uint32_t sign = bits_of(y) & 0x80000000u;
    return {float_of(bits_of(inner) ^ sign), float_of(bits_of(outer) ^ sign)};
  }
};

template <>
struct device_rule<ops::op_id::softmax_backward> : row_rule<ops::op_id::softmax_backward> {
  using quick = quick_softmax_gradient;
  __device__ static quick quick_of(const numbers<double>& r) { return quick::of(r.hi, r.lo, r.slack); }
  __device__ static ends<float> quick_ends(const quick& q, const float* x, float) { return q.at(x[0], x[1]); }
};

// The sum of g is added up twice, rounded down and up (sums.hpp, fast_sum). A sum that is not finite says nothing.
struct sum_between {
  double low = 0;
  double high = 0;

  __device__ void add(const double*, double, double term) {
    low = __dadd_rd(low, term);
    high = __dadd_ru(high, term);
  }
  __device__ void merge(const sum_between& o) {
    low = __dadd_rd(low, o.low);
    high = __dadd_ru(high, o.high);
  }
  __device__ void join(const sum_between& o) { merge(o); }
  __device__ const sum_between& of_row() const { return *this; }
};
// What e^y is multiplied by to be added to g, at least and at most: -G with 8 u of itself more than G is known by, as e^y errs by 5.1 u.
// An exact zero is +0. The greatest y that has a formula here: NaN where nothing is to be decided.
struct sum_factor {
  double low, high;
  float most;

  __device__ bool is_known() const { return most == most; }
  __device__ static sum_factor of(double bound, const sum_between& s) {
    const bool known = bound < 1 && is_finite(s.low) && is_finite(s.high);
    return {0.0 - __fma_ru(magnitude_of(s.high), 0x1p-50, s.high), 0.0 - __fma_rd(-magnitude_of(s.low), 0x1p-50, s.low),
            known ? static_cast<float>(-least_gap) : float_of(canonical_nan_f32)};
  }
};
// The same in binary32, of a y of 11 bits: y log2 e = k + f, k an integer; y times the constant's 13 upper bits is exact, and so is k
// less of it. In units of 2^-24 of e^y: the last addition 1, the rest of 2^f 0.6, f 0.35, the polynomial 0.07 (reference/gen/rows.sollya):
// below 2^-22.9, for which the sum has 2^-22. A g of +0 less nothing is +0, by either end.
struct quick_sum_factor {
  float low, high;
  bool known;

  __device__ static quick_sum_factor of(const sum_factor& r) {
    const bool known = r.is_known() & (magnitude_of(r.low) < 0x1p100) & (magnitude_of(r.high) < 0x1p100);
    return {__double2float_rd(r.low - 0x1p-22 * magnitude_of(r.low)),
            __double2float_ru(r.high + 0x1p-22 * magnitude_of(r.high)), known};
  }
  __device__ ends<float> at(float gradient, float y) const {
    constexpr float inf = __builtin_inff();
    constexpr float shifter = 0x1.8p23f;
    const float g = __fadd_rn(gradient, 0.0f);
    const float cut = fminf(fmaxf(y, -80.0f), 80.0f);
    const float t = cut * 0x1.715p+0f;
    const float shifted = t + shifter;
    const float f = __fmaf_rn(cut, 0x1.1d94aep-14f, t - (shifted - shifter));
    float power = __fmaf_rn(0x1.3faf58p-13f, f, 0x1.5f0cap-10f);
    power = __fmaf_rn(power, f, 0x1.3b3094p-7f);
    power = __fmaf_rn(power, f, 0x1.c6af74p-5f);
    power = __fmaf_rn(power, f, 0x1.ebfbd8p-3f);
    power = __fmaf_rn(power, f, 0x1.62e43p-1f);
    power = __fmaf_rn(power, f, 1.0f);
    const bool absent = y == -inf;
    const bool beyond = (y != cut) & !absent;  // NaN, too
    const float weight = absent ? 0.0f : float_of(bits_of(power) + (bits_of(shifted) << 23));
    return {__fadd_rn(__fmaf_rd(weight, low, beyond ? -inf : g), 0.0f), __fmaf_ru(weight, high, beyond ? inf : g)};
  }
};

template <>
struct device_rule<ops::op_id::log_softmax_backward> : row_rule<ops::op_id::log_softmax_backward> {
  static constexpr bool has_exponential_element = true;
  template <class R>
  using sums = sum_between;
  using total = sum_between;
  template <class R>
  using numbers = sum_factor;
  template <class R>
  __device__ static sum_factor prepare(const row_call& c, const row_given<R>&, R, const sum_between& s) {
    return sum_factor::of(c.bounds.tracked, s);
  }
  using quick = quick_sum_factor;
  __device__ static quick quick_of(const sum_factor& r) { return quick::of(r); }
  __device__ static ends<float> quick_ends(const quick& q, const float* x, float) { return q.at(x[0], x[1]); }
  // The ends are rounded down and up. y = -inf: g, and +0 for -0.
  template <class T, class R, class Exponential = plain_exponential>
  __device__ static verdict<R> element(const sum_factor& r, const R* x, R, const Exponential& exponential = {}) {
    const float g = __fadd_rn(static_cast<float>(x[0]), 0.0f);
    const auto y = static_cast<float>(x[1]);
    const double weight = exponential(static_cast<double>(fmaxf(y, static_cast<float>(least_gap))));
    const ends<double> e = {__fma_rd(weight, r.low, static_cast<double>(g)),
                            __fma_ru(weight, r.high, static_cast<double>(g))};
    const float low = row_math<double>::rounded<T>(e.low);
    const float high = row_math<double>::rounded<T>(e.high);
    const bool absent = y == -__builtin_inff();
    const bool undecided = ((bits_of(low) != bits_of(high)) & !absent) | !(y <= r.most);
    return {absent ? g : high, undecided};
  }
  // Where y is +inf or NaN, or beyond 600 and e^600 is enough.
  template <class T, class R>
  __device__ static verdict<R> careful(const sum_factor& r, const R* x, R) {
    if (!(x[1] > -least_gap && x[1] < infinity && r.is_known())) return {0.0f, true};
    const double weight = fast_exp(-least_gap);
    return verdict_of<T>(ends<R>{__fma_rd(weight, r.low, x[0]), __fma_ru(weight, r.high, x[0])});
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
