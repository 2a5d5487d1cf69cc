"""Sound: words, waves, spectra."""

import functools
import math

import torch
from torch import nn
from torch.nn import functional as F

from zoo import Task, classify, model, perceptron


def wave(length, classes=4):
    """A tone and noise; the class says how high."""

    def sample(g):
        label = torch.randint(0, classes, (), generator=g)
        t = torch.arange(length) * (0.2 * (1 + label))
        return (t.sin() + 0.1 * torch.randn(length, generator=g)).unsqueeze(0), label

    return sample


@model("audio")
def m5():
    """M5: a convolutional network of raw waves (PyTorch's tutorial)."""
    net = nn.Sequential(
        nn.Conv1d(1, 8, 16, 4),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Conv1d(8, 16, 3),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.AvgPool1d(2),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(16, 4),
        nn.LogSoftmax(1),
    )
    return Task(
        net,
        wave(160),
        lambda net, x, label: F.nll_loss(net(x), label),
        optimizer=functools.partial(torch.optim.Adam, lr=0.01, weight_decay=1e-4),
        schedule=functools.partial(torch.optim.lr_scheduler.StepLR, step_size=20, gamma=0.1),
    )


@model("audio")
def wavenet():
    """WaveNet: dilated causal convolutions, gates, mu-law."""

    class WaveNet(nn.Module):
        def __init__(self, d=8, levels=16):
            super().__init__()
            self.levels, self.into = levels, nn.Conv1d(1, d, 1)
            self.gates, self.mix = (
                nn.ModuleList(nn.Conv1d(d, 2 * d, 2, dilation=2**i) for i in range(4)),
                nn.ModuleList(nn.Conv1d(d, d, 1) for _ in range(4)),
            )
            self.out = nn.Sequential(nn.ReLU(), nn.Conv1d(d, levels, 1))

        def quantised(self, x):
            mu = self.levels - 1
            return ((x.clamp(-1, 1).sign() * torch.log1p(mu * x.clamp(-1, 1).abs()) / math.log1p(mu) + 1) / 2 * mu + 0.5).long()

        def forward(self, x):
            x, skip = self.into(x), 0
            for gate, mix in zip(self.gates, self.mix):
                a, b = gate(F.pad(x, (gate.dilation[0], 0))).chunk(2, 1)
                y = mix(a.tanh() * b.sigmoid())
                x, skip = x + y, skip + y
            return self.out(skip)

    return Task(WaveNet(), wave(40), lambda net, x, _: F.cross_entropy(net(x[..., :-1]), net.quantised(x[:, 0, 1:])))


@model("audio")
def spectrogram_cnn():
    """Short-time Fourier transforms, then a network of images."""

    class Spectral(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("window", torch.hann_window(32))
            self.net = nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))

        def forward(self, x):
            spectrum = torch.stft(x.squeeze(1), 32, 16, window=self.window, return_complex=True)
            return self.net(torch.log(spectrum.abs().square() + 1e-6).unsqueeze(1))

    return Task(Spectral(), wave(256), classify)


@model("audio")
def keywords():
    """Key words: energies of windows by products with cosines and sines, a GRU, focal loss."""

    class Keywords(nn.Module):
        def __init__(self, size=32):
            super().__init__()
            k, t = torch.arange(8.0).unsqueeze(1), torch.arange(float(size))
            self.register_buffer("cosines", torch.cos(2 * math.pi * (k + 1) * t / size))
            self.register_buffer("sines", torch.sin(2 * math.pi * (k + 1) * t / size))
            self.gru, self.out = nn.GRU(8, 12, batch_first=True), nn.Linear(12, 4)

        def forward(self, x):
            frames = x.squeeze(1).unfold(1, 32, 16)
            power = F.linear(frames, self.cosines).square() + F.linear(frames, self.sines).square()
            h = self.gru(torch.log10(power.clamp(min=1e-5)))[0]
            return self.out(h[:, -1])

    def loss(net, x, label):
        logp = net(x).log_softmax(1).gather(1, label.unsqueeze(1))
        return -((1 - logp.exp()) ** 2 * logp).mean()

    return Task(Keywords(), wave(160), loss, optimizer=functools.partial(torch.optim.NAdam, lr=1e-3))


def speech(g):
    return torch.randn(20, 8, generator=g), torch.randint(1, 6, (4,), generator=g)


@model("audio")
def speech_ctc():
    """Deep Speech: convolutions, a bidirectional LSTM, connectionist temporal classification."""

    class Speech(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.lstm, self.out = nn.Conv1d(8, 12, 3, padding=1), nn.LSTM(12, 12, batch_first=True, bidirectional=True), nn.Linear(24, 6)

        def forward(self, x):
            return self.out(self.lstm(F.hardtanh(self.conv(x.transpose(1, 2)), 0, 20).transpose(1, 2))[0]).log_softmax(-1)

    def loss(net, x, text):
        lengths = torch.full((len(x),), x.shape[1], dtype=torch.long)
        return F.ctc_loss(net(x).transpose(0, 1), text, lengths, torch.full((len(x),), text.shape[1], dtype=torch.long), zero_infinity=True)

    return Task(Speech(), speech, loss)


@model("audio")
def conformer():
    """Conformer: attention and depthwise convolutions between half perceptrons."""

    class Conformer(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.half1, self.half2 = (
                nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 16), nn.SiLU(), nn.Dropout(0.1), nn.Linear(16, d)) for _ in range(2)
            )
            self.norm1, self.attention = nn.LayerNorm(d), nn.MultiheadAttention(d, 2, dropout=0.1, batch_first=True)
            self.norm2, self.conv = (
                nn.LayerNorm(d),
                nn.Sequential(
                    nn.Conv1d(d, 2 * d, 1), nn.GLU(1), nn.Conv1d(d, d, 5, padding=2, groups=d), nn.BatchNorm1d(d), nn.SiLU(), nn.Conv1d(d, d, 1)
                ),
            )
            self.out = nn.Linear(d, 6)

        def forward(self, x):
            x = x + self.half1(x) / 2
            y = self.norm1(x)
            x = x + self.attention(y, y, y)[0]
            x = x + self.conv(self.norm2(x).transpose(1, 2)).transpose(1, 2)
            return self.out((x + self.half2(x) / 2).mean(1))

    return Task(
        Conformer(),
        lambda g: (speech(g)[0], torch.randint(0, 6, (), generator=g)),
        classify,
        schedule=functools.partial(torch.optim.lr_scheduler.CyclicLR, base_lr=1e-4, max_lr=1e-3, step_size_up=2, cycle_momentum=False),
    )


@model("audio")
def conv_tasnet():
    """Speakers separated by masks; scale-invariant signal to noise, the better of both orders."""

    class TasNet(nn.Module):
        def __init__(self, d=12):
            super().__init__()
            self.encode, self.decode = nn.Conv1d(1, d, 8, 4, bias=False), nn.ConvTranspose1d(d, 1, 8, 4, bias=False)
            self.mask = nn.Sequential(nn.GroupNorm(1, d), nn.Conv1d(d, d, 3, padding=2, dilation=2), nn.PReLU(), nn.Conv1d(d, 2 * d, 1), nn.Sigmoid())

        def forward(self, x):
            h = F.relu(self.encode(x))
            masks = self.mask(h).unflatten(1, (2, -1))
            return torch.stack([self.decode(h * m) for m in masks.unbind(1)], 1).squeeze(2)

    def si_snr(a, b):
        a, b = a - a.mean(-1, keepdim=True), b - b.mean(-1, keepdim=True)
        target = (a * b).sum(-1, keepdim=True) * b / (b.square().sum(-1, keepdim=True) + 1e-8)
        return 10 * torch.log10(target.square().sum(-1) / ((a - target).square().sum(-1) + 1e-8) + 1e-8)

    def loss(net, x, parts):
        y = net(x)
        return -torch.maximum(si_snr(y, parts).mean(1), si_snr(y, parts.flip(1)).mean(1)).mean()

    def sample(g):
        a, b = wave(80)(g)[0], wave(80)(g)[0]
        return a + b, torch.cat([a, b])

    return Task(TasNet(), sample, loss, clip=5.0)


@model("audio")
def vocoder():
    """A small HiFi-GAN: weight norm, transposed convolutions, feature matching, hinge losses of two scales."""
    from torch.nn.utils.parametrizations import weight_norm

    g = nn.Sequential(
        weight_norm(nn.Conv1d(8, 8, 3, padding=1)),
        nn.LeakyReLU(0.1),
        weight_norm(nn.ConvTranspose1d(8, 4, 4, 2, 1)),
        nn.LeakyReLU(0.1),
        weight_norm(nn.Conv1d(4, 1, 3, padding=1)),
        nn.Tanh(),
    )
    d = nn.Sequential(weight_norm(nn.Conv1d(1, 4, 5, 2, 2)), nn.LeakyReLU(0.1), weight_norm(nn.Conv1d(4, 1, 3, padding=1)))
    net = nn.ModuleDict({"g": g, "d": d})

    def judge(net, x):
        return [net["d"](x), net["d"](F.avg_pool1d(x, 2))]

    def critic(net, mel, x):
        return sum((F.relu(1 - a).mean() + F.relu(1 + b).mean()) for a, b in zip(judge(net, x), judge(net, net["g"](mel).detach())))

    def artist(net, mel, x):
        y = net["g"](mel)
        return F.l1_loss(y, x) * 4 - sum(s.mean() for s in judge(net, y)) + F.l1_loss(net["d"][1](net["d"][0](y)), net["d"][1](net["d"][0](x)))

    return Task(
        net,
        lambda g: (torch.randn(8, 16, generator=g), wave(32)(g)[0]),
        artist,
        lambda net, mel, x: net["g"](mel),
        functools.partial(torch.optim.AdamW, lr=2e-4, betas=(0.8, 0.99)),
        functools.partial(torch.optim.lr_scheduler.ExponentialLR, gamma=0.999),
        phases=[(critic, net["d"]), (artist, net["g"])],
    )


@model("audio")
def speaker_margin():
    """Speakers by statistics pooling and an additive angular margin (AAM-softmax)."""

    class Speaker(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.embed = nn.Sequential(nn.Conv1d(8, 16, 3), nn.ReLU(), nn.BatchNorm1d(16)), nn.Linear(32, 8)
            self.weight = nn.Parameter(torch.randn(5, 8))

        def forward(self, x):
            h = self.net(x.transpose(1, 2))
            return self.embed(torch.cat([h.mean(2), h.std(2)], 1))

    def loss(net, x, label):
        cosine = F.linear(F.normalize(net(x)), F.normalize(net.weight)).clamp(-1 + 1e-6, 1 - 1e-6)
        angle = torch.acos(cosine)
        return F.cross_entropy(10 * torch.where(F.one_hot(label, 5).bool(), torch.cos(angle + 0.2), cosine), label)

    return Task(Speaker(), lambda g: (speech(g)[0], torch.randint(0, 5, (), generator=g)), loss)


@model("audio")
def tacotron():
    """Text to spectra: a recurrent decoder with location-sensitive attention, a prediction of the end."""

    class Tacotron(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.embed, self.encode = nn.Embedding(12, d), nn.LSTM(d, d // 2, batch_first=True, bidirectional=True)
            self.prenet, self.cell, self.location = perceptron(4, d, d), nn.LSTMCell(2 * d, d), nn.Conv1d(2, d, 3, padding=1)
            self.query, self.score, self.out, self.stop = nn.Linear(d, d), nn.Linear(d, 1), nn.Linear(2 * d, 4), nn.Linear(2 * d, 1)

        def forward(self, text, frames):
            memory, _ = self.encode(self.embed(text))
            h = c = context = torch.zeros_like(memory[:, 0])
            weights = total = torch.zeros_like(memory[:, :, 0])
            spectra, stops = [], []
            for frame in F.pad(frames, (0, 0, 1, 0))[:, :-1].unbind(1):
                h, c = self.cell(torch.cat([self.prenet(frame), context], 1), (h, c))
                e = torch.tanh(memory + self.query(h).unsqueeze(1) + self.location(torch.stack([weights, total], 1)).transpose(1, 2))
                weights = self.score(e).squeeze(2).softmax(1)
                total = total + weights
                context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
                both = torch.cat([h, context], 1)
                spectra.append(self.out(both))
                stops.append(self.stop(both))
            return torch.stack(spectra, 1), torch.cat(stops, 1)

    def loss(net, text, frames):
        spectra, stop = net(text, frames)
        end = torch.zeros_like(stop)
        end[:, -1] = 1
        return F.mse_loss(spectra, frames) + F.binary_cross_entropy_with_logits(stop, end, pos_weight=torch.tensor(5.0, device=stop.device))

    return Task(
        Tacotron(), lambda g: (torch.randint(0, 12, (5,), generator=g), torch.randn(4, 4, generator=g)), loss, lambda net, *batch: net(*batch)
    )
