// The inner loops of random numbers of one instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/core/families.hpp"

namespace repdl::cpu {

// The words of Philox as a stream of W: words[2 b + r] = w_{2r} + 2^32 w_{2r+1} of block b.
struct random_kernels {
  // Blocks first .. first + blocks - 1; `words` has room for a multiple of 16 blocks.
  void (*words)(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, std::int64_t blocks,
                std::uint64_t* words);

  // normal, by output format: 2 `pairs` numbers from the words of `pairs` pairs (half a block each, in f64 one block).
  // undecided[i] != 0 where number i is undecided; returns whether any is. force: 0, or +inf, which leaves all undecided.
  bool (*normal[4])(const std::uint64_t* words, std::int64_t pairs, double mean, double stddev, double force, void* out,
                    std::uint32_t* undecided);

  // exponential, by output format, from word i, W_i in f64: u = (word + 1) / 2^32 or 2^64; hi + lo = 1 / (2 rate).
  bool (*exponential[4])(const std::uint64_t* words, std::int64_t n, double hi, double lo, double force, void* out,
                         std::uint32_t* undecided);

  // out[i] = +0 where w_{i mod 4} of block i div 4 is at most last_dropped, else x[i] / (1 - p) by the scale of
  // ops/random/dropout.hpp; undecided as above.
  bool (*dropout)(const std::uint64_t* words, const float* x, std::int64_t n, double hi, double lo, double slack,
                  double least, std::uint32_t last_dropped, float* out, std::uint32_t* undecided);
  // The same of f64.
  bool (*wide_dropout)(const std::uint64_t* words, const double* x, std::int64_t n, double hi, double lo, double force,
                       std::uint32_t last_dropped, double* out, std::uint32_t* undecided);
};

}  // namespace repdl::cpu
