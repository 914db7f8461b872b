"""Joined affine maps and their weights: computed ones, those that enter late, frozen ones; inputs without gradients.

Every case is one program run twice, fused and not; the numbers must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fused_programs import (
    Cell,
    Model,
    N,
    Observed,
    both,
    each_strategy,
    gradients,
    inputs,
    numbered,
    weighted,
)

import dynet_lite as dy


def test_weights_that_enter_between_the_gates() -> None:
    """The order in which weights enter the graph: each just before its gate, all of them first, the last gate's first."""

    def program(model: Model) -> Observed:
        found = []
        for order in ((), "ifgo", "o", "og"):
            dy.renew_cg()
            cell = Cell(model)
            for name in order:
                for s in "WU":
                    dy.parameter(model.weight(s + name, N, N)) * dy.zeros(N)
            xs = inputs()
            h, c = cell.step(*xs)
            (weighted(h) + weighted(c)).backward(full=True)
            found.append(gradients(model, xs))
        return numbered(*found)

    both(program)


def test_h0_as_a_parameter() -> None:
    """The first step reads weights alone on that side."""

    def program(model: Model) -> Observed:
        table = model.table(N)
        cell = Cell(model)
        losses = []
        for k in range(4):
            h, c = model.weight("h0", N), model.weight("c0", N)
            for t in range(3):
                h, c = cell.step(table[(k + t) % 7], h, c)
            losses.append(weighted(h, k))
        dy.esum(losses).backward()
        return gradients(model)

    both(program)
    both(program, threads=2)


WEIGHTS: dict[str, Callable[[Model, str], Any]] = {
    "transposed": lambda m, name: dy.transpose(m.weight(name, N, N)),
    "computed": lambda m, name: dy.tanh(m.weight(name, N, N)),
    "product": lambda m, name: m.weight(name, N, N) * m.weight("common", N, N),
    "reshaped": lambda m, name: dy.reshape(m.weight(name, N * N), (N, N)),
    "not trained": lambda m, name: dy.const_parameter(m.weight(name, N, N)),
    "without gradient": lambda m, name: dy.nobackprop(m.weight(name, N, N)),
    "input": lambda m, name: dy.inputTensor(m.weight(name, N, N).as_array()),
    "slices": lambda m, name: m.weight("all", 4 * N, N)["WU".index(name[0]) * N : ("WU".index(name[0]) + 1) * N],
    "one for all": lambda m, name: m.weight(name[0], N, N),
    "one for both": lambda m, name: m.weight(name[1], N, N),
    "tables": lambda m, name: dy.parameter(m.table(N, rows=N)),
}


@each_strategy
@pytest.mark.parametrize("kind", WEIGHTS)
def test_kinds_of_weights(kind: str, strategy: str) -> None:
    """Those that are no plain parameters; one gate of a cell may have another kind than the rest."""

    def program(model: Model) -> Observed:
        def gate(name: str, x: Any, h: Any) -> Any:
            if name == "g":
                return model.weight("Wg", N, N) * x + model.weight("Ug", N, N) * h
            return WEIGHTS[kind](model, "W" + name) * x + WEIGHTS[kind](model, "U" + name) * h

        x, h, c = xs = inputs()
        losses = []
        for k in range(3):
            new = dy.cmult(dy.logistic(gate("f", x, h)), c) + dy.cmult(
                dy.logistic(gate("i", x, h)), dy.tanh(gate("g", x, h))
            )
            h, c = dy.cmult(dy.logistic(gate("o", x, h)), dy.tanh(new)), new
            losses.append(weighted(h, k))
        loss = dy.esum(losses)
        loss.backward()
        first = gradients(model)
        loss.backward(full=True)
        return numbered(first, gradients(model, xs))

    both(program, strategy=strategy)


def test_weights_that_are_not_updated() -> None:
    def program(model: Model) -> Observed:
        for s in "WUb":
            for name in "if":
                model.weight(s + name, *((N,) if s == "b" else (N, N))).set_updated(False)
        xs = inputs()
        h, c = Cell(model).step(*xs)
        (weighted(h) + weighted(c)).backward(full=True)
        found = gradients(model, xs)
        (weighted(h) + weighted(c)).backward()
        dy.SimpleSGDTrainer(model.pc, 0.5).update()
        return numbered(found, {str(k): p.as_array() for k, p in model.made.items()})

    both(program)


def test_a_frozen_weight_beside_others() -> None:
    """Nothing that is trained leads to one of the chains: it has no gradient, as without fusing."""

    def program(model: Model) -> Observed:
        W, V = model.weight("W", N, N), model.weight("V", N, N)
        V.set_updated(False)
        x = inputs()[0]
        h, k = dy.tanh(W * x), dy.tanh(V * x)
        (weighted(h) + weighted(dy.softmax(dy.cmult(k, x)), 1)).backward()
        assert not k.gradient().any()
        return {**gradients(model), "h": h.gradient()}

    both(program)


@each_strategy
def test_inputs_without_gradients(strategy: str) -> None:
    """nobackprop on one of the inputs, on the state, on both; flipped gradients."""
    for stop_x in (dy.nobackprop, dy.flip_gradient, lambda e: e):
        for stop_h in (dy.nobackprop, lambda e: e):

            def program(model: Model, stop_x: Any = stop_x, stop_h: Any = stop_h) -> Observed:
                xs = x, h, c = inputs()
                y = dy.tanh(model.weight("W", N, N) * x)
                for _ in range(2):
                    h, c = Cell(model).step(stop_x(y), stop_h(h), c)
                loss = weighted(h) + weighted(c)
                loss.backward()
                first = gradients(model)
                loss.backward(full=True)
                return numbered(first, gradients(model, xs))

            both(program, strategy=strategy)


def test_frozen_rows() -> None:
    def program(model: Model) -> Observed:
        table, cell = model.table(N), Cell(model)
        h, c = inputs()[1:]
        for t in range(3):
            h, c = cell.step(dy.lookup(table, t, update=t != 1), h, c)
        weighted(h).backward()
        return gradients(model)

    both(program)
