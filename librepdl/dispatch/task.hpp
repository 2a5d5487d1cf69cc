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
  static constexpr std::size_t most_bytes = 2304;  ///< of an object; a wrapper of another work has its own

  work() = default;
  work(const work&) = delete;
  work& operator=(const work&) = delete;
  virtual ~work() = default;
  /// Of workspace.
  virtual plan::checked_size bytes() const { return 0; }
  /// As often as one likes. `workspace` is 256-byte aligned and has that many bytes.
  virtual void run(void* workspace) = 0;
};

/// Memory for one work.
template <std::size_t Bytes>
struct work_memory {
  alignas(16) std::byte data[Bytes];
};
/// Of any type: also for a wrapper around another work.
using task_memory = work_memory<work::most_bytes + 64>;

/// Holds one work of any type, in memory that it is given.
class task {
 public:
  explicit task(std::byte* memory) noexcept : memory_(memory) {}
  task(const task&) = delete;
  task& operator=(const task&) = delete;
  ~task() {
    if (work_ != nullptr) work_->~work();
  }
  template <class Work, class... Args>
  void emplace(Args&&... args) {
    static_assert(sizeof(Work) <= Work::most_bytes && Work::most_bytes <= sizeof(task_memory));
    static_assert(alignof(Work) <= alignof(task_memory));
    work_ = new (memory_) Work(std::forward<Args>(args)...);
  }
  work* operator->() noexcept { return work_; }
  /// From here on somebody else destroys the work.
  work* release() noexcept { return std::exchange(work_, nullptr); }

 private:
  std::byte* memory_;
  work* work_ = nullptr;
};

/// A task with its memory: no heap. (The memory is a base, so that it outlives the work.)
class stored_task : private task_memory, public task {
 public:
  stored_task() noexcept : task(task_memory::data) {}
};

}  // namespace repdl::dispatch
