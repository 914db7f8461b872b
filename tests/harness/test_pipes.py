"""A command whose output nobody reads to its end, as under `| head`, ends quietly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("recipes", "info", "--help", "train text_cnn --smoke", "compare --help")


def cut(*command: str) -> subprocess.CompletedProcess[str]:
    """The command with a reader that has gone already."""
    read, write = os.pipe()
    os.close(read)
    try:
        return subprocess.run(
            [sys.executable, *command], stdout=write, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
    finally:
        os.close(write)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = cut("-m", "dynet_lite", *command.split())
    assert done.stderr == ""
    assert done.returncode == 141 or "--help" in command  # argparse says nothing, whatever happens


def test_a_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = cut(str(ROOT / "recipes" / "bilstm_tagger.py"), "--smoke")
    assert (done.returncode, done.stderr) == (141, "")
