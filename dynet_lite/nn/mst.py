"""The best dependency tree under a matrix of scores: Chu-Liu/Edmonds for all trees, Eisner for projective ones.

scores[head, dependent], (n+1, n+1), is what an arc adds to the score of a tree; 0 is the root. Column 0 and the diagonal are
not looked at. -inf forbids an arc. NumPy only: the engine is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["best_projective_tree", "best_tree", "tree_score"]

Array = np.ndarray[Any, np.dtype[np.float64]]


def _prepared(scores: Any) -> Array:
    """A float64 copy with finite numbers: ValueError for another shape or NaN."""
    s = np.array(scores, dtype=np.float64)
    if s.ndim != 2 or s.shape[0] != s.shape[1] or len(s) < 2:
        raise ValueError(f"expected a square matrix of scores, at least 2 by 2; got shape {s.shape}")
    if np.isnan(s).any():
        raise ValueError("expected scores without NaN")
    finite = s[np.isfinite(s)]
    spread = (finite.max() - finite.min() + 1) * len(s) if finite.size else 1.0
    s[np.isneginf(s)] = (finite.min() if finite.size else 0.0) - 2 * spread
    return s


def _one_root(s: Array) -> None:
    """Makes each arc from the root so bad that the best tree has one only."""
    inner = s[:, 1:]
    s[0] -= (inner.max() - inner.min() + 1) * len(s)


def tree_score(scores: Any, heads: Sequence[int]) -> float:
    """The sum of the scores of the arcs."""
    return float(sum(scores[head, word] for word, head in enumerate(heads, 1)))


def best_tree(scores: Any, one_root: bool = True) -> list[int]:
    """The heads of the words 1..n in the tree of the highest score, which may cross its arcs.

    one_root: exactly one word has the root as head. Chu and Liu 1965, Edmonds 1967; O(n**3) at worst, and O(n**2) where the
    best head of each word makes a tree.
    """
    s = _prepared(scores)
    if one_root:
        _one_root(s)
    np.fill_diagonal(s, -np.inf)
    heads: list[int] = _arborescence(s)[1:].tolist()
    return heads


def _find_cycle(heads: Any) -> list[int]:
    """The nodes of a cycle; empty when there is none. heads[0] is not looked at."""
    state = np.zeros(len(heads), dtype=np.int64)  # the walk that came by
    state[0] = -1
    for start in range(1, len(heads)):
        node = start
        while state[node] == 0:
            state[node] = start
            node = heads[node]
        if state[node] == start:
            cycle = [node]
            while (after := int(heads[cycle[-1]])) != node:
                cycle.append(after)
            return cycle
    return []


def _arborescence(s: Array) -> Any:
    """The head of each node; the diagonal of s is -inf. A cycle of best heads becomes one node, until there is none."""
    heads = s.argmax(axis=0)
    cycle = _find_cycle(heads)
    if not cycle:
        return heads
    rest = np.setdiff1d(np.arange(len(s)), cycle)  # 0 stays the first
    inside = np.array(cycle)
    # To enter the cycle at a node is to give up the arc that it has there.
    entering = s[np.ix_(rest, inside)] - s[heads[inside], inside]
    leaving = s[np.ix_(inside, rest)]
    small = np.empty((len(rest) + 1,) * 2)
    small[:-1, :-1] = s[np.ix_(rest, rest)]
    small[:-1, -1] = entering.max(axis=1)
    small[-1, :-1] = leaving.max(axis=0)
    small[-1, -1] = -np.inf
    found = _arborescence(small)
    out = heads.copy()
    inner = inside[leaving.argmax(axis=0)]
    out[rest] = np.where(found[:-1] == len(rest), inner, rest[np.minimum(found[:-1], len(rest) - 1)])
    entry = int(found[-1])
    out[inside[entering[entry].argmax()]] = rest[entry]
    return out


def best_projective_tree(scores: Any, one_root: bool = True) -> list[int]:
    """The heads of the words 1..n in the projective tree of the highest score.

    one_root: exactly one word has the root as head. Eisner 1996; O(n**3).
    """
    s = _prepared(scores)
    if one_root:
        _one_root(s)
    n = len(s)
    # Best scores of spans i..j. Incomplete: an arc joins the ends; complete: all words hang below one end.
    # [0]: the head is on the right (j), [1]: on the left (i). `split_...`: where the two parts of a span meet.
    incomplete, complete = np.full((2, n, n), -np.inf), np.full((2, n, n), -np.inf)
    complete[:, range(n), range(n)] = 0
    split_incomplete, split_complete = np.zeros((n, n), dtype=np.int64), np.zeros((2, n, n), dtype=np.int64)
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            both = complete[1, i, i:j] + complete[0, i + 1 : j + 1, j]
            k = int(both.argmax())
            split_incomplete[i, j] = i + k
            incomplete[0, i, j], incomplete[1, i, j] = both[k] + s[j, i], both[k] + s[i, j]
            left = complete[0, i, i:j] + incomplete[0, i:j, j]
            k = int(left.argmax())
            split_complete[0, i, j], complete[0, i, j] = i + k, left[k]
            right = incomplete[1, i, i + 1 : j + 1] + complete[1, i + 1 : j + 1, j]
            k = int(right.argmax())
            split_complete[1, i, j], complete[1, i, j] = i + 1 + k, right[k]
    return _read_spans(n, split_incomplete, split_complete)


def _read_spans(n: int, split_incomplete: Any, split_complete: Any) -> list[int]:
    heads = [0] * n
    todo = [(0, n - 1, 1, True)]  # i, j, direction, complete
    while todo:
        i, j, direction, complete = todo.pop()
        if i == j:
            continue
        if complete:
            k = int(split_complete[direction, i, j])
            todo += [(i, k, 1, False), (k, j, 1, True)] if direction else [(i, k, 0, True), (k, j, 0, False)]
        else:
            k = int(split_incomplete[i, j])
            heads[j if direction else i] = i if direction else j
            todo += [(i, k, 1, True), (k + 1, j, 0, True)]
    return heads[1:]
