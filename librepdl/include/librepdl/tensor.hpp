// Formats, shapes and views. Views never own memory.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "librepdl/error.hpp"
#include "librepdl/export.hpp"

namespace repdl REPDL_EXPORT {

/// Element types: f16, bf16, f32, f64, i64, boolean, i32, f8_e4m3fn, f8_e5m2 (formats.def). The numbers are part of the C ABI and
/// are never changed.
enum class dtype : std::uint8_t {
#define REPDL_TYPE(id, number, ...) id = (number),
#include "librepdl/formats.def"
};

/// IEEE 754 binary16, storage only.
struct f16 {
  std::uint16_t bits;
  friend bool operator==(f16, f16) = default;  ///< compares bit patterns
};

/// bfloat16 (8 exponent bits, 8 significand bits), storage only.
struct bf16 {
  std::uint16_t bits;
  friend bool operator==(bf16, bf16) = default;  ///< compares bit patterns
};

/// E4M3 of the Open Compute Project (4 exponent bits, 4 significand bits): no infinities, one NaN of either sign, the largest number
/// is 448. For conversions only.
struct f8_e4m3fn {
  std::uint8_t bits;
  friend bool operator==(f8_e4m3fn, f8_e4m3fn) = default;  ///< compares bit patterns
};

/// E5M2 (5 exponent bits, 3 significand bits), the upper half of binary16. For conversions only.
struct f8_e5m2 {
  std::uint8_t bits;
  friend bool operator==(f8_e5m2, f8_e5m2) = default;  ///< compares bit patterns
};

/// Bytes of one element.
constexpr std::size_t size_of(dtype t) noexcept {
  constexpr std::size_t table[] = {
#define REPDL_TYPE(id, number, type, ...) sizeof(type),
#include "librepdl/formats.def"
  };
  return table[static_cast<std::size_t>(t)];
}

/// "f16", "bf16", "f32", "f64", "i64", "bool", "i32", "f8_e4m3fn", "f8_e5m2".
std::string_view name_of(dtype t) noexcept;
/// The inverse of name_of; throws invalid_argument.
dtype dtype_named(std::string_view name);

/// The element type of a C++ type; nothing for one that a tensor cannot hold.
template <class T>
struct element_traits {};
#define REPDL_TYPE(id, number, type, ...)     \
  template <>                                 \
  struct element_traits<type> {               \
    static constexpr dtype value = dtype::id; \
  };
#include "librepdl/formats.def"

template <class T>
inline constexpr bool is_element = requires {
  element_traits<T>::value;
};

/// A C++ type that a tensor can hold.
template <class T>
concept element_type = is_element<T>;

template <element_type T>
inline constexpr dtype dtype_of = element_traits<T>::value;

/// Kinds of device, with DLPack's numbers.
enum class device_kind : std::int32_t { cpu = 1, cuda = 2 };

struct device {
  device_kind kind = device_kind::cpu;
  std::int32_t index = 0;
  friend bool operator==(const device&, const device&) = default;
};

/// "cpu", "cuda:0".
std::string name_of(const device& d);

/// The largest rank of a tensor.
inline constexpr int max_rank = 8;

/// The integer types of C++ without bool and the character types.
template <class T>
concept integer_type = std::integral<T> && !std::same_as<T, bool> &&
                       (std::same_as<T, std::make_signed_t<T>> || std::same_as<T, std::make_unsigned_t<T>>);

/// Up to max_rank integers, stored inline: a shape, strides, a list of axes. They may come in any integer type; throws
/// invalid_argument for more than max_rank of them, and for one of 2^63 or more.
class sizes {
 public:
  /// One of them, in a braced list.
  struct entry {
    std::int64_t value;
    template <integer_type T>
    entry(T v) : value(static_cast<std::int64_t>(v)) {
      if (std::is_unsigned_v<T> && value < 0) too_large(static_cast<std::uint64_t>(v));
    }
  };

  sizes() = default;
  sizes(std::initializer_list<entry> list) {
    resize(list.size());
    std::transform(list.begin(), list.end(), begin(), [](entry e) { return e.value; });
  }
  /// A std::vector, std::array, array or std::span of integers.
  template <class Range>
  requires(!std::same_as<Range, sizes> && requires(const Range& r) {
    requires integer_type<typename decltype(std::span(r))::value_type>;
  }) sizes(const Range& range) {
    const std::span list(range);
    resize(list.size());
    std::transform(list.begin(), list.end(), begin(), [](entry e) { return e.value; });
  }

  int size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::int64_t operator[](int i) const noexcept { return v_[static_cast<std::size_t>(i)]; }
  std::int64_t& operator[](int i) noexcept { return v_[static_cast<std::size_t>(i)]; }
  const std::int64_t* begin() const noexcept { return v_.data(); }
  const std::int64_t* end() const noexcept { return v_.data() + size_; }
  std::int64_t* begin() noexcept { return v_.data(); }
  std::int64_t* end() noexcept { return v_.data() + size_; }
  void push_back(std::int64_t x);
  void pop_back() noexcept { --size_; }
  friend bool operator==(const sizes& a, const sizes& b) noexcept {
    if (a.size_ != b.size_) return false;
    for (int i = 0; i < a.size_; ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }

 private:
  void resize(std::size_t n);
  [[noreturn]] static void too_large(std::uint64_t v);

  std::array<std::int64_t, max_rank> v_{};
  int size_ = 0;
};

/// "[2, 3]".
std::string to_string(const sizes& s);
/// The product of the sizes, 0 where one is 0; throws invalid_argument for a negative size or when it exceeds 2^62.
std::int64_t element_count(const sizes& shape);
/// Row-major (C order) strides in elements.
sizes row_major(const sizes& shape);

/// The type and shape of a tensor, without its data.
struct tensor_spec {
  dtype type = dtype::f32;
  sizes shape;
  friend bool operator==(const tensor_spec&, const tensor_spec&) = default;
};

/// The bytes of the elements, one after the other; throws invalid_argument when they exceed 2^62.
std::int64_t byte_count(const tensor_spec& s);

/// A read-only strided view. Strides are in elements, of any sign; 0 repeats. Default-constructed: an absent operand.
class const_tensor_view {
 public:
  const_tensor_view() = default;
  /// Rank 1. Views do not own, so a temporary vector or array does not convert.
  template <element_type T>
  const_tensor_view(std::span<const T> data)
      : const_tensor_view(data.data(), dtype_of<T>, sizes{static_cast<std::int64_t>(data.size())}) {}
  template <element_type T>
  const_tensor_view(const std::vector<T>& data) : const_tensor_view(std::span<const T>(data)) {}
  template <element_type T>
  const_tensor_view(std::vector<T>&&) = delete;
  template <element_type T, std::size_t n>
  const_tensor_view(const std::array<T, n>& data) : const_tensor_view(std::span<const T>(data)) {}
  template <element_type T, std::size_t n>
  const_tensor_view(std::array<T, n>&&) = delete;
  template <element_type T, std::size_t n>
  const_tensor_view(const T (&data)[n]) : const_tensor_view(std::span<const T>(data)) {}
  /// Row-major.
  template <element_type T>
  const_tensor_view(const T* data, const sizes& shape, device where = {})
      : const_tensor_view(data, dtype_of<T>, shape, where) {}
  const_tensor_view(const void* data, dtype type, const sizes& shape, device where = {});
  const_tensor_view(const void* data, dtype type, const sizes& shape, const sizes& strides, device where = {});

  const void* data() const noexcept { return data_; }
  dtype type() const noexcept { return type_; }
  const repdl::device& where() const noexcept { return where_; }
  const sizes& shape() const noexcept { return shape_; }
  const sizes& strides() const noexcept { return strides_; }
  int rank() const noexcept { return shape_.size(); }
  std::int64_t count() const noexcept { return count_; }
  tensor_spec spec() const { return {type_, shape_}; }
  /// False for an absent operand.
  explicit operator bool() const noexcept { return present_; }
  /// True where the elements lie one after the other in row-major order.
  bool is_contiguous() const noexcept;

  /// Exchanges two axes (negative counts from the end).
  const_tensor_view transpose(int axis0 = -2, int axis1 = -1) const;
  /// Elements begin, begin + step, ... below end of one axis (0 <= begin <= end <= size, step >= 1).
  const_tensor_view slice(int axis, std::int64_t begin, std::int64_t end, std::int64_t step = 1) const;
  /// The same elements with another shape; throws invalid_argument where that would need a copy.
  const_tensor_view reshape(const sizes& shape) const;

 private:
  void check_data() const;

  const void* data_ = nullptr;
  sizes shape_;
  sizes strides_;
  std::int64_t count_ = 0;
  repdl::device where_;
  dtype type_ = dtype::f32;
  bool present_ = false;
};

/// A writable view; converts to a read-only one.
class tensor_view : public const_tensor_view {
 public:
  tensor_view() = default;
  template <element_type T>
  requires(!std::is_const_v<T>) tensor_view(std::span<T> data) : const_tensor_view(std::span<const T>(data)) {}
  template <element_type T>
  tensor_view(std::vector<T>& data) : const_tensor_view(std::span<const T>(data)) {}
  template <element_type T>
  tensor_view(std::vector<T>&&) = delete;
  template <element_type T, std::size_t n>
  tensor_view(std::array<T, n>& data) : const_tensor_view(std::span<const T>(data)) {}
  template <element_type T, std::size_t n>
  tensor_view(T (&data)[n]) : const_tensor_view(std::span<const T>(data)) {}
  template <element_type T>
  tensor_view(T* data, const sizes& shape, repdl::device where = {})
      : const_tensor_view(static_cast<const T*>(data), shape, where) {}
  tensor_view(void* data, dtype type, const sizes& shape, repdl::device where = {})
      : const_tensor_view(data, type, shape, where) {}
  tensor_view(void* data, dtype type, const sizes& shape, const sizes& strides, repdl::device where = {})
      : const_tensor_view(data, type, shape, strides, where) {}

  void* data() const noexcept { return const_cast<void*>(const_tensor_view::data()); }
  tensor_view transpose(int axis0 = -2, int axis1 = -1) const {
    return tensor_view(const_tensor_view::transpose(axis0, axis1));
  }
  tensor_view slice(int axis, std::int64_t begin, std::int64_t end, std::int64_t step = 1) const {
    return tensor_view(const_tensor_view::slice(axis, begin, end, step));
  }
  tensor_view reshape(const sizes& shape) const { return tensor_view(const_tensor_view::reshape(shape)); }

 private:
  explicit tensor_view(const const_tensor_view& v) : const_tensor_view(v) {}
};

}  // namespace repdl
