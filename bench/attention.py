"""Attention on a GPU beside PyTorch's: the memory-efficient kernel of f32, flash attention of 16 bits.

    python3 bench/attention.py [--rounds 15] [--only TEXT]

For each shape (batch x heads x queries x head size, as many keys unless it says so) milliseconds, medians of the rounds, by turns in one run, and their ratio; how
many of the results binary64 decided; and whether a few queries have the bits that the CPU gives them.
"""

import argparse
import statistics

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import librepdl

SHAPES = [(8, 12, 1024, 1024, 64), (4, 16, 4096, 4096, 64), (2, 16, 4096, 4096, 128), (8, 16, 512, 512, 64), (64, 12, 128, 128, 64),
          (16, 16, 1, 32768, 128), (16, 16, 1, 32768, 64), (1, 8, 8, 32768, 64)]
PEERS = {torch.float32: SDPBackend.EFFICIENT_ATTENTION, torch.bfloat16: SDPBackend.FLASH_ATTENTION, torch.float16: SDPBackend.FLASH_ATTENTION}


def milliseconds(call) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, "librepdl", librepdl.__version__)
    context = librepdl.current_context("cuda")
    for dtype, peer in PEERS.items():
        for batch, heads, queries, keys, size in SHAPES:
            for causal in (False, True):
                if causal and queries != keys:
                    continue
                name = f"{str(dtype)[6:]} {batch}x{heads}x{queries}x{size}" + (f" keys {keys}" if keys != queries else "") + (" causal" if causal else "")
                if given.only not in name:
                    continue
                torch.manual_seed(0)
                q = torch.randn(batch, heads, queries, size, device="cuda").to(dtype)
                k, v = (torch.randn(batch, heads, keys, size, device="cuda").to(dtype) for _ in range(2))
                out = torch.empty_like(q)

                def ours() -> None:
                    librepdl.attention(q, k, v, causal=causal, out=out)

                def theirs() -> None:
                    with sdpa_kernel(peer):
                        F.scaled_dot_product_attention(q, k, v, is_causal=causal)

                for warm_up in (ours, theirs, ours, theirs):
                    warm_up()
                context.reset_statistics()
                ours()
                decided = context.statistics()
                rounds = [(milliseconds(ours), milliseconds(theirs)) for _ in range(given.rounds)]
                a, b = (statistics.median(times) for times in zip(*rounds))
                few = librepdl.attention(q[:1, :1, -3:].cpu(), k[:1, :1].cpu(), v[:1, :1].cpu(), causal=causal, bottom_right=True)
                same = torch.equal(few, out[:1, :1, -3:].cpu())
                print(f"{name:44} {a:9.3f} {b:9.3f}  {a / b:6.2f} times  {decided}  {'same bits as the CPU' if same else 'OTHER BITS THAN THE CPU'}", flush=True)


if __name__ == "__main__":
    main()
