// Philox4x32-10 and the places of its words in tensors (contract, section 6).
//
// Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11;
// words in the order of the authors' library Random123. Counter-based: block b of a stream is a function of (seed,
// stream, b) alone, so any thread can make any element. Integers only: nothing to round, nothing to prove. Checked
// against Random123's known answers by tests/random/random_test.cpp.
//
// The rounding of low + (high - low) u is in uniform.hpp.
#pragma once

#include "librepdl/num/format.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

struct philox_block {
  std::uint32_t w[4];
};

// The bijection: ten rounds, the key bumped between them.
REPDL_HD philox_block philox4x32_10(philox_block c, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xd2511f53} * c.w[0];  // the authors' multipliers, found by search
    const std::uint64_t p1 = std::uint64_t{0xcd9e8d57} * c.w[2];
    c = {{static_cast<std::uint32_t>(p1 >> 32) ^ c.w[1] ^ k0, static_cast<std::uint32_t>(p1),
          static_cast<std::uint32_t>(p0 >> 32) ^ c.w[3] ^ k1, static_cast<std::uint32_t>(p0)}};
    k0 += 0x9e3779b9;  // floor(2^32 (sqrt(5) - 1) / 2)
    k1 += 0xbb67ae85;  // floor(2^32 (sqrt(3) - 1))
  }
  return c;
}

// Block `index` of the generator (seed, stream).
REPDL_HD philox_block philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  return philox4x32_10({{low(index), high(index), low(stream), high(stream)}}, low(seed), high(seed));
}

// W_r = w_{2r} + 2^32 w_{2r+1}.
REPDL_HD std::uint64_t wide_word(const philox_block& b, int r) {
  return b.w[2 * r] | static_cast<std::uint64_t>(b.w[2 * r + 1]) << 32;
}

// Elements of format T per block: element i lies in block i / per_block, at place i mod per_block.
template <class T>
inline constexpr int per_block = sizeof(T) == sizeof(double) ? 2 : 4;

// u = uniform_integer * 2^-uniform_bits: as many bits as the format's precision, so that every u is a number of T.
template <class T>
inline constexpr int uniform_bits = format<T>::precision;
template <class T>
REPDL_HD std::uint64_t uniform_integer(const philox_block& b, int place) {
  if constexpr (per_block<T> == 2) {
    return wide_word(b, place) >> (64 - uniform_bits<T>);
  } else {
    return b.w[place] >> (32 - uniform_bits<T>);
  }
}

// randint: first + floor(W range / 2^64), range >= 1; the sum is a 64-bit integer, and is formed modulo 2^64.
REPDL_HD std::int64_t random_integer(std::uint64_t w, std::int64_t first, std::uint64_t range) {
  std::uint64_t high = 0;
  multiply_wide(w, range, &high);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(first) + high);
}

// The key by which `permutation` sorts index i: W_{i mod 2} of block i / 2.
REPDL_HD std::uint64_t permutation_key(std::uint64_t seed, std::uint64_t stream, std::uint64_t i) {
  return wide_word(philox(seed, stream, i >> 1), static_cast<int>(i & 1));
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
