// The rules by which elementwise operations get their digest cases.
#include <algorithm>
#include <limits>
#include <optional>

#include "reference/attributes.hpp"
#include "reference/digests.hpp"
#include "reference/exhaustive.hpp"

namespace repdl::reference {
namespace {

/// Values of a coefficient: about 1 and next to it, tiny, of both signs; one of them a small integer.
constexpr double reals[] = {0.1, -0.75, 1 + 0x1p-52, 0x1.8p-160, 3};
/// Of options that are compared, or enter rounded, ascending: in some format each is a tie, overflows or underflows; NaN.
constexpr double values[] = {-1e300,
                             -0.75,
                             -0.0,
                             0x1.8p-149,
                             1 + 0x1p-11,
                             1 + 0x1p-8,
                             65520,
                             std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};

/// Of powers and bases.
constexpr double powers[] = {-1e300,
                             -1,
                             -0.75,
                             0.5,
                             3,
                             1 + 0x1p-52,
                             0x1p-1074,
                             -0x1p53,
                             std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};

/// The values that the attributes of an operation take by turns.
std::span<const double> values_of(const op_info& op) {
  const ops::elementwise_row* row = elementwise_named(op.name);
  if (row == nullptr) return reals;
  const auto* const end = row->options.all + row->options.count();
  if (row->options.all[0].kind == ops::option_kind::real) return powers;
  const bool all = std::all_of(row->options.all, end,
                               [](const ops::real_option& o) { return o.kind <= ops::option_kind::positive; });
  return all ? std::span<const double>(reals) : values;
}

/// Attributes that are not all at their defaults, where the operation accepts them. Texts and integers keep theirs:
/// which others make sense only a hand can write.
std::vector<attributes> other_attributes(const op_info& op, const std::vector<dtype>& in, call_rule rule) {
  const auto of_kind = [&](attribute_kind k) {
    return std::any_of(op.attrs.begin(), op.attrs.end(), [&](const attribute_info& a) { return a.kind == k; });
  };
  const std::span<const double> real = values_of(op);
  const std::size_t turns = of_kind(attribute_kind::real) ? real.size() : of_kind(attribute_kind::boolean) ? 2 : 0;
  std::vector<attributes> all;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    attributes attrs;
    for (std::size_t i = 0; i < op.attrs.size(); ++i) {
      const attribute_info& a = op.attrs[i];
      if (a.kind == attribute_kind::real) attrs.push_back({a.name, real[(turn + i) % real.size()]});
      if (a.kind == attribute_kind::boolean) attrs.push_back({a.name, (turn + i) % 2 == 0});
    }
    try {
      rule(op, in, std::vector<shape_list>(in.size(), {1}), attrs);
      all.push_back(std::move(attrs));
    } catch (const error& e) {
      if (e.site() != error_site::attribute_value) throw;
    }
  }
  return all;
}

}  // namespace

std::vector<digest_case> proposed_cases(const op_info& op, dtype format, call_rule rule) {
  std::vector<dtype> in;
  for (const operand_info& o : op.in) {
    const bool has = std::find(o.types.begin(), o.types.end(), format) != o.types.end();
    in.push_back(has ? format : o.types.at(0));
  }
  std::vector<digest_case> all;
  const auto add = [&](sample_class kind, const std::vector<shape_list>& shapes, const attributes& attrs) {
    all.push_back({op.name, op.bits, rule(op, in, shapes, attrs), kind, shapes, attrs, 0});
  };
  const bool narrow = in.size() == 1 && size_of(format) == 2, logical = format == dtype::boolean;
  const bool numbers = std::any_of(op.attrs.begin(), op.attrs.end(),
                                   [](const attribute_info& a) { return a.kind != attribute_kind::text; });
  const ops::elementwise_row* const row = elementwise_named(op.name);
  const bool one = in.size() == 1 && !numbers, tabulated = row == nullptr || has_all_results(*row);
  const bool exhaustive = one && format == dtype::f32 && tabulated;
  // Functions that are no formulas of the four operations take the oracle 5 to 50 microseconds an element in binary64, and those
  // without a table of all results in binary32.
  const bool slow = (format == dtype::f64 || (one && !tabulated)) && row != nullptr &&
                    ops::proof_in(row->proof, format) == ops::proof_kind::multi_limb;
  const std::vector<shape_list> same(in.size(), {slow ? 16411 : 65537});

  if (logical) {
    add(sample_class::uniform_patterns, same, {});
  } else if (narrow) {
    add(sample_class::all_patterns, {{65536}}, {});
  } else if (exhaustive) {
    add(sample_class::uniform_patterns, {{16411}}, {});
  } else {
    for (const sample_class c : element_classes) add(c, same, {});
  }
  if (in.size() > 1) {
    std::vector<shape_list> broadcast{{5, 1, 33}, {17, 1}, {1}};
    broadcast.resize(in.size());
    add(sample_class::uniform_patterns, broadcast, {});
  }
  const std::vector<attributes> others = other_attributes(op, in, rule);
  for (std::size_t i = 0; narrow && i < others.size(); ++i) add(sample_class::all_patterns, {{65536}}, others[i]);
  for (std::size_t i = 0; !narrow && !others.empty() && i < element_classes.size(); ++i)
    add(element_classes[i], same, others[i % others.size()]);
  // Results in other formats: all inputs, or those with the results that take most care.
  const bool any_float = std::any_of(op.attrs.begin(), op.attrs.end(), [](const auto& a) { return a.name == "dtype"; });
  std::size_t turn = 0;
  for (const dtype to : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
    if (!any_float || to == format) continue;
    const attribute other{"dtype", std::string(format_name(to))};
    if (narrow) {
      add(sample_class::all_patterns, {{65536}}, {other});
      continue;
    }
    using enum sample_class;
    for (const sample_class c : {uniform_patterns, cancelling, ties, near_ties, subnormal, overflow_border}) {
      attributes attrs = others.empty() || turn % 2 == 0 ? attributes{} : others[turn / 2 % others.size()];
      attrs.push_back(other);
      add(c, std::vector<shape_list>(in.size(), {16411}), attrs);
      ++turn;
    }
  }
  return all;
}

}  // namespace repdl::reference
