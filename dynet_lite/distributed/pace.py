"""How fast each rank was in the last steps, as all ranks know it: then a slower one gets less of a mini-batch."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

__all__ = ["Pace"]

KEPT = 0.8  # of what was known before, in each step


class Pace:
    """Seconds that a rank takes for a unit of cost, averaged over steps.

    A step begins where its mini-batch is dealt and ends where its update begins. Every rank sends its own pace with the
    update. When the next mini-batch is dealt, some ranks may know how the last update went and others not yet, so that
    all use what was known one update before.
    """

    def __init__(self, ranks: int) -> None:
        self._began: tuple[float, float] | None = None  # when the step began, and its cost
        self._waited = 0.0  # seconds of this step
        self._updates = self._learned = 0  # that have begun; the last one that has ended
        zeros = np.zeros(ranks)
        self._known = [zeros, zeros]  # after the update before the last one that has ended, and after this

    def begin(self, cost: float) -> None:
        """A mini-batch has been dealt: the part of this rank costs so much."""
        self._began, self._waited = (time.perf_counter(), cost), 0.0

    def wait(self, seconds: float) -> None:
        """The rank waited for others."""
        self._waited += seconds

    def end(self) -> float:
        """The update of the step begins; what this rank sends, 0: unknown."""
        self._updates += 1
        if self._began is None:
            return 0.0
        (start, cost), self._began = self._began, None
        return (time.perf_counter() - start - self._waited) / cost if cost > 0 else 0.0

    def learn(self, paces: np.ndarray[Any, Any]) -> None:
        """The update has ended; what the ranks have sent."""
        last = self._known[1]
        self._learned = self._updates
        if not paces.any():
            self._known = [last, last]
            return
        new = np.where(last > 0, KEPT * last + (1 - KEPT) * paces, paces)
        self._known = [last, np.where(paces > 0, new, last)]

    def speeds(self) -> list[float] | None:
        """What each rank does in the same time; None while some are unknown."""
        known = self._known[0 if self._learned == self._updates else 1]
        return (1 / known).tolist() if known.all() else None
