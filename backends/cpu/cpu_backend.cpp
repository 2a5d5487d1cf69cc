// Choosing an instruction set, and the executor that hands plans to its kernels.
#include "backends/cpu/cpu_backend.hpp"

#include <cpuid.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "backends/cpu/isa.hpp"
#include "backends/cpu/map.hpp"
#include "backends/cpu/matmul.hpp"
#include "backends/cpu/parallel.hpp"
#include "backends/cpu/reduce.hpp"

namespace repdl::cpu {
namespace {

// Every feature bit of the x86-64-v3 and -v4 levels (System V ABI, 3.1.1), and that the system saves the registers:
// the compiler may use any of them in code built for the level.
struct cpu_features {
  unsigned leaf1_c = 0, leaf7_b = 0, extended1_c = 0;
  std::uint64_t xcr0 = 0;

  cpu_features() noexcept {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) != 0) leaf1_c = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) leaf7_b = b;
    if (__get_cpuid(0x80000001u, &a, &b, &c, &d) != 0) extended1_c = c;
    if ((leaf1_c & bit_OSXSAVE) != 0) {
      std::uint32_t lo = 0, hi = 0;
      asm volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
      xcr0 = std::uint64_t{hi} << 32 | lo;
    }
  }
  static bool all(unsigned have, unsigned want) noexcept { return (have & want) == want; }
  bool v3() const noexcept {
    return all(leaf1_c, bit_SSE3 | bit_SSSE3 | bit_FMA | bit_CMPXCHG16B | bit_SSE4_1 | bit_SSE4_2 | bit_MOVBE |
                            bit_POPCNT | bit_AVX | bit_F16C) &&
           all(leaf7_b, bit_BMI | bit_AVX2 | bit_BMI2) && all(extended1_c, bit_LAHF_LM | bit_LZCNT) &&
           (xcr0 & 0x6) == 0x6;
  }
  bool v4() const noexcept {
    return v3() && all(leaf7_b, bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL) &&
           (xcr0 & 0xe6) == 0xe6;
  }
};

const cpu_features& features() noexcept {
  static const cpu_features f;
  return f;
}

constexpr instruction_set sets[] = {
    {"baseline", []() noexcept { return true; }, &baseline::map_table, &baseline::reduce_table,
     &baseline::matmul_table},
    {"avx2", []() noexcept { return features().v3(); }, &avx2::map_table, &avx2::reduce_table, &avx2::matmul_table},
    {"avx512", []() noexcept { return features().v4(); }, &avx512::map_table, &avx512::reduce_table,
     &avx512::matmul_table},
};

const instruction_set& choose(std::string name) {
  if (name.empty()) {
    const char* forced = std::getenv("REPDL_ISA");
    if (forced != nullptr) name = forced;
  }
  const instruction_set* best = nullptr;
  std::string known;
  for (const instruction_set& s : sets) {
    known += (known.empty() ? "" : ", ") + std::string(s.name);
    if (!name.empty() && name == s.name) {
      if (!s.available()) {
        fail(error_site::isa_unavailable, "context", "isa", "an instruction set of this CPU", "'" + name + "'");
      }
      return s;
    }
    if (s.available()) best = &s;
  }
  if (!name.empty()) fail(error_site::isa_name, "context", "isa", "one of " + known, "'" + name + "'");
  return *best;
}

class cpu_executor final : public dispatch::executor {
 public:
  cpu_executor(const instruction_set& set, int threads) : set_(set), isa_(set.name), threads_(threads) {}

  const std::string& isa() const noexcept override { return isa_; }
  int threads() const noexcept override { return threads_; }

  std::size_t workspace(const plan::reduce_plan& p, const dispatch::launch& l) const override {
    return reduce_workspace(p, l);
  }
  std::size_t workspace(const plan::matmul_plan& p, const dispatch::launch& l) const override {
    return matmul_workspace(p, l, *set_.matmul);
  }
  std::size_t workspace(const plan::random_plan& p, const dispatch::launch& l) const override {
    return random_workspace(p, l);
  }

  void run(const plan::map_plan& p, const dispatch::launch& l) override { run_map(p, l, *set_.map, counters_); }
  void run(const plan::reduce_plan& p, const dispatch::launch& l) override {
    run_reduce(p, l, *set_.reduce, counters_);
  }
  void run(const plan::matmul_plan& p, const dispatch::launch& l) override {
    run_matmul(p, l, *set_.matmul, counters_);
  }
  void run(const plan::random_plan& p, const dispatch::launch& l) override { run_random(p, l, counters_); }

  void synchronize() override {}
  statistics read_statistics() override {
    statistics s;
    for (int t = 0; t < 4; ++t) s.elements[t] = counters_.elements[t].load();
    return s;
  }
  void reset_statistics() override {
    for (auto& e : counters_.elements) e.store(0);
  }
  void copy(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }

 private:
  const instruction_set& set_;
  std::string isa_;
  int threads_;
  counters counters_;
};

struct host_allocator final : allocator {
  void* allocate(std::size_t bytes, const device&, void*) override {
    return ::operator new (bytes, std::align_val_t{256}, std::nothrow);
  }
  void deallocate(void* data, std::size_t, const device&, void*) noexcept override {
    ::operator delete (data, std::align_val_t{256});
  }
};

}  // namespace

std::span<const instruction_set> all_instruction_sets() noexcept { return sets; }

dispatch::backend cpu_backend() noexcept {
  return {
      .kind = device_kind::cpu,
      .devices =
          [](std::string*) {
            return std::vector<device_info>{{device{}, "CPU"}};
          },
      .open = [](const context_options& o) -> std::unique_ptr<dispatch::executor> {
        if (o.where.index != 0) {
          fail(error_site::device_index, "context", "where", "index 0 for the CPU", std::to_string(o.where.index));
        }
        return std::make_unique<cpu_executor>(choose(o.isa), o.threads == 0 ? max_threads() : o.threads);
      },
      .default_allocator = []() -> allocator& {
        static host_allocator a;
        return a;
      },
  };
}

}  // namespace repdl::cpu

namespace repdl {

std::vector<isa_info> instruction_sets() {
  std::vector<isa_info> all;
  for (const cpu::instruction_set& s : cpu::all_instruction_sets()) all.push_back({s.name, s.available()});
  return all;
}

}  // namespace repdl
