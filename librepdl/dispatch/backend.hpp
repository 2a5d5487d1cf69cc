// What a backend is. This interface belongs to the library (so that nothing in librepdl/ includes backends/); the list
// of backends in the build is defined in backends/backends.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "librepdl/context.hpp"
#include "librepdl/dispatch/task.hpp"
#include "librepdl/plan/families.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::dispatch {

/// What was called: an operation, and the formats of its first input (elementwise: of the call; binary32 where there is none) and
/// of its first output.
struct subject {
  ops::op_id op;
  dtype in;
  dtype out;
  std::string_view name() const;
  friend auto operator<=>(const subject&, const subject&) = default;
};

/// Self-tests are small calls; these make a backend choose what it chooses for large ones and on other devices.
struct kernel_choice {
  bool wide = false;        ///< 64-bit indices, the widest numbers, and calls in parts, though it would do without
  int multiprocessors = 0;  ///< choose as on a device with so many; 0: as on this one
  int tile = -1;       ///< of a product that has several shapes of tiles, the one of this number; -1: the fastest one
  bool split = false;  ///< elementwise: as a list of calls; with tile: cut the product's sums into parts
  product_engine engine = product_engine::any;
  bool dry = false;  ///< launch nothing: only to see which kernels are chosen
};

/// What the tests of a backend's kernels showed.
struct kernel_report {
  struct line {
    subject what;
    int groups = 0;   ///< of calls
    int kernels = 0;  ///< that were reached for the first time
    double milliseconds = 0;
    double slowest_group = 0;  ///< milliseconds
    double loading = 0;        ///< milliseconds in which the driver loaded or compiled; not in the others
  };
  double preparation = 0;  ///< milliseconds before the first context was there
  std::vector<line> lines;
  int kernels = 0;                     ///< of the build
  std::vector<std::string> unreached;  ///< by no test
};

/// What a driver is given besides the plan.
struct launch {
  int threads;   // CPU: >= 1
  void* stream;  // CUDA
  tier first_tier;
  int last_tier_bits;
  const kernel_choice* self_test;  // not null: a call of a self-test
  subject what{};                  // CUDA: whose self-tests are looked at first
  product_engine products = product_engine::any;
};

/// Each backend runs every family of operations. A context owns one executor.
class executor {
 public:
  virtual ~executor() = default;

  virtual const std::string& isa() const noexcept = 0;
  virtual int threads() const noexcept { return 1; }

  /// Makes of a plan what can be run. The task belongs to this executor and refers to the plan, which outlives it, and its operands.
#define REPDL_PREPARE(family) virtual void prepare(const plan::family##_plan&, const launch&, task&) = 0;
  REPDL_FAMILIES(REPDL_PREPARE)
#undef REPDL_PREPARE

  /// Waits for everything launched on the context's stream.
  virtual void synchronize() = 0;
  virtual statistics read_statistics() = 0;
  virtual void reset_statistics() = 0;
  /// Copies between the host and the device (either way); waits.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  /// Runs the self-test of every kernel now, not at its first use. Throws error_site::self_test.
  virtual kernel_report test_kernels() { return {}; }
};

struct backend {
  device_kind kind;
  std::vector<device_info> (*devices)(std::string* why_none);
  /// Validates isa and device index; throws.
  std::unique_ptr<executor> (*open)(const context_options&);
  allocator& (*default_allocator)();
};

/// Throws error_site::undecided.
[[noreturn]] void undecided(std::int64_t elements, int bits);

/// The backends in this build.
std::span<const backend> backends() noexcept;

}  // namespace repdl::dispatch
