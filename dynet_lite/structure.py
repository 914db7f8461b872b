"""A graph and the plans it has run, read once from the engine as plain data: what explain.py and viz draw from.

`read()` copies; what it gives stays as it is when the graph is renewed. Who may import: the package's own modules.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dynet_lite import _core
from dynet_lite._core import ComputationGraph, Expression
from dynet_lite.errors import OutOfRangeError

Dim = tuple[tuple[int, ...], int]

LEAVES = ("input", "parameter", "table", "lookup")


def dim_text(dim: Dim) -> str:
    """A shape as the engine writes it: {50}, {3,4}, {50}X16 with a batch of 16."""
    shape, batch = dim
    return "{" + ",".join(map(str, shape)) + "}" + (f"X{batch}" if batch != 1 else "")


@dataclass(frozen=True)
class Node:
    """One node.

    sort: op, fused (runs inside another op), merged (another op computes the same), dead (nothing needs it: it does not
    run), alias (a slice or reshape: no work), output (the cell state of a step), or one of LEAVES. An op that several nodes
    were made into has a formula for a name, such as "cmult(logistic(x0), tanh(x1))", or says how many there are,
    "affine_transform x 4".
    """

    number: int
    sort: str
    op: str  # of an output: that of its producer; of a leaf: ""
    name: str  # of a parameter or table; "" when it is gone
    dim: Dim
    arguments: tuple[int, ...]
    producer: int  # the op node or leaf whose running gives the value; of a fused node what it runs inside
    signature: int
    depth: int
    attributes: dict[str, Any]  # those that may differ inside a batch
    # The batch in which it ran; that of its producer for aliases, outputs, fused and merged; None for leaves and the dead.
    batch: int | None
    origin: str = ""  # "file:line" where it was made, with check_validity
    short: str = ""  # the op in few letters

    @property
    def title(self) -> str:
        """What it is, in a few letters: the op, the name of the weight, the row of the table."""
        name = self.name.lstrip("/")
        if self.sort == "lookup":
            return f"{name or 'lookup'}[{self.attributes['row']}{'...' if self.dim[1] > 1 else ''}]"
        return self.short or name or self.sort

    @property
    def shape(self) -> str:
        return dim_text(self.dim)


@dataclass(frozen=True)
class Signature:
    """What nodes that may share a batch have in common."""

    op: str
    arguments: tuple[tuple[str, Any], ...]  # ("shared", node number) or ("stacked", dim)
    attributes: dict[str, Any]
    entry: str  # the op's name in the table of ops, as in profiles


@dataclass(frozen=True)
class Batch:
    """Nodes that ran together, in order. Batches are numbered in order of execution."""

    number: int
    plan: int
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """What one evaluation ran in one thread. stage: 0 everything or the head, 1 one of the lanes, 2 the tail."""

    number: int
    evaluation: int
    stage: int
    lane: int
    lower_bound: int
    floats: int
    batches: range


@dataclass(frozen=True)
class Structure:
    """Nodes, batches and plans of a graph, each list indexed by number."""

    strategy: str
    nodes: list[Node]
    batches: list[Batch]
    plans: list[Plan]
    signatures: dict[int, Signature]  # of the nodes that ran
    chains: dict[tuple[int, int], int] = field(default_factory=dict)  # (plan, signature) -> most nodes on one path
    on_host: set[str] = field(default_factory=set)  # ops, as Signature.entry, for which the GPU has no code

    @property
    def nodes_run(self) -> int:
        return sum(len(b.nodes) for b in self.batches)

    @property
    def nodes_fused(self) -> int:
        """Those that run inside others."""
        return sum(node.sort == "fused" for node in self.nodes)

    @property
    def nodes_merged(self) -> int:
        """Those that others compute."""
        return sum(node.sort == "merged" for node in self.nodes)

    @property
    def nodes_dead(self) -> int:
        """Those that nothing needs."""
        return sum(node.sort == "dead" for node in self.nodes)

    @property
    def lower_bound(self) -> int:
        return sum(p.lower_bound for p in self.plans)

    def signature_of(self, batch: Batch) -> int:
        return self.nodes[batch.nodes[0]].signature

    def consumed_by(self) -> list[list[int]]:
        """By node: the nodes that have it, or one merged into it, as an argument. What does not run by itself is not counted."""
        out: list[list[int]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for a in node.arguments if node.sort not in ("fused", "merged", "dead") else ():
                out[self.nodes[a].producer if self.nodes[a].sort == "merged" else a].append(node.number)
        return out

    def needed_for(self, numbers: Iterable[int]) -> set[int]:
        """These nodes and all that they depend on."""
        seen: set[int] = set()
        todo = list(numbers)
        while todo:
            i = todo.pop()
            if i not in seen:
                seen.add(i)
                todo += self._before(i)
        return seen

    def _before(self, i: int) -> Iterator[int]:
        node = self.nodes[i]
        if node.sort in ("output", "fused", "merged"):
            yield node.producer
        else:
            yield from node.arguments

    def depends(self, later: int, earlier: int) -> bool:
        """Is `earlier` needed for `later`?"""
        seen: set[int] = set()
        todo = [later]
        while todo:
            i = todo.pop()
            if i == earlier:
                return True
            if i > earlier and i not in seen:  # arguments have lower numbers, but for leaves
                seen.add(i)
                todo += self._before(i)
        return False


def read(graph: ComputationGraph | None = None) -> Structure:
    """Run what is pending and copy nodes and plans of the graph (default: the current one)."""
    g = graph if graph is not None else _core.cg()
    g.forward()
    batches: list[Batch] = []
    plans: list[Plan] = []
    batch_of: dict[int, int] = {}
    evaluations: dict[int, int] = {}
    for first, stage, lane, bound, floats, groups in _core.graph_plans(g):
        start = len(batches)
        for members in groups:
            batch_of.update(dict.fromkeys(members, len(batches)))
            batches.append(Batch(len(batches), len(plans), tuple(members)))
        evaluation = evaluations.setdefault(first, len(evaluations))
        plans.append(Plan(len(plans), evaluation, stage, lane, bound, floats, range(start, len(batches))))
    origins = g.origins or {}
    nodes = [
        Node(i, sort, op, name, dim, tuple(arguments), producer, signature, depth, attributes,
             batch_of.get(producer), origins.get(i, origins.get(producer, "")), short)
        for i, (sort, op, name, dim, arguments, producer, signature, depth, attributes, short)
        in enumerate(_core.graph_nodes(g))
    ]  # fmt: skip
    signatures: dict[int, Signature] = {}
    chains: dict[tuple[int, int], int] = {}
    for batch in batches:
        first = batch.nodes[0]
        signature = nodes[first].signature
        if signature not in signatures:
            op, arguments, attributes, entry = _core.graph_signature(g, first)
            signatures[signature] = Signature(op, tuple(arguments), attributes, entry)
        key = batch.plan, signature
        chains[key] = chains.get(key, 0) + 1  # how many batches, for now
    for (plan, signature), n in chains.items():
        if n > 1:
            example = next(b.nodes[0] for b in batches if nodes[b.nodes[0]].signature == signature)
            chains[plan, signature] = _core.graph_chain(g, plan, example)
    return Structure(_core.graph_strategy(g), nodes, batches, plans, signatures, chains, _core.ops_on_host(g))


def node_number(e: Expression | int, graph: ComputationGraph) -> int:
    """The number of an expression's node in this graph; a number is left as it is."""
    if not isinstance(e, Expression):
        number = operator.index(e)
        if not 0 <= number < len(graph):
            raise OutOfRangeError(f"[graph] node {number} of a graph of {len(graph)} nodes")
        return number
    g, number = _core.expression_node(e)
    if g is not graph:
        raise ValueError("[graph] the expression belongs to another graph")
    return number
