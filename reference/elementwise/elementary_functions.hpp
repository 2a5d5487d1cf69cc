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
exact_result erfinv_exact(dtype t, const number& x);
/// x/2 + r, r > 0 and tiny: silu, gelu, hardswish near 0.
exact_result half_and_more(dtype t, const number& x);
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

// Tails are for formats of at most 24 bits, numbers from 2^-149 and below 2^128:
// - A magnitude below 2^-150 is a zero; one above 2^128 overflows. e^110 > 2^158, 128 e^-128 < 2^-177,
//   16 Phi(-16) < e^-128 < 2^-184, erfc 11 < e^-121 < 2^-174; gelu_tanh at -12: 12 e^-141.
// - What lies within 2^-26, relatively, of a number of the format has that number as its rounded value:
//   1 - tanh 10 < 2 e^-20 < 2^-27, 1 - erf 8 < e^-64, 1 / (1 + 2^26). The same for x (1 - d), d < 2^-26: silu, gelu,
//   mish, tanhshrink, log_sigmoid (d |x| < e^-110).
// - a s = 1.11000010000100101100110001100... in binary goes on after 8, 11 and 24 bits with 00001, 010 and 001, far
//   from a midpoint: a s, a s (1 - e^-110) and the double here round alike.
inline constexpr elementary elementary_functions[] = {
    {"exp", [](const series& x) { return exp(x); }, {-110, 0}, {110, inf}, one_at_zero},
    {"exp2", [](const series& x) { return exp2(x); }, {-160, 0}, {130, inf}, exp2_exact},
    {"expm1", [](const series& x) { return expm1(x); }, {-110, -1}, {110, inf}, zero_itself},
    {"log", [](const series& x) { return log(x); }, {-least, nan}, {inf, inf}, log_exact},
    {"log2", [](const series& x) { return log(x) / log(x.constant(2)); }, {-least, nan}, {inf, inf}, log2_exact},
    {"log10", [](const series& x) { return log(x) / log(x.constant(10)); }, {-least, nan}, {inf, inf}, log10_exact},
    {"log1p", [](const series& x) { return log1p(x); }, {-1, nan}, {inf, inf}, log1p_exact},
    {"rsqrt", [](const series& x) { return rsqrt(x); }, {-least, nan}, {inf, 0}, rsqrt_exact},
    {"sin", [](const series& x) { return sin(x); }, {-inf, nan}, {inf, nan}, zero_itself, nullptr, 0},
    {"cos", [](const series& x) { return cos(x); }, {-inf, nan}, {inf, nan}, one_at_zero, nullptr, 1},
    {"tanh", [](const series& x) { return tanh(x); }, {-10, -1}, {10, 1}, zero_itself},
    {"erf", [](const series& x) { return erf(x); }, {-8, -1}, {8, 1}, zero_itself},
    {"erfc", [](const series& x) { return erfc(x); }, {-8, 2}, {11, 0}, one_at_zero},
    {"erfinv", [](const series& x) { return erfinv(x); }, {-1, nan}, {1, nan}, erfinv_exact},
    {"sigmoid", [](const series& x) { return 1 / (1 + exp(-x)); }, {-110, 0}, {110, 1}, half_at_zero},
    {"log_sigmoid", [](const series& x) { return -log1p(exp(-x)); }, {-110, 0, true}, {110, -0.0}, nothing},
    {"silu", [](const series& x) { return x / (1 + exp(-x)); }, {-128, -0.0}, {128, 0, true}, half_and_more},
    {"gelu", [](const series& x) { return x * normal_distribution(x); }, {-16, -0.0}, {16, 0, true}, half_and_more},
    {"gelu_tanh",
     [](const series& x) { return x / (1 + exp(-gelu_tanh_exponent(x))); },
     {-12, -0.0},
     {12, 0, true},
     half_and_more},
    {"mish", mish, {-128, -0.0}, {128, 0, true}, zero_itself},
    {"selu", selu, {-110, -1.7580993408473766}, {inf, inf}, zero_itself},
    {"softsign",
     [](const series& x) { return x / (1 + abs(x)); },
     {-0x1p26, -1},
     {0x1p26, 1},
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
     {-0x1p26, 0, true},
     {0x1p26, 0, true},
     tanhshrink_exact},
};

}  // namespace elementary_detail

using elementary_detail::elementary_functions;

}  // namespace repdl::reference
