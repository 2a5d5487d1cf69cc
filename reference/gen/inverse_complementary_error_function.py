"""The far polynomial of librepdl/ops/elementwise/inverse_error_function.hpp. Run: python3 inverse_complementary_error_function.py
(with mpmath; seconds)

y with erfc y = x, x (2 - x) = e^(-s^2), in s - 7, s from 4 to 10.25: x from 2^-24 to below 2^-150. It interpolates at the zeros of Chebyshev's.
"""
import mpmath
from mpmath import mpf

mpmath.mp.dps = 60
LO, HI, CENTRE, DEGREE = mpf(4) - mpf(1) / 64, mpf("10.25"), 7, 22


def inverse(s):
    x = -mpmath.expm1(mpmath.log1p(-mpmath.exp(-s * s)) / 2)  # 1 - sqrt(1 - e^(-s^2))
    y = s - mpmath.log(s * mpmath.sqrt(mpmath.pi)) / (2 * s)
    for _ in range(8):  # Newton's method of ln erfc, which is concave
        f = mpmath.erfc(y)
        y += mpmath.log(f / x) * f * mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(y * y)
    return y


def interpolant(f, lo, hi, degree):
    """The coefficients of the powers of x - CENTRE."""
    n = degree + 1
    points = [(lo + hi) / 2 + (hi - lo) / 2 * mpmath.cos((2 * k + 1) * mpmath.pi / (2 * n)) - CENTRE for k in range(n)]
    d = [f(p + CENTRE) for p in points]  # Newton's divided differences, then powers by Horner's rule
    for j in range(1, n):
        for i in range(n - 1, j - 1, -1):
            d[i] = (d[i] - d[i - 1]) / (points[i] - points[i - j])
    c = [mpf(0)] * n
    for i in range(n - 1, -1, -1):
        c = [d[i] - points[i] * c[0]] + [c[k - 1] - points[i] * c[k] for k in range(1, n)]
    return c


c = [float(x) for x in interpolant(inverse, LO, HI, DEGREE)]
error = rounding = mpf(0)
for i in range(2001):
    t = LO + (HI - LO) * i / 2000 - CENTRE
    exact = inverse(t + CENTRE)
    error = max(error, abs(mpmath.polyval(c[::-1], t) / exact - 1))
    rounding = max(rounding, sum((2 * k + 1) * abs(mpf(a) * t ** k) for k, a in enumerate(c)) / exact)
print(", ".join(f"c{k} = {a.hex()}" for k, a in enumerate(c)))
print(f"at 2001 points: relative error 2^{mpmath.nstr(mpmath.log(error, 2), 5)}; Horner's rule {mpmath.nstr(rounding, 4)} u")
