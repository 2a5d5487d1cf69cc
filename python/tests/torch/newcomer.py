"""What somebody types who has just installed librepdl: networks of torchvision and timm, from their initialisation to a trained state,
with the defaults that PyTorch has for the device. Prints the fingerprint of everything that was computed; it may depend on nothing but
the seed: not on --threads, --workers, --channels-last or --device.

    python newcomer.py [--device cuda] [--threads 2] [--workers 2] [--channels-last] [--plain]
"""

import argparse
import io
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "examples" / "pytorch"))
from common import import_torchvision  # noqa: E402

CLASSES = 10
SIZE = 32


# --------------------------------------------------------------------------------------------------------------------- data

class Shapes(Dataset):
    """uint8 images of noisy bars and squares, drawn from the index alone, as a camera would deliver them."""

    mean, std = (0.49, 0.48, 0.45), (0.25, 0.24, 0.26)

    def __init__(self, count, train):
        self.count, self.train = count, train

    def __len__(self):
        return self.count

    def raw(self, i):
        g = torch.Generator().manual_seed(1000 + i)
        label = i % CLASSES
        image = torch.randint(0, 64, (3, SIZE, SIZE), generator=g, dtype=torch.uint8)
        row, column = 3 * (label % 5), 4 * (label // 5)
        image[label % 3, row:row + 12, column:column + 20] += 128
        image[:, 16 + label:, :4] //= 2
        return image, label

    def __getitem__(self, i):
        image, label = self.raw(i)
        x = image / 255  # what everybody writes
        x = (x - torch.tensor(self.mean)[:, None, None]) / torch.tensor(self.std)[:, None, None]
        if self.train:
            g = torch.Generator().manual_seed(77 + i)
            x = F.pad(x[None], (2, 2, 2, 2), mode="reflect")[0]
            top, left = torch.randint(0, 5, (2,), generator=g).tolist()
            x = x[:, top:top + SIZE, left:left + SIZE]
            if torch.rand((), generator=g) < 0.5:
                x = x.flip(-1)
            gain = 1 + 0.1 * torch.randn(3, 1, 1, generator=g)
            x = x * gain
        return x, label


def loaders(options, batch=16):
    settings = {"batch_size": batch, "num_workers": options.workers}
    if options.workers:
        settings["multiprocessing_context"] = options.start
    train = DataLoader(Shapes(48, True), shuffle=True, generator=torch.Generator().manual_seed(5), drop_last=True, **settings)
    return train, DataLoader(Shapes(32, False), **settings)


def transforms(images):
    """torchvision's own, on a batch of uint8 images."""
    from torchvision.transforms import v2

    steps = v2.Compose([
        v2.ToDtype(torch.float32, scale=True),
        v2.RandomHorizontalFlip(),
        v2.RandomCrop(SIZE, padding=4),
        v2.RandomErasing(p=0.5),
        v2.Normalize(Shapes.mean, Shapes.std),
    ])
    return torch.stack([steps(image) for image in images])


# ------------------------------------------------------------------------------------------------------------------- models

class Regressor(nn.Module):
    """A head of its own on a known trunk: places of the brightest corner, by an L1 loss."""

    def __init__(self, trunk, features):
        super().__init__()
        self.trunk = trunk
        self.head = nn.Sequential(
            nn.Linear(features, 64),
            nn.Dropout(0.25, inplace=True),
            nn.BatchNorm1d(64),
            nn.ReLU(inplace=True),
            nn.Linear(64, 2),
        )
        nn.init.xavier_uniform_(self.head[0].weight)
        nn.init.kaiming_normal_(self.head[4].weight, nonlinearity="relu")
        nn.init.zeros_(self.head[4].bias)

    def forward(self, x):
        return torch.sigmoid(self.head(self.trunk(x)))


def corners(labels, device):
    labels = labels.to(device)
    return torch.stack([(labels % 5) / 5, (labels // 5) / 2], 1)


def mobile_net(options):
    """torchvision's MobileNetV3, L1 losses, RAdam, a schedule, gradients clipped."""
    import torchvision

    model = torchvision.models.mobilenet_v3_small(num_classes=32, dropout=0.1).to(options.device)
    model = Regressor(model, 32).to(options.device)
    if options.channels_last:
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.RAdam(model.parameters(), lr=2e-3, weight_decay=1e-4, decoupled_weight_decay=True)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    train, test = loaders(options)
    history = []
    for epoch in range(2):
        model.train()
        for x, label in train:
            x = x.to(options.device)
            if options.channels_last:
                x = x.to(memory_format=torch.channels_last)
            optimizer.zero_grad()
            found = model(x)
            target = corners(label, options.device)
            loss = F.l1_loss(found, target) + 0.1 * (found - target).abs().amax(1).mean()
            loss = loss + 1e-5 * sum(p.abs().sum() for p in model.head.parameters())
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            history += [loss.item(), norm.item()]
        schedule.step()
    model.eval()
    with torch.inference_mode():
        errors = torch.cat([(model(x.to(options.device)) - corners(label, options.device)).abs() for x, label in test])
    history += [errors.mean().item(), errors.std().item(), errors.median().item(), float(errors.max())]
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict()["state"], "history": history}


def vision_transformer(options):
    """timm's ViT under autocast with a gradient scaler, AdamW, smoothed labels, an average of the weights."""
    import timm

    model = timm.create_model("vit_tiny_patch16_224", img_size=SIZE, patch_size=8, depth=2, num_classes=CLASSES, drop_rate=0.1,
                              drop_path_rate=0.1).to(options.device)
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}], lr=1e-3)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    scaler = torch.amp.GradScaler(options.device, init_scale=2.0**12, growth_interval=2)
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    train, test = loaders(options)
    history = []
    for x, label in train:
        x, label = x.to(options.device), label.to(options.device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(options.device, dtype=torch.float16):
            logits = model(x)
            loss = criterion(logits, label)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 3.0)
        scaler.step(optimizer)
        scaler.update()
        average.update_parameters(model)
        history += [loss.item(), scaler.get_scale(), (logits.argmax(1) == label).float().mean().item()]
    average.eval()
    right = 0
    with torch.no_grad():
        for x, label in test:
            probabilities = average(x.to(options.device)).softmax(-1)
            best = probabilities.topk(3)
            right += (best.indices == label.to(options.device)[:, None]).any(1).sum().item()
            history += best.values.mean(0).tolist()
    history.append(right)
    return {"model": model.state_dict(), "average": average.state_dict(), "history": history, "optimizer": optimizer.state_dict()["state"]}


def small_things(options):
    """Lines that one types on the first day."""
    torch.manual_seed(3)
    images = torch.stack([Shapes(4, False).raw(i)[0] for i in range(4)])
    x = transforms(images).to(options.device)
    flat = x.flatten(1)
    results = {
        "transforms": x,
        "scaled": images.to(options.device).float().mul(1 / 127.5).sub(1),
        "mixed": images.to(options.device) * 0.5 + torch.arange(SIZE, device=options.device),
        "normalised": F.normalize(flat, dim=1),
        "distances": (flat[:, None] - flat[None]).abs().sum(-1),
        "standard": (flat - flat.mean(1, keepdim=True)) / flat.std(1, keepdim=True),
        "clipped": (flat * 300).clamp(-10, 300).to(torch.uint8),
        "sorted": flat.double().sort(dim=1, descending=True).values,
        "best": flat.double().max(1).indices,
        "normal": torch.distributions.Normal(flat.mean(1), flat.std(1)).sample((3,)),
        "gumbel": F.gumbel_softmax(flat[:, :9], tau=0.5, hard=True),
        "picked": torch.multinomial(flat[:, :9].softmax(1), 4, replacement=True),
        "truncated": nn.init.trunc_normal_(torch.empty(50, device=options.device), std=0.02),
        "huber": F.smooth_l1_loss(flat, flat.roll(1, 0), reduction="none"),
        "pairwise": F.cosine_similarity(flat, flat.roll(1, 0)),
        "positions": torch.exp(torch.arange(0, 16, 2, device=options.device) * (-4.0 / 16)),
        "mask": torch.where(flat > 0, flat, torch.zeros_like(flat)).count_nonzero(1),
    }
    layers = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU(inplace=True), nn.MaxPool2d(2), nn.Dropout2d(0.2),
                           nn.Upsample(scale_factor=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(8), nn.GELU(),
                           nn.Linear(8, 4)).to(options.device)
    y = layers(x)
    (F.binary_cross_entropy_with_logits(y, torch.eye(4, device=options.device)) + F.mse_loss(y.tanh(), y.sigmoid())).backward()
    results["gradients"] = [p.grad for p in layers.parameters()]
    file = io.BytesIO()
    torch.save(layers.state_dict(), file)
    file.seek(0)
    layers.load_state_dict(torch.load(file))
    assert f"{y}" and repr(layers)
    results["layers"] = layers.state_dict()
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--start", default="spawn", choices=["spawn", "fork", "forkserver"])
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--plain", action="store_true", help="PyTorch as it is")
    options = parser.parse_args()
    import_torchvision()
    import librepdl.torch

    torch.set_num_threads(options.threads)
    if not options.plain:
        librepdl.torch.enable()
    found = {}
    for part in (small_things, mobile_net, vision_transformer):
        begin = time.perf_counter()
        torch.manual_seed(0)
        found[part.__name__] = part(options)
        print(f"{part.__name__:20} {librepdl.torch.fingerprint(found[part.__name__])[:16]}  {time.perf_counter() - begin:5.1f} s", flush=True)
    print(librepdl.torch.fingerprint(found))


if __name__ == "__main__":
    main()
