"""Contexts, prepared calls, threads, processes, random generators, fingerprints."""

import multiprocessing
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import librepdl
from conftest import torch
from librepdl.random import Generator

x = Generator(5).normal((64, 200))


def sets():
    return [name for name, there in librepdl.info()["instruction_sets"].items() if there]


def test_the_bits_do_not_depend_on_the_context():
    expected = librepdl.fingerprint([librepdl.exp(x), librepdl.sum(x, axis=1), librepdl.matmul(x, x.T)])
    for isa in sets():
        for threads in (1, 2, 5):
            with librepdl.context(threads=threads, isa=isa) as c:
                assert (c.isa, c.threads, c.device) == (isa, threads, "cpu") and isa in repr(c)
                assert librepdl.fingerprint([librepdl.exp(x), librepdl.sum(x, axis=1), librepdl.matmul(x, x.T)]) == expected


def test_the_innermost_context_is_used():
    with librepdl.context(threads=2) as outer:
        librepdl.exp(x)
        with librepdl.context(threads=1) as inner:
            assert librepdl.current_context().threads == 1
            librepdl.sum(x)
            librepdl.sum(x)
        librepdl.exp(x)
    assert outer.statistics() == {"proved": 2 * x.size, "binary64": 0, "double_double": 0, "exact": 0}
    assert sum(inner.statistics().values()) == 2
    inner.reset_statistics()
    assert sum(inner.statistics().values()) == 0


def test_a_context_that_was_closed():
    c = librepdl.context()
    with c:
        librepdl.exp(x)
        c.close()
        with pytest.raises(ValueError, match="expected one that is open"):
            librepdl.exp(x)
    with pytest.raises(ValueError, match="expected one that is open"):
        c.__enter__()
    librepdl.exp(x)


def test_leaving_in_the_wrong_order():
    a, b = librepdl.context(), librepdl.context()
    a.__enter__()
    b.__enter__()
    with pytest.raises(RuntimeError, match="entered last"):
        a.__exit__(None, None, None)
    b.__exit__(None, None, None)
    a.__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="entered last"):
        a.__exit__(None, None, None)


def test_prepared_calls():
    a = np.zeros((3, 4), np.float32)
    out = np.full(3, -1, np.float32)
    prepared = librepdl.prepare(lambda: librepdl.sum(librepdl.exp(a), axis=1, out=out))
    assert prepared.result is out and (out == -1).all()
    prepared.run()
    assert (out == 4).all()
    a[:] = 1
    prepared.run()
    assert out.tobytes() == librepdl.sum(librepdl.exp(a), axis=1).tobytes()
    assert librepdl.prepare(lambda: librepdl.matmul(x, x.T)).workspace_bytes > 0
    del a, out
    prepared.run()  # it keeps the arrays
    assert prepared.result.tobytes() == librepdl.sum(librepdl.exp(np.ones((3, 4), np.float32)), axis=1).tobytes()


def test_numbers_in_prepared_calls():
    a = np.ones(3, np.float32)
    prepared = librepdl.prepare(lambda: librepdl.add(librepdl.mul(a, 0.1), 1, alpha=0.5))
    for _ in range(2):
        prepared.run()
        assert prepared.result.tobytes() == librepdl.add(librepdl.mul(a, 0.1), 1, alpha=0.5).tobytes()


def test_prepared_draws_leave_the_generator():
    g = Generator(1, 5)
    prepared = librepdl.prepare(lambda: g.uniform(6))
    prepared.run()
    first = prepared.result.copy()
    prepared.run()
    assert g.stream == 5 and (prepared.result == first).all() and (g.uniform(6) == first).all() and g.stream == 6


def test_an_error_while_preparing():
    def wrong():
        librepdl.exp(x)
        librepdl.exp(x, out=np.zeros(1, np.float32))

    with pytest.raises(ValueError, match="exp: out"):
        librepdl.prepare(wrong)
    with pytest.raises(ValueError, match="inside of another"):
        librepdl.prepare(lambda: librepdl.prepare(lambda: librepdl.exp(x)))
    assert librepdl.exp(x).tobytes() == librepdl.exp(x).tobytes() != x.tobytes()


# ------------------------------------------------------------------------------------------------ threads and processes


def work(_=None):
    y = librepdl.exp(x)
    return librepdl.fingerprint([librepdl.matmul(y, y.T), librepdl.sum(y), Generator(3).normal(50)])


def in_threads(n, f):
    results, errors = [], []

    def run():
        try:
            results.append(f())
        except Exception as e:  # noqa: BLE001
            errors.append(e)

    threads = [threading.Thread(target=run) for _ in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors
    return results


def test_threads_have_contexts_of_their_own():
    assert set(in_threads(8, work)) == {work()}


def test_threads_share_a_context():
    shared = librepdl.context(threads=2)

    def with_it():
        with shared:
            return [work() for _ in range(3)]

    assert in_threads(6, with_it) == [[work()] * 3] * 6


def test_threads_prepare_in_a_context_that_they_share():
    shared = librepdl.context(threads=1)

    def prepare_and_run():
        for _ in range(20):
            prepared = shared.prepare(lambda: librepdl.sum(librepdl.exp(x), axis=0))
            prepared.run()
        return librepdl.fingerprint(prepared.result)

    assert set(in_threads(6, prepare_and_run)) == {librepdl.fingerprint(librepdl.sum(librepdl.exp(x), axis=0))}


def test_other_threads_go_on():
    """A long call gives the interpreter's lock away."""
    large = np.ones((700, 700), np.float32)
    with librepdl.context(threads=1, isa="baseline"):
        librepdl.matmul(large, large)
        counted = 0
        done = threading.Event()

        def count():
            nonlocal counted
            while not done.is_set():
                counted += 1

        thread = threading.Thread(target=count)
        thread.start()
        before = counted
        librepdl.matmul(large, large)
        during = counted - before
        done.set()
        thread.join()
    assert during > 1000


def test_a_generator_in_threads():
    g = Generator(1)
    draws = in_threads(8, lambda: [tuple(g.uniform(4).tolist()) for _ in range(20)])
    assert g.stream == 160 and len({d for list_of in draws for d in list_of}) == 160
    again = Generator(1)
    assert {d for list_of in draws for d in list_of} == {tuple(again.uniform(4).tolist()) for _ in range(160)}


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method):
    expected = work()
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(work, range(4)) == [expected] * 4


def test_importing_loads_neither_torch_nor_a_gpu():
    code = ("import sys, librepdl; librepdl.info(); assert 'torch' not in sys.modules and 'cupy' not in sys.modules; "
            "maps = open('/proc/self/maps').read(); assert 'libcuda.so' not in maps or librepdl.info()['no_gpu'] is None")
    subprocess.run([sys.executable, "-c", code], check=True)


# ---------------------------------------------------------------------------------------------- generators, fingerprints


def test_generators():
    g = Generator(2**64 - 1, 2**64 - 1)
    a = g.normal((2, 3))
    assert g.stream == 0 and a.dtype == np.float32 and a.shape == (2, 3)
    b = Generator(2**64 - 1, 2**64 - 1)
    assert (b.copy().normal((2, 3)) == a).all() and (pickle.loads(pickle.dumps(b)).normal((2, 3)) == a).all()
    assert repr(Generator(1, 2)) == "librepdl.random.Generator(seed=1, stream=2)"
    # An element depends on seed, stream and index only.
    assert (Generator(9).uniform(10)[:4] == Generator(9).uniform(4)).all()
    assert Generator(9).uniform(3, "float64").dtype == np.float64
    assert Generator(9).permutation(5).dtype == np.int64 and sorted(Generator(9).permutation(5)) == list(range(5))
    out = np.zeros(3, np.float16)
    assert Generator(9).uniform(3, np.float16, out=out) is out
    before = g.copy()
    y = g.dropout(np.ones(1000, np.float32), 0.25)
    assert (before.dropout_backward(np.ones(1000, np.float32), 0.25) == y).all() and 0.6 < (y != 0).mean() < 0.9


@pytest.mark.skipif(torch is None, reason="no torch here")
def test_draws_like_an_array():
    t = Generator(4).normal(5, like=torch.empty(1))
    assert isinstance(t, torch.Tensor) and (t.numpy() == Generator(4).normal(5)).all()


def test_fingerprints():
    assert librepdl.fingerprint(x) == librepdl.fingerprint([x]) == librepdl.fingerprint({"a": x}) == librepdl.fingerprint((x[:, ::-1][:, ::-1],))
    assert librepdl.fingerprint({"b": x, "a": x[0]}) == librepdl.fingerprint([x[0], x]) != librepdl.fingerprint([x, x[0]])
    assert librepdl.fingerprint(x) != librepdl.fingerprint(x.reshape(-1)) != librepdl.fingerprint(x.view(np.int32).reshape(-1))
    # By the rule, in plain Python (docs/contract.md, section 7).
    import hashlib

    text = b"librepdl fingerprint 1\n" + bytes([2, 2]) + b"".join(n.to_bytes(8, "little") for n in x.shape) + x.tobytes()
    assert librepdl.fingerprint(x) == hashlib.sha256(text).hexdigest()


def test_compare():
    same = librepdl.compare(x, x.copy())
    assert same and str(same) == f"the same bits in all {x.size} elements" and same.index is None
    y = x.copy()
    y[3, 7] = np.nextafter(y[3, 7], np.float32(np.inf))
    y[4, 0] = np.nextafter(np.nextafter(y[4, 0], np.float32(np.inf)), np.float32(np.inf))
    c = librepdl.compare(x, y)
    assert not c and (c.count, c.different, c.index, c.ulps) == (x.size, 2, (3, 7), 2)
    assert c.bits == (int(x.view(np.uint32)[3, 7]), int(y.view(np.uint32)[3, 7]))
    zero, tiny = np.float32([0.0]), np.float32([1e-45])
    assert librepdl.compare(zero, -zero).ulps == 0 and librepdl.compare(tiny, -tiny).ulps == 2 and not librepdl.compare(zero, -zero)
    nan = np.float32([np.nan])
    assert librepdl.compare(nan, zero).ulps is None and librepdl.compare(nan, nan)
    assert librepdl.compare(np.int64([1]), np.int64([2])).ulps is None
    assert librepdl.compare(x[:0], x[:0]) and librepdl.compare(np.float32(1), np.float32(2)).index == ()


def test_short_calls_stay_on_their_thread():
    script = """if True:
        import os
        import numpy as np, librepdl
        x, m = np.linspace(.1, .9, 65536, dtype="f"), np.ones((64, 64), "f")
        before = len(os.listdir("/proc/self/task"))
        for call in (librepdl.exp, librepdl.log, librepdl.neg, librepdl.sum, librepdl.max, lambda x: librepdl.add(x, x),
                     lambda x: librepdl.softmax(x[:32768].reshape(32, 1024)), lambda x: librepdl.matmul(m, m),
                     lambda x: librepdl.mse_loss(x[:32768], x[:32768]), lambda x: librepdl.pow(x[:32768], x[:32768])):
            call(x)
        assert len(os.listdir("/proc/self/task")) == before
        librepdl.exp(np.tile(x, 64))
        assert len(os.listdir("/proc/self/task")) == before + 3
    """
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "OMP_NUM_THREADS": "4"})
