// erfinv, erfcinv and ndtri in binary64, by the function that they invert: it is below the operand at one border of the result, and above it at the other.
#include <doctest/doctest.h>
#include <mpfr.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/settings.hpp"

namespace {

using namespace repdl;

struct inverse {
  std::string name;
  double low, high;  // where it is infinite
  void (*call)(context&, const_tensor_view, tensor_view);
};
const inverse inverses[] = {
    {"erfinv", -1, 1, [](context& ctx, const_tensor_view x, tensor_view y) { erfinv(ctx, x, y); }},
    {"erfcinv", 0, 2, [](context& ctx, const_tensor_view x, tensor_view y) { erfcinv(ctx, x, y); }},
    {"ndtri", 0, 1, [](context& ctx, const_tensor_view x, tensor_view y) { ndtri(ctx, x, y); }}};

constexpr mpfr_prec_t bits = 1300;  // erf of a subnormal number, 1 less it

// The sign of f(y + half a step to `neighbour`) - x for the function f that is inverted, which rises where f = erf or Phi.
int side(const inverse& f, double y, double neighbour, double x) {
  mpfr_t border, value;
  mpfr_inits2(bits, border, value, nullptr);
  mpfr_set_d(border, y, MPFR_RNDN);
  mpfr_add_d(border, border, neighbour, MPFR_RNDN);
  mpfr_div_2ui(border, border, 1, MPFR_RNDN);
  if (f.name == "ndtri") {
    mpfr_sqrt_ui(value, 2, MPFR_RNDN);
    mpfr_div(border, border, value, MPFR_RNDN);
    mpfr_neg(border, border, MPFR_RNDN);
  }
  (f.name == "erfinv" ? mpfr_erf : mpfr_erfc)(value, border, MPFR_RNDN);
  if (f.name == "ndtri") mpfr_div_2ui(value, value, 1, MPFR_RNDN);
  const int sign = mpfr_cmp_d(value, x);
  mpfr_clears(border, value, nullptr);
  return f.name == "erfcinv" ? -sign : sign;
}

// Everywhere, next to the poles and to the middle, and of every size.
std::vector<double> operands(const inverse& f, int count) {
  reference::word_stream w(7, f.name.size());
  const double middle = 0.5 * (f.low + f.high);
  std::vector<double> all;
  while (std::ssize(all) < count) {
    const double u = static_cast<double>(w.next64() >> 11) * 0x1p-53;
    const auto small = [&](int most) {
      return std::ldexp(u, -static_cast<int>(w.below(static_cast<std::uint32_t>(most))));
    };
    double x = f.low + (f.high - f.low) * u;
    if (all.size() % 5 == 1) x = f.high - small(52);
    if (all.size() % 5 == 2) x = f.low + small(f.low == 0 ? 1070 : 52);
    if (all.size() % 5 == 3) x = middle + (w.flip() ? 1 : -1) * small(middle == 0 ? 1070 : 50);
    if (x > f.low && x < f.high && x != middle) all.push_back(x);
  }
  return all;
}

}  // namespace

TEST_CASE("erfinv, erfcinv and ndtri in binary64: the operand lies between the borders of the result" *
          doctest::test_suite("values")) {
  tests::on_every_set([](context& ctx) {
    for (const inverse& f : inverses) {
      CAPTURE(f.name);
      const std::vector<double> x = operands(f, 600);
      std::vector<double> y(x.size());
      f.call(ctx, const_tensor_view(x.data(), {std::ssize(x)}), tensor_view(y.data(), {std::ssize(y)}));
      for (std::size_t i = 0; i < x.size(); ++i) {
        CAPTURE(x[i]);
        CAPTURE(y[i]);
        const double infinity = std::numeric_limits<double>::infinity();
        CHECK(side(f, y[i], std::nextafter(y[i], infinity), x[i]) > 0);
        CHECK(side(f, y[i], std::nextafter(y[i], -infinity), x[i]) < 0);
      }
    }
  });
}

TEST_CASE("erfinv, erfcinv and ndtri in binary64: poles, zeros, and what is outside") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double x[] = {0.0, -0.0, 0.5, 1, -1, 2, -0x1p-1074, 0x1.0000000000001p+1, inf, -inf, nan};
  const double expected[3][std::size(x)] = {
      {0.0, -0.0, 0x1.e861fbb24c00ap-2, inf, -inf, nan, -0x1p-1074, nan, nan, nan, nan},
      {inf, inf, 0x1.e861fbb24c00ap-2, 0, nan, -inf, nan, nan, nan, nan, nan},
      {-inf, -inf, 0, inf, nan, nan, nan, nan, nan, nan, nan}};
  tests::on_every_set([&](context& ctx) {
    for (std::size_t f = 0; f < std::size(inverses); ++f) {
      double y[std::size(x)];
      inverses[f].call(ctx, const_tensor_view(x, {std::ssize(x)}), tensor_view(y, {std::ssize(y)}));
      for (std::size_t i = 0; i < std::size(x); ++i) {
        CAPTURE(inverses[f].name);
        CAPTURE(x[i]);
        CHECK((std::isnan(expected[f][i])
                   ? std::isnan(y[i])
                   : y[i] == expected[f][i] && std::signbit(y[i]) == std::signbit(expected[f][i])));
      }
    }
  });
}
