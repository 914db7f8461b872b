"""summary(): what a model consists of, as a table in a terminal and in a notebook."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynet_lite import amounts
from dynet_lite._core import LookupParameters
from dynet_lite.notebook import table
from dynet_lite.params import ParameterCollection

__all__ = ["Summary", "summary"]


class Summary:
    """A table of the parameters of a model. ``str()`` and a notebook show it.

    rows     (name, shape, numbers, whether it is trained) of each parameter
    numbers  how many numbers there are in all
    trained  how many of them are trained
    """

    def __init__(self, rows: list[tuple[str, tuple[int, ...], int, bool]]) -> None:
        self.rows = rows
        self.numbers = sum(row[2] for row in rows)
        self.trained = sum(row[2] for row in rows if row[3])

    def _total(self) -> str:
        fixed = f", {self.numbers - self.trained:,} of them not trained" if self.trained < self.numbers else ""
        return f"{self.numbers:,} numbers in {len(self.rows):,} parameters{fixed}; {amounts.size(4 * self.numbers)}"

    def _cells(self) -> list[tuple[str, str, str]]:
        return [
            (name, " x ".join(map(str, shape)), f"{count:,}" + ("" if trained else " (not trained)"))
            for name, shape, count, trained in self.rows
        ]

    def __str__(self) -> str:
        cells = [("name", "shape", "numbers"), *self._cells()]
        a, b = (max(len(row[k]) for row in cells) for k in (0, 1))
        return "\n".join([*(f"{x:{a}}  {y:{b}}  {z}" for x, y, z in cells), self._total()])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return table(("name", "shape", "numbers"), self._cells(), self._total())


def summary(model: Any) -> Summary:
    """The names, shapes and sizes of the parameters of a collection, in the order in which they were added.

    model    a ParameterCollection, or what has one as ``model`` (a recipe, a predictor's recipe) or ``param_collection()``

    >>> dy.summary(model)                              # doctest: +SKIP
    name    shape   numbers
    /W      3 x 4   12
    /words  10 x 2  20
    32 numbers in 2 parameters; 128 B

    Raises TypeError for anything else.
    """
    if not isinstance(model, ParameterCollection):
        found = getattr(model, "param_collection", None)
        collection = found() if callable(found) else getattr(model, "model", None)
        if not isinstance(collection, ParameterCollection):
            raise TypeError(f"[summary] expected a ParameterCollection; got {type(model).__name__}")
        model = collection
    members: list[Any] = list(model._all)
    rows = []
    for p in members:
        shape = tuple(int(n) for n in (p.as_array().shape if not isinstance(p, LookupParameters) else p.shape()))
        rows.append((p.name(), shape, int(np.prod(shape, dtype=np.int64)), bool(p.is_updated())))
    return Summary(rows)
