// Sums and dot products of normally distributed values, in cache (16 Ki) and from memory (64 Mi), one thread, against
// plain loops compiled with -Ofast (`loop`); rows and columns of a matrix. 2^18 rows added to 10^4 places, against a plain loop.
#include <benchmark/benchmark.h>

#include "bench/by_turns.hpp"
#include "bench/inputs.hpp"
#include "bench/peers.hpp"
#include "librepdl/librepdl.hpp"

namespace {

template <class T>
std::vector<T> normal(repdl::context& ctx, std::int64_t n, std::uint64_t seed) {
  if constexpr (sizeof(T) == 8) {
    return bench::normal_wide(n, seed);
  } else {
    const std::vector<float> x = bench::normal(n, seed);
    std::vector<T> to(x.size());
    repdl::convert(ctx, x, repdl::tensor_view(to));
    return to;
  }
}
// What the loop adds up: the same memory, since pages differ; of 16 bits the numbers in f32.
template <class T>
class loop_input {
 public:
  loop_input(repdl::context& ctx, const std::vector<T>& x, std::uint64_t seed) : x_(x) {
    if constexpr (sizeof(T) == 2) wide_ = normal<float>(ctx, std::ssize(x), seed);
  }
  auto data() const {
    if constexpr (sizeof(T) == 2) {
      return wide_.data();
    } else {
      return x_.data();
    }
  }

 private:
  const std::vector<T>& x_;
  std::vector<float> wide_;
};

template <class T>
void sum(benchmark::State& state, const std::string& isa) {
  const std::int64_t n = state.range(0);
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const std::vector<T> x = normal<T>(ctx, n, 1);
  const loop_input<T> same(ctx, x, 1);
  T out{};
  bench::by_turns(state, ctx, [&] { repdl::sum(ctx, x, repdl::tensor_view(&out, repdl::sizes{})); },
                  {"loop", [&] { benchmark::DoNotOptimize(peers::sum(same.data(), n)); }});
  bench::per_element(state, n);
}

template <class T>
void dot(benchmark::State& state, const std::string& isa) {
  const std::int64_t n = state.range(0);
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const std::vector<T> x = normal<T>(ctx, n, 1);
  const std::vector<T> y = normal<T>(ctx, n, 2);
  const loop_input<T> same[] = {{ctx, x, 1}, {ctx, y, 2}};
  T out{};
  bench::by_turns(state, ctx, [&] { repdl::dot(ctx, x, y, repdl::tensor_view(&out, repdl::sizes{})); },
                  {"loop", [&] { benchmark::DoNotOptimize(peers::dot(same[0].data(), same[1].data(), n)); }});
  bench::per_element(state, n);
}

// Against dot, of which it is one of a vector and itself.
void norm(benchmark::State& state, const std::string& isa) {
  const std::int64_t n = state.range(0);
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const std::vector<float> x = bench::normal(n, 1);
  float out = 0;
  const repdl::tensor_view to(&out, repdl::sizes{});
  bench::by_turns(state, ctx, [&] { repdl::vector_norm(ctx, x, to); }, {"dot", [&] { repdl::dot(ctx, x, x, to); }});
  bench::per_element(state, n);
}

// One axis of a 2048 x 2048 matrix.
template <class T>
void axis_sum(benchmark::State& state, const std::string& isa) {
  constexpr std::int64_t n = 2048;
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const std::vector<T> x = normal<T>(ctx, n * n, 1);
  std::vector<T> out(n);
  bench::by_turns(state, ctx, [&] {
    repdl::sum(ctx, repdl::const_tensor_view(x.data(), {n, n}), repdl::tensor_view(out),
               {.axis = repdl::sizes{state.range(0)}});
  });
  bench::per_element(state, n * n);
}

// Rows of so many columns.
void index_add(benchmark::State& state, const std::string& isa) {
  const std::int64_t n = 1 << 18, rows = 10000, columns = state.range(0);
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const std::vector<float> x = bench::normal(rows * columns, 1), source = bench::normal(n * columns, 2);
  std::vector<float> out(x.size()), loop(x.size());
  std::vector<std::int64_t> index(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) index[static_cast<std::size_t>(i)] = i * 7919 % rows;
  const auto plain = [&] {
    loop = x;
    for (std::int64_t i = 0; i < n; ++i) {
      float* const to = loop.data() + index[static_cast<std::size_t>(i)] * columns;
      for (std::int64_t c = 0; c < columns; ++c) to[c] += source[static_cast<std::size_t>(i * columns + c)];
    }
    benchmark::DoNotOptimize(loop.data());
  };
  const repdl::sizes places{rows, columns};
  bench::by_turns(state, ctx,
                  [&] {
                    repdl::index_add(ctx, {x.data(), places}, repdl::const_tensor_view(index),
                                     {source.data(), {n, columns}}, {out.data(), places});
                  },
                  {"loop", plain});
  bench::per_element(state, n * columns);
}

const bench::family registered("sums", [](const bench::family& family) {
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (!isa.available) continue;
    const auto add = [&](const char* name, void (*f)(benchmark::State&, const std::string&)) {
      return family.add_row(std::string(name) + "/" + isa.name, isa.name, f);
    };
    add("sum", sum<float>)->Arg(1 << 14)->Arg(1 << 26);
    add("dot", dot<float>)->Arg(1 << 14)->Arg(1 << 26);
    add("vector_norm", norm)->Arg(1 << 14)->Arg(1 << 26);
    add("sum-axis", axis_sum<float>)->Arg(0)->Arg(1);
    add("sum-f16", sum<repdl::f16>)->Arg(1 << 14)->Arg(1 << 26);
    add("dot-f16", dot<repdl::f16>)->Arg(1 << 14)->Arg(1 << 26);
    add("sum-axis-f16", axis_sum<repdl::f16>)->Arg(0)->Arg(1);
    add("sum-bf16", sum<repdl::bf16>)->Arg(1 << 14)->Arg(1 << 26);
    add("dot-bf16", dot<repdl::bf16>)->Arg(1 << 14)->Arg(1 << 26);
    add("sum-axis-bf16", axis_sum<repdl::bf16>)->Arg(0)->Arg(1);
    add("sum-f64", sum<double>)->Arg(1 << 14)->Arg(1 << 26);
    add("dot-f64", dot<double>)->Arg(1 << 14)->Arg(1 << 26);
    add("sum-axis-f64", axis_sum<double>)->Arg(0)->Arg(1);
    add("index_add", index_add)->Arg(1)->Arg(64);
  }
});

}  // namespace
