"""A function's bits, twice, and beside those that are committed: what pytest's fixture `reproducible` does."""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from librepdl.torch import fingerprint
from librepdl.torch import reproducible as computing_with_librepdl
from librepdl.torch.evidence._difference import first_difference
from librepdl.torch.evidence._files import read_json, write_json
from librepdl.torch.evidence._fingerprints import DifferentBits, first_different, hashes

FORMAT = "librepdl fingerprints of tests 1"
R = TypeVar("R")


def _frozen(value: Any) -> Any:
    """A state as it is now: later runs may change the same tensors."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if hasattr(value, "state_dict"):
        return _frozen(value.state_dict())
    if isinstance(value, Mapping):
        return {key: _frozen(item) for key, item in value.items()}
    return [_frozen(item) for item in value] if isinstance(value, (list, tuple)) else value


def _threads(n: int) -> str:
    return f"{n} thread" if n == 1 else f"{n} threads"


class Reproducible:
    """See the fixture `reproducible` in pytest_librepdl. path: the test's file; test: its name; update: check() writes."""

    def __init__(self, path: Path, test: str, update: bool = False) -> None:
        self._path, self._test, self._update = path.with_name("fingerprints.json"), f"{path.name}::{test}", update
        self._checked: set[str] = set()

    def __call__(self, function: Callable[[], R], *, threads: Sequence[int] = (1, 2), seed: int = 0) -> R:
        if len(threads) < 2 or any(not isinstance(n, int) or n < 1 for n in threads):
            raise ValueError(f"reproducible: threads: expected two numbers or more, of 1 or more, a run for each, got {threads!r}")
        name = getattr(function, "__name__", type(function).__name__)
        states = torch.get_rng_state(), random.getstate(), np.random.get_state()
        count = torch.get_num_threads()

        def run(n: int) -> R:
            torch.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed)
            torch.set_num_threads(n)
            result = function()
            if result is None:
                raise TypeError(f"reproducible: expected {name} to return what is to be compared (modules, optimisers, tensors, numbers), got None")
            return result

        try:
            with computing_with_librepdl():
                first = _frozen(run(threads[0]))
                for n in threads[1:]:
                    result = run(n)
                    difference = first_difference(first, result)
                    if difference is not None:
                        again = first_difference(first, run(threads[0]))
                        raise DifferentBits(f"{name}: {_threads(threads[0])} and {_threads(n)}: {difference}\n"
                                            f"two runs on {_threads(threads[0])}: {again or 'the same bits'}")
        finally:
            torch.set_rng_state(states[0])
            random.setstate(states[1])
            np.random.set_state(states[2])
            torch.set_num_threads(count)
        return result

    def check(self, state: Any, name: str) -> None:
        """That a state has the bits that are committed under the name. Raises DifferentBits, with the first tensor that has not, or where there
        are none; with --update-fingerprints it writes them."""
        path, key = self._path, f"{self._test}::{name}"
        if key in self._checked:
            raise ValueError(f"reproducible.check: name: expected another one for each state of a test, got {name!r} again")
        self._checked.add(key)
        states = read_json(path, FORMAT, "pytest --update-fingerprints")["states"] if path.exists() else {}
        now: dict[str, Any] = {"fingerprint": fingerprint(state), "tensors": hashes(state)}
        if self._update:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, {"format": FORMAT, "states": dict(sorted((states | {key: now}).items()))})
        elif key not in states:
            raise DifferentBits(f"{path}: expected a fingerprint of {key}, found none; pytest --update-fingerprints writes it, to be committed")
        elif states[key] != now:
            found = first_different(states[key]["tensors"], now["tensors"]) or first_different(states[key], now)
            raise DifferentBits(f"{name}: {found}; the first is that of {path}, the second was computed now")
