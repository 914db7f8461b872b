"""Draws the speeds of a comparison: one group of bars per run, one bar per engine. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

REFERENCE = "dynet:1"


def draw(lines: Sequence[dict[str, Any]], path: str) -> None:
    """lines: what run.py writes as JSON. Speeds are shown as times the reference, or the first engine, of their run."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["engine"] for line in lines for row in line["rows"]))
    figure = Figure(figsize=(2 + 1.8 * len(lines), 5), layout="constrained")
    axes = figure.subplots()
    width = 0.85 / len(names)
    for i, name in enumerate(names):
        at, heights = [], []
        for x, line in enumerate(lines):
            speeds = {row["engine"]: row["sentences_per_cpu_second"] for row in line["rows"]}
            if name in speeds:
                at.append(x + (i - (len(names) - 1) / 2) * width)
                heights.append(speeds[name] / speeds.get(REFERENCE, line["rows"][0]["sentences_per_cpu_second"]))
        axes.bar(at, heights, width, label=name)
    axes.axhline(1, color="black", linewidth=0.7)
    axes.set_xticks(range(len(lines)), [label_of(line) for line in lines])
    axes.set_ylabel(f"sentences per CPU second, times {REFERENCE}")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)


def label_of(line: dict[str, Any]) -> str:
    kind = "\ninference" if line["inference"] else ""
    return f"{line['task']}\n{line['size']}, batch {line['sizes']['batch']}{kind}"
