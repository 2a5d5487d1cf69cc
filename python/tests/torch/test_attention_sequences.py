"""rotary, attention_varlen and attention_paged of tensors of PyTorch: tensors with the bits of NumPy's arrays."""

import numpy as np
import pytest
import torch

import librepdl

FORMATS = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def random(*shape, dtype=torch.float32, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("dtype", FORMATS)
def test_rotary(dtype):
    x, cos, sin = random(2, 5, 3, 8, dtype=dtype).transpose(1, 2), random(9, 4, dtype=dtype, seed=1), random(9, 4, dtype=dtype, seed=2)
    positions = torch.tensor([7, 0, 3, 3, 8])
    y = librepdl.rotary(x, cos, sin, positions, interleaved=True)
    assert isinstance(y, torch.Tensor) and y.dtype == dtype and y.shape == x.shape
    assert torch.equal(y, librepdl.rotary(x, cos[positions], sin[positions], interleaved=True))
    assert torch.equal(y[1:], librepdl.rotary(x[1:], cos, sin, [7, 0, 3, 3, 8], interleaved=True))
    if dtype != torch.bfloat16:
        arrays = (t.contiguous().numpy() for t in (x, cos, sin, positions))
        assert y.numpy().tobytes() == librepdl.rotary(*arrays, interleaved=True).tobytes()
    with pytest.raises(IndexError, match="rotary: positions"):
        librepdl.rotary(x, cos, sin, positions + 1)


@pytest.mark.parametrize("dtype", FORMATS)
def test_varlen_and_paged(dtype):
    queries, keys, size = [2, 0, 5], [7, 3, 16], 4
    a, b = (torch.tensor([0, *np.cumsum(n)], dtype=torch.int32) for n in (queries, keys))
    q, k, v = random(7, 4, 8, dtype=dtype), random(26, 2, 8, dtype=dtype, seed=1), random(26, 2, 6, dtype=dtype, seed=2)
    y, lse = librepdl.attention_varlen(q, k, v, a, b, causal=True, bottom_right=True, lse=True)
    assert isinstance(y, torch.Tensor) and y.dtype == dtype and lse.dtype == (dtype if dtype == torch.float64 else torch.float32)
    for i in range(3):
        rows, columns = slice(a[i], a[i + 1]), slice(b[i], b[i + 1])
        one = librepdl.attention(*(t.transpose(0, 1) for t in (q[rows], k[columns], v[columns])), causal=True, bottom_right=True)
        assert torch.equal(y[rows], one.transpose(0, 1))
    gradients = librepdl.attention_varlen_backward(y, q, k, v, y, lse, a, b, causal=True, bottom_right=True)
    assert [g.shape for g in gradients] == [q.shape, k.shape, v.shape]
    table = torch.tensor([[3, 1, -1, -1], [0, -1, -1, -1], [2, 7, 5, 4]])
    pages = [torch.full((8, size, 2, n), float("nan"), dtype=dtype) for n in (8, 6)]
    for x, of in zip((k, v), pages):
        for i, n in enumerate(keys):
            for j in range(n):
                of[table[i, j // size], j % size] = x[b[i] + j]
    paged = librepdl.attention_paged(q, *pages, table, torch.tensor(keys), q_offsets=a, causal=True)
    assert torch.equal(paged, y)
    each = random(3, 2, 4, 8, dtype=dtype, seed=3)
    paged, of_rows = librepdl.attention_paged(each, *pages, table, torch.tensor(keys), causal=True, lse=True)
    joined, of_all = librepdl.attention_varlen(each.reshape(6, 4, 8), k, v, torch.tensor([0, 2, 4, 6]), b, causal=True, bottom_right=True, lse=True)
    assert torch.equal(paged.reshape(joined.shape), joined)
    assert torch.equal(of_rows, of_all.reshape(4, 3, 2).transpose(0, 1))
