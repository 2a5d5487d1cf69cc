// The layouts of `repdl verify`: operands of 1 to 8 axes that lie in memory in every way, each in another one, with
// guards around and between their elements. Digest cases whose axes are split into more must have the committed digest;
// calls that broadcast, which no digest case does by stride 0, the results of the baseline on contiguous operands.
#include <algorithm>
#include <optional>

#include "librepdl/samples/call_shapes.hpp"
#include "reference/attributes.hpp"
#include "reference/digests.hpp"
#include "reference/layout.hpp"
#include "tools/cli/progress.hpp"
#include "tools/cli/random_call.hpp"
#include "tools/cli/text.hpp"
#include "tools/cli/verify.hpp"

namespace repdl::tools {
namespace {

using reference::absent_shape;
using reference::array;
using reference::committed_digest;
using reference::count_of;
using reference::digest_case;
using reference::layout;
using reference::memory_image;
using reference::placement;
using reference::shape_list;
using reference::word_stream;
using integers = std::vector<std::int64_t>;

/// Each axis of a shape as the factors that it is split into. The row-major order of the elements stays.
using axis_factors = std::vector<shape_list>;

std::int64_t smallest_factor(std::int64_t n) {
  for (std::int64_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

/// Splits axes until there are `rank`, with factors of 1 where sizes are prime. `whole`: not to be split.
axis_factors split(const shape_list& shape, const std::vector<bool>& whole, std::size_t rank, word_stream& w) {
  axis_factors f;
  for (const std::int64_t n : shape) f.push_back({n});
  for (std::size_t have = shape.size(); have < rank; ++have) {
    std::vector<std::pair<std::size_t, std::size_t>> composite, any;
    for (std::size_t i = 0; i < f.size(); ++i) {
      for (std::size_t j = 0; j < f[i].size() && !whole[i]; ++j) {
        any.emplace_back(i, j);
        if (f[i][j] > 3 && smallest_factor(f[i][j]) != f[i][j]) composite.emplace_back(i, j);
      }
    }
    const auto& from = composite.empty() ? any : composite;
    if (from.empty()) return f;
    const auto [axis, at] = from[w.below(static_cast<std::uint32_t>(from.size()))];
    shape_list& list = f[axis];
    const std::int64_t n = list[at], p = composite.empty() ? 1 : smallest_factor(n);
    const bool small_first = w.flip();
    list[at] = small_first ? n / p : p;
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), small_first ? p : n / p);
  }
  return f;
}

shape_list joined_axes(const axis_factors& f) {
  shape_list s;
  for (const shape_list& axis : f) s.insert(s.end(), axis.begin(), axis.end());
  return s;
}

/// The shape of an operand that broadcasts to the split one: its axes of size 1 become as many.
shape_list like(const shape_list& operand, const axis_factors& f) {
  shape_list s;
  const std::size_t lead = f.size() - operand.size();
  for (std::size_t i = 0; i < operand.size(); ++i) {
    const shape_list& axis = f[i + lead];
    if (operand[i] == count_of(axis)) {
      s.insert(s.end(), axis.begin(), axis.end());
    } else {
      s.insert(s.end(), axis.size(), 1);
    }
  }
  return s;
}

attribute* attribute_named(attributes& attrs, std::string_view name) {
  for (attribute& a : attrs) {
    if (a.name == name) return &a;
  }
  return nullptr;
}

/// A digest case with more axes: the same inputs, in order, and results that have the same bytes.
struct view_of_case {
  attributes attrs;
  std::vector<shape_list> shapes;  ///< of the inputs
};

/// Rows along other axes: x with its axes split, and what follows from it.
void split_rows(view_of_case& v, const digest_case& c, std::size_t rank, word_stream& w) {
  const op_info& op = *find(c.op);
  const op_info& forward = samples::forward_of(op);
  const samples::record& record = samples::record_of(forward);
  std::size_t at = 0;  // x, or what is like it
  for (std::size_t i = 0; i < op.in.size(); ++i) {
    if (op.in[i].name == forward.in[0].name) at = i;
  }
  const shape_list& x = c.shapes[at];
  const auto kind_of_axis = std::find_if(forward.attrs.begin(), forward.attrs.end(),
                                         [](const attribute_info& a) { return a.name == "axis"; });
  const bool several = kind_of_axis != forward.attrs.end() && kind_of_axis->kind == attribute_kind::integers,
             channels = record.axes == ops::row_axes::channels, groups = record.axes == ops::row_axes::groups;
  std::vector<bool> named = samples::axes_of(record, static_cast<int>(x.size()), c.attrs);  // by the attribute
  if (channels) named.flip();
  if (groups) named[0] = named[1] = true;
  const axis_factors f = split(x, several ? std::vector<bool>(x.size(), false) : named, rank, w);
  integers axes;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < f.size(); ++i) {
    for (std::size_t j = 0; j < f[i].size(); ++j, ++next) {
      if (named[i]) axes.push_back(next);
    }
  }
  attribute* axis = attribute_named(v.attrs, "axis");
  if (axis == nullptr && record.axes != ops::row_axes::all && !groups)
    axis = &v.attrs.emplace_back(attribute{"axis", {}});
  if (axis != nullptr) axis->value = several ? attribute_value(axes) : attribute_value(axes[0]);
  const samples::shaped_call call =
      samples::gradient_of(op, {samples::operands_at(record, sizes(joined_axes(f)), v.attrs), v.attrs});
  for (std::size_t i = 0; i < v.shapes.size(); ++i) {
    if (v.shapes[i] != absent_shape) v.shapes[i].assign(call.in[i]->begin(), call.in[i]->end());
  }
}

view_of_case with_axes(const digest_case& c, std::size_t rank, word_stream& w) {
  view_of_case v{c.attrs, c.shapes};
  const op_info& op = *find(c.op);
  const auto nothing_whole = [](const shape_list& s) { return std::vector<bool>(s.size(), false); };
  if (op.family == "elementwise" || op.family == "loss" || op.family == "exponent") {  // operands that broadcast
    shape_list full;
    for (const shape_list& s : c.shapes) {
      if (s != reference::absent_shape) full = reference::broadcast_shape(full, s);
    }
    std::vector<bool> whole = nothing_whole(full);
    if (reference::attribute_or<std::string>(c.attrs, "reduction", "") == "batchmean" && !full.empty()) whole[0] = true;
    const axis_factors f = split(full, whole, rank, w);
    for (shape_list& s : v.shapes) {
      if (s != reference::absent_shape) s = like(s, f);
    }
  } else if (op.family == "matmul") {
    const auto batch = [](const shape_list& s) { return shape_list(s.begin(), s.end() - 2); };
    const shape_list full = reference::broadcast_shape(batch(c.shapes[0]), batch(c.shapes[1]));
    const axis_factors f = split(full, nothing_whole(full), rank < 2 ? 0 : rank - 2, w);
    for (std::size_t i = 0; i < 2; ++i) {
      shape_list s = like(batch(c.shapes[i]), f);
      s.insert(s.end(), c.shapes[i].end() - 2, c.shapes[i].end());
      v.shapes[i] = s;
    }
  } else if (attribute* shape = attribute_named(v.attrs, "shape"); shape != nullptr) {  // random numbers
    const auto s = std::get<integers>(shape->value);
    shape->value = joined_axes(split(s, nothing_whole(s), rank, w));
  } else if (op.family == "random" && !c.shapes.empty()) {  // dropout
    v.shapes[0] = joined_axes(split(c.shapes[0], nothing_whole(c.shapes[0]), rank, w));
  } else if (op.family == "optimizer") {
    const std::size_t group = reference::operands_of_step(c.op, c.attrs);
    for (std::size_t t = 0; t < v.shapes.size(); t += group) {
      const shape_list s = joined_axes(split(c.shapes[t], nothing_whole(c.shapes[t]), rank, w));
      for (std::size_t i = t; i < t + group; ++i) {
        if (v.shapes[i] != absent_shape) v.shapes[i] = s;
      }
    }
  } else if (op.family == "softmax" || op.family == "norm" || op.family == "nll" || op.family == "scan" ||
             (op.family == "reduce" && samples::has(op.attrs, "axis"))) {
    split_rows(v, c, rank, w);
  } else if (op.family == "scatter" && c.shapes.size() == 2) {  // a gradient, and indices
    const shape_list indices =
        joined_axes(split(c.shapes[1], nothing_whole(c.shapes[1]), std::max<std::size_t>(rank, 2) - 1, w));
    v.shapes[1] = v.shapes[0] = indices;
    v.shapes[0].push_back(c.shapes[0].back());
  } else if (op.family == "scatter") {  // axes that are not indexed, and have one size in all operands
    const shape_list& x = c.shapes[0];
    std::vector<bool> whole = nothing_whole(x);
    const std::size_t axis = reference::scatter_axis(c.shapes, c.attrs);
    for (std::size_t i = 0; i < x.size(); ++i) {
      whole[i] = i == axis || c.shapes[2][i] != x[i] || (c.op == "scatter_add" && c.shapes[1][i] != x[i]);
    }
    const axis_factors f = split(x, whole, rank, w);
    std::int64_t before = 0;
    for (std::size_t i = 0; i < axis; ++i) before += std::ssize(f[i]);
    for (std::size_t k = 0; k < v.shapes.size(); ++k) {
      if (k == 1 && c.op == "index_add") continue;
      axis_factors of = f;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (whole[i]) of[i] = {c.shapes[k][i]};
      }
      v.shapes[k] = joined_axes(of);
    }
    attribute* of_axis = attribute_named(v.attrs, "axis");
    if (of_axis == nullptr) of_axis = &v.attrs.emplace_back(attribute{"axis", {}});
    of_axis->value = before;
  }
  return v;
}

/// Whether elements depend on nothing but the inputs' elements of the same place: any part can be computed alone.
bool is_elementwise(const digest_case& c) {
  const std::string& family = find(c.op)->family;
  if (family != "elementwise" && family != "convert") return false;
  for (const shape_list& s : c.shapes) {
    if (s != c.shapes[0]) return false;
  }
  return true;
}

/// A shape of so many axes of sizes from 2, with at least half of the elements, where that is possible.
shape_list body_shape(std::int64_t elements, std::size_t rank, word_stream& w) {
  shape_list s(rank, 1);
  std::int64_t have = 1;
  for (std::int64_t& n : s) {
    const std::int64_t size = w.between(2, 4);
    if (have * size > elements) break;
    n = size;
    have *= size;
  }
  std::int64_t& long_axis = s[w.below(static_cast<std::uint32_t>(rank))];
  have /= long_axis;
  long_axis = elements / have;
  if (long_axis > 4 && w.flip()) long_axis -= long_axis % 4;
  return s;
}

array part_of(const array& a, std::int64_t first, const shape_list& shape) {
  array p(a.type, shape);
  const auto begin = a.bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(first) * size_of(a.type));
  std::copy_n(begin, p.bytes.size(), p.bytes.begin());
  return p;
}

class layout_checks {
 public:
  layout_checks(const verify_options& options, std::vector<variant>& variants)
      : options_(options), variants_(variants) {
    for (variant& v : variants_) runners_.emplace_back(*v.ctx);
    for (std::size_t i = 0; i < variants_.size(); ++i) {
      const context_options& o = variants_[i].options;
      const auto same = std::find_if(engines_.begin(), engines_.end(), [&](const std::vector<std::size_t>& e) {
        const context_options& first = variants_[e[0]].options;
        return first.isa == o.isa && first.where == o.where;
      });
      (same == engines_.end() ? engines_.emplace_back() : *same).push_back(i);
    }
  }

  /// The case with `rank` axes where its operation allows it; operand k lies in layout `kind` + k.
  void check_case(const committed_digest& d, const std::vector<array>& in, std::size_t rank, std::size_t kind,
                  verify_row& row) {
    word_stream w(d.c.seed, 1000 + rank * 100 + kind);
    std::vector<placed_call> calls;  // in order, their results are the case's
    bool committed = true;
    if (is_elementwise(d.c)) {
      // A body of many axes, and the rest of a count that is often prime.
      const std::int64_t all = in[0].count();
      const shape_list body = body_shape(all, rank, w);
      for (const auto& [first, shape] :
           {std::pair(std::int64_t{0}, body), std::pair(count_of(body), shape_list{all - count_of(body)})}) {
        if (count_of(shape) == 0) continue;
        std::vector<array> part;
        for (const array& a : in) part.push_back(part_of(a, first, shape));
        committed = add_call(d.c, d.c.attrs, part, kind, w, calls) && committed;
      }
    } else {
      const view_of_case v = with_axes(d.c, rank, w);
      std::vector<array> seen = in;
      for (std::size_t i = 0; i < seen.size(); ++i) seen[i].shape = v.shapes[i];
      committed = add_call(d.c, v.attrs, seen, kind, w, calls);
    }
    for (std::size_t e = 0; e < engines_.size(); ++e) {
      const std::size_t turn = (rank + kind + e) % engines_[e].size();
      const bool slow = is_slow(d.c, in, variants_[engines_[e][turn]].options.first_tier);
      const std::size_t i = engines_[e][slow ? 0 : turn];
      if (!committed) {
        for (const placed_call& c : calls) compare_unless_hard(c, i, row);
        continue;
      }
      std::vector<array> results;
      for (const placed_call& c : calls) {
        const std::vector<array> part = results_of(c, run(i, c, row));
        for (std::size_t o = 0; o < part.size(); ++o) {
          if (results.size() <= o) results.emplace_back(part[o].type, shape_list{0});
          array& r = results[o];
          r.bytes.insert(r.bytes.end(), part[o].bytes.begin(), part[o].bytes.end());
          r.shape = {static_cast<std::int64_t>(r.bytes.size() / size_of(r.type))};
        }
      }
      // The committed digest says it for all results at once; a report needs each.
      if (reference::digest(d.c, results) != d.value) {
        for (const placed_call& c : calls) compare_with_baseline(c, run(i, c, row), i);
        throw mismatch(joined("MISMATCH ", d.c.op, ", ", variants_[i].label, ", operands in other layouts\ncase: ",
                              reference::to_text(d.c), "\nthe digest is not the committed one\n"));
      }
    }
  }

  /// Calls that repdl fuzz makes, always the same ones.
  void check_random(const op_info& op, std::int64_t calls, verify_row& row) {
    for (std::int64_t k = 0; k < calls; ++k) {
      word_stream w(0x1a70775, static_cast<std::uint64_t>(op.id) << 32 | static_cast<std::uint64_t>(k));
      const random_call r = make_random_call(op, w);
      for (std::size_t e = 0; e < engines_.size(); ++e) {
        std::size_t i = engines_[e][(static_cast<std::size_t>(k) + e) % engines_[e].size()];
        if (!is_affordable(r, variants_[i].options)) i = engines_[e][0];
        compare_unless_hard(r.call, i, row);
      }
    }
  }

 private:
  /// False: the results are not the case's, because an input repeats elements.
  static bool add_call(const digest_case& c, const attributes& attrs, const std::vector<array>& in, std::size_t kind,
                       word_stream& w, std::vector<placed_call>& calls) {
    placed_call p{.op = find(c.op), .attrs = attrs, .memory = {}, .in = {}, .out = {}};
    if (p.op->family == "optimizer") p.groups = in.size() / reference::operands_of_step(c.op, c.attrs);
    bool same_values = true;
    std::size_t next = kind;
    const auto draw = [&](bool is_input) {
      layout l = reference::every_layout[next++ % reference::every_layout.size()];
      return l == layout::repeated && !(is_input && may_repeat(*p.op)) ? layout::gaps : l;
    };
    for (const array& a : in) {
      if (a.absent()) {
        p.in.emplace_back();
        continue;
      }
      const layout l = draw(true);
      const sizes shape{std::span<const std::int64_t>(a.shape)};
      p.in.push_back(p.memory.add({a.type, shape}, place(shape, l, w, may_repeat(*p.op)), l));
      p.memory.set(*p.in.back(), a);
      same_values = same_values && p.memory.get(*p.in.back()).bytes == a.bytes;
    }
    for (const tensor_spec& s : p.infer_outputs()) {
      const layout l = draw(false);
      p.out.push_back(p.memory.add(s, place(s.shape, l, w), l));
    }
    calls.push_back(std::move(p));
    return same_values;
  }

  /// Also checks that inputs and guards stay as they were.
  memory_image run(std::size_t i, const placed_call& c, verify_row& row) {
    variant& v = variants_[i];
    const stopwatch clock;
    memory_image after = runners_[i].run(c);
    v.seconds += clock.seconds();
    std::vector<array> results = results_of(c, after);
    for (std::size_t o = 0; o < results.size(); ++o) {
      array& a = results[o];
      v.elements += a.count();  // of an absent one 0
      row.elements += a.count();
      if (options_.flip >= 0 && a.count() > 0) {
        const auto at = static_cast<std::size_t>(options_.flip % a.count());
        a.set(at, a.get(at) ^ 1);
        after.set(*c.out[o], a);
      }
    }
    ++v.runs;
    ++row.layouts;
    report(c, i, difference(c, after, v.label, expected_memory(c, results), "the memory before the call"));
    return after;
  }

  void compare_with_baseline(const placed_call& c, const memory_image& after, std::size_t i) {
    const placed_call plain = contiguous(c);
    const std::vector<array> want = results_of(plain, runners_[0].run(plain));
    report(c, i,
           difference(c, after, variants_[i].label, expected_memory(c, want),
                      variants_[0].label + " with contiguous operands"));
  }

  // Random values, and those of a case some of which repeat, may be hard ones; the most precise computation gives up before it guesses.
  void compare_unless_hard(const placed_call& c, std::size_t i, verify_row& row) {
    try {
      compare_with_baseline(c, run(i, c, row), i);
    } catch (const error& failed) {
      if (failed.site() != error_site::undecided) throw;
    }
  }

  void report(const placed_call& c, std::size_t i, const std::string& wrong) const {
    if (wrong.empty()) return;
    throw mismatch(
        joined("MISMATCH ", c.op->name, ", ", variants_[i].label, ", operands in other layouts\n", describe(c), wrong));
  }

  const verify_options& options_;
  std::vector<variant>& variants_;
  std::vector<call_runner> runners_;
  std::vector<std::vector<std::size_t>> engines_;  ///< variants by instruction set or GPU
};

}  // namespace

void verify_layouts(const verify_options& options, std::vector<variant>& variants, verify_table& table) {
  std::vector<std::pair<std::string, std::vector<committed_digest>>> rows;  // by row of the table
  for (const op_info& op : operations()) {
    if (!options.wants(op.name)) continue;
    for (committed_digest& d : read_cases(options.digests, op)) {
      const bool large = !d.c.shapes.empty() && count_of(d.c.shapes[0]) > 70000;
      if (options.quick && large) continue;
      const std::string name = row_name(d.c);
      auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.first == name; });
      if (found == rows.end()) found = rows.insert(rows.end(), {name, {}});
      found->second.push_back(std::move(d));
    }
  }
  layout_checks checks(options, variants);
  constexpr std::size_t kinds = reference::every_layout.size();
  // Quick: every rank once, the layouts in turn; else every rank with every layout of the first operand.
  const std::size_t turns = options.quick ? 1 : kinds;
  const std::int64_t random_calls = options.quick ? 8 : 200;
  progress bar("layouts", static_cast<std::int64_t>(rows.size()));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::vector<committed_digest>& cases = rows[r].second;
    const op_info& op = *find(cases[0].c.op);
    bar.add(1, op.name);
    verify_row& row = table.at(rows[r].first);
    std::size_t next = r;
    for (std::size_t rank = 1; rank <= static_cast<std::size_t>(max_rank); ++rank) {
      for (std::size_t turn = 0; turn < turns; ++turn, next += 7) {
        const committed_digest& d = cases[next % cases.size()];
        checks.check_case(d, reference::inputs(d.c), rank, (r + rank + turn) % kinds, row);
      }
    }
    // Formats are drawn, too.
    const bool first_of_op = r == 0 || rows[r - 1].second[0].c.op != op.name;
    if (first_of_op) checks.check_random(op, random_calls * (op.family == "convert" ? 4 : 1), row);
  }
}

}  // namespace repdl::tools
