// Choices by booleans: every combination of bytes, payloads of NaN, masks that broadcast or have strides, operands that are refused.
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/num/format.hpp"
#include "tests/helpers/settings.hpp"

namespace {

using namespace repdl;
using tests::bits;
using tests::on_every_set;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Booleans are bytes, true unless 0.
const_tensor_view booleans(const std::vector<std::uint8_t>& bytes, const sizes& shape) {
  return {bytes.data(), dtype::boolean, shape};
}

template <class Call>
std::string refused(const Call& call) {
  try {
    call();
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("logical: of booleans any byte but 0 is true, and results are 0 or 1") {
  std::vector<std::uint8_t> x, y, all;
  for (int a = 0; a < 256; ++a) {
    for (const int b : {0, 1, 2, 128, 255}) {
      x.push_back(static_cast<std::uint8_t>(a));
      y.push_back(static_cast<std::uint8_t>(b));
    }
  }
  const sizes shape{static_cast<std::int64_t>(x.size())};
  on_every_set([&](context& ctx) {
    std::vector<std::uint8_t> of_and(x.size(), 7), of_or(of_and), of_xor(of_and), of_not(of_and);
    const auto out = [&](std::vector<std::uint8_t>& v) { return tensor_view(v.data(), dtype::boolean, shape); };
    logical_and(ctx, booleans(x, shape), booleans(y, shape), out(of_and));
    logical_or(ctx, booleans(x, shape), booleans(y, shape), out(of_or));
    logical_xor(ctx, booleans(x, shape), booleans(y, shape), out(of_xor));
    logical_not(ctx, booleans(x, shape), out(of_not));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool a = x[i] != 0, b = y[i] != 0;
      REQUIRE(of_and[i] == (a && b ? 1 : 0));
      REQUIRE(of_or[i] == (a || b ? 1 : 0));
      REQUIRE(of_xor[i] == (a != b ? 1 : 0));
      REQUIRE(of_not[i] == (a ? 0 : 1));
    }
  });
}

TEST_CASE("logical: of numbers all but zeros are true") {
  const float x[] = {0.0f,
                     -0.0f,
                     0x1p-149f,
                     -1,
                     std::numeric_limits<float>::infinity(),
                     static_cast<float>(nan),
                     num::bit_cast<float>(0xff800001u)};
  const f16 half[] = {{0}, {0x8000}, {1}, {0x8001}, {0x7c00}, {0x7c01}};
  const double wide[] = {0.0, -0.0, 0x1p-1074, nan};
  on_every_set([&](context& ctx) {
    bool y[7];
    logical_not(ctx, x, y);
    for (int i = 0; i < 7; ++i) CHECK(y[i] == (i < 2));
    bool z[6];
    logical_not(ctx, half, z);
    for (int i = 0; i < 6; ++i) CHECK(z[i] == (i < 2));
    bool w[4];
    logical_xor(ctx, wide, const_tensor_view(wide, sizes{1}), w);
    for (int i = 0; i < 4; ++i) CHECK(w[i] == (i >= 2));
  });
}

TEST_CASE("logical: where and masked_fill keep the bits of what they choose") {
  const std::uint32_t patterns[] = {0xffc12345, 0x7f800001, 0x80000000, 0x00000001, 0x3f800000};
  const std::vector<std::uint8_t> condition{0, 1, 2, 0, 255};
  float x[5], y[5];
  for (std::size_t i = 0; i < 5; ++i) {
    x[i] = num::bit_cast<float>(patterns[i]);
    y[i] = num::bit_cast<float>(patterns[4 - i]);
  }
  on_every_set([&](context& ctx) {
    float out[5];
    where(ctx, booleans(condition, {5}), x, y, out);
    for (std::size_t i = 0; i < 5; ++i) CHECK(bits(out[i]) == (condition[i] != 0 ? patterns[i] : patterns[4 - i]));
    masked_fill(ctx, x, booleans(condition, {5}), out, {1 + 0x1p-24});
    for (std::size_t i = 0; i < 5; ++i) CHECK(bits(out[i]) == (condition[i] != 0 ? 0x3f800000 : patterns[i]));
    masked_fill(ctx, x, booleans(condition, {5}), out, {nan});
    for (std::size_t i = 0; i < 5; ++i) CHECK(bits(out[i]) == (condition[i] != 0 ? 0x7fc00000 : patterns[i]));
    masked_fill(ctx, x, booleans({1}, {}), out, {-0.0});
    for (const float v : out) CHECK(bits(v) == 0x80000000);
    const bf16 narrow{0xff81};
    bf16 filled{};
    masked_fill(ctx, const_tensor_view(&narrow, sizes{}), booleans({1}, {}), tensor_view(&filled, sizes{}),
                {1 + 0x1p-8});
    CHECK(filled.bits == 0x3f80);
    masked_fill(ctx, const_tensor_view(&narrow, sizes{}), booleans({0}, {}), tensor_view(&filled, sizes{}), {});
    CHECK(filled.bits == 0xff81);
  });
}

TEST_CASE("logical: conditions with strides of their own, and long ones") {
  constexpr std::int64_t rows = 37, columns = 1031;
  std::vector<std::uint8_t> condition(static_cast<std::size_t>(2 * rows * columns));
  std::vector<double> x(static_cast<std::size_t>(rows * columns)), y(x), out(x);
  for (std::size_t i = 0; i < condition.size(); ++i) condition[i] = static_cast<std::uint8_t>(i * i / 7 % 3);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<double>(i);
    y[i] = -x[i];
  }
  const sizes shape{rows, columns};
  on_every_set([&](context& ctx) {
    // Every second byte, transposed; a row of conditions for all rows; y from its end.
    const const_tensor_view every_second(condition.data(), dtype::boolean, shape, sizes{2, 2 * rows});
    const const_tensor_view a_row(condition.data(), dtype::boolean, sizes{columns}, sizes{1});
    const const_tensor_view backwards(y.data() + rows * columns - 1, dtype::f64, shape, sizes{-columns, -1});
    for (const auto& [view, row_step, column_step] :
         {std::tuple{every_second, 2, 2 * rows}, {a_row, 0, std::int64_t{1}}}) {
      where(ctx, view, const_tensor_view(x.data(), shape), backwards, tensor_view(out.data(), shape));
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
          const std::int64_t i = r * columns + c;
          const bool is_true = condition[static_cast<std::size_t>(r * row_step + c * column_step)] != 0;
          REQUIRE(out[static_cast<std::size_t>(i)] == static_cast<double>(is_true ? i : i - rows * columns + 1));
        }
      }
    }
  });
}

TEST_CASE("logical: operands that are refused") {
  context ctx({.threads = 1});
  float x[2] = {1, 2}, out[2] = {5, 5};
  const double wide[2] = {1, 2};
  const std::vector<std::uint8_t> condition{0, 1};
  CHECK(refused([&] { where(ctx, x, x, x, out); }) == "where: cond: expected bool, got f32");
  CHECK(refused([&] { where(ctx, booleans(condition, {2}), x, wide, out); }) ==
        "where: y: expected f32, as x, got f64");
  CHECK(refused([&] { where(ctx, booleans(condition, {2}), booleans(condition, {2}), x, out); }) ==
        "where: x: expected f16, bf16, f32 or f64, got bool");
  CHECK(refused([&] { masked_fill(ctx, x, x, out); }) == "masked_fill: mask: expected bool, got f32");
  CHECK(refused([&] { logical_and(ctx, booleans(condition, {2}), x, out); }) ==
        "logical_and: y: expected bool, as x, got f32");
  CHECK(refused([&] { logical_not(ctx, x, out); }).find("expected bool, got f32") != std::string::npos);
  CHECK(refused([&] { where(ctx, booleans({0, 1, 1}, {3}), x, x, out); }).find("broadcast") != std::string::npos);
  CHECK(out[0] == 5);
}
