// Selections with bounds: tables written by hand, in f32 and where a bound is rounded in f16 and bf16; what options are refused.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/ops/registry.hpp"
#include "tests/helpers/settings.hpp"

namespace {

using namespace repdl;
using tests::bits;
using tests::on_every_set;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr float quiet = std::numeric_limits<float>::quiet_NaN();

// The function of one element of f32.
template <class Call>
float result(const Call& call) {
  float got = 7;
  call(tensor_view(&got, sizes{}));
  return got;
}
void same(float got, float want) { CHECK_MESSAGE(bits(got) == bits(want), got, ", expected ", want); }

template <class T>
std::uint16_t small(context& ctx, std::uint16_t x, const clamp_options& o) {
  const T from{x};
  T to{};
  clamp(ctx, const_tensor_view(&from, sizes{}), tensor_view(&to, sizes{}), o);
  return to.bits;
}

std::string refused(const attributes& attrs, const char* op) {
  const float x = 1;
  float y = 3;
  context ctx({.threads = 1});
  try {
    const const_tensor_view in(&x, sizes{});
    const tensor_view out(&y, sizes{});
    call(ctx, *find(op), {&in, 1}, {&out, 1}, attrs);
  } catch (const error& e) {
    CHECK(y == 3);
    CHECK(e.site() == error_site::attribute_value);
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("bounds: clamp, clip and hardtanh") {
  struct row {
    float x;
    double lo, hi;
    float want;
    float gradient;  // of clamp_backward with g = 3
  };
  constexpr float payload = 3;
  const row rows[] = {
      {0.5f, -1, 1, 0.5f, 3},
      {-2, -1, 1, -1, 0},
      {2, -1, 1, 1, 0},
      {-1, -1, 1, -1, 3},
      {1, -1, 1, 1, 3},
      {-0.0f, 0, 1, 0.0f, 3},  // -0 < +0
      {-0.0f, -0.0, 1, -0.0f, 3},
      {0.0f, -1, -0.0, -0.0f, 3},
      {-1, -0.0, -0.0, -0.0f, 0},
      {5, 3, -2, -2, 0},  // lo > hi: hi
      {0, 3, -2, -2, 0},
      {quiet, -1, 1, quiet, 0},
      {1, nan, 1, quiet, 0},  // a bound that is NaN
      {1, 0, nan, quiet, 0},
      {infinite, -inf, inf, infinite, 3},
      {-infinite, -inf, inf, -infinite, 3},
      {infinite, -1, 1e39, infinite, 3},  // the bound rounds to inf
      {0x1p127f, -1, 1e39, 0x1p127f, 3},
      {1, 1 + 0x1p-24, 2, 1, 3},  // a tie, to even: 1
      {1, 1 + 0x1.8p-23, 2, 0x1.000004p0f, 0},
      {0, 0x1p-150, 1, 0.0f, 3},  // a tie, to 0
      {0, 0x1.8p-149, 1, 0x1p-148f, 0},
      {0, 1e-320, 1, 0.0f, 3},
  };
  on_every_set([&](context& ctx) {
    for (const row& r : rows) {
      INFO(r.x, " ", r.lo, " ", r.hi);
      const const_tensor_view x(&r.x, sizes{}), g(&payload, sizes{});
      same(result([&](tensor_view y) { clamp(ctx, x, y, {r.lo, r.hi}); }), r.want);
      same(result([&](tensor_view y) { clamp_backward(ctx, g, x, y, {r.lo, r.hi}); }), r.gradient);
      const float lo = static_cast<float>(r.lo), hi = static_cast<float>(r.hi);
      same(result([&](tensor_view y) {
             clip(ctx, x, const_tensor_view(&lo, sizes{}), const_tensor_view(&hi, sizes{}), y);
           }),
           r.want);
      if (!(r.lo <= r.hi)) continue;
      same(result([&](tensor_view y) { hardtanh(ctx, x, y, {r.lo, r.hi}); }), r.want);
      const bool open = !(r.x <= lo) && !(r.x >= hi);
      same(result([&](tensor_view y) { hardtanh_backward(ctx, g, x, y, {r.lo, r.hi}); }), open ? 3 : 0.0f);
    }
    // 1 + 2^-11 is a tie in f16 and 1 + 2^-8 one in bf16; 65520 overflows in f16.
    CHECK(small<f16>(ctx, 0, {1 + 0x1p-11, inf}) == 0x3c00);
    CHECK(small<f16>(ctx, 0, {1 + 0x1.000002p-11, inf}) == 0x3c01);
    CHECK(small<bf16>(ctx, 0, {1 + 0x1p-8, inf}) == 0x3f80);
    CHECK(small<bf16>(ctx, 0, {1 + 0x1p-11, inf}) == 0x3f80);
    CHECK(small<f16>(ctx, 0x7c00, {-inf, 65520}) == 0x7c00);
    CHECK(small<f16>(ctx, 0x7c00, {-inf, 65519.99}) == 0x7bff);
  });
}

TEST_CASE("bounds: threshold, hardshrink, nan_to_num") {
  on_every_set([&](context& ctx) {
    const auto at = [&](float x, const threshold_options& o) {
      const float g = 3;
      const const_tensor_view in(&x, sizes{});
      const float gradient =
          result([&](tensor_view y) { threshold_backward(ctx, const_tensor_view(&g, sizes{}), in, y, {o.threshold}); });
      same(gradient, double{x} <= o.threshold ? 0.0f : 3.0f);
      return result([&](tensor_view y) { threshold(ctx, in, y, o); });
    };
    same(at(1, {1, 7}), 7);
    same(at(0x1.000002p0f, {1, 7}), 0x1.000002p0f);
    same(at(1, {1 - 0x1p-53, 7}), 1);  // the threshold is the double, not 1
    same(at(1, {1 + 0x1p-52, 7}), 7);
    same(at(-0.0f, {0, -0.0}), -0.0f);
    same(at(0, {-0.0, 5}), 5);
    same(at(quiet, {inf, 5}), quiet);
    same(at(num::bit_cast<float>(0xff812345u), {0, 5}), quiet);
    same(at(infinite, {inf, nan}), quiet);
    same(at(-infinite, {-1e300, 0.1}), 0.1f);
    same(at(-0x1.fffffep127f, {-1e300, 0.1}), -0x1.fffffep127f);

    const auto shrunk = [&](float x, double l) {
      const float g = 3;
      const const_tensor_view in(&x, sizes{});
      const float gradient =
          result([&](tensor_view y) { hardshrink_backward(ctx, const_tensor_view(&g, sizes{}), in, y, {l}); });
      const float value = result([&](tensor_view y) { hardshrink(ctx, in, y, {l}); });
      same(gradient, value == 0 && l >= 0 ? 0.0f : 3.0f);
      return value;
    };
    same(shrunk(0.5f, 0.5), 0);
    same(shrunk(-0.5f, 0.5), 0);
    same(shrunk(0.5f, 0.5 - 0x1p-54), 0.5f);
    same(shrunk(-0.0f, 0), 0.0f);
    same(shrunk(-0.0f, -0x1p-1074), -0.0f);  // nothing lies between
    same(shrunk(infinite, inf), 0);
    same(shrunk(infinite, 1e300), infinite);
    same(shrunk(quiet, inf), quiet);

    const auto number = [&](float x, const nan_to_num_options& o) {
      return result([&](tensor_view y) { nan_to_num(ctx, const_tensor_view(&x, sizes{}), y, o); });
    };
    constexpr float large = 0x1.fffffep127f;
    same(number(quiet, {}), 0.0f);
    same(number(infinite, {}), large);
    same(number(-infinite, {}), -large);
    same(number(-large, {}), -large);
    same(number(-0.0f, {}), -0.0f);
    same(number(quiet, {.nan = -0.0, .posinf = {}, .neginf = {}}), -0.0f);
    same(number(quiet, {.nan = nan, .posinf = {}, .neginf = {}}), quiet);
    same(number(infinite, {.nan = 1, .posinf = inf, .neginf = {}}), infinite);
    same(number(-infinite, {.nan = 1, .posinf = inf, .neginf = {}}), -large);
    same(number(-infinite, {.nan = 1, .posinf = inf, .neginf = 1 + 0x1p-24}), 1);
    same(number(infinite, {.nan = 1, .posinf = std::numeric_limits<double>::max(), .neginf = 2}), infinite);
    const f16 half{0xfc00};
    f16 least{};
    nan_to_num(ctx, const_tensor_view(&half, sizes{}), tensor_view(&least, sizes{}));
    CHECK(least.bits == 0xfbff);
  });
}

TEST_CASE("bounds: what options are refused") {
  CHECK(refused({{"max_val", -2.0}}, "hardtanh")
            .find("expected a number >= min_val, rounded to the operands' format, got -2") != std::string::npos);
  CHECK(refused({{"min_val", nan}}, "hardtanh").find("max_val") != std::string::npos);
  CHECK(refused({{"max_val", nan}}, "hardtanh").find("got nan") != std::string::npos);
  CHECK(refused({{"min_val", 0.0}, {"max_val", -0.0}}, "hardtanh").empty());
  CHECK(refused({{"min_val", -inf}, {"max_val", -1e300}}, "hardtanh").empty());
  CHECK(refused({{"min_val", -1e-320}, {"max_val", -2e-320}}, "hardtanh").find("got -2e-320") != std::string::npos);
  CHECK(refused({{"threshold", nan}}, "threshold").find("expected a number, not NaN, got nan") != std::string::npos);
  CHECK(refused({{"threshold", -inf}, {"value", nan}}, "threshold").empty());
  CHECK(refused({{"min", 3.0}, {"max", -3.0}}, "clamp").empty());

  CHECK(refused({{"beta", 0.0}}, "softplus").find("expected a magnitude in [2^-200, 2^200], got 0") !=
        std::string::npos);
  CHECK(refused({{"beta", -0x1p-200}, {"threshold", inf}}, "softplus").empty());
  CHECK(refused({{"alpha", -0.0}}, "celu").find("got -0") != std::string::npos);
  CHECK(refused({{"lambd", -1.0}}, "softshrink").find("0 or a number in [2^-200, 2^200], got -1") != std::string::npos);
  CHECK(refused({{"lambd", 0.0}}, "softshrink").empty());
  for (const double eps : {0.0, 0x1p-1074, 0.5, nan}) CHECK(refused({{"eps", eps}}, "logit").empty());
  for (const double eps : {-0x1p-1074, 0x1.0000000000001p-1, inf, -inf})
    CHECK(refused({{"eps", eps}}, "logit").find("a number in [0, 1/2], or NaN") != std::string::npos);

  constexpr ops::option_list list{{{"a", 1, "", ops::POSITIVE}}};
  for (const double v : {0x1p-200, 1.0, 0x1p200}) CHECK(list.accepts(std::array{v}));
  for (const double v : {0.0, -0.0, -1.0, 0x1p-201, 0x1.8p200, inf, nan}) CHECK_FALSE(list.accepts(std::array{v}));
  constexpr ops::option_list coefficient{{{"a", 1, ""}}};
  for (const double v : {0.0, -0.0, -1.0, 0x1p-200, -0x1p200}) CHECK(coefficient.accepts(std::array{v}));
  for (const double v : {0x1p-201, -0x1.8p200, -inf, nan}) CHECK_FALSE(coefficient.accepts(std::array{v}));
}
