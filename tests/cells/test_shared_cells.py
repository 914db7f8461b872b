"""One cell for several threads, each with a graph of its own, and for what is called while its arguments are looked at."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

MODE = "a"


@pytest.fixture
def quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Any, seconds: float = 1.5) -> list[str]:
    """What is wrong: work(random numbers) says it, in three threads, again and again."""
    wrong: list[str] = []
    stop = time.monotonic() + seconds

    def run(seed: int) -> None:
        rng = random.Random(seed)
        while time.monotonic() < stop and not wrong:
            try:
                wrong.extend(work(rng))
            except Exception as error:
                wrong.append(repr(error))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def test_what_the_cell_reads_changes(quick_switches: None) -> None:
    """It is looked up by Python code in the midst of a call."""

    @dy.cell
    def f(x: Any) -> Any:
        return dy.tanh(x) if MODE else dy.tanh(x)

    def work(rng: random.Random) -> Iterator[str]:
        global MODE
        dy.renew_cg()
        xs = [dy.inputVector(np.full(5, i / 100)) for i in range(rng.randrange(1, 60))]
        MODE = rng.choice("abcdefgh")
        k = len(xs) - 1
        if abs(f(xs[k]).npvalue() - np.tanh(k / 100)).max() > 1e-5:
            yield f"another call's result for input {k}"

    assert not in_threads(work)


def test_map_scan_and_recurse(quick_switches: None) -> None:
    """With results of several parts: while they are put together, the collector may let other threads in."""
    m = dy.ParameterCollection()
    W = m.add_parameters((3, 3), init=0.1)

    @dy.cell
    def step(s: Any, x: Any) -> Any:
        h = dy.tanh(W * s[0] + x) if MODE else dy.tanh(W * s[0] + x)
        return (h, s[1] + h)

    def work(rng: random.Random) -> Iterator[str]:
        global MODE
        dy.renew_cg()
        for _ in range(rng.randrange(20)):
            dy.inputVector([1.0])
        MODE = rng.choice("abcdefgh")
        n = rng.randrange(2, 12)
        xs = [dy.inputVector(np.full(3, i / 10)) for i in range(n)]
        states, last = dy.scan(step, (dy.zeros(3), dy.zeros(3)), xs)
        h, total = np.zeros(3), np.zeros(3)
        for i in range(n):
            h = np.tanh(np.full(3, 0.1 * h.sum()) + i / 10)
            total = total + h
        if abs(last[1].npvalue() - total).max() > 1e-4 or abs(states[-1][0].npvalue() - h).max() > 1e-4:
            yield f"a wrong state after {n} steps"

    assert not in_threads(work)


class Parts(tuple):  # type: ignore[type-arg]
    """A kind of tuple of the user's."""

    def __new__(cls, *parts: Any) -> Any:
        return tuple.__new__(cls, parts)


@pytest.mark.parametrize("how", [dy.cell, dy.compile])
@pytest.mark.parametrize("kind", [dy.GRUBuilder, dy.StandardSoftmaxBuilder, dy.NaryTreeLSTMBuilder])
def test_builders_that_threads_share(how: Any, kind: Any, quick_switches: None) -> None:
    """What one makes of its weights in a graph is not taken away by threads that make theirs meanwhile."""
    model = dy.ParameterCollection()
    table = model.add_lookup_parameters((3, 4))
    sizes = {dy.GRUBuilder: (1, 4, 4), dy.StandardSoftmaxBuilder: (4, 4), dy.NaryTreeLSTMBuilder: (2, 1, 4, 4)}
    builder = kind(*sizes[kind], model)

    def one(x: Any) -> Any:
        if kind is dy.GRUBuilder:
            return builder.initial_state().add_input(x).output()
        if kind is dy.NaryTreeLSTMBuilder:
            return builder.node(x, [None, builder.node(x)], update=False).output()
        return builder.full_logits(x, update=False)

    def work(rng: random.Random) -> list[str]:
        f = how(lambda *words: dy.esum([one(table[word]) for word in words]))
        dy.renew_cg()
        f(*[1] * 60)
        return []

    assert not in_threads(work, 0.5)


def test_an_argument_that_calls_the_cell() -> None:
    @dy.cell
    def double(xs: Any) -> Any:
        return dy.esum(list(xs))

    class Pair(Parts):
        def __iter__(self) -> Iterator[Any]:
            double((dy.inputVector([7.0]), dy.inputVector([8.0])))
            return tuple.__iter__(self)

    dy.renew_cg()
    x, y = dy.inputVector([1.0]), dy.inputVector([2.0])
    for _ in range(3):
        assert double(Pair(x, y)).value() == 3.0


def test_an_argument_that_empties_the_graph() -> None:
    @dy.cell
    def double(xs: Any) -> Any:
        return dy.esum(list(xs))

    class Pair(Parts):
        def __iter__(self) -> Iterator[Any]:
            yield from tuple.__iter__(self)
            dy.renew_cg()

    dy.renew_cg()
    pair = Pair(dy.inputVector([1.0]), dy.inputVector([2.0]))
    double((dy.inputVector([1.0]), dy.inputVector([2.0])))
    with pytest.raises(RuntimeError, match="renewed"):
        double(pair)
