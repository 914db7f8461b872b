"""Nodes that are like those before them are added without being looked at again (graph/repeat.h): what may still differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    dy.reset_random_seed(1)
    dy.renew_cg()
    yield
    dy.renew_cg()


def vectors(n: int, size: int = 3) -> list[Any]:
    return [dy.inputTensor(np.sin(np.arange(size) + 7.0 * k)) for k in range(n)]


def same(cell: Any, function: Callable[..., Any], *lists: Any) -> None:
    made = [np.asarray(e.npvalue()) for e in dy.map(cell, *lists)]
    for one, row in zip(made, zip(*lists, strict=True), strict=True):
        assert one.tobytes() == np.asarray(function(*row).npvalue()).tobytes()


@pytest.mark.parametrize("n", [2, 8, 9, 32, 33])
def test_many_arguments(n: int) -> None:
    """Up to some numbers of arguments there is a short way."""
    model = dy.ParameterCollection()
    weights = [model.add_parameters(3) for _ in range(n - 1)]

    def fixed(x: Any) -> Any:
        return dy.esum([x, *weights])

    def moving(x: Any) -> Any:
        return dy.esum([dy.cmult(x, W) for W in weights])

    for function in (fixed, moving):
        same(dy.cell(lambda x, f=function: f(x)), function, vectors(70))


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
