#!/usr/bin/env python3
"""Operations that were slow on one CPU thread, by PyTorch and with librepdl, by turns in one process: what is left above a bar.

    bench/slow_spots.py [FAMILY ...] [--rounds N] [--seconds S] [--over R]

A table: microseconds of the thread's processor time of one call, plain and with librepdl, minima of the rounds, and their ratio. The time of the processor,
as other programs may have its cores in between. In a round each side calls for S seconds, at least once. --over: only rows whose ratio is above R, and at last
the number of these. Gradients that fully cancel: those of a sum to what is normalised, each an exact 0 beside terms that are not.
"""

import argparse
import time
from collections.abc import Callable, Iterator

import torch
from torch.nn import functional as F

import librepdl.torch

Calls = Iterator[tuple[str, Callable[[], object]]]
f32, bf16, f64 = torch.float32, torch.bfloat16, torch.float64


def name(*what: object) -> str:
    return ", ".join(str(w).removeprefix("torch.") if isinstance(w, torch.dtype) else " x ".join(map(str, w)) if isinstance(w, tuple) else str(w) for w in what)


def topk() -> Calls:
    for shape, k in ((1000,), 10), ((64, 1000), 5), ((16, 50257), 50), ((1 << 20,), 100), ((1 << 20,), 1 << 19):
        for t in (f32, bf16) if len(shape) == 2 else (f32,):
            x = torch.randn(shape).to(t)
            yield name(shape, f"k = {k}", t), lambda x=x, k=k: x.topk(k)
    x = torch.randn(64, 1000).relu()
    yield name((64, 1000), "k = 600, relu", f32), lambda x=x: x.topk(600)
    x = torch.randn(1000, 64)
    yield name((1000, 64), "k = 5, dim 0", f32), lambda x=x: x.topk(5, 0)


def order(f: Callable[[torch.Tensor], object]) -> Calls:
    for shape in (1000,), (64, 1000), (16, 50257), (1 << 20,):
        for t in (f32, bf16, f64) if shape == (64, 1000) else (f32,):
            x = torch.randn(shape).to(t)
            yield name(shape, t), lambda x=x: f(x)
    x = torch.randn(64, 1000).relu()
    yield name((64, 1000), "relu", f32), lambda x=x: f(x)


def kthvalue() -> Calls:
    return order(lambda x: x.kthvalue(x.shape[-1] // 3))


def median() -> Calls:
    yield from order(lambda x: x.median(-1))
    for n in 1000, 1 << 18:
        x = torch.randn(n)
        yield name("all of", n, f32), lambda x=x: x.median()


def randperm() -> Calls:
    for n in 100, 10_000, 1_000_000:
        yield name(n), lambda n=n: torch.randperm(n)


def index_put() -> Calls:
    for (rows, width), n in ((1000, 1), 1000), ((100, 1), 100_000), ((100_000, 1), 100_000), ((1000, 64), 4096), ((10_000, 256), 1000):
        for t in (f32, bf16) if width > 1 else (f32,):
            x, i, v = torch.randn(rows, width).to(t).squeeze(1), torch.randint(rows, (n,)), torch.randn(n, width).to(t).squeeze(1)
            yield name((rows, width), f"{n} places", t), lambda x=x, i=i, v=v: x.index_put((i,), v, accumulate=True)
    x, i, j, v = torch.randn(300, 300), torch.randint(300, (50_000,)), torch.randint(300, (50_000,)), torch.randn(50_000)
    yield name((300, 300), "50000 pairs", f32), lambda: x.index_put((i, j), v, accumulate=True)


def scatter_add() -> Calls:
    for places, n in (100, 1000), (100, 100_000), (100_000, 100_000):
        for t in (f32, bf16, f64):
            x, i, v = torch.zeros(places, dtype=t), torch.randint(places, (n,)), torch.randn(n).to(t)
            yield name((places,), f"of {n}", t), lambda x=x, i=i, v=v: x.scatter_add(0, i, v)
    for axis in 0, 1:
        x, v = torch.zeros(512, 512), torch.randn(512, 512)
        i = torch.randint(512, v.shape)
        yield name((512, 512), f"dim {axis}", f32), lambda x=x, i=i, v=v, axis=axis: x.scatter_add(axis, i, v)
    x, v, i = torch.zeros(1000, 64), torch.randn(8000, 64), torch.randint(1000, (8000, 1)).expand(8000, 64)
    yield name((1000, 64), "rows of 8000", f32), lambda: x.scatter_add(0, i, v)


def gelu() -> Calls:
    for kind in "none", "tanh":
        for n in 1000, 1 << 16, 1 << 21:
            for t in (f32, bf16, f64) if n == 1 << 16 else (f32,):
                x, g = torch.randn(n).to(t), torch.randn(n).to(t)
                yield name(kind, n, t), lambda x=x, kind=kind: F.gelu(x, approximate=kind)
                yield name(kind, "backward", n, t), lambda x=x, g=g, kind=kind: torch.ops.aten.gelu_backward(g, x, approximate=kind)


def conv() -> Calls:
    for (n, c, size), out in ((1, 3, 32), 16), ((16, 16, 32), 16), ((8, 64, 32), 64), ((8, 128, 16), 128), ((1, 64, 112), 64), ((4, 256, 8), 256):
        for t in (f32, bf16) if c == 64 and n == 8 else (f32,):
            x, w = torch.randn(n, c, size, size).to(t), torch.randn(out, c, 3, 3).to(t)
            yield name((n, c, size, size), f"to {out}", t), lambda x=x, w=w: F.conv2d(x, w, padding=1)
            g = torch.randn(n, out, size, size).to(t)
            if n > 1:
                yield name("backward", (n, c, size, size), f"to {out}", t), lambda x=x, w=w, g=g: torch.ops.aten.convolution_backward(
                    g, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False])


def gradient(f: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, g: torch.Tensor, *others: torch.Tensor) -> Callable[[], object]:
    def make() -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        of = tuple(t.detach().clone().requires_grad_() for t in (x, *others))
        return f(*of), of

    memo: dict[bool, tuple[torch.Tensor, tuple[torch.Tensor, ...]]] = {}

    def call() -> object:
        enabled = librepdl.torch.is_enabled()
        if enabled not in memo:
            memo[enabled] = make()
        y, of = memo[enabled]
        return torch.autograd.grad(y, of, g, retain_graph=True)

    return call


def norms(kind: str) -> Calls:
    def g(y: tuple[int, ...]) -> torch.Tensor:
        return torch.ones(y) if kind == "cancelling" else torch.randn(y)

    for shape in (8, 64), (128, 768), (2048, 1024):
        for t in (f32, bf16, f64) if shape == (128, 768) else (f32,):
            x, w, b = torch.randn(shape).to(t), torch.ones(shape[1:]).to(t), torch.zeros(shape[1:]).to(t)
            yield name("layer_norm", shape, t), gradient(lambda x, w, b: F.layer_norm(x, x.shape[1:], w, b), x, g(shape).to(t), w, b)
            if kind != "cancelling":
                yield name("rms_norm", shape, t), gradient(lambda x, w: F.rms_norm(x, x.shape[1:], w), x, g(shape).to(t), w)
    for shape in (4, 8, 8, 8), (16, 64, 32, 32), (32, 256, 14, 14):
        for t in (f32, bf16, f64) if shape[1] == 64 else (f32,):
            x, w, b = torch.randn(shape).to(t), torch.ones(shape[1]).to(t), torch.zeros(shape[1]).to(t)
            yield name("batch_norm", shape, t), gradient(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), x, g(shape).to(t), w, b)
            yield name("group_norm of 4", shape, t), gradient(lambda x, w, b: F.group_norm(x, 4, w, b), x, g(shape).to(t), w, b)


FAMILIES: dict[str, Callable[[], Calls]] = {
    "topk": topk, "kthvalue": kthvalue, "median": median, "randperm": randperm, "index_put": index_put, "scatter_add": scatter_add, "gelu": gelu,
    "conv": conv, "norms": lambda: norms("backward"), "cancelling": lambda: norms("cancelling")}


def microseconds(f: Callable[[], object], seconds: float) -> float:
    """Of one call; the first of all is not counted."""
    f()
    count, began = 0, time.thread_time()
    while True:
        f()
        count += 1
        took = time.thread_time() - began
        if took > seconds:
            return 1e6 * took / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=" ".join(FAMILIES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.02)
    parser.add_argument("--over", type=float, default=0.0)
    o = parser.parse_args()
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, librepdl {librepdl.__version__}, one thread\n\n| operation | plain, us | librepdl, us | ratio |\n|---|---|---|---|")
    above = 0
    for family in o.families or FAMILIES:
        torch.manual_seed(0)
        for what, f in FAMILIES[family]():
            plain, ours = [], []
            for _ in range(o.rounds):
                plain.append(microseconds(f, o.seconds))
                with librepdl.torch.reproducible():
                    ours.append(microseconds(f, o.seconds))
            ratio = min(ours) / min(plain)
            if ratio > o.over:
                above += 1
                print(f"| {family} {what} | {min(plain):.1f} | {min(ours):.1f} | {ratio:.2f} |", flush=True)
    if o.over > 0:
        print(f"\n{above} above {o.over}")


if __name__ == "__main__":
    main()
