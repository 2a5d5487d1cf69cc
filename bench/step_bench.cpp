// Steps of 2^16 (in cache) and 2^24 parameters, one thread: sgd with momentum, and adamw, against a plain loop in binary32 compiled
// with -Ofast over the same numbers. Gradients clipped by their norm, against a product.
#include <benchmark/benchmark.h>

#include "bench/by_turns.hpp"
#include "bench/inputs.hpp"
#include "bench/peers.hpp"
#include "librepdl/librepdl.hpp"

namespace {

using namespace repdl;

// What a step reads and writes, as PyTorch would begin: parameters about 0.02, gradients about 10^-3, states of earlier steps.
template <class T>
struct operands {
  std::vector<T> p, g;
  std::vector<float> m, v, wide_p, wide_g;

  operands(context& ctx, std::int64_t n)
      : p(static_cast<std::size_t>(n)),
        g(p.size()),
        m(bench::normal(n, 3, 1e-3f)),
        v(bench::uniform(n, 4, 1e-7f, 1e-6f)),
        wide_p(bench::normal(n, 1, 0.02f)),
        wide_g(bench::normal(n, 2, 1e-3f)) {
    convert(ctx, wide_p, tensor_view(p));
    convert(ctx, wide_g, tensor_view(g));
  }
};

template <class T>
void sgd_step(benchmark::State& state, const std::string& isa) {
  const std::int64_t n = state.range(0);
  context ctx(context_options{.threads = 1, .isa = isa});
  operands<T> o(ctx, n);
  std::vector<float> velocity = o.m;
  const sgd_tensor t{tensor_view(o.p), const_tensor_view(o.g), tensor_view(o.m)};
  const sgd_options options{.lr = 1e-3, .momentum = 0.9, .weight_decay = 1e-4};
  bench::by_turns(
      state, ctx,
      [&] {
        sgd(ctx, {&t, 1}, options);
      },
      {"loop", [&] { peers::sgd(o.wide_p.data(), o.wide_g.data(), velocity.data(), n, 1e-3f, 0.9f, 1e-4f); }});
  bench::per_element(state, n);
}

template <class T>
void adamw_step(benchmark::State& state, const std::string& isa) {
  const std::int64_t n = state.range(0);
  context ctx(context_options{.threads = 1, .isa = isa});
  operands<T> o(ctx, n);
  std::vector<float> m = o.m, v = o.v;
  const adamw_tensor t{tensor_view(o.p), const_tensor_view(o.g), tensor_view(o.m), tensor_view(o.v)};
  bench::by_turns(state, ctx,
                  [&] {
                    adamw(ctx, {&t, 1}, {.step = 100});
                  },
                  {"loop", [&] { peers::adamw(o.wide_p.data(), o.wide_g.data(), m.data(), v.data(), n, 1e-3f, 100); }});
  bench::per_element(state, n);
}

template <class T>
void clip(benchmark::State& state, const std::string& isa) {
  const std::int64_t n = state.range(0);
  context ctx(context_options{.threads = 1, .isa = isa});
  operands<T> o(ctx, n);
  const const_tensor_view g(o.g);
  const tensor_view out(o.p);
  bench::by_turns(state, ctx,
                  [&] {
                    clip_grad_norm(ctx, {&g, 1}, {&out, 1}, {.max_norm = 1e-3});
                  },
                  {"mul", [&] { mul(ctx, g, g, out); }});
  bench::per_element(state, n);
}

const bench::family registered("steps", [](const bench::family& family) {
  for (const isa_info& isa : instruction_sets()) {
    if (!isa.available) continue;
    const auto add = [&](const char* name, void (*f)(benchmark::State&, const std::string&)) {
      family.add_row(std::string(name) + "/" + isa.name, isa.name, f)->Arg(1 << 16)->Arg(1 << 24);
    };
    add("sgd", sgd_step<float>);
    add("sgd-f16", sgd_step<f16>);
    add("sgd-bf16", sgd_step<bf16>);
    add("adamw", adamw_step<float>);
    add("adamw-f16", adamw_step<f16>);
    add("adamw-bf16", adamw_step<bf16>);
    add("clip_grad_norm", clip<float>);
    add("clip_grad_norm-f16", clip<f16>);
    add("clip_grad_norm-bf16", clip<bf16>);
  }
});

}  // namespace
