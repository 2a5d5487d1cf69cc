// Convolutions.
#include <ATen/ops/empty.h>

#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {

// A convolution's geometry, over one axis to three; one axis is a picture of one row. A transposed one's
// is that of the convolution whose gradient it is: from its result, "large", to its input, "small".
struct geometry {
  std::vector<int64_t> stride, padding, dilation;  // padding: before and behind each axis
  std::vector<int64_t> size;                       // transposed: of the result's part that taps reach,
  std::vector<int64_t> beyond;                     // and how many zeros are behind it
  int64_t groups;
  bool line;     // one axis
  int64_t axes;  // of the picture: 2 or 3

  // stride, padding, dilation, transposed, output_padding, groups are the arguments from `at` on.
  geometry(call& c, const Tensor& x, const Tensor& w, int at) : groups(c.integer(at + 5)) {
    const bool transposed = c.boolean(at + 3);
    line = x.dim() == 3;
    axes = line ? 2 : x.dim() - 2;
    if (axes != 2 && axes != 3) c.refuse("of " + std::to_string(axes) + " dimensions");
    TORCH_CHECK(w.dim() == x.dim(), "Expected ", x.dim(), "D weight, but got weight of size ", w.sizes());
    stride = each(c, at, 1);
    for (const int64_t v : each(c, at + 1, 0)) padding.insert(padding.end(), 2, v);
    dilation = each(c, at + 2, 1);
    const auto more = each(c, at + 4, 0);
    for (const int64_t v : stride) TORCH_CHECK(v > 0, "non-positive stride is not supported");
    for (const int64_t v : dilation) TORCH_CHECK(v > 0, "dilation should be greater than zero");
    for (const int64_t v : padding) TORCH_CHECK(v >= 0, "negative padding is not supported");
    const int64_t channels = transposed ? w.size(0) : w.size(1) * groups;
    TORCH_CHECK(groups > 0 && x.size(1) == channels, "Given groups=", groups, ", weight of size ", w.sizes(),
                ", expected input", x.sizes(), " to have ", channels, " channels, but got ", x.size(1),
                " channels instead");
    TORCH_CHECK(w.size(0) % groups == 0, "Given groups=", groups,
                ", expected weight to be divisible by groups at dimension 0, but got ", w.sizes());
    for (int64_t axis = 0; transposed && axis < axes; ++axis) {
      TORCH_CHECK(more[axis] >= 0, "negative output_padding is not supported");
      TORCH_CHECK(more[axis] < std::max(stride[axis], dilation[axis]),
                  "output padding must be smaller than either stride or dilation, but got output_padding ", more[axis]);
      // output_padding is less padding at the end, and zeros where there is none.
      int64_t& end = padding[2 * axis + 1];
      beyond.push_back(std::max<int64_t>(more[axis] - end, 0));
      end = std::max<int64_t>(end - more[axis], 0);
      size.push_back((length(x, axis) - 1) * stride[axis] + dilation[axis] * (length(w, axis) - 1) + 1 -
                     padding[2 * axis] - end);
      TORCH_CHECK(size.back() + beyond.back() > 0, "Given input size per channel: ", x.sizes().slice(2),
                  ". Calculated output size per channel: ", size.back() + beyond.back(), ". Output size is too small");
      if (size.back() <= 0) c.refuse("whose result no tap reaches");
    }
  }
  // An axis of a picture.
  int64_t length(const Tensor& t, int64_t axis) const { return line ? (axis == 0 ? 1 : t.size(2)) : t.size(2 + axis); }
  // The shape of the result of x, or, transposed, of what x is the result of.
  std::vector<int64_t> small_shape(const Tensor& x, const Tensor& w) const {
    return shape(x.size(0), w.size(0), [&](int64_t axis) {
      const int64_t padded = length(x, axis) + padding[2 * axis] + padding[2 * axis + 1],
                    span = dilation[axis] * (length(w, axis) - 1) + 1;
      TORCH_CHECK(padded >= span, "Calculated padded input size per channel: (", padded, "). Kernel size: (", span,
                  "). Kernel size can't be greater than actual input size");
      return (padded - span) / stride[axis] + 1;
    });
  }
  std::vector<int64_t> large_shape(const Tensor& x, const Tensor& w) const {
    return shape(x.size(0), w.size(1) * groups, [&](int64_t axis) { return size[axis] + beyond[axis]; });
  }
  bool has_zeros() const {
    return std::any_of(beyond.begin(), beyond.end(), [](int64_t n) { return n > 0; });
  }
  Tensor picture(const Tensor& t) const { return line && t.defined() ? t.unsqueeze(2) : t; }
  // Of a transposed convolution's result, as a picture: without the zeros.
  Tensor reached(Tensor picture) const {
    for (int64_t axis = 0; axis < axes; ++axis) picture = picture.narrow(2 + axis, 0, size[axis]);
    return picture;
  }

  // The three sums; pictures.
  void forward(const Tensor& large, const Tensor& w, const Tensor& bias, const Tensor& small) const {
    static const operation of_two("conv2d"), of_three("conv3d");
    (axes == 2 ? of_two : of_three)({large, w, bias}, {&small},
                                    {attr_stride(), attr_padding(), attr_dilation(), {"groups", groups}});
  }
  void to_large(const Tensor& small, const Tensor& w, const Tensor& large) const {
    static const operation of_two("conv2d_grad_input"), of_three("conv3d_grad_input");
    (axes == 2 ? of_two : of_three)(
        {small, w}, {&large},
        {attr_stride(), attr_padding(), attr_dilation(), {"groups", groups}, {"size", large.sizes().slice(2)}});
  }
  void to_weight(const Tensor& small, const Tensor& large, const Tensor& w) const {
    static const operation of_two("conv2d_grad_weight"), of_three("conv3d_grad_weight");
    (axes == 2 ? of_two : of_three)(
        {small, large}, {&w},
        {attr_stride(), attr_padding(), attr_dilation(), {"groups", groups}, {"kernel", w.sizes().slice(2)}});
  }

 private:
  template <class Length>
  std::vector<int64_t> shape(int64_t samples, int64_t channels, const Length& of_axis) const {
    std::vector<int64_t> s{samples, channels};
    for (int64_t axis = line ? 1 : 0; axis < axes; ++axis) s.push_back(of_axis(axis));
    return s;
  }
  std::vector<int64_t> each(const call& c, int i, int64_t of_no_rows) const {
    auto list = c.integers(i);
    const size_t n = line ? 1 : static_cast<size_t>(axes);
    TORCH_CHECK(list.size() == 1 || list.size() == n, "expected ", n,
                " integers for each of stride, padding and dilation");
    list.resize(n, list.front());
    if (line) list.insert(list.begin(), of_no_rows);
    return list;
  }
  attribute attr_stride() const { return {"stride", at::IntArrayRef(stride)}; }
  attribute attr_padding() const { return {"padding", at::IntArrayRef(padding)}; }
  attribute attr_dilation() const { return {"dilation", at::IntArrayRef(dilation)}; }
};

// The memory format of a convolution's result follows either operand.
at::MemoryFormat format_of(const Tensor& x, const Tensor& w) {
  if (x.dim() != 4 && x.dim() != 5) return at::MemoryFormat::Contiguous;
  const auto last = x.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
  return x.suggest_memory_format() == last || w.suggest_memory_format() == last ? last : at::MemoryFormat::Contiguous;
}

}  // namespace

// input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
void convolution(call& c) {
  const Tensor &x = c.tensor(0), &w = c.tensor(1), &b = c.tensor(2);
  const geometry g(c, x, w, 3);
  const bool transposed = c.boolean(6);
  const int64_t channels = transposed ? w.size(1) * g.groups : w.size(0);
  TORCH_CHECK(x.scalar_type() == w.scalar_type(), "Input type (", x.scalar_type(), ") and weight type (",
              w.scalar_type(), ") should be the same");
  TORCH_CHECK(!b.defined() || (b.dim() == 1 && b.size(0) == channels), "expected bias to be 1-dimensional with ",
              channels, " elements, but got bias of size ", b.sizes());
  const Tensor px = g.picture(x), pw = g.picture(w);
  if (!transposed) {
    Tensor out = fresh(g.small_shape(x, w), x.scalar_type(), x.device(), format_of(x, w));
    g.forward(px, pw, b, g.picture(out));
    return c.give(out);
  }
  Tensor out = fresh(g.large_shape(x, w), x.scalar_type(), x.device(), format_of(x, w));
  if (g.has_zeros()) out.zero_();
  g.to_large(px, pw, g.reached(g.picture(out)));
  if (!b.defined()) return c.give(out);
  // The bias is a second rounding: what reaches an element need not be a sum of products that one more could join.
  static const operation add("add");
  std::vector<int64_t> of_channels(static_cast<size_t>(x.dim()) - 1, 1);
  of_channels[0] = channels;
  const Tensor spread = b.view(of_channels).expand(out.sizes());
  add({out, spread}, {&out});
  c.give(out);
}

// grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
void convolution_backward(call& c) {
  const Tensor &g = c.tensor(0), &x = c.tensor(1), &w = c.tensor(2);
  const geometry s(c, x, w, 4);
  const bool transposed = c.boolean(7);
  const auto mask = c.value(10).toBoolList();
  const Tensor px = s.picture(x), pw = s.picture(w);
  const Tensor pg = transposed ? s.reached(s.picture(g)) : s.picture(g);
  Tensor gx, gw, gb;
  if (mask[0]) {
    gx = at::empty(x.sizes(), x.options(), format_of(x, w));
    transposed ? s.forward(pg, pw, {}, s.picture(gx)) : s.to_large(pg, pw, s.picture(gx));
  }
  if (mask[1]) {
    gw = at::empty(w.sizes(), w.options(), format_of(x, w));
    transposed ? s.to_weight(px, pg, s.picture(gw)) : s.to_weight(pg, px, s.picture(gw));
  }
  if (mask[2]) gb = sum_over_all_but(g, 1);
  c.give(gx);
  c.give(gw);
  c.give(gb);
}

}  // namespace repdl_torch::formulas
