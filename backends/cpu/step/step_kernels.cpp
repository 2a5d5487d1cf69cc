// Optimiser steps: a block of elements, one formula after the other. Compiled once per instruction set. Parameters and gradients of
// f16 and bf16 are unpacked to binary32 first, and rounded from there where they are stored (num/format.hpp).
//
// The first tier of each formula is a vectorised loop; the elements that it leaves undecided go to the integers.
// Results wait in buffers until the block is done, because an output may be an input.
#include "backends/cpu/core/simd.hpp"
#include "backends/cpu/step/step.hpp"
#include "librepdl/ops/steps/step_adamw.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu::REPDL_ISA {
namespace {

struct constants {
  dtype type;
  bool is_sgd;
  bool has_momentum;
  bool nesterov;
  double force_double_double;  // 0 or +inf: bounds that force elements on to a later tier
  double force_binary64;
  num::sgd_stages sgd;
  num::adamw_stages adamw;
};

void prepare(const plan::step_plan& p, tier first_tier, void* to) {
  auto& c = *static_cast<constants*>(to);
  c.type = p.type;
  c.is_sgd = p.op == ops::op_id::sgd;
  c.has_momentum = p.sgd.momentum > 0;
  c.nesterov = p.sgd.nesterov;
  c.force_binary64 = first_tier > tier::binary64 ? num::infinity : 0.0;
  c.force_double_double = first_tier > tier::double_double ? num::infinity : 0.0;
  if (c.is_sgd) {
    c.sgd = num::make_sgd_stages(p.sgd.lr, p.sgd.momentum, p.sgd.dampening, p.sgd.weight_decay);
  } else {
    const adamw_options& a = p.adamw;
    c.adamw = num::make_adamw_stages(a.lr, a.beta1, a.beta2, a.eps, a.weight_decay, p.c1, p.c2);
  }
}

// A block of the numbers that operands of T are taken as, and that states beside them are.
template <class T>
using number_of = num::state_of<T>;
template <class T>
struct block_buffer {
  alignas(64) number_of<T> value[step_block];
};
struct marks {
  alignas(64) std::uint32_t undecided[step_block];
};

std::int64_t count_marks(const marks& m, std::int64_t n) {
  std::uint32_t total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t i = 0; i < n; ++i) total += m.undecided[i];
  return total;
}

// The first tier of a linear formula. x, y, z: n operands each; one that the formula does not have may be any of the
// others. Everything has to be inlined for the loop to be vectorised.
template <class T, bool Plain, class Stage>
[[gnu::flatten]] void attempt_all(const Stage& stage, double force, const float* x, const float* y, const float* z,
                                  block_buffer<T>& out, marks& m, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const num::outcome o = num::attempt<T, Plain>(stage, force, x[i], y[i], z[i]);
    out.value[i] = o.value;
    m.undecided[i] = o.undecided;
  }
}

// Of binary64: a stage, or AdamW's parameter, in registers. What it leaves undecided is decided apart, or it would be inlined, too.
template <class Stage>
[[gnu::noinline]] double decide_exactly(const Stage& stage, double x, double y, double z) {
  return num::decide<double>(stage, x, y, z);
}
template <class Stage>
[[gnu::flatten]] void run_in_registers(const Stage& stage, bool forced, const double* x, const double* y,
                                       const double* z, double* out, std::int64_t n, step_counts& counts) {
  std::int64_t exact = 0;
  for (std::int64_t i = 0; i < n; i += lanes64) {
    const int lanes = static_cast<int>(n - i < lanes64 ? n - i : lanes64);
    const auto part_of = [&](const double* from) {
      f64v v{};
      if (lanes == lanes64) {
        v = load<f64v>(from + i);
      } else {
        __builtin_memcpy(&v, from + i, static_cast<std::size_t>(lanes) * sizeof(double));
      }
      return v;
    };
    const num::decided_lanes<f64v> r = num::attempt_in_balls(stage, part_of(x), part_of(y), part_of(z));
    for (int l = 0; l < lanes; ++l) {
      out[i + l] = r.value[l];
      if (r.decided[l] != 0 && !forced) continue;
      ++exact;
      out[i + l] = decide_exactly(stage, x[i + l], y[i + l], z[i + l]);
    }
  }
  counts.elements[static_cast<int>(tier::double_double)] += n - exact;
  counts.elements[static_cast<int>(tier::exact)] += exact;
}

// T: the format of the results.
template <class T, class Stage>
void run_stage(const Stage& stage, double force, const number_of<T>* x, const number_of<T>* y, const number_of<T>* z,
               block_buffer<T>& out, marks& m, std::int64_t n, step_counts& counts) {
  if constexpr (std::is_same_v<T, double>) {
    run_in_registers(stage, force != 0, x, y, z, out.value, n, counts);
    return;
  } else if (stage.plain) {
    attempt_all<T, true>(stage, force, x, y, z, out, m, n);
  } else {
    attempt_all<T, false>(stage, force, x, y, z, out, m, n);
  }
  const std::int64_t exact = count_marks(m, n);
  counts.elements[static_cast<int>(tier::double_double)] += n - exact;
  counts.elements[static_cast<int>(tier::exact)] += exact;
  if (exact == 0) return;
  for (std::int64_t i = 0; i < n; ++i) {
    if (m.undecided[i] != 0) out.value[i] = num::widen_to_float(num::decide<T>(stage, x[i], y[i], z[i]));
  }
}

template <class T>
void run_param(const num::adamw_param& c, double force, const float* p, const float* m, const float* v,
               block_buffer<T>& out, marks& undecided, std::int64_t n, step_counts& counts) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const num::outcome o = num::attempt<T>(c, force, p[i], m[i], v[i]);
    out.value[i] = o.value;
    undecided.undecided[i] = o.undecided;
  }
  const std::int64_t exact = count_marks(undecided, n);
  counts.elements[static_cast<int>(tier::binary64)] += n - exact;
  counts.elements[static_cast<int>(tier::exact)] += exact;
  if (exact == 0) return;
  for (std::int64_t i = 0; i < n; ++i) {
    if (undecided.undecided[i] != 0) out.value[i] = num::widen_to_float(num::decide<T>(c, p[i], m[i], v[i]));
  }
}

// n elements of T as the numbers that they are taken as, in a buffer if they are no such numbers already. (Inlined, g++ 12 takes the
// buffer for uninitialised where n is 0.)
template <class T>
[[gnu::noinline]] const number_of<T>* unpack(const void* from, block_buffer<T>& buffer, std::int64_t n) {
  const T* const x = static_cast<const T*>(from);
  if constexpr (std::is_same_v<T, number_of<T>>) {
    return x;
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) buffer.value[i] = num::widen_to_float(x[i]);
    return buffer.value;
  }
}
template <class T>
void put(void* to, const block_buffer<T>& from, std::int64_t n) {
  if constexpr (std::is_same_v<T, number_of<T>>) {
    __builtin_memcpy(to, from.value, static_cast<std::size_t>(n) * sizeof(T));
  } else {
    T* const y = static_cast<T*>(to);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = num::narrow<T>(from.value[i]);
  }
}

template <class T>
void sgd(const constants& c, const step_operands& o, step_counts& counts) {
  using state = number_of<T>;
  block_buffer<T> unpacked[2];
  const state* const p = unpack<T>(o.in[0], unpacked[0], o.n);
  const state* const g = unpack<T>(o.in[1], unpacked[1], o.n);
  const auto* const v = static_cast<const state*>(o.in[2]);
  block_buffer<T> param;
  marks m{};
  if (!c.has_momentum) {
    run_stage<T>(c.sgd.plain_param, c.force_double_double, g, g, p, param, m, o.n, counts);
    put<T>(o.out[0], param, o.n);
    return;
  }
  block_buffer<state> velocity;
  if (v == nullptr) {
    run_stage<state>(c.sgd.first_velocity, c.force_double_double, g, g, p, velocity, m, o.n, counts);
  } else {
    run_stage<state>(c.sgd.velocity, c.force_double_double, v, g, p, velocity, m, o.n, counts);
  }
  if (c.nesterov) {
    run_stage<T>(c.sgd.nesterov_param, c.force_double_double, velocity.value, g, p, param, m, o.n, counts);
  } else {
    run_stage<T>(c.sgd.param, c.force_double_double, velocity.value, g, p, param, m, o.n, counts);
  }
  put<state>(o.out[1], velocity, o.n);
  put<T>(o.out[0], param, o.n);
}

template <class T>
void adamw(const constants& c, const step_operands& o, step_counts& counts) {
  using state = number_of<T>;
  block_buffer<T> unpacked[2];
  const state* const p = unpack<T>(o.in[0], unpacked[0], o.n);
  const state* const g = unpack<T>(o.in[1], unpacked[1], o.n);
  const auto* const m = static_cast<const state*>(o.in[2]);
  const auto* const v = static_cast<const state*>(o.in[3]);
  block_buffer<state> first;
  block_buffer<state> second;
  block_buffer<T> param;
  marks undecided{};
  run_stage<state>(c.adamw.first_moment, c.force_double_double, m, g, g, first, undecided, o.n, counts);
  run_stage<state>(c.adamw.second_moment, c.force_double_double, v, g, g, second, undecided, o.n, counts);
  if constexpr (std::is_same_v<T, double>) {
    const bool forced = c.force_double_double != 0;
    run_in_registers(c.adamw.param, forced, p, first.value, second.value, param.value, o.n, counts);
  } else {
    run_param<T>(c.adamw.param, c.force_binary64, p, first.value, second.value, param, undecided, o.n, counts);
  }
  put<state>(o.out[1], first, o.n);
  put<state>(o.out[2], second, o.n);
  put<T>(o.out[0], param, o.n);
}

template <class T>
void step_of(const constants& c, const step_operands& o, step_counts& counts) {
  if (c.is_sgd) {
    sgd<T>(c, o, counts);
  } else {
    adamw<T>(c, o, counts);
  }
}

void step(const void* constants_of_plan, const step_operands& o, step_counts& counts) {
  const auto& c = *static_cast<const constants*>(constants_of_plan);
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> == c.type) step_of<T>(c, o, counts);
  });
}

static_assert(sizeof(constants) <= step_constants_bytes);

}  // namespace

extern const step_kernels step_table = {prepare, step};

}  // namespace repdl::cpu::REPDL_ISA
