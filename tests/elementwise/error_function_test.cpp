// erf, erfc, their inverses, gelu, gelu_tanh, log_ndtr and ndtri: the ends of their ranges, underflow, and halves of subnormal numbers.
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
constexpr row erf_rows[] = {
    {0, 0},
    {minus, minus},
    {1, 1},
    {0x80000003, 0x80000003},
    {0x00800000, 0x00906ebb},
    {one, 0x3f57bb3d},
    {0xc0000000, 0xbf7ecd71},
    {0x407ad444, 0x3f7fffff},  // the last below 1
    {0x407ad445, one},
    {inf, one},
    {inf | minus, one | minus},
    {0xff800001, quiet},
};
constexpr row erfc_rows[] = {
    {0, one},
    {minus, one},
    {0x32800000, one},  // 2^-26
    {0x33000000, 0x3f7fffff},
    {0xb3000000, one},
    {0xb3800000, 0x3f800001},
    {one, 0x3e21130b},
    {one | minus, 0x3febdd9f},
    {0xc07547ca, 0x3fffffff},  // the last below 2
    {0xc07547cb, 0x40000000},
    {0x41131cdf, 0x00800083},  // the last normal result
    {0x41131ce0, 0x007fffef},
    {0x4120ddfb, 0x00000001},  // the last that is not 0
    {0x4120ddfc, 0},
    {inf, 0},
    {inf | minus, 0x40000000},
    {0x7f800001, quiet},
};
constexpr row erfinv_rows[] = {
    {0, 0},
    {minus, minus},
    {1, 1},
    {0x80000003, 0x80000003},
    {0x00900000, 0x007f9ddf},  // a subnormal result
    {0x3e800000, 0x3e66b834},
    {0xbf000000, 0xbef430fe},
    {0x3f7f0000, 0x400296c4},
    {0x3f7fffff, 0x407547cb},  // the last below 1
    {one, inf},
    {one | minus, inf | minus},
    {0x3f800001, quiet},
    {0xbf800001, quiet},
    {inf, quiet},
    {inf | minus, quiet},
    {0xff800001, quiet},
};
// From 1/2 on erfcinv x = erfinv(1 - x).
constexpr row erfcinv_rows[] = {
    {0, inf},
    {minus, inf},
    {1, 0x4120513e},
    {2, 0x411fc405},
    {0x00800000, 0x41131ce0},
    {0x33800000, 0x407547cb},
    {0x3e800000, 0x3f503c48},
    {0x3effffff, 0x3ef430ff},
    {0x3f000000, 0x3ef430fe},
    {0x3f000001, 0x3ef430fc},
    {0x3f7fffff, 0x3362dfc5},
    {one, 0},
    {0x3f800001, 0xb3e2dfc5},
    {0x3fa00000, 0xbe66b834},
    {0x3fc00000, 0xbef430fe},
    {0x3fffffff, 0xc06f9c68},  // the last above -inf
    {0x40000000, inf | minus},
    {0x40000001, quiet},
    {0x80000001, quiet},
    {inf, quiet},
    {inf | minus, quiet},
    {0xff800001, quiet},
};
constexpr row ndtri_rows[] = {
    {0, inf | minus},
    {minus, inf | minus},
    {1, 0xc161f15d},
    {2, 0xc16128f6},
    {0x00800000, 0xc14f3302},
    {0x33800000, 0xc0a96e37},
    {0x3e7fffff, 0xbf2cab5d},
    {0x3e800000, 0xbf2cab5c},
    {0x3effffff, 0xb3a06c99},
    {0x3f000000, 0},
    {0x3f000001, 0x34206c99},
    {0x3f400000, 0x3f2cab5c},
    {0x3f7fffff, 0x40a96e37},  // the last below inf
    {one, inf},
    {0x3f800001, quiet},
    {0x80000001, quiet},
    {inf, quiet},
    {inf | minus, quiet},
    {0xff800001, quiet},
};
constexpr row gelu_rows[] = {
    {one, 0x3f57625f},        {one | minus, 0xbe227686}, {0xbf40757d, 0xbe2e0cef},  // the minimum
    {0x40ab1ed8, 0x40ab1ed7},                                                       // the last that is not x
    {0x40ab1ed9, 0x40ab1ed9}, {0xc1525706, 0x80800054},                             // the last normal result
    {0xc1525707, 0x807fffeb}, {0xc165b274, 0x80000001},                             // the last that is not 0
    {0xc165b275, minus},
};
constexpr row gelu_tanh_rows[] = {
    {one, 0x3f57585c},        {one | minus, 0xbe229e91}, {0xbf40757d, 0xbe2e1f23},
    {0x409fcff8, 0x409fcff7}, {0x409fcff9, 0x409fcff9},  {0xc1219c35, 0x808000b2},
    {0xc1219c36, 0x807ffff8}, {0xc12c5579, 0x80000001},  {0xc12c557a, minus},
};
constexpr row log_ndtr_rows[] = {
    {1, 0xbf317218},
    {0x80000001, 0xbf317218},
    {one, 0xbe30e65e},
    {one | minus, 0xbfeba699},
    {0x40000000, 0xbcbc8592},
    {0x41400000, 0x89139599},
    {0x414f3301, 0x8080003f},  // the last normal result
    {0x414f3302, 0x807fffd7},
    {0x4162b914, 0x80000001},  // the last that is not 0
    {0x4162b915, minus},
    {0xc0800000, 0xc125c2fa},
    {0xc1640000, 0xc2d2393f},
    {0xc2580001, 0xc4b6dd12},
    {0xd4800800, 0xe9001001},  // x^2/2 is a midpoint
    {0xd4800801, 0xe9001003},
    {0xdfb504f3, 0xff7fffff},  // the last finite result
    {0xdfb504f4, inf | minus},
    {inf, minus},
    {inf | minus, inf | minus},
    {0xff800001, quiet},
};
// Of both: x/2 and a little more. In binary32 the halves of odd subnormal numbers are midpoints.
constexpr row half_rows[] = {
    {0, 0},
    {minus, minus},
    {1, 1},
    {0x80000001, minus},
    {3, 2},
    {0x80000003, 0x80000001},
    {5, 3},
    {0x80000005, 0x80000002},
    {0x007fffff, 0x00400000},
    {0x807fffff, 0x803fffff},
    {0x00800001, 0x00400001},
    {0x80800001, 0x80400000},
    {0x01000001, 0x00800001},
    {inf, inf},
    {inf | minus, minus},
    {0x7f812345, quiet},
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

TEST_CASE("error function: ends, underflow, halves") {
  on_every_set([](context& ctx) {
    check(ctx, erf, erf_rows);
    check(ctx, erfc, erfc_rows);
    check(ctx, erfinv, erfinv_rows);
    check(ctx, erfcinv, erfcinv_rows);
    check(ctx, ndtri, ndtri_rows);
    check(ctx, gelu, gelu_rows);
    check(ctx, gelu_tanh, gelu_tanh_rows);
    check(ctx, log_ndtr, log_ndtr_rows);
    check(ctx, gelu, half_rows);
    check(ctx, gelu_tanh, half_rows);
  });
}

// -x^2/2 is one whose even neighbour is nearer to 0.
TEST_CASE("log_ndtr: beyond midpoints") {
  on_every_set([](context& ctx) {
    CHECK(result<double>(ctx, log_ndtr, num::bits_of(-0x1.ffffffcp506)) == num::bits_of(-0x1.ffffff8000001p1012));
    CHECK(result<float>(ctx, log_ndtr, 0xd4800800) == 0xe9001001);
    CHECK(result<bf16>(ctx, log_ndtr, 0xd588) == 0xeb11);
  });
}

TEST_CASE("error function: halves of the narrow formats' subnormal numbers round up") {
  on_every_set([](context& ctx) {
    for (const unary f : std::initializer_list<unary>{gelu, gelu_tanh})
      for (std::uint16_t m = 1; m < 0x80; m = static_cast<std::uint16_t>(m + 2)) {
        const auto up = static_cast<std::uint16_t>((m + 1) / 2);
        const auto down = static_cast<std::uint16_t>(0x8000 | (m / 2));
        const auto negative = static_cast<std::uint16_t>(0x8000 | m);
        INFO("m ", m);
        CHECK(result<bf16>(ctx, f, m) == up);
        CHECK(result<bf16>(ctx, f, negative) == down);
        if (m > 16) continue;  // f16's 2^-24 is not tiny: x^2 soon counts
        CHECK(result<f16>(ctx, f, m) == up);
        CHECK(result<f16>(ctx, f, negative) == down);
      }
  });
}

TEST_SUITE_END();
