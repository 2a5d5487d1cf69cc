#include "librepdl/api/submit.hpp"

#include <array>

namespace repdl::api {
namespace {

const ops::elementwise_row& row_of(ops::op_id op) noexcept { return ops::elementwise_rows[static_cast<int>(op)]; }

std::array<elementwise_operands, ops::elementwise_count> split_operands() noexcept {
  std::array<elementwise_operands, ops::elementwise_count> all{};
  for (int i = 0; i < ops::elementwise_count; ++i) {
    const ops::elementwise_row& row = ops::elementwise_rows[i];
    elementwise_operands& o = all[static_cast<std::size_t>(i)];
    o.result[0] = {"out", row.has_own_type() ? ops::one(row.result_type({})) : row.formats};
    for (; o.count < row.arity; ++o.count) {
      const auto [name, is_boolean] = ops::operand_at(row.operands, o.count);
      o.all[o.count] = {name, is_boolean ? ops::BOOL : row.formats};
    }
  }
  return all;
}

// The format of a call.
dtype format_of(const ops::elementwise_row& row, plan::inputs in) noexcept {
  return in[static_cast<std::size_t>(row.leading())].type();
}

}  // namespace

const elementwise_operands& operands_of(ops::op_id op) noexcept {
  static const auto all = split_operands();
  return all[static_cast<std::size_t>(op)];
}

tensor_spec infer_elementwise(ops::op_id op, plan::inputs in, plan::option_span options, std::optional<dtype> result) {
  const elementwise_operands& rows = operands_of(op);
  const ops::elementwise_row& row = row_of(op);
  plan::check_inputs(row.name, rows.in(), in);
  plan::check_options(row, plan::numbers_of(row, format_of(row, in), options));
  const sizes shape = plan::infer_map(row, rows.in(), in);
  return {result ? plan::float_type(row.name, *result) : row.result_type(format_of(row, in)), shape};
}

void submit_elementwise(context& ctx, ops::op_id op, plan::inputs in, plan::outputs out, plan::option_span options,
                        std::optional<dtype> result) {
  const elementwise_operands& rows = operands_of(op);
  const ops::elementwise_row& row = row_of(op);
  const std::string_view name = row.name;
  if (row.has_any_float() && !result && out.size() == 1 && out[0] && (ops::FLOATS & ops::one(out[0].type())) != 0) {
    result = out[0].type();
  }
  const tensor_spec spec = infer_elementwise(op, in, options, result);
  plan::check_outputs(name, rows.out(), out, {&spec, 1});
  plan::check_devices(name, rows.in(), in, rows.out(), out, ctx.where(), row.arity > 1);
  plan::check_overlap(name, rows.in(), in, rows.out(), out, plan::aliases::any);
  if (out[0].count() == 0) return;
  const auto numbers = plan::numbers_of(row, format_of(row, in), options);
  context_access::of(ctx).run({op, format_of(row, in), spec.type},
                              plan::make_map(op, in, out[0], {numbers.data(), options.size()}));
}

}  // namespace repdl::api
