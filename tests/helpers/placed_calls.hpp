// Calls of any operation on tensors that lie in memory in any way.
#pragma once

#include <bit>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reference/samples.hpp"
#include "tests/helpers/placed_tensor.hpp"

namespace repdl::tests {

constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
constexpr std::uint32_t nan_bits = 0x7fc00000, inf_bits = 0x7f800000;

inline reference::array floats(const std::vector<float>& values, reference::shape_list shape) {
  reference::array a(dtype::f32, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) a.set(i, std::bit_cast<std::uint32_t>(values[i]));
  return a;
}
inline reference::array row(const std::vector<float>& values) {
  return floats(values, {static_cast<std::int64_t>(values.size())});
}
inline reference::array scalar(float value) { return floats({value}, {}); }

/// The classes that rows have.
constexpr reference::sample_class row_classes[] = {reference::sample_class::uniform_patterns,
                                                   reference::sample_class::normal_range,
                                                   reference::sample_class::narrow_lattice,
                                                   reference::sample_class::cancelling,
                                                   reference::sample_class::ties,
                                                   reference::sample_class::near_ties,
                                                   reference::sample_class::subnormal,
                                                   reference::sample_class::overflow_border,
                                                   reference::sample_class::single_nonfinite,
                                                   reference::sample_class::wide_exponents,
                                                   reference::sample_class::zeros,
                                                   reference::sample_class::exact_gaps,
                                                   reference::sample_class::multiplicities};

struct call_case {
  std::string op;
  std::vector<reference::array> in;
  attributes attrs;
};

/// The outputs; where one is not wanted, array::none(). in_place: outputs are the inputs of their names.
inline std::vector<reference::array> run(context& ctx, const call_case& c, layout from = layout::contiguous,
                                         layout to = layout::contiguous, unsigned wanted = ~0U, bool in_place = false) {
  const op_info& op = *find(c.op);
  std::vector<std::unique_ptr<placed_tensor>> in, out;
  std::vector<const_tensor_view> views;
  std::vector<tensor_view> out_views;
  for (const reference::array& a : c.in) {
    in.push_back(a.absent() ? nullptr : std::make_unique<placed_tensor>(ctx, a, from));
    views.push_back(a.absent() ? const_tensor_view() : const_tensor_view(in.back()->view()));
  }
  const std::vector<tensor_spec> specs = infer(op, views, c.attrs);
  std::vector<placed_tensor*> results;
  for (std::size_t o = 0; o < specs.size(); ++o) {
    const reference::shape_list shape(specs[o].shape.begin(), specs[o].shape.end());
    const bool is_wanted = (wanted >> o & 1) != 0;
    placed_tensor* own = nullptr;
    for (std::size_t i = 0; i < c.in.size() && in_place; ++i) {
      if (op.in[i].name == op.out[o].name) own = in[i].get();
    }
    if (is_wanted && own == nullptr) {
      own = out.emplace_back(std::make_unique<placed_tensor>(ctx, specs[o].type, shape, to)).get();
    }
    results.push_back(is_wanted ? own : nullptr);
    out_views.push_back(is_wanted ? own->view() : tensor_view());
  }
  call(ctx, op, views, out_views, c.attrs);
  std::vector<reference::array> all;
  for (placed_tensor* r : results) all.push_back(r != nullptr ? r->get() : reference::array::none());
  return all;
}

}  // namespace repdl::tests
