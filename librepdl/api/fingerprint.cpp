#include <bit>
#include <vector>

#include "librepdl/api/host_bytes.hpp"
#include "librepdl/api/sha256.hpp"
#include "librepdl/dynamic.hpp"
#include "librepdl/version.hpp"

namespace repdl {
namespace {

void put_integer(sha256& h, std::uint64_t v, int bytes) {
  std::uint8_t b[8];
  for (int i = 0; i < bytes; ++i) b[i] = static_cast<std::uint8_t>(v >> 8 * i);
  h.update(b, static_cast<std::size_t>(bytes));
}

// The elements of a view on the host, row-major.
void put_elements(sha256& h, const std::byte* data, const const_tensor_view& v) {
  static_assert(std::endian::native == std::endian::little, "fingerprints are of little-endian bytes");
  const std::size_t size = size_of(v.type());
  if (v.is_contiguous()) {
    h.update(data, static_cast<std::size_t>(v.count()) * size);
    return;
  }
  std::vector<std::byte> buffer;
  buffer.reserve(std::size_t{1} << 16);
  sizes index = v.shape();
  for (std::int64_t& i : index) i = 0;
  for (std::int64_t n = 0; n < v.count(); ++n) {
    std::int64_t offset = 0;
    for (int a = 0; a < v.rank(); ++a) offset += index[a] * v.strides()[a];
    const std::byte* e = data + offset * static_cast<std::int64_t>(size);
    buffer.insert(buffer.end(), e, e + size);
    if (buffer.size() + size > buffer.capacity() || n + 1 == v.count()) {
      h.update(buffer.data(), buffer.size());
      buffer.clear();
    }
    for (int a = v.rank() - 1; a >= 0 && ++index[a] == v.shape()[a]; --a) index[a] = 0;
  }
}

}  // namespace

std::string fingerprint(context& ctx, std::span<const const_tensor_view> tensors) {
  sha256 h;
  h.update("librepdl fingerprint 1\n");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const const_tensor_view& v = tensors[i];
    const std::string name = "tensors[" + std::to_string(i) + "]";
    if (!v) fail(error_site::absent_operand, "fingerprint", name, "a tensor", "an absent operand");
    const bool on_host = v.where().kind == device_kind::cpu;
    if (!on_host && !(v.where() == ctx.where())) {
      fail(error_site::device_mismatch, "fingerprint", name, "a tensor on cpu or " + name_of(ctx.where()),
           "one on " + name_of(v.where()));
    }
    put_integer(h, static_cast<std::uint64_t>(v.type()), 1);
    put_integer(h, static_cast<std::uint64_t>(v.rank()), 1);
    for (const std::int64_t n : v.shape()) put_integer(h, static_cast<std::uint64_t>(n), 8);
    if (v.count() == 0) continue;
    const api::host_bytes host(v, [&](void* to, const void* from, std::size_t bytes) { ctx.copy(to, from, bytes); });
    put_elements(h, host.origin(), v);
  }
  return sha256::hex(h.finish());
}

std::string_view version() noexcept { return REPDL_VERSION; }
int bits_version() noexcept { return REPDL_BITS_VERSION; }

}  // namespace repdl
