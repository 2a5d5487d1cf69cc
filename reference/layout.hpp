// Shapes: broadcasting, and the element positions of a reduction.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/array.hpp"

namespace repdl::reference {

/// Element positions: of the first element of each kept index, and of each reduced index relative to it; row-major.
struct reduce_layout {
  shape_list kept_shape;  ///< without or with (keepdim) the reduced axes
  std::vector<std::int64_t> kept;
  std::vector<std::int64_t> reduced;
};
reduce_layout layout_of(const shape_list& shape, const std::optional<shape_list>& axes, bool keepdim);

/// The index, in an array of shape `from`, of the element that broadcasting to `to` puts at row-major index i.
std::int64_t broadcast_index(const shape_list& from, const shape_list& to, std::int64_t i);
/// NumPy's rule; throws std::invalid_argument.
shape_list broadcast_shape(const shape_list& a, const shape_list& b);

}  // namespace repdl::reference
