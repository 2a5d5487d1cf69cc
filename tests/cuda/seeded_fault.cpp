// A program that loads a librepdl_cuda.so whose elementwise kernels are compiled with a fault (REPDL_SEEDED_FAULT in
// axes.hpp; its number is the argument): the self-test must refuse the device before one wrong bit is returned. Exit
// status 0: it did.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "librepdl/context.hpp"
#include "librepdl/error.hpp"
#include "librepdl/ops.hpp"

namespace {

using namespace repdl;

// Whether f fails with error_site::self_test and the given words.
template <class F>
bool refused(const char* what, std::string_view words, F&& f) {
  try {
    f();
  } catch (const error& e) {
    std::printf("%s: %s\n", what, e.what());
    return e.site() == error_site::self_test && std::string_view(e.what()).find(words) != std::string_view::npos;
  }
  std::printf("%s: no error\n", what);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string fault = argc == 2 ? argv[1] : "";
  if (fault != "1" && fault != "2") {
    std::printf("expected the number of a fault, 1 or 2\n");
    return 2;
  }
  const std::string_view words = fault == "1" ? "on the CPU 0x" : "CUDA context is lost";
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto library = here / REPDL_LIBDIR_FROM_BINDIR / ("librepdl_cuda_fault_" + fault + ".so");
  setenv("REPDL_CUDA_LIBRARY", library.c_str(), 1);

  const device gpu{device_kind::cuda, 0};
  context ctx({.where = gpu});
  constexpr std::int64_t n = 2 * 3 * 5 * 7;
  const std::vector<float> x(n, -1.0f);
  std::vector<float> y(n, 2.0f);
  auto* const in = static_cast<float*>(ctx.allocate(n * sizeof(float)));
  auto* const out = static_cast<float*>(ctx.allocate(n * sizeof(float)));
  ctx.copy(in, x.data(), n * sizeof(float));
  ctx.copy(out, y.data(), n * sizeof(float));
  // A sum is computed by kernels without the fault: it is right as long as the device is trusted.
  sum(ctx, const_tensor_view(in, {n}, gpu), tensor_view(out, {}, gpu));
  ctx.copy(y.data(), out, sizeof(float));
  bool ok = y[0] == -static_cast<float>(n);
  const const_tensor_view strided(in, dtype::f32, {2, 3, 5, 7}, {1, 2, 6, 30}, gpu);
  ok = refused("first use", words, [&] { relu(ctx, strided, tensor_view(out, {2, 3, 5, 7}, gpu)); }) && ok;
  ok = refused("another operation", words,
               [&] { sum(ctx, const_tensor_view(in, {n}, gpu), tensor_view(out, {}, gpu)); }) &&
       ok;
  if (fault == "1") {
    // Nothing was written: the launch that was asked for never came.
    ctx.copy(y.data(), out, n * sizeof(float));
    ok = ok && y[1] == 2.0f;
    ok = refused("a new context", words, [&] { context another({.where = gpu}); }) && ok;
  }
  std::printf("%s\n", ok ? "refused, as it should be" : "NOT REFUSED");
  return ok ? 0 : 1;
}
