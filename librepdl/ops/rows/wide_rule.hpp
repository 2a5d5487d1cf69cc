// Rows of binary64: plain loops walk them (backends/*/rows/rows_wide.*), and know rules only, as rule.hpp has them for the other formats.
//
// wide_rule<Op>: the operands, what is looked for and which outputs there are is what row_rule<Op> says; and
//   classify        the rows whose outputs are all one number, from what is given of the row
//   late<A>         the sums of a row: start, add, merge; trivially copyable. A = wide<double> (num/wide.hpp) is the first tier, others are balls
//   settle<A>       output number `what` of elements x: RN of the exact value, if A has enough bits; exact_limbs != 0: A = ball<2> stands for
//                   exact arithmetic, which always has
#pragma once

#include "librepdl/ops/rows/rule.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

using decided64 = decided_value<double>;
REPDL_HD decided64 known_number(double x) { return {x, true}; }
REPDL_HD double zero_of_sign(bool is_negative) { return is_negative ? -0.0 : 0.0; }

REPDL_HD bool sign_bit(double x) { return (bits_of(x) >> 63) != 0; }

template <class A>
inline constexpr bool is_wide_number = std::is_same_v<A, wide<double>>;

// What is given of a row: the call's numbers, its own, and its top, found or given.
struct wide_row_given {
  std::int64_t length;
  double eps;
  double momentum;
  bool biased;
  double g = 1;
  double top = 0;
  double former[2] = {0, 0};
};

struct row_class64 {
  bool fills;  // every output is `value`
  double value;
};

template <ops::op_id Op>
struct wide_rule;
template <ops::op_id Op>
concept has_wide_rule = requires {
  sizeof(wide_rule<Op>);
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
