// softmax and log_softmax in another format than x's: against the oracle in every way that must not matter, special values, ties and what is
// beside them by their bits, and what is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/ops/rows/softmax_binary64.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/wide_rows.hpp"

using namespace repdl;
using reference::array;
using reference::sample_class;
using reference::shape_list;
using tests::doubles, tests::huge, tests::least, tests::most, tests::none;

namespace {

constexpr dtype formats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};
const std::string two_operations[] = {"softmax", "log_softmax"};

attributes to_format(dtype to, std::int64_t axis = -1) { return {{"axis", axis}, {"dtype", std::string(name_of(to))}}; }

using bits = std::vector<std::uint64_t>;
void check(const std::string& op, const array& x, dtype to, const bits& want) {
  CAPTURE(op);
  for (const tier first : {tier::proved, tier::double_double, tier::exact}) {
    // 256 bits: numbers far below others are told apart by what they are, not by bits enough for both.
    for (const int last : {256, 2048}) {
      context ctx({.threads = 1, .first_tier = first, .last_tier_bits = last});
      const array got = tests::run(ctx, {op, {x}, to_format(to)}).at(0);
      CHECK(got.type == to);
      for (std::size_t i = 0; i < want.size(); ++i) CHECK(got.get(i) == want[i]);
    }
  }
}

}  // namespace

TEST_CASE("softmax in other formats: every class, tier, number of threads and layout, against the oracle") {
  tests::wide_rows rows(83);
  std::uint64_t stream = 0;
  for (const dtype from : formats) {
    for (const dtype to : formats) {
      if (from == to) continue;
      for (const std::string& op : two_operations) {
        for (const sample_class kind : tests::row_classes) {
          for (const std::int64_t n : {0, 1, 2, 5, 33}) {
            const bool is_across = ++stream % 3 == 0;
            const shape_list x = is_across ? shape_list{n, 3} : shape_list{2, n};
            const attributes attrs = to_format(to, is_across ? 0 : -1);
            CAPTURE(n);
            CAPTURE(std::string(name_of(from)));
            CAPTURE(std::string(name_of(to)));
            rows.check({op, reference::fill_inputs(op, kind, {x}, attrs, 49, stream, from), attrs}, kind,
                       from == dtype::f64 || to == dtype::f64);
          }
        }
      }
    }
  }
}

TEST_CASE("softmax in other formats: rows that threads share, and long ones") {
  context one({.threads = 1}), several({.threads = 3});
  std::uint64_t stream = 900;
  for (const std::string& op : two_operations) {
    for (const auto& [from, to] : {std::pair{dtype::f64, dtype::f32},
                                   {dtype::f16, dtype::f64},
                                   {dtype::f32, dtype::bf16},
                                   {dtype::bf16, dtype::f32}}) {
      for (const shape_list& x : {shape_list{1, 9001}, {60, 130}}) {
        const attributes attrs = to_format(to);
        const tests::call_case c{
            op, reference::fill_inputs(op, sample_class::normal_range, {x}, attrs, 49, ++stream, from), attrs};
        const std::vector<array> got = tests::run(one, c);
        CHECK(tests::run(several, c) == got);
        if (x[0] != 1) CHECK(got == reference::evaluate_all(op, c.in, c.attrs));
      }
    }
  }
}

TEST_CASE("softmax in other formats: near-ties, against the oracle") {
  // Rows (0, d), whose softmax is next to the middle between two numbers of the narrower format, and rows whose logarithm is.
  for (const dtype to : {dtype::f16, dtype::bf16, dtype::f32}) {
    const int bits = to == dtype::f16 ? 11 : to == dtype::bf16 ? 8 : 24;
    doubles x;
    for (const double k : {1.0, 3.0, 77.0, std::ldexp(1.0, bits - 1) + 1}) {
      for (const int e : {0, -3, -14, -24, -126, -140, -149}) {
        const double middle = std::ldexp(k, e - bits - 1);  // odd: of bits + 1 bits, or fewer, of subnormal results
        for (const double d :
             {std::log(middle), std::log(middle) - std::log1p(-middle), std::log(1 - middle) - std::log(middle)}) {
          if (!std::isfinite(d)) continue;
          for (const double y : {std::nextafter(d, -huge), d, std::nextafter(d, huge)}) {
            x.push_back(0);
            x.push_back(y);
          }
        }
      }
    }
    array rows = tests::row_of(x);
    rows.shape = {static_cast<std::int64_t>(x.size() / 2), 2};
    for (const std::string& op : two_operations) {
      const attributes attrs = to_format(to);
      const std::vector<array> want = reference::evaluate_all(op, {rows}, attrs);
      for (const tier first : {tier::proved, tier::exact}) {
        context ctx({.threads = 1, .first_tier = first});
        CHECK(tests::run(ctx, {op, {rows}, attrs}) == want);
      }
    }
  }
}

TEST_CASE("softmax in other formats: special values and ties by their bits") {
  using enum dtype;
  using tests::row, tests::row_of;
  // 1 - 2^-1010 is no tie, 1/3 in every format.
  check("softmax", row_of({0, -700}), f32, {0x3f800000, 0});
  check("softmax", row_of({1, 1, 1, -1e300}), f32, {0x3eaaaaab, 0x3eaaaaab, 0x3eaaaaab, 0});
  check("softmax", row({1, 1, 1}), f64, {0x3fd5555555555555, 0x3fd5555555555555, 0x3fd5555555555555});
  check("softmax", row({1, 1, 1}), f16, {0x3555, 0x3555, 0x3555});
  check("softmax", row_of({1, 1, 1}), bf16, {0x3eab, 0x3eab, 0x3eab});
  check("softmax", row_of({-huge, 2, -huge}), f16, {0, 0x3c00, 0});
  check("softmax", row({-tests::inf, 2, -tests::inf}), f64, {0, 0x3ff0000000000000, 0});
  check("softmax", row_of({1, none}), f16, {0x7e00, 0x7e00});
  check("softmax", row_of({1, huge}), f32, {0x7fc00000, 0x7fc00000});
  check("softmax", row_of({-huge, -huge}), bf16, {0x7fc0, 0x7fc0});
  check("softmax", row_of({most, -most, most}), f32, {0x3f000000, 0, 0x3f000000});
  check("softmax", row_of({-1e300}), bf16, {0x3f80});
  // Subnormal results: e^-17 is 0.69 2^-24, e^-17.4 0.47 of it; e^-103.97 a little more than 2^-150, and e^-103.98 less.
  check("softmax", row_of({0, -17, -17.4, -12}), f16, {0x3c00, 1, 0, 0x67});
  check("softmax", row({0, -17, -17.5f}), f16, {0x3c00, 1, 0});
  check("softmax", row_of({0, -103.97, -103.98}), f32, {0x3f800000, 1, 0});
  check("softmax", row_of({0, -127.9, -128.1}), bf16, {0x3f80, 0, 0});
  check("log_softmax", row_of({0, -1e300}), f32, {0x80000000, 0xff800000});
  check("log_softmax", row_of({7}), f32, {0});
  check("log_softmax", row({7}), f16, {0});
  check("log_softmax", row_of({-huge, 1e300, -huge}), f16, {0xfc00, 0, 0xfc00});
  check("log_softmax", row_of({0, none}), bf16, {0x7fc0, 0x7fc0});
  check("log_softmax", row_of({most, -most}), f32, {0x80000000, 0xff800000});
  // The gap is a tie of binary32, whose even number is the one nearer to 0, and the logarithm beside it is not nothing: 1.3 2^-739 of
  // 512. Where the gap is a little less than a tie, it is compared with that.
  for (const auto& [gap, even] : {std::pair{1024 + 0x1p-14, 0x44800000u}, {512 + 0x1p-15, 0x44000000u}}) {
    const std::uint32_t down = even | 0x80000000u, up = down + 1;
    CAPTURE(gap);
    check("log_softmax", row_of({0, -gap}), f32, {0x80000000, up});
    check("log_softmax", row_of({0, -gap, -1e300}), f32, {0x80000000, up, 0xff800000});
    check("log_softmax", row_of({least, -gap}), f32, {0x80000000, up});
    check("log_softmax", row_of({-0x1p-300, -gap}), f32, {0x80000000, down});
    check("log_softmax", row_of({-least, -gap}), f32, {0x80000000, gap < 1000 ? up : down});
    check("log_softmax", row_of({-0x1p-1000, -gap}), f32, {0x80000000, gap < 1000 ? up : down});
    check("log_softmax", row_of({-0x1p-738, -gap}), f32, {0x80000000, down});
    check("log_softmax", row_of({-0x1p-739, -gap}), f32, {0x80000000, gap < 1000 ? up : down});
  }
  // The tie beyond the greatest number.
  check("log_softmax", row_of({0, -65520}), f16, {0x8000, 0xfc00});
  check("log_softmax", row_of({-least, -65520}), f16, {0x8000, 0xfbff});
  check("log_softmax", row_of({0, -65519.999}), f16, {0x8000, 0xfbff});
  check("log_softmax", row({0, -65520}), f16, {0x8000, 0xfc00});
  check("log_softmax", row_of({0, -(0x1p128 - 0x1p103)}), f32, {0x80000000, 0xff800000});
  check("log_softmax", row_of({0, -(0x1p128 - 0x1.8p103)}), f32, {0x80000000, 0xff7fffff});
  // The tie below the least number: e^-17.33 is a little less than 2^-25.
  check("log_softmax", row_of({0, -17.33}), f16, {0x8000, 0xcc55});
  check("log_softmax", row_of({0, -17.32}), f16, {0x8001, 0xcc54});
}

// So many equal elements that their softmax is a tie would take long.
TEST_CASE("softmax in other formats: ties of counts") {
  using namespace num;
  const auto softmax_of = [](double count, bool has_rest, dtype to) {
    exponential_sum<ball<8>, double> s;
    s.start(0.0);
    s.multiplicity = count;
    if (has_rest) s.add(-1e300);
    const decided64 v = scaled_softmax<ball<8>>(s, 0.0, 1.0, to);
    CHECK(v.decided);
    exponential_sum<wide<double>, double> w;
    w.start(0.0);
    w.multiplicity = count;
    if (has_rest) w.add(-600.0);
    const decided64 near = scaled_softmax<wide<double>>(w, 0.0, 1.0, to);
    CHECK((!near.decided || near.value == v.value));
    return v.value;
  };
  CHECK(softmax_of(0x1p25, false, dtype::f16) == 0);
  CHECK(softmax_of(0x1p25, true, dtype::f16) == 0);
  CHECK(softmax_of(0x1p25 - 1, false, dtype::f16) == 0x1p-24);
  CHECK(softmax_of(0x1p25 - 1, true, dtype::f16) == 0x1p-24);
  CHECK(softmax_of(0x1p24, true, dtype::f16) == 0x1p-24);
  CHECK(softmax_of(0x1p20, true, dtype::bf16) == 0x1p-20);
}

TEST_CASE("softmax in other formats: what is refused; an output says its format") {
  context ctx;
  const std::vector<float> x{0, 1};
  double wide[2] = {};
  softmax(ctx, const_tensor_view(x.data(), {2}), tensor_view(wide, {2}));
  CHECK(wide[0] + wide[1] == doctest::Approx(1));
  CHECK(wide[1] != static_cast<float>(wide[1]));
  const std::vector<const_tensor_view> in{const_tensor_view(x.data(), {2})};
  CHECK(infer(*find("log_softmax"), in, {{"dtype", std::string("bf16")}})[0].type == dtype::bf16);
  for (const std::string& op : two_operations) {
    CHECK_THROWS_WITH(infer(*find(op), in, {{"dtype", std::string("i64")}}),
                      doctest::Contains((op + ": dtype: expected f16, bf16, f32 or f64, got i64").c_str()));
  }
  const std::vector<const_tensor_view> two{in[0], in[0]};
  CHECK_THROWS_AS(infer(*find("softmax_backward"), two, {{"dtype", std::string("f64")}}), error);
}
