"""What a program gives is the same where plans are kept and where they are made anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def same_kept_and_anew(run: Callable[[bool], list[Any]]) -> None:
    """run(keep): its numbers, to the last bit."""
    for a, b in zip(run(True), run(False), strict=True):
        np.testing.assert_array_equal(a, b)
