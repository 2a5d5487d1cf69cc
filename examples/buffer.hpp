// A tensor that owns its memory, on the device of a context. The library's own views never own.
#pragma once

#include <cstddef>
#include <librepdl/librepdl.hpp>
#include <span>
#include <utility>
#include <vector>

namespace examples {

/// Row-major. Movable; may not outlive its context.
class buffer {
 public:
  buffer(repdl::context& ctx, repdl::dtype type, const repdl::sizes& shape)
      : ctx_(&ctx),
        bytes_(static_cast<std::size_t>(repdl::element_count(shape)) * repdl::size_of(type)),
        view_(bytes_ == 0 ? nullptr : ctx.allocate(bytes_), type, shape, ctx.where()) {}
  /// Filled from the host.
  template <repdl::element T>
  buffer(repdl::context& ctx, const std::vector<T>& values, const repdl::sizes& shape)
      : buffer(ctx, repdl::dtype_of<T>, shape) {
    write(values);
  }
  buffer(buffer&& other) noexcept
      : ctx_(other.ctx_), bytes_(std::exchange(other.bytes_, 0)), view_(std::exchange(other.view_, {})) {}
  buffer& operator=(buffer&& other) noexcept {
    std::swap(ctx_, other.ctx_);
    std::swap(bytes_, other.bytes_);
    std::swap(view_, other.view_);
    return *this;
  }
  ~buffer() {
    if (bytes_ != 0) ctx_->deallocate(view_.data(), bytes_);
  }

  /// As an operand or a result of any operation.
  const repdl::tensor_view& view() const noexcept { return view_; }
  operator const repdl::tensor_view&() const noexcept { return view_; }

  /// To and from the host; both wait. `values` has as many elements as the tensor.
  template <repdl::element T>
  void write(const std::vector<T>& values) {
    if (bytes_ != 0) ctx_->copy(view_.data(), values.data(), bytes_);
  }
  template <repdl::element T>
  std::vector<T> read() const {
    std::vector<T> values(static_cast<std::size_t>(view_.count()));
    if (bytes_ != 0) ctx_->copy(values.data(), view_.data(), bytes_);
    return values;
  }

 private:
  repdl::context* ctx_;
  std::size_t bytes_;
  repdl::tensor_view view_;
};

}  // namespace examples
