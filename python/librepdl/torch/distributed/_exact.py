"""Exact sums of weighted terms, and their quotients by an integer, rounded once.

Terms of float32, float16 and bfloat16 become binary64 numbers, times their integer weights without an error. They are added up there; the
rounding error of an addition is a binary64 number itself, and where it is not 0 it is kept beside the sum with its place. So a sum is a
binary64 number for each element, exact but for the places in a list, which is nearly always empty: an error needs terms whose bits lie more
than 53 apart. Terms of float64 are kept as they are, one row each.
"""

from collections.abc import Callable, Sequence

import torch

import librepdl

#: Weights and their sum must be below: a midpoint of float32 numbers (25 bits) times the sum of the weights is a binary64 number then, and a
#: float32 number times a weight is, too.
LARGEST = 1 << 27


#: Elements of rows that are repeated at a time.
_REPEATED = 1 << 22


def quotient(rows: torch.Tensor, weights: Sequence[int], divisor: int, dtype: torch.dtype) -> torch.Tensor:
    """The exact sum over the first axis of binary64 rows, or of rows of the dtype, times weights, over an integer in [1, LARGEST), rounded
    once to the dtype. Weights are 1 but where dtype is float64."""
    if any(weight != 1 for weight in weights):  # a product could overflow, so such a row is a term more than once
        repeated = torch.arange(len(rows), device=rows.device).repeat_interleave(torch.tensor(weights, device=rows.device))
        columns = max(1, _REPEATED // len(repeated))
        return torch.cat([quotient(part[repeated], [1] * len(repeated), divisor, dtype) for part in torch.split(rows, columns, 1)])
    if divisor == 1:
        return librepdl.sum(rows, 0, dtype=dtype)  # type: ignore[no-any-return]
    if rows.dtype == dtype:
        count, n = rows.shape
        return librepdl.avg_pool2d(rows.reshape(1, 1, count, n), (count, 1), divisor_override=divisor).reshape(n)
    if divisor & (divisor - 1) == 0:  # of numbers from narrower formats an exact factor
        return librepdl.sum(librepdl.mul(rows, 1.0 / divisor), 0, dtype=dtype)  # type: ignore[no-any-return]
    # To 53 bits, to odd: such a number lies on the same side of each number of 52 bits as the exact sum, and is equal to it only if that is.
    # A midpoint times the divisor is such a number.
    high = librepdl.sum(rows, 0)
    rest = librepdl.sum(torch.cat([rows, -high[None]]), 0)  # its sign is exact; NaN where high is not finite
    is_even = high.view(torch.int64) & 1 == 0
    towards = torch.where(rest > 0, float("inf"), float("-inf")).to(high.dtype)
    odd = torch.where(is_even & (rest != 0) & rest.isfinite(), librepdl.nextafter(high, towards), high)
    return librepdl.div(odd, float(divisor), dtype=dtype)  # type: ignore[no-any-return]


def repair(flat: torch.Tensor, places: torch.Tensor, errors: torch.Tensor, terms_at: Callable[[torch.Tensor], torch.Tensor],
           divisor: int) -> None:
    """Of results the elements at the places, where binary64 errors belong to the sum; terms_at(places): its other terms there, as rows. A
    place may occur more than once."""
    wanted, which = torch.unique(places, return_inverse=True)
    terms = terms_at(wanted)
    # The errors of a place one below the other: its first, its second, ... in a row each.
    order = which.argsort(stable=True)
    counts = torch.bincount(which)
    level = torch.arange(len(order), device=order.device) - (counts.cumsum(0) - counts)[which[order]]
    more = terms.new_zeros(int(counts.max()), len(wanted))
    more[level, which[order]] = errors[order]
    every = torch.cat([terms, more])
    flat[wanted] = quotient(every, [1] * len(every), divisor, flat.dtype)


class Sum:
    """The exact sum of vectors of one size and type, times weights."""

    def __init__(self) -> None:
        self._rows: list[torch.Tensor] = []  # of the dtype while there is one, of weight 1; else binary64
        self.weights: list[int] = []  #: of the rows
        self._places: list[torch.Tensor] = []  # of rounding errors that are not 0
        self._errors: list[torch.Tensor] = []

    def add(self, term: torch.Tensor, weight: int = 1) -> None:
        """weight: an integer in [1, LARGEST)"""
        if term.dtype == torch.float64:
            self._rows.append(term)
            self.weights.append(weight)
        elif not self._rows and weight == 1:
            self._rows.append(term)
            self.weights.append(1)
        else:
            wide = librepdl.convert(term, torch.float64)
            self._add_wide(wide if weight == 1 else librepdl.mul(wide, float(weight)))

    def _add_wide(self, x: torch.Tensor) -> None:
        if not self._rows:
            self._rows.append(x)
            self.weights.append(1)
            return
        s = librepdl.convert(self._rows[0], torch.float64)
        total = librepdl.add(s, x)
        # The error, exactly (D. E. Knuth, The Art of Computer Programming, volume 2, 4.2.2, theorem B).
        x_part = librepdl.sub(total, s)
        error = librepdl.add(librepdl.sub(s, librepdl.sub(total, x_part)), librepdl.sub(x, x_part))
        places = (error.ne(0) & total.isfinite()).nonzero().flatten()
        if len(places):
            self._places.append(places)
            self._errors.append(error[places])
        self._rows[0] = total

    @property
    def rows(self) -> list[torch.Tensor]:
        """Vectors that add up to the sum, times their weights, but for the errors."""
        return self._rows

    def errors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Places and binary64 numbers: what is to be added there; a place may occur more than once."""
        if not self._places:
            return self._rows[0].new_empty(0, dtype=torch.int64), self._rows[0].new_empty(0, dtype=torch.float64)
        return torch.cat(self._places), torch.cat(self._errors)

    def over(self, divisor: int, dtype: torch.dtype) -> torch.Tensor:
        """The sum over an integer, rounded once to the terms' type."""
        rows = torch.stack(self._rows)
        flat = quotient(rows, self.weights, divisor, dtype)
        places, errors = self.errors()
        if len(places):
            repair(flat, places, errors, lambda wanted: rows[:, wanted], divisor)
        return flat
