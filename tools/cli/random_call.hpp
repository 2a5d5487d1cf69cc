// Random whole calls for `repdl fuzz` and `repdl verify`: an operation's formats, attributes, shapes, values and where
// its operands lie, all from the words of one Philox stream.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "reference/digests.hpp"
#include "tools/cli/placed_call.hpp"

namespace repdl::tools {

struct random_call {
  placed_call call;
  reference::sample_class kind;  ///< of the values
  /// Results times terms of each: bounds what slow tiers are asked to do.
  std::int64_t work = 0;
};

/// The same call for the same words, on every machine. Every call is legal.
random_call make_random_call(const op_info& op, reference::word_stream& w);

/// Cases for an operation that has none, without seeds: of every class of inputs some calls of moderate size, which the makers of inputs
/// can aim at, with operands of this format where there is a choice.
std::vector<reference::digest_case> proposed_calls(const op_info& op, dtype format);

/// Whether a context that begins with its last tier takes a moment for the call, not minutes.
bool is_affordable(const random_call& r, const context_options& o);

/// Tensors that broadcast by an axis of size 1, or by having fewer axes, count as a layout of their own.
inline constexpr std::size_t layout_kinds = reference::every_layout.size() + 1;
std::string_view layout_kind_name(std::size_t kind);
/// Whether inputs may repeat elements: not weights to draw by, which could then all be 0.
inline bool may_repeat(const op_info& op) { return op.family != "draw"; }
/// Whether an operand of the operation can have this rank and this kind of layout, to count what was never tried.
bool is_possible(const op_info& op, int rank, std::size_t kind);
/// (rank, kind) of every operand that shows its kind.
std::vector<std::pair<int, std::size_t>> layouts_of(const placed_call& c);

}  // namespace repdl::tools
