"""Recurrent layers: the same bits as a loop of the operations that the document names."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import librepdl.torch

KINDS = ["RNN", "ReLU", "LSTM", "GRU"]


def made(kind, *arguments, cell=False, **options):
    name = "RNN" if kind == "ReLU" else kind
    nonlinearity = {"nonlinearity": "relu"} if kind == "ReLU" else {}
    return getattr(nn, name + ("Cell" if cell else ""))(*arguments, **nonlinearity, **options)


def step(kind, x, h, c, w_ih, w_hh, b_ih=None, b_hh=None, w_hr=None):
    return after_input(kind, nn.functional.linear(x, w_ih, b_ih), h, c, w_hh, b_hh, w_hr)


def after_input(kind, x, h, c, w_hh, b_hh=None, w_hr=None):
    y = nn.functional.linear(h, w_hh, b_hh)
    if kind in ("RNN", "ReLU"):
        return (torch.tanh if kind == "RNN" else torch.relu)(y + x), None
    if kind == "GRU":
        (xr, xz, xn), (yr, yz, yn) = x.chunk(3, -1), y.chunk(3, -1)
        r, z = torch.sigmoid(yr + xr), torch.sigmoid(yz + xz)
        n = torch.tanh(xn + yn * r)
        return (h - n) * z + n, None
    i, f, g, o = (y + x).chunk(4, -1)
    i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
    c = f * c + i * g
    h = o * torch.tanh(c)
    return (h if w_hr is None else nn.functional.linear(h, w_hr)), c


def loop(kind, layer, x, h0, c0):
    """One sequence, (time, features), through every layer and direction."""
    last = []
    for level in range(layer.num_layers):
        sides = []
        for reverse in (False, True)[: 2 if layer.bidirectional else 1]:
            at = len(last)
            h, c = h0[at], None if c0 is None else c0[at]
            suffix = f"_l{level}" + ("_reverse" if reverse else "")
            weights = {short: getattr(layer, long + suffix, None) for short, long in (
                ("w_ih", "weight_ih"), ("w_hh", "weight_hh"), ("b_ih", "bias_ih"), ("b_hh", "bias_hh"), ("w_hr", "weight_hr"))}
            out = []
            for row in reversed(x) if reverse else x:
                h, c = step(kind, row[None], h[None], None if c is None else c[None], **weights)
                h, c = h[0], None if c is None else c[0]
                out.append(h)
            sides.append(torch.stack(out[::-1] if reverse else out))
            last.append((h, c))
        x = torch.cat(sides, 1)
    return x, torch.stack([h for h, _ in last]), None if c0 is None else torch.stack([c for _, c in last])


def states(kind, layer, batch):
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    h = torch.randn(count, batch, getattr(layer, "proj_size", 0) or layer.hidden_size)
    return h, torch.randn(count, batch, layer.hidden_size) if kind == "LSTM" else None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False, "batch_first": True}, {"proj_size": 2}],
                         ids=["one", "two both ways", "without bias", "projected"])
def test_a_layer_is_a_loop(kind, options):
    if "proj_size" in options and kind != "LSTM":
        pytest.skip("of an LSTM alone")
    librepdl.torch.enable()
    layer = made(kind, 3, 4, **options)
    x, (h, c) = torch.randn(5, 6, 3), states(kind, layer, 6)
    given = x.transpose(0, 1) if layer.batch_first else x
    y, last = layer(given, h if c is None else (h, c))
    y = y.transpose(0, 1) if layer.batch_first else y
    last = (last,) if c is None else last
    # Packed: sequences of several lengths, each as if it were alone.
    lengths = [2, 5, 1, 5, 3, 4]
    packed, packed_last = layer(pack_padded_sequence(given, lengths, layer.batch_first, enforce_sorted=False), h if c is None else (h, c))
    z = pad_packed_sequence(packed)[0]
    packed_last = (packed_last,) if c is None else packed_last
    for b in range(6):
        for found, found_last, length in ((y, last, 5), (z, packed_last, lengths[b])):
            expected = loop(kind, layer, x[:length, b], h[:, b], None if c is None else c[:, b])
            assert torch.equal(found[:length, b], expected[0])
            assert all(torch.equal(f[:, b], e) for f, e in zip(found_last, expected[1:]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_is_a_step(kind):
    librepdl.torch.enable()
    cell = made(kind, 3, 4, cell=True)
    x, h, c = torch.randn(6, 3), torch.randn(6, 4), torch.randn(6, 4) if kind == "LSTM" else None
    found = cell(x, (h, c)) if kind == "LSTM" else (cell(x, h),)
    expected = step(kind, x, h, c, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    assert all(torch.equal(f, e) for f, e in zip(found, expected))
    with pytest.raises(RuntimeError, match="batch size"):
        cell(x, (h[:1], c[:1]) if kind == "LSTM" else h[:1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed", [False, True])
def test_gradients(kind, packed):
    """A loop's, bit for bit; near those of plain PyTorch in float64; in any number of threads, with oneDNN and without."""
    layer = made(kind, 3, 4, bidirectional=True)
    data, (h0, c0) = torch.randn(4, 2, 3), states(kind, layer, 2)
    counts = [2, 2, 2, 1] if packed else [2] * 4

    def run(forward, dtype=torch.float32):
        model = copy.deepcopy(layer).to(dtype)
        x, h, c = (None if t is None else t.to(dtype).clone().requires_grad_() for t in (data, h0, c0))
        y = forward(model, x, h, c)
        (y * torch.linspace(-1, 1, y.numel(), dtype=torch.float64).to(dtype).view_as(y)).sum().backward()
        return [y.detach(), x.grad, h.grad, *([] if c is None else [c.grad]), *(p.grad for p in model.parameters())]

    def whole(model, x, h, c):
        y = model(pack_padded_sequence(x, [4, 3]) if packed else x, h if c is None else (h, c))[0]
        return y.data if packed else y.reshape(8, 8)

    def by_hand(model, x, h, c):
        rows = torch.cat([x[t, :n] for t, n in enumerate(counts)])
        sides = []
        for side in range(2):
            w_ih, w_hh, b_ih, b_hh = (getattr(model, n + ("_l0_reverse" if side else "_l0"))
                                      for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
            gates, out = nn.functional.linear(rows, w_ih, b_ih).split(counts), []
            times = list(range(4))[:: -1 if side else 1]
            first = (h[side], None if c is None else c[side])
            s = [None if t is None else t[: counts[times[0]]] for t in first]
            for t in times:
                if counts[t] < len(s[0]):
                    s = [None if a is None else a[: counts[t]] for a in s]
                elif counts[t] > len(s[0]):
                    s = [None if a is None else torch.cat([a, b[len(a):]]) for a, b in zip(s, first)]
                s = after_input(kind, gates[t], *s, w_hh, b_hh)
                out.append(s[0])
            sides.append(torch.cat(out[::-1] if side else out))
        return torch.cat(sides, 1)

    plain = run(whole, torch.float64)
    librepdl.torch.enable()
    expected = run(by_hand)
    for threads, mkldnn in ((1, False), (2, True)):
        torch.set_num_threads(threads)
        torch.backends.mkldnn.enabled = mkldnn
        assert all(torch.equal(a, b) for a, b in zip(run(whole), expected))
    librepdl.torch.disable()
    # About 20 roundings of 2^-24 of numbers of the largest's size, a gradient of up to 8 terms: below 2^-16 of it.
    for a, b in zip(expected, plain):
        assert (a.double() - b).abs().max() <= 2**-16 * b.abs().max()


def test_dropout_between_layers():
    librepdl.torch.enable()
    layer = nn.LSTM(3, 4, num_layers=2, dropout=0.5)
    x = torch.randn(5, 2, 3)
    torch.manual_seed(7)
    y, _ = layer(x)
    zeros = torch.zeros(1, 2, 4)
    first, second = (nn.LSTM(size, 4) for size in (3, 4))
    for level, alone in enumerate((first, second)):
        alone.load_state_dict({n[:-1] + "0": t for n, t in layer.state_dict().items() if n.endswith(f"l{level}")})
    torch.manual_seed(7)
    expected = second(nn.functional.dropout(first(x, (zeros, zeros))[0], 0.5), (zeros, zeros))[0]
    assert torch.equal(y, expected)
    assert torch.equal(layer.eval()(x)[0], second(first(x)[0])[0])
    with pytest.raises(RuntimeError, match="sequence length to be larger than 0"):
        layer(torch.randn(0, 2, 3))


def test_a_layer_under_autocast():
    """Products in bfloat16, states in float32, as of the composition."""
    librepdl.torch.enable()
    layer = nn.GRU(3, 4)
    x = torch.randn(2, 2, 3)
    with torch.autocast("cpu", torch.bfloat16):
        y, _ = layer(x)
        h = torch.zeros(2, 4)
        for row in x:
            h, _ = step("GRU", row, h, None, layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0)
        assert torch.equal(y[-1], h) and y.dtype == torch.float32
