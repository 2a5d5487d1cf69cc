// Operations on rows: along some axes of a tensor ("a row"), numbers are found that every element of the row is computed with.
//
// row_rule<Op> says what an operation is; the walkers (backends/*/rows) know how rows are read, divided and written, and no operation.
// R is binary64, or a register of it, whose lanes are elements of one row, or rows side by side; top, sums, numbers likewise.
//
//   look            what is found of a row before it is summed up: nothing, or its greatest element (NaN where one is)
//   operands        element operands, 1 or 2: x, y
//   reads_g, reads_target   operands of which a row has one number
//   per_element     an output for each element, else for each row
//   classify        the rows whose outputs are all one number, known before they are summed up
//   term            of an element, from which its part of the sums is made; keeps_term: its output, too
//   sums<R>         of a part of a row: add, merge, of_row, which is what they say of a whole row; lane(l), that one's
//   total           of parts of a row that are too long for merge: join, of_row<R>
//   numbers<R>      what elements are computed with, and `prepare`, which makes them of that
//   element<R>      an output, or that binary64 leaves it open; careful<R>, if there is one: the same at more cost, for what element left
//   result<R>       the same of a row
//   exception       of the element at the row's target, in binary64, if it is another formula than the others'
//   late<A>         the sums in an arithmetic A (num/wide.hpp), registers of wide numbers included: start, add, merge, lane
//   settle<A>       an output from it, which is decided if A has enough bits; A = ball<exact_limbs>, if that is not 0, always has
//
// What is special is open in binary64, as if undecided, and settle knows it: infinite and NaN operands, mostly.
#pragma once

#include "librepdl/num/sums.hpp"
#include "librepdl/ops/registry.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

enum class row_look { nothing, greatest };

// Of a call: constants of the error bounds, infinite where binary64 is to decide nothing.
struct row_bounds {
  double weight;     // relative error of e^(d_i) / S and of what is made of it
  double logarithm;  // relative error of R but for max(0, -ln rest) u
  double tracked;    // of a tracked sum, relative to its error
};
struct row_call {
  row_bounds bounds;
  std::int64_t length;
  std::int64_t n;  // what results are divided by
};

// A row's own operands; at_target: its element there, where there is one.
struct row_operands {
  float g = 1;
  std::int64_t target = -1;
  bool ignored = false;
  float at_target = 0;

  REPDL_HD bool has_target(std::int64_t length) const { return !ignored && target >= 0 && target < length; }
};
struct row_class {
  bool fills;  // every output is `value`
  float value;
};

// What rules take of R beyond math<R>; of registers: backends/cpu/rows/row_registers.hpp.
template <class R>
struct row_math;
template <>
struct row_math<double> : math<double> {
  // b where they are unordered.
  REPDL_HD static double larger(double a, double b) { return a > b ? a : b; }
  using tally = std::int32_t;  // of less than 2^31 numbers
  REPDL_HD static double of_tally(tally n) { return static_cast<double>(n); }
  using mask = bool;
  // Other bits, or NaN.
  REPDL_HD static bool differ(float a, float b) { return bits_of(a) != bits_of(b) || a != a; }
};

// Results of a register, and where they are open.
template <class R>
struct verdict {
  typename math<R>::single value;
  typename row_math<R>::mask open;
};
template <class R>
struct float_ends {
  typename math<R>::single low;
  typename math<R>::single high;
};
template <class R>
REPDL_HD verdict<R> verdict_of(float_ends<R> e) {
  return {e.low, row_math<R>::differ(e.low, e.high)};
}

template <ops::op_id Op>
struct row_rule;

}  // namespace REPDL_ISA
}  // namespace repdl::num
