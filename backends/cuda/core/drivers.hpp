// What the CUDA executor and the kernel files share: the device, a call's surroundings, and the drivers, one per
// family.
//
// A driver plans a call once: it chooses kernels, fills in their parameters and lays out the workspace, without a call
// of CUDA. What it makes can then be run as often as one likes. A run only launches: it allocates nothing, waits for
// nothing and asks the device nothing, so that every operation can be captured in a CUDA graph. Launches go through
// launch_kernel (launch.cuh): each kernel is tested on the device before its first use, and every launch is checked.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "backends/cuda/core/device.hpp"
#include "librepdl/dispatch/backend.hpp"
#include "librepdl/plan/checked_size.hpp"

namespace repdl::cuda {

// Throws device_failure (out_of_memory for cudaErrorMemoryAllocation) unless the call succeeded. The message carries
// CUDA's name of the error and its text.
void check(cudaError_t status, std::string_view op, std::string_view what);

// Elements decided per tier, in device memory. Kernels add with integer atomics, so replays of a graph count too.
using counter = unsigned long long;
inline constexpr std::size_t counter_count = 7;        // one per tier, and
inline constexpr std::size_t undecided_counter = 4;    // elements that the last tier gave up on
inline constexpr std::size_t bad_index_counter = 5;    // indices out of range
inline constexpr std::size_t bad_weights_counter = 6;  // rows that nothing can be drawn from

// What a driver is given besides the plan.
struct job {
  dispatch::subject what;
  cudaStream_t stream;
  properties device;
  counter* counters;  // [counter_count]
  tier first_tier;
  int last_tier_bits;
  bool self_test;  // kernels may be untested
};

// Lays a workspace out in 256-byte aligned parts, once; each run sets the pointers to them. A count that is a product
// is given by its factors, take(to, a, b), which may not wrap.
class carver {
 public:
  carver() = default;
  carver(const carver&) = delete;  // it knows the places of pointers
  carver& operator=(const carver&) = delete;

  template <class T, class... Factors>
  void take(T*& to, Factors... factors) {
    parts_.at(count_++) = {&to, used_};
    used_ += plan::checked_size::product(factors..., sizeof(T)).rounded_up(256);
  }
  // What several layouts take lies in the same place: each is done with before the next begins.
  template <class... Layouts>
  void take_in_turn(const Layouts&... layouts) {
    const plan::checked_size from = used_;
    plan::checked_size most = from;
    ((used_ = from, layouts(), most = std::max(most, used_)), ...);
    used_ = most;
  }
  plan::checked_size used() const { return used_; }

  void place(void* workspace) const {
    for (std::size_t i = 0; i < count_; ++i) {
      const std::byte* const at = static_cast<std::byte*>(workspace) + parts_[i].offset.value();
      std::memcpy(parts_[i].pointer, &at, sizeof(at));
    }
  }

 private:
  struct part {
    void* pointer;
    plan::checked_size offset;
  };
  std::array<part, 16> parts_;  // more than any driver takes
  std::size_t count_ = 0;
  plan::checked_size used_;
};

// A planned call: what the driver decided, and its workspace.
class planned : public dispatch::work {
 public:
  plan::checked_size bytes() const final { return space.used(); }
  void run(void* workspace) final;  // on the device

 protected:
  explicit planned(const job& given) : j(given) {}
  virtual void enqueue() = 0;

  const job j;
  carver space;
};

// The grid of a kernel that needs all of its blocks; the driver starts at most 2^31 - 1.
unsigned grid_of(std::string_view op, std::int64_t blocks);

// The drivers: what they make of a plan.
void prepare(const plan::reduce_plan&, const job&, dispatch::task&);
void prepare(const plan::product_plan&, const job&, dispatch::task&);
void prepare(const plan::conv_plan&, const job&, dispatch::task&);
void prepare(const plan::pool_plan&, const job&, dispatch::task&);
void prepare(const plan::row_plan&, const job&, dispatch::task&);
void prepare(const plan::random_plan&, const job&, dispatch::task&);
void prepare(const plan::map_plan&, const job&, dispatch::task&);
void prepare(const plan::loss_plan&, const job&, dispatch::task&);
void prepare(const plan::scatter_plan&, const job&, dispatch::task&);
void prepare(const plan::nll_plan&, const job&, dispatch::task&);
void prepare(const plan::step_plan&, const job&, dispatch::task&);
void prepare(const plan::clip_plan&, const job&, dispatch::task&);
void prepare(const plan::sequence_plan&, const job&, dispatch::task&);
void prepare(const plan::upsample_plan&, const job&, dispatch::task&);
void prepare(const plan::interpolation_plan&, const job&, dispatch::task&);
void prepare(const plan::draw_plan&, const job&, dispatch::task&);
void prepare(const plan::scan_plan&, const job&, dispatch::task&);
void prepare(const plan::exponent_plan&, const job&, dispatch::task&);
void prepare(const plan::attention_plan&, const job&, dispatch::task&);

// Known answers on the current device: the floating-point modes that the kernels were compiled for, and the model of
// the fp64 matrix instruction that the bound in matmul.cu assumes. Waits. Returns what failed; empty: nothing did.
std::string test_arithmetic(cudaStream_t stream);

}  // namespace repdl::cuda
