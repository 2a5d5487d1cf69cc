"""What is changed in PyTorch's Python while librepdl is enabled: what would go past the dispatcher, or depends on the platform."""

import functools
import importlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch._tensor_str

from librepdl.torch._door import door


def power_complement(base: float, exponent: int) -> float:
    """1 - base^exponent, rounded once to binary64; base in [0, 1), exponent >= 1. Python's own base**exponent is the platform's.

    base is m / 2^q, an integer over a power of 2. Its powers are multiplied as integers of `bits` fractional bits, cut off:
    with e the error of a factor in units of 2^-bits, each product of numbers below 1 has an error below e1 + e2 + 1, all of one
    sign. Where both ends of the interval round alike, that is the result; else with twice the bits. It ends, since base^exponent is a
    dyadic number: from some bits on nothing is cut off.
    """
    if exponent < 1 or not 0 <= base < 1:
        raise ValueError(f"power_complement: expected a base in [0, 1) and an exponent of 1 or more, got {base} and {exponent}")
    numerator, denominator = base.as_integer_ratio()
    q = denominator.bit_length() - 1
    bits = 128
    while True:
        if q > bits:
            bits *= 2
            continue
        factor, factor_error = numerator << (bits - q), 0  # base = factor / 2^bits
        product, error = 1 << bits, 0
        n = exponent
        while n:
            if n & 1:
                whole = product * factor
                error = error + factor_error + (1 if whole & ((1 << bits) - 1) else 0)
                product = whole >> bits
            n >>= 1
            if n:
                whole = factor * factor
                factor_error = 2 * factor_error + (1 if whole & ((1 << bits) - 1) else 0)
                factor = whole >> bits
        # base^exponent is in [product, product + error] / 2^bits; int / int rounds correctly.
        one = 1 << bits
        high, low = (one - product) / one, (one - product - error) / one
        if low == high:
            return high
        bits *= 2


class _Beta(float):
    """A beta of the Adam family: 1 - beta**step is rounded once."""

    def __pow__(self, exponent: Any, modulus: None = None) -> Any:
        if isinstance(exponent, (int, float)) and float(exponent).is_integer() and exponent >= 1 and 0 <= self < 1:
            return _Power(self, int(exponent))
        return float.__pow__(self, exponent)


class _Power(float):
    """beta^step. As a number of its own it is 1 minus the rounded complement, exact where the complement is at least 1/2."""

    base: float
    exponent: int

    def __new__(cls, base: float, exponent: int) -> "_Power":
        self = super().__new__(cls, 1 - power_complement(float(base), exponent))
        self.base, self.exponent = float(base), exponent
        return self

    def __rsub__(self, one: Any) -> Any:
        if one == 1:
            return power_complement(self.base, self.exponent)
        return float.__rsub__(self, one)


def _with_betas(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        for name in ("beta1", "beta2"):
            if type(options.get(name)) is float:
                options[name] = _Beta(options[name])
        return function(*arguments, **options)

    return call


def _exempt(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        before = door().exempt(True)
        try:
            return function(*arguments, **options)
        finally:
            door().exempt(before)

    return call


_warned = False


def _no_compile(model: Any = None, *arguments: Any, **options: Any) -> Any:
    """torch.compile while librepdl is enabled: compiled code would not call its operations."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn("librepdl.torch: torch.compile runs eagerly while librepdl is enabled", stacklevel=2)
    if model is None:
        return lambda m: m
    return model


class Patches:
    """Applied by enter(), taken back by leave()."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []
        self._undo: list[Callable[[], None]] = []

    def _set(self, owner: Any, name: str, value: Any) -> None:
        self._before.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def enter(self) -> None:
        self._set(torch._tensor_str, "_str", _exempt(torch._tensor_str._str))  # printing computes
        self._set(torch, "compile", _no_compile)
        # Functions compiled before: eager. Not imported where nothing was compiled, which takes seconds.
        if "torch._dynamo" in sys.modules:
            from torch._dynamo.eval_frame import _stance
            before = _stance.stance
            torch.compiler.set_stance("force_eager")
            self._undo.append(lambda: torch.compiler.set_stance(before))
        # Fused kernels of the transformer layers, contraction orders that depend on a package, TorchScript's fuser.
        fastpath = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        self._undo.append(lambda: torch.backends.mha.set_fastpath_enabled(fastpath))
        einsum = torch.backends.opt_einsum.enabled
        torch.backends.opt_einsum.enabled = False
        self._undo.append(lambda: setattr(torch.backends.opt_einsum, "enabled", einsum))
        fuser = torch._C._jit_texpr_fuser_enabled()
        torch._C._jit_set_texpr_fuser_enabled(False)
        self._undo.append(lambda: torch._C._jit_set_texpr_fuser_enabled(fuser))
        # Optimisers: bias corrections that are the same everywhere; one formula where foreach has another.
        # (torch.optim has no attributes of its modules' names.)
        for name in ("adam", "adamax", "nadam", "radam"):
            module = importlib.import_module(f"torch.optim.{name}")
            for kind in ("_single_tensor_", "_multi_tensor_"):
                self._set(module, kind + name, _with_betas(getattr(module, kind + name)))
        for name in ("adagrad", "asgd", "nadam"):
            module = importlib.import_module(f"torch.optim.{name}")
            self._set(module, f"_multi_tensor_{name}", getattr(module, f"_single_tensor_{name}"))

    def leave(self) -> None:
        for owner, name, value in reversed(self._before):
            setattr(owner, name, value)
        for undo in reversed(self._undo):
            undo()
        self._before.clear()
        self._undo.clear()
