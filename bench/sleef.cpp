// SLEEF's vector functions over an array of binary32 or binary64: compiled once per instruction set, with its entry points of at most 1.0 ulp (1.5
// for erfc, 0.506 for hypot, sinpi, cospi).
#include <sleef.h>

#include <cstring>
#include <span>

#include "bench/loops.hpp"

#if defined(__AVX512F__)
#define BYTES 64
#define ENTRY32(f, ulp) Sleef_##f##f16_u##ulp##avx512f
#define ENTRY64(f, ulp) Sleef_##f##d8_u##ulp##avx512f
#elif defined(__AVX2__)
#define BYTES 32
#define ENTRY32(f, ulp) Sleef_##f##f8_u##ulp##avx2
#define ENTRY64(f, ulp) Sleef_##f##d4_u##ulp##avx2
#elif defined(__SSE2__)
#define BYTES 16
#define ENTRY32(f, ulp) Sleef_##f##f4_u##ulp##sse2
#define ENTRY64(f, ulp) Sleef_##f##d2_u##ulp##sse2
#else
#define BYTES 16
#define ENTRY32(f, ulp) Sleef_##f##f4_u##ulp##advsimd
#define ENTRY64(f, ulp) Sleef_##f##d2_u##ulp##advsimd
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
    ROW(1, exp, 10),   ROW(1, exp2, 10),   ROW(1, exp10, 10),  ROW(1, expm1, 10), ROW(1, log, 10),   ROW(1, log2, 10),
    ROW(1, log10, 10), ROW(1, log1p, 10),  ROW(1, sin, 10),    ROW(1, cos, 10),   ROW(1, tan, 10),   ROW(1, sinpi, 05),
    ROW(1, cospi, 05), ROW(1, asin, 10),   ROW(1, acos, 10),   ROW(1, atan, 10),  ROW(1, sinh, 10),  ROW(1, cosh, 10),
    ROW(1, tanh, 10),  ROW(1, asinh, 10),  ROW(1, acosh, 10),  ROW(1, atanh, 10), ROW(1, erf, 10),   ROW(1, erfc, 15),
    ROW(1, cbrt, 10),  ROW(1, lgamma, 10), ROW(1, tgamma, 10), ROW(2, pow, 10),   ROW(2, atan2, 10), ROW(2, hypot, 05),
};

}  // namespace

extern const std::span<const named_loop> sleef_table;
constinit const std::span<const named_loop> sleef_table = all;

}  // namespace bench::REPDL_ISA
