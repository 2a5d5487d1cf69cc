// Elementwise operations with more than one formula, and copies.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

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

namespace {
// x times a double, rounded once.
Tensor times(const Tensor& x, double factor) {
  return factor == 1 ? x
                     : map("leaky_relu_backward", {x, number_on(-1, x.scalar_type(), at::kCPU)}, {{"slope", factor}});
}
}  // namespace
// grad_output, alpha, scale, input_scale, is_result, self_or_result. Of the result y, after an operation in place: rate g (y + scale
// alpha) where y <= 0, each operation rounded.
void elu_backward(call& c) {
  const Tensor &g = c.tensor(0), &x = c.tensor(5);
  const auto type = x.scalar_type();
  const double alpha = c.number(1, type), scale = c.number(2, type), rate = c.number(3, type);
  if (!c.boolean(4)) return c.give(map("elu_backward", {g, x}, {{"alpha", alpha}, {"scale", scale}, {"rate", rate}}));
  TORCH_CHECK(alpha >= 0,
              "In-place elu backward calculation is triggered with a negative slope which is not supported.");
  const Tensor above = map("add", {x, number_on(1, type, at::kCPU)}, {{"alpha", alpha * scale}});
  c.give(at::where(x.gt(0), times(g, scale), map("mul", {times(g, rate), above})));
}
// self, lower, upper, training, generator: in training each element below 0 times a uniform number
void rrelu(call& c) {
  const Tensor& x = c.tensor(0);
  const double lower = c.value(1).toScalar().toDouble(), upper = c.value(2).toScalar().toDouble();
  TORCH_CHECK(lower <= upper, "Lower bound should be less than or equal to the upper bound");
  if (!c.boolean(3)) return c.give(at::leaky_relu(x, (lower + upper) / 2));
  const auto generator = c.has(4) ? std::optional(c.value(4).toGenerator()) : std::nullopt;
  c.give(x.mul(at::empty_like(x).uniform_(lower, upper, generator).masked_fill_(x.gt(0), 1)));
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

// self, values: 0, 1, or of a zero the value; NaN of NaN
void heaviside(call& c) {
  const Tensor &x = c.tensor(0), &values = c.tensor(1);
  TORCH_CHECK(x.scalar_type() == values.scalar_type(),
              "heaviside is not yet implemented for tensors with different dtypes.");
  c.give(at::where(x.eq(0), values, map("clamp", {map("sign", {x})}, {{"min", 0.0}})));
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
  if ((!from_float && !to_float) || at::isComplexType(a) || at::isComplexType(b) || from.is_meta() || to.is_meta())
    return c.leave();
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

}  // namespace repdl_torch::formulas
