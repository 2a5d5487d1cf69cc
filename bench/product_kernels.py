#!/usr/bin/env python3
"""Products on a GPU, kernel by kernel: those of a training step of GPT-2 (124 million parameters, 8192 tokens), and some of other formats and data.

    bench/product_kernels.py [--only TEXT]

Of each product microseconds of its kernels by PyTorch's profiler, the call with the least time of four; time in which two kernels run counts once, for the first. Then
the share of outputs that were open for the repair (decided by double-doubles or exactly), and a hash of the results. "fwd" is x W', "gx" g W, "gw" g' x.
"""
import argparse
import collections
from collections.abc import Callable, Iterator

import torch
from torch.autograd import DeviceType

import librepdl

ROWS, WIDTH = 8192, 768
KERNELS = ("squares", "planes", "residue", "repair", "tile", "thin")
Case = tuple[str, int, int, int, bool, bool, torch.dtype, str]  # name, rows, terms, columns, which are transposed, format, data


def cases() -> Iterator[Case]:
    f32, bf16, f16 = torch.float32, torch.bfloat16, torch.float16
    for n in (2304, 768, 3072, 50257):
        yield f"fwd 768->{n}", ROWS, WIDTH, n, False, True, f32, "normal"
        yield f"gx 768->{n}", ROWS, n, WIDTH, False, False, f32, "normal"
        yield f"gw 768->{n}", n, ROWS, WIDTH, True, False, f32, "normal"
    yield "fwd 3072->768", ROWS, 3072, WIDTH, False, True, f32, "normal"
    yield "gx 3072->768", ROWS, WIDTH, 3072, False, False, f32, "normal"
    yield "gw 3072->768", WIDTH, ROWS, 3072, True, False, f32, "normal"
    for dtype in (bf16, f16):
        yield "fwd 768->3072", ROWS, WIDTH, 3072, False, True, dtype, "normal"
        yield "gw 768->3072", 3072, ROWS, WIDTH, True, False, dtype, "normal"
    for data in ("cubes", "relu", "integers", "wide", "special"):
        yield "gx 768->3072", ROWS, 3072, WIDTH, False, False, f32, data
    for data in ("cubes", "relu"):
        yield "gw 768->3072", 3072, ROWS, WIDTH, True, False, f32, data


def numbers(shape: tuple[int, int], seed: int, dtype: torch.dtype, data: str) -> torch.Tensor:
    generator = torch.Generator(device="cuda").manual_seed(seed)
    x = torch.randn(shape, device="cuda", generator=generator)
    if data == "cubes":
        x = x**3
    elif data == "relu":
        x = x.clamp(min=0)
    elif data == "integers":
        x = (4 * x).round()
    elif data == "wide":
        x = x * torch.exp2(torch.randint(-40, 40, shape, device="cuda", generator=generator).float())
    elif data == "special":
        x[::97, ::101], x[5::1001, 7::1003] = float("inf"), float("nan")
        x[11] = x[:, 13] = 0
    return x.to(dtype)


def hash_of(x: torch.Tensor) -> str:
    h = 0
    for rows in x.view(torch.int16 if x.element_size() == 2 else torch.int32).split(512):
        bits = rows.reshape(-1).long()
        h = (h * 1000003 + int((bits * (torch.arange(bits.numel(), device="cuda") % 65521 + 1)).sum())) % (1 << 61)
    return f"{h:016x}"


def kernels_of(call: Callable[[], object]) -> collections.Counter:
    """Microseconds that each kernel adds to a call."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    spans = sorted((e.time_range.start, e.time_range.end, e.name) for e in profile.events() if e.device_type == DeviceType.CUDA)
    added, done = collections.Counter(), spans[0][0]
    for start, end, name in spans:
        added[next((k for k in KERNELS if f"{k}_kernel" in name), "other")] += max(0, end - max(done, start))
        done = max(done, end)
    return added


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, "librepdl", librepdl.__version__)
    all_of_f32 = collections.Counter()
    for name, m, k, n, first, second, dtype, data in cases():
        label = f"{name} {str(dtype)[6:]} {data}"
        if given.only not in label:
            continue
        a = numbers((k, m) if first else (m, k), 1, dtype, data)
        b = numbers((n, k) if second else (k, n), 2, dtype, data)
        if data == "normal":
            b = (b * 0.02).to(dtype)
        out = torch.empty((m, n), device="cuda", dtype=dtype)

        def call(a=a, b=b, first=first, second=second, out=out) -> None:
            librepdl.matmul(a, b, transpose_a=first, transpose_b=second, out=out)

        with librepdl.context(device="cuda:0") as context:
            call()
            context.synchronize()
            decided = context.statistics()
        call(), call()
        torch.cuda.synchronize()
        times = min((kernels_of(call) for _ in range(4)), key=lambda t: t.total())
        if dtype == torch.float32 and data == "normal":
            all_of_f32.update(times)
        opened = (decided["double_double"] + decided["exact"]) / (m * n)
        print(f"{label:30} " + " ".join(f"{x} {times[x]:7.1f}" for x in KERNELS if times[x]) + f"  open {opened:.1e}  {hash_of(out)}", flush=True)
    print("all of f32, normal: " + " ".join(f"{x} {t:.0f}" for x, t in all_of_f32.items()))


if __name__ == "__main__":
    main()
