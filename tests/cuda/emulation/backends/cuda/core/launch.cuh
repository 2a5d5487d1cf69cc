// Launches of emulated kernels (tests/cuda/emulation/emulation.hpp).
#pragma once

#include <tuple>

#include "backends/cuda/core/drivers.hpp"

namespace repdl::cuda {

template <auto Kernel, class... Args>
void launch_kernel(const job&, std::int64_t blocks, int threads, std::size_t shared_bytes, const Args&... args) {
  // Nothing that a kernel reads and has not written is a number.
  std::vector<unsigned char> memory(shared_bytes + 256);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  emulation::shared_memory = memory.data() + (256 - begin % 256) % 256;
  emulation::block_size.x = static_cast<unsigned>(threads);
  emulation::grid_size.x = static_cast<unsigned>(blocks);
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::memset(emulation::shared_memory, 0xff, shared_bytes);
    emulation::block_at.x = static_cast<unsigned>(b);
    emulation::block::current().run(threads, [&] { Kernel(args...); });
  }
}

// A call that is one launch.
template <auto Kernel, class... Args>
class planned_launch final : public planned {
 public:
  planned_launch(const job& given, std::int64_t blocks, int threads, const Args&... args)
      : planned(given), blocks_(blocks), threads_(threads), args_(args...) {}

 private:
  void enqueue() override {
    std::apply([&](const Args&... args) { launch_kernel<Kernel>(j, blocks_, threads_, 0, args...); }, args_);
  }

  const std::int64_t blocks_;
  const int threads_;
  const std::tuple<Args...> args_;
};
template <auto Kernel, class... Args>
void plan_launch(dispatch::task& t, const job& j, std::int64_t blocks, int threads, const Args&... args) {
  t.emplace<planned_launch<Kernel, Args...>>(j, blocks, threads, args...);
}

// One after the other.
template <auto Kernel, class... Args>
void launch_behind(const job& j, std::int64_t blocks, int threads, const Args&... args) {
  launch_kernel<Kernel>(j, blocks, threads, 0, args...);
}
inline void wait_for_former() {}
// Blocks in clusters are not emulated.
template <auto Kernel>
inline constexpr int record_of = 0;
bool before_launch(int, const job&);
template <auto Kernel, class... Args>
void launch_with(cudaLaunchAttribute, const job&, std::int64_t, int, const Args&...);

// The dynamic shared memory of a block.
template <class Memory>
Memory& memory_of_block() {
  return *reinterpret_cast<Memory*>(emulation::shared_memory);
}

inline void count_elements(counter* counters, tier t, std::int64_t n) {
  counters[static_cast<int>(t)] += static_cast<counter>(n);
}

inline constexpr unsigned full_warp = 0xffffffffu;

inline int lane_of_thread() { return emulation::block::current().thread() % 32; }

}  // namespace repdl::cuda
