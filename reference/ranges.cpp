// Runs of consecutive inputs, fast: what makes 2^32 results a matter of minutes. A test compares every path with the
// pointwise oracle.
#include <algorithm>
#include <bit>
#include <stdexcept>

#include "reference/elementwise.hpp"

namespace repdl::reference {
namespace {

constexpr std::uint32_t inf32 = 0x7f800000;
constexpr std::uint32_t sign32 = 0x80000000;
constexpr std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

struct range_filler {
  oracle_function f;
  std::uint32_t base;
  std::uint32_t* out;

  std::uint32_t at(std::uint64_t x) const { return static_cast<std::uint32_t>(f(f32, &x, nullptr)); }
  /// Everything strictly between a and b, whose results are fa and fb.
  void between(std::uint64_t a, std::uint32_t fa, std::uint64_t b, std::uint32_t fb) const {
    if (b - a <= 1) return;
    if (fa == fb) {
      std::fill(out + (a + 1 - base), out + (b - base), fa);
      return;
    }
    const std::uint64_t m = a + (b - a) / 2;
    const std::uint32_t fm = at(m);
    out[m - base] = fm;
    between(a, fa, m, fm);
    between(m, fm, b, fb);
  }
  /// [a, b), within which the input's sign is constant and f is monotone, or NaN throughout a subinterval.
  void fill(std::uint64_t a, std::uint64_t b) const {
    if (a >= b) return;
    const std::uint32_t fa = at(a), fb = at(b - 1);
    out[a - base] = fa;
    out[b - 1 - base] = fb;
    between(a, fa, b - 1, fb);
  }
};

/// For 0 < |x| <= 2^-12: |x| - |x|^3/3 < |tanh x| < |x|, and x^2/3 <= 2^-24/3 < 2^-25, while the midpoint below |x| is
/// at least 2^-25 |x| away (normal numbers; x a power of two is the worst case) or 2^-150 (subnormal ones, where
/// |x|^3/3 < 2^-370): RN(tanh x) = x.
constexpr std::uint32_t tanh_identity = bits_of(0x1p-12F);

void fill_tanh(const range_filler& r, std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sign = a & sign32;
  const std::uint64_t split = std::clamp(sign + tanh_identity + 1, a, b);
  for (std::uint64_t x = a; x < split; ++x) r.out[x - r.base] = static_cast<std::uint32_t>(x);
  r.fill(split, b);
}

/// Positive finite x, consecutive: the result grows by at most one pattern per step (d sqrt / dx stays below one unit
/// per unit), and is kept while x is below the square of the midpoint above it, compared in integers.
void fill_sqrt(const range_filler& r, std::uint64_t a, std::uint64_t b) {
  for (std::uint64_t x = a; x < b;) {
    const std::uint32_t y = r.at(x);
    // The midpoint above y is (2m + 1) * 2^(e - 1); x = s * 2^t <= its square, (2m + 1)^2 * 2^(2e - 2), keeps y.
    const number root = widen(f32, y);
    const std::uint64_t odd = 2 * root.significand + 1;
    const std::uint64_t square = odd * odd;
    const int e = 2 * root.exponent - 2;
    for (; x < b; ++x) {
      const number n = widen(f32, x);
      // square < 2^50 and x is below twice the square, so the shifted significand stays below 2^52; never equal, since
      // an odd square of 49 bits is no binary32 number.
      if ((n.significand << (n.exponent - e)) > square) break;
      r.out[x - r.base] = y;
    }
  }
}

/// Positive normal x outside [1/4, 4), where a result is shared by one or more consecutive x: with M the midpoint above
/// the result y, RN(ln x) <= y exactly for x < e^M (never equal: e^M is transcendental), and the last such x is e^M
/// rounded down to 24 bits, which MPFR does correctly. One exponential per result instead of a search.
void fill_log_runs(const range_filler& r, std::uint64_t a, std::uint64_t b) {
  mpfr_t m, next, last;
  mpfr_init2(m, 26);
  mpfr_init2(next, 26);
  mpfr_init2(last, 24);
  std::uint64_t x = a;
  std::uint32_t y = r.at(a);
  while (x < b) {
    const std::uint32_t up = (y & sign32) != 0 ? y - 1 : y + 1;  // 0.5 < |y| < 128: no zero, no infinity
    set_mpfr(m, f32, y);
    set_mpfr(next, f32, up);
    mpfr_add(m, m, next, MPFR_RNDN);  // exact: 25 bits
    mpfr_div_2ui(m, m, 1, MPFR_RNDN);
    mpfr_exp(last, m, MPFR_RNDD);
    // e^M may lie beyond the largest number or below the least normal one, outside of [x, b).
    const bool beyond = mpfr_get_exp(last) > 128;
    const std::uint64_t end = beyond ? b : std::min<std::uint64_t>(b, round_mpfr(f32, last) + 1);
    for (; x < end; ++x) r.out[x - r.base] = y;
    y = up;
  }
  mpfr_clears(m, next, last, nullptr);
}

void fill_log(const range_filler& r, std::uint64_t a, std::uint64_t b) {
  // Zero and subnormal numbers, normal ones below 1/4, from there to 4, the other finite ones, infinity.
  constexpr std::uint64_t cuts[] = {0, 0x00800000, bits_of(0.25F), bits_of(4), inf32, inf32 + 1ULL};
  for (int s = 0; s < 5; ++s) {
    const std::uint64_t lo = std::max(a, cuts[s]), hi = std::min(b, cuts[s + 1]);
    if (lo >= hi) continue;
    if (s == 1 || s == 3) {
      fill_log_runs(r, lo, hi);
    } else {
      r.fill(lo, hi);
    }
  }
}

}  // namespace

void evaluate_range(const ops::elementwise_row& row, std::uint32_t first, std::uint64_t count, void* out) {
  if (row.arity != 1 || row.options.count() != 0) {
    throw std::logic_error("reference: evaluate_range needs a unary row without options");
  }
  if (row.result != ops::result_kind::same) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t x = first + i;
      store(row.result_type(f32), out, i, oracle_of(row.name).f(f32, &x, nullptr));
    }
    return;
  }
  auto* const patterns = static_cast<std::uint32_t*>(out);
  const range_filler r{oracle_of(row.name).f, first, patterns};
  const std::uint64_t end = first + count;
  // Positive numbers with +inf, NaNs, negative numbers with -inf, NaNs.
  constexpr std::uint64_t cuts[] = {0, inf32 + 1ULL, sign32, (sign32 | inf32) + 1ULL, 1ULL << 32};
  for (int s = 0; s < 4; ++s) {
    const std::uint64_t a = std::max<std::uint64_t>(first, cuts[s]), b = std::min(end, cuts[s + 1]);
    if (a >= b) continue;
    if (row.monotone == ops::monotone_kind::no) {
      for (std::uint64_t x = a; x < b; ++x) patterns[x - first] = r.at(x);
    } else if (row.name == "log" && s == 0) {
      fill_log(r, a, b);
    } else if (row.name == "tanh" && (s & 1) == 0) {
      fill_tanh(r, a, b);
    } else if (row.name == "sqrt" && s == 0) {
      const std::uint64_t lo = std::max<std::uint64_t>(a, 1), hi = std::min<std::uint64_t>(b, inf32);
      if (a == 0) patterns[0] = r.at(0);
      if (lo < hi) fill_sqrt(r, lo, hi);
      if (b == inf32 + 1ULL) patterns[inf32 - first] = r.at(inf32);
    } else {
      r.fill(a, b);
    }
  }
}

void convert_range(dtype from, dtype to, std::uint32_t first, std::uint64_t count, void* out) {
  for (std::uint64_t i = 0; i < count; ++i) store(to, out, i, convert(from, to, first + i));
}

}  // namespace repdl::reference
