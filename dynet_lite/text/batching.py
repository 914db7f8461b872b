"""Minibatches of any items, shuffled from a seed. Sees nothing but the standard library."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

__all__ = ["minibatches"]

T = TypeVar("T")


def minibatches(
    items: Sequence[T],
    size: int,
    *,
    seed: int | random.Random | None = None,
    key: Callable[[T], Any] | None = None,
    pool: int = 50,
) -> Iterator[list[T]]:
    """Yields lists of `size` items. The last one may be shorter. Every item comes once.

    seed: a number or a random.Random to shuffle with; None keeps the order. With a Random, every epoch has another
        order; with a number, every epoch has the same one
    key: makes batches of items with similar keys, such as `key=len`. The shuffled items are cut into pools of `pool`
        batches. Each pool is sorted by key and cut into batches, which are then shuffled
    """
    if size < 1:
        raise ValueError(f"expected a batch size of at least 1, got {size}")
    if pool < 1:
        raise ValueError(f"expected a pool of at least 1 batch, got {pool}")
    rng = seed if isinstance(seed, random.Random) else None if seed is None else random.Random(seed)
    order = list(range(len(items)))
    if rng is not None:
        rng.shuffle(order)
    return _cut(items, order, size, rng, key, pool)


def _cut(
    items: Sequence[T],
    order: list[int],
    size: int,
    rng: random.Random | None,
    key: Callable[[T], Any] | None,
    pool: int,
) -> Iterator[list[T]]:
    width = size if key is None else size * pool
    for start in range(0, len(order), width):
        part = [items[i] for i in order[start : start + width]]
        if key is not None:
            part.sort(key=key)
        batches = [part[i : i + size] for i in range(0, len(part), size)]
        if rng is not None and len(batches) > 1:
            rng.shuffle(batches)
        yield from batches
