"""Who gets which examples of a mini-batch: dealt by cost, the same answer in every process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

__all__ = ["deal", "default_cost"]

E = TypeVar("E")


def default_cost(example: Any) -> float:
    """The length of an example that has one (a sentence), else 1."""
    return max(1.0, float(len(example))) if hasattr(example, "__len__") else 1.0


def deal(examples: Sequence[E], hands: int, cost: Callable[[E], float] | None = None) -> list[list[E]]:
    """The examples in `hands` parts of about the same cost.

    The dearest first, each to the part that has cost least so far (Graham: Bounds on multiprocessing timing anomalies,
    1969); ties go to the earlier example and to the earlier part. Inside a part the order is that of `examples`. With
    fewer examples than hands some parts are empty. ValueError for a cost that is not a number >= 0.
    """
    if hands < 1:
        raise ValueError(f"[deal] at least one part is needed; got {hands}")
    if hands == 1:
        return [list(examples)]
    costs = [float((cost or default_cost)(x)) for x in examples]
    for c in costs:
        if not 0 <= c < float("inf"):
            raise ValueError(f"[deal] a cost must be a number >= 0; got {c}")
    parts: list[list[int]] = [[] for _ in range(hands)]
    sums = [0.0] * hands
    for i in sorted(range(len(costs)), key=lambda i: (-costs[i], i)):
        k = min(range(hands), key=lambda k: (sums[k], len(parts[k]), k))
        parts[k].append(i)
        sums[k] += costs[i]
    return [[examples[i] for i in sorted(part)] for part in parts]
