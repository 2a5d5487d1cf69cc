"""python -m librepdl.torch: build, status, run, verify, compare, noise, cost, catalogue."""

import argparse
import functools
import importlib.util
import io
import os
import runpy
import sys
import types
from pathlib import Path
from typing import Any, NoReturn

from librepdl.torch import _build, enable, reproducible, status
from librepdl.torch.evidence import _command, _compare


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


def _program(options: argparse.Namespace) -> None:
    name, *arguments = options.program
    sys.argv = [name, *arguments]
    if options.module:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    elif os.path.isdir(name):
        runpy.run_path(name, run_name="__main__")
    else:
        _run_script(name)


def _file_of(options: argparse.Namespace) -> Path | None:
    """The program's first file."""
    name = options.program[0]
    if not options.module:
        return Path(name, "__main__.py") if os.path.isdir(name) else Path(name)
    try:
        found = importlib.util.find_spec(name)
        if found is not None and found.submodule_search_locations is not None:
            found = importlib.util.find_spec(f"{name}.__main__")
    except ImportError:  # runpy says what is wrong
        return None
    return Path(found.origin) if found is not None and found.origin is not None else None


def _run(options: argparse.Namespace) -> None:
    """The program, after enable(): what it makes, data too, is librepdl's. Its exit status and tracebacks are its own."""
    if options.plain and (options.reproducible or options.no_strict):
        _stop("run", "--plain: expected neither --reproducible nor --no-strict beside it")
    if not options.plain:
        enable(not options.no_strict)
    sys.excepthook = _without_us(sys.excepthook)
    if options.manifest is None and options.verify is None:
        _program(options)
    else:
        _run_recorded(options)


def _run_recorded(options: argparse.Namespace) -> None:
    """The program, then its record, and what differs from another record."""
    from librepdl.torch.evidence import _manifest, _recorder

    say = functools.partial(print, "librepdl.torch run:", file=sys.stderr)
    into = None if options.manifest is None else options.manifest.absolute()  # the program may change the directory
    if into is not None and (into.is_dir() or not os.access(into.parent, os.W_OK)):
        _stop("run", f"--manifest: expected a file in a directory that can be written, got {options.manifest}")
    other = None if options.verify is None else _load("run", options.verify)
    ran = {} if other is None or other["may_differ"]["command"] is None else other["may_differ"]["command"]["run"] or {}
    every = ran.get("every", 0) if options.every is None else options.every
    variables = sorted(options.env or ran.get("variables", ()))
    file = _file_of(options)
    if file is None or not file.is_file():
        _stop("run", f"expected a program in a file, to record it, got {options.program[0]!r}")
    try:
        manifest = _manifest.Manifest(variables=variables, program=file)
    except ValueError as e:
        _stop("run", str(e))
    interpreter = sys.orig_argv[1:sys.orig_argv.index("-m")] if "-m" in sys.orig_argv else []
    manifest.command = {"directory": os.getcwd(), "arguments": options.program, "run": {
        "python": interpreter, "strict": not options.no_strict, "plain": options.plain, "every": every, "data": not options.no_data,
        "module": options.module, "variables": variables}}
    manifest.arguments = options.program[1:]
    status: int | str | None = 0
    try:
        with _recorder.Recorder(manifest, every, not options.no_data) as recorder:
            _program(options)
    except SystemExit as e:
        status = e.code
    except BaseException:
        say("no record, since the program ended with an error")
        raise
    record = recorder.record(status if isinstance(status, int) else int(status is not None))
    if record is not None and into is not None:
        _manifest.write(record, into)
        say(f"id {record['id']}, agreement {record['agreement']}")
    if record is not None and other is not None:
        comparison = _manifest.compare(other, record, options.may_differ)
        say(f"{options.verify}: {'the same' if comparison else 'not the same'}")
        if str(comparison):
            print(comparison, file=sys.stderr)
        if not comparison and status in (0, None):
            status = 1
    sys.exit(status)


def _stop(command: str, text: str) -> NoReturn:
    print(f"python -m librepdl.torch {command}: {text}", file=sys.stderr)
    sys.exit(2)


def _load(command: str, path: str) -> dict[str, Any]:
    from librepdl.torch.evidence import BadManifest, load

    try:
        return load(path)
    except BadManifest as e:
        _stop(command, str(e))
    except OSError as e:
        _stop(command, f"{path}: {e.strerror}")


def _check(record: dict[str, Any], required: set[str]) -> int:
    """Status 1 if what is required is not complete."""
    from librepdl.torch.evidence import checklist

    lacks = checklist(record)
    print(f"id            {record['id']}\nagreement     {record['agreement']}")
    for category, text in lacks.items():
        print(f"{category:14}{text or 'complete'}")
    missing = sorted(category for category in required if lacks[category])
    if missing:
        print(f"required and not complete: {', '.join(missing)}")
    return int(bool(missing))


def _verify(options: argparse.Namespace) -> int:
    """Status 0 where all is as it should be, else 1."""
    from librepdl.torch.evidence import NoReplay, compare, replay

    record = _load("verify", options.record)
    if options.check or options.require:
        return _check(record, options.require)
    try:
        comparison = compare(record, replay(record, options.directory), options.may_differ)
    except NoReplay as e:
        print(f"{options.record}: NOT VERIFIED: {e}")
        return 1
    print(f"{options.record}: {'the same' if comparison else 'NOT THE SAME'}" + (f"\n{comparison}" if str(comparison) else ""))
    return int(not comparison)


def _categories(text: str) -> set[str]:
    from librepdl.torch.evidence import _manifest

    try:
        return _manifest.known(text.split(","))
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from e


def _steps(text: str) -> int:
    if not text.isdecimal() or (text != "0" and int(text) < 1):
        raise argparse.ArgumentTypeError(f"expected a number of steps, 0 for the powers of 2, got {text!r}")
    return int(text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m librepdl.torch", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="compile the library for the PyTorch that is installed, as the first enable() does; "
                                              "its path is printed")
    build.add_argument("--into", metavar="DIR", type=Path, help="write it and its digest into DIR, to be shipped in librepdl/torch/prebuilt of "
                                                                "a wheel")
    commands.add_parser("status", help="versions, and what is replaced, passed and refused")
    run = commands.add_parser("run", help="enable, then run a script or a module as __main__, with its arguments",
                              usage="%(prog)s [--no-strict | --plain] [--manifest FILE] [--verify FILE] [option ...] (script.py | -m module) "
                                    "[argument ...]")
    run.add_argument("--reproducible", action="store_true", help="compute with librepdl: what happens anyhow, unless --plain")
    run.add_argument("--no-strict", action="store_true", help="what librepdl lacks is computed by PyTorch")
    run.add_argument("--plain", action="store_true", help="compute with PyTorch alone, to make a record of that")
    run.add_argument("--manifest", metavar="FILE", type=Path, help="write the record of the run there when the program has ended by itself")
    run.add_argument("--verify", metavar="FILE", help="compare with that record at the end; status 1 if something differs that must agree")
    run.add_argument("--every", metavar="N", type=_steps, help="fingerprints each N steps of optimisers; default: at 1, 2, 4, 8, ..., or as "
                                                                         "--verify's record has them")
    run.add_argument("--env", metavar="NAME", action="append", default=[], help="an environment variable that matters; can be given more than once")
    run.add_argument("--no-data", action="store_true", help="do not hash the files that the program reads")
    run.add_argument("--may-differ", metavar="CATEGORY,...", type=_categories, default=set(), help="of --verify: told, and no failure")
    run.add_argument("-m", dest="module", action="store_true", help="the program is a module's name")
    run.add_argument("program", nargs=argparse.REMAINDER, help="script.py, or a module, and its arguments")
    verify = commands.add_parser("verify", help="run the program of a record again and compare: status 0, or 1 and what differs first")
    verify.add_argument("record", metavar="run.json", help="what run --manifest or Manifest.save() wrote")
    verify.add_argument("--directory", metavar="DIR", help="where the program runs; default: where it ran")
    verify.add_argument("--may-differ", metavar="CATEGORY,...", type=_categories, default=set(), help="told, and no failure")
    verify.add_argument("--check", action="store_true", help="run nothing: say which categories of the record are complete")
    verify.add_argument("--require", metavar="CATEGORY,...", type=_categories, default=set(),
                        help="as --check, with status 1 unless these are complete")
    _compare.add(commands)
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
    elif options.command == "verify":
        sys.exit(_verify(options))
    elif not options.program:
        run.error("expected a script, or -m and a module")
    else:
        _run(options)


if __name__ == "__main__":
    main()
