#include <cstdio>
#include <librepdl/librepdl.hpp>
#include <vector>

int main() {
  repdl::context ctx;  // the CPU, its best instruction set, all threads
  const std::vector<float> x{1e8f, 1.0f, -1e8f, 1e-8f};
  float total = 0;
  repdl::sum(ctx, x, repdl::tensor_view(&total, {}));
  std::printf("%g, and in a float loop %g\n", total, x[0] + x[1] + x[2] + x[3]);  // 1, and in a float loop 1e-08
}
