// upsample_linear, upsample_cubic and their gradients: against the oracle on every instruction set, from every tier; places and weights against
// rationals, for axes of any size and any scale; what is absent; borders of the formats; errors.
#include "librepdl/ops/sums/interpolation.hpp"

#include <doctest/doctest.h>
#include <gmpxx.h>

#include <cmath>
#include <random>

#include "librepdl/librepdl.hpp"
#include "librepdl/plan/planner.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "reference/structured/structured.hpp"
#include "tests/helpers/class_engines.hpp"

namespace {

using namespace repdl;
using reference::array;
using reference::shape_list;
using integers = std::vector<std::int64_t>;

constexpr const char* operations[] = {"upsample_linear", "upsample_linear_backward", "upsample_cubic",
                                      "upsample_cubic_backward"};
constexpr dtype types[] = {dtype::f32, dtype::f16, dtype::bf16, dtype::f64};

struct random_call {
  std::string op;
  std::vector<array> in;
  attributes attrs;
};
random_call call_number(int k, std::mt19937_64& engine) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(n));
  };
  random_call call{operations[k % 4], {}, {}};
  const bool backward = k % 2 != 0;
  const std::int64_t axes = 1 + k / 16 % 3;
  constexpr std::int64_t longest[] = {300, 12, 5};
  const std::int64_t most = k % 9 == 0 ? longest[axes - 1] : std::min<std::int64_t>(longest[axes - 1], 9);
  integers image, size;
  for (std::int64_t a = 0; a < axes; ++a) {
    image.push_back(1 + below(most));
    size.push_back(below(20) == 0 ? 0 : below(3) == 0 ? image.back() * (1 + below(4)) : 1 + below(2 * most));
  }
  shape_list shape{1 + below(2), 1 + below(3)};
  shape.insert(shape.end(), (backward ? size : image).begin(), (backward ? size : image).end());
  call.attrs = {{"size", backward ? image : size}};
  if (k % 5 == 0) call.attrs.push_back({"align_corners", true});
  const double scales[] = {0x1p-32, 0x1p32, 1, 2, 0.5, 1 + 0x1p-52, 0.1, 0.7, 3, 1.1, 0x1p-3};
  const char* const names[] = {"scale_w", "scale_h", "scale_d"};
  for (std::int64_t a = 0; a < axes; ++a) {
    if (below(4) == 0) call.attrs.push_back({names[a], scales[below(11)]});
  }
  const auto c = reference::element_classes[static_cast<std::size_t>(k / 4) % reference::element_classes.size()];
  const dtype type = types[k / 4 % 4];
  // Of gradients only sums have classes' structure: half of the calls have that of images.
  call.in = k % 8 < 4
                ? std::vector<array>{reference::fill(c, type, shape, 9, static_cast<std::uint64_t>(k))}
                : reference::fill_pooling(call.op, c, type, {shape}, call.attrs, 9, static_cast<std::uint64_t>(k));
  return call;
}

TEST_CASE("interpolation: against the oracle") {
  std::vector<test::engine> all = test::engines();
  std::mt19937_64 engine(4);
  for (int k = 0; k < 480; ++k) {
    const random_call call = call_number(k, engine);
    const std::vector<array> expected = reference::evaluate_all(call.op, call.in, call.attrs);
    for (test::engine& e : all) {
      const std::string text = test::difference(test::run(*e.ctx, call.op, call.in, expected, call.attrs), expected);
      CHECK_MESSAGE(text.empty(), call.op << " on " << e.name << ", call " << k << ": " << text);
    }
  }
}

TEST_CASE("interpolation: from every tier, with one thread and several") {
  std::vector<test::engine> all = test::every_context({tier::proved, tier::double_double, tier::exact});
  std::mt19937_64 engine(5);
  for (int k = 0; k < 96; ++k) {
    const random_call call = call_number(k, engine);
    const std::vector<array> expected = reference::evaluate_all(call.op, call.in, call.attrs);
    for (test::engine& e : all) {
      const std::string text = test::difference(test::run(*e.ctx, call.op, call.in, expected, call.attrs), expected);
      CHECK_MESSAGE(text.empty(), call.op << " on " << e.name << ", call " << k << ": " << text);
    }
  }
}

mpz_class to_integer(const num::axis_integer& x) {
  num::axis_integer magnitude = x;
  if (x.negative()) magnitude.negate();
  mpz_class v;
  for (int i = 2; i >= 0; --i) {
    const std::uint64_t word = magnitude.word(i);
    v = (v << 64) + mpz_class(static_cast<unsigned long>(word));
  }
  return x.negative() ? mpz_class(-v) : v;
}

// The plan's axes: places, exact and rounded numerators.
TEST_CASE("interpolation: weights, for axes of any size and any scale") {
  std::mt19937_64 engine(6);
  float one = 0;
  for (int k = 0; k < 3000; ++k) {
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(n));
    };
    const auto any = [&] { return 1 + below((std::int64_t{1} << (1 + engine() % 31)) - 1); };
    const std::int64_t image = any(), size = any();
    const bool align = k % 7 == 0, cubic = engine() % 2 == 0;
    double scale = 0;
    switch (k % 4) {
      case 1:
        scale = std::ldexp(1 + static_cast<double>(engine() >> 12) * 0x1p-52, static_cast<int>(engine() % 64) - 32);
        break;
      case 2:
        scale = static_cast<double>(size) / static_cast<double>(image);
        break;
      case 3:
        scale = std::nextafter(static_cast<double>(size) / static_cast<double>(image), k % 8 < 4 ? 0x1p-40 : 0x1p40);
        break;
      default:
        break;
    }
    if (scale != 0) scale = std::clamp(scale, 0x1p-32, 0x1p32);
    ops::interpolation_attrs attrs;
    attrs.size = sizes{size};
    attrs.scale_w = scale;
    attrs.align_corners = align;
    const const_tensor_view x(&one, dtype::f32, {1, 1, image}, {0, 0, 0});
    const tensor_view out(&one, dtype::f32, {1, 1, size}, {0, 0, 0});
    const plan::interpolation_axis axis = plan::make_interpolation(false, cubic, x, out, attrs).axis[2];
    CAPTURE(image);
    CAPTURE(size);
    CAPTURE(scale);
    CAPTURE(align);
    CAPTURE(cubic);
    const auto check = [&](std::int64_t o) {
      if (o < 0 || o >= size) return;
      CAPTURE(o);
      mpq_class u;
      if (align) {
        if (size > 1)
          u = mpq_class(mpz_class(static_cast<long>(o)) * static_cast<long>(image - 1), static_cast<long>(size - 1));
      } else {
        u = mpq_class(2 * mpz_class(static_cast<long>(o)) + 1, 2);
        u *=
            scale != 0 ? mpq_class(1 / mpq_class(scale)) : mpq_class(static_cast<long>(image), static_cast<long>(size));
        u -= mpq_class(1, 2);
      }
      u.canonicalize();
      const mpq_class last(static_cast<long>(image - 1));
      if (!cubic && u < 0) u = 0;
      if (u > last + (cubic ? 1 : 0)) u = last + (cubic ? 1 : 0);
      const num::interpolated_place at = num::place_of(axis, o);
      const std::int64_t first = num::first_pixel(axis, at.whole);
      double rounded[4];
      num::numerators_of(axis, at, rounded);
      mpq_class denominator(mpz_class(static_cast<unsigned long>(axis.d)));
      if (axis.cubic) denominator = denominator * denominator * denominator * 4;
      mpq_class total;
      for (int tap = 0; tap < axis.taps; ++tap) {
        const std::int64_t pixel = first + tap;
        // The weight: of all integers that the border stands for.
        mpq_class weight;
        const auto add = [&](const mpz_class& place) {
          const mpq_class distance = abs(u - mpq_class(place));
          if (!cubic) {
            if (distance < 1) weight += 1 - distance;
          } else if (distance < 1) {
            weight += mpq_class(5, 4) * distance * distance * distance - mpq_class(9, 4) * distance * distance + 1;
          } else if (distance < 2) {
            weight += mpq_class(-3, 4) * (distance * distance * distance - 5 * distance * distance + 8 * distance - 4);
          }
        };
        add(mpz_class(static_cast<long>(pixel)));
        for (int beyond = 1; beyond <= 3; ++beyond) {
          if (pixel == 0) add(mpz_class(-beyond));
          if (pixel == image - 1) add(mpz_class(static_cast<long>(pixel + beyond)));
        }
        const mpz_class exact = to_integer(num::numerator_of(axis, o, pixel));
        CHECK((mpq_class(exact) == weight * denominator));
        const mpq_class error = abs(mpq_class(rounded[tap]) - exact);
        CHECK((error <= abs(mpq_class(exact)) * 20 * mpq_class(0x1p-53)));
        total += weight;
      }
      CHECK((total == 1));
    };
    for (const std::int64_t o : {std::int64_t{0}, std::int64_t{1}, size / 2, size - 2, size - 1}) check(o);
    for (int repeat = 0; repeat < 4; ++repeat) {
      check(below(size));
      const std::int64_t pixel = repeat == 0 ? image - 1 : below(image);
      const std::int64_t position = num::first_position(axis, pixel);
      check(position);
      check(position - 1);
      const auto first = [&](std::int64_t o) { return num::first_pixel(axis, num::place_of(axis, o).whole); };
      CHECK((position == 0 || first(position - 1) < pixel));
      CHECK((position == size || first(position) >= pixel));
    }
  }
}

std::vector<float> linear(context& ctx, std::vector<float> x, std::int64_t n, const interpolation_options& o = {}) {
  std::vector<float> out(static_cast<std::size_t>(n));
  upsample_linear(ctx, {x.data(), {1, 1, static_cast<std::int64_t>(x.size())}}, {out.data(), {1, 1, n}}, o);
  return out;
}

TEST_CASE("interpolation: pixels without weight are absent, those on one place add their weights") {
  context ctx;
  constexpr float inf = HUGE_VALF;
  // Of (1, inf) position 0 of 4 is at u = 0, position 3 at the last pixel.
  const std::vector<float> x = linear(ctx, {1, inf}, 4);
  CHECK(x[0] == 1);
  CHECK(x[1] == inf);
  CHECK(x[3] == inf);
  CHECK(linear(ctx, {1, inf, -3}, 3) == std::vector<float>{1, inf, -3});
  CHECK(linear(ctx, {1, inf, -3}, 2, {.align_corners = true}) == std::vector<float>{1, -3});
  CHECK(linear(ctx, {5, inf, -3}, 1, {.align_corners = true}) == std::vector<float>{5});
  CHECK(std::isnan(linear(ctx, {-inf, inf}, 1)[0]));
  // One pixel is every position, NaN its canonical one; -0 is a sum, so +0.
  for (const std::uint32_t bits : {0x3f800001u, 0x7f7fffffu, 0x00000001u, 0xff800000u}) {
    for (const float v : linear(ctx, {num::float_of(bits)}, 5)) CHECK(num::bits_of(v) == bits);
  }
  CHECK(num::bits_of(linear(ctx, {num::float_of(0xffc12345u)}, 2)[1]) == 0x7fc00000u);
  CHECK(num::bits_of(linear(ctx, {-0.0f, -0.0f}, 4)[1]) == 0);
  // The weights of a cubic position before the first pixel: -3/4 t (1 - t)^2 of pixel 1, the rest of pixel 0. An infinity has the weight's sign.
  float c[4] = {};
  const float image[] = {1, inf};
  upsample_cubic(ctx, {image, {1, 1, 2}}, {c, {1, 1, 4}});
  CHECK(c[0] == -inf);
  CHECK(c[1] == inf);
}

TEST_CASE("interpolation: one rounding") {
  context ctx;
  // Ties to even, subnormal ones too; the sum of (M, M) is in range.
  CHECK(linear(ctx, {1, 1 + 0x1p-23f}, 1) == std::vector<float>{1});
  CHECK(linear(ctx, {1 + 0x1p-23f, 1 + 0x1p-22f}, 1) == std::vector<float>{1 + 0x1p-22f});
  CHECK(linear(ctx, {0x1p-149f, 0}, 1) == std::vector<float>{0});
  CHECK(linear(ctx, {3 * 0x1p-149f, 0}, 1) == std::vector<float>{0x1p-148f});
  CHECK(linear(ctx, {-0x1p-149f, 0}, 1)[0] == 0);
  CHECK(std::signbit(linear(ctx, {-0x1p-149f, 0}, 1)[0]));
  CHECK(linear(ctx, {0x1.fffffep127f, 0x1.fffffep127f}, 4) == std::vector<float>(4, 0x1.fffffep127f));
  // Sixths and fifths: exact, and RN of the quotient.
  CHECK(linear(ctx, {3, 9}, 6)[2] == 5);
  CHECK(linear(ctx, {0, 1, 0}, 5)[1] == 0.4f);
  // A cubic weight above 1 overflows where the exact value does, and only there.
  const float m = 0x1.fffffep127f, flat[] = {m, m, m}, edge[] = {m, -m, m};
  float out[6];
  upsample_cubic(ctx, {flat, {1, 1, 3}}, {out, {1, 1, 6}});
  for (const float v : out) CHECK(v == m);
  upsample_cubic(ctx, {edge, {1, 1, 3}}, {out, {1, 1, 6}});
  CHECK(out[0] == HUGE_VALF);
  double wide[6];
  const double most = 0x1.fffffffffffffp1023, image[] = {most, most, most}, tiny[] = {0x1p-1074, 0x1p-1074, 0};
  upsample_cubic(ctx, {image, {1, 1, 3}}, {wide, {1, 1, 6}});
  for (const double v : wide) CHECK(v == most);
  upsample_linear(ctx, {tiny, {1, 1, 3}}, {wide, {1, 1, 6}});
  CHECK(wide[1] == 0x1p-1074);
  CHECK(wide[4] == 0);
}

TEST_CASE("interpolation: gradients go where the pixels came from") {
  context ctx;
  const float g[] = {0x1p127f, 0x1p-149f, -0x1p127f, -0.0f};
  float sum[3] = {5, 5, 5};
  upsample_linear_backward(ctx, {g, {1, 1, 4}}, {sum, {1, 1, 1}});
  CHECK(sum[0] == 0x1p-149f);
  upsample_linear_backward(ctx, {g + 3, {1, 1, 1}}, {sum, {1, 1, 3}});
  for (const float v : sum) CHECK(num::bits_of(v) == 0);
  // Nothing comes from pixel 1 where corners are aligned: an infinity there is not even looked at.
  const float two[] = {1, HUGE_VALF};
  upsample_linear_backward(ctx, {two, {1, 1, 2}}, {sum, {1, 1, 3}}, {.align_corners = true});
  CHECK(sum[0] == 1);
  CHECK(num::bits_of(sum[1]) == 0);
  CHECK(sum[2] == HUGE_VALF);
  upsample_cubic_backward(ctx, {g, {1, 1, 0}}, {sum, {1, 1, 2}});
  CHECK(num::bits_of(sum[1]) == 0);
}

TEST_CASE("interpolation: what is refused") {
  context ctx;
  std::vector<float> x(64), y(64);
  const const_tensor_view in(x.data(), {1, 1, 2, 2});
  const tensor_view out(y.data(), {1, 1, 4, 4});
  for (const double bad : {-1.0, 0x1p-33, 0x1.8p32, std::nan(""), HUGE_VAL}) {
    CHECK_THROWS_AS(upsample_linear(ctx, in, out, {.scale_h = bad}), error);
    CHECK_THROWS_AS(upsample_cubic(ctx, in, out, {.scale_w = bad}), error);
    CHECK_THROWS_AS(upsample_linear_backward(ctx, in, out, {.scale_d = bad}), error);
  }
  CHECK_THROWS_AS(upsample_linear(ctx, {x.data(), {1, 1, 0, 2}}, out), error);
  CHECK_THROWS_AS(upsample_linear(ctx, {x.data(), {2, 2}}, {y.data(), {4, 4}}), error);
  CHECK_THROWS_AS(upsample_linear(ctx, {x.data(), {1, 1, 1, 1, 2, 2}}, {y.data(), {1, 1, 1, 1, 4, 4}}), error);
  CHECK_THROWS_AS(upsample_cubic(ctx, in, {y.data(), {1, 2, 4, 4}}), error);
  CHECK_THROWS_AS(upsample_cubic(ctx, in, {y.data(), {1, 1, 4, 4, 1}}), error);
  CHECK_THROWS_AS(upsample_cubic_backward(ctx, {x.data(), {1, 1, 4, 4}}, {y.data(), {1, 1, 0, 2}}), error);
}

}  // namespace
