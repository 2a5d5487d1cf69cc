// sin and cos: arguments beside multiples of pi/2, small, large and beyond the quick reduction; arrays in which few elements
// are such.
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/num/format.hpp"
#include "tests/helpers/settings.hpp"

namespace {

using namespace repdl;
using num::bits_of;
using num::float_of;
using tests::on_every_set;

constexpr std::uint32_t inf = 0x7f800000, quiet = 0x7fc00000, minus = 0x80000000;

struct row {
  std::uint32_t x, sin, cos;
};
// Of -x: the sine changes its sign.
constexpr row rows[] = {
    {0x00000000, 0x00000000, 0x3f800000},  // 0
    {0x00000001, 0x00000001, 0x3f800000},
    {0x007fffff, 0x007fffff, 0x3f800000},
    {0x39800000, 0x39800000, 0x3f800000},  // 2^-12
    {0x39ffffff, 0x39fffffe, 0x3f7ffffe},
    {0x3a000000, 0x39ffffff, 0x3f7ffffe},
    {0x3fc90fdb, 0x3f800000, 0xb33bbd2e},  // beside pi/2
    {0x40490fdb, 0xb3bbbd2e, 0xbf800000},  // pi
    {0x40c90fdb, 0x343bbd2e, 0x3f800000},  // 2 pi
    {0x41490fdb, 0x34bbbd2e, 0x3f800000},  // 4 pi
    {0x48ffffff, 0x3e0c03d2, 0x3f7d987b},  // 2^19, where quick ends
    {0x49000000, 0x3e2ba40f, 0x3f7c60cc},
    {0x49000001, 0x3e6a5bf4, 0x3f793488},
    {0x5f3759df, 0x3ef8d99a, 0xbf5fba7c},
    {0x7e800000, 0x3ea91216, 0x3f71a3c8},  // 2^126
    {0x7f7fffff, 0xbf0599b3, 0x3f5a5f96},  // the largest number
    {0x437ce5f1, 0x3f800000, 0xb18fd1de},  // next to multiples of pi/2
    {0x50a3e87f, 0x3f800000, 0xb10a4ed8},
    {0x5123e87f, 0xb18a4ed8, 0xbf800000},
    {0x6f79be45, 0x3f800000, 0xb0ddeea9},
    {0x6ff9be45, 0xb15deea9, 0xbf800000},
    {inf, quiet, quiet},
    {0x7f800001, quiet, quiet},
    {0x7fc12345, quiet, quiet},
};

using unary = void (*)(context&, const_tensor_view, tensor_view);

std::vector<std::uint32_t> apply(context& ctx, unary f, const std::vector<std::uint32_t>& x, bool in_place) {
  std::vector<float> in, out(x.size());
  for (const std::uint32_t b : x) in.push_back(float_of(b));
  const sizes shape{static_cast<std::int64_t>(x.size())};
  std::vector<float>& to = in_place ? in : out;
  f(ctx, const_tensor_view(in.data(), shape), tensor_view(to.data(), shape));
  std::vector<std::uint32_t> bits;
  for (const float v : to) bits.push_back(bits_of(v));
  return bits;
}

}  // namespace

TEST_CASE("circular: arguments one by one") {
  on_every_set([](context& ctx) {
    for (const row& r : rows)
      for (const std::uint32_t sign : {0u, minus}) {
        INFO(std::hex, "x ", r.x | sign);
        const std::uint32_t odd = r.sin == quiet ? quiet : r.sin ^ sign;
        CHECK(apply(ctx, sin, {r.x | sign}, false)[0] == odd);
        CHECK(apply(ctx, cos, {r.x | sign}, false)[0] == r.cos);
      }
  });
}

TEST_CASE("circular: blocks with and without arguments that take long") {
  on_every_set([](context& ctx) {
    // 700 arguments below 80; from the 300th on every 97th is a row of the table.
    std::vector<std::uint32_t> x, sines, cosines;
    for (std::uint32_t i = 0; i < 700; ++i) {
      x.push_back(bits_of(static_cast<float>(i) * 0.1142f));
      if (i >= 300 && i % 97 == 0) x.back() = rows[i % std::size(rows)].x;
      sines.push_back(apply(ctx, sin, {x.back()}, false)[0]);
      cosines.push_back(apply(ctx, cos, {x.back()}, false)[0]);
    }
    for (const bool in_place : {false, true}) {
      CHECK(apply(ctx, sin, x, in_place) == sines);
      CHECK(apply(ctx, cos, x, in_place) == cosines);
    }
  });
}
