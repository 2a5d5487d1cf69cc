// Operands in binary64 where the results of an elementwise operation are difficult, which patterns alone seldom are: next to midpoints;
// where results overflow, are subnormal, or reach a limit.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "librepdl/ops/registry.hpp"
#include "reference/samples.hpp"

namespace repdl::reference {

/// Operands whose exact result is no midpoint, and within 2^-bits of its ulp of one.
struct hard_operands {
  std::string_view row;
  double x[3];
  int bits;
};
std::span<const hard_operands> published_hard_operands();
/// Those of rows of which nothing is published.
std::span<const hard_operands> found_hard_operands();

namespace detail {
/// The operands of a row in binary64, or false: where nothing is known of the row for the class, and of a share of the others.
bool difficult_operands(const ops::elementwise_row& row, sample_class c, word_stream& w, std::uint64_t* in);
}  // namespace detail

}  // namespace repdl::reference
