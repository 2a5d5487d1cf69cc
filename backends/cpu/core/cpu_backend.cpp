// Choosing an instruction set (instruction_sets.cpp), and the executor that hands plans to its kernels.
#include "backends/cpu/core/cpu_backend.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "backends/cpu/core/isa.hpp"
#include "backends/cpu/core/parallel.hpp"

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

#define REPDL_PREPARE(family)                                                                         \
  void prepare(const plan::family##_plan& p, const dispatch::launch& l, dispatch::task& t) override { \
    cpu::prepare(p, {l, set_, counters_}, t);                                                         \
  }
  REPDL_FAMILIES(REPDL_PREPARE)
#undef REPDL_PREPARE

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
