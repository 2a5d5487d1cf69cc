// The gradients of layer_norm, rms_norm, group_norm and batch_norm (contract, section 4), in the reals with infinities, as the formula
// has them but for the division by n: n grad_x = rstd (n t - sum of t - h sum of t h) is a finite binary fraction.
#include <stdexcept>

#include "reference/rows/norm_results.hpp"

namespace repdl::reference {

result quotient(const extended& v, std::int64_t n) {
  if (v.is_nan()) return nan_result();
  if (v.is_infinite()) return infinite_result(v.negative());
  if (v.is_zero()) return zero_result(v.negative());
  return [=](dtype t) -> rounded {
    const mpz_class count = static_cast<long>(n);
    return {round_quotient(t, v.significand(), count.get_mpz_t(), v.exponent()),
            locate(t, v.significand(), count.get_mpz_t(), v.exponent())};
  };
}

namespace {

struct gradient_call {
  bool centred;
  norm_layout l;
  array none = array::none();
  const array *g, *x, *mean, *rstd, *weight;

  gradient_call(std::string_view op, const std::vector<array>& in, const attributes& attrs)
      : centred(!op.starts_with("rms")) {
    const std::size_t inputs = centred ? 4 : 3, most = op.ends_with("weight_backward") ? inputs : inputs + 1;
    if (in.size() < inputs || in.size() > most) throw std::invalid_argument("reference::norm_backward: inputs");
    g = in.data();
    x = g + 1;
    mean = centred ? x + 1 : &none;
    rstd = g + inputs - 1;
    weight = in.size() > inputs ? rstd + 1 : &none;
    l = norm_layout_of(op, x->shape, attrs);
    const auto has = [](const array& a, const shape_list& shape) { return a.absent() || a.shape == shape; };
    if (g->shape != x->shape || !has(*mean, l.rows.kept_shape) || rstd->shape != l.rows.kept_shape ||
        !has(*weight, l.weight))
      throw std::invalid_argument("reference::norm_backward: shapes");
  }

  static extended at(const array& a, std::size_t i) { return {a.type, a.get(i)}; }
  extended mean_of(std::size_t row) const { return centred ? at(*mean, row) : extended(); }
  /// (x - mean) rstd; without a mean x rstd.
  extended h(std::size_t i, const extended& m, const extended& r) const {
    return (centred ? at(*x, i) - m : at(*x, i)) * r;
  }
  std::size_t place(std::size_t row, std::size_t i) const { return index(l.rows.kept[row] + l.rows.reduced[i]); }
  std::size_t weight_of(std::size_t i, std::size_t place) const {
    return l.weight_of(i, static_cast<std::int64_t>(place));
  }
};

array gradient_to_x(const gradient_call& c, outcomes* where) {
  array out(c.x->type, c.x->shape);
  outcomes at_out(index(out.count()));
  const std::size_t n = c.l.rows.reduced.size();
  for (std::size_t row = 0; row < c.l.rows.kept.size(); ++row) {
    const extended m = c.mean_of(row), r = c.at(*c.rstd, row);
    const bool valid = is_finite(m) && is_finite(r);
    const auto t = [&](std::size_t i) {
      const std::size_t p = c.place(row, i);
      return c.weight->absent() ? c.at(*c.g, p) : c.at(*c.g, p) * c.at(*c.weight, c.weight_of(i, p));
    };
    extended first, second;
    for (std::size_t i = 0; valid && i < n; ++i) {
      if (c.centred) first = first + t(i);
      second = second + t(i) * c.h(c.place(row, i), m, r);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t p = c.place(row, i);
      result exact = nan_result();
      if (valid) {
        const extended v = extended(static_cast<int>(n)) * t(i) - first - c.h(p, m, r) * second;
        exact = quotient(r * v, static_cast<std::int64_t>(n));
      }
      const rounded y = exact(out.type);
      out.set(p, y.bits);
      at_out[p] = y.where;
    }
  }
  if (where != nullptr) where->insert(where->end(), at_out.begin(), at_out.end());
  return out;
}

array gradient_to_weight(const gradient_call& c, outcomes* where) {
  array out(c.x->type, c.l.weight);
  std::vector<extended> sums(index(out.count()));
  for (std::size_t row = 0; row < c.l.rows.kept.size(); ++row) {
    const extended m = c.mean_of(row), r = c.at(*c.rstd, row);
    for (std::size_t i = 0; i < c.l.rows.reduced.size(); ++i) {
      const std::size_t p = c.place(row, i);
      extended& sum = sums[c.weight_of(i, p)];
      sum = sum + c.at(*c.g, p) * c.h(p, m, r);
    }
  }
  for (std::size_t k = 0; k < sums.size(); ++k) {
    const rounded y = quotient(sums[k], 1)(out.type);
    out.set(k, y.bits);
    if (where != nullptr) where->push_back(y.where);
  }
  return out;
}

}  // namespace

array norm_backward(std::string_view op, const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  const gradient_call c(op, in, attrs);
  return op.ends_with("weight_backward") ? gradient_to_weight(c, where) : gradient_to_x(c, where);
}

}  // namespace repdl::reference
