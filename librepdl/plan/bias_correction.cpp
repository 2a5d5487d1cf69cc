// RN(1 - beta^step): Adam's bias correction, rounded once.
//
// beta^step by binary powering on 512-bit significands that are cut off, with a count of how many units of the last
// place the exact power may be above: if x in [m, m + k] 2^e and y in [n, n + l] 2^f, m, n >= 2^511, then xy exceeds
// the cut-off product by at most 2(k + l + 1) of its units as long as k, l < 2^500. At most 126 products: k < 2^130.
// Both ends of the interval for 1 - beta^step are rounded to binary64; k = 0 (nothing was cut off) decides ties. Powers
// of more than 512 significant bits are no ties: 1 - beta^step has as many bits.
#include <array>
#include <bit>

#include "librepdl/num/fp_environment.hpp"
#include "librepdl/plan/planner.hpp"

namespace repdl::plan {
namespace {

using word = std::uint64_t;
__extension__ typedef unsigned __int128 double_word;
constexpr int limbs = 8;

// m 2^exponent with the highest bit of m set, and the exact value less than `above` units further up.
struct power {
  std::array<word, limbs> m{};  // least significant first
  std::int64_t exponent = 0;
  std::array<word, 3> above{};  // units, 192 bits

  explicit power(double beta) {
    const word bits = std::bit_cast<word>(beta);  // normal: at least 2^-200
    m[limbs - 1] = ((bits & 0xfffffffffffffull) | 0x10000000000000ull) << 11;
    exponent = static_cast<std::int64_t>(bits >> 52) - 1075 - 11 - 64 * (limbs - 1);
  }
};

template <std::size_t N>
word add(std::array<word, N>& a, const std::array<word, N>& b) {
  word carry = 0;
  for (std::size_t i = 0; i < N; ++i) {
    const double_word s = static_cast<double_word>(a[i]) + b[i] + carry;
    a[i] = static_cast<word>(s);
    carry = static_cast<word>(s >> 64);
  }
  return carry;
}

power multiply(const power& x, const power& y) {
  std::array<word, 2 * limbs> p{};
  for (std::size_t i = 0; i < limbs; ++i) {
    word carry = 0;
    for (std::size_t j = 0; j < limbs; ++j) {
      const double_word t = static_cast<double_word>(x.m[i]) * y.m[j] + p[i + j] + carry;
      p[i + j] = static_cast<word>(t);
      carry = static_cast<word>(t >> 64);
    }
    p[i + limbs] = carry;
  }
  power r = x;
  r.exponent = x.exponent + y.exponent + 64 * limbs;
  const bool shift = p[2 * limbs - 1] >> 63 == 0;
  if (shift) {
    for (std::size_t i = 2 * limbs - 1; i > 0; --i) p[i] = p[i] << 1 | p[i - 1] >> 63;
    p[0] <<= 1;
    --r.exponent;
  }
  word cut = 0;
  for (std::size_t i = 0; i < limbs; ++i) {
    cut |= p[i];
    r.m[i] = p[limbs + i];
  }
  const auto any = [](const std::array<word, 3>& a) { return (a[0] | a[1] | a[2]) != 0; };
  r.above = {};
  if (cut != 0 || any(x.above) || any(y.above)) {
    r.above = x.above;
    add(r.above, y.above);
    add(r.above, {1, 0, 0});
    add(r.above, r.above);
  }
  return r;
}

// 1 - (m + extra) 2^exponent in units of 2^-fraction, exactly: the power is below 1 and at least 2^-(fraction - 512).
constexpr int fraction = 640;
using fixed = std::array<word, fraction / 64>;
fixed complement(const power& p, bool upper) {
  fixed f{};
  std::array<word, limbs + 1> m{};
  for (std::size_t i = 0; i < limbs; ++i) m[i] = p.m[i];
  if (upper) add(m, {p.above[0], p.above[1], p.above[2]});
  const auto shift = static_cast<std::size_t>(p.exponent + fraction);
  for (std::size_t i = 0; i < m.size(); ++i) {
    const std::size_t at = i + shift / 64, by = shift % 64;
    if (at < f.size()) f[at] |= m[i] << by;
    if (by != 0 && at + 1 < f.size()) f[at + 1] |= m[i] >> (64 - by);
  }
  word carry = 1;  // 2^fraction - f
  for (word& w : f) {
    w = ~w + carry;
    carry = carry != 0 && w == 0 ? 1 : 0;
  }
  return f;
}

// RN of a number in (0, 1), in units of 2^-fraction.
double round(const fixed& f) {
  std::size_t top = f.size() - 1;
  while (top > 0 && f[top] == 0) --top;
  const int width = static_cast<int>(64 * top) + std::bit_width(f[top]);
  const int drop = width - 53;
  const auto bit = [&](int i) { return i >= 0 ? f[static_cast<std::size_t>(i) / 64] >> (i % 64) & 1 : 0; };
  word kept = 0;
  for (int i = width - 1; i >= drop; --i) kept = kept << 1 | bit(i);
  bool below = false;
  for (int i = 0; i < drop - 1; ++i) below = below || bit(i) != 0;
  kept += bit(drop - 1) & (static_cast<word>(below) | (kept & 1));
  // kept 2^(drop - fraction), a normal number: the power is at most 1 - 2^-53.
  return static_cast<double>(kept) * std::bit_cast<double>(static_cast<word>(drop - fraction + 1023) << 52);
}

}  // namespace

double bias_correction(double beta, std::int64_t step) {
  const num::fp_environment_guard guard;
  if (beta == 0) return 1;
  const power base(beta);
  power p = base;
  for (int bit = std::bit_width(static_cast<word>(step)) - 2; bit >= 0; --bit) {
    p = multiply(p, p);
    if ((step >> bit & 1) != 0) p = multiply(p, base);
    if (p.exponent < -100 - 64 * limbs) return 1;  // below 2^-100, and the powers that follow are smaller still
  }
  if (p.exponent < -100 - 64 * limbs) return 1;
  const double low = round(complement(p, true));
  const double high = round(complement(p, false));
  if (low != high) {
    fail(error_site::undecided, "adamw", "step", "a power of beta that 512 bits decide", std::to_string(step));
  }
  return high;
}

}  // namespace repdl::plan
