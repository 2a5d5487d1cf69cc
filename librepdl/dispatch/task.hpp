// What a backend makes of a plan.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "librepdl/plan/checked_size.hpp"

namespace repdl::dispatch {

/// A plan with everything that its driver decided beforehand.
class work {
 public:
  work() = default;
  work(const work&) = delete;
  work& operator=(const work&) = delete;
  virtual ~work() = default;
  /// Of workspace.
  virtual plan::checked_size bytes() const { return 0; }
  /// As often as one likes. `workspace` is 256-byte aligned and has that many bytes.
  virtual void run(void* workspace) = 0;
};

/// Holds one work of any type, without a heap.
class task {
 public:
  task() = default;
  task(const task&) = delete;
  task& operator=(const task&) = delete;
  ~task() {
    if (work_ != nullptr) work_->~work();
  }
  template <class Work, class... Args>
  void emplace(Args&&... args) {
    static_assert(sizeof(Work) <= sizeof storage_ && alignof(Work) <= alignment);
    work_ = new (storage_) Work(std::forward<Args>(args)...);
  }
  work* operator->() noexcept { return work_; }

 private:
  static constexpr std::size_t alignment = 16;
  alignas(alignment) std::byte storage_[2304];
  work* work_ = nullptr;
};

}  // namespace repdl::dispatch
