// `repdl docs`: the tables of operations in docs/operations.md and README.md, made from operations(); and operations() as
// JSON, for scripts.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "tools/cli/arguments.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/output_files.hpp"

namespace repdl::tools {
namespace {

constexpr std::string_view begin_mark = "<!-- operations:begin -->";
constexpr std::string_view end_mark = "<!-- operations:end -->";

std::string escaped(std::string_view text) {
  std::string s;
  for (const char c : text) {
    if (c == '|') s += '\\';
    s += c;
  }
  return s;
}

std::string code(std::string_view text) { return text.empty() ? "" : "`" + escaped(text) + "`"; }

std::string types_of(const std::vector<dtype>& types) {
  std::string s;
  for (const dtype t : types) s += (s.empty() ? "" : " ") + std::string(name_of(t));
  return s;
}

/// of_norm: weights, biases and running statistics may have a format of their own.
std::string operands_of(const std::vector<operand_info>& all, bool of_norm) {
  std::string s;
  for (const operand_info& o : all) {
    const bool own =
        of_norm && o.types.size() > 2 && (o.name == "weight" || o.name == "bias" || o.name.starts_with("running_"));
    s += (s.empty() ? "" : ", ") + o.name + ": " + (own ? "as x or f32" : types_of(o.types)) +
         (o.optional ? " (optional)" : "");
  }
  return s.empty() ? "none" : s;
}

std::string attributes_text(const op_info& op) {
  std::string s;
  for (const attribute_info& a : op.attrs) {
    s += (s.empty() ? "" : ", ") + code(a.name + (a.default_text.empty() ? "" : "=" + a.default_text));
  }
  return s;
}

/// One row per operation.
std::string summary_table() {
  std::string s =
      "| Operation | Exact result, rounded once | Inputs | Outputs | Attributes | Why the bits are right |\n"
      "|---|---|---|---|---|---|\n";
  for (const op_info& op : operations()) {
    s += "| " + code(op.name) + " | " + code(op.formula) + " | " + operands_of(op.in, op.family == "norm") + " | " +
         operands_of(op.out, op.family == "norm") + " | " + attributes_text(op) + " | " + escaped(op.proof) + " |\n";
  }
  return s;
}

/// For the README: one row per family.
std::string family_table() {
  std::string s = "| Family | Operations |\n|---|---|\n";
  std::vector<std::string_view> families;
  for (const op_info& op : operations()) {
    if (std::find(families.begin(), families.end(), op.family) == families.end()) families.push_back(op.family);
  }
  for (const std::string_view family : families) {
    std::string names;
    for (const op_info& op : operations()) {
      if (op.family == family) names += (names.empty() ? "" : ", ") + code(op.name);
    }
    s += "| " + std::string(family) + " | " + names + " |\n";
  }
  return s + "\nFormulas, operands and attributes: [docs/operations.md](docs/operations.md).\n";
}

std::string operations_page() {
  std::ostringstream s;
  s << "# Operations\n\nWritten by `repdl docs --write` from the op registry; do not edit. Bits version "
    << bits_version() << ".\n\nEvery floating-point output element is the correctly rounded value of the exact result. "
    << "Formats: f16, bf16, f32, f64 (IEEE 754 binary16, bfloat16, binary32, binary64), i64, i32, bool, "
       "and, for conversions alone, f8_e4m3fn and f8_e5m2. "
    << "Attribute names are those of `repdl eval --attr NAME=VALUE`.\n\n"
    << summary_table();
  for (const op_info& op : operations()) {
    if (op.attrs.empty()) continue;
    s << "\n## " << op.name << "\n\n";
    for (const attribute_info& a : op.attrs) {
      s << "- `" << a.name << "`: " << a.doc;
      if (!a.default_text.empty()) s << " (default `" << a.default_text << "`)";
      if (a.required) s << " (required by `eval`)";
      s << "\n";
    }
  }
  return s.str();
}

nlohmann::ordered_json operands_json(const std::vector<operand_info>& all) {
  auto list = nlohmann::ordered_json::array();
  for (const operand_info& o : all) {
    std::vector<std::string> types;
    for (const dtype t : o.types) types.emplace_back(name_of(t));
    list.push_back({{"name", o.name}, {"types", types}, {"optional", o.optional}});
  }
  return list;
}

std::string registry_json() {
  static constexpr const char* kinds[] = {"boolean", "integer", "real", "text", "integers"};
  auto all = nlohmann::ordered_json::array();
  for (const op_info& op : operations()) {
    auto attrs = nlohmann::ordered_json::array();
    for (const attribute_info& a : op.attrs) {
      attrs.push_back({{"name", a.name},
                       {"kind", kinds[static_cast<int>(a.kind)]},
                       {"default", a.default_text},
                       {"doc", a.doc},
                       {"required", a.required}});
    }
    all.push_back({{"name", op.name},
                   {"family", op.family},
                   {"formula", op.formula},
                   {"proof", op.proof},
                   {"bits", op.bits},
                   {"inputs", operands_json(op.in)},
                   {"outputs", operands_json(op.out)},
                   {"attributes", attrs}});
  }
  return all.dump(1);
}

std::string slurp(const std::string& path) {
  std::ifstream f(path, std::ios::binary);
  if (!f) fail(error_site::file_open, "docs", path, "a readable file", "none");
  return {std::istreambuf_iterator<char>(f), {}};
}

/// The README with the table between its markers; the same text if it has none.
std::string with_table(const std::string& path, std::string text) {
  const std::size_t begin = text.find(begin_mark);
  const std::size_t end = text.find(end_mark);
  if (begin == std::string::npos && end == std::string::npos) return text;
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    fail(error_site::usage, "docs", path, "both markers, " + std::string(begin_mark) + " first", "another arrangement");
  }
  const std::size_t inside = begin + begin_mark.size();
  return text.replace(inside, end - inside, "\n" + family_table());
}

}  // namespace

int run_docs(command_arguments raw) {
  const arguments args("docs", raw, {{"--write", false}, {"--check", false}, {"--json", false}, {"--root"}});
  args.expect_positional(0, 0, "none");
  if (args.has("--write") + args.has("--check") + args.has("--json") != 1) {
    usage("docs", "arguments", "one of --write, --check and --json", "none or several");
  }
  if (args.has("--json")) {
    std::puts(registry_json().c_str());
    return 0;
  }
  const std::string root = std::string(args.value("--root").value_or(REPDL_SOURCE_DIR)) + "/";
  const std::string page = root + "docs/operations.md";
  const std::string readme = root + "README.md";
  const std::string page_text = operations_page();
  const std::string readme_text = with_table(readme, slurp(readme));
  if (args.has("--write")) {
    output_files files;
    for (const auto& [path, text] : {std::pair{page, page_text}, std::pair{readme, readme_text}}) {
      const std::string_view piece = text;
      files.add(path, {&piece, 1});
    }
    files.commit();
    return 0;
  }
  int status = 0;
  for (const auto& [path, text] : {std::pair{page, page_text}, std::pair{readme, readme_text}}) {
    if (slurp(path) == text) continue;
    std::printf("%s is stale: run repdl docs --write\n", path.c_str());
    status = exit_mismatch;
  }
  return status;
}

}  // namespace repdl::tools
