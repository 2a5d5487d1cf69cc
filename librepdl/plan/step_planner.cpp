// Plans of optimiser steps: many tensors in one call.
#include "librepdl/num/fp_environment.hpp"
#include "librepdl/plan/planner.hpp"

namespace repdl::plan {

operand_rows::operand_rows(std::span<const ops::operand> in, std::span<const ops::operand> out, std::size_t given,
                           std::span<const ops::operand> once)
    : group_(in) {
  const std::size_t tensors = (given + in.size() - 1) / in.size();
  if (tensors > 1) names_.reserve(tensors * (in.size() + out.size()));  // the rows point to them
  const auto add = [&](std::span<const ops::operand> rows, bool may_be_absent) {
    for (std::size_t t = 0; t < tensors; ++t) {
      for (const ops::operand& r : rows) {
        ops::operand row = r;
        row.optional = row.optional && may_be_absent;
        if (tensors > 1) row.name = names_.emplace_back(std::string(r.name) + "[" + std::to_string(t) + "]");
        all_.push_back(row);
      }
    }
  };
  add(in, true);
  const std::size_t inputs_end = all_.size();
  add(out, false);
  for (const ops::operand& row : once) all_.push_back(row);
  in_ = std::span(all_).first(inputs_end);
  out_ = std::span(all_).subspan(inputs_end);
}

std::span<const ops::operand> group_in(const sgd_options& a) {
  return std::span(ops::sgd::in).first(a.momentum != 0 ? 3 : 2);
}
std::span<const ops::operand> group_out(const sgd_options& a) {
  return std::span(ops::sgd::out).first(a.momentum != 0 ? 2 : 1);
}

specs infer_step(std::string_view op, const operand_rows& rows, inputs in, std::size_t group_in,
                 std::size_t group_out) {
  specs all;
  for (std::size_t first = 0; first < in.size(); first += group_in) {
    const const_tensor_view& param = in[first];
    check_format(op, rows.in()[first].name, param, rows.in()[0].name, in[0]);
    check_format(op, rows.in()[first + 1].name, in[first + 1], rows.in()[0].name, in[0]);
    const dtype state = ops::state_format(param.type());
    for (std::size_t i = first + 2; i < std::min(in.size(), first + group_in); ++i) {
      if (in[i] && in[i].type() != state) {
        fail(error_site::operand_dtype, op, rows.in()[i].name,
             std::string(name_of(state)) + ", beside " + std::string(name_of(param.type())) + " parameters",
             name_of(in[i].type()));
      }
    }
    for (std::size_t i = first + 1; i < std::min(in.size(), first + group_in); ++i) {
      if (in[i] && !(in[i].shape() == param.shape())) {
        fail(error_site::gradient_shape, op, rows.in()[i].name, "the parameter's shape " + to_string(param.shape()),
             to_string(in[i].shape()));
      }
    }
    for (std::size_t o = 0; o < group_out; ++o) all.push_back({o == 0 ? param.type() : state, param.shape()});
  }
  return all;
}

void check_step(const sgd_options& a) {
  check_parameter("sgd", "lr", a.lr, true);
  check_parameter("sgd", "momentum", a.momentum, false);
  check_parameter("sgd", "dampening", a.dampening, true);
  check_parameter("sgd", "weight_decay", a.weight_decay, true);
  if (a.nesterov && a.momentum == 0) {
    fail(error_site::attribute_value, "sgd", "nesterov", "a momentum above 0 with it", "momentum 0");
  }
}

void check_step(const adamw_options& a) {
  check_parameter("adamw", "lr", a.lr, true);
  check_parameter("adamw", "eps", a.eps, false);
  check_parameter("adamw", "weight_decay", a.weight_decay, true);
  for (const auto& [name, beta] : {std::pair{"beta1", a.beta1}, std::pair{"beta2", a.beta2}}) {
    check_parameter("adamw", name, beta, false);
    if (beta >= 1) fail(error_site::attribute_value, "adamw", name, "a number in [0, 1)", to_text(beta));
  }
  if (a.step < 1) fail(error_site::attribute_value, "adamw", "step", ">= 1", std::to_string(a.step));
}

step_plan make_step(ops::op_id op, inputs in, outputs out, std::size_t group_in, std::size_t group_out) {
  step_plan p{};
  p.op = op;
  if (!in.empty()) p.type = in[0].type();
  for (std::size_t t = 0; t * group_out < out.size(); ++t) {
    const tensor_view& first = out[t * group_out];
    if (first.count() == 0) continue;
    // The operands of a tensor in the order of step_tensor: inputs, then outputs.
    const_tensor_view operand[7];
    for (std::size_t i = 0; i < group_in && t * group_in + i < in.size(); ++i) operand[i] = in[t * group_in + i];
    for (std::size_t i = 0; i < group_out; ++i) operand[4 + i] = out[t * group_out + i];
    step_tensor s{};
    s.count = first.count();
    loop_axes loop;
    for (int axis = 0; axis < first.rank(); ++axis) {
      const auto stride = [&](std::size_t i) { return operand[i] ? operand[i].strides()[axis] : 0; };
      loop.push(first.shape()[axis], {stride(0), stride(1), stride(2), stride(3), stride(4), stride(5), stride(6)});
    }
    loop.squeeze();
    loop.sort_by(0);
    loop.merge();
    s.rank = loop.rank;
    s.shape = loop.shape;
    for (std::size_t i = 0; i < 4; ++i) {
      s.in[i] = operand[i] ? operand[i].data() : nullptr;
      s.in_stride[i] = loop.stride[i];
    }
    for (std::size_t i = 0; i < 3; ++i) {
      s.out[i] = operand[4 + i] ? out[t * group_out + i].data() : nullptr;
      s.out_stride[i] = loop.stride[4 + i];
    }
    p.tensors.push_back(s);
  }
  return p;
}

}  // namespace repdl::plan
