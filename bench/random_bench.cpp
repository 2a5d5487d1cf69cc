// Random numbers and dropout, one thread, in cache (64 Ki), against the C++ library's generators (mt19937_64,
// binary32).
#include <benchmark/benchmark.h>

#include <random>

#include "bench/inputs.hpp"
#include "librepdl/librepdl.hpp"

namespace {

constexpr std::int64_t n = 1 << 16;

void per_element(benchmark::State& state) {
  state.counters["ns/element"] = benchmark::Counter(
      static_cast<double>(n) * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

template <class T, class Make>
void fill(benchmark::State& state, const std::string& isa, Make make) {
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  repdl::generator g{1, 1};
  std::vector<T> out(n);
  for (auto _ : state) {
    make(ctx, g, out);
    benchmark::ClobberMemory();
  }
  per_element(state);
}

void bernoulli(benchmark::State& state, const std::string& isa) {
  fill<std::uint8_t>(state, isa, [](repdl::context& ctx, repdl::generator& g, std::vector<std::uint8_t>& out) {
    repdl::bernoulli(ctx, g, repdl::tensor_view(out.data(), repdl::dtype::boolean, {n}), 0.1);
  });
}

void dropout(benchmark::State& state, const std::string& isa) {
  const std::vector<float> x = bench::normal(n, 1);
  fill<float>(state, isa, [&](repdl::context& ctx, repdl::generator& g, std::vector<float>& out) {
    repdl::dropout(ctx, g, x, out, 0.1);
  });
}

template <class Distribution>
void peer(benchmark::State& state, Distribution distribution) {
  std::mt19937_64 engine(1);
  std::vector<float> out(n);
  for (auto _ : state) {
    for (float& x : out) x = distribution(engine);
    benchmark::ClobberMemory();
  }
  per_element(state);
}

const bool registered = [] {
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (!isa.available) continue;
    const auto add = [&](const char* name, auto f) {
      benchmark::RegisterBenchmark((std::string(name) + "/" + isa.name).c_str(),
                                   [f, isa](benchmark::State& s) { f(s, isa.name); });
    };
    const auto formats = [&]<class T>(T, const std::string& format) {
      add(("uniform " + format).c_str(), [](benchmark::State& s, const std::string& i) {
        fill<T>(s, i, [](auto& ctx, auto& g, auto& out) { repdl::uniform(ctx, g, out); });
      });
      add(("normal " + format).c_str(), [](benchmark::State& s, const std::string& i) {
        fill<T>(s, i, [](auto& ctx, auto& g, auto& out) { repdl::normal(ctx, g, out); });
      });
    };
    formats(repdl::f16{}, "f16");
    formats(repdl::bf16{}, "bf16");
    formats(float{}, "f32");
    formats(double{}, "f64");
    add("bernoulli", bernoulli);
    add("randint", [](benchmark::State& s, const std::string& i) {
      fill<std::int64_t>(s, i, [](auto& ctx, auto& g, auto& out) { repdl::randint(ctx, g, out, {0, 10}); });
    });
    add("dropout", dropout);
  }
  benchmark::RegisterBenchmark("uniform f32/std",
                               [](benchmark::State& s) { peer(s, std::uniform_real_distribution<float>()); });
  benchmark::RegisterBenchmark("normal f32/std",
                               [](benchmark::State& s) { peer(s, std::normal_distribution<float>()); });
  return true;
}();

}  // namespace
