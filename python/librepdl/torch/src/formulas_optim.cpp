// aten's fused optimisers are librepdl's steps.
#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {

// p0 g0 s0 ..., in the order of the operation's operands.
using lists = std::vector<std::vector<Tensor>>;
// `absent`: a list that is written and not read, -1 for none.
void step(const operation& op, const lists& in, const std::vector<int>& written, at::ArrayRef<attribute> options,
          int absent = -1) {
  std::vector<operand> from, to;
  for (size_t i = 0; i < in[0].size(); ++i) {
    for (int k = 0; k < static_cast<int>(in.size()); ++k) {
      if (!in[k].empty()) from.emplace_back(k == absent ? operand() : operand(in[k][i]));
    }
    for (const int k : written) {
      if (!in[k].empty()) to.emplace_back(in[k][i]);
    }
  }
  if (!from.empty()) op(in[0][0].device(), from, to, options);
}
void only_plain(const call& c, int maximize, int grad_scale, int found_inf) {
  if (c.boolean(maximize)) c.refuse("with maximize");
  if (c.has(grad_scale) || c.has(found_inf)) c.refuse("with a gradient scaler");
}

}  // namespace

// self, grads, momentum_buffer_list, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale, found_inf
void fused_sgd(call& c) {
  static const operation op("sgd");
  only_plain(c, 8, 10, 11);
  lists all{c.value(0).toTensorVector(), c.value(1).toTensorVector(), c.value(2).toTensorVector()};
  const double momentum = c.real(4);
  if (momentum == 0) all[2].clear();
  const attribute options[] = {{"lr", c.real(5)},
                               {"momentum", momentum},
                               {"dampening", c.real(6)},
                               {"weight_decay", c.real(3)},
                               {"nesterov", c.boolean(7)}};
  step(op, all, {0, 2}, options, c.boolean(9) ? 2 : -1);  // the first step only writes the velocity
}

// self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale,
// found_inf
void fused_adamw(call& c) {
  static const operation op("adamw");
  only_plain(c, 12, 13, 14);
  if (c.boolean(11)) c.refuse("with amsgrad");
  const lists all{c.value(0).toTensorVector(), c.value(1).toTensorVector(), c.value(2).toTensorVector(),
                  c.value(3).toTensorVector()};
  const auto steps = c.value(5).toTensorVector();
  // Tensors of one step go together.
  std::vector<int64_t> step_of;
  for (const Tensor& t : steps) step_of.push_back(static_cast<int64_t>(t.item().toDouble()));
  for (size_t i = 0; i < step_of.size();) {
    size_t end = i;
    while (end < step_of.size() && step_of[end] == step_of[i]) ++end;
    lists part;
    for (const auto& list : all) part.emplace_back(list.begin() + i, list.begin() + end);
    const attribute options[] = {{"lr", c.real(6)},   {"beta1", c.real(7)},        {"beta2", c.real(8)},
                                 {"eps", c.real(10)}, {"weight_decay", c.real(9)}, {"step", step_of[i]}};
    step(op, part, {0, 2, 3}, options);
    i = end;
  }
}

}  // namespace repdl_torch::formulas
