"""How the learning rate changes while a model is trained: a factor from the number of updates done."""

from __future__ import annotations

import math

__all__ = ["SCHEDULES", "factor"]

SCHEDULES = ("constant", "linear", "cosine", "inverse-sqrt", "halve")


def factor(schedule: str, step: int, steps: int, warmup: int = 0, halvings: int = 0) -> float:
    """What the learning rate is multiplied with in update `step`, the first being 0, of `steps` in all.

    constant      1
    linear        from 1 down to 0
    cosine        from 1 down to 0, slowly at both ends
    inverse-sqrt  from 1 down as 1 / sqrt of the number of updates
    halve         1/2 for each time that the dev score did not improve (`halvings`)

    In the first `warmup` updates it rises in equal steps to 1; the rest follows after that.
    """
    if step < warmup:
        return (step + 1) / (warmup + 1)
    done = min(1.0, (step - warmup) / max(1, steps - warmup))
    if schedule == "constant":
        return 1.0
    if schedule == "linear":
        return 1 - done
    if schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * done))
    if schedule == "inverse-sqrt":
        return math.sqrt(max(1, warmup) / max(1, warmup, step + 1))
    if schedule == "halve":
        return 0.5**halvings
    raise ValueError(f"expected a schedule out of {', '.join(SCHEDULES)}, got {schedule!r}")
