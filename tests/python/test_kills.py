"""A little of tests/kill_campaign.py, which runs for as long as one likes by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from kill_campaign import kill_saves, kill_training


def test_kills_during_saves() -> None:
    kill_saves(5)


@pytest.mark.parametrize(("recipe", "threads"), [("dan_classifier", 1), ("bilstm_tagger", 2)])
def test_kills_during_training(recipe: str, threads: int) -> None:
    assert kill_training(recipe, threads, kills=1) == 1
