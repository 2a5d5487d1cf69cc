"""Constants of librepdl/ops/elementwise/bessel.hpp. Run: python3 bessel.py (with mpmath; seconds)

e^-v I_n(v) / v^n in v - 1 up to 2, e^-v I_n(v) in v - 5 up to 8, sqrt(v) e^-v I_n(v) in 1 / v - 1/16 beyond, n = 0 and 1. Polynomials
interpolate at the zeros of Chebyshev's. The first HEADS coefficients are double-doubles.
"""
import mpmath
from mpmath import mpf

mpmath.mp.dps = 60
HEADS = 5


def scaled(order, v):
    return mpmath.exp(-v) * mpmath.besseli(order, v)


def interpolant(f, lo, hi, centre, degree):
    """The coefficients of the powers of x - centre."""
    n = degree + 1
    points = [(lo + hi) / 2 + (hi - lo) / 2 * mpmath.cos((2 * k + 1) * mpmath.pi / (2 * n)) - centre for k in range(n)]
    # Newton's divided differences, then powers by Horner's rule.
    d = [f(p + centre) for p in points]
    for j in range(1, n):
        for i in range(n - 1, j - 1, -1):
            d[i] = (d[i] - d[i - 1]) / (points[i] - points[i - j])
    c = [mpf(0)] * n
    for i in range(n - 1, -1, -1):
        c = [d[i] - points[i] * c[0]] + [c[k - 1] - points[i] * c[k] for k in range(1, n)]
    return c


def rounded(c):
    """[(hi, lo)], lo = 0 behind the heads."""
    pairs = []
    for k, x in enumerate(c):
        hi = float(x)
        pairs.append((hi, float(x - mpf(hi)) if k < HEADS else 0.0))
    return pairs


def evaluated(pairs, t):
    y = mpf(0)
    for hi, lo in reversed(pairs):
        y = y * t + mpf(hi) + mpf(lo)
    return y


def piece(name, f, lo, hi, centre, degree):
    pairs = rounded(interpolant(f, lo, hi, centre, degree))
    error = tail = rounding = mpf(0)
    for i in range(801):
        t = lo + (hi - lo) * i / 800 - centre
        exact = f(t + centre)
        error = max(error, abs(evaluated(pairs, t) / exact - 1))
        terms = [(k - HEADS, abs(mpf(c) * t ** k) / abs(exact)) for k, (c, _) in enumerate(pairs) if k >= HEADS]
        tail = max(tail, sum(term for _, term in terms))
        rounding = max(rounding, sum((2 * k + 1) * term for k, term in terms))
    for k, (c, low) in enumerate(pairs):
        print(f"{name}{k} = {{{c.hex()}, {low.hex()}}}" if k < HEADS else f"{name}{k} = {c.hex()}")
    print(f"{name}, at 801 points: relative error 2^{mpmath.nstr(mpmath.log(error, 2), 5)}; terms behind the heads, relatively, "
          f"2^{mpmath.nstr(mpmath.log(tail, 2), 4)}, rounding {mpmath.nstr(rounding, 3)} u")


for order in (0, 1):
    print(f"order {order}")
    near = lambda v: scaled(order, v) / v ** order
    middle = lambda v: scaled(order, v)
    far = lambda z: scaled(order, 1 / z) * mpmath.sqrt(1 / z)
    piece("a", near, mpf(10) ** -30, mpf(2), mpf(1), 20)
    piece("b", middle, mpf(2), mpf(8), mpf(5), 26)
    piece("c", far, mpf(10) ** -6, mpf(1) / 8, mpf(1) / 16, 26)
