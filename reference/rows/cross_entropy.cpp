// cross_entropy and its gradient, from the rows of softmax_row.hpp.
#include <memory>
#include <stdexcept>

#include "reference/rows/softmax_row.hpp"

namespace repdl::reference {
namespace {

struct problem {
  reduce_layout layout;
  std::int64_t classes = 0;
  std::vector<std::int64_t> target;  // of each row
  std::int64_t taken = 0;            // rows not ignored

  problem(const array& logits, const array& targets, const cross_entropy_case& o) {
    layout = layout_of_classes(logits.shape, o.axis);
    classes = std::ssize(layout.reduced);
    if (targets.shape != layout.kept_shape) throw std::invalid_argument("reference::cross_entropy: targets' shape");
    if (o.reduction != "mean" && o.reduction != "sum" && o.reduction != "none")
      throw std::invalid_argument("reference::cross_entropy: reduction");
    for (std::size_t r = 0; r < layout.kept.size(); ++r) {
      target.push_back(static_cast<std::int64_t>(targets.get(r)));
      if (target.back() != o.ignore_index) ++taken;
    }
  }
  bool outside(std::size_t r) const { return target[r] < 0 || target[r] >= classes; }
};

/// One row's ln(k + rho) + (M - x_t): the second part exact, >= 0.
struct loss {
  enum { number, nan, infinite } kind = number;
  mpz_class d;                       // M - x_t in units of 2^-149
  std::unique_ptr<softmax_row> row;  // null where k + rho = 1
};

loss loss_of(const patterns& x, std::int64_t target, bool outside) {
  loss l;
  auto row = std::make_unique<softmax_row>(x);
  if (outside || row->invalid()) {
    l.kind = loss::nan;
  } else if (!row->is_finite(static_cast<std::size_t>(target))) {
    l.kind = loss::infinite;
  } else {
    l.d = -row->gap(static_cast<std::size_t>(target));
    if (row->k > 1 || !row->all_equal()) l.row = std::move(row);
  }
  return l;
}

/// (D + T) / n, D the sum of the exact parts, T >= 0 that of the logarithms. T is 0 or irrational. Against a midpoint
/// b, a multiple of 2^-150: D - n b is one too, so T < 2^-150 counts like 2^-151; a larger T needs no more than some
/// hundred bits.
result total_of(const std::vector<loss>& rows, std::int64_t n) {
  mpz_class fixed_sum;
  bool infinite = false, logs = false;
  for (const loss& l : rows) {
    if (l.kind == loss::nan) return nan_result();
    infinite = infinite || l.kind == loss::infinite;
    fixed_sum += l.d;
    logs = logs || l.row != nullptr;
  }
  if (infinite) return infinite_result(false);
  const mpq_class d = mpq_class(fixed_sum) * power_of_two(fixed_unit);
  if (!logs) return exact_result(d / integer(n));
  const auto t = [&rows](mpfr_prec_t p) {
    interval s(p);
    for (const loss& l : rows)
      if (l.row) s = s + l.row->log_sum(p);
    return s;
  };
  const interval quick = t(128);
  if (mpfr_cmp_ui_2exp(quick.hi(), 1, -151) < 0)
    return beside_result((d + power_of_two(-151)) / integer(n), d / integer(n));
  return decided_result([=](mpfr_prec_t p) { return (interval(p, d) + t(p)) / interval(p, integer(n)); });
}

/// g / n (softmax_i - 1) = -g / n (the weights but e_i) / (k + rho), i the target, g finite and not zero.
result target_gradient(const softmax_row& row, std::size_t i, const mpq_class& g, std::int64_t n) {
  const mpq_class scale = -g / integer(n);
  const mpq_class step = power_of_two(-151) * (scale < 0 ? -1 : 1);
  if (!row.is_finite(i)) return exact_result(scale);  // softmax_i = 0
  if (row.all_equal()) {
    if (row.k == 1) return zero_result(g < 0);  // 1 - 1 = +0, times g
    return exact_result(scale * mpq_class(row.k - 1) / row.k);
  }
  // softmax_i tiny: |g| (1 - tiny) against n b; |g| - n b is a multiple of 2^-150, |g| tiny is below that.
  if (!row.is_greatest(i) && row.negligible(i)) return beside_result((-g - step) / integer(n), scale);
  // |g| (k - 1 + rho) / (n (k + rho)) with a tiny rho: above |g| (k - 1) / (n k); |g| (k - 1) - b n k is a multiple of
  // 2^-150 and the rest, rho (b n - |g|), is below that and negative where b is near.
  if (row.is_greatest(i) && row.k > 1 && row.negligible()) {
    const mpq_class exact = -g * mpq_class(row.k - 1), nk = integer(n) * row.k;
    return beside_result((exact + step) / nk, exact / nk);
  }
  return decided_result([=, &row](mpfr_prec_t p) { return interval(p, scale) * row.sum_without(p, i) / row.sum(p); });
}

result gradient(std::uint32_t g, const softmax_row& row, std::size_t i, bool is_target, std::int64_t n) {
  const number v = widen(f32, g);
  if (row.invalid() || v.kind == number_kind::nan) return nan_result();
  // The sign of softmax_i - (i = target), 0 where that is exactly 0.
  const bool only = row.all_equal() && row.k == 1 && row.is_finite(i);
  const int sign = is_target ? (only ? 0 : -1) : row.is_finite(i) ? 1 : 0;
  const bool negative = v.negative != (sign < 0);
  if (v.kind == number_kind::infinite) return sign == 0 ? nan_result() : infinite_result(negative);
  if (v.kind == number_kind::zero) return zero_result(negative);
  const mpq_class exact = rational(f32, g);
  return is_target ? target_gradient(row, i, exact, n) : scaled_softmax(row, i, exact, n);
}

}  // namespace

array cross_entropy(const array& logits, const array& targets, const cross_entropy_case& options, outcomes* where) {
  const problem p(logits, targets, options);
  const patterns x = widened(logits).patterns();
  const bool each = options.reduction == "none";
  array out(logits.type, each ? targets.shape : shape_list{});
  const auto put = [&](std::size_t at, const result& unrounded) {
    const rounded r = unrounded(out.type);
    out.set(at, r.bits);
    if (where != nullptr) where->push_back(r.where);
  };
  std::vector<loss> rows;
  for (std::size_t r = 0; r < p.target.size(); ++r) {
    if (p.target[r] != options.ignore_index)
      rows.push_back(loss_of(row_of(x, p.layout, p.layout.kept[r]), p.target[r], p.outside(r)));
    if (!each) continue;
    put(r, total_of(rows, 1));  // no row: +0
    rows.clear();
  }
  if (each) return out;
  if (options.reduction == "sum") {
    put(0, total_of(rows, 1));
  } else {
    put(0, p.taken == 0 ? nan_result() : total_of(rows, p.taken));
  }
  return out;
}

array cross_entropy_backward(const array& g, const array& logits, const array& targets,
                             const cross_entropy_case& options, outcomes* where) {
  const problem p(logits, targets, options);
  const bool each = options.reduction == "none";
  if (g.shape != (each ? targets.shape : shape_list{}))
    throw std::invalid_argument("reference::cross_entropy_backward: g's shape");
  const patterns x = widened(logits).patterns();
  const std::int64_t n = options.reduction == "mean" ? p.taken : 1;
  array out(logits.type, logits.shape);
  std::vector<outcome> all(x.size());
  for (std::size_t r = 0; r < p.target.size(); ++r) {
    const std::int64_t base = p.layout.kept[r];
    const softmax_row row(row_of(x, p.layout, base));
    for (std::size_t i = 0; i < p.layout.reduced.size(); ++i) {
      const auto at = static_cast<std::size_t>(base + p.layout.reduced[i]);
      result exact;
      if (p.target[r] == options.ignore_index) {
        exact = zero_result(false);
      } else if (p.outside(r)) {
        exact = nan_result();
      } else {
        exact = gradient(static_cast<std::uint32_t>(convert(g.type, f32, g.get(each ? r : 0))), row, i,
                         static_cast<std::int64_t>(i) == p.target[r], n);
      }
      const rounded v = exact(out.type);
      out.set(at, v.bits);
      all[at] = v.where;
    }
  }
  if (where != nullptr) where->insert(where->end(), all.begin(), all.end());
  return out;
}

}  // namespace repdl::reference
