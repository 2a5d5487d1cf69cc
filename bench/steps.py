#!/usr/bin/env python3
"""Steps of training, and of decoding, by PyTorch and with librepdl, by turns: medians of the rounds, in milliseconds, and their ratio.

    bench/steps.py MODEL ... [--device cuda] [--threads N] [--rounds N] [--dropout P] [--graph] [--operations] [--kernels]

    gpt2          GPT-2 (A. Radford et al., 2019; 124 million parameters), 8 x 1024 tokens, f32, AdamW
    llama         a small Llama (H. Touvron et al., 2023): 8 layers, 1024 wide, 16 heads on 4, 4 x 1024 tokens, bf16 by autocast, AdamW
    decode1       the same in bf16, a token of 1 or 8 sequences behind a cache of 1024
    decode8
    resnet32      ResNet-18 (K. He et al., 2016), 64 images of 32 x 32, f32, SGD with momentum; channels first and last
    resnet32last
    resnet224     the same of 224 x 224, behind the stem of that size
    resnet224last
    lenet         LeNet-5 (Y. LeCun et al., 1998), 50 images of 32 x 32, f32, SGD with momentum

PyTorch's convolutions are those in f32, not TF32. --graph: both as a CUDA graph, so without the time that the host takes between launches, and without the
optimiser. --operations: then also what PyTorch's profiler says of one step with librepdl, operation by operation. --kernels: the same of kernels, of both: what
each adds to the time line, as kernels may begin while others run.
"""

import argparse
import collections
import contextlib
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

import librepdl.torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples" / "pytorch"))


class GPT2(nn.Module):
    class Block(nn.Module):
        def __init__(self, width: int, heads: int, dropout: float) -> None:
            super().__init__()
            self.heads, self.dropout = heads, dropout
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            batch, length, width = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=True)
            x = x + F.dropout(self.proj(y.transpose(1, 2).reshape(x.shape)), self.dropout)
            return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")), self.dropout)

    def __init__(self, vocabulary: int, length: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(self.Block(width, width // 64, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        x = F.dropout(x, self.dropout)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.words.weight.t()


class Llama(nn.Module):
    class Block(nn.Module):
        def __init__(self, width: int, heads: int, key_heads: int) -> None:
            super().__init__()
            self.size = width // heads
            self.norm1, self.norm2 = nn.RMSNorm(width, 1e-5), nn.RMSNorm(width, 1e-5)
            self.q, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
            self.k, self.v = (nn.Linear(width, key_heads * self.size, bias=False) for _ in range(2))
            inner = width * 11 // 4
            self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
            self.down = nn.Linear(inner, width, bias=False)

        def forward(self, x: torch.Tensor, table: tuple[torch.Tensor, torch.Tensor], cache: list[torch.Tensor] | None) -> torch.Tensor:
            def heads(linear: nn.Linear) -> torch.Tensor:
                return linear(n).unflatten(-1, (-1, self.size)).transpose(1, 2)

            def rotated(t: torch.Tensor) -> torch.Tensor:
                cos, sin = table
                first, second = t.chunk(2, -1)
                return t * cos + torch.cat((-second, first), -1) * sin

            n = self.norm1(x)
            q, k, v = rotated(heads(self.q)), rotated(heads(self.k)), heads(self.v)
            if cache is not None:
                k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None, enable_gqa=True)
            x = x + self.out(y.transpose(1, 2).flatten(2))
            n = self.norm2(x)
            return x + self.down(F.silu(self.gate(n)) * self.up(n))

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, key_heads: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(self.Block(width, heads, key_heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width, 1e-5)
        self.classify = nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("rates", 10000.0 ** (-torch.arange(0, width // heads, 2).float() / (width // heads)))

    def forward(self, tokens: torch.Tensor, first: int = 0, cache: list[list[torch.Tensor]] | None = None) -> torch.Tensor:
        x = self.words(tokens)
        angles = torch.arange(first, first + tokens.shape[1], device=tokens.device)[:, None] * self.rates.float()
        angles = torch.cat((angles, angles), -1)
        table = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for i, block in enumerate(self.blocks):
            x = block(x, table, cache[i] if cache else None)
        return self.classify(self.norm(x))


def training(o: argparse.Namespace, model: nn.Module, optimiser: torch.optim.Optimizer, x: torch.Tensor, labels: torch.Tensor,
             autocast: bool = False) -> Callable[[], None]:
    def step() -> None:
        optimiser.zero_grad()
        with torch.autocast(x.device.type, torch.bfloat16, enabled=autocast):
            loss = F.cross_entropy(model(x).flatten(0, -2), labels.flatten())
        loss.backward()
        if not o.graph:
            optimiser.step()

    return step


def gpt2(o: argparse.Namespace) -> Callable[[], None]:
    model = GPT2(50257, 1024, 768, 12, o.dropout).to(o.device)
    tokens = torch.randint(50257, (8, 1025), device=o.device)
    return training(o, model, torch.optim.AdamW(model.parameters(), lr=1e-4), tokens[:, :-1], tokens[:, 1:])


def llama(o: argparse.Namespace) -> Callable[[], None]:
    model = Llama(32000, 1024, 8, 16, 4).to(o.device)
    tokens = torch.randint(32000, (4, 1025), device=o.device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
    return training(o, model, optimiser, tokens[:, :-1], tokens[:, 1:], autocast=True)


def decoding(batch: int) -> Callable[[argparse.Namespace], Callable[[], None]]:
    def make(o: argparse.Namespace) -> Callable[[], None]:
        model = Llama(32000, 1024, 8, 16, 4).to(o.device, torch.bfloat16)
        cache = [[torch.randn(batch, 4, 1024, 64, device=o.device).bfloat16() for _ in range(2)] for _ in model.blocks]
        token = torch.randint(32000, (batch, 1), device=o.device)

        @torch.inference_mode()
        def step() -> None:
            model(token, 1024, cache)[:, -1].argmax(-1)

        return step

    return make


def resnet(size: int, last: bool) -> Callable[[argparse.Namespace], Callable[[], None]]:
    def make(o: argparse.Namespace) -> Callable[[], None]:
        from resnet18 import ResNet18

        model = ResNet18(classes=1000 if size > 32 else 10)
        if size > 32:
            model.layers[0] = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False))
            model.layers[2] = nn.Sequential(nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        layout = torch.channels_last if last else torch.contiguous_format
        model = model.to(o.device, memory_format=layout)
        x = torch.randn(64, 3, size, size, device=o.device).contiguous(memory_format=layout)
        labels = torch.randint(10, (64,), device=o.device)
        return training(o, model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4), x, labels)

    return make


def lenet(o: argparse.Namespace) -> Callable[[], None]:
    from lenet import LeNet

    model = LeNet().to(o.device)
    x, labels = torch.rand(50, 1, 32, 32, device=o.device), torch.randint(10, (50,), device=o.device)
    return training(o, model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), x, labels)


MODELS = {"gpt2": gpt2, "llama": llama, "decode1": decoding(1), "decode8": decoding(8), "resnet32": resnet(32, False),
          "resnet32last": resnet(32, True), "resnet224": resnet(224, False), "resnet224last": resnet(224, True), "lenet": lenet}


def synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def captured(step: Callable[[], None]) -> Callable[[], None]:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def print_kernels(title: str, step: Callable[[], None]) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    spans = sorted((e.time_range.start, e.time_range.end, e.name) for e in profile.events()
                   if e.device_type == torch.autograd.DeviceType.CUDA)
    added, count = collections.Counter(), collections.Counter()
    last = spans[0][0]
    for start, end, name in spans:
        short = name.replace("repdl::cuda::", "").replace("(anonymous namespace)::", "").removeprefix("void ")[:90]
        added[short] += max(0, end - max(last, start))
        count[short] += 1
        last = max(last, end)
    print(f"{title}: {len(spans)} kernels, {(last - spans[0][0]) / 1e3:.2f} ms, {sum(added.values()) / 1e3:.2f} ms with a kernel")
    for name, time_of in added.most_common(25):
        print(f"  {time_of:10.1f} us x{count[name]:4d}  {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", choices=MODELS, metavar="MODEL")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--operations", action="store_true")
    parser.add_argument("--kernels", action="store_true")
    given = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False
    if given.threads:
        torch.set_num_threads(given.threads)
    for name in given.models:
        measure(name, given)


def measure(name: str, given: argparse.Namespace) -> None:
    plainly, exactly = contextlib.nullcontext, librepdl.torch.reproducible
    steps = []
    for around in (plainly, exactly):
        torch.manual_seed(0)
        with around():
            step = MODELS[name](given)
            steps.append((around, captured(step) if given.graph else step))

    def milliseconds(which: int) -> float:
        around, step = steps[which]
        with around():
            begin = time.perf_counter()
            step()
            synchronize(given.device)
            return 1e3 * (time.perf_counter() - begin)

    for _ in range(3):
        milliseconds(0), milliseconds(1)
    rounds = [(milliseconds(0), milliseconds(1)) for _ in range(given.rounds)]
    plain, exact = (statistics.median(times) for times in zip(*rounds))
    where = f"{given.device}{', graph' if given.graph else ''}{f', {given.threads} threads' if given.threads else ''}"
    print(f"{name}, {where}: PyTorch {plain:.2f} ms, librepdl {exact:.2f} ms, {exact / plain:.2f} times", flush=True)
    if given.kernels:
        for which, title in enumerate(("PyTorch", "librepdl")):
            around, step = steps[which]
            with around():
                print_kernels(title, step)
    if given.operations:
        kinds = [torch.profiler.ProfilerActivity.CPU] + [torch.profiler.ProfilerActivity.CUDA] * given.device.startswith("cuda")
        with torch.profiler.profile(activities=kinds) as profile:
            milliseconds(1)
        key = "self_cuda_time_total" if len(kinds) == 2 else "self_cpu_time_total"
        print(profile.key_averages().table(sort_by=key, row_limit=30, max_name_column_width=60))


if __name__ == "__main__":
    main()
