// Whole calls whose operands lie in memory as somebody may choose to lay them: run on any context, and compared byte
// for byte with the same call on contiguous operands. Bytes that belong to no output must stay as they were.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "librepdl/owning_tensor.hpp"
#include "reference/placement.hpp"

namespace repdl::tools {

struct placed_call {
  const op_info* op = nullptr;
  attributes attrs;
  reference::memory_image memory;  ///< before the call
  /// The operands, as numbers of the memory's tensors; absent ones have none. One tensor may be several operands.
  std::vector<std::optional<std::size_t>> in, out;
  std::size_t groups = 1;  ///< optimizers: of operands, one group per tensor

  /// The outputs of a group; those that come once (total_norm), after the groups', name no input.
  std::size_t group_out() const;
  const operand_info& output_info(std::size_t i) const;
  /// What infer() says about the inputs.
  std::vector<tensor_spec> infer_outputs() const;
  /// "x", "param[1]"; of one that is an input and an output: both.
  std::string operand_name(std::size_t tensor) const;
};

/// The same values, every operand contiguous in memory of its own.
placed_call contiguous(const placed_call& c);

/// Runs calls on a context, in one piece of memory on its device that grows. May not outlive the context.
class call_runner {
 public:
  explicit call_runner(context& ctx) : ctx_(&ctx) {}
  /// What is in the memory after the call.
  reference::memory_image run(const placed_call& c);

 private:
  context* ctx_;
  std::optional<tensor> memory_;  ///< bytes
  std::size_t capacity_ = 0;
};

/// "avx2, 3 threads, from exact"; 0 threads are not mentioned.
std::string label_of(const std::string& engine, int threads, tier first);

/// What the memory holds after a right call: that before it, with these results. Aliased inputs are overwritten.
reference::memory_image expected_memory(const placed_call& c, const std::vector<reference::array>& results);
/// The outputs of a call, contiguous; of an absent one none.
std::vector<reference::array> results_of(const placed_call& c, const reference::memory_image& after);

/// What differs first: an element of an output, of an input, or a byte that belongs to no element. Empty: nothing.
std::string difference(const placed_call& c, const reference::memory_image& got, std::string_view got_from,
                       const reference::memory_image& expected, std::string_view expected_from);

/// Operation, attributes and operands, a line each.
std::string describe(const placed_call& c);

}  // namespace repdl::tools
