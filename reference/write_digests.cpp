// The oracle's side of the digests: the only code that makes committed ones.
#include <ostream>
#include <stdexcept>

#include "reference/digests.hpp"
#include "reference/elementwise.hpp"
#include "reference/evaluate.hpp"
#include "reference/exhaustive.hpp"

namespace repdl::reference {

std::vector<array> expected(const digest_case& c, outcomes* where) {
  return evaluate_all(c.op, inputs(c), c.attrs, where);
}

void write_digests(std::ostream& out, const std::function<void(std::size_t, std::size_t)>& progress) {
  out << "# Digests of the published cases. Written from the MPFR/GMP reference only (contract, section 7).\n"
      << "# op bits formats(inputs, output) class shapes(inputs) seed attributes -> SHA-256; see "
         "reference/digests.hpp.\n";
  const std::vector<digest_case> cases = digest_cases();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    out << to_text(cases[i]) << " -> " << sha256::hex(digest(cases[i], expected(cases[i]))) << '\n';
    if (progress) progress(i + 1, cases.size());
  }
}

range_function oracle_range(const exhaustive_op& op) {
  if (op.name == "convert")
    return
        [op](std::uint32_t first, std::uint64_t count, void* out) { convert_range(op.from, op.to, first, count, out); };
  const ops::elementwise_row* row = elementwise_named(op.name);
  if (row == nullptr) throw std::logic_error("reference: no row is named " + op.name);
  return [row](std::uint32_t first, std::uint64_t count, void* out) {
    evaluate_range(*row, first, count, static_cast<std::uint32_t*>(out));
  };
}

}  // namespace repdl::reference
