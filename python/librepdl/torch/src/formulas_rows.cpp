// Sums, statistics and the softmax family.
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/ops/_unique.h>
#include <ATen/ops/cumprod.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/prod.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
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
  Tensor empty(at::ScalarType type) const { return fresh(shape, type, x.device()); }
  Tensor operator()(const operation& op, at::ScalarType type) const {
    Tensor out = empty(type);
    op({x}, {&out}, {{"axis", at::IntArrayRef(axes)}, {"keepdim", keep}});
    return out;
  }
  Tensor operator()(const operation& op) const { return (*this)(op, x.scalar_type()); }
};

// Nothing rounds but the conversion, which aten would let wrap.
void leave_converted(call& c, const Tensor& x, at::ScalarType type) {
  if (!at::isFloatingType(x.scalar_type()) || !at::isIntegralType(type, /*includeBool=*/true)) return c.leave();
  c.give(at::sum(converted(x, type), c.integers(1), c.boolean(2), type));
}

// self, dim, keepdim, dtype: in the type that is asked for, as aten converts first.
void sum_like(call& c, const operation& op) {
  const Tensor& x = c.tensor(0);
  const at::ScalarType type = c.type(3, x.scalar_type());
  if (at::isComplexType(type) || at::isComplexType(x.scalar_type())) c.refuse("");
  if (!at::isFloatingType(type)) return leave_converted(c, x, type);
  if (!(type_bit(type) & FLOATS) || (at::isFloatingType(x.scalar_type()) && !(type_bit(x.scalar_type()) & FLOATS)))
    c.refuse("");
  c.give(reduction(converted(x, type), c.integers(1), c.boolean(2))(op));
}
}  // namespace

void sum(call& c) {
  static const operation op("sum");
  sum_like(c, op);
}
// Without the NaNs.
void nansum(call& c) {
  static const operation op("sum");
  const Tensor& x = c.tensor(0);
  const at::ScalarType type = c.type(3, x.scalar_type());
  if (at::isComplexType(x.scalar_type())) c.refuse("");
  if (!at::isFloatingType(x.scalar_type()) && !at::isFloatingType(type)) return c.leave();
  if (!at::isFloatingType(type)) return leave_converted(c, x, type);
  if (!(type_bit(type) & FLOATS)) c.refuse("");
  c.give(reduction(converted(x.masked_fill(x.isnan(), 0), type), c.integers(1), c.boolean(2))(op));
}
namespace {
// A product in the type that is asked for, as aten converts first.
void prod_over(call& c, const std::vector<int64_t>& axes, bool keepdim, int dtype) {
  static const operation op("prod");
  const Tensor& x = c.tensor(0);
  const at::ScalarType type = c.type(dtype, x.scalar_type());
  if (at::isComplexType(type) || at::isComplexType(x.scalar_type())) c.refuse("");
  if (!at::isFloatingType(type)) {
    if (!at::isFloatingType(x.scalar_type())) return c.leave();
    const Tensor whole = converted(x, type);
    return c.give(axes.empty() ? at::prod(whole, type) : at::prod(whole, axes[0], keepdim, type));
  }
  if (!(type_bit(type) & FLOATS) || (at::isFloatingType(x.scalar_type()) && !(type_bit(x.scalar_type()) & FLOATS)))
    c.refuse("");
  c.give(reduction(converted(x, type), axes, keepdim)(op));
}
}  // namespace
// self, dtype
void prod(call& c) { prod_over(c, {}, false, 1); }
// self, dim, keepdim, dtype
void prod_dim(call& c) { prod_over(c, {c.integer(1)}, c.boolean(2), 3); }
void trace(call& c) {
  TORCH_CHECK(c.tensor(0).dim() == 2, "trace: expected a matrix, but got tensor with dim ", c.tensor(0).dim());
  c.give(c.tensor(0).diagonal().sum());
}
void mean(call& c) {
  static const operation op("mean");
  if (!at::isFloatingType(c.type(3, c.tensor(0).scalar_type())) && !at::isComplexType(c.tensor(0).scalar_type()))
    return c.leave();  // PyTorch's error
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

namespace {
// Of p = 0 how many numbers are not 0; of p = 1, 2, inf, -inf one rounding; of others the root of a sum of powers, each rounded, of 16 bits in
// float32 and then once more.
void give_norm(call& c, const reduction& r, double p) {
  static const operation op("vector_norm"), sum("sum");
  const at::ScalarType type = r.x.scalar_type(), inner = in_arithmetic(type);
  if (p == 0) return c.give(r.x.ne(0).sum(r.axes, r.keep).to(type));
  if (p != 1 && p != 2 && !std::isinf(p)) {
    reduction powers = r;
    powers.x = map("pow_scalar", {map("abs", {converted(r.x, inner)})}, {{"exponent", in_arithmetic_of(type, p)}});
    return c.give(converted(
        map("pow_scalar", {powers(sum)}, {{"exponent", in_arithmetic_of(type, 1 / in_arithmetic_of(type, p))}}), type));
  }
  Tensor out = r.empty(r.x.scalar_type());
  TORCH_CHECK(!std::isinf(p) || r.x.numel() > 0 || out.numel() == 0,
              "linalg.vector_norm cannot compute the infinity norm of an empty tensor");
  op({r.x}, {&out}, {{"p", p}, {"axis", at::IntArrayRef(r.axes)}, {"keepdim", r.keep}});
  c.give(out);
}
}  // namespace
// self, ord, dim, keepdim, dtype
void vector_norm(call& c) {
  const Tensor& x = c.tensor(0);
  const at::ScalarType type = c.type(4, x.scalar_type());
  if (!(type_bit(type) & FLOATS)) c.refuse("");
  const double p = c.value(1).toScalar().toDouble();
  const reduction r(converted(x, type), c.integers(2), c.boolean(3));
  give_norm(c, r, p);
}
namespace {
// Slices whose norm is greater than `most` times most / (norm + 1e-7), each operation rounded.
Tensor within(const Tensor& x, const Tensor& norm, double most) {
  const Tensor factor = number_on(most, x.scalar_type(), x.device()).div(norm.add(1e-7));
  return at::where(norm.gt(most), x.mul(factor), x);
}
}  // namespace
// self, p, dim, maxnorm
void renorm(call& c) {
  const Tensor& x = c.tensor(0);
  if (x.scalar_type() != at::kFloat) c.refuse("");
  const double most = c.number(3, x.scalar_type());
  TORCH_CHECK(c.value(1).toScalar().toDouble() > 0, "renorm: non-positive-norm not supported");
  TORCH_CHECK(most >= 0, "renorm: expected maxnorm to be >= 0 but got ", most);
  TORCH_CHECK(x.dim() > 1, "renorm: input needs at least 2 dimensions, got ", x.dim(), " dimensions");
  std::vector<int64_t> others;
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (i != at::maybe_wrap_dim(c.integer(2), x.dim())) others.push_back(i);
  }
  c.give(within(x, at::linalg_vector_norm(x, c.value(1).toScalar(), others, /*keepdim=*/true), most));
}
// self, indices, max_norm, norm_type: of the rows that indices name
void embedding_renorm(call& c) {
  const Tensor &x = c.tensor(0), index = std::get<0>(at::_unique(c.tensor(1).to(at::kLong).reshape({-1})));
  const Tensor rows = x.index_select(0, index),
               norm = at::linalg_vector_norm(rows, c.real(3), std::vector<int64_t>{1}, /*keepdim=*/true);
  const Tensor out = c.what().kind == variant::in_place ? x : x.clone();
  c.give(out.index_copy_(0, index, within(rows, norm, c.real(2))));
}
// aten's older names of it, some with a type at the end, to which the operand is converted first.
namespace {
Tensor of_type(const call& c, int i) {
  const Tensor& x = c.tensor(0);
  const at::ScalarType type = c.what().arguments > i ? c.type(i, x.scalar_type()) : x.scalar_type();
  if (!(type_bit(type) & FLOATS)) c.refuse("");
  return converted(x, type);
}
double order(const call& c) { return c.has(1) ? c.value(1).toScalar().toDouble() : 2; }
}  // namespace
// self, p, dim, keepdim, dtype
void norm_dim(call& c) { give_norm(c, reduction(of_type(c, 4), c.integers(2), c.boolean(3)), order(c)); }
// self, p, dtype
void norm_all(call& c) { give_norm(c, reduction(of_type(c, 2), {}, false), order(c)); }

void logsumexp(call& c) {
  static const operation op("logsumexp");
  const Tensor& x = c.tensor(0);
  const at::ScalarType type =
      at::isFloatingType(x.scalar_type()) ? x.scalar_type() : c10::get_default_dtype_as_scalartype();
  if (!(type_bit(type) & FLOATS)) c.refuse("");
  c.give(reduction(converted(x, type), c.integers(1), c.boolean(2))(op));
}

namespace {
// A number as a row of one element.
operand with_an_axis(const Tensor& t) {
  static const int64_t one = 1;
  return t.dim() == 0 ? operand::flat(t, &one) : operand(t);
}

// self, dim, half_to_float: CUDA's fusion of a conversion, which is exact, and a softmax in float32
void along(call& c, const operation& op) {
  const Tensor wide = c.boolean(2) ? converted(c.tensor(0), at::kFloat) : Tensor();
  const Tensor& x = wide.defined() ? wide : c.tensor(0);
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.dim());
  Tensor out = fresh_like(x);
  op(x.device(), with_an_axis(x), with_an_axis(out), attribute("axis", axis));
  c.give(std::move(out));
}
// grad_output, output, dim, input_dtype: the gradient is rounded to float32 and then converted, as where the conversion is a
// call of its own
void along_backward(call& c, const operation& op) {
  const Tensor& y = c.tensor(1);
  const int64_t axis = at::maybe_wrap_dim(c.integer(2), y.dim());
  Tensor out = fresh_like(y);
  op(y.device(), {with_an_axis(c.tensor(0)), with_an_axis(y)}, with_an_axis(out), attribute("axis", axis));
  c.give(converted(out, c.type(3, y.scalar_type())));
}
}  // namespace

namespace {
// self, dim, dtype: in the type that is asked for, as aten converts first; integers are aten's own.
void scan(call& c, const operation& op, Tensor (*of_integers)(const Tensor&, int64_t, std::optional<at::ScalarType>)) {
  const Tensor& x = c.tensor(0);
  const at::ScalarType type = c.what().arguments > 2 ? c.type(2, x.scalar_type()) : x.scalar_type();
  if (at::isComplexType(type) || at::isComplexType(x.scalar_type())) c.refuse("");
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.dim());
  if (!at::isFloatingType(type)) {
    if (!at::isFloatingType(x.scalar_type()) || of_integers == nullptr) return c.leave();
    return c.give(of_integers(converted(x, type), axis, type));
  }
  if (!(type_bit(type) & FLOATS) || (at::isFloatingType(x.scalar_type()) && !(type_bit(x.scalar_type()) & FLOATS)))
    c.refuse("");
  const Tensor in = converted(x, type);
  Tensor out = fresh_like(in);
  op(in.device(), with_an_axis(in), with_an_axis(out), attribute("axis", axis));
  c.give(std::move(out));
}
}  // namespace
void cumsum(call& c) {
  static const operation op("cumsum");
  scan(c, op, at::cumsum);
}
void cumprod(call& c) {
  static const operation op("cumprod");
  scan(c, op, at::cumprod);
}
void logcumsumexp(call& c) {
  static const operation op("logcumsumexp");
  scan(c, op, nullptr);
}

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

}  // namespace repdl_torch::formulas
