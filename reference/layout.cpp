#include "reference/layout.hpp"

#include <algorithm>
#include <stdexcept>

#include "librepdl/ops/structured.hpp"
#include "librepdl/samples/call_shapes.hpp"
#include "reference/attributes.hpp"

namespace repdl::reference {
namespace {

shape_list strides_of(const shape_list& shape) {
  shape_list s(shape.size());
  std::int64_t n = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    s[i] = n;
    n *= shape[i];
  }
  return s;
}

/// The offsets of all index tuples over some axes, row-major.
std::vector<std::int64_t> offsets(const shape_list& sizes, const shape_list& strides) {
  std::vector<std::int64_t> v{0};
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    std::vector<std::int64_t> next;
    for (const std::int64_t base : v)
      for (std::int64_t i = 0; i < sizes[axis]; ++i) next.push_back(base + i * strides[axis]);
    v = std::move(next);
  }
  return v;
}

}  // namespace

shape_list broadcast_shape(const shape_list& a, const shape_list& b) {
  shape_list r(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < r.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) throw std::invalid_argument("reference: shapes do not broadcast");
    r[r.size() - 1 - i] = x == 1 ? y : x;
  }
  return r;
}

std::int64_t broadcast_index(const shape_list& from, const shape_list& to, std::int64_t i) {
  std::int64_t r = 0, step = 1;
  for (std::size_t d = 0; d < to.size(); ++d) {
    const std::int64_t size = to[to.size() - 1 - d];
    const std::int64_t at = i % size;
    i /= size;
    if (d >= from.size()) continue;
    const std::int64_t own = from[from.size() - 1 - d];
    if (own != 1) r += at * step;
    step *= own;
  }
  return r;
}

reduce_layout layout_of(const shape_list& shape, const std::optional<shape_list>& axes, bool keepdim) {
  const std::size_t rank = shape.size();
  std::vector<bool> reduced(rank, !axes);
  if (axes)
    for (const std::int64_t a : *axes) reduced.at(index(a < 0 ? a + static_cast<std::int64_t>(rank) : a)) = true;
  const shape_list strides = strides_of(shape);
  shape_list kept_size, kept_stride, gone_size, gone_stride, out_shape;
  for (std::size_t i = 0; i < rank; ++i) {
    (reduced[i] ? gone_size : kept_size).push_back(shape[i]);
    (reduced[i] ? gone_stride : kept_stride).push_back(strides[i]);
    if (!reduced[i] || keepdim) out_shape.push_back(reduced[i] ? 1 : shape[i]);
  }
  return {out_shape, offsets(kept_size, kept_stride), offsets(gone_size, gone_stride)};
}

bool is_statistic(std::string_view op) {
  bool is = false;
  ops::for_each_structured([&]<class Op>() { is = is || (ops::is_statistic<Op> && Op::name == op); });
  return is;
}

norm_layout norm_layout_of(std::string_view op, const shape_list& shape, const attributes& attrs) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  norm_layout l;
  if (is_statistic(op)) {
    l.rows = layout_of(shape, attribute_of<shape_list>(attrs, "axis"), attribute_or(attrs, "keepdim", false));
    l.weight = {std::ssize(l.rows.reduced)};
    return l;
  }
  const op_info* const info = find(op);
  if (info == nullptr || info->family != "norm") throw std::invalid_argument("reference: no norm");
  const ops::row_axes kind = samples::record_of(samples::forward_of(*info)).axes;
  if (kind == ops::row_axes::last) {
    const shape_list axes = attribute_or<shape_list>(attrs, "axis", {-1});
    l.rows = layout_of(shape, axes, false);
    std::vector<bool> reduced(shape.size(), false);
    for (const std::int64_t a : axes) reduced.at(index(a < 0 ? a + rank : a)) = true;
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (reduced[i]) l.weight.push_back(shape[i]);
    return l;
  }
  shape_list cut = shape, axes;
  std::int64_t axis = 1;
  if (kind == ops::row_axes::groups) {
    const auto groups = attribute_or<std::int64_t>(attrs, "groups", 1);
    if (rank < 2 || groups < 1 || shape[1] % groups != 0) throw std::invalid_argument("reference::group_norm: groups");
    cut[1] /= groups;
    cut.insert(cut.begin() + 1, groups);
    for (std::int64_t i = 2; i <= rank; ++i) axes.push_back(i);
  } else {
    axis = attribute_or<std::int64_t>(attrs, "axis", 1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) throw std::invalid_argument("reference::batch_norm: axis");
    for (std::int64_t i = 0; i < rank; ++i)
      if (i != axis) axes.push_back(i);
  }
  l.rows = layout_of(cut, axes, false);
  l.channels = shape[index(axis)];
  l.weight = {l.channels};
  l.inner = count_of({shape.begin() + axis + 1, shape.end()});
  return l;
}

std::size_t scatter_axis(const std::vector<shape_list>& shapes, const attributes& attrs) {
  const auto axis = attribute_or<std::int64_t>(attrs, "axis", 0);
  return index(axis < 0 ? axis + std::ssize(shapes[0]) : axis);
}

shape_list scatter_shape(std::string_view op, const std::vector<shape_list>& shapes, const attributes& attrs) {
  if (op != "embedding_backward") return shapes[0];
  return {attribute_or<std::int64_t>(attrs, "rows", 0), shapes[0].back()};
}

place_lists scatter_lists(std::string_view op, const std::vector<shape_list>& shapes, const array& indices,
                          const attributes& attrs) {
  const shape_list to = scatter_shape(op, shapes, attrs);
  place_lists lists(index(count_of(to)));
  const auto checked = [](std::int64_t i, std::int64_t bound) {
    if (i < 0 || i >= bound) throw std::invalid_argument("reference: an index is out of range");
    return i;
  };
  const auto value = [&](std::int64_t at) { return static_cast<std::int64_t>(indices.get(index(at))); };
  if (op == "embedding_backward") {
    auto padding = attribute_or<std::int64_t>(attrs, "padding_idx", -to[0] - 1);
    if (padding < 0) padding += to[0];
    for (std::int64_t p = 0; p < indices.count(); ++p) {
      const std::int64_t row = checked(value(p), to[0]);
      for (std::int64_t i = 0; row != padding && i < to[1]; ++i) lists[index(row * to[1] + i)].push_back(p * to[1] + i);
    }
    return lists;
  }
  const std::size_t axis = scatter_axis(shapes, attrs);
  const shape_list& from = shapes[2];
  if (op == "index_add") {
    std::int64_t inner = 1;
    for (std::size_t d = axis + 1; d < to.size(); ++d) inner *= to[d];
    for (std::int64_t at = 0; at < count_of(from); ++at) {
      const std::int64_t outer = at / inner / from[axis];
      const std::int64_t row = checked(value(at / inner % from[axis]), to[axis]);
      lists[index((outer * to[axis] + row) * inner + at % inner)].push_back(at);
    }
    return lists;
  }
  for (std::int64_t p = 0; p < indices.count(); ++p) {
    std::int64_t rest = p, place = 0, at = 0, place_step = 1, step = 1;
    for (std::size_t d = to.size(); d-- > 0;) {
      const std::int64_t i = rest % indices.shape[d];
      rest /= indices.shape[d];
      place += (d == axis ? checked(value(p), to[d]) : i) * place_step;
      at += i * step;
      place_step *= to[d];
      step *= from[d];
    }
    lists[index(place)].push_back(at);
  }
  return lists;
}

}  // namespace repdl::reference
