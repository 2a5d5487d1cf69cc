// i0, i1, i0e and i1e: the ends of their ranges, where their polynomials meet, and halves of subnormal numbers.
#include <doctest/doctest.h>

#include <cstdint>

#include "librepdl/librepdl.hpp"
#include "librepdl/num/format.hpp"
#include "tests/helpers/settings.hpp"

namespace {

using namespace repdl;
using tests::on_every_set;

constexpr std::uint32_t inf = 0x7f800000, quiet = 0x7fc00000, minus = 0x80000000, one = 0x3f800000;

struct row {
  std::uint32_t x, y;
};
constexpr row i0_rows[] = {
    {0, one},
    {1, one},
    {0x39ffffff, one},  // the last 1
    {0x3a000000, 0x3f800001},
    {one, 0x3fa20e72},
    {0x3fffffff, 0x4011e4b9},
    {0x40000000, 0x4011e4ba},
    {0x40a00000, 0x41d9eb42},
    {0x40ffffff, 0x43d5c82f},
    {0x41000000, 0x43d5c835},
    {0x41000001, 0x43d5c841},
    {0x42b70000, 0x7f2bd8cf},
    {0x42b7cd31, 0x7f7ffffd},  // the last finite result
    {0x42b7cd32, inf},
    {0x7f7fffff, inf},
    {inf, inf},
    {0x7f800001, quiet},
};
constexpr row i0e_rows[] = {
    {0, one},
    {1, one},
    {0x33000000, one},  // the last 1
    {0x33000001, 0x3f7fffff},
    {one, 0x3eee780b},
    {0x3fffffff, 0x3e9df4ce},
    {0x40000000, 0x3e9df4ce},
    {0x40a00000, 0x3e3bf21f},
    {0x40ffffff, 0x3e12dfc8},
    {0x41000000, 0x3e12dfc8},
    {0x41000001, 0x3e12dfc7},
    {0x42b70000, 0x3d2b1020},
    {0x4b800001, 0x38cc4229},
    {0x7f7fffff, 0x1ecc422a},
    {inf, 0},
    {0x7f800001, quiet},
};
// x/2 and a little more. In binary32 the halves of odd subnormal numbers are midpoints.
constexpr row i1_rows[] = {
    {0, 0},
    {1, 1},
    {2, 1},
    {3, 2},
    {5, 3},
    {0x007fffff, 0x00400000},
    {0x00800001, 0x00400001},
    {0x01000001, 0x00800001},
    {0x307fffff, 0x2fffffff},
    {0x30800000, 0x30000000},
    {one, 0x3f10ae44},
    {0x3fffffff, 0x3fcb99fc},
    {0x40000000, 0x3fcb99fd},
    {0x40a00000, 0x41c2af65},
    {0x40ffffff, 0x43c7efbd},
    {0x41000000, 0x43c7efc3},
    {0x41000001, 0x43c7efcf},
    {0x42b70000, 0x7f2ae7bf},
    {0x42b7d001, 0x7f7fff87},  // the last finite result
    {0x42b7d002, inf},
    {0x7f7fffff, inf},
    {inf, inf},
    {0x7f800001, quiet},
};
// x/2 and a little less.
constexpr row i1e_rows[] = {
    {0, 0},
    {1, 0},
    {2, 1},
    {3, 1},
    {5, 2},
    {0x007fffff, 0x003fffff},
    {0x00800001, 0x00400000},
    {0x01000001, 0x00800001},
    {0x307fffff, 0x2fffffff},
    {0x30800000, 0x30000000},
    {one, 0x3e54e678},
    {0x3fffffff, 0x3e5c6f8e},
    {0x40000000, 0x3e5c6f8d},
    {0x40a00000, 0x3e27e859},
    {0x40ffffff, 0x3e095ca7},
    {0x41000000, 0x3e095ca6},
    {0x41000001, 0x3e095ca6},
    {0x42b70000, 0x3d2a2029},
    {0x4b800001, 0x38cc4229},
    {0x7f7fffff, 0x1ecc422a},
    {inf, 0},
    {0x7f800001, quiet},
};

using unary = void (*)(context&, const_tensor_view, tensor_view);

template <class T>
num::storage_of<T> result(context& ctx, unary f, num::storage_of<T> x) {
  const T in = num::from_bits<T>(x);
  T out = in;
  f(ctx, const_tensor_view(&in, sizes{}), tensor_view(&out, sizes{}));
  return num::to_bits(out);
}

// Of an even function, or of an odd one.
template <class Rows>
void check(context& ctx, unary f, bool odd, const Rows& rows) {
  for (const row& r : rows) {
    INFO(std::hex, "x ", r.x);
    CHECK(result<float>(ctx, f, r.x) == r.y);
    CHECK(result<float>(ctx, f, r.x | minus) == (odd && r.y != quiet ? r.y | minus : r.y));
  }
}

}  // namespace

TEST_SUITE_BEGIN("portable");

TEST_CASE("Bessel functions: ends, meeting points, halves") {
  on_every_set([](context& ctx) {
    check(ctx, i0, false, i0_rows);
    check(ctx, i0e, false, i0e_rows);
    check(ctx, i1, true, i1_rows);
    check(ctx, i1e, true, i1e_rows);
  });
}

TEST_CASE("Bessel functions: halves of subnormal numbers in f16 and bf16") {
  on_every_set([](context& ctx) {
    for (const std::uint16_t m : {1, 3, 5, 7}) {
      const auto down = static_cast<std::uint16_t>(m / 2), up = static_cast<std::uint16_t>(m / 2 + 1);
      const auto negative = static_cast<std::uint16_t>(m | 0x8000);
      CHECK(result<f16>(ctx, i1, m) == up);
      CHECK(result<bf16>(ctx, i1, m) == up);
      CHECK(result<f16>(ctx, i1, negative) == (up | 0x8000));
      CHECK(result<bf16>(ctx, i1, negative) == (up | 0x8000));
      CHECK(result<f16>(ctx, i1e, m) == down);
      CHECK(result<bf16>(ctx, i1e, m) == down);
      CHECK(result<f16>(ctx, i1e, negative) == (down | 0x8000));
      CHECK(result<bf16>(ctx, i1e, negative) == (down | 0x8000));
    }
  });
}

TEST_SUITE_END();
