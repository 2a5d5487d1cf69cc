"""torch.optim while librepdl is enabled: one formula for each optimiser, and Python's powers rounded correctly."""

import decimal
import functools
import importlib
import math
import pkgutil
import types
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import torch

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


def _exact_power(base: float, exponent: float) -> Fraction | None:
    """base^exponent, if it can be a binary64 number or a midpoint of two: base is m 2^e with m odd, exponent n / 2^k, and m has a 2^k-th
    root r whose n-th power is of 54 bits at most."""
    n, denominator = exponent.as_integer_ratio()
    k = denominator.bit_length() - 1
    odd, divisor = base.as_integer_ratio()
    e = (odd & -odd).bit_length() - 1 if divisor == 1 else 1 - divisor.bit_length()
    if divisor == 1:
        odd >>= e
    if e % denominator:
        return None
    for _ in range(k if odd > 1 else 0):
        root = math.isqrt(odd)
        if root * root != odd:
            return None
        odd = root
    if odd > 1 and not 0 < n <= 54:
        return None
    return Fraction(odd) ** (n if odd > 1 else 1) * Fraction(2) ** (e // denominator * n)


@functools.lru_cache(maxsize=4096)
def power(base: float, exponent: float) -> float:
    """base^exponent, correctly rounded to binary64; where base is not positive, or the result above e^709, what Python has.

    e^(exponent ln base) with more and more digits: decimal's ln and exp are correctly rounded, so with d digits, and abs(exponent ln base)
    below 1000, the relative error is below 10^(4 - d). Where both ends of that interval round alike, that is the result. It ends,
    since results that are numbers or midpoints are found before.
    """
    if not (0 < base < math.inf and math.isfinite(exponent)) or exponent * math.log(base) > 709:
        return float(float.__pow__(base, exponent))
    if exponent * math.log(base) < -746:
        return 0.0
    if exponent == 0.5:
        return math.sqrt(base)
    exact = _exact_power(base, exponent)
    if exact is not None:
        return float(exact)
    digits = 40
    while True:
        context = decimal.Context(prec=digits, rounding=decimal.ROUND_HALF_EVEN, Emin=-9999, Emax=9999)
        value = context.exp(context.multiply(decimal.Decimal(exponent), context.ln(decimal.Decimal(base))))
        error = context.scaleb(value, 4 - digits)
        low, high = float(context.subtract(value, error)), float(context.add(value, error))
        if low == high:
            return low
        digits *= 2


class Number(float):
    """A number of an optimiser: with Python's + - * /, and powers that are rounded correctly, as is 1 - base**n of one power."""

    def __pow__(self, exponent: Any, modulus: None = None) -> Any:
        return _powered(self, exponent) if isinstance(exponent, (int, float)) else NotImplemented

    def __rpow__(self, base: Any, modulus: None = None) -> Any:
        return _powered(base, self) if isinstance(base, (int, float)) else NotImplemented


@functools.lru_cache(maxsize=4096)  # one step's are those of each parameter
def _powered(base: float, exponent: float) -> Number:
    if 0 <= base < 1 and exponent >= 1 and float(exponent).is_integer():
        return _Power(base, int(exponent))
    return Number(power(float(base), float(exponent)))


def _of_floats(name: str) -> Callable[[Number, Any], Any]:
    plain = getattr(float, name)

    def method(self: Number, other: Any) -> Any:
        result = plain(self, other)  # NotImplemented of a tensor: its turn
        return result if result is NotImplemented else Number(result)

    return method


for _name in ("add", "sub", "mul", "truediv"):
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(Number, _method, _of_floats(_method))
setattr(Number, "__neg__", lambda self: Number(-float(self)))


class _Power(Number):
    """base^exponent, of which 1 - base**exponent is rounded once."""

    base: float
    exponent: int

    def __new__(cls, base: float, exponent: int) -> "_Power":
        self = super().__new__(cls, power(float(base), float(exponent)))
        self.base, self.exponent = float(base), exponent
        return self

    def __rsub__(self, one: Any) -> Any:
        if isinstance(one, (int, float)) and one == 1:
            return self._complement
        return super().__rsub__(one)

    @functools.cached_property
    def _complement(self) -> Number:
        return Number(power_complement(self.base, self.exponent))


#: Whose formulas differentiable=True changes: they divide by tensors of corrections, each of which is rounded to float32.
_CHANGED_BY_DIFFERENTIABLE = ("adam", "nadam")


def _refuse(what: str, why: str) -> None:
    door().refuse("torch.optim." + what, why)


#: Whose form for lists rounds what the single one rounds, and nothing else: operations on lists run together. (SGD's with nesterov writes
#: to the gradients.)
_SAME_IN_LISTS = ("adam", "sgd", "rmsprop", "adadelta", "adamax")


def _one_form(name: str, module: types.ModuleType, single: Callable[..., Any],
              multi: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """What an optimiser's forms are: the single one, which takes the tensors one after another, or one for lists with the same bits.
    `capturable` changes nothing, since the corrections are made of Python numbers then, too."""

    @functools.wraps(single)
    def step(params: list[torch.Tensor], *lists: Any, **options: Any) -> Any:
        # What lists refuse or have another formula for: gradients of the step, rates that are tensors, steps on a device; tensors beside DTensors.
        apart = (options.get("differentiable") or options.get("nesterov") or len({hasattr(p, "placements") for p in params}) > 1
                 or any(isinstance(value, torch.Tensor) for value in options.values()))
        form = single if apart or multi is None else multi
        if options.get("differentiable") and name in _CHANGED_BY_DIFFERENTIABLE:
            _refuse(name, "differentiable=True has another formula")
        if options.get("capturable"):
            if any(p.is_cuda for p in params) and torch.cuda.is_current_stream_capturing():
                _refuse(name, "while a CUDA graph is captured: the numbers of a step are Python's")
            elif all(p.device.type in module._get_capturable_supported_devices() for p in params):  # else PyTorch's error
                options["capturable"] = False
                form = single
        return form(params, *lists, **{key: Number(value) if isinstance(value, float) else value for key, value in options.items()})

    return step


def _no_form(name: str, multi: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(multi)
    def step(*arguments: Any, **options: Any) -> Any:
        _refuse(name, "there is only a form of lists")
        return multi(*arguments, **options)

    return step


def forms() -> Iterator[tuple[types.ModuleType, str, Callable[..., Any]]]:
    """What the single and list forms of torch.optim's modules become: module, name, function."""
    for info in pkgutil.iter_modules(torch.optim.__path__, "torch.optim."):
        if info.ispkg:
            continue
        module = importlib.import_module(info.name)
        own = {key: value for key, value in vars(module).items() if getattr(value, "__module__", None) == info.name}
        for key, function in own.items():
            if key.startswith("_single_tensor_"):
                name = key.removeprefix("_single_tensor_")
                yield module, key, _one_form(name, module, function)
                multi = own.get("_multi_tensor_" + name)
                if multi is not None:
                    yield module, "_multi_tensor_" + name, _one_form(name, module, function, multi if name in _SAME_IN_LISTS else None)
            elif key.startswith("_multi_tensor_") and key.replace("multi", "single", 1) not in own:
                yield module, key, _no_form(key.removeprefix("_multi_tensor_"), function)
