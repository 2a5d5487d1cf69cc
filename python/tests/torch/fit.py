"""A training as people write them: epochs over shuffled batches, validation, the best epoch kept, a checkpoint after each epoch.

    python fit.py CHECKPOINT DEVICE [EPOCH BATCH]      kills itself in that batch
"""

import os
import signal
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits" / "digits.csv"
EPOCHS = 4


def digits(count):
    lines = [line for line in DIGITS.read_text().splitlines() if line[:1].isdigit()]
    table = torch.tensor([[int(n) for n in line.split(",")] for line in lines[:count]])
    return table[:, :64].reshape(-1, 1, 8, 8).float() / 16, table[:, 64]


def fit(checkpoint, device, kill_at=None):
    """Goes on from the checkpoint, if it is there. Returns everything that the training made."""
    images, labels = digits(160)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.GELU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.1), nn.Linear(54, 10))
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 3.0)  # too much, so that the best epoch is none of the last
    order = torch.Generator().manual_seed(2)
    train = DataLoader(TensorDataset(images[:120], labels[:120]), batch_size=24, shuffle=True, generator=order)
    first, best = 0, {"epoch": None, "loss": float("inf"), "model": None}
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location="cpu")
        for part, name in ((model, "model"), (optimizer, "optimizer"), (schedule, "schedule")):
            part.load_state_dict(saved[name])
        order.set_state(saved["order"])
        torch.set_rng_state(saved["random"])
        first, best = saved["epoch"], saved["best"]
    for epoch in range(first, EPOCHS):
        model.train()
        for i, (x, y) in enumerate(train):
            if (epoch, i) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.zero_grad()
            F.cross_entropy(model(x.to(device)), y.to(device)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            loss = F.cross_entropy(model(images[120:].to(device)), labels[120:].to(device)).item()
        if loss < best["loss"]:
            best = {"epoch": epoch, "loss": loss, "model": {name: tensor.clone() for name, tensor in model.state_dict().items()}}
        whole = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(), "order": order.get_state(),
                 "random": torch.get_rng_state(), "epoch": epoch + 1, "best": best}
        torch.save(whole, checkpoint.with_suffix(".new"))
        checkpoint.with_suffix(".new").replace(checkpoint)
    return whole


if __name__ == "__main__":
    import librepdl.torch

    librepdl.torch.enable()
    fit(Path(sys.argv[1]), sys.argv[2], tuple(map(int, sys.argv[3:])))
