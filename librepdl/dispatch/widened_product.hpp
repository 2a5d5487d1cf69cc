// The task of a product whose result is wider than its operands (matmul's dtype).
#pragma once

#include <algorithm>
#include <utility>

#include "librepdl/dispatch/backend.hpp"
#include "librepdl/plan/planner.hpp"

namespace repdl::dispatch {

/// Prepare: prepare(plan, subject, task), a backend's drivers. Where the copies lie is known when it is run, and not before: each run plans them.
template <class Prepare>
class widened_product_work final : public work {
 public:
  widened_product_work(const plan::product_plan& p, Prepare prepare) : p_(p), prepare_(std::move(prepare)) {
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
    const plan::widened_product made = plan::make_widened(p_, memory);
    copies_ = made.bytes;
    for (const plan::map_plan& copy : made.copies) {
      stored_task t;
      prepare_(copy, subject{ops::op_id::convert, copy.in_type, copy.out_type}, t);
      f(*t.operator->());
    }
    stored_task t;
    prepare_(made.product, subject{ops::op_id::matmul, p_.out.type, p_.out.type}, t);
    f(*t.operator->());
  }

  const plan::product_plan& p_;
  Prepare prepare_;
  plan::checked_size copies_, scratch_;
};

}  // namespace repdl::dispatch
