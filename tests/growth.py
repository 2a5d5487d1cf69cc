#!/usr/bin/env python3
"""The growth test: two elementwise functions, added as HACKING.md says: one in three formats whose results are integers, one in all four
with an option; a row operation, a statistic in three formats; and a sum of windows.

    tests/growth.py WORK_DIR [--jobs N]

Applies the patches of tests/growth, which are all that is written by hand, to a copy of the committed tree, makes the rest with
the commands that HACKING.md names, and builds. The second function comes last, into what is built: it may compile few files
again. Then the operations must be everywhere: verified, swept against the
oracle, called at random, in the command line, the documents, the C interface and, of elementwise functions, the C++ one, and,
where nvcc is, among the CUDA kernels. No line of a digest that was there before may change.
"""
import argparse
import pathlib
import re
import shutil
import struct
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
here = root / "tests/growth"
functions = ("quadratic", "exponent")
most_compiled = 12  # files, for a function: its loops, three times, and what has something for every operation
row, window = structured = ("var_of_mean", "sum_pool2d")
by_hand = {
    **{f"{f}.patch": {"librepdl/ops/elementwise/elementwise.def", "reference/elementwise/elementwise.cpp", f"librepdl/ops/elementwise/{f}.hpp"} for f in functions},
    "row.patch": {"librepdl/ops/structured.def", "librepdl/ops/structured.hpp", "librepdl/ops/rows/rules.hpp", f"librepdl/ops/rows/{row}.hpp",
                  "reference/rows/statistics.cpp"},
    "window.patch": {"librepdl/ops/structured.def", "librepdl/ops/structured.hpp", "librepdl/plan/planner.hpp", "reference/evaluate.cpp"},
}
made = {"python/librepdl/_functions.py", "python/librepdl/_draws.py", "docs/python-api.md", "python/tests/typing_of_every_function.py",
        "librepdl/include/librepdl/elementwise.hpp", "librepdl/include/librepdl/functions.hpp", "librepdl/ops/elementwise/bodies.hpp",
        "docs/operations.md", "README.md",
        "docs/digests/exponent.f32.i32.txt", *(f"docs/digests/cases/{f}.txt" for f in (*functions, *structured)),
        *(f"librepdl/self_test/known_answers/{f}.txt" for f in functions)}


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"growth: {' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def expect(condition, text):
    if not condition:
        sys.exit(f"growth: FAILED: {text}")
    print(f"growth: {text}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--jobs", default="2")
    args = parser.parse_args()
    work = args.work.resolve()
    source, build = work / "source", work / "source/build/cpu"
    shutil.rmtree(source, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    run("git", "clone", "-q", root, source)

    def changed():
        run("git", "add", "-A", cwd=source)
        rows = [line.split("\t") for line in run("git", "diff", "--cached", "--numstat", cwd=source).splitlines()]
        return {name: int(deleted) for _, deleted, name in rows}

    def apply(patch):
        lines = [line.split("\t") for line in run("git", "apply", "--numstat", here / patch).splitlines()]
        expect({name for _, _, name in lines} == by_hand[patch], f"written by hand: {', '.join(sorted(by_hand[patch]))}")
        if patch != "window.patch":
            expect([n for *n, name in lines if name.startswith("reference/")] == [["1", "0"]], "one oracle line")
        run("git", "apply", here / patch, cwd=source)

    def generate():
        run(sys.executable, "tools/gen_elementwise.py", cwd=source)
        run(sys.executable, "tools/gen_functions.py", cwd=source)

    def make():
        """What is compiled."""
        generate()
        command = ["cmake", "--build", build, "--target", "repdl_cli", "repdl", "--parallel", args.jobs]
        output = run(*command)
        run(repdl, "digests", "--add", cwd=source)
        output += run(*command)  # with the known answers
        return sorted(set(re.findall(r"Building CXX object (\S+)\.o$", output, re.M)))

    repdl = build / "tools/repdl"
    apply("exponent.patch")
    apply("row.patch")
    apply("window.patch")
    generate()  # CMake reads the names of headers
    run("cmake", "--preset", "cpu", "-DREPDL_WERROR=OFF", cwd=source)
    make()
    apply("quadratic.patch")
    compiled = make()
    print("\n".join(compiled))
    expect(0 < len(compiled) <= most_compiled, f"another function compiles {len(compiled)} files, of {most_compiled} that it may")
    patched = set().union(*by_hand.values())
    run(repdl, "docs", "--write", cwd=source)
    run(sys.executable, "tools/gen_python.py", repdl, cwd=source)
    others = set(changed()) ^ (patched | made)
    expect(not others, f"made by commands: {', '.join(sorted(made))}" + (f"; not as expected: {', '.join(sorted(others))}" if others else ""))
    lost = {name: n for name, n in changed().items() if name.startswith(("docs/digests", "librepdl/self_test")) and n > 0}
    expect(not lost, "no line of a digest or a known answer changed")

    cases = (source / "docs/digests/cases/quadratic.txt").read_text()
    for t in ("f16", "bf16", "f32", "f64"):
        expect(re.search(rf" {t},{t} .* scale=h[0-9a-f]+ -> ", cases), f"cases of {t} with the option")
    for f in structured:
        cases = (source / f"docs/digests/cases/{f}.txt").read_text()
        expect(all(f" {t},{t} " in cases for t in ("f16", "bf16", "f32")), f"cases of {f} in each format")
        expect(" 0 undecided" in run(repdl, "fuzz", "--op", f, "--count", "5000", cwd=source), f"{f} called at random")
    for f in (*functions, *structured):
        verified = run(repdl, "verify", f, "--quick", cwd=source)
        expect(" 0 mismatches" in verified, re.search("verified: .*", verified).group())
        swept = run(repdl, "sweep", f, "--count", "200000", cwd=source)
        expect(re.search(r"^mismatches +0$", swept, re.M), f"{f} swept")
    expect(re.search(r"^quadratic +\(x\) \[scale=1\]", run(repdl, "info", "--operations", cwd=source), re.M), "repdl info")
    expect(all(f"`{f}`" in (source / "docs/operations.md").read_text() for f in (*functions, *structured)), "docs/operations.md")

    data = struct.pack("<2f", 3, -0.5)
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    (work / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)
    run(repdl, "eval", "quadratic", "x.npy", "-o", "y.npy", "--attr", "scale=0.5", cwd=work)
    expect((work / "y.npy").read_bytes()[-8:] == struct.pack("<2f", 4.5, 0.125), "repdl eval")
    run(repdl, "eval", "exponent", "x.npy", "-o", "e.npy", cwd=work)
    run(repdl, "eval", row, "x.npy", "-o", "v.npy", cwd=work)
    expect((work / "v.npy").read_bytes()[-4:] == struct.pack("<f", 3.0625), f"repdl eval {row}")
    exponents = (work / "e.npy").read_bytes()
    expect(exponents[-8:] == struct.pack("<2i", 1, -1) and b"'<i4'" in exponents, "repdl eval to integers")

    include, library = source / "librepdl/include", build / "librepdl/librepdl.a"
    run("g++", "-std=c++20", f"-I{include}", here / "quadratic.cpp", library, "-fopenmp", "-ldl", "-o", work / "typed")
    run(work / "typed")
    expect(True, "the typed C++ function")
    run("gcc", f"-I{include}", "-c", here / "quadratic.c", "-o", work / "quadratic.o")
    run("g++", work / "quadratic.o", library, "-fopenmp", "-ldl", "-o", work / "dynamic")
    run(work / "dynamic")
    expect(True, "the C interface")

    if shutil.which("nvcc"):
        run("cmake", "--preset", "cuda", "-DCMAKE_CUDA_ARCHITECTURES=90-virtual", cwd=source)
        shard = next(p for p in (source / "build/shards/map").glob("*.cu") if "REPDL_ELEMENTWISE(quadratic," in p.read_text())
        commands = (source / "build/cuda/compile_commands.json").read_text()
        kernels = re.search(rf" -o (\S*repdl_cuda\.dir/\S*{shard.name}\.o)", commands).group(1)
        run("cmake", "--build", source / "build/cuda", "--target", kernels)
        ptx = (source / "build/cuda" / kernels).read_bytes()
        expect(b"quadratic" in ptx, "its CUDA kernels compile")


if __name__ == "__main__":
    main()
