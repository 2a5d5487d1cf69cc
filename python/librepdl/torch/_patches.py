"""What is changed in PyTorch's Python while librepdl is enabled: what would go past the dispatcher, or depends on the platform."""

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch._functorch.vmap
import torch._tensor_str
import torch.optim.swa_utils

from librepdl.torch import _optimisers
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


_warned = False


def _no_compile(model: Any = None, *arguments: Any, **options: Any) -> Any:
    """torch.compile while librepdl is enabled: compiled code would not call its operations."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn("librepdl.torch: torch.compile runs eagerly while librepdl is enabled", stacklevel=2)
    if model is None:
        return lambda m: m
    return model


class Patches:
    """Applied by enter(), taken back by leave()."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []
        self._undo: list[Callable[[], None]] = []

    def _set(self, owner: Any, name: str, value: Any) -> None:
        self._before.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def enter(self) -> None:
        self._set(torch._tensor_str, "_str", _exempt(torch._tensor_str._str))  # printing computes
        self._set(torch, "compile", _no_compile)
        # Functions compiled before: eager. Not imported where nothing was compiled, which takes seconds.
        if "torch._dynamo" in sys.modules:
            from torch._dynamo.eval_frame import _stance
            before = _stance.stance
            torch.compiler.set_stance("force_eager")
            self._undo.append(lambda: torch.compiler.set_stance(before))
        # torch.vmap registers batching rules at its first call; librepdl has its own.
        self._set(torch._functorch.vmap, "lazy_load_decompositions", lambda: None)
        # Fused kernels of the transformer layers, contraction orders that depend on a package, TorchScript's fuser.
        fastpath = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        self._undo.append(lambda: torch.backends.mha.set_fastpath_enabled(fastpath))
        einsum = torch.backends.opt_einsum.enabled
        torch.backends.opt_einsum.enabled = False
        self._undo.append(lambda: setattr(torch.backends.opt_einsum, "enabled", einsum))
        fuser = torch._C._jit_texpr_fuser_enabled()
        torch._C._jit_set_texpr_fuser_enabled(False)
        self._undo.append(lambda: torch._C._jit_set_texpr_fuser_enabled(fuser))
        # Optimisers: one formula for tensors and lists of them, numbers that are the same everywhere.
        for module, name, form in _optimisers.forms():
            self._set(module, name, form)
        # AveragedModel averages by another formula where lists are fast.
        self._set(torch.optim.swa_utils, "_get_foreach_kernels_supported_devices", list)

    def leave(self) -> None:
        for owner, name, value in reversed(self._before):
            setattr(owner, name, value)
        for undo in reversed(self._undo):
            undo()
        self._before.clear()
        self._undo.clear()
