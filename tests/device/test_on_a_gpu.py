"""The one command for whoever has a GPU runs to its end: on the stand-in, with tiny sizes."""

from __future__ import annotations

import json
from pathlib import Path

from build import ALL, Run

TASKS = ("tagger", "treelstm") if ALL else ("tagger",)
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_all_parts_run_and_leave_a_log(on_gpu: Run, tmp_path: Path) -> None:
    words = [str(BENCHMARKS / "on_a_gpu.py"), "--smoke", "--tasks", ",".join(TASKS), "--out", "logs"]
    done = on_gpu(*words)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    log = next((tmp_path / "logs").glob("*.log")).read_text()
    assert "against the CPU, and twice on the GPU: the same" in log
    assert "all parts ran" in log and "FAILED" not in log
    assert "time on the GPU / estimate (at most)" in log and "'on_host': 0" in log
    lines = [json.loads(line) for line in next((tmp_path / "logs").glob("*.jsonl")).read_text().splitlines()]
    cases = [line for line in lines if "case" in line]
    assert [line["setup"]["task"] for line in cases] == [task for task in TASKS for _ in range(2)]
    for line in cases:
        assert {"dynet_lite:on@cuda", "dynet_lite:on+idiomatic@cuda"} <= set(line["answers"])
        timed = line["answers"]["dynet_lite:on@cuda"][1]
        assert 0 < timed["device_seconds"] < timed["wall"]


def test_without_a_gpu_it_says_so(on_gpu: Run, tmp_path: Path) -> None:
    done = on_gpu(str(BENCHMARKS / "on_a_gpu.py"), "--smoke", faults="gpus=0")
    assert done.returncode == 1 and "the NVIDIA driver finds no GPU" in done.stdout
    log = next(tmp_path.glob("*.log")).read_text()
    assert "no GPU can be used: nothing was measured" in log
    assert "- the speed of seq2seq, 1024 units: dynet_lite:on, dynet_lite:on+idiomatic, torch:one" in log


def test_a_part_that_fails_is_named_and_the_next_goes_on(on_gpu: Run, tmp_path: Path) -> None:
    done = on_gpu(str(BENCHMARKS / "on_a_gpu.py"), "--smoke", "--tasks", "tagger", faults="memory=2000000")
    assert done.returncode == 1 and "FAILED: Are its numbers right?; " in done.stdout
    assert "## tagger, 1024 units" in done.stdout and "taking memory" in done.stdout
