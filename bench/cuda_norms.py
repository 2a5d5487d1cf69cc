#!/usr/bin/env python3
"""Norms on a GPU: microseconds of a call, of rows of several shapes and formats; with weights of the rows' format, and in float32.

    bench/cuda_norms.py [--against DIRECTORY] [--rounds N]
    bench/cuda_norms.py --peers [--rounds N] [--only TEXT]

DIRECTORY: where another build's package librepdl is, and its librepdl_cuda.so. Then both take turns, each in a process of its own:
medians, and the ratio of new to old. Needs PyTorch.

--peers: the norms of networks in training, beside PyTorch's, by turns in one process: images with channels first and last, and the
gradients of layer_norm. Each time is that of a CUDA graph of 20 calls, so none of the host; the ratio is PyTorch's time over ours. Backward
makes the gradients to x, weight and bias. At the end whether the results are those of the CPU.
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


# ResNet-18's of 64 images of 32 x 32, and larger ones of ResNet-50.
IMAGES = ((64, 64, 32, 32), (64, 128, 16, 16), (64, 256, 8, 8), (64, 512, 4, 4), (64, 1024, 14, 14), (64, 256, 56, 56))
LAYERS = ((8192, 768), (16384, 256), (4096, 4096), (2048, 8192))


def peers() -> Iterator[tuple[str, Callable[[], object], Callable[[], object], Callable[[], bool]]]:
    """(what it is, our call, PyTorch's, whether ours gives the CPU's bits), ..."""
    import torch
    from torch.nn import functional as F

    import librepdl as r

    def on_cpu(*tensors):
        return (t.cpu() for t in tensors)

    def with_statistics(x, rows):
        return torch.empty_like(x), *(torch.empty(rows, device=x.device) for _ in range(2))

    def pair(name, forward, backward, cpu_forward, cpu_backward, theirs, x, w, b, g):
        asked = [t.detach().requires_grad_() for t in (x, w, b)]
        result = theirs(*asked)

        def is_same(gpu, cpu) -> bool:
            return all(torch.equal(u.cpu(), v) for u, v in zip(gpu(), cpu()))

        def their_forward() -> None:
            with torch.no_grad():
                theirs(x, w, b)

        yield f"{name} forward", forward, their_forward, lambda: is_same(forward, cpu_forward)
        yield (f"{name} backward", backward, lambda: torch.autograd.grad(result, asked, g, retain_graph=True),
               lambda: is_same(backward, cpu_backward))

    torch.manual_seed(0)
    for dtype, of_weights in ((torch.float32, torch.float32), (torch.bfloat16, torch.float32)):
        formats = str(dtype)[6:]
        for shape in IMAGES:
            for last in (False, True):
                layout = torch.channels_last if last else torch.contiguous_format
                x, g = (torch.randn(shape, device="cuda").to(dtype).contiguous(memory_format=layout) for _ in range(2))
                w, b = (torch.randn(shape[1], device="cuda").to(of_weights) for _ in range(2))
                name = f"{formats} {'x'.join(map(str, shape))}{' channels last' if last else ''}"

                # Results lie as x does.
                def batch(x=x, w=w, b=b):
                    return r.batch_norm(x, w, b, statistics=True, out=with_statistics(x, (x.shape[1],)))

                def group(x=x, w=w, b=b):
                    return r.group_norm(x, w, b, 32, statistics=True, out=with_statistics(x, (x.shape[0], 32)))

                def of_batch(g=g, x=x, mean=batch()[1], rstd=batch()[2], w=w):
                    h, y = (g, x) if w.dtype == x.dtype else (g.to(w.dtype), x.to(w.dtype))
                    return (r.batch_norm_backward(g, x, mean, rstd, w, out=torch.empty_like(x)),
                            r.batch_norm_weight_backward(h, y, mean, rstd), r.sum(h, axis=(0, 2, 3)))

                def of_group(g=g, x=x, mean=group()[1], rstd=group()[2], w=w):
                    h, y = (g, x) if w.dtype == x.dtype else (g.to(w.dtype), x.to(w.dtype))
                    return (r.group_norm_backward(g, x, mean, rstd, w, 32, out=torch.empty_like(x)),
                            r.group_norm_weight_backward(h, y, mean, rstd, 32), r.sum(h, axis=(0, 2, 3)))

                yield from pair(f"batch_norm {name}", batch, of_batch, lambda: batch(*on_cpu(x, w, b)),
                                lambda: of_batch(*on_cpu(g, x, *batch()[1:], w)),
                                lambda x, w, b: F.batch_norm(x, None, None, w, b, True), x, w, b, g)
                yield from pair(f"group_norm {name}", group, of_group, lambda: group(*on_cpu(x, w, b)),
                                lambda: of_group(*on_cpu(g, x, *group()[1:], w)),
                                lambda x, w, b: F.group_norm(x, 32, w, b), x, w.to(dtype), b.to(dtype), g)
        for shape in LAYERS:
            x, g = (torch.randn(shape, device="cuda").to(dtype) for _ in range(2))
            w, b = (torch.randn(shape[1], device="cuda").to(dtype) for _ in range(2))

            def layer(x=x, w=w, b=b):
                return r.layer_norm(x, w, b, statistics=True)

            def of_layer(g=g, x=x, mean=layer()[1], rstd=layer()[2], w=w):
                return (r.layer_norm_backward(g, x, mean, rstd, w), r.layer_norm_weight_backward(g, x, mean, rstd),
                        r.sum(g, axis=0))

            yield from pair(f"layer_norm {formats} {shape[0]}x{shape[1]}", layer, of_layer,
                            lambda: layer(*on_cpu(x, w, b)), lambda: of_layer(*on_cpu(g, x, *layer()[1:], w)),
                            lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), x, w, b, g)


def captured(call: Callable[[], object], count: int) -> Callable[[], float]:
    """Measures: microseconds of one of `count` calls that are a graph. On the current stream, which is not the default one."""
    import torch

    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        for _ in range(count):
            call()

    def time() -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / count * 1e3

    return time


def beside_peers(rounds: int, only: str) -> None:
    import torch

    import librepdl as r

    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, librepdl {r.__version__}\n")
    print("| call | µs | PyTorch | ratio | bits |\n|---|---:|---:|---:|---|")
    with torch.cuda.stream(torch.cuda.Stream()):  # gradients are computed on the stream of what they are the gradients of
        for name, ours, theirs, is_same in peers():
            if only not in name:
                continue
            measures = [captured(call, 20) for call in (ours, theirs)]
            times = [[measure() for measure in measures] for _ in range(rounds + 2)][2:]
            us, them = (statistics.median(of) for of in zip(*times))
            bits = "the CPU's" if is_same() else "**OTHERS**"
            print(f"| {name} | {us:.2f} | {them:.2f} | {them / us:.2f} | {bits} |", flush=True)


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
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peers:
        return beside_peers(args.rounds or 15, args.only)
    if args.measure or args.against is None:
        return measure()
    rounds = [(run(None), run(args.against)) for _ in range(args.rounds or 3)]
    print("| call | µs | before | ratio |\n|---|---:|---:|---:|")
    for name in rounds[0][0]:
        new = statistics.median(r[0][name] for r in rounds)
        if all(name in r[1] for r in rounds):
            old = statistics.median(r[1][name] for r in rounds)
            print(f"| {name} | {new:.2f} | {old:.2f} | {new / old:.3f} |")
        else:
            print(f"| {name} | {new:.2f} | | |")


if __name__ == "__main__":
    main()
