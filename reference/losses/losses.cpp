// Losses and their gradients: the formulas of the contract with GMP's rationals, rounded once.
#include <bit>
#include <stdexcept>
#include <utility>

#include "reference/attributes.hpp"
#include "reference/losses/loss_element.hpp"
#include "reference/structured/structured.hpp"

namespace repdl::reference {
namespace {

enum class kind { mse, l1, smooth_l1, huber };

struct loss_case {
  kind which;
  std::string reduction;
  mpq_class c;  // beta, delta

  loss_case(kind k, double parameter) : which(k), reduction("none"), c(rational(parameter)) {}
  loss_case(kind k, const attributes& attrs)
      : which(k), reduction(attribute_or<std::string>(attrs, "reduction", "mean")) {
    if (reduction != "mean" && reduction != "sum" && reduction != "none")
      throw std::invalid_argument("reference: reduction of a loss");
    if (k == kind::smooth_l1) c = rational(attribute_or(attrs, "beta", 1.0));
    if (k == kind::huber) c = rational(attribute_or(attrs, "delta", 1.0));
  }
  bool each() const { return reduction == "none"; }

  /// Of a number d.
  mpq_class loss(const mpq_class& d) const {
    const mpq_class a = abs(d);
    switch (which) {
      case kind::mse:
        return d * d;
      case kind::l1:
        return a;
      case kind::smooth_l1:
        return a < c ? mpq_class(d * d / (2 * c)) : mpq_class(a - c / 2);
      case kind::huber:
        return a <= c ? mpq_class(d * d / 2) : mpq_class(c * (a - c / 2));
    }
    throw std::logic_error("reference: loss");
  }
  element gradient(const element& g, const element& d) const {
    if (d.is(number_kind::nan)) return d;
    const bool number = d.is_number();
    const auto sign = [&] { return d.is(number_kind::zero) ? element::zero() : d.negative ? negated(g) : g; };
    switch (which) {
      case kind::mse:
        return scaled(times(g, d), 2);
      case kind::l1:
        return sign();
      case kind::smooth_l1:
        return number && abs(d.value) < c ? scaled(times(g, d), 1 / c) : sign();
      case kind::huber:
        return number && abs(d.value) <= c ? times(g, d) : scaled(sign(), c);
    }
    throw std::logic_error("reference: gradient of a loss");
  }
};

/// Where d is infinite the loss is.
element loss_of(const loss_case& c, const element& d) {
  return d.is_number() ? element::of(c.loss(d.value)) : d.is(number_kind::nan) ? d : element::infinity(false);
}

array forward(kind which, const array& x, const array& t, const attributes& attrs, outcomes* where) {
  const loss_case c(which, attrs);
  const shape_list shape = broadcast_shape(x.shape, t.shape);
  const std::int64_t n = count_of(shape);
  array out(x.type, c.each() ? shape : shape_list{});
  bool any_nan = false, any_infinite = false;
  mpq_class sum;
  for (std::int64_t i = 0; i < n; ++i) {
    const element d = difference(operand(x, shape, i), operand(t, shape, i));
    const element l = loss_of(c, d);
    if (c.each()) put(out, index(i), l, where);
    any_nan = any_nan || l.is(number_kind::nan);
    any_infinite = any_infinite || l.is(number_kind::infinite);
    if (!c.each()) sum += l.value;
  }
  if (c.each()) return out;
  const bool mean = c.reduction == "mean";
  const mpq_class divisor(mpz_class(static_cast<long>(mean && n != 0 ? n : 1)));
  put(out, 0,
      any_nan || (mean && n == 0) ? element::nan()
      : any_infinite              ? element::infinity(false)
                                  : element::of(sum / divisor),
      where);
  return out;
}

array backward(kind which, const array& g, const array& x, const array& t, const attributes& attrs, outcomes* where) {
  const loss_case c(which, attrs);
  const shape_list shape = broadcast_shape(x.shape, t.shape);
  const std::int64_t n = count_of(shape);
  if (g.shape != (c.each() ? shape : shape_list{})) throw std::invalid_argument("reference: g of a loss");
  const mpq_class divisor(mpz_class(static_cast<long>(c.reduction == "mean" && n != 0 ? n : 1)));
  array out(x.type, shape);
  for (std::int64_t i = 0; i < n; ++i) {
    const element d = difference(operand(x, shape, i), operand(t, shape, i));
    put(out, index(i), scaled(c.gradient(operand(g, shape, i), d), 1 / divisor), where);
  }
  return out;
}

kind kind_named(std::string_view op) {
  for (const auto& [name, k] : {std::pair<std::string_view, kind>{"mse", kind::mse},
                                {"l1", kind::l1},
                                {"smooth_l1", kind::smooth_l1},
                                {"huber", kind::huber}})
    if (op.starts_with(std::string(name) + "_loss")) return k;
  throw std::invalid_argument("reference: no loss is named " + std::string(op));
}

}  // namespace

std::uint64_t loss_element(std::string_view op, dtype t, const std::uint64_t* in, double parameter, std::int64_t n,
                           outcome* where) {
  if (op.starts_with("soft_margin")) return soft_margin_element(op, t, in, n, where);
  if (op.starts_with("binary_") || op.starts_with("kl_div")) return entropy_element(op, t, in, parameter, n, where);
  const loss_case c(kind_named(op), parameter);
  const bool gradient = op.ends_with("_backward");
  const std::uint64_t* const pair = in + (gradient ? 1 : 0);
  const element d = difference(element::of(t, pair[0]), element::of(t, pair[1]));
  const element v = gradient ? c.gradient(element::of(t, in[0]), d) : loss_of(c, d);
  array out(t, {});
  outcomes all;
  put(out, 0, scaled(v, mpq_class(1, static_cast<unsigned long>(n))), &all);
  if (where != nullptr) *where = all[0];
  return out.get(0);
}

array mse_loss(const array& x, const array& t, const attributes& attrs, outcomes* where) {
  return forward(kind::mse, x, t, attrs, where);
}
array l1_loss(const array& x, const array& t, const attributes& attrs, outcomes* where) {
  return forward(kind::l1, x, t, attrs, where);
}
array smooth_l1_loss(const array& x, const array& t, const attributes& attrs, outcomes* where) {
  return forward(kind::smooth_l1, x, t, attrs, where);
}
array huber_loss(const array& x, const array& t, const attributes& attrs, outcomes* where) {
  return forward(kind::huber, x, t, attrs, where);
}
array mse_loss_backward(const array& g, const array& x, const array& t, const attributes& attrs, outcomes* where) {
  return backward(kind::mse, g, x, t, attrs, where);
}
array l1_loss_backward(const array& g, const array& x, const array& t, const attributes& attrs, outcomes* where) {
  return backward(kind::l1, g, x, t, attrs, where);
}
array smooth_l1_loss_backward(const array& g, const array& x, const array& t, const attributes& attrs,
                              outcomes* where) {
  return backward(kind::smooth_l1, g, x, t, attrs, where);
}
array huber_loss_backward(const array& g, const array& x, const array& t, const attributes& attrs, outcomes* where) {
  return backward(kind::huber, g, x, t, attrs, where);
}

}  // namespace repdl::reference
