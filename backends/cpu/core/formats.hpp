// Numbers of f16, bf16 and f32 side by side in memory as registers of binary32, and registers of binary64 rounded to
// these formats.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cpu/core/simd.hpp"
#include "librepdl/num/format.hpp"

namespace repdl::cpu::REPDL_ISA {

// As binary32, exactly, in their order.
template <class V, class T>
[[gnu::always_inline]] inline V widened(const T* x) {
  if constexpr (std::is_same_v<T, float>) {
    return load<V>(x);
  } else if constexpr (std::is_same_v<T, bf16>) {
    constexpr int n = sizeof(V) / 4;
    return as<V>(__builtin_convertvector(load<vec<std::uint16_t, n>>(x), vec<std::uint32_t, n>) << 16);
  } else {
#if defined(__AVX512F__)
    if constexpr (sizeof(V) == 64) return _mm512_maskz_cvtph_ps(0xffff, load<__m256i>(x));
#endif
#if defined(__F16C__)
    if constexpr (sizeof(V) == 32) return _mm256_cvtph_ps(load<__m128i>(x));
    if constexpr (sizeof(V) == 16) return _mm_cvtph_ps(_mm_cvtsi64_si128(load<long long>(x)));
#else
    V v;
    for (std::size_t i = 0; i < sizeof(V) / 4; ++i) v[i] = num::widen_to_float(x[i]);
    return v;
#endif
  }
}

// The bits of RN_T(v) in every lane, NaN canonical: num::narrow, by way of odd numbers for the 16-bit formats.
template <class T>
[[gnu::always_inline]] inline u32h rounded_bits(f64v v) {
  if constexpr (std::is_same_v<T, float>) {
    const f32h r = narrow(v);
    return r == r ? as<u32h>(r) : u32h{} + num::format<float>::nan;
  } else {
    constexpr std::uint64_t rest = (std::uint64_t{1} << 40) - 1;
    const auto b = as<u64v>(v);
    const f32h odd = narrow(as<f64v>((b | ((b & rest) + rest)) & ~rest));
    if constexpr (std::is_same_v<T, bf16>) {
      const auto x = as<u32h>(odd);
      return odd == odd ? (x + (0x7fff + (x >> 16 & 1))) >> 16 : u32h{} + num::format<bf16>::nan;
    } else {
#if defined(__F16C__)
      constexpr int to_nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
      const f32h canonical = odd == odd ? odd : f32h{} + __builtin_nanf("");
#if defined(__AVX512F__)
      const auto halves = _mm256_cvtps_ph(canonical, to_nearest);
#else
      const long long halves = _mm_cvtsi128_si64(_mm_cvtps_ph(canonical, to_nearest));
#endif
      return __builtin_convertvector(as<vec<std::uint16_t, lanes64>>(halves), u32h);
#else
      u32h r;
      for (int l = 0; l < lanes64; ++l) r[l] = num::narrow<f16>(odd[l]).bits;
      return r;
#endif
    }
  }
}

}  // namespace repdl::cpu::REPDL_ISA
