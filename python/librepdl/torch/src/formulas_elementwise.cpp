// Elementwise operations with more than one formula, and copies.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_assert_async.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/special_ndtr.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <numbers>

#include "formulas.hpp"

namespace repdl_torch::formulas {
// self, other, rounding_mode
void div_mode(call& c) {
  const Tensor &x = c.tensor(0), &y = c.tensor(1);
  const std::string mode = c.has(2) ? c.text(2) : "";
  TORCH_CHECK(mode.empty() || mode == "trunc" || mode == "floor",
              "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", mode, "'");
  if (mode.empty()) return c.give(at::div(x, y));
  if (!at::isFloatingType(at::result_type(x, y))) return c.leave();
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
void frexp(call& c) {
  static const operation op("frexp");
  const Tensor& x = c.tensor(0);
  Tensor significand = fresh_like(x), exponent = at::empty_like(significand, at::kInt);
  op({x}, {&significand, &exponent}, {});
  c.give(significand);
  c.give(exponent);
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

namespace {
// The tensor in the type that it and a number promote to; undefined: integers, of which nothing rounds.
Tensor promoted(call& c, const Tensor& x, const IValue& number) {
  const at::ScalarType type = at::result_type(x, number.toScalar());
  if (at::isIntegralType(type, /*includeBool=*/true)) return {};
  if (!(type_bit(type) & FLOATS)) c.refuse("");
  return converted(x, type);
}
}  // namespace
// self, exponent
void pow_scalar(call& c) {
  const Tensor x = promoted(c, c.tensor(0), c.value(1));
  if (!x.defined()) return c.leave();
  const double exponent = c.number(1, x.scalar_type());
  if (exponent == 2) return c.give(map("square", {x}));
  if (exponent == 1) return c.give(x.clone());
  if (exponent == -1) return c.give(map("reciprocal", {x}));
  c.give(map("pow_scalar", {x}, {{"exponent", exponent}}));
}
// self, exponent: the base is a number
void scalar_pow(call& c) {
  const Tensor x = promoted(c, c.tensor(1), c.value(0));
  if (!x.defined()) return c.leave();
  c.give(map("scalar_pow", {x}, {{"base", c.number(0, x.scalar_type())}}));
}

// self: times the number, itself rounded to what PyTorch computes with
void deg2rad(call& c) { c.give(c.tensor(0).mul(std::numbers::pi / 180)); }
void rad2deg(call& c) { c.give(c.tensor(0).mul(180 / std::numbers::pi)); }

// self: the value in one rounding, the derivatives of erfc(-x / sqrt 2) / 2, each operation rounded
void ndtr(call& c) {
  const Tensor& x = c.tensor(0);
  const Tensor known = x.div(-std::numbers::sqrt2).erfc().mul(0.5);
  c.give(known.sub(known.detach()).add(at::special_ndtr(x.detach())));
}

// self, values: of one type, as in PyTorch
void heaviside(call& c) {
  const Tensor &x = c.tensor(0), &values = c.tensor(1);
  TORCH_CHECK(x.scalar_type() == values.scalar_type(),
              "heaviside is not yet implemented for tensors with different dtypes.");
  c.give(map("heaviside", {x, values}));
}

// self, decimals: times a power of ten, to an integer, and divided by it, each rounded; of 16 bits in float32, and then once more
void round_decimals(call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t decimals = c.integer(1);
  if (decimals == 0) return c.give(map("round", {x}));
  const at::ScalarType type = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const Tensor ten =
      number_on(in_arithmetic_of(type, std::pow(10.0, std::abs(static_cast<double>(decimals)))), type, at::kCPU);
  const char *const there = decimals > 0 ? "mul" : "div", *const back = decimals > 0 ? "div" : "mul";
  const Tensor whole = map("round", {map(there, {converted(x, type), ten})});
  c.give(converted(map(back, {whole, ten}), x.scalar_type()));
}
// self: pi below zero, else zero
void angle(call& c) {
  const Tensor x =
      c.tensor(0).is_floating_point() ? c.tensor(0) : c.tensor(0).to(c10::get_default_dtype_as_scalartype());
  if (!(type_bit(x.scalar_type()) & FLOATS)) c.refuse("");
  const Tensor turned = at::where(x.lt(0), number_on(std::numbers::pi, x.scalar_type(), x.device()), 0);
  c.give(at::where(x.isnan(), x, turned).to(x.scalar_type()));
}
// self: -x ln x, rounded once; -inf below zero
void entr(call& c) {
  const Tensor& x = c.tensor(0);
  const Tensor inside = map("neg", {map("xlogy", {x, x})});
  c.give(inside.masked_fill(x.eq(0), 0).masked_fill(x.lt(0), -std::numeric_limits<double>::infinity()));
}
// self, other: x times ln(1 + y), each rounded; 0 of x = 0, but for a NaN
void xlog1py(call& c) {
  const Tensor product = map("mul", {c.tensor(0), map("log1p", {c.tensor(1)})});
  c.give(product.masked_fill(c.tensor(0).eq(0).logical_and(c.tensor(1).isnan().logical_not()), 0));
}
// self, min, max: tensors, either absent
void clamp_tensors(call& c) {
  TORCH_CHECK(c.has(1) || c.has(2), "torch.clamp: At least one of 'min' or 'max' must not be None");
  if (!c.has(1)) return c.give(map("minimum", {c.tensor(0), c.tensor(2)}));
  if (!c.has(2)) return c.give(map("maximum", {c.tensor(0), c.tensor(1)}));
  c.give(map("clip", {c.tensor(0), c.tensor(1), c.tensor(2)}));
}

// self -> (result, buffer); nothing reads the buffer, but PyTorch's batching rule of the gradient takes its rank
void log_sigmoid_forward(call& c) {
  c.give(map("log_sigmoid", {c.tensor(0)}));
  c.give(at::zeros({}, c.tensor(0).options()).expand(c.tensor(0).sizes()));
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

// Forward derivatives: sums of products with the sigmoid and its derivatives, each operation rounded.
// glu, x, dx, dim
void glu_jvp(call& c) {
  const auto [a, b] = halves(c.tensor(1), c.integer(3));
  const auto [da, db] = halves(c.tensor(2), c.integer(3));
  c.give(map("glu", {da, b}).add(map("glu_backward_b", {db, a, b})));
}
// grad_x, grad_glu, x, dgrad_glu, dx, dim
void glu_backward_jvp(call& c) {
  const Tensor &g = c.tensor(1), &dg = c.tensor(3);
  const auto [a, b] = halves(c.tensor(2), c.integer(5));
  const auto [da, db] = halves(c.tensor(4), c.integer(5));
  const Tensor of_a = map("glu", {dg, b}).add(map("glu_backward_b", {db, g, b}));
  const Tensor curve = map("glu_backward_b", {g, a, b}).mul(map("sigmoid", {b}).mul(-2).add(1)).mul(db);
  const Tensor of_b = map("glu_backward_b", {dg, a, b}).add(map("glu_backward_b", {g, da, b})).add(curve);
  c.give(at::cat({of_a, of_b}, c.integer(5)));
}

// ---- quantised to integers and back ----

namespace {
// The exact quotient x / s, to an integer, ties to even, NaN as 0; plus zero: what is not between least and greatest becomes these, and
// is what `inside` is false for. Back: times s, one rounding.
void give_quantised(call& c, const Tensor& scale, const Tensor& zero, int64_t least, int64_t greatest) {
  TORCH_CHECK(least <= greatest, "`quant_min` should be less than or equal to `quant_max`.");
  const Tensor &x = c.tensor(0), wide = converted(x, at::kDouble).masked_fill(x.isnan(), 0),
               s = converted(converted(scale, at::kFloat), at::kDouble), z = converted(zero, at::kDouble);
  const Tensor near = map("round", {map("div", {wide, s})});
  // The quotient's rounding may have moved it over, or onto, the middle of two integers: on which side x is of it, fma tells exactly.
  const auto beyond = [&](double half) { return map("fma", {near.add(half).neg(), s, wide}); };
  const Tensor whole = near.add(beyond(0.5).gt(0).to(at::kDouble)).sub(beyond(-0.5).lt(0).to(at::kDouble)).add(z);
  const Tensor q = whole.clamp(static_cast<double>(least), static_cast<double>(greatest));
  c.give(converted(map("mul", {q.sub(z), s}), x.scalar_type()));
  c.give(q.eq(whole));
}
Tensor as_tensor(const Tensor& like, const Tensor& channel, int64_t axis) {
  std::vector<int64_t> shape(static_cast<size_t>(like.dim()), 1);
  shape[static_cast<size_t>(axis)] = channel.numel();
  return channel.reshape(shape);
}
}  // namespace
// self, scale, zero_point, quant_min, quant_max
void fake_quantize(call& c) {
  const Tensor& x = c.tensor(0);
  TORCH_CHECK(c.integer(2) >= c.integer(3) && c.integer(2) <= c.integer(4),
              "`zero_point` must be between `quant_min` and `quant_max`.");
  give_quantised(c, number_on(c.real(1), at::kDouble, x.device()),
                 number_on(static_cast<double>(c.integer(2)), at::kDouble, x.device()), c.integer(3), c.integer(4));
}
// self, scale, zero_point, fake_quant_enabled, quant_min, quant_max; scale and zero_point are tensors
void fake_quantize_if(call& c) {
  const Tensor &x = c.tensor(0), on = c.tensor(3).ne(0);
  give_quantised(c, c.tensor(1), c.tensor(2), c.integer(4), c.integer(5));
  c.results[0] = at::where(on, c.results[0], x);
  c.results[1] = c.results[1].logical_or(on.logical_not());
}
// self, scale, zero_point, axis, quant_min, quant_max: of each channel its own
void fake_quantize_channels(call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.integer(3);
  TORCH_CHECK(axis >= 0 && axis < x.dim() && c.tensor(1).numel() == x.size(axis) && c.tensor(2).numel() == x.size(axis),
              "`axis` must be one of the input's, with a scale and a zero point for each of its channels");
  give_quantised(c, as_tensor(x, c.tensor(1), axis), as_tensor(x, c.tensor(2), axis), c.integer(4), c.integer(5));
}

void expect_all(const Tensor& condition, const char* what) {
  const Tensor all = condition.all();
  if (!all.is_cpu()) return at::_assert_async(all, what);
  TORCH_CHECK(all.item<bool>(), what);
}

// ---- numbers of Python as elements ----

namespace {
// Whether a type of 8 bits has exactly this number.
template <class T>
bool has(double x) {
  const double y = static_cast<float>(T(static_cast<float>(x)));
  return x == y || (std::isnan(x) && std::isnan(y));
}
// What PyTorch's kernels check, that an integer type has the number without its fraction, they do with the type's greatest number as a
// double: one more, for 64 bits, which each processor makes something else of.
void expect_in(call& c, at::ScalarType type, const at::Scalar& number) {
  c.leave();
  if (number.isFloatingPoint()) {
    if (type == at::kLong && number.toDouble() == 0x1p63) c10::report_overflow("int64_t");
    if (type == at::kUInt64 && number.toDouble() == 0x1p64) c10::report_overflow("uint64_t");
  }
  if (number.isComplex() || !at::isFloat8Type(type)) return;
  const double x = number.toDouble();
  const bool exact = type == at::kFloat8_e4m3fn     ? has<at::Float8_e4m3fn>(x)
                     : type == at::kFloat8_e5m2     ? has<at::Float8_e5m2>(x)
                     : type == at::kFloat8_e4m3fnuz ? has<at::Float8_e4m3fnuz>(x)
                     : type == at::kFloat8_e5m2fnuz ? has<at::Float8_e5m2fnuz>(x)
                                                    : has<at::Float8_e8m0fnu>(x);
  if (exact) return;
  c.refuse(has_type(type)
               ? std::string(c10::toString(type)) + " lacks this number; a tensor of another type can be converted"
               : std::string("librepdl has no ") + c10::toString(type));
}
}  // namespace
// self, value
void fill(call& c) { expect_in(c, c.tensor(0).scalar_type(), c.value(1).toScalar()); }
// self, mask, value: a number, or a tensor of one, of which PyTorch makes a number
void masked_fill(call& c) {
  const IValue& value = c.value(2);
  const at::ScalarType type = c.tensor(0).scalar_type();
  if (value.isScalar()) return expect_in(c, type, value.toScalar());
  if (type != at::kLong && type != at::kUInt64 && !at::isFloat8Type(type)) return c.leave();
  value.toTensor().dim() == 0 ? expect_in(c, type, value.toTensor().item()) : c.leave();
}
// self, dim, index, value
void index_fill(call& c) { expect_in(c, c.tensor(0).scalar_type(), c.value(3).toScalar()); }
void scatter_value(call& c) { expect_in(c, c.tensor(0).scalar_type(), c.value(3).toScalar()); }
// s, dtype, layout, device, pin_memory
void scalar_tensor(call& c) { expect_in(c, c.type(1, c10::get_default_dtype_as_scalartype()), c.value(0).toScalar()); }

// ---- copies: another type is one rounding ----

namespace {
// What floating-point numbers become as integers that librepdl's tensors have not, in a type that these fit in: without their
// fraction, saturated, NaN is 0. (uint64: its bits as int64.)
Tensor saturated(const Tensor& given, at::ScalarType type) {
  const Tensor x = at::isFloat8Type(given.scalar_type()) ? converted(given, at::kFloat) : given;
  switch (type) {
    case at::kByte:
      return converted(x, at::kInt).clamp(0, 0xff);
    case at::kChar:
      return converted(x, at::kInt).clamp(-0x80, 0x7f);
    case at::kShort:
      return converted(x, at::kInt).clamp(-0x8000, 0x7fff);
    case at::kUInt16:
      return converted(x, at::kInt).clamp(0, 0xffff);
    case at::kUInt32:
      return converted(x, at::kLong).clamp(0, int64_t{0xffffffff});
    default: {  // from 2^63 on without it, which is exact, and then with its bit
      const Tensor great = x.ge(0x1p63);
      const Tensor rest = converted(at::where(great, x.sub(0x1p63), x), at::kLong).clamp_min(0);
      return at::where(great, rest.bitwise_xor(std::numeric_limits<int64_t>::min()), rest);
    }
  }
}
// Integers of the types that librepdl's tensors have not.
Tensor rounded(const Tensor& x, at::ScalarType type) {
  const Tensor bits = x.to(at::kLong);
  if (x.scalar_type() != at::kUInt64) return converted(bits, type);
  // From 2^63 on half of it, where the last bit says that there is something below, as no format has 62 bits.
  const Tensor half =
      bits.bitwise_right_shift(1).bitwise_and(std::numeric_limits<int64_t>::max()).bitwise_or(bits.bitwise_and(1));
  const Tensor great = bits.lt(0), y = converted(at::where(great, half, bits), type);
  if (at::isFloat8Type(type)) return y;  // half is too large, too
  return at::where(great, y.add(y), y);
}
// A complex number is two real ones.
void copy_complex(const Tensor& to, const Tensor& from, bool non_blocking) {
  const auto parts = [](const Tensor& t) { return at::view_as_real(t.resolve_conj()); };
  if (!at::isComplexType(to.scalar_type())) {
    TORCH_WARN_ONCE("Casting complex values to real discards the imaginary part");
    const Tensor x = parts(from);
    to.copy_(to.scalar_type() == at::kBool ? x.ne(0).any(-1) : x.select(-1, 0), non_blocking);
  } else if (at::isComplexType(from.scalar_type())) {
    parts(to).copy_(parts(from), non_blocking);
  } else {
    parts(to).select(-1, 0).copy_(from, non_blocking);
    parts(to).select(-1, 1).zero_();
  }
}
}  // namespace

// self, src, non_blocking
void copy(call& c) {
  const Tensor &to = c.tensor(0), &given = c.tensor(1);
  const auto a = given.scalar_type(), b = to.scalar_type();
  if (a == b || given.layout() != at::kStrided || to.layout() != at::kStrided || given.is_meta() || to.is_meta())
    return c.leave();
  const auto has_format = [](at::ScalarType t) { return has_type(t) || is_other_integer(t); };
  const auto is_float = [](at::ScalarType t) { return at::isFloatingType(t) || at::isComplexType(t); };
  if (!is_float(a) && !is_float(b)) return c.leave();
  for (const auto t : {a, b}) {
    if (!has_format(at::toRealValueType(t))) c.refuse(std::string("librepdl has no ") + c10::toString(t));
  }
  if (to.is_conj() || to.is_neg()) {  // what is written is the conjugate, or the negative
    to.copy_(given.to(b));
    return c.give(to);
  }
  const Tensor from = given.resolve_neg();
  if (at::isComplexType(a) || at::isComplexType(b)) {
    copy_complex(to, from, c.boolean(2));
    return c.give(to);
  }
  if (is_other_integer(a)) {
    // Smaller ones are exact in float32, then comes one rounding; to 8 bits it is PyTorch's, of each device.
    if (a != at::kUInt32 && a != at::kUInt64 && !at::isFloat8Type(b)) return c.leave();
    to.copy_(rounded(from, b), c.boolean(2));
    return c.give(to);
  }
  if (is_other_integer(b)) {
    to.copy_(saturated(from, b), c.boolean(2));
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
