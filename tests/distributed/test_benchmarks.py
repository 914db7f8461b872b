"""The benchmark of ranks and the cost model as commands; what the model says where it can be said by hand."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location("ranks_model", FOLDER / "ranks_model.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("side_by_side", None)


def test_measuring_and_predicting(ranks: Any, tmp_path: Path) -> None:
    out = ranks(
        2, FOLDER / "two_ranks.py", "--tasks", "tagger", "--chunks", 1, "--steps", 2, "--jsonl", "ranks.jsonl"
    ).stdout
    assert "| `tagger` |" in out and "a sum of one number" in out
    (line,) = map(json.loads, (tmp_path / "ranks.jsonl").read_text().splitlines())
    # Two LSTMs, two layers; a message of a header, one of all gradients and one of rows.
    numbers = 2 * (200 * 128 + 200 * 50 + 200) + 32 * 100 + 32 + 45 * 32 + 45
    assert line["dense"] == 4 * numbers and line["messages"] == 3 and line["buckets"] == 1 and line["rows"] > 128
    said = ranks(0, FOLDER / "ranks_model.py", "ranks.jsonl", "--latency", 2, "--bandwidth", 10).stdout
    assert "What enters" in said and said.count("| `tagger` |") == 2
    assert said.startswith("Assumptions") and said.count("Speed-up, same ") == 4 and said.count("| 512 | 1024 |") == 4


def test_what_the_model_says(model: Any) -> None:
    m = {
        "least": {"one": 100.0, "update": 10.0},
        "costs": [[3.0] * 64] * 8,
        "batch": 64,
        "size": 2,
        "dense": 8e6,
        "buckets": 4,
        "rows": 0.0,
    }
    assert model.seconds(m, 1, 1e-6, 1e9, False) == pytest.approx(0.1)
    # Half of the graphs, the update, a header and rows of one round each, four sums.
    sums = 4 * 2 * 1e-6 + 8e6 / 1e9
    assert model.seconds(m, 2, 1e-6, 1e9, False) == pytest.approx(0.045 + 0.01 + 2e-6 + sums)
    assert model.seconds(m, 2, 1e-6, 1e9, True) == pytest.approx(0.045 + 0.01 + 2e-6 + sums / 4)
    assert model.seconds(m, 4, 0.0, math.inf, False, cores=2) == pytest.approx(0.045 + 0.02)
    assert model.seconds(m, 1024, 0.0, math.inf, False) == pytest.approx(0.09 / 64 + 0.01)  # 64 ranks have an example
    assert model.seconds(m, 1024, 0.0, math.inf, False, same_batch=False) == pytest.approx(0.1)
    lone = {**m, "costs": [[100.0] + [1.0] * 63], "latency": 2e-6, "sum of 4 MB": 4.194304e-3 + 2e-6}
    assert model.share(lone, 8, True) == pytest.approx(100 / 163)  # the longest example alone
    assert model.measured_network(lone) == pytest.approx((1e-6, 1e9))
    told = {**lone, "task": "tagger", "x apart": 1.5, "machine": {"cores": 2, "load": 3.0}}
    assert "tagger with 2 ranks: apart they made 1.50 steps" in model.inputs([told])
    assert "not free" not in model.inputs([{**told, "x apart": 1.9}])
