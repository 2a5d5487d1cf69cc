// SLEEF's vector functions over an array of binary32 or binary64: compiled once per instruction set, with its entry points of at most 1.0 ulp (1.5
// for erfc, 0.506 for hypot, sinpi, cospi; fmod is exact).
#include <sleef.h>

#include <cstring>
#include <span>

#include "bench/loops.hpp"

#if defined(__AVX512F__)
#define BYTES 64
#define ENTRY32(f, ulp) Sleef_##f##f16_##ulp##avx512f
#define ENTRY64(f, ulp) Sleef_##f##d8_##ulp##avx512f
#elif defined(__AVX2__)
#define BYTES 32
#define ENTRY32(f, ulp) Sleef_##f##f8_##ulp##avx2
#define ENTRY64(f, ulp) Sleef_##f##d4_##ulp##avx2
#elif defined(__SSE2__)
#define BYTES 16
#define ENTRY32(f, ulp) Sleef_##f##f4_##ulp##sse2
#define ENTRY64(f, ulp) Sleef_##f##d2_##ulp##sse2
#else
#define BYTES 16
#define ENTRY32(f, ulp) Sleef_##f##f4_##ulp##advsimd
#define ENTRY64(f, ulp) Sleef_##f##d2_##ulp##advsimd
#endif

namespace bench::REPDL_ISA {
namespace {

// f(v, ...) for vectors of the operands' elements, of type T.
template <int arity, class T, class F>
void map(const F& f, const void* const* in, void* out, std::int64_t n) {
  using vector [[gnu::vector_size(BYTES)]] = T;
  constexpr int width = BYTES / sizeof(T);
  for (std::int64_t i = 0; i < n; i += width) {
    vector v[arity];
    for (int k = 0; k < arity; ++k) std::memcpy(&v[k], static_cast<const T*>(in[k]) + i, sizeof v[k]);
    vector y;
    if constexpr (arity == 1) y = f(v[0]);
    if constexpr (arity == 2) y = f(v[0], v[1]);
    std::memcpy(static_cast<T*>(out) + i, &y, sizeof y);
  }
}

// clang-format off
#define LOOP(arity, T, entry)                                                      \
  [](const void* const* in, void* out, std::int64_t n, bool*) {                    \
    map<arity, T>([](auto... v) { return entry(v...); }, in, out, n); }
#define ROW(arity, f, ulp) \
  { #f, LOOP(arity, float, ENTRY32(f, ulp)), LOOP(arity, double, ENTRY64(f, ulp)) }
// clang-format on
constexpr named_loop all[] = {
    ROW(1, exp, u10),    ROW(1, exp2, u10),   ROW(1, exp10, u10), ROW(1, expm1, u10), ROW(1, log, u10),
    ROW(1, log2, u10),   ROW(1, log10, u10),  ROW(1, log1p, u10), ROW(1, sin, u10),   ROW(1, cos, u10),
    ROW(1, tan, u10),    ROW(1, sinpi, u05),  ROW(1, cospi, u05), ROW(1, asin, u10),  ROW(1, acos, u10),
    ROW(1, atan, u10),   ROW(1, sinh, u10),   ROW(1, cosh, u10),  ROW(1, tanh, u10),  ROW(1, asinh, u10),
    ROW(1, acosh, u10),  ROW(1, atanh, u10),  ROW(1, erf, u10),   ROW(1, erfc, u15),  ROW(1, cbrt, u10),
    ROW(1, lgamma, u10), ROW(1, tgamma, u10), ROW(2, pow, u10),   ROW(2, atan2, u10), ROW(2, hypot, u05),
    ROW(2, fmod, ),
};

}  // namespace

extern const std::span<const named_loop> sleef_table;
constinit const std::span<const named_loop> sleef_table = all;

}  // namespace bench::REPDL_ISA
