"""Errors are PyTorch's: of its types, with its words."""

import math

import pytest
import torch
import torch.nn.functional as F

import librepdl.torch

NAN, INF = math.nan, math.inf
INDEX = torch.tensor([0, 5, 1])
X, ROWS = torch.zeros(3), torch.zeros(3, 4)

ERRORS = {
    "cross_entropy": lambda: F.cross_entropy(ROWS, INDEX),
    "cross_entropy of weights": lambda: F.cross_entropy(ROWS, INDEX, weight=torch.ones(4)),
    "cross_entropy smoothed": lambda: F.cross_entropy(ROWS, INDEX, label_smoothing=0.1),
    "cross_entropy of an image": lambda: F.cross_entropy(torch.zeros(1, 4, 1, 3), INDEX.view(1, 1, 3)),
    "nll_loss": lambda: F.nll_loss(ROWS, torch.tensor([0, -5, 1]), reduction="none"),
    "nll_loss of a sample": lambda: F.nll_loss(X, INDEX[1]),
    "nll_loss in bfloat16": lambda: F.nll_loss(ROWS.bfloat16(), INDEX, reduction="sum"),
    "binary_cross_entropy": lambda: F.binary_cross_entropy(torch.tensor([0.5, 1.5]), torch.tensor([0.5, 1.0])),
    "binary_cross_entropy of NaN": lambda: F.binary_cross_entropy(torch.tensor([NAN]), torch.tensor([0.5])),
    "binary_cross_entropy's target": lambda: F.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([-0.5])),
    "bernoulli": lambda: torch.bernoulli(torch.tensor([0.5, 1.5])),
    "bernoulli of NaN": lambda: torch.bernoulli(torch.tensor([NAN])),
    "bernoulli_ of a tensor": lambda: torch.empty(2).bernoulli_(torch.tensor([-0.1, 0.5])),
    "bernoulli_ of a number": lambda: torch.empty(2).bernoulli_(1.5),
    "multinomial below 0": lambda: torch.multinomial(torch.tensor([1.0, -1.0]), 1),
    "multinomial of NaN": lambda: torch.multinomial(torch.tensor([1.0, NAN]), 1),
    "multinomial of inf": lambda: torch.multinomial(torch.tensor([1.0, INF]), 2, True),
    "multinomial of zeros": lambda: torch.multinomial(X, 1),
    "embedding": lambda: F.embedding(INDEX, ROWS),
    "one_hot": lambda: F.one_hot(INDEX, 3),
    "gather": lambda: X.gather(0, INDEX),
    "take": lambda: X.take(INDEX),
    "index_select": lambda: X.index_select(0, INDEX),
    "indices": lambda: X[INDEX],
    "scatter": lambda: X.scatter(0, INDEX, X),
    "scatter_add": lambda: X.scatter_add(0, INDEX, X),
    "scatter_reduce": lambda: X.scatter_reduce(0, INDEX, X, "sum"),
    "index_add": lambda: X.index_add(0, INDEX, X),
    "index_copy": lambda: X.index_copy(0, INDEX, X),
    "index_put": lambda: X.index_put((INDEX,), X + 1),
    "index_put accumulated": lambda: X.clone().index_put_((INDEX,), X, accumulate=True),
    "an axis": lambda: X.sum(2), "an axis twice": lambda: X.sum((0, 0)), "softmax's axis": lambda: X.softmax(-3),
    "max of nothing": lambda: torch.zeros(0).max(), "argmax of nothing": lambda: torch.zeros(0).argmax(),
    "max along nothing": lambda: torch.zeros(2, 0).max(1), "amax of nothing": lambda: torch.zeros(0).amax(),
    "mm": lambda: ROWS @ ROWS, "mm of types": lambda: ROWS @ ROWS.t().double(), "addmm": lambda: torch.addmm(X, ROWS, ROWS),
    "bmm": lambda: torch.bmm(ROWS, ROWS), "dot": lambda: X.dot(ROWS[0]), "linear": lambda: F.linear(X, torch.zeros(2, 4)),
    "shapes": lambda: X + ROWS, "in place": lambda: X.clone().add_(torch.zeros(2, 3)), "into integers": lambda: INDEX.clone().mul_(0.5),
    "layer_norm": lambda: F.layer_norm(ROWS, (3,)), "group_norm": lambda: F.group_norm(ROWS, 3),
    "batch_norm": lambda: F.batch_norm(ROWS, torch.zeros(3), torch.ones(3)),
    "conv2d": lambda: F.conv2d(torch.zeros(1, 2, 4, 4), torch.zeros(1, 3, 3, 3)),
    "a large kernel": lambda: F.conv2d(torch.zeros(1, 3, 2, 2), torch.zeros(1, 3, 3, 3)),
    "max_pool2d": lambda: F.max_pool2d(torch.zeros(1, 1, 4, 4), 2, padding=3), "glu": lambda: F.glu(X),
    "mse_loss": lambda: F.mse_loss(X, torch.zeros(2)), "topk": lambda: X.topk(4), "kthvalue": lambda: X.kthvalue(5),
    "mean of integers": lambda: INDEX.mean(), "uniform_": lambda: X.clone().uniform_(1, 0), "normal_": lambda: X.clone().normal_(0, -1),
    "exponential_": lambda: X.clone().exponential_(-1), "dropout": lambda: torch.dropout(X, 1.5, True),
    "arange": lambda: torch.arange(0.0, 1.0, 0.0),
    "randint": lambda: torch.randint(3, 3, (2,)), "trace": lambda: X.trace(), "cat": lambda: torch.cat([X, ROWS]),
}


def tried(function):
    try:
        return function()
    except Exception as e:
        return e


@pytest.mark.parametrize("strict", [True, False])
def test_errors_are_pytorchs(strict):
    plain = {name: tried(f) for name, f in ERRORS.items()}
    wrong = []
    with librepdl.torch.reproducible(strict):
        for name, f in ERRORS.items():
            right, found = plain[name], tried(f)
            words = [str(e).splitlines()[0] for e in (found, right)]
            if not isinstance(right, Exception) or type(found) is not type(right) or words[0] != words[1]:
                wrong.append(f"{name}: {found!r:.200}, PyTorch {right!r:.200}")
    assert not wrong, "\n".join(wrong)


def test_what_is_ignored_is_no_class():
    target = torch.tensor([0, -100, 3])
    with librepdl.torch.reproducible():
        x = torch.randn(3, 4)
        assert torch.equal(F.cross_entropy(x, target), F.cross_entropy(x[[0, 2]], target[[0, 2]]))
        assert torch.equal(F.nll_loss(x, target.clamp(-100, 9), ignore_index=-100, reduction="sum"),
                           F.nll_loss(x[[0, 2]], target[[0, 2]], reduction="sum"))


def test_an_error_changes_nothing():
    x = torch.ones(3)
    with librepdl.torch.reproducible():
        with pytest.raises(RuntimeError):
            x.scatter_add_(0, INDEX, torch.ones(3))
        assert x.tolist() == [1, 1, 1]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.ELU(alpha=INF)  # a coefficient that librepdl does not take

    def forward(self, x):
        return self.inner(x)


def test_what_the_library_does_not_take_is_refused_by_name():
    x = torch.ones(3)
    right = Net()(x)
    with librepdl.torch.reproducible():
        why = r"aten::elu \(float32, cpu\): not reproducible yet \(librepdl: elu: alpha.*called by Net.inner"
        with pytest.raises(NotImplementedError, match=why):
            Net()(x)
    with librepdl.torch.reproducible(strict=False):
        librepdl.torch.status()
        assert torch.equal(Net()(x), right)
        assert any("aten::elu" in what for what in librepdl.torch.status()["noted"])
