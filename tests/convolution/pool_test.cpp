// Pooling through the public API: known answers, and random geometries, layouts and values against the oracle, on every
// instruction set and tier.
#include <doctest/doctest.h>
#include <gmpxx.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/num/quotient_sum.hpp"
#include "reference/covering.hpp"
#include "reference/evaluate.hpp"
#include "reference/numbers/number.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/class_engines.hpp"
#include "tests/helpers/placed_tensor.hpp"
#include "tests/helpers/settings.hpp"

namespace {

using namespace repdl;
using reference::array;
using reference::shape_list;
using tests::bits;
using tests::layout;
using tests::placed_tensor;

std::mt19937_64 engine(97531);

float from_bits(std::uint32_t b) { return std::bit_cast<float>(b); }
constexpr std::uint32_t nan_bits = 0x7fc00000u;

std::vector<std::uint32_t> patterns(const std::vector<float>& v) {
  std::vector<std::uint32_t> p;
  for (const float x : v) p.push_back(bits(x));
  return p;
}

struct extent {
  std::int64_t h = 1, w = 1;
  operator sizes() const { return {h, w}; }
};
struct edges {
  std::int64_t top, bottom, left, right;
  operator sizes() const { return {top, bottom, left, right}; }
};

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
                      {.kernel = {1, 2}, .stride = {1, 1}});
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
  const edges padding{.top = 0, .bottom = 0, .left = 2, .right = 2};
  std::vector<float> row(4);
  avg_pool2d(ctx, plane(one, 1, 1), plane(row, 1, 4), {.kernel = {1, 2}, .stride = {1, 1}, .padding = padding});
  CHECK(patterns(row) == std::vector<std::uint32_t>{nan_bits, bits(3.0f), bits(3.0f), nan_bits});
  avg_pool2d(ctx, plane(one, 1, 1), plane(row, 1, 4),
             {.kernel = {1, 2}, .stride = {1, 1}, .padding = padding, .count_include_pad = true});
  CHECK(patterns(row) == patterns({0, 1.5f, 1.5f, 0}));

  // Denominators 1, 2, 1: 1/2 + 1 each; 2^-149 / 2 is a tie and alone rounds to 0.
  const std::vector<float> g = {1, 1, 1};
  std::vector<float> grad(2);
  avg_pool2d_backward(ctx, plane(g, 1, 3), plane(grad, 1, 2),
                      {.kernel = {1, 2}, .stride = {1, 1}, .padding = {0, 0, 1, 1}});
  CHECK(patterns(grad) == patterns({1.5f, 1.5f}));
  const std::vector<float> tiny = {0, 0x1p-149f, 0};
  avg_pool2d_backward(ctx, plane(tiny, 1, 3), plane(grad, 1, 2),
                      {.kernel = {1, 2}, .stride = {1, 1}, .padding = {0, 0, 1, 1}});
  CHECK(patterns(grad) == patterns({0, 0}));
}

TEST_CASE("pooling with ceil_mode: a last window over the padded image, and what averages divide by") {
  context ctx({.threads = 1});
  const std::vector<float> x = {1, 2, 3, 4, 5};
  const edges sides{.top = 0, .bottom = 0, .left = 1, .right = 1};
  // Windows of 3 from -1, 2 and 5, the latter behind the image: left out. Of 7 padded columns 6 are under the others.
  std::vector<float> two(2);
  max_pool2d(ctx, plane(x, 1, 5), plane(two, 1, 2), {.kernel = {1, 3}, .padding = sides, .ceil_mode = true});
  CHECK(patterns(two) == patterns({2, 5}));
  // Windows of 4 from -1 and 2: the second one has 3 taps on the image and 1 on padding.
  avg_pool2d(ctx, plane(x, 1, 5), plane(two, 1, 2),
             {.kernel = {1, 4}, .stride = {1, 3}, .padding = sides, .count_include_pad = true, .ceil_mode = true});
  CHECK(patterns(two) == patterns({1.5f, 3}));
  // Windows of 4 from -1, 1 and 3: the last has 2 on the image, 1 on padding, 1 on nothing.
  std::vector<float> three(3);
  const avg_pool2d_options counted{
      .kernel = {1, 4}, .stride = {1, 2}, .padding = sides, .count_include_pad = true, .ceil_mode = true};
  avg_pool2d(ctx, plane(x, 1, 5), plane(three, 1, 3), counted);
  CHECK(patterns(three) == patterns({1.5f, 3.5f, 3}));
  avg_pool2d_options present = counted;
  present.count_include_pad = false;
  avg_pool2d(ctx, plane(x, 1, 5), plane(three, 1, 3), present);
  CHECK(patterns(three) == patterns({2, 3.5f, 4.5f}));
  // g / 4, / 4, / 3: the middle pixels are in two windows each.
  std::vector<float> grad(5);
  const std::vector<float> g = {4, 8, 9};
  avg_pool2d_backward(ctx, plane(g, 1, 3), plane(grad, 1, 5), counted);
  CHECK(patterns(grad) == patterns({1, 3, 3, 5, 5}));
  // Without ceil_mode a window larger than the padded image fits nowhere; with it as long as less than a stride is beyond.
  std::vector<float> one(1);
  avg_pool2d(ctx, plane(x, 1, 5), plane(one, 1, 1), {.kernel = {1, 6}, .stride = {1, 2}, .ceil_mode = true});
  CHECK(patterns(one) == patterns({3}));
  CHECK_THROWS_AS(
      avg_pool2d(ctx, plane(x, 1, 5), plane(one, 1, 1), {.kernel = {1, 7}, .stride = {1, 2}, .ceil_mode = true}),
      error);
}

TEST_CASE("avg_pool2d: a divisor that is given, of either sign") {
  context ctx({.threads = 1});
  const std::vector<float> x = {1, 2, -3, 0, -0.0f, 0x1p-149f};
  std::vector<float> out(3), grad(6);
  avg_pool2d(ctx, plane(x, 1, 6), plane(out, 1, 3), {.kernel = {1, 2}, .divisor_override = -4});
  // An exact zero is +0, what underflows keeps its sign.
  CHECK(patterns(out) == patterns({-0.75f, 0.75f, -0.0f}));
  avg_pool2d(ctx, plane(x, 1, 6), plane(out, 1, 3), {.kernel = {1, 2}, .divisor_override = 2147483647});
  CHECK(patterns(out) == patterns({static_cast<float>(3.0 / 2147483647), static_cast<float>(-3.0 / 2147483647), 0}));
  const std::vector<float> g = {3, -0.0f, INFINITY};
  avg_pool2d_backward(ctx, plane(g, 1, 3), plane(grad, 1, 6), {.kernel = {1, 2}, .divisor_override = -2});
  CHECK(patterns(grad) == patterns({-1.5f, -1.5f, 0, 0, -INFINITY, -INFINITY}));
  for (const std::int64_t d : {std::int64_t{1} << 31, -(std::int64_t{1} << 31), INT64_MIN}) {
    CHECK_THROWS_AS(avg_pool2d(ctx, plane(x, 1, 6), plane(out, 1, 3), {.kernel = {1, 2}, .divisor_override = d}),
                    error);
  }
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

// Of another format: any pattern, subnormal and large numbers, or the nearest to those of binary32; of binary64 with more bits.
std::uint64_t pick(dtype t, int k) {
  const reference::format& f = reference::format_of(t);
  const std::uint64_t b = engine(), sign = (b >> 63) != 0 ? f.sign_bit() : 0;
  if (t == dtype::f32) return bits(pick(k));
  if (k == 0) return t == dtype::f64 ? b : b & 0xffff;
  if (k == 2) return b % 20 | sign;
  if (k == 3) return (f.largest() - b % (std::uint64_t{4} << (f.precision - 1))) | sign;
  if (k == 4 && b % 3 == 0) return f.largest() | sign;
  const std::uint64_t x = reference::convert(dtype::f32, t, bits(pick(k)));
  const bool longer = t == dtype::f64 && k >= 6 && reference::widen(t, x).kind == reference::number_kind::finite;
  return longer ? x | (b & ((std::uint64_t{1} << 29) - 1)) : x;
}

array values(const shape_list& shape, dtype t) {
  array a(t, shape);
  const auto k = static_cast<int>(engine() % 10);
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.count()); ++i) {
    a.set(i, pick(t, k < 9 ? k : static_cast<int>(engine() % 9)));
  }
  return a;
}

std::int64_t one_of(std::initializer_list<std::int64_t> all) { return all.begin()[engine() % all.size()]; }

struct geometry {
  std::int64_t n, c, h, w, oh, ow;
  extent kernel, stride, dilation;
  edges padding;
  max_pool2d_options max;
  avg_pool2d_options avg;

  bool make() {
    const bool wide = engine() % 12 == 0;
    n = one_of({1, 2});
    c = one_of({1, 2, 3});
    h = wide ? 2 : one_of({1, 2, 3, 5, 8, 13, 40});
    w = wide ? one_of({700, 1300}) : one_of({1, 2, 3, 5, 8, 17, 33});
    kernel = {one_of({1, 2, 2, 3, 3, 5, 7}),
              wide && engine() % 2 == 0 ? one_of({3, 40, 600}) : one_of({1, 2, 2, 3, 3, 5, 7})};
    stride = {one_of({1, 1, 2, 2, 3, 7}), one_of({1, 1, 2, 2, 3, 7})};
    dilation = {1, 1};
    if (engine() % 3 == 0) dilation = {one_of({1, 2, 3}), one_of({1, 2, 3})};
    const auto pad = [&](std::int64_t k) {
      return engine() % 2 == 0 ? 0 : static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(k));
    };
    padding = {pad(kernel.h), pad(kernel.h), pad(kernel.w), pad(kernel.w)};
    const bool ceil_mode = engine() % 3 == 0;
    max = {kernel, stride, padding, dilation, ceil_mode};
    avg = {kernel,    stride,
           padding,   engine() % 2 == 0,
           ceil_mode, engine() % 4 == 0 ? one_of({1, -1, 5, 6, -9, 1 << 30}) : 0};
    return true;
  }
  // Sizes of the result; false if there is none, or a maximum over nothing.
  bool fit(bool maximum) {
    const extent d = maximum ? dilation : extent{1, 1};
    const auto size = [&](std::int64_t image, std::int64_t before, std::int64_t after, std::int64_t k,
                          std::int64_t step, std::int64_t spread) {
      const std::int64_t rest = image + before + after - spread * (k - 1) - 1;
      if (rest < 0 && (!max.ceil_mode || rest <= -step)) return std::int64_t{0};
      std::int64_t count = rest / step + 1;
      if (max.ceil_mode) {
        for (count = 1; (count - 1) * step < rest;) ++count;
        if ((count - 1) * step >= before + image) --count;
      }
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
    const edges& p = padding;
    oh = size(h, p.top, p.bottom, kernel.h, stride.h, d.h);
    ow = size(w, p.left, p.right, kernel.w, stride.w, d.w);
    return oh > 0 && ow > 0;
  }
  attributes attrs(bool maximum, bool with_size) const {
    const edges& p = padding;
    const auto list = [](const char* name, std::vector<std::int64_t> v) { return attribute{name, std::move(v)}; };
    attributes a{list("kernel", {kernel.h, kernel.w}), list("stride", {stride.h, stride.w}),
                 list("padding", {p.top, p.bottom, p.left, p.right})};
    if (maximum) {
      a.push_back(list("dilation", {dilation.h, dilation.w}));
    } else {
      a.push_back({"count_include_pad", avg.count_include_pad});
      a.push_back({"divisor_override", avg.divisor_override});
    }
    a.push_back({"ceil_mode", max.ceil_mode});
    if (with_size) a.push_back(list("size", {h, w}));
    return a;
  }
};

TEST_CASE("pooling: random geometries, layouts and values against the oracle, every tier" *
          doctest::test_suite("portable values")) {
  std::vector<test::engine> engines = test::engines();
  for (const isa_info& isa : instruction_sets()) {
    if (!isa.available) continue;
    engines.push_back(
        {std::string(isa.name) + " exact",
         std::make_unique<context>(context_options{.threads = 3, .isa = isa.name, .first_tier = tier::exact})});
  }
  const std::string names[] = {"max_pool2d",
                               "max_pool2d_backward",
                               "avg_pool2d",
                               "avg_pool2d_backward",
                               "max_pool2d_with_indices",
                               "adaptive_max_pool2d",
                               "adaptive_max_pool2d_with_indices",
                               "adaptive_max_pool2d_backward",
                               "adaptive_avg_pool2d",
                               "adaptive_avg_pool2d_backward"};
  constexpr int operations = static_cast<int>(std::size(names));
  reference::covering settings(3);
  for (int trial = 0; trial < 90 * operations; ++trial) {
    const int which = trial % operations;
    const std::string& op = names[which];
    const dtype type =
        std::array{dtype::f32, dtype::f16, dtype::bf16, dtype::f64}[static_cast<std::size_t>(trial / operations % 4)];
    const bool maximum = op.find("max") != std::string::npos, backward = op.ends_with("backward"),
               adaptive = op.starts_with("adaptive");
    geometry t{};
    do t.make();
    while (!t.fit(maximum));
    if (adaptive) {
      t.oh = one_of({1, 2, 3, 4, 7, 13});
      t.ow = one_of({1, 2, 3, 4, 7, 33});
    }
    const shape_list image{t.n, t.c, t.h, t.w}, result{t.n, t.c, t.oh, t.ow};
    std::vector<array> in;
    if (backward) in.push_back(values(result, type));
    if (maximum || !backward) in.push_back(values(image, type));
    attributes attrs;
    if (!adaptive) {
      attrs = t.attrs(maximum, !maximum && backward);
    } else if (!maximum || !backward) {
      const std::int64_t h = backward ? t.h : t.oh, w = backward ? t.w : t.ow;
      attrs = {{"size", std::vector<std::int64_t>{h, w}}};
    }
    const std::vector<array> want = reference::evaluate_all(op, in, attrs);
    const layout in_layout = tests::layouts[engine() % std::size(tests::layouts)];
    const layout out_layout = tests::layouts[engine() % std::size(tests::layouts)];
    int setting = 0;
    for (const test::engine& e : engines) {
      if (!settings.takes(setting++, {operations * static_cast<int>(in_layout) + which,
                                      operations * static_cast<int>(out_layout) + which}))
        continue;
      std::vector<placed_tensor> placed, out;
      std::vector<const_tensor_view> views;
      std::vector<tensor_view> to;
      for (const array& a : in) placed.emplace_back(*e.ctx, a, placed.empty() ? in_layout : out_layout);
      for (placed_tensor& v : placed) views.push_back(v.view());
      for (const array& a : want) out.emplace_back(*e.ctx, a.type, a.shape, out.empty() ? out_layout : in_layout);
      for (placed_tensor& v : out) to.push_back(v.view());
      call(*e.ctx, *find(op), views, to, attrs);
      for (std::size_t k = 0; k < want.size(); ++k) {
        CHECK_MESSAGE(out[k].get() == want[k], op, " ", name_of(type), " ", e.name, " trial ", trial, " output ", k,
                      " image ", t.h, "x", t.w, " result ", t.oh, "x", t.ow, " kernel ", t.kernel.h, "x", t.kernel.w,
                      " stride ", t.stride.h, ",", t.stride.w);
      }
    }
  }
}

TEST_CASE("adaptive pooling: known answers") {
  context ctx({.threads = 1});
  const std::vector<float> x = {1, 2, 6, -4, -0.0f};  // windows of 5 in 3: [0, 2), [1, 4), [3, 5)
  std::vector<float> three(3), five(5), ten(10);
  std::vector<std::int64_t> where(3);
  const tensor_view indices(where.data(), dtype::i64, {1, 1, 1, 3});
  adaptive_avg_pool2d(ctx, plane(x, 1, 5), plane(three, 1, 3), {.size = {1, 3}});
  CHECK(patterns(three) == patterns({1.5f, 4 / 3.0f, -2}));
  adaptive_max_pool2d_with_indices(ctx, plane(x, 1, 5), plane(three, 1, 3), indices, {.size = {1, 3}});
  CHECK(patterns(three) == patterns({2, 6, -0.0f}));
  CHECK(where == std::vector<std::int64_t>{1, 2, 4});
  // The second element is in two windows and wins one; g / 2 + g / 3 is rounded once.
  const std::vector<float> g = {4, 9, 8};
  adaptive_max_pool2d_backward(ctx, plane(g, 1, 3), plane(x, 1, 5), plane(five, 1, 5));
  CHECK(patterns(five) == patterns({0, 4, 9, 0, 8}));
  adaptive_avg_pool2d_backward(ctx, plane(g, 1, 3), plane(five, 1, 5));
  CHECK(patterns(five) == patterns({2, 5, 3, 7, 4}));
  // More windows than elements: each holds one or two.
  adaptive_avg_pool2d(ctx, plane(x, 1, 5), plane(ten, 1, 10), {.size = {1, 10}});
  CHECK(patterns(ten) == patterns({1, 1, 2, 2, 6, 6, -4, -4, 0, 0}));
  // Nothing: the mean is NaN, a greatest element is not there; windows that are not there give nothing.
  const const_tensor_view nothing(x.data(), dtype::f32, {1, 1, 0, 5});
  adaptive_avg_pool2d(ctx, nothing, plane(three, 1, 3), {.size = {1, 3}});
  CHECK(patterns(three) == std::vector<std::uint32_t>(3, nan_bits));
  CHECK_THROWS_AS(adaptive_max_pool2d(ctx, nothing, plane(three, 1, 3), {.size = {1, 3}}), error);
  adaptive_avg_pool2d_backward(ctx, {x.data(), dtype::f32, {1, 1, 0, 3}}, plane(five, 1, 5));
  CHECK(patterns(five) == std::vector<std::uint32_t>(5, 0));
}

// Windows of 23334 and 23335 elements, whose least common multiple is above 2^29: sums of quotients, with ties among them.
TEST_CASE("adaptive_avg_pool2d_backward: sizes with a huge common multiple") {
  const attributes attrs{{"size", std::vector<std::int64_t>{70001, 3}}};
  const array g = reference::fill_pooling("adaptive_avg_pool2d_backward", reference::sample_class::ties, dtype::f32,
                                          {{1, 1, 3, 2}}, attrs, 1, 0)[0];
  reference::outcomes where;
  const array want = reference::evaluate("adaptive_avg_pool2d_backward", {g}, attrs, &where);
  CHECK(std::count_if(where.begin(), where.end(), [](const reference::outcome& o) { return o.tie; }) > 10000);
  for (const test::engine& e : test::engines()) {
    placed_tensor in(*e.ctx, g, layout::contiguous);
    placed_tensor out(*e.ctx, dtype::f32, want.shape, layout::contiguous);
    adaptive_avg_pool2d_backward(*e.ctx, in.view(), out.view());
    CHECK_MESSAGE(out.get().bytes == want.bytes, e.name);
  }
}

TEST_CASE("max_pool2d_with_indices: the first of equals, the first NaN, and padding") {
  context ctx({.threads = 1});
  const float nan = from_bits(0xffc00001u);
  const std::vector<float> x = {-INFINITY, -INFINITY, 3, 3, 1, nan, nan, 7};
  std::vector<float> out(4);
  std::vector<std::int64_t> where(4);
  const tensor_view indices(where.data(), dtype::i64, {1, 1, 1, 4});
  max_pool2d_with_indices(ctx, plane(x, 1, 8), plane(out, 1, 4), indices, {.kernel = {1, 2}});
  CHECK(patterns(out) == std::vector<std::uint32_t>{bits(-INFINITY), bits(3), nan_bits, nan_bits});
  CHECK(where == std::vector<std::int64_t>{0, 2, 5, 6});
  max_pool2d_with_indices(ctx, plane(x, 2, 4), plane(out, 1, 4), indices,
                          {.kernel = {2, 2}, .stride = {2, 1}, .padding = {0, 0, 1, 0}});
  CHECK(where == std::vector<std::int64_t>{4, 5, 5, 6});
}

// Sums of every class of inputs, in formats whose sums have many ties.
TEST_CASE("pooling of f16, bf16 and f64: every class of inputs against the oracle") {
  using list = std::vector<std::int64_t>;
  struct problem {
    shape_list image, result;
    list kernel, stride, padding;
    bool ceil_mode;
  };
  const problem problems[] = {{{2, 3, 12, 14}, {2, 3, 6, 7}, {2, 2}, {2, 2}, {0}, false},
                              {{1, 4, 13, 11}, {1, 4, 12, 10}, {2, 2}, {1, 1}, {0}, false},
                              {{1, 4, 9, 10}, {1, 4, 5, 6}, {3, 3}, {2, 2}, {1}, true}};
  const std::vector<test::engine> engines = test::engines();
  std::uint64_t seed = 0;
  for (const std::string op : {"max_pool2d", "max_pool2d_backward", "avg_pool2d", "avg_pool2d_backward"}) {
    const op_info* const o = find(op);
    REQUIRE(o != nullptr);
    for (const dtype type : {dtype::f16, dtype::bf16, dtype::f64}) {
      reference::outcomes where;
      for (const problem& p : problems) {
        attributes attrs{
            {"kernel", p.kernel}, {"stride", p.stride}, {"padding", p.padding}, {"ceil_mode", p.ceil_mode}};
        std::vector<shape_list> shapes;
        if (op.ends_with("backward")) shapes.push_back(p.result);
        if (op != "avg_pool2d_backward") shapes.push_back(p.image);
        if (op == "avg_pool2d_backward") attrs.push_back({"size", list{p.image[2], p.image[3]}});
        for (const reference::sample_class c : reference::element_classes) {
          const std::vector<array> in = reference::fill_pooling(op, c, type, shapes, attrs, ++seed, 0);
          const array want = reference::evaluate(op, in, attrs, &where);
          for (const test::engine& e : engines) {
            std::vector<placed_tensor> placed;
            for (const array& a : in) placed.emplace_back(*e.ctx, a, layout::contiguous);
            std::vector<const_tensor_view> views;
            for (placed_tensor& t : placed) views.push_back(t.view());
            placed_tensor out(*e.ctx, type, want.shape, layout::contiguous);
            const tensor_view to = out.view();
            call(*e.ctx, *o, views, {&to, 1}, attrs);
            CHECK_MESSAGE(out.get() == want, op, " ", name_of(type), " class ", static_cast<int>(c), " ", e.name);
          }
        }
      }
      if (op == "max_pool2d") continue;
      const auto share = [&](auto&& is) {
        return static_cast<double>(std::count_if(where.begin(), where.end(), is)) / static_cast<double>(where.size());
      };
      CHECK(share([](const reference::outcome& w) { return w.tie; }) > 0.003);
      CHECK(share([](const reference::outcome& w) { return w.subnormal; }) > 0.01);
      CHECK(share([](const reference::outcome& w) { return w.exact_zero; }) > 0.02);
    }
  }
}

void check_avg_backward(const std::vector<test::engine>& engines, const array& g, const avg_pool2d_options& o,
                        const array& want) {
  for (const test::engine& e : engines) {
    placed_tensor in(*e.ctx, g, layout::contiguous);
    placed_tensor out(*e.ctx, want.type, want.shape, layout::contiguous);
    avg_pool2d_backward(*e.ctx, in.view(), out.view(), o);
    CHECK_MESSAGE(out.get().bytes == want.bytes, e.name);
  }
}

// The quotients of large windows have no small common denominator. The sides of these kernels have up to 100 counts.
TEST_CASE("avg_pool2d_backward: counts with a huge common multiple" * doctest::test_suite("values")) {
  struct problem {
    std::int64_t h, w;
    extent kernel, stride, padding;
    bool small;  // counts with a common multiple just below or above 2^29
  };
  constexpr problem problems[] = {
      {31, 37, {23, 29}, {2, 3}, {22, 22}, false},    {1, 300, {1, 201}, {1, 1}, {0, 100}, false},
      {230, 2, {150, 2}, {1, 1}, {149, 1}, false},    {64, 64, {64, 64}, {3, 5}, {32, 32}, false},
      {9, 1100, {3, 1000}, {2, 90}, {2, 999}, false}, {23, 29, {11, 11}, {1, 1}, {5, 5}, false},
      {20, 20, {9, 9}, {1, 1}, {4, 4}, true},
  };
  std::vector<test::engine> engines = test::engines();
  for (const device_info& d : devices()) {
    const context_options exact{.where = d.where, .threads = 3, .first_tier = tier::exact};
    engines.push_back({name_of(d.where) + " exact", std::make_unique<context>(exact)});
  }
  for (const problem& p : problems) {
    const avg_pool2d_options o{
        .kernel = p.kernel, .stride = p.stride, .padding = {p.padding.h, p.padding.h, p.padding.w, p.padding.w}};
    const attributes attrs{{"kernel", std::vector<std::int64_t>{p.kernel.h, p.kernel.w}},
                           {"stride", std::vector<std::int64_t>{p.stride.h, p.stride.w}},
                           {"padding", std::vector<std::int64_t>{p.padding.h, p.padding.w}},
                           {"size", std::vector<std::int64_t>{p.h, p.w}}};
    const std::int64_t oh = (p.h + 2 * p.padding.h - p.kernel.h) / p.stride.h + 1;
    const std::int64_t ow = (p.w + 2 * p.padding.w - p.kernel.w) / p.stride.w + 1;
    // What counts[y] of the windows have of one axis.
    const auto present = [](std::int64_t y, std::int64_t size, std::int64_t kernel, std::int64_t stride,
                            std::int64_t padding) {
      const std::int64_t first = y * stride - padding;
      return std::min(first + kernel, size) - std::max<std::int64_t>(first, 0);
    };
    for (int k = 0; k < 23; ++k) {
      // 11 on: four kinds of the other formats.
      const dtype type = k < 11 ? dtype::f32 : k < 15 ? dtype::f16 : k < 19 ? dtype::bf16 : dtype::f64;
      const int kind = k < 11 ? k : (k - 11) % 4 * 3;
      array g(type, {1, 1, oh, ow});
      for (std::int64_t y = 0; y < oh; ++y) {
        for (std::int64_t x = 0; x < ow; ++x) {
          const std::int64_t n = present(y, p.h, p.kernel.h, p.stride.h, p.padding.h) *
                                 present(x, p.w, p.kernel.w, p.stride.w, p.padding.w);
          // 9: multiples of the counts, which add up to integers, some to ties and to 0; 10: the same, tiny.
          const auto multiple = static_cast<float>(n * (static_cast<std::int64_t>(engine() % 3) - 1));
          const float huge = engine() % 97 == 0 ? std::ldexp(static_cast<float>(n), 24) : 0.0f;
          const float v = kind == 9 ? multiple + huge : std::ldexp(multiple, -149);
          g.set(static_cast<std::size_t>(y * ow + x),
                kind < 9 ? pick(type, kind) : reference::convert(dtype::f32, type, bits(v)));
        }
      }
      const array want = reference::evaluate("avg_pool2d_backward", {g}, attrs);
      INFO("values ", k, " image ", p.h, "x", p.w);
      check_avg_backward(engines, g, o, want);
    }
  }
}

// Two counts along each axis, with a common multiple above 2^29: 299 and 153, 293 and 153.
TEST_CASE("avg_pool2d_backward: counts of padded taps with a huge common multiple") {
  using list = std::vector<std::int64_t>;
  const avg_pool2d_options o{.kernel = {299, 293},
                             .stride = {150, 150},
                             .padding = {150, 150, 150, 150},
                             .count_include_pad = true,
                             .ceil_mode = true};
  const attributes attrs{{"kernel", list{299, 293}}, {"stride", list{150}},       {"padding", list{150}},
                         {"ceil_mode", true},        {"count_include_pad", true}, {"size", list{3, 2}}};
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16, dtype::f64}) {
    for (int k = 0; k < 9; ++k) {
      array g(type, {1, 1, 2, 2});
      for (std::size_t i = 0; i < 4; ++i) g.set(i, pick(type, k));
      check_avg_backward(test::engines(), g, o, reference::evaluate("avg_pool2d_backward", {g}, attrs));
    }
  }
}

TEST_CASE("avg_pool2d_backward: every geometry of the forward operation") {
  // One window's gradient is g / count at its pixels, and +0 elsewhere.
  const avg_pool2d_options o{.kernel = {64, 64}, .stride = {1, 1}, .padding = {32, 32, 32, 32}};
  for (const std::int64_t y : {0, 7, 32, 64}) {
    array g(dtype::f32, {1, 1, 65, 65});
    g.set(static_cast<std::size_t>(y * 65 + 20), bits(1.0f));
    array want(dtype::f32, {1, 1, 64, 64});
    const std::int64_t rows = std::min<std::int64_t>(y + 32, 64) - std::max<std::int64_t>(y - 32, 0);
    for (std::int64_t i = 0; i < 64; ++i) {
      for (std::int64_t j = 0; j < 64; ++j) {
        const bool inside = i >= y - 32 && i < y + 32 && j < 52;
        want.set(static_cast<std::size_t>(i * 64 + j), bits(inside ? 1.0f / static_cast<float>(rows * 52) : 0.0f));
      }
    }
    INFO("window ", y);
    check_avg_backward(test::engines(), g, o, want);
  }
}

// ------------------------------------------------------------------------------------------- sums of quotients

mpz_class to_mpz(std::uint64_t x) {
  return (mpz_class(static_cast<unsigned long>(x >> 32)) << 32) + static_cast<unsigned long>(x & 0xffffffffu);
}

TEST_CASE("division of two words and powers of 2, modulo up to 62 bits, against GMP") {
  for (int trial = 0; trial < 20000; ++trial) {
    const std::uint64_t n =
        trial % 3 == 0 ? (engine() >> 2) | (std::uint64_t{1} << 61) : (engine() >> (2 + engine() % 62)) | 1;
    const std::uint64_t high = trial % 5 == 0 ? n - 1 : engine() % n;
    const std::uint64_t low = trial % 7 == 0 ? ~std::uint64_t{0} : engine();
    std::uint64_t rest = 0;
    const std::uint64_t quotient = num::divide_wide(high, low, n, &rest);
    const mpz_class value = (to_mpz(high) << 64) + to_mpz(low);
    REQUIRE((to_mpz(quotient) == value / to_mpz(n)));
    REQUIRE((to_mpz(rest) == value % to_mpz(n)));
    const auto exponent = static_cast<std::int64_t>(engine() >> (20 + engine() % 44));
    mpz_class power;
    const mpz_class e = to_mpz(static_cast<std::uint64_t>(exponent)), two = 2, modulus = to_mpz(n);
    mpz_powm(power.get_mpz_t(), two.get_mpz_t(), e.get_mpz_t(), modulus.get_mpz_t());
    REQUIRE((to_mpz(num::power_modulo(exponent, n)) == power));
  }
}

template <class T>
struct quotients {
  static constexpr int least = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;  // 2^least
  struct term {
    T g;
    std::uint64_t n;
  };
  std::vector<term> terms;
  mpq_class sum;
  mpz_class common = 1;

  void add(T g, std::uint64_t n) {
    terms.push_back({g, n});
    if (!std::isfinite(g)) return;
    mpq_class q(g);
    q /= to_mpz(n);
    sum += q;
    const mpz_class divisor = to_mpz(n);
    mpz_lcm(common.get_mpz_t(), common.get_mpz_t(), divisor.get_mpz_t());
  }
  // a 2^exponent / n, in pieces of 24 bits.
  void add_scaled(std::uint64_t a, int exponent, std::uint64_t n, bool negative) {
    for (int at = 0; a != 0; a >>= 24, at += 24) {
      const T g = std::ldexp(static_cast<T>(a & 0xffffffu), exponent + at);
      add(negative ? -g : g, n);
    }
  }
  // The library's result and how often it went through the terms.
  std::uint64_t round(std::int64_t slack, int* passes) const {
    *passes = 0;
    const auto all = [&](auto&& use) {
      ++*passes;
      for (const term& t : terms) use(t.g, t.n);
    };
    const auto common_bits = static_cast<std::int64_t>(mpz_sizeinbase(common.get_mpz_t(), 2)) + slack;
    return num::to_bits(num::round_quotient_sum<T>(all, common_bits));
  }
  std::uint64_t expected() const { return reference::round_rational(dtype_of<T>, sum.get_mpq_t()); }
};

TEST_CASE_TEMPLATE("sums of quotients against GMP: random terms", T, float, double) {
  int passes = 0;
  for (int trial = 0; trial < (sizeof(T) == 4 ? 20000 : 5000); ++trial) {
    quotients<T> q;
    const int k = static_cast<int>(engine() % 9);
    const int bound = static_cast<int>(engine() % 62);
    bool finite = true;
    for (int i = static_cast<int>(engine() % 12); i >= 0; --i) {
      const std::uint64_t pattern = pick(dtype_of<T>, engine() % 8 == 0 ? static_cast<int>(engine() % 9) : k);
      const T g = num::from_bits<T>(static_cast<num::storage_of<T>>(pattern));
      finite = finite && std::isfinite(g);
      q.add(g, (engine() >> (2 + bound)) | 1);
    }
    if (!finite) {
      num::special_terms special;
      for (const auto& t : q.terms) special.add(static_cast<double>(t.g));
      REQUIRE(q.round(0, &passes) == num::to_bits(special.value<T>()));
    } else {
      REQUIRE(q.round(0, &passes) == q.expected());
    }
  }
}

// Sums that are a boundary of rounding, or one unit of the common denominator beside it: sum of a_i / n_i = 1 / D
// modulo 1 for coprime n_i with the product D and a_i the inverse of D / n_i modulo n_i.
TEST_CASE_TEMPLATE("sums of quotients against GMP: at a boundary and the least number / D beside it", T, float,
                   double) {
  using limits = std::numeric_limits<T>;
  constexpr int least = quotients<T>::least;
  const T largest = limits::max(), half = limits::epsilon() / 2, unit = limits::denorm_min();
  const T last = std::ldexp(half, limits::max_exponent - 1);  // half of the largest number's last place
  const std::vector<std::vector<T>> boundaries = {
      {},                                   // 0
      {1, half},                            // 1 + half an ulp
      {1 + 2 * half, half},                 // an odd number + half an ulp
      {3},                                  // no boundary
      {limits::min() - unit},               // + unit / 2: the border of subnormal numbers
      {5 * unit},                           // + unit / 2
      {0},                                  // + unit / 2
      {largest, last},                      // the border of overflow
      {largest, -last, largest, -largest},  // a tie below it
  };
  int most = 0;
  int decided_late = 0;
  for (int trial = 0; trial < (sizeof(T) == 4 ? 4000 : 1500); ++trial) {
    const auto which = static_cast<std::size_t>(trial) % boundaries.size();
    const bool negative = engine() % 2 != 0;
    const int beside = static_cast<int>(engine() % 3) - 1;
    quotients<T> q;
    for (const T g : boundaries[which]) q.add(negative ? -g : g, 1);
    if (which >= 4 && which <= 6) q.add(negative ? -unit : unit, 2);
    // Coprime divisors.
    std::vector<std::uint64_t> n;
    mpz_class product = 1;
    const int width = static_cast<int>(one_of({5, 12, 31, 33, 62}));
    const int count = static_cast<int>(engine() % 16);
    for (int tries = 0; static_cast<int>(n.size()) < count && tries < 200; ++tries) {
      const std::uint64_t candidate = (engine() >> (64 - width)) | 1;
      if (candidate == 1 || gcd(to_mpz(candidate), product) != 1) continue;
      n.push_back(candidate);
      product *= to_mpz(candidate);
    }
    mpz_class units = 0;  // whole ones in the sum of a_i / n_i - 1 / D
    for (const std::uint64_t d : n) {
      const mpz_class modulus = to_mpz(d), cofactor = product / modulus;
      mpz_class inverse;
      mpz_invert(inverse.get_mpz_t(), cofactor.get_mpz_t(), modulus.get_mpz_t());
      units += inverse * cofactor;
      const std::uint64_t a = mpz_get_ui(inverse.get_mpz_t());
      if (beside != 0) {
        q.add_scaled(a, least, d, beside < 0);
      } else {  // a / d and (d - a) / d: one unit, in pieces that leave rests
        q.add_scaled(a, least, d, false);
        q.add_scaled(d - a, least, d, false);
        q.add(-unit, 1);
      }
    }
    if (beside != 0 && !n.empty()) {
      units = (units - 1) / product;
      q.add_scaled(mpz_get_ui(units.get_mpz_t()), least, 1, beside > 0);
    }
    if (trial % 2 == 0) {  // terms that cancel, with different divisors
      const T g = std::ldexp(1 + static_cast<T>(engine() % 1024), static_cast<int>(engine() % 100) - 40);
      q.add(3 * g, 9 * 7);
      q.add(-g, 3 * 7);
    }
    std::shuffle(q.terms.begin(), q.terms.end(), engine);
    int passes = 0;
    REQUIRE(q.round(trial % 3 == 0 ? 400 : 0, &passes) == q.expected());
    most = std::max(most, passes);
    decided_late += beside != 0 && passes > 1 ? 1 : 0;
  }
  CHECK(most >= 4);
  CHECK(decided_late > 100);
}

TEST_CASE("pooling: channels last, many threads, and an empty batch") {
  const shape_list shape{2, 5, 23, 19};
  const array x = values(shape, dtype::f32);
  const max_pool2d_options o{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1, 1, 1}};
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
