"""explain_rewrites(): what each pass over the graph did before it was planned.

The passes and their order stand in one table (cext/rewrite/passes.cc). `dy.configure(rewrites="-join")` switches one off.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dynet_lite import _core
from dynet_lite._core import ComputationGraph
from dynet_lite.notebook import table

__all__ = ["RewriteExplanation", "RewriteStep", "explain_rewrites"]

MOST_LINES = 8  # of changes of one pass in the text


@dataclass(frozen=True)
class RewriteStep:
    """What one pass did: ``changes`` holds (node as it was, node as it is), each as a line of ``dy.plan_text(after=...)``."""

    name: str
    does: str
    place: str  # why it runs where it does
    ran: bool  # False: switched off, not in the backend, or there was nothing that it looks at
    changes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RewriteExplanation:
    """What explain_rewrites() gives: print it, or read ``steps``, one for each pass in the order of the table."""

    steps: tuple[RewriteStep, ...]

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts and lists that json can write."""
        return asdict(self)

    def __str__(self) -> str:
        lines = []
        for step in self.steps:
            state = f"{len(step.changes)} nodes" if step.ran else "did not run"
            lines.append(f"{step.name}: {step.does} ({state})")
            lines += [f"  {_flat(old)}  ->  {_flat(new)}" for old, new in step.changes[:MOST_LINES]]
            if len(step.changes) > MOST_LINES:
                lines.append(f"  ... and {len(step.changes) - MOST_LINES} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(s.name, s.does, len(s.changes) if s.ran else "did not run") for s in self.steps]
        return table(("pass", "what it does", "nodes changed"), rows)


def _flat(line: str) -> str:
    return " ".join(line.split())


def explain_rewrites(graph: ComputationGraph | None = None) -> RewriteExplanation:
    """What each rewrite does to the pending nodes of a graph (default: the current one). Runs them.

    Call it before you read a value, because nodes that have run are not rewritten again. As when a value is read, nodes
    that no expression refers to may disappear.
    """
    texts = (graph or _core.cg()).rewrites()
    steps, names = [], [name for name, _ in texts]
    for name, does, place in _core.passes():
        changes: tuple[tuple[str, str], ...] = ()
        if name in names:
            k = names.index(name)
            before, after = (texts[at][1].splitlines() for at in (k - 1, k))
            changes = tuple((old, new) for old, new in zip(before, after, strict=True) if old != new)
        steps.append(RewriteStep(name, does, place, name in names, changes))
    return RewriteExplanation(tuple(steps))
