"""explain_batches(): what ran together, what did not, and why.

First comes a sum by op.

Two nodes share a batch when their signatures are equal and the plan could put them there. So there are two sorts of
answers. Between *kinds* (nodes of one signature): which part of the signature differs. Inside a kind that took more than
one batch: what separates its batches. Works on the plain data of structure.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from dynet_lite import _core
from dynet_lite._core import ComputationGraph, Expression
from dynet_lite.notebook import table
from dynet_lite.profiling import Profile
from dynet_lite.structure import Node, Signature, Structure, dim_text, node_number, read

__all__ = ["BatchExplanation", "OpSummary", "explain_batches"]

CAUSES = {
    "off": "automatic batching is off",
    "evaluation": "a value was asked for in between, so they were planned apart",
    "dependency": "they depend on each other",
    "threads": "they were dealt to different threads",
    "strategy": "the strategy did not find a better order",
}
ON_HOST = " (on the host)"
MOST_PAIRS = 300  # kinds of one op that are compared with each other
SHOWN = 6  # values of a part, batches of a kind: what the text lists


@dataclass(frozen=True)
class OpSummary:
    """All nodes of one op. Nodes that were made of several ops are in the rows (formulas) and (affine maps).

    share: of the time of all ops, forward and backward; None without a profile.
    """

    op: str
    kinds: int
    batches: int
    nodes: int
    mean: float  # nodes in a batch
    share: float | None


@dataclass(frozen=True)
class BatchKind:
    """Nodes of one signature, and how many batches they took.

    op: of nodes that several were made into the formula, or "affine_transform x 4"; title: the same in few letters.

    fewest: no schedule takes fewer, for nodes that depend on each other must be in different batches. causes: what the
    other batches but the first are due to: off, evaluation, dependency, threads, strategy -> number of batches.
    """

    number: int
    op: str
    shape: str  # of one result
    arguments: tuple[str, ...]  # "stacked {4}", "shared /W"
    attributes: dict[str, Any]
    nodes: int
    batches: tuple[int, ...]  # numbers of the batches
    sizes: tuple[int, ...]  # and how many nodes they had
    fewest: int
    causes: dict[str, int]
    example: int  # a node
    title: str
    on_host: bool  # a GPU has no kernel for it (docs/gpu.md)


@dataclass(frozen=True)
class Difference:
    """Two kinds of the same op that differ in few parts of the signature. parts: (part, value in a, value in b).

    A part is "number of arguments", "shape of argument 0", "argument 1" (the node that all members share) or
    "attribute d".
    """

    op: str
    a: int
    b: int
    parts: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Apart:
    """Why two nodes are, or are not, in one batch: a word for programs, a sentence for people.

    cause: together, same, leaf, dead, op, signature, off, evaluation, dependency, threads, strategy.
    """

    cause: str
    text: str

    def __str__(self) -> str:
        return self.text


class BatchExplanation:
    """What explain_batches() gives. As text: print it. As data: ops, kinds, differences, to_dict(), why(a, b)."""

    def __init__(self, structure: Structure, graph: ComputationGraph, profile: Profile | None = None) -> None:
        self._structure, self._graph, self._version = structure, graph, graph.version()
        s = structure
        self.strategy = s.strategy
        self.nodes = s.nodes_run
        self.nodes_fused = s.nodes_fused  # those that run inside others
        self.nodes_merged = s.nodes_merged  # those that others compute
        self.nodes_dead = s.nodes_dead  # those that nothing needs
        self.batches = len(s.batches)
        self.lower_bound = s.lower_bound
        self.kinds = _kinds(s)
        self.on_host = _on_host(s, self.kinds)  # op, of a program on a GPU that the host runs -> its batches
        self.ops = _ops(s, self.kinds, profile)
        self.differences = _differences(s, self.kinds)

    def why(self, a: Expression | int, b: Expression | int) -> Apart:
        """Why the nodes of two expressions ran together or not. Only until the graph is renewed."""
        if self._graph.version() != self._version:
            raise RuntimeError("[explain] the graph was renewed since; ask before renew_cg()")
        one, other = node_number(a, self._graph), node_number(b, self._graph)
        if max(one, other) >= len(self._structure.nodes):
            raise ValueError("[why] the node was made after the explanation; ask explain_batches() again")
        return why(self._structure, one, other)

    def to_dict(self) -> dict[str, Any]:
        """Everything but why() as dicts and lists that json can write."""
        counts = ("nodes", "nodes_fused", "nodes_merged", "nodes_dead", "batches", "lower_bound")
        head = {name: getattr(self, name) for name in ("strategy", *counts)}
        head["on_host"] = self.on_host
        lists = {"ops": self.ops, "kinds": self.kinds, "differences": self.differences}
        return {**head, **{name: [asdict(one) for one in items] for name, items in lists.items()}}  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<{self.nodes} nodes in {self.batches} batches, {len(self.kinds)} kinds; print it for the reasons>"

    def __str__(self) -> str:
        return _text(self)

    def _repr_html_(self) -> str:
        return table(
            ("op", "shape", "nodes", "batches", "sizes", "why more than one batch"),
            _rows(self),
            _text(self).partition("\n")[0],
        )


def _rows(e: BatchExplanation) -> Iterator[tuple[object, ...]]:
    for kind in e.kinds:
        sizes = ", ".join(map(str, kind.sizes[:SHOWN])) + (", ..." if len(kind.sizes) > SHOWN else "")
        causes = "; ".join(f"{CAUSES[cause]} (+{n})" for cause, n in kind.causes.items())
        yield kind.title + ON_HOST * kind.on_host, kind.shape, kind.nodes, len(kind.batches), sizes, causes


def explain_batches(
    graph: ComputationGraph | Callable[..., Any] | None = None, profile: Profile | None = None
) -> BatchExplanation:
    """What ran together in the current graph (or `graph`), what did not, and why. Runs what is pending.

    Compiled functions have graphs of their own: ``explain_batches(step)`` runs the last call of one again, and tells of
    that. ValueError if there was none.

    ``print(dy.explain_batches())`` shows a table of the ops, with most batches first, then their kinds. After ``with
    dy.profile() as p``, the table of ``explain_batches(profile=p)`` has each op's share of the time, with the slowest
    first. ``.why(a, b)`` answers for two expressions; ``.kinds`` and ``.differences`` are the same as data. Nodes of one
    signature (op, shapes of the stacked arguments, shared arguments, key attributes) are one kind; different kinds never
    share a batch. ``.on_host`` names the ops that a GPU left to the CPU.
    """
    method_of = getattr(graph, "function", None)
    for compiled in (graph, method_of):
        if isinstance(compiled, _core.Compiled):
            return _of_compiled(compiled, profile)
    g: Any = graph if graph is not None else _core.cg()
    return BatchExplanation(read(g), g, profile)


def _of_compiled(function: _core.Compiled, profile: Profile | None) -> BatchExplanation:
    g = function.run_again()
    if g is None:
        raise ValueError(f"[explain] {function.__name__} has recorded nothing yet: call it before")
    found = BatchExplanation(read(g), g, profile)
    g.invalidate()  # its values need no old weights
    return found


# ---- kinds ---------------------------------------------------------------------------------------------------------


def _kinds(s: Structure) -> list[BatchKind]:
    found: dict[int, list[int]] = defaultdict(list)
    for batch in s.batches:
        found[s.signature_of(batch)].append(batch.number)
    out = []
    for number, (signature, batches) in enumerate(found.items()):
        about, example = s.signatures[signature], s.batches[batches[0]].nodes[0]
        sizes = tuple(len(s.batches[b].nodes) for b in batches)
        fewest, causes = _causes(s, signature, batches)
        out.append(BatchKind(
            number, about.op, s.nodes[example].shape,
            tuple(_argument(s, about, k) for k in range(len(about.arguments))), about.attributes,
            sum(sizes), tuple(batches), sizes, fewest, causes, example, s.nodes[example].title, about.entry in s.on_host,
        ))  # fmt: skip
    return out


def _ops(s: Structure, kinds: list[BatchKind], profile: Profile | None) -> list[OpSummary]:
    """The kinds by op, those that matter most first."""
    of: dict[str, list[BatchKind]] = defaultdict(list)
    labels = _core.op_labels()
    for kind in kinds:
        entry = s.signatures[s.nodes[kind.example].signature].entry
        of[labels[entry]].append(kind)
    times: dict[str, float] = defaultdict(float)
    for time in profile.ops() if profile is not None else ():
        times[time.op] += time.seconds
    total = sum(times.values())
    out = []
    for op, mine in of.items():
        batches, nodes = sum(len(k.batches) for k in mine), sum(k.nodes for k in mine)
        share = times[op] / total if total else None
        out.append(OpSummary(op, len(mine), batches, nodes, nodes / batches, share))
    return sorted(out, key=lambda o: (-(o.share or 0.0), -o.batches, -o.nodes))


def _on_host(s: Structure, kinds: list[BatchKind]) -> dict[str, int]:
    """What a GPU has no kernels for, by the names that the table of ops has, and how many batches it took."""
    found: Counter[str] = Counter()
    labels = _core.op_labels()
    for kind in kinds:
        if kind.on_host:
            found[labels[s.signatures[s.nodes[kind.example].signature].entry]] += len(kind.batches)
    return dict(found.most_common())


def _causes(s: Structure, signature: int, batches: list[int]) -> tuple[int, dict[str, int]]:
    """The fewest batches of a kind, and what all batches but the first are due to.

    Evaluations come one after another, so each needs a batch at least; inside one, lanes run side by side.
    """
    plans = sorted({s.batches[b].plan for b in batches})
    stages: dict[tuple[int, int], list[int]] = defaultdict(list)  # (evaluation, stage) -> chains of its lanes
    for p in plans:
        plan = s.plans[p]
        stages[plan.evaluation, plan.stage].append(s.chains[p, signature])
    fewest = sum(max(chains) for chains in stages.values())
    evaluations = len({evaluation for evaluation, _ in stages})
    causes: Counter[str] = Counter()
    causes["evaluation"] = evaluations - 1
    causes["dependency"] = fewest - evaluations
    causes["threads"] = sum(sum(chains) - max(chains) for chains in stages.values())
    causes["off" if s.strategy == "none" else "strategy"] = len(batches) - 1 - causes.total()
    return fewest, {cause: n for cause, n in causes.items() if n > 0}


def _argument(s: Structure, about: Signature, k: int) -> str:
    how, what = about.arguments[k]
    return f"shared {_shared_name(s, what)}" if how == "shared" else f"stacked {dim_text(what)}"


def _shared_name(s: Structure, number: int) -> str:
    node: Node = s.nodes[number]
    return node.name or f"node {number} ({node.title} {node.shape})"


# ---- differences between kinds of one op ------------------------------------------------------------------------------


def _parts(s: Structure, a: Signature, b: Signature) -> tuple[tuple[str, str, str], ...]:
    """In which parts two signatures of one op differ."""
    out = []
    if len(a.arguments) != len(b.arguments):
        out.append(("number of arguments", str(len(a.arguments)), str(len(b.arguments))))
    for k, (x, y) in enumerate(zip(a.arguments, b.arguments, strict=False)):
        if x == y:
            continue
        part = f"shape of argument {k}" if x[0] == y[0] == "stacked" else f"argument {k}"
        if part.startswith("shape"):
            out.append((part, dim_text(x[1]), dim_text(y[1])))
        else:
            out.append((part, _argument(s, a, k), _argument(s, b, k)))
    for name in a.attributes:
        if a.attributes[name] != b.attributes.get(name):
            out.append((f"attribute {name}", str(a.attributes[name]), str(b.attributes.get(name))))
    return tuple(out)


def _differences(s: Structure, kinds: list[BatchKind]) -> list[Difference]:
    """Of each op with several kinds: the pairs that differ in the fewest parts, at least one for each kind."""
    by_op: dict[str, list[BatchKind]] = defaultdict(list)
    for kind in kinds:
        by_op[kind.op].append(kind)
    out = []
    for op, alike in by_op.items():
        alike.sort(key=lambda k: k.example)  # in the order in which the program made them
        if len(alike) > MOST_PAIRS:
            pairs = list(zip(alike, alike[1:], strict=False))
        else:
            pairs = list(combinations(alike, 2))
        signature = {k.number: s.signatures[s.nodes[k.example].signature] for k in alike}
        found = [(x.number, y.number, _parts(s, signature[x.number], signature[y.number])) for x, y in pairs]
        least: dict[int, int] = {}
        for x, y, parts in found:
            for k in (x, y):
                least[k] = min(least.get(k, len(parts)), len(parts))
        out += [Difference(op, x, y, parts) for x, y, parts in found if parts and len(parts) <= max(least[x], least[y])]
    return out


# ---- two nodes -------------------------------------------------------------------------------------------------------


def why(s: Structure, a: int, b: int) -> Apart:
    """Why nodes a and b ran in one batch or not."""
    x, y = (s.nodes[s.nodes[i].producer] for i in (a, b))
    if x.number == y.number and "fused" in (s.nodes[a].sort, s.nodes[b].sort):
        return Apart("same", f"both run inside node {x.number} ({x.title} {x.shape})")
    if x.number == y.number and "merged" in (s.nodes[a].sort, s.nodes[b].sort):
        return Apart("same", f"they are the same, computed once by node {x.number} ({x.title} {x.shape})")
    if x.number == y.number:
        return Apart("same", f"both are values of node {x.number} ({x.title} {x.shape})")
    for node in (x, y):
        if node.sort == "dead":
            return Apart("dead", f"node {node.number} ({node.title} {node.shape}) does not run: nothing needs it")
        if node.batch is None:
            return Apart(
                "leaf", f"node {node.number} is {_article(node)}: its value is there from the start and nothing runs"
            )
    if x.batch == y.batch:
        return Apart("together", f"they ran together, in batch {x.batch} of {len(s.batches[x.batch or 0].nodes)} nodes")
    if x.op != y.op:
        return Apart("op", f"different ops: {x.title} and {y.title}")
    if x.signature != y.signature:
        parts = _parts(s, s.signatures[x.signature], s.signatures[y.signature])
        text = "; ".join(f"different {part}: {u} and {v}" for part, u, v in parts[:SHOWN])
        return Apart("signature", text + (f"; and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""))
    return _same_signature(s, *sorted((x, y), key=lambda n: n.number))


def _article(node: Node) -> str:
    return {"input": "an input", "parameter": "a parameter", "table": "a table", "lookup": "a looked-up row"}[node.sort]


def _same_signature(s: Structure, x: Node, y: Node) -> Apart:
    """Two nodes of one kind in different batches; x was made first."""
    if s.depends(y.number, x.number):
        return Apart("dependency", f"node {y.number} depends on node {x.number}")
    if s.strategy == "none":
        return Apart("off", CAUSES["off"])
    first, second = sorted((s.batches[n.batch or 0] for n in (x, y)), key=lambda b: b.number)
    plan, other = s.plans[first.plan], s.plans[second.plan]
    if plan.evaluation != other.evaluation:
        return Apart("evaluation", CAUSES["evaluation"])
    if plan.number != other.number:
        return Apart("threads", CAUSES["threads"])
    used = sum(s.signature_of(s.batches[b]) == x.signature for b in plan.batches)
    if used == s.chains[plan.number, x.signature]:
        early, late = (x, y) if x.batch == first.number else (y, x)
        between = min(s.needed_for([late.number]) & set(first.nodes), default=None)
        if between is None:
            text = f"there are as few batches of this kind as can be; node {late.number} was left for a later one"
        else:
            text = f"node {late.number} depends on node {between}, which ran with node {early.number}"
        return Apart("dependency", text)
    return Apart(
        "strategy", f"they could have run together; {s.strategy} put them into batches {x.batch} and {y.batch}"
    )


# ---- text ------------------------------------------------------------------------------------------------------------


def _text(e: BatchExplanation) -> str:
    bound = f" (no schedule needs fewer than {e.lower_bound})" if e.lower_bound else ""
    state = "automatic batching is off" if e.strategy == "none" else f"strategy {e.strategy}"
    lines = [f"{e.nodes} nodes of {len(e.kinds)} kinds ran in {e.batches} batches{bound}; {state}"]
    if e.nodes_fused:
        lines.append(f"{e.nodes_fused} more nodes run inside these: they are part of a formula or of a larger op")
    if e.nodes_merged:
        lines.append(f"{e.nodes_merged} more nodes equal one of these (same op, same arguments) and do not run again")
    if e.nodes_dead:
        lines.append(f"{e.nodes_dead} more nodes do not run: nothing reads them and no expression refers to them")
    if e.on_host:
        ops = ", ".join(f"{op} ({n} batches)" if n > 1 else f"{op} (1 batch)" for op, n in e.on_host.items())
        lines.append(f"the GPU has no kernels for these ops, which ran on the host: {ops}")
    if not e.nodes and _core.compiled_stats()["compiled_calls"]:
        lines.append("compiled functions run in graphs of their own: dy.explain_batches(step) tells of its last call")
    lines += ["", *_summary_lines(e.ops), ""]
    for kind in e.kinds:
        lines += _kind_lines(kind)
    several = [op for op, n in Counter(k.op for k in e.kinds).items() if n > 1]
    if several:
        lines += ["", "the same op in several kinds, which cannot share a batch:"]
    for op in several:
        lines += _op_lines(e, op)
    return "\n".join(lines)


def _summary_lines(ops: list[OpSummary]) -> list[str]:
    timed = any(o.share is not None for o in ops)
    lines = [f"{'op':<26}{'batches':>9}{'nodes':>10}{'mean':>8}{'kinds':>7}" + f"{'share':>8}" * timed]
    for o in ops:
        share = "" if o.share is None else f"{o.share:>8.1%}"
        lines.append(f"{o.op:<26}{o.batches:>9,}{o.nodes:>10,}{o.mean:>8.1f}{o.kinds:>7,}{share}")
    return lines


def _kind_lines(kind: BatchKind) -> list[str]:
    sizes = ", ".join(map(str, kind.sizes[:SHOWN])) + (", ..." if len(kind.sizes) > SHOWN else "")
    many = f"{len(kind.batches)} batches of {sizes}" if len(kind.batches) > 1 else f"1 batch of {sizes}"
    attributes = [f"{name}={value}" for name, value in kind.attributes.items()]
    lines = [f"[{kind.number}] {kind.title} {kind.shape}{ON_HOST * kind.on_host}: {many}",
             f"      ({', '.join([*_runs(kind.arguments), *attributes])})"]  # fmt: skip
    if kind.title != kind.op:
        lines.append(f"      that is {kind.op}")
    if len(kind.batches) > 1:
        lines += [f"      + {n}: {CAUSES[cause]}" for cause, n in kind.causes.items()]
    return lines


def _runs(words: tuple[str, ...]) -> list[str]:
    """Equal neighbours as one: 5 x stacked {4}."""
    out: list[tuple[str, int]] = []
    for word in words:
        if out and out[-1][0] == word:
            out[-1] = word, out[-1][1] + 1
        else:
            out.append((word, 1))
    return [word if n == 1 else f"{n} x {word}" for word, n in out]


def _op_lines(e: BatchExplanation, op: str) -> list[str]:
    """Per set of parts in which kinds of this op differ: the values and the kinds that have them."""
    nodes = {k.number: k.nodes for k in e.kinds}
    title = next(k.title for k in e.kinds if k.op == op)
    by_parts: dict[tuple[str, ...], dict[tuple[str, ...], set[int]]] = defaultdict(lambda: defaultdict(set))
    for d in e.differences:
        if d.op == op:
            values = by_parts[tuple(part for part, _, _ in d.parts)]
            values[tuple(v for _, v, _ in d.parts)].add(d.a)
            values[tuple(v for _, _, v in d.parts)].add(d.b)
    lines = []
    for parts, values in by_parts.items():
        shown = [f"{_first(v)} ({sum(nodes[k] for k in kinds)} nodes)" for v, kinds in list(values.items())[:SHOWN]]
        lines.append(f"  {title}, by {_first(parts)}: " + ", ".join(shown) + (", ..." if len(values) > SHOWN else ""))
    return lines


def _first(words: tuple[str, ...]) -> str:
    """The first ones, and how many there are besides."""
    return " and ".join(words[:SHOWN]) + (f" and {len(words) - SHOWN} more" if len(words) > SHOWN else "")
