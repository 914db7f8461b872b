"""The type of numbers is part of a shape: unlike types are unlike signatures, and what has these never batches."""

import subprocess
from pathlib import Path

import pytest
from cxx import built, compiler

HERE = Path(__file__).resolve().parent
CEXT = HERE.parents[1] / "cext"


def test_unlike_types_never_batch(tmp_path: Path) -> None:
    """There is one type so far, so a C++ program makes up another."""
    cxx = compiler()
    if cxx is None or not CEXT.is_dir():
        pytest.skip("needs a C++ compiler and the source tree")
    names = ("graph/graph", "graph/leaves", "graph/params", "graph/store", "graph/versions", "graph/describe")
    sources = [
        CEXT / f"{name}.cc"
        for name in (*names, "op/op", "op/backend", "base/outer_later", "base/wait", "backends/null/null")
    ]
    program = tmp_path / "types_check"
    command = [cxx, "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", f"-I{CEXT}", str(HERE / "types_check.cc")]
    parts = [str(built(source) or source) for source in sources]
    done = subprocess.run([*command, *parts, "-pthread", "-o", str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    done = subprocess.run([str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
