"""Ctrl-C ends a long call of the CPU's, whichever operation it is, and leaves everything as it was but the results."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import librepdl


@pytest.fixture(autouse=True)
def handled():
    """Python's own handler: a shell's background job ignores the signal, and Python then does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def same(number, *shape):
    """An array of one number, which takes no memory."""
    return np.broadcast_to(np.float32(number), shape)


def many_calls():
    x = np.full(1 << 20, 0.7, np.float32)
    prepared = librepdl.prepare(lambda: [librepdl.pow(x, 0.3, out=y) for y in [x.copy()] * 3000])
    return prepared.run


def one_call(f):
    return lambda: f


CALLS = {
    "matmul": one_call(lambda: librepdl.matmul(same(0.3, 4000, 20000), same(0.7, 20000, 4000))),
    "fma_chain": one_call(lambda: librepdl.matmul(same(0.3, 4000, 20000), same(0.7, 20000, 4000), accumulate="fma_chain")),
    "conv2d": one_call(lambda: librepdl.conv2d(same(0.3, 64, 256, 64, 64), same(0.7, 256, 256, 3, 3), padding=1)),
    "conv2d of few channels": one_call(lambda: librepdl.conv2d(same(0.3, 4000, 3, 128, 128), same(0.7, 3, 3, 5, 5))),
    "one sum": one_call(lambda: librepdl.sum(same(0.3, 1 << 37))),
    "sums": one_call(lambda: librepdl.mean(same(0.3, 1 << 16, 1 << 21), axis=1)),
    "sums of columns": one_call(lambda: librepdl.sum(same(0.3, 1 << 21, 1 << 16), axis=0)),
    "rows": one_call(lambda: librepdl.logsumexp(same(0.3, 1 << 20, 1 << 15), axis=1)),
    "long rows": one_call(lambda: librepdl.logsumexp(same(0.3, 1 << 12, 1 << 22), axis=1)),
    "cross_entropy": one_call(lambda: librepdl.cross_entropy(same(0.3, 1 << 20, 1 << 14), np.zeros(1 << 20, np.int64))),
    "loss": one_call(lambda: librepdl.binary_cross_entropy_with_logits(same(0.3, 1 << 34), same(0.7, 1 << 34))),
    "norm of a list": one_call(lambda: librepdl.total_norm([same(0.3, 1 << 36)])),
    "elementwise, prepared": many_calls,
}


def interrupt_after(seconds):
    """Sends SIGINT; when it did so is the first element of the list."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, send)
    timer.start()
    return timer, sent


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CALLS)
def test_the_call_ends(name, threads):
    x = np.linspace(-3, 3, 1 << 17, dtype=np.float32)
    before, handler = librepdl.exp(x), signal.getsignal(signal.SIGINT)
    with librepdl.context(threads=threads):
        call = CALLS[name]()
        timer, sent = interrupt_after(0.2)
        try:
            with pytest.raises(KeyboardInterrupt):
                call()
            took = time.monotonic() - sent[0]
        finally:
            timer.join()
        assert took < 1, took
        # The next one goes on to its end, and Python's own handler is there again.
        assert librepdl.exp(x).tobytes() == before.tobytes()
    assert signal.getsignal(signal.SIGINT) is handler is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)


def work():
    """Takes some tenths of a second."""
    return librepdl.sum(same(0.3, 1 << 28))


def test_another_handler_lets_the_call_go_on():
    want, caught = work(), []
    signal.signal(signal.SIGINT, lambda *_: caught.append(1))
    try:
        timer, _ = interrupt_after(0.05)
        got = work()
        time.sleep(0.1)
        assert caught == [1] and got.tobytes() == want.tobytes()
    finally:
        timer.join()


def test_calls_of_other_threads_go_on():
    want, got = work(), []
    thread = threading.Thread(target=lambda: got.append(work()))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)
    thread.join()
    assert got[0].tobytes() == want.tobytes()
