// Random numbers made of Philox words (contract, section 6): normal, exponential, bernoulli, randint, dropout.
#include <stdexcept>

#include "reference/numbers/real.hpp"
#include "reference/structured/structured.hpp"

namespace repdl::reference {
namespace {

mpz_class unsigned_integer(std::uint64_t v) {
  mpz_class m;
  mpz_import(m.get_mpz_t(), 1, -1, sizeof v, 0, 0, &v);
  return m;
}

/// u1 in (0, 1] and u2 in [0, 1) of element i.
struct uniform_pair {
  mpq_class u1, u2;
};
uniform_pair pair_of(dtype t, std::uint64_t seed, std::uint64_t stream, std::uint64_t i) {
  const std::uint64_t p = i / 2;
  if (t == dtype::f64) {
    const philox_block b = philox(seed, stream, p);
    return {(unsigned_integer(wide_word(b, 0)) + 1) * power_of_two(-64),
            unsigned_integer(wide_word(b, 1)) * power_of_two(-64)};
  }
  const philox_block b = philox(seed, stream, p / 2);
  const std::uint64_t r = p % 2;
  return {(unsigned_integer(b.w[2 * r]) + 1) * power_of_two(-32), unsigned_integer(b.w[2 * r + 1]) * power_of_two(-32)};
}

/// cos(2 pi turn) = sign * sin(pi a) or sign * cos(pi a), 0 <= a <= 1/2; sign 0 where it is 0.
struct quarter {
  int sign;
  bool sine;
  mpq_class a;
};
quarter cosine(mpq_class turn) {
  turn -= mpz_class(turn.get_num() / turn.get_den());  // turn >= 0
  mpq_class h = 2 * turn;                              // cos(pi h), 0 <= h < 2
  if (h > 1) h = 2 - h;                                // cos(2 pi - x) = cos x
  if (2 * h == 1) return {0, false, 0};
  if (2 * h > 1) return {-1, false, 1 - h};  // cos(pi - x) = -cos x
  return {1, false, h};
}

}  // namespace

// With u1 < 1 and the cosine not 0, -2 ln u1 is transcendental and so is the result; |r| = stddev * the rest is at
// least 2^-200 2^-33 2^-62 in size and mean at most 2^200, so that some hundred bits tell the result from mean and from
// any midpoint that mean is.
array normal(dtype t, const shape_list& shape, std::uint64_t seed, std::uint64_t stream, double mean, double stddev,
             outcomes* where) {
  array out(t, shape);
  const mpq_class m = rational(mean), sd = rational(stddev);
  for (std::size_t i = 0; i < static_cast<std::size_t>(out.count()); ++i) {
    const uniform_pair u = pair_of(t, seed, stream, i);
    const quarter q = cosine(i % 2 == 0 ? u.u2 : mpq_class(u.u2 + mpq_class(3, 4)));  // sin x = cos(x + 3 pi / 2)
    outcome o;
    if (u.u1 == 1 || q.sign == 0 || sd == 0) {
      out.set(i, round_exact(t, m, &o));
    } else {
      const auto f = [&](mpfr_prec_t p) {
        const interval radius = sqrt(-(interval(p, mpq_class(2)) * log(interval(p, u.u1))));
        const interval r = interval(p, sd) * radius * cos_pi(interval(p, q.a));
        return m == 0 ? (q.sign < 0 ? -r : r) : interval(p, m) + (q.sign < 0 ? -r : r);
      };
      out.set(i, decide(t, f, &o));
    }
    if (where != nullptr) where->push_back(o);
  }
  return out;
}

// -ln u is transcendental, and so is its quotient by the rational rate. A draw is never 0: u = 1 counts as the middle
// between the number below it and 1, and what would round to +0 is the least positive number.
array exponential(dtype t, const shape_list& shape, std::uint64_t seed, std::uint64_t stream, double rate,
                  outcomes* where) {
  array out(t, shape);
  const mpq_class r = rational(rate);
  for (std::size_t i = 0; i < static_cast<std::size_t>(out.count()); ++i) {
    const int bits = t == dtype::f64 ? 64 : 32;
    const std::uint64_t w = t == dtype::f64 ? wide_word(philox(seed, stream, i / 2), static_cast<int>(i % 2))
                                            : philox(seed, stream, i / 4).w[i % 4];
    mpq_class u = (unsigned_integer(w) + 1) * power_of_two(-bits);
    if (u == 1) u -= power_of_two(-bits - 1);
    const auto f = [&](mpfr_prec_t p) { return -log(interval(p, u)) / interval(p, r); };
    outcome o;
    std::uint64_t bits_of_draw = decide(t, f, &o);
    if (bits_of_draw == 0) {
      bits_of_draw = 1;
      o = outcome_of_pattern(t, bits_of_draw);
    }
    out.set(i, bits_of_draw);
    if (where != nullptr) where->push_back(o);
  }
  return out;
}

namespace {

/// w < ceil(p 2^32).
bool drawn(std::uint64_t seed, std::uint64_t stream, std::uint64_t i, const mpz_class& threshold) {
  return unsigned_integer(philox(seed, stream, i / 4).w[i % 4]) < threshold;
}

mpz_class threshold_of(double p) {
  const mpq_class scaled = rational(p) * power_of_two(32);
  mpz_class c;
  mpz_cdiv_q(c.get_mpz_t(), scaled.get_num_mpz_t(), scaled.get_den_mpz_t());
  return c;
}

}  // namespace

array bernoulli(const shape_list& shape, std::uint64_t seed, std::uint64_t stream, double p) {
  array out(dtype::boolean, shape);
  const mpz_class threshold = threshold_of(p);
  for (std::size_t i = 0; i < static_cast<std::size_t>(out.count()); ++i)
    out.set(i, drawn(seed, stream, i, threshold) ? 1 : 0);
  return out;
}

array randint(const shape_list& shape, std::uint64_t seed, std::uint64_t stream, std::int64_t low, std::int64_t high) {
  if (low >= high) throw std::invalid_argument("reference::randint: range");
  array out(dtype::i64, shape);
  const mpz_class first = static_cast<long>(low), range = mpz_class(static_cast<long>(high)) - first;
  for (std::size_t i = 0; i < static_cast<std::size_t>(out.count()); ++i) {
    const mpz_class w = unsigned_integer(wide_word(philox(seed, stream, i / 2), static_cast<int>(i % 2)));
    const mpz_class v = first + (w * range >> 64);
    out.set(i, static_cast<std::uint64_t>(v.get_si()));
  }
  return out;
}

array dropout(const array& x, std::uint64_t seed, std::uint64_t stream, double p, outcomes* where) {
  array out(x.type, x.shape);
  const mpz_class threshold = threshold_of(p);
  const mpq_class kept = 1 - rational(p);  // exact
  for (std::size_t i = 0; i < static_cast<std::size_t>(out.count()); ++i) {
    const std::uint64_t bits = x.get(i);
    const number v = widen(x.type, bits);
    std::uint64_t r = 0;
    outcome o = outcome_of_pattern(x.type, 0);
    if (!drawn(seed, stream, i, threshold)) {
      if (v.kind == number_kind::finite) {
        r = round_exact(x.type, rational(x.type, bits) / kept, &o);
      } else {
        r = v.kind == number_kind::nan ? nan_bits(x.type) : bits;  // kept > 0
        o = outcome_of_pattern(x.type, r);
      }
    }
    out.set(i, r);
    if (where != nullptr) where->push_back(o);
  }
  return out;
}

}  // namespace repdl::reference
