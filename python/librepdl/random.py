"""Random numbers that are the same on every machine: Philox4x32-10, each number rounded once.

J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11.
"""

import contextlib
import threading
from collections.abc import Iterator

from librepdl import _core
from librepdl._draws import Draws

__all__ = ["Generator"]


class Generator(Draws):
    """A seed and a stream, both 64 bits. Each draw uses one stream value and moves on to the next; one that fails does not.

    Threads may share a generator; which of them gets which stream is then up to them.
    """

    def __init__(self, seed: int = 0, stream: int = 0) -> None:
        for name, value in (("seed", seed), ("stream", stream)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"Generator: {name}: expected an int, got {type(value).__name__}")
            if not 0 <= value < 2**64:
                raise ValueError(f"Generator: {name}: expected an integer from 0 to 2**64 - 1, got {value}")
        self.seed = seed
        self.stream = stream
        self._lock = threading.Lock()

    def copy(self) -> "Generator":
        """A generator that draws the same: what dropout_backward needs is that of before dropout."""
        return Generator(self.seed, self.stream)

    @contextlib.contextmanager
    def _next(self, advance: bool) -> Iterator[int]:
        with self._lock:
            yield self.stream
            # As in C++: calls that are only being prepared leave the generator as it is.
            if advance and not _core.preparing():
                self.stream = (self.stream + 1) % 2**64

    def __repr__(self) -> str:
        return f"librepdl.random.Generator(seed={self.seed}, stream={self.stream})"

    def __reduce__(self) -> tuple[type["Generator"], tuple[int, int]]:
        return Generator, (self.seed, self.stream)
