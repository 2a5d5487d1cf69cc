// Pooling through the public API: known answers, and random geometries, layouts and values against the oracle, on every
// instruction set and tier.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/evaluate.hpp"
#include "tests/class_engines.hpp"
#include "tests/placed_tensor.hpp"

namespace {

using namespace repdl;
using reference::array;
using reference::shape_list;
using tests::layout;
using tests::tensor;

std::mt19937_64 engine(97531);

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
float from_bits(std::uint32_t b) { return std::bit_cast<float>(b); }
constexpr std::uint32_t nan_bits = 0x7fc00000u;

std::vector<std::uint32_t> patterns(const std::vector<float>& v) {
  std::vector<std::uint32_t> p;
  for (const float x : v) p.push_back(bits(x));
  return p;
}

const_tensor_view plane(const std::vector<float>& v, std::int64_t h, std::int64_t w) {
  return {v.data(), dtype::f32, {1, 1, h, w}};
}
tensor_view plane(std::vector<float>& v, std::int64_t h, std::int64_t w) {
  return {v.data(), dtype::f32, {1, 1, h, w}};
}

TEST_CASE("max_pool2d: the order of the contract, and its gradient goes to the first winner") {
  context ctx({.threads = 1});
  const float nan1 = from_bits(0xff812345u);
  const float nan2 = from_bits(0x7fc00001u);
  const std::vector<float> x = {-0.0f, 0.0f,  0.0f,  -0.0f,     // +0 wins, its first place
                                1.0f,  nan1,  nan2,  INFINITY,  // the first NaN
                                -3.0f, -3.0f, -4.0f, -3.0f};    // the first of equals
  const std::vector<float> g = {1.0f, 2.0f, -0.0f};
  std::vector<float> out(3);
  std::vector<float> grad(12, 7.0f);
  const max_pool2d_options o{.kernel = {1, 4}};
  max_pool2d(ctx, plane(x, 3, 4), plane(out, 3, 1), o);
  CHECK(patterns(out) == std::vector<std::uint32_t>{0, nan_bits, bits(-3.0f)});
  max_pool2d_backward(ctx, plane(g, 3, 1), plane(x, 3, 4), plane(grad, 3, 4), o);
  // An exact zero is +0, whatever the sign of g.
  CHECK(patterns(grad) == patterns({0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0}));

  // One pixel wins two windows: the sum is exact, M + M - M would not be in binary32.
  const std::vector<float> row = {1, 5, 2, 3};
  const std::vector<float> huge = {0x1p127f, 0x1p127f, 1};
  std::vector<float> grad_row(4);
  max_pool2d_backward(ctx, plane(huge, 1, 3), plane(row, 1, 4), plane(grad_row, 1, 4),
                      {.kernel = {1, 2}, .stride = pair{1, 1}});
  CHECK(patterns(grad_row) == patterns({0, INFINITY, 0, 1}));
}

TEST_CASE("avg_pool2d: one rounding, ties to even, counts of present taps") {
  context ctx({.threads = 1});
  // (1 + 1 + 1 + (1 + 2^-21)) / 4 = 1 + 2^-23; with 2^-22 instead the mean is 1 + 2^-24, a midpoint.
  const std::vector<float> x = {1, 1, 1, 1 + 0x1p-22f};
  std::vector<float> out(1);
  avg_pool2d(ctx, plane(x, 2, 2), plane(out, 1, 1), {.kernel = {2, 2}});
  CHECK(patterns(out) == patterns({1.0f}));
  const std::vector<float> y = {1 + 0x1p-23f, 1, 1, 1 + 0x1p-21f};
  avg_pool2d(ctx, plane(y, 2, 2), plane(out, 1, 1), {.kernel = {2, 2}});
  CHECK(patterns(out) == patterns({1 + 0x1p-23f}));

  // Windows of one, two and no present taps.
  const std::vector<float> one = {3};
  const padding2d padding{.top = 0, .bottom = 0, .left = 2, .right = 2};
  std::vector<float> row(4);
  avg_pool2d(ctx, plane(one, 1, 1), plane(row, 1, 4), {.kernel = {1, 2}, .stride = pair{1, 1}, .padding = padding});
  CHECK(patterns(row) == std::vector<std::uint32_t>{nan_bits, bits(3.0f), bits(3.0f), nan_bits});
  avg_pool2d(ctx, plane(one, 1, 1), plane(row, 1, 4),
             {.kernel = {1, 2}, .stride = pair{1, 1}, .padding = padding, .count_include_pad = true});
  CHECK(patterns(row) == patterns({0, 1.5f, 1.5f, 0}));

  // Denominators 1, 2, 1: 1/2 + 1 each; 2^-149 / 2 is a tie and alone rounds to 0.
  const std::vector<float> g = {1, 1, 1};
  std::vector<float> grad(2);
  avg_pool2d_backward(ctx, plane(g, 1, 3), plane(grad, 1, 2),
                      {.kernel = {1, 2}, .stride = pair{1, 1}, .padding = {0, 0, 1, 1}});
  CHECK(patterns(grad) == patterns({1.5f, 1.5f}));
  const std::vector<float> tiny = {0, 0x1p-149f, 0};
  avg_pool2d_backward(ctx, plane(tiny, 1, 3), plane(grad, 1, 2),
                      {.kernel = {1, 2}, .stride = pair{1, 1}, .padding = {0, 0, 1, 1}});
  CHECK(patterns(grad) == patterns({0, 0}));
}

// ------------------------------------------------------------------------------------------------- random geometries

float pick(int k) {
  const auto b = static_cast<std::uint32_t>(engine());
  switch (k) {
    case 0:
      return from_bits(b);
    case 1:
      return static_cast<float>(static_cast<int>(b % 17) - 8);
    case 2:
      return std::ldexp(static_cast<float>(static_cast<int>(b % 41) - 20), -149);
    case 3:
      return from_bits((b & 0x807fffffu) | (static_cast<std::uint32_t>(252 + engine() % 3) << 23));
    case 4: {
      constexpr std::uint32_t all[] = {0,           0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xff812345u,
                                       0x7f7fffffu, 0xff7fffffu, 1u,          0x80000001u, 0x3f800000u, 0xbf800000u};
      return from_bits(all[b % 12]);
    }
    case 5:
      return b % 3 != 0 ? 0.0f : -0.0f;
    case 6:
      return std::ldexp(static_cast<float>(static_cast<int>(b >> 8) - (1 << 23)), static_cast<int>(engine() % 60) - 50);
    case 7:
      return engine() % 40 == 0 ? pick(4) : from_bits((b & 0x80ffffffu) | 0x3f000000u);
    default:
      return from_bits((b & 0x80ffffffu) | 0x3f000000u);
  }
}

array values(const shape_list& shape) {
  array a(dtype::f32, shape);
  const auto k = static_cast<int>(engine() % 10);
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.count()); ++i) {
    a.set(i, bits(pick(k < 9 ? k : static_cast<int>(engine() % 9))));
  }
  return a;
}

std::int64_t one_of(std::initializer_list<std::int64_t> all) { return all.begin()[engine() % all.size()]; }

struct geometry {
  std::int64_t n, c, h, w, oh, ow;
  max_pool2d_options max;
  avg_pool2d_options avg;

  bool make() {
    const bool wide = engine() % 12 == 0;
    n = one_of({1, 2});
    c = one_of({1, 2, 3});
    h = wide ? 2 : one_of({1, 2, 3, 5, 8, 13, 40});
    w = wide ? one_of({700, 1300}) : one_of({1, 2, 3, 5, 8, 17, 33});
    const pair kernel{one_of({1, 2, 2, 3, 3, 5, 7}),
                      wide && engine() % 2 == 0 ? one_of({3, 40, 600}) : one_of({1, 2, 2, 3, 3, 5, 7})};
    const pair stride{one_of({1, 1, 2, 2, 3, 7}), one_of({1, 1, 2, 2, 3, 7})};
    pair dilation{1, 1};
    if (engine() % 3 == 0) dilation = {one_of({1, 2, 3}), one_of({1, 2, 3})};
    const auto pad = [&](std::int64_t k) {
      return engine() % 2 == 0 ? 0 : static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(k));
    };
    const padding2d padding{pad(kernel.h), pad(kernel.h), pad(kernel.w), pad(kernel.w)};
    max = {kernel, stride, padding, dilation};
    avg = {kernel, stride, padding, engine() % 2 == 0};
    return true;
  }
  // Sizes of the result; false if there is none, or a maximum over nothing.
  bool fit(bool maximum) {
    const pair d = maximum ? max.dilation : pair{1, 1};
    const auto size = [&](std::int64_t image, std::int64_t before, std::int64_t after, std::int64_t k,
                          std::int64_t step, std::int64_t spread) {
      const std::int64_t rest = image + before + after - spread * (k - 1) - 1;
      if (rest < 0) return std::int64_t{0};
      const std::int64_t count = rest / step + 1;
      for (std::int64_t y = 0; y < count && maximum; ++y) {
        bool present = false;
        for (std::int64_t r = 0; r < k; ++r) {
          const std::int64_t i = y * step + r * spread - before;
          present = present || (i >= 0 && i < image);
        }
        if (!present) return std::int64_t{0};
      }
      return count;
    };
    const padding2d& p = max.padding;
    oh = size(h, p.top, p.bottom, max.kernel.h, max.stride->h, d.h);
    ow = size(w, p.left, p.right, max.kernel.w, max.stride->w, d.w);
    return oh > 0 && ow > 0;
  }
  attributes attrs(bool maximum, bool with_size) const {
    const padding2d& p = max.padding;
    const auto list = [](const char* name, std::vector<std::int64_t> v) { return attribute{name, std::move(v)}; };
    attributes a{list("kernel", {max.kernel.h, max.kernel.w}), list("stride", {max.stride->h, max.stride->w}),
                 list("padding", {p.top, p.bottom, p.left, p.right})};
    if (maximum) {
      a.push_back(list("dilation", {max.dilation.h, max.dilation.w}));
    } else {
      a.push_back({"count_include_pad", avg.count_include_pad});
    }
    if (with_size) a.push_back(list("size", {h, w}));
    return a;
  }
};

TEST_CASE("pooling: random geometries, layouts and values against the oracle, every tier") {
  std::vector<test::engine> engines = test::engines();
  for (const isa_info& isa : instruction_sets()) {
    if (!isa.available) continue;
    engines.push_back(
        {std::string(isa.name) + " exact",
         std::make_unique<context>(context_options{.threads = 3, .isa = isa.name, .first_tier = tier::exact})});
  }
  for (int trial = 0; trial < 400; ++trial) {
    const bool maximum = trial % 4 < 2;
    const bool backward = trial % 2 != 0;
    geometry t{};
    do t.make();
    while (!t.fit(maximum));
    const shape_list image{t.n, t.c, t.h, t.w};
    const shape_list result{t.n, t.c, t.oh, t.ow};
    std::vector<array> in;
    if (backward) in.push_back(values(result));
    if (maximum || !backward) in.push_back(values(image));
    constexpr const char* names[] = {"max_pool2d", "max_pool2d_backward", "avg_pool2d", "avg_pool2d_backward"};
    const array want = reference::evaluate(names[trial % 4], in, t.attrs(maximum, !maximum && backward));
    const layout in_layout = tests::layouts[engine() % std::size(tests::layouts)];
    const layout out_layout = tests::layouts[engine() % std::size(tests::layouts)];
    for (const test::engine& e : engines) {
      const tensor first(*e.ctx, in[0], in_layout);
      tensor out(*e.ctx, dtype::f32, backward ? image : result, out_layout);
      if (maximum && backward) {
        const tensor second(*e.ctx, in[1], out_layout);
        max_pool2d_backward(*e.ctx, first.view(), second.view(), out.view(), t.max);
      } else if (maximum) {
        max_pool2d(*e.ctx, first.view(), out.view(), t.max);
      } else if (backward) {
        avg_pool2d_backward(*e.ctx, first.view(), out.view(), t.avg);
      } else {
        avg_pool2d(*e.ctx, first.view(), out.view(), t.avg);
      }
      CHECK_MESSAGE(out.get() == want, names[trial % 4], " ", e.name, " trial ", trial, " image ", t.h, "x", t.w,
                    " kernel ", t.max.kernel.h, "x", t.max.kernel.w, " stride ", t.max.stride->h, ",", t.max.stride->w);
    }
  }
}

TEST_CASE("pooling: channels last, many threads, and an empty batch") {
  const shape_list shape{2, 5, 23, 19};
  const array x = values(shape);
  const max_pool2d_options o{.kernel = {3, 3}, .stride = pair{2, 2}, .padding = {1, 1, 1, 1}};
  const attributes attrs{{"kernel", std::vector<std::int64_t>{3, 3}},
                         {"stride", std::vector<std::int64_t>{2, 2}},
                         {"padding", std::vector<std::int64_t>{1, 1, 1, 1}}};
  const array want = reference::evaluate("max_pool2d", {x}, attrs);
  std::vector<float> memory(static_cast<std::size_t>(x.count()));
  for (std::int64_t i = 0; i < x.count(); ++i) {
    const std::int64_t w = i % 19, h = i / 19 % 23, c = i / (19 * 23) % 5, n = i / (19 * 23 * 5);
    memory[static_cast<std::size_t>(((n * 23 + h) * 19 + w) * 5 + c)] =
        from_bits(static_cast<std::uint32_t>(x.get(static_cast<std::size_t>(i))));
  }
  for (const int threads : {1, 2, 7}) {
    context ctx({.threads = threads});
    std::vector<float> out(static_cast<std::size_t>(want.count()));
    max_pool2d(ctx, {memory.data(), dtype::f32, {2, 5, 23, 19}, {23 * 19 * 5, 1, 19 * 5, 5}},
               {out.data(), dtype::f32, {2, 5, 12, 10}}, o);
    CHECK(patterns(out) == want.patterns());
    max_pool2d(ctx, {memory.data(), dtype::f32, {0, 5, 23, 19}}, {out.data(), dtype::f32, {0, 5, 12, 10}}, o);
  }
}

}  // namespace
