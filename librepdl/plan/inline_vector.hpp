// A vector whose first elements need no heap: a call of a few operands allocates nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace repdl::plan {

template <class T, std::size_t N>
class inline_vector {
  static_assert(std::is_trivially_copy_constructible_v<T> && std::is_trivially_destructible_v<T>);

 public:
  inline_vector() noexcept {}  // NOLINT: elements that nobody pushed are not touched
  inline_vector(const inline_vector& o) : many_(o.many_), size_(o.size_) {
    if (size_ <= N) std::uninitialized_copy_n(o.few_, size_, few_);
  }
  inline_vector& operator=(const inline_vector&) = delete;

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return size_ <= N ? few_ : many_.data(); }
  const T* data() const noexcept { return size_ <= N ? few_ : many_.data(); }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  const T& operator[](std::size_t i) const noexcept { return data()[i]; }

  void push_back(const T& x) {
    if (size_ < N) {
      std::construct_at(few_ + size_, x);
    } else {
      if (size_ == N) many_.assign(few_, few_ + N);
      many_.push_back(x);
    }
    ++size_;
  }

 private:
  union {
    T few_[N];
  };
  std::vector<T> many_;  // all of them, once there are more than N
  std::size_t size_ = 0;
};

}  // namespace repdl::plan
