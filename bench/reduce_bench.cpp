// Sums and dot products of normally distributed values, in cache (16 Ki) and from memory (64 Mi), one thread, against
// plain loops compiled with -Ofast; rows and columns of a matrix.
#include <benchmark/benchmark.h>

#include "bench/inputs.hpp"
#include "bench/peers.hpp"
#include "librepdl/librepdl.hpp"

namespace {

void per_element(benchmark::State& state, std::int64_t n) {
  state.counters["ns/element"] = benchmark::Counter(
      static_cast<double>(n) * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void sum(benchmark::State& state, const std::string& isa) {
  const std::int64_t n = state.range(0);
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const std::vector<float> x = bench::normal(n, 1);
  float out = 0;
  for (auto _ : state) {
    repdl::sum(ctx, x, repdl::tensor_view(&out, repdl::sizes{}));
    benchmark::DoNotOptimize(out);
  }
  per_element(state, n);
}

void dot(benchmark::State& state, const std::string& isa) {
  const std::int64_t n = state.range(0);
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const std::vector<float> x = bench::normal(n, 1);
  const std::vector<float> y = bench::normal(n, 2);
  float out = 0;
  for (auto _ : state) {
    repdl::dot(ctx, x, y, repdl::tensor_view(&out, repdl::sizes{}));
    benchmark::DoNotOptimize(out);
  }
  per_element(state, n);
}

void peer_sum(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const std::vector<float> x = bench::normal(n, 1);
  for (auto _ : state) benchmark::DoNotOptimize(peers::sum(x.data(), n));
  per_element(state, n);
}

void peer_dot(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const std::vector<float> x = bench::normal(n, 1);
  const std::vector<float> y = bench::normal(n, 2);
  for (auto _ : state) benchmark::DoNotOptimize(peers::dot(x.data(), y.data(), n));
  per_element(state, n);
}

// One axis of a 2048 x 2048 matrix.
void axis_sum(benchmark::State& state, const std::string& isa) {
  constexpr std::int64_t n = 2048;
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const std::vector<float> x = bench::normal(n * n, 1);
  std::vector<float> out(n);
  for (auto _ : state) {
    repdl::sum(ctx, repdl::const_tensor_view(x.data(), {n, n}), repdl::tensor_view(out),
               {.axis = repdl::sizes{state.range(0)}});
    benchmark::ClobberMemory();
  }
  per_element(state, n * n);
}

const bool registered = [] {
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (!isa.available) continue;
    const auto add = [&](const char* name, void (*f)(benchmark::State&, const std::string&)) {
      return benchmark::RegisterBenchmark((std::string(name) + "/" + isa.name).c_str(),
                                          [f, isa](benchmark::State& s) { f(s, isa.name); });
    };
    add("sum", sum)->Arg(1 << 14)->Arg(1 << 26);
    add("dot", dot)->Arg(1 << 14)->Arg(1 << 26);
    add("sum-axis", axis_sum)->Arg(0)->Arg(1);
  }
  benchmark::RegisterBenchmark("sum/peer-Ofast", peer_sum)->Arg(1 << 14)->Arg(1 << 26);
  benchmark::RegisterBenchmark("dot/peer-Ofast", peer_dot)->Arg(1 << 14)->Arg(1 << 26);
  return true;
}();

}  // namespace
