// A tensor that owns its memory on the host, and calls on such tensors for any device.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "librepdl/dynamic.hpp"

namespace repdl::tools {

struct host_tensor {
  dtype type = dtype::f32;
  sizes shape;
  sizes strides;                ///< in elements
  std::vector<std::byte> data;  ///< little-endian

  host_tensor() = default;
  /// Row-major. The bytes are `unwritten`, so that an element that a kernel forgets is seen.
  explicit host_tensor(const tensor_spec& s)
      : type(s.type), shape(s.shape), strides(row_major(s.shape)), data(unwritten_bytes(s)) {}

  const_tensor_view view() const { return {data.data(), type, shape, strides}; }
  tensor_view writable() { return {data.data(), type, shape, strides}; }

  static constexpr unsigned char unwritten = 0xa5;

 private:
  static std::vector<std::byte> unwritten_bytes(const tensor_spec& s);
};

/// "0x3f800000": a bit pattern with the digits of its format.
std::string hex_bits(dtype t, std::uint64_t bits);
/// "0x3f800000 (1)": the pattern and its value, which for the formats up to 32 bits is exact to read back.
std::string describe_bits(dtype t, std::uint64_t bits);

/// Runs an operation on host memory: copies to and from the context's device where that is not the CPU. Outputs are
/// contiguous.
void call_on_host(context& ctx, const op_info& op, std::span<const const_tensor_view> in,
                  std::span<const tensor_view> out, const attributes& attrs);

}  // namespace repdl::tools
