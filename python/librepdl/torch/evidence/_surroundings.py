"""What a run is made of besides the program's own numbers: its code, what is installed, the machine."""

import functools
import hashlib
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import librepdl
from librepdl import _core
from librepdl.torch import _door


def digest_of_file(path: Path) -> str:
    """SHA-256 of the content, read piece by piece."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---- code ----

#: Where Python's own modules are.
_STANDARD = tuple({os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")})


def is_installed(path: Path) -> bool:
    """Whether a file is Python's own or of an installed package: those are known by their versions. What the installer noted of a package (`.dist-info`)
    lies beside it, wherever that is (`pip install --target`), and is read by whatever looks for plugins."""
    return (not {"site-packages", "dist-packages"}.isdisjoint(path.parts) or str(path).startswith(_STANDARD)
            or any(part.endswith((".dist-info", ".egg-info")) for part in path.parts))


def _modules(program: Path | None) -> Iterator[tuple[str, Path]]:
    """The program and the modules that it imported from outside of installed packages, by their names, which are the same on all machines."""
    if program is not None:
        yield "__main__", program
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__dict__", {}).get("__file__")  # nothing of the module's own runs
        if name in ("__main__", "__mp_main__") or name.partition(".")[0] == "librepdl" or not isinstance(file, str):
            continue
        if not is_installed(Path(file)):  # most are: resolving takes longer
            path = Path(file).resolve()
            if path.is_file() and not is_installed(path):
                yield name, path


class _NoGit(Exception):
    pass


def _git(directory: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(directory), *arguments], capture_output=True, text=True, errors="surrogateescape",
                              env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"})
    except OSError as e:  # no git on this machine
        raise _NoGit from e
    if done.returncode != 0:
        raise _NoGit
    return done.stdout


def git_root(path: Path) -> Path | None:
    """Of the repository that a file is in."""
    try:
        return Path(_git(path.parent, "rev-parse", "--show-toplevel").removesuffix("\n")).resolve()
    except _NoGit:
        return None


def _repository(program: Path, modules: dict[str, Path]) -> dict[str, Any] | None:
    """The commit, the content of tracked files that differ from it, and imported modules that git does not know. Git's own text of a
    difference would depend on its settings."""
    root = git_root(program)
    try:
        if root is None:
            return None
        commit = _git(root, "rev-parse", "--verify", "HEAD").strip()
        changed = [root / name for name in _git(root, "diff", "--name-only", "--no-renames", "-z", "HEAD", "--").split("\0") if name]
        inside = {name: path for name, path in modules.items() if path.is_relative_to(root)}
        tracked = _git(root, "ls-files", "-z", "--", *map(str, inside.values())).split("\0") if inside else []
    except _NoGit:
        return None
    return {"commit": commit, "changed": {path.relative_to(root).as_posix(): digest_of_file(path) if path.is_file() else None for path in changed},
            "untracked": [name for name, path in inside.items() if path.relative_to(root).as_posix() not in tracked]}


def code(program: Path | None, began: int) -> dict[str, Any]:
    """`began`: nanoseconds of the clock; what was written later may not be what was imported."""
    modules = dict(_modules(program))
    return {"modules": {name: digest_of_file(path) for name, path in modules.items()},
            "written_during_run": [name for name, path in modules.items() if path.stat().st_mtime_ns > began],
            "git": None if program is None else _repository(program, modules)}


# ---- environment ----

#: Lines of a RECORD that differ between machines: compiled modules, scripts with the path of their Python, who installed it.
_OWN_LINES = re.compile(r"^(\.\./|/)|\.pyc,|\.dist-info/(INSTALLER|REQUESTED|direct_url\.json|RECORD),")


def _packages() -> dict[str, Any]:
    """Versions, and a digest of the digests that the installer noted of the files."""
    found: dict[str, Any] = {}
    for package in importlib.metadata.distributions():
        about = package.metadata
        name = re.sub(r"[-_.]+", "-", about["Name"] or "").lower()
        if not name or name in found:  # of two the first one is imported
            continue
        lines = sorted(line for line in (package.read_text("RECORD") or "").splitlines() if not _OWN_LINES.search(line))
        found[name] = {"version": about["Version"], "files": hashlib.sha256("\n".join(lines).encode()).hexdigest() if lines else None}
    return found


@functools.cache
def _compiled(path: Path) -> dict[str, str | None]:
    """A shared library: SHA-256, and what compiled it, as the compiler itself notes at the end."""
    content = path.read_bytes()
    begins = [place for place in (content.rfind(mark) for mark in (b"GCC: (", b"clang version ")) if place >= 0]
    text = content[max(begins):max(begins) + 200].partition(b"\0")[0].decode(errors="replace") if begins else None
    return {"sha256": hashlib.sha256(content).hexdigest(), "compiler": text}


def _first_line(path: str) -> str | None:
    try:
        return Path(path).read_text().partition("\n")[0]
    except OSError:
        return None


def environment() -> dict[str, Any]:
    """What is installed. `container`: $CONTAINER_DIGEST, which whoever starts a container may set."""
    door = _door._door  # None where nothing was computed with librepdl
    return {
        "packages": _packages(),
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation(),
                   "compiler": platform.python_compiler()},
        "librepdl": {"version": librepdl.__version__, "core": _compiled(Path(str(_core.__file__))),
                     "torch": None if door is None else _compiled(door.path)},
        "torch": {"version": str(torch.__version__), "git": str(torch.version.git_version), "cuda": torch.version.cuda},
        "driver": _first_line("/proc/driver/nvidia/version"),
        "system": {"kernel": platform.release(), "name": _first_line("/etc/os-release"), "c_library": " ".join(platform.libc_ver())},
        "container": os.environ.get("CONTAINER_DIGEST"),
    }


# ---- hardware ----

def hardware() -> dict[str, Any]:
    """The machine, and how much of it the process uses. Looks at CUDA only where the program did."""
    processor: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        processor.setdefault(key.strip(), value.strip())
    cuda = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return {
        "cpu": {"machine": platform.machine(), "model": processor.get("model name") or processor.get("CPU part"),
                "flags": sorted((processor.get("flags") or processor.get("Features", "")).split())},
        "instruction_sets": librepdl.info()["instruction_sets"],
        "cores": {"all": os.cpu_count(), "of_process": len(os.sched_getaffinity(0))},
        "threads": {"torch": torch.get_num_threads(), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"), "REPDL_ISA": os.environ.get("REPDL_ISA")},
        "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if cuda else [],
        "cuda_generators": [hashlib.sha256(state.numpy().tobytes()).hexdigest() for state in torch.cuda.get_rng_state_all()] if cuda else [],
    }
