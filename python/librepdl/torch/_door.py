"""The kernels at PyTorch's dispatch keys: the compiled library, through ctypes."""

import ctypes
import sys
import threading
from collections.abc import Callable
from types import FrameType

import torch

from librepdl import _core
from librepdl.torch import _build

# The address of a text: ctypes would not keep a str alive.
_caller_type = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64)


def running_modules() -> list[torch.nn.Module]:
    """Innermost first."""
    running: list[torch.nn.Module] = []
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "_call_impl":
            module = frame.f_locals.get("self")
            if isinstance(module, torch.nn.Module):
                running.append(module)
        frame = frame.f_back
    return running


def module_path(running: list[torch.nn.Module]) -> str | None:
    """Of the innermost module, as the outermost one names it."""
    if not running:
        return None
    root = running[-1]
    for name, module in root.named_modules():
        if module is running[0]:
            return f"{type(root).__name__}.{name}" if name else type(root).__name__
    return type(running[0]).__name__


#: Says which module made an autograd node, by the node's number, while someone wants to know.
origin: Callable[[int], str | None] | None = None


def _path(node: int | None) -> str | None:
    """What a refusal names: the module that is running, or that made a node of the backward pass."""
    if node is None:
        return module_path(running_modules())
    return None if origin is None else origin(node)


_last_path = threading.local()


def _caller(backward: int, node: int) -> int | None:
    try:
        path = _path(node if backward else None)
        if path is None:
            return None
        _last_path.value = ctypes.create_string_buffer(path.encode())  # alive until the next one of this thread
        return ctypes.addressof(_last_path.value)
    except Exception:  # an error message without it is better than none
        return None


_capturing_type = ctypes.CFUNCTYPE(ctypes.c_int)


def _capturing() -> int:
    return int(torch.cuda.is_current_stream_capturing())


#: What the library calls; alive as long as it is.
_asked = (_caller_type(_caller), _capturing_type(_capturing))


class Door:
    """The library. Its functions raise RuntimeError with what it says."""

    def __init__(self) -> None:
        self.path = _build.library()
        try:  # symbols of no other library are looked up in it
            self._library = ctypes.CDLL(str(self.path), mode=ctypes.RTLD_LOCAL)
        except OSError as e:
            raise _build.NoCompiler(f"librepdl.torch: its compiled library cannot be loaded: {e}; remove {self.path} to have it compiled "
                                    "again, or set LIBREPDL_CACHE to a directory that programs may be loaded from") from e
        for name in ("error", "status", "noted"):
            getattr(self._library, f"repdl_torch_{name}").restype = ctypes.c_char_p
        self._library.repdl_torch_look.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
        self._library.repdl_torch_refuse.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
        self._library.repdl_torch_attach.argtypes = [ctypes.c_void_p, _caller_type, _capturing_type]
        self._checked(self._library.repdl_torch_attach(_core.c_abi(), *_asked))

    def _checked(self, status: int) -> None:
        if status != 0:
            raise RuntimeError(self._library.repdl_torch_error().decode())

    def enable(self, strict: bool) -> None:
        self._checked(self._library.repdl_torch_enable(int(strict)))

    def disable(self) -> None:
        self._checked(self._library.repdl_torch_disable())

    def exempt(self, on: bool) -> bool:
        return bool(self._library.repdl_torch_exempt(int(on)))

    def is_exempt(self) -> bool:
        return bool(self._library.repdl_torch_is_exempt())

    def look(self, name: str | None = None) -> None:
        """An operator was registered, or a library with operators: what is not aten's is refused from now on."""
        space, _, overload = (name or "").partition(".")
        self._checked(self._library.repdl_torch_look(None if name is None else space.encode(), overload.encode()))

    def refuse(self, what: str, why: str) -> None:
        """Refuses something of PyTorch's Python, as the kernels refuse an operation."""
        if self._library.repdl_torch_refuse(what.encode(), why.encode()) != 0:
            raise NotImplementedError(self._library.repdl_torch_error().decode())

    def status(self) -> list[tuple[str, str]]:
        lines = self._library.repdl_torch_status().decode().splitlines()
        return [(key, value) for key, _, value in (line.partition("\t") for line in lines)]

    def noted(self) -> list[tuple[int, str]]:
        """What was refused, or would have been, since the last call: how often, and what."""
        lines = self._library.repdl_torch_noted().decode().splitlines()
        return [(int(count), what) for count, _, what in (line.partition("\t") for line in lines)]


_lock = threading.Lock()
_door: Door | None = None


def door() -> Door:
    global _door
    with _lock:
        if _door is None:
            _door = Door()
        return _door
