// Elementwise operations of the registry, in cache (16 Ki elements) and from memory (16 Mi), one thread, every
// instruction set that the CPU has, against plain loops compiled with -Ofast: `libmvec`, glibc's vector functions (4
// ulp), and `copy`.
#include <benchmark/benchmark.h>

#include "bench/by_turns.hpp"
#include "bench/inputs.hpp"
#include "bench/peers.hpp"
#include "librepdl/librepdl.hpp"
#include "librepdl/ops/registry.hpp"

namespace {

constexpr std::int64_t in_cache = 1 << 14;
constexpr std::int64_t in_memory = 1 << 24;

struct loop {
  std::string_view operation;
  const char* name;
  void (*f)(const float*, float*, std::int64_t);
};
const loop loops[] = {{"exp", "libmvec", peers::exp},
                      {"log", "libmvec", peers::log},
                      {"tanh", "libmvec", peers::tanh},
                      {"abs", "copy", peers::copy}};

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
  for (int k = 0; k < row.arity; ++k) {  // booleans: the bytes of the numbers
    const auto& d = data[static_cast<std::size_t>(k)];
    in.emplace_back(d.data(), row.operand_type(k, repdl::dtype::f32), repdl::sizes{n});
  }
  std::vector<float> out(static_cast<std::size_t>(n));
  const std::vector<repdl::tensor_view> to{
      repdl::tensor_view(out.data(), row.result_type(repdl::dtype::f32), repdl::sizes{n})};
  bench::peer peer;
  for (const loop& l : loops) {
    if (l.operation == row.name) peer = {l.name, [&, f = l.f] { f(data[0].data(), out.data(), n); }};
  }
  bench::by_turns(
      state, ctx, [&] { repdl::call(ctx, op, in, to); }, peer);
  bench::per_element(state, n);
}

const bool registered = [] {
  for (const auto& [size_name, n] : {std::pair{"cache", in_cache}, std::pair{"memory", in_memory}}) {
    for (const auto& row : repdl::ops::elementwise_rows) {
      for (const repdl::isa_info& isa : repdl::instruction_sets()) {
        if (!isa.available) continue;
        const std::string name = std::string(row.name) + "/" + size_name + "/" + isa.name;
        bench::add_row(name, "elementwise", isa.name,
                       [&row, n = n](benchmark::State& s, const std::string& i) { elementwise(s, row, i, n); });
      }
    }
  }
  return true;
}();

}  // namespace
