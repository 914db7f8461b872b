"""Names that programs use rarely and that no other test is about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynet_lite as dy


def test_inputs_of_a_graph() -> None:
    g = dy.renew_cg()
    e = g.inputMatrixLiteral([1, 2, 3, 4, 5, 6, 7, 8], (2, 2), 2)
    assert e.dim() == ((2, 2), 2) and e.npvalue()[:, :, 0].tolist() == [[1, 3], [2, 4]]
    e = g.inputSparseTensor([0, 3, 4], [5, 6, 7], (2, 2), 2, -1)
    assert e.npvalue().ravel(order="F").tolist() == [5, -1, -1, 6, 7, -1, -1, -1]
    for places, values in (([4], [1.0]), ([0, 1], [1.0]), ([-1], [1.0])):
        with pytest.raises(ValueError, match="places"):
            g.inputSparseTensor(places, values, (2, 2))
    with dy.graph(), pytest.raises(RuntimeError, match="not the current"):
        g.inputMatrixLiteral([1], (1,))
    assert isinstance(dy.inputTensorTranspose, type) and issubclass(dy.inputTensorTranspose, dy.Expression)
    assert dy.inputTensorTranspose([1, 2, 3, 4], (2, 2)).npvalue().tolist() == [[1, 3], [2, 4]]


def test_marks_of_a_graph_object() -> None:
    g = dy.renew_cg()
    a = dy.inputVector([1, 2])
    g.checkpoint()
    b = dy.tanh(a)
    assert b.value()
    g.revert()
    assert len(g) == 1 and a.value() == [1, 2]
    with pytest.raises(RuntimeError):
        b.value()
    g.revert()  # without a mark nothing happens
    assert len(g) == 1


def test_other_names_of_save_and_populate(tmp_path: Path) -> None:
    m = dy.ParameterCollection()
    w, e = m.add_parameters((2, 2)), m.add_lookup_parameters((3, 2))
    before = [w.as_array().tolist(), e.as_array().tolist()]
    m.write_to_textfile(tmp_path / "m")
    w.write_to_textfile(tmp_path / "w", "/x")
    e.write_to_textfile(tmp_path / "e", "/y", append=True)
    for back in (lambda: m.populate_from_textfile(tmp_path / "m"),
                 lambda: (w.populate_from_textfile(tmp_path / "w", "/x"), e.populate_from_textfile(tmp_path / "e", "/y"))):  # fmt: skip
        w.zero()
        e.zero()
        back()
        assert [w.as_array().tolist(), e.as_array().tolist()] == before


def test_set_weight_decay_lambda() -> None:
    m = dy.ParameterCollection()
    m.set_weight_decay_lambda(0.25)
    assert m.get_weight_decay() == m.add_subcollection("s").get_weight_decay() == 0.25


def test_parameters_as_expressions() -> None:
    """expr() is a constant unless update=True; of a table the rows come last."""
    m = dy.ParameterCollection()
    w, e = m.add_parameters((2,), init=1), m.add_lookup_parameters((3, 2), init=1)
    for p, dim in ((w, (2,)), (e, (2, 3))):
        assert p.expr().dim() == (dim, 1)
        dy.squared_norm(p.expr()).backward()
        assert not np.any(p.grad_as_array())
        dy.squared_norm(p.expr(update=True)).backward()
        assert np.all(p.grad_as_array() == 2)


def test_builders_tell_their_arguments() -> None:
    m = dy.ParameterCollection()
    b = dy.BiRNNBuilder(1, 4, 6, m, dy.GRUBuilder)
    assert b.spec == (1, 4, 6, dy.GRUBuilder, None) and b.param_collection().name() == "/birnn/"
    again = dy.BiRNNBuilder.from_spec(b.spec, m)
    assert [
        p.shape() for pair in again.builder_layers for x in pair for layer in x.get_parameters() for p in layer
    ] == [p.shape() for pair in b.builder_layers for x in pair for layer in x.get_parameters() for p in layer]
