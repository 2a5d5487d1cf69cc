// How tensors lie in memory: strides, where element 0 is, and what is around and between the elements. For tests,
// `repdl verify` and `repdl fuzz`, which need operands in every layout that callers may choose.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "librepdl/tensor.hpp"
#include "reference/array.hpp"
#include "reference/samples.hpp"

namespace repdl::reference {

enum class layout {
  contiguous,
  shifted,    ///< contiguous from an element that is aligned to no group of 4
  gaps,       ///< a slice of a larger tensor on every axis, at times with a step
  permuted,   ///< the axes in another order
  backwards,  ///< negative strides
  repeated,   ///< stride 0 along some axes: inputs only
  mixed       ///< any of these together; along axes of size 1 any stride
};
inline constexpr std::array every_layout = {layout::contiguous, layout::shifted,  layout::gaps, layout::permuted,
                                            layout::backwards,  layout::repeated, layout::mixed};
std::string_view name_of(layout l);

/// In elements; `margin` of them lie before the lowest and after the highest element of the tensor.
struct placement {
  static constexpr std::int64_t margin = 8;
  sizes strides;
  std::int64_t offset = 0;  ///< of element 0
  std::int64_t span = 0;    ///< of the memory, margins included
};

/// A placement of the kind. No two elements share memory, unless the kind is `repeated`, or `mixed` and may_repeat.
placement place(const sizes& shape, layout kind, word_stream& w, bool may_repeat = false);

/// Whether a tensor of this shape can be placed so that the kind is more than a name: permuted needs two axes with more
/// than one element.
bool shows(const sizes& shape, layout kind);

/// Calls use(index, offset) for every element, in row-major order.
template <class Use>
void for_each_element(const sizes& shape, const placement& p, const Use& use) {
  const int last = shape.size() - 1;
  for (const std::int64_t n : shape) {
    if (n == 0) return;
  }
  const std::int64_t inner = last < 0 ? 1 : shape[last], step = last < 0 ? 0 : p.strides[last];
  std::array<std::int64_t, max_rank> at{};
  std::int64_t offset = p.offset, index = 0;
  while (true) {
    for (std::int64_t i = 0; i < inner; ++i) use(index++, offset + i * step);
    int axis = last - 1;
    for (; axis >= 0; --axis) {
      auto& a = at[static_cast<std::size_t>(axis)];
      offset += p.strides[axis];
      if (++a < shape[axis]) break;
      offset -= a * p.strides[axis];
      a = 0;
    }
    if (axis < 0) return;
  }
}

/// Memory with tensors in it, each in a placement of its own. Every byte that belongs to no element is `guard`.
class memory_image {
 public:
  static constexpr unsigned char guard = 0xa5;
  static constexpr std::size_t border = 4096;  ///< bytes before the first tensor and after the last one

  struct tensor {
    tensor_spec spec;
    placement where;
    std::size_t begin;  ///< in bytes, of its margin; a multiple of 256
    layout kind;
    std::size_t bytes() const { return static_cast<std::size_t>(where.span) * size_of(spec.type); }
  };

  /// The number of the new tensor, whose elements are `guard` too.
  std::size_t add(const tensor_spec& spec, const placement& where, layout kind);
  void set(std::size_t number, const array& values);
  array get(std::size_t number) const;
  /// A view of the tensor in memory that holds this image at `base`.
  tensor_view view(std::size_t number, void* base, const device& where) const;

  const std::vector<tensor>& tensors() const { return tensors_; }
  std::vector<unsigned char>& bytes() { return bytes_; }
  const std::vector<unsigned char>& bytes() const { return bytes_; }

 private:
  std::vector<tensor> tensors_;
  std::vector<unsigned char> bytes_;
};

}  // namespace repdl::reference
