// Quick rules of norms of binary64 (librepdl/ops/rows/norm_quick.hpp), row by row, summed up in parts as threads would: what they decide is
// what wide numbers and exact sums decide, what they say of a value is so (MPFR), and they decide nearly everything of usual rows.
#include "librepdl/ops/rows/norm_quick.hpp"

#include <doctest/doctest.h>
#include <mpfr.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace repdl::num;
using repdl::ops::op_id;

constexpr double huge = std::numeric_limits<double>::infinity(), none = std::numeric_limits<double>::quiet_NaN(),
                 least = std::numeric_limits<double>::denorm_min(), most = std::numeric_limits<double>::max();

enum class kind {
  normal,
  large_mean,
  outlier,
  first_is_outlier,
  wide_exponents,
  constant,
  integers,
  zeros,
  subnormal,
  near_overflow,
  special,
  kinds
};
constexpr int kinds = static_cast<int>(kind::kinds);

class source {
 public:
  int below(int n) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n)); }
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double normal() { return gauss_(engine_); }
  double any(int spread) { return std::ldexp(1 + uniform(), below(2 * spread + 1) - spread) * (below(2) * 2 - 1); }
  double of(kind k, std::int64_t at) {
    switch (k) {
      case kind::large_mean:
        return 1e8 + normal();
      case kind::outlier:
        return at == 1 ? 1e9 * normal() : normal();
      case kind::first_is_outlier:
        return at == 0 ? 1e9 * normal() : normal();
      case kind::wide_exponents:
        return any(300);
      case kind::constant:
        return 0.1;
      case kind::integers:
        return below(7) - 3;
      case kind::zeros:
        return below(8) == 0 ? 1.0 : below(2) == 0 ? -0.0 : 0.0;
      case kind::subnormal:
        return (below(2) * 2 - 1) * std::ldexp(1 + uniform(), -1074 + below(60));
      case kind::near_overflow:
        return normal() * 0x1p1021;
      case kind::special: {
        const double those[] = {huge, -huge, none, most, -most, least, -0.0, 0.0};
        return below(6) == 0 ? those[below(8)] : normal();
      }
      default:
        return normal();
    }
  }
  // Weights and biases: absent, usual ones, or special ones here and there.
  double factor(int k, double absent) {
    const double those[] = {0.0, -0.0, huge, -huge, none, most, least, 1.0};
    return k == 0 ? absent : k == 1 ? normal() : k == 2 && below(4) == 0 ? those[below(8)] : any(k == 3 ? 300 : 3);
  }

 private:
  std::mt19937_64 engine_{71};
  std::normal_distribution<double> gauss_;
};

struct real {
  explicit real(mpfr_prec_t bits = 6000) {
    mpfr_init2(v, bits);
    mpfr_set_zero(v, 1);
  }
  real(const real&) = delete;
  real& operator=(const real&) = delete;
  ~real() { mpfr_clear(v); }
  mpfr_t v;
};

using element = std::array<double, most_elements>;
struct row {
  wide_row_given given;
  std::vector<element> x;
};

template <op_id Op>
constexpr bool is_gradient = Op == op_id::layer_norm_backward || Op == op_id::rms_norm_backward;
template <op_id Op>
constexpr bool is_of_weight = Op == op_id::layer_norm_weight_backward || Op == op_id::rms_norm_weight_backward;
template <op_id Op>
constexpr bool is_given = Op == op_id::batch_norm_inference || Op == op_id::batch_norm_inference_backward ||
                          Op == op_id::batch_norm_inference_weight_backward;
template <op_id Op>
constexpr bool is_centred = Op != op_id::rms_norm&& Op != op_id::rms_norm_backward&& Op !=
                            op_id::rms_norm_weight_backward&& Op != op_id::batch_norm_inference_backward;

template <op_id Op>
row draw(source& from, kind k, std::int64_t n) {
  const double every_eps[] = {1e-5, 0, 1, 1e-12};
  row r{{n, every_eps[from.below(4)], 0.125, false}, std::vector<element>(static_cast<std::size_t>(n))};
  const bool usual = k <= kind::large_mean;
  const int weights = from.below(usual ? 2 : 4), biases = from.below(usual ? 2 : 4);
  r.given.biased = biases != 0;
  if (is_gradient<Op>) {
    const double far = k == kind::large_mean ? 1e8 : k == kind::subnormal ? least : from.normal() * 0.1;
    r.given.top = is_centred<Op> ? far : 0;
    r.given.g = usual || from.below(2) == 0 ? 1 + 0.1 * from.normal() : from.any(k == kind::special ? 700 : 300);
  }
  if (is_given<Op>) {
    r.given.top = !is_centred<Op> ? 0 : k == kind::large_mean ? 1e8 : from.below(4) == 0 ? from.of(k, 0) : 0.1;
    r.given.g = usual || from.below(4) != 0 ? from.uniform() + 0.1 : std::fabs(from.of(k, 0));
  }
  const bool no_gradient = !usual && from.below(8) == 0;
  r.given.former[0] = from.normal();
  r.given.former[1] = from.uniform();
  for (std::int64_t j = 0; j < n; ++j) {
    element& x = r.x[static_cast<std::size_t>(j)];
    const double one = from.of(k, j);
    const double other = no_gradient                   ? from.below(2) == 0 ? -0.0 : 0.0
                         : usual || from.below(3) != 0 ? from.normal()
                                                       : from.of(k, j);
    if constexpr (is_of_weight<Op>) {
      const double mean = is_centred<Op> ? (k == kind::large_mean ? 1e8 : from.normal()) : 0;
      const double rstd = usual || from.below(8) != 0 ? 1 + from.uniform() : from.factor(2, 1);
      x = is_centred<Op> ? element{other, one, mean, rstd} : element{other, one, rstd, 0};
    } else if constexpr (Op == op_id::batch_norm_inference_weight_backward) {
      x = {other, one, 0, 0};
    } else if constexpr (is_gradient<Op>) {
      x = {other, one, from.factor(weights, 1.0), 0};
    } else {
      x = {one, from.factor(weights, 1.0), from.factor(biases, -0.0), 0};
      if (!is_centred<Op>) x[2] = 0;
    }
  }
  if (wide_rule<Op>::look == row_look::first) r.given.top = r.x[0][0];
  return r;
}

template <op_id Op>
using quick_sums = typename quick_rule<Op>::sums;

// In parts, of which each has every so many-th element, merged in any order.
template <op_id Op>
quick_sums<Op> quick_sum(source& from, const row& r) {
  using rule = quick_rule<Op>;
  const int some[] = {1, 2, 3, 8, 32, 256};
  const std::size_t parts = static_cast<std::size_t>(some[from.below(6)]);
  std::vector<quick_sums<Op>> s(parts);
  for (auto& p : s) p.start(r.given);
  for (std::size_t j = 0; j < r.x.size(); ++j) {
    s[j % parts].add(rule::term(r.given, r.x[j].data()), r.x[j].data());
  }
  while (s.size() > 1) {
    const auto at = static_cast<std::size_t>(from.below(static_cast<int>(s.size()) - 1));
    s[at].merge(s[at + 1]);
    s.erase(s.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  return s[0];
}
template <op_id Op, class A>
auto late_sum(const row& r) {
  using rule = wide_rule<Op>;
  typename rule::template late<A> s{};
  start_sums(s, r.given.top, r.given);
  for (const element& x : r.x) {
    [&]<int... K>(std::integer_sequence<int, K...>) { s.add(x[K]...); }
    (std::make_integer_sequence<int, rule::summed>{});
  }
  return s;
}

// y of every element, from sums without error.
template <op_id Op>
class exact_row {
 public:
  explicit exact_row(const row& r) : r_(r) {
    if constexpr (is_given<Op>) {
      mpfr_set_d(first_.v, r.given.top, MPFR_RNDN);
      mpfr_set_d(second_.v, r.given.g, MPFR_RNDN);
      mpfr_add_d(second_.v, second_.v, r.given.eps, MPFR_RNDN);
      mpfr_rec_sqrt(second_.v, second_.v, MPFR_RNDN);
      return;
    }
    for (const element& x : r.x) {
      if constexpr (is_gradient<Op>) {
        mpfr_set_d(t_.v, x[0], MPFR_RNDN);
        mpfr_mul_d(t_.v, t_.v, x[2], MPFR_RNDN);
        mpfr_set_d(d_.v, x[1], MPFR_RNDN);
        mpfr_sub_d(d_.v, d_.v, r.given.top, MPFR_RNDN);
        mpfr_mul(d_.v, t_.v, d_.v, MPFR_RNDN);
      } else {
        mpfr_set_d(t_.v, x[0], MPFR_RNDN);
        mpfr_sqr(d_.v, t_.v, MPFR_RNDN);
      }
      mpfr_add(first_.v, first_.v, t_.v, MPFR_RNDN);
      mpfr_add(second_.v, second_.v, d_.v, MPFR_RNDN);
    }
    if (!is_centred<Op>) mpfr_set_zero(first_.v, 1);
    const auto n = static_cast<unsigned long>(r.given.length);
    mpfr_div_ui(first_.v, first_.v, n, MPFR_RNDN);
    mpfr_div_ui(second_.v, second_.v, n, MPFR_RNDN);
    if constexpr (is_gradient<Op>) {
      mpfr_mul_d(second_.v, second_.v, r.given.g, MPFR_RNDN);
      mpfr_mul_d(second_.v, second_.v, r.given.g, MPFR_RNDN);
    } else {
      mpfr_sqr(d_.v, first_.v, MPFR_RNDN);
      mpfr_sub(second_.v, second_.v, d_.v, MPFR_RNDN);
      mpfr_add_d(second_.v, second_.v, r.given.eps, MPFR_RNDN);
      mpfr_rec_sqrt(second_.v, second_.v, MPFR_RNDN);
    }
  }
  // |y - v| / error, in units of it.
  double distance(const element& x, const wide64& v) {
    if constexpr (is_gradient<Op>) {
      mpfr_set_d(d_.v, x[1], MPFR_RNDN);
      mpfr_sub_d(d_.v, d_.v, r_.given.top, MPFR_RNDN);
      mpfr_mul(d_.v, d_.v, second_.v, MPFR_RNDN);
      mpfr_set_d(t_.v, x[0], MPFR_RNDN);
      mpfr_mul_d(t_.v, t_.v, x[2], MPFR_RNDN);
      mpfr_sub(t_.v, t_.v, first_.v, MPFR_RNDN);
      mpfr_sub(t_.v, t_.v, d_.v, MPFR_RNDN);
      mpfr_mul_d(t_.v, t_.v, r_.given.g, MPFR_RNDN);
    } else {
      mpfr_set_d(t_.v, x[0], MPFR_RNDN);
      mpfr_sub(t_.v, t_.v, first_.v, MPFR_RNDN);
      mpfr_mul(t_.v, t_.v, second_.v, MPFR_RNDN);
      mpfr_mul_d(t_.v, t_.v, x[1], MPFR_RNDN);
      mpfr_add_d(t_.v, t_.v, x[2], MPFR_RNDN);
    }
    mpfr_sub_d(t_.v, t_.v, v.value.hi, MPFR_RNDN);
    mpfr_sub_d(t_.v, t_.v, v.value.lo, MPFR_RNDN);
    mpfr_div_d(t_.v, t_.v, v.error, MPFR_RNDN);
    return std::fabs(mpfr_get_d(t_.v, MPFR_RNDN));
  }

 private:
  const row& r_;
  real first_, second_, t_, d_;
};

struct tally {
  std::int64_t elements = 0, decided = 0, results = 0, results_decided = 0, wrong = 0, exact = 0;
  double farthest = 0;  // in units of the error

  void compare(const decided64& quick, const decided64& other) {
    if (quick.decided && other.decided) {
      wrong += std::bit_cast<std::uint64_t>(quick.value) != std::bit_cast<std::uint64_t>(other.value) ? 1 : 0;
    }
  }
};

// Of layer_norm: its root, or its sum of squares.
enum class fault { no, root, sum };

// Every 211th element of long rows is compared with exact arithmetic.
template <op_id Op>
void check_row(source& from, const row& r, tally& to, fault seeded = fault::no) {
  using rule = quick_rule<Op>;
  using late = wide_rule<Op>;
  if (late::classify(r.given).fills) return;
  auto s = quick_sum<Op>(from, r);
  if constexpr (Op == op_id::layer_norm) {
    if (seeded == fault::sum) s.second.hi *= 1 + 0x1p-50;
  }
  auto numbers = rule::prepare(r.given, s);
  if constexpr (Op == op_id::layer_norm) {
    if (seeded == fault::root) numbers.rstd.lo += numbers.rstd.hi * 0x1p-80;
  }
  const auto wide = late_sum<Op, wide64>(r);
  const auto exact = late_sum<Op, ball<2>>(r);
  if constexpr (late::per_element) {
    const auto step = static_cast<std::size_t>(r.given.length < 40 ? 1 : 211);
    for (std::size_t j = 0; j < r.x.size(); ++j) {
      const double* x = r.x[j].data();
      ++to.elements;
      const decided64 quick = rule::element(numbers, rule::term(r.given, x), x);
      if (!quick.decided) continue;
      ++to.decided;
      to.compare(quick, late::template settle<wide64>(r.given, wide, x, 0));
      if (j % step != 0) continue;
      ++to.exact;
      to.compare(quick, late::template settle<ball<2>>(r.given, exact, x, 0));
    }
    bool is_finite_row = numbers.is_known;
    for (const element& x : r.x) is_finite_row = is_finite_row && std::isfinite(x[0]) && std::isfinite(x[1]);
    if (is_finite_row) {
      exact_row<Op> whole(r);
      for (std::size_t j = 0; j < r.x.size(); j += step) {
        const double* x = r.x[j].data();
        const wide64 near = rule::near(numbers, rule::term(r.given, x), x);
        if (!std::isfinite(x[2]) || !is_in_middle(near.value.hi) || !(near.error < huge)) continue;
        to.farthest = std::fmax(to.farthest, whole.distance(r.x[j], near));
      }
    }
  }
  const int first = late::per_element ? 1 : 0;
  for (int what = first; what < first + late::results; ++what) {
    const decided64 quick = rule::result(r.given, numbers, s, what);
    ++to.results;
    to.results_decided += quick.decided ? 1 : 0;
    const double nothing[most_elements] = {};
    to.compare(quick, late::template settle<wide64>(r.given, wide, nothing, what));
    to.compare(quick, late::template settle<ball<2>>(r.given, exact, nothing, what));
  }
}

template <op_id Op>
void check_operation(const char* name) {
  static_assert(std::is_trivially_copyable_v<quick_sums<Op>> && sizeof(quick_sums<Op>) % 8 == 0);
  CAPTURE(name);
  source from;
  tally usual;
  for (int k = 0; k < kinds; ++k) {
    tally of_kind;
    for (const std::int64_t n : {1, 2, 3, 31, 32, 33, 1000, 5000}) {
      for (int again = 0; again < (n < 40 ? 6 : 1); ++again) {
        const row r = draw<Op>(from, static_cast<kind>(k), n);
        check_row<Op>(from, r, of_kind);
      }
    }
    CAPTURE(k);
    CHECK(of_kind.wrong == 0);
    CHECK(of_kind.farthest < 1);
    if (k > static_cast<int>(kind::large_mean)) continue;
    usual.elements += of_kind.elements;
    usual.decided += of_kind.decided;
    usual.results += of_kind.results;
    usual.results_decided += of_kind.results_decided;
  }
  CHECK(1000 * (usual.elements - usual.decided) <= usual.elements);
  CHECK(10 * usual.results_decided >= 9 * usual.results);
}

}  // namespace

TEST_CASE("norms of f64, quickly: what is decided is right") {
  check_operation<op_id::layer_norm>("layer_norm");
  check_operation<op_id::batch_norm_running>("batch_norm_running");
  check_operation<op_id::rms_norm>("rms_norm");
  check_operation<op_id::layer_norm_backward>("layer_norm_backward");
  check_operation<op_id::rms_norm_backward>("rms_norm_backward");
  check_operation<op_id::layer_norm_weight_backward>("layer_norm_weight_backward");
  check_operation<op_id::rms_norm_weight_backward>("rms_norm_weight_backward");
  check_operation<op_id::batch_norm_inference>("batch_norm_inference");
  check_operation<op_id::batch_norm_inference_backward>("batch_norm_inference_backward");
  check_operation<op_id::batch_norm_inference_weight_backward>("batch_norm_inference_weight_backward");
}

TEST_CASE("norms of f64, quickly: what is off by more than its bound is noticed") {
  source from;
  for (const fault seeded : {fault::no, fault::root, fault::sum}) {
    tally t;
    for (int i = 0; i < 40; ++i)
      check_row<op_id::layer_norm>(from, draw<op_id::layer_norm>(from, kind::normal, 39), t, seeded);
    CHECK((t.farthest > 1) == (seeded != fault::no));
    CHECK((t.wrong > 0) == (seeded == fault::sum));
  }
}

TEST_CASE("norms of f64, quickly: rows of one number, elements and gradients that are 0") {
  source from;
  const auto decided = [&]<op_id Op>(const wide_row_given& given, const element& x, const element& y) {
    tally t;
    check_row<Op>(from, {given, {x, y, x, y, y}}, t);
    CHECK(t.wrong == 0);
    return t.decided + t.results_decided;
  };
  const wide_row_given plain{5, 1e-5, 0, false}, biased{5, 1e-5, 0, true, 1, 3}, statistics{5, 1e-5, 0, false, -0.7, 3};
  CHECK(decided.operator()<op_id::layer_norm>(biased, {3, 0.7, 0}, {3, -2, -0.0}) == 7);
  CHECK(decided.operator()<op_id::layer_norm>(biased, {3, 0, 0}, {5, -0.0, -0.0}) == 7);
  CHECK(decided.operator()<op_id::layer_norm>(plain, {0, -0.7, -0.0}, {-0.0, huge, -0.0}) == 7);
  CHECK(decided.operator()<op_id::rms_norm>(plain, {0, 0.7}, {-0.0, huge}) == 6);
  CHECK(decided.operator()<op_id::rms_norm>(plain, {-0.3, 0}, {-0.0, -0.0}) == 6);
  CHECK(decided.operator()<op_id::layer_norm_backward>(statistics, {0, 0.7, 1}, {-0.0, 5, -0.3}) == 5);
  CHECK(decided.operator()<op_id::rms_norm_backward>({5, 0, 0, false, 0.7}, {0, 0, 1}, {3, 5, 7}) == 5);
  CHECK(decided.operator()<op_id::layer_norm_weight_backward>(plain, {0, 0.7, 1, 0.3}, {-0.0, 5, 1, 0.7}) == 1);
  CHECK(decided.operator()<op_id::batch_norm_inference>(biased, {3, 0, 0}, {5, -0.0, -0.0}) == 5);
  CHECK(decided.operator()<op_id::batch_norm_inference>(biased, {huge, 0, 0}, {3, huge, 7}) == 3);
  CHECK(decided.operator()<op_id::batch_norm_inference_backward>(biased, {0, 0.3}, {-0.3, -0.0}) == 5);
}
