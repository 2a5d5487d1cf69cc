#include "librepdl/api/attributes.hpp"

#include <algorithm>
#include <charconv>

#include "librepdl/plan/planner.hpp"

namespace repdl::api {
namespace {

constexpr std::string_view kind_names[] = {"a boolean", "an integer", "a number", "a text", "a list of integers"};

[[noreturn]] void syntax(std::string_view op, std::string_view name, attribute_kind kind, std::string_view text) {
  fail(error_site::attribute_syntax, op, name, kind_names[static_cast<int>(kind)], "'" + std::string(text) + "'");
}

[[noreturn]] void wrong_count(std::string_view op, std::string_view name, const std::string& expected,
                              const integer_list& list) {
  fail(error_site::attribute_value, op, name, expected, std::to_string(list.size()));
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_list(std::string_view text, std::vector<std::int64_t>& list) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    std::int64_t value = 0;
    if (!parse_number(item, value)) return false;
    list.push_back(value);
    if (comma == text.size()) return true;
    text.remove_prefix(comma + 1);
    if (text.empty()) return false;
  }
  return true;
}

}  // namespace

std::string attribute_type<double>::text(double v) { return plan::to_text(v); }

repdl::accumulate attribute_type<repdl::accumulate>::read(std::string_view op, std::string_view name,
                                                          const std::string& text) {
  if (text == "exact") return accumulate::exact;
  if (text == "fma_chain") return accumulate::fma_chain;
  fail(error_site::attribute_value, op, name, "exact or fma_chain", "'" + text + "'");
}

dtype attribute_type<dtype>::read(std::string_view op, std::string_view name, const std::string& text) {
  for (int i = 0; i < ops::dtype_count; ++i) {
    if (name_of(static_cast<dtype>(i)) == text) return static_cast<dtype>(i);
  }
  ops::dtype_set types = 0;
  for (const dtype t : find(op)->out[0].types) types |= ops::one(t);
  fail(error_site::attribute_value, op, name, plan::describe(types), "'" + text + "'");
}

sizes attribute_type<sizes>::read(std::string_view op, std::string_view name, const integer_list& list) {
  if (list.size() > static_cast<std::size_t>(max_rank)) {
    wrong_count(op, name, "at most " + std::to_string(max_rank) + " integers", list);
  }
  return sizes(std::span<const std::int64_t>(list));
}

std::string attribute_type<repdl::reduction>::text(repdl::reduction v) {
  return v == reduction::mean ? "mean" : v == reduction::sum ? "sum" : "none";
}
repdl::reduction attribute_type<repdl::reduction>::read(std::string_view op, std::string_view name,
                                                        const std::string& given) {
  for (const reduction r : {reduction::mean, reduction::sum, reduction::none}) {
    if (text(r) == given) return r;
  }
  fail(error_site::attribute_value, op, name, "mean, sum or none", "'" + given + "'");
}

std::string attribute_type<batch_reduction>::text(batch_reduction v) {
  return v == batch_reduction::batchmean ? "batchmean"
                                         : attribute_type<reduction>::text(static_cast<reduction>(static_cast<int>(v)));
}
batch_reduction attribute_type<batch_reduction>::read(std::string_view op, std::string_view name,
                                                      const std::string& given) {
  for (const batch_reduction r :
       {batch_reduction::mean, batch_reduction::sum, batch_reduction::none, batch_reduction::batchmean}) {
    if (text(r) == given) return r;
  }
  fail(error_site::attribute_value, op, name, "mean, sum, none or batchmean", "'" + given + "'");
}

ops::pair attribute_type<ops::pair>::read(std::string_view op, std::string_view name, const integer_list& list) {
  if (list.size() == 1) return {list[0], list[0]};
  if (list.size() == 2) return {list[0], list[1]};
  wrong_count(op, name, "1 or 2 integers", list);
}

void wrong_kind(std::string_view op, const attribute& a, attribute_kind expected) {
  fail(error_site::attribute_kind, op, a.name, kind_names[static_cast<int>(expected)], kind_names[a.value.index()]);
}
void no_such_attribute(std::string_view op, std::string_view name, std::string_view known) {
  fail(error_site::unknown_attribute, op, name, "an attribute of " + std::string(op) + " (" + std::string(known) + ")",
       "'" + std::string(name) + "'");
}
std::string joined(std::initializer_list<std::string_view> names) {
  std::string all;
  for (const std::string_view name : names) all += (all.empty() ? "" : ", ") + std::string(name);
  return all.empty() ? "none" : all;
}
void check_duplicates(std::string_view op, const attributes& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (list[j].name == list[i].name) {
        fail(error_site::duplicate_attribute, op, list[i].name, "each attribute once", "it twice");
      }
    }
  }
}
void required(std::string_view op, std::string_view name) {
  fail(error_site::missing_attribute, op, name, "a value", "none");
}

bool is_given(const attributes& list, std::string_view name) noexcept {
  return std::any_of(list.begin(), list.end(), [&](const attribute& a) { return a.name == name; });
}

option_values::option_values(const ops::elementwise_row& row, const attributes& list) : count_(row.options.count()) {
  std::string names;
  for (int i = 0; i < count_; ++i) {
    names += (i == 0 ? "" : ", ") + std::string(row.options.all[i].name);
  }
  if (row.has_any_float()) names += names.empty() ? "dtype" : ", dtype";
  check_duplicates(row.name, list);
  for (const attribute& a : list) {
    if (row.has_any_float() && a.name == "dtype") {
      result_ = read_value<dtype>(row.name, a);
      continue;
    }
    int i = 0;
    while (i < count_ && row.options.all[i].name != a.name) ++i;
    if (i == count_) no_such_attribute(row.name, a.name, names.empty() ? "none" : names);
    values_[i] = read_value<double>(row.name, a);
  }
}

std::vector<attribute_info> describe_options(const ops::elementwise_row& row) {
  std::vector<attribute_info> all;
  for (int i = 0; i < row.options.count(); ++i) {
    const ops::real_option& o = row.options.all[i];
    std::string doc(o.doc);
    if (o.kind != ops::option_kind::coefficient) doc += ": " + plan::range_of(row.options, i);
    if (o.otherwise.of_format) doc += "; absent: the largest finite number of the format, with its sign";
    all.push_back({std::string(o.name), attribute_kind::real,
                   o.otherwise.of_format ? "" : plan::to_text(o.otherwise.number), std::move(doc), false, false});
  }
  if (row.has_any_float()) {
    all.push_back({"dtype", attribute_kind::text, "", "the result's format; absent: the output's, or the operands'",
                   false, false});
  }
  return all;
}

attribute_value parse_value(std::string_view op, const attribute_info& a, std::string_view text) {
  switch (a.kind) {
    case attribute_kind::boolean:
      if (text == "true" || text == "1") return true;
      if (text == "false" || text == "0") return false;
      break;
    case attribute_kind::integer: {
      std::int64_t value = 0;
      std::uint64_t bits = 0;
      if (parse_number(text, value)) return value;
      if (parse_number(text, bits)) {
        if (a.pattern) return static_cast<std::int64_t>(bits);
        fail(error_site::attribute_value, op, a.name, "an integer below 2^63", std::string(text));
      }
      break;
    }
    case attribute_kind::real: {
      double value = 0;
      if (parse_number(text, value)) return value;
      break;
    }
    case attribute_kind::text:
      return std::string(text);
    case attribute_kind::integers: {
      std::vector<std::int64_t> list;
      if (parse_list(text, list)) return list;
      break;
    }
  }
  syntax(op, a.name, a.kind, text);
}

}  // namespace repdl::api
