// Registers for the rules of rows (librepdl/ops/rows/rule.hpp). Included by rows_kernels.cpp only.
#pragma once

#include "backends/cpu/core/simd.hpp"
#include "librepdl/ops/rows/rules.hpp"

namespace repdl::cpu::REPDL_ISA {

#if defined(__AVX512F__)
[[gnu::always_inline]] inline f64v root(f64v a) { return _mm512_maskz_sqrt_pd(0xff, a); }
[[gnu::always_inline]] inline f64v larger(f64v a, f64v b) { return _mm512_maskz_max_pd(0xff, a, b); }
[[gnu::always_inline]] inline f32v larger(f32v a, f32v b) { return _mm512_maskz_max_ps(0xffff, a, b); }
#elif defined(__AVX__)
[[gnu::always_inline]] inline f64v root(f64v a) { return _mm256_sqrt_pd(a); }
[[gnu::always_inline]] inline f64v larger(f64v a, f64v b) { return _mm256_max_pd(a, b); }
[[gnu::always_inline]] inline f32v larger(f32v a, f32v b) { return _mm256_max_ps(a, b); }
#elif defined(__SSE2__)
[[gnu::always_inline]] inline f64v root(f64v a) { return _mm_sqrt_pd(a); }
[[gnu::always_inline]] inline f64v larger(f64v a, f64v b) { return _mm_max_pd(a, b); }
[[gnu::always_inline]] inline f32v larger(f32v a, f32v b) { return _mm_max_ps(a, b); }
#elif defined(__aarch64__)
[[gnu::always_inline]] inline f64v root(f64v a) { return as<f64v>(vsqrtq_f64(as<float64x2_t>(a))); }
#endif

// x[0], .. x[n - 1], and `otherwise` in the lanes beyond them. Where it can be one load: numbers that are stored one by one are waited for.
[[gnu::always_inline]] inline f32h first_of(const float* x, std::int64_t n, float otherwise) {
#if defined(__AVX512F__)
  const __m256i mask =
      _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  return _mm256_blendv_ps(_mm256_set1_ps(otherwise), _mm256_maskload_ps(x, mask), _mm256_castsi256_ps(mask));
#elif defined(__AVX2__)
  const __m128i mask = _mm_cmpgt_epi32(_mm_set1_epi32(static_cast<int>(n)), _mm_setr_epi32(0, 1, 2, 3));
  return _mm_blendv_ps(_mm_set1_ps(otherwise), _mm_maskload_ps(x, mask), _mm_castsi128_ps(mask));
#else
  float lane[lanes64];
  for (int l = 0; l < lanes64; ++l) lane[l] = l < n ? x[l] : otherwise;
  return load<f32h>(lane);
#endif
}

}  // namespace repdl::cpu::REPDL_ISA

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct row_math<cpu::REPDL_ISA::f64v> : math<cpu::REPDL_ISA::f64v> {
  [[gnu::always_inline]] static real larger(real a, real b) { return cpu::REPDL_ISA::larger(a, b); }
  [[gnu::always_inline]] static real add(real a, real b) { return cpu::REPDL_ISA::add_by_multiplier(a, b); }
  [[gnu::always_inline]] static real root(real a) { return cpu::REPDL_ISA::root(a); }
  [[gnu::always_inline]] static real reciprocal_root(real a) { return 1.0 / root(a); }
  using tally = real;
  [[gnu::always_inline]] static real of_tally(real n) { return n; }
  using mask = cpu::REPDL_ISA::i32h;
  // Not 0: other bits, or NaN.
  [[gnu::always_inline]] static mask differ(single a, single b) {
    return (cpu::REPDL_ISA::as<mask>(a) ^ cpu::REPDL_ISA::as<mask>(b)) | (a != a);
  }
  // RN_T. Beside 1.5 2^(52 + e) binary64 ends at 2^e: the place of T's last bit, in one rounding. What is infinite becomes NaN.
  template <class T>
  [[gnu::always_inline]] static single rounded(real a) {
    if constexpr (std::is_same_v<T, float>) return to_float(a);
    constexpr std::uint64_t sign = std::uint64_t{1} << 63;
    const auto bits = to_bits(a);
    const real power = from_bits(bits & 0x7ff0000000000000);
    const real least = all(num::power_of_two(format<T>::emin));
    const real scale = (power > least ? power : least) * (1.5 * num::power_of_two(53 - format<T>::precision));
    return to_float(from_bits((to_bits((a + scale) - scale) & ~sign) | (bits & sign)));
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
