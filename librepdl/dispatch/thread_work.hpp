// How much work a further thread of the CPU is worth.
#pragma once

#include <atomic>

namespace repdl::dispatch {

/// Nanoseconds of one thread's work, as estimated: a call wakes a further thread for each so many beyond the first. Waking a thread that
/// sleeps takes some 10 us, and on a busy machine, where it waits for a core, much longer: short calls stay on their own thread. Tests
/// that want threads at work on small tensors lower it. No bit of any result depends on it.
inline std::atomic<int> thread_work{50'000};

/// The sum of this thread's estimates, in nanoseconds. The numbers that they are made of stand at each call of worthwhile_threads
/// (backends/cpu); `./run bench threads` (bench/thread_estimates.cpp) prints what calls take beside what this says.
inline constinit thread_local double estimated = 0;

}  // namespace repdl::dispatch
