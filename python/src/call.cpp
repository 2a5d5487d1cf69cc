// Calls by position in the registry: what every function of the package is made of.
#include "call.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "array.hpp"
#include "contexts.hpp"
#include "interrupt.hpp"

namespace repdl::python {

// Types of what came are TypeError, the rest by the kind of failure.
PyObject* exception_for(const error& e) {
  switch (e.site()) {
    case error_site::output_dtype:
    case error_site::attribute_kind:
    case error_site::foreign_dtype:
      return PyExc_TypeError;
    default:
      break;
  }
  switch (e.code()) {
    case status::invalid_argument:
      return PyExc_ValueError;
    case status::unsupported:
      return PyExc_NotImplementedError;
    case status::out_of_memory:
      return PyExc_MemoryError;
    default:
      return PyExc_RuntimeError;
  }
}

namespace {

// Up to 8 operands of one call, without the heap. Only those that there are get made: empty ones cost as well.
template <class T>
class operand_list {
 public:
  operand_list() = default;
  operand_list(const operand_list&) = delete;
  operand_list& operator=(const operand_list&) = delete;
  ~operand_list() { std::destroy_n(data(), size_); }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == most) throw std::length_error("librepdl: expected at most 8 operands");
    T& made = *new (memory_ + size_ * sizeof(T)) T(std::forward<Args>(args)...);
    ++size_;
    return made;
  }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  operator std::span<const T>() { return {data(), size_}; }

 private:
  static constexpr std::size_t most = 8;
  T* data() { return std::launder(reinterpret_cast<T*>(memory_)); }
  alignas(T) std::byte memory_[most * sizeof(T)];
  std::size_t size_ = 0;
};

std::map<std::string, std::string, std::less<>> parameter_names;

// What a function that returns one result calls it, and otherwise the result's name.
const std::string& name_of(const op_info& op, const operand_info& result) {
  static const std::string out = "out";
  return op.out.size() == 1 && op.family != "optimizer" ? out : result.name;
}
// What the package's function calls an attribute or a result of the operation: that is what its caller typed.
std::string parameter_of(const op_info& op, const std::string& name) {
  if (name == op.out[0].name) return name_of(op, op.out[0]);
  for (const std::string& key : {op.name + "." + name, name}) {
    if (const auto found = parameter_names.find(key); found != parameter_names.end()) return found->second;
  }
  return name;
}
// Begins what is said of it.
std::string about(const op_info& op, const attribute_info& a) {
  return op.name + ": " + parameter_of(op, a.name) + ": ";
}

attribute_value integer_value(const op_info& op, const attribute_info& a, nb::handle v) {
  PyObject* const index = PyBool_Check(v.ptr()) ? nullptr : PyNumber_Index(v.ptr());
  if (index == nullptr) {
    PyErr_Clear();
    throw nb::type_error((about(op, a) + "expected an integer, got " + name_of_type(v)).c_str());
  }
  const nb::object integer = nb::steal(index);
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
  if (overflow == 0) return std::int64_t{value};
  if (a.pattern && overflow > 0) {
    const unsigned long long bits = PyLong_AsUnsignedLongLong(integer.ptr());
    if (PyErr_Occurred() == nullptr) return static_cast<std::int64_t>(bits);
    PyErr_Clear();
  }
  throw nb::value_error((about(op, a) + "expected a 64-bit integer, got " + text_of(integer)).c_str());
}

attribute_value value_of(const op_info& op, const attribute_info& a, nb::handle v) {
  const auto wrong = [&](const char* expected) {
    throw nb::type_error((about(op, a) + "expected " + expected + ", got " + name_of_type(v)).c_str());
  };
  switch (a.kind) {
    case attribute_kind::boolean:
      if (!PyBool_Check(v.ptr())) wrong("a bool");
      return v.is(nb::handle(Py_True));
    case attribute_kind::integer:
      return integer_value(op, a, v);
    case attribute_kind::real: {
      if (PyBool_Check(v.ptr())) wrong("a number");
      const double value = PyFloat_AsDouble(v.ptr());
      if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        wrong("a number");
      }
      return value;
    }
    case attribute_kind::text:
      if (a.name == "dtype") return std::string(name_of(dtype_from(op.name, a.name, v)));
      if (PyUnicode_Check(v.ptr()) == 0) wrong("a str");
      return text_of(v);
    case attribute_kind::integers: {
      std::vector<std::int64_t> list;
      if (PySequence_Check(v.ptr()) == 0) {
        list.push_back(std::get<std::int64_t>(integer_value(op, a, v)));
        return list;
      }
      if (PyUnicode_Check(v.ptr()) != 0) wrong("an integer or a sequence of integers");
      for (nb::handle item : nb::iter(v)) list.push_back(std::get<std::int64_t>(integer_value(op, a, item)));
      return list;
    }
  }
  return false;
}

// Of every operation's attributes; null where there is none.
const attribute_value* default_of(const op_info& op, std::size_t index) {
  static const auto all = [] {
    std::vector<std::vector<std::optional<attribute_value>>> table;
    for (const op_info& o : operations()) {
      auto& row = table.emplace_back();
      for (const attribute_info& a : o.attrs) {
        row.emplace_back();
        if (!a.default_text.empty()) row.back() = parse_attribute(o, a.name, a.default_text).value;
      }
    }
    return table;
  }();
  const auto& value = all[static_cast<std::size_t>(op.id)][index];
  return value ? &*value : nullptr;
}

// To the sign of a zero, which a comparison of doubles does not see.
bool identical(const attribute_value& a, const attribute_value& b) {
  const auto *x = std::get_if<double>(&a), *y = std::get_if<double>(&b);
  return a == b && (x == nullptr || std::signbit(*x) == std::signbit(*y));
}

}  // namespace

attributes attributes_of(const op_info& op, nb::handle values) {
  attributes list;
  if (values.is_none()) return list;
  for (std::size_t i = 0; i < op.attrs.size(); ++i) {
    const nb::handle v = PyTuple_GetItem(values.ptr(), static_cast<Py_ssize_t>(i));
    if (v.is_none()) continue;
    attribute_value value = value_of(op, op.attrs[i], v);
    const attribute_value* const otherwise = default_of(op, i);
    if (otherwise != nullptr && identical(value, *otherwise)) continue;
    list.push_back({op.attrs[i].name, std::move(value)});
  }
  return list;
}

namespace {

// f(); an error of librepdl that does not begin with the operation's name (one of a shape, say) is given it, one of an attribute
// or a result says its name in Python, and one of element types what to do.
template <class F>
auto named(const op_info& op, F&& f) {
  try {
    return f();
  } catch (const error& e) {
    const bool of_type = e.site() == error_site::operand_dtype, of_this = e.op() == op.name;
    const std::string name = of_this ? parameter_of(op, e.argument()) : e.argument();
    if (of_this && !of_type && name == e.argument()) throw;
    std::string text = e.what();
    of_this ? text.replace(op.name.size() + 2, e.argument().size(), name) : text.insert(0, op.name + ": ");
    if (of_type) text += "; librepdl.convert(" + e.argument() + ", dtype) converts";
    PyErr_SetString(exception_for(e), text.c_str());
    throw nb::python_error();
  }
}

// Such calls take microseconds (a product of 32 x 32 three): nobody waits for the interpreter's lock for long.
bool is_brief(const const_tensor_view& v) { return v.where().kind == device_kind::cpu && v.count() <= 1024; }

// What may take so long that somebody wants to end it: from some 10^5 elements on; less is done in milliseconds.
bool is_long(const const_tensor_view& v) { return v.where().kind == device_kind::cpu && v.count() > 1 << 16; }

// f(), in which Ctrl-C raises KeyboardInterrupt if the call is a long one.
template <class F>
void run_interruptibly(bool long_call, const F& f) {
  interruptible here(long_call);
  try {
    f();
  } catch (const error&) {  // as likely as not of a call that was broken off
    here.raise_if_interrupted();
    throw;
  }
  here.raise_if_interrupted();
}

// The context for arrays like this one, and nobody else's while calls are being prepared.
const std::shared_ptr<shared_context>& context_for(const std::string& op, const array& like) {
  const auto& c = current_context(like.where());
  const recording* const r = recording::current;
  if (r != nullptr && &r->context != c.get()) {
    throw nb::value_error((op + ": expected arrays on " + name_of(r->context.where()) +
                           ", whose calls are being prepared, got " + name_of(like.where()))
                              .c_str());
  }
  if (r != nullptr && r->stream != like.stream()) {
    throw nb::value_error((op + ": expected the stream on which prepare was called, got another one").c_str());
  }
  return c;
}

// Where there is no scratch memory, in the context's own.
void run_in(context& c, repdl::prepared_calls& calls, const scratch& workspace) {
  struct lent {
    context& c;
    ~lent() { c.use_workspace(nullptr, 0); }
  } const at_end{c};
  c.use_workspace(workspace.data(), calls.workspace_bytes());
  calls.run();
}

}  // namespace

void run(const std::string& op, const array& like, std::span<const const_tensor_view> in,
         std::span<const tensor_view> out, const std::function<void(context&)>& f) {
  bool brief = is_brief(out[0]), long_call = is_long(out[0]);
  for (const const_tensor_view& v : in) {
    brief = brief && is_brief(v);
    long_call = long_call || is_long(v);
  }
  const auto& shared = context_for(op, like);
  run_interruptibly(long_call && recording::current == nullptr, [&] {
    const turn t(*shared, brief);
    context& c = shared->on(like.stream());
    if (recording::current != nullptr || !like.lends()) {
      f(c);
    } else {
      repdl::prepared_calls once = c.prepare([&] { f(c); });
      run_in(c, once, scratch(op, like, once.workspace_bytes()));
    }
    if (recording::current == nullptr && like.must_wait()) c.synchronize();
  });
}

namespace {

void run(const op_info& op, const array& like, std::span<const const_tensor_view> in, std::span<const tensor_view> out,
         const attributes& attrs) {
  python::run(op.name, like, in, out, [&](context& c) { repdl::call(c, op, in, out, attrs); });
}

// Of an elementwise operation: whether an operand has the format of the call, which not every boolean one has.
bool has_format(const operand_info& o) { return o.types.size() > 1 || o.types[0] != dtype::boolean; }
const operand_info& leading(const op_info& op) {
  return op.family == "elementwise" ? *std::find_if(op.in.begin(), op.in.end(), has_format) : op.in[0];
}
// Such an operand may be a number of Python, too.
bool takes_numbers(const op_info& op, std::size_t i) { return op.family == "elementwise" && has_format(op.in[i]); }

// Says what the call itself would say, before a number is rounded to a format that the operation lacks.
void check_takes(const op_info& op, dtype format) {
  const std::vector<dtype>& types = leading(op).types;
  if (std::find(types.begin(), types.end(), format) != types.end()) return;
  std::string expected;
  for (const dtype t : types) expected += (expected.empty() ? "" : ", ") + std::string(repdl::name_of(t));
  fail(error_site::operand_dtype, op.name, leading(op).name, "one of " + expected, repdl::name_of(format));
}

// Which of a call's operands say what its results are, and of which library: arrays before lists; numbers are of any format.
const array* leading_array(const op_info& op, std::span<const array> in, unsigned listed) {
  for (const bool lists : {false, true}) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      const bool counts = op.family != "elementwise" || has_format(op.in[i]);
      if (in[i].view() && counts && (listed >> i & 1U) == (lists ? 1U : 0U)) return &in[i];
    }
  }
  return nullptr;
}

bool is_list(nb::handle x) { return PyList_Check(x.ptr()) != 0 || PyTuple_Check(x.ptr()) != 0; }

// NumPy's product takes vectors: the first operand is a row, the second a column, and the result lacks that axis.
class product_of_vectors {
 public:
  product_of_vectors(const op_info& op, std::span<const array> in) {
    if (op.family != "matmul") return;
    row_ = in[0].view().rank() == 1;
    column_ = in[1].view().rank() == 1;
  }
  explicit operator bool() const { return row_ || column_; }

  // Operand i as a matrix; the third one, the bias, is like the result.
  const_tensor_view operand(std::size_t i, const const_tensor_view& v) const {
    if (!v || (i == 0 && !row_) || (i == 1 && !column_)) return v;
    if (i == 2) return with_axes(v);
    return with_axis(v, i == 0 ? 0 : 1);
  }
  template <class View>
  View with_axes(View v) const {
    if (column_) v = with_axis(v, v.rank());
    return row_ && v.rank() > 0 ? with_axis(v, v.rank() - 1) : v;
  }
  tensor_spec without_axes(const tensor_spec& matrix) const {
    tensor_spec spec{matrix.type, {}};
    const int rank = matrix.shape.size();
    for (int i = 0; i < rank; ++i) {
      if ((row_ && i == rank - 2) || (column_ && i == rank - 1)) continue;
      spec.shape.push_back(matrix.shape[i]);
    }
    return spec;
  }

 private:
  // One more axis, of size 1, before the axis `at`.
  template <class View>
  static View with_axis(const View& v, int at) {
    sizes shape, strides;
    for (int i = 0; i <= v.rank(); ++i) {
      if (i == at) {
        shape.push_back(1);
        strides.push_back(0);
      }
      if (i < v.rank()) {
        shape.push_back(v.shape()[i]);
        strides.push_back(v.strides()[i]);
      }
    }
    return View(v.data(), v.type(), shape, strides, v.where());
  }
  bool row_ = false, column_ = false;
};

// Adds the arrays that are given for results, an empty one for each that is to be made.
void add_results(const op_info& op, nb::handle out, bool several, operand_list<array>& results) {
  const auto add = [&](const operand_info& o, nb::handle given) {
    if (given.is_none()) {
      results.emplace_back();
    } else {
      results.emplace_back(op.name, name_of(op, o), given);
    }
  };
  if (!several) return add(op.out[0], out);
  const bool given = !out.is_none();
  const std::string expected =
      op.name + ": out: expected a tuple of " + std::to_string(op.out.size()) + " arrays, got ";
  if (given && !nb::isinstance<nb::tuple>(out) && !nb::isinstance<nb::list>(out)) {
    throw nb::type_error((expected + name_of_type(out)).c_str());
  }
  if (given && nb::len(out) != op.out.size()) {
    throw nb::value_error((expected + std::to_string(nb::len(out))).c_str());
  }
  for (std::size_t i = 0; i < op.out.size(); ++i) add(op.out[i], given ? nb::object(out[i]) : nb::none());
}

bool flag(const op_info& op, const char* parameter, nb::handle v) {
  if (!PyBool_Check(v.ptr())) {
    throw nb::type_error(
        (op.name + ": " + parameter_of(op, parameter) + ": expected a bool, got " + name_of_type(v)).c_str());
  }
  return v.is(nb::handle(Py_True));
}

nb::object call(const op_info& op, const nb::tuple& in, nb::handle out, nb::handle values, nb::handle like,
                nb::handle statistics) {
  const bool several = flag(op, "statistics", statistics);
  const std::size_t count = in.size();
  operand_list<array> operands;
  bool numbers = false;
  unsigned listed = 0;  // a bit for each operand that NumPy made an array of
  for (std::size_t i = 0; i < count; ++i) {
    nb::handle x = in[i];
    if (x.is_none() && op.in[i].optional) {
      operands.emplace_back();
    } else if (takes_numbers(op, i) && is_python_number(x)) {
      operands.emplace_back();
      numbers = true;
    } else if (is_list(x) || is_python_number(x)) {
      operands.emplace_back(array::of_numbers(op.name, op.in[i].name, x, op.in[i].types));
      listed |= 1U << i;
    } else {
      operands.emplace_back(op.name, op.in[i].name, x);
    }
  }
  operand_list<array> results;
  add_results(op, out, several, results);
  array other;
  if (!like.is_none()) other = array(op.name, "like", like);
  const array* leader = leading_array(op, operands, listed);
  if (count > 0 && leader == nullptr) {  // numbers alone, or beside booleans: NumPy's are of f64
    for (const array& a : operands) {
      if (a.view() && !a.of_numpy()) {
        throw nb::type_error((op.name + ": " + leading(op).name + ": expected an array, got a number").c_str());
      }
    }
    check_takes(op, dtype::f64);
    other = array(dtype::f64, 0, array());
    leader = &other;
  }
  const array& model = leader != nullptr ? *leader : results[0].view() ? results[0] : other;
  if (numbers) {
    check_takes(op, model.type());
    for (std::size_t i = 0; i < count; ++i) {
      if (!operands[i].view() && !in[i].is_none()) operands[i] = scalar(op.name, op.in[i].name, in[i], model);
    }
  }
  operand_list<const_tensor_view> views;
  for (const array& a : operands) views.emplace_back(a.view());
  const product_of_vectors vectors(op, operands);
  for (std::size_t i = 0; vectors && i < count; ++i) views[i] = vectors.operand(i, views[i]);
  const std::span<const const_tensor_view> ins = views;
  const attributes attrs = attributes_of(op, values);
  if (std::any_of(results.begin(), results.end(), [](const array& a) { return !a.view(); })) {
    const std::vector<tensor_spec> specs = infer(op, ins, attrs);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].view()) results[i] = array(vectors ? vectors.without_axes(specs[i]) : specs[i], model);
    }
  }
  operand_list<tensor_view> targets;
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    targets.emplace_back(i < results.size() ? results[i].writable(op.name, name_of(op, op.out[i])) : tensor_view());
    if (vectors) targets[i] = vectors.with_axes(targets[i]);
  }
  run(op, model, ins, targets, attrs);
  nb::object object;
  if (several) {
    nb::list all;
    for (array& a : results) all.append(a.take());
    object = nb::tuple(all);
  } else {
    object = results[0].take();
  }
  if (recording::current != nullptr) {
    for (operand_list<array>* const list : {&operands, &results}) {
      for (array& a : *list) recording::current->arrays.push_back(std::move(a));
    }
  }
  return object;
}

nb::object call_grouped(const op_info& op, const nb::tuple& lists, nb::handle values, bool first_step) {
  // Operands are given name by name, and taken tensor by tensor.
  std::vector<std::vector<array>> arrays(op.in.size());
  std::size_t tensors = 0;
  for (std::size_t i = 0; i < op.in.size(); ++i) {
    if (lists[i].is_none() && op.in[i].optional) continue;
    if (!nb::isinstance<nb::list>(lists[i]) && !nb::isinstance<nb::tuple>(lists[i])) {
      throw nb::type_error(
          (op.name + ": " + op.in[i].name + ": expected a list of arrays, got " + name_of_type(lists[i])).c_str());
    }
    for (nb::handle x : nb::iter(lists[i]))
      arrays[i].emplace_back(op.name, op.in[i].name + "[" + std::to_string(arrays[i].size()) + "]", x);
    if (i == 0) tensors = arrays[0].size();
    if (arrays[i].size() != tensors) {
      throw nb::value_error((op.name + ": " + op.in[i].name + ": expected as many arrays as " + op.in[0].name +
                             " has, " + std::to_string(tensors) + ", got " + std::to_string(arrays[i].size()))
                                .c_str());
    }
  }
  // Outputs that name no operand come once: they are made, and returned.
  std::vector<const operand_info*> own;
  for (const operand_info& o : op.out) {
    const auto has_its_name = [&](const operand_info& i) { return i.name == o.name; };
    if (std::none_of(op.in.begin(), op.in.end(), has_its_name)) own.push_back(&o);
  }
  if (tensors == 0 && own.empty()) return nb::none();
  const array of_numpy;
  const array& model = tensors == 0 ? of_numpy : arrays[0][0];
  std::vector<const_tensor_view> in;
  std::vector<tensor_view> out;
  for (std::size_t t = 0; t < tensors; ++t) {
    for (std::size_t i = 0; i < op.in.size(); ++i) {
      if (!arrays[i].empty()) in.push_back(op.in[i].optional && first_step ? const_tensor_view() : arrays[i][t].view());
    }
    for (const operand_info& o : op.out) {
      for (std::size_t i = 0; i < op.in.size(); ++i) {
        if (op.in[i].name == o.name && !arrays[i].empty())
          out.push_back(arrays[i][t].writable(op.name, o.name + "[" + std::to_string(t) + "]"));
      }
    }
  }
  const attributes attrs = attributes_of(op, values);
  std::vector<array> made;
  if (!own.empty()) {
    const std::vector<tensor_spec> specs = infer(op, in, attrs);
    for (std::size_t i = 0; i < own.size(); ++i) {
      array& a = made.emplace_back(specs[out.size()], model);
      out.push_back(a.writable(op.name, own[i]->name));
    }
  }
  run(op, model, in, out, attrs);
  const nb::object result = made.empty() ? nb::none() : made[0].take();
  arrays.push_back(std::move(made));
  if (recording::current != nullptr) {
    for (auto& list : arrays) {
      for (array& a : list) recording::current->arrays.push_back(std::move(a));
    }
  }
  return result;
}

}  // namespace

namespace {

// The operation at a position of the registry, if the operands and the attributes' values are as many as it has.
const op_info& operation_at(int index, const nb::tuple& in, nb::handle values) {
  const auto wrong = [](const std::string& what, std::size_t expected, const std::string& got) {
    throw nb::value_error(
        ("librepdl._core: " + what + ": expected " + std::to_string(expected) + ", got " + got).c_str());
  };
  const auto all = operations();
  if (index < 0 || static_cast<std::size_t>(index) >= all.size()) {
    wrong("index, below", all.size(), std::to_string(index));
  }
  const op_info& op = all[static_cast<std::size_t>(index)];
  if (in.size() != op.in.size()) wrong(op.name + ": operands", op.in.size(), std::to_string(in.size()));
  if (values.is_none()) return op;
  const bool tuple = PyTuple_Check(values.ptr()) != 0;
  if (!tuple || nb::len(values) != op.attrs.size()) {
    wrong(op.name + ": values of attributes, in a tuple", op.attrs.size(),
          tuple ? std::to_string(nb::len(values)) : name_of_type(values));
  }
  return op;
}

}  // namespace

void name_parameters(nb::dict names) {
  for (const auto [name, parameter] : names) parameter_names[text_of(name)] = text_of(parameter);
}

nb::object call(int index, nb::tuple in, nb::handle out, nb::handle values, nb::handle like, nb::handle statistics) {
  const op_info& op = operation_at(index, in, values);
  return named(op, [&] { return call(op, in, out, values, like, statistics); });
}
nb::object call_grouped(int index, nb::tuple lists, nb::handle values, nb::handle first_step) {
  const op_info& op = operation_at(index, lists, values);
  return named(op, [&] { return call_grouped(op, lists, values, flag(op, "first_step", first_step)); });
}

thread_local recording* recording::current = nullptr;

prepared_calls::prepared_calls(std::shared_ptr<shared_context> c, nb::callable f)
    // PyTorch's stream: calls are prepared before an array says which library it is of.
    : context_(std::move(c)), stream_(stream_of_torch(context_->where())) {
  if (recording::current != nullptr)
    throw nb::value_error("prepare: expected no call of prepare inside of another, got one");
  const hold h(*context_);
  recording here{*context_, stream_};
  struct reset {
    ~reset() { recording::current = nullptr; }
  } const at_end;
  recording::current = &here;
  calls_ = std::make_unique<repdl::prepared_calls>(context_->on(stream_).prepare([&] { result = f(); }));
  arrays_ = std::move(here.arrays);
  long_ = std::any_of(arrays_.begin(), arrays_.end(), [](const array& a) { return is_long(a.view()); });
  const auto lender = std::find_if(arrays_.begin(), arrays_.end(), [](const array& a) { return a.lends(); });
  if (lender != arrays_.end()) workspace_ = scratch("prepare", *lender, calls_->workspace_bytes());
}

void prepared_calls::run() {
  run_interruptibly(long_, [&] {
    const turn t(*context_, false);
    context& c = context_->on(stream_);  // open
    run_in(c, *calls_, workspace_);
  });
}

}  // namespace repdl::python
