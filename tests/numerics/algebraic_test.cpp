// Algebraic numbers with a separation bound: the signs of values that are 0 and of values next to it, and rounding at midpoints.
// The oracle is MPFR with more bits than any bound asks for, and GMP.
#include "librepdl/num/algebraic.hpp"

#include <doctest/doctest.h>
#include <gmpxx.h>
#include <mpfr.h>

#include <cmath>
#include <cstdint>
#include <random>

#include "reference/numbers/number.hpp"

namespace {

using namespace repdl::num;

// The same formula in MPFR.
class real {
 public:
  real(double x = 0) {
    mpfr_init2(v_, 8000);
    mpfr_set_d(v_, x, MPFR_RNDN);
  }
  real(const real& o) : real() { mpfr_set(v_, o.v_, MPFR_RNDN); }
  real& operator=(const real&) = delete;
  ~real() { mpfr_clear(v_); }
  int sign() const { return mpfr_sgn(v_); }

  friend real operator+(const real& a, const real& b) { return made(mpfr_add, a, b); }
  friend real operator-(const real& a, const real& b) { return made(mpfr_sub, a, b); }
  friend real operator*(const real& a, const real& b) { return made(mpfr_mul, a, b); }
  friend real operator/(const real& a, const real& b) { return made(mpfr_div, a, b); }
  friend real square_root(const real& a) {
    real r;
    mpfr_sqrt(r.v_, a.v_, MPFR_RNDN);
    return r;
  }

 private:
  template <class Operation>
  static real made(Operation operation, const real& a, const real& b) {
    real r;
    operation(r.v_, a.v_, b.v_, MPFR_RNDN);
    return r;
  }
  mpfr_t v_;
};

struct source {
  std::mt19937_64 engine{77};
  double positive(int bits, int exponents) {
    const auto m = static_cast<double>(engine() % (std::uint64_t{1} << bits) | 1);
    return std::ldexp(m, static_cast<int>(engine() % static_cast<unsigned>(2 * exponents + 1)) - exponents);
  }
};

// Formulas that are 0 for x = 0: of a, b, c > 0 and a small x.
template <class N>
N zero_of(int kind, const N& a, const N& b, const N& c, const N& x) {
  switch (kind) {
    case 0:
      return square_root(a * a * b) - a * square_root(b) + x;
    case 1:
      return (square_root(a) + square_root(b)) * (square_root(a) - square_root(b)) - (a - b) - x;
    case 2:
      return (a / b) * c / a - c / b + x;
    case 3: {
      const N root = square_root(a / b);
      return (root + c) * (root - c) - (a / b - c * c) - x;
    }
    default: {
      const N root = square_root(b);
      return a / (root + c) - a * (root - c) / (b - c * c) + x;
    }
  }
}
constexpr int degree[] = {4, 16, 1, 2, 2};  // square roots are counted once each

template <int L>
int sign_at(int kind, double a, double b, double c, double x) {
  return sign_of(zero_of(kind, dyadic<L>(a), dyadic<L>(b), dyadic<L>(c), dyadic<L>(x)), degree[kind]);
}

}  // namespace

TEST_CASE("algebraic: zeros are recognised, what is next to them is not one, and no level is wrong") {
  source r;
  int zeros[5] = {}, wrong = 0, open = 0;
  for (int i = 0; i < 3000; ++i) {
    const int kind = i % 5;
    const double a = r.positive(24, 30), b = r.positive(24, 30), c = r.positive(12, 8);
    if (b == c * c) continue;
    const double x = i % 2 == 0 ? 0 : std::ldexp((i & 8) != 0 ? 1.0 : -1.0, -static_cast<int>(r.engine() % 600));
    const int want = x == 0 ? 0 : zero_of<real>(kind, a, b, c, x).sign();
    const int got[] = {sign_at<2>(kind, a, b, c, x), sign_at<4>(kind, a, b, c, x), sign_at<8>(kind, a, b, c, x),
                       sign_at<16>(kind, a, b, c, x), sign_at<32>(kind, a, b, c, x)};
    for (const int g : got) wrong += g != 2 && g != want ? 1 : 0;
    open += got[4] == 2 ? 1 : 0;
    if (x == 0 && got[4] == 0) ++zeros[kind];
  }
  CHECK(wrong == 0);
  CHECK(open == 0);
  for (const int z : zeros) CHECK(z > 200);
}

namespace {

// sqrt(a / b) + c, a / b the square of n / d: rational.
struct root_formula {
  double a, b, c;
  template <int L>
  surd<L> eval() const {
    return {square_root(dyadic<L>(a) / dyadic<L>(b)) + dyadic<L>(c), 2};
  }
};

}  // namespace

TEST_CASE_TEMPLATE("algebraic: rational values, midpoints and zeros among them, are rounded", T, repdl::f16,
                   repdl::bf16, float) {
  source r;
  int wrong = 0, undecided = 0, ties = 0, zeros = 0;
  for (int i = 0; i < 4000; ++i) {
    const double n = r.positive(12, 4), d = i % 3 == 0 ? r.positive(10, 3) : 1.0;
    // Half of the last bit of a number of T, less the root; or the root itself.
    const double midpoint =
        widen(narrow<T>(std::ldexp(r.positive(24, 2), -12))) * (1 + std::ldexp(1.0, -format<T>::precision));
    const double c = i % 4 == 0 ? -n / d : i % 4 == 1 ? midpoint - n / d : r.positive(20, 20) - r.positive(20, 20);
    const mpq_class value = mpq_class(n) / mpq_class(d) + mpq_class(c);
    const decided_value<T> got = decide_surd<T>(root_formula{n * n, d * d, c}, 2048);
    const std::uint64_t want = repdl::reference::round_rational(repdl::dtype_of<T>, value.get_mpq_t());
    undecided += got.decided ? 0 : 1;
    wrong += got.decided && to_bits(got.value) != want ? 1 : 0;
    zeros += value == 0 ? 1 : 0;
    ties += d == 1 && i % 4 == 1 ? 1 : 0;
  }
  CHECK(wrong == 0);
  CHECK(undecided == 0);
  CHECK(zeros > 300);
  CHECK(ties > 300);
}
