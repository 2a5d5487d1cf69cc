// The loops of prefixes of one instruction set.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/core/isa.hpp"

namespace repdl::cpu {

// What decides the elements of a line that the loop leaves: it writes them, and counts them.
class scan_rest {
 public:
  virtual void decide(std::int64_t i) noexcept = 0;

 protected:
  ~scan_rest() = default;
};

struct scan_kernels {
  // One line. by_first: whether the loop is to decide anything but what is special.
  void (*run)(const plan::scan_plan&, const void* in, void* out, bool by_first, scan_rest&, tally&) noexcept;
  // One line of integers.
  void (*run_integers)(const plan::scan_plan&, const void* in, void* out, tally&) noexcept;
};

}  // namespace repdl::cpu
