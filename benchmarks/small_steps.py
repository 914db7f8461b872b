#!/usr/bin/env python
"""Small steps, one example an update: what a step costs besides its arithmetic, against DyNet and PyTorch.

    python benchmarks/small_steps.py
    python benchmarks/small_steps.py --tasks xor,kept --rounds 9 --steps 2000

Each engine has a process of its own and they take turns (side_by_side.py). DyNet runs without autobatching, PyTorch eager
(small_tasks_torch.py); what is not installed is left out. Rows of dynet_lite: the plain program, and the same function through
dy.compile where the task is a function of data. Figures are the CPU time of one step without that of the clock: the median
over rounds of their medians, and of their 99th percentiles, and how many times as fast as DyNet and as PyTorch. The mean
losses of the first round tell whether all do the same.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from side_by_side import Engine, Measure, Question, machine, run_rounds, serve, table
from small_tasks import TASKS, Task

Steps = dict[str, Callable[[int], float]]


def prepare(engine: ModuleType, which: Engine, setup: Question) -> Measure:
    """The worker's part: see side_by_side.serve()."""
    texts = texts_for(which)
    tasks: dict[str, tuple[Steps, int]] = {
        name: (texts[name](engine).ways(), TASKS[name].steps) for name in setup["tasks"]
    }

    def measure(question: Question) -> dict[str, Any]:
        return {
            f"{name} {way}": timed(step, setup["steps"] or count)
            for name, (steps, count) in tasks.items()
            for way, step in steps.items()
        }

    return measure


def texts_for(which: Engine) -> dict[str, type[Task]]:
    """The tasks in the words of an engine."""
    if which.module != "torch":
        return TASKS
    import small_tasks_torch

    return dict(small_tasks_torch.TASKS)


def timed(step: Callable[[int], float], count: int) -> dict[str, float]:
    """Microseconds of one step; the mean loss tells whether engines do the same."""
    clock, took, losses = time.thread_time_ns, [], 0.0
    gc.collect()
    for k in range(count):
        start = clock()
        loss = step(k)
        took.append(clock() - start)
        losses += loss
    took.sort()
    own = of_clock()
    return {
        "median": (took[count // 2] - own) / 1e3,
        "p99": (took[count * 99 // 100] - own) / 1e3,
        "loss": losses / count,
    }


def of_clock() -> float:
    """Nanoseconds between two looks at it."""
    clock = time.thread_time_ns
    return statistics.median(-clock() + clock() for _ in range(1000))


def rows_of(answers: dict[str, list[dict[str, Any]]], tasks: list[str]) -> list[list[str]]:
    rows = []
    for name in tasks:
        found: dict[str, dict[str, float]] = {}
        for engine, rounds in answers.items():
            for way in ("plain", "compiled"):
                key = f"{name} {way}"
                if key in rounds[0]:
                    title = engine if way == "plain" else f"{engine} compiled"
                    kept = [r[key] for r in rounds[1:]]
                    found[title] = {what: statistics.median(r[what] for r in kept) for what in ("median", "p99")}
                    found[title]["loss"] = rounds[0][key]["loss"]  # of the first round: all began with the same weights
        for title, figures in found.items():
            row = [name, title, f"{figures['median']:.2f}", f"{figures['p99']:.2f}"]
            for other in ("dynet:0", "torch:one"):
                row.append(f"{found[other]['median'] / figures['median']:.2f}" if other in found else "")
            rows.append([*row, f"{figures['loss']:.4f}"])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--tasks", default=",".join(TASKS), help=f"of {', '.join(TASKS)}")
    parser.add_argument("--engines", default="dynet:0,dynet_lite:on,torch:one")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=0, help="of a round; default: each task's own number")
    args = parser.parse_args()
    if args.worker:
        serve(args.worker, prepare)
        return 0
    tasks = args.tasks.split(",")
    where = machine()
    print(f"{args.rounds} rounds in turns; {where['cpu']}, load {where['load']}")
    setup = {"tasks": tasks, "steps": args.steps, "memory": 512}
    answers = run_rounds(args.engines.split(","), __file__, setup, args.rounds)
    head = ["task", "engine", "median, us", "p99, us", "times DyNet", "times PyTorch", "loss"]
    print(table(head, rows_of(answers, tasks)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
