"""From the answers of the engines to figures, Markdown tables and lines of JSON. Reads nothing, runs nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import targets
from measure import COUNTED, PHASES
from side_by_side import Engine, median, table

Answers = dict[str, list[dict[str, Any]]]  # by engine, round by round; the first is the common round


def loss_difference(answers: Answers) -> dict[str, float]:
    """Of each engine that computes losses: the largest relative difference of a loss from the first one's."""
    computes = [name for name in answers if Engine.parse(name).mode not in ("null", "numpy")]
    losses = {name: answers[name][0]["losses"] for name in computes}
    reference = next(iter(losses.values()), [])
    return {name: largest_difference(mine, reference) for name, mine in losses.items()}


def largest_difference(mine: Sequence[float], reference: Sequence[float]) -> float:
    if len(mine) != len(reference) or not all(map(math.isfinite, [*mine, *reference])):
        return math.inf
    return max((abs(a - b) / max(abs(b), 1e-9) for a, b in zip(mine, reference, strict=True)), default=0.0)


def figures(name: str, rounds: Sequence[dict[str, Any]], sentences: int) -> dict[str, Any]:
    """What one engine did in its timed rounds."""
    took = {key: median([r[key] for r in rounds]) for key in ("wall", "cpu", *PHASES)}
    row = {
        "engine": name,
        "version": Engine.parse(name).version(),
        "sentences_per_cpu_second": sentences / took["cpu"],
        "sentences_per_wall_second": sentences / took["wall"],
        "ms_per_sentence": {phase: 1000 * took[phase] / sentences for phase in PHASES},
        "peak_mb": max(r["peak_mb"] for r in rounds),
        "rounds_cpu": [round(r["cpu"], 4) for r in rounds],
        "rounds_wall": [round(r["wall"], 4) for r in rounds],
    }
    return row | {key: rounds[-1][key] for key in COUNTED if key in rounds[-1]}


def ratio(answers: Answers, above: str, below: str, key: str = "cpu") -> float:
    """Times as fast as: the median over the timed rounds of the ratio within a round."""
    return median([b[key] / a[key] for a, b in zip(answers[above][1:], answers[below][1:], strict=True)])


def speed_table(rows: Sequence[dict[str, Any]], answers: Answers) -> str:
    """One row per engine."""
    reference = targets.REFERENCE if targets.REFERENCE in answers else rows[0]["engine"]
    head = ["engine", "sentences / CPU s", "/ wall s", f"x {reference}", *(f"{p}, ms" for p in PHASES)]
    head += ["mean batch", "peak MB"]
    lines = []
    for row in rows:
        batch = f"{row['nodes'] / row['batches']:.1f}" if row.get("batches") else "-"
        lines.append(
            [
                row["engine"],
                speed(row["sentences_per_cpu_second"]),
                speed(row["sentences_per_wall_second"]),
                f"{ratio(answers, row['engine'], reference):.2f}",
                *(f"{row['ms_per_sentence'][phase]:.3f}" for phase in PHASES),
                batch,
                f"{row['peak_mb']:,.0f}",
            ]
        )
    return table(head, lines)


def speed(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def op_lines(profile: dict[str, dict[str, float]], sentences: int, count: int = 12) -> list[str]:
    """Time by op, the most expensive first: ms per sentence forward and backward, share of all."""
    total = sum(sum(ways.values()) for ways in profile.values()) or 1.0
    most = sorted(profile.items(), key=lambda item: -sum(item[1].values()))[:count]
    return [
        f"{op} {1000 * ways['forward'] / sentences:.4f} + {1000 * ways['backward'] / sentences:.4f} "
        f"({100 * sum(ways.values()) / total:.0f} %)"
        for op, ways in most
    ]


Verdict = tuple[str, float, float, bool]  # what, measured, wanted, reached


def verdicts(task: str, setup: dict[str, Any], answers: Answers, rows: Sequence[dict[str, Any]]) -> list[Verdict]:
    """The targets that can be told from these answers."""
    usual = setup["size"] == "base" and setup["usual_batch"] and not setup["inference"]
    found: list[Verdict] = []

    def judge(what: str, above: str, below: str, wanted: float, key: str = "cpu") -> None:
        if above in answers and below in answers:
            measured = ratio(answers, above, below, key)
            found.append((what, measured, wanted, measured >= wanted))

    ours, idiomatic = "dynet_lite:on", "dynet_lite:on+idiomatic"
    if usual and task in targets.MUST:
        judge("unchanged / DyNet", ours, targets.REFERENCE, targets.MUST[task])
        judge("idiomatic / DyNet", idiomatic, targets.REFERENCE, targets.LEAD[task])
    for torch in ("torch:padded", "torch:sorted", "torch:compiled"):
        judge(f"unchanged / {torch}", ours, torch, targets.TORCH)
    judge("two threads / one, wall", "dynet_lite:on:2", ours, targets.TWO_THREADS, "wall")
    judge("batching on / off", ours, "dynet_lite:off", targets.ON_OVER_OFF)
    if setup["sizes"]["batch"] == 1:
        judge("batch 1: on / DyNet without autobatching", ours, "dynet:0", targets.BATCH_ONE)
        judge("batch 1: off / DyNet without autobatching", "dynet_lite:off", "dynet:0", targets.BATCH_ONE)
    peak = {row["engine"]: row["peak_mb"] for row in rows}
    if ours in peak and targets.REFERENCE in peak:
        share = peak[ours] / peak[targets.REFERENCE]
        found.append(("peak memory / DyNet (at most)", share, targets.MEMORY, share <= targets.MEMORY))
    return found


def target_table(judged: Sequence[tuple[str, Verdict]]) -> str:
    """All targets of all runs: the label of the run, what, measured, wanted."""
    lines = [
        [label, what, f"{measured:.2f}", f"{wanted:.2f}", "yes" if reached else "no"]
        for label, (what, measured, wanted, reached) in judged
    ]
    return table(["run", "target", "measured", "wanted", "reached"], lines)
