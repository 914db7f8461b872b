"""What rewrites make of a cell when it is recorded: fewer nodes per call, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

Both = Callable[..., None]
SIZE = 16


class Gates:
    """An LSTM over two children, its gates written one by one, over a table of words."""

    def __init__(self) -> None:
        self.pc = dy.ParameterCollection()
        self.W = [[self.pc.add_parameters((SIZE, SIZE)) for _ in range(2)] for _ in range(5)]
        self.b = [self.pc.add_parameters(SIZE) for _ in range(5)]
        self.E = self.pc.add_lookup_parameters((20, SIZE))

        @dy.cell
        def inner(left: Any, right: Any) -> Any:
            i, o, u, f, g = (W[0] * left.h + W[1] * right.h + b for W, b in zip(self.W, self.b, strict=True))
            c = dy.cmult(dy.logistic(i), dy.tanh(u))
            c = c + dy.cmult(dy.logistic(f), left.c) + dy.cmult(dy.logistic(g), right.c)
            return dy.state(h=dy.cmult(dy.logistic(o), dy.tanh(c)), c=c)

        self.inner = inner

    def leaf(self, word: int) -> Any:
        return dy.state(h=self.E[word], c=self.E[word + 1])

    def program(self) -> tuple[Any, list[Any]]:
        below = [self.leaf(k) for k in range(8)]
        shown = []
        while len(below) > 1:
            below = [self.inner(below[k], below[k + 1]) for k in range(0, len(below), 2)]
            shown += [below[-1].c, below[0].h]
        return dy.squared_norm(below[0].h) + dy.sum_elems(below[0].c), shown


def nodes_of_a_call(net: Gates) -> int:
    dy.renew_cg()
    dy.esum([p * net.E[0] for p in net.W[0]])  # all weights are in the graph after a first call
    net.inner(net.leaf(1), net.leaf(2))
    leaves = net.leaf(3), net.leaf(4)
    before = len(dy.cg())
    net.inner(*leaves)
    return len(dy.cg()) - before


def test_gates_by_hand_are_three_nodes() -> None:
    """All maps in one, then c and h: the function makes 32."""
    net = Gates()
    assert nodes_of_a_call(net) == 3
    with dy.configure(fuse=False):
        assert nodes_of_a_call(net) == 32
    with dy.configure(cells="inline"):
        assert nodes_of_a_call(net) == 32


def test_as_inline(both: Both) -> None:
    net = Gates()
    both(net.pc, net.program)


def test_batches_are_those_of_the_function() -> None:
    """As many, with the same ops: what cells have become beforehand is what it would have become in the graph."""
    net = Gates()

    def batches(how: str) -> list[Any]:
        with dy.configure(cells=how):
            dy.renew_cg()
            net.program()[0].value()
            return [(o.op, o.batches, o.nodes) for o in dy.explain_batches().ops]

    assert batches("recorded") == batches("inline")


@pytest.mark.parametrize("shown", [(), (0,), (3,), (1, 4)])
@pytest.mark.parametrize("used", [(0, 1, 2, 3, 4, 5), (0, 2, 4), (1,), (0, 3)])
def test_parts_of_joined_maps_that_nobody_reads(both: Both, used: tuple[int, ...], shown: tuple[int, ...]) -> None:
    """A chain does not run, for nothing needs it, or is computed once for several calls: its part has no gradient of its own."""
    model = dy.ParameterCollection()
    W, b = [model.add_parameters((SIZE, SIZE)) for _ in range(6)], model.add_parameters(SIZE)
    E = model.add_lookup_parameters((5, SIZE))

    @dy.cell
    def gates(x: Any, h: Any) -> Any:
        i, f, g = (V * x + U * h + b for V, U in zip(W[:3], W[3:], strict=True))
        return dy.tanh(i), dy.cmult(dy.logistic(f), dy.tanh(g))

    def program() -> tuple[Any, list[Any]]:
        given = [y for _ in range(3) for y in gates(E[1], E[2])]
        return dy.esum([dy.squared_norm(given[k]) for k in used]), [given[k] for k in shown]

    both(model, program, exact=False)


def test_weights_that_are_frozen_later() -> None:
    """What depends on frozen weights and inputs alone has no gradient, though its map was joined with that of a trained one."""
    model = dy.ParameterCollection()
    frozen, trained = model.add_parameters((SIZE, SIZE)), model.add_parameters((SIZE, SIZE))
    two = dy.cell(lambda x: (dy.tanh(frozen * x), dy.logistic(trained * x)))

    def gradients() -> list[bool]:
        dy.renew_cg()
        given = two(dy.inputVector(np.ones(SIZE)))
        dy.sum_elems(dy.cmult(*given)).backward()
        return [bool(e.gradient().any()) for e in given]

    for _ in range(2):
        assert gradients() == [True, True]
        frozen.set_updated(False)
        assert gradients() == [False, True] and two.signatures() == 1
        frozen.set_updated(True)


def test_other_rewrites_record_anew() -> None:
    net = Gates()
    first = nodes_of_a_call(net)
    with dy.configure(rewrites="-join"):
        assert nodes_of_a_call(net) == 7  # five maps, c and h
        dy.renew_cg()
        apart = net.program()[0].value()
    assert nodes_of_a_call(net) == first and net.inner.signatures() == 1
    dy.renew_cg()
    assert net.program()[0].value() == pytest.approx(apart, rel=1e-6)


def test_what_nobody_reads_draws_its_random_numbers() -> None:
    """They are those that the function would draw, though its node is left out."""

    @dy.cell
    def noisy(x: Any) -> Any:
        dy.dropout(x, 0.5)
        y = dy.noise(x, 1.0)
        dy.random_normal(4)
        return y

    def run(how: str) -> list[Any]:
        with dy.configure(cells=how):
            dy.reset_random_seed(7)
            dy.renew_cg()
            x = dy.inputVector(np.arange(4.0))
            return [noisy(x).npvalue() for _ in range(3)] + [dy.random_normal(3).npvalue()]

    for recorded, inline in zip(run("recorded"), run("inline"), strict=True):
        assert np.array_equal(recorded, inline)


def test_numbers_that_were_equal_when_it_was_recorded() -> None:
    """Two look-ups, two picks: nodes that differ in the numbers of a call are not one."""
    net = Gates()
    cell = dy.cell(lambda a, b, k, n: dy.pick(dy.tanh(net.E[a] + dy.tanh(net.E[b])), k) + dy.pick(dy.tanh(net.E[b]), n))
    for numbers in ((1, 1, 2, 2), (3, 4, 5, 6), (4, 3, 6, 5)):
        dy.renew_cg()
        assert cell(*numbers).value() == cell.function(*numbers).value()


@pytest.mark.parametrize("first", ["row", "computed"])
def test_long_rows_of_a_table_stay_by_themselves(first: str) -> None:
    """W * word of all words is one batch, if the words are rows of a table (the pass `sum`): an argument may be either."""
    size = 160
    pc = dy.ParameterCollection()
    W, U, E = pc.add_parameters((8, size)), pc.add_parameters((8, size)), pc.add_lookup_parameters((9, size))
    step = dy.cell(lambda x, h: dy.tanh(W * x + U * h))

    def batches(how: str, kind: str) -> list[Any]:
        with dy.configure(cells=how):
            dy.renew_cg()
            h = dy.inputVector(np.ones(size))
            xs = [E[k] if kind == "row" else dy.inputVector(np.full(size, k)) for k in range(4)]
            dy.esum([dy.sum_elems(step(x, h)) for x in xs]).value()
            return [(o.op, o.batches, o.nodes) for o in dy.explain_batches().ops]

    kinds = [first, {"row": "computed", "computed": "row"}[first]]
    for kind in kinds:
        assert batches("recorded", kind) == batches("inline", kind)
    assert batches("recorded", "row") != batches("recorded", "computed")


def test_weights_as_arguments_are_left_to_the_graph(both: Both) -> None:
    """Which are joined depends on what they are: another one at each call, and what is computed is one, too."""
    pc = dy.ParameterCollection()
    W = [pc.add_parameters((SIZE, SIZE)) for _ in range(4)]
    b = pc.add_parameters(SIZE)
    gate = dy.cell(lambda V, U, x: dy.cmult(dy.logistic(V * x + b), dy.tanh(U * x)))

    def program() -> tuple[Any, list[Any]]:
        x = dy.inputVector(np.linspace(-1, 1, SIZE))
        hidden = [gate(W[0], W[1], x), gate(W[2], W[3], x), gate(W[0] + W[1], W[2], x)]
        return dy.esum([dy.squared_norm(h) for h in hidden]), hidden

    both(pc, program)


def test_a_map_over_rows_and_what_is_computed() -> None:
    """The signature says which an argument is, also where the one before looked alike."""
    pc = dy.ParameterCollection()
    W, E = pc.add_parameters((SIZE, SIZE)), pc.add_lookup_parameters((5, SIZE))
    b = pc.add_parameters(SIZE)
    cell = dy.cell(lambda x: dy.tanh(W * x))
    dy.renew_cg()
    dy.map(cell, [E[1], dy.tanh(E[2]), E[3], b.expr()])
    assert cell.signatures() == 3
    cell(E[4])
    assert cell.signatures() == 3
