// matmul of normally distributed values, one thread, against OpenBLAS sgemm. Every iteration runs both, one after the
// other, on the thread's CPU clock (other processes on the machine then cost little), and `of_sgemm` is the median of
// the iterations' speed ratios: a figure that holds on a noisy machine. `undecided` is the fraction of the outputs that
// binary64 could not decide.
#include <benchmark/benchmark.h>

#include <algorithm>
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

void sgemm(const shape& s, const std::vector<float>& a, const std::vector<float>& b, std::vector<float>& out) {
#if defined(REPDL_WITH_OPENBLAS)
  const auto narrow = [](std::int64_t i) { return static_cast<blasint>(i); };
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, narrow(s.m), narrow(s.n), narrow(s.k), 1.0f, a.data(),
              narrow(s.k), b.data(), narrow(s.n), 0.0f, out.data(), narrow(s.n));
#else
  (void)s, (void)a, (void)b, (void)out;
#endif
}

void matmul(benchmark::State& state, const shape& s, const std::string& isa, repdl::accumulate how) {
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const std::vector<float> a = bench::normal(s.m * s.k, 1);
  const std::vector<float> b = bench::normal(s.k * s.n, 2);
  std::vector<float> out(static_cast<std::size_t>(s.m * s.n));
  std::vector<float> peer_out(out.size());
  repdl::matmul_options options;
  options.accumulate = how;
  const auto ours = [&] {
    repdl::matmul(ctx, repdl::const_tensor_view(a.data(), {s.m, s.k}), repdl::const_tensor_view(b.data(), {s.k, s.n}),
                  repdl::tensor_view(out.data(), {s.m, s.n}), options);
  };
  const char* peer = nullptr;
#if defined(REPDL_WITH_OPENBLAS)
  openblas_set_num_threads(1);
  peer = "of_sgemm";
#endif
  const double work = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const int calls = std::max(1, static_cast<int>(2e7 / work));
  bench::by_turns(state, ctx, work, calls, peer, ours, [&] { sgemm(s, a, b, peer_out); });
}

const int registered = [] {
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
        benchmark::RegisterBenchmark(name.c_str(),
                                     [s, how, i = isa.name](benchmark::State& state) { matmul(state, s, i, how); })
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
  return 0;
}();

}  // namespace
