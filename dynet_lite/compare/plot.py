"""A picture of a comparison for papers and slides, where matplotlib is installed (the extra `plot`)."""

from __future__ import annotations

import importlib
from pathlib import Path

from .chart import short, ticks
from .measure import Comparison
from .report import bounds, curves


def draw(c: Comparison, path: Path) -> bool:
    """Speed and batches over the batch size; False, and nothing written, without matplotlib."""
    try:
        figures = importlib.import_module("matplotlib.figure")
    except ImportError:
        return False
    figure = figures.Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, found in curves(c).items():
        sizes = [m.way.batch for m in found]
        left.plot(sizes, [m.speed for m in found], marker="o", label=name)
        right.plot(sizes, [m.batches / m.examples for m in found], marker="o", label=name)
    if fewest := bounds(c):
        right.plot(*zip(*fewest, strict=True), "k:", label="fewest possible")
    sizes = sorted({m.way.batch for m in c.measurements})
    for axes, up in ((left, f"{c.unit} per second"), (right, "batches per example")):
        axes.set(xscale="log", yscale="log", xlabel="examples per mini-batch", ylabel=up)
        axes.set_xticks(sizes, labels=[str(n) for n in sizes], minor=False)
        marks = ticks(*axes.get_ylim())
        axes.set_yticks(marks, labels=[short(v) for v in marks], minor=False)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend()
    figure.suptitle(c.recipe)
    figure.savefig(path, dpi=150)
    return True
