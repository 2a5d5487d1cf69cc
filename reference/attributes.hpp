// Reading attributes and finding rows.
#pragma once

#include <string_view>

#include "librepdl/dynamic.hpp"
#include "librepdl/ops/registry.hpp"

namespace repdl::reference {

/// The attribute's value, or a default.
template <class T>
T attribute_or(const attributes& attrs, std::string_view name, T otherwise) {
  for (const attribute& a : attrs)
    if (a.name == name) return std::get<T>(a.value);
  return otherwise;
}

/// The row of an elementwise operation, or null.
inline const ops::elementwise_row* elementwise_named(std::string_view name) {
  for (const ops::elementwise_row& r : ops::elementwise_rows)
    if (r.name == name) return &r;
  return nullptr;
}

}  // namespace repdl::reference
