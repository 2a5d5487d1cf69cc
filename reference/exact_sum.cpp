#include "reference/structured.hpp"

namespace repdl::reference {
namespace {
constexpr dtype f32 = dtype::f32;
constexpr int unit = -298;  // every product of two binary32 numbers is a multiple of 2^unit
}  // namespace

void exact_sum::clear() {
  for (std::uint64_t& w : word_) w = 0;
  nan_ = plus_ = minus_ = false;
}

void exact_sum::add_integer(bool negative, std::uint64_t m, int shift) {
  const int s = shift % 64;
  const std::uint64_t part[2] = {m << s, s == 0 ? 0 : m >> (64 - s)};
  bool carry = false;
  for (int i = shift / 64, p = 0; i < words && (p < 2 || carry); ++i, ++p) {
    const std::uint64_t d = p < 2 ? part[p] : 0;
    std::uint64_t r = 0;
    if (negative) {
      const bool first = __builtin_sub_overflow(word_[i], d, &r);
      const bool second = __builtin_sub_overflow(r, std::uint64_t{carry}, &r);
      carry = first || second;
    } else {
      const bool first = __builtin_add_overflow(word_[i], d, &r);
      const bool second = __builtin_add_overflow(r, std::uint64_t{carry}, &r);
      carry = first || second;
    }
    word_[i] = r;
  }
}

void exact_sum::add(std::uint32_t x) { add_product(x, 0x3f800000); }

void exact_sum::add_product(std::uint32_t x, std::uint32_t y) {
  const number a = widen(f32, x), b = widen(f32, y);
  if (a.kind == number_kind::finite && b.kind == number_kind::finite) {
    add_integer(a.negative != b.negative, a.significand * b.significand, a.exponent + b.exponent - unit);
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

bool exact_sum::special(std::uint32_t* bits) const {
  if (nan_ || (plus_ && minus_)) {
    *bits = static_cast<std::uint32_t>(nan_bits(f32));
  } else if (plus_ || minus_) {
    *bits = static_cast<std::uint32_t>(infinity_bits(f32, minus_));
  } else {
    return false;
  }
  return true;
}

mpz_srcptr exact_sum::value() {
  std::uint64_t magnitude[words];
  const bool negative = (word_[words - 1] >> 63) != 0;
  bool carry = negative;
  for (int i = 0; i < words; ++i) {
    const std::uint64_t w = negative ? ~word_[i] : word_[i];
    magnitude[i] = w + (carry ? 1 : 0);
    carry = carry && magnitude[i] == 0;
  }
  mpz_import(value_, words, -1, sizeof magnitude[0], 0, 0, magnitude);
  if (negative) mpz_neg(value_, value_);
  return value_;
}

std::uint32_t exact_sum::round() {
  std::uint32_t bits = 0;
  if (special(&bits)) return bits;
  return static_cast<std::uint32_t>(round_integer(f32, value(), unit));
}

std::uint32_t exact_sum::round_mean(std::int64_t n) {
  std::uint32_t bits = 0;
  if (n == 0) return static_cast<std::uint32_t>(nan_bits(f32));
  if (special(&bits)) return bits;
  mpz_t d;
  mpz_init_set_si(d, n);
  bits = static_cast<std::uint32_t>(round_quotient(f32, value(), d, unit));
  mpz_clear(d);
  return bits;
}

outcome exact_sum::where(std::int64_t n) {
  outcome o;
  std::uint32_t bits = 0;
  o.nan = n == 0;
  if (!o.nan && special(&bits)) {
    o.nan = bits == nan_bits(f32);
    o.infinite = !o.nan;
  }
  if (o.nan || o.infinite) return o;
  mpz_t d;
  mpz_init_set_si(d, n);
  o = locate(f32, value(), d, unit);
  mpz_clear(d);
  return o;
}

}  // namespace repdl::reference
