// The loops of norms of lists and of clipping of one instruction set. The driver (clip.cpp) is compiled once: it walks over strides
// and threads, and decides.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/core/isa.hpp"

namespace repdl::cpu {

inline constexpr std::int64_t clip_block = 1024;
inline constexpr std::int64_t clip_height = 256;  // of the additions of a block's sum, at most

// num::norm_sum and num::clip_factor, the same for every instruction set.
struct norm_partial {
  double hi, lo, error;
  std::uint64_t greatest;
};
struct clip_quotient {
  double a, b;
};
// num::ball_factor, likewise.
struct clip_ball {
  double hi, lo, error, t;
};

struct clip_kernels {
  struct loops {
    // Of n <= clip_block elements side by side.
    norm_partial (*sum)(const void* x, std::int64_t n) noexcept;
    void (*clip)(const void* x, void* out, std::int64_t n, const clip_quotient&) noexcept;  // not of f64
    // Of f64: 1 in `undecided` where out is none yet; returns how many.
    std::int64_t (*clip_by_ball)(const double* x, double* out, std::uint8_t* undecided, std::int64_t n,
                                 const clip_ball&) noexcept;
  };
  loops (*of)(dtype, double p) noexcept;
};

}  // namespace repdl::cpu
