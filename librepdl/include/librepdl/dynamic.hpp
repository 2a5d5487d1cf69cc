// The dynamic layer: operations by name, for command lines, bindings and tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "librepdl/context.hpp"
#include "librepdl/export.hpp"
#include "librepdl/tensor.hpp"

namespace repdl REPDL_EXPORT {

enum class attribute_kind : std::int32_t { boolean = 0, integer = 1, real = 2, text = 3, integers = 4 };

/// In the order of attribute_kind.
using attribute_value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;

struct attribute {
  std::string name;
  attribute_value value;
};
using attributes = std::vector<attribute>;

struct attribute_info {
  std::string name;
  attribute_kind kind;
  std::string default_text;  ///< as parse_attribute reads it; empty where there is none
  std::string doc;
  bool required;  ///< by infer; call takes it from the outputs
  bool pattern;   ///< an integer that is 64 bits: its text may be an unsigned number too
};

struct operand_info {
  std::string name;
  std::vector<dtype> types;
  bool optional;
};

struct op_info {
  std::string name;
  int id;    ///< index into operations(); may change between releases
  int bits;  ///< the version of its bits
  /// "elementwise", "convert", "reduce", "matmul", "convolution", "pooling", "softmax", "norm", "optimizer",
  /// "random", "loss", "scatter", "nll", "sequence", "upsample", "draw", "scan", "exponent", "attention"
  std::string family;
  std::string formula;
  std::string proof;             ///< why its bits are right
  std::vector<operand_info> in;  ///< optimizer: of one tensor; a call takes them once per tensor, the outputs likewise
  std::vector<operand_info> out;
  std::vector<attribute_info> attrs;
  std::string function{};  ///< the C++ function's name, which find() takes too: name itself but for some gradients
};

/// Every operation of the library.
std::span<const op_info> operations();
/// By name, or by that of the C++ function. Null where no operation has it.
const op_info* find(std::string_view name) noexcept;

/// Reads "true", "3", "0.5", "fma_chain", "0,-1" as the attribute's kind says; throws unknown_attribute,
/// attribute_syntax.
attribute parse_attribute(const op_info& op, std::string_view name, std::string_view text);

/// The outputs' element types and shapes. Throws as `call` does for everything that can be known from the inputs.
std::vector<tensor_spec> infer(const op_info& op, std::span<const const_tensor_view> in, const attributes& attrs = {});

/// Runs an operation. Optional inputs at the end may be left out, or be absent views. Optional outputs may be absent views:
/// they are not written.
void call(context& ctx, const op_info& op, std::span<const const_tensor_view> in, std::span<const tensor_view> out,
          const attributes& attrs = {});

/// One of several calls of an operation.
struct list_call {
  std::span<const const_tensor_view> in;
  std::span<const tensor_view> out;
  const attributes& attrs;
};
/// Calls of an operation, as if one after the other. Elementwise ones are all checked before the first one runs; those that do not depend
/// on each other then run together, on a GPU in few launches.
void call_list(context& ctx, const op_info& op, std::span<const list_call> calls);

/// SHA-256, in lower-case hexadecimal, of a tag, then each tensor's dtype, rank, sizes and little-endian row-major
/// bytes: the identity of a list of tensors. Tensors may be on the context's device or on the CPU. Waits.
std::string fingerprint(context& ctx, std::span<const const_tensor_view> tensors);

/// "1.2.3", and the version of the bits contract.
std::string_view version() noexcept;
int bits_version() noexcept;

}  // namespace repdl
