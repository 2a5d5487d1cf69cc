// From a call to a backend: check, plan, run. The typed functions and the dynamic layer both end here.
#pragma once

#include <optional>
#include <string_view>

#include "librepdl/api/context_impl.hpp"
#include "librepdl/plan/planner.hpp"

namespace repdl::api {

// Operands of an elementwise operation ("x,y" -> x, y; all f32).
struct elementwise_operands {
  ops::operand in[3];
  int count;
};
const elementwise_operands& operands_of(ops::op_id op) noexcept;
inline constexpr ops::operand elementwise_out[] = {{"out", ops::F32}};

void submit_elementwise(context::impl& c, ops::op_id op, plan::inputs in, plan::outputs out);
tensor_spec infer_elementwise(ops::op_id op, plan::inputs in);

// What a call need not say, because its output says it.
inline void complete(ops::convert_attrs& a, const tensor_view& out) {
  if (!a.dtype) a.dtype = out.type();
}
inline void complete(ops::uniform_attrs& a, const tensor_view& out) {
  if (!a.shape) a.shape = out.shape();
  if (!a.dtype) a.dtype = out.type();
}
inline void complete(ops::permutation_attrs& a, const tensor_view& out) {
  if (!a.n) a.n = out.count();
}
template <class Attrs>
void complete(Attrs&, const tensor_view&) {}

template <class Op>
void submit(context::impl& c, plan::inputs in, plan::outputs out, typename Op::attrs attrs) {
  plan::check_inputs(Op::name, Op::in, in);
  if (out.size() == 1 && out[0]) complete(attrs, out[0]);
  const tensor_spec spec = plan::planner<Op>::infer(in, attrs);
  plan::check_outputs(Op::name, Op::out, out, {&spec, 1});
  plan::check_devices(Op::name, Op::in, in, Op::out, out, c.options.where);
  // convert is elementwise: its exact aliases are harmless.
  plan::check_overlap(Op::name, Op::in, in, out, Op::id == ops::op_id::convert);
  if (out[0].count() == 0) return;
  c.run(Op::name, plan::planner<Op>::make(in, out[0], attrs));
}

}  // namespace repdl::api
