// alpha a b + beta bias in every format against the oracle: every class of factors and results crafted to be hard to
// round, from every tier, on every instruction set, with one thread and with several; layouts, batches, few outputs of
// long sums, zeros and infinities. Results of wider formats than the operands', likewise.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "reference/structured/structured.hpp"
#include "tests/helpers/class_engines.hpp"
#include "tests/helpers/placed_tensor.hpp"
#include "tests/helpers/settings.hpp"

using namespace repdl;
using reference::array;
using reference::outcomes;
using reference::sample_class;
using reference::shape_list;

namespace {

constexpr dtype formats[] = {dtype::f16, dtype::bf16, dtype::f32};

struct scales {
  double alpha, beta;
  attributes attrs() const { return {{"alpha", alpha}, {"beta", beta}}; }
};
constexpr scales every_scale[] = {{1, 1},
                                  {-1, 1},
                                  {0.5, -2},
                                  {0.1, 1},
                                  {1, 0.1},
                                  {-0.3, 0x1.fffffffffffffp-2},
                                  {0x1.8p-20, -0x1.0000000000001p-19},
                                  {0x1.8p199, 0x1p200},
                                  {-0x1.fp-199, 0x1p-200},
                                  {0, 1},
                                  {1, 0},
                                  {0, 0}};

const std::vector<tests::setting>& settings() {
  static const std::vector<tests::setting> all = tests::every_setting();
  return all;
}

// Whether every setting has the oracle's bits.
bool check(const std::vector<array>& in, const attributes& attrs, const std::string& what, outcomes* where = nullptr) {
  const array want = reference::evaluate("matmul", in, attrs, where);
  for (const tests::setting& s : settings()) {
    INFO(what, " ", s.isa, " first tier ", static_cast<int>(s.first), " threads ", s.threads);
    const bool equal = test::run(*s.ctx, "matmul", in, {want}, attrs)[0] == want;
    CHECK(equal);
    if (!equal) return false;
  }
  return true;
}

std::vector<array> inputs(const reference::factors& f, bool bias) {
  return bias ? std::vector{f.a, f.b, f.bias} : std::vector{f.a, f.b};
}

array of_numbers(dtype t, const shape_list& shape, const std::vector<double>& v) {
  array a(t, shape);
  for (std::size_t i = 0; i < v.size(); ++i)
    a.set(i, reference::convert(dtype::f64, t, std::bit_cast<std::uint64_t>(v[i])));
  return a;
}

}  // namespace

TEST_CASE("scaled matmul: every class of factors, from every tier, on every instruction set") {
  constexpr std::int64_t shapes[][3] = {{5, 7, 0}, {9, 26, 1}, {13, 11, 2}, {4, 50, 9}, {17, 25, 65}, {3, 5, 800}};
  std::int64_t ties = 0, near_ties = 0, overflows = 0, zeros = 0, subnormal = 0;
  std::uint64_t stream = 0;
  for (const dtype t : formats) {
    for (const sample_class k : reference::element_classes) {
      for (const scales& c : every_scale) {
        const std::int64_t* const s = shapes[stream++ % std::size(shapes)];
        const bool bias = stream % 3 != 0;
        const auto f = reference::fill_factors(k, s[0], s[1], s[2], bias, 21, stream, t);
        outcomes where;
        if (!check(inputs(f, bias), c.attrs(), std::string(name_of(t)) + " " + std::string(name_of(k)), &where)) return;
        for (const reference::outcome& o : where) {
          ties += o.tie;
          near_ties += o.near_tie;
          overflows += o.overflow;
          zeros += o.exact_zero;
          subnormal += o.subnormal;
        }
      }
    }
  }
  CHECK(ties > 1000);
  CHECK(near_ties > 100);
  CHECK(overflows > 100);
  CHECK(zeros > 1000);
  CHECK(subnormal > 1000);
  std::int64_t decided[4] = {};
  for (const tests::setting& s : settings()) {
    if (s.first != tier::proved) continue;
    const statistics n = s.ctx->read_statistics();
    for (std::size_t i = 0; i < 4; ++i) decided[i] += n.elements[i];
  }
  CHECK(decided[1] > 10 * decided[2]);
  CHECK(decided[2] > 0);
  CHECK(decided[3] > 0);
}

// Midpoints, or numbers next to them, as q S with an odd q; and the same moved by a trifle that is a term, the bias or
// the last bit of a coefficient. Terms that cancel stand between them.
TEST_CASE("scaled matmul: results on midpoints and next to them") {
  std::mt19937_64 g(31);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(g() % n); };
  const auto flip = [&] { return (g() & 1) != 0; };
  std::int64_t ties = 0, near_ties = 0, zeros = 0, subnormal = 0, overflows = 0;
  for (int round = 0; round < 400; ++round) {
    const dtype t = formats[round % 3];
    const int p = reference::format_of(t).precision, least = reference::format_of(t).ulp_min(),
              greatest = reference::format_of(t).emax;
    const double q = std::vector<double>{1, 3, 5, 7}[static_cast<std::size_t>(below(4))];
    // Where q s lands: below the least normal number, at the border of overflow, among ordinary numbers.
    const int region = static_cast<int>(below(4));
    const std::int64_t odd = 2 * below(std::uint64_t{1} << (p - 1)) + 1, top = std::int64_t{1} << p;
    const std::int64_t middle = region == 0 ? odd + 8 : region == 1 ? 2 * top - 1 : top + odd;  // of p + 1 bits
    const int scale = region == 0 ? least - 1 : region == 1 ? greatest - p : static_cast<int>(below(9)) - 4;
    const double s = std::ceil(static_cast<double>(middle) / q / 2) * 2 - 1;  // odd, and q s next to the middle
    const bool direct = q == 1;
    // q = 1: s has a bit too many, and is split into two terms.
    std::vector<double> a{direct ? s - 1 : s, direct ? 1.0 : 0.0}, b{1, 1};
    // Too large for the low part of a double-double to keep a trifle, too.
    const double large = t == dtype::f16 ? 0x1p15 : 0x1p30;
    const bool hides = below(3) == 0;
    if (hides) a.insert(a.begin(), large), b.insert(b.begin(), large);
    for (int i = 0; i < 4; ++i) {
      const double x = static_cast<double>(below(60) + 1), y = static_cast<double>(below(60) + 1);
      a.insert(a.end(), {x, flip() ? -x : x});
      b.insert(b.end(), {y, a.back() < 0 ? y : -y});
    }
    const int tiny = t == dtype::f16 ? -20 : -70;
    if (below(3) == 0)
      a.push_back(std::ldexp(flip() ? 1.0 : -1.0, tiny)), b.push_back(hides ? std::ldexp(1.0, tiny) : 1);
    if (hides) a.push_back(-large), b.push_back(large);
    scales c{(flip() ? q : -q) * std::ldexp(1.0, scale), flip() ? 0.1 : -0x1p-30};
    double bias = below(3) == 0 ? 0 : std::ldexp(flip() ? 1.0 : -1.0, below(2) == 0 ? tiny : least);
    if (below(4) == 0) c.alpha = std::nextafter(c.alpha, flip() ? 1e300 : -1e300);
    // alpha s + beta c cancels: exactly, or but for the last bit of a coefficient.
    if (!direct && below(5) == 0) {
      c.beta = flip() ? -c.alpha : std::nextafter(-c.alpha, 0);
      bias = s;
    }
    const auto k = static_cast<std::int64_t>(a.size());
    const std::vector<array> in{of_numbers(t, {1, k}, a), of_numbers(t, {k, 1}, b), of_numbers(t, {1, 1}, {bias})};
    outcomes where;
    if (!check(in, c.attrs(), "round " + std::to_string(round), &where)) return;
    ties += where[0].tie;
    near_ties += where[0].near_tie;
    zeros += where[0].exact_zero;
    subnormal += where[0].subnormal;
    overflows += where[0].overflow;
  }
  CHECK(ties > 20);
  CHECK(near_ties > 20);
  CHECK(zeros > 10);
  CHECK(subnormal > 20);
  CHECK(overflows > 10);
}

// The low parts of alpha s and of beta c cancel but for the last of them: alpha s = M 2^51 + X, beta c = -(X + 2^-52), M an
// odd number of 25 bits, so that the sum is below a midpoint by 2^-103 of it.
TEST_CASE("scaled matmul: low parts that cancel") {
  std::mt19937_64 g(32);
  const auto inverse = [](std::uint64_t x) {  // modulo 2^64
    std::uint64_t y = x;
    for (int i = 0; i < 5; ++i) y *= 2 - x * y;
    return y;
  };
  __extension__ typedef unsigned __int128 wide;
  int cases = 0;
  while (cases < 100) {
    const std::uint64_t s = (g() >> 40) | 0x800001, c = (g() >> 40) | 0x800001;
    const std::uint64_t b = inverse(c) & ((std::uint64_t{1} << 52) - 1);
    const auto x = static_cast<std::uint64_t>(static_cast<wide>(b) * c >> 52);
    const std::uint64_t a = (x * inverse(s) & ((std::uint64_t{1} << 51) - 1)) | std::uint64_t{1} << 52;
    const wide product = static_cast<wide>(a) * s;
    const auto middle = static_cast<std::uint64_t>(product >> 51);
    if ((product & ((wide{1} << 51) - 1)) != x || middle >> 24 != 1 || (middle & 1) == 0 || x >> 20 == 0) continue;
    ++cases;
    const scales factors{static_cast<double>(a), -std::ldexp(static_cast<double>(b), -52)};
    const auto one = [](std::uint64_t v) { return of_numbers(dtype::f32, {1, 1}, {static_cast<double>(v)}); };
    outcomes where;
    if (!check({one(s), one(1), one(c)}, factors.attrs(), "low parts", &where)) return;
    CHECK(where[0].near_tie);
  }
}

TEST_CASE("scaled matmul: zeros, infinities and NaN") {
  constexpr double inf = HUGE_VAL;
  for (const dtype t : formats) {
    const std::vector<double> odd{0.0, -0.0, 1, -2, inf, -inf, std::nan("")};
    for (const scales& c : every_scale) {
      // Column j of b times row i of a: one product each; every pair, and every bias.
      const array a = of_numbers(t, {7, 1}, odd), b = of_numbers(t, {1, 7}, odd);
      for (const double bias : odd) {
        if (!check({a, b, of_numbers(t, {1}, {bias})}, c.attrs(), "bias")) return;
      }
      if (!check({a, b}, c.attrs(), "no bias")) return;
      const array nothing(t, {7, 0}), none(t, {0, 7});
      if (!check({nothing, none, of_numbers(t, {7}, odd)}, c.attrs(), "k = 0")) return;
      if (!check({nothing, none}, c.attrs(), "k = 0, no bias")) return;
      if (!check({array(t, {0, 3}), array(t, {3, 7})}, c.attrs(), "no rows")) return;
    }
  }
}

TEST_CASE("scaled matmul: batches and layouts") {
  std::uint64_t stream = 0;
  for (const dtype t : formats) {
    for (const scales& c : {scales{1, 1}, scales{0.3, -2.5}}) {
      auto f = reference::fill_factors(sample_class::normal_range, 6 * 10, 14, 19, true, 22, stream++, t);
      f.a.shape = {3, 2, 10, 19};
      f.b.shape = {2, 19, 7};
      f.bias.shape = {14};
      std::vector<array> in{f.a, f.b};
      if (!check(in, c.attrs(), "batches")) return;
      in.push_back(of_numbers(t, {2, 1, 7}, std::vector<double>(14, 0.7)));
      if (!check(in, c.attrs(), "batches with a bias")) return;
      const array want = reference::evaluate("matmul", in, c.attrs());
      for (const tests::setting& s : settings()) {
        if (s.first == tier::double_double) continue;
        for (const reference::layout l : tests::layouts) {
          std::vector<std::unique_ptr<tests::placed_tensor>> placed;
          std::vector<const_tensor_view> views;
          for (const array& x : in) {
            placed.push_back(std::make_unique<tests::placed_tensor>(*s.ctx, x, l));
            views.push_back(placed.back()->view());
          }
          tests::placed_tensor out(*s.ctx, want.type, want.shape, l);
          call(*s.ctx, *find("matmul"), views, std::vector<tensor_view>{out.view()}, c.attrs());
          const bool equal = out.get() == want;
          CHECK(equal);
        }
      }
    }
  }
}

TEST_CASE("scaled matmul: few outputs of long sums, and many blocks") {
  std::uint64_t stream = 0;
  for (const dtype t : formats) {
    for (const scales& c : {scales{1, 1}, scales{0.3, -2.5}}) {
      for (const sample_class k : {sample_class::normal_range, sample_class::ties, sample_class::single_nonfinite}) {
        for (const auto& [m, n, terms] :
             {std::array<std::int64_t, 3>{1, 1, 11000}, {2, 3, 12000}, {5, 1, 9000}, {150, 70, 40}}) {
          const bool bias = terms < 12000;
          const auto f = reference::fill_factors(k, m, n, terms, bias, 23, stream++, t);
          if (!check(inputs(f, bias), c.attrs(), "long")) return;
        }
      }
    }
  }
}

TEST_CASE("matmul in wider formats: every class of factors, from every tier, on every instruction set") {
  constexpr std::int64_t shapes[][3] = {{5, 7, 0}, {9, 26, 1}, {13, 11, 2}, {4, 50, 9}, {17, 25, 65}, {1, 3, 900}};
  std::uint64_t stream = 0;
  for (const auto& [from, to] : {std::pair{dtype::f16, dtype::f32},
                                 {dtype::bf16, dtype::f32},
                                 {dtype::f16, dtype::f64},
                                 {dtype::bf16, dtype::f64},
                                 {dtype::f32, dtype::f64}}) {
    for (const sample_class k : reference::element_classes) {
      for (const scales& c : {scales{1, 1}, scales{0.1, -3}}) {
        const std::int64_t* const s = shapes[stream++ % std::size(shapes)];
        const auto f = reference::fill_factors(k, s[0], s[1], s[2], true, 24, stream, from);
        attributes attrs = c.attrs();
        attrs.push_back({"dtype", std::string(name_of(to))});
        const std::string what = std::string(name_of(from)) + " to " + std::string(name_of(to));
        std::vector<array> in = inputs(f, stream % 3 != 0);
        if (!check(in, attrs, what)) return;
        // A bias of the result's format, whose last bits the operands' format has not.
        if (in.size() == 2) in.emplace_back();
        in[2] = reference::fill(k, to, {s[0], 1}, 24, stream);
        if (!check(in, attrs, what + ", a bias of the result's")) return;
      }
    }
  }
}

TEST_CASE("matmul in wider formats: batches, repeated operands and layouts; an output says its format") {
  std::uint64_t stream = 0;
  for (const auto& [from, to] : {std::pair{dtype::bf16, dtype::f32}, {dtype::f32, dtype::f64}}) {
    auto f = reference::fill_factors(sample_class::wide_exponents, 6 * 10, 14, 19, true, 25, stream++, from);
    f.a.shape = {3, 2, 10, 19};
    f.b.shape = {2, 19, 7};
    const std::vector<array> in{f.a, f.b, of_numbers(from, {2, 1, 7}, std::vector<double>(14, 0.7))};
    const array want = reference::evaluate("matmul", in, {{"dtype", std::string(name_of(to))}});
    for (const tests::setting& s : settings()) {
      if (s.first == tier::double_double) continue;
      for (const reference::layout l : tests::layouts) {
        std::vector<std::unique_ptr<tests::placed_tensor>> placed;
        for (const array& x : in) placed.push_back(std::make_unique<tests::placed_tensor>(*s.ctx, x, l));
        tests::placed_tensor out(*s.ctx, want.type, want.shape, l);
        matmul(*s.ctx, placed[0]->view(), placed[1]->view(), placed[2]->view(), out.view());
        CHECK(out.get() == want);
      }
    }
  }
  context ctx;
  const std::vector<float> x{1, 0x1p-24f}, one{3};
  std::vector<double> y(4);
  // x as both columns, and one number as every element.
  const const_tensor_view repeated(x.data(), dtype::f32, {2, 2}, sizes{1, 0});
  matmul(ctx, repeated, repeated, tensor_view(y.data(), {2, 2}));
  CHECK(y == std::vector<double>{1 + 0x1p-24, 1 + 0x1p-24, 0x1p-24 + 0x1p-48, 0x1p-24 + 0x1p-48});
  const const_tensor_view same(one.data(), dtype::f32, {2, 5}, sizes{0, 0});
  matmul(ctx, same, same.transpose(), tensor_view(y.data(), {2, 2}));
  CHECK(y == std::vector<double>(4, 45));
  prepared_calls p = ctx.prepare([&] { matmul(ctx, same, same.transpose(), tensor_view(y.data(), {2, 2})); });
  for (int i = 0; i < 2; ++i) {
    y.assign(4, 0);
    p.run();
    CHECK(y == std::vector<double>(4, 45));
  }
}

TEST_CASE("matmul in wider formats: what is refused") {
  const auto tensor_of = [](dtype t, const shape_list& s) { return array(t, s); };
  const auto refusal = [&](dtype t, const attributes& attrs, dtype of_bias = dtype::f32) {
    const array a = tensor_of(t, {2, 3}), b = tensor_of(t, {3, 2}), c = tensor_of(of_bias, {2});
    const std::vector<const_tensor_view> in{const_tensor_view(a.bytes.data(), t, {2, 3}),
                                            const_tensor_view(b.bytes.data(), t, {3, 2}),
                                            const_tensor_view(c.bytes.data(), of_bias, {2})};
    try {
      infer(*find("matmul"), in, attrs);
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto named = [](const char* t) { return attributes{{"dtype", std::string(t)}}; };
  CHECK(refusal(dtype::f32, named("f16")) == "matmul: dtype: expected f32 or f64, of operands of f32, got f16");
  CHECK(refusal(dtype::f16, named("bf16")) == "matmul: dtype: expected f16, f32 or f64, of operands of f16, got bf16");
  CHECK(refusal(dtype::f64, named("f32")) == "matmul: dtype: expected f64, of operands of f64, got f32");
  CHECK(refusal(dtype::f32, named("i64")) == "matmul: dtype: expected f32 or f64, of operands of f32, got i64");
  CHECK(refusal(dtype::f16, named("f64")) == "matmul: bias: expected f16, as a, got f32");
  CHECK(refusal(dtype::f16, named("f32")).empty());
  attributes chain = named("f64");
  chain.push_back({"accumulate", std::string("fma_chain")});
  CHECK(refusal(dtype::f32, chain) == "matmul: dtype: expected f32 with fma_chain, got f64");
  context ctx;
  std::vector<float> x(4);
  std::vector<bf16> narrow(4);
  CHECK_THROWS_WITH(matmul(ctx, const_tensor_view(x.data(), {2, 2}), const_tensor_view(x.data(), {2, 2}),
                           tensor_view(narrow.data(), {2, 2})),
                    doctest::Contains("matmul: out: expected f32, got bf16"));
}
