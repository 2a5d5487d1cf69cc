// The CPU backend's instruction sets. Each kernel file is compiled once per set and exports one table per family; the
// drivers (map.cpp, reduce.cpp, ...) are compiled once and hold everything that is not an inner loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <type_traits>

#include "backends/cpu/core/families.hpp"
#include "librepdl/context.hpp"
#include "librepdl/dispatch/backend.hpp"

namespace repdl::cpu {

struct instruction_set {
  const char* name;
  bool (*available)() noexcept;
#define REPDL_TABLE(family) const family##_kernels* family;
  REPDL_FAMILIES(REPDL_TABLE)
#undef REPDL_TABLE
};

// From the slowest to the fastest.
std::span<const instruction_set> all_instruction_sets() noexcept;

// Elements decided per tier, and by none, of one worker.
struct tally {
  std::int64_t elements[4] = {};
  std::int64_t undecided = 0;
  void add(tier t, std::int64_t n) noexcept { elements[static_cast<int>(t)] += n; }
};

// The same of a context. Workers add once per call, not once per element.
struct counters {
  std::atomic<std::int64_t> elements[4] = {};
  std::atomic<std::int64_t> undecided{0};  // by the last tier
  void add(tier t, std::int64_t n) noexcept { elements[static_cast<int>(t)].fetch_add(n, std::memory_order_relaxed); }
  void add(const tally& t) noexcept {
    for (int i = 0; i < 4; ++i) {
      if (t.elements[i] != 0) add(static_cast<tier>(i), t.elements[i]);
    }
    if (t.undecided != 0) undecided.fetch_add(t.undecided, std::memory_order_relaxed);
  }
  // Throws where elements are undecided, and forgets them.
  void check_decided(int bits) {
    if (undecided.load(std::memory_order_relaxed) == 0) return;  // the workers are done; an exchange costs more
    if (const std::int64_t n = undecided.exchange(0); n != 0) dispatch::undecided(n, bits);
  }
};

// What a driver is given besides the plan.
struct setting {
  dispatch::launch launch;
  const instruction_set& set;
  counters& count;
};

// A plan and its setting, kept for as many runs as there will be. Plan: a copy, or const Plan&: small calls are spared it.
template <class Plan>
class planned : public dispatch::work {
 public:
  planned(const std::remove_reference_t<Plan>& whole, const setting& given) noexcept : p(whole), s(given) {}

 protected:
  const Plan p;
  const setting s;
};

// The drivers: what they make of a plan. Behind the API boundary: they trust their plans.
#define REPDL_DRIVER(family) void prepare(const plan::family##_plan&, const setting&, dispatch::task&) noexcept;
REPDL_FAMILIES(REPDL_DRIVER)
#undef REPDL_DRIVER

}  // namespace repdl::cpu
