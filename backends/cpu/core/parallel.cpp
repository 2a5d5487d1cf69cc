// fork(): of the threads of a process the child has only the one that called it. An OpenMP runtime that has workers
// does not notice that they are gone, and its next parallel region waits for them for ever. A child of a process with
// more than one thread therefore does everything on the caller's thread; a child of a process with one thread, which
// cannot have had workers, is like any other process.
#include "backends/cpu/core/parallel.hpp"

#include <pthread.h>

#include <atomic>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

namespace repdl::cpu {
namespace {

// Whether this is the only thread; false where that is not known.
bool single_threaded() noexcept {
#if __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded != 0;
#else
  return false;
#endif
}

// Constant-initialised: valid before and after everything else in static storage.
std::atomic<bool> has_workers{false};   // at the last fork()
std::atomic<bool> workers_gone{false};  // in this process

// If a thread forks while there are others, every thread that forks at that time stores the same value.
void before_fork() { has_workers.store(!single_threaded(), std::memory_order_relaxed); }
void in_child() {
  if (has_workers.load(std::memory_order_relaxed)) workers_gone.store(true, std::memory_order_relaxed);
}

// The C library forgets the handlers when the library is unloaded.
[[maybe_unused]] const int registered = pthread_atfork(before_fork, nullptr, in_child);

thread_local const std::atomic<bool>* stop = nullptr;

}  // namespace

bool stopped() noexcept { return stop != nullptr && stop->load(std::memory_order_relaxed); }
stop_scope::stop_scope(const std::atomic<bool>* flag) noexcept : before_(stop) { stop = flag; }
stop_scope::~stop_scope() { stop = before_; }
const std::atomic<bool>* stop_scope::flag() noexcept { return stop; }

bool lost_workers() noexcept { return workers_gone.load(std::memory_order_relaxed); }

}  // namespace repdl::cpu
