"""rotary, attention_varlen and attention_paged: no bit depends on how sequences are split, joined, padded, cached or laid out in pages."""

from fractions import Fraction

import numpy as np
import pytest
from conftest import NUMPY_TYPES

import librepdl

FORMATS = [NUMPY_TYPES[name] for name in ("f64", "f32", "f16", "bf16") if name in NUMPY_TYPES]
HEADS, GROUPS, SIZE, VALUES = 4, 2, 6, 5
LENGTHS = [3, 0, 17, 1, 40]


def bits(x):
    return x.tobytes(), x.shape, x.dtype


def random(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def heads_first(x):
    return x.swapaxes(0, 1)


def offsets_of(lengths, dtype=np.int64):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(dtype)


def alone(q, k, v, **options):
    y, lse = librepdl.attention(heads_first(q), heads_first(k), heads_first(v), lse=True, **options)
    return heads_first(y), lse


def sequences(queries, keys, dtype):
    return (random(sum(queries), HEADS, SIZE, dtype=dtype, seed=1), random(sum(keys), GROUPS, SIZE, dtype=dtype, seed=2),
            random(sum(keys), GROUPS, VALUES, dtype=dtype, seed=3))


# ------------------------------------------------------------------------------------------------------------- rotary


def pairs(x, interleaved):
    half = x.shape[-1] // 2
    return (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("inverse", [False, True])
def test_rotary_is_its_formula(dtype, interleaved, inverse):
    x, cos, sin = random(2, 3, 5, 6, dtype=dtype), random(5, 3, dtype=dtype, seed=1), random(5, 3, dtype=dtype, seed=2)
    y = librepdl.rotary(x, cos, sin, interleaved=interleaved, inverse=inverse)
    (x1, x2), (y1, y2) = pairs(x, interleaved), pairs(y, interleaved)
    sign = -1 if inverse else 1
    for at in np.ndindex(x1.shape):
        a, b, c, s = (Fraction(float(n)) for n in (x1[at], x2[at], cos[at[-2:]], sin[at[-2:]]))
        for got, exact in ((y1[at], a * c - sign * b * s), (y2[at], b * c + sign * a * s)):
            near = [np.nextafter(got, np.array(e, dtype)) for e in (-np.inf, np.inf)]
            assert all(abs(Fraction(float(got)) - exact) <= abs(Fraction(float(n)) - exact) for n in near)
    out = np.empty_like(x)
    assert librepdl.rotary(x, cos, sin, interleaved=interleaved, inverse=inverse, out=out) is out and bits(out) == bits(y)


def test_rotary_positions_and_layouts():
    x, cos, sin = random(2, 3, 5, 8), random(9, 4, seed=1), random(9, 4, seed=2)
    whole = librepdl.rotary(x, cos[2:7], sin[2:7])
    assert bits(librepdl.rotary(x, cos, sin, np.arange(2, 7))) == bits(whole)
    assert bits(librepdl.rotary(x, cos, sin, [2, 3, 4, 5, 6])) == bits(whole)
    each = np.array([[[0, 1, 2, 3, 4]], [[8, 8, 0, 7, 1]]], np.int32)
    rotated = librepdl.rotary(x, cos, sin, each)
    for n in range(2):
        assert bits(rotated[n]) == bits(librepdl.rotary(x[n], cos[each[n, 0]], sin[each[n, 0]]))
    rows_first = np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
    assert bits(librepdl.rotary(rows_first, cos[2:7], sin[2:7])) == bits(whole)
    assert bits(librepdl.rotary(x[..., ::-1], cos[2:7], sin[2:7])) == bits(librepdl.rotary(x[..., ::-1].copy(), cos[2:7], sin[2:7]))
    one = librepdl.rotary(x[:, :, 3:4], cos, sin, [5])  # a cache: the newest position alone
    assert bits(one) == bits(whole[:, :, 3:4].copy())


def test_rotary_special_numbers():
    def one(*x):
        y = librepdl.rotary(np.array(x[:2], np.float32), np.array(x[2:3], np.float32), np.array(x[3:], np.float32))
        return [float(n).hex() if n == n else "nan" for n in y]

    inf, tiny, most = float("inf"), 2.0**-149, float(np.finfo(np.float32).max)
    assert one(-0.0, 0.0, 1, 0) == [(0.0).hex(), (0.0).hex()]
    assert one(1, 1, 1, 1) == [(0.0).hex(), (2.0).hex()]
    assert one(-tiny, 0, 0.25, 0) == [(-0.0).hex(), (0.0).hex()]
    assert one(tiny, tiny, 1.5, 0.5) == [tiny.hex(), (2 * tiny).hex()]
    assert one(most, most, 1, 1) == [(0.0).hex(), inf.hex()]
    assert one(most, 1, 1, -(2.0**102)) == [most.hex(), (-inf).hex()]  # below the border, and far beyond it
    assert one(most, 1, 1, -(2.0**103)) == [inf.hex(), (-inf).hex()]  # the border itself
    assert one(inf, 1, 0, 1) == ["nan", inf.hex()]
    assert one(inf, inf, 1, 1) == ["nan", inf.hex()]


def test_rotary_refuses():
    x, table = random(4, 6), random(4, 3, seed=1)
    with pytest.raises(ValueError, match="rotary: x: .*even"):
        librepdl.rotary(random(4, 5), table, table)
    with pytest.raises(ValueError, match="broadcast.*|rotary: cos"):
        librepdl.rotary(x, random(4, 2), table)
    with pytest.raises(NotImplementedError, match="rotary: sin"):
        librepdl.rotary(x, table, table.astype(np.float64))
    with pytest.raises(ValueError, match="rotary: out"):
        librepdl.rotary(x, table, table, out=x)
    with pytest.raises(IndexError, match="rotary: positions: .*0 to 3"):
        librepdl.rotary(x, table, table, [0, 1, 2, 4])
    with pytest.raises(IndexError, match="rotary: positions"):
        librepdl.rotary(x, table, table, [0, -1, 2, 3])
    with pytest.raises(TypeError, match="rotary: positions"):
        librepdl.rotary(x, table, table, [0.0, 1, 2, 3])
    with pytest.raises(ValueError, match="rotary: cos: .*table"):
        librepdl.rotary(x, table[0], table, [0, 1, 2, 3])
    with pytest.raises(TypeError, match="rotary: interleaved"):
        librepdl.rotary(x, table, table, interleaved=1)


# ------------------------------------------------------------------------------------------------------------ offsets


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("options", [{}, {"causal": True, "bottom_right": True}, {"scale": 0.3, "left": 4, "right": 0}], ids=str)
def test_split_and_batch(dtype, options):
    """A sequence has the bits that it has alone, whatever is beside it, and wherever it lies."""
    queries, keys = [2, 3, 9, 0, 5], LENGTHS
    q, k, v = sequences(queries, keys, dtype)
    a, b = offsets_of(queries), offsets_of(keys, np.int32)
    y, lse = librepdl.attention_varlen(q, k, v, a, b, lse=True, **options)
    g = random(*y.shape, dtype=dtype, seed=4)
    gradients = librepdl.attention_varlen_backward(g, q, k, v, y, lse, a, b, **options)
    for i in range(len(keys)):
        rows, columns = slice(a[i], a[i + 1]), slice(b[i], b[i + 1])
        one, of_rows = alone(q[rows], k[columns], v[columns], **options)
        assert bits(y[rows]) == bits(np.ascontiguousarray(one)) and bits(lse[:, rows].copy()) == bits(of_rows)
        own = librepdl.attention_backward(*(heads_first(x) for x in (g[rows], q[rows], k[columns], v[columns], y[rows])), lse[:, rows], **options)
        for whole, part, where in zip(gradients, own, (rows, columns, columns)):
            assert bits(whole[where]) == bits(np.ascontiguousarray(heads_first(part)))
    # In two calls, and with its sequences in another order.
    first = librepdl.attention_varlen(q[: a[2]], k[: b[2]], v[: b[2]], a[:3], b[:3], **options)
    second = librepdl.attention_varlen(q[a[2] :], k[b[2] :], v[b[2] :], a[2:] - a[2], b[2:] - b[2], **options)
    assert bits(np.concatenate([first, second])) == bits(y)
    order = [4, 2, 0, 1, 3]
    shuffled_q = np.concatenate([q[a[i] : a[i + 1]] for i in order])
    shuffled_k, shuffled_v = (np.concatenate([x[b[i] : b[i + 1]] for i in order]) for x in (k, v))
    again = librepdl.attention_varlen(shuffled_q, shuffled_k, shuffled_v, offsets_of([queries[i] for i in order]),
                                      offsets_of([keys[i] for i in order]), **options)
    assert bits(again) == bits(np.concatenate([y[a[i] : a[i + 1]] for i in order]))


def test_chunking_and_cache():
    """The last queries of causal sequences, in chunks of any size, beside the keys that there were."""
    q, k, v = sequences(LENGTHS, LENGTHS, np.float32)
    at = offsets_of(LENGTHS)
    whole = librepdl.attention_varlen(q, k, v, at, at, causal=True)
    for chunk in (1, 4, 13):
        for begin in range(0, max(LENGTHS), chunk):
            parts = [(max(0, min(n, begin + chunk) - begin), min(n, begin + chunk)) for n in LENGTHS]
            rows = [np.arange(s + n - have, s + n) for s, (have, n) in zip(at, parts)]
            columns = [np.arange(s, s + n) for s, (_, n) in zip(at, parts)]
            i, j = np.concatenate(rows), np.concatenate(columns)
            y = librepdl.attention_varlen(q[i], k[j], v[j], offsets_of([len(r) for r in rows]), offsets_of([len(c) for c in columns]),
                                          causal=True, bottom_right=True)
            assert bits(y) == bits(whole[i])


def test_padding():
    """A batch padded to one length, whose mask says what is there."""
    q, k, v = sequences([4] * len(LENGTHS), LENGTHS, np.float32)
    y = librepdl.attention_varlen(q, k, v, np.arange(6) * 4, offsets_of(LENGTHS))
    padded = [np.full((len(LENGTHS), max(LENGTHS), GROUPS, n), np.nan, np.float32) for n in (SIZE, VALUES)]
    for x, of in zip((k, v), padded):
        for i, (begin, n) in enumerate(zip(offsets_of(LENGTHS), LENGTHS)):
            of[i, :n] = x[begin : begin + n]
    mask = np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None]
    batch = librepdl.attention(q.reshape(-1, 4, HEADS, SIZE).swapaxes(1, 2), *(x.swapaxes(1, 2) for x in padded), mask=mask[:, None, None])
    assert bits(np.ascontiguousarray(batch.swapaxes(1, 2)).reshape(y.shape)) == bits(y)


def test_dropout_draws_with_a_stream_for_each_sequence():
    q, k, v = sequences([3, 5], [4, 6], np.float32)
    a, b = offsets_of([3, 5]), offsets_of([4, 6])
    y = librepdl.attention_varlen(q, k, v, a, b, dropout=0.5, seed=7, stream=3)
    for i in range(2):
        one, _ = alone(q[a[i] : a[i + 1]], k[b[i] : b[i + 1]], v[b[i] : b[i + 1]], dropout=0.5, seed=7, stream=3 + i)
        assert bits(y[a[i] : a[i + 1]]) == bits(np.ascontiguousarray(one))


def test_varlen_prepared_and_given_results():
    q, k, v = sequences([2, 2], [3, 4], np.float32)
    at = offsets_of([2, 2]), offsets_of([3, 4])
    y, lse = librepdl.attention_varlen(q, k, v, *at, lse=True)
    out = np.empty_like(y), np.empty_like(lse)
    assert librepdl.attention_varlen(q, k, v, *at, out=out, lse=True) == out or bits(out[0]) == bits(y)
    calls = librepdl.prepare(lambda: librepdl.attention_varlen(q, k, v, *at))
    calls.run()
    assert bits(calls.result) == bits(y)


def test_varlen_refuses():
    q, k, v = sequences([2, 2], [3, 4], np.float32)
    good = [0, 2, 4], [0, 3, 7]
    call = lambda a, b: librepdl.attention_varlen(q, k, v, np.array(a), np.array(b))
    call(*good)
    for a in ([1, 2, 4], [0, 3, 2, 4], [0, 2, 5], [0, 2, 3], [0, -1, 4]):
        with pytest.raises((ValueError, IndexError), match="attention_varlen: q_offsets"):
            call(a, good[1])
    with pytest.raises((ValueError, IndexError), match="attention_varlen: k_offsets"):
        call(good[0], [0, 7])
    with pytest.raises(NotImplementedError, match="attention_varlen: k_offsets"):
        call(good[0], [0.0, 3.0, 7.0])
    with pytest.raises(ValueError, match="attention_varlen: q"):
        librepdl.attention_varlen(q[0], k, v, np.array([0, 2]), np.array([0, 3]))
    with pytest.raises(NotImplementedError, match="attention_varlen: v"):
        librepdl.attention_varlen(q, k, v.astype(np.float16), *map(np.array, good))


# -------------------------------------------------------------------------------------------------------------- pages


def in_pages(lengths, size, dtype, seed=0, spare=3):
    """Keys and values, and the same in pages of this size in any order, the rest of which is NaN."""
    k, v = random(sum(lengths), GROUPS, SIZE, dtype=dtype, seed=2), random(sum(lengths), GROUPS, VALUES, dtype=dtype, seed=3)
    counts = [-(-n // size) for n in lengths]
    order = np.random.default_rng(seed).permutation(sum(counts) + spare)
    pages = [np.full((len(order), size, GROUPS, n), np.nan, dtype) for n in (SIZE, VALUES)]
    table = np.full((len(lengths), max(counts) + 1), -5, np.int32)
    used = iter(order)
    for i, (begin, n) in enumerate(zip(offsets_of(lengths), lengths)):
        for j in range(counts[i]):
            table[i, j] = next(used)
            have = min(size, n - j * size)
            for x, of in zip((k, v), pages):
                of[table[i, j], :have] = x[begin + j * size : begin + j * size + have]
    return k, v, *pages, table


@pytest.mark.parametrize("size", [1, 3, 16, 64])
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"causal": True, "left": 5, "scale": 0.7}], ids=str)
def test_page_size_and_position(size, dtype, options):
    """Pages of any size, in any order."""
    queries = 3
    q = random(len(LENGTHS), queries, HEADS, SIZE, dtype=dtype, seed=1)
    for seed in range(2):
        k, v, k_pages, v_pages, table = in_pages(LENGTHS, size, dtype, seed)
        y, lse = librepdl.attention_paged(q, k_pages, v_pages, table, np.array(LENGTHS), lse=True, **options)
        for i, begin in enumerate(offsets_of(LENGTHS)[:-1]):
            rows = slice(begin, begin + LENGTHS[i])
            one, of_rows = alone(q[i], k[rows], v[rows], bottom_right=True, **options)
            assert bits(y[i]) == bits(np.ascontiguousarray(one)) and bits(lse[i].copy()) == bits(of_rows)


def test_pages_with_queries_of_different_lengths():
    queries = [1, 0, 4, 1, 2]
    k, v, k_pages, v_pages, table = in_pages(LENGTHS, 4, np.float32)
    q = random(sum(queries), HEADS, SIZE, seed=1)
    y = librepdl.attention_paged(q, k_pages, v_pages, table, LENGTHS, q_offsets=offsets_of(queries), causal=True)
    assert bits(y) == bits(librepdl.attention_varlen(q, k, v, offsets_of(queries), offsets_of(LENGTHS), causal=True, bottom_right=True))


def test_pages_refused():
    _, _, k_pages, v_pages, table = in_pages(LENGTHS, 4, np.float32)
    q = random(len(LENGTHS), 1, HEADS, SIZE)
    call = lambda **o: librepdl.attention_paged(**{"q": q, "k_pages": k_pages, "v_pages": v_pages, "table": table, "lengths": LENGTHS, **o})
    call()
    wrong = table.copy()
    wrong[2, 1] = len(k_pages)
    with pytest.raises(IndexError, match="attention_paged: table"):
        call(table=wrong)
    wrong[2, 1] = -1
    with pytest.raises(IndexError, match="attention_paged: table"):
        call(table=wrong)
    with pytest.raises(ValueError, match="attention_paged: lengths: .*11 pages of 4"):
        call(lengths=[3, 0, 17, 1, 45])
    with pytest.raises(ValueError, match="attention_paged: lengths"):
        call(lengths=[3, 0, 17, -1, 40])
    with pytest.raises(ValueError, match="attention_paged: lengths"):
        call(lengths=LENGTHS[:3])
    with pytest.raises(TypeError, match="attention_paged: lengths: expected integers"):
        call(lengths=np.array(LENGTHS, np.float32))
    with pytest.raises(ValueError, match="attention_paged: v_pages"):
        call(v_pages=v_pages[:, :3])
    with pytest.raises(ValueError, match="attention_paged: q"):
        call(q=q[0])
    with pytest.raises(ValueError, match="attention_paged: q"):
        call(q=q[:2])
