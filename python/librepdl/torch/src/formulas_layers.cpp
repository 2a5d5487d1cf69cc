// Products, convolutions, pooling, embeddings, losses.
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/im2col.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/reflection_pad1d.h>
#include <ATen/ops/reflection_pad2d.h>
#include <ATen/ops/reflection_pad3d.h>
#include <ATen/ops/replication_pad1d.h>
#include <ATen/ops/replication_pad2d.h>
#include <ATen/ops/replication_pad3d.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

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

// RN(alpha a b + beta added). beta = 0 leaves out what is added, NaN and all, as aten does.
struct factors {
  double alpha = 1, beta = 1;
  factors() = default;
  factors(const call& c, int beta_at, int alpha_at, at::ScalarType type) : alpha(c.number(alpha_at, type)), beta(c.number(beta_at, type)) {}
};
Tensor product(const Tensor& a, const Tensor& b, const Tensor& added, at::IntArrayRef shape, const factors& f = {}) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type() && (f.beta == 0 || !added.defined() || added.scalar_type() == a.scalar_type()),
              "expected operands of one dtype, got ", a.scalar_type(), " and ", b.scalar_type());
  TORCH_CHECK(a.size(-1) == b.size(-2), "mat1 and mat2 shapes cannot be multiplied (", a.size(-2), "x", a.size(-1), " and ",
              b.size(-2), "x", b.size(-1), ")");
  Tensor out = fresh(shape, a.scalar_type(), a.device());
  const Tensor whole = f.beta == 0 || !added.defined() ? Tensor() : added.expand(shape);
  if (f.alpha == 1 && f.beta == 1) {
    matmul_op()({a, b, whole}, {&out});
  } else {
    matmul_op()({a, b, whole}, {&out}, {{"alpha", f.alpha}, {"beta", f.beta}});
  }
  return out;
}

}  // namespace

void mm(call& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  check_rank(a, 2, "self");
  check_rank(b, 2, "mat2");
  c.give(product(a, b, {}, {a.size(0), b.size(1)}));
}
void bmm(call& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  check_rank(a, 3, "batch1");
  check_rank(b, 3, "batch2");
  TORCH_CHECK(a.size(0) == b.size(0), "expected batches of one size, got ", a.size(0), " and ", b.size(0));
  c.give(product(a, b, {}, {a.size(0), a.size(1), b.size(2)}));
}
// self, mat1, mat2, beta, alpha
void addmm(call& c) {
  const Tensor &a = c.tensor(1), &b = c.tensor(2);
  check_rank(a, 2, "mat1");
  check_rank(b, 2, "mat2");
  c.give(product(a, b, c.tensor(0), {a.size(0), b.size(1)}, {c, 3, 4, a.scalar_type()}));
}
void baddbmm(call& c) {
  const Tensor &a = c.tensor(1), &b = c.tensor(2);
  check_rank(a, 3, "batch1");
  check_rank(b, 3, "batch2");
  TORCH_CHECK(a.size(0) == b.size(0), "expected batches of one size, got ", a.size(0), " and ", b.size(0));
  c.give(product(a, b, c.tensor(0), {a.size(0), a.size(1), b.size(2)}, {c, 3, 4, a.scalar_type()}));
}
// self, mat, vec, beta, alpha
void addmv(call& c) {
  const Tensor &m = c.tensor(1), &v = c.tensor(2);
  check_rank(m, 2, "mat");
  check_rank(v, 1, "vec");
  TORCH_CHECK(m.size(1) == v.size(0), "size mismatch, got input (", m.size(0), "), mat (", m.size(0), "x", m.size(1), "), vec (",
              v.size(0), ")");
  const factors f(c, 3, 4, m.scalar_type());
  const Tensor added = f.beta == 0 ? Tensor() : c.tensor(0).expand({m.size(0)}).unsqueeze(1);  // mv gives an empty tensor
  c.give(product(m, v.unsqueeze(1), added, {m.size(0), 1}, f).squeeze(1));
}
// self, batch1, batch2, beta, alpha: one sum over batches and inner indices
void addbmm(call& c) {
  const Tensor &a = c.tensor(1), &b = c.tensor(2);
  check_rank(a, 3, "batch1");
  check_rank(b, 3, "batch2");
  TORCH_CHECK(a.size(0) == b.size(0) && a.size(2) == b.size(1), "batch1 and batch2 must have same number of batches, and sizes that fit, got ",
              a.sizes(), " and ", b.sizes());
  c.give(product(a.permute({1, 0, 2}).reshape({a.size(1), a.size(0) * a.size(2)}), b.reshape({b.size(0) * b.size(1), b.size(2)}),
                 c.tensor(0), {a.size(1), b.size(2)}, {c, 3, 4, a.scalar_type()}));
}
// self, vec1, vec2, beta, alpha
void addr(call& c) {
  const Tensor &x = c.tensor(1), &y = c.tensor(2);
  check_rank(x, 1, "vec1");
  check_rank(y, 1, "vec2");
  if (c.value(3).toScalar().toDouble() != 1) c.refuse("with beta other than 1");
  const Tensor added = c.tensor(0).expand({x.size(0), y.size(0)});
  c.give(map("addcmul", {added, x.unsqueeze(1), y}, {{"value", c.number(4, x.scalar_type())}}));
}
void dot(call& c) {
  const Tensor &x = c.tensor(0), &y = c.tensor(1);
  check_rank(x, 1, "self");
  check_rank(y, 1, "tensor");
  TORCH_CHECK(x.scalar_type() == y.scalar_type(), "dot: expected both vectors to have one dtype, but found ", x.scalar_type(),
              " and ", y.scalar_type());
  TORCH_CHECK(x.numel() == y.numel(), "inconsistent tensor size, expected tensors of one size, got ", x.numel(), " and ", y.numel());
  static const operation op("dot");
  Tensor out = at::empty({}, x.options());
  op({x, y}, {&out});
  c.give(out);
}

// aten's formula depends on strides (bmm and add, or addmm): here the product and the bias are one rounding, whatever the strides.
// input, weight, bias
void linear(call& c) {
  const Tensor &x = c.tensor(0), &w = c.tensor(1);
  TORCH_CHECK(x.dim() >= 1 && (w.dim() == 2 || w.dim() == 1), "linear: expected an input of one dimension or more and a weight of 2 or 1, got ",
              x.dim(), " and ", w.dim());
  if (w.dim() == 1 || x.dim() == 1) {  // vectors, as aten has it
    Tensor y = at::matmul(x, w.dim() == 1 ? w : w.t());
    return c.give(c.has(2) ? y.add(c.tensor(2)) : y);
  }
  auto shape = x.sizes().vec();
  const int64_t inner = shape.back();
  TORCH_CHECK(inner == w.size(1), "mat1 and mat2 shapes cannot be multiplied (", x.numel() / std::max<int64_t>(inner, 1), "x", inner,
              " and ", w.size(1), "x", w.size(0), ")");
  shape.back() = w.size(0);
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  const Tensor flat = x.dim() == 2 ? x : x.reshape({rows, inner});
  const Tensor y = c.has(2) ? at::addmm(c.tensor(2), flat, w.t()) : at::mm(flat, w.t());
  c.give(x.dim() == 2 ? y : y.view(shape));
}

// Likewise: dot, mm, or one batched product of the broadcast batches.
void matmul(call& c) {
  Tensor a = c.tensor(0), b = c.tensor(1);
  TORCH_CHECK(a.dim() > 0 && b.dim() > 0, "both arguments to matmul need to be at least 1D, but they are ", a.dim(), "D and ",
              b.dim(), "D");
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
    y = at::bmm(whole(a), whole(b)).view(shape);
  }
  if (column) y = y.squeeze(-1);
  if (row) y = y.squeeze(column ? -1 : -2);
  c.give(y);
}

namespace {
// RN(scale a b + added), for autograd one aten operation, of batches that broadcast.
Tensor batched_product(const Tensor& a, const Tensor& b, const Tensor& added, double scale) {
  auto shape = at::infer_size(a.sizes().slice(0, a.dim() - 2), b.sizes().slice(0, b.dim() - 2));
  if (added.defined() && added.dim() > 2) shape = at::infer_size(shape, added.sizes().slice(0, added.dim() - 2));
  const int64_t count = c10::multiply_integers(shape);
  const auto flat = [&](const Tensor& t, int64_t rows, int64_t columns) {
    auto whole = shape;
    whole.push_back(rows);
    whole.push_back(columns);
    return t.expand(whole).reshape({count, rows, columns});
  };
  const Tensor x = flat(a, a.size(-2), a.size(-1)), y = flat(b, b.size(-2), b.size(-1));
  const Tensor c = added.defined() ? flat(added, a.size(-2), b.size(-1)) : at::zeros({1, 1, 1}, a.options());
  shape.push_back(a.size(-2));
  shape.push_back(b.size(-1));
  return at::baddbmm(c, x, y, added.defined() ? 1 : 0, scale).view(shape);
}
}  // namespace

// query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa: exact products and an exact softmax, each rounded once.
void attention(call& c) {
  Tensor q = c.tensor(0), k = c.tensor(1), v = c.tensor(2), mask = c.tensor(3);
  const double dropout = c.real(4);
  const bool causal = c.boolean(5);
  TORCH_CHECK(q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2, "scaled_dot_product_attention: expected at least 2 dimensions, got ",
              q.dim(), ", ", k.dim(), " and ", v.dim());
  TORCH_CHECK(!causal || !mask.defined(), "scaled_dot_product_attention: explicit attn_mask should not be set when is_causal=True");
  const double scale = c.has(6) ? c.real(6) : 1 / std::sqrt(static_cast<double>(q.size(-1)));
  if (c.boolean(7)) {  // grouped: each head of k and v serves several of q
    TORCH_CHECK(q.dim() >= 3 && q.size(-3) % k.size(-3) == 0 && q.size(-3) % v.size(-3) == 0,
                "scaled_dot_product_attention: the number of heads of key and value must divide that of query");
    k = k.repeat_interleave(q.size(-3) / k.size(-3), -3);
    v = v.repeat_interleave(q.size(-3) / v.size(-3), -3);
  }
  if (causal) mask = at::ones({q.size(-2), k.size(-2)}, q.options().dtype(at::kBool)).tril();
  if (mask.defined() && mask.scalar_type() == at::kBool) {
    mask = at::zeros({}, q.options()).masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity());
  }
  // Scores in one rounding: scale q k + mask.
  const Tensor scores = batched_product(q, k.transpose(-2, -1), mask, scale);
  Tensor weights = mask.defined() ? at::_safe_softmax(scores, -1) : at::softmax(scores, -1);
  if (dropout > 0) weights = at::dropout(weights, dropout, true);
  c.give(at::matmul(weights, v));
}

namespace {

std::array<int64_t, 2> two(const std::vector<int64_t>& v) {
  TORCH_CHECK(v.size() == 1 || v.size() == 2, "expected one or two integers, got ", v.size());
  return {v[0], v.back()};
}

// A convolution's geometry, of an image of one or two dimensions; one dimension is a picture of one row.
struct geometry {
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups;
  bool line;  // one dimension

  geometry(call& c, const Tensor& x, const Tensor& w, int at, bool transposed, int64_t groups_) : groups(groups_) {
    if (transposed) c.refuse("transposed");
    line = x.dim() == 3;
    if (x.dim() != 4 && !line) c.refuse("of " + std::to_string(x.dim() - 2) + " dimensions");
    TORCH_CHECK(w.dim() == x.dim(), "Expected ", x.dim(), "D weight, but got weight of size ", w.sizes());
    const size_t n = static_cast<size_t>(x.dim()) - 2;
    for (auto* list : {&stride, &padding, &dilation}) {
      *list = c.integers(at++);
      TORCH_CHECK(list->size() == 1 || list->size() == n, "expected ", n, " integers for each of stride, padding and dilation");
      list->resize(n, list->front());
      if (line) list->insert(list->begin(), list == &padding ? 0 : 1);
    }
    for (const int64_t v : stride) TORCH_CHECK(v > 0, "non-positive stride is not supported");
    for (const int64_t v : dilation) TORCH_CHECK(v > 0, "dilation should be greater than zero");
    for (const int64_t v : padding) TORCH_CHECK(v >= 0, "negative padding is not supported");
    TORCH_CHECK(groups > 0 && x.size(1) == w.size(1) * groups, "Given groups=", groups, ", weight of size ", w.sizes(),
                ", expected input", x.sizes(), " to have ", w.size(1) * groups, " channels, but got ", x.size(1), " channels instead");
    TORCH_CHECK(w.size(0) % groups == 0, "Given groups=", groups, ", expected weight to be divisible by groups at dimension 0, but got ",
                w.sizes());
  }
  int64_t size(const Tensor& x, const Tensor& w, int axis) const {  // axis 0 or 1 of a picture
    const int64_t length = line && axis == 0 ? 1 : x.size(2 + axis - (line ? 1 : 0)), taps = line && axis == 0 ? 1 : w.size(2 + axis - (line ? 1 : 0));
    const int64_t span = length + 2 * padding[axis] - dilation[axis] * (taps - 1) - 1;
    TORCH_CHECK(span >= 0, "Calculated padded input size per channel: (", length + 2 * padding[axis], "). Kernel size: (",
                dilation[axis] * (taps - 1) + 1, "). Kernel size can't be greater than actual input size");
    return span / stride[axis] + 1;
  }
  Tensor picture(const Tensor& t) const { return line && t.defined() ? t.unsqueeze(2) : t; }
  attribute attr_stride() const { return {"stride", at::IntArrayRef(stride)}; }
  attribute attr_padding() const { return {"padding", at::IntArrayRef(padding)}; }
  attribute attr_dilation() const { return {"dilation", at::IntArrayRef(dilation)}; }
};

// The memory format of a convolution's result follows either operand.
at::MemoryFormat format_of(const Tensor& x, const Tensor& w) {
  if (x.dim() != 4) return at::MemoryFormat::Contiguous;
  const auto last = at::MemoryFormat::ChannelsLast;
  return x.suggest_memory_format() == last || w.suggest_memory_format() == last ? last : at::MemoryFormat::Contiguous;
}

}  // namespace

// input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
void convolution(call& c) {
  static const operation op("conv2d");
  const Tensor &x = c.tensor(0), &w = c.tensor(1), &b = c.tensor(2);
  const geometry g(c, x, w, 3, c.boolean(6), c.integer(8));
  TORCH_CHECK(x.scalar_type() == w.scalar_type(), "Input type (", x.scalar_type(), ") and weight type (", w.scalar_type(),
              ") should be the same");
  TORCH_CHECK(!b.defined() || (b.dim() == 1 && b.size(0) == w.size(0)), "expected bias to be 1-dimensional with ", w.size(0),
              " elements, but got bias of size ", b.sizes());
  std::vector<int64_t> shape{x.size(0), w.size(0)};
  if (!g.line) shape.push_back(g.size(x, w, 0));
  shape.push_back(g.size(x, w, 1));
  Tensor out = fresh(shape, x.scalar_type(), x.device(), format_of(x, w));
  const Tensor px = g.picture(x), pw = g.picture(w), po = g.picture(out);
  op({px, pw, b}, {&po}, {g.attr_stride(), g.attr_padding(), g.attr_dilation(), {"groups", g.groups}});
  c.give(out);
}

// grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
void convolution_backward(call& c) {
  static const operation to_x("conv2d_grad_input"), to_w("conv2d_grad_weight");
  const Tensor &g = c.tensor(0), &x = c.tensor(1), &w = c.tensor(2);
  const geometry s(c, x, w, 4, c.boolean(7), c.integer(9));
  const auto mask = c.value(10).toBoolList();
  const Tensor pg = s.picture(g), px = s.picture(x), pw = s.picture(w);
  Tensor gx, gw, gb;
  if (mask[0]) {
    gx = at::empty(x.sizes(), x.options(), format_of(x, w));
    const Tensor p = s.picture(gx);
    const std::vector<int64_t> size{px.size(2), px.size(3)};
    to_x({pg, pw}, {&p}, {s.attr_stride(), s.attr_padding(), s.attr_dilation(), {"groups", s.groups}, {"size", at::IntArrayRef(size)}});
  }
  if (mask[1]) {
    gw = at::empty(w.sizes(), w.options(), format_of(x, w));
    const Tensor p = s.picture(gw);
    const std::vector<int64_t> kernel{pw.size(2), pw.size(3)};
    to_w({pg, px}, {&p}, {s.attr_stride(), s.attr_padding(), s.attr_dilation(), {"groups", s.groups}, {"kernel", at::IntArrayRef(kernel)}});
  }
  if (mask[2]) gb = sum_over_all_but(g, 1);
  c.give(gx);
  c.give(gw);
  c.give(gb);
}

namespace {

// Windows of kernel_size, stride, padding and, of maxima, dilation.
struct windows {
  std::array<int64_t, 2> kernel, stride, padding, dilation{1, 1};
  bool ceil_mode;

  windows(call& c, int at, bool dilated, int ceil) {
    kernel = two(c.integers(at));
    const auto s = c.integers(at + 1);
    stride = s.empty() ? kernel : two(s);
    padding = two(c.integers(at + 2));
    if (dilated) dilation = two(c.integers(at + 3));
    ceil_mode = c.boolean(ceil);
    for (int i = 0; i < 2; ++i) {
      TORCH_CHECK(kernel[i] > 0, "kernel size should be greater than zero, but got ", kernel[i]);
      TORCH_CHECK(stride[i] > 0, "stride should not be zero");
      TORCH_CHECK(dilation[i] > 0, "dilation should be greater than zero, but got ", dilation[i]);
      TORCH_CHECK(padding[i] >= 0 && padding[i] <= ((kernel[i] - 1) * dilation[i] + 1) / 2,
                  "pad should be at most half of effective kernel size, but got pad=", padding[i], ", kernel_size=", kernel[i]);
    }
  }
  int64_t size(int64_t length, int i) const {
    const int64_t span = length + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1 + (ceil_mode ? stride[i] - 1 : 0);
    int64_t n = (span < 0 ? -1 : span / stride[i]) + 1;
    if (ceil_mode && (n - 1) * stride[i] >= length + padding[i]) --n;
    TORCH_CHECK(n > 0, "Given input size: ", length, ", the output size would be ", n, ": too small");
    return n;
  }
  std::vector<int64_t> shape(const Tensor& x) const {
    auto s = x.sizes().vec();
    s[s.size() - 2] = size(x.size(-2), 0);
    s[s.size() - 1] = size(x.size(-1), 1);
    return s;
  }
};
void check_image(const Tensor& x) {
  TORCH_CHECK((x.dim() == 3 || x.dim() == 4) && x.size(-1) != 0 && x.size(-2) != 0 && x.size(-3) != 0,
              "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got: ", x.sizes());
}
Tensor batched(const Tensor& t) { return t.dim() == 3 ? t.unsqueeze(0) : t; }
Tensor image(const std::vector<int64_t>& shape, const Tensor& like, at::ScalarType type) {
  const auto format = shape.size() == 4 ? like.suggest_memory_format() : at::MemoryFormat::Contiguous;
  return fresh(shape, type, like.device(), format);
}

}  // namespace

// self, kernel_size, stride, padding, dilation, ceil_mode
void max_pool2d_with_indices(call& c) {
  static const operation op("max_pool2d_with_indices");
  const Tensor& x = c.tensor(0);
  check_image(x);
  const windows w(c, 1, true, 5);
  Tensor out = image(w.shape(x), x, x.scalar_type()), index = image(w.shape(x), x, at::kLong);
  const Tensor px = batched(x), po = batched(out), pi = batched(index);
  op({px}, {&po, &pi}, {{"kernel", at::IntArrayRef(w.kernel)}, {"stride", at::IntArrayRef(w.stride)},
                        {"padding", at::IntArrayRef(w.padding)}, {"dilation", at::IntArrayRef(w.dilation)}, {"ceil_mode", w.ceil_mode}});
  c.give(out);
  c.give(index);
}
// grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices
void max_pool2d_with_indices_backward(call& c) {
  static const operation op("max_pool2d_backward");
  const Tensor &g = c.tensor(0), &x = c.tensor(1);
  const windows w(c, 2, true, 6);
  Tensor out = image(x.sizes().vec(), x, x.scalar_type());
  const Tensor pg = batched(g), px = batched(x), po = batched(out);
  op({pg, px}, {&po}, {{"kernel", at::IntArrayRef(w.kernel)}, {"stride", at::IntArrayRef(w.stride)},
                       {"padding", at::IntArrayRef(w.padding)}, {"dilation", at::IntArrayRef(w.dilation)}, {"ceil_mode", w.ceil_mode}});
  c.give(out);
}
namespace {
int64_t divisor(const call& c, int i) {
  TORCH_CHECK(!c.has(i) || c.integer(i) != 0, "divisor must be not zero");
  return c.has(i) ? c.integer(i) : 0;
}
}  // namespace
// self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
void avg_pool2d(call& c) {
  static const operation op("avg_pool2d");
  const Tensor& x = c.tensor(0);
  check_image(x);
  const windows w(c, 1, false, 4);
  Tensor out = image(w.shape(x), x, x.scalar_type());
  const Tensor px = batched(x), po = batched(out);
  op({px}, {&po}, {{"kernel", at::IntArrayRef(w.kernel)}, {"stride", at::IntArrayRef(w.stride)},
                   {"padding", at::IntArrayRef(w.padding)}, {"ceil_mode", w.ceil_mode}, {"count_include_pad", c.boolean(5)},
                   {"divisor_override", divisor(c, 6)}});
  c.give(out);
}
// grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
void avg_pool2d_backward(call& c) {
  static const operation op("avg_pool2d_backward");
  const Tensor &g = c.tensor(0), &x = c.tensor(1);
  const windows w(c, 2, false, 5);
  Tensor out = image(x.sizes().vec(), x, x.scalar_type());
  const Tensor pg = batched(g), po = batched(out);
  const std::vector<int64_t> size{x.size(-2), x.size(-1)};
  op({pg}, {&po}, {{"kernel", at::IntArrayRef(w.kernel)}, {"stride", at::IntArrayRef(w.stride)},
                   {"padding", at::IntArrayRef(w.padding)}, {"ceil_mode", w.ceil_mode}, {"count_include_pad", c.boolean(6)},
                   {"divisor_override", divisor(c, 7)}, {"size", at::IntArrayRef(size)}});
  c.give(out);
}

// self, output_size
void adaptive_avg_pool2d(call& c) {
  static const operation op("adaptive_avg_pool2d");
  const Tensor& x = c.tensor(0);
  check_image(x);
  const auto size = c.integers(1);
  TORCH_CHECK(size.size() == 2 && size[0] >= 0 && size[1] >= 0, "adaptive_avg_pool2d: expected output_size of two integers >= 0");
  auto shape = x.sizes().vec();
  std::copy(size.begin(), size.end(), shape.end() - 2);
  Tensor out = image(shape, x, x.scalar_type());
  const Tensor px = batched(x), po = batched(out);
  if (out.numel() > 0) op({px}, {&po}, {{"size", at::IntArrayRef(size)}});
  c.give(out);
}
// grad_output, self
void adaptive_avg_pool2d_backward(call& c) {
  static const operation op("adaptive_avg_pool2d_backward");
  const Tensor &g = c.tensor(0), &x = c.tensor(1);
  Tensor out = image(x.sizes().vec(), x, x.scalar_type());
  const Tensor pg = batched(g), po = batched(out);
  const std::vector<int64_t> size{x.size(-2), x.size(-1)};
  op({pg}, {&po}, {{"size", at::IntArrayRef(size)}});
  c.give(out);
}
void adaptive_max_pool2d(call& c) {
  static const operation op("adaptive_max_pool2d_with_indices");
  const Tensor& x = c.tensor(0);
  check_image(x);
  const auto size = c.integers(1);
  TORCH_CHECK(size.size() == 2 && size[0] >= 0 && size[1] >= 0, "adaptive_max_pool2d: expected output_size of two integers >= 0");
  auto shape = x.sizes().vec();
  std::copy(size.begin(), size.end(), shape.end() - 2);
  Tensor out = image(shape, x, x.scalar_type()), index = image(shape, x, at::kLong);
  const Tensor px = batched(x), po = batched(out), pi = batched(index);
  if (out.numel() > 0) op({px}, {&po, &pi}, {{"size", at::IntArrayRef(size)}});
  c.give(out);
  c.give(index);
}
// grad_output, self, indices
void adaptive_max_pool2d_backward(call& c) {
  static const operation op("adaptive_max_pool2d_backward");
  const Tensor &g = c.tensor(0), &x = c.tensor(1);
  Tensor out = image(x.sizes().vec(), x, x.scalar_type());
  const Tensor pg = batched(g), px = batched(x), po = batched(out);
  op({pg, px}, {&po});
  c.give(out);
}
// As max_pool2d of a picture of one row; aten has a kernel of its own that is used without gradients on the CPU.
// self, kernel_size, stride, padding, dilation, ceil_mode
void max_pool1d(call& c) {
  const Tensor& x = c.tensor(0);
  const auto row = [](const std::vector<int64_t>& v, int64_t first) {
    return v.empty() ? v : std::vector<int64_t>{first, v.at(0)};
  };
  TORCH_CHECK(x.dim() == 2 || x.dim() == 3, "max_pool1d() Expected 2D or 3D input tensor, but got ", x.sizes());
  c.give(at::max_pool2d(x.unsqueeze(-2), row(c.integers(1), 1), row(c.integers(2), 1), row(c.integers(3), 0), row(c.integers(4), 1),
                        c.boolean(5)).squeeze(-2));
}

// ---- interpolation: the pixel that an exact ratio names ----
namespace {
double scale_of(const call& c, int i) { return c.has(i) ? c.real(i) : 0; }
// Of pictures, or of lines as pictures of one row. `sizes` of the result; `scale`: the place of the first scale argument.
struct resized {
  bool line, exact;
  int64_t height, width;
  double scale_h, scale_w;
  resized(const call& c, bool exact_, bool line_, const std::vector<int64_t>& size, int scale) : line(line_), exact(exact_) {
    TORCH_CHECK(size.size() == (line ? 1 : 2), "It is expected output_size equals to ", line ? 1 : 2, ", but got size ", size.size());
    height = line ? 1 : size[0];
    width = size.back();
    TORCH_CHECK(height > 0 && width > 0, "Input and output sizes should be greater than 0, but got output size ", size);
    scale_h = line ? 0 : scale_of(c, scale);
    scale_w = scale_of(c, line ? scale : scale + 1);
  }
  std::vector<int64_t> shape(const Tensor& x) const {
    return line ? std::vector<int64_t>{x.size(0), x.size(1), width} : std::vector<int64_t>{x.size(0), x.size(1), height, width};
  }
  Tensor picture(const Tensor& t) const { return line ? t.unsqueeze(2) : t; }
};
void upsample(call& c, bool exact, bool line) {
  static const operation op("upsample_nearest2d");
  const Tensor& x = c.tensor(0);
  TORCH_CHECK(x.dim() == (line ? 3 : 4) && x.size(1) > 0 && x.size(-1) > 0 && x.size(-2) > 0, "Non-empty ", line ? 3 : 4,
              "D data tensor expected but got a tensor with sizes ", x.sizes());
  const resized r(c, exact, line, c.integers(1), 2);
  Tensor out = image(r.shape(x), x, x.scalar_type());
  const Tensor from = r.picture(x), to = r.picture(out);
  const int64_t size[] = {r.height, r.width};
  op({from}, {&to}, {{"size", at::IntArrayRef(size)}, {"scale_h", r.scale_h}, {"scale_w", r.scale_w}, {"exact", exact}});
  c.give(out);
}
// grad_output, output_size, input_size, scales
void upsample_backward(call& c, bool exact, bool line) {
  static const operation op("upsample_nearest2d_backward");
  const Tensor& g = c.tensor(0);
  const resized r(c, exact, line, c.integers(1), 3);
  const auto shape = c.integers(2);
  TORCH_CHECK(shape.size() == (line ? 3 : 4) && g.sizes().equals(r.shape(at::empty(shape, at::TensorOptions().device(at::kMeta)))),
              "Expected grad_output to have the shape of the result, got ", g.sizes());
  Tensor out = image(shape, g, g.scalar_type());
  const Tensor from = r.picture(g), to = r.picture(out);
  const int64_t size[] = {to.size(2), to.size(3)};
  op({from}, {&to}, {{"size", at::IntArrayRef(size)}, {"scale_h", r.scale_h}, {"scale_w", r.scale_w}, {"exact", exact}});
  c.give(out);
}
}  // namespace
void upsample_nearest2d(call& c) { upsample(c, false, false); }
void upsample_nearest1d(call& c) { upsample(c, false, true); }
void upsample_nearest_exact2d(call& c) { upsample(c, true, false); }
void upsample_nearest_exact1d(call& c) { upsample(c, true, true); }
void upsample_nearest2d_backward(call& c) { upsample_backward(c, false, false); }
void upsample_nearest1d_backward(call& c) { upsample_backward(c, false, true); }
void upsample_nearest_exact2d_backward(call& c) { upsample_backward(c, true, false); }
void upsample_nearest_exact1d_backward(call& c) { upsample_backward(c, true, true); }

// ---- losses ----
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
struct promoted {
  Tensor x, t;
  promoted(call& c, int i) : x(c.tensor(i)), t(c.tensor(i + 1)) {
    const at::ScalarType type = at::promote_types(x.scalar_type(), t.scalar_type());
    if (!(type_bit(type) & NARROW)) c.refuse("");
    x = converted(x, type);
    t = converted(t, type);
  }
};
void loss(call& c, const operation& op, const char* option) {
  const promoted p(c, 0);
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
  const promoted p(c, 1);
  const Tensor g = converted(c.tensor(0), p.x.scalar_type());
  Tensor out = loss_result(p.x, p.t, 0);
  if (option == nullptr) {
    op({g, p.x, p.t}, {&out}, {{"reduction", reduction_of(c.integer(3))}});
  } else {
    op({g, p.x, p.t}, {&out}, {{"reduction", reduction_of(c.integer(3))}, {option, c.real(4)}});
  }
  c.give(out);
}
}  // namespace
#define REPDL_LOSS(name, option)                       \
  void name(call& c) {                                 \
    static const operation op(#name);                  \
    loss(c, op, option);                               \
  }                                                    \
  void name##_backward(call& c) {                      \
    static const operation op(#name "_backward");      \
    loss_backward(c, op, option);                      \
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
  TORCH_CHECK(x.sizes() == t.sizes(), "Using a target size (", t.sizes(), ") that is different to the input size (", x.sizes(),
              ") is deprecated. Please ensure they have the same size.");
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
  Tensor out = loss_result(x, t, c.integer(4));
  op({x, t, c.tensor(2), c.tensor(3)}, {&out}, {{"reduction", reduction_of(c.integer(4))}});
  c.give(out);
}

namespace {
const Tensor& classes_weight(call& c, const Tensor& x, int i) {
  const Tensor& w = c.tensor(i);
  if (w.defined() && w.scalar_type() != x.scalar_type()) c.refuse("with a weight of another type");
  return w;
}
}  // namespace
// self, target, weight, reduction, ignore_index; also of images (nll_loss2d)
void nll_loss_forward(call& c) {
  static const operation op("nll_loss");
  const Tensor &x = c.tensor(0), &t = c.tensor(1);
  TORCH_CHECK(x.dim() > 0, "nll_loss: expected an input of one dimension or more");
  TORCH_CHECK(t.scalar_type() == at::kLong, "expected scalar type Long but found ", t.scalar_type());
  const int64_t reduction = c.integer(3);
  Tensor out = reduction != 0 ? at::empty({}, x.options()) : at::empty(t.sizes(), x.options()), total = at::empty({}, x.options().dtype(at::kFloat));
  op({x, t, classes_weight(c, x, 2)}, {&out, &total}, {{"reduction", reduction_of(reduction)}, {"ignore_index", c.integer(4)}});
  c.give(out);
  if (reduction == 0) total = at::zeros({}, x.options());  // aten's: not used
  c.give(total.scalar_type() == x.scalar_type() ? total : converted(total, x.scalar_type()));
}
// grad_output, self, target, weight, reduction, ignore_index, total_weight
void nll_loss_backward(call& c) {
  static const operation op("nll_loss_backward");
  const Tensor& x = c.tensor(1);
  Tensor out = at::empty_like(x, at::MemoryFormat::Contiguous);
  const Tensor total = converted(c.tensor(6), at::kFloat);
  op({c.tensor(0), x, c.tensor(2), classes_weight(c, x, 3), total}, {&out},
     {{"reduction", reduction_of(c.integer(4))}, {"ignore_index", c.integer(5)}});
  c.give(out);
}

// ---- sums to places ----
namespace {
// The gradient of a copy: the exact sum of g over the places where an element went. `places`: of each element of g the index of
// the one that it was copied from, as a row-major number.
Tensor sum_to_places(const Tensor& g, const Tensor& places, at::IntArrayRef shape) {
  const Tensor sums = at::zeros({c10::multiply_integers(shape)}, g.options());
  return at::index_add(sums, 0, places.reshape({-1}), g.reshape({-1})).view(shape);
}
// Numbers of the elements of a shape, in binary64, which padding takes: exact below 2^53.
Tensor numbers(at::IntArrayRef shape, const Tensor& like) {
  return at::arange(c10::multiply_integers(shape), like.options().dtype(at::kLong)).to(at::kDouble).view(shape);
}
template <class Pad>
void pad_backward(call& c, Pad&& pad) {
  const Tensor &g = c.tensor(0), &x = c.tensor(1);
  const Tensor places = pad(numbers(x.sizes(), x), c.integers(2));
  TORCH_CHECK(places.sizes() == g.sizes(), "expected a gradient of shape ", places.sizes(), ", got ", g.sizes());
  c.give(sum_to_places(g, places.to(at::kLong), x.sizes()));
}
}  // namespace
// grad_output, self, padding
void reflection_pad1d_backward(call& c) { pad_backward(c, [](const Tensor& t, at::IntArrayRef p) { return at::reflection_pad1d(t, p); }); }
void reflection_pad2d_backward(call& c) { pad_backward(c, [](const Tensor& t, at::IntArrayRef p) { return at::reflection_pad2d(t, p); }); }
void reflection_pad3d_backward(call& c) { pad_backward(c, [](const Tensor& t, at::IntArrayRef p) { return at::reflection_pad3d(t, p); }); }
void replication_pad1d_backward(call& c) { pad_backward(c, [](const Tensor& t, at::IntArrayRef p) { return at::replication_pad1d(t, p); }); }
void replication_pad2d_backward(call& c) { pad_backward(c, [](const Tensor& t, at::IntArrayRef p) { return at::replication_pad2d(t, p); }); }
void replication_pad3d_backward(call& c) { pad_backward(c, [](const Tensor& t, at::IntArrayRef p) { return at::replication_pad3d(t, p); }); }
// grad_in, input_sizes, dim, size, step
void unfold_backward(call& c) {
  const Tensor& g = c.tensor(0);
  const auto shape = c.integers(1);
  const Tensor all = at::arange(c10::multiply_integers(shape), g.options().dtype(at::kLong)).view(shape);
  c.give(sum_to_places(g, all.unfold(c.integer(2), c.integer(3), c.integer(4)), shape));
}
// self, output_size, kernel_size, dilation, padding, stride: windows that overlap are added
void col2im(call& c) {
  const Tensor& x = c.tensor(0);
  const auto size = c.integers(1), kernel = c.integers(2);
  TORCH_CHECK(size.size() == 2 && kernel.size() == 2 && (x.dim() == 2 || x.dim() == 3), "col2im: expected an input of 2 or 3 dimensions, got ",
              x.dim());
  const int64_t pixels = size[0] * size[1], taps = kernel[0] * kernel[1], columns = x.size(-1), n = x.dim() == 3 ? x.size(0) : 1;
  TORCH_CHECK(taps > 0 && x.size(-2) % taps == 0, "Expected size of input's dimension 1 to be divisible by the product of kernel_size, got ",
              x.size(-2), " and kernel_size=", kernel);
  const int64_t channels = x.size(-2) / taps;
  // Of each tap its pixel, from 1; 0 is the padding.
  const Tensor places = at::im2col(numbers({1, 1, size[0], size[1]}, x).add(1), kernel, c.integers(3), c.integers(4), c.integers(5));
  TORCH_CHECK(places.size(-1) == columns, "Given output_size=", size, ", expected size of input's dimension 2 to match the calculated number of sliding blocks ",
              places.size(-1), ", but got ", columns);
  const Tensor sums = at::zeros({n * channels, pixels + 1}, x.options());
  const Tensor out = at::index_add(sums, 1, places.to(at::kLong).reshape({-1}), x.reshape({n * channels, taps * columns}))
                         .narrow(1, 1, pixels).contiguous();
  c.give(x.dim() == 3 ? out.view({n, channels, size[0], size[1]}) : out.view({channels, size[0], size[1]}));
}
// grad_output, indices, num_weights, padding_idx, scale_grad_by_freq
void embedding_dense_backward(call& c) {
  static const operation op("embedding_backward");
  const Tensor& g = c.tensor(0);
  const Tensor index = c.tensor(1).to(at::kLong);
  const int64_t rows = c.integer(2), padding = c.integer(3);
  Tensor out = at::empty({rows, g.size(-1)}, g.options());
  if (padding >= 0) {
    op({g, index}, {&out}, {{"rows", rows}, {"padding_idx", padding}, {"scale_grad_by_freq", c.boolean(4)}});
  } else {
    op({g, index}, {&out}, {{"rows", rows}, {"scale_grad_by_freq", c.boolean(4)}});
  }
  c.give(out);
}
// self, dim, index, source, alpha
void index_add(call& c) {
  static const operation op("index_add");
  const Tensor &x = c.tensor(0), &source = c.tensor(3);
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.dim());
  const Tensor index = c.tensor(2).to(at::kLong).reshape({-1});
  TORCH_CHECK(x.scalar_type() == source.scalar_type(), "index_add(): self (", x.scalar_type(), ") and source (", source.scalar_type(),
              ") must have the same scalar type");
  Tensor out = at::empty_like(x, at::MemoryFormat::Contiguous);
  const auto whole = [](const Tensor& t) { return t.dim() == 0 ? t.unsqueeze(0) : t; };
  const Tensor px = whole(x), ps = whole(source), po = whole(out);
  op({px, index, ps}, {&po}, {{"axis", axis}, {"alpha", c.number(4, x.scalar_type())}});
  c.give(out);
}
// self, dim, index, src
void scatter_add(call& c) {
  static const operation op("scatter_add");
  const Tensor &x = c.tensor(0), &source = c.tensor(3);
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.dim());
  TORCH_CHECK(x.scalar_type() == source.scalar_type(), "scatter(): Expected self.dtype to be equal to src.dtype");
  const auto whole = [](const Tensor& t) { return t.dim() == 0 ? t.unsqueeze(0) : t; };
  Tensor out = at::empty_like(x, at::MemoryFormat::Contiguous);
  const Tensor px = whole(x), index = whole(c.tensor(2)).to(at::kLong), po = whole(out);
  Tensor ps = whole(source);
  for (int64_t i = 0; i < index.dim(); ++i) {  // aten's source may be larger than the index
    if (ps.size(i) > index.size(i)) ps = ps.narrow(i, 0, index.size(i));
  }
  if (index.numel() == 0) return c.give(x.clone(at::MemoryFormat::Contiguous));
  op({px, index, ps}, {&po}, {{"axis", axis}});
  c.give(out);
}

}  // namespace repdl_torch::formulas
