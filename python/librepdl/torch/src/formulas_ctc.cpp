// Connectionist temporal classification, in binary64: the logarithms of the sums over all paths that begin, or end, at a place of the
// targets with blanks between them, by recursions over time, each operation rounded.
#include <ATen/ops/_ctc_loss.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<int64_t> lengths_of(const IValue& v) {
  if (!v.isTensor()) return v.toIntVector();
  TORCH_CHECK(at::isIntegralType(v.toTensor().scalar_type(), /*includeBool=*/false), "input_lengths must be integral");
  const Tensor t = v.toTensor().to(at::kCPU, at::kLong).contiguous();
  return {t.const_data_ptr<int64_t>(), t.const_data_ptr<int64_t>() + t.numel()};
}
// (What aten makes of a list directly is written to memory, which tensors within torch.func have not.)
Tensor on_cpu(std::vector<int64_t> v) {
  return at::from_blob(v.data(), {static_cast<int64_t>(v.size())}, at::kLong).clone();
}
Tensor as_column(const std::vector<int64_t>& v, const Tensor& like) { return on_cpu(v).to(like.device()).unsqueeze(1); }

// The arguments log_probs, targets, input_lengths, target_lengths from `at` on, and what follows from them.
struct alignment {
  int64_t times, samples, places;
  Tensor log_probs, classes, skips;  // time, sample, class; sample, place; where a path may come from two places before
  Tensor inputs, ends;               // of each sample its length in time, and its last place: columns
  Tensor at_places;                  // log_probs of the classes: time, sample, place

  alignment(call& c, int at, int64_t blank) {
    const Tensor &given = c.tensor(at), &targets = c.tensor(at + 1);
    const auto input_lengths = lengths_of(c.value(at + 2)), target_lengths = lengths_of(c.value(at + 3));
    TORCH_CHECK(given.dim() == 3, "expected log probabilities of 3 dimensions, got ", given.dim());
    times = given.size(0);
    samples = given.size(1);
    TORCH_CHECK(targets.scalar_type() == at::kInt || targets.scalar_type() == at::kLong,
                "targets must be int32 or int64");
    TORCH_CHECK(blank >= 0 && blank < given.size(2), "blank must be in label range");
    TORCH_CHECK(static_cast<int64_t>(input_lengths.size()) == samples, "input_lengths must be of size batch_size");
    TORCH_CHECK(static_cast<int64_t>(target_lengths.size()) == samples, "target_lengths must be of size batch_size");
    TORCH_CHECK(targets.dim() == 1 || (targets.dim() == 2 && targets.size(0) == samples),
                "expected targets of 1 dimension, or of 2 with a row for each sample, got ", targets.sizes());
    int64_t longest = 0, sum = 0;
    std::vector<int64_t> offsets, last;
    for (size_t i = 0; i < target_lengths.size(); ++i) {
      const int64_t n = target_lengths[i];
      TORCH_CHECK(n >= 0, "Expected target_lengths to have value at least 0, but got value ", n);
      TORCH_CHECK(input_lengths[i] >= 0 && input_lengths[i] <= times, "Expected input_lengths to have value at most ",
                  times, ", but got value ", input_lengths[i]);
      TORCH_CHECK(targets.dim() == 1 || n <= targets.size(1), "Expected tensor to have size at least ", n,
                  " at dimension 1, but got size ", targets.size(1));
      offsets.push_back(targets.dim() == 1 ? sum : static_cast<int64_t>(i) * targets.size(1));
      last.push_back(2 * n);
      sum += n;
      longest = std::max(longest, n);
    }
    TORCH_CHECK(targets.dim() == 2 || targets.size(0) == sum, "Expected tensor to have size ", sum,
                " at dimension 0, but got size ", targets.size(0));
    places = 2 * longest + 1;
    log_probs = converted(given, at::kDouble);
    inputs = as_column(input_lengths, given);
    ends = as_column(last, given);
    // Blanks at even places, labels between them; beyond a sample's last place all are blank.
    const Tensor place = at::arange(places, inputs.options()).unsqueeze(0);
    const Tensor is_label = place.remainder(2).eq(1).logical_and(place.lt(ends));
    const Tensor flat = targets.reshape({-1}).to(given.device(), at::kLong);
    const Tensor source = at::where(is_label, as_column(offsets, given).add(place.bitwise_right_shift(1)), 0);
    classes = sum == 0 ? at::full({samples, places}, blank, inputs.options())
                       : at::where(is_label, flat.index_select(0, source.reshape({-1})).view({samples, places}), blank);
    expect_all(classes.ge(0).logical_and(classes.lt(given.size(2))), "expected targets that are classes");
    const Tensor two_before = at::cat({at::full({samples, std::min<int64_t>(places, 2)}, blank, inputs.options()),
                                       classes.narrow(1, 0, std::max<int64_t>(places - 2, 0))},
                                      1);
    skips = classes.ne(blank).logical_and(classes.ne(two_before)).logical_and(place.ge(2));
    at_places = at::gather(log_probs, 2, everywhere(classes));
  }

  Tensor everywhere(const Tensor& t) const { return t.unsqueeze(0).expand({times, samples, places}); }
  Tensor none() const { return at::full({samples, places}, -infinity, log_probs.options()); }
  // Each place's number becomes that of `by` places before, or after.
  static Tensor moved(const Tensor& t, int64_t by) {
    const int64_t n = t.size(1), count = std::min(std::abs(by), n);
    const Tensor empty = at::full({t.size(0), count}, -infinity, t.options());
    return by > 0 ? at::cat({empty, t.narrow(1, 0, n - count)}, 1) : at::cat({t.narrow(1, count, n - count), empty}, 1);
  }
  static Tensor sum(const Tensor& a, const Tensor& b, const Tensor& c) {
    return at::logsumexp(at::stack({a, b, c}), {0});
  }

  // Of the paths from the first time on.
  Tensor forwards() const {
    const Tensor place = at::arange(places, inputs.options()).unsqueeze(0);
    std::vector<Tensor> all;
    for (int64_t t = 0; t < times; ++t) {
      if (t == 0) {
        all.push_back(at_places[0].masked_fill(place.ge(2).logical_or(place.gt(ends)), -infinity));
        continue;
      }
      const Tensor& a = all.back();
      all.push_back(sum(a, moved(a, 1), moved(a, 2).masked_fill(skips.logical_not(), -infinity)).add(at_places[t]));
    }
    return all.empty() ? at::zeros({0, samples, places}, log_probs.options()) : at::stack(all);
  }
  // Of the paths to a sample's last time.
  Tensor backwards() const {
    const Tensor place = at::arange(places, inputs.options()).unsqueeze(0);
    const Tensor is_end = place.eq(ends).logical_or(place.eq(ends.sub(1)));
    std::vector<Tensor> all(static_cast<size_t>(times));
    Tensor b = none();
    for (int64_t t = times - 1; t >= 0; --t) {
      const Tensor two = moved(b.masked_fill(skips.logical_not(), -infinity), -2);
      const Tensor here = sum(b, moved(b, -1), two).add(at_places[t]);
      const Tensor start = at_places[t].masked_fill(is_end.logical_not(), -infinity);
      b = at::where(inputs.eq(t + 1), start, here.masked_fill(inputs.le(t), -infinity));
      all[static_cast<size_t>(t)] = b;
    }
    return all.empty() ? at::zeros({0, samples, places}, log_probs.options()) : at::stack(all);
  }
  // Of each sample, from what forwards() gave.
  Tensor loss(const Tensor& alpha) const {
    const Tensor empty = at::where(ends.eq(0), 0.0, infinity).to(at::kDouble).squeeze(1);
    if (times == 0) return empty;
    const Tensor last = alpha.gather(0, inputs.sub(1).clamp_min(0).expand({samples, places}).unsqueeze(0))[0];
    const Tensor blank = last.gather(1, ends),
                 label = last.gather(1, ends.sub(1).clamp_min(0)).masked_fill(ends.eq(0), -infinity);
    const Tensor all = at::logsumexp(at::cat({blank, label}, 1), {1}).neg();
    return at::where(inputs.squeeze(1).eq(0), empty, all);
  }
};
}  // namespace

// log_probs, targets, input_lengths, target_lengths, blank, zero_infinity -> (loss of each sample, logarithms of the paths to each place)
void ctc_loss_forward(call& c) {
  const alignment a(c, 0, c.integer(4));
  const Tensor alpha = a.forwards();
  c.give(converted(a.loss(alpha), c.tensor(0).scalar_type()));
  c.give(alpha);
}
// grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity. As PyTorch has it, g (e^lp - P),
// P the share of the paths through a class: the derivative where log_probs are a log_softmax.
void ctc_loss_backward(call& c) {
  const Tensor& given = c.tensor(1);
  const alignment a(c, 1, c.integer(7));
  const Tensor &alpha = c.tensor(6), loss = a.loss(alpha), lost = loss.eq(infinity).unsqueeze(1);
  const Tensor paths = alpha.add(a.backwards());
  const Tensor shares = paths.add(loss.unsqueeze(1)).sub(a.at_places).exp().masked_fill(paths.eq(-infinity), 0);
  const Tensor of_classes =
      at::scatter_add(at::zeros(a.log_probs.sizes(), a.log_probs.options()), 2, a.everywhere(a.classes), shares);
  const Tensor g = converted(c.tensor(0), at::kDouble).unsqueeze(1);
  const Tensor time = at::arange(a.times, a.inputs.options()).view({-1, 1, 1});
  const Tensor each = a.log_probs.exp()
                          .sub(of_classes)
                          .mul(g)
                          .masked_fill(lost, c.boolean(8) ? 0.0 : std::numeric_limits<double>::quiet_NaN());
  c.give(converted(each.masked_fill(time.ge(a.inputs), 0), given.scalar_type()));
}
// log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity; never cuDNN's
void ctc_loss(call& c) {
  const Tensor& given = c.tensor(0);
  const bool batched = given.dim() == 3, zero = c.boolean(6);
  const Tensor log_probs = batched ? given : given.unsqueeze(1);
  const auto of = [&](const auto& inputs, const auto& targets) {
    return std::get<0>(at::_ctc_loss(log_probs, c.tensor(1), inputs, targets, c.integer(4), zero));
  };
  const Tensor lengths = c.value(3).isTensor() ? c.tensor(3) : on_cpu(c.integers(3));
  Tensor loss = c.value(3).isTensor() ? of(c.tensor(2), c.tensor(3)) : of(c.integers(2), c.integers(3));
  if (zero) loss = at::where(loss.eq(infinity), at::zeros({}, loss.options()), loss);
  if (c.integer(5) == 1) return c.give(loss.div(lengths.to(loss.device(), loss.scalar_type()).clamp_min(1)).mean());
  c.give(c.integer(5) == 2 ? loss.sum() : batched ? loss : loss.squeeze(0));
}

}  // namespace repdl_torch::formulas
