"""What the recorder knows of who read and wrote which memory, against a model that knows it of each float."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cxx import compiler

from build import CEXT, FLAGS, HERE, SANITIZERS, run

SOURCE = CEXT / "backends" / "cuda" / "traffic.cc"


def answers(folder: Path, source: Path) -> subprocess.CompletedProcess[str]:
    if compiler() is None or not CEXT.is_dir():
        pytest.skip("needs a C++ compiler and the source tree")
    program = folder / "traffic_check"
    checked = ["-DDNL_CHECKED", *FLAGS, *SANITIZERS]
    run([compiler() or "c++", *checked, str(HERE / "traffic_check.cc"), str(source), "-o", str(program)])
    return subprocess.run([str(program)], capture_output=True, text=True, timeout=300)


def test_levels_are_those_of_each_float(tmp_path: Path) -> None:
    done = answers(tmp_path, SOURCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) > 15_000


@pytest.mark.parametrize(
    "right, wrong",
    [
        ("all[first] = {end, {after, 0}};", "all[first] = {end, {0, after}};"),  # as if it had only been read
        ("if (piece->end >= end)", "if (piece->end > end)"),  # a piece too many is asked
        ("part.levels = node->levels;", "part.levels = {};"),  # what was known of the whole is gone
    ],
)
def test_a_mistake_is_found(tmp_path: Path, right: str, wrong: str) -> None:
    text = SOURCE.read_text()
    assert text.count(right) == 1
    changed = tmp_path / SOURCE.name
    changed.write_text(text.replace(right, wrong))
    assert answers(tmp_path, changed).returncode == 1
