// The options of the structured operations.
#pragma once

#include <cstdint>
#include <optional>

#include "librepdl/export.hpp"
#include "librepdl/tensor.hpp"

namespace repdl REPDL_EXPORT {

/// How sums of products are accumulated.
enum class accumulate : std::int32_t {
  exact = 0,  ///< the exact sum, rounded once (the default)
  fma_chain =
      1,  ///< s = fma(a_k, b_k, s) in f32 from s = +0, k ascending; a bias is added afterwards (contract, section 5)
};

/// Options of sum, mean, max, min, argmax, argmin.
struct reduce_options {
  std::optional<sizes> axis;  ///< the axes to reduce, negative ones count from the end; absent: all; {}: none
  bool keepdim = false;       ///< keep the reduced axes with size 1
};

/// Options of matmul.
struct matmul_options {
  bool transpose_a = false;  ///< a is (..., k, m)
  bool transpose_b = false;  ///< b is (..., n, k)
  repdl::accumulate accumulate = repdl::accumulate::exact;
  const_tensor_view bias{};  ///< f32, broadcast to the output's shape; inside the one rounding
};

/// Options of uniform.
struct uniform_options {
  double low = 0;   ///< finite, 0 or of magnitude in [2^-200, 2^200]
  double high = 1;  ///< likewise
};

/// The state of a random generator: each random operation uses one stream value and moves on to the next.
struct generator {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
};

}  // namespace repdl
