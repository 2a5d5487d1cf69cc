"""The callback for the Trainer of transformers, with the real package: one record however a training is run, interrupted or not."""

import json

import pytest
import torch

import trainers  # noqa: F401, before what imports torchvision
import librepdl.torch
from librepdl.torch.evidence import DifferentBits, compare_fingerprints

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")


class Interrupted(Exception):
    pass


class Die(transformers.TrainerCallback):
    def __init__(self, step):
        self.at = step

    def on_step_end(self, args, state, control, **others):
        if state.global_step == self.at:
            raise Interrupted


def fit(place, threads=1, die_at=None, resume=None, **options):
    from librepdl.torch.evidence.transformers import FingerprintCallback

    torch.set_num_threads(threads)
    librepdl.torch.enable()
    transformers.set_seed(1 if resume is None else 2)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=0,
                                                                 eos_token_id=0))
    rows = (torch.arange(40 * 16).reshape(40, 16) * 7) % 61
    data = [{"input_ids": row, "labels": row} for row in rows]
    arguments = transformers.TrainingArguments(
        str(place), num_train_epochs=3, per_device_train_batch_size=8, learning_rate=0.01, use_cpu=True, report_to=[], eval_strategy="epoch",
        save_strategy="epoch", logging_steps=2, load_best_model_at_end=True, metric_for_best_model="loss", seed=1, disable_tqdm=True)
    ours = FingerprintCallback(place / "fingerprints.json", **options)
    trainer = transformers.Trainer(model, arguments, train_dataset=data, eval_dataset=data[:16], callbacks=[ours, Die(die_at)])
    trainer.train(resume_from_checkpoint=None if resume is None else str(resume))
    return ours.fingerprints, trainer


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = tmp_path_factory.mktemp("whole")
    record, trainer = fit(place)
    # The best epoch and value are those of the Trainer itself, to the last bit; in the end it has loaded that model.
    assert record.best["value"] == trainer.state.best_metric and record.best["step"] == trainer.state.best_global_step
    written = json.loads((place / "fingerprints.json").read_text())
    assert written["final"]["fingerprints"]["model"] == librepdl.torch.fingerprint(trainer.model)
    return place


def test_two_runs_write_the_same_bytes(whole, tmp_path):
    fit(tmp_path, threads=2, against=whole / "fingerprints.json")
    written = (tmp_path / "fingerprints.json").read_bytes()
    assert written == (whole / "fingerprints.json").read_bytes()
    found = json.loads(written)
    assert [(entry["epoch"], entry["step"]) for entry in found["entries"]] == [(1, 5), (2, 10), (3, 15)]
    assert set(found["entries"][0]["metrics"]) == {"eval_loss", "grad_norm", "learning_rate"}


def test_interrupted_and_resumed(whole, tmp_path):
    with pytest.raises(Interrupted):
        fit(tmp_path, die_at=12)
    # From before what was written last: epoch 2 is done again, and compared.
    fit(tmp_path, resume=tmp_path / "checkpoint-5", threads=2)
    assert compare_fingerprints(whole / "fingerprints.json", tmp_path / "fingerprints.json") is None
    assert (tmp_path / "fingerprints.json").read_bytes() == (whole / "fingerprints.json").read_bytes()


def test_other_bits_stop_the_training(whole, tmp_path):
    record = json.loads((whole / "fingerprints.json").read_text())
    record["entries"][1]["metrics"]["eval_loss"] += 2**-30
    other = tmp_path / "other.json"
    other.write_text(json.dumps(record))
    with pytest.raises(DifferentBits, match="epoch 2, step 10: metric eval_loss: [0-9.]+ and [0-9.]+; the first is this run's"):
        fit(tmp_path, against=other)
