// Operations that are applied to each element of their operands, elementwise ones, conversions and losses: what the kernels know of
// them, and how a thread reads, computes and writes.
//
// Memory-bound code: what a rounding test leaves undecided is noted, and decided by a launch of its own (map_settle). Contiguous operands
// are read and written four elements at a time, wherever they begin; so are strided ones whose innermost axis allows it (a broadcast
// row or scalar included), with one index computation per four elements. Long functions of 16 bits have a table.
//
// An operation F has an arity, input, output, the tier that decides first, a tally, and eval(x, tally), which decides. It may have
// attempt(x): a value that may be wrong, and whether it is right; then attempts_again, attempt_again(x), tests_16_bits; options; and
//   booleans       operands that are bytes, as bits
//   tabulated      it is looked up
//   may_be_absent  operands side by side whose pointer may be null, too
#pragma once

#include <algorithm>
#include <type_traits>

#include "backends/cuda/core/axes.hpp"
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/map/undecided_elements.hpp"
#include "librepdl/ops/elementwise/body.hpp"

namespace repdl::cuda {

// The parts of a call's workspace, or nothing.
struct map_space {
  std::uint16_t* table = nullptr;
  float* factors = nullptr;
  undecided_elements undecided;

  // What one call of a list has of the list's: calls come one after the other.
  map_space of_call(const plan::map_plan& c, const job& j) const {
    map_space own;
    if (notes_undecided(c.count, j.device, j.first_tier)) own.undecided = undecided;
    return own;
  }
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
template <class F>
concept tentative_operation = requires(const F& f, const typename F::input* x) {
  f.attempt(x);
};
// What has a test wants many threads, but for long bodies of three operands.
template <class F>
constexpr int least_blocks = !tentative_operation<F>                                         ? 1
                             : tests_16_bits<F> && F::first != tier::proved && F::arity < 3  ? 5
                             : tests_16_bits<F> && F::first == tier::proved && F::arity == 3 ? 3
                                                                                             : 4;

template <class F>
constexpr bool may_be_absent = [] {
  if constexpr (requires { F::may_be_absent; }) return F::may_be_absent;
  return false;
}();

template <class F>
struct operands : F {
  const void* in[F::arity];  // null: a number
  void* out;
  std::int64_t count;
  strided_axes<F::arity + 1> axes;  // the inputs, then the output
  typename F::input number[F::arity];
};
template <class F>
bool has_number(const operands<F>& p) {
  return std::find(p.in, p.in + F::arity, nullptr) != p.in + F::arity;
}

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
__device__ In to_boolean(std::uint8_t byte) {
  if constexpr (std::is_integral_v<In>) {
    return byte != 0;
  } else {
    return num::from_bits<In>(byte != 0 ? 1 : 0);
  }
}

// The bits of a pack. What is read stays so until it is used: of 16 bits nvcc would keep each element in a register of its own.
template <class T>
struct pack_bits {
  using word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static constexpr int each = sizeof(word) / sizeof(T), words = batch / each;
  word w[words];
  __device__ T operator[](int j) const {
    if constexpr (each == 1) {
      return num::bit_cast<T>(w[j]);
    } else if constexpr (std::is_same_v<T, f16>) {
      std::uint16_t half[2];  // the register's own halves, which a shift would copy
      asm("mov.b32 {%0, %1}, %2;" : "=h"(half[0]), "=h"(half[1]) : "r"(w[j / 2]));
      return num::bit_cast<T>(half[j % 2]);
    } else {
      using number = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>;
      return num::bit_cast<T>(static_cast<number>(w[j / each] >> (j % each * 8 * static_cast<int>(sizeof(T)))));
    }
  }
};
// The words that hold a pack, one more than it has where it begins between two.
template <class T>
struct pack_words {
  using bits = pack_bits<T>;
  using word = typename bits::word;
  static constexpr int spare = bits::each > 1 ? 1 : 0;
  word w[bits::words + spare];
  __device__ static int misalignment(const void* from) {
    return spare == 0 ? 0 : static_cast<int>(reinterpret_cast<std::uintptr_t>(from) % sizeof(word));
  }
  __device__ void load_any(const void* from) {
    const word* const first = reinterpret_cast<const word*>(static_cast<const std::byte*>(from) - misalignment(from));
#pragma unroll
    for (int i = 0; i < bits::words; ++i) w[i] = first[i];
    if (spare != 0) w[bits::words + spare - 1] = misalignment(from) != 0 ? first[bits::words] : 0;
  }
  // Of what load_any read: moves the pack to the first word.
  __device__ void shift(const void* from) {
    if constexpr (spare != 0) {
#pragma unroll
      for (int i = 0; i < bits::words; ++i) w[i] = __funnelshift_r(w[i], w[i + 1], 8 * misalignment(from));
    }
  }
  __device__ T operator[](int j) const {
    bits b;
#pragma unroll
    for (int i = 0; i < bits::words; ++i) b.w[i] = w[i];
    return b[j];
  }
};

// Element `at` of operand a.
template <class F>
__device__ typename F::input read_element(const operands<F>& p, int a, std::int64_t at) {
  using In = typename F::input;
  if (F::arity > 1 && p.in[a] == nullptr) return p.number[a];
  return is_boolean<F>(a) ? to_boolean<In>(static_cast<const std::uint8_t*>(p.in[a])[at])
                          : static_cast<const In*>(p.in[a])[at];
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

// Whether what is left undecided waits: for the end of a block's work, and for the last tier. Functions without one have short bodies,
// which are called at once.
template <class F>
constexpr bool settles_late = F::first != tier::proved;

// What an operation makes of a thread's elements, and a bit for each that it leaves undecided.
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
  unsigned undecided = 0;
  if constexpr (tentative_operation<F>) {
    bool decided[batch], all = !skips_test(f);
    const auto try_each = [&](auto product) {
      each([&](int j, const auto& arguments) {
        const auto r = f.template attempt<product.value>(arguments);
        y.v[j] = r.value;
        decided[j] = r.decided;
        all = all & r.decided;
      });
    };
    if constexpr (requires { f.is_product(); }) {
      f.is_product() ? try_each(std::true_type{}) : try_each(std::false_type{});
    } else {
      try_each(std::false_type{});
    }
    if (all) return 0;
#pragma unroll
    for (int j = 0; j < batch; ++j) undecided |= decided[j] && !skips_test(f) ? 0u : 1u << j;
    if (settles_late<F>) return undecided;
  }
  if constexpr (!settles_late<F>) {
    // Where more are undecided, a warp does the elements that one of its threads wants.
    constexpr bool each_alone = tests_16_bits<F>;
    typename F::tally none;
    each([&](int j, const auto& arguments) {
      if (!each_alone || (undecided >> j & 1) != 0) y.v[j] = f.eval(arguments, none);
    });
  }
  return 0;
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

// Contiguous operands as packs: the output begins at one, and the first `skip` elements are not there; nor is the first pack then.
// aligned: the inputs begin at packs, too. What is not aligned has no last pack: beyond its words there may be nothing.
struct packing {
  std::int64_t end;  // of the packs
  int skip;
  bool aligned;
  __device__ int first() const { return skip != 0 ? 1 : 0; }
};
// Of `count` elements, thread t's one before or beyond the packs, or -1.
__device__ inline std::int64_t element_beside(const packing& line, std::int64_t count, int t) {
  const std::int64_t packs = line.end > line.first() ? line.end : line.first();
  const std::int64_t i = t < batch ? t : packs * batch + (t - batch);
  const bool there = t < batch ? line.skip != 0 && t >= line.skip : t < 2 * batch;
  return there && i < count ? i : -1;
}
// Those of `most` packs from `begin` on, which they are counted from.
struct some_packs {
  std::int64_t begin;
  int first, end;
  __device__ some_packs(const packing& line, std::int64_t begin, int most)
      : begin(begin), first(begin == 0 ? line.first() : 0) {
    const std::int64_t rest = line.end - begin;
    end = static_cast<int>(rest < most ? rest : most);
  }
  __device__ bool has(int i) const { return i >= first && i < end; }
};

// Packs of the operands, as words: boolean ones have bytes.
template <class F>
struct operand_words {
  using In = typename F::input;
  using byte = std::uint8_t;
  pack_words<In> of[F::arity];

  // Those at pack i. Aligned: every operand is, to packs.
  __device__ void load(const operands<F>& p, std::int64_t i, bool aligned) {
    each(p, [&](int a) {
      const std::size_t size = is_boolean<F>(a) ? sizeof(pack<byte>) : sizeof(pack<In>);
      const std::byte* const from = static_cast<const std::byte*>(p.in[a]) + i * static_cast<std::int64_t>(size);
      if (is_boolean<F>(a)) {
        pack_words<byte> bytes{};
        aligned ? void(bytes.w[0] = *reinterpret_cast<const std::uint32_t*>(from)) : bytes.load_any(from);
        of[a].w[0] = bytes.w[0], of[a].w[1] = bytes.w[1];
      } else if (aligned) {
        const auto bits = load_streaming(reinterpret_cast<const pack_bits<In>*>(from));
#pragma unroll
        for (int w = 0; w < pack_bits<In>::words; ++w) of[a].w[w] = bits.w[w];
      } else {
        of[a].load_any(from);
      }
    });
  }
  // Where they are not aligned, once they are used: loads are waited for here.
  __device__ void shift(const operands<F>& p) {
    each(p, [&](int a) {
      if (is_boolean<F>(a)) {
        pack_words<byte> bytes = bytes_of(a);
        bytes.shift(p.in[a]);
        of[a].w[0] = bytes.w[0];
      } else {
        of[a].shift(p.in[a]);
      }
    });
  }
  __device__ void unpack(const operands<F>& p, pack<In> (&x)[F::arity]) const {
    if constexpr (may_be_absent<F>) {
#pragma unroll
      for (int a = 0; a < F::arity; ++a) {
#pragma unroll
        for (int j = 0; j < batch; ++j) x[a].v[j] = p.number[a];
      }
    }
    each(p, [&](int a) {
#pragma unroll
      for (int j = 0; j < batch; ++j) x[a].v[j] = is_boolean<F>(a) ? to_boolean<In>(bytes_of(a)[j]) : of[a][j];
    });
  }

 private:
  template <class Operand>
  __device__ static void each(const operands<F>& p, const Operand& operand) {
#pragma unroll
    for (int a = 0; a < F::arity; ++a) {
      if (may_be_absent<F> && p.in[a] == nullptr) continue;
      operand(a);
    }
  }
  __device__ pack_words<byte> bytes_of(int a) const {
    return {{static_cast<std::uint32_t>(of[a].w[0]), static_cast<std::uint32_t>(of[a].w[1])}};
  }
};
// Packs first, first + step, ...
template <class F, int N>
__device__ void read_packs(const operands<F>& p, bool aligned, const some_packs& packs, int first, int step,
                           operand_words<F> (&x)[N]) {
  const auto read = [&](bool aligned) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (packs.has(first + k * step)) x[k].load(p, packs.begin + first + k * step, aligned);
    }
  };
  aligned ? read(true) : read(false);
}
template <class F, int N>
__device__ void shift_packs(const operands<F>& p, bool aligned, operand_words<F> (&x)[N]) {
  if (aligned) return;
#pragma unroll
  for (int k = 0; k < N; ++k) x[k].shift(p);
}

// Elements i, i + step, ... of a line: N of them, or those that there are. Where all are, without branches, the addresses are sums.
template <int N, class Element>
__device__ void walk(std::int64_t i, std::int64_t step, std::int64_t count, std::int64_t stride,
                     const Element& element) {
  std::int64_t at = i * stride;
  stride *= step;
  if (i + (N - 1) * step < count) {
#pragma unroll
    for (int j = 0; j < N; ++j, at += stride) element(j, at);
  } else {
#pragma unroll
    for (int j = 0; j < N; ++j, at += stride) {
      if (i + j * step < count) element(j, at);
    }
  }
}

// Writes the elements that are not undecided.
template <class Out>
__device__ void store_decided(Out* to, const pack<Out>& y, unsigned undecided) {
#pragma unroll
  for (int j = 0; j < batch; ++j) {
    if ((undecided >> j & 1) == 0) to[j] = y.v[j];
  }
}

}  // namespace
}  // namespace repdl::cuda
