"""Runs a function in several processes of a gloo group."""

import multiprocessing
import pickle
import tempfile
import traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["torch", "librepdl.torch.distributed", "torch.distributed.fsdp", "torch.distributed.tensor.parallel"])


def _rank(pipe, rank, size, store, timeout, function, arguments):
    torch.set_num_threads(1)
    try:
        dist.init_process_group("gloo", store=dist.FileStore(store, size), rank=rank, world_size=size, timeout=timedelta(seconds=timeout))
        dist.barrier()  # a rank that ends would take its connections with it while others still make theirs
        pipe.send_bytes(pickle.dumps((True, function(*arguments))))
        dist.destroy_process_group()
    except BaseException:
        pipe.send_bytes(pickle.dumps((False, traceback.format_exc())))
        raise SystemExit(1) from None


def run(size, function, *arguments, timeout=120, order=None):
    """function(*arguments) in `size` ranks, started in an order: what each returned; RuntimeError with their tracebacks if any of them
    raised. The function is one of a module."""
    results = attempt(size, function, *arguments, timeout=timeout, order=order)
    failures = [f"rank {rank}: {text}" for rank, (well, text) in enumerate(results) if not well]
    if failures:
        raise RuntimeError("\n".join(failures))
    return [value for _, value in results]


def attempt(size, function, *arguments, timeout=120, order=None):
    """(True, what it returned) or (False, its traceback) of each rank."""
    with tempfile.TemporaryDirectory() as folder:
        pipes, theirs, processes = [], [], []
        for rank in range(size):
            here, there = _context.Pipe(duplex=False)
            pipes.append(here)
            theirs.append(there)
            processes.append(_context.Process(target=_rank, args=(there, rank, size, str(Path(folder) / "store"), timeout, function, arguments)))
        for rank in order or range(size):
            processes[rank].start()
            theirs[rank].close()
        results = []
        for pipe in pipes:
            try:
                results.append(pickle.loads(pipe.recv_bytes()) if pipe.poll(2 * timeout) else (False, "no answer in time"))
            except EOFError:
                results.append((False, "the process ended without an answer"))
        for process in processes:
            process.join(timeout)
            if process.is_alive():
                process.kill()
        return results
