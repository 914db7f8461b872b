"""The comparison of strategies as a command, and the search for what is best."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import run_python

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def search() -> Iterator[Any]:
    sys.path.insert(0, str(FOLDER))
    try:
        import schedule_search

        yield schedule_search
    finally:
        sys.path.remove(str(FOLDER))


def test_the_command(tmp_path: Path) -> None:
    small = ["--examples", "4", "--minibatches", "1", "--rounds", "1", "--width", "2", "--size", "4"]
    command = [str(FOLDER / "schedules.py"), *small, "--structures", "trees,messages"]
    done = run_python(command, tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[1:-1] for line in done.stdout.splitlines() if line.startswith("|")]
    assert [row[0].strip() for row in rows[2:]] == ["trees", "messages"]
    for row in rows[2:]:
        bound, _, _, greedy, auto, best = (int(cell) for cell in row[2:8])
        assert bound <= best <= auto <= greedy


def test_the_search_finds_what_cannot_be_better(search: Any) -> None:
    """Sequences over two types that do not fit one another: the shortest common supersequence of 01, 10, 001 has 4."""
    types: list[int] = []
    reads: list[list[int]] = []
    for sequence in ([0, 1], [1, 0], [0, 0, 1]):
        for k, t in enumerate(sequence):
            reads.append([len(types) - 1] if k else [])
            types.append(t)
    assert search.best_known(search.Problem(types, reads), width=50) == 4


def test_components_without_recurrence_are_one_batch(search: Any) -> None:
    problem = search.Problem([0, 0, 1, 1, 2, 2], [[], [], [0], [1], [], [4]])  # type 2 feeds itself
    assert len(search.components(problem)) == 3
    assert search.best_known(problem, width=1) == 1 + 1 + 2
