// From a call to a backend: check, plan, run. The typed functions and the dynamic layer both end here.
#pragma once

#include <algorithm>
#include <concepts>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "librepdl/api/attributes.hpp"
#include "librepdl/api/context_impl.hpp"
#include "librepdl/plan/planner.hpp"

namespace repdl::api {

// options: as many as the row has. result: its format, where the row lets the call say it.
void submit_elementwise(context& ctx, ops::op_id op, plan::inputs in, plan::outputs out, plan::option_span options,
                        std::optional<dtype> result = {});
tensor_spec infer_elementwise(ops::op_id op, plan::inputs in, plan::option_span options, std::optional<dtype> result);

// What a call need not say, because its output says it.
void complete(std::string_view op, ops::convert_attrs& a, const tensor_view& out);
template <class Options>
void complete(std::string_view, ops::real_attrs<Options>& a, const tensor_view& out) {
  if (!a.shape) a.shape = out.shape();
  if (!a.dtype) a.dtype = out.type();
}
template <class Options>
void complete(std::string_view, ops::sequence_attrs<Options>& a, const tensor_view& out) {
  if (!a.count) a.count = out.count();
  if (!a.dtype) a.dtype = out.type();
}
void complete(std::string_view op, ops::permutation_attrs& a, const tensor_view& out);
void complete(std::string_view op, ops::bernoulli_attrs& a, const tensor_view& out);
void complete(std::string_view op, ops::randint_attrs& a, const tensor_view& out);
void complete(std::string_view op, ops::multinomial_attrs& a, const tensor_view& out);
void complete(std::string_view op, ops::conv2d_grad_input_attrs& a, const tensor_view& out);
void complete(std::string_view op, ops::conv2d_grad_weight_attrs& a, const tensor_view& out);
void complete(std::string_view op, ops::avg_pool2d_backward_attrs& a, const tensor_view& out);
void complete(std::string_view op, ops::adaptive_avg_pool2d_backward_attrs& a, const tensor_view& out);
void complete(std::string_view op, ops::upsample_nearest2d_attrs& a, const tensor_view& out);
void complete(std::string_view op, ops::interpolation_attrs& a, const tensor_view& out);
void complete(std::string_view op, ops::embedding_backward_attrs& a, const tensor_view& out);
template <class Attrs>
void complete(std::string_view, Attrs&, const tensor_view&) {}
// The format of a sum of floating-point numbers, a product or a softmax, likewise.
template <class Attrs>
requires std::is_same_v<Attrs, ops::sum_attrs> || std::is_same_v<Attrs, ops::dot_attrs> ||
    std::is_same_v<Attrs, ops::softmax_attrs> || std::is_same_v<Attrs, ops::matmul_attrs>
void complete_format(Attrs& a, plan::inputs in, const tensor_view& out) {
  if (a.dtype || in.empty() || !in[0] || (ops::FLOATS & ops::one(in[0].type())) == 0) return;
  const ops::dtype_set types =
      std::is_same_v<Attrs, ops::matmul_attrs> ? plan::product_types(in[0].type()) : ops::FLOATS;
  if ((types & ops::one(out.type())) != 0) a.dtype = out.type();
}
template <class Attrs>
void complete_format(Attrs&, plan::inputs, const tensor_view&) {}

// The outputs of a call, those that it makes itself (detail::results) among them.
using output_list = plan::inline_vector<tensor_view, 5>;
plan::outputs with_results(context& ctx, std::span<const tensor_spec> specs, plan::outputs out, output_list& all);

// Optimisers: operands come in groups, one per tensor.
template <class Op>
concept grouped = requires(const typename Op::attrs& a) {
  plan::planner<Op>::rows(std::size_t{}, a);
};

// Operations whose outputs may be more than one.
template <class Op>
concept many_outputs = !grouped<Op> && requires(plan::inputs in, const typename Op::attrs& a) {
  { plan::planner<Op>::infer(in, a) } -> std::same_as<plan::specs>;
};

template <class Op>
plan::operand_rows rows_of(std::size_t inputs, const typename Op::attrs& attrs) {
  if constexpr (grouped<Op>) {
    return plan::planner<Op>::rows(inputs, attrs);
  } else {
    return {Op::in, Op::out};
  }
}

template <class Op>
plan::specs infer(const plan::operand_rows& rows, plan::inputs in, const typename Op::attrs& attrs) {
  plan::check_inputs(Op::name, rows.in(), in, rows.group());
  check_required(Op::name, attrs);
  if constexpr (grouped<Op>) {
    return plan::planner<Op>::infer(rows, in, attrs);
  } else if constexpr (many_outputs<Op>) {
    return plan::planner<Op>::infer(in, attrs);
  } else {
    plan::specs one;
    one.push_back(plan::planner<Op>::infer(in, attrs));
    return one;
  }
}

template <class Op>
void submit(context& ctx, plan::inputs in, plan::outputs out, typename Op::attrs attrs) {
  if (!grouped<Op> && out.size() == 1 && out[0]) {
    complete(Op::name, attrs, out[0]);
    complete_format(attrs, in, out[0]);
  }
  const plan::operand_rows rows = rows_of<Op>(in.size(), attrs);
  const plan::specs specs = infer<Op>(rows, in, attrs);
  output_list all;
  out = with_results(ctx, {specs.data(), specs.size()}, out, all);
  plan::check_outputs(Op::name, rows.out(), out, specs);
  plan::check_devices(Op::name, rows.in(), in, rows.out(), out, ctx.where());
  plan::check_overlap(Op::name, rows.in(), in, rows.out(), out, Op::row.may_alias);
  context::impl& c = context_access::of(ctx);
  const dispatch::subject what{Op::id, in.empty() ? dtype::f32 : in[0].type(), specs[0].type};
  if constexpr (grouped<Op>) {
    const auto p = plan::planner<Op>::make(in, out, attrs);
    if (!p.empty()) c.run(what, p);
  } else if constexpr (many_outputs<Op>) {
    const auto is_to_write = [](const tensor_view& v) { return v && v.count() != 0; };
    if (std::any_of(out.begin(), out.end(), is_to_write)) c.run(what, plan::planner<Op>::make(in, out, attrs));
  } else if (out[0].count() != 0) {
    c.run(what, plan::planner<Op>::make(in, out[0], attrs));
  }
}

}  // namespace repdl::api
