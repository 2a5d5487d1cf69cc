"""Texts: classification, translation, generation, what is done with large models."""

import functools
import math

import torch
from torch import nn
from torch.nn import functional as F

from zoo import Task, classify, model, next_token, perceptron, tokens

WORDS = 32


def text(length=10):
    sample = tokens(WORDS, length)
    return lambda g: sample(g)[:1]


@model("language")
def char_lstm():
    """Characters by an LSTM of two layers."""

    class CharLSTM(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.lstm, self.out = nn.Embedding(WORDS, 16), nn.LSTM(16, 24, 2, batch_first=True, dropout=0.2), nn.Linear(24, WORDS)

        def forward(self, x):
            return self.out(self.lstm(self.embed(x))[0])

    return Task(
        CharLSTM(),
        text(),
        next_token,
        optimizer=functools.partial(torch.optim.SGD, lr=1.0),
        clip=0.25,
        schedule=functools.partial(torch.optim.lr_scheduler.MultiStepLR, milestones=[1, 2], gamma=0.25),
    )


@model("language")
def bidirectional_gru():
    """Packed sequences of several lengths, a bidirectional GRU."""

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.gru, self.out = (
                nn.Embedding(WORDS, 12, padding_idx=0),
                nn.GRU(12, 16, batch_first=True, bidirectional=True),
                nn.Linear(32, 4),
            )

        def forward(self, x):
            lengths = (x != 0).sum(1).cpu()
            packed = nn.utils.rnn.pack_padded_sequence(self.embed(x), lengths, batch_first=True, enforce_sorted=False)
            return self.out(self.gru(packed)[1].transpose(0, 1).flatten(1))

    def sample(g):
        x, label = tokens(WORDS, 9)(g)
        x[int(torch.randint(3, 10, (), generator=g)) :] = 0
        return x, label

    return Task(Reader(), sample, classify)


@model("language")
def seq2seq():
    """Translation by GRUs and additive attention (PyTorch's tutorial)."""

    class Seq2Seq(nn.Module):
        def __init__(self, d=16):
            super().__init__()
            self.source, self.target = nn.Embedding(WORDS, d), nn.Embedding(WORDS, d)
            self.encoder, self.decoder = nn.GRU(d, d, batch_first=True), nn.GRUCell(2 * d, d)
            self.query, self.key, self.score, self.out = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, 1), nn.Linear(d, WORDS)

        def forward(self, x, y):
            memory, h = self.encoder(self.source(x))
            h, keys, logits = h[0], self.key(memory), []
            for token in y.unbind(1):
                weights = self.score(torch.tanh(keys + self.query(h).unsqueeze(1))).softmax(1)
                h = self.decoder(torch.cat([self.target(token), (weights * memory).sum(1)], 1), h)
                logits.append(self.out(h))
            return torch.stack(logits, 1)

    def loss(net, x, y):
        return F.nll_loss(net(x, y[:, :-1]).log_softmax(-1).transpose(1, 2), y[:, 1:])

    return Task(Seq2Seq(), lambda g: (*text(6)(g), *text(5)(g)), loss, lambda net, x, y: net(x, y), functools.partial(torch.optim.SGD, lr=0.01))


class Positions(nn.Module):
    """Sines and cosines (Attention is all you need)."""

    def __init__(self, d, length=32):
        super().__init__()
        position = torch.arange(length).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe = torch.zeros(length, d)
        pe[:, 0::2], pe[:, 1::2] = torch.sin(position * div), torch.cos(position * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.shape[1]]


@model("language")
def transformer():
    """nn.Transformer, translating, with padded sequences."""

    class Translator(nn.Module):
        def __init__(self, d=16):
            super().__init__()
            self.embed, self.positions = nn.Embedding(WORDS, d), Positions(d)
            self.transformer = nn.Transformer(d, 2, 1, 1, 32, batch_first=True)
            self.out = nn.Linear(d, WORDS)

        def forward(self, x, y):
            causal = nn.Transformer.generate_square_subsequent_mask(y.shape[1], device=x.device)
            x_padding = torch.zeros(x.shape, device=x.device).masked_fill(x == 0, float("-inf"))
            h = self.transformer(
                self.positions(self.embed(x)),
                self.positions(self.embed(y)),
                tgt_mask=causal,
                src_key_padding_mask=x_padding,
                memory_key_padding_mask=x_padding,
            )
            return self.out(h)

    def sample(g):
        (x,), (y,) = text(7)(g), text(6)(g)
        x[int(torch.randint(4, 8, (), generator=g)) :] = 0
        return x, y

    def warmup(step, d=16, steps=4):
        return d**-0.5 * min((step + 1) ** -0.5, (step + 1) * steps**-1.5)

    return Task(
        Translator(),
        sample,
        lambda net, x, y: F.cross_entropy(net(x, y[:, :-1]).flatten(0, 1), y[:, 1:].flatten(), label_smoothing=0.1),
        lambda net, x, y: net(x, y),
        functools.partial(torch.optim.Adam, lr=1.0, betas=(0.9, 0.98), eps=1e-9),
        functools.partial(torch.optim.lr_scheduler.LambdaLR, lr_lambda=warmup),
    )


@model("language")
def transformer_encoder():
    """nn.TransformerEncoder, sentences classified."""

    class Encoder(nn.Module):
        def __init__(self, d=16):
            super().__init__()
            self.embed, self.positions = nn.Embedding(WORDS, d), Positions(d)
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4, 32, batch_first=True), 2)
            self.out = nn.Linear(d, 4)

        def forward(self, x):
            return self.out(self.encoder(self.positions(self.embed(x)), src_key_padding_mask=x == 0).mean(1))

    return Task(Encoder(), tokens(WORDS, 8), classify, schedule=functools.partial(torch.optim.lr_scheduler.PolynomialLR, total_iters=4))


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class GPT(nn.Module):
    def __init__(self, d=24, layers=2, mlp=lambda d: perceptron(d, 4 * d, d, activation=nn.GELU)):
        super().__init__()
        self.embed, self.positions = nn.Embedding(WORDS, d), nn.Embedding(32, d)
        self.layers = nn.ModuleList(nn.ModuleList([nn.LayerNorm(d), Attention(d, 3), nn.LayerNorm(d), mlp(d)]) for _ in range(layers))
        self.norm, self.out = nn.LayerNorm(d), nn.Linear(d, WORDS, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, x):
        x = self.embed(x) + self.positions(torch.arange(x.shape[1], device=x.device))
        for norm1, attention, norm2, mlp in self.layers:
            x = x + attention(norm1(x))
            x = x + mlp(norm2(x))
        return self.out(self.norm(x))


@model("language")
def gpt():
    """A small GPT with tied embeddings."""
    return Task(
        GPT(),
        text(12),
        next_token,
        optimizer=functools.partial(torch.optim.AdamW, lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1),
        clip=1.0,
        schedule=lambda o: torch.optim.lr_scheduler.SequentialLR(
            o, [torch.optim.lr_scheduler.LinearLR(o, 0.1, total_iters=1), torch.optim.lr_scheduler.CosineAnnealingLR(o, 3)], [1]
        ),
    )


@model("language")
def gpt_bfloat16():
    """The same under autocast to bfloat16."""

    def loss(net, x):
        logits = net(x[:, :-1])
        return F.cross_entropy(logits.float().flatten(0, 1), x[:, 1:].flatten())

    return Task(GPT(), text(12), loss, autocast=torch.bfloat16)


class Experts(nn.Module):
    """Each token goes to two of four perceptrons."""

    def __init__(self, d):
        super().__init__()
        self.gate, self.experts = nn.Linear(d, 4, bias=False), nn.ModuleList(perceptron(d, 2 * d, d, activation=nn.SiLU) for _ in range(4))

    def forward(self, x):
        flat = x.flatten(0, 1)
        weights, chosen = self.gate(flat).softmax(-1).topk(2)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            row, place = torch.where(chosen == i)
            out.index_add_(0, row, expert(flat[row]) * weights[row, place, None])
        return out.view_as(x)


@model("language")
def mixture_of_experts():
    """A GPT whose perceptrons are mixtures of experts."""
    return Task(GPT(mlp=Experts, layers=1), text(12), next_token)


@model("language")
def llama():
    """RMS norm, rotary positions (complex numbers, as in Meta's code), grouped queries, SwiGLU."""

    class Layer(nn.Module):
        def __init__(self, d, heads, groups):
            super().__init__()
            self.heads, self.groups, size = heads, groups, d // heads
            self.q, self.k, self.v = nn.Linear(d, d, bias=False), nn.Linear(d, groups * size, bias=False), nn.Linear(d, groups * size, bias=False)
            self.o, self.norm1, self.norm2 = nn.Linear(d, d, bias=False), nn.RMSNorm(d), nn.RMSNorm(d)
            self.gate, self.up, self.down = nn.Linear(d, 2 * d, bias=False), nn.Linear(d, 2 * d, bias=False), nn.Linear(2 * d, d, bias=False)

        def forward(self, x, rotate):
            h = self.norm1(x)
            q, k, v = (f(h).unflatten(2, (n, -1)).transpose(1, 2) for f, n in ((self.q, self.heads), (self.k, self.groups), (self.v, self.groups)))
            y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True, enable_gqa=True)
            x = x + self.o(y.transpose(1, 2).flatten(2))
            h = self.norm2(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    class Llama(nn.Module):
        def __init__(self, d=32, heads=4):
            super().__init__()
            self.embed, self.layers = nn.Embedding(WORDS, d), nn.ModuleList(Layer(d, heads, 2) for _ in range(2))
            self.norm, self.out, self.size = nn.RMSNorm(d), nn.Linear(d, WORDS, bias=False), d // heads

        def forward(self, x):
            frequencies = 1.0 / 10000.0 ** (torch.arange(0, self.size, 2, device=x.device) / self.size)
            angles = torch.outer(torch.arange(x.shape[1], device=x.device), frequencies)
            turn = torch.polar(torch.ones_like(angles), angles)

            def rotate(q):
                return torch.view_as_real(torch.view_as_complex(q.unflatten(-1, (-1, 2))) * turn).flatten(-2)

            x = self.embed(x)
            for layer in self.layers:
                x = layer(x, rotate)
            return self.out(self.norm(x))

    return Task(Llama(), text(12), next_token, clip=1.0)


@model("language")
def mamba():
    """A selective state space model, one step after another."""

    class Mamba(nn.Module):
        def __init__(self, d=16, states=4):
            super().__init__()
            self.embed, self.into, self.conv = nn.Embedding(WORDS, d), nn.Linear(d, 2 * d), nn.Conv1d(d, d, 3, padding=2, groups=d)
            self.bc, self.step = nn.Linear(d, 2 * states), nn.Linear(d, d)
            self.log_a, self.skip = nn.Parameter(torch.arange(1.0, states + 1).log().repeat(d, 1)), nn.Parameter(torch.ones(d))
            self.out = nn.Linear(d, WORDS)

        def forward(self, x):
            x, z = self.into(self.embed(x)).chunk(2, -1)
            x = F.silu(self.conv(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
            (b, c), delta, a = self.bc(x).chunk(2, -1), F.softplus(self.step(x)), -torch.exp(self.log_a)
            decay, gain = torch.exp(delta.unsqueeze(-1) * a), (delta * x).unsqueeze(-1) * b.unsqueeze(2)
            h, ys = torch.zeros_like(gain[:, 0]), []
            for t in range(x.shape[1]):
                h = decay[:, t] * h + gain[:, t]
                ys.append(torch.einsum("bdn,bn->bd", h, c[:, t]))
            return self.out((torch.stack(ys, 1) + x * self.skip) * F.silu(z))

    return Task(Mamba(), text(8), next_token)


@model("language")
def linear_attention():
    """Causal linear attention by cumulative sums."""

    class Linear(nn.Module):
        def __init__(self, d=16):
            super().__init__()
            self.embed, self.q, self.k, self.v, self.out = (
                nn.Embedding(WORDS, d),
                nn.Linear(d, d),
                nn.Linear(d, d),
                nn.Linear(d, d),
                nn.Linear(d, WORDS),
            )

        def forward(self, x):
            x = self.embed(x)
            q, k, v = F.elu(self.q(x)) + 1, F.elu(self.k(x)) + 1, self.v(x)
            state = torch.einsum("btd,bte->btde", k, v).cumsum(1)
            return self.out(x + torch.einsum("btd,btde->bte", q, state) / (q * k.cumsum(1)).sum(-1, keepdim=True))

    return Task(Linear(), text(8), next_token)


@model("language")
def word2vec():
    """Skip-grams with negative samples."""
    net = nn.ModuleDict({"centre": nn.Embedding(WORDS, 8), "context": nn.Embedding(WORDS, 8)})

    def loss(net, words):
        centre, context = net["centre"](words[:, 0]), net["context"](words[:, 1])
        noise = torch.multinomial(torch.arange(1.0, WORDS + 1, device=words.device).pow(-0.75), 5 * len(words), replacement=True)
        negative = net["context"](noise.view(-1, 5))
        return -(F.logsigmoid((centre * context).sum(1)) + F.logsigmoid(-(negative @ centre.unsqueeze(2)).squeeze(2)).sum(1)).mean()

    return Task(net, text(2), loss, lambda net, words: net["centre"](words[:, 0]), functools.partial(torch.optim.Adagrad, lr=0.1))


@model("language")
def sparse_word2vec():
    """The same with sparse gradients and SparseAdam."""
    net = nn.ModuleDict({"centre": nn.Embedding(WORDS, 8, sparse=True), "context": nn.Embedding(WORDS, 8, sparse=True)})

    def loss(net, words):
        return -F.logsigmoid((net["centre"](words[:, 0]) * net["context"](words[:, 1])).sum(1)).mean()

    return Task(net, text(2), loss, lambda net, words: net["centre"](words[:, 0]), functools.partial(torch.optim.SparseAdam, lr=0.01))


@model("language")
def fast_text():
    """A bag of words, averaged (PyTorch's tutorial: nn.EmbeddingBag)."""

    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.bag, self.out = nn.EmbeddingBag(WORDS, 16, mode="mean", padding_idx=0), nn.Linear(16, 4)

        def forward(self, x):
            offsets = torch.arange(0, x.numel(), x.shape[1], device=x.device)
            return self.out(self.bag(x.flatten(), offsets))

    return Task(
        Bag(),
        tokens(WORDS, 8),
        classify,
        optimizer=functools.partial(torch.optim.SGD, lr=5.0),
        schedule=functools.partial(torch.optim.lr_scheduler.StepLR, step_size=1, gamma=0.1),
    )


@model("language")
def text_cnn():
    """Convolutions of several widths, the greatest over the sentence (Kim, 2014)."""

    class TextCNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(WORDS, 12)
            self.convs, self.out = nn.ModuleList(nn.Conv1d(12, 8, k) for k in (2, 3, 4)), nn.Linear(24, 4)

        def forward(self, x):
            x = self.embed(x).transpose(1, 2)
            return self.out(F.dropout(torch.cat([F.max_pool1d(F.relu(c(x)), c(x).shape[-1]).squeeze(-1) for c in self.convs], 1), 0.5, self.training))

    return Task(TextCNN(), tokens(WORDS, 10), classify, optimizer=torch.optim.Adadelta)


@model("language")
def conditional_random_field():
    """A BiLSTM whose tags are a chain: forward algorithm, Viterbi."""

    class CRF(nn.Module):
        def __init__(self, tags=5):
            super().__init__()
            self.embed, self.lstm, self.out = nn.Embedding(WORDS, 8), nn.LSTM(8, 8, batch_first=True, bidirectional=True), nn.Linear(16, tags)
            self.step, self.begin = nn.Parameter(torch.randn(tags, tags)), nn.Parameter(torch.randn(tags))

        def scores(self, x):
            return self.out(self.lstm(self.embed(x))[0])

        def forward(self, x):
            """The best tags."""
            scores, back = self.scores(x), []
            best = self.begin + scores[:, 0]
            for s in scores[:, 1:].unbind(1):
                best, previous = (best.unsqueeze(2) + self.step).max(1)
                best = best + s
                back.append(previous)
            tags = [best.argmax(1)]
            for previous in reversed(back):
                tags.append(previous.gather(1, tags[-1].unsqueeze(1)).squeeze(1))
            return torch.stack(tags[::-1], 1)

    def loss(net, x, tags):
        scores = net.scores(x)
        alpha = net.begin + scores[:, 0]
        for s in scores[:, 1:].unbind(1):
            alpha = torch.logsumexp(alpha.unsqueeze(2) + net.step, 1) + s
        path = net.begin[tags[:, 0]] + scores.gather(2, tags.unsqueeze(2)).sum((1, 2)) + net.step[tags[:, :-1], tags[:, 1:]].sum(1)
        return (alpha.logsumexp(1) - path).mean()

    return Task(CRF(), lambda g: (*text(6)(g), torch.randint(0, 5, (6,), generator=g)), loss)


@model("language")
def low_rank_adapter():
    """LoRA: a frozen model, products of two thin matrices beside its layers, merged for serving."""

    class LoRA(nn.Module):
        def __init__(self, linear, rank=2):
            super().__init__()
            self.linear, self.a, self.b = (
                linear.requires_grad_(False),
                nn.Parameter(torch.randn(rank, linear.in_features) * 0.1),
                nn.Parameter(torch.zeros(linear.out_features, rank)),
            )

        def forward(self, x):
            if self.training:
                return self.linear(x) + F.dropout(x, 0.1) @ self.a.T @ self.b.T * 2
            return F.linear(x, self.linear.weight + 2 * self.b @ self.a, self.linear.bias)

    net = GPT().requires_grad_(False)
    for layer in net.layers:
        layer[1].qkv = LoRA(layer[1].qkv)
    return Task(net, text(10), next_token, optimizer=functools.partial(torch.optim.AdamW, lr=1e-2))


@model("language")
def preferences():
    """Direct preference optimisation: two answers, a policy and the reference that it came from."""
    net = nn.ModuleDict({"policy": GPT(layers=1), "reference": GPT(layers=1)})
    net["reference"].load_state_dict(net["policy"].state_dict())
    net["reference"].requires_grad_(False)

    def log_prob(model, x):
        return model(x[:, :-1]).log_softmax(-1).gather(2, x[:, 1:, None]).squeeze(2).sum(1)

    def loss(net, good, bad):
        with torch.no_grad():
            base = log_prob(net["reference"], good) - log_prob(net["reference"], bad)
        return -F.logsigmoid(0.1 * (log_prob(net["policy"], good) - log_prob(net["policy"], bad) - base)).mean()

    return Task(
        net, lambda g: (*text(8)(g), *text(8)(g)), loss, lambda net, good, bad: net["policy"](good), functools.partial(torch.optim.RMSprop, lr=1e-4)
    )


@model("language")
def distillation():
    """A small student of a larger teacher: temperatures, the Kullback-Leibler divergence, hidden states."""
    net = nn.ModuleDict({"teacher": GPT(layers=2).requires_grad_(False), "student": GPT(d=12, layers=1)})

    def loss(net, x):
        with torch.no_grad():
            teacher = net["teacher"](x)
        return F.kl_div((net["student"](x) / 2).log_softmax(-1), (teacher / 2).softmax(-1), reduction="batchmean") * 4

    return Task(net, text(8), loss, lambda net, x: net["student"](x))


@model("language")
def alibi_local():
    """Attention with linear biases within a window, additive masks of float numbers."""

    class Net(nn.Module):
        def __init__(self, d=16, heads=2):
            super().__init__()
            self.heads, self.embed, self.qkv, self.out = heads, nn.Embedding(WORDS, d), nn.Linear(d, 3 * d), nn.Linear(d, WORDS)

        def forward(self, x):
            q, k, v = self.qkv(self.embed(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            i = torch.arange(x.shape[1], device=x.device)
            distance = i[:, None] - i
            slopes = 2.0 ** -torch.arange(1, self.heads + 1, device=x.device).float()
            mask = (-slopes[:, None, None] * distance).masked_fill((distance < 0) | (distance > 4), float("-inf"))
            return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2))

    return Task(Net(), text(10), next_token, optimizer=functools.partial(torch.optim.Adafactor, lr=1e-2))


@model("language")
def adaptive_softmax():
    """A large vocabulary by nn.AdaptiveLogSoftmaxWithLoss."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn, self.out = (
                nn.Embedding(WORDS, 16),
                nn.RNN(16, 16, batch_first=True),
                nn.AdaptiveLogSoftmaxWithLoss(16, WORDS, [8, 20], 2.0),
            )

        def forward(self, x):
            return self.out.log_prob(self.rnn(self.embed(x))[0].flatten(0, 1))

    return Task(Net(), text(8), lambda net, x: net.out(net.rnn(net.embed(x[:, :-1]))[0].flatten(0, 1), x[:, 1:].flatten()).loss)


@model("language")
def beam_search():
    """A recurrent language model that writes by beams: topk, gathers, sampling by Gumbel noise of its own seed."""

    class Writer(nn.Module):
        def __init__(self, d=16):
            super().__init__()
            self.embed, self.cell, self.out = nn.Embedding(WORDS, d), nn.LSTMCell(d, d), nn.Linear(d, WORDS)

        def forward(self, x):
            h = c = torch.zeros(len(x), 16, device=x.device)
            logits = []
            for token in x.unbind(1):
                h, c = self.cell(self.embed(token), (h, c))
                logits.append(self.out(h))
            return torch.stack(logits, 1)

    def write(net, x, beams=3):
        count = len(x)
        sequences, scores = (
            x[:, :1].repeat(1, beams).unsqueeze(2),
            torch.tensor([0.0] + [float("-inf")] * (beams - 1), device=x.device).repeat(count, 1),
        )
        for _ in range(4):
            logp = net(sequences.flatten(0, 1))[:, -1].log_softmax(-1).unflatten(0, (count, beams))
            scores, best = (scores.unsqueeze(2) + logp).flatten(1).topk(beams)
            sequences = torch.cat(
                [sequences.gather(1, (best // WORDS).unsqueeze(2).expand(-1, -1, sequences.shape[2])), (best % WORDS).unsqueeze(2)], 2
            )
        return scores, sequences

    return Task(Writer(), text(8), next_token, write)
