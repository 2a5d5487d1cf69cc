// The GPU of the CUDA tests, and tensors on a context's device that lie in memory in ways that callers are allowed to
// choose.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "librepdl/context.hpp"
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
class tensor {
 public:
  tensor(context& ctx, dtype t, const shape_list& shape, layout l) : ctx_(ctx) {
    reference::word_stream words(shape.size(), static_cast<std::uint64_t>(reference::count_of(shape)));
    memory_.add({t, to_sizes(shape)}, reference::place(to_sizes(shape), l, words), l);
    data_ = ctx_.allocate(memory_.bytes().size());
    upload();
  }
  tensor(context& ctx, const array& a, layout l) : tensor(ctx, a.type, a.shape, l) { set(a); }
  tensor(const tensor&) = delete;
  tensor& operator=(const tensor&) = delete;
  ~tensor() { ctx_.deallocate(data_, memory_.bytes().size()); }

  void set(const array& a) {
    memory_.set(0, a);
    upload();
  }
  // Also checks that nothing beside the tensor was written.
  array get() {
    reference::memory_image now = memory_;
    ctx_.copy(now.bytes().data(), data_, now.bytes().size());
    const array a = now.get(0);
    reference::memory_image expected = memory_;
    expected.set(0, a);
    CHECK(now.bytes() == expected.bytes());
    return a;
  }
  tensor_view view() const { return memory_.view(0, data_, ctx_.where()); }

 private:
  void upload() { ctx_.copy(data_, memory_.bytes().data(), memory_.bytes().size()); }

  context& ctx_;
  reference::memory_image memory_;
  void* data_ = nullptr;
};

}  // namespace repdl::tests
