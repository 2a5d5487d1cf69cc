// The published cases and their digests (contract, section 7): every operation x format x sample class x shape x
// attributes. Each case makes its own inputs, so that any backend can confirm it; digests are written from the oracle
// only. All results of the unary functions are in exhaustive.hpp.
//
//   digest = SHA-256(header || SHA-256 of each 2^20-element piece of each output), outputs row-major, little-endian
//   header = op|bits version|formats|shapes|parameters, numbers among the parameters as binary64 hex
#pragma once

#include <functional>
#include <iosfwd>
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

/// The published list, in the order of the committed file.
std::vector<digest_case> digest_cases();

/// The case's inputs, contiguous; the same on every machine.
std::vector<array> inputs(const digest_case& c);
/// The oracle's outputs, and where their exact values lie. (write_digests.cpp; needs GMP and MPFR.)
std::vector<array> expected(const digest_case& c, outcomes* where = nullptr);

std::string header(const digest_case& c);
sha256::digest digest(const digest_case& c, std::span<const array> outputs);

/// One line: op formats class shapes attributes seed, without the digest.
std::string to_text(const digest_case& c);
/// The inverse; throws std::runtime_error.
digest_case parse_case(const std::string& text);

struct committed_digest {
  digest_case c;
  sha256::digest value;
};
/// Every published case from the oracle: `op formats class shapes attributes seed -> hex`, one line each.
void write_digests(std::ostream& out, const std::function<void(std::size_t done, std::size_t all)>& progress = {});
/// Throws std::runtime_error for a malformed line.
std::vector<committed_digest> read_digests(std::istream& in);

}  // namespace repdl::reference
