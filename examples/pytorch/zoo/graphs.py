"""Graphs: nodes, edges, molecules. A sample is a graph; a batch of them is one graph with their nodes side by side."""

import functools

import torch
from torch import nn
from torch.nn import functional as F

from zoo import Task, model, perceptron

NODES, EDGES, FEATURES = 6, 14, 5


def graph(g):
    """Features of nodes, edges (source and target), a label."""
    edges = torch.randint(0, NODES, (2, EDGES), generator=g)
    return torch.randn(NODES, FEATURES, generator=g), edges, torch.randint(0, 3, (), generator=g)


def side_by_side(samples):
    """Features, edges, the graph of each node, labels."""
    x = torch.cat([s[0] for s in samples])
    edges = torch.cat([s[1] + i * NODES for i, s in enumerate(samples)], 1)
    return x, edges, torch.arange(len(samples)).repeat_interleave(NODES), torch.stack([s[2] for s in samples])


def of_graphs(net, **options):
    """Graphs classified by net(x, edges, graph of each node, how many graphs)."""

    def loss(net, x, edges, owner, label):
        return F.cross_entropy(net(x, edges, owner, len(label)), label)

    return Task(net, graph, loss, lambda net, x, edges, owner, label: net(x, edges, owner, len(label)), collate=side_by_side, **options)


def summed(x, owner, count):
    return x.new_zeros(count, x.shape[1]).index_add_(0, owner, x)


class Layers(nn.Module):
    """Layers that send messages, the sum over each graph, a class. layer(x, edges) gives new features."""

    def __init__(self, layer, d=12, depth=2):
        super().__init__()
        self.layers = nn.ModuleList(layer(FEATURES if i == 0 else d, d) for i in range(depth))
        self.head = nn.Linear(d, 3)

    def forward(self, x, edges, owner, count):
        for layer in self.layers:
            x = F.relu(layer(x, edges))
        return self.head(summed(x, owner, count) / NODES)


@model("graphs")
def gcn():
    """Graph convolutions, normalised by degrees (Kipf and Welling)."""

    class GCN(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.linear = nn.Linear(a, b)

        def forward(self, x, edges):
            loops = torch.arange(len(x), device=x.device)
            source, target = torch.cat([edges, loops.expand(2, -1)], 1)
            degree = torch.zeros(len(x), device=x.device).scatter_add_(0, target, torch.ones_like(target, dtype=x.dtype))
            norm = degree.pow(-0.5)
            messages = self.linear(x)[source] * (norm[source] * norm[target]).unsqueeze(1)
            return torch.zeros(len(x), messages.shape[1], device=x.device).index_add(0, target, messages)

    return of_graphs(Layers(GCN), optimizer=functools.partial(torch.optim.Adam, lr=0.01, weight_decay=5e-4))


@model("graphs")
def gcn_sparse():
    """The same with a sparse adjacency matrix (torch.sparse.mm)."""

    class GCN(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.linear = nn.Linear(a, b)

        def forward(self, x, edges):
            adjacency = torch.sparse_coo_tensor(edges.flip(0), torch.ones(edges.shape[1], device=x.device), (len(x), len(x)))
            return torch.sparse.mm(adjacency, self.linear(x))

    return of_graphs(Layers(GCN))


@model("graphs")
def gat():
    """Graph attention: a softmax over the edges of each node."""

    class GAT(nn.Module):
        def __init__(self, a, b, heads=2):
            super().__init__()
            self.linear, self.source, self.target = (
                nn.Linear(a, b),
                nn.Parameter(torch.randn(heads, b // heads) * 0.3),
                nn.Parameter(torch.randn(heads, b // heads) * 0.3),
            )

        def forward(self, x, edges):
            source, target = edges
            h = self.linear(x).unflatten(1, self.source.shape)
            score = F.leaky_relu((h * self.source).sum(-1)[source] + (h * self.target).sum(-1)[target], 0.2)
            index = target.unsqueeze(1).expand_as(score)
            most = torch.full((len(x), score.shape[1]), float("-inf"), device=x.device).scatter_reduce(0, index, score.detach(), "amax")
            e = torch.exp(score - most[target])
            total = torch.zeros_like(most).scatter_add(0, index, e)
            weights = F.dropout(e / (total[target] + 1e-16), 0.2, self.training)
            return torch.zeros_like(h).index_add(0, target, weights.unsqueeze(-1) * h[source]).flatten(1)

    return of_graphs(Layers(GAT), optimizer=functools.partial(torch.optim.Adam, lr=5e-3))


@model("graphs")
def graph_sage():
    """GraphSAGE: the mean of the neighbours (scatter_reduce)."""

    class Sage(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.own, self.others = nn.Linear(a, b), nn.Linear(a, b, bias=False)

        def forward(self, x, edges):
            messages = x[edges[0]]
            mean = torch.zeros_like(x).scatter_reduce(0, edges[1].unsqueeze(1).expand_as(messages), messages, "mean", include_self=False)
            return F.normalize(self.own(x) + self.others(mean), dim=1)

    return of_graphs(Layers(Sage))


@model("graphs")
def graph_pool_max():
    """The greatest of the neighbours, with gradients (scatter_reduce, amax)."""

    class Pool(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.pool, self.linear = nn.Linear(a, a), nn.Linear(2 * a, b)

        def forward(self, x, edges):
            messages = F.relu(self.pool(x))[edges[0]]
            most = torch.zeros_like(x).scatter_reduce(0, edges[1].unsqueeze(1).expand_as(messages), messages, "amax")
            return self.linear(torch.cat([x, most], 1))

    return of_graphs(Layers(Pool))


@model("graphs")
def gin():
    """Graph isomorphism network: sums and perceptrons with batch norm."""

    class GIN(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.epsilon, self.mlp = nn.Parameter(torch.zeros(1)), nn.Sequential(nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU(), nn.Linear(b, b))

        def forward(self, x, edges):
            return self.mlp((1 + self.epsilon) * x + torch.zeros_like(x).index_add(0, edges[1], x[edges[0]]))

    return of_graphs(Layers(GIN), schedule=functools.partial(torch.optim.lr_scheduler.StepLR, step_size=1, gamma=0.5))


@model("graphs")
def message_passing():
    """Messages by networks of the edges, states by a GRU cell, the set read by attention (MPNN with set2set)."""

    class MPNN(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.into, self.edge, self.cell = nn.Linear(FEATURES, d), perceptron(2, 8, d * d), nn.GRUCell(d, d)
            self.read, self.head = nn.LSTMCell(2 * d, d), perceptron(2 * d, 8, 3)

        def forward(self, x, edges, owner, count):
            source, target = edges
            feature = torch.stack([x[source, 0] * x[target, 0], (x[source] - x[target]).norm(dim=1)], 1)
            matrices = self.edge(feature).unflatten(1, (8, 8))
            h = F.relu(self.into(x))
            for _ in range(2):
                messages = torch.bmm(h[source].unsqueeze(1), matrices).squeeze(1)
                h = self.cell(torch.zeros_like(h).index_add(0, target, messages), h)
            q = h.new_zeros(count, 16)
            state = None
            for _ in range(2):
                state = self.read(q, state)
                e = (h * state[0][owner]).sum(1).view(count, NODES)
                q = torch.cat([state[0], (e.softmax(1).unsqueeze(-1) * h.view(count, NODES, -1)).sum(1)], 1)
            return self.head(q)

    return of_graphs(MPNN(), clip=5.0)


@model("graphs")
def graph_transformer():
    """Attention among all nodes, biased by whether there is an edge; nodes of each graph padded by nothing."""

    class Net(nn.Module):
        def __init__(self, d=12):
            super().__init__()
            self.into, self.bias = nn.Linear(FEATURES, d), nn.Embedding(2, 3)
            self.attention, self.norm, self.head = nn.MultiheadAttention(d, 3, batch_first=True), nn.LayerNorm(d), nn.Linear(d, 3)

        def forward(self, x, edges, owner, count):
            adjacency = torch.zeros(count, NODES, NODES, dtype=torch.long, device=x.device)
            adjacency[owner[edges[0]], edges[0] % NODES, edges[1] % NODES] = 1
            h = self.into(x).view(count, NODES, -1)
            mask = self.bias(adjacency).movedim(-1, 1).flatten(0, 1)
            h = self.norm(h + self.attention(h, h, h, attn_mask=mask)[0])
            return self.head(h.mean(1))

    return of_graphs(Net())


def molecule(g):
    """Places and kinds of atoms, and an energy."""
    x, kinds = torch.randn(NODES, 3, generator=g) * 1.5, torch.randint(0, 4, (NODES,), generator=g)
    return x, kinds, x.square().sum().sqrt() + kinds.sum()


@model("graphs")
def schnet():
    """SchNet: filters of distances, energies and forces, which are gradients, both learnt."""

    class SchNet(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.embed, self.filter, self.linear, self.out = (
                nn.Embedding(4, d),
                perceptron(10, d, d, activation=nn.Softplus),
                nn.Linear(d, d),
                perceptron(d, d, 1, activation=nn.Softplus),
            )
            self.register_buffer("centres", torch.linspace(0, 5, 10))

        def forward(self, x, kinds):
            difference = x.unsqueeze(2) - x.unsqueeze(1) + 0.0
            apart = ~torch.eye(NODES, dtype=torch.bool, device=x.device)
            distance = difference[:, apart].norm(dim=-1)
            weights = self.filter(torch.exp(-2 * (distance.unsqueeze(-1) - self.centres).square()))
            weights = weights * (0.5 * (torch.cos(distance * (torch.pi / 5)) + 1) * (distance < 5)).unsqueeze(-1)
            h = self.embed(kinds)
            messages = (
                weights.unflatten(1, (NODES, NODES - 1)) * self.linear(h)[:, torch.arange(NODES).expand(NODES, -1)[apart.cpu()].view(NODES, -1)]
            ).sum(2)
            return self.out(h + messages).sum((1, 2))

    def loss(net, x, kinds, energy):
        x = x.requires_grad_()
        found = net(x, kinds)
        (force,) = torch.autograd.grad(found.sum(), x, create_graph=True)
        return F.mse_loss(found, energy) + force.square().mean()

    return Task(SchNet(), molecule, loss, lambda net, x, kinds, _: net(x, kinds))


@model("graphs")
def equivariant():
    """EGNN: places move along differences, features see distances only."""

    class Layer(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.edge, self.node, self.place = (
                perceptron(2 * d + 1, d, d, activation=nn.SiLU),
                perceptron(2 * d, d, d, activation=nn.SiLU),
                perceptron(d, d, 1, activation=nn.SiLU),
            )

        def forward(self, h, x):
            difference = x.unsqueeze(2) - x.unsqueeze(1)
            pairs = [h.unsqueeze(2).expand(-1, -1, NODES, -1), h.unsqueeze(1).expand(-1, NODES, -1, -1), difference.square().sum(-1, keepdim=True)]
            m = self.edge(torch.cat(pairs, -1))
            x = x + (difference * torch.tanh(self.place(m))).mean(2)
            return h + self.node(torch.cat([h, m.sum(2)], -1)), x

    class EGNN(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.embed, self.layers, self.out = nn.Embedding(4, d), nn.ModuleList(Layer(d) for _ in range(2)), nn.Linear(d, 1)

        def forward(self, x, kinds):
            h = self.embed(kinds)
            for layer in self.layers:
                h, x = layer(h, x)
            return self.out(h).sum((1, 2))

    return Task(EGNN(), molecule, lambda net, x, kinds, e: F.huber_loss(net(x, kinds), e), lambda net, x, kinds, _: net(x, kinds))


@model("graphs")
def knowledge_graph():
    """TransE and RotatE's score: entities and relations, negative samples, a margin."""
    net = nn.ModuleDict({"entity": nn.Embedding(20, 8, max_norm=1.0), "relation": nn.Embedding(4, 8)})

    def score(net, h, r, t):
        return (net["entity"](h) + net["relation"](r) - net["entity"](t)).norm(p=1, dim=-1)

    def loss(net, h, r, t):
        wrong = torch.randint(0, 20, t.shape, device=t.device)
        return F.margin_ranking_loss(score(net, h, r, wrong), score(net, h, r, t), torch.ones_like(h, dtype=torch.float), margin=1.0)

    return Task(
        net, lambda g: tuple(torch.randint(0, n, (), generator=g) for n in (20, 4, 20)), loss, score, functools.partial(torch.optim.SGD, lr=0.1)
    )


@model("graphs")
def graph_autoencoder():
    """A variational graph autoencoder on dense adjacency matrices: edges by inner products."""
    net = nn.ModuleDict({"first": nn.Linear(FEATURES, 8), "mean": nn.Linear(8, 4), "log_std": nn.Linear(8, 4)})

    def encode(net, x, a):
        d = a.sum(2).rsqrt()
        a = d.unsqueeze(2) * a * d.unsqueeze(1)
        h = F.relu(a @ net["first"](x))
        return a @ net["mean"](h), a @ net["log_std"](h)

    def loss(net, x, a):
        mean, log_std = encode(net, x, a)
        z = mean + torch.randn_like(mean) * log_std.exp()
        kl = -0.5 * (1 + 2 * log_std - mean.square() - log_std.exp().square()).sum(2).mean()
        return F.binary_cross_entropy_with_logits(z @ z.transpose(1, 2), a, pos_weight=torch.tensor(2.0, device=a.device)) + kl / NODES

    def sample(g):
        a = torch.randint(0, 2, (NODES, NODES), generator=g).float()
        return torch.randn(NODES, FEATURES, generator=g), torch.maximum(torch.maximum(a, a.T), torch.eye(NODES))

    return Task(net, sample, loss, lambda net, x, a: encode(net, x, a)[0])
