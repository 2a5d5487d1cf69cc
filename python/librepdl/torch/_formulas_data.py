"""Formulas (_formulas.py) of copies, places that indices name, order, sequences and random numbers."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,no-any-return"

import math
from functools import partial
from typing import Any

import torch

from librepdl.random import Generator
from librepdl.torch._elementwise import BITS, Refuse, axis_of, call, check, expect_all, map_, plain, rounded, with_an_axis

NARROW = (torch.float32, torch.float16, torch.bfloat16)
#: librepdl's names of element types.
NAMES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
         torch.int32: "i32", torch.bool: "bool"}


_C: Any = torch._C
_cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)


class Leave(Exception):
    """Nothing rounds: aten's own kernel is to do it."""


# ---- numbers of Python as elements ----

# aten's own.
_aten_copy, _aten_fill = (torch.library.get_kernel(f"aten::{name}", "CPU") for name in ("copy_", "fill_.Scalar"))
_FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu)


def _expect_in(dtype, value):
    """aten writes the number; its checks of the range are with the greatest number of 64 bits as a double, which is one more. A type of
    8 bits has it exactly, or it is refused."""
    if isinstance(value, float):
        check(dtype != torch.int64 or value != 2.0**63, "value cannot be converted to type int64_t without overflow")
        check(dtype != torch.uint64 or value != 2.0**64, "value cannot be converted to type uint64_t without overflow")
    if dtype in _FLOAT8 and not isinstance(value, complex):
        found = torch.empty((), dtype=torch.float64, device="cpu")
        _aten_copy.call_boxed(_cpu, found, _aten_fill.call_boxed(_cpu, torch.empty((), dtype=dtype, device="cpu"), value), False)
        if not (found.item() == value or (math.isnan(found.item()) and math.isnan(value))):
            raise Refuse(f"librepdl has no {str(dtype).removeprefix('torch.')}")
    raise Leave


def fill(x, value):
    _expect_in(x.dtype, value)


def masked_fill(x, mask, value):
    if not isinstance(value, torch.Tensor):
        _expect_in(x.dtype, value)
    elif value.dim() == 0 and x.dtype in (torch.int64, torch.uint64, *_FLOAT8):
        _expect_in(x.dtype, value.item())
    raise Leave


def index_fill(x, axis, index, value):
    _expect_in(x.dtype, value)


def scatter_value(x, axis, index, value):
    _expect_in(x.dtype, value)


def scalar_tensor(value, dtype, layout, device, pin_memory):
    _expect_in(torch.get_default_dtype() if dtype is None else dtype, value)


# ---- copies: another type is one rounding ----

def converted(x, dtype):
    if x.dtype == dtype:
        return x
    return call("convert", x, NAMES[dtype]) if x.dtype in NAMES and dtype in NAMES else x.to(dtype)


#: Integers that librepdl's arrays have not, the type that converted numbers go through, and their range.
_OTHER_INTEGERS = {torch.uint8: (torch.int32, 0, 0xff), torch.int8: (torch.int32, -0x80, 0x7f), torch.int16: (torch.int32, -0x8000, 0x7fff),
                   torch.uint16: (torch.int32, 0, 0xffff), torch.uint32: (torch.int64, 0, 0xffffffff),
                   torch.uint64: (torch.int64, 0, 2**63 - 1)}
_REAL = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}


def _saturated(x, dtype):
    """What floating-point numbers become as integers, in a type that these fit in; the bits of a uint64 as int64."""
    through, low, high = _OTHER_INTEGERS[dtype]
    if dtype != torch.uint64:
        return converted(x, through).clamp(low, high)
    great = x.ge(2.0**63)
    rest = converted(torch.where(great, x.sub(2.0**63), x), torch.int64).clamp_min(0)
    return torch.where(great, rest.bitwise_xor(-2**63), rest)


def _rounded(x, dtype):
    """Integers of the types that librepdl's arrays have not."""
    bits = x.to(torch.int64)
    if x.dtype != torch.uint64:
        return converted(bits, dtype)
    # From 2^63 on half of it, where the last bit says that there is something below.
    half = bits.bitwise_right_shift(1).bitwise_and(2**63 - 1).bitwise_or(bits.bitwise_and(1))
    great = bits.lt(0)
    y = converted(torch.where(great, half, bits), dtype)
    return torch.where(great, y.add(y), y)


def _copy_complex(to, source, non_blocking):
    """A complex number is two real ones."""
    if not to.is_complex():
        x = torch.view_as_real(source.resolve_conj())
        to.copy_(x.ne(0).any(-1) if to.dtype == torch.bool else x.select(-1, 0), non_blocking)
    elif source.is_complex():
        torch.view_as_real(to).copy_(torch.view_as_real(source.resolve_conj()), non_blocking)
    else:
        parts = torch.view_as_real(to)
        parts.select(-1, 0).copy_(source, non_blocking)
        parts.select(-1, 1).zero_()
    return to


def copy(to, source, non_blocking):
    if not isinstance(source, torch.Tensor):  # Python's own
        source = torch.tensor(source, dtype=torch.float64 if isinstance(source, float) else None)
    a, b = source.dtype, to.dtype
    if a == b or source.layout != torch.strided or to.layout != torch.strided or "meta" in (source.device.type, to.device.type):
        raise Leave
    if not any(t.is_floating_point or t.is_complex for t in (a, b)):
        raise Leave
    for dtype in (a, b):
        if _REAL.get(dtype, dtype) not in NAMES and dtype not in _OTHER_INTEGERS:
            raise Refuse(f"librepdl has no {str(dtype).removeprefix('torch.')}")
    if to.is_conj() or to.is_neg():  # what is written is the conjugate, or the negative
        return to.copy_(source.to(b))
    source = source.resolve_neg()
    if a.is_complex or b.is_complex:
        return _copy_complex(to, source, non_blocking)
    if a in _OTHER_INTEGERS:
        if a not in (torch.uint32, torch.uint64):
            raise Leave  # exact in float32, then one rounding
        return to.copy_(_rounded(source, b), non_blocking)
    if b in _OTHER_INTEGERS:
        return to.copy_(_saturated(source, b), non_blocking)
    if source.device != to.device or _C._is_alias_of(source, to):
        return to.copy_(converted(source, b), non_blocking)
    call("convert", source.expand(to.shape), NAMES[b], out=plain(to))
    return to


# ---- places that indices name: exact sums, or of values for one place the last in row-major order ----

def embedding_dense_backward(g, indices, rows, padding, by_frequency):
    return call("embedding_backward", g, indices.to(torch.int64), rows=rows, padding_idx=padding if padding >= 0 else None,
                scale_grad_by_freq=by_frequency)


def index_add(x, axis, index, source, alpha):
    check(x.dtype == source.dtype, f"index_add(): self ({x.dtype}) and source ({source.dtype}) must have the same scalar type")
    return call("index_add", with_an_axis(x), index.to(torch.int64).reshape(-1), with_an_axis(source), axis=axis_of(x, axis),
                alpha=rounded(alpha, x.dtype)).view(x.shape)


def scatter_add(x, axis, index, source):
    check(x.dtype == source.dtype, "scatter(): Expected self.dtype to be equal to src.dtype")
    if index.numel() == 0:
        return x.clone(memory_format=torch.contiguous_format)
    index, source = with_an_axis(index).to(torch.int64), with_an_axis(source)
    for i, n in enumerate(index.shape):  # aten's source may be larger than the index
        source = source.narrow(i, 0, n)
    return call("scatter_add", with_an_axis(x), index, source, axis=axis_of(x, axis)).view(x.shape)


def index_put(x, indices, values, accumulate, unsafe):
    values = values if isinstance(values, torch.Tensor) else torch.tensor(values, dtype=x.dtype, device=x.device)
    several = any(t is not None and t.dtype not in (torch.bool, torch.uint8) for t in indices)  # of a mask each place comes once
    if accumulate and x.dtype not in NARROW:
        raise Refuse("") if x.is_floating_point() or x.is_complex() else Leave
    if not accumulate and (not several or values.numel() == 1):
        raise Leave
    places = torch.arange(x.numel(), device=x.device).view(x.shape)
    index = torch.ops.aten.index(places, indices)
    flat, before = index.reshape(-1), x.reshape(-1)
    source = values.to(x).expand(index.shape).reshape(-1)
    if accumulate:
        return torch.index_add(before, 0, flat, source).view(x.shape)
    last = torch.full_like(before, -1, dtype=torch.int64).scatter_reduce(0, flat, torch.arange(flat.numel(), device=x.device), "amax")
    return torch.where(last.ge(0), source.gather(0, last.clamp_min(0)) if source.numel() else before, before).view(x.shape)


def put(x, index, source, accumulate):
    check(index.dtype == torch.int64, f"put_(): Expected a long tensor for index, but got {index.dtype}")
    check(x.dtype == source.dtype, f"put_(): self and source expected to have the same dtype, but got self.dtype = {x.dtype} and "
                                   f"source.dtype = {source.dtype}")
    check(index.numel() == source.numel(), f"put_(): Expected source and index to have the same number of elements, but got "
                                           f"source.numel() = {source.numel()}, index.numel() = {index.numel()}")
    if x.numel() == 0 and index.numel() > 0:
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    return torch.index_put(x.reshape(-1), (index.reshape(-1),), source.reshape(-1), accumulate).view(x.shape)


def scatter(x, axis, index, source):
    if x.device.type != "cpu":
        raise Refuse("without a compiler")
    raise Leave  # aten's kernel on the CPU goes through them in order


index_copy = scatter


# ---- order: stable, NaN greatest, of equal ones the first ----

def sort(x, stable, axis, descending):
    if stable:
        raise Leave
    return tuple(torch.sort(x, stable=True, dim=axis, descending=descending))


def topk(x, k, axis, largest, in_order):
    if x.dim() == 0:
        raise Leave
    axis = axis_of(x, axis)
    check(0 <= k <= x.size(axis), "selected index k out of range")
    return tuple(t.narrow(axis, 0, k).contiguous() for t in torch.sort(x, stable=True, dim=axis, descending=largest))


def _missing(*values):
    raise Refuse("without a compiler")  # integers, too


kthvalue = median_dim = median_all = nanmedian_dim = nanmedian_all = _missing


def _extremes_so_far(of_integers, nan_is_greatest, x, axis):
    """Integers in the order of floating-point numbers: the bits, those of magnitudes turned round where the sign is set."""
    if not x.is_floating_point() or x.numel() == 0:
        raise Leave
    if x.dtype not in BITS:
        raise Refuse("")
    axis = axis_of(x, axis)
    bits = x.contiguous().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])
    greatest = torch.iinfo(bits.dtype).max
    keys = bits ^ ((bits >> 8 * x.element_size() - 1) & greatest)
    _, indices = of_integers(keys.masked_fill_(x.isnan(), greatest if nan_is_greatest else -greatest - 1), axis)
    values = x.gather(axis, indices)
    return values.masked_fill(values.isnan(), math.nan), indices


cummax, cummin = partial(_extremes_so_far, torch.cummax, True), partial(_extremes_so_far, torch.cummin, False)


# ---- sequences, random numbers ----

def _sequence(name, out, length, **numbers):
    t = torch.empty(length, dtype=out.dtype, device=out.device)
    if length > 0:
        call(name, **numbers, dtype=NAMES[out.dtype], out=t)
    return t


def arange(start, end, step, out):
    if out.dtype not in BITS:
        raise Refuse("") if out.is_complex() else Leave
    start, end, step = float(start), float(end), float(step)
    check(step != 0, "step must be nonzero")
    check(math.isfinite(start) and math.isfinite(end), f"unsupported range: {start} -> {end}")
    check((step > 0) == (end >= start) or start == end, "upper bound and lower bound inconsistent with step sign")
    count = math.ceil((end - start) / step)
    return _sequence("arange", out, count, start=start, step=step, count=count)


def linspace(start, end, steps, out):
    if out.dtype not in BITS:
        raise Refuse("")
    check(steps >= 0, "number of steps must be non-negative")
    return _sequence("linspace", out, steps, start=float(start), stop=float(end), num=steps)


# aten's own: over the whole range of int64 it gives one random64() of the generator as it is.
_aten_random = torch.library.get_kernel("aten::random_.from", "CPU")


def _draw(where, generator=None):
    """The seed of PyTorch's generator, and as the stream one draw of 64 bits."""
    check(where.type != "cuda" or not torch.cuda.is_current_stream_capturing(),
          "librepdl: not while a CUDA graph is captured: each replay would draw the same")
    source = torch.default_generator if generator is None else generator
    check(source.device.type == "cpu", f"librepdl: generator: expected one of the CPU, also for draws on a GPU, got one on {source.device}")
    word = torch.empty((), dtype=torch.int64)
    _aten_random.call_boxed(_cpu, word, -2**63, None, generator=source)
    return Generator(source.initial_seed() % 2**64, int(word.item()) % 2**64)


def _drawn(name, t, generator, *arguments, **options):
    """The tensor filled by the generator's method."""
    if t.numel() > 0:
        getattr(generator, name)(*arguments, out=plain(t), **options)
    return t


def _filled(name, first, second, t, a, *rest):
    """Of one distribution with one or two numbers, then the generator."""
    *b, generator = rest
    numbers = {key: float(v) for key, v in zip((first, second), (a, *b))}
    check(numbers.get("high", math.inf) >= numbers.get("low", 0), f"uniform_ expects to return a [from, to) range, but found {numbers}")
    check(numbers.get("stddev", 0) >= 0, f"normal expects std >= 0.0, but found std {numbers.get('stddev')}")
    check(numbers.get("rate", 1) > 0, f"exponential_ expects lambda > 0.0, but found lambda={numbers.get('rate')}")
    return _drawn(name, t, _draw(t.device, generator), t.shape, dtype=NAMES[t.dtype], **numbers)


uniform, normal = partial(_filled, "uniform", "low", "high"), partial(_filled, "normal", "mean", "stddev")
exponential = partial(_filled, "exponential", "rate", None)


def normal_of(mean, std, generator):
    """A standard normal number of the result's type, and mean + std times that number, rounded once."""
    like = mean if isinstance(mean, torch.Tensor) else std
    check(like.is_floating_point(), f"normal expects floating-point numbers, but found {like.dtype}")
    if isinstance(std, torch.Tensor):
        expect_all(std.ge(0), "normal expects all elements of std >= 0.0")
    else:
        check(std >= 0, f"normal expects std >= 0.0, but found std {std}")
    mean, std = (t if isinstance(t, torch.Tensor) else torch.tensor(t, dtype=torch.float64, device=like.device) for t in (mean, std))
    out = torch.empty(torch.broadcast_shapes(mean.shape, std.shape), dtype=like.dtype, device=like.device)
    operands = [normal(torch.empty_like(out), 0, 1, generator), std, mean]
    if any(t.dtype != out.dtype for t in operands):
        operands = [converted(t, torch.float64) for t in operands]
    return call("fma", *operands, out=out) if out.numel() > 0 else out


def _below(like, g, p):
    """True with probability p."""
    return _drawn("bernoulli", torch.empty(like.shape, dtype=torch.bool, device=like.device), g, like.shape, p=float(p))


def bernoulli_number(t, p, generator):
    check(0 <= p <= 1, f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    return _below(t, _draw(t.device, generator), p).to(t.dtype)


def bernoulli_tensor(t, p, generator):
    """A number of [0, 1) in 53 bits is less than p."""
    p = p.to(torch.float64)
    expect_all(p.ge(0).logical_and(p.le(1)), "expected probabilities between 0 and 1")
    u = uniform(torch.empty(t.shape, dtype=torch.float64, device=t.device), 0, 1, generator)
    return u.lt(p).to(t.dtype)


# The integers that a type has, from 0: those that `random_` draws from by default.
_ENDS = {torch.float32: 2**24, torch.float16: 2**11, torch.bfloat16: 2**8, torch.float64: 2**53, torch.int64: 2**63 - 1,
         torch.int32: 2**31, torch.int16: 2**15, torch.int8: 2**7, torch.uint8: 2**8, torch.bool: 2}


def random_from(t, low, high, generator):
    high = _ENDS[t.dtype] if high is None else high
    check(low < high, f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    out = torch.empty(t.shape, dtype=torch.int64, device=t.device)
    return _drawn("randint", out, _draw(t.device, generator), t.shape, high, low).to(t.dtype)


def random_to(t, high, generator):
    return random_from(t, 0, high, generator)


def random(t, generator):
    return random_from(t, 0, None, generator)


def randperm(n, generator, out):
    check(n >= 0, f"n must be non-negative, got {n}")
    t = torch.empty(n, dtype=torch.int64, device=out.device)
    return _drawn("permutation", t, _draw(out.device, generator), n).to(out.dtype)


def _dropped(x, g, p):
    """x / (1 - p), rounded once, or +0 (dropped in formulas_random.cpp)."""
    y = g.dropout(converted(plain(x), torch.float32), p)
    if x.dtype == torch.float32:
        return y
    if p > 1 - 2**-40:
        raise Refuse("of 16 bits with p within 2^-40 of 1")
    wide = converted(y, torch.float64)
    left = call("fma", wide, torch.tensor(p, dtype=torch.float64, device=x.device), call("sub", converted(plain(x), torch.float64), wide))
    bits, outwards = y.view(torch.int32), converted(call("sign", call("mul", left, wide)), torch.int32)
    return converted((bits + outwards * (1 - (bits & 1))).view(torch.float32), x.dtype)


def native_dropout(x, p, train):
    check(0 <= p <= 1, f"dropout probability has to be between 0 and 1, but got {p}")
    if train is False or p in (0, 1) or x.numel() == 0:
        keep = train is False or p == 0
        return x.clone() if keep else torch.zeros_like(x), torch.full_like(x, keep, dtype=torch.bool)
    g = _draw(x.device)
    return _dropped(x, g.copy(), p), _below(x, g, p).logical_not()


def native_dropout_backward(g, mask, scale):
    negative = torch.full((), -1.0, dtype=g.dtype, device=g.device).expand(g.shape)
    return map_("leaky_relu_backward", g, negative, slope=float(scale)).masked_fill(mask.logical_not(), 0)


def dropout(x, p, train):
    check(0 <= p <= 1, f"dropout probability has to be between 0 and 1, but got {p}")
    return x if not train or p == 0 or x.numel() == 0 else torch.native_dropout(x, p, True)[0]
