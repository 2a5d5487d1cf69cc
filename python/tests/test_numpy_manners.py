"""What a user of NumPy writes without thinking: numbers and lists, spellings of types, vectors in products, names."""

import re
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from operator import mul
from pathlib import Path

import numpy as np
import pytest

import librepdl
from conftest import torch

f32 = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)


def same(got, want):
    assert type(got) is np.ndarray and got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()


@pytest.mark.parametrize(("got", "want"), [
    (lambda: librepdl.add(1.0, 2), np.float64(3)),
    (lambda: librepdl.add([1, 2], [3, 4]), np.float64([4, 6])),
    (lambda: librepdl.mul((1.5, 2), 2), np.float64([3, 4])),
    (lambda: librepdl.mul([[True, False]], 0.5), np.float64([[0.5, 0]])),
    (lambda: librepdl.sqrt(2), np.sqrt(2.0)),
    (lambda: librepdl.sqrt([]), np.sqrt([])),
    (lambda: librepdl.sqrt(np.float64(2)), np.sqrt(2.0)),
    (lambda: librepdl.sqrt([np.float32(2), 3]), np.sqrt([2.0, 3.0])),
    (lambda: librepdl.neg([2**70, (1 << 53) + 1]), -np.array([2**70, (1 << 53) + 1], np.float64)),
    (lambda: librepdl.less([1, 2], 1.5), np.array([True, False])),
    (lambda: librepdl.less(1, 2), np.array(True)),
    (lambda: librepdl.logical_not([True, False]), np.array([False, True])),
    (lambda: librepdl.where(True, f32, -f32), f32),
    (lambda: librepdl.where([True, False], 1.0, [2, 3]), np.float64([1, 3])),
    (lambda: librepdl.where(np.array([True, False]), 1, 2), np.float64([1, 2])),
    (lambda: librepdl.add(np.float64([1, 2]), [3, 4]), np.float64([4, 6])),
    (lambda: librepdl.add([3, 4], np.float64([1, 2])), np.float64([4, 6])),
    (lambda: librepdl.fma(2, [3, 4], np.float64(5)), np.float64([11, 13])),
    (lambda: librepdl.convert([1.5, 2], "f4"), np.float32([1.5, 2])),
    (lambda: librepdl.index_add(f32, [0, 2], f32[:2]), librepdl.index_add(f32, np.int64([0, 2]), f32[:2])),
])
def test_numbers_and_lists(got, want):
    same(got(), np.asarray(want))


@pytest.mark.parametrize(("got", "want"), [  # rounded from 300 bits of mpmath
    (lambda: librepdl.exp(1.0), 2.718281828459045), (lambda: librepdl.exp([-740.0]), [4.2e-322]),
    (lambda: librepdl.sin(1e22), -0.8522008497671888), (lambda: librepdl.cos([1e22]), [0.523214785395139]),
    (lambda: librepdl.log(5e-324), -744.4400719213812), (lambda: librepdl.log10([1000, 5]), [3, 0.6989700043360189]),
    (lambda: librepdl.log2(np.ldexp(1.0, [-1074, 1023])), [-1074, 1023]), (lambda: librepdl.exp2([-1074, 3]), [5e-324, 8]),
    (lambda: librepdl.expm1(1e-10), 1.00000000005e-10), (lambda: librepdl.log1p(1e-10), 9.999999999500001e-11),
    (lambda: librepdl.tanh(0.5), 0.46211715726000974), (lambda: librepdl.sigmoid(0.5), 0.6224593312018546),
    (lambda: librepdl.silu(0.5), 0.3112296656009273), (lambda: librepdl.log_sigmoid(30.0), -9.357622968839737e-14),
    (lambda: librepdl.pow(1.1, 10.5), 2.7203400420274986), (lambda: librepdl.pow([3.0, -2.0, 4.0], [2, 3, -0.5]), [9, -8, 0.5]),
    (lambda: librepdl.power(2.0, 0.5), 1.4142135623730951), (lambda: librepdl.arctan2(1.0, -3.0), 2.819842099193151),
    (lambda: librepdl.hypot(3e300, 4e300), 5e300), (lambda: librepdl.rsqrt([4.0, 0.25]), [0.5, 2]),
])
def test_functions_of_float64(got, want):
    same(got(), np.asarray(want, np.float64))


def test_the_library_is_that_of_an_array_wherever_it_stands():
    if torch is None:
        pytest.skip("no torch here")
    got = librepdl.add([1.0, 2.0], torch.tensor([3.0, 4.0], dtype=torch.float64))
    assert isinstance(got, torch.Tensor) and got.tolist() == [4, 6]
    with pytest.raises(TypeError, match="where: x: expected an array, got a number"):  # of PyTorch's default type, or NumPy's
        librepdl.where(torch.tensor([True]), 1.0, 2.0)


@pytest.mark.parametrize(("name", "type"), [
    ("f8", np.float64), ("f4", np.float32), ("f2", np.float16), ("<f4", np.float32), ("=f8", np.float64), ("double", np.float64),
    ("single", np.float32), ("half", np.float16), ("d", np.float64), ("e", np.float16), ("i8", np.int64), ("i4", np.int32), ("?", np.bool_),
    (float, np.float64), (int, np.int64), (bool, np.bool_), (np.double, np.float64), (np.dtype("f8"), np.float64), (np.dtype(int), np.int64),
    ("f16", np.float16), ("f64", np.float64), ("float32", np.float32), (np.float16, np.float16)])
def test_types_as_numpy_spells_them(name, type):
    assert librepdl.convert(f32, name).dtype == type
    if type in (np.float16, np.float32, np.float64):
        assert librepdl.random.Generator(1).uniform(3, name).dtype == librepdl.linspace(0, 1, 3, name).dtype == type


@pytest.mark.parametrize("name", [">f4", np.dtype(">f8"), "f12", "complex64", complex, "f4,f4", "V2", "u1", object, 3, 1.5, []])
def test_other_types(name):
    with pytest.raises(TypeError, match="convert: dtype: expected float16"):
        librepdl.convert(f32, name)


def test_clip_without_a_bound():
    x = np.float32([-np.inf, -1, -0.0, 2, np.inf, np.nan])
    for lo, hi in ((None, 1), (-0.5, None), (None, np.float32([0, 1, 2, 3, 4, 5])), (None, None)):
        same(librepdl.clip(x, lo, hi), np.clip(x, -np.inf if lo is None else lo, np.inf if hi is None else hi))
    same(librepdl.clip(x, -0.5), librepdl.clip(x, -0.5, None))
    same(librepdl.clip(np.float64([1, 5]), None, 3), np.float64([1, 3]))


def integers(*shape):
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(np.float32)


@pytest.mark.parametrize(("a", "b"), [((3, 4), (4,)), ((4,), (4, 3)), ((4,), (4,)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3)), ((0,), (0, 2)), ((3, 0), (0,))])
def test_products_of_vectors(library, a, b):
    array = lambda x: library.array(x.tobytes(), "f32", x.shape)  # noqa: E731
    x, y = integers(*a), integers(*b)
    want = np.matmul(x, y)
    got = librepdl.matmul(array(x), array(y))
    assert tuple(got.shape) == want.shape and library.bytes(got) == (want + 0.0).tobytes()
    out = array(np.full(want.shape, 7, np.float32))
    assert librepdl.matmul(array(x), array(y), out=out) is out and library.bytes(out) == library.bytes(got)
    bias = integers(*want.shape)
    assert library.bytes(librepdl.matmul(array(x), array(y), array(bias), beta=2)) == (want + 2 * bias + 0.0).tobytes()
    # Strided, and prepared.
    if len(b) == 1 and b[0]:
        assert librepdl.matmul(x, np.repeat(y, 2)[::2]).tobytes() == library.bytes(got)
        p = librepdl.prepare(lambda: librepdl.matmul(x, y))
        p.run()
        assert p.result.tobytes() == library.bytes(got)


def test_products_of_float64():
    x, y, c = (np.random.default_rng(i).normal(size=shape) * 2.0**np.random.default_rng(i).integers(-40, 40, shape)
               for i, shape in enumerate([(5, 7), (7, 4), (4,)]))
    rows, columns = ([[Fraction(v) for v in row] for row in m] for m in (x, y.T))
    sums = [[sum(map(mul, row, column)) for column in columns] for row in rows]
    want = np.float64([[float(s) for s in row] for row in sums])
    assert librepdl.matmul(x, y).tobytes() == want.tobytes() == librepdl.matmul(x.T.copy(), y, transpose_a=True).tobytes()
    scaled = [[float(Fraction(0.3) * s - 2 * Fraction(v)) for s, v in zip(row, c, strict=True)] for row in sums]
    assert librepdl.matmul(x, y, c, alpha=0.3, beta=-2).tobytes() == np.float64(scaled).tobytes()
    assert librepdl.matmul(np.float64([[2.0**1000, 1, -(2.0**1000)]]), np.float64([[2.0**900], [3], [2.0**900]])).item() == 3
    assert librepdl.matmul(np.zeros((2, 0)), np.zeros((0, 3)), np.full((2, 3), 0.1), alpha=7, beta=2).tolist() == [[0.2] * 3] * 2


def test_products_of_vectors_that_do_not_fit():
    for a, b in (((3,), (4,)), ((3, 4), (3,)), ((3,), (4, 3))):
        with pytest.raises(ValueError, match="matmul: "):
            librepdl.matmul(integers(*a), integers(*b))
    with pytest.raises(ValueError, match="matmul: "):
        librepdl.matmul(integers(3, 4), integers(4), out=np.zeros((3, 1), np.float32))


@pytest.mark.parametrize("given", [(5,), (0,), (-3,), (2, 7), (2, -7), (7, 2, -2), (0, 1, 0.1), (1, 1.3, 0.1), (0, 0.3, 0.1), (0.5, 3), (5, 5), (1, 2, -1),
                                   (np.float32(0.1), np.int64(2), 0.25)])
def test_arange(given):
    start, stop, step = (0, given[0], 1) if len(given) == 1 else (*given, 1)[:3]
    want, at = [], Fraction(float(start))
    while (at < Fraction(float(stop))) if step > 0 else (at > Fraction(float(stop))):
        want.append(float(at))
        at += Fraction(step)
    same(librepdl.arange(*given, dtype=np.float64), np.float64(want))
    assert librepdl.arange(*given).dtype == np.float32
    assert len(np.arange(*given)) == len(want)


@pytest.mark.parametrize(("error", "text", "call"), [
    (ValueError, "arange: step: expected a number that is not 0, got 0", lambda: librepdl.arange(0, 1, 0)),
    (ValueError, "arange: stop: expected a finite number, got inf", lambda: librepdl.arange(0, np.inf)),
    (ValueError, "arange: start: expected a finite number, got nan", lambda: librepdl.arange(np.nan, 1)),
    (TypeError, "arange: start: expected a number, got str", lambda: librepdl.arange("0", 1)),
    (TypeError, "arange: count: expected stop or count, got both", lambda: librepdl.arange(0, 1, count=3)),
])
def test_arange_that_cannot_be(error, text, call):
    with pytest.raises(error, match=text):
        call()


def test_linspace():
    same(librepdl.linspace(0, 1, 5, np.float64), np.linspace(0, 1, 5))
    assert librepdl.linspace(start=0, stop=1).shape == np.linspace(start=0, stop=1).shape == (50,)
    same(librepdl.linspace(1, 0, num=3), np.float32([1, 0.5, 0]))


def test_numpys_names():
    x, y = f32, np.abs(f32[::-1]) + np.float32(0.5)
    for name in ("absolute", "fabs", "negative", "rint", "fix", "amax", "amin"):
        same(getattr(librepdl, name)(x), np.asarray(getattr(np, name)(x)))
    for name in ("subtract", "multiply", "divide", "true_divide", "mod", "floor_divide"):
        same(getattr(librepdl, name)(x.astype(np.float64), y.astype(np.float64)), getattr(np, name)(x.astype(np.float64), y.astype(np.float64)))
    for name, ours in (("power", "pow"), ("expit", "sigmoid"), ("log_expit", "log_sigmoid"), ("arctan2", "atan2"), ("astype", "convert")):
        assert getattr(librepdl, name) is getattr(librepdl, ours) and name in librepdl.__all__
    assert not hasattr(librepdl, "concatenate")


def test_sums_of_float64():
    """NumPy's own type: exact sums, rounded once, of a list too, over any axes and strides."""
    hard = np.array([1e17, 1, -1e17, 0.1])
    same(librepdl.sum(hard), np.asarray(1.1))
    same(librepdl.sum([1e17, 1, -1e17, 0.1]), np.asarray(1.1))
    same(librepdl.mean(hard), np.asarray(0.275))
    same(librepdl.sum(np.float64([1, 2.0**-24, 5e-324]), dtype=np.float32), np.asarray(1 + 2.0**-23, np.float32))
    same(librepdl.mean(np.float32([1, 0, 0]), dtype=np.float64), np.asarray(1 / 3))
    same(librepdl.dot(np.float32([1, 2.0**-40]), np.float32([1, 1]), dtype="f8"), np.asarray(1 + 2.0**-40))
    row, column = np.float16([[1, 2.0**-12]]), np.float16([[1], [2.0**-11]])
    same(librepdl.matmul(row, column), np.float16([[1]]))
    same(librepdl.matmul(row, column, dtype=np.float32), np.float32([[1 + 2.0**-23]]))
    same(librepdl.matmul(row, column, np.float64([2.0**-40]), dtype="f8"), np.array([[1 + 2.0**-23 + 2.0**-40]]))
    same(librepdl.matmul(row, column, out=np.empty((1, 1))), np.array([[1 + 2.0**-23]]))
    with pytest.raises(ValueError, match="dtype: expected f32 or f64, of operands of f32, got f16"):
        librepdl.matmul(np.float32([[1]]), np.float32([[1]]), dtype=np.float16)
    same(librepdl.dot(hard, np.array([1, 0.1, 1, 1e-30])), np.asarray(0.1))
    same(librepdl.sum(np.array([1.7e308, 1.7e308, -1.7e308])), np.asarray(1.7e308))
    same(librepdl.sum(np.float64([1, 2.0**-53, 5e-324])), np.asarray(1 + 2.0**-52))
    same(librepdl.sum(np.zeros((3, 0)) - 0.0, axis=1), np.zeros(3))
    same(librepdl.sum(-np.zeros(3)), np.asarray(0.0))
    same(librepdl.vector_norm(np.ldexp([3.0, 4.0], -1072)), np.ldexp(np.asarray(5.0), -1072))
    same(librepdl.vector_norm(np.ldexp([3.0, -4.0], 900)), np.ldexp(np.asarray(5.0), 900))

    g = np.random.default_rng(64)
    x, y = (g.standard_normal((7, 50, 3)) * 2.0 ** g.integers(-60, 60, (7, 50, 3)) for _ in range(2))
    x[:, 1::2] = -x[:, ::2] * (1 + 2.0**-40 * g.integers(0, 2, (7, 25, 3)))
    exact = [[[Fraction(v) for v in row[:, j]] for j in range(3)] for row in x]
    other = [[[Fraction(v) for v in row[:, j]] for j in range(3)] for row in y]
    for a, b in ((x, y), (np.asfortranarray(x), y[::-1, :, ::-1][::-1, :, ::-1])):
        same(librepdl.sum(a, axis=1), np.float64([[float(sum(c)) for c in row] for row in exact]))
        same(librepdl.mean(a, axis=-2, keepdims=True), np.float64([[[float(sum(c) / 50) for c in row]] for row in exact]))
        same(librepdl.sum_squares(a, axis=1), np.float64([[float(sum(v * v for v in c)) for c in row] for row in exact]))
        same(librepdl.vector_norm(a, p=1, axis=1), np.float64([[float(sum(map(abs, c))) for c in row] for row in exact]))
        same(librepdl.prelu_weight_backward(b, a, axis=1), np.float64(
            [[float(sum(v * w for v, w in zip(c, d) if v <= 0)) for c, d in zip(row, of)] for row, of in zip(exact, other)]))
        same(librepdl.dot(a[3, :, 1], b[3, :, 1]), np.asarray(float(sum(v * w for v, w in zip(exact[3][1], other[3][1])))))
    out = np.full((7, 3), np.nan)
    assert librepdl.sum(x, axis=1, out=out) is out and out.tobytes() == librepdl.sum(x, axis=1).tobytes()


def test_softmax_of_float64():
    """Numbers that decimals round to, of so many digits that logarithms far below a gap that is a middle are seen."""
    g = np.random.default_rng(66)
    x = g.standard_normal((6, 20)) * 2.0 ** g.integers(-9, 9, (6, 1))
    with localcontext() as c:
        c.prec = 800
        rows = [[Decimal(v) for v in row] for row in x.tolist()]
        powers = [[v.exp() for v in row] for row in rows]
        logs = [sum(row).ln() for row in powers]
        softmax = np.float64([[float(e / sum(row)) for e in row] for row in powers])
        log_softmax = np.float64([[float(v - log) for v in row] for row, log in zip(rows, logs, strict=True)])
        tenth = Decimal(0.1)
        scaled = np.float64([[float(tenth * e / sum(row)) for e in row] for row in powers])
    for a in (x, np.asfortranarray(x), x[::-1, ::-1].copy()[::-1, ::-1]):
        same(librepdl.softmax(a), softmax)
        same(librepdl.log_softmax(a, axis=1), log_softmax)
        same(librepdl.logsumexp(a, axis=-1, keepdims=True), np.float64([[float(log)] for log in logs]))
        same(librepdl.logsumexp_backward(np.full(6, 0.1), a, axis=1), scaled)
    same(librepdl.softmax([1.0, 1, 1]), np.full(3, 1 / 3))
    same(librepdl.log_softmax([2.0**53, -1]), np.float64([-0.0, -(2.0**53) - 2]))
    same(librepdl.softmax_backward([1e308, 0], [4.0, 0.0625]), np.float64([-np.inf, -2.5e307]))
    same(librepdl.log_softmax_backward([1.0, 2], [0, -np.inf]), np.float64([-2, 2]))


def test_variances_of_float64():
    """The nearest numbers to exact fractions, whose squares middles are compared by where it is a root."""
    g = np.random.default_rng(65)
    x = g.standard_normal((7, 50, 3)) * 2.0 ** g.integers(-60, 60, (7, 1, 3)) + 1e12
    x[2] = 0.1
    spread = [[sum(v * v for v in c) - sum(c) ** 2 / 50 for c in ([Fraction(v) for v in row[:, j]] for j in range(3))] for row in x]
    for a in (x, np.asfortranarray(x), x[::-1, :, ::-1].copy()[::-1, :, ::-1]):
        for ddof in (0, 1, 49.5):
            n = 50 - Fraction(ddof)
            same(librepdl.var(a, axis=1, ddof=ddof), np.float64([[float(s / n) for s in row] for row in spread]))
            for s, std in zip(sum(spread, []), librepdl.stddev(a, axis=-2, correction=ddof).ravel().tolist(), strict=True):
                below, above = ((Fraction(std) + Fraction(float(np.nextafter(std, to)))) / 2 for to in (0, np.inf))
                assert s == 0 == std or below**2 <= s / n <= above**2
        var, mean = librepdl.var_mean(a, axis=(1,), statistics=True)
        same(var, librepdl.var(a, axis=1))
        same(mean, librepdl.mean(a, axis=1))
    same(librepdl.var([1e17, 1, -1e17, 0.1]), np.asarray(np.float64(2e34 / 3)))
    same(librepdl.std([1.0, 3]), np.asarray(1.0))
    assert np.isnan(librepdl.var([1.0])) and librepdl.var(np.full(9, 0.1)) == 0


def test_ddof():
    x = np.float32([[1, 2, 4], [3, 3, 9]])
    for ddof in (0, 1, 2):
        want = np.var(x.astype(np.float64), axis=0, ddof=ddof)
        for got in (librepdl.var(x, 0, ddof=ddof), librepdl.var(x, axis=0, correction=ddof), librepdl.var_mean(x, 0, ddof=ddof)):
            same(got, want.astype(np.float32)) if ddof < 2 else None
        same(librepdl.std(x, 0, ddof=ddof), librepdl.stddev(x, 0, correction=ddof))
        same(librepdl.std(x, axis=0, ddof=ddof, keepdims=True), librepdl.stddev(x, 0, True, ddof=ddof))
    same(librepdl.std(x), librepdl.stddev(x, ddof=0))
    same(librepdl.std(np.float32([1, 3])), np.asarray(np.std(np.float32([1, 3]))))


def test_norms_of_nothing():
    for p in (1, 2, np.inf):
        same(librepdl.total_norm([], p=p), np.asarray(np.float32(0)))
        same(librepdl.clip_grad_norm([], 1.0, p=p), np.asarray(np.float32(0)))
        same(librepdl.total_norm([np.zeros((0, 2), np.float16)], p=p), np.asarray(np.float16(0)))
    assert librepdl.sgd([], []) is None


def test_the_program_is_in_the_module(tmp_path):
    """python -m librepdl: with the digests of the package, wherever it is called; its arguments, output and statuses are the program's."""
    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "librepdl", *arguments], cwd=tmp_path, capture_output=True, text=True)

    assert re.search(r"^verified: [1-9].* 0 mismatches", run("verify", "--quick", "abs").stdout, re.M)
    wrong = run("verify", "no_such_operation")
    assert (wrong.returncode, wrong.stdout) == (2, "") and re.fullmatch("repdl: .*no_such_operation.*\n", wrong.stderr)
    assert not (Path(librepdl.__file__).parent / "bin").exists()
