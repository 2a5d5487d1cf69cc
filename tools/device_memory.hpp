// Memory on a context's device, filled from and read back to the host.
#pragma once

#include <cstddef>
#include <utility>

#include "librepdl/context.hpp"

namespace repdl::tools {

/// Owns; movable; may not outlive its context. Copies wait: this is for tools, not for speed.
class device_memory {
 public:
  device_memory(context& ctx, std::size_t bytes)
      : ctx_(&ctx), bytes_(bytes), data_(bytes == 0 ? nullptr : ctx.allocate(bytes)) {}
  device_memory(device_memory&& o) noexcept : ctx_(o.ctx_), bytes_(o.bytes_), data_(std::exchange(o.data_, nullptr)) {}
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  ~device_memory() {
    if (data_ != nullptr) ctx_->deallocate(data_, bytes_);
  }

  void* data() const noexcept { return data_; }
  void upload(const void* from) {
    if (bytes_ > 0) ctx_->copy(data_, from, bytes_);
  }
  void download(void* to) const {
    if (bytes_ > 0) ctx_->copy(to, data_, bytes_);
  }

 private:
  context* ctx_;
  std::size_t bytes_;
  void* data_;
};

}  // namespace repdl::tools
