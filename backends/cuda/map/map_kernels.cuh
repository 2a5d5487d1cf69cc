// Kernels that apply an operation to each element of its operands: elementwise operations, conversions, losses.
//
// Memory-bound code: what a rounding test leaves open is noted, and decided by a launch of its own (map_settle). Contiguous
// aligned operands are read and written four elements at a time; so are strided ones whose innermost axis allows it (a broadcast
// row or scalar included), with one index computation per four elements. Long functions of 16 bits have a table.
//
// An operation F has an arity, input, output, the tier that decides first, a tally, and eval(x, tally), which decides. It may have
// attempt(x): a value that may be wrong, and whether it is right; then attempts_again, attempt_again(x), tests_16_bits; options; and
//   booleans       operands that are bytes, as bits
//   tabulated      it is looked up
//   may_be_absent  operands whose pointer is null: each of their elements is 1
#pragma once

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "backends/cuda/core/axes.cuh"
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/map/open_elements.hpp"
#include "librepdl/ops/body.hpp"

namespace repdl::cuda {

// All results of a function of 16 bits.
constexpr std::int64_t table_size = 1 << 16;
// The parts of a call's workspace, or nothing.
struct map_space {
  std::uint16_t* table = nullptr;
  float* factors = nullptr;
  open_elements open;
};
namespace {

constexpr int threads = 256;
constexpr int batch = 4;  // elements that a thread works on at a time
static_assert(least_block == threads * batch);
// Whether it tests results of f16 or bf16, most of them computed in binary32: then threads do more at a time, and more of them run.
template <class F>
constexpr bool tests_16_bits = [] {
  if constexpr (requires { F::tests_16_bits; }) return F::tests_16_bits;
  return false;
}();
// What has a rounding test wants many threads.
template <class F>
constexpr int least_blocks = tests_16_bits<F>           ? (F::arity < 3 ? 5 : 4)
                             : F::first == tier::proved ? 1
                                                        : 4;

template <class F>
constexpr bool may_be_absent = [] {
  if constexpr (requires { F::may_be_absent; }) return F::may_be_absent;
  return false;
}();

template <class F>
struct operands : F {
  const void* in[F::arity];
  void* out;
  std::int64_t count;
  strided_axes<F::arity + 1> axes;  // the inputs, then the output
};

template <class T>
struct alignas(sizeof(T) * batch < 16 ? sizeof(T) * batch : 16) pack {
  T v[batch];
};
// A boolean operand among numbers: byte i, or four from there on, as patterns 0 and 1 of their format, so that a thread's
// operands have one type. F::booleans has a bit for each.
template <class F>
constexpr __host__ __device__ bool is_boolean(int a) {
  return F::booleans != 0 && (F::booleans >> a & 1) != 0;
}
template <class In>
__device__ In read_boolean(const void* from, std::int64_t i) {
  const bool x = static_cast<const std::uint8_t*>(from)[i] != 0;
  if constexpr (std::is_integral_v<In>) {
    return x;
  } else {
    return num::from_bits<In>(x ? 1 : 0);
  }
}
template <class In>
__device__ pack<In> read_booleans(const void* from, std::int64_t i) {
  const auto bytes = *reinterpret_cast<const pack<std::uint8_t>*>(static_cast<const std::uint8_t*>(from) + i);
  pack<In> x;
#pragma unroll
  for (int j = 0; j < batch; ++j) x.v[j] = read_boolean<In>(bytes.v, j);
  return x;
}

// Element `at` of operand a.
template <class F>
__device__ typename F::input read_element(const operands<F>& p, int a, std::int64_t at) {
  using In = typename F::input;
  if constexpr (may_be_absent<F>) {
    if (p.in[a] == nullptr) return num::narrow<In>(1.0);
  }
  return is_boolean<F>(a) ? read_boolean<In>(p.in[a], at) : static_cast<const In*>(p.in[a])[at];
}

// How an operation is applied to a thread's elements. A tally counts those that `first` does not decide.
struct no_tally {
  __device__ void report(counter*, tier) const {}
};
struct exact_tally {
  int exact = 0, undecided = 0;
  __device__ void report(counter* counters, tier first) const {
    count_elements(counters, tier::exact, exact);
    if (undecided != 0) atomicAdd(counters + undecided_counter, static_cast<counter>(undecided));
    count_elements(counters, first, -static_cast<std::int64_t>(exact + undecided));
  }
};

template <class F>
concept tentative_operation = requires(const F& f, const typename F::input* x) {
  f.attempt(x);
};
// Whether every element is left to the last tier.
template <class F>
__device__ bool skips_test(const F& f) {
  if constexpr (requires { f.skip_test; }) {
    return f.skip_test;
  } else {
    return false;
  }
}
template <class F>
concept tabulated_operation = requires {
  requires F::tabulated;
};

// Whether what is left open waits: for the end of a block's work, and for the last tier. Functions without one have short bodies,
// which are called at once.
template <class F>
constexpr bool settles_late = F::first != tier::proved;

// What an operation makes of a thread's elements, and a bit for each that it leaves open.
template <class F>
__device__ unsigned apply(const operands<F>& f, const pack<typename F::input> (&x)[F::arity],
                          pack<typename F::output>& y) {
  const auto each = [&](const auto& element) {
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      typename F::input arguments[F::arity];
#pragma unroll
      for (int a = 0; a < F::arity; ++a) arguments[a] = x[a].v[j];
      element(j, arguments);
    }
  };
  unsigned open = skips_test(f) ? (1u << batch) - 1 : 0;
  if constexpr (tentative_operation<F>) {
    const auto try_each = [&](auto product) {
      each([&](int j, const auto& arguments) {
        const auto r = f.template attempt<product.value>(arguments);
        open |= r.decided ? 0u : 1u << j;
        y.v[j] = r.value;
      });
    };
    if constexpr (requires { f.is_product(); }) {
      f.is_product() ? try_each(std::true_type{}) : try_each(std::false_type{});
    } else {
      try_each(std::false_type{});
    }
    if (settles_late<F> || open == 0) return open;
  }
  if constexpr (!settles_late<F>) {
    // Where more are open, a warp does the elements that one of its threads wants.
    constexpr bool each_alone = tests_16_bits<F>;
    typename F::tally none;
    each([&](int j, const auto& arguments) {
      if (!each_alone || (open >> j & 1) != 0) y.v[j] = f.eval(arguments, none);
    });
  }
  return 0;
}

// How often a block does the packs of its threads: where there is more to be tried on what is left open, all of a block's is tried
// together, and the more, the better for warps that would wait.
template <class F>
__device__ int rounds_of(const operands<F>& p) {
  if constexpr (settles_late<F> && tests_16_bits<F>) {
    return p.open.rounds;
  } else {
    return 1;
  }
}

// What the threads of a block left open and did not write. It is attempted again, by the block's threads together: such elements
// are few, and a warp takes as long for one as for 32. What is still open is noted. Elements are known by their places in the block.
template <class F>
class open_in_block {
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
  __device__ explicit open_in_block(shared& s) : s_(s) {
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
  __device__ void leave(const operands<F>& p, unsigned open, const Place& place) {
    if (open == 0) return;
    some_ = true;
    unsigned slot = lists && !p.skip_test ? atomicAdd(&s_.listed, __popc(open)) : most_listed;
    for (; open != 0; open &= open - 1, ++slot) {
      const int i = place(__ffs(static_cast<int>(open)) - 1);
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
      if (threadIdx.x == 0) p.open.any[blockIdx.x] = 0;
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
      for (int i = threadIdx.x; i < size / 32; i += threads) p.open.words[first / 32 + i] = s_.noted[i];
    }
    if (threadIdx.x == 0) p.open.any[blockIdx.x] = any;
  }

 private:
  __device__ void note(int i) {
    atomicOr(s_.noted + i / 32, 1u << (i % 32));
    s_.any = 1;
  }
  shared& s_;
  bool some_ = false;
};
// Of operations that leave nothing open.
template <class F>
requires(!settles_late<F>) class open_in_block<F> {
 public:
  __device__ explicit open_in_block(int) {}
  __device__ static int memory() { return 0; }
  template <class Place>
  __device__ void leave(const operands<F>&, unsigned, const Place&) {}
  template <class At>
  __device__ void finish(const operands<F>&, int, const At&) {}
};

// The last tiers, which are in this kernel alone: ptxas compiles them for each kernel that may call them, seconds each. A block
// takes `words` words of p.open, `noted` of which belong to a block of the kernel before; noted = 0: all elements are open.
//
// The loop that calls them has no branch inside: one level of nesting more, and ptxas 13.0 saves a register of waiting lanes
// around the call, which seems to let them go too early (docs/ptxas-barriers.md).
constexpr int settle_threads = 128;
template <class F>
__global__ void __launch_bounds__(settle_threads)
    map_settle(const operands<F> p, bool line, std::int64_t words, std::int64_t noted, counter* counters) {
  using In = typename F::input;
  __shared__ unsigned listed;
  __shared__ std::int64_t list[settle_threads * 33];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * words;
  const std::int64_t all = (p.count + 31) / 32;
  const std::int64_t end = first + words < all ? first + words : all;
  if (noted == 0) {
    if (first + threadIdx.x == 0) count_elements(counters, F::first, p.count);
  } else {
    const std::int64_t block = first / noted + threadIdx.x;
    const bool any = block * noted < end && p.open.any[block] != 0;
    if (__syncthreads_or(static_cast<int>(any)) == 0) return;
  }
  if (threadIdx.x == 0) listed = 0;
  __syncthreads();
  typename F::tally tally;
  for (std::int64_t w = first; w < end; w += settle_threads) {
    const std::int64_t word = w + threadIdx.x;
    std::uint32_t open = 0;
    if (word < end) {
      if (noted == 0) {
        const std::int64_t rest = p.count - word * 32;
        open = rest < 32 ? (1u << rest) - 1 : 0xffffffffu;
      } else if (p.open.any[word / noted] != 0) {
        open = p.open.words[word];
      }
    }
    unsigned slot = open != 0 ? atomicAdd(&listed, __popc(open)) : 0;
    for (; open != 0; open &= open - 1) list[slot++] = word * 32 + (__ffs(static_cast<int>(open)) - 1);
    __syncthreads();
    if (listed >= settle_threads || w + settle_threads >= end) {
#pragma unroll 1
      for (unsigned k = threadIdx.x; k < listed; k += settle_threads) {
        std::int64_t place[F::arity + 1];
        if (line) {
#pragma unroll
          for (int a = 0; a <= F::arity; ++a) place[a] = list[k] * p.axes.stride[a][0];
        } else {
          p.axes.locate(static_cast<std::uint32_t>(list[k]), place);
        }
        In x[F::arity];
#pragma unroll
        for (int a = 0; a < F::arity; ++a) x[a] = read_element(p, a, place[a]);
        static_cast<typename F::output*>(p.out)[place[F::arity]] = p.eval(x, tally);
      }
      __syncthreads();
      if (threadIdx.x == 0) listed = 0;
    }
    __syncthreads();
  }
  tally.report(counters, F::first);
}

// Packs that are read and written once pass through the caches first: what else is in them stays.
template <class T>
__device__ T load_streaming(const T* from) {
  using word = std::conditional_t<sizeof(T) % 16 == 0, uint4, std::conditional_t<sizeof(T) == 8, uint2, std::uint32_t>>;
  T to;
#pragma unroll
  for (int w = 0; w < int{sizeof(T) / sizeof(word)}; ++w)
    reinterpret_cast<word*>(&to)[w] = __ldcs(reinterpret_cast<const word*>(from) + w);
  return to;
}
template <class T>
__device__ void store_streaming(T* to, const T& from) {
  using word = std::conditional_t<sizeof(T) % 16 == 0, uint4, std::conditional_t<sizeof(T) == 8, uint2, std::uint32_t>>;
#pragma unroll
  for (int w = 0; w < int{sizeof(T) / sizeof(word)}; ++w)
    __stcs(reinterpret_cast<word*>(to) + w, reinterpret_cast<const word*>(&from)[w]);
}

// Writes the elements that are not open.
template <class Out>
__device__ void store_decided(Out* to, const pack<Out>& y, unsigned open) {
#pragma unroll
  for (int j = 0; j < batch; ++j) {
    if ((open >> j & 1) == 0) to[j] = y.v[j];
  }
}

// Rank 1, stride 1, every pointer aligned to a pack. A block has packs_per_thread packs for each of its threads: a grid that
// goes round and round is slower. Exact aliasing of out and an input is legal: a thread reads its elements before it writes
// them.
template <class F>
constexpr int packs_per_thread = tests_16_bits<F>&& F::arity <= 3 ? 4 : 2;
template <class F>
__global__ void __launch_bounds__(threads, least_blocks<F>) map_packed(const operands<F> p, counter* counters) {
  using In = typename F::input;
  using Out = typename F::output;
  constexpr int elements = packs_per_thread<F> * batch;
  const int rounds = rounds_of(p);
  open_in_block<F> left_open(open_in_block<F>::memory());
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * threads * packs_per_thread<F> * rounds;
  if (block + threadIdx.x == 0) count_elements(counters, F::first, p.count);
  const std::int64_t packs = p.count / batch;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    const int start = round * threads * packs_per_thread<F> + static_cast<int>(threadIdx.x);
    const std::int64_t first = block + start;
    pack<In> x[packs_per_thread<F>][F::arity];
#pragma unroll
    for (int k = 0; k < packs_per_thread<F>; ++k) {
      const std::int64_t i = first + k * threads;
      if (i >= packs) break;
#pragma unroll
      for (int a = 0; a < F::arity; ++a) {
        if constexpr (may_be_absent<F>) {
          if (p.in[a] == nullptr) {
#pragma unroll
            for (int j = 0; j < batch; ++j) x[k][a].v[j] = num::narrow<In>(1.0);
            continue;
          }
        }
        x[k][a] = is_boolean<F>(a) ? read_booleans<In>(p.in[a], i * batch)
                                   : load_streaming(static_cast<const pack<In>*>(p.in[a]) + i);
      }
    }
    unsigned open = 0;
#pragma unroll
    for (int k = 0; k < packs_per_thread<F>; ++k) {
      const std::int64_t i = first + k * threads;
      if (i >= packs) break;
      pack<Out> y;
      const unsigned left = apply(p, x[k], y);
      if (left == 0) {
        store_streaming(static_cast<pack<Out>*>(p.out) + i, y);
      } else {
        store_decided(static_cast<Out*>(p.out) + i * batch, y, left);
        open |= left << (k * batch);
      }
    }
    left_open.leave(p, open, [&](int j) { return (start + j / batch * threads) * batch + j % batch; });
  }
  // Beyond the packs.
  if constexpr (settles_late<F>) {
    const std::int64_t rest = (packs - block) * batch + threadIdx.x;
    const bool mine =
        threadIdx.x < batch && rest >= 0 && rest < threads * elements * rounds && block * batch + rest < p.count;
    left_open.leave(p, mine ? 1 : 0, [&](int) { return static_cast<int>(rest); });
  } else {
    const std::int64_t rest = packs * batch + (block + threadIdx.x);
    if (rest < p.count) {
      typename F::tally none;
      In arguments[F::arity];
#pragma unroll
      for (int a = 0; a < F::arity; ++a) arguments[a] = read_element(p, a, rest);
      static_cast<Out*>(p.out)[rest] = p.eval(arguments, none);
    }
  }
  left_open.finish(p, threads * elements * rounds, [](std::int64_t i, int) { return i; });
}

// Rank 1, any strides; unit: all are 1. A thread's elements are a block apart, so that a warp reads and writes side by side.
template <class F>
constexpr int line_blocks = F::arity == 1 && sizeof(typename F::input) == 4 && !settles_late<F> ? 5 : least_blocks<F>;
template <class F>
__global__ void __launch_bounds__(threads, line_blocks<F>) map_line(const operands<F> p, bool unit, counter* counters) {
  using In = typename F::input;
  using Out = typename F::output;
  constexpr int elements = packs_per_thread<F> * batch;
  const int rounds = rounds_of(p);
  open_in_block<F> left_open(open_in_block<F>::memory());
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * threads * elements * rounds;
  if (block + threadIdx.x == 0) count_elements(counters, F::first, p.count);
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    const int start = round * threads * elements + static_cast<int>(threadIdx.x);
    const std::int64_t i = block + start;
    // Without branches the addresses are sums; those of neighbours are constants apart.
    const bool whole = p.count - i > threads * (elements - 1);
    const auto each = [&](int k, std::int64_t stride, const auto& element) {
      const std::int64_t first = i * stride;
      if (whole && unit) {
#pragma unroll
        for (int j = 0; j < batch; ++j) element(j, i + (k * batch + j) * threads);
      } else {
#pragma unroll
        for (int j = 0; j < batch; ++j) {
          const int at = (k * batch + j) * threads;
          if (whole || i + at < p.count) element(j, first + at * stride);
        }
      }
    };
    pack<In> x[packs_per_thread<F>][F::arity]{};
#pragma unroll
    for (int k = 0; k < packs_per_thread<F>; ++k) {
#pragma unroll
      for (int a = 0; a < F::arity; ++a) {
        each(k, p.axes.stride[a][0], [&](int j, std::int64_t at) { x[k][a].v[j] = read_element(p, a, at); });
      }
    }
    unsigned open = 0;
#pragma unroll
    for (int k = 0; k < packs_per_thread<F>; ++k) {
      pack<Out> y;
      const unsigned left = apply(p, x[k], y);
      each(k, p.axes.stride[F::arity][0], [&](int j, std::int64_t at) {
        if ((left >> j & 1) == 0) {
          static_cast<Out*>(p.out)[at] = y.v[j];
        } else {
          open |= 1u << (k * batch + j);
        }
      });
    }
    left_open.leave(p, open, [&](int j) { return start + j * threads; });
  }
  left_open.finish(p, threads * elements * rounds, [&](std::int64_t i, int a) { return i * p.axes.stride[a][0]; });
}

// Rank 1, 16 bits in and out, of long functions and many elements: every block keeps all 2^16 results in its shared memory. Looking
// one up costs less than memory does. Packed: strides are 1, pointers aligned.
constexpr int table_threads = 1024;
template <class F>
__global__ void __launch_bounds__(threads) make_table(const operands<F> p, std::uint16_t* table) {
  const std::uint32_t i = blockIdx.x * threads + threadIdx.x;
  const auto x = num::bit_cast<typename F::input>(static_cast<std::uint16_t>(i));
  typename F::tally tally;
  if constexpr (tentative_operation<F>) {
    const auto r = p.attempt(&x);
    table[i] = num::bit_cast<std::uint16_t>(r.decided && !skips_test(p) ? r.value : p.eval(&x, tally));
  } else {
    table[i] = num::bit_cast<std::uint16_t>(p.eval(&x, tally));
  }
}
template <class F>
__global__ void __launch_bounds__(table_threads)
    map_table(const operands<F> p, const std::uint16_t* made, bool packed, counter* counters) {
  using bits = std::uint16_t;
  static_assert(sizeof(typename F::input) == sizeof(bits) && sizeof(typename F::output) == sizeof(bits));
  extern __shared__ uint4 shared[];
  bits* const table = reinterpret_cast<bits*>(shared);
#pragma unroll
  for (int i = threadIdx.x; i < static_cast<int>(table_size * sizeof(bits) / sizeof(uint4)); i += table_threads)
    shared[i] = reinterpret_cast<const uint4*>(made)[i];
  __syncthreads();
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * table_threads + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * table_threads;
  if (first == 0) count_elements(counters, F::first, p.count);
  const bits* const in = static_cast<const bits*>(p.in[0]);
  bits* const out = static_cast<bits*>(p.out);
  const std::int64_t packs = packed ? p.count / 8 : 0;
  const auto pair = [&](std::uint32_t x) {
    return table[x & 0xffff] | static_cast<std::uint32_t>(table[x >> 16]) << 16;
  };
  const auto look_up = [&](uint4 x) { return uint4{pair(x.x), pair(x.y), pair(x.z), pair(x.w)}; };
  const uint4* const from = static_cast<const uint4*>(p.in[0]);
  uint4* const to = static_cast<uint4*>(p.out);
  // The packs of the next turn are on their way while those of this one are looked up. out may be in: a thread's packs are its
  // own.
  uint4 ahead[2];
  const auto read = [&](std::int64_t i) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      if (i + k * step < packs) ahead[k] = __ldcs(from + (i + k * step));
    }
  };
  read(first);
  for (std::int64_t i = first; i < packs; i += 2 * step) {
    const uint4 x[2] = {ahead[0], ahead[1]};
    read(i + 2 * step);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      if (i + k * step < packs) __stcs(to + (i + k * step), look_up(x[k]));
    }
  }
  // The elements of a turn are read before any is written.
  constexpr int batches = 16;
  const std::int64_t from_stride = p.axes.stride[0][0], to_stride = p.axes.stride[1][0];
  for (std::int64_t i = packs * 8 + first; i < p.count; i += batches * step) {
    bits x[batches];
#pragma unroll
    for (int k = 0; k < batches; ++k) x[k] = i + k * step < p.count ? in[(i + k * step) * from_stride] : 0;
#pragma unroll
    for (int k = 0; k < batches; ++k) {
      if (i + k * step < p.count) out[(i + k * step) * to_stride] = table[x[k]];
    }
  }
}

// Any strides, fewer than 2^31 elements. A warp's elements are side by side. Packed: the innermost size is a multiple of
// `batch`, its stride is 1 for the output and 0 or 1 for the inputs, and every pack with stride 1 is aligned.
template <class F>
__global__ void __launch_bounds__(threads, least_blocks<F>)
    map_strided(const operands<F> p, bool packed, counter* counters) {
  using In = typename F::input;
  using Out = typename F::output;
  const int rounds = rounds_of(p);
  open_in_block<F> left_open(open_in_block<F>::memory());
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * threads * batch * rounds;
  if (block + threadIdx.x == 0) count_elements(counters, F::first, p.count);
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    // The place of element j in the block.
    const auto place = [&](int j) {
      const int t = static_cast<int>(threadIdx.x);
      return round * threads * batch + (packed ? t * batch + j : t + j * threads);
    };
    const std::int64_t first = block + place(0);
    pack<In> x[F::arity];
    pack<Out> y;
    unsigned open = 0;
    if (first >= p.count) break;
    if (packed) {
      std::int64_t at[F::arity + 1];
      p.axes.locate(static_cast<std::uint32_t>(first), at);
#pragma unroll
      for (int a = 0; a < F::arity; ++a) {
        const In* from = static_cast<const In*>(p.in[a]) + at[a];
        if (p.axes.stride[a][0] != 0) {
          x[a] = is_boolean<F>(a) ? read_booleans<In>(p.in[a], at[a]) : *reinterpret_cast<const pack<In>*>(from);
        } else {
#pragma unroll
          for (int j = 0; j < batch; ++j) x[a].v[j] = read_element(p, a, at[a]);
        }
      }
      open = apply(p, x, y);
      Out* const to = static_cast<Out*>(p.out) + at[F::arity];
      if (open == 0) {
        *reinterpret_cast<pack<Out>*>(to) = y;
      } else {
        store_decided(to, y, open);
      }
    } else {
      std::int64_t out[batch];
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        std::int64_t at[F::arity + 1];
        const std::int64_t i = first + j * threads;
        p.axes.locate(static_cast<std::uint32_t>(i < p.count ? i : first), at);
#pragma unroll
        for (int a = 0; a < F::arity; ++a) x[a].v[j] = read_element(p, a, at[a]);
        out[j] = at[F::arity];
      }
      const unsigned left = apply(p, x, y);
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        if (first + j * threads >= p.count) break;
        if ((left >> j & 1) == 0) {
          static_cast<Out*>(p.out)[out[j]] = y.v[j];
        } else {
          open |= 1u << j;
        }
      }
    }
    left_open.leave(p, open, place);
  }
  left_open.finish(p, threads * batch * rounds, [&](std::int64_t i, int a) {
    std::int64_t at[F::arity + 1];
    p.axes.locate(static_cast<std::uint32_t>(i), at);
    std::int64_t place = 0;
#pragma unroll
    for (int k = 0; k <= F::arity; ++k) place = a == k ? at[k] : place;
    return place;
  });
}

template <class T>
bool aligned(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % alignof(pack<T>) == 0;
}
template <class F>
bool aligned_input(const void* p, int a) {
  return is_boolean<F>(a) ? aligned<std::uint8_t>(p) : aligned<typename F::input>(p);
}

// Whether map_strided may move packs.
template <class F>
bool can_pack(const operands<F>& p) {
  const strided_axes<F::arity + 1>& x = p.axes;
  if (x.rank == 0 || x.size[0] % batch != 0 || x.stride[F::arity][0] != 1) return false;
  if (!aligned<typename F::output>(p.out)) return false;
  for (int a = 0; a <= F::arity; ++a) {
    if (x.stride[a][0] == 0) continue;
    if (x.stride[a][0] != 1 || (a < F::arity && !aligned_input<F>(p.in[a], a))) return false;
    for (int d = 1; d < x.rank; ++d) {
      if (x.stride[a][d] % batch != 0) return false;
    }
  }
  return true;
}

inline std::int64_t blocks_of(std::int64_t count, int per_thread) {
  return std::max<std::int64_t>(1, ceil_div(count, threads * per_thread));
}

// How many elements a launch with strides takes. Wide: what huge operands do, on small ones.
inline std::int64_t most_strided(const job& j) { return j.device.choice.wide ? 100 : (std::int64_t{1} << 31) - 1; }

// What has more elements than a launch takes is cut along its longest axis.
template <class F, class Launch>
void in_parts(operands<F> p, std::size_t out_size, std::int64_t most, const Launch& launch_part) {
  if (p.count <= most) return launch_part(p);
  const auto cut = std::max_element(p.axes.size, p.axes.size + p.axes.rank) - p.axes.size;
  const std::int64_t size = p.axes.size[cut], half = size / 2;
  operands<F> rest = p;
  p.axes.size[cut] = half;
  p.count = p.count / size * half;
  rest.axes.size[cut] -= half;
  rest.count -= p.count;
  for (int a = 0; a < F::arity; ++a) {
    const std::size_t bytes = is_boolean<F>(a) ? 1 : sizeof(typename F::input);
    rest.in[a] =
        static_cast<const std::byte*>(p.in[a]) + half * p.axes.stride[a][cut] * static_cast<std::int64_t>(bytes);
  }
  rest.out = static_cast<std::byte*>(p.out) + half * p.axes.stride[F::arity][cut] * static_cast<std::int64_t>(out_size);
  in_parts(p, out_size, most, launch_part);
  in_parts(rest, out_size, most, launch_part);
}

}  // namespace
}  // namespace repdl::cuda
