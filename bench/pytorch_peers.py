#!/usr/bin/env python3
"""librepdl's convolutions, softmax, norms, pooling, optimiser steps and sums to places on a GPU beside PyTorch's (cuDNN), in turns.

    bench/pytorch_peers.py REPDL_CUDA_BENCH [ROUNDS [conv2d | rows | pools | steps | places]]

Each round runs `repdl_cuda_bench network`, or those cells of it, and times the same ones in PyTorch: float32 without TF32, deterministic
algorithms, NCHW. Printed: medians over the rounds, and the ratio of the speeds (above 1: librepdl is faster).
"""
import re
import statistics
import subprocess
import sys

import torch
import torch.nn.functional as F

batch = 32


def milliseconds(call):
    for _ in range(3):
        call()
    times = []
    for _ in range(11):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(10):
            call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 10)
    return statistics.median(times)


def convolution(name):
    c, h, k, o, what = re.fullmatch(r"conv2d (\d+)x(\d+)x\d+ (\d+)x\d+ (\d+) exact (\w+)", name).groups()
    c, h, k, o = int(c), int(h), int(k), int(o)
    stride, pad = (2 if k == 7 else 1), k // 2
    x, w = torch.randn(batch, c, h, h, device="cuda"), torch.randn(o, c, k, k, device="cuda")
    y = F.conv2d(x, w, stride=stride, padding=pad)
    g = torch.randn_like(y)
    mask = {"grad_input": (True, False, False), "grad_weight": (False, True, False)}
    if what == "forward":
        return milliseconds(lambda: F.conv2d(x, w, stride=stride, padding=pad))
    return milliseconds(lambda: torch.ops.aten.convolution_backward(
        g, x, w, None, (stride, stride), (pad, pad), (1, 1), False, (0, 0), 1, mask[what]))


def rows(name):
    n, fmt, op = re.fullmatch(r"rows of ([\dx]+) (?:(f16|bf16) )?(\w+)", name).groups()
    t = {None: torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[fmt]
    if op.startswith(("group_norm", "batch_norm")):
        x = torch.randn(64, *map(int, n.split("x")), device="cuda")
        weight, bias = torch.randn(2, x.shape[1], device="cuda")
        if op == "group_norm":
            return milliseconds(lambda: F.group_norm(x, 32, weight, bias))
        if op == "batch_norm_inference_last":
            x = x.to(memory_format=torch.channels_last)
        mean, var = torch.zeros(x.shape[1], device="cuda"), torch.ones(x.shape[1], device="cuda")
        if op == "batch_norm_running":
            return milliseconds(lambda: F.batch_norm(x, mean, var, weight, bias, training=True))
        if op == "batch_norm_inference_backward":
            y, g = F.batch_norm(x.requires_grad_(), mean, var, weight, bias), torch.randn_like(x)
            return milliseconds(lambda: torch.autograd.grad(y, x, g, retain_graph=True))
        if op.startswith("batch_norm_inference"):
            return milliseconds(lambda: F.batch_norm(x, mean, var, weight, bias))
        return milliseconds(lambda: F.batch_norm(x, None, None, weight, bias, training=True))
    n = int(n)
    if op.startswith("cross_entropy"):
        x = torch.randn(8192, n, device="cuda", requires_grad=True)
        target = torch.arange(8192, device="cuda") * 7919 % n
        smoothing = 0.1 if "smoothed" in op else 0.0
        if not op.endswith("backward"):
            with torch.no_grad():
                return milliseconds(lambda: F.cross_entropy(x, target, label_smoothing=smoothing))
        loss = F.cross_entropy(x, target, label_smoothing=smoothing)
        return milliseconds(lambda: torch.autograd.grad(loss, x, retain_graph=True))
    x = torch.randn(2**28 // n, n, device="cuda").to(t)
    weight, bias = torch.randn(2, n, device="cuda").to(t)
    if op == "layer_norm":
        return milliseconds(lambda: F.layer_norm(x, (n,), weight, bias))
    if op.startswith("layer_norm"):
        _, mean, rstd = torch.ops.aten.native_layer_norm(x, (n,), weight, bias, 1e-5)
        g, to_x = torch.randn_like(x), op == "layer_norm_backward"
        return milliseconds(lambda: torch.ops.aten.native_layer_norm_backward(
            g, x, (n,), mean, rstd, weight, bias, (to_x, not to_x, False)))
    if op in ("var_mean", "stddev"):
        f = torch.var_mean if op == "var_mean" else torch.std
        return milliseconds(lambda: f(x, 1))
    if op == "rms_norm":
        return milliseconds(lambda: F.rms_norm(x, (n,), weight, 2**-23))
    if op == "rms_norm_backward":
        y = F.rms_norm(x.requires_grad_(), (n,), weight, 2**-23)
        g = torch.randn_like(y)
        return milliseconds(lambda: torch.autograd.grad(y, x, g, retain_graph=True))
    if op == "softmax":
        return milliseconds(lambda: torch.softmax(x, 1))
    if op == "log_softmax":
        return milliseconds(lambda: torch.log_softmax(x, 1))
    y = torch.softmax(x, 1)
    backward = torch.ops.aten._softmax_backward_data if op == "softmax_backward" else torch.ops.aten._log_softmax_backward_data
    return milliseconds(lambda: backward(x, y, 1, t))


def places(name):
    """By atomic additions in any order, which torch.use_deterministic_algorithms(True) refuses."""
    way, op = re.fullmatch(r"places (\w+) (\w+)", name).groups()
    n, rows, dim = 1000000, 10000, 64
    even = torch.arange(n, device="cuda") * 7919 % rows
    index = {"even": even, "crowded": even * even // rows * even // rows, "one": torch.full_like(even, 5)}[way]
    x, source = torch.randn(rows, dim, device="cuda"), torch.randn(n, dim, device="cuda")
    each = torch.randint(0, rows, (n, dim), device="cuda")
    torch.use_deterministic_algorithms(False)
    try:
        if op == "index_add":
            return milliseconds(lambda: x.index_add_(0, index, source))
        if op == "scatter_add":
            return milliseconds(lambda: x.scatter_add_(0, each, source))
        return milliseconds(lambda: torch.ops.aten.embedding_dense_backward(source, index, rows, -1, False))
    finally:
        torch.use_deterministic_algorithms(True)


def steps(name):
    """Fused. PyTorch's states have the parameters' format, so those of 16 bits move less than librepdl's."""
    t, op = re.fullmatch(r"steps (\w+) (\w+)", name).groups()
    p = torch.randn(2**26, device="cuda").to({"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[t])
    p.grad = torch.randn_like(p)
    if op == "sgd":
        return milliseconds(torch.optim.SGD([p], lr=1e-3, momentum=0.9, weight_decay=1e-4, fused=True).step)
    return milliseconds(torch.optim.AdamW([p], lr=1e-3, fused=True).step)


def pools(name):
    k, fmt, op = re.fullmatch(r"pools (\d)x\d (\w+) (\w+)", name).groups()
    k, t = int(k), {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[fmt]
    x = torch.randn(64, 64, 112, 112, device="cuda").to(t)
    g = torch.randn(64, 64, 56, 56, device="cuda").to(t)
    size, stride, pad = [k, k], [2, 2], [k - 2, k - 2]
    aten = torch.ops.aten
    if op == "avg_pool2d":
        return milliseconds(lambda: aten.avg_pool2d(x, size, stride, pad, False, False))
    if op == "avg_pool2d_backward":
        return milliseconds(lambda: aten.avg_pool2d_backward(g, x, size, stride, pad, False, False, None))
    if op == "max_pool2d":
        return milliseconds(lambda: aten.max_pool2d_with_indices(x, size, stride, pad))
    indices = aten.max_pool2d_with_indices(x, size, stride, pad)[1]
    torch.use_deterministic_algorithms(False)  # by atomic additions where windows overlap
    try:
        return milliseconds(lambda: aten.max_pool2d_with_indices_backward(g, x, size, stride, pad, [1, 1], False, indices))
    finally:
        torch.use_deterministic_algorithms(True)


def peer(name):
    peers = {"conv2d": convolution, "places": places, "steps": steps, "pools": pools}
    return peers.get(name.split()[0], rows)(name)


def main():
    bench, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    cells = "network" + (f" {sys.argv[3]}" if len(sys.argv) > 3 else "")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.deterministic = True
    ours, theirs, unit = {}, {}, {}
    for _ in range(rounds):
        text = subprocess.run([bench, cells], check=True, capture_output=True, text=True).stdout
        for name, ms, rate, what in re.findall(r"^network (.*?) +([0-9.]+) ms +([0-9.]+) (Tflop/s|GB/s)", text, re.M):
            ours.setdefault(name, []).append(float(ms))
            unit[name] = (float(ms) * float(rate), what)
        for name in ours:
            if "fma_chain" not in name:
                theirs.setdefault(name, []).append(peer(name))
                torch.cuda.empty_cache()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {rounds} rounds")
    for name, times in ours.items():
        work, what = unit[name]
        mine = work / statistics.median(times)
        line = f"{name:46} librepdl {mine:8.1f} {what}"
        if name in theirs:
            rate = work / statistics.median(theirs[name])
            line += f"   PyTorch {rate:8.1f}   ratio {mine / rate:.2f}"
        print(line)


main()
