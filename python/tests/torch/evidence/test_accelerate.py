"""Fingerprints of a loop with Accelerate, with the real package: one record however it is run, interrupted or not."""

import json

import pytest
import torch
from torch.nn import functional as F

import trainers  # noqa: F401, before what imports torchvision
import librepdl.torch
from librepdl.torch.evidence import DifferentBits

accelerate = pytest.importorskip("accelerate")


def fit(place, threads=1, until=3, resume=None, precision="no", **options):
    """Epochs up to `until`, from what was saved in the directory `resume`."""
    from librepdl.torch.evidence.accelerate import Fingerprints

    torch.set_num_threads(threads)
    librepdl.torch.enable()
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    accelerate.utils.set_seed(1 if resume is None else 2)
    accelerator = accelerate.Accelerator(cpu=True, mixed_precision=precision)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    data = torch.utils.data.TensorDataset(torch.linspace(-1, 1, 40 * 8).reshape(40, 8).sin(), torch.arange(40) % 3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(data, batch_size=10, shuffle=True))
    fingerprints = Fingerprints(accelerator, place / "fingerprints.json", model=model, optimizer=optimizer, monitor="loss", **options)
    first = 0
    if resume is not None:
        accelerator.load_state(str(place / resume))
        first = int(resume.rpartition("-")[2]) + 1
    for epoch in range(first, until):
        for i, (x, y) in enumerate(loader, 1):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            fingerprints.step(epoch * len(loader) + i, epoch=epoch, loss=loss)
        accelerator.save_state(str(place / f"epoch-{epoch}"))
    fingerprints.finish({"model": accelerator.unwrap_model(model)})
    return fingerprints


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = tmp_path_factory.mktemp("whole")
    best = fit(place).best
    losses = [entry["metrics"]["loss"] for entry in json.loads((place / "fingerprints.json").read_text())["entries"]]
    assert len(losses) == 12 and best["value"] == min(losses) and best["step"] == losses.index(min(losses)) + 1
    return place


def test_two_runs_write_the_same_bytes(whole, tmp_path):
    fit(tmp_path, threads=2, against=whole / "fingerprints.json")
    assert (tmp_path / "fingerprints.json").read_bytes() == (whole / "fingerprints.json").read_bytes()


def test_interrupted_and_resumed(whole, tmp_path):
    fit(tmp_path, until=2)
    fit(tmp_path, resume="epoch-0", threads=2)  # epoch 1 is done again, and compared
    assert (tmp_path / "fingerprints.json").read_bytes() == (whole / "fingerprints.json").read_bytes()


def test_other_bits_stop_the_training(whole, tmp_path):
    with pytest.raises(DifferentBits, match=r"epoch 0, step 1: tensor /'model'/'0.bias': '\w{16}' and '\w{16}'; the first is this run's"):
        fit(tmp_path, precision="bf16", against=whole / "fingerprints.json")
