// librepdl's operations on PyTorch's tensors, through the C ABI.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "c_abi.hpp"

namespace repdl_torch {

using at::Tensor;

/// What librepdl._core.c_abi() gave, and how to ask whether a CUDA graph is being captured; before anything else.
void attach(const c_abi* functions, int (*capturing)());
/// Whether calls on the device are being captured.
bool is_capturing(at::Device where);

/// An attribute of a call.
struct attribute : repdl_attribute {
  attribute(const char* name, bool value) : attribute(name, REPDL_BOOLEAN) { this->value.i64 = value ? 1 : 0; }
  attribute(const char* name, int64_t value) : attribute(name, REPDL_INTEGER) { this->value.i64 = value; }
  attribute(const char* name, double value) : attribute(name, REPDL_REAL) { this->value.f64 = value; }
  attribute(const char* name, const char* value) : attribute(name, REPDL_TEXT) { this->value.text = value; }
  // The list must outlive the call.
  attribute(const char* name, at::IntArrayRef value) : attribute(name, REPDL_INTEGERS) {
    count = static_cast<int64_t>(value.size());
    this->value.integers = value.data();
  }

 private:
  attribute(const char* name, int32_t kind) : repdl_attribute{name, kind, 0, {}} {}
};

/// An operand: a tensor, a number, or nothing. What it was made of must outlive it.
class operand {
 public:
  operand() : tensor_{} {}
  operand(const Tensor* t);
  operand(const Tensor& t) : operand(&t) {}
  operand(Tensor&& t) = delete;
  /// A number in host memory, f32 or f64.
  explicit operand(const float* number) : operand(number, {2, 32, 1}) {}
  explicit operand(const double* number) : operand(number, {2, 64, 1}) {}
  /// A dense tensor as a vector: elements in the order of memory.
  static operand flat(const Tensor& t, const int64_t* size);
  /// A tensor's first axes, the others being of size 1.
  static operand leading(const Tensor& t, int64_t rank);

  const repdl_tensor* get() const { return present_ ? &tensor_ : nullptr; }

 private:
  operand(const void* number, repdl_data_type type);
  repdl_tensor tensor_;
  bool present_ = false;
};

/// One of librepdl's operations, looked up once: `static const operation matmul("matmul")`.
class operation {
 public:
  explicit operation(const std::string& name);
  /// On the device's current stream; on the CPU with PyTorch's number of threads.
  void operator()(at::Device where, at::ArrayRef<operand> in, at::ArrayRef<operand> out,
                  at::ArrayRef<attribute> options) const;
  /// `count` calls, as if one after the other: their operands and options lie behind each other.
  void run_list(at::Device where, size_t count, at::ArrayRef<operand> in, at::ArrayRef<operand> out,
                at::ArrayRef<attribute> options) const;
  /// On the device of the first result.
  void operator()(std::initializer_list<operand> in, std::initializer_list<const Tensor*> out,
                  std::initializer_list<attribute> options = {}) const;

 private:
  // call(context) on the device's current stream; throws what it returns.
  template <class Call>
  void on(at::Device where, const Call& call) const;
  const repdl_op* op_;
};

/// The library does not take a call, which nothing has been written of: a format that it lacks, or arguments that fit no call.
struct not_taken : c10::Error {
  using c10::Error::Error;
};
/// It could not do its work: `undecided`, a device's error.
struct failed : c10::Error {
  using c10::Error::Error;
};

/// Whether librepdl's tensors have the element type.
bool has_type(at::ScalarType type);
/// Integers that they have not, but which are numbers to PyTorch: uint8, int8, int16, uint16, uint32, uint64.
bool is_other_integer(at::ScalarType type);
/// f32, or f64 for f64: what PyTorch computes with (its opmath), to which numbers (aten's Scalar) are rounded.
inline double in_arithmetic_of(at::ScalarType type, double value) {
  return type == at::kDouble ? value : static_cast<double>(static_cast<float>(value));
}
inline at::ScalarType in_arithmetic(at::ScalarType type) { return type == at::kDouble ? at::kDouble : at::kFloat; }
/// at::empty, without the dispatcher.
Tensor fresh(at::IntArrayRef shape, at::ScalarType type, at::Device where,
             at::MemoryFormat format = at::MemoryFormat::Contiguous);
/// Of the shape and type of a tensor, and of its strides where it is dense.
Tensor fresh_like(const Tensor& t);
/// The tensor with another element type, each element rounded once; by `copy_` where librepdl's tensors lack one of the types.
Tensor converted(const Tensor& t, at::ScalarType type);
void convert_into(const Tensor& from, const Tensor& to);
/// A 0-dimensional tensor of a number, on a device.
Tensor number_on(double value, at::ScalarType type, at::Device where);

}  // namespace repdl_torch
