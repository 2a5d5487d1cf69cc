"""What librepdl would refuse of a model, a loss, an optimiser or a training step; everything stays as it was."""

import contextlib
import copy
import functools
import inspect
import random
import re
import sys
import threading
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.modules import module as hooks

from librepdl.torch import _door, _policy


@dataclass(frozen=True)
class Coverage:
    """What librepdl would refuse. True where nothing is."""

    refused: dict[str, int] = field(default_factory=dict)  #: the operation, its type and device, the module's path; how often

    def __bool__(self) -> bool:
        return not self.refused

    def ways_out(self) -> dict[str, str]:
        """Of what is refused, where there is one: how to say it with operations that librepdl has."""
        return {what: way for what in self.refused if (way := way_out(what)) is not None}

    def __str__(self) -> str:
        if not self.refused:
            return "everything is reproducible"
        ways = self.ways_out()
        return "\n".join(f"{count:6}  {what}" + (f"\n        instead: {ways[what]}" if what in ways else "")
                         for what, count in sorted(self.refused.items(), key=lambda item: -item[1]))


# ---- ways out ----

#: By the operation's name without overload, for those that have no row; or with the reason why it is refused. Remarks are behind a semicolon.
WAYS = {
    **dict.fromkeys(["torch_nn::_linear_cross_entropy_batch_chunked", "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction"],
                    "F.cross_entropy(F.linear(x, weight, bias), target)"),
}
_TYPES = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16"}


@functools.cache
def _types_of_rows() -> dict[str, frozenset[str]]:
    """The element types that the rows of an operation take, whatever its overload."""
    found: dict[str, frozenset[str]] = {}
    for row in _policy.rows():
        if row.action not in ("PASS", "REFUSE"):
            name = "aten::" + row.name.partition(".")[0]
            taken = row.types | {"F32"} if "ANY" in row.types else row.types
            found[name] = found.get(name, frozenset()) | taken
    return found


def way_out(refused: str) -> str | None:
    """Of the text of a refusal."""
    parts = re.match(r"(\S+?)(?:\.\w+)?(?: \((\w+), \w+\))?: not reproducible yet(?: \((.*?)\))?(?:; called by|$)", refused)
    if parts is None:
        return None
    name, dtype, why = parts.groups()
    way = WAYS.get(name) or WAYS.get(f"{name} ({why})")
    if way is not None:
        return way
    if dtype in ("complex64", "complex128", "complex32"):
        return "real and imaginary parts as tensors of their own"
    if why is not None and "not dense" in why:
        return "x.to_dense(); sparse=False for the gradients of embeddings"
    types = _types_of_rows().get(name) or _types_of_rows().get(name.removesuffix("_"))
    if types is not None and "F32" in types and dtype in _TYPES and _TYPES[dtype] not in types and dtype != "float32":
        return "in float32: x.float()" + ("" if dtype == "float64" else ", or with torch.autocast(x.device.type, enabled=False)")
    return None


# ---- everything stays as it was ----


class AsItWas:
    """Remembers what a call can reach, and puts it back: tensors and their gradients, modules, optimisers, schedulers, generators;
    dicts, lists and attributes, captured and global names; Python's and PyTorch's random numbers. What has no such state (files,
    iterators, NumPy's arrays) is not put back."""

    def __init__(self, *roots: Any) -> None:
        self._undo: list[Callable[[], None]] = []
        self._seen: dict[int, Any] = {}  # and keeps them: an id is of a living object
        waiting = deque(roots)
        while waiting:
            value = waiting.popleft()
            if id(value) not in self._seen:
                self._seen[id(value)] = value
                waiting.extend(self._within(value))
        state = random.getstate()
        self._undo.append(lambda: random.setstate(state))

    def put_back(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _within(self, value: Any) -> Iterator[Any]:
        """Remembers one object; those that it leads to."""
        if isinstance(value, torch.Tensor):
            yield from self._tensor(value)
        elif isinstance(value, torch.Generator):
            state = value.get_state()
            self._undo.append(lambda: void(value.set_state(state)))
        elif isinstance(value, (tuple, frozenset)):
            yield from value
        elif isinstance(value, (dict, list, set, deque)):
            yield from self._container(value)
        elif isinstance(value, functools.partial):
            yield from (value.func, value.args, value.keywords)
        elif isinstance(value, types.MethodType):
            yield from (value.__self__, value.__func__)
        elif isinstance(value, types.FunctionType):
            yield from self._function(value)
        elif isinstance(getattr(value, "__dict__", None), dict) and self._has_state(value):
            yield value.__dict__

    @staticmethod
    def _has_state(value: Any) -> bool:
        """Data sets may be large; nothing computes in them."""
        kinds = (type, types.ModuleType, torch.utils.data.Dataset, torch.utils.data.DataLoader, torch.utils.data.Sampler)
        return not isinstance(value, kinds) and type(value).__module__.partition(".")[0] not in sys.stdlib_module_names

    def _container(self, value: Any) -> Iterator[Any]:
        before = copy.copy(dict(value)) if isinstance(value, dict) else list(value)

        def undo() -> None:
            now = dict(value) if isinstance(value, dict) else list(value)
            if isinstance(before, dict):
                if list(now) != list(before) or any(now[key] is not before[key] for key in before):
                    value.clear()
                    value.update(before)
            elif len(now) != len(before) or any(a is not b for a, b in zip(now, before)):
                value.clear()
                value.update(before) if isinstance(value, set) else value.extend(before)

        self._undo.append(undo)
        yield from (before.values() if isinstance(before, dict) else before)

    def _function(self, value: types.FunctionType) -> Iterator[Any]:
        for cell in value.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:  # empty
                continue
            self._undo.append(functools.partial(setattr, cell, "cell_contents", content))
            yield content
        yield from (value.__defaults__, value.__kwdefaults__, value.__dict__)
        space = value.__globals__
        if str(space.get("__name__")).partition(".")[0] in sys.stdlib_module_names | {"torch", "librepdl", "numpy"}:
            return
        codes, names = [value.__code__], set[str]()
        for code in codes:
            names.update(code.co_names)
            codes.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
        for name in names & space.keys():
            self._undo.append(functools.partial(space.__setitem__, name, space[name]))
            yield space[name]

    def _tensor(self, t: torch.Tensor) -> Iterator[Any]:
        if torch.nn.parameter.is_lazy(t) or t.layout != torch.strided or t.device.type == "meta":
            return
        if torch._debug_has_internal_overlap(t) == 1:  # nothing can be written there
            return
        data = t.data  # the same memory
        before = data.clone()
        gradient = t.grad if t.is_leaf else None
        requires = t.requires_grad

        def undo() -> None:
            with torch.inference_mode(t.is_inference()):
                data.copy_(before)
            if t.data_ptr() != data.data_ptr() or t.shape != data.shape:
                t.data = data
            if t.is_leaf:
                if t.grad is not gradient:
                    t.grad = gradient
                if t.requires_grad != requires:
                    t.requires_grad_(requires)

        self._undo.append(undo)
        if gradient is not None:
            yield gradient


def void(_: Any) -> None:
    pass


class Origins:
    """Which module made which of autograd's nodes: their numbers, which count up, while it ran in this thread."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._running: list[tuple[int, str | None]] = []
        self._ran: list[tuple[int, int, str | None]] = []  # inner modules before outer ones

    def __enter__(self) -> "Origins":
        self._handles = [hooks.register_module_forward_pre_hook(self._begins),
                         hooks.register_module_forward_hook(self._ends, always_call=True)]
        _door.origin = self._of
        return self

    def __exit__(self, *_: Any) -> None:
        _door.origin = None
        for handle in self._handles:
            handle.remove()

    def _begins(self, module: torch.nn.Module, _: Any) -> None:
        if threading.get_ident() == self._thread:
            self._running.append((torch._C._autograd._get_sequence_nr(), _door.module_path(_door.running_modules())))

    def _ends(self, *_: Any) -> None:
        if threading.get_ident() == self._thread and self._running:
            first, path = self._running.pop()
            self._ran.append((first, torch._C._autograd._get_sequence_nr(), path))

    def _of(self, node: int) -> str | None:
        return next((path for first, end, path in self._ran if first <= node < end), None)


# ---- a run ----


def _tensors(result: Any) -> Iterator[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        if result.is_floating_point():
            yield result
    elif isinstance(result, Mapping):
        for value in result.values():
            yield from _tensors(value)
    elif isinstance(result, (list, tuple)):
        for value in result:
            yield from _tensors(value)


def _requiring(value: Any) -> Any:
    """The same numbers, whose gradients are asked for."""
    if isinstance(value, torch.Tensor):
        return value.detach().requires_grad_().clone() if value.is_floating_point() else value
    if type(value) in (list, tuple):
        return type(value)(map(_requiring, value))
    return {key: _requiring(v) for key, v in value.items()} if type(value) is dict else value


def _backward(results: list[torch.Tensor]) -> None:
    for result in results:
        try:
            torch.autograd.backward(result, torch.ones_like(result), retain_graph=True)
        except RuntimeError as e:
            if "a second time" not in str(e):  # a step has done it itself
                raise


def _step(optimiser: torch.optim.Optimizer) -> None:
    for group in optimiser.param_groups:
        for p in group["params"]:
            if p.grad is None:
                p.grad = torch.ones_like(p)
    closure = inspect.signature(optimiser.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        optimiser.step(lambda: 1.0)
    else:
        optimiser.step()


def run(model: Any, inputs: tuple[Any, ...], options: dict[str, Any], begin: Callable[[], object],
        watch: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()) -> None:
    """Forward and backward, within `watch`; begin() is called before the run that counts."""
    if isinstance(model, torch.nn.Module) and any(map(torch.nn.parameter.is_lazy, (*model.parameters(), *model.buffers()))):
        model = copy.deepcopy(model)  # its parameters change their class
    before = AsItWas(model, inputs, options)
    try:
        with torch.enable_grad(), Origins(), watch:
            begin()
            if isinstance(model, torch.optim.Optimizer):
                return _step(model)
            results = list(_tensors(model(*inputs, **options)))
            wanted = [t for t in results if t.requires_grad]
            if results and not wanted and any(True for _ in _tensors((inputs, options))):
                # A loss, or a layer without parameters: gradients of its inputs.
                begin()
                wanted = [t for t in _tensors(model(*_requiring(inputs), **_requiring(options))) if t.requires_grad]
            _backward(wanted)
    finally:
        before.put_back()
