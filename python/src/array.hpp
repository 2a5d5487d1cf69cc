// Python's arrays as operands, and results as arrays of the caller's library.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "dlpack.hpp"
#include "librepdl/tensor.hpp"
#include "python.hpp"

namespace repdl::python {

// How an array was read, and so how its library makes others.
enum class protocol { none, numpy, exchange, dlpack, buffer };

// An array of the caller, without a copy. It keeps the memory alive.
class array {
 public:
  array() = default;
  // Throws TypeError, ValueError, which begin with "OP: NAME: ".
  array(std::string_view op, std::string_view name, nb::handle object);
  // What NumPy makes of a number of Python, or of lists of them: f64, i64 or boolean; f64 where the operand's types have that
  // and not its own.
  static array of_numbers(std::string_view op, std::string_view name, nb::handle object, std::span<const dtype> types);
  // A new one, its elements not initialised, of the library and on the device of `like`; of NumPy where there is none.
  array(const tensor_spec& spec, const array& like);
  // One element, given by its bits.
  array(dtype type, std::uint64_t bits, const array& like);
  array(array&&) noexcept;
  array& operator=(array&&) noexcept;
  ~array();

  // The array, as its library has it. A result is complete only after the call that fills it.
  nb::object take();
  const const_tensor_view& view() const { return view_; }
  // Throws where the array is read-only.
  tensor_view writable(std::string_view op, std::string_view name) const;
  dtype type() const { return view_.type(); }
  const device& where() const { return view_.where(); }
  // Results are of NumPy, then.
  bool of_numpy() const { return protocol_ != protocol::exchange && protocol_ != protocol::dlpack; }
  // A cudaStream_t: the one that its library is launching on.
  void* stream() const { return stream_; }
  // On CUDA, of a library that does not say which stream that is: its results have to be there when it gets them.
  bool must_wait() const { return must_wait_; }
  // On CUDA, of a library that lends memory for workspaces (class scratch).
  bool lends() const { return protocol_ == protocol::exchange && where().kind == device_kind::cuda; }

 private:
  bool read_numpy();
  bool read_exchange();
  bool read_dlpack();
  bool read_buffer();
  void set(const dlpack::tensor& t);
  void make_numpy(const tensor_spec& spec);
  void make_exchange(const tensor_spec& spec, const array& like);
  void make_dlpack(const tensor_spec& spec, const array& like);
  void release() noexcept;

  friend class scratch;
  // Memory of a result, until the library that takes it over lets go of it.
  struct owned;
  struct give_back {
    void operator()(owned* o) const noexcept;
  };

  nb::object object_;
  tensor_view view_;
  protocol protocol_ = protocol::none;
  bool read_only_ = false;
  bool must_wait_ = false;
  void* stream_ = nullptr;
  const dlpack::exchange_api* api_ = nullptr;
  dlpack::managed* managed_ = nullptr;
  dlpack::managed_versioned* managed_versioned_ = nullptr;
  Py_buffer* buffer_ = nullptr;
  std::unique_ptr<owned, give_back> owned_;  // of a result that take() hands over
};

// Bytes on the GPU that the library of an array allocates, on the stream that it is launching on, and gets back. So
// librepdl has no memory of its own beside PyTorch's, and a CUDA graph owns the workspaces of the calls in it.
class scratch {
 public:
  scratch() = default;
  // like.lends(). The interpreter's lock is not needed.
  scratch(std::string_view op, const array& like, std::size_t bytes);
  scratch(scratch&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
  scratch& operator=(scratch&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~scratch();
  void* data() const;

 private:
  dlpack::managed_versioned* memory_ = nullptr;
};

// str(object); what is no Unicode is escaped.
std::string text_of(nb::handle object);
// With its module.
std::string name_of_type(nb::handle object);
// The stream that PyTorch is launching on, where it is loaded; else the default stream.
void* stream_of_torch(const device& where);
// The class of what from_dlpack of other libraries is given.
void bind_exporter(nb::module_& m);
// To be called when the module is imported.
void import_numpy();
// Whether the object is one of Python's numbers (not NumPy's).
bool is_python_number(nb::handle object);
// The number, rounded once to the format of `like`, as an array of rank 0 beside it.
array scalar(std::string_view op, std::string_view name, nb::handle number, const array& like);
// What "f32", numpy.float32, numpy.dtype("float32"), torch.float32 name; throws TypeError.
dtype dtype_from(std::string_view op, std::string_view name, nb::handle object);

}  // namespace repdl::python
