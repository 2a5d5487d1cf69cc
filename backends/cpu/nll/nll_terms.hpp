// What an element of nll_loss's space takes part with.
#pragma once

#include "backends/cpu/core/walk.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/ops/losses/nll.hpp"

namespace repdl::cpu {
namespace REPDL_ISA {

// Calls use(target, x, w, offset of out) for each: of ignored samples x and w are 0, of an absent class NaN.
template <class T, class Use>
void for_targets(const plan::nll_plan& p, std::int64_t first, std::int64_t last, const Use& use) {
  const auto* const x = static_cast<const T*>(p.x);
  const auto* const weight = static_cast<const T*>(p.weight);
  const T nan = num::from_bits<T>(num::format<T>::nan);
  const T unit = num::narrow<T>(1.0);
  walk<3> at(p.rank, p.shape, {&p.x_stride, &p.target_stride, &p.out_stride}, first);
  for (std::int64_t i = first; i < last; ++i, at.advance(1)) {
    const std::int64_t target = p.targets[at.offset(1)];
    switch (num::kind_of_target(target, p.ignore_index, p.classes)) {
      case num::nll_target::ignored:
        use(num::nll_target::ignored, T{}, T{}, at.offset(2));
        break;
      case num::nll_target::present:
        use(num::nll_target::present, x[at.offset(0) + target * p.class_stride],
            weight == nullptr ? unit : weight[target * p.weight_stride], at.offset(2));
        break;
      case num::nll_target::absent:
        use(num::nll_target::absent, nan, nan, at.offset(2));
        break;
    }
  }
}

}  // namespace REPDL_ISA
using REPDL_ISA::for_targets;
}  // namespace repdl::cpu
