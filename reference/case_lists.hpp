// The parts of the published list of digest cases, in their order (cases.cpp, cases_network.cpp).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reference/digests.hpp"

namespace repdl::reference::case_lists {

inline constexpr dtype floats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};
struct list {
  std::vector<digest_case> v;
  /// Every case has its own inputs: the seed is its number.
  void add(std::string op, std::vector<dtype> formats, sample_class kind, std::vector<shape_list> shapes,
           attributes attrs = {}, int bits = 1) {
    v.push_back({std::move(op), bits, std::move(formats), kind, std::move(shapes), std::move(attrs), v.size() + 1});
  }
};

inline attribute integers(std::string name, std::vector<std::int64_t> v) { return {std::move(name), std::move(v)}; }
inline attribute integer(std::string name, std::int64_t v) { return {std::move(name), v}; }
inline attribute real(std::string name, double v) { return {std::move(name), v}; }
inline attribute text(std::string name, std::string v) { return {std::move(name), std::move(v)}; }

void add_layers(list& l);
void add_rows(list& l);
void add_steps(list& l);

}  // namespace repdl::reference::case_lists
