"""The methods of random.Generator. Written by tools/gen_python.py from the registry of operations; do not edit."""

from contextlib import AbstractContextManager
from typing import Any, TypeVar

from librepdl import _core
from librepdl._typing import DType, Ints

# An array of any library.
A = TypeVar("A")


class Draws:
    """What a generator draws: each element depends on the seed, the stream and its index only."""

    seed: int

    def _next(self, advance: bool) -> AbstractContextManager[int]:
        raise NotImplementedError

    def uniform(self, shape: Ints, dtype: DType | None = None, low: float = 0.0, high: float = 1.0, *,
            out: Any | None = None, like: Any = None) -> Any:
        """low + (high - low) * u, u uniform on [0, 1) from Philox4x32-10, rounded once.

        out: f16 bf16 f32 f64
        shape: the output's shape
        dtype: the output's format; f32 when absent
        low: finite, 0 or of magnitude in [2^-200, 2^200]
        high: finite, 0 or of magnitude in [2^-200, 2^200]
        Why the bits are right: integers; one exact rounding.
        """
        with self._next(True) as stream:
            return _core.call(221, (), out, (shape, dtype, self.seed, stream, low, high), like)

    def permutation(self, n: int, *, out: Any | None = None, like: Any = None) -> Any:
        """0 .. n-1 sorted by Philox words.

        out: i64
        n: the number of indices
        Why the bits are right: no rounding happens.
        """
        with self._next(True) as stream:
            return _core.call(222, (), out, (n, self.seed, stream), like)

    def normal(self, shape: Ints, dtype: DType | None = None, mean: float = 0.0, stddev: float = 1.0, *,
            out: Any | None = None, like: Any = None) -> Any:
        """mean + stddev * sqrt(-2 ln u1) * (cos, sin)(2 pi u2), u1 and u2 from Philox4x32-10, rounded once.

        out: f16 bf16 f32 f64
        shape: the output's shape
        dtype: the output's format; f32 when absent
        mean: finite, 0 or of magnitude in [2^-200, 2^200]
        stddev: 0 or in [2^-200, 2^200]
        Why the bits are right: run-time certificate; wider numbers decide the rest.
        """
        with self._next(True) as stream:
            return _core.call(241, (), out, (shape, dtype, self.seed, stream, mean, stddev), like)

    def bernoulli(self, shape: Ints, p: float = 0.5, *, out: Any | None = None, like: Any = None) -> Any:
        """w < ceil(p 2^32), w a Philox word.

        out: bool
        shape: the output's shape
        p: of true, in [0, 1]
        Why the bits are right: no rounding happens.
        """
        with self._next(True) as stream:
            return _core.call(242, (), out, (shape, self.seed, stream, p), like)

    def randint(self, shape: Ints, high: int, low: int = 0, *, out: Any | None = None, like: Any = None) -> Any:
        """low + floor(W (high - low) / 2^64), W 64 bits from Philox.

        out: i64
        shape: the output's shape
        low: the least value
        high: > low: one more than the greatest value
        Why the bits are right: no rounding happens.
        """
        with self._next(True) as stream:
            return _core.call(243, (), out, (shape, self.seed, stream, low, high), like)

    def dropout(self, x: A, p: float = 0.5, *, out: A | None = None) -> A:
        """+0 where bernoulli(p), else x / (1 - p), rounded once.

        x: f32 f64
        out: f32 f64
        p: the share that is dropped, in [0, 1]
        Why the bits are right: integers; one exact rounding.
        """
        with self._next(True) as stream:
            result: A = _core.call(244, (x,), out, (self.seed, stream, p), None)
            return result

    def dropout_backward(self, g: A, p: float = 0.5, *, out: A | None = None) -> A:
        """+0 where bernoulli(p), else g / (1 - p), rounded once.

        g: f32 f64
        grad_x: f32 f64
        p: the share that is dropped, in [0, 1]
        Why the bits are right: integers; one exact rounding.
        """
        with self._next(False) as stream:
            result: A = _core.call(245, (g,), out, (self.seed, stream, p), None)
            return result

    def exponential(self, shape: Ints, dtype: DType | None = None, rate: float = 1.0, *, out: Any | None = None,
            like: Any = None) -> Any:
        """-ln u / rate, never 0, u on (0, 1) from Philox4x32-10, rounded once.

        out: f16 bf16 f32 f64
        shape: the output's shape
        dtype: the output's format; f32 when absent
        rate: lambda, in [2^-200, 2^200]
        Why the bits are right: run-time certificate; wider numbers decide the rest.
        """
        with self._next(True) as stream:
            return _core.call(299, (), out, (shape, dtype, self.seed, stream, rate), like)

    def multinomial(self, x: A, num_samples: int, replacement: bool = False, *, out: Any | None = None) -> Any:
        """The first i with C_i 2^64 > W C_n, C_i = x_0 + ... + x_i; without replacement the least -ln u_i / x_i, rounded once.

        x: f16 bf16 f32 f64
        out: i64
        num_samples: how many of each row, >= 1
        replacement: a place may be drawn again
        Why the bits are right: run-time certificate; wider numbers decide the rest.
        """
        with self._next(True) as stream:
            return _core.call(304, (x,), out, (num_samples, replacement, self.seed, stream), None)
