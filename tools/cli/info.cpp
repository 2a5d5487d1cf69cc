// `repdl info`: what this build and this machine have.
#include <cstdio>

#include "librepdl/dynamic.hpp"
#include "tools/cli/arguments.hpp"
#include "tools/cli/commands.hpp"

#ifndef REPDL_BUILD_FLAGS
#define REPDL_BUILD_FLAGS "unknown"
#endif

namespace repdl::tools {
namespace {

void line(const char* label, const std::string& text) { std::printf("%-18s %s\n", label, text.c_str()); }

void print_operations() {
  for (const op_info& op : operations()) {
    std::string attrs;
    for (const attribute_info& a : op.attrs) {
      attrs += " [" + a.name + (a.required ? ", required]" : a.default_text.empty() ? "]" : "=" + a.default_text + "]");
    }
    std::string in;
    for (const operand_info& o : op.in) in += (in.empty() ? "" : ", ") + o.name + (o.optional ? "?" : "");
    std::printf("%-18s (%s)%s  %s\n", op.name.c_str(), in.c_str(), attrs.c_str(), op.formula.c_str());
  }
}

}  // namespace

int run_info(command_arguments raw) {
  const arguments args("info", raw, {{"--operations", false}});
  args.expect_positional(0, 0, "none");
  if (args.has("--operations")) {
    print_operations();
    return 0;
  }
  line("librepdl", std::string(version()) + ", bits version " + std::to_string(bits_version()) + ", " +
                       std::to_string(operations().size()) + " operations");
  std::string why;
  const std::vector<device_info> all = devices(&why);
  std::string backends = "cpu";
#if defined(REPDL_WITH_CUDA)
  backends += ", cuda";
#endif
  line("backends", backends);
  const context ctx;
  for (const isa_info& i : instruction_sets()) {
    line(("isa " + i.name).c_str(), !i.available ? "no" : i.name == ctx.isa() ? "yes, active" : "yes");
  }
  line("threads", std::to_string(ctx.threads()));
  bool gpu = false;
  for (const device_info& d : all) {
    if (d.where.kind != device_kind::cuda) continue;
    line(name_of(d.where).c_str(), d.name);
    gpu = true;
  }
  if (!gpu) line("GPU", "none: " + why);
#if defined(REPDL_WITH_REFERENCE)
  line("oracle", "MPFR/GMP reference built in (sweep, digests --write)");
#else
  line("oracle", "none: built without MPFR (no sweep, no digests --write)");
#endif
#if defined(__clang__)
  line("compiler", "clang " __clang_version__);
#else
  line("compiler", "g++ " __VERSION__);
#endif
  line("flags", REPDL_BUILD_FLAGS);
#if defined(REPDL_KERNEL_FLAGS)
  std::string flags = REPDL_KERNEL_FLAGS;  // "baseline -march=...|avx2 -march=..."
  while (!flags.empty()) {
    const std::size_t bar = std::min(flags.find('|'), flags.size());
    const std::size_t space = std::min(flags.find(' '), bar);
    line((flags.substr(0, space) + " kernels").c_str(), flags.substr(std::min(space + 1, bar), bar - space - 1));
    flags.erase(0, bar + 1);
  }
#endif
  return 0;
}

}  // namespace repdl::tools
