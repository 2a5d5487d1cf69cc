// Plans of losses and their gradients.
#include "librepdl/plan/planner.hpp"

namespace repdl::plan {
namespace {

// The shape of the elements: of all operands but g. Where they were checked before, without rows.
sizes elements_of(std::string_view op, std::span<const ops::operand> rows, inputs in, std::size_t first) {
  sizes shape = in[first].shape();
  for (std::size_t i = first + 1; i < in.size(); ++i) {
    if (in[i] && !(in[i].shape() == shape)) {
      shape = broadcast(op, rows.empty() ? std::string_view() : rows[i].name, shape, in[i].shape());
    }
  }
  return shape;
}

}  // namespace

loss_call check_loss(std::string_view, const loss_options& o) { return {o.reduction}; }
loss_call check_loss(std::string_view op, const smooth_l1_loss_options& o) {
  check_parameter(op, "beta", o.beta, false);
  return {o.reduction, o.beta};
}
loss_call check_loss(std::string_view op, const huber_loss_options& o) {
  check_parameter(op, "delta", o.delta, false);
  if (o.delta == 0) fail(error_site::attribute_value, op, "delta", "a number in [2^-200, 2^200]", to_text(o.delta));
  return {o.reduction, o.delta};
}
loss_call check_loss(std::string_view, const binary_cross_entropy_options& o) { return {o.reduction}; }
loss_call check_loss(std::string_view, const binary_cross_entropy_with_logits_options& o) { return {o.reduction}; }
loss_call check_loss(std::string_view, const kl_div_options& o) {
  const bool by_sample = o.reduction == batch_reduction::batchmean;
  return {by_sample ? reduction::sum : static_cast<reduction>(static_cast<int>(o.reduction)), o.log_target ? 1.0 : 0.0,
          by_sample};
}

tensor_spec infer_loss(std::string_view op, std::span<const ops::operand> rows, inputs in, const loss_call& c,
                       bool gradient) {
  const dtype type = in[0].type();
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (in[i]) check_format(op, rows[i].name, in[i], rows[0].name, in[0]);
  }
  const sizes shape = elements_of(op, rows, in, gradient ? 1 : 0);
  element_count(shape);  // throws where there are too many
  const sizes loss = c.reduction == reduction::none ? shape : sizes{};
  if (gradient) check_gradient(op, in[0], loss);
  return {type, gradient ? shape : loss};
}

loss_plan make_loss(ops::op_id op, inputs in, const tensor_view& out, const loss_call& c, bool gradient) {
  loss_plan p{};
  p.op = op;
  p.type = in[0].type();
  p.parameter = c.parameter;
  p.each = gradient || c.reduction == reduction::none;
  p.inputs = static_cast<int>(in.size());
  p.out = out.data();
  const sizes shape = p.each ? out.shape() : elements_of("", {}, in, 0);
  sizes strides[std::size(p.in)];
  for (std::size_t i = 0; i < in.size(); ++i) {
    p.in[i].data = in[i].data();
    if (in[i]) strides[i] = broadcast_strides(in[i], shape);
  }
  loop_axes loop;
  for (int i = 0; i < shape.size(); ++i) {
    const auto at = [&](std::size_t k) { return k < in.size() && in[k] ? strides[k][i] : 0; };
    loop.push(shape[i], {p.each ? out.strides()[i] : 0, at(0), at(1), at(2), at(3), at(4)});
  }
  loop.squeeze();
  loop.sort_by(p.each ? 0 : 1);
  loop.merge();
  p.rank = loop.rank;
  p.count = loop.count();
  p.divisor = c.by_sample ? (shape.empty() ? 1 : shape[0]) : c.reduction == reduction::mean ? p.count : 1;
  p.shape = loop.shape;
  for (std::size_t i = 0; i < in.size(); ++i) p.in[i].stride = loop.stride[i + 1];
  p.out_stride = loop.stride[0];
  return p;
}

}  // namespace repdl::plan
