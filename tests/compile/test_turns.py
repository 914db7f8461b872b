"""Structures of one compiled function take turns in the same memory, and none is planned again for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy


class Trees:
    """A recursive network with a row of a wide table at each leaf."""

    def __init__(self) -> None:
        self.pc = dy.ParameterCollection()
        self.E = self.pc.add_lookup_parameters((9, 400))
        self.W = self.pc.add_parameters((400, 800))
        self.V = self.pc.add_parameters((5, 400))

    def node(self, tree: Any) -> Any:
        if isinstance(tree, int):
            return self.E[tree]
        return dy.tanh(self.W * dy.concatenate([self.node(tree[0]), self.node(tree[1])]))

    def loss(self, tree: Any, label: int) -> Any:
        return dy.pickneglogsoftmax(self.V * self.node(tree), label)


def chain(n: int) -> Any:
    tree: Any = 0
    for k in range(1, n):
        tree = (tree, k % 9)
    return tree


SIZES = (3, 30, 8, 60)  # larger and larger ones: the memory moves


@pytest.fixture
def m() -> Trees:
    return Trees()


def test_memory_is_that_of_one(m: Trees) -> None:
    f = dy.compile(m.loss, backward=True)
    reserved = []
    for _ in range(3):
        for n in SIZES:
            f(chain(n), 1)
            g = f.run_again()
            reserved.append((g.stats()["value_bytes"], g.stats()["gradient_bytes"]))
    last = reserved[-len(SIZES) :]
    assert last == last[:1] * len(SIZES)
    assert last[0][0] > 1 << 16  # more than any memory has


@pytest.mark.parametrize("threads", [1, 2])
def test_plans_hold(m: Trees, threads: int) -> None:
    with dy.configure(threads=threads):
        f = dy.compile(m.loss, trainer=dy.SimpleSGDTrainer(m.pc, learning_rate=1e-3))
        for _ in range(5):
            for n in SIZES:
                f(chain(n), 1)
        for n in SIZES:
            f(chain(n), 2)
            before = f.run_again().stats()
            for other in SIZES:
                f(chain(other), 3)
            f(chain(n), 2)
            after = f.run_again().stats()
            for planned in ("plans", "backward_plans"):
                assert after[planned] == before[planned], (n, planned)


def test_numbers_in_turns(m: Trees) -> None:
    start = [p.as_array() for p in (m.W, m.V, m.E)]
    rng = np.random.RandomState(1)
    calls = [(chain(int(rng.choice(SIZES))), int(rng.randint(5))) for _ in range(40)]
    found = []
    for compiled in (True, False):
        for p, a in zip((m.W, m.V, m.E), start, strict=True):
            (p.init_from_array if p is m.E else p.set_value)(a)
        with dy.configure(compile=compiled):
            f = dy.compile(m.loss, trainer=dy.SimpleSGDTrainer(m.pc, learning_rate=0.1))
            found.append([np.array([f(*call) for call in calls]), *(p.as_array() for p in (m.W, m.V, m.E))])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.filterwarnings("ignore:.*has been recorded for more than")
def test_a_structure_that_goes(m: Trees) -> None:
    """Its memory is the others', too."""
    f = dy.compile(m.loss, backward=True, structures=2)
    wanted = {n: f(chain(n), 1) for n in SIZES}
    for _ in range(3):
        for n in SIZES:
            assert f(chain(n), 1) == wanted[n]
    f.forget_structures()
    assert f(chain(8), 1) == wanted[8]


@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize("keep", [False, True])
def test_rows_of_every_kind(same: Callable[..., None], keep: bool, seeded: bool) -> None:
    """Read where they lie, gathered when the graph runs, or copied when it was made, beside seeds or without."""
    pc = dy.ParameterCollection()
    E = pc.lookup_parameters_from_numpy(np.random.RandomState(1).uniform(-1, 1, (9, 4)).astype(np.float32))

    def loss(one: int, some: list[int]) -> Any:
        x = E[one] + dy.sum_batches(dy.lookup_batch(E, some)) + dy.sum_batches(dy.lookup_batch(E, [one]))
        return dy.squared_norm(dy.dropout(x, 0.5) if seeded else x)

    with dy.configure(keep_weights=keep):
        same(pc, loss, [(1, [2, 3]), (4, [5, 1]), (4, [6, 8])])
