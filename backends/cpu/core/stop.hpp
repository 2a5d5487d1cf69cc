// Breaking a call off: its results are then unspecified, and nothing else. Who calls the library says where its threads look; drivers
// ask between pieces of work, and leave out what has no result that somebody needs to go on (an index, a position).
#pragma once

#include <atomic>

namespace repdl::cpu {

// Whether the calls of this thread, or the call that it works for, are to end.
bool stopped() noexcept;

// While it lives, the calls of this thread end soon after the flag is true; null: they go on.
class stop_scope {
 public:
  explicit stop_scope(const std::atomic<bool>* flag) noexcept;
  ~stop_scope();
  stop_scope(const stop_scope&) = delete;
  stop_scope& operator=(const stop_scope&) = delete;
  // Of this thread.
  static const std::atomic<bool>* flag() noexcept;

 private:
  const std::atomic<bool>* before_;
};

}  // namespace repdl::cpu
