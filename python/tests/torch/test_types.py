"""Element types: casts of every pair, integers beside floating-point numbers, weights of another type than their input."""

import functools
import itertools
import math
import warnings
from fractions import Fraction

import pytest
import torch
import torch.nn.functional as F

import librepdl
import librepdl.torch
from librepdl.torch import _policy

pytestmark = pytest.mark.filterwarnings("ignore")

INTEGERS = {torch.uint8: (0, 2**8 - 1), torch.int8: (-2**7, 2**7 - 1), torch.int16: (-2**15, 2**15 - 1), torch.int32: (-2**31, 2**31 - 1),
            torch.int64: (-2**63, 2**63 - 1), torch.uint16: (0, 2**16 - 1), torch.uint32: (0, 2**32 - 1), torch.uint64: (0, 2**64 - 1)}
#: Bits of the significand and of the exponent.
FLOATS = {torch.float32: (24, 8), torch.float16: (11, 5), torch.bfloat16: (8, 8), torch.float64: (53, 11),
          torch.float8_e4m3fn: (4, 4), torch.float8_e5m2: (3, 5)}
#: What is beyond the largest number, where it is not what IEEE 754 says, and NaN.
BEYOND, NANS = {torch.float8_e4m3fn: 0x7E}, {torch.float8_e4m3fn: 0x7F, torch.float8_e5m2: 0x7F}
COMPLEX = {torch.complex64: torch.float32, torch.complex128: torch.float64, torch.complex32: torch.float16}
KNOWN = [torch.bool, *INTEGERS, *FLOATS, *COMPLEX]
ALL = sorted({t for t in vars(torch).values() if isinstance(t, torch.dtype)}, key=str)
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

NUMBERS = sorted({sign * float(border + shift) for border in (0, 2**7, 2**8, 2**15, 2**16, 2**31, 2**32, 2**53, 2**63, 2**64)
                  for shift in (-1.7, -1, -0.7, -0.5, 0, 0.5, 0.7, 1, 1.7, 2049) for sign in (1, -1)}
                 | {300.7, 65504.0, 65519.0, 65520.0, 2.0**-24, 2.0**-25, 3 * 2.0**-26, 1e-45, 1e-310, 3.4e38, 3.5e38, 1.7e308,
                    2.0**127 * 1.9999, 1 + 2.0**-8, 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-24, math.pi}
                 # Midpoints of the types of 8 bits and what is beside them.
                 | {m + d for m in (1 + 2.0**-4, 1 + 2.0**-3, 2.0**-10, 3 * 2.0**-10, 2.0**-17, 3 * 2.0**-17, 464.0, 61440.0)
                    for d in (0, -2.0**-42, 2.0**-42)})
SPECIAL = [math.nan, math.inf, -math.inf, -0.0]
WHOLE = sorted({sign * n + shift
                for n in (0, 2**7, 2**8, 2**15, 2**16, 2**24, 2**31, 2**32, 2**31 + 2**23, 2**53, 2**63, 2**63 + 2**55, 2**64)
                for shift in (-2, -1, 0, 1, 2) for sign in (1, -1)})


def bits(t):
    t = torch.view_as_real(t) if t.is_complex() else t
    return t.contiguous().view(BITS[t.element_size()])


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b))


def as_float(x, dtype):
    """Bits of a Fraction, an int or a special number, rounded to nearest, ties to even, by integers."""
    p, e = FLOATS[dtype]
    bias, top = 2 ** (e - 1) - 1, BEYOND.get(dtype, (2**e - 1) << (p - 1))
    sign = 1 << (p + e - 1)
    if isinstance(x, float):
        if math.isnan(x):
            return NANS.get(dtype, top | 1 << (p - 2))
        if math.isinf(x) or x == 0:
            return (top if x else 0) | (sign if math.copysign(1, x) < 0 else 0)
    if x == 0:
        return 0
    x, negative = abs(Fraction(x)), x < 0
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    exponent -= x < Fraction(2) ** exponent
    step = max(exponent, 1 - bias) - (p - 1)
    n = round(x / Fraction(2) ** step)  # Python's: ties to even
    found = n if exponent < 1 - bias else n + ((exponent + bias - 1) << (p - 1))
    return min(found, top) | (sign if negative else 0)


def as_integer(x, dtype):
    low, high = INTEGERS[dtype]
    if isinstance(x, int):  # PyTorch's: the low bits
        return (x - low) % (high - low + 1) + low
    return 0 if math.isnan(x) else low if x == -math.inf else high if x == math.inf else min(max(math.trunc(x), low), high)


def tensor_of(found, dtype):
    """Of integers, or of the bits of floating-point numbers."""
    if dtype in FLOATS:
        width = 8 * torch.empty(0, dtype=dtype).element_size()
        integer = torch.int8 if width == 8 else BITS[width // 8]
        return torch.tensor([b - (b >> (width - 1) << width) for b in found], dtype=integer).view(dtype)
    return torch.tensor(found, dtype=dtype)


def source(dtype):
    """A tensor, and its elements as Python has them."""
    if dtype == torch.bool:
        return torch.tensor([False, True]), [0, 1]
    if dtype in INTEGERS:
        low, high = INTEGERS[dtype]
        elements = [n for n in WHOLE if low <= n <= high]
        return torch.tensor(elements, dtype=dtype), elements
    if dtype in FLOATS:
        t = tensor_of([as_float(x, dtype) for x in [*NUMBERS, *SPECIAL]], dtype)
        return t, t.to(torch.float64).tolist()
    t, elements = source(COMPLEX[dtype])
    return torch.complex(t, t.flip(0)) if dtype != torch.complex32 else torch.view_as_complex(torch.stack([t, t.flip(0)], 1)), elements


def expected(elements, of, dtype):
    if dtype in COMPLEX:
        part = COMPLEX[dtype]
        real = tensor_of([as_float(x, part) for x in elements], part)
        imaginary = tensor_of([as_float(x, part) for x in reversed(elements)], part) if of in COMPLEX else torch.zeros_like(real)
        return torch.view_as_complex(torch.stack([real, imaginary], 1))
    if dtype == torch.bool:
        others = reversed(elements) if of in COMPLEX else [0] * len(elements)
        return torch.tensor([x != 0 or y != 0 for x, y in zip(elements, others)])
    if dtype in FLOATS:
        return tensor_of([as_float(x, dtype) for x in elements], dtype)
    return tensor_of([as_integer(x, dtype) for x in elements], dtype)


def index_assigned(x, dtype):
    out = torch.zeros(x.shape, dtype=dtype)
    out[...] = x
    return out


def copied_reversed(x, dtype):
    """Strided, and of another shape."""
    out = torch.zeros((2, 2 * len(x)), dtype=dtype)[:, ::2]
    out.copy_(x)
    assert same(out[0], out[1])
    return out[1]


WAYS = {"to": lambda x, t: x.to(t), "copy_": lambda x, t: torch.empty(x.shape, dtype=t).copy_(x), "type": lambda x, t: x.type(t),
        "_to_copy": lambda x, t: torch.ops.aten._to_copy(x, dtype=t), "assigned": index_assigned, "strided": copied_reversed,
        "as_tensor": lambda x, t: torch.as_tensor(x, dtype=t), "one": lambda x, t: torch.stack([e.to(t) for e in x.unbind()])}
METHODS = {torch.uint8: "byte", torch.int8: "char", torch.int16: "short", torch.int32: "int", torch.int64: "long", torch.bool: "bool",
           torch.float32: "float", torch.float64: "double", torch.float16: "half", torch.bfloat16: "bfloat16", torch.complex64: "cfloat",
           torch.complex128: "cdouble"}


def test_casts():
    """Every pair of types that have a format, in every way: one rounding; to integers truncated and saturated, NaN is 0."""
    assert tensor_of([as_float(x, torch.float64) for x in NUMBERS], torch.float64).tolist() == NUMBERS
    sources = {a: source(a) for a in KNOWN}
    results = {(a, b): expected(elements, a, b) for a, (_, elements) in sources.items() for b in KNOWN if a != b}
    wrong = []
    with librepdl.torch.reproducible():
        for (a, b), right in results.items():
            ways = WAYS if len(right) < 100 or b in (torch.uint8, torch.uint64) else {k: w for k, w in WAYS.items() if k != "one"}
            for way, cast in {**ways, "method": lambda x, t: getattr(x, METHODS[t])()}.items():
                if way == "method" and b not in METHODS or way == "one" and torch.complex32 in (a, b):
                    continue
                found = cast(sources[a][0], b)
                if not same(found, right):
                    at = int((bits(found) != bits(right)).reshape(len(right), -1).any(1).nonzero()[0])
                    wrong.append(f"{way} {a} -> {b}: {sources[a][1][at]} gives {found[at]}, not {right[at]}")
    assert not wrong, "\n".join(wrong)


def test_conjugates_and_negatives():
    z = torch.tensor([1 + 2.7j, -3.5 + 300.9j], dtype=torch.complex128)
    with librepdl.torch.reproducible():
        assert z.conj().imag.to(torch.float32).tolist() == [-2.700000047683716, -300.8999938964844]
        assert z.conj().imag.to(torch.uint8).tolist() == [0, 0] and z.imag.to(torch.uint8).tolist() == [2, 255]
        assert torch.equal(z.conj().to(torch.complex64), z.to(torch.complex64).conj())
        w = torch.zeros(2, dtype=torch.complex64)
        w.conj().copy_(z)
        assert torch.equal(w, z.to(torch.complex64).conj().resolve_conj())
        w.conj().imag.copy_(torch.tensor([0.1, 0.2], dtype=torch.float64))
        assert w.imag.tolist() == [-0.10000000149011612, -0.20000000298023224]


def tried(function):
    try:
        return function()
    except Exception as e:
        return e


def some(dtype):
    if dtype in KNOWN:
        return source(dtype)[0][:2]
    if "q" in str(dtype):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.quantize_per_tensor(torch.tensor([0.5, 1.0]), 0.5, 0, dtype)
    return torch.tensor([0x38, 0x7b], dtype=torch.uint8).view(dtype) if torch.empty(0, dtype=dtype).element_size() == 1 else \
        torch.zeros(2, dtype=torch.int16).view(dtype)


@pytest.mark.parametrize("mode", ["strict", "not strict", "exempt"])
def test_every_pair_of_types(mode):
    """Where librepdl has no format a cast is refused by name, or PyTorch's error; otherwise, and where nothing rounds, as PyTorch."""
    sources = {a: x for a in ALL if isinstance(x := tried(lambda: some(a)), torch.Tensor)}
    assert len(sources) >= 35
    ways = ("to", "copy_", "_to_copy")
    plain = {(a, b, way): tried(lambda: WAYS[way](x, b)) for a, x in sources.items() for b in ALL for way in ways}
    refused = 0
    with librepdl.torch.reproducible(strict=mode == "strict"):
        for (a, b, way), right in plain.items():
            with librepdl.torch.exempt() if mode == "exempt" else torch.no_grad():
                found = tried(lambda: WAYS[way](sources[a], b))
            what = (a, b, way, found, right)
            if isinstance(right, Exception):
                assert isinstance(found, (type(right), NotImplementedError)), what
            elif a in KNOWN and b in KNOWN and mode != "exempt":
                assert isinstance(found, torch.Tensor) and found.dtype == b, what
            elif isinstance(found, NotImplementedError) and mode == "strict":
                assert "aten::" in str(found) and "not reproducible yet" in str(found), what
                assert any(t.is_floating_point or t.is_complex or "q" in str(t) for t in (a, b)), what
                refused += 1
            else:
                assert isinstance(found, torch.Tensor) and found.dtype == b, what
                if not (found.is_quantized or right.is_quantized):
                    assert torch.equal(found.contiguous().view(torch.uint8), right.contiguous().view(torch.uint8)), what
                assert mode != "strict" or a == b or not any(t.is_floating_point or t.is_complex for t in (a, b)), what
    assert refused > 100 if mode == "strict" else refused == 0


def test_quantised_numbers_are_refused():
    x = torch.tensor([0.5, 1.0])
    q = torch.quantize_per_tensor(x, 0.5, 0, torch.quint8)
    with librepdl.torch.reproducible():
        with pytest.raises(NotImplementedError, match=r"aten::copy_ .*of a tensor that is not dense"):
            q.copy_(x)


def test_numbers_as_elements():
    """fill_, full and torch.tensor: the number without its fraction, or PyTorch's error where the type has none."""
    makers = {"fill_": lambda v, t: torch.empty(2, dtype=t).fill_(v)[0], "full": lambda v, t: torch.full((), v, dtype=t),
              "tensor": lambda v, t: torch.tensor([v], dtype=t)[0], "scalar_tensor": lambda v, t: torch.scalar_tensor(v, dtype=t)}
    with librepdl.torch.reproducible():
        for dtype, (low, high) in INTEGERS.items():
            for value in [*NUMBERS, *SPECIAL]:
                for name, make in makers.items():
                    if value == high + 1 >= 2**63 and name == "tensor":
                        continue  # which PyTorch takes for the greatest number, as float64 has it, before anything is dispatched
                    found = tried(lambda: make(value, dtype))
                    inside = not math.isnan(value) and not math.isinf(value) and low <= math.trunc(value) <= high
                    if isinstance(found, TypeError):
                        assert dtype == torch.uint64 and name == "tensor"  # which takes integers only
                    elif isinstance(found, Exception):
                        assert "overflow" in str(found) and (not inside or value < 0 or value >= high), (dtype, value, name)
                    else:
                        assert inside and int(found.item()) == math.trunc(value), (dtype, value, name, found)
        with pytest.raises(RuntimeError, match="overflow"):
            torch.zeros(3, dtype=torch.uint8)[0] = 300.7
        x = torch.zeros(3, dtype=torch.uint8)
        x[0], x[1:] = torch.tensor(300.7), torch.tensor([-5.0, 7.9])
        assert x.tolist() == [255, 0, 7]
        assert torch.tensor([300.7, 2.5]).sum(dtype=torch.uint8) == (255 + 2) % 256
        assert torch.tensor([300.7, math.nan]).nansum(dtype=torch.uint8) == 255
        with pytest.raises(RuntimeError, match="can't be cast"):
            torch.add(torch.ones(2), 300.7, out=torch.empty(2, dtype=torch.uint8))
        out = torch.empty(2, dtype=torch.complex128)
        assert torch.add(torch.ones(2), 0.5, out=out).tolist() == [1.5, 1.5]


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint64])
def test_one_more_than_the_greatest_number(dtype):
    """PyTorch compares with the greatest number as a double, which is one more, and casts: undefined in C++."""
    over = float(INTEGERS[dtype][1])
    mask, first = torch.tensor([True, False]), torch.tensor([0])
    writers = {"fill_": lambda x, v: x.fill_(v), "full_like": torch.full_like, "new_full": lambda x, v: x.new_full((2,), v),
               "pad": lambda x, v: F.pad(x, (1, 0), value=v), "diagonal": lambda x, v: x.expand(2, 2).clone().fill_diagonal_(v),
               "fill_ strided": lambda x, v: x[::2].fill_(v), "fill out=": lambda x, v: torch.full((2,), v, out=x)}
    if dtype == torch.int64:
        writers |= {"masked_fill": lambda x, v: x.masked_fill(mask, v), "masked_fill_": lambda x, v: x.masked_fill_(mask, v),
                    "masked_fill of a tensor": lambda x, v: x.masked_fill(mask, torch.tensor(v, dtype=torch.float64)),
                    "index_fill": lambda x, v: x.index_fill(0, first, v), "index_fill_": lambda x, v: x.index_fill_(0, first, v),
                    "index_fill of a tensor": lambda x, v: x.index_fill(0, first, torch.tensor(v, dtype=torch.float64)),
                    "scatter": lambda x, v: x.scatter(0, first, v), "scatter_": lambda x, v: x.scatter_(0, first, v),
                    "vmap": lambda x, v: torch.func.vmap(lambda row: row.masked_fill(mask, v))(x.expand(2, 2))}
    below = math.nextafter(over, 0)
    with librepdl.torch.reproducible():
        for name, write in writers.items():
            assert int(below) in write(torch.zeros(2, dtype=dtype), below).flatten().tolist(), name
            with pytest.raises(RuntimeError, match="value cannot be converted to type u?int64_t without overflow"):
                write(torch.zeros(2, dtype=dtype), over)
        assert torch.full((1,), 2**63 - 1, dtype=dtype).item() == 2**63 - 1


FLOAT8 = {torch.float8_e4m3fn: (0.0, -1, 448.0, 2.0**-9), torch.float8_e5m2: (0.0, -1, 57344.0, 2.0**-16, math.inf),
          torch.float8_e4m3fnuz: (0.0, -1, 240.0, 2.0**-10), torch.float8_e5m2fnuz: (0.0, -1, 57344.0, 2.0**-17),
          torch.float8_e8m0fnu: (1, 2.0**-127, 2.0**127)}


@pytest.mark.parametrize("dtype", FLOAT8)
def test_numbers_as_elements_of_float8(dtype):
    """A number that the type has is written; others would be rounded: refused, as a cast is."""
    makers = {"full": lambda v: torch.full((2,), v, dtype=dtype), "fill_": lambda v: torch.empty(2, dtype=dtype).fill_(v),
              "scalar_tensor": lambda v: torch.scalar_tensor(v, dtype=dtype), "ones": lambda v: torch.ones(2, dtype=dtype).fill_(v)}
    plain = {(name, v): make(v) for name, make in makers.items() for v in (*FLOAT8[dtype], math.nan)}
    with librepdl.torch.reproducible():
        for (name, v), right in plain.items():
            found = makers[name](v)
            assert found.dtype == dtype and torch.equal(found.view(torch.uint8), right.view(torch.uint8)), (name, v)
        for name, make in makers.items():
            for v in (0.1, 1 + 2.0**-20, 3.0000001, 2.0**-128 * 1.5, 1e300):
                with pytest.raises(NotImplementedError, match=r"aten::\w+.*(librepdl has no \w*8_e|\w*8_e\w+ lacks this number)"):
                    make(v)
    with librepdl.torch.reproducible(strict=False):
        assert makers["full"](1.1).dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_casts_of_float8(dtype):
    """Every pattern of 16 bits: PyTorch's own results, which keep NaN's sign. Every pattern of 8 bits. Nothing else is computed."""
    halves = torch.arange(65536).to(torch.int16)
    narrow = [halves.view(torch.float16), halves.view(torch.bfloat16)]
    every = torch.arange(256).to(torch.uint8).view(dtype)
    plain, wide = [x.to(dtype).view(torch.uint8) for x in narrow], every.to(torch.float64)
    with librepdl.torch.reproducible():
        for x, right in zip(narrow, plain):
            want = torch.where(x.isnan(), 0x7F, right)
            assert torch.equal(x.to(dtype).view(torch.uint8), want)
            assert torch.equal(x.reshape(64, -1).t().to(dtype).view(torch.uint8), want.reshape(64, -1).t())
        for to in FLOATS.keys() - {torch.float8_e4m3fn, torch.float8_e5m2}:
            got = every.to(to)
            assert torch.equal(got.isnan(), wide.isnan()) and torch.equal(got.to(torch.float64).nan_to_num(), wide.nan_to_num())
        with pytest.raises(NotImplementedError, match=r"aten::mul.*not reproducible yet"):
            every.mul(every)
        for refused in (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu):
            with pytest.raises(NotImplementedError, match="librepdl has no Float8_e"):
                narrow[0].to(refused)


# ---- integers beside floating-point numbers ----

MAPPED = [row for row in _policy.rows() if row.action == "MAP" and len(row.arguments) == len(row.call()[1])]


def of_integers(dtype):
    if dtype == torch.bool:
        return torch.tensor([True, False, True, True])
    return torch.tensor([1, 0, 3, INTEGERS[dtype][1]], dtype=dtype)


@pytest.mark.parametrize("strict", [True, False])
def test_rows_with_integers(strict):
    """Each elementwise row x type of integers x position, also of integers alone: the type is PyTorch's, the value that of the
    operands in it, each rounded once."""
    calls = []
    for row in MAPPED:
        function = getattr(getattr(torch.ops.aten, row.name.partition(".")[0]), row.name.partition(".")[2] or "default")
        count = len(row.arguments)
        for dtype in (torch.bool, *INTEGERS):
            for of in (torch.float32, torch.bfloat16, torch.float64):
                y = torch.tensor([0.75, 2.0, 0.5, 0.25], dtype=of)
                for mask in range(1, 2**count):
                    if mask + 1 == 2**count and of != torch.float32 or "backward" in row.name:
                        continue
                    given = [of_integers(dtype) if mask >> i & 1 else y for i in range(count)]
                    right = tried(lambda: function(*given))
                    if isinstance(right, torch.Tensor) and right.is_floating_point():  # else PyTorch has none, or nothing rounds
                        calls.append((row, function, given, right.dtype))
    names = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float64: "F64"}
    compared = 0
    with librepdl.torch.reproducible(strict):
        for row, function, given, common in calls:
            what = (row.name, [t.dtype for t in given], common)
            found = tried(lambda: function(*given))
            if names[common] not in row.types:
                assert isinstance(found, NotImplementedError if strict else torch.Tensor), what
                continue
            assert isinstance(found, torch.Tensor) and found.dtype == common, (what, found)
            operation, operands, _ = row.call()
            wide = [given[row.arguments.index(name)].to(common) for name in operands]
            assert same(found, getattr(librepdl, operation)(*wide)), what
            compared += 1
    assert compared > 700


@pytest.mark.parametrize("dtype", [torch.bool, *INTEGERS])
def test_integers_become_floats(dtype):
    x = of_integers(dtype)
    wide = expected([int(n) for n in x.tolist()], dtype, torch.float32)
    half = expected([int(n) for n in x.tolist()], dtype, torch.float16)
    with librepdl.torch.reproducible():
        quotient = librepdl.div(wide, torch.full((4,), 255.0))
        assert same(x / 255, quotient) and same(torch.div(x, 255, rounding_mode=None), quotient)
        assert same(x / x, librepdl.div(wide, wide))
        assert same(x * torch.tensor(0.1), librepdl.mul(wide, torch.full((4,), 0.1)))
        assert same(0.5 + x, librepdl.add(wide, torch.full((4,), 0.5)))
        assert same(x * half, librepdl.mul(half, half))
        assert same(x**0.5, librepdl.pow_scalar(wide, exponent=0.5)) and same(x**2.0, librepdl.square(wide))
        assert same(1.5**x, librepdl.scalar_pow(wide, base=1.5))
        assert same(x ** torch.full((4,), 0.5), librepdl.pow(wide, torch.full((4,), 0.5)))
        assert same(x.sum(dtype=torch.float32), librepdl.sum(wide)) and same(x.mean(dtype=torch.float32), librepdl.mean(wide))
        assert same(torch.where(x.to(torch.bool), x, 0.5), torch.where(x.to(torch.bool), wide, torch.tensor(0.5)))
        assert same(x.logsumexp(0) if dtype.is_signed else x.to(torch.float32).logsumexp(0), librepdl.logsumexp(wide))
        assert same(F.mse_loss(wide, x), librepdl.mse_loss(wide, wide))
        found = librepdl.torch.coverage(lambda t: t / 255 * torch.full((4,), 2.0), x)
    assert found, str(found)


def test_powers_of_integers():
    x = torch.tensor([2, 3, -4])
    with librepdl.torch.reproducible():
        assert (x**3).tolist() == [8, 27, -64] and (x**3).dtype == torch.int64
        assert (2 ** x.abs()).tolist() == [4, 8, 16]
        assert (x ** torch.tensor([1, 2, 3])).tolist() == [2, 9, -64]
        for wrong in (lambda: x**-1, lambda: x.to(torch.uint8) ** -2, lambda: x.pow_(0.5)):
            with pytest.raises(RuntimeError, match="negative integer powers|can't be cast"):
                wrong()
        with pytest.raises(NotImplementedError, match="aten::pow"):
            x ** (1 + 2j)


# ---- norms ----

def gradients(y, *of):
    y.backward(torch.arange(-60, 60).view(y.shape).div(64).to(y.dtype))
    return [t.grad for t in of]


class Norm:
    """A norm of (samples, 4 channels, 6): which row and which weight an element has, and what it exactly is."""

    def __init__(self, name):
        self.name, self.per_channel = name, name not in ("layer_norm", "rms_norm")
        self.row = {"layer_norm": lambda i, j: (i, j), "rms_norm": lambda i, j: (i, j), "group_norm": lambda i, j: (i, j // 2),
                    "instance_norm": lambda i, j: (i, j)}.get(name, lambda i, j: j)

    def elements(self, x):
        """Of each element its place, row, weight and value."""
        for at, v in zip(itertools.product(*map(range, x.shape)), x.flatten().tolist()):
            yield at, self.row(*at[:2]), at[1 if self.per_channel else 2], Fraction(v)

    def rows(self, x):
        rows = {}
        for _, row, _, v in self.elements(x):
            rows.setdefault(row, []).append(v)
        return rows

    def exact(self, x, w, b, mean, var, eps):
        """The result, of given statistics or, where there are none, of the rows': binary fractions within 2^-200 of themselves."""
        m, v = {}, {}
        for row, all_ in self.rows(x).items():
            m[row] = Fraction(0) if self.name == "rms_norm" else sum(all_) / len(all_)
            v[row] = sum((a - m[row])**2 for a in all_) / len(all_)
        if mean is not None:
            m, v = (dict(enumerate(map(Fraction, t.tolist()))) for t in (mean, var))
        roots = {row: root(a + Fraction(eps)) for row, a in v.items()}
        w, b = (list(map(Fraction, t.tolist())) for t in (w, torch.zeros_like(w) if b is None else b))
        return [(a - m[row]) / roots[row] * w[k] + b[k] for _, row, k, a in self.elements(x)]

    def exact_gradient(self, g, x, w, mean, rstd):
        """To x, of the statistics as they are given."""
        m, r = ({row: Fraction(v) for row, v in zip(self.rows(x), t.flatten().tolist())} for t in (mean, rstd))
        w = list(map(Fraction, w.tolist()))
        t = [Fraction(a) * w[k] for a, (_, _, k, _) in zip(g.flatten().tolist(), self.elements(x))]
        h = [(v - m[row]) * r[row] for _, row, _, v in self.elements(x)]
        of = [row for _, row, _, _ in self.elements(x)]
        n = len(t) // len(m)
        first, second = dict.fromkeys(m, Fraction(0)), dict.fromkeys(m, Fraction(0))
        for row, a, b in zip(of, t, h):
            first[row] += 0 if self.name == "rms_norm" else a
            second[row] += a * b
        return [r[row] * (a - first[row] / n - b * second[row] / n) for row, a, b in zip(of, t, h)]

    def backward(self, g, x, w, mean, rstd, var, eps):
        """To x and w, and the bias, by aten's function."""
        aten = torch.ops.aten
        if self.name == "layer_norm":
            return aten.native_layer_norm_backward(g, x, [6], mean.view(-1, 4, 1), rstd.view(-1, 4, 1), w, w, [True] * 3)
        if self.name == "rms_norm":
            return aten._fused_rms_norm_backward(g, x, [6], rstd.view(-1, 4, 1), w, [True] * 2)
        if self.name == "group_norm":
            return aten.native_group_norm_backward(g, x, mean.view(-1, 2), rstd.view(-1, 2), w, len(x), 4, 6, 2, [True] * 3)
        return aten.native_batch_norm_backward(g, x, w, mean, var, mean, rstd, self.name == "batch_norm", eps, [True] * 3)

    def __call__(self, x, w, b, mean, var, eps):
        return {"layer_norm": lambda: F.layer_norm(x, (6,), w, b, eps), "group_norm": lambda: F.group_norm(x, 2, w, b, eps),
                "batch_norm": lambda: F.batch_norm(x, mean, var, w, b, True, eps=eps),
                "batch_norm inference": lambda: F.batch_norm(x, mean, var, w, b, eps=eps),
                "instance_norm": lambda: F.instance_norm(x, mean, var, w, b, eps=eps),
                "rms_norm": lambda: F.rms_norm(x, (6,), w, eps)}[self.name]()


def root(v):
    """A binary fraction within 2^-200 of sqrt(v), itself where it is one."""
    shift = 400 + 2 * v.denominator.bit_length()
    n = (v.numerator << shift) // v.denominator
    return Fraction(math.isqrt(n), 1 << shift // 2)


def once(numbers, dtype, shape):
    return tensor_of([as_float(a, dtype) for a in numbers], dtype).view(shape)


def twice(numbers, dtype, shape):
    return once([Fraction(a) for a in once(numbers, torch.float32, -1).tolist()], dtype, shape)


NORMS = ["layer_norm", "group_norm", "batch_norm", "batch_norm inference", "instance_norm", "rms_norm"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", NORMS)
def test_norms_with_weights_of_float32(name, dtype):
    """One rounding of the exact value; weights' gradients and statistics are float32's."""
    norm = Norm(name)
    torch.manual_seed(1)
    data = torch.randn(5, 4, 6).to(dtype)
    numbers = torch.randn(4, 4 if norm.per_channel else 6)
    given = (numbers[2], numbers[3].abs() + 0.5) if name.endswith("inference") else (None, None)

    def run(x):
        w, b = (numbers[i].clone().requires_grad_() for i in range(2))
        mean, var = numbers[2].clone(), numbers[3].abs() + 0.5
        x = x.clone().requires_grad_()
        y = norm(x, w, b, mean, var, 1e-5)
        return [y.detach(), *gradients(y, x, w, b), mean, var]

    with librepdl.torch.reproducible():
        found, wide = run(data), run(data.float())
        bias = None if name == "rms_norm" else numbers[1]
        assert same(found[0], once(norm.exact(data, numbers[0], bias, *given, 1e-5), dtype, data.shape))
        assert found[1].dtype == dtype
        for a, b in zip(found[2:], wide[2:]):
            assert a is None and b is None and name == "rms_norm" if b is None else same(a, b)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", NORMS)
def test_norms_next_to_ties(name, dtype):
    """Results that lie so near the middle of two 16-bit numbers that they are it in float32."""
    norm, p = Norm(name), FLOATS[dtype][0]
    size = 4 if norm.per_channel else 6
    torch.manual_seed(2)
    signs = torch.randint(0, 2, (3, 4, 6)) * 2 - 1
    signs[:, :, 0], signs[:, :, 1] = 1, -1
    x = signs.to(dtype)
    middle = 1 + (1 + 2 * torch.arange(size)) * 2.0**-p  # of two numbers
    mean, var = torch.zeros(size), torch.ones(size)
    statistics = (mean, var) if name.endswith("inference") else (None, None)
    w, b = (middle, None) if name == "rms_norm" else (torch.full((size,), 2.0**-30), middle)
    with librepdl.torch.reproducible():
        y = norm(x, w, b, mean.clone(), var.clone(), 1e-12)
        exact = norm.exact(x, w, b, *statistics, 1e-12)
        assert same(y, once(exact, dtype, x.shape)) and not same(y, twice(exact, dtype, x.shape))

    # t = g w and -t in a row whose other products are 0, beside an element that is next to the mean.
    if name == "instance_norm":
        return
    w = torch.full((size,), 1 + 3 * 2.0**-p)
    x, g = torch.zeros(3, 4, 6, dtype=dtype), torch.zeros(3, 4, 6, dtype=dtype)
    first = {row: at for at, row, _, _ in reversed([*norm.elements(x)])}  # of each row
    for at in first.values():
        x[at], g[at], g[at[0], at[1], at[2] + 1] = 2.0**-20 if dtype == torch.float16 else 2.0**-25, 1, -1
    rows = len(first)
    mean, rstd, var = torch.zeros(rows), torch.ones(rows), torch.ones(rows)
    if name.endswith("inference"):
        exact = [Fraction(a) * Fraction(w[0].item()) / root(1 + Fraction(1e-12)) for a in g.flatten().tolist()]
    else:
        exact = norm.exact_gradient(g, x, w, mean, rstd)
    with librepdl.torch.reproducible():
        gx, gw, *gb = norm.backward(g, x, w, mean, rstd, var, 1e-12)
    assert same(gx, once(exact, dtype, x.shape)) and not same(gx, twice(exact, dtype, x.shape))
    assert all(t.dtype == torch.float32 for t in (gw, *gb))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", [n for n in NORMS if n not in ("instance_norm", "batch_norm inference")])
def test_gradients_of_norms_with_weights_of_float32(name, dtype):
    norm = Norm(name)
    torch.manual_seed(3)
    g, x = torch.randn(3, 4, 6).to(dtype), torch.randn(3, 4, 6).to(dtype)
    w, rows = torch.randn(4 if norm.per_channel else 6), len(norm.rows(x))
    mean, rstd = torch.randn(rows) * (name != "rms_norm"), torch.rand(rows) + 0.5
    with librepdl.torch.reproducible():
        gx, *others = norm.backward(g, x, w, mean, rstd, mean, 1e-5)
        wide = norm.backward(g.float(), x.float(), w, mean, rstd, mean, 1e-5)
        assert same(gx, once(norm.exact_gradient(g, x, w, mean, rstd), dtype, x.shape))
        assert all(same(a, b) for a, b in zip(others, wide[1:]))


def test_norms_with_weights_of_a_third_type():
    """Results are one rounding; a gradient to the weight would be two."""
    x, w = torch.randn(2, 6), torch.randn(6)
    for a, b in ((torch.float32, torch.bfloat16), (torch.bfloat16, torch.float16)):
        given, weight = x.to(a), w.to(b)
        with librepdl.torch.reproducible():
            y = F.rms_norm(given, (6,), weight, 1e-5)
            assert same(y, once(Norm("rms_norm").exact(given[:, None], weight, None, None, None, 1e-5), a, y.shape))
            with pytest.raises(NotImplementedError, match="type that is neither the input's nor float32"):
                F.rms_norm(given, (6,), weight.requires_grad_(), 1e-5).sum().backward()
    with librepdl.torch.reproducible():
        bias = w.clone().requires_grad_()
        with pytest.raises(NotImplementedError, match="bias of another type"):
            F.batch_norm(x.bfloat16(), None, None, None, bias, True)
        with pytest.raises(NotImplementedError, match="gradient of another type"):
            torch.ops.aten._fused_rms_norm_backward(x, x.bfloat16(), [6], torch.ones(2, 1), w, [True, True])


def test_batch_norm_under_autocast():
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU())
    x = torch.randn(6, 5)
    with librepdl.torch.reproducible():
        with torch.autocast("cpu", torch.bfloat16):
            y = net(x)
        y.sum().backward()
        assert y.dtype == torch.bfloat16 and net[1].weight.grad.dtype == torch.float32
        assert librepdl.torch.coverage(net, x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_running_statistics_of_16_bits(dtype):
    """Read exactly; updated with one rounding, to their own type."""
    torch.manual_seed(4)
    x, w = torch.randn(5, 4).to(dtype), torch.ones(4).to(dtype)
    mean, var = torch.randn(4).to(dtype), torch.rand(4).to(dtype) + 0.5
    columns = [list(map(Fraction, column)) for column in x.T.tolist()]
    m = [sum(column) / 5 for column in columns]
    v = [sum((a - b)**2 for a in column) / 4 for column, b in zip(columns, m)]
    with librepdl.torch.reproducible():
        assert same(F.batch_norm(x, mean, var, w, w), F.batch_norm(x, mean.float(), var.float(), w, w))
        for momentum in (0.1, 2.0**-12):
            for weight in (w, w.float(), None):
                new_mean, new_var = mean.clone(), var.clone()
                y = F.batch_norm(x, new_mean, new_var, weight, weight, True, momentum)
                assert same(y, F.batch_norm(x, None, None, weight, weight, True))
                for found, before, batch in ((new_mean, mean, m), (new_var, var, v)):
                    q = Fraction(momentum)
                    assert same(found, once([(1 - q) * Fraction(a) + q * b for a, b in zip(before.tolist(), batch)], dtype, found.shape))
        net = torch.nn.BatchNorm1d(4).to(dtype)
        net(x)
        assert same(net.running_mean, once([Fraction(0.1) * a for a in m], dtype, 4)) and net.num_batches_tracked == 1
        with pytest.raises(NotImplementedError, match=r"aten::native_batch_norm .*running statistics.*called by BatchNorm1d"):
            net(x.float())


def test_binary_cross_entropy_of_several_types():
    """In the widest of them, rounded once; the result has the target's type, as PyTorch's."""
    librepdl.torch.enable()
    draws = torch.Generator().manual_seed(4)
    x, t, weight = torch.randn(2, 7, generator=draws), torch.rand(2, 7, generator=draws), torch.rand(7, generator=draws)
    for a, b in itertools.permutations((torch.float16, torch.bfloat16, torch.float32, torch.float64), 2):
        logits, target = x.to(a).requires_grad_(), t.to(b)
        for options in ({}, {"reduction": "none"}, {"reduction": "sum", "pos_weight": weight}, {"weight": weight}):
            widest = functools.reduce(torch.promote_types, [a, b] + ([torch.float32] if options.keys() & {"weight", "pos_weight"} else []))
            alike = {key: value.to(widest) if isinstance(value, torch.Tensor) else value for key, value in options.items()}
            found = F.binary_cross_entropy_with_logits(logits, target, **options)
            expected = F.binary_cross_entropy_with_logits(logits.detach().to(widest), target.to(widest), **alike).to(b)
            assert found.dtype == b and torch.equal(found, expected), (a, b, options)
            (gradient,) = torch.autograd.grad(found.sum(), logits)
            assert gradient.dtype == a and gradient.isfinite().all()
    with pytest.raises(RuntimeError, match="can't be cast"):
        F.binary_cross_entropy_with_logits(x, torch.ones(2, 7, dtype=torch.int64))
