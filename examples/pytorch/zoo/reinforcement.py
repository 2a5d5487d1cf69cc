"""Learning by reward: values, policies, models of the world. A sample is what an agent has seen."""

import copy
import functools

import torch
from torch import nn
from torch.nn import functional as F

from zoo import Task, average_into, model, perceptron

STATE, ACTIONS = 4, 3


def transition(g):
    """State, action, reward, next state, whether it ended."""
    return (
        torch.randn(STATE, generator=g),
        torch.randint(0, ACTIONS, (), generator=g),
        torch.rand((), generator=g),
        torch.randn(STATE, generator=g),
        torch.randint(0, 2, (), generator=g).float(),
    )


def continuous(g):
    s, _, r, s2, done = transition(g)
    return s, torch.rand(2, generator=g) * 2 - 1, r, s2, done


def episode(g):
    """States, actions, rewards of eight steps."""
    return torch.randn(8, STATE, generator=g), torch.randint(0, ACTIONS, (8,), generator=g), torch.rand(8, generator=g)


def with_target(**parts):
    """Networks and slow copies of them, named as they are and "target"."""
    return nn.ModuleDict({**parts, **{name + "_target": copy.deepcopy(part).requires_grad_(False) for name, part in parts.items()}})


def follow(net, rate=0.05):
    for name in net:
        if name.endswith("_target"):
            average_into(net[name], net[name.removesuffix("_target")], rate)


@model("reinforcement")
def dqn():
    """Double Q-learning with a dueling network and a slow target."""

    class Dueling(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.value, self.advantage = perceptron(STATE, 16, 16), nn.Linear(16, 1), nn.Linear(16, ACTIONS)

        def forward(self, s):
            h = F.relu(self.body(s))
            a = self.advantage(h)
            return self.value(h) + a - a.mean(1, keepdim=True)

    def loss(net, s, a, r, s2, done):
        with torch.no_grad():
            best = net["q"](s2).argmax(1, keepdim=True)
            target = r + 0.99 * (1 - done) * net["q_target"](s2).gather(1, best).squeeze(1)
        return F.smooth_l1_loss(net["q"](s).gather(1, a.unsqueeze(1)).squeeze(1), target)

    return Task(
        with_target(q=Dueling()),
        transition,
        loss,
        lambda net, s, *_: net["q"](s).max(1),
        functools.partial(torch.optim.AdamW, lr=1e-4, amsgrad=True),
        after=follow,
        clip=100.0,
    )


@model("reinforcement")
def distributional_q():
    """C51: the distribution of what is to come, projected onto its atoms."""
    atoms = torch.linspace(-2, 2, 11)

    def loss(net, s, a, r, s2, done):
        z = atoms.to(s.device)
        with torch.no_grad():
            p = net["q_target"](s2).unflatten(1, (ACTIONS, 11)).softmax(2)
            best = (p * z).sum(2).argmax(1)
            p = p[torch.arange(len(s)), best]
            b = ((r.unsqueeze(1) + 0.9 * (1 - done).unsqueeze(1) * z).clamp(-2, 2) + 2) / 0.4
            lower, upper = b.floor().long(), b.ceil().long()
            m = torch.zeros_like(p)
            m.scatter_add_(1, lower, p * (upper + (lower == upper) - b))
            m.scatter_add_(1, upper, p * (b - lower))
        logp = net["q"](s).unflatten(1, (ACTIONS, 11)).log_softmax(2)[torch.arange(len(s)), a]
        return -(m * logp).sum(1).mean()

    return Task(
        with_target(q=perceptron(STATE, 16, ACTIONS * 11)),
        transition,
        loss,
        lambda net, s, *_: net["q"](s),
        functools.partial(torch.optim.Adam, lr=1e-3, eps=1e-4),
        after=follow,
    )


@model("reinforcement")
def quantile_q():
    """Implicit quantiles: cosines of drawn fractions, the quantile Huber loss."""

    class IQN(nn.Module):
        def __init__(self):
            super().__init__()
            self.state, self.fraction, self.out = nn.Linear(STATE, 16), nn.Linear(8, 16), nn.Linear(16, ACTIONS)

        def forward(self, s, tau):
            cosines = torch.cos(torch.pi * torch.arange(8, device=s.device) * tau.unsqueeze(2))
            return self.out(F.relu(self.state(s)).unsqueeze(1) * F.relu(self.fraction(cosines)))

    def loss(net, s, a, r, s2, done):
        tau = torch.rand(len(s), 5, device=s.device)
        with torch.no_grad():
            after = net["q_target"](s2, torch.rand(len(s), 5, device=s.device))
            best = after.mean(1).argmax(1)
            target = r.unsqueeze(1) + 0.99 * (1 - done).unsqueeze(1) * after[torch.arange(len(s)), :, best]
        found = net["q"](s, tau)[torch.arange(len(s)), :, a]
        error = target.unsqueeze(1) - found.unsqueeze(2)
        huber = F.huber_loss(found.unsqueeze(2).expand_as(error), target.unsqueeze(1).expand_as(error), reduction="none")
        return ((tau.unsqueeze(2) - (error.detach() < 0).float()).abs() * huber).mean()

    return Task(
        with_target(q=IQN()),
        transition,
        loss,
        lambda net, s, *_: net["q"](s, torch.linspace(0.1, 0.9, 5, device=s.device).expand(len(s), -1)).mean(1),
        after=follow,
    )


def returns(r, discount=0.9):
    """Of each step, what is still to come."""
    total, found = torch.zeros_like(r[:, 0]), []
    for reward in reversed(r.unbind(1)):
        total = reward + discount * total
        found.append(total)
    return torch.stack(found[::-1], 1)


@model("reinforcement")
def reinforce():
    """Policy gradients (PyTorch's example): normalised returns, torch.distributions.Categorical."""

    def loss(net, s, a, r):
        g = returns(r)
        g = (g - g.mean(1, keepdim=True)) / (g.std(1, keepdim=True) + 1e-6)
        return -(torch.distributions.Categorical(net(s).softmax(-1)).log_prob(a) * g).sum(1).mean()

    net = nn.Sequential(nn.Linear(STATE, 16), nn.Dropout(0.6), nn.ReLU(), nn.Linear(16, ACTIONS))
    return Task(net, episode, loss, optimizer=functools.partial(torch.optim.Adam, lr=1e-2))


class ActorCritic(nn.Module):
    def __init__(self, actions=ACTIONS):
        super().__init__()
        self.body, self.actor, self.critic = perceptron(STATE, 16, 16, activation=nn.Tanh), nn.Linear(16, actions), nn.Linear(16, 1)
        for layer in (self.body[0], self.body[2]):
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="tanh")

    def forward(self, s):
        h = self.body(s).tanh()
        return self.actor(h), self.critic(h).squeeze(-1)


@model("reinforcement")
def advantage_actor_critic():
    """A2C: entropy keeps it curious."""

    def loss(net, s, a, r):
        logits, value = net(s)
        policy = torch.distributions.Categorical(logits=logits)
        advantage = returns(r) - value
        return -(policy.log_prob(a) * advantage.detach()).mean() + 0.5 * advantage.square().mean() - 0.01 * policy.entropy().mean()

    return Task(ActorCritic(), episode, loss, optimizer=functools.partial(torch.optim.RMSprop, lr=7e-4, eps=1e-5), clip=0.5)


@model("reinforcement")
def ppo():
    """Proximal policy optimisation of continuous actions: generalised advantages, clipped ratios, weights that begin orthogonal."""

    class Policy(ActorCritic):
        def __init__(self):
            super().__init__(2)
            self.log_std = nn.Parameter(torch.zeros(2))
            nn.init.orthogonal_(self.actor.weight, 0.01)

    def loss(net, s, a, r, old):
        mean, value = net(s)
        with torch.no_grad():
            delta, advantage, steps = r + 0.99 * F.pad(value, (0, 1))[:, 1:] - value, torch.zeros_like(r[:, 0]), []
            for d in reversed(delta.unbind(1)):
                advantage = d + 0.95 * 0.99 * advantage
                steps.append(advantage)
            advantage = torch.stack(steps[::-1], 1)
            target = advantage + value
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        policy = torch.distributions.Normal(mean, net.log_std.exp())
        ratio = (policy.log_prob(a).sum(-1) - old).exp()
        clipped = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        return -clipped.mean() + 0.5 * F.mse_loss(value, target) - 0.01 * policy.entropy().sum(-1).mean()

    def sample(g):
        return torch.randn(8, STATE, generator=g), torch.randn(8, 2, generator=g), torch.rand(8, generator=g), torch.randn(8, generator=g) - 2

    return Task(
        Policy(),
        sample,
        loss,
        optimizer=functools.partial(torch.optim.Adam, lr=3e-4, eps=1e-5),
        clip=0.5,
        schedule=functools.partial(torch.optim.lr_scheduler.LinearLR, start_factor=1.0, end_factor=0.0, total_iters=4),
    )


@model("reinforcement")
def td3():
    """Twin critics, noise on the target's actions."""
    net = with_target(actor=nn.Sequential(perceptron(STATE, 16, 2), nn.Tanh()), q1=perceptron(STATE + 2, 16, 1), q2=perceptron(STATE + 2, 16, 1))

    def critics(net, s, a, r, s2, done):
        with torch.no_grad():
            noise = (torch.randn_like(a) * 0.2).clamp(-0.5, 0.5)
            x2 = torch.cat([s2, (net["actor_target"](s2) + noise).clamp(-1, 1)], 1)
            target = r + 0.99 * (1 - done) * torch.min(net["q1_target"](x2), net["q2_target"](x2)).squeeze(1)
        x = torch.cat([s, a], 1)
        return F.mse_loss(net["q1"](x).squeeze(1), target) + F.mse_loss(net["q2"](x).squeeze(1), target)

    both = nn.ModuleList([net["q1"], net["q2"]])
    return Task(
        net,
        continuous,
        critics,
        lambda net, s, *_: net["actor"](s),
        functools.partial(torch.optim.Adam, lr=1e-3),
        after=follow,
        phases=[(critics, both), (lambda net, s, *_: -net["q1"](torch.cat([s, net["actor"](s)], 1)).mean(), net["actor"])],
    )


@model("reinforcement")
def soft_actor_critic():
    """SAC: tanh of a normal number, its exact density, a temperature that is learnt."""
    net = with_target(q=perceptron(STATE + 2, 16, 2))
    net["actor"] = perceptron(STATE, 16, 4)
    net["temperature"] = nn.ParameterDict({"log_alpha": nn.Parameter(torch.zeros(()))})

    def act(net, s):
        mean, log_std = net["actor"](s).chunk(2, 1)
        policy = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        u = policy.rsample()
        return u.tanh(), (policy.log_prob(u) - 2 * (0.6931471805599453 - u - F.softplus(-2 * u))).sum(1)

    def critic(net, s, a, r, s2, done):
        with torch.no_grad():
            a2, logp = act(net, s2)
            target = r + 0.99 * (1 - done) * (net["q_target"](torch.cat([s2, a2], 1)).min(1).values - net["temperature"]["log_alpha"].exp() * logp)
        return F.mse_loss(net["q"](torch.cat([s, a], 1)), target.unsqueeze(1).expand(-1, 2))

    def actor(net, s, *_):
        a, logp = act(net, s)
        return (net["temperature"]["log_alpha"].exp().detach() * logp - net["q"](torch.cat([s, a], 1)).amin(1)).mean()

    def temperature(net, s, *_):
        with torch.no_grad():
            _, logp = act(net, s)
        return -(net["temperature"]["log_alpha"] * (logp - 2)).mean()

    return Task(
        net,
        continuous,
        critic,
        lambda net, s, *_: net["actor"](s)[:, :2].tanh(),
        functools.partial(torch.optim.Adam, lr=3e-3),
        after=follow,
        phases=[(critic, net["q"]), (actor, net["actor"]), (temperature, net["temperature"])],
    )


@model("reinforcement")
def conservative_q():
    """Learning from what others did: conservative values (CQL), expectiles (IQL)."""
    net = nn.ModuleDict({"q": perceptron(STATE, 16, ACTIONS), "v": perceptron(STATE, 16, 1)})

    def loss(net, s, a, r, s2, done):
        q, v = net["q"](s), net["v"](s).squeeze(1)
        chosen = q.gather(1, a.unsqueeze(1)).squeeze(1)
        target = r + 0.99 * (1 - done) * net["v"](s2).squeeze(1).detach()
        error = chosen.detach() - v
        expectile = torch.where(error > 0, 0.7, 0.3) * error.square()
        return F.mse_loss(chosen, target) + expectile.mean() + (q.logsumexp(1) - chosen).mean()

    return Task(net, transition, loss, lambda net, s, *_: net["q"](s), functools.partial(torch.optim.Adamax, lr=1e-3))


@model("reinforcement")
def decision_transformer():
    """Returns, states and actions as one sequence, actions foretold."""

    class DT(nn.Module):
        def __init__(self, d=12):
            super().__init__()
            self.r, self.s, self.a, self.time = nn.Linear(1, d), nn.Linear(STATE, d), nn.Embedding(ACTIONS, d), nn.Embedding(8, d)
            self.block, self.out = nn.TransformerEncoderLayer(d, 2, 24, 0.1, batch_first=True, norm_first=True), nn.Linear(d, ACTIONS)

        def forward(self, s, a, r):
            time = self.time(torch.arange(8, device=s.device))
            parts = torch.stack([self.r(returns(r, 1.0).unsqueeze(2)) + time, self.s(s) + time, self.a(a) + time], 2).flatten(1, 2)
            mask = nn.Transformer.generate_square_subsequent_mask(24, device=s.device)
            return self.out(self.block(parts, src_mask=mask, is_causal=True)[:, 1::3])

    return Task(DT(), episode, lambda net, s, a, r: F.cross_entropy(net(s, a, r).flatten(0, 1), a.flatten()), lambda net, s, a, r: net(s, a, r))


@model("reinforcement")
def alpha_zero():
    """Policy and value of a board, residual blocks; targets from a search."""

    class Board(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.stem, self.block = (
                nn.Sequential(nn.Conv2d(2, d, 3, padding=1, bias=False), nn.BatchNorm2d(d)),
                nn.Sequential(nn.Conv2d(d, d, 3, padding=1, bias=False), nn.BatchNorm2d(d)),
            )
            self.policy, self.value = (
                nn.Sequential(nn.Conv2d(d, 1, 1), nn.Flatten()),
                nn.Sequential(nn.Conv2d(d, 1, 1), nn.Flatten(), nn.Linear(25, 8), nn.ReLU(), nn.Linear(8, 1), nn.Tanh()),
            )

        def forward(self, x):
            x = F.relu(self.stem(x))
            x = F.relu(x + self.block(x))
            return self.policy(x), self.value(x).squeeze(1)

    def loss(net, x, visits, won):
        p, v = net(x)
        return F.cross_entropy(p, visits) + F.mse_loss(v, won)

    def sample(g):
        return (
            torch.randint(0, 2, (2, 5, 5), generator=g).float(),
            torch.rand(25, generator=g).softmax(0),
            torch.randint(-1, 2, (), generator=g).float(),
        )

    return Task(Board(), sample, loss, optimizer=functools.partial(torch.optim.SGD, lr=0.02, momentum=0.9, weight_decay=1e-4))


@model("reinforcement")
def world_model():
    """Dreamer's latent states: a recurrent cell, categories drawn with straight-through gradients, balanced divergences."""

    class RSSM(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.cell, self.prior, self.posterior = nn.GRUCell(16 + ACTIONS, d), nn.Linear(d, 16), nn.Linear(d + STATE, 16)
            self.decode, self.reward = perceptron(d + 16, 16, STATE, activation=nn.ELU), nn.Linear(d + 16, 1)

        def forward(self, s, a):
            h, z, found = s.new_zeros(len(s), 8), s.new_zeros(len(s), 16), []
            for state, action in zip(s.unbind(1), F.one_hot(a, ACTIONS).float().unbind(1)):
                h = self.cell(torch.cat([z, action], 1), h)
                prior, logits = self.prior(h).view(-1, 4, 4), self.posterior(torch.cat([h, state], 1)).view(-1, 4, 4)
                p = 0.99 * logits.softmax(-1) + 0.01 / 4
                if self.training:
                    hard = torch.distributions.OneHotCategorical(probs=p).sample()
                else:
                    hard = F.one_hot(p.argmax(-1), 4).float()
                z = (hard + p - p.detach()).flatten(1)
                both = torch.cat([h, z], 1)
                found.append((self.decode(both), self.reward(both).squeeze(1), prior, logits))
            return [torch.stack(parts, 1) for parts in zip(*found)]

    def divergence(a, b):
        a, b = a.log_softmax(-1), b.log_softmax(-1)
        return (a.exp() * (a - b)).sum((-1, -2)).clamp(min=0.1).mean()

    def loss(net, s, a, r):
        states, rewards, prior, posterior = net(s, a)
        symlog = r.sign() * torch.log1p(r.abs())
        kl = 0.5 * divergence(posterior.detach(), prior) + 0.1 * divergence(posterior, prior.detach())
        return F.mse_loss(states, s) + F.mse_loss(rewards, symlog) + kl

    return Task(RSSM(), episode, loss, lambda net, s, a, r: net(s, a)[:2], functools.partial(torch.optim.Adam, lr=1e-3, eps=1e-8), clip=100.0)


@model("reinforcement")
def curiosity():
    """Random network distillation: surprise is the error of foretelling a fixed network, of states scaled by running moments."""

    class RND(nn.Module):
        def __init__(self):
            super().__init__()
            self.fixed, self.learnt = perceptron(STATE, 16, 8).requires_grad_(False), perceptron(STATE, 16, 8)
            self.register_buffer("mean", torch.zeros(STATE))
            self.register_buffer("var", torch.ones(STATE))

        def forward(self, s):
            if self.training:
                with torch.no_grad():
                    var, mean = torch.var_mean(s, 0, correction=0)
                    self.mean.lerp_(mean, 0.1)
                    self.var.lerp_(var, 0.1)
            x = ((s - self.mean) / (self.var + 1e-8).sqrt()).clamp(-5, 5)
            return (self.learnt(x) - self.fixed(x)).square().mean(-1)

    return Task(RND(), transition, lambda net, s, *_: net(s).mean(), optimizer=functools.partial(torch.optim.Adam, lr=1e-3))
