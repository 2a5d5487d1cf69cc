#!/usr/bin/env python3
"""The table "What it costs" of README.md, from the newest records in bench/results that have its figures.

    tools/readme_costs.py           exits with 1 and a message when the README has another table
    tools/readme_costs.py --write   puts it there

A figure is a line of a record, found by a regular expression; its groups are the numbers. The newest record that has such a line
counts, and the cell links to it.
"""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
CPU, GPU = "*-cpu-*.md", "*-nvidia-*.md"


def figures(kind, patterns):
    """Of the newest record that has all patterns: its path, and the groups of each."""
    for record in sorted((root / "bench/results").glob(kind), reverse=True):
        text = record.read_text()
        found = [re.search(pattern, text, re.M) for pattern in patterns]
        if all(found):
            return record, [float(number) for match in found for number in match.groups()]
    sys.exit(f"readme_costs: no record {kind} has {patterns}")


def cell(kind, text, *patterns):
    """`text`, a format of the figures, as a link to their record; no patterns: an empty cell."""
    if not patterns:
        return ""
    record, numbers = figures(kind, patterns)
    short = [f"{number:.2f}".removeprefix("0") for number in numbers]
    return f"[{text.format(*short)}]({record.relative_to(root)})"


def speed_of_loop():
    record, (ours, peer) = figures(CPU, [r"^sum/avx512/67108864 ([\d.]+)", r"^sum/peer-Ofast/67108864 ([\d.]+)"])
    return f"[{peer / ours:.2f} of a plain `-Ofast` loop]({record.relative_to(root)})"


def convolution(name, cpu, gpu):
    parts = ("forward", "grad_input", "grad_weight")
    return (name,
            cell(CPU, "{}, {}, {} of oneDNN", *[rf"^conv2d/exact/avx512/{p}/{cpu} +[\d.]+ +([\d.]+)" for p in parts]),
            cell(GPU, "{}, {}, {} of cuDNN", *[rf"^conv2d {gpu} exact {p} .*ratio ([\d.]+)" for p in parts]))


def rows(operation):
    return (f"{operation}, rows of 1024 (32768 on the GPU)",
            cell(CPU, "{}, {}, {} of a copy, two threads, three runs", rf"(?<!_){operation}\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)[,;]"),
            cell(GPU, "{} ({}) of PyTorch", rf"^\| 1024 {operation} \|.*\| ([\d.]+) \|$", rf"^\| 32768 {operation} \|.*\| ([\d.]+) \|$"))


def gemm(shape, kind="exact"):
    return rf"^matmul/{kind}/avx512/{shape}/manual_time .*of_sgemm=([\d.]+)"


def sgemm(shape, kind="normal"):
    return rf"^matmul {shape} {kind} .*ratio to sgemm ([\d.]+)"


def table():
    yield "", "CPU, one thread", "GPU"
    yield "---", "---", "---"
    yield ("exp, log, tanh, f32, in cache",
           cell(CPU, "{}, {}, {} ns an element", *[rf"^{f}/cache/avx512 ([\d.]+)" for f in ("exp", "log", "tanh")]) + "; "
           + cell(CPU, "{}, {}, {} for glibc's (4 ulp)",
                  *[rf"^{f}/cache/peer-libmvec ([\d.]+)" for f in ("exp", "log", "tanh")]),
           cell(GPU, "{}, {}, {} of the speed of a copy", *[rf"^\| {f} \| ([\d.]+) \|" for f in ("exp", "log", "tanh")]))
    yield "sum of numbers in memory", speed_of_loop(), cell(GPU, "{} of CUB", r"^\| sum \| .*\| ([\d.]+) \|$")
    yield "sum of 16384 numbers in cache", cell(CPU, "{} of a plain `-Ofast` loop", r"^\| sum, AVX-512 \| [.\d]+ \| ([.\d]+)"), ""
    yield ("matmul 1024³ (4096³)", cell(CPU, "{} of OpenBLAS", gemm("1024x1024x1024")),
           cell(GPU, "{} ({}) of cuBLAS", sgemm("1024x1024x1024"), sgemm("4096x4096x4096")))
    yield ("matmul 64³ (512³ on the GPU)", cell(CPU, "{} of OpenBLAS", gemm("64x64x64")),
           cell(GPU, "{} of cuBLAS", sgemm("512x512x512")))
    yield ("matmul, `fma_chain`, 1024³ (4096³ on the GPU)", cell(CPU, "{} of OpenBLAS", gemm("1024x1024x1024", "fma_chain")),
           cell(GPU, "{} of cuBLAS", sgemm("4096x4096x4096", "fma_chain")))
    yield "matmul 1024³, every output cancels totally", "", cell(GPU, "{} of cuBLAS", sgemm("1024x1024x1024", "all cancel"))
    yield convolution("convolution 3x3, 64 channels, 56x56: forward, gradients of input and weight", "64x56x56,k3,s1,o64", "64x56x56 3x3 64")
    yield convolution("convolution 3x3, 256 channels, 14x14", "256x14x14,k3,s1,o256", "256x14x14 3x3 256")
    yield convolution("convolution 7x7, 3 channels, 224x224, stride 2", "3x224x224,k7,s2,o64", "3x224x224 7x7 64")
    for operation in ("softmax", "log_softmax", "layer_norm", "rms_norm"):
        yield rows(operation)
    yield ("index_add, 10^6 rows of 64 into 10^4", "", cell(GPU, "{} of PyTorch's atomic additions", r"^\| index_add, even \|.*\| ([\d.]+) \|$"))
    yield ("a training step with PyTorch: LeNet-5", cell(CPU, "{} times PyTorch's time", r"^\| LeNet-5 \|.*\| ([\d.]+) \|$"),
           cell(GPU, "{} times PyTorch's time", r"^\| LeNet-5, \d+ images \|.*\| ([\d.]+) \|$"))
    yield ("ResNet-18, 64 images; GPT-2 124M, 8 x 1024 tokens, f32", "",
           cell(GPU, "{}; {} times PyTorch's time", r"^\| ResNet-18, .*?\| [\d.]+ \| [\d.]+ \| ([\d.]+)",
                r"^\| GPT-2 .*?\| [\d.]+ \| [\d.]+ \| ([\d.]+)"))


def main():
    readme = root / "README.md"
    text = readme.read_text()
    begin, end = "<!-- costs:begin -->\n", "<!-- costs:end -->"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    written = before + begin + "".join(f"| {a} | {b} | {c} |\n" for a, b, c in table()) + end + after
    if "--write" in sys.argv[1:]:
        readme.write_text(written)
    elif text != written:
        sys.exit("README.md: the costs are not those of the newest records: run tools/readme_costs.py --write")


main()
