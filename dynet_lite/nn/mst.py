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
    """A float64 copy with finite numbers, columns contiguous: ValueError for another shape, NaN or +inf. What is not looked at
    is as one of the arcs."""
    s = np.array(scores, dtype=np.float64, order="F")
    if s.ndim != 2 or s.shape[0] != s.shape[1] or len(s) < 2:
        raise ValueError(f"expected a square matrix of scores, at least 2 by 2; got shape {s.shape}")
    s[:, 0] = s[0, 1]
    np.fill_diagonal(s, s[0, 1])
    if not (s < np.inf).all():
        raise ValueError("expected scores without NaN and +inf")
    finite = np.isfinite(s)
    if not finite.all():
        low, high = s.min(initial=np.inf, where=finite), s.max(initial=-np.inf, where=finite)
        low, high = (low, high) if low <= high else (0.0, 0.0)
        s[np.isneginf(s)] = low - 2 * (high - low + 1) * len(s)
    return s


def _one_root(s: Array) -> None:
    """Makes each arc from the root so bad that the best tree has one only."""
    inner = s[:, 1:]
    s[0] -= (inner.max() - inner.min() + 1) * len(s)


def tree_score(scores: Any, heads: Sequence[int]) -> float:
    """The sum of the scores of a tree's arcs."""
    return float(sum(scores[head, word] for word, head in enumerate(heads, 1)))


def best_tree(scores: Any, one_root: bool = True) -> list[int]:
    """The heads of the words 1..n in the tree with the highest score. Arcs may cross.

    scores: an array [head, word]; number 0 is the root
    one_root: exactly one word hangs from the root

    Chu and Liu 1965, Edmonds 1967, in the order of Tarjan 1977: O(n**2) steps. It needs memory for one copy of the
    scores and, for each cycle of best heads, n small integers.
    """
    s = _prepared(scores)
    if one_root:
        _one_root(s)
    np.fill_diagonal(s, -np.inf)
    return _arborescence(s)


def _arborescence(s: Array) -> list[int]:
    """The heads of the words; the diagonal of s is -inf, and s is overwritten.

    A walk goes from a word to its best head, to the head of that, and so on, until it comes to what hangs from the root. A
    cycle that it runs into becomes one node, whose best head is looked for next. Columns of a cycle become one column; rows
    stay those of the words, so that an arc always says which word is its head.
    """
    n = len(s)
    node_of = np.arange(n)  # the node that a word is in by now
    members = [np.array([word]) for word in range(n)]  # the words of each node; cycles are nodes n, n + 1, ...
    column = list(range(n))
    head = [0] * n
    weight = [0.0] * n
    cycles: list[tuple[list[int], Any]] = []  # its nodes, and for each head which of them it enters best
    done, place = {0}, dict[int, int]()  # what hangs from the root; where a node stands on the walk
    for start in range(1, n):
        if int(node_of[start]) in done:
            continue
        walk = [int(node_of[start])]
        place[walk[0]] = 0
        while True:
            node = walk[-1]
            head[node] = int(s[:, column[node]].argmax())
            weight[node] = s[head[node], column[node]]
            above = int(node_of[head[node]])
            if above in done:
                break
            if above in place:
                cycle = walk[place[above] :]
                del walk[place[above] :]
                above = len(members)
                members.append(np.concatenate([members[part] for part in cycle]))
                node_of[members[above]] = above
                cycles.append(
                    (cycle, _join_columns(s, [column[part] for part in cycle], [weight[part] for part in cycle]))
                )
                s[members[above], column[cycle[0]]] = -np.inf
                column.append(column[cycle[0]])
                head.append(0)
                weight.append(0.0)
            place[above] = len(walk)
            walk.append(above)
        done.update(walk)
    for i in reversed(
        range(len(cycles))
    ):  # an arc that enters a cycle takes the place of the one that its word had there
        cycle, entered = cycles[i]
        head[cycle[entered[head[n + i]]]] = head[n + i]
    return head[1:n]


def _join_columns(s: Array, columns: list[int], weights: list[float]) -> Any:
    """The first column becomes what each head gains where it enters the cycle best, the arc there being given up. Which of the
    columns that is, for each head."""
    best = s[:, columns[0]]
    best -= weights[0]
    entered = np.zeros(len(s), dtype=np.min_scalar_type(len(columns)))
    for i, (c, weight) in enumerate(zip(columns, weights, strict=True)):
        if i:
            gain = s[:, c] - weight
            better = gain > best
            np.copyto(best, gain, where=better)
            entered[better] = i
    return entered


def best_projective_tree(scores: Any, one_root: bool = True) -> list[int]:
    """The heads of the words 1..n in the projective tree with the highest score (Eisner 1996; O(n**3)).

    scores: an array [head, word]; number 0 is the root
    one_root: exactly one word hangs from the root
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
