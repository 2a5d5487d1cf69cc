// `repdl verify --self-test`: what every GPU's kernels are tested with before their first use, all at once.
#include <algorithm>
#include <cstdio>

#include "librepdl/api/context_impl.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/verify.hpp"

namespace repdl::tools {
namespace {

bool test_device(const device_info& d) {
  context ctx({.where = d.where});
  const dispatch::kernel_report report = context_access::of(ctx).executor->test_kernels();
  std::printf("%s, %s: ready for the first context in %.1f ms\n\n", name_of(d.where).c_str(), d.name.c_str(),
              report.preparation);
  std::printf("%-24s %-12s %7s %8s %9s %14s %11s\n", "operation", "formats", "groups", "kernels", "ms", "slowest group",
              "loading ms");
  double total = 0;
  double slowest = 0;
  double loading = 0;
  for (const dispatch::kernel_report::line& l : report.lines) {
    const std::string formats = std::string(name_of(l.what.in)) + " " + std::string(name_of(l.what.out));
    std::printf("%-24s %-12s %7d %8d %9.3f %14.3f %11.3f\n", std::string(l.what.name()).c_str(), formats.c_str(),
                l.groups, l.kernels, l.milliseconds, l.slowest_group, l.loading);
    total += l.milliseconds;
    slowest = std::max(slowest, l.milliseconds);
    loading += l.loading;
  }
  std::printf(
      "\nself-test: %d kernels, %zu that no test reaches, %.1f ms in all, at most %.3f ms an operation, %.1f ms "
      "loading\n",
      report.kernels, report.unreached.size(), total, slowest, loading);
  for (const std::string& name : report.unreached) std::printf("  not reached: %s\n", name.c_str());
  return report.unreached.empty();
}

}  // namespace

int verify_kernels() {
  std::string why;
  bool all_reached = true;
  int gpus = 0;
  for (const device_info& d : devices(&why)) {
    if (d.where.kind != device_kind::cuda) continue;
    ++gpus;
    all_reached = test_device(d) && all_reached;
  }
  if (gpus == 0) std::printf("not here: CUDA (%s)\n", why.c_str());
  return all_reached ? 0 : exit_mismatch;
}

}  // namespace repdl::tools
