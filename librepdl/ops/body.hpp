// The numerics of the elementwise operations: body<Op>::eval(x, ...) for operands of one format, bool where the row says so, and
// body<Op>::eval(x, ..., parameters) where the row has options.
//
// A body is plain branch-free scalar code for host and device: the compiler vectorises it in the CPU loop, and it is
// the thread's code in the CUDA loop. Compile with -fno-math-errno -fno-trapping-math beside the flags in platform.hpp.
#pragma once

#include "librepdl/num/eft.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/ops/registry.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

template <class Op>
struct body;

// Whether the CPU's loops of f16 and bf16 give the body of Op unpacked operands (format.hpp): all but selections and those that
// compute with options rounded to T, unless the body says otherwise by a member of this name.
template <class Op>
consteval bool takes_unpacked() {
  if constexpr (requires { body<Op>::takes_unpacked; }) {
    return body<Op>::takes_unpacked;
  } else {
    const ops::elementwise_row& row = ops::elementwise_rows[static_cast<int>(Op::id)];
    bool has_values = false;
    for (const ops::real_option& o : row.options.all) has_values |= o.kind == ops::VALUE || o.kind == ops::UPPER;
    return row.proof != ops::proof_kind::select && !has_values;
  }
}

// The options of a call, in the order of the row.
struct parameters {
  double value[ops::option_list::most];
};

// A boolean operand in memory: a byte, true unless it is 0. Everything else is what it is.
template <class T>
using stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
template <class T>
REPDL_HD const T& load(const T& x) {
  return x;
}
REPDL_HD bool load(const std::uint8_t& x) { return x != 0; }

// A body of one operand may have two functions instead of eval: quick gives {value, decided}, and careful what quick leaves
// open, for whole blocks in the CPU's loop; so careful is right for every operand, and both are branch-free.
template <class T>
struct tentative {
  T value;  // meaningless unless decided
  bool decided;
};
template <class Op, class T>
concept has_quick_body = requires(T x) {
  body<Op>::quick(x);
  body<Op>::careful(x);
};

// quick on as many operands as Op has, for unpacked ones; and careful, or eval where there is none.
template <class Op, class T, class... P>
requires(Op::arity == 1 && requires(T x, P... p) { body<Op>::quick(x, p...); }) REPDL_HD
    auto evaluate_quickly(const T& x, const T&, const T&, const P&... p) {
  return body<Op>::quick(x, p...);
}
template <class Op, class T, class... P>
requires(Op::arity == 3 && requires(T x, P... p) { body<Op>::quick(x, x, x, p...); }) REPDL_HD
    auto evaluate_quickly(const T& x, const T& y, const T& z, const P&... p) {
  return body<Op>::quick(x, y, z, p...);
}

// The body on as many operands as it has, where it takes them, and on P: nothing or the parameters.
template <class Op, class X, class Y, class Z, class... P>
requires(Op::arity == 1 && requires(X x, P... p) { body<Op>::eval(x, p...); }) REPDL_HD
    auto evaluate(const X& x, const Y&, const Z&, const P&... p) {
  return body<Op>::eval(x, p...);
}
template <class Op, class X, class Y, class Z, class... P>
requires(Op::arity == 2 && requires(X x, Y y, P... p) { body<Op>::eval(x, y, p...); }) REPDL_HD
    auto evaluate(const X& x, const Y& y, const Z&, const P&... p) {
  return body<Op>::eval(x, y, p...);
}
template <class Op, class X, class Y, class Z, class... P>
requires(Op::arity == 3 && requires(X x, Y y, Z z, P... p) { body<Op>::eval(x, y, z, p...); }) REPDL_HD
    auto evaluate(const X& x, const Y& y, const Z& z, const P&... p) {
  return body<Op>::eval(x, y, z, p...);
}
template <class Op, class T>
requires has_quick_body<Op, T> REPDL_HD T evaluate(const T& x, const T&, const T&) {
  const tentative<T> r = body<Op>::quick(x);
  return r.decided ? r.value : body<Op>::careful(x);
}
template <class Op, class T, class... P>
REPDL_HD T evaluate_carefully(const T& x, const T& y, const T& z, const P&... p) {
  if constexpr (has_quick_body<Op, T>) {
    return body<Op>::careful(x);
  } else {
    return evaluate<Op>(x, y, z, p...);
  }
}
template <class Op, class T, class... P>
concept has_body = requires(ops::operand_of<Op, T, 0> x, ops::operand_of<Op, T, 1> y, ops::operand_of<Op, T, 2> z,
                            P... p) {
  evaluate<Op>(x, y, z, p...);
};

// Where a rounding test decides, eval gives {value, decided}, and body<Op>::exact decides what it leaves open: from what eval
// takes, and the bits of the last tier.
template <class Op, class T, class... P>
requires(Op::arity == 1 && requires(T x, P... p) { body<Op>::exact(x, p..., 0); }) REPDL_HD
    auto evaluate_exactly(int last_tier_bits, const T& x, const T&, const T&, const P&... p) {
  return body<Op>::exact(x, p..., last_tier_bits);
}
template <class Op, class T, class... P>
requires(Op::arity == 2 && requires(T x, P... p) { body<Op>::exact(x, x, p..., 0); }) REPDL_HD
    auto evaluate_exactly(int last_tier_bits, const T& x, const T& y, const T&, const P&... p) {
  return body<Op>::exact(x, y, p..., last_tier_bits);
}
template <class Op, class T, class... P>
requires(Op::arity == 3 && requires(T x, P... p) { body<Op>::exact(x, x, x, p..., 0); }) REPDL_HD
    auto evaluate_exactly(int last_tier_bits, const T& x, const T& y, const T& z, const P&... p) {
  return body<Op>::exact(x, y, z, p..., last_tier_bits);
}
template <class Op, class T, class... P>
concept has_exact_body = requires(T x, P... p) {
  evaluate_exactly<Op>(0, x, x, x, p...);
};

// RO(x + p.hi + p.lo), rounding to odd, for a normalised p and no overflow: the sum is made as in backward.hpp, F - (c + d)
// with F = x; the exact sum is r.hi + r.lo + w.lo. r.hi = 0 only if it is 0 (backward.hpp: t = 0 and v' = 0, then p.lo = 0,
// too): then, and for infinities and NaN, x + p.hi is what IEEE 754 says.
REPDL_HD double add_to_odd(double x, dd p) {
  const dd v = two_sum(x, p.hi);
  const dd w = two_sum(v.lo, p.lo);
  const dd r = two_sum(v.hi, w.hi);
  const double exact = round_to_odd(r.hi, r.lo + w.lo);
  const bool regular = v.hi - v.hi == 0 && r.hi != 0;
  return regular ? exact : v.hi;
}

// RO(a / b), a and b of any 53 bits, a 0 or in [2^-600, 2^600], b in [2^-300, 2^300]: the quotient and the remainder, which is
// exact, 0 or at least 2^-107 |a|, times b for its sign. Infinities and NaN are those of a / b.
REPDL_HD double quotient_to_odd(double a, double b) {
  const double q = a / b;
  const dd p = two_prod(q, b);
  return round_to_odd(q, ((a - p.hi) - p.lo) * b);
}

// RN_T(x + coefficient * y) for numbers of format T; zeros as in x + y: -0 if both terms are -0, else +0.
//
// f64: one instruction, or libm's. Else x, y are 0 or in [2^-149, 2^128), the coefficient 0 or in [2^-200, 2^200], both
// exact in binary64; two_prod: |product| < 2^328, a multiple of 2^-401 (coefficient: of 2^-252).
template <class T>
REPDL_HD T add_product(T x, double coefficient, T y) {
  if constexpr (std::is_same_v<T, double>) {
    return canonical(fma(coefficient, y, x));
  } else {
    return narrow<T>(add_to_odd(widen(x), two_prod(coefficient, widen(y))));
  }
}

// RN_T(a) for a number a: narrow would ask whether it is one.
template <class T>
REPDL_HD T round_number(double a) {
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(a);
  } else {
    return narrow<T>(a);
  }
}

// RN_T(a) for a number a that is no midpoint of T: unpacked, the bit that says so needs no test (format.hpp). What it says of
// infinities is no number.
template <class T>
REPDL_HD T round_no_midpoint(double a) {
  if constexpr (is_unpacked<T>) {
    constexpr std::uint64_t odd = std::uint64_t{1} << 40;
    return {static_cast<float>(double_of((bits_of(a) & ~(odd - 1)) | odd))};
  } else {
    return round_number<T>(a);
  }
}

// x with |x| cut down to `limit`; NaN is cut down, too.
REPDL_HD float clamp_magnitude(float x, float limit) {
  const std::uint32_t b = bits_of(x);
  const std::int32_t magnitude = static_cast<std::int32_t>(b & 0x7fffffff);
  const std::int32_t cap = static_cast<std::int32_t>(bits_of(limit));
  const std::int32_t m = magnitude < cap ? magnitude : cap;
  return float_of(static_cast<std::uint32_t>(m) | (b & 0x80000000));
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
