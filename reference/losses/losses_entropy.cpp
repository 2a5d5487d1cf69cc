// binary_cross_entropy_with_logits, binary_cross_entropy, kl_div and their gradients. A loss is a rational number and rational
// multiples of one function: of ln(1 + e^-d) for different d >= 0, of ln a, or of e^t for different t != 0. It is rational only
// where these cancel: the first are linearly independent over the rationals beside 1 (each 1 + z^k has a cyclotomic factor that
// those with smaller k have not, and e is transcendental), so are the last (Lindemann-Weierstrass), and logarithms over a coprime
// base. Otherwise it is transcendental (Baker for logarithms), and MPFR's intervals decide.
#include <map>
#include <stdexcept>

#include "reference/attributes.hpp"
#include "reference/losses/loss_element.hpp"

namespace repdl::reference {
namespace {

/// From here on e^-d is of no size that counts, only of a sign: below 2^-8000, beside multiples of 2^-4300.
constexpr long far_exponent = 6000;
/// e^d overflows, whatever it is multiplied by and whatever is beside it.
constexpr long overflowing = 3000;

/// part, and where there is no enclosure `rest`, the sign of what is left out; else a transcendental number.
struct real {
  mpq_class part;
  int rest = 0;
  std::function<interval(mpfr_prec_t)> enclosure;

  int sign() const {
    if (!enclosure) return part != 0 ? sgn(part) : rest;
    for (mpfr_prec_t p = 128; p < 1 << 17; p *= 2) {
      const interval v = enclosure(p);
      if (mpfr_sgn(v.lo()) > 0) return 1;
      if (mpfr_sgn(v.hi()) < 0) return -1;
    }
    throw std::logic_error("reference: the sign of a loss");
  }
};

enum class function { logistic, logarithm, exponential };

interval value_of(function f, mpfr_prec_t p, const mpq_class& at) {
  const interval x(p, at);
  return f == function::logistic ? log1p(exp(-x)) : f == function::logarithm ? log(x) : exp(-x);
}

/// The exponents of rationals over a coprime base: whether the product of a^c is 1.
bool cancels(const std::map<mpq_class, mpq_class>& logarithms) {
  std::vector<mpz_class> base;
  const std::function<void(mpz_class)> insert = [&](mpz_class a) {
    for (std::size_t i = 0; i < base.size() && a != 1; ++i) {
      mpz_class common = gcd(a, base[i]);
      if (common == 1) continue;
      const mpz_class other = base[i] / common;
      base.erase(base.begin() + static_cast<std::ptrdiff_t>(i));
      a /= common;
      insert(common);
      insert(other);
      i = static_cast<std::size_t>(-1);
    }
    if (a != 1) base.push_back(a);
  };
  for (const auto& [a, c] : logarithms) {
    insert(a.get_num());
    insert(a.get_den());
  }
  for (const mpz_class& b : base) {
    mpq_class exponent;
    for (const auto& [a, c] : logarithms) {
      mpz_class rest;
      const auto times = [&](const mpz_class& of) {
        return static_cast<unsigned long>(mpz_remove(rest.get_mpz_t(), of.get_mpz_t(), b.get_mpz_t()));
      };
      exponent += c * mpq_class(times(a.get_num())) - c * mpq_class(times(a.get_den()));
    }
    if (exponent != 0) return false;
  }
  return true;
}

/// part + the sum of c f(at), as the pairs of `terms`. Exponentials are of -at.
struct combination {
  function f = function::logistic;
  mpq_class part;
  std::map<mpq_class, mpq_class> terms;

  void add(const mpq_class& at, const mpq_class& c) {
    mpq_class& sum = terms[at];
    sum += c;
    if (sum == 0) terms.erase(at);
  }
  void add(const combination& o, const mpq_class& factor) {
    f = o.f;
    part += o.part * factor;
    for (const auto& [at, c] : o.terms) add(at, c * factor);
  }
  static interval sum_of(function f, const std::map<mpq_class, mpq_class>& terms, const mpq_class& shift,
                         mpfr_prec_t p) {
    interval sum(p);
    for (const auto& [at, c] : terms) sum = sum + interval(p, c) * value_of(f, p, at - shift);
    return sum;
  }
  real value() const {
    real r;
    r.part = part;
    if (terms.empty()) return r;
    if (f == function::logarithm) {
      bool plus = false, minus = false;
      for (const auto& [at, c] : terms) ((c > 0) == (at > 1) ? plus : minus) = true;
      const interval sum = sum_of(f, terms, 0, 2000);
      const bool around_zero = mpfr_sgn(sum.lo()) <= 0 && mpfr_sgn(sum.hi()) >= 0;
      if (plus && minus && around_zero && cancels(terms)) return r;
      r.enclosure = [*this](mpfr_prec_t p) { return interval(p, part) + sum_of(f, terms, 0, p); };
      return r;
    }
    // The sign of a sum of exponentials, by the greatest.
    const auto sign_of = [](const std::map<mpq_class, mpq_class>& of) {
      const interval sum = sum_of(function::exponential, of, of.begin()->first, 12000);
      if (mpfr_cmp_si_2exp(sum.lo(), 1, -6000) > 0) return 1;
      if (mpfr_cmp_si_2exp(sum.hi(), -1, -6000) < 0) return -1;
      throw std::logic_error("reference: the sign of exponentials");
    };
    if (f == function::exponential && terms.begin()->first < -overflowing) {
      r.part = power_of_two(3000) * sign_of(terms);
      return r;
    }
    std::map<mpq_class, mpq_class> near, tiny;
    for (const auto& [at, c] : terms) (at > far_exponent ? tiny : near)[at] = c;
    const int rest = tiny.empty() ? 0 : sign_of(tiny);
    if (near.empty()) {
      r.rest = rest;
      return r;
    }
    r.enclosure = [f = f, part = part, near, rest](mpfr_prec_t p) {
      return interval(p, part + rest * power_of_two(-7000)) + sum_of(f, near, 0, p);
    };
    return r;
  }
};

rounded_loss special(dtype t, const element& v) {
  const std::uint64_t bits = v.is(number_kind::nan)        ? nan_bits(t)
                             : v.is(number_kind::infinite) ? infinity_bits(t, v.negative)
                                                           : zero_bits(t, v.negative);
  return {bits, outcome_of_pattern(t, bits)};
}
/// RN(factor v), factor != 0; an exact zero is +0.
rounded_loss rounded(dtype t, const real& v, const mpq_class& factor) {
  rounded_loss r{};
  if (v.enclosure) {
    r.bits = decide(
        t, [&](mpfr_prec_t p) { return interval(p, factor) * v.enclosure(p); }, &r.where);
  } else if (v.rest != 0) {
    r.bits = round_beside(t, (v.part + v.rest * power_of_two(-7000)) * factor, v.part * factor, &r.where);
  } else {
    r.bits = round_exact(t, v.part * factor, &r.where);
  }
  return r;
}

/// factor (a combination), or a number that is not finite, or a zero with a sign.
struct summand {
  bool is_special = false;
  element value;
  element factor = element::of(mpq_class(1));
  combination inner;

  explicit summand(const element& v) : is_special(true), value(v) {}
  summand(const element& by, combination of) : factor(by), inner(std::move(of)) {}
};
/// factor v of a factor 0 or infinite.
element extreme(const element& factor, const real& v) {
  const int sign = v.sign();
  return times(factor, sign == 0 ? element::zero() : element::of(mpq_class(sign)));
}
rounded_loss rounded(dtype t, const summand& s) {
  if (s.is_special) return special(t, s.value);
  if (!s.factor.is(number_kind::finite)) return special(t, extreme(s.factor, s.inner.value()));
  const real v = s.inner.value();
  if (!v.enclosure && v.rest == 0 && v.part == 0) return special(t, element::zero(s.factor.negative));
  return rounded(t, v, s.factor.value);
}

bool any_nan(std::initializer_list<const element*> all) {
  for (const element* e : all)
    if (e->is(number_kind::nan)) return true;
  return false;
}
const element one = element::of(mpq_class(1));

summand with_logits(const element& x, const element& t, const element& w, const element& q) {
  if (any_nan({&x, &t, &w, &q})) return summand(element::nan());
  if (x.is(number_kind::infinite)) {
    const element factor = times(w, x.negative ? times(q, t) : difference(one, t));
    return summand(factor.is(number_kind::zero) ? element::zero() : times(factor, element::infinity(false)));
  }
  if (!t.is_number() || !q.is_number()) {
    const element c = plus(one, times(difference(q, one), t));
    return summand(times(w, plus(times(difference(one, t), x), times(c, one))));  // the logarithm is positive
  }
  const mpq_class c = 1 + (q.value - 1) * t.value;
  combination v;
  if (x.value < 0) v.part = -c * x.value;
  v.part += (1 - t.value) * x.value;
  if (c != 0) v.add(abs(x.value), c);
  return {w, v};
}

summand cross_entropy_of(const element& x, const element& t, const element& w) {
  if (any_nan({&x, &t, &w}) || !x.is_number() || x.value < 0 || x.value > 1) return summand(element::nan());
  if (!t.is_number()) return summand(element::nan());  // inf - inf, or inf times ln 1
  combination v;
  v.f = function::logarithm;
  const auto add = [&](const mpq_class& of, const mpq_class& factor) {
    if (of == 1 || factor == 0) return;
    bool clamped = of == 0;
    if (!clamped && of < power_of_two(-100)) {
      const interval sum = log(interval(200, of)) + interval(200, mpq_class(100));
      if ((mpfr_sgn(sum.lo()) < 0) != (mpfr_sgn(sum.hi()) < 0)) throw std::logic_error("reference: ln x = -100");
      clamped = mpfr_sgn(sum.hi()) < 0;
    }
    if (clamped) {
      v.part += 100 * factor;
    } else {
      v.add(of, -factor);
    }
  };
  add(x.value, t.value);
  add(1 - x.value, 1 - t.value);
  return {w, v};
}

summand divergence(const element& x, const element& t, bool log_target) {
  using enum number_kind;
  if (any_nan({&x, &t})) return summand(element::nan());
  if (log_target) {
    if (t.is(infinite)) {
      if (t.negative) return summand(x.is_number() ? element::zero(true) : element::nan());
      return summand(difference(t, x));
    }
    if (x.is(infinite)) return summand(negated(x));
    combination v;
    v.f = function::exponential;
    if (t.value == 0) {
      v.part = -x.value;
    } else if (t.value != x.value) {
      v.add(-t.value, t.value - x.value);
    }
    return {one, v};
  }
  if (t.is(zero)) return summand(x.is_number() ? element::zero() : element::nan());
  if (t.negative) return summand(element::nan());
  if (t.is(infinite)) return summand(difference(t, x));
  if (x.is(infinite)) return summand(negated(x));
  combination v;
  v.f = function::logarithm;
  v.part = -t.value * x.value;
  if (t.value != 1) v.add(t.value, t.value);
  return {one, v};
}

/// f of (1 - t) / (1 + e^-x) - b / (1 + e^x), all finite.
real slope_of(const mpq_class& x, const mpq_class& t, const mpq_class& b) {
  const mpq_class a = 1 - t, c = a + b;
  real r;
  if (x == 0) {
    r.part = (a - b) / 2;
  } else if (c == 0) {
    r.part = a;
  } else if (abs(x) > far_exponent) {
    r.part = x > 0 ? a : mpq_class(-b);
    r.rest = x > 0 ? -sgn(c) : sgn(c);
  } else {
    r.enclosure = [=](mpfr_prec_t p) {
      const interval e = exp(-interval(p, mpq_class(abs(x)))), unit(p, mpq_class(1));
      const mpq_class whole = x > 0 ? a : mpq_class(-b), shrunk = x > 0 ? mpq_class(-b) : a;
      return (interval(p, whole) + interval(p, shrunk) * e) / (unit + e);
    };
  }
  return r;
}

rounded_loss scaled_slope(dtype t, const element& factor, const real& v, const mpq_class& by) {
  if (!factor.is(number_kind::finite)) return special(t, extreme(factor, v));
  if (!v.enclosure && v.rest == 0 && v.part == 0) return special(t, element::zero(factor.negative));
  return rounded(t, v, factor.value * by);
}
rounded_loss rounded(dtype t, const element& v, const mpq_class& by) {
  if (!v.is(number_kind::finite)) return special(t, v);
  real r;
  r.part = v.value;
  return rounded(t, r, by);
}

/// in: g, then as the loss.
rounded_loss gradient(std::string_view op, dtype type, const std::vector<element>& in, bool log_target,
                      std::int64_t n) {
  using enum number_kind;
  const mpq_class by(mpz_class(1), mpz_class(static_cast<long>(n)));
  const element &g = in[0], &x = in[1], &t = in[2];
  if (op.starts_with("kl_div")) {
    if (!log_target) return rounded(type, negated(times(g, t)), by);
    if (any_nan({&g, &t})) return special(type, element::nan());
    if (t.is(infinite)) return special(type, negated(times(g, t.negative ? element::zero() : t)));
    if (!g.is(finite)) return special(type, negated(g));
    combination v;
    v.f = function::exponential;
    if (t.value == 0) {
      v.part = 1;
    } else {
      v.add(-t.value, 1);
    }
    return rounded(type, v.value(), -g.value * by);
  }
  const element product = times(g, in[3]);
  if (op.starts_with("binary_cross_entropy_with_logits")) {
    const element &q = in[4], b = times(q, t), a = difference(one, t);
    if (any_nan({&product, &x, &a, &b})) return special(type, element::nan());
    if (a.is_number() && b.is_number()) {
      real v;
      if (x.is_number()) {
        v = slope_of(x.value, t.value, b.value);
      } else {
        v.part = x.negative ? mpq_class(-b.value) : a.value;
      }
      return scaled_slope(type, product, v, by);
    }
    const element rising = x.is(infinite) ? (x.negative ? element::zero() : one) : one;
    const element falling = x.is(infinite) && !x.negative ? element::zero() : one;
    return rounded(type, times(product, difference(times(a, rising), times(b, falling))), by);
  }
  const element d = difference(x, t);
  mpq_class divisor(mpz_class(1), mpz_class("1000000000000"));
  if (x.is_number() && x.value * (1 - x.value) > divisor) divisor = x.value * (1 - x.value);
  return rounded(type, scaled(times(product, d), 1 / divisor), by);
}

summand loss_of(std::string_view op, const std::vector<element>& in, bool log_target) {
  if (op.starts_with("kl_div")) return divergence(in[0], in[1], log_target);
  if (op.starts_with("binary_cross_entropy_with_logits")) return with_logits(in[0], in[1], in[2], in[3]);
  return cross_entropy_of(in[0], in[1], in[2]);
}

/// How many operands the operation has, absent ones included.
std::size_t operands_of(std::string_view op) {
  const std::size_t loss = op.starts_with("kl_div") ? 2 : op.starts_with("binary_cross_entropy_with_logits") ? 4 : 3;
  return loss + (op.ends_with("_backward") ? 1 : 0);
}

}  // namespace

std::uint64_t entropy_element(std::string_view op, dtype t, const std::uint64_t* in, double log_target, std::int64_t n,
                              outcome* where) {
  std::vector<element> of;
  for (std::size_t i = 0; i < operands_of(op); ++i) of.push_back(element::of(t, in[i]));
  const rounded_loss r = op.ends_with("_backward") ? gradient(op, t, of, log_target != 0, n)
                                                   : rounded(t, loss_of(op, of, log_target != 0));
  if (where != nullptr) *where = r.where;
  return r.bits;
}

array loss_of_entropy(std::string_view op, const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  const auto reduction = attribute_or<std::string>(attrs, "reduction", "mean");
  const bool log_target = attribute_or(attrs, "log_target", false), gradients = op.ends_with("_backward");
  const std::size_t first = gradients ? 1 : 0;
  const dtype type = in.at(0).type;
  shape_list shape;
  for (std::size_t i = first; i < in.size(); ++i)
    if (!in[i].absent()) shape = broadcast_shape(shape, in[i].shape);
  const std::int64_t n = count_of(shape);
  const std::int64_t divisor = reduction == "mean" ? n : reduction != "batchmean" ? 1 : shape.empty() ? 1 : shape[0];
  const bool each = reduction == "none";
  if (gradients && in[0].shape != (each ? shape : shape_list{})) throw std::invalid_argument("reference: g of a loss");
  array out(type, each || gradients ? shape : shape_list{});
  const auto put = [&](std::int64_t i, const rounded_loss& r) {
    out.set(index(i), r.bits);
    if (where != nullptr) where->push_back(r.where);
  };
  bool nan = false, plus = false, minus = false;
  combination sum;
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<element> of;
    for (std::size_t k = 0; k < operands_of(op); ++k)
      of.push_back(k >= in.size() || in[k].absent() ? one : operand(in[k], shape, i));
    if (gradients) {
      put(i, gradient(op, type, of, log_target, divisor));
      continue;
    }
    const summand s = loss_of(op, of, log_target);
    if (each) {
      put(i, rounded(type, s));
      continue;
    }
    if (!s.is_special && s.factor.is_number()) {
      if (s.factor.value != 0) sum.add(s.inner, s.factor.value);
      continue;
    }
    const element v = s.is_special ? s.value : extreme(s.factor, s.inner.value());
    nan = nan || v.is(number_kind::nan);
    if (v.is(number_kind::infinite)) (v.negative ? minus : plus) = true;
  }
  if (each || gradients) return out;
  if (nan || divisor == 0 || (plus && minus)) {
    put(0, special(type, element::nan()));
  } else if (plus || minus) {
    put(0, special(type, element::infinity(minus)));
  } else {
    put(0, rounded(type, sum.value(), mpq_class(mpz_class(1), mpz_class(static_cast<long>(divisor)))));
  }
  return out;
}

}  // namespace repdl::reference
