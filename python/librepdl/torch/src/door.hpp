// What stands at aten's dispatch keys while librepdl is enabled.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "library.hpp"

namespace repdl_torch {

using c10::IValue;
using torch::jit::Stack;

class call;
using formula = void (*)(call&);

/// Element types that a row takes; the others are refused.
enum types : unsigned {
  F32 = 1,
  F16 = 2,
  BF16 = 4,
  F64 = 8,
  NARROW = F32 | F16 | BF16,
  FLOATS = NARROW | F64,
  ANY = 16,  // the formula looks itself: also integers, or no tensors at all
  INTEGERS =
      32,  // integers become floating-point numbers of PyTorch's default type first; of a formula: it looks at them itself
  NUMBERS = 64,  // of a 16-bit result, numbers are f32: the operation rounds once from there
};
/// The bit of an element type; 0 for those that no row takes.
unsigned type_bit(at::ScalarType type);

/// What is done with one aten schema and its variants (policy.def).
enum class action { map, formula, pin, derivative, pass, refuse };
struct row {
  action what;
  unsigned types;
  const char* schema;  // "add.Tensor(self, other, alpha)"; pass: the names alone
  const char* how;     // map: "add(self, other; alpha)": librepdl's operation, operands, attributes; refuse: why
  formula function;
};
at::ArrayRef<row> policy();
/// Raised when the bits of anything that was enabled before change.
inline constexpr int policy_version = 4;

/// The ways in which aten spells one function.
enum class variant { functional, in_place, out };

/// An overload while it is replaced.
struct overload {
  const row* what;
  variant kind;
  int arguments;     // before those that are outputs
  int outputs;       // out=: how many
  std::string name;  // "aten::add_.Tensor"
};

/// One call of a formula: arguments in the order of the functional schema. It gives as many results as the schema returns.
class call {
 public:
  call(const overload& o, const IValue* arguments) : overload_(o), argument_(arguments) {}

  const Tensor& tensor(int i) const {
    static const Tensor none;
    return argument_[i].isTensor() ? argument_[i].toTensor() : none;
  }
  std::optional<Tensor> optional(int i) const {
    return argument_[i].isTensor() && tensor(i).defined() ? std::optional(tensor(i)) : std::nullopt;
  }
  bool has(int i) const { return !argument_[i].isNone(); }
  bool boolean(int i) const { return argument_[i].toBool(); }
  int64_t integer(int i) const { return argument_[i].toInt(); }
  std::vector<int64_t> integers(int i) const;  // empty if None
  /// aten's `float`: exactly.
  double real(int i) const {
    return argument_[i].isInt() ? static_cast<double>(argument_[i].toInt()) : argument_[i].toDouble();
  }
  /// aten's `Scalar`: rounded to what PyTorch computes with for the element type.
  double number(int i, at::ScalarType type) const;
  at::ScalarType type(int i, at::ScalarType otherwise) const {
    return has(i) ? argument_[i].toScalarType() : otherwise;
  }
  std::string text(int i) const { return std::string(argument_[i].toStringView()); }
  const IValue& value(int i) const { return argument_[i]; }

  void give(Tensor t) { results.push_back(std::move(t)); }
  /// NotImplementedError: the operation's name, and why it is not reproducible.
  [[noreturn]] void refuse(const std::string& why) const;
  /// Nothing rounds: aten's own kernel is to do it.
  void leave() { left = true; }
  at::ArrayRef<IValue> arguments() const {
    return at::ArrayRef<IValue>(argument_, static_cast<size_t>(overload_.arguments));
  }
  const overload& what() const { return overload_; }

  c10::SmallVector<Tensor, 3> results;
  bool left = false;

 private:
  const overload& overload_;
  const IValue* argument_;
};

/// Elementwise by the rules of TensorIterator: promotion, broadcasting, the order of the result's memory.
struct map_spec {
  operation op;
  struct option {
    std::string name;
    int argument;
    bool scalar;  // aten's Scalar, else float
  };
  std::vector<int> operands;
  std::vector<option> options;
};
/// Of a functional schema; throws where the row does not fit it.
std::unique_ptr<map_spec> parse_map(const row& r, const c10::FunctionSchema& schema);
/// Leaves the result where the variant wants it, and returns it; undefined: nothing rounds (integers), aten's own kernel has to do it.
Tensor run_map(const overload& o, const map_spec& spec, const IValue* arguments, const Tensor& into);
/// A schema on lists, _foreach_NAME, that calls an elementwise one for each tensor of them.
struct list_spec {
  map_spec each;
  unsigned types;  // the row's
  bool in_place;
};
/// That of a schema on lists, or nothing; row_of(schema of the one for tensors): its row.
using row_finder = std::function<const row*(const c10::FunctionSchema&)>;
std::unique_ptr<list_spec> parse_list(const c10::FunctionSchema& schema, const row_finder& row_of);
/// All of a list's calls together; false, and nothing done: one after the other is how they are to be computed.
bool run_list(const list_spec& spec, at::ArrayRef<IValue> arguments, std::vector<Tensor>& results);
/// librepdl's operation `name` on tensors that promote and broadcast, for formulas.
Tensor map(const char* name, at::ArrayRef<Tensor> in, at::ArrayRef<attribute> options = {});

/// What CUDA's autocast does with the floating-point operands of an operation: the lower precision, float32, float32 for the result
/// unless a type is given, the widest of their types.
enum class precision { as_it_is, lower, full, full_unless_said, widest };
precision autocast_precision(const c10::OperatorName& name);
/// Does it on the CPU, and calls the operation below autocast.
void run_autocast(precision p, const c10::OperatorHandle& op, Stack* stack);

/// Puts f(tensor) in the place of a tensor, or of each one of a list.
template <class F>
void change_each_tensor(IValue& v, F&& f) {
  if (v.isTensor()) {
    if (v.toTensor().defined()) v = f(v.toTensor());
  } else if (v.isTensorList()) {
    std::vector<Tensor> list = v.toTensorVector();
    for (Tensor& t : list) {
      if (t.defined()) t = f(t);
    }
    v = std::move(list);
  } else if (v.isList()) {  // of tensors or nothing
    auto list = v.toList();
    auto changed = list.copy();
    for (size_t i = 0; i < changed.size(); ++i) {
      const IValue e = changed.get(i);
      if (e.isTensor() && e.toTensor().defined()) changed.set(i, f(e.toTensor()));
    }
    v = changed;
  }
}

/// Of forward-mode differentiation.
inline bool has_tangent(const Tensor& t) { return t.defined() && t._fw_grad(0).defined(); }

/// Refuses, unless librepdl was enabled with strict=False: then it is noted, and the caller goes on with aten's kernel.
void refuse(const std::string& name, at::ArrayRef<IValue> arguments, const std::string& why);

}  // namespace repdl_torch
