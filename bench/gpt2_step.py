"""A training step of GPT-2 (A. Radford et al., 2019; 124 million parameters, 8 x 1024 tokens) by PyTorch and with librepdl, by turns.

    python3 bench/gpt2_step.py [--device cuda] [--batch 8] [--length 1024] [--layers 12] [--width 768] [--rounds 9] [--operations]

Prints the medians of the rounds, in milliseconds, and their ratio. --operations: then also what PyTorch's profiler says of one step with librepdl, operation by
operation.
"""

import argparse
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

import librepdl.torch


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


class GPT2(nn.Module):
    def __init__(self, vocabulary: int, length: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, width // 64, dropout) for _ in range(layers))
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name, default in (("batch", 8), ("length", 1024), ("layers", 12), ("width", 768), ("vocabulary", 50257), ("rounds", 9)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--operations", action="store_true")
    given = parser.parse_args()

    torch.manual_seed(0)
    model = GPT2(given.vocabulary, given.length, given.width, given.layers, given.dropout).to(given.device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(given.vocabulary, (given.batch, given.length + 1), device=given.device)

    def step() -> None:
        optimiser.zero_grad()
        logits = model(tokens[:, :-1])
        F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimiser.step()

    def milliseconds() -> float:
        begin = time.perf_counter()
        step()
        if given.device.startswith("cuda"):
            torch.cuda.synchronize()
        return 1e3 * (time.perf_counter() - begin)

    def ours() -> float:
        with librepdl.torch.reproducible():
            return milliseconds()

    for warm_up in (milliseconds, ours, milliseconds, ours):
        warm_up()
    rounds = [(milliseconds(), ours()) for _ in range(given.rounds)]
    plain, exact = (statistics.median(times) for times in zip(*rounds))
    print(f"GPT-2, {sum(p.numel() for p in model.parameters()) / 1e6:.0f} M parameters, {given.batch} x {given.length}, f32, {given.device}: "
          f"PyTorch {plain:.1f} ms, librepdl {exact:.1f} ms, {exact / plain:.2f} times")
    if given.operations:
        kinds = [torch.profiler.ProfilerActivity.CPU] + [torch.profiler.ProfilerActivity.CUDA] * given.device.startswith("cuda")
        with librepdl.torch.reproducible(), torch.profiler.profile(activities=kinds) as profile:
            milliseconds()
        key = "self_cuda_time_total" if len(kinds) == 2 else "self_cpu_time_total"
        print(profile.key_averages().table(sort_by=key, row_limit=30, max_name_column_width=60))


if __name__ == "__main__":
    main()
