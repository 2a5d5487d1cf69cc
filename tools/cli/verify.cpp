// `repdl verify`: every operation, format, input class, instruction set, thread count, forced tier and GPU against the
// committed digests, and in every layout of its operands. A difference ends it with the first wrong element.
#include "tools/cli/verify.hpp"

#include <algorithm>
#include <cstdio>

#include "librepdl/dispatch/thread_work.hpp"
#include "tools/cli/arguments.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/data_directory.hpp"
#include "tools/cli/placed_call.hpp"
#include "tools/cli/progress.hpp"

namespace repdl::tools {

bool verify_options::wants(std::string_view op) const {
  return ops.empty() || std::find(ops.begin(), ops.end(), op) != ops.end();
}

verify_row& verify_table::at(const std::string& name) {
  for (auto& [n, row] : rows) {
    if (n == name) return row;
  }
  return rows.emplace_back(name, verify_row{}).second;
}

namespace {

void print_tables(const verify_table& table, std::vector<variant>& variants, double seconds) {
  std::printf("%-17s %-19s %6s %7s %6s %7s %14s %7s  %s\n", "operation", "formats", "cases", "classes", "runs",
              "layouts", "elements", "chunks", "result");
  verify_row sum;
  for (const auto& [name, r] : table.rows) {
    const std::size_t bar = name.find('|');
    std::printf("%-17s %-19s %6lld %7lld %6lld %7lld %14lld %7lld  ok\n", name.substr(0, bar).c_str(),
                name.substr(bar + 1).c_str(), static_cast<long long>(r.cases), static_cast<long long>(r.classes),
                static_cast<long long>(r.runs), static_cast<long long>(r.layouts), static_cast<long long>(r.elements),
                static_cast<long long>(r.chunks));
    sum.cases += r.cases;
    sum.runs += r.runs;
    sum.layouts += r.layouts;
    sum.elements += r.elements;
    sum.chunks += r.chunks;
  }
  std::printf("\n%-38s %6s %14s %14s %12s %13s %12s %8s\n", "run on", "runs", "elements", "proved", "binary64",
              "double_double", "exact", "seconds");
  for (variant& v : variants) {
    statistics s = v.ctx->read_statistics();
    for (int i = 0; i < 4; ++i) s.elements[i] += v.tiers.elements[i];
    std::printf("%-38s %6lld %14lld %14lld %12lld %13lld %12lld %8.2f\n", v.label.c_str(),
                static_cast<long long>(v.runs), static_cast<long long>(v.elements),
                static_cast<long long>(s[tier::proved]), static_cast<long long>(s[tier::binary64]),
                static_cast<long long>(s[tier::double_double]), static_cast<long long>(s[tier::exact]), v.seconds);
  }
  std::printf(
      "\nverified: %lld cases, %lld runs, %lld calls in other layouts, %lld chunks of 2^24 inputs, %lld elements, "
      "0 mismatches, %.1f s\n",
      static_cast<long long>(sum.cases), static_cast<long long>(sum.runs), static_cast<long long>(sum.layouts),
      static_cast<long long>(sum.chunks), static_cast<long long>(sum.elements), seconds);
}

/// Last, because the parts name what is wrong more precisely.
void verify_published(const verify_options& options) {
  try {
    reference::check_published(options.digests);
  } catch (const std::runtime_error& e) {
    throw mismatch(joined("MISMATCH ", e.what(), "\n"));
  }
}

}  // namespace

std::vector<variant> make_variants(std::string_view only) {
  std::vector<variant> all;
  const auto add = [&](const std::string& engine, const device& where, const std::string& isa, int threads,
                       tier first) {
    if (!only.empty() && engine != only) return;
    variant v{.label = label_of(engine, threads, first), .options = {}, .ctx = nullptr};
    v.options.where = where;
    v.options.isa = isa;
    v.options.threads = threads;
    v.options.first_tier = first;
    v.ctx = std::make_unique<context>(v.options);
    all.push_back(std::move(v));
  };
  constexpr tier forced[] = {tier::binary64, tier::double_double, tier::exact};
  for (const isa_info& i : instruction_sets()) {
    if (!i.available) continue;
    for (const int threads : {1, 2, 3, 8}) add(i.name, {}, i.name, threads, tier::proved);
    for (const tier t : forced) add(i.name, {}, i.name, 2, t);
  }
  for (const device_info& d : devices()) {
    if (d.where.kind != device_kind::cuda) continue;
    add(name_of(d.where), d.where, "", 0, tier::proved);
    for (const tier t : forced) add(name_of(d.where), d.where, "", 0, t);
  }
  return all;
}

int run_verify(command_arguments raw) {
  const arguments args(
      "verify", raw,
      {{"--quick", false}, {"--self-test", false}, {"--digests"}, {"--threads"}, {"--part"}, {"--engine"}, {"--flip"}});
  if (args.has("--self-test")) return verify_kernels();
  verify_options options;
  options.quick = args.has("--quick");
  options.digests = args.has("--digests") ? std::string(*args.value("--digests")) : data_directory() + "/docs/digests";
  options.threads = static_cast<int>(args.integer("--threads", 0, 0, max_threads));
  const std::string_view part = args.value("--part").value_or("all");
  const bool cases = part == "all" || part == "cases", layouts = part == "all" || part == "layouts";
  const bool chunks = part == "all" || part == "chunks";
  if (!cases && !layouts && !chunks) usage("verify", "--part", "all, cases, layouts or chunks", in_quotes(part));
  options.flip = args.integer("--flip", -1, 0, std::int64_t{1} << 62);
  for (const std::string_view op : args.positional()) {
    if (find(op) == nullptr) {
      fail(error_site::unknown_operation, "verify", "OP", "an operation (see: repdl info --operations)", in_quotes(op));
    }
    options.ops.emplace_back(op);
  }
  dispatch::thread_work = 5'000;  // cases are small
  const stopwatch clock;
  const std::string_view engine = args.value("--engine").value_or("");
  std::vector<variant> variants = make_variants(engine);
  if (variants.empty()) usage("verify", "--engine", "an instruction set or a GPU of this machine", in_quotes(engine));
  verify_table table;
  try {
    if (cases) verify_cases(options, variants, table);
    if (layouts) verify_layouts(options, variants, table);
    if (chunks) verify_chunks(options, variants, table);
    verify_published(options);
  } catch (const mismatch& m) {
    std::printf("%s", m.what());
    return exit_mismatch;
  }
  print_tables(table, variants, clock.seconds());
  std::string why;
  devices(&why);
  for (const isa_info& i : instruction_sets()) {
    if (!i.available) std::printf("not here: instruction set %s (this CPU lacks it)\n", i.name.c_str());
  }
  if (!why.empty()) std::printf("not here: CUDA (%s)\n", why.c_str());
  return 0;
}

}  // namespace repdl::tools
