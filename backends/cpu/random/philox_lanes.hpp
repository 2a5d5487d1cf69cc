// Philox in vectors. Included by kernels only.
#pragma once

#include "backends/cpu/core/simd.hpp"

namespace repdl::cpu::REPDL_ISA {

// num::philox4x32_10 in the lanes of a vector. Each 32-bit word is the lower half of a 64-bit lane; the upper halves
// hold anything, since products read lower halves only and the last step masks.
struct philox_state {
  u64v c0, c1, c2, c3;

  [[gnu::always_inline]] void round(std::uint32_t k0, std::uint32_t k1) {
    const u64v p0 = multiply_lower_halves(c0, broadcast<u64v>(std::uint64_t{0xd2511f53}));
    const u64v p1 = multiply_lower_halves(c2, broadcast<u64v>(std::uint64_t{0xcd9e8d57}));
    c0 = (p1 >> 32) ^ c1 ^ std::uint64_t{k0};
    c1 = p1;
    c2 = (p0 >> 32) ^ c3 ^ std::uint64_t{k1};
    c3 = p0;
  }
};

}  // namespace repdl::cpu::REPDL_ISA
