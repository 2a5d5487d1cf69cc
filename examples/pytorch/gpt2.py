#!/usr/bin/env python3
"""A small GPT-2 (of the package transformers) on a text: plain PyTorch, and with --reproducible the same bits everywhere.

Needs `pip install transformers`. It learns the file of --text, byte by byte. AdamW, gradients clipped.
"""

import pathlib

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import common

TEXT = pathlib.Path(__file__).resolve().parent.parent.parent / "LICENSE"


def small_gpt2(length=64):
    return GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=length, n_embd=64, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0))


def main():
    def more(parser):
        parser.add_argument("--text", type=pathlib.Path, default=TEXT, help="what it learns")
        parser.add_argument("--clip", type=float, default=1.0, help="the greatest norm of the gradients")

    o = common.arguments(__doc__.splitlines()[0], more, steps=20, batch=4, lr=0.001)
    common.start(o)
    text = torch.tensor(list(o.text.read_bytes()))
    model = small_gpt2().to(o.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=o.lr, weight_decay=0.1, foreach=o.foreach)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, 10)

    def batch(generator):
        begin = torch.randint(0, len(text) - 65, (o.batch,), generator=generator)
        return (text[begin[:, None] + torch.arange(64)].to(o.device),)

    best = common.train(o, model, optimizer, scheduler, batch, lambda m, tokens: m(input_ids=tokens, labels=tokens).loss)
    common.finish(model, optimizer, best)


if __name__ == "__main__":
    main()
