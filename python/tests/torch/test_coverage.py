"""coverage(), and strict=False, which never raises for what PyTorch can do."""

from itertools import islice

import pytest
import torch
from torch import nn

import librepdl.torch
from librepdl.torch._coverage import WAYS, way_out


class Net(nn.Module):
    """Forward and backward partly refused."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
        self.outer = Last()
        self.lock = (i for i in ())  # can't be copied

    def forward(self, x):
        return self.outer(self.inner(x))


class Last(nn.Module):
    def forward(self, x):
        return x.polygamma(1)


def everything(net, *others):
    return librepdl.torch.fingerprint([net, *others, [p.grad for p in net.parameters() if p.grad is not None]])


@pytest.mark.parametrize("gradients", [False, True])
def test_a_model_stays_as_it_was(gradients):
    net, x = Net(), torch.randn(5, 4)
    if gradients:
        with librepdl.torch.reproducible(strict=False):
            net(x).sum().backward()
    grads, before, state = [p.grad for p in net.parameters()], everything(net), torch.get_rng_state()
    found = librepdl.torch.coverage(net, x)
    assert not found and not librepdl.torch.is_enabled()
    assert everything(net) == before and torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is g for p, g in zip(net.parameters(), grads))
    assert net.training and net.inner[1].num_batches_tracked == gradients
    # The module, of backward nodes too.
    for caller in ("called by Net.outer", "called by the backward pass, PolygammaBackward0 of Net.outer"):
        assert any("aten::polygamma (float32, cpu)" in what and what.endswith(caller) for what in found.refused)
    assert librepdl.torch.coverage(net.inner, x)
    assert librepdl.torch.coverage(nn.LazyLinear(2), x)


def test_steps_of_training_stay_undone():
    torch.manual_seed(0)
    net = Net()
    optimiser = torch.optim.Adam(net.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.5)
    losses, count, x, generator = [], 0, torch.randn(5, 4), torch.Generator().manual_seed(1)

    class Trainer:
        best = None

        def step(self, x):
            nonlocal count
            count += 1
            optimiser.zero_grad()
            loss = (net(x) + torch.rand(5, 4, generator=generator)).square().sum()
            loss.backward()
            optimiser.step()
            schedule.step()
            losses.append(loss)
            self.best = loss
            return loss

    trainer = Trainer()

    def now():
        return everything(net, optimiser, schedule), len(losses), count, trainer.best, generator.get_state().tolist()

    for _ in range(2):  # with and without a state of Adam
        before = now()
        found = librepdl.torch.coverage(trainer.step, x)
        assert now() == before
        assert any(what.endswith("PolygammaBackward0 of Net.outer") for what in found.refused)
        with librepdl.torch.exempt():
            trainer.step(x)
        assert now() != before
    assert librepdl.torch.coverage(lambda: net.inner(x).sum().backward())


@pytest.mark.parametrize("name", ["Adam", "SGD", "LBFGS"])
def test_optimisers(name):
    net = nn.Linear(3, 2)
    optimiser = getattr(torch.optim, name)(net.parameters(), lr=0.1)
    before = everything(net, optimiser)
    assert librepdl.torch.coverage(optimiser)
    assert everything(net, optimiser) == before and net.weight.grad is None
    fused = torch.optim.Adagrad(net.parameters(), fused=True)
    before = everything(net, fused)
    assert any("_fused_adagrad_" in what for what in librepdl.torch.coverage(fused).refused)
    assert everything(net, fused) == before


def test_losses_and_functions_have_gradients_of_their_inputs():
    x, y = torch.randn(3, 4), torch.tensor([0, 1, 3])
    assert librepdl.torch.coverage(nn.CrossEntropyLoss(), x, y)
    found = librepdl.torch.coverage(torch.Tensor.polygamma, x, 1)
    assert any("the backward pass, PolygammaBackward0" in what for what in found.refused)
    assert not x.requires_grad and x.grad is None
    with torch.inference_mode():
        z = torch.randn(3)
        assert librepdl.torch.coverage(torch.exp, z)


def test_ways_out():
    """By type, and by name."""
    found = librepdl.torch.coverage(torch.lgamma, torch.ones(3, dtype=torch.float64))
    assert set(found.ways_out().values()) == {"in float32: x.float()"} and "instead: in float32" in str(found)
    assert way_out("aten::fft_rfft (float32, cpu): not reproducible yet; called by Net") is None
    assert "imaginary" in str(way_out("aten::mul.Tensor (complex64, cpu): not reproducible yet"))
    assert not [name for name in WAYS if name.startswith("aten::")]  # of aten's, each would be tried here


@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.long)])
def test_strict_false_never_raises_for_what_pytorch_can_do(op_db, every):
    """The first samples of every (twelfth) operation, forward and backward."""
    import opinfo

    plain = []
    for op in op_db[::every]:
        for dtype in {torch.float32, torch.float64, torch.bfloat16, torch.int64} & op.dtypes:
            backward = op.supports_autograd and dtype.is_floating_point and dtype in op.backward_dtypes
            for sample in islice(op.sample_inputs("cpu", dtype, requires_grad=backward), 1 if dtype != torch.float32 else 2):
                try:
                    plain.append((op.name, dtype, op, sample, backward, opinfo.call(op, sample, backward, dtype)))
                except Exception:
                    continue
    assert len(plain) > 1000 / every
    with librepdl.torch.reproducible(strict=False):
        for name, dtype, op, sample, backward, expected in plain:
            try:
                found = opinfo.call(op, sample, backward, dtype)
            except Exception as e:
                raise AssertionError(f"{name}, {dtype}") from e
            assert [t.shape for t in found] == [t.shape for t in expected], (name, dtype)


def test_strict_false_of_a_derivative_that_is_refused():
    """renorm of float64 has neither librepdl's result nor its derivative."""
    x = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
    expected, = torch.autograd.grad(torch.renorm(x, 2, 0, 5.0).sum(), x)
    with librepdl.torch.reproducible(strict=False):
        found, = torch.autograd.grad(torch.renorm(x, 2, 0, 5.0).sum(), x)
    assert torch.equal(found, expected) and torch.equal(found, torch.ones_like(x))  # no norm is above 5
    with librepdl.torch.reproducible(), pytest.raises(NotImplementedError, match=r"aten::renorm \(float64, cpu\): not reproducible yet$"):
        torch.renorm(x, 2, 0, 0.5)


def test_strict_false_leaves_errors_to_pytorch():
    x = torch.ones(3, 4)
    calls = [lambda: x @ x, lambda: torch.add(x, torch.ones(2)), lambda: nn.functional.conv2d(x, x), lambda: x.sum(7)]

    def errors():
        found = []
        for call in calls:
            with pytest.raises(Exception) as e:
                call()
            found.append((e.type, str(e.value)))
        return found

    plain = errors()
    with librepdl.torch.reproducible(strict=False):
        librepdl.torch.status()
        assert errors() == plain
        assert librepdl.torch.status()["noted"] == {}
        # What librepdl does not take for another reason than its types.
        half = torch.ones(4, dtype=torch.float16)
        assert torch.nn.functional.layer_norm(x.double(), [4], torch.ones(4).double()).shape == (3, 4)
        assert torch.nn.functional.layer_norm(half[None], [4], half).shape == (1, 4)
        weight = torch.ones(4, dtype=torch.float64, requires_grad=True)
        torch.nn.functional.rms_norm(x.double(), [4], weight).sum().backward()
        assert weight.grad.tolist() == [3 - 2**-51] * 4  # three times RN(1 / sqrt(1 + 2^-52)) = 1 - 2^-53, rounded
        torch.nn.functional.rms_norm(torch.ones(3, 4, dtype=torch.complex64), [4])
        assert any("aten::rms_norm (complex64, cpu)" in what for what in librepdl.torch.status()["noted"])
