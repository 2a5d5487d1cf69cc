#!/usr/bin/env python3
"""LeNet-5 learns handwritten digits (examples/digits): plain PyTorch, and with --reproducible the same bits everywhere.

Y. LeCun et al., "Gradient-based learning applied to document recognition", Proceedings of the IEEE 86 (1998).
"""

import pathlib

import torch
from torch import nn
from torch.nn import functional as F

import common

DIGITS = pathlib.Path(__file__).resolve().parent.parent / "digits" / "digits.csv"


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.linear1 = nn.Linear(400, 120)
        self.linear2 = nn.Linear(120, 84)
        self.linear3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = F.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = torch.relu(self.linear1(x.flatten(1)))
        return self.linear3(torch.relu(self.linear2(x)))


def digits():
    """Images of 32 x 32 pixels in [0, 1], labels."""
    rows = [[int(n) for n in line.split(",")] for line in DIGITS.read_text().splitlines() if line[:1].isdigit()]
    table = torch.tensor(rows)
    images = table[:, :64].reshape(-1, 1, 8, 8).repeat_interleave(4, 2).repeat_interleave(4, 3)
    return images.to(torch.float32) / 16, table[:, 64]


def main():
    o = common.arguments(__doc__.splitlines()[0], steps=100, batch=50, lr=0.05)
    common.start(o)
    images, labels = digits()
    model = LeNet().to(o.device)
    if o.channels_last:
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=o.lr, momentum=0.9, foreach=o.foreach)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 50, 0.5)

    def batch(generator):
        chosen = torch.randperm(len(images), generator=generator)[: o.batch]
        x = images[chosen].to(o.device)
        return x.to(memory_format=torch.channels_last) if o.channels_last else x, labels[chosen].to(o.device)

    best = common.train(o, model, optimizer, scheduler, batch, lambda m, x, y: F.cross_entropy(m(x), y))
    common.finish(model, optimizer, best)


if __name__ == "__main__":
    main()
