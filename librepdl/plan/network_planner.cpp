// Plans of convolution and pooling.
#include <numeric>

#include "librepdl/plan/planner.hpp"

namespace repdl::plan {
namespace {

constexpr std::int64_t largest = std::int64_t{1}
                                 << 31;  // of strides, dilations, paddings, windows: products stay in int64

void check_pair(std::string_view op, std::string_view name, const pair& v, std::int64_t least) {
  if (v.h < least || v.w < least || v.h >= largest || v.w >= largest) {
    fail(error_site::attribute_value, op, name, "two sizes in [" + std::to_string(least) + ", 2^31)",
         std::to_string(v.h) + "," + std::to_string(v.w));
  }
}

[[noreturn]] void wrong_count(std::string_view op, std::string_view name, std::string_view expected,
                              const sizes& given) {
  fail(error_site::attribute_value, op, name, expected, std::to_string(given.size()));
}

// Of the axes of a plane.
pair of_plane(std::string_view op, std::string_view name, const per_axis& v, const pair& if_none) {
  const sizes& list = v.list();
  if (list.empty()) return if_none;
  if (list.size() > 2) wrong_count(op, name, "1 or 2 integers", list);
  return {list[0], list[list.size() - 1]};
}
ops::sides sides_of_plane(std::string_view op, const per_axis& padding) {
  const sizes& list = padding.list();
  if (list.size() == 3 || list.size() > 4) wrong_count(op, "padding", "1, 2 or 4 integers", list);
  if (list.size() == 4) return {list[0], list[1], list[2], list[3]};
  const pair both = of_plane(op, "padding", padding, {0, 0});
  return {both.h, both.h, both.w, both.w};
}

void check_padding(std::string_view op, const ops::sides& p) {
  check_pair(op, "padding", {p.top, p.left}, 0);
  check_pair(op, "padding", {p.bottom, p.right}, 0);
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

struct window_pair {
  windows h, w;
};

// Every size of a tensor of rank 4, checked.
const sizes& image_shape(std::string_view op, std::string_view name, const const_tensor_view& v) {
  check_rank(op, name, v, 4, "images (samples, channels, height, width)");
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

window_pair conv_windows(std::string_view op, const conv2d_options& a, std::int64_t h, std::int64_t w, std::int64_t kh,
                         std::int64_t kw) {
  const pair stride = of_plane(op, "stride", a.stride, {}), dilation = of_plane(op, "dilation", a.dilation, {});
  const ops::sides padding = sides_of_plane(op, a.padding);
  check_pair(op, "stride", stride, 1);
  check_pair(op, "dilation", dilation, 1);
  check_padding(op, padding);
  if (a.groups < 1 || a.groups >= largest) {
    fail(error_site::attribute_value, op, "groups", "a number in [1, 2^31)", std::to_string(a.groups));
  }
  check_pair(op, "kernel", {kh, kw}, 1);
  check_pair(op, "size", {h, w}, 0);
  return {{op, "height", h, kh, stride.h, dilation.h, padding.top, padding.bottom},
          {op, "width", w, kw, stride.w, dilation.w, padding.left, padding.right}};
}

void check_groups(std::string_view op, std::string_view name, std::int64_t channels, std::int64_t groups) {
  const auto want = [&] { return "a multiple of " + std::to_string(groups) + " channels (groups)"; };
  expect_channels(op, name, want, channels % groups == 0, channels);
}

// Strides are multiplied with sizes. One that no step is made along may be any number: a huge one becomes 0.
conv_plan::tensor4 role(const const_tensor_view& v, bool is_output) {
  conv_plan::tensor4 t{is_output ? nullptr : v.data(), {}};
  for (int i = 0; i < 4; ++i) {
    const std::int64_t stride = v.strides()[i];
    const bool unused = v.count() == 0 || v.shape()[i] == 1;
    t.stride[static_cast<std::size_t>(i)] = unused && (stride > largest || stride < -largest) ? 0 : stride;
  }
  return t;
}

}  // namespace

tensor_spec infer_conv(inputs in, const conv2d_options& a) {
  constexpr std::string_view op = "conv2d";
  const dtype type = conv_type(op, {"x", "w", "bias"}, in, a);
  const sizes& x = image_shape(op, "x", in[0]);
  check_rank(op, "w", in[1], 4, "kernels (output channels, input channels / groups, height, width)");
  const sizes& w = in[1].shape();
  const window_pair window = conv_windows(op, a, x[2], x[3], w[2], w[3]);
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
  return {type, {x[0], w[0], window.h.count(), window.w.count()}};
}

tensor_spec infer_conv(inputs in, const ops::conv2d_grad_input_attrs& a) {
  constexpr std::string_view op = "conv2d_grad_input";
  const dtype type = conv_type(op, {"g", "w"}, in, a);
  const sizes& g = image_shape(op, "g", in[0]);
  check_rank(op, "w", in[1], 4, "kernels (output channels, input channels / groups, height, width)");
  const sizes& w = in[1].shape();
  const window_pair window = conv_windows(op, a, a.size->h, a.size->w, w[2], w[3]);
  check_groups(op, "w", w[0], a.groups);
  const auto want = [&] { return std::to_string(w[0]) + " channels, one for each output channel of w"; };
  expect_channels(op, "g", want, g[1] == w[0], g[1]);
  expect_size(op, "g", "height", window.h.count(), g[2]);
  expect_size(op, "g", "width", window.w.count(), g[3]);
  return {type, {g[0], element_count({w[1], a.groups}), a.size->h, a.size->w}};
}

tensor_spec infer_conv(inputs in, const ops::conv2d_grad_weight_attrs& a) {
  constexpr std::string_view op = "conv2d_grad_weight";
  const dtype type = conv_type(op, {"g", "x"}, in, a);
  const sizes& g = image_shape(op, "g", in[0]);
  const sizes& x = image_shape(op, "x", in[1]);
  const window_pair window = conv_windows(op, a, x[2], x[3], a.kernel->h, a.kernel->w);
  check_groups(op, "g", g[1], a.groups);
  check_groups(op, "x", x[1], a.groups);
  expect_size(op, "g", "samples", x[0], g[0]);
  expect_size(op, "g", "height", window.h.count(), g[2]);
  expect_size(op, "g", "width", window.w.count(), g[3]);
  return {type, {g[1], x[1] / a.groups, a.kernel->h, a.kernel->w}};
}

conv_plan make_conv(ops::op_id op, inputs in, const tensor_view& out, const conv2d_options& a) {
  const const_tensor_view result_out(out);
  const bool forward = op == ops::op_id::conv2d;
  const bool grad_input = op == ops::op_id::conv2d_grad_input;
  const const_tensor_view& image = forward ? in[0] : grad_input ? result_out : in[1];
  const const_tensor_view& kernel = forward || grad_input ? in[1] : result_out;
  const const_tensor_view& result = forward ? result_out : in[0];
  conv_plan p{};
  p.op = op;
  p.type = in[0].type();
  p.out_type = out.type();
  p.accumulate = a.accumulate;
  p.groups = a.groups;
  p.n = image.shape()[0];
  p.c = kernel.shape()[1];
  p.o = kernel.shape()[0] / a.groups;
  p.h = image.shape()[2];
  p.w = image.shape()[3];
  p.kh = kernel.shape()[2];
  p.kw = kernel.shape()[3];
  p.oh = result.shape()[2];
  p.ow = result.shape()[3];
  p.stride = of_plane("", "stride", a.stride, {});
  p.dilation = of_plane("", "dilation", a.dilation, {});
  const ops::sides padding = sides_of_plane("", a.padding);
  p.top = padding.top;
  p.left = padding.left;
  p.image = role(image, grad_input);
  p.kernel = role(kernel, !forward && !grad_input);
  p.result = role(result, forward);
  if (forward && in.size() > 2 && in[2]) {
    p.bias = in[2].data();
    p.bias_stride = in[2].strides()[0];
  }
  p.out = out.data();
  return p;
}

tensor_spec infer_conv_grad_bias(inputs in) { return {in[0].type(), {image_shape("conv2d_grad_bias", "g", in[0])[1]}}; }

reduce_plan make_conv_grad_bias(inputs in, const tensor_view& out) {
  return make_reduce(ops::op_id::sum, in, out, {.axis = {0, 2, 3}});
}

// -------------------------------------------------------------------------------------------------------- pooling

namespace {

struct pooling {
  std::string_view op;
  pair kernel, stride, dilation;
  ops::sides padding;
  bool ceil_mode;

  pooling(std::string_view name, const max_pool2d_options& a)
      : op(name),
        kernel(of_plane(op, "kernel", a.kernel, {})),
        stride(of_plane(op, "stride", a.stride, kernel)),
        dilation(of_plane(op, "dilation", a.dilation, {})),
        padding(sides_of_plane(op, a.padding)),
        ceil_mode(a.ceil_mode) {
    check();
  }
  pooling(std::string_view name, const avg_pool2d_options& a)
      : op(name),
        kernel(of_plane(op, "kernel", a.kernel, {})),
        stride(of_plane(op, "stride", a.stride, kernel)),
        padding(sides_of_plane(op, a.padding)),
        ceil_mode(a.ceil_mode) {
    check();
    if (a.divisor_override <= -largest || a.divisor_override >= largest) {
      fail(error_site::attribute_value, op, "divisor_override", "a number in (-2^31, 2^31)",
           std::to_string(a.divisor_override));
    }
  }
  window_pair over(std::int64_t h, std::int64_t w) const {
    check_pair(op, "size", {h, w}, 0);
    return {{op, "height", h, kernel.h, stride.h, dilation.h, padding.top, padding.bottom, ceil_mode},
            {op, "width", w, kernel.w, stride.w, dilation.w, padding.left, padding.right, ceil_mode}};
  }

 private:
  void check() const {
    check_pair(op, "kernel", kernel, 1);
    check_pair(op, "stride", stride, 1);
    check_pair(op, "dilation", dilation, 1);
    check_padding(op, padding);
  }
};

sizes pooled_shape(const sizes& image, const window_pair& w) { return {image[0], image[1], w.h.count(), w.w.count()}; }

sizes max_pooled(std::string_view op, const const_tensor_view& x, const max_pool2d_options& a) {
  const sizes& image = image_shape(op, "x", x);
  const window_pair w = pooling(op, a).over(image[2], image[3]);
  const sizes shape = pooled_shape(image, w);
  if (element_count(shape) != 0) {
    w.h.check_not_empty();
    w.w.check_not_empty();
  }
  return shape;
}

// Of windows side by side, without padding.
pool_plan plan_pool(ops::op_id op, pair kernel, const const_tensor_view& image, const const_tensor_view& pooled,
                    const tensor_view& out) {
  pool_plan p{};
  p.op = op;
  p.type = out.type();
  p.n = image.shape()[0];
  p.c = image.shape()[1];
  p.h = image.shape()[2];
  p.w = image.shape()[3];
  p.oh = pooled.shape()[2];
  p.ow = pooled.shape()[3];
  p.kh = kernel.h;
  p.kw = kernel.w;
  p.stride = kernel;
  p.padded = {p.h, p.w};
  p.common = 1;
  for (int i = 0; i < 4; ++i) {
    const auto d = static_cast<std::size_t>(i);
    p.image_stride[d] = image.strides()[i];
    p.pooled_stride[d] = pooled.strides()[i];
    p.out_stride[d] = out.strides()[i];
  }
  p.out = out.data();
  return p;
}
pool_plan plan_pool(ops::op_id op, const pooling& q, const const_tensor_view& image, const const_tensor_view& pooled,
                    const tensor_view& out) {
  pool_plan p = plan_pool(op, q.kernel, image, pooled, out);
  p.stride = q.stride;
  p.dilation = q.dilation;
  p.top = q.padding.top;
  p.left = q.padding.left;
  const window_pair w = q.over(p.h, p.w);
  p.padded = {w.h.padded(), w.w.padded()};
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
  for (int i = 0; i < 4; ++i) p.indices_stride[static_cast<std::size_t>(i)] = indices.strides()[i];
}

// What the sums of an average are divided by.
void set_divisors(pool_plan& p, const pooling& q, const avg_pool2d_options& a) {
  p.count_include_pad = a.count_include_pad;
  p.negated = a.divisor_override < 0;
  const window_pair w = q.over(p.h, p.w);
  const bool whole = w.h.padded_taps(p.oh - 1) == p.kh && w.w.padded_taps(p.ow - 1) == p.kw;
  p.divisor = a.divisor_override != 0        ? (p.negated ? -a.divisor_override : a.divisor_override)
              : a.count_include_pad && whole ? p.kh * p.kw
                                             : 0;
}
// Of a plan's windows: the least common multiple of their divisors, or 0 where it is too large to be of use.
std::int64_t common_divisor(const pool_plan& p, const window_pair& w) {
  if (p.divisor != 0) return p.divisor < windows::largest_common ? p.divisor : 0;
  return p.count_include_pad ? windows::below_largest(w.h.common_padded(), w.w.common_padded())
                             : windows::below_largest(w.h.common(), w.w.common());
}

}  // namespace

specs infer_max_pool(std::string_view op, std::span<const ops::operand> out, inputs in, const max_pool2d_options& a) {
  return pooled_specs(out, in[0], max_pooled(op, in[0], a));
}
tensor_spec infer_max_pool_backward(inputs in, const max_pool2d_options& a) {
  check_format("max_pool2d_backward", "x", in[1], "g", in[0]);
  check_gradient("max_pool2d_backward", in[0], max_pooled("max_pool2d_backward", in[1], a));
  return {in[0].type(), in[1].shape()};
}
tensor_spec infer_avg_pool(inputs in, const avg_pool2d_options& a) {
  const sizes& x = image_shape("avg_pool2d", "x", in[0]);
  return {in[0].type(), pooled_shape(x, pooling("avg_pool2d", a).over(x[2], x[3]))};
}
tensor_spec infer_avg_pool_backward(inputs in, const ops::avg_pool2d_backward_attrs& a) {
  constexpr std::string_view op = "avg_pool2d_backward";
  const sizes& g = image_shape(op, "g", in[0]);
  const sizes image{g[0], g[1], a.size->h, a.size->w};
  const window_pair w = pooling(op, a).over(a.size->h, a.size->w);
  check_gradient(op, in[0], pooled_shape(image, w));
  return {in[0].type(), image};
}

pool_plan make_max_pool(ops::op_id op, inputs in, outputs out, const max_pool2d_options& a) {
  const bool backward = op == ops::op_id::max_pool2d_backward;
  const const_tensor_view result(out[0]);
  const const_tensor_view& x = backward ? in[1] : in[0];
  pool_plan p = plan_pool(backward ? op : ops::op_id::max_pool2d, pooling("", a), x, backward ? in[0] : result, out[0]);
  p.x = x.data();
  p.g = backward ? in[0].data() : nullptr;
  if (out.size() > 1) set_indices(p, out[1]);
  return p;
}
pool_plan make_avg_pool(inputs in, const tensor_view& out, const avg_pool2d_options& a) {
  const pooling q("", a);
  pool_plan p = plan_pool(ops::op_id::avg_pool2d, q, in[0], out, out);
  p.x = in[0].data();
  set_divisors(p, q, a);
  return p;
}
pool_plan make_avg_pool_backward(inputs in, const tensor_view& out, const ops::avg_pool2d_backward_attrs& a) {
  const pooling q("", a);
  pool_plan p = plan_pool(ops::op_id::avg_pool2d_backward, q, out, in[0], out);
  p.g = in[0].data();
  set_divisors(p, q, a);
  p.common = common_divisor(p, q.over(p.h, p.w));
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

void check_adaptive(std::string_view op, pair image, pair pooled) {
  check_pair(op, "size", image, 0);
  check_pair(op, "size", pooled, 0);
}
void check_adaptive_max(std::string_view op, const sizes& x, pair pooled) {
  if (element_count({x[0], x[1], pooled.h, pooled.w}) == 0) return;
  for (const auto& [size, count, axis] : {std::tuple{x[2], pooled.h, "height"}, std::tuple{x[3], pooled.w, "width"}}) {
    if (size == 0) {
      fail(error_site::empty_window, op, axis, "at least one element of the image in every window",
           "none in window 0 of " + std::to_string(count));
    }
  }
}

}  // namespace

specs infer_adaptive_pool(std::string_view op, std::span<const ops::operand> out, inputs in, const per_axis& size) {
  const sizes& x = image_shape(op, "x", in[0]);
  const pair pooled = of_plane(op, "size", size, {});
  check_adaptive(op, {x[2], x[3]}, pooled);
  if (op.starts_with("adaptive_max")) check_adaptive_max(op, x, pooled);
  return pooled_specs(out, in[0], {x[0], x[1], pooled.h, pooled.w});
}
tensor_spec infer_adaptive_max_pool_backward(inputs in) {
  constexpr std::string_view op = "adaptive_max_pool2d_backward";
  check_format(op, "x", in[1], "g", in[0]);
  const sizes& g = image_shape(op, "g", in[0]);
  const sizes& x = image_shape(op, "x", in[1]);
  check_adaptive(op, {x[2], x[3]}, {g[2], g[3]});
  check_adaptive_max(op, x, {g[2], g[3]});
  check_gradient(op, in[0], {x[0], x[1], g[2], g[3]});
  return {in[0].type(), x};
}
tensor_spec infer_adaptive_avg_pool_backward(inputs in, pair image) {
  constexpr std::string_view op = "adaptive_avg_pool2d_backward";
  const sizes& g = image_shape(op, "g", in[0]);
  check_adaptive(op, image, {g[2], g[3]});
  return {in[0].type(), {g[0], g[1], image.h, image.w}};
}

pool_plan make_adaptive_pool(ops::op_id op, inputs in, outputs out) {
  using enum ops::op_id;
  const bool max_backward = op == adaptive_max_pool2d_backward, avg_backward = op == adaptive_avg_pool2d_backward;
  const const_tensor_view result(out[0]);
  const const_tensor_view& image = max_backward ? in[1] : avg_backward ? result : in[0];
  const const_tensor_view& pooled = max_backward || avg_backward ? in[0] : result;
  const adaptive_windows h{image.shape()[2], pooled.shape()[2]}, w{image.shape()[3], pooled.shape()[3]};
  const bool regular = h.regular() && w.regular();
  const pair kernel = regular ? pair{h.size / h.count, w.size / w.count} : pair{};
  pool_plan p = plan_pool(max_backward                ? max_pool2d_backward
                          : avg_backward              ? avg_pool2d_backward
                          : op == adaptive_avg_pool2d ? avg_pool2d
                                                      : max_pool2d,
                          kernel, image, pooled, out[0]);
  p.adaptive = !regular;
  p.x = avg_backward ? nullptr : image.data();
  p.g = max_backward || avg_backward ? in[0].data() : nullptr;
  if (out.size() > 1) set_indices(p, out[1]);
  if (avg_backward) p.common = windows::below_largest(h.common(), w.common());
  return p;
}

}  // namespace repdl::plan
