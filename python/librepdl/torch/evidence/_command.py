"""Commands of python -m librepdl.torch: noise, cost, catalogue."""

import argparse
import contextlib
import importlib
import importlib.util
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from librepdl.torch.evidence import _report
from librepdl.torch.evidence._catalogue import catalogue
from librepdl.torch.evidence._cost import cost
from librepdl.torch.evidence._noise import SETTINGS, VARIED, noise_floor


class Mistaken(Exception):
    """What was typed; the message says what was expected."""


def function_of(text: str, arguments: list[str]) -> Callable[..., Any]:
    """"script.py:function" or "module:function". The script is imported, not run as __main__; sys.argv is as if it were, with `arguments`."""
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name:
        raise Mistaken(f"expected script.py:function or module:function, got {text!r}")
    sys.argv = [place, *arguments]
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise Mistaken(f"no file {place!r}")
        if path.stem in sys.modules:
            raise Mistaken(f"{place!r} has the name of a module that Python has imported already; give it another")
        sys.path.insert(0, str(path.resolve().parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, os.curdir)
        if importlib.util.find_spec(place.partition(".")[0]) is None:
            raise Mistaken(f"no module {place!r}")
        module = importlib.import_module(place)
    function = getattr(module, name, None)
    if not callable(function):
        raise Mistaken(f"{place} has no function {name!r}")
    return function  # type: ignore[no-any-return]


@contextlib.contextmanager
def _mistakes(parser: argparse.ArgumentParser) -> Iterator[None]:
    """What was typed wrongly: one line and exit status 2. What the user's function raises is its own."""
    try:
        yield
    except Mistaken as e:
        parser.error(str(e))


def _noise(o: argparse.Namespace) -> Any:
    return noise_floor(o.train, o.vary.split(",") if o.vary else VARIED)


def _cost(o: argparse.Namespace) -> Any:
    return cost(o.train, o.rounds)


def _catalogue(o: argparse.Namespace) -> Any:
    return catalogue(o.train)


def _rounds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of 1 or more, got {text!r}")
    return int(text)


def _vary(text: str) -> str:
    unknown = [name for name in text.split(",") if name not in SETTINGS]
    if unknown:
        raise argparse.ArgumentTypeError(f"expected names of {', '.join(SETTINGS)}, with commas between them, got {unknown[0]!r}")
    return text


def _file(text: str) -> Path:
    """Before anything runs: whether it can be written there."""
    if not Path(text).parent.is_dir():
        raise argparse.ArgumentTypeError(f"no directory {str(Path(text).parent)!r}")
    return Path(text)


def _picture(text: str) -> Path:
    """And whether it can be drawn."""
    try:
        _report.format_of(_report.axes("--plot")[0], text)
    except (ModuleNotFoundError, ValueError) as e:
        raise argparse.ArgumentTypeError(str(e)) from e
    return _file(text)


def add(commands: Any) -> None:
    """Their parsers, to those of `add_subparsers()`. Each sets `act`, which takes the options and returns the exit status."""
    for name, run, text, picture in (
            ("noise", _noise, "how far a training in plain PyTorch ends from itself, with settings that should not matter; and with librepdl. "
                              "Status 1 where librepdl's runs differ or it refuses something", True),
            ("cost", _cost, "what reproducibility costs a training: PyTorch's deterministic flags, and librepdl", True),
            ("catalogue", _catalogue, "every operation of a training step, and what computes it. Status 1 where librepdl refuses one", False)):
        parser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        parser.add_argument("function", help="script.py:function or module:function; it is called without arguments")
        parser.add_argument("--arguments", type=shlex.split, default=[], metavar="TEXT",
                            help="what it finds in sys.argv, as a shell would split it: --arguments='--steps 3'")
        parser.add_argument("--json", metavar="FILE", type=_file, help="write the report there, too")
        if picture:
            parser.add_argument("--plot", metavar="FILE", type=_picture, help="write a picture there: .svg, .png, .pdf; needs matplotlib")
        if name == "noise":
            parser.add_argument("--vary", type=_vary, metavar="NAMES", help=f"of {','.join(SETTINGS)}; default: all but batch_order")
        if name == "cost":
            parser.add_argument("--rounds", type=_rounds, default=5, help="default: 5")

        def act(o: argparse.Namespace, parser: argparse.ArgumentParser = parser, run: Callable[[argparse.Namespace], Any] = run) -> int:
            with _mistakes(parser):
                o.train = function_of(o.function, o.arguments)
            report = run(o)
            print(report)
            if o.json:
                _report.write(o.json, report.json())
            if getattr(o, "plot", None):
                report.plot(o.plot)
            return 0 if o.command == "cost" or report else 1

        parser.set_defaults(act=act)
