// `repdl digests`: the list of what is committed, and writing it again from the reference.
#include "reference/digests.hpp"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "reference/exhaustive.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/data_directory.hpp"
#include "tools/output_files.hpp"
#include "tools/progress.hpp"
#if defined(REPDL_WITH_REFERENCE)
#include "reference/known_answers.hpp"
#endif

namespace repdl::tools {
namespace {

void list(const std::string& directory) {
  for (const reference::exhaustive_op& op : reference::exhaustive_ops()) {
    std::ifstream f(directory + "/" + op.file_name());
    const std::string whole = f ? sha256::hex(reference::read_exhaustive(f).whole) : "missing";
    std::printf("%s bits=%d %s,%s all 2^32 inputs -> %s\n", op.name.c_str(), op.bits,
                std::string(name_of(op.from)).c_str(), std::string(name_of(op.to)).c_str(), whole.c_str());
  }
  std::ifstream f(directory + "/cases.txt");
  std::vector<reference::committed_digest> committed;
  if (f) committed = reference::read_digests(f);
  std::size_t i = 0;
  for (const reference::digest_case& c : reference::digest_cases()) {
    const std::string text = reference::to_text(c);
    const bool there = i < committed.size() && reference::to_text(committed[i].c) == text;
    std::printf("%s -> %s\n", text.c_str(), there ? sha256::hex(committed[i].value).c_str() : "missing");
    i += there ? 1 : 0;
  }
}

#if defined(REPDL_WITH_REFERENCE)

void write_file(const std::string& path, const std::string& text) {
  output_files files;
  const std::string_view piece = text;
  files.add(path, {&piece, 1});
  files.commit();
  std::printf("wrote %s\n", path.c_str());
  std::fflush(stdout);
}

void write(const std::string& directory, const std::string& known_answers, std::string_view only, int threads) {
  const auto wanted = [&](const std::string& name) { return name.find(only) != std::string::npos; };
  if (wanted("known_answers.def")) write_file(known_answers, reference::known_answers());
  if (wanted("cases.txt")) {
    progress bar("cases", static_cast<std::int64_t>(reference::digest_cases().size()));
    std::ostringstream text;
    reference::write_digests(text, [&](std::size_t, std::size_t) { bar.add(1); });
    bar.clear();
    write_file(directory + "/cases.txt", text.str());
  }
  for (const reference::exhaustive_op& op : reference::exhaustive_ops()) {
    if (!wanted(op.file_name())) continue;
    progress bar(op.file_name(), reference::chunk_count);
    std::ostringstream text;
    reference::write(text, reference::hash_all(op, reference::oracle_range(op), threads, [&](int) { bar.add(1); }));
    bar.clear();
    write_file(directory + "/" + op.file_name(), text.str());
  }
}

#else

void write(const std::string&, const std::string&, std::string_view, int) {
  fail(error_site::no_oracle, "digests", "build", "one with MPFR (-DREPDL_REFERENCE=ON)", "one without");
}

#endif

}  // namespace

int run_digests(command_arguments raw) {
  const arguments args("digests", raw,
                       {{"--list", false}, {"--write", false}, {"--only"}, {"--digests"}, {"--threads"}});
  args.expect_positional(0, 0, "none");
  if (args.has("--list") == args.has("--write")) usage("digests", "arguments", "--list or --write", "both or neither");
  const std::string directory(args.value("--digests").value_or(REPDL_SOURCE_DIR "/docs/digests"));
  if (args.has("--list")) {
    list(args.has("--digests") ? directory : data_directory() + "/docs/digests");
    return 0;
  }
  const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = static_cast<int>(args.integer("--threads", cores, 1, max_threads));
  // Known answers are compiled in, so they have a place only in the source tree.
  const std::string known = args.has("--digests") ? directory + "/known_answers.def"
                                                  : REPDL_SOURCE_DIR "/librepdl/dispatch/known_answers.def";
  write(directory, known, args.value("--only").value_or(""), threads);
  return 0;
}

}  // namespace repdl::tools
