// `repdl fuzz`: random whole calls of every operation, with operands in every layout, each on two engines: the subject
// on the operands as they lie, with guards around them, and the witness, another device or instruction set, on the same
// values made contiguous. Bits and bytes are compared. Some calls are made again with a fault, and have to be refused.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "librepdl/dispatch/thread_work.hpp"
#include "tools/cli/arguments.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/illegal_call.hpp"
#include "tools/cli/progress.hpp"
#include "tools/cli/random_call.hpp"

namespace repdl::tools {
namespace {

using reference::array;
using reference::memory_image;
using reference::word_stream;

/// A test of the test: what of the subject's memory is spoiled after each call.
enum class spoil { nothing, output, input, guard };

struct fuzz_options {
  double seconds = 0;      ///< 0: no limit
  std::int64_t count = 0;  ///< 0: no limit
  std::int64_t seed = 1;
  std::string op;  ///< empty: all
  spoil flip = spoil::nothing;
  std::string flip_name;
};

/// The reproducer of the call that is under way: what a crash leaves on stderr.
char under_way[256];
void report_crash(int signal) {
  // The handler was removed when it was entered: the signal raised again ends the process.
  const std::size_t length = std::char_traits<char>::length(under_way);
  if (::write(STDERR_FILENO, under_way, length) < 0) ::_exit(exit_mismatch);
  ::raise(signal);
}
void watch_for_crashes() {
  struct sigaction action {};
  action.sa_handler = report_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigaction(s, &action, nullptr);
}

/// What the two engines are.
struct engine_choice {
  context_options subject, witness;
};

/// How a run ended, apart from its results.
struct call_outcome {
  memory_image memory;
  std::string error;  ///< empty: none
  bool undecided = false;
  bool device_failed = false;
};

class fuzzer {
 public:
  explicit fuzzer(fuzz_options options) : options_(std::move(options)) {
    for (const isa_info& i : instruction_sets()) {
      if (i.available) isas_.push_back(i.name);
    }
    for (const device_info& d : devices()) {
      if (d.where.kind == device_kind::cuda) gpus_.push_back(d.where);
    }
    for (const op_info& op : operations()) {
      if (options_.op.empty() || op.name == options_.op) ops_.push_back(&op);
    }
  }

  /// Returns whether everything agreed.
  bool run() {
    const stopwatch clock;
    bool good = true;
    for (index_ = 0; good && (options_.count == 0 || index_ < options_.count); ++index_) {
      if (options_.seconds > 0 && clock.seconds() > options_.seconds) break;
      good = one_call(false);
    }
    if (good) print_table();
    print_summary(clock.seconds());
    return good;
  }
  bool run_alone(std::int64_t index) {
    index_ = index;
    const bool good = one_call(true);
    if (good) std::printf("the same bits\n");
    return good;
  }

 private:
  bool one_call(bool tell) {
    // Two streams per call: the call is the same on every machine, the engines are what this one has.
    const auto stream = 2 * static_cast<std::uint64_t>(index_), seed = static_cast<std::uint64_t>(options_.seed);
    word_stream words(seed, stream), engine_words(seed, stream + 1);
    std::snprintf(under_way, sizeof under_way, "CRASH %s\n", reproducer().c_str());
    const op_info& op = *ops_[words.below(static_cast<std::uint32_t>(ops_.size()))];
    random_call r;
    try {
      r = make_random_call(op, words);
    } catch (const std::exception& e) {
      return fail_with(joined("  operation:  ", op.name, "\na legal call was refused: ", e.what(), "\n"));
    }
    const engine_choice engines = choose(r, engine_words);
    engine& subject = engine_for(engines.subject);
    engine& witness = engine_for(engines.witness);
    const placed_call reference_call = contiguous(r.call);
    const std::string heading =
        joined("  values:     ", reference::name_of(r.kind), "\n  subject:    ", subject.label,
               ", operands as they lie\n  witness:    ", witness.label, ", operands contiguous\n");
    if (tell) {
      std::printf("%s%s", describe(r.call).c_str(), heading.c_str());
      std::fflush(stdout);
    }
    call_outcome want = run_on(witness.runner, reference_call), got = run_on(subject.runner, r.call);
    const auto fails = [&](const std::string& what) {
      return fail_with(tell ? what : describe(r.call) + heading + what);
    };
    if (want.device_failed || got.device_failed || want.error != got.error) {
      const bool both_undecided_or_one = (want.undecided || got.undecided) && !want.device_failed &&
                                         !got.device_failed && (want.error.empty() || want.undecided) &&
                                         (got.error.empty() || got.undecided);
      if (!both_undecided_or_one) {
        const auto said = [](const std::string& error) { return error.empty() ? std::string("no error") : error; };
        return fails(joined("errors differ, or a device failed\n  subject: ", said(got.error),
                            "\n  witness: ", said(want.error), "\n"));
      }
    }
    ++calls_;
    if (want.undecided || got.undecided) {
      ++undecided_;
      return true;
    }
    if (!want.error.empty()) return fails(joined("a legal call was refused by both: ", want.error, "\n"));
    spoil_memory(r.call, got.memory);
    const std::vector<array> results = results_of(reference_call, want.memory);
    const std::string wrong =
        difference(r.call, got.memory, subject.label, expected_memory(r.call, results), witness.label);
    if (!wrong.empty()) return fails(wrong);
    const std::string beside = difference(reference_call, want.memory, witness.label,
                                          expected_memory(reference_call, results), "the same memory before the call");
    if (!beside.empty()) return fails(beside);
    for (const array& a : results) elements_ += a.count();
    if (engine_words.below(4) == 0) {
      const std::optional<std::string> refusal = wrong_refusal(checker_, r.call, engine_words);
      if (refusal && !refusal->empty()) return fails(*refusal);
      refused_ += refusal.has_value();
    }
    const bool on_gpu = engines.subject.where.kind == device_kind::cuda;
    gpu_calls_ += on_gpu;
    for (const auto& [rank, kind] : layouts_of(r.call))
      ++hits_[&op][static_cast<std::size_t>(rank)][kind][on_gpu ? 1 : 0];
    return true;
  }

  std::string reproducer() const {
    return joined("repdl fuzz --seed ", std::to_string(options_.seed), " --call ", std::to_string(index_),
                  options_.op.empty() ? "" : " --op ", options_.op, options_.flip_name.empty() ? "" : " --flip ",
                  options_.flip_name);
  }
  bool fail_with(const std::string& text) const {
    std::printf("MISMATCH %s\n%s", reproducer().c_str(), text.c_str());
    return false;
  }

  static call_outcome run_on(call_runner& r, const placed_call& c) {
    call_outcome o;
    try {
      o.memory = r.run(c);
    } catch (const error& e) {
      o.error = e.what();
      o.undecided = e.site() == error_site::undecided;
      o.device_failed = e.code() == status::device_error || e.code() == status::internal;
    }
    return o;
  }

  /// Mostly a GPU where there is one, against a CPU.
  engine_choice choose(const random_call& r, word_stream& w) const {
    const auto cpu = [&](const std::string& avoid) {
      context_options o;
      std::string isa = isas_[w.below(static_cast<std::uint32_t>(isas_.size()))];
      for (std::size_t i = 0; isa == avoid && i < isas_.size(); ++i) isa = isas_[i];
      o.isa = isa;
      o.threads = w.below(4) != 0 ? 1 : w.between(2, 4);
      return o;
    };
    const auto gpu = [&] {
      context_options o;
      o.where = gpus_[w.below(static_cast<std::uint32_t>(gpus_.size()))];
      return o;
    };
    const std::uint32_t turn = w.below(16);
    engine_choice e;
    if (gpus_.empty() || turn == 0) {
      e.subject = cpu("");
      e.witness = cpu(e.subject.isa);
    } else if (turn == 1) {
      e.subject = cpu("");
      e.witness = gpu();
    } else {
      e.subject = gpu();
      e.witness = cpu("");
    }
    e.subject.first_tier = w.flip() ? tier::proved : static_cast<tier>(w.between(1, 3));
    if (w.below(8) == 0) e.witness.first_tier = static_cast<tier>(w.between(1, 3));
    for (context_options* o : {&e.subject, &e.witness}) {
      if (o->where.kind == device_kind::cuda && r.call.op->family == "matmul") {
        o->products = static_cast<product_engine>(w.between(0, 2));
      }
      if (!is_affordable(r, *o)) o->first_tier = tier::double_double;
    }
    return e;
  }
  struct engine {
    context ctx;
    call_runner runner;
    std::string label;
    explicit engine(const context_options& o)
        : ctx(o),
          runner(ctx),
          label(o.where.kind == device_kind::cpu
                    ? label_of(ctx.isa(), ctx.threads(), o.first_tier)
                    : label_of(name_of(o.where) + suffix_of(o.products), 0, o.first_tier)) {}
    static std::string suffix_of(product_engine p) {
      return p == product_engine::any        ? ""
             : p == product_engine::binary64 ? ", products in binary64"
                                             : ", products by residues";
    }
  };
  engine& engine_for(const context_options& o) {
    auto& e = engines_[std::tuple(o.where.kind, o.where.index, o.isa, o.threads, o.first_tier, o.products)];
    if (!e) e = std::make_unique<engine>(o);
    return *e;
  }

  void spoil_memory(const placed_call& c, memory_image& m) const {
    const auto first_element = [&](std::size_t t) {
      const memory_image::tensor& x = m.tensors()[t];
      return x.begin + static_cast<std::size_t>(x.where.offset) * size_of(x.spec.type);
    };
    if (options_.flip == spoil::nothing) return;
    std::size_t at = 0;
    if (options_.flip == spoil::guard) {
      at = m.tensors()[*c.out[0]].begin;
    } else if (options_.flip == spoil::output) {
      if (element_count(m.tensors()[*c.out[0]].spec.shape) == 0) return;
      at = first_element(*c.out[0]);
    } else {
      if (c.in.empty() || c.in[0] == c.out[0] || element_count(m.tensors()[*c.in[0]].spec.shape) == 0) return;
      at = first_element(*c.in[0]);
    }
    m.bytes()[at] ^= 1;
  }

  /// How often operands were laid out in each way, and the ways that never came.
  void print_table() {
    std::printf("%-22s %4s", "operation", "rank");
    for (std::size_t k = 0; k < layout_kinds; ++k) {
      std::printf(" %13s", std::string(layout_kind_name(k)).c_str());
    }
    std::printf("   (operands laid out so%s)\n", gpus_.empty() ? "" : ": on a GPU, on the CPU");
    std::string never;
    for (const op_info* op : ops_) {
      for (int rank = 0; rank <= max_rank; ++rank) {
        const auto found = hits_.find(op);
        std::string line, missing;
        for (std::size_t k = 0; k < layout_kinds; ++k) {
          const bool possible = is_possible(*op, rank, k);
          const std::array<std::int64_t, 2> n =
              found == hits_.end() ? std::array<std::int64_t, 2>{} : found->second[static_cast<std::size_t>(rank)][k];
          char cell[48];
          if (!possible) {
            std::snprintf(cell, sizeof cell, " %13s", "-");
          } else if (gpus_.empty()) {
            std::snprintf(cell, sizeof cell, " %13lld", static_cast<long long>(n[0]));
          } else {
            std::snprintf(cell, sizeof cell, " %6lld %6lld", static_cast<long long>(n[1]),
                          static_cast<long long>(n[0]));
          }
          line += cell;
          if (!possible) continue;
          ++combinations_;
          if (n[gpus_.empty() ? 0 : 1] == 0) {
            ++missed_;
            missing += joined(missing.empty() ? "" : ", ", layout_kind_name(k));
          }
        }
        if (line.find_first_of("0123456789") == std::string::npos) continue;
        std::printf("%-22s %4d%s\n", op->name.c_str(), rank, line.c_str());
        if (!missing.empty())
          never += joined("never: ", op->name, ", rank ", std::to_string(rank), ": ", missing, "\n");
      }
    }
    std::printf("%s\n%lld of %lld combinations of operation, rank and layout hit%s\n", never.c_str(),
                static_cast<long long>(combinations_ - missed_), static_cast<long long>(combinations_),
                gpus_.empty() ? "" : " on a GPU");
  }
  void print_summary(double seconds) const {
    std::printf(
        "fuzz: seed %lld, %lld calls in %.1f s (%.0f/s), %lld with a GPU as subject, %lld undecided, "
        "%lld elements compared, %lld faulty calls refused\n",
        static_cast<long long>(options_.seed), static_cast<long long>(calls_), seconds,
        static_cast<double>(calls_) / std::max(seconds, 1e-9), static_cast<long long>(gpu_calls_),
        static_cast<long long>(undecided_), static_cast<long long>(elements_), static_cast<long long>(refused_));
  }

  fuzz_options options_;
  std::vector<std::string> isas_;
  std::vector<device> gpus_;
  std::vector<const op_info*> ops_;
  std::map<std::tuple<device_kind, std::int32_t, std::string, int, tier, product_engine>, std::unique_ptr<engine>>
      engines_;
  context checker_{context_options{.threads = 1}};  // of faulty calls: what they are given is in the host's memory
  std::int64_t index_ = 0, calls_ = 0, gpu_calls_ = 0, undecided_ = 0, elements_ = 0, refused_ = 0;
  std::int64_t combinations_ = 0, missed_ = 0;
  /// [rank][kind][0: CPU, 1: GPU]
  using counts = std::array<std::array<std::array<std::int64_t, 2>, layout_kinds>, max_rank + 1>;
  std::map<const op_info*, counts> hits_;
};

}  // namespace

int run_fuzz(command_arguments raw) {
  const arguments args("fuzz", raw, {{"--seconds"}, {"--count"}, {"--seed"}, {"--call"}, {"--op"}, {"--flip"}});
  args.expect_positional(0, 0, "options only");
  constexpr std::int64_t large = std::int64_t{1} << 62;
  dispatch::thread_work = 0;  // calls are small
  fuzz_options o;
  o.count = args.integer("--count", 0, 1, large);
  o.seconds = static_cast<double>(args.integer("--seconds", o.count > 0 ? 0 : 10, 1, 1 << 30));
  o.seed = args.integer("--seed", 1, 0, large);
  o.op = args.value("--op").value_or("");
  if (args.has("--op") && find(o.op) == nullptr) {
    fail(error_site::unknown_operation, "fuzz", "--op", "an operation (see: repdl info --operations)", in_quotes(o.op));
  }
  if (const auto flip = args.value("--flip")) {
    o.flip_name = *flip;
    o.flip = *flip == "output" ? spoil::output : *flip == "input" ? spoil::input : spoil::guard;
    if (o.flip == spoil::guard && *flip != "guard") usage("fuzz", "--flip", "output, input or guard", in_quotes(*flip));
  }
  watch_for_crashes();
  const std::int64_t call = args.integer("--call", -1, 0, large);
  if (call >= 0) {
    for (const std::string_view other : {"--seconds", "--count"}) {
      if (args.has(other)) usage("fuzz", other, "--call without it", "both");
    }
    return fuzzer(o).run_alone(call) ? 0 : exit_mismatch;
  }
  return fuzzer(o).run() ? 0 : exit_mismatch;
}

}  // namespace repdl::tools
