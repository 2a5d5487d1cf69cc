// Optimiser steps. Memory-bound: one kernel reads every operand of an element once and writes every result once.
//
// Many tensors share a launch: their descriptions travel in the kernel's parameters, and a block finds the tensor of
// its next unit of work (unit_size elements) by bisection. Tensors that are not contiguous get a launch of their own.
//
// A thread that cannot decide an element in the first tier does so at once in integers; that is rare, and needs no
// workspace and no second kernel. The wide numbers of AdamW's parameter live in shared memory, one set per warp, and
// the lanes of a warp take turns: on the stack they would reserve a gigabyte of the device's memory.
#pragma once

#include "backends/cuda/core/axes.cuh"
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/step/step.cuh"
#include "librepdl/ops/step_adamw.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int batch = 4;  // elements that a thread works on at a time
constexpr int blocks_per_multiprocessor = 3;
constexpr std::int64_t unit_size = threads * batch;

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

template <class T, class Stage>
__device__ __noinline__ T decide_exactly(const Stage& stage, float x, float y, float z) {
  return num::decide<T>(stage, x, y, z);
}

// One linear formula with a result of T, by all lanes of a warp together.
template <class T, class Stage>
__device__ float run_stage(const Stage& stage, double force, bool active, float x, float y, float z,
                           counter* counters) {
  const num::outcome o =
      stage.plain ? num::attempt<T, true>(stage, force, x, y, z) : num::attempt<T, false>(stage, force, x, y, z);
  float value = o.value;
  const bool exact = active && o.undecided != 0;
  if (__any_sync(full_warp, exact)) {
    if (exact) value = num::widen_to_float(decide_exactly<T>(stage, x, y, z));
    count_exact(counters, tier::double_double, exact);
  }
  return value;
}

template <class T>
__device__ __noinline__ T decide_param(const num::adamw_param& c, float p, float m, float v,
                                       num::adamw_scratch& scratch) {
  return num::decide<T>(c, p, m, v, scratch);
}

// A program is what is done to one element. in: as plan::step_tensor; out: its outputs, in its order. The parameter, in binary32, is
// rounded to T where it is stored (num::outcome).
struct no_scratch {};

template <class T, class Param>
struct sgd_without_velocity {
  using type = T;
  static constexpr int inputs = 2, outputs = 1;
  using scratch = no_scratch;
  Param param;
  tiers_forced force;

  __device__ void run(const float (&in)[4], float (&out)[3], bool active, scratch&, counter* counters) const {
    out[0] = run_stage<T>(param, force.double_double, active, 0.0f, in[1], in[0], counters);
  }
  __device__ static void count_first(counter* counters, std::int64_t n) {
    count_elements(counters, tier::double_double, n);
  }
};

template <class T, class Velocity, class Param, bool ReadsState>
struct sgd_with_velocity {
  using type = T;
  static constexpr int inputs = ReadsState ? 3 : 2, outputs = 2;
  using scratch = no_scratch;
  Velocity velocity;
  Param param;
  tiers_forced force;

  __device__ void run(const float (&in)[4], float (&out)[3], bool active, scratch&, counter* counters) const {
    out[1] = run_stage<float>(velocity, force.double_double, active, in[2], in[1], in[0], counters);
    out[0] = run_stage<T>(param, force.double_double, active, out[1], in[1], in[0], counters);
  }
  __device__ static void count_first(counter* counters, std::int64_t n) {
    count_elements(counters, tier::double_double, 2 * n);
  }
};

template <class T>
struct adamw_program {
  using type = T;
  static constexpr int inputs = 4, outputs = 3;
  using scratch = num::adamw_scratch;
  num::adamw_stages stages;
  tiers_forced force;

  __device__ void run(const float (&in)[4], float (&out)[3], bool active, scratch& wide, counter* counters) const {
    const float p = in[0];
    const float m = run_stage<float>(stages.first_moment, force.double_double, active, in[2], in[1], 0.0f, counters);
    const float v = run_stage<float>(stages.second_moment, force.double_double, active, in[3], in[1], 0.0f, counters);
    const num::outcome o = num::attempt<T>(stages.param, force.binary64, p, m, v);
    float value = o.value;
    const bool exact = active && o.undecided != 0;
    const unsigned undecided = __ballot_sync(full_warp, exact);
    if (undecided != 0) {
      for (unsigned rest = undecided; rest != 0; rest &= rest - 1) {
        if (lane_of_thread() == __ffs(static_cast<int>(rest)) - 1) {
          value = num::widen_to_float(decide_param<T>(stages.param, p, m, v, wide));
        }
        __syncwarp();
      }
      count_exact(counters, tier::binary64, exact);
    }
    out[0] = value;
    out[1] = m;
    out[2] = v;
  }
  __device__ static void count_first(counter* counters, std::int64_t n) {
    count_elements(counters, tier::double_double, 2 * n);
    count_elements(counters, tier::binary64, n);
  }
};

template <class E>
__device__ E stored(float value) {
  if constexpr (std::is_same_v<E, float>) {
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
  if constexpr (Program::inputs > 2) f.template operator()<float, 2>();
  if constexpr (Program::inputs > 3) f.template operator()<float, 3>();
}
template <class Program, class F>
__device__ void for_outputs(const F& f) {
  f.template operator()<typename Program::type, 0>();
  if constexpr (Program::outputs > 1) f.template operator()<float, 1>();
  if constexpr (Program::outputs > 2) f.template operator()<float, 2>();
}

// ---- contiguous tensors

struct tensor {
  const void* in[4];
  void* out[3];
  std::int64_t count;
  std::int64_t first_unit;
};
constexpr int tensors_per_launch = 36;  // kernel parameters: 4 KiB
struct tensor_list {
  int tensors;
  unsigned packed[2];  // a bit per tensor: every pointer is aligned to a pack
  std::int64_t units;
  tensor at[tensors_per_launch];
};

template <class Program>
__global__ void __launch_bounds__(threads, blocks_per_multiprocessor)
    step_kernel(const __grid_constant__ Program program, const __grid_constant__ tensor_list list, counter* counters) {
  __shared__ typename Program::scratch scratch[warps];
  typename Program::scratch& mine = scratch[threadIdx.x / 32];
  for (std::int64_t unit = blockIdx.x; unit < list.units; unit += gridDim.x) {
    int low = 0;
    int high = list.tensors - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (list.at[middle].first_unit <= unit) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const tensor& t = list.at[low];
    const std::int64_t first = (unit - t.first_unit) * unit_size;
    if (first == 0 && threadIdx.x == 0) Program::count_first(counters, t.count);
    // Packed: a thread's elements lie side by side; else they are `threads` apart, so that a warp's lie side by side.
    const bool packed = (list.packed[low / 32] >> (low % 32) & 1) != 0 && first + unit_size <= t.count;
    float in[batch][4];
    float out[batch][3];
    if (packed) {
      for_inputs<Program>([&]<class E, int K>() {
        const auto x = reinterpret_cast<const pack<E>*>(static_cast<const E*>(t.in[K]) + first)[threadIdx.x];
#pragma unroll
        for (int j = 0; j < batch; ++j) in[j][K] = num::widen_to_float(x.v[j]);
      });
    } else {
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        const std::int64_t i = first + j * threads + threadIdx.x;
        for_inputs<Program>([&]<class E, int K>() {
          in[j][K] = i < t.count ? num::widen_to_float(static_cast<const E*>(t.in[K])[i]) : 0.0f;
        });
      }
    }
#pragma unroll
    for (int k = Program::inputs; k < 4; ++k) {
#pragma unroll
      for (int j = 0; j < batch; ++j) in[j][k] = 0.0f;
    }
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      const bool active = packed || first + j * threads + threadIdx.x < t.count;
      program.run(in[j], out[j], active, mine, counters);
    }
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
        const std::int64_t i = first + j * threads + threadIdx.x;
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
  strided_axes<7> axes;  // four inputs, three outputs
};

template <class Program>
__global__ void __launch_bounds__(threads, blocks_per_multiprocessor)
    strided_step_kernel(const __grid_constant__ Program program, const __grid_constant__ strided_tensor t,
                        counter* counters) {
  __shared__ typename Program::scratch scratch[warps];
  typename Program::scratch& mine = scratch[threadIdx.x / 32];
  if (blockIdx.x == 0 && threadIdx.x == 0) Program::count_first(counters, t.count);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t base = static_cast<std::int64_t>(blockIdx.x) * threads; base < t.count; base += step) {
    const std::int64_t i = base + threadIdx.x;
    const bool active = i < t.count;
    std::int64_t at[7];
    t.axes.locate(active ? i : 0, at);
    float in[4] = {};
    float out[3];
    for_inputs<Program>([&]<class E, int K>() { in[K] = num::widen_to_float(static_cast<const E*>(t.in[K])[at[K]]); });
    program.run(in, out, active, mine, counters);
    for_outputs<Program>([&]<class E, int K>() {
      if (active) static_cast<E*>(t.out[K])[at[4 + K]] = stored<E>(out[K]);
    });
  }
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

template <class Program>
void flush(const Program& program, tensor_list& list, const job& j) {
  if (list.tensors == 0) return;
  launch_kernel<step_kernel<Program>>(j, grid_for(j.device, list.units, 16), threads, 0, program, list, j.counters);
  list = {};
}

// Launches the program on those tensors of the plan that `takes` accepts.
template <class Program, class Takes>
void launch(const Program& program, const plan::step_plan& p, const job& j, const Takes& takes) {
  static_assert(sizeof(Program) + sizeof(tensor_list) + sizeof(counter*) <= 4096);
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
      for (std::size_t k = 0; k < Program::inputs; ++k) {
        to.in[k] = t.in[k];
        packed = packed && aligned(t.in[k], k < 2 ? size : sizeof(float));
      }
      for (std::size_t k = 0; k < Program::outputs; ++k) {
        to.out[k] = t.out[k];
        packed = packed && aligned(t.out[k], k == 0 ? size : sizeof(float));
      }
      to.count = t.count;
      to.first_unit = list.units;
      list.units += ceil_div(t.count, unit_size);
      list.packed[list.tensors / 32] |= static_cast<unsigned>(packed) << (list.tensors % 32);
      if (++list.tensors == tensors_per_launch) flush(program, list, j);
    } else {
      strided_tensor s{};
      s.count = t.count;
      s.axes.set_shape(t.rank, t.shape);
      for (std::size_t k = 0; k < Program::inputs; ++k) {
        s.in[k] = t.in[k];
        s.axes.set_stride(static_cast<int>(k), t.in_stride[k]);
      }
      for (std::size_t k = 0; k < Program::outputs; ++k) {
        s.out[k] = t.out[k];
        s.axes.set_stride(static_cast<int>(4 + k), t.out_stride[k]);
      }
      const unsigned grid = grid_for(j.device, ceil_div(t.count, threads), 16);
      launch_kernel<strided_step_kernel<Program>>(j, grid, threads, 0, program, s, j.counters);
    }
  }
  flush(program, list, j);
}

}  // namespace

template <class T>
void launch_step(const plan::step_plan& p, const job& j) {
  const tiers_forced force = {j.first_tier > tier::double_double ? num::infinity : 0.0,
                              j.first_tier > tier::binary64 ? num::infinity : 0.0};
  const auto all = [](const plan::step_tensor&) { return true; };
  const auto first_step = [](const plan::step_tensor& t) { return t.in[2] == nullptr; };
  const auto later_step = [](const plan::step_tensor& t) { return t.in[2] != nullptr; };
  if (p.op == ops::op_id::adamw) {
    const adamw_options& a = p.adamw;
    const auto stages = num::make_adamw_stages(a.lr, a.beta1, a.beta2, a.eps, a.weight_decay, p.c1, p.c2);
    return launch(adamw_program<T>{stages, force}, p, j, all);
  }
  using num::sgd_first_velocity, num::sgd_velocity, num::sgd_param, num::sgd_nesterov_param, num::sgd_plain_param;
  const num::sgd_stages s = num::make_sgd_stages(p.sgd.lr, p.sgd.momentum, p.sgd.dampening, p.sgd.weight_decay);
  const auto with_velocity = [&]<class Param>(const Param& param) {
    launch(sgd_with_velocity<T, sgd_velocity, Param, true>{s.velocity, param, force}, p, j, later_step);
    launch(sgd_with_velocity<T, sgd_first_velocity, Param, false>{s.first_velocity, param, force}, p, j, first_step);
  };
  if (!(p.sgd.momentum > 0)) {
    launch(sgd_without_velocity<T, sgd_plain_param>{s.plain_param, force}, p, j, all);
  } else if (p.sgd.nesterov) {
    with_velocity(s.nesterov_param);
  } else {
    with_velocity(s.param);
  }
}

}  // namespace repdl::cuda
