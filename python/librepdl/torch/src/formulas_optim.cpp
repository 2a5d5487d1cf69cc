// aten's fused optimisers are librepdl's steps; gradient scalers.
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/add.h>
#include <ATen/ops/all.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/where.h>

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
// What librepdl's steps lack: states are float32, of float64 parameters float64.
void only_known_states(const call& c, const lists& all) {
  for (size_t k = 2; k < all.size(); ++k) {
    for (size_t i = 0; i < all[k].size(); ++i) {
      const at::ScalarType state = all[0][i].scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
      if (all[k][i].scalar_type() != state)
        c.refuse(
            "with states in other types than float32 (of float64 parameters float64); without fused=True it is "
            "computed");
    }
  }
}
// Whether a gradient scaler has found numbers that are not finite: then the step changes nothing. (Arguments grad_scale, found_inf.)
bool skipped(const call& c, int at) {
  if (c.has(at)) c.refuse("of gradients that are still scaled; after scaler.unscale_(optimizer) it is computed");
  return c.has(at + 1) && c.tensor(at + 1).item().toDouble() != 0;
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
  if (c.boolean(11)) c.refuse("with amsgrad");
  if (skipped(c, 13)) return;
  const lists all{c.value(0).toTensorVector(), gradients(c, 12), c.value(2).toTensorVector(),
                  c.value(3).toTensorVector()};
  only_known_states(c, all);
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
  lists all{c.value(0).toTensorVector(), gradients(c, 8), c.value(2).toTensorVector()};
  const double momentum = c.real(4);
  if (momentum == 0) all[2].clear();
  only_known_states(c, all);
  if (skipped(c, 10)) {
    // PyTorch takes the next step for a later one, with velocities that nobody has written.
    for (Tensor& v : all[2]) {
      if (c.boolean(9)) v.zero_();
    }
    return;
  }
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

// The gradients in place, each times inv_scale, rounded once; found_inf becomes 1 where one of their numbers was not finite.
void amp_unscale(call& c) {
  static const operation mul("mul");
  const Tensor &found = c.tensor(1), &inverse = c.tensor(2);
  TORCH_CHECK(inverse.numel() == 1, "inv_scale must be a 1-element tensor.");
  TORCH_CHECK(found.numel() == 1, "found_inf must be a 1-element tensor.");
  TORCH_CHECK(inverse.scalar_type() == at::kFloat, "inv_scale must be a float tensor.");
  TORCH_CHECK(found.scalar_type() == at::kFloat, "found_inf must be a float tensor.");
  for (const Tensor& g : c.value(0).toTensorVector()) {
    TORCH_CHECK(g.device() == found.device() && g.device() == inverse.device(),
                "expected gradients, found_inf and inv_scale on one device, got ", g.device(), ", ", found.device(),
                " and ", inverse.device());
    at::assert_no_internal_overlap(g);
    found.masked_fill_(at::logical_not(at::all(at::isfinite(g))), 1);
    const at::ScalarType type = g.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const Tensor wide = converted(g, type), by = converted(inverse.reshape({}), type);
    mul({wide, by}, {&g});
  }
}

// scale, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval; nothing waits for the device.
void amp_update_scale(call& c) {
  static const operation mul("mul");
  const Tensor &scale = c.tensor(0), &tracker = c.tensor(1), &found = c.tensor(2);
  TORCH_CHECK(tracker.numel() == 1, "growth_tracker must be a 1-element tensor.");
  TORCH_CHECK(scale.numel() == 1, "current_scale must be a 1-element tensor.");
  TORCH_CHECK(found.numel() == 1, "found_inf must be a 1-element tensor.");
  TORCH_CHECK(tracker.scalar_type() == at::kInt, "growth_tracker must be an int tensor.");
  const auto times = [&](double factor) {  // scale and factor are exact: one rounding, to f32
    const Tensor wide = converted(scale, at::kDouble), by = number_on(factor, at::kDouble, scale.device());
    Tensor out = fresh_like(scale);
    mul({wide, by}, {&out});
    return out;
  };
  const Tensor inf = at::ne(found, 0).reshape(scale.sizes());
  const Tensor count = at::add(tracker, 1).reshape(scale.sizes()), due = at::eq(count, c.integer(5));
  const Tensor grown = times(c.real(3));
  const Tensor grows = at::logical_and(due, at::isfinite(grown));
  scale.copy_(at::where(inf, times(c.real(4)), at::where(grows, grown, scale)));
  tracker.copy_(at::where(at::logical_or(inf, due), 0, count).reshape(tracker.sizes()));
  c.give(scale);
}

}  // namespace repdl_torch::formulas
