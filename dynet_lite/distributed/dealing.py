"""Who gets which examples of a mini-batch: dealt by cost, the same answer in every process."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, TypeVar

__all__ = ["deal", "default_cost"]

E = TypeVar("E")


def default_cost(example: Any) -> float:
    """The length of an example that has one (a sentence), else 1."""
    return max(1.0, float(len(example))) if hasattr(example, "__len__") else 1.0


def deal(
    examples: Sequence[E],
    hands: int,
    cost: Callable[[E], float] | None = None,
    speeds: Sequence[float] | None = None,
) -> list[list[E]]:
    """Divides the examples into `hands` parts of about equal cost; with `speeds`, a part that is done twice as fast as
    another gets twice its cost.

    The most expensive examples are dealt first, each to the part that has cost least so far (Graham: Bounds on
    multiprocessing timing anomalies, 1969). Ties go to the earlier example and the earlier part. Within a part,
    examples keep their order. Parts may be empty. ValueError for a cost that is not a number >= 0, or for speeds that
    are not as many numbers > 0.
    """
    if hands < 1:
        raise ValueError(f"[deal] at least one part is needed; got {hands}")
    if hands == 1:
        return [list(examples)]
    costs = list(map(float, map(cost or default_cost, examples)))
    if not all(map(isfinite, costs)) or (costs and min(costs) < 0):
        wrong = next(c for c in costs if not 0 <= c < float("inf"))
        raise ValueError(f"[deal] a cost must be a number >= 0; got {wrong}")
    if speeds is not None and (len(speeds) != hands or not all(0 < s < float("inf") for s in speeds)):
        raise ValueError(f"[deal] {hands} speeds > 0 are needed; got {list(speeds)}")
    parts: list[list[int]] = [[] for _ in range(hands)]
    order = sorted(range(len(costs)), key=costs.__getitem__, reverse=True)  # keeps the order of equal ones
    if speeds is None:
        heap = [(0.0, 0, k) for k in range(hands)]  # what a part has cost, how many it has, which one it is
        for i in order:
            cost_so_far, n, k = heap[0]
            parts[k].append(i)
            heapq.heapreplace(heap, (cost_so_far + costs[i], n + 1, k))
    else:
        took = [0.0] * hands
        for i in order:
            k = min(range(hands), key=lambda k: (took[k] + costs[i] / speeds[k], len(parts[k])))
            took[k] += costs[i] / speeds[k]
            parts[k].append(i)
    return [[examples[i] for i in sorted(part)] for part in parts]
