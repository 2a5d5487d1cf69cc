// A contiguous row-major tensor that owns its little-endian bytes: what the oracle reads and writes.
#pragma once

#include <cstdint>
#include <vector>

#include "librepdl/tensor.hpp"

namespace repdl::reference {

using shape_list = std::vector<std::int64_t>;

/// A position, not negative, as an index of a vector.
inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// The product of the sizes.
inline std::int64_t count_of(const shape_list& shape) {
  std::int64_t n = 1;
  for (const std::int64_t s : shape) n *= s;
  return n;
}

/// The shape of an operand that is left out (sgd's velocity at the first step).
inline const shape_list absent_shape{-1};

struct array {
  dtype type = dtype::f32;
  shape_list shape;
  std::vector<unsigned char> bytes;

  array() = default;
  array(dtype t, shape_list s)
      : type(t),
        shape(std::move(s)),
        bytes(absent() ? std::size_t{0} : static_cast<std::size_t>(count_of(shape)) * size_of(t)) {}
  /// From patterns of at most 32 bits or more.
  template <class U>
  array(dtype t, shape_list s, const std::vector<U>& patterns) : array(t, std::move(s)) {
    for (std::size_t i = 0; i < patterns.size(); ++i) set(i, static_cast<std::uint64_t>(patterns[i]));
  }
  /// An operand that is left out.
  static array none() { return {dtype::f32, absent_shape}; }
  bool absent() const { return shape == absent_shape; }

  std::int64_t count() const { return absent() ? 0 : count_of(shape); }
  std::uint64_t get(std::size_t i) const {
    std::uint64_t v = 0;
    const std::size_t n = size_of(type);
    for (std::size_t b = 0; b < n; ++b) v |= std::uint64_t{bytes[i * n + b]} << (8 * b);
    return v;
  }
  void set(std::size_t i, std::uint64_t bits) {
    const std::size_t n = size_of(type);
    for (std::size_t b = 0; b < n; ++b) bytes[i * n + b] = static_cast<unsigned char>(bits >> (8 * b));
  }
  /// All patterns, of a format of at most 32 bits.
  std::vector<std::uint32_t> patterns() const {
    std::vector<std::uint32_t> v(static_cast<std::size_t>(count()));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<std::uint32_t>(get(i));
    return v;
  }
  friend bool operator==(const array&, const array&) = default;
};

}  // namespace repdl::reference
