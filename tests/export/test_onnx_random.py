"""Some random functions over sequences and mini-batches, each run with several lengths and sizes; random_functions.py and
random_batches.py make as many as one likes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import random_batches
from random_functions import LINES, Function


@pytest.mark.parametrize("seed", range(16))
def test_random_functions(seed: int, runtime: Any, tmp_path: Path) -> None:
    Function(seed).compute(tmp_path, runtime)


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_mini_batches(first: int, runtime: Any, tmp_path: Path) -> None:
    for seed in range(first, first + 10):
        random_batches.Function(seed).compute(tmp_path, runtime)


def test_functions_use_everything() -> None:
    text = "\n".join(line for seed in range(80) for line in Function(seed).lines)
    calls = (
        "map(",
        "softmax()",
        "windows(",
        "begun(",
        "ended(",
        "transduce(",
        "scan(",
        "cells(",
        "recurse(",
        "tree(",
        "attend(",
        "sum()",
    )
    assert len(LINES) > len(calls) and not [call for call in calls if call not in text]
