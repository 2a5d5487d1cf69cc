// The instruction sets of this build and which of them the CPU has.
#include <cstdint>

#include "backends/cpu/core/isa.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#elif !defined(__aarch64__)
#error "instruction_sets.cpp: name the kernels of this target (cmake/repdl.cmake: repdl_kernel_sets)"
#endif

namespace repdl::cpu {

// The tables of a set, in the order of the families.
#define REPDL_ADDRESS(family) &family##_table,
#define REPDL_SET(isa)                                                                    \
  namespace isa {                                                                         \
  constexpr instruction_set with_tables(const char* name, bool (*available)() noexcept) { \
    return {name, available, REPDL_FAMILIES(REPDL_ADDRESS)};                              \
  }                                                                                       \
  }
#ifdef __x86_64__
REPDL_SET(baseline)
#ifdef REPDL_WITH_avx2
REPDL_SET(avx2)
#endif
#ifdef REPDL_WITH_avx512
REPDL_SET(avx512)
#endif
#else
REPDL_SET(neon)
#endif
#undef REPDL_SET
#undef REPDL_ADDRESS

namespace {

#if defined(__x86_64__)

// Every feature bit of the x86-64-v3 and -v4 levels (System V ABI, 3.1.1), and that the system saves the registers:
// the compiler may use any of them in code built for the level.
struct cpu_features {
  unsigned leaf1_c = 0, leaf7_b = 0, extended1_c = 0;
  std::uint64_t xcr0 = 0;

  cpu_features() noexcept {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) != 0) leaf1_c = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) leaf7_b = b;
    if (__get_cpuid(0x80000001u, &a, &b, &c, &d) != 0) extended1_c = c;
    if ((leaf1_c & bit_OSXSAVE) != 0) {
      std::uint32_t lo = 0, hi = 0;
      asm volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
      xcr0 = std::uint64_t{hi} << 32 | lo;
    }
  }
  static bool all(unsigned have, unsigned want) noexcept { return (have & want) == want; }
  bool v3() const noexcept {
    return all(leaf1_c, bit_SSE3 | bit_SSSE3 | bit_FMA | bit_CMPXCHG16B | bit_SSE4_1 | bit_SSE4_2 | bit_MOVBE |
                            bit_POPCNT | bit_AVX | bit_F16C) &&
           all(leaf7_b, bit_BMI | bit_AVX2 | bit_BMI2) && all(extended1_c, bit_LAHF_LM | bit_LZCNT) &&
           (xcr0 & 0x6) == 0x6;
  }
  bool v4() const noexcept {
    return v3() && all(leaf7_b, bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL) &&
           (xcr0 & 0xe6) == 0xe6;
  }
};

[[maybe_unused]] const cpu_features& features() noexcept {  // where the baseline is alone
  static const cpu_features f;
  return f;
}

constexpr instruction_set sets[] = {
    baseline::with_tables("baseline", []() noexcept { return true; }),
#ifdef REPDL_WITH_avx2
    avx2::with_tables("avx2", []() noexcept { return features().v3(); }),
#endif
#ifdef REPDL_WITH_avx512
    avx512::with_tables("avx512", []() noexcept { return features().v4(); }),
#endif
};

#else

// Advanced SIMD and a fused multiply-add are part of Armv8-A.
constexpr instruction_set sets[] = {neon::with_tables("neon", []() noexcept { return true; })};

#endif

}  // namespace

std::span<const instruction_set> all_instruction_sets() noexcept { return sets; }

}  // namespace repdl::cpu
