// Oracles of functions of two or three operands that are rational, or roots or transcendental functions of rational
// expressions. Special values by the contract's rules, written out here; finite ones with GMP's rationals and MPFR's intervals.
#pragma once

#include "reference/elementwise.hpp"

namespace repdl::reference {

/// RN_t of a row's formula; where the exact value lies goes to *where, unless it is null.
using located_function = std::uint64_t (*)(dtype t, const std::uint64_t* in, const double* options, outcome* where);

template <located_function F>
std::uint64_t result_of(dtype t, const std::uint64_t* in, const double* options) {
  return F(t, in, options, nullptr);
}
template <located_function F>
outcome place_of(dtype t, const std::uint64_t* in, const double* options) {
  outcome o;
  F(t, in, options, &o);
  return o;
}
template <located_function F>
constexpr oracle located(std::string_view name) {
  return {.name = name, .f = result_of<F>, .where = place_of<F>};
}

#define REPDL_LOCATED(name) \
  std::uint64_t located_##name(dtype t, const std::uint64_t* in, const double* options, outcome* where);
REPDL_LOCATED(addcmul)
REPDL_LOCATED(addcdiv)
REPDL_LOCATED(lerp)
REPDL_LOCATED(lerp_scalar)
REPDL_LOCATED(prelu)
REPDL_LOCATED(prelu_backward)
REPDL_LOCATED(hypot)
REPDL_LOCATED(fmod)
REPDL_LOCATED(remainder)
REPDL_LOCATED(div_trunc)
REPDL_LOCATED(div_floor)
REPDL_LOCATED(xlogy)
REPDL_LOCATED(logaddexp)
REPDL_LOCATED(elu)
REPDL_LOCATED(log2_backward)
REPDL_LOCATED(log10_backward)
REPDL_LOCATED(exp2_backward)
REPDL_LOCATED(xlogy_backward_x)
REPDL_LOCATED(logaddexp_backward)
REPDL_LOCATED(logaddexp2_backward)
REPDL_LOCATED(sin_backward)
REPDL_LOCATED(cos_backward)
REPDL_LOCATED(erf_backward)
REPDL_LOCATED(erfc_backward)
REPDL_LOCATED(pow_backward_x)
REPDL_LOCATED(pow_backward_y)
#undef REPDL_LOCATED

}  // namespace repdl::reference
