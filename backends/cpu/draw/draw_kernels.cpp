// The keys of draws without replacement, vectorised by the compiler. Compiled once per instruction set. The bound is in
// ops/random/exponential.hpp.
#include "backends/cpu/draw/draw.hpp"
#include "librepdl/ops/random/exponential.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

[[gnu::always_inline]] inline std::uint32_t make_key(std::uint64_t word, double weight, double force, double* key) {
  const auto ends = num::exponential_scale::of(weight).key(word + 1, num::normal_table, force);
  *key = ends.below;
  const std::uint64_t d = num::bits_of(ends.below) ^ num::bits_of(ends.above);
  return static_cast<std::uint32_t>(d | d >> 32);
}

bool keys_loop(const std::uint64_t* words, const double* weights, std::int64_t n, double force, double* keys,
               std::uint32_t* undecided) {
  std::uint32_t any = 0;
#pragma omp simd reduction(| : any)
  for (std::int64_t i = 0; i < n; ++i) any |= undecided[i] = make_key(words[i], weights[i], force, keys + i);
  return any != 0;
}

}  // namespace

constinit const draw_kernels draw_table = {keys_loop};

}  // namespace repdl::cpu::REPDL_ISA
