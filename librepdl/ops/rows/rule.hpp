// Operations on rows: along some axes of a tensor ("a row"), numbers are found that every element of the row is computed with.
//
// row_rule<Op> says what an operation is; the walkers (backends/*/rows) know how rows are read, divided and written, and no operation.
// R is binary64, or a register of it, whose lanes are elements of one row, or rows side by side; top, sums, numbers likewise.
//
//   look            what is found of a row before it is summed up, its top: nothing (0), its greatest element (NaN where one is), its
//                   first one, or a number that is given
//   inputs          which operands of the call are what: those with a number for each element, x[0], x[1], ..; g; target; top;
//                   former, what the last results of a row were before
//   absent          what stands for each x that the call lacks
//   summed          sums take the first `summed` of them
//   required        the first `required` of them are never absent
//   outside_is_absent   beside a row, where walkers compute too, operands that may be absent are as if they were
//   others_of_rows  the others are numbers of rows: of all their elements
//   formatted       the first `formatted` of them are of the call's format; the others are statistics
//   has_factors     those of them that may be absent are factors, and numbers that are added: all of one format, the call's or binary32
//   per_element     the first output has a number for each element, and
//   results         `results` outputs, the last ones, one for each row
//   classify        the rows whose outputs are all one number, known before they are summed up
//   is_costly       on a GPU an element of binary32 takes longer than memory does
//   has_exponential term takes an exponential (plain_exponential)
//   has_sums        anything is found of a row but its top and its own numbers
//   term            of an element, from which its part of the sums is made; keeps_term: its output, too
//   sums<R>         of a part of a row: add, merge, of_row, which is what they say of a whole row; lane(l), that one's
//   total           of parts of a row that are too long for merge: join, of_row<R>
//   exact_totals    totals are joined in double-double
//   numbers<R>      what elements are computed with, and `prepare`, which makes them of that and of row_given
//   element<T, R>   an output, rounded to T, or that binary64 leaves it undecided; careful<T, R>, if there is one: the same at more cost, for
//                   what element left. On a CPU, of rows one at a time, limits<R>, if there are any, from the greatest magnitudes of
//                   x[1] and x[2]: element_within<T, R> is a shorter element, and element decides what it left
//   result<R>       what a row's result k is between, beside `at`: its counterpart among the row's own numbers, if there is one
//   exception       likewise of the element at the row's target, if it is another formula than the others'
//   part            of a loss that is a sum over rows: a row's part of it; late_total<A>: the sum, from late sums
//   late<A>         the sums in an arithmetic A (num/wide.hpp), registers of wide numbers included: start, add, merge, lane
//   settle<A>       an output from it, rounded to a format, which is decided if A has enough bits; A = ball<exact_limbs>, if that is not 0,
//                   always has. what: the output's number; with an exception 1 is the element at the target
//
// Operands and outputs are of one format, binary16, bfloat16 or binary32 (of binary64: wide_rule.hpp); statistics of rows, which norms make
// and their gradients take, are binary32, and factors may be. Numbers of the narrow formats, and the middles between two of them, are
// binary32 numbers or midpoints: what is said of those holds of them, and they are binary32 numbers on their way through.
//
// A backend may specialise what a rule is made of, class templates of R, for its own R, and derive rules of its own: CUDA does
// (backends/cuda/rows/device_rule.cuh).
//
// What is special is undecided in binary64, as if undecided, and settle knows it: infinite and NaN operands, mostly.
#pragma once

#include "librepdl/num/certify.hpp"
#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/sums.hpp"
#include "librepdl/num/wide.hpp"
#include "librepdl/ops/registry.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

enum class row_look { nothing, greatest, first, given };

inline constexpr int most_elements = 4;
// Numbers of a call's inputs; -1: none. Those of elements increase: 0 or -1 ends them.
struct row_inputs {
  int element[most_elements] = {};
  int g = -1;
  int target = -1;
  int top = -1;
  int former[2] = {-1, -1};

  constexpr int elements() const {
    int n = 1;
    while (n < most_elements && element[n] > 0) ++n;
    return n;
  }
};

// Of a call: constants of the error bounds, infinite where binary64 is to decide nothing.
struct row_bounds {
  double weight;     // relative error of e^(d_i) / S and of what is made of it
  double logarithm;  // relative error of R but for max(0, -ln rest) u
  double tracked;    // of a tracked sum, relative to its error
  double sum;        // of a plain sum, relative to the sum of magnitudes

  static constexpr row_bounds nothing() { return {infinity, infinity, infinity, infinity}; }
};
struct row_call {
  row_bounds bounds;
  std::int64_t length;
  std::int64_t n;  // what results are divided by
  double eps;
  bool biased;  // norms: there is a bias; losses: probabilities in place of targets
  double momentum;
  double total;                    // n, or the sum of the weights at targets, rounded, which is divided by instead,
  const sum_accumulator* weights;  // and that sum, if it is
  bool mixed = false;              // on a GPU: factors are binary32 where other operands are not
};
// What a row's numbers are made with, of its own operands.
template <class R>
struct row_given {
  R g;
  R weight;
};

// A row's own operands; at_target, weight: its elements there, where there is one.
struct row_operands {
  float g = 1;
  std::int64_t target = -1;
  bool ignored = false;
  float at_target = 0;
  float weight = 0;
  float former[2] = {0, 0};

  REPDL_HD bool has_target(std::int64_t length) const { return !ignored && target >= 0 && target < length; }
};
struct row_class {
  bool fills;  // every output is `value`
  float value;
};

// Late sums begin with a row's top, and, where rules ask for it, with the call.
template <class Sums, class R, class Call>
REPDL_HD void start_sums(Sums& s, R top, [[maybe_unused]] const Call& c) {
  if constexpr (requires { s.start(top, c); }) {
    s.start(top, c);
  } else {
    s.start(top);
  }
}

REPDL_HD float signed_zero(bool negative) { return float_of(negative ? 0x80000000u : 0u); }
REPDL_HD bool sign_bit(float x) { return (bits_of(x) >> 31) != 0; }

// What rules take of R beyond math<R>; of registers: backends/cpu/rows/row_registers.hpp.
template <class R>
struct row_math;
template <>
struct row_math<double> : math<double> {
  // a + b; of registers by what multiplies.
  REPDL_HD static double add(double a, double b) { return a + b; }
  // b where they are unordered.
  REPDL_HD static double larger(double a, double b) { return a > b ? a : b; }
  REPDL_HD static double root(double a) { return num::sqrt(a); }
  // 1 / sqrt(a) within 2 u of itself, or NaN, as of 0. On a GPU from an approximation y whose e = 1 - a y^2 is looked at: y (1 + e / 2 +
  // 3 e^2 / 8) is off by less than e^3 / 3 of itself, and by u for the last addition.
  REPDL_HD static double reciprocal_root(double a) {
    if constexpr (on_device) {
      const double y = reciprocal_root_estimate(a);
      const double e = fma(-(a * y), y, 1.0);
      return magnitude_of(e) < 0x1p-18 ? fma(y * e, fma(0.375, e, 0.5), y) : double_of(format<double>::nan);
    } else {
      return 1 / num::sqrt(a);
    }
  }
  using tally = std::int32_t;  // of less than 2^31 numbers
  REPDL_HD static double of_tally(tally n) { return static_cast<double>(n); }
  using mask = bool;
  // Other bits, or NaN.
  REPDL_HD static bool differ(float a, float b) { return bits_of(a) != bits_of(b) || a != a; }
  template <class T>
  REPDL_HD static float rounded(double a) {
    return widen_to_float(num::rounded<T>(a));
  }
};

// Results of a register, and where they are undecided. value: what `narrow` makes a result of.
template <class R>
struct verdict {
  typename math<R>::single value;
  typename row_math<R>::mask undecided;
};
// What a number is between.
template <class R>
struct ends {
  R low;
  R high;
};
template <class R>
REPDL_HD ends<R> anything() {
  return {math<R>::all(-infinity), math<R>::all(infinity)};
}
template <class T, class R>
REPDL_HD verdict<R> verdict_of(const ends<R>& e) {
  const auto low = row_math<R>::template rounded<T>(e.low);
  return {low, row_math<R>::differ(low, row_math<R>::template rounded<T>(e.high))};
}

template <class T>
REPDL_HD certified widened(const decided_value<T>& c) {
  return {widen_to_float(c.value), c.decided};
}
// RN of a number, in a format of rows.
template <class A>
REPDL_HD_CALL certified round_to(dtype to, const A& a) {
  return with_format(to, [&]<class T>() { return widened(round_number<T>(a)); });
}
// RN(S / n), S within e of s (certify).
REPDL_HD certified round_mean_of(dtype to, dd s, double e, std::int64_t n) {
  return with_format(to, [&]<class T>() { return widened(n == 1 ? certify<T>(s, e) : certify_mean<T>(s, e, n)); });
}
REPDL_HD certified round_ends(dtype to, const ends<double>& e);
// RN(S / n), or, of weights, S / W, W within 2^-53 of `total`: the quotient errs by 2^-52 of itself more, and its ends round.
REPDL_HD certified round_loss(dtype to, dd s, double e, const row_call& c) {
  if (c.weights == nullptr) return round_mean_of(to, s, e, c.n);
  const double q = (s.hi + s.lo) / c.total;
  const double error = e / magnitude_of(c.total) * (1 + 0x1p-40) + 0x1p-50 * magnitude_of(q);
  return round_ends(to, {q - error, q + error});
}
REPDL_HD certified round_ends(dtype to, const ends<double>& e) {
  return with_format(to, [&]<class T>() {
    const verdict<double> v = verdict_of<T, double>(e);
    return certified{v.value, !v.undecided};
  });
}

// What most rules say.
struct plain_rule {
  static constexpr row_look look = row_look::nothing;
  static constexpr float absent[most_elements] = {};
  static constexpr int summed = 1;
  static constexpr int required = 1;
  static constexpr int formatted = most_elements;
  static constexpr bool has_factors = false;
  static constexpr bool per_element = true;
  static constexpr int results = 0;
  static constexpr bool has_sums = true;
  static constexpr bool others_of_rows = false;
  static constexpr bool exact_totals = false;
  static constexpr bool keeps_term = false;
  static constexpr bool outside_is_absent = false;
  static constexpr bool has_exception = false;
  static constexpr bool is_costly = false;
  static constexpr int exact_limbs = 0;
  REPDL_HD static row_class classify(const row_call&, const row_operands&, float) { return {false, 0.0f}; }
  REPDL_HD static float counterpart(const row_operands&, int) { return 0.0f; }
};
template <class Rule>
inline constexpr int elements_of = Rule::inputs.elements();
template <class Rule>
inline constexpr int formers_of = Rule::inputs.former[0] >= 0 ? 2 : 0;

// Whether results may be added up over rows.
template <class Rule>
inline constexpr bool is_loss = requires {
  typename Rule::template late_total<wide<double>>;
};

template <ops::op_id Op>
struct row_rule;

}  // namespace REPDL_ISA
}  // namespace repdl::num
