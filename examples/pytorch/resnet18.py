#!/usr/bin/env python3
"""ResNet-18 on images of CIFAR's shape that the script makes: plain PyTorch, and with --reproducible the same bits everywhere.

K. He et al., "Deep residual learning for image recognition", CVPR 2016.
"""

import torch
from torch import nn
from torch.nn import functional as F

import common


class Block(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, classes=10, width=64):
        super().__init__()
        layers, channels = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()], width
        for i in range(4):
            for stride in (1 if i == 0 else 2, 1):
                layers.append(Block(channels, width << i, stride))
                channels = width << i
        self.layers = nn.Sequential(*layers)
        self.classify = nn.Linear(channels, classes)

    def forward(self, x):
        return self.classify(F.adaptive_avg_pool2d(self.layers(x), 1).flatten(1))


def main():
    o = common.arguments(__doc__.splitlines()[0], steps=10, batch=16, lr=0.1)
    common.start(o)
    # Ten patterns and noise, in integers: the data are the same without --reproducible, too.
    patterns = torch.arange(10 * 3 * 32 * 32).mul(2654435761).remainder(256).reshape(10, 3, 32, 32)
    model = ResNet18().to(o.device)
    if o.channels_last:
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=o.lr, momentum=0.9, weight_decay=5e-4, foreach=o.foreach)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, o.steps)

    def batch(generator):
        labels = torch.randint(0, 10, (o.batch,), generator=generator)
        noise = torch.randint(0, 128, (o.batch, 3, 32, 32), generator=generator)
        x = ((patterns[labels] + noise).to(torch.float32) / 256 - 0.75).to(o.device)
        return x.to(memory_format=torch.channels_last) if o.channels_last else x, labels.to(o.device)

    best = common.train(o, model, optimizer, scheduler, batch, lambda m, x, y: F.cross_entropy(m(x), y))
    common.finish(model, optimizer, best)


if __name__ == "__main__":
    main()
