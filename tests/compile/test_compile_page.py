"""The programs of docs/compile.md run in one go."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compile.md"


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    programs = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(programs) == 2
    names = {"__name__": "__main__"}
    for program in programs:
        exec(compile(program, "docs/compile.md", "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert [float(line) > 0 for line in lines[:3]] == [True] * 3
    assert lines[3:] == ["2 structures", "(5,) (5,) 1"]
