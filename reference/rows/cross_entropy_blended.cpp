// cross_entropy with class weights, label smoothing or probabilities, and its gradient, from the rows of softmax_row.hpp: rationals beside
// one transcendental number.
//
// With a_c the coefficients, A their sum, M the greatest element, the loss of a row is sum a_c (M - x_c) + A ln(k + rho), its gradient
// A softmax_i - a_i. Every output is v + c f, v and c rational, f = 0 or irrational and positive. v - b, b a multiple of 2^-150, is a
// multiple of 1 / (the denominator of v 2^150): where |c| f is less, half of that stands for it; otherwise some hundred bits more than v
// has decide.
#include <memory>
#include <stdexcept>

#include "reference/attributes.hpp"
#include "reference/losses/loss_element.hpp"
#include "reference/rows/softmax_row.hpp"

namespace repdl::reference {
namespace {

using values = std::function<interval(mpfr_prec_t)>;

/// v + f, where f is 0 (no function), or irrational; the format's least number is 2^unit.
struct part_rational {
  mpq_class v;
  values f;
  long unit = fixed_unit;
};
/// Less than the least difference of v from a midpoint that is not 0.
mpq_class grain(const part_rational& r) { return power_of_two(r.unit - 2) / mpq_class(r.v.get_den()); }
/// Whether f is below it in magnitude.
bool is_below(const values& f, const mpq_class& least) {
  const interval quick = f(256), opposite = -quick;
  return mpfr_cmp_q(quick.hi(), least.get_mpq_t()) < 0 && mpfr_cmp_q(opposite.hi(), least.get_mpq_t()) < 0;
}
/// sign: of f; 0: not known.
result rounded_of(const part_rational& r, int sign, bool negative_zero) {
  if (!r.f) return r.v == 0 ? zero_result(negative_zero) : exact_result(r.v);
  const mpq_class least = grain(r);
  if (sign != 0 && is_below(r.f, least)) return beside_result(r.v + least / 2 * sign, r.v);
  return decided_result([r](mpfr_prec_t p) { return r.v == 0 ? r.f(p) : interval(p, r.v) + r.f(p); });
}
int sign_of(const part_rational& r, int sign) {
  if (!r.f) return sgn(r.v);
  const mpq_class least = grain(r);
  if (sign != 0 && is_below(r.f, least)) return sgn(r.v + least / 2 * sign);
  for (mpfr_prec_t p = 256; p < (1 << 17); p *= 2) {
    const interval all = interval(p, r.v) + r.f(p);
    if (mpfr_sgn(all.lo()) > 0) return 1;
    if (mpfr_sgn(all.hi()) < 0) return -1;
  }
  throw std::logic_error("reference::cross_entropy: a sign");
}

struct blended_problem {
  const array &x, &targets, &weight;
  bool probabilities;
  std::string reduction;
  std::int64_t ignored;
  mpq_class s;
  reduce_layout rows;
  array logits;  // of binary32 or binary64

  blended_problem(const std::vector<array>& in, std::size_t first, const attributes& attrs)
      : x(in.at(first)),
        targets(in.at(first + 1)),
        weight(first + 2 < in.size() ? in[first + 2] : nothing()),
        probabilities(targets.type != dtype::i64),
        reduction(attribute_or<std::string>(attrs, "reduction", "mean")),
        ignored(attribute_or<std::int64_t>(attrs, "ignore_index", -100)),
        s(rational(attribute_or<double>(attrs, "label_smoothing", 0))),
        rows(layout_of_classes(x.shape, attribute_of<std::int64_t>(attrs, "axis"))),
        logits(x.type == dtype::f64 ? x : widened(x)) {
    if (targets.shape != (probabilities ? x.shape : rows.kept_shape))
      throw std::invalid_argument("reference::cross_entropy: targets' shape");
  }
  static const array& nothing() {
    static const array none = array::none();
    return none;
  }
  softmax_row row(std::size_t r) const {
    std::vector<std::uint64_t> v;
    for (std::size_t c = 0; c < classes(); ++c) v.push_back(logits.get(at(r, c)));
    return {logits.type, v};
  }
  std::size_t count() const { return rows.kept.size(); }
  std::size_t classes() const { return rows.reduced.size(); }
  bool each() const { return reduction == "none"; }
  std::size_t at(std::size_t r, std::size_t c) const { return index(rows.kept[r] + rows.reduced[c]); }
  std::int64_t target(std::size_t r) const { return static_cast<std::int64_t>(targets.get(r)); }
  bool is_ignored(std::size_t r) const { return !probabilities && target(r) == ignored; }
  bool is_outside(std::size_t r) const {
    return !probabilities && (target(r) < 0 || target(r) >= std::ssize(rows.reduced));
  }
  element weight_of(std::size_t c) const {
    return weight.absent() ? element::of(mpq_class(1)) : element::of(weight.type, weight.get(c));
  }
  /// a_c, NaN where a number in it is not finite.
  element coefficient(std::size_t r, std::size_t c) const {
    const element w = weight_of(c);
    mpq_class share = s / integer(std::ssize(rows.reduced));
    if (probabilities) {
      const element p = element::of(targets.type, targets.get(at(r, c)));
      if (!p.is_number()) return element::nan();
      share += (1 - s) * p.value;
    } else if (target(r) == static_cast<std::int64_t>(c)) {
      share += 1 - s;
    } else if (s == 0) {
      return element::zero();
    }
    if (!w.is_number()) return element::nan();
    return element::of(w.value * share);
  }
  /// What means are divided by.
  element divisor() const {
    if (reduction != "mean") return element::of(mpq_class(1));
    if (probabilities) return element::of(integer(std::ssize(rows.kept)));
    element sum = element::zero();
    for (std::size_t r = 0; r < count(); ++r) {
      if (is_ignored(r)) continue;
      if (weight.absent()) {
        sum = plus(sum, element::of(mpq_class(1)));
      } else {
        sum = plus(sum, is_outside(r) ? element::nan() : weight_of(static_cast<std::size_t>(target(r))));
      }
    }
    return sum;
  }
};

/// A row's coefficients; none where one is NaN.
struct coefficients {
  std::vector<mpq_class> a;
  mpq_class sum;
  bool bad = false;

  coefficients(const blended_problem& p, std::size_t r) {
    for (std::size_t c = 0; c < p.classes(); ++c) {
      const element e = p.coefficient(r, c);
      bad = bad || e.is(number_kind::nan);
      a.push_back(e.value);
      sum += e.value;
    }
  }
};

/// A row's loss: special, or v + factor * ln(k + rho) of a row.
struct blended_loss {
  element special = element::zero();
  mpq_class v;
  mpq_class factor;
  std::shared_ptr<softmax_row> row;
};
blended_loss loss_of(const blended_problem& p, std::size_t r) {
  blended_loss l;
  if (p.is_ignored(r) || (p.probabilities && p.classes() == 0)) return l;
  auto row = std::make_shared<softmax_row>(p.row(r));
  if (p.is_outside(r) || row->invalid()) {
    l.special = element::nan();
    return l;
  }
  const coefficients k(p, r);
  if (k.bad) {
    l.special = element::nan();
    return l;
  }
  for (std::size_t c = 0; c < p.classes(); ++c) {
    if (k.a[c] == 0) continue;
    if (row->is_finite(c)) {
      l.v -= k.a[c] * mpq_class(row->gap(c)) * power_of_two(row->unit());
    } else {
      l.special = plus(l.special, element::infinity(k.a[c] < 0));
    }
  }
  if (k.sum != 0 && !(row->k == 1 && row->all_equal())) {
    l.factor = k.sum;
    l.row = std::move(row);
  }
  return l;
}

double as_double(const element& e) {
  if (e.is(number_kind::nan)) return __builtin_nan("");
  if (e.is(number_kind::infinite)) return e.negative ? -__builtin_inf() : __builtin_inf();
  return sgn(e.value);
}
/// Of -1, 0, 1, infinities and NaN, whose quotients and products are known by their kind.
result special_result(double v) {
  if (v != v) return nan_result();
  if (__builtin_isinf(v)) return infinite_result(v < 0);
  return zero_result(__builtin_signbit(v) != 0);
}

result total_of(const std::vector<blended_loss>& rows, const element& n, long unit) {
  element special = element::zero();
  part_rational sum{0, {}, unit};
  bool positive = false, negative = false;
  std::vector<blended_loss> logs;
  for (const blended_loss& l : rows) {
    special = plus(special, l.special);
    sum.v += l.v;
    if (!l.row) continue;
    logs.push_back(l);
    (l.factor > 0 ? positive : negative) = true;
  }
  const int sign = positive == negative ? 0 : positive ? 1 : -1;
  const bool divides = n.is(number_kind::finite);
  const mpq_class by = divides ? n.value : mpq_class(1);
  sum.v /= by;
  if (!logs.empty()) {
    sum.f = [logs, by](mpfr_prec_t p) {
      interval s(p);
      for (const blended_loss& l : logs) s = s + interval(p, l.factor / by) * l.row->log_sum(p);
      return s;
    };
  }
  if (special.kind == number_kind::zero && divides) return rounded_of(sum, by < 0 ? -sign : sign, false);
  if (special.kind != number_kind::zero) return special_result(as_double(special) / as_double(n) + 0.0);
  if (!n.is(number_kind::zero)) return special_result((n.is(number_kind::nan) ? as_double(n) : 0.0) + 0.0);
  return special_result(sign_of(sum, sign) / 0.0);
}

/// g (A softmax_i - a_i) / n.
result gradient_of(const softmax_row& row, const coefficients& k, std::size_t i, const element& g, const element& n) {
  if (g.is(number_kind::nan) || n.is(number_kind::nan)) return nan_result();
  const bool known = g.is(number_kind::finite) && n.is(number_kind::finite);
  const mpq_class scale = known ? mpq_class(g.value / n.value) : mpq_class(1);
  part_rational d{-k.a[i] * scale, {}, row.unit()};
  int sign = 0;
  const mpq_class factor = k.sum * scale;
  if (row.is_finite(i) && k.sum != 0) {
    if (row.is_greatest(i)) {  // A / k - A rho / (k (k + rho))
      d.v += factor / row.k;
      if (!row.all_equal()) {
        sign = -sgn(factor);
        d.f = [factor, &row](mpfr_prec_t p) { return interval(p, -factor / row.k) * (row.rho(p) / row.sum(p)); };
      }
    } else {
      sign = sgn(factor);
      d.f = [factor, &row, i](mpfr_prec_t p) { return interval(p, factor) * (row.weight(p, i) / row.sum(p)); };
    }
  }
  if (known) return rounded_of(d, sign, (g.value < 0) != (n.value < 0));
  double v = as_double(g);
  if (g.is(number_kind::zero)) v = g.negative ? -0.0 : 0.0;
  return special_result(v * sign_of(d, sign) / as_double(n));
}

}  // namespace

array blended_cross_entropy(const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  const blended_problem p(in, 0, attrs);
  array out(p.x.type, p.each() ? p.rows.kept_shape : shape_list{});
  const auto put = [&](std::size_t at, const result& unrounded) {
    const rounded r = unrounded(out.type);
    out.set(at, r.bits);
    if (where != nullptr) where->push_back(r.where);
  };
  const long unit = format_of(p.logits.type).ulp_min();
  std::vector<blended_loss> all;
  for (std::size_t r = 0; r < p.count(); ++r) {
    all.push_back(loss_of(p, r));
    if (!p.each()) continue;
    put(r, total_of(all, element::of(mpq_class(1)), unit));
    all.clear();
  }
  if (!p.each()) put(0, total_of(all, p.divisor(), unit));
  return out;
}

array blended_cross_entropy_backward(const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  const array& g = in.at(0);
  const blended_problem p(in, 1, attrs);
  if (g.shape != (p.each() ? p.rows.kept_shape : shape_list{}))
    throw std::invalid_argument("reference::cross_entropy_backward: g's shape");
  array out(p.x.type, p.x.shape);
  std::vector<outcome> all(index(out.count()));
  const element n = p.divisor();
  for (std::size_t r = 0; r < p.count(); ++r) {
    const softmax_row row = p.row(r);
    const element own = element::of(g.type, g.get(p.each() ? r : 0));
    const bool valid = !p.is_ignored(r) && !p.is_outside(r) && !row.invalid();
    std::unique_ptr<coefficients> k;
    if (valid) k = std::make_unique<coefficients>(p, r);
    for (std::size_t i = 0; i < p.classes(); ++i) {
      result exact = nan_result();
      if (p.is_ignored(r)) {
        exact = zero_result(false);
      } else if (valid && !k->bad) {
        exact = gradient_of(row, *k, i, own, n);
      }
      const rounded v = exact(out.type);
      out.set(p.at(r, i), v.bits);
      all[p.at(r, i)] = v.where;
    }
  }
  if (where != nullptr) where->insert(where->end(), all.begin(), all.end());
  return out;
}

}  // namespace repdl::reference
