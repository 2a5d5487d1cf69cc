// Optimiser steps. Memory-bound: one kernel reads every operand of an element once and writes every result once.
//
// Many tensors share a launch: their descriptions travel in the kernel's parameters, and a block finds the tensor of
// its next unit of work (unit_size elements) by bisection. Tensors that are not contiguous get a launch of their own.
//
// A thread that cannot decide a linear formula in the first tier does so at once in integers; that is rare. Where AdamW's
// parameter is undecided, the old one is stored in its place, and the element noted in the workspace (noted_elements). Two kernels go
// through what is noted, and make the new parameter of the old one and the new moments:
//   settle_kernel  the formula in balls of 128 bits, then of 512, a thread an element
//   last_kernel    4096 bits, of f64 8704, which always decide, a thread a block
// Numbers of 512 bits and more lie in shared memory: on the threads' stacks they would take gigabytes of the device's.
#pragma once

#include "backends/cuda/core/axes.hpp"
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/step/step.cuh"
#include "librepdl/ops/steps/step_adamw.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int batch = 4;  // elements that a thread works on at a time
constexpr std::int64_t unit_size = step_unit;
static_assert(unit_size == threads * batch);
constexpr int blocks_per_multiprocessor = 3;
constexpr int settle_threads = 32;
constexpr int settle_limbs = 8;

struct tiers_forced {
  double double_double;  // 0 or +inf
  double binary64;
};

template <class E>
struct alignas(batch * sizeof(E)) pack {
  E v[batch];
};

// The results of a warp's elements that went to the integers move from the first tier's counter to theirs.
__device__ void count_exact(counter* counters, tier first, bool exact) {
  const unsigned n = static_cast<unsigned>(__popc(__ballot_sync(full_warp, exact)));
  if (n == 0 || lane_of_thread() != 0) return;
  count_elements(counters, tier::exact, n);
  count_elements(counters, first, -static_cast<std::int64_t>(n));
}

// The numbers that operands of T are read as, and that states beside them are.
template <class T>
using number_of = num::state_of<T>;
template <class E>
__device__ number_of<E> read(E x) {
  if constexpr (std::is_same_v<E, number_of<E>>) {
    return x;
  } else {
    return num::widen_to_float(x);
  }
}

template <class T, class Stage>
__device__ __noinline__ T decide_exactly(const Stage& stage, number_of<T> x, number_of<T> y, number_of<T> z) {
  return num::decide<T>(stage, x, y, z);
}

// One linear formula with a result of T, by all lanes of a warp together.
template <class T, class Stage>
__device__ number_of<T> run_stage(const Stage& stage, double force, bool active, number_of<T> x, number_of<T> y,
                                  number_of<T> z, counter* counters) {
  const bool plain = !std::is_same_v<T, double> && stage.plain;  // of binary64 one form is for both
  const auto o = plain ? num::attempt<T, !std::is_same_v<T, double>>(stage, force, x, y, z)
                       : num::attempt<T, false>(stage, force, x, y, z);
  number_of<T> value = o.value;
  const bool exact = active && o.undecided != 0;
  if (__any_sync(full_warp, exact)) {
    if (exact) value = read(decide_exactly<T>(stage, x, y, z));
    count_exact(counters, tier::double_double, exact);
  }
  return value;
}

// A program is what is done to one element. in: as plan::step_tensor; out: its outputs, in its order. The parameter, of 16 bits in
// binary32, is rounded to T where it is stored (num::outcome). run says whether the parameter is undecided. settles: whether that may be.
template <class T, class Param>
struct sgd_without_velocity {
  using type = T;
  static constexpr int inputs = 2, outputs = 1;
  static constexpr bool settles = false;
  Param param;
  tiers_forced force;

  __device__ bool run(const number_of<T> (&in)[4], number_of<T> (&out)[3], bool active, counter* counters) const {
    out[0] = run_stage<T>(param, force.double_double, active, number_of<T>{}, in[1], in[0], counters);
    return false;
  }
  __device__ static void count_first(counter* counters, std::int64_t n) {
    count_elements(counters, tier::double_double, n);
  }
};

template <class T, class Velocity, class Param, bool ReadsState>
struct sgd_with_velocity {
  using type = T;
  static constexpr int inputs = ReadsState ? 3 : 2, outputs = 2;
  static constexpr bool settles = false;
  Velocity velocity;
  Param param;
  tiers_forced force;

  __device__ bool run(const number_of<T> (&in)[4], number_of<T> (&out)[3], bool active, counter* counters) const {
    out[1] = run_stage<number_of<T>>(velocity, force.double_double, active, in[2], in[1], in[0], counters);
    out[0] = run_stage<T>(param, force.double_double, active, out[1], in[1], in[0], counters);
    return false;
  }
  __device__ static void count_first(counter* counters, std::int64_t n) {
    count_elements(counters, tier::double_double, 2 * n);
  }
};

// The first tier of AdamW's parameter.
template <class T>
inline constexpr tier first_of_param = std::is_same_v<T, double> ? tier::double_double : tier::binary64;

template <class T>
struct adamw_program {
  using type = T;
  static constexpr int inputs = 4, outputs = 3;
  static constexpr bool settles = true;
  num::adamw_stages stages;
  tiers_forced force;

  __device__ bool run(const number_of<T> (&in)[4], number_of<T> (&out)[3], bool active, counter* counters) const {
    using state = number_of<T>;
    const state p = in[0];
    const state m = run_stage<state>(stages.first_moment, force.double_double, active, in[2], in[1], state{}, counters);
    const state v =
        run_stage<state>(stages.second_moment, force.double_double, active, in[3], in[1], state{}, counters);
    constexpr bool wide = first_of_param<T> == tier::double_double;
    const auto o = num::attempt<T>(stages.param, wide ? force.double_double : force.binary64, p, m, v);
    out[0] = o.value;
    out[1] = m;
    out[2] = v;
    return active && o.undecided != 0;
  }
  __device__ static void count_first(counter* counters, std::int64_t n) {
    count_elements(counters, tier::double_double, 2 * n);
    count_elements(counters, first_of_param<T>, n);
  }
};

template <class E>
__device__ E stored(number_of<E> value) {
  if constexpr (std::is_same_v<E, number_of<E>>) {
    return value;
  } else {
    return num::narrow<E>(value);
  }
}

// Calls f<E, K>() for the operands, E their elements' type: the parameter and the gradient, of outputs the parameter alone, have the
// program's.
template <class Program, class F>
__device__ void for_inputs(const F& f) {
  using T = typename Program::type;
  f.template operator()<T, 0>();
  f.template operator()<T, 1>();
  if constexpr (Program::inputs > 2) f.template operator()<number_of<T>, 2>();
  if constexpr (Program::inputs > 3) f.template operator()<number_of<T>, 3>();
}
template <class Program, class F>
__device__ void for_outputs(const F& f) {
  using T = typename Program::type;
  f.template operator()<T, 0>();
  if constexpr (Program::outputs > 1) f.template operator()<number_of<T>, 1>();
  if constexpr (Program::outputs > 2) f.template operator()<number_of<T>, 2>();
}

// ---- undecided elements

// A unit is unit_size elements of a tensor in row-major order, a warp's part of it 32 batch of them.
constexpr int words_of_warp = batch;
constexpr int words_of_unit = unit_size / 32;
static_assert(warps == sizeof(std::uint64_t));

// A warp notes what it leaves undecided of its part: undecided[j] of element 32 j + lane or, packed, batch lane + j.
template <class Program>
__device__ void note(const noted_elements& noted, std::int64_t unit, const bool (&undecided)[batch], bool packed) {
  if constexpr (Program::settles) {
    const int warp = static_cast<int>(threadIdx.x / 32);
    bool some = false;
#pragma unroll
    for (int j = 0; j < batch; ++j) some = some || undecided[j];
    const bool any = __any_sync(full_warp, some) != 0;
    if (lane_of_thread() == 0) noted.flags[unit * warps + warp] = static_cast<std::uint8_t>(any);
    if (!any) return;
    std::uint32_t* const words = noted.words + unit * words_of_unit + warp * words_of_warp;
    if (packed) {
      unsigned bits = 0;
#pragma unroll
      for (int j = 0; j < batch; ++j)
        bits |= static_cast<unsigned>(undecided[j]) << (batch * (lane_of_thread() % 8) + j);
#pragma unroll
      for (int other = 1; other < 8; other *= 2) bits |= __shfl_xor_sync(full_warp, bits, other);
      if (lane_of_thread() % 8 == 0) words[lane_of_thread() / 8] = bits;
    } else {
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        const unsigned bits = __ballot_sync(full_warp, undecided[j]);
        if (lane_of_thread() == 0) words[j] = bits;
      }
    }
  }
}

// The place in a unit of element j of a thread that takes them one by one: a warp's lie side by side.
__device__ int place_of(int j) { return (static_cast<int>(threadIdx.x / 32) * batch + j) * 32 + lane_of_thread(); }

// ---- contiguous tensors

// Where AdamW's parameter and moments are: outputs, and the element's places in them.
struct param_site {
  void* param;
  const void* first;
  const void* second;
  std::int64_t at_param, at_first, at_second;
};

struct tensor {
  const void* in[4];
  void* out[3];
  std::int64_t count;
  std::int64_t first_unit;
};
constexpr int tensors_per_launch = 432;  // kernel parameters: 32764 bytes
struct tensor_list {
  int tensors;
  unsigned packed[ceil_div(tensors_per_launch, 32)];  // a bit per tensor: every pointer is aligned to a pack
  std::int64_t units;
  tensor at[tensors_per_launch];

  // That of a unit.
  __device__ int index_of(std::int64_t unit) const {
    int low = 0;
    int high = tensors - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (at[middle].first_unit <= unit) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }
  __device__ param_site site(std::int64_t unit, int place) const {
    const tensor& t = at[index_of(unit)];
    const std::int64_t i = (unit - t.first_unit) * unit_size + place;
    return {t.out[0], t.out[1], t.out[2], i, i, i};
  }
};

template <class Program>
__global__ void __launch_bounds__(threads, blocks_per_multiprocessor)
    step_kernel(const __grid_constant__ Program program, const __grid_constant__ tensor_list list, noted_elements noted,
                counter* counters) {
  for (std::int64_t unit = blockIdx.x; unit < list.units; unit += gridDim.x) {
    const int index = list.index_of(unit);
    const tensor& t = list.at[index];
    const std::int64_t first = (unit - t.first_unit) * unit_size;
    if (first == 0 && threadIdx.x == 0) Program::count_first(counters, t.count);
    // Packed: a thread's elements lie side by side.
    const bool packed = (list.packed[index / 32] >> (index % 32) & 1) != 0 && first + unit_size <= t.count;
    using number = number_of<typename Program::type>;
    number in[batch][4];
    number out[batch][3];
    bool undecided[batch];
    if (packed) {
      for_inputs<Program>([&]<class E, int K>() {
        const auto x = reinterpret_cast<const pack<E>*>(static_cast<const E*>(t.in[K]) + first)[threadIdx.x];
#pragma unroll
        for (int j = 0; j < batch; ++j) in[j][K] = read(x.v[j]);
      });
    } else {
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        const std::int64_t i = first + place_of(j);
        for_inputs<Program>(
            [&]<class E, int K>() { in[j][K] = i < t.count ? read(static_cast<const E*>(t.in[K])[i]) : number{}; });
      }
    }
#pragma unroll
    for (int k = Program::inputs; k < 4; ++k) {
#pragma unroll
      for (int j = 0; j < batch; ++j) in[j][k] = number{};
    }
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      const bool active = packed || first + place_of(j) < t.count;
      undecided[j] = program.run(in[j], out[j], active, counters);
      if (undecided[j]) out[j][0] = in[j][0];
    }
    note<Program>(noted, unit, undecided, packed);
    if (packed) {
      for_outputs<Program>([&]<class E, int K>() {
        pack<E> y;
#pragma unroll
        for (int j = 0; j < batch; ++j) y.v[j] = stored<E>(out[j][K]);
        reinterpret_cast<pack<E>*>(static_cast<E*>(t.out[K]) + first)[threadIdx.x] = y;
      });
    } else {
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        const std::int64_t i = first + place_of(j);
        for_outputs<Program>([&]<class E, int K>() {
          if (i < t.count) static_cast<E*>(t.out[K])[i] = stored<E>(out[j][K]);
        });
      }
    }
  }
}

// ---- any strides

struct strided_tensor {
  const void* in[4];
  void* out[3];
  std::int64_t count;
  std::int64_t units;
  strided_axes<7> axes;  // four inputs, three outputs

  __device__ param_site site(std::int64_t unit, int place) const {
    std::int64_t to[7];
    axes.locate(unit * unit_size + place, to);
    return {out[0], out[1], out[2], to[4], to[5], to[6]};
  }
};

template <class Program>
__global__ void __launch_bounds__(threads, blocks_per_multiprocessor)
    strided_step_kernel(const __grid_constant__ Program program, const __grid_constant__ strided_tensor t,
                        noted_elements noted, counter* counters) {
  if (blockIdx.x == 0 && threadIdx.x == 0) Program::count_first(counters, t.count);
  for (std::int64_t unit = blockIdx.x; unit < t.units; unit += gridDim.x) {
    unsigned mask = 0;
#pragma unroll 1
    for (int j = 0; j < batch; ++j) {
      const std::int64_t i = unit * unit_size + place_of(j);
      const bool active = i < t.count;
      std::int64_t at[7];
      t.axes.locate(active ? i : 0, at);
      using number = number_of<typename Program::type>;
      number in[4] = {};
      number out[3];
      for_inputs<Program>([&]<class E, int K>() { in[K] = read(static_cast<const E*>(t.in[K])[at[K]]); });
      const bool left = program.run(in, out, active, counters);
      if (left) out[0] = in[0];
      if (left) mask |= 1u << static_cast<unsigned>(j);
      for_outputs<Program>([&]<class E, int K>() {
        if (active) static_cast<E*>(t.out[K])[at[4 + K]] = stored<E>(out[K]);
      });
    }
    bool undecided[batch];
#pragma unroll
    for (int j = 0; j < batch; ++j) undecided[j] = (mask >> j & 1) != 0;
    note<Program>(noted, unit, undecided, false);
  }
}

// ---- the exact tier of AdamW's parameter

// Calls decide(bits, unit, place) by a warp for every word of noted elements, the first of them that of the place in the unit; it returns
// the bits that are left.
template <class Decide>
__device__ void for_noted(const noted_elements& noted, std::int64_t units, const Decide& decide) {
  const std::int64_t warp = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t first = 32 * warp; first < units; first += step) {
    const std::int64_t own = first + lane_of_thread();
    const std::uint64_t flags = own < units ? reinterpret_cast<const std::uint64_t*>(noted.flags)[own] : 0;
    for (unsigned some = __ballot_sync(full_warp, flags != 0); some != 0; some &= some - 1) {
      const int lane = __ffs(static_cast<int>(some)) - 1;
      const std::uint64_t set = __shfl_sync(full_warp, flags, lane);
      for (int w = 0; w < words_of_unit; ++w) {
        if ((set >> (8 * (w / words_of_warp)) & 1) == 0) continue;
        std::uint32_t* const word = noted.words + (first + lane) * words_of_unit + w;
        const unsigned bits = *word;
        if (bits == 0) continue;
        const unsigned left = decide(bits, first + lane, 32 * w);
        if (lane_of_thread() == 0) *word = left;
        __syncwarp();
      }
    }
  }
}

template <class T>
__device__ void count_settled(counter* counters, unsigned bits) {
  if (lane_of_thread() != 0 || bits == 0) return;
  count_elements(counters, tier::exact, __popc(bits));
  count_elements(counters, first_of_param<T>, -static_cast<std::int64_t>(__popc(bits)));
}

// The old parameter and the new moments of an element; whether the parameter follows from what is not finite or 0.
template <class T>
__device__ bool load_formula(num::adamw_formula& f, const param_site& at, T& special) {
  f.p = num::widen(static_cast<const T*>(at.param)[at.at_param]);
  using state = number_of<T>;
  f.m = static_cast<double>(static_cast<const state*>(at.first)[at.at_first]);
  f.v = static_cast<double>(static_cast<const state*>(at.second)[at.at_second]);
  return num::is_special(f.c, f.p, f.m, f.v, &special);
}

// skip: of a self-test, which leaves all to last_kernel.
template <class T, class Tensors>
__global__ void __launch_bounds__(settle_threads)
    settle_kernel(const num::adamw_param given, const __grid_constant__ Tensors tensors, noted_elements noted,
                  bool skip, counter* counters) {
  __shared__ num::adamw_space<settle_limbs> spaces[settle_threads];
  const num::adamw_param c = given;
  for_noted(noted, tensors.units, [&](unsigned bits, std::int64_t unit, int place) {
    const bool mine = !skip && (bits >> lane_of_thread() & 1) != 0;
    bool decided = false;
    if (mine) {
      const param_site at = tensors.site(unit, place + lane_of_thread());
      num::adamw_formula f{c, 0, 0, 0};
      T special{};
      const bool is_special = load_formula(f, at, special);
      num::decided_value<T> r{special, is_special};
      if (!r.decided) r = num::round_surd<T, 2>(f.eval<2>());
      if (!r.decided) r = num::round_in_place<T, settle_limbs>(f, spaces[threadIdx.x]);
      decided = r.decided;
      if (decided) static_cast<T*>(at.param)[at.at_param] = r.value;
    }
    const unsigned done = __ballot_sync(full_warp, decided);
    count_settled<T>(counters, done);
    return bits & ~done;
  });
}

template <class T, class Tensors>
__global__ void __launch_bounds__(32) last_kernel(const num::adamw_param given, const __grid_constant__ Tensors tensors,
                                                  noted_elements noted, counter* counters) {
  constexpr int limbs = num::adamw_limbs<T>;
  __shared__ num::adamw_space<limbs> space;
  const num::adamw_param c = given;
  for_noted(noted, tensors.units, [&](unsigned bits, std::int64_t unit, int place) {
    unsigned done = 0;
    if (lane_of_thread() == 0) {
      for (unsigned rest = bits; rest != 0; rest &= rest - 1) {
        const int i = __ffs(static_cast<int>(rest)) - 1;
        const param_site at = tensors.site(unit, place + i);
        num::adamw_formula f{c, 0, 0, 0};
        T value{};
        if (!load_formula(f, at, value)) value = num::round_in_place<T, limbs>(f, space).value;
        static_cast<T*>(at.param)[at.at_param] = value;
      }
      done = bits;
    }
    count_settled<T>(counters, done);
    return 0u;
  });
}

// ---- host

template <class Program>
bool contiguous(const plan::step_tensor& t) {
  if (t.rank == 0 || t.count == 1) return true;
  if (t.rank != 1) return false;
  bool all = true;
  for (std::size_t k = 0; k < Program::inputs; ++k) all = all && t.in_stride[k][0] == 1;
  for (std::size_t k = 0; k < Program::outputs; ++k) all = all && t.out_stride[k][0] == 1;
  return all;
}

// One launch over tensors, and, of AdamW, those that decide what it leaves undecided. Units of the workspace are taken one after the other.
template <auto Kernel, class Program, class Tensors>
void launch_over(const Program& program, const Tensors& tensors, const job& j, noted_elements& noted) {
  launch_kernel<Kernel>(j, grid_for(j.device, tensors.units, 16), threads, 0, program, tensors, noted, j.counters);
  if constexpr (Program::settles) {
    using T = typename Program::type;
    const std::int64_t portions = ceil_div(tensors.units, 32);
    launch_kernel<settle_kernel<T, Tensors>>(j, grid_for(j.device, ceil_div(portions, settle_threads / 32), 8),
                                             settle_threads, 0, program.stages.param, tensors, noted,
                                             j.device.choice.wide, j.counters);
    launch_kernel<last_kernel<T, Tensors>>(j, grid_for(j.device, portions, 1), 32, 0, program.stages.param, tensors,
                                           noted, j.counters);
    noted.words += tensors.units * words_of_unit;
    noted.flags += tensors.units * warps;
  }
}

template <class Program>
void flush(const Program& program, tensor_list& list, const job& j, noted_elements& noted) {
  if (list.tensors == 0) return;
  launch_over<step_kernel<Program>>(program, list, j, noted);
  list = {};
}

// Launches the program on those tensors of the plan that `takes` accepts.
template <class Program, class Takes>
void launch(const Program& program, const plan::step_plan& p, const job& j, noted_elements noted, const Takes& takes) {
  static_assert(sizeof(Program) + sizeof(tensor_list) + sizeof(noted_elements) + sizeof(counter*) <= 32764);
  tensor_list list{};
  for (const plan::step_tensor& t : p.tensors) {
    if (!takes(t)) continue;
    if (contiguous<Program>(t)) {
      tensor& to = list.at[list.tensors];
      bool packed = true;
      const auto aligned = [](const void* a, std::size_t size) {
        return reinterpret_cast<std::uintptr_t>(a) % (batch * size) == 0;
      };
      constexpr std::size_t size = sizeof(typename Program::type);
      constexpr std::size_t state = sizeof(number_of<typename Program::type>);
      for (std::size_t k = 0; k < Program::inputs; ++k) {
        to.in[k] = t.in[k];
        packed = packed && aligned(t.in[k], k < 2 ? size : state);
      }
      for (std::size_t k = 0; k < Program::outputs; ++k) {
        to.out[k] = t.out[k];
        packed = packed && aligned(t.out[k], k == 0 ? size : state);
      }
      to.count = t.count;
      to.first_unit = list.units;
      list.units += ceil_div(t.count, unit_size);
      list.packed[list.tensors / 32] |= static_cast<unsigned>(packed) << (list.tensors % 32);
      if (++list.tensors == tensors_per_launch) flush(program, list, j, noted);
    } else {
      strided_tensor s{};
      s.count = t.count;
      s.units = ceil_div(t.count, unit_size);
      s.axes.set_shape(t.rank, t.shape);
      for (std::size_t k = 0; k < Program::inputs; ++k) {
        s.in[k] = t.in[k];
        s.axes.set_stride(static_cast<int>(k), t.in_stride[k]);
      }
      for (std::size_t k = 0; k < Program::outputs; ++k) {
        s.out[k] = t.out[k];
        s.axes.set_stride(static_cast<int>(4 + k), t.out_stride[k]);
      }
      launch_over<strided_step_kernel<Program>>(program, s, j, noted);
    }
  }
  flush(program, list, j, noted);
}

}  // namespace

template <class T>
void launch_step(const plan::step_plan& p, const job& j, const noted_elements& noted) {
  const tiers_forced force = {j.first_tier > tier::double_double ? num::infinity : 0.0,
                              j.first_tier > tier::binary64 ? num::infinity : 0.0};
  const auto all = [](const plan::step_tensor&) { return true; };
  const auto first_step = [](const plan::step_tensor& t) { return t.in[2] == nullptr; };
  const auto later_step = [](const plan::step_tensor& t) { return t.in[2] != nullptr; };
  if (p.op == ops::op_id::adamw) {
    const adamw_options& a = p.adamw;
    const auto stages = num::make_adamw_stages(a.lr, a.beta1, a.beta2, a.eps, a.weight_decay, p.c1, p.c2);
    return launch(adamw_program<T>{stages, force}, p, j, noted, all);
  }
  using num::sgd_first_velocity, num::sgd_velocity, num::sgd_param, num::sgd_nesterov_param, num::sgd_plain_param;
  const num::sgd_stages s = num::make_sgd_stages(p.sgd.lr, p.sgd.momentum, p.sgd.dampening, p.sgd.weight_decay);
  const auto with_velocity = [&]<class Param>(const Param& param) {
    launch(sgd_with_velocity<T, sgd_velocity, Param, true>{s.velocity, param, force}, p, j, noted, later_step);
    launch(sgd_with_velocity<T, sgd_first_velocity, Param, false>{s.first_velocity, param, force}, p, j, noted,
           first_step);
  };
  if (!(p.sgd.momentum > 0)) {
    launch(sgd_without_velocity<T, sgd_plain_param>{s.plain_param, force}, p, j, noted, all);
  } else if (p.sgd.nesterov) {
    with_velocity(s.nesterov_param);
  } else {
    with_velocity(s.param);
  }
}

}  // namespace repdl::cuda
