#!/usr/bin/env python
"""A training loop with one thread and with several, in turns, in one process.

    OPENBLAS_NUM_THREADS=1 python benchmarks/two_threads.py
    OPENBLAS_NUM_THREADS=1 python benchmarks/two_threads.py --tasks tagger,seq2seq --chunks 40 --jsonl threads.jsonl

A chunk is some mini-batches (64 sentences; seq2seq 32), about a second of training with one thread: a graph is built in Python,
run, and its weights are updated by Adam. The speed-up is the median over neighbouring chunks of one thread and of several, since
the speed of a shared machine changes while one looks; quartiles tell how much it did. CPU time is that of all threads together,
as a multiple of what one thread takes. Steps overlap as in any long training: the loop does not wait at the end of a chunk.
run.py --threads 1,2 measures short rounds, each of which waits for its last update.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from side_by_side import add_line, machine, median, table
from tasks.common import initial_weights
from tasks.registry import TASKS

MINIBATCHES = 8  # of data, over and over
WARM = 2  # steps after the number of threads has changed


def training(dy: ModuleType, task: ModuleType, idiomatic: bool, seed: int) -> Callable[[int], None]:
    """A function that trains for a number of mini-batches."""
    sizes = task.SIZES["base"]
    batch = sizes.get("batch", 64)
    data = task.data(np.random.RandomState(seed), MINIBATCHES * batch, sizes)
    program = (task.Idiomatic if idiomatic else task.Program)(dy, sizes, initial_weights(task.shapes(sizes), seed))
    trainer = dy.AdamTrainer(program.model)
    trainer.set_clip_threshold(0)
    done = 0

    def train(minibatches: int) -> None:
        nonlocal done
        for _ in range(minibatches):
            at = done % MINIBATCHES * batch
            done += 1
            dy.renew_cg()
            loss = program.batch_loss(data[at : at + batch])
            loss.value()
            loss.backward()
            trainer.update()

    return train


def measure(dy: ModuleType, train: Callable[[int], None], threads: int, chunks: int, steps: int) -> dict[str, Any]:
    """Milliseconds of a mini-batch, and ratios of neighbouring chunks."""

    def chunk(n: int) -> tuple[float, float]:
        dy.configure(threads=n)
        train(WARM)
        wall, cpu = time.perf_counter(), time.process_time()
        train(steps)
        return (time.perf_counter() - wall) / steps * 1e3, (time.process_time() - cpu) / steps * 1e3

    if not steps:
        steps = MINIBATCHES
        chunk(1)
        steps = max(2, round(1000 / chunk(1)[0] / MINIBATCHES)) * MINIBATCHES
    one, several = [], []
    for _ in range(chunks):
        one.append(chunk(1))
        several.append(chunk(threads))
    pairs = [(k, k) for k in range(chunks)] + [(k + 1, k) for k in range(chunks - 1)]
    walls = [one[k][0] / several[n][0] for k, n in pairs]
    quartiles = np.percentile(walls, [25, 75])
    return {
        "steps": steps,
        "one": median([wall for wall, _ in one]),
        "several": median([wall for wall, _ in several]),
        "speed-up": median(walls),
        "quartiles": [float(q) for q in quartiles],
        "cpu": median([b[1] / a[1] for a, b in zip(one, several, strict=True)]),
    }


def row(name: str, m: dict[str, Any]) -> list[str]:
    """A line of the table: milliseconds with one thread and several, the speed-up with its quartiles, CPU time."""
    low, high = m["quartiles"]
    walls = [f"{m['one']:.2f}", f"{m['several']:.2f}"]
    return [f"`{name}`", *walls, f"{m['speed-up']:.2f}", f"{low:.2f} to {high:.2f}", f"{m['cpu']:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--idiomatic", action="store_true", help="the shorter programs, where a task has one")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--chunks", type=int, default=16, help="of each number of threads")
    parser.add_argument("--steps", type=int, default=0, help="mini-batches of a chunk (about a second's)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jsonl", help="a line for each task is added to this file")
    args = parser.parse_args()
    if args.chunks < 1 or args.threads < 2 or args.steps < 0:
        parser.error("one chunk and two threads at least")
    names = args.tasks.split(",")
    if unknown := [name for name in names if name not in TASKS]:
        parser.error(f"unknown tasks: {', '.join(unknown)}; there are {', '.join(TASKS)}")

    import dynet_lite as dy

    rows = []
    for name in names:
        idiomatic = args.idiomatic and hasattr(TASKS[name], "Idiomatic")
        m = measure(dy, training(dy, TASKS[name], idiomatic, args.seed), args.threads, args.chunks, args.steps)
        rows.append(row(name, m))
        print(" ".join(rows[-1]), file=sys.stderr)
        if args.jsonl:
            add_line(
                args.jsonl, {"task": name, "threads": args.threads, "idiomatic": idiomatic, **m, "machine": machine()}
            )
    head = ["task", "1 thread, ms a mini-batch", f"{args.threads} threads", "speed-up", "quartiles", "CPU time, ratio"]
    print(table(head, rows))


if __name__ == "__main__":
    main()
