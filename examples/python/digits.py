#!/usr/bin/env python3
"""Trains a small convolutional network to read handwritten digits, and ends in the fingerprint that the C++ example publishes.

    examples/python/digits.py [--epochs N] [--arrays numpy|torch|cuda] [--threads N] [--isa NAME]

The network and the training are those of examples/cnn.hpp: two convolutions, two linear layers, stochastic gradient descent with
momentum, images distorted anew in every epoch. Every floating-point number is a constant or the result of a librepdl function; so
the weights are a function of the data and the settings, and not of the machine, the language or the kind of arrays.
"""
import argparse
import pathlib
import sys

import numpy as np

import librepdl
from librepdl.random import Generator

here = pathlib.Path(__file__).resolve().parent.parent
SIDE, CLASSES, TRAINING_IMAGES = 8, 10, 1500
EPOCHS, BATCH, MOMENTUM, DISTORTION = 30, 50, 0.9, 12
RATES = ((15, 0.05), (22, 0.015), (27, 0.005), (30, 0.0015))  # until which epoch
UNIT, MOVES = 128, 6  # positions in a pixel; numbers that say how an image is distorted
ONE = 16 << 14  # pixels of distorted images are integers from 0 to this


def distorted(images, moves):
    """(n, 8, 8) integers, turned, scaled, sheared and shifted: bilinear interpolation in integers. moves (n, 6)."""
    framed = np.pad(images.astype(np.int64), ((0, 0), (1, 1), (1, 1)))
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    from_y, from_x = 2 * y - (SIDE - 1), 2 * x - (SIDE - 1)  # twice the distance from the middle
    m = moves[:, :, None, None]
    at_y = UNIT * y + m[:, 0] * from_y + m[:, 1] * from_x + UNIT // 16 * m[:, 4]
    at_x = UNIT * x + m[:, 2] * from_y + m[:, 3] * from_x + UNIT // 16 * m[:, 5]
    row, column = at_y >> 7, at_x >> 7
    down, right = at_y - UNIT * row, at_x - UNIT * column
    image = np.arange(len(images))[:, None, None]

    def pixel(y, x):  # 0 outside
        return framed[image, np.clip(y, -1, SIDE) + 1, np.clip(x, -1, SIDE) + 1]

    upper = (UNIT - right) * pixel(row, column) + right * pixel(row, column + 1)
    lower = (UNIT - right) * pixel(row + 1, column) + right * pixel(row + 1, column + 1)
    return ONE // 16 // UNIT**2 * ((UNIT - down) * upper + down * lower)


class Network:
    """8 x 8 pixels -> convolution -> relu -> convolution -> relu -> max-pool -> linear -> relu -> linear."""

    shapes = {"conv1.weight": (16, 1, 3, 3), "conv1.bias": (16,), "conv2.weight": (48, 16, 3, 3), "conv2.bias": (48,),
              "linear1.weight": (64, 48 * 4 * 4), "linear1.bias": (64,), "linear2.weight": (CLASSES, 64), "linear2.bias": (CLASSES,)}
    # sqrt(2 / inputs), of the last layer sqrt(1 / inputs).
    deviations = {"conv1.weight": 0.47140452079103168, "conv2.weight": 0.11785113019775792, "linear1.weight": 0.051031036307982884,
                  "linear2.weight": 0.125}

    def __init__(self, generator, to):
        self.one = to(np.ones((), np.float32))
        self.p = {name: to(np.zeros(shape, np.float32)) for name, shape in self.shapes.items()}
        self.velocity = {name: to(np.zeros(shape, np.float32)) for name, shape in self.shapes.items()}
        for name, deviation in self.deviations.items():
            generator.normal(self.shapes[name], stddev=deviation, out=self.p[name])

    def forward(self, x):
        p, a = self.p, {"x": x}
        a["conv1"] = librepdl.conv2d(x, p["conv1.weight"], p["conv1.bias"], padding=1)
        a["relu1"] = librepdl.relu(a["conv1"])
        a["conv2"] = librepdl.conv2d(a["relu1"], p["conv2.weight"], p["conv2.bias"], padding=1)
        a["relu2"] = librepdl.relu(a["conv2"])
        a["pool"] = librepdl.max_pool2d(a["relu2"], 2)
        a["flat"] = a["pool"].reshape(len(x), -1)
        a["linear1"] = librepdl.matmul(a["flat"], p["linear1.weight"], p["linear1.bias"], transpose_b=True)
        a["relu3"] = librepdl.relu(a["linear1"])
        a["outputs"] = librepdl.matmul(a["relu3"], p["linear2.weight"], p["linear2.bias"], transpose_b=True)
        return a

    def step(self, x, labels, rate):
        """One step; the loss."""
        p, a, g = self.p, self.forward(x), {}
        loss = librepdl.cross_entropy(a["outputs"], labels)
        e = librepdl.cross_entropy_backward(self.one, a["outputs"], labels)
        g["linear2.weight"] = librepdl.matmul(e, a["relu3"], transpose_a=True)
        g["linear2.bias"] = librepdl.sum(e, axis=0)
        e = librepdl.relu_backward(librepdl.matmul(e, p["linear2.weight"]), a["linear1"])
        g["linear1.weight"] = librepdl.matmul(e, a["flat"], transpose_a=True)
        g["linear1.bias"] = librepdl.sum(e, axis=0)
        e = librepdl.matmul(e, p["linear1.weight"]).reshape(a["pool"].shape)
        e = librepdl.relu_backward(librepdl.max_pool2d_backward(e, a["relu2"], 2), a["conv2"])
        g["conv2.weight"] = librepdl.conv2d_grad_weight(e, a["relu1"], kernel=3, padding=1)
        g["conv2.bias"] = librepdl.conv2d_grad_bias(e)
        e = librepdl.relu_backward(librepdl.conv2d_grad_input(e, p["conv2.weight"], size=SIDE, padding=1), a["conv1"])
        g["conv1.weight"] = librepdl.conv2d_grad_weight(e, x, kernel=3, padding=1)
        g["conv1.bias"] = librepdl.conv2d_grad_bias(e)
        names = list(p)
        librepdl.sgd([p[n] for n in names], [g[n] for n in names], [self.velocity[n] for n in names], lr=rate, momentum=MOMENTUM)
        return loss


def to_library(arrays):
    """A function that gives NumPy's arrays to the chosen library."""
    if arrays == "numpy":
        return lambda a: a
    import torch

    return lambda a: torch.from_numpy(a).to("cuda" if arrays == "cuda" else "cpu")


def train(epochs, to):
    """Prints a line for each epoch; returns the fingerprint."""
    table = np.loadtxt(here / "digits/digits.csv", np.int64, delimiter=",")
    images, labels = table[:, :-1].reshape(-1, SIDE, SIDE), table[:, -1]

    def pixels(integers):
        return librepdl.mul(to(integers.astype(np.float32)[:, None]), 1 / ONE)

    test = pixels(distorted(images[TRAINING_IMAGES:], np.zeros((len(images) - TRAINING_IMAGES, MOVES), np.int64)))
    generator = Generator(seed=1)
    network = Network(generator, to)
    print("epoch      loss   right")
    for epoch in range(1, epochs + 1):
        rate = next((rate for until, rate in RATES if epoch <= until), RATES[-1][1])
        order = generator.permutation(TRAINING_IMAGES)
        moves = generator.randint((TRAINING_IMAGES, MOVES), DISTORTION + 1, -DISTORTION)
        x, y = pixels(distorted(images[order], moves)), to(labels[order])
        losses = [network.step(x[i : i + BATCH], y[i : i + BATCH], rate) for i in range(0, TRAINING_IMAGES, BATCH)]
        outputs = network.forward(test)["outputs"]
        right = (np.asarray(librepdl.argmax(outputs, axis=1).tolist()) == labels[TRAINING_IMAGES:]).sum()
        loss = librepdl.mean(np.asarray([float(value) for value in losses], np.float32))
        print(f"{epoch:5} {loss:9.4f}   {right} of {len(labels) - TRAINING_IMAGES}", flush=True)
    return librepdl.fingerprint([*network.p.values(), outputs])


def main():
    parser = argparse.ArgumentParser(description="see the head of this file")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--arrays", choices=("numpy", "torch", "cuda"), default="numpy")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--isa")
    args = parser.parse_args()
    if args.epochs < 1:
        parser.error("--epochs: expected at least 1")
    with librepdl.context(threads=args.threads, isa=args.isa):
        fingerprint = train(args.epochs, to_library(args.arrays))
    print(f"fingerprint {fingerprint}")
    if args.epochs == EPOCHS:
        published = (here / "digits/cnn_fingerprint.txt").read_text().strip()
        print("the published one" if fingerprint == published else f"DIFFERENT from the published one, {published}")
        sys.exit(fingerprint != published)


if __name__ == "__main__":
    main()
