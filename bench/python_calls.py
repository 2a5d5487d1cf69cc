#!/usr/bin/env python3
"""What a call from Python costs, next to NumPy's and PyTorch's.

    bench/python_calls.py

Nanoseconds a call, medians of 15 rounds in which both take turns, and the median of the rounds' ratios.
"""
import statistics
import timeit

import numpy as np

import librepdl

ROUNDS, CALLS = 15, 20000


def compare(name, ours, peer, calls=CALLS):
    times = [(timeit.timeit(ours, number=calls) / calls, timeit.timeit(peer, number=calls) / calls) for _ in range(ROUNDS)]
    mine, theirs = (statistics.median(t[i] for t in times) * 1e9 for i in (0, 1))
    print(f"{name:36} {mine:10.0f} ns   peer {theirs:10.0f} ns   ratio {statistics.median(a / b for a, b in times):.2f}", flush=True)


def main():
    x, out = np.ones(1, np.float32), np.ones(1, np.float32)
    compare("exp, 1 element", lambda: librepdl.exp(x), lambda: np.exp(x))
    compare("exp, 1 element, out=", lambda: librepdl.exp(x, out=out), lambda: np.exp(x, out=out))
    compare("add, 1 element", lambda: librepdl.add(x, x), lambda: np.add(x, x))
    compare("sum, 1 element", lambda: librepdl.sum(x), lambda: np.sum(x))
    try:
        import torch
    except ImportError:
        torch = None
    if torch is not None:
        t = torch.ones(1)
        compare("exp, 1 element, torch", lambda: librepdl.exp(t), lambda: torch.exp(t))
        compare("add, 1 element, torch", lambda: librepdl.add(t, t), lambda: torch.add(t, t))
    if torch is not None and torch.cuda.is_available():
        g = torch.ones(1, device="cuda")
        for name, ours, peer in (("exp", lambda: librepdl.exp(g), lambda: torch.exp(g)),
                                 ("add", lambda: librepdl.add(g, g), lambda: torch.add(g, g)),
                                 ("sum", lambda: librepdl.sum(g), lambda: torch.sum(g))):
            compare(f"{name}, 1 element, torch on a GPU", ours, peer, calls=5000)  # launching; the GPU keeps up or not
            torch.cuda.synchronize()
    # What Python adds: the same call in C++, validated and planned beforehand.
    a, b = librepdl.random.Generator(1).normal((512, 512)), librepdl.random.Generator(2).normal((512, 512))
    c = np.empty((512, 512), np.float32)
    prepared = librepdl.prepare(lambda: librepdl.matmul(a, b, out=c))
    compare("matmul 512, against a prepared call", lambda: librepdl.matmul(a, b, out=c), prepared.run, calls=20)


main()
