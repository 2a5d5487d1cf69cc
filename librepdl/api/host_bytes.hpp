// The bytes of a view on the host, wherever it is.
#pragma once

#include <cstddef>
#include <vector>

#include "librepdl/tensor.hpp"

namespace repdl::api {

// From a GPU, everything between the view's first and last byte comes over in one copy.
class host_bytes {
 public:
  // copy(to, from, bytes): from the view's device.
  template <class Copy>
  host_bytes(const const_tensor_view& v, const Copy& copy) : origin_(static_cast<const std::byte*>(v.data())) {
    if (v.where().kind == device_kind::cpu || v.count() == 0) return;
    std::int64_t low = 0;
    std::int64_t high = 0;
    for (int a = 0; a < v.rank(); ++a) {
      const std::int64_t reach = v.strides()[a] * (v.shape()[a] - 1);
      (reach < 0 ? low : high) += reach;
    }
    const auto size = static_cast<std::int64_t>(size_of(v.type()));
    copied_.resize(static_cast<std::size_t>((high - low + 1) * size));
    copy(copied_.data(), origin_ + low * size, copied_.size());
    origin_ = copied_.data() - low * size;
  }
  host_bytes(const host_bytes&) = delete;
  host_bytes& operator=(const host_bytes&) = delete;

  // Where the view's first element is; the others lie from there as its strides say.
  const std::byte* origin() const noexcept { return origin_; }

 private:
  const std::byte* origin_;
  std::vector<std::byte> copied_;
};

}  // namespace repdl::api
