"""Types of parameters."""

from collections.abc import Sequence
from typing import Any

# An integer, or several: an axis or axes, a size, a stride.
Ints = int | Sequence[int]
# "float32" or "f32", numpy.float32, numpy.dtype("float32"), torch.float32.
DType = Any
