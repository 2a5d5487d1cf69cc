"""Networks that make samples: diffusion, flows, autoencoders, adversaries, energies."""

import functools
import math

import torch
from torch import nn
from torch.nn import functional as F

from zoo import Task, average_into, images, model, perceptron

ADAM = functools.partial(torch.optim.Adam, lr=2e-3, betas=(0.5, 0.999))


def picture(size=12, channels=1):
    """An image alone, from -1 to 1."""
    sample = images(channels, size)
    return lambda g: (sample(g)[0].clamp(-0.5, 0.5) * 2,)


def point(g):
    """On two moons."""
    t, side = torch.rand((), generator=g) * math.pi, torch.randint(0, 2, (), generator=g)
    noise = 0.05 * torch.randn(2, generator=g)
    return (torch.stack([t.cos() + side, t.sin() * (1 - 2 * side) + 0.5 * side]) + noise,)


def sinusoids(t, size):
    """A time as sines and cosines."""
    frequencies = torch.exp(-math.log(10000) * torch.arange(size // 2, device=t.device) / (size // 2))
    angles = t[:, None].float() * frequencies
    return torch.cat([angles.sin(), angles.cos()], 1)


@model("generative")
def autoencoder():
    """A convolutional autoencoder."""
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(8, 4, 3, 2, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(4, 8, 2, 2),
        nn.ReLU(),
        nn.ConvTranspose2d(8, 1, 2, 2),
        nn.Sigmoid(),
    )
    return Task(net, lambda g: (torch.rand(1, 12, 12, generator=g),), lambda net, x: F.binary_cross_entropy(net(x), x))


@model("generative")
def vae():
    """A variational autoencoder (PyTorch's example)."""

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.decode = perceptron(144, 32, 2 * 6), perceptron(6, 32, 144)

        def forward(self, x):
            mean, log_var = self.encode(x.flatten(1)).chunk(2, 1)
            z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_var) if self.training else mean
            return self.decode(z).sigmoid(), mean, log_var

    def loss(net, x):
        y, mean, log_var = net(x)
        kl = -0.5 * torch.sum(1 + log_var - mean.pow(2) - log_var.exp())
        return F.binary_cross_entropy(y, x.flatten(1), reduction="sum") + kl

    return Task(VAE(), lambda g: (torch.rand(1, 12, 12, generator=g),), loss)


@model("generative")
def vae_distributions():
    """The same with torch.distributions: a Bernoulli decoder, kl_divergence, rsample."""
    from torch.distributions import Bernoulli, Independent, Normal, kl_divergence

    net = nn.ModuleDict({"encode": perceptron(64, 24, 8, activation=nn.Softplus), "decode": perceptron(4, 24, 64, activation=nn.Softplus)})

    def loss(net, x):
        mean, scale = net["encode"](x).chunk(2, 1)
        q = Independent(Normal(mean, F.softplus(scale) + 1e-3), 1)
        p = Independent(Normal(torch.zeros_like(mean), torch.ones_like(mean)), 1)
        decoded = Independent(Bernoulli(logits=net["decode"](q.rsample())), 1)
        return (kl_divergence(q, p) - decoded.log_prob(x)).mean()

    return Task(net, lambda g: (torch.randint(0, 2, (64,), generator=g).float(),), loss, lambda net, x: net["encode"](x))


@model("generative")
def vq_vae():
    """Vectors of a code book, straight-through gradients."""

    class VQ(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.decode = nn.Conv2d(1, 4, 4, 4), nn.ConvTranspose2d(4, 1, 4, 4)
            self.codes = nn.Embedding(16, 4)
            nn.init.uniform_(self.codes.weight, -1 / 16, 1 / 16)

        def forward(self, x):
            z = self.encode(x).movedim(1, -1)
            distances = (z.unsqueeze(-2) - self.codes.weight).square().sum(-1)
            q = self.codes(distances.argmin(-1))
            return self.decode((z + (q - z).detach()).movedim(-1, 1)), F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())

    def loss(net, x):
        y, commitment = net(x)
        return F.mse_loss(y, x) + commitment

    return Task(VQ(), picture(), loss, lambda net, x: net(x)[0])


def generator_and_critic(norm=nn.BatchNorm2d, wrap=lambda layer: layer):
    g = nn.Sequential(
        nn.ConvTranspose2d(8, 16, 3),
        norm(16),
        nn.ReLU(True),
        nn.ConvTranspose2d(16, 8, 4, 2, 1),
        norm(8),
        nn.ReLU(True),
        nn.ConvTranspose2d(8, 1, 4, 2, 1),
        nn.Tanh(),
    )
    d = nn.Sequential(
        wrap(nn.Conv2d(1, 8, 4, 2, 1)),
        nn.LeakyReLU(0.2),
        wrap(nn.Conv2d(8, 16, 4, 2, 1)),
        nn.LeakyReLU(0.2),
        wrap(nn.Conv2d(16, 1, 3)),
        nn.Flatten(0),
    )
    return nn.ModuleDict({"g": g, "d": d})


def drawn(net, x):
    return net["g"](torch.randn(len(x), 8, 1, 1, device=x.device))


def critic_scores(net, x):
    return net["d"](x)


@model("generative")
def dcgan():
    """DCGAN (PyTorch's tutorial)."""
    net = generator_and_critic()

    def critic(net, x):
        real, fake = net["d"](x), net["d"](drawn(net, x).detach())
        return F.binary_cross_entropy_with_logits(real, torch.ones_like(real)) + F.binary_cross_entropy_with_logits(fake, torch.zeros_like(fake))

    def artist(net, x):
        fake = net["d"](drawn(net, x))
        return F.binary_cross_entropy_with_logits(fake, torch.ones_like(fake))

    return Task(net, picture(), critic, critic_scores, ADAM, phases=[(critic, net["d"]), (artist, net["g"])])


@model("generative")
def wgan_gradient_penalty():
    """WGAN-GP: the norm of the critic's gradient is a part of its loss."""
    net = generator_and_critic(functools.partial(nn.GroupNorm, 2))

    def critic(net, x):
        fake = drawn(net, x).detach()
        between = torch.lerp(x, fake, torch.rand(len(x), 1, 1, 1, device=x.device)).requires_grad_()
        (gradient,) = torch.autograd.grad(net["d"](between).sum(), between, create_graph=True)
        penalty = (gradient.flatten(1).norm(2, dim=1) - 1).square().mean()
        return net["d"](fake).mean() - net["d"](x).mean() + 10 * penalty

    return Task(net, picture(), critic, critic_scores, ADAM, phases=[(critic, net["d"]), (lambda net, x: -net["d"](drawn(net, x)).mean(), net["g"])])


@model("generative")
def spectral_gan():
    """A critic with spectral norm, hinge losses."""
    net = generator_and_critic(wrap=torch.nn.utils.parametrizations.spectral_norm)

    def critic(net, x):
        return F.relu(1 - net["d"](x)).mean() + F.relu(1 + net["d"](drawn(net, x).detach())).mean()

    return Task(net, picture(), critic, critic_scores, ADAM, phases=[(critic, net["d"]), (lambda net, x: -net["d"](drawn(net, x)).mean(), net["g"])])


@model("generative")
def cycle_gan():
    """Images of one kind into the other and back: least squares, cycle and identity losses."""

    def painter():
        return nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(1, 8, 3), nn.InstanceNorm2d(8), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1), nn.Tanh())

    def critic():
        return nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 3))

    net = nn.ModuleDict({"paint": nn.ModuleDict({"ab": painter(), "ba": painter()}), "judge": nn.ModuleDict({"a": critic(), "b": critic()})})

    def artist(net, a, b):
        paint, judge = net["paint"], net["judge"]
        fake_b, fake_a = paint["ab"](a), paint["ba"](b)
        adversarial = (judge["b"](fake_b) - 1).square().mean() + (judge["a"](fake_a) - 1).square().mean()
        cycle = F.l1_loss(paint["ba"](fake_b), a) + F.l1_loss(paint["ab"](fake_a), b)
        return adversarial + 10 * cycle + 5 * (F.l1_loss(paint["ab"](b), b) + F.l1_loss(paint["ba"](a), a))

    def judges(net, a, b):
        paint, judge = net["paint"], net["judge"]
        return (
            (judge["a"](a) - 1).square().mean()
            + judge["a"](paint["ba"](b).detach()).square().mean()
            + (judge["b"](b) - 1).square().mean()
            + judge["b"](paint["ab"](a).detach()).square().mean()
        )

    sample = picture()
    return Task(
        net,
        lambda g: (*sample(g), *sample(g)),
        artist,
        lambda net, a, _: net["paint"]["ab"](a),
        ADAM,
        phases=[(artist, net["paint"]), (judges, net["judge"])],
        schedule=functools.partial(torch.optim.lr_scheduler.LambdaLR, lr_lambda=lambda step: 1 - step / 4),
    )


class NoiseUNet(nn.Module):
    """Of a noisy image and a time the noise: residual blocks with group norm, attention in the middle."""

    def __init__(self, channels=1, d=8):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 2 * d))
        self.into, self.down, self.middle = nn.Conv2d(channels, d, 3, padding=1), nn.Conv2d(d, 2 * d, 3, 2, 1), nn.Conv2d(2 * d, 2 * d, 3, padding=1)
        self.norm, self.attention = nn.GroupNorm(4, 2 * d), nn.MultiheadAttention(2 * d, 2, batch_first=True)
        self.up, self.out = nn.Conv2d(2 * d, d, 3, padding=1), nn.Conv2d(2 * d, channels, 3, padding=1)

    def forward(self, x, t):
        a = self.into(x)
        b = self.down(F.silu(a))
        b = b + F.silu(self.norm(self.middle(b) + self.time(sinusoids(t, 8))[:, :, None, None]))
        s = b.flatten(2).transpose(1, 2)
        b = b + self.attention(s, s, s, need_weights=False)[0].transpose(1, 2).view_as(b)
        return self.out(torch.cat([a, self.up(F.interpolate(b, scale_factor=2))], 1))


@model("generative")
def ddpm():
    """Denoising diffusion: a U-Net with attention, averaged weights, samples by DDIM's steps."""
    unet = NoiseUNet()
    net = nn.ModuleDict({"net": unet, "average": NoiseUNet().requires_grad_(False)})
    net["average"].load_state_dict(unet.state_dict())
    keep = torch.cumprod(1 - torch.linspace(1e-4, 0.2, 20), 0)

    def loss(net, x):
        t = torch.randint(0, 20, (len(x),), device=x.device)
        a, noise = keep.to(x.device)[t, None, None, None], torch.randn_like(x)
        return F.mse_loss(net["net"](a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)

    def sample(net, x):
        for t in (19, 12, 5):
            noise, a, b = net["average"](x, torch.full((len(x),), t, device=x.device)), keep[t].item(), keep[t - 5].item()
            x = math.sqrt(b) * (x - math.sqrt(1 - a) * noise) / math.sqrt(a) + math.sqrt(1 - b) * noise
        return x

    return Task(net, picture(8), loss, sample, after=lambda net: average_into(net["average"], net["net"], 0.1), clip=1.0)


@model("generative")
def diffusion_transformer():
    """DiT: transformer blocks whose norms are scaled and shifted by time and class, trained without a class now and then."""

    class Block(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(d, elementwise_affine=False), nn.LayerNorm(d, elementwise_affine=False)
            self.qkv, self.out, self.mlp = (
                nn.Linear(d, 3 * d),
                nn.Linear(d, d),
                nn.Sequential(nn.Linear(d, 2 * d), nn.GELU("tanh"), nn.Linear(2 * d, d)),
            )
            self.modulate = nn.Linear(d, 6 * d)

        def forward(self, x, c):
            s1, b1, g1, s2, b2, g2 = self.modulate(F.silu(c)).unsqueeze(1).chunk(6, -1)
            q, k, v = self.qkv(self.norm1(x) * (1 + s1) + b1).unflatten(2, (3, 2, -1)).permute(2, 0, 3, 1, 4)
            x = x + g1 * self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            return x + g2 * self.mlp(self.norm2(x) * (1 + s2) + b2)

    class DiT(nn.Module):
        def __init__(self, d=16):
            super().__init__()
            self.patch, self.label, self.time = nn.Linear(4, d), nn.Embedding(11, d), perceptron(16, d, d, activation=nn.SiLU)
            self.blocks, self.out = nn.ModuleList(Block(d) for _ in range(2)), nn.Linear(d, 4)

        def forward(self, x, t, label):
            x = F.pixel_unshuffle(x, 2).flatten(2).transpose(1, 2)
            c = self.time(sinusoids(t * 1000, 16)) + self.label(label)
            x = self.patch(x)
            for block in self.blocks:
                x = block(x, c)
            return F.pixel_shuffle(self.out(x).transpose(1, 2).unflatten(2, (4, 4)), 2)

    def loss(net, x, label):
        t = torch.sigmoid(torch.randn(len(x), device=x.device))
        noise = torch.randn_like(x)
        label = torch.where(torch.rand(len(x), device=x.device) < 0.1, 10, label)
        s = t[:, None, None, None]
        return F.mse_loss(net((1 - s) * x + s * noise, t, label), noise - x)

    def guided(net, x, label):
        for i in range(2):
            t = x.new_full((len(x),), 1 - i / 2)
            v, free = net(x, t, label), net(x, t, torch.full_like(label, 10))
            x = x - (free + 2 * (v - free)) / 2
        return x

    return Task(DiT(), images(1, 8), loss, guided, functools.partial(torch.optim.AdamW, lr=1e-3, betas=(0.9, 0.95)))


@model("generative")
def flow_matching():
    """Points carried along straight lines; served by Heun's steps."""

    def loss(net, x):
        noise, t = torch.randn_like(x), torch.rand(len(x), 1, device=x.device)
        return F.mse_loss(net(torch.cat([torch.lerp(noise, x, t), t], 1)), x - noise)

    def heun(net, x):
        for i in range(4):
            t = x.new_full((len(x), 1), i / 4)
            a = net(torch.cat([x, t], 1))
            b = net(torch.cat([x + a / 4, t + 0.25], 1))
            x = x + (a + b) / 8
        return x

    return Task(perceptron(3, 32, 32, 2, activation=nn.ELU), point, loss, heun, functools.partial(torch.optim.RAdam, lr=1e-2))


@model("generative")
def consistency():
    """EDM's preconditioning: noise levels by an exponential of normal numbers, weighted losses."""
    net = perceptron(3, 32, 32, 2, activation=nn.SiLU)

    def denoised(net, x, sigma):
        skip, out, into = 0.25 / (sigma**2 + 0.25), sigma * 0.5 / (sigma**2 + 0.25).sqrt(), (sigma**2 + 0.25).rsqrt()
        return skip * x + out * net(torch.cat([into * x, sigma.log() / 4], 1))

    def loss(net, x):
        sigma = torch.exp(1.2 * torch.randn(len(x), 1, device=x.device) - 1.2)
        weight = (sigma**2 + 0.25) / (sigma * 0.5) ** 2
        return (weight * (denoised(net, x + sigma * torch.randn_like(x), sigma) - x).square()).mean()

    return Task(net, point, loss, lambda net, x: denoised(net, x, torch.full_like(x[:, :1], 2.0)), functools.partial(torch.optim.Adadelta, lr=1.0))


@model("generative")
def real_nvp():
    """A flow of affine couplings: the exact likelihood."""

    class Coupling(nn.Module):
        def __init__(self, swap):
            super().__init__()
            self.swap, self.net = swap, perceptron(1, 16, 2, activation=nn.Tanh)

        def forward(self, x, log_det):
            a, b = x.flip(1).chunk(2, 1) if self.swap else x.chunk(2, 1)
            s, t = self.net(a).chunk(2, 1)
            s = s.tanh()
            return torch.cat([a, b * s.exp() + t], 1), log_det + s.squeeze(1)

    layers = nn.ModuleList(Coupling(i % 2) for i in range(4))

    def log_prob(net, x):
        log_det = torch.zeros(len(x), device=x.device)
        for layer in net:
            x, log_det = layer(x, log_det)
        return torch.distributions.Normal(0.0, 1.0).log_prob(x).sum(1) + log_det

    return Task(layers, point, lambda net, x: -log_prob(net, x).mean(), log_prob)


@model("generative")
def glow():
    """A flow with invertible 1 x 1 convolutions, whose log determinant counts (torch.linalg.slogdet)."""

    class Step(nn.Module):
        def __init__(self, d=4):
            super().__init__()
            self.bias, self.scale = nn.Parameter(torch.zeros(1, d)), nn.Parameter(torch.zeros(1, d))
            self.weight, self.net = nn.Parameter(torch.eye(d).roll(1, 0) + 0.1 * torch.randn(d, d)), perceptron(d // 2, 8, d)

        def forward(self, x):
            x = (x + self.bias) * self.scale.exp() @ self.weight.T
            a, b = x.chunk(2, 1)
            s, t = self.net(a).chunk(2, 1)
            s = F.logsigmoid(s + 2)
            return torch.cat([a, b * s.exp() + t], 1), self.scale.sum() + torch.linalg.slogdet(self.weight).logabsdet + s.sum(1)

    def log_prob(net, x):
        total = 0.0
        for step in net:
            x, log_det = step(x)
            total = total + log_det
        return total - 0.5 * x.square().sum(1)

    return Task(nn.ModuleList([Step(), Step()]), lambda g: (torch.randn(4, generator=g),), lambda net, x: -log_prob(net, x).mean(), log_prob)


@model("generative")
def pixel_cnn():
    """Pixels one after another: masked convolutions, a softmax over levels."""

    class Masked(nn.Conv2d):
        def __init__(self, a, b, kernel, centre):
            super().__init__(a, b, kernel, padding=kernel // 2)
            mask = torch.ones(kernel, kernel)
            mask[kernel // 2, kernel // 2 + centre :] = 0
            mask[kernel // 2 + 1 :] = 0
            self.register_buffer("mask", mask)

        def forward(self, x):
            return F.conv2d(x, self.weight * self.mask, self.bias, padding=self.padding)

    net = nn.Sequential(Masked(1, 8, 5, 0), nn.ReLU(), Masked(8, 8, 3, 1), nn.ReLU(), nn.Conv2d(8, 4, 1))
    return Task(
        net,
        lambda g: (torch.randint(0, 4, (1, 8, 8), generator=g),),
        lambda net, x: F.cross_entropy(net(x / 3 - 0.5), x[:, 0]),
        lambda net, x: net(x / 3 - 0.5),
        functools.partial(torch.optim.Rprop, lr=1e-3),
    )


@model("generative")
def score_matching():
    """Sliced score matching: a derivative of the score along random directions."""

    def loss(net, x):
        x = x.requires_grad_()
        v = torch.randn_like(x)
        score = net(x)
        (gradient,) = torch.autograd.grad((score * v).sum(), x, create_graph=True)
        return ((gradient * v).sum(1) + 0.5 * score.square().sum(1)).mean()

    return Task(perceptron(2, 16, 16, 2, activation=nn.Softplus), point, loss)


@model("generative")
def energy_based():
    """An energy, samples by Langevin's steps, contrastive divergence."""
    net = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.SiLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.SiLU(), nn.Flatten(), nn.Linear(72, 1))

    def loss(net, x):
        y = torch.rand_like(x) * 2 - 1
        for _ in range(3):
            y.requires_grad_()
            (gradient,) = torch.autograd.grad(net(y).sum(), y)
            y = (y - gradient.clamp(-0.03, 0.03) * 10 + 0.005 * torch.randn_like(y)).clamp(-1, 1).detach()
        real, fake = net(x), net(y)
        return real.mean() - fake.mean() + 0.1 * (real.square() + fake.square()).mean()

    return Task(net, picture(), loss)


@model("generative")
def neural_spline():
    """Quadratic splines as a flow: softmax widths, cumulative sums, searchsorted."""

    class Spline(nn.Module):
        def __init__(self, bins=6):
            super().__init__()
            self.net = perceptron(1, 16, 2 * bins)

        def forward(self, x):
            a, b = x[:, :1], x[:, 1:].sigmoid()
            widths, heights = (h.softmax(1) for h in self.net(a).chunk(2, 1))
            left, below = F.pad(widths.cumsum(1), (1, 0)), F.pad(heights.cumsum(1), (1, 0))
            i = (torch.searchsorted(left.detach().contiguous(), b) - 1).clamp(0, widths.shape[1] - 1)
            slope = heights.gather(1, i) / widths.gather(1, i)
            y = below.gather(1, i) + (b - left.gather(1, i)) * slope
            return y, (slope.log() + b.log() + (1 - b).log()).squeeze(1)

    def loss(net, x):
        y, log_det = net(x)
        two = x.new_tensor(2.0)
        return -(log_det + torch.distributions.Beta(two, two).log_prob(y.squeeze(1).clamp(1e-4, 1 - 1e-4))).mean()

    return Task(Spline(), point, loss, lambda net, x: net(x))
