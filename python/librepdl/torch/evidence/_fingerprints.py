"""Fingerprints of a training as it goes, in a file that is compared with another run's."""

import logging
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

import librepdl
from librepdl.torch import _parts, fingerprint, is_enabled
from librepdl.torch._door import door
from librepdl.torch.evidence._files import read_json, write_json

FORMAT = "librepdl fingerprints 1"
_log = logging.getLogger("librepdl.torch.evidence")


class DifferentBits(RuntimeError):
    """Something that should have the same bits again has others."""


def hashes(state: Any) -> dict[str, str]:
    """Of every tensor and number of a state, by its path: 16 hexadecimal digits of its fingerprint, enough to say which one differs."""
    return {path or "state": fingerprint(value)[:16] for path, value in _parts("", state) if not callable(value) or isinstance(value, torch.Tensor)}


def first_different(one: Mapping[str, Any], other: Mapping[str, Any], common: bool = False) -> str | None:
    """The first name under which two mappings have other values, with both of them, or None; common: names of both alone."""
    for name in [*one, *other]:
        values = [repr(values[name]) if name in values else "absent" for values in (one, other)]  # -0.0 is not 0.0
        if values[0] != values[1] and not (common and "absent" in values):
            return f"{name}: {values[0]} and {values[1]}"
    return None


def _numbers(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON has them, exactly: Python writes of a float the shortest decimal that reads back as the same one."""
    found: dict[str, Any] = {}
    for name, value in metrics.items():
        number = value.item() if hasattr(value, "item") else value  # of PyTorch and NumPy
        if not isinstance(number, (int, float)):
            raise TypeError(f"metrics: {name}: expected a number, got {type(value).__name__}")
        found[name] = number if math.isfinite(number) else str(number)
    return found


def _made_with() -> dict[str, Any] | None:
    """What the bits depend on; None where PyTorch computes."""
    if not is_enabled():
        return None
    found = dict(door().status())
    return {"bits": librepdl.info()["bits_version"], "policy": int(found["policy"]), "strict": found["strict"] == "1"}


def _place(entry: Mapping[str, Any]) -> str:
    return f"step {entry['step']}" if entry.get("epoch") is None else f"epoch {entry['epoch']}, step {entry['step']}"


def _difference(one: Mapping[str, Any], other: Mapping[str, Any], common: bool = False) -> str | None:
    """Of two entries of one step, tensors first, for their names say more; common: metrics that both have alone."""
    for key in ("tensors", "fingerprints", "metrics"):
        if key in one and key in other:  # without tensors a file says less, nothing else
            found = first_different(one[key], other[key], common and key == "metrics")
            if found is not None:
                return f"{key.removesuffix('s')} {found}"
    return None


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    return read_json(path, FORMAT, "Fingerprints")


def compare_fingerprints(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> str | None:
    """The first difference of two files that Fingerprints wrote, in the order of the trainings, or None where they are of the same bits."""
    a, b = read(one), read(other)
    if a["made with"] != b["made with"]:
        return f"made with: {a['made with']} and {b['made with']}"
    for x, y in zip(a["entries"], b["entries"], strict=False):
        found = first_different({"place": _place(x)}, {"place": _place(y)}) or _difference(x, y)
        if found is not None:
            return f"{_place(x)}: {found}"
    if len(a["entries"]) != len(b["entries"]):
        return f"entries: {len(a['entries'])} and {len(b['entries'])}"
    if ("final" in a) != ("final" in b):
        return "final: " + " and ".join("present" if "final" in c else "absent" for c in (a, b))
    found = _difference(a.get("final", {}), b.get("final", {}))
    return f"final: {found}" if found else first_different({"best": a.get("best")}, {"best": b.get("best")})


class Fingerprints:
    """A file of what a training is at its steps: fingerprints of model, optimiser and whatever is given, and metrics, exactly.

        fingerprints = Fingerprints("fingerprints.json", monitor="val_loss")
        for epoch in range(epochs):
            ...
            fingerprints.add(step, {"model": model, "optimizer": optimizer}, {"val_loss": loss}, epoch=epoch)

    Runs that computed the same bits write the same bytes: nothing in the file depends on the machine or the time. compare_fingerprints() names
    the first difference of two files. The file is written anew, by rename, with every entry.

    monitor, mode: the metric, and "min" or "max", by which `best` is chosen: of equal ones the first, of NaNs none
    against: a file of another run: add() raises DifferentBits at the first step that differs
    tensors: a hash for each tensor, too, so that differences have a name; False: a smaller file, for many steps of large models
    """

    def __init__(self, path: str | os.PathLike[str], *, monitor: str | None = None, mode: str = "min",
                 against: str | os.PathLike[str] | None = None, tensors: bool = True) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"Fingerprints: mode: expected 'min' or 'max', got {mode!r}")
        self.path, self.monitor, self.mode, self.tensors = Path(path), monitor, mode, tensors
        self.entries: list[dict[str, Any]] = []
        self._final: dict[str, Any] | None = None
        self._former: dict[int, dict[str, Any]] = {}  # what a run that was killed wrote of steps that are done again
        self._against = None if against is None else (Path(against), {entry["step"]: entry for entry in read(against)["entries"]})

    def resume(self, step: int) -> None:
        """The training goes on after so many steps. Entries up to there are read from the file; later ones, of a run that was killed, are
        compared with what the same steps give now: add() raises DifferentBits where one differs."""
        entries = read(self.path)["entries"] if self.path.exists() else []
        self.entries = [entry for entry in entries if entry["step"] <= step]
        self._former = {entry["step"]: entry for entry in entries if entry["step"] > step}
        self._final = None

    def add(self, step: int, state: Mapping[str, Any], metrics: Mapping[str, Any] | None = None, epoch: int | None = None) -> None:
        """An entry, after so many steps: `state`, what librepdl.torch.fingerprint takes, by its names, and the state of PyTorch's random
        numbers; `metrics`, numbers by their names. Of the last entry's step again, as after resume(): the two are compared."""
        last = self.entries[-1]["step"] if self.entries else None
        if last is None and not is_enabled():
            _log.warning("librepdl is not enabled: these are fingerprints of what PyTorch's own kernels compute on this machine")
        if last is not None and step < last:
            raise ValueError(f"Fingerprints.add: step: expected {last}, the last entry's, or more, got {step}; resume() goes back")
        numbers = _numbers(metrics or {})
        entry = {"step": step, **({} if epoch is None else {"epoch": epoch}), **self._of({**state, "random": torch.get_rng_state()}),
                 "metrics": {}}
        if step == last:
            self._check(entry, {step: self.entries[-1]}, "before")
        else:
            self.entries.append(entry)
        self._take(numbers)

    def amend(self, metrics: Mapping[str, Any]) -> None:
        """More metrics of the last entry, such as those of an evaluation after it. Raises ValueError where there is no entry yet."""
        if not self.entries:
            raise ValueError("Fingerprints.amend: expected an entry, which add() makes, found none")
        self._take(_numbers(metrics))

    def _take(self, numbers: Mapping[str, Any]) -> None:
        """Metrics of the last entry, which is written, logged and compared."""
        entry = self.entries[-1]
        entry["metrics"] = dict(sorted({**entry["metrics"], **numbers}.items()))
        self._write()
        _log.info("%s: %s, metrics %s", _place(entry), entry["fingerprints"], entry["metrics"])
        if entry["step"] in self._former:
            self._check(entry, self._former, "before the interruption")
        if self._against is not None:
            self._check(entry, self._against[1], f"in {self._against[0]}")

    def finish(self, state: Mapping[str, Any]) -> None:
        """What the training made in the end, where that is not what it was at the last step: a best model that was loaded again."""
        self._final = self._of(state)
        self._write()

    @property
    def best(self) -> dict[str, Any] | None:
        """The best entry's step, epoch and value of the metric `monitor`."""
        name = self.monitor
        found = [entry for entry in self.entries if isinstance(entry["metrics"].get(name), (int, float))]
        if name is None or not found:
            return None
        sign = 1 if self.mode == "min" else -1
        entry = min(found, key=lambda e: sign * e["metrics"][name])
        return {"metric": name, "value": entry["metrics"][name], "step": entry["step"], **({"epoch": entry["epoch"]} if "epoch" in entry else {})}

    def _of(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return {"fingerprints": {name: fingerprint(value) for name, value in state.items()},
                **({"tensors": hashes(state)} if self.tensors else {})}

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, {"format": FORMAT, "made with": _made_with(), "entries": self.entries,
                               **({} if self.best is None else {"best": self.best}), **({} if self._final is None else {"final": self._final})})

    @staticmethod
    def _check(entry: Mapping[str, Any], others: Mapping[int, Mapping[str, Any]], where: str) -> None:
        if entry["step"] not in others:
            raise DifferentBits(f"{_place(entry)}: expected an entry of this step {where}, found none")
        found = _difference(entry, others[entry["step"]], common=True)
        if found is not None:
            raise DifferentBits(f"{_place(entry)}: {found}; the first is this run's, the second was {where}")
