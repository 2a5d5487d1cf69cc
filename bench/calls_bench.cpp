// What a call costs beside its work: one element, small matrices; and of 64 elements, with its work; by the typed functions, one
// thread. Each also prepared: validated and planned once.
#include <benchmark/benchmark.h>

#include "bench/by_turns.hpp"
#include "bench/inputs.hpp"
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
      repdl::prepared_calls once = ctx.prepare([&] { call(ctx); });
      bench::by_turns(
          s, ctx, [&] { once.run(); }, peer);
    });
  }
}

float out[64];

const bench::family registered("calls", [](const bench::family& family) {
  static const std::vector<float> a = bench::uniform(64, 1, 0.25f, 4.0f), b = bench::uniform(64, 2, 0.25f, 4.0f);
  const float* x = a.data();
  const float* y = b.data();
  const sizes one{1}, many{64}, square{4, 4};
  row(family, "exp/1 element", [=](repdl::context& c) { exp(c, const_tensor_view(x, one), tensor_view(out, one)); },
      {"libm", [=] { peers::exp(x, out, 1); }});
  row(family, "add/1 element",
      [=](repdl::context& c) { add(c, const_tensor_view(x, one), const_tensor_view(y, one), tensor_view(out, one)); });
  row(family, "exp/64 elements", [=](repdl::context& c) { exp(c, const_tensor_view(x, many), tensor_view(out, many)); },
      {"libm", [=] { peers::exp(x, out, 64); }});
  row(family, "add/64 elements", [=](repdl::context& c) {
    add(c, const_tensor_view(x, many), const_tensor_view(y, many), tensor_view(out, many));
  });
  row(family, "tanh/64 elements",
      [=](repdl::context& c) { tanh(c, const_tensor_view(x, many), tensor_view(out, many)); });
  row(family, "pow/64 elements", [=](repdl::context& c) {
    pow(c, const_tensor_view(x, many), const_tensor_view(y, many), tensor_view(out, many));
  });
  row(family, "matmul/4x4x4", [=](repdl::context& c) {
    matmul(c, const_tensor_view(x, square), const_tensor_view(y, square), tensor_view(out, square));
  });
});

}  // namespace
