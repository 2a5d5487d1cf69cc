// `repdl sweep`: an operation against the MPFR/GMP oracle.
#include "tools/cli/arguments.hpp"
#include "tools/cli/commands.hpp"
#if defined(REPDL_WITH_REFERENCE)
#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>

#include "tools/cli/progress.hpp"
#include "tools/cli/sweep.hpp"
#endif

namespace repdl::tools {

#if defined(REPDL_WITH_REFERENCE)

namespace {

constexpr std::int64_t default_count = std::int64_t{1} << 20;

struct sweep_options {
  const op_info* op = nullptr;
  context_options where;
  bool exhaustive = false;
  bool compare_only = false;
  std::int64_t count = default_count;
  std::uint64_t seed = 1;
  int workers = 1;
};

/// Batches are handed out in order; each worker has a context of its own, because a context has one caller.
sweep_tally run_batches(const sweep_options& o) {
  const std::uint64_t batches = o.exhaustive ? exhaustive_batch_count(*o.op) : ~std::uint64_t{0};
  std::int64_t total = o.count;
  if (o.exhaustive) {
    total = 0;
    for (std::uint64_t i = 0; i < batches; ++i) total += static_cast<std::int64_t>(exhaustive_batch(*o.op, i).count);
  }
  progress bar("sweep " + o.op->name, total);
  sweep_tally all;
  std::mutex mutex;
  std::exception_ptr failure;
  std::uint64_t next = 0;
  std::int64_t handed_out = 0;
  // The batch sizes are known before they run, so the set of batches does not depend on which worker is fast.
  const auto take = [&](sweep_batch& batch, std::uint64_t& index) {
    const std::lock_guard lock(mutex);
    if (failure || next == batches || (!o.exhaustive && handed_out >= o.count)) return false;
    index = next++;
    if (!o.exhaustive) {
      batch = make_batch(*o.op, o.seed, index);
      std::int64_t n = 1;
      for (const reference::array& a : batch.in) n = std::max(n, a.count());
      for (const attribute& a : batch.attrs) {
        if (a.name == "n") n = std::max(n, std::get<std::int64_t>(a.value));
        if (a.name == "shape") n = std::max(n, reference::count_of(std::get<std::vector<std::int64_t>>(a.value)));
      }
      handed_out += n;
    }
    return true;
  };
  const auto work = [&] {
    try {
      context ctx(o.where);
      sweep_tally mine;
      sweep_batch batch;
      std::uint64_t index = 0;
      std::int64_t told = 0;
      while (take(batch, index)) {
        if (o.exhaustive)
          check_range(ctx, *o.op, exhaustive_batch(*o.op, index), index, mine);
        else
          check_batch(ctx, *o.op, batch, o.compare_only, index, mine);
        bar.add(mine.inputs - told);
        told = mine.inputs;
      }
      const std::lock_guard lock(mutex);
      all.merge(mine);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  for (int i = 1; i < o.workers; ++i) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
  bar.clear();
  if (failure) std::rethrow_exception(failure);
  return all;
}

std::string json_text(std::string_view s) {
  std::string t = "\"";
  for (const char c : s) {
    if (c == '\n')
      t += "\\n";
    else if (c == '"' || c == '\\')
      t += joined("\\", std::string(1, c));
    else
      t += c;
  }
  return t + "\"";
}

void print_json(const sweep_options& o, const std::string& isa, const sweep_tally& t, double seconds) {
  std::printf(
      "{\"op\": %s, \"backend\": \"%s\", \"isa\": %s, \"exhaustive\": %s, \"seed\": %llu, \"inputs\": %lld, "
      "\"results\": %lld, \"mismatches\": %lld, \"in_64_bits\": %lld, \"located\": %lld, \"exact\": %lld, \"ties\": "
      "%lld, "
      "\"near_ties\": %lld, \"subnormal\": %lld, \"overflow\": %lld, \"hardest\": ",
      json_text(o.op->name).c_str(), o.where.where.kind == device_kind::cpu ? "cpu" : "cuda", json_text(isa).c_str(),
      o.exhaustive ? "true" : "false", static_cast<unsigned long long>(o.seed), static_cast<long long>(t.inputs),
      static_cast<long long>(t.results), static_cast<long long>(t.mismatches), static_cast<long long>(t.in_64_bits),
      static_cast<long long>(t.located), static_cast<long long>(t.exact), static_cast<long long>(t.ties),
      static_cast<long long>(t.near_ties), static_cast<long long>(t.subnormal), static_cast<long long>(t.overflow));
  if (t.hardest_inputs.empty()) {
    std::printf("null");
  } else {
    std::printf(R"({"ulp": %.6g, "inputs": %s, "result": %s})", t.hardest, json_text(t.hardest_inputs).c_str(),
                json_text(t.hardest_result).c_str());
  }
  std::printf(", \"first_mismatch\": %s, \"seconds\": %.3f}\n",
              t.first_mismatch.empty() ? "null" : json_text(t.first_mismatch).c_str(), seconds);
}

void print_text(const sweep_options& o, const std::string& isa, const sweep_tally& t, double seconds) {
  const auto line = [](const char* label, const std::string& text) { std::printf("%-12s %s\n", label, text.c_str()); };
  line("operation",
       joined(o.op->name, " on ", isa,
              o.exhaustive ? ", every input" : joined(", stratified sample, seed ", std::to_string(o.seed))));
  line("inputs", std::to_string(t.inputs));
  line("results", std::to_string(t.results));
  line("mismatches", std::to_string(t.mismatches));
  if (t.located > 0) {
    line("placed", joined(std::to_string(t.located), " exact results: ", std::to_string(t.exact), " representable, ",
                          std::to_string(t.ties), " ties, ", std::to_string(t.near_ties), " within 2^-20 ulp of one, ",
                          std::to_string(t.subnormal), " subnormal, ", std::to_string(t.overflow), " overflow"));
  }
  if (o.compare_only) {
    line("in 64 bits", joined(std::to_string(t.in_64_bits), " results decided without MPFR"));
  } else if (t.hardest_inputs.empty()) {
    line("hardest", "none: every result is exact, a tie, or a selection");
  } else {
    char distance[40];
    std::snprintf(distance, sizeof distance, "%.4g", t.hardest);
    line("hardest", joined(distance, " ulp from a rounding boundary: ", t.hardest_inputs, " -> ", t.hardest_result));
  }
  char time[64];
  std::snprintf(time, sizeof time, "%.1f s, %s inputs/s", seconds,
                progress::short_number(static_cast<double>(t.inputs) / seconds).c_str());
  line("time", time);
  if (t.mismatches > 0) std::printf("MISMATCH %s\n%s\n", o.op->name.c_str(), t.first_mismatch.c_str());
}

}  // namespace

int run_sweep(command_arguments raw) {
  const arguments args("sweep", raw,
                       {{"--exhaustive", false},
                        {"--compare-only", false},
                        {"--json", false},
                        {"--count"},
                        {"--seed"},
                        {"--backend"},
                        {"--isa"},
                        {"--threads"}});
  args.expect_positional(1, 1, "one operation");
  sweep_options o;
  o.op = find(args.positional()[0]);
  if (o.op == nullptr) {
    fail(error_site::unknown_operation, "sweep", "OP", "an operation (see: repdl info --operations)",
         in_quotes(args.positional()[0]));
  }
  o.where = args.context();
  o.exhaustive = args.has("--exhaustive");
  if (o.exhaustive && exhaustive_batch_count(*o.op) == 0) {
    usage("sweep", "--exhaustive", "a unary elementwise operation without options, or convert", in_quotes(o.op->name));
  }
  o.compare_only = args.has("--compare-only");
  for (const std::string_view sample_only : {"--count", "--seed", "--compare-only"}) {
    if (o.exhaustive && args.has(sample_only)) usage("sweep", sample_only, "a sample", "--exhaustive");
  }
  o.count = args.integer("--count", default_count, 1, std::int64_t{1} << 40);
  o.seed = static_cast<std::uint64_t>(args.integer("--seed", 1, 0, 0x7fffffff));
  const std::string isa = context(o.where).isa();  // names what is missing before any work
  // Without --threads: a worker on every core, because the oracle is the slow side. With it: the library's threads.
  o.workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (o.where.threads == 0 && o.where.where.kind == device_kind::cpu) o.where.threads = 1;
  const stopwatch clock;
  const sweep_tally t = run_batches(o);
  if (args.has("--json"))
    print_json(o, isa, t, clock.seconds());
  else
    print_text(o, isa, t, clock.seconds());
  return t.mismatches == 0 ? 0 : exit_mismatch;
}

#else

int run_sweep(command_arguments raw) {
  for (const std::string_view a : raw) {
    if (a == "--help" || a == "-h") throw help_requested{"sweep"};
  }
  fail(error_site::no_oracle, "sweep", "build", "one with MPFR (-DREPDL_REFERENCE=ON)", "one without");
}

#endif

}  // namespace repdl::tools
