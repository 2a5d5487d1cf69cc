#!/usr/bin/env python3
"""Norms on a GPU: microseconds of a call, of rows of several shapes and formats; with weights of the rows' format, and in float32.

    bench/cuda_norms.py [--against DIRECTORY] [--rounds N]

DIRECTORY: where another build's package librepdl is, and its librepdl_cuda.so. Then both take turns, each in a process of its own:
medians, and the ratio of new to old. Needs PyTorch.
"""
import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

SHAPES = ((64, 64), (16384, 256), (4096, 768), (8192, 4096), (2048, 8192), (64, 50257), (4, 1 << 20))


def calls() -> Iterator[tuple[str, int, Callable[[], object]]]:
    """(what it is, elements, the call), ..."""
    import torch

    import librepdl as r

    torch.manual_seed(0)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        for rows, length in SHAPES:
            x, g = (torch.randn(rows, length, device="cuda").to(dtype) for _ in range(2))
            weights = [torch.randn(length, device="cuda") for _ in range(2)]
            out = torch.empty_like(x)
            for of_weights in dict.fromkeys((dtype, torch.float32)):
                w, b = (v.to(of_weights) for v in weights)
                try:
                    _, mean, rstd = r.layer_norm(x, w, b, statistics=True)
                except NotImplementedError:  # a build of before they could differ
                    continue
                _, rstd_of_rms = r.rms_norm(x, 1e-6, w, statistics=True)
                name = f"{str(dtype)[6:]}{', weights float32' if of_weights != dtype else ''}, {rows} x {length}"
                yield f"layer_norm, {name}", x.numel(), lambda: r.layer_norm(x, w, b, out=out)
                yield f"rms_norm, {name}", x.numel(), lambda: r.rms_norm(x, 1e-6, w, out=out)
                yield f"layer_norm_backward, {name}", x.numel(), lambda: r.layer_norm_backward(g, x, mean, rstd, w, out=out)
                yield f"rms_norm_backward, {name}", x.numel(), lambda: r.rms_norm_backward(g, x, rstd_of_rms, w, out=out)


def measure() -> None:
    import torch

    for name, elements, call in calls():
        times = []
        for _ in range(9):
            count = 200 if elements < 100_000 else 20
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            call()
            start.record()
            for _ in range(count):
                call()
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) / count * 1e3)
        print(f"{name} | {statistics.median(times):.2f}", flush=True)


def run(site: str | None) -> dict[str, float]:
    environment = dict(os.environ)
    if site is not None:
        environment["PYTHONPATH"] = os.pathsep.join([site, *filter(None, [os.environ.get("PYTHONPATH")])])
        library = next(Path(site).rglob("librepdl_cuda.so"), None)
        environment |= {"REPDL_CUDA_LIBRARY": str(library)} if library else {}
    lines = subprocess.run([sys.executable, __file__, "--measure"], env=environment, check=True, capture_output=True, text=True).stdout
    return {name: float(time) for name, time in (line.split(" | ") for line in lines.splitlines())}


def main() -> None:
    parser = argparse.ArgumentParser(description="see the head of this file")
    parser.add_argument("--against")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure or args.against is None:
        return measure()
    rounds = [(run(None), run(args.against)) for _ in range(args.rounds)]
    print("| call | µs | before | ratio |\n|---|---:|---:|---:|")
    for name in rounds[0][0]:
        new = statistics.median(r[0][name] for r in rounds)
        if all(name in r[1] for r in rounds):
            old = statistics.median(r[1][name] for r in rounds)
            print(f"| {name} | {new:.2f} | {old:.2f} | {new / old:.3f} |")
        else:
            print(f"| {name} | {new:.2f} | | |")


main()
