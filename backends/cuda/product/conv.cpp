// conv2d and its gradients: a plan becomes the products of conv.hpp, which are computed in binary64 (conv_product.cu),
// repaired where that leaves an output undecided (conv_repair.cu), or computed as a chain (conv_chain.cu).
#include "backends/cuda/product/conv.hpp"

#include "backends/cuda/core/drivers.hpp"

namespace repdl::cuda {
namespace {

using namespace conv;

class conv_work final : public planned {
 public:
  conv_work(const plan::conv_plan& c, const problem& p, const loading& l, const job& given)
      : planned(given), p_(p), s_(plan_product(p.size(), j.device)), l_(l), within_reach_(within_reach(p, c)) {
    take_marks(p_, space);
    take_workspace(s_, space);
    if (p_.first_tier > tier::double_double) p_.marks.capacity = 0;
  }

 private:
  void enqueue() override {
    clear_marks(p_, j);
    if (within_reach_) {
      run_product(p_, s_, l_, j);
    } else {
      mark_all(p_, j);
    }
    repair(p_, j);
  }

  problem p_;
  schedule s_;
  const loading l_;
  const bool within_reach_;
};

}  // namespace

void prepare(const plan::conv_plan& c, const job& j, dispatch::task& t) {
  problem p = describe(c);
  p.first_tier = j.first_tier;
  const loading l = plan_loading(p, c);
  if (c.accumulate == accumulate::fma_chain) return prepare_chain(p, l, j, t);
  t.emplace<conv_work>(c, p, l, j);
}

}  // namespace repdl::cuda
