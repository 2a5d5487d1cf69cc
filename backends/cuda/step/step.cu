// Optimiser steps: the driver.
#include "backends/cuda/step/step.cuh"
#include "librepdl/ops/registry.hpp"

namespace repdl::cuda {
namespace {

// It only runs: a task does not hold the parameters of a step's launches.
class step_work final : public planned {
 public:
  step_work(const plan::step_plan& plan, const job& given) : planned(given), p_(plan) {
    if (p_.op != ops::op_id::adamw) return;
    std::int64_t units = 0;
    for (const plan::step_tensor& t : p_.tensors) units += ceil_div(t.count, step_unit);
    space.take(noted_.words, units, step_unit / 32);
    space.take(noted_.flags, units, step_unit / 128);
  }

 private:
  void enqueue() override {
    ops::for_each_format<ops::FLOATS>([&]<class T>() {
      if (dtype_of<T> == p_.type) launch_step<T>(p_, j, noted_);
    });
  }

  const plan::step_plan& p_;
  noted_elements noted_{};
};

}  // namespace

void prepare(const plan::step_plan& p, const job& j, dispatch::task& t) { t.emplace<step_work>(p, j); }

}  // namespace repdl::cuda
