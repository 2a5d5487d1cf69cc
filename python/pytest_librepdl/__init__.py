"""pytest's plugin: the fixture `reproducible`, for tests of what PyTorch computes with librepdl.

    def test_training(reproducible):
        state = reproducible(train)           # runs train() on one thread and on two: the same bits, or the first tensor that differs
        reproducible.check(state, "lenet")    # the bits of fingerprints.json beside the test; pytest --update-fingerprints writes them

Installed with librepdl, and loaded by pytest; nothing of librepdl or PyTorch is imported before a test asks for the fixture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from librepdl.torch.evidence._repeat import Reproducible


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("librepdl").addoption("--update-fingerprints", action="store_true",
                                          help="reproducible.check(state, name) writes fingerprints.json, to be committed, and does not compare")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update-fingerprints") and config.getoption("numprocesses", None):
        raise pytest.UsageError("--update-fingerprints: expected one process, which writes the files, got several of pytest-xdist; add -n 0")


@pytest.fixture
def reproducible(request: pytest.FixtureRequest) -> Reproducible:
    """reproducible(function, threads=(1, 2), seed=0): calls the function once for each number of threads, computing with librepdl, each time
    after seeding the generators of PyTorch, NumPy and Python, and returns what it returns: modules, optimisers, tensors, numbers, in dicts and
    lists. DifferentBits names the first tensor that is not the same.

    reproducible.check(state, name): the state's bits are those in fingerprints.json, a file beside the test's that is committed.
    """
    from librepdl.torch.evidence._repeat import Reproducible

    return Reproducible(request.path, request.node.name, update=bool(request.config.getoption("--update-fingerprints")))
