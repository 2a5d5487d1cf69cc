"""A small training, as examples/ci/reproducible.yml runs it: which points are inside of a circle."""

import torch
from torch import nn
from torch.nn import functional as F

from librepdl.torch.evidence import Fingerprints


def main():
    torch.manual_seed(1)
    points = torch.rand(400, 2) * 2 - 1
    inside = (points.square().sum(1) < 0.5).long()
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    fingerprints = Fingerprints("fingerprints.json", monitor="loss")
    steps = 0
    for epoch in range(5):
        model.train()
        for chosen in torch.randperm(len(points)).split(50):
            optimizer.zero_grad()
            F.cross_entropy(model(points[chosen]), inside[chosen]).backward()
            optimizer.step()
            steps += 1
        model.eval()
        with torch.no_grad():
            loss = F.cross_entropy(model(points), inside)
        fingerprints.add(steps, {"model": model, "optimizer": optimizer}, {"loss": loss}, epoch=epoch)
    print(f"best: {fingerprints.best}")


if __name__ == "__main__":
    main()
