// Work handed out piece by piece.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "backends/cpu/core/parallel.hpp"

namespace repdl::cpu {

// Calls task(i, thread) for every i in [0, count), each once; workers take the next one as they finish, until the call is to end.
template <class Task>
void for_each_task(int threads, std::int64_t count, const Task& task) {
  if (count == 0) return;
  std::atomic<std::int64_t> next{0};
  parallel(static_cast<int>(std::min<std::int64_t>(threads, count)), [&](int thread, int) {
    for (;;) {
      const std::int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= count || stopped()) return;
      task(i, thread);
    }
  });
}

}  // namespace repdl::cpu
