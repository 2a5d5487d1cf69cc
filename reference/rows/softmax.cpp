// softmax, log_softmax, logsumexp and their gradients. The exact parts and the reasons why `decide` ends are in
// softmax_row.hpp and beside each formula.
#include "reference/elementwise/elementwise.hpp"
#include "reference/rows/softmax_row.hpp"

namespace repdl::reference {
namespace {

result rounded_of(const extended& v) {
  return [=](dtype t) {
    rounded r;
    r.bits = v.round(t);
    const mpz_class one = 1;
    r.where = v.is_nan() || v.is_infinite() ? outcome_of_pattern(t, r.bits)
                                            : locate(t, v.significand(), one.get_mpz_t(), v.exponent());
    return r;
  };
}

/// The format of numbers of rows, whose least number is no greater than the results': binary32, or binary64 where either is.
dtype full_format(const array& x, std::optional<dtype> to = {}) {
  return x.type == dtype::f64 || to == dtype::f64 ? dtype::f64 : dtype::f32;
}
array in_full(const array& x, std::optional<dtype> to = {}) { return widened(x, full_format(x, to)); }
using words = std::vector<std::uint64_t>;
words row_of(const array& x, const reduce_layout& l, std::int64_t base) {
  words v;
  for (const std::int64_t d : l.reduced) v.push_back(x.get(index(base + d)));
  return v;
}

/// x_i - ln sum = D - ln(k + rho), D = x_i - M a multiple of 2^-149. Midpoints are multiples of 2^-150, so with k = 1
/// and ln(1 + rho) < 2^-150 the result lies below D and above the next midpoint: like D - 2^-151. In binary64 likewise.
result log_softmax_of(const softmax_row& row, std::size_t i) {
  if (row.invalid()) return nan_result();
  if (!row.is_finite(i)) return infinite_result(true);
  const mpq_class d = mpq_class(row.gap(i)) * power_of_two(row.unit());
  if (row.k == 1 && row.all_equal()) return exact_result(d);  // the only finite element: 0
  if (row.k == 1 && row.negligible()) return beside_result(d - power_of_two(row.unit() - 2), d);
  return decided_result([=, &row](mpfr_prec_t p) { return interval(p, d) - row.log_sum(p); });
}

/// M + ln(k + rho), likewise.
result logsumexp_of(const softmax_row& row) {
  if (row.any_nan) return nan_result();
  if (row.any_plus) return infinite_result(false);
  if (row.finite_count == 0) return infinite_result(true);
  const mpq_class m = mpq_class(row.greatest()) * power_of_two(row.unit());
  if (row.k == 1 && row.all_equal()) return exact_result(m);
  if (row.k == 1 && row.negligible()) return beside_result(m + power_of_two(row.unit() - 2), m);
  return decided_result([=, &row](mpfr_prec_t p) { return interval(p, m) + row.log_sum(p); });
}

/// g_i - e^y_i * total. For finite y_i != 0 and total != 0 the product is irrational; it is at least 2^-149 * 2^-149
/// away from total, so that some hundred bits decide where g_i - total is a midpoint, and g_i is none.
/// In binary64 likewise, by some thousand bits.
result log_softmax_backward_of(dtype type, std::uint64_t g, std::uint64_t y, const extended& total) {
  const extended gi(type, g), yi(type, y);
  if (yi.is_nan()) return nan_result();
  if (yi.is_infinite() || yi.is_zero() || total.is_nan() || total.is_infinite() || total.is_zero() || gi.is_nan() ||
      gi.is_infinite()) {
    // The weight: 0, infinite, 1, or a positive number, for which 1 stands where the result does not depend on it.
    const std::uint32_t w = !yi.is_infinite() ? 0x3f800000 : yi.negative() ? 0 : 0x7f800000;
    return rounded_of(gi - extended(dtype::f32, w) * total);
  }
  const mpz_class t(total.significand());
  const std::int64_t exponent = total.exponent();
  const mpq_class gq = rational(type, g), yq = rational(type, y);
  const auto product = [=](mpfr_prec_t p) { return exp(interval(p, yq)) * interval(p, t, exponent); };
  if (gi.is_zero()) return decided_result([=](mpfr_prec_t p) { return -product(p); });
  return decided_result([=](mpfr_prec_t p) { return interval(p, gq) - product(p); });
}

/// g * softmax_i of a row.
result logsumexp_backward_of(dtype type, std::uint64_t g, const softmax_row& row, std::size_t i) {
  const number v = widen(type, g);
  if (row.invalid() || v.kind == number_kind::nan) return nan_result();
  if (v.kind == number_kind::infinite) return row.is_finite(i) ? infinite_result(v.negative) : nan_result();
  if (v.kind == number_kind::zero) return zero_result(v.negative);
  return scaled_softmax(row, i, rational(type, g), 1);
}

/// make(rows of `in`) for every row of the layout; what it makes gives the result at index i of the row.
template <class Make, class... In>
array per_row(const reduce_layout& l, outcomes* where, const Make& make, std::optional<dtype> to, const array& first,
              const In&... in) {
  if (((in.shape != first.shape) || ...)) throw std::invalid_argument("reference: shapes of the softmax family differ");
  array out(to.value_or(first.type), first.shape);
  std::vector<outcome> all(index(out.count()));
  const auto rows = [&](const auto&... v) {
    for (const std::int64_t base : l.kept) {
      const auto element = make(row_of(v, l, base)...);
      for (std::size_t i = 0; i < l.reduced.size(); ++i) {
        const std::size_t at = index(base + l.reduced[i]);
        const rounded r = element(i)(out.type);
        out.set(at, r.bits);
        all[at] = r.where;
      }
    }
  };
  rows(in_full(first, to), in_full(in, to)...);
  if (where != nullptr) where->insert(where->end(), all.begin(), all.end());
  return out;
}

reduce_layout along(const array& x, std::int64_t axis) { return layout_of(x.shape, one_axis(axis), false); }

}  // namespace

array softmax(const array& x, std::int64_t axis, outcomes* where, std::optional<dtype> to) {
  const auto make = [type = full_format(x, to)](const words& v) {
    return [row = softmax_row(type, v)](std::size_t i) {
      return row.invalid() ? nan_result() : scaled_softmax(row, i, 1, 1);
    };
  };
  return per_row(along(x, axis), where, make, to, x);
}

array log_softmax(const array& x, std::int64_t axis, outcomes* where, std::optional<dtype> to) {
  const auto make = [type = full_format(x, to)](const words& v) {
    return [row = softmax_row(type, v)](std::size_t i) { return log_softmax_of(row, i); };
  };
  return per_row(along(x, axis), where, make, to, x);
}

array logsumexp(const array& x, const std::optional<shape_list>& axes, bool keepdim, outcomes* where) {
  const reduce_layout l = layout_of(x.shape, axes, keepdim);
  const array v = in_full(x);
  array out(x.type, l.kept_shape);
  std::size_t o = 0;
  for (const std::int64_t base : l.kept) {
    const softmax_row row(v.type, row_of(v, l, base));
    const rounded r = logsumexp_of(row)(out.type);
    out.set(o++, r.bits);
    if (where != nullptr) where->push_back(r.where);
  }
  return out;
}

array logcumsumexp(const array& x, std::int64_t axis, outcomes* where) {
  const auto make = [type = full_format(x)](const words& v) {
    return [=](std::size_t i) -> result {
      const words beginning(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return [row = softmax_row(type, beginning)](dtype t) { return logsumexp_of(row)(t); };
    };
  };
  return per_row(along(x, axis), where, make, {}, x);
}

// y_i (g_i - sum of g_j y_j): exact, with the infinities and zeros of the formula.
array softmax_backward(const array& g, const array& y, std::int64_t axis, outcomes* where) {
  const auto make = [type = full_format(g)](const words& gv, const words& yv) {
    extended total;
    for (std::size_t j = 0; j < gv.size(); ++j) total = total + extended(type, gv[j]) * extended(type, yv[j]);
    return [=](std::size_t i) { return rounded_of(extended(type, yv[i]) * (extended(type, gv[i]) - total)); };
  };
  return per_row(along(g, axis), where, make, {}, g, y);
}

array log_softmax_backward(const array& g, const array& y, std::int64_t axis, outcomes* where) {
  const auto make = [type = full_format(g)](const words& gv, const words& yv) {
    extended total;
    for (const std::uint64_t v : gv) total = total + extended(type, v);
    return [=](std::size_t i) { return log_softmax_backward_of(type, gv[i], yv[i], total); };
  };
  return per_row(along(g, axis), where, make, {}, g, y);
}

array logsumexp_backward(const array& g, const array& x, const std::optional<shape_list>& axes, bool keepdim,
                         outcomes* where) {
  const reduce_layout l = layout_of(x.shape, axes, keepdim);
  if (g.shape != l.kept_shape) throw std::invalid_argument("reference::logsumexp_backward: g's shape");
  std::size_t o = 0;
  const array full = in_full(g);
  const auto make = [&](const words& v) {
    return [type = full.type, gr = full.get(o++), row = softmax_row(full.type, v)](std::size_t i) {
      return logsumexp_backward_of(type, gr, row, i);
    };
  };
  return per_row(l, where, make, {}, x);
}

}  // namespace repdl::reference
