// The parts of `repdl sweep`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/array.hpp"
#include "reference/numbers/format.hpp"
#include "tools/cli/arrays.hpp"

namespace repdl::tools {

/// One call to check: the inputs, and the attributes where the operation has some.
struct sweep_batch {
  std::vector<reference::array> in;
  attributes attrs;
};

/// Batch number `index` of the stratified sample; the same for every machine, thread count and backend.
sweep_batch make_batch(const op_info& op, std::uint64_t seed, std::uint64_t index);

/// Batches that together hold every input of a unary operation, or every conversion from a format of at most 32 bits.
/// `count` is how many there are; 0 where the operation has no such inputs.
std::uint64_t exhaustive_batch_count(const op_info& op);
/// The inputs of one: consecutive patterns.
struct exhaustive_range {
  dtype from, to;
  std::uint32_t first;
  std::uint64_t count;
};
exhaustive_range exhaustive_batch(const op_info& op, std::uint64_t index);

/// What a sweep found. Merging is associative and commutative, so that the report does not depend on threads.
struct sweep_tally {
  std::int64_t inputs = 0;  ///< input elements, or results where there are more of them
  std::int64_t results = 0;
  std::int64_t mismatches = 0;
  std::int64_t located = 0;     ///< results whose exact value the oracle placed
  std::int64_t in_64_bits = 0;  ///< results that needed no MPFR
  std::int64_t exact = 0;
  std::int64_t ties = 0;
  std::int64_t near_ties = 0;  ///< within 2^-20 ulp of a midpoint, ties apart
  std::int64_t subnormal = 0;
  std::int64_t overflow = 0;

  std::uint64_t first_batch = ~std::uint64_t{0};  ///< of a mismatch
  std::string first_mismatch;

  double hardest = 1;  ///< distance from a midpoint in ulp; ties and overflow apart
  std::uint64_t hardest_batch = ~std::uint64_t{0};
  std::string hardest_inputs;
  std::string hardest_result;

  void merge(const sweep_tally& o);
};

/// Runs one batch and compares it with the oracle.
void check_batch(context& ctx, const op_info& op, const sweep_batch& batch, bool compare_only, std::uint64_t index,
                 sweep_tally& t);
/// The same for consecutive patterns; places one result in 64.
void check_range(context& ctx, const op_info& op, const exhaustive_range& range, std::uint64_t index, sweep_tally& t);

}  // namespace repdl::tools
