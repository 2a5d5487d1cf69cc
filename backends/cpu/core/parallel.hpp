// OpenMP, in one place. The only file that knows it is OpenMP.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "backends/cpu/core/stop.hpp"
#include "librepdl/context.hpp"
#include "librepdl/dispatch/thread_work.hpp"
#include "librepdl/num/fp_environment.hpp"

namespace repdl::cpu {

inline int default_threads() noexcept { return std::min(omp_get_max_threads(), max_threads); }

// How many of `most` threads are worth waking for `count` elements that take one thread about `each` nanoseconds. The estimates are
// of AVX-512 and operands in cache (`./run bench threads` measures them): where a thread is slower it has more to do before there is a
// second one.
inline int worthwhile_threads(int most, double count, double each) noexcept {
  const double work = count * each, piece = dispatch::thread_work.load(std::memory_order_relaxed);
  dispatch::estimated += work;
  return work >= piece * most ? std::max(most, 1) : std::max(static_cast<int>(work / piece), 1);
}

// Whether this process was forked from one with threads: workers that OpenMP would wait for may not exist
// (parallel.cpp).
bool lost_workers() noexcept;

// Calls body(thread, threads) on `threads` workers or fewer, each under the library's floating-point environment: OpenMP
// workers have their own, the caller's was set by the context (context_impl.hpp). body must not throw.
template <class Body>
void parallel(int threads, Body&& body) {
  if (threads <= 1 || lost_workers()) {
    body(0, 1);
    return;
  }
  const std::atomic<bool>* const stop = stop_scope::flag();
#pragma omp parallel num_threads(threads)
  {
    const num::fp_environment_guard guard;
    const stop_scope the_callers(stop);
    body(omp_get_thread_num(), omp_get_num_threads());
  }
}

struct range {
  std::int64_t begin;
  std::int64_t end;
};

// The part of [0, n) that belongs to one of `parts` workers, in multiples of `grain`.
inline range share(std::int64_t n, int part, int parts, std::int64_t grain = 1) noexcept {
  if (parts == 1) return {0, n};
  const std::int64_t grains = (n + grain - 1) / grain;
  const std::int64_t begin = grains * part / parts * grain;
  const std::int64_t end = grains * (part + 1) / parts * grain;
  return {std::min(begin, n), std::min(end, n)};
}

// Calls use(piece) for pieces of so many, the last of which may be shorter, until the call is to end.
template <class Use>
void in_pieces(range mine, std::int64_t piece, const Use& use) {
  for (std::int64_t first = mine.begin; first < mine.end && !stopped(); first += piece) {
    use(range{first, std::min(first + piece, mine.end)});
  }
}

}  // namespace repdl::cpu
