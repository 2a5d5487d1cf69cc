#!/usr/bin/env python3
"""Builds the consumers of librepdl and compares what they compute with the oracle.

    tests/consumers/run.py BUILD_DIR WORK_DIR [--jobs N]

BUILD_DIR is a finished static build of this tree with the oracle. Three ways to use librepdl: installed as a static library,
installed as a shared library (both found with find_package and pkg-config, by projects in C++ and in C alone), and as a part
of the consumer's own build with -Ofast, -ffast-math and -march=native. The expected fingerprints are recomputed from MPFR/GMP every time.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import checks
from checks import beside, build, call, check, pkg_config, root, settings

here = root / "tests/consumers"


def fingerprints(text):
    return dict(line.split() for line in text.splitlines() if re.fullmatch(r"\S+ [0-9a-f]{64}", line))


def compare(name, command, expected, want_flush):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    got = fingerprints(done.stdout)
    notes = "\n".join(line for line in done.stdout.splitlines() if not re.fullmatch(r"\S+ [0-9a-f]{64}", line))
    check(done.returncode == 0, f"{name}: status {done.returncode}\n{notes[-3000:]}{done.stderr[-3000:]}")
    wrong = [op for op in expected if got.get(op) != expected[op]]
    check(not wrong, f"{name}: differs from the oracle in {', '.join(wrong)}")
    start = re.search(r"mxcsr at start ([0-9a-f]+)", done.stdout)
    flush = start is not None and int(start.group(1), 16) & 0x8040 == 0x8040
    if want_flush:
        check(flush, f"{name}: -Ofast was meant to set FTZ and DAZ before main, and did not")
    runs = re.search(r"^# (\d+ runs), (\d+ failures)$", done.stdout, re.M)
    print(f"{name}: {len(got)} results compared with the oracle, {runs.group(0)[2:] if runs else 'no runs'}"
          + (", FTZ and DAZ set from the start" if flush else ""))


def installed_files(prefix):
    """Only the public headers, the library, the package files, the tool and documents."""
    allowed = (r"include/librepdl/[a-z_]+\.(hpp|h|def)|lib[^/]*(/[^/]+)?/(librepdl(_cuda)?\.(a|so[0-9.]*)|pkgconfig/librepdl\.pc)"
               r"|lib[^/]*(/[^/]+)?/cmake/librepdl/librepdl-[a-z-]+\.cmake|bin/repdl|share/doc/.*"
               r"|share/librepdl/docs/(contract\.md|digests/.*)")
    files = [p.relative_to(prefix).as_posix() for p in prefix.rglob("*") if not p.is_dir()]
    stray = [f for f in files if not re.fullmatch(allowed, f)]
    check(not stray, f"installed besides the public files: {', '.join(stray)}")
    public = {p.name for p in (root / "librepdl/include/librepdl").iterdir()}
    have = {pathlib.PurePath(f).name for f in files if f.startswith("include/")}
    check(public == have, f"headers not installed: {public - have}")
    check("share/librepdl/docs/contract.md" in files, "the contract is not installed")


def exported_symbols(library):
    """Of a shared library: only public names. What the C++ standard library's templates leave is weak and hidden."""
    lines = call("nm", "-DC", "--defined-only", library).splitlines()
    names = [line.split(maxsplit=2)[2] for line in lines]
    internal = [n for n in names if re.search(r"repdl::(cpu|cuda|plan|dispatch|num|ops)::", n) and not n.startswith("std::")]
    check(not internal, f"{library.name} exports internals: {', '.join(internal[:5])} ({len(internal)} in all)")
    public = [n for n in names if n.startswith(("repdl::", "repdl_"))]
    check(len(public) > 30, f"{library.name} exports only {len(public)} public names")
    soname = re.search(r"SONAME.*\[(.*)\]", call("readelf", "-d", library))
    check(soname and re.fullmatch(r"librepdl\.so\.\d+\.\d+", soname.group(1)), f"{library.name} has no versioned SONAME")
    print(f"{library.name}: SONAME {soname.group(1) if soname else 'none'}, {len(public)} public names exported")


def installed_tool(prefix, work):
    """repdl verify compares with the digests beside it, wherever the tree was moved."""
    moved = work / "prefix-moved"
    shutil.copytree(prefix, moved)
    verified = re.search(r"^verified: .* [1-9]\d* runs.*$", call(moved / "bin/repdl", "verify", "--quick", "abs"), re.M)
    check(verified, "the installed repdl verify ran nothing")
    print(f"installed, moved: {verified and verified.group(0)}")
    shutil.rmtree(moved / "share/librepdl/docs/digests")
    done = subprocess.run([moved / "bin/repdl", "verify", "--quick", "abs"], capture_output=True, text=True)
    check(done.returncode != 0 and str(moved / "share/librepdl/docs/digests") in done.stdout + done.stderr,
          f"verify without the installed digests: status {done.returncode}\n{done.stdout}{done.stderr}")


def c_programs(name, prefix, work, jobs):
    """A project in C alone, and a C compiler with the flags of pkg-config."""
    build(here / "c", work / f"c-{name}", jobs, f"-DCMAKE_PREFIX_PATH={prefix}")
    print(f"installed, {name}, C alone: " + call(work / f"c-{name}/c_program").strip())
    if shutil.which("pkg-config"):
        pc, flags = pkg_config(prefix)
        for compiler in filter(shutil.which, ("gcc", "clang")):
            program = work / f"pc_{compiler}_{name}"
            call(compiler, "-std=c99", "-pedantic-errors", "-Werror", here / "program.c", "-o", program, *flags)
            print(f"installed, {name}, {compiler}, pkg-config: " + call(program, env=dict(os.environ, LD_LIBRARY_PATH=str(pc.parent))).strip())


def own_flags(build_directory):
    """What the project's own program is compiled with, no object of librepdl is."""
    hostile = {"-Ofast", "-march=native", "-ffast-math", "-funsafe-math-optimizations", "-fno-signed-zeros"}
    commands = json.loads((build_directory / "compile_commands.json").read_text())
    own = [c for c in commands if c["file"].endswith("program.cpp")]
    rest = [c for c in commands if c not in own and not c["file"].endswith(".c")]
    check(len(own) == 1 and hostile <= set(own[0]["command"].split()), "the hostile project's own program lacks its flags")
    reached = [c["file"] for c in rest if hostile & set(c["command"].split())]
    check(len(rest) > 50 and not reached, f"a parent project's flags reach {', '.join(reached[:5])} ({len(reached)} of {len(rest)})")


def main():
    parser = argparse.ArgumentParser(description="see the head of this file")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    work = args.work.resolve()
    shutil.rmtree(work, ignore_errors=True)

    expected = fingerprints(call(args.build / "tests/repdl_consumer_expected"))
    check(len(expected) >= 20, f"only {len(expected)} expected results")

    static, shared = work / "prefix-static", work / "prefix-shared"
    call("cmake", "--install", args.build, "--prefix", static)
    installed_files(static)
    build(here / "installed", work / "installed-static", args.jobs, f"-DCMAKE_PREFIX_PATH={static}")
    compare("installed, static", [work / "installed-static/program"], expected, False)
    print("installed, static, C: " + call(work / "installed-static/c_program").strip())
    c_programs("static", static, work, args.jobs)
    installed_tool(static, work)

    if shutil.which("pkg-config"):
        pc = next(static.rglob("librepdl.pc")).parent
        flags = call("pkg-config", "--cflags", "--libs", "librepdl",
                     env=dict(os.environ, PKG_CONFIG_PATH=str(pc))).split()
        call("g++", "-std=c++20", "-O1", here / "program.cpp", "-o", work / "pc_program", *flags)
        compare("installed, static, pkg-config", [work / "pc_program"], expected, False)

    shared_build = beside(work, "shared")
    build(root, shared_build, args.jobs, "-DBUILD_SHARED_LIBS=ON", "-DREPDL_CUDA=off", f"-DCMAKE_INSTALL_PREFIX={shared}",
          *settings(args.build, "REPDL_WERROR", "REPDL_SHARDS_DIR"))
    check("REPDL_WITH_CUDA:INTERNAL=OFF" in (shared_build / "CMakeCache.txt").read_text(), "-DREPDL_CUDA=off builds CUDA")
    call("cmake", "--install", shared_build)
    installed_files(shared)
    exported_symbols(next(p for p in shared.rglob("librepdl.so") ))
    build(here / "installed", work / "installed-shared", args.jobs, f"-DCMAKE_PREFIX_PATH={shared}")
    compare("installed, shared", [work / "installed-shared/program"], expected, False)
    print("installed, shared, C: " + call(work / "installed-shared/c_program").strip())
    c_programs("shared", shared, work, args.jobs)

    part = beside(work, "fetchcontent")
    build(here / "fetchcontent", part, args.jobs, f"-DFETCHCONTENT_SOURCE_DIR_LIBREPDL={root}",
          "-DREPDL_CUDA=OFF", "-DREPDL_INSTRUCTION_SETS=baseline", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
          *settings(args.build, "REPDL_WERROR", "REPDL_SHARDS_DIR"))  # the flags of the arithmetic are one target's, whatever the set
    own_flags(part)
    compare("part of a build with -Ofast, -ffast-math, -march=native", [part / "program"], expected, True)

    print(f"consumers: {len(checks.failures)} failures")
    sys.exit(bool(checks.failures))


main()
