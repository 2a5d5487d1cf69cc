// A block is N = 2^n consecutive inputs x_i = (m + i) 2^e, i < N, of one sign and binade; with s = (i - N/2) / (N/2),
// in [-1, 1), they are centre + width s. On it f is
//
//   f(x_i) = P(s) + R,   P(s) = c_0 + ... + c_d s^d,   |R| <= |c_(d+1)| over the block
//
// where the c_k are the Taylor coefficients (times width^k) at the centre, from the function's expression over series
// of balls, and the last one is the coefficient of the series whose constant term is the ball of the whole block:
// Taylor's theorem with Lagrange's remainder. P at i = 0 to d gives the forward differences D_0 to D_d at i = 0, again
// as balls, which are rounded to integers of 128 bits in units of 2^u. From there on
//
//   v_0 += v_1, v_1 += v_2, ...   at once
//
// is exact, and the element i of the exact difference table is the sum of C(i, k) D_k. So what v_0 misses of f(x_i) is
// at most, in units, E = sum over k of C(N, k) (radius of D_k + 1/2) + |R| 2^-u, where C(N, k) <= N^k / k!.
//
// With M >= |f| on the block, u is such that M < 2^120 units: no D_k, at most 2^5 M, overflows. A block is taken if E
// is below 2^-37 times the least |f| on it (2^-13 ulp, so that about one element of 2^11 is left to MPFR), below 2^-61
// M, or below 2^-162 (2^-13 of the least ulp); else a smaller one is tried. Every element is tested: it is decided
// where every number within E of v_0 rounds to one pattern.
//
// Functions of an angle for |x| >= 1, where blocks would become too short: the angle in turns, x / (2 pi) mod 1, is an integer of
// 128 bits in units of 2^-128, and so is what one step adds to it mod 1; both are rounded down from MPFR, so that after
// fewer than 2^23 steps the angle is less than 2^24 units too small. It is reduced to u pi/2^64, u <= 2^63 rounded down
// to an integer, in the first quadrant; of sin(u pi/2^64) there are 512 cells with a Taylor polynomial of degree 5
// about each middle, in z = (u - middle) / 2^53, |z| <= 1, evaluated in integers of 64 bits, units 2^-62. In these
// units:
//   - the angle: (1 + 2^-39) pi 2^-64 in absolute value, |sin'| <= 1                    0.8
//   - Taylor's remainder: (pi / 2^11)^6 / 720 = 2^-65.5                                 0.1
//   - coefficients, rounded to nearest: 6 of 1/2                                        3
//   - products, rounded down: 5 of 1, times powers of |z| <= 1                          5
// in all less than 2^4. With s and c, |c| >= 2^k, such numbers for sine and cosine, s 2^64 / c differs from the tangent by
// less than 2^4 (1 + 2^62 / |c|) 2^64 / (|c| - 2^4) + 1, in units 2^-64: 2^(132 - 2k). sin(pi x), of an angle that is exact, over
// pi x: pi m 2^38 is an integer d with an error below 2^-40 d, 2^62 < d < 2^64, so s 2^64 / d is known to less than 2^7 and 2^-40 of
// itself. What is exact (0, 1, a pole) is near no midpoint, or too near to 0 to be decided here.
#include "reference/elementwise/tabulate.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace repdl::reference {
namespace {

__extension__ using word = unsigned __int128;
__extension__ using signed_word = __int128;

constexpr std::uint32_t nan32 = 0x7fc00000, hidden32 = 0x00800000, one32 = 0x3f800000;

std::uint32_t pointwise(const elementary& f, std::uint32_t x) {
  return static_cast<std::uint32_t>(evaluate(f, f32, x));
}

/// Rounds v 2^unit, known to less than 2^error units.
struct rounding_test {
  int unit, error;

  /// False where the pattern is not decided. v is in two's complement.
  bool operator()(word v, std::uint32_t* pattern) const {
    const std::uint32_t sign = static_cast<std::uint32_t>(v >> 96) & sign32;
    if (sign != 0) v = -v;
    if (v >> (error + 2) == 0) return false;  // below, the error is less than a quarter of v
    const auto high = static_cast<std::uint64_t>(v >> 64);
    const int zeros = high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(static_cast<std::uint64_t>(v));
    const auto top = static_cast<std::uint64_t>((v << zeros) >> 64);  // 64 leading bits; the rest is below 1
    const int shift = error + zeros - 64;                             // at most 61
    const std::uint64_t margin = 1 + (std::uint64_t{1} << std::max(shift, 0));
    const int exponent = 127 - zeros + unit;        // 2^exponent <= v < 2^(exponent + 1)
    const int lost = std::max(0, -126 - exponent);  // to a subnormal result
    if (lost > 23) {                                // below 2^-149: the midpoint is 2^-150, above it is `lost` = 24
      *pattern = sign | (lost == 24 ? 1 : 0);
      return lost > 25 || (lost == 24 ? top - (std::uint64_t{1} << 63) : -top) > margin;
    }
    // 2^cut units of `top` are the result's last place. A quarter of it would reach the midpoint below a power of two,
    // whose last place is half of that above.
    const int cut = 40 + lost;
    if (margin >= std::uint64_t{1} << (cut - 2)) return false;
    if (exponent > 127) {  // above 2^128 (1 - 2^-25), the overflow threshold
      *pattern = sign | inf32;
      return true;
    }
    const std::uint64_t half = std::uint64_t{1} << (cut - 1), rest = top & (2 * half - 1);
    if ((rest > half ? rest - half : half - rest) <= margin) return false;
    const auto kept = static_cast<std::uint32_t>(top >> cut) + (rest > half ? 1 : 0);
    // Normal: kept has the hidden bit. A carry goes on to the next binade, or to infinity.
    *pattern = sign | (kept + (lost > 0 ? 0 : static_cast<std::uint32_t>(exponent + 126) << 23));
    return true;
  }
};

constexpr int degree = 5;

/// The table of a polynomial of degree D, stepped.
template <int D>
std::uint64_t step(const elementary& f, const std::array<word, degree + 1>& differences, rounding_test test,
                   std::uint32_t first, std::uint64_t count, std::uint32_t* out) {
  word v[D + 1];
  std::copy_n(differences.begin(), D + 1, v);
  std::uint64_t left = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!test(v[0], out + i)) {
      out[i] = pointwise(f, first + static_cast<std::uint32_t>(i));
      ++left;
    }
    for (int k = 0; k < D; ++k) v[k] += v[k + 1];
  }
  return left;
}
constexpr decltype(&step<1>) steps[] = {step<1>, step<2>, step<3>, step<4>, step<5>};

/// The integer nearest to an integer-valued mpfr number below 2^126, in two's complement.
word to_word(mpfr_srcptr x) {
  mpz_class z;
  mpfr_get_z(z.get_mpz_t(), x, MPFR_RNDN);
  std::uint64_t limbs[2] = {};
  mpz_export(limbs, nullptr, -1, sizeof limbs[0], 0, 0, z.get_mpz_t());
  const word m = static_cast<word>(limbs[1]) << 64 | limbs[0];
  return z < 0 ? -m : m;
}

/// Tries one block of 2^n inputs from `first` on. False: nothing is written.
bool block(const elementary& f, std::uint32_t first, int n, std::uint32_t* out, std::uint64_t* left) {
  const std::uint64_t count = std::uint64_t{1} << n;
  const number x = widen(f32, first);
  const double sign = x.negative ? -1 : 1;
  const double width = std::ldexp(sign, n - 1 + x.exponent);
  const double centre = std::ldexp(sign * static_cast<double>(x.significand + (count >> 1)), x.exponent);

  ball whole(64, centre);
  whole.radius = std::fabs(width);
  const series over = f.f(series(degree + 1, whole, ball(64, width)));
  const auto remainder = [&](int d) { return over.c[static_cast<std::size_t>(d) + 1].most(); };
  // Written so that NaN and infinity refuse, here and below.
  if (!(remainder(degree) <= std::max<error_bound>(over.c[0].most() * 0x1p-36, 0x1p-161))) return false;

  series at = over;
  for (mpfr_prec_t p = 192; p <= 768; p *= 2) {
    at = f.f(series(degree, ball(p, centre), ball(p, width)));
    if (at.c[0].radius <= at.c[0].least() * 0x1p-112) break;  // else terms cancel
  }
  error_bound variation = remainder(degree);
  for (int k = 1; k <= degree; ++k) variation += at.c[static_cast<std::size_t>(k)].most();
  variation *= 1 + 0x1p-30;
  const error_bound most = (at.c[0].most() + variation) * (1 + 0x1p-30);
  const error_bound least = std::max<error_bound>(0, at.c[0].least() * (1 - 0x1p-30) - variation);
  if (!(most < HUGE_VAL)) return false;
  if (most < 0x1p-150) {
    if (!(least > 0)) return false;  // the zeros' sign
    std::fill_n(out, count, mpfr_signbit(at.c[0].mid) != 0 ? sign32 : 0);
    return true;
  }

  const error_bound tolerance = std::max<error_bound>({least * 0x1p-37, most * 0x1p-61, 0x1p-162});
  int d = 1;
  while (d < degree && !(remainder(d) <= tolerance / 4)) ++d;
  int exponent = 0;
  std::frexp(most, &exponent);
  const int unit = exponent - 120;
  std::vector<ball> value;
  for (int i = 0; i <= d; ++i) {
    const ball s(at.precision(), std::ldexp(i, 1 - n) - 1);
    ball y = at.c[static_cast<std::size_t>(d)];
    for (int k = d; k-- > 0;) y = y * s + at.c[static_cast<std::size_t>(k)];
    value.push_back(y.scaled(-unit));
  }
  error_bound error = std::ldexp(remainder(d), -unit), binomial = 1;
  std::array<word, degree + 1> differences{};
  for (std::size_t k = 0; k < value.size(); ++k) {  // value[k] is the difference of order k here
    differences[k] = to_word(value[k].mid);
    error += binomial * (value[k].radius + 0.5);
    binomial *= static_cast<error_bound>(count) / static_cast<error_bound>(k + 1);
    for (std::size_t i = value.size() - 1; i > k; --i) value[i] = value[i] - value[i - 1];
  }
  error *= 1 + 0x1p-30;
  if (!(error <= std::ldexp(tolerance, -unit))) return false;
  std::frexp(error, &exponent);
  *left += steps[d - 1](f, differences, {unit, std::max(exponent, 1)}, first, count, out);
  return true;
}

/// [a, b): patterns of one sign and binade, no zeros.
std::uint64_t blocks(const elementary& f, std::uint64_t a, std::uint64_t b, std::uint32_t base, std::uint32_t* out) {
  constexpr int smallest = 4;
  std::uint64_t left = 0;
  int n = 16, successes = 0, alone = smallest;
  while (a < b) {
    const auto x = static_cast<std::uint32_t>(a);
    n = std::min(n, static_cast<int>(std::bit_width(b - a)) - 1);
    if (n < smallest) {
      const std::uint64_t end = std::min(b, a + (std::uint64_t{1} << alone));
      alone = std::min(alone + 1, 12);  // where no block is taken, few are tried
      for (; a < end; ++a, ++left) out[a - base] = pointwise(f, static_cast<std::uint32_t>(a));
      n = smallest;
    } else if (block(f, x, n, out + (x - base), &left)) {
      a += std::uint64_t{1} << n;
      alone = smallest;
      if (++successes % 2 == 0) ++n;
    } else {
      --n;
      successes = 0;
    }
  }
  return left;
}

struct sine_cells {
  static constexpr int bits = 9;                // cells in a quadrant: 2^bits, and one for its end
  static constexpr int z_bits = 63 - bits - 1;  // half a cell is 2^z_bits
  std::int64_t c[(1 << bits) + 1][degree + 1];

  sine_cells() {
    mpfr_t angle, half, term;
    mpfr_inits2(192, angle, half, term, nullptr);
    mpfr_const_pi(half, MPFR_RNDN);
    mpfr_div_2ui(half, half, 64 - z_bits, MPFR_RNDN);
    for (unsigned i = 0; i <= 1U << bits; ++i) {
      mpfr_mul_ui(angle, half, 2 * i + 1, MPFR_RNDN);
      for (unsigned k = 0; k <= degree; ++k) {
        k % 2 == 0 ? mpfr_sin(term, angle, MPFR_RNDN) : mpfr_cos(term, angle, MPFR_RNDN);
        if (k % 4 >= 2) mpfr_neg(term, term, MPFR_RNDN);
        for (unsigned j = 1; j <= k; ++j) {
          mpfr_mul(term, term, half, MPFR_RNDN);
          mpfr_div_ui(term, term, j, MPFR_RNDN);
        }
        mpfr_mul_2ui(term, term, 62, MPFR_RNDN);
        c[i][k] = mpfr_get_sj(term, MPFR_RNDN);
      }
    }
    mpfr_clears(angle, half, term, nullptr);
  }
  /// sin(u pi / 2^64), u <= 2^63, in units of 2^-62.
  std::int64_t operator()(std::uint64_t u) const {
    const std::uint64_t cell = u >> (z_bits + 1);
    const auto z = static_cast<std::int64_t>((u - ((2 * cell + 1) << z_bits)) << (63 - z_bits - 1));  // units 2^-62
    const std::int64_t* const p = c[cell];
    std::int64_t y = p[degree];
    for (int k = degree; k-- > 0;) y = p[k] + static_cast<std::int64_t>((static_cast<signed_word>(y) * z) >> 62);
    return y;
  }
};

/// |m| 2^e / (2 pi) mod 1, rounded down to units of 2^-128.
word turns(std::uint64_t m, int e) {
  constexpr mpfr_prec_t p = 448;  // the product has at most 128 bits before the point
  mpfr_t t;
  mpfr_init2(t, p);
  mpfr_const_pi(t, MPFR_RNDU);
  mpfr_ui_div(t, m, t, MPFR_RNDD);
  mpfr_mul_2si(t, t, e - 1, MPFR_RNDD);
  mpfr_frac(t, t, MPFR_RNDD);
  mpfr_mul_2ui(t, t, 128, MPFR_RNDD);
  mpfr_floor(t, t);
  const word w = to_word(t);
  mpfr_clear(t);
  return w;
}

/// [a, b): patterns of one sign and binade, at least 1 in magnitude; below 2^24, where an angle is pi x.
std::uint64_t waves(const elementary& f, std::uint64_t a, std::uint64_t b, std::uint32_t base, std::uint32_t* out) {
  static const sine_cells sine;
  const bool of_pi = f.angle >= wave::sinpi;
  const bool even = f.angle == wave::cos || f.angle == wave::cospi;
  const bool tangent = f.angle == wave::tan || f.angle == wave::tanpi;
  const word quarter = word{1} << 126;
  const number x = widen(f32, a);
  const auto angle_of = [&](std::uint64_t m) { return of_pi ? word{m} << (127 + x.exponent) : turns(m, x.exponent); };
  const word by = angle_of(1);
  word angle = angle_of(x.significand) + (even ? quarter : 0);
  // The sine in units of 2^-62, the sign of x left out.
  const auto of_angle = [&](word turn) {
    const auto u = static_cast<std::uint64_t>(turn >> 63);
    const auto y = static_cast<signed_word>(sine(u > std::uint64_t{1} << 63 ? -u : u));
    return turn >> 127 != 0 ? -y : y;
  };
  const auto over = [](signed_word s, signed_word d) { return (s * (signed_word{1} << 64)) / d; };
  // False where y, an approximation, does not decide the result.
  const auto decided = [&](std::uint64_t i, rounding_test test, signed_word y, bool flip) {
    return test(static_cast<word>(flip ? -y : y), out + (i - base));
  };
  const auto element = [&](std::uint64_t i) {
    const signed_word s = of_angle(angle);
    if (tangent) {
      const signed_word c = of_angle(angle + quarter);
      const int k = std::bit_width(static_cast<std::uint64_t>(c < 0 ? -c : c)) - 1;
      return k >= 20 && decided(i, {-64, 132 - 2 * k}, over(s, c), x.negative);
    }
    if (f.angle == wave::sinc) {
      constexpr std::uint64_t pi38 = 863554413089;
      const signed_word y = over(s, static_cast<signed_word>(word{widen(f32, i).significand} * pi38));
      const int bits = std::bit_width(static_cast<std::uint64_t>(y < 0 ? -y : y));
      return decided(i, {-88 - x.exponent, std::max(8, bits - 39)}, y, false);
    }
    return decided(i, {-126, 64 + 4}, s * (signed_word{1} << 64), x.negative && !even);
  };
  std::uint64_t left = 0;
  for (std::uint64_t i = a; i < b; ++i, angle += by) {
    if (element(i)) continue;
    out[i - base] = pointwise(f, static_cast<std::uint32_t>(i));
    ++left;
  }
  return left;
}

/// The first magnitude of at least |bound|.
std::uint64_t magnitude_from(double bound) {
  const std::uint64_t p = convert(dtype::f64, f32, std::bit_cast<std::uint64_t>(std::fabs(bound)));
  return p + (static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(p))) < std::fabs(bound) ? 1 : 0);
}

}  // namespace

std::uint64_t tabulate(const elementary& f, std::uint32_t first, std::uint64_t count, std::uint32_t* out) {
  std::uint64_t left = 0;
  const std::uint64_t end = first + count;
  for (const std::uint64_t sign : {std::uint64_t{0}, std::uint64_t{sign32}}) {
    const tail& beyond = sign != 0 ? f.below : f.above;
    // All negative numbers are beyond a positive bound, and the positive ones below it.
    const double first_bound = f.below.from.of(f32);
    const std::uint64_t far = sign != 0 && first_bound > 0 ? 0 : magnitude_from(beyond.from.of(f32));
    const std::uint64_t near = sign == 0 && first_bound > 0 ? magnitude_from(first_bound) : 1;
    const auto within = [&](std::uint64_t lo, std::uint64_t hi, auto&& fill) {
      const std::uint64_t a = std::max<std::uint64_t>(first, sign + lo), b = std::min(end, sign + hi);
      if (a < b) fill(a, b);
    };
    const auto each = [&](std::uint64_t a, std::uint64_t b) {
      for (; a < b; ++a) out[a - first] = pointwise(f, static_cast<std::uint32_t>(a));
    };
    const auto alike = [&](std::uint64_t a, std::uint64_t b) {
      std::fill(out + (a - first), out + (b - first), pointwise(f, static_cast<std::uint32_t>(a)));
    };
    within(0, 1, each);
    within(1, near, alike);
    for (std::uint64_t lo = near; lo < far;) {
      const std::uint64_t hi = std::min(far, (lo / hidden32 + 1) * hidden32);
      within(lo, hi, [&](std::uint64_t a, std::uint64_t b) {
        left += (f.angle != wave::none && lo >= one32 ? waves : blocks)(f, a, b, first, out);
      });
      lo = hi;
    }
    within(far, far + 1, each);  // the bound may be a special case (log1p)
    within(far + 1, inf32, [&](std::uint64_t a, std::uint64_t b) {
      alike(a, b);
      for (; beyond.itself && a < b; ++a) out[a - first] = static_cast<std::uint32_t>(a);
    });
    within(inf32, inf32 + 1ULL, each);
    within(inf32 + 1ULL, sign32,
           [&](std::uint64_t a, std::uint64_t b) { std::fill(out + (a - first), out + (b - first), nan32); });
  }
  return left;
}

}  // namespace repdl::reference
