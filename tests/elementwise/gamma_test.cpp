// lgamma, tgamma and digamma: poles, zeros of the functions, ends of their ranges, underflow, ties, in every tier.
#include <doctest/doctest.h>

#include <cstdint>

#include "librepdl/librepdl.hpp"
#include "librepdl/num/format.hpp"
#include "tests/helpers/settings.hpp"

namespace {

using namespace repdl;

constexpr std::uint32_t inf = 0x7f800000, quiet = 0x7fc00000, minus = 0x80000000, one = 0x3f800000, two = 0x40000000;

struct row {
  std::uint32_t x, y;
};
constexpr row lgamma_rows[] = {
    {0, inf},
    {minus, inf},
    {1, 0x42ce8ed0},
    {minus | 1, 0x42ce8ed0},
    {0x00800000, 0x42aeac50},
    {0x3f000000, 0x3f128682},
    {0xbf000000, 0x3fa1fc4d},
    {0x3f7fffff, 0x3313c469},  // next to the zeros 1 and 2
    {one, 0},
    {0x3f800001, 0xb393c466},
    {0x3fbb16c3, 0xbdf8cdce},  // the minimum
    {0x3fffffff, 0xb358772f},
    {two, 0},
    {0x40000001, 0x33d87733},
    {0x40400000, 0x3f317218},
    {0xc01d3fe4, 0x3485656a},  // about the zeros -2.457 and -2.748
    {0xc01d3fe5, 0xb3f26792},
    {0xc01d3fe6, 0xb4fe9920},
    {0xc02fda08, 0xb41ad05c},
    {one | minus, inf},
    {two | minus, inf},
    {0xc2c90000, 0xc3b67353},
    {0xc2fffffd, 0xc3f2dc39},  // next to poles
    {0xc97ffff7, 0xcb4dce9d},
    {0xcafffffd, 0xccef1400},
    {0xcb000000, inf},
    {0xff7fffff, inf},
    {0x501502f9, 0x524d21b9},
    {0x7c44af8d, 0x7f7ffffe},  // the last that is finite
    {0x7c44af8e, inf},
    {0x7f7fffff, inf},
    {inf, inf},
    {inf | minus, inf},
    {0xff800001, quiet},
};
constexpr row tgamma_rows[] = {
    {0, inf},
    {minus, inf | minus},
    {1, inf},
    {minus | 1, inf | minus},
    {0x00200000, inf},
    {0x00200001, 0x7f7ffff8},
    {0x80200000, inf | minus},
    {0x80200001, 0xff7ffff8},
    {0x2edbe6ff, 0x501502f9},
    {0x3f000000, 0x3fe2dfc5},
    {0xbf000000, 0xc062dfc5},
    {0x3f7fffff, one},
    {one, one},
    {0x3f800001, 0x3f7fffff},
    {0x3fbb16c3, 0x3f62b6e4},  // the minimum
    {two, one},
    {0x40800000, 0x40c00000},  // factorials
    {0x41100000, 0x471d8000},
    {0x41500000, 0x4de467e0},
    {0x41600000, 0x4fb99466},
    {0x41c00000, 0x64af2e1a},
    {0x420c0000, 0x7f5e1bc5},
    {0x420c290f, 0x7f7fff81},  // the last that is finite
    {0x420c2910, inf},
    {0x42100000, inf},
    {0x7f7fffff, inf},
    {one | minus, quiet},
    {0xc2060000, 0x01a9881a},
    {0xc20a0000, 0x8013a7e5},
    {0xc21a0000, 0x80000001},
    {0xc21e0000, 0},
    {0xc21fffff, 0x000000e5},  // about the pole -40
    {0xc2200000, quiet},
    {0xc2200001, 0x800000e5},
    {0xc2220000, minus},
    {0xc22bffff, minus},
    {0xc22c0001, 0},
    {0xc2340000, quiet},  // -45, and beyond
    {0xc2340001, 0},
    {0xc2380001, minus},
    {0xcafffffd, minus},  // -8388606.5, -8388607.5
    {0xcaffffff, 0},
    {0xcb000000, quiet},
    {inf, inf},
    {inf | minus, quiet},
    {0xff800001, quiet},
};
constexpr row digamma_rows[] = {
    {0, inf | minus},
    {minus, inf},
    {1, inf | minus},
    {minus | 1, inf},
    {0x00200000, inf | minus},
    {0x00200001, 0xff7ffff8},
    {0x80200000, inf},
    {0x3f000000, 0xbffb544c},
    {0xbf000000, 0x3d157683},
    {0x3f7fffff, 0xbf13c46a},
    {one, 0xbf13c468},
    {0x3fbb16c2, 0xb408c922},  // about the zero 1.4616
    {0x3fbb16c3, 0xb24ec71e},
    {0x3fbb16c4, 0x33dde07a},
    {two, 0x3ed87730},
    {0xbf010b96, 0xb48bb92b},  // and two negative ones
    {0xbf010b97, 0xb554e600},
    {0xbfc96866, 0xb418c15e},
    {0x41200000, 0x40101cb7},
    {0x42c90000, 0x40935d97},
    {0xc2c90000, 0x4093af1a},
    {one | minus, quiet},
    {0xc2fffffd, 0xc72aa5d0},
    {0xc97ffff7, 0x4167ce37},
    {0xcafffffd, 0x417f1402},
    {0xcb000000, quiet},
    {0x60ad78ec, 0x423834f1},
    {0x7f7fffff, 0x42b17218},
    {inf, inf},
    {inf | minus, quiet},
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

template <class Rows>
void check(context& ctx, unary f, const Rows& rows) {
  for (const row& r : rows) {
    INFO(std::hex, "x ", r.x);
    CHECK(result<float>(ctx, f, r.x) == r.y);
  }
}

}  // namespace

TEST_SUITE_BEGIN("portable");

TEST_CASE("gamma functions: poles, zeros, ends") {
  for (const tests::setting& s : tests::every_setting()) {
    INFO(s.isa);
    check(*s.ctx, lgamma, lgamma_rows);
    check(*s.ctx, tgamma, tgamma_rows);
    check(*s.ctx, digamma, digamma_rows);
  }
}

TEST_CASE("tgamma: factorials that are midpoints of bf16, and beyond f16") {
  for (const tests::setting& s : tests::every_setting()) {
    INFO(s.isa);
    CHECK(result<bf16>(*s.ctx, tgamma, 0x4100) == 0x459e);  // 7! = 157.5 32
    CHECK(result<bf16>(*s.ctx, tgamma, 0x4110) == 0x471e);  // 8! = 157.5 256
    CHECK(result<f16>(*s.ctx, tgamma, 0x4880) == 0x78ec);   // 8!
    CHECK(result<f16>(*s.ctx, tgamma, 0x4900) == 0x7c00);
  }
}
