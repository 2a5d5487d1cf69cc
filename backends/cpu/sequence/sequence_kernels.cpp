// The inner loops of numbers at equal distances, vectorised by the compiler. Compiled once per instruction set. The
// bounds are in ops/random/sequence.hpp.
#include "backends/cpu/sequence/sequence.hpp"
#include "librepdl/ops/random/sequence.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

template <class T>
[[gnu::always_inline]] inline std::uint32_t make(const num::sequence& s, std::int64_t i, double force, T* out) {
  const auto ends = s.first<T>(i, force);
  *out = ends.below;
  const std::uint64_t d = num::to_bits(ends.below) ^ std::uint64_t{num::to_bits(ends.above)};
  return static_cast<std::uint32_t>(d | d >> 32);
}

template <class T>
bool loop(const plan::sequence_plan& p, std::int64_t first, std::int64_t n, double force, void* out,
          std::uint32_t* undecided) {
  const num::sequence s{p.first, p.last, p.parts, p.between};
  auto* const to = static_cast<T*>(out);
  std::uint32_t any = 0;
#pragma omp simd reduction(| : any)
  for (std::int64_t i = 0; i < n; ++i) any |= undecided[i] = make<T>(s, first + i, force, to + i);
  return any != 0;
}

}  // namespace

constinit const sequence_kernels sequence_table = {{loop<f16>, loop<bf16>, loop<float>, loop<double>}};

}  // namespace repdl::cpu::REPDL_ISA
