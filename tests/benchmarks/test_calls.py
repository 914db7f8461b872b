"""The comparison of single calls as a command, and its rows, which are all calls that there are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import run_python

import dynet_lite as dy

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def modules() -> Iterator[tuple[Any, Any]]:
    sys.path.insert(0, str(FOLDER))
    try:
        import call_rows
        import calls

        yield calls, call_rows
    finally:
        sys.path.remove(str(FOLDER))


def test_the_command(tmp_path: Path) -> None:
    command = [str(FOLDER / "calls.py"), "--engines", "dynet_lite:off,dynet_lite:on", "--rounds", "1"]
    command += ["--only", r"fold_rows\(m|W.shape", "--sizes", "small", "--batches", "1"]
    done = run_python(command, tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [done.stdout.count(f"| {kind} | small | 1 |") for kind in ("call", "step", "other")] == [1, 1, 1]


@pytest.mark.parametrize(
    ("which", "batch"),
    [("GRAPH_CALLS", 1), ("GRAPH_CALLS", 32), ("STATE_CALLS", 1), ("STATE_CALLS", 32), ("OTHER_CALLS", 1)],
)
def test_all_rows_run(modules: tuple[Any, Any], which: str, batch: int) -> None:
    calls, call_rows = modules
    of_one = ("hinge(x", "hinge_dim(", "pickneglogsoftmax(x", "soft.neg_log_softmax(x")  # need a label for each element
    given = call_rows.Given(dy, 20, batch)
    for row in call_rows.rows(getattr(call_rows, which)):
        if batch == 1 or not row.startswith(of_one):
            calls.function(dy, given.arguments(row), f"def made(): {row}")()
