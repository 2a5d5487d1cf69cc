// Inner loops of the reductions. Compiled once per instruction set. Contracts: backends/cpu/reduce/reduce.hpp.
#include <bit>

#include "backends/cpu/core/formats.hpp"
#include "backends/cpu/core/simd.hpp"
#include "backends/cpu/map/unpacked.hpp"
#include "backends/cpu/reduce/reduce.hpp"
#include "librepdl/num/certify.hpp"
#include "librepdl/num/dd.hpp"
#include "librepdl/num/order.hpp"
#include "librepdl/num/sums.hpp"
#include "librepdl/ops/sums/spread.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

// ------------------------------------------------------------------------------------------------------------- rows

// What sums of T are made of: registers of binary64, of as many bits of binary32, and the half of one that converts to the former.
// Of 16 bits, where more is done to unpack a number than to convert it, the longest.
template <class T>
constexpr int lanes = sizeof(T) == 4 ? lanes_mid : lanes64;
template <class T>
using wide_of = vec<double, lanes<T>>;
template <class T>
using narrow_of = vec<float, 2 * lanes<T>>;
template <class T>
using half_of = vec<float, lanes<T>>;

// Registers of partial sums: enough to hide the latency of an addition at two per cycle.
constexpr int chains = 8;
template <class T>
constexpr int step = chains* lanes<T>;

// The additions on the longest path: one per step, three levels over the chains, and those over the lanes.
static_assert(chains == 8 && row_block % step<float> == 0 && row_block % step<f16> == 0);
template <class T>
constexpr int height = static_cast<int>(row_block) / step<T> + 3 + std::countr_zero(static_cast<unsigned>(lanes<T>));

template <class V>
[[gnu::always_inline]] inline V magnitude_bits(V v) {
  using bits = vec<std::uint32_t, sizeof(V) / 4>;
  return as<V>(as<bits>(v) & 0x7fffffffu);
}
// a > b ? a : b as one instruction (GCC 12 makes a comparison and a blend of the conditional under AVX-512). The maskz
// form avoids a false warning (GCC PR 105593).
#if defined(__AVX512F__)
[[gnu::always_inline]] inline f32v larger(f32v a, f32v b) { return _mm512_maskz_max_ps(0xffff, a, b); }
#endif
#if defined(__AVX__)
[[gnu::always_inline]] inline f32m larger(f32m a, f32m b) { return _mm256_max_ps(a, b); }
#elif defined(__SSE2__)
[[gnu::always_inline]] inline f32m larger(f32m a, f32m b) { return _mm_max_ps(a, b); }
#endif

// The larger magnitude of each lane; of a NaN anything, as the sum is NaN then. As integers, where there is an instruction for that: the
// units that add are busy.
#if defined(__AVX512F__)
[[gnu::always_inline]] inline f32v raised(f32v largest, f32v v) {
  return as<f32v>(_mm512_maskz_max_epu32(0xffff, as<__m512i>(magnitude_bits(v)), as<__m512i>(largest)));
}
#endif
[[gnu::always_inline]] inline f32m raised(f32m largest, f32m v) {
#if defined(__AVX2__)
  return as<f32m>(_mm256_max_epu32(as<__m256i>(magnitude_bits(v)), as<__m256i>(largest)));
#else
  return larger(magnitude_bits(v), largest);
#endif
}

// Halves are added as registers as long as there are halves.
template <class V>
[[gnu::always_inline]] inline double total(V v) {
  constexpr int n = sizeof(V) / sizeof(double);
  if constexpr (n == 2) {
    return v[0] + v[1];
  } else {
    vec<double, n / 2> half[2];
    __builtin_memcpy(half, &v, sizeof v);
    return total(half[0] + half[1]);
  }
}

template <class T>
[[gnu::always_inline]] inline T pairwise(const T (&t)[8]) {
  return ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]));
}

// A step of terms as binary32 numbers, which they are exactly, by registers. Of 16 bits they come in the order of unpacked.hpp.
template <class T>
struct step_of {
  alignas(64) unpacked<T> x[step<T>];

  [[gnu::always_inline]] explicit step_of(const T* from) {
#pragma GCC unroll 2
    for (int i = 0; i < step<T>; i += unpacked_block) unpack(from + i, x + i);
  }
  template <class V = wide_of<T>>
  [[gnu::always_inline]] V wide(int i) const {
    constexpr int n = sizeof(V) / 8;
    return widen(load<vec<float, n>>(x + i * n));
  }
  [[gnu::always_inline]] narrow_of<T> narrow(int i) const { return load<narrow_of<T>>(x + i * 2 * lanes<T>); }
};
template <>
struct step_of<float> {
  const float* x;

  [[gnu::always_inline]] explicit step_of(const float* from) : x(from) {}
  template <class V = wide_of<float>>
  [[gnu::always_inline]] V wide(int i) const {
    constexpr int n = sizeof(V) / 8;
    return widen(load<vec<float, n>>(x + i * n));
  }
  [[gnu::always_inline]] narrow_of<float> narrow(int i) const {
    return load<narrow_of<float>>(x + i * 2 * lanes<float>);
  }
};
template <>
struct step_of<double> {
  const double* x;

  [[gnu::always_inline]] explicit step_of(const double* from) : x(from) {}
  [[gnu::always_inline]] f64v wide(int i) const { return load<f64v>(x + i * lanes64); }
};
constexpr int step_registers = chains / 2;

// The terms of a sum. fold() is called on a step at a time. Those of f16 are below 2^16: a bound coarse by that much leaves few
// sums undecided, as f16 has 42 bits fewer than binary64.
template <class T>
struct single_terms {
  using terms = step_of<T>;
  static constexpr bool looks = !std::is_same_v<T, f16>;
  narrow_of<T> largest[2] = {};

  [[gnu::always_inline]] static f64v get(const terms& x, const terms&, int i) { return x.template wide<f64v>(i); }
  [[gnu::always_inline]] static wide_of<T> add(wide_of<T> s, const terms& x, const terms&, int i) {
    return i % 2 == 0 ? s + x.wide(i) : add_by_multiplier(s, x.wide(i));
  }
  [[gnu::always_inline]] void fold(const terms& x, const terms&) {
    if constexpr (!looks) return;
#pragma GCC unroll 8
    for (int i = 0; i < step_registers; ++i) largest[i & 1] = raised(largest[i & 1], x.narrow(i));
  }
  // Each lane of `largest` has seen at most steps · step_registers terms.
  [[gnu::always_inline]] double magnitude(std::int64_t steps) const {
    if constexpr (!looks) return static_cast<double>(steps * step<T>) * 0x1p16;
    const narrow_of<T> m = larger(largest[0], largest[1]);
    half_of<T> half[2];
    __builtin_memcpy(half, &m, sizeof m);
    return static_cast<double>(steps * step_registers) * total(widen(half[0]) + widen(half[1]));
  }
};

// The terms of a dot product: exact products of two numbers.
template <class T>
struct product_terms {
  using terms = step_of<T>;
  narrow_of<T> largest_x = {};
  narrow_of<T> largest_y = {};

  [[gnu::always_inline]] static f64v get(const terms& x, const terms& y, int i) {
    return x.template wide<f64v>(i) * y.template wide<f64v>(i);
  }
  [[gnu::always_inline]] static wide_of<T> add(wide_of<T> s, const terms& x, const terms& y, int i) {
    return fma_exact_product(x.wide(i), y.wide(i), s);
  }
  [[gnu::always_inline]] void fold(const terms& x, const terms& y) {
#pragma GCC unroll 8
    for (int i = 0; i < step_registers; ++i) {
      largest_x = raised(largest_x, x.narrow(i));
      largest_y = raised(largest_y, y.narrow(i));
    }
  }
  [[gnu::always_inline]] double magnitude(std::int64_t steps) const {
    half_of<T> x[2];
    half_of<T> y[2];
    __builtin_memcpy(x, &largest_x, sizeof largest_x);
    __builtin_memcpy(y, &largest_y, sizeof largest_y);
    return static_cast<double>(steps * step_registers) * total(widen(x[0]) * widen(y[0]) + widen(x[1]) * widen(y[1]));
  }
};

// Of binary64: a term and its error, of a product.
struct wide_terms {
  static constexpr bool exact = true;
  using terms = step_of<double>;
  [[gnu::always_inline]] static num::double_word<f64v> get(const terms& x, const terms&, int i) {
    return {x.wide(i), f64v{}};
  }
};
struct wide_products {
  static constexpr bool exact = false;
  using terms = step_of<double>;
  [[gnu::always_inline]] static num::double_word<f64v> get(const terms& x, const terms& y, int i) {
    return num::two_prod(x.wide(i), y.wide(i));
  }
};

// Beside what is done to a term the hardware's prefetchers fall behind, as they start anew in each page: terms so many bytes
// ahead are fetched. They may lie beyond the operand, which does no harm.
constexpr std::uintptr_t fetched_ahead = 4096;
template <class T>
[[gnu::always_inline]] inline void fetch_ahead(const T* step_begin) {
#pragma GCC unroll 8
  for (std::uintptr_t at = 0; at < step<T> * sizeof(T); at += 64) {
    __builtin_prefetch(
        reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(step_begin) + fetched_ahead + at));
  }
}

// Calls body(x, y) on each step of terms, the last ones padded with +0: such a term changes no sum that is not -0, and
// all sums start from +0.
template <class T, class Body>
[[gnu::always_inline]] inline void for_steps(const T* x, const T* y, std::int64_t n, Body&& body) {
  const auto at = [&](const T* p, const T* q) {
    fetch_ahead(p);
    if (x != y) fetch_ahead(q);
    const step_of<T> first(p);
    if (x == y) return body(first, first);
    body(first, step_of<T>(q));
  };
  std::int64_t i = 0;
  for (; i + step<T> <= n; i += step<T>) at(x + i, y + i);
  if (i < n) {
    T rest_x[step<T>] = {};
    T rest_y[step<T>] = {};
    const auto bytes = static_cast<std::size_t>(n - i) * sizeof(T);
    __builtin_memcpy(rest_x, x + i, bytes);
    if (y != x) __builtin_memcpy(rest_y, y + i, bytes);
    at(rest_x, rest_y);
  }
}

template <class Terms, class T>
[[gnu::always_inline]] inline block_sum sum_block(const T* x, const T* y, std::int64_t n) {
  using terms = step_of<T>;
  wide_of<T> s[chains] = {};
  Terms all;
  for_steps(x, y, n, [&](const terms& p, const terms& q) noexcept {
#pragma GCC unroll 8
    for (int c = 0; c < chains; ++c) s[c] = Terms::add(s[c], p, q, c);
    all.fold(p, q);
  });
  return {total(pairwise(s)), all.magnitude((n + step<T> - 1) / step<T>)};
}

// Per lane a compensated sum of `plain_errors` additions, 3 k² u² m; then a chain over the lanes of accurate additions, 4 u² m each
// (dd_bound): k² + lanes in units of 4u² covers both.
constexpr int dd_chains = 4;
constexpr std::int64_t plain_errors = row_block / (dd_chains * lanes64);
constexpr std::int64_t dd_height = plain_errors * plain_errors + dd_chains * lanes64 + 1;
template <class Terms, class T>
[[gnu::always_inline]] inline block_dd sum_block_dd(const T* x, const T* y, std::int64_t n) {
  using terms = step_of<T>;
  num::compensated_sum<f64v> s[dd_chains];
  f64v magnitude[dd_chains] = {};
  for_steps(x, y, n, [&](const terms& p, const terms& q) noexcept {
#pragma GCC unroll 8
    for (int i = 0; i < step<T> / lanes64; ++i) {
      const int c = i % dd_chains;
      const f64v term = Terms::get(p, q, i);
      s[c].add(term);
      magnitude[c] += num::magnitude_of(term);
    }
  });
  num::dd acc = {0, 0};
  for (int c = 0; c < dd_chains; ++c) {
    for (int i = 0; i < lanes64; ++i) acc = num::add(acc, num::two_sum(s[c].hi[i], s[c].lo[i]));
  }
  return {acc.hi, acc.lo, total((magnitude[0] + magnitude[1]) + (magnitude[2] + magnitude[3]))};
}

template <class T>
block_sum sum_row(const T* x, std::int64_t n) noexcept {
  return sum_block<single_terms<T>>(x, x, n);
}
template <class T>
block_sum dot_row(const T* x, const T* y, std::int64_t n) noexcept {
  return sum_block<product_terms<T>>(x, y, n);
}
template <class T>
block_dd sum_row_dd(const T* x, std::int64_t n) noexcept {
  return sum_block_dd<single_terms<T>>(x, x, n);
}
template <class T>
block_dd dot_row_dd(const T* x, const T* y, std::int64_t n) noexcept {
  return sum_block_dd<product_terms<T>>(x, y, n);
}

// Of binary64. Each lane's sum starts from a number g > 0 that is large beside all of its k terms, |x| <= g / 4 K, k <= K: then s, the
// sum so far, stays between g / 2 and 3 g / 2, where
//   - t = fl(s + x) errs by r = x - (t - s), which is found exactly by these two subtractions (fast_two_sum, |s| >= |x|), and |r| <= u |t|
//     <= 1.3 u g;
//   - s - g is exact (Sterbenz).
// So the lane's terms add up to (s - g) + sum r exactly. The r, and the errors of products, at most u g / 4 K each, are added up plainly: at
// most 2 k additions of numbers whose magnitudes add up to (1.3 + 1 / 4 K) k u g, off by (2.6 + 1 / 2 K) k^2 u^2 g.
// The L lanes' s - g are added by two_sum over D levels, and those errors, at most D u M, M the terms' magnitudes, with the lanes' sums of
// r: another 2 D additions of numbers that add up to (1.3 + 1 / 4 K) L k u g + D u M.
// With magnitude = L k g / 4 K, which is at least M, all in all at most (10.4 K (K + D) + 2 (K + D + D^2)) u^2 magnitude, below
// 12 K (K + D) u^2 magnitude. Where anything underflows additions are exact, products as wide_dd_bound says.
// Where every r, of products with their errors, is 0 the result is exact, but for errors of products that underflow: all lanes' s - g are
// multiples of 2^-54 g, as s >= g / 2 is, and with them the errors of two_sum, which add up to less than D 2^-53 L g / 4 and so are added
// exactly.
constexpr int wide_chains = vector_bytes == 32 ? 2 : 4;  // AVX2 has registers for no more
constexpr int wide_lanes = wide_chains * lanes64;
constexpr std::int64_t wide_steps = row_block / wide_lanes;                           // K
constexpr int wide_levels = std::countr_zero(static_cast<unsigned>(wide_lanes));      // D
constexpr std::int64_t wide_dd_height = 3 * wide_steps * (wide_steps + wide_levels);  // in units of 4 u^2
static_assert(wide_steps >= 16 && wide_levels <= 6 && chains % wide_chains == 0);  // 1.6 K (K + D) >= 2 (K + D + D^2)
// The next block's sums start from a number for which terms may be as many times greater.
constexpr double wide_room = 8;

[[gnu::always_inline]] inline f64v raised(f64v largest, f64v v) {
  const f64v a = num::magnitude_of(v);
#if defined(__AVX512F__)
  return as<f64v>(_mm512_maskz_max_epu64(0xff, as<__m512i>(a), as<__m512i>(largest)));
#elif defined(__AVX__)
  return _mm256_max_pd(a, largest);
#elif defined(__SSE2__)
  return _mm_max_pd(a, largest);
#else
  return larger(a, largest);
#endif
}
// The greatest of numbers that are not negative; of NaN anything.
template <class V>
[[gnu::always_inline]] inline double greatest(V v) {
  double most = 0;
  for (std::size_t i = 0; i < sizeof(V) / sizeof(double); ++i) most = v[i] > most ? v[i] : most;
  return most;
}
template <class V>
[[gnu::always_inline]] inline num::double_word<V> merged(const num::double_word<V>& a, const num::double_word<V>& b) {
  const num::double_word<V> s = num::two_sum(a.hi, b.hi);
  return {s.hi, (a.lo + b.lo) + s.lo};
}
template <class V>
[[gnu::always_inline]] inline num::dd total(const num::double_word<V>& s) {
  if constexpr (std::is_same_v<V, double>) {
    return num::two_sum(s.hi, s.lo);
  } else {
    constexpr int n = sizeof(V) / sizeof(double);
    using half = std::conditional_t<n == 2, double, vec<double, n == 2 ? 2 : n / 2>>;
    half hi[2];
    half lo[2];
    __builtin_memcpy(hi, &s.hi, sizeof hi);
    __builtin_memcpy(lo, &s.lo, sizeof lo);
    return total(merged(num::double_word<half>{hi[0], lo[0]}, num::double_word<half>{hi[1], lo[1]}));
  }
}

// From `start`; and the greatest magnitude of a term, and whether the sum is exact.
template <class Terms>
[[gnu::always_inline]] inline block_dd sum_wide_block(const double* x, const double* y, std::int64_t n, double start,
                                                      double* most, bool* exact) {
  using terms = step_of<double>;
  const f64v g = broadcast<f64v>(start);
  f64v s[wide_chains];
  f64v rest[wide_chains] = {};
  f64v largest[2] = {};
  u64v rests = {};
  for (f64v& v : s) v = g;
  for_steps(x, y, n, [&](const terms& p, const terms& q) noexcept {
#pragma GCC unroll 8
    for (int i = 0; i < chains; ++i) {
      const int c = i % wide_chains;
      const num::double_word<f64v> term = Terms::get(p, q, i);
      const f64v t = s[c] + term.hi;
      const f64v r = subtract_by_multiplier(term.hi, t - s[c]);
      const f64v added = Terms::exact ? r : r + term.lo;
      s[c] = t;
      rest[c] = add_by_multiplier(added, rest[c]);
      rests |= as<u64v>(added);
      largest[i & 1] = raised(largest[i & 1], term.hi);
    }
  });
  *most = greatest(raised(largest[0], largest[1]));
  std::uint64_t any = 0;
  for (int i = 0; i < lanes64; ++i) any |= rests[i];
  *exact = any << 1 == 0;  // a 0 may have a sign
  num::double_word<f64v> all[wide_chains];
  for (int c = 0; c < wide_chains; ++c) all[c] = {s[c] - g, rest[c]};
  for (int width = wide_chains / 2; width > 0; width /= 2) {
    for (int c = 0; c < width; ++c) all[c] = merged(all[c], all[c + width]);
  }
  const num::dd sum = total(all[0]);
  const std::int64_t steps = (n + step<double> - 1) / step<double> * (chains / wide_chains);
  return {sum.hi, sum.lo, static_cast<double>(steps * wide_lanes) / (4 * wide_steps) * start};
}
template <class Terms>
[[gnu::always_inline]] inline double greatest_term(const double* x, const double* y, std::int64_t n) {
  using terms = step_of<double>;
  f64v largest[2] = {};
  for_steps(x, y, n, [&](const terms& p, const terms& q) noexcept {
#pragma GCC unroll 8
    for (int i = 0; i < chains; ++i) largest[i & 1] = raised(largest[i & 1], Terms::get(p, q, i).hi);
  });
  return greatest(raised(largest[0], largest[1]));
}
// From row->start, if that is large enough, which is known at the end, else again.
template <class Terms>
[[gnu::always_inline]] inline block_dd sum_wide(const double* x, const double* y, std::int64_t n, wide_row* row) {
  constexpr double factor = 4 * wide_steps;
  const double start = row->start;
  block_dd sum{};
  double most = 0;
  bool exact = true;
  if (start > 0) {
    sum = sum_wide_block<Terms>(x, y, n, start, &most, &exact);
  } else {
    most = greatest_term<Terms>(x, y, n);
  }
  row->start = wide_room * factor * most;
  if (!(start > 0 && factor * most <= start)) sum = sum_wide_block<Terms>(x, y, n, row->start, &most, &exact);
  row->exact &= exact;
  return sum;
}

block_dd sum_row_of_wide(const double* x, std::int64_t n, wide_row* row) noexcept {
  return sum_wide<wide_terms>(x, x, n, row);
}
block_dd dot_row_of_wide(const double* x, const double* y, std::int64_t n, wide_row* row) noexcept {
  return sum_wide<wide_products>(x, y, n, row);
}

// A spread_sum for each lane of so many chains, and the lanes' double-doubles one after the other.
constexpr int spread_chains = 2;
constexpr std::int64_t spread_row_height =
    num::spread_height(row_block / (spread_chains * lanes64)) + spread_chains * lanes64 + 1;
block_spread spread_row(const double* x, const double* y, std::int64_t n) noexcept {
  using terms = step_of<double>;
  num::spread_sum<f64v> s[spread_chains];
  for_steps(x, y, n, [&](const terms& p, const terms& q) noexcept {
#pragma GCC unroll 8
    for (int i = 0; i < chains; ++i) s[i % spread_chains].add(p.wide(i), q.wide(i));
  });
  const auto total_of = [](num::dd all, const num::compensated_sum<f64v>& part) {
    for (int i = 0; i < lanes64; ++i) all = num::add(all, num::two_sum(part.hi[i], part.lo[i]));
    return all;
  };
  num::dd sum = {0, 0};
  num::dd squares = {0, 0};
  double magnitude = 0;
  for (const num::spread_sum<f64v>& part : s) {
    sum = total_of(sum, part.sum);
    squares = total_of(squares, part.squares);
    magnitude += total(part.magnitude);
  }
  return {sum.hi, sum.lo, squares.hi, squares.lo, magnitude};
}

template <class T>
std::int32_t lsb_row(const T* x, std::int64_t n) noexcept {
  std::int32_t lsb = num::no_lsb;
#pragma omp simd reduction(min : lsb)
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t v = num::lsb_exponent(num::widen_to_float(x[i]));
    lsb = v < lsb ? v : lsb;
  }
  return lsb;
}

// The upper halves of 64 bits are added up as those of x + 2^63, which is not negative: then no shift keeps a sign.
template <class T>
block_integer sum_integers(const T* x, std::int64_t n) noexcept {
  if constexpr (sizeof(T) == 8) {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
#pragma omp simd reduction(+ : low, high)
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint64_t v = static_cast<std::uint64_t>(x[i]) ^ std::uint64_t{1} << 63;
      low += v & 0xffffffff;
      high += v >> 32;
    }
    return {static_cast<std::int64_t>(low), static_cast<std::int64_t>(high) - (n << 31)};
  } else {
    // So many booleans have a sum of 32 bits.
    std::conditional_t<sizeof(T) == 1, std::int32_t, std::int64_t> sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < n; ++i) sum += num::integer_value(x[i]);
    return {sum, 0};
  }
}

// Of 16 bits the upper halves of the keys, from which the lower ones follow: twice as many a register.
inline std::int16_t upper_key(std::uint16_t bits, std::uint16_t infinity, std::uint32_t flip) {
  const auto turned = static_cast<std::int16_t>(bits ^ static_cast<std::uint16_t>(flip >> 16));
  const auto key = static_cast<std::int16_t>(turned ^ ((turned >> 15) & 0x7fff));
  return (bits & 0x7fff) > infinity ? std::int16_t{0x7fff} : key;
}

template <class T>
num::order_key_of<T> key_row(const T* x, std::int64_t n, std::uint32_t flip) noexcept {
  if constexpr (sizeof(T) == 2) {
    std::int16_t best = num::no_key >> 16;
#pragma omp simd reduction(max : best)
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int16_t key = upper_key(x[i].bits, num::format<T>::infinity, flip);
      best = key > best ? key : best;
    }
    const std::int32_t lower = best < 0 || best == num::nan_key >> 16 ? 0xffff : 0;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(best) << 16) | lower;
  } else {
    using key_type = num::order_key_of<T>;
    key_type best = num::no_key_of<key_type>;
#pragma omp simd reduction(max : best)
    for (std::int64_t i = 0; i < n; ++i) {
      const key_type key = num::order_key(x[i], flip);
      best = key > best ? key : best;
    }
    return best;
  }
}

template <class T>
std::int64_t find_row(const T* x, std::int64_t n, std::uint32_t flip, num::order_key_of<T> key) noexcept {
  constexpr std::int32_t chunk = 256;
  for (std::int64_t i = 0; i < n; i += chunk) {
    const std::int32_t m = n - i < chunk ? static_cast<std::int32_t>(n - i) : chunk;
    std::int32_t first = chunk;
#pragma omp simd reduction(min : first)
    for (std::int32_t j = 0; j < m; ++j) {
      const std::int32_t at = num::order_key(x[i + j], flip) == key ? j : chunk;
      first = at < first ? at : first;
    }
    if (first < chunk) return i + first;
  }
  return n;
}

// ---------------------------------------------------------------------------------------------------------- columns

template <class T>
void sum_columns(const T* const* rows, std::int64_t columns, double* __restrict sum,
                 float* __restrict largest) noexcept {
  static_assert(row_group == 8);
  std::int64_t j = 0;
  for (; j + 2 * lanes<T> <= columns; j += 2 * lanes<T>) {
    narrow_of<T> big = load<narrow_of<T>>(largest + j);
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      wide_of<T> t[row_group];
#pragma GCC unroll 8
      for (int r = 0; r < row_group; ++r) t[r] = widen(widened<half_of<T>>(rows[r] + j + h * lanes<T>));
      store(sum + j + h * lanes<T>, load<wide_of<T>>(sum + j + h * lanes<T>) + pairwise(t));
    }
#pragma GCC unroll 8
    for (int r = 0; r < row_group; ++r) big = raised(big, widened<narrow_of<T>>(rows[r] + j));
    store(largest + j, big);
  }
  for (; j < columns; ++j) {
    double t[row_group];
    for (int r = 0; r < row_group; ++r) {
      const float x = num::widen_to_float(rows[r][j]);
      t[r] = x;
      const float m = num::float_of(num::bits_of(x) & 0x7fffffffu);
      largest[j] = m > largest[j] ? m : largest[j];
    }
    sum[j] += pairwise(t);
  }
}

template <class T>
void dot_columns(const T* const* x, const T* const* y, std::int64_t columns, double* __restrict sum,
                 double* __restrict magnitude) noexcept {
  std::int64_t j = 0;
  for (; j + lanes64 <= columns; j += lanes64) {
    f64v t[row_group];
    f64v m[row_group];
#pragma GCC unroll 8
    for (int r = 0; r < row_group; ++r) {
      t[r] = widen(widened<f32h>(x[r] + j)) * widen(widened<f32h>(y[r] + j));
      m[r] = num::magnitude_of(t[r]);
    }
    store(sum + j, load<f64v>(sum + j) + pairwise(t));
    store(magnitude + j, load<f64v>(magnitude + j) + pairwise(m));
  }
  for (; j < columns; ++j) {
    double t[row_group];
    double a = 0;
    for (int r = 0; r < row_group; ++r) {
      t[r] = num::widen(x[r][j]) * num::widen(y[r][j]);
      a += t[r] < 0 ? -t[r] : t[r];
    }
    sum[j] += pairwise(t);
    magnitude[j] += a;
  }
}

// A bounded_sum per column.
template <int Inputs, class T>
[[gnu::always_inline]] inline void track_columns(const T* const* x, const T* const* y, std::int64_t columns,
                                                 double* __restrict sum, double* __restrict error) noexcept {
  std::int64_t j = 0;
  for (; j + lanes64 <= columns; j += lanes64) {
    num::bounded_sum<f64v> s{load<f64v>(sum + j), load<f64v>(error + j)};
#pragma GCC unroll 8
    for (int r = 0; r < row_group; ++r) {
      f64v term = widen(widened<f32h>(x[r] + j));
      if constexpr (Inputs == 2) term *= widen(widened<f32h>(y[r] + j));
      s.add(term);
    }
    store(sum + j, s.hi);
    store(error + j, s.error);
  }
  for (; j < columns; ++j) {
    num::bounded_sum<double> s{sum[j], error[j]};
    for (int r = 0; r < row_group; ++r) {
      s.add(Inputs == 2 ? num::widen(x[r][j]) * num::widen(y[r][j]) : num::widen(x[r][j]));
    }
    sum[j] = s.hi;
    error[j] = s.error;
  }
}

template <class T>
void sum_columns_tracked(const T* const* rows, std::int64_t columns, double* sum, double* error) noexcept {
  track_columns<1>(rows, rows, columns, sum, error);
}
template <class T>
void dot_columns_tracked(const T* const* x, const T* const* y, std::int64_t columns, double* sum,
                         double* error) noexcept {
  track_columns<2>(x, y, columns, sum, error);
}

template <class T>
void sum_integer_columns(const T* const* rows, std::int64_t columns, std::int64_t* __restrict low,
                         std::int64_t* __restrict high) noexcept {
  const T* __restrict row[row_group];
  for (int r = 0; r < row_group; ++r) row[r] = rows[r];
#pragma omp simd
  for (std::int64_t j = 0; j < columns; ++j) {
    std::int64_t l = low[j];
    std::int64_t h = sizeof(T) == 8 ? high[j] - (std::int64_t{row_group} << 31) : 0;
#pragma GCC unroll 8
    for (int r = 0; r < row_group; ++r) {
      if constexpr (sizeof(T) == 8) {
        const std::uint64_t v = static_cast<std::uint64_t>(row[r][j]) ^ std::uint64_t{1} << 63;
        l += static_cast<std::int64_t>(v & 0xffffffff);
        h += static_cast<std::int64_t>(v >> 32);
      } else {
        l += num::integer_value(row[r][j]);
      }
    }
    low[j] = l;
    high[j] = h;
  }
}

void close_columns_tracked(std::int64_t columns, const double* __restrict sum, const double* __restrict error,
                           double* __restrict hi, double* __restrict lo, double* __restrict magnitude) noexcept {
#pragma omp simd
  for (std::int64_t j = 0; j < columns; ++j) {
    hi[j] = sum[j];
    lo[j] = 0;
    magnitude[j] = num::bounded_sum<double>{sum[j], error[j]}.bound();
  }
}

void close_columns(std::int64_t columns, std::int64_t rows, double* __restrict sum, float* __restrict largest,
                   double* __restrict hi, double* __restrict lo, double* __restrict magnitude) noexcept {
  const double count = static_cast<double>(rows);
#pragma omp simd
  for (std::int64_t j = 0; j < columns; ++j) {
    num::compensated_sum<double> s{hi[j], lo[j]};
    s.add(sum[j]);
    hi[j] = s.hi;
    lo[j] = s.lo;
    magnitude[j] += count * static_cast<double>(largest[j]);
    sum[j] = 0;
    largest[j] = 0;
  }
}

// Of binary64.
template <int Inputs>
void add_wide_columns(const double* const* x, const double* const* y, std::int64_t columns, double* __restrict sum,
                      double* __restrict error, double* __restrict magnitude) noexcept {
#pragma omp simd
  for (std::int64_t j = 0; j < columns; ++j) {
    num::compensated_sum<double> s{sum[j], error[j]};
    double m = magnitude[j];
#pragma GCC unroll 8
    for (int r = 0; r < row_group; ++r) {
      num::dd term{x[r][j], 0.0};
      if constexpr (Inputs == 2) term = num::two_prod(x[r][j], y[r][j]);
      s.add(term.hi);
      if constexpr (Inputs == 2) s.lo += term.lo;
      m += num::magnitude_of(term.hi);
    }
    sum[j] = s.hi;
    error[j] = s.lo;
    magnitude[j] = m;
  }
}
void sum_wide_columns(const double* const* rows, std::int64_t columns, double* sum, double* error,
                      double* magnitude) noexcept {
  add_wide_columns<1>(rows, rows, columns, sum, error, magnitude);
}
void dot_wide_columns(const double* const* x, const double* const* y, std::int64_t columns, double* sum, double* error,
                      double* magnitude) noexcept {
  add_wide_columns<2>(x, y, columns, sum, error, magnitude);
}
void spread_columns(const double* const* x, const double* const* y, std::int64_t columns, double* __restrict sum,
                    double* __restrict error, double* __restrict magnitude, double* __restrict squares,
                    double* __restrict squares_error) noexcept {
#pragma omp simd
  for (std::int64_t j = 0; j < columns; ++j) {
    num::spread_sum<double> s{{sum[j], error[j]}, {squares[j], squares_error[j]}, magnitude[j]};
#pragma GCC unroll 8
    for (int r = 0; r < row_group; ++r) s.add(x[r][j], y[r][j]);
    sum[j] = s.sum.hi;
    error[j] = s.sum.lo;
    magnitude[j] = s.magnitude;
    squares[j] = s.squares.hi;
    squares_error[j] = s.squares.lo;
  }
}
void close_wide_columns(std::int64_t columns, double* __restrict sum, double* __restrict error, double* __restrict hi,
                        double* __restrict lo) noexcept {
#pragma omp simd
  for (std::int64_t j = 0; j < columns; ++j) {
    const num::dd all = num::add(num::dd{hi[j], lo[j]}, num::two_sum(sum[j], error[j]));
    hi[j] = all.hi;
    lo[j] = all.lo;
    sum[j] = 0;
    error[j] = 0;
  }
}
std::int64_t certify_wide_columns(std::int64_t columns, std::int64_t count, std::int64_t height, std::int64_t products,
                                  const double* __restrict hi, const double* __restrict lo,
                                  const double* __restrict magnitude, double* __restrict out,
                                  std::int32_t* __restrict decided) noexcept {
  std::int32_t undecided = 0;
  const auto test = [&](auto&& certify) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const num::decided_value<double> c =
          certify(num::dd{hi[j], lo[j]}, num::wide_dd_bound(height, magnitude[j], products));
      out[j] = c.value;
      decided[j] = c.decided ? 1 : 0;
      undecided += c.decided ? 0 : 1;
    }
  };
  if (count == 0) {
    test([](num::dd s, double e) { return num::certify<double>(s, e); });
  } else if (count == root_of_sum) {
    test([](num::dd s, double e) { return num::certify_root<double>(s, e); });
  } else {
    test([count](num::dd s, double e) { return num::certify_mean<double>(s, e, count); });
  }
  return undecided;
}

// By bits, so that the loop is vectorised.
template <class T>
[[gnu::always_inline]] inline bool is_number(T x) {
  using storage = num::storage_of<T>;
  return static_cast<storage>(num::to_bits(x) & static_cast<storage>(~num::sign_mask<T>)) <= num::format<T>::infinity;
}

// First a loop that the compiler vectorises: the ends of the interval only. A NaN end (non-finite sums; also bounds
// forced to infinity over magnitude 0) counts as undecided there and num::certify sees to it afterwards.
template <class T>
std::int64_t certify_columns(std::int64_t columns, std::int64_t count, double factor, const double* __restrict hi,
                             const double* __restrict lo, const double* __restrict magnitude, T* __restrict out,
                             std::int32_t* __restrict decided) noexcept {
  std::int32_t undecided = 0;
  const auto test = [&](auto&& round_end) {
#pragma omp simd reduction(+ : undecided)
    for (std::int64_t j = 0; j < columns; ++j) {
      const double s = hi[j] + lo[j] + 0.0;
      const double e = factor * magnitude[j];
      const T low = round_end(s - e);
      const T high = round_end(s + e);
      // Equal bits that are no NaN.
      const std::int32_t same = num::to_bits(low) == num::to_bits(high) ? 1 : 0;
      const std::int32_t number = is_number(low) ? 1 : 0;
      out[j] = low;
      decided[j] = same & number;
      undecided += 1 - (same & number);
    }
  };
  if (count == 0) {
    test([](double x) { return num::rounded<T>(x); });
  } else if (count == root_of_sum) {
    test([](double x) { return num::rounded<T>(num::root_to_odd(x)); });
  } else {
    const double d = static_cast<double>(count);
    test([d](double x) { return num::rounded<T>(num::divide_to_odd(x, d)); });
  }
  if (undecided == 0) return 0;
  undecided = 0;
  for (std::int64_t j = 0; j < columns; ++j) {
    if (decided[j] != 0) continue;
    const double s = num::is_finite(hi[j]) ? hi[j] + lo[j] : hi[j];
    const double e = factor * magnitude[j];
    const num::decided_value<T> c = count == 0             ? num::certify<T>(s, e)
                                    : count == root_of_sum ? num::certify_root<T>(s, e)
                                                           : num::certify_mean<T>(s, e, count);
    out[j] = c.value;
    decided[j] = c.decided ? 1 : 0;
    undecided += c.decided ? 0 : 1;
  }
  return undecided;
}

template <class T>
void lsb_columns(const T* __restrict row, std::int64_t columns, std::int32_t* __restrict lsb) noexcept {
#pragma omp simd
  for (std::int64_t j = 0; j < columns; ++j) {
    const std::int32_t v = num::lsb_exponent(num::widen_to_float(row[j]));
    lsb[j] = v < lsb[j] ? v : lsb[j];
  }
}

template <class T>
void key_columns(const T* const* rows, std::int64_t columns, std::uint32_t flip, std::int32_t at,
                 num::order_key_of<T>* __restrict key, std::int32_t* __restrict index) noexcept {
  using key_type = num::order_key_of<T>;
  const T* __restrict row[row_group];
  for (int r = 0; r < row_group; ++r) row[r] = rows[r];
#pragma omp simd
  for (std::int64_t j = 0; j < columns; ++j) {
    key_type best = key[j];
    std::int32_t where = index[j];
#pragma GCC unroll 8
    for (int r = 0; r < row_group; ++r) {
      const key_type k = num::order_key(row[r][j], flip);
      where = k > best ? at + r : where;
      best = k > best ? k : best;
    }
    key[j] = best;
    index[j] = where;
  }
}

template <class T>
constexpr order_loops<T> ordered = {.key_row = key_row<T>, .find_row = find_row<T>, .key_columns = key_columns<T>};

template <class T>
constexpr reduce_loops<T> loops = {
    .order = ordered<T>,
    .row_height = height<T>,
    .row_dd_height = dd_height,
    .row_plain_errors = plain_errors,
    .sum_row = sum_row<T>,
    .dot_row = dot_row<T>,
    .sum_row_dd = sum_row_dd<T>,
    .dot_row_dd = dot_row_dd<T>,
    .lsb_row = lsb_row<T>,
    .sum_columns = sum_columns<T>,
    .dot_columns = dot_columns<T>,
    .sum_columns_tracked = sum_columns_tracked<T>,
    .dot_columns_tracked = dot_columns_tracked<T>,
    .close_columns_tracked = close_columns_tracked,
    .close_columns = close_columns,
    .certify_columns = certify_columns<T>,
    .lsb_columns = lsb_columns<T>,
};

template <class T>
constexpr reduce_loops<T> integer_loops = {
    .order = ordered<T>, .sum_row = sum_integers<T>, .sum_columns = sum_integer_columns<T>};

}  // namespace

constinit const reduce_kernels reduce_table = {.of_f16 = loops<f16>,
                                               .of_bf16 = loops<bf16>,
                                               .of_f32 = loops<float>,
                                               .of_f64 = {.order = ordered<double>,
                                                          .row_dd_height = wide_dd_height,
                                                          .row_spread_height = spread_row_height,
                                                          .sum_row_dd = sum_row_of_wide,
                                                          .dot_row_dd = dot_row_of_wide,
                                                          .spread_row = spread_row,
                                                          .sum_columns = sum_wide_columns,
                                                          .dot_columns = dot_wide_columns,
                                                          .spread_columns = spread_columns,
                                                          .close_columns = close_wide_columns,
                                                          .certify_columns = certify_wide_columns},
                                               .of_i64 = integer_loops<std::int64_t>,
                                               .of_i32 = integer_loops<std::int32_t>,
                                               .of_bool = integer_loops<std::uint8_t>};

}  // namespace repdl::cpu::REPDL_ISA
