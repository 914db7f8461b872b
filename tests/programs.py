"""Programs of tests that need a Python of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import dynet_lite as dy


def run_python(arguments: Sequence[str], folder: Path, timeout: float = 100) -> subprocess.CompletedProcess[str]:
    """Runs Python in the folder, not in that of the sources, which may not be built; with the package that is tested."""
    env = {**os.environ, "PYTHONPATH": str(Path(dy.__file__).resolve().parents[1])}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=timeout, env=env, cwd=folder
    )


def run_code(code: str, folder: Path, timeout: float = 100) -> subprocess.CompletedProcess[str]:
    return run_python(["-c", code], folder, timeout)
