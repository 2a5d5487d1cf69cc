#include "librepdl/samples/call_shapes.hpp"

#include <algorithm>
#include <array>

namespace repdl::samples {
namespace {

using integers = std::vector<std::int64_t>;

constexpr std::size_t count = std::size(ops::structured_rows);
constexpr std::array<record, count> records = [] {
  std::array<record, count> all{};
  std::size_t i = 0;
  ops::for_each_structured([&]<class Op>() {
    all[i++] = {Op::id,        Op::row.kind,
                Op::row.proof, ops::row_axes_of<typename Op::attrs>,
                Op::in,        ops::forward_of(Op::id) != Op::id};
  });
  return all;
}();

int elementwise_count() { return static_cast<int>(ops::elementwise_rows().size()); }

const attribute_value* value_of(const attributes& attrs, std::string_view name) {
  const auto at = std::find_if(attrs.begin(), attrs.end(), [&](const attribute& a) { return a.name == name; });
  return at == attrs.end() ? nullptr : &at->value;
}

template <class Operands>
std::optional<std::size_t> place_of(const Operands& operands, std::string_view name) {
  for (std::size_t i = 0; i < std::size(operands); ++i) {
    if (operands[i].name == name) return i;
  }
  return std::nullopt;
}

// Behind samples and channels.
integers spatial(const sizes& s) { return {s.begin() + 2, s.end()}; }

}  // namespace

const record& record_of(ops::op_id op) {
  return records[static_cast<std::size_t>(static_cast<int>(op) - ops::first_structured)];
}
const record& record_of(const op_info& op) { return records[static_cast<std::size_t>(op.id - elementwise_count())]; }
const op_info& info_of(ops::op_id op) {
  const int before = ops::is_elementwise(op) ? 0 : elementwise_count() - ops::first_structured;
  return operations()[static_cast<std::size_t>(static_cast<int>(op) + before)];
}
const op_info& forward_of(const op_info& op) {
  return op.id < elementwise_count() ? op : info_of(ops::forward_of(record_of(op).id));
}

std::vector<bool> axes_of(const record& r, int rank, const attributes& attrs) {
  std::vector<bool> along(static_cast<std::size_t>(rank), false);
  const auto mark = [&](std::int64_t axis) { along[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true; };
  const attribute_value* axis = value_of(attrs, "axis");
  if (axis != nullptr && std::holds_alternative<integers>(*axis)) {
    for (const std::int64_t a : std::get<integers>(*axis)) mark(a);
  } else if (axis != nullptr) {
    mark(std::get<std::int64_t>(*axis));
  } else if (r.axes == ops::row_axes::all) {
    along.assign(along.size(), true);
  } else if (r.axes == ops::row_axes::last) {
    mark(-1);
  } else if (r.axes == ops::row_axes::channels) {
    mark(1);
  } else if (r.axes == ops::row_axes::classes) {
    mark(rank == 1 ? 0 : 1);
  }
  if (r.axes == ops::row_axes::channels) along.flip();
  return along;
}

shapes operands_at(const record& r, const sizes& x, const attributes& attrs, std::span<const sizes> own) {
  const bool channels = r.axes == ops::row_axes::channels;
  std::vector<bool> is_along = axes_of(r, x.size(), attrs);
  if (channels) is_along.flip();  // weights lie along those that are not summed over
  if (r.axes == ops::row_axes::groups) is_along[1] = true;
  integers along, rows;
  for (int d = 0; d < x.size(); ++d) (is_along[static_cast<std::size_t>(d)] ? along : rows).push_back(x[d]);
  shapes all;
  std::size_t next = 0;
  for (const ops::operand& o : r.in) {
    if (o.extent == ops::extent::own) {
      all.push_back(next < own.size() ? std::optional(own[next]) : std::nullopt);
      ++next;
    } else {
      all.emplace_back(o.extent == ops::extent::x ? x : sizes(o.extent == ops::extent::rows ? rows : along));
    }
  }
  return all;
}

shaped_call gradient_of(const op_info& op, const shaped_call& forward) {
  const op_info& f = forward_of(op);
  if (&f == &op) return forward;
  std::byte* const anywhere = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20);
  std::vector<const_tensor_view> views;
  for (std::size_t i = 0; i < forward.in.size(); ++i) {
    const std::vector<dtype>& types =
        f.in[i].types;  // of which no shape depends: binary32, with which all attributes go
    const bool has_f32 = std::find(types.begin(), types.end(), dtype::f32) != types.end();
    views.push_back(forward.in[i] ? const_tensor_view(anywhere, has_f32 ? dtype::f32 : types[0], *forward.in[i])
                                  : const_tensor_view());
  }
  attributes attrs = forward.attrs;
  for (const attribute_info& a : f.attrs) {  // such as an epsilon, of which no shape depends
    if (a.required && a.kind == attribute_kind::real && !value_of(attrs, a.name)) attrs.push_back({a.name, 1.0});
  }
  const std::vector<tensor_spec> results = infer(f, views, attrs);
  shaped_call g;
  for (const operand_info& o : op.in) {
    const auto result = place_of(f.out, o.name);
    if (const auto operand = place_of(f.in, o.name)) {
      g.in.push_back(*operand < forward.in.size() ? forward.in[*operand] : std::nullopt);
    } else {
      g.in.emplace_back(results[result.value_or(0)].shape);
    }
  }
  for (const attribute_info& a : op.attrs) {
    if (a.name == "size") {
      g.attrs.push_back({a.name, spatial(*forward.in[0])});
    } else if (a.name == "kernel" && !value_of(forward.attrs, a.name)) {
      g.attrs.push_back({a.name, spatial(*forward.in[1])});
    } else if (const attribute_value* v = value_of(forward.attrs, a.name)) {
      g.attrs.push_back({a.name, *v});
    }
  }
  return g;
}

}  // namespace repdl::samples
