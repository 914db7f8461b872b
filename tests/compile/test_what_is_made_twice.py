"""What a recording repeats must be what each call would make: it is compared with a run over the integers themselves, whose
type may be asked for, and with its own results beside the expressions.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

BY_TYPE: dict[str, Callable[[Any], int]] = {
    "is": lambda n: 1 if type(n) is int else 2,
    "is not": lambda n: 2 if type(n) is not int else 1,
    "equal": lambda n: 1 if type(n) == int else 2,  # noqa: E721
    "in": lambda n: 1 if type(n) in (int, np.int64) else 2,
    "key": lambda n: {int: 1}.get(type(n), 2),
    "name": lambda n: 1 if type(n).__name__ == "int" else 2,
    "class": lambda n: 1 if issubclass(type(n), int) else 2,
    "of NumPy": lambda n: 1 if isinstance(n, np.integer) else 2,
}
SCALES = {"compiled": dy.compile, "cell": dy.cell}


@pytest.fixture
def table() -> dy.LookupParameters:
    return dy.ParameterCollection().add_lookup_parameters((8, 3), init=np.arange(24.0).reshape(8, 3))


@pytest.mark.parametrize("kind", ["compiled", "cell"])
@pytest.mark.parametrize("number", [int, np.int64])
@pytest.mark.parametrize("name", BY_TYPE)
def test_integers_whose_type_is_asked_for(name: str, number: Any, kind: str, table: dy.LookupParameters) -> None:
    def f(n: Any, row: Any) -> Any:
        return table[row] * float(BY_TYPE[name](n))

    made = SCALES[kind](f)
    for n, row in ((3, 4), (3, 5), (0, 4)):
        dy.renew_cg()
        expected = f(number(n), row).npvalue()
        found = made(number(n), row)
        found = found.npvalue() if kind == "cell" else found
        assert found.tolist() == expected.tolist()


def test_leaves_of_a_tree_by_their_type(table: dy.LookupParameters) -> None:
    def node(t: Any) -> Any:
        return (
            dy.tanh(table[t])
            if type(t) is int
            else dy.esum([node(one) if isinstance(one, tuple) else table[one] for one in t])
        )

    step = dy.compile(node)
    for tree in (5, 2, (1, 2), (1, (2, 3)), (4, (5, 6))):
        dy.renew_cg()
        np.testing.assert_allclose(step(tree), node(tree).npvalue(), rtol=1e-6)


def test_integers_that_only_choose_stay_data(table: dy.LookupParameters) -> None:
    step = dy.compile(lambda words, tag: dy.pick(dy.esum([table[w] for w in words]), tag))
    for words, tag in (([1, 2], 0), ([3, 4], 1), ([5, 6], 2), (np.array([7, 0]), 2)):
        assert step(words, tag) == sum(table.as_array()[w, tag] for w in words)
    assert step.structures() == 2


def test_an_integer_out_of_range_at_first(table: dy.LookupParameters) -> None:
    step = dy.compile(lambda n: table[n])
    with pytest.raises(IndexError):
        step(8)
    assert step(1).tolist() == [3, 4, 5] and step(2).tolist() == [6, 7, 8]
    assert step.structures() == 1


@pytest.mark.parametrize("kind", ["compiled", "cell"])
@pytest.mark.parametrize("where", ["tuple", "list", "dict", "state", "key"])
def test_results_that_change(where: str, kind: str) -> None:
    count = itertools.count()
    forms: dict[str, Callable[[Any, Any], Any]] = {
        "tuple": lambda x, n: (x, n),
        "list": lambda x, n: [x, [1, n]],
        "dict": lambda x, n: {"x": x, "n": float(n)},
        "state": lambda x, n: dy.state(h=x, c=(x, str(n))),
        "key": lambda x, n: {n: x},
    }
    made = SCALES[kind](lambda x: forms[where](dy.tanh(x), next(count)))
    dy.renew_cg()
    with pytest.raises((dy.CompileError, dy.CellError), match="does not make the same nodes twice"):
        made(np.ones(2) if kind == "compiled" else dy.ones(2))


def test_the_time_is_no_result() -> None:
    with pytest.raises(dy.CompileError, match="does not make the same nodes twice"):
        dy.compile(lambda x: (x, time.perf_counter()))(np.ones(2))


def test_results_that_stay(table: dy.LookupParameters) -> None:
    @dy.compile
    def f(x: Any, words: Any) -> Any:
        return {"x": x, "n": len(words), "nan": float("nan"), "parts": [table[words[0]], (None, "text", True)]}

    for words in ([1, 2], [2, 3], [4]):
        found = f(np.ones(2), words)
        assert found["n"] == len(words) and np.isnan(found["nan"]) and found["parts"][1] == (None, "text", True)
        assert found["parts"][0].tolist() == table.as_array()[words[0]].tolist()
    assert f.structures() == 2


def test_generic_functions(table: dy.LookupParameters) -> None:
    @functools.singledispatch
    def chosen(n: Any) -> Any:
        return table[0]

    chosen.register(int, lambda n: table[n])
    assert dy.compile(lambda n: chosen(n))(2).tolist() == [6, 7, 8]
