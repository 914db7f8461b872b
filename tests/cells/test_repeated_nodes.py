"""Nodes that are like those before them are added without being looked at again (graph/repeat.h): what may still differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    dy.reset_random_seed(1)
    dy.renew_cg()
    yield
    dy.renew_cg()


def vectors(n: int, size: int = 3) -> list[Any]:
    return [dy.inputTensor(np.sin(np.arange(size) + 7.0 * k)) for k in range(n)]


def same(cell: Any, function: Callable[..., Any], *lists: Any) -> None:
    """The bits of each call, against the function alone in a graph of its own, where no node is like one before it."""
    made = [e.npvalue() for e in dy.map(cell, *lists)]
    for one, row in zip(made, zip(*lists, strict=True), strict=True):
        numbers = [v.npvalue() if type(v) is _core.InputExpression else v for v in row]
        with dy.graph():
            alone = function(*(dy.inputTensor(v) if isinstance(v, np.ndarray) else v for v in numbers)).npvalue()
        assert one.tobytes() == alone.tobytes()


@pytest.mark.parametrize("n", [2, 8, 9, 10, 32, 33])
def test_many_arguments(n: int) -> None:
    """Up to some numbers of arguments there is a short way."""
    model = dy.ParameterCollection()
    weights = [model.add_parameters(3) for _ in range(n - 1)]

    def fixed(x: Any) -> Any:
        return dy.esum([x, *weights])

    def moving(x: Any) -> Any:
        return dy.esum([dy.cmult(x, W) for W in weights])

    def mixed(x: Any) -> Any:
        return dy.esum([weights[0], *(dy.cmult(x, W) for W in weights)])

    for function in (fixed, moving, mixed):
        same(dy.cell(lambda x, f=function: f(x)), function, vectors(70))


def test_readers_are_counted() -> None:
    """Some weights have been read so often that nobody counts any more, others have not."""
    model = dy.ParameterCollection()
    W, V = model.add_parameters(3), model.add_parameters(3)
    before = _core.settings.verify
    _core.settings.verify = True
    try:
        for times in (200, 254, 255):
            dy.renew_cg()
            for x in vectors(times):
                dy.cmult(x, W)
            same(dy.cell(lambda x: dy.esum([x, W, V])), lambda x: dy.esum([x, W, V]), vectors(60))
    finally:
        _core.settings.verify = before


@pytest.mark.parametrize("recorded", [False, True])
def test_second_outputs(recorded: bool) -> None:
    """A part of a cell state lies where the cell state lies, not where the output does."""
    layers = dy.LSTMBuilder(1, 3, 4, dy.ParameterCollection())

    def state(x: Any) -> Any:
        c = layers.initial_state().add_input(x).s()[0]
        return c, dy.pick_range(c, 1, 3)

    xs = vectors(5)
    for c, part in dy.map(dy.cell(state), xs) if recorded else [state(x) for x in xs]:
        assert part.npvalue().tolist() == c.npvalue()[1:3].tolist()


@pytest.mark.parametrize("classes", [5, 200])
def test_labels_are_checked(classes: int) -> None:
    model = dy.ParameterCollection()
    W = model.add_parameters((classes, 3))

    @dy.cell
    def loss(x: Any, label: dy.Index) -> Any:
        return dy.pickneglogsoftmax(W * x, label)

    xs = vectors(60)
    labels = [k % classes for k in range(60)]
    same(loss, lambda x, label: dy.pickneglogsoftmax(W * x, label), xs, labels)
    for wrong in (classes, -1, 64 + classes):
        with pytest.raises(IndexError, match=f"label {wrong} is out of range"):
            dy.map(loss, xs, [*labels[:-1], wrong])


def test_labels_of_other_shapes() -> None:
    """A label that was right for one shape is not for another."""

    @dy.cell
    def loss(x: Any, label: dy.Index) -> Any:
        return dy.pickneglogsoftmax(x, label)

    for size in (6, 3, 6):
        assert len(dy.map(loss, vectors(4, size), [0, 1, 2, size - 1])) == 4
        with pytest.raises(IndexError, match=f"label {size} is out of range"):
            dy.map(loss, vectors(4, size), [0, 1, 2, size])


def test_weights_among_arguments() -> None:
    model = dy.ParameterCollection()
    W, V = model.add_parameters(3), model.add_parameters(3)
    x, y = vectors(2)
    join = dy.cell(lambda a, b: dy.cmult(a, b) + a)
    same(join, lambda a, b: dy.cmult(a, b) + a, [x, W, y, V, W, x, W], [y, x, W, V, V, y, x])


def test_arguments_given_back() -> None:
    """Of a cell that gives back what it got, after nodes behind that have gone."""
    model = dy.ParameterCollection()
    E = model.add_lookup_parameters((10, 3))
    hs = dy.LSTMBuilder(1, 3, 4, model).initial_state().transduce(E.rows([1, 2, 3]), lengths=[1, 2])
    dy.cg_checkpoint()
    dy.zeros(3)
    dy.cg_revert()
    given = dy.map(dy.cell(lambda h: h), hs)
    assert [h.npvalue().tolist() for h in given] == [h.npvalue().tolist() for h in hs]


BUILDERS = [dy.LSTMBuilder, dy.SimpleRNNBuilder, dy.GRUBuilder, dy.CoupledLSTMBuilder, dy.FastLSTMBuilder]


@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("builder", BUILDERS)
def test_runs_of_builders(builder: Any, rate: float) -> None:
    """Runs add what single steps add, which immediate mode looks for node by node."""

    def outputs(immediate: bool) -> list[bytes]:
        dy.reset_random_seed(5)
        dy.renew_cg(immediate_compute=immediate)
        xs = [*vectors(70), *(dy.inputTensor(np.full((3, n), 0.1 * n), batched=True) for n in (2, 2, 1, 2))]
        start = layers.initial_state()
        hs = [*start.transduce(xs), *start.transduce(xs[:70], lengths=[30, 0, 39, 1], reverse=True)]
        for x in xs[60:]:
            start = start.add_input(x)
            hs.append(start.output())
        return [h.npvalue().tobytes() for h in hs]

    layers = builder(2, 3, 4, dy.ParameterCollection())
    if rate:
        layers.set_dropout(rate)
    assert outputs(False) == outputs(True)


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_after_nodes_have_gone(rate: float) -> None:
    """With them signatures go, whose numbers others get."""
    layers = dy.LSTMBuilder(1, 3, 4, dy.ParameterCollection())
    layers.set_dropout(rate)
    dy.renew_cg()
    xs, start, found = vectors(4), layers.initial_state(), []
    start.transduce(vectors(1))  # masks are made with the first input
    for others in (0, 3):
        dy.cg_checkpoint()
        y = vectors(1, 7)[0]
        for _ in range(others):
            y = dy.tanh(dy.concatenate([y, y]))
        dy.dot_product(y, y)
        found.append([h.npvalue().tobytes() for h in start.transduce(xs)])
        dy.cg_revert()
    assert found[0] == found[1]


@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("steps", [1, 2])
def test_plans_of_steps_in_cells(steps: int, rate: float) -> None:
    """Projections are the cell's own, whose outputs may lie over them: no more memory than without recording. Dropout masks
    are kept for steps to come, also those that no step has read."""
    layers, plans = dy.LSTMBuilder(1, 3, 4, dy.ParameterCollection()), []
    if rate:
        layers.set_dropout(rate)

    def last(x: Any, y: Any) -> Any:
        state = layers.initial_state().add_input(x)
        return (state.add_input(y) if steps == 2 else state).output()

    for cells in ("recorded", "inline"):
        with dy.configure(cells=cells):
            dy.renew_cg()
            xs = vectors(6)
            dy.sum_elems(dy.esum(dy.map(dy.cell(last), xs, xs[::-1]))).value()
            plans.append([line.split("\t")[:2] for line in dy.plan_text().splitlines()])
    assert plans[0] == plans[1]
