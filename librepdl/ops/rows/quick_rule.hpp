// The first tier of rows of binary64, beside wide_rule.hpp: double-doubles whose errors are bounded for a whole row beforehand, where
// wide numbers carry theirs along. It has nothing for what is special: infinite and NaN operands, what underflows or overflows on its way.
//
// quick_rule<Op>: operands and outputs are what row_rule<Op> says, its top included; and
//   term            of an element, from the operands that sums take: a double-double
//   keeps_term      it costs more than it takes to keep; needs_operands: whether its element needs them beside the term
//   sums            of a part of a row: start, add, merge; trivially copyable
//   numbers         what outputs are computed with; `prepare` makes them of a row's sums. is_known: whether any element may be decided
//   element         an output, of a term and operands, rounded, or that it is undecided
//   result          likewise output number `what` of the row's own
// Where terms may be had precisely, too, at more cost, term, prepare, of sums of such, and element, of such, are templates of that. Long rows, whose
// terms are not kept, have sums of precise ones: then an element alone is left undecided now and then, and made again, precisely.
//
// Operands are 0 where the call lacks them, or what the rule says is absent.
#pragma once

#include "librepdl/ops/rows/wide_rule.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

template <ops::op_id Op>
struct quick_rule;
template <ops::op_id Op>
concept has_quick_rule = requires {
  sizeof(quick_rule<Op>);
};

inline constexpr std::int64_t most_kept_terms = 4096;  // of a row

// What walkers ask of any of them.
template <class Quick>
concept has_precise_terms = requires(const wide_row_given& o, const double* x) {
  Quick::template term<true>(o, x);
};
template <class Quick, bool Precise>
REPDL_HD dd quick_term(const wide_row_given& o, const double* x) {
  if constexpr (has_precise_terms<Quick>) {
    return Quick::template term<Precise>(o, x);
  } else {
    return Quick::term(o, x);
  }
}
template <class Quick, bool Precise>
REPDL_HD typename Quick::numbers quick_numbers(const wide_row_given& o, const typename Quick::sums& s) {
  if constexpr (has_precise_terms<Quick>) {
    return Quick::template prepare<Precise>(o, s);
  } else {
    return Quick::prepare(o, s);
  }
}
template <class Quick, bool Precise>
REPDL_HD decided64 quick_element(const typename Quick::numbers& n, const dd& term, const double* x) {
  if constexpr (has_precise_terms<Quick>) {
    return Quick::template element<Precise>(n, term, x);
  } else {
    return Quick::element(n, term, x);
  }
}

// RN(v) of a v within `error` of hi + lo, |lo| <= 2^-53 |hi|, if both ends round alike. `error` has room for what the ends round: 2^-105 of hi, and 2^-52
// of itself.
REPDL_HD decided64 round_enclosed(dd v, double error) {
  const double low = v.hi + (v.lo - error);
  const double high = v.hi + (v.lo + error);
  return {low, low == high};
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
