"""Whose arrays are taken, and whose come back: layouts, protocols, numbers as operands, out=."""

import array as stdlib_array
import inspect
import pathlib
import re
from fractions import Fraction

import numpy as np
import pytest

import librepdl
from conftest import NUMPY_TYPES, ml_dtypes, torch

needs_torch = pytest.mark.skipif(torch is None, reason="no torch here")


def bits(x):
    return np.ascontiguousarray(x).tobytes()


def reference(x):
    """exp of the values, each computed from a contiguous copy."""
    return librepdl.exp(np.ascontiguousarray(x))


def layouts(a):
    """Views of an array of rank 3, each with the values it should have."""
    yield "negative", a[::-1, :, ::-1]
    yield "steps", a[::2, 1:, ::3]
    yield "permuted", a.transpose(2, 0, 1)
    yield "repeated", np.broadcast_to(a[:1], a.shape)
    yield "one element", a[1:2, 2:3, 3:4]
    yield "no elements", a[:, :0]
    yield "scalar", a[0, 0, 0, ...]
    yield "read-only", frozen(a)


def frozen(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def numbers(shape, seed=1):
    return librepdl.random.Generator(seed).normal(shape)


def test_layouts_of_numpy():
    for name, view in layouts(numbers((4, 5, 7))):
        got = librepdl.exp(view)
        assert isinstance(got, np.ndarray) and got.shape == view.shape and got.flags.c_contiguous, name
        assert bits(got) == bits(reference(view)), name


@needs_torch
def test_layouts_of_torch():
    t = torch.from_numpy(numbers((4, 5, 7)))
    for view in (t, t[::2, 1:, ::3], t.permute(2, 0, 1), t[:1].expand(4, 5, 7), t[:, :0], t[0, 0, 0], t.to(memory_format=torch.contiguous_format)):
        got = librepdl.exp(view)
        assert type(got) is torch.Tensor and got.shape == view.shape
        assert bits(got.numpy()) == bits(reference(view.numpy()))


@needs_torch
def test_an_image_in_channels_last():
    x = torch.from_numpy(numbers((2, 4, 6, 5))).to(memory_format=torch.channels_last)
    w = torch.from_numpy(numbers((3, 4, 3, 3), seed=2))
    got = librepdl.conv2d(x, w, padding=1)
    assert bits(got.numpy()) == bits(librepdl.conv2d(x.contiguous().numpy(), w.numpy(), None, 1, 1))


def test_ranks():
    for rank in range(9):
        x = numbers((2,) * rank)
        assert librepdl.exp(x).shape == x.shape
    with pytest.raises(ValueError, match="exp: x: "):
        librepdl.exp(np.zeros((1,) * 9, np.float32))


def test_buffers():
    values = [0.0, 1.0, -2.5]
    x = np.array(values, np.float32)
    for buffer in (stdlib_array.array("f", values), memoryview(x), memoryview(x)[::-1]):
        got = librepdl.exp(buffer)
        assert isinstance(got, np.ndarray) and bits(got) == bits(reference(np.asarray(buffer)))
    target = stdlib_array.array("f", [9.0] * 3)
    assert librepdl.exp(x, out=target) is target
    assert target.tobytes() == bits(reference(x))


class OnlyDlpack:
    """What a library offers that has neither exchange API nor buffers."""

    def __init__(self, x, versions=True):
        self.x, self.versions = x, versions

    def __dlpack__(self, *, stream=None, **options):
        if not self.versions and options:
            raise TypeError("unexpected keyword")
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __array_namespace__(self):
        return np


@pytest.mark.parametrize("versions", [True, False])
def test_dlpack(versions):
    x = numbers((3, 4))
    got = librepdl.exp(OnlyDlpack(x.T, versions))
    assert isinstance(got, np.ndarray) and bits(got) == bits(reference(x.T))
    with pytest.raises(ValueError, match="exp: out: expected an array that can be written, got a read-only one"):
        librepdl.exp(x, out=OnlyDlpack(frozen(x)))


def test_jax():
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(numbers((3, 4)))
    got = librepdl.exp(x)
    assert isinstance(got, jax.Array) and bits(np.asarray(got)) == bits(reference(np.asarray(x)))


@pytest.mark.parametrize("type", ["f16", "bf16", "f32", "f64"])
def test_formats(type):
    if type not in NUMPY_TYPES:
        pytest.skip("no ml_dtypes here")
    x = np.arange(-4, 4).astype(NUMPY_TYPES[type])
    got = librepdl.mul(x, x)
    assert got.dtype == x.dtype and bits(got) == bits((x.astype(np.float64) ** 2).astype(x.dtype))
    assert librepdl.less(x, 0.0).dtype == np.bool_ and librepdl.less(x, 0.0).tolist() == [True] * 4 + [False] * 4
    assert librepdl.astype(numbers(8), type).dtype == x.dtype
    assert librepdl.convert(numbers(8), NUMPY_TYPES[type]).dtype == x.dtype
    assert librepdl.convert(numbers(8), np.dtype(NUMPY_TYPES[type])).dtype == x.dtype


@pytest.mark.parametrize("to", sorted(NUMPY_TYPES))
@pytest.mark.parametrize("type", sorted(NUMPY_TYPES))
def test_convert(type, to):
    """NumPy's astype, where C++ defines it: numbers that fit the integer type."""
    r = np.random.default_rng(3)
    if type in ("i32", "i64"):
        info = np.iinfo(NUMPY_TYPES[type])
        x = r.integers(info.min, info.max, 600, NUMPY_TYPES[type], endpoint=True) >> r.integers(0, info.bits, 600, NUMPY_TYPES[type])
    elif type == "bool":
        x = r.integers(0, 2, 600).astype(np.bool_)
    else:
        x = (r.standard_normal(600) * 2.0 ** r.integers(-8, 14, 600)).astype(NUMPY_TYPES[type])
        x[:4] = [0.0, -0.0, 0.5, -1.5]
    if (type, to) == ("i64", "i32"):
        x = np.clip(x, -2**31, 2**31 - 1)
    target = np.dtype(NUMPY_TYPES[to])
    with np.errstate(over="ignore"):
        # NumPy rounds to bfloat16 and 8 bits, and integers to float16, by way of another format; here from 8 bits to integers, too.
        small = ("bf16", "f8_e4m3fn", "f8_e5m2")
        by_way = (to in small and type in ("f64", "i32", "i64")) or (to == "f16" and type in ("i32", "i64"))
        by_way = by_way or (type.startswith("f8") and to in ("i32", "i64") and not np.isfinite(x.astype(np.float32)).all())
        expected = None if by_way else x.astype(target)
    got = librepdl.convert(x, target)
    assert got.dtype == target and got.shape == x.shape
    if expected is not None:
        known = ~np.isnan(expected.astype(np.float64))  # of a NaN theirs keep the sign
        assert bits(got[known]) == bits(expected[known]) and np.isnan(got.astype(np.float64)).tolist() == (~known).tolist()
    for form in (to, target.type, target):
        assert bits(librepdl.astype(x, form)) == bits(got)
    assert bits(librepdl.convert(x[::-3], to)) == bits(got[::-3])
    out = np.empty(600, target)
    assert librepdl.convert(x, to, out=out) is out and bits(out) == bits(got)


@pytest.mark.parametrize("type, largest, beyond, over", [("f8_e4m3fn", 448.0, 464.0, 0x7F), ("f8_e5m2", 57344.0, 61440.0, 0x7C)])
def test_convert_to_8_bits(type, largest, beyond, over):
    """One rounding, of doubles and of integers, too; what is too large; and the names that NumPy, ml_dtypes and PyTorch have."""
    if type not in NUMPY_TYPES:
        pytest.skip("no ml_dtypes here")
    step = {"f8_e4m3fn": 2.0**-4, "f8_e5m2": 2.0**-3}[type]
    x = np.array([1 + step, 1 + step + 2.0**-40, -1 - step - 2.0**-40, largest, beyond * (1 + 2.0**-40), -np.inf, np.nan, -0.0])
    target = np.dtype(NUMPY_TYPES[type])
    values = [1, 1 + 2 * step, -1 - 2 * step, largest]
    got = librepdl.convert(x, target)
    assert got.dtype == target and got[:4].astype(np.float64).tolist() == values
    assert got.view(np.uint8)[4:].tolist() == [over, over | (0x80 if over != 0x7F else 0), 0x7F, 0x80]
    full = librepdl.convert(x, target, saturate=True)
    assert full[:6].astype(np.float64).tolist() == [*values, largest, -largest] and full.view(np.uint8)[6] == 0x7F
    assert librepdl.convert(got, "f64")[:4].tolist() == values
    assert bits(librepdl.convert(np.array([17, 10**18]), type, saturate=True).astype(np.float64)) == bits(np.array([16.0, largest]))
    for name in (type, "float8" + type[2:], target.type):
        assert bits(librepdl.convert(x, name)) == bits(got)
    with pytest.raises(NotImplementedError, match=f"mul: x: expected .*got {type}"):
        librepdl.mul(got, got)
    with pytest.raises(ValueError, match="convert: saturate: expected false, or a result of f8_e4m3fn or f8_e5m2"):
        librepdl.convert(x, "f32", saturate=True)


def test_convert_where_numpy_does_not():
    x = np.array([np.nan, np.inf, -np.inf, 2.0**31, -2.0**31 - 1, 2.0**63, -2.0**63, 1e300, 0.99, -0.99], np.float64)
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    assert librepdl.convert(x, np.int32).tolist() == [0, high, low, high, low, high, low, high, 0, 0]
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    assert librepdl.convert(x, np.int64).tolist() == [0, high, low, 2**31, -2**31 - 1, high, low, high, 0, 0]
    assert librepdl.convert(x, bool).tolist() == [True] * 10
    assert librepdl.convert(np.array([2**40, -2**40]), "int32").tolist() == [2**31 - 1, -2**31]
    middle = 2**62 + 2**38  # of binary32; next to it, and rounded once
    assert librepdl.convert(np.array([middle, middle + 1]), "float32").tolist() == [2.0**62, 2.0**62 + 2.0**39]


@needs_torch
def test_convert_of_torch():
    x = torch.tensor([-1.5, 0.0, 3e9, float("nan")])
    assert torch.equal(librepdl.convert(x, torch.int32), torch.tensor([-1, 0, 2**31 - 1, 0], dtype=torch.int32))
    assert torch.equal(librepdl.convert(x, torch.int64), torch.tensor([-1, 0, 3 * 10**9, 0]))
    assert torch.equal(librepdl.convert(x, torch.bool), torch.tensor([True, False, True, True]))
    assert torch.equal(librepdl.convert(torch.tensor([3, -2**62]), torch.bfloat16), torch.tensor([3.0, -2.0**62], dtype=torch.bfloat16))
    assert torch.equal(librepdl.convert(torch.tensor([True, False]), torch.float32), torch.tensor([1.0, 0.0]))


@needs_torch
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_float8_of_torch(name):
    dtype = getattr(torch, name)
    every = torch.arange(256, dtype=torch.uint8).view(dtype)
    wide = librepdl.convert(every, torch.float32)
    assert torch.equal(torch.nan_to_num(wide, -1.0), torch.nan_to_num(every.to(torch.float32), -1.0))
    assert librepdl.convert(wide, dtype).dtype == dtype
    assert librepdl.convert(wide, dtype).view(torch.uint8).tolist() == [0x7F if torch.isnan(w) else i for i, w in enumerate(wide)]


@needs_torch
def test_bfloat16_of_torch():
    x = torch.arange(-4, 4, dtype=torch.bfloat16)
    got = librepdl.mul(x, x)
    assert got.dtype == torch.bfloat16 and torch.equal(got, x * x)
    assert librepdl.convert(x, torch.float32).dtype == torch.float32


def test_result_into_out():
    x = numbers((4, 6))
    out = np.full((8, 12), 7, np.float32)
    view = out[::-2, ::2]
    assert librepdl.exp(x, out=view) is view
    assert bits(view) == bits(reference(x))
    assert (out[::2] == 7).all() and (out[:, 1::2] == 7).all()
    assert librepdl.exp(x, out=x) is x and bits(x) == bits(view)


@pytest.mark.parametrize("type", ["f16", "f32", "f64"])
def test_results_in_another_format(type):
    x, y = numbers((5, 7)), numbers((5, 7), seed=2)
    expected = bits((x.astype(np.float64) + y.astype(np.float64)).astype(NUMPY_TYPES[type]))
    got = librepdl.add(x, y, dtype=type)
    assert got.dtype == NUMPY_TYPES[type] and bits(got) == expected
    out = np.empty((5, 7), NUMPY_TYPES[type])
    assert librepdl.add(x, y, out=out) is out and bits(out) == expected
    with pytest.raises(TypeError, match="add: out: "):
        librepdl.add(x, y, out=out, dtype="f32" if type != "f32" else "f16")


@needs_torch
def test_two_libraries():
    x = numbers(5)
    t = torch.empty(5)
    assert librepdl.exp(x, out=t) is t and bits(t.numpy()) == bits(reference(x))
    assert isinstance(librepdl.add(x, t), np.ndarray) and isinstance(librepdl.add(t, x), torch.Tensor)


# ---------------------------------------------------------------------------------------------- numbers as operands


def test_reductions_of_float16():
    # Their sums are doubles, exactly; NumPy rounds those once.
    x = np.random.default_rng(3).integers(-2**11, 2**11, (40, 700)).astype(np.float16)
    exact = x.astype(np.float64)
    with np.errstate(over="ignore"):
        assert bits(librepdl.sum(x, axis=1)) == bits(exact.sum(axis=1).astype(np.float16))
        assert bits(librepdl.mean(x[:, :512], axis=1)) == bits(exact[:, :512].mean(axis=1).astype(np.float16))
        assert bits(librepdl.dot(np.sign(x[0]), x[1])) == bits(np.array(np.sign(exact[0]) @ exact[1]).astype(np.float16))
    assert bits(librepdl.max(x, axis=0)) == bits(x.max(axis=0))
    assert bits(librepdl.argmin(x, axis=0)) == bits(x.argmin(axis=0))
    with pytest.raises((TypeError, NotImplementedError), match="dot: y"):
        librepdl.dot(x[0], x[1].astype(np.float32))


def rounded(value, dtype):
    """A Python number in a format, by NumPy, which converts the exact double once."""
    return np.array(value, np.float64).astype(dtype)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-45, 1e-46, 3.4028235677973366e38, 1e60, -0.0, float("inf"), 65519.99, 65520.0, True, 3])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_number_is_rounded_to_the_arrays_format(value, dtype):
    one = np.ones(3, dtype)
    with np.errstate(over="ignore"):
        expected = np.broadcast_to(rounded(value, dtype), 3)
    assert bits(librepdl.mul(one, value)) == bits(expected)
    assert bits(librepdl.mul(value, one)) == bits(expected)


def test_integers_are_rounded_once():
    # To f32: 2^24 + 1 is a tie; with a bit far below it is none, and as a double it would be one again.
    tie, above = (1 << 24) + 1, (((1 << 24) + 1) << 60) + 1
    one = np.ones(1, np.float32)
    assert librepdl.mul(one, tie)[0] == 2.0**24
    assert librepdl.mul(one, above)[0] == (2.0**24 + 2) * 2.0**60
    assert librepdl.mul(one, -above)[0] == -(2.0**24 + 2) * 2.0**60
    assert librepdl.mul(one, 10**400)[0] == np.inf and librepdl.mul(one, -(10**400))[0] == -np.inf
    double = np.ones(1, np.float64)
    for n in ((1 << 53) + 1, (1 << 53) + 3, (((1 << 53) + 1) << 9) + 1, 10**300, 10**400):
        expected = float(n) if n < 10**308 else np.inf
        assert librepdl.mul(double, n)[0] == expected


def test_options_are_exact_doubles():
    # So is alpha: x - alpha y is rounded once, and is another number with an alpha of f32.
    x, y = np.float32([1677721.5]), np.float32([16777215.0])
    for alpha in (0.1, float(np.float32(0.1))):
        assert librepdl.sub(x, y, alpha=alpha)[0] == np.float32(float(Fraction(3355443, 2) - Fraction(alpha) * 16777215))
    # slope x, with the slope as it is: a double.
    y = np.float32([-3.0])
    assert librepdl.leaky_relu(y, slope=0.1)[0] == np.float32(-3.0 * 0.1)
    # The two differ where rounding first matters.
    z = np.float32([-16777215.0])
    assert librepdl.leaky_relu(z, slope=0.1)[0] == np.float32(-16777215.0 * 0.1)
    assert librepdl.mul(z, 0.1)[0] == np.float32(-16777215.0 * float(np.float32(0.1)))


def test_numpys_own_scalars_are_arrays():
    x = np.ones(3, np.float32)
    assert bits(librepdl.mul(x, np.float32(0.1))) == bits(np.full(3, 0.1, np.float32))
    with pytest.raises((TypeError, NotImplementedError), match="mul: y"):
        librepdl.mul(x, np.float64(0.1))


def test_pooling_of_float16():
    x = np.random.default_rng(4).integers(-2**11, 2**11, (2, 3, 7, 6)).astype(np.float16)
    windows = [[x[:, :, i:i + 3, j:j + 2].astype(np.float64) for j in (0, 2, 4)] for i in (0, 3, 6)]  # the last row: one of 3 taps
    for pool, reduced in ((librepdl.max_pool2d, np.max), (librepdl.avg_pool2d, np.mean)):
        exact = np.stack([np.stack([reduced(w, axis=(2, 3)) for w in row], -1) for row in windows], -2)
        assert bits(pool(x, (3, 2), ceil_mode=True)) == bits(exact.astype(np.float16))
    sums = np.stack([np.stack([w.sum(axis=(2, 3)) for w in row], -1) for row in windows], -2)
    assert bits(librepdl.avg_pool2d(x, (3, 2), ceil_mode=True, divisor_override=-4)) == bits((sums / -4 + 0.0).astype(np.float16))
    g = np.ones((2, 3, 3, 3), np.float16)
    grad = librepdl.avg_pool2d_backward(g, (3, 2), (7, 6), ceil_mode=True)
    assert bits(grad[:, :, :6]) == bits(np.full((2, 3, 6, 6), np.float16(1 / 6))) and np.all(grad[:, :, 6] == 0.5)
    with pytest.raises((TypeError, NotImplementedError), match="max_pool2d_backward: x"):
        librepdl.max_pool2d_backward(g, x.astype(np.float32), (3, 2), ceil_mode=True)


def test_adaptive_pooling_and_indices():
    x = np.random.default_rng(5).standard_normal((2, 3, 7, 5)).astype(np.float32)
    windows = [[np.ix_(range(2), range(3), range(7 * i // 3, -(-7 * (i + 1) // 3)), range(5 * j // 2, -(-5 * (j + 1) // 2)))
                for j in range(2)] for i in range(3)]
    plane = np.arange(35).reshape(1, 1, 7, 5) + np.zeros((2, 3, 1, 1), np.int64)
    greatest, where = librepdl.adaptive_max_pool2d_with_indices(x, (3, 2))
    mean = librepdl.adaptive_avg_pool2d(x, (3, 2))
    assert where.dtype == np.int64 and bits(greatest) == bits(librepdl.adaptive_max_pool2d(x, (3, 2)))
    assert bits(np.take_along_axis(x.reshape(2, 3, 35), where.reshape(2, 3, 6), -1)) == bits(greatest.reshape(2, 3, 6))
    for i, row in enumerate(windows):
        for j, w in enumerate(row):
            n = x[w].shape[2] * x[w].shape[3]
            assert bits(x[w].max(axis=(2, 3))) == bits(greatest[:, :, i, j])
            assert all(k in plane[w][0, 0] for k in where[:, :, i, j].ravel())
            exact = [[float(sum(map(Fraction, map(float, c.ravel()))) / n) for c in sample] for sample in x[w]]
            assert bits(np.array(exact, np.float32)) == bits(mean[:, :, i, j])
    g = np.ones((2, 3, 3, 2), np.float32)
    assert librepdl.adaptive_max_pool2d_backward(g, x).sum() == g.size
    assert bits(librepdl.adaptive_avg_pool2d_backward(g, (6, 4))) == bits(np.full((2, 3, 6, 4), np.float32(1 / 4)))
    out, where = librepdl.max_pool2d_with_indices(x, 2)
    assert bits(out) == bits(librepdl.max_pool2d(x, 2)) and where[0, 0, 0, 0] in (0, 1, 5, 6)


# ------------------------------------------------------------------------------------------------ options, spellings


def test_options():
    x = numbers((2, 3, 8, 8))
    w = numbers((4, 3, 3, 3), seed=2)
    full = librepdl.conv2d(x, w, None, (1, 1), (1, 1, 1, 1), (1, 1), 1)
    assert bits(librepdl.conv2d(x, w, padding=1)) == bits(librepdl.conv2d(x, w, padding=[1, 1])) == bits(full)
    assert librepdl.max_pool2d(x, 2).shape == (2, 3, 4, 4)
    assert librepdl.sum(x).shape == () and librepdl.sum(x, axis=()).shape == x.shape
    assert librepdl.sum(x, 1).shape == (2, 8, 8) and librepdl.sum(x, (0, -1), True).shape == (1, 3, 8, 1)
    assert bits(librepdl.sum(x, np.int64(1))) == bits(librepdl.sum(x, axis=[1]))
    assert librepdl.subtract is librepdl.sub and librepdl.astype is librepdl.convert


@pytest.mark.parametrize("type", ["int64", "int32", "bool"])
def test_reductions_of_integers(type):
    r = np.random.default_rng(5)
    x = r.integers(0, 2, (6, 50, 7)).astype(bool) if type == "bool" else r.integers(-2**31, 2**31, (6, 50, 7)).astype(type)
    for axis in (None, 0, 1, -1, (0, 2)):
        for y in (x, x[::-1, ::2].transpose(1, 2, 0)):
            for name in ("sum", "prod", "max", "min"):
                got, expected = getattr(librepdl, name)(y, axis, keepdims=True), getattr(np, name)(y, axis, keepdims=True)
                assert got.dtype == expected.dtype and got.shape == expected.shape and bits(got) == bits(expected)
            # Sums of fewer than 2^22 numbers below 2^31: NumPy's binary64 sums are exact, too.
            got, expected = librepdl.mean(y, axis), np.mean(y, axis)
            assert got.dtype == np.float64 and bits(got) == bits(np.asarray(expected))
            if not isinstance(axis, tuple):
                for name in ("argmax", "argmin"):
                    assert bits(getattr(librepdl, name)(y, axis)) == bits(np.asarray(getattr(np, name)(y, axis)))
    for name in ("cumsum", "cumprod"):
        got, expected = getattr(librepdl, name)(x[::-1, ::2], axis=1), getattr(np, name)(x[::-1, ::2], axis=1)
        assert got.dtype == np.int64 and bits(got) == bits(expected)
    assert librepdl.sum(np.array([2**63 - 1, 1])) == -2**63
    assert librepdl.mean(np.array([2**53 + 1, -2**53])) == 0.5  # NumPy converts first, and has 0
    out = np.zeros((), np.int64)
    assert librepdl.sum(x, out=out) is out and out == x.sum()
    with pytest.raises(ValueError, match="max: x: expected at least one element"):
        librepdl.max(x[:0])
    with pytest.raises(NotImplementedError, match="dot: x: expected f16, bf16, f32 or f64"):
        librepdl.dot(x[0, 0], x[0, 0])


@pytest.mark.parametrize("type", ["float64", "float32", "float16"])
def test_exponents(type):
    r = np.random.default_rng(6)
    x = r.integers(0, 1 << 16, (40, 50, 4)).astype(np.uint16).view(type).reshape(-1)
    x = x[np.isfinite(x)]
    m, e = librepdl.frexp(x)
    expected = np.frexp(x)
    assert m.dtype == x.dtype and e.dtype == np.int32 and bits(m) == bits(expected[0]) and bits(e) == bits(expected[1])
    with np.errstate(all="ignore"):
        n = r.integers(-70, 70, x.shape)
        assert bits(librepdl.ldexp(x[::-1], n)) == bits(np.ldexp(x[::-1], n))
        assert bits(librepdl.ldexp(x, n[:1].astype(np.int32))) == bits(np.ldexp(x, n[0])) and bits(librepdl.ldexp(x, 3)) == bits(np.ldexp(x, 3))
    assert librepdl.ldexp(np.ones(1, type), -2**63)[0] == 0 and librepdl.ldexp(-np.ones(1, type), 2**63 - 1)[0] == -np.inf
    m, e = librepdl.frexp(np.array([np.inf, -np.inf, np.nan, -0.0], type))
    assert m[0] == np.inf and m[1] == -np.inf and np.isnan(m[2]) and m[3] == 0 and np.signbit(m[3]) and not e.any()
    with pytest.raises(NotImplementedError, match="ldexp: n: expected i64 or i32"):
        librepdl.ldexp(x, x)


def attention_formula(q, k, v, mask=None, slopes=None, scale=None, off=0, is_seen=lambda d: True):
    """(results, logarithms) in float64: of an error below 2^-45, which changes no result that is rounded to fewer bits here."""
    heads, queries, size = q.shape
    groups, keys, _ = k.shape
    k, v = (np.repeat(x.astype(np.float64), heads // groups, 0) for x in (k, v))
    a = np.einsum("hid,hjd->hij", q.astype(np.float64), k) * (1 / np.sqrt(size) if scale is None else scale)
    distance = np.arange(keys) - np.arange(queries)[:, None] - off
    if slopes is not None:
        a += slopes[:, None, None].astype(np.float64) * distance
    if mask is not None:
        a = np.where(mask, a, -np.inf) if mask.dtype == bool else a + mask.astype(np.float64)
    a = np.where(is_seen(distance), a, -np.inf)
    with np.errstate(all="ignore"):
        w = np.exp(a - np.max(a, -1, keepdims=True, initial=-1e300))
        total = w.sum(-1)
        out = np.where(total[..., None] == 0, 0, np.einsum("hij,hje->hie", w, v) / total[..., None])
        return out, np.max(a, -1, initial=-np.inf) + np.log(total)


@pytest.mark.parametrize("type", ["float32", "float16"])
def test_attention(type):
    r = np.random.default_rng(7)
    q, k, v = (r.standard_normal(shape).astype(type) for shape in ((6, 9, 8), (3, 13, 8), (3, 13, 5)))
    seen = r.random((6, 1, 13)) < 0.7
    added = np.where(r.random((9, 13)) < 0.8, r.standard_normal((9, 13)), -np.inf).astype(type)
    added[4] = -np.inf
    slopes = r.standard_normal(6).astype(np.float32) / 8
    for options, formula in (({}, {}), ({"mask": seen, "scale": 0.3}, {"mask": seen, "scale": 0.3}),
                             ({"causal": True}, {"is_seen": lambda d: d <= 0}),
                             ({"mask": added, "slopes": slopes, "bottom_right": True, "left": 5, "right": 2},
                              {"mask": added, "slopes": slopes, "off": 4, "is_seen": lambda d: (d >= -5) & (d <= 2)})):
        out, lse = attention_formula(q, k, v, **formula)
        got = librepdl.attention(q, k, v, **options)
        assert got.dtype == q.dtype and got.shape == (6, 9, 5) and bits(got) == bits(out.astype(type))
        both = librepdl.attention(q, k, v, **options, lse=True)
        assert bits(both[0]) == bits(got) and both[1].dtype == np.float32 and bits(both[1]) == bits(lse.astype(np.float32))
        if "slopes" in options:
            assert not got[:, 4].any() and (both[1][:, 4] == -np.inf).all()
    one = librepdl.attention(q[0, 3:4], k[0], v[0])
    assert bits(one) == bits(librepdl.attention(q, k, v)[0, 3:4])
    whole = librepdl.attention(q[None], k[None], v[None], mask=seen[None])
    assert bits(whole[0]) == bits(librepdl.attention(q, k, v, mask=seen))
    out, lse = np.empty_like(got), np.empty((6, 9), np.float32)
    given = librepdl.attention(q, k, v, out=(out, lse), lse=True)
    assert given[0] is out and given[1] is lse and bits(out) == bits(librepdl.attention(q, k, v))
    assert bits(librepdl.attention(q, k, v, out=(None, lse), lse=True)[0]) == bits(out)
    assert librepdl.attention(q, k, v, out=out) is out


def test_errors_of_attention():
    q = np.ones((4, 3, 2), np.float32)
    for error, text, k, v, options in (
            (ValueError, "k: expected heads, axis -3, a divisor of q's 4", np.ones((3, 5, 2), "f"), np.ones((3, 5, 2), "f"), {}),
            (ValueError, "v: expected as many keys, axis -2, as k: 3", q, q[:, :2], {}),
            (NotImplementedError, "k: expected f32", q.astype(np.float16), q, {}),
            (NotImplementedError, "mask: expected", q, q, {"mask": np.ones((3, 3))}),
            (ValueError, "mask: expected a shape that broadcasts", q, q, {"mask": np.ones((2, 3), bool)}),
            (ValueError, "slopes: expected shape", q, q, {"slopes": np.ones(3, "f")}),
            (ValueError, "scale: expected", q, q, {"scale": np.inf}),
            (TypeError, "lse: expected a bool", q, q, {"lse": 1}),
            (TypeError, "causal: expected a bool", q, q, {"causal": 1}),
            (ValueError, "lse: expected", q, q, {"lse": True, "out": (None, np.ones((4, 3, 1), "f"))})):
        with pytest.raises(error, match=re.escape(f"attention: {text}")):
            librepdl.attention(q, k, v, **options)
    with pytest.raises(TypeError):
        librepdl.attention(q, q, q, np.ones((3, 3), bool))


def test_functions_of_no_array():
    x = librepdl.linspace(0, 1, 5)
    assert isinstance(x, np.ndarray) and x.dtype == np.float32 and x.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert librepdl.arange(1, step=0.1, count=11, dtype=np.float64)[10] == 2 and librepdl.arange(0, count=0).shape == (0,)
    out = np.zeros(3, np.float16)
    assert librepdl.linspace(-1, 1, 3, np.float16, out=out) is out and out.tolist() == [-1, 0, 1]
    with pytest.raises(ValueError, match="linspace: stop: "):
        librepdl.linspace(0, np.inf, 3)
    g = librepdl.random.Generator(3)
    assert (g.exponential((50, 2)) > 0).all() and g.stream == 1
    for t, value in ((np.float32, 2.0**-33), (np.float16, 2.0**-24)):  # u = 1
        draws = librepdl.random.Generator(149059).exponential((30340,), t)
        assert draws[30338] == value and draws.min() == value
    assert (librepdl.random.Generator(1).exponential((9,), np.float32, 2.0**200) == np.float32(2.0**-149)).all()


def test_gradients_of_a_convolution_take_no_bias():
    x = numbers((1, 1, 2, 2))
    for call in (lambda: librepdl.conv2d_grad_input(x, x[:, :, :1, :1], (2, 2), bias=x[0, 0, 0]),
                 lambda: librepdl.conv2d_grad_weight(x, x, (1, 1), bias=x[0, 0, 0])):
        with pytest.raises(TypeError, match="'bias'"):
            call()


def test_upsampling():
    x = numbers((1, 2, 3, 4))
    assert bits(librepdl.upsample_nearest2d(x, (6, 8))) == bits(x.repeat(2, 2).repeat(2, 3))
    g = librepdl.upsample_nearest2d_backward(np.ones((1, 1, 5, 5), np.float32), (2, 2), scale_h=2.0, scale_w=2.5)
    assert g.tolist() == [[[[6, 4], [9, 6]]]]


def test_the_page_names_every_parameter():
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/python-api.md").read_text()
    headings = dict(re.findall(r"^### (\w+)\((.*)\)$", page, re.M))
    for name, parameters in headings.items():
        function = getattr(librepdl, name, None) or getattr(librepdl.random.Generator, name)
        names = [p.split("=")[0] for p in parameters.split(", ") if p not in "/*"]
        assert names == [n for n in inspect.signature(function).parameters if n != "self"]
    functions = {getattr(librepdl, n).__name__ for n in librepdl._functions.__all__}
    assert functions < set(headings) and {"normal", "dropout"} < set(headings) - functions


def test_descriptions():
    for name in librepdl._functions.__all__:
        assert "Why the bits are right" in getattr(librepdl, name).__doc__
    assert librepdl.exp.__doc__.startswith("e^x, rounded once.")


# -------------------------------------------------------------------------------------------- what NumPy rounds right, too


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_bits_of_numpy(dtype):
    """Of IEEE operations, roundings, comparisons and classes: on random patterns, all classes among them."""
    generator = np.random.default_rng(7)
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    x, y = (generator.integers(0, 1 << 63, 100_000, np.uint64, endpoint=False).astype(np.uint64) for _ in range(2))
    x, y = ((v * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(64 - 8 * unsigned.itemsize)).astype(unsigned).view(dtype) for v in (x, y))
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, np.finfo(dtype).tiny, -np.finfo(dtype).max], dtype)
    x, y = np.concatenate([x, np.repeat(special, special.size)]), np.concatenate([y, np.tile(special, special.size)])

    def same(ours, theirs):
        assert ours.dtype == theirs.dtype
        if ours.dtype == dtype:
            assert (np.isnan(ours) == np.isnan(theirs)).all()
            ours, theirs = (np.where(np.isnan(v), 0, v).astype(dtype).view(unsigned) for v in (ours, theirs))
        assert (ours == theirs).all()

    with np.errstate(all="ignore"):
        for one in ("floor", "ceil", "trunc", "sqrt", "square", "reciprocal", "isnan", "isinf", "isfinite", "signbit"):
            same(getattr(librepdl, one)(x), getattr(np, one)(x))
        same(librepdl.round(x), np.rint(x))
        same(librepdl.add(librepdl.sign(x), 0.0), np.sign(x))  # NumPy makes -0 +0
        for two in ("add", "subtract", "copysign", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
            same(getattr(librepdl, two)(x, y), getattr(np, two)(x, y))
        same(librepdl.mul(x, y), np.multiply(x, y))
        same(librepdl.div(x, y), np.divide(x, y))
        for ours, theirs in ((librepdl.fmax, np.fmax), (librepdl.maximum, np.maximum), (librepdl.fmin, np.fmin), (librepdl.minimum, np.minimum)):
            same(librepdl.abs(ours(x, y)), np.abs(theirs(x, y)))  # NumPy takes either zero


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_boolean_operands(dtype):
    x = np.array([np.nan, -0.0, 1.5, np.inf, -2], dtype)
    x.view(f"u{x.itemsize}")[0] |= 3  # a payload, which is kept
    cond = np.array([True, False, True, False, True])
    assert bits(librepdl.where(cond, x, -x)) == bits(np.where(cond, x, -x))
    assert bits(librepdl.where(cond, x, 0.1)) == bits(np.where(cond, x, dtype(0.1)))
    assert bits(librepdl.where(cond[::-1], 2, x)) == bits(np.where(cond[::-1], dtype(2), x))
    assert bits(librepdl.where(cond[:, None], x, np.zeros((), dtype))) == bits(np.where(cond[:, None], x, dtype(0)))
    assert bits(librepdl.masked_fill(x, cond, value=0.1)) == bits(np.where(cond, dtype(0.1), x))
    assert bits(librepdl.masked_fill(x, cond, value=-0.0)) == bits(np.where(cond, dtype(-0.0), x))
    for ours, theirs in ((librepdl.logical_and, np.logical_and), (librepdl.logical_or, np.logical_or), (librepdl.logical_xor, np.logical_xor)):
        for a, b in ((x, x[::-1]), (cond, cond[::-1])):
            got = ours(a, b)
            assert got.dtype == np.bool_ and bits(got) == bits(theirs(a, b))
        assert bits(ours(x, 0)) == bits(theirs(x, 0))
    assert bits(librepdl.logical_not(x)) == bits(np.logical_not(x))
    with pytest.raises(NotImplementedError, match="cond: expected bool"):
        librepdl.where(x, x, x)
    with pytest.raises(NotImplementedError, match="cond: expected bool"):
        librepdl.where(1, x, x)


def test_options_of_every_kind():
    x = np.array([np.nan, -0.0, 0.0, 1.5, np.inf, -np.inf], np.float32)
    largest = np.finfo(np.float32).max
    assert bits(librepdl.clamp(x)) == bits(x)
    assert bits(librepdl.clamp(x, min=0)) == bits(np.array([np.nan, 0, 0, 1.5, np.inf, 0], np.float32))
    assert bits(librepdl.clamp(x, max=-0.0)) == bits(np.array([np.nan, -0.0, -0.0, -0.0, -0.0, -np.inf], np.float32))
    assert bits(librepdl.clip(x, -1, np.float32([1]))) == bits(np.array([np.nan, -0.0, 0, 1, 1, -1], np.float32))
    assert bits(librepdl.hardtanh(x, max_val=2)) == bits(np.array([np.nan, -0.0, 0, 1.5, 2, -1], np.float32))
    assert bits(librepdl.threshold(x, threshold=np.inf, value=np.nan)) == bits(np.full(6, np.nan, np.float32))
    assert bits(librepdl.hardshrink(x, lambd=1.5)) == bits(np.array([np.nan, 0, 0, 0, np.inf, -np.inf], np.float32))
    for options, want in (({}, [0, -0.0, 0, 1.5, largest, -largest]), ({"nan": -0.0}, [-0.0, -0.0, 0, 1.5, largest, -largest]),
                          ({"posinf": np.inf, "neginf": None}, [0, -0.0, 0, 1.5, np.inf, -largest]),
                          ({"neginf": np.nan}, [0, -0.0, 0, 1.5, largest, np.nan])):
        assert bits(librepdl.nan_to_num(x, **options)) == bits(np.array(want, np.float32)), options
    assert bits(librepdl.nan_to_num(x.astype(np.float16))) == bits(np.nan_to_num(x.astype(np.float16)))
    with pytest.raises(ValueError, match="max_val: expected a number >= min_val"):
        librepdl.hardtanh(x, min_val=2)
    with pytest.raises(ValueError, match="threshold: expected a number, not NaN"):
        librepdl.threshold(x, threshold=np.nan)


def test_steps_of_float16():
    # Middles of two numbers, an exact zero, and the middle of the greatest number and infinity.
    p, g = np.float16([1 + 2**-10, 1 + 3 * 2**-10, 2**-24, 65504]), np.float16([2**-11, 2**-11, 2**-24, -16])
    velocity = np.zeros(4, np.float32)
    librepdl.sgd([p], [g], [velocity], lr=1.0, momentum=0.5)
    assert p.dtype == np.float16 and p.tolist() == [1, 1 + 2**-9, 0, np.inf] and velocity.tolist() == g.tolist()


def test_steps_of_float64():
    """The nearest numbers to exact fractions; states are float64, too."""
    g = np.random.default_rng(66)

    def some():
        return g.standard_normal(50) * 2.0 ** g.integers(-40, 40, 50)

    def nearest(exact):
        return [float(x) for x in exact]

    p, d, v = some(), some(), some()
    d[:5] = 1e300  # whose squares are beyond binary64
    lr, decay, mu = Fraction(0.1), Fraction(0.01), Fraction(0.9)
    exact_p, exact_d, exact_v = ([Fraction(x) for x in a.tolist()] for a in (p, d, v))
    plain = p.copy()
    librepdl.sgd([plain], [d], lr=0.1, weight_decay=0.01)
    assert plain.tolist() == nearest(x - lr * (y + decay * x) for x, y in zip(exact_p, exact_d))
    velocity, moved = v.copy(), p.copy()
    librepdl.sgd([moved], [d], [velocity], lr=0.1, momentum=0.9, weight_decay=0.01)
    assert velocity.tolist() == nearest(mu * w + y + decay * x for x, y, w in zip(exact_p, exact_d, exact_v))
    assert moved.tolist() == nearest(x - lr * Fraction(w) for x, w in zip(exact_p, velocity.tolist()))
    m, s, q = v.copy(), np.abs(v), p.copy()
    librepdl.adamw([q], [d], [m], [s], beta2=0.999, step=3)
    b = Fraction(0.999)
    squares = [b * abs(w) + (1 - b) * y * y for w, y in zip(exact_v, exact_d)]
    assert m.tolist() == nearest(mu * w + (1 - mu) * y for w, y in zip(exact_v, exact_d))
    assert s[5:].tolist() == nearest(squares[5:]) and np.isinf(s[:5]).all() and (q[:5] == p[:5] * (1 - 1e-5)).sum() >= 4
    # Without memory the root of the square is |g|.
    d = np.float64(np.float32(some()))
    librepdl.adamw([p], [d], [np.zeros(50)], [np.zeros(50)], lr=0.1, beta1=0, beta2=0, eps=0.125, weight_decay=0.01)
    kept = 1 - lr * decay
    assert p.tolist() == nearest(x * kept - lr * Fraction(y) / (abs(Fraction(y)) + Fraction(1, 8)) for x, y in zip(exact_p, d.tolist()))
    with pytest.raises(NotImplementedError, match=r"sgd: velocity.*: expected f64, beside f64 parameters, got f32"):
        librepdl.sgd([p], [d], [np.float32(v)], momentum=0.5)


def test_clipping_lists_of_float64():
    x, y = np.float64([3e200, 1e-200, -0.0]), np.float64([[0.1, -4e200]])
    exact = [Fraction(v) for v in [*x.tolist(), *y[0].tolist()]]
    n = sum(map(abs, exact))
    assert float(librepdl.total_norm([x, y])) == 5e200 and float(librepdl.total_norm([x, y], p=1)) == float(n)
    assert librepdl.total_norm([x, y]).dtype == np.float64 and float(librepdl.total_norm([np.full(4, 1e308)])) == np.inf
    norm = librepdl.clip_grad_norm([x, y], 0.3, p=1)
    factor = Fraction(0.3) / (n + Fraction(1, 10**6))
    assert float(norm) == float(n) and [*x.tolist(), *y[0].tolist()] == [float(v * factor) for v in exact] and np.signbit(x[2])


def test_clipping_a_list(library):
    three, four = library.array(np.float32(3).tobytes(), "f32", (1,)), library.array(np.float32(-4).tobytes(), "f32", ())
    assert float(librepdl.total_norm([three, four])) == 5
    assert float(librepdl.total_norm((three, four), p=1)) == 7
    norm = librepdl.clip_grad_norm([three, four], 2.5)
    assert type(norm) is type(three) and float(norm) == 5
    assert [float(three[0]), float(four)] == [float.fromhex("0x1.7ffffap0"), float.fromhex("-0x1.fffffap0")]
