"""Images and volumes: classification, segmentation, detection, learning without labels."""

import functools

import torch
from torch import nn
from torch.nn import functional as F

from zoo import Task, average_into, classify, images, model, perceptron

SGD = functools.partial(torch.optim.SGD, lr=0.05, momentum=0.9, weight_decay=5e-4)


def conv(a, b, kernel=3, stride=1, groups=1, activation=nn.ReLU):
    return nn.Sequential(nn.Conv2d(a, b, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(b), activation())


def pooled(*layers, features, classes=10):
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(features, classes))


@model("vision")
def lenet():
    """LeNet-5."""
    net = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 9, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )
    return Task(
        net,
        images(1, 20),
        classify,
        optimizer=functools.partial(torch.optim.SGD, lr=0.1),
        schedule=functools.partial(torch.optim.lr_scheduler.ExponentialLR, gamma=0.9),
    )


@model("vision")
def vgg():
    """VGG with batch norm and dropout."""
    layers = [conv(3, 8), conv(8, 8), nn.MaxPool2d(2), conv(8, 16), conv(16, 16), nn.MaxPool2d(2), nn.Flatten()]
    net = nn.Sequential(*layers, nn.Linear(16 * 16, 32), nn.ReLU(True), nn.Dropout(0.5), nn.Linear(32, 10))
    return Task(net, images(3, 16), classify, optimizer=SGD, schedule=functools.partial(torch.optim.lr_scheduler.StepLR, step_size=2))


class Residual(nn.Module):
    def __init__(self, body, shortcut=None):
        super().__init__()
        self.body, self.shortcut = body, shortcut or nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


def residual(a, b, stride=1, groups=1):
    body = nn.Sequential(conv(a, b, 3, stride, groups), nn.Conv2d(b, b, 3, 1, 1, groups=groups, bias=False), nn.BatchNorm2d(b))
    shortcut = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b)) if stride != 1 or a != b else None
    return Residual(body, shortcut)


@model("vision")
def resnet():
    """ResNet of three basic blocks."""
    net = pooled(conv(3, 8), residual(8, 8), residual(8, 16, 2), residual(16, 32, 2), features=32)
    return Task(
        net,
        images(3, 16),
        classify,
        optimizer=functools.partial(SGD, nesterov=True),
        schedule=functools.partial(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=3),
    )


@model("vision")
def resnext():
    """ResNeXt: grouped convolutions."""
    net = pooled(conv(3, 16), residual(16, 16, groups=4), residual(16, 32, 2, groups=4), features=32)
    return Task(net, images(3, 16), classify, optimizer=functools.partial(torch.optim.RMSprop, lr=1e-3, momentum=0.9))


@model("vision")
def densenet():
    """DenseNet: each layer sees all before it."""

    class Dense(nn.Module):
        def __init__(self, channels, growth, depth):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Sequential(nn.BatchNorm2d(channels + i * growth), nn.ReLU(), nn.Conv2d(channels + i * growth, growth, 3, padding=1, bias=False))
                for i in range(depth)
            )

        def forward(self, x):
            for layer in self.layers:
                x = torch.cat([x, layer(x)], 1)
            return x

    net = pooled(nn.Conv2d(3, 8, 3, padding=1), Dense(8, 4, 3), conv(20, 10, 1), nn.AvgPool2d(2), Dense(10, 4, 3), features=22)
    return Task(net, images(3, 16), classify, optimizer=SGD)


class SqueezeExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.layers = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, channels // 4, 1), nn.SiLU(), nn.Conv2d(channels // 4, channels, 1), nn.Sigmoid()
        )

    def forward(self, x):
        return x * self.layers(x)


class StochasticDepth(nn.Module):
    def __init__(self, body, keep):
        super().__init__()
        self.body, self.keep = body, keep

    def forward(self, x):
        y = self.body(x)
        if self.training:
            y = y * torch.empty(len(x), 1, 1, 1, device=x.device).bernoulli_(self.keep) / self.keep
        return x + y


@model("vision")
def efficientnet():
    """EfficientNet's blocks: depthwise, squeeze and excitation, stochastic depth."""

    def block(c, keep):
        return StochasticDepth(
            nn.Sequential(
                conv(c, 4 * c, 1, activation=nn.SiLU),
                conv(4 * c, 4 * c, 3, groups=4 * c, activation=nn.SiLU),
                SqueezeExcite(4 * c),
                nn.Conv2d(4 * c, c, 1, bias=False),
                nn.BatchNorm2d(c),
            ),
            keep,
        )

    net = pooled(conv(3, 8, stride=2, activation=nn.SiLU), block(8, 0.9), block(8, 0.8), conv(8, 32, 1, activation=nn.SiLU), features=32)
    return Task(net, images(3, 16), classify, optimizer=functools.partial(torch.optim.RMSprop, lr=1e-3, alpha=0.9, momentum=0.9, eps=1e-3))


@model("vision")
def mobilenet():
    """MobileNet V3's blocks: depthwise separable, hard swish."""

    def separable(a, b, stride):
        return nn.Sequential(conv(a, a, 3, stride, groups=a, activation=nn.Hardswish), conv(a, b, 1, activation=nn.Hardswish))

    net = pooled(conv(3, 8, activation=nn.Hardswish), separable(8, 16, 2), separable(16, 24, 2), nn.Dropout2d(0.1), features=24)
    return Task(net, images(3, 16), classify, optimizer=functools.partial(torch.optim.NAdam, lr=2e-3))


class UNet(nn.Module):
    """Down and up again, with what was seen on the way down beside it; `up(a, b)` doubles the size."""

    def __init__(self, up, classes=3):
        super().__init__()
        self.down1, self.down2, self.middle = self.double(3, 8), self.double(8, 16), self.double(16, 32)
        self.up2, self.right2 = up(32, 16), self.double(32, 16)
        self.up1, self.right1 = up(16, 8), self.double(16, 8)
        self.out = nn.Conv2d(8, classes, 1)

    def double(self, a, b):
        return nn.Sequential(conv(a, b), conv(b, b))

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.middle(F.max_pool2d(b, 2))
        b = self.right2(torch.cat([b, self.up2(c)], 1))
        return self.out(self.right1(torch.cat([a, self.up1(b)], 1)))


def segments(g):
    """An image, and a class for each pixel."""
    x = torch.rand(3, 16, 16, generator=g)
    return x, x.argmax(0)


def dice(logits, target):
    p, t = logits.softmax(1), F.one_hot(target, logits.shape[1]).movedim(-1, 1)
    return 1 - (2 * (p * t).sum((2, 3)) + 1).div((p + t).sum((2, 3)) + 1).mean()


def segment(net, x, target):
    logits = net(x)
    return F.cross_entropy(logits, target) + dice(logits, target)


@model("vision")
def unet_transposed():
    """U-Net, up by transposed convolutions; cross entropy and Dice loss."""
    return Task(
        UNet(lambda a, b: nn.ConvTranspose2d(a, b, 2, 2)), segments, segment, optimizer=functools.partial(torch.optim.Adam, lr=1e-3, amsgrad=True)
    )


@model("vision")
def unet_bilinear():
    """U-Net, up by bilinear interpolation."""

    def up(a, b):
        return nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(a, b, 1))

    return Task(UNet(up), segments, segment)


@model("vision")
def segnet():
    """SegNet: up by the places of max pooling."""

    class SegNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.up, self.out = conv(3, 8), conv(8, 8), nn.Conv2d(8, 3, 3, padding=1)

        def forward(self, x):
            y, places = F.max_pool2d(self.down(x), 2, return_indices=True)
            return self.out(F.max_unpool2d(self.up(y), places, 2))

    return Task(SegNet(), segments, lambda net, x, t: F.cross_entropy(net(x), t, ignore_index=2))


@model("vision")
def deeplab():
    """DeepLab: dilated convolutions at several rates, logits enlarged to the image."""

    class Atrous(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = conv(3, 8, stride=2)
            self.branches = nn.ModuleList([nn.Conv2d(8, 8, 1)] + [nn.Conv2d(8, 8, 3, padding=d, dilation=d) for d in (2, 3)])
            self.out = nn.Conv2d(24, 3, 1)

        def forward(self, x):
            y = self.stem(x)
            y = self.out(torch.cat([F.relu(branch(y)) for branch in self.branches], 1))
            return F.interpolate(y, x.shape[-2:], mode="bilinear", align_corners=False)

    return Task(Atrous(), segments, lambda net, x, t: F.cross_entropy(net(x), t))


class Pyramid(nn.Module):
    """A feature pyramid and a head for classes and boxes on each level."""

    def __init__(self, classes=3):
        super().__init__()
        self.c1, self.c2 = conv(3, 8, stride=2), conv(8, 16, stride=2)
        self.lateral1, self.lateral2 = nn.Conv2d(8, 8, 1), nn.Conv2d(16, 8, 1)
        self.head = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv2d(8, classes + 4, 3, padding=1))

    def forward(self, x):
        a = self.c1(x)
        b = self.c2(a)
        b = self.lateral2(b)
        a = self.lateral1(a) + F.interpolate(b, scale_factor=2, mode="nearest")
        return torch.cat([self.head(level).flatten(2) for level in (a, b)], 2).transpose(1, 2)


def focal(logits, target, alpha=0.25, gamma=2):
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = torch.exp(-ce)
    return (alpha * (1 - p) ** gamma * ce).mean()


@model("vision")
def detector():
    """A one-stage detector: feature pyramid, focal loss, smooth L1 of boxes."""

    def sample(g):
        return torch.rand(3, 16, 16, generator=g), torch.randint(0, 2, (80, 3), generator=g).float(), torch.rand(80, 4, generator=g)

    def loss(net, x, classes, boxes):
        out = net(x)
        return focal(out[..., :3], classes) + F.smooth_l1_loss(out[..., 3:], boxes, beta=0.1)

    return Task(Pyramid(), sample, loss, optimizer=SGD, clip=10.0)


@model("vision")
def yolo():
    """A grid of boxes, each with an objectness: generalised IoU of boxes as a loss."""
    net = nn.Sequential(conv(3, 8, stride=2, activation=nn.LeakyReLU), conv(8, 16, stride=2, activation=nn.LeakyReLU), nn.Conv2d(16, 5, 1))

    def corners(t):
        center, size = t[:, :2].sigmoid(), t[:, 2:4].sigmoid()
        return center - size / 2, center + size / 2

    def loss(net, x, target):
        out = net(x)
        (a0, a1), (b0, b1) = corners(out), corners(target)
        inner = (torch.minimum(a1, b1) - torch.maximum(a0, b0)).clamp(min=0).prod(1)
        union = (a1 - a0).prod(1) + (b1 - b0).prod(1) - inner
        hull = (torch.maximum(a1, b1) - torch.minimum(a0, b0)).prod(1)
        giou = inner / union - (hull - union) / hull
        return (1 - giou).mean() + F.binary_cross_entropy_with_logits(out[:, 4], giou.detach().clamp(0, 1))

    return Task(net, lambda g: (torch.rand(3, 16, 16, generator=g), torch.randn(4, 4, 4, generator=g)), loss)


@model("vision")
def spatial_transformer():
    """A network that learns to straighten its image first (PyTorch's tutorial)."""

    class Straighten(nn.Module):
        def __init__(self):
            super().__init__()
            self.where = nn.Sequential(nn.Conv2d(1, 4, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 6))
            self.where[-1].weight.data.zero_()
            self.where[-1].bias.data.copy_(torch.tensor([1.0, 0, 0, 0, 1, 0]))
            self.what = pooled(conv(1, 8), features=8)

        def forward(self, x):
            grid = F.affine_grid(self.where(x).view(-1, 2, 3), list(x.shape), align_corners=False)
            return self.what(F.grid_sample(x, grid, align_corners=False))

    return Task(Straighten(), images(1, 16), classify)


@model("vision")
def vit():
    """A vision transformer, attention written out."""

    class Block(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.out, self.mlp = nn.Linear(d, 3 * d), nn.Linear(d, d), perceptron(d, 2 * d, d, activation=nn.GELU)

        def forward(self, x):
            q, k, v = self.qkv(self.norm1(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            weights = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1)
            x = x + self.out((weights @ v).transpose(1, 2).flatten(2))
            return x + self.mlp(self.norm2(x))

    class ViT(nn.Module):
        def __init__(self, d=24):
            super().__init__()
            self.patches = nn.Conv2d(3, d, 4, 4)
            self.cls, self.positions = nn.Parameter(torch.zeros(1, 1, d)), nn.Parameter(torch.randn(1, 17, d) * 0.02)
            self.blocks, self.norm, self.head = nn.Sequential(Block(d, 3), Block(d, 3)), nn.LayerNorm(d), nn.Linear(d, 10)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.positions
            return self.head(self.norm(self.blocks(x))[:, 0])

    def mixup(net, x, label):
        weight = torch.distributions.Uniform(0.0, 1.0).sample().item()
        order = torch.randperm(len(x), device=x.device)
        logits = net(weight * x + (1 - weight) * x[order])
        return weight * F.cross_entropy(logits, label, label_smoothing=0.1) + (1 - weight) * F.cross_entropy(
            logits, label[order], label_smoothing=0.1
        )

    return Task(ViT(), images(3, 16), mixup, clip=1.0, schedule=functools.partial(torch.optim.lr_scheduler.OneCycleLR, max_lr=1e-3, total_steps=4))


@model("vision")
def mlp_mixer():
    """MLP-Mixer."""

    class Mixer(nn.Module):
        def __init__(self, d=16, patches=16):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.across, self.along = perceptron(patches, 32, patches, activation=nn.GELU), perceptron(d, 32, d, activation=nn.GELU)

        def forward(self, x):
            x = x + self.across(self.norm1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.along(self.norm2(x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches, self.mix, self.head = nn.Conv2d(3, 16, 4, 4), nn.Sequential(Mixer(), Mixer()), nn.Linear(16, 10)

        def forward(self, x):
            return self.head(self.mix(self.patches(x).flatten(2).transpose(1, 2)).mean(1))

    return Task(Net(), images(3, 16), classify, optimizer=functools.partial(torch.optim.Adam, lr=1e-3, weight_decay=1e-4))


@model("vision")
def super_resolution():
    """Sub-pixel convolution (PyTorch's example): pixels are shuffled into a greater image."""
    net = nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.Conv2d(16, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1), nn.PixelShuffle(2)
    )

    def sample(g):
        x = torch.rand(1, 16, 16, generator=g)
        return F.avg_pool2d(x, 2), x

    return Task(net, sample, lambda net, small, x: F.l1_loss(net(small), x), optimizer=functools.partial(torch.optim.Adam, lr=1e-3))


@model("vision")
def style_transfer():
    """Fast neural style: reflected borders, instance norm, Gram matrices, total variation."""

    def layer(a, b, stride=1):
        return nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(a, b, 3, stride), nn.InstanceNorm2d(b, affine=True), nn.ReLU())

    net = nn.ModuleDict(
        {
            "paint": nn.Sequential(layer(3, 8), layer(8, 16, 2), nn.Upsample(scale_factor=2, mode="nearest"), layer(16, 8), nn.Conv2d(8, 3, 1)),
            "see": nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)),
        }
    )
    net["see"].requires_grad_(False)

    def gram(f):
        f = f.flatten(2)
        return f @ f.transpose(1, 2) / (f.shape[1] * f.shape[2])

    def loss(net, x, style):
        y = net["paint"](x)
        f, g = net["see"](y), net["see"](style)
        variation = (y[..., 1:] - y[..., :-1]).abs().mean() + (y[..., 1:, :] - y[..., :-1, :]).abs().mean()
        return F.mse_loss(f, net["see"](x)) + 10 * F.mse_loss(gram(f), gram(g)) + 0.01 * variation

    return Task(
        net,
        lambda g: (torch.rand(3, 16, 16, generator=g), torch.rand(3, 16, 16, generator=g)),
        loss,
        lambda net, x, _: net["paint"](x),
        optimizer=functools.partial(torch.optim.Adamax, lr=2e-3),
    )


@model("vision")
def siamese():
    """Two images, one network: a contrastive loss of distances."""
    net = pooled(conv(1, 8), nn.MaxPool2d(2), conv(8, 16), features=16, classes=8)

    def loss(net, x1, x2, same):
        d = F.pairwise_distance(net(x1), net(x2))
        return (same * d.square() + (1 - same) * F.relu(1 - d).square()).mean()

    def sample(g):
        return torch.rand(1, 16, 16, generator=g), torch.rand(1, 16, 16, generator=g), torch.randint(0, 2, (), generator=g).float()

    return Task(net, sample, loss, optimizer=functools.partial(torch.optim.Adagrad, lr=0.01))


@model("vision")
def face_triplets():
    """Unit embeddings learnt by triplets (FaceNet)."""

    class Unit(nn.Module):
        def forward(self, x):
            return F.normalize(x, dim=1)

    net = nn.Sequential(pooled(conv(3, 8, activation=nn.PReLU), conv(8, 16, stride=2, activation=nn.PReLU), features=16, classes=8), Unit())
    return Task(
        net, lambda g: tuple(torch.rand(3, 3, 12, 12, generator=g)), lambda net, a, p, n: F.triplet_margin_loss(net(a), net(p), net(n), margin=0.2)
    )


@model("vision")
def simclr():
    """Two views of an image attract each other, all others repel (NT-Xent)."""
    net = pooled(conv(3, 8), conv(8, 16, stride=2), features=16, classes=8)

    def loss(net, a, b):
        z = F.normalize(net(torch.cat([a, b])), dim=1)
        similar = z @ z.T / 0.5
        similar = similar.masked_fill(torch.eye(len(z), dtype=torch.bool, device=z.device), float("-inf"))
        return F.cross_entropy(similar, torch.arange(len(z), device=z.device).roll(len(a)))

    def sample(g):
        x = torch.rand(3, 12, 12, generator=g)
        return x.flip(-1), x + 0.1 * torch.randn(3, 12, 12, generator=g)

    return Task(net, sample, loss, lambda net, a, _: net(a), schedule=functools.partial(torch.optim.lr_scheduler.CosineAnnealingWarmRestarts, T_0=2))


@model("vision")
def byol():
    """A student predicts the embedding of its own moving average."""
    student = nn.Sequential(pooled(conv(3, 8), conv(8, 16, stride=2), features=16, classes=16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8))
    teacher = nn.Sequential(pooled(conv(3, 8), conv(8, 16, stride=2), features=16, classes=16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8))
    teacher.load_state_dict(student.state_dict())
    teacher.requires_grad_(False)
    net = nn.ModuleDict({"student": student, "teacher": teacher, "predict": perceptron(8, 16, 8)})

    def loss(net, a, b):
        return 2 - 2 * F.cosine_similarity(net["predict"](net["student"](a)), net["teacher"](b)).mean()

    def sample(g):
        x = torch.rand(3, 12, 12, generator=g)
        return x, x.roll(1, -1)

    return Task(
        net,
        sample,
        loss,
        lambda net, a, _: net["student"](a),
        after=lambda net: average_into(net["teacher"], net["student"], 0.1),
        optimizer=functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9),
    )


@model("vision")
def masked_autoencoder():
    """A transformer that paints the patches which it is not shown (MAE)."""

    class MAE(nn.Module):
        def __init__(self, d=16):
            super().__init__()
            self.embed, self.positions, self.mask = nn.Linear(48, d), nn.Parameter(torch.randn(1, 16, d) * 0.02), nn.Parameter(torch.zeros(1, 1, d))
            layer = functools.partial(nn.TransformerEncoderLayer, d, 2, 32, 0.0, batch_first=True, norm_first=True, activation="gelu")
            self.encoder, self.decoder, self.out = layer(), layer(), nn.Linear(d, 48)

        def forward(self, patches, order):
            x = self.embed(patches) + self.positions
            index = order.unsqueeze(-1).expand(-1, -1, x.shape[-1])
            seen = self.encoder(x.gather(1, index[:, :6]))
            whole = torch.cat([seen, self.mask.expand(len(x), 10, -1)], 1)
            whole = torch.empty_like(whole).scatter(1, index, whole) + self.positions
            return self.out(self.decoder(whole))

    def sample(g):
        x = torch.rand(3, 16, 16, generator=g)
        return F.unfold(x[None], 4, stride=4)[0].T.contiguous(), torch.rand(16, generator=g).argsort()

    return Task(
        MAE(),
        sample,
        lambda net, x, order: (net(x, order) - x).square().gather(1, order[:, 6:, None].expand(-1, -1, 48)).mean(),
        lambda net, *batch: net(*batch),
    )


@model("vision")
def capsules():
    """Capsules with routing by agreement."""

    class Capsules(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 16, 5, 2)
            self.weight = nn.Parameter(0.1 * torch.randn(72, 5, 4, 8))

        def squash(self, s):
            n2 = s.square().sum(-1, keepdim=True)
            return n2 / (1 + n2) * s / (n2 + 1e-8).sqrt()

        def forward(self, x):
            u = self.squash(F.relu(self.conv(x)).flatten(1).unflatten(1, (72, 8)))
            u = torch.einsum("ijdk,bik->bijd", self.weight, u)
            logits = torch.zeros(u.shape[:3], device=x.device)
            for _ in range(2):
                v = self.squash((logits.softmax(2).unsqueeze(-1) * u).sum(1))
                logits = logits + (u * v.unsqueeze(1)).sum(-1)
            return v.norm(dim=-1)

    def margin(net, x, label):
        length, t = net(x), F.one_hot(label, 5)
        return (t * F.relu(0.9 - length).square() + 0.5 * (1 - t) * F.relu(length - 0.1).square()).sum(1).mean()

    return Task(Capsules(), images(1, 16, 5), margin)


@model("vision")
def video_3d():
    """Convolutions in space and time on short films."""
    net = nn.Sequential(
        nn.Conv3d(1, 4, 3, padding=1),
        nn.BatchNorm3d(4),
        nn.ReLU(),
        nn.MaxPool3d(2),
        nn.Conv3d(4, 8, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )
    return Task(net, lambda g: (torch.rand(1, 4, 8, 8, generator=g), torch.randint(0, 3, (), generator=g)), classify)


@model("vision")
def video_recurrent():
    """A convolutional LSTM predicts the next frame."""

    class ConvLSTM(nn.Module):
        def __init__(self, hidden=6):
            super().__init__()
            self.hidden, self.gates, self.out = hidden, nn.Conv2d(1 + hidden, 4 * hidden, 3, padding=1), nn.Conv2d(hidden, 1, 1)

        def forward(self, film):
            h = c = film.new_zeros(len(film), self.hidden, *film.shape[-2:])
            for frame in film.unbind(1):
                i, f, o, g = self.gates(torch.cat([frame, h], 1)).chunk(4, 1)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c.tanh()
            return self.out(h)

    return Task(
        ConvLSTM(),
        lambda g: tuple(torch.rand(5, 1, 8, 8, generator=g).split([4, 1])),
        lambda net, film, after: F.mse_loss(net(film), after[:, 0]),
        optimizer=functools.partial(torch.optim.RMSprop, lr=1e-3, centered=True),
    )


@model("vision")
def pointnet():
    """Point clouds: a shared perceptron, the greatest feature over all points."""

    class PointNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.shared = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 32, 1), nn.BatchNorm1d(32), nn.ReLU())
            self.head = perceptron(32, 16, 4)

        def forward(self, x):
            return self.head(self.shared(x.transpose(1, 2)).max(2).values)

    return Task(PointNet(), lambda g: (torch.randn(20, 3, generator=g), torch.randint(0, 4, (), generator=g)), classify)


@model("vision")
def point_neighbours():
    """DGCNN: features of each point's nearest neighbours, by torch.cdist."""

    class EdgeConv(nn.Module):
        def __init__(self):
            super().__init__()
            self.mlp, self.head = perceptron(6, 16, 16), nn.Linear(16, 4)

        def forward(self, x):
            near = torch.cdist(x, x).topk(4, largest=False).indices
            neighbours = x.gather(1, near.flatten(1).unsqueeze(-1).expand(-1, -1, 3)).unflatten(1, (-1, 4))
            centre = x.unsqueeze(2).expand_as(neighbours)
            return self.head(self.mlp(torch.cat([centre, neighbours - centre], -1)).amax(2).mean(1))

    return Task(EdgeConv(), lambda g: (torch.randn(12, 3, generator=g), torch.randint(0, 4, (), generator=g)), classify)


@model("vision")
def augmented_images():
    """Images cropped, brightened and normalised on their way to the network."""
    net = pooled(conv(3, 8), conv(8, 8, stride=2), features=8)

    def sample(g):
        x, label = images(3, 20)(g)
        top, left = torch.randint(0, 5, (2,), generator=g).tolist()
        x = x[:, top : top + 16, left : left + 16] * (0.8 + 0.4 * torch.rand(1, generator=g))
        return (x - x.mean((1, 2), keepdim=True)) / x.std((1, 2), keepdim=True), label

    return Task(net, sample, classify, optimizer=functools.partial(torch.optim.ASGD, lr=0.01))
