// Says what keeps GPUs away, if something does, and that everything else works. For tests/consumers/cuda.py.
#include <cstdio>
#include <librepdl/librepdl.hpp>
#include <optional>
#include <string>
#include <vector>

namespace {

// Destroyed after what the CUDA library, loaded later, has in static storage.
std::optional<repdl::context> gpu;
std::optional<repdl::tensor> on_gpu;

}  // namespace

int main() {
  std::string why;
  int gpus = 0;
  for (const repdl::device_info& d : repdl::devices(&why)) gpus += d.where.kind == repdl::device_kind::cuda ? 1 : 0;
  std::printf("%d GPUs: %s\n", gpus, why.c_str());
  try {
    gpu.emplace(repdl::context_options{.where = {repdl::device_kind::cuda, 0}});
    on_gpu.emplace(*gpu, std::vector<float>{3, 2, 1}, repdl::sizes{3});
    repdl::relu(*gpu, *on_gpu, *on_gpu);
    std::printf("a context on %s\n", repdl::name_of(gpu->where()).c_str());
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
