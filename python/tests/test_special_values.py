"""Functions of one variable in float64 on zeros, ones, infinities, NaN and the ends of the range, bit for bit: what mpmath computes,
rounded once."""

import math
from fractions import Fraction
from math import inf, nan

import mpmath
import numpy as np
import pytest

import librepdl
from registry import ROWS

# 700 digits: silu(2^-1074) is above the middle between 0 and 2^-1074 by 2^-2150, and what tanhshrink(2^-1074) leaves of 2^-1074 is 2^-3222 / 3.
mp = mpmath.mp.clone()
mp.dps = 700

LARGEST, NORMAL, SUBNORMAL = 2.0**1023 * (2 - 2.0**-52), 2.0**-1022, 2.0**-1074
MAGNITUDES = [SUBNORMAL, NORMAL, 0.5, 1.0, 2.0, 2.5, math.pi, LARGEST]
SLOPE, COEFFICIENT = mp.mpf(0.01), mp.mpf("0.044715")  # a double, a decimal
SELU_A, SELU_S = mp.mpf("1.6732632423543772848170429916717"), mp.mpf("1.0507009873554804934193349852946")
LN2 = float(mp.log(2))

odd, even = (-inf, -0.0, 0.0, inf), (inf, 0.0, 0.0, inf)
positive_part = (0.0, 0.0, 0.0, inf)


# Beyond these ends, where mpmath takes long or fails, the results below are those at the ends: they overflow or vanish.
def exp(x):
    return mp.exp(min(max(x, -5000), 5000))


def erfc(x):
    return mp.erfc(min(x, 100))


def log1p_exp(x):
    return max(x, 0) + mp.log1p(exp(-abs(x)))


def sigmoid(x):
    return 1 / (1 + exp(-x))


def exponential_unit(x):
    return mp.expm1(max(x, -5000)) if x < 0 else x


def power_of(base):
    return lambda x: mp.power(base, min(max(x, -5000), 5000))


def odd_of(f):
    """f, an odd function, from its values for x > 0."""
    return lambda x: mp.sign(x) * f(abs(x))


def whole_or(value, f):
    """f(x), but where x is whole value(x)."""
    return lambda x: value(x) if x == int(x) else f(x)


def tanpi(x):
    turn = mp.fmod(abs(x), 2)
    sign = -1 if (x < 0) != (turn >= 1) else 1
    if 2 * turn == int(2 * turn):
        return math.copysign(0.0 if turn == int(turn) else inf, sign)
    return mp.sinpi(x) / mp.cospi(x)


def log_normal(x):
    if x > 0:
        return -0.0 if x > 100 else mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2)
    if x > -100:
        return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)
    mills = -x
    for m in range(100, 0, -1):
        mills = m / mills - x
    return -(x * x / 2 + mp.log(mills * mp.sqrt(2 * mp.pi)))


def erfcinv(x):
    if not 0 < x < 2:
        return -inf if x == 2 else nan
    return mp.mpf(0) if x == 1 else mp.findroot(lambda y: mp.log(mp.erfc(y)) - mp.log(x), mp.sqrt(-mp.log(x)))


def integer(f):
    """f, where a zero has the sign of x."""
    return lambda x: f(x) or math.copysign(0.0, x)


# Function, options, formula for finite x but 0, results at -inf, -0, +0 and inf. A complex number says that x is outside the domain: NaN.
# Zeros that a formula gives are positive, unless they are Python's.
FUNCTIONS = [
    ("neg", {}, lambda x: -x, (inf, 0.0, -0.0, -inf)),
    ("abs", {}, abs, even),
    ("sqrt", {}, mp.sqrt, (nan, -0.0, 0.0, inf)),
    ("relu", {}, lambda x: max(x, 0), positive_part),
    ("leaky_relu", {}, lambda x: x if x > 0 else SLOPE * x, odd),
    ("exp", {}, exp, (0.0, 1.0, 1.0, inf)),
    ("log", {}, mp.log, (nan, -inf, -inf, inf)),
    ("tanh", {}, mp.tanh, (-1.0, -0.0, 0.0, 1.0)),
    ("sigmoid", {}, sigmoid, (0.0, 0.5, 0.5, 1.0)),
    ("square", {}, lambda x: x * x, even),
    ("reciprocal", {}, lambda x: 1 / x, (-0.0, -inf, inf, 0.0)),
    ("floor", {}, integer(mp.floor), odd),
    ("ceil", {}, integer(mp.ceil), odd),
    ("trunc", {}, integer(lambda x: mp.mpf(int(x))), odd),
    ("round", {}, integer(mp.nint), odd),
    ("frac", {}, lambda x: x - int(x), (nan, 0.0, 0.0, nan)),
    ("sign", {}, mp.sign, (-1.0, -0.0, 0.0, 1.0)),
    ("clamp", {}, lambda x: x, odd),
    ("clamp", {"min": -0.75, "max": 2.25}, lambda x: min(max(x, -0.75), 2.25), (-0.75, -0.0, 0.0, 2.25)),
    ("hardtanh", {}, lambda x: min(max(x, -1), 1), (-1.0, -0.0, 0.0, 1.0)),
    ("threshold", {}, lambda x: x if x > 0 else 0, positive_part),
    ("hardshrink", {}, lambda x: 0 if abs(x) <= 0.5 else x, (-inf, 0.0, 0.0, inf)),
    ("softshrink", {}, lambda x: 0 if abs(x) <= 0.5 else x - mp.sign(x) / 2, (-inf, 0.0, 0.0, inf)),
    ("nan_to_num", {}, lambda x: x, (-LARGEST, -0.0, 0.0, LARGEST)),
    ("sin", {}, mp.sin, (nan, -0.0, 0.0, nan)),
    ("cos", {}, mp.cos, (nan, 1.0, 1.0, nan)),
    ("erf", {}, mp.erf, (-1.0, -0.0, 0.0, 1.0)),
    ("erfc", {}, erfc, (2.0, 1.0, 1.0, 0.0)),
    ("gelu", {}, lambda x: x / 2 * erfc(-x / mp.sqrt(2)), (-0.0, -0.0, 0.0, inf)),
    ("gelu_tanh", {}, lambda x: x * sigmoid(2 * mp.sqrt(2 / mp.pi) * (x + COEFFICIENT * x**3)), (-0.0, -0.0, 0.0, inf)),
    ("exp2", {}, power_of(2), (0.0, 1.0, 1.0, inf)),
    ("expm1", {}, lambda x: mp.expm1(min(max(x, -5000), 5000)), (-1.0, -0.0, 0.0, inf)),
    ("log2", {}, lambda x: mp.log(x) / mp.log(2), (nan, -inf, -inf, inf)),
    ("log10", {}, lambda x: mp.log(x) / mp.log(10), (nan, -inf, -inf, inf)),
    ("log1p", {}, lambda x: -inf if x == -1 else mp.log1p(x), (nan, -0.0, 0.0, inf)),
    ("rsqrt", {}, lambda x: 1 / mp.sqrt(x), (nan, -inf, inf, 0.0)),
    ("log_sigmoid", {}, lambda x: -log1p_exp(-x), (-inf, -LN2, -LN2, -0.0)),
    ("silu", {}, lambda x: x * sigmoid(x), (-0.0, -0.0, 0.0, inf)),
    ("mish", {}, lambda x: x * mp.tanh(log1p_exp(x)), (-0.0, -0.0, 0.0, inf)),
    ("selu", {}, lambda x: SELU_S * (SELU_A if x < 0 else 1) * exponential_unit(x), (float(-SELU_S * SELU_A), -0.0, 0.0, inf)),
    ("tanhshrink", {}, lambda x: x - mp.tanh(x), (-inf, 0.0, 0.0, inf)),
    ("softsign", {}, lambda x: x / (1 + abs(x)), (-1.0, -0.0, 0.0, 1.0)),
    ("relu6", {}, lambda x: min(max(x, 0), 6), (0.0, 0.0, 0.0, 6.0)),
    ("hardsigmoid", {}, lambda x: min(max(x + 3, 0), 6) / 6, (0.0, 0.5, 0.5, 1.0)),
    ("hardswish", {}, lambda x: -0.0 if x <= -3 else x * min(x + 3, 6) / 6, (-0.0, -0.0, 0.0, inf)),
    ("elu", {}, exponential_unit, (-1.0, -0.0, 0.0, inf)),
    ("celu", {}, exponential_unit, (-1.0, -0.0, 0.0, inf)),
    ("softplus", {}, lambda x: x if x > 20 else log1p_exp(x), (0.0, LN2, LN2, inf)),
    ("logit", {}, lambda x: inf if x == 1 else mp.log(x / (1 - x)) if 0 < x < 1 else nan, (nan, -inf, -inf, nan)),
    ("lerp_scalar_backward_x", {}, lambda g: g / 2, odd),
    ("tan", {}, mp.tan, (nan, -0.0, 0.0, nan)),
    ("asin", {}, mp.asin, (nan, -0.0, 0.0, nan)),
    ("acos", {}, mp.acos, (nan, math.pi / 2, math.pi / 2, nan)),
    ("atan", {}, mp.atan, (-math.pi / 2, -0.0, 0.0, math.pi / 2)),
    ("sinh", {}, lambda x: mp.sinh(min(max(x, -5000), 5000)), odd),
    ("cosh", {}, lambda x: mp.cosh(min(abs(x), 5000)), (inf, 1.0, 1.0, inf)),
    ("asinh", {}, odd_of(mp.asinh), odd),
    ("acosh", {}, mp.acosh, (nan, nan, nan, inf)),
    ("atanh", {}, lambda x: math.copysign(inf, x) if abs(x) == 1 else mp.atanh(x), (nan, -0.0, 0.0, nan)),
    ("cbrt", {}, odd_of(mp.cbrt), odd),
    ("exp10", {}, power_of(10), (0.0, 1.0, 1.0, inf)),
    ("exp2m1", {}, lambda x: mp.expm1(min(max(x, -5000), 5000) * mp.log(2)), (-1.0, -0.0, 0.0, inf)),
    ("exp10m1", {}, lambda x: mp.expm1(min(max(x, -5000), 5000) * mp.log(10)), (-1.0, -0.0, 0.0, inf)),
    ("log2p1", {}, lambda x: -inf if x == -1 else mp.log1p(x) / mp.log(2), (nan, -0.0, 0.0, inf)),
    ("log10p1", {}, lambda x: -inf if x == -1 else mp.log1p(x) / mp.log(10), (nan, -0.0, 0.0, inf)),
    ("sinpi", {}, whole_or(lambda x: math.copysign(0.0, x), mp.sinpi), (nan, -0.0, 0.0, nan)),
    ("cospi", {}, mp.cospi, (nan, 1.0, 1.0, nan)),
    ("tanpi", {}, tanpi, (nan, -0.0, 0.0, nan)),
    ("ndtr", {}, lambda x: mp.erfc(-min(max(x, -100), 100) / mp.sqrt(2)) / 2, (0.0, 0.5, 0.5, 1.0)),
    ("log_ndtr", {}, log_normal, (-inf, -LN2, -LN2, -0.0)),
    ("erfinv", {}, odd_of(lambda x: inf if x == 1 else mp.erfinv(x) if x < 1 else nan), (nan, -0.0, 0.0, nan)),
    ("erfcinv", {}, erfcinv, (nan, inf, inf, nan)),
    ("ndtri", {}, lambda x: inf if x == 1 else -mp.sqrt(2) * erfcinv(2 * x) if 0 < x < 1 else nan, (nan, -inf, -inf, nan)),
    ("sinc", {}, whole_or(lambda x: 0.0, mp.sincpi), (nan, 1.0, 1.0, nan)),
    ("pow_scalar", {}, lambda x: x * x, even),
    ("pow_scalar", {"exponent": -3}, lambda x: 1 / x**3, (-0.0, -inf, inf, 0.0)),
    ("pow_scalar", {"exponent": 0.1}, lambda x: mp.power(x, 0.1), even),
    ("scalar_pow", {}, power_of(2), (0.0, 1.0, 1.0, inf)),
    ("scalar_pow", {"base": 10}, power_of(10), (0.0, 1.0, 1.0, inf)),
    ("scalar_pow", {"base": 0.1}, power_of(0.1), (inf, 1.0, 1.0, 0.0)),
]
# Of boolean results: the answer for x.
QUESTIONS = {"isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite, "signbit": lambda x: math.copysign(1, x) < 0,
             "logical_not": lambda x: x == 0}


def rounded(y):
    """The double nearest to y, ties to even; a float is itself."""
    if isinstance(y, mp.mpc):
        return nan
    if isinstance(y, float) or not mp.isfinite(y):
        return float(y)
    y = mp.mpf(y)
    bits, exponent = (int(n) for n in y.man_exp)  # |y| = bits * 2^exponent
    if bits == 0:
        return 0.0
    sign, top = math.copysign(1.0, mp.sign(y)), bits.bit_length() + exponent  # |y| in [2^(top - 1), 2^top)
    if top < -1074:
        return sign * 0.0  # less than half of the least subnormal number
    if top > 1024:
        return sign * inf
    unit = max(top - 53, -1074)  # 2^unit is the last place of doubles as large as y
    if exponent >= unit:
        return sign * math.ldexp(bits << (exponent - unit), unit)
    places = unit - exponent
    whole, rest = divmod(bits, 1 << places)
    half = 1 << (places - 1)
    whole += rest > half or rest == half and whole % 2
    return sign * (inf if whole.bit_length() + unit > 1024 else math.ldexp(whole, unit))


def test_rounding():
    """Python's own, of quotients; and borders."""
    g = np.random.default_rng(1)
    for bits, exponent in zip(g.integers(1, 2**62, 500).tolist(), g.integers(-1140, 964, 500).tolist()):
        for n in (bits, -bits, bits & -(1 << 9) | 1 << 8):
            exact = Fraction(n) * Fraction(2) ** exponent
            assert rounded(mp.ldexp(mp.mpf(n), exponent)) == float(exact)
    tiny = mp.ldexp(1, -1100)
    for y, want in ((SUBNORMAL / mp.mpf(2), 0.0), (SUBNORMAL / mp.mpf(2) + tiny, SUBNORMAL), (SUBNORMAL * mp.mpf(1.5), 2 * SUBNORMAL),
                    (SUBNORMAL * mp.mpf(1.5) - tiny, SUBNORMAL), (NORMAL - SUBNORMAL / mp.mpf(2), NORMAL), (tiny, 0.0), (1 + mp.ldexp(1, -53), 1.0),
                    (1 + 3 * mp.ldexp(1, -53), 1 + 2.0**-51), (mp.mpf(LARGEST) + mp.ldexp(1, 970), inf),
                    (mp.mpf(LARGEST) + mp.ldexp(1, 970) - tiny, LARGEST), (mp.ldexp(1, 1024), inf), (mp.inf, inf), (mp.mpc(0, 1), nan)):
        np.testing.assert_array_equal([rounded(y), rounded(-y)], [want, -want])
        assert math.isnan(want) or math.copysign(1, rounded(-y)) < 0


def test_every_function_is_here():
    of_one = {name for name, row in ROWS.items()
              if row["family"] == "elementwise" and len(row["inputs"]) == 1 and "f64" in row["inputs"][0]["types"]}
    assert of_one == {name for name, *_ in FUNCTIONS} | set(QUESTIONS)


@pytest.mark.parametrize(("name", "options", "formula", "ends"), FUNCTIONS,
                         ids=["-".join([f[0], *(f"{k}={v}" for k, v in f[1].items())]) for f in FUNCTIONS])
def test_special_values(name, options, formula, ends):
    finite = [sign * x for x in MAGNITUDES for sign in (1, -1)]
    x = np.float64([*finite, -inf, -0.0, 0.0, inf, nan])
    want = np.float64([*(rounded(formula(mp.mpf(v))) for v in finite), *ends, 0.0 if name == "nan_to_num" else nan])
    got = getattr(librepdl, name)(x, **options)
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions(name):
    x = np.float64([sign * v for v in [*MAGNITUDES, 0.0, inf, nan] for sign in (1, -1)])
    got = getattr(librepdl, name)(x)
    assert got.dtype == np.bool_
    np.testing.assert_array_equal(got, [QUESTIONS[name](v) for v in x.tolist()])
