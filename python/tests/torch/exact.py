"""Sums, means and products of rational numbers, rounded once by integers alone; and numbers that are hard to add up."""

import math
import random
from fractions import Fraction

import torch

#: Precision, the exponent of the least subnormal number, of the greatest number's leading bit.
FORMATS = {torch.float16: (11, -24, 15), torch.bfloat16: (8, -133, 127), torch.float32: (24, -149, 127), torch.float64: (53, -1074, 1023)}


def rounded(value, precision, least, greatest):
    """A Fraction, to the nearest number of the format, ties to even: by integers alone."""
    if value == 0:
        return 0.0
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - precision + 1, least)
    n = round(value / unit)  # ties to even
    result = n * unit
    if abs(result) >= Fraction(2) ** (greatest + 1):
        return float("inf") if n > 0 else float("-inf")
    return math.copysign(float(result), value)


def expected_sum(terms, divisor, dtype):
    if any(t != t for t in terms) or (float("inf") in terms and float("-inf") in terms):
        return float("nan")
    for infinity in (float("inf"), float("-inf")):
        if infinity in terms:
            return infinity
    return rounded(sum(map(Fraction, terms), Fraction(0)) / divisor, *FORMATS[dtype])


def adversarial(size, count, dtype, seed):
    """Rows, one for a rank, of numbers that cancel, tie, overflow on the way, or are special."""
    precision, least, greatest = FORMATS[dtype]
    draw = random.Random(seed)
    special = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 2.0**least, -(2.0**least), 2.0**greatest, -(2.0**greatest)]
    columns = []
    for i in range(count):
        kind = i % 5
        if kind == 0:  # wide exponents
            column = [draw.uniform(-2, 2) * 2.0 ** draw.randint(max(least, -60), min(greatest, 60) - 2) for _ in range(size)]
        elif kind == 1:  # the last one cancels what the others add up to
            column = [draw.uniform(-2, 2) * 2.0 ** draw.randint(-12, 12) for _ in range(size - 1)]
            column.append(-sum(column) + draw.choice([0, 2.0**max(least, -40)]))
        elif kind == 2:  # a tie, and something that breaks it, or not
            column = [1.0 + draw.randint(0, 7) * 2.0 ** (1 - precision), 2.0**-precision,
                      draw.choice([0.0, 1, -1]) * 2.0 ** max(least, -100)] + [0.0] * size
        elif kind == 3:  # sums of parts overflow
            column = [2.0**greatest, 2.0**greatest, -(2.0**greatest), 1.0] + [-(2.0**greatest)] * size
        else:
            column = [draw.choice(special) for _ in range(size)]
        column = column[:size]
        draw.shuffle(column)
        columns.append(column)
    return torch.tensor(columns, dtype=torch.float64).to(dtype).T.contiguous()
