// One sum by several threads: each adds up its share of the terms, and what they have is merged.
#pragma once

#include <new>
#include <utility>

#include "backends/cpu/core/parallel.hpp"

namespace repdl::cpu {

// part(thread): where a thread's sum is to lie, which is made there as a copy of `zero`. add(sum, thread, threads): adds the share of one
// of so many threads. Returns the whole sum, which lies in part(0).
template <class Sum, class Part, class Add>
Sum& add_up(int threads, const Sum& zero, const Part& part, const Add& add) {
  for (int t = 0; t < threads; ++t) new (static_cast<void*>(&part(t))) Sum(zero);
  parallel(threads, [&](int thread, int used) { add(part(thread), thread, used); });
  Sum& all = part(0);
  for (int t = 1; t < threads; ++t) all.merge(part(t));
  return all;
}

}  // namespace repdl::cpu
