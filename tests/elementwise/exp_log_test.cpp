// Exponentials, logarithms and their kin: exact results, ties, hard cases and special values, in tables written by hand.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/num/format.hpp"

namespace {

using namespace repdl;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float quiet = std::numeric_limits<float>::quiet_NaN();
constexpr float tiny = 0x1p-149f;  // the least positive number
constexpr float large = 0x1.fffffep127f;

using unary = void (*)(context&, const_tensor_view, tensor_view);

struct entry {
  float x, y;
};

// y is what results in binary32, and the narrow formats: rounded to them where x is one of their numbers.
void check(const char* name, unary f, const std::vector<entry>& table) {
  for (const isa_info& isa : instruction_sets()) {
    if (!isa.available) continue;
    context ctx({.threads = 1, .isa = isa.name});
    const auto n = static_cast<std::int64_t>(table.size());
    std::vector<float> x, y(table.size());
    for (const entry& e : table) x.push_back(e.x);
    f(ctx, const_tensor_view(x.data(), {n}), tensor_view(y.data(), {n}));
    for (std::size_t i = 0; i < table.size(); ++i) {
      INFO(isa.name, ": ", name, " of ", x[i], ": ", y[i], ", expected ", table[i].y);
      CHECK(num::bits_of(y[i]) == num::bits_of(num::canonical(table[i].y)));
    }
  }
}

template <class T>
void check_narrow(const char* name, unary f, const std::vector<entry>& table) {
  for (const isa_info& isa : instruction_sets()) {
    if (!isa.available) continue;
    context ctx({.threads = 1, .isa = isa.name});
    for (const entry& e : table) {
      const T x = num::narrow<T>(e.x), expected = num::narrow<T>(e.y);
      if (num::widen_to_float(x) != e.x && e.x == e.x) continue;
      T y{};
      f(ctx, const_tensor_view(&x, sizes{}), tensor_view(&y, sizes{}));
      INFO(isa.name, ": ", name, " of ", e.x, ", expected ", e.y);
      CHECK(y.bits == expected.bits);
    }
  }
}

void check_all(const char* name, unary f, const std::vector<entry>& table) {
  check(name, f, table);
  check_narrow<f16>(name, f, table);
  check_narrow<bf16>(name, f, table);
}

TEST_CASE("exp2: integers, the ties with +0, hard cases") {
  std::vector<entry> exact = {{0, 1},         {-0.0f, 1}, {inf, inf}, {-inf, 0},
                              {quiet, quiet}, {200, inf}, {-200, 0},  {large, inf}};
  for (int k = -160; k <= 135; ++k) exact.push_back({static_cast<float>(k), std::ldexp(1.0f, k)});
  check("exp2", exp2, exact);
  check_narrow<f16>("exp2", exp2, exact);
  check_narrow<bf16>("exp2", exp2, exact);
  check("exp2", exp2,
        {{-150, 0},
         {-0x1.2bfffep7f, tiny},  // just above -150
         {-149, tiny},
         {128, inf},
         {0x1.fffffep6f, 0x1.ffff4ep127f},
         {tiny, 1},
         {-tiny, 1},
         {num::float_of(0x3b429d37), 0x1.00870ap0f},
         {num::float_of(0xbcf3a937), 0x1.f58d62p-1f}});
}

TEST_CASE("expm1: zeros, identity next to 0, limits") {
  check_all("expm1", expm1, {{0, 0}, {-0.0f, -0.0f}, {inf, inf}, {-inf, -1}, {quiet, quiet}, {-128, -1}, {128, inf}});
  check("expm1", expm1, {{tiny, tiny}, {-tiny, -tiny}, {0x1p-126f, 0x1p-126f}, {large, inf}, {-large, -1}});
}

TEST_CASE("log2 and log10: exact powers, subnormal arguments, domain") {
  std::vector<entry> table = {{0, -inf}, {-0.0f, -inf}, {1, 0}, {-1, quiet}, {inf, inf}, {-inf, quiet}, {quiet, quiet}};
  check_all("log", log, table);
  check_all("log10", log10, table);
  for (int k = -149; k <= 127; ++k) table.push_back({std::ldexp(1.0f, k), static_cast<float>(k)});
  table.push_back({-tiny, quiet});
  check_all("log2", log2, table);
  std::vector<entry> tens;
  double power = 1;
  for (int n = 0; n <= 10; ++n, power *= 10) tens.push_back({static_cast<float>(power), static_cast<float>(n)});
  check_all("log10", log10, tens);
  check("log10", log10, {{num::float_of(0x0efeee7a), -0x1.d33a46p4f}, {tiny, -0x1.66d3e8p5f}});
}

TEST_CASE("log1p: zeros, the pole, next to 0") {
  check_all("log1p", log1p,
            {{0, 0}, {-0.0f, -0.0f}, {-1, -inf}, {-2, quiet}, {inf, inf}, {-inf, quiet}, {quiet, quiet}});
  check("log1p", log1p,
        {{tiny, tiny},
         {-tiny, -tiny},
         {0x1.800006p-21f, 0x1.7ffffep-21f},  // x - x^2/2 is a midpoint, x^3/3 is added
         {-0x1.7ffffap-21f, -0x1.800002p-21f},
         {-0x1.000002p0f, quiet}});
}

TEST_CASE("rsqrt: powers of four, subnormal arguments, zeros") {
  std::vector<entry> table = {{0, inf},    {-0.0f, -inf},  {inf, 0},      {-inf, quiet},
                              {-1, quiet}, {-tiny, quiet}, {quiet, quiet}};
  for (int k = -74; k <= 63; ++k) table.push_back({std::ldexp(1.0f, 2 * k), std::ldexp(1.0f, -k)});
  table.push_back({tiny, 0x1.6a09e6p74f});
  check("rsqrt", rsqrt, table);
  table.pop_back();
  check_narrow<f16>("rsqrt", rsqrt, table);
  check_narrow<bf16>("rsqrt", rsqrt, table);
}

TEST_CASE("log_sigmoid: limits and their signs, -ln 2, next to x") {
  check_all("log_sigmoid", log_sigmoid,
            {{inf, -0.0f}, {-inf, -inf}, {quiet, quiet}, {0, -0x1.62e43p-1f}, {-0.0f, -0x1.62e43p-1f}, {128, -0.0f}});
  check("log_sigmoid", log_sigmoid,
        {{large, -0.0f},
         {-large, -large},
         {-105, -105},
         {103.5f, -tiny},
         {104, -0.0f},
         {tiny, -0x1.62e43p-1f},
         {num::float_of(0xb9ea41d0), -0x1.63017ap-1f}});
}

TEST_CASE("log, tanh, sigmoid and the two gradients in narrow formats") {
  check_narrow<f16>("tanh", tanh,
                    {{0, 0}, {-0.0f, -0.0f}, {inf, 1}, {-inf, -1}, {0x1p-24f, 0x1p-24f}, {5, 1}, {quiet, quiet}});
  check_narrow<bf16>("tanh", tanh, {{0, 0}, {-0.0f, -0.0f}, {inf, 1}, {-inf, -1}, {0x1p-133f, 0x1p-133f}, {4, 1}});
  const std::vector<entry> limits = {{0, 0.5f}, {-0.0f, 0.5f}, {inf, 1}, {-inf, 0}, {quiet, quiet}};
  check_narrow<f16>("sigmoid", sigmoid, limits);
  check_narrow<bf16>("sigmoid", sigmoid, limits);
  check_narrow<f16>("sigmoid", sigmoid,
                    {{0x1p-10f, 0.5f}, {-0x1p-11f, 0.5f}});  // 1/2 + x/4 is a tie, -x^3/48 breaks it
  check_narrow<f16>("log", log, {{2, 0x1.62e43p-1f}, {0x1p-24f, -0x1.0a2b24p4f}});
}

}  // namespace
