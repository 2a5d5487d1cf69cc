#!/usr/bin/env python3
"""Optimiser steps and clipping over lists of tensors, by PyTorch and with librepdl, by turns in one process.

    bench/lists.py [--device cuda] [--rounds N] [--profile] [--only TEXT]

AdamW for lists (the default on a GPU), for single tensors, and fused, and clip_grad_norm_: over the 148 tensors of GPT-2 (124 million
parameters), and over 1000 tensors of 1000 numbers; f32. A table: milliseconds until all is done, and until the calls return (what the
host needs, where the device is slower); medians of the rounds. --profile: then also PyTorch's profile of a step with librepdl.
"""

import argparse
import statistics
import time

import torch

import librepdl.torch


def gpt2():
    width, layers = 768, 12
    block = [(width,), (width,), (3 * width, width), (3 * width,), (width, width), (width,), (width,), (width,),
             (4 * width, width), (4 * width,), (width, 4 * width), (width,)]
    return [(50257, width), (1024, width), *block * layers, (width,), (width,)]


LISTS = {"GPT-2, 148 tensors": gpt2(), "1000 tensors of 1000": [(1000,)] * 1000}


class Parameters:
    def __init__(self, shapes, device):
        self.all = [torch.nn.Parameter(0.02 * torch.randn(shape, device=device)) for shape in shapes]
        for p in self.all:
            p.grad = 0.01 * torch.randn_like(p)

    def works(self):
        for name, form in (("AdamW, foreach=True", {"foreach": True}), ("AdamW, foreach=False", {"foreach": False}), ("AdamW, fused=True", {"fused": True}),
                           ("SGD, momentum, foreach=True", {"momentum": 0.9, "foreach": True})):
            kind = torch.optim.SGD if "SGD" in name else torch.optim.AdamW
            yield name, kind(self.all, lr=1e-4, **form).step
        yield "clip_grad_norm_", lambda: torch.nn.utils.clip_grad_norm_(self.all, 1.0)


def timed(work, device, repeat):
    """Seconds: until the calls return, until all is done."""
    begin = time.perf_counter()
    for _ in range(repeat):
        work()
    returned = time.perf_counter()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return (returned - begin) / repeat, (time.perf_counter() - begin) / repeat


def profile(work, device):
    kinds = [torch.profiler.ProfilerActivity.CPU] + [torch.profiler.ProfilerActivity.CUDA] * device.startswith("cuda")
    with librepdl.torch.reproducible(), torch.profiler.profile(activities=kinds) as found:
        timed(work, device, 1)
    key = "self_cuda_time_total" if len(kinds) == 2 else "self_cpu_time_total"
    print(found.key_averages().table(sort_by=key, row_limit=20, max_name_column_width=60))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--repeat", type=int, default=5, help="calls of a round")
    parser.add_argument("--only", default="")
    parser.add_argument("--profile", action="store_true")
    o = parser.parse_args()
    print(f"PyTorch {torch.__version__}, {o.device}, {torch.get_num_threads()} threads: ms until done (until the calls return)\n")
    print("| | PyTorch | librepdl | ratio |\n|---|---|---|---|")
    for title, shapes in LISTS.items():
        for name, work in Parameters(shapes, o.device).works():
            if o.only not in f"{title}: {name}":
                continue
            times = {False: [], True: []}
            for turn in range(o.rounds + 1):
                for ours in (False, True):
                    if ours:
                        with librepdl.torch.reproducible():
                            got = timed(work, o.device, 1 if turn == 0 else o.repeat)
                    else:
                        got = timed(work, o.device, 1 if turn == 0 else o.repeat)
                    if turn > 0:
                        times[ours].append(got)
            returned, done = ([1e3 * statistics.median(t[k] for t in times[ours]) for ours in (False, True)] for k in (0, 1))
            print(f"| {title}: {name} | {done[0]:.2f} ({returned[0]:.2f}) | {done[1]:.2f} ({returned[1]:.2f}) | {done[1] / done[0]:.2f} |",
                  flush=True)
            if o.profile:
                profile(work, o.device)


if __name__ == "__main__":
    main()
