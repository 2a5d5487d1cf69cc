#!/usr/bin/env python3
"""PyTorch with librepdl against plain PyTorch, by turns in one process: calls on small tensors, a training step of LeNet-5.

    bench/torch_calls.py [--device cuda] [--rounds N] [--breakdown] [calls] [lenet] [resnet18] [gpt2]

A table: microseconds (steps: milliseconds) of plain PyTorch and with librepdl, medians of the rounds, and the median ratio.
--breakdown: of a step, the operations that take the most time, on the device. gpt2, of 124 million parameters, needs transformers.
"""

import argparse
import pathlib
import statistics
import sys
import time

import torch
from torch.nn import functional as F

import librepdl.torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "examples" / "pytorch"))


def calls(device):
    x, y, z = (torch.randn(4, device=device) for _ in range(3))
    m, w, p = torch.randn(4, 4, device=device), torch.ones(4, device=device), torch.rand(4, device=device) + 1
    return {"neg(x)": lambda: torch.neg(x), "x + y": lambda: x + y, "x * 0.3": lambda: x * 0.3, "m + y": lambda: m + y,
            "x.add_(y, alpha=-0.1)": lambda: z.add_(y, alpha=-0.1), "x.mul_(0.999)": lambda: z.mul_(0.999), "exp(x)": lambda: torch.exp(x),
            "relu(x)": lambda: torch.relu(x), "sqrt(x)": lambda: torch.sqrt(p),
            "x.addcmul_(y, z, value=0.1)": lambda: z.addcmul_(x, y, value=0.1), "x.lerp_(y, 0.1)": lambda: z.lerp_(x, 0.1),
            "x.sum()": lambda: x.sum(), "m @ m": lambda: m @ m, "linear(m, m, y)": lambda: F.linear(m, m, y),
            "softmax(x)": lambda: torch.softmax(x, 0), "layer_norm(m)": lambda: F.layer_norm(m, (4,), w, y), "x.clone()": lambda: x.clone(),
            "x.to(bfloat16)": lambda: x.to(torch.bfloat16)}


def step_of(model, x, y, device):
    model = model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def lenet(device):
    from lenet import LeNet

    return step_of(LeNet(), torch.rand(32, 1, 32, 32, device=device), torch.randint(0, 10, (32,), device=device), device)


def resnet18(device):
    from resnet18 import ResNet18

    return step_of(ResNet18(), torch.rand(64, 3, 32, 32, device=device), torch.randint(0, 10, (64,), device=device), device)


def gpt2(device):
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 50257, (8, 1024), device=device)

    def step():
        optimizer.zero_grad()
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()

    return step


def breakdown(title, f, device):
    """Milliseconds of each aten operation's own kernels in one step, plain and with librepdl."""
    def profiled():
        f()
        activity = torch.profiler.ProfilerActivity
        with torch.profiler.profile(activities=[activity.CPU] + ([activity.CUDA] if device != "cpu" else [])) as p:
            f()
            if device != "cpu":
                torch.cuda.synchronize()
        own = "self_device_time_total" if device != "cpu" else "self_cpu_time_total"
        return {e.key: getattr(e, own) / 1e3 for e in p.key_averages() if e.key.startswith("aten::")}

    plain = profiled()
    with librepdl.torch.reproducible():
        ours = profiled()
    print(f"\n| {title}: operation, ms | plain | librepdl |\n|---|---|---|")
    for key in sorted(set(plain) | set(ours), key=lambda k: -ours.get(k, 0))[:14]:
        print(f"| {key} | {plain.get(key, 0):.2f} | {ours.get(key, 0):.2f} |", flush=True)


def seconds(f, count, device):
    f()
    if device != "cpu":
        torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(count):
        f()
    if device != "cpu":
        torch.cuda.synchronize()
    return (time.perf_counter() - began) / count


def table(title, functions, count, rounds, unit, device):
    plain, ours = {name: [] for name in functions}, {name: [] for name in functions}
    for _ in range(rounds):
        for name, f in functions.items():
            plain[name].append(seconds(f, count, device))
        with librepdl.torch.reproducible():
            for name, f in functions.items():
                ours[name].append(seconds(f, count, device))
    print(f"\n| {title} | plain | librepdl | ratio |\n|---|---|---|---|")
    for name in functions:
        ratio = statistics.median(b / a for a, b in zip(plain[name], ours[name]))
        print(f"| {name} | {statistics.median(plain[name]) * unit:.2f} | {statistics.median(ours[name]) * unit:.2f} | {ratio:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[[], "calls", "lenet", "resnet18", "gpt2"], default=[])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--breakdown", action="store_true")
    o = parser.parse_args()
    what = o.what or ["calls", "lenet"]
    torch.set_num_threads(1)
    name = torch.cuda.get_device_name() if o.device != "cpu" else "one thread"
    print(f"PyTorch {torch.__version__}, librepdl {librepdl.__version__}, {o.device}: {name}")
    if "calls" in what:
        table("calls, us", calls(o.device), 2000, o.rounds, 1e6, o.device)
    steps = {"lenet": ("step of 32 images, ms", "LeNet-5", lenet, 50), "resnet18": ("step of 64 images of 32 x 32, ms", "ResNet-18", resnet18, 5),
             "gpt2": ("step of 8 x 1024 tokens, ms", "GPT-2", gpt2, 1)}
    for name, (title, model, make, count) in steps.items():
        if name in what:
            step = make(o.device)
            table(title, {model: step}, count, o.rounds, 1e3, o.device)
            if o.breakdown:
                breakdown(model, step, o.device)


if __name__ == "__main__":
    main()
