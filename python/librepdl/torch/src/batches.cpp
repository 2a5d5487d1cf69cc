// torch.func.vmap. PyTorch's batching rules write some operations as others that round more often, such as addmm as mm and add; here
// every sample has the bits that it has alone.
#include "batches.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/PlumbingHelper.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/stack.h>

#include <map>
#include <mutex>

namespace repdl_torch {
namespace {

using c10::DispatchKey;
using c10::FunctionSchema;
using c10::OperatorHandle;

template <class F>
IValue with_each_tensor(const IValue& v, F&& f) {
  if (v.isTensor()) return v.toTensor().defined() ? IValue(f(v.toTensor())) : v;
  if (v.isTensorList()) {
    c10::List<Tensor> all;
    for (const Tensor& t : v.toTensorVector()) all.push_back(t.defined() ? f(t) : t);
    return all;
  }
  if (v.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> all;
    for (const auto& t : v.toOptionalTensorVector())
      all.push_back(t.has_value() && t->defined() ? std::optional(f(*t)) : t);
    return all;
  }
  return v;
}

bool writes(const c10::Argument& a) { return a.alias_info() != nullptr && a.alias_info()->isWrite(); }
bool is(bool value, const FunctionSchema& schema, at::ArrayRef<IValue> arguments, const char* name) {
  const auto i = schema.argumentIndexWithName(name);
  return i.has_value() && arguments[*i].isBool() && arguments[*i].toBool() == value;
}

// A call inside of vmap: the innermost one, whose samples tensors may hold or not.
class batch {
 public:
  batch(const OperatorHandle& op, at::ArrayRef<IValue> arguments) : op_(op), arguments_(arguments) {
    auto layer = at::functorch::maybeCurrentDynamicLayer();
    TORCH_CHECK(layer.has_value(), name(), ": a tensor has escaped from a function that was called by torch.vmap");
    level = layer->layerId();
    size = layer->batchSize().guard_int(__FILE__, __LINE__);
    randomness = layer->randomness();
    for (const IValue& v : arguments_) any |= holds_samples(v);
  }

  const std::string& name() const { return op_.operator_name().name; }
  const FunctionSchema& schema() const { return op_.schema(); }
  at::ArrayRef<IValue> arguments() const { return arguments_; }
  bool holds_samples(const IValue& v) const {
    bool found = false;
    with_each_tensor(v, [&](const Tensor& t) {
      found |= at::functorch::isBatchedAtLevel(t, level);
      return t;
    });
    return found;
  }
  IValue sample(const IValue& v, int64_t i) const {
    return with_each_tensor(v, [&](const Tensor& t) {
      const auto [value, axis] = at::functorch::unwrapTensorAtLevel(t, level);
      return axis.has_value() ? value.select(*axis, i) : value;
    });
  }
  Tensor as_samples(Tensor t) const { return at::functorch::makeBatched(std::move(t), int64_t{0}, level); }

  // What is written must have a place for each sample; running statistics, where samples are what they are of.
  void check_places() const {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const c10::Argument& a = schema().arguments()[i];
      const bool running = a.name().compare(0, 8, "running_") == 0;
      const bool written =
          running ? holds_samples(arguments_[0]) && is(true, schema(), arguments_, "training") : writes(a);
      TORCH_CHECK(!written || arguments_[i].isNone() || holds_samples(arguments_[i]), "vmap: ", name(),
                  " cannot write the results of all samples into `", a.name(),
                  "`, which is one tensor for all of them");
    }
  }

  int64_t level = 0, size = 0;
  at::functorch::RandomnessType randomness;
  bool any = false;

 private:
  const OperatorHandle& op_;
  at::ArrayRef<IValue> arguments_;
};

// The generator that a call draws from, as it was before the first sample.
class generator_state {
 public:
  explicit generator_state(at::ArrayRef<IValue> arguments) {
    std::optional<at::Generator> given;
    for (const IValue& v : arguments) {
      if (v.isGenerator()) given = v.toGenerator();
    }
    generator_ = at::get_generator_or_default<at::CPUGeneratorImpl>(given, at::detail::getDefaultCPUGenerator());
    const std::lock_guard<std::mutex> lock(generator_->mutex_);
    before_ = generator_->engine();
  }
  void restore() const {
    const std::lock_guard<std::mutex> lock(generator_->mutex_);
    generator_->set_engine(before_);
  }

 private:
  at::CPUGeneratorImpl* generator_;
  at::mt19937 before_;
};

// The operation below vmap, for each sample.
Stack looped(const OperatorHandle& op, const batch& b, bool same_numbers) {
  b.check_places();
  const auto& returns = b.schema().returns();
  std::vector<std::vector<Tensor>> parts(returns.size());
  const std::optional<generator_state> numbers =
      same_numbers ? std::optional<generator_state>(std::in_place, b.arguments()) : std::nullopt;
  for (int64_t i = 0; i < b.size; ++i) {
    if (same_numbers && i > 0) numbers->restore();
    Stack one;
    for (const IValue& v : b.arguments()) one.push_back(b.sample(v, i));
    op.callBoxed(one);
    for (size_t r = 0; r < returns.size(); ++r) {
      TORCH_CHECK_NOT_IMPLEMENTED(one[r].isTensor(), b.name(), ": not reproducible yet in torch.vmap");
      parts[r].push_back(std::move(one[r]).toTensor());
    }
  }
  Stack results;
  for (size_t r = 0; r < returns.size(); ++r) {
    if (returns[r].alias_info() != nullptr) {
      results.push_back(b.arguments()[0]);
    } else if (!parts[r][0].defined()) {
      results.emplace_back(Tensor());
    } else {
      results.emplace_back(b.as_samples(at::stack(parts[r])));
    }
  }
  return results;
}

// An argument with the samples in front, or one for all of them.
struct operand_of_batch {
  Tensor t;
  bool samples;
  operand_of_batch(const batch& b, const IValue& v) {
    const auto [value, axis] = at::functorch::unwrapTensorAtLevel(v.toTensor(), b.level);
    samples = axis.has_value();
    t = samples ? value.movedim(*axis, 0) : value;
  }
  int64_t rank() const { return t.dim() - (samples ? 1 : 0); }
  // Axes of size 1 between the samples and the others.
  Tensor of_rank(int64_t rank_wanted) const {
    if (!samples || rank() >= rank_wanted) return t;
    auto shape = t.sizes().vec();
    shape.insert(shape.begin() + 1, static_cast<size_t>(rank_wanted - rank()), 1);
    return t.reshape(shape);
  }
  Tensor repeated(int64_t size) const {
    if (samples) return t;
    auto shape = t.sizes().vec();
    shape.insert(shape.begin(), size);
    return t.expand(shape);
  }
};

// Elementwise: one call of the samples side by side, unless the operands' ranks decide the result's type, and a rank is another then.
std::optional<Stack> elementwise_together(const OperatorHandle& op, const batch& b) {
  int64_t rank = 0;
  bool one_type = true, numbers_among_samples = false;
  std::optional<at::ScalarType> type;
  std::vector<std::optional<operand_of_batch>> operands;
  for (const IValue& v : b.arguments()) {
    operands.emplace_back();
    if (!v.isTensor() || !v.toTensor().defined()) continue;
    const operand_of_batch& o = operands.back().emplace(b, v);
    rank = std::max(rank, o.rank());
    numbers_among_samples |= o.samples && o.rank() == 0;
    if (!o.samples && o.t.unsafeGetTensorImpl()->is_wrapped_number()) continue;
    one_type &= type.value_or(o.t.scalar_type()) == o.t.scalar_type();
    type = o.t.scalar_type();
  }
  if (numbers_among_samples && !one_type) return std::nullopt;
  const bool in_place = writes(b.schema().arguments()[0]);
  if (in_place && operands[0]->rank() != rank) return std::nullopt;  // an error
  if (in_place) b.check_places();
  Stack together;
  for (size_t i = 0; i < operands.size(); ++i)
    together.push_back(operands[i].has_value() ? IValue(operands[i]->of_rank(rank)) : b.arguments()[i]);
  op.callBoxed(together);
  if (in_place) return Stack{b.arguments()[0]};
  for (IValue& v : together) {
    if (v.toTensor().dim() != rank + 1) return std::nullopt;  // of operands that are not batched
    v = b.as_samples(std::move(v).toTensor());
  }
  return together;
}

// Products with what is added to them: batched products, or one product of all samples' rows.
using product = Tensor (*)(const batch&);

// self + x y of matrices; y may be one for all samples.
Tensor added_product(const operand_of_batch& self, const operand_of_batch& x, const operand_of_batch& y, int64_t size,
                     const at::Scalar& beta, const at::Scalar& alpha) {
  if (!y.samples && !self.samples && (self.rank() < 2 || self.t.size(0) == 1)) {
    const Tensor& rows = x.t;
    return at::addmm(self.t, rows.reshape({rows.size(0) * rows.size(1), rows.size(2)}), y.t, beta, alpha)
        .view({rows.size(0), rows.size(1), y.t.size(1)});
  }
  return at::baddbmm(self.of_rank(2), x.repeated(size), y.repeated(size), beta, alpha);
}
bool are_matrices(const batch& b, int64_t rank_of_second) {
  const auto rank = [&](int i) { return b.arguments()[i].toTensor().dim(); };
  return rank(0) <= rank_of_second && rank(1) == 2 && rank(2) == rank_of_second;
}
// self, mat1, mat2, beta, alpha
Tensor addmm(const batch& b) {
  if (!are_matrices(b, 2)) return {};
  const operand_of_batch self(b, b.arguments()[0]), x(b, b.arguments()[1]), y(b, b.arguments()[2]);
  return added_product(self, x, y, b.size, b.arguments()[3].toScalar(), b.arguments()[4].toScalar());
}
// self, mat, vec, beta, alpha: each vector a row, times the transposed matrix
Tensor addmv(const batch& b) {
  if (!are_matrices(b, 1)) return {};
  operand_of_batch self(b, b.arguments()[0]), matrix(b, b.arguments()[1]), vector(b, b.arguments()[2]);
  if (!vector.samples) vector.t = vector.t.expand({b.size, vector.t.size(0)});
  vector.samples = true;
  vector.t = vector.t.unsqueeze(1);
  matrix.t = matrix.t.transpose(-2, -1);
  return added_product(self, vector, matrix, b.size, b.arguments()[3].toScalar(), b.arguments()[4].toScalar())
      .squeeze(1);
}
// self, batch1, batch2, beta, alpha
Tensor baddbmm(const batch& b) {
  const operand_of_batch self(b, b.arguments()[0]), x(b, b.arguments()[1]), y(b, b.arguments()[2]);
  if (self.rank() > 3 || x.rank() != 3 || y.rank() != 3) return {};
  const auto flat = [&](const operand_of_batch& o) { return o.repeated(b.size).flatten(0, 1); };
  const Tensor first = flat(x), second = flat(y);
  const int64_t each = x.t.size(x.samples ? 1 : 0), rows = first.size(1), columns = second.size(2);
  Tensor added = self.of_rank(3);
  if (!self.samples && self.rank() == 3) added = added.unsqueeze(0);
  if (added.dim() == 4) added = added.expand({b.size, each, rows, columns}).reshape({b.size * each, rows, columns});
  return at::baddbmm(added, first, second, b.arguments()[3].toScalar(), b.arguments()[4].toScalar())
      .view({b.size, each, rows, columns});
}

}  // namespace

std::string batched_by_aten() {
  return ""
#define REPDL_BATCHES(names) " " names
#include "batches.def"
#undef REPDL_BATCHES
      ;
}

bool run_batched(batching how, const OperatorHandle& op, Stack* stack) {
  using at::functorch::RandomnessType;
  const size_t count = op.schema().arguments().size();
  const Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  const batch b(op, arguments);
  if (b.size == 0) return false;
  torch::jit::drop(*stack, count);
  const auto share = op.schema().argumentIndexWithName("dropout_p");
  const bool draws = how == batching::drawn && !is(false, op.schema(), arguments, "train") &&
                     !(share.has_value() && arguments[*share].toDouble() == 0);
  TORCH_CHECK(!draws || b.randomness != RandomnessType::Error,
              "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
              "'different' randomness flags on vmap or perform the randomness operation out of vmap");
  const c10::impl::ExcludeDispatchKeyGuard below(
      c10::DispatchKeySet({DispatchKey::FuncTorchBatched, DispatchKey::FuncTorchVmapMode}));
  if (!b.any && !(draws && b.randomness == RandomnessType::Different)) {
    stack->insert(stack->end(), arguments.begin(), arguments.end());
    op.callBoxed(stack);
    return true;
  }
  std::optional<Stack> results;
  if (how == batching::together) results = elementwise_together(op, b);
  static const std::map<std::string, product> products = {
      {"aten::addmm", addmm}, {"aten::addmv", addmv}, {"aten::baddbmm", baddbmm}};
  const auto found = products.find(b.name());
  if (found != products.end()) {
    Tensor t = found->second(b);
    if (t.defined()) results = Stack{b.as_samples(std::move(t))};
  }
  if (!results.has_value()) results = looped(op, b, draws && b.randomness == RandomnessType::Same);
  stack->insert(stack->end(), results->begin(), results->end());
  return true;
}

bool only_batched(const std::vector<bool>& those, const OperatorHandle& op, const Stack& stack) {
  const batch b(op, torch::jit::last(stack, those.size()));
  for (size_t i = 0; i < those.size(); ++i) {
    if (!those[i] && b.holds_samples(b.arguments()[i])) return false;
  }
  return true;
}

}  // namespace repdl_torch
