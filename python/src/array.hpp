// Python's arrays as operands, and results as arrays of the caller's library.
#pragma once

#include <string>

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
  // A new one, its elements not initialised, of the library and on the device of `like`; of NumPy where there is none.
  array(const tensor_spec& spec, const array& like);
  // One element, given by its bits.
  array(dtype type, std::uint64_t bits, const array& like);
  array(array&&) noexcept;
  array& operator=(array&&) noexcept;
  ~array();

  nb::handle object() const { return object_; }
  const_tensor_view view() const { return view_; }
  // Throws where the array is read-only.
  tensor_view writable(std::string_view op, std::string_view name) const;
  dtype type() const { return view_.type(); }
  const device& where() const { return view_.where(); }
  // A cudaStream_t: the one that its library is launching on.
  void* stream() const { return stream_; }

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

  nb::object object_;
  tensor_view view_;
  protocol protocol_ = protocol::none;
  bool read_only_ = false;
  void* stream_ = nullptr;
  const dlpack::exchange_api* api_ = nullptr;
  dlpack::managed* managed_ = nullptr;
  dlpack::managed_versioned* managed_versioned_ = nullptr;
  Py_buffer* buffer_ = nullptr;
};

// The class of what from_dlpack of other libraries is given.
void bind_exporter(nb::module_& m);
// To be called when the module is imported.
void import_numpy();
// Whether the object is one of Python's numbers (not NumPy's).
bool is_python_number(nb::handle object);
// The number, rounded once to the format.
double rounded(std::string_view op, std::string_view name, nb::handle number, dtype format);
// The same as an array of rank 0 beside `like`.
array scalar(std::string_view op, std::string_view name, nb::handle number, const array& like);
// What "f32", numpy.float32, numpy.dtype("float32"), torch.float32 name; throws TypeError.
dtype dtype_from(std::string_view op, std::string_view name, nb::handle object);

}  // namespace repdl::python
