// Norms of lists and clipping: a block of elements. Compiled once per instruction set.
#include "backends/cpu/clip/clip.hpp"
#include "backends/cpu/core/simd.hpp"
#include "librepdl/ops/steps/clip.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

using num::norm_kind;

// n elements as the numbers that they are read as, in a buffer if they are no such numbers already.
template <class T>
const num::norm_term<T>* unpack(const void* from, num::norm_term<T>* buffer, std::int64_t n) {
  const auto* const x = static_cast<const T*>(from);
  if constexpr (std::is_same_v<T, num::norm_term<T>>) {
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

template <norm_kind Kind>
[[gnu::always_inline]] inline void add(num::twice_tracked_sum<f64v> (&of)[chains], const double* x) {
  for (int k = 0; k < chains; ++k) {
    const f64v v = load<f64v>(x + k * lanes64);
    if constexpr (Kind == norm_kind::squares) {
      of[k].add(num::two_prod(v, v));
    } else {
      of[k].add(num::magnitude_of(v));
    }
  }
}

template <class T, norm_kind Kind>
norm_partial sum(const void* from, std::int64_t n) noexcept {
  using term = num::norm_term<T>;
  alignas(64) term buffer[clip_block];
  const term* const x = unpack<T>(from, buffer, n);
  num::storage_of<term> greatest = 0;
  if constexpr (Kind == norm_kind::greatest || std::is_same_v<T, double>) {
#pragma omp simd reduction(max : greatest)
    for (std::int64_t i = 0; i < n; ++i) {
      const auto b = num::bits_of(x[i]) & static_cast<num::storage_of<term>>(~num::sign_mask<term>);
      greatest = b > greatest ? b : greatest;
    }
  }
  if constexpr (Kind == norm_kind::greatest) {
    return {0, 0, 0, greatest};
  } else {
    using sum_of_lanes =
        std::conditional_t<std::is_same_v<T, double>, num::twice_tracked_sum<f64v>, num::tracked_sum<f64v>>;
    using sum_of_all =
        std::conditional_t<std::is_same_v<T, double>, num::twice_tracked_sum<double>, num::tracked_sum<double>>;
    sum_of_lanes of[chains];
    const std::int64_t whole = n - n % step;
    for (std::int64_t i = 0; i < whole; i += step) add<Kind>(of, x + i);
    alignas(64) term rest[step] = {};
    for (std::int64_t i = whole; i < n; ++i) rest[i - whole] = x[i];
    add<Kind>(of, rest);
    for (int k = 1; k < chains; ++k) of[0].merge(of[k]);
    sum_of_all all;
    for (int l = 0; l < lanes64; ++l) all.merge({of[0].hi[l], of[0].lo[l], of[0].error[l]});
    return {all.hi, all.lo, all.error, greatest};
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

[[gnu::flatten]] std::int64_t clip_by_ball(const double* x, double* y, std::uint8_t* undecided, std::int64_t n,
                                           const clip_ball& by) noexcept {
  const num::ball_factor f{{by.hi, by.lo, by.error}, by.t};
  if (f.is_plain()) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = num::plainly_clipped(f, x[i]);
    return 0;
  }
  std::int64_t left = 0;
  for (std::int64_t i = 0; i < n; i += lanes64) {
    const int lanes = static_cast<int>(n - i < lanes64 ? n - i : lanes64);
    f64v g{};
    __builtin_memcpy(&g, x + i, static_cast<std::size_t>(lanes) * sizeof(double));
    const num::decided_lanes<f64v> r = num::attempt_clipped(f, g);
    for (int l = 0; l < lanes; ++l) {
      y[i + l] = r.value[l];
      undecided[i + l] = r.decided[l] == 0 ? 1 : 0;
      left += undecided[i + l];
    }
  }
  return left;
}

clip_kernels::loops of(dtype type, double p) noexcept {
  clip_kernels::loops l{};
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> != type) return;
    using enum norm_kind;
    const norm_kind kind = num::norm_of(p);
    l.sum = kind == magnitudes ? sum<T, magnitudes> : kind == squares ? sum<T, squares> : sum<T, greatest>;
    if constexpr (std::is_same_v<T, double>) {
      l.clip_by_ball = clip_by_ball;
    } else {
      l.clip = clip<T>;
    }
  });
  return l;
}

}  // namespace

extern const clip_kernels clip_table = {of};

}  // namespace repdl::cpu::REPDL_ISA
