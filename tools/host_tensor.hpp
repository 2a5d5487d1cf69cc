// A tensor that owns its memory on the host: what files hold, and what comparisons look at.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "librepdl/dynamic.hpp"

namespace repdl::tools {

struct host_tensor {
  dtype type = dtype::f32;
  sizes shape;
  sizes strides;                ///< in elements
  std::vector<std::byte> data;  ///< little-endian

  host_tensor() = default;
  /// Row-major, uninitialised results being told apart by a pattern that no operation writes into every element.
  explicit host_tensor(const tensor_spec& s)
      : type(s.type),
        shape(s.shape),
        strides((element_count(s.shape), row_major(s.shape))),
        data(static_cast<std::size_t>(element_count(s.shape)) * size_of(s.type), std::byte{0xa5}) {}

  const_tensor_view view() const { return {data.data(), type, shape, strides}; }
  tensor_view writable() { return {data.data(), type, shape, strides}; }
  std::int64_t count() const { return element_count(shape); }

  /// The bit pattern of element i in memory order (row-major unless read from a Fortran-ordered file).
  std::uint64_t bits(std::int64_t i) const {
    const std::size_t size = size_of(type);
    std::uint64_t b = 0;
    std::memcpy(&b, data.data() + static_cast<std::size_t>(i) * size, size);
    return b;
  }
};

/// "0x3f800000": a bit pattern with the digits of its format.
std::string hex_bits(dtype t, std::uint64_t bits);
/// "0x3f800000 (1)": the pattern and, to read, its value.
std::string describe_bits(dtype t, std::uint64_t bits);

/// Runs an operation on host tensors: copies to and from the context's device where that is not the CPU.
std::vector<host_tensor> call_on_host(context& ctx, const op_info& op, std::span<const const_tensor_view> in,
                                      const attributes& attrs);

}  // namespace repdl::tools
