// The parts of `repdl verify`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "reference/digests.hpp"
#include "tools/cli/host_tensor.hpp"

namespace repdl::tools {

struct verify_options {
  bool quick = false;
  std::string digests;           ///< the directory
  std::vector<std::string> ops;  ///< empty: all
  int threads = 0;               ///< workers of the exhaustive part; 0: all
  std::int64_t flip = -1;        ///< a test of the test: one bit of this element of every result is flipped

  bool wants(std::string_view op) const;
};

/// One way to run an operation: an instruction set or a GPU, a thread count, a forced tier.
struct variant {
  std::string label;
  context_options options;
  std::unique_ptr<context> ctx;  ///< made once
  std::int64_t runs = 0;
  std::int64_t elements = 0;
  double seconds = 0;
  statistics tiers{};  ///< of the exhaustive chunks, which have their own contexts
};
/// Every instruction set and GPU, or only one, thread count and forced tier.
std::vector<variant> make_variants(std::string_view only = "");

/// One line of the table: an operation and its formats.
struct verify_row {
  std::int64_t cases = 0;
  std::int64_t classes = 0;
  std::int64_t runs = 0;
  std::int64_t elements = 0;
  std::int64_t layouts = 0;  ///< calls with operands in other layouts
  std::int64_t chunks = 0;   ///< of 2^24 inputs
};
/// By "op" and formats, in the order of the registry.
struct verify_table {
  std::vector<std::pair<std::string, verify_row>> rows;
  verify_row& at(const std::string& name);
};

/// Thrown for a difference; what() is the report.
struct mismatch : std::exception {
  explicit mismatch(std::string t) : text(std::move(t)) {}
  const char* what() const noexcept override { return text.c_str(); }
  std::string text;
};

/// The row of the table that a case belongs to: "op|formats".
std::string row_name(const reference::digest_case& c);
/// Multi-limb numbers for every element take some 10 us each: --quick and layouts take the small cases so.
bool is_slow(const reference::digest_case& c, const std::vector<reference::array>& in, tier first);
/// The committed cases of an operation in a directory of digests; throws mismatch for a malformed file.
std::vector<reference::committed_digest> read_cases(const std::string& directory, const op_info& op);

/// The digest cases on every variant, the exhaustive chunks on every instruction set and GPU, and the layouts likewise.
void verify_cases(const verify_options& options, std::vector<variant>& variants, verify_table& table);
void verify_layouts(const verify_options& options, std::vector<variant>& variants, verify_table& table);
void verify_chunks(const verify_options& options, std::vector<variant>& variants, verify_table& table);

/// `--self-test`: the exit status.
int verify_kernels();

}  // namespace repdl::tools
