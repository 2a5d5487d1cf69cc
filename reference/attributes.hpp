// Reading attributes and finding rows.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "librepdl/ops/registry.hpp"

namespace repdl::reference {

/// The attribute's value, or nothing.
template <class T>
std::optional<T> attribute_of(const attributes& attrs, std::string_view name) {
  for (const attribute& a : attrs)
    if (a.name == name) return std::get<T>(a.value);
  return std::nullopt;
}

/// The attribute's value, or a default.
template <class T>
T attribute_or(const attributes& attrs, std::string_view name, T otherwise) {
  return attribute_of<T>(attrs, name).value_or(std::move(otherwise));
}

/// A number for each spatial axis: depth, height, width, or height and width.
using extent = std::vector<std::int64_t>;

/// That of an attribute, which may be one number for all `axes`.
inline std::optional<extent> extent_of(const attributes& attrs, std::string_view name, std::size_t axes) {
  auto v = attribute_of<std::vector<std::int64_t>>(attrs, name);
  if (!v) return std::nullopt;
  if (v->size() == 1) v->resize(axes, v->front());
  if (v->size() != axes) throw std::invalid_argument("reference: wrong number of sizes for " + std::string(name));
  return v;
}
inline extent required_extent(const attributes& attrs, std::string_view name, std::size_t axes) {
  if (const auto v = extent_of(attrs, name, axes)) return *v;
  throw std::invalid_argument("reference: no " + std::string(name));
}

/// The row of a structured operation; throws std::invalid_argument.
inline const ops::structured_row& structured_named(std::string_view name) {
  for (const ops::structured_row& r : ops::structured_rows)
    if (r.name == name) return r;
  throw std::invalid_argument("reference: no structured operation is named " + std::string(name));
}

/// The row of an elementwise operation, or null.
inline const ops::elementwise_row* elementwise_named(std::string_view name) {
  for (const ops::elementwise_row& r : ops::elementwise_rows())
    if (r.name == name) return &r;
  return nullptr;
}

}  // namespace repdl::reference
