"""Sums, means and maxima by segment: what flows into the nodes of a graph, whatever their degrees.

A list of vectors is added up in trees of nodes that take four at most, all of one signature; so segments of any size, of all
examples, run together, in as many batches as the largest tree is deep. A matrix is one node.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dynet_lite import _core
from dynet_lite._core import Expression
from dynet_lite.errors import OutOfRangeError, StaleExpressionError
from dynet_lite.ops import as_expression

__all__ = ["segment_max", "segment_mean", "segment_sum"]

MOST = 10_000_000  # sums of a list: a wrong number in the place of an id would take all memory
WIDTH = 4  # what a node of a tree takes: more makes wide trees shallow, and leaves more unread where segments are small


@overload
def segment_sum(xs: Expression | NDArray[Any], ids: Iterable[int], num_segments: int | None = None) -> Expression: ...  # type: ignore[overload-overlap]
@overload
def segment_sum(xs: Iterable[Any], ids: Iterable[int], num_segments: int | None = None) -> list[Expression]: ...
def segment_sum(xs: Any, ids: Iterable[int], num_segments: int | None = None) -> Any:
    """For each id, the sum of the xs that have it: in a graph, the sum of the messages to each node.

    xs              a list of expressions of one shape: the sums are a list, too; or a matrix {d,n}, or any shape whose last
                    dim is n, with the elements along it: the sums are {d,num_segments}
    ids             a number for each of the xs, 0 to num_segments - 1, in any order
    num_segments    how many sums there are; None: one more than the largest id

    A segment without members is 0. ValueError unless there is one id for each, IndexError when an id is out of range.

        received = dy.segment_sum([W * h[a] for a, b in edges], [b for a, b in edges], len(h))

    Use lists for automatic batching: segments of all sizes, in all examples of a mini-batch, run together. A matrix is one
    node, and runs together with matrices of its shape only.
    """
    if _is_matrix(xs):
        return _along(xs, ids, num_segments, "segment_sum", lambda x, ids, n: _core._segment_sum(x, ids, n, False))
    return _of_list(xs, ids, num_segments, "segment_sum", lambda members, blank: _tree(members, blank, 1.0))


@overload
def segment_mean(xs: Expression | NDArray[Any], ids: Iterable[int], num_segments: int | None = None) -> Expression: ...  # type: ignore[overload-overlap]
@overload
def segment_mean(xs: Iterable[Any], ids: Iterable[int], num_segments: int | None = None) -> list[Expression]: ...
def segment_mean(xs: Any, ids: Iterable[int], num_segments: int | None = None) -> Any:
    """For each id, the mean of the xs that have it; 0 where there are none. Arguments as for segment_sum()."""
    if _is_matrix(xs):
        return _along(xs, ids, num_segments, "segment_mean", lambda x, ids, n: _core._segment_sum(x, ids, n, True))
    return _of_list(
        xs, ids, num_segments, "segment_mean", lambda members, blank: _tree(members, blank, 1 / len(members))
    )


@overload
def segment_max(xs: Expression | NDArray[Any], ids: Iterable[int], num_segments: int | None = None) -> Expression: ...  # type: ignore[overload-overlap]
@overload
def segment_max(xs: Iterable[Any], ids: Iterable[int], num_segments: int | None = None) -> list[Expression]: ...
def segment_max(xs: Any, ids: Iterable[int], num_segments: int | None = None) -> Any:
    """For each id, the elementwise maximum of the xs that have it. Arguments as for segment_sum().

    Of equal numbers the first gets the gradient. ValueError if a segment has no members.
    """
    if _is_matrix(xs):
        return _along(xs, ids, num_segments, "segment_max", _core._segment_max)
    return _of_list(xs, ids, num_segments, "segment_max", lambda members, blank: _tree(members, blank, None))


def _is_matrix(xs: Any) -> bool:
    return isinstance(xs, (Expression, np.ndarray))


def _numbers(ids: Iterable[int], num_segments: int | None, who: str) -> tuple[list[int], int]:
    """The ids as whole numbers and the number of segments, checked."""
    try:
        numbers = [operator.index(i) for i in ids]
    except TypeError as e:
        raise TypeError(f"[{who}] ids are whole numbers, one for each: {e}") from None
    if num_segments is None:
        n = max(numbers, default=-1) + 1
    else:
        n = operator.index(num_segments)
        if n < 0:
            raise ValueError(f"[{who}] num_segments must be >= 0; got {num_segments}")
    for i in numbers:
        if not 0 <= i < n:
            raise OutOfRangeError(f"[{who}] id {i} is out of range for {n} segments")
    return numbers, n


def _along(xs: Any, ids: Iterable[int], num_segments: int | None, who: str, op: Any) -> Any:
    numbers, n = _numbers(ids, num_segments, who)
    with _named(who):
        return op(xs, numbers, n)


def _of_list(xs: Iterable[Any], ids: Iterable[int], num_segments: int | None, who: str, reduce: Any) -> list[Any]:
    members = list(xs)
    numbers, n = _numbers(ids, num_segments, who)
    if len(members) != len(numbers):
        raise ValueError(f"[{who}] one id for each expression is needed; got {len(numbers)} for {len(members)}")
    if not members and n:
        raise ValueError(f"[{who}] the list is empty, so that the shape of {n} segments is not known")
    if n > MOST:
        raise ValueError(f"[{who}] a list may have {MOST} segments at most; got {n}")
    members = [as_expression(x) for x in members]  # what is alone in its segment is a result itself
    groups: list[list[Any]] = [[] for _ in range(n)]
    for x, i in zip(members, numbers, strict=True):
        groups[i].append(x)
    if who == "segment_max" and not all(groups):
        raise ValueError(f"[{who}] segment {groups.index([])} is empty: it has no largest")
    blank = _blank(members, groups)
    with _named(who):
        return [reduce(group, blank) if len(group) > 1 else group[0] if group else blank for group in groups]


@contextmanager
def _named(who: str) -> Iterator[None]:
    """Errors of the ops inside name the function that the user called."""
    try:
        yield
    except StaleExpressionError:
        raise
    except ValueError as e:
        if isinstance(e, LookupError):
            raise
        raise ValueError(f"[{who}] {str(e).partition('] ')[2]}") from None


def _blank(members: list[Any], groups: list[list[Any]]) -> Any:
    """Zeros of the members' shape: what an empty segment is, and what nodes with fewer than WIDTH arguments are filled
    up with."""
    if all(len(group) == 1 for group in groups):
        return None
    dims, batch = members[0].dim()
    return _core.zeros(dims, batch_size=batch)


def _tree(members: list[Any], blank: Any, factor: float | None) -> Any:
    """factor times the sum of the members, two or more; without a factor the largest."""
    while len(members) > 1:
        last = len(members) <= WIDTH
        members = [
            _node(members[i : i + WIDTH], blank, factor if last or factor is None else 1.0)
            for i in range(0, len(members), WIDTH)
        ]
    return members[0]


def _node(members: list[Any], blank: Any, factor: float | None) -> Any:
    n = len(members)
    if n == 1:
        return members[0]
    members = members + [blank] * (WIDTH - n)
    return _core._max_some(members, n) if factor is None else _core._sum_some(members, n, factor)
