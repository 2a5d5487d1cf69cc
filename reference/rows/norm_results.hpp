// Results that norms have.
#pragma once

#include "reference/elementwise/elementwise.hpp"
#include "reference/rows/softmax_row.hpp"

namespace repdl::reference {

inline bool is_finite(const extended& v) { return !v.is_nan() && !v.is_infinite(); }

/// RN(b ± sqrt(q)), b a multiple of 2^-150; an exact zero is +0.
result with_root(const mpq_class& b, bool negative, const mpq_class& q);

/// RN(v / n), n > 0; a zero keeps its sign.
result quotient(const extended& v, std::int64_t n);

}  // namespace repdl::reference
