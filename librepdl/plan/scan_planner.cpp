// Plans of prefixes, and of products, which are the last ones.
#include "librepdl/plan/planner.hpp"

namespace repdl::plan {

tensor_spec infer_scan(std::string_view op, inputs in, const scan_options& a) {
  normalize_axis(op, a.axis, in[0].rank());
  return {ops::total_type(in[0].type()), in[0].shape()};
}

scan_plan make_scan(ops::op_id op, const const_tensor_view& x, const tensor_view& out, const scan_options& a) {
  const int axis = normalize_axis("", a.axis, x.rank());
  loop_axes kept;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) kept.push(x.shape()[i], {out.strides()[i], x.strides()[i]});
  }
  kept.squeeze();
  kept.sort_by(0);
  kept.merge();
  scan_plan p{};
  p.op = op;
  p.type = x.type();
  p.kept_rank = kept.rank;
  p.reduced_rank = 1;
  p.lines = kept.count();
  p.length = x.shape()[axis];
  p.kept_shape = kept.shape;
  p.reduced_shape[0] = p.length;
  p.in = x.data();
  p.in_kept_stride = kept.stride[1];
  p.out = out.data();
  p.out_kept_stride = kept.stride[0];
  // A stride that no step is made along may be any number: a huge one becomes 0.
  p.in_reduced_stride[0] = p.length > 1 ? x.strides()[axis] : 0;
  p.out_step = p.length > 1 ? out.strides()[axis] : 0;
  return p;
}

scan_plan make_prod(inputs in, const tensor_view& out, const reduce_options& a) {
  const reduce_plan r = make_reduce(ops::op_id::prod, in, out, a);
  scan_plan p{};
  p.op = r.op;
  p.type = r.type;
  p.kept_rank = r.kept_rank;
  p.reduced_rank = r.reduced_rank;
  p.lines = r.outputs;
  p.length = r.length;
  p.kept_shape = r.kept_shape;
  p.reduced_shape = r.reduced_shape;
  p.in = r.in[0].data;
  p.in_kept_stride = r.in[0].kept_stride;
  p.in_reduced_stride = r.in[0].reduced_stride;
  p.out = r.out;
  p.out_kept_stride = r.out_stride;
  return p;
}

}  // namespace repdl::plan
