"""Compiles the library that stands at PyTorch's dispatch keys, against the PyTorch that is installed."""

import concurrent.futures
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

import librepdl

SOURCES = Path(__file__).resolve().parent / "src"
#: Versions that the tests run with: on the CPU, and on a GPU.
TESTED = ("2.13", "2.11")

FLAGS = ["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden"]


class NoCompiler(RuntimeError):
    """There is no C++ compiler, or it cannot compile the sources."""


def compiler() -> str:
    """The C++ compiler: $CXX, c++, g++ or clang++."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            return name
    raise NoCompiler("librepdl.torch needs a C++ compiler (C++20) once for each version of PyTorch; expected $CXX, c++, g++ or "
                     "clang++ on the PATH, found none. On Debian and Ubuntu: apt-get install g++")


def _include_directories() -> list[Path]:
    root = Path(torch.__file__).parent / "include"
    own = [SOURCES]
    if not (SOURCES / "librepdl").is_dir():  # in the repository, not installed
        own.append(SOURCES.parents[3] / "librepdl" / "include")
    return [*own, root, root / "torch" / "csrc" / "api" / "include"]


def _key(cxx: str) -> str:
    """What the library depends on."""
    h = hashlib.sha256()
    for text in (torch.__version__, str(torch._C._GLIBCXX_USE_CXX11_ABI), librepdl.__version__, *FLAGS,
                 subprocess.run([cxx, "--version"], capture_output=True, text=True, check=True).stdout):
        h.update(text.encode() + b"\0")
    for path in sorted(SOURCES.iterdir()):
        if path.is_file():
            h.update(path.name.encode() + b"\0" + path.read_bytes())
    return h.hexdigest()[:16]


def cache_directory() -> Path:
    """$LIBREPDL_CACHE, else librepdl in the user's cache directory."""
    given = os.environ.get("LIBREPDL_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "librepdl"


def _to_stderr(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)


def library(say: Callable[[str], None] = _to_stderr) -> Path:
    """The compiled library; compiles it where there is none for this PyTorch and compiler (half a minute on a few cores)."""
    cxx = compiler()
    target = cache_directory() / f"torch-{torch.__version__}-{_key(cxx)}" / "librepdl_torch.so"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    sources = sorted(SOURCES.glob("*.cpp"))
    jobs = min(len(sources), len(os.sched_getaffinity(0)))
    say(f"librepdl.torch: compiling {len(sources)} files for PyTorch {torch.__version__} with {cxx}, once ")
    flags = [*FLAGS, f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    for directory in _include_directories():
        flags += ["-isystem", str(directory)]
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        def compiled(source: Path) -> Path:
            to = Path(work) / (source.stem + ".o")
            _run([cxx, *flags, "-c", str(source), "-o", str(to)])
            say(".")
            return to

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            objects = list(pool.map(compiled, sources))
        libraries = Path(torch.__file__).parent / "lib"
        whole = Path(work) / target.name
        _run([cxx, "-shared", "-o", str(whole), *map(str, objects), f"-L{libraries}", "-ltorch_cpu", "-lc10",
              f"-Wl,-rpath,{libraries}"])
        os.replace(whole, target)
    say(" done\n")
    return target


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        log = cache_directory() / "compiler.log"
        log.write_text(" ".join(command) + "\n" + done.stdout + done.stderr)
        errors = [line for line in done.stderr.splitlines() if "error" in line][:5]
        raise NoCompiler("\n".join([f"librepdl.torch: the compiler failed; its output is in {log}", *errors]))
