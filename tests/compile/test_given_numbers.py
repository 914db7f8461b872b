"""Floats in arrays are expressions while a compiled function runs. What decides by them is an error, for an expression is always
true and equals no number; the function itself would decide by what it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

DECIDED: dict[str, Callable[[Any], Any]] = {
    "if": lambda x: 1.0 if x else 2.0,
    "not": lambda x: 1.0 if not x else 2.0,
    "item": lambda x: 1.0 if x[0] else 2.0,
    "part": lambda x: 1.0 if x[:1] else 2.0,
    "steps": lambda x: 1.0 if x[::2][0] else 2.0,
    "chosen": lambda x: 1.0 if x[[0, 1]][0] else 2.0,
    "any": lambda x: float(any(x)),
    "filter": lambda x: float(len([number for number in x if number])),
    "equal": lambda x: 1.0 if x[0] == 0.0 else 2.0,
    "equal from the left": lambda x: 1.0 if np.float32(1.0) == x[0] else 2.0,
    "not equal": lambda x: 1.0 if x[0] != 0 else 2.0,
    "in": lambda x: 1.0 if x[0] in (1.0, 2.0) else 2.0,
    "less": lambda x: 1.0 if x[0] < 0.5 else 2.0,
    "if of a difference": lambda x: 1.0 if x[0] - 1.0 else 2.0,
    "if of a sum of some": lambda x: 1.0 if sum(x) else 2.0,
    "equal to a multiple": lambda x: 1.0 if -x[1] * 2.0 == -2 else 2.0,
    "any of a power": lambda x: float(any(2.0 - x**2.0)),
    "equal to another": lambda x: 1.0 if x[0] == x[1] else 2.0,
    "not equal to another": lambda x: 1.0 if x[1] != 1.0 / x[2] else 2.0,
    "in a list of others": lambda x: 1.0 if x[0] in [x[1], x[2]] else 2.0,
    "in a set": lambda x: 1.0 if x[0] in {1.0, 2.0} else 2.0,
    "key": lambda x: {0.0: 1.0}.get(x[0], 2.0),
    "key that is computed": lambda x: {0.0: 1.0}.get(x[0] / 2.0, 2.0),
}


@pytest.mark.parametrize("setting", [True, False], ids=["recorded", "inline"])
@pytest.mark.parametrize("kind", [np.float64, np.float32, bool])
@pytest.mark.parametrize("name", DECIDED)
def test_deciding_by_numbers_of_an_array(name: str, kind: Any, setting: bool) -> None:
    def choose(x: Any) -> Any:
        return dy.ones(1) * DECIDED[name](x)

    with dy.configure(compile=setting), pytest.raises(dy.CompileError, match=r"\[compile choose\] decides by numbers"):
        dy.compile(choose)(np.array([0, 1, 1], kind))


@pytest.mark.parametrize("setting", [True, False], ids=["recorded", "inline"])
def test_deciding_by_one_number(setting: bool) -> None:
    f = dy.compile(lambda x, label: x * 2.0 if label == 1 else x * 3.0)
    with dy.configure(compile=setting):
        with pytest.raises(dy.CompileError, match="a float, a bool or a list"):
            f(np.ones(2), np.float64(1))
        assert f(np.ones(2), 1.0).tolist() == [2, 2]
        assert f(np.ones(2), 0.0).tolist() == [3, 3]


def test_an_error_that_the_function_catches_counts() -> None:
    @dy.compile
    def f(x: Any) -> Any:
        try:
            return x * (1.0 if x[0] else 2.0)
        except dy.CompileError:
            return x

    with pytest.raises(dy.CompileError, match="decides by numbers"):
        f(np.ones(2))


@pytest.mark.parametrize("setting", [True, False], ids=["recorded", "inline"])
def test_what_asks_for_no_numbers(setting: bool) -> None:
    """Whether an expression is there, and whether it is this one, may be asked, and anything of what weights, functions of
    dynet_lite or other inputs have a part in: the function itself has an expression there, too."""
    W = dy.ParameterCollection().add_parameters((2, 2))

    @dy.compile
    def f(x: Any) -> Any:
        assert x is not None and x != None and x != "text" and x in [x] and [x].index(x) == 0  # noqa: E711
        assert x != dy.ones(2) and {x: 1}[x] == 1
        weighted = W * x
        first = weighted[0]
        assert weighted and first and weighted != 0.0 and first not in (0.0, x[0]) and {first: 1}[first] == 1
        assert x + dy.zeros(2) and dy.sum_elems(x) and x[0] != W[0]
        twice = x
        for _ in range(40):
            twice = twice + twice
        assert twice == twice and twice is not None
        return dy.tanh(x) or x

    with dy.configure(compile=setting):
        np.testing.assert_allclose(f(np.ones(2)), np.tanh(np.ones(2)), rtol=1e-6)


def test_nodes_after_a_renewal_are_not_given() -> None:
    def renews(x: Any) -> Any:
        dy.renew_cg()
        made = dy.inputVector([1.0, 2.0])
        return made if made else x

    with dy.configure(compile=False):
        assert dy.compile(renews)(np.zeros(2)).tolist() == [1, 2]


def test_outside_of_compiled_functions() -> None:
    dy.renew_cg()
    x = dy.inputVector([0.0, 1.0])
    assert x and x[0] and x != 0.0 and not (x[0] == 0.0)
    cell = dy.cell(lambda y: y * (2.0 if y else 3.0))
    assert cell(x).npvalue().tolist() == [0, 2]
