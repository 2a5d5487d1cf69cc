// Convolutions.
#include <ATen/ops/empty.h>

#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {

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
      TORCH_CHECK(list->size() == 1 || list->size() == n, "expected ", n,
                  " integers for each of stride, padding and dilation");
      list->resize(n, list->front());
      if (line) list->insert(list->begin(), list == &padding ? 0 : 1);
    }
    for (const int64_t v : stride) TORCH_CHECK(v > 0, "non-positive stride is not supported");
    for (const int64_t v : dilation) TORCH_CHECK(v > 0, "dilation should be greater than zero");
    for (const int64_t v : padding) TORCH_CHECK(v >= 0, "negative padding is not supported");
    TORCH_CHECK(groups > 0 && x.size(1) == w.size(1) * groups, "Given groups=", groups, ", weight of size ", w.sizes(),
                ", expected input", x.sizes(), " to have ", w.size(1) * groups, " channels, but got ", x.size(1),
                " channels instead");
    TORCH_CHECK(w.size(0) % groups == 0, "Given groups=", groups,
                ", expected weight to be divisible by groups at dimension 0, but got ", w.sizes());
  }
  int64_t size(const Tensor& x, const Tensor& w, int axis) const {  // axis 0 or 1 of a picture
    const int64_t length = line && axis == 0 ? 1 : x.size(2 + axis - (line ? 1 : 0)),
                  taps = line && axis == 0 ? 1 : w.size(2 + axis - (line ? 1 : 0));
    const int64_t span = length + 2 * padding[axis] - dilation[axis] * (taps - 1) - 1;
    TORCH_CHECK(span >= 0, "Calculated padded input size per channel: (", length + 2 * padding[axis],
                "). Kernel size: (", dilation[axis] * (taps - 1) + 1,
                "). Kernel size can't be greater than actual input size");
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
  TORCH_CHECK(x.scalar_type() == w.scalar_type(), "Input type (", x.scalar_type(), ") and weight type (",
              w.scalar_type(), ") should be the same");
  TORCH_CHECK(!b.defined() || (b.dim() == 1 && b.size(0) == w.size(0)), "expected bias to be 1-dimensional with ",
              w.size(0), " elements, but got bias of size ", b.sizes());
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
    to_x({pg, pw}, {&p},
         {s.attr_stride(), s.attr_padding(), s.attr_dilation(), {"groups", s.groups}, {"size", at::IntArrayRef(size)}});
  }
  if (mask[1]) {
    gw = at::empty(w.sizes(), w.options(), format_of(x, w));
    const Tensor p = s.picture(gw);
    const std::vector<int64_t> kernel{pw.size(2), pw.size(3)};
    to_w({pg, px}, {&p},
         {s.attr_stride(),
          s.attr_padding(),
          s.attr_dilation(),
          {"groups", s.groups},
          {"kernel", at::IntArrayRef(kernel)}});
  }
  if (mask[2]) gb = sum_over_all_but(g, 1);
  c.give(gx);
  c.give(gw);
  c.give(gb);
}

}  // namespace repdl_torch::formulas
