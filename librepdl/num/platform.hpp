// What the numerics need to know about compiler and target, in one place.
//
// The arithmetic headers are compiled once per instruction set, so everything in them lives in an inline namespace that
// carries the instruction set's name (REPDL_ISA). A function that the compiler did not inline then has a different
// symbol in every object, and the linker cannot pick the AVX-512 copy for a machine without AVX-512.
//
// The flags that these headers rely on: -ffp-contract=off -fno-fast-math (cmake/repdl.cmake: repdl_common), nvcc -fmad=false
// -ftz=false -prec-div=true -prec-sqrt=true. `a * b + c` is then two roundings everywhere and `fma` is one everywhere.
#pragma once

#include <cstdint>

#if defined(__FAST_MATH__)
#error "librepdl's arithmetic headers need IEEE 754 semantics: compile without -ffast-math and -Ofast"
#endif

#if !defined(REPDL_ISA)
#define REPDL_ISA generic
#endif

#if defined(__CUDACC__)
#define REPDL_HD __host__ __device__ inline
#else
#define REPDL_HD inline
#endif

namespace repdl::num {
inline namespace REPDL_ISA {

// The lanes of a warp that make one, and wait for each other where they meet: no lane is to wait outside a function while others are in
// it (docs/ptxas-barriers.md).
class lanes_together {
#if defined(__CUDA_ARCH__)
 public:
  __device__ lanes_together() : mask_(__activemask()) {}
  __device__ void meet() const { __syncwarp(mask_); }

 private:
  unsigned mask_;
#else
 public:
  REPDL_HD lanes_together() {}
  REPDL_HD void meet() const {}
#endif
};

// True where fma(a, b, c) is one instruction; elsewhere it is still one rounding, but slow.
#if defined(__FMA__) || defined(__aarch64__) || defined(__CUDA_ARCH__)
inline constexpr bool has_fast_fma = true;
#else
inline constexpr bool has_fast_fma = false;
#endif

// True where rounding to an integer is one instruction.
#if defined(__SSE4_1__) || defined(__aarch64__)
inline constexpr bool has_fast_rounding = true;
#else
inline constexpr bool has_fast_rounding = false;
#endif

// True where a register of binary64 numbers is one instruction away from one of 64-bit integers.
#if defined(__AVX512DQ__) || defined(__aarch64__) || defined(__CUDA_ARCH__)
inline constexpr bool has_fast_int64 = true;
#else
inline constexpr bool has_fast_int64 = false;
#endif

// RN(a * b + c), one rounding (IEEE 754-2019, 5.4.1).
REPDL_HD double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

// a * b + c with one rounding where that is fast, else with two. Allowed only in bodies that are proved per build by
// enumeration, or under a bound that covers both.
REPDL_HD double muladd(double a, double b, double c) {
  if constexpr (has_fast_fma) {
    return __builtin_fma(a, b, c);
  } else {
    return a * b + c;
  }
}

REPDL_HD double sqrt(double a) { return __builtin_sqrt(a); }
REPDL_HD float sqrt(float a) { return __builtin_sqrtf(a); }

// std::bit_cast is not callable in device code without --expt-relaxed-constexpr; the builtin is.
template <class To, class From>
REPDL_HD constexpr To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

REPDL_HD std::uint32_t bits_of(float a) { return bit_cast<std::uint32_t>(a); }
REPDL_HD std::uint64_t bits_of(double a) { return bit_cast<std::uint64_t>(a); }
REPDL_HD float float_of(std::uint32_t b) { return bit_cast<float>(b); }
REPDL_HD double double_of(std::uint64_t b) { return bit_cast<double>(b); }

}  // namespace REPDL_ISA
}  // namespace repdl::num
