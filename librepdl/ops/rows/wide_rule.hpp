// Rows of binary64: plain loops walk them (backends/*/rows/rows_wide.*), and know rules only, as rule.hpp has them for the other formats.
//
// Of softmax and log_softmax also those that have x or results of another format (any_format): elements are binary64 numbers, results are
// rounded once to the format `to`, and are binary64 numbers on their way.
//
// wide_rule<Op>: the operands, what is looked for and which outputs there are is what row_rule<Op> says; and
//   classify        the rows whose outputs are all one number, from what is given of the row
//   late<A>         the sums of a row: start, add, merge; trivially copyable. A = wide<double> (num/wide.hpp) is the first tier, others are balls
//   late_total<A>   of a loss: the sum over rows, from those: start, add_row, add_special, of a row that is one number, merge, finish
//   settle<A>       output number `what` of elements x: RN of the exact value, if A has enough bits; exact_limbs != 0: A = ball<2> stands for
//                   exact arithmetic, which always has. With an exception 1 is the element at the target
#pragma once

#include "librepdl/num/formula.hpp"
#include "librepdl/ops/rows/rule.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

using decided64 = decided_value<double>;
REPDL_HD decided64 known_number(double x) { return {x, true}; }
REPDL_HD double zero_of_sign(bool is_negative) { return is_negative ? -0.0 : 0.0; }

REPDL_HD bool sign_bit(double x) { return (bits_of(x) >> 63) != 0; }

template <class A>
inline constexpr bool is_wide_number = std::is_same_v<A, wide<double>>;

using wide64 = wide<double>;
REPDL_HD wide64 wide_of(double x) { return arithmetic<wide64>::number(x); }
REPDL_HD wide64 nothing_known() { return {{0.0, 0.0}, infinity}; }

// a b. Of a product below 2^-900 two_prod loses less than 2^-1071, each of the four roundings of low parts 2^-1074 or less; of the error's own
// products each that underflows less than 2^-1074. A zero times a number of which something is known is 0.
REPDL_HD wide64 product_of_any(const wide64& a, const wide64& b) {
  wide64 p = a;
  multiply_by(p, b);
  const double m = magnitude_of(p.value.hi);
  if (!(m <= 0x1p960) || !(p.error < infinity)) return nothing_known();
  if (is_zero(a) || is_zero(b)) return wide_of(0.0);
  const bool is_rounded = a.error != 0 || b.error != 0 || m < 0x1p-900;
  p.error += is_rounded ? 0x1p-1068 : 0.0;
  return p;
}
REPDL_HD wide64 product_of_any(const wide64& a, double b) { return product_of_any(a, wide_of(b)); }
// a / b where all of these are in the middle, or a is 0.
REPDL_HD wide64 quotient_of_any(const wide64& a, const wide64& b) {
  if (!is_in_middle(b.value.hi)) return nothing_known();
  if (is_zero(a)) return a;
  wide64 q = a;
  divide_by(q, b);
  return is_in_middle(a.value.hi) && is_in_middle(q.value.hi) ? q : nothing_known();
}

// What a loss is divided by: a count, or the sum of the weights at targets, exactly, and as a wide number where it is finite.
struct wide_divisor {
  exact_sum<double, 1> sum;
  wide<double> near;

  REPDL_HD void find_near() {
    auto rest = sum.finite;
    const double hi = rest.template round<double>();
    near = {{hi, 0.0}, infinity};
    if (!is_finite(hi)) return;
    rest.add(-hi);
    const double lo = rest.template round<double>();
    rest.add(-lo);
    near = {{hi, lo}, rest.is_zero() ? 0.0 : 0x1p-53 * magnitude_of(lo)};
  }
  // NaN, an infinity, or the sign of a number.
  REPDL_HD double kind() const {
    return sum.special.any() ? sum.special.template value<double>() : static_cast<double>(sum.finite.sign());
  }
};

// What is given of a row: the call's numbers, its own, and its top, found or given.
struct wide_row_given {
  std::int64_t length;
  double eps;
  double momentum;
  bool biased;
  double g = 1;
  double top = 0;
  double former[2] = {0, 0};
  std::int64_t target = -1;
  bool is_ignored = false;
  double at_target = 0;  // its elements there, where there is such a class
  double weight = 0;
  const wide_divisor* divisor = nullptr;  // of losses
  dtype to = dtype::f64;                  // the format of results

  REPDL_HD bool has_target() const { return !is_ignored && target >= 0 && target < length; }
};

struct row_class64 {
  bool fills;  // every output is `value`
  double value;
};

// RN of a number, or of a formula's value, in a format, as a binary64 number.
template <class T>
REPDL_HD decided64 widened64(const decided_value<T>& c) {
  return {widen(c.value), c.decided};
}
template <class A>
REPDL_HD_CALL decided64 round_in(dtype to, const A& a) {
  return with_float(to, [&]<class T>() { return widened64(round_number<T>(a)); });
}
template <int L, class Value>
REPDL_HD_CALL decided64 round_formula_in(dtype to, const Value& f) {
  return with_float(to, [&]<class T>() { return widened64(round_formula<T, L>(f)); });
}

template <ops::op_id Op>
struct wide_rule;
template <ops::op_id Op>
inline constexpr bool any_format = Op == ops::op_id::softmax || Op == ops::op_id::log_softmax;
template <ops::op_id Op>
concept has_wide_rule = requires {
  sizeof(wide_rule<Op>);
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
