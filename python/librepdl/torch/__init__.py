"""PyTorch with librepdl's operations: models, autograd and optimisers as they are, every result rounded once.

    import librepdl.torch
    librepdl.torch.enable()

From then on the process computes the same bits on every CPU and GPU, with any number of threads, batch composition and memory
format. What has no reproducible implementation raises NotImplementedError; nothing falls back in silence.
"""

import contextlib
import hashlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import torch

import librepdl
from librepdl.torch import _coverage
from librepdl.torch._build import TESTED, NoCompiler, UntrustedCache
from librepdl.torch._coverage import Coverage
from librepdl.torch._door import door
from librepdl.torch._patches import Patches

__all__ = ["Coverage", "NoCompiler", "UntrustedCache", "coverage", "disable", "enable", "exempt", "fingerprint", "is_enabled", "reproducible",
           "status"]

_lock = threading.RLock()
_applied: Patches | None = None
_strict = True


def enable(strict: bool = True) -> None:
    """Computes with librepdl from now on, in the whole process: autograd's threads too.

    For a version of PyTorch that the package brings no library for, the first call compiles one (half a minute, progress on stderr);
    `python -m librepdl.torch build` does it ahead. strict=False: what librepdl lacks is computed by PyTorch, and status() lists it; the
    results are then not reproducible.

    Raises NoCompiler where the library lacks and cannot be compiled or kept, UntrustedCache where others could have put one in its place
    ($LIBREPDL_CACHE), RuntimeError where other kernels have taken the place of librepdl's.
    """
    global _applied, _strict
    with _lock:
        door().enable(strict)
        _strict = strict
        if _applied is None:
            _applied = Patches()
            _applied.enter()
        _check()


def disable() -> None:
    """PyTorch as it was. Nothing else of the process may be inside PyTorch."""
    global _applied
    with _lock:
        if _applied is not None:
            _applied.leave()
            _applied = None
            door().disable()


def is_enabled() -> bool:
    """Whether librepdl is enabled."""
    return _applied is not None


@contextlib.contextmanager
def reproducible(strict: bool = True) -> Iterator[None]:
    """enable() for a while. Inside another one, or after enable(), it checks that librepdl's kernels still stand, and sets `strict`."""
    before = (is_enabled(), _strict)
    enable(strict)
    try:
        yield
    finally:
        if before[0]:
            enable(before[1])
        else:
            disable()


@contextlib.contextmanager
def exempt() -> Iterator[None]:
    """PyTorch's own kernels for this thread: for what need not be reproducible, such as a chart. A backward pass runs in other
    threads, and is not exempt."""
    if not is_enabled():
        yield
        return
    before = door().exempt(True)
    try:
        yield
    finally:
        door().exempt(before)


def _check() -> None:
    found = [value for key, value in door().status() if key == "overridden"]
    if found:
        raise RuntimeError("librepdl.torch: other kernels stand where librepdl's should: " + ", ".join(found[:5])
                           + (f" and {len(found) - 5} more" if len(found) > 5 else "")
                           + "; expected nobody to register aten kernels after enable()")


def status() -> dict[str, Any]:
    """What is enabled: `enabled`, `strict`, the path of the compiled `library`, the versions of the `policy`, of `librepdl` and of `torch`,
    whether its tests run with this PyTorch (`tested`), how many schemas are `replaced`, `passed` and `refused`, kernels that others have
    `overridden`, schemas whose arguments `changed` since, and what was refused, or computed by PyTorch with strict=False (`noted`), since
    the last call."""
    result: dict[str, Any] = {"enabled": is_enabled(), "library": str(door().path), "librepdl": librepdl.__version__,
                              "torch": torch.__version__,
                              "tested": any(torch.__version__.startswith(v + ".") for v in TESTED),
                              "overridden": [], "changed": [], "unseen": []}
    for key, value in door().status():
        if key in ("overridden", "changed", "unseen"):
            result[key].append(value)
        elif key == "strict":
            result[key] = value == "1"
        else:
            result[key] = int(value)
    result["noted"] = {what: count for count, what in door().noted()}
    return result


def coverage(model: Any, *inputs: Any, **options: Any) -> Coverage:
    """What would be refused of model(*inputs, **options), a module, a loss, or a whole step of training, and of the backward pass of its
    results; of an optimiser: of a step. It runs once, with PyTorch's kernels where librepdl has none (a second time, with gradients of its
    inputs, where no result has any). What the call can reach stays as it is: weights, gradients, statistics, the optimiser's state,
    random generators."""
    with _lock, torch.random.fork_rng(), reproducible(strict=False):
        _coverage.run(model, inputs, options, door().noted)
        return Coverage({what: count for count, what in door().noted()})


def _parts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(value, "state_dict"):
        yield from _parts(path, value.state_dict())
    elif isinstance(value, Mapping):
        for key in sorted(value, key=lambda k: (str(type(k)), k)):
            yield from _parts(f"{path}/{key!r}", value[key])
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _parts(f"{path}/{i}", item)
    else:
        yield path, value


def fingerprint(state: Any) -> str:
    """SHA-256, in hexadecimal, over names, types, shapes and bits: of a module, an optimiser, a scheduler, or a state_dict (tensors,
    numbers and strings in dicts and lists). Of tensors on a GPU the same as of their copies on the CPU."""
    h = hashlib.sha256(b"librepdl.torch state 1\0")
    for path, value in _parts("", state):
        h.update(path.encode() + b"\0")
        if isinstance(value, torch.Tensor):
            tensor = value.detach().cpu().contiguous()
            h.update(f"{tensor.dtype} {list(tensor.shape)}\0".encode())
            if tensor.numel() > 0:
                h.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.dtype != torch.bool
                         else tensor.numpy().tobytes())
        elif isinstance(value, float):
            h.update(f"float {value.hex()}\0".encode())
        elif value is None or isinstance(value, (bool, int, str, bytes)):
            h.update(f"{type(value).__name__} {value!r}\0".encode())
        elif not callable(value):
            raise TypeError(f"fingerprint: {path or 'state'}: expected tensors, numbers, strings, dicts and lists, got {type(value).__name__}")
    return h.hexdigest()
