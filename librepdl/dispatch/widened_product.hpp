// The task of a product whose operands are copied to a wider format first: matmul's with a result wider than they are, and on CUDA
// convolutions of 16 bits.
#pragma once

#include <algorithm>
#include <utility>

#include "librepdl/dispatch/backend.hpp"
#include "librepdl/plan/planner.hpp"

namespace repdl::dispatch {

/// Whose self-tests the product of the copies has.
inline subject subject_of(const plan::product_plan& p) { return {ops::op_id::matmul, p.out.type, p.out.type}; }
inline subject subject_of(const plan::conv_plan& p) { return {p.op, p.type, p.out_type}; }

/// Prepare: prepare(plan, subject, task), a backend's drivers. Where the copies lie is known when it is run, and not before: each run plans them.
template <class Plan, class Prepare>
class widened_product_work final : public work {
 public:
  widened_product_work(const Plan& p, Prepare prepare) : p_(p), prepare_(std::move(prepare)) {
    alignas(256) static std::byte somewhere[256];
    for_each_task(somewhere, [&](work& w) { scratch_ = std::max(scratch_, w.bytes()); });
  }

  plan::checked_size bytes() const override { return copies_ + scratch_; }
  void run(void* workspace) override {
    auto* const memory = static_cast<std::byte*>(workspace);
    for_each_task(memory, [&](work& w) { w.run(memory + copies_.value()); });
  }

 private:
  template <class F>
  void for_each_task(std::byte* memory, const F& f) {
    const plan::widened<Plan> made = plan::make_widened(p_, memory);
    copies_ = made.bytes;
    for (const plan::map_plan& copy : made.copies) {
      stored_task t;
      prepare_(copy, subject{ops::op_id::convert, copy.in_type, copy.out_type}, t);
      f(*t.operator->());
    }
    stored_task t;
    prepare_(made.plan, subject_of(p_), t);
    f(*t.operator->());
  }

  const Plan& p_;
  Prepare prepare_;
  plan::checked_size copies_, scratch_;
};

}  // namespace repdl::dispatch
