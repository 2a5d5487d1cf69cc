#include "reference/numbers/format.hpp"

#include <bit>
#include <iterator>
#include <stdexcept>
#include <string>

namespace repdl::reference {
namespace {

constexpr format formats[] = {
#define REPDL_FLOAT(id, number, type, name, python, dlpack, ...) {8 * sizeof(type), __VA_ARGS__},
#define REPDL_INTEGER(...) {},
#include "librepdl/formats.def"
};
constexpr std::string_view names[] = {
#define REPDL_TYPE(id, number, type, name, ...) name,
#include "librepdl/formats.def"
};

number widen_integer(dtype t, std::uint64_t bits) {
  number n;
  if (t == dtype::boolean) {
    n.significand = bits != 0 ? 1 : 0;
  } else {
    const std::int64_t v = t == dtype::i32 ? static_cast<std::int32_t>(bits) : static_cast<std::int64_t>(bits);
    n.negative = v < 0;
    n.significand = v < 0 ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
  }
  if (n.significand != 0) n.kind = number_kind::finite;
  return n;
}

std::uint64_t integer(dtype t, const number& n) {
  if (n.kind == number_kind::nan) return 0;
  const int width = static_cast<int>(8 * size_of(t));
  const std::uint64_t limit = (std::uint64_t{1} << (width - 1)) - (n.negative ? 0 : 1);
  std::uint64_t m = n.significand;
  if (n.kind == number_kind::infinite || 64 - std::countl_zero(m) + n.exponent > 64) {
    m = limit;
  } else {
    m = n.exponent >= 0 ? m << n.exponent : n.exponent > -64 ? m >> -n.exponent : 0;
    if (m > limit) m = limit;
  }
  return (n.negative ? 0 - m : m) & (~std::uint64_t{0} >> (64 - width));
}

}  // namespace

const format& format_of(dtype t) {
  const format& f = formats[static_cast<unsigned>(t)];
  if (f.width == 0) throw std::invalid_argument("reference: not a floating-point format");
  return f;
}

bool is_floating(dtype t) { return formats[static_cast<unsigned>(t)].width != 0; }

std::string_view format_name(dtype t) { return names[static_cast<unsigned>(t)]; }

dtype format_named(std::string_view name) {
  for (unsigned i = 0; i < std::size(names); ++i)
    if (names[i] == name) return static_cast<dtype>(i);
  throw std::invalid_argument("reference: no format is named " + std::string(name));
}

std::uint64_t nan_bits(dtype t) { return format_of(t).nan(); }
std::uint64_t infinity_bits(dtype t, bool negative) {
  const format& f = format_of(t);
  return f.has_infinities ? f.infinity() | zero_bits(t, negative) : f.nan();
}
std::uint64_t zero_bits(dtype t, bool negative) { return negative ? format_of(t).sign_bit() : 0; }

number widen(dtype t, std::uint64_t bits) {
  if (!is_floating(t)) return widen_integer(t, bits);
  const format& f = format_of(t);
  number n;
  n.negative = (bits & f.sign_bit()) != 0;
  const std::uint64_t magnitude = bits & (f.sign_bit() - 1);
  if (magnitude == 0) return n;
  if (magnitude >= f.infinity()) {
    n.kind = magnitude < f.first_nan() ? number_kind::infinite : number_kind::nan;
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
  if (top > f.emax) return infinity_bits(t, negative);
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
  m += static_cast<std::uint64_t>(biased) << (f.precision - 1);
  return m > f.largest() ? infinity_bits(t, negative) : sign | m;
}

std::uint64_t convert(dtype from, dtype to, std::uint64_t bits, bool saturate) {
  const number n = widen(from, bits);
  if (to == dtype::boolean) return n.kind == number_kind::zero ? 0 : 1;
  if (from == to) return bits;
  if (!is_floating(to)) return integer(to, n);
  const std::uint64_t largest = zero_bits(to, n.negative) | format_of(to).largest();
  switch (n.kind) {
    case number_kind::nan:
      return nan_bits(to);
    case number_kind::infinite:
      return saturate ? largest : infinity_bits(to, n.negative);
    case number_kind::zero:
    case number_kind::finite:
      break;
  }
  const std::uint64_t rounded = round(to, n.negative, n.significand, n.exponent, false);
  return saturate && (rounded & (format_of(to).sign_bit() - 1)) > format_of(to).largest() ? largest : rounded;
}

std::int64_t order_key(dtype t, std::uint64_t bits) {
  if (!is_floating(t)) {
    const number n = widen_integer(t, bits);
    return static_cast<std::int64_t>(n.negative ? 0 - n.significand : n.significand);
  }
  const format& f = format_of(t);
  const auto magnitude = static_cast<std::int64_t>(bits & (f.sign_bit() - 1));
  return (bits & f.sign_bit()) != 0 ? -magnitude - 1 : magnitude;
}

}  // namespace repdl::reference
