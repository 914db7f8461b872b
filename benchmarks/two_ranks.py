#!/usr/bin/env python
"""A training loop on several ranks, on one rank, and on one rank with two threads, in turns.

    OPENBLAS_NUM_THREADS=1 mpiexec -n 2 python benchmarks/two_ranks.py --jsonl ranks.jsonl
    OPENBLAS_NUM_THREADS=1 mpiexec -n 4 python benchmarks/two_ranks.py --jsonl ranks.jsonl
    python benchmarks/ranks_model.py ranks.jsonl      # what that means for up to 1,024 ranks

A chunk is some mini-batches (64 sentences; seq2seq 32): graphs are built in Python, run, and the weights updated by
Adam. The ranks share each mini-batch by length; "dealt by time": a rank that was slower in the last steps gets less of
it. While one rank works alone the others sleep. Speed-ups are medians over neighbouring chunks, since the speed of a
shared machine changes while one looks; quartiles tell how much it did, and the load of the machine is printed. "Without
waiting" is the CPU time of a step on one rank over that of each of several, but for what it spends in waiting for the
others: the speed-up that is left where nobody else uses the cores and messages take no time. "Apart": all ranks train
at the same time, each alone with whole minibatches, and nothing is sent; what they do together over what one does is
what the machine gives at most. "Share alone": one rank trains on its share of each mini-batch while the others sleep;
what a step gains is what smaller batches leave. Latency and bandwidth of sums over the ranks are measured, too.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from side_by_side import add_line, machine, median, table
from tasks.common import initial_weights
from tasks.registry import TASKS

MINIBATCHES = 8  # of data, over and over
WARM = 2  # steps before the clock runs


class Loop:
    """A model of a task that trains on this rank alone, or together with the others. sharer: a world whose share of a
    mini-batch is all that is trained on, alone."""

    def __init__(self, dy: ModuleType, task: ModuleType, world: Any, seed: int, sharer: Any = None) -> None:
        sizes = task.SIZES["base"]
        self.dy, self.world, self.task, self.sharer = dy, world, task, sharer or world
        self.batch = sizes.get("batch", 64)
        self.data = task.data(np.random.RandomState(seed), MINIBATCHES * self.batch, sizes)
        self.program = task.Program(dy, sizes, initial_weights(task.shapes(sizes), seed))
        inner = dy.AdamTrainer(self.program.model)
        inner.set_clip_threshold(0)
        self.trainer = dy.distributed.Trainer(inner) if world else inner
        self.done = 0
        self.by_time = False  # mini-batches are dealt by measured time
        self.sent = 0.0, 0.0  # messages and bytes of a step
        self.updating = 0.0  # seconds in updates

    def train(self, minibatches: int) -> None:
        for _ in range(minibatches):
            at = self.done % MINIBATCHES * self.batch
            self.done += 1
            batch = self.data[at : at + self.batch]
            self.dy.renew_cg()
            if self.sharer:
                batch = self.sharer.share(batch, self.task.length, measured=self.by_time)
            if batch:
                loss = self.program.batch_loss(batch)
                loss.value()
                (self.trainer if self.world else loss).backward(*((loss,) if self.world else ()))
            start = time.perf_counter()
            self.trainer.update()
            self.updating += time.perf_counter() - start
        self.dy._core.settle_steps()  # the last update may be put off


def count_waiting(world: Any) -> Callable[[], float]:
    """Makes the world count the CPU seconds in which it waits for others; what gives them."""
    wait, spent = world.wait, 0.0

    def counted(request: Any) -> None:
        nonlocal spent
        start = time.process_time()
        wait(request)
        spent += time.process_time() - start

    world.wait = counted
    return lambda: spent


def timed(
    world: Any, loop: Loop, steps: int, mine: bool, waiting: Callable[[], float]
) -> tuple[float, float, float, float]:
    """Milliseconds of a step: of all, in updates, CPU time of this rank, that without waiting. All ranks come and go together."""
    world.barrier()
    if mine:
        loop.train(WARM)
    if loop.world:
        world.barrier()
    before, waited, cpu, wall = loop.updating, waiting(), time.process_time(), time.perf_counter()
    sent = world.messages, world.bytes_sent
    if mine:
        loop.train(steps)
    if loop.world:
        loop.sent = (world.messages - sent[0]) / steps, (world.bytes_sent - sent[1]) / steps
    wall, cpu, waited = time.perf_counter() - wall, time.process_time() - cpu, waiting() - waited
    world.barrier()
    return tuple(x / steps * 1e3 for x in (wall, loop.updating - before, cpu, cpu - waited))  # type: ignore[return-value]


def measure(dy: ModuleType, task: ModuleType, world: Any, chunks: int, steps: int, seed: int) -> dict[str, Any]:
    alone, together = Loop(dy, task, None, seed), Loop(dy, task, world, seed)
    share = Loop(dy, task, None, seed, world)
    first, waiting = world.rank == 0, count_waiting(world)
    if not steps:
        one = timed(world, alone, MINIBATCHES, first, waiting)[0]
        steps = int(world.sum([max(MINIBATCHES, round(700 / one)) if first else 0])[0])

    def dealt(by_time: bool) -> tuple[float, float, float, float]:
        together.by_time = by_time
        return timed(world, together, steps, True, waiting)

    kinds: dict[str, Callable[[], tuple[float, float, float, float]]] = {
        "one": lambda: timed(world, alone, steps, first, waiting),
        "ranks": lambda: dealt(False),
        "by time": lambda: dealt(True),
        "threads": lambda: timed(world, alone, steps, first, waiting),
        "apart": lambda: timed(world, alone, steps, True, waiting),
        "share": lambda: timed(world, share, steps, first, waiting),
    }
    found: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in kinds}
    for _ in range(chunks):
        for name, run in kinds.items():
            with dy.configure(threads=2 if name == "threads" else 1):
                found[name].append(run())
    walls = {name: [x[0] for x in rows] for name, rows in found.items()}
    out = {"steps": steps, "size": world.size, **{name: median(x) for name, x in walls.items()}}
    for name in ("ranks", "by time", "threads"):
        ratios = [a / b for a, b in zip(walls["one"], walls[name], strict=True)]
        ratios += [a / b for a, b in zip(walls["one"][1:], walls[name], strict=False)]
        out["x " + name], out["quartiles " + name] = median(ratios), [float(q) for q in np.percentile(ratios, [25, 75])]
    several = world.sum([x[0] for x in found["apart"]]) / world.size  # mean of the ranks
    out["x apart"] = median([world.size * a / b for a, b in zip(walls["one"], several, strict=True)])
    out["x share"] = median([a / b for a, b in zip(walls["one"], walls["share"], strict=True)])
    both = [a / b for a, b in zip(walls["threads"], walls["ranks"], strict=True)]
    out["ranks to threads"] = median(both)
    work = world.sum([row[3] for row in found["ranks"]]) / world.size
    out["without waiting"] = median([a[2] / b for a, b in zip(found["one"], work, strict=True)])
    out["least"] = {"one": min(walls["one"]), "update": min(x[1] for x in found["one"])}
    out["messages"], out["bytes"] = together.sent
    weights, tables = together.trainer._members()
    out["dense"] = 4 * sum(math.prod(p.shape()) for p in weights)
    out["buckets"] = len(together.trainer._buckets)
    out["rows"] = out["bytes"] - 72 - out["dense"] - 4 * len(weights)
    out["batch"] = together.batch
    costs = [
        [task.length(x) for x in together.data[k : k + together.batch]]
        for k in range(0, len(together.data), together.batch)
    ]
    out["costs"] = costs
    return out


def network(world: Any) -> dict[str, float]:
    """Seconds of a sum of one number and of 4 MB: of a tenth of them they were less, when nobody else had the cores."""
    out = {}
    for name, count, times in (("latency", 1, 200), ("sum of 4 MB", 1 << 20, 20)):
        numbers, spent = np.zeros(count, np.float32), []
        for _ in range(times):
            start = time.perf_counter()
            world.wait(world.start_sum(numbers))
            spent.append(time.perf_counter() - start)
        out[name] = float(np.percentile(spent, 10))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="tagger,treelstm,parser,rnnlm")
    parser.add_argument("--chunks", type=int, default=12, help="of each kind")
    parser.add_argument(
        "--steps", type=int, default=0, help="mini-batches of a chunk (about 0.7 seconds of one rank's)"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jsonl", help="a line for each task is added to this file")
    args = parser.parse_args()
    names = args.tasks.split(",")
    if args.chunks < 1 or args.steps < 0:
        parser.error("one chunk at least")
    if unknown := [name for name in names if name not in TASKS]:
        parser.error(f"unknown tasks: {', '.join(unknown)}; there are {', '.join(TASKS)}")

    import dynet_lite as dy

    world = dy.distributed.init()
    if world.size == 1:
        parser.error("run it with mpiexec -n 2 python benchmarks/two_ranks.py")
    net = network(world)
    rows = []
    for name in names:
        m = measure(dy, TASKS[name], world, args.chunks, args.steps, args.seed)
        load = os.getloadavg()[0]
        low, high = m["quartiles ranks"]
        times = [f"{m[k]:.2f}" for k in ("one", "ranks", "threads")]
        rows.append([f"`{name}`", *times, f"{m['x ranks']:.2f}", f"{low:.2f} to {high:.2f}", f"{m['x by time']:.2f}", f"{m['x apart']:.2f}", f"{m['x share']:.2f}", f"{m['x threads']:.2f}",
                     f"{m['ranks to threads']:.2f}", f"{m['without waiting']:.2f}", f"{m['messages']:.0f}", f"{m['bytes'] / 1e6:.2f}", f"{load:.1f}"])  # fmt: skip
        if world.rank == 0:
            print(" ".join(rows[-1]), flush=True)
            if args.jsonl:
                add_line(args.jsonl, {"task": name, **m, **net, "machine": machine()})
    n = world.size
    head = ["task", "1 rank, ms a mini-batch", f"{n} ranks", "2 threads", f"{n} ranks, speed-up", "quartiles", "dealt by time", "apart", "share alone", "2 threads, speed-up",
            "ranks to threads", "without waiting", "messages", "MB sent", "load"]  # fmt: skip
    if world.rank == 0:
        print(
            f"\na sum of one number {net['latency'] * 1e6:.0f} us, of 4 MB {net['sum of 4 MB'] * 1e3:.2f} ms\n\n{table(head, rows)}"
        )


if __name__ == "__main__":
    main()
