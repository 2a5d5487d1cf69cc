// Norms of layers, groups and batches.
#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/norm_except_dim.h>

#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {
c10::SmallVector<int64_t, 6> last_axes(const Tensor& x, size_t count) {
  c10::SmallVector<int64_t, 6> axes;
  for (size_t i = 0; i < count; ++i) axes.push_back(x.dim() - static_cast<int64_t>(count - i));
  return axes;
}
// Statistics lie in binary32, beside binary64 in that.
at::ScalarType statistics_type(const Tensor& x) { return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }
Tensor statistics(const Tensor& x, at::IntArrayRef shape) { return fresh(shape, statistics_type(x), x.device()); }
std::vector<int64_t> rows_shape(const Tensor& x, size_t count) { return x.sizes().slice(0, x.dim() - count).vec(); }
// One for each row: x's last axes have size 1.
Tensor row_statistics(const Tensor& x, size_t count) {
  c10::SmallVector<int64_t, 6> shape(x.sizes().begin(), x.sizes().end() - static_cast<std::ptrdiff_t>(count));
  shape.resize(shape.size() + count, 1);
  return statistics(x, shape);
}
Tensor without_ones(const Tensor& t, const Tensor& x, size_t count) { return t.reshape(rows_shape(x, count)); }
// Argument 1, the sizes of the last axes of x.
std::vector<int64_t> normalized_shape(const call& c, const Tensor& x) {
  const auto size = c.integers(1);
  TORCH_CHECK(!size.empty() && x.dim() >= static_cast<int64_t>(size.size()) &&
                  x.sizes().slice(x.dim() - size.size()).equals(size),
              "Given normalized_shape=", size, ", expected input with shape [*, ", size, "], but got input of size ",
              x.sizes());
  return size;
}
Tensor in(at::ScalarType type, const Tensor& t) { return t.defined() ? converted(t, type) : t; }
// float64 beside another input would be rounded.
void check_beside(const call& c, const Tensor& x, const Tensor& t) {
  if (t.defined() && t.scalar_type() == at::kDouble && x.scalar_type() != at::kDouble)
    c.refuse("with weights or statistics of float64 beside an input of another type");
}
Tensor as_statistics(const call& c, const Tensor& x, const Tensor& t) {
  check_beside(c, x, t);
  return in(statistics_type(x), t);
}
// Weights and biases as librepdl takes them: in x's type, or in float32, beside float64 in that, which has all their numbers.
struct factors {
  Tensor weight, bias;
  factors(const call& c, const Tensor& x, const Tensor& w, const Tensor& b) : weight(w), bias(b) {
    for (const Tensor* t : {&w, &b}) {
      check_beside(c, x, *t);
      if (!t->defined() || t->scalar_type() == x.scalar_type()) continue;
      weight = in(statistics_type(x), w);
      bias = in(statistics_type(x), b);
    }
  }
};
// g or x, of which the gradient to a factor of this type is made: of a type that is neither theirs nor float32, or of float32 beside float64, it
// would be rounded twice.
Tensor for_factor(const call& c, const Tensor& t, at::ScalarType type) {
  if (type != t.scalar_type() && (type != at::kFloat || t.scalar_type() == at::kDouble))
    c.refuse("with a gradient to a weight or bias of a type that is neither the input's nor float32 beside 16 bits");
  return in(type, t);
}
void check_gradient(const call& c, const Tensor& g, const Tensor& x) {
  if (g.scalar_type() != x.scalar_type()) c.refuse("with a gradient of another type than the input");
}
// What the weight's and the bias' gradients are: of their type, of x's where they are absent.
at::ScalarType type_of_gradient(const Tensor& weight, const Tensor& x) {
  return weight.defined() ? weight.scalar_type() : x.scalar_type();
}
double eps_of(const call& c, int i) {
  if (!(c.real(i) >= 0)) c.refuse("with eps < 0");
  return c.real(i);
}
}  // namespace

// input, normalized_shape, weight, bias, eps
void native_layer_norm(call& c) {
  static const operation op("layer_norm");
  const Tensor& x = c.tensor(0);
  const factors f(c, x, c.tensor(2), c.tensor(3));
  const auto size = normalized_shape(c, x);
  const auto axes = last_axes(x, size.size());
  for (const Tensor* t : {&f.weight, &f.bias}) {
    TORCH_CHECK(!t->defined() || t->sizes().equals(size), "Expected ", t == &f.weight ? "weight" : "bias", " of shape ",
                size, ", but got ", t->sizes());
  }
  Tensor y = fresh(x.sizes(), x.scalar_type(), x.device()), mean = row_statistics(x, size.size()),
         rstd = fresh_like(mean);
  const int64_t rows = x.dim() - static_cast<int64_t>(size.size());
  op(x.device(), {x, f.weight, f.bias}, {y, operand::leading(mean, rows), operand::leading(rstd, rows)},
     {{"axis", at::IntArrayRef(axes)}, {"eps", eps_of(c, 4)}});
  c.give(std::move(y));
  c.give(std::move(mean));
  c.give(std::move(rstd));
}

// grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask
void native_layer_norm_backward(call& c) {
  static const operation to_x("layer_norm_backward"), to_weight("layer_norm_weight_backward"), sum("sum");
  const Tensor &g = c.tensor(0), &x = c.tensor(1), &b = c.tensor(6), w = factors(c, x, c.tensor(5), {}).weight;
  check_gradient(c, g, x);
  const auto size = c.integers(2);
  const auto axes = last_axes(x, size.size());
  const auto mask = c.value(7).toBoolList();
  const Tensor mean = without_ones(c.tensor(3), x, size.size()), rstd = without_ones(c.tensor(4), x, size.size());
  Tensor gx, gw, gb;
  if (mask[0]) {
    gx = fresh(x.sizes(), x.scalar_type(), x.device());
    to_x({g, x, mean, rstd, w}, {&gx}, {{"axis", at::IntArrayRef(axes)}});
  }
  if (mask[1] && w.defined()) {
    const Tensor og = for_factor(c, g, c.tensor(5).scalar_type()), ox = for_factor(c, x, og.scalar_type());
    gw = at::empty_like(c.tensor(5), at::MemoryFormat::Contiguous);
    to_weight({og, ox, mean, rstd}, {&gw}, {{"axis", at::IntArrayRef(axes)}});
  }
  if (mask[2] && b.defined()) {
    gb = fresh(b.sizes(), b.scalar_type(), b.device());
    std::vector<int64_t> leading;
    for (int64_t i = 0; i < x.dim() - static_cast<int64_t>(size.size()); ++i) leading.push_back(i);
    const Tensor og = for_factor(c, g, b.scalar_type());
    sum({og}, {&gb}, {{"axis", at::IntArrayRef(leading)}});
  }
  c.give(gx);
  c.give(gw);
  c.give(gb);
}

// input, weight, bias, N, C, HxW, group, eps
void native_group_norm(call& c) {
  static const operation op("group_norm");
  const Tensor& x = c.tensor(0);
  const factors f(c, x, c.tensor(1), c.tensor(2));
  const int64_t n = c.integer(3), groups = c.integer(6);
  TORCH_CHECK(groups > 0 && c.integer(4) % groups == 0,
              "Expected number of channels in input to be divisible by num_groups, got ", c.integer(4),
              " channels and num_groups=", groups);
  Tensor y = fresh(x.sizes(), x.scalar_type(), x.device()), mean = statistics(x, {n, groups}), rstd = fresh_like(mean);
  op({x, f.weight, f.bias}, {&y, &mean, &rstd}, {{"groups", groups}, {"eps", eps_of(c, 7)}});
  c.give(y);
  c.give(mean);
  c.give(rstd);
}

// grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask
void native_group_norm_backward(call& c) {
  static const operation to_x("group_norm_backward"), to_weight("group_norm_weight_backward");
  const Tensor &g = c.tensor(0), &x = c.tensor(1), &mean = c.tensor(2), &rstd = c.tensor(3),
               w = factors(c, x, c.tensor(4), {}).weight;
  check_gradient(c, g, x);
  const int64_t channels = c.integer(6), groups = c.integer(8);
  const auto mask = c.value(9).toBoolList();
  Tensor gx, gw, gb;
  if (mask[0]) {
    gx = fresh(x.sizes(), x.scalar_type(), x.device());
    to_x({g, x, mean, rstd, w}, {&gx}, {{"groups", groups}});
  }
  if (mask[1] || mask[2]) {
    const Tensor og = for_factor(c, g, type_of_gradient(c.tensor(4), x)), ox = for_factor(c, x, og.scalar_type());
    if (mask[1]) {
      gw = at::empty({channels}, ox.options());
      to_weight({og, ox, mean, rstd}, {&gw}, {{"groups", groups}});
    }
    if (mask[2]) gb = sum_over_all_but(og, 1);
  }
  c.give(gx);
  c.give(gw);
  c.give(gb);
}

Tensor sum_over_all_but(const Tensor& t, int64_t axis) {
  static const operation op("sum");
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < t.dim(); ++i) {
    if (i != axis) axes.push_back(i);
  }
  Tensor out = at::empty({t.size(axis)}, t.options());
  op({t}, {&out}, {{"axis", at::IntArrayRef(axes)}});
  return out;
}

namespace {
struct batch {
  Tensor x, weight, bias, running_mean, running_var;
  bool training;
  double momentum, eps;
};
// The result, and of training the statistics that backward reads.
std::array<Tensor, 3> batch_norm_of(call& c, batch b) {
  static const operation alone("batch_norm"), running("batch_norm_running"), inference("batch_norm_inference");
  TORCH_CHECK(b.x.dim() >= 2, "batch_norm: expected an input of two dimensions or more, got ", b.x.dim());
  const int64_t channels = b.x.size(1);
  for (const Tensor* t : {&b.weight, &b.bias, &b.running_mean, &b.running_var}) {
    TORCH_CHECK(!t->defined() || t->numel() == channels, "batch_norm: expected ", channels, " elements, got ",
                t->numel());
  }
  if (b.running_mean.defined() && !b.training) {
    b.running_mean = as_statistics(c, b.x, b.running_mean);
    b.running_var = as_statistics(c, b.x, b.running_var);
  }
  for (const Tensor* t : {&b.running_mean, &b.running_var}) {
    if (!t->defined() || t->scalar_type() == statistics_type(b.x)) continue;
    if (t->scalar_type() != b.x.scalar_type() || b.running_mean.scalar_type() != b.running_var.scalar_type())
      c.refuse("with running statistics that are neither of the input's type nor float32 beside 16 bits");
  }
  if (b.training && b.running_mean.defined() && !(b.momentum >= 0 && b.momentum <= 1))
    c.refuse("with a momentum outside of [0, 1]");
  // The bias' gradient has the weight's type, for all that backward knows.
  if (!b.weight.defined() && b.bias.defined() && b.bias.requires_grad() && b.bias.scalar_type() != b.x.scalar_type())
    c.refuse("with a bias of another type than the input, without a weight");
  const factors f(c, b.x, b.weight, b.bias);
  Tensor y = at::empty_like(b.x), mean, rstd;
  if (b.training) {
    mean = statistics(b.x, {channels});
    rstd = fresh_like(mean);
    if (b.running_mean.defined()) {
      running({b.x, b.running_mean, b.running_var, f.weight, f.bias},
              {&y, &mean, &rstd, &b.running_mean, &b.running_var}, {{"eps", b.eps}, {"momentum", b.momentum}});
    } else {
      alone({b.x, f.weight, f.bias}, {&y, &mean, &rstd}, {{"eps", b.eps}});
    }
  } else {
    TORCH_CHECK(b.running_mean.defined() && b.running_var.defined(),
                "batch_norm: expected running statistics in evaluation");
    inference({b.x, b.running_mean, b.running_var, f.weight, f.bias}, {&y}, {{"eps", b.eps}});
    mean = statistics(b.x, {0});
    rstd = fresh_like(mean);
  }
  return {y, mean, rstd};
}
void give_all(call& c, const std::array<Tensor, 3>& all) {
  for (const Tensor& t : all) c.give(t);
}
}  // namespace

// input, weight, bias, running_mean, running_var, training, momentum, eps
void native_batch_norm(call& c) {
  give_all(c, batch_norm_of(c, {c.tensor(0), c.tensor(1), c.tensor(2), c.tensor(3), c.tensor(4), c.boolean(5),
                                c.real(6), eps_of(c, 7)}));
}
// input, weight, bias, training, momentum, eps
void native_batch_norm_no_stats(call& c) {
  give_all(c, batch_norm_of(c, {c.tensor(0), c.tensor(1), c.tensor(2), {}, {}, c.boolean(3), c.real(4), eps_of(c, 5)}));
}

// grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
void native_batch_norm_backward(call& c) {
  static const operation to_x("batch_norm_backward"), to_weight("batch_norm_weight_backward"),
      to_x_given("batch_norm_inference_backward"), to_weight_given("batch_norm_inference_weight_backward");
  const Tensor &g = c.tensor(0), &x = c.tensor(1), w = factors(c, x, c.tensor(2), {}).weight;
  check_gradient(c, g, x);
  const bool training = c.boolean(7);
  const Tensor mean = as_statistics(c, x, c.tensor(training ? 5 : 3)),
               other = as_statistics(c, x, c.tensor(training ? 6 : 4));
  const auto mask = c.value(9).toBoolList();
  const double eps = eps_of(c, 8);
  Tensor gx, gw, gb;
  if (mask[0]) {
    gx = at::empty_like(x);
    if (training) {
      to_x({g, x, mean, other, w}, {&gx});
    } else {
      to_x_given({g, other, w}, {&gx}, {{"eps", eps}});
    }
  }
  if (mask[1] || mask[2]) {
    const Tensor og = for_factor(c, g, type_of_gradient(c.tensor(2), x)), ox = for_factor(c, x, og.scalar_type());
    if (mask[1]) {
      gw = at::empty({x.size(1)}, ox.options());
      if (training) {
        to_weight({og, ox, mean, other}, {&gw});
      } else {
        to_weight_given({og, ox, mean, other}, {&gw}, {{"eps", eps}});
      }
    }
    if (mask[2]) gb = sum_over_all_but(og, 1);
  }
  c.give(gx);
  c.give(gw);
  c.give(gb);
}

// Composite: cuDNN's, MIOpen's and aten's own kernels are chosen by flags; here there is one.
// input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled
void batch_norm(call& c) {
  if (c.tensor(0).numel() == 0) {  // as aten has it
    Tensor out = c.tensor(0).clone();
    if (c.has(1) && c.tensor(1).defined()) out = out.mul(c.tensor(1).select(0, 0));
    if (c.has(2) && c.tensor(2).defined()) out = out.add(c.tensor(2).select(0, 0));
    return c.give(out);
  }
  c.give(std::get<0>(at::native_batch_norm(c.tensor(0), c.optional(1), c.optional(2), c.optional(3), c.optional(4),
                                           c.boolean(5), c.real(6), c.real(7))));
}

// One kernel, where aten has one on some devices and a composite on others.
// input, normalized_shape, weight, eps
void rms_norm(call& c) {
  const Tensor &x = c.tensor(0), &w = c.tensor(2);
  if (!(type_bit(x.scalar_type()) & FLOATS)) {
    refuse(c.what().name, c.arguments(), "");
    // Not strict. On the CPU aten's is a composite: below our kernel it has no gradient.
    const auto axes = last_axes(x, c.integers(1).size());
    const double eps = c.has(3) ? c.real(3) : std::numeric_limits<double>::epsilon();
    Tensor y = x.mul(x.square().mean(axes, true).add(eps).rsqrt());
    return c.give(w.defined() ? y.mul(w) : y);
  }
  c.give(std::get<0>(at::_fused_rms_norm(c.tensor(0), c.integers(1), c.optional(2),
                                         c.has(3) ? std::optional(c.real(3)) : std::nullopt)));
}

// v, g, dim: aten's composite, without its fused kernels
void weight_norm(call& c) {
  const Tensor &v = c.tensor(0), &g = c.tensor(1);
  c.give(v.mul(g.div(at::norm_except_dim(v, 2, c.integer(2)))));
}

// input, normalized_shape, weight, eps; PyTorch's default eps is the type's, of 16-bit types float32's
void fused_rms_norm(call& c) {
  static const operation op("rms_norm");
  const Tensor &x = c.tensor(0), w = factors(c, x, c.tensor(2), {}).weight;
  const auto size = normalized_shape(c, x);
  const auto axes = last_axes(x, size.size());
  Tensor y = fresh(x.sizes(), x.scalar_type(), x.device()), rstd = row_statistics(x, size.size());
  const double least =
      x.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const double eps = c.has(3) ? eps_of(c, 3) : least;
  op(x.device(), {x, w}, {y, operand::leading(rstd, x.dim() - static_cast<int64_t>(size.size()))},
     {{"axis", at::IntArrayRef(axes)}, {"eps", eps}});
  c.give(std::move(y));
  c.give(std::move(rstd));
}
// grad_out, input, normalized_shape, rstd, weight, output_mask
void fused_rms_norm_backward(call& c) {
  static const operation to_x("rms_norm_backward"), to_weight("rms_norm_weight_backward");
  const Tensor &g = c.tensor(0), &x = c.tensor(1), w = factors(c, x, c.tensor(4), {}).weight;
  check_gradient(c, g, x);
  const Tensor rstd = without_ones(c.tensor(3), x, c.integers(2).size());
  const auto axes = last_axes(x, c.integers(2).size());
  const auto mask = c.value(5).toBoolList();
  Tensor gx, gw;
  if (mask[0]) {
    gx = fresh(x.sizes(), x.scalar_type(), x.device());
    to_x({g, x, rstd, w}, {&gx}, {{"axis", at::IntArrayRef(axes)}});
  }
  if (mask[1] && w.defined()) {
    const Tensor og = for_factor(c, g, c.tensor(4).scalar_type()), ox = for_factor(c, x, og.scalar_type());
    gw = at::empty_like(c.tensor(4), at::MemoryFormat::Contiguous);
    to_weight({og, ox, rstd}, {&gw}, {{"axis", at::IntArrayRef(axes)}});
  }
  c.give(gx);
  c.give(gw);
}

}  // namespace repdl_torch::formulas
