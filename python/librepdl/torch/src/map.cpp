// Elementwise operations by the rules of aten's TensorIterator.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/result_type.h>

#include <algorithm>
#include <map>

#include "door.hpp"

namespace repdl_torch {
namespace {

using tensors = at::ArrayRef<const Tensor*>;
using attributes = at::ArrayRef<attribute>;

bool is_number(const Tensor& t) { return t.unsafeGetTensorImpl()->is_wrapped_number(); }

// A Python number in an operation whose other operands have the type, rounded to what PyTorch computes with.
struct number {
  double f64;
  float f32;
  bool usable = false;  // an operand of the type has exactly this value

  number(const at::Scalar& s, at::ScalarType type) {
    if (s.isComplex()) return;
    s.isIntegral(/*includeBool=*/true) ? set(s.toLong()) : set(s.toDouble());
    usable = type == at::kDouble || type == at::kFloat;
  }
  number(const Tensor& t, at::ScalarType type) {
    switch (t.scalar_type()) {
      case at::kDouble:
        set(*t.const_data_ptr<double>());
        break;
      case at::kLong:
        set(*t.const_data_ptr<int64_t>());
        break;
      case at::kBool:
        set(*t.const_data_ptr<bool>() ? 1.0 : 0.0);
        break;
      default:
        return;
    }
    usable = type == at::kDouble || type == at::kFloat;
  }
  operand get(at::ScalarType type) const { return type == at::kDouble ? operand(&f64) : operand(&f32); }

 private:
  template <class T>
  void set(T value) {
    f64 = static_cast<double>(value);
    f32 = static_cast<float>(value);
  }
};

bool dense_alike(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.device() == b.device();
}

// Whether a row-major tensor broadcasts to a shape.
bool broadcasts(const Tensor& t, at::IntArrayRef shape) {
  if (t.dim() > static_cast<int64_t>(shape.size())) return false;
  const size_t skipped = shape.size() - static_cast<size_t>(t.dim());
  for (size_t i = 0; i < static_cast<size_t>(t.dim()); ++i) {
    if (t.size(static_cast<int64_t>(i)) != shape[skipped + i] && t.size(static_cast<int64_t>(i)) != 1) return false;
  }
  return t.is_contiguous();
}

// What needs no TensorIterator: all operands of one type and device, and of one dense layout; or one row-major, which is the
// result's layout then, and others that broadcast to it; or Python numbers. Returns whether it was so.
bool run_dense(const operation& op, unsigned types, tensors in, Tensor& result, const Tensor& into,
               attributes options) {
  const Tensor* first = nullptr;  // the largest
  for (const Tensor* t : in) {
    if (!is_number(*t) && (first == nullptr || t->dim() > first->dim() || t->numel() > first->numel())) first = t;
  }
  if (first == nullptr || !(types & type_bit(first->scalar_type())) || !first->is_non_overlapping_and_dense())
    return false;
  const at::ScalarType type = first->scalar_type();
  const at::Device where = first->device();
  if (into.defined() && !(into.scalar_type() == type && dense_alike(into, *first))) return false;
  c10::SmallVector<number, 2> numbers;
  bool alike = true;
  for (const Tensor* p : in) {
    const Tensor& t = *p;
    if (is_number(t)) {
      numbers.emplace_back(t, type);
      if (!numbers.back().usable) return false;
      continue;
    }
    if (t.scalar_type() != type) return false;
    if (t.device() != where) {
      if (t.dim() != 0 || !t.is_cpu()) return false;
      continue;
    }
    // An operand that is the output but begins elsewhere in it: TensorIterator's checks, and its message.
    if (into.defined() && t.is_alias_of(into) && t.const_data_ptr() != into.const_data_ptr()) return false;
    if (dense_alike(t, *first)) continue;
    if (!first->is_contiguous() || !broadcasts(t, first->sizes())) return false;
    alike = false;
  }
  result = into.defined() ? into : fresh_like(*first);
  c10::SmallVector<operand, 4> list;
  const int64_t size = first->numel();
  auto n = numbers.begin();
  for (const Tensor* t : in) {
    if (is_number(*t)) {
      list.push_back((n++)->get(type));
    } else {
      list.push_back(alike && t->device() == where ? operand::flat(*t, &size) : operand(*t));
    }
  }
  op(where, list, alike ? operand::flat(result, &size) : operand(result), options);
  return true;
}

// The type that the operands promote to, or one that nothing rounds in.
at::ScalarType common_type(unsigned types, tensors in) {
  at::native::ResultTypeState state = {};
  for (const Tensor* t : in) state = at::native::update_result_type_state(*t, state);
  at::ScalarType type = at::native::result_type(state);
  if ((types & INTEGERS) && c10::isIntegralType(type, /*includeBool=*/true))
    type = c10::get_default_dtype_as_scalartype();
  return type;
}

// A number, or a tensor of one on the CPU, may stay there.
Tensor operand_of(const Tensor& t, at::ScalarType type, at::Device where) {
  const bool number = is_number(t) || (t.dim() == 0 && t.device() != where);
  if (number && c10::isFloatingType(t.scalar_type())) {
    return number_on(in_arithmetic_of(type, t.item().toDouble()), type, at::kCPU);
  }
  return converted(t, type);
}

Tensor run_general(const operation& op, unsigned types, tensors in, const Tensor& into, bool in_place,
                   attributes options) {
  const at::ScalarType type = common_type(types, in);
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(true).check_all_same_dtype(false).allow_cpu_scalars(true).declare_static_dtype(type);
  const bool direct = into.defined() && into.scalar_type() == type;
  TORCH_CHECK(!into.defined() || c10::canCast(type, into.scalar_type()), "result type ", type,
              " can't be cast to the desired output type ", into.scalar_type());
  config.resize_outputs(!in_place).add_owned_output(direct ? into : Tensor());
  for (const Tensor* t : in) config.add_const_input(*t);
  auto iter = config.build();
  Tensor result = iter.output();
  // An output that is an operand keeps its shape, as in TensorIterator.
  const bool keeps = in_place || std::any_of(in.begin(), in.end(), [&](const Tensor* t) { return t->is_same(into); });
  if (into.defined() && !direct && keeps) {
    TORCH_CHECK(result.sizes() == into.sizes(), "output with shape ", into.sizes(),
                " doesn't match the broadcast shape ", result.sizes());
  }
  const at::Device where = result.device();
  // A number that the 16-bit type does not have: all operands in f32, and the one rounding from there.
  at::ScalarType computed = type;
  if ((types & NUMBERS) && (type == at::kHalf || type == at::kBFloat16)) {
    for (const Tensor* t : in) {
      if (t->dim() == 0 && t->scalar_type() != type) computed = at::kFloat;
    }
  }
  c10::SmallVector<Tensor, 4> operands;
  c10::SmallVector<operand, 4> list;
  for (const Tensor* t : in) operands.push_back(operand_of(*t, computed, where));
  for (const Tensor& t : operands) list.emplace_back(t);
  const operand out(result);
  op(where, list, out, options);
  if (!into.defined() || direct) return result;
  if (!in_place) at::native::resize_output(into, result.sizes());
  into.copy_(result);
  return into;
}

}  // namespace

std::unique_ptr<map_spec> parse_map(const row& r, const c10::FunctionSchema& schema) {
  const std::string how = r.how;
  const size_t open = how.find('('), close = how.rfind(')');
  TORCH_CHECK(open != std::string::npos && close != std::string::npos, "policy: ", r.schema, ": ", how);
  auto spec = std::make_unique<map_spec>(map_spec{operation(how.substr(0, open)), {}, {}});
  const auto find = [&](const std::string& name) {
    const auto& all = schema.arguments();
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].name() == name) return static_cast<int>(i);
    }
    TORCH_CHECK(false, "policy: ", r.schema, ": no argument ", name);
  };
  bool options = false;
  std::string word, name;
  for (size_t i = open + 1; i <= close; ++i) {
    const char c = how[i];
    if (c == '=') {
      name = std::exchange(word, "");
    } else if (c == ',' || c == ';' || c == ')') {
      if (!word.empty()) {
        const int argument = find(word);
        if (options) {
          const std::string type = schema.arguments()[argument].type()->str();
          spec->options.push_back({name.empty() ? word : name, argument, type.find("Scalar") != std::string::npos});
        } else {
          spec->operands.push_back(argument);
        }
      }
      word.clear();
      name.clear();
      options |= c == ';';
    } else if (c != ' ') {
      word += c;
    }
  }
  return spec;
}

Tensor run_map(const overload& o, const map_spec& spec, const IValue* arguments, const Tensor& into) {
  c10::SmallVector<const Tensor*, 4> in;
  for (const int i : spec.operands) in.push_back(&arguments[i].toTensor());
  const unsigned types = o.what->types;
  // The number that a coefficient is rounded to depends on the type; all operands' in all but rare cases.
  at::ScalarType type = in[0]->scalar_type();
  bool several = !(types & type_bit(type));
  for (const Tensor* t : in) several |= t->scalar_type() != type;
  if (several) {
    type = common_type(types, in);
    if (!c10::isFloatingType(type) && !c10::isComplexType(type)) return {};  // nothing rounds
    if (!(types & type_bit(type))) return {};
  }
  c10::SmallVector<attribute, 3> options;
  for (const auto& option : spec.options) {
    const IValue& v = arguments[option.argument];
    if (v.isNone()) continue;
    const double value = v.isDouble() ? v.toDouble() : v.toScalar().toDouble();
    // 1 is their default in librepdl, too
    if (value == 1 && (option.name == "alpha" || option.name == "value")) continue;
    options.emplace_back(option.name.c_str(), option.scalar ? in_arithmetic_of(type, value) : value);
  }
  Tensor result;
  if (run_dense(spec.op, types, in, result, into, options)) return result;
  return run_general(spec.op, types, in, into, o.kind == variant::in_place, options);
}

// ---- lists

std::unique_ptr<list_spec> parse_list(const c10::FunctionSchema& schema, const row_finder& row_of) {
  // _foreach_add.ScalarList is add.Tensor, for each tensor and number.
  static const struct {
    const char *name, *overloads, *each;
  } known[] = {{"add", "List Scalar ScalarList Tensor", "Tensor"},
               {"sub", "List Scalar ScalarList", "Tensor"},
               {"mul", "List Scalar ScalarList Tensor", "Tensor"},
               {"div", "List Scalar ScalarList Tensor", "Tensor"},
               {"maximum", "List", ""},
               {"minimum", "List", ""},
               {"addcmul", "Scalar ScalarList", ""},
               {"addcdiv", "Scalar ScalarList", ""},
               {"lerp", "List", "Tensor"},
               {"lerp", "Scalar ScalarList", "Scalar"},
               {"neg", "", ""},
               {"abs", "", ""},
               {"sqrt", "", ""},
               {"sign", "", ""},
               {"reciprocal", "", ""},
               {"rsqrt", "", ""}};
  std::string name = schema.name().substr(std::string("aten::_foreach_").size());
  const bool in_place = name.back() == '_';
  if (in_place) name.pop_back();
  for (const auto& k : known) {
    const std::string overloads = " " + std::string(k.overloads) + " ";
    if (name != k.name || overloads.find(" " + schema.overload_name() + " ") == std::string::npos) continue;
    const auto op = c10::Dispatcher::singleton().findSchema({"aten::" + name, k.each});
    const row* const r = op ? row_of(op->schema()) : nullptr;
    if (r == nullptr || r->what != action::map) return nullptr;
    return std::make_unique<list_spec>(list_spec{*parse_map(*r, op->schema()), r->types, in_place});
  }
  return nullptr;
}

namespace {

// An argument of a schema on lists: one value, or one for each tensor.
struct list_argument {
  std::vector<Tensor> tensors;
  std::vector<at::Scalar> scalars;
  bool each = false;

  explicit list_argument(const IValue& v) {
    each = v.isList();
    if (v.isTensorList()) {
      tensors = v.toTensorVector();
    } else if (v.isTensor()) {
      tensors.push_back(v.toTensor());
    } else if (each) {
      for (const IValue& e : v.toListRef()) scalars.push_back(e.toScalar());
    } else {
      scalars.push_back(v.toScalar());
    }
  }
  bool is_tensor() const { return !tensors.empty(); }
  size_t size() const { return std::max(tensors.size(), scalars.size()); }
  const Tensor& tensor(size_t k) const { return tensors[each ? k : 0]; }
  const at::Scalar& scalar(size_t k) const { return scalars[each ? k : 0]; }
};

}  // namespace

bool run_list(const list_spec& spec, at::ArrayRef<IValue> arguments, std::vector<Tensor>& results) {
  std::vector<list_argument> all;
  for (const IValue& v : arguments) all.emplace_back(v);
  const std::vector<Tensor>& self = all[0].tensors;
  if (self.empty()) return false;
  const at::ScalarType type = self[0].scalar_type();
  const at::Device where = self[0].device();
  if (!(spec.types & type_bit(type))) return false;
  for (const Tensor& t : self) {
    if (t.scalar_type() != type || t.device() != where || !t.is_non_overlapping_and_dense()) return false;
  }
  // Tensors alike in each place, or one number on the device for all.
  for (const list_argument& a : all) {
    if (a.each && a.size() != self.size()) return false;
    for (size_t k = 0; k < a.tensors.size(); ++k) {
      const Tensor& t = a.tensors[k];
      if (t.scalar_type() != type || t.device() != where || is_number(t)) return false;
      if (a.each ? !dense_alike(t, self[k]) : t.dim() != 0) return false;
    }
  }
  const auto argument = [&](int i) -> const list_argument* {
    return static_cast<size_t>(i) < all.size() ? &all[static_cast<size_t>(i)] : nullptr;
  };
  const size_t count = self.size();
  std::vector<number> numbers;
  std::vector<int64_t> sizes;
  std::vector<operand> in, out;
  std::vector<attribute> options;
  numbers.reserve(count * spec.each.operands.size());
  sizes.reserve(count);
  in.reserve(count * spec.each.operands.size());
  out.reserve(count);
  if (!spec.in_place) {
    for (const Tensor& t : self) results.push_back(fresh_like(t));
  }
  for (size_t k = 0; k < count; ++k) {
    sizes.push_back(self[k].numel());
    for (const int i : spec.each.operands) {
      const list_argument& a = *argument(i);
      if (!a.is_tensor()) {
        numbers.emplace_back(a.scalar(k), type);
        if (!numbers.back().usable) return false;
        in.push_back(numbers.back().get(type));
      } else {
        in.push_back(a.each ? operand::flat(a.tensor(k), &sizes.back()) : operand(a.tensor(k)));
      }
    }
    out.push_back(operand::flat(spec.in_place ? self[k] : results[k], &sizes.back()));
    for (const auto& option : spec.each.options) {
      const list_argument* const a = argument(option.argument);
      if (a == nullptr) continue;
      if (a->is_tensor() || a->scalar(k).isComplex()) return false;
      const double value = a->scalar(k).toDouble();
      options.emplace_back(option.name.c_str(), option.scalar ? in_arithmetic_of(type, value) : value);
    }
  }
  spec.each.op.run_list(where, count, in, out, options);
  if (spec.in_place) {  // which for one tensor the dispatcher does
    for (const Tensor& t : self) {
      if (!t.is_inference()) t.unsafeGetTensorImpl()->bump_version();
    }
  }
  return true;
}

Tensor map(const char* name, at::ArrayRef<Tensor> operands, attributes options) {
  c10::SmallVector<const Tensor*, 4> in;
  for (const Tensor& t : operands) in.push_back(&t);
  static auto* const operations = new std::map<std::string, operation>;
  static std::mutex mutex;
  const operation* op;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    op = &operations->try_emplace(name, name).first->second;
  }
  Tensor result;
  if (run_dense(*op, FLOATS, in, result, {}, options)) return result;
  return run_general(*op, FLOATS, in, {}, false, options);
}

}  // namespace repdl_torch
