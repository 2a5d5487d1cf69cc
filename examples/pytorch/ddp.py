#!/usr/bin/env python3
"""LeNet-5, or a small GPT-2, on any number of processes: plain PyTorch, and with --reproducible the same bits on each number of them.

    torchrun --nproc-per-node 2 examples/pytorch/ddp.py --reproducible                  # and 1, 4, 8: one fingerprint
    torchrun --nproc-per-node 2 examples/pytorch/ddp.py --reproducible --parallel fsdp  # the same one

With --reproducible a step is computed in 8 shards (librepdl.torch.distributed.shards), wherever they are; --checkpoint goes on with another
number of processes.
"""

import os
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F

import common
from lenet import LeNet, digits


def lenet(options):
    images, labels = digits()
    return LeNet(), partial(torch.optim.SGD, lr=options.lr, momentum=0.9), (images, labels), lambda model, x, y: F.cross_entropy(model(x), y)


def gpt2(options):
    from gpt2 import TEXT, small_gpt2

    text = torch.tensor(list(TEXT.read_bytes()))
    pieces = text.unfold(0, 64, 8).contiguous()
    optimizer = partial(torch.optim.AdamW, lr=options.lr, weight_decay=0.1)
    return small_gpt2(), optimizer, (pieces,), lambda model, tokens: model(input_ids=tokens, labels=tokens).loss


def spread(options, model):
    """The model on this process's device, wrapped or cut into parts."""
    model = model.to(options.device).train()
    if options.parallel == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    mesh = dist.init_device_mesh(options.device.split(":")[0], (dist.get_world_size(),))
    for layer in model.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def indices(sampler, first=0):
    """Of this process's samples in each step from the first on, epoch after epoch."""
    epoch, within = divmod(first, len(sampler))
    while True:
        sampler.set_epoch(epoch, within)
        yield from sampler
        epoch, within = epoch + 1, 0


def gradients(options, model, batch, loss_of, count, group=None):
    """The mean of the gradients of all processes' samples, in so many shards; the loss."""
    if not options.reproducible:
        loss = loss_of(model, *batch)
        loss.backward()
        return loss.item()
    from librepdl.torch.distributed import shards

    losses = []
    for shard in (parts := shards(batch, count, model=model, group=group)):
        losses.append(loss_of(model, *shard))
        losses[-1].backward()
    return parts.mean(losses).item()


WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)


def saved(options, model, optimizer, step):
    """Written by rank 0, under its name when it is complete."""
    weights, state = get_state_dict(model, optimizer, options=WHOLE)
    if dist.get_rank() == 0:
        new = options.checkpoint.with_suffix(".new")
        torch.save({"model": weights, "optimizer": state, "random": torch.get_rng_state(), "step": step}, new)
        new.replace(options.checkpoint)
    dist.barrier()


def main():
    def more(parser):
        parser.add_argument("--model", choices=["lenet", "gpt2"], default="lenet")
        parser.add_argument("--parallel", choices=["ddp", "fsdp"], default="ddp")
        parser.add_argument("--clip", type=float, default=1.0, help="the greatest norm of the gradients")

    o = common.arguments(__doc__.splitlines()[0], more, steps=20, batch=64, lr=0.05)
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if o.device == "cuda":
        o.device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
        torch.cuda.set_device(o.device)
    if size == 1 and "MASTER_ADDR" not in os.environ:  # without torchrun
        dist.init_process_group("nccl" if "cuda" in o.device else "gloo", store=dist.HashStore(), rank=0, world_size=1)
    else:
        dist.init_process_group("nccl" if "cuda" in o.device else "gloo")
    common.start(o)
    from librepdl.torch.distributed import ShardSampler

    model, optimizer_of, data, loss_of = {"lenet": lenet, "gpt2": gpt2}[o.model](o)
    model = spread(o, model)
    optimizer = optimizer_of(model.parameters())  # after FSDP has put other parameters in the model
    first, loss = 0, float("nan")
    if o.checkpoint and o.checkpoint.exists():
        found = torch.load(o.checkpoint, map_location="cpu")
        set_state_dict(model, optimizer, model_state_dict=found["model"], optim_state_dict=found["optimizer"], options=WHOLE)
        torch.set_rng_state(found["random"])
        first = found["step"]
    sampler = ShardSampler(len(data[0]), o.batch, max(8, size), seed=o.seed)
    if not len(sampler):
        raise SystemExit(f"--batch: expected at most the {len(data[0])} samples that there are, got {o.batch}")
    for step, chosen in zip(range(first, o.steps), indices(sampler, first)):
        if step == o.die_at and rank == size - 1:
            os._exit(9)
        batch = tuple(t[chosen].to(o.device) for t in data)
        optimizer.zero_grad()
        loss = gradients(o, model, batch, loss_of, max(8, size))
        nn.utils.clip_grad_norm_(model.parameters(), o.clip)
        optimizer.step()
        if o.checkpoint and (step + 1) % 10 == 0:
            saved(o, model, optimizer, step + 1)
        if rank == 0 and ((step + 1) % 10 == 0 or step + 1 == o.steps):
            print(f"step {step + 1}/{o.steps}  loss {loss:.6f}", flush=True)
    weights, state = get_state_dict(model, optimizer, options=WHOLE)
    if rank == 0:
        import librepdl.torch

        print(f"loss         {loss!r}")
        print(f"fingerprint  {librepdl.torch.fingerprint({'model': weights, 'optimizer': state['state'], 'loss': loss})}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
