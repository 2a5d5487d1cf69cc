#!/usr/bin/env python3
# Writes librepdl/num/multi_limb_constants.hpp: ln 2 and pi / 4 to 33 limbs of 64 bits, and 2 / pi to 53, truncated.
#
#   ln 2 = 18 artanh(1/26) - 2 artanh(1/4801) + 8 artanh(1/8749)     (x^2 - 1 smooth for 26, 4801, 8749)
#   pi/4 = 4 arctan(1/5) - arctan(1/239)                              (Machin)
#
# Integers in units of 2^-(64 * 54). Each series has at most 2000 terms, each truncated twice, so the sums are off by less than 2^20
# units, and 2 / pi, the quotient of 1 by twice pi / 4, by less than 2^21; the script refuses to write when that could touch the last limb that it prints.
# A second pair of formulas (Euler's and the plain artanh(1/3)) must agree.
#
#   python3 reference/gen/multi_limb_constants.py > librepdl/num/multi_limb_constants.hpp
LIMBS = 54
ONE = 1 << (64 * LIMBS)


def series(q, alternating):
    """artanh(1/q), or arctan(1/q)."""
    power, k, total = ONE // q, 0, 0
    while power:
        term = power // (2 * k + 1)
        total += -term if alternating and k % 2 else term
        power //= q * q
        k += 1
    return total


def words(count, value, check):
    """The first `count` limbs of a fraction, five to a line."""
    guard = 64 * (LIMBS - count)
    assert abs(value - check) < 1 << 21
    assert 1 << 21 < value % (1 << guard) < (1 << guard) - (1 << 21)
    value >>= guard
    all = [value >> (64 * i) & (2**64 - 1) for i in reversed(range(count))]
    lines = ["      " + " ".join(f"0x{w:016x}," for w in all[i : i + 5]) for i in range(0, count, 5)]
    return "\n".join(lines).rstrip(",")


def limbs(name, text, value, check):
    return f"""// {text}
template <int N>
REPDL_HD fraction<N> {name}_fraction() {{
  static_assert(N <= constant_limbs);
  constexpr std::uint64_t table[constant_limbs] = {{
{words(33, value, check)}}};
  fraction<N> a;
  for (int i = 0; i < N; ++i) a.limb[N - 1 - i] = table[i];
  return a;
}}
"""


ln2 = 18 * series(26, False) - 2 * series(4801, False) + 8 * series(8749, False)
pi4 = 4 * series(5, True) - series(239, True)
pi4_check = series(2, True) + series(3, True)
turns = words(53, ONE * ONE // (2 * pi4), ONE * ONE // (2 * pi4_check))
print(
    f"""// Made by reference/gen/multi_limb_constants.py; do not edit.
//
// The tables are local to the functions: nothing here has linkage, and device code can index them.
#pragma once

#include "librepdl/num/multi_limb.hpp"

namespace repdl::num {{
inline namespace REPDL_ISA {{

inline constexpr int constant_limbs = 33;

{limbs("ln2", "ln 2, truncated to N limbs.", ln2, 2 * series(3, False))}
{limbs("quarter_pi", "pi / 4, truncated to N limbs.", pi4, pi4_check)}
// 2 / pi, truncated to 53 limbs: the one that is i-th from the point.
REPDL_HD std::uint64_t two_over_pi_limb(int i) {{
  constexpr std::uint64_t table[53] = {{
{turns}}};
  return table[i];
}}

}}  // namespace REPDL_ISA
}}  // namespace repdl::num"""
)
