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
// grad_scale and found_inf
void without_scaler(const call& c, int at) {
  if (c.has(at) || c.has(at + 1)) c.refuse("with a gradient scaler");
}
// The gradients; `maximize` negates them, which is exact.
std::vector<Tensor> gradients(const call& c, int maximize) {
  auto all = c.value(1).toTensorVector();
  if (c.boolean(maximize)) {
    for (Tensor& g : all) g = map("neg", {g});
  }
  return all;
}
// A number, or a tensor of one.
double rate(const call& c, int i) { return c.value(i).isTensor() ? c.tensor(i).item().toDouble() : c.real(i); }

// self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
// grad_scale, found_inf
void adamw_steps(call& c) {
  static const operation op("adamw");
  without_scaler(c, 13);
  if (c.boolean(11)) c.refuse("with amsgrad");
  const lists all{c.value(0).toTensorVector(), gradients(c, 12), c.value(2).toTensorVector(),
                  c.value(3).toTensorVector()};
  const auto steps = c.value(5).toTensorVector();
  const double lr = rate(c, 6);
  // Tensors of one step go together.
  std::vector<int64_t> step_of;
  for (const Tensor& t : steps) step_of.push_back(static_cast<int64_t>(t.item().toDouble()));
  for (size_t i = 0; i < step_of.size();) {
    size_t end = i;
    while (end < step_of.size() && step_of[end] == step_of[i]) ++end;
    lists part;
    for (const auto& list : all) part.emplace_back(list.begin() + i, list.begin() + end);
    const attribute options[] = {{"lr", lr},          {"beta1", c.real(7)},        {"beta2", c.real(8)},
                                 {"eps", c.real(10)}, {"weight_decay", c.real(9)}, {"step", step_of[i]}};
    step(op, part, {0, 2, 3}, options);
    i = end;
  }
}

}  // namespace

// self, grads, momentum_buffer_list, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale, found_inf
void fused_sgd(call& c) {
  static const operation op("sgd");
  without_scaler(c, 10);
  lists all{c.value(0).toTensorVector(), gradients(c, 8), c.value(2).toTensorVector()};
  const double momentum = c.real(4);
  if (momentum == 0) all[2].clear();
  const attribute options[] = {{"lr", rate(c, 5)},
                               {"momentum", momentum},
                               {"dampening", c.real(6)},
                               {"weight_decay", c.real(3)},
                               {"nesterov", c.boolean(7)}};
  step(op, all, {0, 2}, options, c.boolean(9) ? 2 : -1);  // the first step only writes the velocity
}

void fused_adamw(call& c) { adamw_steps(c); }
// Without weight_decay it is AdamW.
void fused_adam(call& c) {
  if (c.real(9) != 0) c.refuse("with weight_decay there is no step in librepdl; without fused=True it is computed");
  adamw_steps(c);
}

}  // namespace repdl_torch::formulas
