// Every elementwise operation of the registry, by row names NAME/WHAT/INSTRUCTION SET:
//   cache         f32, 16 Ki elements, one thread, against SLEEF's function of the same name (1 ulp; bench/sleef.cpp), or
//                 `copy`, a copy of the same bytes
//   f16 bf16      the same elements in another format, against `f32`
//   f64           numbers of 53 bits, against SLEEF's function (1 ulp), or `copy`
//   unvectorised  f32 against the same loop compiled without vectorisation (bench/unvectorised.cpp)
//   memory        f32, 16 Mi elements, two threads, against `bound`: the greater one of the time of a copy of the same bytes
//                 on as many threads and of half of what one thread takes for as many elements in cache
#include <benchmark/benchmark.h>
#include <omp.h>

#include <algorithm>
#include <cstring>

#include "bench/by_turns.hpp"
#include "bench/inputs.hpp"
#include "bench/loops.hpp"
#include "librepdl/librepdl.hpp"
#include "librepdl/ops/registry.hpp"

namespace {

using repdl::dtype;
using repdl::ops::elementwise_row;

constexpr std::int64_t in_cache = 1 << 14;
constexpr std::int64_t in_memory = 1 << 24;
constexpr int memory_threads = 2;

// A call of an operation: its domain, cut down to where the function is neither constant nor overflowing.
class problem {
 public:
  problem(const elementwise_row& row, dtype format, std::int64_t n, const std::string& isa, int threads = 1)
      : ctx(repdl::context_options{.threads = threads, .isa = isa}),
        out_(static_cast<std::size_t>(n) * sizeof(double)),
        op_(*repdl::find(row.name)),
        n_(n),
        bytes_(n * static_cast<std::int64_t>(size_of(row.result_type(format)))) {
    const double most = std::string_view(row.name).starts_with("exp10") && format != dtype::f64 ? 38 : 80;
    const auto lo = static_cast<float>(std::max(row.domain.lo, -most));
    const auto hi = static_cast<float>(std::min(row.domain.hi, most));
    const repdl::sizes shape{n};
    for (int k = 0; k < row.arity; ++k) {
      data_.emplace_back(static_cast<std::size_t>(n) * size_of(format));
      const repdl::tensor_view to(data_.back().data(), format, shape);
      const auto seed = static_cast<std::uint64_t>(k) + 1;
      if (format == dtype::f64) {
        const auto x = bench::uniform<double>(n, seed, lo, hi);
        repdl::convert(ctx, x, to);
      } else {
        const auto x = bench::uniform(n, seed, lo, hi);
        repdl::convert(ctx, x, to);
      }
      in_.emplace_back(data_.back().data(), row.operand_type(k, format), shape);  // booleans: the bytes of the numbers
      bytes_ += n * static_cast<std::int64_t>(size_of(in_.back().type()));
    }
    to_.emplace_back(out_.data(), row.result_type(format), shape);
  }

  void call() { repdl::call(ctx, op_, in_, to_); }

  // A copy of as many bytes as a call moves, in seconds: half of them are read, half written. It copies the first operand
  // into the output's memory; its time is scaled.
  double copy(const bench::stopwatch& watch, int calls) {
    const std::size_t bytes = data_[0].size();
    const double seconds = watch.time(calls, [&] {
#pragma omp parallel num_threads(ctx.threads())
      {
        const std::size_t part = bytes / static_cast<std::size_t>(omp_get_num_threads());
        const std::size_t at = part * static_cast<std::size_t>(omp_get_thread_num());
        std::memcpy(out_.data() + at, data_[0].data() + at, part);
      }
    });
    return seconds * static_cast<double>(bytes_) / (2.0 * static_cast<double>(bytes));
  }
  bench::peer copy() {
    return {"copy", {}, [this](const bench::stopwatch& watch, int calls) { return copy(watch, calls); }};
  }

  // A loop over these operands. `open`: for loops with a rounding test.
  bench::peer loop(const char* name, bench::elementwise_loop* f) {
    return {name, [this, f, open = std::vector<char>(static_cast<std::size_t>(n_))]() mutable {
              const void* in[repdl::ops::most_operands] = {};
              for (std::size_t k = 0; k < data_.size(); ++k) in[k] = data_[k].data();
              f(in, out_.data(), n_, reinterpret_cast<bool*>(open.data()));
            }};
  }

  void run(benchmark::State& state, const bench::peer& peer) {
    bench::by_turns(
        state, ctx, [&] { call(); }, peer);
    bench::per_element(state, n_);
  }

  repdl::context ctx;

 private:
  std::vector<std::vector<std::byte>> data_;
  std::vector<std::byte> out_;
  std::vector<repdl::const_tensor_view> in_;
  std::vector<repdl::tensor_view> to_;
  const repdl::op_info& op_;
  std::int64_t n_, bytes_;
};

void cache(benchmark::State& state, const elementwise_row& row, dtype format, const std::string& isa) {
  problem p(row, format, in_cache, isa);
  const bool wide_format = format == dtype::f64;
  bench::elementwise_loop* const sleef =
      format == dtype::f32 || wide_format ? bench::sleef(row.name, isa, wide_format) : nullptr;
  if (sleef != nullptr) return p.run(state, p.loop("sleef", sleef));
  if (format == dtype::f32 || format == dtype::f64) return p.run(state, p.copy());
  problem wide(row, dtype::f32, in_cache, isa);
  p.run(state, {"f32", [&] { wide.call(); }});
}

void unvectorised(benchmark::State& state, const elementwise_row& row, const std::string& isa) {
  problem p(row, dtype::f32, in_cache, isa);
  p.run(state, p.loop("unvectorised", bench::unvectorised(row.name, isa)));
}

void memory(benchmark::State& state, const elementwise_row& row, const std::string& isa) {
  problem p(row, dtype::f32, in_memory, isa, memory_threads);
  problem small(row, dtype::f32, in_cache, isa);
  constexpr int calls_in_cache = in_memory / in_cache / 16;
  const auto bound = [&](const bench::stopwatch& watch, int calls) {
    const double computing =
        watch.time(calls_in_cache, [&] { small.call(); }) * (in_memory / in_cache) / memory_threads;
    return std::max(computing, p.copy(watch, calls));
  };
  p.run(state, {"bound", {}, bound});
}

const bench::family registered("elementwise", [](const bench::family& family) {
  std::string best;
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (isa.available) best = isa.name;
  }
  for (const elementwise_row& row : repdl::ops::elementwise_rows()) {
    const auto add = [&](std::string_view what, const std::string& isa, auto run) {
      const std::string name = std::string(row.name) + "/" + std::string(what) + "/" + isa;
      family.add_row(name, isa, [&row, run](benchmark::State& s, const std::string& i) { run(s, row, i); });
    };
    for (const repdl::isa_info& isa : repdl::instruction_sets()) {
      if (!isa.available) continue;
      repdl::ops::for_each_format<repdl::ops::FLOATS>([&]<class T>() {
        constexpr dtype format = repdl::dtype_of<T>;
        if ((row.formats & repdl::ops::one(format)) == 0) return;
        add(format == dtype::f32 ? "cache" : repdl::name_of(format), isa.name,
            [](benchmark::State& s, const elementwise_row& r, const std::string& i) { cache(s, r, format, i); });
      });
      if (bench::unvectorised(row.name, isa.name) != nullptr) add("unvectorised", isa.name, unvectorised);
    }
    add("memory", best, memory);
  }
});

}  // namespace
