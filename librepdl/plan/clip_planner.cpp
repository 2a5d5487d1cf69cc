// Plans of norms of lists and of clipping by them.
#include <cmath>

#include "librepdl/plan/planner.hpp"

namespace repdl::plan {
namespace {

// The norm's output: of the tensors' format, f32 where there is none.
tensor_spec check_list(std::string_view op, const operand_rows& rows, inputs in, double p) {
  if (p != 1 && p != 2 && p != HUGE_VAL) fail(error_site::attribute_value, op, "p", "1, 2 or inf", to_text(p));
  for (std::size_t i = 1; i < in.size(); ++i) check_format(op, rows.in()[i].name, in[i], rows.in()[0].name, in[0]);
  return {in.empty() ? dtype::f32 : in[0].type(), {}};
}

}  // namespace

specs infer_total_norm(const operand_rows& rows, inputs in, const total_norm_options& a) {
  specs all;
  all.push_back(check_list("total_norm", rows, in, a.p));
  return all;
}

specs infer_clip_grad_norm(const operand_rows& rows, inputs in, const clip_grad_norm_options& a) {
  const tensor_spec norm = check_list("clip_grad_norm", rows, in, a.p);
  if (!(a.max_norm >= 0)) {
    fail(error_site::attribute_value, "clip_grad_norm", "max_norm", "a number >= 0 or inf", to_text(a.max_norm));
  }
  specs all;
  for (const const_tensor_view& v : in) all.push_back({v.type(), v.shape()});
  all.push_back(norm);
  return all;
}

clip_plan make_clip(ops::op_id op, inputs in, outputs out, double p, double max_norm) {
  const tensor_view& total = out[out.size() - 1];
  clip_plan plan{};
  plan.op = op;
  plan.type = in.empty() ? dtype::f32 : in[0].type();
  plan.p = p;
  plan.max_norm = max_norm;
  if (total) plan.total = total.data();
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i].count() == 0) continue;
    clip_tensor t{};
    t.count = in[i].count();
    loop_axes loop;
    for (int axis = 0; axis < in[i].rank(); ++axis) {
      loop.push(in[i].shape()[axis], {in[i].strides()[axis], plan.clips() ? out[i].strides()[axis] : 0});
    }
    loop.squeeze();
    loop.sort_by(0);
    loop.merge();
    t.rank = loop.rank;
    t.shape = loop.shape;
    t.in = in[i].data();
    t.in_stride = loop.stride[0];
    if (plan.clips()) t.out = out[i].data();
    t.out_stride = loop.stride[1];
    plan.tensors.push_back(t);
  }
  return plan;
}

}  // namespace repdl::plan
