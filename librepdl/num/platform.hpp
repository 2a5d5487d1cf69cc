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

// ------------------------------------------------------------------------------------------------------- host and device
//
// Code that a GPU runs, too. No other header asks which of the two is compiled: it calls what stands here, and where the way itself
// is another one it says `if constexpr (on_device)`. How a device decides rows stands in its backend (backends/cuda/rows/device_rule.cuh).

// REPDL_HD: a function of both. REPDL_HD_CALL: one that is too big to be copied into every caller. REPDL_HD_ONCE: a template of such
// functions, which multi_limb_instances.hpp may have compiled once for all that call it, where REPDL_COMPILES_ONCE; not inline, for
// compilers compile those in any case. REPDL_HD_SHARED: one that several callers have, and a host compiles once for all of an object's.
#if defined(__CUDACC__)
#define REPDL_HD __host__ __device__ inline
#define REPDL_HD_CALL __host__ __device__ __noinline__ inline
#define REPDL_HD_ONCE REPDL_HD_CALL
#define REPDL_HD_SHARED REPDL_HD
#define REPDL_COMPILES_ONCE 0
#else
#define REPDL_HD inline
#define REPDL_HD_CALL __attribute__((noinline)) inline
#define REPDL_HD_ONCE __attribute__((noinline))
#define REPDL_HD_SHARED REPDL_HD_CALL
#define REPDL_COMPILES_ONCE 1
#endif

// Before a loop. REPDL_UNROLL: of a constant number of turns, of which a GPU makes straight code, as it indexes no registers.
// REPDL_UNROLL_BY(n): the same; on the host n turns are one. REPDL_LIMB_LOOP(n): over n limbs; a GPU keeps few of them in registers, and
// unrolls only those.
#define REPDL_PRAGMA(text) _Pragma(#text)
#if defined(__CUDA_ARCH__)
#define REPDL_UNROLL REPDL_PRAGMA(unroll)
#define REPDL_UNROLL_BY(n) REPDL_PRAGMA(unroll)
#define REPDL_LIMB_LOOP(n) REPDL_PRAGMA(unroll((n) <= 6 ? (n) : 1))
#elif defined(__CUDACC__)
#define REPDL_UNROLL
#define REPDL_UNROLL_BY(n)
#define REPDL_LIMB_LOOP(n)
#else
#define REPDL_UNROLL
#define REPDL_UNROLL_BY(n) REPDL_PRAGMA(GCC unroll n)
#define REPDL_LIMB_LOOP(n)
#endif

// REPDL_DEVICE_TABLE(type, name): name_table(), which is the constant name_on_host; on a GPU a copy of it in constant memory.
#if defined(__CUDACC__)
#define REPDL_DEVICE_TABLE(type, name)                              \
  static __constant__ const type name##_on_device = name##_on_host; \
  REPDL_HD const type& name##_table() {                             \
    if constexpr (on_device) {                                      \
      return name##_on_device;                                      \
    } else {                                                        \
      return name##_on_host;                                        \
    }                                                               \
  }
#else
#define REPDL_DEVICE_TABLE(type, name) \
  REPDL_HD const type& name##_table() { return name##_on_host; }
#endif

namespace repdl::num {
inline namespace REPDL_ISA {

// True of code that a GPU runs.
#if defined(__CUDA_ARCH__)
inline constexpr bool on_device = true;
#else
inline constexpr bool on_device = false;
#endif

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

// --------------------------------------------------------------------------------------------------------- what is fast

// True where fma(a, b, c) is one instruction; elsewhere it is still one rounding, but slow.
#if defined(__FMA__) || defined(__aarch64__)
inline constexpr bool has_fast_fma = true;
#else
inline constexpr bool has_fast_fma = on_device;
#endif

// True where rounding to an integer is one instruction.
#if defined(__SSE4_1__) || defined(__aarch64__)
inline constexpr bool has_fast_rounding = true;
#else
inline constexpr bool has_fast_rounding = false;
#endif

// True where a register of binary64 numbers is one instruction away from one of 64-bit integers.
#if defined(__AVX512DQ__) || defined(__aarch64__)
inline constexpr bool has_fast_int64 = true;
#else
inline constexpr bool has_fast_int64 = on_device;
#endif

// ----------------------------------------------------------------------------------------------------------- arithmetic

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

// 1 / sqrt(a), for a > 0: of binary32 within 2^-22 of itself, with exact limits and NaN elsewhere; of binary64 an estimate that only a
// GPU has, of no known error. No bit of a result depends on which it is.
REPDL_HD float reciprocal_root_estimate(float a) {
#if defined(__CUDA_ARCH__)
  return ::rsqrtf(a);
#else
  return 1.0f / sqrt(a);
#endif
}
REPDL_HD double reciprocal_root_estimate(double a) {
#if defined(__CUDA_ARCH__)
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(a));
  return y;
#else
  return 1.0 / sqrt(a);
#endif
}

// ---------------------------------------------------------------------------------------------------------------- words

REPDL_HD int leading_zeros(std::uint64_t x) {  // x != 0
#if defined(__CUDA_ARCH__)
  return __clzll(static_cast<long long>(x));
#else
  return __builtin_clzll(x);
#endif
}
REPDL_HD int trailing_zeros(std::uint64_t x) {  // x != 0
#if defined(__CUDA_ARCH__)
  return __ffsll(static_cast<long long>(x)) - 1;
#else
  return __builtin_ctzll(x);
#endif
}

// The low word of a * b; *high becomes the high one.
REPDL_HD std::uint64_t multiply_wide(std::uint64_t a, std::uint64_t b, std::uint64_t* high) {
#if defined(__CUDA_ARCH__)
  *high = __umul64hi(a, b);
#else
  __extension__ typedef unsigned __int128 wide;
  *high = static_cast<std::uint64_t>(static_cast<wide>(a) * b >> 64);
#endif
  return a * b;
}

// a · b + c + *carry < 2^128: the low word; the high one goes to *carry.
REPDL_HD std::uint64_t multiply_add(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t* carry) {
#if defined(__CUDA_ARCH__)
  std::uint64_t low = a * b;
  std::uint64_t high = __umul64hi(a, b);
  low += c;
  high += static_cast<std::uint64_t>(low < c);
  low += *carry;
  high += static_cast<std::uint64_t>(low < *carry);
  *carry = high;
  return low;
#else
  __extension__ using wide = unsigned __int128;
  const wide p = static_cast<wide>(a) * b + c + *carry;
  *carry = static_cast<std::uint64_t>(p >> 64);
  return static_cast<std::uint64_t>(p);
#endif
}

// The halves of a binary64 number's pattern, of which a GPU has registers of their own.
REPDL_HD std::uint32_t upper_half(double a) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__double2hiint(a));
#else
  return static_cast<std::uint32_t>(bits_of(a) >> 32);
#endif
}
// a with another upper half.
REPDL_HD double with_upper_half(double a, std::uint32_t upper) {
#if defined(__CUDA_ARCH__)
  return __hiloint2double(static_cast<int>(upper), __double2loint(a));
#else
  return double_of((bits_of(a) & 0xffffffff) | static_cast<std::uint64_t>(upper) << 32);
#endif
}
REPDL_HD std::uint32_t lesser(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  return min(a, b);
#else
  return a < b ? a : b;
#endif
}

// ------------------------------------------------------------------------------------------------------- narrow formats

// The value of a binary16 number.
REPDL_HD float value_of_f16(std::uint16_t bits) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#else
  // The fields move up by 13 bits and the exponent's bias grows by 112; the exponent of infinities and NaN grows by 112
  // once more. A subnormal m * 2^-24 is (2^-14 + m * 2^-24) - 2^-14, both exact.
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fff) << 13;
  const std::uint32_t exponent = magnitude & (0x7c00u << 13);
  const std::uint32_t rebiased = magnitude + (112u << 23) + (exponent == (0x7c00u << 13) ? 112u << 23 : 0u);
  const std::uint32_t small = bits_of(float_of(magnitude + (113u << 23)) - 0x1p-14f);
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  return float_of((exponent == 0 ? small : rebiased) | sign);
#endif
}

// RN(a) in the 16 bits of a format of that precision, 11 (binary16) or 8 (bfloat16), where that is an instruction: where narrows_float,
// and narrows_double, are true, and nowhere else (format.hpp computes it). One rounding; its NaN is another than ours.
#if defined(__CUDA_ARCH__)
inline constexpr bool narrows_float = true;
inline constexpr bool narrows_double = __CUDA_ARCH__ >= 900;
template <int Precision>
REPDL_HD std::uint16_t narrow_by_instruction(float a) {
  std::uint16_t b;
  if constexpr (Precision == 11) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(b) : "f"(a));
  } else {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(a));
  }
  return b;
}
template <int Precision>
REPDL_HD std::uint16_t narrow_by_instruction(double a) {
  std::uint16_t b;
  if constexpr (Precision == 11) {
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(b) : "d"(a));
  } else {
    asm("cvt.rn.bf16.f64 %0, %1;" : "=h"(b) : "d"(a));
  }
  return b;
}
#else
inline constexpr bool narrows_float = false;
inline constexpr bool narrows_double = false;
template <int Precision>
REPDL_HD std::uint16_t narrow_by_instruction(float a);
template <int Precision>
REPDL_HD std::uint16_t narrow_by_instruction(double a);
#endif

}  // namespace REPDL_ISA
}  // namespace repdl::num
