"""The ways past PyTorch's dispatcher, while librepdl is enabled: what they compute is refused, or computed by librepdl after all."""

import ctypes
import functools
import importlib
import importlib.abc
import importlib.machinery
import multiprocessing.process
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
import torch.utils.data

from librepdl.torch._door import door

if TYPE_CHECKING:
    from librepdl.torch._patches import Patches


def refuse(what: str, why: str) -> None:
    """As a kernel does: NotImplementedError, or with strict=False a note; nothing for a thread that is exempt."""
    if not door().is_exempt():
        door().refuse(what, why)


def _has_floats(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.is_floating_point() or value.is_complex()
    return isinstance(value, (list, tuple)) and any(map(_has_floats, value))


def _refused(function: Callable[..., Any], what: str, why: str, concerns: Callable[[Any], bool] = lambda _: True) -> Callable[..., Any]:
    """The function, where one of its arguments concerns us refused."""
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        if any(map(concerns, (*arguments, *options.values()))):
            refuse(what, why)
        return function(*arguments, **options)

    return call


def _then(function: Callable[..., Any], afterwards: Callable[..., Any]) -> Callable[..., Any]:
    """The function, and then what is to be done with its result and its arguments."""
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        afterwards(result, *arguments, **options)
        return result

    return call


class AfterImport(importlib.abc.MetaPathFinder):
    """In sys.meta_path: does something with modules as soon as they are imported."""

    def __init__(self) -> None:
        self.actions: dict[str, Callable[[ModuleType], None]] = {}

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        action = self.actions.get(name)
        if action is None:
            return None
        others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((found for found in others if found is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = _then(spec.loader.exec_module, lambda _, module: action(module))  # type: ignore[method-assign]
        return spec


# ---- compiled code ----

_warned = False


def _warn() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn("librepdl.torch: torch.compile runs eagerly while librepdl is enabled", stacklevel=3)


def _no_compile(model: Any = None, *arguments: Any, **options: Any) -> Any:
    """torch.compile while librepdl is enabled: compiled code would not call its operations."""
    _warn()
    if model is None:
        return lambda m: m
    return model


def _compiled_before(patches: "Patches") -> None:
    """Functions that were compiled before, or by a torch.compile that was imported before, run eagerly, whatever stance is set."""
    def dynamo(module: ModuleType) -> None:
        original = module._callback_from_stance

        def eagerly(callback: Any) -> Any:
            if door().is_exempt():
                return original(callback)
            if callback not in (None, False):
                _warn()
            return None

        patches.set(module, "_callback_from_stance", eagerly)

    def inductor(module: ModuleType) -> None:
        for name in ("CompiledFxGraph", "CompiledAOTI"):
            if (kind := getattr(module, name, None)) is not None:
                patches.set(kind, "__call__", _refused(kind.__call__, "code compiled by Inductor", "it calls kernels of its own"))

    patches.set(torch, "compile", _no_compile)
    patches.after_import("torch._dynamo.eval_frame", dynamo)
    patches.after_import("torch._inductor.output_code", inductor)
    for name, kind in vars(getattr(torch._C, "_aoti", object)).items():
        if name.startswith(("AOTIModelContainerRunner", "AOTIModelPackageLoader")):
            for run in {"run", "boxed_run"} & vars(kind).keys():
                patches.set(kind, run, _refused(getattr(kind, run), "a package of AOTInductor", "it calls kernels of its own"))


def _torchscript(patches: "Patches") -> None:
    """Run as written: TorchScript's optimisation from the second call on has derivatives and products of its own."""
    profiling = torch._C._jit_set_profiling_executor(False)  # functions that run for the first time
    patches.finally_(lambda: torch._C._jit_set_profiling_executor(profiling))
    fuser = torch._C._jit_texpr_fuser_enabled()
    torch._C._jit_set_texpr_fuser_enabled(False)
    patches.finally_(lambda: torch._C._jit_set_texpr_fuser_enabled(fuser))
    era = object()

    def as_written(call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def wrapped(self: Any, *arguments: Any, **options: Any) -> Any:
            if self.__dict__.get("_librepdl_era") is not era:
                try:
                    self._debug_flush_compilation_cache()  # it may have run before, and keep what was optimised
                except RuntimeError:
                    pass  # nothing is kept
                self.__dict__["_librepdl_era"] = era
            before = torch._C._get_graph_executor_optimize()  # of this thread
            torch._C._set_graph_executor_optimize(False)
            try:
                return call(self, *arguments, **options)
            finally:
                torch._C._set_graph_executor_optimize(before)

        return wrapped

    for kind in (torch._C.ScriptFunction, torch._C.ScriptMethod):
        patches.set(kind, "__call__", as_written(kind.__call__))


# ---- NumPy, process groups ----


def _numpy(patches: "Patches") -> None:
    """NumPy's functions of a tensor give a tensor that NumPy computed. (`x.numpy()` says what it is.)"""
    original: Any = torch.Tensor.__array_wrap__

    def wrap(self: torch.Tensor, array: Any, *more: Any) -> Any:
        if array.dtype.kind in "fc":
            name = getattr(more[0][0], "__name__", "?") if more and more[0] else "?"
            refuse(f"numpy.{name} of a tensor", "NumPy would compute it; torch has the function, or convert with .numpy()")
        return original(self, array)

    patches.set(torch.Tensor, "__array_wrap__", wrap)


def _process_groups(patches: "Patches") -> None:
    """A group's methods go through the dispatcher; those of its backend do not."""
    if not torch.distributed.is_available():
        return
    from librepdl.torch.distributed import _places

    _places.place(patches)
    backend = torch._C._distributed_c10d.Backend
    for name in ("allreduce", "allreduce_coalesced", "reduce", "reduce_scatter", "_reduce_scatter_base"):
        if hasattr(backend, name):
            patches.set(backend, name, _refused(getattr(backend, name), f"{name} of a process group's backend",
                                                "sums in the order of processes", _has_floats))


# ---- operators that come later ----


def _operators(patches: "Patches") -> None:
    """Are refused at once: those registered in Python, those of libraries that Python loads, and what is looked up in torch.ops."""
    def registered(_: Any, library: Any, op: Any, *arguments: Any, **options: Any) -> None:
        if library.ns != "aten":
            name = op if isinstance(op, str) else str(op).replace(".", "::", 1)  # an overload: library.name.overload
            door().look(f"{library.ns}::{name.rpartition('::')[2].removesuffix('.default')}")

    def found(packet: Any, space: Any, name: str) -> None:
        if space.name != "aten" and hasattr(packet, "overloads"):
            for overload in packet.overloads():
                door().look(f"{space.name}::{name}" + ("" if overload == "default" else f".{overload}"))

    def loaded(*_: Any, **options: Any) -> None:
        door().look()

    patches.set(torch.library.Library, "impl", _then(torch.library.Library.impl, registered))
    patches.set(torch._ops._OpNamespace, "__getattr__", _then(torch._ops._OpNamespace.__getattr__, found))
    patches.set(ctypes.CDLL, "__init__", _then(ctypes.CDLL.__init__, loaded))
    loader = importlib.machinery.ExtensionFileLoader
    patches.set(loader, "exec_module", _then(loader.exec_module, loaded))


# ---- processes ----


class _Enabling:
    """Is enabled where it is unpickled."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict

    def __reduce__(self) -> tuple[Any, ...]:
        return _enable, (self.strict,)


def _enable(strict: bool) -> None:
    import librepdl.torch

    librepdl.torch.enable(strict)


def _made(_: None, make: Callable[..., Any], arguments: Iterable[Any]) -> Any:
    return make(*arguments)


def _processes(patches: "Patches") -> None:
    """Processes that are spawned or forked by a server, those of a DataLoader too, are enabled before their own objects are unpickled."""
    import librepdl.torch

    def reduce(self: Any, protocol: Any) -> tuple[Any, ...]:
        reduced: Any = object.__reduce_ex__(self, protocol)
        make, arguments, *rest = reduced
        return (_made, (_Enabling(librepdl.torch._strict), make, arguments), *rest)

    patches.set(multiprocessing.process.BaseProcess, "__reduce_ex__", reduce)


def close(patches: "Patches") -> None:
    for way in (_compiled_before, _torchscript, _numpy, _process_groups, _operators, _processes):
        way(patches)
