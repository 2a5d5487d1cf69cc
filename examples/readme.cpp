#include <cstdio>
#include <librepdl/librepdl.hpp>
#include <vector>

int main() {
  repdl::context ctx;  // the CPU, its best instruction set, all threads
  const std::vector<float> v{1e8f, 1.0f, -1e8f, 1e-8f};
  std::printf("%g\n", v[0] + v[1] + v[2] + v[3]);  // 1e-08

  const repdl::tensor x(ctx, v, {4}), total = repdl::sum(x), scaled = repdl::mul(repdl::exp(total), 0.5);
  std::printf("%g %g\n", total.item<float>(), scaled.item<float>());  // 1 1.35914

  float again = 0;  // into memory that is there: nothing is allocated
  repdl::sum(ctx, v, repdl::tensor_view(&again, {}));
}
