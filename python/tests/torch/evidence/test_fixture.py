"""pytest's fixture `reproducible`, as users write it: their tests are run by a pytest of their own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

TRAINING = '''
import random
import torch

calls = []

def train():
    calls.append(torch.get_num_threads())
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        (model(torch.randn(5, 8)).pow(2).sum() * random.random()).backward()
        optimizer.step()
    return {"model": model, "optimizer": optimizer}

def test_training(reproducible):
    state = reproducible(train)
    assert calls == [1, 2] and isinstance(state["model"], torch.nn.Module)
    reproducible.check(state, "trained")
'''
OTHERS = '''
import pytest
import torch

count = 0

def counting():
    global count
    count += 1
    return {"same": torch.ones(3), "weight": torch.tensor([1.0, 2.0, 1.0 + count * 2.0**-23])}

def test_that_fails(reproducible):
    reproducible(counting)

def by_threads():
    return torch.zeros(2) + torch.get_num_threads()

def test_of_threads(reproducible):
    reproducible(by_threads, threads=(1, 3))

def test_of_what_is_refused(reproducible):
    reproducible(lambda: torch.fft.rfft(torch.randn(8)))

def test_of_wrong_use(reproducible):
    with pytest.raises(TypeError, match="expected <lambda> to return what is to be compared .*got None"):
        reproducible(lambda: None)
    with pytest.raises(ValueError, match="threads: expected two numbers or more, of 1 or more, a run for each, got .1,."):
        reproducible(by_threads, threads=(1,))
    for text in ("[", "{}"):
        (PATH.parent / "fingerprints.json").write_text(text)
        with pytest.raises(ValueError, match="fingerprints.json: expected"):
            reproducible.check(torch.ones(1), "name" + text)

from pathlib import Path
PATH = Path(__file__)
'''


def installed():
    """Whether pytest loads the plugin by itself, as where librepdl is installed."""
    from importlib.metadata import entry_points

    return any(point.value == "pytest_librepdl" for point in entry_points(group="pytest11"))


@pytest.fixture
def run(tmp_path, capsys):
    """run(text, option...): a pytest in this process, of a file of tests; its exit status and what it prints."""
    def inner(text, *options):
        sys.modules.pop("test_it", None)
        (tmp_path / "test_it.py").write_text(text)
        plugin = [] if installed() else ["-p", "pytest_librepdl"]
        status = pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), *plugin, *options, str(tmp_path)])
        return int(status), capsys.readouterr().out

    yield inner
    sys.modules.pop("test_it", None)


def test_a_training_and_its_committed_bits(run, tmp_path):
    path = tmp_path / "fingerprints.json"
    status, printed = run(TRAINING)
    assert status == 1 and "expected a fingerprint of test_it.py::test_training::trained, found none" in printed, printed
    assert not path.exists()
    assert run(TRAINING, "--update-fingerprints")[0] == 0
    written = path.read_bytes()
    torch.manual_seed(7)
    assert run(TRAINING)[0] == 0 and path.read_bytes() == written
    found = json.loads(written)
    (state,) = found["states"].values()
    assert len(state["tensors"]) > 12
    state["tensors"]["/'model'/'2.bias'"] = state["fingerprint"] = "0" * 16
    path.write_text(json.dumps(found))
    status, printed = run(TRAINING)
    assert status == 1 and "trained: /'model'/'2.bias': '0000000000000000' and '" in printed, printed


def test_failures_name_the_first_difference(run):
    _, printed = run(OTHERS)
    assert "counting: 1 thread and 2 threads: /'weight': 1 of 3 elements differ, the first at [2]: 1.0000001192092896 (0x3f800001)" in printed, printed
    assert "two runs on 1 thread: /'weight': 1 of 3 elements differ" in printed
    assert "by_threads: 1 thread and 3 threads: state: 2 of 2 elements differ" in printed and "two runs on 1 thread: the same bits" in printed
    assert "NotImplementedError: aten::fft_rfft" in printed
    assert "3 failed, 1 passed" in printed


def test_it_imports_neither_torch_nor_librepdl():
    code = "import sys, pytest_librepdl; sys.exit(any(name in sys.modules for name in ('torch', 'librepdl', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_it_is_declared():
    """In this repository's pyproject.toml, with the package that the wheel takes."""
    import tomllib

    path = Path(__file__).resolve().parents[4] / "pyproject.toml"
    if not path.exists():
        pytest.skip("outside the repository")
    project = tomllib.loads(path.read_text())
    assert project["project"]["entry-points"]["pytest11"] == {"librepdl": "pytest_librepdl"}
    assert "python/pytest_librepdl" in project["tool"]["scikit-build"]["wheel"]["packages"]
