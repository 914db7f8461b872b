"""Weights and tables without numbers: they are made, saved, updated beside others, and refused in a graph."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from real_dynet import needs_dynet, run

import dynet_lite as dy

SHAPES = [(0,), (0, 2), (2, 0), (2, 0, 3)]
TRAINERS = [getattr(dy, name) for name in dir(dy) if name.endswith("Trainer") and name != "Trainer"]


def with_empty(place: int) -> dy.ParameterCollection:
    """A table, a weight and, before, between or behind them (place 0, 1, 2), empty ones; none with another place."""
    m = dy.ParameterCollection()
    for k in range(3):
        if k == place:
            for shape in SHAPES:
                m.add_lookup_parameters(shape)
                m.add_parameters(shape)
        if k == 0:
            m.add_lookup_parameters((3, 2), init=0.25, name="E")
        if k == 1:
            m.add_parameters((2, 2), init=0.5, name="W")
    return m


def train(m: dy.ParameterCollection, kind: type, sparse: bool, decay: float) -> list[np.ndarray]:
    trainer = kind(m)
    trainer.set_sparse_updates(sparse)
    m.set_weight_decay(decay)
    used = {p.name(): p for p in [*m.parameters_list(), *m.lookup_parameters_list()]}
    for i in (1, 2, 1):
        dy.renew_cg()
        dy.sum_elems(used["/W"] * used["/E"][i]).backward()
        trainer.update()
    return [used[name].as_array() for name in ("/W", "/E")]


@pytest.mark.parametrize("kind", TRAINERS)
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("threads", [1, 2])
def test_every_trainer_updates_what_stands_beside(kind, place, threads):
    dy.configure(threads=threads)
    try:
        for sparse in (True, False):
            for decay in (0.0, 1e-2):
                alone = train(with_empty(9), kind, sparse, decay)
                for a, b in zip(train(with_empty(place), kind, sparse, decay), alone, strict=True):
                    assert np.isfinite(a).all()
                    np.testing.assert_array_equal(a, b)
    finally:
        dy.configure(threads=1)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_without_rows_or_without_numbers(shape, tmp_path):
    m = dy.ParameterCollection()
    E = m.add_lookup_parameters(shape)
    full = shape if len(shape) > 1 else (*shape, 1)
    assert E.shape == full
    assert len(E) == full[0]
    for a in (E.as_array(), E.grad_as_array()):
        assert a.shape == full
    E.zero()
    E.scale(2)
    E.scale_gradient(2)
    E.zero_gradient()
    E.init_from_array(np.zeros(full))
    E.set_rows_grad([], np.zeros((0, *full[1:])))
    assert E.rows_as_array([]).shape == (0, *full[1:])
    m.set_weight_decay(0.1)
    dy.AdamTrainer(m).update()
    m.save(str(tmp_path / "model"))
    m.populate(str(tmp_path / "model"))
    for c in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert c.lookup_parameters_list()[0].shape == full
    trainer = dy.AdamTrainer(m)
    dy.save_checkpoint(str(tmp_path / "checkpoint"), m, trainer)
    dy.load_checkpoint(str(tmp_path / "checkpoint"), m, trainer)


def test_in_a_graph_they_are_refused():
    m = dy.ParameterCollection()
    dy.renew_cg()
    none = m.add_lookup_parameters((0, 2))
    with pytest.raises(IndexError, match="a table with 0 rows"):
        none[0]
    with pytest.raises(IndexError, match="a table with 0 rows"):
        none.batch([0])
    with pytest.raises(ValueError, match="is empty"):
        m.add_lookup_parameters((2, 0))[0]
    with pytest.raises(ValueError, match="is empty"):
        dy.tanh(none)


def test_a_negative_number_of_rows():
    with pytest.raises(ValueError, match="dims must be whole numbers >= 0"):
        dy.ParameterCollection().add_lookup_parameters((-1, 2))


@needs_dynet
def test_dynet_takes_a_table_without_rows():
    code = """
m = dy.ParameterCollection()
t = m.add_lookup_parameters((0, 2))
W = m.add_parameters((2, 2))
dy.renew_cg(); dy.sum_elems(W * dy.inputVector([1, 2])).backward()
dy.AdamTrainer(m).update()
out = list(t.shape())
"""
    assert run(code) == [0, 2]
