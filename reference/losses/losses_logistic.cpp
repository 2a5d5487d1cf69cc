// soft_margin_loss and its gradient: MPFR intervals around ln(1 + e^-z), beside the exact part max(-z, 0), z = t x.
#include <stdexcept>

#include "reference/attributes.hpp"
#include "reference/losses/loss_element.hpp"

namespace repdl::reference {
namespace {

/// From here on e^-|z| is of no size that counts, only of a sign: below 2^-8000, beside multiples of 2^-2148.
constexpr long far_product = 6000;
constexpr int tiny_power = -8000;

rounded_loss special(dtype t, std::uint64_t bits) { return {bits, outcome_of_pattern(t, bits)}; }

/// a b of finite numbers and infinities, or NaN.
struct product {
  bool nan = false, infinite = false, negative = false;
  mpq_class value;  // of a finite one
  product(dtype t, std::uint64_t a_bits, std::uint64_t b_bits) {
    constexpr number_kind zero = number_kind::zero;
    const number a = widen(t, a_bits), b = widen(t, b_bits);
    negative = a.negative != b.negative;
    infinite = a.kind == number_kind::infinite || b.kind == number_kind::infinite;
    nan = a.kind == number_kind::nan || b.kind == number_kind::nan || (infinite && (a.kind == zero || b.kind == zero));
    if (!nan && !infinite) value = rational(t, a_bits) * rational(t, b_bits);
  }
};

/// Losses added up: their exact parts, those whose logarithm is evaluated, and whether there are others.
struct total {
  bool nan = false, infinite = false, tiny = false;
  mpq_class part;
  std::vector<mpq_class> near;

  void add(dtype t, std::uint64_t x, std::uint64_t target) {
    const product z(t, target, x);
    nan = nan || z.nan;
    if (z.nan) return;
    if (z.infinite) {
      infinite = infinite || z.negative;
      return;
    }
    if (z.value < 0) part -= z.value;
    if (abs(z.value) > far_product) {
      tiny = true;
    } else {
      near.push_back(abs(z.value));
    }
  }
  rounded_loss over(dtype t, std::int64_t count) const {
    if (nan) return special(t, nan_bits(t));
    if (infinite) return special(t, infinity_bits(t, false));
    rounded_loss r{};
    const mpq_class n(mpz_class(static_cast<long>(count)));
    if (!near.empty()) {
      r.bits = decide(
          t,
          [&](mpfr_prec_t p) {
            interval sum(p, part);
            for (const mpq_class& d : near) sum = sum + log1p(exp(-interval(p, d)));
            if (tiny) sum = sum + log1p(exp(interval(p, mpq_class(-far_product))));  // more than they are
            return sum / interval(p, n);
          },
          &r.where);
    } else if (tiny) {
      r.bits = round_beside(t, (part + power_of_two(tiny_power)) / n, part / n, &r.where);
    } else {
      r.bits = round_exact(t, part / n, &r.where);
    }
    return r;
  }
};

/// -g t / (1 + e^z) / n.
rounded_loss gradient(dtype t, std::uint64_t g, std::uint64_t x, std::uint64_t target, std::int64_t count) {
  const product z(t, target, x), gt(t, g, target);
  if (z.nan || gt.nan) return special(t, nan_bits(t));
  const bool negative = !gt.negative;
  const mpq_class n(mpz_class(static_cast<long>(count)));
  const bool beyond = z.infinite && !z.negative;  // the factor is 0
  if (gt.infinite) return special(t, beyond ? nan_bits(t) : infinity_bits(t, negative));
  if (gt.value == 0 || beyond) return special(t, zero_bits(t, negative));
  const mpq_class whole = -gt.value / n;
  const mpq_class toward = power_of_two(tiny_power) * (negative ? -1 : 1) / n;
  rounded_loss r{};
  if (z.infinite) {
    r.bits = round_exact(t, whole, &r.where);
  } else if (z.value == 0) {
    r.bits = round_exact(t, whole / 2, &r.where);
  } else if (z.value > far_product) {
    r.bits = round_beside(t, toward, 0, &r.where);
  } else if (z.value < -far_product) {
    r.bits = round_beside(t, whole - toward, whole, &r.where);
  } else {
    r.bits = decide(
        t, [&](mpfr_prec_t p) { return interval(p, whole) / (interval(p, mpq_class(1)) + exp(interval(p, z.value))); },
        &r.where);
  }
  return r;
}

}  // namespace

std::uint64_t soft_margin_element(std::string_view op, dtype t, const std::uint64_t* in, std::int64_t n,
                                  outcome* where) {
  rounded_loss r{};
  if (op.ends_with("_backward")) {
    r = gradient(t, in[0], in[1], in[2], n);
  } else {
    total one;
    one.add(t, in[0], in[1]);
    r = one.over(t, n);
  }
  if (where != nullptr) *where = r.where;
  return r.bits;
}

array soft_margin_loss(const array& x, const array& t, const attributes& attrs, outcomes* where) {
  const auto reduction = attribute_or<std::string>(attrs, "reduction", "mean");
  const shape_list shape = broadcast_shape(x.shape, t.shape);
  const std::int64_t n = count_of(shape);
  array out(x.type, reduction == "none" ? shape : shape_list{});
  const auto put = [&](std::int64_t at, const rounded_loss& r) {
    out.set(index(at), r.bits);
    if (where != nullptr) where->push_back(r.where);
  };
  total all;
  for (std::int64_t i = 0; i < n; ++i) {
    all.add(x.type, x.get(index(broadcast_index(x.shape, shape, i))), t.get(index(broadcast_index(t.shape, shape, i))));
    if (reduction != "none") continue;
    put(i, all.over(x.type, 1));
    all = {};
  }
  if (reduction == "none") return out;
  if (n == 0) {
    put(0, special(x.type, reduction == "mean" ? nan_bits(x.type) : zero_bits(x.type, false)));
  } else {
    put(0, all.over(x.type, reduction == "mean" ? n : 1));
  }
  return out;
}

array soft_margin_loss_backward(const array& g, const array& x, const array& t, const attributes& attrs,
                                outcomes* where) {
  const auto reduction = attribute_or<std::string>(attrs, "reduction", "mean");
  const shape_list shape = broadcast_shape(x.shape, t.shape);
  if (g.shape != (reduction == "none" ? shape : shape_list{})) throw std::invalid_argument("reference: g of a loss");
  const std::int64_t n = count_of(shape);
  array out(x.type, shape);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto of = [&](const array& a) { return a.get(index(broadcast_index(a.shape, shape, i))); };
    const rounded_loss r = gradient(x.type, of(g), of(x), of(t), reduction == "mean" ? n : 1);
    out.set(index(i), r.bits);
    if (where != nullptr) where->push_back(r.where);
  }
  return out;
}

}  // namespace repdl::reference
