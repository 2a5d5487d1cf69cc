// conv2d and its gradients as the products of conv.hpp.
#include <algorithm>
#include <numeric>

#include "backends/cuda/product/conv.hpp"

namespace repdl::cuda::conv {
namespace {

std::int64_t magnitude(std::int64_t x) { return x < 0 ? -x : x; }

using plan::depth_part;

// The numbers of a channel, a place in depth, a kernel row and a kernel column, in the order (channel, depth, row, column) or (depth, row,
// column, channel). Without depth the first number of four is missing.
struct order {
  int position[3];  // of channel, row, column
  int depth;
  order(bool channel_last, bool deep)
      : position{channel_last ? 3
                 : deep       ? 0
                              : 1,
                 channel_last ? 1 : 2, channel_last ? 2 : 3},
        depth(!deep          ? -1
              : channel_last ? 0
                             : 1) {}
  radix sizes(std::int64_t channels, std::int64_t taps, std::int64_t kh, std::int64_t kw) const {
    std::int64_t at[4] = {};
    set(at, std::max<std::int64_t>(channels, 1), taps, std::max<std::int64_t>(kh, 1), std::max<std::int64_t>(kw, 1));
    return {depth < 0 ? 0 : at[1], at[2], at[3]};
  }
  void set(std::int64_t (&to)[4], std::int64_t channel, std::int64_t of_depth, std::int64_t row,
           std::int64_t col) const {
    to[position[0]] = channel;
    to[position[1]] = row;
    to[position[2]] = col;
    if (depth >= 0) to[depth] = of_depth;
  }
};

void set(std::int64_t (&to)[4], std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  to[0] = a;
  to[1] = b;
  to[2] = c;
  to[3] = d;
}

// Pixels (sample, depth, y, x) of a tensor, so many pixels apart.
void pixels(side& s, const plan::conv_plan::tensor& t, const depth_part& z, std::int64_t deep, std::int64_t down,
            std::int64_t across) {
  const bool is_deep = z.windows > 1;
  set(s.offset, is_deep ? t.stride[0] : 0, is_deep ? deep * t.stride[2] : t.stride[0], down * t.stride[3],
      across * t.stride[4]);
}
radix pixel_sizes(const depth_part& z, std::int64_t height, std::int64_t width) {
  return {z.windows > 1 ? z.windows : 0, std::max<std::int64_t>(height, 1), std::max<std::int64_t>(width, 1)};
}

// Whether the order of the terms should have channels innermost; the chain's order is given.
bool channels_last(const plan::conv_plan& c, const plan::conv_plan::tensor& t, std::int64_t channels) {
  return c.accumulate == accumulate::exact && channels > 1 && magnitude(t.stride[1]) < magnitude(t.stride[4]);
}

void describe_forward(problem& p, const plan::conv_plan& c, const depth_part& z) {
  view& v = p.base;
  const plan::window_axis &h = c.axis[1], &w = c.axis[2];
  const order o(channels_last(c, c.image, c.c), z.taps > 1);
  v.m = c.o;
  v.n = c.n * z.windows * h.windows * w.windows;
  v.k = c.c * z.taps * h.kernel * w.kernel;
  v.row = {0, 1, 1};
  v.col = pixel_sizes(z, h.windows, w.windows);
  v.term = o.sizes(c.c, z.taps, h.kernel, w.kernel);
  std::copy_n(o.position, 3, p.position);
  v.a.data = c.kernel.data;
  v.a.outer.offset[1] = c.kernel.stride[0];
  v.a.inner.offset0 = z.kernel.first * c.kernel.stride[2];
  o.set(v.a.inner.offset, c.kernel.stride[1], z.kernel.tap * c.kernel.stride[2], c.kernel.stride[3],
        c.kernel.stride[4]);
  v.b.data = c.image.data;
  v.b.h = h.image;
  v.b.w = w.image;
  pixels(v.b.outer, c.image, z, z.image.window, h.stride, w.stride);
  v.b.outer.offset0 = z.image.first * c.image.stride[2] - h.before * c.image.stride[3] - w.before * c.image.stride[4];
  set(v.b.outer.y, 0, 0, h.stride, 0);
  set(v.b.outer.x, 0, 0, 0, w.stride);
  v.b.outer.y0 = -h.before;
  v.b.outer.x0 = -w.before;
  o.set(v.b.inner.offset, c.image.stride[1], z.image.tap * c.image.stride[2], h.dilation * c.image.stride[3],
        w.dilation * c.image.stride[4]);
  o.set(v.b.inner.y, 0, 0, h.dilation, 0);
  o.set(v.b.inner.x, 0, 0, 0, w.dilation);
  v.out.outer.offset[1] = c.result.stride[1];
  v.out.inner.offset0 = z.result.first * c.result.stride[2];
  pixels(v.out.inner, c.result, z, z.result.window, 1, 1);
  v.bias = c.bias;
  v.bias_stride = c.bias_stride;
  p.group_a = c.o * c.kernel.stride[0];
  p.group_b = c.c * c.image.stride[1];
  p.group_out = c.o * c.result.stride[1];
  p.group_bias = c.o * c.bias_stride;
}

void describe_grad_weight(problem& p, const plan::conv_plan& c, const depth_part& z) {
  view& v = p.base;
  const plan::window_axis &h = c.axis[1], &w = c.axis[2];
  const order o(channels_last(c, c.image, c.c), z.taps > 1);
  v.m = c.o;
  v.n = c.c * z.taps * h.kernel * w.kernel;
  v.k = c.n * z.windows * h.windows * w.windows;
  v.row = {0, 1, 1};
  v.col = o.sizes(c.c, z.taps, h.kernel, w.kernel);
  v.term = pixel_sizes(z, h.windows, w.windows);
  v.a.data = c.result.data;
  v.a.outer.offset[1] = c.result.stride[1];
  v.a.inner.offset0 = z.result.first * c.result.stride[2];
  pixels(v.a.inner, c.result, z, z.result.window, 1, 1);
  v.b.data = c.image.data;
  v.b.h = h.image;
  v.b.w = w.image;
  o.set(v.b.outer.offset, c.image.stride[1], z.image.tap * c.image.stride[2], h.dilation * c.image.stride[3],
        w.dilation * c.image.stride[4]);
  v.b.outer.offset0 = z.image.first * c.image.stride[2] - h.before * c.image.stride[3] - w.before * c.image.stride[4];
  o.set(v.b.outer.y, 0, 0, h.dilation, 0);
  o.set(v.b.outer.x, 0, 0, 0, w.dilation);
  v.b.outer.y0 = -h.before;
  v.b.outer.x0 = -w.before;
  pixels(v.b.inner, c.image, z, z.image.window, h.stride, w.stride);
  set(v.b.inner.y, 0, 0, h.stride, 0);
  set(v.b.inner.x, 0, 0, 0, w.stride);
  v.out.outer.offset[1] = c.kernel.stride[0];
  v.out.inner.offset0 = z.kernel.first * c.kernel.stride[2];
  o.set(v.out.inner.offset, c.kernel.stride[1], z.kernel.tap * c.kernel.stride[2], c.kernel.stride[3],
        c.kernel.stride[4]);
  p.group_a = c.o * c.result.stride[1];
  p.group_b = c.c * c.image.stride[1];
  p.group_out = c.o * c.kernel.stride[0];
}

phase_axis axis_of(const plan::window_axis& a) {
  const std::int64_t common = std::gcd(a.stride, a.dilation);
  return {a.image, a.kernel, a.stride, a.dilation, a.before, a.stride / common, a.dilation / common};
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Phase (ph, pw) has image rows ph + q stride. A tap r meets them if ph + before - r dilation is y0 stride: with the
// result's row y0 + q. From the first such r on, every tap_step-th does, `back` rows further up each time.
void describe_grad_input(problem& p, const plan::conv_plan& c, const depth_part& z) {
  view& v = p.base;
  const plan::window_axis &h = c.axis[1], &w = c.axis[2];
  const order o(channels_last(c, c.result, c.o), z.taps > 1);
  std::copy_n(o.position, 3, p.position);
  p.axis_h = axis_of(h);
  p.axis_w = axis_of(w);
  p.phases_h = std::min(h.stride, h.image);
  p.phases_w = std::min(w.stride, w.image);
  p.depth_taps = z.taps;
  p.phased = true;
  v.m = c.c;
  v.n = c.n * z.windows;
  v.k = c.o;
  v.row = {0, 1, 1};
  v.col = pixel_sizes(z, 1, 1);
  v.term = o.sizes(c.o, z.taps, 1, 1);
  v.a.data = c.kernel.data;
  v.a.outer.offset[1] = c.kernel.stride[1];
  v.a.inner.offset0 = z.kernel.first * c.kernel.stride[2];
  o.set(v.a.inner.offset, c.kernel.stride[0], z.kernel.tap * c.kernel.stride[2], c.kernel.stride[3],
        c.kernel.stride[4]);
  v.b.data = c.result.data;
  v.b.h = h.windows;
  v.b.w = w.windows;
  v.b.outer.offset0 = z.result.first * c.result.stride[2];
  pixels(v.b.outer, c.result, z, z.result.window, 1, 1);
  set(v.b.outer.y, 0, 0, 1, 0);
  set(v.b.outer.x, 0, 0, 0, 1);
  o.set(v.b.inner.offset, c.result.stride[1], z.result.tap * c.result.stride[2], -p.axis_h.back * c.result.stride[3],
        -p.axis_w.back * c.result.stride[4]);
  o.set(v.b.inner.y, 0, 0, -p.axis_h.back, 0);
  o.set(v.b.inner.x, 0, 0, 0, -p.axis_w.back);
  v.out.outer.offset[1] = c.image.stride[1];
  v.out.inner.offset0 = z.image.first * c.image.stride[2];
  pixels(v.out.inner, c.image, z, z.image.window, h.stride, w.stride);
  p.group_a = c.o * c.kernel.stride[0];
  p.group_b = c.o * c.result.stride[1];
  p.group_out = c.c * c.image.stride[1];
}

// All phases as rows of one product: every row takes the union of the phases' taps, in the result's coordinates.
// Dilation 1 only.
struct union_of_taps {
  std::int64_t first, count;
  union_of_taps(const phase_axis& a)
      : first(-floor_div(a.kernel - 1 - a.before, a.stride)),
        count(floor_div(a.before + std::min(a.stride, a.size) - 1, a.stride) - first + 1) {
    count = std::max<std::int64_t>(count, 0);
  }
};

void merge_phases(problem& p, const plan::conv_plan& c, const depth_part& z) {
  view& v = p.base;
  const plan::window_axis &ah = c.axis[1], &aw = c.axis[2];
  const union_of_taps h(p.axis_h);
  const union_of_taps w(p.axis_w);
  p.phased = false;
  v.m = p.phases_h * p.phases_w * c.c;
  v.row = {0, p.phases_w, c.c};
  v.col = pixel_sizes(z, ceil_div(ah.image, ah.stride), ceil_div(aw.image, aw.stride));
  v.n = c.n * z.windows * v.col.d2 * v.col.d3;
  v.k = c.o * z.taps * h.count * w.count;
  const order o(p.position[0] == 3, z.taps > 1);
  v.term = o.sizes(c.o, z.taps, h.count, w.count);
  // Tap r = ph + before - (first + j) stride, present if it is one of the kernel's.
  set(v.a.outer.offset, 0, c.kernel.stride[3], c.kernel.stride[4], c.kernel.stride[1]);
  set(v.a.outer.y, 0, 1, 0, 0);
  set(v.a.outer.x, 0, 0, 1, 0);
  v.a.outer.y0 = ah.before - h.first * ah.stride;
  v.a.outer.x0 = aw.before - w.first * aw.stride;
  v.a.outer.offset0 = v.a.outer.y0 * c.kernel.stride[3] + v.a.outer.x0 * c.kernel.stride[4];
  o.set(v.a.inner.offset, c.kernel.stride[0], z.kernel.tap * c.kernel.stride[2], -ah.stride * c.kernel.stride[3],
        -aw.stride * c.kernel.stride[4]);
  o.set(v.a.inner.y, 0, 0, -ah.stride, 0);
  o.set(v.a.inner.x, 0, 0, 0, -aw.stride);
  v.a.h = ah.kernel;
  v.a.w = aw.kernel;
  v.b.outer.y0 = h.first;
  v.b.outer.x0 = w.first;
  v.b.outer.offset0 += h.first * c.result.stride[3] + w.first * c.result.stride[4];
  o.set(v.b.inner.offset, c.result.stride[1], z.result.tap * c.result.stride[2], c.result.stride[3],
        c.result.stride[4]);
  o.set(v.b.inner.y, 0, 0, 1, 0);
  o.set(v.b.inner.x, 0, 0, 0, 1);
  // The last pixels of an axis need not exist in every phase.
  v.out.h = ah.image;
  v.out.w = aw.image;
  set(v.out.outer.offset, 0, c.image.stride[3], c.image.stride[4], c.image.stride[1]);
  set(v.out.outer.y, 0, 1, 0, 0);
  set(v.out.outer.x, 0, 0, 1, 0);
  set(v.out.inner.y, 0, 0, ah.stride, 0);
  set(v.out.inner.x, 0, 0, 0, aw.stride);
  p.phases_h = 1;
  p.phases_w = 1;
}

bool merging_pays(const problem& p, const plan::conv_plan& c, const depth_part& z) {
  const plan::window_axis &h = c.axis[1], &w = c.axis[2];
  const std::int64_t phases = p.phases_h * p.phases_w;
  // Rounded up, the taps of all phases are more than the kernel's: their product with the channels must not wrap.
  if (phases == 1 || phases * c.c > 4096 || c.o >= std::int64_t{1} << 31 || h.dilation != 1 || w.dilation != 1)
    return false;
  const std::int64_t columns =
      std::max<std::int64_t>(c.n * z.windows * ceil_div(h.image, h.stride) * ceil_div(w.image, w.stride), 1);
  const auto cost = [&](std::int64_t rows, std::int64_t taps) {
    return tile_cost(rows, columns) * static_cast<double>(taps);
  };
  return cost(phases * c.c, union_of_taps(p.axis_h).count * union_of_taps(p.axis_w).count) <
         cost(c.c, h.kernel * w.kernel);
}

}  // namespace

problem describe(const plan::conv_plan& c, const depth_part& z) {
  problem p{};
  view& v = p.base;
  v.a.h = v.a.w = v.b.h = v.b.w = v.out.h = v.out.w = 1;
  v.result = c.out;
  p.out_type = c.out_type;
  p.groups = c.groups;
  p.phases_h = p.phases_w = 1;
  switch (c.computed) {
    case plan::conv_plan::role::result:
      describe_forward(p, c, z);
      break;
    case plan::conv_plan::role::kernel:
      describe_grad_weight(p, c, z);
      break;
    case plan::conv_plan::role::image:
      describe_grad_input(p, c, z);
      if (c.accumulate == accumulate::exact && merging_pays(p, c, z)) {
        merge_phases(p, c, z);
      } else if (p.phases_h * p.phases_w == 1) {
        specialise(v, p, 0);
        p.phased = false;
      }
      break;
  }
  p.m = v.m;
  p.n = v.n;
  p.k = v.k;
  if (p.phased) {
    const auto most = [](const phase_axis& a) { return ceil_div(a.kernel, a.tap_step); };
    p.n *= ceil_div(p.axis_h.size, p.axis_h.stride) * ceil_div(p.axis_w.size, p.axis_w.stride);
    p.k *= p.depth_taps * most(p.axis_h) * most(p.axis_w);
  }
  p.marks.words_per_row = ceil_div(p.n, 32);
  return p;
}

// ------------------------------------------------------------------------------------------------- how to load

namespace {

struct sizes4 {
  std::int64_t d[4];
  sizes4(std::int64_t total, radix r) : d{1, r.d1, r.d2, r.d3} {
    const std::int64_t rest = total / (r.d2 * r.d3);
    if (r.d1 == 0) {
      d[1] = rest;
    } else {
      d[0] = rest / r.d1;
    }
  }
};

std::int64_t innermost_step(const side& s, const sizes4& sizes) {
  for (int i = 3; i >= 0; --i) {
    if (sizes.d[i] > 1) return magnitude(s.offset[i]);
  }
  return std::int64_t{1} << 40;
}

struct range {
  std::int64_t low = 0, high = 0;
  void add(const std::int64_t (&step)[4], std::int64_t first, const sizes4& sizes) {
    low += first;
    high += first;
    for (int i = 0; i < 4; ++i) {
      const std::int64_t reach = step[i] * std::max<std::int64_t>(sizes.d[i] - 1, 0);
      (reach < 0 ? low : high) += reach;
    }
  }
};

// Four consecutive indices of `fast` are four numbers of 16 aligned bytes, which are present or absent together.
bool quads(const operand& t, const side& fast, const sizes4& fast_sizes, const side& other, const sizes4& other_sizes,
           std::int64_t group_step, std::int64_t groups) {
  std::int64_t run = 1;
  int i = 3;
  for (; i >= 0; --i) {
    if (fast_sizes.d[i] == 1) continue;
    if (fast.offset[i] != run) break;
    run *= fast_sizes.d[i];
  }
  if (run % 4 != 0) return false;
  std::int64_t steps = fast.offset0 | other.offset0;
  for (; i >= 0; --i) {
    if (fast_sizes.d[i] > 1) steps |= fast.offset[i];
  }
  for (int d = 0; d < 4; ++d) {
    if (other_sizes.d[d] > 1) steps |= other.offset[d];
  }
  if (groups > 1) steps |= group_step;
  if (steps % 4 != 0 || reinterpret_cast<std::uintptr_t>(t.data) % 16 != 0) return false;
  if (fast_sizes.d[3] % 4 == 0 && fast.y[3] == 0 && fast.x[3] == 0) return true;
  range y;
  range x;
  y.add(fast.y, fast.y0, fast_sizes);
  y.add(other.y, other.y0, other_sizes);
  x.add(fast.x, fast.x0, fast_sizes);
  x.add(other.x, other.x0, other_sizes);
  return y.low >= 0 && y.high < t.h && x.low >= 0 && x.high < t.w;
}

}  // namespace

loading plan_loading(const problem& p, const plan::conv_plan& c) {
  view v = p.base;
  if (p.phased) {  // the sizes only have to tell which indices vary
    v.col.d2 = ceil_div(p.axis_h.size, p.axis_h.stride);
    v.col.d3 = ceil_div(p.axis_w.size, p.axis_w.stride);
    v.n = p.n;
    const order o(p.position[0] == 3, p.depth_taps > 1);
    v.term = o.sizes(c.o, p.depth_taps, ceil_div(p.axis_h.kernel, p.axis_h.tap_step),
                     ceil_div(p.axis_w.kernel, p.axis_w.tap_step));
    v.k = p.k;
  }
  const sizes4 row(v.m, v.row);
  const sizes4 col(v.n, v.col);
  const sizes4 term(v.k, v.term);
  loading l{};
  l.a_k_fast = innermost_step(v.a.inner, term) <= innermost_step(v.a.outer, row);
  l.b_k_fast = innermost_step(v.b.inner, term) <= innermost_step(v.b.outer, col);
  if (p.phased) return l;
  l.a_quads = l.a_k_fast ? quads(v.a, v.a.inner, term, v.a.outer, row, p.group_a, p.groups)
                         : quads(v.a, v.a.outer, row, v.a.inner, term, p.group_a, p.groups);
  l.b_quads = l.b_k_fast ? quads(v.b, v.b.inner, term, v.b.outer, col, p.group_b, p.groups)
                         : quads(v.b, v.b.outer, col, v.b.inner, term, p.group_b, p.groups);
  return l;
}

bool within_reach(const problem& p, const plan::conv_plan& c) {
  const std::int64_t largest = greatest_coordinate;
  const auto fits = [&](std::int64_t a, std::int64_t b) { return a < largest && b < largest && a * b < largest; };
  const auto near = [&](const plan::window_axis& a) {
    return a.image < largest && a.windows < largest && a.before < largest / 4 && fits(a.kernel, a.dilation) &&
           fits(a.windows + 1, a.stride) && fits(a.kernel, a.stride) &&
           a.kernel * a.dilation + a.image + a.before < largest / 2;
  };
  return p.k < (std::int64_t{1} << 34) && c.n < largest && c.c < largest && c.o < largest && near(c.axis[0]) &&
         near(c.axis[1]) && near(c.axis[2]);
}

}  // namespace repdl::cuda::conv
