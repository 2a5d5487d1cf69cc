// Digest cases of convolution, pooling, the softmax family, optimisers and random numbers.
#include "reference/case_lists.hpp"

namespace repdl::reference::case_lists {
namespace {

using enum sample_class;
using sizes = std::vector<std::int64_t>;

constexpr dtype f32 = dtype::f32;

std::vector<dtype> formats(std::size_t n) { return std::vector<dtype>(n, f32); }

/// Sizes as in plan::conv_plan: c and o are per group.
struct geometry {
  std::int64_t n, groups, c, o, h, w, kh, kw;
  sizes stride, padding, dilation;
};

const geometry geometries[] = {
    {2, 1, 3, 8, 13, 12, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}},   // padded to the same size
    {3, 1, 4, 6, 8, 12, 2, 3, {2, 3}, {0, 0, 0, 0}, {1, 1}},    // disjoint windows
    {2, 3, 2, 2, 11, 9, 3, 2, {2, 1}, {1, 0, 2, 1}, {1, 2}},    // groups, dilation, padding per side
    {2, 8, 1, 1, 9, 10, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}},    // depthwise
    {2, 4, 1, 2, 9, 8, 3, 3, {2, 2}, {0, 1, 1, 0}, {1, 1}},     // depthwise with a multiplier
    {4, 1, 16, 24, 5, 6, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}},   // a matrix product
    {9, 1, 8, 17, 1, 1, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}},    // a 1 x 1 image
    {2, 1, 4, 5, 3, 2, 5, 5, {1, 1}, {2, 3, 3, 2}, {1, 1}},     // a kernel larger than the image
    {1, 1, 3, 7, 20, 23, 7, 7, {2, 2}, {3, 3, 3, 3}, {1, 1}},   // the first layer of a network
    {2, 1, 32, 32, 8, 8, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}},   // deeper in it
    {1, 1, 100, 33, 6, 5, 3, 3, {1, 1}, {1, 0, 1, 0}, {2, 1}},  // many channels
    {5, 2, 2, 3, 1, 37, 1, 5, {1, 4}, {0, 0, 5, 0}, {1, 2}},    // one row; a window on padding alone
};

void add_convolution(list& l, const std::string& op, const geometry& g, sample_class c, bool chain, bool bias) {
  const auto along = [](std::int64_t size, std::int64_t before, std::int64_t after, std::int64_t k, std::int64_t d,
                        std::int64_t s) { return (size + before + after - d * (k - 1) - 1) / s + 1; };
  const shape_list image{g.n, g.groups * g.c, g.h, g.w}, kernel{g.groups * g.o, g.c, g.kh, g.kw},
      result{g.n, g.groups * g.o, along(g.h, g.padding[0], g.padding[1], g.kh, g.dilation[0], g.stride[0]),
             along(g.w, g.padding[2], g.padding[3], g.kw, g.dilation[1], g.stride[1])};
  attributes attrs{integers("stride", g.stride), integers("padding", g.padding), integers("dilation", g.dilation),
                   integer("groups", g.groups), text("accumulate", chain ? "fma_chain" : "exact")};
  std::vector<shape_list> shapes;
  if (op == "conv2d") {
    shapes = {image, kernel};
    if (bias) shapes.push_back({kernel[0]});
  } else if (op == "conv2d_grad_input") {
    shapes = {result, kernel};
    attrs.push_back(integers("size", {g.h, g.w}));
  } else {
    shapes = {result, image};
    attrs.push_back(integers("kernel", {g.kh, g.kw}));
  }
  l.add(op, formats(shapes.size() + 1), c, shapes, attrs);
}

void add_convolutions(list& l) {
  for (const char* op : {"conv2d", "conv2d_grad_input", "conv2d_grad_weight"}) {
    for (std::size_t i = 0; i < std::size(geometries); ++i) {
      const geometry& g = geometries[i];
      for (const sample_class c : element_classes) {
        const bool some = c == normal_range || c == near_ties || c == subnormal || c == single_nonfinite || c == zeros;
        add_convolution(l, op, g, c, false, false);
        if (std::string(op) == "conv2d" && i % 3 == 0) add_convolution(l, op, g, c, false, true);
        if (some && i < 8) add_convolution(l, op, g, c, true, i % 2 == 0);
      }
    }
  }
  const geometry large{1, 1, 64, 96, 28, 29, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}};
  for (const char* op : {"conv2d", "conv2d_grad_input", "conv2d_grad_weight"})
    for (const sample_class c : {normal_range, ties, cancelling}) add_convolution(l, op, large, c, false, false);
  for (const sample_class c : element_classes)
    for (const shape_list& s : {shape_list{1, 200, 1, 1}, {3, 100, 2, 5}, {20, 8, 9, 11}, {2, 3, 113, 97}})
      l.add("conv2d_grad_bias", formats(2), c, {s});
  l.add("conv2d_grad_bias", formats(2), normal_range, {{0, 5, 3, 3}});  // sums of nothing
  l.add("conv2d", formats(4), normal_range, {{2, 0, 4, 4}, {3, 0, 2, 2}, {3}}, {});
}

struct pool {
  std::int64_t n, c, h, w, kh, kw;
  sizes stride, padding, dilation;
  bool include;
};

const pool pools[] = {{2, 5, 12, 14, 2, 2, {2, 2}, {0, 0, 0, 0}, {1, 1}, false},
                      {1, 6, 13, 11, 2, 2, {1, 1}, {0, 0, 0, 0}, {1, 1}, false},
                      {2, 3, 15, 14, 3, 3, {2, 2}, {1, 1, 1, 1}, {1, 1}, false},
                      {2, 3, 9, 16, 3, 4, {3, 4}, {0, 0, 0, 0}, {2, 1}, true},
                      {1, 4, 10, 13, 3, 2, {1, 2}, {1, 0, 0, 1}, {1, 3}, true},
                      {3, 7, 1, 1, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, false},
                      {2, 2, 16, 18, 16, 18, {1, 1}, {0, 0, 0, 0}, {1, 1}, false}};

void add_pools(list& l) {
  for (const std::string op : {"max_pool2d", "max_pool2d_backward", "avg_pool2d", "avg_pool2d_backward"}) {
    const bool max = op.starts_with("max");
    for (const pool& p : pools) {
      const std::int64_t reach_h = max ? p.dilation[0] * (p.kh - 1) + 1 : p.kh,
                         reach_w = max ? p.dilation[1] * (p.kw - 1) + 1 : p.kw;
      const shape_list image{p.n, p.c, p.h, p.w},
          result{p.n, p.c, (p.h + p.padding[0] + p.padding[1] - reach_h) / p.stride[0] + 1,
                 (p.w + p.padding[2] + p.padding[3] - reach_w) / p.stride[1] + 1};
      attributes attrs{integers("kernel", {p.kh, p.kw}), integers("stride", p.stride), integers("padding", p.padding)};
      if (max) {
        attrs.push_back(integers("dilation", p.dilation));
      } else {
        attrs.push_back({"count_include_pad", p.include});
      }
      if (op == "avg_pool2d_backward") attrs.push_back(integers("size", {p.h, p.w}));
      std::vector<shape_list> shapes;
      if (op.ends_with("backward")) shapes.push_back(result);
      if (op != "avg_pool2d_backward") shapes.push_back(image);
      for (const sample_class c : element_classes) l.add(op, formats(shapes.size() + 1), c, shapes, attrs);
    }
  }
}

std::vector<sample_class> row_classes() {
  std::vector<sample_class> v(std::begin(element_classes), std::end(element_classes));
  v.insert(v.end(), {exact_gaps, multiplicities});
  return v;
}

}  // namespace

void add_layers(list& l) {
  add_convolutions(l);
  add_pools(l);
}

void add_rows(list& l) {
  struct rows {
    shape_list shape;
    std::int64_t axis;
  };
  for (const std::string op : {"softmax", "log_softmax", "softmax_backward", "log_softmax_backward"}) {
    for (const rows& r : {rows{{200, 2}, -1}, {{5, 40}, 0}, {{7, 11, 6}, 1}, {{30, 33}, 1}, {{3, 300}, 1}, {{1031}, 0}})
      for (const sample_class c : row_classes()) {
        const std::vector<shape_list> shapes(op.ends_with("backward") ? 2 : 1, r.shape);
        l.add(op, formats(shapes.size() + 1), c, shapes, {integer("axis", r.axis)});
      }
  }
  for (const std::string op : {"softmax", "log_softmax"}) {
    l.add(op, formats(2), single_nonfinite, {{60, 1}}, {integer("axis", 1)});
    for (const sample_class c : {normal_range, multiplicities, near_ties})
      l.add(op, formats(2), c, {{2, 50001}}, {integer("axis", 1)});
  }
  struct reduced {
    shape_list shape, kept;
    sizes axis;
    bool keepdim;
  };
  const reduced reductions[] = {{{200, 2}, {200}, {1}, false},          {{5, 150}, {150}, {0}, false},
                                {{4, 6, 5, 7}, {4, 5}, {1, 3}, false},  {{90, 17}, {90, 1}, {-1}, true},
                                {{2, 3, 257}, {1, 3, 1}, {0, 2}, true}, {{60}, {60}, {}, false}};
  for (const sample_class c : row_classes()) {
    for (const reduced& r : reductions) {
      const attributes attrs{integers("axis", r.axis), {"keepdim", r.keepdim}};
      l.add("logsumexp", formats(2), c, {r.shape}, attrs);
      l.add("logsumexp_backward", formats(3), c, {r.kept, r.shape}, attrs);
    }
    l.add("logsumexp", formats(2), c, {{31, 32}});
    l.add("logsumexp_backward", formats(3), c, {{}, {31, 32}});
  }
  l.add("logsumexp", formats(2), normal_range, {{3, 0}}, {integers("axis", {1})});  // of nothing: -inf
  struct loss {
    shape_list logits, targets;
    std::int64_t axis;
    const char* reduction;
    std::int64_t ignored;
  };
  const loss losses[] = {{{100, 10}, {100}, 1, "mean", -100}, {{64, 3}, {64}, 1, "sum", -100},
                         {{150, 7}, {150}, -1, "none", 3},    {{4, 6, 5, 3}, {4, 5, 3}, 1, "mean", -1},
                         {{5, 128}, {128}, 0, "mean", 0},     {{2, 1000}, {2}, 1, "mean", -100},
                         {{33}, {}, 0, "mean", -100},         {{40, 2}, {40}, 1, "none", -100}};
  for (const loss& p : losses) {
    const attributes attrs{integer("axis", p.axis), text("reduction", p.reduction), integer("ignore_index", p.ignored)};
    const shape_list g = std::string(p.reduction) == "none" ? p.targets : shape_list{};
    for (const sample_class c : row_classes()) {
      l.add("cross_entropy", {f32, dtype::i64, f32}, c, {p.logits, p.targets}, attrs);
      l.add("cross_entropy_backward", {f32, f32, dtype::i64, f32}, c, {g, p.logits, p.targets}, attrs);
    }
  }
  l.add("cross_entropy", {f32, dtype::i64, f32}, normal_range, {{0, 5}, {0}}, {text("reduction", "mean")});  // NaN
  l.add("cross_entropy", {f32, dtype::i64, f32}, normal_range, {{0, 5}, {0}}, {text("reduction", "sum")});   // +0
}

void add_steps(list& l) {
  const shape_list a{37, 21}, b{5}, one{};
  const auto groups = [&](std::size_t k) {
    std::vector<shape_list> v;
    for (const shape_list& s : {a, b, one}) v.insert(v.end(), k, s);
    return v;
  };
  struct sgd_case {
    double lr, momentum, dampening, decay;
    bool nesterov, first;
  };
  const sgd_case sgd_cases[] = {{0.1, 0, 0, 0, false, false},
                                {0x1p-3, 0, 0, 0, false, false},
                                {0x1p-7, 0.5, 0, 0, false, false},
                                {0.01, 0.9, 0.5, 1e-4, false, false},
                                {0.01, 0.9, 0, 0.01, true, false},
                                {0x1p-1, 0.25, 0, 0, false, true},
                                {-0.3, 0.99, 0.1, -0.1, true, true},
                                {0, 0.9, 0, 0, false, false},
                                {0x1p200, 0x1p-200, 1, 0x1p-199, true, false}};
  struct adamw_case {
    double lr, beta1, beta2, eps, decay;
    std::int64_t step;
  };
  const adamw_case adamw_cases[] = {{0.001, 0.9, 0.999, 1e-8, 0.01, 1},
                                    {0.001, 0.9, 0.999, 1e-8, 0.01, 1234},
                                    {0x1p-3, 0.5, 0.5, 0, 0, 1},
                                    {0x1p-10, 0, 0, 0, 0, 1},
                                    {0x1p-3, 0.5, 0.5, 0x1p-60, 0, 1},
                                    {-0.1, 0.5, 0.25, 0, 0.5, std::int64_t{1} << 40},
                                    {0x1p190, 0x1p-180, 0.99999, 0x1p-200, 0x1p-190, 3},
                                    {0, 0.9, 0.99, 1e-6, 0.1, 7}};
  for (const sample_class c : element_classes) {
    for (const sgd_case& s : sgd_cases) {
      const std::size_t k = s.momentum == 0 ? 2 : 3;
      std::vector<shape_list> shapes = groups(k);
      if (s.first)
        for (std::size_t i = 2; i < shapes.size(); i += 3) shapes[i] = absent_shape;
      l.add("sgd", formats(3 * (2 * k - 1)), c, shapes,
            {real("lr", s.lr),
             real("momentum", s.momentum),
             real("dampening", s.dampening),
             real("weight_decay", s.decay),
             {"nesterov", s.nesterov}});
    }
    for (const adamw_case& s : adamw_cases)
      l.add("adamw", formats(3 * 7), c, groups(4),
            {real("lr", s.lr), real("beta1", s.beta1), real("beta2", s.beta2), real("eps", s.eps),
             real("weight_decay", s.decay), integer("step", s.step)});
  }
  l.add("sgd", formats(5), normal_range, {{100003}, {100003}, {100003}}, {real("lr", 0.1), real("momentum", 0.9)});
  l.add("adamw", formats(7), normal_range, std::vector<shape_list>(4, {100003}), {integer("step", 10)});
  const auto generator = [&](attributes attrs) {
    const auto n = static_cast<std::int64_t>(l.v.size());
    attrs.push_back(integer("seed", 9876543210123 + n));
    attrs.push_back(integer("stream", (std::int64_t{1} << 41) + n));
    return attrs;
  };
  struct normal_case {
    double mean, stddev;
  };
  // Midpoints of the formats as means, with standard deviations down to 2^-200; results in all ranges.
  const normal_case normals[] = {{0, 1},
                                 {-0.1, 0.3},
                                 {1 + 0x1p-24, 0x1p-100},
                                 {1 + 0x1p-8, 0x1p-200},
                                 {1 + 0x1p-11, 0x1p-40},
                                 {-1, 0x1p-52},
                                 {0x1p-150, 0x1p-199},
                                 {0, 0x1p-140},
                                 {0, 0x1p126},
                                 {65520, 0x1p-30},
                                 {0x1p200, 0x1p200},
                                 {3, 0}};
  for (const dtype t : floats)
    for (const normal_case& p : normals)
      for (const shape_list& shape : {shape_list{3}, {47, 31}})
        l.add("normal", {t}, uniform_patterns, {},
              generator({integers("shape", shape), text("dtype", std::string(format_name(t))), real("mean", p.mean),
                         real("stddev", p.stddev)}));
  l.add("normal", {f32}, uniform_patterns, {}, generator({integers("shape", {50000})}));
  for (const double p : {0.0, 0x1p-1000, 0x1p-32, 0.1, 0.5, 0.75, 1 - 0x1p-53, 1.0}) {
    l.add("bernoulli", {dtype::boolean}, uniform_patterns, {}, generator({integers("shape", {71, 97}), real("p", p)}));
    for (const sample_class c : {normal_range, subnormal, overflow_border, single_nonfinite, zeros}) {
      l.add("dropout", formats(2), c, {{23, 71}}, generator({real("p", p)}));
      if (c == normal_range) l.add("dropout_backward", formats(2), c, {{23, 71}}, generator({real("p", p)}));
    }
  }
  l.add("dropout", formats(2), near_ties, {{8009}}, generator({real("p", 1 - 0xfedcb9p-24)}));
  struct range {
    std::int64_t low, high;
  };
  for (const range& r :
       {range{0, 1}, {0, 10}, {-3, 4}, {0, std::int64_t{1} << 32}, {-(std::int64_t{1} << 52), 1 << 20}, {5, 1005}})
    l.add("randint", {dtype::i64}, uniform_patterns, {},
          generator({integers("shape", {33, 101}), integer("low", r.low), integer("high", r.high)}));
}

}  // namespace repdl::reference::case_lists
