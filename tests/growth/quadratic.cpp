// quadratic by its typed function, in every format: 3 * (1 + ulp)^2 and ties.
#include <cstdio>
#include <librepdl/librepdl.hpp>
#include <vector>

int main() {
  repdl::context ctx;
  const std::vector<float> x{1.0f + 0x1p-23f, -2.0f, 0x1p-75f};
  const std::vector<float> expected{3.0f * (1.0f + 0x1p-22f), 12.0f, 0x1p-148f};
  std::vector<float> y(x.size());
  repdl::quadratic(ctx, x, repdl::tensor_view(y), {.scale = 3});
  const std::vector<repdl::f16> half{{0x3c01}};
  std::vector<repdl::f16> result(1);
  repdl::quadratic(ctx, half, repdl::tensor_view(result));
  const bool right = y == expected && result[0].bits == 0x3c02;
  if (!right) std::printf("quadratic: %a %a %a, %04x\n", y[0], y[1], y[2], static_cast<unsigned>(result[0].bits));
  return right ? 0 : 1;
}
