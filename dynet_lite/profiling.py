"""profile(): where the time of a block of code went: by phase and by op, with batch sizes and memory.

The engine keeps an event per batch and per pass (cext/exec/trace.h); this module adds them up and writes them as a Chrome
trace. Events of all graphs and threads of the process count.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynet_lite import _core, amounts, notebook

__all__ = ["Profile", "profile"]

# struct TraceEvent
EVENT = np.dtype([("start", "f8"), ("seconds", "f8"), ("graph", "u8"), ("floats", "u8"),
                  ("phase", "u4"), ("op", "u4"), ("members", "u4"), ("lane", "u4")])  # fmt: skip
# enum class Phase
REWRITE, PLAN, FORWARD, BACKWARD, UPDATE, FORWARD_BATCH, BACKWARD_BATCH, SHARED_BATCH = range(8)
PASSES = {"rewrite": REWRITE, "plan": PLAN, "forward": FORWARD, "backward": BACKWARD, "update": UPDATE}
BATCH_NAMES = {FORWARD_BATCH: "", BACKWARD_BATCH: " backward", SHARED_BATCH: " weight gradient"}


@dataclass(frozen=True)
class OpTime:
    """What one op did: batches and nodes run forward, seconds (of all threads together), bytes of its results."""

    op: str
    batches: int
    nodes: int
    largest: int  # nodes in the largest batch
    forward: float
    backward: float  # with the gradients of weights
    bytes: int

    @property
    def mean_batch(self) -> float:
        return self.nodes / self.batches if self.batches else 0.0

    @property
    def seconds(self) -> float:
        return self.forward + self.backward


class Profile:
    """The result of profile(). Inside the block it shows what has happened so far."""

    def __init__(self) -> None:
        self._from = 0
        self._start = self._end = 0.0
        self._running = False
        self._read: NDArray[Any] = np.zeros(0, dtype=EVENT)
        self.dropped = 0  # events that found no room; the block was too long for a trace

    def __enter__(self) -> Profile:
        if self._running:
            raise RuntimeError("[profile] this profile is running already; use a new one")
        _core.trace_begin()
        self._running, self._from, self._start = True, _core.trace_size(), _core.trace_clock()
        return self

    def __exit__(self, *exc: object) -> None:
        self._end = _core.trace_clock()
        self._take()
        self._running = False
        _core.trace_end()

    def _take(self) -> None:
        data, self.dropped = _core.trace_read(self._from)
        self._read = data.view(EVENT)[:, 0] if len(data) else np.zeros(0, dtype=EVENT)

    @property
    def events(self) -> NDArray[Any]:
        """A structured array: start, seconds, graph, floats, phase, op, members, lane, in order of their ends."""
        if self._running:
            self._take()
        return self._read

    @property
    def seconds(self) -> float:
        """Wall time of the block."""
        return (_core.trace_clock() if self._running else self._end) - self._start

    # ---- sums --------------------------------------------------------------------------------------------------------

    def phases(self) -> dict[str, float]:
        """Seconds: rewrite (passes over the graph), plan, forward, backward, update, and the rest, which is Python:
        building the graph, reading data.

        With graphs in several threads of Python the phases overlap, and the rest is what is left, or 0.
        """
        return self._phases(self.seconds)

    def _phases(self, total: float) -> dict[str, float]:
        """Those of so many seconds."""
        events = self.events
        out = {name: float(events["seconds"][events["phase"] == number].sum()) for name, number in PASSES.items()}
        return {**out, "python": max(0.0, total - sum(out.values()))}

    def _summary(self) -> str:
        """A line: all seconds, and those of each phase with its share. Inside the block the clock goes on, so it is read once."""
        total = self.seconds
        phases = self._phases(total).items()
        return f"{amounts.seconds(total)}: " + "  ".join(
            f"{name} {amounts.seconds(s)} ({s / (total or 1):.0%})" for name, s in phases
        )

    def ops(self) -> list[OpTime]:
        """What each op did, the one that took the longest first."""
        events = self.events
        out = []
        batches = events[events["phase"] >= FORWARD_BATCH]
        for name, numbers in _labels(np.unique(batches["op"])).items():
            mine = batches[np.isin(batches["op"], numbers)]
            run, back = mine[mine["phase"] == FORWARD_BATCH], mine[mine["phase"] != FORWARD_BATCH]
            out.append(OpTime(
                name, len(run), int(run["members"].sum()), int(run["members"].max(initial=0)),
                float(run["seconds"].sum()), float(back["seconds"].sum()), 4 * int(run["floats"].sum()),
            ))  # fmt: skip
        return sorted(out, key=lambda o: -o.seconds)

    def batch_sizes(self, op: str | None = None) -> dict[int, int]:
        """Size of a batch -> how many batches of that size ran forward, of one op or of all."""
        events = self.events
        wanted = events["phase"] == FORWARD_BATCH
        if op is not None:
            names = _labels()
            if op not in names:
                raise ValueError(f"[profile] there is no op {op!r}")
            wanted &= np.isin(events["op"], names[op])
        sizes, counts = np.unique(events["members"][wanted], return_counts=True)
        return {int(size): int(count) for size, count in zip(sizes, counts, strict=True)}

    def memory(self) -> dict[str, int]:
        """Bytes in use at most by one graph: of values, of gradients (parameters and inputs are not in it)."""
        events = self.events
        peaks = {name: events["floats"][events["phase"] == PASSES[name]] for name in ("forward", "backward")}
        return {
            name: 4 * int(peaks[of].max(initial=0)) for name, of in (("values", "forward"), ("gradients", "backward"))
        }

    def to_dict(self) -> dict[str, Any]:
        """All sums as dicts and lists that json can write."""
        ops = [{**asdict(o), "mean_batch": o.mean_batch} for o in self.ops()]
        total = self.seconds
        return {"seconds": total, "phases": self._phases(total), "memory": self.memory(), "ops": ops}

    # ---- as text and as a trace --------------------------------------------------------------------------------------

    def table(self, limit: int = 20) -> str:
        """The sums as text: a line of phases, then the ops that took the longest."""
        memory = self.memory()
        lines = [self._summary(),
                 f"values {amounts.size(memory['values'])}, gradients {amounts.size(memory['gradients'])} at most "
                 "in one graph", "",
                 f"{'op':<26}{'batches':>9}{'nodes':>10}{'mean':>8}{'largest':>9}"
                 f"{'forward':>11}{'backward':>11}{'share':>7}{'results':>10}"]  # fmt: skip
        ops = self.ops()
        of_ops = sum(o.seconds for o in ops) or 1e-12
        for o in ops[:limit]:
            lines.append(
                f"{o.op:<26}{o.batches:>9,}{o.nodes:>10,}{o.mean_batch:>8.1f}{o.largest:>9,}"
                f"{amounts.seconds(o.forward):>11}{amounts.seconds(o.backward):>11}{o.seconds / of_ops:>7.1%}"
                f"{amounts.size(o.bytes):>10}"
            )
        if len(ops) > limit:
            lines.append(f"... and {len(ops) - limit} more")
        if self.dropped:
            lines.append(f"{self.dropped:,} events found no room in the log: profile a shorter block")
        return "\n".join(lines)

    __str__ = table

    def _repr_html_(self) -> str:
        rows = [
            (o.op, o.batches, o.nodes, round(o.mean_batch, 1), amounts.seconds(o.forward), amounts.seconds(o.backward))
            for o in self.ops()
        ]
        return notebook.table(("op", "batches", "nodes", "mean batch", "forward", "backward"), rows, self._summary())

    def chrome_trace(self) -> dict[str, Any]:
        """The events in the Trace Event Format: chrome://tracing, Perfetto and other viewers read it."""
        events, labels = self.events, _core.op_labels()
        names = [labels[name] for name in _core.all_op_names()]
        graphs = {g: k for k, g in enumerate(dict.fromkeys(events["graph"].tolist()))}
        out: list[dict[str, Any]] = []
        threads: dict[int, str] = {}
        passes = {number: name for name, number in PASSES.items()}
        for start, seconds, graph, floats, phase, op, members, lane in events.tolist():
            thread = 100 * graphs[graph] + lane
            threads[thread] = f"graph {graphs[graph]}, lane {lane}" if graph else "updates"
            one = {"ph": "X", "pid": 1, "tid": thread, "ts": (start - self._start) * 1e6, "dur": seconds * 1e6}
            if phase < FORWARD_BATCH:
                out.append({**one, "name": passes[phase], "cat": "pass", "args": {"bytes": 4 * floats}})
            else:
                about = {"nodes": members, "bytes": 4 * floats}
                out.append({**one, "name": names[op] + BATCH_NAMES[phase], "cat": "batch", "args": about})
        out += [{"ph": "M", "pid": 1, "tid": t, "name": "thread_name", "args": {"name": n}} for t, n in threads.items()]
        return {"traceEvents": out, "displayTimeUnit": "ms"}

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write chrome_trace() as JSON."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.chrome_trace(), file)


def profile() -> Profile:
    """Measure a block: ``with dy.profile() as p: ...``, then ``print(p.table())`` or ``p.save_trace("trace.json")``.

    Counts everything that runs in the block, in all graphs and threads. Per op: batches, their sizes, seconds forward and
    backward, bytes. Per phase (rewrite, plan, forward, backward, update, the rest in Python): seconds. Each batch leaves an
    event in memory, so measure some training steps and not a whole training.

    What the engine makes of several nodes has a row of its own: "(formulas)" are elementwise ops that run as one, "(affine maps)"
    maps of the same inputs, and "pickneglogsoftmax(scores)" losses together with the products that make their scores.
    explain_rewrites() says what was made into what, and explain_batches() shows the formulas.
    """
    return Profile()


def _labels(numbers: Iterable[int] | None = None) -> dict[str, list[int]]:
    """Numbers of ops (all of them by default) by what a table calls them."""
    names, labels = _core.all_op_names(), _core.op_labels()
    out: dict[str, list[int]] = {}
    for number in range(len(names)) if numbers is None else numbers:
        out.setdefault(labels[names[number]], []).append(number)
    return out
