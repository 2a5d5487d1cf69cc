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
#include "librepdl/ops/bodies.hpp"
#include "reference/elementwise.hpp"
#include "reference/samples.hpp"

namespace {

using namespace repdl;
using whole = std::int64_t;

struct tuple {
  std::uint64_t in[3] = {};
  double option = 0;  // the first one
};

template <class Op>
constexpr const ops::elementwise_row& row_of = ops::elementwise_rows[static_cast<int>(Op::id)];
template <class Op>
constexpr bool has_option = row_of<Op>.options.count() != 0;

template <class T>
std::uint64_t pattern(double v) {
  return num::to_bits(num::narrow<T>(v));
}

template <class Op, class T>
std::uint64_t computed(const tuple& a) {
  const auto of = [&](int k) { return num::from_bits<T>(static_cast<num::storage_of<T>>(a.in[k])); };
  if constexpr (has_option<Op>) {
    return num::to_bits(num::evaluate<Op>(of(0), of(1), of(2), num::parameters{{a.option}}));
  } else {
    return num::to_bits(num::evaluate<Op>(of(0), of(1), of(2)));
  }
}

struct counts {
  whole tuples = 0, near = 0, wrong = 0;
};

template <class Op, class T>
void check(const std::vector<tuple>& tuples, bool place, counts& n) {
  const reference::oracle& o = reference::oracle_of(row_of<Op>.name);
  for (const tuple& a : tuples) {
    const std::uint64_t want = o.f(dtype_of<T>, a.in, &a.option), got = computed<Op, T>(a);
    if (place) {
      const auto at = o.where(dtype_of<T>, a.in, &a.option);
      n.near += at.boundary_distance < std::ldexp(16.0, -num::format<T>::precision) ? 1 : 0;  // 0 at a midpoint
    }
    ++n.tuples;
    if (got == want || ++n.wrong > 5) continue;
    INFO(row_of<Op>.name, std::hex, " ", a.in[0], " ", a.in[1], " ", a.in[2], std::hexfloat, " option ", a.option);
    CHECK(got == want);
  }
}

// All tuples of these.
template <class Op, class T>
std::vector<tuple> specials() {
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
  for (std::size_t i = 0; i < (Op::arity == 3 ? size : 1); ++i) {
    for (std::size_t j = 0; j < (Op::arity > 1 ? size : 1); ++j) {
      for (const std::uint64_t g : list) {
        all.push_back({{g, list[j], list[i]}, has_option<Op> ? row_of<Op>.options.all[0].otherwise.number : 0});
        if (!has_option<Op>) continue;
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

template <class Op, class T>
std::vector<tuple> random_ones(whole many, std::mt19937_64& engine) {
  std::vector<tuple> all;
  for (const reference::sample_class c : reference::element_classes) {
    const auto v = reference::fill_operands(c, dtype_of<T>, 3, many, 1, static_cast<std::uint64_t>(Op::id));
    for (std::size_t i = 0; i < static_cast<std::size_t>(many); ++i)
      all.push_back({{v[0].get(i), v[1].get(i), v[2].get(i)}, coefficient(engine)});
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
    all.push_back(a);
  }
  return all;
}

// ------------------------------------------------------------------------------------------------------ at midpoints

whole inverse(whole a, whole m) {  // a^-1 mod m, coprime
  whole r = m, s = a % m, u = 0, v = 1;
  while (s != 0) {
    const whole q = r / s;
    r = std::exchange(s, r - q * s);
    u = std::exchange(v, u - q * v);
  }
  return (u % m + m) % m;
}
__extension__ using wide = __int128;
int bits_in(whole a) { return 64 - std::countl_zero(static_cast<std::uint64_t>(a)); }

// |G| of at most p bits such that G F / D, times a power of two, is next to a midpoint M of p + 1 bits or is it:
// G F 2^t = M D + delta, delta in {0, 1, -1}. 0 where there is none. F, D > 0, below 2^30.
whole beside_midpoint(whole f, whole d, int p, int delta, std::mt19937_64& engine) {
  const whole low = whole{1} << p;
  if (delta == 0) {  // M D a multiple of F
    const whole step = f / std::gcd(f, d);
    const whole m = (low + static_cast<whole>(engine() % static_cast<std::uint64_t>(low))) / step * step;
    const wide g = static_cast<wide>(m) * d / f;
    if (m < low || m % 2 == 0 || g == 0) return 0;
    whole odd = 0;
    for (wide v = g; odd == 0; v /= 2) odd = v % 2 != 0 ? (v < low ? static_cast<whole>(v) : -1) : 0;
    return odd < 0 ? 0 : odd;
  }
  for (int t = 0; (f << t) < 2 * low; ++t) {
    const whole modulus = f << t;
    if (std::gcd(d, modulus) != 1) continue;
    const whole first = modulus == 1 ? 0 : (modulus - delta * inverse(d, modulus) % modulus) % modulus;
    whole m = low + (first - low % modulus + modulus) % modulus;
    m += modulus * static_cast<whole>(engine() % static_cast<std::uint64_t>(low / modulus + 1));
    if (m % 2 == 0) m += modulus;
    const wide g = (static_cast<wide>(m) * d + delta) / modulus;
    if (m % 2 == 0 || m >= 2 * low || g >= low || g == 0) continue;
    return static_cast<whole>(g);
  }
  return 0;
}
// G such that G N, N odd and below 2^30, has more than p bits: p of them, then those of a half, and delta in the last place.
whole product_at_midpoint(whole n, int p, int delta) {
  const int s = std::min(bits_in(n), p);
  const whole modulus = whole{1} << s;
  const whole rest = (modulus / 2 + delta) % modulus;
  const whole g = static_cast<whole>(static_cast<wide>(rest) * inverse(n % modulus, modulus) % modulus);
  return bits_in(g * n) == p + s ? g : 0;
}

// Operands for which an operation is G F / D or G N; scaled by powers of two, with signs. The gradient is what is left.
struct fraction {
  whole f = 1, d = 1;
  double x = 0, y = 0, option = 0;
};
template <class Op>
fraction draw(int p, std::mt19937_64& engine) {
  const auto below = [&](int bits) { return static_cast<whole>(1 + engine() % ((std::uint64_t{1} << bits) - 1)); };
  const auto real = [](whole v) { return static_cast<double>(v); };
  fraction r;
  const whole a = below(p), b = below(p), c = below(p / 2), e = below(p / 2);
  if constexpr (std::is_same_v<Op, ops::sqrt_backward> || std::is_same_v<Op, ops::log_backward>) {
    r = {1, a, real(a), 0, 0};
  } else if constexpr (std::is_same_v<Op, ops::log1p_backward>) {
    const int k = static_cast<int>(engine() % static_cast<unsigned>(p + 8));
    const whole d = (whole{1} << k) + a, other = a - (whole{1} << k);
    r = engine() % 2 == 0 || other == 0 ? fraction{1, d, std::ldexp(real(a), -k), 0, 0}
                                        : fraction{1, std::abs(other), std::ldexp(real(-a), -k), 0, 0};
  } else if constexpr (std::is_same_v<Op, ops::rsqrt_backward>) {
    const whole y = below(p / 3);
    r = {y * y * y, 1, real(y), 0, 0};
  } else if constexpr (std::is_same_v<Op, ops::reciprocal_backward>) {
    r = {c * c, 1, real(c), 0, 0};
  } else if constexpr (std::is_same_v<Op, ops::expm1_backward> || std::is_same_v<Op, ops::lerp_backward_x>) {
    const int k = static_cast<int>(engine() % static_cast<unsigned>(p));
    const double y = std::ldexp(real(a), -k);
    r = {a + (whole{1} << k), 1, std::is_same_v<Op, ops::expm1_backward> ? y : -y, 0, 0};
  } else if constexpr (std::is_same_v<Op, ops::lerp_scalar_backward_x>) {
    const int k = static_cast<int>(engine() % 30);
    r = {a + (whole{1} << k), 1, 0, 0, -std::ldexp(real(a), -k)};
  } else if constexpr (std::is_same_v<Op, ops::lerp_backward_weight>) {
    r = {a + b, 1, -real(a), real(b), 0};
  } else if constexpr (std::is_same_v<Op, ops::div_backward_y>) {
    r = {a, c * c, real(a), real(c), 0};
  } else if constexpr (std::is_same_v<Op, ops::hypot_backward> || std::is_same_v<Op, ops::xlogy_backward_y>) {
    r = {a, b, real(a), real(b), 0};
  } else if constexpr (std::is_same_v<Op, ops::atan2_backward_y>) {
    r = {e, c * c + e * e, real(c), real(e), 0};
  } else if constexpr (std::is_same_v<Op, ops::atan2_backward_x>) {
    r = {c, c * c + e * e, real(c), real(e), 0};
  } else if constexpr (std::is_same_v<Op, ops::addcdiv_backward_z>) {
    const whole y = below(p / 4), value = below(p / 4);
    r = {y * value, c * c, real(y), real(c), std::ldexp(real(value), static_cast<int>(engine() % 40) - 20)};
  } else {
    static_assert(std::is_same_v<Op, ops::fmod_backward_y> || std::is_same_v<Op, ops::remainder_backward_y>);
    const bool up = std::is_same_v<Op, ops::remainder_backward_y> && engine() % 2 == 0;
    const whole quotient = below(p - 3), y = 3 + static_cast<whole>(engine() % 4),
                rest = 1 + static_cast<whole>(engine() % 2);
    r = {quotient + (up ? 1 : 0), 1, real(quotient * y + rest), up ? -real(y) : real(y), 0};
  }
  return r;
}

// Ends where the shares are met; by far most draws give a tuple.
template <class Op, class T>
std::vector<tuple> at_midpoints(whole many, std::mt19937_64& engine) {
  constexpr int p = num::format<T>::precision;
  std::vector<tuple> all;
  for (whole i = 0; i < 40 * many && static_cast<whole>(all.size()) < many; ++i) {
    fraction r = draw<Op>(p, engine);
    while (r.f % 2 == 0) r.f /= 2;
    while (r.d % 2 == 0) r.d /= 2;
    const int delta = static_cast<int>(engine() % 3) - 1;
    const whole g = r.d == 1 && r.f > 1 && delta != 0 && engine() % 4 != 0
                        ? product_at_midpoint(r.f, p, delta)
                        : beside_midpoint(r.f, r.d, p, delta, engine);
    if (g == 0) continue;
    const int scale = static_cast<int>(engine() % 9) - 4;
    const double sign = engine() % 2 == 0 ? 1 : -1;
    all.push_back(
        {{pattern<T>(std::ldexp(sign * static_cast<double>(g), scale)), pattern<T>(r.x), pattern<T>(r.y)}, r.option});
  }
  return all;
}

// Results and operands below the normal numbers: few bits, exponents around the least ones.
template <class Op, class T>
std::vector<tuple> subnormal_ones(whole many, std::mt19937_64& engine) {
  using F = num::format<T>;
  std::vector<tuple> all;
  for (whole i = 0; i < many; ++i) {
    tuple a{{}, i % 2 == 0 ? 1.0 : std::ldexp(3.0, -static_cast<int>(engine() % 30))};
    for (std::uint64_t& b : a.in)
      b = pattern<T>(std::ldexp(static_cast<double>(engine() % 31) - 15, static_cast<int>(engine() % 12) - 6));
    a.in[0] = engine() % 2 == 0 ? 1 + engine() % 64
                                : pattern<T>(std::ldexp(1.0 + static_cast<double>(engine() % 8), F::emin - 2));
    all.push_back(a);
  }
  return all;
}

template <class Op, class T>
std::vector<tuple> tuples_of(whole many) {
  std::mt19937_64 engine{static_cast<std::uint64_t>(Op::id) * 8 + sizeof(T)};
  std::vector<tuple> all = specials<Op, T>();
  const auto append = [&](const std::vector<tuple>& more) { all.insert(all.end(), more.begin(), more.end()); };
  append(random_ones<Op, T>(many, engine));
  append(subnormal_ones<Op, T>(2 * many, engine));
  for (tuple& a : all)
    if (!has_option<Op>) a.option = 0;
  return all;
}

template <class Op>
void check_formats(whole many) {
  ops::for_each_format<Op::formats>([&]<class T>() {
    counts n;
    check<Op, T>(tuples_of<Op, T>(many), false, n);
    INFO(row_of<Op>.name);
    CHECK(n.wrong == 0);
    MESSAGE(row_of<Op>.name << ": " << n.tuples << " tuples");
  });
}
template <class Op>
void check_midpoints(whole many) {
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    counts n;
    std::mt19937_64 engine{static_cast<std::uint64_t>(Op::id) * 8 + sizeof(T) + 1};
    check<Op, T>(at_midpoints<Op, T>(many, engine), true, n);
    INFO(row_of<Op>.name);
    CHECK(n.wrong == 0);
    CHECK(n.near * (sizeof(T) == 4 ? 3 : 15) >= many);  // few cubes fit in f16, bf16
    MESSAGE(row_of<Op>.name << ": " << n.tuples << " tuples, at midpoints " << n.near);
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
                       ops::fmax_backward_x, ops::fmax_backward_y, ops::fmin_backward_x, ops::fmin_backward_y>;

}  // namespace

TEST_CASE("gradients: algebraic functions") { algebraic::check(60); }
TEST_CASE("gradients: selections") { selecting::check(30); }
TEST_CASE("gradients: at midpoints") { algebraic::check_at_midpoints(200); }
TEST_CASE("gradients: many tuples [long]" * doctest::skip()) {
  algebraic::check(20000);
  selecting::check(5000);
  algebraic::check_at_midpoints(100000);
}

TEST_CASE("gradients: through the library") {
  const auto on_every_set = [&]<class Op>() {
    std::mt19937_64 engine{static_cast<std::uint64_t>(Op::id)};
    std::vector<tuple> tuples = random_ones<Op, float>(20, engine);
    if constexpr ((Op::formats & ops::one(dtype::f64)) == 0) {
      const std::vector<tuple> more = at_midpoints<Op, float>(200, engine);
      tuples.insert(tuples.end(), more.begin(), more.end());
    }
    const auto n = static_cast<whole>(tuples.size());
    const double option = has_option<Op> ? 0.3 : 0;
    std::vector<std::uint32_t> operand[3], got(tuples.size()), want;
    for (const tuple& a : tuples) {
      for (std::size_t k = 0; k < 3; ++k) operand[k].push_back(static_cast<std::uint32_t>(a.in[k]));
      want.push_back(static_cast<std::uint32_t>(reference::oracle_of(row_of<Op>.name).f(dtype::f32, a.in, &option)));
    }
    attributes options;
    if constexpr (has_option<Op>) options = {{std::string(row_of<Op>.options.all[0].name), option}};
    for (const isa_info& isa : instruction_sets()) {
      if (!isa.available) continue;
      INFO(row_of<Op>.name, " ", isa.name);
      context ctx({.threads = 1, .isa = isa.name});
      std::vector<const_tensor_view> in;
      const sizes shape(std::vector<whole>{n});
      for (std::size_t k = 0; k < static_cast<std::size_t>(Op::arity); ++k)
        in.emplace_back(operand[k].data(), dtype::f32, shape);
      call(ctx, *find(row_of<Op>.name), in, std::vector{tensor_view(got.data(), dtype::f32, shape)}, options);
      CHECK(got == want);
    }
  };
  algebraic::for_each(on_every_set);
  selecting::for_each(on_every_set);
}
