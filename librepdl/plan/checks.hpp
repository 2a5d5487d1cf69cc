// Checks of operands, made once at the API boundary.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "librepdl/ops/structured.hpp"
#include "librepdl/plan/inline_vector.hpp"
#include "librepdl/tensor.hpp"

namespace repdl::plan {

using inputs = std::span<const const_tensor_view>;
using outputs = std::span<const tensor_view>;

/// The number of inputs, presence, element types. `group`: what comes once per tensor, where the rows are groups.
void check_inputs(std::string_view op, std::span<const ops::operand> rows, inputs in,
                  std::span<const ops::operand> group = {});
/// "param, grad, [velocity]": the names, optional ones in brackets.
std::string names_of(std::span<const ops::operand> rows);
/// Number, presence, element types, shapes; no output element shares memory with another.
void check_outputs(std::string_view op, std::span<const ops::operand> rows, outputs out,
                   std::span<const tensor_spec> expected);
void check_devices(std::string_view op, std::span<const ops::operand> in_rows, inputs in,
                   std::span<const ops::operand> out_rows, outputs out, const device& where,
                   bool takes_numbers = false);
using ops::aliases;
/// No output shares memory with an input, but for the aliases allowed, or with another output.
void check_overlap(std::string_view op, std::span<const ops::operand> in_rows, inputs in,
                   std::span<const ops::operand> out_rows, outputs out, aliases allowed);
/// The rank of an operand.
void check_rank(std::string_view op, std::string_view name, const const_tensor_view& v, int rank,
                std::string_view what);

/// The gradient of an output has its shape.
void check_gradient(std::string_view op, const const_tensor_view& g, const sizes& output);

/// Operand `name` has the format of another one, `as`.
void check_format(std::string_view op, std::string_view name, const const_tensor_view& v, std::string_view as,
                  const const_tensor_view& other);

/// The shortest decimal number that is this one.
std::string to_text(double value);
using ops::describe;
/// NumPy's rule, right-aligned; `name` is the operand that joins.
sizes broadcast(std::string_view op, std::string_view name, const sizes& a, const sizes& b);
/// The strides of v seen with the (broadcast) shape: 0 along repeated axes.
sizes broadcast_strides(const const_tensor_view& v, const sizes& shape);
/// The data of a tensor of f32; null for an absent one.
inline const float* floats(const const_tensor_view& v) { return static_cast<const float*>(v.data()); }
/// One axis into [0, rank).
int normalize_axis(std::string_view op, std::int64_t axis, int rank);
/// Normalises axes into [0, rank), rejects duplicates; absent means all.
sizes normalize_axes(std::string_view op, const std::optional<sizes>& axis, int rank);

}  // namespace repdl::plan
