"""The library that stands at PyTorch's dispatch keys: one that came with the package, or compiled against the PyTorch that is installed and
kept in a cache.

It links PyTorch's libtorch_cpu and libc10, no Python and no CUDA, so one file is for every Python and for all builds of a PyTorch release.
The library runs with the rights of the process, so it is loaded only from where nobody else can have put it: the file, its directory and
every directory above belong to the user, to root or to the owner of this package, and no one else may write to them (but for sticky
directories, in which nobody can replace what is another's).
"""

import concurrent.futures
import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

import librepdl

SOURCES = Path(__file__).resolve().parent / "src"
#: Where a wheel has compiled libraries, if it brings any, under the names that shipped_name() gives.
PREBUILT = Path(__file__).resolve().parent / "prebuilt"
#: Versions that the tests run with: on the CPU, and on a GPU.
TESTED = ("2.13", "2.11")

FLAGS = ["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden"]
#: Both are loaded already, by PyTorch: nothing says where they are.
LIBRARIES = ["-ltorch_cpu", "-lc10"]
NAME = "librepdl_torch.so"


class NoCompiler(RuntimeError):
    """The library cannot be compiled here: there is no C++ compiler, it fails, or the cache cannot be written."""


class UntrustedCache(RuntimeError):
    """Others than the user, root and the owner of the package can write where the library is kept."""


def compiler() -> list[str]:
    """The command of the C++ compiler: $CXX, c++, g++ or clang++."""
    for text in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        command = shlex.split(text or "")
        if command and shutil.which(command[0]):
            return command
    raise NoCompiler(f"librepdl.torch needs a library compiled for PyTorch {_release()} ({platform.machine()}), and so a C++ compiler (C++20) "
                     "once; expected $CXX, c++, g++ or clang++ on the PATH, found none. On Debian and Ubuntu: apt-get install g++. Or install "
                     f"a PyTorch that this package brings a compiled library for: {', '.join(_shipped()) or 'none'}. Or set LIBREPDL_CACHE to the "
                     "cache of a machine like this one that has a compiler")


def _own_includes() -> Path:
    """Where librepdl's header is, librepdl/librepdl.h."""
    return SOURCES if (SOURCES / "librepdl").is_dir() else SOURCES.parents[3] / "librepdl" / "include"  # installed, or in the repository


def _include_directories() -> list[Path]:
    root = Path(torch.__file__).parent / "include"
    return [SOURCES, _own_includes(), root, root / "torch" / "csrc" / "api" / "include"]


def _release() -> str:
    """PyTorch's version without what is said of the build: +cpu, +cu130."""
    return str(torch.__version__).partition("+")[0]


def _key() -> str:
    """What the library depends on. Not the compiler: no result does, and a machine without one can use the cache."""
    h = hashlib.sha256()
    for text in (platform.machine(), _release(), str(torch.version.git_version), str(torch._C._GLIBCXX_USE_CXX11_ABI),
                 librepdl.__version__, *FLAGS, *LIBRARIES):
        h.update(text.encode() + b"\0")
    files = {str(path.relative_to(SOURCES)): path for path in SOURCES.rglob("*") if path.is_file()}
    files["librepdl/librepdl.h"] = _own_includes() / "librepdl" / "librepdl.h"
    for name, path in sorted(files.items()):
        h.update(name.encode() + b"\0" + path.read_bytes())
    return h.hexdigest()[:16]


def shipped_name() -> str:
    """Of this PyTorch's library in PREBUILT."""
    return f"torch-{_release()}-{platform.machine()}-{_key()}.so"


def _shipped() -> list[str]:
    """The versions of PyTorch that the package brings libraries for, of this kind of machine."""
    names = [path.name.split("-") for path in PREBUILT.glob(f"torch-*-{platform.machine()}-*.so")]
    return sorted({parts[1] for parts in names}, key=lambda version: [int(n) for n in re.findall(r"\d+", version)])


def cache_directory() -> Path:
    """$LIBREPDL_CACHE, else librepdl in the user's cache directory. Relative paths are ignored."""
    for variable, below in (("LIBREPDL_CACHE", ()), ("XDG_CACHE_HOME", ("librepdl",)), ("HOME", (".cache", "librepdl"))):
        given = os.environ.get(variable)
        if given and os.path.isabs(given):
            return Path(given, *below)
    raise NoCompiler("librepdl.torch: no directory for its compiled library: expected an absolute path in LIBREPDL_CACHE, XDG_CACHE_HOME "
                     "or HOME, found none")


def _to_stderr(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)


# ------------------------------------------------------------------------------------------------------------------ trust

def _check(path: str, found: os.stat_result) -> None:
    """Raises UntrustedCache unless the file, directory or link is only ours to write."""
    trusted = {os.geteuid(), 0, os.stat(__file__).st_uid}
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid not in trusted:
        problem, remedy = f"belongs to user {found.st_uid}", ""
    elif stat.S_ISLNK(found.st_mode) or not mode & (stat.S_IWGRP | stat.S_IWOTH) or (stat.S_ISDIR(found.st_mode) and mode & stat.S_ISVTX):
        return
    else:
        problem, remedy = "can be written by others", f"chmod go-w {shlex.quote(path)}, or "
    raise UntrustedCache(f"librepdl.torch: {path} (mode {mode:04o}, user {found.st_uid}) {problem}, who could plant a library there; expected "
                         f"that only user {os.geteuid()}, root or the owner of the package can write to it: {remedy}set LIBREPDL_CACHE to "
                         "a directory of your own")


def _check_path(path: Path) -> None:
    """Of every directory and symbolic link on the way to the path, and of what is there. Parts that do not exist are left out."""
    waiting, current, links = list(reversed(path.parts[1:])), "/", 0
    _check(current, os.stat(current))
    while waiting:
        part = waiting.pop()
        if part == "..":
            current = os.path.dirname(current)
            continue
        here = os.path.join(current, part)
        try:
            found = os.lstat(here)
        except FileNotFoundError:
            return
        _check(here, found)
        if not stat.S_ISLNK(found.st_mode):
            current = here
            continue
        links += 1
        if links > 40:
            raise NoCompiler(f"librepdl.torch: too many symbolic links on the way to {path} (LIBREPDL_CACHE)")
        target = Path(os.readlink(here))
        waiting.extend(reversed(target.parts[1:] if target.is_absolute() else target.parts))
        if target.is_absolute():
            current = "/"


def _make(directory: Path) -> None:
    """The directory and those above it that lack, for the user alone."""
    if not directory.is_dir():
        _make(directory.parent)
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)


def _read(path: Path) -> bytes | None:
    """A regular file, never through a link; None where there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(handle)
        _check(str(path), found)
        if not stat.S_ISREG(found.st_mode):
            return None
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)


def _is_whole(target: Path) -> bool:
    """Whether the library is there, as it was built."""
    digest, built = _read(target.with_suffix(".sha256")), _read(target)
    return digest is not None and built is not None and digest == _digest(built)


def _digest(built: bytes) -> bytes:
    return hashlib.sha256(built).hexdigest().encode() + b"\n"


# ---------------------------------------------------------------------------------------------------------------- shipped

def prebuilt() -> tuple[Path | None, str]:
    """The library that came with the package for this PyTorch; or None, and why it is not used if there is one."""
    path = PREBUILT / shipped_name()
    if not path.exists():
        return None, ""
    try:
        _check_path(path)
        if _is_whole(path):
            return path, ""
        why = f"{path} is not what {path.with_suffix('.sha256').name} is the digest of"
    except UntrustedCache as e:
        why = str(e)
    return None, f"librepdl.torch: the compiled library that came with the package is not used: {why}\n"


def ship(library: Path, directory: Path) -> Path:
    """Writes this PyTorch's library and its digest into the directory, for PREBUILT of a wheel."""
    built = library.read_bytes()
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / shipped_name()
    for path, content in ((target, built), (target.with_suffix(".sha256"), _digest(built))):
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        path.chmod(0o644)
    return target


# --------------------------------------------------------------------------------------------------------------- building

def library(say: Callable[[str], None] = _to_stderr) -> Path:
    """The compiled library: the one that came with the package, else the cache's. It is compiled (half a minute on a few cores) where there
    is none for this PyTorch, or a damaged one.

    Raises UntrustedCache where others can write to the cache, NoCompiler where it can't be made.
    """
    came, why_not = prebuilt()
    if came is not None:
        return came
    directory = cache_directory() / f"torch-{torch.__version__}-{_key()}"
    target = directory / NAME
    try:
        _check_path(target)
        if _is_whole(target):
            return target
        if why_not:
            say(why_not)
        command = compiler()
        _make(directory)
        _check_path(target)  # what was made meanwhile, too
        with _locked(directory, say):
            if not _is_whole(target):  # another process may have made it
                _build(command, target, say)
    except OSError as e:
        raise NoCompiler(f"librepdl.torch: its compiled library cannot be kept in {directory}: {e}; set LIBREPDL_CACHE to a directory that can "
                         "be written") from e
    return target


@contextlib.contextmanager
def _locked(directory: Path, say: Callable[[str], None]) -> Iterator[None]:
    """One process builds, the others wait. The lock goes with the process."""
    handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("librepdl.torch: another process is compiling its library, waiting\n")
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:  # a file system without locks: both build, the last one's is kept
            pass
        yield
    finally:
        os.close(handle)


def _flags() -> list[str]:
    flags = [*FLAGS, f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    for directory in _include_directories():
        flags += ["-isystem", str(directory)]
    return flags


def _build(command: list[str], target: Path, say: Callable[[str], None]) -> None:
    sources = sorted(SOURCES.glob("*.cpp"), key=lambda path: -path.stat().st_size)
    jobs = min(len(sources), len(os.sched_getaffinity(0)))
    say(f"librepdl.torch: compiling {len(sources)} files for PyTorch {torch.__version__} with {shlex.join(command)}, once ")
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        # PyTorch's headers take three quarters of a file's time: for each job, the sources that it compiles are one file.
        def compiled(job: int) -> Path:
            of_job, to = Path(work) / f"part_{job}.cpp", Path(work) / f"part_{job}.o"
            of_job.write_text("".join(f'#include "{source.name}"\n' for source in sources[job::jobs]))
            _run([*command, *_flags(), "-c", str(of_job), "-o", str(to)], target.parent)
            say(".")
            return to

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            objects = list(pool.map(compiled, range(jobs)))
        libraries = Path(torch.__file__).parent / "lib"
        whole, digest = Path(work) / target.name, Path(work) / "digest"
        _run([*command, "-shared", "-o", str(whole), *map(str, objects), f"-L{libraries}", *LIBRARIES], target.parent)
        whole.chmod(0o700)
        built = whole.read_bytes()
        if b"libstdc++.so" not in built and b"libc++.so" not in built:  # two of them in one process crash where numbers are printed
            raise NoCompiler(f"librepdl.torch: {shlex.join(command)} links the C++ library statically; expected the one that PyTorch "
                             "uses, libstdc++.so: install it for that compiler, or name another by CXX")
        digest.write_bytes(_digest(built))
        digest.chmod(0o600)
        for new, place in ((whole, target), (digest, target.with_suffix(".sha256"))):
            if place.is_dir() and not place.is_symlink():  # a file does not replace a directory
                os.rename(place, Path(work) / f"former-{place.name}")
            os.replace(new, place)
    say(" done\n")


def _run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        log = directory / "compiler.log"
        log.write_text(" ".join(command) + "\n" + done.stdout + done.stderr)
        errors = [line for line in done.stderr.splitlines() if "error" in line][:5]
        raise NoCompiler("\n".join([f"librepdl.torch: the compiler, {command[0]}, failed with status {done.returncode}; its output is in {log} "
                                    "(CXX names another compiler, LIBREPDL_CACHE a directory where the library is compiled)", *errors]))
