// Convolutions and their gradients: a plan becomes the products of conv.hpp, which are computed in binary64 (conv_product.cu, or
// conv_direct.cu), repaired where that leaves an output undecided (conv_repair.cu), or computed as a chain (conv_chain.cu). Operands of
// 16 bits are copied to binary32 first. Of f64 repairs are all there is.
#include "backends/cuda/product/conv.hpp"

#include <algorithm>

#include "backends/cuda/core/drivers.hpp"
#include "librepdl/dispatch/widened_product.hpp"

namespace repdl::cuda {
namespace {

using namespace conv;

class conv_work final : public planned {
 public:
  conv_work(const plan::conv_plan& c, const problem& p, const loading& l, const job& given)
      : planned(given),
        p_(p),
        s_(plan_product(p.size(), j.device)),
        l_(l),
        has_first_(p.out_type != dtype::f64 && within_reach(p, c)),
        is_direct_(is_direct(p) && j.device.choice.tile < 0) {
    take_marks(p_, space);
    if (has_first_ && !is_direct_) take_workspace(s_, space);
    if (p_.first_tier > tier::double_double || !has_first_) p_.marks.capacity = 0;
  }

 private:
  void enqueue() override {
    clear_marks(p_, j);
    if (!has_first_) {
      mark_all(p_, j);
    } else if (is_direct_) {
      run_direct(p_, j);
    } else {
      run_product(p_, s_, l_, j);
    }
    repair(p_, j);
  }

  problem p_;
  schedule s_;
  const loading l_;
  const bool has_first_, is_direct_;
};

void prepare_part(const plan::conv_plan& c, const plan::depth_part& z, const job& j, dispatch::task& t) {
  problem p = describe(c, z);
  p.first_tier = j.first_tier;
  const loading l = plan_loading(p, c);
  if (c.accumulate == accumulate::fma_chain) return prepare_chain(p, l, j, t);
  t.emplace<conv_work>(c, p, l, j);
}

// The parts of the depth one after the other, in the same workspace.
class parts_work final : public dispatch::work {
 public:
  parts_work(const plan::conv_plan& c, const job& given) : c_(c), j_(given) {
    for_each_task([&](dispatch::work& w) { bytes_ = std::max(bytes_, w.bytes()); });
  }
  plan::checked_size bytes() const override { return bytes_; }
  void run(void* workspace) override {
    for_each_task([&](dispatch::work& w) { w.run(workspace); });
  }

 private:
  template <class F>
  void for_each_task(const F& f) {
    plan::for_each_depth_part(c_, [&](const plan::depth_part& z) {
      dispatch::stored_task t;
      prepare_part(c_, z, j_, t);
      f(*t.operator->());
    });
  }

  const plan::conv_plan c_;
  const job j_;
  plan::checked_size bytes_;
};

}  // namespace

void prepare(const plan::conv_plan& c, const job& j, dispatch::task& t) {
  if (size_of(c.type) == 2) {
    const auto driver = [j](const auto& plan, const dispatch::subject& what, dispatch::task& to) {
      job of_part = j;
      of_part.what = what;
      prepare(plan, of_part, to);
    };
    t.emplace<dispatch::widened_product_work<plan::conv_plan, decltype(driver)>>(c, driver);
    return;
  }
  if (c.axis[0] == plan::window_axis{}) {
    return plan::for_each_depth_part(c, [&](const plan::depth_part& z) { prepare_part(c, z, j, t); });  // one
  }
  t.emplace<parts_work>(c, j);
}

}  // namespace repdl::cuda
