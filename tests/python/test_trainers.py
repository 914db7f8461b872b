"""Trainers: DyNet's numbers, clipping, decay, sparse rows, what is picked up and what is left alone."""

from __future__ import annotations

import copy
import gc
import inspect
import math
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from real_dynet import needs_dynet, run

import dynet_lite as dy
from dynet_lite import _core

# Trainer, 1.0 after 1, 2, 3 steps with gradient 2 and no clipping (measured on DyNet).
TABLE = [
    ("SimpleSGDTrainer", {}, [0.8, 0.6, 0.4]),
    ("CyclicalSGDTrainer", {}, [0.98, 0.96, 0.93991]),
    ("MomentumSGDTrainer", {}, [0.98, 0.942, 0.8878]),
    ("AdagradTrainer", {}, [0.9, 0.829289, 0.771554]),
    ("AdadeltaTrainer", {}, [0.995528, 0.990999, 0.986431]),
    ("RMSPropTrainer", {}, [0.996838, 0.994544, 0.992623]),
    ("AdamTrainer", {}, [0.999, 0.998, 0.997]),
    ("AmsgradTrainer", {}, [0.999, 0.998, 0.997]),
]
NAMES = [name for name, _, _ in TABLE]


def test_signatures_are_those_of_the_classes() -> None:
    """For help() and notebooks; DyNet 1's keywords are taken by a call that hides them."""
    for name in [*NAMES, "AdamWTrainer", "EGTrainer"]:
        cls = getattr(dy, name)
        assert list(inspect.signature(cls).parameters) == list(inspect.signature(cls.__init__).parameters)[1:]
    assert str(inspect.signature(dy.AdamTrainer)).startswith("(m: 'ParameterCollection', alpha: 'float' = 0.001, ")


@pytest.mark.parametrize("name,options,expected", TABLE, ids=NAMES)
def test_the_table_of_dynet(name: str, options: dict[str, Any], expected: list[float]) -> None:
    m = dy.ParameterCollection()
    p = m.add_parameters(5, init=1.0)
    t = m.add_lookup_parameters((3, 2), init=1.0)
    trainer = getattr(dy, name)(m, **options)
    trainer.set_clip_threshold(0)
    for value in expected:
        p.set_grad(np.full(5, 2.0))
        t.set_rows_grad([1], np.full((1, 2), 2.0))
        trainer.update()
        np.testing.assert_allclose(p.as_array(), value, atol=2e-6)
        np.testing.assert_allclose(t.as_array()[1], value, atol=2e-6)
        np.testing.assert_array_equal(t.as_array()[[0, 2]], 1.0)
        assert not p.grad_as_array().any() and not t.grad_as_array().any()


RANDOM_STEPS = """
m = dy.ParameterCollection()
p = m.add_parameters((3, 2), init=np.array(data["p"]))
t = m.add_lookup_parameters((4, 3), init=np.array(data["t"]))
if data["decay"]: m.set_weight_decay(data["decay"])
trainer = getattr(dy, data["name"])(m, **data["options"])
trainer.set_clip_threshold(data["clip"])
trainer.set_sparse_updates(data["sparse"])
out = []
for step in data["steps"]:
    dy.renew_cg()
    loss = dy.sum_elems(dy.cmult(p, dy.inputTensor(np.array(step["p"]))))
    for row, g in step["t"]:
        loss = loss + dy.dot_product(t[row], dy.inputVector(g))
    loss.value(); loss.backward(); trainer.update()
    dy.renew_cg()
    out.append([p.npvalue().tolist(), [t[i].value() for i in range(4)]])
"""
CASES = [
    {"clip": 0, "sparse": True, "decay": 0},
    {"clip": 5, "sparse": True, "decay": 0},
    {"clip": 0.5, "sparse": False, "decay": 0},
    {"clip": 1.5, "sparse": True, "decay": 0.05},
    {"clip": 0, "sparse": False, "decay": 0.3},
]


@needs_dynet
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"clip{c['clip']}-sparse{c['sparse']:d}-decay{c['decay']}")
def test_random_gradients_as_in_dynet(name: str, case: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    steps = []
    for k in range(6):
        rows = [[int(r), rng.normal(size=3).tolist()] for r in rng.choice(4, size=k % 3, replace=False)]
        steps.append({"p": rng.normal(size=(3, 2)).tolist(), "t": rows})
    options = {"step_size": 3, "gamma": 0.9} if name == "CyclicalSGDTrainer" else {}
    data = {"name": name, "options": options, "steps": steps, "p": rng.normal(size=(3, 2)).tolist(),
            "t": rng.normal(size=(4, 3)).tolist(), **case}  # fmt: skip
    names: dict[str, Any] = {"dy": dy, "np": np, "data": data}
    exec(RANDOM_STEPS, names)
    for ours, theirs in zip(names["out"], run(RANDOM_STEPS, data), strict=True):
        np.testing.assert_allclose(np.array(ours[0]), np.array(theirs[0]), rtol=2e-5, atol=2e-6)
        np.testing.assert_allclose(np.array(ours[1]), np.array(theirs[1]), rtol=2e-5, atol=2e-6)


def with_gradient(p: Any, value: float = 1.0) -> None:
    p.set_grad(np.full(p.shape(), value))


def test_defaults_and_settings(capfd: pytest.CaptureFixture[str]) -> None:
    m = dy.ParameterCollection()
    p = m.add_parameters(4, init=0)
    t = dy.AdamTrainer(m)
    assert (t.learning_rate, t.get_clip_threshold()) == (0.001, 5)
    assert dy.AdamTrainer(m, learning_rate=0.5).learning_rate == dy.AdamTrainer(m, alpha=0.5).learning_rate == 0.5
    assert dy.SimpleSGDTrainer(m).learning_rate == dy.AdagradTrainer(m).learning_rate == 0.1
    t.learning_rate = 0.25
    assert t.learning_rate == 0.25
    t.set_learning_rate(0.125)
    for value in (1.0, 100.0):
        with_gradient(p, value)
        t.update()
    t.status()
    assert capfd.readouterr().err == "[lr=0.125 clips=1 updates=2] "
    t.status()
    assert capfd.readouterr().err == "[lr=0.125 clips=0 updates=0] "
    with pytest.raises(ValueError, match="learning_rate"):
        t.learning_rate = math.nan
    for make in (lambda: dy.SimpleSGDTrainer(m, 1e39), lambda: dy.MomentumSGDTrainer(m, mom=-1e300)):
        with pytest.raises(ValueError, match=r"(learning_rate|mom) must be a finite number that fits a float32; got"):
            make()
    with pytest.raises(TypeError, match="ParameterCollection"):
        dy.AdamTrainer(p)
    with pytest.raises(TypeError, match="base class"):
        dy.Trainer(m, 0.1)


@pytest.mark.parametrize("beta", [0.9, 0.999, 0.9999, 0.99999, 0.999999])
@pytest.mark.parametrize("which", ["beta_1", "beta_2"])
@pytest.mark.parametrize("name", ["AdamTrainer", "AmsgradTrainer", "AdamWTrainer"])
def test_steps_of_adam_with_equal_gradients_are_equal(name: str, which: str, beta: float) -> None:
    """The corrected moments are g and g^2 then, whatever the betas."""
    m = dy.ParameterCollection()
    p = m.add_parameters(1, init=0)
    t = getattr(dy, name)(m, 0.1, **{which: beta, "eps": 1e-20})
    if name == "AdamWTrainer":
        t.weight_decay = 0.0
    for k in range(1, 6):
        with_gradient(p, 3.0)
        t.update()
        np.testing.assert_allclose(p.as_array(), [-0.1 * k], rtol=1e-6)


def test_restart_zeroes_moments() -> None:
    def path(restart: bool) -> list[float]:
        m = dy.ParameterCollection()
        p = m.add_parameters(1, init=1)
        t = dy.MomentumSGDTrainer(m, 0.1, 0.9)
        out = []
        for k in range(4):
            if restart and k == 2:
                t.restart(0.2)
            with_gradient(p)
            t.update()
            out.append(float(p.as_array()[0]))
        return out

    assert path(True)[2] == pytest.approx(path(True)[1] - 0.2)
    assert path(False)[2] < path(False)[1] - 0.2


@pytest.mark.parametrize("name", [*NAMES, "AdamWTrainer"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_bad_gradient_raises_and_the_next_step_works(name: str, bad: float) -> None:
    m = dy.ParameterCollection()
    p, t = m.add_parameters(9, init=1), m.add_lookup_parameters((3, 2), init=1)
    trainer = getattr(dy, name)(m)
    with_gradient(p)
    trainer.update()
    before, rows = p.as_array(), t.as_array()
    grad = np.ones(9)
    grad[7] = bad
    p.set_grad(grad)
    t.set_rows_grad([2], [[1, 1]])
    with pytest.raises(RuntimeError, match="agnitude of gradient is bad"):
        trainer.update()
    np.testing.assert_array_equal(p.as_array(), before)
    np.testing.assert_array_equal(t.as_array(), rows)
    assert not p.grad_as_array().any() and not t.grad_as_array().any()
    with_gradient(p)
    trainer.update()
    assert np.isfinite(p.as_array()).all() and (p.as_array() != before).all()


def test_clipping_is_of_the_global_norm() -> None:
    m = dy.ParameterCollection()
    p, q, t = m.add_parameters(1, init=0), m.add_parameters((1, 1), init=0), m.add_lookup_parameters((5, 1), init=0)
    trainer = dy.SimpleSGDTrainer(m, 1.0)
    trainer.set_clip_threshold(2.0)
    p.set_grad([4.0])
    q.set_grad([[4.0]])
    t.set_rows_grad([3, 0], [[4.0], [4.0]])
    assert m.gradient_l2_norm() == 8.0
    trainer.update()
    values = [*p.as_array(), *q.as_array()[0], *t.as_array()[[3, 0], 0]]
    np.testing.assert_allclose(values, -1.0, rtol=1e-6)


def test_parameters_made_later_are_trained() -> None:
    m = dy.ParameterCollection()
    trainer = dy.AdamTrainer(m, 0.1)
    trainer.update()
    sub = m.add_subcollection("s")
    p, t = sub.add_parameters(2, init=0), sub.add_lookup_parameters((2, 2), init=0)
    with_gradient(p)
    t.set_rows_grad([0], [[1, 1]])
    trainer.update()
    assert (p.as_array() < 0).all() and (t.as_array()[0] < 0).all() and not t.as_array()[1].any()


def test_a_trainer_of_a_subcollection() -> None:
    m = dy.ParameterCollection()
    p = m.add_parameters(2, init=0)
    sub = m.add_subcollection("s")
    q = sub.add_parameters(2, init=0)
    with_gradient(p)
    with_gradient(q)
    dy.SimpleSGDTrainer(sub, 1.0).update()
    assert not p.as_array().any() and (q.as_array() == -1).all()
    assert (p.grad_as_array() == 1).all()


def test_the_trainer_keeps_the_parameters() -> None:
    p = dy.ParameterCollection().add_parameters(3, init=0)
    with_gradient(p)
    assert (p.as_array() == 0).all()  # its collection is gone
    m = dy.ParameterCollection()
    m.add_parameters((40, 40))
    m.add_lookup_parameters((40, 40))
    trainer = dy.AdamTrainer(m)
    del m
    gc.collect()
    kept = [*trainer.model.parameters_list(), *trainer.model.lookup_parameters_list()]
    assert [p.shape() for p in kept] == [(40, 40)] * 2
    before = [p.as_array() for p in kept]
    with_gradient(kept[0])
    kept[1].set_rows_grad([3], np.ones((1, 40)))
    trainer.update()
    assert (kept[0].as_array() != before[0]).all() and (kept[1].as_array()[3] != before[1][3]).all()


def test_frozen_parameters() -> None:
    m = dy.ParameterCollection()
    p, q, t = m.add_parameters(2, init=1), m.add_parameters(2, init=1), m.add_lookup_parameters((2, 2), init=1)
    trainer = dy.MomentumSGDTrainer(m, 1.0)
    m.set_weight_decay(0.5)

    def step() -> None:
        dy.renew_cg()
        loss = dy.sum_elems(dy.cmult(p, q) + t[0])
        loss.backward()
        trainer.update()

    q.set_updated(False)
    t.set_updated(False)
    step()
    assert (q.as_array() == 1).all() and (t.as_array() == 1).all()
    assert not q.grad_as_array().any() and not t.grad_as_array().any()
    np.testing.assert_allclose(p.as_array(), 0.0)
    q.set_updated(True)
    p.set_value([1, 1])
    step()
    np.testing.assert_allclose(q.as_array(), 0.0)


def test_weight_decay_is_seen_everywhere() -> None:
    m = dy.ParameterCollection()
    p, t = m.add_parameters(2, init=1), m.add_lookup_parameters((6, 2), init=1)
    m.add_subcollection("s").set_weight_decay(0.5)
    assert m.get_weight_decay() == 0.5
    trainer = dy.SimpleSGDTrainer(m, 0.0)
    for k in range(3):
        t.set_rows_grad([k], [[1, 1]])
        trainer.update()
    np.testing.assert_allclose(p.as_array(), 1 / 8)
    dy.renew_cg()
    np.testing.assert_allclose(p.npvalue(), 1 / 8)
    np.testing.assert_allclose(t[5].npvalue(), 1 / 8)
    np.testing.assert_allclose(dy.lookup_batch(t, [4, 0]).npvalue(), 1 / 8)
    np.testing.assert_allclose(t.row_as_array(3), 1 / 8)
    np.testing.assert_allclose(t.as_array(), 1 / 8)
    for bad in (-0.1, 1.0, math.nan):
        with pytest.raises(ValueError, match="set_weight_decay"):
            m.set_weight_decay(bad)


@pytest.mark.parametrize("how", ["nodes", "cell", "compiled", "whole"])
def test_only_rows_that_are_read_pay_their_weight_decay(how: str) -> None:
    """Else a step takes as long as the table is large."""
    m = dy.ParameterCollection()
    E, trainer = m.add_lookup_parameters((6, 2), init=1), dy.SimpleSGDTrainer(m)
    m.set_weight_decay(0.5)

    def loss(word: int) -> dy.Expression:
        return dy.squared_norm(E[word]) + (dy.sum_elems(E) if how == "whole" else 0)

    step, cell = dy.compile(loss, trainer=trainer), dy.cell(loss)
    for word in (1, 1, 2, 1):
        if how == "compiled":
            step(word)
            continue
        dy.renew_cg()
        (cell if how == "cell" else loss)(word).backward()
        trainer.update()
    _, decay = E._unsettled()
    assert decay is not None
    owed = (decay[1:] - decay[0]) / math.log(2)
    np.testing.assert_allclose(owed, [0] * 6 if how == "whole" else [4, 0, 1, 4, 4, 4], atol=1e-6)


def test_adamw_is_its_definition() -> None:
    rng = np.random.default_rng(0)
    w0 = rng.normal(size=6)
    m = dy.ParameterCollection()
    p, t = m.add_parameters(6, init=w0), m.add_lookup_parameters((2, 6), init=np.array([w0, w0]))
    lr, wd, b1, b2, eps = 0.1, 0.2, 0.9, 0.999, 1e-8
    trainer = dy.AdamWTrainer(m, lr, weight_decay=wd)
    trainer.set_clip_threshold(0)
    w, mean, var = w0.copy(), np.zeros(6), np.zeros(6)
    for k in range(1, 6):
        g = rng.normal(size=6)
        mean, var = b1 * mean + (1 - b1) * g, b2 * var + (1 - b2) * g * g
        w -= lr * wd * w
        w -= lr * (mean / (1 - b1**k)) / (np.sqrt(var / (1 - b2**k)) + eps)
        p.set_grad(g)
        t.set_rows_grad([0], [g])
        trainer.update()
    np.testing.assert_allclose(p.as_array(), w, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(t.as_array()[0], w, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(t.as_array()[1], w0 * (1 - lr * wd) ** 5, rtol=1e-5)


def test_exponentiated_gradient_keeps_a_distribution() -> None:
    m = dy.ParameterCollection()
    p = m.add_parameters(4, init=np.array([0.1, 0.2, 0.3, 0.4]))
    trainer = dy.EGTrainer(m, 0.5, 0.0)
    g = np.array([1.0, 0.0, -1.0, 0.5])
    expected = np.array([0.1, 0.2, 0.3, 0.4]) * np.exp(-0.5 * g)
    p.set_grad(g)
    trainer.update()
    np.testing.assert_allclose(p.as_array(), expected / expected.sum(), rtol=1e-5)


@pytest.mark.parametrize("begins", ["glorot", 0])
def test_exponentiated_gradient_of_what_is_no_distribution(begins: Any) -> None:
    """It was NaN after the first update."""
    m = dy.ParameterCollection()
    p, t = m.add_parameters((3, 4), init=begins, name="p"), m.add_lookup_parameters((3, 4), init=0.25)
    trainer = dy.EGTrainer(m)
    before = p.as_array()
    p.set_grad(np.ones((3, 4)))
    t.set_rows_grad([1], [np.arange(4.0)])
    with pytest.raises(ValueError, match=r"\[EGTrainer\] /p (has negative numbers|is 0 everywhere)"):
        trainer.update()
    assert (p.as_array() == before).all() and trainer.updates == 0
    p.set_updated(False)
    trainer.update()
    assert (p.as_array() == before).all() and t.as_array()[1].sum() == pytest.approx(1)
    m.add_parameters(2, init=-1, name="later")
    with pytest.raises(ValueError, match="later has negative"):
        trainer.update()


def test_dense_updates_move_rows_by_their_moments() -> None:
    m = dy.ParameterCollection()
    t = m.add_lookup_parameters((3, 1), init=0)
    trainer = dy.MomentumSGDTrainer(m, 1.0, 0.5)
    trainer.set_sparse_updates(False)
    t.set_rows_grad([1], [[1.0]])
    trainer.update()
    trainer.update()
    np.testing.assert_allclose(t.as_array()[:, 0], [0, -1.5, 0])


def test_numbers_computed_before_an_update_stay() -> None:
    m = dy.ParameterCollection()
    p = m.add_parameters(2, init=1)
    trainer = dy.SimpleSGDTrainer(m, 1.0)
    dy.renew_cg()
    y = dy.sum_elems(dy.square(p))
    assert y.value() == 2
    y.backward()
    trainer.update()
    assert y.value() == 2
    assert dy.sum_elems(dy.square(p)).value() == 2  # (-1)^2 + (-1)^2
    assert dy.sum_elems(p).value() == -2


def test_old_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dy.trainers, "_warned_epoch", False)
    trainer = dy.SimpleSGDTrainer(dy.ParameterCollection())
    with pytest.warns(UserWarning, match="update_epoch"):
        trainer.update_epoch()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer.update_epoch(0.5)  # warns once only
    with pytest.raises(RuntimeError, match="update_subset"):
        trainer.update_subset([], [])


def path_of(trainer: Any, m: Any, steps: range) -> np.ndarray[Any, Any]:
    p, t = m.parameters_list()[0], m.lookup_parameters_list()[0]
    for k in steps:
        p.set_grad(np.random.default_rng(k).normal(size=p.shape()))
        t.set_rows_grad([k % 3], np.random.default_rng(k).normal(size=(1, 2)))
        trainer.update()
    return np.concatenate([p.as_array().ravel(), t.as_array().ravel()])


@pytest.mark.parametrize("name", [*NAMES, "AdamWTrainer"])
def test_training_resumes_exactly(name: str) -> None:
    def fresh() -> tuple[Any, Any]:
        m = dy.ParameterCollection()
        m.add_parameters((2, 3), init=1)
        m.add_lookup_parameters((3, 2), init=1)
        return m, getattr(dy, name)(m)

    m, trainer = fresh()
    expected = path_of(trainer, m, range(6))
    m, trainer = fresh()
    path_of(trainer, m, range(3))
    saved = trainer.state_dict()
    for m2, trainer2 in (pickle.loads(pickle.dumps((m, trainer))), copy.deepcopy((m, trainer))):
        assert trainer2.model is m2
        np.testing.assert_array_equal(path_of(trainer2, m2, range(3, 6)), expected)
    trainer.restart()
    trainer.load_state_dict(saved)
    np.testing.assert_array_equal(path_of(trainer, m, range(3, 6)), expected)
    with pytest.raises(ValueError, match="state is that of"):
        dy.EGTrainer(m).load_state_dict(saved)


def test_no_heap_call_in_a_steady_step() -> None:
    m = dy.ParameterCollection()
    p, t = m.add_parameters((30, 20)), m.add_lookup_parameters((50, 20))
    m.set_weight_decay(1e-3)
    trainers = [getattr(dy, name)(m) for name in [*NAMES, "AdamWTrainer"]]
    for k in range(8):
        for trainer in trainers:
            before = dy.heap_calls()
            with_gradient(p)
            t.set_rows_grad([k, k + 3], np.ones((2, 20)))
            trainer.update()
            if k > 3:
                assert dy.heap_calls() == before, type(trainer).__name__


@pytest.mark.parametrize("width", [1, 5, 64, 70])
@pytest.mark.parametrize("trainer", [dy.AdamTrainer, dy.MomentumSGDTrainer, dy.RMSPropTrainer])
def test_dense_updates_of_tables_are_those_of_a_weight(trainer: type[dy.Trainer], width: int) -> None:
    """Narrow rows are updated several at a time: with gradients in some, in the first and last, with decay, frozen in between."""
    rows = 1000
    begin = np.random.RandomState(5).randn(rows, width).astype(np.float32)
    m = dy.ParameterCollection()
    table, weight = m.add_lookup_parameters((rows, width), init=begin), m.add_parameters((rows, width), init=begin)
    m.set_weight_decay_lambda(0.01)
    t = trainer(m)
    t.set_sparse_updates(False)
    for k in range(4):
        dy.renew_cg()
        chosen = [0, rows - 1, 17 * k + 3, 816 + k]
        table.set_updated(k != 2)
        weight.set_updated(k != 2)
        matrix = dy.parameter(weight)
        loss = dy.esum([dy.squared_norm(table[i]) + dy.squared_norm(matrix[i]) for i in chosen])
        loss.backward()
        t.update()
        np.testing.assert_allclose(table.as_array(), weight.as_array().reshape(rows, width), rtol=1e-5, atol=1e-7)


def test_threads_that_share_a_trainer_take_each_parameter_once():
    """One that was taken twice would be updated twice."""

    def look(go, trainer):
        go.wait()
        trainer.state_dict()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            model = dy.ParameterCollection()
            trainer = dy.SimpleSGDTrainer(model)
            parameters = [model.add_parameters(1) for _ in range(200)]
            go = threading.Barrier(3)
            with ThreadPoolExecutor(3) as threads:
                for done in [threads.submit(look, go, trainer) for _ in range(3)]:
                    done.result()
            assert trainer._updater.parameters == parameters
    finally:
        sys.setswitchinterval(before)


def test_an_update_is_counted_once():
    """Also one that was put off: what is made of weights between its call and its end is kept."""
    t = dy.SimpleSGDTrainer(model := dy.ParameterCollection())
    model.add_parameters(2)
    before = _core.last_update()
    t.update()
    assert _core.last_update() == before + 1
    _core.weights_changed()
    t._updater.update(t, t.coefficients(), 5.0, 0.0, True, "overlap")
    assert _core.last_update() == before + 2


def test_pickles_of_before_are_read():
    t = dy.SimpleSGDTrainer(model := dy.ParameterCollection())
    model.add_parameters(2)
    again = pickle.loads(pickle.dumps(t))
    again.__setstate__({**t.__getstate__(), "_seen": 1})
    assert set(again.state_dict()["settings"]) == set(t.state_dict()["settings"])
    again.model.add_parameters(3)
    again.update()
    assert len(again._updater.parameters) == 2


def test_an_update_that_is_not_made_is_not_counted():
    class Odd(dy.AdamTrainer):
        wrong = False

        def coefficients(self) -> tuple[float, ...]:
            if self.wrong:
                raise ZeroDivisionError
            return super().coefficients()

    t = Odd(model := dy.ParameterCollection())
    model.add_parameters(2)
    t.wrong = True
    with pytest.raises(ZeroDivisionError):
        t.update()
    assert t.updates == 0
    t.wrong = False

    def rest() -> None:
        raise ZeroDivisionError

    _core.put_off(rest)  # what an update before it could not
    with pytest.raises(ZeroDivisionError):
        t.update()
    assert t.updates == 0
    t.update()
    assert t.updates == 1


def test_settings_may_be_numbers_of_numpy_and_whole_ones():
    t = dy.MomentumSGDTrainer(model := dy.ParameterCollection())
    model.add_parameters(2)
    for mom in (np.float32(0.5), np.float64(0.5), np.int64(1), 0, 0.25):
        t.mom = mom
        again = dy.MomentumSGDTrainer(model)
        again.mom = 0
        state = t.state_dict()
        assert type(state["settings"]["mom"]) in (int, float)
        again.load_state_dict(state)
        assert again.mom == mom
    with pytest.raises(ValueError, match="updates must be a whole number >= 0"):
        t.load_state_dict({**state, "settings": {**state["settings"], "updates": 0.5}})
    for part in ("settings", "state"):
        with pytest.raises(ValueError, match=rf"\[MomentumSGDTrainer\] {part} must be a dict; got NoneType"):
            t.load_state_dict({**state, part: None})
