"""Where librepdl/ops/elementwise/inverse_error_function.hpp begins in binary64. Run: python3 inverse_error_function_binary64.py (with mpmath; a minute)

y with erf y = p as p P(p^2 - c), p up to 1/2; y with erfc y = q, t = sqrt(-ln q), as t Q(1/t - c), q from 1/2 down to 2^-1075, in three pieces. They interpolate
at the zeros of Chebyshev's polynomials. What they err by is printed, but nothing depends on it: it is found out again for each y.
"""
import mpmath
from mpmath import mpf

mpmath.mp.dps = 60
DEGREE = 9


def newton(y, step):
    for _ in range(60):
        by = step(y)
        y += by
        if abs(by) < mpf(10) ** -50 * abs(y):
            return y
    raise ArithmeticError(y)


def slope(y):
    return mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(y * y)


def near(s):
    p = mpmath.sqrt(s)
    return newton(p, lambda y: (p - mpmath.erf(y)) * slope(y)) / p


def far(s):
    t = 1 / s
    q = mpmath.exp(-t * t)
    guess = t - mpmath.log(t * mpmath.sqrt(mpmath.pi)) / (2 * t) if t > 1.5 else t - mpf(".33")
    return newton(guess, lambda y: mpmath.log(mpmath.erfc(y) / q) * mpmath.erfc(y) * slope(y)) / t


def interpolant(f, lo, hi, centre):
    """The coefficients of the powers of x - centre."""
    n = DEGREE + 1
    points = [(lo + hi) / 2 + (hi - lo) / 2 * mpmath.cos((2 * k + 1) * mpmath.pi / (2 * n)) - centre for k in range(n)]
    d = [f(p + centre) for p in points]  # Newton's divided differences, then powers by Horner's rule
    for j in range(1, n):
        for i in range(n - 1, j - 1, -1):
            d[i] = (d[i] - d[i - 1]) / (points[i] - points[i - j])
    c = [mpf(0)] * n
    for i in range(n - 1, -1, -1):
        c = [d[i] - points[i] * c[0]] + [c[k - 1] - points[i] * c[k] for k in range(1, n)]
    return c


for name, f, lo, hi, centre in (
    ("p", near, "1e-12", "0.25", "0.125"),
    ("a", far, "0.4", "1.2013", "0.75"),  # t up to 5/2
    ("b", far, "0.142857", "0.4", "0.25"),  # up to 7
    ("c", far, "0.0366", "0.142858", "0.09375"),
):
    lo, hi, centre = mpf(lo), mpf(hi), mpf(centre)
    c = [float(x) for x in interpolant(f, lo, hi, centre)]
    places = [lo + (hi - lo) * i / 500 for i in range(501)]
    error = max(abs(mpmath.polyval(c[::-1], x - centre) / f(x) - 1) for x in places)
    print(f"{name}: relative error 2^{mpmath.nstr(mpmath.log(error, 2), 4)} at 501 points, centre {centre}")
    print(", ".join(f"{name}{k} = {x.hex()}" for k, x in enumerate(c)))
