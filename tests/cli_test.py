#!/usr/bin/env python3
"""Tests of the command line: cli_test.py PATH_OF_REPDL SOURCE_ROOT [unittest arguments]

Every operation is run by `repdl eval` on .npy files and compared, bit for bit, with results computed here from exact
fractions (for exp, log, tanh, sigmoid and their kin from 80 decimal digits). Python's standard library only.
"""
import collections
import decimal
import fractions
import hashlib
import itertools
import json
import math
import os
import pathlib
import pty
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

REPDL = ""
ROOT = pathlib.Path()
F = fractions.Fraction
decimal.getcontext().prec = 80
decimal.getcontext().Emax = 10**9
decimal.getcontext().Emin = -(10**9)

# name: (bytes, precision, emin, emax, descr)
FORMATS = {"f16": (2, 11, -14, 15, "<f2"), "bf16": (2, 8, -126, 127, "<u2"), "f32": (4, 24, -126, 127, "<f4"),
           "f64": (8, 53, -1022, 1023, "<f8")}
DESCR = {"i64": "<i8", "i32": "<i4", "bool": "|b1", **{k: v[4] for k, v in FORMATS.items()}}
BYTES = {"i64": 8, "i32": 4, "bool": 1, **{k: v[0] for k, v in FORMATS.items()}}


def infinity(fmt):
    size, precision, _, _, _ = FORMATS[fmt]
    return ((1 << (8 * size - precision)) - 1) << (precision - 1)


def sign_bit(fmt):
    return 1 << (8 * FORMATS[fmt][0] - 1)


def nan(fmt):
    return infinity(fmt) | 1 << (FORMATS[fmt][1] - 2)


def is_nan(bits, fmt="f32"):
    return bits & ~sign_bit(fmt) > infinity(fmt)


def value(bits, fmt="f32"):
    """The exact value of a finite pattern."""
    _, precision, emin, _, _ = FORMATS[fmt]
    magnitude = bits & ~sign_bit(fmt)
    assert magnitude < infinity(fmt)
    biased, fraction = magnitude >> (precision - 1), magnitude & ((1 << (precision - 1)) - 1)
    m = fraction if biased == 0 else fraction | 1 << (precision - 1)
    v = F(m) * F(2) ** (max(biased, 1) - 1 + emin - precision + 1)
    return -v if bits & sign_bit(fmt) else v


def rounded(x, fmt="f32", zero=0):
    """RN(x), ties to even; an exact zero has the pattern `zero`."""
    _, precision, emin, emax, _ = FORMATS[fmt]
    if x == 0:
        return zero
    sign = sign_bit(fmt) if x < 0 else 0
    x = abs(F(x))
    e = x.numerator.bit_length() - x.denominator.bit_length()
    if F(2) ** e > x:
        e -= 1
    ulp = F(2) ** (max(e, emin) - precision + 1)
    q = x / ulp
    n = int(q)
    rest = q - n
    if rest > F(1, 2) or (rest == F(1, 2) and n % 2 == 1):
        n += 1
    # n counts ulps from the bottom of the binade: patterns of positive numbers are consecutive.
    bits = n if e < emin else n + ((e - emin) << (precision - 1))
    return sign | min(bits, infinity(fmt))


def order(bits, fmt="f32"):
    return -(bits & ~sign_bit(fmt)) - 1 if bits & sign_bit(fmt) else bits


def pack(values, dtype):
    return b"".join(v.to_bytes(BYTES[dtype], "little", signed=v < 0) for v in values)


def npy(values, shape, dtype, fortran=False, version=1, descr=None):
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr or DESCR[dtype], fortran, tuple(shape))
    raw = header.encode("utf-8" if version == 3 else "latin1") + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(raw))
    return b"\x93NUMPY" + bytes([version, 0]) + length + raw + pack(values, dtype)


def read_npy(path):
    data = path.read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    n = struct.unpack("<H", data[8:10])[0]
    assert (10 + n) % 64 == 0 and data[9 + n:10 + n] == b"\n"
    header = eval(data[10:10 + n])  # a literal written by the program under test
    assert list(header) == ["descr", "fortran_order", "shape"] and header["fortran_order"] is False
    dtype = {v: k for k, v in DESCR.items()}[header["descr"]]
    size = BYTES[dtype]
    body = data[10 + n:]
    assert len(body) == size * math.prod(header["shape"])
    return dtype, header["shape"], [int.from_bytes(body[i:i + size], "little") for i in range(0, len(body), size)]


def philox(seed, stream, block):
    m = (1 << 32) - 1
    c, k = [block & m, block >> 32, stream & m, stream >> 32], [seed & m, seed >> 32]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & m, (p >> 32) ^ c[3] ^ k[1], p & m]
        k = [(k[0] + 0x9E3779B9) & m, (k[1] + 0xBB67AE85) & m]
    return c


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)

    def run_repdl(self, *args, **kwargs):
        return subprocess.run([REPDL, *map(str, args)], cwd=self.dir, capture_output=True, text=True, timeout=600, **kwargs)

    def save(self, name, values, shape, dtype="f32", **kwargs):
        (self.dir / name).write_bytes(npy(values, shape, dtype, **kwargs))
        return name

    def eval(self, op, inputs, *options):
        """inputs: (values, shape[, dtype]); returns (dtype, shape, patterns)."""
        names = [self.save("in%d.npy" % i, *t) for i, t in enumerate(inputs)]
        r = self.run_repdl("eval", op, *names, "-o", "out.npy", *options)
        self.assertEqual((r.returncode, r.stderr, r.stdout), (0, "", ""), op)
        return read_npy(self.dir / "out.npy")

    def check(self, op, inputs, expected, *options):
        """expected: (dtype, shape, patterns)."""
        got = self.eval(op, inputs, *options)
        self.assertEqual(got[:2], expected[:2], op)
        for i, (g, e) in enumerate(zip(got[2], expected[2])):
            operands = ["%#x" % t[0][i] for t in inputs] if all(len(t[0]) == len(got[2]) for t in inputs) else ""
            self.assertEqual("%#x" % g, "%#x" % e, "%s: element %d %s" % (op, i, operands))


def finite_patterns(n, seed, low=1 << 23, high=0x7F000000):
    r = random.Random(seed)
    return [r.randrange(low, high) | r.randrange(2) << 31 for _ in range(n)]


class Elementwise(Case):
    n = 200

    def two(self):
        near = finite_patterns(self.n, 1, 0x3F000000, 0x41000000)
        wide = finite_patterns(self.n, 2, 0x20000000, 0x60000000)
        tiny = finite_patterns(self.n, 3, 1, 1 << 23)
        huge = finite_patterns(self.n, 4, 0x7E000000, 0x7F800000)
        x = near + wide + near + huge + tiny
        y = near[::-1] + near + tiny + huge[::-1] + near
        return x, y

    def pairs(self, op, f):
        x, y = self.two()
        self.check(op, [(x, [len(x)]), (y, [len(x)])], ("f32", (len(x),), [f(a, b) for a, b in zip(x, y)]))

    def test_add_sub(self):
        self.pairs("add", lambda a, b: rounded(value(a) + value(b)))
        self.pairs("sub", lambda a, b: rounded(value(a) - value(b)))

    def test_mul_div(self):
        self.pairs("mul", lambda a, b: rounded(value(a) * value(b), zero=(a ^ b) & 1 << 31))
        self.pairs("div", lambda a, b: rounded(value(a) / value(b)))

    def test_fma(self):
        x, y = self.two()
        z = x[7:] + x[:7]
        # A sum that cancels exactly too.
        z[0] = rounded(-value(x[0]) * value(y[0]))
        out = [rounded(value(a) * value(b) + value(c)) for a, b, c in zip(x, y, z)]
        self.check("fma", [(v, [len(x)]) for v in (x, y, z)], ("f32", (len(x),), out))

    def test_bits(self):
        x = [0, 1 << 31, 0x3F800000, 0xFFC12345, 0x7F800001, 0xFF800000, 0x80000001]
        self.check("neg", [(x, [7])], ("f32", (7,), [v ^ 1 << 31 for v in x]))
        self.check("abs", [(x, [7])], ("f32", (7,), [v & ~(1 << 31) for v in x]))

    def test_selections(self):
        x, y = self.two()
        x += [0, 1 << 31, 0xFFC00001, 0x3F800000, 0xFF800000]
        y += [1 << 31, 0, 0x3F800000, 0x7F800001, 0x7F800000]

        def pick(f):
            return [nan("f32") if is_nan(a) or is_nan(b) else f(a, b, key=order) for a, b in zip(x, y)]
        n = len(x)
        self.check("maximum", [(x, [n]), (y, [n])], ("f32", (n,), pick(max)))
        self.check("minimum", [(x, [n]), (y, [n])], ("f32", (n,), pick(min)))
        self.check("relu", [(x, [n])], ("f32", (n,), [nan("f32") if is_nan(a) else 0 if a >> 31 else a for a in x]))
        out = [(nan("f32") if is_nan(g) else g) if is_nan(a) or (0 < a < 1 << 31) else 0 for g, a in zip(y, x)]
        self.check("relu_backward", [(y, [n]), (x, [n])], ("f32", (n,), out))

    def patterns(self, t, seed):
        """Finite ones of all exponents, many with a fraction near integers and halves; then zeros, infinities, NaN."""
        r, s = random.Random(seed), sign_bit(t)
        near = [rounded(F(r.randrange(-4000, 4000), 8) + r.choice((0, 0, F(1, 1 << 30), -F(1, 1 << 30))), t) for _ in range(150)]
        wide = [r.randrange(infinity(t)) | r.choice((0, s)) for _ in range(150)]
        return near + wide + [0, s, 1, s | 1, infinity(t), s | infinity(t), nan(t), s | nan(t) | 5, infinity(t) | 1]

    def one(self, t, x, op, finite, infinite):
        """finite(value, sign bit), for infinities infinite(pattern); NaN gives the canonical one."""
        s = sign_bit(t)
        out = [nan(t) if is_nan(a, t) else infinite(a) if a & ~s == infinity(t) else finite(value(a, t), a & s) for a in x]
        self.check(op, [(x, [len(x)], t)], (t, (len(x),), out))

    def test_roundings(self):
        for t in FORMATS:
            x, itself = self.patterns(t, 31), lambda a: a
            for op, integer in (("floor", math.floor), ("ceil", math.ceil), ("trunc", math.trunc), ("round", round)):
                self.one(t, x, op, lambda v, s: rounded(F(integer(v)), t, zero=s), itself)
            self.one(t, x, "frac", lambda v, s: rounded(v - math.trunc(v), t), lambda a: nan(t))
            one = rounded(F(1), t)
            self.one(t, x, "sign", lambda v, s: s | one if v else s, lambda a: a & sign_bit(t) | one)
            self.one(t, x, "square", lambda v, s: rounded(v * v, t), lambda a: infinity(t))
            self.one(t, x, "reciprocal", lambda v, s: rounded(1 / v, t) if v else s | infinity(t), lambda a: a & sign_bit(t))

    def test_classes_and_signs(self):
        for t in FORMATS:
            x, s = self.patterns(t, 32), sign_bit(t)
            y = x[5:] + x[:5]
            for op, f in (("isnan", lambda a: is_nan(a, t)), ("isinf", lambda a: a & ~s == infinity(t)),
                          ("isfinite", lambda a: a & ~s < infinity(t)), ("signbit", lambda a: a & s != 0)):
                self.check(op, [(x, [len(x)], t)], ("bool", (len(x),), [int(f(a)) for a in x]))
            self.check("copysign", [(x, [len(x)], t), (y, [len(x)], t)], (t, (len(x),), [a & ~s | b & s for a, b in zip(x, y)]))
            for op, f in (("neg", lambda a: a ^ s), ("abs", lambda a: a & ~s)):
                self.check(op, [(x, [len(x)], t)], (t, (len(x),), [f(a) for a in x]))

    def test_comparisons(self):
        for t in FORMATS:
            s = sign_bit(t)
            x = self.patterns(t, 33)
            y = x[:40] + self.patterns(t, 34)[40:]
            special = x[-9:]
            x, y = x + special * 9, y + [b for b in special for _ in range(9)]
            n = len(x)

            def key(a):
                return -(a & ~s) if a & s else a

            def check(op, dtype, f):
                self.check(op, [(x, [n], t), (y, [n], t)], (dtype, (n,), [f(a, b) for a, b in zip(x, y)]))
            for op, f in (("less", lambda a, b: a < b), ("less_equal", lambda a, b: a <= b), ("greater", lambda a, b: a > b),
                          ("greater_equal", lambda a, b: a >= b), ("equal", lambda a, b: a == b)):
                check(op, "bool", lambda a, b: int(not is_nan(a, t) and not is_nan(b, t) and f(key(a), key(b))))
            check("not_equal", "bool", lambda a, b: int(is_nan(a, t) or is_nan(b, t) or key(a) != key(b)))

            def ordered(a):  # -0 < +0
                return -(a & ~s) - 1 if a & s else a
            for op, pick in (("fmax", max), ("fmin", min)):
                def number(a, b):
                    if is_nan(a, t) or is_nan(b, t):
                        return nan(t) if is_nan(a, t) and is_nan(b, t) else b if is_nan(a, t) else a
                    return pick(a, b, key=ordered)
                check(op, t, number)

            def step(a, b):
                return nan(t) if is_nan(a, t) else 0 if key(a) < 0 else rounded(F(1), t) if key(a) > 0 else nan(t) if is_nan(b, t) else b
            check("heaviside", t, step)

            def neighbour(a, b):
                if is_nan(a, t) or is_nan(b, t):
                    return nan(t)
                if key(a) == key(b):
                    return b
                next = key(a) + (1 if key(b) > key(a) else -1)
                return abs(next) | (s if next < 0 or next == 0 and key(a) < 0 else 0)
            check("nextafter", t, neighbour)
            for op, pick in (("maximum", max), ("minimum", min)):
                check(op, t, lambda a, b: nan(t) if is_nan(a, t) or is_nan(b, t) else pick(a, b, key=ordered))

    def test_quotients_and_sums_of_products(self):
        for t in FORMATS:
            s, r = sign_bit(t), random.Random(35)
            x, y = ([r.randrange(1, infinity(t)) | r.choice((0, s)) for _ in range(300)] for _ in range(2))
            z = [rounded(-value(a, t) * value(b, t), t) if i % 2 else r.randrange(infinity(t)) for i, (a, b) in enumerate(zip(x, y))]
            z = [c if c & ~s < infinity(t) else 1 for c in z]
            n = len(x)
            self.check("div", [(x, [n], t), (y, [n], t)],
                       (t, (n,), [rounded(value(a, t) / value(b, t), t, zero=(a ^ b) & s) for a, b in zip(x, y)]))
            self.check("fma", [(v, [n], t) for v in (x, y, z)],
                       (t, (n,), [rounded(value(a, t) * value(b, t) + value(c, t), t) for a, b, c in zip(x, y, z)]))
            w = [r.randrange(1, infinity(t)) for _ in range(n)]
            z = [rounded(value(a, t) * value(b, t) / value(d, t) * r.choice((-1, 1)), t) for a, b, d in zip(x, y, w)]  # sums that cancel
            z = [c if c & ~s < infinity(t) else 1 for c in z]
            for op, sign in (("sum_of_products", 1), ("difference_of_products", -1)):
                self.check(op, [(v, [n], t) for v in (x, y, z, w)],
                           (t, (n,), [rounded(value(a, t) * value(b, t) + sign * value(c, t) * value(d, t), t)
                                      for a, b, c, d in zip(x, y, z, w)]))
            if t != "f64":
                g = self.patterns(t, 36)
                a = g[7:] + g[:7]
                out = [(nan(t) if is_nan(v, t) else v) if is_nan(u, t) or 0 < u < s else 0 for v, u in zip(g, a)]
                self.check("relu_backward", [(g, [len(g)], t), (a, [len(g)], t)], (t, (len(g),), out))

    def test_formats_and_coefficients(self):
        r = random.Random(17)
        for t in FORMATS:
            def draw(n):
                return [r.randrange(infinity(t)) | r.choice((0, sign_bit(t))) for _ in range(n)]
            x, y = draw(300), draw(300)
            x[:150] = [rounded(-value(b, t) * F(1 + r.randrange(9), 8), t) for b in y[:150]]  # sums that cancel
            n = len(x)
            for text in ("1", "0.1", "-0.75", "1e-9"):
                c = F(float(text))
                sums = [rounded(value(a, t) + c * value(b, t), t) for a, b in zip(x, y)]
                self.check("add", [(x, [n], t), (y, [n], t)], (t, (n,), sums), "--attr", "alpha=" + text)
                sums = [rounded(value(a, t) - c * value(b, t), t) for a, b in zip(x, y)]
                self.check("sub", [(x, [n], t), (y, [n], t)], (t, (n,), sums), "--attr", "alpha=" + text)
                if t == "f64":
                    continue
                out = [a if not a & sign_bit(t) and a else rounded(c * value(a, t), t, zero=sign_bit(t) if a & sign_bit(t) and c > 0 else 0)
                       if value(a, t) or c > 0 else 0 for a in x]
                self.check("leaky_relu", [(x, [n], t)], (t, (n,), out), "--attr", "slope=" + text)
            products = [rounded(value(a, t) * value(b, t), t, zero=(a ^ b) & sign_bit(t)) for a, b in zip(x, y)]
            self.check("mul", [(x, [n], t), (y, [n], t)], (t, (n,), products))
            if t != "f64":
                self.check("relu", [(x, [n], t)], (t, (n,), [0 if a & sign_bit(t) else a for a in x]))

    def test_bounds(self):
        """clamp, clip, hardtanh, threshold, hardshrink, nan_to_num and their backward operations, options as decimals."""
        for t in FORMATS:
            s, top, x = sign_bit(t), infinity(t), self.patterns(t, 37)
            g, n = x[11:] + x[:11], len(x)

            def pattern(v):
                """RN of a double."""
                v = float(v)
                if math.isnan(v):
                    return nan(t)
                sign = s if math.copysign(1, v) < 0 else 0
                return sign | top if math.isinf(v) else rounded(F(v), t, zero=sign)

            def real(a):
                """Comparable with doubles and fractions."""
                return math.nan if is_nan(a, t) else (-math.inf if a & s else math.inf) if a & ~s == top else value(a, t)

            def pick(f, a, b):
                return nan(t) if is_nan(a, t) or is_nan(b, t) else f(a, b, key=lambda v: -(v & ~s) - 1 if v & s else v)

            def clamped(a, lo, hi):
                return pick(min, pick(max, a, lo), hi)

            def computed(a):
                return nan(t) if is_nan(a, t) else a

            def check(op, f, operands, **options):
                given = [o for k, v in options.items() for o in ("--attr", "%s=%s" % (k, v))]
                self.check(op, [(v, [n], t) for v in operands], (t, (n,), [f(*v) for v in zip(*operands)]), *given)

            lo, hi = x[7:] + x[:7], x[3:] + x[:3]
            check("clip", clamped, (x, lo, hi))
            check("clamp", computed, (x,))
            check("nan_to_num", lambda a: 0 if is_nan(a, t) else a - 1 if a & ~s == top else a, (x,))
            bounds = [("-1.5", "0.1"), ("-0", "0"), ("0", "-0"), ("1.00048828125", "1.00390625"), ("-inf", "65520"), ("-1e300", "1e-320"),
                      ("-1e39", "inf"), ("3", "-2"), ("nan", "1"), ("-1", "nan")]
            for a, b in bounds:
                low, high = pattern(a), pattern(b)
                check("clamp", lambda v: clamped(v, low, high), (x,), min=a, max=b)
                check("clamp_backward", lambda u, v: computed(u) if real(low) <= real(v) <= real(high) else 0, (g, x), min=a, max=b)
                if float(a) <= float(b):
                    check("hardtanh", lambda v: clamped(v, low, high), (x,), min_val=a, max_val=b)
                    check("hardtanh_backward", lambda u, v: 0 if real(v) <= real(low) or real(v) >= real(high) else computed(u), (g, x),
                          min_val=a, max_val=b)
            for a, b in bounds:
                if a == "nan":
                    continue
                th, v = float(a), pattern(b)
                check("threshold", lambda u: v if real(u) <= th else computed(u), (x,), threshold=a, value=b)
                check("threshold_backward", lambda u, v: 0 if real(v) <= th else computed(u), (g, x), threshold=a)
                check("hardshrink", lambda u: 0 if -th <= real(u) <= th else computed(u), (x,), lambd=a)
                check("hardshrink_backward", lambda u, v: 0 if -th <= real(v) <= th else computed(u), (g, x), lambd=a)
                check("nan_to_num", lambda u: v if is_nan(u, t) else pattern(a) if u == top else u - 1 if u == s | top else u, (x,),
                      nan=b, posinf=a)

    def test_logical(self):
        """where, masked_fill: the bits of what is chosen; logical_and, logical_or, logical_xor, logical_not."""
        r = random.Random(38)
        for t in FORMATS:
            s, x = sign_bit(t), self.patterns(t, 39)
            y, n = x[13:] + x[:13], len(x)
            c = [r.randrange(2) for _ in x]
            self.check("where", [(c, [n], "bool"), (x, [n], t), (y, [n], t)], (t, (n,), [a if k else b for k, a, b in zip(c, x, y)]))
            self.check("where", [([1], [], "bool"), (x, [n], t), ([0], [1], t)], (t, (n,), x))
            for text in ("0", "-0", "1.00390625", "nan", "-inf", "1e39", "-65519.99"):
                v = float(text)
                sign = s if math.copysign(1, v) < 0 else 0
                fill = nan(t) if v != v else sign | infinity(t) if math.isinf(v) else rounded(F(v), t, zero=sign)
                self.check("masked_fill", [(x, [n], t), (c, [n], "bool")], (t, (n,), [fill if k else a for k, a in zip(c, x)]),
                           "--attr", "value=" + text)
            self.logical(t, x, y, lambda a: a & ~s != 0)
        self.logical("bool", [0, 0, 1, 1], [0, 1, 0, 1], bool)

    def logical(self, t, x, y, truth):
        n = len(x)
        for op, f in (("logical_and", lambda a, b: a and b), ("logical_or", lambda a, b: a or b), ("logical_xor", lambda a, b: a != b)):
            out = [int(f(truth(a), truth(b))) for a, b in zip(x, y)]
            self.check(op, [(x, [n], t), (y, [n], t)], ("bool", (n,), out))
        self.check("logical_not", [(x, [n], t)], ("bool", (n,), [int(not truth(a)) for a in x]))
    def test_several_operands(self):
        r = random.Random(37)
        for t in ("f16", "bf16", "f32"):
            s = sign_bit(t)
            x, y, z = ([r.randrange(1, infinity(t)) | r.choice((0, s)) for _ in range(200)] for _ in range(3))
            # small integers, whose sums and quotients are ties or cancel; and x near -y z
            x, y, z = (v + [rounded(F(r.randrange(1, 65) * r.choice((1, -1)), 8), t) for _ in range(200)] for v in (x, y, z))
            x[:60] = [c if c & ~s not in (0, infinity(t)) else 1
                      for c in (rounded(-value(a, t) * value(b, t), t) for a, b in zip(y[:60], z[:60]))]
            n = len(x)
            three, two = [(v, [n], t) for v in (x, y, z)], [(v, [n], t) for v in (x, y)]

            def all_of(f, *operands):
                return t, (n,), [f(*(value(a, t) for a in v)) for v in zip(*operands)]

            def exactly(f):
                return lambda *v: rounded(f(*v), t)
            for text in ("1", "-0.3", "1e-9"):
                c = F(float(text))
                self.check("addcmul", three, all_of(exactly(lambda a, b, d: a + c * b * d), x, y, z), "--attr", "value=" + text)
                self.check("addcdiv", three, all_of(exactly(lambda a, b, d: a + c * b / d), x, y, z), "--attr", "value=" + text)
                self.check("lerp_scalar", two, all_of(exactly(lambda a, b: a + c * (b - a)), x, y), "--attr", "weight=" + text)
            self.check("lerp", three, all_of(exactly(lambda a, b, w: a + w * (b - a)), x, y, z))

            def slope(a, b, w):  # a zero has the sign of the product
                return rounded(b if a > 0 else w * b, t, zero=s if a <= 0 and (w < 0) != (b < 0) else 0)
            self.check("prelu", two, all_of(lambda a, w: slope(a, a, w), x, y))
            self.check("prelu_backward", [(v, [n], t) for v in (y, x, z)], all_of(slope, x, y, z))
            self.check("reglu", two, all_of(lambda a, b: rounded(max(a, 0) * b, t, zero=s if b < 0 else 0), x, y))
            self.check("reglu_backward_a", [(v, [n], t) for v in (y, x, z)],
                       all_of(lambda g, a, b: rounded(g * b, t) if a > 0 else 0, y, x, z))

            def root(a, b):
                q = (a * a + b * b) * 4 ** 400
                i = math.isqrt(q.numerator // q.denominator)  # hundreds of bits; a sticky bit below
                return rounded((F(i) + (0 if i * i == q else F(1, 2))) / 2 ** 400, t)
            self.check("hypot", two, all_of(root, x, y))
        one, inf, quiet, minus = 0x3F800000, 0x7F800000, 0x7FC00000, 1 << 31
        self.check("hypot", [([inf, quiet, quiet, minus], [4]), ([quiet, minus | inf, one, minus], [4])], ("f32", (4,), [inf, inf, quiet, 0]))

    def test_remainders(self):
        r = random.Random(38)
        for t in FORMATS:
            s, inf, quiet = sign_bit(t), infinity(t), nan(t)
            near = [rounded(F(r.randrange(1, 4000) * r.choice((1, -1)), 8), t) for _ in range(150)]
            wide = [r.randrange(1, inf) | r.choice((0, s)) for _ in range(300)]
            x, y = near + wide, near[::-1] + wide[::-1]
            x += [1 | s, 0, s, inf, quiet, near[0], near[1], s | inf, near[2]]
            y += [rounded(F(1), t), s | 1, 1, near[0], near[0], 0, inf, s | inf, s | inf]
            n = len(x)

            def special(a, b):
                return a & ~s >= inf or b & ~s >= inf or b & ~s == 0

            def remainder(a, b, integer, zero):
                if special(a, b):
                    if a & ~s >= inf or is_nan(b, t) or b & ~s == 0:
                        return quiet
                    return b if integer is math.floor and (a ^ b) & s and a & ~s else zero & s if a & ~s == 0 else a
                u, v = value(a, t), value(b, t)
                return rounded(u - v * integer(u / v), t, zero=zero & s)

            def quotient(a, b, integer):
                sign = (a ^ b) & s
                if special(a, b):
                    if is_nan(a, t) or is_nan(b, t) or (a & ~s == inf and b & ~s == inf) or (a & ~s == 0 and b & ~s == 0):
                        return quiet
                    if a & ~s == inf or b & ~s == 0:
                        return sign | inf
                    return rounded(F(-1), t) if integer is math.floor and sign and a & ~s else sign
                return rounded(F(integer(value(a, t) / value(b, t))), t, zero=sign)
            for op, f in (("fmod", lambda a, b: remainder(a, b, math.trunc, a)), ("remainder", lambda a, b: remainder(a, b, math.floor, b)),
                          ("div_trunc", lambda a, b: quotient(a, b, math.trunc)), ("div_floor", lambda a, b: quotient(a, b, math.floor))):
                self.check(op, [(x, [n], t), (y, [n], t)], (t, (n,), [f(a, b) for a, b in zip(x, y)]))

    def test_sqrt(self):
        x = [v & ~(1 << 31) for v in self.two()[0]] + [0, 1 << 31, 0xBF800000, 0x7F800000, 0x7FC00001]

        def root(v):
            if v in (0, 1 << 31, 0x7F800000):
                return v
            if v >> 31 or is_nan(v):
                return nan("f32")
            q = value(v) * 4 ** 200
            r = math.isqrt(q.numerator // q.denominator)  # about 130 bits; a sticky bit below
            exact = r * r == q
            return rounded((F(r) + (0 if exact else F(1, 2))) / 2 ** 200)
        self.check("sqrt", [(x, [len(x)])], ("f32", (len(x),), [root(v) for v in x]))

    def transcendental(self, op, f, x, special, fmt="f32"):
        def out(v):
            d = value(v, fmt)
            return rounded(F(f(decimal.Decimal(d.numerator) / decimal.Decimal(d.denominator))), fmt)
        xs = x + list(special)
        self.check(op, [(xs, [len(xs)], fmt)], (fmt, (len(xs),), [out(v) for v in x] + list(special.values())))

    def test_transcendental(self):
        inf, zero, minus, nans = 0x7F800000, 0, 1 << 31, {0x7F800001: nan("f32"), 0xFFC00000: nan("f32")}
        near = finite_patterns(self.n, 5, 0x3D000000, 0x42000000)
        one = 0x3F800000
        hard = [0x42B17217, 0xC2CFF1B4, 0xC2AEAC50, 0x42B17218 - 2, 0x33800000, 0xB3000001]
        self.transcendental("exp", lambda d: d.exp(), near + hard,
                            {inf: inf, inf | minus: zero, zero: one, minus: one, 0x43000000: inf, 0xC3800000: zero, **nans})
        self.transcendental("log", lambda d: d.ln(), [v & ~minus for v in near] + [0x4C5D65A5, 0x65D890D3, 1, 0x7F7FFFFF, 0x3F800001],
                            {inf: inf, zero: inf | minus, minus: inf | minus, one: zero, 0xBF800000: nan("f32"), **nans})
        tanh = [v for v in near if v & ~minus < 0x41100000] + [0x39800000, 0x41102CB3, 0xBF800000]
        self.transcendental("tanh", lambda d: 1 - 2 / ((2 * d).exp() + 1), tanh,
                            {zero: zero, minus: minus, inf: one, inf | minus: one | minus, 1: 1, 0x42000000: one, **nans})
        self.transcendental("sigmoid", lambda d: 1 / (1 + (-d).exp()), near + [0x3A000000, 0xB9FFFFFF, 0xC2CFF1B4],
                            {zero: 0x3F000000, minus: 0x3F000000, inf: one, inf | minus: zero, **nans})

    def test_circular_and_error_functions(self):
        inf, zero, minus, one, nans = 0x7F800000, 0, 1 << 31, 0x3F800000, {0x7F800001: nan("f32"), 0xFFC00000: nan("f32")}
        with decimal.localcontext(decimal.Context(prec=200)):  # 2^128 has 39 digits, erfc 10 begins with 44 zeros
            def arctan_of_reciprocal(n):
                return sum(decimal.Decimal((-1) ** k) / ((2 * k + 1) * n ** (2 * k + 1)) for k in range(150))
            pi = 16 * arctan_of_reciprocal(5) - 4 * arctan_of_reciprocal(239)

            def sine(d, quarters):
                d = d.remainder_near(2 * pi) + quarters * pi / 2
                term = total = d
                for k in range(1, 100):
                    term *= -d * d / (2 * k * (2 * k + 1))
                    total += term
                return total

            def error_function(d):
                z, power, total, k = d * d, d, d, 0
                while power and abs(power) > abs(total) * decimal.Decimal(10) ** -190:
                    k += 1
                    power *= -z / k
                    total += power / (2 * k + 1)
                return 2 * total / pi.sqrt()
            root = decimal.Decimal(2).sqrt()
            near = finite_patterns(self.n, 6, 0x3D000000, 0x42000000)
            large = finite_patterns(self.n // 4, 7, 0x42000000, 0x7F7FFFFF) + [0x6FF9BE45, 0x7F7FFFFF]
            self.transcendental("sin", lambda d: sine(d, 0), near + large,
                                {inf: nan("f32"), inf | minus: nan("f32"), zero: zero, minus: minus, 1: 1, **nans})
            self.transcendental("cos", lambda d: sine(d, 1), near + large,
                                {inf: nan("f32"), zero: one, minus: one, minus | 1: one, **nans})
            middle = finite_patterns(self.n // 4, 8, 0x3D000000, 0x41180000)
            self.transcendental("erf", error_function, [v for v in middle if v & ~minus < 0x40800000],
                                {zero: zero, minus: minus, inf: one, inf | minus: one | minus, **nans})
            self.transcendental("erfc", lambda d: 1 - error_function(d), middle,
                                {zero: one, inf: zero, inf | minus: 0x40000000, 0x41400000: zero, **nans})
            def inverse_error_function(d):
                y = d if abs(d) < decimal.Decimal("0.5") else (-(1 - d * d).ln()).sqrt().copy_sign(d)
                for _ in range(12):
                    y += (d - error_function(y)) * pi.sqrt() / 2 * (y * y).exp()
                return y
            self.transcendental("erfinv", inverse_error_function,
                                finite_patterns(self.n // 16, 9, 0x3D000000, 0x3F7FFFFF) + [0x3F7FFFFF, 0xBF7FFFFF],
                                {zero: zero, minus: minus, one: inf, one | minus: inf | minus, inf: nan("f32"), 0xBF800001: nan("f32"),
                                 1: 1, **nans})
            inverses = {zero: inf, minus: inf, one: zero, 0x40000000: inf | minus, 0x40000001: nan("f32"), minus | 1: nan("f32"), inf: nan("f32"), **nans}
            self.transcendental("erfcinv", lambda d: inverse_error_function(1 - d),
                                [v & ~minus for v in finite_patterns(self.n // 16, 10, 0x3C000000, 0x40000000)] + [0x3F7FFFFF, 0x3F800001], inverses)
            quantiles = {zero: inf | minus, minus: inf | minus, 0x3F000000: zero, one: inf, 0x3F800001: nan("f32"), minus | 1: nan("f32"), **nans}
            self.transcendental("ndtri", lambda d: -root * inverse_error_function(1 - 2 * d),
                                [v & ~minus for v in finite_patterns(self.n // 16, 11, 0x3B800000, one)] + [0x3EFFFFFF, 0x3F000001], quantiles)
            self.transcendental("gelu", lambda d: d / 2 * (1 + error_function(d / root)), middle + [1, 3, minus | 1, minus | 3],
                                {zero: zero, minus: minus, inf: inf, inf | minus: minus, **nans})
            exponent = (8 / pi).sqrt()
            self.transcendental("gelu_tanh", lambda d: d / (1 + (-exponent * (d + decimal.Decimal("0.044715") * d ** 3)).exp()),
                                middle + [1, 3, minus | 1, minus | 3],
                                {zero: zero, minus: minus, inf: inf, inf | minus: minus, **nans})
    def test_transcendental_in_every_format(self):
        """Arguments from [-4, 4] (of logarithms [1/64, 16]), and special ones."""
        log1p = lambda d: (1 + d).ln() if abs(d) > decimal.Decimal("1e-9") else d - d * d / 2 + d * d * d / 3
        functions = {"exp": lambda d: d.exp(), "exp2": lambda d: (d * decimal.Decimal(2).ln()).exp(),
                     "expm1": lambda d: d.exp() - 1, "log": lambda d: d.ln(), "log2": lambda d: d.ln() / decimal.Decimal(2).ln(),
                     "log10": lambda d: d.log10(), "log1p": log1p, "rsqrt": lambda d: 1 / d.sqrt(),
                     "tanh": lambda d: 1 - 2 / ((2 * d).exp() + 1), "sigmoid": lambda d: 1 / (1 + (-d).exp()),
                     "log_sigmoid": lambda d: -(1 + (-d).exp()).ln()}
        r = random.Random(30)
        for fmt in ("f16", "bf16", "f32"):
            one, two, inf, minus, quiet = rounded(1, fmt), rounded(2, fmt), infinity(fmt), sign_bit(fmt), nan(fmt)
            low, half, zero = rounded(-1, fmt), rounded(F(1, 2), fmt), 0
            nans = {quiet: quiet, quiet | minus | 1: quiet}
            domain = {zero: inf | minus, minus: inf | minus, inf: inf, low: quiet, inf | minus: quiet, one: zero}
            odd = {zero: zero, minus: minus, 1: 1}
            special = {"exp": {zero: one, minus: one, inf: inf, inf | minus: zero},
                       "exp2": {zero: one, minus: one, one: two, low: half, inf: inf, inf | minus: zero},
                       "expm1": {**odd, inf: inf, inf | minus: low}, "log": domain, "log2": {**domain, two: one, half: low},
                       "log10": {**domain, rounded(10, fmt): one, rounded(100, fmt): two},
                       "log1p": {**odd, inf: inf, low: inf | minus, inf | minus: quiet, rounded(-2, fmt): quiet},
                       "rsqrt": {zero: inf, minus: inf | minus, inf: zero, low: quiet, rounded(F(1, 4), fmt): two},
                       "tanh": {**odd, inf: one, inf | minus: low}, "sigmoid": {zero: half, minus: half, inf: one, inf | minus: zero},
                       "log_sigmoid": {inf: minus, inf | minus: inf | minus}}
            for name, f in functions.items():
                positive = name in ("log", "log2", "log10", "rsqrt")
                x = [F(r.randrange(1, 1 << 30), 1 << 26) for _ in range(200)] if positive else \
                    [F(r.randrange(-(1 << 28), 1 << 28), 1 << 26) for _ in range(200)]
                x = [v for v in x if name != "log1p" or v > F(-63, 64)]
                x = [rounded(v + F(1, 64) if positive else v, fmt) for v in x]
                x = [v for v in x if v not in special[name]]
                self.transcendental(name, f, x, {**special[name], **nans}, fmt)

    def test_inverse_and_hyperbolic_functions(self):
        """Arguments from [-4, 4], or where the function is defined, and special ones."""
        r = random.Random(31)
        with decimal.localcontext(decimal.Context(prec=100)):
            def arctangent(d):
                for _ in range(8):
                    d /= 1 + (1 + d * d).sqrt()
                term, total = d, d
                for k in range(1, 30):
                    term *= -d * d
                    total += term / (2 * k + 1)
                return 256 * total
            half_pi = 2 * arctangent(decimal.Decimal(1))
            ln2 = decimal.Decimal(2).ln()
            arcsine = lambda d: arctangent(d / (1 - d * d).sqrt())

            def sine(d, k=1):  # k = 0: cosine
                term = total = d**k if k else decimal.Decimal(1)
                for n in range(k, 160, 2):
                    term *= -d * d / ((n + 1) * (n + 2))
                    total += term
                return total
            cosine = lambda d: sine(d, 0)

            def density_integral(d):  # the integral of e^(-t^2 / 2) from 0
                term, total = d, d
                for n in range(1, 200):
                    term *= -d * d / (2 * n)
                    total += term / (2 * n + 1)
                return total
            ln10 = decimal.Decimal(10).ln()
            pi = 2 * half_pi
            functions = {"asin": arcsine, "acos": lambda d: half_pi - arcsine(d), "atan": arctangent,
                         "sinh": lambda d: (d.exp() - (-d).exp()) / 2, "cosh": lambda d: (d.exp() + (-d).exp()) / 2,
                         "asinh": lambda d: (d + (d * d + 1).sqrt()).ln(), "acosh": lambda d: (d + (d * d - 1).sqrt()).ln(),
                         "atanh": lambda d: ((1 + d) / (1 - d)).ln() / 2,
                         "cbrt": lambda d: (abs(d).ln() / 3).exp().copy_sign(d), "exp10": lambda d: (d * decimal.Decimal(10).ln()).exp(),
                         "exp2m1": lambda d: (d * ln2).exp() - 1, "exp10m1": lambda d: (d * ln10).exp() - 1,
                         "log2p1": lambda d: (1 + d).ln() / ln2, "log10p1": lambda d: (1 + d).ln() / ln10,
                         "ndtr": lambda d: decimal.Decimal("0.5") + density_integral(d) / (2 * pi).sqrt(),
                         "log_ndtr": lambda d: (decimal.Decimal("0.5") + density_integral(d) / (2 * pi).sqrt()).ln(),
                         "tan": lambda d: sine(d) / cosine(d), "sinpi": lambda d: sine(d * pi), "cospi": lambda d: cosine(d * pi),
                         "tanpi": lambda d: sine(d * pi) / cosine(d * pi), "sinc": lambda d: sine(d * pi) / (d * pi)}
            domains = {"asin": (-1, 1), "acos": (-1, 1), "acosh": (1, 5), "atanh": (-1, 1), "log2p1": (-1, 4), "log10p1": (-1, 4)}
            for fmt in FORMATS:
                zero, one, inf, minus, quiet = 0, rounded(F(1), fmt), infinity(fmt), sign_bit(fmt), nan(fmt)
                two, low, least = rounded(F(2), fmt), one | minus, 1
                right, straight = rounded(F(half_pi), fmt), rounded(F(2 * half_pi), fmt)
                nans, odd = {quiet: quiet, quiet | minus | 1: quiet}, {zero: zero, minus: minus, least: least, least | minus: least | minus}
                outside = {two: quiet, two | minus: quiet, inf: quiet, inf | minus: quiet}
                half_of, log_half = rounded(F(1, 2), fmt), rounded(F(-ln2), fmt)
                special = {"asin": {**odd, **outside, one: right, low: right | minus},
                           "acos": {**outside, zero: right, minus: right, least: right, one: zero, low: straight},
                           "atan": {**odd, inf: right, inf | minus: right | minus}, "sinh": {**odd, inf: inf, inf | minus: inf | minus},
                           "cosh": {zero: one, minus: one, least: one, inf: inf, inf | minus: inf}, "asinh": {**odd, inf: inf, inf | minus: inf | minus},
                           "acosh": {one: zero, inf: inf, zero: quiet, low: quiet, inf | minus: quiet},
                           "atanh": {**odd, **outside, one: inf, low: inf | minus},
                           "cbrt": {zero: zero, minus: minus, inf: inf, inf | minus: inf | minus, rounded(F(27), fmt): rounded(F(3), fmt)},
                           "exp10": {zero: one, minus: one, two: rounded(F(100), fmt), inf: inf, inf | minus: zero},
                           "exp2m1": {zero: zero, minus: minus, two: rounded(F(3), fmt), inf: inf, inf | minus: low},
                           "exp10m1": {zero: zero, minus: minus, one: rounded(F(9), fmt), two: rounded(F(99), fmt), inf: inf, inf | minus: low},
                           "log2p1": {zero: zero, minus: minus, one: one, low: inf | minus, two | minus: quiet, inf: inf, inf | minus: quiet},
                           "log10p1": {zero: zero, minus: minus, rounded(F(9), fmt): one, rounded(F(99), fmt): two, low: inf | minus,
                                       two | minus: quiet, inf: inf, inf | minus: quiet},
                           "log_ndtr": {zero: log_half, minus: log_half, least: log_half, inf: minus, inf | minus: inf | minus},
                           "ndtr": {zero: half_of, minus: half_of, least: half_of, inf: one, inf | minus: zero},
                           "tan": {**odd, inf: quiet, inf | minus: quiet},
                           "sinpi": {zero: zero, minus: minus, one: zero, low: minus, two | minus: minus, inf: quiet, inf | minus: quiet},
                           "cospi": {zero: one, minus: one, least: one, one: low, low: low, two: one, inf: quiet, inf | minus: quiet},
                           "tanpi": {zero: zero, minus: minus, one: minus, low: zero, two: zero, two | minus: minus, inf: quiet,
                                     inf | minus: quiet},
                           "sinc": {zero: one, minus: one, least: one, one: zero, low: zero, two | minus: zero, inf: quiet,
                                    inf | minus: quiet}}
                for sign in (0, minus):  # odd multiples of 1/2
                    half, more = rounded(F(1, 2), fmt) | sign, rounded(F(3, 2), fmt) | sign
                    special["sinpi"] |= {half: one | sign, more: one | minus - sign}
                    special["cospi"] |= {half: zero, more: zero}
                    special["tanpi"] |= {half: inf | sign, more: inf | minus - sign, rounded(F(1, 4), fmt) | sign: one | sign}
                for name, f in functions.items():
                    lo, hi = domains.get(name, (-4, 4))
                    x = [rounded(F(r.randrange((lo << 26) + 1, hi << 26), 1 << 26), fmt) for _ in range(200)]
                    x = [v for v in x if v not in special[name] and value(v, fmt)]
                    if name in ("sinpi", "cospi", "tanpi", "sinc"):
                        x = [v for v in x if (4 * value(v, fmt)).denominator > 1]
                    self.transcendental(name, f, x, {**special[name], **nans}, fmt)

    def test_gamma_functions(self):
        """Arguments from [-8, 8], and special ones. By the recurrence to numbers above 40 and Stirling's series there."""
        bernoulli = [F(1)]
        for n in range(1, 41):
            bernoulli.append(-sum(math.comb(n + 1, j) * bernoulli[j] for j in range(n)) / (n + 1))
        r = random.Random(32)
        with decimal.localcontext(decimal.Context(prec=80)):
            two_pi = 8 * sum(decimal.Decimal(c) * sum((-1) ** k / decimal.Decimal((2 * k + 1) * n ** (2 * k + 1)) for k in range(60))
                             for c, n in ((4, 5), (-1, 239)))
            decimals = [decimal.Decimal(b.numerator) / b.denominator for b in bernoulli]

            def shifted(d):  # z, the product and the sum of the inverses
                product, inverses = decimal.Decimal(1), decimal.Decimal(0)
                while d < 40:
                    product, inverses, d = product * d, inverses + 1 / d, d + 1
                return d, product, inverses

            def stirling(z):
                series = sum(decimals[2 * k] / (2 * k * (2 * k - 1) * z ** (2 * k - 1)) for k in range(1, 21))
                return (z - decimal.Decimal("0.5")) * z.ln() - z + two_pi.ln() / 2 + series

            def lgamma(d):
                z, product, _ = shifted(d)
                return stirling(z) - abs(product).ln()

            def tgamma(d):
                z, product, _ = shifted(d)
                return stirling(z).exp() / product

            def digamma(d):
                z, _, inverses = shifted(d)
                return z.ln() - 1 / (2 * z) - sum(decimals[2 * k] / (2 * k * z ** (2 * k)) for k in range(1, 21)) - inverses
            for fmt in ("f16", "bf16", "f32"):
                zero, one, two, inf, minus, quiet = 0, rounded(F(1), fmt), rounded(F(2), fmt), infinity(fmt), sign_bit(fmt), nan(fmt)
                nans, whole = {quiet: quiet, quiet | minus | 1: quiet}, {rounded(F(n), fmt): n for n in range(1, 9)}
                poles = [one | minus, rounded(F(-7), fmt), rounded(F(-(1 << 14)), fmt)]
                x = [rounded(F(r.randrange(-(1 << 29), 1 << 29), 1 << 26), fmt) for _ in range(200)]
                x = [v for v in x if value(v, fmt).denominator > 1]
                self.transcendental("lgamma", lgamma, x + [rounded(F(3), fmt)], {
                    zero: inf, minus: inf, one: zero, two: zero, inf: inf, inf | minus: inf, **{p: inf for p in poles}, **nans}, fmt)
                self.transcendental("tgamma", tgamma, x, {
                    zero: inf, minus: inf | minus, inf: inf, inf | minus: quiet, **{p: quiet for p in poles},
                    **{v: rounded(F(math.factorial(n - 1)), fmt) for v, n in whole.items()}, **nans}, fmt)
                self.transcendental("digamma", digamma, x + [one, two], {
                    zero: inf | minus, minus: inf, inf: inf, inf | minus: quiet, **{p: quiet for p in poles}, **nans}, fmt)

    def test_bessel(self):
        """The power series, of arguments from [-4, 4], and special ones."""
        r = random.Random(32)
        with decimal.localcontext(decimal.Context(prec=100)):
            def bessel(n, d):  # n = 0 or 1
                term = total = (d / 2)**n if n else decimal.Decimal(1)
                for k in range(1, 60):
                    term *= d * d / (4 * k * (k + n))
                    total += term
                return total
            functions = {"i0": lambda d: bessel(0, d), "i1": lambda d: bessel(1, d),
                         "i0e": lambda d: bessel(0, d) * (-abs(d)).exp(), "i1e": lambda d: bessel(1, d) * (-abs(d)).exp()}
            for fmt in ("f16", "bf16", "f32"):
                zero, one, inf, minus, quiet = 0, rounded(F(1), fmt), infinity(fmt), sign_bit(fmt), nan(fmt)
                nans = {quiet: quiet, quiet | minus | 1: quiet}
                special = {"i0": {zero: one, minus: one, 1: one, inf: inf, inf | minus: inf},
                           "i1": {zero: zero, minus: minus, 1: 1, minus | 3: minus | 2, inf: inf, inf | minus: inf | minus},
                           "i0e": {zero: one, minus: one, 1: one, inf: zero, inf | minus: zero},
                           "i1e": {zero: zero, minus: minus, 1: zero, minus | 3: minus | 1, inf: zero, inf | minus: minus}}
                for name, f in functions.items():
                    x = [rounded(F(r.randrange(-(1 << 28), 1 << 28), 1 << 26), fmt) for _ in range(200)]
                    x = [v for v in x if v not in special[name]]
                    self.transcendental(name, f, x, {**special[name], **nans}, fmt)

    def test_pow(self):
        r = random.Random(18)
        for t in ("f16", "bf16", "f32"):
            x = [rounded(F(r.randrange(1, 4000), 1000), t) for _ in range(60)]
            y = [rounded(F(r.randrange(-9000, 9000), 1000), t) for _ in range(60)]
            x += [rounded(F(n), t) for n in (2, 3, 5, 7, 9, 25)] + [rounded(F(-3), t)] * 3
            y += [rounded(F(n), t) for n in (-3, 4, F(1, 2), 3, F(3, 2), F(-1, 2))] + [rounded(F(n), t) for n in (3, -2, 4)]

            def power(a, b):
                a, b = value(a, t), value(b, t)
                if b.denominator == 1:
                    return rounded(a ** int(b), t)
                d = (decimal.Decimal(b.numerator) / b.denominator * (decimal.Decimal(a.numerator) / a.denominator).ln()).exp()
                near = F(d).limit_denominator(2 ** 60)
                root = b.denominator <= 4 and near ** b.denominator == a ** b.numerator
                return rounded(near if root else F(d), t)
            self.check("pow", [(x, [len(x)], t), (y, [len(x)], t)], (t, (len(x),), [power(a, b) for a, b in zip(x, y)]))
        for t in ("f16", "bf16", "f32"):  # the scalar is the double that it is
            x = [rounded(F(r.randrange(1, 4000), 1000), t) for _ in range(60)]
            n, s = len(x), sign_bit(t)
            real = [decimal.Decimal(value(v, t).numerator) / value(v, t).denominator for v in x]
            for scalar in (0.7, -2.3, 1 / 3, 1 + 2.0 ** -52):
                d = decimal.Decimal(scalar)
                self.check("pow_scalar", [(x, [n], t)], (t, (n,), [rounded(F((d * v.ln()).exp()), t) for v in real]), "--attr", "exponent=%r" % scalar)
                if scalar > 0:
                    self.check("scalar_pow", [(x, [n], t)], (t, (n,), [rounded(F((v * d.ln()).exp()), t) for v in real]), "--attr", "base=%r" % scalar)
            x = [v | s for v in x[:30]] + x[30:]
            self.check("pow_scalar", [(x, [n], t)], (t, (n,), [rounded(value(v, t) ** 2, t) for v in x]))
            self.check("pow_scalar", [(x, [n], t)], (t, (n,), [rounded(value(v, t) ** 5, t) for v in x]), "--attr", "exponent=5")
            self.check("pow_scalar", [(x, [n], t)], (t, (n,), [rounded(value(v, t) ** -3, t) for v in x]), "--attr", "exponent=-3")
            whole = [rounded(F(k), t) for k in range(-14, 15)]
            self.check("scalar_pow", [(whole, [29], t)], (t, (29,), [rounded(F(2) ** k, t) for k in range(-14, 15)]))
            self.check("scalar_pow", [(whole, [29], t)], (t, (29,), [rounded(F(-3) ** k, t) for k in range(-14, 15)]), "--attr", "base=-3")
            one, quiet = rounded(F(1), t), nan(t)
            for scalar, x, out in ((2.0 ** 53 - 1, one | s, one | s), (2.0 ** 53, one | s, one), (2.0 ** 24 + 1, s, s), (2.0 ** 24 + 2, s, 0),
                                   (1 + 2.0 ** -52, one | s, quiet), (0.5, s | infinity(t), infinity(t)), (math.nan, one, one), (math.inf, one | s, one),
                                   (-math.inf, s, infinity(t)), (math.nan, quiet | 1, quiet), (-0.0, quiet | 1, one)):
                self.check("pow_scalar", [([x], [1], t)], (t, (1,), [out]), "--attr", "exponent=%r" % scalar)
            for scalar, x, out in ((1 + 2.0 ** -52, infinity(t), infinity(t)), (-1.0, infinity(t), one), (-1 - 2.0 ** -52, infinity(t) | s, 0),
                                   (2.0 ** -1074, one | s, infinity(t)), (-0.0, one | s, infinity(t) | s), (1.0, quiet, one), (math.nan, s, one)):
                self.check("scalar_pow", [([x], [1], t)], (t, (1,), [out]), "--attr", "base=%r" % scalar)
        one, inf, minus, quiet = 0x3F800000, 0x7F800000, 1 << 31, 0x7FC00001
        special = [(one, quiet, one), (quiet, 0, one), (quiet, minus, one), (quiet, one, nan("f32")), (minus | one, inf, one),
                   (minus, 0x3F000000, 0), (minus | inf, 0x3F000000, inf), (minus, minus | one, inf | minus),
                   (0xC0000000, 0x3F000000, nan("f32")), (0x40000000, inf | minus, 0), (0x3F000000, inf | minus, inf)]
        x, y, out = map(list, zip(*special))
        self.check("pow", [(x, [len(x)]), (y, [len(x)])], ("f32", (len(x),), out))

    def test_several_transcendental(self):
        r = random.Random(39)

        def decimals(v):
            return decimal.Decimal(v.numerator) / v.denominator
        for t in ("f16", "bf16", "f32"):
            x, y = ([rounded(F(r.randrange(1, 9000) * r.choice((1, -1)) + F(1, 2), 1000), t) for _ in range(60)] for _ in range(2))
            n, s = len(x), sign_bit(t)
            positive = [v & ~s for v in y]
            out = [rounded(F(decimals(value(a, t)) * decimals(value(b, t)).ln()), t) for a, b in zip(x, positive)]
            self.check("xlogy", [(x, [n], t), (positive, [n], t)], (t, (n,), out))
            out = [rounded(F((decimals(value(a, t)).exp() + decimals(value(b, t)).exp()).ln()), t) for a, b in zip(x, y)]
            self.check("logaddexp", [(x, [n], t), (y, [n], t)], (t, (n,), out))
            for options in ({}, {"alpha": 0.3, "scale": -1.5, "rate": 0.7}):
                c, scale, rate = (F(options.get(name, 1.0)) for name in ("alpha", "scale", "rate"))

                def elu(a):
                    v = value(a, t)
                    return rounded(scale * v if v > 0 else F(decimals(scale * c) * (decimals(rate * v).exp() - 1)), t)
                flags = [part for name, v in options.items() for part in ("--attr", "%s=%r" % (name, v))]
                self.check("elu", [(x, [n], t)], (t, (n,), [elu(a) for a in x]), *flags)
        # D = -c and D = c w: the sign of the rest decides a tie.
        self.check("elu", [([0xC47A0000], [1])], ("f32", (1,), [0xBF800001]), "--attr", "alpha=%r" % (1 + 3 * 2.0 ** -24))
        self.check("elu", [([0x80000001, 0x80000003], [2])], ("f32", (2,), [0x80000000, 0x80000001]), "--attr", "alpha=0.5")

    def test_transcendental_gradients(self):
        """From 80 digits. A value that is no rational number keeps its first 80, a rational one is exact in them or rounded."""
        r = random.Random(41)

        def decimals(v):
            return decimal.Decimal(v.numerator) / v.denominator
        ln2 = decimal.Decimal(2).ln()
        pi = 4 * sum((-1) ** k * (4 * decimal.Decimal(5) ** -(2 * k + 1) - decimal.Decimal(239) ** -(2 * k + 1)) / (2 * k + 1)
                     for k in range(60))

        def sine(d, k):  # sin for k = 1, cos for k = 0
            term, total = d ** k if k else decimal.Decimal(1), decimal.Decimal(0)
            while abs(term) > decimal.Decimal(10) ** -90:
                total, k = total + term, k + 2
                term *= -d * d / (k * (k - 1))
            return total
        for t in ("f16", "bf16", "f32"):
            g, x, y = ([rounded(F(r.randrange(1, 9000) * r.choice((1, -1)) + F(1, 2), 1000), t) for _ in range(60)] for _ in range(3))
            n, s = len(x), sign_bit(t)
            positive = [v & ~s for v in x]

            def check(name, operands, f, *options):
                out = [rounded(F(f(*(decimals(value(v, t)) for v in row))), t) for row in zip(*operands)]
                self.check(name, [(o, [n], t) for o in operands], (t, (n,), out), *(part for v in options for part in ("--attr", v)))
            check("log2_backward", (g, x), lambda g, x: g / (x * ln2))
            check("log10_backward", (g, x), lambda g, x: g / (x * decimal.Decimal(10).ln()))
            check("exp2_backward", (g, x), lambda g, y: g * y * ln2)
            check("xlogy_backward_x", (g, y, positive), lambda g, x, y: g * y.ln())
            check("logaddexp_backward", (g, x, y), lambda g, x, y: g / (1 + (y - x).exp()))
            check("logaddexp2_backward", (g, x, y), lambda g, x, y: g / (1 + ((y - x) * ln2).exp()))
            check("sin_backward", (g, x), lambda g, x: g * sine(x, 0))
            check("cos_backward", (g, x), lambda g, x: -g * sine(x, 1))
            inside = [rounded(F(r.randrange(-999, 1000), 1000), t) for _ in g]
            beyond = [rounded(1 + F(r.randrange(1, 9000), 1000), t) for _ in g]
            check("tan_backward", (g, x), lambda g, y: g * (1 + y * y))
            check("sinh_backward", (g, x), lambda g, x: g * (x.exp() + (-x).exp()) / 2)
            check("cosh_backward", (g, x), lambda g, x: g * (x.exp() - (-x).exp()) / 2)
            check("asin_backward", (g, inside), lambda g, x: g / (1 - x * x).sqrt())
            check("acos_backward", (g, inside), lambda g, x: -g / (1 - x * x).sqrt())
            check("atan_backward", (g, x), lambda g, x: g / (1 + x * x))
            check("asinh_backward", (g, x), lambda g, x: g / (x * x + 1).sqrt())
            check("acosh_backward", (g, beyond), lambda g, x: g / (x * x - 1).sqrt())
            check("atanh_backward", (g, inside), lambda g, x: g / (1 - x * x))
            check("erf_backward", (g, x), lambda g, x: 2 * g / pi.sqrt() * (-x * x).exp())
            check("erfc_backward", (g, x), lambda g, x: -2 * g / pi.sqrt() * (-x * x).exp())
            check("erfinv_backward", (g, x), lambda g, y: g * pi.sqrt() / 2 * (y * y).exp())
            check("ndtri_backward", (g, x), lambda g, y: g * (2 * pi).sqrt() * (y * y / 2).exp())
            check("pow_backward_x", (g, positive, y), lambda g, x, y: g * y * ((y - 1) * x.ln()).exp())
            check("pow_backward_y", (g, positive, y), lambda g, x, y: g * (y * x.ln()).exp() * x.ln())
            for scalar in (0.7, -2.3, 1 / 3, 2.0 ** -30, 1 + 2.0 ** -52):  # the scalar is the double that it is
                d = decimal.Decimal(scalar)
                check("pow_scalar_backward", (g, positive), lambda g, x: g * d * ((d - 1) * x.ln()).exp(), "exponent=%r" % scalar)
                if scalar > 0:
                    check("scalar_pow_backward", (g, y), lambda g, x: g * (x * d.ln()).exp() * d.ln(), "base=%r" % scalar)
            check("pow_scalar_backward", (g, x), lambda g, x: 2 * g * x)
            check("pow_scalar_backward", (g, x), lambda g, x: 5 * g * x ** 4, "exponent=5")
            check("pow_scalar_backward", (g, x), lambda g, x: -3 * g / x ** 4, "exponent=-3")
            check("scalar_pow_backward", (g, y), lambda g, x: g * (x * ln2).exp() * ln2)
        one, two, inf, minus, quiet, large = 0x3F800000, 0x40000000, 0x7F800000, 1 << 31, 0x7FC00001, 0x4C000001

        def special(name, rows, *flags):
            columns = list(zip(*rows))
            self.check(name, [(list(c), [len(rows)]) for c in columns[:-1]], ("f32", (len(rows),), list(columns[-1])), *flags)
        special("log2_backward", [(0, two, 0), (0, minus | two, minus), (one, 0, inf), (one, minus, inf | minus), (0, 0, nan("f32")),
                                  (one, inf, 0), (inf, two, inf), (inf, inf, nan("f32")), (quiet, two, nan("f32"))])
        special("xlogy_backward_x", [(inf, 0, 0, 0), (quiet, minus, minus | one, 0), (one, one, 0, inf | minus), (one, one, minus | one, nan("f32")),
                                     (minus | one, quiet, one, minus), (inf, one, one, nan("f32")), (0, one, 0, nan("f32"))])
        special("logaddexp_backward", [(one, 0, inf, 0), (minus | one, 0, inf, minus), (inf, 0, inf, nan("f32")), (one, inf, 0, one),
                                       (one, inf, inf, nan("f32")), (inf, 0, one, inf), (3, 1, 0, 2), (3, 0, 1, 1), (3, 0, 0, 2), (1, 0, 0, 0)])
        special("cos_backward", [(one, 0, minus), (one, minus, 0), (inf, 0, nan("f32")), (one, inf, nan("f32")), (0, one, minus),
                                 (0x01400000, 0x33800000, minus | 1)])  # -g x is a midpoint, the result nearer to 0
        special("pow_backward_x", [(quiet, quiet, 0, 0), (two, quiet, one, two), (one, 0, two, 0), (one, minus, two, minus), (0, 0, minus | one, nan("f32")),
                                   (one, minus, minus | two, inf), (one, minus | two, 0x3F000000, nan("f32")), (one, one, inf, inf),
                                   (one, minus | one, inf, inf), (one, minus | one, large, minus | large), (one, 0x3F000000, inf, nan("f32"))])
        special("pow_backward_y", [(quiet, 0, 0, 0), (quiet, minus, one, 0), (one, 0, minus | one, inf | minus), (one, minus, minus | one, inf | minus),
                                   (one, minus | one, two, nan("f32")), (minus | one, one, quiet, minus), (one, inf, 0, inf),
                                   (one, inf, minus | one, nan("f32")), (one, two, inf, inf), (one, 0x3F000000, inf, minus)])
        for scalar, rows in ((0.0, [(quiet, quiet, 0), (inf, 0, 0)]), (1.0, [(two, quiet, two), (minus, inf, minus), (quiet, one, nan("f32"))]),
                             (1e300, [(one, minus | one, inf | minus), (one, minus, minus), (large, 0, 0), (0, inf, nan("f32"))]),
                             (2.0 ** 53 - 1, [(1, minus | one, 0x0F800000), (one, minus, 0)]), (-2.0 ** 53, [(one, minus, inf), (one, minus | inf, 0)]),
                             (2.0 ** -1074, [(one, minus, inf), (one, minus | inf, 0), (one, minus | one, nan("f32")), (minus | one, one, minus)]),
                             (1 + 2.0 ** -52, [(one, minus | one, nan("f32")), (minus | one, 0, minus), (one, one, one)]),
                             (math.inf, [(one, two, inf), (one, 0x3F000000, nan("f32")), (minus | one, minus | one, inf | minus)]),
                             (-math.inf, [(one, 0x3F000000, inf | minus), (one, two, nan("f32"))]), (math.nan, [(one, one, nan("f32"))])):
            special("pow_scalar_backward", rows, "--attr", "exponent=%r" % scalar)
        for scalar, rows in ((0.0, [(quiet, 0, 0), (quiet, minus, 0), (one, minus | one, inf | minus), (0, minus | one, nan("f32")), (one, quiet, nan("f32"))]),
                             (-0.0, [(one, one, 0), (one, minus | one, inf | minus)]), (1.0, [(one, quiet, 0), (minus | one, inf, minus), (inf, 0, nan("f32"))]),
                             (-2.0, [(one, two, nan("f32"))]), (2.0 ** -1074, [(one, one, minus), (one, minus | one, inf | minus), (one, minus, 0xC43A1C2A)]),
                             (1 + 2.0 ** -52, [(one, inf, inf), (one, 0, 0x25800000), (one, inf | minus, 0)]), (1 - 2.0 ** -53, [(one, minus, 0xA5000000), (one, inf, minus)]),
                             (math.inf, [(one, 0, inf), (one, minus | one, nan("f32"))]), (math.nan, [(one, 0, nan("f32"))])):
            special("scalar_pow_backward", rows, "--attr", "base=%r" % scalar)

    def test_activations_and_losses(self):
        """From 80 digits, sums exactly."""
        r = random.Random(53)

        def decimals(v):
            return decimal.Decimal(v.numerator) / v.denominator
        one, two = decimal.Decimal(1), decimal.Decimal(2)
        pi = 4 * sum((-1) ** k * (4 * decimal.Decimal(5) ** -(2 * k + 1) - decimal.Decimal(239) ** -(2 * k + 1)) / (2 * k + 1)
                     for k in range(60))

        def logistic(a):
            return one / (one + (-a).exp())

        def series(a, step):  # the sum of a^(2k + 1) step(k) from k = 0
            term, total, k = a, decimal.Decimal(0), 0
            while abs(term) > decimal.Decimal(10) ** -85:
                total += term * step(k)[0]
                term *= a * a * step(k)[1]
                k += 1
            return total

        def normal(a):  # Phi
            v = a / two.sqrt()
            return (one + 2 / pi.sqrt() * series(v, lambda k: (one / (2 * k + 1), -one / (k + 1)))) / 2

        def arctangent(a):
            if abs(a) > one / 2:  # halve the angle
                return 2 * arctangent(a / (one + (one + a * a).sqrt()))
            return series(a, lambda k: (one / (2 * k + 1), -one))
        scale, alpha = (decimal.Decimal(d) for d in ("1.0507009873554804934193349852946", "1.6732632423543772848170429916717"))

        def gelu_tanh(g, x):
            slope = (two / pi).sqrt()
            s = logistic(2 * slope * (x + decimal.Decimal("0.044715") * x ** 3))
            return g * (s + x * 2 * s * (1 - s) * slope * (1 + decimal.Decimal("0.134145") * x * x))

        def mish(g, x):
            square = (one + x.exp()) ** 2
            th = (square - 1) / (square + 1)
            return g * (th + x * (1 - th * th) * logistic(x))

        def selu(g, x):
            return g * scale * (one if x > 0 else alpha * x.exp())
        for t in ("f16", "bf16", "f32"):
            g, x, y = ([rounded(F(r.randrange(1, 4000) * r.choice((1, -1)) + F(1, 2), 1000), t) for _ in range(40)] for _ in range(3))
            n = len(x)
            unit = [rounded(F(2 * k + 1, 97), t) for k in range(n)]

            def check(name, operands, f, *attrs):
                out = [rounded(F(f(*(decimals(value(v, t)) for v in row))), t) for row in zip(*operands)]
                self.check(name, [(o, [n], t) for o in operands], (t, (n,), out), *(w for a in attrs for w in ("--attr", a)))
            check("silu_backward", (g, x), lambda g, x: g * logistic(x) * (1 + x * (1 - logistic(x))))
            check("mish_backward", (g, x), mish)
            check("log_sigmoid_backward", (g, x), lambda g, x: g * logistic(-x))
            check("gelu_backward", (g, x), lambda g, x: g * (normal(x) + x * (-x * x / 2).exp() / (2 * pi).sqrt()))
            check("gelu_tanh_backward", (g, x), gelu_tanh)
            check("leaky_relu_backward", (g, x), lambda g, x: g if x > 0 else g * decimals(F(0.3)), "slope=0.3")
            check("elu_backward", (g, x), lambda g, x: g if x > 0 else g * decimals(F(0.3)) * x.exp(), "alpha=0.3")
            check("selu_backward", (g, x), selu)
            check("celu", (x,), lambda x: x if x > 0 else 2 * ((x / 2).exp() - 1), "alpha=2")
            check("celu_backward", (g, x), lambda g, x: g if x > 0 else g * (x / 2).exp(), "alpha=2")
            check("softplus", (x,), lambda x: x if 2 * x > 1 else (1 + (2 * x).exp()).ln() / 2, "beta=2", "threshold=1")
            check("softplus_backward", (g, x), lambda g, x: g if 2 * x > 1 else g * logistic(2 * x), "beta=2", "threshold=1")
            check("atan2", (y, x), lambda y, x: arctangent(y / x) + (0 if x > 0 else pi if y > 0 else -pi))
            check("logaddexp2", (x, y), lambda x, y: (two ** x + two ** y).ln() / two.ln() if x != y else x + 1)
            check("logit", (unit,), lambda z: (z / (1 - z)).ln())
            check("glu", (x, y), lambda a, b: a * logistic(b))
            check("swiglu", (x, y), lambda a, b: a * logistic(a) * b)
            check("geglu", (x, y), lambda a, b: a * normal(a) * b)
            check("glu_backward_b", (g, x, y), lambda g, a, b: g * a * logistic(b) * logistic(-b))
            check("swiglu_backward_a", (g, x, y), lambda g, a, b: g * b * logistic(a) * (1 + a * logistic(-a)))
            check("geglu_backward_a", (g, x, y), lambda g, a, b: g * b * (normal(a) + a * (-a * a / 2).exp() / (2 * pi).sqrt()))
            check("logit_backward", (g, unit), lambda g, z: g / (z * (1 - z)))
            check("softshrink", (x,), lambda x: (x - 1 if x > 1 else x + 1 if x < -1 else 0 * x), "lambd=1")
            check("softshrink_backward", (g, x), lambda g, x: g if abs(x) > 1 else 0 * abs(g), "lambd=1")
            third = F(0.3)
            losses = {
                "mse_loss": ((), lambda d: d * d, lambda d: 2 * d),
                "l1_loss": ((), abs, lambda d: (d > 0) - (d < 0)),
                "smooth_l1_loss": (("beta=0.3",), lambda d: d * d / (2 * third) if abs(d) < third else abs(d) - third / 2,
                                   lambda d: d / third if abs(d) < third else (d > 0) - (d < 0)),
                "huber_loss": (("delta=0.3",), lambda d: d * d / 2 if abs(d) <= third else third * (abs(d) - third / 2),
                               lambda d: d if abs(d) <= third else third * ((d > 0) - (d < 0))),
            }
            exact = [[value(v, t) for v in o] for o in (g, x, y)]
            for name, (attrs, f, slope) in losses.items():
                options = [w for a in attrs for w in ("--attr", a)]
                elements = [f(a - b) for a, b in zip(*exact[1:])]
                pair = [(x, [n], t), (y, [n], t)]
                self.check(name, pair, (t, (), [rounded(sum(elements), t)]), *options, "--attr", "reduction=sum")
                self.check(name, pair, (t, (), [rounded(sum(elements) / n, t)]), *options)
                self.check(name, pair, (t, (n,), [rounded(e, t) for e in elements]), *options, "--attr", "reduction=none")
                slopes = [slope(a - b) for a, b in zip(*exact[1:])]
                self.check(name + "_backward", [(g[:1], [], t), *pair], (t, (n,), [rounded(exact[0][0] * e / n, t) for e in slopes]), *options)
            margin = [(1 + (-decimals(a * b)).exp()).ln() for a, b in zip(*exact[1:])]
            self.check("soft_margin_loss", [(x, [n], t), (y, [n], t)], (t, (), [rounded(F(sum(margin)) / n, t)]))
            slopes = [decimals(-exact[0][0] * b) * logistic(-decimals(a * b)) / n for a, b in zip(*exact[1:])]
            self.check("soft_margin_loss_backward", [(g[:1], [], t), (x, [n], t), (y, [n], t)], (t, (n,), [rounded(F(e), t) for e in slopes]))
            a, b, w, u = ([decimals(value(v, t)) for v in o] for o in (x, y, g, unit))
            slope = a[0]
            entropies = {  # operands, elements, slopes
                "binary_cross_entropy_with_logits": (
                    (x, y, g, unit), [k * ((1 - q) * p + (1 + (c - 1) * q) * (1 + (-p).exp()).ln()) for p, q, k, c in zip(a, b, w, u)],
                    [k * ((1 - q) * logistic(p) - c * q * logistic(-p)) for p, q, k, c in zip(a, b, w, u)]),
                "binary_cross_entropy": (
                    (unit, y, g), [-k * (q * p.ln() + (1 - q) * (1 - p).ln()) for p, q, k in zip(u, b, w)],
                    [k * (p - q) / (p * (1 - p)) for p, q, k in zip(u, b, w)]),
                "kl_div": ((x, unit), [q * (q.ln() - p) for p, q in zip(a, u)], [-q for q in u]),
                "kl_div log_target": ((x, y), [q.exp() * (q - p) for p, q in zip(a, b)], [-q.exp() for q in b]),
            }
            for name, (operands, elements, slopes) in entropies.items():
                options = ("--attr", "log_target=true") if " " in name else ()
                name = name.split()[0]
                operands = [(o, [n], t) for o in operands]
                for reduction, by in (("sum", 1), ("mean", n)) + ((("batchmean", n),) if name == "kl_div" else ()):
                    self.check(name, operands, (t, (), [rounded(F(sum(elements)) / by, t)]), *options, "--attr", "reduction=" + reduction)
                self.check(name, operands, (t, (n,), [rounded(F(e), t) for e in elements]), *options, "--attr", "reduction=none")
                self.check(name + "_backward", [(x[:1], [], t), *operands], (t, (n,), [rounded(F(slope * e) / n, t) for e in slopes]), *options)

    def test_backward(self):
        r = random.Random(31)
        for t in ("f16", "bf16", "f32"):
            x, y = self.two() if t == "f32" else (
                [r.randrange(1, infinity(t)) | r.choice((0, sign_bit(t))) for _ in range(self.n)] for _ in range(2))
            n = len(x)
            self.check("tanh_backward", [(x, [n], t), (y, [n], t)],
                       (t, (n,), [rounded(value(g, t) * (1 - value(v, t) ** 2), t) for g, v in zip(x, y)]))
            self.check("sigmoid_backward", [(x, [n], t), (y, [n], t)],
                       (t, (n,), [rounded(value(g, t) * value(v, t) * (1 - value(v, t)), t) for g, v in zip(x, y)]))

    def test_gradients(self):
        """In rationals; of selections on all patterns, in order()."""
        r = random.Random(41)
        for t in ("f16", "bf16", "f32"):
            s = sign_bit(t)
            g, x, y = ([r.randrange(1, infinity(t)) | r.choice((0, s)) for _ in range(200)] for _ in range(3))
            g, x, y = (v + [rounded(F(r.randrange(1, 65) * r.choice((1, -1)), 8), t) for _ in range(200)] for v in (g, x, y))
            n = len(g)

            def check(op, f, *operands, zero=lambda *v: 0, attrs=()):
                out = [rounded(F(f(*(value(a, t) for a in v))), t, zero=zero(*v) & s) for v in zip(*operands)]
                self.check(op, [(v, [n], t) for v in operands], (t, (n,), out), *attrs)
            check("sqrt_backward", lambda a, v: a / (2 * v), g, x)
            check("log_backward", lambda a, v: a / v, g, x)
            not_minus_one = [v if value(v, t) != -1 else 1 for v in x]
            check("log1p_backward", lambda a, v: a / (1 + v), g, not_minus_one)
            check("rsqrt_backward", lambda a, v: -a * v ** 3 / 2, g, x)
            check("reciprocal_backward", lambda a, v: -a * v ** 2, g, x)
            check("expm1_backward", lambda a, v: a * (v + 1), g, not_minus_one)
            check("div_backward_y", lambda a, u, v: -a * u / v ** 2, g, x, y)
            check("addcdiv_backward_z", lambda a, u, v: a * F(0.3) * u / v ** 2, g, x, y, attrs=("--attr", "value=-0.3"))
            check("lerp_backward_x", lambda a, v: a * (1 - v), g, x, zero=lambda a, v: a)
            check("lerp_backward_weight", lambda a, u, v: a * (v - u), g, x, y, zero=lambda a, u, v: a)
            check("lerp_scalar_backward_x", lambda a: a * (1 - F(0.3)), g, attrs=("--attr", "weight=0.3"))
            check("hypot_backward", lambda a, u, v: a * u / v, g, x, y)
            check("xlogy_backward_y", lambda a, u, v: a * u / v, g, x, y)
            check("atan2_backward_y", lambda a, u, v: a * v / (u ** 2 + v ** 2), g, x, y)
            check("atan2_backward_x", lambda a, u, v: -a * u / (u ** 2 + v ** 2), g, x, y)
            check("fmod_backward_y", lambda a, u, v: -a * math.trunc(u / v), g, x, y, zero=lambda a, u, v: ~(a ^ u ^ v))
            check("remainder_backward_y", lambda a, u, v: -a * math.floor(u / v), g, x, y, zero=lambda a, u, v: ~(a ^ u ^ v))
        for t in FORMATS:
            s, top, x = sign_bit(t), infinity(t), self.patterns(t, 43)
            n, quiet = len(x), nan(t)
            g, y = x[11:] + x[:11], x[5:] + x[:5]
            y[::3] = x[::3]

            def real(a):
                return math.nan if is_nan(a, t) else (-math.inf if a & s else math.inf) if a & ~s == top else value(a, t)

            def half(a):
                return quiet if is_nan(a, t) else a if a & ~s >= top else rounded(value(a, t) / 2, t, zero=a & s)

            def select(op, f, *operands):
                out = [f(*v) for v in zip(*operands)]
                self.check(op, [(v, [n], t) for v in operands], (t, (n,), [quiet if is_nan(v, t) else v for v in out]))
            select("abs_backward", lambda a, u: quiet if is_nan(u, t) else a ^ (u & s) if u & ~s else 0, g, x)
            select("copysign_backward", lambda a, u, v: quiet if is_nan(u, t) else a ^ ((u ^ v) & s) if u & ~s else 0, g, x, y)
            for op, less in (("maximum_backward", lambda u, v: u < v), ("minimum_backward", lambda u, v: u > v)):
                select(op, lambda a, u, v: half(a) if real(u) == real(v) else 0 if less(real(u), real(v)) else a, g, x, y)
            for to_x, to_y, wins in (("fmax_backward_x", "fmax_backward_y", lambda u, v: u >= v or v != v),
                                     ("fmin_backward_x", "fmin_backward_y", lambda u, v: u <= v or v != v)):
                select(to_x, lambda a, u, v: a if wins(real(u), real(v)) else 0, g, x, y)
                select(to_y, lambda a, u, v: 0 if wins(real(u), real(v)) else a, g, x, y)
            z = x[7:] + x[:7]
            z[::4] = x[::4]
            select("clip_backward", lambda a, u, v, w: a if real(v) <= real(u) <= real(w) else 0, g, x, y, z)
            select("clip_backward_lo", lambda a, u, v, w: a if real(u) < real(v) < real(w) else 0, g, x, y, z)
            select("clip_backward_hi", lambda a, u, v, w: a if real(u) > real(w) or real(w) < real(v) else 0, g, x, y, z)

    def test_activations(self):
        """In rationals; e^x from 80 digits."""
        def exp(v):
            return F((decimal.Decimal(v.numerator) / v.denominator).exp())
        s, a = F("1.0507009873554804934193349852946"), F("1.6732632423543772848170429916717")
        transcendental = {
            "silu": lambda v: v / (1 + exp(-v)),
            "mish": lambda v: v * (1 - 2 / ((1 + exp(v)) ** 2 + 1)),
            "selu": lambda v: s * v if v > 0 else s * a * (exp(v) - 1),
            "tanhshrink": lambda v: v - 1 + 2 / (exp(2 * v) + 1)}
        rational = {
            "relu6": lambda v: min(max(v, 0), 6),
            "hardsigmoid": lambda v: 0 if v <= -3 else v / 6 + F(1, 2) if v < 3 else 1,
            "hardswish": lambda v: 0 if v <= -3 else v * (v + 3) / 6 if v < 3 else v,
            "softsign": lambda v: v / (1 + abs(v))}
        gradients = {
            "relu6_backward": lambda g, v: 0 if v <= 0 or v >= 6 else g,
            "hardsigmoid_backward": lambda g, v: g / 6 if -3 < v < 3 else 0,
            "hardswish_backward": lambda g, v: 0 if v <= -3 else g * (v / 3 + F(1, 2)) if v < 3 else g,
            "softsign_backward": lambda g, v: g / (1 + abs(v)) ** 2}
        r = random.Random(37)
        for t in ("f16", "bf16", "f32"):
            n, minus = 300, sign_bit(t)
            near = [rounded(F(r.randrange(1, 1 << 24), 1 << 21), t) | r.choice((0, minus)) for _ in range(n)]
            wide = [r.randrange(1, infinity(t)) | r.choice((0, minus)) for _ in range(n)]
            for op, f in transcendental.items():
                self.check(op, [(near, [n], t)], (t, (n,), [rounded(f(value(v, t)), t) for v in near]))
            for op, f in rational.items():
                x = near + wide
                signed = op in ("hardswish", "softsign")
                self.check(op, [(x, [len(x)], t)],
                           (t, (len(x),), [rounded(F(f(value(v, t))), t, zero=v & minus if signed else 0) for v in x]))
            for op, f in gradients.items():
                g, x = wide + near + wide, near + wide + wide[1:] + wide[:1]
                self.check(op, [(g, [len(g)], t), (x, [len(x)], t)],
                           (t, (len(g),), [rounded(F(f(value(a, t), value(v, t))), t) for a, v in zip(g, x)]))

    def test_every_isa_and_thread_count(self):
        x, y = self.two()
        n = len(x)
        self.assertEqual(n, len(y))
        info = self.run_repdl("info").stdout
        for isa in ("baseline", "avx2", "avx512"):
            if "isa %-14s yes" % isa not in info:
                continue
            for threads in (1, 3):
                out = [rounded(value(a) + value(b)) for a, b in zip(x, y)]
                self.check("add", [(x, [n]), (y, [n])], ("f32", (n,), out), "--isa", isa, "--threads", threads)

    def test_results_in_other_formats(self):
        r = random.Random(43)
        for a in FORMATS:
            for b in FORMATS:
                if a == b:
                    continue

                def finite():
                    v = r.randrange(infinity(a)) | r.choice((0, sign_bit(a)))
                    if r.randrange(2):  # next to a midpoint of b
                        v = rounded(value(r.randrange(infinity(b)), b) * F(3, 2) + value(r.randrange(1, 4), a), a)
                    return v if value_is_finite(v) else 1

                def value_is_finite(v):
                    return v & ~sign_bit(a) < infinity(a)
                x, y, z = ([finite() for _ in range(60)] for _ in range(3))
                n, sign = len(x), sign_bit(b)
                signs = [sign if (p ^ q) & sign_bit(a) else 0 for p, q in zip(x, y)]
                for op, operands, out in (
                        ("add", (x, y), [rounded(value(p, a) + value(q, a), b) for p, q in zip(x, y)]),
                        ("sub", (x, y), [rounded(value(p, a) - value(q, a), b) for p, q in zip(x, y)]),
                        ("mul", (x, y), [rounded(value(p, a) * value(q, a), b, zero=s) for p, q, s in zip(x, y, signs)]),
                        ("fma", (x, y, z), [rounded(value(p, a) * value(q, a) + value(s, a), b) for p, q, s in zip(x, y, z)])):
                    self.check(op, [(v, [n], a) for v in operands], (b, (n,), out), "--dtype", b)
                y = [v if v & ~sign_bit(a) else 1 for v in y]
                signs = [sign if (p ^ q) & sign_bit(a) else 0 for p, q in zip(x, y)]
                out = [rounded(value(p, a) / value(q, a), b, zero=s) for p, q, s in zip(x, y, signs)]
                self.check("div", [(x, [n], a), (y, [n], a)], (b, (n,), out), "--dtype", b)
        self.check("sqrt", [([0x40800000, 0x80000000, 0xBF800000], [3])], ("f64", (3,), [1 << 62, 1 << 63, nan("f64")]), "--dtype", "f64")


class Structured(Case):
    def test_convert(self):
        r = random.Random(9)
        widths = {"i32": 32, "i64": 64}

        def numbers(a):
            size = 8 * BYTES[a]
            x = [r.randrange(1 << size) for _ in range(300)] + [0, 1, 2, 255]
            if a in FORMATS:
                x += [sign_bit(a), infinity(a), infinity(a) | sign_bit(a), nan(a) | sign_bit(a) | 5, infinity(a) + 1]
                x += [rounded(value(r.randrange(infinity(b)), b) * F(1 + r.randrange(3), 2), a) for b in FORMATS for _ in range(60)]
                near = [s * (2 ** w + F(k, 2)) for w in (0, 31, 63) for k in range(-4, 5) for s in (1, -1)]
                x += [rounded(v, a) for v in near] + [rounded(v, a) ^ 1 for v in near]
            elif a in widths:
                x += [(1 << size - 1) + k & (1 << size) - 1 for k in range(-3, 4)]
                x += [r.randrange(1 << size) >> r.randrange(size) for _ in range(300)]
                # Midpoints of every format, and the integers beside them.
                for p in (12, 9, 25, 54):
                    for e in range(max(0, size - 1 - p)):
                        m = (r.randrange(1 << p - 1) | 1 << p - 1 | 1) << e
                        x += [s * (m + k) & (1 << size) - 1 for k in (-1, 0, 1) for s in (1, -1)]
                x += [s * k & (1 << size) - 1 for k in (65503, 65504, 65519, 65520, 65521, 2 ** 31 - 1, 2 ** 31) for s in (1, -1)]
            return x

        def converted(v, a, b):
            if a == b and b != "bool":
                return v
            if a in FORMATS and is_nan(v, a):
                return nan(b) if b in FORMATS else b == "bool"
            negative = a in FORMATS and v & sign_bit(a) != 0
            if a in FORMATS and v & ~sign_bit(a) == infinity(a):
                exact = F(-(2 ** 2000) if negative else 2 ** 2000)  # beyond every type
            elif a in FORMATS:
                exact = value(v, a)
            else:
                exact = F(v != 0 if a == "bool" else v - (v >> 8 * BYTES[a] - 1 << 8 * BYTES[a]))
            if b == "bool":
                return exact != 0
            if b in widths:
                limit = 1 << widths[b] - 1
                return max(-limit, min(limit - 1, int(exact))) & 2 * limit - 1
            return rounded(exact, b, zero=sign_bit(b) if negative else 0)

        for a in BYTES:
            x = numbers(a)
            for b in BYTES:
                self.check("convert", [(x, [len(x)], a)], (b, (len(x),), [int(converted(v, a, b)) for v in x]), "--dtype", b)

    def test_convert_of_8_bits(self):
        """Files of bytes: the argument says of which format."""
        for name, precision, emin, last, over in (("f8_e4m3fn", 4, -6, 0x7E, 0x7F), ("f8_e5m2", 3, -14, 0x7B, 0x7C)):
            hidden = 1 << precision - 1
            number = lambda i: F(i % hidden + (i >= hidden) * hidden) * F(2) ** (max(i // hidden, 1) - 1 + emin - precision + 1)
            right = [rounded(number(i)) for i in range(last + 1)]
            self.save("wide.npy", right + [rounded((number(i) + number(i + 1)) / 2) for i in range(last + 1)], [2 * last + 2])
            r = self.run_repdl("eval", "convert", "wide.npy", "-o", "narrow.npy", "--dtype", name)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertIn(b"'|u1'", (self.dir / "narrow.npy").read_bytes()[:128])
            got = list((self.dir / "narrow.npy").read_bytes()[128:])
            ties = [i + i % 2 for i in range(last + 1)]
            self.assertEqual(got, list(range(last + 1)) + [over if i > last else i for i in ties])
            r = self.run_repdl("eval", "convert", "narrow.npy:" + name, "-o", "again.npy", "--dtype", "f32")
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertEqual(read_npy(self.dir / "again.npy")[2][:last + 1], right)
            r = self.run_repdl("eval", "convert", "narrow.npy", "-o", "again.npy", "--dtype", "f32")
            self.assertEqual(r.returncode, 2)
            self.assertIn("narrow.npy:f8_e4m3fn or narrow.npy:f8_e5m2, got '|u1'", r.stderr)
            r = self.run_repdl("eval", "neg", "narrow.npy:" + name, "-o", "again.npy")
            self.assertEqual(r.returncode, 2)
            self.assertIn("neg: x: expected f16, bf16, f32 or f64, got " + name, r.stderr)

    def data(self, seed, n):
        x = finite_patterns(n, seed, 0x3A000000, 0x45000000)
        x[0], x[n // 2], x[-1] = 0x7F000000, 0xFF000000, 1  # cancels, and leaves a subnormal that order would lose
        return x

    def test_reductions(self):
        x = self.data(11, 3 * 5 * 7)
        v = [value(b) for b in x]
        at = lambda i, j, k: (i * 5 + j) * 7 + k
        self.check("sum", [(x, [3, 5, 7])], ("f32", (), [rounded(sum(v))]))
        self.check("mean", [(x, [3, 5, 7])], ("f32", (), [rounded(sum(v) / len(v))]))
        middle = [[at(i, j, k) for j in range(5)] for i in range(3) for k in range(7)]
        outer = [[at(i, j, k) for i in range(3) for k in range(7)] for j in range(5)]
        for option, shape, groups in (("axis=1", (3, 7), middle), ("axis=-2", (3, 7), middle), ("axis=0,2", (5,), outer)):
            self.check("sum", [(x, [3, 5, 7])], ("f32", shape, [rounded(sum(v[i] for i in g)) for g in groups]), "--attr", option)
            self.check("mean", [(x, [3, 5, 7])], ("f32", shape, [rounded(sum(v[i] for i in g) / len(g)) for g in groups]), "--attr", option)
            for op, f in (("max", max), ("min", min)):
                self.check(op, [(x, [3, 5, 7])], ("f32", shape, [f((x[i] for i in g), key=order) for g in groups]), "--attr", option)
                self.check("arg" + op, [(x, [3, 5, 7])],
                           ("i64", shape, [f(range(len(g)), key=lambda i: order(x[g[i]])) for g in groups]), "--attr", option)
        self.check("sum", [(x, [3, 5, 7])], ("f32", (3, 1, 7), [rounded(sum(v[i] for i in g)) for g in middle]),
                   "--attr", "axis=1", "--attr", "keepdim=true")
        self.check("sum", [(x, [105])], ("f32", (105,), [b for b in x]), "--attr", "axis=")
        # in another format: one rounding, of what is a tie in f32 but for its last bit
        more = [0x3FF0000000000000, 0x3E70000000000000, 1]
        self.check("sum", [(more, [3], "f64")], ("f32", (), [0x3F800001]), "--attr", "dtype=f32")
        self.check("mean", [([0x3F800000, 0, 0], [3])], ("f64", (), [0x3FD5555555555555]), "--attr", "dtype=f64")
        self.check("dot", [([0x3F800001], [1])] * 2, ("f64", (), [0x3FF0000040000040]), "--attr", "dtype=f64")

    def test_reductions_of_16_bits(self):
        r = random.Random(44)
        for t in ("f16", "bf16"):
            # A few exponents: sums of small integers, which often are ties; any finite numbers, with what cancels.
            for low, high in ((rounded(F(1, 4), t), rounded(F(8), t)), (0, infinity(t))):
                x, y = ([r.randrange(low, high) | r.choice((0, sign_bit(t))) for _ in range(8 * 11)] for _ in range(2))
                x[3], x[-2] = infinity(t) - 1, infinity(t) - 1 | sign_bit(t)
                v, w = [value(b, t) for b in x], [value(b, t) for b in y]
                for option, shape, groups in (("axis=1", (8,), [[i * 11 + j for j in range(11)] for i in range(8)]),
                                              ("axis=0", (11,), [[i * 11 + j for i in range(8)] for j in range(11)])):
                    def check(op, type, f, *operands):
                        self.check(op, [(o, [8, 11], t) for o in operands], (type, shape, [f(g) for g in groups]), "--attr",
                                   *([option] if isinstance(option, str) else option))
                    check("sum", t, lambda g: rounded(sum(v[i] for i in g), t), x)
                    check("mean", t, lambda g: rounded(sum(v[i] for i in g) / len(g), t), x)
                    check("max", t, lambda g: max((x[i] for i in g), key=lambda b: order(b, t)), x)
                    check("min", t, lambda g: min((x[i] for i in g), key=lambda b: order(b, t)), x)
                    check("argmax", "i64", lambda g: max(range(len(g)), key=lambda i: order(x[g[i]], t)), x)
                    check("argmin", "i64", lambda g: min(range(len(g)), key=lambda i: order(x[g[i]], t)), x)
                    check("sum_squares", t, lambda g: rounded(sum(v[i] ** 2 for i in g), t), x)
                    option = [option, "--attr", "p=1"]
                    check("vector_norm", t, lambda g: rounded(sum(abs(v[i]) for i in g), t), x)
                    option = [*option[:-1], "p=-inf"]
                    check("vector_norm", t, lambda g: rounded(min(abs(v[i]) for i in g), t), x)
                    option = [*option[:-1], "p=2"]  # far more bits than the format has
                    check("vector_norm", t, lambda g: rounded(F(2 * math.isqrt(int(sum(v[i] ** 2 for i in g) * 4**400)) + 1, 2**401), t), x)
                    option = option[0]
                    check("prelu_weight_backward", t, lambda g: rounded(sum(v[i] * w[i] for i in g if w[i] <= 0), t), x, y)
                self.check("dot", [(x, [88], t), (y, [88], t)], (t, (), [rounded(sum(a * b for a, b in zip(v, w)), t)]))
            largest, one, half = infinity(t) - 1, rounded(F(1), t), rounded(F(1, 2), t)
            self.check("sum", [([largest, largest, largest | sign_bit(t)], [3], t)], (t, (), [largest]))
            self.check("sum", [([largest, largest], [2], t)], (t, (), [infinity(t)]))
            self.check("dot", [([largest, largest], [2], t), ([largest, largest | sign_bit(t)], [2], t)], (t, (), [0]))
            self.check("dot", [([1, 1], [2], t), ([half, 1], [2], t)], (t, (), [1]))  # half the least number, and more
            self.check("mean", [([1, 0], [2], t)], (t, (), [0]))  # a tie
            self.check("mean", [([], [0], t)], (t, (), [nan(t)]))
            self.check("max", [([one, nan(t) | sign_bit(t) | 1], [2], t)], (t, (), [nan(t)]))
            self.check("argmax", [([sign_bit(t), 0], [2], t)], ("i64", (), [1]))
        # Beyond 2^13 terms, where partial sums of f16 need not be binary64 numbers: 2^14 - 2^-24 to 2^15 + 2^-24, and means.
        x = [0x7BFF] * 9000 + [0xFBFF] * 8999 + [1]
        total = value(0x7BFF, "f16") + value(1, "f16")
        self.check("sum", [(x, [18000], "f16")], ("f16", (), [rounded(total, "f16")]))
        self.check("mean", [(x, [18000], "f16")], ("f16", (), [rounded(total / 18000, "f16")]))

    def test_reductions_of_integers(self):
        r = random.Random(45)
        for t, width in (("i64", 64), ("i32", 32), ("bool", 1)):
            low, high = (0, 1) if t == "bool" else (-(1 << width - 1), (1 << width - 1) - 1)
            # Sums that wrap, with the ends of the range and equal numbers among them; small numbers.
            for few in (low, -2, 0, high), range(low // 2, high, high // 3 + 1), range(-5, 6):
                x = [min(max(r.choice(few) + r.choice((0, 0, r.randrange(-9, 9))), low), high) for _ in range(8 * 11)]
                stored = [v and r.randrange(1, 256) for v in x] if t == "bool" else x  # any byte but 0 is true
                for option, shape, groups in (("axis=1", (8,), [[i * 11 + j for j in range(11)] for i in range(8)]),
                                              ("axis=0", (11,), [[i * 11 + j for i in range(8)] for j in range(11)])):
                    def check(op, type, f):
                        self.check(op, [(stored, [8, 11], t)], (type, shape, [f(g) for g in groups]), "--attr", option)
                    check("sum", "i64", lambda g: sum(x[i] for i in g) % 2**64)
                    check("mean", "f64", lambda g: rounded(F(sum(x[i] for i in g), len(g)), "f64"))
                    check("max", t, lambda g: max(x[i] for i in g) % 2**width)
                    check("min", t, lambda g: min(x[i] for i in g) % 2**width)
                    check("argmax", "i64", lambda g: max(range(len(g)), key=lambda i: x[g[i]]))
                    check("argmin", "i64", lambda g: min(range(len(g)), key=lambda i: x[g[i]]))
                    check("prod", "i64", lambda g: math.prod(x[i] for i in g) % 2**64)
                for op, f in (("cumsum", sum), ("cumprod", math.prod)):
                    self.check(op, [(stored, [8, 11], t)],
                               ("i64", (8, 11), [f(x[i - i % 11:i + 1]) % 2**64 for i in range(88)]), "--attr", "axis=-1")
            self.check("sum", [([], [0], t)], ("i64", (), [0]))
            self.check("mean", [([], [0], t)], ("f64", (), [nan("f64")]))
        self.check("mean", [([2**63 - 1] * 2, [2], "i64")], ("f64", (), [rounded(F(2**63), "f64")]))
        self.check("mean", [([2**53 + 1] * 3, [3], "i64")], ("f64", (), [rounded(F(2**53), "f64")]))  # a tie

    def test_contract_examples(self):
        self.check("mean", [([0x7800] * 70000, [70000], "f16")], ("f16", (), [0x7800]))
        self.check("dot", [([0x6400, 0x6400], [2], "f16"), ([0x6400, 0xE400], [2], "f16")], ("f16", (), [0]))
        self.check("sum", [([0x7F7FFFFF, 0x7F7FFFFF, 0xFF7FFFFF], [3])], ("f32", (), [0x7F7FFFFF]))
        self.check("sum", [([1 << 31, 1 << 31], [2])], ("f32", (), [0]))
        self.check("sum", [([], [0])], ("f32", (), [0]))
        self.check("mean", [([], [0])], ("f32", (), [nan("f32")]))
        self.check("sum", [([0x7F800000, 0xFF800000], [2])], ("f32", (), [nan("f32")]))
        self.check("argmax", [([1 << 31, 0], [2])], ("i64", (), [1]))
        self.check("max", [([0x3F800000, 0xFFC00001], [2])], ("f32", (), [nan("f32")]))

    def test_products(self):
        x, y = self.data(12, 50), self.data(13, 50)
        self.check("dot", [(x, [50]), (y, [50])], ("f32", (), [rounded(sum(value(a) * value(b) for a, b in zip(x, y)))]))
        below = [value(a) * value(b) for a, b in zip(x, y) if value(b) <= 0]
        self.check("prelu_weight_backward", [(x, [50]), (y, [50])], ("f32", (), [rounded(sum(below))]))
        m, k, n = 4, 6, 5
        a, b, bias = self.data(14, m * k), self.data(15, k * n), self.data(16, n)

        def exact(i, j, extra=0):
            return rounded(sum(value(a[i * k + t]) * value(b[t * n + j]) for t in range(k)) + extra)

        def chain(i, j):
            s = 0
            for t in range(k):
                s = rounded(value(a[i * k + t]) * value(b[t * n + j]) + value(s))
            return s
        cells = [(i, j) for i in range(m) for j in range(n)]
        self.check("matmul", [(a, [m, k]), (b, [k, n])], ("f32", (m, n), [exact(i, j) for i, j in cells]))
        self.check("matmul", [(a, [m, k]), (b, [k, n]), (bias, [n])],
                   ("f32", (m, n), [exact(i, j, value(bias[j])) for i, j in cells]))
        small = finite_patterns(m * k, 17, 0x3F000000, 0x40000000), finite_patterns(k * n, 18, 0x3F000000, 0x40000000)
        a, b = small
        self.check("matmul", [(a, [m, k]), (b, [k, n])], ("f32", (m, n), [chain(i, j) for i, j in cells]),
                   "--attr", "accumulate=fma_chain")
        at = [a[i * k + t] for t in range(k) for i in range(m)]
        bt = [b[t * n + j] for j in range(n) for t in range(k)]
        self.check("matmul", [(at, [k, m]), (bt, [n, k])], ("f32", (m, n), [exact(i, j) for i, j in cells]),
                   "--attr", "transpose_a=true", "--attr", "transpose_b=true")
        for t in ("f16", "bf16", "f32"):
            r = random.Random(19)
            a, b, bias = ([r.randrange(1, infinity(t)) | r.choice((0, sign_bit(t))) for _ in range(c)] for c in (m * k, k * n, n))
            for alpha, beta in ((1, 1), (0.1, -2.5), (-3e-9, 0), (0, 7e5)):
                want = [rounded(F(alpha) * sum(value(a[i * k + l], t) * value(b[l * n + j], t) for l in range(k))
                                + F(beta) * value(bias[j], t), t) for i, j in cells]
                self.check("matmul", [(a, [m, k], t), (b, [k, n], t), (bias, [n], t)], (t, (m, n), want),
                           "--attr", "alpha=%r" % alpha, "--attr", "beta=%r" % beta)

    def test_uniform(self):
        seed, stream, n = 2**64 - 3, 2**40 + 5, 37

        def fraction(fmt, i):
            if fmt == "f64":
                w = philox(seed, stream, i // 2)
                return F((w[i % 2 * 2] | w[i % 2 * 2 + 1] << 32) >> 11, 2**53)
            keep = {"f32": 24, "f16": 11, "bf16": 8}[fmt]
            return F(philox(seed, stream, i // 4)[i % 4] >> (32 - keep), 2**keep)
        for fmt in FORMATS:
            common = ["--dtype", fmt, "--attr", "seed=%d" % seed, "--attr", "stream=%d" % stream]
            u = [fraction(fmt, i) for i in range(n)]
            self.check("uniform", [], (fmt, (37,), [rounded(v, fmt) for v in u]), "--attr", "shape=37", *common)
            low, high = F(0.1), F(-3.0)
            self.check("uniform", [], (fmt, (37, 1), [rounded(low + (high - low) * v, fmt) for v in u]), "--attr", "shape=37,1",
                       "--attr", "low=0.1", "--attr", "high=-3", *common)

    def test_exponential(self):
        for fmt in FORMATS:
            bits = 64 if fmt == "f64" else 32
            w = [philox(7, 3, i // (128 // bits)) for i in range(21)]
            w = [b[i % 2 * 2] | b[i % 2 * 2 + 1] << 32 if bits == 64 else b[i % 4] for i, b in enumerate(w)]
            logs = [-F((decimal.Decimal(v + 1) / 2**bits).ln()) for v in w]
            for rate in (1.0, 0.3, 2.0**120):
                numbers = [max(rounded(v / F(rate), fmt), 1) for v in logs]  # never 0: the least positive number instead
                self.check("exponential", [], (fmt, (21,), numbers), "--dtype", fmt, "--attr", "shape=21",
                           "--attr", "seed=7", "--attr", "stream=3", "--attr", "rate=%r" % rate)

    def test_sequences(self):
        for fmt in FORMATS:
            for start, last in ((0.0, 1.0), (-0.1, 0.7), (1.0, 2.0**-12), (-0.0, -0.0), (2.0**200, -(2.0**200)), (3.0, 2.0**-200)):
                for n in (0, 1, 2, 11, 100):
                    common = ["--dtype", fmt, "--attr", "count=%d" % n, "--attr", "start=%r" % start]
                    values = [F(start) + i * (F(last) - F(start)) / max(n - 1, 1) for i in range(n)]
                    self.check("linspace", [], (fmt, (n,), [rounded(v, fmt) for v in values]), "--attr", "end=%r" % last, *common)
                    values = [F(start) + i * F(last) for i in range(n)]
                    self.check("arange", [], (fmt, (n,), [rounded(v, fmt) for v in values]), "--attr", "step=%r" % last, *common)

    def test_permutation(self):
        words = []
        for i in range(100):
            w = philox(7, 3, i // 2)
            words.append((w[i % 2 * 2] | w[i % 2 * 2 + 1] << 32, i))
        self.check("permutation", [], ("i64", (100,), [i for _, i in sorted(words)]), "--attr", "n=100", "--attr", "seed=7",
                   "--attr", "stream=3")
        self.check("permutation", [], ("i64", (0,), []), "--attr", "n=0")

    def test_multinomial(self):
        r = random.Random(48)
        for t in ("f16", "bf16", "f32", "f64"):
            rows, n = 3, 23
            x = [r.randrange(infinity(t)) if i % 4 else r.choice((0, 1, infinity(t) - 1)) for i in range(rows * n)]
            weights = [value(v, t) for v in x]
            for samples in (1, 11):
                def word(k):
                    w = philox(7, 3, k // 2)
                    return w[k % 2 * 2] | w[k % 2 * 2 + 1] << 32
                drawn, kept = [], []
                for row in range(rows):
                    w = weights[row * n:(row + 1) * n]
                    for j in range(samples):
                        drawn.append(next(i for i in range(n) if sum(w[:i + 1]) * 2**64 > word(row * samples + j) * sum(w)))
                    keys = sorted((rounded(-F((decimal.Decimal(word(row * n + i) + 1) / 2**64).ln()) / w[i], "f64"), i)
                                  for i in range(n) if w[i])
                    kept += [i for _, i in keys[:samples]]
                common = ["--attr", "num_samples=%d" % samples, "--attr", "seed=7", "--attr", "stream=3"]
                self.check("multinomial", [(x, [rows, n], t)], ("i64", (rows, samples), drawn), "--attr", "replacement=true", *common)
                self.check("multinomial", [(x, [rows, n], t)], ("i64", (rows, samples), kept), *common)

    def test_convolution(self):
        x, w, g = self.data(21, 9), self.data(22, 4), self.data(23, 4)
        X, W, G = [value(v) for v in x], [value(v) for v in w], [value(v) for v in g]
        taps = [(r, s) for r in range(2) for s in range(2)]
        self.check("conv2d", [(x, [1, 1, 3, 3]), (w, [1, 1, 2, 2])],
                   ("f32", (1, 1, 2, 2), [rounded(sum(X[(i + r) * 3 + j + s] * W[2 * r + s] for r, s in taps)) for i, j in taps]))
        back = [rounded(sum(G[2 * (i - r) + j - s] * W[2 * r + s] for r, s in taps if 0 <= i - r < 2 and 0 <= j - s < 2))
                for i in range(3) for j in range(3)]
        self.check("conv2d_grad_input", [(g, [1, 1, 2, 2]), (w, [1, 1, 2, 2])], ("f32", (1, 1, 3, 3), back), "--attr", "size=3")
        self.check("conv2d_grad_weight", [(g, [1, 1, 2, 2]), (x, [1, 1, 3, 3])],
                   ("f32", (1, 1, 2, 2), [rounded(sum(X[(i + r) * 3 + j + s] * G[2 * i + j] for i, j in taps)) for r, s in taps]),
                   "--attr", "kernel=2,2")
        self.check("conv2d_grad_bias", [(g, [1, 1, 2, 2])], ("f32", (1,), [rounded(sum(G))]))

    def test_pooling(self):
        x, two = [0x80000000, 0, 0x3F800000, 0xBF800000], ("--attr", "kernel=1,2")
        g = [0x3F800000, 0x40000000]
        self.check("max_pool2d", [(x, [1, 1, 2, 2])], ("f32", (1, 1, 2, 1), [0, 0x3F800000]), *two)
        self.check("max_pool2d_backward", [(g, [1, 1, 2, 1]), (x, [1, 1, 2, 2])], ("f32", (1, 1, 2, 2), [0, 0x3F800000, 0x40000000, 0]), *two)
        self.check("avg_pool2d", [([0x7F7FFFFF, 0x7F7FFFFF, 1, 0], [1, 1, 2, 2])], ("f32", (1, 1, 2, 1), [0x7F7FFFFF, 0]), *two)
        self.check("avg_pool2d_backward", [(g, [1, 1, 2, 1])], ("f32", (1, 1, 2, 2), [0x3F000000, 0x3F000000, 0x3F800000, 0x3F800000]),
                   "--attr", "size=2,2", *two)

    def test_pooling_of_every_format(self):
        r = random.Random(45)
        h, w, oh, ow = 5, 6, 3, 3  # 2x3, stride 2, to be rounded up: windows over the lower and the right edge

        def taps(y, x):
            return [(i, j) for i in (2 * y, 2 * y + 1) for j in (2 * x, 2 * x + 1, 2 * x + 2) if i < h and j < w]
        windows = [taps(y, x) for y in range(oh) for x in range(ow)]
        pixels = [(i, j) for i in range(h) for j in range(w)]
        common = ["--attr", "kernel=2,3", "--attr", "stride=2", "--attr", "ceil_mode=true"]
        size = ["--attr", "size=%d,%d" % (h, w)]
        for t in ("f16", "bf16", "f32", "f64"):
            for low, high in ((rounded(F(1, 4), t), rounded(F(8), t)), (0, infinity(t)), (0, 40)):
                x, g = ([r.randrange(low, high) | r.choice((0, sign_bit(t))) for _ in range(n)] for n in (h * w, oh * ow))
                at, winner = dict(zip(pixels, x)), {}
                for k, v in enumerate(windows):
                    winner[k] = max(v, key=lambda p: order(at[p], t))  # the first one
                image, pooled = (x, [1, 1, h, w], t), (g, [1, 1, oh, ow], t)
                self.check("max_pool2d", [image], (t, (1, 1, oh, ow), [at[winner[k]] for k in winner]), *common)
                self.check("max_pool2d_backward", [pooled, image],
                           (t, (1, 1, h, w), [rounded(sum(value(g[k], t) for k in winner if winner[k] == p), t) for p in pixels]), *common)
                for divisor in (None, -6, 7):
                    n = [divisor or len(v) for v in windows]
                    options = common + (["--attr", "divisor_override=%d" % divisor] if divisor else [])
                    self.check("avg_pool2d", [image],
                               (t, (1, 1, oh, ow), [rounded(sum(value(at[p], t) for p in v) / n[k], t) for k, v in enumerate(windows)]),
                               *options)
                    back = [rounded(sum(value(g[k], t) / n[k] for k, v in enumerate(windows) if p in v), t) for p in pixels]
                    self.check("avg_pool2d_backward", [pooled], (t, (1, 1, h, w), back), *options, *size)

    def check_with_indices(self, op, image, values, where, *options):
        given = self.save("x.npy", *image)
        done = self.run_repdl("eval", op, given, "-o", "max.npy", "-o", "where.npy", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(read_npy(self.dir / "max.npy")[2], values)
        self.assertEqual(read_npy(self.dir / "where.npy")[::2], ("i64", where))

    def test_upsampling(self):
        r = random.Random(47)
        for t in ("f16", "bf16", "f32", "f64"):
            for h, w, oh, ow, scale, exact in ((2, 3, 4, 9, None, False), (5, 4, 3, 7, None, True), (3, 4, 8, 5, 2.6, False), (6, 5, 4, 3, 0.7, True)):
                def source(o, image, size):
                    at = (o + (F(1, 2) if exact else 0)) * (F(image, size) if scale is None else 1 / F(scale))
                    return min(math.floor(at), image - 1)
                rows, columns = [source(o, h, oh) for o in range(oh)], [source(o, w, ow) for o in range(ow)]
                x, g = ([r.randrange(rounded(F(1, 4), t), rounded(F(8), t)) | r.choice((0, sign_bit(t))) for _ in range(n)]
                        for n in (h * w, oh * ow))
                options = ["--attr", "exact=%s" % str(exact).lower()]
                if scale is not None:
                    options += ["--attr", "scale_h=%r" % scale, "--attr", "scale_w=%r" % scale]
                self.check("upsample_nearest2d", [(x, [1, 1, h, w], t)], (t, (1, 1, oh, ow), [x[i * w + j] for i in rows for j in columns]),
                           "--attr", "size=%d,%d" % (oh, ow), *options)
                sums = [F(0)] * (h * w)
                for v, (i, j) in zip(g, [(i, j) for i in rows for j in columns]):
                    sums[i * w + j] += value(v, t)
                self.check("upsample_nearest2d_backward", [(g, [1, 1, oh, ow], t)], (t, (1, 1, h, w), [rounded(v, t) for v in sums]),
                           "--attr", "size=%d,%d" % (h, w), *options)

    def test_adaptive_pooling_and_indices(self):
        r = random.Random(46)
        for t in ("f16", "bf16", "f32", "f64"):
            for h, w, oh, ow in ((5, 7, 3, 4), (4, 6, 2, 3), (2, 3, 5, 4)):
                def taps(y, x):  # where [i, i + 1) and [y, y + 1) h / oh meet
                    return [(i, j) for i in range(h) for j in range(w)
                            if max(i, F(y * h, oh)) < min(i + 1, F((y + 1) * h, oh)) and max(j, F(x * w, ow)) < min(j + 1, F((x + 1) * w, ow))]
                windows = [taps(y, x) for y in range(oh) for x in range(ow)]
                pixels = [(i, j) for i in range(h) for j in range(w)]
                x, g = ([r.randrange(rounded(F(1, 4), t), rounded(F(8), t)) | r.choice((0, sign_bit(t))) for _ in range(n)]
                        for n in (h * w, oh * ow))
                at = dict(zip(pixels, x))
                winner = [max(v, key=lambda p: order(at[p], t)) for v in windows]
                image, pooled, size = (x, [1, 1, h, w], t), (g, [1, 1, oh, ow], t), ["--attr", "size=%d,%d" % (oh, ow)]
                greatest, where = [at[p] for p in winner], [i * w + j for i, j in winner]
                self.check("adaptive_max_pool2d", [image], (t, (1, 1, oh, ow), greatest), *size)
                self.check_with_indices("adaptive_max_pool2d_with_indices", image, greatest, where, *size)
                self.check("adaptive_max_pool2d_backward", [pooled, image],
                           (t, (1, 1, h, w), [rounded(sum(value(g[k], t) for k, q in enumerate(winner) if q == p), t) for p in pixels]))
                self.check("adaptive_avg_pool2d", [image],
                           (t, (1, 1, oh, ow), [rounded(sum(value(at[p], t) for p in v) / len(v), t) for v in windows]), *size)
                back = [rounded(sum(value(g[k], t) / len(v) for k, v in enumerate(windows) if p in v), t) for p in pixels]
                self.check("adaptive_avg_pool2d_backward", [pooled], (t, (1, 1, h, w), back), "--attr", "size=%d,%d" % (h, w))
                if oh < h:  # windows of 2 x 3 that overlap, the first ones over the left edge
                    lists = [[(i, j) for i in (y, y + 1) for j in (2 * k - 1, 2 * k, 2 * k + 1) if 0 <= j < w]
                             for y in range(h - 1) for k in range((w - 2) // 2 + 1)]
                    winner = [max(v, key=lambda p: order(at[p], t)) for v in lists]
                    self.check_with_indices("max_pool2d_with_indices", image, [at[p] for p in winner], [i * w + j for i, j in winner],
                                            "--attr", "kernel=2,3", "--attr", "stride=1,2", "--attr", "padding=0,0,1,0")

    def test_volumes(self):
        r = random.Random(48)

        def places(*sizes):
            return list(itertools.product(*map(range, sizes)))

        def moved(a, b):
            return tuple(i + j for i, j in zip(a, b))
        pixels, outputs, taps = places(3, 2, 4), places(2, 1, 3), places(2, 2, 2)
        volume, pooled, kernel = [1, 1, 3, 2, 4], [1, 1, 2, 1, 3], [1, 1, 2, 2, 2]
        for t in ("f16", "bf16", "f32", "f64"):
            x, w, g = ([r.randrange(rounded(F(1, 4), t), rounded(F(8), t)) | r.choice((0, sign_bit(t))) for _ in range(n)] for n in (24, 8, 6))
            at = dict(zip(pixels, x))
            X, W, G = ({p: value(v, t) for p, v in zip(*pair)} for pair in ((pixels, x), (taps, w), (outputs, g)))
            image, weights, gradient = (x, volume, t), (w, kernel, t), (g, pooled, t)
            self.check("conv3d", [image, weights], (t, tuple(pooled), [rounded(sum(X[moved(o, k)] * W[k] for k in taps), t) for o in outputs]))
            back = [rounded(sum(G[o] * W[k] for o in outputs for k in taps if moved(o, k) == p), t) for p in pixels]
            self.check("conv3d_grad_input", [gradient, weights], (t, tuple(volume), back), "--attr", "size=3,2,4")
            self.check("conv3d_grad_weight", [gradient, image], (t, tuple(kernel), [rounded(sum(X[moved(o, k)] * G[o] for o in outputs), t) for k in taps]),
                       "--attr", "kernel=2")
            self.check("conv3d_grad_bias", [gradient], (t, (1,), [rounded(sum(G.values()), t)]))
            common = ["--attr", "kernel=2", "--attr", "stride=1"]
            windows = [[moved(o, k) for k in taps] for o in outputs]
            # From floor(i h / oh) to ceil((i + 1) h / oh) - 1, of three planes in two, two rows in one and four columns in three.
            adaptive = [[p for p in pixels if all(i * n // m <= q < -(-(i + 1) * n // m) for q, i, n, m in zip(p, o, (3, 2, 4), (2, 1, 3)))] for o in outputs]
            for name, lists, options in (("", windows, common), ("adaptive_", adaptive, ["--attr", "size=2,1,3"])):
                winner = [max(v, key=lambda p: order(at[p], t)) for v in lists]
                values, where = [at[p] for p in winner], [pixels.index(p) for p in winner]
                self.check({"": "max_pool3d", "adaptive_": "adaptive_max_pool3d"}[name], [image], (t, tuple(pooled), values), *options)
                self.check_with_indices({"": "max_pool3d_with_indices", "adaptive_": "adaptive_max_pool3d_with_indices"}[name], image, values, where, *options)
                self.check({"": "max_pool3d_backward", "adaptive_": "adaptive_max_pool3d_backward"}[name], [gradient, image],
                           (t, tuple(volume), [rounded(sum(G[o] for o, q in zip(outputs, winner) if q == p), t) for p in pixels]),
                           *([] if name else common))
                self.check({"": "avg_pool3d", "adaptive_": "adaptive_avg_pool3d"}[name], [image],
                           (t, tuple(pooled), [rounded(sum(X[p] for p in v) / len(v), t) for v in lists]), *options)
                self.check({"": "avg_pool3d_backward", "adaptive_": "adaptive_avg_pool3d_backward"}[name], [gradient],
                           (t, tuple(volume), [rounded(sum(G[o] / len(v) for o, v in zip(outputs, lists) if p in v), t) for p in pixels]),
                           "--attr", "size=3,2,4", *([] if name else common))

    def test_interpolation(self):
        r = random.Random(50)

        def linear(u, n):
            u = max(u, F(0))
            i = min(math.floor(u), n - 1)
            part = min(u - i, F(1))
            return [(i, 1 - part), (min(i + 1, n - 1), part)]

        def cubic(u, n):
            i, a = math.floor(u), F(-3, 4)

            def weight(d):
                d = abs(d)
                return (a + 2) * d**3 - (a + 3) * d**2 + 1 if d <= 1 else a * (d**3 - 5 * d**2 + 8 * d - 4)
            return [(min(max(j, 0), n - 1), weight(u - j)) for j in range(i - 1, i + 3)]
        for t in ("f16", "bf16", "f32", "f64"):
            for name, taps in (("linear", linear), ("cubic", cubic)):
                for h, w, oh, ow, corners in ((2, 3, 4, 7, False), (5, 4, 3, 6, True), (3, 6, 3, 2, False)):
                    def axis(n, m):
                        return [taps(F(o * (n - 1), m - 1) if corners else (o + F(1, 2)) * F(n, m) - F(1, 2), n) for o in range(m)]
                    both = [[(i * w + j, a * b) for i, a in row for j, b in column] for row in axis(h, oh) for column in axis(w, ow)]
                    x, g = ([r.randrange(rounded(F(1, 4), t), rounded(F(8), t)) | r.choice((0, sign_bit(t))) for _ in range(n)] for n in (h * w, oh * ow))
                    options = ["--attr", "align_corners=%s" % str(corners).lower()]
                    forward, backward = {"linear": ("upsample_linear", "upsample_linear_backward"), "cubic": ("upsample_cubic", "upsample_cubic_backward")}[name]
                    self.check(forward, [(x, [1, 1, h, w], t)], (t, (1, 1, oh, ow), [rounded(sum(value(x[i], t) * a for i, a in v), t) for v in both]),
                               "--attr", "size=%d,%d" % (oh, ow), *options)
                    sums = [sum(value(g[k], t) * a for k, v in enumerate(both) for i, a in v if i == p) for p in range(h * w)]
                    self.check(backward, [(g, [1, 1, oh, ow], t)], (t, (1, 1, h, w), [rounded(F(v), t) for v in sums]), "--attr", "size=%d,%d" % (h, w), *options)

    def test_prefixes(self):
        r = random.Random(49)
        for t in ("f16", "bf16", "f32", "f64"):
            # Few bits, so that products are ties; any finite numbers, whose products overflow and underflow.
            for low, high in ((rounded(F(1, 2), t), rounded(F(3), t)), (0, infinity(t))):
                rows, n = 4, 9
                x = [r.randrange(low, high) | r.choice((0, sign_bit(t))) for _ in range(rows * n)]
                v = [value(b, t) for b in x]
                sums, products = [], []
                for row in range(rows):
                    for i in range(n):
                        part = range(row * n, row * n + i + 1)
                        negative = sum(x[k] & sign_bit(t) != 0 for k in part) % 2
                        sums.append(rounded(sum(v[k] for k in part), t))
                        products.append(rounded(math.prod(abs(v[k]) for k in part), t) | (sign_bit(t) if negative else 0))
                self.check("cumsum", [(x, [rows, n], t)], (t, (rows, n), sums), "--attr", "axis=1")
                self.check("cumprod", [(x, [rows, n], t)], (t, (rows, n), products), "--attr", "axis=-1")
                self.check("prod", [(x, [rows, n], t)], (t, (rows,), products[n - 1::n]), "--attr", "axis=1")
            x = [rounded(F(r.randrange(-2000, 2000), 256), t) for _ in range(n)]
            e = [(decimal.Decimal(d.numerator) / decimal.Decimal(d.denominator)).exp() for d in (F(value(b, t)) for b in x)]
            logs = [rounded(F(sum(e[:i + 1]).ln()), t) for i in range(1, n)]
            self.check("logcumsumexp", [(x, [n], t)], (t, (n,), [x[0] if value(x[0], t) else 0] + logs))

    def test_exponents(self):
        r = random.Random(50)
        for t in ("f16", "bf16", "f32", "f64"):
            width, precision, emin, emax, _ = FORMATS[t]
            x = [r.randrange(infinity(t)) | r.choice((0, sign_bit(t))) for _ in range(300)] + [1, 1 | sign_bit(t), infinity(t) - 1]
            n = []
            for b in x:
                v = abs(value(b, t)) or F(1)
                lead = v.numerator.bit_length() - v.denominator.bit_length()
                # To subnormal numbers, to the border of overflow, anywhere.
                n.append(r.choice((emin - r.randrange(precision + 2) - lead, emax + r.randrange(-1, 3) - lead, r.randrange(-3000, 3000))))
            scaled = [rounded(value(b, t) * F(2) ** k, t, b) for b, k in zip(x, n)]
            for e in ("i64", "i32"):
                self.check("ldexp", [(x, [len(x)], t), (n, [len(x)], e)], (t, (len(x),), scaled))
            ends = [2**63 - 1, -2**63, 5]
            special = [0, sign_bit(t), infinity(t), infinity(t) | sign_bit(t), nan(t) | sign_bit(t)]
            kept = special[:4] + [nan(t)]
            self.check("ldexp", [(special, [5], t), (ends, [3, 1], "i64")], (t, (3, 5), kept * 3))
            one = rounded(F(1), t)
            self.check("ldexp", [([one, one | sign_bit(t)], [2], t), (ends, [3, 1], "i64")],
                       (t, (3, 2), [infinity(t), infinity(t) | sign_bit(t), 0, sign_bit(t), rounded(F(32), t), rounded(F(-32), t)]))

            given = self.save("x.npy", x + special, [len(x) + 5], t)
            done = self.run_repdl("eval", "frexp", given, "-o", "m.npy", "-o", "e.npy")
            self.assertEqual(done.returncode, 0, done.stderr)
            (m_type, _, m), (e_type, _, e) = read_npy(self.dir / "m.npy"), read_npy(self.dir / "e.npy")
            self.assertEqual((m_type, e_type), (t, "i32"))
            for b, p, k in zip(x, m, e):
                k -= k >> 31 << 32
                self.assertEqual(value(p, t) * F(2) ** k, value(b, t))
                self.assertTrue(value(b, t) == 0 and (p, k) == (b, 0) or F(1, 2) <= abs(value(p, t)) < 1)
            self.assertEqual((m[-5:], e[-5:]), (kept, [0] * 5))

    def test_attention(self):
        r = random.Random(51)

        def decimals(v):
            return decimal.Decimal(v.numerator) / v.denominator
        heads, groups, queries, keys, size, columns = 4, 2, 5, 7, 3, 2

        def numbers(n, t, within=4):
            return [rounded(F(r.randrange(-1000, 1000) or 1, 1000) * within, t) for _ in range(n)]
        for t in ("f16", "bf16", "f32"):
            given = [(numbers(heads * queries * size, t), [heads, queries, size], t), (numbers(groups * keys * size, t), [groups, keys, size], t),
                     (numbers(groups * keys * columns, t), [groups, keys, columns], t)]
            q, k, v = ([value(b, t) for b in x] for x, _, _ in given)
            boolean = ([r.randrange(4) > 0 for _ in range(queries * keys)], [queries, keys], "bool")
            added = (numbers(heads * keys, t, 2), [heads, 1, keys], t)
            added[0][3] = infinity(t) | sign_bit(t)
            slopes = (numbers(heads, "f32", 1), [heads], "f32")
            for more, attrs, is_seen in (([], {}, lambda d: True), ([boolean], {"causal": "true", "bottom_right": "true"}, lambda d: d <= 0),
                                         ([added, slopes], {"scale": "0.3", "left": "2", "right": "1"}, lambda d: -2 <= d <= 1)):
                off = keys - queries if "bottom_right" in attrs else 0
                scale = decimals(F(float(attrs.get("scale", 1 / math.sqrt(size)))))
                out, lse = [], []
                for h in range(heads):
                    for i in range(queries):
                        terms, g = [], h * groups // heads
                        for j in range(keys):
                            if not is_seen(j - i - off) or more[:1] == [boolean] and not boolean[0][i * keys + j]:
                                continue
                            a = scale * decimals(sum(x * y for x, y in zip(q[(h * queries + i) * size:][:size], k[(g * keys + j) * size:][:size])))
                            if more[:1] == [added]:
                                if added[0][h * keys + j] == infinity(t) | sign_bit(t):
                                    continue
                                a += decimals(value(added[0][h * keys + j], t) + value(slopes[0][h]) * (j - i - off))
                            terms.append((a.exp(), j))
                        total = sum(w for w, _ in terms)
                        lse.append(rounded(F(total.ln())) if terms else infinity("f32") | 1 << 31)
                        for e in range(columns):
                            out.append(rounded(F(sum(w * decimals(v[(g * keys + j) * columns + e]) for w, j in terms) / total), t) if terms else 0)
                files = [self.save("in%d.npy" % n, *x) for n, x in enumerate([*given, *more])]
                options = [w for a in attrs.items() for w in ("--attr", "%s=%s" % a)]
                for names in (["out.npy"], ["both.npy", "lse.npy"]):
                    done = self.run_repdl("eval", "attention", *files, *[w for n in names for w in ("-o", n)], *options)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(read_npy(self.dir / names[0]), (t, (heads, queries, columns), out))
                self.assertEqual(read_npy(self.dir / "lse.npy"), ("f32", (heads, queries), lse))
        done = self.run_repdl("eval", "attention", "in1.npy", "in0.npy", "in2.npy", "-o", "x.npy")
        self.assertIn("attention: k: expected heads, axis -3, a divisor of q's 2", done.stderr)
        self.assertFalse((self.dir / "x.npy").exists())

    def test_attention_backward(self):
        r = random.Random(52)

        def decimals(v):
            return decimal.Decimal(v.numerator) / v.denominator
        heads, queries, keys, size, columns = 2, 3, 4, 2, 3  # of two heads of q and one of k
        shapes = {"g": [heads, queries, columns], "q": [heads, queries, size], "k": [1, keys, size], "v": [1, keys, columns]}
        for t in ("f16", "bf16", "f32"):
            bits = {n: [rounded(F(r.randrange(-1000, 1000) or 1, 400), t) for _ in range(math.prod(s))] for n, s in shapes.items()}
            files = {n: self.save(n + ".npy", bits[n], s, t) for n, s in shapes.items()}
            options = ["--attr", "causal=true", "--attr", "scale=0.75"]
            done = self.run_repdl("eval", "attention", files["q"], files["k"], files["v"], "-o", "y.npy", "-o", "lse.npy", *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            x = {n: [decimals(value(b, t)) for b in bits[n]] for n in shapes} | {"y": [decimals(value(b, t)) for b in read_npy(self.dir / "y.npy")[2]]}
            lse = [decimals(value(b)) for b in read_npy(self.dir / "lse.npy")[2]]
            scale = decimals(F(3, 4))

            def line(name, n, length):
                return x[name][n * length:][:length]

            def dot(a, b):
                return sum(u * w for u, w in zip(a, b))
            wanted = {n: [decimal.Decimal(0)] * len(bits[n]) for n in ("q", "k", "v")}
            for n in range(heads * queries):
                g, d = line("g", n, columns), dot(line("g", n, columns), line("y", n, columns))
                for j in range(n % queries + 1):
                    p = (scale * dot(line("q", n, size), line("k", j, size)) - lse[n]).exp()
                    # Where a query sees one key y is its v.
                    factor = 0 if n % queries == 0 else scale * p * (dot(g, line("v", j, columns)) - d)
                    for e in range(size):
                        wanted["q"][n * size + e] += factor * x["k"][j * size + e]
                        wanted["k"][j * size + e] += factor * x["q"][n * size + e]
                    for e in range(columns):
                        wanted["v"][j * columns + e] += p * g[e]
            done = self.run_repdl("eval", "attention_backward", *[files[n] for n in shapes], "y.npy", "lse.npy",
                                  "-o", "grad_q.npy", "-o", "grad_k.npy", "-o", "grad_v.npy", *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            for n, want in wanted.items():
                self.assertEqual(read_npy(self.dir / ("grad_%s.npy" % n)), (t, tuple(shapes[n]), [rounded(F(w), t) if w else 0 for w in want]))
        done = self.run_repdl("eval", "attention_backward", *[files[n] for n in shapes], "q.npy", "lse.npy", "-o", "x.npy", "-o", "z.npy", "-o", "w.npy")
        self.assertIn("attention_backward: y: expected shape [2, 3, 3]", done.stderr)
        self.assertFalse((self.dir / "x.npy").exists())

    def test_softmax(self):
        half, one, two, ln2, inf = 0x3F000000, 0x3F800000, 0x40000000, 0x3F317218, 0x7F800000
        minus, zeros, targets = 1 << 31, ([0, 0], [1, 2]), ([0], [1], "i64")
        self.check("softmax", [zeros], ("f32", (1, 2), [half, half]))
        self.check("log_softmax", [zeros], ("f32", (1, 2), [ln2 | minus] * 2))
        # near-ties that no number of bits decides, (2^27, -8) and (0, -1000); an element of weight 0
        self.check("log_softmax", [([0x4D000000, 0xC1000000, 0, 0xC47A0000, 0, inf | minus], [3, 2])],
                   ("f32", (3, 2), [minus, 0xCD000001, minus, 0xC47A0000, 0, inf | minus]))
        self.check("logsumexp", [zeros], ("f32", (1,), [ln2]), "--attr", "axis=1")
        self.check("cross_entropy", [zeros, targets], ("f32", (), [ln2]))
        self.check("cross_entropy", [zeros, ([7], [1], "i64")], ("f32", (), [nan("f32")]))
        self.check("cross_entropy", [zeros, ([7], [1], "i64")], ("f32", (1,), [0]), "--attr", "ignore_index=7", "--attr", "reduction=none")
        self.check("softmax_backward", [([one, two], [2]), ([half, half], [2])], ("f32", (2,), [0xBE800000, 0x3E800000]))
        self.check("log_softmax_backward", [([one, two], [2]), ([0, inf | minus], [2])], ("f32", (2,), [0xC0000000, two]))
        self.check("logsumexp_backward", [([two], [1]), zeros], ("f32", (1, 2), [one, one]), "--attr", "axis=1")
        self.check("cross_entropy_backward", [([one], []), zeros, targets], ("f32", (1, 2), [half | minus, half]))
        # with weights, smoothing, probabilities
        weight, sure = ([two, one], [2]), ([one, 0], [1, 2])
        self.check("cross_entropy", [zeros, targets, weight], ("f32", (), [ln2 + (1 << 23)]), "--attr", "reduction=sum")
        self.check("cross_entropy", [zeros, targets, weight], ("f32", (), [ln2]))
        self.check("cross_entropy_backward", [([one], []), zeros, targets, weight], ("f32", (1, 2), [half | minus, half]))
        self.check("cross_entropy_probabilities", [zeros, sure], ("f32", (), [ln2]), "--attr", "label_smoothing=0.25")
        self.check("cross_entropy_probabilities_backward", [([one], []), zeros, sure], ("f32", (1, 2), [half | minus, half]))
        # in f64: a gap between two numbers, and a logarithm above it
        wide, more = ([0xBFF0000000000000, 0x4340000000000000], [1, 2], "f64"), ([0x4000000000000000, 0x3FF0000000000000], [2], "f64")
        self.check("cross_entropy", [wide, targets, more], ("f64", (), [0x4340000000000001]))
        self.check("cross_entropy_backward", [([0x3FF0000000000000], [], "f64"), wide, targets],
                   ("f64", (1, 2), [0xBFF0000000000000, 0x3FF0000000000000]))

    def test_optimizers(self):
        one = self.save("one.npy", [0x3F800000], [1])
        zero = self.save("zero.npy", [0], [1])
        for op, operands, attrs, expected in (
                ("sgd", [one, one, one, zero], ["lr=0.5"], [0x3F000000, 0x3F800000]),  # two tensors
                ("sgd", [one, one, one], ["lr=0.5", "momentum=0.5"], [0x3E800000, 0x3FC00000]),
                ("sgd", [one, one], ["lr=0.5", "momentum=0.5"], [0x3F000000, 0x3F800000]),  # the first step
                ("adamw", [one, zero, zero, zero], ["lr=0.5", "weight_decay=0.5", "eps=1"], [0x3F400000, 0, 0])):
            names = ["out%d.npy" % i for i in range(len(expected))]
            done = self.run_repdl("eval", op, *operands, *[v for n in names for v in ("-o", n)], *[v for a in attrs for v in ("--attr", a)])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([read_npy(self.dir / n)[2][0] for n in names], expected)
        # of 16 bits: the middle of two parameters, and beside it what the f32 velocity says
        for t, p in (("f16", 11), ("bf16", 8)):
            odd = rounded(F(1), t) - 1
            for velocity, expected in ((0x3F800000, odd - 1), (0x3F7FFFFF, odd)):
                operands = [self.save("p.npy", [odd], [1], t), self.save("g.npy", [0], [1], t), self.save("v.npy", [velocity], [1])]
                done = self.run_repdl("eval", "sgd", *operands, "-o", "p1.npy", "-o", "v1.npy", "--attr", "momentum=1", "--attr",
                                      "lr=%r" % 2.0**-(p + 1))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual([read_npy(self.dir / n)[2][0] for n in ("p1.npy", "v1.npy")], [expected, velocity])
            operands = [self.save("p.npy", [odd], [1], t), self.save("g.npy", [0], [1], t), self.save("m.npy", [0x3F800000], [1]), zero]
            done = self.run_repdl("eval", "adamw", *operands, "-o", "p1.npy", "-o", "m1.npy", "-o", "v1.npy", "--attr", "beta1=0.5", "--attr",
                                  "weight_decay=0", "--attr", "eps=1", "--attr", "lr=%r" % 2.0**-(p + 1))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([read_npy(self.dir / n)[2][0] for n in ("p1.npy", "m1.npy", "v1.npy")], [odd - 1, 0x3F000000, 0])
        done = self.run_repdl("eval", "sgd", one, one, "-o", "only.npy", "--attr", "momentum=0.5")
        self.assertIn("expected 2 output files, got 1", done.stderr)
        self.assertFalse((self.dir / "only.npy").exists())

    def test_lists(self):
        for t in ("f16", "bf16", "f32"):
            three, four = [self.save(n, [rounded(F(v), t)], s, t) for n, v, s in (("3.npy", 3, [1]), ("4.npy", -4, []))]
            for op, attrs, expected in (("total_norm", [], [5]), ("total_norm", ["p=1"], [7]), ("total_norm", ["p=inf"], [4]),
                                        ("clip_grad_norm", ["max_norm=2.5"], [F(15, 2) / (5 + F(1, 10**6)), -10 / (5 + F(1, 10**6)), 5]),
                                        ("clip_grad_norm", ["max_norm=6"], [3, -4, 5]),
                                        ("clip_grad_norm", ["max_norm=2.5", "p=1"], [F(15, 2) / (7 + F(1, 10**6)), -10 / (7 + F(1, 10**6))])):
                names = ["out%d.npy" % i for i in range(len(expected))]  # the norm may be left out
                done = self.run_repdl("eval", op, three, four, *[v for n in names for v in ("-o", n)], *[v for a in attrs for v in ("--attr", a)])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual([read_npy(self.dir / n)[2][0] for n in names], [rounded(F(v), t) for v in expected])

    def test_random_numbers(self):
        generator = ["--attr", "seed=1", "--attr", "stream=2"]
        draws = [philox(1, 2, i // 4)[i % 4] for i in range(40)]
        self.check("bernoulli", [], ("bool", (40,), [int(F(w) < -(-F(0.3) * 2**32 // 1)) for w in draws]), "--attr", "shape=40",
                   "--attr", "p=0.3", *generator)
        words = [philox(1, 2, i // 2) for i in range(9)]
        words = [w[i % 2 * 2] | w[i % 2 * 2 + 1] << 32 for i, w in enumerate(words)]
        self.check("randint", [], ("i64", (9,), [7 + (w * 1000 >> 64) for w in words]), "--attr", "shape=9", "--attr", "low=7",
                   "--attr", "high=1007", *generator)
        x = finite_patterns(40, 24)
        kept = [0 if F(w) < -(-F(0.2) * 2**32 // 1) else rounded(value(v) / (1 - F(0.2))) for v, w in zip(x, draws)]
        for op in ("dropout", "dropout_backward"):
            self.check(op, [(x, [40])], ("f32", (40,), kept), "--attr", "p=0.2", *generator)
        x = [rounded(F(v, 2**40), "f64") for v in range(2**53 - 40, 2**53)]
        kept = [0 if F(w) < -(-F(0.2) * 2**32 // 1) else rounded(value(v, "f64") / (1 - F(0.2)), "f64") for v, w in zip(x, draws)]
        self.check("dropout", [(x, [40], "f64")], ("f64", (40,), kept), "--attr", "p=0.2", *generator)
        # From the reference: no logarithm is exact.
        self.check("normal", [], ("f32", (4,), [0xBF0B1553, 0xBDE3E148, 0x402245C5, 0x3F36797F]), "--attr", "shape=4", "--attr",
                   "mean=0.1", "--attr", "stddev=1.5", *generator)

    def test_norms(self):
        half, one, two, three, four = 0x3F000000, 0x3F800000, 0x40000000, 0x40400000, 0x40800000
        x, ones = self.save("x.npy", [0, two], [1, 2]), self.save("ones.npy", [one, one], [1, 2])
        w, b = self.save("w.npy", [two, four], [2]), self.save("b.npy", [two, one], [2])
        w0, b0 = self.save("w0.npy", [two], [1]), self.save("b0.npy", [two], [1])
        for op, inputs, attrs, *expected in (  # of 0 and 2: m = 1, v = 1; of 1 and 1: q = 1; 1 / sqrt(1 + 3) = 1 / 2
                ("layer_norm", [x], [], [half | 1 << 31, half], [one], [half]), ("layer_norm", [x, w, b], [], [one, three], [one], [half]),
                ("rms_norm", [ones], [], [half, half], [half]), ("rms_norm", [ones, w], ["axis=1"], [one, two], [half]),
                ("group_norm", [x, w, b], ["groups=1"], [one, three], [one], [half]),
                ("batch_norm", [x, w0, b0], ["axis=0"], [one, three], [one], [half])):
            for count in range(1, len(expected) + 1):  # the statistics may be left out
                names = ["out%d.npy" % i for i in range(count)]
                done = self.run_repdl("eval", op, *inputs, *[v for n in names for v in ("-o", n)],
                                      *[v for a in ("eps=3", *attrs) for v in ("--attr", a)])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual([read_npy(self.dir / n)[2] for n in names], expected[:count])
        done = self.run_repdl("eval", "rms_norm", ones, "--attr", "eps=3", "-o", "only.npy", "-o", "b.npy", "-o", "c.npy")
        self.assertIn("rms_norm: -o: expected 1 to 2 output files, got 3", done.stderr)
        self.assertFalse((self.dir / "only.npy").exists())

    def test_statistics(self):
        r = random.Random(41)
        rows, n = 3, 11
        x = [rounded(F(r.randrange(-2000, 2000), 1 << r.randrange(12))) for _ in range(rows * n)]
        each = [[value(v) for v in x[i * n:i * n + n]] for i in range(rows)]
        for correction in (F(1), F(0), F(-5, 2), F(n)):
            attrs = ["--attr", "axis=1", "--attr", "correction=%r" % float(correction)]
            spread = [sum((v - sum(e) / n) ** 2 for v in e) / (n - correction) if correction != n else None for e in each]
            var = [0x7FC00000 if q is None else rounded(q) for q in spread]
            self.check("var", [(x, [rows, n])], ("f32", (rows,), var), *attrs)
            # q 4^200 is far above 1: its integer root decides.
            root = [0x7FC00000 if q is None else rounded(F(2 * math.isqrt(int(q * 4**200)) + 1, 2**201)) for q in spread]
            self.check("stddev", [(x, [rows, n])], ("f32", (rows,), root), *attrs)
            given = self.save("x.npy", x, [rows, n])
            done = self.run_repdl("eval", "var_mean", given, "-o", "var.npy", "-o", "mean.npy", *attrs)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(read_npy(self.dir / "var.npy")[2], var)
            self.assertEqual(read_npy(self.dir / "mean.npy")[2], [rounded(sum(e) / n) for e in each])

    def test_gradients_of_norms(self):
        one, two, three, four = 0x3F800000, 0x40000000, 0x40400000, 0x40800000
        six, fourteen, minus = 0x40C00000, 0x41600000, 1 << 31
        g, x, mean, rstd = ([three, one], [1, 2]), ([0, two], [1, 2]), ([one], [1]), ([two], [1])  # h = -2, 2; rms_norm: 0, 4
        to_x, to_weight = ("f32", (1, 2), [six | minus, six]), ("f32", (2,), [six | minus, two])
        of_groups = [g, x, ([one], [1, 1]), ([two], [1, 1])]
        self.check("layer_norm_backward", [g, x, mean, rstd], to_x)
        self.check("rms_norm_backward", [g, x, rstd], ("f32", (1, 2), [six, fourteen | minus]))
        self.check("group_norm_backward", of_groups, to_x)
        self.check("batch_norm_backward", [g, x, mean, rstd], to_x, "--attr", "axis=0")
        self.check("layer_norm_weight_backward", [g, x, mean, rstd], to_weight)
        self.check("rms_norm_weight_backward", [g, x, rstd], ("f32", (2,), [0, four]))
        self.check("group_norm_weight_backward", of_groups, to_weight)
        self.check("batch_norm_weight_backward", [g, x, mean, rstd], ("f32", (1,), [four | minus]), "--attr", "axis=0")
        # In f64, whose statistics are f64, too: fractions of whole significands.
        r, n = random.Random(43), 7
        g, x, w, (mean, rstd) = ([rounded(F(r.randrange(-1 << 60, 1 << 60), 1 << r.randrange(50, 70)), "f64") for _ in range(k)]
                                 for k in (n, n, n, 2))
        t = [value(a, "f64") * value(b, "f64") for a, b in zip(g, w)]
        h = [(value(a, "f64") - value(mean, "f64")) * value(rstd, "f64") for a in x]
        of_t, of_th = sum(t) / n, sum(a * b for a, b in zip(t, h)) / n
        given = [(g, [1, n], "f64"), (x, [1, n], "f64"), ([mean], [1], "f64"), ([rstd], [1], "f64")]
        self.check("layer_norm_backward", [*given, (w, [n], "f64")],
                   ("f64", (1, n), [rounded(value(rstd, "f64") * (a - of_t - b * of_th), "f64") for a, b in zip(t, h)]))
        self.check("layer_norm_weight_backward", given, ("f64", (n,), [rounded(value(a, "f64") * b, "f64") for a, b in zip(g, h)]))

    def test_norms_with_given_statistics(self):
        half, one, two, three, four, six = 0x3F000000, 0x3F800000, 0x40000000, 0x40400000, 0x40800000, 0x40C00000
        x, m, v = self.save("x.npy", [0, two], [2, 1]), self.save("m.npy", [three], [1]), self.save("v.npy", [four], [1])
        names = ["out%d.npy" % i for i in range(5)]  # m = 1, v = 1; v n / (n - 1) = 2
        done = self.run_repdl("eval", "batch_norm_running", x, m, v, *[w for n in names for w in ("-o", n)],
                              "--attr", "eps=3", "--attr", "momentum=0.5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([read_npy(self.dir / n)[2] for n in names], [[half | 1 << 31, half], [one], [half], [two], [three]])
        g, x, mean, var = ([two, six], [2, 1]), ([0, four], [2, 1]), ([two], [1]), ([three], [1])  # the root is 2
        eps = ["--attr", "eps=1"]
        self.check("batch_norm_inference", [x, mean, var], ("f32", (2, 1), [one | 1 << 31, one]), *eps)
        self.check("batch_norm_inference_backward", [g, var], ("f32", (2, 1), [one, three]), *eps)
        self.check("batch_norm_inference_weight_backward", [g, x, mean, var], ("f32", (1,), [four]), *eps)

    def test_sums_to_places(self):
        r = random.Random(37)
        for t in ("f16", "bf16", "f32", "f64"):
            def numbers(n):
                most, places = (2**52, 50) if t == "f64" else (2000, 12)
                return [rounded(F(r.randrange(-most, most), 1 << r.randrange(places)), t) for _ in range(n)]
            rows, n, dim = 5, 40, 3
            x, source, index = numbers(rows * dim), numbers(n * dim), [r.choice((0, 2, 3)) for _ in range(n)]
            for alpha in (F(1), F(-3, 8)):
                out = list(x)
                for row in set(index):
                    for i in range(dim):
                        terms = [value(source[p * dim + i], t) for p in range(n) if index[p] == row]
                        out[row * dim + i] = rounded(value(x[row * dim + i], t) + alpha * sum(terms), t)
                self.check("index_add", [(x, [rows, dim], t), (index, [n], "i64"), (source, [n, dim], t)], (t, (rows, dim), out),
                           "--attr", "axis=0", "--attr", "alpha=%s" % float(alpha))
                each = [i for i in index for _ in range(dim)]
                self.check("scatter_add", [(x, [rows, dim], t), (each, [n, dim], "i64"), (source, [n, dim], t)], (t, (rows, dim), out),
                           "--attr", "alpha=%s" % float(alpha))
            for scale in (False, True):
                out = []
                for row in range(rows):
                    places = [p for p in range(n) if index[p] == row and row != 2]
                    out += [rounded(sum(value(source[p * dim + i], t) for p in places) / (len(places) if scale and places else 1), t)
                            for i in range(dim)]
                self.check("embedding_backward", [(source, [4, n // 4, dim], t), (index, [4, n // 4], "i64")], (t, (rows, dim), out),
                           "--attr", "rows=5", "--attr", "padding_idx=2", "--attr", "scale_grad_by_freq=%s" % str(scale).lower())

    def test_losses_at_targets(self):
        r = random.Random(41)
        for t in ("f16", "bf16", "f32"):
            n, classes = 30, 5
            x = [rounded(F(r.randrange(-2000, 0), 1 << r.randrange(4, 12)), t) for _ in range(n * classes)]
            weight = [rounded(F(r.randrange(1, 2000), 1 << 9), t) for _ in range(classes)]
            targets = [r.choice((0, 1, 2, 4, -7)) for _ in range(n)]
            terms = [(value(x[i * classes + k], t), value(weight[k], t)) for i, k in enumerate(targets) if k != -7]
            loss, total = -sum(a * w for a, w in terms), sum(w for _, w in terms)
            names = ["out.npy", "total.npy"]
            files = [self.save("in%d.npy" % i, *operand) for i, operand in enumerate(
                [(x, [n, classes], t), (targets, [n], "i64"), (weight, [classes], t)])]
            for reduction, expected in (("mean", loss / total), ("sum", loss)):
                done = self.run_repdl("eval", "nll_loss", *files, *[v for name in names for v in ("-o", name)],
                                      "--attr", "ignore_index=-7", "--attr", "reduction=%s" % reduction)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(read_npy(self.dir / "out.npy"), (t, (), [rounded(expected, t)]))
                self.assertEqual(read_npy(self.dir / "total.npy"), ("f32", (), [rounded(total, "f32")]))
            g, divisor = rounded(F(3, 7), t), rounded(F(5, 3), "f32")
            out = [rounded(-value(g, t) * value(weight[k], t) / value(divisor, "f32"), t) if k == targets[i] else 0
                   for i in range(n) for k in range(classes)]
            self.check("nll_loss_backward",
                       [([g], [], t), (x, [n, classes], t), (targets, [n], "i64"), (weight, [classes], t), ([divisor], [], "f32")],
                       (t, (n, classes), out), "--attr", "ignore_index=-7")

    def test_every_operation_is_tested(self):
        names = [line.split()[0] for line in self.run_repdl("info", "--operations").stdout.splitlines()]
        text = pathlib.Path(__file__).read_text()
        for name in names:
            is_loss = any(part in name for part in ("_loss", "entropy", "kl_div"))
            stem = name[3:] if name.startswith("arg") else name.removesuffix("_backward") if is_loss else name
            self.assertTrue('"%s"' % name in text or '"%s"' % stem in text, name)


class Files(Case):
    x = [0x3F800000, 0x40000000, 0x40400000, 0x40800000, 0x40A00000, 0x40C00000]

    def test_versions_and_orders(self):
        for version in (1, 2, 3):
            self.save("x.npy", self.x, [2, 3], version=version)
            r = self.run_repdl("eval", "neg", "x.npy", "-o", "y.npy")
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertEqual(read_npy(self.dir / "y.npy"), ("f32", (2, 3), [v | 1 << 31 for v in self.x]))
        self.save("x.npy", self.x, [2, 3], fortran=True)
        self.run_repdl("eval", "neg", "x.npy", "-o", "y.npy")
        c_order = [self.x[i] | 1 << 31 for i in (0, 2, 4, 1, 3, 5)]
        self.assertEqual(read_npy(self.dir / "y.npy"), ("f32", (2, 3), c_order))
        self.save("b.npy", self.x[:3], [3])
        self.run_repdl("eval", "add", "x.npy", "b.npy", "-o", "y.npy")
        rows = [self.x[i] for i in (0, 2, 4, 1, 3, 5)]
        self.assertEqual(read_npy(self.dir / "y.npy")[2],
                         [rounded(value(v) + value(self.x[i % 3])) for i, v in enumerate(rows)])

    def test_shapes(self):
        for shape in ([], [1], [0], [3, 0, 2], [1, 1, 1, 1, 1, 1, 1, 1]):
            n = math.prod(shape)
            self.check("neg", [(self.x[:n], shape)], ("f32", tuple(shape), [v | 1 << 31 for v in self.x[:n]]))

    def test_header_spellings(self):
        for text in ("{'shape': (2,), 'fortran_order': False, 'descr': '<f4'}", '{"descr":"<f4","fortran_order":False,"shape":(2L,)}',
                     "{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }          "):
            raw = text.encode() + b"\n"
            (self.dir / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(raw)) + raw + pack(self.x[:2], "f32"))
            r = self.run_repdl("eval", "neg", "x.npy", "-o", "y.npy")
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertEqual(read_npy(self.dir / "y.npy")[2], [v | 1 << 31 for v in self.x[:2]])

    def test_replaces_and_follows(self):
        self.save("x.npy", self.x, [6])
        os.symlink("x.npy", self.dir / "link.npy")
        os.chmod(self.dir / "x.npy", 0o640)
        r = self.run_repdl("eval", "neg", "link.npy", "-o", "link.npy")  # in place, through a link
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertTrue((self.dir / "link.npy").is_symlink())
        self.assertEqual(read_npy(self.dir / "x.npy")[2], [v | 1 << 31 for v in self.x])
        self.assertEqual((self.dir / "x.npy").stat().st_mode & 0o777, 0o640)
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["link.npy", "x.npy"])

    def test_two_outputs_in_one_file(self):
        """However it is spelled: refused before anything is computed or written."""
        self.save("x.npy", self.x, [6])
        self.save("there.npy", self.x, [6])
        (self.dir / "d").mkdir()
        os.symlink(".", self.dir / "here")
        os.symlink("new.npy", self.dir / "link.npy")  # to nothing yet
        os.symlink("d/../new.npy", self.dir / "far.npy")
        os.link(self.dir / "there.npy", self.dir / "hard.npy")
        before = sorted(p.name for p in self.dir.iterdir())
        for a, b in (("a.npy", "a.npy"), ("a.npy", "./a.npy"), ("a.npy", "d/../a.npy"), ("a.npy", self.dir / "a.npy"), ("a.npy", "here/a.npy"),
                     ("new.npy", "link.npy"), ("link.npy", "far.npy"), ("there.npy", "here/there.npy"), ("there.npy", "hard.npy")):
            r = self.run_repdl("eval", "var_mean", "x.npy", "-o", a, "-o", b)
            self.assertEqual((r.returncode, r.stdout), (2, ""), (a, b))
            self.assertEqual(r.stderr, f"repdl: output: {b}: expected each output in its own file, got it twice\n")
            self.assertEqual(sorted(p.name for p in self.dir.iterdir()), before)
            self.assertEqual((self.dir / "there.npy").read_bytes(), (self.dir / "x.npy").read_bytes())
        with open(self.dir / "out.npy", "wb") as f:
            r = subprocess.run([REPDL, "eval", "var_mean", "x.npy", "-o", "-", "-o", "out.npy"], cwd=self.dir, stdout=f, stderr=subprocess.PIPE)
        self.assertEqual(r.returncode, 2)
        # Through links to nothing, into what they name.
        for a, b in (("a.npy", "d/a.npy"), ("link.npy", "b.npy")):
            r = self.run_repdl("eval", "var_mean", "x.npy", "--attr", "correction=0", "-o", a, "-o", b)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertNotEqual(read_npy(self.dir / a), read_npy(self.dir / b))
        self.assertTrue((self.dir / "link.npy").is_symlink())
        self.assertEqual(read_npy(self.dir / "new.npy"), read_npy(self.dir / "a.npy"))

    def test_bfloat16_of_ml_dtypes(self):
        """NumPy writes its arrays as <V2, and what it reads from there as |V2."""
        x = [0x3F80, 0xC000, 0x7FC0, 0x0001]
        self.save("x.npy", x, [4], "bf16")
        self.run_repdl("eval", "square", "x.npy", "-o", "expected.npy")
        for descr in ("<V2", "|V2"):
            self.save("v.npy", x, [4], "bf16", descr=descr)
            r = self.run_repdl("eval", "square", "v.npy", "-o", "y.npy")
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertEqual((self.dir / "y.npy").read_bytes(), (self.dir / "expected.npy").read_bytes())

    def test_devices_and_pipes(self):
        self.save("x.npy", self.x, [6])
        self.assertEqual(self.run_repdl("eval", "neg", "x.npy", "-o", "/dev/null").returncode, 0)
        self.assertFalse(pathlib.Path("/dev/null").is_file())
        with open(self.dir / "x.npy", "rb") as f:
            r = subprocess.run("cat x.npy | %s eval neg /dev/stdin -o /dev/stdout | cat" % REPDL, shell=True, cwd=self.dir,
                               stdin=f, capture_output=True)
        (self.dir / "y.npy").write_bytes(r.stdout)
        self.assertEqual(read_npy(self.dir / "y.npy")[2], [v | 1 << 31 for v in self.x])


class StandardOutput(Case):
    """-o - writes the file's bytes, and only them, to standard output."""

    def run_bytes(self, *args, **kwargs):
        r = subprocess.run([REPDL, *map(str, args)], cwd=self.dir, stderr=subprocess.PIPE, timeout=600, **kwargs)
        return r.returncode, r.stdout, r.stderr

    def setUp(self):
        super().setUp()
        self.save("x.npy", Files.x, [2, 3])
        self.run_repdl("eval", "exp", "x.npy", "-o", "expected.npy")
        self.expected = (self.dir / "expected.npy").read_bytes()

    def test_pipe_and_file(self):
        self.assertEqual(self.run_bytes("eval", "exp", "x.npy", "-o", "-", stdout=subprocess.PIPE), (0, self.expected, b""))
        with open(self.dir / "there.npy", "wb") as f:
            f.write(b"before")
            f.flush()
            self.assertEqual(self.run_bytes("eval", "exp", "x.npy", "-o", "-", stdout=f), (0, None, b""))
        self.assertEqual((self.dir / "there.npy").read_bytes(), b"before" + self.expected)
        self.assertFalse((self.dir / "-").exists())
        self.assertEqual(self.run_bytes("eval", "exp", "x.npy", "-o", "./-", stdout=subprocess.PIPE), (0, b"", b""))
        self.assertEqual((self.dir / "-").read_bytes(), self.expected)

    def test_among_files(self):
        inputs = [self.save(n, Files.x, [2, 3]) for n in ("p.npy", "g.npy", "v.npy")]
        for outputs in (("p1.npy", "v1.npy"), ("-", "v2.npy")):
            status, out, error = self.run_bytes("eval", "sgd", *inputs, "-o", outputs[0], "-o", outputs[1], "--attr", "momentum=0.5",
                                                stdout=subprocess.PIPE)
            self.assertEqual((status, error), (0, b""))
        self.assertEqual(out, (self.dir / "p1.npy").read_bytes())
        self.assertEqual(*((self.dir / n).read_bytes() for n in ("v1.npy", "v2.npy")))
        status, out, error = self.run_bytes("eval", "sgd", *inputs, "-o", "-", "-o", "-", "--attr", "momentum=0.5", stdout=subprocess.PIPE)
        self.assertEqual((status, out), (2, b""))
        self.assertIn(b"each output in its own file, got it twice", error)

    def test_refused(self):
        terminal, other = pty.openpty()
        self.addCleanup(os.close, terminal)
        status, _, error = self.run_bytes("eval", "exp", "x.npy", "-o", "-", stdout=other)
        os.close(other)
        self.assertEqual(status, 2)
        self.assertIn(b"eval: -o: expected standard output to be a file or a pipe for '-', got a terminal", error)
        with open("/dev/full", "wb") as full:
            status, _, error = self.run_bytes("eval", "exp", "x.npy", "-o", "-", stdout=full)
        self.assertEqual((status, error.count(b"\n")), (2, 1))
        self.assertIn(b"output: -: expected a place to write, got No space left on device", error)


class Errors(Case):
    """One line on stderr, status 2, nothing written."""

    def setUp(self):
        super().setUp()
        x = Files.x
        self.save("x.npy", x, [2, 3])
        self.save("v.npy", x, [6])
        self.save("w.npy", x[:5], [5])
        self.save("empty.npy", [], [0])
        self.save("half.npy", [0x3C00], [1], "f16")
        self.save("int.npy", [1], [1], "i64")
        self.save("nine.npy", [0], [1] * 9)
        self.save("v4.npy", [0], [1], version=1)
        good = npy(x, [2, 3], "f32")
        write = lambda name, data: (self.dir / name).write_bytes(data)
        write("magic.npy", b"not numpy")
        write("nothing.npy", b"")
        write("version.npy", good[:6] + b"\x04" + good[7:])
        write("cut.npy", good[:-1])
        write("long.npy", good + b"\0")
        write("header_cut.npy", good[:30])
        write("big.npy", npy(x, [2, 3], "f32", descr=">f4"))
        write("struct.npy", good.replace(b"'<f4'", b"[('a', '<f4')]"))
        for name, old, new in (("key.npy", b"descr", b"dexcr"), ("bool.npy", b"False", b"Fal5e"), ("negative.npy", b"(2,", b"(-2,"),
                               ("word.npy", b"(2,", b"(b,"), ("brace.npy", b"}", b" "), ("quote.npy", b"'descr'", b" descr'")):
            write(name, good.replace(old, new))
        huge = good.replace(b"(2, 3)", b"(2305843009213693952, 4)")
        huge = huge[:8] + struct.pack("<H", struct.unpack("<H", huge[8:10])[0] + 18) + huge[10:]
        write("huge.npy", huge)
        lie = good.replace(b"(2, 3)", b"(1099511627776,)")
        write("lie.npy", lie[:8] + struct.pack("<H", struct.unpack("<H", lie[8:10])[0] + 10) + lie[10:])
        (self.dir / "directory").mkdir()
        self.before = self.listing()

    def listing(self):
        return {p: p.read_bytes() if p.is_file() else None for p in self.dir.rglob("*")}

    def fails(self, words, *expected):
        r = self.run_repdl(*words.split())
        self.assertEqual(r.returncode, 2, words)
        self.assertEqual(r.stdout, "", words)
        self.assertTrue(r.stderr.startswith("repdl: ") and r.stderr.endswith("\n") and r.stderr.count("\n") == 1, (words, r.stderr))
        self.assertNotIn("repdl: repdl:", r.stderr)
        for text in ("expected ", ", got ") + expected:
            self.assertIn(text, r.stderr, words)
        self.assertEqual(self.listing(), self.before, words)

    def test_files(self):
        for name, *expected in (("absent.npy", "No such file"), ("directory", "Is a directory"), ("magic.npy", "NUMPY"),
                                ("nothing.npy", "NUMPY"), ("version.npy", "4.0"), ("cut.npy", "24 bytes", "got 23"),
                                ("long.npy", "got 25"), ("header_cut.npy", "header"), ("big.npy", "'>f4'"),
                                ("struct.npy", "structured"), ("key.npy", "dexcr"), ("bool.npy", "True or False"),
                                ("negative.npy", "sizes >= 0"), ("word.npy", "sizes >= 0"), ("brace.npy",), ("quote.npy",),
                                ("huge.npy", "2^62"), ("lie.npy", "1099511627776"), ("nine.npy", "8 sizes")):
            self.fails("eval neg %s -o out.npy" % name, name if name not in ("huge.npy",) else "shape", *expected)
        self.fails("eval neg x.npy -o absent/out.npy", "absent/out.npy", "No such file")
        self.fails("eval neg x.npy -o directory", "directory", "Is a directory")
        self.fails("eval neg x.npy -o /dev/full", "/dev/full", "No space left")
        self.fails("eval neg x.npy -o " + "n" * 300, "File name too long")
        if os.geteuid() != 0:
            os.chmod(self.dir / "directory", 0o500)
            self.fails("eval neg x.npy -o directory/out.npy", "Permission denied")

    def test_calls(self):
        for words, *expected in (("eval foo x.npy -o out.npy", "'foo'"), ("eval", "no operation"), ("eval exp -o out.npy", "got 0"),
                                 ("eval exp x.npy x.npy -o out.npy", "got 2"), ("eval exp x.npy", "-o"), ("eval matmul x.npy -o out.npy", "[bias]"),
                                 ("eval exp x.npy -o out.npy -o out2.npy", "got 2"), ("eval uniform x.npy -o out.npy", "no input"),
                                 ("eval add x.npy v.npy -o out.npy", "[2, 3]", "[6]"), ("eval dot v.npy w.npy -o out.npy", "6", "5"),
                                 ("eval dot x.npy v.npy -o out.npy", "rank"), ("eval matmul x.npy x.npy -o out.npy", "3", "2"),
                                 ("eval conv2d half.npy x.npy -o out.npy", "f16, as x", "f32"), ("eval add half.npy x.npy -o out.npy", "f16, as x", "f32"),
                                 ("eval add x.npy x.npy -o out.npy --attr alpha=1e300", "alpha", "2^200", "1e+300"),
                                 ("eval leaky_relu x.npy -o out.npy --attr alpha=1", "slope", "'alpha'"), ("eval logcumsumexp int.npy -o out.npy", "i64"),
                                 ("eval max empty.npy -o out.npy",), ("eval sum x.npy -o out.npy --attr axis=2", "axis"),
                                 ("eval sum x.npy -o out.npy --attr axis=0,0", "axis"), ("eval sum x.npy -o out.npy --attr axes=0", "'axes'"),
                                 ("eval sum x.npy -o out.npy --attr axis=one", "'one'"), ("eval sum x.npy -o out.npy --attr keepdim=maybe", "'maybe'"),
                                 ("eval sum x.npy -o out.npy --attr keepdim", "NAME=VALUE"),
                                 ("eval sum x.npy -o out.npy --attr keepdim=true --attr keepdim=true", "twice"),
                                 ("eval matmul x.npy x.npy -o out.npy --attr accumulate=fast", "fma_chain", "'fast'"),
                                 ("eval convert x.npy -o out.npy", "dtype"), ("eval convert x.npy -o out.npy --dtype f8", "'f8'"),
                                 ("eval convert x.npy -o out.npy --dtype i16", "'i16'"), ("eval exp x.npy -o out.npy --dtype bf16", "dtype"),
                                 ("eval uniform -o out.npy", "shape"), ("eval uniform -o out.npy --attr shape=-1", "-1"),
                                 ("eval uniform -o out.npy --attr shape=2 --attr low=inf", "low"), ("eval permutation -o out.npy --attr n=-1", "-1"),
                                 ("eval permutation -o out.npy --attr n=1.5", "'1.5'"),
                                 ("eval sgd -o out.npy", "param grad [velocity], for each tensor", "got 0"),
                                 ("eval sgd v.npy v.npy v.npy -o out.npy", "4, that is param, grad for each tensor", "got 3"),
                                 ("eval exp x.npy", "1 output file,", "got 0"),
                                 ("eval adamw v.npy v.npy v.npy v.npy -o out.npy --attr step=9223372036854775808", "step", "got 9223372036854775808"),
                                 ("eval convert x.npy -o out.npy --dtype f8", "expected f16, bf16, f32, f64, i64, bool, i32, f8_e4m3fn or f8_e5m2,"),
                                 ("eval uniform -o out.npy --attr shape=2 --dtype f8", "expected f16, bf16, f32 or f64,"),
                                 ("eval uniform -o out.npy --attr shape=2 --dtype i32", "i32")):
            self.fails(words, *expected)

    def test_huge_shapes(self):
        """One line that names the shape: nothing wraps, whatever number of bytes it would be modulo 2^64."""
        for elements in (2 ** 61 + 1, 2 ** 61 + 2, 2 ** 61 + 2 ** 40, 2 ** 61):
            self.fails("eval uniform -o out.npy --dtype f64 --attr shape=%d" % elements, "shape", "2^62 bytes", str(elements))
            self.fails("eval normal -o out.npy --dtype f64 --attr shape=%d" % elements, "shape", "2^62 bytes", str(elements))
            self.fails("eval randint -o out.npy --attr high=9 --attr shape=%d" % elements, "shape", "2^62 bytes", str(elements))
            self.fails("eval permutation -o out.npy --attr n=%d" % elements, "permutation: n: ", str(elements))
        self.fails("eval uniform -o out.npy --attr shape=2305843009213693953,2", "shape", "2^62 elements")
        # No memory has them: 2^59 and 2^60 bytes.
        for words in ("eval uniform -o out.npy --dtype f64 --attr shape=72057594037927936", "eval permutation -o out.npy --attr n=72057594037927936"):
            self.fails(words, "memory: expected 576460752303423488 bytes", "[72057594037927936]", "got none")
        self.fails("eval bernoulli -o out.npy --attr shape=1152921504606846976", "memory: expected 1152921504606846976 bytes")

    def test_empty_shapes(self):
        """A size 0 makes the number of elements 0, whatever the others are."""
        for shape in ((0, 2 ** 63 - 1), (2 ** 62, 0, 2 ** 62), (2 ** 63 - 1, 2 ** 63 - 1, 0)):
            r = self.run_repdl("eval", "uniform", "-o", "empty_out.npy", "--attr", "shape=" + ",".join(map(str, shape)))
            self.assertEqual((r.returncode, r.stderr, r.stdout), (0, "", ""))
            self.assertEqual(read_npy(self.dir / "empty_out.npy"), ("f32", shape, []))
            r = self.run_repdl("eval", "exp", "empty_out.npy", "-o", "e.npy")
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertEqual(read_npy(self.dir / "e.npy"), ("f32", shape, []))
            r = self.run_repdl("eval", "sum", "empty_out.npy", "-o", "s.npy")
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertEqual(read_npy(self.dir / "s.npy"), ("f32", (), [0]))

    def test_options(self):
        for words, *expected in (("", "repdl: command: expected", "none"), ("frobnicate", "repdl: command: expected", "'frobnicate'", "verify"),
                                 ("help frobnicate", "help: command", "'frobnicate'"), ("help eval verify", "'verify'"),
                                 ("--version x", "version: ", "'x'"), ("--verbose", "'--verbose'"),
                                 ("fuzz --count 1e", "'1e'"), ("fuzz --count 1.5", "'1.5'"), ("fuzz --count 1e-1", "'1e-1'"),
                                 ("fuzz --count 15e-2", "'15e-2'"), ("fuzz --count 1e19", "'1e19'"), ("fuzz --count 1e99999999999", "'1e99999999999'"),
                                 ("fuzz --count 0x10", "'0x10'"), ("fuzz --count e6", "'e6'"), ("fuzz --count 1e++6", "'1e++6'"), ("eval exp x.npy -o out.npy --isa sse9", "'sse9'", "one of baseline"),
                                 ("eval exp x.npy -o out.npy --backend tpu", "'tpu'"), ("eval exp x.npy -o out.npy --threads -1", "'-1'"),
                                 ("eval exp x.npy -o out.npy --threads many", "'many'"), ("eval exp x.npy -o out.npy --isa", "a value"),
                                 ("eval exp x.npy -o out.npy --speed 9", "'--speed'"), ("eval exp x.npy -o out.npy --isa avx2 --isa avx2", "2 times"),
                                 ("eval exp x.npy -o out.npy --backend cuda --isa avx2", "--isa"), ("info more", "'more'"), ("info --operations=1", "no value"),
                                 ("fuzz --seed x", "--seed", "'x'"), ("fuzz --op nothing", "--op", "'nothing'"),
                                 ("fuzz --call 3 --count 4", "--count", "both"), ("fuzz --seconds 0", "--seconds", "'0'"),
                                 ("fuzz extra", "'extra'"), ("fuzz --flip all", "--flip", "'all'"),
                                 ("sweep",), ("verify nothing", "'nothing'"), ("verify --digests absent", "absent/cases/add.txt"),
                                 ("verify --part half", "--part", "'half'"),
                                 ("digests",), ("digests --list --add", "one of --list"), ("digests --publish --digests absent", "absent/published.txt"),
                                 ("docs",), ("docs --check --json",), ("docs --check --root absent", "absent"),
                                 ("cases nosuch", "nosuch"), ("cases --digests absent exp", "absent"), ("cases --nosuch",)):
            self.fails(words, *expected)
        if "MPFR/GMP reference built in" in self.run_repdl("info").stdout:
            self.fails("sweep nothing", "'nothing'")
            self.fails("sweep add --exhaustive", "unary")
            self.fails("sweep add --count 0", "'0'")
        else:
            self.fails("sweep exp", "MPFR")
            self.fails("digests --write", "MPFR")
            self.fails("digests --add", "MPFR")

    def test_demo(self):
        for words, *expected in (("demo --epochs 0", "'0'"), ("demo --epochs many", "'many'"), ("demo --save", "a value"),
                                 ("demo more", "'more'"), ("demo --resume absent.safetensors", "absent.safetensors", "No such file"),
                                 ("demo --resume /dev/zero", "/dev/zero", "a device"),
                                 ("demo --resume magic.npy", "magic.npy", "header"), ("demo --resume directory", "directory"),
                                 ("demo --save absent/file", "absent/file", "No such file")):
            self.fails(words, *expected)

    def test_no_gpu(self):
        if "\nGPU                none" in self.run_repdl("info").stdout:
            self.fails("eval exp x.npy -o out.npy --backend cuda", "cuda")

    def test_control_characters(self):
        r = subprocess.run([REPDL, "eval", "exp", "a\nb.npy", "-o", "out.npy"], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual((r.returncode, r.stderr.count("\n")), (2, 1))

    def test_full_stdout(self):
        with open("/dev/full", "w") as full:
            r = subprocess.run([REPDL, "info"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((r.returncode, r.stderr.count("\n")), (2, 1))


class Commands(Case):
    def test_demo(self):
        for words in ("--epochs 1 --save one", "--epochs 2 --resume one --save two", "--epochs 2 --save both", "--epochs 2 --resume two --save again"):
            r = self.run_repdl("demo", *words.split())
            self.assertEqual(r.returncode, 0, words)
            self.assertRegex(r.stderr, r"\A(epochs of training: .* left\n)*\Z", words)
            self.assertIn("DONE", r.stdout)
        one, *two = [(self.dir / name).read_bytes() for name in ("one", "two", "both", "again")]
        self.assertNotEqual(one, two[0])
        self.assertEqual(two, [two[0]] * 3)
        r = self.run_repdl("demo", "--epochs", "1", "--resume", "two")
        self.assertEqual((r.returncode, r.stdout), (2, ""))
        self.assertIn("at most 1 epochs, got 2", r.stderr)

    def test_quick_demo(self):
        """One training to the end and one that is handed on; what is still to come is shown on a terminal."""
        terminal, other = pty.openpty()
        self.addCleanup(os.close, terminal)
        r = subprocess.run([REPDL, "demo", "--quick", "--epochs", "3", "--no-contrast"], stdout=subprocess.PIPE, stderr=other, text=True)
        os.close(other)
        self.assertEqual(r.returncode, 0, r.stdout)
        self.assertIn("\nPASSED: 2 trainings, one fingerprint: every bit is the same.\n", r.stdout)
        self.assertNotIn("everywhere", r.stdout)
        self.assertRegex(r.stdout, r"epochs +\d+ to +3 +the same ")
        self.assertRegex(os.read(terminal, 1 << 16), rb"\repochs of training: \d")

    def test_info_help(self):
        info = self.run_repdl("info").stdout
        for text in ("bits version 1", "isa baseline", "compiler", "flags", "GPU" if "GPU " in info else "cuda:0", ", active"):
            self.assertIn(text, info)
        for word in ("help", "--help", "-h"):
            r = self.run_repdl(word)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertIn("repdl eval", r.stdout)
        commands = re.findall(r"^  repdl (\w+)", r.stdout, re.M)
        self.assertGreaterEqual(len(commands), 8)
        for name in commands:
            texts = set()
            for words in (("help", name), (name, "--help"), (name, "-h"), (name, "x", "--help")):
                r = self.run_repdl(*words)
                self.assertEqual((r.returncode, r.stderr), (0, ""), words)
                texts.add(r.stdout)
            self.assertEqual(len(texts), 1, name)
            self.assertEqual(re.findall(r"^  repdl (\w+)", texts.pop(), re.M)[0], name)
        for word in ("version", "--version"):
            r = self.run_repdl(word)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertRegex(r.stdout, r"^repdl \d+\.\d+\.\d+, bits version 1\n$")
            self.assertIn(r.stdout.split()[1][:-1] + ", bits version 1", info)

    def test_docs(self):
        (self.dir / "docs").mkdir()
        (self.dir / "docs/operations.md").write_text("old")
        (self.dir / "README.md").write_text("# x\n<!-- operations:begin -->\nold\n<!-- operations:end -->\nend\n")
        r = self.run_repdl("docs", "--check", "--root", self.dir)
        self.assertEqual(r.returncode, 1)
        self.assertEqual(r.stdout.count("stale"), 2)
        self.assertEqual(self.run_repdl("docs", "--write", "--root", self.dir).returncode, 0)
        self.assertEqual(self.run_repdl("docs", "--check", "--root", self.dir).returncode, 0)
        readme = (self.dir / "README.md").read_text()
        self.assertTrue(readme.startswith("# x\n<!--") and readme.endswith("-->\nend\n") and "`sigmoid_backward`" in readme)

    def test_what_bindings_are_made_of(self):
        registry = json.loads(self.run_repdl("docs", "--json").stdout)
        names = [row["name"] for row in registry]
        self.assertEqual(names, [line.split()[0] for line in self.run_repdl("info", "--operations").stdout.splitlines()])
        softmax = registry[names.index("softmax")]
        self.assertEqual((softmax["inputs"], softmax["attributes"][0]["default"]), ([{"name": "x", "types": ["f16", "bf16", "f32", "f64"], "optional": False}], "-1"))

        def cases(*more):
            stream = subprocess.run([REPDL, "cases", "dot", *more], capture_output=True, check=True).stdout
            at, found = 0, []
            while at < len(stream):
                end = stream.index(b"\n", at)
                case = json.loads(stream[at:end])
                at = end + 1 + sum(BYTES[i["type"]] * math.prod(i["shape"]) for i in case["inputs"])
                found.append(case)
            return found

        published = (ROOT / "docs/digests/cases/dot.txt").read_text().splitlines()
        every = cases()
        self.assertEqual([c["digest"] for c in every], [line.split(" -> ")[1] for line in published])
        self.assertEqual(cases("--every", "30"), every[::30])


class Verify(Case):
    def digests(self):
        d = self.dir / "digests"
        shutil.copytree(ROOT / "docs/digests", d)
        return d

    def verify(self, *args):
        r = self.run_repdl("verify", "--quick", *args)
        return r.returncode, r.stdout

    def test_passes(self):
        status, out = self.verify("sum", "tanh")
        self.assertEqual(status, 0, out)
        self.assertIn(" 0 mismatches", out)
        self.assertRegex(out, r"\nverified: \d+ cases, [1-9]\d* runs, [1-9]\d* calls in other layouts, [1-9]")
        for part, counts in (("cases", r"[1-9]\d* cases, [1-9]\d* runs, 0 calls"), ("layouts", r"0 cases, 0 runs, [1-9]\d* calls"),
                             ("chunks", r"0 cases, 0 runs, 0 calls in other layouts, [1-9]")):
            status, out = self.verify("tanh", "--part", part)
            self.assertEqual(status, 0, out)
            self.assertRegex(out, "\nverified: " + counts)

    def test_self_test(self):
        r = self.run_repdl("verify", "--self-test")
        self.assertEqual(r.returncode, 0, r.stdout)
        if "not here: CUDA" not in r.stdout:
            self.assertRegex(r.stdout, r"\nself-test: [1-9]\d* kernels, 0 that no test reaches")

    def test_corrupted_case(self):
        d = self.digests()
        lines = (d / "cases/mean.txt").read_text().splitlines()
        case, digest = lines[-1].split(" -> ")
        lines[-1] = case + " -> " + ("0" if digest[0] != "0" else "1") + digest[1:]
        (d / "cases/mean.txt").write_text("\n".join(lines) + "\n")
        status, out = self.verify("mean", "--digests", d)
        self.assertEqual(status, 1)
        for text in ("MISMATCH", "case: " + case, digest, "cases/mean.txt"):
            self.assertIn(text, out)

    def test_published(self):
        """What a release published stays: also where every digest that is there is right."""
        d = self.digests()
        path = d / "cases/mean.txt"
        count = int(re.search(r"^0\.1\.1 cases/mean\.txt (\d+)", (d / "published.txt").read_text(), re.M)[1])
        lines = path.read_text().splitlines(True)[:count]
        path.write_text("".join(lines[:-1]))
        status, out = self.verify("neg", "--digests", d, "--part", "layouts")
        self.assertEqual((status, out), (1, "MISMATCH %s: expected to begin with the %d lines that release 0.1.1 published, got %d lines\n" %
                                         (path, len(lines), len(lines) - 1)))
        path.write_text("".join(lines) + lines[0])  # appending is free
        self.assertEqual(self.verify("neg", "--digests", d, "--part", "layouts")[0], 0)

    def test_added(self):
        """`repdl digests --add`: cases by rule for an operation without a file, digests for lines without."""
        d = self.digests()
        published = d / "published.txt"
        published.write_text("".join(line for line in published.read_text().splitlines(True) if "cases/div.txt" not in line))
        (d / "cases/div.txt").unlink()
        softmax = d / "cases/softmax.txt"
        old = softmax.read_text()
        softmax.write_text(old + "softmax bits=1 f32,f32 normal_range 5x40 seed=? axis=0 -> ?\n")
        self.assertIn("\ndiv cases -> missing\n", self.run_repdl("digests", "--list", "--digests", d).stdout)
        status, out = self.verify("softmax", "--digests", d)
        self.assertEqual(status, 1)
        self.assertIn("softmax.txt:%d: digest: expected 64 hexadecimal digits (repdl digests --add), got '?'" % (old.count("\n") + 1), out)
        if "MPFR/GMP reference built in" not in self.run_repdl("info").stdout:
            return
        r = self.run_repdl("digests", "--add", "--only", "cases/", "--digests", d)
        self.assertEqual((r.returncode, r.stderr, sorted(r.stdout.splitlines())), (0, "", ["wrote %s/cases/%s.txt" % (d, op) for op in ("div", "softmax")]))
        self.assertTrue(softmax.read_text().startswith(old))
        seed = lambda text: int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        self.assertRegex(softmax.read_text()[len(old):], r"^softmax bits=1 f32,f32 normal_range 5x40 seed=%d axis=0 -> [0-9a-f]{64}\n$" % seed(
            "softmax|f32,f32|%d" % (old.count("\n") + 1)))
        lines = (d / "cases/div.txt").read_text().splitlines()
        self.assertEqual(len(lines), 4 * 12 + 72)  # 72 with results of another format
        for i, line in enumerate(lines):
            formats = line.split()[2]
            self.assertIn(" seed=%d " % seed("div|%s|%d" % (formats, i + 1)), line)
        self.assertEqual(self.verify("softmax", "div", "--digests", d, "--part", "cases")[0], 0)
        # Again: nothing is missing. Published now, and never again.
        self.assertEqual(self.run_repdl("digests", "--add", "--only", "cases/", "--digests", d).stdout, "")
        self.assertEqual(self.run_repdl("digests", "--publish", "--digests", d).stdout, "wrote %s\n" % published)
        self.assertEqual(self.run_repdl("digests", "--publish", "--digests", d).stdout, "")
        (d / "cases/softmax.txt").write_text(old)
        self.assertIn("expected to begin with", self.run_repdl("digests", "--publish", "--digests", d).stderr)

    def test_added_structured(self):
        """An operation that has no cases gets some of every class in each format, always the same ones."""
        if "MPFR/GMP reference built in" not in self.run_repdl("info").stdout:
            return
        d = self.digests()
        path = d / "cases/dot.txt"
        texts = []
        for _ in range(2):
            path.unlink()
            r = self.run_repdl("digests", "--add", "--only", "cases/dot", "--digests", d)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            texts.append(path.read_text())
        self.assertEqual(*texts)
        calls = [re.fullmatch(r"dot bits=1 (\w+),(\w+),(\w+) (\w+) \S+ seed=\d+.* -> [0-9a-f]{64}", line).groups()
                 for line in texts[0].splitlines()]
        formats = {"f16", "bf16", "f32", "f64"}
        self.assertEqual({(x, y) for x, y, _, _ in calls}, {(t, t) for t in formats})
        self.assertEqual({(x, out) for x, _, out, _ in calls}, {(t, u) for t in formats for u in formats})
        counts = collections.Counter((x, kind) for x, _, _, kind in calls)
        self.assertEqual((len(counts), set(counts.values())), (4 * 11, {6}))

    def test_known_answers(self):
        """`repdl digests --write` computes the answers again."""
        if "MPFR/GMP reference built in" not in self.run_repdl("info").stdout:
            return
        shutil.copytree(ROOT / "librepdl/self_test/known_answers", self.dir / "digests/known_answers")
        (self.dir / "digests/cases").mkdir()
        path = self.dir / "digests/known_answers/exp.txt"
        right = path.read_text()
        path.write_text(re.sub(r"-> [0-9a-f]{8}", "-> 00000000", right))
        words = "digests --write --only known_answers/exp --digests digests".split()
        self.assertEqual(self.run_repdl(*words).returncode, 0)
        self.assertEqual(path.read_text(), right)
        path.unlink()
        words[1] = "--add"
        self.assertEqual(self.run_repdl(*words).returncode, 0)
        self.assertEqual(path.read_text().splitlines()[:13], right.splitlines()[:13])
        path.write_text(right + "0 -> 1\n")
        words[1] = "--write"
        self.assertIn("known_answers/exp.txt:%d: expected 1 input, " % (right.count("\n") + 1), self.run_repdl(*words).stderr)

    def test_corrupted_chunk(self):
        d = self.digests()
        path = d / "tanh.f32.txt"
        text = path.read_text()
        path.write_text("".join(line[:-2] + ("0" if line[-2] != "0" else "1") + "\n" if line.startswith("chunk") else line
                                for line in text.splitlines(True)))
        status, out = self.verify("tanh", "--digests", d)
        self.assertEqual(status, 1)
        self.assertIn("tanh.f32.txt", out)
        self.assertIn("chunk ", out)

    def test_wrong_result(self):
        """--flip changes one bit of one result element: the report names that element and its operands."""
        for op in ("add", "sum", "dot", "matmul", "uniform", "permutation", "argmax"):
            status, out = self.verify(op, "--flip", 0)
            self.assertEqual(status, 1)
            self.assertIn("MISMATCH %s " % op, out)
            self.assertIn("element 0 of ", out)
            self.assertIn("expected: ", out)
        for op in ("add", "convert", "sum", "dot", "matmul", "conv2d", "avg_pool2d", "softmax", "layer_norm", "layer_norm_backward", "adamw", "normal", "dropout"):
            status, out = self.verify(op, "--part", "layouts", "--flip", 0)
            self.assertEqual(status, 1)
            self.assertRegex(out, r"MISMATCH %s, .*, operands in other layouts\n(.*\n)* .*: .* \[.*\], strides \[.*\], offset \d+ " % op)
            self.assertRegex(out, r": 1 of \d+ elements differ; first element 0, at \[.*\]\n  got: .*\n  expected: ")
        status, out = self.verify("exp", "--flip", 12345)
        self.assertIn("element 12345 of ", out)
        self.assertIn("x[12345] = 0x", out)

    def test_malformed(self):
        for name, old, new in (("cases/tanh.txt", " -> ", " - "), ("cases/tanh.txt", "bits=1", "bit=1"), ("tanh.f32.txt", "chunk 07", "chunk 08"),
                               ("tanh.f32.txt", "op tanh", "op exp"), ("cases/tanh.txt", " 16411 seed=", " 16411 seed=1")):
            d = self.digests()
            text = (d / name).read_text()
            self.assertIn(old, text)
            (d / name).write_text(new.join(text.rsplit(old, 1)))  # the first may be in a comment
            status, out = self.verify("tanh", "--digests", d)
            self.assertEqual(status, 1, (name, new))
            self.assertIn(name, out)
            shutil.rmtree(d)


class Fuzz(Case):
    def fuzz(self, *args):
        r = self.run_repdl("fuzz", *args)
        return r.returncode, r.stdout

    def test_finds_nothing(self):
        status, out = self.fuzz("--count", 1500, "--seed", 77)
        self.assertEqual(status, 0, out)
        self.assertIn("fuzz: seed 77, 1500 calls in ", out)
        # One operation in every layout: a row of the table for each rank, and nothing that never came.
        status, out = self.fuzz("--count", 3000, "--op", "fma")
        self.assertEqual(status, 0, out)
        self.assertEqual([line.split()[1] for line in out.splitlines() if line.startswith("fma ")], list("012345678"))
        self.assertIn("\n65 of 65 combinations of operation, rank and layout hit", out)
        self.assertNotIn("never:", out)
        self.assertEqual(self.fuzz("--seconds", 1, "--op", "conv2d")[0], 0)

    def test_exact_integers(self):
        """A number of calls as anyone writes it."""
        for text, calls in (("1e1", 10), ("2.5e+1", 25), ("300e-1", 30), ("7", 7), ("12.0", 12)):
            status, out = self.fuzz("--count", text, "--op", "abs")
            self.assertEqual(status, 0, out)
            self.assertIn("fuzz: seed 1, %d calls in " % calls, out)

    def test_finds_faults(self):
        """--flip spoils a bit of each result, of an input or beside the operands: found, and found again alone."""
        for what, found in (("output", "1 of "), ("input", "an input was changed: "), ("guard", "memory that belongs to no element")):
            status, out = self.fuzz("--seed", 3, "--flip", what)
            self.assertEqual(status, 1)
            line = out.splitlines()[0]
            self.assertRegex(line, r"^MISMATCH repdl fuzz --seed 3 --call \d+ --flip %s$" % what)
            self.assertIn(found, out)
            alone = line.split()[3:]
            status, again = self.fuzz(*alone)
            self.assertEqual(status, 1)
            report = [text for text in out.splitlines()[1:] if not text.startswith("fuzz: ")]
            self.assertEqual(sorted(report), sorted(text for text in again.splitlines() if not text.startswith("MISMATCH")))
            status, out = self.fuzz(*alone[:-2])
            self.assertEqual((status, out.splitlines()[-1]), (0, "the same bits"))
        self.assertRegex(self.fuzz("--op", "sgd", "--flip", "output")[1], r"MISMATCH repdl fuzz --seed 1 --call \d+ --op sgd --flip output\n")

    def test_crash(self):
        """A process that dies names the call."""
        p = subprocess.Popen([REPDL, "fuzz", "--seed", "5", "--seconds", "60"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        p.send_signal(signal.SIGSEGV)
        self.assertRegex(p.communicate(timeout=60)[1], r"^CRASH repdl fuzz --seed 5 --call \d+\n")
        self.assertEqual(p.returncode, -signal.SIGSEGV)


class Sweep(Case):
    def test_sweep(self):
        if "MPFR/GMP reference built in" not in self.run_repdl("info").stdout:
            self.skipTest("no oracle")
        import json
        runs = [self.run_repdl("sweep", "exp", "--count", 20000, "--seed", 5, "--json", *o) for o in ([], ["--isa", "baseline"])]
        results = [json.loads(r.stdout) for r in runs]
        for r in results:
            self.assertEqual((r["mismatches"], r["first_mismatch"]), (0, None))
            self.assertTrue(0 < r["hardest"]["ulp"] < 1e-3)
        self.assertEqual(results[0]["hardest"], results[1]["hardest"])
        self.assertEqual(results[0]["inputs"], results[1]["inputs"])
        for op in ("matmul", "convert", "argmin"):
            self.assertEqual(self.run_repdl("sweep", op, "--count", 20000).returncode, 0)


if __name__ == "__main__":
    REPDL, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
