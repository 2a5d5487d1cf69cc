// Ours and a peer by turns on one thread, one after the other in every iteration, on the thread's CPU clock: other
// processes on the machine then cost little.
#pragma once

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "librepdl/context.hpp"

namespace bench {

inline double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// The time is that of `ours`, `calls` times an iteration. Counters: flop/s, of `work` operations a call; `ratio`
/// (null: there is no peer), the median of the iterations' speed ratios ours / peer; undecided, the fraction of the
/// outputs that binary64 could not decide.
template <class Ours, class Peer>
void by_turns(benchmark::State& state, repdl::context& ctx, double work, int calls, const char* ratio, Ours&& ours,
              Peer&& peer) {
  ours();
  peer();
  ctx.reset_statistics();
  std::vector<double> ratios;
  for (auto _ : state) {
    const double start = cpu_seconds();
    for (int i = 0; i < calls; ++i) peer();
    const double between = cpu_seconds();
    for (int i = 0; i < calls; ++i) ours();
    const double end = cpu_seconds();
    state.SetIterationTime((end - between) / calls);
    ratios.push_back((between - start) / (end - between));
    benchmark::ClobberMemory();
  }
  state.counters["flop/s"] = benchmark::Counter(work, benchmark::Counter::kIsIterationInvariantRate);
  if (ratio != nullptr) {
    const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
    std::nth_element(ratios.begin(), middle, ratios.end());
    state.counters[ratio] = *middle;
  }
  const repdl::statistics seen = ctx.read_statistics();
  const auto escalated = static_cast<double>(seen[repdl::tier::double_double] + seen[repdl::tier::exact]);
  const auto decided = static_cast<double>(seen[repdl::tier::proved] + seen[repdl::tier::binary64]);
  state.counters["undecided"] = escalated / (escalated + decided);
}

}  // namespace bench
