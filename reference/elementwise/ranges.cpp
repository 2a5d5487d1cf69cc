// Runs of consecutive inputs, fast: what makes 2^32 results a matter of minutes. A test compares every path with the
// pointwise oracle.
#include <algorithm>
#include <stdexcept>

#include "reference/elementwise/elementwise.hpp"
#include "reference/elementwise/tabulate.hpp"

namespace repdl::reference {
namespace {

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

}  // namespace

void evaluate_range(const ops::elementwise_row& row, std::uint32_t first, std::uint64_t count, void* out) {
  if (row.arity != 1 || row.options.count() != 0) {
    throw std::logic_error("reference: evaluate_range needs a unary row without options");
  }
  if (row.has_own_type()) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t x = first + i;
      store(row.result_type(f32), out, i, oracle_of(row.name).f(f32, &x, nullptr));
    }
    return;
  }
  auto* const patterns = static_cast<std::uint32_t*>(out);
  if (const elementary* f = elementary_named(row.name)) {
    tabulate(*f, first, count, patterns);
    return;
  }
  const range_filler r{oracle_of(row.name).f, first, patterns};
  const std::uint64_t end = first + count;
  // Positive numbers with +inf, NaNs, negative numbers with -inf, NaNs.
  constexpr std::uint64_t cuts[] = {0, inf32 + 1ULL, sign32, (sign32 | inf32) + 1ULL, 1ULL << 32};
  for (int s = 0; s < 4; ++s) {
    const std::uint64_t a = std::max<std::uint64_t>(first, cuts[s]), b = std::min(end, cuts[s + 1]);
    if (a >= b) continue;
    if (row.monotone == ops::monotone_kind::no) {
      for (std::uint64_t x = a; x < b; ++x) patterns[x - first] = r.at(x);
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
