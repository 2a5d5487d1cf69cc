#include "reference/number.hpp"

#include <bit>
#include <stdexcept>
#include <string>

namespace repdl::reference {
namespace {

constexpr format formats[] = {
    {16, 11, -14, 15},
    {16, 8, -126, 127},
    {32, 24, -126, 127},
    {64, 53, -1022, 1023},
};
constexpr std::string_view names[] = {"f16", "bf16", "f32", "f64", "i64", "bool"};

/// Integers kept per thread, so that no call allocates.
struct scratch {
  mpz_t a, b, c;
  scratch() { mpz_inits(a, b, c, nullptr); }
  ~scratch() { mpz_clears(a, b, c, nullptr); }
};
thread_local scratch tmp;

/// |m|'s leading 64 bits (or all of it), their exponent and whether anything nonzero was cut off.
struct leading {
  std::uint64_t bits;
  std::int64_t exponent;
  bool sticky;
};

leading leading_bits(mpz_srcptr m, std::int64_t exponent) {
  const std::size_t size = mpz_sizeinbase(m, 2);
  if (size <= 64) {
    std::uint64_t v = 0;
    mpz_export(&v, nullptr, -1, sizeof v, 0, 0, m);
    return {v, exponent, false};
  }
  const std::size_t cut = size - 64;
  mpz_tdiv_q_2exp(tmp.c, m, cut);
  std::uint64_t v = 0;
  mpz_export(&v, nullptr, -1, sizeof v, 0, 0, tmp.c);
  return {v, exponent + static_cast<std::int64_t>(cut), mpz_scan1(m, 0) < cut};
}

}  // namespace

const format& format_of(dtype t) {
  const auto i = static_cast<unsigned>(t);
  if (i > 3) throw std::invalid_argument("reference: not a floating-point format");
  return formats[i];
}

std::string_view format_name(dtype t) { return names[static_cast<unsigned>(t)]; }

dtype format_named(std::string_view name) {
  for (unsigned i = 0; i < std::size(names); ++i)
    if (names[i] == name) return static_cast<dtype>(i);
  throw std::invalid_argument("reference: no format is named " + std::string(name));
}

std::uint64_t nan_bits(dtype t) { return format_of(t).nan(); }
std::uint64_t infinity_bits(dtype t, bool negative) {
  return format_of(t).infinity() | zero_bits(t, negative);
}
std::uint64_t zero_bits(dtype t, bool negative) { return negative ? format_of(t).sign_bit() : 0; }

number widen(dtype t, std::uint64_t bits) {
  const format& f = format_of(t);
  number n;
  n.negative = (bits & f.sign_bit()) != 0;
  const std::uint64_t magnitude = bits & (f.sign_bit() - 1);
  if (magnitude == 0) return n;
  if (magnitude >= f.infinity()) {
    n.kind = magnitude == f.infinity() ? number_kind::infinite : number_kind::nan;
    return n;
  }
  n.kind = number_kind::finite;
  const std::uint64_t fraction = magnitude & ((std::uint64_t{1} << (f.precision - 1)) - 1);
  const int biased = static_cast<int>(magnitude >> (f.precision - 1));
  n.significand = biased == 0 ? fraction : fraction | (std::uint64_t{1} << (f.precision - 1));
  n.exponent = f.ulp_min() + (biased == 0 ? 0 : biased - 1);
  return n;
}

std::uint64_t round(dtype t, bool negative, std::uint64_t m, std::int64_t exponent, bool sticky) {
  const format& f = format_of(t);
  const std::uint64_t sign = zero_bits(t, negative);
  if (m == 0) {
    if (sticky) throw std::logic_error("reference::round: a sticky zero");
    return sign;
  }
  const int length = 64 - std::countl_zero(m);
  const std::int64_t top = exponent + length - 1;  // 2^top <= |value| < 2^(top+1)
  if (top > f.emax) return sign | f.infinity();
  // The exponent of the result's last place, were it rounded downwards.
  const std::int64_t last = (top < f.emin ? f.emin : top) - (f.precision - 1);
  const std::int64_t cut = last - exponent;  // bits of m to remove
  if (cut <= 0) {
    if (sticky) throw std::logic_error("reference::round: too few bits before a sticky bit");
    m <<= -cut;  // exact: m has no more bits than the format holds above `last`
  } else if (cut > 64) {
    m = 0;  // below half of the least number
  } else {
    const std::uint64_t half = std::uint64_t{1} << (cut - 1);
    const std::uint64_t rest = m & ((half - 1) | half);
    m = cut == 64 ? 0 : m >> cut;
    if (rest > half || (rest == half && (sticky || (m & 1) != 0))) ++m;
  }
  // m < 2^precision, or = after a carry. Patterns are ordered like the numbers, so a carry into the next binade, from
  // the subnormals to the normals or from the largest number to infinity, is an addition.
  const std::int64_t biased = last - f.ulp_min();  // 0 for subnormals and the first normal binade
  return sign | (m + (static_cast<std::uint64_t>(biased) << (f.precision - 1)));
}

std::uint64_t round_integer(dtype t, mpz_srcptr m, std::int64_t exponent) {
  if (mpz_sgn(m) == 0) return 0;
  const leading l = leading_bits(m, exponent);
  return round(t, mpz_sgn(m) < 0, l.bits, l.exponent, l.sticky);
}

std::uint64_t round_quotient(dtype t, mpz_srcptr num, mpz_srcptr den, std::int64_t exponent) {
  if (mpz_sgn(num) == 0) return 0;
  // Scale so that the integer quotient has at least 64 bits; a nonzero remainder is the sticky bit.
  const auto n = static_cast<std::int64_t>(mpz_sizeinbase(num, 2));
  const auto d = static_cast<std::int64_t>(mpz_sizeinbase(den, 2));
  const std::int64_t shift = n - d >= 66 ? 0 : 66 - (n - d);
  mpz_abs(tmp.a, num);
  mpz_mul_2exp(tmp.a, tmp.a, static_cast<mp_bitcnt_t>(shift));
  mpz_tdiv_qr(tmp.a, tmp.b, tmp.a, den);
  const leading l = leading_bits(tmp.a, exponent - shift);
  return round(t, mpz_sgn(num) < 0, l.bits, l.exponent, l.sticky || mpz_sgn(tmp.b) != 0);
}

std::uint64_t round_rational(dtype t, mpq_srcptr q) { return round_quotient(t, mpq_numref(q), mpq_denref(q), 0); }

std::uint64_t round_mpfr(dtype t, mpfr_srcptr y) {
  if (mpfr_nan_p(y)) return nan_bits(t);
  if (mpfr_inf_p(y)) return infinity_bits(t, mpfr_signbit(y) != 0);
  if (mpfr_zero_p(y)) return zero_bits(t, mpfr_signbit(y) != 0);
  const std::int64_t e = mpfr_get_z_2exp(tmp.a, y);
  return round_integer(t, tmp.a, e);
}

bool round_certain(dtype t, mpfr_srcptr y, unsigned errors, std::uint64_t* bits) {
  const std::int64_t e = mpfr_get_z_2exp(tmp.a, y);  // |tmp.a| < 2^precision, in units of ulp(y) = 2^e
  if (mpz_sizeinbase(tmp.a, 2) <= 63) {              // one limb: the same test without GMP
    const bool negative = mpz_sgn(tmp.a) < 0;
    std::uint64_t m = 0;
    mpz_export(&m, nullptr, -1, sizeof m, 0, 0, tmp.a);
    if (m <= errors) return false;
    const std::uint64_t low = round(t, negative, m - errors, e, false);
    *bits = low;
    return low == round(t, negative, m + errors, e, false);
  }
  mpz_sub_ui(tmp.b, tmp.a, errors);
  const std::uint64_t low = round_integer(t, tmp.b, e);
  mpz_add_ui(tmp.b, tmp.a, errors);
  const std::uint64_t high = round_integer(t, tmp.b, e);
  *bits = low;
  return low == high;
}

void set_mpfr(mpfr_ptr y, dtype t, std::uint64_t bits) {
  const number n = widen(t, bits);
  switch (n.kind) {
    case number_kind::nan: mpfr_set_nan(y); return;
    case number_kind::infinite: mpfr_set_inf(y, n.negative ? -1 : 1); return;
    case number_kind::zero: mpfr_set_zero(y, n.negative ? -1 : 1); return;
    case number_kind::finite: break;
  }
  if (mpfr_set_ui_2exp(y, n.significand, n.exponent, MPFR_RNDN) != 0)
    throw std::logic_error("reference::set_mpfr: precision too small");
  if (n.negative) mpfr_neg(y, y, MPFR_RNDN);
}

std::uint64_t convert(dtype from, dtype to, std::uint64_t bits) {
  if (from == to) return bits;
  const number n = widen(from, bits);
  switch (n.kind) {
    case number_kind::nan: return nan_bits(to);
    case number_kind::infinite: return infinity_bits(to, n.negative);
    default: return round(to, n.negative, n.significand, n.exponent, false);
  }
}

std::int64_t order_key(dtype t, std::uint64_t bits) {
  const format& f = format_of(t);
  const auto magnitude = static_cast<std::int64_t>(bits & (f.sign_bit() - 1));
  return (bits & f.sign_bit()) != 0 ? -magnitude - 1 : magnitude;
}

outcome locate(dtype t, mpz_srcptr num, mpz_srcptr den, std::int64_t exponent) {
  const format& f = format_of(t);
  outcome o;
  if (mpz_sgn(num) == 0) {
    o.exact = o.exact_zero = true;
    return o;
  }
  mpz_t n, d, q, r;
  mpz_inits(n, d, q, r, nullptr);
  mpz_abs(n, num);
  mpz_set(d, den);
  if (exponent >= 0) {
    mpz_mul_2exp(n, n, static_cast<mp_bitcnt_t>(exponent));
  } else {
    mpz_mul_2exp(d, d, static_cast<mp_bitcnt_t>(-exponent));
  }
  // top: 2^top <= n / d < 2^(top+1).
  std::int64_t top = static_cast<std::int64_t>(mpz_sizeinbase(n, 2)) - static_cast<std::int64_t>(mpz_sizeinbase(d, 2));
  mpz_set(q, top >= 0 ? d : n);
  mpz_mul_2exp(q, q, static_cast<mp_bitcnt_t>(top >= 0 ? top : -top));
  if (top >= 0 ? mpz_cmp(n, q) < 0 : mpz_cmp(q, d) < 0) --top;
  o.subnormal = top < f.emin;
  const std::int64_t capped = top > f.emax ? f.emax : top;
  const std::int64_t last = (capped < f.emin ? f.emin : capped) - (f.precision - 1);
  // q + r / d = 2 * value / ulp: an odd integer is a midpoint.
  const std::int64_t shift = 1 - last;
  mpz_mul_2exp(shift >= 0 ? n : d, shift >= 0 ? n : d, static_cast<mp_bitcnt_t>(shift >= 0 ? shift : -shift));
  mpz_fdiv_qr(q, r, n, d);
  const bool odd = mpz_odd_p(q) != 0;
  const bool whole = mpz_sgn(r) == 0;
  o.tie = odd && whole;
  o.exact = !odd && whole && top <= f.emax;
  // Distance to the nearest odd integer, below 2^-19 (2^-20 ulp): r / d itself, or 1 - r / d.
  if (!whole) {
    if (!odd) mpz_sub(r, d, r);
    mpz_mul_2exp(r, r, 19);
    o.near_tie = mpz_cmp(r, d) < 0;
  }
  if (capped == f.emax) {  // the threshold is 2^(precision+1) - 1
    mpz_t limit;
    mpz_init_set_ui(limit, 1);
    mpz_mul_2exp(limit, limit, static_cast<mp_bitcnt_t>(f.precision + 1));
    mpz_sub_ui(limit, limit, 1);
    o.overflow = mpz_cmp(q, limit) >= 0;
    mpz_sub(limit, limit, q);
    o.border = mpz_cmpabs_ui(limit, 4) <= 0;
    mpz_clear(limit);
  }
  if (o.overflow && top > f.emax) o.tie = o.near_tie = false;
  mpz_clears(n, d, q, r, nullptr);
  return o;
}

}  // namespace repdl::reference
