// The floating-point environment that every kernel runs under: round to nearest, subnormals kept, exceptions masked.
// Host only. The caller's environment is restored on every way out.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#else
#error "fp_environment.hpp: say how this target's floating-point environment is saved and set"
#endif

namespace repdl::num {

class fp_environment_guard {
 public:
#if defined(__x86_64__)
  // MXCSR governs SSE and AVX: 0x1f80 is its power-on value (all exceptions masked, round to nearest, no FTZ, no DAZ).
  // The x87 control word is left alone: no arithmetic of ours uses it. Writing MXCSR costs more than reading it, and most
  // callers have it so; the low six bits are flags that say what happened.
  fp_environment_guard() noexcept : saved_(_mm_getcsr()) {
    if ((saved_ & ~0x3fu) != 0x1f80) _mm_setcsr(0x1f80);
  }
  ~fp_environment_guard() {
    if (_mm_getcsr() != saved_) _mm_setcsr(saved_);
  }
#else
  // FPCR = 0: round to nearest, no flush to zero, IEEE default NaN off, no traps.
  fp_environment_guard() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" ::"r"(std::uint64_t{0}) : "memory");
  }
  ~fp_environment_guard() { asm volatile("msr fpcr, %0" ::"r"(saved_) : "memory"); }
#endif
  fp_environment_guard(const fp_environment_guard&) = delete;
  fp_environment_guard& operator=(const fp_environment_guard&) = delete;

 private:
#if defined(__x86_64__)
  unsigned saved_;
#else
  std::uint64_t saved_;
#endif
};

}  // namespace repdl::num
