// The oracle's side of the digests: the only code that makes committed ones.
#include <stdexcept>

#include "reference/digests.hpp"
#include "reference/elementwise/elementwise.hpp"
#include "reference/evaluate.hpp"
#include "reference/exhaustive.hpp"

namespace repdl::reference {

std::vector<array> expected(const digest_case& c, outcomes* where) {
  return evaluate_all(c.op, inputs(c), c.attrs, where);
}

range_function oracle_range(const exhaustive_op& op) {
  if (op.name == "convert")
    return
        [op](std::uint32_t first, std::uint64_t count, void* out) { convert_range(op.from, op.to, first, count, out); };
  const ops::elementwise_row* row = elementwise_named(op.name);
  if (row == nullptr) throw std::logic_error("reference: no row is named " + op.name);
  return [row](std::uint32_t first, std::uint64_t count, void* out) { evaluate_range(*row, first, count, out); };
}

}  // namespace repdl::reference
