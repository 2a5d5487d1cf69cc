#include "array.hpp"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#include <numpy/arrayobject.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "contexts.hpp"
#include "librepdl/api/dlpack_types.hpp"
#include "librepdl/ops.hpp"

namespace repdl::python {
namespace {

std::string message(std::string_view op, std::string_view name, std::string_view rest) {
  return std::string(op) + ": " + std::string(name) + ": " + std::string(rest);
}
[[noreturn]] void type_error(std::string_view op, std::string_view name, std::string_view rest) {
  throw nb::type_error(message(op, name, rest).c_str());
}
[[noreturn]] void value_error(std::string_view op, std::string_view name, std::string_view rest) {
  throw nb::value_error(message(op, name, rest).c_str());
}

// Thrown by what reads an array, which does not know the argument's name.
struct unsuitable : std::invalid_argument {
  bool type;  // TypeError, or ValueError
  unsuitable(bool is_type, const std::string& text) : invalid_argument(text), type(is_type) {}
};
[[noreturn]] void unsuitable_type(std::string_view expected, std::string_view got) {
  throw unsuitable(true, "expected " + std::string(expected) + ", got " + std::string(got));
}
[[noreturn]] void unsuitable_value(std::string_view what, std::string_view expected, std::string_view got) {
  throw unsuitable(false, std::string(what) + ": expected " + std::string(expected) + ", got " + std::string(got));
}

// What another library says of itself may be anything.
template <class T>
T integer_said(std::string_view what, nb::handle object) {
  const nb::object integer = nb::steal(PyNumber_Index(object.ptr()));
  T value{};
  if (!integer.is_valid()) PyErr_Clear();
  if (!integer.is_valid() || !nb::try_cast<T>(integer, value)) {
    unsuitable_type(std::string(what) + " of " + std::to_string(8 * sizeof value) + " bits", name_of_type(object));
  }
  return value;
}

// The part of a module's name before the first dot, of the object's type.
std::string library_of(nb::handle object) {
  const std::string module = text_of(object.type().attr("__module__"));
  return module.substr(0, module.find('.'));
}

// read(), whose errors do not know the argument's name.
template <class Read>
auto named(std::string_view op, std::string_view name, const Read& read) {
  try {
    return read();
  } catch (const unsuitable& u) {
    if (u.type) type_error(op, name, u.what());
    value_error(op, name, u.what());
  } catch (const error& e) {  // of the view
    value_error(op, name, e.what());
  }
}

std::string dtype_text(nb::handle array) {
  return nb::hasattr(array, "dtype") ? text_of(array.attr("dtype")) : "another type";
}

const std::string& element_types() {
  static const std::string* const text = [] {
    auto* all = new std::string;
    for (const ops::type_traits& t : ops::types) {
      *all += t.type == ops::types[0].type ? "" : &t + 1 == std::end(ops::types) ? " or " : ", ";
      *all += t.python;
    }
    return all;
  }();
  return *text;
}

// ------------------------------------------------------------------------------------------------------------ NumPy

PyArrayObject* numpy_array(nb::handle object) { return reinterpret_cast<PyArrayObject*>(object.ptr()); }

constexpr int of_ml_dtypes = -1;
constexpr int numpy_number(dtype t) {
  switch (t) {
    case dtype::f16:
      return NPY_HALF;
    case dtype::bf16:
    case dtype::f8_e4m3fn:
    case dtype::f8_e5m2:
      return of_ml_dtypes;
    case dtype::f32:
      return NPY_FLOAT;
    case dtype::f64:
      return NPY_DOUBLE;
    case dtype::i64:
      return NPY_INT64;
    case dtype::boolean:
      return NPY_BOOL;
    case dtype::i32:
      return NPY_INT32;
  }
  return of_ml_dtypes;
}

// A type of ml_dtypes: NumPy numbers such types as they are registered. Null, without an error, where nobody imported it
// and `import` is not asked for.
auto registered_numbers = [] {
  std::array<int, ops::dtype_count> none{};
  none.fill(NPY_NOTYPE);
  return none;
}();
nb::object registered(dtype t, bool import) {
  nb::object modules = nb::module_::import_("sys").attr("modules");
  if (!import && !nb::cast<bool>(modules.attr("__contains__")("ml_dtypes"))) return {};
  nb::object type = nb::module_::import_("ml_dtypes").attr(ops::traits_of(t).python.data());
  nb::object descriptor = nb::module_::import_("numpy").attr("dtype")(type);
  registered_numbers[static_cast<std::size_t>(t)] = nb::cast<int>(descriptor.attr("num"));
  return descriptor;
}

// Whether it is of a subclass of NumPy's own whose elements are those of its memory; nobody else's are known to be.
bool is_plain_subclass(nb::handle array) {
  static const nb::object* const plain = [] {
    const nb::module_ numpy = nb::module_::import_("numpy");
    return new nb::object(nb::make_tuple(numpy.attr("memmap"), numpy.attr("matrix"), numpy.attr("recarray")));
  }();
  for (const nb::handle type : nb::iter(*plain)) {
    if (array.type().is(type)) return true;
  }
  return false;
}
bool is_masked(nb::handle array) { return nb::hasattr(array, "mask") && nb::hasattr(array, "filled"); }

bool type_from_numpy(int number, dtype& type) {
  const auto is = [&](const ops::type_traits& t) {
    const int own = numpy_number(t.type);
    type = t.type;
    return number == (own == of_ml_dtypes ? registered_numbers[static_cast<std::size_t>(t.type)] : own);
  };
  if (number == NPY_LONGLONG) number = NPY_INT64;
  if (std::ranges::any_of(ops::types, is)) return true;
  if (number < NPY_USERDEF) return false;
  for (const ops::type_traits& t : ops::types) {
    if (numpy_number(t.type) == of_ml_dtypes) registered(t.type, false);
  }
  return std::ranges::any_of(ops::types, is);
}

nb::object new_numpy(const tensor_spec& spec) {
  npy_intp shape[max_rank];
  for (int a = 0; a < spec.shape.size(); ++a) shape[a] = spec.shape[a];
  PyObject* made = nullptr;
  const int number = numpy_number(spec.type);
  if (number == of_ml_dtypes) {
    nb::object descriptor = registered(spec.type, true);
    made = PyArray_NewFromDescr(&PyArray_Type, reinterpret_cast<PyArray_Descr*>(descriptor.release().ptr()),
                                spec.shape.size(), shape, nullptr, nullptr, 0, nullptr);
  } else {
    made = PyArray_SimpleNew(spec.shape.size(), shape, number);
  }
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

// ----------------------------------------------------------------------------------------------------------- DLPack

dlpack::data_type dlpack_type(dtype type) {
  const api::dlpack_type t = api::dlpack_type_of(type);
  return {t.code, t.bits, 1};
}

// The table of the object's type, null if it has none. Types are few; they are never freed.
const dlpack::exchange_api* exchange_of(nb::handle object) {
  static std::vector<std::pair<PyTypeObject*, const dlpack::exchange_api*>> known;
  auto* const type = Py_TYPE(object.ptr());
  for (const auto& [t, api] : known) {
    if (t == type) return api;
  }
  const dlpack::exchange_api* api = nullptr;
  nb::handle of_type(reinterpret_cast<PyObject*>(type));
  if (nb::hasattr(of_type, "__dlpack_c_exchange_api__")) {
    nb::object capsule = of_type.attr("__dlpack_c_exchange_api__");
    const void* head = PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api");
    if (head == nullptr) PyErr_Clear();
    for (; head != nullptr; head = static_cast<const dlpack::exchange_api::header*>(head)->previous) {
      if (static_cast<const dlpack::exchange_api::header*>(head)->version.major != 1) continue;
      const auto* const table = static_cast<const dlpack::exchange_api*>(head);
      const bool whole = table->allocate != nullptr && table->export_managed != nullptr &&
                         table->import_managed != nullptr && table->current_stream != nullptr;
      if (whole) api = table;
      break;
    }
  }
  Py_INCREF(reinterpret_cast<PyObject*>(type));
  known.emplace_back(type, api);
  return api;
}

// Of a new reference; not, where the object lacks the attribute.
bool is_true(PyObject* value) {
  if (value == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw nb::python_error();
    PyErr_Clear();
    return false;
  }
  const bool answer = value == Py_True;
  Py_DECREF(value);
  return answer;
}

void set_python_error(void*, const char* kind, const char* text) {
  PyErr_Format(PyExc_RuntimeError, "%s: %s", kind, text);
}

// What a library's from_dlpack is given.
struct exporter {
  dlpack::managed* managed;
};

nb::capsule export_once(exporter& e) {
  if (e.managed == nullptr) throw std::runtime_error("librepdl: a result is exported once");
  return nb::steal<nb::capsule>(PyCapsule_New(std::exchange(e.managed, nullptr), "dltensor", [](PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor") == 0) return;
    auto* const m = static_cast<dlpack::managed*>(PyCapsule_GetPointer(capsule, "dltensor"));
    m->release(m);
  }));
}

// A library that has no exchange API: its from_dlpack takes the memory over.
nb::object namespace_of(nb::handle array) {
  if (nb::hasattr(array, "__array_namespace__")) return array.attr("__array_namespace__")();
  return nb::module_::import_(library_of(array).c_str());
}

void* stream_from(nb::handle number) {
  return reinterpret_cast<void*>(integer_said<std::uintptr_t>("a stream, an address", number));
}

// The stream that the array's library launches on, if it says.
std::optional<void*> stream_of(nb::handle array, const device& where) {
  const std::string library = library_of(array);
  if (library == "torch") return stream_of_torch(where);
  if (library != "cupy") return std::nullopt;
  return stream_from(nb::module_::import_("cupy").attr("cuda").attr("get_current_stream")().attr("ptr"));
}

}  // namespace

std::string text_of(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  if (!text.is_valid()) throw nb::python_error();
  const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (!bytes.is_valid() || PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) throw nb::python_error();
  return {data, static_cast<std::size_t>(size)};
}

std::string name_of_type(nb::handle object) { return text_of(nb::type_name(object.type())); }

void* stream_of_torch(const device& where) {
  const nb::object modules = nb::module_::import_("sys").attr("modules");
  if (where.kind == device_kind::cpu || !nb::cast<bool>(modules.attr("__contains__")("torch"))) return nullptr;
  return stream_from(
      nb::module_::import_("torch").attr("cuda").attr("current_stream")(where.index).attr("cuda_stream"));
}

struct array::owned {
  dlpack::managed managed;
  nb::object library;
  std::shared_ptr<shared_context> context;
  void* stream;
  std::size_t bytes;
  std::int64_t shape[max_rank];

  static void release(dlpack::managed* m) { give_back()(static_cast<owned*>(m->owner)); }
};

void array::give_back::operator()(owned* o) const noexcept {
  o->context->give_back(o->managed.tensor.data, o->bytes, o->stream);
  delete o;
}

void import_numpy() {
  if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
}

void bind_exporter(nb::module_& m) {
  nb::class_<exporter>(m, "_Exporter")
      .def("__dlpack__", [](exporter& e, nb::args, nb::kwargs) { return export_once(e); })
      .def("__dlpack_device__", [](const exporter& e) {
        const dlpack::device d = e.managed == nullptr ? dlpack::device{1, 0} : e.managed->tensor.where;
        return nb::make_tuple(d.type, d.index);
      });
}

// ------------------------------------------------------------------------------------------------------------ reading

array::array(std::string_view op, std::string_view name, nb::handle object) : object_(nb::borrow(object)) {
  try {
    if (named(op, name, [&] { return read_numpy() || read_exchange() || read_dlpack() || read_buffer(); })) return;
  } catch (...) {
    release();
    throw;
  }
  type_error(
      op, name,
      "expected an array (of NumPy, PyTorch, or any with DLPack or the buffer protocol), got " + name_of_type(object));
}

bool array::read_numpy() {
  if (PyArray_Check(object_.ptr())) {
    if (!PyArray_CheckExact(object_.ptr()) && !is_plain_subclass(object_)) {
      unsuitable_type("an array of NumPy itself (its subclasses may give the elements another meaning: pass " +
                          std::string(is_masked(object_) ? "x.filled(value), or x.data" : "x.view(numpy.ndarray)") +
                          ")",
                      name_of_type(object_));
    }
  } else {
    if (!PyArray_CheckScalar(object_.ptr())) return false;
    PyObject* const made = PyArray_FromScalar(object_.ptr(), nullptr);
    if (made == nullptr) throw nb::python_error();
    object_ = nb::steal(made);
    read_only_ = true;
  }
  PyArrayObject* const a = numpy_array(object_);
  dtype type{};
  const int number = PyArray_TYPE(a);
  if (!type_from_numpy(number, type) || PyArray_ISBYTESWAPPED(a)) {
    const char* how = "x.astype(numpy.float32) converts";
    if (PyArray_ISBYTESWAPPED(a)) how = "x.astype(x.dtype.newbyteorder('=')) converts";
    if (number == NPY_VOID)
      how = "bfloat16 that NumPy read from a file is x.view(ml_dtypes.bfloat16), likewise float8";
    unsuitable_type(element_types(), dtype_text(object_) + "; " + how);
  }
  const int rank = PyArray_NDIM(a);
  const auto size = static_cast<std::int64_t>(size_of(type));
  const sizes shape(std::span<const npy_intp>(PyArray_DIMS(a), static_cast<std::size_t>(rank)));
  sizes strides(std::span<const npy_intp>(PyArray_STRIDES(a), static_cast<std::size_t>(rank)));
  for (int i = 0; i < rank; ++i) {
    // NumPy leaves the strides of axes without a second element open.
    if (shape[i] > 1 && strides[i] % size != 0) {
      unsuitable_value("strides", "multiples of the element's size", std::to_string(strides[i]) + " bytes");
    }
    strides[i] = shape[i] > 1 ? strides[i] / size : 0;
  }
  view_ = tensor_view(PyArray_DATA(a), type, shape, strides);
  read_only_ = read_only_ || !PyArray_ISWRITEABLE(a);
  protocol_ = protocol::numpy;
  return true;
}

void array::set(const dlpack::tensor& t) {
  const auto type = api::type_from_dlpack(t.type.code, t.type.bits);
  if (!type || t.type.lanes != 1) {
    unsuitable_type(element_types(), dtype_text(object_) + "; convert it, as x.to(torch.float32) does");
  }
  // Page-locked host memory is the CPU's, managed memory the GPU's.
  const bool cpu = t.where.type == 1 || t.where.type == 3;
  if (!cpu && t.where.type != 2 && t.where.type != 13) {
    unsuitable_value("device", "cpu or cuda", "DLPack's number " + std::to_string(t.where.type));
  }
  const device where = cpu ? device{} : device{device_kind::cuda, t.where.index};
  // Nothing that a capsule points to is looked at before it is known to be there.
  if (t.rank < 0 || t.rank > max_rank) {
    unsuitable_value("rank", "0 to " + std::to_string(max_rank), std::to_string(t.rank));
  }
  if (t.rank > 0 && t.shape == nullptr) unsuitable_value("shape", std::to_string(t.rank) + " sizes", "a null pointer");
  const auto rank = static_cast<std::size_t>(t.rank);
  const sizes shape(std::span<const std::int64_t>(t.shape, rank));
  if (t.byte_offset >= std::uint64_t{1} << 63) {
    unsuitable_value("byte_offset", "a number below 2^63", std::to_string(t.byte_offset));
  }
  void* const data = t.data == nullptr ? nullptr : static_cast<std::byte*>(t.data) + t.byte_offset;
  view_ = t.strides == nullptr
              ? tensor_view(data, *type, shape, where)
              : tensor_view(data, *type, shape, sizes(std::span<const std::int64_t>(t.strides, rank)), where);
}

namespace {

// Numbers of Python and NumPy, and lists of them: an array among them would lose what it is besides its elements.
void check_numbers(nb::handle object, int depth) {
  const bool plain = !PyArray_Check(object.ptr()) || PyArray_CheckExact(object.ptr());
  if (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr()) || (plain && PyArray_CheckScalar(object.ptr()))) return;
  if (PyList_Check(object.ptr()) == 0 && PyTuple_Check(object.ptr()) == 0) {
    unsuitable_type("an array, or a list of numbers", "a list with " + name_of_type(object));
  }
  if (depth == max_rank) unsuitable_value("list", "at most 8 axes", "more");
  for (nb::handle item : nb::iter(object)) check_numbers(item, depth + 1);
}

// numpy.asarray(object), or of this type.
nb::object as_numpy(nb::handle object, PyArray_Descr* type) {
  PyObject* const made = PyArray_FromAny(object.ptr(), type, 0, 0, NPY_ARRAY_DEFAULT, nullptr);
  if (made != nullptr) return nb::steal(made);
  const nb::python_error e;
  unsuitable_value("list", "one that NumPy makes an array of", text_of(e.value()));
}

}  // namespace

array array::of_numbers(std::string_view op, std::string_view name, nb::handle object, std::span<const dtype> types) {
  const auto takes = [&](dtype t) { return std::find(types.begin(), types.end(), t) != types.end(); };
  return named(op, name, [&] {
    check_numbers(object, 0);
    nb::object made = as_numpy(object, nullptr);
    dtype type{};
    const int number = PyArray_TYPE(numpy_array(made));
    const bool known = type_from_numpy(number, type) && takes(type);
    // Of the numbers themselves, not of what NumPy made of them: each is rounded once.
    if (!known && (PyTypeNum_ISNUMBER(number) || PyTypeNum_ISBOOL(number) || number == NPY_OBJECT) &&
        !PyTypeNum_ISCOMPLEX(number) && takes(dtype::f64)) {
      made = as_numpy(object, PyArray_DescrFromType(NPY_DOUBLE));
    }
    return array(op, name, made);
  });
}

bool array::read_exchange() {
  api_ = exchange_of(object_);
  if (api_ == nullptr) return false;
  // The exchange itself would hand out these, too.
  static PyObject* const requires_grad = PyUnicode_InternFromString("requires_grad");
  static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
  if (is_true(PyObject_GetAttr(object_.ptr(), requires_grad))) {
    unsuitable_value("requires_grad",
                     "a tensor that does not require grad (autograd does not see librepdl: pass x.detach())",
                     "one that does");
  }
  if (is_true(PyObject_CallMethodObjArgs(object_.ptr(), is_neg, nullptr))) {
    unsuitable_value("is_neg", "a tensor without a pending negation (pass x.resolve_neg())", "one with it");
  }
  if (api_->export_borrowed != nullptr) {
    dlpack::tensor t;
    if (api_->export_borrowed(object_.ptr(), &t) != 0) throw nb::python_error();
    set(t);
  } else {
    if (api_->export_managed(object_.ptr(), &managed_versioned_) != 0) throw nb::python_error();
    set(managed_versioned_->tensor);
    read_only_ = (managed_versioned_->flags & dlpack::read_only) != 0;
  }
  if (where().kind == device_kind::cuda && api_->current_stream(2, where().index, &stream_) != 0)
    throw nb::python_error();
  protocol_ = protocol::exchange;
  return true;
}

bool array::read_dlpack() {
  if (!nb::hasattr(object_, "__dlpack__")) return false;
  nb::dict options;
  const nb::object where =
      nb::hasattr(object_, "__dlpack_device__") ? object_.attr("__dlpack_device__")() : nb::object();
  std::int32_t kind = 1, index = 0;
  if (where.is_valid()) {
    if (!nb::isinstance<nb::tuple>(where) || nb::len(where) != 2) {
      unsuitable_type("a tuple of two integers from __dlpack_device__", name_of_type(where));
    }
    kind = integer_said<std::int32_t>("from __dlpack_device__ an integer", nb::object(where[0]));
    index = integer_said<std::int32_t>("from __dlpack_device__ an integer", nb::object(where[1]));
  }
  if (kind == 2) {
    const auto stream = stream_of(object_, {device_kind::cuda, index});
    must_wait_ = !stream;
    stream_ = stream.value_or(nullptr);
    // 1: CUDA's default stream.
    options["stream"] = stream_ == nullptr ? std::uintptr_t{1} : reinterpret_cast<std::uintptr_t>(stream_);
  }
  nb::object exported;
  try {
    nb::dict versioned = nb::borrow<nb::dict>(nb::steal(PyDict_Copy(options.ptr())));
    versioned["max_version"] = nb::make_tuple(1, 0);
    exported = object_.attr("__dlpack__")(**versioned);
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;
    exported = object_.attr("__dlpack__")(**options);
  }
  // A capsule whose contents were taken has another name.
  const auto take = [&](const char* name, const char* taken) -> void* {
    if (PyCapsule_IsValid(exported.ptr(), name) == 0) return nullptr;
    void* const p = PyCapsule_GetPointer(exported.ptr(), name);
    PyCapsule_SetName(exported.ptr(), taken);
    return p;
  };
  managed_versioned_ = static_cast<dlpack::managed_versioned*>(take("dltensor_versioned", "used_dltensor_versioned"));
  if (managed_versioned_ != nullptr) {
    if (managed_versioned_->version.major != 1) {
      unsuitable_value("__dlpack__", "DLPack 1", "DLPack " + std::to_string(managed_versioned_->version.major));
    }
    set(managed_versioned_->tensor);
    read_only_ = (managed_versioned_->flags & dlpack::read_only) != 0;
  } else {
    managed_ = static_cast<dlpack::managed*>(take("dltensor", "used_dltensor"));
    if (managed_ == nullptr) unsuitable_type("a capsule from __dlpack__", name_of_type(exported));
    set(managed_->tensor);
  }
  protocol_ = protocol::dlpack;
  return true;
}

bool array::read_buffer() {
  if (PyObject_CheckBuffer(object_.ptr()) == 0) return false;
  buffer_ = new Py_buffer;
  if (PyObject_GetBuffer(object_.ptr(), buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    delete std::exchange(buffer_, nullptr);
    throw nb::python_error();
  }
  std::string_view format = buffer_->format == nullptr ? "B" : buffer_->format;
  if (format.size() == 2 && (format[0] == '@' || format[0] == '=' || format[0] == '<')) format.remove_prefix(1);
  static constexpr struct {
    char letter;
    dtype type;
  } formats[] = {{'f', dtype::f32}, {'d', dtype::f64}, {'e', dtype::f16},    {'l', dtype::i64},
                 {'q', dtype::i64}, {'i', dtype::i32}, {'?', dtype::boolean}};
  const auto* const found = std::find_if(std::begin(formats), std::end(formats), [&](const auto& f) {
    return format.size() == 1 && f.letter == format[0] && static_cast<Py_ssize_t>(size_of(f.type)) == buffer_->itemsize;
  });
  if (found == std::end(formats)) {
    unsuitable_type(element_types(), "the buffer's format '" + std::string(format) + "'");
  }
  const auto rank = static_cast<std::size_t>(buffer_->ndim);
  const sizes shape(std::span<const Py_ssize_t>(buffer_->shape, rank));
  sizes strides(std::span<const Py_ssize_t>(buffer_->strides, rank));
  for (std::int64_t& s : strides) {
    if (s % buffer_->itemsize != 0)
      unsuitable_value("strides", "multiples of the element's size", std::to_string(s) + " bytes");
    s /= buffer_->itemsize;
  }
  view_ = tensor_view(buffer_->buf, found->type, shape, strides);
  read_only_ = buffer_->readonly != 0;
  protocol_ = protocol::buffer;
  return true;
}

tensor_view array::writable(std::string_view op, std::string_view name) const {
  if (read_only_) value_error(op, name, "expected an array that can be written, got a read-only one");
  return view_;
}

void array::release() noexcept {
  if (managed_ != nullptr && managed_->release != nullptr) managed_->release(managed_);
  if (managed_versioned_ != nullptr && managed_versioned_->release != nullptr)
    managed_versioned_->release(managed_versioned_);
  if (buffer_ != nullptr) {
    PyBuffer_Release(buffer_);
    delete buffer_;
  }
  managed_ = nullptr;
  managed_versioned_ = nullptr;
  buffer_ = nullptr;
}
array::~array() { release(); }
array::array(array&& other) noexcept { *this = std::move(other); }
array& array::operator=(array&& other) noexcept {
  if (this == &other) return *this;
  release();
  object_ = std::move(other.object_);
  view_ = other.view_;
  protocol_ = other.protocol_;
  read_only_ = other.read_only_;
  must_wait_ = other.must_wait_;
  stream_ = other.stream_;
  api_ = other.api_;
  managed_ = std::exchange(other.managed_, nullptr);
  managed_versioned_ = std::exchange(other.managed_versioned_, nullptr);
  buffer_ = std::exchange(other.buffer_, nullptr);
  owned_ = std::move(other.owned_);
  return *this;
}

// ------------------------------------------------------------------------------------------------------------- making

array::array(const tensor_spec& spec, const array& like) {
  switch (like.protocol_) {
    case protocol::exchange:
      make_exchange(spec, like);
      return;
    case protocol::dlpack:
      make_dlpack(spec, like);
      return;
    case protocol::none:
    case protocol::numpy:
    case protocol::buffer:
      make_numpy(spec);
      return;
  }
}

void array::make_numpy(const tensor_spec& spec) {
  object_ = new_numpy(spec);
  view_ = tensor_view(PyArray_DATA(numpy_array(object_)), spec.type, spec.shape);
  protocol_ = protocol::numpy;
}

void array::make_exchange(const tensor_spec& spec, const array& like) {
  sizes shape = spec.shape;
  dlpack::tensor prototype{nullptr,
                           {static_cast<std::int32_t>(like.where().kind), like.where().index},
                           shape.size(),
                           dlpack_type(spec.type),
                           &*shape.begin(),
                           nullptr,
                           0};
  dlpack::managed_versioned* made = nullptr;
  if (like.api_->allocate(&prototype, &made, nullptr, set_python_error) != 0) throw nb::python_error();
  view_ = tensor_view(static_cast<std::byte*>(made->tensor.data) + made->tensor.byte_offset, spec.type, spec.shape,
                      like.where());
  void* object = nullptr;
  if (like.api_->import_managed(made, &object) != 0) throw nb::python_error();
  object_ = nb::steal(static_cast<PyObject*>(object));
  protocol_ = protocol::exchange;
  api_ = like.api_;
  stream_ = like.stream_;
}

void array::make_dlpack(const tensor_spec& spec, const array& like) {
  const std::shared_ptr<shared_context> context = current_context(like.where());
  const auto bytes = static_cast<std::size_t>(byte_count(spec));
  void* data = nullptr;
  {
    const turn t(*context, true);
    data = context->on(like.stream_).allocate(bytes);
  }
  owned_.reset(new owned{{}, namespace_of(like.object_), context, like.stream_, bytes, {}});
  std::copy(spec.shape.begin(), spec.shape.end(), owned_->shape);
  owned_->managed.tensor = {data,
                            {static_cast<std::int32_t>(like.where().kind), like.where().index},
                            spec.shape.size(),
                            dlpack_type(spec.type),
                            owned_->shape,
                            nullptr,
                            0};
  owned_->managed.owner = owned_.get();
  owned_->managed.release = owned::release;
  view_ = tensor_view(data, spec.type, spec.shape, like.where());
  protocol_ = protocol::dlpack;
  stream_ = like.stream_;
  must_wait_ = like.must_wait_;
}

nb::object array::take() {
  if (owned_ != nullptr) {
    const nb::object library = std::move(owned_->library);
    object_ = library.attr("from_dlpack")(nb::cast(exporter{&owned_.release()->managed}));
  }
  return object_;
}

scratch::scratch(std::string_view op, const array& like, std::size_t bytes) {
  if (bytes == 0) return;
  auto size = static_cast<std::int64_t>(bytes);
  dlpack::tensor prototype{nullptr, {2, like.where().index}, 1, {1, 8, 1}, &size, nullptr, 0};
  std::string why;
  const auto say = [](void* text, const char*, const char* message) { *static_cast<std::string*>(text) = message; };
  if (like.api_->allocate(&prototype, &memory_, &why, say) != 0) {
    fail(error_site::out_of_memory, op, "workspace", std::to_string(bytes) + " bytes on " + name_of(like.where()), why);
  }
}
scratch::~scratch() {
  if (memory_ != nullptr) memory_->release(memory_);
}
void* scratch::data() const {
  return memory_ == nullptr ? nullptr : static_cast<std::byte*>(memory_->tensor.data) + memory_->tensor.byte_offset;
}

// ------------------------------------------------------------------------------------------------- numbers and types

bool is_python_number(nb::handle object) {
  return (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr())) && !PyArray_CheckScalar(object.ptr());
}

namespace {

// The integer, rounded to odd where it has more than 53 bits: then one more rounding, to fewer bits, is that of the integer.
double double_rounded_to_odd(nb::handle integer) {
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
  if (overflow == 0 && std::llabs(small) <= 1LL << 53) return static_cast<double>(small);
  nb::object magnitude = nb::steal(PyNumber_Absolute(integer.ptr()));
  const auto bits = nb::cast<long long>(magnitude.attr("bit_length")());
  const long long shift = bits - 53;
  nb::object high = magnitude >> nb::int_(shift);
  const bool inexact = !(high << nb::int_(shift)).equal(magnitude);
  const double significand = static_cast<double>(nb::cast<long long>(high) | (inexact ? 1 : 0));
  const double value = bits > 2000 ? HUGE_VAL : std::ldexp(significand, static_cast<int>(shift));
  return integer < nb::int_(0) ? -value : value;
}

// To f64, once.
double double_of(nb::handle number) {
  const double value = PyFloat_AsDouble(number.ptr());
  if (PyErr_Occurred() == nullptr) return value;
  PyErr_Clear();  // too large
  return number < nb::int_(0) ? -HUGE_VAL : HUGE_VAL;
}

}  // namespace

namespace {

// Between a double and the bits of a format; `to` is filled. In a context of its own: the caller's may be preparing calls.
void convert_one(const const_tensor_view& from, const tensor_view& to) {
  thread_local context here(context_options{.threads = 1});
  convert(here, from, to);
}

std::uint64_t rounded_bits(std::string_view op, std::string_view name, nb::handle number, dtype format) {
  if (!is_python_number(number) || !ops::is_floating(format)) {
    type_error(op, name, "expected an array of " + std::string(name_of(format)) + ", got " + name_of_type(number));
  }
  const bool wide = format == dtype::f64 || PyFloat_Check(number.ptr());
  const double value = wide ? double_of(number) : double_rounded_to_odd(number);
  std::uint64_t bits = 0;
  convert_one(const_tensor_view(&value, sizes{}), tensor_view(static_cast<void*>(&bits), format, sizes{}));
  return bits;
}

double widened(dtype format, std::uint64_t bits) {
  double value = 0;
  convert_one(const_tensor_view(static_cast<const void*>(&bits), format, sizes{}), tensor_view(&value, sizes{}));
  return value;
}

}  // namespace

array scalar(std::string_view op, std::string_view name, nb::handle number, const array& like) {
  return array(like.type(), rounded_bits(op, name, number, like.type()), like);
}

array::array(dtype type, std::uint64_t bits, const array& like) {
  if (like.where().kind == device_kind::cpu) {
    // Any eight bytes that Python frees.
    PyObject* const made = PyArray_SimpleNew(0, nullptr, NPY_INT64);
    if (made == nullptr) throw nb::python_error();
    object_ = nb::steal(made);
    void* const data = PyArray_DATA(numpy_array(object_));
    std::memcpy(data, &bits, sizeof bits);
    view_ = tensor_view(data, type, sizes{});
    protocol_ = protocol::numpy;
    return;
  }
  // By the array's library: its kernels may be captured in a CUDA graph, a copy from here may not. The number is exact.
  const double value = widened(type, bits);
  if (nb::hasattr(like.object_, "new_full")) {
    *this = array("scalar", "value", like.object_.attr("new_full")(nb::tuple(), value));
    return;
  }
  nb::dict options;
  options["dtype"] = like.object_.attr("dtype");
  *this = array("scalar", "value", namespace_of(like.object_).attr("full")(nb::tuple(), value, **options));
}

dtype dtype_from(std::string_view op, std::string_view name, nb::handle object) {
  std::string text;
  if (nb::isinstance<nb::str>(object)) {
    text = text_of(object);
  } else if (nb::hasattr(object, "__name__")) {
    text = text_of(object.attr("__name__"));  // numpy.float32, ml_dtypes.bfloat16
  } else {
    text = text_of(object);  // numpy.dtype("float32"), torch.float32
  }
  const std::string_view last = std::string_view(text).substr(text.rfind('.') + 1);
  for (const ops::type_traits& t : ops::types) {
    if (t.python == last || t.name == last) return t.type;
  }
  if (last == "bool_") return dtype::boolean;  // numpy.bool_ of NumPy 1
  // As NumPy spells them: "f8", "<f4", "double", float. Its "f16" would have 128 bits; it is ours.
  PyArray_Descr* found = nullptr;
  const bool spelled =
      nb::isinstance<nb::str>(object) || PyType_Check(object.ptr()) != 0 || PyArray_DescrCheck(object.ptr());
  if (spelled && PyArray_DescrConverter(object.ptr(), &found) == NPY_SUCCEED) {
    const nb::object descriptor = nb::steal(reinterpret_cast<PyObject*>(found));
    dtype type{};
    if (PyArray_ISNBO(found->byteorder) && type_from_numpy(found->type_num, type)) return type;
  }
  PyErr_Clear();
  type_error(op, name, "expected " + element_types() + ", got " + text);
}

}  // namespace repdl::python
