// SLEEF's vector functions over an array: compiled once per instruction set, with its entry points of at most 1.0 ulp (1.5
// for erfc, 0.506 for hypot, sinpi, cospi).
#include <sleef.h>

#include <cstring>
#include <span>

#include "bench/loops.hpp"

#if defined(__AVX512F__)
#define WIDTH 16
#define ENTRY(f, ulp) Sleef_##f##f16_u##ulp##avx512f
#elif defined(__AVX2__)
#define WIDTH 8
#define ENTRY(f, ulp) Sleef_##f##f8_u##ulp##avx2
#elif defined(__SSE2__)
#define WIDTH 4
#define ENTRY(f, ulp) Sleef_##f##f4_u##ulp##sse2
#else
#define WIDTH 4
#define ENTRY(f, ulp) Sleef_##f##f4_u##ulp##advsimd
#endif

namespace bench::REPDL_ISA {
namespace {

// f(v, ...) for vectors of the operands' elements.
template <int arity, class F>
void map(const F& f, const void* const* in, void* out, std::int64_t n) {
  using vector [[gnu::vector_size(WIDTH * sizeof(float))]] = float;
  for (std::int64_t i = 0; i < n; i += WIDTH) {
    vector v[arity];
    for (int k = 0; k < arity; ++k) std::memcpy(&v[k], static_cast<const float*>(in[k]) + i, sizeof v[k]);
    vector y;
    if constexpr (arity == 1) y = f(v[0]);
    if constexpr (arity == 2) y = f(v[0], v[1]);
    std::memcpy(static_cast<float*>(out) + i, &y, sizeof y);
  }
}

// clang-format off
#define ROW(arity, f, ulp)                                                                                         \
  { #f, [](const void* const* in, void* out, std::int64_t n, bool*) {                                              \
      map<arity>([](auto... v) { return ENTRY(f, ulp)(v...); }, in, out, n); } }
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
