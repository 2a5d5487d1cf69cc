// How every row of the benchmarks is measured. A round is some calls of what people use today, the peer, and as many of
// ours, one after the other, so that what slows the machine down for a while slows both. Time and ratio are medians of
// the rounds; the interval of the ratio assumes nothing but that the rounds are independent.
#pragma once

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/rounds.hpp"
#include "librepdl/context.hpp"

namespace bench {

constexpr double seconds_a_round = 5e-3;  // ours; one call takes longer in some rows

/// One thread is measured by its own CPU clock: other processes on the machine then cost little.
class stopwatch {
 public:
  explicit stopwatch(const repdl::context& ctx)
      : clock_(ctx.threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC) {}

  /// Seconds of one of `calls` calls.
  template <class Call>
  double time(int calls, const Call& call) const {
    const double start = now();
    for (int i = 0; i < calls; ++i) {
      call();
      benchmark::ClobberMemory();
    }
    return (now() - start) / calls;
  }

 private:
  double now() const {
    timespec t{};
    clock_gettime(clock_, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  clockid_t clock_;
};

struct peer {
  std::string name;  // in the counter `of_NAME`; empty: there is none
  std::function<void()> call;
  /// The peer's seconds, where they are not those of `call`: measured by it in each round.
  std::function<double(const stopwatch&, int calls)> seconds{};

  double time(const stopwatch& watch, int calls) const {
    return seconds ? seconds(watch, calls) : call ? watch.time(calls, call) : 0;
  }
};

/// The row's time is that of one call of `ours`. Counters, where there is a peer: `of_NAME`, our speed over the peer's,
/// the median of the rounds; `low` and `high`, its 95 % interval.
template <class Ours>
void by_turns(benchmark::State& state, const repdl::context& ctx, const Ours& ours, const peer& other = {}) {
  const stopwatch watch(ctx);
  ours();
  other.time(watch, 1);
  const int calls = static_cast<int>(std::clamp(seconds_a_round / watch.time(1, ours), 1.0, 1e6));
  std::vector<double> times, ratios;
  for (auto _ : state) {  // once
    for (int i = 0; i < rounds; ++i) {
      const double theirs = other.time(watch, calls);
      times.push_back(watch.time(calls, ours));
      ratios.push_back(theirs / times.back());
    }
    std::sort(times.begin(), times.end());
    std::sort(ratios.begin(), ratios.end());
    state.SetIterationTime(times[middle_round]);
  }
  if (other.name.empty()) return;
  state.counters["of_" + other.name] = ratios[middle_round];
  state.counters["low"] = ratios[low_round];
  state.counters["high"] = ratios[high_round];
}

/// Counters: nanoseconds for each of n elements; flop/s, of `work` operations a call.
inline void per_element(benchmark::State& state, std::int64_t n) {
  state.counters["ns/element"] = benchmark::Counter(
      static_cast<double>(n) * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
inline void per_operation(benchmark::State& state, double work) {
  state.counters["flop/s"] = benchmark::Counter(work, benchmark::Counter::kIsIterationInvariantRate);
}

/// Counter: the fraction of the outputs that binary64 could not decide.
inline void count_undecided(benchmark::State& state, repdl::context& ctx) {
  const repdl::statistics seen = ctx.read_statistics();
  const auto escalated = static_cast<double>(seen[repdl::tier::double_double] + seen[repdl::tier::exact]);
  const auto decided = static_cast<double>(seen[repdl::tier::proved] + seen[repdl::tier::binary64]);
  state.counters["undecided"] = escalated / (escalated + decided);
}

/// A family of rows, a table of tools/bench_table.py: `add_rows` adds them, where the command line asks for the family.
class family {
 public:
  family(std::string name, void (*add_rows)(const family&)) : name_(std::move(name)), add_rows_(add_rows) {
    all().push_back(this);
  }
  family(const family&) = delete;
  family& operator=(const family&) = delete;

  /// `run(state, isa)` calls by_turns. tools/bench_table.py reads the label.
  template <class Run>
  benchmark::internal::Benchmark* add_row(const std::string& name, const std::string& isa, const Run& run) const {
    return benchmark::RegisterBenchmark(name.c_str(),
                                        [run, isa, label = name_ + ", " + isa](benchmark::State& state) {
                                          state.SetLabel(label);
                                          run(state, isa);
                                        })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  }

  /// Adds the rows of the families whose names begin with `name`; whether there is one.
  static bool add(const std::string& name) {
    bool found = false;
    for (const family* f : all()) {
      if (f->name_.rfind(name, 0) != 0) continue;
      f->add_rows_(*f);
      found = true;
    }
    return found;
  }
  static std::string names() {
    std::string list;
    for (const family* f : all()) list += (list.empty() ? "" : ", ") + f->name_;
    return list;
  }

 private:
  static std::vector<const family*>& all() {
    static std::vector<const family*> families;
    return families;
  }
  std::string name_;
  void (*add_rows_)(const family&);
};

}  // namespace bench
