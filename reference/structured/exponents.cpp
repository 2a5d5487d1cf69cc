// ldexp and frexp: significands as integers, rounded once.
#include <algorithm>
#include <bit>

#include "reference/numbers/integer.hpp"
#include "reference/numbers/real.hpp"
#include "reference/structured/structured.hpp"

namespace repdl::reference {
namespace {

/// x, whose NaN is the canonical one.
std::uint64_t as_it_is(dtype t, std::uint64_t x) { return widen(t, x).kind == number_kind::nan ? nan_bits(t) : x; }

/// An exponent. Beyond 5000 every number of a format is infinite, or 0.
std::int64_t exponent_of(dtype t, std::uint64_t bits) {
  const mpz_class most = 5000, n = integer_of(t, bits);
  return mpz_class(std::clamp(n, mpz_class(-most), most)).get_si();
}

}  // namespace

array ldexp(const array& x, const array& n, outcomes* where) {
  const dtype t = x.type;
  const shape_list shape = broadcast_shape(x.shape, n.shape);
  array out(t, shape);
  for (std::int64_t i = 0; i < out.count(); ++i) {
    const std::uint64_t bits = x.get(index(broadcast_index(x.shape, shape, i)));
    const number v = widen(t, bits);
    if (v.kind != number_kind::finite) {
      out.set(index(i), as_it_is(t, bits));
      if (where != nullptr) where->push_back(outcome_of_pattern(t, bits));
      continue;
    }
    const std::int64_t exponent = v.exponent + exponent_of(n.type, n.get(index(broadcast_index(n.shape, shape, i))));
    out.set(index(i), round(t, v.negative, v.significand, exponent, false));
    if (where != nullptr) {
      const mpz_class m = (v.negative ? -1 : 1) * mpz_class(v.significand), one = 1;
      where->push_back(locate(t, m.get_mpz_t(), one.get_mpz_t(), exponent));
    }
  }
  return out;
}

std::vector<array> frexp(const array& x) {
  const dtype t = x.type;
  array significand(t, x.shape), exponent(dtype::i32, x.shape);
  for (std::size_t i = 0; i < index(x.count()); ++i) {
    const number v = widen(t, x.get(i));
    if (v.kind != number_kind::finite) {
      significand.set(i, as_it_is(t, x.get(i)));
      continue;
    }
    const int length = static_cast<int>(std::bit_width(v.significand));
    significand.set(i, round(t, v.negative, v.significand, -length, false));
    exponent.set(i, static_cast<std::uint32_t>(v.exponent + length));
  }
  return {significand, exponent};
}

}  // namespace repdl::reference
