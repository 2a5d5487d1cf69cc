// total_norm and clip_grad_norm through the public API: against the oracle in every way that must not matter (instruction set,
// threads, first tier, layout, in place or not), factors beside and at the rational numbers where results have their steps, special
// values by their bits; and what decides the factor, against GMP.
#include "librepdl/ops/steps/clip.hpp"

#include <doctest/doctest.h>
#include <gmpxx.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/attributes.hpp"
#include "reference/covering.hpp"
#include "reference/evaluate.hpp"
#include "reference/numbers/real.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/placed_tensor.hpp"
#include "tests/helpers/settings.hpp"

using namespace repdl;
using reference::array;
using reference::sample_class;
using reference::shape_list;
using tests::every_setting;
using tests::layout;
using tests::placed_tensor;
using tests::setting;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity(), no_number = std::numeric_limits<float>::quiet_NaN();
constexpr dtype formats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};
constexpr double norms[] = {2, 1, inf};
// max_norm with which N = 1 gives the factor 15625 / 2^14 (reference/samples/lists.cpp).
constexpr double of_norm_one = 1000001 * 0x1p-20;

// All outputs; in place where the operation allows it.
std::vector<array> run(context& ctx, const std::string& name, const std::vector<array>& x, const attributes& attrs,
                       bool in_place = false, reference::word_stream* layouts = nullptr) {
  const auto any_layout = [&] { return layouts == nullptr ? layout::contiguous : tests::layouts[layouts->below(6)]; };
  const op_info& op = *find(name);
  std::vector<std::unique_ptr<placed_tensor>> in, out;
  std::vector<const_tensor_view> views;
  std::vector<tensor_view> out_views;
  std::vector<placed_tensor*> results;
  for (const array& a : x) {
    in.push_back(std::make_unique<placed_tensor>(ctx, a, any_layout()));
    views.push_back(in.back()->view());
  }
  const std::vector<tensor_spec> specs = infer(op, views, attrs);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const tensor_spec& s = specs[i];
    if (in_place && i < x.size()) {
      results.push_back(in[i].get());
    } else {
      out.push_back(
          std::make_unique<placed_tensor>(ctx, s.type, shape_list(s.shape.begin(), s.shape.end()), any_layout()));
      results.push_back(out.back().get());
    }
    out_views.push_back(results.back()->view());
  }
  call(ctx, op, views, out_views, attrs);
  std::vector<array> all;
  all.reserve(results.size());
  for (placed_tensor* p : results) all.push_back(p->get());
  return all;
}

array floats(const std::vector<float>& v) {
  array a(dtype::f32, {static_cast<std::int64_t>(v.size())});
  for (std::size_t i = 0; i < v.size(); ++i) a.set(i, std::bit_cast<std::uint32_t>(v[i]));
  return a;
}

void check_everywhere(const std::vector<setting>& settings, const std::string& op, const std::vector<array>& x,
                      const attributes& attrs) {
  const std::vector<array> want = reference::evaluate_all(op, x, attrs);
  for (const setting& s : settings) {
    CAPTURE(op);
    CAPTURE(s.isa);
    CAPTURE(static_cast<int>(s.first));
    CHECK(run(*s.ctx, op, x, attrs) == want);
  }
}

}  // namespace

TEST_CASE("clip: every class, format, norm, tier, number of threads and layout, against the oracle" *
          doctest::test_suite("values")) {
  const std::vector<setting> settings = every_setting();
  reference::covering some(6);
  reference::word_stream words(71, 0);
  std::uint64_t stream = 0;
  const std::vector<std::vector<shape_list>> lists = {
      {{3}}, {{}}, {{0, 2}, {5, 7}, {}}, {{2, 3, 1, 4}, {40}, {3, 3}, {1, 1, 1, 2, 1, 1, 1, 2}}, {{1300}, {37, 41}}};
  for (const std::vector<shape_list>& shapes : lists) {
    for (int k = 0; k < static_cast<int>(std::size(reference::element_classes)); ++k) {
      const sample_class kind = reference::element_classes[static_cast<std::size_t>(k)];
      for (const dtype t : formats) {
        for (int n = 0; n < 3; ++n) {
          for (const double max_norm : {-1.0, of_norm_one, 0.7, 0x1p-130, 3e4}) {  // -1: the norm alone
            const std::string op = max_norm < 0 ? "total_norm" : "clip_grad_norm";
            attributes attrs{{"p", norms[n]}};
            if (max_norm >= 0) attrs.push_back({"max_norm", max_norm});
            const std::vector<array> x = reference::fill_inputs(op, kind, shapes, attrs, 73, ++stream, t);
            std::vector<array> want;
            for (std::size_t i = 0; i < settings.size(); ++i) {
              const setting& s = settings[i];
              if (!some.takes(static_cast<int>(i), {n, k, static_cast<int>(t)})) continue;
              if (want.empty()) want = reference::evaluate_all(op, x, attrs);
              CAPTURE(op);
              CAPTURE(norms[n]);
              CAPTURE(max_norm);
              CAPTURE(stream);
              CAPTURE(std::string(name_of(kind)));
              CAPTURE(std::string(name_of(t)));
              CAPTURE(s.isa);
              CAPTURE(static_cast<int>(s.first));
              CHECK(run(*s.ctx, op, x, attrs) == want);
              CHECK(run(*s.ctx, op, x, attrs, max_norm >= 0 && words.flip(), &words) == want);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("clip: norms are of their classes, and long lists on several threads" * doctest::test_suite("values")) {
  for (const dtype t : formats) {
    for (const double p : {2.0, 1.0}) {
      for (const sample_class kind : {sample_class::ties, sample_class::near_ties, sample_class::overflow_border}) {
        std::int64_t hits = 0;
        for (std::uint64_t i = 0; i < 100; ++i) {
          const attributes attrs{{"p", p}};
          reference::outcomes where;
          reference::evaluate_all(
              "total_norm", reference::fill_inputs("total_norm", kind, {{5}, {11}}, attrs, 79, i, t), attrs, &where);
          hits += hit(kind, where[0]) ? 1 : 0;
        }
        CAPTURE(p);
        CAPTURE(std::string(name_of(kind)));
        CAPTURE(std::string(name_of(t)));
        CHECK(hits >= (kind == sample_class::overflow_border ? 10 : 95));
      }
    }
    for (const std::string& isa : tests::available()) {
      context one({.threads = 1}), several({.threads = 4, .isa = isa});
      for (const double p : norms) {
        const attributes attrs{{"max_norm", 0.7}, {"p", p}};
        const std::vector<array> x = reference::fill_inputs("clip_grad_norm", sample_class::normal_range,
                                                            {{3, 100'003}, {7}, {50'000}}, attrs, 79, 1000, t);
        CHECK(run(several, "clip_grad_norm", x, attrs) == run(one, "clip_grad_norm", x, attrs));
      }
    }
  }
}

// N = 1 or a little more, and elements whose products are ties: what decides is counted.
TEST_CASE("clip: ties and near-ties of elements, and who decides") {
  const std::vector<setting> settings = every_setting();
  for (const double p : norms) {
    for (const sample_class kind : {sample_class::ties, sample_class::near_ties}) {
      const attributes attrs{{"max_norm", of_norm_one}, {"p", p}};
      const std::vector<array> x =
          reference::fill_inputs("clip_grad_norm", kind, {{300}, {4, 50}}, attrs, 83, 1, dtype::f32);
      reference::outcomes where;
      reference::evaluate_all("clip_grad_norm", x, attrs, &where);
      std::int64_t hits = 0;
      for (const reference::outcome& o : where) hits += hit(kind, o) ? 1 : 0;
      CHECK((hits > 450 || (kind == sample_class::near_ties && std::isinf(p))));
      check_everywhere(settings, "clip_grad_norm", x, attrs);
      context ctx;
      run(ctx, "clip_grad_norm", x, attrs);
      CHECK(ctx.read_statistics().elements[static_cast<int>(tier::exact)] == 501);  // of one such element all
    }
  }
}

// c next to (N + 10^-6) P / Q for odd P of 25 bits, so that g = Q has a product beside a midpoint: all c around it.
TEST_CASE("clip: factors beside the steps of results") {
  context ctx, exact({.first_tier = tier::exact});
  reference::word_stream words(89, 0);
  for (int i = 0; i < 400; ++i) {
    const std::uint64_t p = (std::uint64_t{1} << 24) | (words.next64() & 0xffffff) | 1;
    const int length = static_cast<int>(1 + words.below(24));
    const std::uint64_t q = (words.next64() & ((std::uint64_t{1} << length) - 1)) | (std::uint64_t{1} << (length - 1));
    const double norm = norms[words.below(3)];
    const int e = static_cast<int>(words.below(40)) - 20;
    const float top = std::ldexp(static_cast<float>(1 + words.below(1 << 24)), e);
    const float small = std::ldexp(static_cast<float>(q), -60);
    const array x = floats({top, small, -2 * small, std::nextafter(small, 1.0f), 0.0f, -0.0f, std::ldexp(small, -70)});
    // A factor below 1.
    const double ratio = static_cast<double>(p) / static_cast<double>(q);
    const int down = std::ilogb(ratio) + 1 + static_cast<int>(words.below(3));
    const double nearest = (static_cast<double>(top) + 1e-6) * std::ldexp(ratio, -down);
    double c = nearest;
    for (int k = 0; k < 3; ++k) c = std::nextafter(c, 0.0);
    for (int k = 0; k < 7; ++k, c = std::nextafter(c, HUGE_VAL)) {
      const attributes attrs{{"max_norm", c}, {"p", norm}};
      const std::vector<array> want = reference::evaluate_all("clip_grad_norm", {x}, attrs);
      CAPTURE(i);
      CAPTURE(k);
      CHECK(run(ctx, "clip_grad_norm", {x}, attrs) == want);
      CHECK(run(exact, "clip_grad_norm", {x}, attrs) == want);
    }
  }
}

// The same of f64: N = 1, the sum of what is missing included, and elements whose products with 15625 have 54 bits; and a little more.
TEST_CASE("clip: ties and near-ties of binary64") {
  const std::vector<setting> settings = every_setting();
  reference::word_stream words(103, 0);
  for (const double p : norms) {
    for (const bool near : {false, true}) {
      constexpr int unit = -90;
      std::vector<double> list;
      mpz_class rest = 1;  // of the sum, in units of 2^unit, or of the squares
      rest <<= -unit * (p == 2 ? 2 : 1);
      const auto put = [&](std::uint64_t m) {
        list.push_back(std::ldexp(static_cast<double>(m), unit));
        const mpz_class n(static_cast<unsigned long>(m));
        rest -= p == 2 ? mpz_class(n * n) : n;
      };
      // 15625 m in [2^53, 2^54), odd.
      for (int i = 0; i < 200; ++i)
        put((((std::uint64_t{9} << 53) / 140'000) + words.next64() % (std::uint64_t{1} << 39)) | 1);
      std::int64_t aimed = std::ssize(list);
      if (std::isinf(p)) {
        list.push_back(1);
      } else {
        while (rest > 0) {
          const mpz_class all = p == 2 ? mpz_class(sqrt(rest)) : rest;
          const std::size_t bits = mpz_sizeinbase(all.get_mpz_t(), 2);
          const mpz_class top = bits > 53 ? mpz_class(all >> (bits - 53) << (bits - 53)) : all;
          list.push_back(std::ldexp(top.get_d(), unit));
          rest -= p == 2 ? mpz_class(top * top) : top;
        }
      }
      if (near && std::isinf(p)) continue;  // a greatest magnitude is no nearer
      if (near) list.push_back(p == 2 ? 0x1p-300 : 0x1p-500);
      array x(dtype::f64, {std::ssize(list)});
      for (std::size_t i = 0; i < list.size(); ++i)
        x.set(i, std::bit_cast<std::uint64_t>(words.flip() ? list[i] : -list[i]));
      const attributes attrs{{"max_norm", of_norm_one}, {"p", p}};
      reference::outcomes where;
      reference::evaluate_all("clip_grad_norm", {x}, attrs, &where);
      std::int64_t hits = 0;
      for (const reference::outcome& o : where)
        hits += hit(near ? sample_class::near_ties : sample_class::ties, o) ? 1 : 0;
      CAPTURE(p);
      CAPTURE(near);
      CHECK(hits >= aimed);
      check_everywhere(settings, "clip_grad_norm", {x}, attrs);
      for (const std::string& isa : tests::available()) {
        context ctx({.threads = 1, .isa = isa});
        const std::vector<array> want = reference::evaluate_all("clip_grad_norm", {x}, attrs);
        CHECK(run(ctx, "clip_grad_norm", {x}, attrs, true) == want);
        CHECK(ctx.read_statistics().elements[static_cast<int>(tier::exact)] == std::ssize(list) + 1);
      }
    }
  }
}

// Products about the least numbers: midpoints of subnormal ones, 2^-1075, and what is far below.
TEST_CASE("clip: subnormal results of binary64") {
  const std::vector<setting> settings = every_setting();
  reference::word_stream words(107, 0);
  for (int i = 0; i < 60; ++i) {
    std::vector<double> list{1};  // N = 1 by its greatest magnitude: the factor 15625 / 2^14 times 2^-t
    const int t = static_cast<int>(words.below(1000));
    for (int k = 0; k < 40; ++k) {
      const int e = -1074 + static_cast<int>(words.below(60)) + (t > 900 ? 0 : t);
      const std::uint64_t m = (words.next64() >> (11 + words.below(52))) | 1;
      list.push_back(std::ldexp(static_cast<double>(m), std::max(e - static_cast<int>(words.below(54)), -1074)));
    }
    array x(dtype::f64, {std::ssize(list)});
    for (std::size_t k = 0; k < list.size(); ++k) x.set(k, std::bit_cast<std::uint64_t>(list[k]));
    for (const double c : {of_norm_one, std::ldexp(of_norm_one, -t), std::ldexp(of_norm_one, -t) * (1 + 0x1p-52)}) {
      check_everywhere(settings, "clip_grad_norm", {x}, {{"max_norm", c}, {"p", static_cast<double>(inf)}});
    }
  }
}

// Norms far outside the range of the first tier, and max_norm anywhere.
TEST_CASE("clip: every magnitude of binary64") {
  const std::vector<setting> settings = every_setting();
  reference::word_stream words(109, 0);
  for (int i = 0; i < 300; ++i) {
    const auto any = [&] {
      return std::ldexp(1 + static_cast<double>(words.next64() >> 12) * 0x1p-52,
                        static_cast<int>(words.below(2098)) - 1074);
    };
    std::vector<double> list;
    const double first = any();
    for (int k = 0; k < 12; ++k)
      list.push_back(words.flip() ? any() : std::ldexp(first, static_cast<int>(words.below(120)) - 110));
    array x(dtype::f64, {std::ssize(list)});
    for (std::size_t k = 0; k < list.size(); ++k) x.set(k, std::bit_cast<std::uint64_t>(list[k]));
    const double norm = norms[words.below(3)];
    const double c = words.flip() ? any() : std::abs(list[0]) * (1 + static_cast<double>(words.below(5)));
    check_everywhere(settings, "clip_grad_norm", {x}, {{"max_norm", c}, {"p", norm}});
  }
}

TEST_CASE("clip: max_norm beside N + 10^-6") {
  const std::vector<setting> settings = every_setting();
  for (const float n : {1.0f, 3.0f, 0x1p-20f, 1e-6f, 0x1.234567p30f, 0x1p-149f, 0x1.fffffep127f}) {
    double c = static_cast<double>(n) + 1e-6;
    for (int k = 0; k < 3; ++k) c = std::nextafter(c, 0.0);
    for (int k = 0; k < 7; ++k, c = std::nextafter(c, HUGE_VAL)) {
      for (const double p : norms) {
        check_everywhere(settings, "clip_grad_norm", {floats({n}), floats({})}, {{"max_norm", c}, {"p", p}});
        array wide(dtype::f64, {1});
        wide.set(0, std::bit_cast<std::uint64_t>(static_cast<double>(n)));
        check_everywhere(settings, "clip_grad_norm", {wide}, {{"max_norm", c}, {"p", p}});
      }
    }
  }
}

// On which side of P / Q a factor lies, for sums that are not those of any call: between, at and beside.
TEST_CASE("clip: the side of a step, against GMP") {
  reference::word_stream words(97, 0);
  int equal = 0;
  for (int i = 0; i < 20'000; ++i) {
    using num::norm_kind;
    const auto kind = static_cast<norm_kind>(words.below(3));
    num::norm_accumulator s;
    mpq_class sum = 0;
    // A perfect square, or numbers of all sizes; a tiny one besides.
    const auto add = [&](float x) {
      num::add_exactly(s, kind, x);
      const mpq_class v = abs(reference::rational(dtype::f32, std::bit_cast<std::uint32_t>(x)));
      sum += kind == norm_kind::squares ? mpq_class(v * v) : v;
    };
    const int e = static_cast<int>(words.below(60)) - 60;
    const float main = std::ldexp(static_cast<float>(1 + words.below(1 << 24)), e);
    add(main);
    if (words.flip()) add(std::ldexp(main, -static_cast<int>(words.below(90))));
    if (words.below(4) == 0) add(0x1p-149f);
    // c and P / Q: c (10^6 Q) = P (10^6 N + 1) for the N of `main` alone, where the double has the bits, and beside.
    num::factor_guess g{};
    g.undecided = true;
    g.t = static_cast<int>(words.below(4));
    const auto odd = [&](std::uint64_t n) { return static_cast<double>(n | 1); };
    const bool aimed = words.flip() && e > -40;
    const std::uint64_t some = words.next64();
    g.p = aimed ? 15625 * odd(some % 1000) : odd(some % (1 << 25));
    g.q = std::ldexp(1.0, std::ilogb(g.p));
    if (!aimed) g.q = odd(words.next64() % (1 << 25));
    while (g.p < g.q) g.p *= 2;
    while (g.p >= 2 * g.q) g.q *= 2;
    if (g.p >= 0x1p25 || g.q >= 0x1p25) continue;
    const mpq_class step = mpq_class(g.p) / mpq_class(g.q) / mpq_class(std::ldexp(1.0, g.t));
    const mpq_class n = reference::rational(dtype::f32, std::bit_cast<std::uint32_t>(main));
    mpq_class wanted = step * (n + mpq_class(1, 1000000));
    double c = wanted.get_d();
    const int away = static_cast<int>(words.below(5)) - 2;
    for (int k = 0; k < std::abs(away); ++k) c = std::nextafter(c, away < 0 ? 0.0 : HUGE_VAL);
    // The sign of c - step (N + 10^-6).
    const mpq_class rest = reference::rational(c) / step - mpq_class(1, 1000000);
    int want = 0;
    if (kind == norm_kind::squares) {
      want = rest <= 0 ? -1 : cmp(mpq_class(rest * rest), sum);
    } else {
      want = cmp(rest, sum);
    }
    want = want < 0 ? -1 : want > 0 ? 1 : 0;
    equal += want == 0 ? 1 : 0;
    CAPTURE(i);
    REQUIRE(num::compare_exactly(kind, s, c, g) == want);
    const num::wide<double> total = num::total_of(s);
    REQUIRE((abs(mpq_class(total.value.hi) + mpq_class(total.value.lo) - sum) <= total.error));
  }
  CHECK(equal > 100);
}

TEST_CASE("clip: sums of binary64 know their error, against GMP") {
  reference::word_stream words(127, 0);
  int exact = 0;
  for (int i = 0; i < 2000; ++i) {
    num::norm_sum<double> parts[3];
    mpq_class sum = 0;
    const bool squares = words.flip();
    const int spread = static_cast<int>(1 + words.below(300)), bits = static_cast<int>(1 + words.below(53));
    const auto count = static_cast<int>(1 + words.below(200));
    for (int k = 0; k < count; ++k) {
      const auto m = static_cast<double>(words.next64() >> (64 - bits));
      const double x = std::ldexp(words.flip() ? m : -m,
                                  static_cast<int>(words.below(static_cast<std::uint32_t>(spread))) - spread / 2);
      auto& part = parts[words.below(3)];
      squares ? part.add<num::norm_kind::squares>(x) : part.add<num::norm_kind::magnitudes>(x);
      const mpq_class v = abs(reference::rational(x));
      sum += squares ? mpq_class(v * v) : v;
    }
    parts[0].merge(parts[1]);
    parts[0].merge(parts[2]);
    const num::dd total = parts[0].sum.total();
    const double bound = parts[0].sum.bound();
    REQUIRE(total.hi == total.hi + total.lo);
    REQUIRE((abs(mpq_class(reference::rational(total.hi) + reference::rational(total.lo) - sum)) <=
             reference::rational(bound)));
    CHECK(bound <= total.hi * count * 0x1p-104);
    exact += bound == 0 ? 1 : 0;
  }
  CHECK(exact > 200);
  CHECK(exact < 1900);
}

// The same of sums of binary64, with P and Q of up to 54 bits.
TEST_CASE("clip: the side of a step of binary64, against GMP") {
  reference::word_stream words(113, 0);
  int equal = 0;
  for (int i = 0; i < 5'000; ++i) {
    using num::norm_kind;
    const auto kind = static_cast<norm_kind>(words.below(3));
    num::norm_accumulator_of<double> s;
    mpq_class sum = 0;
    const auto add = [&](double x) {
      num::add_exactly<double>(s, kind, x);
      const mpq_class v = abs(reference::rational(x));
      sum += kind == norm_kind::squares ? mpq_class(v * v) : v;
    };
    const bool aimed = words.flip();
    const int e = aimed ? static_cast<int>(words.below(20)) - 20 : static_cast<int>(words.below(2000)) - 1000;
    const double main = std::ldexp(static_cast<double>(1 + words.below(1 << 24)), e);
    add(main);
    if (words.flip()) add(std::ldexp(main, -static_cast<int>(words.below(200))));
    if (words.below(4) == 0) add(0x1p-1074);
    // c (10^6 Q) = P (10^6 N + 1) for the N of `main`, where the double has the bits, and beside.
    const std::uint64_t some = words.next64();
    std::uint64_t p = aimed ? 15625 * (some % 16 | 1) : some >> 10 | 1;
    std::uint64_t q = aimed ? std::uint64_t{1} << std::ilogb(static_cast<double>(p)) : words.next64() >> 11 | 1;
    while (p < q) p *= 2;
    while (p >= 2 * q) q *= 2;
    if (p >> 54 != 0 || q >> 54 != 0) continue;
    const mpq_class exact_p(mpz_class(static_cast<unsigned long>(p))),
        exact_q(mpz_class(static_cast<unsigned long>(q)));
    const mpq_class step = exact_p / exact_q;
    const mpq_class wanted = step * (reference::rational(main) + mpq_class(1, 1000000));
    // c 2^t, c about 1.
    const double near_c = wanted.get_d();
    const int t = std::ilogb(near_c);
    mpq_class small = wanted;
    small *= reference::power_of_two(-t);
    double c = small.get_d();
    const int away = static_cast<int>(words.below(5)) - 2;
    for (int k = 0; k < std::abs(away); ++k) c = std::nextafter(c, away < 0 ? 0.0 : HUGE_VAL);
    const mpq_class rest = reference::rational(c) * reference::power_of_two(t) / step - mpq_class(1, 1000000);
    int want = rest <= 0 ? -1 : cmp(kind == norm_kind::squares ? mpq_class(rest * rest) : rest, sum);
    want = want < 0 ? -1 : want > 0 ? 1 : 0;
    equal += want == 0 ? 1 : 0;
    CAPTURE(i);
    REQUIRE(num::compare_exactly<double>(kind, s, c, p, q, t) == want);
  }
  CHECK(equal > 20);
}

TEST_CASE("clip: special values by their bits") {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  using patterns = std::vector<std::uint32_t>;
  for (const tier first : {tier::proved, tier::double_double, tier::exact}) {
    context ctx({.first_tier = first});
    // The clipped gradients, in place, then the norm.
    const auto of = [&](std::vector<float> g, double max_norm, double p = 2) {
      float norm = 7;
      const const_tensor_view in(g);
      const tensor_view out(g);
      clip_grad_norm(ctx, {&in, 1}, {&out, 1}, {.max_norm = max_norm, .p = p}, tensor_view(&norm, dtype::f32, {}));
      patterns all;
      for (const float x : g) all.push_back(bits(x));
      all.push_back(bits(norm));
      return all;
    };
    const float most = std::numeric_limits<float>::max();
    CHECK(of({3, -4, -0.0f}, 6) == patterns{bits(3), bits(-4), bits(-0.0f), bits(5)});
    CHECK(of({3, -4, -0.0f}, 0) == patterns{0, bits(-0.0f), bits(-0.0f), bits(5)});
    CHECK(of({3, -4, -0.0f}, -0.0) == patterns{0, bits(-0.0f), bits(-0.0f), bits(5)});
    CHECK(of({3, -4}, inf) == patterns{bits(3), bits(-4), bits(5)});
    CHECK(of({0, -0.0f}, 0x1p-1074) == patterns{0, bits(-0.0f), 0});
    CHECK(of({}, 1) == patterns{0});
    CHECK(of({3, -4}, 1) == patterns{bits(0x1.33333p-1f), bits(-0x1.999994p-1f), bits(5)});
    CHECK(of({3, -4}, 1, 1) == patterns{bits(0x1.b6db6ap-2f), bits(-0x1.249246p-1f), bits(7)});
    CHECK(of({3, -4}, 1, inf) == patterns{bits(0x1.7ffffap-1f), bits(-0x1.fffff8p-1f), bits(4)});
    CHECK(of({3, -4}, 0x1p-1074) == patterns{0, bits(-0.0f), bits(5)});
    CHECK(of({most, most}, 1e300) == patterns{bits(most), bits(most), bits(inf)});
    for (const double p : norms) {
      for (const double c : {0.0, 1.0, static_cast<double>(inf)}) {
        CHECK(of({inf, -2, 0}, c, p) == patterns{0x7fc00000, bits(-0.0f), 0, bits(inf)});
        CHECK(of({inf, -2, no_number}, c, p) == patterns{0x7fc00000, 0x7fc00000, 0x7fc00000, 0x7fc00000});
      }
    }
  }
}

TEST_CASE("clip: lists without tensors, without elements, and without a norm") {
  context ctx;
  float norm = 7;
  const tensor_view to(&norm, dtype::f32, {});
  total_norm(ctx, {}, to);
  CHECK(std::bit_cast<std::uint32_t>(norm) == 0);
  norm = 7;
  clip_grad_norm(ctx, {}, {}, {}, to);
  CHECK(std::bit_cast<std::uint32_t>(norm) == 0);
  clip_grad_norm(ctx, {}, {}, {});
  std::vector<float> g{3, 4};
  norm = 7;
  const const_tensor_view all[] = {const_tensor_view(g.data(), {0}), const_tensor_view(g)};
  total_norm(ctx, {all, 1}, to);
  CHECK(std::bit_cast<std::uint32_t>(norm) == 0);
  const tensor_view out[] = {tensor_view(g.data(), {0}), tensor_view(g)};
  clip_grad_norm(ctx, all, out, {.max_norm = 2.5});
  CHECK(g == std::vector<float>{0x1.7ffffap0f, 0x1.fffffap0f});
}
