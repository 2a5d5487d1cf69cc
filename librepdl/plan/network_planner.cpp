// Plans of convolution and pooling.
#include <algorithm>
#include <array>
#include <numeric>

#include "librepdl/plan/planner.hpp"

namespace repdl::plan {
namespace {

constexpr std::int64_t largest = std::int64_t{1}
                                 << 31;  // of strides, dilations, paddings, windows: products stay in int64

using three = std::array<std::int64_t, 3>;  // of depth, height, width; what an operation lacks is in front

// How many spatial axes an operation has, by its name.
int axes_of(std::string_view op) { return op.find("3d") == op.npos ? 2 : 3; }

constexpr std::string_view axis_names[] = {"depth", "height", "width"};
constexpr std::string_view counts[] = {"", "one", "two", "three"};

void check_axes(std::string_view op, std::string_view name, const three& v, std::int64_t least) {
  if (std::all_of(v.begin(), v.end(), [&](std::int64_t x) { return x >= least && x < largest; })) return;
  std::string given;
  const auto axes = static_cast<std::size_t>(axes_of(op));
  for (std::size_t d = 3 - axes; d < 3; ++d) given += (given.empty() ? "" : ",") + std::to_string(v[d]);
  fail(error_site::attribute_value, op, name,
       std::string(counts[axes]) + " sizes in [" + std::to_string(least) + ", 2^31)", given);
}

[[noreturn]] void wrong_count(std::string_view op, std::string_view name, std::string_view expected,
                              const sizes& given) {
  fail(error_site::attribute_value, op, name, expected, std::to_string(given.size()));
}

// One number for each axis: `none` if there are none, and that of an axis that the operation does not have is `absent`.
three of_axes(std::string_view op, std::string_view name, const per_axis& v, std::int64_t absent, const three& none) {
  const sizes& list = v.list();
  const int axes = axes_of(op);
  if (list.empty()) return none;
  if (list.size() != 1 && list.size() != axes)
    wrong_count(op, name, "1 or " + std::to_string(axes) + " integers", list);
  three each{absent, absent, absent};
  for (int d = 0; d < axes; ++d) each[static_cast<std::size_t>(3 - axes + d)] = list[list.size() == 1 ? 0 : d];
  return each;
}

// Before and behind each axis.
struct sides {
  three before, behind;
};
sides sides_of(std::string_view op, const per_axis& padding) {
  const sizes& list = padding.list();
  const int axes = axes_of(op);
  if (list.size() > 1 && list.size() != axes && list.size() != 2 * axes)
    wrong_count(op, "padding", "1, " + std::to_string(axes) + " or " + std::to_string(2 * axes) + " integers", list);
  if (list.size() != 2 * axes) {
    const three both = of_axes(op, "padding", padding, 0, {});
    return {both, both};
  }
  sides s{};
  for (int d = 0; d < axes; ++d) {
    const auto at = static_cast<std::size_t>(3 - axes + d);
    s.before[at] = list[2 * d];
    s.behind[at] = list[2 * d + 1];
  }
  return s;
}

void check_padding(std::string_view op, const sides& p) {
  check_axes(op, "padding", p.before, 0);
  check_axes(op, "padding", p.behind, 0);
}

// The last axes of a shape.
three spatial(std::string_view op, const sizes& shape) {
  three each{1, 1, 1};
  const int axes = axes_of(op);
  for (int d = 0; d < axes; ++d) each[static_cast<std::size_t>(3 - axes + d)] = shape[shape.size() - axes + d];
  return each;
}
sizes with_axes(std::string_view op, std::int64_t samples, std::int64_t channels, const three& each) {
  const int axes = axes_of(op);
  sizes shape =
      axes == 2 ? sizes{samples, channels, each[1], each[2]} : sizes{samples, channels, each[0], each[1], each[2]};
  return shape;
}

// The windows along one axis.
struct windows {
  std::string_view op;
  std::string_view axis;  // "height", "width"
  std::int64_t size;      // of the image
  std::int64_t kernel, stride, dilation, before, after;
  bool ceil_mode = false;  // windows that begin on the image or in front of it, though they reach over what pads it

  // From the first tap to the last.
  std::int64_t extent() const { return dilation * (kernel - 1) + 1; }
  std::int64_t count() const {
    const std::int64_t padded = size + before + after;
    const std::int64_t longest = ceil_mode ? padded + stride - 1 : padded;
    if (extent() > longest) {
      fail(error_site::kernel_too_large, op, axis,
           "a window of at most " + std::to_string(longest) + (ceil_mode ? "" : " (the padded image)"),
           std::to_string(extent()));
    }
    const std::int64_t whole = (longest - extent()) / stride;  // of the last window
    return ceil_mode && whole * stride >= size + before ? whole : whole + 1;
  }
  // The padded image, as far as windows reach.
  std::int64_t padded() const { return std::min(size + before + after, (count() - 1) * stride + extent()); }
  // Taps of window o on the padded image, of dilation 1.
  std::int64_t padded_taps(std::int64_t o) const { return std::min(kernel, size + before + after - o * stride); }
  // Taps of window o that are in the image.
  std::int64_t present(std::int64_t o) const {
    const std::int64_t start = o * stride - before;
    const std::int64_t first = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
    const std::int64_t end = start >= size ? 0 : std::min(kernel, (size - start + dilation - 1) / dilation);
    return std::max<std::int64_t>(0, end - first);
  }
  // Calls use(o) for the windows that may reach over an edge; the others have all taps present.
  // Returns whether there are others.
  template <class Use>
  bool for_each_at_edge(const Use& use) const {
    const std::int64_t n = count();
    const std::int64_t inside = std::min(n, (before + stride - 1) / stride);  // the first window that starts inside
    const std::int64_t room = size - extent() + before;
    const std::int64_t end = std::max(inside, room < 0 ? 0 : std::min(n, room / stride + 1));
    for (std::int64_t o = 0; o < inside; ++o) use(o);
    for (std::int64_t o = end; o < n; ++o) use(o);
    return inside < end;
  }
  void check_not_empty() const {
    for_each_at_edge([&](std::int64_t o) {
      if (present(o) == 0) {
        fail(error_site::empty_window, op, axis, "at least one element of the image in every window",
             "none in window " + std::to_string(o));
      }
    });
  }
  // The least common multiple of the present taps of all windows that have any, or 0 from largest_common on.
  std::int64_t common() const {
    std::int64_t all = 1;
    const auto include = [&](std::int64_t n) { all = n == 0 ? all : below_largest(all, n / std::gcd(all, n)); };
    if (for_each_at_edge([&](std::int64_t o) { include(present(o)); })) include(kernel);
    return all;
  }
  // Likewise of the taps on the padded image: only the last window can have fewer than the others.
  std::int64_t common_padded() const {
    const std::int64_t last = padded_taps(count() - 1);
    return count() > 1 ? below_largest(kernel, last / std::gcd(kernel, last)) : last;
  }
  // The product of two numbers below 2^31, or 0 from largest_common on.
  static std::int64_t below_largest(std::int64_t a, std::int64_t b) { return a * b < largest_common ? a * b : 0; }
  static constexpr std::int64_t largest_common = std::int64_t{1} << 29;  // exact in binary64: ops/sums/pool.hpp
};

using window_list = std::array<windows, 3>;

three counts_of(const window_list& w) { return {w[0].count(), w[1].count(), w[2].count()}; }

// Words for images and kernels of an operation.
std::string with_axis_names(std::string_view op, std::string_view first) {
  std::string text(first);
  for (int d = 3 - axes_of(op); d < 3; ++d) text += ", " + std::string(axis_names[d]);
  return text + ")";
}

// Every size of images, checked.
const sizes& image_shape(std::string_view op, std::string_view name, const const_tensor_view& v) {
  if (v.rank() != axes_of(op) + 2)
    check_rank(op, name, v, axes_of(op) + 2, with_axis_names(op, "images (samples, channels"));
  return v.shape();
}
const sizes& kernel_shape(std::string_view op, const const_tensor_view& v) {
  if (v.rank() != axes_of(op) + 2) {
    check_rank(op, "w", v, axes_of(op) + 2, with_axis_names(op, "kernels (output channels, input channels / groups"));
  }
  return v.shape();
}

void expect_size(std::string_view op, std::string_view name, std::string_view what, std::int64_t want,
                 std::int64_t got) {
  if (want != got)
    fail(error_site::image_size, op, name, std::string(what) + " " + std::to_string(want), std::to_string(got));
}

// want(): what was expected, in words.
template <class Words>
void expect_channels(std::string_view op, std::string_view name, const Words& want, bool ok, std::int64_t got) {
  if (!ok) fail(error_site::channel_count, op, name, want(), std::to_string(got));
}

}  // namespace

// ---------------------------------------------------------------------------------------------------- convolution

namespace {

// Operands of one format. `names`: theirs.
template <std::size_t N>
dtype conv_type(std::string_view op, const std::string_view (&names)[N], inputs in, const conv2d_options& a) {
  const dtype type = in[0].type();
  for (std::size_t i = 1; i < in.size(); ++i)
    if (in[i]) check_format(op, names[i], in[i], names[0], in[0]);
  if (a.accumulate == accumulate::fma_chain && type != dtype::f32)
    fail(error_site::chain_only, op, names[0], "f32 with fma_chain", std::string(name_of(type)));
  return type;
}

// The windows of a call, whose padding, strides and dilations it checks.
template <class Options>
window_list windows_of(std::string_view op, const Options& a, const three& image, const three& kernel) {
  const three stride = of_axes(op, "stride", a.stride, 1, {1, 1, 1}),
              dilation = of_axes(op, "dilation", a.dilation, 1, {1, 1, 1});
  const sides padding = sides_of(op, a.padding);
  check_axes(op, "stride", stride, 1);
  check_axes(op, "dilation", dilation, 1);
  check_padding(op, padding);
  if (a.groups < 1 || a.groups >= largest) {
    fail(error_site::attribute_value, op, "groups", "a number in [1, 2^31)", std::to_string(a.groups));
  }
  check_axes(op, "kernel", kernel, 1);
  check_axes(op, "size", image, 0);
  window_list w;
  for (std::size_t d = 0; d < 3; ++d) {
    w[d] = {op, axis_names[d], image[d], kernel[d], stride[d], dilation[d], padding.before[d], padding.behind[d]};
  }
  return w;
}
void expect_windows(std::string_view op, const window_list& w, const sizes& g) {
  const three given = spatial(op, g);
  for (std::size_t d = 0; d < 3; ++d) expect_size(op, "g", axis_names[d], w[d].count(), given[d]);
}

void check_groups(std::string_view op, std::string_view name, std::int64_t channels, std::int64_t groups) {
  const auto want = [&] { return "a multiple of " + std::to_string(groups) + " channels (groups)"; };
  expect_channels(op, name, want, channels % groups == 0, channels);
}

// The strides of a tensor of images; that of an axis that the operation does not have is 0.
image_strides strides_of(const const_tensor_view& v) {
  image_strides all{};
  const int axes = v.rank() - 2;
  for (int d = 0; d < v.rank(); ++d) all[static_cast<std::size_t>(d < 2 ? d : d + 3 - axes)] = v.strides()[d];
  return all;
}

// Strides are multiplied with sizes. One that no step is made along may be any number: a huge one becomes 0.
conv_plan::tensor tensor_of(const const_tensor_view& v, bool is_output) {
  conv_plan::tensor t{is_output ? nullptr : v.data(), strides_of(v)};
  const int axes = v.rank() - 2;
  for (int d = 0; d < v.rank(); ++d) {
    std::int64_t& stride = t.stride[static_cast<std::size_t>(d < 2 ? d : d + 3 - axes)];
    const bool unused = v.count() == 0 || v.shape()[d] == 1;
    if (unused && (stride > largest || stride < -largest)) stride = 0;
  }
  return t;
}

}  // namespace

tensor_spec infer_conv(std::string_view op, inputs in, const conv2d_options& a) {
  const dtype type = conv_type(op, {"x", "w", "bias"}, in, a);
  const sizes& x = image_shape(op, "x", in[0]);
  const sizes& w = kernel_shape(op, in[1]);
  const window_list window = windows_of(op, a, spatial(op, x), spatial(op, w));
  check_groups(op, "w", w[0], a.groups);
  check_groups(op, "x", x[1], a.groups);
  const auto want = [&] {
    return std::to_string(x[1] / a.groups) + " input channels (" + std::to_string(x[1]) + " of x over " +
           std::to_string(a.groups) + " groups)";
  };
  expect_channels(op, "w", want, x[1] / a.groups == w[1], w[1]);
  if (in.size() > 2 && in[2]) {
    check_rank(op, "bias", in[2], 1, "a vector");
    if (in[2].count() != w[0]) {
      fail(error_site::length_mismatch, op, "bias", std::to_string(w[0]) + " elements, one per output channel",
           std::to_string(in[2].count()));
    }
  }
  return {type, with_axes(op, x[0], w[0], counts_of(window))};
}

tensor_spec infer_conv(std::string_view op, inputs in, const ops::conv2d_grad_input_attrs& a) {
  const dtype type = conv_type(op, {"g", "w"}, in, a);
  const sizes& g = image_shape(op, "g", in[0]);
  const sizes& w = kernel_shape(op, in[1]);
  const three image = of_axes(op, "size", *a.size, 1, {});
  const window_list window = windows_of(op, a, image, spatial(op, w));
  check_groups(op, "w", w[0], a.groups);
  const auto want = [&] { return std::to_string(w[0]) + " channels, one for each output channel of w"; };
  expect_channels(op, "g", want, g[1] == w[0], g[1]);
  expect_windows(op, window, g);
  return {type, with_axes(op, g[0], element_count({w[1], a.groups}), image)};
}

tensor_spec infer_conv(std::string_view op, inputs in, const ops::conv2d_grad_weight_attrs& a) {
  const dtype type = conv_type(op, {"g", "x"}, in, a);
  const sizes& g = image_shape(op, "g", in[0]);
  const sizes& x = image_shape(op, "x", in[1]);
  const three kernel = of_axes(op, "kernel", *a.kernel, 1, {});
  const window_list window = windows_of(op, a, spatial(op, x), kernel);
  check_groups(op, "g", g[1], a.groups);
  check_groups(op, "x", x[1], a.groups);
  expect_size(op, "g", "samples", x[0], g[0]);
  expect_windows(op, window, g);
  return {type, with_axes(op, g[1], x[1] / a.groups, kernel)};
}

conv_plan make_conv(std::string_view op, ops::op_id id, inputs in, const tensor_view& out, const conv2d_options& a) {
  using enum conv_plan::role;
  const const_tensor_view result_out(out);
  const conv_plan::role computed = op.ends_with("grad_input")    ? conv_plan::role::image
                                   : op.ends_with("grad_weight") ? kernel
                                                                 : result;
  const const_tensor_view& of_image = computed == result ? in[0] : computed == kernel ? in[1] : result_out;
  const const_tensor_view& of_kernel = computed == kernel ? result_out : in[1];
  const const_tensor_view& of_result = computed == result ? result_out : in[0];
  conv_plan p{};
  p.op = id;
  p.computed = computed;
  p.type = in[0].type();
  p.out_type = out.type();
  p.accumulate = a.accumulate;
  p.groups = a.groups;
  p.n = of_image.shape()[0];
  p.c = of_kernel.shape()[1];
  p.o = of_kernel.shape()[0] / a.groups;
  const window_list w = windows_of(op, a, spatial(op, of_image.shape()), spatial(op, of_kernel.shape()));
  const three windows = spatial(op, of_result.shape());
  for (std::size_t d = 0; d < 3; ++d) {
    p.axis[d] = {w[d].size, windows[d], w[d].kernel, w[d].stride, w[d].dilation, w[d].before};
  }
  p.image = tensor_of(of_image, computed == conv_plan::role::image);
  p.kernel = tensor_of(of_kernel, computed == kernel);
  p.result = tensor_of(of_result, computed == result);
  if (computed == result && in.size() > 2 && in[2]) {
    p.bias = in[2].data();
    p.bias_stride = in[2].strides()[0];
  }
  p.out = out.data();
  return p;
}

tensor_spec infer_conv_grad_bias(std::string_view op, inputs in) {
  return {in[0].type(), {image_shape(op, "g", in[0])[1]}};
}

reduce_plan make_conv_grad_bias(inputs in, const tensor_view& out) {
  sizes over{0};
  for (int d = 2; d < in[0].rank(); ++d) over.push_back(d);
  return make_reduce(ops::op_id::sum, in, out, {.axis = over});
}

// -------------------------------------------------------------------------------------------------------- pooling

namespace {

// The windows of pooling. Those of a kernel below 2^62 elements: counts stay in int64.
struct pooling {
  std::string_view op;
  three kernel, stride, dilation{1, 1, 1};
  sides padding;
  bool ceil_mode;

  template <class Options>
  pooling(std::string_view name, const Options& a)
      : op(name),
        kernel(of_axes(op, "kernel", a.kernel, 1, {1, 1, 1})),
        stride(of_axes(op, "stride", a.stride, 1, kernel)),
        padding(sides_of(op, a.padding)),
        ceil_mode(a.ceil_mode) {
    if constexpr (requires { a.dilation; }) dilation = of_axes(op, "dilation", a.dilation, 1, {1, 1, 1});
    check_axes(op, "kernel", kernel, 1);
    check_axes(op, "stride", stride, 1);
    check_axes(op, "dilation", dilation, 1);
    check_padding(op, padding);
    if (kernel[0] > ((std::int64_t{1} << 62) - 1) / (kernel[1] * kernel[2])) {
      fail(error_site::attribute_value, op, "kernel", "a window of less than 2^62 elements", to_string(sizes(kernel)));
    }
    if constexpr (requires { a.divisor_override; }) {
      if (a.divisor_override <= -largest || a.divisor_override >= largest) {
        fail(error_site::attribute_value, op, "divisor_override", "a number in (-2^31, 2^31)",
             std::to_string(a.divisor_override));
      }
    }
  }
  window_list over(const three& image) const {
    check_axes(op, "size", image, 0);
    window_list w;
    for (std::size_t d = 0; d < 3; ++d) {
      w[d] = {op,          axis_names[d],     image[d],          kernel[d], stride[d],
              dilation[d], padding.before[d], padding.behind[d], ceil_mode};
    }
    return w;
  }
};

sizes pooled_shape(std::string_view op, const sizes& image, const three& windows) {
  return with_axes(op, image[0], image[1], windows);
}

sizes max_pooled(std::string_view op, const const_tensor_view& x, const max_pool2d_options& a) {
  const sizes& image = image_shape(op, "x", x);
  const window_list w = pooling(op, a).over(spatial(op, image));
  const sizes shape = pooled_shape(op, image, counts_of(w));
  if (element_count(shape) != 0) {
    for (const windows& of_axis : w) of_axis.check_not_empty();
  }
  return shape;
}

// Of windows side by side, without padding.
pool_plan plan_pool(std::string_view op, ops::op_id id, const three& kernel, const const_tensor_view& image,
                    const const_tensor_view& pooled, const tensor_view& out) {
  pool_plan p{};
  p.op = id;
  p.type = out.type();
  p.n = image.shape()[0];
  p.c = image.shape()[1];
  p.padded = spatial(op, image.shape());
  const three windows = spatial(op, pooled.shape());
  for (std::size_t d = 0; d < 3; ++d) p.axis[d] = {p.padded[d], windows[d], kernel[d], kernel[d], 1, 0};
  p.common = 1;
  p.image_stride = strides_of(image);
  p.pooled_stride = strides_of(pooled);
  p.out_stride = strides_of(const_tensor_view(out));
  p.out = out.data();
  return p;
}
pool_plan plan_pool(ops::op_id id, const pooling& q, const const_tensor_view& image, const const_tensor_view& pooled,
                    const tensor_view& out) {
  pool_plan p = plan_pool(q.op, id, q.kernel, image, pooled, out);
  const window_list w = q.over(p.padded);
  for (std::size_t d = 0; d < 3; ++d) {
    p.axis[d].stride = q.stride[d];
    p.axis[d].dilation = q.dilation[d];
    p.axis[d].before = q.padding.before[d];
    p.padded[d] = w[d].padded();
  }
  return p;
}

specs pooled_specs(std::span<const ops::operand> out, const const_tensor_view& x, const sizes& shape) {
  specs all;
  all.push_back({x.type(), shape});
  if (out.size() > 1) all.push_back({dtype::i64, shape});
  return all;
}

void set_indices(pool_plan& p, const tensor_view& indices) {
  p.indices = static_cast<std::int64_t*>(indices.data());
  p.indices_stride = strides_of(const_tensor_view(indices));
}

three images_of(const pool_plan& p) { return {p.axis[0].image, p.axis[1].image, p.axis[2].image}; }

// What the sums of an average are divided by.
void set_divisors(pool_plan& p, const pooling& q, const avg_pool2d_options& a) {
  p.count_include_pad = a.count_include_pad;
  p.negated = a.divisor_override < 0;
  const window_list w = q.over(images_of(p));
  bool whole = true;
  for (std::size_t d = 0; d < 3; ++d) whole &= w[d].padded_taps(p.axis[d].windows - 1) == p.axis[d].kernel;
  p.divisor = a.divisor_override != 0        ? (p.negated ? -a.divisor_override : a.divisor_override)
              : a.count_include_pad && whole ? q.kernel[0] * q.kernel[1] * q.kernel[2]
                                             : 0;
}
// The product of what belongs to the axes, or 0 where it is too large to be of use.
std::int64_t common_of(const three& each) {
  return windows::below_largest(each[0], windows::below_largest(each[1], each[2]));
}
// Of a plan's windows: the least common multiple of their divisors, or 0.
std::int64_t common_divisor(const pool_plan& p, const window_list& w) {
  if (p.divisor != 0) return p.divisor < windows::largest_common ? p.divisor : 0;
  return p.count_include_pad ? common_of({w[0].common_padded(), w[1].common_padded(), w[2].common_padded()})
                             : common_of({w[0].common(), w[1].common(), w[2].common()});
}

}  // namespace

specs infer_max_pool(std::string_view op, std::span<const ops::operand> out, inputs in, const max_pool2d_options& a) {
  return pooled_specs(out, in[0], max_pooled(op, in[0], a));
}
tensor_spec infer_max_pool_backward(std::string_view op, inputs in, const max_pool2d_options& a) {
  check_format(op, "x", in[1], "g", in[0]);
  check_gradient(op, in[0], max_pooled(op, in[1], a));
  return {in[0].type(), in[1].shape()};
}
tensor_spec infer_avg_pool(std::string_view op, inputs in, const avg_pool2d_options& a) {
  const sizes& x = image_shape(op, "x", in[0]);
  return {in[0].type(), pooled_shape(op, x, counts_of(pooling(op, a).over(spatial(op, x))))};
}
tensor_spec infer_avg_pool_backward(std::string_view op, inputs in, const ops::avg_pool2d_backward_attrs& a) {
  const sizes& g = image_shape(op, "g", in[0]);
  const three image = of_axes(op, "size", *a.size, 1, {});
  const window_list w = pooling(op, a).over(image);
  check_gradient(op, in[0], pooled_shape(op, g, counts_of(w)));
  return {in[0].type(), with_axes(op, g[0], g[1], image)};
}

pool_plan make_max_pool(std::string_view op, inputs in, outputs out, const max_pool2d_options& a) {
  const bool backward = op.ends_with("backward");
  const const_tensor_view result(out[0]);
  const const_tensor_view& x = backward ? in[1] : in[0];
  pool_plan p = plan_pool(backward ? ops::op_id::max_pool2d_backward : ops::op_id::max_pool2d, pooling(op, a), x,
                          backward ? in[0] : result, out[0]);
  p.x = x.data();
  p.g = backward ? in[0].data() : nullptr;
  if (out.size() > 1) set_indices(p, out[1]);
  return p;
}
pool_plan make_avg_pool(std::string_view op, inputs in, const tensor_view& out, const avg_pool2d_options& a) {
  const pooling q(op, a);
  pool_plan p = plan_pool(ops::op_id::avg_pool2d, q, in[0], const_tensor_view(out), out);
  p.x = in[0].data();
  set_divisors(p, q, a);
  return p;
}
pool_plan make_avg_pool_backward(std::string_view op, inputs in, const tensor_view& out,
                                 const ops::avg_pool2d_backward_attrs& a) {
  const pooling q(op, a);
  pool_plan p = plan_pool(ops::op_id::avg_pool2d_backward, q, const_tensor_view(out), in[0], out);
  p.g = in[0].data();
  set_divisors(p, q, a);
  p.common = common_divisor(p, q.over(images_of(p)));
  return p;
}

// ---- adaptive pooling

namespace {

// The windows of one axis: of `size` positions floor(i size / count) up to and without ceil((i + 1) size / count).
//
// With size = q count + r and r / count = a / b in lowest terms, window i has q + ceil((i + 1) a / b) - floor(i a / b) positions. Of
// one size are they with a = 0: q; and a = 1: q + 1. Else the first one has q + 1, and the one with b / a, no integer, inside
// q + 2.
struct adaptive_windows {
  std::int64_t size, count;

  bool regular() const { return count > 0 && size > 0 && size % count == 0; }
  // The least common multiple of their sizes, or 0 from largest_common on.
  std::int64_t common() const {
    if (count == 0 || size == 0) return 1;
    const std::int64_t q = size / count, r = size % count;
    if (r == 0) return q;
    return r == std::gcd(r, count) ? q + 1 : windows::below_largest(q + 1, q + 2);
  }
};

void check_adaptive(std::string_view op, const three& image, const three& pooled) {
  check_axes(op, "size", image, 0);
  check_axes(op, "size", pooled, 0);
}
void check_adaptive_max(std::string_view op, const sizes& x, const three& pooled) {
  if (element_count(pooled_shape(op, x, pooled)) == 0) return;
  const three image = spatial(op, x);
  for (std::size_t d = 0; d < 3; ++d) {
    if (image[d] == 0) {
      fail(error_site::empty_window, op, axis_names[d], "at least one element of the image in every window",
           "none in window 0 of " + std::to_string(pooled[d]));
    }
  }
}

}  // namespace

specs infer_adaptive_pool(std::string_view op, std::span<const ops::operand> out, inputs in, const per_axis& size) {
  const sizes& x = image_shape(op, "x", in[0]);
  const three pooled = of_axes(op, "size", size, 1, {1, 1, 1});
  check_adaptive(op, spatial(op, x), pooled);
  if (op.starts_with("adaptive_max")) check_adaptive_max(op, x, pooled);
  return pooled_specs(out, in[0], pooled_shape(op, x, pooled));
}
tensor_spec infer_adaptive_max_pool_backward(std::string_view op, inputs in) {
  check_format(op, "x", in[1], "g", in[0]);
  const three pooled = spatial(op, image_shape(op, "g", in[0]));
  const sizes& x = image_shape(op, "x", in[1]);
  check_adaptive(op, spatial(op, x), pooled);
  check_adaptive_max(op, x, pooled);
  check_gradient(op, in[0], pooled_shape(op, x, pooled));
  return {in[0].type(), x};
}
tensor_spec infer_adaptive_avg_pool_backward(std::string_view op, inputs in, const per_axis& size) {
  const sizes& g = image_shape(op, "g", in[0]);
  const three image = of_axes(op, "size", size, 1, {1, 1, 1});
  check_adaptive(op, image, spatial(op, g));
  return {in[0].type(), with_axes(op, g[0], g[1], image)};
}

pool_plan make_adaptive_pool(std::string_view op, inputs in, outputs out) {
  using enum ops::op_id;
  const bool of_max = op.starts_with("adaptive_max"), backward = op.ends_with("backward");
  const const_tensor_view result(out[0]);
  const const_tensor_view& image = !backward ? in[0] : of_max ? in[1] : result;
  const const_tensor_view& pooled = backward ? in[0] : result;
  const three size = spatial(op, image.shape()), count = spatial(op, pooled.shape());
  const adaptive_windows w[3] = {{size[0], count[0]}, {size[1], count[1]}, {size[2], count[2]}};
  const bool regular = w[0].regular() && w[1].regular() && w[2].regular();
  const three kernel = regular ? three{size[0] / count[0], size[1] / count[1], size[2] / count[2]} : three{1, 1, 1};
  pool_plan p = plan_pool(
      op, of_max ? (backward ? max_pool2d_backward : max_pool2d) : (backward ? avg_pool2d_backward : avg_pool2d),
      kernel, image, pooled, out[0]);
  p.adaptive = !regular;
  p.x = backward && !of_max ? nullptr : image.data();
  p.g = backward ? in[0].data() : nullptr;
  if (out.size() > 1) set_indices(p, out[1]);
  if (backward && !of_max) p.common = common_of({w[0].common(), w[1].common(), w[2].common()});
  return p;
}

}  // namespace repdl::plan
