// The GPU of the CUDA tests, and tensors on a context's device that lie in memory in ways that callers are allowed to
// choose.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "librepdl/owning_tensor.hpp"
#include "reference/array.hpp"
#include "reference/placement.hpp"

namespace repdl::tests {

using reference::array;
using reference::shape_list;

inline constexpr device gpu{device_kind::cuda, 0};

// Says so where there is none.
inline bool has_gpu() {
  std::string why;
  for (const device_info& d : devices(&why)) {
    if (d.where.kind == device_kind::cuda) return true;
  }
  MESSAGE("skipped: " << why);
  return false;
}

using reference::layout;

// Those that outputs can have too: no two elements share memory.
inline constexpr layout layouts[] = {layout::contiguous, layout::shifted,   layout::gaps,
                                     layout::permuted,   layout::backwards, layout::mixed};

inline sizes to_sizes(const shape_list& s) { return sizes(std::span<const std::int64_t>(s)); }

// A tensor on a context's device, with guards around it and between its elements.
class placed_tensor {
 public:
  placed_tensor(context& ctx, dtype t, const shape_list& shape, layout l)
      : ctx_(ctx), image_(image_of({t, to_sizes(shape)}, l)), memory_(ctx, dtype::boolean, {image_.bytes().size()}) {
    upload();
  }
  placed_tensor(context& ctx, const array& a, layout l) : placed_tensor(ctx, a.type, a.shape, l) { set(a); }

  void set(const array& a) {
    image_.set(0, a);
    upload();
  }
  // Also checks that nothing beside the tensor was written.
  array get() {
    reference::memory_image now = image_;
    ctx_.copy(now.bytes().data(), memory_.view().data(), now.bytes().size());
    array a = now.get(0);
    reference::memory_image expected = image_;
    expected.set(0, a);
    CHECK(now.bytes() == expected.bytes());
    return a;
  }
  tensor_view view() { return image_.view(0, memory_.view().data(), ctx_.where()); }

 private:
  static reference::memory_image image_of(const tensor_spec& s, layout l) {
    reference::word_stream words(static_cast<std::uint64_t>(s.shape.size()),
                                 static_cast<std::uint64_t>(element_count(s.shape)));
    reference::memory_image image;
    image.add(s, reference::place(s.shape, l, words), l);
    return image;
  }
  void upload() { ctx_.copy(memory_.view().data(), image_.bytes().data(), image_.bytes().size()); }

  context& ctx_;
  reference::memory_image image_;
  tensor memory_;  // bytes
};

}  // namespace repdl::tests
