// Activations: tables written by hand, where rounding, signs of zero and the cases of a formula go wrong; and the rational
// ones of f16 and bf16 for every input.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/num/format.hpp"
#include "reference/elementwise/elementwise.hpp"
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

struct value {
  float x, y;
};
void check(const char* name, unary f, const std::vector<value>& rows) {
  on_every_set([&](context& ctx) {
    for (const value& r : rows) {
      float got = 7;
      f(ctx, const_tensor_view(&r.x, sizes{}), tensor_view(&got, sizes{}));
      INFO(name, " of ", r.x, ": ", got, ", expected ", r.y);
      CHECK(bits(got) == bits(r.y));
    }
  });
}

struct gradient {
  float g, x, y;
};
void check(const char* name, binary f, const std::vector<gradient>& rows) {
  on_every_set([&](context& ctx) {
    for (const gradient& r : rows) {
      float got = 7;
      f(ctx, const_tensor_view(&r.g, sizes{}), const_tensor_view(&r.x, sizes{}), tensor_view(&got, sizes{}));
      INFO(name, " of ", r.g, ", ", r.x, ": ", got, ", expected ", r.y);
      CHECK(bits(got) == bits(r.y));
    }
  });
}

const float signalling = num::bit_cast<float>(0xff812345u);

}  // namespace

TEST_CASE("activation: silu and mish") {
  check("silu", silu,
        {{0.0f, 0.0f},
         {-0.0f, -0.0f},
         {inf, inf},
         {-inf, -0.0f},
         {quiet, quiet},
         {signalling, quiet},
         {large, large},
         {-large, -0.0f},
         // x/2 + x^2/4: odd multiples of the least number go towards +inf
         {tiny, tiny},
         {-tiny, -0.0f},
         {3 * tiny, 2 * tiny},
         {-3 * tiny, -tiny},
         {5 * tiny, 3 * tiny},
         {4 * tiny, 2 * tiny},
         // x/2 + x^2/4 is a midpoint, - x^4/48
         {0x1p-23f, 0x1p-24f},
         {-0x1p-24f, -0x1p-25f}});
  check("mish", mish,
        {{0.0f, 0.0f},
         {-0.0f, -0.0f},
         {inf, inf},
         {-inf, -0.0f},
         {signalling, quiet},
         {large, large},
         {-large, -0.0f},
         // 3x/5
         {tiny, tiny},
         {-tiny, -tiny},
         {2 * tiny, tiny},
         {-4 * tiny, -2 * tiny},
         {5 * tiny, 3 * tiny}});
}

TEST_CASE("activation: selu and tanhshrink") {
  check("selu", selu,
        {{0.0f, 0.0f},
         {-0.0f, -0.0f},
         {inf, inf},
         {-inf, -0x1.c212ccp0f},  // -1.7580993408...
         {signalling, quiet},
         {large, inf},
         {-large, -0x1.c212ccp0f},
         {1.0f, 0x1.0cfabep0f},  // 1.0507009873...
         {tiny, tiny},
         {-tiny, -2 * tiny},
         {-2 * tiny, -4 * tiny},
         {10 * tiny, 11 * tiny}});
  check("tanhshrink", tanhshrink,
        {{0.0f, 0.0f},
         {-0.0f, 0.0f},
         {inf, inf},
         {-inf, -inf},
         {signalling, quiet},
         {large, large},
         {tiny, 0.0f},
         {-tiny, -0.0f},
         // x - 1 is a midpoint, the result is above it
         {0x1.000002p24f, 0x1.000002p24f},
         {-0x1.000002p24f, -0x1.000002p24f},
         {0x1.8p24f, 0x1.8p24f},
         {0x1p25f, 0x1p25f},
         // 2^24 - 1 and beyond are numbers
         {0x1p24f, 0x1.fffffep23f},
         {0x1p10f, 0x1.ff8p9f},
         // x^3/3: 9 * 2^-150 is a midpoint, the result is below it
         {0x1.8p-49f, 4 * tiny},
         {-0x1.8p-49f, -4 * tiny},
         {0x1p-49f, tiny}});
}

TEST_CASE("activation: relu6, hardsigmoid, hardswish, softsign") {
  check("relu6", relu6,
        {{-0.0f, 0.0f},
         {0.0f, 0.0f},
         {tiny, tiny},
         {-tiny, 0.0f},
         {6.0f, 6.0f},
         {0x1.800002p2f, 6.0f},
         {0x1.7ffffep2f, 0x1.7ffffep2f},
         {inf, 6.0f},
         {-inf, 0.0f},
         {signalling, quiet}});
  check("hardsigmoid", hardsigmoid,
        {{0.0f, 0.5f},
         {-0.0f, 0.5f},
         {3.0f, 1.0f},
         {-3.0f, 0.0f},
         {inf, 1.0f},
         {-inf, 0.0f},
         {signalling, quiet},
         {large, 1.0f},
         {tiny, 0.5f},
         {-tiny, 0.5f},
         {1.5f, 0.75f},
         // ties to even: 1/2 + 2^-25, 1/2 + 3 * 2^-25; 1/2 - 2^-26
         {0x1.8p-23f, 0.5f},
         {0x1.2p-21f, 0x1.000004p-1f},
         {-0x1.8p-24f, 0.5f},
         {-0x1.7ffffep1f, 0x1.555556p-25f}});
  check("hardswish", hardswish,
        {{0.0f, 0.0f},
         {-0.0f, -0.0f},
         {3.0f, 3.0f},
         {-3.0f, -0.0f},
         {0x1.800002p1f, 0x1.800002p1f},
         {large, large},
         {-large, -0.0f},
         {inf, inf},
         {-inf, -0.0f},
         {signalling, quiet},
         {1.5f, 1.125f},
         {-1.5f, -0.375f},
         // x/2 + x^2/6: odd multiples of the least number go towards +inf
         {tiny, tiny},
         {-tiny, -0.0f},
         {3 * tiny, 2 * tiny},
         {-3 * tiny, -tiny}});
  check("softsign", softsign,
        {{0.0f, 0.0f},
         {-0.0f, -0.0f},
         {inf, 1.0f},
         {-inf, -1.0f},
         {signalling, quiet},
         {large, 1.0f},
         {-large, -1.0f},
         {tiny, tiny},
         {1.0f, 0.5f},
         {-3.0f, -0.75f},
         {0x1.fffffep23f, 0x1.fffffep-1f},
         {0x1p24f, 0x1.fffffep-1f},  // 1 - 1 / (2^24 + 1) is nearer to 1 - 2^-24
         {0x1p-24f, 0x1.fffffep-25f}});
}

TEST_CASE("activation: gradients") {
  check("relu6_backward", relu6_backward,
        {{2, 0.0f, 0.0f},
         {2, -0.0f, 0.0f},
         {2, tiny, 2},
         {2, 6, 0.0f},
         {2, 0x1.7ffffep2f, 2},
         {-0.0f, 1, -0.0f},
         {2, quiet, 2},
         {signalling, quiet, quiet},
         {signalling, 1, quiet},
         {signalling, 7, 0.0f},
         {2, inf, 0.0f},
         {2, -inf, 0.0f}});
  check("hardsigmoid_backward", hardsigmoid_backward,
        {{6, 0, 1},
         {6, 3, 0.0f},
         {6, -3, 0.0f},
         {6, quiet, 0.0f},
         {6, inf, 0.0f},
         {quiet, 4, 0.0f},
         {signalling, 1, quiet},
         {-inf, 1, -inf},
         {-0.0f, 1, -0.0f},
         // ties: g / 6 is half of the least number, or three halves
         {3 * tiny, 0, 0.0f},
         {-3 * tiny, 0, -0.0f},
         {9 * tiny, 0, 2 * tiny},
         {4 * tiny, 0, tiny}});
  check("hardswish_backward", hardswish_backward,
        {{2, 0, 1},
         {2, 3, 2},
         {2, -3, 0.0f},
         {2, quiet, 2},
         {2, inf, 2},
         {2, -inf, 0.0f},
         {quiet, -inf, 0.0f},
         {signalling, 4, quiet},
         {signalling, 1, quiet},
         {inf, -1.5f, quiet},
         {inf, -2, -inf},
         {-inf, -3, 0.0f},
         // an exact zero: the product's sign
         {2, -1.5f, 0.0f},
         {-2, -1.5f, -0.0f},
         {-0.0f, 1, -0.0f},
         {-0.0f, -2, 0.0f},
         // g/2 + g x/3: a midpoint and a little
         {tiny, 0, 0.0f},
         {tiny, tiny, tiny},
         {tiny, -tiny, 0.0f},
         {3 * tiny, -tiny, tiny},
         {3 * tiny, 0, 2 * tiny},
         {6, -0x1.800002p0f, -0x1p-22f}});
  check("softsign_backward", softsign_backward,
        {{4, 1, 1},
         {4, -1, 1},
         {-4, 1, -1},
         {0.0f, 1, 0.0f},
         {-0.0f, 1, -0.0f},
         {inf, 1, inf},
         {-inf, large, -inf},
         {2, inf, 0.0f},
         {-2, -inf, -0.0f},
         {inf, inf, quiet},
         {2, quiet, quiet},
         {signalling, 1, quiet},
         {large, tiny, large},
         {-tiny, tiny, -tiny},
         {tiny, -tiny, tiny},
         {tiny, 1, 0.0f},
         // quotients by 9 and 36: numbers, and ties to even
         {9 * tiny, 2, tiny},
         {36 * tiny, 5, tiny},
         {54 * tiny, 5, 2 * tiny},
         {90 * tiny, -5, 2 * tiny},
         // x^2 alone would be a tie: 2^60 / (2^105 + 1)^2 is below half of the least number
         {0x1p60f, 0x1p105f, 0.0f},
         {0x1.000002p60f, 0x1p105f, tiny}});
}

TEST_CASE("activation: f16 and bf16, every input of the rational ones") {
  for (const auto& [name, f] : {std::pair{"relu6", unary(relu6)},
                                {"hardsigmoid", unary(hardsigmoid)},
                                {"hardswish", unary(hardswish)},
                                {"softsign", unary(softsign)}}) {
    for (const dtype t : {dtype::f16, dtype::bf16}) {
      std::vector<std::uint16_t> x(65536), want(65536);
      for (std::uint32_t i = 0; i < 65536; ++i) {
        x[i] = static_cast<std::uint16_t>(i);
        const std::uint64_t in = i;
        want[i] = static_cast<std::uint16_t>(reference::oracle_of(name).f(t, &in, nullptr));
      }
      on_every_set([&, n = name, g = f](context& ctx) {
        std::vector<std::uint16_t> got(65536);
        g(ctx, const_tensor_view(x.data(), t, sizes{65536}), tensor_view(got.data(), t, sizes{65536}));
        INFO(n);
        CHECK(got == want);
      });
    }
  }
}
