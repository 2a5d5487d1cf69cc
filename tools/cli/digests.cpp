// `repdl digests`: what is committed; completing it for a new operation, and writing it again, from the reference.
#include "reference/digests.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>

#include "reference/exhaustive.hpp"
#include "tools/cli/arguments.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/data_directory.hpp"
#include "tools/cli/output_files.hpp"
#include "tools/cli/progress.hpp"
#include "tools/cli/random_call.hpp"
#if defined(REPDL_WITH_REFERENCE)
#include "reference/attributes.hpp"
#include "reference/digests/known_answers.hpp"
#endif

namespace repdl::tools {
namespace {

using reference::case_line;

std::vector<case_line> read_lines(const std::string& path, const op_info& op) {
  std::ifstream f(path);
  return f ? reference::read_case_lines(f, op, path) : std::vector<case_line>{};
}

void list(const std::string& directory) {
  for (const reference::exhaustive_op& op : reference::exhaustive_ops()) {
    std::ifstream f(directory + "/" + op.file_name());
    const std::string whole = f ? sha256::hex(reference::read_exhaustive(f).whole) : "missing";
    std::printf("%s bits=%d %s,%s all 2^32 inputs -> %s\n", op.name.c_str(), op.bits,
                std::string(name_of(op.from)).c_str(), std::string(name_of(op.to)).c_str(), whole.c_str());
  }
  for (const op_info& op : operations()) {
    const std::vector<case_line> lines = read_lines(reference::case_file(directory, op.name), op);
    for (const case_line& l : lines) std::printf("%s\n", to_text(l).c_str());
    if (lines.empty()) std::printf("%s cases -> missing\n", op.name.c_str());
  }
}

void write_file(const std::string& path, const std::string& text) {
  output_files files;
  const std::string_view piece = text;
  files.add(path, {&piece, 1});
  files.commit();
  std::printf("wrote %s\n", path.c_str());
  std::fflush(stdout);
}

std::string text_of(const std::string& path) {
  std::ifstream f(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(f), {}};
}

/// Adds what no release has published yet to the list of what never changes.
void publish(const std::string& directory) {
  reference::check_published(directory);
  const std::string path = directory + "/published.txt", added = reference::unpublished(directory, version());
  if (!added.empty()) write_file(path, text_of(path) + added);
}

#if defined(REPDL_WITH_REFERENCE)

bool exists(const std::string& path) { return std::ifstream(path).good(); }

/// What is written, and where.
class writer {
 public:
  struct options {
    std::string directory;      ///< of the digests
    std::string known_answers;  ///< the directory of the known answers
    std::string only;           ///< part of a name below them, "cases/exp.txt"
    bool again;                 ///< compute what is there, too
    int threads;
  };
  explicit writer(options o) : o_(std::move(o)) {}

  void write() const {
    for (const op_info& op : operations()) {
      if (wanted("known_answers/" + op.name + ".txt")) write_known_answers(op);
      if (wanted("cases/" + op.name + ".txt")) write_cases(op);
    }
    for (const reference::exhaustive_op& op : reference::exhaustive_ops()) {
      if (wanted(op.file_name())) write_chunks(op);
    }
  }

 private:
  bool wanted(const std::string& name) const { return name.find(o_.only) != std::string::npos; }

  void write_known_answers(const op_info& op) const {
    const ops::elementwise_row* row = reference::elementwise_named(op.name);
    const std::string path = o_.known_answers + "/" + op.name + ".txt";
    if (row == nullptr || (exists(path) && !o_.again)) return;
    std::ifstream f(path);
    write_file(path, f ? reference::known_answers(*row, f, path) : reference::proposed_known_answers(*row));
  }

  void write_cases(const op_info& op) const {
    const std::string path = reference::case_file(o_.directory, op.name);
    std::vector<case_line> lines = read_lines(path, op);
    add_cases(op, lines);
    if (lines.empty()) {
      fail(error_site::file_open, "digests", path, "cases, lines without digests (docs/digests/README.md)", "none");
    }
    progress bar(joined("cases of ", op.name), static_cast<std::int64_t>(lines.size()));
    std::string text;
    for (case_line& l : lines) {
      if (!l.value || o_.again) l.value = reference::digest(l.c, reference::expected(l.c));
      text += to_text(l) + "\n";
      bar.add(1);
    }
    bar.clear();
    if (o_.again || text != text_of(path)) write_file(path, text);
  }

  /// Those of an elementwise operation that are not there, in each format of the operand that has most; of others, if a format has none.
  /// Without operands: of the result.
  static void add_cases(const op_info& op, std::vector<case_line>& lines) {
    const bool elementwise = op.family == "elementwise";
    const auto& operands = op.in.empty() ? op.out : op.in;
    const auto most = std::ranges::max_element(operands, {}, [](const operand_info& o) { return o.types.size(); });
    const auto without_seed = [](reference::digest_case c) {
      c.seed = 0;
      return to_text(c);
    };
    std::set<std::string> there;
    std::set<dtype> formats;
    for (const case_line& l : lines) {
      there.insert(without_seed(l.c));
      formats.insert(l.c.formats.begin(), reference::end_of_operands(op, l.c));
    }
    for (const dtype t : most->types) {
      if (!elementwise && formats.contains(t)) continue;
      for (reference::digest_case& c : elementwise ? reference::proposed_cases(op, t) : proposed_calls(op, t)) {
        if (there.contains(without_seed(c))) continue;
        c.seed = reference::case_seed(c.op, c.formats, lines.size() + 1);
        lines.push_back({std::move(c), {}});
      }
    }
  }

  void write_chunks(const reference::exhaustive_op& op) const {
    const std::string path = o_.directory + "/" + op.file_name();
    if (exists(path) && !o_.again) return;
    progress bar(op.file_name(), reference::chunk_count);
    std::ostringstream text;
    reference::write(text, reference::hash_all(op, reference::oracle_range(op), o_.threads, [&](int) { bar.add(1); }));
    bar.clear();
    write_file(path, text.str());
  }

  options o_;
};

#endif

}  // namespace

int run_digests(command_arguments raw) {
  constexpr std::string_view actions[] = {"--list", "--add", "--write", "--publish"};
  const arguments args("digests", raw,
                       {{"--list", false},
                        {"--add", false},
                        {"--write", false},
                        {"--publish", false},
                        {"--only"},
                        {"--digests"},
                        {"--threads"}});
  args.expect_positional(0, 0, "none");
  if (std::count_if(std::begin(actions), std::end(actions), [&](std::string_view a) { return args.has(a); }) != 1) {
    usage("digests", "arguments", "one of --list, --add, --write, --publish", "none or several");
  }
  const std::string directory(args.value("--digests").value_or(REPDL_SOURCE_DIR "/docs/digests"));
  if (args.has("--list")) {
    list(args.has("--digests") ? directory : data_directory() + "/docs/digests");
  } else if (args.has("--publish")) {
    publish(directory);
  } else {
#if defined(REPDL_WITH_REFERENCE)
    const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
    const int threads = static_cast<int>(args.integer("--threads", cores, 1, max_threads));
    // Known answers are compiled in, so they have a place only in the source tree.
    const std::string known =
        args.has("--digests") ? directory + "/known_answers" : REPDL_SOURCE_DIR "/librepdl/self_test/known_answers";
    writer({directory, known, std::string(args.value("--only").value_or("")), args.has("--write"), threads}).write();
#else
    fail(error_site::no_oracle, "digests", "build", "one with MPFR (-DREPDL_REFERENCE=ON)", "one without");
#endif
  }
  return 0;
}

}  // namespace repdl::tools
