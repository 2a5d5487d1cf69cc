// Choosing an instruction set (instruction_sets.cpp), and the executor that hands plans to its kernels.
#include "backends/cpu/cpu_backend.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "backends/cpu/isa.hpp"
#include "backends/cpu/parallel.hpp"

namespace repdl::cpu {
namespace {

const instruction_set& choose(std::string name) {
  if (name.empty()) {
    const char* forced = std::getenv("REPDL_ISA");
    if (forced != nullptr) name = forced;
  }
  const instruction_set* best = nullptr;
  std::string known;
  for (const instruction_set& s : all_instruction_sets()) {
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

  plan::checked_size workspace(const plan::reduce_plan& p, const dispatch::launch& l) const override {
    return reduce_workspace(p, l);
  }
  plan::checked_size workspace(const plan::matmul_plan& p, const dispatch::launch& l) const override {
    return matmul_workspace(p, l, *set_.matmul);
  }
  plan::checked_size workspace(const plan::random_plan& p, const dispatch::launch& l) const override {
    return random_workspace(p, l);
  }
  plan::checked_size workspace(const plan::conv_plan& p, const dispatch::launch& l) const override {
    return conv_workspace(p, l, *set_.conv);
  }
  plan::checked_size workspace(const plan::row_plan& p, const dispatch::launch& l) const override {
    return row_workspace(p, l);
  }

  void run(const plan::map_plan& p, const dispatch::launch& l) override { run_map(p, l, *set_.map, counters_); }
  void run(const plan::reduce_plan& p, const dispatch::launch& l) override {
    run_reduce(p, l, *set_.reduce, counters_);
  }
  void run(const plan::matmul_plan& p, const dispatch::launch& l) override {
    run_matmul(p, l, *set_.matmul, *set_.reduce, counters_);
  }
  void run(const plan::random_plan& p, const dispatch::launch& l) override {
    run_random(p, l, *set_.random, counters_);
    check_decided(l);
  }
  void run(const plan::conv_plan& p, const dispatch::launch& l) override { run_conv(p, l, *set_.conv, counters_); }
  void run(const plan::pool_plan& p, const dispatch::launch& l) override { run_pool(p, l, *set_.pool, counters_); }
  void run(const plan::row_plan& p, const dispatch::launch& l) override {
    run_rows(p, l, *set_.rows, counters_);
    check_decided(l);
  }
  void run(const plan::step_plan& p, const dispatch::launch& l) override { run_step(p, l, *set_.step, counters_); }

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
  void check_decided(const dispatch::launch& l) {
    if (const std::int64_t n = counters_.undecided.exchange(0); n != 0) dispatch::undecided(n, l.last_tier_bits);
  }

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
        return std::make_unique<cpu_executor>(choose(o.isa), o.threads == 0 ? default_threads() : o.threads);
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
