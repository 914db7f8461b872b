"""Moving averages of the weights, kept by trainers."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy


def model() -> tuple[Any, Any, Any]:
    m = dy.ParameterCollection()
    return m, m.add_parameters((2, 3), init=1), m.add_lookup_parameters((4, 2), init=1)


def step(trainer: Any, w: Any, e: Any, row: int = 1) -> tuple[np.ndarray, np.ndarray]:
    dy.renew_cg()
    (dy.squared_norm(w) + dy.squared_norm(e[row])).backward()
    trainer.update()
    return w.as_array(), e.as_array()


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("correction", [True, False])
def test_exponential(every: int, correction: bool) -> None:
    m, w, e = model()
    trainer = dy.MomentumSGDTrainer(m, 0.1)
    assert trainer.moving_average() == "none"
    trainer.exponential_moving_average(0.9, every)
    assert trainer.moving_average() == "exponential"
    aw, ae, n = np.zeros((2, 3)), np.zeros((4, 2)), 0
    for k in range(5):
        vw, ve = step(trainer, w, e, k % 3)
        if k % every == 0:
            aw, ae, n = 0.9 * aw + 0.1 * vw, 0.9 * ae + 0.1 * ve, n + 1
    scale = 1 / (1 - 0.9**n) if correction else 1
    trainer.swap_params_to_moving_average(bias_correction=correction)
    trainer.swap_params_to_moving_average()  # nothing more
    np.testing.assert_allclose(w.as_array(), aw * scale, rtol=1e-5)
    np.testing.assert_allclose(e.as_array(), ae * scale, rtol=1e-5)
    trainer.swap_params_to_weights()
    np.testing.assert_array_equal(w.as_array(), vw)
    np.testing.assert_array_equal(e.as_array(), ve)


@pytest.mark.parametrize("beta", [0.999, 0.9999, 0.99999, 1 - 1e-8])
def test_averages_of_equal_values_are_these(beta: float) -> None:
    m, w, e = model()
    trainer = dy.SimpleSGDTrainer(m, 0.0)
    trainer.exponential_moving_average(beta)
    for _ in range(20):
        vw, ve = step(trainer, w, e)
    trainer.swap_params_to_moving_average(bias_correction=True)
    np.testing.assert_allclose(w.as_array(), vw, rtol=2e-6)
    np.testing.assert_allclose(e.as_array(), ve, rtol=2e-6)


def test_cumulative() -> None:
    m, w, e = model()
    m.set_weight_decay(0.01)
    trainer = dy.SimpleSGDTrainer(m, 0.1)
    trainer.cumulative_moving_average()
    seen = [step(trainer, w, e, k % 4) for k in range(7)]
    trainer.swap_params_to_moving_average()
    np.testing.assert_allclose(w.as_array(), np.mean([v for v, _ in seen], 0), rtol=1e-5)
    np.testing.assert_allclose(e.as_array(), np.mean([v for _, v in seen], 0), rtol=1e-5)
    other = model()
    plain = dy.SimpleSGDTrainer(other[0], 0.1)
    other[0].set_weight_decay(0.01)
    for k in range(8):
        wanted = step(plain, *other[1:], k % 4)
    trainer.swap_params_to_weights()
    given = step(trainer, w, e, 7 % 4)
    np.testing.assert_array_equal(given[0], wanted[0])
    np.testing.assert_array_equal(given[1], wanted[1])


def test_update_puts_the_weights_back() -> None:
    m, w, e = model()
    trainer = dy.SimpleSGDTrainer(m)
    trainer.exponential_moving_average(0.9)
    before, _ = step(trainer, w, e)
    trainer.swap_params_to_moving_average()
    trainer.update()  # no gradients
    np.testing.assert_array_equal(w.as_array(), before)


def test_weights_are_not_lost_while_averages_are_in_their_place() -> None:
    m, w, e = model()
    trainer = dy.SimpleSGDTrainer(m)
    trainer.exponential_moving_average(0.9)
    before, _ = step(trainer, w, e)
    state = trainer.state_dict()
    trainer.swap_params_to_moving_average()
    with pytest.raises(ValueError):
        trainer.load_state_dict({**state, "trainer": "AdamTrainer"})
    assert (w.as_array() != before).any()
    trainer.load_state_dict(state)
    np.testing.assert_array_equal(w.as_array(), before)
    trainer.swap_params_to_moving_average()
    trainer.restart()
    trainer.cumulative_moving_average()
    np.testing.assert_array_equal(w.as_array(), before)


def test_weights_that_were_not_saved() -> None:
    m, w, e = model()
    trainer = dy.AdamTrainer(m)
    trainer.exponential_moving_average(0.5)
    step(trainer, w, e)
    trainer.swap_params_to_moving_average(save_weights=False)
    for use in (trainer.swap_params_to_weights, trainer.update):
        with pytest.raises(RuntimeError, match="not saved"):
            use()


def test_wrong_uses() -> None:
    m, w, e = model()
    trainer = dy.SimpleSGDTrainer(m)
    with pytest.raises(RuntimeError, match="no averages"):
        trainer.swap_params_to_moving_average()
    for beta, every in ((1.0, 1), (-0.1, 1), (0.5, 0)):
        with pytest.raises(ValueError):
            trainer.exponential_moving_average(beta, every)
    trainer.cumulative_moving_average()
    with pytest.raises(RuntimeError, match="before the first update"):
        trainer.swap_params_to_moving_average()
    trainer.swap_params_to_weights()
    step(trainer, w, e)
    with pytest.raises(RuntimeError, match="before the first update"):
        trainer.exponential_moving_average(0.9)


def test_a_parameter_that_came_later() -> None:
    m, w, e = model()
    trainer = dy.SimpleSGDTrainer(m)
    trainer.cumulative_moving_average()
    step(trainer, w, e)
    late = m.add_parameters(2, init=5)
    trainer.swap_params_to_moving_average()
    assert late.as_array().tolist() == [5, 5]
    trainer.swap_params_to_weights()
    assert late.as_array().tolist() == [5, 5]


@pytest.mark.parametrize("mode", ["cumulative", "exponential"])
def test_values_of_a_parameter_that_came_later_count_from_then_on(mode: str) -> None:
    m, w, e = model()
    trainer = dy.SimpleSGDTrainer(m)
    if mode == "cumulative":
        trainer.cumulative_moving_average()
    else:
        trainer.exponential_moving_average(0.9)
    for k in range(9):
        first = step(trainer, w, e, k % 4)[0]
    late, table = m.add_parameters(2), m.add_lookup_parameters((3, 2))
    seen = []
    for value in (3, 5):
        late.set_value(np.full(2, value))
        table.init_from_array(np.full((3, 2), value))
        trainer.update()  # no gradients
        seen.append(value)
    trainer.swap_params_to_moving_average(bias_correction=True)
    mean = np.mean(seen) if mode == "cumulative" else (0.9 * 3 + 5) / 1.9
    np.testing.assert_allclose(late.as_array(), mean, rtol=1e-5)
    np.testing.assert_allclose(table.as_array(), mean, rtol=1e-5)
    assert not np.allclose(w.as_array(), first)


def test_a_collection_that_is_empty_at_first() -> None:
    m = dy.ParameterCollection()
    trainer = dy.SimpleSGDTrainer(m)
    trainer.cumulative_moving_average()
    for save in (True, False):
        trainer.update()
        trainer.swap_params_to_moving_average(save_weights=save)
        trainer.swap_params_to_weights()
    w = m.add_parameters(2, init=3)
    trainer.update()
    trainer.swap_params_to_moving_average()
    np.testing.assert_allclose(w.as_array(), 3)


def gone_over(how: str, m: Any, trainer: Any, path: Path) -> tuple[Any, Any]:
    """The model and the trainer after a way through bytes; the trainer alone is another one."""
    if how == "pickle":
        return tuple(pickle.loads(pickle.dumps((m, trainer))))  # type: ignore[return-value]
    if how == "deepcopy":
        return copy.deepcopy((m, trainer))
    other = type(trainer)(m)
    if how == "checkpoint":
        dy.save_checkpoint(path, m, trainer)
        dy.load_checkpoint(path, m, other)
    else:
        other.load_state_dict(trainer.state_dict())
    return m, other


@pytest.mark.parametrize("kind", ["SimpleSGDTrainer", "AdamTrainer"])
@pytest.mark.parametrize("how", ["state_dict", "pickle", "deepcopy", "checkpoint"])
def test_when_parameters_came_is_state(kind: str, how: str, tmp_path: Path) -> None:
    """One has been there from the first value, one came later, and one has no average yet and keeps its values."""
    m, w, e = model()
    trainer = getattr(dy, kind)(m)
    trainer.exponential_moving_average(0.9)
    for k in range(4):
        step(trainer, w, e, k)
    assert "missed" not in trainer.state_dict()
    m.add_parameters(2, init=1)
    m.add_parameters((0, 2))
    step(trainer, w, e)
    last = m.parameters_from_numpy(np.array([5.0, 7.0]))
    assert sorted(trainer.state_dict()["missed"].values()) == [4, 5]
    m2, other = gone_over(how, m, trainer, tmp_path / "c")
    assert repr(other.state_dict()) == repr(trainer.state_dict())
    found = []
    for collection, t in ((m, trainer), (m2, other)):
        t.swap_params_to_moving_average(bias_correction=True)
        found.append([p.as_array().tolist() for p in collection.parameters_list()])
        t.swap_params_to_weights()
    assert found[0] == found[1]
    np.testing.assert_allclose(found[1][1], 1, rtol=1e-5)
    assert found[1][-1] == [5, 7] == last.as_array().tolist()


def test_states_of_before_and_wrong_ones() -> None:
    m, w, e = model()
    trainer = dy.SimpleSGDTrainer(m)
    trainer.cumulative_moving_average()
    step(trainer, w, e)
    late = m.add_parameters(2, init=1)
    step(trainer, w, e)
    state = trainer.state_dict()
    assert state["missed"] == {late.name(): 1}
    before = repr(state)
    for wrong in ([], {"/x": 1}, {late.name(): 0}, {late.name(): 3}, {late.name(): True}, {late.name(): "1"}):
        with pytest.raises(ValueError, match="missed"):
            trainer.load_state_dict({**state, "missed": wrong})
        assert repr(trainer.state_dict()) == before
    del state["missed"]
    trainer.load_state_dict(state)  # of all values
    trainer.swap_params_to_moving_average()
    np.testing.assert_allclose(late.as_array(), 1)


@pytest.mark.parametrize("kind", ["SimpleSGDTrainer", "AdamTrainer"])
@pytest.mark.parametrize("how", ["state_dict", "pickle", "deepcopy", "checkpoint"])
def test_averages_are_state(kind: str, how: str, tmp_path: Path) -> None:
    m, w, e = model()
    trainer = getattr(dy, kind)(m)
    trainer.exponential_moving_average(0.9, 2)
    for k in range(5):
        step(trainer, w, e, k % 4)
    if how == "pickle":
        m2, w2, e2, other = pickle.loads(pickle.dumps((m, w, e, trainer)))
    elif how == "deepcopy":
        m2, w2, e2, other = copy.deepcopy((m, w, e, trainer))
    else:
        m2, w2, e2 = model()
        other = getattr(dy, kind)(m2)
        if how == "checkpoint":
            dy.save_checkpoint(tmp_path / "c", m, trainer)
            dy.load_checkpoint(tmp_path / "c", m2, other)
        else:
            w2.set_value(w.as_array())
            e2.init_from_array(e.as_array())
            other.load_state_dict(trainer.state_dict())
    for k in range(3):
        step(trainer, w, e, k)
        step(other, w2, e2, k)
    for t in (trainer, other):
        t.swap_params_to_moving_average(bias_correction=True)
    np.testing.assert_array_equal(w.as_array(), w2.as_array())
    np.testing.assert_array_equal(e.as_array(), e2.as_array())
    if how == "state_dict":
        with pytest.raises(RuntimeError, match="in the place of the weights"):
            trainer.state_dict()
