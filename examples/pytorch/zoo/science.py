"""Science and statistics: equations, fields, time series, uncertainty."""

import functools
import math

import torch
from torch import nn
from torch.nn import functional as F

from zoo import Task, model, perceptron, vectors


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(30 * x)


@model("science")
def pinn():
    """Burgers' equation: derivatives of the network are the loss."""

    def derivative(y, x):
        return torch.autograd.grad(y.sum(), x, create_graph=True)[0]

    def loss(net, x):
        x = x.requires_grad_()
        u = net(x)
        du = derivative(u, x)
        uxx = derivative(du[:, 0], x)[:, 0]
        residual = du[:, 1] + u.squeeze(1) * du[:, 0] - 0.01 / math.pi * uxx
        start = torch.stack([x[:, 0].detach(), torch.zeros(len(x), device=x.device)], 1)
        return residual.square().mean() + (net(start).squeeze(1) + torch.sin(math.pi * start[:, 0])).square().mean()

    return Task(
        perceptron(2, 16, 16, 1, activation=nn.Tanh),
        lambda g: (torch.rand(2, generator=g) * 2 - 1,),
        loss,
        optimizer=functools.partial(torch.optim.Adam, lr=1e-3),
    )


@model("science")
def pinn_lbfgs():
    """An ordinary differential equation by LBFGS."""

    def loss(net, x):
        x = x.requires_grad_()
        y = net(x)
        (dy,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return (dy + y).square().mean() + (net(torch.zeros_like(x)) - 1).square().mean()

    return Task(
        perceptron(1, 12, 1, activation=nn.Tanh),
        lambda g: (torch.rand(1, generator=g),),
        loss,
        optimizer=functools.partial(torch.optim.LBFGS, lr=0.1, max_iter=4, line_search_fn="strong_wolfe"),
    )


@model("science")
def siren():
    """A picture as a function of places, sines for activations; its gradient is learnt, too."""
    net = nn.Sequential(nn.Linear(2, 16), Sine(), nn.Linear(16, 16), Sine(), nn.Linear(16, 1))
    for layer in (net[2], net[4]):
        nn.init.uniform_(layer.weight, -math.sqrt(6 / 16) / 30, math.sqrt(6 / 16) / 30)

    def loss(net, x):
        x = x.requires_grad_()
        y = net(x)
        (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return F.mse_loss(y.squeeze(1), x.detach().prod(1)) + 0.1 * F.mse_loss(slope, x.detach().flip(1))

    return Task(net, lambda g: (torch.rand(2, generator=g) * 2 - 1,), loss, optimizer=functools.partial(torch.optim.Adam, lr=1e-4))


@model("science")
def deep_onet():
    """DeepONet: functions to functions."""
    net = nn.ModuleDict({"branch": perceptron(8, 16, 8, activation=nn.GELU), "trunk": perceptron(1, 16, 8, activation=nn.GELU)})

    def found(net, f, x):
        return torch.einsum("bi,bni->bn", net["branch"](f), net["trunk"](x.unsqueeze(2)))

    def sample(g):
        f, x = torch.randn(8, generator=g), torch.rand(5, generator=g)
        return f, x, (f.cumsum(0)[(x * 7.99).long()]) / 8

    return Task(
        net,
        sample,
        lambda net, f, x, y: (found(net, f, x) - y).norm() / y.norm(),
        lambda net, f, x, y: found(net, f, x),
        schedule=lambda o: torch.optim.lr_scheduler.ChainedScheduler(
            [torch.optim.lr_scheduler.ConstantLR(o, 0.5, 2), torch.optim.lr_scheduler.ExponentialLR(o, 0.9)]
        ),
    )


@model("science")
def fourier_operator():
    """Fourier neural operator: some frequencies times matrices (torch.fft)."""

    class FNO(nn.Module):
        def __init__(self, d=6, modes=4):
            super().__init__()
            self.into, self.out, self.local, self.modes = nn.Linear(1, d), nn.Linear(d, 1), nn.Linear(d, d), modes
            self.weight = nn.Parameter(torch.randn(d, d, modes, 2) / d**2)

        def forward(self, x):
            x = self.into(x.unsqueeze(2))
            spectrum = torch.fft.rfft(x, dim=1)
            low = torch.einsum("bkd,dek->bke", spectrum[:, : self.modes], torch.view_as_complex(self.weight))
            y = torch.fft.irfft(low, n=16, dim=1)
            return self.out(F.gelu(y + self.local(x))).squeeze(2)

    return Task(FNO(), lambda g: (torch.randn(16, generator=g),), lambda net, x: F.mse_loss(net(x), x.roll(1, 1)))


@model("science")
def neural_ode():
    """A differential equation by Runge and Kutta's steps."""
    field = perceptron(2, 16, 2, activation=nn.Tanh)

    def solve(net, x, steps=4, h=0.25):
        path = [x]
        for _ in range(steps):
            k1 = net(x**3)
            k2 = net((x + h / 2 * k1) ** 3)
            k3 = net((x + h / 2 * k2) ** 3)
            k4 = net((x + h * k3) ** 3)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            path.append(x)
        return torch.stack(path, 1)

    return Task(
        field,
        lambda g: (torch.rand(2, generator=g) * 2,),
        lambda net, x: (solve(net, x)[:, -1] - x.flip(1)).abs().mean(),
        solve,
        functools.partial(torch.optim.RMSprop, lr=1e-3),
    )


@model("science")
def hamiltonian():
    """An energy whose derivatives move the system (jacobians by torch.func)."""
    net = perceptron(2, 16, 1, activation=nn.Tanh)

    def velocity(net, x):
        def energy(row):
            return net(row).squeeze(0)

        slope = torch.func.vmap(torch.func.grad(energy))(x)
        return torch.stack([slope[:, 1], -slope[:, 0]], 1)

    return Task(
        net, lambda g: (torch.randn(2, generator=g),), lambda net, x: F.mse_loss(velocity(net, x), torch.stack([x[:, 1], -torch.sin(x[:, 0])], 1))
    )


@model("science")
def nerf():
    """Radiance fields: rays, sines of places, transmittance by cumulative products, a second sampling where the first saw something."""

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = perceptron(15, 24, 24, 4)

        def forward(self, x):
            f = 2.0 ** torch.arange(2, device=x.device) * math.pi
            angles = (x.unsqueeze(-1) * f).flatten(-2)
            return self.net(torch.cat([x, angles.sin(), angles.cos()], -1))

    def render(net, origin, direction, depth):
        out = net(origin.unsqueeze(1) + direction.unsqueeze(1) * depth.unsqueeze(2))
        step = F.pad(depth.diff(dim=1), (0, 1), value=0.5)
        alpha = 1 - torch.exp(-F.softplus(out[..., 3]) * step)
        seen = torch.cumprod(F.pad(1 - alpha + 1e-10, (1, 0), value=1.0), 1)[:, :-1] * alpha
        return (seen.unsqueeze(2) * out[..., :3].sigmoid()).sum(1), seen

    def both(net, origin, direction):
        coarse = torch.linspace(0.5, 3, 6, device=origin.device).expand(len(origin), -1).contiguous()
        colour, seen = render(net, origin, direction, coarse)
        cdf = torch.cumsum((seen.detach() + 1e-5) / (seen.detach() + 1e-5).sum(1, keepdim=True), 1)
        place = torch.searchsorted(cdf, torch.linspace(0.1, 0.9, 4, device=origin.device).expand(len(origin), -1).contiguous()).clamp(max=5)
        fine = torch.cat([coarse, coarse.gather(1, place) + 0.1], 1).sort(1).values
        return colour, render(net, origin, direction, fine)[0]

    def loss(net, origin, direction, target):
        a, b = both(net, origin, direction)
        return F.mse_loss(a, target) + F.mse_loss(b, target)

    def sample(g):
        d = torch.randn(3, generator=g)
        return torch.randn(3, generator=g) * 0.1, d / d.norm(), torch.rand(3, generator=g)

    return Task(
        Field(),
        sample,
        loss,
        lambda net, o, d, _: both(net, o, d)[1],
        functools.partial(torch.optim.Adam, lr=5e-4),
        functools.partial(torch.optim.lr_scheduler.ExponentialLR, gamma=0.1 ** (1 / 10)),
    )


@model("science")
def gaussian_splats():
    """Blobs drawn front to back, their places, sizes and colours learnt."""

    class Splats(nn.Module):
        def __init__(self, count=8):
            super().__init__()
            self.place, self.log_size, self.turn = (
                nn.Parameter(torch.rand(count, 2) * 2 - 1),
                nn.Parameter(torch.zeros(count, 2) - 1),
                nn.Parameter(torch.zeros(count)),
            )
            self.colour, self.opacity, self.depth = (
                nn.Parameter(torch.randn(count, 3)),
                nn.Parameter(torch.zeros(count)),
                nn.Parameter(torch.randn(count), requires_grad=False),
            )

        def forward(self, pixels):
            order = self.depth.argsort()
            d = pixels.unsqueeze(-2) - self.place[order]
            c, s = self.turn[order].cos(), self.turn[order].sin()
            u, v = c * d[..., 0] + s * d[..., 1], c * d[..., 1] - s * d[..., 0]
            size = self.log_size[order].exp()
            alpha = self.opacity[order].sigmoid() * torch.exp(-0.5 * ((u / size[:, 0]) ** 2 + (v / size[:, 1]) ** 2))
            seen = alpha * torch.cumprod(F.pad(1 - alpha, (1, 0), value=1.0), -1)[..., :-1]
            return (seen.unsqueeze(-1) * self.colour[order].sigmoid()).sum(-2)

    return Task(
        Splats(),
        lambda g: (torch.rand(2, generator=g) * 2 - 1, torch.rand(3, generator=g)),
        lambda net, x, y: F.l1_loss(net(x), y),
        optimizer=functools.partial(torch.optim.Adam, lr=0.01, eps=1e-15),
    )


@model("science")
def gaussian_process():
    """Regression by a Gaussian process: kernels, a Cholesky factor, the marginal likelihood."""

    class GP(nn.Module):
        def __init__(self):
            super().__init__()
            self.log_length, self.log_noise, self.log_scale = (nn.Parameter(torch.zeros(())) for _ in range(3))
            self.register_buffer("seen", torch.linspace(-2, 2, 6).unsqueeze(1))

        def kernel(self, a, b):
            return self.log_scale.exp() * torch.exp(-0.5 * (a.unsqueeze(-2) - b.unsqueeze(-3)).square().sum(-1) / self.log_length.exp() ** 2)

        def factor(self):
            return torch.linalg.cholesky(self.kernel(self.seen, self.seen) + (self.log_noise.exp() + 1e-4) * torch.eye(6, device=self.seen.device))

        def forward(self, x):
            return self.kernel(x, self.seen) @ torch.cholesky_solve(self.seen.sin(), self.factor())

    def loss(net, x):
        chol = net.factor()
        y = net.seen.sin()
        return 0.5 * (y * torch.cholesky_solve(y, chol)).sum() + chol.diagonal().log().sum()

    return Task(GP(), lambda g: (torch.randn(1, generator=g),), loss)


@model("science")
def deep_kernel():
    """Features of a network, least squares solved in the loss (torch.linalg.solve)."""

    def loss(net, x, y):
        f = net(x)
        w = torch.linalg.solve(f.T @ f + 0.1 * torch.eye(6, device=x.device), f.T @ y.unsqueeze(1))
        return F.mse_loss((f @ w).squeeze(1), y)

    return Task(perceptron(4, 12, 6), lambda g: (torch.randn(4, generator=g), torch.randn((), generator=g)), loss)


@model("science")
def survival():
    """Cox's partial likelihood: logarithms of cumulative sums of risks, in the order of times."""

    def loss(net, x, time, died):
        order = time.argsort(descending=True)
        risk = net(x).squeeze(1)[order]
        return -((risk - torch.logcumsumexp(risk, 0)) * died[order]).sum() / died.sum().clamp(min=1)

    net = nn.Sequential(nn.Linear(5, 16), nn.SELU(), nn.AlphaDropout(0.1), nn.Linear(16, 1))
    return Task(
        net,
        lambda g: (torch.randn(5, generator=g), torch.rand((), generator=g), torch.randint(0, 2, (), generator=g).float()),
        loss,
        optimizer=functools.partial(torch.optim.NAdam, lr=1e-3, decoupled_weight_decay=True, weight_decay=0.01),
    )


def series(g, length=24):
    t = torch.arange(length) * 0.5 + torch.rand((), generator=g) * 6
    return (t.sin() + 0.1 * torch.randn(length, generator=g),)


@model("science")
def temporal_convolution():
    """TCN: weight norm, dilated causal convolutions, quantile losses."""
    from torch.nn.utils.parametrizations import weight_norm

    class TCN(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(weight_norm(nn.Conv1d(1 if i == 0 else 8, 8, 3, dilation=2**i)) for i in range(3))
            self.out = nn.Conv1d(8, 3, 1)

        def forward(self, x):
            x = x.unsqueeze(1)
            for i, layer in enumerate(self.layers):
                y = F.dropout(F.relu(layer(F.pad(x, (2 * 2**i, 0)))), 0.1, self.training)
                x = y + x if x.shape == y.shape else y
            return self.out(x)

    def loss(net, x):
        error = x[:, None, 1:] - net(x[:, :-1])
        q = torch.tensor([0.1, 0.5, 0.9], device=x.device).unsqueeze(1)
        return torch.maximum(q * error, (q - 1) * error).mean()

    return Task(TCN(), series, loss)


@model("science")
def n_beats():
    """N-BEATS: blocks that explain a part of the past; the symmetric percentage error."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.back, self.fore = nn.Sequential(perceptron(16, 16, 16), nn.ReLU()), nn.Linear(16, 16), nn.Linear(16, 8)

        def forward(self, x):
            h = self.net(x)
            return self.back(h), self.fore(h)

    class NBeats(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(2))

        def forward(self, x):
            total = 0
            for block in self.blocks:
                back, fore = block(x)
                x, total = x - back, total + fore
            return total

    def loss(net, x):
        y, target = net(x[:, :16]), x[:, 16:]
        return (2 * (y - target).abs() / (y.abs() + target.abs()).clamp(min=1e-3)).mean()

    return Task(
        NBeats(), series, loss, lambda net, x: net(x[:, :16]), schedule=lambda o: torch.optim.lr_scheduler.MultiplicativeLR(o, lambda step: 0.95)
    )


@model("science")
def deep_ar():
    """DeepAR: an LSTM of counts, a negative binomial likelihood (lgamma)."""

    class DeepAR(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.out = nn.LSTM(1, 12, batch_first=True), nn.Linear(12, 2)

        def forward(self, x):
            a, b = F.softplus(self.out(self.lstm(torch.log1p(x).unsqueeze(2))[0])).unbind(2)
            return a + 1e-3, b + 1e-3

    def loss(net, x):
        total, odds = net(x[:, :-1])
        return -torch.distributions.NegativeBinomial(total, logits=odds.log()).log_prob(x[:, 1:]).mean()

    return Task(DeepAR(), lambda g: (torch.randint(0, 8, (10,), generator=g).float(),), loss)


@model("science")
def patch_series():
    """PatchTST: patches of a series as tokens, each series normalised by itself; the decomposition of Autoformer."""

    class PatchTST(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.embed, self.trend, self.out = nn.Linear(8, d), nn.Linear(16, 8), nn.Linear(3 * d, 8)
            self.encoder = nn.TransformerEncoderLayer(d, 2, 16, 0.1, batch_first=True)

        def forward(self, x):
            mean, std = x.mean(1, keepdim=True), x.std(1, keepdim=True) + 1e-5
            x = (x - mean) / std
            trend = F.avg_pool1d(F.pad(x.unsqueeze(1), (2, 2), mode="replicate"), 5, 1).squeeze(1)
            y = self.out(self.encoder(self.embed((x - trend).unfold(1, 8, 4))).flatten(1)) + self.trend(trend)
            return y * std + mean

    return Task(
        PatchTST(),
        series,
        lambda net, x: F.mse_loss(net(x[:, :16]), x[:, 16:]),
        lambda net, x: net(x[:, :16]),
        schedule=lambda o: torch.optim.swa_utils.SWALR(o, 1e-4),
    )


@model("science")
def mixture_density():
    """A mixture of normal distributions whose parts a network gives."""

    def log_prob(net, x, y):
        weight, mean, scale = net(x).chunk(3, 1)
        return torch.logsumexp(weight.log_softmax(1) - 0.5 * ((y - mean) / scale.exp()).square() - scale - 0.5 * math.log(2 * math.pi), 1)

    return Task(
        perceptron(1, 16, 12, activation=nn.Tanh),
        lambda g: (torch.randn(1, generator=g), torch.randn(1, generator=g)),
        lambda net, x, y: -log_prob(net, x, y).mean(),
        log_prob,
    )


@model("science")
def evidential():
    """Evidential regression and classification: Dirichlet distributions, lgamma and digamma."""

    def loss(net, x, label):
        alpha = F.softplus(net(x)) + 1
        s, t = alpha.sum(1, keepdim=True), F.one_hot(label, 4)
        fit = (t * (torch.digamma(s) - torch.digamma(alpha))).sum(1)
        rest = t + (1 - t) * alpha
        total = rest.sum(1, keepdim=True)
        kl = (
            torch.lgamma(total.squeeze(1))
            - torch.lgamma(rest).sum(1)
            - math.lgamma(4)
            + ((rest - 1) * (torch.digamma(rest) - torch.digamma(total))).sum(1)
        )
        return (fit + 0.1 * kl).mean()

    return Task(perceptron(6, 16, 4), vectors(6), loss)


@model("science")
def bayes_by_backprop():
    """Weights that are distributions: a draw at each step, the divergence from a prior."""

    class Bayesian(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.mean, self.rho = nn.Parameter(torch.randn(b, a) * 0.1), nn.Parameter(torch.full((b, a), -3.0))

        def forward(self, x):
            scale = F.softplus(self.rho)
            return F.linear(x, torch.normal(self.mean, scale.detach()) + (scale - scale.detach()) if self.training else self.mean)

        def kl(self):
            scale = F.softplus(self.rho)
            return torch.distributions.kl_divergence(torch.distributions.Normal(self.mean, scale), torch.distributions.Normal(0.0, 1.0)).sum()

    net = nn.Sequential(Bayesian(6, 12), nn.ReLU(), Bayesian(12, 4))
    return Task(net, vectors(6), lambda net, x, y: F.cross_entropy(net(x), y) + 0.01 * (net[0].kl() + net[2].kl()))


@model("science")
def monte_carlo_gamma():
    """A gamma posterior with reparameterised draws (torch.distributions.Gamma)."""

    def loss(net, x, y):
        a, b = (F.softplus(net(x)) + 0.1).chunk(2, 1)
        q = torch.distributions.Gamma(a, b)
        rate = q.rsample()
        return (rate - y.unsqueeze(1) * rate.log()).mean() + torch.distributions.kl_divergence(
            q, torch.distributions.Gamma(torch.ones_like(a), torch.ones_like(b))
        ).mean()

    return Task(perceptron(3, 8, 2), lambda g: (torch.randn(3, generator=g), torch.randint(0, 5, (), generator=g).float()), loss)


@model("science")
def optimal_transport():
    """Sinkhorn's iterations in logarithms between two clouds of points."""
    net = perceptron(2, 16, 2)

    def loss(net, x, y):
        cost = (net(x).unsqueeze(2) - y.unsqueeze(1)).square().sum(-1)
        f, g = torch.zeros_like(cost[:, :, 0]), torch.zeros_like(cost[:, 0])
        for _ in range(4):
            f = -0.1 * torch.logsumexp((g.unsqueeze(1) - cost) / 0.1, 2)
            g = -0.1 * torch.logsumexp((f.unsqueeze(2) - cost) / 0.1, 1)
        plan = torch.exp((f.unsqueeze(2) + g.unsqueeze(1) - cost) / 0.1)
        return (plan * cost).sum((1, 2)).mean()

    return Task(net, lambda g: tuple(torch.randn(2, 6, 2, generator=g)), loss)


@model("science")
def stein_variational():
    """Particles that repel each other by a kernel whose width is the median of their distances."""

    class Particles(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(6, 3))

        def forward(self, x):
            return x @ self.w.T

    def loss(net, x, y):
        squares = torch.pdist(net.w.detach()).square()
        width = squares.median() / math.log(6) + 1e-6
        kernel = torch.exp(-(net.w.unsqueeze(1) - net.w).square().sum(-1) / width)
        return (net(x) - y.unsqueeze(1)).square().mean() + 0.01 * kernel.mean()

    return Task(Particles(), lambda g: (torch.randn(3, generator=g), torch.randn((), generator=g)), loss)


@model("science")
def weather():
    """Fields on a globe: circular borders in longitude, weights by the cosine of latitude."""

    class Globe(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.a, self.b, self.norm = nn.Conv2d(2, d, 3), nn.Conv2d(d, 2, 3), nn.GroupNorm(2, d)

        def around(self, x):
            return F.pad(F.pad(x, (1, 1, 0, 0), mode="circular"), (0, 0, 1, 1), mode="replicate")

        def forward(self, x):
            return x + self.b(self.around(F.silu(self.norm(self.a(self.around(x))))))

    def loss(net, x, y):
        weight = torch.cos(torch.linspace(-1.4, 1.4, 8, device=x.device)).view(8, 1)
        return ((net(x) - y).square() * weight / weight.mean()).mean()

    return Task(Globe(), lambda g: tuple(torch.randn(2, 2, 8, 12, generator=g)), loss, optimizer=functools.partial(torch.optim.Adam, lr=1e-3))


@model("science")
def double_pendulum_f64():
    """A perceptron in double precision, as physicists have it."""
    return Task(
        perceptron(4, 16, 4, activation=nn.Tanh).double(),
        lambda g: tuple(torch.randn(2, 4, generator=g).double()),
        lambda net, x, y: F.mse_loss(net(x), y),
        optimizer=functools.partial(torch.optim.Adam, lr=1e-3),
    )


@model("science")
def meta_learning():
    """MAML: a step on one half of a task, the loss after it on the other, gradients through both."""

    def adapted(net, x, y):
        p = dict(net.named_parameters())
        loss = F.mse_loss(torch.func.functional_call(net, p, (x,)), y)
        return {k: v - 0.1 * g for (k, v), g in zip(p.items(), torch.autograd.grad(loss, list(p.values()), create_graph=True))}

    def loss(net, x, y):
        total = 0
        for a, b in zip(x, y):
            total = total + F.mse_loss(torch.func.functional_call(net, adapted(net, a[:5], b[:5]), (a[5:],)), b[5:])
        return total / len(x)

    def sample(g):
        x = torch.rand(10, 1, generator=g) * 10 - 5
        return x, torch.sin(x + torch.rand((), generator=g) * 3)

    return Task(perceptron(1, 16, 1), sample, loss, lambda net, x, y: net(x))


@model("science")
def equilibrium():
    """A deep equilibrium: iterated to a fixed point without gradients, then a step with them."""

    class Equilibrium(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.again, self.out = nn.Linear(6, 12), nn.Linear(12, 12), nn.Linear(12, 4)

        def forward(self, x):
            x, z = self.into(x), torch.zeros(len(x), 12, device=x.device)
            with torch.no_grad():
                for _ in range(6):
                    z = torch.tanh(0.5 * self.again(z) + x)
            return self.out(torch.tanh(0.5 * self.again(z) + x))

    return Task(Equilibrium(), vectors(6), lambda net, x, y: F.multi_margin_loss(net(x), y), optimizer=functools.partial(torch.optim.Adam, lr=1e-3))


@model("science")
def quantisation_aware():
    """Weights and activations rounded to eight bits while it learns (fake quantisation)."""

    class Quantised(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 16), nn.Linear(16, 4)

        def forward(self, x):
            w = torch.fake_quantize_per_tensor_affine(self.a.weight, 1 / 128, 0, -128, 127)
            return self.b(torch.fake_quantize_per_tensor_affine(F.relu(F.linear(x, w, self.a.bias)), 1 / 64, 0, 0, 255))

    return Task(Quantised(), vectors(6), lambda net, x, y: F.cross_entropy(net(x), y))


@model("science")
def spiking():
    """Spiking neurons with a surrogate gradient (torch.autograd.Function)."""

    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, v):
            ctx.save_for_backward(v)
            return (v > 0).to(v.dtype)

        @staticmethod
        def backward(ctx, gradient):
            (v,) = ctx.saved_tensors
            return gradient / (1 + 10 * v.abs()) ** 2

    class Spiking(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.out, self.beta = nn.Linear(6, 16), nn.Linear(16, 4), nn.Parameter(torch.full((16,), 0.9))

        def forward(self, x):
            v, total = torch.zeros(len(x), 16, device=x.device), 0
            for _ in range(5):
                v = self.beta * v + self.into(x)
                s = Spike.apply(v - 1)
                v, total = v - s.detach(), total + self.out(s)
            return total / 5

    return Task(Spiking(), vectors(6), lambda net, x, y: F.cross_entropy(net(x), y))
