// Operands and results of f16 and bf16 on their way through a loop: registers of them are widened to binary32, which is exact,
// and rounded from it. The arrays of a block, two registers of binary32, stay in registers where the compiler unrolls the loop
// over them.
//
// A block of bf16 has its even elements first, then the odd ones: the low and the high halves of pairs, which need no shuffles.
#pragma once

#include "backends/cpu/core/simd.hpp"
#include "librepdl/num/format.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

using num::unpacked;
using u32v = vec<std::uint32_t, lanes32>;

inline constexpr int unpacked_block = 2 * lanes32;
using packed = vec<std::uint16_t, unpacked_block>;

inline void unpack(const bf16* x, unpacked<bf16>* to) {
  const auto pairs = load<u32v>(x);
  store(to, pairs << 16);
  store(to + lanes32, pairs & 0xffff0000);
}
// In the upper halves, as num::narrow.
inline u32v rounded(const unpacked<bf16>* r) {
  const auto v = load<f32v>(r);
  const auto b = load<u32v>(r);
  const u32v sum = b + (0x7fff + (b >> 16 & 1));
  return v == v ? sum : u32v{} + num::format<float>::nan;
}
inline packed pack(const unpacked<bf16>* r) {
  return as<packed>((rounded(r) >> 16) | (rounded(r + lanes32) & 0xffff0000));
}
// What is no midpoint and no NaN: half an ulp more, cut off.
inline packed pack_plain(const unpacked<bf16>* r) {
  return as<packed>((load<u32v>(r) + 0x8000) >> 16 | ((load<u32v>(r + lanes32) + 0x8000) & 0xffff0000));
}

inline void unpack(const f16* x, unpacked<f16>* to) {
  for (int i = 0; i < unpacked_block; i += lanes32) {
#if defined(__AVX512F__)
    _mm512_store_ps(&to[i].value, _mm512_maskz_cvtph_ps(0xffff, load<__m256i>(x + i)));
#elif defined(__F16C__)
    _mm256_store_ps(&to[i].value, _mm256_cvtph_ps(load<__m128i>(x + i)));
#else
    for (int j = i; j < i + lanes32; ++j) to[j].value = num::widen_to_float(x[j]);
#endif
  }
}
template <bool MayBeNaN>
packed pack_as(const unpacked<f16>* r) {
#if defined(__F16C__)
  const auto half = [](const unpacked<f16>* from) {
    constexpr int to_nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    const auto v = load<f32v>(from);
    const f32v canonical = !MayBeNaN || v == v ? v : f32v{} + __builtin_nanf("");
#if defined(__AVX512F__)
    return _mm512_maskz_cvtps_ph(0xffff, canonical, to_nearest);
#else
    return _mm256_cvtps_ph(canonical, to_nearest);
#endif
  };
#if defined(__AVX512F__)
  return as<packed>(_mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(half(r)), half(r + lanes32), 1));
#else
  return as<packed>(_mm256_set_m128i(half(r + lanes32), half(r)));
#endif
#else
  packed to;
  for (int i = 0; i < unpacked_block; ++i) to[i] = num::narrow<f16>(r[i].value).bits;
  return to;
#endif
}
inline packed pack(const unpacked<f16>* r) { return pack_as<true>(r); }
inline packed pack_plain(const unpacked<f16>* r) { return pack_as<false>(r); }

// What a loop writes of a block of format T, in memory.
template <class T>
void store_block(const unpacked<T>* r, T* to) {
  store(to, pack(r));
}
inline bool is_any_undecided(const std::uint32_t* marks) {
  const u32v both = load<u32v>(marks) | load<u32v>(marks + lanes32);
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask(as<__m512i>(both), as<__m512i>(both)) != 0;
#elif defined(__AVX2__)
  return _mm256_testz_si256(as<__m256i>(both), as<__m256i>(both)) == 0;
#else
  std::uint32_t any = 0;
  for (int i = 0; i < lanes32; ++i) any |= both[i];
  return any != 0;
#endif
}
// Whether a block has a mark or a NaN.
template <class T>
bool is_any_undecided_or_nan(const std::uint32_t* marks, const unpacked<T>* r) {
  const u32v both = load<u32v>(marks) | load<u32v>(marks + lanes32);
  const auto v = load<f32v>(r);
  const auto w = load<f32v>(r + lanes32);
#if defined(__AVX512F__)
  return (_mm512_test_epi32_mask(as<__m512i>(both), as<__m512i>(both)) | _mm512_cmp_ps_mask(v, w, _CMP_UNORD_Q)) != 0;
#elif defined(__AVX2__)
  const __m256i undecided = _mm256_or_si256(as<__m256i>(both), as<__m256i>(_mm256_cmp_ps(v, w, _CMP_UNORD_Q)));
  return _mm256_testz_si256(undecided, undecided) == 0;
#else
  std::uint32_t any = 0;
  for (int i = 0; i < lanes32; ++i) any |= both[i] | (v[i] != v[i]) | (w[i] != w[i]);
  return any != 0;
#endif
}
// Marks of a block, 0 or 1, in memory: few blocks have any.
template <class T>
void store_marks(const std::uint8_t* marks, bool* to) {
  if constexpr (std::is_same_v<T, bf16>) {
    std::uint64_t words[unpacked_block / 8];
    __builtin_memcpy(words, marks, sizeof words);
    std::uint64_t any = 0;
    for (const std::uint64_t w : words) any |= w;
    __builtin_memset(to, 0, unpacked_block);
    if (any == 0) return;
    for (int i = 0; i < lanes32; ++i) {
      to[2 * i] = marks[i] != 0;
      to[2 * i + 1] = marks[lanes32 + i] != 0;
    }
  } else {
    __builtin_memcpy(to, marks, unpacked_block);
  }
}
// Truth is 0 or 1 in a block. Those of bf16 make the two bytes of a pair.
template <class T>
void store_block(const std::uint32_t* r, bool* to) {
  if constexpr (std::is_same_v<T, bf16>) {
    const u32v pairs = load<u32v>(r) | load<u32v>(r + lanes32) << 8;
    store(to, __builtin_convertvector(pairs, vec<std::uint16_t, lanes32>));
  } else {
#if defined(__AVX512F__)
    using bytes = vec<std::uint8_t, lanes32>;
    store(to, __builtin_convertvector(load<u32v>(r), bytes));
    store(to + lanes32, __builtin_convertvector(load<u32v>(r + lanes32), bytes));
#elif defined(__AVX2__)
    const __m256i words = _mm256_packus_epi32(load<__m256i>(r), load<__m256i>(r + lanes32));
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    store(to, _mm_shuffle_epi32(bytes, 0xd8));
#else
    for (int i = 0; i < unpacked_block; ++i) to[i] = r[i] != 0;
#endif
  }
}

}  // namespace
}  // namespace repdl::cpu::REPDL_ISA
