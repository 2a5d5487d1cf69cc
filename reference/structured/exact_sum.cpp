#include <gmpxx.h>

#include "reference/structured/structured.hpp"

namespace repdl::reference {

void exact_sum::clear() {
  sum_ = {};
  mpz_set_ui(value_, 0);
  nan_ = plus_ = minus_ = false;
}

void exact_sum::add(std::uint64_t x) { add_product(widen(type_, x), {number_kind::finite, false, 1, 0}); }

void exact_sum::add_product(std::uint64_t x, std::uint64_t y) { add_product(widen(type_, x), widen(type_, y)); }

void exact_sum::add_product(const number& a, const number& b) {
  if (a.kind == number_kind::finite && b.kind == number_kind::finite) {
    if (type_ == dtype::f64) {
      mpz_class product(a.significand);
      product *= mpz_class(b.significand);
      product <<= static_cast<mp_bitcnt_t>(a.exponent + b.exponent - unit_of_f64);
      (a.negative != b.negative ? mpz_sub : mpz_add)(value_, value_, product.get_mpz_t());
    } else {
      sum_.add(a.negative != b.negative, a.significand * b.significand, a.exponent + b.exponent - unit);
    }
    return;
  }
  using enum number_kind;
  const bool any_infinite = a.kind == infinite || b.kind == infinite;
  const bool any_zero = a.kind == zero || b.kind == zero;
  if (a.kind == number_kind::nan || b.kind == number_kind::nan || (any_infinite && any_zero)) {
    nan_ = true;
  } else if (any_infinite) {
    (a.negative != b.negative ? minus_ : plus_) = true;
  }
}

bool exact_sum::special(std::uint64_t* bits) const {
  if (nan_ || (plus_ && minus_)) {
    *bits = nan_bits(to_);
  } else if (plus_ || minus_) {
    *bits = infinity_bits(to_, minus_);
  } else {
    return false;
  }
  return true;
}

mpz_srcptr exact_sum::value() {
  if (type_ == dtype::f64) return value_;
  const wide_integer magnitude = sum_.magnitude();
  mpz_import(value_, wide_integer::words, -1, sizeof magnitude.word[0], 0, 0, magnitude.word);
  if (sum_.negative()) mpz_neg(value_, value_);
  return value_;
}

std::uint64_t exact_sum::round() {
  std::uint64_t bits = 0;
  if (special(&bits)) return bits;
  return round_integer(to_, value(), unit_of_sum());
}

std::uint64_t exact_sum::round_mean(std::int64_t n) {
  std::uint64_t bits = 0;
  if (n == 0) return nan_bits(to_);
  if (special(&bits)) return bits;
  mpz_t d;
  mpz_init_set_si(d, n);
  bits = round_quotient(to_, value(), d, unit_of_sum());
  mpz_clear(d);
  return bits;
}

std::uint64_t exact_sum::round_root(outcome* where) {
  std::uint64_t bits = 0;
  *where = this->where();
  if (special(&bits)) return bits;
  // In halves of 2^(unit / 2 - 150), of which an odd number stands for all between its neighbours: midpoints are multiples of 2^-150, of
  // binary64 2^-1075.
  constexpr int shift = 150;
  mpz_class root, rest, units(value());
  mpz_mul_2exp(units.get_mpz_t(), units.get_mpz_t(), 2 * shift);
  mpz_sqrtrem(root.get_mpz_t(), rest.get_mpz_t(), units.get_mpz_t());
  const mpz_class halves = 2 * root + (rest == 0 ? 0 : 1), one = 1;
  *where = locate(type_, halves.get_mpz_t(), one.get_mpz_t(), unit_of_sum() / 2 - shift - 1);
  return round_integer(type_, halves.get_mpz_t(), unit_of_sum() / 2 - shift - 1);
}

outcome exact_sum::where(std::int64_t n) {
  outcome o;
  std::uint64_t bits = 0;
  o.nan = n == 0;
  if (!o.nan && special(&bits)) {
    o.nan = bits == nan_bits(to_);
    o.infinite = !o.nan;
  }
  if (o.nan || o.infinite) return o;
  mpz_t d;
  mpz_init_set_si(d, n);
  o = locate(to_, value(), d, unit_of_sum());
  mpz_clear(d);
  return o;
}

}  // namespace repdl::reference
