// Elementwise operations of f16 and bf16 on a GPU, in calls of so many elements that tables are used, against the CPU bit for bit:
// every number as one operand, with numbers of all patterns as the others; all pairs of them with --full.
//   repdl_cuda_pairs [--full] [OP...]
// Each call is made of contiguous operands, of ones that are not aligned, two ways, and of every second element. Exit status 1: some
// differ.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "librepdl/librepdl.hpp"
#include "librepdl/ops/registry.hpp"

namespace {

using namespace repdl;

constexpr std::int64_t count = std::int64_t{1} << 24;

std::uint64_t mixed(std::uint64_t x) {  // splitmix64 (Steele, Lea, Flood, OOPSLA 2014)
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// Operand k of turn t: one of them goes through all numbers, the others have a number for each time. Half of the turns that are
// drawn have numbers between 2^-4 and 2^4.
std::vector<std::uint16_t> operand(int k, int arity, std::int64_t turn, bool full, dtype format) {
  std::vector<std::uint16_t> x(static_cast<std::size_t>(count));
  const int through = static_cast<int>(full ? arity - 1 : turn % arity);
  const int one = format == dtype::f16 ? 0x3c00 : 0x3f80, binade = format == dtype::f16 ? 1 << 10 : 1 << 7;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t bits = static_cast<std::uint64_t>(i);
    if (k != through) {
      const std::int64_t round = turn * (count >> 16) + (i >> 16);
      // Two more operands: the second one changes with each element.
      const std::uint64_t seed =
          static_cast<std::uint64_t>((arity > 2 && k == arity - 1 - through % 2 ? turn * count + i : round) * 8 + k);
      bits = full ? static_cast<std::uint64_t>(round) : mixed(seed);
      if (!full && (turn / arity) % 2 == 1)
        bits = (bits & 0x8000) |
               static_cast<std::uint64_t>(one - 4 * binade) + bits % static_cast<std::uint64_t>(8 * binade);
    }
    x[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(bits);
  }
  return x;
}

// Where operands are: every so many elements from some place on, another one for each operand (k, the output the last).
struct places {
  const char* name;
  int shift, step;
  std::int64_t first(int k) const { return shift == 0 ? 0 : (shift + 3 * k) % 8; }
};
constexpr places layouts[] = {{"contiguous", 0, 1}, {"not aligned", 1, 1}, {"not aligned", 4, 1}, {"strided", 0, 2}};

// Differences of a turn.
std::int64_t compare(context& cpu, context& gpu, const ops::elementwise_row& row, dtype format, std::int64_t turn,
                     bool full) {
  const op_info& op = *find(row.name);
  std::vector<std::vector<std::uint16_t>> host;
  std::vector<const_tensor_view> in;
  for (int k = 0; k < row.arity; ++k) {
    host.push_back(operand(k, row.arity, turn, full, format));
    in.emplace_back(host.back().data(), format, sizes{count});
  }
  std::vector<std::uint16_t> expected(static_cast<std::size_t>(count)), got(static_cast<std::size_t>(count));
  const tensor_view to(expected.data(), format, sizes{count});
  call(cpu, op, in, {&to, 1});
  std::int64_t wrong = 0;
  for (const places& p : layouts) {
    std::vector<tensor> on_gpu;
    std::vector<const_tensor_view> from;
    for (int k = 0; k <= row.arity; ++k) {
      on_gpu.emplace_back(gpu, format, sizes{count + 8});
      const tensor_view all = on_gpu.back().view().slice(0, p.first(k), p.first(k) + count);
      if (k < row.arity) {
        gpu.copy(all.data(), host[static_cast<std::size_t>(k)].data(), 2 * count);
        from.push_back(all.slice(0, 0, count, p.step));
      } else {
        const tensor_view result = all.slice(0, 0, count, p.step);
        call(gpu, op, from, {&result, 1});
        gpu.synchronize();
        gpu.copy(got.data(), all.data(), 2 * count);
      }
    }
    std::int64_t here = 0;
    for (std::int64_t i = 0; i < count; i += p.step) {
      const auto at = static_cast<std::size_t>(i);
      if (got[at] == expected[at]) continue;
      if (here++ == 0) {
        std::printf("%s %s, %s, turn %lld, element %lld:", op.name.c_str(), std::string(name_of(format)).c_str(),
                    p.name, static_cast<long long>(turn), static_cast<long long>(i));
        for (const auto& h : host) std::printf(" 0x%04x", h[at]);
        std::printf(" gives 0x%04x, not 0x%04x\n", got[at], expected[at]);
      }
    }
    wrong += here;
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool full = !words.empty() && words[0] == "--full";
  const auto named = [&](std::string_view name) {
    return words.size() == (full ? 1u : 0u) || std::find(words.begin(), words.end(), name) != words.end();
  };
  try {
    context cpu;
    context gpu({.where = {device_kind::cuda, 0}});
    std::int64_t wrong = 0, calls = 0;
    for (const ops::elementwise_row& row : ops::elementwise_rows()) {
      const bool rounds = row.proof != ops::proof_kind::ieee && row.proof != ops::proof_kind::select;
      if (!rounds || !named(row.name)) continue;
      for (const dtype format : {dtype::f16, dtype::bf16}) {
        if ((row.formats & ops::one(format)) == 0 || row.result_type(format) != format) continue;
        const bool all = full && row.arity == 2;
        const std::int64_t turns = row.arity == 1 ? 1 : all ? 256 : 2 * row.arity;
        for (std::int64_t t = 0; t < turns; ++t, calls += static_cast<std::int64_t>(std::size(layouts)))
          wrong += compare(cpu, gpu, row, format, t, all);
      }
    }
    std::printf("%lld calls of %lld elements: %lld differ\n", static_cast<long long>(calls),
                static_cast<long long>(count), static_cast<long long>(wrong));
    return wrong == 0 && calls > 0 ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "repdl_cuda_pairs: %s\n", e.what());
    return 2;
  }
}
