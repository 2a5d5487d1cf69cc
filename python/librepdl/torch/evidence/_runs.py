"""Runs of a user's training function that all begin alike."""

import contextlib
import inspect
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from librepdl.torch import _coverage, is_enabled


def used_gpu() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def checked(who: str, train: Any) -> Mapping[str, inspect.Parameter]:
    """Its parameters, all of which have defaults."""
    expected = f"{who}: train: expected a function without arguments that trains (of several arguments: lambda: train(a, b)), got "
    if not callable(train) or isinstance(train, torch.nn.Module):
        raise TypeError(expected + type(train).__name__)
    parameters = inspect.signature(train).parameters
    for p in parameters.values():
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise TypeError(f"{expected}one that needs {p.name!r}")
    if is_enabled():
        raise RuntimeError(f"{who}: expected librepdl to be disabled, since plain PyTorch runs first: call librepdl.torch.disable() before")
    return parameters


class Start:
    """Random generators as they are now. After each run, within begin(), they and all that `train` reaches are put back."""

    def __init__(self, train: Any) -> None:
        self._train = train
        self._python = random.getstate()
        self._torch = torch.get_rng_state()
        self._seed = torch.initial_seed()  # a GPU that is not in use yet begins with it
        self._cuda = torch.cuda.get_rng_state_all() if used_gpu() else []
        numpy = sys.modules.get("numpy")
        self._numpy = None if numpy is None else numpy.random.get_state()

    def _put_back(self) -> None:
        random.setstate(self._python)
        torch.set_rng_state(self._torch)
        if self._cuda:
            torch.cuda.set_rng_state_all(self._cuda)
        elif used_gpu():
            torch.cuda.manual_seed_all(self._seed)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)

    @contextlib.contextmanager
    def begin(self) -> Iterator[None]:
        before = _coverage.AsItWas(self._train)
        try:
            yield
        finally:
            before.put_back()
            self._put_back()


def finished(train: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """train(), and the GPU has done it."""
    result = train(**arguments)
    if used_gpu():
        torch.cuda.synchronize()
    return result
