#include "reference/placement.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace repdl::reference {
namespace {

constexpr std::string_view layout_names[] = {"contiguous", "shifted",  "gaps", "permuted",
                                             "backwards",  "repeated", "mixed"};
constexpr std::size_t alignment = 256;
/// Packs of kernels: a multiple of it is aligned for every element type.
constexpr std::uint32_t group = 4;

using axis_flags = std::array<bool, max_rank>;

/// A nonempty choice of the axes with more than one element, where there are any.
axis_flags some_axes(const sizes& shape, word_stream& w) {
  axis_flags chosen{};
  std::vector<std::size_t> long_axes;
  for (int i = 0; i < shape.size(); ++i) {
    const auto axis = static_cast<std::size_t>(i);
    if (shape[i] <= 1) continue;
    long_axes.push_back(axis);
    chosen[axis] = w.below(3) == 0;
  }
  if (!long_axes.empty()) chosen[long_axes[w.below(static_cast<std::uint32_t>(long_axes.size()))]] = true;
  return chosen;
}

/// The axes from the outermost in memory to the innermost: not in the order of the shape, where two of them matter.
std::array<int, max_rank> another_order(const sizes& shape, word_stream& w) {
  const int rank = shape.size();
  std::array<int, max_rank> order{};
  std::iota(order.begin(), order.end(), 0);
  if (w.flip()) {
    for (int i = rank - 1; i > 0; --i)
      std::swap(order[static_cast<std::size_t>(i)], order[w.below(static_cast<std::uint32_t>(i) + 1)]);
  }
  int last = -1;
  bool ascending = true;
  for (int i = 0; i < rank; ++i) {
    const int axis = order[static_cast<std::size_t>(i)];
    if (shape[axis] <= 1) continue;
    ascending = ascending && axis > last;
    last = axis;
  }
  if (ascending) {
    for (int i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = rank - 1 - i;
  }
  return order;
}

template <class Use>
void with_element_size(dtype t, const Use& use) {
  switch (size_of(t)) {
    case 1:
      return use.template operator()<1>();
    case 2:
      return use.template operator()<2>();
    case 4:
      return use.template operator()<4>();
    default:
      return use.template operator()<8>();
  }
}

}  // namespace

std::string_view name_of(layout l) { return layout_names[static_cast<int>(l)]; }

bool shows(const sizes& shape, layout kind) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return false;
  const auto long_axes = std::count_if(shape.begin(), shape.end(), [](std::int64_t n) { return n > 1; });
  return long_axes >= (kind == layout::contiguous || kind == layout::shifted ? 0 : kind == layout::permuted ? 2 : 1);
}

placement place(const sizes& shape, layout kind, word_stream& w, bool may_repeat) {
  const bool mixed = kind == layout::mixed;
  const auto has = [&](layout part, std::uint32_t one_in) { return kind == part || (mixed && w.below(one_in) == 0); };
  const int rank = shape.size();
  const bool permuted = has(layout::permuted, 2), gaps = has(layout::gaps, 2), shifted = has(layout::shifted, 2);
  const bool backwards = has(layout::backwards, 2), repeated = has(layout::repeated, 4) && (may_repeat || !mixed);
  const bool stray = mixed && w.below(4) == 0;
  // Half of the slices keep groups of four elements together and aligned, which other kernels read.
  const bool grouped = w.flip();
  const axis_flags zero = repeated ? some_axes(shape, w) : axis_flags{};
  const axis_flags negative = backwards ? some_axes(shape, w) : axis_flags{};
  std::array<int, max_rank> order{};
  std::iota(order.begin(), order.end(), 0);
  if (permuted) order = another_order(shape, w);
  const bool stepped = gaps && !grouped && w.flip();
  const std::uint32_t stepped_axis = rank == 0 ? 0 : w.below(static_cast<std::uint32_t>(rank));

  placement p;
  p.strides = shape;  // of the right length
  std::int64_t next = 1, lowest = 0, highest = 0;
  for (int i = rank; i-- > 0;) {
    const int axis = order[static_cast<std::size_t>(i)];
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t size = shape[axis];
    if (zero[a]) {
      p.strides[axis] = 0;
      continue;
    }
    if (stray && size <= 1) {  // no step is made along it
      constexpr std::int64_t any[] = {0, -7, 1, std::int64_t{1} << 40, -(std::int64_t{1} << 33)};
      p.strides[axis] = any[w.below(5)];
      continue;
    }
    const std::int64_t stride = stepped && a == stepped_axis ? next * (2 + w.below(2)) : next;
    p.strides[axis] = negative[a] ? -stride : stride;
    if (size > 1) (negative[a] ? lowest : highest) += p.strides[axis] * (size - 1);
    next = stride * std::max<std::int64_t>(size, 1);
    if (gaps) next += grouped ? group * (1 + w.below(3)) : 1 + w.below(9);
  }
  const std::int64_t start = shifted ? 1 + w.below(group - 1) : 0;
  p.offset = placement::margin + start - lowest;
  p.span = placement::margin + start - lowest + highest + 1 + placement::margin;
  return p;
}

std::size_t memory_image::add(const tensor_spec& spec, const placement& where, layout kind) {
  const std::size_t end = tensors_.empty() ? border : tensors_.back().begin + tensors_.back().bytes();
  const tensor& t = tensors_.emplace_back(tensor{spec, where, (end + alignment - 1) / alignment * alignment, kind});
  bytes_.resize(t.begin + t.bytes() + border, guard);
  return tensors_.size() - 1;
}

void memory_image::set(std::size_t number, const array& values) {
  const tensor& t = tensors_[number];
  with_element_size(t.spec.type, [&]<std::size_t Size>() {
    for_each_element(t.spec.shape, t.where, [&](std::int64_t index, std::int64_t offset) {
      std::memcpy(bytes_.data() + t.begin + static_cast<std::size_t>(offset) * Size,
                  values.bytes.data() + static_cast<std::size_t>(index) * Size, Size);
    });
  });
}

array memory_image::get(std::size_t number) const {
  const tensor& t = tensors_[number];
  array values(t.spec.type, shape_list(t.spec.shape.begin(), t.spec.shape.end()));
  with_element_size(t.spec.type, [&]<std::size_t Size>() {
    for_each_element(t.spec.shape, t.where, [&](std::int64_t index, std::int64_t offset) {
      std::memcpy(values.bytes.data() + static_cast<std::size_t>(index) * Size,
                  bytes_.data() + t.begin + static_cast<std::size_t>(offset) * Size, Size);
    });
  });
  return values;
}

tensor_view memory_image::view(std::size_t number, void* base, const device& where) const {
  const tensor& t = tensors_[number];
  const std::size_t at = t.begin + static_cast<std::size_t>(t.where.offset) * size_of(t.spec.type);
  return {static_cast<unsigned char*>(base) + at, t.spec.type, t.spec.shape, t.where.strides, where};
}

}  // namespace repdl::reference
