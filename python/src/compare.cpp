#include "compare.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "array.hpp"
#include "contexts.hpp"
#include "librepdl/api/host_bytes.hpp"
#include "librepdl/ops/formats.hpp"

namespace repdl::python {
namespace {

api::host_bytes on_host(const array& a) {
  return {a.view(), [&](void* to, const void* from, std::size_t bytes) {
            const auto& c = current_context(a.where());
            const turn t(*c, false);
            c->on(a.stream()).copy(to, from, bytes);
          }};
}

std::uint64_t bits_at(const std::byte* p, std::size_t size) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, p, size);
  return bits;
}

// The fields of a floating-point format: magnitudes above `last` are NaN.
struct layout {
  std::size_t bits;
  std::uint64_t last;
};
layout layout_of(dtype t) {
  const ops::type_traits& traits = ops::traits_of(t);
  if (!traits.is_floating) return {0, 0};
  return {8 * size_of(t), traits.floating.largest + (traits.floating.has_infinities ? 1 : 0)};
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
  const api::host_bytes ha = on_host(a), hb = on_host(b);
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
      const std::uint64_t x = bits_at(ha.origin() + offset_of(va, index), size),
                          y = bits_at(hb.origin() + offset_of(vb, index), size);
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
          const bool nx = mx > format.last, ny = my > format.last;
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
