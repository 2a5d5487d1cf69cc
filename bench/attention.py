"""Attention beside PyTorch's: on a GPU the memory-efficient kernel of f32 and flash attention of 16 bits; on the CPU what PyTorch takes.

    python3 bench/attention.py [--rounds 15] [--only TEXT] [--backward] [--dropout P] [--cpu THREADS]

For each shape (batch x heads x queries x head size, as many keys unless it says so) milliseconds, medians of the rounds, by turns in one run, and their ratio. On a GPU
they are those of a call in a CUDA graph of five, so none of the host. Where queries are few, our rate beside that of a copy of the keys and values; how many of the results each tier decided; and whether a few queries, or with --backward all
gradients of one head, have the bits that the CPU gives them.
"""

import argparse
import contextlib
import statistics
import time

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import librepdl
from cuda_norms import captured

SHAPES = [(8, 12, 1024, 1024, 64), (4, 16, 4096, 4096, 64), (2, 16, 4096, 4096, 128), (8, 16, 512, 512, 64), (64, 12, 128, 128, 64),
          (16, 16, 1, 32768, 128), (16, 16, 1, 32768, 64), (1, 8, 8, 32768, 64)]
ON_CPU = [(1, 12, 512, 512, 64), (1, 4, 1024, 1024, 128), (2, 16, 1, 8192, 64)]
PEERS = {torch.float32: SDPBackend.EFFICIENT_ATTENTION, torch.bfloat16: SDPBackend.FLASH_ATTENTION, torch.float16: SDPBackend.FLASH_ATTENTION}
CALLS = 5  # of a graph


def timed(call, on_gpu):
    """A function that gives the milliseconds of a call."""
    if not on_gpu:
        def measure() -> float:
            begin = time.perf_counter()
            call()
            return 1e3 * (time.perf_counter() - begin)

        return measure
    measure_graph = captured(call, CALLS)
    return lambda: measure_graph() / 1e3


def peer_of(q, peer):
    return sdpa_kernel(peer) if q.is_cuda else contextlib.nullcontext()


def forward(q, k, v, causal, peer, dropout):
    """(our call, PyTorch's, whether our results are those of the CPU)"""
    out = torch.empty_like(q)

    def ours() -> None:
        librepdl.attention(q, k, v, causal=causal, dropout=dropout, out=out)

    def theirs() -> None:
        with peer_of(q, peer):
            F.scaled_dot_product_attention(q, k, v, is_causal=causal, dropout_p=dropout)

    def is_same() -> bool:
        rows = slice(0, 3) if dropout else slice(-3, None)  # draws belong to places
        few = librepdl.attention(q[:1, :1, rows].cpu(), k[:1, :1].cpu(), v[:1, :1].cpu(), causal=causal, bottom_right=not dropout, dropout=dropout)
        return torch.equal(few, out[:1, :1, rows].cpu())

    return ours, theirs, is_same


def backward(q, k, v, causal, peer, dropout):
    """The same of the gradients of q, k and v; None for few queries, which nobody trains with."""
    if q.shape[-2] != k.shape[-2]:
        return None
    g = torch.randn_like(q)
    y, lse = librepdl.attention(q, k, v, causal=causal, dropout=dropout, lse=True)
    out = tuple(torch.empty_like(x) for x in (q, k, v))
    asked = [x.detach().requires_grad_() for x in (q, k, v)]
    with peer_of(q, peer):
        result = F.scaled_dot_product_attention(*asked, is_causal=causal, dropout_p=dropout)

    def ours() -> None:
        librepdl.attention_backward(g, q, k, v, y, lse, causal=causal, dropout=dropout, out=out)

    def theirs() -> None:
        torch.autograd.grad(result, asked, g, retain_graph=True)

    def is_same() -> bool:
        one = librepdl.attention_backward(*(x[:1, :1].cpu() for x in (g, q, k, v, y, lse)), causal=causal, dropout=dropout)
        return all(torch.equal(a, b[:1, :1].cpu()) for a, b in zip(one, out))

    return ours, theirs, is_same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="")
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--cpu", type=int, metavar="THREADS")
    given = parser.parse_args()
    device = "cpu" if given.cpu else "cuda"
    if given.cpu:
        torch.set_num_threads(given.cpu)
    # Captured, and gradients are computed on the stream of what they are the gradients of: not the default one.
    stream = contextlib.nullcontext() if given.cpu else torch.cuda.stream(torch.cuda.Stream())
    with librepdl.context(threads=given.cpu or 0), stream:
        measure(given, device)


def measure(given, device) -> None:
    print(device if given.cpu else torch.cuda.get_device_name(), "PyTorch", torch.__version__, "librepdl", librepdl.__version__)
    context = librepdl.current_context(device)
    for dtype, peer in PEERS.items():
        for batch, heads, queries, keys, size in ON_CPU if given.cpu else SHAPES:
            for causal in (False, True):
                if causal and queries != keys:
                    continue
                name = f"{str(dtype)[6:]} {batch}x{heads}x{queries}x{size}" + (f" keys {keys}" if keys != queries else "") + (" causal" if causal else "")
                if given.only not in name:
                    continue
                torch.manual_seed(0)
                q = torch.randn(batch, heads, queries, size, device=device).to(dtype)
                k, v = (torch.randn(batch, heads, keys, size, device=device).to(dtype) for _ in range(2))
                measured = (backward if given.backward else forward)(q, k, v, causal, peer, given.dropout)
                if measured is None:
                    continue
                ours, theirs, is_same = measured
                ours(), theirs()
                context.reset_statistics()
                ours()
                decided = context.statistics()
                calls = [timed(call, q.is_cuda) for call in (ours, theirs)]
                a, b = (statistics.median(times) for times in zip(*([call() for call in calls] for _ in range(given.rounds))))
                of_copy = ""
                if queries < keys:
                    other = [torch.empty_like(x) for x in (k, v)]

                    def copy(other=other, k=k, v=v) -> None:
                        other[0].copy_(k), other[1].copy_(v)

                    copying = timed(copy, q.is_cuda)
                    of_copy = f"{statistics.median(copying() for _ in range(given.rounds)) / a:5.2f} of a copy's rate  "
                print(f"{name:44} {a:9.3f} {b:9.3f}  {a / b:6.2f} times  {of_copy}{decided}  {'same bits as the CPU' if is_same() else 'OTHER BITS THAN THE CPU'}", flush=True)


if __name__ == "__main__":
    main()
