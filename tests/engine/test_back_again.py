"""Graphs that run again go backward by the plan that they have, as long as it holds: bits are those of graphs made anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

# Both words are the same now and then, and words occur again before an update.
ROWS = [(0, 1), (2, 3), (4, 4), (4, 4), (1, 0), (0, 1), (5, 5), (2, 3)] * 3
PLACES = [0, 0, 3, 3, 1, 2, 2, 4] * 3
RNG = np.random.RandomState(1)
VECTORS = [RNG.uniform(-1, 1, 4).tolist() for _ in ROWS]
TRAINERS = [dy.SimpleSGDTrainer, dy.AdamTrainer]


class Model:
    """Two words and a vector to a loss; ``kept``: the graph is made once and fed."""

    def __init__(self, trainer: Callable[[Any], Any], kept: bool, held: bool = True) -> None:
        rng = np.random.RandomState(3)
        self.m = dy.ParameterCollection()
        self.E = self.m.lookup_parameters_from_numpy(rng.uniform(-1, 1, (6, 4)).astype(np.float32))
        self.W = self.m.parameters_from_numpy(rng.uniform(-1, 1, (5, 12)).astype(np.float32))
        self.b = self.m.parameters_from_numpy(rng.uniform(-1, 1, 5).astype(np.float32))
        self.trainer, self.kept, self.held, self.inputs = trainer(self.m), kept, held, []

    def run(self, k: int) -> None:
        """The graph of step k: self.h, self.loss, self.other."""
        if self.kept and self.inputs:
            self.inputs[0].set(VECTORS[k])
            self.inputs[1].set(ROWS[k][0])
            self.inputs[2].set(ROWS[k][1])
            self.place.set_index(PLACES[k])
            return
        dy.renew_cg()
        self.inputs = [dy.inputVector(VECTORS[k]), dy.lookup(self.E, ROWS[k][0]), dy.lookup(self.E, ROWS[k][1])]
        self.h = dy.tanh(dy.affine_transform([self.b, self.W, dy.concatenate(self.inputs)]))
        self.place = dy.pick(self.h, PLACES[k])
        self.loss = dy.squared_norm(self.h) + dy.square(self.place) + dy.pickneglogsoftmax(self.h, 2)
        self.other = dy.sum_elems(self.h)

    def seen(self) -> list[Any]:
        """What a user can ask for after a backward pass."""
        own = [e.gradient() for e in [*self.inputs, self.h]] if self.held and self.inputs else []
        return [*own, self.W.grad_as_array().copy(), self.b.grad_as_array().copy(), self.E.grad_as_array().copy()]

    def numbers(self) -> list[Any]:
        return [p.as_array().copy() for p in (self.E, self.W, self.b)]


def equal(found: Sequence[Sequence[Any]], expected: Sequence[Sequence[Any]]) -> None:
    assert len(found) == len(expected)
    for step, (one, other) in enumerate(zip(found, expected, strict=True)):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"step {step}")


@pytest.mark.parametrize("made", ["after the value", "after the pass"])
@pytest.mark.parametrize("gates", ["by hand", "builder"])
def test_nodes_that_wait_change_nothing(gates: str, made: str) -> None:
    """Gates are those inner nodes over whose values gradients lie."""

    def steps(keep: bool) -> list[list[Any]]:
        rng, found, again = np.random.RandomState(5), [], []
        m = dy.ParameterCollection()
        W, U = ([m.parameters_from_numpy(rng.uniform(-1, 1, (4, 4))) for _ in range(4)] for _ in range(2))
        rnn, trainer = dy.LSTMBuilder(1, 4, 4, m), dy.SimpleSGDTrainer(m)
        for p in m.parameters_list()[8:]:
            p.set_value(rng.uniform(-1, 1, p.shape))
        with dy.configure(keep_plans=keep):
            for k in range(6):
                dy.renew_cg()
                x, h = dy.inputVector(VECTORS[k]), dy.inputVector(VECTORS[k + 1])
                if gates == "builder":
                    h = rnn.initial_state().transduce([x, h, x])[-1]
                else:
                    i, f, o, u = (w * x + v * h for w, v in zip(W, U, strict=True))
                    h = dy.cmult(dy.logistic(o), dy.tanh(dy.cmult(dy.logistic(i), dy.tanh(u)) + dy.logistic(f)))
                loss = dy.squared_norm(h)
                loss.value()
                if made == "after the pass":
                    loss.backward()
                waiting = [dy.tanh(x) * 0.5, dy.square(h)]
                del x, h
                loss.backward()
                again.append(dy.stats()["backward_plans_again"])
                found.append([e.npvalue() for e in waiting] + [p.grad_as_array() for p in m.parameters_list()])
                trainer.update()
        assert not keep or again[2:] == [2 if made == "after the pass" else 1] * 4
        return found

    equal(steps(True), steps(False))


@pytest.mark.parametrize("trainer", TRAINERS, ids=lambda t: t.__name__)
@pytest.mark.parametrize("held", [False, True], ids=["not asked for", "held"])
@pytest.mark.parametrize("every", [1, 3], ids=["update", "update of three"])
@pytest.mark.parametrize("full", [False, True], ids=["", "full"])
def test_as_made_anew(trainer: Callable[[Any], Any], held: bool, every: int, full: bool) -> None:
    def steps(kept: bool) -> list[list[Any]]:
        model, found = Model(trainer, kept, held), []
        for k in range(len(ROWS)):
            model.run(k)
            value = model.loss.value()
            model.loss.backward(full=full)
            found.append([value, *model.seen()])
            if k % every == 0:
                model.trainer.update()
            found[-1] += model.numbers()
        assert dy.stats()["plans_again"] == (len(ROWS) - 1 if kept else 0)
        return found

    with dy.configure(keep_plans=False):
        equal(steps(True), steps(False))


@pytest.mark.parametrize("setting", [{}, {"verify": True}, {"threads": 2}, {"strategy": "none"}])
def test_losses_in_turns(setting: dict[str, Any]) -> None:
    def steps(kept: bool) -> list[list[Any]]:
        model, found = Model(dy.SimpleSGDTrainer, kept), []
        for k in range(len(ROWS)):
            model.run(k)
            loss = model.other if k % 4 == 2 else model.loss
            value = loss.value()
            loss.backward()
            if k % 5 == 4:
                loss.backward()  # adds to the gradients
            if k % 7 == 3:
                model.trainer._updater.clear_gradients()
            found.append([value, model.h.gradient()])
            model.trainer.update()
            found[-1] += model.numbers()
        return found

    with dy.configure(keep_plans=False, **setting):
        equal(steps(True), steps(False))


def test_a_graph_that_grows() -> None:
    """Nodes come and go behind what is kept."""

    def steps(kept: bool) -> list[list[Any]]:
        model, found = Model(dy.SimpleSGDTrainer, kept), []
        for k in range(len(ROWS)):
            model.run(k)
            model.loss.value()
            dy.cg_checkpoint()
            more = dy.squared_norm(model.h * (k % 3)) + model.loss if k % 3 else model.loss
            value = more.value()
            more.backward()
            found.append([value, model.h.gradient()])
            model.trainer.update()
            found[-1] += model.numbers()
            if k % 2 or not kept:
                dy.cg_revert()
        return found

    equal(steps(True), steps(False))


def test_frozen_meanwhile() -> None:
    def steps(kept: bool) -> list[list[Any]]:
        model, found = Model(dy.SimpleSGDTrainer, kept), []
        for k in range(len(ROWS)):
            model.run(k)
            model.loss.value()
            model.loss.backward()
            model.b.set_updated(k % 6 < 3)
            model.trainer.update()
            model.b.set_updated(True)
            found.append(model.numbers())
        return found

    equal(steps(True), steps(False))


@pytest.mark.parametrize("trainer", TRAINERS, ids=lambda t: t.__name__)
@pytest.mark.parametrize("every", [1, 3], ids=["update", "update of three"])
def test_compiled(trainer: Callable[[Any], Any], every: int) -> None:
    """Rows that nobody holds have their gradients in the table, where they lie one time here and one time there."""

    def steps(again: bool) -> list[list[Any]]:
        model, found = Model(trainer, False), []

        def loss(x: Any, words: list[int], place: int) -> Any:
            h = dy.tanh(dy.affine_transform([model.b, model.W, dy.concatenate([x, *[model.E[w] for w in words]])]))
            return dy.squared_norm(h) + dy.square(dy.pick(h, place)) + dy.pickneglogsoftmax(h, place), h

        call = dy.compile(loss, backward=True)
        for k in range(len(ROWS)):
            value, h = call(np.array(VECTORS[k], np.float32), list(ROWS[k]), PLACES[k])
            found.append([value, h, *model.seen()])
            if k % every == 0:
                model.trainer.update()
            found[-1] += model.numbers()
            if not again:
                call.forget_structures()
        return found

    equal(steps(True), steps(False))
