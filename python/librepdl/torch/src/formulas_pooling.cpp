// Pooling and interpolation.
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool2d_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d.h>

#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {

std::array<int64_t, 2> two(const std::vector<int64_t>& v) {
  TORCH_CHECK(v.size() == 1 || v.size() == 2, "expected one or two integers, got ", v.size());
  return {v[0], v.back()};
}

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
                  "pad should be at most half of effective kernel size, but got pad=", padding[i],
                  ", kernel_size=", kernel[i]);
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
  const auto format = shape.size() >= 4 ? like.suggest_memory_format() : at::MemoryFormat::Contiguous;
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
  op({px}, {&po, &pi},
     {{"kernel", at::IntArrayRef(w.kernel)},
      {"stride", at::IntArrayRef(w.stride)},
      {"padding", at::IntArrayRef(w.padding)},
      {"dilation", at::IntArrayRef(w.dilation)},
      {"ceil_mode", w.ceil_mode}});
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
  op({pg, px}, {&po},
     {{"kernel", at::IntArrayRef(w.kernel)},
      {"stride", at::IntArrayRef(w.stride)},
      {"padding", at::IntArrayRef(w.padding)},
      {"dilation", at::IntArrayRef(w.dilation)},
      {"ceil_mode", w.ceil_mode}});
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
  op({px}, {&po},
     {{"kernel", at::IntArrayRef(w.kernel)},
      {"stride", at::IntArrayRef(w.stride)},
      {"padding", at::IntArrayRef(w.padding)},
      {"ceil_mode", w.ceil_mode},
      {"count_include_pad", c.boolean(5)},
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
  op({pg}, {&po},
     {{"kernel", at::IntArrayRef(w.kernel)},
      {"stride", at::IntArrayRef(w.stride)},
      {"padding", at::IntArrayRef(w.padding)},
      {"ceil_mode", w.ceil_mode},
      {"count_include_pad", c.boolean(6)},
      {"divisor_override", divisor(c, 7)},
      {"size", at::IntArrayRef(size)}});
  c.give(out);
}

namespace {
// Windows in three dimensions that reach over one alone, the first (nn.LocalResponseNorm's): of pictures of rows. Arguments from `at`:
// kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override.
struct one_axis {
  std::vector<int64_t> kernel, stride, padding;
  bool ceil_mode, with_padding;
  std::optional<int64_t> divisor;
  one_axis(const call& c, int at) : ceil_mode(c.boolean(at + 3)), with_padding(c.boolean(at + 4)) {
    const auto list = [&](int i, int64_t rest) {
      auto v = c.integers(i);
      TORCH_CHECK(v.size() <= 1 || v.size() == 3, "avg_pool3d: expected one number or three, got ", v);
      if (v.size() == 1) v.assign(3, v[0]);
      if (!v.empty() && (v[1] != rest || v[2] != rest)) c.refuse("of 3 dimensions");
      if (!v.empty()) v = {v[0], rest};
      return v;
    };
    kernel = list(at, 1);
    stride = list(at + 1, 1);
    padding = list(at + 2, 0);
    if (c.has(at + 5)) divisor = c.integer(at + 5);
  }
};
// Channels, the axis, and the others as one.
Tensor flat_picture(const Tensor& x) {
  TORCH_CHECK(x.dim() == 4 || x.dim() == 5, "avg_pool3d: expected an input of 4 or 5 dimensions, got ", x.dim());
  return x.reshape({c10::multiply_integers(x.sizes().slice(0, x.dim() - 3)), x.size(-3), x.size(-2) * x.size(-1)});
}
}  // namespace
void avg_pool3d(call& c) {
  const Tensor& x = c.tensor(0);
  const one_axis w(c, 1);
  const Tensor y =
      at::avg_pool2d(flat_picture(x), w.kernel, w.stride, w.padding, w.ceil_mode, w.with_padding, w.divisor);
  auto shape = x.sizes().vec();
  shape[x.dim() - 3] = y.size(1);
  c.give(y.view(shape));
}
// grad_output, self, and as avg_pool3d
void avg_pool3d_backward(call& c) {
  const Tensor& x = c.tensor(1);
  const one_axis w(c, 2);
  c.give(at::avg_pool2d_backward(flat_picture(c.tensor(0)), flat_picture(x), w.kernel, w.stride, w.padding, w.ceil_mode,
                                 w.with_padding, w.divisor)
             .view(x.sizes()));
}

namespace {
std::vector<int64_t> with_size(const Tensor& x, const std::vector<int64_t>& size) {
  TORCH_CHECK(size.size() == 2 && size[0] >= 0 && size[1] >= 0, "expected output_size of two integers >= 0, got ",
              size);
  auto shape = x.sizes().vec();
  std::copy(size.begin(), size.end(), shape.end() - 2);
  return shape;
}
}  // namespace
// self, output_size
void adaptive_avg_pool2d(call& c) {
  static const operation op("adaptive_avg_pool2d");
  const Tensor& x = c.tensor(0);
  check_image(x);
  const auto size = c.integers(1);
  const auto shape = with_size(x, size);
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
  const auto shape = with_size(x, size);
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
  Tensor out = image(resized_shape(c, x.sizes(), axes), x, x.scalar_type());
  if (out.numel() > 0) interpolate(c, op, x, out, 2, axes);
  c.give(out);
}
// grad_output, output_size, input_size, align_corners, a scale for each axis
void interpolate_backward(call& c, const operation& op, int axes) {
  const Tensor& g = c.tensor(0);
  const auto shape = c.integers(2);
  TORCH_CHECK(g.sizes().equals(resized_shape(c, shape, axes)),
              "Expected grad_output to have the shape of the result, got ", g.sizes());
  Tensor out = image(shape, g, g.scalar_type());
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
