#!/usr/bin/env python
"""Every call that DyNet has, too, against DyNet's: what dynet_lite makes dearer stands first.

    python benchmarks/calls.py
    python benchmarks/calls.py --only "select|fold_rows" --rounds 9 --kinds call

The rows are in call_rows.py. Of a "call" the call alone is timed, 100 times in a graph, with their share of its renewal;
of a "step" the call, the sum of its result, its value and the backward pass; "other" calls make no nodes, or whole programs.
Vectors are small (20 numbers) and large (400), without and with mini-batches of 32. Engines take turns row by row
(side_by_side.py); figures are the medians of the rounds, in microseconds.
"""

from __future__ import annotations

import argparse
import gc
import re
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from call_rows import BATCH, GRAPH_CALLS, OTHER_CALLS, STATE_CALLS, Given, rows
from side_by_side import Engine, Measure, Question, machine, median, serve, start_workers, table, take_turns

CALLS = 100  # in one graph
SIZES = {"small": 20, "large": 400}
SETUP = {"memory": 2000}
ENOUGH = 0.005  # seconds of a row in a round


def prepare(dy: ModuleType, engine: Engine, setup: Question) -> Measure:
    """The worker's part: see side_by_side.serve()."""
    given: dict[tuple[str, int, int], Given] = {}
    measures = {"call": of_call, "step": of_step, "other": of_other}

    def measure(question: Question) -> dict[str, Any]:
        key = question["kind"], question["n"], question["batch"]
        if key not in given:
            given.clear()
            given[key] = Given(dy, *key[1:])
        gc.collect()
        try:
            return {"us": measures[question["kind"]](dy, given[key], question["row"])}
        except Exception as error:  # not in this engine, or not for this size
            return {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''}"}

    return measure


def function(dy: ModuleType, arguments: dict[str, Any], text: str) -> Callable[[], Any]:
    names = {**vars(dy), **arguments}
    exec(text, names)
    made: Callable[[], Any] = names["made"]
    return made


def of_call(dy: ModuleType, given: Given, row: str) -> float:
    took: list[float] = []
    while not took or sum(took) < ENOUGH and len(took) < 100 or len(took) < 3:
        loop = function(dy, given.arguments(row, True), f"def made():\n  for _ in range({CALLS}): {row}")
        start = time.thread_time()
        loop()
        dy.renew_cg()
        took.append(time.thread_time() - start)
    return median(took) / CALLS * 1e6


def of_step(dy: ModuleType, given: Given, row: str) -> float:
    took: list[float] = []
    while not took or sum(took) < ENOUGH and len(took) < 30 or len(took) < 3:
        of = function(dy, given.arguments(row), f"def made(): return {row}")
        start = time.thread_time()
        made = of()
        made = made[-1] if isinstance(made, (list, tuple)) else made
        loss = dy.sum_batches(dy.sum_elems(made))
        loss.value()
        loss.backward()
        took.append(time.thread_time() - start)
    return median(took) * 1e6


def of_other(dy: ModuleType, given: Given, row: str) -> float:
    took: list[float] = []
    arguments = given.arguments(row)
    loop = function(dy, arguments, f"def made():\n  for _ in range({CALLS}): {row}")
    while not took or sum(took) < ENOUGH and len(took) < 100 or len(took) < 3:
        start = time.thread_time()
        loop()
        took.append(time.thread_time() - start)
    return median(took) / CALLS * 1e6


def questions(kinds: list[str], only: str, sizes: list[str], batches: list[int]) -> list[Question]:
    of = {"call": GRAPH_CALLS + STATE_CALLS, "step": GRAPH_CALLS, "other": OTHER_CALLS}
    return [
        {"kind": kind, "row": row, "size": size, "n": SIZES[size], "batch": batch}
        for kind in kinds
        for size in sizes
        for batch in (batches if kind != "other" else [1])
        for row in rows(of[kind])
        if re.search(only, row)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--engines", default="dynet:0,dynet_lite:on")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="a regular expression for rows")
    parser.add_argument("--kinds", default="call,step,other")
    parser.add_argument("--sizes", default="small,large")
    parser.add_argument("--batches", default=f"1,{BATCH}")
    parser.add_argument("--least", type=float, default=0.0, help="ratios below this are not shown")
    args = parser.parse_args()
    if args.worker:
        serve(args.worker, prepare)
        return 0
    batches = [int(b) for b in args.batches.split(",")]
    workers = start_workers(args.engines.split(","), __file__, SETUP)
    if len(workers) < 2:
        print("two engines are needed", file=sys.stderr)
        return 1
    other, ours = (str(w.engine) for w in workers[:2])
    lines = []
    for question in questions(args.kinds.split(","), args.only, args.sizes.split(","), batches):
        answers: dict[str, list[dict[str, Any]]] = {}
        name = [question["row"], question["kind"], question["size"], str(question["batch"])]
        try:
            for number in range(args.rounds):
                take_turns(workers, question, answers, number)
            errors = [a[0]["error"] for a in answers.values() if "error" in a[0]]
        except RuntimeError as error:  # some calls are too much for an engine: its process has died
            errors = [str(error).splitlines()[0]]
            for worker in workers:
                worker.close()
            workers = start_workers(args.engines.split(","), __file__, SETUP)
        if errors:
            print(f"left out: {' '.join(name)}: {errors}", file=sys.stderr)
            continue
        us = {e: median([a["us"] for a in answers[e]]) for e in (other, ours)}
        lines.append((us[ours] / us[other], [*name, f"{us[other]:.2f}", f"{us[ours]:.2f}"]))
    for worker in workers:
        worker.close()
    where = machine()
    print(f"us, {args.rounds} rounds in turns; {where['cpu']}, load {where['load']}\n")
    shown = [[*cells, f"{ratio:.2f}"] for ratio, cells in sorted(lines, reverse=True) if ratio >= args.least]
    print(table(["call", "kind", "size", "batch", other, ours, "ratio"], shown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
