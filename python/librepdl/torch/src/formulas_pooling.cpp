// Pooling and interpolation.
#include <ATen/ops/_upsample_nearest_exact2d.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/zeros.h>

#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {

// Windows of kernel_size, stride, padding and, of maxima, dilation; of two axes or three.
struct windows {
  std::vector<int64_t> kernel, stride, padding, dilation;
  bool ceil_mode;

  windows(call& c, int64_t axes, int at, bool dilated, int ceil) : dilation(axes, 1) {
    const auto each = [&](int i) {
      auto v = c.integers(i);
      TORCH_CHECK(v.size() == 1 || static_cast<int64_t>(v.size()) == axes, "expected one integer or ", axes, ", got ",
                  v.size());
      v.resize(axes, v[0]);
      return v;
    };
    kernel = each(at);
    stride = c.integers(at + 1).empty() ? kernel : each(at + 1);
    padding = each(at + 2);
    if (dilated) dilation = each(at + 3);
    ceil_mode = c.boolean(ceil);
    for (int64_t i = 0; i < axes; ++i) {
      TORCH_CHECK(kernel[i] > 0, "kernel size should be greater than zero, but got ", kernel[i]);
      TORCH_CHECK(stride[i] > 0, "stride should not be zero");
      TORCH_CHECK(dilation[i] > 0, "dilation should be greater than zero, but got ", dilation[i]);
      TORCH_CHECK(padding[i] >= 0 && padding[i] <= ((kernel[i] - 1) * dilation[i] + 1) / 2,
                  "pad should be at most half of effective kernel size, but got pad=", padding[i],
                  ", kernel_size=", kernel[i]);
    }
  }
  int64_t size(int64_t length, int64_t i) const {
    const int64_t span = length + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1 + (ceil_mode ? stride[i] - 1 : 0);
    int64_t n = (span < 0 ? -1 : span / stride[i]) + 1;
    if (ceil_mode && (n - 1) * stride[i] >= length + padding[i]) --n;
    TORCH_CHECK(n > 0, "Given input size: ", length, ", the output size would be ", n, ": too small");
    return n;
  }
  std::vector<int64_t> shape(const Tensor& x) const {
    auto s = x.sizes().vec();
    const auto axes = static_cast<int64_t>(kernel.size());
    for (int64_t i = 0; i < axes; ++i) s[s.size() - axes + i] = size(x.size(i - axes), i);
    return s;
  }
};
// Samples may be missing.
void check_image(const Tensor& x, int64_t axes) {
  bool empty = false;
  for (int64_t i = 1; i <= axes + 1 && i <= x.dim(); ++i) empty |= x.size(-i) == 0;
  TORCH_CHECK((x.dim() == axes + 1 || x.dim() == axes + 2) && !empty, "Expected ", axes + 1, "D or ", axes + 2,
              "D (batch mode) tensor with optional 0 dim batch size for input, but got: ", x.sizes());
}
Tensor batched(const Tensor& t, int64_t axes) { return t.dim() == axes + 1 ? t.unsqueeze(0) : t; }
Tensor image(const std::vector<int64_t>& shape, const Tensor& like, at::ScalarType type, int64_t axes = 2) {
  const auto format =
      static_cast<int64_t>(shape.size()) == axes + 2 ? like.suggest_memory_format() : at::MemoryFormat::Contiguous;
  return fresh(shape, type, like.device(), format);
}
// The last axes' sizes.
at::IntArrayRef spatial(const Tensor& t, int64_t axes) { return t.sizes().slice(t.dim() - axes); }
// Of two axes and of three.
struct operations {
  operation of_two, of_three;
  operations(const char* two, const char* three) : of_two(two), of_three(three) {}
  const operation& of(int64_t axes) const { return axes == 2 ? of_two : of_three; }
};

// self, kernel_size, stride, padding, dilation, ceil_mode
void max_pool(call& c, int64_t axes) {
  static const operations op("max_pool2d_with_indices", "max_pool3d_with_indices");
  const Tensor& x = c.tensor(0);
  check_image(x, axes);
  const windows w(c, axes, 1, true, 5);
  Tensor out = image(w.shape(x), x, x.scalar_type(), axes), index = image(w.shape(x), x, at::kLong, axes);
  const Tensor px = batched(x, axes), po = batched(out, axes), pi = batched(index, axes);
  op.of(axes)({px}, {&po, &pi},
              {{"kernel", at::IntArrayRef(w.kernel)},
               {"stride", at::IntArrayRef(w.stride)},
               {"padding", at::IntArrayRef(w.padding)},
               {"dilation", at::IntArrayRef(w.dilation)},
               {"ceil_mode", w.ceil_mode}});
  c.give(out);
  c.give(index);
}
// grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices
void max_pool_backward(call& c, int64_t axes) {
  static const operations op("max_pool2d_backward", "max_pool3d_backward");
  const Tensor &g = c.tensor(0), &x = c.tensor(1);
  const windows w(c, axes, 2, true, 6);
  Tensor out = image(x.sizes().vec(), x, x.scalar_type(), axes);
  const Tensor pg = batched(g, axes), px = batched(x, axes), po = batched(out, axes);
  op.of(axes)({pg, px}, {&po},
              {{"kernel", at::IntArrayRef(w.kernel)},
               {"stride", at::IntArrayRef(w.stride)},
               {"padding", at::IntArrayRef(w.padding)},
               {"dilation", at::IntArrayRef(w.dilation)},
               {"ceil_mode", w.ceil_mode}});
  c.give(out);
}
// What forward mode knows of it: PyTorch calls it with the input's tangent in the input's place, since its own kernel reads only the
// indices. grad_output, self, ..., indices; also of adaptive windows.
void max_pool_backward_forward(call& c, int64_t axes) {
  const Tensor &g = c.tensor(0), &x = c.tensor(1), &index = c.arguments().back().toTensor();
  if (!has_tangent(g) && !has_tangent(x)) return c.leave();
  const Tensor planes = at::zeros(x.sizes(), x.options()).flatten(-axes);
  c.give(planes.scatter_add(-1, index.flatten(-axes), g.flatten(-axes)).view(x.sizes()));
}
int64_t divisor(const call& c, int i) {
  TORCH_CHECK(!c.has(i) || c.integer(i) != 0, "divisor must be not zero");
  return c.has(i) ? c.integer(i) : 0;
}
// self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
void avg_pool(call& c, int64_t axes) {
  static const operations op("avg_pool2d", "avg_pool3d");
  const Tensor& x = c.tensor(0);
  check_image(x, axes);
  const windows w(c, axes, 1, false, 4);
  Tensor out = image(w.shape(x), x, x.scalar_type(), axes);
  const Tensor px = batched(x, axes), po = batched(out, axes);
  op.of(axes)({px}, {&po},
              {{"kernel", at::IntArrayRef(w.kernel)},
               {"stride", at::IntArrayRef(w.stride)},
               {"padding", at::IntArrayRef(w.padding)},
               {"ceil_mode", w.ceil_mode},
               {"count_include_pad", c.boolean(5)},
               {"divisor_override", divisor(c, 6)}});
  c.give(out);
}
// grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
void avg_pool_backward(call& c, int64_t axes) {
  static const operations op("avg_pool2d_backward", "avg_pool3d_backward");
  const Tensor &g = c.tensor(0), &x = c.tensor(1);
  const windows w(c, axes, 2, false, 5);
  Tensor out = image(x.sizes().vec(), x, x.scalar_type(), axes);
  const Tensor pg = batched(g, axes), po = batched(out, axes);
  op.of(axes)({pg}, {&po},
              {{"kernel", at::IntArrayRef(w.kernel)},
               {"stride", at::IntArrayRef(w.stride)},
               {"padding", at::IntArrayRef(w.padding)},
               {"ceil_mode", w.ceil_mode},
               {"count_include_pad", c.boolean(6)},
               {"divisor_override", divisor(c, 7)},
               {"size", spatial(x, axes)}});
  c.give(out);
}

std::vector<int64_t> with_size(const Tensor& x, const std::vector<int64_t>& size, int64_t axes) {
  TORCH_CHECK(static_cast<int64_t>(size.size()) == axes &&
                  std::all_of(size.begin(), size.end(), [](int64_t n) { return n >= 0; }),
              "expected output_size of ", axes, " integers >= 0, got ", size);
  auto shape = x.sizes().vec();
  std::copy(size.begin(), size.end(), shape.end() - axes);
  return shape;
}
// self, output_size
void adaptive_avg_pool(call& c, int64_t axes) {
  static const operations op("adaptive_avg_pool2d", "adaptive_avg_pool3d");
  const Tensor& x = c.tensor(0);
  check_image(x, axes);
  const auto size = c.integers(1);
  Tensor out = image(with_size(x, size, axes), x, x.scalar_type(), axes);
  const Tensor px = batched(x, axes), po = batched(out, axes);
  if (out.numel() > 0) op.of(axes)({px}, {&po}, {{"size", at::IntArrayRef(size)}});
  c.give(out);
}
// grad_output, self
void adaptive_avg_pool_backward(call& c, int64_t axes) {
  static const operations op("adaptive_avg_pool2d_backward", "adaptive_avg_pool3d_backward");
  const Tensor &g = c.tensor(0), &x = c.tensor(1);
  Tensor out = image(x.sizes().vec(), x, x.scalar_type(), axes);
  const Tensor pg = batched(g, axes), po = batched(out, axes);
  op.of(axes)({pg}, {&po}, {{"size", spatial(x, axes)}});
  c.give(out);
}
// self, output_size
void adaptive_max_pool(call& c, int64_t axes) {
  static const operations op("adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices");
  const Tensor& x = c.tensor(0);
  check_image(x, axes);
  const auto size = c.integers(1);
  const auto shape = with_size(x, size, axes);
  Tensor out = image(shape, x, x.scalar_type(), axes), index = image(shape, x, at::kLong, axes);
  const Tensor px = batched(x, axes), po = batched(out, axes), pi = batched(index, axes);
  if (out.numel() > 0) op.of(axes)({px}, {&po, &pi}, {{"size", at::IntArrayRef(size)}});
  c.give(out);
  c.give(index);
}
// grad_output, self, indices
void adaptive_max_pool_backward(call& c, int64_t axes) {
  static const operations op("adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward");
  const Tensor &g = c.tensor(0), &x = c.tensor(1);
  Tensor out = image(x.sizes().vec(), x, x.scalar_type(), axes);
  const Tensor pg = batched(g, axes), px = batched(x, axes), po = batched(out, axes);
  op.of(axes)({pg, px}, {&po});
  c.give(out);
}

}  // namespace

void max_pool2d_with_indices(call& c) { max_pool(c, 2); }
void max_pool3d_with_indices(call& c) { max_pool(c, 3); }
void max_pool2d_with_indices_backward(call& c) { max_pool_backward(c, 2); }
void max_pool3d_with_indices_backward(call& c) { max_pool_backward(c, 3); }
void max_pool2d_backward_forward(call& c) { max_pool_backward_forward(c, 2); }
void max_pool3d_backward_forward(call& c) { max_pool_backward_forward(c, 3); }
void avg_pool2d(call& c) { avg_pool(c, 2); }
void avg_pool3d(call& c) { avg_pool(c, 3); }
void avg_pool2d_backward(call& c) { avg_pool_backward(c, 2); }
void avg_pool3d_backward(call& c) { avg_pool_backward(c, 3); }
void adaptive_avg_pool2d(call& c) { adaptive_avg_pool(c, 2); }
void adaptive_avg_pool3d(call& c) { adaptive_avg_pool(c, 3); }
void adaptive_avg_pool2d_backward(call& c) { adaptive_avg_pool_backward(c, 2); }
void adaptive_avg_pool3d_backward(call& c) { adaptive_avg_pool_backward(c, 3); }
void adaptive_max_pool2d(call& c) { adaptive_max_pool(c, 2); }
void adaptive_max_pool3d(call& c) { adaptive_max_pool(c, 3); }
void adaptive_max_pool2d_backward(call& c) { adaptive_max_pool_backward(c, 2); }
void adaptive_max_pool3d_backward(call& c) { adaptive_max_pool_backward(c, 3); }

// As max_pool2d of a picture of one row; aten has a kernel of its own that is used without gradients on the CPU.
// self, kernel_size, stride, padding, dilation, ceil_mode
void max_pool1d(call& c) {
  const Tensor& x = c.tensor(0);
  const auto row = [](const std::vector<int64_t>& v, int64_t first) {
    return v.empty() ? v : std::vector<int64_t>{first, v.at(0)};
  };
  TORCH_CHECK(x.dim() == 2 || x.dim() == 3, "max_pool1d() Expected 2D or 3D input tensor, but got ", x.sizes());
  c.give(at::max_pool2d(x.unsqueeze(-2), row(c.integers(1), 1), row(c.integers(2), 1), row(c.integers(3), 0),
                        row(c.integers(4), 1), c.boolean(5))
             .squeeze(-2));
}

// ---- interpolation: the pixel that an exact ratio names ----
namespace {
double scale_of(const call& c, int i) { return c.has(i) ? c.real(i) : 0; }
// Of pictures, or of lines as pictures of one row. `sizes` of the result; `scale`: the place of the first scale argument.
struct resized {
  bool line, exact;
  int64_t height, width;
  double scale_h, scale_w;
  resized(const call& c, bool exact_, bool line_, const std::vector<int64_t>& size, int scale)
      : line(line_), exact(exact_) {
    TORCH_CHECK(size.size() == (line ? 1 : 2), "It is expected output_size equals to ", line ? 1 : 2, ", but got size ",
                size.size());
    height = line ? 1 : size[0];
    width = size.back();
    TORCH_CHECK(height > 0 && width > 0, "Input and output sizes should be greater than 0, but got output size ", size);
    scale_h = line ? 0 : scale_of(c, scale);
    scale_w = scale_of(c, line ? scale : scale + 1);
  }
  std::vector<int64_t> shape(const Tensor& x) const {
    return line ? std::vector<int64_t>{x.size(0), x.size(1), width}
                : std::vector<int64_t>{x.size(0), x.size(1), height, width};
  }
  Tensor picture(const Tensor& t) const { return line ? t.unsqueeze(2) : t; }
};
void upsample(call& c, bool exact, bool line) {
  static const operation op("upsample_nearest2d");
  const Tensor& x = c.tensor(0);
  TORCH_CHECK(x.dim() == (line ? 3 : 4) && x.size(1) > 0 && x.size(-1) > 0 && x.size(-2) > 0, "Non-empty ",
              line ? 3 : 4, "D data tensor expected but got a tensor with sizes ", x.sizes());
  const resized r(c, exact, line, c.integers(1), 2);
  Tensor out = image(r.shape(x), x, x.scalar_type());
  const Tensor from = r.picture(x), to = r.picture(out);
  const int64_t size[] = {r.height, r.width};
  op({from}, {&to},
     {{"size", at::IntArrayRef(size)}, {"scale_h", r.scale_h}, {"scale_w", r.scale_w}, {"exact", exact}});
  c.give(out);
}
// grad_output, output_size, input_size, scales
void upsample_backward(call& c, bool exact, bool line) {
  static const operation op("upsample_nearest2d_backward");
  const Tensor& g = c.tensor(0);
  const resized r(c, exact, line, c.integers(1), 3);
  const auto shape = c.integers(2);
  TORCH_CHECK(shape.size() == (line ? 3 : 4) &&
                  g.sizes().equals(r.shape(at::empty(shape, at::TensorOptions().device(at::kMeta)))),
              "Expected grad_output to have the shape of the result, got ", g.sizes());
  Tensor out = image(shape, g, g.scalar_type());
  const Tensor from = r.picture(g), to = r.picture(out);
  const int64_t size[] = {to.size(2), to.size(3)};
  op({from}, {&to},
     {{"size", at::IntArrayRef(size)}, {"scale_h", r.scale_h}, {"scale_w", r.scale_w}, {"exact", exact}});
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

// In three dimensions: along the first, of pictures of rows, and then of pictures; nothing rounds.
namespace {
Tensor nearest3d(const Tensor& x, at::IntArrayRef size, const std::array<std::optional<double>, 3>& scale, bool exact) {
  const auto in_two = [&](const Tensor& t, at::IntArrayRef to, std::optional<double> h, std::optional<double> w) {
    return exact ? at::_upsample_nearest_exact2d(t, to, h, w) : at::upsample_nearest2d(t, to, h, w);
  };
  const int64_t n = x.size(0), channels = x.size(1), rows = x.size(3), columns = x.size(4);
  const Tensor deep =
      in_two(x.reshape({n, channels, x.size(2), rows * columns}), {size[0], rows * columns}, scale[0], {});
  const Tensor wide = in_two(deep.reshape({n, channels * size[0], rows, columns}), size.slice(1), scale[1], scale[2]);
  return wide.view({n, channels, size[0], size[1], size[2]});
}
std::array<std::optional<double>, 3> scales_of(const call& c, int at) {
  std::array<std::optional<double>, 3> all;
  for (int i = 0; i < 3; ++i) {
    if (c.has(at + i)) all[i] = c.real(at + i);
  }
  return all;
}
void check_volume(const Tensor& x, at::IntArrayRef size) {
  TORCH_CHECK(size.size() == 3, "It is expected output_size equals to 3, but got size ", size.size());
  TORCH_CHECK(x.dim() == 5 && c10::multiply_integers(x.sizes().slice(1)) > 0,
              "Non-empty 5D data tensor expected but got a tensor with sizes ", x.sizes());
}
// self, output_size, scales
void upsample3d(call& c, bool exact) {
  const Tensor& x = c.tensor(0);
  const auto size = c.integers(1);
  check_volume(x, size);
  const auto format = x.suggest_memory_format();
  c.give(nearest3d(x.contiguous(), size, scales_of(c, 2), exact).contiguous(format));
}
// grad_output, output_size, input_size, scales: each element's number goes the same way, and says where g comes from.
void upsample3d_backward(call& c, bool exact) {
  const Tensor& g = c.tensor(0);
  const auto size = c.integers(1), shape = c.integers(2);
  const Tensor all =
      at::arange(c10::multiply_integers(shape), g.options().dtype(at::kLong)).to(at::kDouble).view(shape);
  check_volume(all, size);
  const Tensor places = nearest3d(all, size, scales_of(c, 3), exact);
  TORCH_CHECK(places.sizes() == g.sizes(), "Expected grad_output to have the shape of the result, got ", g.sizes());
  const Tensor sums = at::zeros({all.numel()}, g.options());
  c.give(at::index_add(sums, 0, places.to(at::kLong).view({-1}), g.reshape({-1})).view(shape));
}
}  // namespace
void upsample_nearest3d(call& c) { upsample3d(c, false); }
void upsample_nearest_exact3d(call& c) { upsample3d(c, true); }
void upsample_nearest3d_backward(call& c) { upsample3d_backward(c, false); }
void upsample_nearest_exact3d_backward(call& c) { upsample3d_backward(c, true); }

// ---- interpolation by weights that are exact ratios, along the last axes, as many as output_size has ----
namespace {
const operation& linear() {
  static const operation op("upsample_linear");
  return op;
}
const operation& linear_backward() {
  static const operation op("upsample_linear_backward");
  return op;
}
const operation& cubic() {
  static const operation op("upsample_cubic");
  return op;
}
const operation& cubic_backward() {
  static const operation op("upsample_cubic_backward");
  return op;
}
// align_corners, then a scale for each axis, from `at` on.
void interpolate(const call& c, const operation& op, const Tensor& from, const Tensor& to, int at, int axes) {
  const std::vector<int64_t> size(to.sizes().end() - axes, to.sizes().end());
  const auto scale = [&](int back) { return back > axes ? 0.0 : scale_of(c, at + 1 + axes - back); };
  op({from}, {&to},
     {{"size", at::IntArrayRef(size)},
      {"align_corners", c.boolean(at)},
      {"scale_d", scale(3)},
      {"scale_h", scale(2)},
      {"scale_w", scale(1)}});
}
std::vector<int64_t> resized_shape(const call& c, at::IntArrayRef input, int axes) {
  const auto size = c.integers(1);
  TORCH_CHECK(static_cast<int>(size.size()) == axes, "It is expected output_size equals to ", axes, ", but got size ",
              size.size());
  TORCH_CHECK(static_cast<int>(input.size()) == axes + 2, "Non-empty ", axes + 2,
              "D data tensor expected but got a tensor with sizes ", input);
  auto shape = input.vec();
  for (int i = 0; i < axes; ++i) {
    TORCH_CHECK(input[i + 2] > 0 && size[i] > 0, "Input and output sizes should be greater than 0, but got input ",
                input, " output ", size);
    shape[i + 2] = size[i];
  }
  TORCH_CHECK(input[1] > 0, "Non-empty ", axes + 2, "D data tensor expected but got a tensor with sizes ", input);
  return shape;
}
// self, output_size, align_corners, a scale for each axis
void interpolate(call& c, const operation& op, int axes) {
  const Tensor& x = c.tensor(0);
  Tensor out = image(resized_shape(c, x.sizes(), axes), x, x.scalar_type(), axes);
  if (out.numel() > 0) interpolate(c, op, x, out, 2, axes);
  c.give(out);
}
// grad_output, output_size, input_size, align_corners, a scale for each axis
void interpolate_backward(call& c, const operation& op, int axes) {
  const Tensor& g = c.tensor(0);
  const auto shape = c.integers(2);
  TORCH_CHECK(g.sizes().equals(resized_shape(c, shape, axes)),
              "Expected grad_output to have the shape of the result, got ", g.sizes());
  Tensor out = image(shape, g, g.scalar_type(), axes);
  if (out.numel() > 0) interpolate(c, op, g, out, 3, axes);
  c.give(out);
}
}  // namespace
void upsample_linear1d(call& c) { interpolate(c, linear(), 1); }
void upsample_bilinear2d(call& c) { interpolate(c, linear(), 2); }
void upsample_trilinear3d(call& c) { interpolate(c, linear(), 3); }
void upsample_bicubic2d(call& c) { interpolate(c, cubic(), 2); }
void upsample_linear1d_backward(call& c) { interpolate_backward(c, linear_backward(), 1); }
void upsample_bilinear2d_backward(call& c) { interpolate_backward(c, linear_backward(), 2); }
void upsample_trilinear3d_backward(call& c) { interpolate_backward(c, linear_backward(), 3); }
void upsample_bicubic2d_backward(call& c) { interpolate_backward(c, cubic_backward(), 2); }

}  // namespace repdl_torch::formulas
