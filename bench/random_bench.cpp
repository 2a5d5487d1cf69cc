// Random numbers and dropout, one thread, in cache (64 Ki); uniform and normal f32 and f64 against the C++ library's
// distributions over mt19937_64 (`std`).
#include <benchmark/benchmark.h>

#include <random>

#include "bench/by_turns.hpp"
#include "bench/inputs.hpp"
#include "librepdl/librepdl.hpp"

namespace {

constexpr std::int64_t n = 1 << 16;

template <class T, class Make>
void fill(benchmark::State& state, const std::string& isa, Make make, const bench::peer& peer = {}) {
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  repdl::generator g{1, 1};
  std::vector<T> out(n);
  bench::by_turns(
      state, ctx, [&] { make(ctx, g, out); }, peer);
  bench::per_element(state, n);
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

template <class T, template <class> class Distribution>
bench::peer standard() {
  if constexpr (std::is_floating_point_v<T>) {
    return {"std", [distribution = Distribution<T>(), engine = std::mt19937_64(1), out = std::vector<T>(n)]() mutable {
              for (T& x : out) x = distribution(engine);
            }};
  }
  return {};
}

const bench::family registered("random numbers", [](const bench::family& family) {
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (!isa.available) continue;
    const auto add = [&](const char* name, auto f) { family.add_row(std::string(name) + "/" + isa.name, isa.name, f); };
    const auto formats = [&]<class T>(T, const std::string& format) {
      const auto row = [&](const std::string& name, auto draw, auto peer) {
        add((name + " " + format).c_str(),
            [=](benchmark::State& s, const std::string& i) { fill<T>(s, i, draw, peer()); });
      };
      row(
          "uniform", [](auto& ctx, auto& g, auto& out) { repdl::uniform(ctx, g, out); },
          standard<T, std::uniform_real_distribution>);
      row(
          "normal", [](auto& ctx, auto& g, auto& out) { repdl::normal(ctx, g, out); },
          standard<T, std::normal_distribution>);
      row(
          "exponential", [](auto& ctx, auto& g, auto& out) { repdl::exponential(ctx, g, out); },
          standard<T, std::exponential_distribution>);
      row(
          "linspace",
          [](auto& ctx, auto&, auto& out) {
            repdl::linspace(ctx, out, {0, 1});
          },
          [] { return bench::peer{}; });
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
});

}  // namespace
