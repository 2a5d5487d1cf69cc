// Attribute lists <-> the attrs structures of the registry.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "librepdl/ops/attribute_fields.hpp"
#include "librepdl/ops/structured.hpp"

namespace repdl::api {

// One conversion per C++ type of an attribute: its kind, its default as text, and reading a value of that kind.
template <class T>
struct attribute_type;

using integer_list = std::vector<std::int64_t>;

template <>
struct attribute_type<bool> {
  static constexpr attribute_kind kind = attribute_kind::boolean;
  static std::string text(bool v) { return v ? "true" : "false"; }
  static bool read(std::string_view, std::string_view, bool v) { return v; }
};
template <>
struct attribute_type<std::int64_t> {
  static constexpr attribute_kind kind = attribute_kind::integer;
  static std::string text(std::int64_t v) { return std::to_string(v); }
  static std::int64_t read(std::string_view, std::string_view, std::int64_t v) { return v; }
};
template <>
struct attribute_type<std::uint64_t> {  // 64 bits, given as a signed number
  static constexpr attribute_kind kind = attribute_kind::integer;
  static std::string text(std::uint64_t v) { return std::to_string(v); }
  static std::uint64_t read(std::string_view, std::string_view, std::int64_t v) {
    return static_cast<std::uint64_t>(v);
  }
};
template <>
struct attribute_type<double> {
  static constexpr attribute_kind kind = attribute_kind::real;
  static std::string text(double v);
  static double read(std::string_view, std::string_view, double v) { return v; }
};
template <>
struct attribute_type<repdl::accumulate> {
  static constexpr attribute_kind kind = attribute_kind::text;
  static std::string text(repdl::accumulate v) { return v == accumulate::exact ? "exact" : "fma_chain"; }
  static repdl::accumulate read(std::string_view op, std::string_view name, const std::string& v);
};
template <>
struct attribute_type<dtype> {
  static constexpr attribute_kind kind = attribute_kind::text;
  static std::string text(dtype v) { return std::string(name_of(v)); }
  static dtype read(std::string_view op, std::string_view name, const std::string& v);
};
template <>
struct attribute_type<sizes> {
  static constexpr attribute_kind kind = attribute_kind::integers;
  static std::string text(const sizes& v) { return to_string(v); }
  static sizes read(std::string_view op, std::string_view name, const integer_list& v);
};
template <>
struct attribute_type<axis_list> {
  static constexpr attribute_kind kind = attribute_kind::integers;
  static std::string text(const axis_list& v) { return v.list() ? to_string(*v.list()) : ""; }
  static axis_list read(std::string_view op, std::string_view name, const integer_list& v) {
    return attribute_type<sizes>::read(op, name, v);
  }
};
template <>
struct attribute_type<repdl::reduction> {
  static constexpr attribute_kind kind = attribute_kind::text;
  static std::string text(repdl::reduction v);
  static repdl::reduction read(std::string_view op, std::string_view name, const std::string& v);
};
template <>
struct attribute_type<batch_reduction> {
  static constexpr attribute_kind kind = attribute_kind::text;
  static std::string text(batch_reduction v);
  static batch_reduction read(std::string_view op, std::string_view name, const std::string& v);
};
template <>
struct attribute_type<ops::pair> {
  static constexpr attribute_kind kind = attribute_kind::integers;
  static std::string text(const ops::pair& v) { return to_string(sizes{v.h, v.w}); }
  static ops::pair read(std::string_view op, std::string_view name, const integer_list& v);
};
template <>
struct attribute_type<per_axis> {
  static constexpr attribute_kind kind = attribute_kind::integers;
  static std::string text(const per_axis& v) { return v.list().empty() ? "" : to_string(v.list()); }
  static per_axis read(std::string_view op, std::string_view name, const integer_list& v) {
    return attribute_type<sizes>::read(op, name, v);
  }
};
template <class T>
struct attribute_type<std::optional<T>> {
  static constexpr attribute_kind kind = attribute_type<T>::kind;
  static std::string text(const std::optional<T>& v) { return v ? attribute_type<T>::text(*v) : ""; }
  static std::optional<T> read(std::string_view op, std::string_view name, const auto& v) {
    return attribute_type<T>::read(op, name, v);
  }
};

attribute_value parse_value(std::string_view op, const attribute_info& a, std::string_view text);
[[noreturn]] void wrong_kind(std::string_view op, const attribute& a, attribute_kind expected);
[[noreturn]] void no_such_attribute(std::string_view op, std::string_view name, std::string_view known);
[[noreturn]] void required(std::string_view op, std::string_view name);

std::string joined(std::initializer_list<std::string_view> names);  // or "none"
template <class Attrs>
std::string attribute_names() {
  return std::apply([](const auto&... f) { return joined({f.name...}); }, ops::fields_of<Attrs>);
}

// Each attribute once.
void check_duplicates(std::string_view op, const attributes& list);
bool is_given(const attributes& list, std::string_view name) noexcept;
template <class T>
T read_value(std::string_view op, const attribute& a) {
  using type = attribute_type<T>;
  if (a.value.index() != static_cast<std::size_t>(type::kind)) wrong_kind(op, a, type::kind);
  return type::read(op, a.name, std::get<static_cast<std::size_t>(type::kind)>(a.value));
}

template <class Attrs>
Attrs read_attributes(std::string_view op, const attributes& list) {
  Attrs attrs;
  check_duplicates(op, list);
  for (const attribute& a : list) {
    bool known = false;
    const auto try_field = [&]<class Owner, class T>(const ops::field<Owner, T>& f) {
      if (f.name != a.name) return;
      known = true;
      attrs.*f.member = read_value<T>(op, a);
    };
    std::apply([&](const auto&... f) { (try_field(f), ...); }, ops::fields_of<Attrs>);
    if (!known) no_such_attribute(op, a.name, attribute_names<Attrs>());
  }
  // What has no value that says "absent".
  const auto check_given = [&]<class Owner, class T>(const ops::field<Owner, T>& f) {
    if constexpr (!requires(T value) { value.has_value(); }) {
      if (f.required && !is_given(list, f.name)) required(op, f.name);
    }
  };
  std::apply([&](const auto&... f) { (check_given(f), ...); }, ops::fields_of<Attrs>);
  return attrs;
}

// The options of an elementwise operation, in the order of its row, and the result's format where it may be said.
class option_values {
 public:
  option_values(const ops::elementwise_row& row, const attributes& list);
  operator std::span<const std::optional<double>>() const { return {values_, static_cast<std::size_t>(count_)}; }
  std::optional<dtype> result() const { return result_; }

 private:
  std::optional<double> values_[ops::option_list::most];
  std::optional<dtype> result_;
  int count_;
};
std::vector<attribute_info> describe_options(const ops::elementwise_row& row);

// What infer needs and call takes from the outputs.
template <class Attrs>
void check_required(std::string_view op, const Attrs& attrs) {
  const auto check = [&]<class Owner, class T>(const ops::field<Owner, T>& f) {
    if constexpr (requires { (attrs.*f.member).has_value(); }) {
      if (f.required && !(attrs.*f.member).has_value()) required(op, f.name);
    }
  };
  std::apply([&](const auto&... f) { (check(f), ...); }, ops::fields_of<Attrs>);
}

template <class Attrs>
std::vector<attribute_info> describe_attributes() {
  std::vector<attribute_info> all;
  const Attrs defaults;
  const auto describe = [&]<class Owner, class T>(const ops::field<Owner, T>& f) {
    all.push_back({std::string(f.name), attribute_type<T>::kind,
                   f.required ? "" : attribute_type<T>::text(defaults.*f.member), std::string(f.doc), f.required,
                   f.pattern});
  };
  std::apply([&](const auto&... f) { (describe(f), ...); }, ops::fields_of<Attrs>);
  return all;
}

}  // namespace repdl::api
