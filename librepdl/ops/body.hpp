// The numerics of the elementwise operations: body<Op>::eval(x, ...) for binary32 operands.
//
// A body is plain branch-free scalar code for host and device: the compiler vectorises it in the CPU loop, and it is
// the thread's code in the CUDA loop. Compile with -fno-math-errno -fno-trapping-math beside the flags in platform.hpp.
#pragma once

#include "librepdl/num/eft.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/ops/registry.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

template <class Op>
struct body;

// x with |x| cut down to `limit`; NaN is cut down, too.
REPDL_HD float clamp_magnitude(float x, float limit) {
  const std::uint32_t b = bits_of(x);
  const std::int32_t magnitude = static_cast<std::int32_t>(b & 0x7fffffff);
  const std::int32_t cap = static_cast<std::int32_t>(bits_of(limit));
  const std::int32_t m = magnitude < cap ? magnitude : cap;
  return float_of(static_cast<std::uint32_t>(m) | (b & 0x80000000));
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
