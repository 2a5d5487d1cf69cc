// nll_loss and its gradient, in rationals.
#include <stdexcept>

#include "reference/attributes.hpp"
#include "reference/layout.hpp"
#include "reference/losses/loss_element.hpp"
#include "reference/structured/structured.hpp"

namespace repdl::reference {
namespace {

/// a / b in the reals with infinities: by an exact 0 as by +0, a finite number by an infinity +0.
element over(const element& a, const element& b) {
  using enum number_kind;
  if (a.is(nan) || b.is(nan) || (a.is(infinite) && b.is(infinite)) || (a.is(zero) && b.is(zero))) return element::nan();
  if (a.is(infinite)) return element::infinity(a.negative != (b.is(finite) && b.negative));
  if (b.is(zero)) return element::infinity(a.negative);
  if (b.is(infinite)) return element::zero();
  return element::of(a.value / b.value);
}

struct problem {
  reduce_layout rows;                // of x: a sample each
  std::vector<std::int64_t> target;  // of each sample
  std::int64_t ignored = 0;
  std::string reduction;

  problem(const array& x, const array& targets, const attributes& attrs)
      : rows(layout_of_classes(x.shape, attribute_of<std::int64_t>(attrs, "axis"))),
        ignored(attribute_or<std::int64_t>(attrs, "ignore_index", -100)),
        reduction(attribute_or<std::string>(attrs, "reduction", "mean")) {
    if (targets.shape != rows.kept_shape) throw std::invalid_argument("reference::nll_loss: targets' shape");
    for (std::size_t i = 0; i < samples(); ++i) target.push_back(static_cast<std::int64_t>(targets.get(i)));
  }
  std::size_t samples() const { return rows.kept.size(); }
  std::int64_t classes() const { return std::ssize(rows.reduced); }
  /// Where in x a class of a sample is.
  std::size_t at(std::size_t i, std::int64_t c) const { return index(rows.kept[i] + rows.reduced[index(c)]); }
  bool is_ignored(std::size_t i) const { return target[i] == ignored; }
  bool is_absent(std::size_t i) const { return target[i] < 0 || target[i] >= classes(); }
};

element weight_at(const array& weight, std::int64_t c) {
  return weight.absent() ? element::of(mpq_class(1)) : element::of(weight.type, weight.get(index(c)));
}

const array& operand_or_none(const std::vector<array>& in, std::size_t i) {
  static const array none = array::none();
  return i < in.size() ? in[i] : none;
}

}  // namespace

std::vector<array> nll_loss(const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  const array &x = in.at(0), &weight = operand_or_none(in, 2);
  const problem p(x, in.at(1), attrs);
  const bool each = p.reduction == "none";
  array out(x.type, each ? in[1].shape : shape_list{}), total(x.type == dtype::f64 ? dtype::f64 : dtype::f32, {});
  element sum = element::zero(), weights = element::zero();
  for (std::size_t i = 0; i < p.samples(); ++i) {
    element w = element::nan(), l = element::nan();
    if (p.is_ignored(i)) {
      if (each) put(out, i, element::zero(), where);
      continue;
    }
    if (!p.is_absent(i)) {
      w = weight_at(weight, p.target[i]);
      l = negated(times(w, element::of(x.type, x.get(p.at(i, p.target[i])))));
    }
    if (each) put(out, i, l, where);
    sum = plus(sum, l);
    weights = plus(weights, w);
  }
  if (!each) put(out, 0, p.reduction == "mean" ? over(sum, weights) : sum, where);
  put(total, 0, weights, nullptr);
  return {out, total};
}

array nll_loss_backward(const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  const array &g = in.at(0), &x = in.at(1), &weight = operand_or_none(in, 3), &total = operand_or_none(in, 4);
  const problem p(x, in.at(2), attrs);
  const bool each = p.reduction == "none", mean = p.reduction == "mean";
  array out(x.type, x.shape);
  std::vector<outcome> all(static_cast<std::size_t>(out.count()));
  for (std::size_t i = 0; i < p.samples(); ++i) {
    for (std::int64_t c = 0; c < p.classes(); ++c) {
      const std::size_t at = p.at(i, c);
      element v = element::zero();
      if (!p.is_ignored(i) && p.is_absent(i)) {
        v = element::nan();
      } else if (!p.is_ignored(i) && c == p.target[i]) {
        v = negated(times(element::of(g.type, g.get(each ? i : 0)), weight_at(weight, c)));
        if (mean) {  // IEEE 754's quotient, but for the rounding
          const element n = element::of(total.type, total.get(0));
          const bool negative = v.negative != n.negative;
          const bool zero = v.is(number_kind::zero) || n.is(number_kind::infinite);
          v = over(v, n);
          if (zero && v.is(number_kind::zero)) v = element::zero(negative);
          if (n.is(number_kind::zero) && v.is(number_kind::infinite)) v = element::infinity(negative);
        }
      }
      outcomes one;
      put(out, at, v, &one);
      all[at] = one[0];
    }
  }
  if (where != nullptr) where->insert(where->end(), all.begin(), all.end());
  return out;
}

}  // namespace repdl::reference
