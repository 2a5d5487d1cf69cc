// Walking over a part of a strided tensor, run by run of its innermost axis.
#pragma once

#include <algorithm>
#include <cstdint>

#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {

// Calls use(address of a run's first element, stride, elements before the run, length) for the elements first .. first
// + n - 1, row-major, of a tensor whose space (a plan with rank and shape) is walked with these strides.
template <class Space, class T, class Use>
void for_runs(const Space& space, const plan::axes& stride, T* data, std::int64_t first, std::int64_t n, Use&& use) {
  if (space.rank == 0) return use(data, std::int64_t{0}, std::int64_t{0}, n);
  const auto last = static_cast<std::size_t>(space.rank - 1);
  for (std::int64_t done = 0; done < n;) {
    std::int64_t rest = first + done;
    std::int64_t offset = 0;
    for (std::size_t a = last + 1; a-- > 0;) {
      offset += rest % space.shape[a] * stride[a];
      rest /= space.shape[a];
    }
    const std::int64_t run = std::min(n - done, space.shape[last] - (first + done) % space.shape[last]);
    use(data + offset, stride[last], done, run);
    done += run;
  }
}

}  // namespace repdl::cpu
