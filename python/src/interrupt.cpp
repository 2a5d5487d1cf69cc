#include "interrupt.hpp"

#include <atomic>

namespace repdl::python {
namespace {

// Of the main thread's call: there is one at a time.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);
void (*pythons_handler)(int) = nullptr;

extern "C" void on_interrupt(int number) {
  pythons_handler(number);  // first, and on whatever thread: who sees the flag finds the signal
  interrupted.store(true, std::memory_order_release);
}

// Never freed.
nb::handle kept(const char* module, const char* name) {
  return nb::object(nb::module_::import_(module).attr(name)).release();
}

bool is_main_thread() {
  static const nb::handle get_ident = kept("threading", "get_ident");
  static const nb::handle main_thread = kept("threading", "main_thread");
  // Not kept: after fork() it is the thread that forked.
  const nb::object main = main_thread();
  return main.attr("ident").equal(get_ident());
}

// Of _signal: signal's own function looks for an enumerator first, which takes 25 us.
bool is_pythons_own_handler() {
  static const nb::handle getsignal = kept("_signal", "getsignal");
  static const nb::handle own = kept("_signal", "default_int_handler");
  return getsignal(SIGINT).is(own);
}

}  // namespace

interruptible::interruptible(bool long_call) {
  if (!long_call || cpu::stop_scope::flag() != nullptr || !is_main_thread() || !is_pythons_own_handler()) return;
  struct sigaction now {};
  if (::sigaction(SIGINT, nullptr, &before_) != 0 || (before_.sa_flags & SA_SIGINFO) != 0) return;
  if (before_.sa_handler == SIG_DFL || before_.sa_handler == SIG_IGN) return;
  pythons_handler = before_.sa_handler;
  interrupted.store(false, std::memory_order_relaxed);
  now = before_;
  now.sa_handler = on_interrupt;
  if (::sigaction(SIGINT, &now, nullptr) != 0) return;
  installed_ = true;
  scope_.emplace(&interrupted);
}

void interruptible::restore() noexcept {
  if (!installed_) return;
  installed_ = false;
  scope_.reset();
  struct sigaction now {};
  if (::sigaction(SIGINT, nullptr, &now) == 0 && now.sa_handler == on_interrupt) ::sigaction(SIGINT, &before_, nullptr);
}
interruptible::~interruptible() { restore(); }

void interruptible::raise_if_interrupted() {
  if (!installed_) return;
  restore();
  if (!interrupted.load(std::memory_order_acquire)) return;
  // Python's own handler raises it; where it did so elsewhere, or does not, the results are unspecified all the same.
  if (PyErr_CheckSignals() == 0) PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw nb::python_error();
}

}  // namespace repdl::python
