// The shapes of sample calls. The self-test, repdl fuzz, the layouts of repdl verify and the tests of classes each choose what x looks
// like and which attributes a call has; which other operands belong to it, and of what shapes, an operation's record says
// (ops/structured.hpp), here and nowhere else.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "librepdl/ops/structured.hpp"

namespace repdl::samples {

/// Of a call's operands; an absent one has none.
using shapes = std::vector<std::optional<sizes>>;
struct shaped_call {
  shapes in;
  attributes attrs;
};

/// What the type of a structured operation says, for those who have its number.
struct record {
  ops::op_id id;
  ops::family family;
  ops::proof_kind proof;
  ops::row_axes axes;
  std::span<const ops::operand> in;
  bool is_gradient;  // of a structured operation
};
const record& record_of(ops::op_id op);
/// Of a structured operation.
const record& record_of(const op_info& op);
const op_info& info_of(ops::op_id op);

/// Whether operands or attributes (operand_info, attribute_info) have one of this name.
template <class Infos>
bool has(const Infos& infos, std::string_view name) {
  return std::any_of(infos.begin(), infos.end(), [&](const auto& i) { return i.name == name; });
}

/// The operation whose gradient this is; itself if it is none.
const op_info& forward_of(const op_info& op);

/// Which of x's axes a call's rows lie along. Of channels: all but theirs. Groups cut an axis, so they have no such axes.
std::vector<bool> axes_of(const record& r, int rank, const attributes& attrs);

/// The operands of a call of an operation that is no gradient, optional ones too. `own`: the shapes that follow from nothing else, in
/// order; where one is missing the operand is absent. Of an optimiser: those of one tensor.
shapes operands_at(const record& r, const sizes& x, const attributes& attrs, std::span<const sizes> own = {});

/// The call of a gradient that belongs to a call of its forward operation, which it leaves as it is if that is the operation itself:
/// g is as the result, other operands are the forward operation's operands or results of their name. Its attributes are those of
/// this name, but for the sizes that it needs to be told of: `size`, of the image, and `kernel`.
shaped_call gradient_of(const op_info& op, const shaped_call& forward);

}  // namespace repdl::samples
