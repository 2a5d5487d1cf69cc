// Wide numbers against MPFR at 500 bits: what an operation says of numbers within its operands' errors holds, exact results are
// known to be exact, and errors of ordinary ones are small.
#include "librepdl/num/wide.hpp"

#include <doctest/doctest.h>
#include <mpfr.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "librepdl/ops/rows/exponentials.hpp"

namespace {

using namespace repdl::num;
using number = wide<double>;

struct real {
  real() { mpfr_init2(v, 500); }
  real(const real&) = delete;
  real& operator=(const real&) = delete;
  ~real() { mpfr_clear(v); }
  mpfr_t v;
};

// A number, and one that it encloses.
struct enclosed {
  number w;
  real exact;
};

class source {
 public:
  std::uint64_t bits() { return engine_(); }
  int below(int n) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n)); }
  // 53 bits or a few, exponents within +-spread, either sign.
  double any(int spread) {
    const double m = below(4) == 0 ? 1 + below(4) : 1 + static_cast<double>(engine_() >> 12) * 0x1p-52;
    return (below(2) == 0 ? -m : m) * std::ldexp(1.0, below(2 * spread + 1) - spread);
  }
  // Binary64 numbers, wide ones, and such with an error; the exact one lies anywhere in it.
  void draw(enclosed& e, double hi) {
    const int kind = below(4);
    const double lo = kind == 0 ? 0.0 : hi * 0x1p-54 * any(0) / (1 + below(1 << 12));
    e.w.value = fast_two_sum(hi, lo);
    e.w.error = kind < 2 ? 0.0 : std::fabs(hi) * std::ldexp(1.0, -60 - below(50));
    mpfr_set_d(e.exact.v, e.w.value.hi, MPFR_RNDN);
    mpfr_add_d(e.exact.v, e.exact.v, e.w.value.lo, MPFR_RNDN);
    const double share[] = {-1, 1, 0, 0.5, -0.75};
    mpfr_add_d(e.exact.v, e.exact.v, e.w.error * share[below(5)], MPFR_RNDN);
  }

 private:
  std::mt19937_64 engine_{41};
};

// |exact - (hi + lo)| <= error (1 + 2^-10), and |lo| is half an ulp of hi at most.
void check(const number& w, const real& exact, const char* what) {
  real d;
  mpfr_sub_d(d.v, exact.v, w.value.hi, MPFR_RNDN);
  mpfr_sub_d(d.v, d.v, w.value.lo, MPFR_RNDN);
  mpfr_abs(d.v, d.v, MPFR_RNDN);
  const bool holds = w.error >= HUGE_VAL || mpfr_cmp_d(d.v, w.error * (1 + 0x1p-10)) <= 0;
  const bool normalised = w.value.hi + w.value.lo * (1 - 0x1p-40) == w.value.hi;
  if (holds && normalised) return;
  CAPTURE(std::string(what));
  CAPTURE(w.value.hi);
  CAPTURE(w.value.lo);
  CAPTURE(w.error);
  CAPTURE(mpfr_get_d(d.v, MPFR_RNDN));
  CHECK(holds);
  CHECK(normalised);
}

// Errors of results whose operands have none: 2^-90 of them at most.
void check_tight(const number& w, bool exact_operands, double size) {
  if (!exact_operands) return;
  CAPTURE(w.error);
  CAPTURE(size);
  CHECK(w.error <= 0x1p-90 * std::fabs(size));
}

template <class Of, class Exact>
void check_function(enclosed& e, const Of& of, const Exact& exact, const char* what) {
  number w = e.w;
  of(w);
  real r;
  exact(r.v, e.exact.v);
  check(w, r, what);
  check_tight(w, e.w.error == 0, w.value.hi);
}

TEST_CASE("wide numbers: sums, products, quotients") {
  source s;
  for (int i = 0; i < 25'000; ++i) {
    enclosed a;
    enclosed b;
    s.draw(a, s.any(i % 3 == 0 ? 200 : 3));
    switch (i % 4) {
      case 0:  // cancels, to the last bits or wholly
        s.draw(b, -a.w.value.hi * (1 + static_cast<double>(s.below(5) - 2) * std::ldexp(1.0, -52 + s.below(40))));
        break;
      case 1:
        s.draw(b, s.any(200));
        break;
      default:
        s.draw(b, s.any(3));
    }
    const bool exact_operands = a.w.error == 0 && b.w.error == 0;
    real r;
    mpfr_add(r.v, a.exact.v, b.exact.v, MPFR_RNDN);
    const number sum = add(a.w, b.w);
    check(sum, r, "add");
    check_tight(sum, exact_operands, std::fabs(a.w.value.hi) + std::fabs(b.w.value.hi));
    number sum_in_place = a.w;
    add_to(sum_in_place, b.w);
    CHECK(sum_in_place.value.hi == sum.value.hi);
    number p = a.w;
    multiply_by(p, b.w);
    mpfr_mul(r.v, a.exact.v, b.exact.v, MPFR_RNDN);
    check(p, r, "multiply_by");
    check_tight(p, exact_operands, p.value.hi);
    number q = a.w;
    divide_by(q, b.w);
    mpfr_div(r.v, a.exact.v, b.exact.v, MPFR_RNDN);
    check(q, r, "divide_by");
    check_tight(q, exact_operands, q.value.hi);
    // A product of binary64 numbers, and a sum of 106 bits, are exact.
    number product = arithmetic<number>::number(a.w.value.hi);
    multiply_by_value(product, b.w.value.hi);
    CHECK(product.error == 0);
    const double near = a.w.value.hi * std::ldexp(1.0, s.below(50));
    number of_two = arithmetic<number>::number(a.w.value.hi);
    add_value(of_two, near);
    CHECK(of_two.error == 0);
  }
  number a{{1.0, 0.0}, 0.0};
  divide_by(a, {{1.0, 0.0}, 0.25});
  CHECK(a.error >= HUGE_VAL);  // a divisor of which little is known
  CHECK(sign_in({{0x1p-60, 0.0}, 0x1p-61}) == 1);
  CHECK(sign_in({{-0x1p-60, 0.0}, 0x1p-61}) == -1);
  CHECK(sign_in({{0x1p-60, 0.0}, 0x1p-60}) == 2);
  CHECK(sign_in({{0.0, 0.0}, 0.0}) == 0);
  CHECK(below_power({{0x1p-161, 0.0}, 0.0}, -160));
  CHECK_FALSE(below_power({{0x1.fffp-161, 0.0}, 0x1p-170}, -160));
}

TEST_CASE("wide numbers: sums of many") {
  source s;
  int exact = 0;
  for (int i = 0; i < 6'000; ++i) {
    const int n = 1 + s.below(40);
    const int spread = i % 3 == 0 ? 60 : 2;
    wide_sum<double> part[2];
    number positive;  // of the terms' magnitudes
    real sum, sum_of_magnitudes;
    mpfr_set_zero(sum.v, 1);
    mpfr_set_zero(sum_of_magnitudes.v, 1);
    double magnitude = 0;
    bool exact_terms = true;
    for (int k = 0; k < n; ++k) {
      enclosed e;
      const double size = i % 4 == 1 ? 1.0 + s.below(9) : s.any(spread);
      s.draw(e, size);
      if (i % 4 == 1) e.w = arithmetic<number>::number(size);
      if (i % 4 == 1) mpfr_set_d(e.exact.v, size, MPFR_RNDN);
      // What is added is mostly taken away again.
      const double sign = i % 5 == 0 && k % 2 == 1 ? -1 : 1;
      part[s.below(2)].add({sign * e.w.value.hi, sign * e.w.value.lo}, e.w.error);
      mpfr_mul_d(e.exact.v, e.exact.v, sign, MPFR_RNDN);
      mpfr_add(sum.v, sum.v, e.exact.v, MPFR_RNDN);
      const double up = sign * e.w.value.hi < 0 ? -sign : sign;
      positive = add_positive(positive, {{up * e.w.value.hi, up * e.w.value.lo}, e.w.error});
      mpfr_abs(e.exact.v, e.exact.v, MPFR_RNDN);
      mpfr_add(sum_of_magnitudes.v, sum_of_magnitudes.v, e.exact.v, MPFR_RNDN);
      magnitude += std::fabs(e.w.value.hi);
      exact_terms = exact_terms && e.w.error == 0;
    }
    part[0].merge(part[1]);
    const number total = part[0].total(n);
    check(total, sum, "wide_sum");
    check_tight(total, exact_terms, magnitude);
    check(positive, sum_of_magnitudes, "add_positive");
    check_tight(positive, exact_terms, magnitude);
    exact += total.error == 0 ? 1 : 0;
  }
  CHECK(exact > 1'000);  // of integers
  CHECK(add_positive(number{}, number{}).error == 0);

  for (int i = 0; i < 20'000; ++i) {
    enclosed a, b;
    s.draw(a, s.any(3));
    const bool alike = s.below(2) == 0;
    s.draw(b, a.w.value.hi / ((alike ? 1.0 : -3.01) * (1 + s.below(1 << s.below(20)))));
    const dd sum = add_smaller(a.w.value, b.w.value);
    real d;
    mpfr_set_d(d.v, a.w.value.hi, MPFR_RNDN);
    mpfr_add_d(d.v, d.v, a.w.value.lo, MPFR_RNDN);
    mpfr_add_d(d.v, d.v, b.w.value.hi, MPFR_RNDN);
    mpfr_add_d(d.v, d.v, b.w.value.lo, MPFR_RNDN);
    mpfr_sub_d(d.v, d.v, sum.hi, MPFR_RNDN);
    mpfr_sub_d(d.v, d.v, sum.lo, MPFR_RNDN);
    CHECK(std::fabs(mpfr_get_d(d.v, MPFR_RNDN)) <= 5.1 * 0x1p-106 * std::fabs(sum.hi));
  }
}

TEST_CASE("wide numbers: limbs and rounding") {
  source s;
  for (int i = 0; i < 5'000; ++i) {
    bool inexact = false;
    const double part[3] = {s.any(100), s.any(100), s.any(100)};
    multi_limb<8> sum = zero_limbs<8>();
    real r;
    mpfr_set_zero(r.v, 1);
    for (const double x : part) {
      sum = add(sum, limbs_of_value<8>(x), &inexact);
      mpfr_add_d(r.v, r.v, x, MPFR_RNDN);
    }
    const number w = arithmetic<number>::of_limbs(sum);
    check(w, r, "of_limbs");
    CHECK(w.error <= 0x1p-105 * std::fabs(w.value.hi));
  }
  // Midpoints are decided where they are exact, and only there.
  CHECK(round_number<float>(number{{1 + 0x1p-24, 0.0}, 0.0}).decided);
  CHECK(round_number<float>(number{{1 + 0x1p-24, 0.0}, 0.0}).value == 1.0f);
  CHECK(round_number<float>(number{{1 + 0x1p-24, 0x1p-90}, 0x1p-91}).value == 1 + 0x1p-23f);
  CHECK(round_number<float>(number{{1 + 0x1p-24, 0x1p-90}, 0x1p-91}).decided);
  CHECK_FALSE(round_number<float>(number{{1 + 0x1p-24, 0x1p-90}, 0x1p-90}).decided);
  CHECK_FALSE(round_number<float>(number{{1.0, 0.0}, HUGE_VAL}).decided);
  CHECK_FALSE(round_number<float>(number{{1.0, 0.0}, std::nan("")}).decided);
}

TEST_CASE("wide numbers: exponentials and logarithms") {
  source s;
  for (int i = 0; i < 12'000; ++i) {
    // e^(x - max) of binary32 numbers, whose difference may have more than 106 bits.
    const auto max = static_cast<float>(s.any(i % 2 == 0 ? 8 : 100));
    float x = max - static_cast<float>(std::fabs(s.any(i % 3 == 0 ? 30 : 8)));
    if (x > max) x = max;
    const number e = exponentials<number>::of_gap(static_cast<double>(x), static_cast<double>(max));
    real r;
    mpfr_set_d(r.v, static_cast<double>(x), MPFR_RNDN);
    mpfr_sub_d(r.v, r.v, static_cast<double>(max), MPFR_RNDN);
    const double gap = mpfr_get_d(r.v, MPFR_RNDN);
    if (gap < -1e5) mpfr_set_d(r.v, -1e5, MPFR_RNDN);
    mpfr_exp(r.v, r.v, MPFR_RNDN);
    check(e, r, "of_gap");
    if (gap >= -600) check_tight(e, true, e.value.hi);

    const double y = std::fmod(s.any(9), 600.0);
    mpfr_set_d(r.v, y, MPFR_RNDN);
    mpfr_exp(r.v, r.v, MPFR_RNDN);
    const number of = exponentials<number>::of(y);
    check(of, r, "of");
    check_tight(of, true, of.value.hi);

    enclosed v;
    s.draw(v, std::fabs(s.any(i % 2 == 0 ? 40 : 2)) * (i % 5 == 0 ? 0x1p-300 : 1));
    if (mpfr_sgn(v.exact.v) > 0) {
      check_function(
          v, [](number& w) { to_logarithm_1p(w); }, [](mpfr_t to, mpfr_t of_v) { mpfr_log1p(to, of_v, MPFR_RNDN); },
          "to_logarithm_1p");
    }
    s.draw(v, 2 + std::fabs(s.any(i % 2 == 0 ? 40 : 3)));
    check_function(
        v, [](number& w) { to_logarithm(w); }, [](mpfr_t to, mpfr_t of_v) { mpfr_log(to, of_v, MPFR_RNDN); },
        "to_logarithm");
  }
  CHECK(exponentials<number>::of(0.0).error == 0);
  CHECK(exponentials<number>::of(0.0).value.hi == 1);
  CHECK(is_zero(exponentials<number>::of_gap(-HUGE_VAL, 3.0)));
  number zero{};
  to_logarithm_1p(zero);
  CHECK(is_zero(zero));
  number below_two{{1.5, 0.0}, 0.0};
  to_logarithm(below_two);
  CHECK(below_two.error >= HUGE_VAL);
  number vague{{3.0, 0.0}, 1.0};
  to_logarithm_1p(vague);
  CHECK(vague.error >= HUGE_VAL);
}

}  // namespace
