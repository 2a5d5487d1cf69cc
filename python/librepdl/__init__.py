"""librepdl: every floating-point result is the exact mathematical one, rounded once.

The functions take arrays of NumPy, PyTorch, or any library with DLPack or the buffer protocol, without copying, and return
arrays of that library on the same device, or write into out=. The bits do not depend on the machine.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from librepdl import _attention, _core
from librepdl import _functions as _functions
from librepdl import random as random
from librepdl._attention import *  # noqa: F403
from librepdl._core import Context, Prepared
from librepdl._functions import *  # noqa: F403

__version__ = _core.version()
__all__ = [*_functions.__all__, *_attention.__all__, "Comparison", "Context", "Prepared", "compare", "context", "current_context",
           "fingerprint", "info", "prepare", "random"]

if tuple(_core.names()) != _functions.ORDER:
    raise ImportError("librepdl: _functions.py and _core are not of the same build; expected the same operations in both")


def context(threads: int = 0, isa: str | None = None, device: str = "cpu") -> Context:
    """Where and how operations run; a context manager.

        with librepdl.context(threads=1, isa="avx2"):
            y = librepdl.exp(x)

    Inside, calls of this thread on arrays of that device use it. Elsewhere each thread has a context of its own for each device.
    The bits are the same everywhere.

    threads: of the CPU, at most 1024; 0: as many as OpenMP offers
    isa: of the CPU: "baseline", "avx2" or "avx512"; None: $REPDL_ISA, else the best that there is
    device: "cpu", "cuda", "cuda:1"
    """
    return _core.context(threads, isa, device)


def current_context(device: str = "cpu") -> Context:
    """The context that calls of this thread on arrays of that device use."""
    return _core.current_context(device)


def prepare(f: Callable[[], Any], device: str = "cpu") -> Prepared:
    """The calls that f() makes, validated and planned once, to be run by Prepared.run() as often as one likes.

    f runs now, and its calls compute nothing. They name arrays: run() reads and writes those, without looking at shapes again.
    Random draws leave their generator as it is, and every run draws the same numbers.
    """
    return _core.current_context(device).prepare(f)


def fingerprint(arrays: Any) -> str:
    """SHA-256, in hexadecimal, over formats, shapes and bits: of an array, a list of arrays, or a dict's values in the order of
    its sorted keys. The same as repdl::fingerprint in C++, and of arrays on a GPU the same as of their copies on the CPU.
    """
    if isinstance(arrays, Mapping):
        arrays = [arrays[key] for key in sorted(arrays)]
    elif not isinstance(arrays, (list, tuple)):
        arrays = [arrays]
    return _core.fingerprint(list(arrays))


@dataclass(frozen=True)
class Comparison:
    """What compare() found. True where all bits are the same."""

    count: int  #: elements
    different: int  #: elements whose bits differ
    index: tuple[int, ...] | None  #: of the first that differs, row-major
    bits: tuple[int, int] | None  #: its bits in a and in b
    ulps: int | None  #: the greatest distance in units in the last place; None where a NaN is against a number, and for integers

    def __bool__(self) -> bool:
        return self.different == 0

    def __str__(self) -> str:
        if self.index is None or self.bits is None:
            return f"the same bits in all {self.count} elements"
        distance = "" if self.ulps is None else f", by up to {self.ulps} ulps"
        return (f"{self.different} of {self.count} elements differ{distance}; the first at {list(self.index)}: "
                f"{self.bits[0]:#x} and {self.bits[1]:#x}")


def compare(a: Any, b: Any) -> Comparison:
    """Bit by bit, two arrays of one type and shape, on any devices. -0 differs from +0, and NaNs of other bits from each other."""
    count, different, index, bits_a, bits_b, ulps = _core.compare(a, b)
    return Comparison(count, different, index, None if index is None else (bits_a, bits_b), ulps)


def info() -> dict[str, Any]:
    """The version, the instruction sets and devices that there are, and why there is no GPU where there is none."""
    return _core.info()
