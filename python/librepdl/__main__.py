"""python -m librepdl: the repdl program."""

import pathlib
import signal
import sys

from librepdl import _core


def main() -> int:
    if not hasattr(_core, "command_line"):
        sys.exit("librepdl: expected the commands of the repdl program in this build, found none (it was built with REPDL_TOOLS=OFF)")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it, as any program
    share = pathlib.Path(__file__).resolve().parent / "share/librepdl"
    return _core.command_line(sys.argv[1:], str(share) if share.is_dir() else "")


if __name__ == "__main__":
    sys.exit(main())
