#include <cstring>

#include "reference/elementwise/elementwise.hpp"

namespace repdl::reference {

extended::extended(dtype t, std::uint64_t bits) {
  const number n = widen(t, bits);
  kind_ = n.kind;
  negative_ = n.negative;
  exponent_ = n.exponent;
  mpz_init_set_ui(m_, n.significand);
  if (negative_) mpz_neg(m_, m_);
}

extended::extended(int v) : kind_(v == 0 ? number_kind::zero : number_kind::finite), negative_(v < 0) {
  mpz_init_set_si(m_, v);
}

extended::extended(const extended& o) : kind_(o.kind_), negative_(o.negative_), exponent_(o.exponent_) {
  mpz_init_set(m_, o.m_);
}

extended& extended::operator=(const extended& o) {
  kind_ = o.kind_;
  negative_ = o.negative_;
  exponent_ = o.exponent_;
  mpz_set(m_, o.m_);
  return *this;
}

extended extended::operator-() const {
  extended r(*this);
  r.negative_ = !negative_;
  mpz_neg(r.m_, r.m_);
  return r;
}

extended operator+(const extended& a, const extended& b) {
  if (a.is_nan()) return a;
  if (b.is_nan()) return b;
  if (a.is_infinite() && b.is_infinite() && a.negative_ != b.negative_) {
    extended r;
    r.kind_ = number_kind::nan;
    return r;
  }
  if (a.is_infinite()) return a;
  if (b.is_infinite()) return b;
  extended r;
  if (a.is_zero() && b.is_zero()) return r;
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  const extended& high = a.exponent_ >= b.exponent_ ? a : b;
  const extended& low = a.exponent_ >= b.exponent_ ? b : a;
  mpz_mul_2exp(r.m_, high.m_, static_cast<mp_bitcnt_t>(high.exponent_ - low.exponent_));
  mpz_add(r.m_, r.m_, low.m_);
  r.exponent_ = low.exponent_;
  r.negative_ = mpz_sgn(r.m_) < 0;
  r.kind_ = mpz_sgn(r.m_) == 0 ? number_kind::zero : number_kind::finite;
  return r;
}

extended operator*(const extended& a, const extended& b) {
  if (a.is_nan()) return a;
  if (b.is_nan()) return b;
  extended r;
  r.negative_ = a.negative_ != b.negative_;
  if (a.is_infinite() || b.is_infinite()) {
    r.kind_ = a.is_zero() || b.is_zero() ? number_kind::nan : number_kind::infinite;
    return r;
  }
  if (a.is_zero() || b.is_zero()) return r;
  r.kind_ = number_kind::finite;
  mpz_mul(r.m_, a.m_, b.m_);
  r.exponent_ = a.exponent_ + b.exponent_;
  return r;
}

std::uint64_t extended::round(dtype t) const {
  switch (kind_) {
    case number_kind::nan:
      return nan_bits(t);
    case number_kind::infinite:
      return infinity_bits(t, negative_);
    case number_kind::zero:
      return zero_bits(t, negative_);
    default:
      return round_integer(t, m_, exponent_);
  }
}

void store(dtype t, void* data, std::uint64_t i, std::uint64_t bits) {
  auto* p = static_cast<unsigned char*>(data) + i * size_of(t);
  const auto put = [p](auto v) {
    for (std::size_t b = 0; b < sizeof v; ++b) p[b] = static_cast<unsigned char>(v >> (8 * b));
  };
  switch (size_of(t)) {
    case 1:
      put(static_cast<std::uint8_t>(bits));
      return;
    case 2:
      put(static_cast<std::uint16_t>(bits));
      return;
    case 4:
      put(static_cast<std::uint32_t>(bits));
      return;
    default:
      put(bits);
  }
}

std::uint64_t load(dtype t, const void* data, std::uint64_t i) {
  const std::size_t n = size_of(t);
  const auto* p = static_cast<const unsigned char*>(data) + i * n;
  std::uint64_t bits = 0;
  for (std::size_t b = 0; b < n; ++b) bits |= std::uint64_t{p[b]} << (8 * b);
  return bits;
}

}  // namespace repdl::reference
