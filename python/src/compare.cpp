#include "compare.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "array.hpp"
#include "contexts.hpp"

namespace repdl::python {
namespace {

// All bytes from the first to the last element on the host, and where the element of index 0 is among them.
struct host_bytes {
  std::vector<std::byte> copied;
  const std::byte* origin;
};

host_bytes on_host(const array& a) {
  const const_tensor_view& v = a.view();
  const auto* data = static_cast<const std::byte*>(v.data());
  if (a.where().kind == device_kind::cpu || v.count() == 0) return {{}, data};
  std::int64_t low = 0, high = 0;
  for (int i = 0; i < v.rank(); ++i) {
    const std::int64_t reach = v.strides()[i] * (v.shape()[i] - 1);
    (reach < 0 ? low : high) += reach;
  }
  const auto size = static_cast<std::int64_t>(size_of(v.type()));
  host_bytes h{std::vector<std::byte>(static_cast<std::size_t>((high - low + 1) * size)), nullptr};
  const auto& c = current_context(a.where());
  const turn t(*c, false);
  c->on(a.stream()).copy(h.copied.data(), data + low * size, h.copied.size());
  h.origin = h.copied.data() - low * size;
  return h;
}

std::uint64_t bits_at(const std::byte* p, std::size_t size) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, p, size);
  return bits;
}

// The fields of a floating-point format.
struct layout {
  int bits;
  std::uint64_t infinity;
};
layout layout_of(dtype t) {
  switch (t) {
    case dtype::f16:
      return {16, 0x7c00};
    case dtype::bf16:
      return {16, 0x7f80};
    case dtype::f32:
      return {32, 0x7f800000};
    case dtype::f64:
      return {64, 0x7ff0000000000000};
    default:
      return {0, 0};
  }
}

std::int64_t offset_of(const const_tensor_view& v, const sizes& index) {
  std::int64_t o = 0;
  for (int i = 0; i < v.rank(); ++i) o += index[i] * v.strides()[i];
  return o * static_cast<std::int64_t>(size_of(v.type()));
}

}  // namespace

nb::tuple compare(nb::handle first, nb::handle second) {
  const array a("compare", "a", first), b("compare", "b", second);
  const const_tensor_view va = a.view(), vb = b.view();
  if (va.type() != vb.type()) {
    throw nb::type_error(("compare: b: expected " + std::string(name_of(va.type())) + " as a has, got " +
                          std::string(name_of(vb.type())))
                             .c_str());
  }
  if (!(va.shape() == vb.shape())) {
    throw nb::value_error(
        ("compare: b: expected shape " + to_string(va.shape()) + " as a has, got " + to_string(vb.shape())).c_str());
  }
  const host_bytes ha = on_host(a), hb = on_host(b);
  const std::size_t size = size_of(va.type());
  const layout format = layout_of(va.type());
  std::int64_t different = 0;
  std::uint64_t first_a = 0, first_b = 0, distance = 0;
  bool nan_against_number = false;
  sizes index = va.shape(), first_index;
  for (int i = 0; i < index.size(); ++i) index[i] = 0;
  {
    const nb::gil_scoped_release others_go_on;
    for (std::int64_t n = 0; n < va.count(); ++n) {
      const std::uint64_t x = bits_at(ha.origin + offset_of(va, index), size),
                          y = bits_at(hb.origin + offset_of(vb, index), size);
      if (x != y) {
        if (different++ == 0) {
          first_a = x;
          first_b = y;
          first_index = index;
        }
        if (format.bits != 0) {
          // Magnitudes are ordered as their bits; -0 and +0 are one place.
          const std::uint64_t sign = std::uint64_t{1} << (format.bits - 1);
          const std::uint64_t mx = x & (sign - 1), my = y & (sign - 1);
          const bool nx = mx > format.infinity, ny = my > format.infinity;
          if (nx != ny) nan_against_number = true;
          if (!nx && !ny)
            distance = std::max(distance, (x & sign) == (y & sign) ? std::max(mx, my) - std::min(mx, my) : mx + my);
        }
      }
      for (int i = va.rank() - 1; i >= 0 && ++index[i] == va.shape()[i]; --i) index[i] = 0;
    }
  }
  nb::object where = nb::none();
  if (different != 0) {
    nb::list list;
    for (const std::int64_t i : first_index) list.append(i);
    where = nb::tuple(list);
  }
  return nb::make_tuple(
      va.count(), different, where, first_a, first_b,
      nan_against_number || format.bits == 0 ? nb::object(nb::none()) : nb::object(nb::int_(distance)));
}

}  // namespace repdl::python
