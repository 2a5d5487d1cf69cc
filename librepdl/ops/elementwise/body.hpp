// The numerics of the elementwise operations: body<Op>::eval(x, ...) for operands of one format, bool where the row says so, and
// body<Op>::eval(x, ..., parameters) where the row has options.
//
// A body is plain branch-free scalar code for host and device: the compiler vectorises it in the CPU loop, and it is
// the thread's code in the CUDA loop. Compile with -fno-math-errno -fno-trapping-math beside the flags in platform.hpp.
#pragma once

#include <utility>

#include "librepdl/num/eft.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/num/formula.hpp"
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
    bool has_values = false;
    for (const ops::real_option& o : Op::row.options.all) has_values |= o.kind == ops::VALUE || o.kind == ops::UPPER;
    return Op::row.proof != ops::proof_kind::select && !has_values;
  }
}

// Whether many calls of Op, one for each tensor of a list, can be one launch on CUDA: arithmetic, and what else optimisers do to lists,
// whose body has a member of this name.
template <class Op>
consteval bool in_lists() {
  if constexpr (requires { body<Op>::in_lists; }) return body<Op>::in_lists;
  return Op::row.proof == ops::proof_kind::ieee;
}

// The options of a call, in the order of the row.
struct parameters {
  double value[ops::option_list::most];
};

// Those for which a body has a shorter eval that takes them as this type, for the CPU's loops: of N from 1 to
// body<Op>::short_forms the one that body<Op>::short_form(p) says, if it is not 0.
template <int N>
struct short_parameters : parameters {};

// A boolean operand in memory: a byte, true unless it is 0. Everything else is what it is.
template <class T>
using stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
template <class T>
REPDL_HD const T& load(const T& x) {
  return x;
}
REPDL_HD bool load(const std::uint8_t& x) { return x != 0; }

// A body of one operand may have two functions instead of eval: quick gives {value, decided}, and careful what quick leaves
// undecided, for whole blocks in the CPU's loop; so careful is right for every operand, and both are branch-free. Beside eval, quick is
// for the CPU's loops alone, and eval decides what it leaves undecided.
template <class T>
struct tentative {
  T value;  // meaningless unless decided
  bool decided;
};
template <class T>
REPDL_HD std::uint32_t undecided_mark(const tentative<T>& t) {
  return t.decided ? 0 : 1;
}
// Of unpacked operands it may be {value, undecided}, undecided 0 where it is decided: decided_value (certify_between) where midpoints are
// left undecided, the same as this where they may be decided.
template <class T>
struct undecided_value {
  T value;
  std::uint32_t undecided;
};
template <class T>
REPDL_HD std::uint32_t undecided_mark(const undecided_value<T>& t) {
  return t.undecided;
}
template <class T>
REPDL_HD std::uint32_t undecided_mark(const decided_value<T>& t) {
  if constexpr (is_unpacked<T>) {
    return t.undecided;
  } else {
    return t.decided ? 0 : 1;
  }
}
template <class Op, class T>
concept has_quick_body = requires(T x) {
  body<Op>::quick(x);
  body<Op>::careful(x);
};

// f.template operator()<0, ..., n - 1>(): for operands.
template <int n, class F>
REPDL_HD constexpr decltype(auto) with_places(const F& f) {
  return [&]<int... K>(std::integer_sequence<int, K...>)->decltype(auto) { return f.template operator()<K...>(); }
  (std::make_integer_sequence<int, n>());
}

// Binary64, where body<Op> has no arithmetic for it (binary64.hpp): eval, exact, and lanes, eval for the CPU's registers.
template <class Op>
struct body64;
template <class Op>
concept has_body64 = requires {
  sizeof(body64<Op>);
};
template <class Op, class... A>
inline constexpr bool takes_body64 = false;
template <class Op, class... A>
inline constexpr bool takes_body64<Op, double, A...> = has_body64<Op>;

// Below A are the operands of an operation, and behind them nothing or the parameters.

// quick, where there is one; and careful, or eval where there is none.
template <class Op, class... A>
requires(!takes_body64<Op, A...> && requires(const A&... a) { body<Op>::quick(a...); }) REPDL_HD
    auto evaluate_quickly(const A&... a) {
  return body<Op>::quick(a...);
}

// The body, where it takes them.
template <class Op, class... A>
requires(!takes_body64<Op, A...> && requires(const A&... a) { body<Op>::eval(a...); }) REPDL_HD
    auto evaluate(const A&... a) {
  return body<Op>::eval(a...);
}
template <class Op, class... A>
requires(takes_body64<Op, A...>&& requires(const A&... a) { body64<Op>::eval(a...); }) REPDL_HD
    auto evaluate(const A&... a) {
  return body64<Op>::eval(a...);
}
template <class Op, class T>
requires(!takes_body64<Op, T> && has_quick_body<Op, T>) REPDL_HD T evaluate(const T& x) {
  const tentative<T> r = body<Op>::quick(x);
  return r.decided ? r.value : body<Op>::careful(x);
}
template <class Op, class T, class... A>
REPDL_HD auto evaluate_carefully(const T& x, const A&... a) {
  if constexpr (!takes_body64<Op, T> && has_quick_body<Op, T>) {
    return body<Op>::careful(x);
  } else {
    return evaluate<Op>(x, a...);
  }
}

// Where a rounding test decides, eval gives {value, decided}, and body<Op>::exact decides what it leaves undecided: from what eval
// takes, and the bits of the last tier.
template <class Op, class... A>
requires(!takes_body64<Op, A...> && requires(const A&... a) { body<Op>::exact(a..., 0); }) REPDL_HD
    auto evaluate_exactly(int last_tier_bits, const A&... a) {
  return body<Op>::exact(a..., last_tier_bits);
}
template <class Op, class... A>
requires(takes_body64<Op, A...>&& requires(const A&... a) { body64<Op>::exact(0, a...); }) REPDL_HD
    auto evaluate_exactly(int last_tier_bits, const A&... a) {
  return body64<Op>::exact(last_tier_bits, a...);
}

template <class Op, class... A>
concept evaluates = requires(const A&... a) {
  evaluate<Op>(a...);
};
template <class Op, class... A>
concept evaluates_exactly = requires(const A&... a) {
  evaluate_exactly<Op>(0, a...);
};
template <class Op, class T, class Places, class... P>
struct body_of;
template <class Op, class T, int... K, class... P>
struct body_of<Op, T, std::integer_sequence<int, K...>, P...> {
  static constexpr bool exists = evaluates<Op, ops::operand_of<Op, T, K>..., P...>;
  static constexpr bool is_exact = evaluates_exactly<Op, ops::operand_of<Op, T, K>..., P...>;
};
template <class Op, class T, class Places, class... P>
struct body_result;
template <class Op, class T, int... K, class... P>
struct body_result<Op, T, std::integer_sequence<int, K...>, P...> {
  using type = decltype(evaluate<Op>(std::declval<ops::operand_of<Op, T, K>>()..., std::declval<P>()...));
};
template <class Op, class T, class... P>
using result_of_body = typename body_result<Op, T, std::make_integer_sequence<int, Op::arity>, P...>::type;
template <class Op, class T, class... P>
concept has_body = body_of<Op, T, std::make_integer_sequence<int, Op::arity>, P...>::exists;
template <class Op, class T, class... P>
concept has_exact_body = body_of<Op, T, std::make_integer_sequence<int, Op::arity>, P...>::is_exact;

// Whether there is something between the first tier and the last one: rational(x...), for numbers of few bits.
template <class Op>
concept has_rational_body = requires(bf16 x) {
  body<Op>::rational(x, x, x);
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
