// Sums and dot products of normally distributed values, in cache (16 Ki) and from memory (64 Mi), one thread, against
// plain loops compiled with -Ofast (`loop`); rows and columns of a matrix.
#include <benchmark/benchmark.h>

#include "bench/by_turns.hpp"
#include "bench/inputs.hpp"
#include "bench/peers.hpp"
#include "librepdl/librepdl.hpp"

namespace {

void sum(benchmark::State& state, const std::string& isa) {
  const std::int64_t n = state.range(0);
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const std::vector<float> x = bench::normal(n, 1);
  float out = 0;
  bench::by_turns(state, ctx, [&] { repdl::sum(ctx, x, repdl::tensor_view(&out, repdl::sizes{})); },
                  {"loop", [&] { benchmark::DoNotOptimize(peers::sum(x.data(), n)); }});
  bench::per_element(state, n);
}

void dot(benchmark::State& state, const std::string& isa) {
  const std::int64_t n = state.range(0);
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const std::vector<float> x = bench::normal(n, 1);
  const std::vector<float> y = bench::normal(n, 2);
  float out = 0;
  bench::by_turns(state, ctx, [&] { repdl::dot(ctx, x, y, repdl::tensor_view(&out, repdl::sizes{})); },
                  {"loop", [&] { benchmark::DoNotOptimize(peers::dot(x.data(), y.data(), n)); }});
  bench::per_element(state, n);
}

// One axis of a 2048 x 2048 matrix.
void axis_sum(benchmark::State& state, const std::string& isa) {
  constexpr std::int64_t n = 2048;
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const std::vector<float> x = bench::normal(n * n, 1);
  std::vector<float> out(n);
  bench::by_turns(state, ctx, [&] {
    repdl::sum(ctx, repdl::const_tensor_view(x.data(), {n, n}), repdl::tensor_view(out),
               {.axis = repdl::sizes{state.range(0)}});
  });
  bench::per_element(state, n * n);
}

const bench::family registered("sums", [](const bench::family& family) {
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (!isa.available) continue;
    const auto add = [&](const char* name, void (*f)(benchmark::State&, const std::string&)) {
      return family.add_row(std::string(name) + "/" + isa.name, isa.name, f);
    };
    add("sum", sum)->Arg(1 << 14)->Arg(1 << 26);
    add("dot", dot)->Arg(1 << 14)->Arg(1 << 26);
    add("sum-axis", axis_sum)->Arg(0)->Arg(1);
  }
});

}  // namespace
