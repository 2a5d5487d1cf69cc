"""Recommendation and tables: users, items, columns."""

import functools

import torch
from torch import nn
from torch.nn import functional as F

from zoo import Task, model, perceptron

USERS, ITEMS = 20, 30


def rating(g):
    user, item = torch.randint(0, USERS, (), generator=g), torch.randint(0, ITEMS, (), generator=g)
    return user, item, ((user + item) % 5).float()


@model("recommendation")
def matrix_factorisation():
    """Users times items, with biases; a penalty on the weights."""

    class MF(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.user, self.item, self.user_bias, self.item_bias = (
                nn.Embedding(USERS, d),
                nn.Embedding(ITEMS, d),
                nn.Embedding(USERS, 1),
                nn.Embedding(ITEMS, 1),
            )

        def forward(self, user, item):
            return (self.user(user) * self.item(item)).sum(1) + self.user_bias(user).squeeze(1) + self.item_bias(item).squeeze(1)

    def loss(net, user, item, rating):
        return F.mse_loss(net(user, item), rating) + 1e-3 * (net.user(user).square().sum() + net.item(item).square().sum())

    return Task(MF(), rating, loss, lambda net, user, item, _: net(user, item), functools.partial(torch.optim.SGD, lr=0.05))


@model("recommendation")
def neural_filtering():
    """Products and a perceptron side by side (NCF)."""

    class NCF(nn.Module):
        def __init__(self, d=6):
            super().__init__()
            self.embed = nn.ModuleList(nn.Embedding(n, d) for n in (USERS, ITEMS, USERS, ITEMS))
            self.mlp, self.out = perceptron(2 * d, 16, 8), nn.Linear(8 + d, 1)

        def forward(self, user, item):
            a, b, c, d = (e(i) for e, i in zip(self.embed, (user, item, user, item)))
            return self.out(torch.cat([a * b, F.relu(self.mlp(torch.cat([c, d], 1)))], 1)).squeeze(1)

    return Task(
        NCF(),
        rating,
        lambda net, user, item, r: F.binary_cross_entropy(net(user, item).sigmoid(), (r > 2).float()),
        lambda net, user, item, _: net(user, item),
        torch.optim.Adam,
    )


@model("recommendation")
def bayesian_ranking():
    """BPR: an item that was chosen above one that was not, drawn at random."""
    net = nn.ModuleDict({"user": nn.Embedding(USERS, 8), "item": nn.Embedding(ITEMS, 8)})

    def score(net, user, item):
        return (net["user"](user) * net["item"](item)).sum(-1)

    def loss(net, user, item, _):
        other = torch.randint(0, ITEMS, item.shape, device=item.device)
        return -F.logsigmoid(score(net, user, item) - score(net, user, other)).mean()

    return Task(
        net,
        rating,
        loss,
        lambda net, user, item, _: (net["user"](user) @ net["item"].weight.T).topk(5),
        functools.partial(torch.optim.Adagrad, lr=0.05),
    )


def columns(g):
    """Numbers, categories and a label."""
    numbers, categories = torch.randn(4, generator=g), torch.randint(0, 10, (3,), generator=g)
    return numbers, categories, (numbers.sum() + categories.sum() > 13).float()


def on_columns(net, **options):
    return Task(
        net, columns, lambda net, x, c, label: F.binary_cross_entropy_with_logits(net(x, c), label), lambda net, x, c, _: net(x, c), **options
    )


@model("recommendation")
def wide_and_deep():
    """A linear model of crossed columns beside a perceptron."""

    class Wide(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide, self.embed, self.deep = (
                nn.Embedding(100, 1),
                nn.Embedding(30, 4),
                nn.Sequential(perceptron(16, 16, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)),
            )

        def forward(self, x, c):
            crossed = c[:, 0] * 10 + c[:, 1]
            deep = torch.cat([x, self.embed(c + torch.arange(0, 30, 10, device=c.device)).flatten(1)], 1)
            return (self.wide(crossed) + self.deep(deep)).squeeze(1)

    return on_columns(Wide(), optimizer=functools.partial(torch.optim.Adagrad, lr=0.05, initial_accumulator_value=0.1))


@model("recommendation")
def deep_fm():
    """A factorisation machine, (sum squared less sum of squares) / 2, and a perceptron."""

    class FM(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.embed, self.deep = nn.Embedding(30, 1), nn.Embedding(30, 4), perceptron(12, 16, 1)

        def forward(self, x, c):
            i = c + torch.arange(0, 30, 10, device=c.device)
            v = self.embed(i)
            pairs = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1)
            return self.linear(i).sum((1, 2)) + pairs + self.deep(v.flatten(1)).squeeze(1)

    return on_columns(FM(), optimizer=functools.partial(torch.optim.Adam, lr=5e-3))


@model("recommendation")
def dlrm():
    """DLRM: bags of categories, products of all pairs."""

    class DLRM(nn.Module):
        def __init__(self, d=4):
            super().__init__()
            self.bottom, self.top = perceptron(4, 8, d), perceptron(d + 3, 8, 1)
            self.bags = nn.ModuleList(nn.EmbeddingBag(10, d, mode="sum") for _ in range(2))

        def forward(self, x, c):
            v = torch.stack([self.bottom(x), self.bags[0](c[:, :2]), self.bags[1](c[:, 2:])], 1)
            pairs = v @ v.transpose(1, 2)
            i, j = torch.tril_indices(3, 3, -1, device=x.device)
            return self.top(torch.cat([v[:, 0], pairs[:, i, j]], 1)).squeeze(1)

    return on_columns(DLRM(), optimizer=functools.partial(torch.optim.SGD, lr=0.1))


@model("recommendation")
def deep_cross():
    """DCN V2: crosses of low rank, experts chosen by a gate."""

    class DCN(nn.Module):
        def __init__(self, d=16):
            super().__init__()
            self.embed, self.v, self.u = (
                nn.Embedding(30, 4),
                nn.ModuleList(nn.Linear(d, 4, bias=False) for _ in range(2)),
                nn.ModuleList(nn.Linear(4, d) for _ in range(2)),
            )
            self.experts, self.gate, self.out = nn.ModuleList(perceptron(d, 8, 4) for _ in range(3)), nn.Linear(d, 3), nn.Linear(4, 1)

        def forward(self, x, c):
            x0 = y = torch.cat([x, self.embed(c + torch.arange(0, 30, 10, device=c.device)).flatten(1)], 1)
            for u, v in zip(self.u, self.v):
                y = x0 * u(v(y)) + y
            experts = torch.stack([e(y) for e in self.experts], 1)
            return self.out((self.gate(y).softmax(1).unsqueeze(2) * experts).sum(1)).squeeze(1)

    return on_columns(DCN(), optimizer=functools.partial(torch.optim.Adam, lr=1e-3, fused=False), clip=10.0)


@model("recommendation")
def two_towers():
    """Users and items by networks of their own; others of the batch are what was not chosen, less the logarithm of their frequency."""
    net = nn.ModuleDict(
        {"user": nn.Sequential(nn.Embedding(USERS, 8), nn.Linear(8, 8)), "item": nn.Sequential(nn.Embedding(ITEMS, 8), nn.Linear(8, 8))}
    )
    frequency = torch.arange(1.0, ITEMS + 1) / 465

    def loss(net, user, item, _):
        a, b = F.normalize(net["user"](user), dim=1), F.normalize(net["item"](item), dim=1)
        logits = a @ b.T / 0.1 - frequency.to(a.device)[item].log()
        return F.cross_entropy(logits, torch.arange(len(user), device=user.device))

    return Task(net, rating, loss, lambda net, user, item, _: F.normalize(net["user"](user), dim=1))


def history(g):
    return (torch.randint(1, ITEMS, (9,), generator=g),)


@model("recommendation")
def sasrec():
    """Self-attention over what was chosen before; binary cross entropy with negative samples."""

    class SASRec(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.item, self.place, self.attention = (
                nn.Embedding(ITEMS, d, padding_idx=0),
                nn.Embedding(8, d),
                nn.MultiheadAttention(d, 2, 0.1, batch_first=True),
            )
            self.norm1, self.norm2, self.conv = (
                nn.LayerNorm(d, 1e-8),
                nn.LayerNorm(d, 1e-8),
                nn.Sequential(nn.Conv1d(d, d, 1), nn.ReLU(), nn.Conv1d(d, d, 1)),
            )

        def forward(self, x):
            n = x.shape[1]
            h = self.item(x) * self.item.embedding_dim**0.5 + self.place(torch.arange(n, device=x.device))
            mask = ~torch.tril(torch.ones(n, n, dtype=torch.bool, device=x.device))
            h = h + self.attention(self.norm1(h), h, h, attn_mask=mask)[0]
            return h + self.conv(self.norm2(h).transpose(1, 2)).transpose(1, 2)

    def loss(net, x):
        h, after = net(x[:, :-1]), x[:, 1:]
        other = torch.randint(1, ITEMS, after.shape, device=x.device)
        yes, no = (h * net.item(after)).sum(-1), (h * net.item(other)).sum(-1)
        return F.binary_cross_entropy_with_logits(yes, torch.ones_like(yes)) + F.binary_cross_entropy_with_logits(no, torch.zeros_like(no))

    return Task(
        SASRec(),
        history,
        loss,
        lambda net, x: net(x[:, :-1])[:, -1] @ net.item.weight.T,
        functools.partial(torch.optim.Adam, lr=1e-3, betas=(0.9, 0.98)),
    )


@model("recommendation")
def gru4rec():
    """Sessions by a GRU, the loss TOP1-max."""

    class GRU4Rec(nn.Module):
        def __init__(self):
            super().__init__()
            self.item, self.gru = nn.Embedding(ITEMS, 8), nn.GRU(8, 8, 2, batch_first=True)

        def forward(self, x):
            return self.gru(self.item(x))[0][:, -1] @ self.item.weight.T

    def loss(net, x):
        scores = net(x[:, :-1])
        yes, no = scores.gather(1, x[:, -1:]), scores[:, 1:]
        return (no.softmax(1) * ((no - yes).sigmoid() + no.square().sigmoid())).sum(1).mean()

    return Task(GRU4Rec(), history, loss, lambda net, x: net(x), functools.partial(torch.optim.Rprop, lr=1e-3))


@model("recommendation")
def interest_network():
    """DIN: attention of the candidate to what was chosen, Dice activations."""

    class Dice(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.norm, self.alpha = nn.BatchNorm1d(d, affine=False), nn.Parameter(torch.zeros(d))

        def forward(self, x):
            p = self.norm(x).sigmoid()
            return p * x + (1 - p) * self.alpha * x

    class DIN(nn.Module):
        def __init__(self, d=6):
            super().__init__()
            self.item, self.score, self.out = (
                nn.Embedding(ITEMS, d),
                perceptron(4 * d, 8, 1, activation=nn.Sigmoid),
                nn.Sequential(nn.Linear(2 * d, 8), Dice(8), nn.Linear(8, 1)),
            )

        def forward(self, x):
            past, candidate = self.item(x[:, :-1]), self.item(x[:, -1:])
            q = candidate.expand_as(past)
            weights = self.score(torch.cat([q, past, q - past, q * past], -1))
            return self.out(torch.cat([(weights * past).sum(1), candidate.squeeze(1)], 1)).squeeze(1)

    return Task(
        DIN(),
        history,
        lambda net, x: F.binary_cross_entropy_with_logits(net(x), (x[:, -1] % 2).float()),
        optimizer=functools.partial(torch.optim.Adam, lr=1e-3),
    )


@model("recommendation")
def multinomial_vae():
    """Rows of ratings by a variational autoencoder with a multinomial likelihood."""
    net = nn.ModuleDict({"encode": perceptron(ITEMS, 16, 8, activation=nn.Tanh), "decode": perceptron(4, 16, ITEMS, activation=nn.Tanh)})

    def loss(net, x):
        mean, log_var = net["encode"](F.dropout(F.normalize(x), 0.5)).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
        kl = 0.5 * (mean.square() + log_var.exp() - 1 - log_var).sum(1).mean()
        return -(net["decode"](z).log_softmax(1) * x).sum(1).mean() + 0.2 * kl

    return Task(
        net, lambda g: (torch.randint(0, 2, (ITEMS,), generator=g).float(),), loss, lambda net, x: net["decode"](net["encode"](F.normalize(x))[:, :4])
    )


@model("recommendation")
def tabular_transformer():
    """FT-Transformer: each column a token."""

    class FT(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.weight, self.bias, self.embed, self.cls = (
                nn.Parameter(torch.randn(4, d)),
                nn.Parameter(torch.randn(4, d)),
                nn.Embedding(30, d),
                nn.Parameter(torch.randn(1, 1, d)),
            )
            self.encoder = nn.TransformerEncoderLayer(d, 2, 16, 0.1, activation=F.gelu, batch_first=True, norm_first=True)
            self.out = nn.Linear(d, 1)

        def forward(self, x, c):
            tokens = [
                self.cls.expand(len(x), -1, -1),
                x.unsqueeze(2) * self.weight + self.bias,
                self.embed(c + torch.arange(0, 30, 10, device=c.device)),
            ]
            return self.out(self.encoder(torch.cat(tokens, 1))[:, 0]).squeeze(1)

    return on_columns(FT(), optimizer=functools.partial(torch.optim.AdamW, lr=1e-3, amsgrad=True))


@model("recommendation")
def oblivious_trees():
    """Soft decision trees of one question a level (NODE): products of sigmoids over leaves."""

    class Trees(nn.Module):
        def __init__(self, trees=6, depth=3):
            super().__init__()
            self.choose, self.threshold, self.scale = (
                nn.Parameter(torch.randn(7, trees, depth)),
                nn.Parameter(torch.zeros(trees, depth)),
                nn.Parameter(torch.zeros(trees, depth)),
            )
            self.leaves = nn.Parameter(torch.randn(trees, 2**depth) * 0.1)
            self.register_buffer("bits", torch.arange(2**depth).unsqueeze(1) >> torch.arange(depth) & 1)

        def forward(self, x, c):
            x = torch.cat([x, c / 10], 1)
            p = ((torch.einsum("bf,ftd->btd", x, self.choose.softmax(0)) - self.threshold) * torch.exp(-self.scale)).sigmoid().unsqueeze(2)
            return (torch.where(self.bits.bool(), p, 1 - p).prod(-1) * self.leaves).sum((1, 2))

    return on_columns(Trees())
