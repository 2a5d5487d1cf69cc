// Elementwise operations with more than one formula, copies, and what selects.
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/scatter_reduce.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "formulas.hpp"

namespace repdl_torch::formulas {

// self, other, rounding_mode
void div_mode(call& c) {
  const Tensor &x = c.tensor(0), &y = c.tensor(1);
  const std::string mode = c.has(2) ? c.text(2) : "";
  TORCH_CHECK(mode.empty() || mode == "trunc" || mode == "floor",
              "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", mode, "'");
  if (mode.empty()) return c.give(at::div(x, y));
  c.give(map(mode == "trunc" ? "div_trunc" : "div_floor", {x, y}));
}
void floor_divide(call& c) { c.give(map("div_floor", {c.tensor(0), c.tensor(1)})); }

namespace {
const char* gelu_of(const std::string& approximate, const char* exact, const char* tanh) {
  TORCH_CHECK(approximate == "none" || approximate == "tanh", "approximate argument must be either none or tanh.");
  return approximate == "none" ? exact : tanh;
}
}  // namespace
void gelu(call& c) { c.give(map(gelu_of(c.text(1), "gelu", "gelu_tanh"), {c.tensor(0)})); }
void gelu_backward(call& c) {
  c.give(map(gelu_of(c.text(2), "gelu_backward", "gelu_tanh_backward"), {c.tensor(0), c.tensor(1)}));
}

// grad_output, alpha, scale, input_scale, is_result, self_or_result
void elu_backward(call& c) {
  const Tensor& x = c.tensor(5);
  if (c.boolean(4)) c.refuse("from the result, in place");
  const auto type = x.scalar_type();
  c.give(map("elu_backward", {c.tensor(0), x},
             {{"alpha", c.number(1, type)}, {"scale", c.number(2, type)}, {"rate", c.number(3, type)}}));
}

// self, exponent. 2 is the square, of float64 too, which has no other power.
void pow_scalar(call& c) {
  const Tensor& x = c.tensor(0);
  const double exponent = c.number(1, x.scalar_type());
  if (exponent == 2) return c.give(map("square", {x}));
  if (exponent == 1) return c.give(x.clone());
  if (exponent == -1) return c.give(map("reciprocal", {x}));
  if (!(type_bit(x.scalar_type()) & NARROW)) c.refuse("");
  c.give(map("pow_scalar", {x}, {{"exponent", exponent}}));
}
// self, exponent: the base is a number
void scalar_pow(call& c) {
  const Tensor& x = c.tensor(1);
  c.give(map("scalar_pow", {x}, {{"base", c.number(0, x.scalar_type())}}));
}

// self, decimals
void round_decimals(call& c) {
  if (c.integer(1) != 0) c.refuse("to decimals");
  c.give(map("round", {c.tensor(0)}));
}
// self, min, max: tensors, either absent
void clamp_tensors(call& c) {
  TORCH_CHECK(c.has(1) || c.has(2), "torch.clamp: At least one of 'min' or 'max' must not be None");
  if (!c.has(1)) return c.give(map("minimum", {c.tensor(0), c.tensor(2)}));
  if (!c.has(2)) return c.give(map("maximum", {c.tensor(0), c.tensor(1)}));
  c.give(map("clip", {c.tensor(0), c.tensor(1), c.tensor(2)}));
}

// self -> (result, buffer); nothing reads the buffer
void log_sigmoid_forward(call& c) {
  c.give(map("log_sigmoid", {c.tensor(0)}));
  c.give(at::empty({0}, c.tensor(0).options()));
}

// grad_output, self, weight: both gradients, elementwise; autograd sums the weight's
void prelu_kernel_backward(call& c) {
  const Tensor &g = c.tensor(0), &x = c.tensor(1), &w = c.tensor(2);
  c.give(map("prelu_backward", {g, x, w}));
  c.give(at::where(x.gt(0), at::zeros({}, x.options()), map("mul", {g, x})));
}

namespace {
std::array<Tensor, 2> halves(const Tensor& x, int64_t dim) {
  TORCH_CHECK(x.dim() > 0, "glu does not support 0-dimensional tensors");
  const int64_t axis = at::maybe_wrap_dim(dim, x.dim()), n = x.size(axis);
  TORCH_CHECK(n % 2 == 0, "Halving dimension must be even, but dimension ", axis, " is size ", n);
  return {x.narrow(axis, 0, n / 2), x.narrow(axis, n / 2, n / 2)};
}
}  // namespace
void glu(call& c) {
  const auto [a, b] = halves(c.tensor(0), c.integer(1));
  c.give(map("glu", {a, b}));
}
void glu_backward(call& c) {
  const Tensor& g = c.tensor(0);
  const auto [a, b] = halves(c.tensor(1), c.integer(2));
  c.give(at::cat({map("glu", {g, b}), map("glu_backward_b", {g, a, b})}, c.integer(2)));
}

// ---- copies: another type is one rounding ----

// self, src, non_blocking
void copy(call& c) {
  const Tensor &to = c.tensor(0), &from = c.tensor(1);
  const auto a = from.scalar_type(), b = to.scalar_type();
  if (a == b || from.layout() != at::kStrided || to.layout() != at::kStrided) return c.leave();
  const bool from_float = at::isFloatingType(a), to_float = at::isFloatingType(b);
  if ((!from_float && !to_float) || at::isComplexType(a) || at::isComplexType(b) || from.is_meta() || to.is_meta()) return c.leave();
  if (!has_type(a)) return c.leave();  // a small integer: exact in float32, then one rounding, as aten does
  if (!has_type(b)) {                  // to a small integer: truncated, then the low bits
    const Tensor whole = converted(from, at::kLong);
    to.copy_(whole);
    return c.give(to);
  }
  if (from.device() != to.device()) {
    to.copy_(converted(from, b), c.boolean(2));
    return c.give(to);
  }
  const Tensor source = from.sizes() == to.sizes() ? from : from.expand(to.sizes());
  if (from.is_alias_of(to)) {
    to.copy_(converted(source, b));
  } else {
    convert_into(source, to);
  }
  c.give(to);
}

// ---- order: what equal elements do ----

// self, stable, dim, descending
void sort(call& c) {
  if (c.has(1) && c.boolean(1)) return c.leave();
  auto [values, indices] = at::sort(c.tensor(0), /*stable=*/true, c.integer(2), c.boolean(3));
  c.give(values);
  c.give(indices);
}
// self, k, dim, largest, sorted: of equal ones the first, in order
void topk(call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t k = c.integer(1);
  if (x.dim() == 0) return c.leave();
  const int64_t axis = at::maybe_wrap_dim(c.integer(2), x.dim());
  TORCH_CHECK(k >= 0 && k <= x.size(axis), "selected index k out of range");
  auto [values, indices] = at::sort(x, /*stable=*/true, axis, c.boolean(3));
  c.give(values.narrow(axis, 0, k).contiguous());
  c.give(indices.narrow(axis, 0, k).contiguous());
}
namespace {
// The element at a place of each row in ascending order.
void give_place(call& c, const Tensor& values, const Tensor& indices, const Tensor& place, int64_t axis, bool keep) {
  const auto pick = [&](const Tensor& t) {
    const Tensor picked = t.gather(axis, place);
    return keep ? picked : picked.squeeze(axis);
  };
  c.give(pick(values));
  c.give(pick(indices));
}
}  // namespace
// self, k, dim, keepdim
void kthvalue(call& c) {
  const Tensor& x = c.tensor(0);
  if (x.dim() == 0) return c.leave();
  const int64_t axis = at::maybe_wrap_dim(c.integer(2), x.dim()), k = c.integer(1);
  TORCH_CHECK(k >= 1 && k <= x.size(axis), "kthvalue(): selected number k out of range for dimension ", axis);
  const auto [values, indices] = at::sort(x, /*stable=*/true, axis, false);
  auto shape = x.sizes().vec();
  shape[axis] = 1;
  give_place(c, values, indices, at::full(shape, k - 1, x.options().dtype(at::kLong)), axis, c.boolean(3));
}
// The lower one of two in the middle, of the first NaN where there is one; or, without the NaNs, of the others.
namespace {
Tensor middle(const Tensor& nans, int64_t n, bool without) {  // sorted, NaNs are the last
  const Tensor numbers = nans.neg().add(n);
  if (without) return at::div(numbers.sub(1), 2, "trunc").clamp_min(0);
  return at::where(nans.gt(0), numbers, at::full_like(nans, (n - 1) / 2));
}
void median_along(call& c, bool without) {
  const Tensor& x = c.tensor(0);
  if (x.dim() == 0 || x.numel() == 0) return c.leave();
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.dim());
  const auto [values, indices] = at::sort(x, /*stable=*/true, axis, false);
  give_place(c, values, indices, middle(x.isnan().sum(axis, /*keepdim=*/true), x.size(axis), without), axis, c.boolean(2));
}
void median_of_all(call& c, bool without) {
  const Tensor x = c.tensor(0).reshape({-1});
  if (x.numel() == 0) return c.leave();
  const Tensor place = middle(x.isnan().sum(), x.numel(), without).reshape({1});
  c.give(std::get<0>(at::sort(x, /*stable=*/true, 0, false)).gather(0, place).squeeze(0));
}
}  // namespace
// self, dim, keepdim
void median_dim(call& c) { median_along(c, false); }
void nanmedian_dim(call& c) { median_along(c, true); }
void median_all(call& c) { median_of_all(c, false); }
void nanmedian_all(call& c) { median_of_all(c, true); }

// ---- places: which of several values stays, and exact sums of them ----

namespace {
// Of the values that go to one place the last: which ordinal each place gets, -1 for none.
Tensor last_ordinal(int64_t places, const Tensor& index) {
  const Tensor ordinals = at::arange(index.numel(), index.options());
  return at::full({places}, -1, index.options()).scatter_reduce(0, index, ordinals, "amax", /*include_self=*/true);
}
}  // namespace

// self, indices, values, accumulate, unsafe: exact sums, or of values for one place the last in row-major order
void index_put(call& c) {
  const Tensor &self = c.tensor(0), &values = c.tensor(2);
  const bool accumulate = c.boolean(3), floats = at::isFloatingType(self.scalar_type());
  bool several = false;  // of a mask each place comes once
  c10::List<std::optional<Tensor>> indices;
  for (const IValue& v : c.value(1).toListRef()) {
    const bool there = v.isTensor() && v.toTensor().defined();
    several |= there && v.toTensor().scalar_type() != at::kBool && v.toTensor().scalar_type() != at::kByte;
    indices.push_back(there ? std::optional(v.toTensor()) : std::nullopt);
  }
  if (accumulate && !floats && !at::isComplexType(self.scalar_type())) return c.leave();
  if (accumulate && !(type_bit(self.scalar_type()) & NARROW)) c.refuse("");
  if (!accumulate && (!several || values.numel() == 1)) return c.leave();
  const Tensor places = at::arange(self.numel(), self.options().dtype(at::kLong)).view(self.sizes());
  const Tensor index = at::index(places, indices);
  const Tensor flat = index.reshape({-1}), source = values.to(self.options()).expand(index.sizes()).reshape({-1});
  const Tensor before = self.reshape({-1});
  Tensor after;
  if (accumulate) {
    after = at::index_add(before, 0, flat, source);
  } else {
    const Tensor last = last_ordinal(self.numel(), flat);
    after = at::where(last.ge(0), source.numel() == 0 ? before : source.gather(0, last.clamp_min(0)), before);
  }
  c.give(after.view(self.sizes()));
}
// self, dim, index, src: aten's kernel on the CPU goes through them in order
void scatter(call& c) {
  if (c.tensor(0).is_cpu()) return c.leave();
  const Tensor &self = c.tensor(0), &index = c.tensor(2);
  if (index.numel() == 0 || self.dim() == 0) return c.leave();
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), self.dim());
  Tensor source = c.tensor(3);
  for (int64_t i = 0; i < index.dim(); ++i) source = source.narrow(i, 0, index.size(i));
  std::vector<int64_t> shape(index.dim(), 1);
  shape[axis] = index.size(axis);
  const Tensor ordinals = at::arange(index.size(axis), index.options()).view(shape).expand(index.sizes());
  const Tensor last = at::full(self.sizes(), -1, index.options()).scatter_reduce(axis, index, ordinals, "amax", true);
  // Places outside of the index's other axes have none.
  Tensor window = last;
  for (int64_t i = 0; i < index.dim(); ++i) {
    if (i != axis) window = window.narrow(i, 0, index.size(i));
  }
  const Tensor found = source.gather(axis, window.clamp_min(0));
  Tensor out = self.clone();
  Tensor to = out;
  for (int64_t i = 0; i < index.dim(); ++i) {
    if (i != axis) to = to.narrow(i, 0, index.size(i));
  }
  to.copy_(at::where(window.ge(0), found, to));
  c.give(out);
}
// self, dim, index, source
void index_copy(call& c) {
  if (c.tensor(0).is_cpu()) return c.leave();
  const Tensor &self = c.tensor(0), &source = c.tensor(3);
  if (self.dim() == 0 || c.tensor(2).numel() == 0) return c.leave();
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), self.dim());
  std::vector<int64_t> shape(self.dim(), 1);
  shape[axis] = c.tensor(2).numel();
  c.give(at::scatter(self, axis, c.tensor(2).reshape(shape).expand(source.sizes()), source));
}
// self, dim, index, src, reduce, include_self
void scatter_reduce(call& c) {
  const Tensor& x = c.tensor(0);
  if (!at::isFloatingType(x.scalar_type()) && !at::isComplexType(x.scalar_type())) return c.leave();
  if (c.text(4) != "sum" || !c.boolean(5)) c.refuse("of " + c.text(4) + (c.boolean(5) ? "" : " without the element itself"));
  c.give(at::scatter_add(x, c.integer(1), c.tensor(2), c.tensor(3)));
}

}  // namespace repdl_torch::formulas
