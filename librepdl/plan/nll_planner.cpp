// Plans of nll_loss and its gradient.
#include "librepdl/plan/planner.hpp"

namespace repdl::plan {
namespace {

// Optional operands at the end may be left out.
const_tensor_view operand(inputs in, std::size_t i) { return i < in.size() ? in[i] : const_tensor_view(); }

// Checks weight against x, which has this number of classes. Returns the shape of the loss.
sizes check_nll(std::string_view op, const const_tensor_view& x, const const_tensor_view& targets,
                const const_tensor_view& weight, const nll_loss_options& a) {
  const int axis = class_axis(op, "x", x, a.axis);
  const sizes rows = check_targets(op, x, axis, targets);
  check_class_weights(op, "x", x, axis, weight);
  return a.reduction == reduction::none ? rows : sizes{};
}

// Of the sum of the weights.
dtype type_of_weights(dtype x) { return x == dtype::f64 ? dtype::f64 : dtype::f32; }

// What both have.
nll_plan plan_of(ops::op_id op, const const_tensor_view& x, const const_tensor_view& targets,
                 const const_tensor_view& weight, int axis, const nll_loss_options& a) {
  nll_plan p{};
  p.op = op;
  p.type = x.type();
  p.reduction = a.reduction;
  p.classes = x.shape()[axis];
  p.ignore_index = a.ignore_index;
  p.targets = static_cast<const std::int64_t*>(targets.data());
  p.weight = weight ? weight.data() : nullptr;
  p.weight_stride = weight ? weight.strides()[0] : 0;
  return p;
}

void set_space(nll_plan& p, loop_axes& l, int sorted_by) {
  l.squeeze();
  l.sort_by(sorted_by);
  l.merge();
  p.rank = l.rank;
  p.count = l.count();
  p.shape = l.shape;
  p.x_stride = l.stride[0];
  p.target_stride = l.stride[1];
  p.out_stride = l.stride[2];
  p.class_of = l.stride[3];
}

}  // namespace

specs infer_nll_loss(inputs in, const nll_loss_options& a) {
  specs both;
  both.push_back({in[0].type(), check_nll("nll_loss", in[0], in[1], operand(in, 2), a)});
  both.push_back({type_of_weights(in[0].type()), {}});
  return both;
}

tensor_spec infer_nll_loss_backward(inputs in, const nll_loss_options& a) {
  constexpr std::string_view op = "nll_loss_backward";
  check_format(op, "x", in[1], "g", in[0]);
  check_gradient(op, in[0], check_nll(op, in[1], in[2], operand(in, 3), a));
  const const_tensor_view total = operand(in, 4);
  if (a.reduction == reduction::mean && !total) {
    fail(error_site::absent_operand, op, "total_weight", "a tensor, for the mean", "none");
  }
  if (total && total.rank() != 0) {
    fail(error_site::operand_rank, op, "total_weight", "rank 0", "rank " + std::to_string(total.rank()));
  }
  if (total && total.type() != type_of_weights(in[1].type())) {
    fail(error_site::operand_dtype, op, "total_weight", std::string(name_of(type_of_weights(in[1].type()))),
         name_of(total.type()));
  }
  return {in[1].type(), in[1].shape()};
}

nll_plan make_nll_loss(inputs in, outputs out, const nll_loss_options& a) {
  const int axis = class_axis("", "", in[0], a.axis);
  nll_plan p = plan_of(ops::op_id::nll_loss, in[0], in[1], operand(in, 2), axis, a);
  p.each = a.reduction == reduction::none;
  p.x = in[0].data();
  p.class_stride = in[0].strides()[axis];
  p.out = out[0].data();
  p.total_weight = out[1] ? out[1].data() : nullptr;
  loop_axes samples;
  int row = 0;
  for (int i = 0; i < in[0].rank(); ++i) {
    if (i == axis) continue;
    samples.push(in[0].shape()[i],
                 {in[0].strides()[i], in[1].strides()[row], p.each ? out[0].strides()[row] : 0, std::int64_t{0}});
    ++row;
  }
  set_space(p, samples, p.each ? 2 : 0);
  return p;
}

nll_plan make_nll_loss_backward(inputs in, const tensor_view& out, const nll_loss_options& a) {
  const int axis = class_axis("", "", in[1], a.axis);
  nll_plan p = plan_of(ops::op_id::nll_loss_backward, in[1], in[2], operand(in, 3), axis, a);
  p.each = true;
  p.x = in[0].data();
  p.total = a.reduction == reduction::mean ? in[4].data() : nullptr;
  p.out = out.data();
  const bool has_axes = a.reduction == reduction::none;
  loop_axes elements;
  int row = 0;
  for (int i = 0; i < out.rank(); ++i) {
    const bool is_class = i == axis;
    elements.push(out.shape()[i], {!is_class && has_axes ? in[0].strides()[row] : 0,
                                   is_class ? 0 : in[2].strides()[row], out.strides()[i], is_class ? 1 : 0});
    row += is_class ? 0 : 1;
  }
  set_space(p, elements, 2);
  return p;
}

}  // namespace repdl::plan
