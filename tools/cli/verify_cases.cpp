// The digest cases of `repdl verify`: inputs are regenerated, every variant runs, and every result is hashed and
// compared with the committed digest. At a difference the oracle is asked which element is wrong.
#include <algorithm>
#include <fstream>
#include <optional>
#include <set>

#include "reference/covering.hpp"
#include "reference/digests.hpp"
#include "tools/cli/arrays.hpp"
#include "tools/cli/progress.hpp"
#include "tools/cli/text.hpp"
#include "tools/cli/verify.hpp"

namespace repdl::tools {
namespace {

using reference::array;
using reference::committed_digest;
using reference::digest_case;
using reference::shape_list;

std::string formats_of(const digest_case& c) {
  std::string s;
  for (const dtype t : c.formats) s += joined(s.empty() ? "" : " ", name_of(t));
  return s;
}

/// What the results should be, and who says so.
struct truth {
  std::vector<array> outputs;
  std::string source;
};

std::vector<array> run(const digest_case& c, const std::vector<array>& in, variant& v) {
  const stopwatch clock;
  std::vector<array> out = call_on_arrays(*v.ctx, *find(c.op), in, c.attrs);
  v.seconds += clock.seconds();
  return out;
}

/// From the oracle; in a build without it, from a variant whose results have the committed digest.
std::optional<truth> find_truth(const committed_digest& d, const std::vector<array>& in,
                                std::vector<variant>& variants) {
#if defined(REPDL_WITH_REFERENCE)
  static_cast<void>(in);
  static_cast<void>(variants);
  return truth{reference::expected(d.c), "the reference"};
#else
  for (variant& v : variants) {
    std::vector<array> out = run(d.c, in, v);
    if (reference::digest(d.c, out) == d.value) return truth{std::move(out), v.label};
  }
  return std::nullopt;
#endif
}

/// The report on a difference: the first wrong element, or that the file is wrong.
[[noreturn]] void report(const std::string& file, const committed_digest& d, const variant& v,
                         const std::vector<array>& in, const std::vector<array>& got, std::vector<variant>& variants) {
  const std::string where = joined("case: ", reference::to_text(d.c), "\n");
  const std::optional<truth> t = find_truth(d, in, variants);
  for (std::size_t o = 0; t && o < got.size(); ++o) {
    const array& g = got[o];
    const array& e = t->outputs[o];
    for (std::size_t i = 0; i < static_cast<std::size_t>(g.count()); ++i) {
      if (g.get(i) == e.get(i)) continue;
      throw mismatch(
          joined("MISMATCH ", d.c.op, " ", formats_of(d.c), ", ", v.label, "\n", where, "element ", std::to_string(i),
                 " of ", std::to_string(g.count()), ", shape ", to_string(sizes_of(g.shape)),
                 "\n  inputs:   ", operand_text(*find(d.c.op), d.c.attrs, in, g.shape, static_cast<std::int64_t>(i)),
                 "\n  got:      ", describe_bits(g.type, g.get(i)), "\n  expected: ", describe_bits(e.type, e.get(i)),
                 ", says ", t->source, "\n"));
    }
  }
  throw mismatch(
      joined("MISMATCH ", file, "\n", where, "  committed: ", sha256::hex(d.value),
             "\n  got:       ", sha256::hex(reference::digest(d.c, got)), " (", v.label, ")\n",
             t ? joined("every element is that of ", t->source, ": the committed digest is wrong, not the result\n")
               : "no instruction set has the committed digest; a build with MPFR can name the element\n"));
}

}  // namespace

bool is_slow(const digest_case& c, const std::vector<array>& in, tier first) {
  const op_info& op = *find(c.op);
  if (op.family == "elementwise")
    return first > tier::binary64 && in[0].count() > 4096 &&
           (in[0].type == dtype::f64 ? op.proof.find("run-time") != std::string::npos
                                     : op.proof.starts_with("run-time"));
  if (first != tier::exact) return false;
  if (op.family == "loss" && op.proof.find("multi-limb") != std::string::npos) {
    return std::any_of(in.begin(), in.end(), [](const array& a) { return a.count() > 1024; });
  }
  return (op.family == "softmax" || op.name == "logcumsumexp") && in[0].count() > 1024;
}

std::string row_name(const digest_case& c) { return joined(c.op, "|", formats_of(c)); }

std::vector<committed_digest> read_cases(const std::string& directory, const op_info& op) {
  const std::string path = reference::case_file(directory, op.name);
  std::ifstream f(path);
  if (!f) fail(error_site::file_open, "verify", path, "a digest file", "none");
  try {
    return reference::read_cases(f, op, path);
  } catch (const std::runtime_error& e) {
    throw mismatch(joined("MISMATCH ", e.what(), "\n"));
  }
}

void verify_cases(const verify_options& options, std::vector<variant>& variants, verify_table& table) {
  std::vector<committed_digest> committed;
  for (const op_info& op : operations()) {
    if (!options.wants(op.name)) continue;
    const std::vector<committed_digest> cases = read_cases(options.digests, op);
    committed.insert(committed.end(), cases.begin(), cases.end());
  }
  std::map<std::string, std::set<reference::sample_class>> classes;
  // --quick: every case as it is on every instruction set; of the other threads and forced tiers every one for every
  // operation, and an eighth for each case.
  reference::covering quick(8);
  progress bar("cases", static_cast<std::int64_t>(committed.size()));
  for (const committed_digest& d : committed) {
    bar.add(1, d.c.op);
    const std::vector<array> in = reference::inputs(d.c);
    const std::string name = row_name(d.c);
    verify_row& row = table.at(name);
    ++row.cases;
    classes[name].insert(d.c.kind);
    row.classes = static_cast<std::int64_t>(classes[name].size());
    std::optional<std::vector<array>> confirmed;  // has the committed digest
    int setting = 0;
    for (variant& v : variants) {
      ++setting;
      if (options.quick && is_slow(d.c, in, v.options.first_tier)) continue;
      const bool as_it_is = v.options.first_tier == tier::proved && v.options.threads <= 1;
      if (options.quick && !as_it_is && !quick.takes(setting, {find(d.c.op)->id})) continue;
      std::vector<array> out = run(d.c, in, v);
      for (array& a : out) {
        v.elements += a.count();
        row.elements += a.count();
        if (options.flip >= 0 && a.count() > 0) {
          const auto i = static_cast<std::size_t>(options.flip % a.count());
          a.set(i, a.get(i) ^ 1);
        }
      }
      ++v.runs;
      ++row.runs;
      if (confirmed && out == *confirmed) continue;
      if (reference::digest(d.c, out) != d.value) {
        report(reference::case_file(options.digests, d.c.op), d, v, in, out, variants);
      }
      confirmed = std::move(out);
    }
  }
}

}  // namespace repdl::tools
