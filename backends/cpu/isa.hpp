// The CPU backend's instruction sets. Each kernel file is compiled once per set and exports one table per family; the
// drivers (map.cpp, reduce.cpp, ...) are compiled once and hold everything that is not an inner loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "librepdl/context.hpp"
#include "librepdl/dispatch/backend.hpp"

namespace repdl::cpu {

struct map_kernels;     // map.hpp
struct reduce_kernels;  // reduce.hpp
struct matmul_kernels;  // matmul.hpp

struct instruction_set {
  const char* name;
  bool (*available)() noexcept;
  const map_kernels* map;
  const reduce_kernels* reduce;
  const matmul_kernels* matmul;
};

// From the slowest to the fastest.
std::span<const instruction_set> all_instruction_sets() noexcept;

// Elements decided per tier. Workers add once per call, not once per element.
struct counters {
  std::atomic<std::int64_t> elements[4] = {};
  void add(tier t, std::int64_t n) noexcept { elements[static_cast<int>(t)].fetch_add(n, std::memory_order_relaxed); }
};

// The drivers. Behind the API boundary: they trust their plans and do not throw.
void run_map(const plan::map_plan&, const dispatch::launch&, const map_kernels&, counters&) noexcept;
std::size_t reduce_workspace(const plan::reduce_plan&, const dispatch::launch&) noexcept;
void run_reduce(const plan::reduce_plan&, const dispatch::launch&, const reduce_kernels&, counters&) noexcept;
std::size_t matmul_workspace(const plan::matmul_plan&, const dispatch::launch&, const matmul_kernels&) noexcept;
void run_matmul(const plan::matmul_plan&, const dispatch::launch&, const matmul_kernels&, counters&) noexcept;
std::size_t random_workspace(const plan::random_plan&, const dispatch::launch&) noexcept;
void run_random(const plan::random_plan&, const dispatch::launch&, counters&) noexcept;

}  // namespace repdl::cpu
