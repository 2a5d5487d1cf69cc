// Calls that must be refused: a legal call of any operation with one fault.
#pragma once

#include <optional>
#include <string>

#include "reference/samples.hpp"
#include "tools/cli/placed_call.hpp"

namespace repdl::tools {

/// Makes the call with one fault, chosen by the words, on a context of the CPU. It has to be refused by an error whose site belongs to
/// the fault, which names the operation, and leaves every byte as it was; and by infer() with the same error where the fault is one of
/// inputs or attributes. What is wrong with that, as text: empty if nothing is. No value: this call can't have the fault.
std::optional<std::string> wrong_refusal(context& ctx, const placed_call& legal, reference::word_stream& w);

}  // namespace repdl::tools
