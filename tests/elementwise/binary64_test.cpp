// Elementwise operations in binary64 against the oracle: every row that has this format, operands of every class and those that are known
// to be difficult, on every instruction set, from both tiers, and, where there is one, on the GPU.
#include "reference/samples/binary64.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "reference/elementwise/elementwise.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/class_engines.hpp"

using namespace repdl;
using reference::array;

namespace {

bool has_binary64(const ops::elementwise_row& row) {
  const op_info& op = *find(row.name);
  return std::find(op.in[0].types.begin(), op.in[0].types.end(), dtype::f64) != op.in[0].types.end();
}
bool is_tested(const ops::elementwise_row& row) {
  return ops::proof_in(row.proof, dtype::f64) == ops::proof_kind::multi_limb;
}

// One call on every engine from every tier, compared with the oracle; or, for many operands, one engine from the last tier.
class checker {
 public:
  explicit checker(bool every_engine = true) : engines_(test::engines()) {
    std::vector<test::engine> last = test::every_context({tier::exact});
    if (!every_engine) last.erase(last.begin(), last.end() - 1);
    for (test::engine& e : last) engines_.push_back(std::move(e));
  }
  void check(const ops::elementwise_row& row, const std::vector<array>& in, const attributes& attrs,
             const std::string& what) {
    const std::vector<array> expected = reference::evaluate_all(std::string(row.name), in, attrs);
    for (test::engine& e : engines_) {
      const std::string text =
          test::difference(test::run(*e.ctx, std::string(row.name), in, expected, attrs), expected);
      if (!text.empty()) FAIL_CHECK(std::string(row.name) << " on " << e.name << ", " << what << ": " << text);
    }
    outputs += expected[0].count();
  }
  std::int64_t outputs = 0;

 private:
  std::vector<test::engine> engines_;
};

void check_all(std::int64_t count, bool every_engine) {
  checker c(every_engine);
  for (const ops::elementwise_row& row : ops::elementwise_rows()) {
    if (!has_binary64(row) || !is_tested(row)) continue;
    const bool options = row.options.count() > 0;
    for (const reference::sample_class k : reference::element_classes) {
      const auto stream = static_cast<std::uint64_t>(k);
      for (int draw = 0; draw < (options ? 2 : 1); ++draw) {
        reference::word_stream w(static_cast<std::uint64_t>(draw), stream);
        const attributes attrs =
            draw == 0 ? attributes{} : reference::sample_options(row, dtype::f64, w, [](reference::word_stream& s) {
              return std::ldexp(static_cast<double>(s.next()) + 1, s.between(-60, 20)) * (s.flip() ? 1 : -1);
            });
        c.check(row, reference::fill_operands(k, row, dtype::f64, options ? count / 2 : count, 41, stream), attrs,
                "class " + std::string(name_of(k)));
      }
    }
  }
  MESSAGE(c.outputs << " outputs against the oracle");
  CHECK(c.outputs > 900 * count);
}

}  // namespace

TEST_SUITE_BEGIN("values");

TEST_CASE("binary64: every row against the oracle, every class") { check_all(47, true); }
TEST_CASE("binary64: many operands of every row [long]" * doctest::skip()) { check_all(1'000'000, false); }

namespace {
// Operands of every exponent between 2^low and 2^high.
double drawn(reference::word_stream& w, double low, double high, bool negative) {
  const double unit = static_cast<double>(w.next64() >> 11) * 0x1p-53;
  const double x = std::ldexp(1 + static_cast<double>(w.next64() >> 12) * 0x1p-52,
                              static_cast<int>(std::floor(low + unit * (high - low))));
  return negative && w.flip() ? -x : x;
}

// The first tier on every engine, compared with the last tier of the widest set: `count` operands each.
void compare_tiers(std::int64_t count) {
  struct range {
    const char* name;
    double low, high;
    bool negative;
  };
  constexpr range x_of_pow{"pow", -8, 8, false}, y_of_pow{"", -8, 7, true};
  constexpr std::int64_t block = 1 << 18;
  std::vector<test::engine> first = test::engines();
  const test::engine last = std::move(test::every_context({tier::exact}).back());
  std::int64_t compared = 0;
  for (const range& r : {range{"exp", -60, 9.4, true}, {"log", -1022, 1023, false}, {"sin", -60, 24, true}, x_of_pow}) {
    const std::string name = r.name;
    reference::word_stream w(11, static_cast<std::uint64_t>(name[0]));
    for (std::int64_t done = 0; done < count; done += block) {
      const std::int64_t n = std::min(block, count - done);
      std::vector<array> in;
      for (const range& of : {r, y_of_pow}) {
        if (name != "pow" && !in.empty()) break;
        array& a = in.emplace_back(dtype::f64, reference::shape_list{n});
        for (std::int64_t i = 0; i < n; ++i) {
          const double v = drawn(w, of.low, of.high, of.negative);
          std::memcpy(a.bytes.data() + 8 * i, &v, 8);
        }
      }
      std::vector<array> expected{array(dtype::f64, reference::shape_list{n})};
      expected = test::run(*last.ctx, name, in, expected, {});
      for (test::engine& e : first) {
        const std::string text = test::difference(test::run(*e.ctx, name, in, expected, {}), expected);
        if (!text.empty()) FAIL(name << " on " << e.name << ": " << text);
        compared += n;
      }
    }
    MESSAGE(name << ": " << count << " operands, first tier and last one");
  }
  CHECK(compared == 4 * count * static_cast<std::int64_t>(first.size()));
}
}  // namespace

TEST_CASE("binary64: the first tier against the last one") { compare_tiers(2000); }
TEST_CASE("binary64: a billion operands from the first tier and from the last [long]" * doctest::skip()) {
  compare_tiers(1'000'000'000);
}

// Zeros, the ends of the range and of subnormal numbers, infinities, NaN, and where tails and pieces of formulas meet.
TEST_CASE("binary64: tuples of landmarks") {
  std::vector<double> marks = {0.0,
                               0x1p-1074,
                               0x1.8p-1073,
                               0x0.fffffffffffffp-1022,
                               0x1p-1022,
                               0x1p-900,
                               0x1p-400,
                               0x1p-60,
                               0x1p-27,
                               0x1p-10,
                               0.125,
                               0.25,
                               1 / 3.0,
                               0.5,
                               0.75,
                               0.875,
                               1.0,
                               1.5,
                               2.0,
                               3.0,
                               4.0,
                               6.0,
                               8.5,
                               9.0,
                               10.0,
                               19.1,
                               27.3,
                               38.6,
                               40.0,
                               54.0,
                               709.75,
                               745.125,
                               752.0,
                               760.0,
                               1024.0,
                               1075.0,
                               1500.0,
                               0x1p24,
                               0x1p52,
                               0x1p53,
                               0x1p54,
                               0x1p400,
                               0x1p900,
                               0x1p1023,
                               0x1.fffffffffffffp1023,
                               HUGE_VAL,
                               __builtin_nan("")};
  for (const double v : {0.875, 1.0, 2.0, 709.75, 745.125}) {
    marks.push_back(std::nextafter(v, 0.0));
    marks.push_back(std::nextafter(v, HUGE_VAL));
  }
  for (std::size_t i = marks.size(); i-- > 0;) marks.push_back(-marks[i]);
  checker c;
  std::uint64_t choice = 1;
  for (const ops::elementwise_row& row : ops::elementwise_rows()) {
    if (!has_binary64(row) || !is_tested(row)) continue;
    const auto n = static_cast<std::int64_t>(row.arity == 1 ? marks.size() : row.arity == 2 ? 403 : 601);
    std::vector<array> in;
    for (int k = 0; k < row.arity; ++k) {
      in.emplace_back(dtype::f64, reference::shape_list{n});
      for (std::int64_t i = 0; i < n; ++i) {
        choice = choice * 6364136223846793005u + 1442695040888963407u;
        const double v = marks[row.arity == 1 ? static_cast<std::size_t>(i) : (choice >> 33) % marks.size()];
        std::memcpy(in.back().bytes.data() + 8 * i, &v, 8);
      }
    }
    c.check(row, in, {}, "landmarks");
  }
  CHECK(c.outputs > 20'000);
}

TEST_CASE("binary64: operands whose results are next to midpoints") {
  checker c;
  for (const auto all : {reference::published_hard_operands(), reference::found_hard_operands()}) {
    for (const ops::elementwise_row& row : ops::elementwise_rows()) {
      if (!has_binary64(row)) continue;
      std::vector<std::vector<double>> x(3);
      for (const reference::hard_operands& h : all) {
        if (h.row != row.name) continue;
        for (std::size_t k = 0; k < 3; ++k) x[k].push_back(h.x[k]);
      }
      if (x[0].empty()) continue;
      std::vector<array> in;
      for (int k = 0; k < row.arity; ++k) {
        in.emplace_back(dtype::f64, reference::shape_list{static_cast<std::int64_t>(x[0].size())});
        std::memcpy(in.back().bytes.data(), x[static_cast<std::size_t>(k)].data(), in.back().bytes.size());
      }
      c.check(row, in, {}, "hard operands");
    }
  }
  CHECK(c.outputs > 200);
}

TEST_CASE("binary64: what the first tier decides of ordinary operands") {
  for (const ops::elementwise_row& row : ops::elementwise_rows()) {
    if (!has_binary64(row) || !is_tested(row)) continue;
    CAPTURE(row.name);
    constexpr std::int64_t n = 2000;
    std::vector<array> in;
    reference::word_stream w(7, 7);
    for (int k = 0; k < row.arity; ++k) {
      in.emplace_back(dtype::f64, reference::shape_list{n});
      for (std::int64_t i = 0; i < n; ++i) {  // in (0, 1)
        const double v = (static_cast<double>(w.next64() >> 12) + 0.5) * 0x1p-52;
        std::memcpy(in.back().bytes.data() + 8 * i, &v, 8);
      }
    }
    context ctx({.threads = 1});
    const std::vector<array> expected = reference::evaluate_all(std::string(row.name), in, {});
    CHECK(test::difference(test::run(ctx, std::string(row.name), in, expected, {}), expected) == "");
    const statistics decided = ctx.read_statistics();
    CHECK(decided[tier::exact] <= n / 100);
  }
}

TEST_SUITE_END();
