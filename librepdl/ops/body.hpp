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

// RO(s + tail), rounding to odd, for s = RN(s + tail), or any s for which the exact value lies between s and its
// neighbour on tail's side: truncate towards zero, then set the last bit if `inexact` (0 or 1) says that the exact
// value is not s. The same function as round_to_odd for finite s, but in operations that vectorise on every instruction
// set (no 64-bit integer comparison or select: SSE2 has none). Any s passes unchanged if inexact = 0. A tail that is
// NaN counts as 0.
REPDL_HD double truncate_to_odd(double s, double tail, std::uint64_t inexact) {
  const std::uint64_t b = bits_of(s);
  return double_of((b - (((bits_of(tail) ^ b) >> 63) & inexact)) | inexact);
}
REPDL_HD double truncate_to_odd(double s, double tail) {
  const double magnitude = double_of(bits_of(tail) & 0x7fffffffffffffff);
  return truncate_to_odd(s, tail, bits_of(magnitude > 0 ? double_of(1) : 0.0));
}

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
