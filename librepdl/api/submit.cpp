#include "librepdl/api/submit.hpp"

#include <utility>

#include "librepdl/operand.hpp"

namespace repdl::api {
namespace {

// The format of a call.
dtype format_of(const ops::elementwise_row& row, plan::inputs in) noexcept {
  return in[static_cast<std::size_t>(row.leading())].type();
}

}  // namespace

plan::outputs with_results(context& ctx, std::span<const tensor_spec> specs, plan::outputs out, output_list& all) {
  detail::results* const wanted = std::exchange(context_access::of(ctx).wanted, nullptr);
  if (wanted == nullptr) return out;
  for (const tensor_view& v : out) {
    const std::size_t i = all.size();
    if (i < wanted->count()) wanted->make(ctx, i, specs[i]);
    all.push_back(i < wanted->count() ? wanted->view(i) : v);
  }
  return {all.data(), all.size()};
}

tensor_spec infer_elementwise(ops::op_id op, plan::inputs in, plan::option_span options, std::optional<dtype> result) {
  const ops::elementwise_operands& rows = ops::operands_of(op);
  const ops::elementwise_row& row = ops::row_of(op);
  plan::check_inputs(row.name, rows.in(), in);
  plan::check_options(row, plan::numbers_of(row, format_of(row, in), options));
  const sizes shape = plan::infer_map(row, rows.in(), in);
  return {result ? plan::float_type(row.name, *result) : row.result_type(format_of(row, in)), shape};
}

void submit_elementwise(context& ctx, ops::op_id op, plan::inputs in, plan::outputs out, plan::option_span options,
                        std::optional<dtype> result) {
  const ops::elementwise_operands& rows = ops::operands_of(op);
  const ops::elementwise_row& row = ops::row_of(op);
  const std::string_view name = row.name;
  if (row.has_any_float() && !result && out.size() == 1 && out[0] && (ops::FLOATS & ops::one(out[0].type())) != 0) {
    result = out[0].type();
  }
  const tensor_spec spec = infer_elementwise(op, in, options, result);
  output_list all;
  out = with_results(ctx, {&spec, 1}, out, all);
  plan::check_outputs(name, rows.out(), out, {&spec, 1});
  plan::check_devices(name, rows.in(), in, rows.out(), out, ctx.where(), row.arity > 1);
  plan::check_overlap(name, rows.in(), in, rows.out(), out, plan::aliases::any);
  if (out[0].count() == 0) return;
  const auto numbers = plan::numbers_of(row, format_of(row, in), options);
  context_access::of(ctx).run({op, format_of(row, in), spec.type},
                              plan::make_map(op, in, out[0], {numbers.data(), options.size()}));
}

}  // namespace repdl::api
