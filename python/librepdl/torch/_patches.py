"""What is changed in PyTorch's Python while librepdl is enabled."""

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
import torch._functorch.vmap
import torch._tensor_str
import torch.optim.swa_utils

from librepdl.torch import _optimisers, _past
from librepdl.torch._door import door


def _exempt(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        before = door().exempt(True)
        try:
            return function(*arguments, **options)
        finally:
            door().exempt(before)

    return call


class _Engine:
    """Autograd's. Gradients that are to be differentiated again are computed by the calling thread, as on a CPU: autograd goes through what was
    computed last first, each thread counts for itself, and gradients of one tensor are added up in that order. A GPU's thread would make them
    the earliest of all."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run_backward(self, tensors: Any, gradients: Any, keep_graph: bool, create_graph: bool, *others: Any, **options: Any) -> Any:
        if not create_graph:
            return self._engine.run_backward(tensors, gradients, keep_graph, create_graph, *others, **options)
        with torch.autograd.set_multithreading_enabled(False):
            return self._engine.run_backward(tensors, gradients, keep_graph, create_graph, *others, **options)


class Patches:
    """Applied by enter(), taken back by leave()."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []
        self._imports = _past.AfterImport()

    def set(self, owner: Any, name: str, value: Any) -> None:
        """An attribute, until leave()."""
        if name in vars(owner):
            self.finally_(functools.partial(setattr, owner, name, vars(owner)[name]))
        else:  # inherited
            self.finally_(functools.partial(delattr, owner, name))
        setattr(owner, name, value)

    def finally_(self, undo: Callable[[], Any]) -> None:
        """Done by leave(), the last one first."""
        self._undo.append(undo)

    def after_import(self, module: str, action: Callable[[ModuleType], None]) -> None:
        """Now, or when it is imported: importing some takes seconds."""
        if module in sys.modules:
            action(sys.modules[module])
        else:
            self._imports.actions[module] = action

    def enter(self) -> None:
        sys.meta_path.insert(0, self._imports)
        self.finally_(lambda: sys.meta_path.remove(self._imports))
        _past.close(self)
        self.set(torch._tensor_str, "_str", _exempt(torch._tensor_str._str))  # printing computes
        self.set(torch.autograd.Variable, "_execution_engine", _Engine(torch.autograd.Variable._execution_engine))
        # torch.vmap registers batching rules at its first call; librepdl has its own.
        self.set(torch._functorch.vmap, "lazy_load_decompositions", lambda: None)
        # Fused kernels of the transformer layers, contraction orders that depend on a package.
        fastpath = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        self.finally_(lambda: torch.backends.mha.set_fastpath_enabled(fastpath))
        einsum = torch.backends.opt_einsum.enabled
        torch.backends.opt_einsum.enabled = False
        self.finally_(lambda: setattr(torch.backends.opt_einsum, "enabled", einsum))
        # Optimisers: one formula for tensors and lists of them, numbers that are the same everywhere.
        for module, name, form in _optimisers.forms():
            self.set(module, name, form)
        # AveragedModel averages by another formula where lists are fast.
        self.set(torch.optim.swa_utils, "_get_foreach_kernels_supported_devices", list)

    def leave(self) -> None:
        while self._undo:
            self._undo.pop()()
