"""What is kept for further uses in the same graph, such as expressions that are made of weights: until when it may be kept.

cg_revert() calls ``revert()``, and the core counts updates. Values that are set by hand are not counted: then the whole graph
runs again. Who may import: graph.py and whatever keeps such things (builders/, softmax_builders/, nn/).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from weakref import WeakKeyDictionary

from dynet_lite import _core
from dynet_lite._core import ComputationGraph, Expression, last_update
from dynet_lite.errors import StaleExpressionError

# Of graphs that were reverted: the version before the first revert since a renewal, and the one after the last.
_versions: WeakKeyDictionary[ComputationGraph, tuple[int, int]] = WeakKeyDictionary()


def revert() -> None:
    """Revert the current graph to its last mark."""
    graph = _core.cg()
    before = graph.version()
    graph.revert()
    first, last = _versions.get(graph, (before, before))
    _versions[graph] = (first if last == before else before, graph.version())


def since_renewal(version: int) -> bool:
    """Did the current graph have this version after its last renewal? Reverts give it other ones."""
    graph = _core.cg()
    now = graph.version()
    if version == now:
        return True
    first, last = _versions.get(graph, (now, now))
    return last == now and first <= version < now


def is_gone(e: Expression) -> bool:
    """Was its graph renewed, or reverted to before it?"""
    try:
        e.dim()
    except StaleExpressionError:
        return True
    return False


class Kept:
    """Expressions by key, each made at its first use in a graph, and again after an update. Copies are empty."""

    def __init__(self) -> None:
        self._graph: ComputationGraph | None = None
        self._version = -1
        self._update = -1
        self._made: dict[Hashable, Expression] = {}

    def get(self, key: Hashable, make: Callable[[], Expression]) -> Expression:
        """The expression with this key, which make() makes if there is none."""
        graph = _core.cg()
        version, update = graph.version(), last_update()
        if self._graph is not graph or self._version != version or self._update != update:
            self._graph, self._version, self._update, self._made = graph, version, update, {}
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = make()
        return found

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        return Kept, ()
