// The driver of the optimiser steps: threads and strides. All elements of all tensors are shared out at once, in
// blocks; an operand that is contiguous over a block is used in place, any other is gathered or scattered.
#include "backends/cpu/step/step.hpp"

#include "backends/cpu/core/parallel.hpp"
#include "backends/cpu/core/strided_runs.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {
namespace {

// Operand k's elements: of inputs the parameter and the gradient are of the plan's type, of outputs the parameter.
template <class F>
void for_element_type(dtype plan_type, bool narrow, const F& f) {
  if (plan_type == dtype::f64) {
    f(double{});
  } else if (narrow && plan_type != dtype::f32) {
    f(std::uint16_t{});
  } else {
    f(float{});
  }
}

void run_block(const plan::step_tensor& t, dtype type, const step_kernels& kernels, const void* constants,
               std::int64_t first, std::int64_t n, step_counts& counts) {
  alignas(64) std::byte buffers[7][step_block * sizeof(double)];
  step_operands o{};
  o.n = n;
  for (std::size_t k = 0; k < 4; ++k) {
    if (t.in[k] == nullptr) continue;
    for_element_type(type, k < 2, [&]<class E>(E) {
      const auto* const data = static_cast<const E*>(t.in[k]);
      o.in[k] = side_by_side(t, t.in_stride[k], data, first, n, reinterpret_cast<E*>(buffers[k]));
    });
  }
  bool scatter[3] = {};
  for (std::size_t k = 0; k < 3; ++k) {
    if (t.out[k] == nullptr) continue;
    for_element_type(type, k == 0,
                     [&]<class E>(E) { o.out[k] = in_place(t, t.out_stride[k], static_cast<E*>(t.out[k]), first, n); });
    scatter[k] = o.out[k] == nullptr;
    if (scatter[k]) o.out[k] = buffers[4 + k];
  }
  kernels.step(constants, o, counts);
  for (std::size_t k = 0; k < 3; ++k) {
    if (!scatter[k]) continue;
    for_element_type(type, k == 0, [&]<class E>(E) {
      scatter_to(t, t.out_stride[k], reinterpret_cast<const E*>(buffers[4 + k]), static_cast<E*>(t.out[k]), first, n);
    });
  }
}

void run_step(const plan::step_plan& p, const dispatch::launch& l, const step_kernels& kernels,
              counters& count) noexcept {
  alignas(64) std::byte constants[step_constants_bytes];
  kernels.prepare(p, l.first_tier, constants);
  const std::int64_t total = blocks_of(p.tensors, step_block);
  const int threads = worthwhile_threads(l.threads, static_cast<double>(total * step_block), 2);
  parallel(threads, [&](int thread, int workers) {
    const range mine = share(total, thread, workers);
    step_counts counts;
    for_blocks_of(p.tensors, step_block, mine.begin, mine.end,
                  [&](const plan::step_tensor& t, std::int64_t first, std::int64_t n) {
                    run_block(t, p.type, kernels, constants, first, n, counts);
                  });
    for (int k = 0; k < 4; ++k) count.add(static_cast<tier>(k), counts.elements[k]);
  });
}

class step_work final : public planned<plan::step_plan> {
 public:
  using planned::planned;
  void run(void*) override { run_step(p, s.launch, *s.set.step, s.count); }
};

}  // namespace

void prepare(const plan::step_plan& p, const setting& s, dispatch::task& t) noexcept { t.emplace<step_work>(p, s); }

}  // namespace repdl::cpu
