"""Files of fingerprints: what is in them, what goes on after an interruption, how two are compared."""

import copy
import json
import logging
import math
import subprocess
import sys

import pytest
import torch

import librepdl.torch
from librepdl.torch.evidence import DifferentBits, Fingerprints, compare_fingerprints


def train(path, steps=4, first=0, saved=None, move=None, **options):
    """SGD on a line; `move`: a step after which one weight moves by a bit. Returns the record and what a checkpoint would have."""
    librepdl.torch.enable()
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    record = Fingerprints(path, monitor="loss", **options)
    if saved is not None:
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(copy.deepcopy(saved["optimizer"]))  # whose tensors it would take as they are
        torch.set_rng_state(saved["random"])
        record.resume(first)
    for step in range(first + 1, steps + 1):
        optimizer.zero_grad()
        loss = model(torch.randn(5, 3)).pow(2).sum()
        loss.backward()
        optimizer.step()
        if step == move:
            with torch.no_grad():
                model.weight[1, 2] = torch.nextafter(model.weight[1, 2], torch.tensor(math.inf))
        record.add(step, {"model": model, "optimizer": optimizer}, {"loss": loss, "nothing": math.nan}, epoch=(step - 1) // 2)
    return record, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "random": torch.get_rng_state()}


def test_what_is_written(tmp_path):
    record, state = train(tmp_path / "new" / "a.json")
    found = json.loads((tmp_path / "new" / "a.json").read_text())
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.json"]
    assert found["format"] == "librepdl fingerprints 1"
    assert found["made with"] == {"bits": 1, "policy": librepdl.torch.status()["policy"], "strict": True}
    last = found["entries"][-1]
    assert (last["step"], last["epoch"], last["metrics"]["nothing"]) == (4, 1, "nan")
    assert last["fingerprints"]["model"] == librepdl.torch.fingerprint(state["model"])
    assert last["fingerprints"]["random"] == librepdl.torch.fingerprint(state["random"])
    assert last["tensors"]["/'model'/'weight'"] == librepdl.torch.fingerprint(state["model"]["weight"])[:16]
    losses = [entry["metrics"]["loss"] for entry in found["entries"]]
    assert found["best"] == record.best == {"metric": "loss", "value": min(losses), "step": losses.index(min(losses)) + 1,
                                            "epoch": losses.index(min(losses)) // 2}
    train(tmp_path / "b.json", tensors=False)
    assert "tensors" not in json.loads((tmp_path / "b.json").read_text())["entries"][0]
    assert compare_fingerprints(tmp_path / "new" / "a.json", tmp_path / "b.json") is None


def test_interrupted_and_resumed(tmp_path):
    whole, killed = tmp_path / "whole.json", tmp_path / "killed.json"
    train(whole)
    _, saved = train(killed, steps=2)
    train(killed, steps=3)  # as if it had died after step 3 and the checkpoint of step 2
    train(killed, first=2, saved=saved)
    assert killed.read_bytes() == whole.read_bytes()
    train(killed, steps=3, move=3)
    with pytest.raises(DifferentBits, match=r"epoch 1, step 3: tensor /'model'/'weight': '\w{16}' and '\w{16}'; .*before the interruption"):
        train(killed, first=2, saved=saved)


def test_against_another_run(tmp_path):
    other = tmp_path / "other.json"
    train(other, steps=3)
    with pytest.raises(DifferentBits, match=r"epoch 0, step 2: tensor /'model'/'weight': .*the second was in .*other.json"):
        train(tmp_path / "a.json", move=2, against=other)
    with pytest.raises(DifferentBits, match="epoch 1, step 4: expected an entry of this step in .*other.json, found none"):
        train(tmp_path / "a.json", against=other)


def test_compare(tmp_path):
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    record, state = train(a)
    train(b, move=3)
    assert compare_fingerprints(a, a) is None
    found = compare_fingerprints(a, b)
    assert found.startswith("epoch 1, step 3: tensor /'model'/'weight': '"), found

    def changed(change):
        value = json.loads(a.read_text())
        change(value)
        b.write_text(json.dumps(value))
        return compare_fingerprints(a, b)

    assert changed(lambda v: v["made with"].update(policy=1)).startswith("made with: {'bits': 1, 'policy': ")
    assert changed(lambda v: v["entries"].pop()) == "entries: 4 and 3"
    assert changed(lambda v: v["entries"][2].update(step=7)) == "epoch 1, step 3: place: 'epoch 1, step 3' and 'epoch 1, step 7'"
    assert changed(lambda v: v["entries"][2]["metrics"].update(nothing=-0.0)) == "epoch 1, step 3: metric nothing: 'nan' and -0.0"
    assert changed(lambda v: v["entries"][2]["metrics"].pop("nothing")) == "epoch 1, step 3: metric nothing: 'nan' and absent"
    assert changed(lambda v: v.pop("best")).startswith("best: {'metric': 'loss', ")
    record.finish({"model": state["model"]})
    assert compare_fingerprints(a, b) == "final: present and absent"
    assert changed(lambda v: v["final"]["tensors"].update({"/'model'/'bias'": "0"})).startswith("final: tensor /'model'/'bias': '")
    assert changed(lambda v: v.pop("final")) == "final: present and absent"


def command(*files):
    done = subprocess.run([sys.executable, "-m", "librepdl.torch", "compare", *map(str, files)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_the_command(tmp_path):
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    train(a)
    train(b, move=4)
    status, printed, _ = command(a, a, b)
    first, second = printed.splitlines()
    assert status == 1 and first == f"{a} and {a}: the same"
    assert second.startswith(f"{a} and {b}: NOT THE SAME: epoch 1, step 4: tensor /'model'/'weight': ")
    assert command(a, tmp_path / "absent.json") == (2, "", "python -m librepdl.torch compare: [Errno 2] No such file or directory: "
                                                           f"'{tmp_path / 'absent.json'}'\n")
    status, _, said = command(a)
    assert status == 2 and said.endswith("compare: error: expected two files or more, got one\n")


def test_wrong_use(tmp_path, caplog):
    path = tmp_path / "a.json"
    record, _ = train(path)
    with pytest.raises(ValueError, match="step: expected 4, the last entry's, or more, got 3"):
        record.add(3, {"model": torch.nn.Linear(3, 2)})
    with pytest.raises(DifferentBits, match="epoch 1, step 4: tensor /'model'/'bias': .*the second was before"):
        record.add(4, {"model": torch.nn.Linear(3, 2)}, epoch=1)
    with pytest.raises(TypeError, match="metrics: loss: expected a number, got str"):
        record.add(5, {}, {"loss": "1"})
    with pytest.raises(TypeError, match="fingerprint: state: expected tensors, .*got object"):
        record.add(6, {"model": object()})
    with pytest.raises(ValueError, match="mode: expected 'min' or 'max', got 'least'"):
        Fingerprints(path, mode="least")
    for text in ("[", "[]", '{"format": "other"}'):
        path.write_text(text)
        with pytest.raises(ValueError, match="a.json: expected "):
            compare_fingerprints(path, path)
    librepdl.torch.disable()
    with caplog.at_level(logging.WARNING):
        Fingerprints(tmp_path / "b.json").add(1, {"x": torch.ones(1)})
    assert "librepdl is not enabled" in caplog.text and json.loads((tmp_path / "b.json").read_text())["made with"] is None


def test_packages_that_are_absent():
    code = """
import sys
for name in ("lightning", "transformers", "accelerate"):
    sys.modules.update({name: None, f"pytorch_{name}": None})
    try:
        __import__(f"librepdl.torch.evidence.{name}")
    except ModuleNotFoundError as e:
        print(e)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines() == [f"librepdl.torch.evidence.{name}: expected the package {name}, found none; pip install {name}"
                                        for name in ("lightning", "transformers", "accelerate")], done.stderr
