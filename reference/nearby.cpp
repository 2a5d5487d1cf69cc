// Balls in long double of 64 bits: a value, and a bound of its error. Special operands, zeros and exponents far out are not decided.
//
// Bounds. A sum, product, quotient or root in round to nearest errs by 2^-64 of itself at most; 2^-63 is counted, which also covers
// the arithmetic of bounds. Functions: the glibc manual ("Errors in Math Functions", x86_64, long double) gives at most 5 ulps, an ulp
// being at most 2^-63 of the value: 2^-60 is counted, 8 ulps, for erfc 2^-59. What an argument's error does is bounded by the
// derivative at the end of its ball where that is greatest.
#include "reference/nearby.hpp"

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "reference/numbers/format.hpp"

namespace repdl::reference {
namespace {

#if LDBL_MANT_DIG == 64 && defined(__x86_64__)
using real = long double;
constexpr real rounding = 0x1p-63L, functional = 0x1p-60L;
constexpr real far = 11000;  // |x| of e^x

struct ball {
  real v, e = 0;
};
ball with_rounding(real v, real e, real relative = rounding) {
  return {v, (e + std::fabs(v) * relative) * (1 + 0x1p-40L)};
}
ball operator-(ball a) { return {-a.v, a.e}; }
ball operator+(ball a, ball b) { return with_rounding(a.v + b.v, a.e + b.e); }
ball operator-(ball a, ball b) { return a + -b; }
ball operator*(ball a, ball b) {
  return with_rounding(a.v * b.v, std::fabs(a.v) * b.e + std::fabs(b.v) * a.e + a.e * b.e);
}
// Where the divisor may be 0 the error is negative or not a number, which decides nothing.
ball operator/(ball a, ball b) {
  const real v = a.v / b.v, least = std::fabs(b.v) - b.e;
  if (!(least > 0)) return {0, HUGE_VALL};
  return with_rounding(v, (a.e + std::fabs(v) * b.e) / least);
}
ball exp(ball a) {
  if (!(std::fabs(a.v) < far) || !(a.e < 1)) return {0, HUGE_VALL};
  const real v = expl(a.v);
  return with_rounding(v, v * 2 * a.e, functional);  // e^d - 1 < 2 d for d < 1
}
ball expm1(ball a) {
  if (!(std::fabs(a.v) < far) || !(a.e < 1)) return {0, HUGE_VALL};
  return with_rounding(expm1l(a.v), expl(a.v) * 2 * a.e, functional);
}
ball log(ball a) {
  const real least = a.v - a.e;
  if (!(least > 0)) return {0, HUGE_VALL};
  return with_rounding(logl(a.v), a.e / least, functional);
}
ball log1p(ball a) {
  const real least = 1 + a.v - a.e;
  if (!(least > 0x1p-10L)) return {0, HUGE_VALL};
  return with_rounding(log1pl(a.v), a.e / least * 2, functional);
}
ball sqrt(ball a) {
  const real least = a.v - a.e;
  if (!(least > 0)) return {0, HUGE_VALL};
  return with_rounding(sqrtl(a.v), a.e / sqrtl(least));
}
ball atan(ball a) { return with_rounding(atanl(a.v), a.e, functional); }
ball sin(ball a) { return with_rounding(sinl(a.v), a.e, functional); }
ball cos(ball a) { return with_rounding(cosl(a.v), a.e, functional); }
// |erfc'| <= 2/sqrt(pi) e^-m^2, m the least magnitude in the ball.
ball erfc(ball a) {
  const real m = std::fabs(a.v) > a.e ? std::fabs(a.v) - a.e : 0;
  if (!(std::fabs(a.v) < 100)) return {0, HUGE_VALL};
  return with_rounding(erfcl(a.v), a.e * 1.13L * expl(-m * m) * 2, 0x1p-59L);
}

const ball one{1}, two{2}, one_half{0.5L}, pi = with_rounding(3.14159265358979323846264338327950288L, 0),
                                           ln2 = with_rounding(0.693147180559945309417232121458176568L, 0),
                                           ln10 = with_rounding(2.30258509299404568401799145468436421L, 0),
                                           selu_scale = with_rounding(1.0507009873554804934193349852946L, 0),
                                           selu_alpha = with_rounding(1.6732632423543772848170429916717L, 0);

ball logistic(ball a) { return one / (one + exp(-a)); }
// Phi(x) + x phi(x)
ball normal_slope(ball x) {
  const ball density = exp(-(x * x) * one_half) / sqrt(two * pi);
  return erfc(-x / sqrt(two)) * one_half + x * density;
}
ball bell(ball x) { return two * exp(-(x * x)) / sqrt(pi); }
ball silu_slope(ball x) {
  const ball s = logistic(x);
  return s + x * s * logistic(-x);
}
// ln(e^a + e^b)
ball log_sum(ball a, ball b) {
  const ball &most = a.v > b.v ? a : b, &least = a.v > b.v ? b : a;
  return most + log1p(exp(least - most));
}
bool is_whole(real y) { return truncl(y) == y; }
bool is_odd(real y) { return is_whole(y) && !is_whole(y / 2); }
// x^y for x > 0 or whole y
ball power(ball x, ball y) {
  if (x.v < 0 && !is_whole(y.v)) return {0, HUGE_VALL};
  const ball p = exp(y * log(ball{std::fabs(x.v)}));
  return x.v < 0 && is_odd(y.v) ? -p : p;
}
// y x^(y - 1)
ball power_slope(ball x, ball y) {
  if (y.v == 0 || (x.v < 0 && !is_whole(y.v))) return {0, HUGE_VALL};
  const ball p = y * exp((y - one) * log(ball{std::fabs(x.v)}));
  return x.v < 0 && !is_odd(y.v) ? -p : p;
}
// Within (0, 1) and further than its rounding from the margins, if there are any.
bool is_inside(real x, double margin) {
  return x > 0 && x < 1 && (std::isnan(margin) || (x > margin && 1 - x > margin * 1.01L));
}
// What passes unchanged beyond the threshold of w, and what is below it.
ball split_at(ball w, double threshold, ball beyond, ball below) {
  if (std::fabs(w.v - threshold) <= w.e) return {0, HUGE_VALL};
  return w.v > threshold ? beyond : below;
}

// Operands are numbers other than 0.
using formula = ball (*)(const ball* x, const double* o);
struct row {
  std::string_view name;
  int arity;
  formula f;
};
constexpr real never = HUGE_VALL;
const row rows[] = {
    {"addcmul", 3, [](const ball* x, const double* o) { return x[0] + ball{o[0]} * x[1] * x[2]; }},
    {"addcdiv", 3, [](const ball* x, const double* o) { return x[0] + ball{o[0]} * x[1] / x[2]; }},
    {"lerp", 3, [](const ball* x, const double*) { return x[0] + x[2] * (x[1] - x[0]); }},
    {"lerp_scalar", 2, [](const ball* x, const double* o) { return x[0] + ball{o[0]} * (x[1] - x[0]); }},
    {"sum_of_products", 4, [](const ball* x, const double*) { return x[0] * x[1] + x[2] * x[3]; }},
    {"difference_of_products", 4, [](const ball* x, const double*) { return x[0] * x[1] - x[2] * x[3]; }},
    {"hypot", 2, [](const ball* x, const double*) { return sqrt(x[0] * x[0] + x[1] * x[1]); }},
    {"xlogy", 2, [](const ball* x, const double*) { return x[0] * log(x[1]); }},
    {"logaddexp", 2, [](const ball* x, const double*) { return log_sum(x[0], x[1]); }},
    {"logaddexp2", 2, [](const ball* x, const double*) { return log_sum(x[0] * ln2, x[1] * ln2) / ln2; }},
    {"atan2", 2,
     [](const ball* x, const double*) {
       const ball a = atan(x[0] / x[1]);
       return x[1].v > 0 ? a : x[0].v > 0 ? a + pi : a - pi;
     }},
    {"pow", 2, [](const ball* x, const double*) { return power(x[0], x[1]); }},
    {"pow_scalar", 1, [](const ball* x, const double* o) { return power(x[0], ball{o[0]}); }},
    {"scalar_pow", 1, [](const ball* x, const double* o) { return power(ball{o[0]}, x[0]); }},
    {"elu", 1,
     [](const ball* x, const double* o) {
       return x[0].v > 0 ? ball{o[1]} * x[0] : ball{o[1]} * ball{o[0]} * expm1(ball{o[2]} * x[0]);
     }},
    {"celu", 1,
     [](const ball* x, const double* o) { return x[0].v > 0 ? x[0] : ball{o[0]} * expm1(x[0] / ball{o[0]}); }},
    {"softplus", 1,
     [](const ball* x, const double* o) {
       const ball w = ball{o[0]} * x[0];
       return split_at(w, o[1], x[0], log_sum(ball{0}, w) / ball{o[0]});
     }},
    {"logit", 1,
     [](const ball* x, const double* o) {
       return is_inside(x[0].v, o[0]) ? log(x[0] / (one - x[0])) : ball{0, never};
     }},
    {"log1p_backward", 2, [](const ball* x, const double*) { return x[0] / (one + x[1]); }},
    {"rsqrt_backward", 2, [](const ball* x, const double*) { return -x[0] * x[1] * x[1] * x[1] * one_half; }},
    {"reciprocal_backward", 2, [](const ball* x, const double*) { return -x[0] * x[1] * x[1]; }},
    {"expm1_backward", 2, [](const ball* x, const double*) { return x[0] * (x[1] + one); }},
    {"div_backward_y", 3, [](const ball* x, const double*) { return -x[0] * x[1] / (x[2] * x[2]); }},
    {"addcdiv_backward_z", 3, [](const ball* x, const double* o) { return -x[0] * ball{o[0]} * x[1] / (x[2] * x[2]); }},
    {"lerp_backward_x", 2, [](const ball* x, const double*) { return x[0] * (one - x[1]); }},
    {"lerp_backward_weight", 3, [](const ball* x, const double*) { return x[0] * (x[2] - x[1]); }},
    {"hypot_backward", 3, [](const ball* x, const double*) { return x[0] * x[1] / x[2]; }},
    {"atan2_backward_y", 3, [](const ball* x, const double*) { return x[0] * x[2] / (x[2] * x[2] + x[1] * x[1]); }},
    {"atan2_backward_x", 3, [](const ball* x, const double*) { return -x[0] * x[1] / (x[2] * x[2] + x[1] * x[1]); }},
    {"xlogy_backward_x", 3, [](const ball* x, const double*) { return x[0] * log(x[2]); }},
    {"xlogy_backward_y", 3, [](const ball* x, const double*) { return x[0] * x[1] / x[2]; }},
    {"logaddexp_backward", 3, [](const ball* x, const double*) { return x[0] * logistic(x[1] - x[2]); }},
    {"logaddexp2_backward", 3, [](const ball* x, const double*) { return x[0] * logistic((x[1] - x[2]) * ln2); }},
    {"exp2_backward", 2, [](const ball* x, const double*) { return x[0] * x[1] * ln2; }},
    {"log2_backward", 2, [](const ball* x, const double*) { return x[0] / x[1] / ln2; }},
    {"log10_backward", 2, [](const ball* x, const double*) { return x[0] / x[1] / ln10; }},
    {"tanh_backward", 2, [](const ball* x, const double*) { return x[0] * (one - x[1] * x[1]); }},
    {"sigmoid_backward", 2, [](const ball* x, const double*) { return x[0] * x[1] * (one - x[1]); }},
    {"softsign_backward", 2,
     [](const ball* x, const double*) {
       const ball d = one + ball{std::fabs(x[1].v)};
       return x[0] / (d * d);
     }},
    {"logit_backward", 2,
     [](const ball* x, const double* o) {
       return is_inside(x[1].v, o[0]) ? x[0] / (x[1] * (one - x[1])) : ball{0, never};
     }},
    {"sin_backward", 2, [](const ball* x, const double*) { return x[0] * cos(x[1]); }},
    {"cos_backward", 2, [](const ball* x, const double*) { return -x[0] * sin(x[1]); }},
    {"tan_backward", 2, [](const ball* x, const double*) { return x[0] * (one + x[1] * x[1]); }},
    {"asin_backward", 2, [](const ball* x, const double*) { return x[0] / sqrt((one - x[1]) * (one + x[1])); }},
    {"acos_backward", 2, [](const ball* x, const double*) { return -x[0] / sqrt((one - x[1]) * (one + x[1])); }},
    {"atan_backward", 2, [](const ball* x, const double*) { return x[0] / (one + x[1] * x[1]); }},
    {"sinh_backward", 2, [](const ball* x, const double*) { return x[0] * (exp(x[1]) + exp(-x[1])) * one_half; }},
    {"cosh_backward", 2, [](const ball* x, const double*) { return x[0] * (exp(x[1]) - exp(-x[1])) * one_half; }},
    {"asinh_backward", 2, [](const ball* x, const double*) { return x[0] / sqrt(one + x[1] * x[1]); }},
    {"acosh_backward", 2,
     [](const ball* x, const double*) {
       return x[1].v > 1 ? x[0] / sqrt((x[1] - one) * (x[1] + one)) : ball{0, never};
     }},
    {"atanh_backward", 2,
     [](const ball* x, const double*) {
       return std::fabs(x[1].v) < 1 ? x[0] / ((one - x[1]) * (one + x[1])) : ball{0, never};
     }},
    {"erf_backward", 2, [](const ball* x, const double*) { return x[0] * bell(x[1]); }},
    {"erfc_backward", 2, [](const ball* x, const double*) { return -x[0] * bell(x[1]); }},
    {"erfinv_backward", 2, [](const ball* x, const double*) { return x[0] * sqrt(pi) * one_half * exp(x[1] * x[1]); }},
    {"ndtri_backward", 2,
     [](const ball* x, const double*) { return x[0] * sqrt(two * pi) * exp(x[1] * x[1] * one_half); }},
    {"silu_backward", 2, [](const ball* x, const double*) { return x[0] * silu_slope(x[1]); }},
    {"mish_backward", 2,
     [](const ball* x, const double*) {
       // tanh(ln(1 + w)) = w (w + 2) / (w (w + 2) + 2), 1 - its square = 4 (1 + w)^2 / (w (w + 2) + 2)^2
       const ball w = exp(x[1]), n = w * (w + two), d = n + two;
       return x[0] * (n / d + x[1] * ball{4} * w * (one + w) / (d * d));
     }},
    {"log_sigmoid_backward", 2, [](const ball* x, const double*) { return x[0] * logistic(-x[1]); }},
    {"gelu_backward", 2, [](const ball* x, const double*) { return x[0] * normal_slope(x[1]); }},
    {"gelu_tanh_backward", 2,
     [](const ball* x, const double*) {
       const ball a = sqrt(two / pi), square = x[1] * x[1], k = ball{44715} / ball{1000000};
       const ball u = a * x[1] * (one + k * square), slope = a * (one + ball{3} * k * square);
       return x[0] * (logistic(two * u) + two * x[1] * slope * logistic(two * u) * logistic(-two * u));
     }},
    {"elu_backward", 2,
     [](const ball* x, const double* o) {
       const ball scaled = x[0] * ball{o[1]};
       return x[1].v > 0 ? scaled : scaled * ball{o[0]} * ball{o[2]} * exp(ball{o[2]} * x[1]);
     }},
    {"selu_backward", 2,
     [](const ball* x, const double*) { return x[0] * selu_scale * (x[1].v > 0 ? one : selu_alpha * exp(x[1])); }},
    {"celu_backward", 2,
     [](const ball* x, const double* o) { return x[1].v > 0 ? x[0] : x[0] * exp(x[1] / ball{o[0]}); }},
    {"softplus_backward", 2,
     [](const ball* x, const double* o) {
       const ball w = ball{o[0]} * x[1];
       return split_at(w, o[1], x[0], x[0] * logistic(w));
     }},
    {"glu", 2, [](const ball* x, const double*) { return x[0] * logistic(x[1]); }},
    {"swiglu", 2, [](const ball* x, const double*) { return x[0] * x[1] * logistic(x[0]); }},
    {"geglu", 2, [](const ball* x, const double*) { return x[0] * x[1] * erfc(-x[0] / sqrt(two)) * one_half; }},
    {"glu_backward_b", 3, [](const ball* x, const double*) { return x[0] * x[1] * logistic(x[2]) * logistic(-x[2]); }},
    {"swiglu_backward_a", 3, [](const ball* x, const double*) { return x[0] * x[2] * silu_slope(x[1]); }},
    {"geglu_backward_a", 3, [](const ball* x, const double*) { return x[0] * x[2] * normal_slope(x[1]); }},
    {"pow_backward_x", 3, [](const ball* x, const double*) { return x[0] * power_slope(x[1], x[2]); }},
    {"pow_backward_y", 3,
     [](const ball* x, const double*) { return x[1].v > 0 ? x[0] * power(x[1], x[2]) * log(x[1]) : ball{0, never}; }},
    {"pow_scalar_backward", 2, [](const ball* x, const double* o) { return x[0] * power_slope(x[1], ball{o[0]}); }},
    {"scalar_pow_backward", 2,
     [](const ball* x,
        const double* o) { return o[0] > 0 ? x[0] * power(ball{o[0]}, x[1]) * log(ball{o[0]}) : ball{0, never}; }},
};

// RN_t of a number other than 0.
std::uint64_t rounded(dtype t, real v) {
  std::uint64_t significand;
  std::uint16_t head;
  std::memcpy(&significand, &v, sizeof significand);
  std::memcpy(&head, reinterpret_cast<const char*>(&v) + sizeof significand, sizeof head);
  return round(t, (head & 0x8000) != 0, significand, (head & 0x7fff) - 16383 - 63, false);
}

template <std::size_t I>
bool nearby(dtype t, const std::uint64_t* in, const double* options, std::uint64_t* out) {
  ball x[4];
  for (int i = 0; i < rows[I].arity; ++i) {
    const double v = std::bit_cast<double>(convert(t, dtype::f64, in[i]));
    if (!std::isfinite(v) || v == 0) return false;
    x[i] = {v};
  }
  const ball b = rows[I].f(x, options);
  const real low = b.v - b.e, high = b.v + b.e;
  if (!(b.e < HUGE_VALL) || !std::isfinite(b.v) || low == 0 || high == 0 || (low < 0) != (high < 0)) return false;
  // A bit more than the ends: they are rounded themselves.
  const std::uint64_t a = rounded(t, low - std::fabs(low) * 0x1p-62L),
                      c = rounded(t, high + std::fabs(high) * 0x1p-62L);
  *out = a;
  return a == c;
}

template <std::size_t... I>
nearby_function find(std::string_view name, std::index_sequence<I...>) {
  nearby_function f = nullptr;
  (void)((rows[I].name == name && (f = nearby<I>, true)) || ...);
  return f;
}
nearby_function find(std::string_view name) { return find(name, std::make_index_sequence<std::size(rows)>()); }
#else
nearby_function find(std::string_view) { return nullptr; }
#endif

}  // namespace

nearby_function nearby_named(std::string_view name) { return find(name); }

}  // namespace repdl::reference
