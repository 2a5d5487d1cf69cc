// The files of docs/digests: what they must look like, that what is published never changes, and the rules by which new
// cases and known answers are made.
#include "reference/digests.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "reference/attributes.hpp"
#include "reference/digests/known_answers.hpp"
#include "reference/elementwise/elementwise.hpp"
#include "reference/exhaustive.hpp"
#include "tools/cli/scratch_directory.hpp"

namespace {

using namespace repdl;
using namespace repdl::reference;
namespace files = std::filesystem;

const std::string directory = REPDL_SOURCE_DIR "/docs/digests";
const std::string answers = REPDL_SOURCE_DIR "/librepdl/self_test/known_answers/";

std::string text_of(const std::string& path) {
  std::ifstream f(path, std::ios::binary);
  REQUIRE_MESSAGE(f, path);
  return {std::istreambuf_iterator<char>(f), {}};
}
void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
sha256::digest hash_of(const std::string& text) { return sha256::of(text.data(), text.size()); }

/// The message of a call that throws, or nothing.
template <class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

std::string read(const std::string& op, const std::string& text) {
  return message([&] {
    std::istringstream in(text);
    read_cases(in, *find(op), "FILE");
  });
}

TEST_SUITE_BEGIN("portable values");

TEST_CASE("digests: every operation has its cases, and every file is an operation's") {
  std::set<std::string> names;
  for (const op_info& op : operations()) {
    names.insert(op.name + ".txt");
    const std::vector<committed_digest> cases = read_cases(directory, op);
    std::string text;
    for (const committed_digest& d : cases) text += to_text(case_line{d.c, d.value}) + "\n";
    CHECK_MESSAGE(text == text_of(case_file(directory, op.name)), op.name);
  }
  for (const auto& entry : files::directory_iterator(directory + "/cases"))
    CHECK_MESSAGE(names.contains(entry.path().filename().string()), entry.path().string());
}

TEST_CASE("digests: a malformed line is an error that names file and line") {
  const std::string good = "exp bits=1 f32,f32 uniform_patterns 7 seed=3 -> " + std::string(64, '0');
  CHECK(read("exp", good + "\n") == "");
  struct fault {
    std::string text, replaced, expected;
  };
  const std::string digest(64, '0');
  const fault faults[] = {
      {" -> ", " - ", "line: expected CASE -> DIGEST"},
      {"-> 0", "-> g", "not 64 hexadecimal digits"},
      {digest, digest + "0", "not 64 hexadecimal digits"},
      {digest, "?", "digest: expected 64 hexadecimal digits (repdl digests --add), got '?'"},
      {" seed=3", "", "case: expected OP bits=N FORMATS CLASS SHAPES seed=N NAME=VALUE..."},
      {"exp ", "log ", "operation: expected exp, got 'log'"},
      {"bits=1", "bit=1", "bits: expected bits=1, got 'bit=1'"},
      {"bits=1", "bits=2", "bits: expected bits=1, got 'bits=2'"},
      {"f32,f32", "f32,f31", "no format is named f31"},
      {"f32,f32", "f32", "formats: expected f32,f32, got 'f32'"},
      {"f32,f32", "f32,f64", "formats: expected f32,f32, got 'f32,f64'"},
      {"f32,f32", "i64,f32", "exp: x: expected f16, bf16, f32 or f64, got i64"},
      {"uniform_", "even_", "no sample class is named even_patterns"},
      {" 7 ", " 7y ", "shapes: expected -, or shapes like 5x1x33, scalar, absent, got '7y'"},
      {" 7 ", " 7, ", "shapes: expected -, or shapes like 5x1x33, scalar, absent, got '7,'"},
      {" 7 ", " - ", "exp: inputs: expected 1 (x), got 0"},
      {" 7 ", " -7 ", "shape: expected sizes >= 0, got [-7]"},
      {" 7 ", " absent ", "exp: x: expected a tensor"},
      {"seed=3", "sed=3", "seed: expected seed=N, got 'sed=3'"},
      {"seed=3", "seed=x", "seed: expected seed=N, got 'seed=x'"},
      {"seed=3", "seed=18446744073709551616", "seed: expected seed=N"},
      {"seed=3", "seed=?", "seed: expected seed=N, got 'seed=?'"},
      {"seed=3", "seed=03", "line: expected '" + good + "', got"},
      {"seed=3", "seed=3 axis", "attribute: expected NAME=VALUE, got 'axis'"},
      {"seed=3", "seed=3 axis=1", "exp: axis: expected an attribute of exp (none), got 'axis'"},
      {"exp ", "exp  ", "bits: expected bits=1, got ''"},
  };
  for (const fault& f : faults) {
    std::string text = good;
    text.replace(text.find(f.text), f.text.size(), f.replaced);
    const std::string got = read("exp", (good + "\n").append(text).append("\n"));
    CHECK_MESSAGE(got.starts_with("FILE:2: "), f.replaced, ": ", got);
    CHECK_MESSAGE(got.find(f.expected) != std::string::npos, f.replaced, ": ", got);
  }
  CHECK(read("exp", "") == "FILE: expected cases of exp, got none");
  CHECK(read("exp", good + "\n\n").starts_with("FILE:2: line: expected CASE -> DIGEST, got ''"));
  CHECK(
      read("softmax", "softmax bits=1 f32,f32 zeros 4x5 seed=1 axis=5 -> " + digest).find("FILE:1: softmax: axis: ") ==
      0);
  CHECK(read("softmax", "softmax bits=1 f32,f32 zeros 4x5 seed=1 axis=h3ff0000000000000 -> " + digest)
            .find("FILE:1: softmax: axis: expected an integer") == 0);
  CHECK(message([] { read_cases("/nowhere", *find("exp")); }) ==
        "/nowhere/cases/exp.txt: expected cases of exp, got no file");
}

TEST_CASE("digests: lines to be completed") {
  std::istringstream in(
      "softmax bits=1 f32,f32 zeros 4x5 seed=7 axis=0 -> " + std::string(64, '1') +
      "\nsoftmax bits=1 f32,f32 zeros 4x5 seed=? axis=0 -> ?\nsoftmax bits=1 f32,f32 ties 4x5 seed=9 axis=-1 -> ?\n");
  const std::vector<case_line> lines = read_case_lines(in, *find("softmax"), "FILE");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].value.has_value());
  CHECK(!lines[1].value);
  CHECK(lines[1].c.seed == case_seed("softmax", {dtype::f32, dtype::f32}, 2));
  CHECK(to_text(lines[2]) == "softmax bits=1 f32,f32 ties 4x5 seed=9 axis=-1 -> ?");
  // Real numbers by hand.
  std::istringstream step("sgd bits=1 f32,f32,f32 zeros 4,4 seed=? lr=0.1 -> ?\n");
  CHECK(to_text(read_case_lines(step, *find("sgd"), "FILE").at(0)) ==
        "sgd bits=1 f32,f32,f32 zeros 4,4 seed=" +
            std::to_string(case_seed("sgd", {dtype::f32, dtype::f32, dtype::f32}, 1)) + " lr=h3fb999999999999a -> ?");
}

TEST_CASE("digests: seeds are hashes of operation, formats and line") {
  // printf 'pow|f32,f32,f32|1' | sha256sum
  CHECK(case_seed("pow", {dtype::f32, dtype::f32, dtype::f32}, 1) == 0xcd1574be2d111d63);
  CHECK(case_seed("exp", {dtype::f16, dtype::f16}, 2) == 0xf3dc7ca5eece858e);
  // Every line after those of release 0.1.1 has its own.
  std::map<std::string, std::size_t> first;
  std::istringstream published(text_of(directory + "/published.txt"));
  for (std::string release, file, lines, hash; published >> release >> file >> lines >> hash;)
    if (release == "0.1.1") first[file] = std::stoul(lines);
  for (const op_info& op : operations()) {
    const std::vector<committed_digest> cases = read_cases(directory, op);
    for (std::size_t i = first["cases/" + op.name + ".txt"]; i < cases.size(); ++i) {
      const digest_case& c = cases[i].c;
      CHECK_MESSAGE(c.seed == case_seed(c.op, c.formats, i + 1), to_text(c));
    }
  }
}

TEST_CASE("digests: published lines never change") {
  CHECK(message([] { check_published(directory); }) == "");
  // What 0.1.1 published: the list itself.
  std::istringstream published(text_of(directory + "/published.txt"));
  std::string first;
  std::size_t cases = 0;
  for (std::string line; std::getline(published, line);) {
    if (!line.starts_with("0.1.1 ")) continue;
    first += line + "\n";
    std::istringstream words(line);
    std::string release, file;
    std::size_t lines = 0;
    words >> release >> file >> lines;
    if (file.starts_with("cases/")) cases += lines;
  }
  CHECK(cases == 3128);
  CHECK(sha256::hex(hash_of(first)) == "efc632d0cfce193d9fb01bbedd3d35b6666ac6d106bbba6d559c8be84d7cf150");

  const tools::scratch_directory scratch;
  const std::string copy = scratch.file("digests"), file = copy + "/cases/dot.txt";
  files::copy(directory, copy, files::copy_options::recursive);
  std::string original = text_of(file);  // but for what was added since
  std::size_t end = 0;
  for (int i = 0; i < 67; ++i) end = original.find('\n', end) + 1;
  original.resize(end);
  const std::string line = original.substr(0, original.find('\n') + 1);
  const std::string other = line.substr(0, line.size() - 2) + (line[line.size() - 2] == '0' ? "1\n" : "0\n");
  const std::string start = file + ": expected to begin with the 67 lines that release 0.1.1 published, got ";
  const auto checked = [&](const std::string& text) {
    write(file, text);
    return message([&] { check_published(copy); });
  };
  CHECK(checked(original + line) == "");
  CHECK(checked(line + original) == start + "other ones");
  CHECK(checked(other + original.substr(line.size())) == start + "other ones");
  CHECK(checked(original.substr(line.size())) == start + "66 lines");
  CHECK(checked(original.substr(line.size()) + line) == start + "other ones");
  CHECK(checked(original.substr(0, original.size() - 1)) == start + "other ones");
  files::remove(file);
  CHECK(message([&] { check_published(copy); }) == start + "0 lines");
  // The next release adds its lines, and nothing else.
  const std::string before = unpublished(copy, "9.9.9");
  write(file, original + line);
  write(copy + "/cases/toy.txt", line);
  const std::string after = unpublished(copy, "9.9.9");
  for (const std::string& added : {"9.9.9 cases/dot.txt 68 " + sha256::hex(hash_of(original + line)) + "\n",
                                   "9.9.9 cases/toy.txt 1 " + sha256::hex(hash_of(line)) + "\n"}) {
    CHECK(before.find(added) == std::string::npos);
    CHECK(after.find(added) != std::string::npos);
  }
  CHECK(before.find("dot.txt") == std::string::npos);
  write(copy + "/published.txt", text_of(directory + "/published.txt") + unpublished(copy, "9.9.9"));
  CHECK(unpublished(copy, "9.9.9") == "");
  CHECK(checked(original + other).ends_with("the 68 lines that release 9.9.9 published, got other ones"));

  for (const char* text : {"0.1.1 a.txt 3\n", "0.1.1 a.txt x 00\n", "0.1.1 a.txt 3 00 more\n", "\n"}) {
    write(copy + "/published.txt", text);
    CHECK(message([&] { check_published(copy); }).starts_with(copy + "/published.txt:1: expected RELEASE FILE LINES "));
  }
  write(copy + "/published.txt", "0.1.1 cases/dot.txt 1 00\n");
  CHECK(message([&] { check_published(copy); }).find("not 64 hexadecimal digits") != std::string::npos);
  files::remove(copy + "/published.txt");
  CHECK(message([&] { check_published(copy); }) == copy + "/published.txt: expected a file, got none");
}

TEST_CASE("digests: the rule proposes the published cases of the elementwise operations") {
  for (const ops::elementwise_row& row : ops::elementwise_rows()) {
    const op_info& op = *find(row.name);
    std::vector<committed_digest> published = read_cases(directory, op);
    std::set<std::string> there;
    for (committed_digest& d : published) {
      d.c.seed = 0;
      there.insert(to_text(d.c));
    }
    for (const dtype t : op.in[static_cast<std::size_t>(row.leading())].types) {
      for (const digest_case& c : proposed_cases(op, t)) CHECK_MESSAGE(there.contains(to_text(c)), to_text(c));
    }
  }
}

// An operation that does not exist: it gives f32 for every format and takes no negative slope.
std::vector<dtype> toy_call(const op_info& op, std::vector<dtype> in, const std::vector<shape_list>&,
                            const attributes& attrs) {
  if (attribute_or(attrs, "slope", 1.0) < 0) fail(error_site::attribute_value, op.name, "slope", ">= 0", "< 0");
  in.push_back(dtype::f32);
  return in;
}

TEST_CASE("digests: the rule for any number of operands, formats and attributes") {
  op_info op{"toy", 0, 3, "elementwise", "", "", {{"x", {dtype::f16, dtype::f32, dtype::f64}, false}}, {}, {}};
  const auto cases = [&](dtype t) {
    std::vector<std::string> text;
    for (const digest_case& c : proposed_cases(op, t, toy_call)) text.push_back(to_text(c));
    return text;
  };
  CHECK(cases(dtype::f16) == std::vector<std::string>{"toy bits=3 f16,f32 all_patterns 65536 seed=0"});
  CHECK(cases(dtype::f32) == std::vector<std::string>{"toy bits=3 f32,f32 uniform_patterns 16411 seed=0"});
  CHECK(cases(dtype::f64).size() == element_classes.size());
  CHECK(cases(dtype::f64)[3] == "toy bits=3 f64,f32 cancelling 65537 seed=0");

  op.attrs = {{"slope", attribute_kind::real, "1", "", false, false},
              {"strict", attribute_kind::boolean, "false", "", false, false},
              {"mode", attribute_kind::text, "a", "", false, false}};
  const std::vector<std::string> f16 = cases(dtype::f16);
  CHECK(f16.size() == 5);  // the defaults, and four slopes: one is negative
  CHECK(f16[1] == "toy bits=3 f16,f32 all_patterns 65536 seed=0 slope=h3fb999999999999a strict=false");
  for (const dtype t : {dtype::f32, dtype::f64}) {
    const std::vector<std::string> text = cases(t);
    const std::size_t defaults = element_classes.size();
    REQUIRE(text.size() == defaults + element_classes.size());
    std::set<std::string> values;
    for (std::size_t i = defaults; i < text.size(); ++i) values.insert(text[i].substr(text[i].find(" slope=")));
    CHECK(values.size() == 4);
  }
  op.attrs.erase(op.attrs.begin());
  CHECK(cases(dtype::f16).size() == 3);
  op.attrs.clear();
  op.in.push_back({"flag", {dtype::boolean}, false});
  op.in.push_back(op.in[0]);
  const std::vector<std::string> three = cases(dtype::f16);
  CHECK(three.size() == element_classes.size() + 1);
  CHECK(three[0] == "toy bits=3 f16,bool,f16,f32 uniform_patterns 65537,65537,65537 seed=0");
  CHECK(three.back() == "toy bits=3 f16,bool,f16,f32 uniform_patterns 5x1x33,17x1,1 seed=0");
}

TEST_CASE("digests: operands of every format are of their class") {
  for (const dtype t : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
    const int n = 4000;
    mpz_t one;
    mpz_init_set_ui(one, 1);
    for (const sample_class c : element_classes) {
      const std::vector<array> in = fill_operands(c, t, 3, n, 1, 1);
      int sums = 0, products = 0, all = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const extended x(t, in[0].get(i)), y(t, in[1].get(i)), z(t, in[2].get(i));
        const auto is_hit = [&](const extended& v) {
          if (v.is_nan() || v.is_infinite()) return c == sample_class::single_nonfinite;
          const outcome o = locate(t, v.significand(), one, v.exponent());
          // 2^-20 ulp where the format has so many bits.
          if (c == sample_class::near_ties)
            return !o.tie && o.boundary_distance <= std::ldexp(8, -format_of(t).precision);
          return hit(c, o);
        };
        sums += is_hit(x - y) || is_hit(x + y) ? 1 : 0;
        products += is_hit(x * y) ? 1 : 0;
        all += is_hit(x * y + z) || is_hit(x * y - z) ? 1 : 0;
      }
      const std::string what = std::string(format_name(t)) + " " + std::string(name_of(c));
      CHECK_MESSAGE(sums > n / 50, what);
      if (c == sample_class::cancelling) continue;  // z is x * y rounded
      CHECK_MESSAGE(products > n / 50, what);
      CHECK_MESSAGE(all > n / 50, what);
    }
    mpz_clear(one);
  }
}

TEST_CASE("known answers: every operation has them, and they are the oracle's") {
  for (const ops::elementwise_row& row : ops::elementwise_rows()) {
    const std::string path = answers + std::string(row.name) + ".txt", text = text_of(path);
    std::istringstream in(text);
    CHECK_MESSAGE(known_answers(row, in, path) == text, row.name);
    // The rule: special values first, spread ones last; hard ones between, in release 0.1.1 chosen by hand.
    const std::string proposed = proposed_known_answers(row);
    const auto line_count = [](const std::string& s) { return std::count(s.begin(), s.end(), '\n'); };
    const std::ptrdiff_t specials = row.arity == 1 ? 13 : 169, spread = 40;
    CHECK(line_count(text) >= specials + spread);
    CHECK(line_count(proposed) <= specials + spread + 5);
    const auto lines = [](const std::string& s, std::ptrdiff_t from, std::ptrdiff_t count) {
      std::istringstream f(s);
      std::string all;
      std::ptrdiff_t i = 0;
      for (std::string line; std::getline(f, line); ++i)
        if (i >= from && i < from + count) all += line;
      return all;
    };
    CHECK(lines(text, 0, specials) == lines(proposed, 0, specials));
    CHECK(lines(text, line_count(text) - spread, spread) == lines(proposed, line_count(proposed) - spread, spread));
    if (ops::proof_in(row.proof, dtype::f32) == ops::proof_kind::enumerate)
      CHECK(line_count(proposed) == specials + spread + 5);
  }
  const ops::elementwise_row& exp = *elementwise_named("exp");
  const std::string good = "00000000 -> 3f800000";
  const auto read_answer = [&](const std::string& line) {
    return message([&] {
      std::istringstream in(good + "\n" + line + "\n");
      known_answers(exp, in, "FILE");
    });
  };
  CHECK(read_answer(good) == "");
  for (const char* line :
       {"", "// exp", "exp 00000000 -> 3f800000", "00000000 00000000 -> 3f800000", "0000000g -> 3f800000",
        "00000000 -> 3f80000", "00000000 -> 3f800000;", "00000000 -> 3f8000000", "00000000->3f800000",
        "00000000  -> 3f800000", "00000000 -> 3f80000G"})
    CHECK_MESSAGE(read_answer(line).starts_with(
                      "FILE:2: expected 1 input, \"->\" and the result in eight hexadecimal digits each"),
                  line);
}

}  // namespace

TEST_SUITE_END();
