// What CUDA makes of the rules of rows (librepdl/ops/rows/rule.hpp). The kernels here ask device_rule<Op>: the operation's row_rule, and
//
//   quick           of binary16 and bfloat16, in binary32: quick_of(numbers) makes it, known: whether it says anything, and
//                   quick_ends(quick, x, term), term cut to binary32, are what an output is between. Where both round alike, so does it
//   line_of         of binary32: of elements with the same x[1], x[2], .. makes it what has at(x[0]), an output as element's
//   has_exponential_element   element takes an exponential (plain_exponential)
//   precise         sums of parts of rows of binary32, in place of sums<double>, and late_of(top, total): late sums of wide numbers, of them,
//                   if is_known(total)
//
// or other members in place of the rule's own. What a rule is made of, class templates of R, is specialised for R = double where a GPU
// knows a better way: it rounds up and down as fast as to nearest, and its conversions are slow. device_softmax.cuh and device_norms.cuh
// have both; they are included before anything uses a rule (rows.cuh).
#pragma once

#include "librepdl/ops/rows/rules.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

template <ops::op_id Op>
struct device_rule : row_rule<Op> {};

// Whether a rule has elements in binary32.
template <class Rule>
concept has_quick = requires {
  typename Rule::quick;
};
// Whether its elements are on a line where the operands but x[0] are those of several.
template <class Rule>
concept has_line = Rule::per_element && requires(const typename Rule::template numbers<double>& n, const float* x) {
  Rule::line_of(n, x).at(*x);
};

// Whether it has precise sums.
template <class Rule>
concept has_precise_sums = requires {
  typename Rule::precise;
};

// Conversions are slow: elements are rounded where they are written, and tested by their bits. A binary16 number below 2^-14 has
// its midpoints where one of that much more has them.
template <class T>
REPDL_HD double above_subnormals(double v) {
  if constexpr (std::is_same_v<T, f16>) {
    const double a = magnitude_of(v);
    return a < 0x1p-14 ? a + 0x1p-14 : a;
  } else {
    return v;
  }
}
// Whether midpoints are where they are of most numbers, from the upper half of above_subnormals, its sign aside.
template <class T>
REPDL_HD bool has_midpoints_in_place(unsigned upper) {
  if constexpr (std::is_same_v<T, f16>) return upper < 0x40f00000u;  // 2^16
  return upper - 0x38200000u < 0x47d00000u - 0x38200000u;            // 2^-125 to 2^126
}
// What `narrow` makes RN_T(v) of, for a v that is no midpoint of T: of the narrow formats v cut to binary32, its last bit set. Midpoints
// have a last bit of 0 there, so it is none, and on v's side of all of them.
template <class T>
REPDL_HD float value_of([[maybe_unused]] double v) {
#if defined(__CUDA_ARCH__) || defined(REPDL_EMULATED)
  if constexpr (!std::is_same_v<T, float>) return float_of(bits_of(__double2float_rz(v)) | 1u);
#endif
  return static_cast<float>(v);
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
