"""Arguments that have no parts for cells and compiled functions: what can be read once is refused, and ranges, slices and texts of
NumPy's count by their value.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

from test_integer_arrays import ROWS, recorded, sum_of, table  # noqa: F401  # isort: skip

ONCE: dict[str, Callable[[], Any]] = {
    "generator": lambda: (i for i in (1, 2)),
    "list_iterator": lambda: iter([1, 2]),
    "map": lambda: map(int, "12"),
    "zip": lambda: zip([1], [2], strict=True),
    "enumerate": lambda: enumerate([1, 2]),
    "list_reverseiterator": lambda: reversed([1, 2]),
    "_csv.reader": lambda: __import__("csv").reader(["1,2"]),
}


@pytest.mark.parametrize("how", ["compile", "cell"])
@pytest.mark.parametrize("name", ONCE)
def test_what_can_be_read_once(table: Any, how: str, name: str) -> None:  # noqa: F811
    """A second run, with the integer as it is, would find it empty, and all later ones, too."""

    def function(ids: Any, scale: int) -> Any:
        return dy.esum([dy.zeros(3), *(table[np.ravel(i)[-1]] for i in ids)]) * float(scale)

    def alone(ids: Any) -> Any:
        return function(ids, 2)

    for ids in (ONCE[name](), [1, ONCE[name]()], {"ids": ONCE[name]()}):
        with pytest.raises(TypeError, match=rf"\[{how}\] a {name.split('.')[-1]} can be read once, .* give a list"):
            recorded(how, alone)[0](ids)
    assert recorded(how, alone)[0]([1, 2]).tolist() == (2 * (ROWS[1] + ROWS[2])).tolist()


@pytest.mark.parametrize("how", ["compile", "cell"])
def test_what_is_its_own_iterator_but_is_not_read_once(table: Any, how: str) -> None:  # noqa: F811
    class Steady:
        def __iter__(self) -> Iterator[int]:
            return iter([1, 2])

        def __next__(self) -> int:
            return 1

    for given in (Steady(), io.StringIO("1")):
        call, _ = recorded(how, lambda _: table[1] * 2.0)
        assert call(given).tolist() == (2 * ROWS[1]).tolist()


@pytest.mark.parametrize("how", ["compile", "cell"])
def test_what_counts_by_its_value(table: Any, how: str) -> None:  # noqa: F811
    ranges, n = recorded(how, lambda ids: sum_of(table, ids) * (1.0 + ids.start))
    for k, (begin, end, step) in enumerate([(1, 3, 1), (2, 4, 1), (2, 4, 2), (1, 2, 1), (1, 2, 3)], start=1):
        for _ in range(2):
            want = ROWS[begin:end:step].sum(axis=0) * (1 + begin)
            np.testing.assert_array_equal(ranges(range(begin, end, step)), want)
            assert n() == k
    slices, n = recorded(how, lambda part: dy.concatenate([table[1][part], table[2]]))
    for k, part in enumerate([(0, 2, None), (None, 2, None), (None, 0, -1)], start=1):
        for _ in range(2):
            np.testing.assert_array_equal(slices(slice(*part)), [*ROWS[1][slice(*part)], *ROWS[2]])
            assert n() == k
    texts, n = recorded(how, lambda text: table[1] * float(text))
    for text in np.array(["2", "2", "3"]):
        np.testing.assert_array_equal(texts(text), ROWS[1] * float(text))
    assert n() == 2
