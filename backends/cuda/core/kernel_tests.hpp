// Kernels are tested on each device before their first use in the process.
//
// A compiler's or a driver's fault need not touch arithmetic: nvcc once read the sizes of axes from the wrong place
// (docs/nvcc-parameter-loop.md), and a driver compiles PTX for GPUs that nobody tried. So nothing is trusted: the first
// launch of a kernel runs small calls of the operation that reach it, on a stream of its own, and compares every byte
// with the CPU's (librepdl/dispatch/kernel_tests.hpp). A difference or a device error refuses the device for the rest
// of the process.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/core/drivers.hpp"

namespace repdl::cuda {

inline constexpr int most_devices = 64;

// While a stream of this process is being captured, allocating and waiting are forbidden to threads that do not ask for
// less protection. For work that touches no stream but its own.
class relaxed_capture {
 public:
  relaxed_capture() {
    check(cudaThreadExchangeStreamCaptureMode(&mode_), "context", "cudaThreadExchangeStreamCaptureMode");
  }
  ~relaxed_capture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  relaxed_capture(const relaxed_capture&) = delete;
  relaxed_capture& operator=(const relaxed_capture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// A kernel of this build. Records are static objects and know each other.
class kernel_record {
 public:
  kernel_record(const char* signature, const void* kernel);
  kernel_record(const kernel_record&) = delete;
  kernel_record& operator=(const kernel_record&) = delete;

  // "map_strided<elementwise<ops::exp, float> >"
  std::string name() const;
  const void* kernel() const { return kernel_; }
  const kernel_record* next() const { return next_; }
  bool tested(int device) const { return tested_[static_cast<std::size_t>(device)].load(std::memory_order_acquire); }
  void set_tested(int device) { tested_[static_cast<std::size_t>(device)].store(true, std::memory_order_release); }

 private:
  const char* signature_;
  const void* kernel_;
  const kernel_record* next_;
  std::array<std::atomic<bool>, most_devices> tested_{};
};
// The first of all records.
const kernel_record* kernel_records();

// Whether a device failed a test.
inline std::array<std::atomic<bool>, most_devices> refused{};
// Throws error_site::self_test if it did.
[[noreturn]] void fail_refused(int device);
inline void check_trusted(int device) {
  if (refused[static_cast<std::size_t>(device)].load(std::memory_order_acquire)) fail_refused(device);
}
// The arithmetic of the device (test_arithmetic), once per process; on a stream of its own. Throws as check_trusted.
void test_device(int device);

// Whether to launch.
bool test_before_launch(kernel_record& record, const job& j);
inline bool before_launch(kernel_record& record, const job& j) {
  return (!j.self_test && record.tested(j.device.index)) || test_before_launch(record, j);
}

// All tests of all operations; see dispatch::executor::test_kernels.
dispatch::kernel_report test_all_kernels(int device);

}  // namespace repdl::cuda
