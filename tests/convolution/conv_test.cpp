// conv2d and its gradients through the public API, on every instruction set and GPU of this machine, against naive
// loops over the taps that are present: exact integer sums (num::dot_accumulator, itself tested against GMP) and, for
// fma_chain, std::fmaf in the contract's order. Bits are compared, never values.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/class_engines.hpp"
#include "tests/helpers/conv_problems.hpp"

using namespace repdl;
using namespace conv_problems;

namespace {

// -------------------------------------------------------------------------------------------------------------- runs

struct engine {
  std::string name;
  tier first;
  std::unique_ptr<context> ctx;
};

std::vector<engine> engines(const std::vector<tier>& tiers, int threads) {
  std::vector<engine> all;
  for (const tier first : tiers) {
    context_options o;
    o.first_tier = first;
    for (const isa_info& i : instruction_sets()) {
      if (!i.available) continue;
      o.threads = threads;
      o.isa = i.name;
      all.push_back({i.name + ", threads " + std::to_string(threads), first, std::make_unique<context>(o)});
    }
    for (const device_info& d : devices()) {
      if (d.where.kind != device_kind::cuda) continue;
      context_options on_device;
      on_device.first_tier = first;
      on_device.where = d.where;
      all.push_back({name_of(d.where), first, std::make_unique<context>(on_device)});
    }
  }
  return all;
}

const std::vector<tier> every_tier = {tier::proved, tier::double_double, tier::exact};

void run(context& ctx, problem& p, accumulate how) {
  host_tensor& out = p.out();
  std::fill(out.buffer.begin(), out.buffer.end(), poison);
  const auto upload = [&](const std::vector<float>& values) { return tensor(ctx, values, {values.size()}); };
  tensor a = upload(p.first().buffer), b = upload(p.second().buffer), c = upload(p.bias), d = upload(out.buffer);
  const auto view = [&](tensor& memory, const host_tensor& t) {
    return tensor_view(static_cast<float*>(memory.view().data()) + t.origin, dtype::f32, t.shape, t.strides,
                       ctx.where());
  };
  std::vector<const_tensor_view> in = {view(a, p.first()), view(b, p.second())};
  if (!p.bias.empty()) in.emplace_back(c);
  const geometry& s = p.at;
  using list = std::vector<std::int64_t>;
  const attributes attrs = {{"stride", list{s.stride.h, s.stride.w}},
                            {"padding", list{s.padding.top, s.padding.bottom, s.padding.left, s.padding.right}},
                            {"dilation", list{s.dilation.h, s.dilation.w}},
                            {"groups", s.groups},
                            {"accumulate", std::string(how == accumulate::exact ? "exact" : "fma_chain")}};
  const op_info& op = *find(op_names[static_cast<int>(p.way)]);
  call(ctx, op, in, std::vector{view(d, out)}, attrs);
  d.copy_to(out.buffer);
}

std::vector<float> values(const host_tensor& t) {
  std::vector<float> v;
  for (std::int64_t a = 0; a < t.shape[0]; ++a)
    for (std::int64_t b = 0; b < t.shape[1]; ++b)
      for (std::int64_t c = 0; c < t.shape[2]; ++c)
        for (std::int64_t d = 0; d < t.shape[3]; ++d) v.push_back(t.at(a, b, c, d));
  return v;
}

std::string text(const problem& p) {
  const geometry& s = p.at;
  char line[240];
  std::snprintf(line, sizeof line,
                "%s n %d groups %d c %d o %d image %dx%d kernel %dx%d stride %d,%d dilation %d,%d padding %d,%d,%d,%d",
                op_names[static_cast<int>(p.way)], static_cast<int>(s.n), static_cast<int>(s.groups),
                static_cast<int>(s.c), static_cast<int>(s.o), static_cast<int>(s.h), static_cast<int>(s.w),
                static_cast<int>(s.kh), static_cast<int>(s.kw), static_cast<int>(s.stride.h),
                static_cast<int>(s.stride.w), static_cast<int>(s.dilation.h), static_cast<int>(s.dilation.w),
                static_cast<int>(s.padding.top), static_cast<int>(s.padding.bottom), static_cast<int>(s.padding.left),
                static_cast<int>(s.padding.right));
  return line;
}

std::int64_t checked = 0;

void check(const std::vector<engine>& all, problem& p, const std::string& what) {
  const expected want = naive(p);
  checked += static_cast<std::int64_t>(want.exact.size());
  for (const engine& e : all) {
    for (const accumulate how : {accumulate::exact, accumulate::fma_chain}) {
      if (how == accumulate::fma_chain && e.first != tier::proved) continue;
      e.ctx->reset_statistics();
      run(*e.ctx, p, how);
      const std::vector<float>& right = how == accumulate::exact ? want.exact : want.chain;
      const std::vector<float> got = values(p.out());
      std::size_t at = 0;
      while (at < got.size() && bits(got[at]) == bits(right[at])) ++at;
      if (at < got.size()) {
        char line[120];
        std::snprintf(line, sizeof line, "element %zu is 0x%08x, expected 0x%08x", at, bits(got[at]), bits(right[at]));
        FAIL_CHECK(what << " " << text(p) << " " << (how == accumulate::exact ? "exact" : "fma_chain") << " on "
                        << e.name << ", first tier " << static_cast<int>(e.first) << ": " << line);
      }
      const auto untouched =
          std::count_if(p.out().buffer.begin(), p.out().buffer.end(), [](float x) { return bits(x) == bits(poison); });
      CHECK(untouched == static_cast<std::ptrdiff_t>(p.out().buffer.size() - got.size()));
      const statistics seen = e.ctx->read_statistics();
      CHECK(seen.elements[0] + seen.elements[1] + seen.elements[2] + seen.elements[3] ==
            static_cast<std::int64_t>(got.size()));
      if (how == accumulate::exact && e.first == tier::exact && e.ctx->where().kind == device_kind::cpu)
        CHECK(seen[tier::exact] == static_cast<std::int64_t>(got.size()));
    }
  }
}

constexpr direction every_direction[] = {direction::forward, direction::grad_input, direction::grad_weight};

}  // namespace

// Returns how many outputs were compared on each engine.
std::int64_t check_random_shapes(std::uint64_t seed, int rounds) {
  random_engine g(seed);
  const std::int64_t before = checked;
  const std::vector<engine> all[] = {engines(every_tier, 1), engines(every_tier, 2), engines(every_tier, 3)};
  for (int round = 0; round < rounds; ++round) {
    const auto what = static_cast<kind>(round / 3 % static_cast<int>(kind::count));
    const direction way = every_direction[round % 3];
    problem p;
    do {
      p = make_problem(way, any_geometry(g), what, g, true, one_in(g, 2));
    } while (p.out().count() == 0);
    // Infinities on one side only, among them some that padding must not meet.
    if ((what == kind::special || what == kind::all_special) && one_in(g, 2)) {
      host_tensor& tame = one_in(g, 2) ? p.kernel : way == direction::grad_input ? p.result : p.image;
      if (&tame != &p.out())
        for (float& x : tame.buffer) x = std::isfinite(x) ? x : 1.5f;
    }
    check(all[uniform(g, 0, 2)], p, "class " + std::to_string(static_cast<int>(what)));
  }
  return checked - before;
}

TEST_SUITE_BEGIN("portable");

TEST_CASE("conv2d and its gradients: random shapes, layouts and values") { CHECK(check_random_shapes(6, 90) > 10000); }
TEST_CASE("conv2d and its gradients: more random shapes, layouts and values [long]" *
          doctest::test_suite("portable values")) {
  CHECK(check_random_shapes(1, 900) > 100000);
}

TEST_CASE("conv2d and its gradients: nothing to add") {
  random_engine g(2);
  const std::vector<engine> all = engines({tier::proved, tier::exact}, 2);
  const auto each = [&](const geometry& s) {
    REQUIRE(s.valid());
    for (const direction way : every_direction) {
      problem p = make_problem(way, s, kind::all_special, g, false, true);
      if (p.out().count() != 0) check(all, p, "nothing");
    }
  };
  each({.n = 0, .c = 3, .o = 4, .h = 5, .w = 5, .kh = 3, .kw = 3});
  each({.n = 2, .c = 0, .o = 4, .h = 5, .w = 5, .kh = 3, .kw = 3});
  each({.n = 2, .c = 3, .o = 0, .h = 5, .w = 5, .kh = 3, .kw = 3});
  each({.n = 1, .c = 2, .o = 2, .h = 1, .w = 1});
  each({.n = 1, .c = 2, .o = 2, .h = 1, .w = 1, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}});
  // Image pixels under no window, windows and taps that see padding only.
  each({.n = 2, .c = 2, .o = 3, .h = 9, .w = 10, .kh = 2, .kw = 1, .stride = {4, 3}});
  each({.n = 1, .c = 2, .o = 3, .h = 3, .w = 2, .kh = 7, .kw = 5, .padding = {4, 5, 3, 6}});
  each({.n = 1, .c = 1, .o = 2, .h = 2, .w = 2, .kh = 2, .kw = 2, .dilation = {5, 6}, .padding = {6, 6, 7, 7}});
  each({.n = 1, .c = 2, .o = 2, .h = 0, .w = 3, .kh = 2, .kw = 2, .padding = {2, 2, 0, 0}});
}

TEST_CASE("conv2d: a stride that no step is made along may be any number") {
  context ctx;
  const float x = 2;
  const float w = 3;
  for (const std::int64_t huge : {std::int64_t{1} << 62, -(std::int64_t{1} << 62)}) {
    float out = 0;
    const const_tensor_view image(&x, dtype::f32, {1, 1, 1, 1}, {huge, huge, huge, huge});
    const const_tensor_view kernel(&w, dtype::f32, {1, 1, 1, 1}, {huge, huge, huge, huge});
    conv2d(ctx, image, kernel, tensor_view(&out, dtype::f32, {1, 1, 1, 1}, {huge, huge, huge, huge}),
           {.stride = {2, 2}, .padding = {1, 0, 1, 0}});
    CHECK(out == 0.0f);  // the window at (-1, -1)
    conv2d_backward_x(ctx, image, kernel, tensor_view(&out, dtype::f32, {1, 1, 1, 1}, {huge, huge, huge, huge}),
                      {.stride = {2, 2}});
    CHECK(out == 6.0f);
  }
}

// Wider than a block, more rows than one, several slices of terms, many phases.
TEST_CASE("conv2d and its gradients: several blocks") {
  random_engine g(3);
  const std::vector<engine> all[] = {engines({tier::proved}, 1), engines({tier::proved}, 3)};
  const geometry shapes[] = {
      {.n = 2, .c = 50, .o = 20, .h = 9, .w = 9, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}},
      {.n = 3, .c = 2, .o = 3, .h = 40, .w = 41, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}},
      {.n = 2, .c = 3, .o = 300, .h = 9, .w = 12, .kh = 1, .kw = 1},
      {.n = 2, .c = 3, .o = 8, .h = 30, .w = 32, .kh = 7, .kw = 7, .stride = {2, 2}, .padding = {3, 3, 3, 3}},
      {.n = 2, .groups = 40, .h = 17, .w = 33, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}},
      {.n = 3, .groups = 2, .c = 1, .o = 1, .h = 20, .w = 26, .kh = 3, .kw = 3, .stride = {2, 2}},
      {.n = 1, .c = 3, .o = 5, .h = 24, .w = 24, .kh = 4, .kw = 4, .stride = {4, 4}}};
  for (const geometry& s : shapes) {
    for (const direction way : every_direction) {
      for (const kind what : {kind::normal, kind::special, kind::ties}) {
        problem p = make_problem(way, s, what, g, what == kind::ties);
        check(all[static_cast<int>(what) % 2], p, "blocks");
      }
    }
  }
}

// Against the oracle; likewise several blocks, and slices of terms.
TEST_CASE("conv2d and its gradients: several blocks, in other formats") {
  std::vector<test::engine> all = test::engines();
  const attributes attrs{{"padding", std::vector<std::int64_t>{1}}};
  const auto with = [&](const char* name, std::int64_t h, std::int64_t w) {
    attributes more = attrs;
    more.push_back({name, std::vector<std::int64_t>{h, w}});
    return more;
  };
  struct one_call {
    std::string op;
    std::vector<reference::shape_list> shapes;
    attributes attrs;
  };
  const one_call calls[] = {{"conv2d", {{1, 50, 7, 9}, {70, 50, 3, 3}, {70}}, attrs},
                            {"conv2d_grad_input", {{1, 70, 7, 9}, {70, 50, 3, 3}}, with("size", 7, 9)},
                            {"conv2d_grad_weight", {{2, 60, 15, 16}, {2, 4, 15, 16}}, with("kernel", 3, 3)}};
  using enum reference::sample_class;
  for (const auto& [type, c] :
       {std::pair{dtype::f16, normal_range}, {dtype::bf16, ties}, {dtype::f64, normal_range}, {dtype::f64, ties}}) {
    for (const one_call& call : calls) {
      const std::vector<reference::array> in = reference::fill_inputs(call.op, c, call.shapes, call.attrs, 5, 1, type);
      const std::vector<reference::array> expected = reference::evaluate_all(call.op, in, call.attrs);
      for (test::engine& e : all) {
        const std::string text = test::difference(test::run(*e.ctx, call.op, in, expected, call.attrs), expected);
        CHECK_MESSAGE(text.empty(),
                      call.op << " of " << std::string(name_of(type)) << " on " << e.name << ": " << text);
      }
    }
  }
}

TEST_CASE("conv2d: a skipped tap is no product with zero") {
  const std::vector<engine> all = engines({tier::proved}, 1);
  // Infinite weights over padding: exact values where every tap that is present is finite.
  for (const float weight : {inf, from_bits(0x7fc00001u)}) {
    problem p;
    p.at = {.h = 3, .w = 3, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}};
    p.image = row_major_tensor({1, 1, 3, 3});
    p.kernel = row_major_tensor({1, 1, 3, 3});
    p.result = row_major_tensor({1, 1, 3, 3});
    std::fill(p.image.buffer.begin(), p.image.buffer.end(), 1.0f);
    std::fill(p.kernel.buffer.begin(), p.kernel.buffer.end(), 0.5f);
    p.kernel.buffer[0] = weight;
    check(all, p, "infinite weight");
    CHECK(bits(p.result.buffer[0]) == bits(2.0f));  // the corner, of the last run
  }
  // The chain reaches -0 by underflow, and then meets padding with a positive weight: fma(0, w, -0) would be +0.
  problem p;
  p.at = {.h = 1, .w = 1, .kh = 1, .kw = 2, .padding = {0, 0, 0, 1}};
  p.image = row_major_tensor({1, 1, 1, 1});
  p.kernel = row_major_tensor({1, 1, 1, 2});
  p.result = row_major_tensor({1, 1, 1, 1});
  p.image.buffer = {0x1p-80f};
  p.kernel.buffer = {-0x1p-80f, 1.0f};
  check(all, p, "minus zero");
  run(*all[0].ctx, p, accumulate::fma_chain);
  CHECK(bits(p.result.buffer[0]) == 0x80000000u);
}

TEST_CASE("conv2d and its input gradient: a sample's bits do not depend on the batch") {
  random_engine g(4);
  const std::vector<engine> all = engines({tier::proved}, 3);
  const geometry s = {.n = 7, .c = 5, .o = 9, .h = 11, .w = 13, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}};
  for (const direction way : {direction::forward, direction::grad_input}) {
    for (const accumulate how : {accumulate::exact, accumulate::fma_chain}) {
      for (const engine& e : all) {
        problem batch = make_problem(way, s, kind::normal, g, false);
        run(*e.ctx, batch, how);
        const std::vector<float> together = values(batch.out());
        for (std::int64_t i = 0; i < s.n; ++i) {
          geometry one = s;
          one.n = 1;
          problem alone = make_problem(way, one, kind::normal, g, false);
          host_tensor& to = way == direction::forward ? alone.image : alone.result;
          const host_tensor& from = way == direction::forward ? batch.image : batch.result;
          std::copy_n(from.buffer.begin() + i * to.count(), to.count(), to.buffer.begin());
          alone.kernel = batch.kernel;
          run(*e.ctx, alone, how);
          const std::vector<float> own = values(alone.out());
          CHECK_MESSAGE(
              std::equal(own.begin(), own.end(), together.begin() + i * static_cast<std::ptrdiff_t>(own.size()),
                         [](float a, float b) { return bits(a) == bits(b); }),
              text(batch) << " on " << e.name << ", sample " << i);
        }
      }
    }
  }
}

TEST_CASE("conv2d_grad_weight: the order of the samples changes no bit") {
  random_engine g(5);
  const std::vector<engine> all = engines(every_tier, 2);
  const geometry s = {.n = 9, .c = 4, .o = 6, .h = 10, .w = 9, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}};
  for (const kind what : {kind::normal, kind::wide, kind::ties}) {
    problem p = make_problem(direction::grad_weight, s, what, g, false);
    problem q = p;
    std::vector<std::int64_t> order = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    std::shuffle(order.begin(), order.end(), g);
    const auto permute = [&](const host_tensor& from, host_tensor& to) {
      const std::int64_t size = from.count() / s.n;
      for (std::int64_t i = 0; i < s.n; ++i)
        std::copy_n(from.buffer.begin() + order[static_cast<std::size_t>(i)] * size, size,
                    to.buffer.begin() + i * size);
    };
    permute(p.image, q.image);
    permute(p.result, q.result);
    for (const engine& e : all) {
      run(*e.ctx, p, accumulate::exact);
      run(*e.ctx, q, accumulate::exact);
      const std::vector<float> a = values(p.out()), b = values(q.out());
      CHECK_MESSAGE(std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) { return bits(x) == bits(y); }),
                    e.name << " first tier " << static_cast<int>(e.first));
    }
  }
}

TEST_SUITE_END();
