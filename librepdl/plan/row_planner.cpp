// Plans of the softmax family.
#include "librepdl/plan/planner.hpp"

namespace repdl::plan {

namespace {

sizes without_axis(const sizes& shape, int axis) {
  sizes rest;
  for (int i = 0; i < shape.size(); ++i) {
    if (i != axis) rest.push_back(shape[i]);
  }
  return rest;
}

int class_axis(std::string_view op, const const_tensor_view& logits, const cross_entropy_options& a) {
  if (logits.rank() == 0) {
    fail(error_site::operand_rank, op, "logits", "at least one axis", "rank 0");
  }
  return normalize_axis(op, a.axis.value_or(logits.rank() > 1 ? 1 : 0), logits.rank());
}

// Shape of the targets, and of the loss.
sizes check_targets(std::string_view op, const const_tensor_view& logits, const const_tensor_view& targets,
                    const cross_entropy_options& a) {
  const sizes rows = without_axis(logits.shape(), class_axis(op, logits, a));
  if (!(targets.shape() == rows)) {
    fail(error_site::target_shape, op, "targets", "shape " + to_string(rows), to_string(targets.shape()));
  }
  return a.reduction == reduction::none ? rows : sizes{};
}

// Strides along the axes of x: of a tensor with one element per row, 0 along the reduced axes.
sizes row_strides(const const_tensor_view& v, const sizes& reduced, int rank, bool keepdim) {
  sizes strides;
  int at = 0;
  for (int i = 0; i < rank; ++i) {
    const bool is_reduced = std::find(reduced.begin(), reduced.end(), i) != reduced.end();
    strides.push_back(is_reduced ? 0 : v.strides()[at]);
    at += !is_reduced || keepdim ? 1 : 0;
  }
  return strides;
}

// The strides, along the axes of x, of every operand; absent ones step by 0.
struct row_operands {
  std::optional<sizes> out, second, g, target;
};

row_plan make_rows(ops::op_id op, const const_tensor_view& x, const sizes& reduced, const row_operands& o) {
  const auto step = [](const std::optional<sizes>& strides, int i) { return strides ? (*strides)[i] : 0; };
  loop_axes kept;
  loop_axes inner;
  for (int i = 0; i < x.rank(); ++i) {
    const bool is_reduced = std::find(reduced.begin(), reduced.end(), i) != reduced.end();
    (is_reduced ? inner : kept)
        .push(x.shape()[i], {x.strides()[i], step(o.out, i), step(o.second, i), step(o.g, i), step(o.target, i)});
  }
  row_plan p{};
  p.op = op;
  for (loop_axes* l : {&kept, &inner}) {  // the order of rows, and of the terms of a row, does not matter
    l->squeeze();
    l->sort_by(0);
    l->merge();
  }
  p.rows = kept.count();
  p.length = inner.count();
  p.kept_rank = kept.rank;
  p.reduced_rank = inner.rank;
  p.kept_shape = kept.shape;
  p.reduced_shape = inner.shape;
  p.in[0] = {floats(x), kept.stride[0], inner.stride[0]};
  p.out_kept_stride = kept.stride[1];
  p.out_reduced_stride = inner.stride[1];
  p.in[1] = {nullptr, kept.stride[2], inner.stride[2]};
  p.row_g_stride = kept.stride[3];
  p.target_stride = kept.stride[4];
  return p;
}

}  // namespace

tensor_spec infer_softmax(std::string_view op, inputs in, const softmax_options& a) {
  normalize_axis(op, a.axis, in[0].rank());
  if (in.size() > 1) check_gradient(op, in[0], in[1].shape());
  return {dtype::f32, in[0].shape()};
}

row_plan make_softmax(ops::op_id op, inputs in, const tensor_view& out, const softmax_options& a) {
  row_operands o{.out = out.strides(), .second = {}, .g = {}, .target = {}};
  if (in.size() > 1) o.second = in[1].strides();
  row_plan p = make_rows(op, in[0], {normalize_axis("", a.axis, in[0].rank())}, o);
  if (in.size() > 1) p.in[1].data = floats(in[1]);
  p.out = static_cast<float*>(out.data());
  return p;
}

tensor_spec infer_logsumexp(inputs in, const reduce_options& a) {
  return infer_reduce(ops::op_id::logsumexp, "logsumexp", dtype::f32, in, a);
}

tensor_spec infer_logsumexp_backward(inputs in, const reduce_options& a) {
  constexpr std::string_view op = "logsumexp_backward";
  const tensor_spec y = infer_reduce(ops::op_id::logsumexp_backward, op, dtype::f32, in.subspan(1, 1), a);
  check_gradient(op, in[0], y.shape);
  return {dtype::f32, in[1].shape()};
}

row_plan make_logsumexp(inputs in, const tensor_view& out, const reduce_options& a) {
  const sizes reduced = normalize_axes("", a.axis.list(), in[0].rank());
  row_plan p = make_rows(ops::op_id::logsumexp, in[0], reduced,
                         {row_strides(out, reduced, in[0].rank(), a.keepdim), {}, {}, {}});
  p.out = static_cast<float*>(out.data());
  return p;
}

row_plan make_logsumexp_backward(inputs in, const tensor_view& out, const reduce_options& a) {
  const sizes reduced = normalize_axes("", a.axis.list(), in[1].rank());
  row_plan p = make_rows(ops::op_id::logsumexp_backward, in[1], reduced,
                         {out.strides(), {}, row_strides(in[0], reduced, in[1].rank(), a.keepdim), {}});
  p.out = static_cast<float*>(out.data());
  p.row_g = floats(in[0]);
  return p;
}

tensor_spec infer_cross_entropy(inputs in, const cross_entropy_options& a) {
  return {dtype::f32, check_targets("cross_entropy", in[0], in[1], a)};
}

tensor_spec infer_cross_entropy_backward(inputs in, const cross_entropy_options& a) {
  constexpr std::string_view op = "cross_entropy_backward";
  check_gradient(op, in[0], check_targets(op, in[1], in[2], a));
  return {dtype::f32, in[1].shape()};
}

row_plan make_cross_entropy(inputs in, const tensor_view& out, const cross_entropy_options& a) {
  const int rank = in[0].rank();
  const sizes axis{class_axis("", in[0], a)};
  row_operands o{.out = {}, .second = {}, .g = {}, .target = row_strides(in[1], axis, rank, false)};
  if (a.reduction == reduction::none) o.out = row_strides(out, axis, rank, false);
  row_plan p = make_rows(ops::op_id::cross_entropy, in[0], axis, o);
  p.out = static_cast<float*>(out.data());
  p.target = static_cast<const std::int64_t*>(in[1].data());
  p.reduction = a.reduction;
  p.ignore_index = a.ignore_index;
  return p;
}

row_plan make_cross_entropy_backward(inputs in, const tensor_view& out, const cross_entropy_options& a) {
  const int rank = in[1].rank();
  const sizes axis{class_axis("", in[1], a)};
  row_operands o{.out = out.strides(), .second = {}, .g = {}, .target = row_strides(in[2], axis, rank, false)};
  if (a.reduction == reduction::none) o.g = row_strides(in[0], axis, rank, false);
  row_plan p = make_rows(ops::op_id::cross_entropy_backward, in[1], axis, o);
  p.out = static_cast<float*>(out.data());
  p.row_g = floats(in[0]);
  p.target = static_cast<const std::int64_t*>(in[2].data());
  p.reduction = a.reduction;
  p.ignore_index = a.ignore_index;
  return p;
}

}  // namespace repdl::plan
