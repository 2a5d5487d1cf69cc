// Sums, statistics, softmax and norms.
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/all.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/diagonal.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/unsqueeze.h>
#include <ATen/ops/zeros.h>

#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {

// The axes of a reduction, none of them negative; aten: an empty list means all.
std::vector<int64_t> axes_of(const Tensor& x, std::vector<int64_t> axes) {
  if (axes.empty()) {
    for (int64_t i = 0; i < x.dim(); ++i) axes.push_back(i);
  } else {
    (void)at::dim_list_to_bitset(axes, x.dim());  // its errors: out of range, twice
    for (int64_t& a : axes) a = at::maybe_wrap_dim(a, x.dim());
    if (x.dim() == 0) axes.clear();
  }
  return axes;
}
std::vector<int64_t> shape_without(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  std::vector<int64_t> shape;
  for (int64_t i = 0; i < x.dim(); ++i) {
    const bool gone = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!gone) shape.push_back(x.size(i));
    if (gone && keep) shape.push_back(1);
  }
  return shape;
}

struct reduction {
  Tensor x;
  std::vector<int64_t> axes, shape;
  bool keep;
  reduction(const Tensor& t, const std::vector<int64_t>& list, bool keepdim)
      : x(t), axes(axes_of(t, list)), shape(shape_without(t, axes, keepdim)), keep(keepdim) {}
  Tensor empty(at::ScalarType type) const { return at::empty(shape, x.options().dtype(type)); }
  Tensor operator()(const operation& op, at::ScalarType type) const {
    Tensor out = empty(type);
    op({x}, {&out}, {{"axis", at::IntArrayRef(axes)}, {"keepdim", keep}});
    return out;
  }
  Tensor operator()(const operation& op) const { return (*this)(op, x.scalar_type()); }
};

// self, dim, keepdim, dtype: in the type that is asked for, as aten converts first.
void sum_like(call& c, const operation& op) {
  const Tensor& x = c.tensor(0);
  const at::ScalarType type = c.type(3, x.scalar_type());
  if (!at::isFloatingType(type)) return c.leave();
  if (!(type_bit(type) & NARROW) || (at::isFloatingType(x.scalar_type()) && !(type_bit(x.scalar_type()) & FLOATS))) c.refuse("");
  c.give(reduction(converted(x, type), c.integers(1), c.boolean(2))(op));
}
// dtype of all that sums: None is x's own type, or int64 of integers.
bool rounds(const call& c, const Tensor& x, int dtype) { return at::isFloatingType(c.type(dtype, x.scalar_type())); }

}  // namespace

void sum(call& c) {
  static const operation op("sum");
  if (!rounds(c, c.tensor(0), 3)) return at::isComplexType(c.type(3, c.tensor(0).scalar_type())) ? c.refuse("") : c.leave();
  sum_like(c, op);
}
// Without the NaNs.
void nansum(call& c) {
  static const operation op("sum");
  const Tensor& x = c.tensor(0);
  const at::ScalarType type = c.type(3, x.scalar_type());
  if (!at::isFloatingType(x.scalar_type()) || !at::isFloatingType(type)) return c.leave();
  if (!(type_bit(type) & NARROW)) c.refuse("");
  c.give(reduction(converted(x.masked_fill(x.isnan(), 0), type), c.integers(1), c.boolean(2))(op));
}
void trace(call& c) {
  TORCH_CHECK(c.tensor(0).dim() == 2, "trace: expected a matrix, but got tensor with dim ", c.tensor(0).dim());
  c.give(c.tensor(0).diagonal().sum());
}
void mean(call& c) {
  static const operation op("mean");
  const at::ScalarType type = c.type(3, c.tensor(0).scalar_type());
  if (at::isComplexType(type)) c.refuse("");
  sum_like(c, op);
}

void amax(call& c) {
  static const operation op("max");
  const reduction r(c.tensor(0), c.integers(1), c.boolean(2));
  c.give(r(op));
}
void amin(call& c) {
  static const operation op("min");
  const reduction r(c.tensor(0), c.integers(1), c.boolean(2));
  c.give(r(op));
}
void max_all(call& c) {
  static const operation op("max");
  c.give(reduction(c.tensor(0), {}, false)(op));
}
void min_all(call& c) {
  static const operation op("min");
  c.give(reduction(c.tensor(0), {}, false)(op));
}
namespace {
void extreme(call& c, const operation& value, const operation& index) {
  const reduction r(c.tensor(0), {c.integer(1)}, c.boolean(2));
  c.give(r(value));
  c.give(r.axes.empty() ? at::zeros(r.shape, c.tensor(0).options().dtype(at::kLong)) : r(index, at::kLong));
}
void index_of(call& c, const operation& op) {
  const Tensor& x = c.tensor(0);
  if (c.has(1)) {
    const reduction r(x, {c.integer(1)}, c.boolean(2));
    return c.give(r.axes.empty() ? at::zeros(r.shape, x.options().dtype(at::kLong)) : r(op, at::kLong));
  }
  const reduction r(x, {}, c.boolean(2));
  c.give(x.dim() == 0 ? at::zeros(r.shape, x.options().dtype(at::kLong)) : r(op, at::kLong));
}
}  // namespace
void max_dim(call& c) {
  static const operation value("max"), index("argmax");
  extreme(c, value, index);
}
void min_dim(call& c) {
  static const operation value("min"), index("argmin");
  extreme(c, value, index);
}
void argmax(call& c) {
  static const operation op("argmax");
  index_of(c, op);
}
void argmin(call& c) {
  static const operation op("argmin");
  index_of(c, op);
}
void aminmax(call& c) {
  static const operation least("min"), greatest("max");
  const reduction r(c.tensor(0), c.has(1) ? std::vector<int64_t>{c.integer(1)} : std::vector<int64_t>{}, c.boolean(2));
  c.give(r(least));
  c.give(r(greatest));
}

namespace {
// self, dim, correction, keepdim
void statistic(call& c, const char* name, bool mean_too) {
  const Tensor& x = c.tensor(0);
  const reduction r(x, c.integers(1), c.boolean(3));
  const double correction = c.has(2) ? c.value(2).toScalar().toDouble() : 1;
  Tensor out = r.empty(x.scalar_type());
  const attribute axis("axis", at::IntArrayRef(r.axes)), keep("keepdim", r.keep);
  const operation op(name);
  op({r.x}, {&out}, {axis, keep, {"correction", correction}});
  c.give(out);
  if (!mean_too) return;
  static const operation mean_op("mean");
  c.give(r(mean_op));
}
}  // namespace
void var(call& c) { statistic(c, "var", false); }
void stddev(call& c) { statistic(c, "stddev", false); }
void var_mean(call& c) { statistic(c, "var", true); }
void std_mean(call& c) { statistic(c, "stddev", true); }

// self, ord, dim, keepdim, dtype
void vector_norm(call& c) {
  static const operation op("vector_norm"), count("sum");
  const Tensor& x = c.tensor(0);
  const at::ScalarType type = c.type(4, x.scalar_type());
  if (!(type_bit(type) & NARROW)) c.refuse("");
  const double p = c.value(1).toScalar().toDouble();
  const reduction r(converted(x, type), c.integers(2), c.boolean(3));
  if (p == 0) return c.give(r.x.ne(0).sum(r.axes, r.keep).to(type));
  if (p != 1 && p != 2 && !std::isinf(p)) c.refuse("of p = " + std::to_string(p));
  TORCH_CHECK(!std::isinf(p) || x.numel() > 0 || r.empty(type).numel() == 0,
              "linalg.vector_norm cannot compute the infinity norm of an empty tensor");
  Tensor out = r.empty(type);
  op({r.x}, {&out}, {{"p", p}, {"axis", at::IntArrayRef(r.axes)}, {"keepdim", r.keep}});
  c.give(out);
}
// self, p, dim, keepdim: aten's older name of it
void norm_dim(call& c) {
  static const operation op("vector_norm");
  const double p = c.has(1) ? c.value(1).toScalar().toDouble() : 2;
  if (p != 1 && p != 2 && !std::isinf(p)) c.refuse("of p = " + std::to_string(p));
  const reduction r(c.tensor(0), c.integers(2), c.boolean(3));
  Tensor out = r.empty(r.x.scalar_type());
  op({r.x}, {&out}, {{"p", p}, {"axis", at::IntArrayRef(r.axes)}, {"keepdim", r.keep}});
  c.give(out);
}
void norm_all(call& c) {
  static const operation op("vector_norm");
  const double p = c.value(1).toScalar().toDouble();
  if (p != 1 && p != 2 && !std::isinf(p)) c.refuse("of p = " + std::to_string(p));
  const reduction r(c.tensor(0), {}, false);
  Tensor out = r.empty(r.x.scalar_type());
  op({r.x}, {&out}, {{"p", p}, {"axis", at::IntArrayRef(r.axes)}});
  c.give(out);
}

void logsumexp(call& c) {
  static const operation op("logsumexp");
  c.give(reduction(c.tensor(0), c.integers(1), c.boolean(2))(op));
}

namespace {
Tensor with_an_axis(const Tensor& t) { return t.dim() == 0 ? t.unsqueeze(0) : t; }

// self, dim, half_to_float
void along(call& c, const operation& op) {
  if (c.boolean(2)) c.refuse("of float16 to float32");
  const Tensor& x = c.tensor(0);
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.dim());
  Tensor out = at::empty_like(x);
  const Tensor from = with_an_axis(x), to = with_an_axis(out);
  op({from}, {&to}, {{"axis", axis}});
  c.give(out);
}
// grad_output, output, dim, input_dtype
void along_backward(call& c, const operation& op) {
  const Tensor& y = c.tensor(1);
  if (c.type(3, y.scalar_type()) != y.scalar_type()) c.refuse("of float16 to float32");
  const int64_t axis = at::maybe_wrap_dim(c.integer(2), y.dim());
  Tensor out = at::empty_like(y);
  const Tensor g = with_an_axis(c.tensor(0)), from = with_an_axis(y), to = with_an_axis(out);
  op({g, from}, {&to}, {{"axis", axis}});
  c.give(out);
}
}  // namespace
void softmax(call& c) {
  static const operation op("softmax");
  along(c, op);
}
void log_softmax(call& c) {
  static const operation op("log_softmax");
  along(c, op);
}
void softmax_backward(call& c) {
  static const operation op("softmax_backward");
  along_backward(c, op);
}
void log_softmax_backward(call& c) {
  static const operation op("log_softmax_backward");
  along_backward(c, op);
}
// self, dim, dtype: rows of -inf alone are zeros
void safe_softmax(call& c) {
  const Tensor& x = c.tensor(0);
  const Tensor y = at::softmax(x, c.integer(1), c.has(2) ? std::optional(c.value(2).toScalarType()) : std::nullopt);
  const Tensor none = x.eq(-std::numeric_limits<double>::infinity()).all(c.integer(1), /*keepdim=*/true);
  c.give(y.masked_fill(none, 0.0));
}

namespace {
std::vector<int64_t> last_axes(const Tensor& x, size_t count) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < count; ++i) axes.push_back(x.dim() - static_cast<int64_t>(count - i));
  return axes;
}
// Statistics lie in binary32, whatever x is.
Tensor statistics(const Tensor& x, at::IntArrayRef shape) { return at::empty(shape, x.options().dtype(at::kFloat)); }
// Of the leading axes, one for each row; aten's have the others with size 1.
std::vector<int64_t> rows_shape(const Tensor& x, size_t count) { return x.sizes().slice(0, x.dim() - count).vec(); }
Tensor with_ones(const Tensor& t, size_t count) {
  auto shape = t.sizes().vec();
  shape.resize(shape.size() + count, 1);
  return t.view(shape);
}
Tensor without_ones(const Tensor& t, const Tensor& x, size_t count) { return t.reshape(rows_shape(x, count)); }
}  // namespace

namespace {
double eps_of(const call& c, int i) {
  if (!(c.real(i) >= 0)) c.refuse("with eps < 0");
  return c.real(i);
}
}  // namespace

// input, normalized_shape, weight, bias, eps
void native_layer_norm(call& c) {
  static const operation op("layer_norm");
  const Tensor& x = c.tensor(0);
  const auto size = c.integers(1);
  TORCH_CHECK(!size.empty() && x.dim() >= static_cast<int64_t>(size.size()) &&
                  x.sizes().slice(x.dim() - size.size()).equals(size),
              "Given normalized_shape=", size, ", expected input with shape [*, ", size, "], but got input of size ", x.sizes());
  const auto axes = last_axes(x, size.size());
  const Tensor &w = c.tensor(2), &b = c.tensor(3);
  TORCH_CHECK(!w.defined() || w.sizes().equals(size), "Expected weight of shape ", size, ", but got ", w.sizes());
  TORCH_CHECK(!b.defined() || b.sizes().equals(size), "Expected bias of shape ", size, ", but got ", b.sizes());
  Tensor y = at::empty_like(x, at::MemoryFormat::Contiguous), mean = statistics(x, rows_shape(x, size.size())),
         rstd = at::empty_like(mean);
  op({x, w, b}, {&y, &mean, &rstd}, {{"axis", at::IntArrayRef(axes)}, {"eps", eps_of(c, 4)}});
  c.give(y);
  c.give(with_ones(mean, size.size()));
  c.give(with_ones(rstd, size.size()));
}

// grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask
void native_layer_norm_backward(call& c) {
  static const operation to_x("layer_norm_backward"), to_weight("layer_norm_weight_backward"), sum("sum");
  const Tensor &g = c.tensor(0), &x = c.tensor(1), &w = c.tensor(5);
  const auto size = c.integers(2);
  const auto axes = last_axes(x, size.size());
  const auto mask = c.value(7).toBoolList();
  const Tensor mean = without_ones(c.tensor(3), x, size.size()), rstd = without_ones(c.tensor(4), x, size.size());
  Tensor gx, gw, gb;
  if (mask[0]) {
    gx = at::empty_like(x, at::MemoryFormat::Contiguous);
    to_x({g, x, mean, rstd, w}, {&gx}, {{"axis", at::IntArrayRef(axes)}});
  }
  if (mask[1] && w.defined()) {
    gw = at::empty_like(w, at::MemoryFormat::Contiguous);
    to_weight({g, x, mean, rstd}, {&gw}, {{"axis", at::IntArrayRef(axes)}});
  }
  if (mask[2] && c.tensor(6).defined()) {
    gb = at::empty_like(c.tensor(6), at::MemoryFormat::Contiguous);
    std::vector<int64_t> leading;
    for (int64_t i = 0; i < x.dim() - static_cast<int64_t>(size.size()); ++i) leading.push_back(i);
    sum({g}, {&gb}, {{"axis", at::IntArrayRef(leading)}});
  }
  c.give(gx);
  c.give(gw);
  c.give(gb);
}

// input, weight, bias, N, C, HxW, group, eps
void native_group_norm(call& c) {
  static const operation op("group_norm");
  const Tensor& x = c.tensor(0);
  const int64_t n = c.integer(3), groups = c.integer(6);
  TORCH_CHECK(groups > 0 && c.integer(4) % groups == 0, "Expected number of channels in input to be divisible by num_groups, got ",
              c.integer(4), " channels and num_groups=", groups);
  Tensor y = at::empty_like(x, at::MemoryFormat::Contiguous), mean = statistics(x, {n, groups}), rstd = at::empty_like(mean);
  op({x, c.tensor(1), c.tensor(2)}, {&y, &mean, &rstd}, {{"groups", groups}, {"eps", eps_of(c, 7)}});
  c.give(y);
  c.give(mean);
  c.give(rstd);
}

// grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask
void native_group_norm_backward(call& c) {
  static const operation to_x("group_norm_backward"), to_weight("group_norm_weight_backward"), sum("sum");
  const Tensor &g = c.tensor(0), &x = c.tensor(1), &mean = c.tensor(2), &rstd = c.tensor(3), &w = c.tensor(4);
  const int64_t channels = c.integer(6), groups = c.integer(8);
  const auto mask = c.value(9).toBoolList();
  Tensor gx, gw, gb;
  if (mask[0]) {
    gx = at::empty_like(x, at::MemoryFormat::Contiguous);
    to_x({g, x, mean, rstd, w}, {&gx}, {{"groups", groups}});
  }
  if (mask[1]) {
    gw = at::empty({channels}, x.options());
    to_weight({g, x, mean, rstd}, {&gw}, {{"groups", groups}});
  }
  if (mask[2]) gb = sum_over_all_but(g, 1);
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
std::array<Tensor, 3> batch_norm_of(call& c, const batch& b) {
  static const operation alone("batch_norm"), running("batch_norm_running"), inference("batch_norm_inference");
  TORCH_CHECK(b.x.dim() >= 2, "batch_norm: expected an input of two dimensions or more, got ", b.x.dim());
  const int64_t channels = b.x.size(1);
  for (const Tensor* t : {&b.weight, &b.bias, &b.running_mean, &b.running_var}) {
    TORCH_CHECK(!t->defined() || t->numel() == channels, "batch_norm: expected ", channels, " elements, got ", t->numel());
  }
  if (b.running_mean.defined() && b.running_mean.scalar_type() != at::kFloat) c.refuse("with running statistics that are not float32");
  if (b.training && b.running_mean.defined() && !(b.momentum >= 0 && b.momentum <= 1)) c.refuse("with a momentum outside of [0, 1]");
  Tensor y = at::empty_like(b.x), mean, rstd;
  if (b.training) {
    mean = statistics(b.x, {channels});
    rstd = at::empty_like(mean);
    if (b.running_mean.defined()) {
      running({b.x, b.running_mean, b.running_var, b.weight, b.bias}, {&y, &mean, &rstd, &b.running_mean, &b.running_var},
              {{"eps", b.eps}, {"momentum", b.momentum}});
    } else {
      alone({b.x, b.weight, b.bias}, {&y, &mean, &rstd}, {{"eps", b.eps}});
    }
  } else {
    TORCH_CHECK(b.running_mean.defined() && b.running_var.defined(), "batch_norm: expected running statistics in evaluation");
    inference({b.x, b.running_mean, b.running_var, b.weight, b.bias}, {&y}, {{"eps", b.eps}});
    mean = statistics(b.x, {0});
    rstd = at::empty_like(mean);
  }
  return {y, mean, rstd};
}
void give_all(call& c, const std::array<Tensor, 3>& all) {
  for (const Tensor& t : all) c.give(t);
}
}  // namespace

// input, weight, bias, running_mean, running_var, training, momentum, eps
void native_batch_norm(call& c) {
  give_all(c, batch_norm_of(c, {c.tensor(0), c.tensor(1), c.tensor(2), c.tensor(3), c.tensor(4), c.boolean(5), c.real(6), eps_of(c, 7)}));
}
// input, weight, bias, training, momentum, eps
void native_batch_norm_no_stats(call& c) {
  give_all(c, batch_norm_of(c, {c.tensor(0), c.tensor(1), c.tensor(2), {}, {}, c.boolean(3), c.real(4), eps_of(c, 5)}));
}

// grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
void native_batch_norm_backward(call& c) {
  static const operation to_x("batch_norm_backward"), to_weight("batch_norm_weight_backward"),
      to_x_given("batch_norm_inference_backward"), to_weight_given("batch_norm_inference_weight_backward");
  const Tensor &g = c.tensor(0), &x = c.tensor(1), &w = c.tensor(2);
  const bool training = c.boolean(7);
  const Tensor &mean = c.tensor(training ? 5 : 3), &other = c.tensor(training ? 6 : 4);
  if (mean.scalar_type() != at::kFloat) c.refuse("with running statistics that are not float32");
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
  if (mask[1]) {
    gw = at::empty({x.size(1)}, x.options());
    if (training) {
      to_weight({g, x, mean, other}, {&gw});
    } else {
      to_weight_given({g, x, mean, other}, {&gw}, {{"eps", eps}});
    }
  }
  if (mask[2]) gb = sum_over_all_but(g, 1);
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
  c.give(std::get<0>(at::native_batch_norm(c.tensor(0), c.optional(1), c.optional(2), c.optional(3), c.optional(4), c.boolean(5),
                                           c.real(6), c.real(7))));
}

// One kernel, where aten has one on some devices and a composite on others.
// input, normalized_shape, weight, eps
void rms_norm(call& c) {
  c.give(std::get<0>(at::_fused_rms_norm(c.tensor(0), c.integers(1), c.optional(2), c.has(3) ? std::optional(c.real(3)) : std::nullopt)));
}

// input, normalized_shape, weight, eps; PyTorch's default eps is the type's, of 16-bit types float32's
void fused_rms_norm(call& c) {
  static const operation op("rms_norm");
  const Tensor &x = c.tensor(0), &w = c.tensor(2);
  const auto size = c.integers(1);
  TORCH_CHECK(!size.empty() && x.dim() >= static_cast<int64_t>(size.size()) &&
                  x.sizes().slice(x.dim() - size.size()).equals(size),
              "Given normalized_shape=", size, ", expected input with shape [*, ", size, "], but got input of size ", x.sizes());
  const auto axes = last_axes(x, size.size());
  Tensor y = at::empty_like(x, at::MemoryFormat::Contiguous), rstd = statistics(x, rows_shape(x, size.size()));
  const double eps = c.has(3) ? eps_of(c, 3) : std::numeric_limits<float>::epsilon();
  op({x, w}, {&y, &rstd}, {{"axis", at::IntArrayRef(axes)}, {"eps", eps}});
  c.give(y);
  c.give(with_ones(rstd, size.size()));
}
// grad_out, input, normalized_shape, rstd, weight, output_mask
void fused_rms_norm_backward(call& c) {
  static const operation to_x("rms_norm_backward"), to_weight("rms_norm_weight_backward");
  const Tensor &g = c.tensor(0), &x = c.tensor(1), &w = c.tensor(4);
  const Tensor rstd = without_ones(c.tensor(3), x, c.integers(2).size());
  const auto axes = last_axes(x, c.integers(2).size());
  const auto mask = c.value(5).toBoolList();
  Tensor gx, gw;
  if (mask[0]) {
    gx = at::empty_like(x, at::MemoryFormat::Contiguous);
    to_x({g, x, rstd, w}, {&gx}, {{"axis", at::IntArrayRef(axes)}});
  }
  if (mask[1] && w.defined()) {
    gw = at::empty_like(w, at::MemoryFormat::Contiguous);
    to_weight({g, x, rstd}, {&gw}, {{"axis", at::IntArrayRef(axes)}});
  }
  c.give(gx);
  c.give(gw);
}

}  // namespace repdl_torch::formulas
