"""profile(): its counts are those of stats(), its times nest, its trace is what viewers read."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core, amounts


def step(n: int = 3) -> dict[str, Any]:
    """A graph of n chains; its counters."""
    dy.renew_cg()
    W = step.model.parameters_list()[0]  # type: ignore[attr-defined]
    chains = [dy.sum_elems(dy.tanh(W * dy.tanh(W * dy.inputVector(np.ones(4))))) for _ in range(n)]
    loss = dy.esum(chains)
    loss.value()
    loss.backward()
    step.trainer.update()  # type: ignore[attr-defined]
    return dy.stats()


@pytest.fixture(autouse=True)
def plans_made_anew() -> Iterator[None]:
    """A step by a plan that was kept has other phases."""
    with dy.configure(keep_plans=False):
        yield


@pytest.fixture(autouse=True)
def model() -> None:
    step.model = dy.ParameterCollection()  # type: ignore[attr-defined]
    step.model.add_parameters((4, 4))  # type: ignore[attr-defined]
    step.trainer = dy.SimpleSGDTrainer(step.model)  # type: ignore[attr-defined]


def test_counts() -> None:
    with dy.profile() as p:
        a, b = step(3), step(5)
    ops = {o.op: o for o in p.ops()}
    assert sum(o.batches for o in ops.values()) == a["batches"] + b["batches"]
    assert sum(o.nodes for o in ops.values()) == a["nodes"] + b["nodes"]
    assert (ops["tanh"].batches, ops["tanh"].nodes, ops["tanh"].largest, ops["tanh"].mean_batch) == (4, 16, 5, 4.0)
    assert ops["tanh"].bytes == 16 * 4 * 4
    assert p.batch_sizes("tanh") == {3: 2, 5: 2}
    assert sum(p.batch_sizes().values()) == a["batches"] + b["batches"]
    with pytest.raises(ValueError, match="no op"):
        p.batch_sizes("tanhh")


def test_times_nest() -> None:
    with dy.profile() as p:
        step()
    phases = p.phases()
    assert set(phases) == {"rewrite", "plan", "forward", "backward", "update", "python"}
    assert all(s > 0 for s in phases.values()) and sum(phases.values()) == pytest.approx(p.seconds)
    assert sum(o.forward for o in p.ops()) <= phases["forward"]
    assert sum(o.backward for o in p.ops()) <= phases["backward"]
    assert all(o.backward > 0 for o in p.ops())


def test_memory() -> None:
    with dy.profile() as p:
        step(2)
        small = p.memory()
        step(200)
    assert 0 < small["values"] < p.memory()["values"]
    assert p.memory()["values"] >= 4 * 200 * (4 * 4 + 1) and p.memory()["gradients"] > 0


def test_outside_nothing_is_kept() -> None:
    step()
    with dy.profile() as p:
        pass
    step()
    assert len(p.events) == 0 and p.ops() == [] and _core.trace_size() == 0
    assert "op " in p.table()


def test_inside_of_another() -> None:
    with dy.profile() as outer:
        step()
        with dy.profile() as inner:
            step()
        assert len(outer.events) == 2 * len(inner.events)  # while it runs
        step()
    assert len(outer.events) == 3 * len(inner.events)
    with pytest.raises(RuntimeError, match="running already"), outer, outer:
        pass
    assert _core.trace_size() == 0  # nobody traces any more


def test_again() -> None:
    p = dy.profile()
    with p:
        step()
        step()
    with p:
        step()
    assert {o.op: o.batches for o in p.ops()}["tanh"] == 2


def test_lanes_and_threads() -> None:
    _core.settings.least_work = 0
    with dy.configure(threads=2), dy.profile() as p:
        step(8)
    lanes = p.events[p.events["phase"] >= 4]["lane"]
    assert set(lanes.tolist()) == {0, 1}

    def other() -> None:
        with dy.graph():
            dy.tanh(dy.inputVector([1.0])).value()

    with dy.profile() as p:
        thread = threading.Thread(target=other)
        thread.start()
        dy.tanh(dy.inputVector([1.0])).value()
        thread.join()
    assert len(set(p.events["graph"].tolist())) == 2


def test_table() -> None:
    with dy.profile() as p:
        step()
    text = p.table()
    assert str(p) == text
    rows = [line.split()[0] for line in text.splitlines() if line]
    assert {"op", "tanh", "esum", "sum_elems"} <= set(rows)
    assert "more" in p.table(limit=1)


def test_shares_inside_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one moment, though the clock goes on."""
    with dy.profile() as p:
        step()
        clock, reads = _core.trace_clock(), iter(range(100))
        with monkeypatch.context() as patched:
            patched.setattr(_core, "trace_clock", lambda: clock + next(reads))
            text, data = str(p), p.to_dict()
    assert sum(map(int, re.findall(r"\((\d+)%\)", text.splitlines()[0]))) <= 103
    assert sum(data["phases"].values()) == pytest.approx(data["seconds"])


def test_a_block_that_is_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    read = _core.trace_read
    monkeypatch.setattr(_core, "trace_read", lambda begin: (read(begin)[0], 1234))
    with dy.profile() as p:
        step()
    assert p.dropped == 1234 and p.table().endswith("\n1,234 events found no room in the log: profile a shorter block")


def test_three_digits() -> None:
    """Also where rounding leads to the next unit."""
    times = [amounts.seconds(s) for s in (0.9994, 0.9996, 0.0009996, 12.0, 999.7)]
    assert times == ["999 ms", "1 s", "1 ms", "12 s", "1,000 s"]
    assert [amounts.size(n) for n in (999, 999_400, 999_700, 2 * 10**12)] == ["999 B", "999 KB", "1 MB", "2,000 GB"]


def test_chrome_trace(tmp_path: Path) -> None:
    with dy.profile() as p:
        step()
    p.save_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert len(events) == len(p.events)
    names = {e["name"] for e in events}
    assert {"plan", "forward", "backward", "update", "tanh", "tanh backward"} <= names
    (forward,) = [e for e in events if e["name"] == "forward"]
    for e in events:
        assert e["ts"] >= 0 and e["ts"] + e["dur"] <= p.seconds * 1e6
        if e["name"] == "tanh":
            assert forward["ts"] <= e["ts"] and e["ts"] + e["dur"] <= forward["ts"] + forward["dur"] + 1e-3
            assert e["tid"] == forward["tid"] and e["args"]["nodes"] == 3
    assert {e["tid"] for e in events} == {e["tid"] for e in trace["traceEvents"] if e["ph"] == "M"}


def test_to_dict_is_json() -> None:
    with dy.profile() as p:
        step()
    assert json.loads(json.dumps(p.to_dict()))["ops"]
