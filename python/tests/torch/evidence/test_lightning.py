"""The callback for Lightning, with the real package: one record however a training is run, interrupted or not."""

import json

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import trainers  # noqa: F401, before what imports torchvision
import librepdl.torch
from librepdl.torch.evidence import DifferentBits, compare_fingerprints

lightning = pytest.importorskip("lightning.pytorch")
EPOCHS = 4


def network(package):
    class Network(package.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))

        def training_step(self, batch, i):
            loss = F.cross_entropy(self.net(batch[0]), batch[1])
            self.log("train_loss", loss, on_step=True, on_epoch=True)
            return loss

        def validation_step(self, batch, i):
            self.log("val_loss", F.cross_entropy(self.net(batch[0]), batch[1]))

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=0.05)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)]

    return Network()


class Interrupted(Exception):
    pass


def fit(place, threads=1, die_in=None, resume=None, package=lightning, checkpoints=None, **options):
    """Trains and gives the callback and the checkpoints; `die_in`: an epoch, after whose first step the training ends."""
    from librepdl.torch.evidence.lightning import FingerprintCallback

    class Die(package.Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, i):
            if trainer.current_epoch == die_in:
                raise Interrupted

    torch.set_num_threads(threads)
    librepdl.torch.enable()
    package.seed_everything(1 if resume is None else 2, verbose=False)
    data = torch.utils.data.TensorDataset(torch.linspace(-1, 1, 40 * 8).reshape(40, 8).sin(), torch.arange(40) % 3)
    ours = FingerprintCallback(place / "fingerprints.json", monitor="val_loss", **options)
    kept = package.callbacks.ModelCheckpoint(place, monitor="val_loss", filename="{epoch}", save_top_k=-1, **(checkpoints or {}))
    trainer = package.Trainer(max_epochs=EPOCHS, accelerator="cpu", devices=1, gradient_clip_val=1.0, callbacks=[ours, kept, Die()], logger=False,
                              enable_progress_bar=False, enable_model_summary=False, default_root_dir=place)
    loader = torch.utils.data.DataLoader
    trainer.fit(network(package), loader(data, batch_size=10, shuffle=True), loader(data, batch_size=20), ckpt_path=resume)
    return ours.fingerprints, kept


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A training without interruption: its directory."""
    place = tmp_path_factory.mktemp("whole")
    record, kept = fit(place)
    best = record.best
    # The best epoch and value are those of Lightning's own checkpoint, to the last bit.
    assert best["value"] == kept.best_model_score.item() and kept.best_model_path.endswith(f"epoch={best['epoch']}.ckpt")
    return place


def test_two_runs_write_the_same_bytes(whole, tmp_path):
    fit(tmp_path, threads=2, against=whole / "fingerprints.json")
    written = (tmp_path / "fingerprints.json").read_bytes()
    assert written == (whole / "fingerprints.json").read_bytes()
    found = json.loads(written)
    assert [(entry["epoch"], entry["step"]) for entry in found["entries"]] == [(0, 4), (1, 8), (2, 12), (3, 16)]
    assert found["made with"]["strict"] and set(found["entries"][0]["metrics"]) >= {"train_loss", "val_loss"}


@pytest.mark.parametrize("checkpoints", [{"save_on_train_epoch_end": True}, {"save_on_train_epoch_end": False}])
def test_interrupted_and_resumed(whole, tmp_path, checkpoints):
    with pytest.raises(Interrupted):
        fit(tmp_path, die_in=3, checkpoints=checkpoints)
    assert [entry["epoch"] for entry in json.loads((tmp_path / "fingerprints.json").read_text())["entries"]] == [0, 1, 2]
    # From before what was written last: epoch 2 is done again, and compared.
    fit(tmp_path, resume=tmp_path / "epoch=1.ckpt", threads=2, checkpoints=checkpoints)
    assert compare_fingerprints(whole / "fingerprints.json", tmp_path / "fingerprints.json") is None
    assert (tmp_path / "fingerprints.json").read_bytes() == (whole / "fingerprints.json").read_bytes()


def test_other_bits_stop_the_training(whole, tmp_path):
    record = json.loads((whole / "fingerprints.json").read_text())
    record["entries"][1]["tensors"]["/'model'/'net.0.weight'"] = "0" * 16
    other = tmp_path / "other.json"
    other.write_text(json.dumps(record))
    with pytest.raises(DifferentBits, match=r"epoch 1, step 8: tensor /'model'/'net.0.weight': '\w{16}' and '0{16}'"):
        fit(tmp_path, against=other)


def test_the_older_package(whole, tmp_path):
    """pytorch_lightning, whose classes are others."""
    fit(tmp_path, package=pytest.importorskip("pytorch_lightning"))
    assert (tmp_path / "fingerprints.json").read_bytes() == (whole / "fingerprints.json").read_bytes()
