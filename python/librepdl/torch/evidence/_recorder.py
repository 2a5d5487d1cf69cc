"""What `python -m librepdl.torch run --manifest` notes of a program that knows nothing of it: files that it reads, seeds, models at steps of
their optimisers."""

import contextlib
import functools
import gc
import importlib.machinery
import os
import random
import sys
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from librepdl.torch.evidence import _surroundings
from librepdl.torch.evidence._manifest import Manifest, _of_file

#: Where files are the system's, not data.
_SYSTEM = ("/dev/", "/etc/", "/proc/", "/run/", "/sys/", "/usr/")
_MODULES = tuple(importlib.machinery.all_suffixes())


# ---- models ----

def _roots(optimizers: list[torch.optim.Optimizer]) -> list[torch.nn.Module]:
    """The modules that own parameters of the optimisers and are part of no other module; in the order of the parameters."""
    places = {id(p): i for i, p in enumerate(_parameters(optimizers))}
    modules = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Module) and "_modules" in one.__dict__]
    parts = {id(part) for module in modules for part in module.__dict__["_modules"].values()}
    found = []
    for module in modules:
        owned = [] if id(module) in parts else [places[id(p)] for p in module.parameters() if id(p) in places]
        if owned:
            found.append((min(owned), -len(owned), type(module).__name__, module))
    return [module for *_, module in sorted(found, key=lambda one: one[:3])]


def _parameters(optimizers: list[torch.optim.Optimizer]) -> list[torch.Tensor]:
    return [p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]]


def _named(things: list[Any]) -> dict[str, Any]:
    """By the names of their classes, numbered from the second of a class on."""
    names: dict[str, Any] = {}
    for thing in things:
        name = type(thing).__name__
        count = sum(known.partition(" ")[0] == name for known in names)
        names[f"{name} {count + 1}" if count else name] = thing
    return names


def _noted(value: Any) -> Any:
    """An optimiser's state without what has no bits, such as functions and objects."""
    if isinstance(value, Mapping):
        return {str(key): _noted(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_noted(item) for item in value]
    return value if value is None or isinstance(value, (torch.Tensor, bool, int, float, str, bytes)) else f"a {type(value).__name__}"


def _state(optimizers: list[torch.optim.Optimizer], roots: list[torch.nn.Module]) -> dict[str, Any]:
    """Parameters and buffers by the names that the modules give them, the optimisers' states by the names of their parameters."""
    names: dict[int, str] = {}
    model: dict[str, Any] = {}
    for root_name, root in _named(roots).items():
        for name, tensor in (*root.named_parameters(), *root.named_buffers()):
            model[names.setdefault(id(tensor), f"{root_name}.{name}")] = tensor
    state = {}
    for optimizer_name, optimizer in _named(optimizers).items():
        for i, p in enumerate(_parameters([optimizer])):
            model[names.setdefault(id(p), f"parameter {i} of {optimizer_name}")] = p
        state[optimizer_name] = {names[id(p)]: _noted(of) for p, of in optimizer.state.items()}
    return {"model": model, "optimizer": state}


# ---- the program ----

class Recorder:
    """Watches while it is entered. every: at which steps of optimisers, counted through the program, there is a fingerprint; 0: 1, 2, 4, 8, ..."""

    def __init__(self, manifest: Manifest, every: int, data: bool) -> None:
        self.manifest, self.every, self.data = manifest, every, data
        self._process = os.getpid()
        self._steps = 0
        self._known: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        # Kept alive, so that what a function trained is there at the end: what made steps since the last new optimiser came.
        self._optimizers: list[torch.optim.Optimizer] = []
        self._models: list[torch.nn.Module] = []
        self._watching = contextlib.ExitStack()
        self._active = False
        self._inside = threading.local()
        self._files: dict[str, tuple[int, ...]] = {}
        program = manifest.program or Path.cwd() / "none"
        #: What names of files begin with is left out where it can be another on another machine.
        self._homes: dict[Path, str] = {}
        for home, short in ((_surroundings.git_root(program), ""), (program.parent, ""), (Path.cwd().resolve(), ""), (Path.home().resolve(), "~/")):
            if home is not None:
                self._homes.setdefault(home, short)

    def __enter__(self) -> "Recorder":
        self._watching.callback(register_optimizer_step_post_hook(self._after_step).remove)
        self._watch_seed(random, "python")
        self._watch_seed(np.random, "numpy")
        if self.data:
            sys.addaudithook(self._audit)  # stays, and does nothing any more
        self._active = True
        return self

    def __exit__(self, *_: object) -> None:
        self._active = False
        self._watching.close()

    def record(self, status: int) -> dict[str, Any] | None:
        """Once the program has ended; None in a process that it forked."""
        if os.getpid() != self._process:
            return None
        if self._optimizers:
            self._fingerprint("the end")
        return self.manifest.record(status)

    def _watch_seed(self, module: ModuleType, name: str) -> None:
        original = module.__dict__["seed"]

        @functools.wraps(original)
        def seed(*arguments: Any, **options: Any) -> Any:
            given = next(iter((*arguments, *options.values())), None)
            self.manifest.seeds[name] = given if given is None or isinstance(given, int) else repr(given)
            return original(*arguments, **options)

        module.__dict__["seed"] = seed
        self._watching.callback(module.__dict__.update, seed=original)

    # ---- steps ----

    def _after_step(self, optimizer: torch.optim.Optimizer, arguments: Any, options: Any) -> None:
        if os.getpid() != self._process:
            return
        self._steps += 1
        new = optimizer not in self._known
        if new:
            self._known.add(optimizer)
            if self._optimizers:
                self._fingerprint(f"step {self._steps}, what was trained before")
            self._optimizers, self._models = [], []
        if not any(one is optimizer for one in self._optimizers):
            self._optimizers.append(optimizer)
        if new or (self._steps % self.every == 0 if self.every else self._steps & (self._steps - 1) == 0):
            self._fingerprint(f"step {self._steps}")

    def _fingerprint(self, at: str) -> None:
        self._models = _roots(self._optimizers)
        self.manifest.fingerprint(at, _state(self._optimizers, self._models))

    # ---- files ----

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and self._active and not getattr(self._inside, "hook", False):
            self._inside.hook = True
            try:
                self._opened(*arguments)
            except (OSError, ValueError, TypeError):  # the program's own attempt says what is wrong
                pass
            finally:
                self._inside.hook = False

    def _opened(self, file: Any, mode: str | None, flags: int) -> None:
        reads = "r" in mode if mode is not None else flags & os.O_ACCMODE != os.O_WRONLY and not flags & (os.O_CREAT | os.O_TRUNC | os.O_DIRECTORY)
        if not reads or isinstance(file, int) or os.getpid() != self._process:
            return
        path = Path(os.fsdecode(file)).resolve()
        if str(path).startswith(_SYSTEM) or path.name.endswith(_MODULES) or path == self.manifest.program or _surroundings.is_installed(path):
            return
        if not path.is_file():
            return
        found = path.stat()
        name = next((short + path.relative_to(home).as_posix() for home, short in self._homes.items() if path.is_relative_to(home)), str(path))
        key = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        # What was written since the program began is its own; what is open to read and write is hashed before.
        if found.st_mtime_ns >= self.manifest.began or self._files.get(name) == key:
            return
        self._files[name] = key
        self.manifest.files[name] = _of_file(path)
