// Elementwise operations of the registry, in cache (16 Ki elements) and from memory (16 Mi), one thread, every
// instruction set that the CPU has; the peers are plain libm loops.
#include <benchmark/benchmark.h>

#include "bench/inputs.hpp"
#include "bench/peers.hpp"
#include "librepdl/librepdl.hpp"
#include "librepdl/ops/registry.hpp"

namespace {

constexpr std::int64_t in_cache = 1 << 14;
constexpr std::int64_t in_memory = 1 << 24;

void per_element(benchmark::State& state, std::int64_t n) {
  state.counters["ns/element"] = benchmark::Counter(
      static_cast<double>(n) * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// The row's domain, cut down to where the function is neither constant nor overflowing.
std::vector<float> input(const repdl::ops::elementwise_row& row, std::int64_t n, std::uint64_t seed) {
  const double lo = row.domain.lo < -80 ? -80 : row.domain.lo;
  const double hi = row.domain.hi > 80 ? 80 : row.domain.hi;
  return bench::uniform(n, seed, static_cast<float>(lo), static_cast<float>(hi));
}

void elementwise(benchmark::State& state, const repdl::ops::elementwise_row& row, const std::string& isa,
                 std::int64_t n) {
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const repdl::op_info& op = *repdl::find(row.name);
  std::vector<std::vector<float>> data;
  std::vector<repdl::const_tensor_view> in;
  for (int k = 0; k < row.arity; ++k) data.push_back(input(row, n, static_cast<std::uint64_t>(k) + 1));
  for (const auto& d : data) in.emplace_back(d);
  std::vector<float> out(static_cast<std::size_t>(n));
  const std::vector<repdl::tensor_view> to{repdl::tensor_view(out)};
  for (auto _ : state) {
    repdl::call(ctx, op, in, to);
    benchmark::ClobberMemory();
  }
  per_element(state, n);
}

void peer(benchmark::State& state, void (*f)(const float*, float*, std::int64_t), std::string_view row_name,
          std::int64_t n) {
  std::vector<float> x;
  for (const auto& row : repdl::ops::elementwise_rows) {
    if (row.name == row_name) x = input(row, n, 1);
  }
  std::vector<float> y(x.size());
  for (auto _ : state) {
    f(x.data(), y.data(), n);
    benchmark::ClobberMemory();
  }
  per_element(state, n);
}

const bool registered = [] {
  for (const auto& [size_name, n] : {std::pair{"cache", in_cache}, std::pair{"memory", in_memory}}) {
    for (const auto& row : repdl::ops::elementwise_rows) {
      for (const repdl::isa_info& isa : repdl::instruction_sets()) {
        if (!isa.available) continue;
        const std::string name = std::string(row.name) + "/" + size_name + "/" + isa.name;
        benchmark::RegisterBenchmark(name.c_str(),
                                     [&row, isa, n = n](benchmark::State& s) { elementwise(s, row, isa.name, n); });
      }
    }
    const std::tuple<const char*, void (*)(const float*, float*, std::int64_t)> libm[] = {
        {"exp", peers::exp}, {"log", peers::log}, {"tanh", peers::tanh}, {"abs", peers::copy}};
    for (const auto& [op, f] : libm) {
      const std::string name = std::string(op) + "/" + size_name + (f == peers::copy ? "/peer-copy" : "/peer-libmvec");
      benchmark::RegisterBenchmark(name.c_str(), [op = op, f = f, n = n](benchmark::State& s) { peer(s, f, op, n); });
    }
  }
  return true;
}();

}  // namespace
