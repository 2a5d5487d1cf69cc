#!/usr/bin/env python3
# Writes librepdl/num/dd_tables.hpp: what e^x, ln x and arctan in double-double are looked up in.
#
#   python3 reference/gen/dd_tables.py > librepdl/num/dd_tables.hpp
import math
from fractions import Fraction
from math import isqrt

BITS = 400
ONE = 1 << BITS


def artanh(z):
    """Within 2^-380."""
    total, power, n = 0, int(z * ONE), 1
    square = int(z * z * ONE)
    while power:
        total += power // n
        power = power * square >> BITS if power > 0 else -(-power * square >> BITS)
        n += 2
    return Fraction(total, ONE)


def log(x):
    return 2 * artanh((x - 1) / (x + 1))


def hexadecimal(x):
    return x.hex().replace("0x1.0000000000000p", "0x1p") if x else "0"


def rows(*columns):
    """Two or one on a line."""
    texts = ["{" + ", ".join(hexadecimal(v) for v in row) + "}" for row in zip(*columns)]
    n = 2 if len(columns) == 2 else 1
    lines = [", ".join(texts[i : i + n]) for i in range(0, len(texts), n)]
    return "{\n    " + ",\n    ".join(lines) + "}"


# 2^((j - 128) / 256), j = 0, ..., 255
step = 2 * ONE
for _ in range(8):
    step = isqrt(step * ONE)
powers, value = [], Fraction(isqrt(ONE * ONE // 2), ONE)
for _ in range(256):
    powers.append(Fraction(round(value * 2**350), 2**350))  # 1 is exact
    value = Fraction(int(value * step), ONE)
exp_hi = [float(p) for p in powers]
exp_lo = [float(p - Fraction(h)) for p, h in zip(powers, exp_hi)]

# Numbers m whose bits, less those of 1 - 2^-9 (151 + 2/3), begin with i: below 1 they are 2^-9 apart, above 2^-8, and 1 is in row 151.
FIRST = (1023 << 52) - (151 << 44) - (2 << 44) // 3


def number(bits):
    return Fraction(2 ** 52 + bits % 2 ** 52, 2 ** 52) * Fraction(2) ** ((bits >> 52) - 1023)


inverse, log_hi, log_lo = [], [], []
for i in range(256):
    low, high = number(FIRST + (i << 44)), number(FIRST + (i + 1 << 44))
    c = 1.0 if i == 151 else float(2 / (low + high))
    inverse.append(c)
    value = -log(Fraction(c))
    hi = Fraction(round(value * 2 ** 42), 2 ** 42)
    log_hi.append(float(hi))
    log_lo.append(float(value - hi))
    assert max(abs(low * Fraction(c) - 1), abs(high * Fraction(c) - 1)) < Fraction(1, 2 ** 9)



def arctan(z):
    """Of z <= 1, within 2^-380, by three halvings of the angle: tan(a/2) = z / (1 + sqrt(1 + z^2))."""
    for _ in range(3):
        root = Fraction(isqrt(int((1 + z * z) * ONE * ONE)), ONE)
        z = Fraction(int(z / (1 + root) * ONE), ONE)
    power, n, total, square = int(z * ONE), 1, 0, int(z * z * ONE)
    while power:
        total += power // n if n % 4 == 1 else -(power // n)
        power = power * square >> BITS
        n += 2
    return Fraction(8 * total, ONE)


angles = [Fraction(round(arctan(Fraction(i, 16)) * 2**350), 2**350) for i in range(16)]
angle_hi = [float(a) for a in angles]
angle_lo = [float(a - Fraction(h)) for a, h in zip(angles, angle_hi)]

# -ln c, c = j/16, j = 16, ..., 23 and 8, ..., 15: in row j modulo 16.
sixteenths = [-log(Fraction(j + 16 if j < 8 else j, 16)) for j in range(16)]
sixteenth_hi = [Fraction(round(v * 2 ** 42), 2 ** 42) for v in sixteenths]
sixteenth_lo = [float(v - h) for v, h in zip(sixteenths, sixteenth_hi)]
sixteenth_hi = [float(h) for h in sixteenth_hi]


def short_logarithm_error():
    """The bound of logarithm_by_short_table (librepdl/num/dd_functions.hpp), where k = 0, but for what double-doubles lose: the largest, over 2^10 pieces of the numbers m of
    each c, of (1.3 u f^2 / 4 + f^14 / 16) / |ln m| in units u, f = m c - 1. |ln m| >= 0.97 |f| where c = 1."""
    worst = 0.0
    for j in range(11, 24):
        low = max(16 / (j + 0.5) * (1 - 0.0102), 0.7071)
        high = min(16 / (j - 0.5) * (1 + 0.0102), 1.4143)
        for i in range(1024):
            ends = [low + (high - low) * k / 1024 for k in (i, i + 1)]
            f = max(abs(m * j / 16 - 1) for m in ends)
            assert f < 0.055
            least = 0.97 * f if j == 16 else min(abs(math.log(m)) for m in ends)
            worst = max(worst, (1.3 * f**2 / 4 + 2**53 * f**14 / 16) / least)
    return worst


assert short_logarithm_error() < 0.0295

print(
    f"""// Made by reference/gen/dd_tables.py; do not edit.
#pragma once

#include "librepdl/num/platform.hpp"

namespace repdl::num {{
inline namespace REPDL_ISA {{

// hi, lo: 2^((j - 128) / 256) = hi + lo
struct exponential_rows {{
  alignas(16) double row[256][2];
}};
// inverse, hi, lo, 0. Row i is for numbers m whose bits are at least `first_bits` + i 2^44 and less than with i + 1: |m inverse - 1| < 2^-9, and
// -ln inverse = hi + lo, hi a multiple of 2^-42; inverse = 1 in row 151, where |m - 1| <= 2^-9 2/3.
struct logarithm_rows {{
  static constexpr std::uint64_t first_bits = {FIRST:#x};
  alignas(32) double row[256][4];
}};

// hi, lo: arctan(i / 16) = hi + lo
struct arctangent_rows {{
  alignas(16) double row[16][2];
}};

// hi, lo, in row j modulo 16: -ln(j/16) = hi + lo, 8 <= j < 24, hi a multiple of 2^-42; 0 in row 0
struct short_logarithm_rows {{
  alignas(16) double row[16][2];
}};

// clang-format off
inline constexpr exponential_rows exponential_on_host = {{{rows(exp_hi, exp_lo)}}};
inline constexpr logarithm_rows logarithm_on_host = {{{rows(inverse, log_hi, log_lo, [0.0] * 256)}}};
inline constexpr arctangent_rows arctangent_on_host = {{{rows(angle_hi, angle_lo)}}};
inline constexpr short_logarithm_rows short_logarithm_on_host = {{{rows(sixteenth_hi, sixteenth_lo)}}};
// clang-format on

}}  // namespace REPDL_ISA
}}  // namespace repdl::num"""
)
