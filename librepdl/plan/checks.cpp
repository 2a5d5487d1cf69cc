#include "librepdl/plan/checks.hpp"

#include <charconv>
#include <numeric>
#include <vector>

namespace repdl::plan {
namespace {

void check_type(std::string_view op, const ops::operand& row, dtype type, error_site site) {
  if ((row.types & ops::one(type)) == 0) fail(site, op, row.name, describe(row.types), name_of(type));
}

// The bytes [begin, end) that a view touches, as addresses.
struct extent {
  std::intptr_t begin;
  std::intptr_t end;
};
extent extent_of(const const_tensor_view& v) {
  const auto size = static_cast<std::intptr_t>(size_of(v.type()));
  std::intptr_t lo = reinterpret_cast<std::intptr_t>(v.data());
  std::intptr_t hi = lo;
  if (v.is_contiguous()) return {lo, lo + static_cast<std::intptr_t>(v.count()) * size};
  for (int i = 0; i < v.rank(); ++i) {
    const std::intptr_t reach = static_cast<std::intptr_t>(v.strides()[i]) * (v.shape()[i] - 1) * size;
    (reach < 0 ? lo : hi) += reach;
  }
  return {lo, hi + size};
}

// False when the two views cannot share a byte: disjoint ranges, or interleaved (all strides are multiples of g bytes,
// and the elements occupy different residues modulo g).
bool may_overlap(const const_tensor_view& a, const const_tensor_view& b) {
  if (a.count() == 0 || b.count() == 0) return false;
  const extent x = extent_of(a);
  const extent y = extent_of(b);
  if (x.end <= y.begin || y.end <= x.begin) return false;
  std::intptr_t g = 0;
  for (const const_tensor_view* v : {&a, &b}) {
    for (int i = 0; i < v->rank(); ++i) {
      if (v->shape()[i] > 1) {
        g = std::gcd(g, static_cast<std::intptr_t>(v->strides()[i]) * static_cast<std::intptr_t>(size_of(v->type())));
      }
    }
  }
  const auto size_a = static_cast<std::intptr_t>(size_of(a.type()));
  const auto size_b = static_cast<std::intptr_t>(size_of(b.type()));
  if (g == 0) return true;  // both are single elements, and the ranges meet
  std::intptr_t r = (reinterpret_cast<std::intptr_t>(b.data()) - reinterpret_cast<std::intptr_t>(a.data())) % g;
  if (r < 0) r += g;
  return r < size_a || r + size_b > g;
}

bool exact_alias(const const_tensor_view& a, const const_tensor_view& b) {
  if (a.data() != b.data() || a.type() != b.type() || !(a.shape() == b.shape())) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.shape()[i] > 1 && a.strides()[i] != b.strides()[i]) return false;
  }
  return true;
}

// Sufficient: with the axes sorted by stride, each stride steps over everything that the smaller ones reach. (A view
// that fails this and still has no shared element would be a curiosity; it is refused.)
bool overlaps_itself(const const_tensor_view& v) {
  if (v.count() <= 1 || v.is_contiguous()) return false;
  inline_vector<std::pair<std::int64_t, std::int64_t>, max_rank> axes;  // |stride|, size
  for (int i = 0; i < v.rank(); ++i) {
    if (v.shape()[i] > 1) axes.push_back({std::abs(v.strides()[i]), v.shape()[i]});
  }
  std::sort(axes.begin(), axes.end());
  std::int64_t reach = 0;
  for (const auto& [stride, size] : axes) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

}  // namespace

std::string to_text(double value) {
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end};
}

void check_gradient(std::string_view op, const const_tensor_view& g, const sizes& output) {
  if (!(g.shape() == output)) {
    fail(error_site::gradient_shape, op, "g", "the output's shape " + to_string(output), to_string(g.shape()));
  }
}

void check_format(std::string_view op, std::string_view name, const const_tensor_view& v, std::string_view as,
                  const const_tensor_view& other) {
  if (v.type() == other.type()) return;
  fail(error_site::operand_dtype, op, name, std::string(name_of(other.type())) + ", as " + std::string(as),
       name_of(v.type()));
}

std::string names_of(std::span<const ops::operand> rows) {
  std::string names;
  for (const ops::operand& r : rows) {
    names += names.empty() ? "" : ", ";
    names += r.optional ? "[" + std::string(r.name) + "]" : r.name;
  }
  return names;
}

void check_inputs(std::string_view op, std::span<const ops::operand> rows, inputs in,
                  std::span<const ops::operand> group) {
  std::size_t required = 0;
  for (const ops::operand& r : rows) required += r.optional ? 0 : 1;
  if (in.size() < required || in.size() > rows.size()) {
    std::string count = std::to_string(required);
    if (required != rows.size()) count += " to " + std::to_string(rows.size());
    if (!group.empty()) {
      count += ", that is " + names_of(group) + " for each tensor";
    } else if (!rows.empty()) {
      count += " (" + names_of(rows) + ")";
    }
    fail(error_site::input_count, op, "inputs", count, std::to_string(in.size()));
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!in[i]) {
      if (!rows[i].optional) fail(error_site::absent_operand, op, rows[i].name, "a tensor", "an absent operand");
      continue;
    }
    check_type(op, rows[i], in[i].type(), error_site::operand_dtype);
  }
  for (std::size_t i = in.size(); i < rows.size(); ++i) {
    if (!rows[i].optional) fail(error_site::absent_operand, op, rows[i].name, "a tensor", "an absent operand");
  }
}

void check_outputs(std::string_view op, std::span<const ops::operand> rows, outputs out,
                   std::span<const tensor_spec> expected) {
  if (out.size() != rows.size()) {
    fail(error_site::output_count, op, "outputs", std::to_string(rows.size()), std::to_string(out.size()));
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!out[i]) {
      if (!rows[i].optional) fail(error_site::absent_operand, op, rows[i].name, "a tensor", "an absent operand");
      continue;
    }
    if (out[i].type() != expected[i].type) {
      fail(error_site::output_dtype, op, rows[i].name, name_of(expected[i].type), name_of(out[i].type()));
    }
    if (!(out[i].shape() == expected[i].shape)) {
      fail(error_site::output_shape, op, rows[i].name, "shape " + to_string(expected[i].shape),
           to_string(out[i].shape()));
    }
    if (overlaps_itself(out[i])) {
      fail(error_site::output_self_overlap, op, rows[i].name, "elements that share no memory",
           "strides " + to_string(out[i].strides()) + " for shape " + to_string(out[i].shape()));
    }
  }
}

void check_devices(std::string_view op, std::span<const ops::operand> in_rows, inputs in,
                   std::span<const ops::operand> out_rows, outputs out, const device& where, bool takes_numbers) {
  const auto is_number = [](const const_tensor_view& v) {
    return v.rank() == 0 && v.where().kind == device_kind::cpu && (ops::FLOATS & ops::one(v.type())) != 0;
  };
  const auto check = [&](std::string_view name, const const_tensor_view& v, bool may_be_number = false) {
    if (v && !(v.where() == where) && !(may_be_number && is_number(v))) {
      fail(error_site::device_mismatch, op, name, "a tensor on " + name_of(where), "one on " + name_of(v.where()));
    }
  };
  for (std::size_t i = 0; i < in.size(); ++i) check(in_rows[i].name, in[i], takes_numbers);
  for (std::size_t i = 0; i < out.size(); ++i) check(out_rows[i].name, out[i]);
}

void check_overlap(std::string_view op, std::span<const ops::operand> in_rows, inputs in,
                   std::span<const ops::operand> out_rows, outputs out, aliases allowed) {
  const auto aliased = [&](std::size_t i, std::size_t o) {
    if (allowed == aliases::none) return false;
    const bool this_one = allowed == aliases::first ? i == 0 : in_rows[i].name == out_rows[o].name;
    return (allowed == aliases::any || this_one) && exact_alias(in[i], out[o]);
  };
  const auto refuse = [&](std::size_t o, std::string_view other) {
    fail(error_site::overlap, op, out_rows[o].name,
         allowed == aliases::none    ? "memory apart from the other operands"
         : allowed == aliases::any   ? "memory apart from the inputs, or exactly that of one"
         : allowed == aliases::first ? "memory apart from the other operands, or exactly that of the first"
                                     : "memory apart from the other operands, or exactly that of the input of its name",
         "memory that overlaps '" + std::string(other) + "'");
  };
  struct view {
    extent bytes;
    std::size_t index;
    bool is_output;
  };
  constexpr std::size_t few = 8;
  inline_vector<view, few> views;
  for (std::size_t o = 0; o < out.size(); ++o) {
    if (out[o].count() != 0) views.push_back({extent_of(out[o]), o, true});
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] && in[i].count() != 0) views.push_back({extent_of(in[i]), i, false});
  }
  // Of many (optimisers have hundreds), sorted by where they begin, only those that begin before an output ends can meet
  // it. Few are compared each with each: sorting would cost more.
  const bool sorted = views.size() > few;
  if (sorted) {
    std::sort(views.begin(), views.end(), [](const view& a, const view& b) { return a.bytes.begin < b.bytes.begin; });
  }
  for (std::size_t a = 0; a < views.size(); ++a) {
    for (std::size_t b = a + 1; b < views.size() && !(sorted && views[a].bytes.end <= views[b].bytes.begin); ++b) {
      const view& x = views[a].is_output ? views[a] : views[b];
      const view& y = views[a].is_output ? views[b] : views[a];
      if (!x.is_output || x.bytes.end <= y.bytes.begin || y.bytes.end <= x.bytes.begin) continue;
      if (y.is_output) {
        if (may_overlap(out[x.index], out[y.index]))
          refuse(std::max(x.index, y.index), out_rows[std::min(x.index, y.index)].name);
      } else if (!aliased(y.index, x.index) && may_overlap(in[y.index], out[x.index])) {
        refuse(x.index, in_rows[y.index].name);
      }
    }
  }
}

void check_rank(std::string_view op, std::string_view name, const const_tensor_view& v, int rank,
                std::string_view what) {
  if (v.rank() != rank) {
    fail(error_site::operand_rank, op, name, std::string(what) + " (rank " + std::to_string(rank) + ")",
         "rank " + std::to_string(v.rank()));
  }
}

int normalize_axis(std::string_view op, std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    fail(error_site::axis_range, op, "axis", "axes of a tensor of rank " + std::to_string(rank), std::to_string(axis));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

sizes broadcast(std::string_view op, std::string_view name, const sizes& a, const sizes& b) {
  if (a == b) return a;
  const int rank = std::max(a.size(), b.size());
  sizes shape;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.size());
    const int ib = i - (rank - b.size());
    const std::int64_t na = ia < 0 ? 1 : a[ia];
    const std::int64_t nb = ib < 0 ? 1 : b[ib];
    if (na != nb && na != 1 && nb != 1) {
      fail(error_site::broadcast, op, name, "a shape that broadcasts with " + to_string(a), to_string(b));
    }
    shape.push_back(na == 1 ? nb : na);
  }
  return shape;
}

sizes broadcast_strides(const const_tensor_view& v, const sizes& shape) {
  sizes strides;
  const int lead = shape.size() - v.rank();
  for (int i = 0; i < shape.size(); ++i) {
    strides.push_back(i < lead || v.shape()[i - lead] == 1 ? 0 : v.strides()[i - lead]);
  }
  return strides;
}

sizes normalize_axes(std::string_view op, const std::optional<sizes>& axis, int rank) {
  sizes all;
  if (!axis) {
    for (int i = 0; i < rank; ++i) all.push_back(i);
    return all;
  }
  for (const std::int64_t a : *axis) {
    const int i = normalize_axis(op, a, rank);
    if (std::find(all.begin(), all.end(), i) != all.end()) {
      fail(error_site::duplicate_axis, op, "axis", "each axis once", to_string(*axis));
    }
    all.push_back(i);
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace repdl::plan
