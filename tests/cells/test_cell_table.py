"""Every row of the op table inside a cell: the values and gradients of the plain call, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import as_input, graph, loss_of, sample
from samples import Row, rows

import dynet_lite as dy

ROWS = rows()
every_row = pytest.mark.parametrize("row", ROWS, ids=[f"{i}-{r.label}" for i, r in enumerate(ROWS)])


def run(row: Row, call: Any, given: list[Any], strategy: str) -> list[np.ndarray]:
    """Values of a few copies, and the gradients of their inputs."""
    with graph(strategy):
        inputs = [[as_input(a) for a in arrays] for arrays, _ in given]
        values = [call(k, xs) for k, xs in enumerate(inputs)]
        loss = dy.esum([loss_of(row, y) for y in values])
        loss.backward(full=True)
        gradients = []
        for x in (x for xs in inputs for x in xs):
            try:
                gradients.append(x.gradient())
            except RuntimeError:  # nothing flows there
                gradients.append(np.zeros(0))
        return [loss.npvalue(), *(y.npvalue() for y in values), *gradients]


@every_row
def test_in_a_cell(row: Row) -> None:
    given = [sample(row, seed) for seed in range(3)]
    cells = [dy.cell(lambda *xs, attrs=attrs: row.call(*xs, **attrs)) for _, attrs in given]
    wanted = run(row, lambda k, xs: row.call(*xs, **given[k][1]), given, "greedy")
    for _ in range(2):
        found = run(row, lambda k, xs: cells[k](*xs), given, "greedy")
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, b)


def can_be_arguments(attrs: dict[str, Any]) -> bool:
    return bool(attrs) and all(isinstance(v, (int, float, list, tuple, str)) for v in attrs.values())


@pytest.mark.parametrize("row", [r for r in ROWS if can_be_arguments(sample(r, 0)[1])], ids=lambda r: r.label)
def test_attributes_as_arguments(row: Row) -> None:
    """Integers become what they choose, or a part of the signature where they are computed with."""
    given = [sample(row, seed) for seed in range(4)]
    one = dy.cell(lambda *xs, **attrs: row.call(*xs, **attrs))
    for strategy in ("none", "greedy"):
        wanted = run(row, lambda k, xs: row.call(*xs, **given[k][1]), given, strategy)
        found = run(row, lambda k, xs: one(*xs, **given[k][1]), given, strategy)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
