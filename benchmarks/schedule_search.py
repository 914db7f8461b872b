"""Offline search for an order with few batches: what schedules.py calls the best known.

A problem is what a plan solves: nodes with a type and the earlier nodes that each reads. Components of the graph of types are
independent of one another. In one with several types a beam search keeps the states that promise most, by the batches
that the rest needs at least, and by how far behind ready nodes wait, or how many nodes have many of their type ahead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dynet_lite import structure


@dataclass
class Problem:
    types: list[int]
    reads: list[list[int]]  # by node: earlier ones


def problem_of(s: structure.Structure) -> Problem:
    """What the plans of a graph had to order: the nodes that ran."""
    nodes = sorted(i for batch in s.batches for i in batch.nodes)
    number = {node: k for k, node in enumerate(nodes)}
    types = {signature: k for k, signature in enumerate(sorted({s.nodes[i].signature for i in nodes}))}
    producers = [{s.nodes[a].producer for a in s.nodes[i].arguments} for i in nodes]
    return Problem(
        [types[s.nodes[i].signature] for i in nodes],
        [sorted(number[p] for p in those if p in number) for those in producers],
    )


def components(problem: Problem) -> list[Problem]:
    """The strongly connected components of the graph of types, each with its own nodes."""
    n = max(problem.types, default=-1) + 1
    after: list[set[int]] = [set() for _ in range(n)]
    for t, reads in zip(problem.types, problem.reads, strict=True):
        for r in reads:
            after[problem.types[r]].add(t)
    reach = [reachable(after, t) for t in range(n)]
    together = [min([t, *(u for u in reach[t] if t in reach[u])]) for t in range(n)]
    found = []
    for c in sorted(set(together)):
        nodes = [i for i, t in enumerate(problem.types) if together[t] == c]
        number = {i: k for k, i in enumerate(nodes)}
        types = {t: k for k, t in enumerate(sorted({problem.types[i] for i in nodes}))}
        reads = [[number[r] for r in problem.reads[i] if r in number] for i in nodes]
        found.append(Problem([types[problem.types[i]] for i in nodes], reads))
    return found


def reachable(after: Sequence[set[int]], start: int) -> set[int]:
    seen: set[int] = set()
    todo = [start]
    while todo:
        for t in after[todo.pop()] - seen:
            seen.add(t)
            todo.append(t)
    return seen


class Search:
    """One component. height: nodes of a node's own type on the longest path that begins with it; ahead: nodes at all."""

    def __init__(self, problem: Problem) -> None:
        n, self.types = len(problem.types), problem.types
        self.n_types = max(self.types) + 1
        self.waits = [len(reads) for reads in problem.reads]
        self.readers: list[list[int]] = [[] for _ in range(n)]
        for i, reads in enumerate(problem.reads):
            for r in reads:
                self.readers[r].append(i)
        chains = [[0] * self.n_types for _ in range(n)]
        self.ahead = [1] * n
        for i in reversed(range(n)):
            mine = chains[i]
            for v in self.readers[i]:
                mine[:] = map(max, mine, chains[v])
                self.ahead[i] = max(self.ahead[i], self.ahead[v] + 1)
            mine[self.types[i]] += 1
        self.height = [chains[i][t] for i, t in enumerate(self.types)]

    def fewest(self, width: int, promise: Promise) -> int:
        """Batches of the best order that a beam finds."""
        beam = [self.start()]
        batches = 0
        while True:
            batches += 1
            found: dict[tuple[tuple[float, ...], int], State] = {}
            for state in beam:
                for t in range(self.n_types):
                    if not state.ready[t]:
                        continue
                    new = state.after(self, t)
                    if not new.remaining:
                        return batches
                    found.setdefault((promise(self, new), new.remaining), new)
            beam = [found[key] for key in sorted(found)[:width]]

    def start(self) -> State:
        n = len(self.types)
        tall = [[0] * (len(self.types) + 1) for _ in range(self.n_types)]
        for t, height in zip(self.types, self.height, strict=True):
            tall[t][height] += 1
        top = [max(h for h, count in enumerate(row) if count) for row in tall]
        ready: list[list[int]] = [[] for _ in range(self.n_types)]
        for i in range(n):
            if not self.waits[i]:
                ready[self.types[i]].append(i)
        return State(list(self.waits), ready, [row[: h + 1] for row, h in zip(tall, top, strict=True)], top, n)


@dataclass
class State:
    waits: list[int]  # by node: those that it reads and that have not run
    ready: list[list[int]]  # by type
    tall: list[list[int]]  # by type and height: nodes that have not run
    top: list[int]  # by type: the greatest height of these
    remaining: int

    def after(self, search: Search, t: int) -> State:
        """The state when the ready nodes of type t have run."""
        new = State(list(self.waits), list(self.ready), list(self.tall), list(self.top), self.remaining)
        new.ready[t] = []
        tall = new.tall[t] = list(self.tall[t])
        for i in self.ready[t]:
            tall[search.height[i]] -= 1
        while new.top[t] and not tall[new.top[t]]:
            new.top[t] -= 1
        new.remaining -= len(self.ready[t])
        fresh: dict[int, list[int]] = {}
        for i in self.ready[t]:
            for v in search.readers[i]:
                new.waits[v] -= 1
                if not new.waits[v]:
                    fresh.setdefault(search.types[v], []).append(v)
        for u, nodes in fresh.items():
            new.ready[u] = new.ready[u] + nodes
        return new


Promise = Callable[[Search, State], tuple[float, ...]]  # of a state; less is better


def by_waiting(far: float, left: float) -> Promise:
    """far, left: how much ready nodes that wait and nodes at all count."""

    def promise(search: Search, state: State) -> tuple[float, ...]:
        waiting = sum(search.ahead[i] ** 2 for nodes in state.ready for i in nodes)
        return (sum(state.top) + far * waiting + left * state.remaining,)

    return promise


def by_weight(power: int) -> Promise:
    """Of states whose rest needs as many batches, by the heights of nodes to this power."""

    def promise(_: Search, state: State) -> tuple[float, ...]:
        weights = (sum(count * h**power for h, count in enumerate(row) if count) for row in state.tall)
        return (sum(state.top), sum(math.log1p(weight) for weight in weights))

    return promise


PROMISES = [
    *(by_waiting(*how) for how in ((2e-5, 1e-3), (1e-3, 0.0), (1e-4, 1e-2), (0.0, 1e-3))),
    by_weight(2),
    by_weight(3),
]


def best_known(problem: Problem, width: int) -> int:
    """Fewest batches that beams of this width find, with several opinions of what promises most."""
    total = 0
    for component in components(problem):
        search = Search(component)
        bound = sum(search.start().top)
        if search.n_types == 1:
            total += bound if any(component.reads) else 1
            continue
        fewest = len(component.types)
        for promise in PROMISES:
            if fewest > bound:
                fewest = min(fewest, search.fewest(width, promise))
        total += fewest
    return total
