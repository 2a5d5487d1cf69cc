// Ctrl-C in a long call of the CPU's: the call ends, its results unspecified, and KeyboardInterrupt is raised.
#pragma once

#include <csignal>
#include <optional>

#include "backends/cpu/core/stop.hpp"
#include "python.hpp"

namespace repdl::python {

// While it lives, SIGINT breaks off the calls of this thread, if that is Python's main one, where Python runs handlers, and the handler is
// Python's own: of another nobody knows whether it raises. Python cannot run any while C++ computes; so this one, for the time of the
// call, notes the signal for the drivers, and then does what Python's does.
class interruptible {
 public:
  // The interpreter's lock is held.
  explicit interruptible(bool long_call);
  ~interruptible();
  interruptible(const interruptible&) = delete;
  interruptible& operator=(const interruptible&) = delete;
  // Raises KeyboardInterrupt if the signal came. The interpreter's lock is held.
  void raise_if_interrupted();

 private:
  void restore() noexcept;
  bool installed_ = false;
  struct sigaction before_ {};
  std::optional<cpu::stop_scope> scope_;
};

}  // namespace repdl::python
