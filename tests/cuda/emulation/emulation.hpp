// CUDA kernels on a CPU, for tests where there is no GPU: the threads of a block are fibers of one thread, which change at barriers and where the lanes
// of a warp exchange values; blocks run one after the other. What a kernel computes is so checked, in every tier, and not how fast, nor whether it
// waits where threads of a GPU would have to. Headers in this folder stand for those of the same names in backends/cuda.
//
// Included before everything else by what is compiled so.
#pragma once

#include <cuda_runtime_api.h>
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#undef __device__
#undef __host__
#undef __global__
#undef __shared__
#undef __constant__
#undef __launch_bounds__
#undef __grid_constant__
#undef __noinline__
#define __device__
#define __host__
#define __global__
#define __shared__ static
#define __constant__
#define __launch_bounds__(...)
#define __grid_constant__
#define __noinline__
#define __builtin_assume(...)

namespace repdl::emulation {

// A block that runs. Of a warp the lanes wait for each other, of the block all threads.
class block {
 public:
  static block& current() {
    static block b;
    return b;
  }

  int thread() const { return now_; }
  void run(int threads, const std::function<void()>& body) {
    body_ = &body;
    fibers_.resize(static_cast<std::size_t>(threads));
    warps_.assign(static_cast<std::size_t>(threads / 32), {});
    all_ = {};
    running_ = threads;
    for (auto& f : fibers_) {
      if (f == nullptr) f = std::make_unique<fiber>();
      f->is_done = f->has_begun = false;
      getcontext(&f->context);
      f->context.uc_stack.ss_sp = f->stack.data();
      f->context.uc_stack.ss_size = f->stack.size();
      makecontext(&f->context, enter, 0);
    }
    while (running_ > 0) {
      for (now_ = 0; now_ < threads; ++now_) enter_fiber(*fibers_[static_cast<std::size_t>(now_)]);
    }
  }

  void wait_for_warp() { wait(warps_[static_cast<std::size_t>(now_ / 32)], 32); }
  // Whether any thread's flag was set.
  bool wait_for_all(bool flag = false) {
    all_.flag = all_.flag || flag;
    wait(all_, static_cast<int>(fibers_.size()));
    return all_.last_flag;
  }
  // Of all lanes of this thread's warp.
  template <class T>
  void exchange(const T& mine, T (&of_lanes)[32]) {
    static_assert(sizeof(T) <= sizeof(slots_[0]));
    const int first = now_ / 32 * 32;
    std::memcpy(slots_[now_], &mine, sizeof(T));
    wait_for_warp();
    for (int l = 0; l < 32; ++l) std::memcpy(&of_lanes[l], slots_[first + l], sizeof(T));
    wait_for_warp();
  }

 private:
  struct fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(std::size_t{1} << 20);
    jmp_buf place;
    bool has_begun = false, is_done = false;
  };
  struct barrier {
    int waiting = 0;
    long passed = 0;
    bool flag = false, last_flag = false;
  };

  static void enter() {
    block& b = current();
    (*b.body_)();
    b.fibers_[static_cast<std::size_t>(b.now_)]->is_done = true;
    --b.running_;
    b.leave();
  }
  // setjmp rather than swapcontext, which asks the system for its signals each time.
  void enter_fiber(fiber& f) {
    if (f.is_done || _setjmp(outside_) != 0) return;
    if (f.has_begun) _longjmp(f.place, 1);
    f.has_begun = true;
    setcontext(&f.context);
  }
  void leave() {
    if (_setjmp(fibers_[static_cast<std::size_t>(now_)]->place) == 0) _longjmp(outside_, 1);
  }
  void wait(barrier& b, int count) {
    const long passed = b.passed;
    if (++b.waiting == count) {
      b.waiting = 0;
      ++b.passed;
      b.last_flag = b.flag;
      b.flag = false;
      return;
    }
    while (b.passed == passed) leave();
  }

  std::vector<std::unique_ptr<fiber>> fibers_;
  std::vector<barrier> warps_;
  barrier all_;
  const std::function<void()>* body_ = nullptr;
  jmp_buf outside_;
  int now_ = 0, running_ = 0;
  alignas(16) unsigned char slots_[1024][128];
};

struct places {
  unsigned x = 0;
};
inline places block_at, block_size, grid_size;
inline unsigned char* shared_memory = nullptr;

// f() in another direction than to nearest. What it reads and returns it does not compute otherwise: volatile.
template <class F>
auto rounded(int direction, const F& f) {
  const int before = std::fegetround();
  std::fesetround(direction);
  const volatile auto r = f();
  std::fesetround(before);
  return r;
}
inline double sum(int direction, double x, double y) {
  const volatile double a = x, b = y;
  return rounded(direction, [&]() -> double { return a + b; });
}
inline double product_and_sum(int direction, double x, double y, double z) {
  const volatile double a = x, b = y, c = z;
  return rounded(direction, [&]() -> double { return std::fma(a, b, c); });
}
inline float narrow(int direction, double x) {
  const volatile double a = x;
  return rounded(direction, [&]() -> float { return static_cast<float>(a); });
}

inline float round_up(double x) {
  const float f = static_cast<float>(x);
  return static_cast<double>(f) < x ? std::nextafterf(f, INFINITY) : f;
}

}  // namespace repdl::emulation

#define threadIdx (::repdl::emulation::places{static_cast<unsigned>(::repdl::emulation::block::current().thread())})
#define blockIdx ::repdl::emulation::block_at
#define blockDim ::repdl::emulation::block_size
#define gridDim ::repdl::emulation::grid_size

inline void __syncthreads() { repdl::emulation::block::current().wait_for_all(); }
inline void __threadfence() {}
inline int __syncthreads_or(int x) { return repdl::emulation::block::current().wait_for_all(x != 0) ? 1 : 0; }
inline void __syncwarp() { repdl::emulation::block::current().wait_for_warp(); }
template <class T>
T __shfl_sync(unsigned, T x, int from) {
  T all[32];
  repdl::emulation::block::current().exchange(x, all);
  return all[static_cast<unsigned>(from) % 32];
}
template <class T>
T __shfl_xor_sync(unsigned mask, T x, int by) {
  return __shfl_sync(mask, x, (repdl::emulation::block::current().thread() % 32) ^ by);
}
inline unsigned __ballot_sync(unsigned, bool x) {
  bool all[32];
  repdl::emulation::block::current().exchange(x, all);
  unsigned bits = 0;
  for (int l = 0; l < 32; ++l) bits |= all[l] ? 1u << l : 0;
  return bits;
}
inline bool __any_sync(unsigned mask, bool x) { return __ballot_sync(mask, x) != 0; }

template <class T>
T atomicAdd(T* to, T x) {
  const T before = *to;
  *to += x;
  return before;
}
template <class T>
T atomicMin(T* to, T x) {
  const T before = *to;
  *to = x < before ? x : before;
  return before;
}
template <class T>
T atomicMax(T* to, T x) {
  const T before = *to;
  *to = x > before ? x : before;
  return before;
}
template <class T>
T atomicOr(T* to, T x) {
  const T before = *to;
  *to |= x;
  return before;
}
template <class T>
T atomicAnd(T* to, T x) {
  const T before = *to;
  *to &= x;
  return before;
}

inline int __reduce_add_sync(unsigned, int x) {
  int all[32];
  repdl::emulation::block::current().exchange(x, all);
  int sum = 0;
  for (const int of : all) sum += of;
  return sum;
}

template <class T>
T min(T x, T y) {
  return std::min(x, y);
}
template <class T>
T max(T x, T y) {
  return std::max(x, y);
}
// What is compiled with emulated kernels, and run by none.
int __reduce_max_sync(unsigned, int);
unsigned __vminu2(unsigned, unsigned);
unsigned __byte_perm(unsigned, unsigned, unsigned);
std::size_t __cvta_generic_to_shared(const void*);
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<std::uint64_t>(a) * b >> 32);
}
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline double __dadd_rd(double x, double y) { return repdl::emulation::sum(FE_DOWNWARD, x, y); }
inline double __dadd_ru(double x, double y) { return repdl::emulation::sum(FE_UPWARD, x, y); }
inline double __fma_rd(double x, double y, double z) { return repdl::emulation::product_and_sum(FE_DOWNWARD, x, y, z); }
inline double __fma_ru(double x, double y, double z) { return repdl::emulation::product_and_sum(FE_UPWARD, x, y, z); }
inline float __double2float_rd(double x) { return repdl::emulation::narrow(FE_DOWNWARD, x); }
inline float __double2float_rz(double x) { return repdl::emulation::narrow(FE_TOWARDZERO, x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline float __double2float_ru(double x) { return repdl::emulation::round_up(x); }
// Sums and products of binary32 in every direction: rounded twice in one, which is as rounded once; to nearest too, of binary64.
#define EMULATED_BINARY32(suffix, direction)                                                     \
  inline float __fadd_##suffix(float x, float y) {                                               \
    return repdl::emulation::narrow(direction, repdl::emulation::sum(direction, x, y));          \
  }                                                                                              \
  inline float __fsub_##suffix(float x, float y) { return __fadd_##suffix(x, -y); }              \
  inline float __fmul_##suffix(float x, float y) {                                               \
    return repdl::emulation::narrow(direction, static_cast<double>(x) * static_cast<double>(y)); \
  }
EMULATED_BINARY32(rn, FE_TONEAREST)
EMULATED_BINARY32(rd, FE_DOWNWARD)
EMULATED_BINARY32(ru, FE_UPWARD)
EMULATED_BINARY32(rz, FE_TOWARDZERO)
#undef EMULATED_BINARY32
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline float __fmaf_rd(float x, float y, float z) {
  return repdl::emulation::narrow(FE_DOWNWARD, repdl::emulation::product_and_sum(FE_DOWNWARD, x, y, z));
}
inline int __double2hiint(double x) { return static_cast<int>(__builtin_bit_cast(std::uint64_t, x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__builtin_bit_cast(std::uint64_t, x)); }
inline double __hiloint2double(int high, int low) {
  return __builtin_bit_cast(double,
                            static_cast<std::uint64_t>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low));
}
// Rounded in binary64 before, so a little more.
inline float __fmaf_ru(float x, float y, float z) {
  return repdl::emulation::round_up(std::fma(static_cast<double>(x), static_cast<double>(y), static_cast<double>(z)) *
                                    (1 + 0x1p-50));
}
inline float __fsqrt_ru(float x) {
  return repdl::emulation::round_up(std::sqrt(static_cast<double>(x)) * (1 + 0x1p-50));
}
using std::fabs;
using std::fma;
