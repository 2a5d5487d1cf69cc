// What classes_network_test.cpp calls: shapes and attributes of every operation on layers, rows, steps and of random
// numbers, sized so that all classes together give at least 200,000 outputs.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "librepdl/samples/call_shapes.hpp"
#include "reference/samples.hpp"

namespace repdl::test {

using reference::sample_class;
using reference::shape_list;
using samples::has;
using integers = std::vector<std::int64_t>;

struct class_call {
  std::vector<shape_list> shapes;  ///< of the inputs
  attributes attrs;
};

inline attribute list(const char* name, integers v) { return {name, std::move(v)}; }
inline attribute text(const char* name, const char* v) { return {name, std::string(v)}; }

/// The call, of a gradient that of its forward operation, whose x has this shape. present: which of the optional operands are there.
/// own: the shapes that do not follow from x.
inline class_call call_at(const std::string& op, const shape_list& x, const attributes& attrs,
                          const std::vector<bool>& present = {}, const std::vector<shape_list>& own = {}) {
  const op_info& info = *find(op);
  const op_info& forward = samples::forward_of(info);
  samples::shaped_call c;
  for (const attribute& a : attrs) {
    if (has(forward.attrs, a.name)) c.attrs.push_back(a);
  }
  c.in =
      samples::operands_at(samples::record_of(forward), sizes(x), c.attrs, std::vector<sizes>(own.begin(), own.end()));
  std::size_t optional = 0;
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    if (!forward.in[i].optional) continue;
    if (optional >= present.size() || !present[optional]) c.in[i].reset();
    ++optional;
  }
  c = samples::gradient_of(info, c);
  class_call made{{}, std::move(c.attrs)};
  for (const std::optional<sizes>& s : c.in) {
    made.shapes.push_back(s ? shape_list(s->begin(), s->end()) : reference::absent_shape);
  }
  while (!made.shapes.empty() && made.shapes.back() == reference::absent_shape) made.shapes.pop_back();
  return made;
}

struct geometry {
  std::int64_t n, groups, c, o, h, w, kh, kw;
  integers stride, padding, dilation;
  std::int64_t d = 0, kd = 0;  ///< of three axes
};
inline bool is_3d(const std::string& op) { return op.find("3d") != std::string::npos; }

// Disjoint windows, "same" padding, strides, dilation, groups, depthwise, a 1x1 image, a kernel larger than the image.
inline const geometry geometries_2d[] = {
    {2, 1, 4, 6, 12, 12, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}}, {4, 1, 2, 8, 10, 10, 2, 2, {2, 2}, {0, 0, 0, 0}, {1, 1}},
    {2, 2, 2, 4, 11, 9, 3, 2, {2, 1}, {1, 0, 2, 1}, {1, 2}},  {2, 6, 1, 2, 9, 9, 3, 3, {1, 1}, {0, 2, 1, 0}, {1, 1}},
    {8, 1, 16, 24, 5, 5, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}}, {16, 1, 8, 32, 1, 1, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}},
    {4, 1, 4, 8, 3, 3, 5, 5, {1, 1}, {2, 2, 2, 2}, {1, 1}},   {2, 1, 2, 4, 20, 20, 5, 3, {3, 2}, {2, 1, 0, 2}, {2, 1}},
    {2, 1, 32, 16, 6, 6, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}}, {6, 1, 3, 12, 14, 14, 7, 7, {2, 2}, {3, 3, 3, 3}, {1, 1}},
    {4, 4, 2, 4, 12, 11, 1, 3, {1, 1}, {0, 0, 1, 1}, {1, 1}},
};

// Of three axes: a depth without padding, "same" padding, strides and dilation, a kernel deeper than the image, groups, depthwise.
inline const geometry geometries_3d[] = {
    {2, 1, 4, 6, 7, 6, 3, 3, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 6, 3},
    {4, 1, 2, 8, 6, 6, 2, 2, {2, 2, 2}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}, 6, 2},
    {2, 2, 2, 4, 7, 6, 3, 2, {2, 2, 1}, {2, 1, 1, 0, 2, 1}, {2, 1, 2}, 9, 3},
    {2, 6, 1, 2, 6, 6, 3, 3, {1, 1, 1}, {1, 0, 0, 2, 1, 0}, {1, 1, 1}, 5, 3},
    {8, 1, 16, 24, 3, 3, 1, 1, {1, 1, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}, 3, 1},
    {4, 1, 4, 8, 3, 3, 3, 3, {1, 1, 1}, {2, 2, 1, 1, 1, 1}, {1, 1, 1}, 2, 5},
    {2, 1, 3, 4, 12, 12, 3, 3, {3, 3, 2}, {0, 2, 2, 1, 0, 2}, {1, 2, 1}, 12, 4},
    {2, 1, 24, 12, 4, 4, 3, 3, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 4, 3},
    {6, 1, 3, 12, 6, 5, 1, 1, {2, 1, 1}, {1, 1, 0, 0, 0, 0}, {1, 1, 1}, 7, 3},
};

inline class_call convolution(const std::string& op, const geometry& g, bool chain, bool bias) {
  shape_list kernel{g.groups * g.o, g.c, g.kh, g.kw}, image{g.n, g.groups * g.c, g.h, g.w};
  if (g.kd != 0) {
    kernel.insert(kernel.begin() + 2, g.kd);
    image.insert(image.begin() + 2, g.d);
  }
  return call_at(op, image,
                 {list("stride", g.stride),
                  list("padding", g.padding),
                  list("dilation", g.dilation),
                  {"groups", g.groups},
                  text("accumulate", chain ? "fma_chain" : "exact")},
                 {bias}, {kernel, {kernel[0]}});
}

inline std::vector<class_call> convolutions(const std::string& op) {
  std::vector<class_call> all;
  if (find(op)->attrs.empty()) {  // a sum
    for (shape_list s : {shape_list{2, 5000, 1, 1},
                         {3, 6000, 2, 1},
                         {4, 3000, 2, 3},
                         {1, 2500, 5, 5},
                         {3, 2000, 2, 3},
                         {2, 300, 17, 16},
                         {8, 30, 25, 26}}) {
      if (is_3d(op)) s.insert(s.begin() + 2, s[0] == 3 ? 2 : 1);
      all.push_back({{s}, {}});
    }
    return all;
  }
  const std::span<const geometry> geometries =
      is_3d(op) ? std::span<const geometry>(geometries_3d) : std::span<const geometry>(geometries_2d);
  const bool to_weight = has(find(op)->attrs, "kernel");
  for (const geometry& g : geometries) {
    for (const bool bias : {false, true}) {
      if (bias && !has(find(op)->in, "bias")) continue;
      all.push_back(convolution(op, g, false, bias));
      if (to_weight && std::max<std::int64_t>(g.kd, 1) * g.kh * g.kw * g.c * g.o < 500) all.push_back(all.back());
    }
  }
  if (to_weight && is_3d(op)) {
    all.push_back(
        convolution(op, {2, 1, 20, 40, 4, 4, 3, 3, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 3, 3}, false, false));
  } else if (to_weight) {
    all.push_back(convolution(op, {2, 1, 40, 60, 4, 4, 3, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}}, false, false));
  }
  for (const geometry& g : geometries) all.push_back(convolution(op, g, true, true));
  return all;
}

inline std::vector<class_call> adaptive_poolings(const std::string& op) {
  std::vector<class_call> all;
  // As many outputs of each operation.
  const bool backward = samples::record_of(*find(op)).is_gradient;
  for (const auto& [most, h, w, oh, ow] : {std::array<std::int64_t, 5>{40, 16, 16, 8, 8},
                                           {20, 13, 11, 5, 7},
                                           {300, 2, 3, 1, 1},
                                           {30, 7, 7, 7, 7},
                                           {10, 16, 16, 2, 2},
                                           {20, 8, 6, 11, 9},
                                           {60, 6, 6, 4, 3},
                                           {12, 15, 10, 6, 10},
                                           {300, 8, 4, 4, 2}}) {
    const std::int64_t planes = backward ? (most + 2) / 3 : has(find(op)->out, "indices") ? (most + 1) / 2 : most;
    if (is_3d(op)) {  // two places in depth, of three
      all.push_back(call_at(op, {2, (planes + 1) / 2, 3, h, w}, {list("size", {2, oh, ow})}));
    } else {
      all.push_back(call_at(op, {2, planes, h, w}, {list("size", {oh, ow})}));
    }
  }
  return all;
}

inline std::vector<class_call> poolings(const std::string& op) {
  const std::vector<attribute_info>& known = samples::forward_of(*find(op)).attrs;
  if (!has(known, "kernel")) return adaptive_poolings(op);
  struct pool {
    std::int64_t planes, h, w, kh, kw;
    integers stride, padding;
    bool include;
  };
  const pool pools[] = {
      {40, 16, 16, 2, 2, {2, 2}, {0, 0, 0, 0}, false}, {30, 12, 12, 2, 2, {1, 1}, {0, 0, 0, 0}, false},
      {10, 15, 15, 3, 3, {2, 2}, {1, 1, 1, 1}, false}, {8, 9, 12, 3, 4, {3, 4}, {0, 0, 0, 0}, true},
      {8, 9, 12, 3, 2, {1, 2}, {1, 0, 0, 1}, true},    {40, 8, 9, 2, 1, {2, 1}, {0, 0, 0, 0}, false},
      {400, 2, 3, 2, 3, {2, 3}, {0, 0, 0, 0}, false},  {64, 1, 1, 1, 1, {1, 1}, {0, 0, 0, 0}, false},
      {90, 8, 8, 2, 2, {1, 1}, {1, 0, 1, 0}, true},    {10, 16, 16, 8, 8, {8, 8}, {0, 0, 0, 0}, false},
      {400, 8, 4, 2, 2, {2, 2}, {0, 0, 0, 0}, false},  {700, 6, 3, 3, 1, {3, 1}, {0, 0, 0, 0}, false}};
  std::vector<class_call> all;
  std::int64_t turn = 0;
  for (const pool& p : pools) {
    shape_list image{2, p.planes, p.h, p.w};
    integers kernel{p.kh, p.kw}, stride = p.stride, padding = p.padding;
    if (is_3d(op)) {  // the same planes, beside others in depth
      const std::int64_t kd = 1 + turn++ % 3;
      const bool overlaps = padding != integers(4, 0);
      image.insert(image.begin() + 2, overlaps ? kd + 1 : kd);
      image[1] = (image[1] + 1) / 2;
      kernel.insert(kernel.begin(), kd);
      stride.insert(stride.begin(), overlaps ? 1 : kd);
      padding.insert(padding.begin(), {kd - 1, 0});
      if (!overlaps) padding[0] = 0;
    }
    all.push_back(call_at(
        op, image,
        {list("kernel", kernel), list("stride", stride), list("padding", padding), {"count_include_pad", p.include}}));
  }
  if (has(known, "dilation") && is_3d(op)) {
    all.push_back(call_at(op, {1, 10, 7, 11, 10},
                          {list("kernel", {2, 3, 2}), list("stride", {1, 2, 2}), list("padding", {1, 0, 1, 1, 0, 0}),
                           list("dilation", {3, 2, 3})}));
  } else if (has(known, "dilation")) {
    all.push_back(call_at(
        op, {1, 20, 11, 10},
        {list("kernel", {3, 2}), list("stride", {2, 2}), list("padding", {1, 1, 0, 0}), list("dilation", {2, 3})}));
  }
  return all;
}

inline std::vector<class_call> rows(const std::string& op) {
  const op_info& forward = samples::forward_of(*find(op));
  const bool loss = has(forward.attrs, "reduction"), gradient = &forward != find(op),
             several = samples::record_of(forward).axes == ops::row_axes::all,
             probabilities = has(forward.in, "probabilities");
  std::vector<class_call> all;
  struct row {
    std::int64_t count, length;
  };
  std::vector<row> sizes{{200, 1}, {700, 2}, {700, 3}, {600, 4}, {500, 7}, {240, 16}, {60, 32}, {16, 100}, {2, 1000}};
  const bool one_each = !gradient && (several || loss);
  if (one_each) sizes = {{1500, 1}, {6000, 2}, {5000, 3}, {3000, 5}, {1000, 9}, {300, 16}, {60, 50}, {1, 1000}};
  for (const row& s : sizes) {
    const auto push = [&](const shape_list& x, const attributes& attrs, bool weighted = false) {
      all.push_back(call_at(op, x, attrs, {weighted}));
    };
    if (probabilities) {
      const std::int64_t n = std::max<std::int64_t>(s.count / (gradient ? 6 : 4), 1);
      push({n, s.length}, {text("reduction", "none")});
      push({n, s.length}, {text("reduction", "none"), {"label_smoothing", .125}}, true);
      if (s.length > 100) continue;
      for (const std::int64_t k : {1, 3, 8}) {
        push({k, s.length}, {text("reduction", "mean")});
        push({k, s.length, 2}, {text("reduction", "sum"), {"label_smoothing", .1}}, true);
      }
      // The same rules, of targets with weights: cross_entropy_test.cpp.
    } else if (loss) {
      push({s.count, s.length}, {text("reduction", "none"), {"ignore_index", std::int64_t{1000}}});
      if (s.length > 100) continue;
      for (const std::int64_t n : {1, 2, 4, 3, 32}) {
        push({n, s.length}, {text("reduction", "mean")});
        push({n, s.length, 2}, {text("reduction", "sum")});
      }
    } else if (several) {
      push({s.count, s.length}, {list("axis", {1})});
    } else if (s.length == 7) {
      push({s.length, s.count}, {{"axis", std::int64_t{0}}});
    } else if (s.length == 3) {
      push({10, s.length, s.count / 10}, {{"axis", std::int64_t{1}}});
    } else {
      push({s.count, s.length}, {});
    }
  }
  if (several) all.push_back(call_at(op, {3, 50, 2, 4}, {list("axis", {0, 2}), {"keepdim", true}}));
  return all;
}

struct norm_shapes {
  shape_list x;
  attributes attrs;
};
/// So many rows of a norm, in turn in one of four ways.
inline norm_shapes norm_of(ops::row_axes axes, std::int64_t count, std::int64_t length, std::size_t way) {
  if (axes == ops::row_axes::groups) {
    const std::int64_t channels = length % 2 == 0 && way % 2 == 0 ? 2 : 1, groups = 1 + static_cast<std::int64_t>(way);
    norm_shapes s{{(count + groups - 1) / groups, groups * channels, length / channels}, {}};
    if (groups > 1) s.attrs = {{"groups", groups}};
    return s;
  }
  if (axes == ops::row_axes::channels) {
    if (way == 1) return {{length, count}, {}};
    if (way == 2) return {{count, length}, {{"axis", std::int64_t{0}}}};
    return {{length, count, 2}, {}};
  }
  if (way == 1) return {{count, length}, {list("axis", {-1})}};
  if (way == 2) return {{length, count}, {list("axis", {0})}};  // columns
  if (way == 3 && length % 2 == 0) return {{length / 2, count, 2}, {list("axis", {2, -3})}};
  return {{count, length}, {}};
}
inline ops::row_axes axes_of(const std::string& op) { return samples::record_of(samples::forward_of(*find(op))).axes; }

inline std::vector<class_call> norms(const std::string& op, sample_class c) {
  using enum sample_class;
  // Without eps rows can be exact, with a power of 4, too; near-ties with any, down to 2^-200. A norm without a mean has no default.
  const bool exact = c == ties || c == cancelling || c == narrow_lattice, without_mean = !has(find(op)->out, "mean");
  const std::vector<double> every_eps = exact && without_mean ? std::vector<double>{0}
                                        : exact               ? std::vector<double>{0, 0, 1, 0x1p-20}
                                                : std::vector<double>{0, 1e-5, 0x1p-200, 0x1.8p-1, 0x1p-20, 0x1p200};
  std::vector<class_call> all;
  struct row {
    std::int64_t count, length;
  };
  std::vector<row> rows{{60, 1}, {300, 2}, {200, 4}, {150, 5}, {100, 8},
                        {60, 9}, {50, 13}, {24, 32}, {12, 65}, {4, 257}};
  if (without_mean && (c == ties || c == near_ties)) {  // whose squares have odd square factors
    rows = {{60, 1}, {100, 4}, {150, 9}, {90, 18}, {60, 25}, {60, 27}, {50, 36}, {24, 49}, {24, 50}, {4, 225}};
  }
  std::size_t turn = 0, next_eps = 0;
  for (const row& r : rows) {
    ++next_eps;
    for (std::size_t k = 0; k < 4; ++k, ++turn) {
      const double eps = every_eps[next_eps++ % every_eps.size()];
      norm_shapes s = norm_of(axes_of(op), r.count / 2, r.length, k);
      if (eps != 1e-5 || without_mean) s.attrs.push_back({"eps", eps});
      // Both, and in turn one or none.
      const std::size_t operands = turn % 6;
      all.push_back(call_at(op, s.x, s.attrs, {operands > 1, operands != 0 && operands != 2}));
    }
  }
  return all;
}

/// var, stddev and var_mean: also with few degrees of freedom, for which large multiples of elements are roots.
inline std::vector<class_call> statistics(const std::string& op) {
  struct row {
    std::int64_t count, length;
  };
  std::vector<class_call> all;
  std::size_t turn = 0;
  for (const row& r : {row{300, 1},
                       {3000, 2},
                       {1500, 3},
                       {3200, 4},
                       {1000, 5},
                       {1500, 8},
                       {1200, 9},
                       {1600, 16},
                       {600, 18},
                       {1000, 20},
                       {600, 32},
                       {200, 65},
                       {20, 257}}) {
    for (std::size_t k = 0; k < 4; ++k, ++turn) {
      const auto n = static_cast<double>(r.length);
      const double corrections[] = {1, 0, n < 18 ? 1 : n - 8, n < 18 ? -n : n - 2, 0.5, 1, n - 0.5, 0};
      const std::int64_t count = r.count / (find(op)->out.size() == 2 ? 8 : 4);
      class_call call;
      if (k == 0) call = {{{count, r.length}}, {list("axis", {-1})}};
      if (k == 1) call = {{{r.length, count}}, {list("axis", {0}), {"keepdim", true}}};
      if (k == 2) call = {{{1, count, r.length}}, {list("axis", {2, 0})}};
      if (k == 3) call = {{{r.length, count, 1}}, {list("axis", {-3})}};
      const double c = corrections[(turn + turn / 4) % std::size(corrections)];
      if (c != 1) call.attrs.push_back({"correction", c});
      all.push_back(std::move(call));
    }
  }
  return all;
}

inline std::vector<class_call> norm_gradients(const std::string& op) {
  const bool to_weight = has(find(op)->out, "grad_weight");
  const ops::row_axes axes = axes_of(op);
  std::vector<class_call> all;
  struct size {
    std::int64_t count, length;
  };
  const std::vector<size> rows{{90, 1}, {170, 2}, {110, 3}, {110, 4}, {90, 5},
                               {60, 8}, {34, 13}, {14, 32}, {7, 65},  {2, 257}};
  // Of weights and of what shares one.
  const std::vector<size> sums{{560, 1}, {560, 2},  {660, 3},  {660, 4}, {560, 5},
                               {440, 8}, {330, 13}, {110, 33}, {20, 130}};
  std::size_t turn = 0;
  for (const size& r : to_weight ? sums : rows) {
    for (std::size_t k = 0; k < 4; ++k, ++turn) {
      norm_shapes s = norm_of(axes, r.count, r.length, k);
      if (to_weight && axes == ops::row_axes::groups) {
        const std::int64_t half = r.length % 2 == 0 ? 2 : 1, groups = 1 + static_cast<std::int64_t>(k);
        s = {{half, r.count / groups * groups, r.length / half}, {{"groups", groups}}};
      } else if (to_weight && axes != ops::row_axes::channels) {
        s = norm_of(axes, r.length, r.count, k);
      }
      all.push_back(call_at(op, s.x, s.attrs, {turn % 3 != 0 && turn % 6 != 1}));
    }
  }
  return all;
}

/// batch_norm with statistics over batches.
inline std::vector<class_call> given_norms(const std::string& op, sample_class c) {
  using enum sample_class;
  const bool gradient = samples::record_of(*find(op)).is_gradient, to_weight = has(find(op)->out, "grad_weight");
  const bool exact = c == ties || c == cancelling || c == narrow_lattice;
  const std::vector<double> every_eps = exact            ? std::vector<double>{0, 1, 0x1p-20}
                                        : c == near_ties ? std::vector<double>{0, 0x1p-200, 0x1p-100, 1e-5, 0x1p-200}
                                                         : std::vector<double>{0, 1e-5, 0x1p-200, 0x1p-20, 0x1p200};
  const std::vector<double> momenta = exact || c == near_ties ? std::vector<double>{0.5, 0.25, 0x1p-5, 1}
                                                              : std::vector<double>{0.5, 0.1, 0.25, 0, 0.9, 1};
  struct row {
    std::int64_t count, length;
  };
  // Channels, and their elements; of what has an output for each channel alone, more.
  const std::vector<row> rows =
      to_weight
          ? std::vector<row>{{900, 1}, {900, 2}, {900, 3}, {700, 4}, {700, 5}, {400, 8}, {200, 9}, {100, 33}, {20, 130}}
          : std::vector<row>{{90, 1}, {170, 2}, {110, 3}, {90, 5}, {60, 8}, {34, 13}, {14, 32}, {7, 65}, {4, 257}};
  std::vector<class_call> all;
  std::size_t turn = 0;
  for (const row& r : rows) {
    for (std::size_t k = 0; k < 4; ++k, ++turn) {
      norm_shapes s = norm_of(axes_of(op), r.count, r.length, k);
      const std::size_t operands = to_weight ? 0 : turn % (gradient ? 3 : 6);  // none, or in turn one, or both
      const double eps = every_eps[turn % every_eps.size()], momentum = momenta[turn % momenta.size()];
      if (eps != 1e-5) s.attrs.push_back({"eps", eps});
      if (momentum != 0.1) s.attrs.push_back({"momentum", momentum});
      all.push_back(call_at(op, s.x, s.attrs, {operands > 1, operands > 2 || (operands == 1 && !gradient)}));
    }
  }
  return all;
}

inline std::vector<class_call> steps(const std::string& op, sample_class c) {
  const shape_list a{41, 37}, b{733}, one{1};
  const auto groups = [](std::size_t k, const std::vector<shape_list>& params) {
    std::vector<shape_list> v;
    for (const shape_list& s : params) v.insert(v.end(), k, s);
    return v;
  };
  std::vector<class_call> all;
  const bool exact = c == sample_class::ties || c == sample_class::near_ties ||
                     c == sample_class::cancelling;  // these need powers of two
  const std::vector<attribute_info>& known = find(op)->attrs;
  if (has(known, "p")) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const auto with = [&](double max_norm, double p) {
      all.push_back({{a, {0, 3}, b, one}, {{"p", p}}});
      if (has(known, "max_norm")) all.back().attrs.push_back({"max_norm", max_norm});
    };
    for (const double p : {2.0, 1.0, infinity}) with(1000001 * 0x1p-20, p);
    if (exact) return all;
    with(1, 2);
    with(0x1p-140, 1);
    with(infinity, 2);
    return all;
  }
  if (has(known, "nesterov")) {
    const auto with = [&](double lr, double mu, double damp, double decay, bool nesterov, bool first) {
      std::vector<shape_list> shapes = groups(mu == 0 ? 2 : 3, {a, b, one});
      for (std::size_t i = 2; first && i < shapes.size(); i += 3) shapes[i] = reference::absent_shape;
      all.push_back(
          {shapes,
           {{"lr", lr}, {"momentum", mu}, {"dampening", damp}, {"weight_decay", decay}, {"nesterov", nesterov}}});
    };
    with(0x1p-3, 0, 0, 0, false, false);
    with(0x1p-10, 0x1p-1, 0, 0, false, false);
    with(0x1p0, 0x1p-4, 0, 0, false, true);
    with(0x1p-3, 0, 0, 0, false, false);
    if (exact) return all;
    with(0.1, 0.9, 0, 1e-4, false, false);
    with(0.01, 0.9, 0.5, 0.01, false, true);
    with(-0.3, 0.99, 0, 0.1, true, false);
    with(0x1p-190, 0.5, 1, 0x1p190, true, false);
    return all;
  }
  const auto with = [&](double lr, double b1, double b2, double eps, double decay, std::int64_t step) {
    all.push_back({groups(4, {a, b, one}),
                   {{"lr", lr}, {"beta1", b1}, {"beta2", b2}, {"eps", eps}, {"weight_decay", decay}, {"step", step}}});
  };
  with(0x1p-3, 0.5, 0.5, 0, 0, 1);
  if (c != sample_class::near_ties) with(0x1p-10, 0, 0, 0, 0, 1);
  with(0x1p-3, 0.5, 0.5, 0x1p-60, 0, 1);
  if (exact) return all;
  with(0.001, 0.9, 0.999, 1e-8, 0.01, 1);
  with(0.1, 0.9, 0.999, 1e-8, 0, 1000);
  with(-0.01, 0.5, 0.25, 0, 0.1, 1'000'000'007);
  return all;
}

inline std::vector<class_call> random_numbers(const std::string& op, sample_class c) {
  std::vector<class_call> all;
  std::int64_t stream = static_cast<std::int64_t>(c);
  const auto add = [&](std::vector<shape_list> shapes, attributes attrs) {
    attrs.push_back({"seed", std::int64_t{20260101}});
    attrs.push_back({"stream", stream += 100});
    all.push_back({std::move(shapes), std::move(attrs)});
  };
  const std::vector<attribute_info>& known = find(op)->attrs;
  if (has(known, "stddev")) {
    struct pair {
      double mean, stddev;
    };
    // Midpoints of binary32 and of 16-bit formats as means, with standard deviations down to 2^-200.
    const pair grid[] = {{0, 1},
                         {0, 0x1p-140},
                         {-0.1, 0.3},
                         {1 + 0x1p-24, 0x1p-100},
                         {1 + 0x1p-8, 0x1p-200},
                         {1 + 0x1p-11, 0x1p-40},
                         {0x1p-150, 0x1p-199},
                         {0, 0x1p125},
                         {3, 0},
                         {0x1p-149 * 3 / 2, 0x1p-180},
                         {65520, 0x1p-30},
                         {-1, 0x1p-24}};
    for (const char* t : {"f32", "f16", "bf16", "f64"})
      for (const pair& p : grid)
        add({}, {list("shape", {t == std::string_view("f32") ? 331 : 127, 4}),
                 text("dtype", t),
                 {"mean", p.mean},
                 {"stddev", p.stddev}});
    return all;
  }
  if (has(known, "rate")) {
    for (const char* t : {"f32", "f16", "bf16", "f64"})
      for (const double rate : {1.0, 0.7, 0x1p-14, 0x1p20, 0x1p100, 0x1p-120, 0x1p132, 0x1p-200, 0x1p200, 1e-3})
        add({}, {list("shape", {t == std::string_view("f32") ? 331 : 127, 4}), text("dtype", t), {"rate", rate}});
    return all;
  }
  if (has(known, "low")) {
    constexpr std::int64_t least = INT64_MIN, most = INT64_MAX;
    const std::int64_t ends[][2] = {
        {0, 1}, {0, 10}, {-3, 4}, {least, most}, {0, most}, {5, 6}, {0, std::int64_t{1} << 32}};
    for (const auto& e : ends) add({}, {list("shape", {401, 7}), {"low", e[0]}, {"high", e[1]}});
    return all;
  }
  for (const double p : {0.5, 0.1, 0.25, 1 - 0xfedcb9p-24, 0.0, 1.0, 0x1p-40, 0.999}) {
    if (c == sample_class::near_ties && p != 1 - 0xfedcb9p-24) continue;
    const std::int64_t n = c == sample_class::near_ties ? 19997 : 2501;
    if (has(known, "shape")) {
      add({}, {list("shape", {n}), {"p", p}});
    } else {
      add({{n}}, {{"p", p}});
    }
  }
  return all;
}

inline std::vector<sample_class> network_classes(ops::family family) {
  std::vector<sample_class> v;
  v.assign(reference::element_classes.begin(), reference::element_classes.end());
  if (family == ops::family::softmax || family == ops::family::norm)
    v.insert(v.end(), {sample_class::exact_gaps, sample_class::multiplicities});
  return v;
}

inline std::vector<class_call> network_calls(ops::family family, const std::string& op, sample_class c) {
  switch (family) {
    case ops::family::convolution:
      return convolutions(op);
    case ops::family::pooling:
      return poolings(op);
    case ops::family::softmax:
      return rows(op);
    case ops::family::norm:
      if (has(samples::forward_of(*find(op)).in, "running_var")) return given_norms(op, c);
      if (has(find(op)->attrs, "correction")) return statistics(op);
      return samples::record_of(*find(op)).is_gradient ? norm_gradients(op) : norms(op, c);
    case ops::family::optimizer:
      return steps(op, c);
    case ops::family::random:
      return random_numbers(op, c);
    case ops::family::convert:
    case ops::family::reduce:
    case ops::family::matmul:
    case ops::family::loss:
    case ops::family::scatter:
    case ops::family::nll:
    case ops::family::sequence:
    case ops::family::upsample:
    case ops::family::draw:
    case ops::family::scan:
    case ops::family::exponent:
    case ops::family::attention:
      break;
  }
  throw std::logic_error("no calls of " + op);
}

}  // namespace repdl::test
