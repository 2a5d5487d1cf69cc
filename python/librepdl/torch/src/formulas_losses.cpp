// Losses.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/promote_types.h>
#include <ATen/ops/zeros.h>

#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {
const char* reduction_of(int64_t r) {
  TORCH_CHECK(r >= 0 && r <= 2, "expected a reduction of 0 to 2, got ", r);
  constexpr const char* names[] = {"none", "mean", "sum"};
  return names[r];
}
Tensor loss_result(const Tensor& x, const Tensor& t, int64_t reduction) {
  if (reduction != 0) return at::empty({}, x.options());
  return x.sizes() == t.sizes() ? at::empty_like(x) : at::empty(at::infer_size(x.sizes(), t.sizes()), x.options());
}
// Operands of one type, of results that are `type`.
struct loss_operands {
  Tensor x, t;
  loss_operands(call& c, int i) : x(c.tensor(i)), t(c.tensor(i + 1)) {
    const at::ScalarType type = at::promote_types(x.scalar_type(), t.scalar_type());
    if (!(type_bit(type) & FLOATS)) c.refuse("");
    x = converted(x, type);
    t = converted(t, type);
  }
};
void loss(call& c, const operation& op, const char* option) {
  const loss_operands p(c, 0);
  const int64_t reduction = c.integer(2);
  Tensor out = loss_result(p.x, p.t, reduction);
  if (option == nullptr) {
    op({p.x, p.t}, {&out}, {{"reduction", reduction_of(reduction)}});
  } else {
    op({p.x, p.t}, {&out}, {{"reduction", reduction_of(reduction)}, {option, c.real(3)}});
  }
  c.give(out);
}
void loss_backward(call& c, const operation& op, const char* option) {
  const loss_operands p(c, 1);
  const Tensor g = converted(c.tensor(0), p.x.scalar_type());
  Tensor out = loss_result(p.x, p.t, 0);
  // A second derivative has g of elements also of what was reduced; then a mean's division is a rounding of its own.
  const int64_t reduction = c.integer(3);
  const bool of_elements = reduction != 0 && g.dim() > 0;
  const attribute reduced("reduction", reduction_of(of_elements ? 0 : reduction));
  const Tensor gs = of_elements ? g.expand(out.sizes()) : g;
  if (option == nullptr) {
    op({gs, p.x, p.t}, {&out}, {reduced});
  } else {
    op({gs, p.x, p.t}, {&out}, {reduced, {option, c.real(4)}});
  }
  c.give(of_elements && reduction == 1 ? out.div(static_cast<double>(out.numel())) : out);
}
}  // namespace
#define REPDL_LOSS(name, option)                  \
  void name(call& c) {                            \
    static const operation op(#name);             \
    loss(c, op, option);                          \
  }                                               \
  void name##_backward(call& c) {                 \
    static const operation op(#name "_backward"); \
    loss_backward(c, op, option);                 \
  }
REPDL_LOSS(mse_loss, nullptr)
REPDL_LOSS(smooth_l1_loss, "beta")
REPDL_LOSS(huber_loss, "delta")
REPDL_LOSS(soft_margin_loss, nullptr)
#undef REPDL_LOSS

// self, target, weight, reduction
void binary_cross_entropy(call& c) {
  static const operation op("binary_cross_entropy");
  const Tensor &x = c.tensor(0), &t = c.tensor(1);
  TORCH_CHECK(x.sizes() == t.sizes(), "Using a target size (", t.sizes(), ") that is different to the input size (",
              x.sizes(), ") is deprecated. Please ensure they have the same size.");
  for (const Tensor* p : {&x, &t}) expect_all(p->ge(0).logical_and(p->le(1)), "expected elements between 0 and 1");
  Tensor out = loss_result(x, t, c.integer(3));
  op({x, t, c.tensor(2)}, {&out}, {{"reduction", reduction_of(c.integer(3))}});
  c.give(out);
}
// grad_output, self, target, weight, reduction
void binary_cross_entropy_backward(call& c) {
  static const operation op("binary_cross_entropy_backward");
  const Tensor& x = c.tensor(1);
  Tensor out = at::empty_like(x);
  op({c.tensor(0), x, c.tensor(2), c.tensor(3)}, {&out}, {{"reduction", reduction_of(c.integer(4))}});
  c.give(out);
}
// self, target, weight, pos_weight, reduction
void binary_cross_entropy_with_logits(call& c) {
  static const operation op("binary_cross_entropy_with_logits");
  const Tensor &x = c.tensor(0), &t = c.tensor(1);
  TORCH_CHECK(x.sizes() == t.sizes(), "Target size (", t.sizes(), ") must be the same as input size (", x.sizes(), ")");
  // Of several types in the widest of them; PyTorch's result has the target's.
  at::ScalarType widest = x.scalar_type();
  for (int i = 1; i < 4; ++i) {
    const Tensor& given = c.tensor(i);
    if (given.defined() && given.is_floating_point()) widest = at::promote_types(widest, given.scalar_type());
  }
  const auto as_widest = [&](int i) {
    const Tensor& given = c.tensor(i);
    return given.defined() && given.is_floating_point() ? converted(given, widest) : given;
  };
  const Tensor logits = as_widest(0), targets = as_widest(1), weight = as_widest(2), pos_weight = as_widest(3);
  Tensor out = loss_result(logits, targets, c.integer(4));
  op({logits, targets, weight, pos_weight}, {&out}, {{"reduction", reduction_of(c.integer(4))}});
  c.give(converted(out, t.scalar_type()));
}

namespace {
const Tensor& classes_weight(call& c, const Tensor& x, int i) {
  const Tensor& w = c.tensor(i);
  if (w.defined() && w.scalar_type() != x.scalar_type()) c.refuse("with a weight of another type");
  return w;
}
// Of the sum of the weights.
at::ScalarType type_of_weights(const Tensor& x) { return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }
// Of every target that is not ignored.
void expect_classes(const Tensor& targets, int64_t classes, int64_t ignored) {
  constexpr const char* what = "expected targets that are classes";
  if (!targets.is_cpu()) {
    return expect_all(targets.ge(0).logical_and(targets.lt(classes)).logical_or(targets.eq(ignored)), what);
  }
  const Tensor dense = targets.contiguous();
  const auto* const t = dense.const_data_ptr<int64_t>();
  const bool all =
      std::all_of(t, t + dense.numel(), [&](int64_t i) { return i == ignored || (i >= 0 && i < classes); });
  TORCH_CHECK_INDEX(all, what);
}
}  // namespace
// self, target, weight, reduction, ignore_index; also of images (nll_loss2d)
void nll_loss_forward(call& c) {
  static const operation op("nll_loss");
  const Tensor &x = c.tensor(0), &t = c.tensor(1);
  TORCH_CHECK(x.dim() > 0, "nll_loss: expected an input of one dimension or more");
  TORCH_CHECK(t.scalar_type() == at::kLong, "expected scalar type Long but found ", t.scalar_type());
  const int64_t reduction = c.integer(3);
  expect_classes(t, x.size(x.dim() == 1 ? 0 : 1), c.integer(4));
  Tensor out = reduction != 0 ? at::empty({}, x.options()) : at::empty(t.sizes(), x.options()),
         total = at::empty({}, x.options().dtype(type_of_weights(x)));
  op({x, t, classes_weight(c, x, 2)}, {&out, &total},
     {{"reduction", reduction_of(reduction)}, {"ignore_index", c.integer(4)}});
  c.give(out);
  if (reduction == 0) total = at::zeros({}, x.options());  // aten's: not used
  c.give(total.scalar_type() == x.scalar_type() ? total : converted(total, x.scalar_type()));
}
// grad_output, self, target, weight, reduction, ignore_index, total_weight
void nll_loss_backward(call& c) {
  static const operation op("nll_loss_backward");
  const Tensor& x = c.tensor(1);
  Tensor out = at::empty_like(x, at::MemoryFormat::Contiguous);
  const Tensor total = converted(c.tensor(6), type_of_weights(x));
  op({c.tensor(0), x, c.tensor(2), classes_weight(c, x, 3), total}, {&out},
     {{"reduction", reduction_of(c.integer(4))}, {"ignore_index", c.integer(5)}});
  c.give(out);
}

// Of margins: each operation rounded, sums exactly.
namespace {
// A loss of each sample, or their mean or sum.
Tensor over_samples(const Tensor& loss, int64_t reduction) {
  (void)reduction_of(reduction);
  return reduction == 0 ? loss : reduction == 1 ? loss.mean() : loss.sum();
}
// g for each sample, as a column.
Tensor for_samples(const Tensor& g, int64_t samples, int64_t reduction) {
  const Tensor each = reduction == 1 ? g.div(static_cast<double>(samples)) : g;
  return each.expand({samples}).unsqueeze(1);
}
Tensor as_rows(const Tensor& x) { return x.dim() < 2 ? x.reshape({1, -1}) : x; }

// margin - x of the target + x, where it is greater than zero and not of the target itself.
struct margins {
  Tensor x, target, weight, over, is;  // is: where that is
  bool squared;
  // self, target, p, margin, weight are the arguments from `at` on.
  margins(call& c, int at) : x(as_rows(c.tensor(at))), squared(c.value(at + 2).toScalar().toDouble() == 2) {
    const double p = c.value(at + 2).toScalar().toDouble();
    TORCH_CHECK(p == 1 || p == 2, "only p == 1 and p == 2 supported");
    const Tensor& t = c.tensor(at + 1);
    TORCH_CHECK(x.dim() == 2 && x.size(1) > 0 && t.numel() == x.size(0), "inconsistent target size, expected ",
                x.size(0), " but got ", t.sizes());
    target = t.reshape({-1, 1});
    expect_all(target.ge(0).logical_and(target.lt(x.size(1))), "target out of range");
    if (c.has(at + 4) && c.tensor(at + 4).defined()) {
      const Tensor& w = c.tensor(at + 4);
      TORCH_CHECK(w.dim() <= 1 && w.numel() == x.size(1), "inconsistent weight size, expected ", x.size(1), " but got ",
                  w.sizes());
      weight = w.reshape({-1}).index_select(0, target.view({-1})).unsqueeze(1);
    }
    over = x.gather(1, target).mul(-1).add(c.number(at + 3, x.scalar_type())).add(x);
    is = over.gt(0).scatter(1, target, false);
  }
  Tensor weighted(const Tensor& t) const { return weight.defined() ? t.mul(weight) : t; }
};
}  // namespace
// self, target, p, margin, weight, reduction
void multi_margin_loss(call& c) {
  const margins m(c, 0);
  const Tensor each = m.weighted(m.squared ? m.over.square() : m.over).masked_fill(m.is.logical_not(), 0);
  const Tensor loss = each.sum(1).div(static_cast<double>(m.x.size(1)));
  c.give(over_samples(c.tensor(0).dim() < 2 ? loss.squeeze(0) : loss, c.integer(5)));
}
// grad_output, self, target, p, margin, weight, reduction
void multi_margin_loss_backward(call& c) {
  const margins m(c, 1);
  const Tensor g = for_samples(c.tensor(0), m.x.size(0), c.integer(6)).div(static_cast<double>(m.x.size(1)));
  const Tensor slope = m.squared ? m.over.mul(2) : at::ones_like(m.over);
  const Tensor each = m.weighted(slope.mul(g)).masked_fill(m.is.logical_not(), 0);
  c.give(each.scatter(1, m.target, each.sum(1, /*keepdim=*/true).neg()).view(c.tensor(1).sizes()));
}

namespace {
// For each sample, target and class 1 - x of the target + x, where it is greater than zero, of targets before the first -1 and of classes that
// are none.
struct label_margins {
  Tensor x, place, is_target, over, is;
  label_margins(call& c, int at) : x(as_rows(c.tensor(at))) {
    const Tensor target = as_rows(c.tensor(at + 1));
    TORCH_CHECK(x.dim() == 2 && x.size(1) > 0 && target.sizes() == x.sizes(),
                "inconsistent target size: ", target.sizes(), " for input of size: ", x.sizes());
    expect_all(target.ge(-1).logical_and(target.lt(x.size(1))), "target out of range");
    const Tensor listed = target.lt(0).cumsum(1).eq(0);
    place = target.clamp_min(0);
    is_target = at::zeros(x.sizes(), place.options()).scatter_add(1, place, listed.to(at::kLong)).gt(0);
    over = x.gather(1, place).mul(-1).add(1).unsqueeze(2).add(x.unsqueeze(1));
    is = over.gt(0).logical_and(listed.unsqueeze(2)).logical_and(is_target.logical_not().unsqueeze(1));
  }
};
}  // namespace
// self, target, reduction -> (result, 1 where a class is a target)
void multilabel_margin_loss_forward(call& c) {
  const label_margins m(c, 0);
  const Tensor loss = m.over.masked_fill(m.is.logical_not(), 0).sum({1, 2}).div(static_cast<double>(m.x.size(1)));
  c.give(over_samples(c.tensor(0).dim() < 2 ? loss.squeeze(0) : loss, c.integer(2)));
  c.give(m.is_target.to(m.x.scalar_type()).view(c.tensor(1).sizes()));
}
// grad_output, self, target, reduction, is_target
void multilabel_margin_loss_backward(call& c) {
  const label_margins m(c, 1);
  const Tensor g = for_samples(c.tensor(0), m.x.size(0), c.integer(3)).div(static_cast<double>(m.x.size(1)));
  // As often as a class is in such a pair, as another or, with the other sign, as a target.
  const Tensor times = m.is.sum(1).scatter_add(1, m.place, m.is.sum(2).neg());
  c.give(g.mul(times.to(m.x.scalar_type())).view(c.tensor(1).sizes()));
}

}  // namespace repdl_torch::formulas
