// Products of matrices, linear layers.
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/ops/_efficientzerotensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/stack.h>

#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {

const operation& matmul_op() {
  static const operation op("matmul");
  return op;
}

void check_rank(const Tensor& t, int64_t rank, const char* name) {
  TORCH_CHECK(t.dim() == rank, "expected ", name, " of ", rank, " dimensions, got ", t.dim());
}

// RN(alpha a b + beta added), in the operands' format or a wider one, which what is added may have, too. beta = 0 leaves out what is added, NaN
// and all, as aten does.
struct multipliers {
  double alpha = 1, beta = 1;
  multipliers() = default;
  multipliers(const call& c, int beta_at, int alpha_at, at::ScalarType type)
      : alpha(c.number(alpha_at, type)), beta(c.number(beta_at, type)) {}
};
Tensor product(const Tensor& a, const Tensor& b, const Tensor& added, at::IntArrayRef shape, const multipliers& f = {},
               std::optional<at::ScalarType> wider = {}) {
  const at::ScalarType to = wider.value_or(a.scalar_type());
  const auto is_one = [&](const Tensor& t) { return t.scalar_type() == a.scalar_type() || t.scalar_type() == to; };
  TORCH_CHECK(a.scalar_type() == b.scalar_type() && (f.beta == 0 || !added.defined() || is_one(added)),
              "expected operands of one dtype, got ", a.scalar_type(), " and ", b.scalar_type());
  TORCH_CHECK(a.size(-1) == b.size(-2), "mat1 and mat2 shapes cannot be multiplied (", a.size(-2), "x", a.size(-1),
              " and ", b.size(-2), "x", b.size(-1), ")");
  Tensor out = fresh(shape, to, a.device());
  const Tensor whole = f.beta == 0 || !added.defined() ? Tensor() : added.expand(shape);
  if (f.alpha == 1 && f.beta == 1) {
    matmul_op()({a, b, whole}, {&out});
  } else {
    matmul_op()({a, b, whole}, {&out}, {{"alpha", f.alpha}, {"beta", f.beta}});
  }
  return out;
}

}  // namespace

namespace {
void mm_to(call& c, std::optional<at::ScalarType> to) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  check_rank(a, 2, "self");
  check_rank(b, 2, "mat2");
  c.give(product(a, b, {}, {a.size(0), b.size(1)}, {}, to));
}
void bmm_to(call& c, std::optional<at::ScalarType> to) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  check_rank(a, 3, "batch1");
  check_rank(b, 3, "batch2");
  TORCH_CHECK(a.size(0) == b.size(0), "expected batches of one size, got ", a.size(0), " and ", b.size(0));
  c.give(product(a, b, {}, {a.size(0), a.size(1), b.size(2)}, {}, to));
}
// self, mat1, mat2, ..., beta, alpha
void addmm_to(call& c, int beta_at, std::optional<at::ScalarType> to) {
  const Tensor &a = c.tensor(1), &b = c.tensor(2);
  check_rank(a, 2, "mat1");
  check_rank(b, 2, "mat2");
  const multipliers f(c, beta_at, beta_at + 1, to.value_or(a.scalar_type()));
  c.give(product(a, b, c.tensor(0), {a.size(0), b.size(1)}, f, to));
}
void baddbmm_to(call& c, int beta_at, std::optional<at::ScalarType> to) {
  const Tensor &a = c.tensor(1), &b = c.tensor(2);
  check_rank(a, 3, "batch1");
  check_rank(b, 3, "batch2");
  TORCH_CHECK(a.size(0) == b.size(0), "expected batches of one size, got ", a.size(0), " and ", b.size(0));
  const multipliers f(c, beta_at, beta_at + 1, to.value_or(a.scalar_type()));
  c.give(product(a, b, c.tensor(0), {a.size(0), a.size(1), b.size(2)}, f, to));
}
// The argument out_dtype.
at::ScalarType wider_type(const call& c, int at, const Tensor& operand) {
  const at::ScalarType own = operand.scalar_type(), to = c.type(at, own);
  const bool is = to == own || (own != at::kDouble && to == at::kDouble) ||
                  ((type_bit(own) & (F16 | BF16)) != 0 && to == at::kFloat);
  TORCH_CHECK(is, "out_dtype must be the same as the operands' dtype or a wider one, got ", to, " for ", own);
  return to;
}
}  // namespace

void mm(call& c) { mm_to(c, {}); }
void mm_dtype(call& c) { mm_to(c, wider_type(c, 2, c.tensor(0))); }
void bmm(call& c) { bmm_to(c, {}); }
void bmm_dtype(call& c) { bmm_to(c, wider_type(c, 2, c.tensor(0))); }
void addmm(call& c) { addmm_to(c, 3, {}); }
void addmm_dtype(call& c) { addmm_to(c, 4, wider_type(c, 3, c.tensor(1))); }
void baddbmm(call& c) { baddbmm_to(c, 3, {}); }
void baddbmm_dtype(call& c) { baddbmm_to(c, 4, wider_type(c, 3, c.tensor(1))); }
namespace {
void check_vector(const Tensor& m, const Tensor& v) {
  check_rank(m, 2, "mat");
  check_rank(v, 1, "vec");
  TORCH_CHECK(m.size(1) == v.size(0), "size mismatch, got input (", m.size(0), "), mat (", m.size(0), "x", m.size(1),
              "), vec (", v.size(0), ")");
}
}  // namespace
// self, mat, vec, beta, alpha
void addmv(call& c) {
  const Tensor &m = c.tensor(1), &v = c.tensor(2);
  check_vector(m, v);
  const multipliers f(c, 3, 4, m.scalar_type());
  const Tensor added = f.beta == 0 ? Tensor() : c.tensor(0).expand({m.size(0)}).unsqueeze(1);
  c.give(product(m, v.unsqueeze(1), added, {m.size(0), 1}, f).squeeze(1));
}
void mv(call& c) {
  const Tensor &m = c.tensor(0), &v = c.tensor(1);
  check_vector(m, v);
  c.give(product(m, v.unsqueeze(1), {}, {m.size(0), 1}).squeeze(1));
}
// self, batch1, batch2, beta, alpha: one sum over batches and inner indices
void addbmm(call& c) {
  const Tensor &a = c.tensor(1), &b = c.tensor(2);
  check_rank(a, 3, "batch1");
  check_rank(b, 3, "batch2");
  TORCH_CHECK(a.size(0) == b.size(0) && a.size(2) == b.size(1),
              "batch1 and batch2 must have same number of batches, and sizes that fit, got ", a.sizes(), " and ",
              b.sizes());
  c.give(product(a.permute({1, 0, 2}).reshape({a.size(1), a.size(0) * a.size(2)}),
                 b.reshape({b.size(0) * b.size(1), b.size(2)}), c.tensor(0), {a.size(1), b.size(2)},
                 {c, 3, 4, a.scalar_type()}));
}
// self, vec1, vec2, beta, alpha
void addr(call& c) {
  const Tensor &x = c.tensor(1), &y = c.tensor(2);
  check_rank(x, 1, "vec1");
  check_rank(y, 1, "vec2");
  if (c.value(3).toScalar().toDouble() != 1) {
    return c.give(at::addmm(c.tensor(0).expand({x.size(0), y.size(0)}), x.unsqueeze(1), y.unsqueeze(0),
                            c.value(3).toScalar(), c.value(4).toScalar()));
  }
  const Tensor added = c.tensor(0).expand({x.size(0), y.size(0)});
  c.give(map("addcmul", {added, x.unsqueeze(1), y}, {{"value", c.number(4, x.scalar_type())}}));
}
void dot(call& c) {
  const Tensor &x = c.tensor(0), &y = c.tensor(1);
  check_rank(x, 1, "self");
  check_rank(y, 1, "tensor");
  TORCH_CHECK(x.scalar_type() == y.scalar_type(), "dot: expected both vectors to have one dtype, but found ",
              x.scalar_type(), " and ", y.scalar_type());
  TORCH_CHECK(x.numel() == y.numel(), "inconsistent tensor size, expected tensors of one size, got ", x.numel(),
              " and ", y.numel());
  // Of forward-mode differentiation: zeros without memory.
  if (x._is_zerotensor() || y._is_zerotensor()) return c.give(at::_efficientzerotensor({}, x.options()));
  static const operation op("dot");
  Tensor out = at::empty({}, x.options());
  op({x, y}, {&out});
  c.give(out);
}

// self, other, dim: x_1 y_2 - x_2 y_1 and so on, each in one rounding
void linalg_cross(call& c) {
  const Tensor &x = c.tensor(0), &y = c.tensor(1);
  TORCH_CHECK(x.dim() == y.dim(), "linalg.cross: inputs must have the same number of dimensions.");
  TORCH_CHECK(x.scalar_type() == y.scalar_type(), "linalg.cross: expected operands of one dtype, got ", x.scalar_type(),
              " and ", y.scalar_type());
  const int64_t axis = at::maybe_wrap_dim(c.integer(2), x.dim());
  TORCH_CHECK(x.size(axis) == 3 && y.size(axis) == 3, "linalg.cross: inputs dimension ", axis, " must have length 3.");
  const auto shape = at::infer_size(x.sizes(), y.sizes());
  const auto last = [&](const Tensor& t) { return t.expand(shape).movedim(axis, -1); };
  const Tensor a = last(x), b = last(y);
  const Tensor left = at::stack({a.roll(-1, -1), a.roll(-2, -1)}, -1),
               right = at::stack({b.roll(-2, -1), b.roll(-1, -1).neg()}, -1);
  const Tensor products = at::bmm(left.reshape({-1, 1, 2}), right.reshape({-1, 2, 1}));
  c.give(products.view(a.sizes()).movedim(-1, axis).contiguous());
}
// input1, input2, weight, bias: the product with the first input is rounded; with the second one the bias is in the rounding
void bilinear(call& c) {
  const Tensor &x = c.tensor(0), &y = c.tensor(1), &w = c.tensor(2);
  TORCH_CHECK(x.dim() == y.dim() && x.dim() >= 1 && x.sizes().slice(0, x.dim() - 1) == y.sizes().slice(0, x.dim() - 1),
              "bilinear(): input batch dimensions do not match, got ", x.sizes(), " and ", y.sizes());
  TORCH_CHECK(w.dim() == 3 && x.size(-1) == w.size(1) && y.size(-1) == w.size(2), "bilinear(): input sizes ", x.sizes(),
              " and ", y.sizes(), " do not match weight of size ", w.sizes());
  TORCH_CHECK(!c.has(3) || c.tensor(3).numel() == w.size(0), "bilinear(): bias size does not match weight size: got ",
              c.has(3) ? c.tensor(3).numel() : 0, " but expected ", w.size(0));
  auto shape = x.sizes().vec();
  shape.back() = w.size(0);
  const int64_t rows = c10::multiply_integers(shape.begin(), shape.end() - 1), out = w.size(0), first = w.size(1),
                second = w.size(2);
  const Tensor half = at::mm(x.reshape({rows, first}), w.permute({1, 0, 2}).reshape({first, out * second}))
                          .view({rows, out, second}),
               column = y.reshape({rows, second, 1});
  c.give((c.has(3) ? at::baddbmm(c.tensor(3).view({1, out, 1}), half, column) : at::bmm(half, column)).view(shape));
}

// aten's formula depends on strides (bmm and add, or addmm): here the product and the bias are one rounding, whatever the strides,
// also of a vector.
// input, weight, bias
void linear(call& c) {
  const Tensor &x = c.tensor(0), &w = c.tensor(1);
  TORCH_CHECK(x.dim() >= 1 && (w.dim() == 2 || w.dim() == 1),
              "linear: expected an input of one dimension or more and a weight of 2 or 1, got ", x.dim(), " and ",
              w.dim());
  const Tensor matrix = w.dim() == 1 ? w.unsqueeze(0) : w;
  auto shape = x.sizes().vec();
  const int64_t inner = shape.back();
  TORCH_CHECK(inner == matrix.size(1), "mat1 and mat2 shapes cannot be multiplied (",
              x.numel() / std::max<int64_t>(inner, 1), "x", inner, " and ", matrix.size(1), "x", matrix.size(0), ")");
  shape.pop_back();
  const int64_t rows = c10::multiply_integers(shape);
  if (w.dim() == 2) shape.push_back(w.size(0));
  const Tensor flat = x.dim() == 2 ? x : x.reshape({rows, inner});
  const Tensor y = c.has(2) ? at::addmm(c.tensor(2), flat, matrix.t()) : at::mm(flat, matrix.t());
  c.give(x.dim() == 2 && w.dim() == 2 ? y : y.view(shape));
}

// Likewise: dot, mm, or one batched product of the broadcast batches.
void matmul(call& c) {
  Tensor a = c.tensor(0), b = c.tensor(1);
  TORCH_CHECK(a.dim() > 0 && b.dim() > 0, "both arguments to matmul need to be at least 1D, but they are ", a.dim(),
              "D and ", b.dim(), "D");
  if (a.dim() == 1 && b.dim() == 1) return c.give(a.dot(b));
  const bool row = a.dim() == 1, column = b.dim() == 1;
  if (row) a = a.unsqueeze(0);
  if (column) b = b.unsqueeze(1);
  Tensor y;
  if (a.dim() == 2 && b.dim() == 2) {
    y = at::mm(a, b);
  } else if (b.dim() == 2) {  // the rows of all batches
    auto shape = a.sizes().vec();
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
    const Tensor flat = a.reshape({rows, shape.back()});
    shape.back() = b.size(1);
    y = at::mm(flat, b).view(shape);
  } else {
    const auto batch = at::infer_size(a.sizes().slice(0, a.dim() - 2), b.sizes().slice(0, b.dim() - 2));
    int64_t count = 1;
    for (const int64_t n : batch) count *= n;
    const auto whole = [&](const Tensor& t) {
      auto shape = batch;
      shape.push_back(t.size(-2));
      shape.push_back(t.size(-1));
      return t.expand(shape).reshape({count, t.size(-2), t.size(-1)});
    };
    auto shape = batch;
    shape.push_back(a.size(-2));
    shape.push_back(b.size(-1));
    // One after the other: the order in which autograd adds gradients to one tensor, which operands of a call do not have.
    const Tensor right = whole(b), left = whole(a);
    y = at::bmm(left, right).view(shape);
  }
  if (column) y = y.squeeze(-1);
  if (row) y = y.squeeze(column ? -1 : -2);
  c.give(y);
}

// Likewise, of vectors: aten has dot, or the sum of rounded products where they are not contiguous.
// self, other, dims_self, dims_other
void tensordot(call& c) {
  Tensor a = c.tensor(0), b = c.tensor(1);
  auto inner_a = c.integers(2), inner_b = c.integers(3);
  TORCH_CHECK(inner_a.size() == inner_b.size(), "both dimension lists should have same length");
  for (size_t i = 0; i < inner_a.size(); ++i) {
    const int64_t x = inner_a[i] = at::maybe_wrap_dim(inner_a[i], a.dim());
    const int64_t y = inner_b[i] = at::maybe_wrap_dim(inner_b[i], b.dim());
    if (a.size(x) == b.size(y)) continue;
    TORCH_CHECK(a.size(x) == 1 || b.size(y) == 1, "contracted dimensions need to match, but first has size ", a.size(x),
                " in dim ", x, " and second has size ", b.size(y), " in dim ", y);
    if (b.size(y) == 1) {
      a = a.sum(x, true);
    } else {
      b = b.sum(y, true);
    }
  }
  std::vector<int64_t> shape, order_a, order_b = inner_b;
  int64_t rows = 1, inner = 1, columns = 1;
  const auto summed_a = at::dim_list_to_bitset(inner_a, a.dim()), summed_b = at::dim_list_to_bitset(inner_b, b.dim());
  for (int64_t i = 0; i < a.dim(); ++i) {
    if (summed_a[i]) continue;
    order_a.push_back(i);
    shape.push_back(a.size(i));
    rows *= a.size(i);
  }
  for (int64_t i = 0; i < b.dim(); ++i) {
    if (summed_b[i]) continue;
    order_b.push_back(i);
    shape.push_back(b.size(i));
    columns *= b.size(i);
  }
  for (const int64_t i : inner_a) {
    order_a.push_back(i);
    inner *= a.size(i);
  }
  const Tensor left = a.permute(order_a).reshape({rows, inner}), right = b.permute(order_b).reshape({inner, columns});
  c.give(at::mm(left, right).reshape(shape));
}

}  // namespace repdl_torch::formulas
