// Arithmetic in narrow formats, roundings, selections, comparisons and classes: tables written by hand, and divisions and
// products of every pair of f16 or bf16 numbers against binary64's.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/ops/elementwise/bodies.hpp"
#include "tests/helpers/settings.hpp"

namespace {

using namespace repdl;
using tests::bits;
using tests::on_every_set;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float quiet = std::numeric_limits<float>::quiet_NaN();
constexpr float tiny = 0x1p-149f;  // the least positive number
constexpr float large = 0x1.fffffep127f;

using unary = void (*)(context&, const_tensor_view, tensor_view);
using binary = void (*)(context&, const_tensor_view, const_tensor_view, tensor_view);

struct row {
  float x;
  float floor, ceil, trunc, round, frac, sign;
};
// Of negative arguments: the same with floor and ceil exchanged, and other signs (frac's exact zero stays +0).
constexpr row rows[] = {
    {0.0f, 0, 0, 0, 0, 0, 0},
    {tiny, 0, 1, 0, 0, tiny, 1},
    {0.25f, 0, 1, 0, 0, 0.25f, 1},
    {0x1.fffffep-2f, 0, 1, 0, 0, 0x1.fffffep-2f, 1},
    {0.5f, 0, 1, 0, 0, 0.5f, 1},
    {0x1.000002p-1f, 0, 1, 0, 1, 0x1.000002p-1f, 1},
    {0x1.fffffep-1f, 0, 1, 0, 1, 0x1.fffffep-1f, 1},
    {1.0f, 1, 1, 1, 1, 0, 1},
    {1.5f, 1, 2, 1, 2, 0.5f, 1},
    {2.5f, 2, 3, 2, 2, 0.5f, 1},
    {3.5f, 3, 4, 3, 4, 0.5f, 1},
    {0x1p22f + 0.5f, 0x1p22f, 0x1p22f + 1, 0x1p22f, 0x1p22f, 0.5f, 1},
    {0x1p23f - 0.5f, 0x1p23f - 1, 0x1p23f, 0x1p23f - 1, 0x1p23f, 0.5f, 1},
    {0x1p23f, 0x1p23f, 0x1p23f, 0x1p23f, 0x1p23f, 0, 1},
    {0x1p23f + 1, 0x1p23f + 1, 0x1p23f + 1, 0x1p23f + 1, 0x1p23f + 1, 0, 1},
    {large, large, large, large, large, 0, 1},
    {inf, inf, inf, inf, inf, quiet, 1},
};

void check(context& ctx, const char* name, unary f, float x, float want) {
  float got = 7;
  f(ctx, const_tensor_view(&x, sizes{}), tensor_view(&got, sizes{}));
  INFO(name, " of ", x, ": ", got, ", expected ", want);
  CHECK(bits(got) == bits(want));
}

}  // namespace

TEST_CASE("selection: integers near a number, its fraction and sign") {
  on_every_set([](context& ctx) {
    for (const row& r : rows) {
      check(ctx, "floor", floor, r.x, r.floor);
      check(ctx, "ceil", ceil, r.x, r.ceil);
      check(ctx, "trunc", trunc, r.x, r.trunc);
      check(ctx, "round", round, r.x, r.round);
      check(ctx, "frac", frac, r.x, r.frac);
      check(ctx, "sign", sign, r.x, r.sign);
      check(ctx, "floor", floor, -r.x, -r.ceil);
      check(ctx, "ceil", ceil, -r.x, -r.floor);
      check(ctx, "trunc", trunc, -r.x, -r.trunc);
      check(ctx, "round", round, -r.x, -r.round);
      check(ctx, "frac", frac, -r.x, r.frac == 0 || r.frac != r.frac ? r.frac : -r.frac);
      check(ctx, "sign", sign, -r.x, -r.sign);
    }
    const float payload = num::bit_cast<float>(0xff812345u);
    for (const unary f : std::initializer_list<unary>{floor, ceil, trunc, round, frac, sign, square, reciprocal})
      check(ctx, "f", f, payload, quiet);
    for (const auto& [x, want] : {std::pair{0.0f, inf},
                                  {-0.0f, -inf},
                                  {inf, 0.0f},
                                  {-inf, -0.0f},
                                  {3.0f, 0x1.555556p-2f},
                                  {large, 0x1p-128f},
                                  {tiny, inf},
                                  {0x1p-128f, inf}})
      check(ctx, "reciprocal", reciprocal, x, want);
    for (const auto& [x, want] : {std::pair{-0.0f, 0.0f},
                                  {-inf, inf},
                                  {0x1p64f, inf},
                                  {-0x1p-75f, 0.0f},
                                  {0x1.000002p-75f, tiny},
                                  {4097.0f, 0x1.002p24f}})
      check(ctx, "square", square, x, want);
  });
}

TEST_CASE("selection: fmax, fmin, copysign") {
  struct pair {
    float x, y, larger, smaller;
  };
  const pair pairs[] = {
      {1, 2, 2, 1},           {-0.0f, 0.0f, 0.0f, -0.0f}, {0.0f, -0.0f, 0.0f, -0.0f},   {-1, -2, -1, -2},
      {inf, quiet, inf, inf}, {quiet, -inf, -inf, -inf},  {quiet, quiet, quiet, quiet}, {-0.0f, quiet, -0.0f, -0.0f}};
  on_every_set([&](context& ctx) {
    for (const pair& p : pairs) {
      float got[3];
      const const_tensor_view x(&p.x, sizes{}), y(&p.y, sizes{});
      fmax(ctx, x, y, tensor_view(&got[0], sizes{}));
      fmin(ctx, x, y, tensor_view(&got[1], sizes{}));
      copysign(ctx, x, y, tensor_view(&got[2], sizes{}));
      INFO(p.x, " ", p.y);
      CHECK(bits(got[0]) == bits(p.larger));
      CHECK(bits(got[1]) == bits(p.smaller));
      CHECK(bits(got[2]) == ((bits(p.x) & 0x7fffffff) | (bits(p.y) & 0x80000000)));
    }
  });
}

TEST_CASE("selection: the step and the neighbour") {
  struct row {
    float x, y, step, next;  // y is the step's value at 0
  };
  const row rows[] = {{-0.0f, 0.0f, 0.0f, 0.0f},
                      {0.0f, -0.0f, -0.0f, -0.0f},
                      {0.0f, 1, 1, tiny},
                      {-0.0f, -1, -1, -tiny},
                      {tiny, 0, 1, 0.0f},
                      {-tiny, 1, 0, -0.0f},
                      {1, 2, 1, 0x1.000002p0f},
                      {1, -inf, 1, 0x1.fffffep-1f},
                      {large, inf, 1, inf},
                      {inf, 0, 1, large},
                      {-inf, 0, 0, -large},
                      {inf, inf, 1, inf},
                      {-large, -inf, 0, -inf},
                      {quiet, 1, quiet, quiet},
                      {1, -quiet, 1, quiet},
                      {0.0f, -quiet, quiet, quiet},
                      {0x1p-126f, 0, 1, 0x1.fffffcp-127f},
                      {0x1.fffffcp-127f, 1, 1, 0x1p-126f}};
  on_every_set([&](context& ctx) {
    for (const row& r : rows) {
      float got[2];
      const const_tensor_view x(&r.x, sizes{}), y(&r.y, sizes{});
      heaviside(ctx, x, y, tensor_view(&got[0], sizes{}));
      nextafter(ctx, x, y, tensor_view(&got[1], sizes{}));
      INFO(r.x, " ", r.y);
      CHECK(bits(got[0]) == bits(r.step));
      CHECK(bits(got[1]) == bits(r.next));
    }
  });
}

TEST_CASE("selection: comparisons and classes" * doctest::test_suite("values")) {
  const float numbers[] = {quiet, -quiet, inf, -inf, 1, -1, 0.0f, -0.0f, tiny, -tiny, large};
  on_every_set([&](context& ctx) {
    using binary = void (*)(context&, const_tensor_view, const_tensor_view, tensor_view);
    const auto of = [&](unary f, float x) {
      bool got = false;
      f(ctx, const_tensor_view(&x, sizes{}), tensor_view(&got, sizes{}));
      return got;
    };
    const auto of_two = [&](binary f, float x, float y) {
      bool got = false;
      f(ctx, const_tensor_view(&x, sizes{}), const_tensor_view(&y, sizes{}), tensor_view(&got, sizes{}));
      return got;
    };
    for (const float x : numbers) {
      INFO(x);
      CHECK(of(isnan, x) == (x != x));
      CHECK(of(isinf, x) == (x == inf || x == -inf));
      CHECK(of(isfinite, x) == (x - x == 0));
      CHECK(of(signbit, x) == (bits(x) >> 31 != 0));
      for (const float y : numbers) {
        INFO(y);
        CHECK(of_two(equal, x, y) == (x == y));
        CHECK(of_two(not_equal, x, y) == (x != y));
        CHECK(of_two(less, x, y) == (x < y));
        CHECK(of_two(less_equal, x, y) == (x <= y));
        CHECK(of_two(greater, x, y) == (x > y));
        CHECK(of_two(greater_equal, x, y) == (x >= y));
      }
    }
  });
}

namespace {

// Positive x from the first one in steps, all positive y: the quotient and the product by way of binary32 and of binary64, which
// has more than 2 p + 2 bits in every case. Signs are the exclusive or in both.
template <class T>
std::int64_t wrong_pairs(int first, int step) {
  std::int64_t wrong = 0;
  std::vector<double> y(0x8000);
  for (int i = 0; i < 0x8000; ++i) y[static_cast<std::size_t>(i)] = num::widen(T{static_cast<std::uint16_t>(i)});
  for (int a = first; a < 0x8000; a += step) {
    const T x{static_cast<std::uint16_t>(a)};
    const double wide = num::widen(x);
    for (int b = 0; b < 0x8000; ++b) {
      const T other{static_cast<std::uint16_t>(b)};
      const double wide_other = y[static_cast<std::size_t>(b)];
      wrong += num::body<ops::div>::eval(x, other).bits != num::narrow<T>(wide / wide_other).bits ? 1 : 0;
      wrong += num::body<ops::mul>::eval(x, other).bits != num::narrow<T>(wide * wide_other).bits ? 1 : 0;
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("selection: quotients and products of f16 and bf16") {
  CHECK(wrong_pairs<f16>(3, 997) == 0);
  CHECK(wrong_pairs<bf16>(5, 997) == 0);
  int wrong = 0;
  for (int a = 0; a < 0x10000; ++a) {
    const f16 x{static_cast<std::uint16_t>(a)};
    const bf16 z{static_cast<std::uint16_t>(a)};
    wrong += num::body<ops::sqrt>::eval(x).bits != num::narrow<f16>(std::sqrt(num::widen(x))).bits ? 1 : 0;
    wrong += num::body<ops::sqrt>::eval(z).bits != num::narrow<bf16>(std::sqrt(num::widen(z))).bits ? 1 : 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("selection: quotients and products of all pairs of f16 and of bf16 [long]" * doctest::skip()) {
  CHECK(wrong_pairs<f16>(0, 1) == 0);
  CHECK(wrong_pairs<bf16>(0, 1) == 0);
}

namespace {

// x, y from a stream, z near x y, with exponents e1, e2 on average; against the sum rounded to odd in binary64. Every length of
// the last block.
template <class T>
void check_fma(context& ctx, int e1, int e2, int spread) {
  constexpr int p = num::format<T>::precision, bias = num::format<T>::emax;
  std::mt19937 draw(static_cast<std::uint32_t>(e1 * 1000 + e2));
  const auto number = [&](int e) {
    const int exponent = std::clamp(
        e + bias + static_cast<int>(draw() % static_cast<std::uint32_t>(spread)) - spread / 2, 0, 2 * bias + 1);
    const std::uint32_t fraction = draw() & draw() & ((1u << (p - 1)) - 1);
    return T{
        static_cast<std::uint16_t>((draw() & 0x8000) | static_cast<std::uint32_t>(exponent << (p - 1)) | fraction)};
  };
  for (std::int64_t n = 2000; n < 2070; ++n) {
    std::vector<T> x, y, z, got(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      x.push_back(number(e1));
      y.push_back(number(e2));
      z.push_back(number(e1 + e2));
    }
    const sizes shape{n};
    const auto view = [&](auto& v) { return tensor_view(v.data(), dtype_of<T>, shape); };
    fma(ctx, view(x), view(y), view(z), view(got));
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const num::dd s = num::two_sum(num::widen(x[i]) * num::widen(y[i]), num::widen(z[i]));
      wrong += got[i].bits != num::narrow<T>(num::round_to_odd(s.hi, s.lo)).bits ? 1 : 0;
    }
    INFO(e1, " ", e2, " ", spread, " ", n);
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("selection: fma of f16 and bf16") {
  on_every_set([&](context& ctx) {
    check_fma<f16>(ctx, 0, 0, 12);
    check_fma<f16>(ctx, -10, -6, 12);
    check_fma<f16>(ctx, 9, 7, 10);
    check_fma<bf16>(ctx, 0, 0, 12);
    check_fma<bf16>(ctx, 0, 0, 256);
    check_fma<bf16>(ctx, -66, -67, 8);  // products beside half of the least number
    check_fma<bf16>(ctx, 63, 64, 6);    // and beside 2^128
  });
}
