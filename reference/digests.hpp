// The published cases and their digests (contract, section 7), one file per operation: docs/digests/cases/OP.txt. The
// files are the list. A line is a case: operation, formats, sample class, shapes, seed, attributes, and the digest of
// the results. Each case makes its own inputs, so that any backend can confirm it; digests are written from the oracle
// only. All results of the unary functions are in exhaustive.hpp.
//
//   digest = SHA-256(header || SHA-256 of each 2^20-element piece of each output), outputs row-major, little-endian
//   header = op|bits version|formats|shapes|parameters, numbers among the parameters as binary64 hex
#pragma once

#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "librepdl/api/sha256.hpp"
#include "librepdl/dynamic.hpp"
#include "reference/array.hpp"
#include "reference/samples.hpp"

namespace repdl::reference {

struct digest_case {
  std::string op;
  int bits = 1;
  std::vector<dtype> formats;  ///< of the inputs, then of the outputs
  sample_class kind = sample_class::normal_range;
  std::vector<shape_list> shapes;  ///< of the inputs; absent_shape for one that is left out
  attributes attrs;                ///< those of the operation
  std::uint64_t seed = 0;          ///< of the inputs
};

/// The seed of the case on a line of cases/OP.txt, counted from 1: the first 8 bytes, as a big-endian number, of the
/// SHA-256 of "OP|FORMATS|LINE", say "pow|f32,f32,f32|1". (The cases of release 0.1.1 are older than this rule.)
std::uint64_t case_seed(const std::string& op, const std::vector<dtype>& formats, std::size_t line);

/// The formats of a call: those of its inputs, then of its outputs. Throws as infer does.
std::vector<dtype> call_formats(const op_info& op, std::vector<dtype> in, const std::vector<shape_list>& shapes,
                                const attributes& attrs);
using call_rule = decltype(&call_formats);
/// Behind the formats of the inputs; of an operation without any, of the outputs.
inline std::vector<dtype>::const_iterator end_of_operands(const op_info& op, const digest_case& c) {
  return op.in.empty() ? c.formats.end() : c.formats.begin() + std::ssize(c.shapes);
}

/// The cases of an elementwise operation in a format, by rule; without seeds, which belong to lines. Every class of
/// inputs with the attributes' defaults, operands that broadcast, and every class with other values of the attributes in
/// turn. One operand of 16 bits: all patterns instead; one of f32 without attributes: a few, for exhaustive.hpp has all.
/// Results of other formats, where the operation has an attribute dtype: some classes of each.
/// `rule` says which calls there are.
std::vector<digest_case> proposed_cases(const op_info& op, dtype format, call_rule rule = call_formats);

/// The case's inputs, contiguous; the same on every machine.
std::vector<array> inputs(const digest_case& c);
/// The oracle's outputs, and where their exact values lie. (digests/oracle.cpp; needs GMP and MPFR.)
std::vector<array> expected(const digest_case& c, outcomes* where = nullptr);

std::string header(const digest_case& c);
sha256::digest digest(const digest_case& c, std::span<const array> outputs);
/// "f32,f32".
std::string formats_text(const std::vector<dtype>& formats);

/// The part of a line before " -> ": OP bits=N FORMATS CLASS SHAPES seed=N NAME=VALUE...
std::string to_text(const digest_case& c);

/// A line of a file. One without digest ends in " -> ?"; `repdl digests --add` computes it. Such a line can be written
/// by hand: seed=? stands for case_seed, and real numbers may be decimal.
struct case_line {
  digest_case c;
  std::optional<sha256::digest> value;
};
std::string to_text(const case_line& l);
/// The file of an operation; `name` is for messages. Whatever is not a case of the operation as to_text writes it is
/// refused: std::runtime_error, "NAME:LINE: ARGUMENT: expected EXPECTED, got GOT".
std::vector<case_line> read_case_lines(std::istream& in, const op_info& op, const std::string& name);

struct committed_digest {
  digest_case c;
  sha256::digest value;
};
/// The same where every line must have its digest, and at least one line must be there.
std::vector<committed_digest> read_cases(std::istream& in, const op_info& op, const std::string& name);
/// From the directory of digests.
std::vector<committed_digest> read_cases(const std::string& directory, const op_info& op);
std::string case_file(const std::string& directory, std::string_view op);

/// Lines that a release published never change: published.txt in the directory of digests says for each release and
/// file how many lines the file had, and their SHA-256. Throws std::runtime_error for a file that no longer begins with
/// them.
void check_published(const std::string& directory);
/// The lines of published.txt for every file that has lines which no release published yet.
std::string unpublished(const std::string& directory, std::string_view release);

}  // namespace repdl::reference
