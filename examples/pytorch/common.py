"""What the examples share: their arguments, the loop, checkpoints, and the fingerprint."""

import argparse
import os
import pathlib
import sys
import time

import torch


def arguments(description, more=lambda parser: None, **defaults):
    """The command line. `defaults`: steps, batch, lr; more(parser) adds an example's own arguments."""
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--reproducible", action="store_true", help="compute with librepdl: the same bits everywhere")
    p.add_argument("--device", default="cpu", help="cpu, cuda")
    p.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of the CPU")
    p.add_argument("--steps", type=int, default=defaults["steps"])
    p.add_argument("--batch", type=int, default=defaults["batch"])
    p.add_argument("--lr", type=float, default=defaults["lr"])
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--foreach", action="store_true", help="the optimiser's loop over lists of tensors")
    p.add_argument("--channels-last", action="store_true", help="images and weights in that memory format")
    p.add_argument("--no-mkldnn", action="store_true", help="without oneDNN's kernels")
    p.add_argument("--checkpoint", type=pathlib.Path, help="written every ten steps; where it exists the training goes on from there")
    p.add_argument("--die-at", type=int, help="end the process in this step, as a crash would")
    more(p)
    o = p.parse_args()
    for name in ("steps", "batch", "threads"):
        if getattr(o, name) < 1:
            p.error(f"--{name}: expected a number of 1 or more, got {getattr(o, name)}")
    return o


def import_torchvision():
    """torchvision, if it is installed, also without its compiled part, which belongs to one build of PyTorch: its Python part needs the names
    of two operators; models do not call them."""
    try:
        import torchvision
    except ImportError:
        pass
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision

        torchvision.kept = library


def start(options):
    torch.set_num_threads(options.threads)
    if options.no_mkldnn:
        torch.backends.mkldnn.set_flags(False)
    if options.reproducible:
        import librepdl.torch

        librepdl.torch.enable()
    torch.manual_seed(options.seed)


def train(options, model, optimizer, scheduler, batch, loss_of):
    """`batch(indices generator)` gives the inputs of a step, `loss_of(model, *inputs)` the loss to go down. Returns the best loss."""
    generator = torch.Generator().manual_seed(options.seed)
    first, best = 0, float("inf")
    if options.checkpoint and options.checkpoint.exists():
        saved = torch.load(options.checkpoint, map_location="cpu")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        generator.set_state(saved["data"])
        torch.set_rng_state(saved["random"])
        first, best = saved["step"], saved["best"]
    began = time.monotonic()
    for step in range(first, options.steps):
        if step == options.die_at:
            os._exit(9)
        optimizer.zero_grad()
        loss = loss_of(model, *batch(generator))
        loss.backward()
        if getattr(options, "clip", None):
            torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip)
        optimizer.step()
        scheduler.step()
        value = loss.item()
        best = min(best, value)
        if options.checkpoint and (step + 1) % 10 == 0:
            whole = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
                     "data": generator.get_state(), "random": torch.get_rng_state(), "step": step + 1, "best": best}
            new = options.checkpoint.with_suffix(".new")
            torch.save(whole, new)
            new.replace(options.checkpoint)
        if sys.stderr.isatty() or (step + 1) % 10 == 0 or step + 1 == options.steps:
            print(f"step {step + 1}/{options.steps}  loss {value:.6f}  {(time.monotonic() - began) / (step + 1 - first):.3f} s a step",
                  end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return best


def finish(model, optimizer, best):
    """Prints the fingerprint of everything that the training made."""
    import librepdl.torch

    print(f"best loss    {best!r}")
    print(f"fingerprint  {librepdl.torch.fingerprint({'model': model, 'optimizer': optimizer.state_dict()['state'], 'best': best})}")
