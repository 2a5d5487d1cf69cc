"""Trainings: one fingerprint, however they are run, interrupted or transformed."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from fit import fit
from torch import nn
from torch.nn import functional as F

import librepdl
import librepdl.torch
from librepdl.torch.evidence import first_difference

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "pytorch"
#: A covering array: of any three of the settings all combinations occur.
WAYS = [dict(zip(("threads", "no-mkldnn", "foreach", "channels-last", "isa"), row)) for row in (
    (1, 0, 0, 0, 0), (1, 0, 1, 1, 1), (1, 1, 0, 1, 1), (1, 1, 1, 0, 0), (2, 0, 0, 1, 1), (2, 0, 1, 0, 0), (2, 1, 0, 0, 0), (2, 1, 1, 1, 1))]


def run(example, *arguments, isa=None, status=0):
    import os
    env = {**os.environ, **({"REPDL_ISA": isa} if isa else {})}
    done = subprocess.run([sys.executable, str(EXAMPLES / f"{example}.py"), "--reproducible", *map(str, arguments)], capture_output=True,
                          text=True, env=env)
    assert done.returncode == status, done.stderr
    return re.findall(r"fingerprint  (\w+)", done.stdout)


def ways(example, *arguments):
    sets = [name for name, there in librepdl.info()["instruction_sets"].items() if there]
    found = set()
    for way in WAYS:
        flags = [f"--{name}" for name in ("no-mkldnn", "foreach", "channels-last") if way[name]]
        found.update(run(example, "--threads", way["threads"], *flags, *arguments, isa=sets[0] if way["isa"] else sets[-1]))
    return found


def test_lenet_has_one_fingerprint(tmp_path):
    found = ways("lenet", "--steps", 12, "--batch", 20)
    # Killed in a step, and resumed from what was saved before it.
    saved = tmp_path / "checkpoint"
    run("lenet", "--steps", 12, "--batch", 20, "--checkpoint", saved, "--die-at", 11, status=9)
    assert saved.exists()
    found.update(run("lenet", "--steps", 12, "--batch", 20, "--checkpoint", saved, "--threads", 2))
    assert len(found) == 1


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))])
def test_a_fit_again_and_killed_and_resumed(device, tmp_path):
    """Weights, the optimiser's and the generators' states, the best epoch, its loss and weights, to the last bit."""
    librepdl.torch.enable()
    whole = fit(tmp_path / "whole", device)
    assert whole["best"]["epoch"] == 1 and whole["epoch"] == 4  # the best one is before what is killed
    torch.set_num_threads(2)
    assert first_difference(whole, fit(tmp_path / "again", device)) is None
    killed = subprocess.run([sys.executable, Path(__file__).with_name("fit.py"), tmp_path / "killed", device, "2", "3"], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert torch.load(tmp_path / "killed")["epoch"] == 2
    torch.rand(3)  # this process has drawn other numbers
    assert first_difference(whole, fit(tmp_path / "killed", device)) is None
    assert device == "cpu" or first_difference(whole, fit(tmp_path / "cpu", "cpu")) is None


@pytest.mark.long
@pytest.mark.parametrize("example, steps", [("resnet18", 2), ("mlp_bf16", 12), ("gpt2", 4)])
def test_examples_have_one_fingerprint(example, steps, tmp_path):
    found = ways(example, "--steps", steps, "--batch", 2)
    saved = tmp_path / "checkpoint"
    if steps > 10:
        run(example, "--steps", steps, "--batch", 2, "--checkpoint", saved, "--die-at", 11, status=9)
        found.update(run(example, "--steps", steps, "--batch", 2, "--checkpoint", saved))
    assert len(found) == 1


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.layer_norm = nn.LayerNorm(8)
        self.linear = nn.Linear(8, 3)

    def forward(self, x):
        x = F.max_pool2d(F.gelu(self.norm(self.conv(x))), 2).flatten(2).mean(2)
        return self.linear(self.layer_norm(torch.cat([x, torch.tanh(x)], 1)))


def test_shapes_types_and_strides_are_those_of_fake_tensors():
    """CrossRefFakeMode runs each operation again without data, and compares what it says of the result."""
    from torch._subclasses.fake_utils import CrossRefFakeMode

    librepdl.torch.enable()
    for format in (torch.contiguous_format, torch.channels_last):
        model = Small().to(memory_format=format)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        x, y = torch.randn(4, 2, 6, 6).to(memory_format=format), torch.tensor([0, 1, 2, 1])
        with CrossRefFakeMode(ignore_op_fn=lambda op: op in (torch.ops.aten.native_batch_norm.default, torch.ops.aten.native_batch_norm_backward.default)):
            for _ in range(2):
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()


def test_checkpointing_is_the_same():
    from torch.utils.checkpoint import checkpoint

    librepdl.torch.enable()

    def gradient(wrap):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.SiLU(), nn.Linear(6, 2))
        x = torch.randn(3, 6, requires_grad=True)
        (checkpoint(model, x, use_reentrant=False) if wrap else model(x)).pow(2).sum().backward()
        return librepdl.torch.fingerprint([x.grad, *(p.grad for p in model.parameters())])

    assert gradient(False) == gradient(True)


def test_transforms_of_functions():
    librepdl.torch.enable()
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1))
    parameters = dict(model.named_parameters())
    x = torch.randn(7, 5)

    def loss(p, row):
        return torch.func.functional_call(model, p, (row,)).sum()

    one_by_one = [torch.func.grad(loss)(parameters, row) for row in x]
    together = torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, x)
    for name in parameters:
        assert torch.equal(together[name], torch.stack([g[name] for g in one_by_one])), name
    value, tangent = torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))
    assert torch.equal(value, librepdl.sin(x)) and torch.equal(tangent, librepdl.cos(x))


def test_gradients_to_be_differentiated_are_computed_by_the_calling_thread():
    """The order in which autograd adds up depends on the threads; of others than CPUs it has its own."""
    librepdl.torch.enable()
    seen = []

    class Asks(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(torch._C._is_multithreading_enabled())
            return g * 2

    x = torch.ones(2, requires_grad=True)
    torch.autograd.grad(Asks.apply(x).sum(), x)
    torch.autograd.grad(Asks.apply(x).sum(), x, create_graph=True)
    Asks.apply(x).sum().backward(create_graph=True)
    x.grad = None
    assert seen == [True, False, False] and torch._C._is_multithreading_enabled()


def test_hooks_and_second_derivatives():
    librepdl.torch.enable()
    x = torch.randn(6, requires_grad=True)
    (g,) = torch.autograd.grad((x * torch.sigmoid(x)).sum(), x, create_graph=True)
    g.sum().backward()
    a, x2 = x.grad.clone(), x.detach().clone().requires_grad_()
    torch.set_num_threads(2)
    (g,) = torch.autograd.grad((x2 * torch.sigmoid(x2)).sum(), x2, create_graph=True)
    g.sum().backward()
    assert torch.equal(a, x2.grad)


@pytest.mark.long
def test_a_prompt_has_the_same_logits_wherever_it_is_served():
    """GPT-2: alone, in a batch at any place, padded or not, with a cache or without, in pieces; and a sampler's probabilities are the
    trainer's."""
    pytest.importorskip("transformers")
    sys.path.insert(0, str(EXAMPLES))
    from gpt2 import small_gpt2

    librepdl.torch.enable()
    torch.manual_seed(0)
    model = small_gpt2().eval()
    prompt = torch.tensor([[72, 101, 108, 108, 111, 32, 119, 111]])
    others = torch.randint(1, 256, (3, 8))
    with torch.no_grad():
        alone = model(prompt).logits
        for place in range(4):
            batch = torch.cat([others[:place], prompt, others[place:]])
            assert torch.equal(model(batch).logits[place : place + 1], alone)
        padded = torch.cat([torch.zeros(1, 3, dtype=torch.int64), prompt], 1)
        mask = torch.cat([torch.zeros(1, 3, dtype=torch.int64), torch.ones_like(prompt)], 1)
        positions = (mask.cumsum(1) - 1).clamp_min(0)
        assert torch.equal(model(padded, attention_mask=mask, position_ids=positions).logits[:, 3:], alone)
        first = model(prompt[:, :5], use_cache=True)
        rest = model(prompt[:, 5:], past_key_values=first.past_key_values, use_cache=True)
        assert torch.equal(torch.cat([first.logits, rest.logits], 1), alone)
        sampled = torch.log_softmax(alone[:, :-1], -1).gather(2, prompt[:, 1:, None])
    model.train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    trained = torch.log_softmax(model(torch.cat([others, prompt])).logits[3:, :-1], -1).gather(2, prompt[:, 1:, None])
    assert torch.equal(trained.detach(), sampled)
