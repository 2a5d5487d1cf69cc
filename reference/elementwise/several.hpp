// Oracles of functions of two or three operands that are rational, or roots or transcendental functions of rational
// expressions. Special values by the contract's rules, written out here; finite ones with GMP's rationals and MPFR's intervals.
#pragma once

#include "reference/elementwise/elementwise.hpp"

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
REPDL_LOCATED(abs_backward)
REPDL_LOCATED(sqrt_backward)
REPDL_LOCATED(log1p_backward)
REPDL_LOCATED(rsqrt_backward)
REPDL_LOCATED(reciprocal_backward)
REPDL_LOCATED(expm1_backward)
REPDL_LOCATED(div_backward_y)
REPDL_LOCATED(addcdiv_backward_z)
REPDL_LOCATED(lerp_backward_x)
REPDL_LOCATED(lerp_backward_weight)
REPDL_LOCATED(lerp_scalar_backward_x)
REPDL_LOCATED(hypot_backward)
REPDL_LOCATED(atan2_backward_y)
REPDL_LOCATED(atan2_backward_x)
REPDL_LOCATED(xlogy_backward_y)
REPDL_LOCATED(fmod_backward_y)
REPDL_LOCATED(remainder_backward_y)
REPDL_LOCATED(copysign_backward)
REPDL_LOCATED(maximum_backward)
REPDL_LOCATED(minimum_backward)
REPDL_LOCATED(fmax_backward_x)
REPDL_LOCATED(fmax_backward_y)
REPDL_LOCATED(fmin_backward_x)
REPDL_LOCATED(fmin_backward_y)
REPDL_LOCATED(xlogy)
REPDL_LOCATED(logaddexp)
REPDL_LOCATED(elu)
REPDL_LOCATED(silu_backward)
REPDL_LOCATED(mish_backward)
REPDL_LOCATED(log_sigmoid_backward)
REPDL_LOCATED(gelu_backward)
REPDL_LOCATED(gelu_tanh_backward)
REPDL_LOCATED(leaky_relu_backward)
REPDL_LOCATED(elu_backward)
REPDL_LOCATED(selu_backward)
REPDL_LOCATED(celu)
REPDL_LOCATED(celu_backward)
REPDL_LOCATED(softplus)
REPDL_LOCATED(softplus_backward)
REPDL_LOCATED(atan2)
REPDL_LOCATED(logaddexp2)
REPDL_LOCATED(logit)
REPDL_LOCATED(logit_backward)
REPDL_LOCATED(softshrink)
REPDL_LOCATED(softshrink_backward)
REPDL_LOCATED(log2_backward)
REPDL_LOCATED(log10_backward)
REPDL_LOCATED(exp2_backward)
REPDL_LOCATED(xlogy_backward_x)
REPDL_LOCATED(logaddexp_backward)
REPDL_LOCATED(logaddexp2_backward)
REPDL_LOCATED(sin_backward)
REPDL_LOCATED(cos_backward)
REPDL_LOCATED(tan_backward)
REPDL_LOCATED(asin_backward)
REPDL_LOCATED(acos_backward)
REPDL_LOCATED(atan_backward)
REPDL_LOCATED(sinh_backward)
REPDL_LOCATED(cosh_backward)
REPDL_LOCATED(asinh_backward)
REPDL_LOCATED(acosh_backward)
REPDL_LOCATED(atanh_backward)
REPDL_LOCATED(erf_backward)
REPDL_LOCATED(erfc_backward)
REPDL_LOCATED(erfinv_backward)
REPDL_LOCATED(ndtri_backward)
REPDL_LOCATED(pow_backward_x)
REPDL_LOCATED(pow_backward_y)
REPDL_LOCATED(pow_scalar_backward)
REPDL_LOCATED(scalar_pow_backward)
REPDL_LOCATED(glu)
REPDL_LOCATED(swiglu)
REPDL_LOCATED(reglu)
REPDL_LOCATED(geglu)
REPDL_LOCATED(glu_backward_b)
REPDL_LOCATED(swiglu_backward_a)
REPDL_LOCATED(reglu_backward_a)
REPDL_LOCATED(geglu_backward_a)
#undef REPDL_LOCATED

}  // namespace repdl::reference
