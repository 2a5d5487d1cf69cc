#!/usr/bin/env python3
"""A perceptron with autocast to bfloat16: plain PyTorch, and with --reproducible the same bits everywhere."""

import torch
from torch import nn
from torch.nn import functional as F

import common


def main():
    o = common.arguments(__doc__.splitlines()[0], steps=50, batch=64, lr=0.003)
    common.start(o)
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 10)).to(o.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=o.lr, foreach=o.foreach)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 if step < 25 else 0.5)

    def batch(generator):
        x = torch.randint(-8, 9, (o.batch, 64), generator=generator)
        return (x.to(torch.float32) / 8).to(o.device), x[:, :10].argmax(1).to(o.device)

    def loss_of(model, x, y):
        with torch.autocast(o.device.split(":")[0], dtype=torch.bfloat16):
            outputs = model(x)
        # Outside: which losses autocast computes in float32 depends on the device.
        return F.cross_entropy(outputs.float(), y)

    best = common.train(o, model, optimizer, scheduler, batch, loss_of)
    common.finish(model, optimizer, best)


if __name__ == "__main__":
    main()
