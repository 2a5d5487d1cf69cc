// Elementwise operations and conversions: one kernel template.
//
// Memory-bound code, but for what a rounding test leaves open: its thread decides it itself. Contiguous aligned operands are
// read and written four elements at a time; so are strided ones whose innermost axis allows it (a broadcast row or scalar
// included), with one index computation per four elements. Functions of one number have quick bodies (quick.cuh), or, of 16
// bits, a table.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <type_traits>

#include "backends/cuda/core/axes.cuh"
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/map/quick_functions.cuh"
#include "librepdl/ops/bodies.hpp"
#include "librepdl/ops/shards.hpp"

namespace repdl::cuda {

// All results of a function of 16 bits.
constexpr std::int64_t table_size = 1 << 16;
// Whether a call may have such a table in its workspace; fewer elements are done sooner without.
inline bool may_use_table(const plan::map_plan& p, const job& j) {
  const bool contiguous = p.rank == 1 && p.out_stride[0] == 1 && p.in[0].stride[0] == 1;
  return p.arity == 1 && size_of(p.in_type) == 2 && p.out_type == p.in_type && contiguous &&
         (p.count >= (std::int64_t{1} << 24) || j.device.choice.wide) && shared_limit(j.device) >= 2 * table_size;
}

using launcher = void (*)(const plan::map_plan&, const job&, std::uint16_t* table);
using map_shard = ops::shard<launcher>;

namespace {

constexpr int threads = 256;
constexpr int batch = 4;  // elements that a thread works on at a time
// Whether it tests results of f16 or bf16, most of them computed in binary32: then threads do more at a time, and more of them run.
template <class F>
constexpr bool tests_16_bits = [] {
  if constexpr (requires { F::tests_16_bits; }) return F::tests_16_bits;
  return false;
}();
// A last tier would take all registers; what comes before it wants many threads.
template <class F>
constexpr int least_blocks = tests_16_bits<F>           ? (F::arity < 3 ? 5 : 4)
                             : F::first == tier::proved ? 1
                                                        : 4;

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

// Options: nothing, or num::parameters.
template <class Op, class T, class... Options>
struct elementwise : Options... {
  static constexpr int arity = Op::arity;
  static constexpr tier first = tier::proved;
  // Functions of 16 bits that are long.
  static constexpr bool tabulated = arity == 1 && sizeof(T) == 2 && sizeof...(Options) == 0 &&
                                    ops::elementwise_rows[static_cast<int>(Op::id)].proof == ops::proof_kind::enumerate;
  // The operands that are boolean where others are numbers, as bits.
  static constexpr unsigned booleans = std::is_same_v<T, bool> ? 0 : ops::boolean_operands(Op::operands, arity);
  using input = num::stored<T>;
  using output = num::result_of_body<Op, T, Options...>;
  static_assert(dtype_of<output> == ops::result_type(Op::result, dtype_of<T>));
  using tally = no_tally;
  __device__ output eval(const input* x, tally&) const {
    return num::with_places<arity>([&]<int... K>() {
      return num::evaluate<Op>(operand<K>(x[K])..., static_cast<const Options&>(*this)...);
    });
  }

 private:
  template <int K>
  __device__ static decltype(auto) operand(const input& x) {
    if constexpr ((booleans >> K & 1) != 0) {
      return num::to_bits(x) != 0;
    } else {
      return num::load(x);
    }
  }
};
// A value that may be wrong first, and whether it is right.
template <class Op, class T, class... Options>
concept tries_first = (num::has_quick_body<Op, T> && sizeof...(Options) == 0) || has_quick<Op, T, Options...>;
template <class Op, class T, class... Options>
requires(tries_first<Op, T, Options...> &&
         !num::has_exact_body<Op, T, Options...>) struct elementwise<Op, T, Options...> : Options... {
  static constexpr int arity = Op::arity;
  static constexpr tier first = tier::proved;
  static constexpr bool tabulated = arity == 1 && sizeof(T) == 2 && sizeof...(Options) == 0;
  static constexpr bool tests_16_bits = sizeof(T) == 2 && !tabulated;
  static constexpr unsigned booleans = 0;
  using input = T;
  using output = T;
  using tally = no_tally;
  template <bool = false>
  __device__ num::tentative<T> attempt(const T* x) const {
    if constexpr (!has_quick<Op, T, Options...>) {
      return num::body<Op>::quick(x[0]);
    } else {
      return quick_eval<Op>(x, static_cast<const Options&>(*this)...);
    }
  }
  // Out of line: a pack of first values would be kept waiting for the registers of this.
  template <class... X>
  __device__ static __noinline__ T eval_proper(const X... x) {
    if constexpr (num::has_quick_body<Op, T>) {
      return num::body<Op>::careful(x...);
    } else {
      return num::body<Op>::eval(x...);
    }
  }
  __device__ T eval(const T* x, tally&) const {
    return num::with_places<arity>([&]<int... K>() {
      return eval_proper(x[K]..., static_cast<const Options&>(*this)...);
    });
  }
};
template <class Op, class T, class... Options>
requires num::has_exact_body<Op, T, Options...>
struct elementwise<Op, T, Options...> : Options... {
  static constexpr int arity = Op::arity;
  static constexpr tier first = tier::binary64;
  static constexpr bool tests_16_bits = sizeof(T) == 2;
  static constexpr unsigned booleans = 0;
  using input = T;
  using output = T;
  using tally = exact_tally;
  bool skip_test;
  int last_tier_bits;
  __device__ bool is_product() const requires has_products<Op> { return quick<Op>::is_product(*this); }
  template <bool Product = false>
  __device__ num::tentative<T> attempt(const T* x) const {
    if constexpr (has_quick<Op, T, Options...>) {
      return quick_eval<Op, T, real_for<Op, T>, Product>(x, static_cast<const Options&>(*this)...);
    } else {
      const auto r = num::with_places<arity>([&]<int... K>() {
        return num::evaluate<Op>(x[K]..., static_cast<const Options&>(*this)...);
      });
      return {r.value, r.decided};
    }
  }
  __device__ T eval(const T* x, tally& t) const {
    const settled r = num::with_places<arity>([&]<int... K>() { return settle(*this, x[K]...); });
    t.exact += r.by == settled::exact ? 1 : 0;
    t.undecided += r.by == settled::nobody ? 1 : 0;
    return r.value;
  }

 private:
  struct settled {
    T value;
    enum { first_tier, exact, nobody } by;
  };
  // Out of line, for the registers and the instruction cache.
  template <class... X>
  __device__ static __noinline__ settled settle(elementwise e, X... x) {
    if constexpr (has_quick<Op, T, Options...> && std::is_same_v<real_for<Op, T>, float>) {  // what binary32 left open
      const T operand[] = {x...};
      const num::tentative<T> wide = quick_eval<Op, T, double>(operand, static_cast<const Options&>(e)...);
      if (wide.decided && !e.skip_test) return {wide.value, settled::first_tier};
    }
    const auto quick = num::evaluate<Op>(x..., static_cast<const Options&>(e)...);
    if (quick.decided && !e.skip_test) return {quick.value, settled::first_tier};
    const auto r = num::evaluate_exactly<Op>(e.last_tier_bits, x..., static_cast<const Options&>(e)...);
    return {r.value, r.decided ? settled::exact : settled::nobody};
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

// Whether what is left open waits for the end of a thread's work: a call of a last tier keeps in memory what is needed after
// it. Functions without one have short bodies, which are called at once.
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

// Decides what the threads of a block left open and did not write, the block's threads together: such elements are few, and a warp
// takes as long for one as for 32. Of element j of thread t, at(t, j, operand) is the place; operand F::arity is the output. A
// thread has Elements at most. Operands are read again, also where out is one of them: nothing was written there. All threads of a
// block call it.
//
// The loop has no branch inside: one level of nesting more, and ptxas 13.0 saves a register of waiting lanes around the call, which
// seems to let them go too early (docs/ptxas-barriers.md).
template <int Elements, class F, class At>
__device__ void settle_open(const operands<F>& p, unsigned open, counter* counters, const At& at) {
  if constexpr (settles_late<F>) {
    static_assert(threads <= 256 && Elements <= 32);
    using In = typename F::input;
    __shared__ unsigned listed;
    __shared__ std::uint16_t list[threads * Elements];  // thread | element << 8
    if (threadIdx.x == 0) listed = 0;
    if (__syncthreads_or(static_cast<int>(open)) == 0) return;
    unsigned place = open != 0 ? atomicAdd(&listed, __popc(open)) : 0;
    for (; open != 0; open &= open - 1)
      list[place++] =
          static_cast<std::uint16_t>(threadIdx.x | static_cast<unsigned>(__ffs(static_cast<int>(open)) - 1) << 8);
    __syncthreads();
    typename F::tally tally;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < listed; i += threads) {
      const int t = list[i] & 0xff, j = list[i] >> 8;
      In x[F::arity];
#pragma unroll
      for (int a = 0; a < F::arity; ++a) x[a] = static_cast<const In*>(p.in[a])[at(t, j, a)];
      static_cast<typename F::output*>(p.out)[at(t, j, F::arity)] = p.eval(x, tally);
    }
    tally.report(counters, F::first);
  }
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
constexpr int packs_per_thread = tests_16_bits<F> ? 4 : 2;
template <class F>
__global__ void __launch_bounds__(threads, least_blocks<F>) map_packed(const operands<F> p, counter* counters) {
  using In = typename F::input;
  using Out = typename F::output;
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * threads * packs_per_thread<F>;
  const std::int64_t first = block + threadIdx.x;
  if (first == 0) count_elements(counters, F::first, p.count);
  const std::int64_t packs = p.count / batch;
  pack<In> x[packs_per_thread<F>][F::arity];
#pragma unroll
  for (int k = 0; k < packs_per_thread<F>; ++k) {
    const std::int64_t i = first + k * threads;
    if (i >= packs) break;
#pragma unroll
    for (int a = 0; a < F::arity; ++a) {
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
  const std::int64_t rest = packs * batch + first;
  constexpr int last = packs_per_thread<F> * batch;  // the element beyond the packs
  if (rest < p.count) {
    if constexpr (settles_late<F>) {
      open |= 1u << last;
    } else {
      typename F::tally none;
      In arguments[F::arity];
#pragma unroll
      for (int a = 0; a < F::arity; ++a) {
        arguments[a] = is_boolean<F>(a) ? read_boolean<In>(p.in[a], rest) : static_cast<const In*>(p.in[a])[rest];
      }
      static_cast<Out*>(p.out)[rest] = p.eval(arguments, none);
    }
  }
  settle_open<last + 1>(p, open, counters, [&](int t, int j, int) {
    return j == last ? p.count / batch * batch + block + t : (block + t + j / batch * threads) * batch + j % batch;
  });
}

// Rank 1, any strides; unit: all are 1. A thread's elements are a block apart, so that a warp reads and writes side by side.
template <class F>
__global__ void __launch_bounds__(threads, least_blocks<F>)
    map_line(const operands<F> p, bool unit, counter* counters) {
  using In = typename F::input;
  using Out = typename F::output;
  constexpr int elements = packs_per_thread<F> * batch;
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * threads * elements;
  const std::int64_t i = block + threadIdx.x;
  if (i == 0) count_elements(counters, F::first, p.count);
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
      each(k, p.axes.stride[a][0], [&](int j, std::int64_t at) {
        x[k][a].v[j] = is_boolean<F>(a) ? read_boolean<In>(p.in[a], at) : static_cast<const In*>(p.in[a])[at];
      });
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
  settle_open<elements>(p, open, counters,
                        [&](int t, int j, int a) { return (block + t + j * threads) * p.axes.stride[a][0]; });
}

// Rank 1, stride 1, 16 bits in and out, of long functions and many elements: every block keeps all 2^16 results in its shared
// memory. Looking one up costs less than memory does.
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
#pragma unroll 8
  for (std::int64_t i = packs * 8 + first; i < p.count; i += step) out[i] = table[in[i]];
}

// Any strides, fewer than 2^31 elements. A warp's elements are side by side. Packed: the innermost size is a multiple of
// `batch`, its stride is 1 for the output and 0 or 1 for the inputs, and every pack with stride 1 is aligned.
template <class F>
__global__ void __launch_bounds__(threads, least_blocks<F>)
    map_strided(const operands<F> p, bool packed, counter* counters) {
  using In = typename F::input;
  using Out = typename F::output;
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * threads;
  const auto element = [&](int t, int j) { return packed ? (block + t) * batch + j : block * batch + t + j * threads; };
  const std::int64_t first = element(static_cast<int>(threadIdx.x), 0);
  if (first == 0) count_elements(counters, F::first, p.count);
  pack<In> x[F::arity];
  pack<Out> y;
  unsigned open = 0;
  if (first >= p.count) {
    // nothing but what others leave open
  } else if (packed) {
    std::int64_t at[F::arity + 1];
    p.axes.locate(static_cast<std::uint32_t>(first), at);
#pragma unroll
    for (int a = 0; a < F::arity; ++a) {
      const In* from = static_cast<const In*>(p.in[a]) + at[a];
      if (p.axes.stride[a][0] != 0) {
        x[a] = is_boolean<F>(a) ? read_booleans<In>(p.in[a], at[a]) : *reinterpret_cast<const pack<In>*>(from);
      } else {
#pragma unroll
        for (int j = 0; j < batch; ++j) x[a].v[j] = is_boolean<F>(a) ? read_boolean<In>(p.in[a], at[a]) : *from;
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
      for (int a = 0; a < F::arity; ++a) {
        x[a].v[j] = is_boolean<F>(a) ? read_boolean<In>(p.in[a], at[a]) : static_cast<const In*>(p.in[a])[at[a]];
      }
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
  settle_open<batch>(p, open, counters, [&](int t, int j, int a) {
    std::int64_t at[F::arity + 1];
    p.axes.locate(static_cast<std::uint32_t>(element(t, j)), at);
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

// Returns whether they are contiguous.
template <class F>
bool set_operands(operands<F>& p, const plan::map_plan& plan) {
  if constexpr (std::is_base_of_v<num::parameters, F>) {
    for (int i = 0; i < ops::option_list::most; ++i) p.value[i] = plan.options[i];
  }
  p.out = plan.out;
  p.count = plan.count;
  p.axes.set_shape(plan.rank, plan.shape);
  p.axes.set_stride(F::arity, plan.out_stride);
  bool contiguous = p.count == 1 || (plan.rank == 1 && plan.out_stride[0] == 1);
  for (int a = 0; a < F::arity; ++a) {
    p.in[a] = plan.in[a].data;
    p.axes.set_stride(a, plan.in[a].stride);
    contiguous = contiguous && (p.count == 1 || plan.in[a].stride[0] == 1);
  }
  return contiguous;
}

template <class F>
void launch(const plan::map_plan& plan, const job& j, [[maybe_unused]] std::uint16_t* table) {
  operands<F> p{};
  const bool contiguous = set_operands(p, plan);
  if constexpr (F::first != tier::proved) {
    p.skip_test = j.first_tier > F::first;
    p.last_tier_bits = j.last_tier_bits;
  }
  bool packed = aligned<typename F::output>(p.out);
  for (int a = 0; a < F::arity; ++a) packed = packed && aligned_input<F>(p.in[a], a);
  constexpr bool tabulated = tabulated_operation<F>;
  if constexpr (tabulated) {
    if (shared_limit(j.device) < 2 * table_size) {
      pass_over<make_table<F>>(j);
      pass_over<map_table<F>>(j);
    }
    if (table != nullptr) {
      const auto in_packs = [](const void* x) { return reinterpret_cast<std::uintptr_t>(x) % sizeof(uint4) == 0; };
      launch_kernel<make_table<F>>(j, table_size / threads, threads, 0, p, table);
      launch_kernel<map_table<F>>(j, grid_for(j.device, ceil_div(p.count, table_threads), 1), table_threads,
                                  2 * table_size, p, table, in_packs(p.in[0]) && in_packs(p.out), j.counters);
      return;
    }
  }
  const bool line = !tabulated && (p.count == 1 || plan.rank == 1);
  if (contiguous && packed) {
    launch_kernel<map_packed<F>>(j, blocks_of(p.count, batch * packs_per_thread<F>), threads, 0, p, j.counters);
  } else if (line && !can_pack(p)) {
    if constexpr (!tabulated)
      launch_kernel<map_line<F>>(j, blocks_of(p.count, batch * packs_per_thread<F>), threads, 0, p, contiguous,
                                 j.counters);
  } else {
    in_parts(p, sizeof(typename F::output), most_strided(j), [&](const operands<F>& part) {
      launch_kernel<map_strided<F>>(j, blocks_of(part.count, batch), threads, 0, part, can_pack(part), j.counters);
    });
  }
}

template <int Shard>
constexpr map_shard make_map_shard() {
  return ops::make_shard<Shard, launcher>(
      []<class Op, class T, class... Options>() { return launch<elementwise<Op, T, Options...>>; });
}

}  // namespace
}  // namespace repdl::cuda
