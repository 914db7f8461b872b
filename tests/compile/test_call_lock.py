"""One thread at a time is in a compiled function: who waits, and what ends a wait."""

from __future__ import annotations

import signal
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy


class Slow:
    """A function that takes long to be recorded, and waits for `go` then."""

    def __init__(self) -> None:
        self.pc = dy.ParameterCollection()
        self.E = self.pc.lookup_parameters_from_numpy(np.arange(36, dtype=np.float32).reshape(9, 4))
        self.inside, self.most, self.began, self.go = 0, 0, threading.Event(), threading.Event()

    def __call__(self, rows: list[int]) -> Any:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.began.set()
        assert self.go.wait(20)
        time.sleep(0.01)
        self.inside -= 1
        return dy.sum_elems(dy.esum([self.E[row] for row in rows]))


def test_others_wait() -> None:
    slow = Slow()
    slow.go.set()
    f = dy.compile(lambda rows: slow(rows))
    found: dict[int, list[float]] = {n: [] for n in range(1, 7)}

    def work(n: int) -> None:
        for _ in range(20):
            found[n].append(f([n] * n))

    threads = [threading.Thread(target=work, args=(n,)) for n in found]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    assert slow.most == 1
    assert found == {n: [n * (16.0 * n + 6)] * 20 for n in found}


def test_a_call_inside_a_call() -> None:
    """As the function itself makes one where it is not compiled: others wait until the outer one is done."""
    slow = Slow()
    slow.go.set()
    inner: list[float] = []

    def total(rows: list[int]) -> Any:
        if len(rows) > 1:
            inner.append(f(rows[1:]))
        return slow(rows)

    f = dy.compile(total)
    found: list[float] = []
    threads = [threading.Thread(target=lambda: found.append(f([1, 2, 3])), daemon=True) for _ in range(4)]
    with dy.configure(compile=False):
        for t in threads:
            t.start()
        for t in threads:
            t.join(10)
    assert found == [114.0] * 4
    assert len(inner) == 8
    assert slow.most == 1


def test_an_error_lets_others_in() -> None:
    slow = Slow()

    @dy.compile
    def fails(rows: list[int]) -> Any:
        loss = slow(rows)
        return loss if len(rows) > 1 else rows[3]

    first = threading.Thread(target=lambda: pytest.raises(IndexError, fails, [1]))
    first.start()
    assert slow.began.wait(20)
    second = threading.Thread(target=lambda: fails([1, 2]))
    second.start()
    slow.go.set()
    first.join(30)
    second.join(30)
    assert not first.is_alive() and not second.is_alive()
    assert fails([1, 2]) == 60.0


@pytest.mark.skipif(sys.platform == "win32", reason="threads get no signals there")
def test_a_wait_is_interrupted() -> None:
    slow = Slow()
    f = dy.compile(lambda rows: slow(rows))
    other = threading.Thread(target=lambda: f([1]))
    other.start()
    assert slow.began.wait(20)
    me, before = threading.get_ident(), signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs of a shell ignore it
    try:
        threading.Timer(0.3, lambda: signal.pthread_kill(me, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            f([2])
    finally:
        signal.signal(signal.SIGINT, before)
        slow.go.set()
    other.join(30)
    assert [f([1]), f([2])] == [22.0, 38.0]
