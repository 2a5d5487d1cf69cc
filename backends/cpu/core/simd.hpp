// Vectors of the instruction set that a kernel file is compiled for: GCC's vector extensions, and the one instruction
// that they cannot express, the fused multiply-add. Included by the kernels (*_kernels.cpp) only.
#pragma once

#include <cstdint>
#include <utility>

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#else
#error "simd.hpp: say how this target converts between binary32 and binary64 and fuses multiply-adds"
#endif

#include "librepdl/num/eft.hpp"

namespace repdl::cpu::REPDL_ISA {

// An alias template cannot carry vector_size; a member can.
template <class T, int Lanes>
struct vector_of {
  typedef T type __attribute__((vector_size(sizeof(T) * Lanes)));
};
template <class T, int Lanes>
using vec = typename vector_of<T, Lanes>::type;

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

// A register of binary64, a register of binary32, and the half register of binary32 that converts to one of binary64;
// with them the integers of the same lanes.
inline constexpr int lanes64 = vector_bytes / 8;
inline constexpr int lanes32 = vector_bytes / 4;
using f64v = vec<double, lanes64>;
using i64v = vec<std::int64_t, lanes64>;
using u64v = vec<std::uint64_t, lanes64>;
using f32v = vec<float, lanes32>;
using f32h = vec<float, lanes64>;
using u32h = vec<std::uint32_t, lanes64>;
using i32h = vec<std::int32_t, lanes64>;
// The same of 256 bits under AVX-512, too, for loops that convert more than they compute: Zen 4 converts a register of 512 bits
// in the time of four, and Intel's third port takes no part in 512 bits.
inline constexpr int lanes_mid = lanes64 < 4 ? lanes64 : 4;
using f64m = vec<double, lanes_mid>;
using f32m = vec<float, 2 * lanes_mid>;
using f32mh = vec<float, lanes_mid>;

template <class V>
[[gnu::always_inline]] inline V load(const void* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof(V));
  return v;
}
template <class V>
[[gnu::always_inline]] inline void store(void* to, const V& v) {
  __builtin_memcpy(to, &v, sizeof(V));
}
// Past the caches where the target can; `to` is a multiple of the register's size. drain(): these stores come before
// all later ones.
[[gnu::always_inline]] inline void stream(float* to, const f32h& v) {
#if defined(__AVX512F__)
  _mm256_stream_ps(to, v);
#elif defined(__AVX__)
  _mm_stream_ps(to, v);
#elif defined(__SSE2__)
  _mm_stream_si64(reinterpret_cast<long long*>(to), __builtin_bit_cast(long long, v));
#else
  store(to, v);
#endif
}
inline void drain() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}
template <class V, class T>
[[gnu::always_inline]] inline V broadcast(T x) {
  return x - V{};  // x - 0 is x for every x, -0 included
}
template <class To, class From>
[[gnu::always_inline]] inline To as(const From& v) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, v);
}

// What the extensions do not express, or GCC 12 compiles to something else:
// widen, narrow: conversion between f32h and f64v, narrow rounding to nearest.
// fma_exact_product: a * b + c where a * b is a binary64 number (for instance a product of two binary32 numbers): one
// rounding either way. fma: RN32(a * b + c) in every lane. (The maskz forms are plain conversions; the unmasked ones
// draw a false warning from GCC 12, PR 105593.)
#if defined(__AVX512F__)
[[gnu::always_inline]] inline f64v widen(f32h v) { return _mm512_maskz_cvtps_pd(0xff, v); }
[[gnu::always_inline]] inline f32h narrow(f64v v) { return _mm512_maskz_cvtpd_ps(0xff, v); }
[[gnu::always_inline]] inline f64v fma_exact_product(f64v a, f64v b, f64v c) { return _mm512_fmadd_pd(a, b, c); }
[[gnu::always_inline]] inline f32v fma(f32v a, f32v b, f32v c) { return _mm512_fmadd_ps(a, b, c); }
[[gnu::always_inline]] inline f64m widen(f32mh v) { return _mm256_cvtps_pd(v); }
[[gnu::always_inline]] inline f64m fma_exact_product(f64m a, f64m b, f64m c) { return _mm256_fmadd_pd(a, b, c); }
#elif defined(__FMA__)
[[gnu::always_inline]] inline f64v widen(f32h v) { return _mm256_cvtps_pd(v); }
[[gnu::always_inline]] inline f32h narrow(f64v v) { return _mm256_cvtpd_ps(v); }
[[gnu::always_inline]] inline f64v fma_exact_product(f64v a, f64v b, f64v c) { return _mm256_fmadd_pd(a, b, c); }
[[gnu::always_inline]] inline f32v fma(f32v a, f32v b, f32v c) { return _mm256_fmadd_ps(a, b, c); }
#elif defined(__aarch64__)
[[gnu::always_inline]] inline f64v widen(f32h v) { return __builtin_convertvector(v, f64v); }
[[gnu::always_inline]] inline f32h narrow(f64v v) { return __builtin_convertvector(v, f32h); }
[[gnu::always_inline]] inline f64v fma_exact_product(f64v a, f64v b, f64v c) {
  return as<f64v>(vfmaq_f64(as<float64x2_t>(c), as<float64x2_t>(a), as<float64x2_t>(b)));
}
[[gnu::always_inline]] inline f32v fma(f32v a, f32v b, f32v c) {
  return as<f32v>(vfmaq_f32(as<float32x4_t>(c), as<float32x4_t>(a), as<float32x4_t>(b)));
}
// a > b ? a : b
[[gnu::always_inline]] inline f64v larger(f64v a, f64v b) { return a > b ? a : b; }
[[gnu::always_inline]] inline f32v larger(f32v a, f32v b) { return a > b ? a : b; }
#else
[[gnu::always_inline]] inline f64v widen(f32h v) {
  return _mm_cvtps_pd(_mm_castsi128_ps(_mm_cvtsi64_si128(__builtin_bit_cast(long long, v))));
}
[[gnu::always_inline]] inline f32h narrow(f64v v) {
  return __builtin_bit_cast(f32h, _mm_cvtsi128_si64(_mm_castps_si128(_mm_cvtpd_ps(v))));
}
[[gnu::always_inline]] inline f64v fma_exact_product(f64v a, f64v b, f64v c) { return a * b + c; }

// num::round_to_odd (eft.hpp) on the sum p + c of two binary64 numbers, with what SSE2 has: 64-bit integers are added,
// shifted and masked, never compared. |p| < 2^256, |c| < 2^128: the sum does not overflow. Where p or c is infinite or
// NaN the tail is NaN, which both ordered comparisons reject, so that the sum stays.
[[gnu::always_inline]] inline f64v add_to_odd(f64v p, f64v c) {
  const auto [s, tail] = num::two_sum(p, c);
  const i64v inexact = (tail < 0.0) | (tail > 0.0);
  const u64v bits = as<u64v>(s);
  const u64v even = (bits & 1) - 1;
  const u64v opposite = (as<u64v>(tail) ^ bits) >> 63;
  const u64v away = 1 - (opposite << 1);
  return as<f64v>(bits + (away & even & as<u64v>(inexact)));
}

// The product is exact in binary64; the sum is rounded to odd there, which has 53 >= 24 + 2 bits, so that the
// conversion rounds the exact value (Boldo and Melquiond, theorem 3).
[[gnu::always_inline]] inline f32v fma(f32v a, f32v b, f32v c) {
  const auto upper = [](f32v v) { return _mm_cvtps_pd(_mm_movehl_ps(v, v)); };
  const f64v low = add_to_odd(_mm_cvtps_pd(a) * _mm_cvtps_pd(b), _mm_cvtps_pd(c));
  const f64v high = add_to_odd(upper(a) * upper(b), upper(c));
  return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}
#endif

// True if every lane's mask is set.
[[gnu::always_inline]] inline bool every(i64v mask) {
#if defined(__AVX512F__)
  return _mm512_testn_epi64_mask(as<__m512i>(mask), as<__m512i>(mask)) == 0;
#elif defined(__AVX__)
  return _mm256_movemask_pd(as<__m256d>(mask)) == 15;
#elif defined(__SSE2__)
  return _mm_movemask_pd(as<__m128d>(mask)) == 3;
#else
  return (mask[0] & mask[1]) != 0;
#endif
}

[[gnu::always_inline]] inline f64v square_root(f64v a) {
#if defined(__AVX512F__)
  return _mm512_maskz_sqrt_pd(0xff, a);
#elif defined(__AVX__)
  return _mm256_sqrt_pd(a);
#elif defined(__aarch64__)
  return as<f64v>(vsqrtq_f64(as<float64x2_t>(a)));
#else
  return _mm_sqrt_pd(a);
#endif
}

// a + b by a unit that multiplies, where those that add also convert, and have more to do.
template <class V>
[[gnu::always_inline]] inline V add_by_multiplier(V a, V b) {
#if defined(__FMA__)
  return fma_exact_product(a, broadcast<V>(1.0), b);
#else
  return a + b;
#endif
}

// a - b, likewise.
template <class V>
[[gnu::always_inline]] inline V subtract_by_multiplier(V a, V b) {
#if defined(__FMA__)
  return fma_exact_product(b, broadcast<V>(-1.0), a);
#else
  return a - b;
#endif
}

// The value of the least significant set bit of each |x|; +inf for 0, so that a zero never is the smallest. Anything
// for infinities and NaN.
//   u & (u - 1) clears the lowest set bit of the significand field, and the difference of the two values is that bit,
//   exactly (it has one bit). With an empty field the number is a power of two, itself the answer.
[[gnu::always_inline]] inline f32h lowest_bit(f32h x) {
  const u32h u = as<u32h>(x) & 0x7fffffffu;
  const f32h magnitude = as<f32h>(u);
  const f32h lowest = magnitude - as<f32h>(u & (u - 1));
  const f32h bit = (u & 0x7fffffu) != 0u ? lowest : magnitude;
  return u != 0u ? bit : broadcast<f32h>(__builtin_inff());
}

[[gnu::always_inline]] inline f32h smaller(f32h a, f32h b) { return a < b ? a : b; }

// The 64-bit products of the lanes' lower halves.
[[gnu::always_inline]] inline u64v multiply_lower_halves(u64v a, u64v b) {
#if defined(__AVX512F__)
  return as<u64v>(_mm512_maskz_mul_epu32(0xff, as<__m512i>(a), as<__m512i>(b)));
#elif defined(__AVX2__)
  return as<u64v>(_mm256_mul_epu32(as<__m256i>(a), as<__m256i>(b)));
#elif defined(__aarch64__)
  return as<u64v>(vmull_u32(vmovn_u64(as<uint64x2_t>(a)), vmovn_u64(as<uint64x2_t>(b))));
#else
  return as<u64v>(_mm_mul_epu32(as<__m128i>(a), as<__m128i>(b)));
#endif
}

// a0 b0 a1 b1 ..., the first and the second half of it.
struct interleaved {
  u64v first;
  u64v second;
};
template <int... Lane>
[[gnu::always_inline]] inline interleaved interleave(u64v a, u64v b, std::integer_sequence<int, Lane...>) {
  return {__builtin_shufflevector(a, b, Lane % 2 * lanes64 + Lane / 2 ...),
          __builtin_shufflevector(a, b, (Lane % 2 * lanes64 + (Lane + lanes64) / 2)...)};
}
[[gnu::always_inline]] inline interleaved interleave(u64v a, u64v b) {
  return interleave(a, b, std::make_integer_sequence<int, lanes64>{});
}

// A row of a table for each lane. two(k): the lanes' numbers k and k + 1, for an even k; by loads of both, for on many machines gathers are slower.
template <int Rows, int Columns>
class rows_of {
 public:
  [[gnu::always_inline]] rows_of(const double (&table)[Rows][Columns], u64v at) : table_(table) {
#if defined(__SSE2__) && !defined(__AVX__)
    // There are fewer than 2^16 rows. Of 64 bits, movhlps waits for what its register had before.
    at_[0] = static_cast<std::uint64_t>(_mm_extract_epi16(as<__m128i>(at), 0));
    at_[1] = static_cast<std::uint64_t>(_mm_extract_epi16(as<__m128i>(at), 4));
#else
    store(at_, at);
#endif
  }
  [[gnu::always_inline]] num::double_word<f64v> two(int first) const {
    using pair = vec<double, 2>;
    const auto of = [&](int lane) { return load<pair>(&table_[at_[lane]][first]); };
#if defined(__AVX__)
    const auto pairs = [&](int i) { return __builtin_shufflevector(of(i), of(i + 2), 0, 1, 2, 3); };
#if defined(__AVX512F__)
    const auto four = [&](int i) { return __builtin_shufflevector(pairs(i), pairs(i + 4), 0, 1, 2, 3, 4, 5, 6, 7); };
    const f64v even = four(0), odd = four(1);
    return {__builtin_shufflevector(even, odd, 0, 8, 2, 10, 4, 12, 6, 14),
            __builtin_shufflevector(even, odd, 1, 9, 3, 11, 5, 13, 7, 15)};
#else
    const f64v even = pairs(0), odd = pairs(1);
    return {__builtin_shufflevector(even, odd, 0, 4, 2, 6), __builtin_shufflevector(even, odd, 1, 5, 3, 7)};
#endif
#else
    return {__builtin_shufflevector(of(0), of(1), 0, 2), __builtin_shufflevector(of(0), of(1), 1, 3)};
#endif
  }

 private:
  const double (&table_)[Rows][Columns];
  alignas(sizeof(u64v)) std::uint64_t at_[lanes64];
};
#if defined(__AVX512F__)
// Of 16 rows: a column is two registers, from which one instruction takes what each lane asks for.
template <int Columns>
class rows_of<16, Columns> {
 public:
  [[gnu::always_inline]] rows_of(const double (&table)[16][Columns], u64v at) : table_(table), at_(at) {}
  [[gnu::always_inline]] num::double_word<f64v> two(int first) const { return {one(first), one(first + 1)}; }

 private:
  [[gnu::always_inline]] f64v one(int k) const {
    const auto half = [&](int i) {
      return f64v{table_[i][k],     table_[i + 1][k], table_[i + 2][k], table_[i + 3][k],
                  table_[i + 4][k], table_[i + 5][k], table_[i + 6][k], table_[i + 7][k]};
    };
    return _mm512_permutex2var_pd(half(0), as<__m512i>(at_), half(8));
  }
  const double (&table_)[16][Columns];
  const u64v at_;
};
#endif

}  // namespace repdl::cpu::REPDL_ISA

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct math<cpu::REPDL_ISA::f64v> {
  using real = cpu::REPDL_ISA::f64v;
  using bits = cpu::REPDL_ISA::u64v;
  using single = cpu::REPDL_ISA::f32h;
  [[gnu::always_inline]] static real all(double x) { return cpu::REPDL_ISA::broadcast<real>(x); }
  // Fused, or in two roundings.
  [[gnu::always_inline]] static real muladd(real a, real b, real c) {
    return cpu::REPDL_ISA::fma_exact_product(a, b, c);
  }
  [[gnu::always_inline]] static bits to_bits(real a) { return cpu::REPDL_ISA::as<bits>(a); }
  [[gnu::always_inline]] static real from_bits(bits a) { return cpu::REPDL_ISA::as<real>(a); }
  [[gnu::always_inline]] static single to_float(real a) { return cpu::REPDL_ISA::narrow(a); }
  [[gnu::always_inline]] static real sqrt(real a) { return cpu::REPDL_ISA::square_root(a); }
  template <int Rows, int Columns>
  [[gnu::always_inline]] static auto look_up(const double (&table)[Rows][Columns], bits at) {
    return cpu::REPDL_ISA::rows_of<Rows, Columns>(table, at);
  }
  [[gnu::always_inline]] static bool every(cpu::REPDL_ISA::i64v mask) { return cpu::REPDL_ISA::every(mask); }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
