// Reductions of integers and booleans: against the oracle in every way that must not matter (instruction set, threads, layout), and the
// ends of their ranges.
#include <doctest/doctest.h>
#include <gmpxx.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "librepdl/num/integer_sum.hpp"
#include "reference/evaluate.hpp"
#include "reference/layout.hpp"
#include "reference/numbers/number.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/everywhere.hpp"

using namespace repdl;
using reference::array;
using reference::sample_class;
using reference::shape_list;
using tests::every_setting;
using tests::run;
using tests::setting;

namespace {

using integers = std::vector<std::int64_t>;

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       greatest = std::numeric_limits<std::int64_t>::max();
constexpr dtype types[] = {dtype::i64, dtype::i32, dtype::boolean};

array vector_of(dtype t, const integers& x) { return {t, {std::ssize(x)}, x}; }

/// The one result for a vector, the same from everywhere.
std::uint64_t result(const std::vector<setting>& settings, const std::string& op, const array& x) {
  const array want = run(*settings[0].ctx, op, x, {});
  for (const setting& s : settings) CHECK(run(*s.ctx, op, x, {}) == want);
  return want.get(0);
}

}  // namespace

TEST_CASE("integers: every class, type, number of threads and layout, against the oracle") {
  tests::everywhere all(12);
  reference::word_stream words(71, 1);
  std::uint64_t stream = 0;
  struct shape_case {
    shape_list shape;
    integers axis;
  };
  for (const auto& [shape, axis] : {shape_case{{}, {}},
                                    {{40, 1}, {1}},
                                    {{40, 3}, {1}},
                                    {{12, 30}, {0}},
                                    {{70, 9}, {0}},
                                    {{300, 20}, {0}},
                                    {{2200, 9}, {0}},
                                    {{5, 700}, {1}},
                                    {{3, 5, 2, 4, 6}, {4, 0, -3}},
                                    {{2, 1, 3, 2, 2, 1, 3, 5}, {1, 3, 6}},
                                    {{2, 9000}, {-1}},
                                    {{4, 0}, {1}},
                                    {{0, 4}, {1}},
                                    {{7}, {}}}) {
    for (int k = 0; k < static_cast<int>(std::size(reference::element_classes)); ++k) {
      const sample_class kind = reference::element_classes[static_cast<std::size_t>(k)];
      for (const dtype t : types) {
        const reference::reduce_layout l = reference::layout_of(shape, axis, false);
        ++stream;
        const auto filled = [&, t = t](bool factors) {
          const array terms =
              reference::fill_integers(kind, std::ssize(l.kept), std::ssize(l.reduced), 73, stream, t, factors);
          array a(t, shape);
          std::size_t at = 0;
          for (const std::int64_t base : l.kept)
            for (const std::int64_t d : l.reduced) a.set(static_cast<std::size_t>(base + d), terms.get(at++));
          return a;
        };
        for (const std::string op : {"sum", "mean", "prod", "max", "min", "argmax", "argmin"}) {
          const bool selects = op.find('m') == 0 && op != "mean";
          if ((selects || op.starts_with("arg")) && l.reduced.empty()) continue;
          const array x = filled(op == "prod");
          attributes attrs{{"axis", axis}};
          if (words.flip()) attrs.push_back({"keepdim", true});
          reference::outcomes where;
          const array want = reference::evaluate_all(op, {x}, attrs, &where)[0];
          if (op == "mean" && t == dtype::i64 && kind == sample_class::ties) {
            for (const reference::outcome& o : where) CHECK((o.nan || hit(kind, o)));
          }
          CAPTURE(stream);
          CAPTURE(std::string(name_of(kind)));
          CAPTURE(std::string(name_of(t)));
          all.check({op, {x}, attrs}, {find(op)->id, k, static_cast<int>(t)}, {want});
        }
      }
    }
  }
}

TEST_CASE("integers: sums and products wrap, means do not") {
  const std::vector<setting> settings = every_setting();
  const auto sum = [&](dtype t, const integers& x) {
    return static_cast<std::int64_t>(result(settings, "sum", vector_of(t, x)));
  };
  const auto product = [&](dtype t, const integers& x) {
    return static_cast<std::int64_t>(result(settings, "prod", vector_of(t, x)));
  };
  const auto mean = [&](dtype t, const integers& x) {
    return std::bit_cast<double>(result(settings, "mean", vector_of(t, x)));
  };
  CHECK(sum(dtype::i64, {greatest, 1}) == least);
  CHECK(sum(dtype::i64, {least, -1}) == greatest);
  CHECK(sum(dtype::i64, {least, least}) == 0);
  CHECK(sum(dtype::i32, {2147483647, 2147483647}) == 4294967294);
  CHECK(sum(dtype::boolean, {0, 1, 2, 255, 0}) == 3);
  CHECK(sum(dtype::i64, {}) == 0);
  CHECK(product(dtype::i64, {greatest, greatest}) == 1);
  CHECK(product(dtype::i64, {least, -1}) == least);
  CHECK(product(dtype::i64, {least, 2}) == 0);
  CHECK(product(dtype::i64, {-1, 3037000500, 3037000500}) == 9223372036709301616);
  CHECK(product(dtype::i32, {-2147483648, -2147483648, 2}) == least);
  CHECK(product(dtype::boolean, {1, 2, 255}) == 1);
  CHECK(product(dtype::boolean, {1, 2, 0}) == 0);
  CHECK(product(dtype::i32, {}) == 1);
  CHECK(mean(dtype::i64, {greatest, greatest, greatest}) == 0x1p63);
  CHECK(mean(dtype::i64, {least, least, least, least, least}) == -0x1p63);
  CHECK(mean(dtype::i64, {least, greatest}) == -0.5);
  CHECK(mean(dtype::boolean, {0, 0, 4}) == 1.0 / 3);
  // 2^53 + 1 and 2^53 + 3 are ties, to even; 1 more or less among three terms decides.
  CHECK(mean(dtype::i64, {9007199254740993}) == 0x1p53);
  CHECK(mean(dtype::i64, {9007199254740995}) == 0x1p53 + 4);
  CHECK(mean(dtype::i64, {9007199254740993, 9007199254740993, 9007199254740994}) == 0x1p53 + 2);
  CHECK(mean(dtype::i64, {9007199254740995, 9007199254740995, 9007199254740994}) == 0x1p53 + 2);
  CHECK(std::bit_cast<std::uint64_t>(mean(dtype::i64, {5, -5})) == 0);
  CHECK(std::bit_cast<std::uint64_t>(mean(dtype::i32, {})) == 0x7ff8000000000000);
  // So long that several threads have a part each, in rows and in columns.
  for (const std::int64_t inner : {1, 9}) {
    for (const std::int64_t v : {greatest, least, std::int64_t{-1}}) {
      constexpr std::int64_t n = 40000;
      const array x(dtype::i64, {n, inner}, integers(static_cast<std::size_t>(n * inner), v));
      const attributes axis{{"axis", integers{0}}};
      for (const setting& s : settings) {
        if (s.first != tier::proved) continue;
        const array total = run(*s.ctx, "sum", x, axis), average = run(*s.ctx, "mean", x, axis);
        for (std::size_t i = 0; i < static_cast<std::size_t>(inner); ++i) {
          CHECK(total.get(i) == static_cast<std::uint64_t>(v) * n);
          CHECK(std::bit_cast<double>(average.get(i)) == static_cast<double>(v));
        }
      }
    }
  }
}

TEST_CASE("integers: the ends of the ranges in order, and first indices") {
  const std::vector<setting> settings = every_setting();
  struct range {
    dtype type;
    std::int64_t low, high;
  };
  for (const auto& [t, low, high] :
       {range{dtype::i64, least, greatest},
        {dtype::i32, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()},
        {dtype::boolean, 0, 1}}) {
    CAPTURE(std::string(name_of(t)));
    const auto same = [type = t](std::int64_t a, std::uint64_t bits) {
      return array(type, {}, integers{a}).get(0) == bits;
    };
    for (const std::int64_t n : {1, 3, 40, 2049, 30000}) {
      for (const std::int64_t all : {low, high}) {
        const array x = vector_of(t, integers(static_cast<std::size_t>(n), all));
        CHECK(same(all, result(settings, "max", x)));
        CHECK(same(all, result(settings, "min", x)));
        CHECK(result(settings, "argmax", x) == 0);
        CHECK(result(settings, "argmin", x) == 0);
      }
      integers rising(static_cast<std::size_t>(n), low);
      rising.back() = high;
      const array x = vector_of(t, rising);
      CHECK(result(settings, "argmax", x) == static_cast<std::uint64_t>(n - 1));
      CHECK(result(settings, "argmin", x) == 0);
      CHECK(same(high, result(settings, "max", x)));
    }
    // Columns, of more rows than a part has.
    const array x(t, {3000, 11}, integers(33000, low));
    for (const setting& s : settings) {
      const array first = run(*s.ctx, "argmax", x, {{"axis", integers{0}}});
      CHECK(first == array(dtype::i64, {11}, integers(11, 0)));
    }
  }
  // Bytes that are true are one number.
  CHECK(result(settings, "argmax", vector_of(dtype::boolean, {0, 2, 255, 1})) == 1);
  CHECK(result(settings, "argmin", vector_of(dtype::boolean, {7, 2, 0, 0})) == 2);
  CHECK(result(settings, "max", vector_of(dtype::boolean, {0, 6})) == 1);
  CHECK(result(settings, "min", vector_of(dtype::boolean, {3, 255})) == 1);
}

TEST_CASE("integers: repeated elements, and what is refused") {
  context ctx({.threads = 1});
  const std::int32_t seven = 7;
  const const_tensor_view many(&seven, dtype::i32, {1 << 20}, sizes{0});
  std::int64_t out = 0;
  sum(ctx, many, tensor_view(&out, dtype::i64, sizes{}));
  CHECK(out == std::int64_t{7} << 20);
  double average = 0;
  mean(ctx, many, tensor_view(&average, dtype::f64, sizes{}));
  CHECK(average == 7);

  std::int32_t narrow = 0;
  float single = 0;
  const auto text_of = [&](const auto& f) {
    try {
      f();
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(text_of([&] { sum(ctx, many, tensor_view(&narrow, dtype::i32, sizes{})); }) ==
        "sum: out: expected i64, got i32");
  CHECK(text_of([&] { mean(ctx, many, tensor_view(&single, dtype::f32, sizes{})); }) ==
        "mean: out: expected f64, got f32");
  CHECK(text_of([&] { max(ctx, many, tensor_view(&out, dtype::i64, sizes{})); }) == "max: out: expected i32, got i64");
  CHECK(text_of([&] {
          sum_squares(ctx, many, tensor_view(&out, dtype::i64, sizes{}));
        }).find("f16, bf16, f32 or f64") != std::string::npos);
  const const_tensor_view none(&seven, dtype::i32, {0});
  CHECK(text_of([&] { max(ctx, none, tensor_view(&narrow, dtype::i32, sizes{})); }).find("at least one element") !=
        std::string::npos);
}

TEST_CASE("integer sums and means, against GMP" * doctest::test_suite("portable")) {
  std::mt19937_64 g(128);
  for (int round = 0; round < 4000; ++round) {
    num::integer_sum sum;
    mpz_class want = 0;
    const auto add = [&](std::int64_t x) {
      sum.add_integer(x);
      want += x < 0 ? -mpz_class(0 - static_cast<std::uint64_t>(x)) : mpz_class(static_cast<std::uint64_t>(x));
    };
    const std::int64_t special[] = {least, greatest, 0, -1, 1, std::int64_t{1} << 53, (std::int64_t{1} << 53) + 1};
    for (std::uint64_t i = g() % 6; i > 0; --i) {
      const std::uint64_t r = g();
      add((r & 3) == 0 ? special[r / 4 % 7] : static_cast<std::int64_t>(g()) >> (r >> 8) % 64);
    }
    for (std::uint64_t i = g() % 2 * (g() % 55); i > 0; --i) {  // as large as a sum can be
      sum.merge(num::integer_sum(sum));
      want *= 2;
    }
    mpz_class low;
    mpz_fdiv_r_2exp(low.get_mpz_t(), want.get_mpz_t(), 64);
    CHECK(static_cast<std::uint64_t>(num::wrapped(sum)) == low.get_ui());
    const std::int64_t any = static_cast<std::int64_t>(g() >> (2 + g() % 61)) + 1;
    for (const std::int64_t n :
         {any, std::int64_t{1} << g() % 62, std::int64_t{3}, std::int64_t{1} << 53, (std::int64_t{1} << 53) + 1}) {
      const mpz_class divisor(static_cast<std::uint64_t>(n));
      CHECK(std::bit_cast<std::uint64_t>(num::mean_of(sum, n)) ==
            reference::round_quotient(dtype::f64, want.get_mpz_t(), divisor.get_mpz_t(), 0));
    }
  }
}
