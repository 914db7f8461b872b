"""The programs of docs/cells.md run in one go, and what they compare is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cells.md"


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    programs = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(programs) >= 5
    names = {"__name__": "__main__"}
    try:
        for program in programs:
            exec(compile(program, "docs/cells.md", "exec"), names)
    finally:
        names.clear()  # the page's graph goes now, not when garbage is collected
    lines = capsys.readouterr().out.splitlines()
    batches = [line for line in lines if line.endswith("batches")]
    assert len(batches) == 2 and batches[0] == batches[1]
