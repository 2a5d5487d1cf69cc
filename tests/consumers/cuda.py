#!/usr/bin/env python3
"""The CUDA backend as a library of its own: what librepdl_cuda.so is, and where programs find it.

    tests/consumers/cuda.py BUILD_DIR WORK_DIR [--jobs N]

BUILD_DIR is a finished static build of this tree with REPDL_CUDA=ON. Programs are built against it installed as a static and
as a shared library, as a part of their own build, and with the backend inside of librepdl; none but the last one sees a CUDA
toolkit. Needs no GPU: without one the library's answer is that there is no driver.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import checks
from checks import beside, build, call, check, pkg_config, root, settings

here = root / "tests/consumers"
variable = "REPDL_CUDA_LIBRARY"
name = "librepdl_cuda.so"


def symbols(file, *options):
    return {line.split()[-1] for line in call("nm", *options, file).splitlines() if " " in line}


def cuda_in(file):
    """What of CUDA is in a program or an archive."""
    found = {s for s in symbols(file) if re.match(r"cuda[A-Z]|__cuda|cudart", s)}
    return found or (file.suffix != ".a" and ".nv_fatbin" in call("readelf", "-SW", file))


def run(*command, library=None):
    """Output of a program that asks for GPUs; `library`: the variable's value."""
    environment = {k: v for k, v in os.environ.items() if k != variable}
    if library is not None:
        environment[variable] = str(library)
    return call(*command, env=environment, cwd="/").strip()


def devices(program, library=None):
    return run(program, library=library)


def info(repdl):
    """What `repdl info` says about GPUs."""
    return re.search(r"^(?:GPU +none: .*|cuda:0.*)$", run(repdl, "info"), re.M).group(0)


def expect_found(what, text):
    """The library was asked: there are GPUs, or it says why not."""
    check(re.match(r"[1-9]\d* GPUs: \n", text + "\n") or re.search(r"GPUs?: (no CUDA driver|the CUDA driver)", text), f"{what}: {text}")
    print(f"{what}: {text.splitlines()[0]}")


def expect_refused(what, text, site, words):
    check(re.search(r"^0 GPUs: .*" + words, text, re.M) and re.search(rf"^{site}: context: .*{words}", text, re.M), f"{what}: {text}")
    print(f"{what}: {text.splitlines()[0]}")


def the_library(build_dir, architectures):
    library = build_dir / "lib" / name
    size = library.stat().st_size
    most = 58e6 if len(architectures) == 1 else 100e6
    check(size <= most, f"{name}: {size} bytes, expected at most {most:.0f}")
    exported = symbols(library, "-D", "--defined-only")
    check(exported == {"repdl_cuda_backend_1"}, f"{name} exports {sorted(exported)[:9]}")
    needed = re.findall(r"NEEDED.*\[(.*)\]", call("readelf", "-d", library))
    check(not [n for n in needed if not re.match(r"(libstdc\+\+|libm|libgcc_s|libc|libdl|libpthread|librt|ld-linux)[.-]", n)], f"{name} needs {needed}")
    archive = build_dir / "librepdl/librepdl.a"
    for file in (archive, build_dir / "tools/repdl"):
        check(not cuda_in(file), f"{file.name} has CUDA in it: {cuda_in(file)}")
    print(f"{name}: {size / 1e6:.1f} MB for {', '.join(architectures)}; exports {', '.join(exported)}; {archive.name}: {archive.stat().st_size / 1e6:.1f} MB")
    return library


def static_programs(args, work, library):
    prefix = work / "prefix-static"
    call("cmake", "--install", args.build, "--prefix", prefix)
    build(here / "cuda", work / "static", args.jobs, f"-DCMAKE_PREFIX_PATH={prefix}")
    program = work / "static/devices"
    check(not cuda_in(program), f"a static program has CUDA in it: {cuda_in(program)}")
    print(f"a static program: {program.stat().st_size / 1e6:.1f} MB")

    absent = devices(program)
    expect_refused("static, no library", absent, "no_device", rf"{name}: expected a file in {re.escape(str(program.parent))}, .*, got none")
    check(str(root) not in absent.replace(str(work), ""), f"a static program looks in the build directory: {absent}")
    expect_found("static, the variable", devices(program, library))
    shutil.copy(library, program.parent)
    expect_found("static, beside the program", devices(program))
    expect_found("static, beside the program, the variable is empty", devices(program, ""))
    for value, words in (("librepdl_cuda.so", "REPDL_CUDA_LIBRARY: expected an absolute path, got 'librepdl_cuda.so'"),
                         ("./librepdl_cuda.so", "expected an absolute path"),
                         (work / "none.so", "cannot open shared object file"),
                         (args.build / "lib/librepdl_other_build.so", r"librepdl_other_build.so: expected build \d.*, got build 0.0.0-another"),
                         (work, "expected a shared library that can be loaded")):
        expect_refused(f"static, {variable}={pathlib.Path(value).name}", devices(program, value), "cuda_library", words)
    shutil.copy(args.build / "lib/librepdl_other_build.so", program.parent / name)
    expect_refused("static, another build's beside the program", devices(program), "cuda_library", "got build 0.0.0-another")

    # Of a tree that was moved: the tool, and a program that is installed in it.
    moved = work / "prefix-moved"
    prefix.rename(moved)
    found = info(moved / "bin/repdl")
    check(name not in found, f"the installed repdl does not find {name}: {found}")
    print(f"installed, moved, repdl info: {found}")
    shutil.copy(program, moved / "bin")
    expect_found("static, installed beside librepdl", devices(moved / "bin/devices"))
    next(moved.rglob(name)).unlink()
    missed = info(moved / "bin/repdl")
    check(f"{name}: expected a file in" in missed, f"the installed repdl without {name}: {missed}")

    if shutil.which("pkg-config"):
        _, flags = pkg_config(moved)
        check(not [f for f in flags if "cudart" in f], f"pkg-config names CUDA: {flags}")
        call("g++", "-std=c++20", here / "devices.cpp", "-o", work / "pc_devices", *flags)
        expect_found("static, pkg-config, the variable", devices(work / "pc_devices", library))


def main():
    parser = argparse.ArgumentParser(description="see the head of this file")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    args.build = args.build.resolve()
    work = args.work.resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)

    chosen, = settings(args.build, "CMAKE_CUDA_ARCHITECTURES")
    architectures = chosen.partition("=")[2].split(";")
    same = [chosen, *settings(args.build, "REPDL_WERROR", "REPDL_SHARDS_DIR"), "-DREPDL_CUDA=ON"]

    library = the_library(args.build, architectures)
    found = info(args.build / "tools/repdl")
    check(name not in found, f"the built repdl does not find {name}: {found}")
    static_programs(args, work, library)

    shared = work / "prefix-shared"
    shared_build = beside(work, "shared")
    build(root, shared_build, args.jobs, *same, "-DBUILD_SHARED_LIBS=ON", f"-DCMAKE_INSTALL_PREFIX={shared}")
    consumer = beside(work, "shared-consumer")
    build(here / "cuda", consumer, args.jobs, f"-DFETCHCONTENT_SOURCE_DIR_LIBREPDL={root}", "-DBUILD_SHARED_LIBS=ON", *same, target="devices")
    expect_found("shared, a part of the build", devices(consumer / "devices"))
    call("cmake", "--install", shared_build)
    shutil.rmtree(shared_build)
    build(here / "cuda", work / "shared-consumer", args.jobs, f"-DCMAKE_PREFIX_PATH={shared}")
    program = work / "shared-consumer/devices"
    expect_found("shared", devices(program))
    next(shared.rglob(name)).rename(work / name)
    expect_refused("shared, no library", devices(program), "no_device", rf"{name}: expected a file in \S*prefix-shared/lib\S*, got none")
    expect_found("shared, the variable", devices(program, work / name))

    consumer = beside(work, "fetched")
    build(here / "cuda", consumer, args.jobs, f"-DFETCHCONTENT_SOURCE_DIR_LIBREPDL={root}", *same, target="devices")
    expect_found("static, a part of the build", devices(consumer / "devices"))

    one = work / "prefix-one"
    one_build = beside(work, "one")
    build(root, one_build, args.jobs, *same, "-DREPDL_CUDA_IN_ONE=ON", "-DREPDL_REFERENCE=OFF", "-DREPDL_TOOLS=OFF")
    call("cmake", "--install", one_build, "--prefix", one)
    check(not list(one.rglob(name)), f"REPDL_CUDA_IN_ONE installs {name}")
    if shutil.which("pkg-config"):
        _, flags = pkg_config(one)
        call("g++", "-std=c++20", here / "devices.cpp", "-o", work / "one_devices", *flags)
        check(cuda_in(work / "one_devices"), "REPDL_CUDA_IN_ONE: no CUDA in the program")
        expect_found("one binary, pkg-config", devices(work / "one_devices", "relative/path/that/nobody/reads.so"))

    print(f"{name}: {checks.count} checks, {len(checks.failures)} failures")
    sys.exit(bool(checks.failures))


main()
