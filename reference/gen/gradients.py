"""How near g c e^(s x^2), the gradients of erf, erfinv and ndtri, come to a number or a midpoint of f16 and of bf16, for all g and x
(librepdl/ops/elementwise/error_function_backward.hpp).

Let p be the precision. g = k 2^i and the midpoint m 2^j with k < 2^p, m < 2^(p + 1); so phi(x) 2^n is next to m / k, for an n
with which it is in [1, 4). If |phi 2^n - m / k| < 1 / (2 k^2), m / k is a convergent of the continued fraction of phi 2^n
(Legendre); else the relative distance is more than 2^-(2p + 3). Run: python3 gradients.py (three minutes)
"""
import decimal
import struct

decimal.getcontext().prec = 80
D = decimal.Decimal


def pi():
    def arctan(n):
        total, power, k = D(0), D(1) / n, 1
        while power > D(10) ** -90:
            total += power / k if k % 4 == 1 else -power / k
            power /= n * n
            k += 2
        return total
    return 4 * (4 * arctan(5) - arctan(239))


SLOPES = {"erf": (2 / pi().sqrt(), D(-1)), "erfinv": (pi().sqrt() / 2, D(1)), "ndtri": ((2 * pi()).sqrt(), D(1) / 2)}


def numbers(name):
    for b in range(0x7c00 if name == "f16" else 0x7f80):
        yield struct.unpack("<e", struct.pack("<H", b))[0] if name == "f16" else struct.unpack("<f", struct.pack("<I", b << 16))[0]


def least(phi, p):
    """The least |phi k / m - 1| over the convergents m / k, k < 2^p."""
    best, rest = D(1), phi
    h, k = (0, 1), (1, 0)
    while True:
        a = int(rest)
        h, k = (h[1], a * h[1] + h[0]), (k[1], a * k[1] + k[0])
        if k[1] >= 1 << p:
            return best
        best = min(best, abs(phi * k[1] / h[1] - 1))
        rest = 1 / (rest - a)


for function, (c, s) in SLOPES.items():
    for name, p in (("f16", 11), ("bf16", 8)):
        best = (D(1), None)
        for x in numbers(name):
            w = s * D(x) * D(x)
            if abs(w) > 210:
                break
            phi = c * w.exp()
            phi *= D(2) ** -int((phi.ln() / D(2).ln()).to_integral_value(decimal.ROUND_FLOOR))
            for scaled in (phi, 2 * phi):
                best = min(best, (least(scaled, p), x))
        print(function, name, "2^%.1f at x = %r" % (float(best[0].ln() / D(2).ln()), best[1]))
