// What the oracles of losses share: elements of the reals with infinities, their operands and results.
#pragma once

#include "reference/numbers/real.hpp"
#include "reference/structured/structured.hpp"

namespace repdl::reference {

/// A result, and where its exact value lies.
struct rounded_loss {
  std::uint64_t bits;
  outcome where;
};

/// An element of the reals with infinities, or NaN. A zero has a sign.
struct element {
  number_kind kind = number_kind::zero;
  bool negative = false;
  mpq_class value;  // of a finite one

  static element nan() { return {number_kind::nan, false, {}}; }
  static element infinity(bool negative) { return {number_kind::infinite, negative, {}}; }
  static element zero(bool negative = false) { return {number_kind::zero, negative, {}}; }
  /// An exact zero is +0.
  static element of(const mpq_class& v) { return v == 0 ? zero() : element{number_kind::finite, v < 0, v}; }
  static element of(dtype t, std::uint64_t bits) {
    const number n = widen(t, bits);
    return {n.kind, n.negative, n.kind == number_kind::finite ? rational(t, bits) : mpq_class()};
  }
  bool is(number_kind k) const { return kind == k; }
  bool is_number() const { return kind == number_kind::zero || kind == number_kind::finite; }
};

inline element negated(element a) {
  a.negative = !a.negative;
  a.value = -a.value;
  return a;
}
inline element times(const element& a, const element& b) {
  using enum number_kind;
  const bool any_zero = a.is(zero) || b.is(zero), any_infinite = a.is(infinite) || b.is(infinite);
  const bool negative = a.negative != b.negative;
  if (a.is(nan) || b.is(nan) || (any_zero && any_infinite)) return element::nan();
  if (any_infinite) return element::infinity(negative);
  if (any_zero) return element::zero(negative);
  return element::of(a.value * b.value);
}
/// Exact; inf - inf is NaN, an exact zero is +0.
inline element plus(const element& a, const element& b) {
  using enum number_kind;
  if (a.is(nan) || b.is(nan) || (a.is(infinite) && b.is(infinite) && a.negative != b.negative)) return element::nan();
  if (a.is(infinite)) return a;
  if (b.is(infinite)) return b;
  return element::of(a.value + b.value);
}
/// By a positive number.
inline element scaled(element a, const mpq_class& by) {
  a.value *= by;
  return a;
}
/// x - t.
inline element difference(const element& x, const element& t) { return plus(x, negated(t)); }

inline void put(array& out, std::size_t at, const element& v, outcomes* where) {
  outcome o;
  std::uint64_t bits = 0;
  switch (v.kind) {
    case number_kind::finite:
      bits = round_exact(out.type, v.value, &o);
      break;
    case number_kind::zero:
      bits = zero_bits(out.type, v.negative);
      break;
    case number_kind::infinite:
      bits = infinity_bits(out.type, v.negative);
      break;
    case number_kind::nan:
      bits = nan_bits(out.type);
  }
  if (v.kind != number_kind::finite) o = outcome_of_pattern(out.type, bits);
  out.set(at, bits);
  if (where != nullptr) where->push_back(o);
}

inline element operand(const array& a, const shape_list& shape, std::int64_t i) {
  return element::of(a.type, a.get(index(broadcast_index(a.shape, shape, i))));
}

}  // namespace repdl::reference
