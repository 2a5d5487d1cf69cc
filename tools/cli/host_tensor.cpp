#include "tools/cli/host_tensor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <new>

#include "librepdl/ops/formats.hpp"
#include "librepdl/owning_tensor.hpp"

namespace repdl::tools {
namespace {

/// The value of a pattern of a floating-point format, exactly.
double value_of(dtype t, std::uint64_t bits) {
  if (t == dtype::f64) return std::bit_cast<double>(bits);
  const ops::float_traits& f = ops::traits_of(t).floating;
  const std::uint64_t sign = std::uint64_t{1} << (8 * size_of(t) - 1), magnitude = bits & (sign - 1);
  double v = std::numeric_limits<double>::quiet_NaN();
  if (magnitude <= f.largest) {
    const std::uint64_t hidden = std::uint64_t{1} << (f.precision - 1), fraction = magnitude & (hidden - 1);
    const auto biased = static_cast<int>(magnitude >> (f.precision - 1));
    v = std::ldexp(static_cast<double>(biased == 0 ? fraction : fraction | hidden),
                   f.emin - (f.precision - 1) + std::max(biased - 1, 0));
  } else if (f.has_infinities && magnitude == f.largest + 1) {
    v = std::numeric_limits<double>::infinity();
  }
  return (bits & sign) != 0 ? -v : v;
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
  if (!ops::is_floating(t)) {
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
