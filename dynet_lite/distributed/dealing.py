"""Who gets which examples of a mini-batch: dealt by cost, the same answer in every process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dynet_lite import _core

__all__ = ["deal", "default_cost"]

E = TypeVar("E")


def default_cost(example: Any) -> float:
    """The length of an example that has one (a sentence), else 1."""
    try:
        return max(1.0, float(len(example)))
    except TypeError:  # a number, also in an array without axes
        return 1.0


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
    examples, speeds = list(examples), None if speeds is None else list(speeds)  # which may come from generators
    if speeds is not None and len(speeds) != hands:
        raise ValueError(f"[deal] {hands} speeds > 0 are needed; got {speeds}")
    if hands == 1:
        return [examples]
    parts: list[list[E]] = [[] for _ in range(hands)]
    for example, k in zip(examples, hands_of(costs_of(examples, cost), hands, speeds), strict=True):
        parts[k].append(example)
    return parts


def costs_of(examples: Sequence[E], cost: Callable[[E], float] | None) -> list[float]:
    return list(map(cost or default_cost, examples))


def hands_of(costs: list[float], hands: int, speeds: Sequence[float] | None) -> list[int]:
    """Which part each example is in; see deal()."""
    return _core._deal(costs, [1.0] * hands if speeds is None else list(speeds))
