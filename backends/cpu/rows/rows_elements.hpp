// Registers for the numerics of librepdl/ops/rows.hpp, and the loop over the elements of a slice or tile. Included by
// rows_kernels.cpp only.
#pragma once

#include "backends/cpu/core/simd.hpp"
#include "backends/cpu/rows/rows.hpp"
#include "librepdl/ops/rows.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

using V = num::math<f64v>;
using ends = num::float_ends<f64v>;

constexpr int L = lanes64;
constexpr float inf = __builtin_inff();

#if defined(__AVX512F__)
[[gnu::always_inline]] inline f64v larger(f64v a, f64v b) { return _mm512_maskz_max_pd(0xff, a, b); }
[[gnu::always_inline]] inline f32v larger(f32v a, f32v b) { return _mm512_maskz_max_ps(0xffff, a, b); }
#elif defined(__AVX__)
[[gnu::always_inline]] inline f64v larger(f64v a, f64v b) { return _mm256_max_pd(a, b); }
[[gnu::always_inline]] inline f32v larger(f32v a, f32v b) { return _mm256_max_ps(a, b); }
#elif defined(__SSE2__)
[[gnu::always_inline]] inline f64v larger(f64v a, f64v b) { return _mm_max_pd(a, b); }
[[gnu::always_inline]] inline f32v larger(f32v a, f32v b) { return _mm_max_ps(a, b); }
#endif
[[gnu::always_inline]] inline i32h differ(const ends& e) {
  return (as<u32h>(e.low) != as<u32h>(e.high)) | (e.low != e.low);
}

// Writes what body(a, b, keep) gives for every register of the block; row_body(c) makes the body from the row's (c = 0,
// each) or the tile's (from column c on) numbers, read through row_value.
template <bool Tile>
[[gnu::always_inline]] inline f64v row_value(const double* p, std::int64_t c) {
  if constexpr (Tile) {
    return load<f64v>(p + c);
  } else {
    return V::all(p[0]);
  }
}

// Where the results go: with a mark for those that are not decided, or past the caches.
enum class to { memory, memory_and_marks, stream };

template <to To, class Body>
[[gnu::always_inline]] inline void emit(const Body& body, const float* a, const float* b, const double* keep,
                                        float* out, std::uint32_t* open, i32h& fails) {
  const ends e = body(a, b, keep);
  const i32h f = differ(e);
  fails -= f;
  if constexpr (To == to::stream) {
    stream(out, e.low);
  } else {
    store(out, e.low);
  }
  if constexpr (To == to::memory_and_marks) store(open, as<u32h>(f));
}

template <bool Tile, to To, class Make>
[[gnu::always_inline]] inline std::int64_t elements_as(const row_slice& s, float pad, const Make& make) {
  i32h fails = {};
  if constexpr (Tile) {
    for (std::int64_t c = 0; c < s.columns; c += L) {
      const auto body = make.template operator()<true>(c);
      for (std::int64_t at = c; at < s.n * s.columns; at += s.columns) {
        emit<To>(body, s.a + at, s.b + at, s.keep + at, s.out + at, s.open + at, fails);
      }
    }
  } else {
    const auto body = make.template operator()<false>(0);
    std::int64_t full = s.n / L * L;
    std::int64_t i = 0;
    if constexpr (To == to::stream) {
      // From the first whole register of `out` on; what lies before it, and a little more, apart.
      const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(s.out) / sizeof(float) % L);
      if (past != 0 && s.n >= L) {
        emit<to::memory>(body, s.a, s.b, s.keep, s.out, nullptr, fails);
        i = L - past;
        full = i + (s.n - i) / L * L;
      }
    }
#pragma GCC unroll 2
    for (; i < full; i += L) {
      emit<To>(body, s.a + i, s.b + i, s.keep + i, s.out + i, s.open + i, fails);
    }
    if (full < s.n) {
      float a[L];
      float b[L];
      double keep[L] = {};
      float out[L];
      std::uint32_t open[L];
      const std::int64_t left = s.n - full;
      for (int l = 0; l < L; ++l) {
        a[l] = l < left && s.a != nullptr ? s.a[full + l] : pad;
        b[l] = l < left && s.b != nullptr ? s.b[full + l] : pad;
        if (l < left && s.keep != nullptr) keep[l] = s.keep[full + l];
      }
      i32h last = {};
      emit<to::memory_and_marks>(body, a, b, keep, out, open, last);
      for (int l = 0; l < left; ++l) {
        s.out[full + l] = out[l];
        fails[l] += last[l];
        if constexpr (To == to::memory_and_marks) s.open[full + l] = open[l];
      }
    }
  }
  std::int64_t total = 0;
  for (int l = 0; l < L; ++l) total += fails[l];
  return total;
}

template <class Make>
[[gnu::always_inline]] inline std::int64_t elements(const row_slice& s, float pad, const Make& make) {
  if (s.columns != 0) {
    return s.open != nullptr ? elements_as<true, to::memory_and_marks>(s, pad, make)
                             : elements_as<true, to::memory>(s, pad, make);
  }
  if (s.open != nullptr) return elements_as<false, to::memory_and_marks>(s, pad, make);
  return s.stream ? elements_as<false, to::stream>(s, pad, make) : elements_as<false, to::memory>(s, pad, make);
}

}  // namespace
}  // namespace repdl::cpu::REPDL_ISA
