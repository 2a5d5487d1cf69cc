"""The program of a record, run again."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from librepdl.torch.evidence._manifest import INTO, Comparison, compare, load


class NoReplay(RuntimeError):
    """The program of a record cannot be run here, or ended without a record."""


def run_options(run: Mapping[str, Any]) -> list[str]:
    """Of a record's command, as `python -m librepdl.torch run` takes them."""
    flags = {"--no-strict": not run["strict"], "--plain": run["plain"], "--no-data": not run["data"], "-m": run["module"]}
    return [f"--every={run['every']}", *(f"--env={name}" for name in run["variables"]), *(flag for flag, on in flags.items() if on)]


def replay(record: Mapping[str, Any], directory: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Runs the program of a record again, in its directory or another one, with the environment variables that it has, and returns the new
    record. Raises NoReplay."""
    command = record["may_differ"]["command"]
    if command is None:
        raise NoReplay("the record is of an interactive session: expected a program that can be run again")
    place = Path(directory or command["directory"])
    if not place.is_dir():
        raise NoReplay(f"{place}: expected the directory that the program runs in; --directory names another one")
    environment = dict(os.environ)
    for name, value in record["must_agree"]["configuration"]["variables"].items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    with tempfile.TemporaryDirectory() as work:
        into = Path(work) / "run.json"
        environment.pop(INTO, None)
        if command["run"] is None:  # the program makes its record itself
            environment[INTO] = str(into)
            arguments = command["arguments"]
        else:
            arguments = [*command["run"]["python"], "-m", "librepdl.torch", "run", f"--manifest={into}", *run_options(command["run"]),
                         *command["arguments"]]
        done = subprocess.run([sys.executable, *arguments], cwd=place, env=environment)
        if not into.exists():
            raise NoReplay(f"{' '.join(command['arguments'])}: ended with status {done.returncode} and left no record")
        return load(into)


def verify(path: str | os.PathLike[str], *, directory: str | os.PathLike[str] | None = None, may_differ: Iterable[str] = ()) -> Comparison:
    """Runs the program of a record again and compares. The result is true where everything agrees that must, and says what differs first.

    directory: where the program runs, if not where it ran. may_differ: categories whose differences are told, and no failure.
    Raises BadManifest for a file that is no record as it was written, NoReplay where the program cannot be run or leaves no record.
    """
    record = load(path)
    compare(record, record, may_differ)  # errors before the run
    return compare(record, replay(record, directory), may_differ)
