"""Part: what every builder is, a part of a model that owns parameters.

It can be made again from its spec (for files), pickled and copied. Who may import: builders/, softmax_builders/.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar


class Part:
    """Base of all builders: keeps its parameters in a sub-collection of the model's collection.

    A subclass sets ``_collection``, has a ``spec``, and names in ``of_graph`` the attributes that belong to a graph:
    _forget_graph() makes them as they are before any graph, and copies and pickles do not have them. A copy takes the whole
    tree of collections along; copy or pickle a builder together with its collection, and they stay together.
    """

    of_graph: ClassVar[tuple[str, ...]] = ()
    _collection: Any

    def _forget_graph(self) -> None:
        """Set the attributes named in of_graph."""

    def param_collection(self) -> Any:
        """The sub-collection that holds the parameters."""
        return self._collection

    @classmethod
    def from_spec(cls, spec: Sequence[Any], model: Any) -> Any:
        """A builder from its spec, with new parameters in a sub-collection of model."""
        return cls(*spec, model)  # type: ignore[call-arg]

    def whoami(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in self.of_graph}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget_graph()
