"""The page for those who come from DyNet: its examples run, the files it names exist, its list of gaps is the checklist's."""

from __future__ import annotations

import re
from pathlib import Path

from real_dynet import python
from test_checklist import ABSENT

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coming_from_dynet.md").read_text(encoding="utf-8")


def test_examples_run() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        done = python("-c", block)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("[0.0, 0.76159")


def test_named_files_exist() -> None:
    named = re.findall(r"`((?:tests|docs|dynet_lite)/[\w./]*)`", PAGE)
    assert named and not [name for name in named if not (ROOT / name).exists()]


def test_gaps() -> None:
    """Every name of the checklist that is not offered and that a program could want is told."""
    for name in ABSENT:
        if name not in ("ERRMSG", "print_function"):
            assert name.split(".")[-1] in PAGE, name
