"""Arrays of integers that are given to compiled functions and to cells: the function gets an array, whose items are data until it
computes with one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

Given = Callable[[Any], Any]
ROWS = np.arange(30.0).reshape(10, 3)


@pytest.fixture
def table() -> Any:
    return dy.ParameterCollection().lookup_parameters_from_numpy(ROWS)


def sum_of(table: Any, ids: Any) -> Any:
    return dy.esum([table[i] for i in ids])


# What means another thing for a list, and what lists do not have.
COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "times": lambda t, w: sum_of(t, w * 2),
    "sum": lambda t, w: sum_of(t, w + w),
    "append": lambda t, w: sum_of(t, w + [1]),
    "equal": lambda t, w: sum_of(t, w) * float((w == 2).sum()),
    "minus": lambda t, w: sum_of(t, w - 1),
    "max": lambda t, w: t[w.max()],
    "mask": lambda t, w: sum_of(t, w[w > 1]),
    "item": lambda t, w: t[w[0].item() + 1],
    "sorted": lambda t, w: t[np.sort(w)[0]],
    "kind": lambda t, w: sum_of(t, w) * (2.0 if isinstance(w, np.ndarray) else 3.0),
}
CHOOSING: dict[str, Callable[[Any, Any], Any]] = {
    "items": sum_of,
    "batch": lambda t, w: t.batch(w),
    "rows": lambda t, w: dy.esum(t.rows(w)),
    "labels": lambda t, w: dy.pickneglogsoftmax_batch(t.batch([3, 4]), w),
    "reverse": lambda t, w: t.batch(w[::-1]),
    "list": lambda t, w: t.batch(w.tolist()),
    "shape": lambda t, w: t[w[0]] * float(w.shape[0]),
    "column": lambda t, w: t.batch(w.reshape(1, 2)[:, 1]),
    "twice": lambda t, w: t.batch(np.concatenate([w, w])),
}


def plain(function: Given, ids: Any) -> Any:
    dy.renew_cg()
    return np.ravel(function(ids).npvalue())


def recorded(how: str, function: Given) -> tuple[Given, Callable[[], int]]:
    """As a cell or compiled: what it gives for ids, and how many recordings there are."""
    if how == "compile":
        compiled = dy.compile(function)
        return lambda ids: np.ravel(compiled(ids)), compiled.structures
    cell = dy.cell(function)
    return lambda ids: plain(cell, ids), cell.signatures


@pytest.mark.parametrize("how", ["compile", "cell"])
@pytest.mark.parametrize("setting", [{}, {"compile": False, "cells": "inline"}], ids=["recorded", "inline"])
@pytest.mark.parametrize("name", [*COMPUTED, *CHOOSING])
def test_is_an_array(table: Any, how: str, setting: dict[str, Any], name: str) -> None:
    function = {**COMPUTED, **CHOOSING}[name]
    with dy.configure(**setting):
        call, _ = recorded(how, lambda ids: function(table, ids))
        for ids in ([2, 1], [1, 2], [2, 2]):
            given = np.array(ids)
            np.testing.assert_allclose(call(given), plain(lambda w: function(table, w), given), rtol=1e-6)
            assert given.tolist() == ids


@pytest.mark.parametrize("how", ["compile", "cell"])
@pytest.mark.parametrize("name", CHOOSING)
def test_items_that_only_choose_are_data(table: Any, how: str, name: str) -> None:
    call, recordings = recorded(how, lambda ids: CHOOSING[name](table, ids))
    for ids in ([2, 1], [1, 2], [0, 2]):
        call(np.array(ids))
    assert recordings() == 1


@pytest.mark.parametrize("how", ["compile", "cell"])
def test_what_is_a_part_of_the_structure(table: Any, how: str) -> None:
    """Dims, the type, and whether it is a list: the function may branch on these."""
    call, recordings = recorded(how, lambda ids: dy.esum([table[i] for i in np.ravel(ids)]) * (1.0 + np.ndim(ids)))
    for k, ids in enumerate(
        ([1, 2], np.array([1, 2]), np.array([[1, 2]]), np.array([[1], [2]]), np.array([1, 2], np.uint8)), start=1
    ):
        np.testing.assert_allclose(call(ids), (ROWS[1] + ROWS[2]) * (1 + np.ndim(ids)), rtol=1e-6)
        assert recordings() == k


def test_of_no_dims(table: Any) -> None:
    """For a cell it is an integer. Compiled functions take it for a number, as arrays of floats."""
    cell, recordings = recorded("cell", lambda k: table[k])
    for k in (3, 4):
        np.testing.assert_array_equal(cell(np.array(k)), ROWS[k])
    assert recordings() == 1
    assert dy.compile(lambda k: k * 2.0)(np.array(3)) == 6.0


@pytest.mark.parametrize("how", ["compile", "cell"])
def test_of_other_layouts(table: Any, how: str) -> None:
    rows, _ = recorded(how, lambda ids: dy.concatenate([table[i] for row in ids for i in row]))
    for ids in (np.arange(6).reshape(2, 3).T, np.arange(10)[::3].reshape(2, 2), np.array([[5, 0]], ">i4")):
        np.testing.assert_array_equal(rows(ids), np.concatenate([ROWS[i] for row in ids for i in row]))
    large, _ = recorded(how, lambda ids: table[int(ids[0] >> 40)])
    np.testing.assert_array_equal(large(np.array([5 << 40])), ROWS[5])


@pytest.mark.parametrize("how", ["compile", "cell"])
def test_masked_integers_are_refused(table: Any, how: str) -> None:
    call, _ = recorded(how, lambda ids: sum_of(table, ids))
    np.testing.assert_array_equal(call(np.ma.array([1, 2], mask=[False, False])), ROWS[1] + ROWS[2])
    with pytest.raises(TypeError, match=rf"\[{how}\] numbers are needed; got an array of which 1 are masked"):
        call(np.ma.array([1, 2], mask=[False, True]))


def test_the_function_may_change_its_copy(table: Any) -> None:
    def function(ids: Any) -> Any:
        ids[0] = 7
        return sum_of(table, ids)

    for setting in (True, False):
        with dy.configure(compile=setting):
            given = np.array([1, 2])
            np.testing.assert_array_equal(dy.compile(function)(given), ROWS[7] + ROWS[2])
            assert given.tolist() == [1, 2]
