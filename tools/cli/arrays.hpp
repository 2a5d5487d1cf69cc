// The reference's arrays in calls of the library, and what to say about one of their elements.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "librepdl/ops/formats.hpp"
#include "reference/array.hpp"
#include "tools/cli/host_tensor.hpp"

namespace repdl::tools {

inline constexpr auto every_type = [] {
  std::array<dtype, ops::dtype_count> all{};
  for (const ops::type_traits& t : ops::types) all[static_cast<std::size_t>(t.type)] = t.type;
  return all;
}();

inline sizes sizes_of(const reference::shape_list& s) { return sizes(std::span<const std::int64_t>(s)); }

/// Infers the outputs, fills them with host_tensor::unwritten, and runs the operation.
std::vector<reference::array> call_on_arrays(context& ctx, const op_info& op, const std::vector<reference::array>& in,
                                             const attributes& attrs);

/// "x[3] = 0x3f800000 (1), ...": the operands of one result element, the first few where there are many.
std::string operand_text(const op_info& op, const attributes& attrs, const std::vector<reference::array>& in,
                         const reference::shape_list& out, std::int64_t index);

}  // namespace repdl::tools
