// The elementary functions (elementary.hpp): a line each.
#pragma once

#include <optional>

#include "reference/elementwise/elementary.hpp"

namespace repdl::reference {

namespace elementary_detail {

constexpr double inf = __builtin_inf(), nan = __builtin_nan(""), least = 0x1p-1074;

using exact_result = std::optional<std::uint64_t>;
exact_result nothing(dtype t, const number& x);
exact_result zero_itself(dtype t, const number& x);
exact_result half_at_zero(dtype t, const number& x);
exact_result one_at_zero(dtype t, const number& x);
exact_result exp2_exact(dtype t, const number& x);
exact_result log_exact(dtype t, const number& x);
exact_result log2_exact(dtype t, const number& x);
exact_result log10_exact(dtype t, const number& x);
exact_result log1p_exact(dtype t, const number& x);
exact_result rsqrt_exact(dtype t, const number& x);
/// erfinv, atanh: infinite at -1 and 1.
exact_result poles_at_ones(dtype t, const number& x);
/// acos, acosh: +0 at 1.
exact_result zero_at_one(dtype t, const number& x);
exact_result exp10_exact(dtype t, const number& x);
exact_result exp2m1_exact(dtype t, const number& x);
exact_result exp10m1_exact(dtype t, const number& x);
exact_result sinpi_exact(dtype t, const number& x);
exact_result cospi_exact(dtype t, const number& x);
exact_result tanpi_exact(dtype t, const number& x);
exact_result sinc_exact(dtype t, const number& x);
exact_result lgamma_exact(dtype t, const number& x);
exact_result tgamma_exact(dtype t, const number& x);
exact_result digamma_exact(dtype t, const number& x);
exact_result erfcinv_exact(dtype t, const number& x);
exact_result ndtri_exact(dtype t, const number& x);
/// x/2 + r, r > 0 and tiny: silu, gelu, hardswish near 0.
exact_result half_and_more(dtype t, const number& x);
/// x/2 + r, r tiny and of the sign of x, or of the other: i1, i1e near 0.
exact_result half_outwards(dtype t, const number& x);
exact_result half_inwards(dtype t, const number& x);
/// x - sign x + r, where r is tiny and has the sign of x.
exact_result tanhshrink_exact(dtype t, const number& x);

inline series normal_distribution(const series& x) { return erfc(-x / sqrt(x.constant(2))) / 2; }
/// 2 sqrt(2 / pi) (x + 0.044715 x^3); (1 + tanh(v / 2)) / 2 is the sigmoid of v.
inline series gelu_tanh_exponent(const series& x) { return x * sqrt(8 / x.pi()) * (1 + x * x * x.decimal("0.044715")); }
inline series selu(const series& x) {
  const series a = x.decimal("1.6732632423543772848170429916717"), s = x.decimal("1.0507009873554804934193349852946");
  return x.negative() ? s * a * expm1(x) : s * x;
}
/// With w = e^x: tanh(ln(1 + w)) = ((1 + w)^2 - 1) / ((1 + w)^2 + 1).
inline series mish(const series& x) {
  const series w = exp(x), n = w * (w + 2);
  return x * (n / (n + 2));
}

inline series cospi(const series& x) { return sinpi(x + 0.5); }

// Tails. The first bound is for formats of at most 24 bits, numbers from 2^-149 and below 2^128:
// - A magnitude below 2^-150 is a zero; one above 2^128 overflows. e^110 > 2^158, 128 e^-128 < 2^-177,
//   16 Phi(-16) < e^-128 < 2^-184, erfc 11 < e^-121 < 2^-174; gelu_tanh at -12: 12 e^-141.
// - What lies within 2^-26, relatively, of a number of the format has that number as its rounded value:
//   1 - tanh 10 < 2 e^-20 < 2^-27, 1 - erf 8 < e^-64, 1 / (1 + 2^26). The same for x (1 - d), d < 2^-26: silu, gelu,
//   mish, tanhshrink, log_sigmoid (d |x| < e^-110).
//   exp2m1, exp10m1: 10^-8 < 2^-26.5. atan x is pi / 2 - 1 / x and more; pi / 2 is 2^-25.91 above a midpoint of 24 bits, 2^-10.01
//   and 2^-7.84 above one of 11 and 8.
//   1 - Phi(6) < e^-18 / 12 < 2^-29.
// - x^2 / 2 at 2^65; I_0 and I_1 at 93 are above e^93 / 25 > 2^129; gamma(36) = 35! > 2^132; x (ln x - 1) at 2^122 is above 2^128.
// - 10^-46 < 2^-152, 10^39 > 2^129; sinh and cosh: e^110 / 2.
// - Numbers from 2^(p - 1) on, p the precision, are whole, from 2^p on even: sinpi, sinc, cospi, tanpi (`exact` knows infinities).
// - a s = 1.11000010000100101100110001100... in binary goes on after 8, 11 and 24 bits with 00001, 010 and 001, far
//   from a midpoint: a s, a s (1 - e^-110) and the double here round alike.
// The second is for binary64, numbers from 2^-1074 and below 2^1024:
// - A magnitude below 2^-1075 is a zero; one above 2^1024 overflows. e^-746 < 2^-1076, e^710 > 2^1024.3, 760 e^-760 < 2^-1086,
//   39 Phi(-39) < e^-760.5 / 2 < 2^-1098, erfc 28 < e^-784 < 2^-1131; gelu_tanh at -22: 22 e^-794.
// - What lies within 2^-55, relatively, of a number has it as its rounded value: 1 - tanh 20 < 2 e^-40 < 2^-56,
//   1 - erf 7 < e^-49 < 2^-70, e^-40 < 2^-57 (expm1, sigmoid, log_sigmoid, silu), 1 / (1 + 2^56), gelu: Phi(-10) < e^-50,
//   gelu_tanh: e^-49 at 8; mish: x (1 - 2 / (n + 2)), n > e^(2x), 2 e^-40 at 20; tanhshrink 1 / 2^55.
//   10^-17 < 2^-56; atan: pi / 2 is 2^-52.37 above a midpoint, and the double here is what it rounds to, in every format.
// - e^715 / 70 > 2^1025; gamma(172) = 171! > 2^1026; x (ln x - 1) at 2^1015 is above 2^1024.
// - 10^-324 < 2^-1076, 10^309 > 2^1026; e^711 / 2 > 2^1024.7.
// - a s goes on after 53 bits with 0001, far from a midpoint, and the double here is those bits; e^-45 < 2^-64.
// Why results other than 0 are no midpoints but where `exact` knows it (x is a binary fraction, not 0):
// - tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh: transcendental (Lindemann-Weierstrass) but acos 1 = acosh 1 = 0.
// - cbrt: the cube of a midpoint, an odd number of p + 1 bits times a power of two, has 3p + 1 bits or more.
// - exp10, exp10m1, log10p1: 10^x is rational for whole x alone, log10 for powers of ten. 10^n - 1, n > 0, and 5^n, n >= 28, are
//   odd numbers of more than 54 bits from n = 17 and 28 on; n < 0 gives no binary fraction. exp2m1, log2p1: whole x, powers of
//   two; 2^n - 1 and 1 - 2^-n have n bits.
// - i0, i1: transcendental (Siegel). lgamma, digamma, ndtr, log_ndtr, erfcinv, ndtri, i0e, i1e, and tgamma but for whole
//   numbers: nothing is known.
// - sinpi, cospi, tanpi: rational for multiples of 1/2, and tanpi of 1/4, alone (Niven). sinc: algebraic, not 0, over pi.
inline constexpr double past_one = 0x1.0000000000001p0, before_one = 0x1.fffffffffffffp-1;
inline constexpr elementary elementary_functions[] = {
    {"exp", [](const series& x) { return exp(x); }, {{-110, -746}, 0}, {{110, 710}, inf}, one_at_zero},
    {"exp2", [](const series& x) { return exp2(x); }, {{-160, -1076}, 0}, {{130, 1024}, inf}, exp2_exact},
    {"expm1", [](const series& x) { return expm1(x); }, {{-110, -40}, -1}, {{110, 710}, inf}, zero_itself},
    {"log", [](const series& x) { return log(x); }, {-least, nan}, {inf, inf}, log_exact},
    {"log2", [](const series& x) { return log(x) / log(x.constant(2)); }, {-least, nan}, {inf, inf}, log2_exact},
    {"log10", [](const series& x) { return log(x) / log(x.constant(10)); }, {-least, nan}, {inf, inf}, log10_exact},
    {"log1p", [](const series& x) { return log1p(x); }, {-1, nan}, {inf, inf}, log1p_exact},
    {"rsqrt", [](const series& x) { return rsqrt(x); }, {-least, nan}, {inf, 0}, rsqrt_exact},
    {"sin", [](const series& x) { return sin(x); }, {-inf, nan}, {inf, nan}, zero_itself, nullptr, wave::sin},
    {"cos", [](const series& x) { return cos(x); }, {-inf, nan}, {inf, nan}, one_at_zero, nullptr, wave::cos},
    {"tan", [](const series& x) { return tan(x); }, {-inf, nan}, {inf, nan}, zero_itself, nullptr, wave::tan},
    {"asin", [](const series& x) { return asin(x); }, {-past_one, nan}, {past_one, nan}, zero_itself},
    {"acos", [](const series& x) { return acos(x); }, {-past_one, nan}, {past_one, nan}, zero_at_one},
    {"atan",
     [](const series& x) { return atan(x); },
     {{-0x1p26, -0x1p53}, -0x1.921fb54442d18p0},
     {{0x1p26, 0x1p53}, 0x1.921fb54442d18p0},
     zero_itself},
    {"sinh", [](const series& x) { return sinh(x); }, {{-110, -711}, -inf}, {{110, 711}, inf}, zero_itself},
    {"cosh", [](const series& x) { return cosh(x); }, {{-110, -711}, inf}, {{110, 711}, inf}, one_at_zero},
    {"asinh", [](const series& x) { return asinh(x); }, {-inf, -inf}, {inf, inf}, zero_itself},
    {"acosh", [](const series& x) { return acosh(x); }, {before_one, nan}, {inf, inf}, zero_at_one},
    {"atanh", [](const series& x) { return atanh(x); }, {-1, nan}, {1, nan}, poles_at_ones},
    {"cbrt", [](const series& x) { return cbrt(x); }, {-inf, -inf}, {inf, inf}, zero_itself},
    {"exp10",
     [](const series& x) { return exp(x * log(x.constant(10))); },
     {{-46, -324}, 0},
     {{39, 309}, inf},
     exp10_exact},
    {"exp2m1",
     [](const series& x) { return expm1(x * log(x.constant(2))); },
     {{-26, -55}, -1},
     {{130, 1024}, inf},
     exp2m1_exact},
    {"exp10m1",
     [](const series& x) { return expm1(x * log(x.constant(10))); },
     {{-8, -17}, -1},
     {{39, 309}, inf},
     exp10m1_exact},
    {"log2p1", [](const series& x) { return log1p(x) / log(x.constant(2)); }, {-1, nan}, {inf, inf}, log1p_exact},
    {"log10p1", [](const series& x) { return log1p(x) / log(x.constant(10)); }, {-1, nan}, {inf, inf}, log1p_exact},
    {"sinpi",
     [](const series& x) { return sinpi(x); },
     {{-0x1p23, -0x1p52}, -0.0},
     {{0x1p23, 0x1p52}, 0},
     sinpi_exact,
     nullptr,
     wave::sinpi},
    {"cospi", cospi, {{-0x1p24, -0x1p53}, 1}, {{0x1p24, 0x1p53}, 1}, cospi_exact, nullptr, wave::cospi},
    {"tanpi",
     [](const series& x) { return sinpi(x) / cospi(x); },
     {{-0x1p24, -0x1p53}, -0.0},
     {{0x1p24, 0x1p53}, 0},
     tanpi_exact,
     nullptr,
     wave::tanpi},
    {"sinc",
     [](const series& x) { return sinpi(x) / (x.pi() * x); },
     {{-0x1p23, -0x1p52}, 0},
     {{0x1p23, 0x1p52}, 0},
     sinc_exact,
     nullptr,
     wave::sinc},
    {"tanh", [](const series& x) { return tanh(x); }, {{-10, -20}, -1}, {{10, 20}, 1}, zero_itself},
    {"erf", [](const series& x) { return erf(x); }, {{-8, -7}, -1}, {{8, 7}, 1}, zero_itself},
    {"erfc", [](const series& x) { return erfc(x); }, {{-8, -7}, 2}, {{11, 28}, 0}, one_at_zero},
    {"erfcinv", [](const series& x) { return erfcinv(x); }, {-least, nan}, {0x1.0000000000001p1, nan}, erfcinv_exact},
    {"ndtr", normal_distribution, {{-16, -39}, 0}, {{6, 10}, 1}, half_at_zero},
    {"log_ndtr", log_normal_distribution, {{-0x1p65, -0x1p513}, -inf}, {{16, 39}, -0.0}, nothing},
    {"ndtri",
     [](const series& x) { return -sqrt(x.constant(2)) * erfcinv(x * 2); },
     {-least, nan},
     {past_one, nan},
     ndtri_exact},
    {"i0", bessel_i0, {{-93, -715}, inf}, {{93, 715}, inf}, one_at_zero},
    {"i1", bessel_i1, {{-93, -715}, -inf}, {{93, 715}, inf}, half_outwards},
    {"i0e", bessel_i0e, {-inf, 0}, {inf, 0}, one_at_zero},
    {"i1e", bessel_i1e, {-inf, -0.0}, {inf, 0}, half_inwards},
    {"lgamma", lgamma, {{-0x1p23, -0x1p52}, inf}, {{0x1p122, 0x1p1015}, inf}, lgamma_exact},
    {"tgamma", tgamma, {{-0x1p23, -0x1p52}, nan}, {{36, 172}, inf}, tgamma_exact},
    {"digamma", digamma, {{-0x1p23, -0x1p52}, nan}, {inf, inf}, digamma_exact},
    {"erfinv", [](const series& x) { return erfinv(x); }, {-1, nan}, {1, nan}, poles_at_ones},
    {"sigmoid", [](const series& x) { return 1 / (1 + exp(-x)); }, {{-110, -746}, 0}, {{110, 40}, 1}, half_at_zero},
    {"log_sigmoid",
     [](const series& x) { return -log1p(exp(-x)); },
     {{-110, -40}, 0, true},
     {{110, 746}, -0.0},
     nothing},
    {"silu",
     [](const series& x) { return x / (1 + exp(-x)); },
     {{-128, -760}, -0.0},
     {{128, 40}, 0, true},
     half_and_more},
    {"gelu",
     [](const series& x) { return x * normal_distribution(x); },
     {{-16, -39}, -0.0},
     {{16, 10}, 0, true},
     half_and_more},
    {"gelu_tanh",
     [](const series& x) { return x / (1 + exp(-gelu_tanh_exponent(x))); },
     {{-12, -22}, -0.0},
     {{12, 8}, 0, true},
     half_and_more},
    {"mish", mish, {{-128, -760}, -0.0}, {{128, 20}, 0, true}, zero_itself},
    {"selu", selu, {{-110, -45}, -0x1.c212cc640f031p+0}, {inf, inf}, zero_itself},
    {"softsign",
     [](const series& x) { return x / (1 + abs(x)); },
     {{-0x1p26, -0x1p56}, -1},
     {{0x1p26, 0x1p56}, 1},
     zero_itself,
     [](const mpq_class& x) { return mpq_class(x / (1 + abs(x))); }},
    {"hardsigmoid",
     [](const series& x) { return x / 6 + 0.5; },
     {-3, 0},
     {3, 1},
     nothing,
     [](const mpq_class& x) { return mpq_class(x / 6 + mpq_class(1, 2)); }},
    {"hardswish",
     [](const series& x) { return x * (x + 3) / 6; },
     {-3, -0.0},
     {3, 0, true},
     half_and_more,
     [](const mpq_class& x) { return mpq_class(x * (x + 3) / 6); }},
    {"tanhshrink",
     [](const series& x) { return x - tanh(x); },
     {{-0x1p26, -0x1p55}, 0, true},
     {{0x1p26, 0x1p55}, 0, true},
     tanhshrink_exact},
};

}  // namespace elementary_detail

using elementary_detail::elementary_functions;

}  // namespace repdl::reference
