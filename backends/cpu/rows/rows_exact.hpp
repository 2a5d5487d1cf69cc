// The last tier of the softmax family on the CPU (librepdl/ops/exponential_sum.hpp), for the elements that the kernels
// left open.
#pragma once

#include "backends/cpu/rows/rows_walk.hpp"

namespace repdl::cpu {

// What is wanted of an element: its operation's own value, or what one row contributes.
enum class element_kind { weight, target_weight, log_softmax, logsumexp, cross_entropy };

// Sets decided[i] and out[i] for the elements with decided[i] == 0; x[i] is the element (cross_entropy: the target's),
// g and n as in num::exact_scaled_gradient. Returns how many are left undecided.
std::int64_t settle_exactly(const row_reader& row, float max, element_kind kind, const float* x, int count, float g,
                            std::int64_t n, int budget_bits, float* out, std::uint8_t* decided) noexcept;

// The same for the gradients from outputs; all finite, or y = -inf for log_softmax_backward.
std::int64_t settle_tracked_exactly(const plan::row_plan& p, const row_place& at, const float* g, const float* y,
                                    int count, int budget_bits, float* out, std::uint8_t* decided) noexcept;

// cross_entropy with mean or sum over all rows that are not ignored, all of them finite; n: the divisor.
num::certified total_exactly(const plan::row_plan& p, std::int64_t n, int budget_bits) noexcept;

}  // namespace repdl::cpu
