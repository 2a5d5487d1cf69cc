// Operations of several operands or with options: bodies and last tiers against the oracle. Special values, small
// integers, the sample classes, random patterns; and through the library, every tier forced.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/ops/elementwise/bodies.hpp"
#include "librepdl/ops/operations.hpp"
#include "reference/attributes.hpp"
#include "reference/elementwise/elementwise.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/loop_values.hpp"

namespace {

using namespace repdl;

template <class Op>
constexpr const ops::elementwise_row& row_of = Op::row;

// Coefficients, besides the defaults: simple ones, long ones, borders of the range.
constexpr double coefficients[] = {0, -1, 0.5, 1, -0x1.999999999999ap-4, 0x1p-200, 0x1.fffffffffffffp199, 3, 0x1p-24};
constexpr double thresholds[] = {0, -0.0, -1, 0.5, 1, 20, 3, -HUGE_VAL, HUGE_VAL, 1e300, 0x1p-1074, 0x1.8p-150};
constexpr double margins[] = {0,    0.5,  0x1p-1074, 0x1p-1040,           0x1p-300, 0x1p-149, 0x1p-24,
                              1e-6, 0.25, 0.41,      0x1.fffffffffffffp-2};
// Powers and bases: whole, odd and even beyond 24 bits, roots, next to 1, out of range.
constexpr double reals[] = {0,
                            -0.0,
                            1,
                            -1,
                            2,
                            -2,
                            3,
                            4,
                            5,
                            7,
                            10,
                            -3,
                            0.5,
                            -0.5,
                            0.25,
                            1.5,
                            -0.75,
                            0x1p-10,
                            1 / 3.0,
                            3.141592653589793,
                            0x1.000001p24,
                            0x1.fffffffffffffp52,
                            -0x1.fffffffffffffp52,
                            0x1p53,
                            1e300,
                            -1e300,
                            0x1p-1074,
                            -0x1.8p-1060,
                            0x1p-1022,
                            1 + 0x1p-52,
                            1 - 0x1p-53,
                            -1 - 0x1p-52,
                            0x1p-300,
                            0x1p300,
                            HUGE_VAL,
                            -HUGE_VAL,
                            __builtin_nan("")};

struct counts {
  std::int64_t tuples = 0;
  std::int64_t open = 0;  // by the first tier
  std::int64_t ties = 0;
  std::int64_t wrong = 0;
};

// Beside what is compiled for every operation and format: it is most of the code.
void check_result(bool decided, std::uint64_t got, std::uint64_t want, const ops::elementwise_row& row,
                  const char* tier, const std::uint64_t* in, const num::parameters& p, counts& n) {
  if ((decided && got == want) || ++n.wrong > 5) return;
  INFO(row.name, " ", tier, std::hex, " ", in[0], " ", in[1], " ", in[2], std::hexfloat, " options ", p.value[0], " ",
       p.value[1], " ", p.value[2]);
  CHECK(decided);
  CHECK(got == want);
}

template <class Op, class T>
void check(const std::uint64_t* in, const num::parameters& p, counts& n) {
  const auto of = [&](int k) { return num::from_bits<T>(static_cast<num::storage_of<T>>(in[k])); };
  const std::uint64_t want = reference::oracle_of(row_of<Op>.name).f(dtype_of<T>, in, p.value);
  ++n.tuples;
  const auto compare = [&](T got, const char* tier, bool decided = true) {
    check_result(decided, num::to_bits(got), want, row_of<Op>, tier, in, p, n);
  };
  const auto with = [&](const auto&... options) {
    if constexpr (num::has_exact_body<Op, T, std::remove_cvref_t<decltype(options)>...>) {
      const auto first =
          num::with_places<Op::arity>([&]<int... K>() { return num::evaluate<Op>(of(K)..., options...); });
      const auto last = num::with_places<Op::arity>([&]<int... K>() {
        return num::evaluate_exactly<Op>(2048, of(K)..., options...);
      });
      if (first.decided) compare(first.value, "first");
      compare(last.value, "last", last.decided);
      n.open += first.decided ? 0 : 1;
    } else {
      compare(num::with_places<Op::arity>([&]<int... K>() { return num::evaluate<Op>(of(K)..., options...); }), "only");
    }
    test::for_each_loop_value<Op, T>(in, compare, options...);
  };
  if constexpr (num::has_body<Op, T, num::parameters>) {
    with(p);
  } else {
    with();
  }
}

// Numbers around which something happens; both signs.
template <class T>
std::vector<std::uint64_t> landmarks() {
  using F = num::format<T>;
  const std::uint64_t normal = std::uint64_t{1} << (F::precision - 1), infinity = F::infinity;
  std::vector<std::uint64_t> list = {0, 1, 2, 3, normal - 1, normal, infinity - 1, infinity, F::nan, infinity + 1};
  for (const double v : {0.25, 1 / 3.0, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 10.0, 12.0, 1000.0, 65000.0})
    list.push_back(num::to_bits(num::narrow<T>(v)));
  const std::uint64_t one = num::to_bits(num::narrow<T>(1.0));
  list.push_back(one - 1);
  list.push_back(one + 1);
  const std::size_t size = list.size();
  for (std::size_t i = 0; i < size; ++i) list.push_back(list[i] | num::sign_mask<T>);
  return list;
}

num::parameters options_at(const ops::option_list& options, std::uint64_t choice) {
  num::parameters p{};
  for (int i = 0; i < options.count(); ++i) {
    const ops::option_kind kind = options.all[i].kind;
    const std::span<const double> list = kind == ops::option_kind::margin      ? std::span<const double>(margins)
                                         : kind == ops::option_kind::threshold ? std::span<const double>(thresholds)
                                         : kind == ops::option_kind::real      ? std::span<const double>(reals)
                                                                               : std::span<const double>(coefficients);
    p.value[i] = options.all[i].otherwise.number;
    const std::uint64_t c = choice % (list.size() + 3);
    choice /= list.size() + 3;
    if (c >= list.size()) continue;
    const double otherwise = std::exchange(p.value[i], list[c]);
    if (!options.accepts(i, p.value)) p.value[i] = otherwise;
  }
  return p;
}

using check_function = void(const std::uint64_t* in, const num::parameters& p, counts& n);
template <class T>
counts check_all(ops::op_id op, check_function* check, std::int64_t many) {
  counts n;
  const auto id = static_cast<std::uint64_t>(op);
  const ops::elementwise_row& row = ops::row_of(op);
  std::mt19937_64 engine{id * 8 + sizeof(T)};
  const std::vector<std::uint64_t> marks = landmarks<T>();
  std::uint64_t in[3] = {};
  const std::size_t few = many < 100 ? 3 : 1;
  for (const std::uint64_t x : marks) {
    for (std::size_t j = engine() % few; j < marks.size(); j += few) {
      const std::uint64_t y = marks[j];
      const std::size_t step = row.arity == 3 ? 1 + engine() % (many < 100 ? 24 : 5) : marks.size();
      for (std::size_t k = engine() % step % marks.size(); k < marks.size(); k += step) {
        in[0] = x, in[1] = y, in[2] = marks[k];
        check(in, options_at(row.options, engine()), n);
      }
    }
  }
  for (const reference::sample_class c : reference::element_classes) {
    const auto v = reference::fill_operands(c, dtype_of<T>, 3, many, 1, id);
    for (std::size_t i = 0; i < static_cast<std::size_t>(many); ++i) {
      for (std::size_t k = 0; k < 3; ++k) in[k] = v[k].get(i);
      check(in, options_at(row.options, engine()), n);
    }
  }
  for (std::int64_t i = 0; i < many; ++i) {  // small multiples of a power of two; numbers near each other
    const int e = static_cast<int>(engine() % 20) - 10;
    for (std::uint64_t& a : in) {
      const double v =
          std::ldexp(static_cast<double>(engine() % 129) - 64, i % 2 == 0 ? e : e / 4 + static_cast<int>(engine() % 3));
      a = num::to_bits(num::narrow<T>(v));
    }
    if (i % 4 == 1) in[1] = in[0] + engine() % 5 - 2, in[1] &= (std::uint64_t{1} << (8 * sizeof(T) - 1) << 1) - 1;
    check(in, options_at(row.options, engine()), n);
  }
  return n;
}

void check_counts(std::string_view name, const counts& n) {
  INFO(name);
  CHECK(n.wrong == 0);
  CHECK(n.open <= n.tuples / 10);
  MESSAGE(name << ": " << n.tuples << " tuples, left open " << n.open);
}
template <class Op>
void check_formats(std::int64_t many) {
  constexpr auto formats = num::has_body64<Op> ? Op::formats & ops::NARROW : Op::formats;  // binary64_test.cpp
  ops::for_each_format<formats>(
      [&]<class T>() { check_counts(row_of<Op>.name, check_all<T>(ops::id_of<Op>, check<Op, T>, many)); });
}

template <class... Op>
void check_operations(std::int64_t many) {
  (check_formats<Op>(many), ...);
}

}  // namespace

TEST_SUITE_BEGIN("portable values");

TEST_CASE("several: sums, quotients and roots") {
  check_operations<ops::addcmul, ops::addcdiv, ops::lerp, ops::lerp_scalar, ops::prelu, ops::prelu_backward,
                   ops::hypot>(300);
}
TEST_CASE("several: remainders and whole quotients" * doctest::test_suite("portable")) {
  check_operations<ops::fmod, ops::remainder, ops::div_trunc, ops::div_floor>(300);
}
// x / y = X 2^k / Y, with X 2^k mod Y of 1 or Y - 1: as near a whole number as quotients of 24 bits come.
TEST_CASE("several: quotients next to whole numbers" * doctest::test_suite("portable")) {
  counts n;
  std::mt19937_64 engine{29};
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t y = (engine() % (1 << 24)) | 1;
    const int k = 24 + static_cast<int>(engine() % 8);  // quotients up to 2^31; the quick ones end at 2^29
    std::uint64_t inverse = 1 % y;                      // of 2^k modulo y: of 2, k times, is (y + 1) / 2
    for (int j = 0; j < k; ++j) inverse = inverse * ((y + 1) / 2) % y;
    for (const std::uint64_t x : {inverse, y - inverse, inverse + y, engine() % y}) {
      if (x == 0 || x >= 1 << 24) continue;
      const double scale = std::ldexp(1.0, static_cast<int>(engine() % 200) - 120);
      const auto bits = [&](double v) { return std::uint64_t{num::to_bits(static_cast<float>(v * scale))}; };
      for (const double sign : {1.0, -1.0}) {
        const std::uint64_t in[3] = {bits(std::ldexp(static_cast<double>(x), k)), bits(sign * static_cast<double>(y)),
                                     0};
        check<ops::fmod, float>(in, {}, n);
        check<ops::remainder, float>(in, {}, n);
        check<ops::div_trunc, float>(in, {}, n);
        check<ops::div_floor, float>(in, {}, n);
      }
    }
  }
  CHECK(n.wrong == 0);
  CHECK(n.tuples > 50000);
}
TEST_CASE("several: logarithms of two operands" * doctest::test_suite("portable")) {
  check_operations<ops::xlogy, ops::logaddexp>(200);
}
TEST_CASE("several: exponentials with options") { check_operations<ops::elu>(1000); }
TEST_CASE("several: gradients of activations") {
  check_operations<ops::silu_backward, ops::mish_backward, ops::log_sigmoid_backward, ops::gelu_backward,
                   ops::gelu_tanh_backward, ops::leaky_relu_backward, ops::elu_backward, ops::selu_backward>(20);
}
TEST_CASE("several: celu, softplus, logit, softshrink and their gradients; atan2, logaddexp2" *
          doctest::test_suite("portable")) {
  check_operations<ops::celu, ops::celu_backward, ops::softplus, ops::softplus_backward, ops::logit,
                   ops::logit_backward, ops::softshrink, ops::softshrink_backward, ops::atan2, ops::logaddexp2>(20);
}

// What addcdiv and hypot are in closed form: the mechanism's quotients and roots, against the same oracle.
struct quotient_formula {
  double x, y, z, value;
  template <int L>
  num::quotient<L> eval() const {
    using num::number;
    return {number<L>(x) * number<L>(z) + number<L>(value) * number<L>(y), number<L>(z)};
  }
};
struct root_formula {
  double x, y;
  template <int L>
  num::root<L> eval() const {
    using num::number;
    return {number<L>(x) * number<L>(x) + number<L>(y) * number<L>(y), number<L>(1)};
  }
};
TEST_CASE_TEMPLATE("several: formulas that are quotients and roots", T, f16, bf16, float) {
  std::mt19937_64 engine{7};
  std::int64_t ties = 0, wrong = 0;
  const auto check_one = [&](const char* name, const std::uint64_t* in, double value) {
    const auto of = [&](int k) { return num::widen(num::from_bits<T>(static_cast<num::storage_of<T>>(in[k]))); };
    const reference::oracle& o = reference::oracle_of(name);
    const bool root = std::string(name) == "hypot";
    const auto r = root ? num::decide<T>(root_formula{of(0), of(1)}, 2048)
                        : num::decide<T>(quotient_formula{of(0), of(1), of(2), value}, 2048);
    ties += o.where(dtype_of<T>, in, &value).tie ? 1 : 0;
    wrong += r.decided && num::to_bits(r.value) == o.f(dtype_of<T>, in, &value) ? 0 : 1;
  };
  constexpr int p = num::format<T>::precision;
  for (int i = 0; i < 20000; ++i) {
    std::uint64_t in[3];
    for (std::uint64_t& b : in)
      b = (1 + engine() % (num::format<T>::infinity - 1)) | (engine() % 2 == 0 ? num::sign_mask<T> : 0);
    if (i % 2 ==
        0) {  // (3k, 4k), 5k an odd number of p + 1 bits; z (an odd number of p + 1 bits) / z, x tiny or a part of it
      const auto k =
          static_cast<double>((std::uint64_t{1} << p) / 5 + 1 + engine() % (std::uint64_t{1} << (p - 3)) * 2);
      const double odd = std::fmod(k, 2) == 1 ? k : k + 1;
      const double unit = std::ldexp(1.0, static_cast<int>(engine() % 8) - p);
      in[0] = num::to_bits(num::narrow<T>(3 * odd * unit));
      in[1] = num::to_bits(num::narrow<T>(4 * odd * unit));
      check_one("hypot", in, 0);
      const double z = static_cast<double>(1 + engine() % 15), part = static_cast<double>(engine() % 64);
      const double q = static_cast<double>((std::uint64_t{1} << p) + 1 + 2 * (engine() % 64));
      in[0] = num::to_bits(num::narrow<T>(part));
      in[1] = num::to_bits(num::narrow<T>(z));
      in[2] = in[1];
      check_one("addcdiv", in, q - part);
    } else {
      check_one("hypot", in, 0);
      check_one("addcdiv", in, coefficients[static_cast<std::size_t>(i / 2) % 7 + 1]);
    }
  }
  CHECK(wrong == 0);
  CHECK(ties > 3000);
}

// The exact parts of elu: -c for w far below 0, c a midpoint; c w next to 0, below the normal numbers.
TEST_CASE_TEMPLATE("several: elu beside midpoints" * doctest::test_suite("portable"), T, f16, bf16, float) {
  counts n;
  std::int64_t near = 0;
  constexpr int p = num::format<T>::precision;
  for (int i = 0; i < 200; ++i) {
    const double midpoint = 1 + std::ldexp(2.0 * i + 1, -p);
    for (const double x : {-20.0, -40.0, -104.0, -120.0, -1000.0, -1200.0, -60000.0}) {
      const std::uint64_t in[3] = {num::to_bits(num::narrow<T>(x)), 0, 0};
      const num::parameters options{{i % 2 == 0 ? midpoint : -midpoint, 1, 1}};
      check<ops::elu, T>(in, options, n);
      near += reference::oracle_of("elu").where(dtype_of<T>, in, options.value).near_tie ? 1 : 0;
    }
    const std::uint64_t in[3] = {num::sign_mask<T> + 2u * static_cast<unsigned>(i) + 1, 0, 0};
    for (const double c : {0.5, -0.5, 1.5, 0.25}) check<ops::elu, T>(in, {{c, 1, 1}}, n);
    for (const double c : {0.5, 1.5}) check<ops::elu, T>(in, {{1, c, 1}}, n);
    for (const double c : {0.5, -1.5}) check<ops::elu, T>(in, {{1, 1, c}}, n);
  }
  CHECK(n.wrong == 0);
  CHECK(near > 600);
}

// e^x + e^y next to 1.
TEST_CASE_TEMPLATE("several: logaddexp next to 0" * doctest::test_suite("portable"), T, f16, bf16, float) {
  counts n;
  std::mt19937_64 engine{8};
  for (int i = 0; i < 3000; ++i) {
    const T x =
        num::narrow<T>(-std::ldexp(static_cast<double>(engine() % 4096 + 1) / 1024, -static_cast<int>(engine() % 12)));
    const std::uint64_t y = num::to_bits(num::narrow<T>(std::log(-std::expm1(num::widen(x)))));
    const std::uint64_t in[3] = {num::to_bits(x), y + engine() % 3 - 1, 0};
    check<ops::logaddexp, T>(in, {}, n);
  }
  CHECK(n.wrong == 0);
}

template <class Op, class T>
bool is_near(const std::uint64_t* in, const num::parameters& p) {
  const reference::outcome o = reference::oracle_of(row_of<Op>.name).where(dtype_of<T>, in, p.value);
  return o.near_tie || o.tie;
}

// Gradients that are g/2 and a little: odd multiples of the least number, x tiny.
TEST_CASE_TEMPLATE("several: gradients beside g / 2", T, f16, bf16, float) {
  counts n;
  std::int64_t near = 0;
  for (std::uint64_t i = 1; i < 40; i += 2) {
    for (const std::uint64_t x : {0, 1, 2, 1 << (num::format<T>::precision - 1)}) {
      for (int signs = 0; signs < 4; ++signs) {
        const std::uint64_t in[3] = {i | (signs % 2 == 0 ? 0u : num::sign_mask<T>),
                                     x | (signs < 2 ? 0u : num::sign_mask<T>), 0};
        check<ops::silu_backward, T>(in, {}, n);
        check<ops::log_sigmoid_backward, T>(in, {}, n);
        check<ops::gelu_backward, T>(in, {}, n);
        check<ops::gelu_tanh_backward, T>(in, {}, n);
        for (const double beta : {1.0, -1.0, 0x1p-200, -0x1.8p-100})
          check<ops::softplus_backward, T>(in, {{beta, 20, 0}}, n);
        near += is_near<ops::gelu_backward, T>(in, {}) ? 1 : 0;
      }
    }
  }
  CHECK(n.wrong == 0);
  CHECK(near > 100);
}

// Where gradients cancel: next to the zeros of the derivatives.
TEST_CASE_TEMPLATE("several: gradients next to their zeros", T, f16, bf16, float) {
  counts n;
  std::mt19937_64 engine{10};
  const auto around = [&]<class Op>(double zero) {
    const std::uint64_t middle = num::to_bits(num::narrow<T>(zero));
    for (std::uint64_t x = middle - 4; x <= middle + 4; ++x) {
      for (int i = 0; i < 8; ++i) {
        const std::uint64_t in[3] = {i == 0   ? num::format<T>::infinity
                                     : i == 1 ? num::sign_mask<T>
                                              : engine() % num::format<T>::infinity,
                                     x, 0};
        check<Op, T>(in, {}, n);
      }
    }
  };
  around.template operator()<ops::silu_backward>(-1.278464542761073795109);
  around.template operator()<ops::mish_backward>(-1.192431214515495212138);
  around.template operator()<ops::gelu_backward>(-0.751791524693564457458);
  around.template operator()<ops::gelu_tanh_backward>(-0.752461422071016258488);
  CHECK(n.wrong == 0);
}

// Exact parts that are midpoints: g scale alpha rate next to x = 0, -alpha of celu far below 0.
TEST_CASE_TEMPLATE("several: elu_backward and celu beside midpoints" * doctest::test_suite("portable"), T, f16, bf16,
                   float) {
  counts n;
  std::int64_t near = 0;
  constexpr int p = num::format<T>::precision;
  const std::uint64_t one = num::to_bits(num::narrow<T>(1.0));
  for (int i = 0; i < 40; ++i) {
    const double midpoint = (i % 2 == 0 ? 1 : -1) * (1 + std::ldexp(2.0 * i + 1, -p));
    for (const std::uint64_t x : {0u, 1u, 5u}) {
      const std::uint64_t in[3] = {one | (i % 3 == 0 ? num::sign_mask<T> : 0u), num::sign_mask<T> | x, 0};
      for (const num::parameters& o :
           {num::parameters{{midpoint, 1, 0.5}}, {{0.5, midpoint, -2}}, {{1, 0x1p-180, midpoint}}}) {
        check<ops::elu_backward, T>(in, o, n);
        near += is_near<ops::elu_backward, T>(in, o) ? 1 : 0;
      }
    }
    for (const double x : {-40.0, -104.0, -120.0, -1000.0, -1200.0, -60000.0}) {
      const std::uint64_t in[3] = {num::to_bits(num::narrow<T>(x)), 0, 0};
      check<ops::celu, T>(in, {{midpoint, 0, 0}}, n);
      if (midpoint > 0) near += is_near<ops::celu, T>(in, {{midpoint, 0, 0}}) ? 1 : 0;
    }
  }
  CHECK(n.wrong == 0);
  CHECK(near > 150);
}

// 1 + (x + y)/2 a midpoint, x = y and next to it; quotients y/x that are midpoints below the normal numbers.
TEST_CASE_TEMPLATE("several: logaddexp2 and atan2 beside midpoints" * doctest::test_suite("portable"), T, f16, bf16,
                   float) {
  counts n;
  std::int64_t near = 0;
  constexpr int p = num::format<T>::precision;
  for (int i = 0; i < 30; ++i) {
    for (int d = 0; d < 8; ++d) {
      const auto bits = [&](int k) { return std::uint64_t{num::to_bits(num::narrow<T>(std::ldexp(k, -p)))}; };
      const std::uint64_t in[3] = {bits(2 * i + 1 - d), bits(2 * i + 1 + d), 0};
      check<ops::logaddexp2, T>(in, {}, n);
      near += is_near<ops::logaddexp2, T>(in, {}) ? 1 : 0;
    }
    for (const double x : {2.0, -2.0, 6.0, 4.0, 1.0}) {
      const auto y = static_cast<std::uint64_t>((2 * i + 1) * (x == 6 ? 3 : x == 4 ? 2 : 1));
      const std::uint64_t in[3] = {y | (i % 2 == 0 ? 0u : num::sign_mask<T>), num::to_bits(num::narrow<T>(x)), 0};
      check<ops::atan2, T>(in, {}, n);
      near += x > 1 && is_near<ops::atan2, T>(in, {}) ? 1 : 0;
    }
  }
  for (const double y : {0.0, 1.0, HUGE_VAL, 0x1p-30}) {
    for (const double x : {0.0, 1.0, HUGE_VAL, 0x1p-30}) {
      for (const double sign : {1.0, -1.0}) {
        for (const double side : {1.0, -1.0}) {
          const std::uint64_t in[3] = {num::to_bits(num::narrow<T>(sign * y)), num::to_bits(num::narrow<T>(side * x)),
                                       0};
          check<ops::atan2, T>(in, {}, n);
        }
      }
    }
  }
  CHECK(n.wrong == 0);
  CHECK(near > 100);
}

// Through the library: strides, blocks and options; each tier forced; and who decided.
TEST_CASE("several: tiers of a call" * doctest::test_suite("portable")) {
  constexpr std::int64_t size = 3000;
  std::mt19937_64 engine{9};
  std::vector<float> x(size), y(size), got(size);
  for (std::int64_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    x[at] = std::ldexp(static_cast<float>(engine() % 4096) - 2048, static_cast<int>(engine() % 80) - 40);
    y[at] = std::ldexp(static_cast<float>(engine() % 4096) - 2048, static_cast<int>(engine() % 80) - 40);
  }
  for (const isa_info& isa : instruction_sets()) {
    if (!isa.available) continue;
    for (const tier first : {tier::proved, tier::exact}) {
      INFO(isa.name);
      for (const double weight : {0.5, 0.3}) {
        context ctx({.threads = 2, .isa = isa.name, .first_tier = first});
        lerp_scalar(ctx, const_tensor_view(x.data(), {size}), const_tensor_view(y.data(), {size}),
                    tensor_view(got.data(), {size}), {.weight = weight});
        std::int64_t wrong = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
          const std::uint64_t in[3] = {num::to_bits(x[i]), num::to_bits(y[i]), 0};
          wrong += num::to_bits(got[i]) == reference::oracle_of("lerp_scalar").f(dtype::f32, in, &weight) ? 0 : 1;
        }
        CHECK(wrong == 0);
        const statistics s = ctx.read_statistics();
        CHECK(s[tier::binary64] + s[tier::exact] == size);
        CHECK((s[tier::exact] == size) == (first == tier::exact));
      }
      context ctx({.threads = 1, .isa = isa.name, .first_tier = first});
      const double options[3] = {1.25, 2, 0.5};
      elu(ctx, const_tensor_view(x.data(), {size}), tensor_view(got.data(), {size}),
          {.alpha = options[0], .scale = options[1], .rate = options[2]});
      std::int64_t wrong = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::uint64_t in[3] = {num::to_bits(x[i]), 0, 0};
        wrong += num::to_bits(got[i]) == reference::oracle_of("elu").f(dtype::f32, in, options) ? 0 : 1;
      }
      CHECK(wrong == 0);
      CHECK((ctx.read_statistics()[tier::exact] == size) == (first == tier::exact));
    }
  }
}

TEST_CASE("several: gradients of logarithms and exponentials") {
  check_operations<ops::log2_backward, ops::log10_backward, ops::exp2_backward, ops::xlogy_backward_x,
                   ops::logaddexp_backward, ops::logaddexp2_backward>(60);
}
TEST_CASE("several: gradients of sin, cos, erf, erfc, erfinv, ndtri") {
  check_operations<ops::sin_backward, ops::cos_backward, ops::erf_backward, ops::erfc_backward, ops::erfinv_backward,
                   ops::ndtri_backward>(60);
}
TEST_CASE("several: gradients of tan, sinh, cosh and of inverses") {
  check_operations<ops::tan_backward, ops::asin_backward, ops::acos_backward, ops::atan_backward, ops::sinh_backward,
                   ops::cosh_backward, ops::asinh_backward, ops::acosh_backward, ops::atanh_backward>(60);
}
TEST_CASE("several: gradients of pow") { check_operations<ops::pow_backward_x, ops::pow_backward_y>(90); }

namespace {

template <class T>
std::uint64_t pattern(double v) {
  return num::to_bits(num::narrow<T>(v));
}
/// A random pattern; its mate with few bits.
template <class T>
std::uint64_t random_pattern(std::mt19937_64& engine) {
  return engine() & ((std::uint64_t{1} << (8 * sizeof(T) - 1) << 1) - 1);
}
template <class T>
std::uint64_t short_pattern(std::mt19937_64& engine) {
  constexpr int p = num::format<T>::precision;
  return random_pattern<T>(engine) & ~((std::uint64_t{1} << (p - 1 - static_cast<int>(engine() % 5))) - 1);
}

}  // namespace

// g / 2 for d next to 0, g an odd multiple of the least number; integers d, quotients that are numbers, midpoints beside them.
TEST_CASE_TEMPLATE("several: gradients of logaddexp beside midpoints", T, f16, bf16, float) {
  counts n;
  std::int64_t near = 0, ties = 0;
  std::mt19937_64 engine{10};
  constexpr std::uint64_t sign = num::sign_mask<T>;
  const auto both = [&](const std::uint64_t* in) {
    check<ops::logaddexp_backward, T>(in, {}, n);
    check<ops::logaddexp2_backward, T>(in, {}, n);
    const reference::outcome o = reference::oracle_of("logaddexp2_backward").where(dtype_of<T>, in, nullptr);
    near += o.near_tie ? 1 : 0;
    ties += o.tie || o.exact ? 1 : 0;
  };
  for (std::uint64_t i = 0; i < 120; ++i) {
    const std::uint64_t g = (2 * i + 1) | (i % 3 == 0 ? sign : 0);
    for (const std::uint64_t d :
         {std::uint64_t{0}, std::uint64_t{1}, 1 | sign, pattern<T>(0x1p-10), pattern<T>(-0x1p-10)}) {
      const std::uint64_t in[3] = {g, d, 0}, turned[3] = {g, 0, d};
      both(in);
      both(turned);
    }
  }
  for (int i = 0; i < 1500; ++i) {
    const int d = static_cast<int>(engine() % (sizeof(T) == 4 ? 60 : 20)) - (sizeof(T) == 4 ? 30 : 10);
    const double shift = static_cast<double>(engine() % 8), factor = static_cast<double>(engine() % 64 + 1);
    const double g = (1 + std::ldexp(1.0, i % 2 == 0 ? d : d % 8)) * factor;
    const std::uint64_t in[3] = {pattern<T>(i % 5 == 0 ? std::ldexp(g, -149) : g), pattern<T>(shift),
                                 pattern<T>(shift + d)};
    both(in);
    // far: g 2^-d is below the normal numbers
    const std::uint64_t far[3] = {pattern<T>(std::ldexp(factor, 8)), pattern<T>(-static_cast<double>(engine() % 160)),
                                  0};
    both(far);
  }
  CHECK(n.wrong == 0);
  CHECK(near > 50);
  CHECK(ties > 100);
}

// -g x, a midpoint: its last bit, or a result below the normal numbers. x next to multiples of pi / 2.
TEST_CASE_TEMPLATE("several: gradients of sin and cos beside midpoints", T, f16, bf16, float) {
  counts n;
  std::int64_t near = 0;
  std::mt19937_64 engine{11};
  constexpr int p = num::format<T>::precision;
  for (int i = 0; i < 3000; ++i) {
    const auto k = static_cast<double>(engine() % (1u << (p / 2)) * 2 + 1),
               m = static_cast<double>(engine() % (1u << (p / 2)) * 2 + 1);
    const int f = 1 + static_cast<int>(engine() % 8);  // g x = k m 2^(emin - p)
    const std::uint64_t in[3] = {pattern<T>(std::ldexp(k, -f)),
                                 pattern<T>(std::ldexp(i % 2 == 0 ? m : -m, num::format<T>::emin - p + f)), 0};
    check<ops::cos_backward, T>(in, {}, n);
    check<ops::sin_backward, T>(in, {}, n);
    near += reference::oracle_of("cos_backward").where(dtype_of<T>, in, nullptr).near_tie ? 1 : 0;
    const double angle = static_cast<double>(engine() >> (11 + engine() % 53)) * 1.5707963267948966;
    const std::uint64_t beside[3] = {short_pattern<T>(engine), pattern<T>(i % 2 == 0 ? angle : -angle), 0};
    check<ops::cos_backward, T>(beside, {}, n);
    check<ops::sin_backward, T>(beside, {}, n);
  }
  if constexpr (sizeof(T) == 4) {
    for (const float x : {0x1.6ac5b2p2f, 0x1.c80a5ep21f, 0x1.f9cbe2p7f, 0x1.921fb6p0f, 0x1.921fb6p1f, 0x1.ddc5bcp124f,
                          0x1.fffffep127f, 0x1.47d0fep34f, 0x1.6ac5b2p101f}) {
      const std::uint64_t in[3] = {num::to_bits(1.0f), num::to_bits(x), 0};
      check<ops::cos_backward, T>(in, {}, n);
      check<ops::sin_backward, T>(in, {}, n);
    }
  }
  CHECK(n.wrong == 0);
  CHECK(near > 2000);
}

// Powers that are rational: whole y, halves, quarters and eighths, of powers of numbers of few bits; g that makes ties.
TEST_CASE_TEMPLATE("several: gradients of pow beside midpoints", T, f16, bf16, float) {
  counts n;
  std::int64_t ties = 0, exact = 0, rational = 0;
  std::mt19937_64 engine{12};
  constexpr int p = num::format<T>::precision;
  for (int i = 0; i < 6000; ++i) {
    const int k = static_cast<int>(engine() % 4), degree = 1 << k, power = static_cast<int>(engine() % 13) - 6;
    const int e = (power > 0 ? -1 : 1) * static_cast<int>(engine() % 6);
    const auto root = static_cast<double>(engine() % (2u << (p / 2 >> k)) | 1);
    const double y = 1 + static_cast<double>(power) / degree;
    const double x = std::ldexp(std::pow(root, degree), e * degree);
    // x^(y - 1) = (root 2^e)^power; an odd g y x^(y - 1), or that times half of the least number.
    const double odd = static_cast<double>(engine() % (2u << (p / 3)) | 1) * std::pow(root, power < 0 ? -power : 0);
    const int unit = i % 2 == 0 ? num::format<T>::emin - p - power * e - (y == 0 ? 0 : std::ilogb(y)) : 0;
    const double g = std::ldexp(odd, unit);
    const std::uint64_t in[3] = {pattern<T>(i % 8 < 4 ? g : -g), pattern<T>(i % 5 == 0 ? -x : x), pattern<T>(y)};
    check<ops::pow_backward_x, T>(in, {}, n);
    check<ops::pow_backward_y, T>(in, {}, n);
    // Which CUDA asks before the last tier, the CPU within it.
    const auto r = num::body<ops::pow_backward_x>::rational(num::from_bits<T>(in[0]), num::from_bits<T>(in[1]),
                                                            num::from_bits<T>(in[2]));
    rational += r.decided ? 1 : 0;
    n.wrong += r.decided && num::to_bits(r.value) != reference::oracle_of("pow_backward_x").f(dtype_of<T>, in, nullptr);
    const reference::outcome o = reference::oracle_of("pow_backward_x").where(dtype_of<T>, in, nullptr);
    ties += o.tie ? 1 : 0;
    exact += o.exact ? 1 : 0;
    // y next to 0, g y / x a midpoint
    const std::uint64_t tiny[3] = {pattern<T>(std::ldexp(g, 20)),
                                   pattern<T>(std::ldexp(root, -static_cast<int>(engine() % 40))), engine() % 16};
    check<ops::pow_backward_x, T>(tiny, {}, n);
    const std::uint64_t any[3] = {random_pattern<T>(engine), random_pattern<T>(engine), short_pattern<T>(engine)};
    check<ops::pow_backward_x, T>(any, {}, n);
    check<ops::pow_backward_y, T>(any, {}, n);
  }
  CHECK(n.wrong == 0);
  CHECK(ties > 100);
  CHECK(exact > 500);
  CHECK(rational > 1000);
}

TEST_CASE("several: pow with a scalar") { check_operations<ops::pow_scalar, ops::scalar_pow>(250); }

// What C23 says (F.10.4.5), and the parity of the number that the scalar is, not of what it rounds to.
TEST_CASE_TEMPLATE("several: pow with a scalar, special values", T, f16, bf16, float) {
  constexpr double inf = HUGE_VAL, nan = __builtin_nan("");
  const auto expect = [](double x, double y, double want) {
    INFO(x, "^", y);
    const T result = num::narrow<T>(want);
    const num::parameters power{{y, 0, 0}}, base{{x, 0, 0}};
    for (const auto& r : {num::body<ops::pow_scalar>::eval(num::narrow<T>(x), power),
                          num::body<ops::scalar_pow>::eval(num::narrow<T>(y), base)}) {
      CHECK(r.decided);
      CHECK(num::to_bits(r.value) == num::to_bits(result));
    }
    CHECK(num::to_bits(num::body<ops::pow_scalar>::exact(num::narrow<T>(x), power, 256).value) == num::to_bits(result));
    CHECK(num::to_bits(num::body<ops::scalar_pow>::exact(num::narrow<T>(y), base, 256).value) == num::to_bits(result));
  };
  for (const double y : {0.0, -0.0, 1.0, -3.0, 0.5, inf, -inf, nan}) expect(1, y, 1);
  for (const double x : {0.0, -0.0, 1.0, -3.0, 0.5, inf, -inf, nan}) {
    expect(x, 0, 1);
    expect(x, -0.0, 1);
  }
  for (const double y : {inf, -inf}) expect(-1, y, 1);
  for (const double y : {2.0, -0.5, nan, inf}) expect(nan, y, nan);
  expect(2, nan, nan);
  expect(-2, 0.5, nan);
  expect(-1, 1.5, nan);
  expect(0, -3, inf);
  expect(-0.0, -3, -inf);
  expect(-0.0, -2, inf);
  expect(-0.0, -0.5, inf);
  expect(-0.0, -inf, inf);
  expect(-0.0, 3, -0.0);
  expect(-0.0, 2, 0);
  expect(-0.0, 0.5, 0);
  expect(-inf, 0.5, inf);
  expect(-inf, 3, -inf);
  expect(-inf, 2, inf);
  expect(-inf, -3, -0.0);
  expect(-inf, -2, 0);
  expect(inf, -0.5, 0);
  expect(inf, 0.5, inf);
  for (const double x : {0.5, -0.5}) {
    expect(x, inf, 0);
    expect(x, -inf, inf);
    expect(4 * x, inf, inf);
    expect(4 * x, -inf, 0);
  }
  const auto power_of = [](double x, double y) {
    return num::body<ops::pow_scalar>::eval(num::narrow<T>(x), num::parameters{{y, 0, 0}});
  };
  const auto is = [](const num::decided_value<T>& r, double want) {
    return r.decided && num::to_bits(r.value) == num::to_bits(num::narrow<T>(want));
  };
  for (const double odd : {0x1.000001p24, 0x1.fffffffffffffp52, -0x1.fffffffffffffp52}) {
    CHECK(is(power_of(-1, odd), -1));
    CHECK(is(power_of(-1, odd + odd), 1));
    CHECK(is(power_of(-1, 0.5 * odd), nan));
    CHECK(is(power_of(-0.0, odd), odd < 0 ? -inf : -0.0));
    CHECK(is(power_of(-2, odd), odd < 0 ? -0.0 : -inf));
  }
  CHECK(is(power_of(-1, 0x1p53), 1));
  CHECK(is(power_of(-2, 1e300), inf));
  CHECK(is(power_of(-1, 1 + 0x1p-52), nan));
  const auto power_to = [](double y, double x) {
    return num::body<ops::scalar_pow>::eval(num::narrow<T>(y), num::parameters{{x, 0, 0}});
  };
  CHECK(is(power_to(-1, 0x1p-1074), inf));
  CHECK(is(power_to(1, -0x1p-1074), -0.0));
  CHECK(is(power_to(-inf, 1 + 0x1p-52), 0));
  CHECK(is(power_to(inf, -1 - 0x1p-52), inf));
  CHECK(is(power_to(inf, 1 - 0x1p-53), 0));
}

// Powers that are numbers and midpoints, or beside one: x = (root 2^e)^degree, a power n / degree, and as much for a base; random
// doubles next to those; bases of 53 bits next to 1; every pair of landmarks and scalars.
TEST_CASE_TEMPLATE("several: pow with a scalar beside midpoints", T, f16, bf16, float) {
  counts n;
  std::int64_t ties = 0, exact = 0;
  std::mt19937_64 engine{15};
  constexpr int p = num::format<T>::precision;
  const auto both = [&](double x, double y) {
    const std::uint64_t base[3] = {pattern<T>(x), 0, 0}, power[3] = {pattern<T>(y), 0, 0};
    check<ops::pow_scalar, T>(base, {{y, 0, 0}}, n);
    check<ops::scalar_pow, T>(power, {{x, 0, 0}}, n);
    for (const reference::outcome& o : {reference::oracle_of("pow_scalar").where(dtype_of<T>, base, &y),
                                        reference::oracle_of("scalar_pow").where(dtype_of<T>, power, &x)}) {
      ties += o.tie ? 1 : 0;
      exact += o.exact ? 1 : 0;
    }
  };
  for (int i = 0; i < 300; ++i) {
    const int degree = 1 << engine() % 4, count = 1 + static_cast<int>(engine() % 9);
    // root^count has p + 1 bits, or less
    const double most =
        std::floor(std::pow(2.0, (i % 4 == 0 ? engine() % static_cast<std::uint64_t>(p) + 1.0 : p + 1.0) / count));
    const double root = most - 1 + std::fmod(most, 2), unit = std::ldexp(1.0, static_cast<int>(engine() % 9) - 4);
    const double x = std::pow(root * unit, degree), y = static_cast<double>(count) / degree;
    for (const double sign : {1.0, -1.0}) {
      both(sign * x, y);
      both(x, -y);
      both(std::nextafter(x, 0), y);
      both(x, std::nextafter(y, 10));
    }
    // half of the least number, and its odd multiples
    const int least = num::format<T>::emin - p;
    const double odd = std::floor(std::pow(2.0, 4.0 / count)) + 0.0;
    both(std::ldexp(odd, least / count), count);
    both(std::ldexp(1.0, static_cast<int>(engine() % 5) - 2), (least + static_cast<int>(engine() % 3)) / 2.0);
    const double near = 1 + static_cast<double>(static_cast<std::int64_t>(engine() % 65) - 32) * 0x1p-53;
    both(near, std::ldexp(static_cast<double>(engine() % 4096), static_cast<int>(engine() % 60)));
    both(std::ldexp(static_cast<double>(engine() >> 11), -53 + static_cast<int>(engine() % 40) - 20),
         std::ldexp(static_cast<double>(engine() >> 11), -53 + static_cast<int>(engine() % 12) - 4));
  }
  const std::vector<std::uint64_t> marks = landmarks<T>();
  for (const double v : reals) {
    for (const std::uint64_t x : marks) {
      const std::uint64_t in[3] = {x, 0, 0};
      check<ops::pow_scalar, T>(in, {{v, 0, 0}}, n);
      check<ops::scalar_pow, T>(in, {{v, 0, 0}}, n);
    }
  }
  CHECK(n.wrong == 0);
  CHECK(ties > 100);
  CHECK(exact > 500);
}

TEST_CASE("several: gradients of pow with a scalar") {
  check_operations<ops::pow_scalar_backward, ops::scalar_pow_backward>(100);
}

// What the contract says of zeros, infinities and NaN, by the number that the scalar is.
TEST_CASE_TEMPLATE("several: gradients of pow with a scalar, special values", T, f16, bf16, float) {
  constexpr double inf = HUGE_VAL, nan = __builtin_nan("");
  const auto expect = [&]<class Op>(Op, double g, double x, double scalar, double want) {
    INFO(g, " ", x, " ", scalar);
    const num::parameters p{{scalar, 0, 0}};
    const auto first = num::body<Op>::eval(num::narrow<T>(g), num::narrow<T>(x), p);
    CHECK(first.decided);
    CHECK(num::to_bits(first.value) == pattern<T>(want));
    const auto last = num::body<Op>::exact(num::narrow<T>(g), num::narrow<T>(x), p, 256);
    CHECK(num::to_bits(last.value) == pattern<T>(want));
  };
  const auto slope = [&](double g, double x, double exponent, double want) {
    expect(ops::pow_scalar_backward{}, g, x, exponent, want);
  };
  const auto growth = [&](double g, double x, double base, double want) {
    expect(ops::scalar_pow_backward{}, g, x, base, want);
  };
  for (const double a : {0.0, -0.0, 1.0, -3.0, inf, -inf, nan}) {
    for (const double b : {0.0, -0.0, 0.5, -3.0, inf, nan}) {
      slope(a, b, 0, 0);
      slope(a, b, -0.0, 0);
      slope(a, b, 1, a);
      slope(1, b, nan, nan);
    }
    growth(a, 0, 0, 0);
    growth(a, -0.0, 0, 0);
    growth(a, 2, -0.0, 0);
    growth(a, inf, 0, 0);
    growth(1, a, -2, nan);
    growth(1, a, -inf, nan);
    growth(1, a, nan, nan);
    growth(-1, a, 1, -0.0);
  }
  for (const double even : {0x1p53, 1e300, 0x1.fffffffffffffp1023}) {
    slope(1, -1, even, -even);
    slope(1, -0.0, even, -0.0);
    slope(1, -inf, even, -inf);
    slope(-1, -inf, -even, -0.0);
    slope(1, -0.0, -even, inf);
  }
  slope(0, -1, 1e300, -0.0);
  slope(inf, -1, 2, -inf);
  slope(1, -0.0, 0x1.fffffffffffffp52, 0);
  slope(1, 0, 1e300, 0);
  slope(0, inf, 1e300, nan);
  for (const double least : {0x1p-1074, -0x1p-1074}) {
    slope(1, -0.0, least, least * inf);
    slope(1, -inf, least, least * 0);
    slope(1, -1, least, nan);
    slope(-1, 1, least, least * -0.0);
  }
  slope(1, 1, inf, inf);
  slope(1, -1, -inf, -inf);
  slope(1, 0.5, inf, nan);
  slope(1, 0.5, -inf, -inf);
  slope(0, -3, 0.5, nan);
  growth(1, -1, 0, -inf);
  growth(0, -1, -0.0, nan);
  growth(1, nan, 0, nan);
  growth(1, inf, 1 + 0x1p-52, inf);
  growth(1, -inf, 1 + 0x1p-52, 0);
  growth(1, inf, 1 - 0x1p-53, -0.0);
  growth(0, 1, 0.5, -0.0);
  growth(1, 0, inf, inf);
  growth(1, -1, inf, nan);
  growth(inf, 0, 1, nan);
}

// Exponents whose powers are rational, g that makes midpoints, also below the normal numbers; the doubles and the x next to those;
// exponents next to 0, for which g y / x is one, of many bits; x = 1 and -1; bases next to 1; any double.
TEST_CASE_TEMPLATE("several: gradients of pow with a scalar beside midpoints", T, f16, bf16, float) {
  counts n;
  std::int64_t ties = 0, exact = 0, near = 0;
  std::mt19937_64 engine{16};
  constexpr int p = num::format<T>::precision, emax = num::format<T>::emax, least = num::format<T>::emin - p;
  const auto below = [&](int bound) { return static_cast<int>(engine() % static_cast<unsigned>(bound)); };
  const auto odd_below = [&](int bits) { return static_cast<double>(engine() % (std::uint64_t{1} << bits) | 1); };
  const auto both = [&](std::uint64_t g, std::uint64_t x, double v) {
    const std::uint64_t in[3] = {g, x, 0};
    check<ops::pow_scalar_backward, T>(in, {{v, 0, 0}}, n);
    check<ops::scalar_pow_backward, T>(in, {{v, 0, 0}}, n);
    const reference::outcome o = reference::oracle_of("pow_scalar_backward").where(dtype_of<T>, in, &v);
    ties += o.tie ? 1 : 0;
    exact += o.exact ? 1 : 0;
    near += o.near_tie ? 1 : 0;
  };
  for (int i = 0; i < 700; ++i) {
    // x = (root 2^e)^degree, y - 1 = power / degree: g y x^(y - 1) = g y (root 2^e)^power
    const int k = below(4), degree = 1 << k, power = below(13) - 6, e = (power > 0 ? -1 : 1) * below(6);
    const double root = odd_below(p / 2 >> k);
    const double y = 1 + static_cast<double>(power) / degree, x = std::ldexp(std::pow(root, degree), e * degree);
    const double odd = odd_below(p / 3 + 1) * std::pow(root, power < 0 ? -power : 0);
    const double g = std::ldexp(odd, i % 2 == 0 ? least - power * e - (y == 0 ? 0 : std::ilogb(y)) : 0);
    both(pattern<T>(i % 8 < 4 ? g : -g), pattern<T>(i % 5 == 0 ? -x : x), y);
    if (i % 3 == 0) both(pattern<T>(g), pattern<T>(x), std::nextafter(y, i % 2 == 0 ? 10 : -10));
    if (i % 3 == 1) both(pattern<T>(g), pattern<T>(x) + 1, y);

    // an odd g y / x of p + 1 bits, or times half of the least number
    const double divisor = odd_below(6), part = odd_below(p - 6 - 1);
    const double whole = 2 * std::floor(std::ldexp(1.0, p) / part) + 1 + 2 * below(8);
    both(pattern<T>(part), pattern<T>(divisor), std::ldexp(whole * divisor, -20 - below(emax - 30 > 10 ? 90 : 4)));
    const int up = below(emax - p + 1), down = below(emax / 2);
    both(pattern<T>(std::ldexp(part * divisor, up - 6)), pattern<T>(std::ldexp(i % 2 == 0 ? divisor : -divisor, -down)),
         std::ldexp(1.0, least - up + 6 - down));

    const int length = i % 4 < 2 ? p / 2 + 1 : 1 + below(53);
    both(pattern<T>(odd_below(p / 2 + 1)), pattern<T>(i % 2 == 0 ? 1 : -1), std::ldexp(odd_below(length), -below(60)));
    const double next = 1 + static_cast<double>(below(129) - 64) * 0x1p-53;
    both(pattern<T>(odd_below(p + 1)), i % 4 == 0 ? random_pattern<T>(engine) : pattern<T>(std::ldexp(1.0, -below(40))),
         next);
    const double any = num::double_of(engine());
    both(random_pattern<T>(engine), random_pattern<T>(engine), any);
    both(random_pattern<T>(engine), short_pattern<T>(engine), std::ldexp(odd_below(53), -50 - below(6)));
  }
  CHECK(n.wrong == 0);
  CHECK(ties > 70);
  CHECK(exact > 400);
  CHECK(near > 90);
}

TEST_CASE("several: gated units") {
  check_operations<ops::glu, ops::swiglu, ops::reglu, ops::geglu>(20);
  check_operations<ops::glu_backward_b, ops::swiglu_backward_a, ops::reglu_backward_a, ops::geglu_backward_a>(2);
}

// Products that are midpoints, or twice or four times one, of numbers of p + 1 bits or below the normal ones, times functions next
// to 1, 1/2, 1/4, or there.
TEST_CASE_TEMPLATE("several: gated units beside midpoints", T, f16, bf16, float) {
  counts n;
  std::int64_t near = 0, ties = 0;
  std::mt19937_64 engine{14};
  constexpr int p = num::format<T>::precision, least = num::format<T>::emin - p + 1;
  const auto both = [&]<class Op>(Op, const std::uint64_t* in) {
    check<Op, T>(in, {}, n);
    const reference::outcome o = reference::oracle_of(row_of<Op>.name).where(dtype_of<T>, in, nullptr);
    near += o.near_tie ? 1 : 0;
    ties += o.tie ? 1 : 0;
  };
  for (int i = 0; i < 60; ++i) {
    // odd m k of p + 1 bits
    const double k = static_cast<double>(2 * (engine() % 4) + 1);
    const double m = 2 * std::floor((std::ldexp(1.0, p) / k + static_cast<double>(engine() % 64) * 2) / 2) + 1;
    const double sign = i % 2 == 0 ? 1 : -1, turned = i % 4 < 2 ? 1 : -1;
    const int most = num::format<T>::emax - 3;
    for (const int e : {0, 3, 5, 6, 7, 9, 11, most, -1, -4, -p, least}) {
      const int limit = e < most - p ? e : most - p;
      const std::uint64_t x = pattern<T>(turned * std::ldexp(k, e)), mate = pattern<T>(sign * std::ldexp(m, -limit));
      const std::uint64_t unit[3] = {x, mate, 0};
      both(ops::swiglu{}, unit);
      both(ops::geglu{}, unit);
      both(ops::reglu{}, unit);
      const std::uint64_t a = pattern<T>(turned * k), b = pattern<T>(sign * m);
      const std::uint64_t half = pattern<T>(turned * std::ldexp(k, -2)),
                          tiny = pattern<T>(sign * std::ldexp(m, 2 + least));
      for (const std::uint64_t at : {x, std::uint64_t{i % 3 == 0 ? 0u : num::sign_mask<T>}}) {
        const std::uint64_t product_first[3] = {a, b, at}, product_around[3] = {half, at, tiny}, around[3] = {a, at, b};
        both(ops::glu_backward_b{}, product_first);
        both(ops::swiglu_backward_a{}, around);
        both(ops::swiglu_backward_a{}, product_around);
        both(ops::geglu_backward_a{}, around);
        both(ops::reglu_backward_a{}, around);
      }
    }
    const std::uint64_t odd = 2 * (engine() % 64) + 1, sign_bit = i % 2 == 0 ? 0u : num::sign_mask<T>;
    const std::uint64_t below[3] = {odd | sign_bit, engine() % 3 | (i % 4 < 2 ? 0u : num::sign_mask<T>), 0};
    both(ops::glu{}, below);
  }
  CHECK(n.wrong == 0);
  CHECK(near > 300);
  CHECK(ties > 1000);
}

// Through the library, each tier forced. No element of small numbers is left to the last tier but those that are forced there.
TEST_CASE("several: tiers of gradients" * doctest::test_suite("portable")) {
  constexpr std::int64_t size = 400;
  std::mt19937_64 engine{13};
  std::vector<float> in[3], got(size);
  for (std::vector<float>& v : in) {
    for (std::int64_t i = 0; i < size; ++i)
      v.push_back(std::ldexp(static_cast<float>(engine() % 4096) - 2048, static_cast<int>(engine() % 14) - 12));
  }
  for (const char* name : {"log2_backward",
                           "log10_backward",
                           "exp2_backward",
                           "xlogy_backward_x",
                           "logaddexp_backward",
                           "logaddexp2_backward",
                           "sin_backward",
                           "cos_backward",
                           "erf_backward",
                           "erfc_backward",
                           "erfinv_backward",
                           "ndtri_backward",
                           "pow_backward_x",
                           "pow_backward_y",
                           "pow_scalar_backward",
                           "glu",
                           "swiglu",
                           "geglu",
                           "glu_backward_b",
                           "swiglu_backward_a",
                           "geglu_backward_a"}) {
    const int arity = reference::elementwise_named(name)->arity;
    constexpr double options = 2;  // the default exponent
    std::vector<const_tensor_view> views;
    for (int k = 0; k < arity; ++k) views.emplace_back(in[k].data(), sizes{size});
    std::vector<std::uint32_t> want;
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint64_t operands[3] = {num::to_bits(in[0][i]), num::to_bits(in[1][i]), num::to_bits(in[2][i])};
      want.push_back(static_cast<std::uint32_t>(reference::oracle_of(name).f(dtype::f32, operands, &options)));
    }
    for (const isa_info& isa : instruction_sets()) {
      if (!isa.available) continue;
      for (const tier first : {tier::proved, tier::exact}) {
        INFO(name, " ", isa.name);
        context ctx({.threads = 2, .isa = isa.name, .first_tier = first});
        const tensor_view out(got.data(), sizes{size});
        call(ctx, *find(name), views, {&out, 1}, {});
        std::int64_t wrong = 0;
        for (std::size_t i = 0; i < size; ++i) wrong += num::to_bits(got[i]) == want[i] ? 0 : 1;
        CHECK(wrong == 0);
        const statistics s = ctx.read_statistics();
        CHECK((first == tier::exact ? s[tier::exact] == size : s[tier::exact] < size / 10));
      }
    }
  }
}
TEST_CASE("several: many tuples [long]" * doctest::skip()) {
  check_operations<
      ops::addcmul, ops::addcdiv, ops::lerp, ops::lerp_scalar, ops::prelu, ops::prelu_backward, ops::hypot, ops::fmod,
      ops::remainder, ops::div_trunc, ops::div_floor, ops::xlogy, ops::logaddexp, ops::elu, ops::silu_backward,
      ops::mish_backward, ops::log_sigmoid_backward, ops::gelu_backward, ops::gelu_tanh_backward,
      ops::leaky_relu_backward, ops::elu_backward, ops::selu_backward, ops::celu, ops::celu_backward, ops::softplus,
      ops::softplus_backward, ops::logit, ops::logit_backward, ops::softshrink, ops::softshrink_backward, ops::atan2,
      ops::logaddexp2, ops::log2_backward, ops::log10_backward, ops::exp2_backward, ops::xlogy_backward_x,
      ops::logaddexp_backward, ops::logaddexp2_backward, ops::sin_backward, ops::cos_backward, ops::erf_backward,
      ops::erfc_backward, ops::erfinv_backward, ops::ndtri_backward, ops::pow_backward_x, ops::pow_backward_y, ops::glu,
      ops::swiglu, ops::reglu, ops::geglu, ops::glu_backward_b, ops::swiglu_backward_a, ops::reglu_backward_a,
      ops::geglu_backward_a, ops::pow_scalar, ops::scalar_pow>(300000);
}
TEST_CASE("several: many tuples of gradients of pow with a scalar [long]" * doctest::skip()) {
  check_operations<ops::pow_scalar_backward, ops::scalar_pow_backward>(300000);
}

// g >= 0 stands for both signs, of geglu b. Of no formula of these a theorem says that it is never a midpoint.
TEST_CASE_TEMPLATE("several: every pair of geglu and of the gradients of gelu and erf is decided [long]" *
                       doctest::skip(),
                   T, f16, bf16) {
  std::int64_t undecided = 0;
  const auto all = [&]<class Op>(Op) {
    for (std::uint32_t i = 0; i < 1u << 16; ++i) {
      const T x = num::from_bits<T>(static_cast<std::uint16_t>(i));
      for (std::uint32_t k = 0; k <= num::format<T>::infinity; ++k) {
        const T g = num::from_bits<T>(static_cast<std::uint16_t>(k));
        const bool turned = std::is_same_v<Op, ops::geglu>;
        const T first = turned ? x : g, second = turned ? g : x;
        if (num::evaluate<Op>(first, second).decided) continue;
        undecided += num::evaluate_exactly<Op>(2048, first, second).decided ? 0 : 1;
      }
    }
  };
  all(ops::gelu_backward{});
  all(ops::gelu_tanh_backward{});
  all(ops::erf_backward{});
  all(ops::erfc_backward{});
  all(ops::erfinv_backward{});
  all(ops::ndtri_backward{});
  all(ops::geglu{});
  CHECK(undecided == 0);
}

TEST_SUITE_END();
