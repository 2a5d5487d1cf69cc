#!/usr/bin/env python3
# Writes librepdl/num/dd_constants.hpp: the constants of the functions in double-double, as pairs hi + lo with hi = RN(c), lo = RN(c - hi),
# or in parts of few bits, truncated, whose products with small whole numbers are exact.
#
#   python3 reference/gen/dd_constants.py > librepdl/num/dd_constants.hpp
from fractions import Fraction
from math import factorial, isqrt

BITS = 400
ONE = 1 << BITS


def series(q, alternating):
    """artanh(1/q), or arctan(1/q), for a rational q, in units of 2^-BITS, off by less than 2^12 of them."""
    z = 1 / Fraction(q)
    power, k, total = z, 0, 0
    while abs(power) * ONE >= 1:
        term = int(power * ONE) // (2 * k + 1)
        total += -term if alternating and k % 2 else term
        power = Fraction(int(power * z * z * ONE), ONE)
        k += 1
    return Fraction(total, ONE)


ln2 = 18 * series(26, False) - 2 * series(4801, False) + 8 * series(8749, False)
ln10 = 2 * (series(3, False) * 3 + series(9, False))  # 10 = 2^3 (5/4), artanh(1/9) = ln(5/4) / 2, artanh(1/3) = ln(2) / 2
pi = 16 * series(5, True) - 4 * series(239, True)


def root(x):
    """sqrt of a fraction."""
    return Fraction(isqrt(int(x * ONE * ONE)), ONE)


def double(x):
    return float(x)  # a fraction's, rounded to nearest


def hexadecimal(x):
    return x.hex().replace("0x1.0000000000000p", "0x1p") if x else "0"


def pair(x):
    hi = double(x)
    return f"{{{hexadecimal(hi)}, {hexadecimal(double(x - Fraction(hi)))}}}"


def parts(x, *bits):
    """Truncated to so many bits each, the last one rounded."""
    out = []
    for b in bits:
        if b == 53:
            out.append(double(x))
        else:
            scale = 1
            while x * scale < 2 ** (b - 1):
                scale *= 2
            out.append(double(Fraction(int(x * scale), scale)))
        x -= Fraction(out[-1])
    return out


lines = []


def say(name, value, text):
    lines.append(f"inline constexpr dd {name} = {pair(value)};  // {text}")


say("dd_ln2", ln2, "ln 2")
say("dd_log2_e", 1 / ln2, "1 / ln 2")
say("dd_log10_e", 1 / ln10, "1 / ln 10")
say("dd_log10_2", ln2 / ln10, "log10 2")
say("dd_ln10", ln10, "ln 10")
say("dd_half_pi", pi / 2, "pi / 2")
say("dd_inverse_root_2", root(Fraction(1, 2)), "1 / sqrt 2")
say("dd_two_over_root_pi", 2 / root(pi), "2 / sqrt pi")
say("dd_half_root_pi", root(pi) / 2, "sqrt(pi) / 2")
say("dd_root_2_pi", root(2 * pi), "sqrt(2 pi)")
say("dd_inverse_root_2_pi", 1 / root(2 * pi), "1 / sqrt(2 pi)")
say("dd_root_2_over_pi", root(2 / pi), "sqrt(2 / pi)")
selu_scale = Fraction("1.0507009873554804934193349852946")
selu_alpha = Fraction("1.6732632423543772848170429916717")
say("dd_selu_scale", selu_scale, "s of selu")
say("dd_selu_scale_alpha", selu_scale * selu_alpha, "s a of selu")
say("dd_inverse_840", Fraction(1, 840), "1 / 840")
for name, value, text, bits in (
    ("ln2", ln2, "ln 2", (42, 42, 53)),
    ("ln2_256th", ln2 / 256, "ln 2 / 256", (34, 34, 53)),
    ("half_pi", pi / 2, "pi / 2", (29, 29, 29, 53)),
):
    values = ", ".join(hexadecimal(v) for v in parts(value, *bits))
    sizes = ", ".join(str(b) for b in bits)
    lines.append(f"inline constexpr double {name}_parts[] = {{{values}}};  // {text} in {sizes} bits")


def say_table(name, type, values, text):
    """A function of a constant index: its table is local, so that device code can use it."""
    table = ",\n                            ".join(values)
    lines.append(
        f"""// {text}
template <int N>
REPDL_HD constexpr {type} {name}() {{
  constexpr {type} table[] = {{{table}}};
  return table[N];
}}"""
    )


centers = (Fraction(0), series(4, True), series(2, True), series(Fraction(16, 13), True))
say_table("dd_arctan", "dd", [pair(v) for v in centers], "arctan 0, arctan 1/4, arctan 1/2, arctan 13/16")
say_table("dd_odd_inverse", "dd", [pair(Fraction(1, 2 * n + 1)) for n in range(8)], "1 / (2 N + 1)")
say_table("dd_inverse_factorial", "dd", [pair(Fraction(1, factorial(n))) for n in range(11)], "1 / N!")
values = [hexadecimal(double(Fraction(1, factorial(n)))) for n in range(24)]
say_table("inverse_factorial", "double", values, "RN(1 / N!)")
body = "\n".join(lines)
print(
    f"""// Made by reference/gen/dd_constants.py; do not edit.
#pragma once

#include "librepdl/num/eft.hpp"

namespace repdl::num {{
inline namespace REPDL_ISA {{

// clang-format off
{body}
// clang-format on

}}  // namespace REPDL_ISA
}}  // namespace repdl::num"""
)
