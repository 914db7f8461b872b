"""Calls in their common forms: the same nodes as the general ways of dynet_lite make, without going there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core, indexing, ops

A = np.arange(1.0, 31.0).reshape(6, 5)
T = np.arange(24.0).reshape(2, 3, 4)

INDICES = ["[::2]", "[1:3]", "[::-1]", "[5:1:-2]", "[-3:]", "[2:4, 1:3]", "[1:5:2, ::2]", "[:, 3]", "[:, -1]", "[2, 3]"]
INDICES += ["[-1, -2]", "[2, 1:3]", "[1:3, 2]", "[:, 1:3]", "[:, :]", "[0:6]", "[1:2, 0:1]", "[3, ::-1]"]
DEEP = ["[1, 2]", "[:, 1]", "[:, 1, 2]", "[1, 2, 3]", "[0:1, 1, ::2]", "[:, :, 3]", "[1, :, 2:0:-1]"]

# What the general ways are called by, and what takes their place where x is an array.
FORMS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "strides": ("strided_select(x, [2, 3])", lambda a: a[::2, ::3]),
    "ranges": ("strided_select(x, [1, 1], [1, 2], [5, 4])", lambda a: a[1:5, 2:4]),
    "all lists": ("strided_select(x, (2,), (1,), (6,))", lambda a: a[1:6:2]),
    "no ranges": ("strided_select(x, [])", lambda a: a),
    "batch": ("strided_select(x, [1, 1, 1], [0, 0, 0], [6, 5, 1])", lambda a: a),
    "fold_rows": ("fold_rows(x, 3)", lambda a: a.reshape(2, 3, 5).sum(1)),
    "fold_rows of a vector": ("fold_rows(x[:, 0])", lambda a: a[:, :1].reshape(3, 2, 1).sum(1)),
    "kmh_ngram": ("kmh_ngram(x, 2)", lambda a: a[:, 1:] + a[:, :-1]),
    "weight_norm": ("weight_norm(x, g)", lambda a: a * 2 / np.linalg.norm(a)),
    "contract3d_1d_bias": ("contract3d_1d_bias(t, u, b)", lambda a: T @ np.arange(4.0) + 1),
}


def nodes() -> list[Any]:
    return list(_core.cg().nodes())


@pytest.mark.parametrize("index", INDICES + [f"t{index}" for index in DEEP])
def test_ints_and_slices_need_no_general_index(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a, text = (T, index[1:]) if index.startswith("t") else (A, index)
    dy.renew_cg()
    names = {"x": dy.inputTensor(a)}
    want = np.atleast_1d(eval(f"a{text}"))
    with monkeypatch.context() as patch:
        patch.setattr(indexing, "_Selection", None)
        y = eval(f"x{text}", names)
    made = nodes()
    assert y.dim() == (want.shape, 1)
    np.testing.assert_array_equal(y.npvalue(), want)
    if text not in (
        "[2, 3]",
        "[-1, -2]",
        "[:, 3]",
        "[:, -1]",
        "[:, 1]",
    ):  # of these, places can be set: they are picked
        dy.renew_cg()
        place = eval(f"np.s_{text}")
        indexing._Selection(dy.inputTensor(a), place if isinstance(place, tuple) else (place,)).result()
        assert nodes() == made


def test_an_array_beside_an_int_is_a_general_index() -> None:
    x = dy.inputTensor(A)
    for rows in (np.array([0, 2]), [0, 2], np.array([True, False, True, False, False, False])):
        np.testing.assert_array_equal(x[rows, 1].npvalue(), A[rows, 1])


@pytest.mark.parametrize("name", FORMS)
def test_functions_need_no_lists_of_shapes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, of_array = FORMS[name]

    def made() -> Any:
        dy.renew_cg()
        names = {"x": dy.inputTensor(A), "g": dy.scalarInput(2.0), "t": dy.inputTensor(T)}
        names |= {"u": dy.inputTensor(np.arange(4.0)), "b": dy.ones((2, 3))}
        return eval(f"dy.{text}", {"dy": dy}, names)

    with monkeypatch.context() as patch:
        patch.setattr(ops, "as_expression", None)
        y = made()
    common = nodes()
    np.testing.assert_allclose(y.npvalue(), of_array(A), rtol=1e-6)
    for form in ("_strided", "_folded_rows", "_ngrams", "_normed", "_begins_like"):  # unknown from here on
        monkeypatch.setattr(_core, form, lambda *args: None)
    made()
    assert nodes() == common


def test_numbers_become_constants_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    x = dy.inputTensor([0.5])
    monkeypatch.setattr(np, "atleast_1d", None)
    for number in (3, 2.5, -(1 << 40), float("inf")):
        if number == float("inf"):
            monkeypatch.undo()  # what float32 holds only so is NumPy's
        np.testing.assert_allclose(dy.cmult(x, number).npvalue(), [np.float32(number) * np.float32(0.5)], rtol=1e-6)
