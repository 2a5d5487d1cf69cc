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
template <class Op, class T, class... P>
concept has_body = requires(ops::operand_of<Op, T, 0> x, ops::operand_of<Op, T, 1> y, ops::operand_of<Op, T, 2> z,
                            P... p) {
  evaluate<Op>(x, y, z, p...);
};

// Whether a rounding test decides: then eval gives {value, decided}, and body<Op>::exact(x, y, bits) what it leaves open.
template <class Op, class T>
concept has_exact_body = requires(T x) {
  body<Op>::exact(x, x, 0);
};

// RN_T(x + coefficient * y) for numbers of format T; zeros as in x + y: -0 if both terms are -0, else +0.
//
// f64: one instruction, or libm's. Else x, y are 0 or in [2^-149, 2^128), the coefficient 0 or in [2^-200, 2^200], both
// exact in binary64, and the sum of x and the product is made as in backward.hpp, F - A B with A = -coefficient:
//   p.hi + p.lo = coefficient y   two_prod: |product| < 2^328, a multiple of 2^-401 (coefficient: of 2^-252)
//   v, w, r                       two_sums without overflow; the exact sum is r.hi + r.lo + w.lo
// r.hi = 0 only if the exact sum is 0 (backward.hpp: t = 0 and v' = 0, then p.lo = 0 too): then, and for infinities and
// NaN, x + p.hi is what IEEE 754 says.
template <class T>
REPDL_HD T add_product(T x, double coefficient, T y) {
  if constexpr (std::is_same_v<T, double>) {
    return canonical(fma(coefficient, y, x));
  } else {
    const double first = widen(x);
    const dd p = two_prod(coefficient, widen(y));
    const dd v = two_sum(first, p.hi);
    const dd w = two_sum(v.lo, p.lo);
    const dd r = two_sum(v.hi, w.hi);
    const double exact = round_to_odd(r.hi, r.lo + w.lo);
    const bool regular = v.hi - v.hi == 0 && r.hi != 0;
    return narrow<T>(regular ? exact : v.hi);
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
