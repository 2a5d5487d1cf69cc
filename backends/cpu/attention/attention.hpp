// The loops of attention of one instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/core/isa.hpp"

namespace repdl::cpu {

// A block of queries: of one batch and one head of keys, queries [first, first + count) of all heads that go with it, head after head.
struct attention_block {
  std::int64_t batch, key_head, first;
  int count;
};

// What decides what a block leaves of a query: results first + e, e < count, where undecided[e] is not 0; or, where count is 0, its lse.
class attention_rest {
 public:
  virtual void decide(std::int64_t batch, std::int64_t head, std::int64_t query, std::int64_t first, std::int64_t count,
                      const std::uint8_t* undecided) noexcept = 0;

 protected:
  ~attention_rest() = default;
};

// The same of a row of gradients, query `at` of a head of q or key `at` of a head of k: its results e where undecided[e] is not 0.
class gradient_rest {
 public:
  virtual void decide(std::int64_t batch, bool is_key, std::int64_t head, std::int64_t at,
                      const std::uint8_t* undecided) noexcept = 0;

 protected:
  ~gradient_rest() = default;
};

// first: the first tier that is to decide anything. Workspaces, of so many bytes for a block, are 64-byte aligned.
struct gradient_kernels {
  std::int64_t (*bytes)(const plan::attention_plan&) noexcept;
  // A block of queries, or, where is_key, of keys of one head: first and count are theirs.
  void (*run)(const plan::attention_plan&, const attention_block&, bool is_key, tier first, void* workspace,
              gradient_rest&, tally&) noexcept;
};
struct attention_kernels {
  std::int64_t (*bytes)(const plan::attention_plan&) noexcept;
  void (*run)(const plan::attention_plan&, const attention_block&, tier first, void* workspace, attention_rest&,
              tally&) noexcept;
  const gradient_kernels* gradients;
};

inline constexpr int attention_rows = 64;  // of a block, at most

// attention_backward.cpp
void prepare_gradients(const plan::attention_plan&, const setting&, dispatch::task&) noexcept;

}  // namespace repdl::cpu
