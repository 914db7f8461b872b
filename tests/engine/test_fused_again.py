"""Fused graphs that run again: new inputs, marks, building on after a value, updates in between.

Every case is one program run twice, fused and not; the numbers must agree.
"""

from __future__ import annotations

import numpy as np
import pytest
from fused_programs import (
    GATES,
    Cell,
    Model,
    N,
    Observed,
    both,
    each_strategy,
    each_way,
    gradients,
    inputs,
    near,
    numbered,
    ops,
    weighted,
)

import dynet_lite as dy
from dynet_lite import _core

# ---- running again ----------------------------------------------------------------------------------------------------


@each_strategy
@each_way
def test_new_inputs(way: str, strategy: str) -> None:
    """InputExpression.set() and LookupExpression.set() after everything was fused."""

    def program(model: Model) -> Observed:
        row = model.table(N)[2]
        x, h, c = inputs()
        h1, c1 = Cell(model, way).step(x, h, c)
        h2, c2 = Cell(model, way).step(row, h1, c1)
        loss = weighted(h2) + weighted(c2)
        found = []
        for k in range(3):
            loss.backward(full=True)
            found.append({"h": h2.npvalue(), **gradients(model, [x, h, c])})
            x.set(np.random.default_rng(k).uniform(-1, 1, N))
            if k:
                row.set(4)
        found.append({"h": h2.npvalue(), "c": c2.npvalue(), "loss": loss.npvalue()})
        return numbered(*found)

    both(program, strategy=strategy)


def test_recalculation_fuses_what_was_let_go_since() -> None:
    def program(model: Model) -> Observed:
        x, h, c = inputs()
        counts = [0]

        def ran() -> int:
            counts.append(dy.stats()["nodes"])
            return counts[-1] - counts[-2]

        a = dy.tanh(x)
        b = dy.cmult(a, h)
        y = dy.exp(b) + c
        first, kept = y.npvalue(), a.npvalue()
        assert ran() == (3 if _core.settings.fuse else 4)  # exp runs inside the sum
        near(y.npvalue(recalculate=True), first, 0)
        near(a.npvalue(), kept, 0)
        ran()
        del b
        near(y.npvalue(recalculate=True), first, 0)
        near(a.npvalue(), kept, 0)
        ran()
        del a
        x.set(np.linspace(-1, 1, N))
        last = y.npvalue()
        assert ran() < 3 or not _core.settings.fuse
        near(last, np.exp(np.tanh(np.linspace(-1, 1, N)) * h.npvalue()) + c.npvalue(), 1e-6)
        weighted(y).backward(full=True)
        return {"first": first, "last": last, **gradients(model, [x, h, c])}

    both(program)


@each_way
def test_joined_only_when_run_again(way: str) -> None:
    """Gates that ran apart, with losses between them, are joined when all runs again: weights stand behind losses."""

    def program(model: Model) -> Observed:
        cell = Cell(model, way)
        xs = x, h, c = inputs()
        i = dy.logistic(cell.gate("i", x, h))
        early = weighted(i)
        found = [{"i": i.npvalue()}]
        g = dy.tanh(cell.gate("g", x, h))
        middle = weighted(dy.cmult(g, c))
        early.backward()
        found.append({"middle": middle.npvalue(), **gradients(model)})
        late = weighted(dy.cmult(dy.logistic(cell.gate("o", x, h)), dy.tanh(dy.cmult(i, g) + c)))
        late.backward()
        found.append({"late": late.npvalue(), **gradients(model)})
        del i, g
        for k in range(2):
            x.set(np.random.default_rng(k).uniform(-1, 1, N))
            for loss in (early, late, middle, late, early):
                loss.backward(full=k > 0)
                found.append({"value": loss.npvalue(), **gradients(model, xs if k else ())})
        if _core.settings.fuse and way == "affine_transform":  # the others are fused from the first run on
            assert "joined" in ops()
        return numbered(*found)

    both(program)
    both(program, threads=2)


def test_set_index_after_fusing() -> None:
    def program(model: Model) -> Observed:
        x, h, c = inputs()
        h1, _ = Cell(model).step(x, h, c)
        one = dy.pick(h1, 1)
        loss = dy.square(one)
        found = []
        for k in (1, 6, 0):
            one.set_index(k)
            loss.backward(full=True)
            found.append({"value": loss.npvalue(), "one": one.npvalue(), **gradients(model, [x, h, c])})
            near(one.npvalue(), h1.npvalue()[k : k + 1], 0)
        return numbered(*found)

    both(program)


def test_random_nodes_draw_the_same() -> None:
    """Numbers drawn do not depend on what is fused, the first time and when all is drawn anew."""

    def program(model: Model) -> Observed:
        _core.set_seed(3)
        dy.renew_cg()
        x, h, c = inputs()
        y = dy.tanh(dy.cmult(dy.dropout(dy.tanh(x), 0.5), dy.noise(h, 0.1)) + dy.exp(dy.random_normal(N)))
        first = y.npvalue()
        again = y.npvalue(recalculate=True)
        assert not np.array_equal(first, again)
        weighted(y).backward(full=True)
        return {"first": first, "again": again, **gradients(model, [x, h])}

    both(program)


# ---- marks ------------------------------------------------------------------------------------------------------------


@each_way
def test_marks(way: str) -> None:
    """Steps are tried and taken back, as a search does."""

    def program(model: Model) -> Observed:
        cell, found = Cell(model, way), []
        x, h, c = inputs()
        h1, c1 = cell.step(x, h, c)
        for k in range(3):
            dy.cg_checkpoint()
            h2, c2 = cell.step(inputs(k)[0], h1, c1)
            dy.cg_checkpoint()
            h3, c3 = cell.step(inputs(k + 5)[0], h2, c2)
            loss = weighted(h3) + weighted(c2)
            loss.backward(full=True)
            found.append({"value": h3.npvalue(), **gradients(model, [x, h, c])})
            dy.cg_revert()
            loss = weighted(h2)
            loss.backward(full=True)
            found.append({"value": h2.npvalue(), **gradients(model, [x, h, c])})
            dy.cg_revert()
        loss = weighted(h1) + weighted(c1)
        loss.backward(full=True)
        return numbered(*found, {"value": h1.npvalue(), **gradients(model, [x, h, c])})

    both(program)


def test_what_a_mark_keeps_stays_as_it_is() -> None:
    """Running again behind a mark must not make nodes before it depend on what revert() drops."""

    def program(model: Model) -> Observed:
        x = inputs()[0]
        a = dy.tanh(x)
        b = a * 2.0
        y = dy.exp(b) + x
        y.npvalue()
        dy.cg_checkpoint()
        del a, b
        x.set(np.linspace(-1, 1, N))
        found = [{"y": y.npvalue()}]
        dy.cg_revert()
        for k in range(3):
            x.set(np.linspace(-0.5, 1 + k, N))
            others = dy.esum([dy.cos(x * float(k)) + x for k in range(20)])
            weighted(others + y).backward(full=True)
            found.append({"y": y.npvalue(), "others": others.npvalue(), **gradients(model, [x])})
            near(y.npvalue(), np.exp(2 * np.tanh(x.npvalue())) + x.npvalue(), 1e-5)
        return numbered(*found)

    both(program)


def test_maps_on_both_sides_of_a_mark_are_not_joined() -> None:
    def program(model: Model) -> Observed:
        x = inputs()[0]
        y = dy.tanh(model.weight("W", N, N) * x)
        y.npvalue()
        dy.cg_checkpoint()
        z = dy.logistic(model.weight("V", N, N) * x)
        found = [{"z": z.npvalue()}]
        x.set(np.linspace(-1, 1, N))
        weighted(y + z).backward()
        found.append({"y": y.npvalue(), "z": z.npvalue(), **gradients(model)})
        dy.cg_revert()
        x.set(np.linspace(-0.5, 1, N))
        others = dy.esum([dy.cos(x * float(k)) + x for k in range(20)])
        others.npvalue()
        weighted(y).backward()
        return numbered(*found, {"y": y.npvalue(), **gradients(model)})

    both(program)


# ---- building on, updates -----------------------------------------------------------------------------------------------


@each_way
def test_values_in_between(way: str) -> None:
    """Gates whose sums were made before a value() was asked for, and are read after it."""

    def program(model: Model) -> Observed:
        cell = Cell(model, way)
        xs = x, h, c = inputs()
        i, f = cell.gate("i", x, h), cell.gate("f", x, h)
        first = dy.logistic(i).npvalue()
        g = dy.tanh(cell.gate("g", x, h))
        new = dy.cmult(dy.logistic(f), c) + dy.cmult(dy.logistic(i), g)
        del i, f, g
        second = new.npvalue()
        out = cell.h(x, h, new)
        loss = weighted(out) + weighted(new)
        loss.backward(full=True)
        return {"first": first, "second": second, "out": out.npvalue(), **gradients(model, xs)}

    both(program)


@pytest.mark.parametrize("keep", [False, True], ids=["", "keep_weights"])
@each_way
def test_updates_in_between(way: str, keep: bool) -> None:
    """What is built on after an update, on the same graph. Backward through what is older needs the weights kept."""
    before = dy.config.get("keep_weights")

    def program(model: Model) -> Observed:
        cell, table = Cell(model, way), model.table(N)
        h, c = cell.step(table[1], *inputs()[1:])
        trainer = dy.SimpleSGDTrainer(model.pc, 0.5)
        found = []
        for k in range(3):
            loss = weighted(h, k) + weighted(c, k)
            loss.backward()
            trainer.update()
            if not keep:
                h, c = dy.nobackprop(h), dy.nobackprop(c)
            h, c = cell.step(table[k], h, c)
            found.append({"h": h.npvalue(), "c": c.npvalue()})
        dy.renew_cg()
        h, c = cell.step(table[1], *inputs()[1:])
        (weighted(h) + weighted(c)).backward()
        return numbered(*found, gradients(model), {str(k): p.as_array() for k, p in model.made.items()})

    dy.configure(keep_weights=keep)
    try:
        both(program)
    finally:
        dy.configure(keep_weights=before)


@each_way
def test_backward_again_after_an_update(way: str) -> None:
    """With the weights kept, both passes are over the graph as it was, whatever is made again for the second."""

    def program(model: Model) -> Observed:
        xs = inputs()
        cell = Cell(model, way)
        h, c = cell.step(*xs)
        loss = weighted(h) + weighted(c)
        trainer = dy.SimpleSGDTrainer(model.pc, 0.5)
        found = []
        loss.backward(full=True)
        found.append(gradients(model, xs))
        for k in range(3):
            weighted(cell.step(inputs(k)[0], h, c)[0]).backward()
            trainer.update()
            loss.backward(full=True)
            found.append(gradients(model, xs))
            for key, gradient in found[0].items():
                near(found[-1][key], gradient, 1e-5, key, atol=1e-6)
        return numbered(*found)

    before = dy.config.get("keep_weights")
    dy.configure(keep_weights=True)
    try:
        both(program)
    finally:
        dy.configure(keep_weights=before)


@pytest.mark.parametrize("trainer", ["SimpleSGDTrainer", "MomentumSGDTrainer", "AdamTrainer", "AdagradTrainer"])
def test_training(trainer: str) -> None:
    """Weights of a gate that some losses do not reach change as if it were not joined."""

    def program(model: Model) -> Observed:
        cell, table = Cell(model), model.table(N)
        for name in GATES:
            cell.gate(name, *inputs()[:2])
        optimizer = getattr(dy, trainer)(model.pc, 0.05)
        for k in range(8):
            dy.renew_cg()
            h, c = cell.step(table[k % 7], *inputs(k)[1:])
            (weighted(c, k) if k % 2 else weighted(h, k)).backward()
            optimizer.update()
        return {str(k): p.as_array() for k, p in model.made.items()}

    both(program)
