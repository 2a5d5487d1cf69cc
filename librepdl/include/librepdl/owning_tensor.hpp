// Tensors that own their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "librepdl/context.hpp"
#include "librepdl/export.hpp"
#include "librepdl/tensor.hpp"

namespace repdl REPDL_EXPORT {

/// A std::vector, std::array, array or std::span of elements.
template <class Range>
concept element_range = requires(Range& r) {
  requires element_type<typename decltype(std::span(r))::value_type>;
};
template <element_range Range>
using element_in = typename decltype(std::span(std::declval<Range&>()))::value_type;

/// A row-major tensor in memory of its own, on the device and from the allocator of a context. It must not outlive the
/// context, which may be moved. Movable, not copyable; moved from, it has no elements and is an absent operand.
class tensor {
 public:
  /// The elements are not initialised. Throws negative_size, size_overflow, out_of_memory.
  tensor(context& ctx, dtype type, const sizes& shape);
  /// Filled from host memory: as many elements as the shape has, in row-major order.
  template <element_range Range>
  tensor(context& ctx, const Range& values, const sizes& shape)
      : tensor(ctx, dtype_of<element_in<const Range>>, shape) {
    copy_from(values);
  }
  tensor(tensor&& other) noexcept;
  tensor& operator=(tensor&& other) noexcept;
  ~tensor();

  dtype type() const noexcept { return view_.type(); }
  const sizes& shape() const noexcept { return view_.shape(); }
  std::int64_t count() const noexcept { return view_.count(); }
  /// All of it, as an operand or a result. Views do not own, so a temporary has none.
  tensor_view view() & noexcept { return view_; }
  const_tensor_view view() const& noexcept { return view_; }
  const_tensor_view view() const&& = delete;
  operator tensor_view() & noexcept { return view_; }
  operator const_tensor_view() const& noexcept { return view_; }
  operator const_tensor_view() const&& = delete;
  /// The context whose memory it is; null, moved from.
  context* handle() const noexcept;

  /// From and to host memory: as many elements as the tensor has, of its type, in row-major order. After everything
  /// launched; waits. Throws output_dtype, length_mismatch.
  template <element_range Range>
  void copy_from(const Range& values) {
    const std::span all(values);
    check(dtype_of<element_in<const Range>>, all.size());
    copy(view_.data(), all.data());
  }
  template <element_range Range>
  void copy_to(Range&& values) const {
    const std::span all(values);
    check(dtype_of<element_in<Range>>, all.size());
    copy(all.data(), view_.data());
  }
  /// A copy on the host.
  template <element_type T>
  std::vector<T> to_vector() const {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> is not an array of bool: use copy_to");
    std::vector<T> values(static_cast<std::size_t>(count()));
    copy_to(values);
    return values;
  }
  /// The element of a tensor that has one. Throws output_dtype, length_mismatch.
  template <element_type T>
  T item() const {
    T value{};
    copy_to(std::span<T>(&value, 1));
    return value;
  }

 private:
  void check(dtype type, std::size_t count) const;
  void copy(void* to, const void* from) const;
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(count()) * size_of(type()); }

  context::impl* owner_;
  tensor_view view_;
};

}  // namespace repdl
