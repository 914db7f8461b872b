"""Things that programs do and that no manual lists: each of these behaves as on DyNet, checked there by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dynet_lite as dy


def test_expressions_and_parameters_as_keys() -> None:
    m = dy.ParameterCollection()
    things = [dy.inputVector([1]), m.add_parameters(2), m.add_lookup_parameters((2, 3)), dy.scalarInput(1) + 1]
    table = {e: k for k, e in enumerate(things)}
    assert [table[e] for e in things] == [0, 1, 2, 3] and len(set(things + things)) == 4
    e = things[0]
    assert e == e and e != things[3] and e in things and None not in things
    assert not (e == None) and not (e == [1])  # noqa: E711


def test_arrays_are_float64() -> None:
    """Numbers out of them go into JSON; so do losses."""
    m = dy.ParameterCollection()
    p, table = m.add_parameters((2, 3)), m.add_lookup_parameters((4, 3))
    arrays = [p.as_array(), p.grad_as_array(), p.npvalue(), p.gradient(), table.as_array(), table.row_as_array(1),
              table.rows_as_array([1, 2]), table.grad_as_array(), table.row_grad_as_array(1),
              table.rows_grad_as_array([0, 3]), dy.ones(3).npvalue()]  # fmt: skip
    assert {a.dtype for a in arrays} == {np.dtype("float64")}
    json.dumps([a.sum() for a in arrays] + [dy.ones(1).value(), dy.ones(2).value(), dy.ones(1).scalar_value()])


def test_errors_are_what_programs_catch(tmp_path: Path) -> None:
    m = dy.ParameterCollection()
    table = m.add_lookup_parameters((4, 3))
    x = dy.inputVector([1, 2, 3])
    calls = [lambda: table[4], lambda: dy.lookup(table, 9), lambda: table.batch([0, 4]), lambda: dy.pick(x, 3),
             lambda: dy.pickneglogsoftmax(x, 3), lambda: dy.hinge(x, 5)]  # fmt: skip
    for kind in (ValueError, IndexError):
        for call in calls:
            with pytest.raises(kind):
                call().value()
    with pytest.raises(IndexError):
        x[3]
    for kind in (RuntimeError, FileNotFoundError):
        with pytest.raises(kind):
            m.populate(tmp_path / "none")
    with pytest.raises(RuntimeError):
        (tmp_path / "bad").write_text("x")
        m.populate(tmp_path / "bad")
    dy.renew_cg()
    for kind in (RuntimeError, ValueError):
        with pytest.raises(kind):
            x.value()


def test_the_graph_is_true() -> None:
    assert dy.renew_cg() and dy.cg()


def test_filter_none_keeps_expressions() -> None:
    assert len(list(filter(None, [None, dy.zeros(1), None, dy.zeros(2)]))) == 2
    cache = None
    cache = cache or dy.zeros(1)
    assert cache is not None
