"""Trainers whose settings are fields of a compiled class: hooks, pickles, what compiled functions read, what an update runs."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

import dynet_lite as dy


def moved_by_one_update(trainer: dy.Trainer, p: dy.Parameters) -> float:
    """How far a weight with a gradient of 1 goes."""
    p.set_value([0.0])
    p.set_grad([1.0])
    trainer.update()
    return -p.as_array().item()


def test_coefficients_and_decay_may_be_anybodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a class, of one that it derives from, of the object itself: an update asks whoever is nearest, as they are now."""

    class Halves:
        def coefficients(self) -> tuple[float, ...]:
            return (0.5,)

    class Mixed(Halves, dy.SimpleSGDTrainer):
        pass

    class Own(dy.SimpleSGDTrainer):
        pass

    p = (model := dy.ParameterCollection()).add_parameters(1)
    assert moved_by_one_update(dy.SimpleSGDTrainer(model), p) == np.float32(0.1)
    assert moved_by_one_update(Mixed(model), p) == 0.5
    own = Own(model)
    assert moved_by_one_update(own, p) == np.float32(0.1)
    monkeypatch.setattr(Own, "coefficients", lambda self: (0.25,), raising=False)
    assert moved_by_one_update(own, p) == 0.25
    own.coefficients = lambda: (0.125,)  # type: ignore[method-assign]
    assert moved_by_one_update(own, p) == 0.125
    del own.coefficients
    assert moved_by_one_update(own, p) == 0.25
    monkeypatch.undo()
    assert moved_by_one_update(own, p) == np.float32(0.1)
    monkeypatch.setattr(dy.SimpleSGDTrainer, "decay", lambda self: 0.5, raising=False)
    assert moved_by_one_update(own, p) == np.float32(0.05)
    own.coefficients = lambda: [1.0]  # type: ignore[method-assign, assignment, return-value]
    before = own.updates
    with pytest.raises(TypeError, match="tuple"):
        own.update()
    assert own.updates == before


def test_a_trainer_that_was_not_made_whole() -> None:
    class Forgets(dy.SimpleSGDTrainer):
        def __init__(self, m: dy.ParameterCollection) -> None:
            self.mine = 1

    for trainer in (Forgets(dy.ParameterCollection()), dy.AdamTrainer.__new__(dy.AdamTrainer)):
        with pytest.raises(AttributeError, match=r"__init__\(\) of the trainer that it derives from was not called"):
            trainer.update()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_pickle_has_all_settings(protocol: int) -> None:
    t = dy.AdamTrainer(dy.ParameterCollection(), 0.5, beta_1=0.25)
    t.set_clip_threshold(float("inf"))
    t.set_sparse_updates(False)
    t.updates, t.note = 7, "mine"  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(t, protocol))
    assert type(again) is dy.AdamTrainer and again.state_dict() == t.state_dict() and again.note == "mine"
    settings = again.state_dict()["settings"]
    assert list(settings) == [
        "learning_rate", "clip", "sparse", "updates", "recent_updates", "recent_clips", "averaging",
        "averaging_beta", "averaging_every", "averaged", "beta_1", "beta_2", "eps",
    ]  # fmt: skip
    assert settings["learning_rate"] == 0.5 and settings["sparse"] is False and type(settings["updates"]) is int


def test_an_update_runs_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of plain SGD; of other rules coefficients() alone."""
    p = (model := dy.ParameterCollection()).add_parameters(1)
    model.set_weight_decay(0.5)
    for trainer, called in ((dy.SimpleSGDTrainer(model), []), (dy.AdagradTrainer(model), ["coefficients"])):
        trainer.update()  # the first takes the parameters
        p.set_grad([1.0])
        calls: list[str] = []
        sys.setprofile(
            lambda frame, event, arg, calls=calls: calls.append(frame.f_code.co_name) if event == "call" else None
        )
        try:
            trainer.update()
        finally:
            sys.setprofile(None)
        assert calls == called


@pytest.mark.parametrize("name", ["updates", "learning_rate", "_learning_rate", "_clip", "beta_1"])
def test_compiled_functions_watch_settings(name: str) -> None:
    p = (model := dy.ParameterCollection()).add_parameters(1, init=1)
    t = dy.AdamTrainer(model)
    f = dy.compile(eval(f"lambda x: dy.sum_elems(dy.cmult(p, x)) * t.{name}", {"dy": dy, "p": p, "t": t}))
    for value in (2, 3, 3, 2):
        setattr(t, name, value)
        assert f(np.ones(1, np.float32)) == value
