"""Arrays on a GPU: whose stream calls run on, CUDA graphs, whose memory they use, and the libraries whose arrays are taken.

The published cases are compared on the GPU by test_cases.py, which takes torch cuda as one more library.
"""

import gc
import multiprocessing
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import librepdl
from conftest import torch
from librepdl.random import Generator

pytestmark = pytest.mark.skipif(torch is None or not torch.cuda.is_available(), reason="no GPU for torch here")

x = Generator(5).normal((300, 200))
CYCLES = 400_000_000  # of a kernel that only waits: some 0.2 s


def cuda(a):
    return torch.from_numpy(a).cuda()


def network(a):
    """Calls that need workspace among them, and a number as an operand."""
    y = librepdl.exp(librepdl.mul(a, 0.1))
    return [y, librepdl.sum(y, axis=0), librepdl.sum(y), librepdl.matmul(y, y.T), librepdl.softmax(y, axis=1),
            librepdl.argmax(y, axis=1), librepdl.astype(y, "float16")]


EXPECTED = librepdl.fingerprint(network(x))


def test_results_are_tensors_on_the_gpu():
    t = cuda(x)
    for view in (t, t[::2, 1:], t.T, t.flip(0), t[:1].expand(300, 200), t[:, :0], t[0, 0]):
        got = librepdl.exp(view)
        assert type(got) is torch.Tensor and got.is_cuda and got.shape == view.shape
        assert librepdl.compare(got, librepdl.exp(view.cpu()))
    out = torch.full((600, 400), 7.0, device="cuda")
    into = out[::2, ::2]
    assert librepdl.exp(t, out=into) is into and librepdl.compare(into, librepdl.exp(x))
    assert (out[1::2] == 7).all() and (out[:, 1::2] == 7).all()
    assert librepdl.exp(t, out=t) is t and librepdl.compare(t, into)


def test_the_bits_of_the_cpu():
    assert librepdl.fingerprint(network(cuda(x))) == EXPECTED
    like = torch.empty(1, device="cuda")
    for draw in ("normal", "uniform"):
        on_gpu = getattr(Generator(3), draw)((5, 7), like=like)
        assert on_gpu.is_cuda and librepdl.compare(on_gpu, getattr(Generator(3), draw)((5, 7)))


def test_devices_do_not_mix():
    t = cuda(x)
    with pytest.raises(ValueError, match="add: y: expected a tensor on cuda:0, got one on cpu"):
        librepdl.add(t, x)
    with pytest.raises(ValueError, match="add: y: expected a tensor on cpu, got one on cuda:0"):
        librepdl.add(x, t)
    with pytest.raises(ValueError, match="exp: out: expected a tensor on cuda:0, got one on cpu"):
        librepdl.exp(t, out=torch.empty(x.shape))
    with pytest.raises(ValueError, match="isa: expected"):
        librepdl.context(device="cuda", isa="avx2")
    with pytest.raises(ValueError, match="where: expected an index"):
        librepdl.context(device="cuda:99").synchronize()


# ---------------------------------------------------------------------------------------------------------- streams


def test_calls_run_on_the_current_stream_and_do_not_wait():
    t = torch.zeros(1000, device="cuda")
    librepdl.exp(t)  # the kernels are tested before their first use
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        librepdl.sum(librepdl.exp(t))
        side.synchronize()
        torch.cuda._sleep(CYCLES)
        t.fill_(1)  # after the sleep
        y = librepdl.sum(librepdl.exp(t))
        waiting = not side.query()
    assert waiting, "the call waited for the stream"
    side.synchronize()
    assert librepdl.compare(y, librepdl.sum(librepdl.exp(np.ones(1000, np.float32))))


def test_streams_do_not_share_workspaces():
    large = cuda(Generator(1).normal((64, 100_000)))
    expected = librepdl.fingerprint(librepdl.sum(large, axis=1))
    streams = [torch.cuda.Stream() for _ in range(4)]
    torch.cuda.synchronize()
    results = []
    for _ in range(10):
        for stream in streams:
            with torch.cuda.stream(stream):
                results.append(librepdl.sum(large, axis=1))
    torch.cuda.synchronize()
    assert {librepdl.fingerprint(r) for r in results} == {expected}


def test_threads():
    errors = []

    def work():
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                t = cuda(x)
                for _ in range(5):
                    assert librepdl.fingerprint(network(t)) == EXPECTED
        except Exception as e:  # noqa: BLE001
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors


def test_memory_is_pytorchs():
    """Workspaces too: nothing of librepdl's own grows."""
    t = cuda(Generator(1).normal((512, 100_000)))
    librepdl.matmul(t, t.T)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before, free = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
    y = librepdl.matmul(t, t.T)
    assert torch.cuda.max_memory_allocated() - before > y.numel() * 4, "no workspace was needed: another call is needed here"
    del y
    gc.collect()
    assert torch.cuda.memory_allocated() == before
    torch.cuda.empty_cache()
    assert abs(torch.cuda.mem_get_info()[0] - free) < 1 << 24  # what the driver keeps for kernels that are new


# ----------------------------------------------------------------------------------------------------------- graphs


@pytest.mark.parametrize("warm", [False, True])
def test_graphs(warm):
    """Also where the stream that is captured is new to librepdl."""
    static = torch.zeros(300, 200, device="cuda")
    stream = torch.cuda.Stream()
    if warm:
        with torch.cuda.stream(stream):
            network(static)
        torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        results = network(static)
    for seed in (5, 6, 7):
        numbers = Generator(seed).normal((300, 200))
        static.copy_(torch.from_numpy(numbers))
        graph.replay()
        network(cuda(x))  # something else in between
        assert librepdl.fingerprint(results) == librepdl.fingerprint(network(numbers))


def test_a_graph_whose_memory_pytorch_uses_again():
    static = cuda(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(3):  # workspaces come and go within the graph
            results = network(static)
    noise = [torch.full((1 << 20,), float("nan"), device="cuda") for _ in range(20)]
    for _ in range(3):
        graph.replay()
        noise.append(torch.full((1 << 20,), float("nan"), device="cuda"))
    assert librepdl.fingerprint(results) == EXPECTED


def test_prepared_calls_in_a_graph():
    static = torch.zeros(300, 200, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        prepared = librepdl.prepare(lambda: network(static), device="cuda")
    prepared.run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        prepared.run()
    static.copy_(torch.from_numpy(x))
    graph.replay()
    torch.cuda.synchronize()
    assert librepdl.fingerprint(prepared.result) == EXPECTED


# --------------------------------------------------------------------------------------------------------- contexts


def test_contexts():
    t = cuda(x)
    with librepdl.context(device="cuda") as c:
        assert (c.device, c.isa) == ("cuda:0", "cuda")
        for y in network(t):
            assert y.is_cuda
        librepdl.exp(x)  # on the CPU: another context
    assert sum(c.statistics().values()) == sum(y.numel() for y in network(t)) + t.numel()
    c.reset_statistics()
    c.synchronize()
    assert sum(c.statistics().values()) == 0
    prepared = c.prepare(lambda: librepdl.sum(t, axis=1))
    prepared.run()
    assert librepdl.compare(prepared.result, librepdl.sum(x, axis=1)) and prepared.workspace_bytes >= 0
    c.close()
    with pytest.raises(ValueError, match="expected one that is open"):
        prepared.run()
    assert "cuda:0" in str(librepdl.info())


def test_the_current_device_stays():
    before = torch.cuda.current_device()
    for index in range(torch.cuda.device_count()):
        t = torch.from_numpy(x).to(f"cuda:{index}")
        assert librepdl.fingerprint(network(t)) == EXPECTED
        assert torch.cuda.current_device() == before
        if index != before:
            with pytest.raises(ValueError, match=f"got one on cuda:{index}"):
                librepdl.add(cuda(x), t)


def in_a_child(_):
    try:
        return librepdl.fingerprint(network(cuda(x)))
    except (RuntimeError, NotImplementedError) as e:
        return str(e)


def test_processes():
    librepdl.exp(cuda(x))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(in_a_child, [0]) == [EXPECTED]
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(on_the_cpu, [0]) == [EXPECTED]


def on_the_cpu(_):
    return librepdl.fingerprint(network(x))


# ---------------------------------------------------------------------------------------------------- other libraries


def test_cupy():
    cupy = pytest.importorskip("cupy")
    a = cupy.asarray(x)
    for y, expected in zip(network(a), network(x)):
        assert isinstance(y, cupy.ndarray) and librepdl.compare(y, expected)
    into = cupy.zeros(x.shape, cupy.float32)
    assert librepdl.exp(a, out=into) is into and librepdl.compare(into, librepdl.exp(x))
    side = cupy.cuda.Stream(non_blocking=True)
    with side:
        b = a * 2  # on the side stream
        for _ in range(20):
            b = librepdl.relu(b) * 1
        y = librepdl.exp(b)
    side.synchronize()
    assert librepdl.compare(y, librepdl.exp(librepdl.relu(librepdl.mul(x, 2))))
    del y, b
    gc.collect()


def test_jax():
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    a = jax.numpy.asarray(x)
    for y, expected in zip(network(a), network(x)):
        assert isinstance(y, jax.Array)
        if y.dtype == jax.numpy.int32:  # JAX keeps no int64 unless jax_enable_x64
            expected = expected.astype(np.int32)
        assert librepdl.compare(y, expected)
    b = a
    for _ in range(20):  # JAX's kernels and ours in turns
        b = librepdl.relu(b * 1)
    assert librepdl.compare(librepdl.exp(b), librepdl.exp(librepdl.relu(x)))


def test_tensors_without_the_exchange_api():
    """What an older PyTorch offers: __dlpack__ only, on the current stream."""
    class Old:
        def __init__(self, t):
            self.t = t

        def __dlpack__(self, *, stream=None, **options):
            return self.t.__dlpack__(stream=stream, **options)

        def __dlpack_device__(self):
            return self.t.__dlpack_device__()

    Old.__module__ = "torch"
    t = cuda(x)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(CYCLES // 10)
        t.mul_(1)
        y = librepdl.exp(Old(t))
        assert type(y) is torch.Tensor and y.is_cuda
        z = y + 0
    side.synchronize()
    assert librepdl.compare(z, librepdl.exp(x))


def test_the_program_finds_the_gpu():
    """python -m librepdl: librepdl_cuda.so beside the modules, or where REPDL_CUDA_LIBRARY says."""
    done = subprocess.run([sys.executable, "-m", "librepdl", "info"], capture_output=True, text=True)
    assert re.search("^backends .*cuda", done.stdout, re.M), done.stdout + done.stderr
