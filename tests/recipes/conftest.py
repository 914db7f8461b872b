"""Recipes are run as a user runs them: in a process of their own, from another folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

RECIPES = Path(__file__).resolve().parents[2] / "recipes"


@pytest.fixture
def run_recipe(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """run_recipe("name", *arguments, stdin="", ok=True, VARIABLE="of the environment")."""

    def run(name: str, *args: object, stdin: str = "", ok: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(RECIPES / f"{name}.py"), *map(str, args)]
        done = subprocess.run(command, cwd=tmp_path, input=stdin, capture_output=True, text=True, timeout=300,
                              env={**os.environ, **env})  # fmt: skip
        if ok:
            assert done.returncode == 0, done.stderr
        return done

    return run


def worst_difference(compared: str) -> float:
    """The largest difference of losses that --compare reports: "... by 1.2e-07 at most (relative)"."""
    last = compared.splitlines()[-1]
    assert "times as fast" in last
    return float(last.split("by ")[-1].split()[0])


@pytest.fixture
def same_losses() -> Callable[[str], None]:
    """Checks what --compare printed."""

    def check(compared: str) -> None:
        assert worst_difference(compared) <= 1e-5

    return check
