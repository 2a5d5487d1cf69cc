// matmul of normally distributed values, one thread, against OpenBLAS sgemm. `undecided` is the fraction of the outputs
// that binary64 could not decide.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#if defined(REPDL_WITH_OPENBLAS)
#include <cblas.h>
extern "C" void openblas_set_num_threads(int);
#endif

#include "bench/by_turns.hpp"
#include "bench/inputs.hpp"
#include "librepdl/librepdl.hpp"

namespace {

struct shape {
  std::int64_t m, n, k;
};

#if defined(REPDL_WITH_OPENBLAS)
void sgemm(const shape& s, const std::vector<float>& a, const std::vector<float>& b, std::vector<float>& out) {
  const auto narrow = [](std::int64_t i) { return static_cast<blasint>(i); };
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, narrow(s.m), narrow(s.n), narrow(s.k), 1.0f, a.data(),
              narrow(s.k), b.data(), narrow(s.n), 0.0f, out.data(), narrow(s.n));
}
#endif

void matmul(benchmark::State& state, const shape& s, const std::string& isa, repdl::accumulate how) {
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const std::vector<float> a = bench::normal(s.m * s.k, 1);
  const std::vector<float> b = bench::normal(s.k * s.n, 2);
  std::vector<float> out(static_cast<std::size_t>(s.m * s.n));
  repdl::matmul_options options;
  options.accumulate = how;
  const auto ours = [&] {
    repdl::matmul(ctx, repdl::const_tensor_view(a.data(), {s.m, s.k}), repdl::const_tensor_view(b.data(), {s.k, s.n}),
                  repdl::tensor_view(out.data(), {s.m, s.n}), options);
  };
  bench::peer peer;
#if defined(REPDL_WITH_OPENBLAS)
  openblas_set_num_threads(1);
  std::vector<float> peer_out(out.size());
  peer = {"sgemm", [&] { sgemm(s, a, b, peer_out); }};
#endif
  bench::by_turns(state, ctx, ours, peer);
  bench::per_operation(state, 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k));
  bench::count_undecided(state, ctx);
}

const bench::family registered("matrix products", [](const bench::family& family) {
  constexpr shape shapes[] = {{64, 64, 64},     {256, 256, 256}, {1024, 1024, 1024}, {2048, 2048, 2048},
                              {128, 4096, 768}, {4096, 64, 576}, {8, 1024, 1024},    {1, 4096, 1024}};
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (!isa.available) continue;
    for (const repdl::accumulate how : {repdl::accumulate::exact, repdl::accumulate::fma_chain}) {
      for (const shape& s : shapes) {
        if (isa.name == "baseline" && s.m * s.n * s.k > std::int64_t{1} << 24) continue;  // minutes
        const std::string name = std::string("matmul/") + (how == repdl::accumulate::exact ? "exact/" : "fma_chain/") +
                                 isa.name + "/" + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" +
                                 std::to_string(s.k);
        family.add_row(name, isa.name,
                       [s, how](benchmark::State& state, const std::string& i) { matmul(state, s, i, how); });
      }
    }
  }
});

}  // namespace
