"""What is kept for further uses in the same graph, such as expressions that are made of weights: until when it may be kept.

cg_revert() calls ``revert()``, and the core counts updates. Values that are set by hand are not counted: then the whole graph
runs again. Who may import: graph.py and whatever keeps such things (builders/, softmax_builders/, nn/).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from weakref import WeakKeyDictionary

from dynet_lite import _core
from dynet_lite._core import ComputationGraph, Expression, last_update

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


class Kept(threading.local):
    """Expressions by key, each made at its first use in a graph, and again after an update. Copies are empty.

    Threads may share one; it keeps expressions for each by itself.
    """

    def __init__(self) -> None:
        self._held: tuple[ComputationGraph, int, int, dict[Hashable, Expression]] | None = None

    def get(self, key: Hashable, make: Callable[[], Expression]) -> Expression:
        """The expression with this key, which make() makes if there is none."""
        graph = _core.cg()
        version, update = graph.version(), last_update()
        held = self._held
        if held is None or held[0] is not graph or held[1:3] != (version, update):
            held = self._held = (graph, version, update, {})
        made = held[3]
        found = made.get(key)
        if found is None:
            found = made[key] = make()
        return found

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        return Kept, ()
