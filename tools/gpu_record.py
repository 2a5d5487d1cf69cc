#!/usr/bin/env python3
"""Runs librepdl's programs on this machine's GPU and records what came out.

    tools/gpu_record.py --build BUILD_DIR | --bin DIR  [--out DIR] [--only STEP,...]

Writes OUT/DATE-DEVICE.md: commit, device, driver, compiler, each command with its status, time and output; and the GPU's
benchmarks as figures and a drawing in OUT/cuda-bench. Started in the root of the sources. Exit status 1 when a command failed or the GPU was not used.
"""
import argparse
import datetime
import importlib.util
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys
import time

longest = 400  # lines of output kept per command


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return ""


def commit():
    file = pathlib.Path("COMMIT")
    if file.exists():
        return ", ".join(file.read_text().split("\n")).strip(", ")
    dirty = ", with uncommitted changes" if output("git", "status", "--porcelain") else ""
    return (output("git", "rev-parse", "HEAD") or "unknown") + dirty


def program_paths(args):
    places = {"repdl": "tools", "repdl_tests": "tests", "repdl_consumer_program": "tests",
              "repdl_consumer_expected": "tests", "repdl_bench": "bench", "repdl_cuda_bench": "bench",
              "repdl_step_bench": "bench", "repdl_seeded_fault": "tests", "repdl_cuda_pairs": "tests"}
    if args.bin:
        return {name: str(args.bin / name) for name in places}
    return {name: str(args.build / place / name) for name, place in places.items()}


def main():
    parser = argparse.ArgumentParser()
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--build", type=pathlib.Path)
    where.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--only", default=None,
                        help="steps apart from info; all when absent")
    args = parser.parse_args()
    bins = program_paths(args)

    drawn = args.out / "cuda-bench"
    fuzz = [sys.executable, "tests/fuzz.py", bins["repdl"]]
    steps = {
        "info": [bins["repdl"], "info"],
        "self-test": [bins["repdl"], "verify", "--self-test"],
        "seeded-fault-1": [bins["repdl_seeded_fault"], "1"],
        "seeded-fault-2": [bins["repdl_seeded_fault"], "2"],
        "tests": [bins["repdl_tests"]],
        # Processes of their own, so that kernels are used for the first time while a graph is being captured.
        "capture": [bins["repdl_tests"], "--test-case=cuda: every operation can be captured*"],
        "capture-network": [bins["repdl_tests"], "--test-case=cuda: every operation of a network can be captured*"],
        "fuzz": [*fuzz, "--processes", "14", "--count", "1100000", "--seed", "1000000"],
        **{tool: [*fuzz, "--processes", "6", "--count", count, "--seed", seed, "--under",
                  f"compute-sanitizer --tool {tool} --error-exitcode 9"]
           for tool, count, seed in (("memcheck", "20000", "2000000"), ("racecheck", "1500", "3000000"),
                                     ("initcheck", "20000", "4000000"))},
        "pairs": [bins["repdl_cuda_pairs"]],
        "verify": [bins["repdl"], "verify"],
        "wide": [bins["repdl_tests"], "--test-case=cuda: views*,cuda: every operation on*", "--duration=true"],
        "environments": [bins["repdl_consumer_program"]],
        "demo": [bins["repdl"], "demo"],
        "bench": [sys.executable, "tools/bench_table.py", bins["repdl_bench"], "--benchmark_filter=cache|sum|dot|matmul"],
        "cuda-bench": [bins["repdl_cuda_bench"], "--json", str(drawn / "cuda.json")],
        "cuda-elementwise": [bins["repdl_cuda_bench"], "elementwise"],
        "cuda-table": [sys.executable, "tools/bench_table.py", "--from", str(drawn / "cuda.json"), "--out", str(drawn)],
        "step": [bins["repdl_step_bench"]],
        "pytorch": [sys.executable, "bench/pytorch_peers.py", bins["repdl_cuda_bench"]],
        "certificates": [sys.executable, "tools/certificates.py", "record", bins["repdl"]],
        "sweep-convert": [bins["repdl"], "sweep", "convert", "--count", "1400000000"],
    }
    chosen = ["info", *args.only.split(",")] if args.only else [s for s in steps if s != "cuda-elementwise"]  # a part of cuda-bench
    unknown = [c for c in chosen if c not in steps]
    if unknown:
        parser.error(f"--only: expected some of {', '.join(steps)}, got {', '.join(unknown)}")

    gpu = output("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader").splitlines()
    name, driver, memory = ([f.strip() for f in gpu[0].split(",")] if gpu else ["no GPU", "none", "none"])
    cpu = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    nvcc = re.search(r"release [0-9.]+", output("nvcc", "--version"))
    date = datetime.date.today().isoformat()
    lines = [
        f"# {name}, {date}", "",
        "Written by tools/gpu_record.py.", "",
        "| | |", "|---|---|",
        f"| commit | {commit()} |",
        f"| GPU | {name}, {memory} ({len(gpu)} in the machine) |",
        f"| driver | {driver} |",
        f"| CUDA on the machine | {nvcc.group(0) if nvcc else 'no nvcc'} |",
        f"| CPU | {cpu.group(1) if cpu else platform.processor()}, {os.cpu_count()} cores |",
        "",
    ]
    device = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    drawn.mkdir(parents=True, exist_ok=True)
    record = args.out / f"{date}-{device}.md"
    failed = []
    table = ["| step | command | status | seconds |", "|---|---|---|---|"]
    bodies = []
    for step in chosen:
        print(f"== {step}", flush=True)
        if step == "pytorch" and importlib.util.find_spec("torch") is None:
            table.append("| pytorch | | not run: no torch for this Python | |")
            continue
        start = time.monotonic()
        done = subprocess.run(steps[step], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        took = time.monotonic() - start
        command = shlex.join([pathlib.Path(steps[step][0]).name, *map(str, steps[step][1:])])
        table.append(f"| {step} | `{command}` | {done.returncode} | {took:.1f} |")
        out = done.stdout.splitlines()
        if done.returncode != 0:
            failed.append(step)
        if step == "info" and not re.search(r"^cuda:0\s", done.stdout, re.M):
            failed.append("GPU not seen by repdl info")
        if step == "environments":
            expected = output(bins["repdl_consumer_expected"]).splitlines()
            if [line for line in out if not line.startswith("#")] != expected:
                failed.append("environments differ from the oracle")
        if len(out) > longest:
            out = out[: longest // 2] + [f"... {len(out) - longest} lines ..."] + out[-longest // 2:]
        print("\n".join(out[-15:]), flush=True)
        bodies += [f"## {step}", "", "```", f"$ {command}", *out, "```", ""]
        # After each step, so that a run that is cut off keeps what it had.
        summary = f"{len(table) - 2} of {len(chosen)} commands run, failed: {', '.join(failed) if failed else 'none'}"
        record.write_text("\n".join(lines + table + ["", summary, ""] + bodies))
    print(f"record: {record}; failed: {', '.join(failed) if failed else 'none'}")
    sys.exit(bool(failed))


main()
