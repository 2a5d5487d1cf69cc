// Comparing one batch of `repdl sweep` with the oracle.
#if defined(REPDL_WITH_REFERENCE)

#include <algorithm>
#include <bit>
#include <cstring>

#include "reference/elementwise/elementwise.hpp"
#include "reference/evaluate.hpp"
#include "tools/cli/sweep.hpp"
#include "tools/cli/text.hpp"

namespace repdl::tools {
namespace {

using reference::array;
using reference::outcome;
using reference::outcomes;

std::string attribute_list(const attributes& attrs) {
  std::string s;
  for (const attribute& a : attrs) {
    s += joined(" ", a.name, "=");
    if (const auto* b = std::get_if<bool>(&a.value)) s += *b ? "true" : "false";
    if (const auto* i = std::get_if<std::int64_t>(&a.value)) s += std::to_string(*i);
    if (const auto* d = std::get_if<double>(&a.value)) s += describe_bits(dtype::f64, std::bit_cast<std::uint64_t>(*d));
    if (const auto* t = std::get_if<std::string>(&a.value)) s += *t;
    if (const auto* l = std::get_if<std::vector<std::int64_t>>(&a.value))
      s += to_string(sizes(std::span<const std::int64_t>(*l)));
  }
  return s;
}

std::string inputs_text(const op_info& op, const sweep_batch& b, const array& out, std::size_t i) {
  return operand_text(op, b.attrs, b.in, out.shape, static_cast<std::int64_t>(i)) + attribute_list(b.attrs);
}

/// Counts where the exact results lie, and keeps the hardest one.
void count_outcomes(const op_info& op, const sweep_batch& b, const std::vector<array>& expected, const outcomes& where,
                    std::uint64_t index, sweep_tally& t) {
  std::size_t output = 0;  // the outcomes of one output follow those of the one before
  std::size_t first = 0;
  for (std::size_t w = 0; w < where.size(); ++w) {
    while (w - first == static_cast<std::size_t>(expected[output].count())) {
      first = w;
      ++output;
    }
    const std::size_t i = w - first;
    const outcome& o = where[w];
    ++t.located;
    t.exact += o.exact ? 1 : 0;
    t.ties += o.tie ? 1 : 0;
    t.near_ties += o.near_tie ? 1 : 0;
    t.subnormal += o.subnormal ? 1 : 0;
    t.overflow += o.overflow ? 1 : 0;
    if (o.tie || o.exact || o.nan || o.infinite || o.overflow || o.boundary_distance >= t.hardest) continue;
    t.hardest = o.boundary_distance;
    t.hardest_batch = index;
    t.hardest_inputs = inputs_text(op, b, expected[output], i);
    t.hardest_result = describe_bits(expected[output].type, expected[output].get(i));
  }
}

void compare(const op_info& op, const sweep_batch& b, const array& got, const array& expected, std::uint64_t index,
             sweep_tally& t) {
  t.results += got.count();
  if (got.bytes == expected.bytes) return;
  for (std::size_t i = 0; i < static_cast<std::size_t>(got.count()); ++i) {
    if (got.get(i) == expected.get(i)) continue;
    ++t.mismatches;
    if (t.first_batch <= index) continue;
    t.first_batch = index;
    t.first_mismatch =
        joined("element ", std::to_string(i), " of shape ", to_string(sizes_of(got.shape)),
               "\n  inputs:   ", inputs_text(op, b, got, i), "\n  got:      ", describe_bits(got.type, got.get(i)),
               "\n  expected: ", describe_bits(expected.type, expected.get(i)));
  }
}

}  // namespace

void sweep_tally::merge(const sweep_tally& o) {
  inputs += o.inputs;
  results += o.results;
  mismatches += o.mismatches;
  located += o.located;
  in_64_bits += o.in_64_bits;
  exact += o.exact;
  ties += o.ties;
  near_ties += o.near_ties;
  subnormal += o.subnormal;
  overflow += o.overflow;
  if (o.first_batch < first_batch) {
    first_batch = o.first_batch;
    first_mismatch = o.first_mismatch;
  }
  if (o.hardest < hardest || (o.hardest == hardest && o.hardest_batch < hardest_batch)) {
    hardest = o.hardest;
    hardest_batch = o.hardest_batch;
    hardest_inputs = o.hardest_inputs;
    hardest_result = o.hardest_result;
  }
}

void check_batch(context& ctx, const op_info& op, const sweep_batch& batch, bool compare_only, std::uint64_t index,
                 sweep_tally& t) {
  const std::vector<array> got = call_on_arrays(ctx, op, batch.in, batch.attrs);
  outcomes where;
  const std::vector<array> expected =
      compare_only ? reference::evaluate_all(op.name, batch.in, batch.attrs, nullptr, &t.in_64_bits)
                   : reference::evaluate_all(op.name, batch.in, batch.attrs, &where);
  for (std::size_t o = 0; o < got.size(); ++o) compare(op, batch, got[o], expected[o], index, t);
  if (!compare_only) count_outcomes(op, batch, expected, where, index, t);
  std::int64_t n = got[0].count();
  for (const array& a : batch.in) n = std::max(n, a.count());
  t.inputs += n;
}

void check_range(context& ctx, const op_info& op, const exhaustive_range& r, std::uint64_t index, sweep_tally& t) {
  sweep_batch b;
  array& x = b.in.emplace_back(r.from, reference::shape_list{static_cast<std::int64_t>(r.count)});
  for (std::size_t i = 0; i < r.count; ++i) x.set(i, r.first + i);
  array expected(r.to, x.shape);
  if (op.name == "convert") {
    b.attrs = {{"dtype", std::string(name_of(r.to))}};
    reference::convert_range(r.from, r.to, r.first, r.count, expected.bytes.data());
  } else {
    reference::evaluate_range(*reference::elementwise_named(op.name), r.first, r.count, expected.bytes.data());
  }
  compare(op, b, call_on_arrays(ctx, op, b.in, b.attrs)[0], expected, index, t);
  t.inputs += static_cast<std::int64_t>(r.count);

  constexpr std::size_t stride = 64;
  sweep_batch few{{array(r.from, {static_cast<std::int64_t>(r.count / stride)})}, b.attrs};
  for (std::size_t i = 0; i < r.count / stride; ++i)
    few.in[0].set(i, r.first + i * stride + (i * 11 + index * 7) % stride);
  outcomes where;
  const array placed = reference::evaluate(op.name, few.in, few.attrs, &where);
  count_outcomes(op, few, {placed}, where, index, t);
}

}  // namespace repdl::tools

#endif
