"""What reproducibility costs: PyTorch's own deterministic flags and librepdl, each against plain PyTorch."""

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from librepdl.torch import reproducible
from librepdl.torch.evidence import _report, _runs


@contextlib.contextmanager
def _flags() -> Iterator[None]:
    """PyTorch's deterministic algorithms."""
    mode, warn_only = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        with torch.backends.cudnn.flags(enabled=torch.backends.cudnn.enabled, benchmark=False, deterministic=True):
            yield
    finally:
        torch.use_deterministic_algorithms(mode, warn_only=warn_only)


_WAYS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "plain": contextlib.nullcontext, "flags": _flags, "librepdl": reproducible}
_TITLES = {"plain": "plain PyTorch", "flags": "deterministic flags", "librepdl": "librepdl"}
#: Profiled rounds; a profile makes the run slower, so that these are beside those that are timed.
_PROFILED = 3


@dataclass(frozen=True)
class Spread:
    """A median, and the least and greatest of the rounds."""

    median: float
    least: float
    greatest: float

    @staticmethod
    def of(values: list[float]) -> "Spread":
        return Spread(statistics.median(values), min(values), max(values))

    def text(self, form: str) -> str:
        return f"{self.median:{form}}  ({self.least:{form}} to {self.greatest:{form}})"


@dataclass(frozen=True)
class Cost:
    """Times of train() in three ways: "plain", "flags" (PyTorch's deterministic algorithms) and "librepdl"."""

    seconds: dict[str, list[float]]  #: of each way, each round's
    operations: dict[str, dict[str, list[float]]]  #: of each of aten's operations and each way, milliseconds in each profiled round
    failed: dict[str, str]  #: ways that train() raised an error in
    machine: str

    def determinism_cost_pct(self, way: str) -> Spread:
        """By how many per cent train() takes longer than in plain PyTorch: of the ratios within each round. `way`: "flags" or "librepdl"."""
        if way not in self.seconds:
            raise ValueError(f"determinism_cost_pct: way: expected one of {', '.join(self.seconds)}, got {way!r}"
                             + (f", which failed: {self.failed[way]}" if way in self.failed else ""))
        return Spread.of([100 * (a / b - 1) for a, b in zip(self.seconds[way], self.seconds["plain"])])

    def _by_operation(self) -> list[tuple[str, dict[str, float]]]:
        """Medians in milliseconds, those that take longest in any way first."""
        found = [(name, {way: statistics.median(of[way]) for way in self.seconds}) for name, of in self.operations.items()]
        return sorted(found, key=lambda item: -max(item[1].values()))

    def __str__(self) -> str:
        rounds = len(self.seconds["plain"])
        rows = [(_TITLES[way], Spread.of(times).text(".4g"), "" if way == "plain" else self.determinism_cost_pct(way).text("+.1f"))
                for way, times in self.seconds.items()]
        head = (f"median of {rounds} rounds, (least to greatest)", "seconds", "more than plain, %")
        operations = self._by_operation()
        shown = [row for row in operations[:20] if max(row[1].values()) > 0]
        ways = list(self.seconds)
        lines = [_report.table(head, rows), *(f"{_TITLES[way]}: failed: {why}" for way, why in self.failed.items()), "",
                 _report.table(("operation, ms", *(_TITLES[way] for way in ways)),
                               [(name, *(f"{of[way]:.3f}" for way in ways)) for name, of in shown], right=range(1, 4))]
        if len(operations) > len(shown):
            lines.append(f"and {len(operations) - len(shown)} others: json() has them")
        return "\n".join([*lines, self.machine])

    def json(self) -> str:
        """Every time, and the medians."""
        return _report.as_json({
            "machine": self.machine, "seconds": self.seconds, "failed": self.failed,
            "determinism_cost_pct": {way: asdict(self.determinism_cost_pct(way)) for way in self.seconds if way != "plain"},
            "operations_ms": self.operations})

    def plot(self, path: str | os.PathLike[str]) -> None:
        """A bar for each way and operation, the ten that take longest. The name's ending says which format; needs matplotlib."""
        figure, (at,) = _report.axes("cost", height=5)
        shown = self._by_operation()[:10]
        high = 0.8 / len(self.seconds)
        for i, way in enumerate(self.seconds):
            at.barh([k + i * high for k in range(len(shown))], [of[way] for _, of in shown], high, label=_TITLES[way])
        at.set_yticks([k + 0.4 - high / 2 for k in range(len(shown))], [name for name, _ in shown])
        at.invert_yaxis()
        at.set(xlabel="ms")
        at.legend()
        _report.save(figure, path)


def _of_operations(train: Callable[..., Any]) -> dict[str, float]:
    """Milliseconds in each outermost of aten's operations, with all that it calls; on a GPU, of its kernels."""
    with profile(activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if _runs.used_gpu() else [])]) as profiled:
        _runs.finished(train, {})
    events = profiled.events()
    on_gpu = any(event.device_time_total > 0 for event in events)
    found: dict[str, float] = {}
    for event in events:
        parent = event.cpu_parent
        while parent is not None and not parent.name.startswith("aten::"):
            parent = parent.cpu_parent
        if parent is None and event.name.startswith("aten::"):
            took = event.device_time_total if on_gpu else event.cpu_time_total
            found[event.name] = found.get(event.name, 0.0) + took / 1000
    return found


def cost(train: Callable[..., Any], rounds: int = 5) -> Cost:
    """Times train(), which takes no arguments and best makes some steps of training only, in plain PyTorch, with PyTorch's own
    deterministic flags (use_deterministic_algorithms(True), cudnn.deterministic, no cudnn.benchmark) and with librepdl.

    The ways take turns, `rounds` times, forwards and backwards, after a run of each that is not counted; the first rounds are made again
    under the profiler, for the times of operations. Every run begins with the random generators as they are now, and ends with everything
    that train reaches as it was. A way in which train() raises RuntimeError, or what librepdl refuses, is in `failed`.

    Start Python with OMP_WAIT_POLICY=passive on a busy machine. On a GPU PyTorch's flags want CUBLAS_WORKSPACE_CONFIG=:4096:8.

    Raises ValueError and TypeError that name the argument; in plain PyTorch, what train raises.
    """
    _runs.checked("cost", train)
    if not isinstance(rounds, int) or rounds < 1:
        raise ValueError(f"cost: rounds: expected a number of 1 or more, got {rounds!r}")
    start = _runs.Start(train)
    failed: dict[str, str] = {}
    for name, way in _WAYS.items():
        try:
            with start.begin(), way():
                _runs.finished(train, {})
        except RuntimeError as e:  # NotImplementedError too
            if name == "plain":
                raise
            failed[name] = str(e)
    ways = {name: way for name, way in _WAYS.items() if name not in failed}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    profiles: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for k in range(rounds):
        for name, way in list(ways.items())[:: -1 if k % 2 else 1]:
            with start.begin(), way():
                began = time.perf_counter()
                _runs.finished(train, {})
                seconds[name].append(time.perf_counter() - began)
            if k < _PROFILED:
                with start.begin(), way():
                    profiles[name].append(_of_operations(train))
    names = sorted({operation for of in profiles.values() for one in of for operation in one})
    operations = {operation: {name: [one.get(operation, 0.0) for one in of] for name, of in profiles.items()} for operation in names}
    return Cost(seconds, operations, failed, _report.machine())
