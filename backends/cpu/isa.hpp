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
struct conv_kernels;    // conv.hpp
struct pool_kernels;    // pool.hpp
struct row_kernels;     // rows.hpp
struct step_kernels;    // step.hpp
struct random_kernels;  // random.hpp

struct instruction_set {
  const char* name;
  bool (*available)() noexcept;
  const map_kernels* map;
  const reduce_kernels* reduce;
  const matmul_kernels* matmul;
  const conv_kernels* conv;
  const pool_kernels* pool;
  const row_kernels* rows;
  const step_kernels* step;
  const random_kernels* random;
};

// From the slowest to the fastest.
std::span<const instruction_set> all_instruction_sets() noexcept;

// Elements decided per tier. Workers add once per call, not once per element.
struct counters {
  std::atomic<std::int64_t> elements[4] = {};
  std::atomic<std::int64_t> undecided{0};  // by the last tier: the executor makes the call fail
  void add(tier t, std::int64_t n) noexcept { elements[static_cast<int>(t)].fetch_add(n, std::memory_order_relaxed); }
};

// The drivers. Behind the API boundary: they trust their plans and do not throw.
void run_map(const plan::map_plan&, const dispatch::launch&, const map_kernels&, counters&) noexcept;
plan::checked_size reduce_workspace(const plan::reduce_plan&, const dispatch::launch&) noexcept;
void run_reduce(const plan::reduce_plan&, const dispatch::launch&, const reduce_kernels&, counters&) noexcept;
plan::checked_size matmul_workspace(const plan::matmul_plan&, const dispatch::launch&, const matmul_kernels&) noexcept;
void run_matmul(const plan::matmul_plan&, const dispatch::launch&, const matmul_kernels&, const reduce_kernels&,
                counters&) noexcept;
plan::checked_size random_workspace(const plan::random_plan&, const dispatch::launch&) noexcept;
void run_random(const plan::random_plan&, const dispatch::launch&, const random_kernels&, counters&) noexcept;
plan::checked_size conv_workspace(const plan::conv_plan&, const dispatch::launch&, const conv_kernels&) noexcept;
void run_conv(const plan::conv_plan&, const dispatch::launch&, const conv_kernels&, counters&) noexcept;
void run_pool(const plan::pool_plan&, const dispatch::launch&, const pool_kernels&, counters&) noexcept;
plan::checked_size row_workspace(const plan::row_plan&, const dispatch::launch&) noexcept;
void run_rows(const plan::row_plan&, const dispatch::launch&, const row_kernels&, counters&) noexcept;
void run_step(const plan::step_plan&, const dispatch::launch&, const step_kernels&, counters&) noexcept;

}  // namespace repdl::cpu
