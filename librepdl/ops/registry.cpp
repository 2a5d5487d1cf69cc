// The table of the elementwise operations.
#include "librepdl/ops/registry.hpp"

#include "librepdl/ops/operations.hpp"
#include "librepdl/ops/structured.hpp"

namespace repdl::ops {
namespace {

constexpr elementwise_row rows[] = {
#define REPDL_ELEMENTWISE(name, ...) name::row,
#include "librepdl/ops/elementwise/elementwise.def"
#undef REPDL_ELEMENTWISE
};
static_assert(elementwise_count < first_structured);
static_assert(std::ranges::max(rows, {}, &elementwise_row::arity).arity == most_operands);

constexpr elementwise_operands operands_of_row(const elementwise_row& row) {
  elementwise_operands o{{}, row.arity, {{"out", row.has_own_type() ? one(row.result_type({})) : row.formats}}};
  for (int i = 0; i < row.arity; ++i) {
    const auto [name, is_boolean] = operand_at(row.operands, i);
    o.all[i] = {name, is_boolean ? BOOL : row.formats};
  }
  return o;
}
constexpr elementwise_operands operands[] = {
#define REPDL_ELEMENTWISE(name, ...) operands_of_row(name::row),
#include "librepdl/ops/elementwise/elementwise.def"
#undef REPDL_ELEMENTWISE
};

}  // namespace

std::span<const elementwise_row> elementwise_rows() noexcept { return rows; }
const elementwise_row& row_of(op_id op) noexcept { return rows[static_cast<int>(op)]; }
const elementwise_operands& operands_of(op_id op) noexcept { return operands[static_cast<int>(op)]; }

}  // namespace repdl::ops
