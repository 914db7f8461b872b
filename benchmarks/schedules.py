#!/usr/bin/env python
"""Batches of the strategies on structures beyond chains and trees, against the lower bound and the best that is known.

    python benchmarks/schedules.py
    python benchmarks/schedules.py --structures lattices,"module networks" --width 100

The structures are those of schedule_zoo.py, with 32 examples a mini-batch; batches are summed over the mini-batches. The
bound is the longest chain of each type, summed up, which need not be reached. Best known is the fewest of what the
strategies and an offline search (schedule_search.py) find; the search takes most of the time, --width 0 leaves it out.
Planning is microseconds for a node that runs, a step is building, forward and backward; both in turns, medians.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from random import Random

from schedule_search import best_known, problem_of
from schedule_zoo import STRUCTURES, Parts
from side_by_side import machine, table

import dynet_lite as dy
from dynet_lite import structure

STRATEGIES = ("depth", "agenda", "greedy", "auto")
HEAD = ["structure", "nodes", "bound", *STRATEGIES, "best known", "auto : best",
        "plan, us: greedy", "auto", "step, ms: greedy", "auto"]  # fmt: skip


class MiniBatch:
    """One structure, the examples of one seed; each strategy's figures."""

    def __init__(self, name: str, seed: int, examples: int, size: int) -> None:
        self.name, self.seed, self.examples = name, seed, examples
        self.parts = Parts(size)
        self.nodes = self.bound = 0
        self.batches: dict[str, int] = {}
        self.plan: dict[str, list[float]] = {strategy: [] for strategy in STRATEGIES}
        self.step: dict[str, list[float]] = {strategy: [] for strategy in STRATEGIES}

    def run(self, strategy: str) -> None:
        rng = Random(self.seed)
        with dy.configure(strategy=strategy):
            dy.renew_cg()
            start = time.process_time()
            make = STRUCTURES[self.name]
            loss = dy.esum([loss for _ in range(self.examples) for loss in make(self.parts, rng)])
            loss.value()
            loss.backward()
            self.step[strategy].append(1e3 * (time.process_time() - start))
            stats = dy.stats()
        self.nodes, self.bound = stats["nodes"], stats["lower_bound"]
        self.batches[strategy] = stats["batches"]
        self.plan[strategy].append(1e6 * stats["plan_time"] / stats["nodes"])

    def best(self, width: int) -> int:
        """Of the graph that was run last."""
        found = best_known(problem_of(structure.read()), width) if width else self.bound + self.nodes
        return min(found, *self.batches.values())


def row_of(name: str, args: argparse.Namespace) -> tuple[list[str], float]:
    many = [MiniBatch(name, seed, args.examples, args.size) for seed in range(args.minibatches)]
    best = 0
    for one in many:
        for _ in range(args.rounds):
            for strategy in STRATEGIES:
                one.run(strategy)
        best += one.best(args.width)
    batches = {strategy: sum(one.batches[strategy] for one in many) for strategy in STRATEGIES}
    times = [
        f"{statistics.mean(statistics.median(getattr(one, what)[strategy]) for one in many):.2f}"
        for what in ("plan", "step")
        for strategy in ("greedy", "auto")
    ]
    counts = [sum(one.nodes for one in many), sum(one.bound for one in many), *batches.values(), best]
    return [name, *map(str, counts), f"{batches['auto'] / best:.2f}", *times], batches["auto"] / best


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--structures", default=",".join(STRUCTURES), help=f"of {', '.join(STRUCTURES)}")
    parser.add_argument("--examples", type=int, default=32, help="of a mini-batch")
    parser.add_argument("--size", type=int, default=64, help="of the vectors")
    parser.add_argument("--minibatches", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--width", type=int, default=20, help="of the search; 0: none")
    args = parser.parse_args()
    where = machine()
    print(f"{args.minibatches} mini-batches of {args.examples} examples; {where['cpu']}, load {where['load']}\n")
    found = [row_of(name, args) for name in args.structures.split(",")]
    print(table(HEAD, [row for row, _ in found]))
    print(f"\nauto : best known, greatest {max(ratio for _, ratio in found):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
