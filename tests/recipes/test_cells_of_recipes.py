"""Recipes with cells: the same losses and scores whether cells are recorded, or run and compared with what was recorded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
WITH_CELLS = sorted(path.stem for path in RECIPES.glob("*.py") if "@dy.cell" in path.read_text(encoding="utf-8"))


def numbers(output: str) -> list[str]:
    """Losses and scores; not times."""
    found = re.findall(r"(?:loss|error rate|LAS|all right|accuracy) (\d+\.\d+)", output)
    assert found
    return found


def test_some_have_cells() -> None:
    assert {"attention_seq2seq", "pointer_network", "stack_lstm_parser", "treelstm_sentiment"} <= set(WITH_CELLS)


@pytest.mark.parametrize("name", WITH_CELLS)
def test_as_with_functions(run_recipe, name):
    recorded, check = (
        numbers(run_recipe(name, "--smoke", DYNET_LITE_CELLS=how).stdout) for how in ("recorded", "check")
    )
    assert recorded == check
