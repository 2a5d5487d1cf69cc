// What rounding tests leave undecided: how a block notes it, and the kernel that decides it.
#pragma once

#include "backends/cuda/map/map_operation.cuh"

namespace repdl::cuda {
namespace {

// What the threads of a block left undecided and did not write. It is attempted again, by the block's threads together: such elements
// are few, and a warp takes as long for one as for 32. What is still undecided is noted. Elements are known by their places in the block.
template <class F>
class undecided_in_block {
  static constexpr int most_words = greatest_block / 32, most_listed = 2048;
  static constexpr bool lists = [] {
    if constexpr (settles_late<F>) return F::attempts_again;
    return false;
  }();
  struct shared {
    std::uint32_t noted[most_words];
    int any;
    unsigned listed;
    std::uint16_t list[lists ? most_listed : 1];
  };

 public:
  // All threads of a block call it, and finish.
  __device__ explicit undecided_in_block(shared& s) : s_(s) {
    for (int i = threadIdx.x; i < most_words; i += threads) s_.noted[i] = 0;
    if (threadIdx.x == 0) s_.any = 0, s_.listed = 0;
    __syncthreads();
  }
  __device__ static shared& memory() {
    __shared__ shared s;
    return s;
  }
  // A thread's elements: of bit j, place(j).
  template <class Place>
  __device__ void leave(const operands<F>& p, unsigned undecided, const Place& place) {
    if (undecided == 0) return;
    some_ = true;
    unsigned slot = lists && !p.skip_test ? atomicAdd(&s_.listed, __popc(undecided)) : most_listed;
    for (; undecided != 0; undecided &= undecided - 1, ++slot) {
      const int i = place(__ffs(static_cast<int>(undecided)) - 1);
      if (lists && slot < most_listed) {
        s_.list[slot] = static_cast<std::uint16_t>(i);
      } else {
        note(i);
      }
    }
  }
  // Operand a of element i of all is at(i, a), the output is operand F::arity. Operands are read again, also where out is one of
  // them: nothing was written there.
  template <class At>
  __device__ void finish(const operands<F>& p, int size, const At& at) {
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * size;
    if (__syncthreads_or(static_cast<int>(some_)) == 0) {
      if (threadIdx.x == 0) p.undecided.any[blockIdx.x] = 0;
      return;
    }
    if constexpr (lists) {
      const unsigned listed = s_.listed < most_listed ? s_.listed : most_listed;
#pragma unroll 1
      for (unsigned k = threadIdx.x; k < listed; k += threads) {
        const int i = s_.list[k];
        typename F::input x[F::arity];
#pragma unroll
        for (int a = 0; a < F::arity; ++a) x[a] = read_element(p, a, at(first + i, a));
        const auto r = p.attempt_again(x);
        if (r.decided) {
          static_cast<typename F::output*>(p.out)[at(first + i, F::arity)] = r.value;
        } else {
          note(i);
        }
      }
      __syncthreads();
    }
    const int any = s_.any;
    if (any != 0) {
      for (int i = threadIdx.x; i < size / 32; i += threads) p.undecided.words[first / 32 + i] = s_.noted[i];
    }
    if (threadIdx.x == 0) p.undecided.any[blockIdx.x] = any;
  }

 private:
  __device__ void note(int i) {
    atomicOr(s_.noted + i / 32, 1u << (i % 32));
    s_.any = 1;
  }
  shared& s_;
  bool some_ = false;
};
// Of operations that leave nothing undecided.
template <class F>
requires(!settles_late<F>) class undecided_in_block<F> {
 public:
  __device__ explicit undecided_in_block(int) {}
  __device__ static int memory() { return 0; }
  template <class Place>
  __device__ void leave(const operands<F>&, unsigned, const Place&) {}
  template <class At>
  __device__ void finish(const operands<F>&, int, const At&) {}
};

// The last tiers, which are in this kernel alone: ptxas compiles them for each kernel that may call them, seconds each. A block
// takes `words` words of p.undecided, `noted` of which belong to a block of the kernel before; noted = 0: all elements are undecided.
//
// The loop that calls them has no branch around the call, and lanes leave it together: else ptxas 13.0 saves a register of waiting lanes
// around the call, and lets them go too early (docs/ptxas-barriers.md).
constexpr int settle_threads = 128;
// Of `count` elements. element(i, x) reads the operands of element i, and returns where its result goes.
template <class F, class Element>
__device__ __forceinline__ void settle_words(const operands<F>& p, std::int64_t count, std::int64_t words,
                                             std::int64_t noted, counter* counters, const Element& element) {
  using In = typename F::input;
  __shared__ unsigned listed;
  __shared__ std::int64_t list[settle_threads * 33];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * words;
  const std::int64_t all = (count + 31) / 32;
  const std::int64_t end = first + words < all ? first + words : all;
  if (noted == 0) {
    if (first + threadIdx.x == 0) count_elements(counters, F::first, count);
  } else {
    const std::int64_t block = first / noted + threadIdx.x;
    const bool any = block * noted < end && p.undecided.any[block] != 0;
    if (__syncthreads_or(static_cast<int>(any)) == 0) return;
  }
  if (threadIdx.x == 0) listed = 0;
  __syncthreads();
  typename F::tally tally;
  for (std::int64_t w = first; w < end; w += settle_threads) {
    const std::int64_t word = w + threadIdx.x;
    std::uint32_t undecided = 0;
    if (word < end) {
      if (noted == 0) {
        const std::int64_t rest = count - word * 32;
        undecided = rest < 32 ? (1u << rest) - 1 : 0xffffffffu;
      } else if (p.undecided.any[word / noted] != 0) {
        undecided = p.undecided.words[word];
      }
    }
    unsigned slot = undecided != 0 ? atomicAdd(&listed, __popc(undecided)) : 0;
    for (; undecided != 0; undecided &= undecided - 1)
      list[slot++] = word * 32 + (__ffs(static_cast<int>(undecided)) - 1);
    __syncthreads();
    if (listed >= settle_threads || w + settle_threads >= end) {
#pragma unroll 1
      for (unsigned k = threadIdx.x; k < listed; k += settle_threads) {
        In x[F::arity];
        typename F::output* const to = element(list[k], x);
        *to = p.eval(x, tally);
      }
      __syncthreads();
      if (threadIdx.x == 0) listed = 0;
    }
    __syncthreads();
  }
  tally.report(counters, F::first);
}
template <class F>
__global__ void __launch_bounds__(settle_threads)
    map_settle(const operands<F> p, bool line, std::int64_t words, std::int64_t noted, counter* counters) {
  settle_words(p, p.count, words, noted, counters, [&](std::int64_t i, typename F::input(&x)[F::arity]) {
    std::int64_t place[F::arity + 1];
    if (line) {
#pragma unroll
      for (int a = 0; a <= F::arity; ++a) place[a] = i * p.axes.stride[a][0];
    } else {
      p.axes.locate(static_cast<std::uint32_t>(i), place);
    }
#pragma unroll
    for (int a = 0; a < F::arity; ++a) x[a] = read_element(p, a, place[a]);
    return static_cast<typename F::output*>(p.out) + place[F::arity];
  });
}

}  // namespace
}  // namespace repdl::cuda
