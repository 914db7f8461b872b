"""What a program makes inputs of, and compiled functions are given: parts of arrays and lists of arrays are expressions there, which
inputTensor(), inputVector() and scalarInput() take, so that the same text works with and without dy.compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

MATRIX, CUBE = np.arange(6.0).reshape(3, 2), np.arange(12.0).reshape(2, 2, 3)
VECTORS, NUMBERS = [np.arange(3.0), np.arange(3.0) + 5], [np.float32(1), np.float64(2)]

SAME: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "row": (lambda a: dy.inputVector(a[1]), MATRIX),
    "rows": (lambda a: dy.concatenate([dy.inputVector(row) for row in a]), MATRIX),
    "column": (lambda a: dy.inputVector(a[:, 1]), MATRIX),
    "every second": (lambda a: dy.inputTensor(a[::2]), MATRIX),
    "chosen": (lambda a: dy.inputTensor(a[[2, 0]]), MATRIX),
    "range": (lambda a: dy.inputTensor(a[1:]), MATRIX),
    "number": (lambda a: dy.scalarInput(a[1, 1]), MATRIX),
    "numbers": (lambda a: dy.inputVector([a[0, 1], a[1, 0]]), MATRIX),
    "mini-batch": (lambda a: dy.inputTensor(a[0], batched=True), CUBE),
    "list of vectors": (dy.inputTensor, VECTORS),
    "tuple of vectors": (dy.inputTensor, tuple(VECTORS)),
    "list of matrices": (dy.inputTensor, [MATRIX, MATRIX + 1]),
    "list of rows": (lambda a: dy.inputTensor([a[0], a[2]]), MATRIX),
    "list of numbers": (dy.inputVector, NUMBERS),
    "one number": (dy.scalarInput, np.float64(2)),
}


@pytest.mark.parametrize("setting", [True, False], ids=["recorded", "inline"])
@pytest.mark.parametrize("name", SAME)
def test_inputs_of_parts_and_lists(name: str, setting: bool) -> None:
    function, given = SAME[name]
    compiled = dy.compile(lambda a: function(a) * 2.0)
    with dy.configure(compile=setting):
        for data in (given, tuple(x + 7 for x in given) if isinstance(given, tuple) else given):
            dy.renew_cg()
            want = function(data) * 2.0
            found = compiled(data)
            assert np.array_equal(found, want.value() if np.isscalar(found) else want.npvalue())
        assert compiled.structures() == setting


def test_of_tuples_and_lists_whose_items_differ() -> None:
    with pytest.raises(ValueError, match="concatenate_to_batch"):
        dy.compile(dy.inputTensor)([np.ones(2), np.ones(3)])
    with pytest.raises(
        TypeError, match=r"\[inputTensor\] arrays of one number .* concatenate_to_batch\(list\) a mini-batch"
    ):
        dy.compile(dy.inputTensor)(NUMBERS)


@pytest.mark.parametrize("make", [dy.inputTensor, dy.inputVector, dy.scalarInput])
def test_other_expressions_are_refused(make: Any) -> None:
    """Of what is computed, and outside of compiled functions: it may not be what NumPy would compute."""
    with pytest.raises(TypeError):
        dy.compile(lambda x: make(x * x))(np.ones(1))
    dy.renew_cg()
    x = dy.inputVector([1.0, 2.0])
    for part in (x[0], [x, x], [x[0], x[1]]):
        with pytest.raises(TypeError):
            make(part)
