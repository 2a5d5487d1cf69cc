"""The record of a run: made while it runs, kept in a file under its own digest, compared with another one's. docs/evidence.md has the format."""

import hashlib
import json
import math
import os
import random
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import librepdl
from librepdl.torch import _door, _parts, fingerprint, is_enabled, status
from librepdl.torch.evidence import _surroundings
from librepdl.torch.evidence._files import write_json

FORMAT = "librepdl run 1"
#: What two records of one run have in common, in the order in which a difference in one makes differences in the next.
MUST_AGREE = ("code", "configuration", "data", "arithmetic", "random", "fingerprints")
#: What may be another on another machine: told, and no failure.
MAY_DIFFER = ("command", "environment", "hardware")
CATEGORIES = MUST_AGREE + MAY_DIFFER
#: Where a replay wants the record of a program that calls Manifest.save().
INTO = "LIBREPDL_MANIFEST"
#: torch.initial_seed() where nobody called torch.manual_seed.
_NO_SEED = 67280421310721


class BadManifest(ValueError):
    """A file is not the record of a run, was damaged or edited, or has a format of another version."""


def _sha256(*texts: bytes) -> str:
    h = hashlib.sha256()
    for text in texts:
        h.update(text)
    return h.hexdigest()


def canonical(value: Any) -> bytes:
    """The text that digests are of: JSON with sorted keys, ASCII, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _plain(value: Any, path: str) -> Any:
    """As JSON: floats as their hexadecimal text, so that no bit is lost, tuples as lists, paths as texts."""
    if isinstance(value, float):
        return {"float": value.hex() if math.isfinite(value) else str(value)}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{path}/{i}") for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"manifest: {path}: expected keys that are strings, got {key!r}")
        return {key: _plain(item, f"{path}/{key}") for key, item in value.items()}
    raise TypeError(f"manifest: {path}: expected numbers, strings, None, lists and dicts, got {type(value).__name__}")


def _generators() -> dict[str, str]:
    """Digests of the states of the generators that all machines have."""
    kind, keys, place, has_normal, normal = np.random.get_state(legacy=True)
    return {"python": _sha256(repr(random.getstate()).encode()),
            "numpy": _sha256(f"{kind} {place} {has_normal} {float(normal).hex()} ".encode(), np.asarray(keys).tobytes()),
            "torch": _sha256(torch.get_rng_state().numpy().tobytes())}


def _tensors(value: Any) -> Any:
    """NumPy's arrays and numbers as tensors, in lists and dicts too."""
    if isinstance(value, (np.ndarray, np.generic)):
        return torch.from_numpy(np.array(value))
    if isinstance(value, Mapping):
        return {key: _tensors(item) for key, item in value.items()}
    return [_tensors(item) for item in value] if isinstance(value, (list, tuple)) else value


def _of_file(path: Path) -> dict[str, Any]:
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path}: expected a file or a directory")
    return {"kind": "file", "sha256": _surroundings.digest_of_file(path), "bytes": path.stat().st_size}


def _of_directory(path: Path) -> dict[str, Any]:
    """Names and contents of all files below, sorted by name."""
    def stop(error: OSError) -> None:
        raise error

    files: list[Path] = []
    for directory, below, names in os.walk(path, onerror=stop):
        for link in (Path(directory, name) for name in below):
            if link.is_symlink():
                raise ValueError(f"{link}: expected no links to directories below {path}; give their targets as data of their own")
        files += [Path(directory, name) for name in names]
    entries = [(file.relative_to(path).as_posix(), _of_file(file)) for file in sorted(files)]
    return {"kind": "directory", "sha256": _sha256(canonical([[name, of["sha256"]] for name, of in entries])), "files": len(entries),
            "bytes": sum(of["bytes"] for _, of in entries)}


def _of_path(path: Path) -> dict[str, Any]:
    return _of_directory(path) if path.is_dir() else _of_file(path)


class _Sequence:
    """Items in their order: a digest of their digests."""

    def __init__(self, name: str) -> None:
        self.name, self.count, self.sum = name, 0, hashlib.sha256()

    def add(self, item: Any) -> None:
        try:
            self.sum.update((_of_path(item)["sha256"] if isinstance(item, Path) else fingerprint(_tensors(item))).encode())
        except (TypeError, ValueError) as e:
            raise (TypeError if isinstance(e, TypeError) else ValueError)(f"manifest: data {self.name!r}, item {self.count}: {e}") from e
        self.count += 1

    def entry(self) -> dict[str, Any]:
        return {"kind": "sequence", "sha256": self.sum.hexdigest(), "items": self.count}


class Manifest:
    """The record of this process's run, from here on. Call it first, then data() and fingerprint() along the way, save() at the end:

        record = evidence.manifest({"lr": 0.1, "epochs": 3}, seeds={"torch": 1})
        record.data("train", "data/train.csv")
        ...
        record.fingerprint(f"epoch {epoch}", {"model": model, "optimizer": optimizer})
        ...
        print(record.save("run.json"))  # its id

    config: what the program was configured with, as JSON would have it. variables: names of environment variables that matter
    (PYTHONHASHSEED is among them). seeds: what Python's and NumPy's generators were seeded with, which cannot be asked of them (keys "python",
    "numpy"; PyTorch's is known). program: the script, where it is not the one that Python was started with.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, *, variables: Iterable[str] = (), seeds: Mapping[str, int] | None = None,
                 program: str | os.PathLike[str] | None = None) -> None:
        if config is not None and not isinstance(config, Mapping):
            raise TypeError(f"manifest: config: expected a dict, got {type(config).__name__}")
        if isinstance(variables, str):
            raise TypeError(f"manifest: variables: expected a list of names, got the text {variables!r}")
        variables = {"PYTHONHASHSEED", *variables}
        for name in variables:
            if not name or "=" in name:
                raise ValueError(f"manifest: variables: expected the names of environment variables, got {name!r}")
        unknown = set(seeds or {}) - {"python", "numpy"}
        if unknown:
            raise ValueError(f"manifest: seeds: expected the keys python and numpy, got {min(unknown)!r}")
        main = program or getattr(sys.modules["__main__"], "__file__", None)
        self.program = Path(main).resolve() if main else None
        self.seeds: dict[str, Any] = dict(seeds or {})
        self._config = _plain(config or {}, "config")
        self._variables = {name: os.environ.get(name) for name in variables}
        self.command: dict[str, Any] | None = None if main is None else {"directory": os.getcwd(), "arguments": sys.orig_argv[1:], "run": None}
        self.arguments = sys.argv[1:]
        self.began = time.time_ns()
        self._first_generators = _generators()
        self.files: dict[str, Any] = {}  #: what the program was seen to read, by name
        self._data: dict[str, Any] = {}
        self._sequences: dict[str, _Sequence] = {}
        self._steps: list[dict[str, Any]] = []
        self._modes: set[str] = set()
        self._others: set[str] = set()
        if _door._door is not None:
            status()  # what was noted before is not this run's

    # ---- along the way ----

    def _new(self, name: str) -> None:
        if name in self._data or name in self._sequences:
            raise ValueError(f"manifest: data {name!r}: expected another name, since this one has been given")

    def data(self, name: str, source: Any) -> str:
        """The content of a file or directory (str or Path), a tensor or array, or of an iterable of such in its order (Path: a file's content;
        numbers, strings, lists and dicts of tensors too). Files are read piece by piece. Returns the SHA-256."""
        self._new(name)
        if isinstance(source, (str, os.PathLike)):
            try:
                self._data[name] = _of_path(Path(source))
            except OSError as e:
                raise type(e)(e.errno, f"manifest: data {name!r}: {e.strerror}", str(source)) from e
        elif isinstance(source, (torch.Tensor, np.ndarray)):
            tensor = _tensors(source)
            self._data[name] = {"kind": "tensor", "sha256": fingerprint(tensor), "type": str(tensor.dtype), "shape": list(tensor.shape)}
        elif isinstance(source, Iterable) and not isinstance(source, (Mapping, bytes)):
            for _ in self.stream(name, source):
                pass
        else:
            raise TypeError(f"manifest: data {name!r}: expected a path, a tensor, an array or an iterable of these, got {type(source).__name__}")
        return str(self.entries()[name]["sha256"])

    def stream(self, name: str, items: Iterable[Any]) -> Iterator[Any]:
        """The items as they are, noted in the order in which they are taken: `for batch in record.stream("batches", loader)`."""
        self._new(name)
        self._sequences[name] = _Sequence(name)
        return self._streamed(self._sequences[name], items)

    @staticmethod
    def _streamed(sequence: _Sequence, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            sequence.add(item)
            yield item

    def entries(self) -> dict[str, Any]:
        """What is known so far of the data that were named."""
        return {**self._data, **{name: sequence.entry() for name, sequence in self._sequences.items()}}

    def fingerprint(self, at: str | int, state: Any) -> str:
        """Notes the state (what librepdl.torch.fingerprint takes) at a step, an epoch, the end; each name once. Returns the fingerprint."""
        if any(step["at"] == str(at) for step in self._steps):
            raise ValueError(f"manifest: fingerprint at {str(at)!r}: expected another name, since this one has been given")
        whole = fingerprint(state)
        self._modes.add("PyTorch" if not is_enabled() else "strict" if librepdl.torch._strict else "not strict")
        # Which tensor differs the short digests tell; that none does, the fingerprint.
        self._steps.append({"at": str(at), "sha256": whole, "generator": _generators()["torch"][:16],
                            "parts": {path: fingerprint(value)[:16] for path, value in _parts("", state)}})
        return whole

    # ---- the end ----

    def record(self, ended: int | None = None) -> dict[str, Any]:
        """What is known now, as save() writes it. ended: the status that the program ends with, where it has."""
        last = _generators()
        what = status() if _door._door is not None else {}  # None where nothing was computed with librepdl
        self._others.update(*(what.get(name, ()) for name in ("noted", "overridden", "unseen")))
        record: dict[str, Any] = {
            "format": FORMAT,
            "must_agree": {
                "code": _surroundings.code(self.program, self.began),
                "configuration": {"config": self._config, "arguments": self.arguments, "variables": self._variables},
                "data": {"named": self.entries(), "read": self.files},
                "arithmetic": {"bits": librepdl.info()["bits_version"], "policy": what.get("policy"), "modes": sorted(self._modes),
                               "others": sorted(self._others)},
                # Python and NumPy begin with another state in each process: it is known to matter where it has changed.
                "random": {name: {"state": "as at the beginning" if last[name] == first and name != "torch" else last[name],
                                  "seed": torch.initial_seed() if name == "torch" else self.seeds.get(name)}
                           for name, first in self._first_generators.items()},
                "fingerprints": {"steps": self._steps, "status": ended},
            },
            "may_differ": {"command": self.command, "environment": _surroundings.environment(), "hardware": _surroundings.hardware()},
        }
        return {**record, **digests(record)}

    @property
    def id(self) -> str:
        """SHA-256 of the record as it is now."""
        return str(self.record()["id"])

    def save(self, path: str | os.PathLike[str]) -> str:
        """Writes the record, whole or not at all, and returns its id. (A replay by `python -m librepdl.torch verify` has it elsewhere.)"""
        record = self.record()
        write(record, Path(os.environ.get(INTO) or path))
        return str(record["id"])


def digests(record: Mapping[str, Any]) -> dict[str, str]:
    """`id` is the digest of everything; `agreement` of what must agree, so records of two machines have one."""
    return {"id": _sha256(canonical({key: record[key] for key in ("format", "must_agree", "may_differ")})),
            "agreement": _sha256(canonical(record["must_agree"]))}


def write(record: Mapping[str, Any], path: Path) -> None:
    write_json(path, record, sort_keys=True)


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The record of a file, if it is what was written. Raises BadManifest, OSError."""
    try:
        record = json.loads(Path(path).read_bytes())
    except ValueError as e:
        raise BadManifest(f"{path}: expected the record of a run in JSON: {e}") from e
    if not isinstance(record, dict) or not isinstance(record.get("format"), str):
        raise BadManifest(f"{path}: expected the record of a run, {FORMAT!r}; found no format")
    if record["format"] != FORMAT:
        raise BadManifest(f"{path}: expected the format {FORMAT!r}, got {record['format']!r}: it was written by another version of librepdl")
    for part, names in (("must_agree", MUST_AGREE), ("may_differ", MAY_DIFFER)):
        if not isinstance(record.get(part), dict) or set(record[part]) != set(names):
            raise BadManifest(f"{path}: {part}: expected the categories {', '.join(names)}: the file was damaged or edited")
    for name, expected in digests(record).items():
        if record.get(name) != expected:
            raise BadManifest(f"{path}: its content has the {name} {expected}, but it says {record.get(name)!r}: the file was damaged or edited")
    return record


# ---- comparing ----

_ABSENT = object()


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _first(a: Any, b: Any, path: str = "") -> str | None:
    """Of two values of JSON: where they differ first."""
    if isinstance(a, dict) and isinstance(b, dict):
        pairs: Iterable[tuple[str, Any, Any]] = ((f"{path}/{key}" if path else key, a.get(key, _ABSENT), b.get(key, _ABSENT))
                                                 for key in sorted({*a, *b}))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = ((f"{path}[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b, strict=True)))
    else:
        return None if a == b and type(a) is type(b) else f"{path}: {_shown(a)} and {_shown(b)}"
    for place, x, y in pairs:
        if x is _ABSENT or y is _ABSENT:
            return f"{place}: only in the {'first' if y is _ABSENT else 'second'}"
        found = _first(x, y, place)
        if found is not None:
            return found
    return None


def _first_step(a: dict[str, Any], b: dict[str, Any]) -> str | None:
    """Of two categories of fingerprints: at which step which tensor differs first."""
    others = {step["at"]: step for step in b["steps"]}
    for step in a["steps"]:
        other = others.pop(step["at"], None)
        if other is None:
            return f"at {step['at']}: only in the first"
        if step["sha256"] != other["sha256"]:
            differ = [path for path in {**step["parts"], **other["parts"]} if step["parts"].get(path) != other["parts"].get(path)]
            return f"at {step['at']}: {differ[0] if differ else 'state'}" + (f" and {len(differ) - 1} more" if len(differ) > 1 else "") + \
                f" of {len(step['parts'])} differ"
        if step["generator"] != other["generator"]:
            return f"at {step['at']}: the state of PyTorch's random generator differs, and no tensor"
    for at in others:
        return f"at {at}: only in the second"
    return _first(a, b)


@dataclass(frozen=True)
class Comparison:
    """True where everything agrees that must."""

    different: dict[str, str]  #: category: the first difference
    noted: dict[str, str]  #: the same of what may differ

    def __bool__(self) -> bool:
        return not self.different

    def __str__(self) -> str:
        return "\n".join([*(f"DIFFERS     {category}: {text}" for category, text in self.different.items()),
                          *(f"may differ  {category}: {text}" for category, text in self.noted.items())])


def known(categories: Iterable[str]) -> set[str]:
    """As a set. Raises ValueError if one is no category."""
    chosen = set(categories)
    if chosen - set(CATEGORIES):
        raise ValueError(f"expected categories among {', '.join(CATEGORIES)}, got {min(chosen - set(CATEGORIES))!r}")
    return chosen


def compare(first: Mapping[str, Any], second: Mapping[str, Any], may_differ: Iterable[str] = ()) -> Comparison:
    """Two records. may_differ: categories that are told, and no failure, besides MAY_DIFFER."""
    allowed = known(may_differ) | set(MAY_DIFFER)
    different: dict[str, str] = {}
    noted: dict[str, str] = {}
    for part, names in (("must_agree", MUST_AGREE), ("may_differ", MAY_DIFFER)):
        for name in names:
            if name == "command":  # how to run it again: what of it matters is in the configuration
                continue
            find: Callable[[Any, Any], str | None] = _first_step if name == "fingerprints" else _first
            found = find(first[part][name], second[part][name])
            if found is not None:
                (noted if name in allowed else different)[name] = found
    return Comparison(different, noted)


def checklist(record: Mapping[str, Any]) -> dict[str, str]:
    """For each category what it lacks, or ''. What no record can know is in docs/evidence.md."""
    agree, machine = record["must_agree"], record["may_differ"]
    code, git, arithmetic = agree["code"], agree["code"]["git"], agree["arithmetic"]
    packages = machine["environment"]["packages"]
    lacks: dict[str, list[str]] = {name: [] for name in CATEGORIES}

    def need(category: str, holds: Any, text: str) -> None:
        if not holds:
            lacks[category].append(text)

    need("code", git, "no git repository with a commit")
    need("code", not git or not git["changed"], f"changed since the commit: {', '.join((git or {}).get('changed', ()))}")
    need("code", not git or not git["untracked"], f"not in git: {', '.join((git or {}).get('untracked', ()))}")
    need("code", not code["written_during_run"], f"written during the run: {', '.join(code['written_during_run'])}")
    need("configuration", agree["configuration"]["variables"].get("PYTHONHASHSEED") not in (None, "random"),
         "PYTHONHASHSEED was not set: sets of strings have another order in each process")
    need("data", any(agree["data"].values()), "no data")
    for name, of in agree["random"].items():
        need("random", of["seed"] not in (None, _NO_SEED) or of["state"] == "as at the beginning", f"no seed of {name}'s generator")
    need("arithmetic", arithmetic["modes"] == ["strict"],
         f"expected strict at each fingerprint, had {', '.join(arithmetic['modes']) or 'no fingerprint'}")
    need("arithmetic", not arithmetic["others"], f"not librepdl's: {', '.join(arithmetic['others'])}")
    need("fingerprints", agree["fingerprints"]["steps"], "no fingerprint")
    need("command", machine["command"], "an interactive session")
    without = [name for name, of in packages.items() if of["files"] is None]
    need("environment", not without, f"no digests of the files of {', '.join(without)}")
    need("hardware", machine["hardware"]["cpu"]["model"], "no model of the CPU")
    return {name: "; ".join(texts) for name, texts in lacks.items()}
