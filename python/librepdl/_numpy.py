"""Parameters as NumPy has them."""

import math
from fractions import Fraction
from typing import Any


def _number(name: str, value: Any) -> float:
    wrong = TypeError(f"arange: {name}: expected a number, got {type(value).__name__}")
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise wrong
    try:
        number = float(value)
    except TypeError:  # an array of several
        raise wrong from None
    except OverflowError:  # an integer beyond a double
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"arange: {name}: expected a finite number, got {number}")
    return number


def progression(start: Any, stop: Any, step: Any, count: Any) -> tuple[float, int]:
    """Of NumPy's arange(stop), arange(start, stop) and arange(start, stop, step): the first number, and how many there are.

    Those of start, start + step, ... that are before stop, exactly: of the doubles, without rounding their difference. Or as many as
    count says.
    """
    if count is not None:
        if stop is not None:
            raise TypeError("arange: count: expected stop or count, got both")
        return start, count
    if stop is None:
        start, stop = 0, start
    first, end, distance = _number("start", start), _number("stop", stop), _number("step", step)
    if distance == 0:
        raise ValueError("arange: step: expected a number that is not 0, got 0")
    count = max(0, math.ceil((Fraction(end) - Fraction(first)) / Fraction(distance)))
    if count > 2**48:
        raise ValueError(f"arange: stop: expected at most 2^48 numbers before it, got {count}")
    return first, count
