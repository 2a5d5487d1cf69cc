// Norms on a GPU: what stands in place of norm.hpp's and norm_backward.hpp's parts, and beside their rules.
#pragma once

#include "backends/cuda/rows/device_rule.cuh"

namespace repdl::num {
inline namespace REPDL_ISA {

// ---------------------------------------------------------------------------------------------------------------- sums

// D is between two sums, which are one where nothing is lost. So means that are midpoints are decided. d is rounded down in Q, too.
template <>
struct deviation_sums<double> {
  static constexpr int k = 2;
  double first = 0;
  double second = 0;
  double above = 0;

  REPDL_HD void add([[maybe_unused]] const double* x, [[maybe_unused]] double top, double) {
#if defined(__CUDA_ARCH__) || defined(REPDL_EMULATED)
    const double d = __dadd_rd(x[0], -top);
    first = __dadd_rd(first, d);
    above = __dadd_ru(above, __dadd_ru(x[0], -top));
    second = fma(d, d, second);
#endif
  }
  REPDL_HD void merge([[maybe_unused]] const deviation_sums& o) {
#if defined(__CUDA_ARCH__) || defined(REPDL_EMULATED)
    first = __dadd_rd(first, o.first);
    above = __dadd_ru(above, o.above);
    second += o.second;
#endif
  }
  REPDL_HD deviations<double> of_row() const { return {first, second, (above - first) * (1 + 0x1p-50)}; }
};

// A sum is between two, too.
template <>
struct signed_sum<double, false> {
  double low = 0;
  double high = 0;

  REPDL_HD void add([[maybe_unused]] double term) {
#if defined(__CUDA_ARCH__) || defined(REPDL_EMULATED)
    low = __dadd_rd(low, term);
    high = __dadd_ru(high, term);
#endif
  }
  REPDL_HD void add_product([[maybe_unused]] double a, [[maybe_unused]] double b) {
#if defined(__CUDA_ARCH__) || defined(REPDL_EMULATED)
    low = __fma_rd(a, b, low);
    high = __fma_ru(a, b, high);
#endif
  }
  REPDL_HD void merge([[maybe_unused]] const signed_sum& o) {
#if defined(__CUDA_ARCH__) || defined(REPDL_EMULATED)
    low = __dadd_rd(low, o.low);
    high = __dadd_ru(high, o.high);
#endif
  }
  // What a total's additions and this one's lose: 2 u of it.
  REPDL_HD static signed_sum of_total(double total, double spread) {
    const double lost = 0x1p-52 * magnitude_of(total);
    return {total - lost, total + spread * (1 + 0x1p-20) + lost};
  }
  REPDL_HD double lowest() const { return low; }
  REPDL_HD double width() const { return high - low; }
  REPDL_HD double error(double g) const { return g < 1 ? width() * (1 + 0x1p-40) : infinity; }
};
// Of products with b as it is; what that is off by is 2 u of the products' magnitudes.
template <>
struct signed_sum<double, true> {
  signed_sum<double, false> range;
  double magnitude = 0;

  REPDL_HD void add_product(double a, double b) {
    range.add_product(a, b);
    magnitude = fma(magnitude_of(a), magnitude_of(b), magnitude);
  }
  REPDL_HD void merge(const signed_sum& o) {
    range.merge(o.range);
    magnitude += o.magnitude;
  }
  REPDL_HD static signed_sum of_total(double total, double spread) {
    return {signed_sum<double, false>::of_total(total, spread), 0};
  }
  REPDL_HD double lowest() const { return range.lowest(); }
  REPDL_HD double width() const { return range.width() + 0x1.1p-52 * magnitude; }
  REPDL_HD double error(double g) const { return g < 1 ? width() * (1 + 0x1p-40) : infinity; }
};

// -------------------------------------------------------------------------------------------------------- precise sums
//
// Of binary32 elements, whose outputs are decided from the sums of their row where binary64 leaves them undecided, so that the row is not
// read again. A sum is hi + lo, lo what additions to hi lost, added up plainly. h is the height, at most 2^16 (most_of_whole in rows_cut.hpp),
// M the sum of the terms' magnitudes, u = 2^-53:
//     d = x - c       exact where it is the same rounded down and up; else its own error is in lo, too
//     t d             its error is in lo
//     lo              sums of h u M, and u M for the errors of terms, in 3 h additions: 3 h (h + 2) u^2 M at most
//     d^2             s = RN(q + d^2), b = RN(s - q), and q - (s - b) and d^2 - b, rounded: where q >= s / 2, b and s - b = q are exact, and
//                     d^2 - b is at most u s; else s - b is exact, q + u s at most, and both terms are at most 2 u s. So with their sum 6 u^2 s
//                     are lost, 6 h u^2 M in all; of d, beside 2 d times its error, u^2 d^2
// All that is less than 2^-72 M. Sizes are M in binary32, rounded up, of differences that are off by 2^-24 of themselves.

REPDL_HD double precise_error(float size) { return 0x1p-71 * static_cast<double>(size); }

// x - top = hi + lo.
__device__ inline dd precise_difference(double x, double top) {
  const double below = __dadd_rd(x, -top);
  const bool exact =
      static_cast<std::uint32_t>(bits_of(below)) == static_cast<std::uint32_t>(bits_of(__dadd_ru(x, -top)));
  return exact ? dd{below, 0} : two_sum(x, -top);
}

template <bool Centred>
struct precise_deviations {
  double first = 0, first_low = 0;  // D, if Centred
  double second = 0, second_low = 0;
  float size = 0;          // of the sum of d
  std::uint32_t lost = 0;  // not 0: that is not `first` alone

  __device__ void add(const double* x, double top, double) {
    const dd d = Centred ? precise_difference(x[0], top) : dd{x[0], 0};
    if constexpr (Centred) {
      add_first(d.hi);
      size = __fadd_ru(size, fabsf(__fsub_rn(static_cast<float>(x[0]), static_cast<float>(top))));
    }
    const double s = fma(d.hi, d.hi, second);
    const double b = s - second;
    second_low += (second - (s - b)) + fma(d.hi, d.hi, -b);
    second = s;
    if (d.lo == 0) return;
    first_low += d.lo;
    second_low = fma(2 * d.hi, d.lo, second_low);
    lost = 1;
  }
  __device__ void merge(const precise_deviations& o) {
    add_first(o.first);
    first_low += o.first_low;
    const dd s = two_sum(second, o.second);
    second = s.hi;
    second_low += s.lo + o.second_low;
    size = __fadd_ru(size, o.size);
    lost |= o.lost;
  }
  // `gap` has u for the sum's rounding.
  __device__ deviations<double> of_row() const {
    const double sum = first + first_low;
    return {sum, second + second_low, lost == 0 ? 0.0 : error() + 0x1p-52 * magnitude_of(sum)};
  }
  __device__ double error() const { return lost == 0 ? 0.0 : precise_error(size); }

 private:
  __device__ void add_first(double d) {
    const dd s = two_sum(first, d);
    first = s.hi;
    first_low += s.lo;
    const std::uint64_t bits = bits_of(s.lo);
    lost |= static_cast<std::uint32_t>(bits) | static_cast<std::uint32_t>(bits >> 32);
  }
};
// gap is 0 where nothing is lost, so that means that are midpoints are decided: additions say what they lose.
struct precise_deviation_total : deviation_total {
  template <bool Centred>
  __device__ void join(const precise_deviations<Centred>& s) {
    add(two_sum(s.first, s.first_low), s.error(), two_sum(s.second, s.second_low));
  }
  __device__ void join(const precise_deviation_total& o) { add(o.first, o.gap, o.second); }
  template <class Sums>
  __device__ void join(const Sums& s) {
    const deviations<double> part = s.of_row();
    add({part.first, 0}, part.gap, {part.second, 0});
  }
  __device__ deviations<double> of_row() const {
    const bool is_one = gap == 0 && first.lo == 0;
    return {first.hi, second.hi, is_one ? 0.0 : gap * (1 + 0x1p-20) + 0x1p-51 * magnitude_of(first.hi)};
  }

 private:
  __device__ void add(dd other, double error, dd squares) {
    const wide<double> sum = num::add(wide<double>{first, gap}, wide<double>{other, error});
    first = sum.value;
    gap = sum.error;
    second = num::add(second, squares);
  }
};

template <bool Centred>
struct precise_moments {
  double first = 0, first_low = 0;
  double second = 0, second_low = 0;
  float first_size = 0, second_size = 0;

  __device__ void add(const double* x, double mean, double t) {
    const float size = __fmul_ru(fabsf(static_cast<float>(x[0])), fabsf(static_cast<float>(x[2])));
    if constexpr (Centred) {
      add_first(t);
      first_size = __fadd_ru(first_size, size);
    }
    const dd d = Centred ? precise_difference(x[1], mean) : dd{x[1], 0};
    const double p = t * d.hi;
    add_second(p, fma(t, d.hi, -p));
    if (d.lo != 0) second_low = fma(t, d.lo, second_low);
    const float distance =
        Centred ? __fsub_rn(static_cast<float>(x[1]), static_cast<float>(mean)) : static_cast<float>(x[1]);
    second_size = __fmaf_ru(size, fabsf(distance), second_size);
  }
  __device__ void merge(const precise_moments& o) {
    add_first(o.first);
    first_low += o.first_low;
    add_second(o.second, o.second_low);
    first_size = __fadd_ru(first_size, o.first_size);
    second_size = __fadd_ru(second_size, o.second_size);
  }
  // 4 u of a sum for its rounding and those of its ends.
  __device__ gradient_moments<double, Centred> of_row() const {
    const auto range = [](double hi, double lo, float size) {
      const double sum = hi + lo;
      const double lost = precise_error(size) + 0x1p-51 * magnitude_of(sum);
      return signed_sum<double, false>{sum - lost, sum + lost};
    };
    gradient_moments<double, Centred> m;
    m.first = range(first, first_low, first_size);
    if constexpr (Centred) {
      m.second = {range(second, second_low, second_size), 0};
    } else {
      m.second = range(second, second_low, second_size);
    }
    return m;
  }

 private:
  __device__ void add_first(double t) {
    const dd s = two_sum(first, t);
    first = s.hi;
    first_low += s.lo;
  }
  __device__ void add_second(double p, double low) {
    const dd s = two_sum(second, p);
    second = s.hi;
    second_low += s.lo + low;
  }
};
template <bool Centred>
struct precise_moments_total : gradient_moments_total<Centred> {
  using gradient_moments_total<Centred>::join;
  __device__ void join(const precise_moments<Centred>& s) {
    add(this->first, s.first, s.first_low, precise_error(s.first_size));
    add(this->second, s.second, s.second_low, precise_error(s.second_size));
  }

 private:
  // A total is a least number, and how much more there may be.
  __device__ static void add(signed_total& to, double hi, double lo, double error) {
    to.value = num::add(to.value, two_sum(hi, lo - error));
    to.spread += 2 * error + 0x1p-100 * magnitude_of(to.value.hi);
  }
};

// The sum of a total in wide numbers.
REPDL_HD wide_sum<double> wide_sum_of(dd value, double error) {
  return {{value.hi, value.lo, 0}, error * (1 + 0x1p-10)};
}

// ------------------------------------------------------------------------------------------------------------ elements

// m, the midpoint of the numbers of T about y, of which one is y's result, is h / 2 from both. The next midpoints are h / 4 beyond them
// at least (h / 4 below a power of two): where |y - m|, which is exact and at most h / 2, is more than 2 f, f < h / 4. Of 0 it is a
// subnormal number, which is more than 2 f if f is 0. Of a binary16 number below 2^-14 the sum with that is off by 2^-66, and the sign of
// a zero is y's where |y| is more than f.
template <>
struct quick_within<double> {
  template <class T>
  REPDL_HD static verdict<double> of(double y, double f, double least) {
    constexpr std::uint64_t half = std::uint64_t{1} << (52 - format<T>::precision);
    const double w = above_subnormals<T>(y);
    const double m = double_of((bits_of(w) & ~(2 * half - 1)) | half);
    const auto upper = [](double of) { return static_cast<unsigned>(bits_of(of) >> 32) & 0x7fffffffu; };
    const bool zero = (upper(y) == 0) & (least == 0);
    if constexpr (std::is_same_v<T, f16>) {
      const bool has_sign = (magnitude_of(y) > f) | (zero & (f == 0));
      return {value_of<T>(y),
              !((magnitude_of(w - m) > 2 * f + 0x1p-65) & has_midpoints_in_place<T>(upper(w)) & has_sign)};
    }
    return {value_of<T>(y), !((magnitude_of(w - m) > 2 * f) & (has_midpoints_in_place<T>(upper(w)) | zero))};
  }
};

// Elements in binary32, v = 2^-24. m = high + low, within 2^-48 of itself.
//     d = (x - high) - low    2 v |d|: the first difference is exact, or |d| is half of |high| at least; and 2^-48 |m|
//     z = d rstd, y = z w + b    |w| (|d| t + s) + v |y|, t = rstd (r + 4.02 v), s = what it is in binary64 + rstd (2^-47 |m| + 2^-149)
//     y -+ f                  v of themselves each
// f is rounded up, so that it is 0 only if nothing is lost: what falls below the normal numbers is 2^-150, and the products with |d|, or
// |y|, are 2^-149 at least. r takes 2^-33 more: what the test in binary64 is off by.
struct quick_norm {
  float high, low, rstd, zero;
  float of_d, absolute, least;
  bool known;

  // Of what is centred, d = 0 is +0: low is -0 where it is 0, as offset is. Else d is x.
  __device__ static quick_norm of(const norm_numbers<double>& r, bool centred) {
    const double m = r.centre + r.offset;
    const auto high = static_cast<float>(m);
    const double relative = r.relative + (0x1.03p-22 + 0x1p-33);
    const double of_m = 0x1p-47 * magnitude_of(m) + (m != 0 ? 0x1p-149 : 0.0);
    const double absolute = (r.absolute + r.rstd * of_m) * (1 + 0x1p-20);
    const bool known = (relative < 0x1p-20) & (absolute < 0x1p60) & (r.rstd > 0x1p-60) & (r.rstd < 0x1p60);
    return {high,
            centred ? -static_cast<float>(static_cast<double>(high) - m) : 0.0f,
            static_cast<float>(r.rstd),
            static_cast<float>(r.zero),
            __double2float_ru(r.rstd * relative),
            __double2float_ru(absolute),
            r.least > 0 ? 0x1p-149f : 0.0f,
            known};
  }
  // NaN is no end: a lower one becomes -inf.
  __device__ ends<float> at(float x, float w, float b) const {
    const float d = __fsub_rn(__fsub_rn(x, high), low);
    const float y = __fadd_rn(__fmaf_rn(__fmul_rn(d, rstd), w, b), zero);
    const float of_y = __fmaf_ru(fabsf(y), 0x1.9p-23f, least);
    const float f = __fmaf_ru(fabsf(w), __fmaf_ru(fabsf(d), of_d, absolute), of_y);
    return {fmaxf(__fsub_rn(y, f), -__builtin_inff()), -__fsub_rn(-y, f)};
  }
};

// y in binary32, as y = x a + c, where w and b are those of several elements. With M = centre + offset, rounded, a = w rstd and c = b - M a,
// rounded once, E = r + 4 u:
//     a               |a| r: what rstd has, and u
//     m - M           |a| (1 + 1/8) u |M|, and |w| s (s has the 1/8)
//     y               |x - M| |a| r + |w| s + 1.1 u |M a| + u |c| + u |y|,  |y| <= |x a| + |c|
//                     <= |x| |a| (r + 2 u) + |M a| (r + 2 u) + |w| s + 3 u |c|
// So of_x, rest, which are twice that, have room for the roundings in them: E < 1/3. The test is that of quick_within. With 2^-149 in
// `rest` it leaves all undecided that is below 2^-124: m is within half an ulp of 24 bits. What is 2^128 or more is infinity, as its
// neighbours are; NaN, infinite y and bounds leave undecided.
struct norm_line {
  double a, c;
  double of_x, rest;

  __device__ static norm_line of(const norm_numbers<double>& r, double w, double b) {
    const double m = r.centre + r.offset;
    const double a = w * r.rstd;
    const double c = fma(-m, a, b);
    const double of_x = magnitude_of(a) * (r.relative + 0x1p-51);
    const double rest = magnitude_of(m) * of_x + (magnitude_of(w) * r.absolute + magnitude_of(c) * 0x1p-51);
    return {a, c, 2 * of_x, 2 * rest + 0x1p-149};
  }
  __device__ verdict<double> at(float x) const {
    const auto v = static_cast<double>(x);
    const double y = fma(v, a, c);
    const double f = fma(magnitude_of(v), of_x, rest);
    constexpr std::uint64_t half = std::uint64_t{1} << 28;
    const double m = double_of((bits_of(y) & ~(2 * half - 1)) | half);
    return {static_cast<float>(y), !(magnitude_of(y - m) > f)};
  }
};

template <ops::op_id Op, bool Centred>
struct device_norm_rule : row_rule<Op> {
  using quick = quick_norm;
  __device__ static quick quick_of(const norm_numbers<double>& r) { return quick::of(r, Centred); }
  __device__ static ends<float> quick_ends(const quick& q, const float* x, float) {
    return q.at(x[0], x[1], Centred ? x[2] : -0.0f);
  }
  __device__ static norm_line line_of(const norm_numbers<double>& r, const float* x) requires(Centred) {
    return norm_line::of(r, static_cast<double>(x[1]), static_cast<double>(x[2]));
  }
  template <class T, class R>
  REPDL_HD static verdict<R> careful(const norm_numbers<R>& r, const R* x, R) {
    const auto e = norm_rule<Centred>::estimate_of(r, x);
    return rounded_within<T>(e.y, e.f);
  }
};
// Of norms of their own statistics.
template <ops::op_id Op, bool Centred>
struct device_statistics_rule : device_norm_rule<Op, Centred> {
  using precise = precise_deviations<Centred>;
  using total = precise_deviation_total;
  __device__ static norm_sums<wide<double>, Centred> late_of(double top, const total& s) {
    norm_sums<wide<double>, Centred> w{};
    w.start(top);
    w.plain = s.second.hi;
    if constexpr (Centred) w.first = wide_sum_of(s.first, s.gap);
    w.second = wide_sum_of(s.second, 0x1p-71 * s.second.hi);
    return w;
  }
  __device__ static bool is_known(const total& s) { return is_finite(s.second.hi); }
};
template <ops::op_id Op>
requires std::is_base_of_v<norm_rule<true>, row_rule<Op>>
struct device_rule<Op> : device_statistics_rule<Op, true> {
};
template <>
struct device_rule<ops::op_id::rms_norm> : device_statistics_rule<ops::op_id::rms_norm, false> {};
template <>
struct device_rule<ops::op_id::batch_norm_inference> : device_norm_rule<ops::op_id::batch_norm_inference, true> {};

template <>
struct device_rule<ops::op_id::batch_norm_inference_backward> : row_rule<ops::op_id::batch_norm_inference_backward> {
  template <class T, class R>
  REPDL_HD static verdict<R> careful(const numbers<R>& r, const R* x, R) {
    const R y = (x[0] * x[1]) * r.rstd;
    return rounded_within<T>(y, magnitude_of(y) * r.relative);
  }
};

// ----------------------------------------------------------------------------------------------------------- gradients

// Elements in binary32, v = 2^-24, where a = high + low within 2^-48 of itself.
//     t = g w         0, or of a w of binary32 v |t|, |t| <= |c| + |a|; what falls below the normal numbers: 2^-150, for which |g| counts
//                     2^-149, rounded up
//     c = (t - high) - low    2 v |c|: the first difference is exact, or c is half of |high| at least
//     d b             3 v |d b|, for which |d| counts 2^-149 at least
//     v = c - d b     v |v|, and v -+ f v |v| each
// Every term is rounded up; the products with rstd are, towards the ends.
struct quick_norm_gradient {
  float mean, rstd, high, low, b;
  float of_a, of_b, per_c;
  bool known;

  __device__ static quick_norm_gradient of(const norm_gradient_numbers<double>& r) {
    const auto high = static_cast<float>(r.a);
    const double of_a = (r.a_error + (0x1p-47 + r.product) * magnitude_of(r.a)) * (1 + 0x1p-20);
    const double of_b = (r.b_error + 0x1.9p-23 * magnitude_of(r.b)) * (1 + 0x1p-20);
    const bool known = (r.rstd > 0x1p-60) & (r.rstd < 0x1p60) & (of_a + magnitude_of(r.a) < 0x1p100) &
                       (of_b + magnitude_of(r.b) < 0x1p100);
    return {static_cast<float>(r.mean),
            static_cast<float>(r.rstd),
            high,
            static_cast<float>(r.a - static_cast<double>(high)),
            static_cast<float>(r.b),
            __double2float_ru(of_a),
            __double2float_ru(of_b),
            static_cast<float>(0x1.1p-23 + r.product),
            known};
  }
  __device__ ends<float> at(float g, float x, float w) const {
    const float c = __fsub_rn(__fsub_rn(__fmul_rn(g, w), high), low);
    const float d = __fsub_rn(x, mean);
    const float v = __fadd_rn(__fsub_rn(c, __fmul_rn(d, b)), 0.0f);
    const float of_t = __fmaf_ru(fabsf(g), 0x1p-149f, of_a);
    const float of_c = __fmaf_ru(fabsf(c), per_c, __fmaf_ru(fabsf(v), 0x1.9p-23f, of_t));
    const float f = __fmaf_ru(fabsf(d), of_b, of_c);
    return {fmaxf(__fmul_rd(rstd, __fsub_rn(v, f)), -__builtin_inff()), __fmul_ru(rstd, __fadd_rn(v, f))};
  }
};

template <ops::op_id Op, bool Centred>
struct device_norm_gradient_rule : row_rule<Op> {
  using quick = quick_norm_gradient;
  __device__ static quick quick_of(const norm_gradient_numbers<double>& r) {
    quick q = quick::of(r);
    if constexpr (!Centred) q.mean = 0.0f;
    return q;
  }
  __device__ static ends<float> quick_ends(const quick& q, const float* x, float) { return q.at(x[0], x[1], x[2]); }

  using precise = precise_moments<Centred>;
  using total = precise_moments_total<Centred>;
  __device__ static late_moments<wide<double>, Centred> late_of(double top, const total& s) {
    late_moments<wide<double>, Centred> w{};
    w.start(top);
    w.plain_first = s.first.value.hi;
    w.plain_second = s.second.value.hi;
    w.first = wide_sum_of(s.first.value, s.first.spread);
    w.second = wide_sum_of(s.second.value, s.second.spread);
    return w;
  }
  __device__ static bool is_known(const total& s) {
    return is_finite(s.first.value.hi) && is_finite(s.second.value.hi);
  }
};
template <>
struct device_rule<ops::op_id::layer_norm_backward> : device_norm_gradient_rule<ops::op_id::layer_norm_backward, true> {
};
template <>
struct device_rule<ops::op_id::rms_norm_backward> : device_norm_gradient_rule<ops::op_id::rms_norm_backward, false> {};

// Of gradients to weights the statistics are often one number for a whole row, or for many elements (batch_norm, group_norm): read like
// operands that may be absent, of which the same is true.
template <ops::op_id Op>
struct device_norm_weight_rule : row_rule<Op> {
  static constexpr int required = 2;
};
template <>
struct device_rule<ops::op_id::layer_norm_weight_backward>
    : device_norm_weight_rule<ops::op_id::layer_norm_weight_backward> {};
template <>
struct device_rule<ops::op_id::rms_norm_weight_backward>
    : device_norm_weight_rule<ops::op_id::rms_norm_weight_backward> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
