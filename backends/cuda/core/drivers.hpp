// What the CUDA executor and the kernel files share: the device, one run's surroundings, and the drivers, one per
// family.
//
// A driver only launches: it allocates nothing, waits for nothing and asks the device nothing, so that every operation
// can be captured in a CUDA graph. Launches go through launch_kernel (launch.cuh): each kernel is tested on the device
// before its first use, and every launch is checked.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "librepdl/dispatch/backend.hpp"
#include "librepdl/plan/checked_size.hpp"

namespace repdl::cuda {

// Throws device_failure (out_of_memory for cudaErrorMemoryAllocation) unless the call succeeded. The message carries
// CUDA's name of the error and its text.
void check(cudaError_t status, std::string_view op, std::string_view what);
struct properties {
  int index;
  int multiprocessors;
  int capability;  // 90 for 9.0
  std::string name;
  dispatch::kernel_choice choice{};
};

// Elements decided per tier, in device memory. Kernels add with integer atomics, so replays of a graph count too.
using counter = unsigned long long;
inline constexpr std::size_t counter_count = 5;      // one per tier, and
inline constexpr std::size_t undecided_counter = 4;  // elements that the last tier gave up on

struct job {
  dispatch::subject what;
  cudaStream_t stream;
  const properties& device;
  counter* counters;  // [counter_count]
  tier first_tier;
  int last_tier_bits;
  std::byte* workspace;
  bool self_test;  // kernels may be untested
};

// Hands out 256-byte aligned parts of the workspace; with a null base it only counts. A count that is a product is
// given by its factors, take<T>(a, b), which may not wrap.
class carver {
 public:
  explicit carver(std::byte* base) : base_(base) {}
  template <class T, class... Factors>
  T* take(Factors... factors) {
    const plan::checked_size at = used_;
    used_ += plan::checked_size::product(factors..., sizeof(T)).rounded_up(256);
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + at.value());
  }
  plan::checked_size used() const { return used_; }

 private:
  std::byte* base_;
  plan::checked_size used_;
};

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

// The number of blocks of a grid-stride loop over `items` block-sized pieces.
inline unsigned grid_for(const properties& d, std::int64_t items, int blocks_per_multiprocessor) {
  return static_cast<unsigned>(
      std::clamp<std::int64_t>(items, 1, std::int64_t{d.multiprocessors} * blocks_per_multiprocessor));
}

// The grid of a kernel that needs all of its blocks; the driver starts at most 2^31 - 1.
unsigned grid_of(std::string_view op, std::int64_t blocks);

// The drivers. Those with a workspace say how many bytes.
#define REPDL_DRIVER(family) void run(const plan::family##_plan&, const job&);
REPDL_FAMILIES(REPDL_DRIVER)
#undef REPDL_DRIVER
plan::checked_size workspace(const plan::reduce_plan&, const properties&);
plan::checked_size workspace(const plan::matmul_plan&, const properties&);
plan::checked_size workspace(const plan::conv_plan&, const properties&);
plan::checked_size workspace(const plan::row_plan&, const properties&);
plan::checked_size workspace(const plan::random_plan&, const properties&);
template <class Plan>
plan::checked_size workspace(const Plan&, const properties&) {
  return 0;
}

// Known answers on the current device: the floating-point modes that the kernels were compiled for, and the model of
// the fp64 matrix instruction that the bound in matmul.cu assumes. Waits. Returns what failed; empty: nothing did.
std::string test_arithmetic(cudaStream_t stream);

}  // namespace repdl::cuda
