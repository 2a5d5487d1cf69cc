#include "tools/cli/host_tensor.hpp"

#include <bit>
#include <cstdio>
#include <new>

#include "librepdl/owning_tensor.hpp"

namespace repdl::tools {
namespace {

/// Exact: f16 and bf16 patterns have binary64 values.
double value_of(dtype t, std::uint64_t bits) {
  switch (t) {
    case dtype::f16: {
      const auto magnitude = static_cast<double>(bits & 0x3ff);
      const int e = static_cast<int>(bits >> 10 & 0x1f);
      if (e == 31) return std::bit_cast<double>((bits & 0x8000) << 48 | 0x7ff0000000000000u | (bits & 0x3ff) << 42);
      const double two_e = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + (e == 0 ? 1 : e) - 25) << 52);
      const double v = (e == 0 ? magnitude : magnitude + 1024) * two_e;
      return (bits & 0x8000) != 0 ? -v : v;
    }
    case dtype::bf16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16));
    case dtype::f32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    default:
      return std::bit_cast<double>(bits);
  }
}

std::size_t byte_size(const const_tensor_view& v) { return static_cast<std::size_t>(v.count()) * size_of(v.type()); }

/// Everything a view reaches, on the device, with the view's shape and strides.
struct device_copy {
  tensor memory;
  const_tensor_view view;

  device_copy(context& ctx, const const_tensor_view& v) : memory(ctx, v.type(), {extent(v).second}) {
    const std::int64_t lo = extent(v).first * static_cast<std::int64_t>(size_of(v.type()));
    auto* const data = static_cast<std::byte*>(memory.view().data());
    ctx.copy(data, static_cast<const std::byte*>(v.data()) + lo, byte_size(memory));
    view = const_tensor_view(data - lo, v.type(), v.shape(), v.strides(), ctx.where());
  }

  /// The lowest offset and the number of elements from there to the highest.
  static std::pair<std::int64_t, std::size_t> extent(const const_tensor_view& v) {
    if (v.count() == 0) return {0, 0};
    std::int64_t lo = 0, hi = 0;
    for (int a = 0; a < v.rank(); ++a) (v.strides()[a] < 0 ? lo : hi) += v.strides()[a] * (v.shape()[a] - 1);
    return {lo, static_cast<std::size_t>(hi - lo + 1)};
  }
};

}  // namespace

std::vector<std::byte> host_tensor::unwritten_bytes(const tensor_spec& s) {
  const std::int64_t bytes = byte_count(s);
  try {
    return std::vector<std::byte>(static_cast<std::size_t>(bytes), std::byte{unwritten});
  } catch (const std::bad_alloc&) {
    fail(error_site::out_of_memory, "tensor", "memory",
         std::to_string(bytes) + " bytes for shape " + to_string(s.shape) + " of " + std::string(name_of(s.type)),
         "none");
  }
}

std::string hex_bits(dtype t, std::uint64_t bits) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%0*llx", static_cast<int>(2 * size_of(t)), static_cast<unsigned long long>(bits));
  return text;
}

std::string describe_bits(dtype t, std::uint64_t bits) {
  char text[64];
  if (t == dtype::i64 || t == dtype::boolean || t == dtype::i32) {
    std::snprintf(text, sizeof text, "%lld",
                  t == dtype::i32 ? static_cast<std::int32_t>(bits) : static_cast<long long>(bits));
  } else {
    std::snprintf(text, sizeof text, "%s (%.17g)", hex_bits(t, bits).c_str(), value_of(t, bits));
  }
  return text;
}

void call_on_host(context& ctx, const op_info& op, std::span<const const_tensor_view> in,
                  std::span<const tensor_view> out, const attributes& attrs) {
  if (ctx.where().kind == device_kind::cpu) return call(ctx, op, in, out, attrs);
  std::vector<device_copy> copies;
  std::vector<const_tensor_view> device_in;
  for (const const_tensor_view& v : in) device_in.push_back(v ? copies.emplace_back(ctx, v).view : v);
  std::vector<tensor> results;
  std::vector<tensor_view> device_out;
  for (const tensor_view& v : out) {
    device_out.push_back(v ? results.emplace_back(ctx, v.type(), v.shape()).view() : v);
    ctx.copy(device_out.back().data(), v.data(), byte_size(v));
  }
  call(ctx, op, device_in, device_out, attrs);
  for (std::size_t i = 0; i < out.size(); ++i) ctx.copy(out[i].data(), device_out[i].data(), byte_size(out[i]));
}

}  // namespace repdl::tools
