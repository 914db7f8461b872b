"""The comparison of small steps as a command, and its tasks: both ways of a task give the same numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import run_python

import dynet_lite as dy

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
NAMES = (
    "xor",
    "skipgram",
    "mlp",
    "recursive",
    "kept",
    "kept_values",
    "parsing",
    "sampling",
    "features",
    "tagger",
    "latency",
)


@pytest.fixture(scope="module")
def tasks() -> Iterator[Any]:
    sys.path.insert(0, str(FOLDER))
    try:
        from small_tasks import TASKS

        yield TASKS
    finally:
        sys.path.remove(str(FOLDER))


def test_the_command(tmp_path: Path) -> None:
    command = [str(FOLDER / "small_steps.py"), "--tasks", "xor,kept", "--steps", "8", "--rounds", "1"]
    done = run_python([*command, "--engines", "dynet_lite:on"], tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "| xor | dynet_lite:on |" in done.stdout and "| kept | dynet_lite:on |" in done.stdout


def test_names(tasks: Any) -> None:
    assert tuple(tasks) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_ways_agree(tasks: Any, name: str) -> None:
    found = {}
    for way in tasks[name](dy).ways():
        step = tasks[name](dy).ways()[way]  # each begins with the same weights
        found[way] = [step(k) for k in range(6)]
    assert all(np.isfinite(losses).all() for losses in found.values())
    for losses in found.values():
        np.testing.assert_allclose(losses, found["plain"], rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_pytorch_does_the_same(tasks: Any, name: str) -> None:
    torch = pytest.importorskip("torch")
    sys.path.insert(0, str(FOLDER))
    try:
        import small_tasks_torch
    finally:
        sys.path.remove(str(FOLDER))
    assert tuple(small_tasks_torch.TASKS) == NAMES
    ours, theirs = tasks[name](dy).plain, small_tasks_torch.TASKS[name](torch).plain
    np.testing.assert_allclose([theirs(k) for k in range(6)], [ours(k) for k in range(6)], rtol=1e-4)
