"""The table of recipes has a row for each script, and no others."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def rows() -> dict[str, list[str]]:
    """Name of the script -> the cells after it."""
    section = (
        (ROOT / "docs" / "recipe_scores.md")
        .read_text(encoding="utf-8")
        .split("\n## At a glance\n")[1]
        .split("\n## ")[0]
    )
    found = re.findall(r"^\| `(\w+)\.py` \|(.*)\|$", section, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in found}


def test_each_recipe_has_a_row() -> None:
    assert sorted(rows()) == sorted(p.stem for p in (ROOT / "recipes").glob("*.py"))


def test_rows_are_complete() -> None:
    for name, (task, default_run, _, on_off) in rows().items():
        assert task and re.search(r", \d+ s$", default_run), name
        assert re.fullmatch(r"\d+\.\d ×", on_off) or name == "xor", name
