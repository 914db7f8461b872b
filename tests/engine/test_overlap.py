"""Overlapped steps: backward pass and update run while the next graph is built, and nobody can tell but by the clock.

`Reference` runs are the same program with the step finished where it is asked for (_core.settle_steps() after backward() and
update()), in the same lanes: all numbers must be equal to the last bit.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from forks import holds_in_fork

import dynet_lite as dy
from dynet_lite import _core

TRAINERS = {
    "sgd": dy.SimpleSGDTrainer, "momentum": dy.MomentumSGDTrainer, "adagrad": dy.AdagradTrainer, "adadelta": dy.AdadeltaTrainer,
    "rmsprop": dy.RMSPropTrainer, "adam": dy.AdamTrainer, "amsgrad": dy.AmsgradTrainer, "adamw": dy.AdamWTrainer,
    "cyclical": dy.CyclicalSGDTrainer,
}  # fmt: skip


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    # Steps overlap where there is one graph. Those of other tests go, also of one that failed, whose trace pytest keeps.
    sys.last_value = sys.last_traceback = sys.last_exc = None
    gc.collect()
    with dy.configure(threads=2):
        _core.settings.least_work = 0
        yield


class Tagger:
    """A small tagger: word vectors, two LSTMs with dropout, gates by hand on top, a loss at every word."""

    def __init__(
        self, trainer: str = "adam", clip: float = 5.0, decay: float = 0.0, dropout: float = 0.0, sparse: bool = True
    ) -> None:
        _core.set_seed(5)  # of what is dropped
        dy.cg().seed_state = 7
        rng = np.random.default_rng(3)
        self.pc = pc = dy.ParameterCollection()
        self.words = pc.lookup_parameters_from_numpy(rng.normal(size=(40, 6)) * 0.5)
        self.tags = pc.lookup_parameters_from_numpy(rng.normal(size=(5, 9)) * 0.5)
        self.ahead, self.back = (dy.VanillaLSTMBuilder(1, 6, 9, pc) for _ in range(2))
        self.W, self.U = (pc.parameters_from_numpy(rng.normal(size=(9, 9)) * 0.4) for _ in range(2))
        self.b = pc.parameters_from_numpy(np.zeros(9))
        self.out = pc.parameters_from_numpy(rng.normal(size=(5, 9)) * 0.4)
        for p in pc.parameters_list():
            p.set_value(rng.normal(size=p.shape()) * 0.4)
        for builder in (self.ahead, self.back):
            builder.set_dropout(dropout)
        pc.set_weight_decay(decay)
        self.trainer = TRAINERS[trainer](pc)
        self.trainer.set_clip_threshold(clip)
        self.trainer.set_sparse_updates(sparse)
        self.rng = np.random.default_rng(4)

    def sentence(self) -> list[int]:
        return [int(w) for w in self.rng.integers(40, size=int(self.rng.integers(2, 9)))]

    def loss_of(self, sentence: list[int]) -> Any:
        xs = [self.words[w] for w in sentence]
        hs = self.ahead.initial_state().transduce(xs)
        gs = self.back.initial_state().transduce(xs[::-1])[::-1]
        losses = []
        for h, g, w in zip(hs, gs, sentence, strict=True):
            u = dy.cmult(dy.logistic(self.W * h + self.b), dy.tanh(self.U * g + self.b)) + self.tags[w % 5]
            losses.append(dy.pickneglogsoftmax(self.out * dy.dropout(u, 0.2), w % 5))
        return dy.esum(losses)

    def loss(self, sentences: int) -> Any:
        return dy.esum([self.loss_of(self.sentence()) for _ in range(sentences)])

    def step(self, sentences: int = 6, after: Callable[[], None] = lambda: None) -> float:
        """`after` is called after backward() and after update()."""
        dy.renew_cg()
        loss = self.loss(sentences)
        value = float(loss.value())
        loss.backward()
        after()
        self.trainer.update()
        after()
        return value

    def numbers(self) -> list[Any]:
        state = self.trainer.state_dict()
        found = [p._values() for p in self.pc._all] + [p._grads() for p in self.pc._all]
        return [a.tolist() for a in found + [state["state"][k] for k in sorted(state["state"])]] + [state["settings"]]


def trained(steps: int, sentences: int, at_once: bool, **kwargs: Any) -> tuple[list[float], list[Any], int]:
    """Losses, all numbers at the end, and how many steps overlapped."""
    t, before = Tagger(**kwargs), _core.steps_overlapped()
    losses = [t.step(sentences, _core.settle_steps if at_once else lambda: None) for _ in range(steps)]
    return losses, t.numbers(), _core.steps_overlapped() - before


# ---- the same numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("trainer", TRAINERS)
def test_every_trainer(trainer: str, dropout: float) -> None:
    expected = trained(8, 20, True, trainer=trainer, dropout=dropout)
    got = trained(8, 20, False, trainer=trainer, dropout=dropout)
    assert got[:2] == expected[:2]
    assert expected[2] == 0 and got[2] == (0 if trainer == "cyclical" else 7)  # that has an update() of its own
    again = trained(8, 20, False, trainer=trainer, dropout=dropout)
    assert again == got


@pytest.mark.parametrize("options", [
    {"clip": 0.5}, {"clip": 0}, {"decay": 0.01}, {"decay": 0.01, "clip": 0.5, "trainer": "sgd"}, {"sparse": False},
    {"sparse": False, "decay": 0.02, "dropout": 0.2}, {"trainer": "adamw", "sparse": False},
])  # fmt: skip
@pytest.mark.parametrize("sentences", [3, 20])
def test_clipping_decay_and_dense_tables(options: dict[str, Any], sentences: int) -> None:
    expected, got = (trained(10, sentences, at_once, **options) for at_once in (True, False))
    assert got[:2] == expected[:2] and got[2] == 9


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_other_numbers_of_threads(threads: int) -> None:
    with dy.configure(threads=threads):
        _core.settings.least_work = 0
        expected, got = (trained(6, 40, at_once, clip=1.0) for at_once in (True, False))
    assert got[:2] == expected[:2] and got[2] == 5


def test_switched_off() -> None:
    """The lanes are those of steps that do not overlap, and so are all bits."""
    for steps, sentences in ((8, 9), (5, 40)):
        got = trained(steps, sentences, False, clip=1.0)
        with dy.configure(overlap=False):
            _core.settings.least_work = 0
            expected = trained(steps, sentences, False, clip=1.0)
        assert got[:2] == expected[:2] and (got[2], expected[2]) == (steps - 1, 0)


@pytest.mark.parametrize("what", [{"threads": 1}, {"autobatch": False}, {"profile": True}, {"keep_weights": True}])
def test_where_steps_do_not_overlap(what: dict[str, Any]) -> None:
    with dy.configure(**what):
        assert trained(4, 9, False)[2] == 0


def test_graphs_that_do_not_overlap() -> None:
    def steps(**kwargs: Any) -> int:
        t, before = Tagger(), _core.steps_overlapped()
        for _ in range(3):
            dy.renew_cg(**kwargs)
            loss = t.loss(4)
            loss.backward()
            t.trainer.update()
        return _core.steps_overlapped() - before

    assert steps() == 2
    _core.settle_steps()
    assert steps(immediate_compute=True) == steps(check_validity=True) == 0
    with dy.graph():
        assert steps() == 0
    with dy.profile():
        assert steps() == 0
    dy.renew_cg()
    assert steps() == 2


def test_graphs_that_were_not_made_do_not_count() -> None:
    t, before = Tagger(), _core.steps_overlapped()
    for wrong in ("x", 2, None):
        with pytest.raises(TypeError):
            dy.ComputationGraph(wrong, wrong)  # type: ignore[call-arg]
        with contextlib.suppress(TypeError):
            dy.ComputationGraph(wrong)  # type: ignore[call-arg]
    gc.collect()
    for _ in range(3):
        t.step(5)
    assert _core.steps_overlapped() > before


def test_gradients_of_several_graphs_add_up() -> None:
    """A backward pass without an update goes on in the background, too."""

    def run(at_once: bool) -> list[Any]:
        t = Tagger(clip=1.0)
        for k in range(9):
            dy.renew_cg()
            t.loss(5).backward()
            if at_once:
                _core.settle_steps()
            if k % 3 == 2:
                t.trainer.update()
        return t.numbers()

    before = _core.steps_overlapped()
    assert run(False) == run(True)
    assert _core.steps_overlapped() >= before + 8


def test_several_losses_and_trainers() -> None:
    def run(at_once: bool) -> list[Any]:
        after = _core.settle_steps if at_once else lambda: None
        t = Tagger("sgd", clip=0.7)
        other = dy.AdamTrainer(t.pc)
        for _ in range(5):
            dy.renew_cg()
            a, b = t.loss(5), t.loss(4)
            a.backward()
            after()
            b.backward()
            after()
            t.trainer.update()
            after()
            c = t.loss(3)  # the same graph goes on with new weights
            assert np.isfinite(c.value())
            c.backward()
            after()
            other.update()
            after()
            other.update()  # without gradients
        return [*t.numbers(), other.state_dict()["settings"]]

    assert run(False) == run(True)


def test_values_after_the_update() -> None:
    """What a graph has computed stays; weights are the new ones. Reading a value does not end the overlap."""
    t = Tagger("sgd", decay=0.1)
    before = _core.steps_overlapped()
    for _ in range(3):
        dy.renew_cg()
        loss = t.loss(5)
        value, old = loss.value(), t.W.npvalue()
        loss.backward()
        t.trainer.update()
        assert loss.value() == value
    assert _core.steps_overlapped() == before + 2
    shown = dy.reshape(t.W, (81,))
    assert loss.value() == value and (t.W.npvalue() != old).any()
    np.testing.assert_array_equal(t.W.npvalue(), t.W.as_array())
    np.testing.assert_array_equal(shown.npvalue(), t.W.as_array().ravel(order="F"))


# ---- every look at trained numbers ---------------------------------------------------------------------------------------


def look_at_state(t: Tagger) -> Any:
    return {k: v.tolist() for k, v in t.trainer.state_dict()["state"].items()}, t.trainer.state_dict()["settings"]


def overwrite(t: Tagger) -> Any:
    t.W.set_value(t.W.as_array() * 2)
    t.words.init_row(3, [1.0] * 6)
    t.tags.scale(0.5)
    t.b.clip_inplace(-0.1, 0.1)


def change_gradients(t: Tagger) -> Any:
    t.W.scale_gradient(2)
    t.b.set_grad(np.ones(9))
    t.words.zero_gradient()
    t.tags.set_rows_grad([1], np.ones((1, 9)))
    return t.W.grad_as_array().tolist()


def save_and_load(t: Tagger) -> Any:
    path = os.path.join(os.environ["TMP_OVERLAP"], "model")
    t.pc.save(path)
    t.pc.populate(path)
    dy.save_checkpoint(path + ".st", t.pc, trainer=t.trainer)
    dy.load_checkpoint(path + ".st", t.pc, trainer=t.trainer)
    with open(path, encoding="utf-8") as file:
        return file.read()


def freeze(t: Tagger) -> Any:
    t.U.set_updated(False)
    t.tags.set_updated(False)


def evaluate_elsewhere(t: Tagger) -> Any:
    with dy.graph():
        return [dy.sum_elems(t.W).value(), dy.sum_elems(t.words[2]).value(), t.words.batch([1, 2, 3]).npvalue().tolist(),
                dy.sum_elems(t.words).value()]  # fmt: skip


def other_trainer(t: Tagger) -> Any:
    dy.SimpleSGDTrainer(t.pc, 0.01).update()


LOOKS: dict[str, Callable[[Tagger], Any]] = {
    "as_array": lambda t: [p.as_array().tolist() for p in t.pc._all],
    "gradient": lambda t: [p.grad_as_array().tolist() for p in t.pc._all],
    "npvalue": lambda t: t.W.npvalue().tolist(),
    "row value": lambda t: t.words[3].npvalue().tolist(),
    "batch of rows": lambda t: t.words.batch([3, 4, 3]).npvalue().tolist(),
    "row_as_array": lambda t: t.words.row_as_array(4).tolist(),
    "table value": lambda t: t.tags.npvalue().tolist(),
    "row gradient": lambda t: t.words.row_grad_as_array(4).tolist(),
    "new value": lambda t: dy.sum_elems(dy.tanh(t.W * t.b) + t.words.batch([1])[0]).value(),
    "norm": lambda t: t.pc.gradient_l2_norm(),
    "overwrite": overwrite,
    "change gradients": change_gradients,
    "reset gradients": lambda t: t.pc.reset_gradient(),
    "state": look_at_state,
    "restart": lambda t: t.trainer.restart(0.01),
    "learning rate": lambda t: setattr(t.trainer, "learning_rate", 0.02),
    "threshold": lambda t: t.trainer.set_clip_threshold(0.1),
    "decay": lambda t: t.pc.set_weight_decay(0.05),
    "status": lambda t: t.trainer.status(),
    "update": lambda t: t.trainer.update(),
    "other trainer": other_trainer,
    "copy": lambda t: [p.as_array().tolist() for p in copy.deepcopy(t.pc)._all],
    "pickle": lambda t: look_at_state(_Holder(pickle.loads(pickle.dumps(t.trainer)))),  # type: ignore[arg-type]
    "save and load": save_and_load,
    "freeze": freeze,
    "add": lambda t: t.pc.add_parameters(4, init=1.0).as_array().tolist(),
    "elsewhere": evaluate_elsewhere,
    "counters": lambda t: [dy.stats()[k] for k in ("nodes", "floats_gathered", "floats_scattered", "batches", "plans")],
    "threads": lambda t: dy.configure(threads=3) and None,
    "one thread": lambda t: dy.configure(threads=1) and None,
    "seed": lambda t: dy.reset_random_seed(8),
    "renew twice": lambda t: dy.renew_cg() and None,
    "checkpoint": lambda t: (dy.cg_checkpoint(), dy.cg_revert()) and None,
    "forward": lambda t: dy.cg().forward(),
    "plan": lambda t: dy.plan_text(),
    "collect": lambda t: gc.collect() and None,
}


class _Holder:
    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer


@pytest.mark.parametrize("place", ["backward", "update", "renewal", "building"])
@pytest.mark.parametrize("name", LOOKS)
def test_every_look(name: str, place: str, tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    """In every place it finds, and leaves, what it would without overlapping."""
    monkeypatch.setenv("TMP_OVERLAP", str(tmp_path))

    def run(at_once: bool) -> list[Any]:
        after = _core.settle_steps if at_once else lambda: None
        dy.configure(threads=2)
        _core.settings.least_work = 0
        t, found = Tagger(clip=0.5, decay=0.01), []

        def look(here: str) -> None:
            if here == place:
                found.append(LOOKS[name](t))
                found.append(capsys.readouterr().err)

        with dy.configure():
            t.step(6, after)
            for _ in range(3):
                dy.renew_cg()
                look("renewal")
                first = t.loss_of(t.sentence())
                look("building")
                if name in ("renew twice", "checkpoint"):
                    first = t.loss_of([1, 2])
                loss = first + t.loss(6)
                found.append(loss.value())
                loss.backward()
                after()
                look("backward")
                if place != "backward" or name != "renew twice":
                    t.trainer.update()
                after()
                look("update")
        return [*found, *t.numbers()]

    assert run(False) == run(True)


def test_gradients_of_expressions() -> None:
    def run(at_once: bool) -> list[Any]:
        t, found = Tagger(), []
        for _ in range(2):
            dy.renew_cg()
            x = dy.tanh(t.W * t.b)
            loss = dy.sum_elems(x) + t.loss(4)
            loss.backward()
            if at_once:
                _core.settle_steps()
            t.trainer.update()
            found.append(x.gradient().tolist())
            loss.backward(full=True)
            found.append(x.gradient().tolist())
        return found

    assert run(False) == run(True)


@pytest.mark.filterwarnings("ignore:.*this graph has grown")
def test_a_pass_that_fails_leaves_nothing_to_the_next() -> None:
    """Which rows expressions referred to when it was put off."""
    m = dy.ParameterCollection()
    W, E = m.add_parameters((1100, 1000)), m.add_lookup_parameters((3, 1000))
    trainer = dy.SimpleSGDTrainer(m, 1e-4)
    dy.renew_cg()
    old = dy.sum_elems(W * E[0])
    old.value()
    for _ in range(12):
        dy.sum_elems(W * E[1]).backward()
        trainer.update()
    old.backward()
    with pytest.raises(RuntimeError, match="ran so many updates ago"):
        _core.settle_steps()
    row = E[2]
    dy.sum_elems(W * row).backward(full=True)  # which is not put off
    np.testing.assert_allclose(row.gradient(), W.as_array().sum(0), rtol=1e-3, atol=1e-4)


def test_inputs_that_change_afterwards() -> None:
    """set() and set_index() come after the backward pass that was asked for before them."""

    def run(at_once: bool) -> list[Any]:
        t = Tagger("sgd")
        dy.renew_cg()
        x = dy.inputVector([0.5] * 9)
        y = t.W * x
        one = dy.pick(y, 1)
        row = t.words[3]
        loss = one + dy.sum_elems(row) + t.loss(3)
        found = []
        for change in (lambda: x.set([0.25] * 9), lambda: one.set_index(2), lambda: row.set(5), dy.cg().invalidate):
            found.append(loss.value())
            loss.backward()
            if at_once:
                _core.settle_steps()
            change()
            found.append(loss.value())
            t.trainer.update()
        return [*found, *t.numbers()]

    assert run(False) == run(True)


# ---- errors ------------------------------------------------------------------------------------------------------------


def test_arguments_are_checked_where_they_are_given() -> None:
    t = Tagger()
    dy.renew_cg()
    with pytest.raises(ValueError, match="scalar"):
        dy.tanh(t.W * t.b).backward()
    loss = t.loss(3)
    dy.renew_cg()
    with pytest.raises(dy.StaleExpressionError):
        loss.backward()


@pytest.mark.parametrize("renewed", [False, True])
def test_bad_gradients(renewed: bool) -> None:
    t = Tagger("adam")
    for _ in range(3):
        t.step()
    before = t.numbers()
    dy.renew_cg()
    bad = t.loss(4) + dy.sum_elems(dy.log(dy.inputVector([-1.0]))) * dy.sum_elems(t.W)
    bad.backward()
    t.trainer.update()
    if renewed:
        dy.renew_cg()
        loss = t.loss(3)
        with pytest.raises(
            RuntimeError, match=r"Magnitude of gradient is bad: nan; in the update of the mini-batch before"
        ):
            loss.value()
        assert np.isfinite(loss.value())
    else:
        with pytest.raises(RuntimeError, match="Magnitude of gradient is bad"):
            t.W.as_array()
    assert t.numbers() == before
    assert t.trainer.updates == 3 and np.isfinite(t.step())


def test_bad_gradients_are_told_once() -> None:
    """By the next who needs the weights; the steps before and after are done."""
    t = Tagger()
    for k in range(3):
        dy.renew_cg()
        loss = t.loss(6) if k == 0 else dy.sum_elems(t.W) * float("inf")
        if k < 2:
            loss.backward()
            t.trainer.update()
        else:
            with pytest.raises(RuntimeError, match="Magnitude of gradient is bad: inf"):
                loss.backward()
    twin = Tagger()
    twin.step()
    assert [p._values().tolist() for p in t.pc._all] == [p._values().tolist() for p in twin.pc._all]
    assert t.trainer.updates == twin.trainer.updates == 1


# ---- things go while a step is on its way --------------------------------------------------------------------------------


def heavy() -> Tagger:
    t = Tagger()
    t.step(30)
    t.step(30)
    return t


def test_the_trainer_and_the_model_go() -> None:
    for renewed in (False, True):
        t = heavy()
        trainer, model = weakref.ref(t.trainer), weakref.ref(t.pc)
        weight = t.W
        if renewed:
            dy.renew_cg()
        del t
        gc.collect()
        assert trainer() is None and model() is None
        assert np.isfinite(weight.as_array()).all()
        gone = weakref.ref(weight)
        del weight
        dy.renew_cg()
        dy.renew_cg()
        assert gone() is None


def test_the_update_is_done_although_the_trainer_has_gone() -> None:
    expected, got = Tagger(), Tagger()
    for t, after in ((expected, _core.settle_steps), (got, lambda: None)):
        _core.set_seed(5)
        t.step(5, after)
        del t.trainer
        gc.collect()
    assert [p._values().tolist() for p in got.pc._all] == [p._values().tolist() for p in expected.pc._all]


def test_memory_of_a_step_goes() -> None:
    """The second graph lets go of weights as soon as its step is done, and of its memory when steps do not overlap any more."""
    t = heavy()
    dy.renew_cg()
    weight = weakref.ref(t.W)
    assert dy.scalarInput(1).value() == 1  # waits for the step
    del t
    gc.collect()
    assert weight() is None


def test_memory_of_a_large_step_comes_back() -> None:
    """That of both graphs that took turns, once steps are small, or graphs are only evaluated."""
    for train in (True, False):
        t = Tagger()
        for _ in range(3):
            dy.renew_cg()
            x = dy.tanh(dy.constant(4_000_000, 0.5))
            large = dy.sum_elems(dy.softmax(x)) * dy.sum_elems(t.W)
            large.backward()
            t.trainer.update()
        peak = dy.stats()["value_bytes"]
        assert peak > 1 << 24
        for _ in range(80):
            if train:
                t.step(2)
            else:
                dy.renew_cg()
                t.loss(2).value()
        assert dy.stats()["value_bytes"] < peak / 8


def test_expressions_outlive_their_graph() -> None:
    t = Tagger()
    kept = []
    for _ in range(6):
        dy.renew_cg()
        x = dy.tanh(t.W * t.b)
        loss = dy.sum_elems(x) + t.loss(20)
        loss.backward()
        t.trainer.update()
        kept.append([x, loss])
        if len(kept) > 2:
            kept.pop(0).clear()  # while the step that they belong to may be running
    for x, _ in kept[:-1]:
        with pytest.raises(dy.StaleExpressionError):
            x.value()


def in_a_child(program: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path[:0] = {sys.path!r}\nfrom test_overlap import *\nfrom dynet_lite import _core\ndy.configure(threads=2)\n" \
           f"_core.settings.least_work = 0\n{program}"  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, env=environment
    )


@pytest.mark.parametrize("renewed", [False, True])
def test_the_program_ends(renewed: bool) -> None:
    done = in_a_child(f"t = heavy()\nif {renewed}: dy.renew_cg()\nprint('end')")
    assert done.returncode == 0 and done.stdout == "end\n" and not done.stderr, done.stderr


def test_the_program_ends_with_an_error() -> None:
    done = in_a_child("t = heavy()\ndy.renew_cg()\n(dy.sum_elems(t.W) * float('inf')).backward()\nt.trainer.update()")
    assert "Magnitude of gradient is bad" in done.stderr
    done = in_a_child("t = heavy()\ndy.renew_cg()\n1 / 0")
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr


# ---- forks and threads -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded")
@pytest.mark.parametrize("renewed", [False, True])
def test_fork(renewed: bool) -> None:
    t, twin = heavy(), heavy()
    if renewed:
        dy.renew_cg()
    expected = twin.numbers()
    twin.rng = copy.deepcopy(t.rng)
    assert holds_in_fork(lambda: t.numbers() == expected and np.isfinite([t.step(30) for _ in range(3)]).all())
    assert t.numbers() == expected and np.isfinite(t.step(30))


def test_another_thread_looks() -> None:
    """At weights of a step that is put off, or is on its way."""
    expected = heavy().W.as_array()
    for renewed in (False, True):
        t, found = heavy(), []
        if renewed:
            dy.renew_cg()
        thread = threading.Thread(target=lambda t=t, found=found: found.append(t.W.as_array()))
        thread.start()
        thread.join()
        assert np.isfinite(found[0]).all() and found[0].shape == expected.shape
        np.testing.assert_array_equal(found[0], t.W.as_array())


def test_another_thread_always_looks() -> None:
    """A thread that reads weights and evaluates all the time changes nothing of the training."""
    expected = trained(25, 10, True)
    stop, errors = threading.Event(), []
    models: list[Tagger] = []

    def read() -> None:
        try:
            while not stop.is_set():
                for t in models:
                    assert (
                        np.isfinite(t.W.as_array()).all()
                        and np.isfinite(t.trainer.state_dict()["state"][t.W.name()]).all()
                    )
        except Exception as e:
            errors.append(e)

    thread = threading.Thread(target=read)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        t = Tagger()
        models.append(t)
        losses = [t.step(10) for _ in range(25)]
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert not errors, errors
    assert losses == expected[0] and t.numbers()[:-1] == expected[1][:-1]


def test_threads_with_graphs_of_their_own_begin_and_end() -> None:
    """While one trains: where there are two graphs steps do not overlap, and a step that does is finished first."""

    def steps(between: Callable[[], None]) -> list[Any]:
        t = Tagger(dropout=0.0)
        losses = []
        for k in range(20):
            dy.renew_cg()
            between()
            dy.cg().seed_state = k
            loss = t.loss(8)
            losses.append(loss.value())
            loss.backward()
            between()
            t.trainer.update()
        return [losses, *t.numbers()]

    expected = steps(lambda: None)
    errors: list[Exception] = []
    threads: list[threading.Thread] = []

    def work() -> None:
        try:
            mine = Tagger("sgd")
            for _ in range(2):
                mine.step(5)
        except Exception as e:
            errors.append(e)

    def spawn() -> None:
        threads.append(threading.Thread(target=work))
        threads[-1].start()
        if len(threads) > 3:
            threads.pop(0).join()

    got = steps(spawn)
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert got == expected
