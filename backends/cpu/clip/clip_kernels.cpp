// Norms of lists and clipping: a block of elements. Compiled once per instruction set.
#include "backends/cpu/clip/clip.hpp"
#include "backends/cpu/core/simd.hpp"
#include "librepdl/ops/steps/clip.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

using num::norm_kind;

// n elements as binary32 numbers, in a buffer if they are no such numbers already.
template <class T>
const float* unpack(const void* from, float* buffer, std::int64_t n) {
  const auto* const x = static_cast<const T*>(from);
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) buffer[i] = num::widen_to_float(x[i]);
    return buffer;
  }
}

// Sums side by side, in several chains.
constexpr int chains = 4;
constexpr std::int64_t step = chains * lanes64;
static_assert(clip_block / step + 1 + chains + lanes64 <= clip_height);

template <norm_kind Kind>
[[gnu::always_inline]] inline void add(num::tracked_sum<f64v> (&of)[chains], const float* x) {
  for (int k = 0; k < chains; ++k) {
    const f64v v = widen(load<f32h>(x + k * lanes64));
    of[k].add(Kind == norm_kind::squares ? v * v : num::magnitude_of(v));
  }
}

template <class T, norm_kind Kind>
norm_partial sum(const void* from, std::int64_t n) noexcept {
  alignas(64) float buffer[clip_block];
  const float* const x = unpack<T>(from, buffer, n);
  if constexpr (Kind == norm_kind::greatest) {
    std::uint32_t greatest = 0;
#pragma omp simd reduction(max : greatest)
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint32_t b = num::bits_of(x[i]) & 0x7fffffff;
      greatest = b > greatest ? b : greatest;
    }
    return {0, 0, 0, greatest};
  } else {
    num::tracked_sum<f64v> of[chains];
    const std::int64_t whole = n - n % step;
    for (std::int64_t i = 0; i < whole; i += step) add<Kind>(of, x + i);
    alignas(64) float rest[step] = {};
    for (std::int64_t i = whole; i < n; ++i) rest[i - whole] = x[i];
    add<Kind>(of, rest);
    for (int k = 1; k < chains; ++k) of[0].merge(of[k]);
    num::tracked_sum<double> all;
    for (int l = 0; l < lanes64; ++l) all.merge({of[0].hi[l], of[0].lo[l], of[0].error[l]});
    return {all.hi, all.lo, all.error, 0};
  }
}

template <bool Divides, class T>
[[gnu::flatten]] void clip_all(const T* x, T* y, std::int64_t n, const num::clip_factor& by) {
  const num::clip_factor f = by;
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = num::clipped<Divides>(f, x[i]);
}
template <class T>
void clip(const void* from, void* out, std::int64_t n, const clip_quotient& by) noexcept {
  const num::clip_factor f{by.a, by.b};
  const auto* const x = static_cast<const T*>(from);
  auto* const y = static_cast<T*>(out);
  f.b == 1 ? clip_all<false>(x, y, n, f) : clip_all<true>(x, y, n, f);
}

clip_kernels::loops of(dtype type, double p) noexcept {
  clip_kernels::loops l{};
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    if (dtype_of<T> != type) return;
    using enum norm_kind;
    const norm_kind kind = num::norm_of(p);
    l = {kind == magnitudes ? sum<T, magnitudes> : kind == squares ? sum<T, squares> : sum<T, greatest>, clip<T>};
  });
  return l;
}

}  // namespace

extern const clip_kernels clip_table = {of};

}  // namespace repdl::cpu::REPDL_ISA
