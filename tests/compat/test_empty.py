"""Weights and tables of size 0: programs make them when an option switches a feature off, save them, and never use them."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from real_dynet import needs_dynet, run

import dynet_lite as dy
from dynet_lite import config

SHAPES = [("add_parameters", (2, 0)), ("add_parameters", (0, 3)), ("add_lookup_parameters", (2, 0)),
          ("add_lookup_parameters", (2, 0, 3))]  # fmt: skip


@pytest.mark.parametrize(("make", "shape"), SHAPES)
@pytest.mark.parametrize("init", [None, "normal", "uniform", "he", 1.0])
def test_made_trained_around_and_saved(tmp_path: Path, make: str, shape: tuple[int, ...], init: object) -> None:
    m = dy.ParameterCollection()
    p, w = getattr(m, make)(shape, init=init), m.add_parameters(3)
    assert p.shape() == p.as_array().shape == p.grad_as_array().shape == shape and m.parameter_count() == 3
    for trainer in (dy.AdamTrainer(m), dy.SimpleSGDTrainer(m)):
        m.set_weight_decay(0.1)
        dy.renew_cg()
        dy.sum_elems(w).backward()
        trainer.update()
        trainer.load_state_dict(trainer.state_dict())
    p.zero()
    p.scale(2)
    p.scale_gradient(2)
    m.save(tmp_path / "file")
    other = dy.ParameterCollection()
    getattr(other, make)(shape)
    w2 = other.add_parameters(3)
    other.populate(tmp_path / "file")
    assert (w2.as_array() == w.as_array()).all()
    for again in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
        assert [q.shape() for q in again._all] == [shape, (3,)]


@pytest.mark.parametrize(("make", "shape"), SHAPES)
def test_using_one_is_an_error(make: str, shape: tuple[int, ...]) -> None:
    p = getattr(dy.ParameterCollection(), make)(shape)
    for use in (lambda: dy.tanh(p), lambda: p[0], lambda: p + 1, lambda: dy.lookup_batch(p, [0, 1]), lambda: p.value()):
        with pytest.raises((ValueError, TypeError)):
            use()


@needs_dynet
def test_the_file_is_that_of_dynet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "is_dynet", lambda: True)  # whose builders give their parameters no names

    def model(dy):  # type: ignore[no-untyped-def]
        m = dy.ParameterCollection()
        dy.VanillaLSTMBuilder(1, 0, 3, m)
        m.add_lookup_parameters((2, 0))
        return m

    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    model(dy).save(ours)
    run("""
m = dy.ParameterCollection()
dy.VanillaLSTMBuilder(1, 0, 3, m)
m.add_lookup_parameters((2, 0))
m.populate(data[0])
m.save(data[1])
""", [str(ours), str(theirs)])  # fmt: skip
    assert ours.read_bytes() == theirs.read_bytes()
    again = model(dy)
    again.populate(theirs)
