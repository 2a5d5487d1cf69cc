// Puts the kernels at aten's keys and takes them away again.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/autograd/function.h>
#include <torch/library.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <unordered_map>

#include "batches.hpp"
#include "door.hpp"

namespace repdl_torch {
namespace {

using c10::DispatchKey;
using c10::OperatorHandle;

std::atomic<bool> strict{true};
// Thrown by call::refuse where nothing is refused.
struct not_strict {};
thread_local bool exempt = false;

// Where a call comes from, or nothing: asked of Python when something is refused. The module that is running; in a backward pass, the one
// that made the node of this number.
const char* (*caller)(int backward, uint64_t node) = nullptr;

// What was refused, or would have been, since the last look.
std::mutex noted_mutex;
std::map<std::string, int64_t>& noted() {
  static auto* const all = new std::map<std::string, int64_t>;
  return *all;
}

bool is_float(at::ScalarType t) { return at::isFloatingType(t) || at::isComplexType(t); }

template <class F>
void for_each_tensor(const IValue& v, F&& f) {
  if (v.isTensor()) {
    if (v.toTensor().defined()) f(v.toTensor());
  } else if (v.isTensorList()) {
    for (const Tensor& t : v.toTensorVector()) {
      if (t.defined()) f(t);
    }
  } else if (v.isList()) {
    for (const IValue& e : v.toListRef()) {
      if (e.isTensor() && e.toTensor().defined()) f(e.toTensor());
    }
  }
}
// Undefined if there is none. (Of a list the tensors are copies.)
Tensor first_float(at::ArrayRef<IValue> values) {
  Tensor found;
  for (const IValue& v : values) {
    if (found.defined()) break;
    for_each_tensor(v, [&](const Tensor& t) {
      if (!found.defined() && is_float(t.scalar_type())) found = t;
    });
  }
  return found;
}

// Whether floating-point operands differ in their type.
bool has_several_types(at::ArrayRef<IValue> values) {
  std::set<at::ScalarType> types;
  for (const IValue& v : values) {
    for_each_tensor(v, [&](const Tensor& t) {
      if (is_float(t.scalar_type())) types.insert(t.scalar_type());
    });
  }
  return types.size() > 1;
}

std::string where_from() {
  const auto node = torch::autograd::get_current_node();
  const char* const path =
      caller == nullptr ? nullptr : caller(node != nullptr, node == nullptr ? 0 : node->sequence_nr());
  if (node == nullptr) return path == nullptr ? "" : path;
  return "the backward pass, " + node->name() + (path == nullptr ? "" : std::string(" of ") + path);
}

std::string name_of(const c10::OperatorName& n) {
  return n.overload_name.empty() ? n.name : n.name + "." + n.overload_name;
}

std::string type_name(at::ScalarType t) {
  switch (t) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kComplexFloat:
      return "complex64";
    case at::kComplexDouble:
      return "complex128";
    default:
      return c10::toString(t);
  }
}

std::string refusal(const std::string& name, at::ArrayRef<IValue> arguments, const std::string& why) {
  const Tensor t = first_float(arguments);
  std::string text = name;
  if (t.defined())
    text += " (" + type_name(t.scalar_type()) + ", " + c10::DeviceTypeName(t.device().type(), true) + ")";
  text += ": not reproducible yet";
  if (!why.empty()) text += " (" + why + ")";
  const std::string from = where_from();
  if (!from.empty()) text += "; called by " + from;
  return text;
}
void note(const std::string& text) {
  const std::lock_guard<std::mutex> lock(noted_mutex);
  ++noted()[text];
}

// aten's own kernel, at the key where ours is.
struct aten_kernel {
  std::optional<c10::SafeKernelFunction> kernel;

  aten_kernel(const OperatorHandle& op, DispatchKey key) {
    if (op.hasComputedKernelForDispatchKey(key)) kernel = op.getComputedKernelForDispatchKey(key);
  }
  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) const {
    TORCH_CHECK_NOT_IMPLEMENTED(kernel.has_value(), name_of(op.operator_name()), ": PyTorch has no kernel of its own");
    kernel->callBoxed(op, keys, stack);
  }
  // For what does not round: an integer result. One that is a floating-point number was computed by aten.
  void exactly(const std::string& name, const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) const {
    const size_t before = stack->size() - op.schema().arguments().size();
    (*this)(op, keys, stack);
    const at::ArrayRef<IValue> results(stack->data() + before, stack->size() - before);
    if (first_float(results).defined()) refuse(name, results, "");
  }
};

// An operation without a reproducible implementation: floating-point numbers are refused, the rest is aten's.
struct refused final : c10::OperatorKernel {
  aten_kernel aten;
  std::string name, why;
  refused(aten_kernel a, std::string n, std::string w) : aten(std::move(a)), name(std::move(n)), why(std::move(w)) {}
  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    if (exempt) return aten(op, keys, stack);
    const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    if (first_float(arguments).defined()) {
      refuse(name, arguments, why);
      return aten(op, keys, stack);
    }
    aten.exactly(name, op, keys, stack);
  }
};

// An operation that librepdl computes; floating-point numbers that it does not take are refused, the rest is aten's.
struct replaced final : c10::OperatorKernel {
  overload what;
  aten_kernel aten;
  std::unique_ptr<map_spec> spec;
  replaced(overload o, aten_kernel a, std::unique_ptr<map_spec> s)
      : what(std::move(o)), aten(std::move(a)), spec(std::move(s)) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    if (exempt) return aten(op, keys, stack);
    const size_t count = static_cast<size_t>(what.arguments + what.outputs);
    const IValue* const arguments = stack->data() + (stack->size() - count);
    call c(what, arguments);
    if (!compute(op, keys, c, arguments)) return leave(c, op, keys, stack);
    if (spec == nullptr) return finish(c, arguments, count, stack);
    torch::jit::drop(*stack, count);
    stack->emplace_back(std::move(c.results[0]));
  }

  // False: aten's own kernel is to do it, or to be refused. Where librepdl sees an error, PyTorch's own is raised if it sees one, too;
  // if not, what librepdl does not take is refused.
  bool compute(const OperatorHandle& op, c10::DispatchKeySet keys, call& c, const IValue* arguments) const {
    std::string why;
    try {
      return attempt(c, arguments);
    } catch (const not_strict&) {
      c.leave();
      return false;
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const not_taken& e) {
      raise_aten_error(op, keys, arguments);
      why = e.what_without_backtrace();
    } catch (const failed& e) {
      if (strict) throw;  // PyTorch may do it
      why = e.what_without_backtrace();
    } catch (const c10::NotImplementedError& e) {
      if (strict) throw;  // PyTorch may do it
      why = e.what_without_backtrace();
    } catch (const c10::AcceleratorError&) {
      throw;
    } catch (const c10::Error&) {
      raise_aten_error(op, keys, arguments);
      throw;  // also without strictness: kernels below PyTorch's own checks would read what is not there
    }
    refuse(what.name, c.arguments(), why.substr(0, why.find('\n')));
    c.leave();
    return false;
  }
  // What aten's own kernel says of the arguments, where it has one; it writes to copies.
  void raise_aten_error(const OperatorHandle& op, c10::DispatchKeySet keys, const IValue* arguments) const {
    if (!aten.kernel) return;
    Stack stack(arguments, arguments + what.arguments + what.outputs);
    const auto& schema = op.schema().arguments();
    for (size_t i = 0; i < stack.size(); ++i) {
      if (schema[i].alias_info() != nullptr && schema[i].alias_info()->isWrite()) {
        change_each_tensor(stack[i], [](const Tensor& t) { return t.clone(); });
      }
    }
    const bool before = std::exchange(exempt, true);
    const auto restore = c10::make_scope_exit([&] { exempt = before; });
    aten(op, keys, &stack);
  }

  bool attempt(call& c, const IValue* arguments) const {
    if (spec != nullptr) {
      const Tensor into = what.kind == variant::functional ? Tensor()
                          : what.kind == variant::in_place ? arguments[0].toTensor()
                                                           : arguments[what.arguments].toTensor();
      Tensor result = run_map(what, *spec, arguments, into);
      if (!result.defined()) return false;
      c.give(std::move(result));
      return true;
    }
    if (!takes(arguments)) return false;
    what.what->function(c);
    return !c.left;
  }
  void leave(const call& c, const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) const {
    if (c.left) return aten(op, keys, stack);
    const auto all = torch::jit::last(*stack, static_cast<size_t>(what.arguments + what.outputs));
    if (!first_float(all).defined()) return aten.exactly(what.name, op, keys, stack);
    if (strict && has_several_types(all)) raise_aten_error(op, keys, all.data());
    refuse(what.name, all, "");
    aten(op, keys, stack);
  }

  // Whether there are floating-point tensors, or integers will do, and all of them are of types that the row takes.
  bool takes(const IValue* arguments) const {
    const unsigned types = what.what->types;
    if (types & ANY) return true;
    bool any = false, all = true;
    for (int i = 0; i < what.arguments; ++i) {
      for_each_tensor(arguments[i], [&](const Tensor& t) {
        if (!is_float(t.scalar_type())) return;
        any = true;
        all &= (types & type_bit(t.scalar_type())) != 0;
      });
    }
    return all && (any || (types & INTEGERS) != 0);
  }

  void finish(call& c, const IValue* arguments, size_t count, Stack* stack) const {
    if (what.kind == variant::functional) {
      torch::jit::drop(*stack, count);
      for (Tensor& t : c.results) stack->emplace_back(std::move(t));
      return;
    }
    c10::SmallVector<Tensor, 3> into;
    if (c.results.empty()) {  // lists that it has written
      torch::jit::drop(*stack, count);
      return;
    }
    if (what.kind == variant::in_place) {
      into.push_back(arguments[0].toTensor());
      TORCH_CHECK(c.results[0].sizes() == into[0].sizes(), "output with shape ", into[0].sizes(),
                  " doesn't match the broadcast shape ", c.results[0].sizes());
    } else {
      for (int i = 0; i < what.outputs; ++i) into.push_back(arguments[what.arguments + i].toTensor());
    }
    for (size_t i = 0; i < into.size(); ++i) {
      const Tensor& r = c.results[i];
      if (into[i].is_same(r)) continue;
      at::assert_no_internal_overlap(into[i]);
      for (int k = 0; what.kind == variant::out && into.size() > 1 && k < what.arguments; ++k) {
        for_each_tensor(arguments[k], [&](const Tensor& t) { at::assert_no_overlap(into[i], t); });
      }
      // Places and draws do not turn into other types, as aten has it.
      const bool as_it_is = into.size() != 1 || (what.kind == variant::out && r.scalar_type() == at::kLong);
      TORCH_CHECK(!as_it_is || r.scalar_type() == into[i].scalar_type(), "Expected out tensor to have dtype ",
                  r.scalar_type(), ", but got ", into[i].scalar_type(), " instead");
      TORCH_CHECK(c10::canCast(r.scalar_type(), into[i].scalar_type()), "result type ", r.scalar_type(),
                  " can't be cast to the desired output type ", into[i].scalar_type());
      if (what.kind == variant::out) at::native::resize_output(into[i], r.sizes());
      into[i].copy_(r);
    }
    torch::jit::drop(*stack, count);
    for (Tensor& t : into) stack->emplace_back(std::move(t));
  }
};

// The same for a functional schema with these arguments and one result, without a stack, which a call of few numbers feels.
template <class... Arguments>
torch::CppFunction directly(const OperatorHandle& op, replaced r) {
  const auto by = std::make_shared<replaced>(std::move(r));
  return torch::CppFunction([op, by](c10::DispatchKeySet keys, Arguments... given) {
    const IValue arguments[] = {IValue(given)...};
    call c(by->what, arguments);
    if (!exempt && by->compute(op, keys, c, arguments)) return Tensor(std::move(c.results[0]));
    Stack stack(std::begin(arguments), std::end(arguments));
    exempt ? by->aten(op, keys, &stack) : by->leave(c, op, keys, &stack);
    return std::move(stack.back()).toTensor();
  });
}
torch::CppFunction kernel_of(const OperatorHandle& op, replaced r) {
  const c10::FunctionSchema& schema = op.schema();
  std::string types;
  for (const auto& a : schema.arguments()) types += (types.empty() ? "" : ", ") + a.type()->str();
  const bool gives_one = schema.returns().size() == 1 && schema.returns()[0].type()->str() == "Tensor";
  if (r.what.kind == variant::functional && gives_one) {
    using scalar = const at::Scalar&;
    if (types == "Tensor") return directly<const Tensor&>(op, std::move(r));
    if (types == "Tensor, Tensor") return directly<const Tensor&, const Tensor&>(op, std::move(r));
    if (types == "Tensor, Tensor, Scalar") return directly<const Tensor&, const Tensor&, scalar>(op, std::move(r));
    if (types == "Tensor, int, bool") return directly<const Tensor&, int64_t, bool>(op, std::move(r));
  }
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<replaced>(std::move(r)));
}

// At the keys of autograd: what the derivative of the results is, where they are to have one and PyTorch's is none, or not of these
// operations.
struct differentiated final : c10::OperatorKernel {
  overload what;
  aten_kernel aten;
  differentiated(overload o, aten_kernel a) : what(std::move(o)), aten(std::move(a)) {}
  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    const auto count = static_cast<size_t>(what.arguments);
    const auto arguments = torch::jit::last(*stack, count);
    bool asked = false;
    const bool backwards = at::GradMode::is_enabled();
    for (const IValue& v : arguments)
      for_each_tensor(v, [&](const Tensor& t) { asked |= (backwards && t.requires_grad()) || has_tangent(t); });
    // A composite of aten's is no longer one: what computes its value is below autograd.
    if (!exempt && !asked && op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd))
      return op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
    if (exempt || !asked) return aten(op, keys, stack);
    Tensor changed;  // its former values are asked for backwards
    if (what.kind == variant::in_place) {
      changed = arguments[0].toTensor();
      torch::jit::peek(*stack, 0, count) = changed.clone();
    }
    call c(what, arguments.data());
    try {
      what.what->function(c);
    } catch (const not_strict&) {
      c.leave();
    }
    if (c.left) {
      if (changed.defined()) torch::jit::peek(*stack, 0, count) = changed;
      return aten(op, keys, stack);
    }
    if (changed.defined()) c.results[0] = changed.copy_(c.results[0]);
    torch::jit::drop(*stack, count);
    for (Tensor& t : c.results) stack->emplace_back(std::move(t));
  }
};

// At the keys of torch.func.vmap.
struct batched final : c10::OperatorKernel {
  batching how;
  aten_kernel aten;
  std::vector<bool> as_aten;  // arguments; where no others are batched, aten's rule has the bits
  batched(batching b, aten_kernel a, std::vector<bool> also) : how(b), aten(std::move(a)), as_aten(std::move(also)) {}
  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    const bool by_aten = exempt || (!as_aten.empty() && only_batched(as_aten, op, *stack));
    if (by_aten || !run_batched(how, op, stack)) aten(op, keys, stack);
  }
};

// At the key that all calls enter within transforms of torch.func: aten has formulas of its own there for some operations.
struct unchanged final : c10::OperatorKernel {
  aten_kernel aten, enters;
  unchanged(aten_kernel a, aten_kernel b) : aten(std::move(a)), enters(std::move(b)) {}
  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    (exempt ? aten : enters)(op, keys, stack);
  }
};

// At the CPU's key of autocast.
struct cast final : c10::OperatorKernel {
  precision rule;
  std::optional<aten_kernel> aten;
  cast(precision p, std::optional<aten_kernel> a) : rule(p), aten(std::move(a)) {}
  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    if (exempt && aten.has_value()) return (*aten)(op, keys, stack);
    if (exempt || rule == precision::as_it_is) {
      return op.redispatchBoxed(keys.remove(DispatchKey::AutocastCPU), stack);
    }
    run_autocast(rule, op, stack);
  }
};

// ---- which kernel stands where ----

// What tells the schemas of one name apart: types and names of the arguments that are not outputs.
struct signature {
  std::string key;
  std::string out_key;  // of a factory: the key of its out= variant, which lacks the four options of a new tensor
  int arguments = 0;
  int outputs = 0;
  variant kind = variant::functional;
  // A row of an in-place schema is of that alone.
  std::string row_key() const { return kind == variant::in_place ? key + "!" : key; }
};
signature signature_of(const c10::FunctionSchema& schema) {
  signature s;
  std::string base = schema.name(), factory = "out|" + base;
  const auto& all = schema.arguments();
  const auto is_option = [](const c10::Argument& a) {
    static const std::set<std::string> names = {"dtype", "layout", "device", "pin_memory"};
    return names.count(a.name()) != 0 && a.type()->kind() == c10::TypeKind::OptionalType;
  };
  const auto writes = [](const c10::Argument& a) { return a.alias_info() != nullptr && a.alias_info()->isWrite(); };
  // In-place: name_; but __iand__ and the like are names of their own.
  if (base.back() == '_' && base.compare(base.size() - 2, 2, "__") != 0 && !all.empty() && writes(all[0])) {
    base.pop_back();
    s.kind = variant::in_place;
  }
  for (const auto& a : all) {
    if (s.kind != variant::in_place && writes(a) && a.kwarg_only()) {
      s.kind = variant::out;
      ++s.outputs;
      continue;
    }
    ++s.arguments;
    const std::string part = "|" + a.type()->str() + " " + a.name();
    base += part;
    if (!is_option(a)) factory += part;
  }
  s.key = base;
  s.out_key = factory;
  return s;
}

c10::OperatorName operator_name(const std::string& text) {
  const std::string schema = text.substr(0, text.find('('));
  const size_t dot = schema.find('.');
  return {"aten::" + schema.substr(0, dot), dot == std::string::npos ? "" : schema.substr(dot + 1)};
}

// The arguments' names in "add.Tensor(self, other, alpha)" are the schema's.
bool fits(const std::string& text, const c10::FunctionSchema& schema) {
  std::string list;
  for (const auto& a : schema.arguments()) list += (list.empty() ? "" : ", ") + a.name();
  return text.substr(text.find('(')) == "(" + list + ")";
}

// Which operators came or went since the last look. The dispatcher tells it, holding its lock: nothing can be registered meanwhile.
struct arrivals final : c10::OpRegistrationListener {
  void onOperatorRegistered(const OperatorHandle& op) override { tell(op); }
  void onOperatorDeregistered(const OperatorHandle& op) override { tell(op); }
  static std::set<std::string> taken() {
    const std::lock_guard<std::mutex> lock(mutex());
    return std::exchange(names(), {});
  }

 private:
  static void tell(const OperatorHandle& op) {
    const std::lock_guard<std::mutex> lock(mutex());
    names().insert(name_of(op.operator_name()));
  }
  static std::mutex& mutex() {
    static auto* const m = new std::mutex;
    return *m;
  }
  static std::set<std::string>& names() {
    static auto* const all = new std::set<std::string>;
    return *all;
  }
};

// How the dispatcher names who registered a kernel: by file and line. (Others' files may lie in a directory of our name.)
constexpr const char* mark = "librepdl";
constexpr const char* marked = " at librepdl:0";

bool ours_at(const OperatorHandle& op, DispatchKey key) {
  return op.hasComputedKernelForDispatchKey(key) &&
         op.getComputedKernelForDispatchKey(key).debug().find(marked) != std::string::npos;
}

bool has_any_kernel(const OperatorHandle& op, DispatchKey key) {
  return op.hasComputedKernelForDispatchKey(key) &&
         (op.hasKernelForDispatchKey(key) || op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
          op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional) ||
          op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd));
}

// Keys whose kernels compute on storages that librepdl does not know: refused, whatever the policy says.
constexpr DispatchKey other_storages[] = {
    DispatchKey::SparseCPU,     DispatchKey::SparseCUDA,      DispatchKey::SparseCsrCPU,
    DispatchKey::SparseCsrCUDA, DispatchKey::MkldnnCPU,       DispatchKey::QuantizedCPU,
    DispatchKey::QuantizedCUDA, DispatchKey::NestedTensorCPU, DispatchKey::NestedTensorCUDA};

// Kernels of an alias key are found at the keys that it stands for.
DispatchKey of_alias(DispatchKey key) { return key == DispatchKey::CompositeImplicitAutograd ? DispatchKey::CPU : key; }

// The keys at which an operator computes. A composite that autograd sees through stays one: a kernel at the CPU's key would end that.
std::vector<DispatchKey> computing(const OperatorHandle& op) {
  std::vector<DispatchKey> found;
  for (const DispatchKey key : {DispatchKey::CPU, DispatchKey::CUDA}) {
    if (op.hasKernelForDispatchKey(key) ||
        (has_any_kernel(op, key) && !op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd)))
      found.push_back(key);
  }
  if (found.size() < 2 && op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd))
    found.push_back(DispatchKey::CompositeImplicitAutograd);
  return found;
}

std::string space_of(const OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  return name.substr(0, name.find("::"));
}
bool is_watched(const std::string& space) {
  return space != "prim" && space != "profiler" && space != "debugprims" && space != "_test";
}

// Where kernels of ours stand, while librepdl is enabled.
class door {
 public:
  door() : dispatcher_(c10::Dispatcher::singleton()) {
    for (const row& r : policy()) read(r);
    std::istringstream words(batched_by_aten());
    for (std::string word; words >> word;) {
      const size_t open = word.find('(');
      batched_by_aten_[word.substr(0, open)] =
          open == std::string::npos ? "" : "," + word.substr(open + 1, word.size() - open - 2) + ",";
    }
    arrivals::taken();
    listening_ = dispatcher_.addRegistrationListener(std::make_unique<arrivals>());
    look_at_all();
  }

  // Operators that came since, and those of other libraries that got kernels: one, or all.
  void look_at(const c10::OperatorName& name) {
    forget_what_went();
    if (const auto op = dispatcher_.findSchema(name)) place(*op);
  }
  void look_at_all() {
    forget_what_went();
    for (const c10::OperatorName& n : dispatcher_.getAllOpNames()) {
      if (placed_.count(name_of(n)) != 0) continue;
      if (const auto op = dispatcher_.findSchema(n)) place(*op);
    }
  }

  // Lines "key\tvalue".
  std::string report() const {
    std::string text;
    for (const auto& [key, count] : counts_) text += key + "\t" + std::to_string(count) + "\n";
    std::istringstream problems(problems_);
    for (std::string line; std::getline(problems, line);) text += "changed\t" + line + "\n";
    for (const auto& [name, places] : kernels_) {
      for (const kernel& k : places) {
        if (!ours_at(k.op, of_alias(k.key))) text += "overridden\t" + name + " (" + c10::toString(k.key) + ")\n";
      }
    }
    for (const c10::OperatorName& n : dispatcher_.getAllOpNames()) {
      const auto op = dispatcher_.findSchema(n);
      if (!op || space_of(*op) == "aten" || !is_watched(space_of(*op)) || kernels_.count(name_of(n)) != 0) continue;
      for (const DispatchKey key : to_refuse(*op)) text += "unseen\t" + name_of(n) + " (" + c10::toString(key) + ")\n";
    }
    return text;
  }

 private:
  void read(const row& r) {
    if (r.what == action::pass) {
      std::istringstream words(r.schema);
      for (std::string word; words >> word;) {
        if (const auto op = dispatcher_.findSchema(operator_name(word))) {
          const signature named = signature_of(op->schema());
          add(named.row_key(), r);
          rows_.emplace(named.out_key, &r);
        } else {
          ++counts_["absent"];
        }
      }
      return;
    }
    const auto op = dispatcher_.findSchema(operator_name(r.schema));
    if (!op) {
      ++counts_["absent"];
      return;
    }
    if (r.what != action::refuse && !fits(r.schema, op->schema())) {
      problems_ += std::string(r.schema) + ": this version of PyTorch has " + c10::toString(op->schema()) + "\n";
      return;
    }
    if (r.what == action::derivative) {
      derivatives_.emplace(name_of(op->operator_name()), &r);
    } else {
      add(signature_of(op->schema()).row_key(), r);
    }
  }

  void add(const std::string& key, const row& r) {
    TORCH_CHECK(rows_.emplace(key, &r).second, "policy: two rows for ", key);
  }
  const row* row_of(const signature& s) const {
    for (const std::string& key : {s.row_key(), s.key, s.kind == variant::out ? s.out_key : s.key}) {
      const auto found = rows_.find(key);
      if (found != rows_.end()) return found->second;
    }
    return nullptr;
  }

  torch::Library& library(DispatchKey key) {
    auto& l = aten_[key];
    if (l == nullptr) l = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", key, mark, 0);
    return *l;
  }
  void put(const OperatorHandle& op, DispatchKey key, torch::CppFunction function) {
    const std::string full = name_of(op.operator_name()), space = space_of(op);
    const std::string name = full.substr(space.size() + 2);
    kernel k{op, key, nullptr};
    if (space == "aten") {
      library(key).impl(name.c_str(), std::move(function));
    } else {  // its library may go before we do
      k.library = std::make_unique<torch::Library>(torch::Library::IMPL, space, key, mark, 0);
      k.library->impl(name.c_str(), std::move(function));
    }
    kernels_[full].push_back(std::move(k));
  }
  void put_refusal(const OperatorHandle& op, DispatchKey key, const std::string& why) {
    put(op, key,
        torch::CppFunction::makeFromBoxedFunctor(
            std::make_unique<refused>(aten_kernel(op, of_alias(key)), name_of(op.operator_name()), why)));
  }
  void forget_what_went() {
    for (const std::string& name : arrivals::taken()) {
      const auto found = kernels_.find(name);
      if (found != kernels_.end() && name.compare(0, 6, "aten::") != 0) kernels_.erase(found);
    }
  }

  // Keys of another library's operator at which it has kernels, and we have none.
  static std::vector<DispatchKey> to_refuse(const OperatorHandle& op) {
    std::vector<DispatchKey> found;
    for (const DispatchKey key : other_storages) {
      if (op.hasKernelForDispatchKey(key) && !ours_at(op, key)) found.push_back(key);
    }
    if (passes_elsewhere(name_of(op.operator_name()))) return found;
    for (const DispatchKey key : computing(op)) {
      if (!ours_at(op, of_alias(key))) found.push_back(key);
    }
    return found;
  }

  void place(const OperatorHandle& op) {
    const std::string space = space_of(op);
    if (!is_watched(space)) return;
    if (space != "aten") {
      for (const DispatchKey key : to_refuse(op)) put_refusal(op, key, "");
      return;
    }
    if (!placed_.insert(name_of(op.operator_name())).second) return;
    for (const DispatchKey key : other_storages) {
      if (op.hasKernelForDispatchKey(key)) put_refusal(op, key, "of a tensor that is not dense");
    }
    place_autocast(op);
    if (op.operator_name().name.compare(0, 15, "aten::_foreach_") == 0) return foreach (op);
    const signature s = signature_of(op.schema());
    const row* const r = row_of(s);
    const auto derivative = derivatives_.find(name_of(op.operator_name()));
    if (derivative != derivatives_.end()) place_derivative(op, s, *derivative->second);
    if (r != nullptr && r->what != action::refuse) place_batched(op, s, *r);
    if (r != nullptr && r->what == action::pass) {
      ++counts_["passed"];
      return;
    }
    if (r != nullptr && r->what != action::refuse) return replace(op, s, *r);
    bool any = false;
    for (const DispatchKey key : computing(op)) {
      put_refusal(op, key, r == nullptr ? "" : r->how);
      any = true;
    }
    if (any) ++counts_["refused"];
  }

  void place_derivative(const OperatorHandle& op, const signature& s, const row& r) {
    for (const DispatchKey key : {DispatchKey::AutogradCPU, DispatchKey::AutogradCUDA}) {
      put(op, key,
          torch::CppFunction::makeFromBoxedFunctor(std::make_unique<differentiated>(
              overload{&r, s.kind, s.arguments, s.outputs, name_of(op.operator_name())}, aten_kernel(op, key))));
    }
  }

  // Below autograd and vmap the operations are as ever; here is what their keys do.
  void place_batched(const OperatorHandle& op, const signature& s, const row& r) {
    constexpr DispatchKey rule = DispatchKey::FuncTorchBatched, numbers = DispatchKey::FuncTorchVmapMode,
                          front = DispatchKey::FuncTorchDynamicLayerFrontMode;
    const bool calls = op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd);
    if (s.kind == variant::out) return;
    const bool draws = op.hasTag(at::Tag::nondeterministic_seeded);
    if ((op.hasKernelForDispatchKey(numbers) || (draws && r.what == action::formula)) &&
        !(calls && r.what != action::pin)) {
      if (r.what == action::pin) {
        put_replaced(op, s, r, numbers);
      } else {
        put_batched(op, numbers, draws ? batching::drawn : batching::each, {});
      }
    }
    const auto found = batched_by_aten_.find(name_of(op.operator_name()).substr(6));
    if (r.what == action::pass && found == batched_by_aten_.end()) return;
    if (op.hasKernelForDispatchKey(front)) {
      put(op, front,
          torch::CppFunction::makeFromBoxedFunctor(
              std::make_unique<unchanged>(aten_kernel(op, front), fallback_of(front))));
    }
    if (r.what == action::pin && calls) return put_replaced(op, s, r, rule);
    if (found == batched_by_aten_.end()) {
      put_batched(op, rule, r.what == action::map ? batching::together : batching::each, {});
    } else if (!found->second.empty()) {
      std::vector<bool> those;
      for (const auto& a : op.schema().arguments()) {
        those.push_back(found->second.find("," + a.name() + ",") != std::string::npos);
      }
      put_batched(op, rule, r.what == action::map ? batching::together : batching::each, std::move(those));
    }
  }
  void put_batched(const OperatorHandle& op, DispatchKey key, batching how, std::vector<bool> as_aten) {
    put(op, key,
        torch::CppFunction::makeFromBoxedFunctor(
            std::make_unique<batched>(how, aten_kernel(op, key), std::move(as_aten))));
  }
  // What stands at a key where an operation has nothing of its own.
  aten_kernel fallback_of(DispatchKey key) const {
    return aten_kernel(dispatcher_.findSchemaOrThrow("aten::mm", ""), key);
  }

  void place_autocast(const OperatorHandle& op) {
    const precision rule = autocast_precision(op.operator_name());
    const bool here = op.hasKernelForDispatchKey(DispatchKey::AutocastCPU);
    if (rule == precision::as_it_is && !here) return;
    put(op, DispatchKey::AutocastCPU,
        torch::CppFunction::makeFromBoxedFunctor(std::make_unique<cast>(
            rule, here ? std::optional(aten_kernel(op, DispatchKey::AutocastCPU)) : std::nullopt)));
  }

  void replace(const OperatorHandle& op, const signature& s, const row& r) {
    ++counts_["replaced"];
    if (r.what == action::pin && op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd)) {
      put_replaced(op, s, r, DispatchKey::CompositeImplicitAutograd);
      return;
    }
    for (const DispatchKey key : {DispatchKey::CPU, DispatchKey::CUDA}) put_replaced(op, s, r, key);
    // One kernel of aten for every storage, as copy_ has.
    for (const DispatchKey key : other_storages) {
      if (!op.hasKernelForDispatchKey(key) && op.hasComputedKernelForDispatchKey(key))
        put_refusal(op, key, "of a tensor that is not dense");
    }
  }
  void put_replaced(const OperatorHandle& op, const signature& s, const row& r, DispatchKey key) {
    put(op, key,
        kernel_of(op, {{&r, s.kind, s.arguments, s.outputs, name_of(op.operator_name())},
                       aten_kernel(op, of_alias(key)),
                       r.what == action::map ? parse_map(r, op.schema()) : nullptr}));
  }

  // Elementwise calls of lists run together. The others, and what does not take that way: aten's kernels for lists on the CPU call the
  // operation for each tensor: right on every device. Fused ones of CUDA round otherwise.
  void foreach (const OperatorHandle& op) {
    const bool fused = op.hasKernelForDispatchKey(DispatchKey::CUDA);
    const std::shared_ptr<const list_spec> spec =
        parse_list(op.schema(), [&](const c10::FunctionSchema& s) { return row_of(signature_of(s)); });
    if (!op.hasComputedKernelForDispatchKey(DispatchKey::CPU) || !(fused || spec != nullptr)) return;
    ++counts_["replaced"];
    struct each final : c10::OperatorKernel {
      std::shared_ptr<const list_spec> spec;
      aten_kernel on_cpu, aten;
      each(std::shared_ptr<const list_spec> s, aten_kernel a, aten_kernel b)
          : spec(std::move(s)), on_cpu(std::move(a)), aten(std::move(b)) {}
      void operator()(const OperatorHandle& h, c10::DispatchKeySet keys, Stack* stack) {
        if (exempt) return aten(h, keys, stack);
        if (spec == nullptr || !together(h, stack)) on_cpu(h, keys, stack);
      }
      bool together(const OperatorHandle& h, Stack* stack) const {
        const size_t count = h.schema().arguments().size();
        std::vector<Tensor> results;
        try {
          if (!run_list(*spec, torch::jit::last(*stack, count), results)) return false;
        } catch (const not_taken&) {
          return false;
        }
        torch::jit::drop(*stack, count);
        if (!spec->in_place) stack->emplace_back(std::move(results));
        return true;
      }
    };
    const aten_kernel on_cpu(op, DispatchKey::CPU), on_cuda(op, DispatchKey::CUDA);
    const auto at = [&](DispatchKey key, const aten_kernel& aten) {
      put(op, key, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<each>(spec, on_cpu, aten)));
    };
    if (fused) at(DispatchKey::CUDA, on_cuda);
    if (spec != nullptr) at(DispatchKey::CPU, on_cpu);
  }

  // Of other libraries: what moves data between processes and computes nothing, or calls the reductions of c10d, at which librepdl.torch's
  // own stand (distributed/_places.py).
  static bool passes_elsewhere(const std::string& name) {
    static const std::set<std::string> moves = {"c10d::broadcast_",
                                                "c10d::allgather_",
                                                "c10d::_allgather_base_",
                                                "c10d::allgather_coalesced_",
                                                "c10d::allgather_into_tensor_coalesced_",
                                                "c10d::gather_",
                                                "c10d::scatter_",
                                                "c10d::alltoall_",
                                                "c10d::alltoall_base_",
                                                "c10d::send",
                                                "c10d::recv_",
                                                "c10d::recv_any_source_",
                                                "c10d::barrier",
                                                "c10d::monitored_barrier_",
                                                "_c10d_functional::wait_tensor",
                                                "_c10d_functional::broadcast",
                                                "_c10d_functional::broadcast_",
                                                "_c10d_functional::all_gather_into_tensor",
                                                "_c10d_functional::all_gather_into_tensor_out",
                                                "_c10d_functional::all_gather_into_tensor_coalesced",
                                                "_c10d_functional::all_to_all_single",
                                                "_c10d_functional::all_reduce",
                                                "_c10d_functional::all_reduce_",
                                                "_c10d_functional::all_reduce_coalesced",
                                                "_c10d_functional::all_reduce_coalesced_",
                                                "_c10d_functional::reduce_scatter_tensor",
                                                "_c10d_functional::reduce_scatter_tensor_coalesced",
                                                "_c10d_functional::reduce_scatter_tensor_out",
                                                "_c10d_functional::_wrap_tensor_autograd",
                                                "_c10d_functional_autograd::all_gather_into_tensor",
                                                "_c10d_functional_autograd::all_to_all_single",
                                                "_c10d_functional_autograd::reduce_scatter_tensor",
                                                "_dtensor::shard_dim_alltoall",
                                                "fsdp::all_gather_copy_in",
                                                "fsdp::copy_",
                                                "fsdp::split_with_sizes_copy",
                                                "fsdp::chunk_cat"};
    return moves.count(name) != 0;
  }

  struct kernel {
    OperatorHandle op;
    DispatchKey key;
    std::unique_ptr<torch::Library> library;  // of other libraries' operators, one each
  };

  c10::Dispatcher& dispatcher_;
  c10::RegistrationHandleRAII listening_{[] {}};
  std::unordered_map<std::string, const row*> rows_;
  std::map<std::string, const row*> derivatives_;       // by the operator's name
  std::map<std::string, std::string> batched_by_aten_;  // ",argument,argument,": where no others are batched
  std::map<DispatchKey, std::unique_ptr<torch::Library>> aten_;
  std::set<std::string> placed_;                        // aten's operators
  std::map<std::string, std::vector<kernel>> kernels_;  // by the operator's name
  std::map<std::string, int64_t> counts_;
  std::string problems_;
};
std::mutex door_mutex;
std::unique_ptr<door> opened;

// Registering over a kernel that is there makes the dispatcher warn, once; it is what we do.
struct silent final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

thread_local std::string last_error;
template <class F>
int guarded(F&& f) {
  try {
    return f();
  } catch (const std::exception& e) {
    last_error = e.what();
    return -1;
  }
}

}  // namespace

unsigned type_bit(at::ScalarType t) {
  switch (t) {
    case at::kFloat:
      return F32;
    case at::kDouble:
      return F64;
    case at::kHalf:
      return F16;
    case at::kBFloat16:
      return BF16;
    default:
      return 0;
  }
}

std::vector<int64_t> call::integers(int i) const {
  const IValue& v = argument_[i];
  if (v.isNone()) return {};
  if (v.isInt()) return {v.toInt()};
  return v.toIntVector();
}
double call::number(int i, at::ScalarType type) const {
  const IValue& v = argument_[i];
  const double value = v.isDouble() ? v.toDouble() : v.toScalar().toDouble();
  return in_arithmetic_of(type, value);
}
void call::refuse(const std::string& why) const {
  repdl_torch::refuse(overload_.name, at::ArrayRef<IValue>(argument_, static_cast<size_t>(overload_.arguments)), why);
  throw not_strict();
}

void refuse(const std::string& name, at::ArrayRef<IValue> arguments, const std::string& why) {
  const std::string text = refusal(name, arguments, why);
  note(text);
  TORCH_CHECK_NOT_IMPLEMENTED(!strict.load(), text);
}

}  // namespace repdl_torch

// ---- what Python calls, through ctypes ----

using namespace repdl_torch;

#define REPDL_EXPORTED extern "C" __attribute__((visibility("default")))

REPDL_EXPORTED const char* repdl_torch_error() { return last_error.c_str(); }

REPDL_EXPORTED int repdl_torch_attach(const c_abi* functions, const char* (*asked)(int, uint64_t), int (*capturing)()) {
  return guarded([&] {
    attach(functions, capturing);
    caller = asked;
    return 0;
  });
}

/// 0, or -1. Enabled already: `strict` changes, and libraries that were loaded since are looked at.
REPDL_EXPORTED int repdl_torch_enable(int is_strict) {
  return guarded([&] {
    const std::lock_guard<std::mutex> lock(door_mutex);
    strict = is_strict != 0;
    silent handler;
    const c10::WarningUtils::WarningHandlerGuard quiet(&handler);
    if (opened == nullptr) {
      opened = std::make_unique<door>();
    } else {
      opened->look_at_all();
    }
    return 0;
  });
}

/// An operator, or (null) a library was registered: what is not aten's is refused from now on. Nothing while librepdl is not enabled.
REPDL_EXPORTED int repdl_torch_look(const char* name, const char* overload) {
  return guarded([&] {
    const std::lock_guard<std::mutex> lock(door_mutex);
    if (opened == nullptr) return 0;
    silent handler;
    const c10::WarningUtils::WarningHandlerGuard quiet(&handler);
    if (name == nullptr) {
      opened->look_at_all();
    } else {
      opened->look_at({name, overload});
    }
    return 0;
  });
}

REPDL_EXPORTED int repdl_torch_disable() {
  return guarded([&] {
    const std::lock_guard<std::mutex> lock(door_mutex);
    opened.reset();
    return 0;
  });
}

/// Of this thread; returns what it was.
REPDL_EXPORTED int repdl_torch_exempt(int on) {
  const bool before = exempt;
  exempt = on != 0;
  return before ? 1 : 0;
}

REPDL_EXPORTED int repdl_torch_is_exempt() { return exempt ? 1 : 0; }

/// Refuses something of PyTorch's Python: -1, or 0 where librepdl was enabled with strict=False.
REPDL_EXPORTED int repdl_torch_refuse(const char* what, const char* why) {
  try {
    refuse(what, {}, why);
    return 0;
  } catch (const c10::Error& e) {
    last_error = e.what_without_backtrace();
    return -1;
  }
}

/// Lines "key\tvalue": counts of schemas, kernels of ours that others have replaced, kernels of other libraries that came unseen.
REPDL_EXPORTED const char* repdl_torch_status() {
  thread_local std::string text;
  text.clear();
  const std::lock_guard<std::mutex> lock(door_mutex);
  text += "policy\t" + std::to_string(policy_version) + "\n";
  if (opened == nullptr) return text.c_str();
  text += std::string("strict\t") + (strict ? "1" : "0") + "\n";
  text += opened->report();
  return text.c_str();
}

/// What was refused since the last call, a line each: "count\ttext".
REPDL_EXPORTED const char* repdl_torch_noted() {
  thread_local std::string text;
  text.clear();
  const std::lock_guard<std::mutex> lock(noted_mutex);
  for (const auto& [what, count] : noted()) text += std::to_string(count) + "\t" + what + "\n";
  noted().clear();
  return text.c_str();
}
