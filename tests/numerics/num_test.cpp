// The portable numerics: error-free transforms, the rounding test and its bounds, double-double, exact accumulators.
// The oracle is GMP (exact rationals) and MPFR (one rounding).
#include <doctest/doctest.h>
#include <gmpxx.h>
#include <mpfr.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "librepdl/num/certify.hpp"
#include "librepdl/num/dd.hpp"
#include "librepdl/num/eft.hpp"
#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/sums.hpp"
#include "reference/numbers/number.hpp"

namespace {

using namespace repdl::num;

// RN_f32(q), subnormals and overflow included; +0 for 0.
float round_rational(const mpq_class& q) {
  const mpfr_exp_t emin = mpfr_get_emin();
  const mpfr_exp_t emax = mpfr_get_emax();
  mpfr_set_emin(-148);
  mpfr_set_emax(128);
  mpfr_t x;
  mpfr_init2(x, 24);
  const int t = mpfr_set_q(x, q.get_mpq_t(), MPFR_RNDN);
  mpfr_subnormalize(x, mpfr_check_range(x, t, MPFR_RNDN), MPFR_RNDN);
  const float f = mpfr_get_flt(x, MPFR_RNDN);
  mpfr_clear(x);
  mpfr_set_emin(emin);
  mpfr_set_emax(emax);
  return q == 0 ? 0.0f : f;
}

mpq_class two_to(int e) {
  mpq_class q = 1;
  if (e >= 0) {
    mpq_mul_2exp(q.get_mpq_t(), q.get_mpq_t(), static_cast<unsigned>(e));
  } else {
    mpq_div_2exp(q.get_mpq_t(), q.get_mpq_t(), static_cast<unsigned>(-e));
  }
  return q;
}

bool same(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

struct source {
  std::mt19937_64 engine{20240607};
  std::uint64_t word() { return engine(); }
  int between(int lo, int hi) { return lo + static_cast<int>(engine() % static_cast<std::uint64_t>(hi - lo + 1)); }
  float finite() {  // any finite bit pattern
    for (;;) {
      const float f = std::bit_cast<float>(static_cast<std::uint32_t>(engine()));
      if (std::isfinite(f)) return f;
    }
  }
  // Short significand in an exponent range: sums of these hit ties, zeros and total cancellation.
  float narrow(int lo, int hi, int bits) {
    const double m = static_cast<double>(engine() % (std::uint64_t{1} << bits));
    const double v = std::ldexp(m, between(lo, hi));
    return static_cast<float>((engine() & 1) != 0 ? -v : v);
  }
  double finite_double(int lo, int hi) {
    const double m = 1.0 + static_cast<double>(engine() >> 12) * 0x1p-52;
    return std::ldexp((engine() & 1) != 0 ? -m : m, between(lo, hi));
  }
};

// The terms of one adversarial sum.
std::vector<float> terms(source& r, int kind, int n) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (auto& v : x) {
    switch (kind) {
      case 0:
        v = r.finite();
        break;
      case 1:
        v = r.narrow(-3, 22, 3);
        break;  // ties and cancellation
      case 2:
        v = r.narrow(-149, -120, 4);
        break;  // subnormal results
      case 3:
        v = (r.word() & 1) != 0 ? 0x1.fffffep127f : -0x1.fffffep127f;
        break;  // overflow border
      default:
        v = r.narrow(-149, 100, 24);
    }
  }
  if (kind == 3) x[0] = r.narrow(100, 104, 2);
  if (kind == 4) {  // long cancellation: everything twice, with both signs, and a small rest
    for (int i = 0; i + 1 < n; i += 2) x[static_cast<std::size_t>(i)] = -x[static_cast<std::size_t>(i + 1)];
    x[static_cast<std::size_t>(n - 1)] = r.narrow(-149, -100, 24);
  }
  return x;
}

}  // namespace

TEST_CASE("error-free transforms are exact") {
  source r;
  int bad = 0;
  for (int i = 0; i < 100000; ++i) {
    const double a = r.finite_double(-60, 60);
    const double b = r.finite_double(-60, 60);
    const dd s = two_sum(a, b);
    const dd p = two_prod(a, b);
    const bool order = std::fabs(a) >= std::fabs(b);
    const dd f = order ? fast_two_sum(a, b) : fast_two_sum(b, a);
    bad += mpq_class(s.hi) + mpq_class(s.lo) != mpq_class(a) + mpq_class(b) || s.hi != a + b;
    bad += mpq_class(p.hi) + mpq_class(p.lo) != mpq_class(a) * mpq_class(b) || p.hi != a * b;
    bad += f.hi != s.hi || f.lo != s.lo;
  }
  CHECK(bad == 0);
}

TEST_CASE("rounding to odd, then to float, is one rounding") {
  source r;
  int bad = 0;
  for (int i = 0; i < 200000; ++i) {
    // hi near floats and midpoints of floats (subnormal ones too), lo below half an ulp of it
    const float f = r.finite();
    const double gap = static_cast<double>(std::nextafterf(f, 0.0f)) - f;
    const double hi = f + gap * 0.5 * static_cast<double>(r.between(0, 2));
    const double lo = std::ldexp(hi, -r.between(54, 100)) * static_cast<double>(r.between(-1, 1));
    if (hi == 0) continue;
    bad += !same(static_cast<float>(round_to_odd(hi, lo)), round_rational(mpq_class(hi) + mpq_class(lo)));
  }
  CHECK(bad == 0);
}

TEST_CASE("the rounding test is sound at both tiers, for sums and means") {
  source r;
  int bad = 0;
  int decided = 0;
  for (int i = 0; i < 200000; ++i) {
    const float f = i % 3 == 0 ? r.narrow(-149, -126, 24) : r.finite();
    if (std::fabs(f) > 0x1p126f) continue;
    const double gap = static_cast<double>(std::nextafterf(f, 2 * f)) - f;
    const std::int64_t n = i % 2 == 0 ? 1 : r.between(1, 1000000);
    // S = (a float or a midpoint) * n + delta, s0 an approximation within e of S
    const double tie = (f + 0.5 * gap) * static_cast<double>(n);
    const double e = std::ldexp(std::fabs(tie), -r.between(20, 52));
    const double s0 = tie + e * r.between(-3, 3);
    const mpq_class exact = mpq_class(s0) + mpq_class(e) * mpq_class(r.between(-16, 16)) / 16;
    const double bound = e + 2 * 0x1p-53 * std::fabs(s0) * 1.01;  // (C): the slack that the bounds include
    const float want = round_rational(exact / mpq_class(n));
    const certified c = n == 1 ? certify(s0, bound) : certify_mean(s0, bound, n);
    const dd wide = two_sum(s0, std::ldexp(e, -r.between(0, 60)));
    const mpq_class off = mpq_class(wide.hi) + mpq_class(wide.lo) - exact;
    const double e2 = mpq_class(abs(off)).get_d() * (1 + 0x1p-50);
    const certified d = n == 1 ? certify(wide, e2) : certify_mean(wide, e2, n);
    bad += c.decided && !same(c.value, want);
    bad += d.decided && !same(d.value, want);
    decided += c.decided + d.decided;
  }
  CHECK(bad == 0);
  CHECK(decided > 10000);
}

TEST_CASE("the bound without slack would round a sum the wrong way; the one with it does not") {
  const double m = 1 + 0x1p-24;
  const double s = m - 0x1p-49;
  const double e = 0x1p-49 + 0x1p-54;  // S = s + e is above the midpoint
  CHECK(same(static_cast<float>(s - e), static_cast<float>(s + e)));
  CHECK(!certify(s, e + 0x1p-53 * s * 1.01).decided);
}

TEST_CASE("the rounding test: zeros, infinities, NaN, forced failure") {
  CHECK(same(certify(-0.0, 0.0).value, 0.0f));
  CHECK(certify(-0.0, 0.0).decided);
  CHECK(!certify(0.0, 0x1p-300).decided);
  CHECK(same(certify(-0x1p-160, 0x1p-200).value, -0.0f));
  CHECK(certify(infinity, infinity).value == std::numeric_limits<float>::infinity());
  CHECK(certify(infinity, std::nan("")).decided);
  CHECK(std::bit_cast<std::uint32_t>(certify(std::bit_cast<double>(0xfff8000000001234ull), 0.0).value) == 0x7fc00000u);
  CHECK(!certify(1.0, infinity).decided);
  CHECK(!certify(1.0, std::nan("")).decided);
  CHECK(!certify(dd{1.0, 0.0}, infinity).decided);
  CHECK(!certify_mean(1.0, infinity, 3).decided);
  CHECK(certify_mean(-infinity, infinity, 3).decided);
  CHECK(same(certify_mean(-0x1p-149, 0.0, 4).value, -0.0f));
  CHECK(same(certify_mean(0x1p-149, 0.0, 2).value, 0.0f));  // a tie, to even
  CHECK(same(certify_mean(3 * 0x1p-149, 0.0, 2).value, 0x1p-148f));
  CHECK(certify_mean(3 * 0x1p-149, 0.0, 2).decided);
  CHECK(certify(0x1p128 - 0x1p103, 0.0).value == std::numeric_limits<float>::infinity());  // the midpoint: to even
  CHECK(certify(0x1p128 - 0x1p103 - 0x1p80, 0.0).value == 0x1.fffffep127f);
}

TEST_CASE("lsb exponents and the lattice test") {
  source r;
  int bad = 0;
  for (int i = 0; i < 100000; ++i) {
    const float f = i % 4 == 0 ? r.narrow(-149, 100, 5) : r.finite();
    const int lsb = lsb_exponent(f);
    if (f == 0) {
      bad += lsb != no_lsb;
      continue;
    }
    const mpq_class q = mpq_class(f) / two_to(lsb);
    bad += q.get_den() != 1 || mpz_even_p(q.get_num().get_mpz_t());
  }
  CHECK(bad == 0);
  CHECK(lattice_holds(0x1p52, 0));
  CHECK(!lattice_holds(0x1p52 + 1, 0));
  CHECK(!lattice_holds(infinity, 2 * no_lsb));
  CHECK(!lattice_holds(std::nan(""), 0));
  CHECK(lattice_holds(0, 2 * no_lsb));
}

namespace {

// A sum over a tree of double-double additions, with the quantities that its bound needs.
struct dd_accumulator {
  dd sum = {0, 0};
  double magnitude = 0;     // fl(sum|x|)
  std::int64_t height = 0;  // of the tree so far

  void add_term(double x) {
    sum = add(sum, x);
    magnitude += x < 0 ? -x : x;
    ++height;
  }
  void merge(const dd_accumulator& other) {
    sum = add(sum, other.sum);
    magnitude += other.magnitude;
    height = (height > other.height ? height : other.height) + 1;
  }
  double bound() const { return dd_bound(height, magnitude); }
  // lsb: the minimum of the terms' lsb exponents, or -2000 where it is not known.
  bool exact(int lsb) const { return lattice_holds_dd(magnitude, lsb); }
  certified round(int lsb = -2000) const { return certify(sum, exact(lsb) ? 0.0 : bound()); }
};

}  // namespace

TEST_CASE("double-double sums stay within their bound, and are exact where the lattice rule says so") {
  source r;
  int bad = 0;
  int exact = 0;
  for (int i = 0; i < 30000; ++i) {
    const int kind = i % 6;
    const auto x = terms(r, kind, r.between(1, 60));
    dd_accumulator a[3];
    mpq_class sum = 0;
    int lsb = no_lsb;
    for (std::size_t k = 0; k < x.size(); ++k) {
      a[k % 3].add_term(x[k]);
      sum += mpq_class(x[k]);
      lsb = std::min(lsb, lsb_exponent(x[k]));
    }
    a[0].merge(a[2]);
    a[0].merge(a[1]);
    const mpq_class error = abs(mpq_class(a[0].sum.hi) + mpq_class(a[0].sum.lo) - sum);
    bad += error > mpq_class(a[0].bound());
    if (a[0].exact(lsb)) {
      ++exact;
      bad += error != 0;
    }
    const certified c = a[0].round(lsb);
    bad += c.decided && !same(c.value, round_rational(sum));
    bad += a[0].exact(lsb) && !c.decided;
  }
  CHECK(bad == 0);
  CHECK(exact > 5000);
}

TEST_CASE("exact accumulators: sums, means and products, every kind of term" * doctest::test_suite("portable")) {
  source r;
  int bad = 0;
  for (int i = 0; i < 6000; ++i) {
    const int n = r.between(1, 40);
    const auto x = terms(r, i % 5, n);
    const auto y = terms(r, static_cast<int>(r.word() % 5), n);
    sum_accumulator s[2];
    dot_accumulator d;
    mpq_class sum = 0;
    mpq_class dot = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (k % 3 == 0) {
        s[k & 1].add(static_cast<double>(x[k]));
      } else {
        s[k & 1].add(x[k]);
      }
      d.add_product(x[k], y[k]);
      sum += mpq_class(x[k]);
      dot += mpq_class(x[k]) * mpq_class(y[k]);
    }
    if (i % 2 == 0) {
      d.add(y[0]);
      dot += mpq_class(y[0]);
    }
    if (i % 7 == 0) {  // take everything away again
      for (float v : x) s[1].add(-v);
      sum = 0;
    }
    s[0].merge(s[1]);
    bad += !same(s[0].round(), round_rational(sum));
    bad += !same(d.round(), round_rational(dot));
    bad += s[0].sign() != sgn(sum) || d.sign() != sgn(dot) || s[0].is_zero() != (sum == 0);
    const std::int64_t count = i % 3 == 0 ? n : static_cast<std::int64_t>(r.word() >> r.between(3, 60)) + 1;
    mpz_class divisor;
    mpz_import(divisor.get_mpz_t(), 1, 1, sizeof count, 0, 0, &count);
    const mpq_class mean = sum / mpq_class(divisor);
    const float want = round_rational(mean);
    bad += !same(s[0].mean(count), sum == 0 ? 0.0f : want);
  }
  CHECK(bad == 0);
}

TEST_CASE("exact accumulators: every float, its midpoints and the doubles beside them round as MPFR does" *
          doctest::test_suite("portable")) {
  source r;
  int bad = 0;
  for (int i = 0; i < 60000; ++i) {
    const float f = i % 2 == 0 ? r.finite() : r.narrow(-149, -124, 24);
    const double gap = static_cast<double>(std::nextafterf(f, std::numeric_limits<float>::infinity())) - f;
    const double mid = std::isfinite(gap) ? f + 0.5 * gap : 0x1p128 - 0x1p103;
    for (int side = -1; side <= 1; ++side) {
      const double v = side == 0 ? mid : std::nextafter(mid, side * 1e300);
      dot_accumulator d;
      d.add(v);
      if (side == 0 && i % 5 < 2) d.add_product(i % 5 == 0 ? 0x1p-149f : -0x1p-149f, 0x1p-149f);
      mpq_class q(v);
      if (side == 0 && i % 5 < 2) q += (i % 5 == 0 ? 1 : -1) * two_to(-298);
      bad += !same(d.round(), round_rational(q));
    }
  }
  CHECK(bad == 0);
}

TEST_CASE("exact accumulators: carries have room for 2^62 terms" * doctest::test_suite("portable")) {
  sum_accumulator s;
  s.add(0x1.fffffep127f);
  for (int i = 0; i < 62; ++i) s.merge(s);
  CHECK(s.sign() == 1);
  CHECK(s.mean((std::int64_t{1} << 62) - 1) == 0x1.fffffep127f);  // M (1 + 2^-62)
  dot_accumulator d;
  d.add_product(0x1.fffffep127f, -0x1.fffffep127f);
  for (int i = 0; i < 62; ++i) d.merge(d);
  CHECK(d.sign() == -1);
  dot_accumulator e = d;
  e.negate();
  CHECK(e.compare(d) == 1);
  CHECK(d.compare(e) == -1);
  CHECK(d.compare(d) == 0);
}

// The least word is the unit's, whatever zeros a factor's significand ends in: AddressSanitizer sees a word below it.
TEST_CASE("a multiple of an exact sum" * doctest::test_suite("portable")) {
  for (const double factor : {1.0, -3.0, 0x1.d1a94a2p39, 0x1p52, -0x1.fffffffffffffp52}) {  // 10^12 is the third
    for (const double x : {0x1p-60, -0x1.8p-59, 0x1.234567p-20, -0x1.fffffffffffffp-8}) {
      fixed_point<-60, 3> s;
      s.add(x);
      fixed_point<-60, 4> multiple;
      add_multiple(multiple, s, factor);
      CHECK(multiple.round<double>() == x * factor);
    }
  }
}

TEST_CASE("special terms") {
  const double inf = infinity;
  special_terms t;
  t.add(1.0);
  CHECK(!t.any());
  t.add(-inf);
  CHECK(t.value() == -std::numeric_limits<float>::infinity());
  t.add(inf);
  CHECK(std::bit_cast<std::uint32_t>(t.value()) == 0x7fc00000u);
  exact_sum<float, 2> p;
  p.add_product(std::numeric_limits<float>::infinity(), -0.0f);
  CHECK(std::bit_cast<std::uint32_t>(p.round()) == 0x7fc00000u);
  CHECK(to_bits(p.round<repdl::f16>()) == 0x7e00);
  exact_sum<repdl::bf16, 1> q;
  q.add(from_bits<repdl::bf16>(0xff80));
  CHECK(to_bits(q.round()) == 0xff80);
  CHECK(to_bits(q.mean(3)) == 0xff80);
}

namespace {

template <class T>
T finite_number(source& r) {
  for (;;) {
    const T x = from_bits<T>(static_cast<storage_of<T>>(r.word()));
    if (is_finite(widen(x))) return x;
  }
}
template <class T>
std::uint64_t rounded_rational(const mpq_class& q) {
  return repdl::reference::round_rational(repdl::dtype_of<T>, q.get_mpq_t());
}

// Sums of numbers of From and of their products, their means where T is no finer, in format T.
template <class From, class T>
int wrong_exact_sums(source& r, int times) {
  int bad = 0;
  for (int i = 0; i < times; ++i) {
    exact_accumulator<From, 1> sum;
    exact_accumulator<From, 2> dot;
    mpq_class s = 0, d = 0;
    for (int k = r.between(1, 12); k > 0; --k) {
      const From x = finite_number<From>(r);
      const From y = i % 3 == 0 ? narrow<From>(r.narrow(-8, 3, 3)) : finite_number<From>(r);
      sum.add(x);
      dot.add_product(x, y);
      s += mpq_class(widen(x));
      d += mpq_class(widen(x)) * mpq_class(widen(y));
      if (i % 4 == 0) {  // cancels, but for a few bits
        const From less = from_bits<From>(static_cast<storage_of<From>>(to_bits(x) ^ sign_mask<From> ^ (r.word() & 3)));
        if (!is_finite(widen(less))) continue;
        sum.add(less);
        dot.add_product(less, y);
        s += mpq_class(widen(less));
        d += mpq_class(widen(less)) * mpq_class(widen(y));
      }
    }
    bad += to_bits(sum.template round<T>()) != rounded_rational<T>(s);
    bad += to_bits(dot.template round<T>()) != rounded_rational<T>(d);
    const std::int64_t n = r.between(1, 1000);
    const mpq_class count(static_cast<long>(n));
    // A nonzero quotient that rounds to 0 keeps its sign.
    const auto mean_of = [&](const mpq_class& q) {
      const std::uint64_t bits = rounded_rational<T>(q / count);
      return q < 0 ? bits | sign_mask<T> : bits;
    };
    if constexpr (least_exponent<From> <= least_exponent<T>) bad += to_bits(sum.template mean<T>(n)) != mean_of(s);
    if constexpr (2 * least_exponent<From> <= least_exponent<T>) bad += to_bits(dot.template mean<T>(n)) != mean_of(d);
  }
  return bad;
}

}  // namespace

TEST_CASE_TEMPLATE("exact accumulators of every format, rounded to every format" * doctest::test_suite("portable"),
                   From, repdl::f16, repdl::bf16, float, double) {
  source r;
  CHECK(wrong_exact_sums<From, repdl::f16>(r, 1500) == 0);
  CHECK(wrong_exact_sums<From, repdl::bf16>(r, 1500) == 0);
  CHECK(wrong_exact_sums<From, float>(r, 1500) == 0);
  CHECK(wrong_exact_sums<From, double>(r, 1500) == 0);
}

namespace {

// One sum of each kind over the same random tree.
struct all_sums {
  bounded_sum<double> bounded;
  measured_sum compensated;
  tracked_sum<double> tracked;
  std::int64_t height = 0;

  void add(double x) {
    bounded.add(x);
    compensated.add_term(x);
    tracked.add(x);
    ++height;
  }
  void merge(const all_sums& o) {
    bounded.add(o.bounded.hi, o.bounded.error);
    compensated.merge(o.compensated);
    tracked.merge(o.tracked);
    height = (height > o.height ? height : o.height) + 1;
  }
};

template <class T>
int wrongly_decided(decided_value<T> r, const mpq_class& sum, int* decided) {
  *decided += r.decided ? 1 : 0;
  return r.decided && to_bits(r.value) != rounded_rational<T>(sum) ? 1 : 0;
}

}  // namespace

TEST_CASE_TEMPLATE("compensated, bounded and tracked sums stay within their bounds, and decide rightly", T, repdl::f16,
                   repdl::bf16, float) {
  source r;
  int beyond = 0, wrong = 0, exact = 0, decided = 0;
  constexpr int times = 20000;
  for (int i = 0; i < times; ++i) {
    const auto x = terms(r, i % 6, r.between(1, 60));
    all_sums part[3];
    mpq_class sum = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      // Products of two numbers have more bits to lose.
      const double term = static_cast<double>(x[k]) * (i % 5 == 0 ? static_cast<double>(x[x.size() - 1 - k]) : 1.0);
      part[r.word() % 3].add(term);
      sum += mpq_class(term);
    }
    part[0].merge(part[1]);
    part[0].merge(part[2]);
    const all_sums& all = part[0];
    const auto error = [&](double hi, double lo) { return mpq_class(abs(mpq_class(hi) + mpq_class(lo) - sum)); };
    const double bound = all.compensated.bound(all.height);
    beyond += error(all.compensated.hi, all.compensated.lo) > mpq_class(bound);
    beyond += error(all.tracked.hi, all.tracked.lo) > mpq_class(all.tracked.bound(all.height));
    beyond += error(all.bounded.hi, 0) > mpq_class(all.bounded.bound());
    if (all.bounded.error == 0) {
      ++exact;
      beyond += error(all.bounded.hi, 0) != 0 || all.tracked.error != 0;
    }
    wrong += wrongly_decided<T>(certify<T>(all.compensated.total(), bound), sum, &decided);
    wrong += wrongly_decided<T>(certify<T>(all.compensated.hi + all.compensated.lo,
                                           rounded_compensated_bound(all.height, all.compensated.magnitude)),
                                sum, &decided);
    wrong += wrongly_decided<T>(certify<T>(all.tracked.total(), all.tracked.bound(all.height)), sum, &decided);
    wrong += wrongly_decided<T>(certify<T>(all.bounded.hi, all.bounded.bound()), sum, &decided);
  }
  CHECK(beyond == 0);
  CHECK(wrong == 0);
  CHECK(exact > times / 10);
  CHECK(decided > 2 * times);
}

TEST_CASE("sums: a leaf's additions, heights without a bound, and what is not finite") {
  CHECK(compensated_bound(greatest_height + 1, 0.0) == infinity);
  CHECK(compensated_bound(0, 1.0, 4) > 4 * 0x1p-53);
  measured_sum s;
  s.add_term(-infinity);
  s.add_term(1.0);
  CHECK(s.hi == -infinity);
  s.add_term(infinity);
  CHECK(s.hi != s.hi);
  bounded_sum<double> b;
  b.add(infinity);
  b.add(1.0);
  CHECK(certify(b.hi, b.bound()).decided);
  CHECK(certify(b.hi, b.bound()).value == std::numeric_limits<float>::infinity());
}

TEST_CASE("two_sum of a product that is never formed") {
  source r;
  int bad = 0;
  for (int i = 0; i < 100000; ++i) {
    const double a = i % 3 == 0 ? static_cast<double>(r.narrow(-149, 100, 24)) : static_cast<double>(r.finite());
    const double x = static_cast<double>(r.finite());
    const double y = static_cast<double>(i % 2 == 0 ? r.finite() : r.narrow(-8, 3, 3));
    const dd sum = two_sum_of_product(a, x, y);
    bad += mpq_class(sum.hi) + mpq_class(sum.lo) != mpq_class(a) + mpq_class(x) * mpq_class(y) || sum.hi != a + x * y;
  }
  CHECK(bad == 0);
}
