// Shapes and options of attention for tests: ranks, heads in groups, masks and slopes, causality and windows, dropout, one number, nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/samples.hpp"

namespace repdl::tests {

struct attention_problem {
  std::vector<reference::shape_list> shapes;  // of q, k, v and perhaps mask and slopes
  attributes attrs;
  bool has_float_mask = false;

  /// Inputs of attention.
  std::vector<reference::array> fill(reference::sample_class kind, dtype t, std::uint64_t seed) const {
    return reference::fill_attention(kind, types({t, t, t}, t), shapes, attrs, seed);
  }
  /// Inputs of attention_backward.
  std::vector<reference::array> fill_backward(reference::sample_class kind, dtype t, std::uint64_t seed) const {
    const reference::shape_list &q = shapes[0], &v = shapes[2];
    reference::shape_list results = q, queries = q;
    results.back() = v.back();
    queries.pop_back();
    std::vector<reference::shape_list> all = {results, q, shapes[1], v, results, queries};
    all.insert(all.end(), shapes.begin() + 3, shapes.end());
    return reference::fill_attention_backward(kind, types({t, t, t, t, t, t == dtype::f64 ? t : dtype::f32}, t), all, attrs, seed);
  }

 private:
  std::vector<dtype> types(std::vector<dtype> first, dtype t) const {
    if (shapes.size() > 3) first.push_back(has_float_mask ? t : dtype::boolean);
    if (shapes.size() > 4) first.push_back(dtype::f32);
    return first;
  }
};

inline const std::vector<attention_problem>& attention_problems() {
  using reference::absent_shape;
  static const std::vector<attention_problem> all = {
      {{{3, 4}, {5, 4}, {5, 6}}, {}},
      {{{2, 33, 8}, {2, 70, 8}, {2, 70, 5}}, {{"causal", true}, {"bottom_right", true}}},
      {{{2, 4, 5, 3}, {2, 2, 9, 3}, {2, 2, 9, 7}, {2, 1, 5, 9}}, {{"scale", 0.3}}},
      {{{1, 6, 3, 2}, {1, 3, 7, 2}, {1, 3, 7, 3}, {3, 7}, {6}},
       {{"left", std::int64_t{3}}, {"right", std::int64_t{2}}},
       true},
      {{{2, 1, 3, 4, 5}, {2, 1, 1, 11, 5}, {2, 1, 1, 11, 1}, absent_shape, {3}},
       {{"causal", true}, {"left", std::int64_t{4}}}},
      {{{2, 2, 5, 3}, {2, 1, 4, 3}, {2, 1, 4, 5}}, {{"dropout", 0.5}, {"seed", std::int64_t{7}}}},
      {{{3, 6, 2}, {3, 9, 2}, {3, 9, 3}, {6, 9}, {3}},
       {{"dropout", 0.1},
        {"seed", std::int64_t{-1}},
        {"stream", std::int64_t{5}},
        {"causal", true},
        {"bottom_right", true}},
       true},
      {{{1, 3, 2}, {1, 3, 2}, {1, 3, 2}}, {{"dropout", 0x1p-32}}},
      {{{2, 2, 2}, {2, 2, 2}, {2, 2, 2}}, {{"dropout", 1 - 0x1p-53}}},
      {{{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}, {}},
      {{{2, 2, 3, 0}, {2, 1, 4, 0}, {2, 1, 4, 3}}, {}},
      {{{2, 2, 3, 2}, {2, 1, 0, 2}, {2, 1, 0, 3}}, {}},
      {{{2, 0, 2}, {2, 5, 2}, {2, 5, 3}}, {}},
      {{{2, 3, 2}, {2, 5, 2}, {2, 5, 0}}, {}},
      {{{2, 3, 2}, {1, 5, 2}, {1, 5, 2}}, {{"scale", 0.0}}}};
  return all;
}

}  // namespace repdl::tests
