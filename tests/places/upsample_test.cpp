// upsample_nearest2d and its gradient: against the oracle, tiers, threads, strides; which pixel is taken, against
// rationals, also for scales next to the ratios where that changes, and for axes too large to run; bits that are kept;
// errors.
#include "librepdl/ops/sums/upsample.hpp"

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

TEST_CASE("upsample: against the oracle") {
  std::vector<test::engine> all = test::engines();
  std::mt19937_64 engine(4);
  for (int k = 0; k < 400; ++k) {
    const auto below = [&](int n) { return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(n)); };
    const bool backward = k % 2 == 0;
    const int most = k % 20 == 0 ? 700 : 12;
    const integers image{1 + below(12), 1 + below(most)}, size{below(15), 1 + below(most)};
    const integers &from = backward ? size : image, &to = backward ? image : size;
    attributes attrs{{"size", to}};
    const double scales[] = {0x1p-200, 0x1p200, 1, 2, 0.5, 1 + 0x1p-52, 0.1, 0.7, 3, 1.1, 0x1p-3};
    if (k % 3 != 0) attrs.push_back({"scale_h", scales[below(11)]});
    if (k % 5 != 0) attrs.push_back({"scale_w", scales[below(11)]});
    if (k % 4 >= 2) attrs.push_back({"exact", true});
    constexpr dtype types[] = {dtype::f32, dtype::f16, dtype::bf16, dtype::f64};
    const dtype type = types[k / 2 % 4];
    const std::string op = backward ? "upsample_nearest2d_backward" : "upsample_nearest2d";
    const auto c = reference::element_classes[static_cast<std::size_t>(k) % reference::element_classes.size()];
    const shape_list shape{1 + below(2), 1 + below(3), from[0], from[1]};
    const std::vector<array> in{reference::fill(c, type, shape, 9, static_cast<std::uint64_t>(k))};
    const std::vector<array> expected = reference::evaluate_all(op, in, attrs);
    for (test::engine& e : all) {
      const std::string text = test::difference(test::run(*e.ctx, op, in, expected, attrs), expected);
      CHECK_MESSAGE(text.empty(), op << " on " << e.name << ", call " << k << ": " << text);
    }
  }
}

// The plan's axes, at both ends and next to the pixels that are the first to take another one.
TEST_CASE("upsample: which pixel is taken, for axes of any size and any scale") {
  std::mt19937_64 engine(6);
  float one = 0;
  for (int k = 0; k < 4000; ++k) {
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(n));
    };
    const auto any = [&] { return 1 + below((std::int64_t{1} << (1 + engine() % 31)) - 1); };
    const std::int64_t image = any(), size = any();
    double scale = 0;
    switch (k % 6) {
      case 1:
        scale = std::ldexp(1 + static_cast<double>(engine() >> 12) * 0x1p-52, static_cast<int>(engine() % 400) - 200);
        break;
      case 2:
        scale = std::ldexp(1 + static_cast<double>(engine() >> 12) * 0x1p-52, static_cast<int>(engine() % 80) - 40);
        break;
      case 3:  // o / scale next to an integer
        scale = static_cast<double>(1 + below(size)) / static_cast<double>(1 + below(image));
        break;
      case 4:
        scale = std::nextafter(static_cast<double>(1 + below(size)) / static_cast<double>(1 + below(image)),
                               k % 12 < 6 ? 0x1p-300 : 0x1p300);
        break;
      case 5:
        scale = static_cast<double>(size) / static_cast<double>(image);
        break;
      default:
        break;
    }
    const bool exact = engine() % 2 == 0;
    ops::upsample_nearest2d_attrs attrs;
    attrs.size = ops::pair{size, 1};
    attrs.scale_h = scale;
    attrs.exact = exact;
    const const_tensor_view x(&one, dtype::f32, {1, 1, image, 1}, {0, 0, 0, 0});
    const tensor_view out(&one, dtype::f32, {1, 1, size, 1}, {0, 0, 0, 0});
    const plan::upsample_plan p = plan::make_upsample(false, x, out, attrs);
    const num::nearest_axis<std::uint64_t, num::plain_division> axis(p.y);
    const auto source = [&](std::int64_t o) {
      return static_cast<std::int64_t>(axis.source(static_cast<std::uint64_t>(o)));
    };
    const auto right = [&](std::int64_t o) {
      mpq_class at = mpq_class(static_cast<long>(o)) + (exact ? mpq_class(1, 2) : mpq_class(0));
      if (scale != 0) {
        at /= mpq_class(scale);
      } else {
        at *= mpz_class(static_cast<long>(image));
        at /= mpz_class(static_cast<long>(size));
      }
      const mpz_class whole = at.get_num() / at.get_den();
      return whole >= static_cast<long>(image) ? image - 1 : static_cast<std::int64_t>(whole.get_si());
    };
    CAPTURE(image);
    CAPTURE(size);
    CAPTURE(scale);
    CAPTURE(exact);
    const auto check = [&](std::int64_t o) {
      if (o < 0 || o >= size) return;
      CAPTURE(o);
      CHECK(source(o) == right(o));
    };
    for (const std::int64_t o : {std::int64_t{0}, std::int64_t{1}, size / 2, size - 1}) check(o);
    for (int repeat = 0; repeat < 8; ++repeat) {
      check(below(size));
      const std::int64_t i = repeat == 0 ? image - 1 : repeat == 1 ? image : below(image);
      const auto first = static_cast<std::int64_t>(axis.first(static_cast<std::uint64_t>(i)));
      check(first);
      check(first - 1);
      CAPTURE(i);
      CHECK((first == 0 || source(first - 1) < i));
      CHECK((first == size || source(first) >= i));
    }
  }
}

TEST_CASE("upsample: bits are kept, sums are exact") {
  context ctx;
  const std::uint32_t x[] = {0x80000000, 0x7fa00001, 0xffc00123, 0x00000001};
  std::uint32_t out[16];
  upsample_nearest2d(ctx, {reinterpret_cast<const float*>(x), {1, 1, 2, 2}},
                     {reinterpret_cast<float*>(out), {1, 1, 4, 4}});
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) CHECK(out[4 * i + j] == x[i / 2 * 2 + j / 2]);
  const float g[] = {0x1p127f, 0x1p-149f, -0x1p127f, -0.0f};
  float sum[3] = {5, 5, 5};
  upsample_nearest2d_backward(ctx, {g, {1, 1, 1, 4}}, {sum, {1, 1, 1, 1}});
  CHECK(sum[0] == 0x1p-149f);
  upsample_nearest2d_backward(ctx, {g + 3, {1, 1, 1, 1}}, {sum, {1, 1, 1, 3}});
  for (const float v : sum) CHECK(num::bits_of(v) == 0);
}

TEST_CASE("upsample: what is refused") {
  context ctx;
  std::vector<float> x(64), y(64);
  const const_tensor_view in(x.data(), {1, 1, 2, 2});
  const tensor_view out(y.data(), {1, 1, 4, 4});
  for (const double bad : {-1.0, 0x1p-201, 0x1.8p200, std::nan("")}) {
    CHECK_THROWS_AS(upsample_nearest2d(ctx, in, out, {.scale_h = bad}), error);
    CHECK_THROWS_AS(upsample_nearest2d(ctx, in, out, {.scale_w = bad}), error);
  }
  CHECK_THROWS_AS(upsample_nearest2d(ctx, {x.data(), {1, 1, 0, 2}}, out), error);
  CHECK_THROWS_AS(upsample_nearest2d(ctx, {x.data(), {1, 2, 2}}, out), error);
  CHECK_THROWS_AS(upsample_nearest2d(ctx, in, {y.data(), {1, 2, 4, 4}}), error);
  CHECK_THROWS_AS(upsample_nearest2d_backward(ctx, {x.data(), {1, 1, 4, 4}}, {y.data(), {1, 1, 0, 2}}), error);
  upsample_nearest2d_backward(ctx, {x.data(), {1, 1, 0, 0}}, {y.data(), {1, 1, 2, 2}});
  CHECK(num::bits_of(y[3]) == 0);
}

}  // namespace
