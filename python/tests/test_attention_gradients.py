"""attention_backward is the derivative of attention, and each of its results is the formula's number, rounded once: in decimal arithmetic."""

import decimal

import numpy as np
import pytest

import librepdl

HEADS, GROUPS, QUERIES, KEYS, SIZE, VALUES = 2, 1, 3, 4, 3, 2
Decimal = decimal.Decimal


def exactly(x):
    return np.vectorize(lambda n: Decimal(float(n)), otypes=[object])(x)


def scores(q, k, scale, causal):
    """Of every pair, None where the key is absent."""
    k = np.repeat(k, HEADS // GROUPS, 0)
    a = scale * np.einsum("hid,hjd->hij", q, k)
    for i in range(QUERIES):
        if causal:
            a[:, i, i + 1 :] = None
    return a


def forward(q, k, v, scale, causal):
    v, a = np.repeat(v, HEADS // GROUPS, 0), scores(q, k, scale, causal)
    w = np.vectorize(lambda n: Decimal(0) if n is None else n.exp(), otypes=[object])(a)
    total = w.sum(-1)
    return np.einsum("hij,hje->hie", w, v) / total[..., None], np.vectorize(lambda n: n.ln(), otypes=[object])(total)


def backward(g, q, k, v, y, lse, scale, causal):
    repeated_k, repeated_v = (np.repeat(x, HEADS // GROUPS, 0) for x in (k, v))
    a = scores(q, k, scale, causal)
    p = np.vectorize(lambda n, l: Decimal(0) if n is None else (n - l).exp(), otypes=[object])(a, np.broadcast_to(lse[..., None], a.shape))
    t = np.einsum("hie,hje->hij", g, repeated_v) - (g * y).sum(-1)[..., None]
    of_heads = lambda x: x.reshape(GROUPS, HEADS // GROUPS, *x.shape[1:]).sum(1)
    return (scale * np.einsum("hij,hjd->hid", p * t, repeated_k), of_heads(scale * np.einsum("hij,hid->hjd", p * t, q)),
            of_heads(np.einsum("hij,hie->hje", p, g)))


def operands(type):
    r = np.random.default_rng(11)
    shapes = ((HEADS, QUERIES, VALUES), (HEADS, QUERIES, SIZE), (GROUPS, KEYS, SIZE), (GROUPS, KEYS, VALUES))
    return [r.standard_normal(s).astype(type) for s in shapes]


@pytest.mark.parametrize("causal", [False, True])
def test_derivative(causal):
    with decimal.localcontext() as c:
        c.prec = 60
        g, *given = (exactly(x) for x in operands(np.float32))
        scale, step = Decimal(0.75), Decimal("1e-20")
        y, lse = forward(*given, scale, causal)
        wanted = backward(g, *given, y, lse, scale, causal)
        for x, want in zip(given, wanted):
            for at in np.ndindex(x.shape):
                middle, ends = x[at], []
                for by in (step, -step):
                    x[at] = middle + by
                    ends.append((g * forward(*given, scale, causal)[0]).sum())
                x[at] = middle
                # Beside the derivative a third one, times step^2 / 6.
                assert abs((ends[0] - ends[1]) / (2 * step) - want[at]) < Decimal("1e-35")


def nearest(x, type):
    """The number of the format that is nearest to x; none of these is a tie."""
    about = type(float(x))
    with np.errstate(all="ignore"):
        near = [np.nextafter(about, type(-np.inf)), about, np.nextafter(about, type(np.inf))]
    return min(near, key=lambda n: abs(Decimal(float(n)) - x))


@pytest.mark.parametrize("type", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("causal", [False, True])
def test_rounding(type, causal):
    g, q, k, v = operands(type)
    y, lse = librepdl.attention(q, k, v, scale=0.75, causal=causal, lse=True)
    got = librepdl.attention_backward(g, q, k, v, y, lse, scale=0.75, causal=causal)
    with decimal.localcontext() as c:
        c.prec = 60
        wanted = (*backward(*(exactly(x) for x in (g, q, k, v, y, lse)), Decimal(0.75), causal),
                  *forward(*(exactly(x) for x in (q, k, v)), Decimal(0.75), causal))
        of_rows = np.float64 if type == np.float64 else np.float32
        for result, want, of in zip((*got, y, lse), wanted, (type, type, type, type, of_rows)):
            assert result.dtype == of
            if result is lse and type == np.float16:
                continue  # of one key it is a score, and that may be a tie
            rounded = np.array([nearest(x, of) for x in want.flat], of).reshape(want.shape)
            assert result.tobytes() == (rounded + of(0)).tobytes()
    out = tuple(np.empty_like(x) for x in got)
    again = librepdl.attention_backward(g, q, k, v, y, lse, scale=0.75, causal=causal, out=out)
    assert all(a is o and a.tobytes() == x.tobytes() for a, o, x in zip(again, out, got))


def test_errors():
    g, q, k, v = operands(np.float32)
    y, lse = librepdl.attention(q, k, v, lse=True)
    for error, text, changed in ((ValueError, "g: expected shape", {"g": g[:, :2]}), (ValueError, "y: expected shape", {"y": q}),
                                 (ValueError, "lse: expected shape", {"lse": lse[:, :2]}),
                                 (NotImplementedError, "lse: expected f32", {"lse": lse.astype(np.float64)}),
                                 (NotImplementedError, "g: expected f32", {"g": g.astype(np.float16)})):
        with pytest.raises(error, match=f"attention_backward: {text}"):
            librepdl.attention_backward(**({"g": g, "q": q, "k": k, "v": v, "y": y, "lse": lse} | changed))
