"""Files that were written before builders gave their parameters names; they are in the folder unnamed/ and are read by place."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import io
from dynet_lite.naming import by_place

FOLDER = Path(__file__).parent / "unnamed"


def model() -> tuple[dy.ParameterCollection, list[Any]]:
    """As it was when the files were written, but for the names."""
    m = dy.ParameterCollection()
    parts = [
        dy.BiRNNBuilder(1, 2, 2, m, dy.LSTMBuilder, name="encoder"),
        dy.GRUBuilder(2, 1, 1, m),
        dy.StandardSoftmaxBuilder(2, 3, m, name="out"),
        dy.NaryTreeLSTMBuilder(2, 1, 1, 1, m),
    ]
    m.add_lookup_parameters((2, 2), name="words")
    m.add_parameters(2, name="w")
    return m, parts


def written() -> list[np.ndarray[Any, Any]]:
    """The values in the order in which the parameters were made, from the text file."""
    file = io.TextFile(FOLDER / "objects.data")
    entries = file.entries
    assert [e.name for e in entries[:2]] == ["/birnn/vanilla-lstm-builder/_0", "/birnn/vanilla-lstm-builder/_1"]
    return [file.arrays(e)[0] for e in entries]


def same(m: dy.ParameterCollection) -> None:
    for p, array in zip(m._all, written(), strict=True):
        np.testing.assert_allclose(p.as_array(), array.reshape(p.shape), rtol=1e-6)


def test_text() -> None:
    m, _ = model()
    m.populate(FOLDER / "objects.data")
    same(m)


def test_objects() -> None:
    m = dy.ParameterCollection()
    objects = dy.load(FOLDER / "objects", m)
    assert [type(o).__name__ for o in objects] == [
        "BiRNNBuilder", "GRUBuilder", "StandardSoftmaxBuilder", "NaryTreeLSTMBuilder", "LookupParameters", "Parameters",
    ]  # fmt: skip
    same(m)


def test_checkpoint() -> None:
    """Values, gradients, moments and the rest go on; builders are made again."""
    file = dy.read_checkpoint(FOLDER / "checkpoint")
    assert {"/birnn/vanilla-lstm-builder/_0", "/gru-builder/_17", "/_0", "/w"} <= set(file.parameters)
    m, parts = model()
    trainer = dy.AdamTrainer(m)
    file.restore(m, trainer, builders=dict(zip("abcd", parts, strict=True)))
    same(m)
    wx = parts[0].builder_layers[0][0].get_parameters()[0][0]
    grad = dy.checkpoint._read(str(FOLDER / "checkpoint"))[0]["grad:/birnn/vanilla-lstm-builder/_0"]
    assert wx.name() == "/encoder/layer0/forward/Wx" and (wx.grad_as_array() == grad).all() and grad.any()
    moments = trainer.state_dict()["state"]
    assert trainer.updates == 1 and moments["/encoder/layer0/forward/Wx"].any() and moments["/words"].any()
    assert set(file.parameters_of(m)) == {p.name() for p in m._all}
    np.testing.assert_array_equal(file.parameters_of(m)["/out/W"], parts[2].get_parameters()[0]._values())
    other = dy.ParameterCollection()
    again = [file.build(name, other) for name in "abcd"]
    other.add_lookup_parameters((2, 2))
    other.add_parameters(2)
    file.restore(other, builders=dict(zip("abcd", again, strict=True)))
    same(other)


def test_states_of_trainers() -> None:
    m, _ = model()
    trainer = dy.AdamTrainer(m)
    dy.renew_cg()
    dy.esum([dy.sum_elems(p) for p in m._all]).backward()
    trainer.update()
    state = copy.deepcopy(trainer.state_dict())
    moments = {name: np.array(a) for name, a in state["state"].items()}
    state["state"] = {f"/old/_{k}": a for k, a in enumerate(state["state"].values())}
    trainer.restart()
    trainer.load_state_dict(state)
    assert all((a == moments[name]).all() for name, a in trainer.state_dict()["state"].items())
    state["state"] = {name.replace("_", "x"): a for name, a in state["state"].items()}
    with pytest.raises(ValueError, match="other parameters"):
        trainer.load_state_dict(state)


def test_by_place() -> None:
    assert by_place(["/a", "/b"], ["/b", "/a"]) == {"/a": "/a", "/b": "/b"}
    assert by_place(["/W", "/s/b", "/c"], ["/_0", "/old/_12", "/c"]) == {"/_0": "/W", "/old/_12": "/s/b", "/c": "/c"}
    assert by_place(["/_0", "/_1"], ["/x", "/_0"]) == {"/x": "/_0", "/_0": "/_1"}  # the model has none
    assert by_place(["/a", "/b"], ["/_0", "/c"]) is None
    assert by_place(["/a", "/b"], ["/_0"]) is by_place(["/a"], ["/_0x"]) is by_place(["/a"], ["/_0/b"]) is None


def test_shapes_must_fit(tmp_path: Path) -> None:
    old, new = dy.ParameterCollection(), dy.ParameterCollection()
    old.add_parameters(2)
    old.add_parameters(3)
    dy.save_checkpoint(tmp_path / "c", old)
    a, b = new.add_parameters(3, name="a"), new.add_parameters(2, name="b")
    before = a.as_array()
    with pytest.raises(
        dy.ModelFileError, match=r"/a is a weight of shape \(3,\) in the model, a weight, /_0, of shape \(2,\)"
    ):
        dy.load_checkpoint(tmp_path / "c", new)
    assert (a.as_array() == before).all() and b.shape == (2,)
