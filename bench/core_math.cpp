// Functions of binary64 against CORE-MATH's of the same name, which are correctly rounded, too, one number at a time, and against SLEEF's of at most 1 ulp: calls of
// 4,096 elements in cache, one thread. Row names NAME/PEER/INSTRUCTION SET. Operands are uniform in the ranges below.
#include <benchmark/benchmark.h>

#include "bench/by_turns.hpp"
#include "bench/inputs.hpp"
#include "bench/loops.hpp"
#include "librepdl/librepdl.hpp"

// clang-format off
extern "C" {
double cr_exp(double); double cr_log(double); double cr_sin(double); double cr_cos(double);
double cr_tanh(double); double cr_erf(double); double cr_pow(double, double); double cr_atan2(double, double);
}
// clang-format on

namespace {

constexpr std::int64_t n = 4096;

struct range {
  double lo, hi;
};
struct function {
  const char* name;
  double (*of_one)(double);
  double (*of_two)(double, double);
  range x, y;
};
constexpr function functions[] = {
    {"exp", cr_exp, nullptr, {-700, 700}, {}},    {"log", cr_log, nullptr, {0, 1000}, {}},
    {"sin", cr_sin, nullptr, {-100, 100}, {}},    {"cos", cr_cos, nullptr, {-100, 100}, {}},
    {"tanh", cr_tanh, nullptr, {-5, 5}, {}},      {"erf", cr_erf, nullptr, {-4, 4}, {}},
    {"pow", nullptr, cr_pow, {0, 10}, {-10, 10}}, {"atan2", nullptr, cr_atan2, {-10, 10}, {-10, 10}},
};

// `theirs` null: CORE-MATH's.
void run(benchmark::State& state, const function& f, bench::elementwise_loop* theirs, const std::string& isa) {
  repdl::context ctx(repdl::context_options{.threads = 1, .isa = isa});
  const std::vector<double> x = bench::uniform(n, 1, f.x.lo, f.x.hi), y = bench::uniform(n, 2, f.y.lo, f.y.hi);
  std::vector<double> ours(x.size()), other(x.size());
  const repdl::tensor_view to(ours);
  std::vector<repdl::const_tensor_view> in{repdl::const_tensor_view(x)};
  if (f.of_two != nullptr) in.emplace_back(y);
  const auto call_theirs = [&] {
    if (theirs != nullptr) {
      const void* const from[] = {x.data(), y.data()};
      return theirs(from, other.data(), n, nullptr);
    }
    for (std::size_t i = 0; i < other.size(); ++i)
      other[i] = f.of_two != nullptr ? f.of_two(x[i], y[i]) : f.of_one(x[i]);
  };
  const repdl::op_info& op = *repdl::find(f.name);
  bench::by_turns(state, ctx,
                  [&] {
                    repdl::call(ctx, op, in, {&to, 1});
                  },
                  {theirs == nullptr ? "core_math" : "sleef", call_theirs});
  if (theirs == nullptr && ours != other) state.SkipWithError("CORE-MATH has other results");
  bench::per_element(state, n);
}

const bench::family registered("core_math", [](const bench::family& family) {
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (!isa.available) continue;
    for (const function& f : functions) {
      const auto add = [&](const char* peer, bench::elementwise_loop* theirs) {
        family.add_row(std::string(f.name) + "/" + peer + "/" + isa.name, isa.name,
                       [&f, theirs](benchmark::State& s, const std::string& i) { run(s, f, theirs, i); });
      };
      add("core_math", nullptr);
      if (bench::elementwise_loop* const loop = bench::sleef(f.name, isa.name, true)) add("sleef", loop);
    }
  }
});

}  // namespace
