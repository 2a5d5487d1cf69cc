// A vector whose first elements need no heap: a call of a few operands allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace repdl::plan {

template <class T, std::size_t N>
class inline_vector {
 public:
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return size_ <= N ? few_.data() : many_.data(); }
  const T* data() const noexcept { return size_ <= N ? few_.data() : many_.data(); }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  const T& operator[](std::size_t i) const noexcept { return data()[i]; }

  void push_back(const T& x) {
    if (size_ < N) {
      few_[size_] = x;
    } else {
      if (size_ == N) many_.assign(few_.begin(), few_.end());
      many_.push_back(x);
    }
    ++size_;
  }

 private:
  std::array<T, N> few_;
  std::vector<T> many_;  // all of them, once there are more than N
  std::size_t size_ = 0;
};

}  // namespace repdl::plan
