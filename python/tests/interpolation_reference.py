"""Weights of interpolation as fractions, from the contract's words."""
from fractions import Fraction
from itertools import product
from math import floor

import numpy as np


def taps(image, size, cubic=False, align_corners=False, scale=None):
    """Of each position its pixels and their weights, none of which is 0."""
    found = []
    for i in range(size):
        if align_corners:
            u = Fraction(i * (image - 1), size - 1) if size > 1 else Fraction(0)
        else:
            u = (i + Fraction(1, 2)) * (1 / Fraction(scale) if scale else Fraction(image, size)) - Fraction(1, 2)
        if not cubic:
            u = max(u, 0)
        first = min(floor(u), image - 1)
        t = min(u - first, 1)
        weights = {0: 1 - t, 1: t}
        if cubic:
            a = Fraction(-3, 4)
            inner = lambda d: (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1
            weights = {-1: a * t * (1 - t) ** 2, 0: inner(t), 1: inner(1 - t), 2: a * (1 - t) * t ** 2}
        of = {}
        for k, w in weights.items():
            pixel = min(max(first + k, 0), image - 1)
            of[pixel] = of.get(pixel, 0) + w
        found.append({pixel: w for pixel, w in of.items() if w != 0})
    return found


def interpolated(x, size, backward=False, cubic=False, align_corners=False, scales=None):
    """The exact sums, along all axes of x but the first two, as an array of fractions. x: an array of finite numbers."""
    given = x.shape[2:]
    along = []
    for a, (here, there) in enumerate(zip(given, size)):
        each = taps(*((there, here) if backward else (here, there)), cubic, align_corners, scales[a] if scales else None)
        if backward:
            each = [{i: w[pixel] for i, w in enumerate(each) if pixel in w} for pixel in range(there)]
        along.append(each)
    out = np.empty((*x.shape[:2], *size), object)
    for n, c in np.ndindex(*x.shape[:2]):
        for o in np.ndindex(*size):
            total = Fraction(0)
            for term in product(*(along[a][i].items() for a, i in enumerate(o))):
                weight = Fraction(1)
                for _, w in term:
                    weight *= w
                total += weight * Fraction(float(x[(n, c, *(i for i, _ in term))]))
            out[(n, c, *o)] = total
    return out
