// Plans of sums to places given by indices.
#include "librepdl/plan/planner.hpp"

namespace repdl::plan {
namespace {

void check_same_type(std::string_view op, std::string_view name, const const_tensor_view& v, dtype type) {
  if (v.type() != type) {
    fail(error_site::operand_dtype, op, name, std::string(name_of(type)) + ", as x", name_of(v.type()));
  }
}

// The axis that is indexed; x has one, of at least rank 1.
int check_indexed(std::string_view op, inputs in, const index_add_options& a) {
  check_same_type(op, "source", in[2], in[0].type());
  check_parameter(op, "alpha", a.alpha, true);
  return normalize_axis(op, a.axis, in[0].rank());
}

// The strides of `axes` operands for loop_axes: by merging, order matters (row-major).
scatter_plan::space space_of(const loop_axes& l) { return {l.rank, l.count(), l.shape}; }

scatter_plan plan_of(ops::op_id op, const const_tensor_view& index, const const_tensor_view& source,
                     const tensor_view& out) {
  scatter_plan p{};
  p.op = op;
  p.type = out.type();
  p.alpha = 1;
  p.skipped = -1;
  p.index = static_cast<const std::int64_t*>(index.data());
  p.source.data = source.data();
  p.out = out.data();
  return p;
}

// positions: the strides of index, source and, of a target's number, target_stride.
void set_positions(scatter_plan& p, loop_axes l) {
  l.squeeze();
  l.merge();
  p.positions = space_of(l);
  p.index_stride = l.stride[0];
  p.source.outer_stride = l.stride[1];
  p.target_stride = l.stride[2];
}
// targets: the strides of out and x, in the order of their numbers.
void set_targets(scatter_plan& p, loop_axes l) {
  l.squeeze();
  l.merge();
  p.targets = space_of(l);
  p.out_stride = l.stride[0];
  p.x.outer_stride = l.stride[1];
}
// inner: the strides of source, out and x; in any order.
void set_inner(scatter_plan& p, loop_axes l) {
  l.squeeze();
  l.sort_by(0);
  l.merge();
  p.inner = space_of(l);
  p.source.inner_stride = l.stride[0];
  p.out_inner_stride = l.stride[1];
  p.x.inner_stride = l.stride[2];
}

}  // namespace

tensor_spec infer_index_add(std::string_view op, inputs in, const index_add_options& a) {
  const int axis = check_indexed(op, in, a);
  check_rank(op, "index", in[1], 1, "a list of indices");
  sizes source = in[0].shape();
  source[axis] = in[1].shape()[0];
  if (!(in[2].shape() == source)) {
    fail(error_site::index_shape, op, "source", "the shape of x, with a slice for each index, " + to_string(source),
         to_string(in[2].shape()));
  }
  return {in[0].type(), in[0].shape()};
}

scatter_plan make_index_add(inputs in, const tensor_view& out, const index_add_options& a) {
  const const_tensor_view &x = in[0], &index = in[1], &source = in[2];
  const int axis = normalize_axis("", a.axis, x.rank());
  scatter_plan p = plan_of(ops::op_id::index_add, index, source, out);
  p.alpha = a.alpha;
  p.bound = x.shape()[axis];
  p.target_step = 1;
  p.x.data = x.data();
  loop_axes positions, targets, inner;
  positions.push(index.shape()[0], {index.strides()[0], source.strides()[axis], 0});
  targets.push(x.shape()[axis], {out.strides()[axis], x.strides()[axis]});
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) inner.push(x.shape()[i], {source.strides()[i], out.strides()[i], x.strides()[i]});
  }
  set_positions(p, positions);
  set_targets(p, targets);
  set_inner(p, inner);
  return p;
}

tensor_spec infer_scatter_add(std::string_view op, inputs in, const index_add_options& a) {
  const int axis = check_indexed(op, in, a);
  check_rank(op, "index", in[1], in[0].rank(), "axes as x has");
  check_rank(op, "source", in[2], in[0].rank(), "axes as x has");
  for (int i = 0; i < in[0].rank(); ++i) {
    const std::int64_t size = in[1].shape()[i];
    if (size > in[2].shape()[i] || (i != axis && size > in[0].shape()[i])) {
      fail(error_site::index_shape, op, "index",
           "at most the sizes of source " + to_string(in[2].shape()) + ", and of x " + to_string(in[0].shape()) +
               " but along the axis",
           to_string(in[1].shape()));
    }
  }
  return {in[0].type(), in[0].shape()};
}

// Every element of x is a target, every one of index a position.
scatter_plan make_scatter_add(inputs in, const tensor_view& out, const index_add_options& a) {
  const const_tensor_view &x = in[0], &index = in[1], &source = in[2];
  const int axis = normalize_axis("", a.axis, x.rank());
  scatter_plan p = plan_of(ops::op_id::scatter_add, index, source, out);
  p.alpha = a.alpha;
  p.bound = x.shape()[axis];
  p.x.data = x.data();
  loop_axes positions, targets;
  sizes number = x.shape();  // the stride of targets' numbers along each axis
  std::int64_t next = 1;
  for (int i = x.rank() - 1; i >= 0; --i) {
    number[i] = next;
    next *= x.shape()[i];
  }
  p.target_step = number[axis];
  for (int i = 0; i < x.rank(); ++i) {
    positions.push(index.shape()[i], {index.strides()[i], source.strides()[i], i == axis ? 0 : number[i]});
    targets.push(x.shape()[i], {out.strides()[i], x.strides()[i]});
  }
  set_positions(p, positions);
  set_targets(p, targets);
  set_inner(p, {});
  return p;
}

tensor_spec infer_embedding_backward(std::string_view op, inputs in, const ops::embedding_backward_attrs& a) {
  const const_tensor_view &g = in[0], &indices = in[1];
  if (*a.rows < 0) fail(error_site::attribute_value, op, "rows", "a number >= 0", std::to_string(*a.rows));
  if (a.padding_idx && (*a.padding_idx < -*a.rows || *a.padding_idx >= *a.rows)) {
    fail(error_site::attribute_value, op, "padding_idx", "a row in [-rows, rows)", std::to_string(*a.padding_idx));
  }
  bool same = g.rank() == indices.rank() + 1;
  for (int i = 0; same && i < indices.rank(); ++i) same = g.shape()[i] == indices.shape()[i];
  if (!same) {
    fail(error_site::index_shape, op, "g", "the shape of indices " + to_string(indices.shape()) + " and one axis more",
         to_string(g.shape()));
  }
  return {g.type(), {*a.rows, g.shape()[g.rank() - 1]}};
}

scatter_plan make_embedding_backward(inputs in, const tensor_view& out, const ops::embedding_backward_attrs& a) {
  const const_tensor_view &g = in[0], &indices = in[1];
  scatter_plan p = plan_of(ops::op_id::embedding_backward, indices, g, out);
  p.mean = a.scale_grad_by_freq;
  p.bound = *a.rows;
  if (a.padding_idx) p.skipped = *a.padding_idx + (*a.padding_idx < 0 ? *a.rows : 0);
  p.target_step = 1;
  loop_axes positions, targets, inner;
  for (int i = 0; i < indices.rank(); ++i) {
    positions.push(indices.shape()[i], {indices.strides()[i], g.strides()[i], 0});
  }
  targets.push(*a.rows, {out.strides()[0], 0});
  inner.push(g.shape()[g.rank() - 1], {g.strides()[g.rank() - 1], out.strides()[1], 0});
  set_positions(p, positions);
  set_targets(p, targets);
  set_inner(p, inner);
  return p;
}

}  // namespace repdl::plan
