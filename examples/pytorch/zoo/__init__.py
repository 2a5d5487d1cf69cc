"""The zoo's frame: what a model of it is, and how it is trained and served.

A model is a function without arguments that makes a Task, with a line of documentation, in one of the modules of this folder:

    @model("vision", seed=3)
    def lenet():
        '''LeNet-5 (LeCun et al., 1998).'''
        return Task(nn.Sequential(...), images(1, 28, classes=10), classify)
"""

import contextlib
import functools
import importlib
import importlib.util
import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from common import import_torchvision

BATCH, STEPS, SERVED = 4, 3, 5


@dataclass
class Task:
    """A network, its data and how it learns. A sample is a tuple of tensors; a batch is a tuple of them, stacked."""

    net: nn.Module
    sample: Callable[[torch.Generator], tuple[Any, ...]]
    loss: Callable[..., torch.Tensor]  #: loss(net, *batch), to go down
    serve: Callable[..., Any] = lambda net, *batch: net(batch[0])  #: what users ask of the trained one; as many rows for each sample
    optimizer: Callable[..., torch.optim.Optimizer] = functools.partial(torch.optim.AdamW, lr=1e-3)
    schedule: Callable[[torch.optim.Optimizer], Any] | None = None
    #: For networks that are trained against each other: losses, each with the part that it teaches; instead of `loss`.
    phases: list[tuple[Callable[..., torch.Tensor], nn.Module]] = field(default_factory=list)
    after: Callable[[nn.Module], None] = lambda net: None  #: after each step: averages of weights
    clip: float | None = None  #: the greatest norm of the gradients
    collate: Callable[[list[tuple[Any, ...]]], tuple[Any, ...]] | None = None  #: of samples that do not stack: graphs
    autocast: torch.dtype | None = None


@dataclass(frozen=True)
class Entry:
    name: str
    family: str
    package: str | None  #: what has to be installed besides PyTorch
    build: Callable[[], Task]

    def task(self) -> Task:
        if self.package is not None:
            import_torchvision()
        return self.build()

    @property
    def about(self) -> str:
        return (inspect.getdoc(self.build) or "").splitlines()[0]

    def absent(self) -> bool:
        return self.package is not None and importlib.util.find_spec(self.package) is None


_entries: dict[str, Entry] = {}
FAMILIES = ("vision", "generative", "language", "audio", "graphs", "recommendation", "reinforcement", "science", "timm_models", "transformers_models")


def model(family: str, package: str | None = None) -> Callable[[Callable[[], Task]], Callable[[], Task]]:
    def add(build: Callable[[], Task]) -> Callable[[], Task]:
        assert build.__name__ not in _entries, f"two models are called {build.__name__}"
        _entries[build.__name__] = Entry(build.__name__, family, package, build)
        return build

    return add


def entries() -> dict[str, Entry]:
    """All models, by name."""
    for name in FAMILIES:
        importlib.import_module(f"zoo.{name}")
    return _entries


# ---- training and serving ----


@dataclass(frozen=True)
class Setting:
    """What must not change a bit."""

    threads: int = 1
    mkldnn: bool = True
    channels_last: bool = False
    foreach: bool = False


SETTINGS = {
    "plain": Setting(),
    "threads": Setting(threads=2),
    "no-mkldnn": Setting(mkldnn=False),
    "channels-last": Setting(channels_last=True),
    "foreach": Setting(foreach=True),
    "all-others": Setting(2, False, True, True),
}


@contextlib.contextmanager
def within(setting: Setting) -> Any:
    before = torch.get_num_threads(), torch.backends.mkldnn.enabled
    torch.set_num_threads(setting.threads)
    torch.backends.mkldnn.set_flags(setting.mkldnn)
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.backends.mkldnn.set_flags(before[1])


def move(value: Any, device: str, setting: Setting) -> Any:
    """A batch on the device, and images in the setting's memory format."""
    if isinstance(value, (tuple, list)):
        return type(value)(move(item, device, setting) for item in value)
    if not isinstance(value, torch.Tensor):
        return value
    value = value.to(device)
    return channels_last(value) if setting.channels_last else value


def channels_last(value: torch.Tensor) -> torch.Tensor:
    """Of images and volumes; others as they are."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return value.to(memory_format=formats[value.dim()]) if value.dim() in formats else value


def stack(samples: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(torch.stack([torch.as_tensor(part) for part in parts]) for parts in zip(*samples))


def rows(result: Any, count: int) -> list[torch.Tensor]:
    """What was served, a row for each sample."""
    results = result if isinstance(result, (tuple, list)) else [result]
    return [r.reshape(count, -1) for r in results]


def run(task: Task, device: str = "cpu", setting: Setting = Setting(), count: int = STEPS) -> tuple[dict[str, Any], bool]:
    """Some steps of training, and the trained network served, in batches of several sizes. Everything that came out of it, and whether a
    sample's result is the same in every batch."""
    generator = torch.Generator().manual_seed(2)
    net = task.net.to(device)
    if setting.channels_last:
        for tensor in (*net.parameters(), *net.buffers()):
            tensor.data = channels_last(tensor.data)
    collate = task.collate or stack

    def batch(samples: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        return move(collate(samples), device, setting)

    phases = task.phases or [(task.loss, net)]
    takes_foreach = "foreach" in inspect.signature(inspect.unwrap(getattr(task.optimizer, "func", task.optimizer))).parameters
    options = {"foreach": setting.foreach} if takes_foreach else {}
    optimizers = [task.optimizer([p for p in part.parameters() if p.requires_grad], **options) for _, part in phases]
    schedules = [task.schedule(optimizer) for optimizer in optimizers] if task.schedule else []
    history = []
    net.train()
    for _ in range(count):
        inputs = batch([task.sample(generator) for _ in range(BATCH)])
        for (loss_of, part), optimizer in zip(phases, optimizers):

            def losing() -> torch.Tensor:
                net.zero_grad()
                with torch.autocast(device.partition(":")[0], task.autocast, enabled=task.autocast is not None):
                    loss = loss_of(net, *inputs)
                loss.backward()
                if task.clip is not None:
                    nn.utils.clip_grad_norm_(part.parameters(), task.clip)
                return loss

            history.append(optimizer.step(losing).item())
        for schedule in schedules:
            schedule.step()
        task.after(net)
    if not all(map(math.isfinite, history)):
        raise ArithmeticError(f"losses {history}: expected finite numbers")
    net.eval()
    samples = [task.sample(generator) for _ in range(SERVED)]
    alike = True
    with torch.no_grad():
        together = rows(task.serve(net, *batch(samples)), SERVED)
        for order in ([0], [SERVED - 1], [3, 0, 1]):
            apart = rows(task.serve(net, *batch([samples[i] for i in order])), len(order))
            alike &= all(torch.equal(a, b[order]) for a, b in zip(apart, together))
    return {
        "model": net.state_dict(),
        "optimizers": [optimizer.state_dict()["state"] for optimizer in optimizers],
        "losses": history,
        "served": together,
    }, alike


# ---- data and losses that many have ----


def images(channels: int, size: int, classes: int = 10) -> Callable[[torch.Generator], tuple[Any, ...]]:
    """Images of noise, brighter in one row that says the class."""

    def sample(g: torch.Generator) -> tuple[Any, ...]:
        label = torch.randint(0, classes, (), generator=g)
        x = torch.rand(channels, size, size, generator=g)
        x[:, int(label) * size // classes] += 1
        return x - 0.5, label

    return sample


def vectors(size: int, classes: int = 4) -> Callable[[torch.Generator], tuple[Any, ...]]:
    def sample(g: torch.Generator) -> tuple[Any, ...]:
        x = torch.randn(size, generator=g)
        return x, x[:classes].argmax()

    return sample


def tokens(vocabulary: int, length: int, classes: int = 4) -> Callable[[torch.Generator], tuple[Any, ...]]:
    def sample(g: torch.Generator) -> tuple[Any, ...]:
        return torch.randint(1, vocabulary, (length,), generator=g), torch.randint(0, classes, (), generator=g)

    return sample


def classify(net: nn.Module, x: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(net(x), label)


def next_token(net: nn.Module, x: torch.Tensor, *_: Any) -> torch.Tensor:
    logits = net(x[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten())


def perceptron(*sizes: int, activation: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), activation()]
    return nn.Sequential(*layers[:-1])


def average_into(target: nn.Module, source: nn.Module, rate: float) -> None:
    """target = (1 - rate) target + rate source, of all weights."""
    with torch.no_grad():
        for a, b in zip(target.parameters(), source.parameters()):
            a.lerp_(b, rate)


def parameters(net: nn.Module | Iterable[torch.Tensor]) -> int:
    return sum(p.numel() for p in (net.parameters() if isinstance(net, nn.Module) else net))
