// sgd and adamw (contract, section 4): formula trees over exact numbers. What has no root is a binary fraction
// (`extended`, which knows infinities, NaN and signed zeros); the parameter of adamw is A - B / (sqrt(C) + eps).
#include <bit>
#include <stdexcept>

#include "reference/attributes.hpp"
#include "reference/elementwise/elementwise.hpp"
#include "reference/numbers/real.hpp"
#include "reference/structured/structured.hpp"

namespace repdl::reference {
namespace {

extended of(double v) { return {dtype::f64, std::bit_cast<std::uint64_t>(v)}; }

struct stored {
  std::uint64_t bits;
  outcome where;
};

stored rounded_of(dtype type, const extended& v) {
  const std::uint64_t bits = v.round(type);
  if (v.is_nan() || v.is_infinite()) return {bits, outcome_of_pattern(type, bits)};
  const mpz_class one = 1;
  return {bits, locate(type, v.significand(), one.get_mpz_t(), v.exponent())};
}

mpq_class value(const extended& v) { return mpq_class(mpz_class(v.significand())) * power_of_two(v.exponent()); }

/// The format of states beside parameters of a format.
dtype state_of(dtype type) { return type == dtype::f64 ? dtype::f64 : f32; }

double number_of(const attributes& attrs, const char* name, double otherwise) {
  return attribute_or(attrs, name, otherwise);
}

/// Outputs of one operand group, and where they lie, appended in the order of the outputs.
struct outputs {
  std::vector<array> arrays;
  std::vector<outcomes> where;
  array& add(const shape_list& shape, dtype type) {
    where.emplace_back();
    return arrays.emplace_back(type, shape);
  }
  void finish(outcomes* all) {
    if (all == nullptr) return;
    for (const outcomes& w : where) all->insert(all->end(), w.begin(), w.end());
  }
};

bool perfect_root(const mpq_class& c, mpq_class* root) {
  if (mpz_perfect_square_p(c.get_num_mpz_t()) == 0 || mpz_perfect_square_p(c.get_den_mpz_t()) == 0) return false;
  *root = mpq_class(sqrt(c.get_num()), sqrt(c.get_den()));
  return true;
}

/// p (1 - lr wd) - lr (m / c1) / (sqrt(v / c2) + eps).
struct adamw_step {
  mpq_class lr, eps, c1, c2, keep;  // keep = 1 - lr wd
  extended lr_x, keep_x;
  dtype type;  // of p and the result

  stored operator()(std::uint64_t p_bits, std::uint64_t m_bits, std::uint64_t v_bits) const {
    const extended p(type, p_bits), m(state_of(type), m_bits), v(state_of(type), v_bits);
    const extended decayed = p * keep_x;
    // v < 0 has no root; -0 has the root -0, which is a zero like any other in a sum.
    if (decayed.is_nan() || m.is_nan() || v.is_nan() || (v.negative() && !v.is_zero())) return special(nan_bits(type));
    const mpq_class root_of = v.is_infinite() || v.is_zero() ? mpq_class(0) : mpq_class(value(v) / c2);
    const bool no_divisor = !v.is_infinite() && root_of == 0 && eps == 0;
    const bool no_step = lr == 0 || m.is_zero();
    // lr (m / c1) is NaN, infinite, zero or a number; so is the divisor but for NaN.
    if ((lr == 0 && m.is_infinite()) || (m.is_infinite() && v.is_infinite()) || (no_step && no_divisor))
      return special(nan_bits(type));
    if (m.is_infinite() || no_divisor) {  // an infinite step
      const bool minus = m.negative() != (lr < 0);
      if (decayed.is_infinite() && decayed.negative() == minus) return special(nan_bits(type));
      return special(infinity_bits(type, !minus));
    }
    if (decayed.is_infinite()) return special(infinity_bits(type, decayed.negative()));
    const mpq_class a = value(decayed);
    stored r{};
    if (no_step || v.is_infinite()) {
      r.bits = round_exact(type, a, &r.where);
      return r;
    }
    const mpq_class b = lr * value(m) / c1;
    // The root is rational or the result is not: A - B / (s + eps) = t, B != 0, would make s = B / (A - t) - eps.
    if (mpq_class s; perfect_root(root_of, &s)) {
      r.bits = round_exact(type, a - b / (s + eps), &r.where);
      return r;
    }
    // Algebraic of degree 2 over numbers of some thousand bits, so its distance from any midpoint has a lower bound.
    const auto f = [&](mpfr_prec_t bits) {
      return interval(bits, a) - interval(bits, b) / (sqrt(interval(bits, root_of)) + interval(bits, eps));
    };
    r.bits = decide(type, f, &r.where);
    return r;
  }

  stored special(std::uint64_t bits) const { return {bits, outcome_of_pattern(type, bits)}; }
};

/// RN_f64(1 - beta^t), beta^t the exact power.
mpq_class correction(double beta, std::int64_t t) {
  if (beta == 0) return 1;
  const mpq_class b = rational(beta);
  // By squaring, as an interval; exact where few bits suffice.
  const auto f = [&](mpfr_prec_t p) {
    interval power(p, mpq_class(1)), square(p, b);
    for (std::int64_t n = t; n != 0; n /= 2) {
      if (n % 2 != 0) power = power * square;
      square = square * square;
    }
    return interval(p, mpq_class(1)) - power;
  };
  const std::size_t length = mpz_sizeinbase(b.get_num_mpz_t(), 2) + mpz_sizeinbase(b.get_den_mpz_t(), 2);
  if (static_cast<double>(length) * static_cast<double>(t) < 100'000) {
    mpz_class n, d;
    mpz_pow_ui(n.get_mpz_t(), b.get_num_mpz_t(), static_cast<unsigned long>(t));
    mpz_pow_ui(d.get_mpz_t(), b.get_den_mpz_t(), static_cast<unsigned long>(t));
    const mpq_class one_minus(d - n, d);  // in lowest terms, as n / d is
    return rational(dtype::f64, round_exact(dtype::f64, one_minus));
  }
  // beta^t has far more than 54 significant bits, or is below 2^-54: 1 - beta^t is no midpoint.
  return rational(dtype::f64, decide(dtype::f64, f));
}

}  // namespace

std::vector<array> sgd(const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  const extended lr = of(number_of(attrs, "lr", 0.001)), momentum = of(number_of(attrs, "momentum", 0)),
                 decay = of(number_of(attrs, "weight_decay", 0)),
                 undamped = extended(1) - of(number_of(attrs, "dampening", 0));
  const bool nesterov = attribute_or(attrs, "nesterov", false);
  const std::size_t group = momentum.is_zero() ? 2 : 3;
  if (in.size() % group != 0) throw std::invalid_argument("reference::sgd: number of operands");
  outputs out;
  out.arrays.reserve(in.size());
  for (std::size_t t = 0; t < in.size(); t += group) {
    const array& param = in[t];
    const array* velocity = group == 3 ? &in[t + 2] : nullptr;
    const dtype state = state_of(param.type);
    if (in[t + 1].shape != param.shape || in[t + 1].type != param.type ||
        (velocity != nullptr && !velocity->absent() && (velocity->shape != param.shape || velocity->type != state)))
      throw std::invalid_argument("reference::sgd: shapes");
    array& new_param = out.add(param.shape, param.type);
    array* new_velocity = group == 3 ? &out.add(param.shape, state) : nullptr;
    const std::size_t at = out.arrays.size() - (group == 3 ? 2 : 1);
    for (std::size_t i = 0; i < static_cast<std::size_t>(param.count()); ++i) {
      const extended p(param.type, param.get(i)), g(param.type, in[t + 1].get(i));
      const extended slope = g + decay * p;
      extended direction = slope;
      if (new_velocity != nullptr) {
        const stored v = rounded_of(
            state, velocity->absent() ? slope : momentum * extended(state, velocity->get(i)) + undamped * slope);
        new_velocity->set(i, v.bits);
        out.where[at + 1].push_back(v.where);
        direction = extended(state, v.bits);
        if (nesterov) direction = slope + momentum * direction;
      }
      const stored r = rounded_of(param.type, p - lr * direction);
      new_param.set(i, r.bits);
      out.where[at].push_back(r.where);
    }
  }
  out.finish(where);
  return out.arrays;
}

std::vector<array> adamw(const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  const double lr = number_of(attrs, "lr", 0.001), beta1 = number_of(attrs, "beta1", 0.9),
               beta2 = number_of(attrs, "beta2", 0.999);
  const auto step_count = attribute_or<std::int64_t>(attrs, "step", 1);
  const extended b1 = of(beta1), b2 = of(beta2);
  adamw_step step;
  step.lr = rational(lr);
  step.eps = rational(number_of(attrs, "eps", 1e-8));
  step.c1 = correction(beta1, step_count);
  step.c2 = correction(beta2, step_count);
  step.keep_x = extended(1) - of(lr) * of(number_of(attrs, "weight_decay", 0.01));
  if (in.size() % 4 != 0 || step_count < 1) throw std::invalid_argument("reference::adamw: operands or step");
  outputs out;
  out.arrays.reserve(in.size());
  for (std::size_t t = 0; t < in.size(); t += 4) {
    for (std::size_t k = 1; k < 4; ++k)
      if (in[t + k].shape != in[t].shape || in[t + k].type != (k == 1 ? in[t].type : state_of(in[t].type)))
        throw std::invalid_argument("reference::adamw: shapes");
    const std::size_t at = out.arrays.size();
    step.type = in[t].type;
    const dtype state = state_of(step.type);
    for (int k = 0; k < 3; ++k) out.add(in[t].shape, k == 0 ? step.type : state);
    for (std::size_t i = 0; i < static_cast<std::size_t>(in[t].count()); ++i) {
      const extended g(step.type, in[t + 1].get(i));
      const stored m = rounded_of(state, b1 * extended(state, in[t + 2].get(i)) + (extended(1) - b1) * g);
      const stored v = rounded_of(state, b2 * extended(state, in[t + 3].get(i)) + (extended(1) - b2) * (g * g));
      const stored p = step(in[t].get(i), m.bits, v.bits);
      const stored* all[] = {&p, &m, &v};
      for (std::size_t k = 0; k < 3; ++k) {
        out.arrays[at + k].set(i, all[k]->bits);
        out.where[at + k].push_back(all[k]->where);
      }
    }
  }
  out.finish(where);
  return out.arrays;
}

}  // namespace repdl::reference
