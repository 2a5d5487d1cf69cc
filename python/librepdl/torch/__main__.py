"""python -m librepdl.torch: build, status, run, noise, cost, catalogue."""

import argparse
import io
import os
import runpy
import sys
import types
from pathlib import Path
from typing import Any

from librepdl.torch import _build, enable, reproducible, status
from librepdl.torch.evidence import _command


def _without_us(shown: Any) -> Any:
    """An excepthook that leaves out the frames before the program's own."""
    def hook(kind: Any, error: BaseException, trace: types.TracebackType | None) -> None:
        while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
            trace = trace.tb_next
        shown(kind, error.with_traceback(trace), trace)

    return hook


def _run_script(path: str) -> None:
    """As `python path` does: in a module __main__ that stays."""
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__, __cached__=None)
    try:
        with io.open_code(path) as file:
            code = compile(file.read(), path, "exec")
    except OSError as e:
        print(f"python -m librepdl.torch run: can't open file {path!r}: {e.strerror}", file=sys.stderr)
        sys.exit(2)
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _run(options: argparse.Namespace) -> None:
    """The program, after enable(): what it makes, data too, is librepdl's. Its exit status and tracebacks are its own."""
    name, *arguments = options.program
    enable(not options.no_strict)
    sys.excepthook = _without_us(sys.excepthook)
    sys.argv = [name, *arguments]
    if options.module:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    elif os.path.isdir(name):
        runpy.run_path(name, run_name="__main__")
    else:
        _run_script(name)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m librepdl.torch", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="compile the library for the PyTorch that is installed, as the first enable() does; "
                                              "its path is printed")
    build.add_argument("--into", metavar="DIR", type=Path, help="write it and its digest into DIR, to be shipped in librepdl/torch/prebuilt of "
                                                                "a wheel")
    commands.add_parser("status", help="versions, and what is replaced, passed and refused")
    run = commands.add_parser("run", help="enable, then run a script or a module as __main__, with its arguments",
                              usage="%(prog)s [--no-strict] (script.py | -m module) [argument ...]")
    run.add_argument("--no-strict", action="store_true", help="what librepdl lacks is computed by PyTorch")
    run.add_argument("-m", dest="module", action="store_true", help="the program is a module's name")
    run.add_argument("program", nargs=argparse.REMAINDER, help="script.py, or a module, and its arguments")
    _command.add(commands)
    options = parser.parse_args()
    if "act" in options:
        sys.exit(options.act(options))
    if options.command == "build":
        try:
            path = _build.library()
            if path.parent == _build.PREBUILT:
                print("librepdl.torch: the library came with the package", file=sys.stderr)
            print(_build.ship(path, options.into) if options.into else path)
        except (_build.NoCompiler, _build.UntrustedCache) as e:
            sys.exit(str(e))
        except OSError as e:
            sys.exit(f"python -m librepdl.torch build --into {options.into}: {e}")
    elif options.command == "status":
        with reproducible():
            for key, value in status().items():
                print(f"{key:12} {value}")
    elif not options.program:
        run.error("expected a script, or -m and a module")
    else:
        _run(options)


if __name__ == "__main__":
    main()
