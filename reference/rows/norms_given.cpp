// batch_norm with statistics over batches (contract, section 4): what becomes of them in training, in rational numbers; results and
// gradients from them. Where the root divides a number other than 0, that is sqrt(q), q rational (with_root); else it is known
// in the reals with infinities.
#include <stdexcept>

#include "reference/attributes.hpp"
#include "reference/rows/norm_results.hpp"

namespace repdl::reference {
namespace {

extended value_at(const array& a, std::size_t i) { return {a.type, a.get(i)}; }
mpq_class rational_of(const extended& v) {
  return v.is_zero() ? mpq_class(0) : mpq_class(mpz_class(v.significand())) * power_of_two(v.exponent());
}
extended infinite(bool negative) { return {f32, infinity_bits(f32, negative)}; }
extended nan_value() { return {f32, nan_bits(f32)}; }

/// eps + a variance, and what division by its root is.
struct spread {
  bool invalid = false, pole = false, vanishes = false;  ///< the root is NaN, 0, infinite
  mpq_class v;
  spread(const extended& var, double eps) {
    if (!is_finite(var)) {
      invalid = var.is_nan() || var.negative();
      vanishes = !invalid;
      return;
    }
    v = rational_of(var) + rational(eps);
    invalid = v < 0;
    pole = v == 0;
  }
  /// a / sqrt, where that is no root of a number; else a, which has its sign.
  extended quotient_or_sign(const extended& a) const {
    if (invalid || a.is_nan() || (pole && a.is_zero()) || (vanishes && a.is_infinite())) return nan_value();
    if (pole) return infinite(a.negative());
    if (vanishes) return {f32, zero_bits(f32, a.negative())};
    return a;
  }
  bool divides(const extended& a) const { return !invalid && !pole && !vanishes && is_finite(a) && !a.is_zero(); }
};

/// RN(d w / sqrt + b); of no w 1, of no b no term.
result element_over(const extended& d, const extended& w, const extended* b, const spread& s) {
  const extended z = s.quotient_or_sign(d), product = z * w;
  if (s.divides(d) && is_finite(w) && !w.is_zero() && (b == nullptr || is_finite(*b))) {
    const mpq_class t = rational_of(d) * rational_of(w);
    return with_root(b == nullptr ? mpq_class(0) : rational_of(*b), t < 0, t * t / s.v);
  }
  // A number, an infinity or NaN: of numbers d only the sign took part in the product.
  return quotient(b == nullptr ? product : product + *b, 1);
}

/// (1 - momentum) a + momentum b, b of an average of n elements as its sum is known.
result average(const extended& former, double momentum, const extended& batch, const mpq_class& value) {
  const mpq_class q = rational(momentum);
  const auto times = [](const mpq_class& factor, const extended& v) { return v * extended(factor == 0 ? 0 : 1); };
  if (!is_finite(former) || !is_finite(batch)) {
    // Only what is not finite matters.
    const extended sum = times(1 - q, former) + times(q, batch);
    return quotient(sum, 1);
  }
  const mpq_class all = (1 - q) * rational_of(former) + q * value;
  if (all == 0) return zero_result(false);
  return exact_result(all);
}

}  // namespace

std::vector<array> running_norm(const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  if (in.size() < 3) throw std::invalid_argument("reference::batch_norm_running: inputs");
  const array &x = in[0], &mean = in[1], &var = in[2];
  std::vector<array> normed{x};
  normed.insert(normed.end(), in.begin() + 3, in.end());
  const norm_layout l = norm_layout_of("batch_norm", x.shape, attrs);
  if (mean.shape != l.weight || var.shape != l.weight)
    throw std::invalid_argument("reference::batch_norm_running: shapes");
  std::vector<array> all = norm("batch_norm", normed, attrs, where);
  const double momentum = attribute_or(attrs, "momentum", 0.1);
  array new_mean(mean.type, l.weight), new_var(var.type, l.weight);
  outcomes at_mean, at_var;
  const auto n = static_cast<long>(l.rows.reduced.size());
  for (std::size_t c = 0; c < l.rows.kept.size(); ++c) {
    extended sum;
    mpq_class exact_sum = 0, squares = 0;
    for (const std::int64_t i : l.rows.reduced) {
      const extended v = value_at(x, index(l.rows.kept[c] + i));
      sum = sum + v;
      if (!is_finite(v)) continue;
      exact_sum += rational_of(v);
      squares += rational_of(v) * rational_of(v);
    }
    // Of no elements, or of one, 0 / 0.
    const mpq_class m = n == 0 ? mpq_class(0) : exact_sum / n;
    const bool known = is_finite(sum) && n != 0;
    const mpq_class v = known && n > 1 ? (squares - exact_sum * m) / (n - 1) : mpq_class(0);
    const rounded a = average(value_at(mean, c), momentum,
                              n == 0           ? nan_value()
                              : is_finite(sum) ? extended()
                                               : sum,
                              m)(mean.type);
    const rounded b = average(value_at(var, c), momentum, known && n > 1 ? extended() : nan_value(), v)(var.type);
    new_mean.set(c, a.bits);
    new_var.set(c, b.bits);
    at_mean.push_back(a.where);
    at_var.push_back(b.where);
  }
  if (where != nullptr) {
    where->insert(where->end(), at_mean.begin(), at_mean.end());
    where->insert(where->end(), at_var.begin(), at_var.end());
  }
  all.push_back(std::move(new_mean));
  all.push_back(std::move(new_var));
  return all;
}

array given_norm(std::string_view op, const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  const bool forward = op == "batch_norm_inference", to_weight = op.ends_with("weight_backward");
  const std::size_t inputs = forward ? 3 : to_weight ? 4 : 2, most = inputs + (forward ? 2 : to_weight ? 0 : 1);
  if (in.size() < inputs || in.size() > most) throw std::invalid_argument("reference::batch_norm_inference: inputs");
  const array& x = in[to_weight ? 1 : 0];
  const norm_layout l = norm_layout_of(op, x.shape, attrs);
  for (std::size_t i = to_weight ? 2 : 1; i < in.size(); ++i)
    if (!in[i].absent() && in[i].shape != l.weight)
      throw std::invalid_argument("reference::batch_norm_inference: shapes");
  const auto at_end = [&](std::size_t i) { return i < in.size() && !in[i].absent() ? &in[i] : nullptr; };
  const array *weight = to_weight ? nullptr : at_end(inputs), *bias = forward ? at_end(inputs + 1) : nullptr;
  const array& var = in[inputs - 1];
  const double eps = attribute_or(attrs, "eps", 1e-5);

  array out(x.type, to_weight ? l.weight : x.shape);
  outcomes at_out(index(out.count()));
  const auto put = [&](std::size_t i, const result& exact) {
    const rounded y = exact(out.type);
    out.set(i, y.bits);
    at_out[i] = y.where;
  };
  for (std::size_t c = 0; c < l.rows.kept.size(); ++c) {
    const spread s(value_at(var, c), eps);
    const extended w = weight != nullptr ? value_at(*weight, c) : extended(1);
    extended sum;
    for (const std::int64_t i : l.rows.reduced) {
      const std::size_t at = index(l.rows.kept[c] + i);
      if (forward) {
        const extended b = bias != nullptr ? value_at(*bias, c) : extended();
        put(at, element_over(value_at(x, at) - value_at(in[1], c), w, bias != nullptr ? &b : nullptr, s));
      } else if (to_weight) {
        sum = sum + value_at(in[0], at) * (value_at(x, at) - value_at(in[2], c));
      } else {
        put(at, element_over(value_at(x, at) * w, extended(1), nullptr, s));
      }
    }
    if (!to_weight) continue;
    const bool known = is_finite(value_at(in[2], c)) && is_finite(value_at(var, c));
    put(c, known ? element_over(sum, extended(1), nullptr, s) : nan_result());
  }
  if (where != nullptr) where->insert(where->end(), at_out.begin(), at_out.end());
  return out;
}

}  // namespace repdl::reference
