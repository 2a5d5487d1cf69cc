"""What the tests of consumers share: calling programs, and counting what is wrong."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent.parent
count = 0
failures = []


def call(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nstatus {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}")
    return done.stdout


def pkg_config(prefix):
    """The folder of librepdl.pc, and the flags to compile and link with."""
    folder = next(prefix.rglob("librepdl.pc")).parent
    return folder, call("pkg-config", "--cflags", "--libs", "librepdl", env=dict(os.environ, PKG_CONFIG_PATH=str(folder))).split()


def build(source, where, jobs, *options, target="all"):
    """A project that librepdl is a part of does not get librepdl's compiler cache by itself; here it has the same one."""
    cached = {}
    if shutil.which("ccache"):
        cached = {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CMAKE_CUDA_COMPILER_LAUNCHER": "ccache",
                  "CCACHE_BASEDIR": str(root), "CCACHE_NOHASHDIR": "1"}
    call("cmake", "-G", "Ninja", "-S", source, "-B", where, "-DCMAKE_BUILD_TYPE=Release", *options, env=os.environ | cached)
    call("cmake", "--build", where, "--parallel", jobs, "--target", target, env=os.environ | cached)


def beside(work, name):
    """An empty directory to build librepdl's sources in, WORK-NAME."""
    where = work.with_name(f"{work.name}-{name}")
    shutil.rmtree(where, ignore_errors=True)
    return where


def settings(build_directory, *names):
    """Those of a finished build, as options for another one. With the same flags, files and relative paths (`beside`) a compiler
    cache has it all."""
    cache = (build_directory / "CMakeCache.txt").read_text()
    return [f"-D{name}=" + re.search(rf"^{name}:\w+=(.*)$", cache, re.M).group(1) for name in names]


def check(condition, text):
    global count
    count += 1
    if not condition:
        failures.append(text)
        print(f"FAILED: {text}")
