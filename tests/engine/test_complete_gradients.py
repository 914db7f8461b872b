"""Gradients that are said to be complete while a backward pass runs: nothing is added to them afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from programs import run_code

import dynet_lite as dy
from dynet_lite import _core

SETTINGS = [{}, {"autobatch": False}, {"fuse": False}, {"strategy": "agenda"}, {"threads": 2}]


class Model:
    """Layers that are used once, at each step, through aliases, in products of weights, and not at all."""

    def __init__(self) -> None:
        self.m = m = dy.ParameterCollection()
        self.lstm = dy.LSTMBuilder(2, 6, 5, m)
        self.W, self.V, self.U = m.add_parameters((4, 5)), m.add_parameters((4, 4)), m.add_parameters((3, 4))
        self.b, self.c, self.never = m.add_parameters(4), m.add_parameters(3), m.add_parameters(7)
        self.x = m.add_parameters(6)  # an argument of single nodes
        self.wide = m.add_parameters(20)  # read as a matrix
        self.E = m.add_lookup_parameters((9, 6))
        self.all = m.parameters_list()

    def loss(self, seed: int) -> dy.Expression:
        rng = np.random.RandomState(seed)
        dy.renew_cg()
        WV = self.V * self.W
        losses = []
        for _ in range(6):
            words = [self.E[int(i)] for i in rng.randint(0, 9, rng.randint(1, 7))]
            outputs = self.lstm.initial_state().transduce([*words, self.x])
            h = [dy.tanh(dy.affine_transform([self.b, WV, y])) for y in outputs]
            if rng.rand() < 0.5:
                h = [dy.cmult(y, self.b) for y in h]
            h.append(dy.reshape(self.wide, (4, 5)) * outputs[-1])
            losses += [dy.pickneglogsoftmax(dy.affine_transform([self.c, self.U, y]), int(rng.randint(3))) for y in h]
        return dy.esum(losses)


def told(model: Model, loss: dy.Expression) -> dict[int, Any]:
    """What was said to be complete, with its gradient at that time."""
    found: dict[int, Any] = {}

    def note(parameters: list[Any]) -> None:
        for p in parameters:
            k = next(k for k, q in enumerate(model.all) if q is p)
            assert k not in found
            found[k] = np.array(_core._gradient_view(p))

    _core._backward_watched(loss, model.all, note)
    return found


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_added_to_what_is_complete(
    settings: dict[str, Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core.settings, "least_work", 0)
    dy.reset_random_seed(seed)
    model = Model()
    with dy.configure(**settings):
        model.loss(seed).backward()
        want = [p.grad_as_array() for p in model.all]
        for p in model.all:
            p.zero_gradient()
        model.E.zero_gradient()
        found = told(model, model.loss(seed))
    used = [k for k, p in enumerate(model.all) if p is not model.never]
    assert sorted(found) == used
    for k in used:
        assert np.array_equal(found[k].reshape(want[k].shape, order="F"), want[k].astype(np.float32)), model.all[
            k
        ].name()
        assert np.any(want[k])


def test_the_output_layer_is_complete_first() -> None:
    model = Model()
    order = [model.all[k].name() for k in told(model, model.loss(1))]
    assert {order[0], order[1]} == {model.U.name(), model.c.name()}
    assert order.index(model.U.name()) < order.index(model.W.name())


def test_values_that_were_asked_for_in_between() -> None:
    """Several runs of one graph, of which the first uses what the last uses, too."""
    model = Model()
    dy.renew_cg()
    h = dy.tanh(model.W * model.lstm.initial_state().add_input(model.x).output())
    h.value()
    loss = dy.sum_elems(model.V * h) + dy.sum_elems(model.V * dy.tanh(model.V * h))
    loss.value()
    found = told(model, loss)
    for k, values in found.items():
        assert np.array_equal(values, np.array(_core._gradient_view(model.all[k])))
    order = [model.all[k] for k in found]
    assert order[0] is model.V


def test_an_error_comes_through() -> None:
    model = Model()

    def broken(parameters: list[Any]) -> None:
        raise KeyError("told")

    with pytest.raises(KeyError, match="told"):
        _core._backward_watched(model.loss(1), model.all, broken)
    calls = _core._backward_calls()
    model.loss(2).backward()  # nobody is told any more
    assert _core._backward_calls() == calls + 1
    with pytest.raises(ValueError, match=r"\[backward\] needs a scalar"):
        _core._backward_watched(model.E[0], model.all, broken)


def test_gradients_are_forgotten_beside_a_watched_pass(tmp_path):
    # The pass has the mutex of the weights and asks for the GIL.
    program = """if True:
        import faulthandler, threading
        import numpy as np
        import dynet_lite as dy
        from dynet_lite import _core
        faulthandler.dump_traceback_later(60, exit=True)
        m = dy.ParameterCollection()
        all = [m.add_parameters((100, 100)) for _ in range(6)]
        done = False

        def forget():
            while not done:
                all[0].zero_gradient()

        thread = threading.Thread(target=forget)
        thread.start()
        for _ in range(20):
            dy.renew_cg()
            x = dy.inputTensor(np.ones(100))
            for p in all:
                x = dy.tanh(p * x)
            _core._backward_watched(dy.sum_elems(x), all, lambda told: None)
        done = True
        thread.join()
    """
    done = run_code(program, tmp_path, 120)
    assert done.returncode == 0, done.stderr
