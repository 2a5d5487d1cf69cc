// Autocast: on the CPU what PyTorch has for CUDA, so that a model computes in the same types on every device.
#include <ATen/autocast_mode.h>

#include <map>

#include "door.hpp"

namespace repdl_torch {
namespace {

// PyTorch's own lists, of its header: "addmm", "pow, Tensor_Scalar".
std::map<std::string, precision> rules() {
  std::map<std::string, precision> all;
  const auto add = [&](std::string name, precision p) {
    if (const size_t comma = name.find(", "); comma != std::string::npos) name.replace(comma, 2, ".");
    all.emplace("aten::" + name, p);
  };
#define REPDL_LOWER(...) add(#__VA_ARGS__, precision::lower);
#define REPDL_FULL(...) add(#__VA_ARGS__, precision::full);
#define REPDL_FULL_UNLESS_SAID(...) add(#__VA_ARGS__, precision::full_unless_said);
#define REPDL_WIDEST(...) add(#__VA_ARGS__, precision::widest);
  AT_FORALL_LOWER_PRECISION_FP(REPDL_LOWER)
  AT_FORALL_FP32(REPDL_FULL)
  AT_FORALL_FP32_SET_OPT_DTYPE(REPDL_FULL_UNLESS_SAID)
  AT_FORALL_PROMOTE(REPDL_WIDEST)
  // Of these CUDA calls the overload with a dtype.
  for (const char* name : {"norm.Scalar", "norm.ScalarOpt_dim"}) add(name, precision::full);
  // An error on CUDA; PyTorch computes it in float32 on the CPU.
  add("binary_cross_entropy", precision::full);
  return all;
}

}  // namespace

precision autocast_precision(const c10::OperatorName& name) {
  static const auto all = rules();
  const auto found = all.find(name.overload_name.empty() ? name.name : name.name + "." + name.overload_name);
  return found == all.end() ? precision::as_it_is : found->second;
}

void run_autocast(precision p, const c10::OperatorHandle& op, Stack* stack) {
  namespace autocast = at::autocast;
  const c10::impl::ExcludeDispatchKeyGuard without(c10::DispatchKey::AutocastCPU);
  const auto& arguments = op.schema().arguments();
  IValue* const values = stack->data() + (stack->size() - arguments.size());
  at::ScalarType type = at::kFloat;
  if (p == precision::full_unless_said) {
    // Only where no type is given, and of what autocast looks at.
    if (values[0].isTensor() && autocast::is_eligible(values[0].toTensor(), at::kCPU)) {
      for (size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].name() == "dtype" && values[i].isNone()) values[i] = static_cast<int64_t>(at::kFloat);
      }
    }
    return op.callBoxed(stack);
  }
  if (p != precision::full) type = autocast::get_lower_precision_fp_from_device_type(at::kCPU);
  for (size_t i = 0; p == precision::widest && i < arguments.size(); ++i) {
    change_each_tensor(values[i], [&](const Tensor& t) {
      type = autocast::prioritize(type, t, at::kCPU);
      return t;
    });
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    change_each_tensor(values[i], [&](const Tensor& t) { return autocast::cached_cast(type, t, at::kCPU); });
  }
  op.callBoxed(stack);
}

}  // namespace repdl_torch
