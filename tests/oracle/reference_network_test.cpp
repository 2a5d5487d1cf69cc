// Known answers of the oracle for convolution, pooling, the softmax family, optimisers and random numbers, derived by
// hand: patterns are spelled out.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/elementwise/elementwise.hpp"
#include "reference/evaluate.hpp"
#include "reference/numbers/real.hpp"

namespace {

using namespace repdl;
using namespace repdl::reference;
using integers = std::vector<std::int64_t>;

constexpr std::uint32_t inf = 0x7f800000, nan32 = 0x7fc00000, sign = 0x80000000, largest = 0x7f7fffff;

std::uint32_t bits(double x) {
  return static_cast<std::uint32_t>(convert(dtype::f64, dtype::f32, std::bit_cast<std::uint64_t>(x)));
}
array tensor(shape_list shape, const std::vector<std::uint32_t>& v) { return {dtype::f32, std::move(shape), v}; }
array vec(const std::vector<std::uint32_t>& v) { return tensor({static_cast<std::int64_t>(v.size())}, v); }
array classes(const std::vector<std::int64_t>& v) { return {dtype::i64, {static_cast<std::int64_t>(v.size())}, v}; }
patterns of(const std::string& op, const std::vector<array>& in, const attributes& attrs = {}) {
  return evaluate(op, in, attrs).patterns();
}
attribute text(const char* name, const char* v) { return {name, std::string(v)}; }
attribute list(const char* name, integers v) { return {name, std::move(v)}; }
attribute integer(const char* name, std::int64_t v) { return {name, v}; }

std::vector<std::uint32_t> counting(int n) {
  std::vector<std::uint32_t> v;
  for (int i = 1; i <= n; ++i) v.push_back(bits(i));
  return v;
}

TEST_SUITE_BEGIN("portable values");

TEST_CASE("reference: intervals enclose, and the precision grows until they round") {
  const interval third(53, mpq_class(1, 3));
  CHECK(mpfr_less_p(third.lo(), third.hi()) != 0);
  const mpq_class quarter(1, 4), sixth(1, 6);
  for (const mpfr_prec_t p : {24, 64, 300}) {
    const auto holds = [&](const interval& v, double x) {
      return mpfr_cmp_d(v.lo(), x + 1e-6) < 0 && mpfr_cmp_d(v.hi(), x - 1e-6) > 0 &&
             mpfr_lessequal_p(v.lo(), v.hi()) != 0;
    };
    CHECK(holds(sin_pi(interval(p, sixth)), 0.5));
    CHECK(holds(cos_pi(interval(p, quarter)), 0.70710678));
    CHECK(holds(sin_pi(interval(p, quarter)), 0.70710678));
    CHECK(holds(cos_pi(interval(p, mpq_class(1, 3))), 0.5));
    CHECK(holds(log(exp(interval(p, sixth))), 1.0 / 6));
    CHECK(holds(interval(p, mpq_class(-2)) * interval(p, sixth) / interval(p, mpq_class(-4)), 1.0 / 12));
  }
  // 1 + 2^-24 + 2^-400: above a midpoint by less than 128 or 256 bits show
  int calls = 0;
  const mpq_class v = 1 + power_of_two(-24) + power_of_two(-400);
  CHECK(decide(dtype::f32, [&](mpfr_prec_t p) { return ++calls, interval(p, v); }) == 0x3f800001);
  CHECK(calls == 3);
  CHECK((fixed(1) == 1));  // no printing: it would need libgmpxx
  CHECK((rational(dtype::f32, sign | 0x3fc00000) == mpq_class(-3, 2)));
}

TEST_CASE("reference: conv2d and its gradients") {
  // image rows 1 2 3 / 4 5 6 / 7 8 9, kernel 1 10 / 100 1000
  const array x = tensor({1, 1, 3, 3}, counting(9));
  const array w = tensor({1, 1, 2, 2}, {bits(1), bits(10), bits(100), bits(1000)});
  CHECK(of("conv2d", {x, w}) == patterns{bits(5421), bits(6532), bits(8754), bits(9865)});
  CHECK(of("conv2d", {x, w, vec({bits(0.5)})}) == patterns{bits(5421.5), bits(6532.5), bits(8754.5), bits(9865.5)});
  CHECK(of("conv2d", {x, w}, {list("dilation", {2, 2})}) == patterns{bits(9731)});  // 1 + 30 + 700 + 9000
  // padding 1 above and 2 at the right, stride 2: windows at rows -1, 1 and columns 0, 2
  const attributes attrs{list("padding", {1, 0, 0, 2}), list("stride", {2, 2})};
  const array padded = evaluate("conv2d", {x, w}, attrs);
  CHECK(padded.shape == shape_list{1, 1, 2, 2});
  CHECK(padded.patterns() == patterns{bits(2100), bits(300), bits(8754), bits(906)});
  // groups: each channel has its own kernel
  const array two = tensor({1, 2, 1, 1}, {bits(3), bits(5)}), factors = tensor({2, 1, 1, 1}, {bits(7), bits(11)});
  CHECK(of("conv2d", {two, factors}, {integer("groups", 2)}) == patterns{bits(21), bits(55)});
  // an absent tap is not 0 * inf
  const array infinite = tensor({1, 1, 1, 2}, {inf, bits(1)});
  CHECK(of("conv2d", {tensor({1, 1, 1, 1}, {bits(2)}), infinite}, {list("padding", {0, 0, 1, 0})}) ==
        patterns{bits(2)});

  const array g = tensor({1, 1, 2, 2}, {bits(1), bits(2), bits(3), bits(4)});
  CHECK(of("conv2d_grad_input", {g, w}, {list("size", {3, 3})}) ==
        patterns{bits(1), bits(12), bits(20), bits(103), bits(1234), bits(2040), bits(300), bits(3400), bits(4000)});
  CHECK(of("conv2d_grad_weight", {g, x}, {list("kernel", {2, 2})}) ==
        patterns{bits(37), bits(47), bits(67), bits(77)});  // 1*1 + 2*2 + 3*4 + 4*5
  CHECK(of("conv2d_grad_bias", {tensor({2, 2, 1, 1}, {bits(1), bits(2), bits(3), bits(0x1p-25)})}) ==
        patterns{bits(4), bits(2)});
  // a pixel that no window reads
  CHECK(of("conv2d_grad_input", {tensor({1, 1, 1, 1}, {bits(-1)}), tensor({1, 1, 1, 1}, {bits(1)})},
           {list("size", {1, 2}), list("stride", {1, 2})}) == patterns{bits(-1), 0});

  // ((1 + 2^-24) + 2^-24) rounds twice in the chain, once exactly; a bias is another addition
  const array steps = tensor({1, 3, 1, 1}, {bits(1), bits(0x1p-24), bits(0x1p-24)});
  const array ones = tensor({1, 3, 1, 1}, std::vector<std::uint32_t>(3, bits(1)));
  CHECK(of("conv2d", {steps, ones}) == patterns{0x3f800001});
  CHECK(of("conv2d", {steps, ones}, {text("accumulate", "fma_chain")}) == patterns{bits(1)});
  CHECK(of("conv2d", {steps, ones, vec({bits(0x1p-24)})}) == patterns{0x3f800002});  // 1 + 3 * 2^-24, a tie to even
  CHECK(of("conv2d", {steps, ones, vec({bits(0x1.8p-24)})}, {text("accumulate", "fma_chain")}) == patterns{0x3f800001});
  // the chain over output channel first: 2^24 + 1 + 1 in this order stays, in the other one does not
  const array three = tensor({1, 3, 1, 1}, {bits(0x1p24), bits(1), bits(1)});
  CHECK(of("conv2d_grad_input", {three, tensor({3, 1, 1, 1}, std::vector<std::uint32_t>(3, bits(1)))},
           {list("size", {1, 1}), text("accumulate", "fma_chain")}) == patterns{bits(0x1p24)});
  // a tiny negative product makes the chain -0, and a padded tap must not make it +0 again
  const array tiny = tensor({1, 1, 1, 1}, {sign | 1});
  CHECK(of("conv2d", {tiny, tensor({1, 1, 1, 2}, {bits(0.25), bits(1)})},
           {list("padding", {0, 0, 0, 1}), text("accumulate", "fma_chain")}) == patterns{sign});
  CHECK(of("conv2d", {tiny, tensor({1, 1, 1, 2}, {bits(0.25), bits(1)})}, {list("padding", {0, 0, 0, 1})}) ==
        patterns{sign});  // not zero: keeps its sign
}

TEST_CASE("reference: pooling") {
  const array x = tensor({1, 1, 2, 3}, {bits(1), bits(5), bits(-2), sign, 0, bits(5)});
  const attributes two{list("kernel", {2, 2}), list("stride", {1, 1})};
  CHECK(of("max_pool2d", {x}, two) == patterns{bits(5), bits(5)});
  CHECK(of("avg_pool2d", {x}, two) == patterns{bits(1.5), bits(2)});
  CHECK(of("max_pool2d", {tensor({1, 1, 1, 3}, {sign, 0, 0xffc00001})},
           {list("kernel", {1, 2}), list("stride", {1, 1})}) == patterns{0, nan32});
  // both windows have their first 5 at the same pixel
  const array g = tensor({1, 1, 1, 2}, {bits(1), bits(0x1p-24)});
  CHECK(of("max_pool2d_backward", {g, x}, two) == patterns{0, bits(1), 0, 0, 0, 0});
  CHECK(of("max_pool2d_backward", {tensor({1, 1, 1, 2}, {0x3f800001, bits(0x1p-24)}), x}, two) ==
        patterns{0, 0x3f800002, 0, 0, 0, 0});
  // padding is absent: of one corner pixel in a window of four
  const attributes corner{list("kernel", {2, 2}), list("padding", {1, 0, 1, 0})};
  const array one = tensor({1, 1, 1, 1}, {bits(3)});
  CHECK(of("avg_pool2d", {one}, corner) == patterns{bits(3)});
  attributes included = corner;
  included.push_back({"count_include_pad", true});
  CHECK(of("avg_pool2d", {one}, included) == patterns{bits(0.75)});
  CHECK(of("max_pool2d", {tensor({1, 1, 1, 1}, {inf | sign})}, corner) == patterns{inf | sign});
  // windows with 1 and 2 pixels: g0 + g1 / 2 and g1 / 2; 3 * 2^-149 / 2 is a tie to even
  const attributes row{list("kernel", {1, 2}), list("padding", {0, 0, 1, 0}), list("stride", {1, 1}),
                       list("size", {1, 2})};
  CHECK(of("avg_pool2d_backward", {tensor({1, 1, 1, 2}, {bits(1), bits(3)})}, row) == patterns{bits(2.5), bits(1.5)});
  CHECK(of("avg_pool2d_backward", {tensor({1, 1, 1, 2}, {0, 3})}, row) == patterns{2, 2});
  // thirds: 1/3 + 1/3 + 1/3 = 1 exactly
  CHECK(of("avg_pool2d_backward", {tensor({1, 1, 1, 3}, std::vector<std::uint32_t>(3, bits(1)))},
           {list("kernel", {1, 3}), list("stride", {1, 1}), list("size", {1, 5})}) ==
        patterns{0x3eaaaaab, 0x3f2aaaab, bits(1), 0x3f2aaaab, 0x3eaaaaab});
  CHECK(of("avg_pool2d", {tensor({1, 1, 1, 2}, {largest, largest})}, {list("kernel", {1, 2})}) == patterns{largest});
  // rounded up: windows of 2 from 0 and 2, the second with one pixel; from 0 alone where the second would begin on padding
  const attributes up{list("kernel", {1, 2}), {"ceil_mode", true}};
  const array three = tensor({1, 1, 1, 3}, {bits(1), bits(4), bits(9)});
  CHECK(of("max_pool2d", {three}, up) == patterns{bits(4), bits(9)});
  CHECK(of("avg_pool2d", {three}, up) == patterns{bits(2.5), bits(9)});
  CHECK(of("avg_pool2d", {tensor({1, 1, 1, 2}, {bits(1), bits(4)})},
           {list("kernel", {1, 2}), list("padding", {0, 0, 0, 1}), {"ceil_mode", true}}) == patterns{bits(2.5)});
  attributes counted = up;
  counted.push_back(list("padding", {0, 0, 1, 1}));
  counted.push_back({"count_include_pad", true});
  // windows from -1, 1, of 2 taps each on five padded columns
  CHECK(of("avg_pool2d", {three}, counted) == patterns{bits(0.5), bits(6.5)});
  counted[0] = list("kernel", {1, 4});
  counted.push_back(list("stride", {1, 2}));
  // from -1 and 1: 3 pixels of 4 taps; 2 pixels, 1 on padding and 1 beyond
  CHECK(of("avg_pool2d", {three}, counted) == patterns{bits(3.5), 0x408aaaab});
  // an exact zero is +0, a quotient that underflows keeps its sign
  CHECK(of("avg_pool2d", {tensor({1, 1, 1, 3}, {bits(6), 0, 1})},
           {list("kernel", {1, 1}), integer("divisor_override", -4)}) == patterns{bits(-1.5), 0, sign});
  // f16: (1 + (1 + 2^-10)) / 2 is a tie, its neighbour is even; the largest number twice
  const array halves(dtype::f16, {1, 1, 1, 4}, std::vector<std::uint32_t>{0x3c00, 0x3c01, 0x7bff, 0x7bff});
  CHECK(of("avg_pool2d", {halves}, {list("kernel", {1, 2})}) == patterns{0x3c00, 0x7bff});
  const array ones(dtype::bf16, {1, 1, 1, 2}, std::vector<std::uint32_t>{0x3f80, 0x3f80});
  CHECK(of("avg_pool2d_backward", {ones}, {list("kernel", {1, 3}), list("stride", {1, 1}), list("size", {1, 4})}) ==
        patterns{0x3eab, 0x3f2b, 0x3f2b, 0x3eab});
}

TEST_CASE("reference: softmax, log_softmax, logsumexp") {
  CHECK(of("softmax", {vec({bits(5), bits(5), bits(5), inf | sign})}) ==
        patterns{0x3eaaaaab, 0x3eaaaaab, 0x3eaaaaab, 0});
  CHECK(of("softmax", {vec({bits(0), bits(1)})}) == patterns{0x3e89b2b1, 0x3f3b26a8});  // sigmoid(-1), sigmoid(1)
  CHECK(of("softmax", {vec({bits(0), bits(-1000)})}) == patterns{bits(1), 0});
  CHECK(of("softmax", {vec({nan32, bits(0)})}) == patterns{nan32, nan32});
  CHECK(of("softmax", {vec({inf, bits(0)})}) == patterns{nan32, nan32});
  CHECK(of("softmax", {vec({inf | sign, inf | sign})}) == patterns{nan32, nan32});
  CHECK(of("softmax", {vec({largest, largest | sign})}) == patterns{bits(1), 0});

  CHECK(of("log_softmax", {vec({bits(0), bits(-1000)})}) == patterns{sign, bits(-1000)});
  CHECK(of("log_softmax", {vec({bits(0), inf | sign})}) == patterns{0, inf | sign});
  CHECK(of("log_softmax", {vec({sign})}) == patterns{0});
  CHECK(of("log_softmax", {vec({bits(2), bits(2)})}) == patterns{0xbf317218, 0xbf317218});  // -ln 2
  // gaps that are midpoints: the result lies below them
  CHECK(of("log_softmax", {vec({bits(0x1p27), bits(-8)})}) == patterns{sign, bits(-0x1.000002p27)});
  CHECK(of("log_softmax", {vec({bits(0x1p24), bits(-1)})}) == patterns{sign, bits(-0x1.000002p24)});
  CHECK(of("log_softmax", {vec({bits(100), bits(0x1p-18)})}) == patterns{0x8000001b, bits(-100)});
  CHECK(of("log_softmax", {vec({largest, largest | sign})}) == patterns{sign, inf | sign});
  CHECK(of("log_softmax", {vec({bits(0x1p27), bits(-8), bits(0x1p27)})}) ==
        patterns{0xbf317218, bits(-0x1.000002p27), 0xbf317218});

  CHECK(of("logsumexp", {vec({})}) == patterns{inf | sign});
  CHECK(of("logsumexp", {vec({inf | sign, bits(3), inf | sign})}) == patterns{bits(3)});
  CHECK(of("logsumexp", {vec({inf | sign, sign})}) == patterns{0});
  CHECK(of("logsumexp", {vec({inf | sign, inf})}) == patterns{inf});
  CHECK(of("logsumexp", {vec({inf, nan32})}) == patterns{nan32});
  CHECK(of("logsumexp", {vec({bits(0), bits(0)})}) == patterns{0x3f317218});  // ln 2
  CHECK(of("logsumexp", {vec({largest, largest})}) == patterns{largest});
  const array square = tensor({2, 2}, {bits(1), bits(1), bits(1), bits(1)});
  const array kept = evaluate("logsumexp", {square}, {list("axis", {0, 1}), {"keepdim", true}});
  CHECK(kept.shape == shape_list{1, 1});
  CHECK(kept.get(0) == 0x4018b90c);  // 1 + 2 ln 2 = 2.38629436
}

TEST_CASE("reference: gradients of the softmax family") {
  CHECK(of("softmax_backward", {vec({bits(1), bits(2), bits(3)}), vec({bits(0.25), bits(0.25), bits(0.5)})}) ==
        patterns{bits(-0.3125), bits(-0.0625), bits(0.375)});
  CHECK(of("softmax_backward", {vec({bits(7), bits(7)}), vec({bits(0.5), bits(0.5)})}) == patterns{0, 0});
  CHECK(of("softmax_backward", {vec({inf, bits(7)}), vec({bits(0.5), bits(0)})}) == patterns{nan32, nan32});
  // y = 0: g - sum; y = -inf: weight 0
  CHECK(of("log_softmax_backward", {vec({bits(1), bits(2)}), vec({sign, inf | sign})}) == patterns{bits(-2), bits(2)});
  CHECK(of("log_softmax_backward", {vec({bits(1), bits(-1)}), vec({bits(-5), bits(-7)})}) ==
        patterns{bits(1), bits(-1)});
  CHECK(of("log_softmax_backward", {vec({sign, bits(0x1p-100)}), vec({bits(-200), bits(1)})}) ==
        patterns{sign, bits(0x1p-100 - 0x1.5bf0a8b145769p-99)});
  // g_0 - e^y G = 1 - (1 + 2^-24) e^y: beside the midpoint by y
  CHECK(of("log_softmax_backward", {vec({bits(0x1p25), bits(0x1p25), bits(1)}), vec({sign | 1, 1, 0})}) ==
        patterns{bits(-0x1p25), bits(-0x1p25), bits(-0x1p26)});
  CHECK(of("log_softmax_backward", {vec({bits(0), bits(0x1p24), bits(1)}), vec({sign | 1, bits(-200), bits(-200)})}) ==
        patterns{bits(-0x1p24), bits(0x1p24), bits(1)});
  CHECK(of("log_softmax_backward", {vec({bits(0), bits(0x1p24), bits(1)}), vec({1, bits(-200), bits(-200)})}) ==
        patterns{bits(-0x1.000002p24), bits(0x1p24), bits(1)});

  const attributes first{list("axis", {0})};
  const auto scalar = [](std::uint32_t v) { return tensor({}, {v}); };
  CHECK(of("logsumexp_backward", {scalar(bits(3)), vec({bits(1), bits(1), inf | sign})}, first) ==
        patterns{bits(1.5), bits(1.5), 0});
  CHECK(of("logsumexp_backward", {scalar(3), vec({bits(1), bits(1)})}, first) == patterns{2, 2});  // a tie to even
  // the same with e^-1000 more in the sum: below the tie
  CHECK(of("logsumexp_backward", {scalar(3), vec({bits(1), bits(1), bits(-1000)})}, first) == patterns{1, 1, 0});
  CHECK(of("logsumexp_backward", {scalar(sign | 3), vec({bits(1), bits(1), largest | sign})}, first) ==
        patterns{sign | 1, sign | 1, sign});
  CHECK(of("logsumexp_backward", {scalar(inf), vec({bits(1), bits(-1000), inf | sign})}, first) ==
        patterns{inf, inf, nan32});
  CHECK(of("logsumexp_backward", {scalar(sign), vec({bits(1), inf | sign})}, first) == patterns{sign, sign});
}

TEST_CASE("reference: cross_entropy and its gradient") {
  const array even = tensor({2, 2}, {bits(1), bits(1), bits(3), inf | sign});
  const attributes none{text("reduction", "none"), integer("ignore_index", 7)};
  CHECK(of("cross_entropy", {even, classes({0, 0})}, none) == patterns{0x3f317218, 0});  // ln 2, and one finite logit
  CHECK(of("cross_entropy", {even, classes({0, 1})}, none) == patterns{0x3f317218, inf});
  CHECK(of("cross_entropy", {even, classes({7, 2})}, none) == patterns{0, nan32});
  CHECK(of("cross_entropy", {even, classes({-100, 0})}) == patterns{0});
  CHECK(of("cross_entropy", {even, classes({0, 0})}) == patterns{0x3eb17218});  // ln 2 / 2
  CHECK(of("cross_entropy", {even, classes({0, 0})}, {text("reduction", "sum")}) == patterns{0x3f317218});
  CHECK(of("cross_entropy", {even, classes({-100, -100})}) == patterns{nan32});
  CHECK(of("cross_entropy", {even, classes({-100, -100})}, {text("reduction", "sum")}) == patterns{0});
  CHECK(of("cross_entropy", {even, classes({0, 5})}, {text("reduction", "sum")}) == patterns{nan32});
  // losses 2^24 + 1 + tiny: beside the midpoint, also as half of their double
  const array gap = tensor({2, 2}, {bits(0x1p24), bits(-1), bits(0x1p24), bits(-1)});
  CHECK(of("cross_entropy", {gap, classes({1, 0})}, none) == patterns{bits(0x1.000002p24), 0});
  CHECK(of("cross_entropy", {gap, classes({1, 1})}) == patterns{bits(0x1.000002p24)});
  const array rank1 = vec({bits(0x1p24), bits(-1)});
  CHECK(evaluate("cross_entropy", {rank1, array(dtype::i64, {}, std::vector<std::int64_t>{1})}).get(0) ==
        bits(0x1.000002p24));

  const auto scalar = [](std::uint32_t v) { return tensor({}, {v}); };
  const array four = tensor({1, 4}, {bits(2), bits(2), bits(2), bits(2)});
  CHECK(of("cross_entropy_backward", {scalar(bits(1)), four, classes({2})}) ==
        patterns{bits(0.25), bits(0.25), bits(-0.75), bits(0.25)});
  CHECK(of("cross_entropy_backward", {scalar(bits(1)), even, classes({0, 1})}) ==
        patterns{bits(-0.25), bits(0.25), bits(0.5), bits(-0.5)});
  CHECK(of("cross_entropy_backward", {scalar(bits(-1)), even, classes({-100, 0})}) == patterns{0, 0, sign, sign});
  CHECK(of("cross_entropy_backward", {scalar(bits(1)), even, classes({9, 0})}, {text("reduction", "sum")}) ==
        patterns{nan32, nan32, 0, 0});
  // g (1 - e^-2000) / 2 and g (e^-2000 - 1) / 2 with g / 2 a tie: below it in magnitude
  const array far = tensor({2, 2}, {bits(1000), bits(-1000), bits(1000), bits(-1000)});
  CHECK(of("cross_entropy_backward", {scalar(3), far, classes({1, 0})}) == patterns{1, sign | 1, sign, 0});
  // three eights of 4: 3/4 g + tiny; 2 * 2^-149 * 3/4 = 1.5 * 2^-149 and more
  const array far4 = tensor({1, 5}, {bits(2), bits(2), bits(2), bits(2), bits(-1000)});
  CHECK(of("cross_entropy_backward", {scalar(6), far4, classes({0})}) == patterns{sign | 5, 1, 1, 1, 0});
  CHECK(of("cross_entropy_backward", {scalar(6), four, classes({0})}) == patterns{sign | 4, 2, 2, 2});
  CHECK(of("cross_entropy_backward", {scalar(inf), even, classes({0, 0})}) == patterns{inf | sign, inf, nan32, nan32});
}

TEST_CASE("reference: sgd and adamw") {
  const auto step = [](const std::string& op, const std::vector<std::uint32_t>& in, const attributes& attrs) {
    std::vector<array> operands;
    operands.reserve(in.size());
    for (const std::uint32_t v : in) operands.push_back(v == 0xdead ? array::none() : vec({v}));
    patterns all;
    for (const array& a : evaluate_all(op, operands, attrs)) all.push_back(static_cast<std::uint32_t>(a.get(0)));
    return all;
  };
  const std::uint32_t absent = 0xdead;
  CHECK(step("sgd", {bits(1), bits(0.5)}, {{"lr", 0.5}}) == patterns{bits(0.75)});
  CHECK(step("sgd", {bits(1), bits(0x1p-24)}, {{"lr", -1.0}}) == patterns{bits(1)});  // ties to even
  CHECK(step("sgd", {0x3f800001, bits(0x1p-24)}, {{"lr", -1.0}}) == patterns{0x3f800002});
  CHECK(step("sgd", {bits(0.5), bits(0.5)}, {{"lr", 1.0}}) == patterns{0});
  CHECK(step("sgd", {sign, sign}, {{"lr", 1.0}}) == patterns{0});
  CHECK(step("sgd", {bits(2), bits(1)}, {{"lr", 1.0}, {"weight_decay", 0.5}}) == patterns{0});  // 2 - (1 + 1)
  CHECK(step("sgd", {inf, bits(1)}, {{"lr", 1.0}}) == patterns{nan32});                         // 0 * inf in the decay
  // 0.1 is the double: 1 - 0.1 * 1 is below 0.9
  CHECK(step("sgd", {bits(1), bits(1)}, {{"lr", 0.1}}) == patterns{0x3f666666});
  // Half an ulp of 16 bits, and a little more; the velocity stays f32.
  const auto narrow = [](dtype type, std::uint32_t p, std::uint32_t g, const attributes& attrs) {
    const std::vector<std::uint32_t> of[] = {{p}, {g}};
    std::vector<array> operands{array(type, {1}, of[0]), array(type, {1}, of[1])};
    if (attrs.size() > 1) operands.push_back(array::none());
    return evaluate_all("sgd", operands, attrs);
  };
  for (const auto& [type, one, half] : {std::tuple{dtype::f16, 0x3c00u, 0x1000u}, {dtype::bf16, 0x3f80u, 0x3b80u}}) {
    CHECK(narrow(type, one, half, {{"lr", -1.0}})[0].get(0) == one);
    CHECK(narrow(type, one + 1, half, {{"lr", -1.0}})[0].get(0) == one + 2);
    CHECK(narrow(type, one, half, {{"lr", -1.0 - 0x1p-52}})[0].get(0) == one + 1);
    const std::vector<array> both = narrow(type, one, half, {{"lr", -1.0}, {"momentum", 0.5}});
    CHECK(both[0].type == type);
    CHECK(both[1].type == dtype::f32);
    CHECK(both[1].get(0) == bits(type == dtype::f16 ? 0x1p-11 : 0x1p-8));
  }
  const attributes momentum{{"lr", 0.5}, {"momentum", 0.5}, {"dampening", 0.25}};
  CHECK(step("sgd", {bits(1), bits(4), absent}, momentum) == patterns{bits(-1), bits(4)});
  CHECK(step("sgd", {bits(1), bits(4), bits(2)}, momentum) == patterns{bits(-1), bits(4)});  // 1 + 3
  CHECK(step("sgd", {bits(1), bits(4), bits(6)}, {{"lr", 0.5}, {"momentum", 0.5}, {"nesterov", true}}) ==
        patterns{bits(-2.75), bits(7)});  // 1 - (4 + 3.5) / 2
  // the update reads the rounded velocity: 1 + 2^-25 becomes 1
  CHECK(step("sgd", {bits(1), bits(0x1p-25), bits(2)}, {{"lr", 1.0}, {"momentum", 0.5}}) == patterns{0, bits(1)});

  const auto adam = [](double b1, double b2, double eps, double decay, std::int64_t t) {
    return attributes{{"lr", 0.25}, {"beta1", b1}, {"beta2", b2}, {"eps", eps}, {"weight_decay", decay}, {"step", t}};
  };
  // 1 - 3 / sqrt(9) / 4
  CHECK(step("adamw", {bits(1), bits(3), bits(0), bits(0)}, adam(0, 0, 0, 0, 1)) ==
        patterns{bits(0.75), bits(3), bits(9)});
  CHECK(step("adamw", {bits(1), bits(3), bits(0), bits(0)}, adam(0.5, 0.5, 0, 0, 1)) ==
        patterns{bits(0.75), bits(1.5), bits(4.5)});
  CHECK(step("adamw", {bits(1), bits(3), bits(0), bits(0)}, adam(0, 0, 3, 0.5, 1)) ==
        patterns{bits(0.75), bits(3), bits(9)});  // 7/8 - 1/8
  CHECK(step("adamw", {bits(1), bits(0), bits(0), bits(0)}, adam(0, 0, 0, 0, 1)) == patterns{nan32, 0, 0});  // 0 / 0
  CHECK(step("adamw", {bits(1), bits(0), bits(0), bits(0)}, adam(0, 0, 1e-8, 0, 1)) == patterns{bits(1), 0, 0});
  CHECK(step("adamw", {bits(1), bits(-1), bits(0), bits(-4)}, adam(0.5, 0.5, 0, 0, 1)) ==
        patterns{nan32, bits(-0.5), bits(-1.5)});  // a negative second moment
  CHECK(step("adamw", {bits(1), bits(-1), bits(0), inf}, adam(0.5, 0.5, 0, 0, 1)) ==
        patterns{bits(1), bits(-0.5), inf});
  // second step, m' = 1, v' = 2, c1 = 3/4, c2 = 3/4: 1 - (4/3) / sqrt(8/3) / 4 = 1 - 1 / sqrt(24) = 0.79587585
  CHECK(step("adamw", {bits(1), bits(1), bits(1), bits(3)}, adam(0.5, 0.5, 0, 0, 2)) ==
        patterns{0x3f4bbe85, bits(1), bits(2)});
  // p - lr (1 - tiny) with p - lr a midpoint: v' = g^2 (1 + 2^-23) makes the root irrational
  const std::uint32_t odd = 0x3f000001;  // (2^23 + 1) 2^-24; lr 2^-25 is half an ulp
  attributes near = adam(0.5, 0.5, 0, 0, 1);
  near[0].value = 0x1p-25;
  CHECK(step("adamw", {odd, bits(1), bits(0), bits(0)}, near)[0] == 0x3f000000);        // the tie
  CHECK(step("adamw", {odd, bits(1), bits(0), bits(0x1p-23)}, near)[0] == 0x3f000001);  // less is taken off
}

TEST_CASE("reference: normal, bernoulli, randint, dropout") {
  // The words are Random123's known answers: counter 0, key 0: 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
  const double u1 = (0x6627e8d5p0 + 1) * 0x1p-32, u2 = 0xe169c58dp-32;
  const array n = evaluate("normal", {}, {list("shape", {4})});
  const double r = std::sqrt(-2 * std::log(u1)), angle = 2 * 3.14159265358979323846 * u2;
  const auto value = [&](std::size_t i) { return std::bit_cast<float>(static_cast<std::uint32_t>(n.get(i))); };
  CHECK(value(0) == doctest::Approx(r * std::cos(angle)).epsilon(1e-6));
  CHECK(value(1) == doctest::Approx(r * std::sin(angle)).epsilon(1e-6));
  CHECK(of("normal", {}, {list("shape", {3}), {"mean", 0.1}, {"stddev", 0.0}}) == patterns(3, 0x3dcccccd));
  // a midpoint as the mean: the sign of the tiny rest decides; cos is positive and sin negative (u2 = 0.88)
  CHECK(of("normal", {}, {list("shape", {2}), {"mean", 1 + 0x1p-24}, {"stddev", 0x1p-200}}) ==
        patterns{0x3f800001, 0x3f800000});
  const array half =
      evaluate("normal", {}, {list("shape", {2}), text("dtype", "f16"), {"mean", -1 - 0x1p-11}, {"stddev", 0x1p-200}});
  CHECK(half.get(0) == 0xbc00);
  CHECK(half.get(1) == 0xbc01);

  const array b = evaluate("bernoulli", {}, {list("shape", {4}), {"p", 0x1.98p-2}});  // 0x66000000
  CHECK(b.type == dtype::boolean);
  CHECK(b.bytes == std::vector<unsigned char>{0, 0, 0, 0});
  CHECK(evaluate("bernoulli", {}, {list("shape", {4}), {"p", 0x6627e8d6p-32}}).bytes ==
        std::vector<unsigned char>{1, 0, 0, 0});
  CHECK(evaluate("bernoulli", {}, {list("shape", {4}), {"p", 0x6627e8d5p-32}}).bytes ==
        std::vector<unsigned char>{0, 0, 0, 0});
  CHECK(evaluate("bernoulli", {}, {list("shape", {2}), {"p", 1.0}}).bytes == std::vector<unsigned char>{1, 1});

  // W_0 = 0xe169c58d6627e8d5: 0.88 of the range
  const array k = evaluate("randint", {}, {list("shape", {2}), integer("low", -5), integer("high", 5)});
  CHECK(k.get(0) == 3);                             // -5 + 8
  CHECK(static_cast<std::int64_t>(k.get(1)) == 1);  // -5 + floor(10 * 0x9b00dbd8... / 2^64) = -5 + 6
  const array whole = evaluate("randint", {},
                               {list("shape", {1}), integer("low", std::numeric_limits<std::int64_t>::min()),
                                integer("high", std::numeric_limits<std::int64_t>::max())});
  CHECK(whole.get(0) == 0x6169c58d6627e8d4);  // floor(W (2^64 - 1) / 2^64) = W - 1, minus 2^63

  // p = 0.5 drops the words below 2^31: only the first
  CHECK(of("dropout", {vec({nan32, sign, largest, nan32 | 5})}, {{"p", 0.5}}) == patterns{0, sign, inf, nan32});
  CHECK(of("dropout_backward", {vec({bits(1), bits(3), 1, inf | sign})}, {{"p", 0.5}}) ==
        patterns{0, bits(6), 2, inf | sign});
  CHECK(of("dropout", {vec({bits(1), bits(1)})}, {{"p", 0.0}}) == patterns{bits(1), bits(1)});
  CHECK(of("dropout", {vec({bits(1), bits(1)})}, {{"p", 1.0}}) == patterns{0, 0});
  // 1 - p is exact: p = 2^-1074 divides by a number below 1, and 1 / (1 - tiny) is 1
  CHECK(of("dropout", {vec({bits(1)})}, {{"p", 0x1p-1074}, integer("seed", 3)}) == patterns{bits(1)});
  CHECK(of("dropout", {vec({bits(0), bits(0.7)})}, {{"p", 0.3}})[1] == 0x3f800000);  // 0.7f / (1 - 0.3)
}

}  // namespace

TEST_SUITE_END();
