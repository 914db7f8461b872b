"""A graph that is never renewed: what a loss does not depend on costs its backward pass nothing, and the user is told once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core


class Model:
    """Losses over words in random order, some of which hang on states of earlier steps."""

    def __init__(self) -> None:
        dy.reset_random_seed(3)
        self.m = dy.ParameterCollection()
        self.E = self.m.add_lookup_parameters((30, 8))
        self.W = self.m.add_parameters((5, 8))
        self.lstm = dy.LSTMBuilder(1, 8, 8, self.m)
        self.rng = np.random.RandomState(1)

    def losses(self, sentences: int = 4) -> tuple[Any, Any]:
        """(loss, a state of it)."""
        losses = []
        for _ in range(sentences):
            s = self.lstm.initial_state()
            for w in self.rng.randint(0, 30, 5):
                s = s.add_input(self.E[int(w)])
                losses.append(dy.pickneglogsoftmax(self.W * s.output(), int(w) % 5))
        return dy.esum(losses), s.output()

    def gradients(self) -> list[np.ndarray[Any, Any]]:
        out = [p.grad_as_array() for p in [*self.m.parameters_list(), *self.m.lookup_parameters_list()]]
        for p in [*self.m.parameters_list(), *self.m.lookup_parameters_list()]:
            p.zero_gradient()
        return out


@pytest.fixture
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    work = _core.settings.least_work
    dy.configure(threads=request.param)
    _core.settings.least_work = 1
    yield request.param
    dy.configure(threads=1)
    _core.settings.least_work = work


def step(model: Model, kept: list[Any], k: int, full: bool) -> list[np.ndarray[Any, Any]]:
    """Now and then the loss hangs on a state that was made long before."""
    loss, state = model.losses()
    if kept and k % 3 == 0:
        loss = loss + dy.squared_norm(state + kept[k % len(kept)])
    kept.append(state)
    loss.value()
    loss.backward(full and k % 4 == 0)
    return model.gradients()


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("threads", [1, 2], indirect=True)
def test_gradients_are_those_of_a_graph_of_their_own(threads: int, full: bool) -> None:
    """Reference: all steps so far are built again in a new graph, and one backward pass is run."""
    model, kept = Model(), []
    dy.renew_cg()
    got = [step(model, kept, k, full) for k in range(8)]
    for last in range(8):
        model, kept = Model(), []
        dy.renew_cg()
        for _ in range(last):
            kept.append(model.losses()[1])
        for a, b in zip(got[last], step(model, kept, last, full), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_an_old_loss_again_after_new_ones() -> None:
    model = Model()
    dy.renew_cg()
    first, state = model.losses()
    first.backward()
    expected, of_state = model.gradients(), state.gradient()
    for _ in range(5):
        loss, _ = model.losses()
        loss.backward()
        model.gradients()
        assert not state.gradient().any()
    first.backward()
    for a, b in zip(model.gradients(), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(state.gradient(), of_state, rtol=1e-5, atol=1e-7)


def test_gradients_take_the_memory_of_one_step() -> None:
    model = Model()
    dy.renew_cg()
    sizes = []
    for _ in range(60):
        loss, _ = model.losses()
        loss.backward()
        model.gradients()
        sizes.append(dy.stats()["gradient_bytes"])
    assert sizes[-1] == sizes[5]


PROGRAM = """
import sys, warnings
import numpy as np
import dynet_lite as dy
m = dy.ParameterCollection()
W = m.add_parameters((4, 4)); t = dy.SimpleSGDTrainer(m)
x = dy.inputVector([1, 2, 3, 4])
static = dy.squared_norm(W * x)
for k in range(40):
    what = sys.argv[1]
    if what == "renewed": dy.renew_cg()
    if what == "reverted": dy.cg_checkpoint()
    if what == "static": x.set([k, 2, 3, 4])
    loss = static if what == "static" else dy.squared_norm(W * dy.inputVector([k % 5, 2, 3, 4]))
    loss.backward()   # this line
    if what != "accumulated" or k % 8 == 7: t.update()
    if what == "reverted": dy.cg_revert()
"""


@pytest.mark.parametrize(
    ("what", "times"), [("forgotten", 1), ("renewed", 0), ("reverted", 0), ("static", 0), ("accumulated", 0)]
)
def test_one_warning_when_a_graph_is_never_renewed(what: str, times: int, tmp_path: Any) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, program, what], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("dy.renew_cg()") == times
    assert done.stderr.count("loss.backward()   # this line") == times
