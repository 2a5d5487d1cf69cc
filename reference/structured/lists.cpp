// total_norm and clip_grad_norm (contract, section 4): exact sums as rational numbers, and what has a root that is none as intervals.
#include <cmath>
#include <stdexcept>

#include "reference/attributes.hpp"
#include "reference/elementwise/elementwise.hpp"
#include "reference/numbers/real.hpp"
#include "reference/structured/structured.hpp"

namespace repdl::reference {
namespace {

/// N = size, or sqrt(size) where `is_root`; or what it is instead.
struct list_norm {
  bool nan = false, infinite = false, is_root = false;
  mpq_class size = 0;
};

list_norm norm_of(const std::vector<array>& in, double p) {
  list_norm n;
  for (const array& a : in) {
    if (a.type != in[0].type) throw std::invalid_argument("reference::total_norm: formats");
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.count()); ++i) {
      const extended x(a.type, a.get(i));
      n.nan |= x.is_nan();
      n.infinite |= x.is_infinite();
      if (x.is_nan() || x.is_infinite() || x.is_zero()) continue;
      const mpq_class v = abs(rational(a.type, a.get(i)));
      if (p == 2) {
        n.size += v * v;
      } else if (p == 1) {
        n.size += v;
      } else if (p == HUGE_VAL) {
        n.size = std::max(n.size, v);
      } else {
        throw std::invalid_argument("reference::total_norm: p");
      }
    }
  }
  if (p != 2) return n;
  // The root of a rational number is one, or irrational.
  n.is_root = mpz_perfect_square_p(n.size.get_num_mpz_t()) == 0 || mpz_perfect_square_p(n.size.get_den_mpz_t()) == 0;
  if (!n.is_root) n.size = mpq_class(sqrt(n.size.get_num()), sqrt(n.size.get_den()));
  return n;
}

array rounded(const list_norm& n, dtype type, outcomes* where) {
  array out(type, {});
  outcome at{};
  if (n.nan || n.infinite) {
    out.set(0, n.nan ? nan_bits(type) : infinity_bits(type, false));
    at = outcome_of_pattern(type, out.get(0));
  } else if (n.is_root) {
    out.set(0, decide(
                   type, [&](mpfr_prec_t bits) { return sqrt(interval(bits, n.size)); }, &at));
  } else {
    out.set(0, round_exact(type, n.size, &at));
  }
  if (where != nullptr) where->push_back(at);
  return out;
}

/// min(1, c / (N + 10^-6)) of a finite N.
struct factor {
  double c;
  list_norm n;
  mpq_class small{1, 1000000};
  bool is_one() const {
    if (std::isinf(c)) return true;
    const mpq_class rest = rational(c) - small;  // >= N?
    return rest >= 0 && (n.is_root ? rest * rest >= n.size : rest >= n.size);
  }
  std::uint64_t times(dtype type, const mpq_class& g, outcome* at) const {
    if (is_one()) return round_exact(type, g, at);
    if (!n.is_root) return round_exact(type, g * rational(c) / (n.size + small), at);
    const auto f = [&](mpfr_prec_t bits) {
      return interval(bits, mpq_class(g * rational(c))) / (sqrt(interval(bits, n.size)) + interval(bits, small));
    };
    return decide(type, f, at);
  }
};

}  // namespace

std::vector<array> total_norm(const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  return {rounded(norm_of(in, attribute_or(attrs, "p", 2.0)), in.empty() ? dtype::f32 : in[0].type, where)};
}

std::vector<array> clip_grad_norm(const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  const list_norm n = norm_of(in, attribute_or(attrs, "p", 2.0));
  const factor f{attribute_or(attrs, "max_norm", 1.0), n};
  const bool vanishes = n.infinite || f.c == 0;
  std::vector<array> out;
  for (const array& a : in) {
    array& y = out.emplace_back(a.type, a.shape);
    const std::uint64_t sign = format_of(a.type).sign_bit();
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.count()); ++i) {
      const std::uint64_t g = a.get(i);
      const extended x(a.type, g);
      std::uint64_t bits = g & sign;  // a zero
      outcome at{};
      const bool is_nan = n.nan || x.is_infinite();
      const bool is_zero = x.is_zero() || vanishes;
      if (is_nan || is_zero) {
        if (is_nan) bits = nan_bits(a.type);
        at = outcome_of_pattern(a.type, bits);
      } else {
        bits = f.times(a.type, rational(a.type, g), &at);
      }
      y.set(i, bits);
      if (where != nullptr) where->push_back(at);
    }
  }
  out.push_back(rounded(n, in.empty() ? dtype::f32 : in[0].type, where));
  return out;
}

}  // namespace repdl::reference
