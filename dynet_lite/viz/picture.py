"""What of a graph is drawn: boxes and arrows. Further outputs are drawn as their op, and so are nodes that run inside another;
weights are left out unless wanted.

Knows nothing of places, colours or formats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dynet_lite import _core
from dynet_lite._core import ComputationGraph, Expression
from dynet_lite.structure import Node, Structure, dim_text, node_number, read

What = ComputationGraph | Expression | Iterable[Expression] | None
Names = Callable[[str, int], str | None] | None  # of rows: (name of the table, row) -> a word, or None

MOST = 4000  # boxes of a picture
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # not all of them may stand in an SVG file


@dataclass(frozen=True)
class Box:
    """A node as it is drawn. batch: its number, or None for leaves. total: nodes in the batch, drawn or not."""

    number: int
    title: str
    shape: str
    sort: str  # op, alias, input, parameter, table, lookup
    batch: int | None
    total: int
    origin: str
    details: str  # attributes such as the label of a loss

    @property
    def lines(self) -> list[str]:
        """All that is known: for tooltips."""
        parts = [f"node {self.number}: {self.title} {self.shape}"]
        if self.details:
            parts.append(self.details)
        if self.batch is not None:
            parts.append(f"batch {self.batch} of {self.total} node{'s' * (self.total != 1)}")
        if self.origin:
            parts.append(f"made at {self.origin}")
        return parts

    @property
    def words(self) -> str:
        """The same in one line."""
        return ", ".join(self.lines)


@dataclass(frozen=True)
class Picture:
    """Boxes in the order of building, arrows (from, to), and the whole structure that they are a part of."""

    boxes: list[Box]
    arrows: list[tuple[int, int]]
    structure: Structure
    batches: list[int] = field(default_factory=list)  # those with a drawn node, in order of execution

    @property
    def caption(self) -> str:
        s = self.structure
        bound = f" (no schedule needs fewer than {s.lower_bound})" if s.lower_bound else ""
        part = "" if len(self.batches) == len(s.batches) else f"; drawn: nodes of {len(self.batches)} batches"
        inside = f"; {s.nodes_fused} more run inside these" if s.nodes_fused else ""
        inside += f"; {s.nodes_merged} more compute the same as some of these" if s.nodes_merged else ""
        inside += f"; {s.nodes_dead} more are not needed" if s.nodes_dead else ""
        return f"{s.nodes_run} nodes in {len(s.batches)} batches{bound}, strategy {s.strategy}{inside}{part}"


def picture(what: What = None, weights: bool = False, names: Names = None) -> Picture:
    """What to draw: a graph (default: the current one), or only what an expression or several depend on.

    names says what the rows of tables are called. ValueError when that is too much for a picture. Runs what is pending.
    """
    graph, roots = _graph_and_roots(what)
    s = read(graph)
    drawn = s.needed_for(roots) if roots is not None else range(len(s.nodes))
    left_out = {"output", "fused", "merged"} | (set() if weights else {"parameter", "table"})
    wanted = {i for i in drawn if s.nodes[i].sort not in left_out}
    if len(wanted) > MOST:
        raise ValueError(f"[viz] {len(wanted)} nodes are too many for a picture (at most {MOST}); name an expression, "
                         "such as the loss of one sentence: viz.html(loss)")  # fmt: skip
    arrows = []
    for i in sorted(wanted):
        sources = (s.nodes[a] for a in s.nodes[i].arguments)
        ends = (a.producer if a.sort in ("output", "merged") else a.number for a in sources)
        arrows += [(a, i) for a in dict.fromkeys(ends) if a in wanted]
    batches = sorted({b for i in wanted if (b := s.nodes[i].batch) is not None})
    return Picture([_box(s, s.nodes[i], names) for i in sorted(wanted)], arrows, s, batches)


def _graph_and_roots(what: What) -> tuple[ComputationGraph, list[int] | None]:
    if what is None:
        return _core.cg(), None
    if isinstance(what, ComputationGraph):
        return what, None
    expressions = [what] if isinstance(what, Expression) else list(what) if isinstance(what, Iterable) else []
    if not expressions or not all(isinstance(e, Expression) for e in expressions):
        raise TypeError("[viz] a graph, an expression or a list of expressions is needed")
    graph, _ = _core.expression_node(expressions[0])
    return graph, [node_number(e, graph) for e in expressions]


def _box(s: Structure, node: Node, names: Names) -> Box:
    if node.sort == "lookup":
        called = _called(node, names)
        title, details = (called, [node.title]) if called else (node.title, [])
    else:
        title, details = node.title, [f"{name}={value}" for name, value in node.attributes.items()]
    if node.sort == "op":
        if node.op != node.title:
            details.insert(0, node.op)
        details += [f"{name}={value}" for name, value in s.signatures[node.signature].attributes.items()]
        shared = [s.nodes[n] for how, n in s.signatures[node.signature].arguments if how == "shared"]
        if shared:
            details.append("weights " + " ".join(w.name or f"node {w.number}" for w in shared))
    total = len(s.batches[node.batch].nodes) if node.batch is not None else 0
    words = _visible(" ".join(details))
    return Box(node.number, _visible(title), dim_text(node.dim), node.sort, node.batch, total, node.origin, words)


def _called(node: Node, names: Names) -> str | None:
    """The name of a row; of several rows, of which the first is known, with three dots."""
    if names is None:
        return None
    if not callable(names):
        raise TypeError(f"[viz] names: a function of a table's name and a row is needed; got {names!r}")
    called = names(node.name, node.attributes["row"])
    if called is not None and not isinstance(called, str):
        raise TypeError(f"[viz] names: the function gives a word or None; got {called!r}")
    return f"{called}..." if called and node.dim[1] > 1 else called


def _visible(text: str) -> str:
    """With line ends and the like as Python writes them."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
