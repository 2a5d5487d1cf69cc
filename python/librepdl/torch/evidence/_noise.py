"""How far apart trainings end that differ in nothing that should matter: in plain PyTorch, and with librepdl."""

import contextlib
import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch.nn.modules import module as module_hooks
from torch.optim import optimizer as optimizer_hooks
from torch.utils._pytree import tree_map

from librepdl.torch import _coverage, _door, _parts, exempt, fingerprint, reproducible
from librepdl.torch.evidence import _report, _runs

#: What a run is made in: a function that gives a context manager, or arguments of `train`. What the context manager gives is a list of what
#: it has changed, if it gives a list.
Setting = Callable[[], contextlib.AbstractContextManager[Any]] | Mapping[str, Any]


# ---- settings ----


@contextlib.contextmanager
def _threads() -> Iterator[None]:
    """One thread instead of several, two instead of one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if before > 1 else 2)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def _memory_format() -> Iterator[list[str]]:
    """Modules get their four-dimensional inputs channels last, or if the first was that, channels first: the same numbers."""
    changed: list[str] = []
    formats: list[torch.memory_format] = []  # none, before the first input, or one

    def other(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dim() != 4 or not value.is_floating_point():
            return value
        if not formats and value.is_contiguous() != value.is_contiguous(memory_format=torch.channels_last):  # not both, as one channel is
            formats.append(torch.channels_last if value.is_contiguous() else torch.contiguous_format)
        result = value.contiguous(memory_format=formats[0]) if formats else value
        if result is not value:
            changed.append("an input")
        return result

    def before_each(_: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(map(other, inputs))

    handle = module_hooks.register_module_forward_pre_hook(before_each)  # type: ignore[arg-type]
    try:
        yield changed
    finally:
        handle.remove()


@contextlib.contextmanager
def _foreach() -> Iterator[list[str]]:
    """Optimisers loop over tensors instead of working on lists of them, or the other way round."""
    changed: list[str] = []
    before: list[tuple[dict[str, Any], Any]] = []

    def begins(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        for group in optimizer.param_groups:
            if "foreach" in group and not group.get("fused") and not group.get("differentiable"):
                before.append((group, group["foreach"]))
                on = any(p.is_cuda for p in group["params"]) if group["foreach"] is None else group["foreach"]
                group["foreach"] = not on
                changed.append("an optimiser")

    def ends(*_: Any) -> None:
        while before:
            group, foreach = before.pop()
            group["foreach"] = foreach

    handles = [optimizer_hooks.register_optimizer_step_pre_hook(begins), optimizer_hooks.register_optimizer_step_post_hook(ends)]
    try:
        yield changed
    finally:
        ends()
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def _batch_order() -> Iterator[list[str]]:
    """Batches of every DataLoader with the last sample first. What a model draws for a sample, as dropout does, it then draws for another."""
    changed: list[str] = []
    loader = torch.utils.data.DataLoader
    plain = loader.__iter__

    def turned(value: Any) -> Any:
        return value.flip(0) if isinstance(value, torch.Tensor) and value.dim() > 0 else value

    def batches(self: Any) -> Iterator[Any]:
        for batch in plain(self):
            changed.append("a batch")
            yield tree_map(turned, batch)

    loader.__iter__ = batches  # type: ignore[method-assign, assignment]
    try:
        yield changed
    finally:
        loader.__iter__ = plain  # type: ignore[method-assign]


@contextlib.contextmanager
def _mkldnn() -> Iterator[None]:
    """Without oneDNN's kernels, or with them if it was without."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(not before)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def _attention() -> contextlib.AbstractContextManager[Any]:
    """scaled_dot_product_attention as products and softmax, not in one kernel."""
    return torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)


def _cudnn() -> contextlib.AbstractContextManager[Any]:
    """cuDNN tries its algorithms and takes the fastest, or takes one without trying."""
    return torch.backends.cudnn.flags(enabled=True, benchmark=not torch.backends.cudnn.benchmark)


#: Settings that should not matter, by name. Others, of the user's own, can stand beside them: vary={**SETTINGS, "mine": my_context}.
SETTINGS: dict[str, Setting] = {
    "again": contextlib.nullcontext,
    "threads": _threads,
    "memory_format": _memory_format,
    "mkldnn": _mkldnn,
    "foreach": _foreach,
    "attention": _attention,
    "cudnn": _cudnn,
    "device": {"device": "cuda"},
    "batch_order": _batch_order,
}
#: Without batch_order, which does matter where something is drawn for each sample.
VARIED = tuple(name for name in SETTINGS if name != "batch_order")


def _settings(parameters: Mapping[str, inspect.Parameter],
              vary: Iterable[str] | Mapping[str, Setting]) -> tuple[dict[str, Setting], dict[str, str]]:
    """Those to run, and those that cannot be, with the reason. `parameters` are those of train."""
    if isinstance(vary, str):
        vary = (vary,)
    if not isinstance(vary, Mapping):
        names = tuple(vary)
        for name in names:
            if name not in SETTINGS:
                raise ValueError(f"noise_floor: vary: expected names of {', '.join(SETTINGS)}, or a dict of names and context managers, "
                                 f"got {name!r}")
        vary = {name: SETTINGS[name] for name in names}
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    run, skipped = dict[str, Setting](), dict[str, str]()
    for name, setting in vary.items():
        if isinstance(setting, Mapping):
            absent = [key for key in setting if key not in parameters and not takes_all]
            if absent and name != "device":
                raise TypeError(f"noise_floor: vary: {name!r}: expected arguments that train takes, got {absent[0]!r}")
            if absent:
                skipped[name] = "train has no parameter `device`"
                continue
        elif not callable(setting):
            raise TypeError(f"noise_floor: vary: {name!r}: expected a function that gives a context manager, or a dict of arguments of train, "
                            f"got {type(setting).__name__}")
        if setting in (SETTINGS["device"], SETTINGS["cudnn"]) and not torch.cuda.is_available():
            skipped[name] = "no GPU"
        else:
            run[name] = setting
    return run, skipped


# ---- one run ----


class _Enough(BaseException):
    """Ends a run after the step that was to be seen. No `except Exception` of the user's stops it."""


@dataclass(frozen=True)
class _Event:
    """What a training computed at one place: the fingerprint of it."""

    what: str
    where: str
    digest: str


class _Recorder:
    """Hooks of modules and optimisers: fingerprints of the parameters after each optimiser step, losses; of step number `at`, the first being 1,
    everything that modules, gradients and the optimiser give, in the order in which it was computed."""

    def __init__(self, at: int | None) -> None:
        self.steps: list[str] = []
        self.losses: list[float] = []
        self.events: list[_Event] = []
        self.parameters: dict[int, torch.Tensor] = {}  # of the optimisers, by id
        self._at = at
        self._names: dict[int, str] = {}

    def __enter__(self) -> "_Recorder":
        plain = torch.autograd.backward

        @functools.wraps(plain)
        def backward(tensors: Any, *arguments: Any, **options: Any) -> Any:
            if isinstance(tensors, torch.Tensor) and tensors.numel() == 1:
                self._loss(tensors)
            return plain(tensors, *arguments, **options)

        torch.autograd.backward = backward
        handles: list[Any] = [optimizer_hooks.register_optimizer_step_post_hook(self._stepped)]
        if self._at is not None:
            handles += [module_hooks.register_module_forward_hook(self._called), optimizer_hooks.register_optimizer_step_pre_hook(self._steps)]
        self._handles = handles
        self._backward = plain
        return self

    def __exit__(self, *_: Any) -> None:
        torch.autograd.backward = self._backward
        for handle in self._handles:
            handle.remove()

    def _seen(self) -> bool:
        return self._at == len(self.steps) + 1

    def _add(self, what: str, where: str, value: Any) -> None:
        if self._seen():
            dense = [t.to_dense() if t.layout != torch.strided else t for t in _coverage._tensors(value)]
            self.events.append(_Event(what, where, fingerprint(dense)))

    def _loss(self, loss: torch.Tensor) -> None:
        self.losses.append(float(loss.detach()))
        self._add("loss", "the loss", loss.detach())

    def _called(self, module: torch.nn.Module, _: Any, output: Any) -> None:
        if not self._seen():
            return
        running = _door.running_modules()
        path = _door.module_path(running) or type(module).__name__
        for name, p in running[-1].named_parameters() if running else ():
            if id(p) not in self._names:
                self._names[id(p)] = f"{type(running[-1]).__name__}.{name}"
                if p.requires_grad:
                    self._watch(p, "gradient", self._names[id(p)])
        self._add("forward", path, output)
        for t in _coverage._tensors(output):
            if t.requires_grad:
                self._watch(t, "gradient of its output", path)

    def _watch(self, t: torch.Tensor, what: str, where: str) -> None:
        """The gradient, when it is known."""
        self._handles.append(t.register_hook(lambda gradient: self._add(what, where, gradient)))  # type: ignore[no-untyped-call]

    def _of(self, optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, torch.Tensor]]:
        for group in optimizer.param_groups:
            for p in group["params"]:
                self.parameters.setdefault(id(p), p)
                yield self._names.get(id(p), f"parameter {list(self.parameters).index(id(p))}") if self._seen() else "", p

    def _steps(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if self._seen():
            for name, p in self._of(optimizer):
                if p.grad is not None:
                    self._add(f"gradient that {type(optimizer).__name__} gets", name, p.grad)

    def _stepped(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        of = list(self._of(optimizer))
        if self._seen():
            for name, p in of:
                self._add(f"step of {type(optimizer).__name__}", name, p)
        self.steps.append(fingerprint([p for _, p in of]))
        if self._at == len(self.steps):
            raise _Enough


@dataclass
class _Run:
    """What one training ended in."""

    recorder: _Recorder
    fingerprint: str = ""
    loss: float | None = None
    weights: dict[str, torch.Tensor] = field(default_factory=dict)  # floating-point tensors of the state, on the CPU
    applied: bool = True


def _is_loss(value: Any) -> bool:
    return isinstance(value, (int, float)) or isinstance(value, torch.Tensor) and value.numel() == 1


def _run(train: Callable[..., Any], start: _runs.Start, setting: Setting, at: int | None = None) -> _Run:
    recorder = _Recorder(at)
    run = _Run(recorder)
    arguments = dict(setting) if isinstance(setting, Mapping) else {}
    context = contextlib.nullcontext() if isinstance(setting, Mapping) else setting()
    if not isinstance(context, contextlib.AbstractContextManager):
        raise TypeError(f"noise_floor: vary: expected functions that give context managers, got one that gives {type(context).__name__}")
    with start.begin():
        try:
            with context as changed, recorder:
                result = _runs.finished(train, arguments)
        except _Enough:
            return run
        run.applied = not isinstance(changed, list) or len(changed) > 0
        state = result
        if isinstance(result, tuple) and len(result) == 2 and _is_loss(result[1]):
            state = result[0]
            run.loss = float(result[1].detach() if isinstance(result[1], torch.Tensor) else result[1])
        elif recorder.losses:
            run.loss = recorder.losses[-1]
        if state is None:
            state = list(recorder.parameters.values())
        if state is None or not any(isinstance(value, torch.Tensor) for _, value in _parts("", state)):
            raise TypeError("noise_floor: train: expected it to return a module, a state_dict, or (state, loss), or to step an optimiser of "
                            f"torch.optim, got {type(result).__name__} without a tensor in it")
        run.fingerprint = fingerprint({"state": state, "loss": run.loss})
        run.weights = {path: value.detach().cpu().clone() for path, value in _parts("", state)
                       if isinstance(value, torch.Tensor) and value.is_floating_point()}
    return run


# ---- two runs ----


@dataclass(frozen=True)
class Difference:
    """How far a run with one setting ended from the first run."""

    setting: str
    fingerprint: str  #: of state and loss
    equal: bool  #: whether that is the first run's
    applied: bool  #: false: there was nothing that the setting changes, such as an image for memory_format
    loss: float | None  #: at the end
    loss_gap: float | None  #: abs(loss - the first run's)
    distance: float  #: the L2 norm of all weights' differences, in binary64
    differing: int  #: how many elements of the weights have other bits
    elements: int  #: of how many
    first_step: int | None  #: the first call of an optimiser's step, counted from 1, that differs or has something before it that does
    first_module: str | None  #: where the first difference in that step is
    first_what: str | None  #: and what: forward, gradient, loss, ...
    losses: tuple[float, ...]  #: where each backward pass began

    @property
    def share(self) -> float:
        """Of the weights' elements that have other bits: 0 to 1."""
        return self.differing / self.elements if self.elements else 0.0


_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _apart(a: torch.Tensor, b: torch.Tensor) -> tuple[float, int]:
    """The squared L2 norm of the difference, and how many elements have other bits."""
    x, y = a.contiguous(), b.contiguous()
    bits = _INTEGERS[x.element_size()]
    differing = int((x.reshape(-1).view(bits) != y.reshape(-1).view(bits)).sum())
    if differing == 0:
        return 0.0, 0
    d = x.double().numpy() - y.double().numpy()
    return float(np.sum(d * d)), differing


def _first_step(one: _Recorder, other: _Recorder) -> int:
    """Counted from 1; that after the last step, if all steps are equal."""
    pairs = zip(one.steps, other.steps)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one.steps), len(other.steps))) + 1


def _first_event(one: list[_Event], other: list[_Event]) -> tuple[str | None, str | None]:
    """Where, and what."""
    for a, b in zip(one, other):
        if (a.what, a.where) != (b.what, b.where):
            return a.where, f"the first run has {a.what} there, this one {b.what} of {b.where}"
        if a.digest != b.digest:
            return a.where, a.what
    return None, None


def _differences(train: Callable[..., Any], start: _runs.Start, settings: dict[str, Setting]) -> list[Difference]:
    """The first run, then one with each setting. A run that differs is made once more, up to the step where it does, and there everything is
    fingerprinted, as is everything of a first run that goes as far."""
    first = _run(train, start, contextlib.nullcontext)

    @functools.cache
    def events_of_first(step: int) -> list[_Event]:
        return _run(train, start, contextlib.nullcontext, step).recorder.events

    def of(name: str, run: _Run, setting: Setting) -> Difference:
        if {k: v.shape for k, v in run.weights.items()} != {k: v.shape for k, v in first.weights.items()}:
            raise ValueError(f"noise_floor: train: expected the same tensors from every run, got others with the setting {name!r}")
        with exempt():
            apart = [_apart(first.weights[path], run.weights[path]) for path in first.weights]
        equal = run.fingerprint == first.fingerprint
        step, where, what = None, None, None
        if not equal:
            step = _first_step(first.recorder, run.recorder)
            where, what = _first_event(events_of_first(step), _run(train, start, setting, step).recorder.events)
        gap = None if run.loss is None or first.loss is None else abs(run.loss - first.loss)
        return Difference(name, run.fingerprint, equal, run.applied, run.loss, gap, math.sqrt(sum(squares for squares, _ in apart)),
                          sum(count for _, count in apart), sum(t.numel() for t in run.weights.values()), step, where, what,
                          tuple(run.recorder.losses))

    found = [of("first", first, contextlib.nullcontext)]
    for name, setting in settings.items():
        try:
            found.append(of(name, _run(train, start, setting), setting))
        except Exception as e:
            e.add_note(f"noise_floor: in the run with the setting {name!r}")
            raise
    return found


# ---- the report ----


@dataclass(frozen=True)
class NoiseFloor:
    """Runs that should be equal. True where librepdl's all have the same bits."""

    plain: list[Difference]  #: PyTorch's, the first run first
    librepdl: list[Difference]  #: empty where librepdl refuses something
    refused: str | None  #: what it says then
    skipped: dict[str, str]  #: settings that could not be, and why
    machine: str

    def __bool__(self) -> bool:
        return bool(self.librepdl) and all(d.equal for d in self.librepdl)

    def __str__(self) -> str:
        head = ("setting", "fingerprint", "loss", "loss gap", "weights' L2", "other bits", "first difference")
        parts = []
        for name, runs in (("plain PyTorch", self.plain), ("with librepdl", self.librepdl)):
            if runs:
                parts += [f"{name}:", _report.table(head, [self._row(d) for d in runs], right=range(2, 6))]
        if self.refused is not None:
            parts.append(f"with librepdl: refused: {self.refused}")
        parts += [f"not run: {name}: {why}" for name, why in self.skipped.items()]
        return "\n".join([*parts, self.machine])

    @staticmethod
    def _row(d: Difference) -> tuple[str, ...]:
        where = f"step {d.first_step}: " + (f"{d.first_what}, {d.first_module}" if d.first_module else "found in none of the modules when repeated")
        return (d.setting, d.fingerprint[:8], "" if d.loss is None else f"{d.loss:.9g}", _report.number(d.loss_gap), _report.number(d.distance),
                f"{100 * d.share:.3g} %", "nothing to change" if not d.applied else "" if d.equal else where)

    def json(self) -> str:
        """Everything, as JSON; NaN and infinities as texts."""
        return _report.as_json({"machine": self.machine, "reproducible": bool(self),
                                **{name: [{**asdict(d), "share": d.share} for d in runs] for name, runs in
                                   (("plain", self.plain), ("librepdl", self.librepdl))},
                                "refused": self.refused, "skipped": self.skipped})

    def plot(self, path: str | os.PathLike[str]) -> None:
        """The loss gap at each backward pass, and the weights' distance at the end. The name's ending says which format; needs matplotlib."""
        figure, (over_time, at_end) = _report.axes("noise_floor", 2)
        runs = [(f"plain, {d.setting}", "C0", self.plain[0], d) for d in self.plain[1:]]
        if self:  # one line, not several in one place
            runs.append((f"librepdl, {len(self.librepdl)} runs", "C2", self.librepdl[0], self.librepdl[0]))
        else:
            runs += [(f"librepdl, {d.setting}", "C2", self.librepdl[0], d) for d in self.librepdl[1:]]
        gaps = [[abs(a - b) for a, b in zip(first.losses, d.losses)] for _, _, first, d in runs]
        for (label, *_), of in zip(runs, gaps):
            over_time.plot(range(1, len(of) + 1), of, label=label)

        def smallest(values: Iterable[float]) -> float:
            """From there on an axis that begins at 0 is logarithmic."""
            return min((v for v in values if 0 < v < math.inf), default=1e-9)

        over_time.set_yscale("symlog", linthresh=smallest(gap for of in gaps for gap in of))
        over_time.xaxis.get_major_locator().set_params(integer=True)
        over_time.set(xlabel="backward pass", ylabel="loss gap to the first run", ylim=(0, None))
        if runs:
            over_time.legend(fontsize="small")
        at_end.barh([label for label, *_ in runs], [d.distance for *_, d in runs], color=[color for _, color, *_ in runs])
        at_end.invert_yaxis()
        at_end.set_xscale("symlog", linthresh=smallest(d.distance for *_, d in runs))
        at_end.set(xlim=(0, None), xlabel="L2 distance of the weights to the first run's, at the end")
        _report.save(figure, path)


def noise_floor(train: Callable[..., Any], vary: Iterable[str] | Mapping[str, Setting] = VARIED) -> NoiseFloor:
    """Trains in plain PyTorch as it is, and once more with each setting that should not matter; then the same with librepdl.

        print(noise_floor(train, vary=("again", "threads", "mkldnn")))

    train() makes a whole training, best a short one, and returns what is compared: a module, a state_dict (what fingerprint() takes), or
    (state, loss). From None: the parameters that optimisers have stepped. The loss is the one that is returned, or where the last backward pass
    began. Every run begins with the random generators as they are now, and ends with everything that train reaches as it was: a model that it
    makes, or one from outside. Nothing else is to be changed in it.

    vary: names of SETTINGS, or a dict: of names and functions that give context managers, or dicts of arguments of train.

      again           nothing: what differs here is noise of every run, or train does not begin alike (a file, an iterator that goes on)
      threads         another number of threads
      memory_format   modules get images channels last (or first, if they were last)
      mkldnn          without oneDNN
      foreach         the optimisers' other loop
      attention       in several operations, not in one kernel
      cudnn           its choice of algorithms by trial; with a GPU
      device          train(device="cuda"), if it has that parameter; with a GPU
      batch_order     not in the default: batches of DataLoaders with the last sample first. It matters where each sample has random numbers
                      (dropout, augmentation)

    A run that differs is made again up to the step where it does, to find the module. Raises ValueError and TypeError that name the argument,
    and what train raises, with a note of the setting.
    """
    settings, skipped = _settings(_runs.checked("noise_floor", train), vary)
    start = _runs.Start(train)
    plain = _differences(train, start, settings)
    librepdl, refused = list[Difference](), None
    try:
        with reproducible():
            librepdl = _differences(train, start, settings)
    except NotImplementedError as e:
        refused = str(e)
    return NoiseFloor(plain, librepdl, refused, skipped, _report.machine())
