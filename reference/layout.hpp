// Shapes: broadcasting, and the element positions of a reduction.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "reference/array.hpp"
#include "reference/numbers/format.hpp"

namespace repdl::reference {

/// Element positions: of the first element of each kept index, and of each reduced index relative to it; row-major.
struct reduce_layout {
  shape_list kept_shape;  ///< without or with (keepdim) the reduced axes
  std::vector<std::int64_t> kept;
  std::vector<std::int64_t> reduced;
};
reduce_layout layout_of(const shape_list& shape, const std::optional<shape_list>& axes, bool keepdim);
/// Rows of classes, of cross_entropy and nll_loss: along axis 1 where none is given, of a vector 0.
inline reduce_layout layout_of_classes(const shape_list& shape, const std::optional<std::int64_t>& axis) {
  return layout_of(shape, shape_list{axis.value_or(shape.size() == 1 ? 0 : 1)}, false);
}

/// The rows of a norm: of x, whose channels group_norm cuts into parts.
struct norm_layout {
  reduce_layout rows;
  shape_list weight;          ///< the shape of weight and bias
  std::int64_t channels = 0;  ///< 0: weights lie along the elements of a row
  std::int64_t inner = 1;     ///< the elements of x from one channel to the next
  /// The weight of a row's element i, which is at position `at` of x.
  std::size_t weight_of(std::size_t i, std::int64_t at) const {
    return channels == 0 ? i : index(at / inner % channels);
  }
};
/// Whether it is var or another statistic: rows without weights.
bool is_statistic(std::string_view op);
/// Of x. Throws std::invalid_argument for what is no layer_norm, rms_norm, group_norm or batch_norm, nor a gradient of one, nor a
/// statistic.
norm_layout norm_layout_of(std::string_view op, const shape_list& shape, const attributes& attrs);

/// The axis that index_add and scatter_add index.
std::size_t scatter_axis(const std::vector<shape_list>& shapes, const attributes& attrs);
/// The result's shape of index_add, scatter_add or embedding_backward.
shape_list scatter_shape(std::string_view op, const std::vector<shape_list>& shapes, const attributes& attrs);
/// For each element of the result the positions in the source of what is added there. shapes: of the operands.
using place_lists = std::vector<std::vector<std::int64_t>>;
place_lists scatter_lists(std::string_view op, const std::vector<shape_list>& shapes, const array& indices,
                          const attributes& attrs);

/// The index, in an array of shape `from`, of the element that broadcasting to `to` puts at row-major index i.
std::int64_t broadcast_index(const shape_list& from, const shape_list& to, std::int64_t i);
/// NumPy's rule; throws std::invalid_argument.
shape_list broadcast_shape(const shape_list& a, const shape_list& b);

/// Operands of rows are binary32 patterns on their way, whatever format they have.
inline array widened(const array& x, dtype to = dtype::f32) {
  if (x.type == to) return x;
  array wide(to, x.shape);
  for (std::size_t i = 0; i < index(x.count()); ++i) wide.set(i, convert(x.type, to, x.get(i)));
  return wide;
}

}  // namespace repdl::reference
