"""What computes each operation of a training step: librepdl, or PyTorch, or nobody; and what PyTorch says of it."""

import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import librepdl
from librepdl.torch import Coverage, _coverage, _door, _lock, reproducible
from librepdl.torch._door import door
from librepdl.torch.evidence import _report

# ---- what PyTorch says ----

#: Where PyTorch lists what is not deterministic. LISTED is that of PyTorch 2.13.
SOURCE = "https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html"


@dataclass(frozen=True)
class _Listed:
    """An entry of PyTorch's list, and aten's operations that it is about."""

    entry: str
    operations: str
    flag: str  # what use_deterministic_algorithms(True) does: "deterministic" or "raises"
    devices: str = "cuda"
    when: Callable[[dict[str, Any]], bool] = lambda arguments: True


def _accumulates(arguments: dict[str, Any]) -> bool:
    return bool(arguments.get("accumulate"))


def _overwrites(arguments: dict[str, Any]) -> bool:
    return not arguments.get("accumulate")


LISTED = (
    *(_Listed(f"torch.nn.{name}", "convolution convolution_backward", "deterministic",
              when=lambda a, n=dimensions, t=transposed: bool(a["transposed"]) == t and a["input"].dim() == n + 2)  # type: ignore[misc]
      for dimensions, transposed, name in ((1, False, "Conv1d"), (2, False, "Conv2d"), (3, False, "Conv3d"), (1, True, "ConvTranspose1d"),
                                           (2, True, "ConvTranspose2d"), (3, True, "ConvTranspose3d"))),
    *(_Listed(f"torch.nn.ReplicationPad{n}d", f"replication_pad{n}d_backward", "deterministic") for n in (1, 2, 3)),
    _Listed("torch.bmm", "bmm", "deterministic", when=lambda a: a["self"].is_sparse),
    _Listed("torch.Tensor.__getitem__", "index_put _index_put_impl", "deterministic", "cpu", _accumulates),
    _Listed("torch.Tensor.index_put", "index_put _index_put_impl", "deterministic", "cpu cuda", _overwrites),
    _Listed("torch.Tensor.index_put", "index_put _index_put_impl", "deterministic", "cpu", _accumulates),
    _Listed("torch.Tensor.put_", "put", "deterministic", "cpu", _accumulates),
    _Listed("torch.Tensor.put_", "put", "raises", "cpu cuda", _overwrites),
    _Listed("torch.Tensor.put_", "put", "raises", "cuda", _accumulates),
    _Listed("torch.Tensor.scatter_add_", "scatter_add", "deterministic"),
    _Listed("torch.gather", "gather_backward scatter_add", "deterministic"),
    _Listed("torch.index_add", "index_add", "deterministic"),
    _Listed("torch.index_select", "index_select_backward index_add", "deterministic"),
    _Listed("torch.repeat_interleave", "index_add", "deterministic"),
    _Listed("torch.Tensor.index_copy", "index_copy", "deterministic", "cpu cuda"),
    _Listed("torch.Tensor.scatter", "scatter", "deterministic", when=lambda a: "src" in a),
    _Listed("torch.Tensor.scatter_reduce", "scatter_reduce", "deterministic", when=lambda a: a["reduce"] in ("sum", "mean")),
    _Listed("torch.Tensor.scatter_reduce", "scatter_reduce", "raises", when=lambda a: a["reduce"] == "prod"),
    _Listed("torch.nn.MaxPool3d", "max_pool3d_with_indices_backward", "deterministic"),
    _Listed("torch.nn.AvgPool3d", "avg_pool3d_backward", "raises"),
    _Listed("torch.nn.AdaptiveAvgPool2d", "_adaptive_avg_pool2d_backward", "raises"),
    _Listed("torch.nn.AdaptiveAvgPool3d", "_adaptive_avg_pool3d_backward", "raises"),
    _Listed("torch.nn.AdaptiveMaxPool2d", "adaptive_max_pool2d_backward", "raises"),
    _Listed("torch.nn.FractionalMaxPool2d", "fractional_max_pool2d_backward", "raises"),
    _Listed("torch.nn.FractionalMaxPool3d", "fractional_max_pool3d_backward", "raises"),
    _Listed("torch.nn.MaxUnpool1d", "max_unpool2d", "raises", "cpu cuda"),
    _Listed("torch.nn.MaxUnpool2d", "max_unpool2d", "raises", "cpu cuda"),
    _Listed("torch.nn.MaxUnpool3d", "max_unpool3d", "raises", "cpu cuda"),
    _Listed("torch.nn.functional.interpolate", "upsample_linear1d_backward upsample_bilinear2d_backward upsample_bicubic2d_backward "
                                               "upsample_trilinear3d_backward", "raises"),
    *(_Listed(f"torch.nn.ReflectionPad{n}d", f"reflection_pad{n}d_backward", "raises") for n in (1, 2, 3)),
    _Listed("torch.nn.NLLLoss", "nll_loss_forward nll_loss2d_forward", "raises"),
    _Listed("torch.nn.CTCLoss", "_ctc_loss_backward", "raises"),
    _Listed("torch.nn.EmbeddingBag", "_embedding_bag_dense_backward", "raises", when=lambda a: a["mode"] == 2),
    _Listed("torch.histc", "histc", "raises"),
    _Listed("torch.bincount", "bincount", "raises", when=lambda a: a.get("weights") is not None),
    _Listed("torch.median", "median", "raises", when=lambda a: "dim" in a),
    _Listed("torch.nn.functional.grid_sample", "grid_sampler_2d_backward grid_sampler_3d_backward", "raises"),
    _Listed("torch.cumsum", "cumsum", "raises", when=lambda a: (a.get("dtype") or a["self"].dtype).is_floating_point),
    _Listed("torch.Tensor.resize_", "resize", "raises", "cpu cuda", lambda a: a["self"].is_quantized),
)
_BY_OPERATION: dict[str, list[_Listed]] = {}
for _listed in LISTED:
    for _name in _listed.operations.split():
        _BY_OPERATION.setdefault(_name, []).append(_listed)


def _stock(base: str, device: str, arguments: dict[str, Any]) -> str:
    """What PyTorch's list says of a call: of this device, else of a GPU."""
    found = [listed for listed in _BY_OPERATION.get(base, ()) if listed.when(arguments)]
    for where in (device, "cuda"):
        said = [listed for listed in found if where in listed.devices.split()]
        if said:
            flag = "raises with the flag" if any(listed.flag == "raises" for listed in said) else "deterministic with the flag"
            return f"{'non-deterministic' if where == device else f'on {where}'}: {' or '.join(dict.fromkeys(s.entry for s in said))}; {flag}"
    return ""


# ---- what librepdl does ----

#: Operations whose results a rule of order makes: of several writes to one place the last, of equal ones the first, the draws of a generator one
#: after the other.
_ORDERED = frozenset(
    "sort argsort msort topk kthvalue median nanmedian cummax cummin scatter index_copy put index_put _index_put_impl _unsafe_index_put "
    "uniform normal exponential bernoulli random randperm multinomial native_dropout rand randn randint rand_like randn_like "
    "randint_like".split())


def _base(name: str) -> str:
    """"aten::_foreach_add_" is about "add"."""
    return name.partition("::")[2].removeprefix("_foreach_").removesuffix("_")


def _policy_of(base: str, arguments: dict[str, Any], refused: bool, floats: bool) -> str:
    if refused:
        return "refused"
    if base in _ORDERED and not _accumulates(arguments):
        return "ordered"
    computed = _coverage._types_of_rows()
    names = (base, f"{base}_", f"_{base}_impl_")  # index_put only calls _index_put_impl_
    return "exact" if floats and any(f"aten::{name}" in computed for name in names) else "passed"


# ---- a step ----


@dataclass
class Operation:
    """All calls of one of aten's operations in one phase that have one policy."""

    phase: str  #: "forward" (all that is not one of the others), "backward" or "optimiser"
    name: str  #: with overload: "aten::add.Tensor"
    policy: str  #: exact, passed, ordered or refused
    stock: str = ""  #: PyTorch's own list of what is not deterministic, where it has the call; else empty
    calls: int = 0
    where: dict[str, int] = field(default_factory=dict)  #: the user's file and line, and the module: how many of the calls
    refusals: dict[str, str | None] = field(default_factory=dict)  #: what librepdl says: the way out, if it knows one


_LIBRARIES = tuple(os.path.dirname(os.path.abspath(path)) + os.sep for path in (torch.__file__, librepdl.__file__))
_PYTHON = sysconfig.get_path("stdlib") + os.sep
_OPTIMISERS = os.path.join(os.path.dirname(torch.__file__), "optim") + os.sep


def _is_users(file: str) -> bool:
    """Not PyTorch's, librepdl's or Python's own. (The packages of a user lie below Python's.)"""
    own = file.startswith(_PYTHON) and not any(part in file for part in ("site-packages", "dist-packages"))
    return not own and not file.startswith(_LIBRARIES) and not file.startswith("<frozen")


def _short(file: str) -> str:
    for part in (os.path.abspath(os.curdir) + os.sep, "site-packages" + os.sep, "dist-packages" + os.sep):
        if part in file:
            return file.partition(part)[2]
    return file


def _site() -> tuple[str | None, bool]:
    """The innermost frame of the user's, "file:line"; whether an optimiser is between."""
    frame: FrameType | None = sys._getframe()
    optimiser = False
    while frame is not None:
        file = frame.f_code.co_filename
        optimiser |= file.startswith(_OPTIMISERS)
        if _is_users(file):
            return f"{_short(file)}:{frame.f_lineno}", optimiser
        frame = frame.f_back
    return None, optimiser


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


class _Seen(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Every operation below autograd, in the backward pass too."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.begin()

    def begin(self) -> None:
        self.operations: dict[tuple[str, str, str, str], Operation] = {}
        self.refused: dict[str, int] = {}
        self._sites: dict[int, str | None] = {}  # of autograd's nodes, by number
        door().noted()

    def noted(self) -> list[str]:
        """What was refused since the last call."""
        new = door().noted()
        for count, what in new:
            self.refused[what] = self.refused.get(what, 0) + count
        return [what for _, what in new]

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        schema = function._schema
        if schema.name.partition("::")[0] in ("prim", "profiler"):
            return function(*args, **(kwargs or {}))
        arguments = {**dict(zip((a.name for a in schema.arguments), args)), **(kwargs or {})}
        node = torch._C._current_autograd_node()
        site, optimiser = _site()
        if node is None:
            # The node of a call is made just before it; what the call computes with by other operations comes later.
            self._sites.setdefault(torch._C._autograd._get_sequence_nr() - 1, site)
            module = _door.module_path(_door.running_modules())
        else:
            site = self._sites.get(node._sequence_nr(), site)
            module = _door.origin(node._sequence_nr()) if _door.origin is not None else None
        stock = _stock(_base(schema.name), self._device(args, arguments), arguments)  # before the call: it may write to its arguments
        self.noted()  # by composites before it
        result = function(*args, **(kwargs or {}))
        refusals = self.noted()
        floats = any(t.is_floating_point() or t.is_complex() for t in _tensors([*arguments.values(), result]))
        name = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
        phase = "backward" if node is not None else "optimiser" if optimiser else "forward"
        policy = _policy_of(_base(schema.name), arguments, bool(refusals), floats)
        operation = self.operations.setdefault((phase, name, policy, stock), Operation(phase, name, policy, stock))
        operation.calls += 1
        where = " ".join([*([site] if site else []), *([f"({module})"] if module else [])]) or "unknown"
        operation.where[where] = operation.where.get(where, 0) + 1
        operation.refusals.update({what: _coverage.way_out(what) for what in refusals})
        return result

    @staticmethod
    def _device(args: Any, arguments: dict[str, Any]) -> str:
        return next((t.device.type for t in _tensors(list(arguments.values()))), "cpu")


@dataclass(frozen=True)
class Catalogue:
    """Every operation of a step. True where librepdl refuses none."""

    operations: list[Operation]  #: in the order of their first calls
    coverage: Coverage  #: what coverage() says: composites too, which are refused as a whole

    def __bool__(self) -> bool:
        return bool(self.coverage)

    @property
    def refused(self) -> dict[str, int]:
        """What librepdl says of each refusal: how often. Empty where everything is reproducible."""
        return self.coverage.refused

    @property
    def non_deterministic(self) -> list[Operation]:
        """Those that PyTorch lists as not deterministic on the device that they ran on."""
        return [o for o in self.operations if o.stock.startswith("non-deterministic")]

    def __str__(self) -> str:
        rows = []
        for o in self.operations:
            first, *others = o.where
            rows.append((o.phase, o.name, o.policy, str(o.calls), first + (f" and {len(others)} more" if others else ""), o.stock))
        text = _report.table(("phase", "operation", "policy", "calls", "called from", "PyTorch's list"), rows, right=(3,))
        counts = {policy: sum(o.policy == policy for o in self.operations) for policy in ("exact", "passed", "ordered", "refused")}
        return "\n".join([text, ", ".join(f"{count} {policy}" for policy, count in counts.items()), str(self.coverage)])

    def json(self) -> str:
        """Everything, as JSON."""
        return _report.as_json({"reproducible": bool(self), "source": SOURCE, "operations": [asdict(o) for o in self.operations],
                                "refused": self.coverage.refused, "ways_out": self.coverage.ways_out()})


def catalogue(step: Any, *inputs: Any, **options: Any) -> Catalogue:
    """Every one of aten's operations that step(*inputs, **options) calls, below autograd, and those of the backward pass of its results: the
    operation, what librepdl does with it, where it is called from, and whether PyTorch lists it as not deterministic.

        assert catalogue(step, batch), "something is refused"

    `step` is what coverage() takes, which runs it: a module, a loss, an optimiser, or a function of a whole step. It leaves what it can reach as it
    was. The policy of a call:

      exact     librepdl computes it: the exact result, rounded once, or for a list of tensors each
      passed    PyTorch does: it moves data, selects without rounding, only calls operations that librepdl computes, or has no floating-point
                numbers
      ordered   librepdl's rule of order decides: stable sorts, of writes to one place the last, random draws one after the other
      refused   NotImplementedError; `refusals` has the way out where there is one

    `stock` quotes PyTorch's list (SOURCE). What it does not have is deterministic on one machine in PyTorch's words, and may have other bits with
    another number of threads, batch, or device.
    """
    with _lock, torch.random.fork_rng(), reproducible(strict=False):
        seen = _Seen()
        _coverage.run(step, inputs, options, seen.begin, seen)
        seen.noted()
    return Catalogue(list(seen.operations.values()), Coverage(seen.refused))
