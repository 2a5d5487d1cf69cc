// Says what keeps GPUs away, if something does, and that everything else works. For tests/consumers/cuda.py.
#include <cstdio>
#include <librepdl/librepdl.hpp>
#include <string>

int main() {
  std::string why;
  int gpus = 0;
  for (const repdl::device_info& d : repdl::devices(&why)) gpus += d.where.kind == repdl::device_kind::cuda ? 1 : 0;
  std::printf("%d GPUs: %s\n", gpus, why.c_str());
  try {
    const repdl::context gpu({.where = {repdl::device_kind::cuda, 0}});
    std::printf("a context on %s\n", repdl::name_of(gpu.where()).c_str());
  } catch (const repdl::error& e) {
    std::printf("%.*s: %s\n", static_cast<int>(repdl::info_of(e.site()).name.size()),
                repdl::info_of(e.site()).name.data(), e.what());
  }
  repdl::context ctx;
  const float x[] = {1e8f, 1.0f, -1e8f};
  float total = 0;
  repdl::sum(ctx, x, repdl::tensor_view(&total, {}));
  return total == 1 ? 0 : 1;
}
