// The command line: finds the command, runs it, and turns an error into one line on stderr.
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "librepdl/dynamic.hpp"
#include "librepdl/error.hpp"
#include "tools/cli/arguments.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/demo.hpp"

namespace repdl::tools {
namespace {

constexpr std::string_view program = "repdl";

int run_help(command_arguments args);
int run_version(command_arguments args);

struct command {
  std::string_view name;
  int (*run)(command_arguments);
  std::string_view synopsis;
  std::string_view text;
};

constexpr command commands[] = {
    {"demo", run_demo,
     "demo [--quick] [--backend cpu|cuda] [--isa NAME] [--threads N] [--epochs N] [--save FILE] [--resume FILE]\n"
     "       [--no-contrast]",
     "what the library promises, shown on this machine, in about 4 minutes on two cores; --quick, 1.5 minutes: the\n"
     "      backends and instruction sets hand on one training, and do not do one each"},
#if !defined(REPDL_DEMO_ONLY)
    {"info", run_info, "info [--operations]", "version, backends, instruction sets, GPUs, build; or all operations"},
    {"eval", run_eval,
     "eval OP IN.npy... -o OUT.npy [--attr NAME=VALUE]... [--dtype f16|bf16|f32|f64]\n"
     "       [--backend cpu|cuda] [--isa NAME] [--threads N]",
     "an operation on NumPy files; <u2 and <V2 are bf16, -o - standard output"},
    {"verify", run_verify,
     "verify [--quick] [OP]... [--part cases|layouts|chunks] [--engine NAME] [--threads N] [--digests DIR]\n"
     "       verify --self-test",
     "every operation, instruction set, thread count, tier, GPU and layout against the committed digests;\n"
     "      --self-test: what each kernel of the GPUs is tested with before its first use"},
    {"sweep", run_sweep,
     "sweep OP [--exhaustive] [--compare-only] [--count N] [--seed N] [--json]\n"
     "       [--backend cpu|cuda] [--isa NAME] [--threads N]",
     "compare an operation with MPFR;\n"
     "      --compare-only: with functions of long double where these decide, many times as fast, without ties and "
     "hardest cases"},
    {"fuzz", run_fuzz, "fuzz [--seconds N] [--count N] [--seed N] [--op OP] [--call N]",
     "random calls of every operation in every layout, on two devices or instruction sets, bit for bit;\n"
     "      --call: this call of the seed alone"},
    {"digests", run_digests, "digests --list|--add|--write|--publish [--only TEXT] [--digests DIR] [--threads N]",
     "the committed digests and known answers; they are written from the MPFR/GMP reference only.\n"
     "      --add: those that are missing (--only: in files whose names have TEXT in them); --write: all, again;\n"
     "      --publish: a release says that what is there never changes"},
    {"cases", run_cases, "cases [OP]... [--every N] [--digests DIR]",
     "the published cases for tests of bindings and ports, on standard output: for each a line of JSON (operation,\n"
     "      attributes, types and shapes of the inputs, header and digest of the results), then the inputs' bytes;\n"
     "      --every: an operation's first, and every N-th after it"},
    {"docs", run_docs, "docs --write|--check|--json [--root DIR]",
     "the tables of docs/operations.md and README.md; --json: what they are made of"},
#endif
    {"help", run_help, "help [COMMAND]", "this text, or a command's, as COMMAND --help"},
    {"version", run_version, "version", "the library's version and that of its bits, as --version"},
};

[[noreturn]] void no_such_command(std::string_view op, std::string_view got) {
  std::string names;
  for (const command& c : commands) names += (names.empty() ? "" : ", ") + std::string(c.name);
  usage(op, "command", "one of " + names, got);
}

const command& command_named(std::string_view op, std::string_view name) {
  for (const command& c : commands) {
    if (c.name == name) return c;
  }
  no_such_command(op, in_quotes(name));
}

void print(const command& c) {
  std::printf("  repdl %.*s\n      %.*s\n", static_cast<int>(c.synopsis.size()), c.synopsis.data(),
              static_cast<int>(c.text.size()), c.text.data());
}

int run_help(command_arguments raw) {
  const arguments args("help", raw, {});
  args.expect_positional(0, 1, "at most one command");
  const bool all = args.positional().empty();
  const command* one = all ? nullptr : &command_named("help", args.positional()[0]);
  std::printf("usage: repdl COMMAND [ARGUMENT]...\n\n");
  for (const command& c : commands) {
    if (all || &c == one) print(c);
  }
  std::printf("\nExit status: 0 success, 1 a difference was found, 2 an error (one line on stderr).\n");
  return 0;
}

int run_version(command_arguments raw) {
  const arguments args("version", raw, {});
  args.expect_positional(0, 0, "none");
  std::printf("repdl %s, bits version %d\n", std::string(version()).c_str(), bits_version());
  return 0;
}

int run(command_arguments args) {
  if (args.empty()) no_such_command(program, "none");
  std::string_view name = args[0];
  if (name == "--help" || name == "-h") name = "help";
  if (name == "--version") name = "version";
  int status = 0;
  try {
    status = command_named(program, name).run(args.subspan(1));
  } catch (const help_requested& h) {
    status = run_help({&h.command, 1});
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fail(error_site::file_write, program, "stdout", "a place to write", "an error");
  }
  return status;
}

int report(std::string message) {
  // One line whatever a file name holds.
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  // What the program itself says names it already.
  const bool named = message.starts_with(joined(program, ": "));
  std::fflush(stdout);
  std::fprintf(stderr, "%s%s\n", named ? "" : "repdl: ", message.c_str());
  return exit_error;
}

}  // namespace

int command_line(command_arguments args) {
  try {
    return run(args);
  } catch (const std::bad_alloc&) {
    return report("memory: expected enough for the tensors, got none");
  } catch (const std::exception& e) {
    return report(e.what());
  }
}

}  // namespace repdl::tools
