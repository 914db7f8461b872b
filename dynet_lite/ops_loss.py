"""Losses and normalisers: the arguments that Python may give in more than one form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dynet_lite import _core
from dynet_lite._core import (
    Expression,
    constrained_softmax,
    hinge,
    pickneglogsoftmax,
    softmax,
    sparsemax,
    sparsemax_loss,
)
from dynet_lite.needs import shown
from dynet_lite.told import told

__all__ = [
    "constrained_softmax",
    "hinge",
    "hinge_batch",
    "hinge_dim",
    "log_softmax",
    "pickneglogsoftmax",
    "pickneglogsoftmax_batch",
    "softmax",
    "sparsemax",
    "sparsemax_loss",
]


def log_softmax(x: Any, restrict: Iterable[int] | None = None, d: int = 0) -> Expression:
    """Logarithm of the softmax of x along dim d: x - logsumexp(x).

    Any shape; the result has the same one. With ``restrict`` only these entries of the first dim take part and the
    others become -inf. IndexError when an id is out of range, ValueError when there is none.
    """
    if restrict is None:
        return _core.log_softmax(x, d)
    some: Expression = _restricted(x, restrict, d)
    return some


@partial(told, name="log_softmax")
def _restricted(x: Any, restrict: Iterable[int], d: int) -> Expression:
    if d != 0:
        raise ValueError(f"[log_softmax] restrict goes with d=0; got d={d}")
    ids = [one.item() if type(one) is np.ndarray and one.ndim == 0 else one for one in restrict]
    for one in ids:
        if isinstance(one, np.ndarray):  # has an __index__, whatever it holds
            raise TypeError(f"[log_softmax] restrict must be a list of whole numbers; got one of {shown(one)}")
    return _core._log_softmax_restricted(x, sorted(set(ids)))


def pickneglogsoftmax_batch(x: Any, vs: Sequence[int]) -> Expression:
    """pickneglogsoftmax() of one label per batch element: x {n} X b, b labels -> {1} X b."""
    return pickneglogsoftmax(x, vs)


def hinge_batch(x: Any, vs: Sequence[int], m: float = 1.0) -> Expression:
    """Hinge loss with one label per batch element: x {n} X b, b labels -> {1} X b."""
    return hinge(x, vs, m)


def hinge_dim(x: Any, v: Sequence[int] | Sequence[Sequence[int]], d: int = 0, m: float = 1.0) -> Expression:
    """Hinge losses of the columns (d=0) or rows (d=1) of a matrix, one label each.

    x {r, c}: with d=0 c labels -> {c}, with d=1 r labels -> {r}. With a batch of b: b lists of labels, or one flat list,
    batch element after batch element. IndexError when a label is out of range.
    """
    if type(v) is not list or set(map(type, v)) != {int}:
        flat: list[Any] = []
        for label in v:
            if hasattr(label, "__iter__"):
                flat.extend(label)
            else:
                flat.append(label)
        v = flat
    return _core.hinge_dim(x, v, d, m)  # type: ignore[arg-type]
