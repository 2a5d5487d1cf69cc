// A user's program: runs operations under every floating-point environment, instruction set and thread count, checks
// that all give the same bits, and prints one fingerprint for each operation. tests/consumers/run.py compares them with
// the oracle's (expected.cpp).
//
// The fetchcontent consumer compiles this file with -Ofast, -ffast-math and -march=native, which sets FTZ and DAZ before main.
#include <xmmintrin.h>

#include <cfenv>
#include <cstdio>
#include <cstring>
#include <librepdl/librepdl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "samples.hpp"

namespace {

using results = std::vector<std::pair<std::string, std::string>>;

std::vector<float> floats(const samples::patterns& p) {
  std::vector<float> v(p.size());
  std::memcpy(static_cast<void*>(v.data()), p.data(), p.size() * sizeof(float));
  return v;
}

repdl::const_tensor_view shaped(const std::vector<float>& v, repdl::sizes shape) { return {v.data(), shape}; }

class run {
 public:
  explicit run(repdl::context& ctx) : ctx_(ctx) {}

  template <class F>
  void operator()(const std::string& name, repdl::dtype type, const repdl::sizes& shape, F&& f) {
    repdl::tensor out(ctx_, type, shape);
    f(out.view());
    const repdl::const_tensor_view views[] = {out};
    all.emplace_back(name, repdl::fingerprint(ctx_, views));
  }
  results all;

 private:
  repdl::context& ctx_;
};

results compute(repdl::context& ctx) {
  using enum repdl::dtype;
  run r(ctx);
  const std::vector<float> x = floats(samples::x()), y = floats(samples::y()), moderate = floats(samples::moderate());
  const repdl::sizes flat{static_cast<std::int64_t>(samples::count)};

  using unary = void (*)(repdl::context&, repdl::const_tensor_view, repdl::tensor_view);
  constexpr unary unaries[] = {repdl::exp, repdl::log, repdl::tanh, repdl::sigmoid, repdl::sqrt};
  for (std::size_t i = 0; i < std::size(unaries); ++i) {
    r(samples::unary[i], f32, flat, [&](auto out) { unaries[i](ctx, x, out); });
    r(samples::unary[i] + std::string(".moderate"), f32, flat, [&](auto out) { unaries[i](ctx, moderate, out); });
  }
  using binary = void (*)(repdl::context&, repdl::const_tensor_view, repdl::const_tensor_view, repdl::tensor_view);
  constexpr auto add = [](repdl::context& c, repdl::const_tensor_view a, repdl::const_tensor_view b,
                          repdl::tensor_view out) { repdl::add(c, a, b, out); };
  constexpr binary binaries[] = {add, repdl::mul, repdl::div, repdl::sigmoid_backward};
  for (std::size_t i = 0; i < std::size(binaries); ++i) {
    r(samples::binary[i], f32, flat, [&](auto out) { binaries[i](ctx, x, y, out); });
  }
  r("fma", f32, flat, [&](auto out) { repdl::fma(ctx, y, moderate, x, out); });
  for (const repdl::dtype to : {f16, bf16, f64}) {
    r("convert." + std::string(repdl::name_of(to)), to, flat, [&](auto out) { repdl::convert(ctx, x, out); });
  }

  const std::vector<float> terms = floats(samples::terms());
  const repdl::const_tensor_view matrix = shaped(terms, {samples::rows, samples::columns});
  r("sum", f32, {}, [&](auto out) { repdl::sum(ctx, matrix, out); });
  r("sum.rows", f32, {samples::rows}, [&](auto out) { repdl::sum(ctx, matrix, out, {.axis = repdl::sizes{1}}); });
  r("mean.columns", f32, {samples::columns},
    [&](auto out) { repdl::mean(ctx, matrix, out, {.axis = repdl::sizes{0}}); });
  r("dot", f32, {}, [&](auto out) { repdl::dot(ctx, y, moderate, out); });

  const std::vector<float> a = floats(samples::a()), b = floats(samples::b()), bias = floats(samples::bias());
  const std::vector<float> small_a = floats(samples::small_a()), small_b = floats(samples::small_b());
  const auto a_view = shaped(a, {samples::m, samples::k}), b_view = shaped(b, {samples::k, samples::n});
  const repdl::sizes c{samples::m, samples::n};
  r("matmul", f32, c, [&](auto out) { repdl::matmul(ctx, a_view, b_view, out); });
  r("matmul.bias", f32, c, [&](auto out) { repdl::matmul(ctx, a_view, b_view, bias, out); });
  r("matmul.fma_chain", f32, c,
    [&](auto out) { repdl::matmul(ctx, a_view, b_view, out, {.accumulate = repdl::accumulate::fma_chain}); });
  r("matmul.subnormal", f32, c, [&](auto out) {
    repdl::matmul(ctx, shaped(small_a, {samples::m, samples::k}), shaped(small_b, {samples::k, samples::n}), out);
  });
  // What makes its results has the same bits.
  const repdl::tensor sums[] = {repdl::sum(repdl::operand(ctx, matrix)),
                                repdl::matmul(repdl::operand(ctx, a_view), b_view, bias)};
  for (const auto& [name, t] : {std::pair{"sum", &sums[0]}, {"matmul.bias", &sums[1]}}) {
    const repdl::const_tensor_view views[] = {*t};
    for (const auto& [made, print] : r.all) {
      if (made == name && print != repdl::fingerprint(ctx, views))
        std::printf("FAILED: %s that makes its result\n", name);
    }
  }
  return std::move(r.all);
}

constexpr unsigned sticky_flags = 0x3f;  // MXCSR's exception flags, which the library may raise

struct environment {
  const char* name;
  unsigned mxcsr;
  int rounding;
};
constexpr environment environments[] = {
    {"to nearest", 0x1f80, FE_TONEAREST},
    {"upward", 0x5f80, FE_UPWARD},
    {"downward", 0x3f80, FE_DOWNWARD},
    {"toward zero", 0x7f80, FE_TOWARDZERO},
    {"FTZ and DAZ", 0x9fc0, FE_TONEAREST},
    {"upward, FTZ and DAZ", 0xdfc0, FE_UPWARD},
    {"all exceptions trap", 0x0000, FE_TONEAREST},
};

}  // namespace

int main() {
  const unsigned at_start = _mm_getcsr();
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // a trap must not swallow what was printed
  std::printf("# mxcsr at start %04x\n", at_start & ~sticky_flags);
  repdl::context first_context;
  const results first = compute(first_context);
  for (const auto& [name, fingerprint] : first) std::printf("%s %s\n", name.c_str(), fingerprint.c_str());

  int failures = 0, runs = 0;
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (!isa.available) continue;
    for (const int threads : {1, 3}) {
      for (const environment& e : environments) {
        // The context's worker threads may have been started under another environment: that must not matter either.
        repdl::context ctx({.threads = threads, .isa = isa.name});
        std::fesetround(e.rounding);
        _mm_setcsr(e.mxcsr);
        const results now = compute(ctx);
        const unsigned left = _mm_getcsr() & ~sticky_flags;
        _mm_setcsr(at_start);
        std::fesetround(FE_TONEAREST);
        ++runs;
        if (ctx.isa() != isa.name) {
          std::printf("FAILED: asked for %s, got %s\n", isa.name.c_str(), ctx.isa().c_str());
          ++failures;
        }
        if (left != (e.mxcsr & ~sticky_flags)) {
          std::printf("FAILED: %s, %s: MXCSR %04x became %04x\n", isa.name.c_str(), e.name, e.mxcsr, left);
          ++failures;
        }
        for (std::size_t i = 0; i < first.size(); ++i) {
          if (now[i] == first[i]) continue;
          std::printf("FAILED: %s, %s, %d threads: %s\n", isa.name.c_str(), e.name, threads, first[i].first.c_str());
          ++failures;
        }
      }
    }
  }
  std::printf("# %d runs, %d failures\n", runs, failures);
  return failures == 0 ? 0 : 1;
}
