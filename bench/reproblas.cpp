// Sums and dot products of f64 against ReproBLAS's of fold 3, which are reproducible, too, but not correctly rounded: in cache (16 Ki) and from
// memory (64 Mi), one thread. Row names OPERATION/reproblas/INSTRUCTION SET/N. The numbers are those of reduce_bench.cpp.
#include <benchmark/benchmark.h>
#include <complex.h>  // here, as C++ has templates in it

#include <cmath>

#include "bench/by_turns.hpp"
#include "bench/inputs.hpp"
#include "librepdl/librepdl.hpp"

extern "C" {
#include <reproBLAS.h>
}

namespace {

constexpr int fold = 3;

void run(benchmark::State& state, const std::string& isa, bool is_dot) {
  const std::int64_t n = state.range(0);
  const auto length = static_cast<int>(n);
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const std::vector<double> x = bench::normal_wide(n, 1), y = is_dot ? bench::normal_wide(n, 2) : std::vector<double>{};
  double ours = 0, theirs = 0;
  const repdl::tensor_view to(&ours, repdl::sizes{});
  bench::by_turns(state, ctx, [&] { is_dot ? repdl::dot(ctx, x, y, to) : repdl::sum(ctx, x, to); },
                  {"reproblas", [&] {
                     theirs = is_dot ? reproBLAS_rddot(fold, length, x.data(), 1, y.data(), 1)
                                     : reproBLAS_rdsum(fold, length, x.data(), 1);
                   }});
  // Its documented error: n 2^-80 times the greatest term, which is below 2^6, and 7 2^-53 of the sum.
  if (!(std::abs(theirs - ours) <= 0x1p-74 * static_cast<double>(n) + 0x1p-50 * std::abs(ours))) {
    state.SkipWithError("ReproBLAS has another sum");
  }
  bench::per_element(state, n);
}

const bench::family registered("reproblas", [](const bench::family& family) {
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (!isa.available) continue;
    for (const bool is_dot : {false, true}) {
      family
          .add_row(std::string(is_dot ? "dot-f64" : "sum-f64") + "/reproblas/" + isa.name, isa.name,
                   [is_dot](benchmark::State& s, const std::string& i) { run(s, i, is_dot); })
          ->Arg(1 << 14)
          ->Arg(1 << 26);
    }
  }
});

}  // namespace
