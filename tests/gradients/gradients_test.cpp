// Gradients of algebraic functions and of selections against the oracle: special values; results that are midpoints or beside
// one, made from small integers; random patterns. Every instruction set, through the library.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/ops/elementwise/bodies.hpp"
#include "librepdl/ops/operations.hpp"
#include "reference/elementwise/elementwise.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/loop_values.hpp"

namespace {

using namespace repdl;
using whole = std::int64_t;

struct tuple {
  std::uint64_t in[ops::most_operands] = {};
  double option = 0;  // the first one
};

// What is not the operation's own takes its row: most of this file would be compiled for every operation and format.
template <class Op>
const ops::elementwise_row& row_of = ops::row_of(ops::id_of<Op>);
constexpr bool has_option(const ops::elementwise_row& row) { return row.options.count() != 0; }
auto number_of(const ops::elementwise_row& row) {
  return static_cast<std::uint64_t>(&row - ops::elementwise_rows().data());
}

template <class T>
std::uint64_t pattern(double v) {
  return num::to_bits(num::narrow<T>(v));
}

template <class Op, class T>
std::uint64_t computed(const tuple& a) {
  const auto of = [&](int k) { return num::from_bits<T>(static_cast<num::storage_of<T>>(a.in[k])); };
  return num::with_places<Op::arity>([&]<int... K>() {
    if constexpr (has_option(Op::row)) {
      return num::to_bits(num::evaluate<Op>(of(K)..., num::parameters{{a.option}}));
    } else {
      return num::to_bits(num::evaluate<Op>(of(K)...));
    }
  });
}

struct counts {
  whole tuples = 0, near = 0, wrong = 0;
};

void check_result(std::uint64_t got, std::uint64_t want, const ops::elementwise_row& row, const char* loop,
                  const tuple& a, counts& n) {
  if (got == want || ++n.wrong > 5) return;
  INFO(row.name, " ", loop, std::hex, " ", a.in[0], " ", a.in[1], " ", a.in[2], " ", a.in[3], std::hexfloat, " option ",
       a.option);
  CHECK(got == want);
}
template <class Op, class T>
void check(const std::vector<tuple>& tuples, bool place, counts& n) {
  const reference::oracle& o = reference::oracle_of(row_of<Op>.name);
  for (const tuple& a : tuples) {
    const std::uint64_t want = o.f(dtype_of<T>, a.in, &a.option);
    if (place) {
      const auto at = o.where(dtype_of<T>, a.in, &a.option);
      n.near += at.boundary_distance < std::ldexp(16.0, -num::format<T>::precision) ? 1 : 0;  // 0 at a midpoint
    }
    ++n.tuples;
    const auto compare = [&](T value, const char* loop) {
      check_result(num::to_bits(value), want, row_of<Op>, loop, a, n);
    };
    if constexpr (has_option(Op::row)) {
      test::for_each_loop_value<Op, T>(a.in, compare, num::parameters{{a.option}});
    } else {
      test::for_each_loop_value<Op, T>(a.in, compare);
    }
    check_result(computed<Op, T>(a), want, row_of<Op>, "", a, n);
  }
}

// All tuples of these.
template <class T>
std::vector<tuple> specials(const ops::elementwise_row& row) {
  using F = num::format<T>;
  std::vector<std::uint64_t> list = {0,
                                     1,
                                     3,
                                     std::uint64_t{1} << (F::precision - 1),
                                     F::infinity - 1u,
                                     F::infinity,
                                     F::infinity + 1u,
                                     pattern<T>(0.75),
                                     pattern<T>(1),
                                     pattern<T>(2.5)};
  for (std::size_t i = list.size(); i-- > 0;) list.push_back(list[i] | num::sign_mask<T>);
  const std::size_t size = list.size();
  std::vector<tuple> all;
  for (std::size_t i = 0; i < (row.arity > 2 ? size : 1); ++i) {
    for (std::size_t j = 0; j < (row.arity > 1 ? size : 1); ++j) {
      for (const std::uint64_t g : list) {
        if (row.arity > 3) {  // all triples of the others, g by turns
          for (std::size_t k = 0; k < size; ++k) {
            if ((i + 3 * j + 7 * k) % size == static_cast<std::size_t>(&g - list.data()))
              all.push_back({{g, list[j], list[i], list[k]}, 0});
          }
          continue;
        }
        all.push_back({{g, list[j], list[i]}, has_option(row) ? row.options.all[0].otherwise.number : 0});
        if (!has_option(row)) continue;
        for (const double option : {0.0, -0.0, 1.0, -0x1p200, 0x1.fffffffffffffp-200}) {
          if ((i + j) % 5 == 0)
            all.push_back({all.back().in[0], all.back().in[1], all.back().in[2]}), all.back().option = option;
        }
      }
    }
  }
  return all;
}

double coefficient(std::mt19937_64& engine) {
  const double some[] = {1, -1, 0.5, 3, 0.1, 0x1p-200, -0x1.fffffffffffffp199, 0x1.0000000000001p0, 0x1p-24, 0};
  const auto i = engine() % 12;
  return i < std::size(some)
             ? some[i]
             : std::ldexp(static_cast<double>(engine() % (1u << 30)) + 1, static_cast<int>(engine() % 40) - 40);
}

template <class T>
std::vector<tuple> random_ones(const ops::elementwise_row& row, whole many, std::mt19937_64& engine) {
  std::vector<tuple> all;
  for (const reference::sample_class c : reference::element_classes) {
    const auto v = reference::fill_operands(c, dtype_of<T>, ops::most_operands, many, 1, number_of(row));
    for (std::size_t i = 0; i < static_cast<std::size_t>(many); ++i) {
      all.push_back({{}, coefficient(engine)});
      for (std::size_t k = 0; k < v.size(); ++k) all.back().in[k] = v[k].get(i);
    }
  }
  for (whole i = 0; i < many; ++i) {  // patterns; operands of few bits; neighbours
    tuple a{{}, coefficient(engine)};
    const int e = static_cast<int>(engine() % 30) - 15;
    for (std::uint64_t& b : a.in) {
      b = engine() & (num::sign_mask<T> | (num::sign_mask<T> - 1u));
      if (i % 3 == 0) b = pattern<T>(std::ldexp(static_cast<double>(engine() % 129) - 64, i % 2 == 0 ? e : e / 4));
    }
    if (i % 3 == 1) a.in[2] = a.in[1] ^ (engine() % 4) ^ (i % 2 == 0 ? 0 : num::sign_mask<T>);
    if (i % 3 == 2 && i % 2 == 0)
      a.in[1] = pattern<T>(std::ldexp(static_cast<double>(engine() % 65) - 32, -5)), a.in[2] = pattern<T>(-0.75);
    if (row.arity > 3 && i % 2 == 0) a.in[3] = a.in[1 + engine() % 2] ^ (i % 4 == 0 ? 0 : 1);
    all.push_back(a);
  }
  return all;
}

// ------------------------------------------------------------------------------------------------------ at midpoints

__extension__ using wide = __int128;

int bits_in(wide a) {
  int n = 0;
  for (; a != 0; a /= 2) ++n;
  return n;
}
wide shifted_modulo(wide a, int by, wide m) {
  for (a %= m; by > 0; --by) a = 2 * a % m;
  return a;
}

// An odd G of at most p bits with G F = M D, times a power of two, for an odd M of p + 1 bits; or 0.
whole at_midpoint(wide f, wide d, int p, std::mt19937_64& engine) {
  if (bits_in(f) > 30 || bits_in(d) > 30) return 0;
  const whole low = whole{1} << p;
  const whole step = static_cast<whole>(f) / std::gcd(static_cast<whole>(f), static_cast<whole>(d));
  const whole m = (low + static_cast<whole>(engine() % static_cast<std::uint64_t>(low))) / step * step;
  if (m < low || m % 2 == 0) return 0;
  wide g = m * d / f;
  while (g % 2 == 0) g /= 2;
  return g < low ? static_cast<whole>(g) : 0;
}

// The least x with low <= a x mod m <= high, or -1: where no multiple of a is between them, a x - m y is, and m y mod a is known
// up to that. No x beyond 2^26.
whole first_between(wide a, wide m, wide low, wide high) {
  if (low == 0) return 0;
  if (a == 0) return -1;
  if (2 * a > m) return first_between(m - a, m, m - high, m - low);
  const wide t = (low + a - 1) / a;
  if (t * a <= high) return t < (1 << 26) ? static_cast<whole>(t) : -1;
  const whole y = first_between((a - m % a) % a, a, low % a, high % a);
  const wide x = y < 0 ? -1 : (low + m * y + a - 1) / a;
  return x < (1 << 26) ? static_cast<whole>(x) : -1;
}

// G of p bits such that G F / D is within 2^-(p + 6) ulp of a midpoint: as near as the roundings of a binary64 number are for
// p = 24. Mostly 0: there is none.
whole near_midpoint(wide f, wide d, int p, std::mt19937_64& engine) {
  const whole first = (whole{1} << (p - 1)) + static_cast<whole>(engine() % (std::uint64_t{1} << (p - 2)));
  // first F 2^u / D is in [2^(p - 1), 2^p).
  const double ratio = static_cast<double>(f) / static_cast<double>(d);
  const int u = p - 1 - std::ilogb(static_cast<double>(first) * ratio);
  const wide m = u < 0 ? d << -u : d;
  if (m % 2 == 0 ? bits_in(m) > 96 : bits_in(m) < p - 3) return 0;  // an odd m has no half
  const wide a = u > 0 ? shifted_modulo(f, u, m) : f % m;
  const wide close = m >> (p + 6);
  const wide low = (m / 2 - close + m - a * first % m) % m;
  if (low + 2 * close >= m) return 0;
  const whole x = first_between(a, m, low, low + 2 * close);
  const bool beyond = std::ilogb(static_cast<double>(first + x) * ratio) >= p - u;  // in the next binade
  return x < 0 || beyond || first + x >= whole{1} << p ? 0 : first + x;
}

// Operands of at most `bits` bits for which the result is G F / D, but for a power of two and a sign. G is the gradient.
struct fraction {
  wide f = 1, d = 1;
  double x = 0, y = 0, option = 0;
};
template <class Op>
fraction draw(int bits, bool wide_range, bool beyond, std::mt19937_64& engine) {
  const auto below = [&](int n) { return static_cast<whole>(1 + engine() % ((std::uint64_t{1} << n) - 1)); };
  const auto power = [&](int most) { return static_cast<int>(engine() % static_cast<unsigned>(most + 1)); };
  const auto real = [](whole v, int exponent = 0) { return std::ldexp(static_cast<double>(v), exponent); };
  const wide a = below(bits), b = below(bits), one = 1;
  const auto x = real(static_cast<whole>(a)), y = real(static_cast<whole>(b));
  // beyond: exact results of more bits than binary64 has.
  const int k = beyond ? 28 + power(17) : power(wide_range ? 45 : 12);
  const int j = beyond ? 30 + power(10) : power(wide_range ? 40 : 4);
  if constexpr (std::is_same_v<Op, ops::sqrt_backward> || std::is_same_v<Op, ops::log_backward>) {
    return {1, a, x};
  } else if constexpr (std::is_same_v<Op, ops::log1p_backward>) {
    const wide under = a - (one << k);
    if (engine() % 3 == 0) return {1, (a << j) + 1, std::ldexp(x, j)};
    if (engine() % 2 == 0 || under == 0) return {1, (one << k) + a, std::ldexp(x, -k)};
    return {1, under < 0 ? -under : under, -std::ldexp(x, -k)};
  } else if constexpr (std::is_same_v<Op, ops::rsqrt_backward>) {
    return {a * a * a, 1, x};
  } else if constexpr (std::is_same_v<Op, ops::reciprocal_backward>) {
    return {a * a, 1, x};
  } else if constexpr (std::is_same_v<Op, ops::expm1_backward>) {
    return {a + (one << k), 1, std::ldexp(x, -k)};
  } else if constexpr (std::is_same_v<Op, ops::lerp_backward_x>) {
    return {a + (one << k), 1, -std::ldexp(x, -k)};
  } else if constexpr (std::is_same_v<Op, ops::lerp_scalar_backward_x>) {
    const whole weight = below(wide_range ? 53 : bits);
    return {weight + (one << k), 1, 0, 0, -real(weight, -k)};
  } else if constexpr (std::is_same_v<Op, ops::lerp_backward_weight>) {
    return {a + (b << j), 1, -x, std::ldexp(y, j)};
  } else if constexpr (std::is_same_v<Op, ops::div_backward_y>) {
    return {a, b * b, x, y};
  } else if constexpr (std::is_same_v<Op, ops::hypot_backward> || std::is_same_v<Op, ops::xlogy_backward_y>) {
    return {a, b, x, y};
  } else if constexpr (std::is_same_v<Op, ops::atan2_backward_y>) {
    const wide scaled = b << (j / 2);
    return {scaled, a * a + scaled * scaled, x, std::ldexp(y, j / 2)};
  } else if constexpr (std::is_same_v<Op, ops::atan2_backward_x>) {
    const wide scaled = b << (j / 2);
    return {a, a * a + scaled * scaled, x, std::ldexp(y, j / 2)};
  } else if constexpr (std::is_same_v<Op, ops::addcdiv_backward_z>) {
    const whole value = below(wide_range ? 53 : bits);
    return {a * value, b * b, x, y, real(value, -k)};
  } else {
    static_assert(std::is_same_v<Op, ops::fmod_backward_y> || std::is_same_v<Op, ops::remainder_backward_y>);
    const bool up = std::is_same_v<Op, ops::remainder_backward_y> && engine() % 2 == 0;
    const wide scaled = a << j, quotient = scaled / b;
    return {quotient + (up && quotient * b != scaled ? 1 : 0), 1, std::ldexp(x, j), up ? -y : y};
  }
}

// Midpoints from few bits, results next to one from many.
using draw_function = fraction(int bits, bool wide_range, bool beyond, std::mt19937_64& engine);
template <class T>
std::vector<tuple> at_midpoints(draw_function* draw, whole many, std::mt19937_64& engine) {
  constexpr int p = num::format<T>::precision;
  constexpr bool wide_range = !std::is_same_v<T, f16>;
  std::vector<tuple> all;
  int missed = 0;
  for (whole tries = 0; tries < 3000 * many && static_cast<whole>(all.size()) < many; ++tries) {
    const bool near = all.size() % 2 == 0 || missed > 200;  // of quotients by squares there are hardly any midpoints
    const int bits = near ? p : 1 + static_cast<int>(engine() % (2 * p / 3));
    const fraction r = draw(bits, wide_range, near && p == 24, engine);
    if (r.f == 0) continue;
    const whole g = near ? near_midpoint(r.f, r.d, p, engine) : at_midpoint(r.f, r.d, p, engine);
    missed += near || g != 0 ? 0 : 1;
    if (g == 0) continue;
    const double sign = engine() % 2 == 0 ? 1 : -1;
    const int scale = static_cast<int>(engine() % 9) - (wide_range ? 4 : 16);
    const double scaled = std::ldexp(sign * static_cast<double>(g), scale);
    all.push_back({{pattern<T>(scaled), pattern<T>(r.x), pattern<T>(r.y)}, r.option});
  }
  return all;
}

// Results and operands below the normal numbers: few bits, exponents around the least ones.
template <class T>
std::vector<tuple> subnormal_ones(whole many, std::mt19937_64& engine) {
  using F = num::format<T>;
  std::vector<tuple> all;
  for (whole i = 0; i < many; ++i) {
    tuple a{{}, i % 2 == 0 ? 1.0 : std::ldexp(3.0, -static_cast<int>(engine() % 30))};
    for (std::uint64_t& b : a.in)
      b = pattern<T>(std::ldexp(static_cast<double>(engine() % 31) - 15, static_cast<int>(engine() % 12) - 6));
    a.in[0] = engine() % 2 == 0 ? 1 + engine() % 64
                                : pattern<T>(std::ldexp(1.0 + static_cast<double>(engine() % 8), F::emin - 2));
    if (i % 3 == 0) {  // g / 2^k is a midpoint, the exact result beside it
      const int k = 1 + static_cast<int>(engine() % (sizeof(T) == 2 && F::emax == 15 ? 15 : 90));
      const double odd = 1 + 2 * static_cast<double>(engine() % 16);
      a.in[0] = pattern<T>(std::ldexp(engine() % 2 == 0 ? odd : -odd, k + F::emin - F::precision));
      a.in[1] = pattern<T>(std::ldexp(engine() % 2 == 0 ? 1.0 : -1.0, k));
      a.in[2] = pattern<T>(1);
      if (engine() % 2 == 0) std::swap(a.in[1], a.in[2]);
    }
    all.push_back(a);
  }
  return all;
}

template <class T>
std::vector<tuple> tuples_of(const ops::elementwise_row& row, whole many) {
  std::mt19937_64 engine{number_of(row) * 8 + sizeof(T)};
  std::vector<tuple> all = specials<T>(row);
  const auto append = [&](const std::vector<tuple>& more) { all.insert(all.end(), more.begin(), more.end()); };
  append(random_ones<T>(row, many, engine));
  append(subnormal_ones<T>(2 * many, engine));
  for (tuple& a : all)
    if (!has_option(row)) a.option = 0;
  return all;
}

template <class Op>
void check_formats(whole many) {
  counts n;
  constexpr auto formats = num::has_body64<Op> ? Op::formats & ops::NARROW : Op::formats;  // binary64_test.cpp
  ops::for_each_format<formats>([&]<class T>() { check<Op, T>(tuples_of<T>(row_of<Op>, many), false, n); });
  INFO(row_of<Op>.name);
  CHECK(n.wrong == 0);
  MESSAGE(row_of<Op>.name << ": " << n.tuples << " tuples");
}
void check_placed(const counts& n, const ops::elementwise_row& row, whole many, bool f16_overflows) {
  INFO(row.name);
  CHECK(n.wrong == 0);
  CHECK(10 * n.near >= (f16_overflows ? 3 : 9) * n.tuples);
  CHECK(2 * n.tuples >= many);
  MESSAGE(row.name << ": " << n.tuples << " tuples, at midpoints " << n.near);
}
template <class Op>
void check_midpoints(whole many) {
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    counts n;
    std::mt19937_64 engine{number_of(row_of<Op>) * 8 + sizeof(T) + 1};
    check<Op, T>(at_midpoints<T>(draw<Op>, many, engine), true, n);
    check_placed(n, row_of<Op>, many, std::is_same_v<T, f16>);
  });
}
template <class... Op>
struct list {
  static void check(whole many) { (check_formats<Op>(many), ...); }
  static void check_at_midpoints(whole many) { (check_midpoints<Op>(many), ...); }
  template <class F>
  static void for_each(const F& f) {
    (f.template operator()<Op>(), ...);
  }
};

using algebraic =
    list<ops::sqrt_backward, ops::log_backward, ops::log1p_backward, ops::rsqrt_backward, ops::reciprocal_backward,
         ops::expm1_backward, ops::div_backward_y, ops::addcdiv_backward_z, ops::lerp_backward_x,
         ops::lerp_backward_weight, ops::lerp_scalar_backward_x, ops::hypot_backward, ops::atan2_backward_y,
         ops::atan2_backward_x, ops::xlogy_backward_y, ops::fmod_backward_y, ops::remainder_backward_y>;
using selecting = list<ops::abs_backward, ops::copysign_backward, ops::maximum_backward, ops::minimum_backward,
                       ops::fmax_backward_x, ops::fmax_backward_y, ops::fmin_backward_x, ops::fmin_backward_y,
                       ops::clip_backward, ops::clip_backward_lo, ops::clip_backward_hi>;

}  // namespace

TEST_SUITE_BEGIN("portable values");

TEST_CASE("gradients: algebraic functions") { algebraic::check(60); }
TEST_CASE("gradients: selections") { selecting::check(30); }
TEST_CASE("gradients: at midpoints") { algebraic::check_at_midpoints(40); }
TEST_CASE("gradients: many tuples [long]" * doctest::skip()) {
  algebraic::check(20000);
  selecting::check(5000);
  algebraic::check_at_midpoints(10000);
}

// Through the library, on every instruction set.
void check_calls(const ops::elementwise_row& row, const std::vector<tuple>& tuples) {
  const auto n = static_cast<whole>(tuples.size());
  const double option = has_option(row) ? 0.3 : 0;
  std::vector<std::uint32_t> operand[ops::most_operands], got(tuples.size()), want;
  for (const tuple& a : tuples) {
    for (std::size_t k = 0; k < std::size(operand); ++k) operand[k].push_back(static_cast<std::uint32_t>(a.in[k]));
    want.push_back(static_cast<std::uint32_t>(reference::oracle_of(row.name).f(dtype::f32, a.in, &option)));
  }
  attributes options;
  if (has_option(row)) options = {{std::string(row.options.all[0].name), option}};
  for (const isa_info& isa : instruction_sets()) {
    if (!isa.available) continue;
    INFO(row.name, " ", isa.name);
    context ctx({.threads = 1, .isa = isa.name});
    std::vector<const_tensor_view> in;
    const sizes shape(std::vector<whole>{n});
    for (std::size_t k = 0; k < static_cast<std::size_t>(row.arity); ++k)
      in.emplace_back(operand[k].data(), dtype::f32, shape);
    call(ctx, *find(row.name), in, std::vector{tensor_view(got.data(), dtype::f32, shape)}, options);
    CHECK(got == want);
  }
}
TEST_CASE("gradients: through the library" * doctest::test_suite("portable")) {
  const auto on_every_set = []<class Op>() {
    std::mt19937_64 engine{number_of(row_of<Op>)};
    std::vector<tuple> tuples = random_ones<float>(row_of<Op>, 20, engine);
    if constexpr ((Op::formats & ops::one(dtype::f64)) == 0) {
      const std::vector<tuple> more = at_midpoints<float>(draw<Op>, 20, engine);
      tuples.insert(tuples.end(), more.begin(), more.end());
    }
    check_calls(row_of<Op>, tuples);
  };
  algebraic::for_each(on_every_set);
  selecting::for_each(on_every_set);
}

TEST_SUITE_END();
