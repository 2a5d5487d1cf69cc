// Digests of all 2^32 results of a unary binary32 operation: one for each 2^24 inputs, one for all of them.
//
// digest = SHA-256(header || SHA-256 of each 2^20-element piece), header = op|bits version|formats|shape|parameters.
// Chunk c covers the input patterns [c * 2^24, (c + 1) * 2^24) and has the parameter first = c * 2^24 (as binary64
// hex); the whole has no parameter. A committed file is written from the oracle only; a build is proved complete by
// hashing its own results with the same functions.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "librepdl/api/sha256.hpp"
#include "librepdl/ops/registry.hpp"
#include "librepdl/tensor.hpp"

namespace repdl::reference {

inline constexpr std::uint64_t piece_elements = std::uint64_t{1} << 20;
inline constexpr std::uint64_t chunk_elements = std::uint64_t{1} << 24;
inline constexpr int chunk_count = 256;

/// One unary operation on all binary32 patterns.
struct exhaustive_op {
  std::string name;  ///< a row of elementwise.def, or "convert"
  int bits = 1;      ///< bits version
  dtype from = dtype::f32;
  dtype to = dtype::f32;
  /// "exp.f32.txt", "convert.f32.f16.txt".
  std::string file_name() const;
};

/// Whether there is a file of all results of a function of one f32. Not of lgamma and digamma: between far negative poles there are
/// too few inputs for a polynomial, and so the oracle would take 20 minutes of a core each.
bool has_all_results(const ops::elementwise_row& r);
/// All of these and the conversions from binary32 to other formats.
std::vector<exhaustive_op> exhaustive_ops();

/// What a file holds.
struct exhaustive_digests {
  exhaustive_op op;
  sha256::digest whole{};
  std::vector<sha256::digest> chunks;
};

/// SHA-256 of each 2^20-element piece of a row-major little-endian array.
std::vector<sha256::digest> piece_digests(const void* data, std::uint64_t elements, std::size_t element_bytes);
/// SHA-256(header || pieces).
sha256::digest combine(const std::string& header, std::span<const sha256::digest> pieces);
/// The digest of one chunk, from its 2^24 results.
sha256::digest chunk_digest(const exhaustive_op& op, int chunk, std::span<const sha256::digest> pieces);
/// The digest of all results, from the 4096 pieces.
sha256::digest whole_digest(const exhaustive_op& op, std::span<const sha256::digest> pieces);

/// Writes the results for input patterns [first, first + count) in the output format.
using range_function = std::function<void(std::uint32_t first, std::uint64_t count, void* out)>;
/// Told the chunks done so far; may be called from any thread, one at a time.
using progress_function = std::function<void(int chunks_done)>;

/// Hashes all 2^32 results of f on `threads` threads (f must allow that).
exhaustive_digests hash_all(const exhaustive_op& op, const range_function& f, int threads,
                            const progress_function& progress = {});
/// The oracle's results: the only source of committed files.
range_function oracle_range(const exhaustive_op& op);

void write(std::ostream& out, const exhaustive_digests& d);
/// Throws std::runtime_error for a malformed or incomplete file.
exhaustive_digests read_exhaustive(std::istream& in);

/// The bits of a double that equals v, as 16 hexadecimal digits.
std::string binary64_hex(std::uint64_t v);
/// Parses 64 hexadecimal digits; throws std::runtime_error.
sha256::digest parse_digest(const std::string& hex);

}  // namespace repdl::reference
