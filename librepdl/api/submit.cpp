#include "librepdl/api/submit.hpp"

#include <array>

namespace repdl::api {
namespace {

const ops::elementwise_row& row_of(ops::op_id op) noexcept { return ops::elementwise_rows[static_cast<int>(op)]; }

std::array<elementwise_operands, ops::elementwise_count> split_operands() noexcept {
  std::array<elementwise_operands, ops::elementwise_count> all{};
  for (int i = 0; i < ops::elementwise_count; ++i) {
    std::string_view names = ops::elementwise_rows[i].operands;
    elementwise_operands& o = all[static_cast<std::size_t>(i)];
    while (!names.empty()) {
      const std::size_t comma = std::min(names.find(','), names.size());
      o.in[o.count++] = {names.substr(0, comma), ops::F32};
      names.remove_prefix(std::min(comma + 1, names.size()));
    }
  }
  return all;
}

}  // namespace

const elementwise_operands& operands_of(ops::op_id op) noexcept {
  static const auto all = split_operands();
  return all[static_cast<std::size_t>(op)];
}

tensor_spec infer_elementwise(ops::op_id op, plan::inputs in) {
  const elementwise_operands& rows = operands_of(op);
  const std::span<const ops::operand> in_rows(rows.in, static_cast<std::size_t>(rows.count));
  const std::string_view name = row_of(op).name;
  plan::check_inputs(name, in_rows, in);
  return {dtype::f32, plan::infer_map(name, in_rows, in)};
}

void submit_elementwise(context& ctx, ops::op_id op, plan::inputs in, plan::outputs out) {
  const elementwise_operands& rows = operands_of(op);
  const std::span<const ops::operand> in_rows(rows.in, static_cast<std::size_t>(rows.count));
  const std::string_view name = row_of(op).name;
  const tensor_spec spec = infer_elementwise(op, in);
  plan::check_outputs(name, elementwise_out, out, {&spec, 1});
  plan::check_devices(name, in_rows, in, elementwise_out, out, ctx.where());
  plan::check_overlap(name, in_rows, in, elementwise_out, out, plan::aliases::any);
  if (out[0].count() == 0) return;
  context_access::of(ctx).run(name, plan::make_map(op, in, out[0]));
}

}  // namespace repdl::api
