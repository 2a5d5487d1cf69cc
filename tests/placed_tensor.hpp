// The GPU of the CUDA tests, and tensors on a context's device that lie in memory in ways that callers are allowed to
// choose.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "librepdl/context.hpp"
#include "reference/array.hpp"

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

// How a tensor lies in memory.
enum class layout { contiguous, shifted, gaps, reversed_axes, backwards };
inline constexpr layout layouts[] = {layout::contiguous, layout::shifted, layout::gaps, layout::reversed_axes,
                                     layout::backwards};

struct placement {
  sizes strides;
  std::int64_t offset = 0;  // of element 0, in elements
  std::int64_t span = 0;    // elements of memory
};

inline placement place(const shape_list& shape, layout l) {
  placement p;
  const int rank = static_cast<int>(shape.size());
  for (int i = 0; i < rank; ++i) p.strides.push_back(1);
  std::int64_t next = l == layout::gaps ? 3 : 1;
  const auto assign = [&](int i) {
    p.strides[i] = next;
    next *= std::max<std::int64_t>(shape[static_cast<std::size_t>(i)], 1);
    if (l == layout::gaps) next += 5;
  };
  if (l == layout::reversed_axes) {
    for (int i = 0; i < rank; ++i) assign(i);
  } else {
    for (int i = rank - 1; i >= 0; --i) assign(i);
  }
  p.span = next + 8;
  if (l == layout::shifted) p.offset = 1;
  if (l == layout::backwards && rank > 0 && shape[static_cast<std::size_t>(rank - 1)] > 0) {
    p.offset = (shape[static_cast<std::size_t>(rank - 1)] - 1) * p.strides[rank - 1];
    p.strides[rank - 1] = -p.strides[rank - 1];
  }
  return p;
}

inline std::int64_t element_offset(const placement& p, const shape_list& shape, std::int64_t index) {
  std::int64_t at = p.offset;
  for (std::size_t i = shape.size(); i-- > 0;) {
    at += index % shape[i] * p.strides[static_cast<int>(i)];
    index /= shape[i];
  }
  return at;
}

inline sizes to_sizes(const shape_list& s) { return sizes(std::span<const std::int64_t>(s)); }

// A tensor on a context's device with a copy of its memory on the host.
class tensor {
 public:
  tensor(context& ctx, dtype t, const shape_list& shape, layout l)
      : ctx_(ctx),
        type_(t),
        shape_(shape),
        where_(place(shape, l)),
        bytes_(static_cast<std::size_t>(where_.span) * size_of(t), 0xa5) {
    data_ = ctx_.allocate(bytes_.size());
    ctx_.copy(data_, bytes_.data(), bytes_.size());
  }
  tensor(context& ctx, const array& a, layout l) : tensor(ctx, a.type, a.shape, l) { set(a); }
  tensor(const tensor&) = delete;
  tensor& operator=(const tensor&) = delete;
  ~tensor() { ctx_.deallocate(data_, bytes_.size()); }

  void set(const array& a) {
    const std::size_t n = size_of(type_);
    for (std::int64_t i = 0; i < a.count(); ++i) {
      std::memcpy(bytes_.data() + static_cast<std::size_t>(element_offset(where_, shape_, i)) * n,
                  a.bytes.data() + static_cast<std::size_t>(i) * n, n);
    }
    ctx_.copy(data_, bytes_.data(), bytes_.size());
  }
  // Also checks that nothing beside the tensor was written.
  array get() {
    const std::size_t n = size_of(type_);
    std::vector<unsigned char> now(bytes_.size());
    ctx_.copy(now.data(), data_, now.size());
    array a(type_, shape_);
    for (std::int64_t i = 0; i < a.count(); ++i) {
      const std::size_t at = static_cast<std::size_t>(element_offset(where_, shape_, i)) * n;
      std::memcpy(a.bytes.data() + static_cast<std::size_t>(i) * n, now.data() + at, n);
      std::memcpy(now.data() + at, bytes_.data() + at, n);
    }
    CHECK(now == bytes_);
    return a;
  }
  tensor_view view() const {
    return tensor_view(static_cast<unsigned char*>(data_) + static_cast<std::size_t>(where_.offset) * size_of(type_),
                       type_, to_sizes(shape_), where_.strides, ctx_.where());
  }

 private:
  context& ctx_;
  dtype type_;
  shape_list shape_;
  placement where_;
  std::vector<unsigned char> bytes_;
  void* data_ = nullptr;
};

}  // namespace repdl::tests
