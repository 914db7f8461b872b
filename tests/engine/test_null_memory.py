"""The executor follows no address: the null backend gives it memory that nobody can read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dynet_lite import _core


@pytest.mark.skipif(sys.platform == "win32", reason="the null backend has memory there")
@pytest.mark.parametrize("threads", [1, 2])
def test_no_address_is_followed(threads: int) -> None:
    """The op table, random programs and training loops, in a process of their own."""
    program = Path(__file__).parent / "null_memory.py"
    place = {**os.environ, "PYTHONPATH": str(Path(_core.__file__).parents[1])}
    run = subprocess.run([sys.executable, str(program), str(threads)], capture_output=True, text=True, env=place)
    assert run.returncode == 0 and "untouched" in run.stdout, f"{run.returncode}\n{run.stdout}\n{run.stderr}"
