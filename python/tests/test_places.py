"""Sums to places given by indices: against exact fractions, in place, and errors."""
from fractions import Fraction

import numpy as np
import pytest

import librepdl
from test_fma_chain import nearest


def exact(values):
    return sum((Fraction(float(v)) for v in values), Fraction(0))


def test_index_add_adds_exactly_and_keeps_the_rest():
    x = np.float32([1, -0.0, 2**24, np.nan])
    index = np.int64([0, 2, 2, 0, 2])
    source = np.float32([2**24, 1, 1, -2**24, 2**-20])
    out = librepdl.index_add(x, index, source)
    assert out.tolist()[:3] == [1, 0, float(np.float32(2**24 + 2))] and np.signbit(out[1])
    assert out[3:].view(np.uint32) == x[3:].view(np.uint32)  # untouched
    assert librepdl.index_add(x, index[::-1], source[::-1])[:3].tolist() == out[:3].tolist()
    assert librepdl.index_add(x, index, source, alpha=-1)[2] == np.float32(2**24 - 2)
    librepdl.index_add(x, index, source, out=x)
    assert np.array_equal(x.view(np.uint32), out.view(np.uint32))


def test_rows_and_axes():
    r = np.random.default_rng(1)
    x, source = r.standard_normal((4, 7, 3)).astype(np.float32), r.standard_normal((4, 50, 3)).astype(np.float32)
    index = r.integers(0, 6, 50)
    out = librepdl.index_add(x, index, source, axis=1)
    each = librepdl.scatter_add(x, np.broadcast_to(index[:, None], source.shape), source, axis=1)
    assert np.array_equal(out, each)
    for i in range(4):
        for t in range(7):
            for k in range(3):
                total = Fraction(float(x[i, t, k])) + exact(source[i, index == t, k])
                assert out[i, t, k] == nearest(total)


def test_embedding_backward():
    g = np.float16([[1, 2], [3, 4], [5, 6], [7, 8]]).reshape(2, 2, 2)
    indices = np.int64([[0, 2], [2, 1]])
    assert librepdl.embedding_backward(g, indices, 4).tolist() == [[1, 2], [7, 8], [8, 10], [0, 0]]
    mean = librepdl.embedding_backward(g, indices, 4, padding_idx=1, scale_grad_by_freq=True)
    assert mean.dtype == np.float16 and mean.tolist() == [[1, 2], [0, 0], [4, 5], [0, 0]]


def test_indices_out_of_range():
    x, out = np.ones((3, 2), np.float32), np.full((3, 2), 7, np.float32)
    for bad in (-1, 3):
        with pytest.raises(ValueError, match=rf"index_add: index: expected indices in \[0, 3\), got {bad}"):
            librepdl.index_add(x, np.int64([0, bad]), x[:2], out=out)
    assert (out == 7).all()
