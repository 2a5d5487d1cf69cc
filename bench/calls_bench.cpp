// What a call costs beside its work: one element, small matrices; by the typed functions, one thread. Each also prepared:
// validated and planned once.
#include <benchmark/benchmark.h>

#include "bench/by_turns.hpp"
#include "bench/peers.hpp"
#include "librepdl/librepdl.hpp"

namespace {

using repdl::const_tensor_view;
using repdl::sizes;
using repdl::tensor_view;

// call(ctx): one call of an operation.
template <class Call>
void row(const bench::family& family, const std::string& name, const Call& call, const bench::peer& peer = {}) {
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (!isa.available) continue;
    family.add_row(name + "/" + isa.name, isa.name, [=](benchmark::State& s, const std::string& i) {
      repdl::context ctx(repdl::context_options{.threads = 1, .isa = i});
      bench::by_turns(
          s, ctx, [&] { call(ctx); }, peer);
    });
    family.add_row(name + ", prepared/" + isa.name, isa.name, [=](benchmark::State& s, const std::string& i) {
      repdl::context ctx(repdl::context_options{.threads = 1, .isa = i});
      repdl::prepared once = ctx.prepare([&] { call(ctx); });
      bench::by_turns(
          s, ctx, [&] { once.run(); }, peer);
    });
  }
}

float x[16] = {0.5f, 1.25f, 3.0f}, y[16] = {2.0f, 0.125f}, out[16];

const bench::family registered("calls", [](const bench::family& family) {
  const sizes one{1}, square{4, 4};
  row(family, "exp/1 element", [=](repdl::context& c) { exp(c, const_tensor_view(x, one), tensor_view(out, one)); },
      {"libm", [] { peers::exp(x, out, 1); }});
  row(family, "add/1 element",
      [=](repdl::context& c) { add(c, const_tensor_view(x, one), const_tensor_view(y, one), tensor_view(out, one)); });
  row(family, "matmul/4x4x4", [=](repdl::context& c) {
    matmul(c, const_tensor_view(x, square), const_tensor_view(y, square), tensor_view(out, square));
  });
});

}  // namespace
