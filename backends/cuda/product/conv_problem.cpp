// conv2d and its gradients as the products of conv.hpp.
#include <algorithm>
#include <numeric>

#include "backends/cuda/product/conv.hpp"

namespace repdl::cuda::conv {
namespace {

std::int64_t magnitude(std::int64_t x) { return x < 0 ? -x : x; }

// A channel, kernel-row, kernel-column triple in the order (channel, row, column) or (row, column, channel).
struct order {
  int position[3];
  explicit order(bool channel_last) : position{channel_last ? 2 : 0, channel_last ? 0 : 1, channel_last ? 1 : 2} {}
  radix sizes(std::int64_t channels, std::int64_t kh, std::int64_t kw) const {
    const std::int64_t d[3] = {channels, kh, kw};
    std::int64_t at[3];
    for (int i = 0; i < 3; ++i) at[position[i]] = std::max<std::int64_t>(d[i], 1);
    return {at[1], at[2]};
  }
  void set(std::int64_t (&to)[3], std::int64_t channel, std::int64_t row, std::int64_t col) const {
    to[position[0]] = channel;
    to[position[1]] = row;
    to[position[2]] = col;
  }
};

void set(std::int64_t (&to)[3], std::int64_t a, std::int64_t b, std::int64_t c) {
  to[0] = a;
  to[1] = b;
  to[2] = c;
}

// Pixels (sample, y, x) of a tensor, `step` pixels apart.
void pixels(side& s, const plan::conv_plan::tensor4& t, ops::pair step) {
  set(s.offset, t.stride[0], step.h * t.stride[2], step.w * t.stride[3]);
}

// Whether the order of the terms should have channels innermost; the chain's order is given.
bool channels_last(const plan::conv_plan& c, const plan::conv_plan::tensor4& t, std::int64_t channels) {
  return c.accumulate == accumulate::exact && channels > 1 && magnitude(t.stride[1]) < magnitude(t.stride[3]);
}

void describe_forward(problem& p, const plan::conv_plan& c) {
  view& v = p.base;
  const order o(channels_last(c, c.image, c.c));
  v.m = c.o;
  v.n = c.n * c.oh * c.ow;
  v.k = c.c * c.kh * c.kw;
  v.row = {1, 1};
  v.col = {std::max<std::int64_t>(c.oh, 1), std::max<std::int64_t>(c.ow, 1)};
  v.term = o.sizes(c.c, c.kh, c.kw);
  std::copy_n(o.position, 3, p.position);
  v.a.data = c.kernel.data;
  v.a.outer.offset[0] = c.kernel.stride[0];
  o.set(v.a.inner.offset, c.kernel.stride[1], c.kernel.stride[2], c.kernel.stride[3]);
  v.b.data = c.image.data;
  v.b.h = c.h;
  v.b.w = c.w;
  pixels(v.b.outer, c.image, c.stride);
  v.b.outer.offset0 = -c.top * c.image.stride[2] - c.left * c.image.stride[3];
  set(v.b.outer.y, 0, c.stride.h, 0);
  set(v.b.outer.x, 0, 0, c.stride.w);
  v.b.outer.y0 = -c.top;
  v.b.outer.x0 = -c.left;
  o.set(v.b.inner.offset, c.image.stride[1], c.dilation.h * c.image.stride[2], c.dilation.w * c.image.stride[3]);
  o.set(v.b.inner.y, 0, c.dilation.h, 0);
  o.set(v.b.inner.x, 0, 0, c.dilation.w);
  v.out.outer.offset[0] = c.result.stride[1];
  pixels(v.out.inner, c.result, {1, 1});
  v.bias = c.bias;
  v.bias_stride = c.bias_stride;
  p.group_a = c.o * c.kernel.stride[0];
  p.group_b = c.c * c.image.stride[1];
  p.group_out = c.o * c.result.stride[1];
  p.group_bias = c.o * c.bias_stride;
}

void describe_grad_weight(problem& p, const plan::conv_plan& c) {
  view& v = p.base;
  const order o(channels_last(c, c.image, c.c));
  v.m = c.o;
  v.n = c.c * c.kh * c.kw;
  v.k = c.n * c.oh * c.ow;
  v.row = {1, 1};
  v.col = o.sizes(c.c, c.kh, c.kw);
  v.term = {std::max<std::int64_t>(c.oh, 1), std::max<std::int64_t>(c.ow, 1)};
  v.a.data = c.result.data;
  v.a.outer.offset[0] = c.result.stride[1];
  pixels(v.a.inner, c.result, {1, 1});
  v.b.data = c.image.data;
  v.b.h = c.h;
  v.b.w = c.w;
  o.set(v.b.outer.offset, c.image.stride[1], c.dilation.h * c.image.stride[2], c.dilation.w * c.image.stride[3]);
  v.b.outer.offset0 = -c.top * c.image.stride[2] - c.left * c.image.stride[3];
  o.set(v.b.outer.y, 0, c.dilation.h, 0);
  o.set(v.b.outer.x, 0, 0, c.dilation.w);
  v.b.outer.y0 = -c.top;
  v.b.outer.x0 = -c.left;
  pixels(v.b.inner, c.image, c.stride);
  set(v.b.inner.y, 0, c.stride.h, 0);
  set(v.b.inner.x, 0, 0, c.stride.w);
  v.out.outer.offset[0] = c.kernel.stride[0];
  o.set(v.out.inner.offset, c.kernel.stride[1], c.kernel.stride[2], c.kernel.stride[3]);
  p.group_a = c.o * c.result.stride[1];
  p.group_b = c.c * c.image.stride[1];
  p.group_out = c.o * c.kernel.stride[0];
}

phase_axis axis_of(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                   std::int64_t before) {
  const std::int64_t common = std::gcd(stride, dilation);
  return {size, kernel, stride, dilation, before, stride / common, dilation / common};
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Phase (ph, pw) has image rows ph + q stride. A tap r meets them if ph + before - r dilation is y0 stride: with the
// result's row y0 + q. From the first such r on, every tap_step-th does, `back` rows further up each time.
void describe_grad_input(problem& p, const plan::conv_plan& c) {
  view& v = p.base;
  const order o(channels_last(c, c.result, c.o));
  std::copy_n(o.position, 3, p.position);
  p.axis_h = axis_of(c.h, c.kh, c.stride.h, c.dilation.h, c.top);
  p.axis_w = axis_of(c.w, c.kw, c.stride.w, c.dilation.w, c.left);
  p.phases_h = std::min(c.stride.h, c.h);
  p.phases_w = std::min(c.stride.w, c.w);
  p.phased = true;
  v.m = c.c;
  v.n = c.n;
  v.k = c.o;
  v.row = {1, 1};
  v.term = o.sizes(c.o, 1, 1);
  v.a.data = c.kernel.data;
  v.a.outer.offset[0] = c.kernel.stride[1];
  o.set(v.a.inner.offset, c.kernel.stride[0], c.kernel.stride[2], c.kernel.stride[3]);
  v.b.data = c.result.data;
  v.b.h = c.oh;
  v.b.w = c.ow;
  pixels(v.b.outer, c.result, {1, 1});
  set(v.b.outer.y, 0, 1, 0);
  set(v.b.outer.x, 0, 0, 1);
  o.set(v.b.inner.offset, c.result.stride[1], -p.axis_h.back * c.result.stride[2], -p.axis_w.back * c.result.stride[3]);
  o.set(v.b.inner.y, 0, -p.axis_h.back, 0);
  o.set(v.b.inner.x, 0, 0, -p.axis_w.back);
  v.out.outer.offset[0] = c.image.stride[1];
  pixels(v.out.inner, c.image, c.stride);
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

void merge_phases(problem& p, const plan::conv_plan& c) {
  view& v = p.base;
  const union_of_taps h(p.axis_h);
  const union_of_taps w(p.axis_w);
  p.phased = false;
  v.m = p.phases_h * p.phases_w * c.c;
  v.row = {p.phases_w, c.c};
  v.col = {ceil_div(c.h, c.stride.h), ceil_div(c.w, c.stride.w)};
  v.n = c.n * v.col.d1 * v.col.d2;
  v.k = c.o * h.count * w.count;
  const order o(p.position[0] == 2);
  v.term = o.sizes(c.o, h.count, w.count);
  // Tap r = ph + before - (first + j) stride, present if it is one of the kernel's.
  set(v.a.outer.offset, c.kernel.stride[2], c.kernel.stride[3], c.kernel.stride[1]);
  set(v.a.outer.y, 1, 0, 0);
  set(v.a.outer.x, 0, 1, 0);
  v.a.outer.y0 = c.top - h.first * c.stride.h;
  v.a.outer.x0 = c.left - w.first * c.stride.w;
  v.a.outer.offset0 = v.a.outer.y0 * c.kernel.stride[2] + v.a.outer.x0 * c.kernel.stride[3];
  o.set(v.a.inner.offset, c.kernel.stride[0], -c.stride.h * c.kernel.stride[2], -c.stride.w * c.kernel.stride[3]);
  o.set(v.a.inner.y, 0, -c.stride.h, 0);
  o.set(v.a.inner.x, 0, 0, -c.stride.w);
  v.a.h = c.kh;
  v.a.w = c.kw;
  v.b.outer.y0 = h.first;
  v.b.outer.x0 = w.first;
  v.b.outer.offset0 = h.first * c.result.stride[2] + w.first * c.result.stride[3];
  o.set(v.b.inner.offset, c.result.stride[1], c.result.stride[2], c.result.stride[3]);
  o.set(v.b.inner.y, 0, 1, 0);
  o.set(v.b.inner.x, 0, 0, 1);
  // The last pixels of an axis need not exist in every phase.
  v.out.h = c.h;
  v.out.w = c.w;
  set(v.out.outer.offset, c.image.stride[2], c.image.stride[3], c.image.stride[1]);
  set(v.out.outer.y, 1, 0, 0);
  set(v.out.outer.x, 0, 1, 0);
  set(v.out.inner.y, 0, c.stride.h, 0);
  set(v.out.inner.x, 0, 0, c.stride.w);
  p.phases_h = 1;
  p.phases_w = 1;
}

bool merging_pays(const problem& p, const plan::conv_plan& c) {
  const std::int64_t phases = p.phases_h * p.phases_w;
  // Rounded up, the taps of all phases are more than the kernel's: their product with the channels must not wrap.
  if (phases == 1 || phases * c.c > 4096 || c.o >= std::int64_t{1} << 31 || c.dilation.h != 1 || c.dilation.w != 1)
    return false;
  const std::int64_t columns = std::max<std::int64_t>(c.n * ceil_div(c.h, c.stride.h) * ceil_div(c.w, c.stride.w), 1);
  const auto cost = [&](std::int64_t rows, std::int64_t taps) {
    return tile_cost(rows, columns) * static_cast<double>(taps);
  };
  return cost(phases * c.c, union_of_taps(p.axis_h).count * union_of_taps(p.axis_w).count) < cost(c.c, c.kh * c.kw);
}

}  // namespace

problem describe(const plan::conv_plan& c) {
  problem p{};
  view& v = p.base;
  v.a.h = v.a.w = v.b.h = v.b.w = v.out.h = v.out.w = 1;
  v.result = c.out;
  p.out_type = c.out_type;
  p.groups = c.groups;
  p.phases_h = p.phases_w = 1;
  ops::for_operation<ops::family::convolution>(c.op, [&]<class Op>() {
    if constexpr (Op::id == ops::op_id::conv2d) {
      describe_forward(p, c);
    } else if constexpr (Op::id == ops::op_id::conv2d_grad_weight) {
      describe_grad_weight(p, c);
    } else if constexpr (Op::id == ops::op_id::conv2d_grad_input) {
      describe_grad_input(p, c);
      if (c.accumulate == accumulate::exact && merging_pays(p, c)) {
        merge_phases(p, c);
      } else if (p.phases_h * p.phases_w == 1) {
        specialise(v, p, 0);
        p.phased = false;
      }
    } else {  // a sum is planned as one
      static_assert(Op::id == ops::op_id::conv2d_grad_bias || ops::has_no_case<Op>, "a convolution without products");
    }
  });
  p.m = v.m;
  p.n = v.n;
  p.k = v.k;
  if (p.phased) {
    const auto most = [](const phase_axis& a) { return ceil_div(a.kernel, a.tap_step); };
    p.n *= ceil_div(c.h, c.stride.h) * ceil_div(c.w, c.stride.w);
    p.k *= most(p.axis_h) * most(p.axis_w);
  }
  p.marks.words_per_row = ceil_div(p.n, 32);
  return p;
}

// ------------------------------------------------------------------------------------------------- how to load

namespace {

struct sizes3 {
  std::int64_t d[3];
  sizes3(std::int64_t total, radix r) : d{total / (r.d1 * r.d2), r.d1, r.d2} {}
};

std::int64_t innermost_step(const side& s, const sizes3& sizes) {
  for (int i = 2; i >= 0; --i) {
    if (sizes.d[i] > 1) return magnitude(s.offset[i]);
  }
  return std::int64_t{1} << 40;
}

struct range {
  std::int64_t low = 0, high = 0;
  void add(const std::int64_t (&step)[3], std::int64_t first, const sizes3& sizes) {
    low += first;
    high += first;
    for (int i = 0; i < 3; ++i) {
      const std::int64_t reach = step[i] * std::max<std::int64_t>(sizes.d[i] - 1, 0);
      (reach < 0 ? low : high) += reach;
    }
  }
};

// Four consecutive indices of `fast` are four numbers of 16 aligned bytes, which are present or absent together.
bool quads(const operand& t, const side& fast, const sizes3& fast_sizes, const side& other, const sizes3& other_sizes,
           std::int64_t group_step, std::int64_t groups) {
  std::int64_t run = 1;
  int i = 2;
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
  for (int d = 0; d < 3; ++d) {
    if (other_sizes.d[d] > 1) steps |= other.offset[d];
  }
  if (groups > 1) steps |= group_step;
  if (steps % 4 != 0 || reinterpret_cast<std::uintptr_t>(t.data) % 16 != 0) return false;
  if (fast_sizes.d[2] % 4 == 0 && fast.y[2] == 0 && fast.x[2] == 0) return true;
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
    v.col = {ceil_div(c.h, c.stride.h), ceil_div(c.w, c.stride.w)};
    v.n = p.n;
    const order o(p.position[0] == 2);
    v.term = o.sizes(c.o, ceil_div(c.kh, p.axis_h.tap_step), ceil_div(c.kw, p.axis_w.tap_step));
    v.k = p.k;
  }
  const sizes3 row(v.m, v.row);
  const sizes3 col(v.n, v.col);
  const sizes3 term(v.k, v.term);
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
  return p.k < (std::int64_t{1} << 34) && c.n < largest && c.c < largest && c.o < largest && c.h < largest &&
         c.w < largest && c.oh < largest && c.ow < largest && c.top < largest / 4 && c.left < largest / 4 &&
         fits(c.kh, c.dilation.h) && fits(c.kw, c.dilation.w) && fits(c.oh + 1, c.stride.h) &&
         fits(c.ow + 1, c.stride.w) && fits(c.kh, c.stride.h) && fits(c.kw, c.stride.w) &&
         c.kh * c.dilation.h + c.h + c.top < largest / 2 && c.kw * c.dilation.w + c.w + c.left < largest / 2;
}

}  // namespace repdl::cuda::conv
