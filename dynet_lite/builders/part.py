"""Part: what every builder is, a part of a model that owns parameters.

It can be made again from its spec (for files), pickled and copied. Its parameters have names, unless dynet_lite stands in
for DyNet, whose builders give none. Who may import: builders/, softmax_builders/.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dynet_lite import config, needs


def add_weight(collection: Any, name: str, shape: tuple[int, ...], init: Any = None) -> Any:
    """A new parameter of a builder, with this name; without one where DyNet's would have none."""
    return collection.add_parameters(shape, init=init, name="" if config.is_dynet() else name)


def folder(collection: Any, name: str) -> Any:
    """A sub-collection that gives names and nothing else: the collection itself where DyNet's builders have none."""
    return collection if config.is_dynet() else collection.add_subcollection(name)


def place(collection: Any) -> Any:
    """Marks a collection that was made for one builder: the next Part that is made in it takes it as its own."""
    collection._for_one_part = True
    return collection


class Part:
    """Base of all builders: keeps its parameters in a sub-collection of the model's collection.

    A subclass calls ``_begin_collection``, has a ``spec``, and names in ``of_graph`` the attributes that belong to a graph:
    _forget_graph() makes them as they are before any graph, and copies and pickles do not have them. A copy takes the whole
    tree of collections along; copy or pickle a builder together with its collection, and they stay together.
    """

    of_graph: ClassVar[tuple[str, ...]] = ()
    collection_name: ClassVar[str]
    _collection: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Methods of the package's own builders tell what is wrong (``needs``: what of; dynet_lite/needs.py)."""
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("dynet_lite."):
            needs.part(**vars(cls).get("needs", {}))(cls)

    def _begin_collection(self, model: Any, name: str | None) -> None:
        """Make ``_collection``, a sub-collection of model of this name, or of the class's own when name is None."""
        if name is None and getattr(model, "_for_one_part", False):
            model._for_one_part = False
            self._collection = model
        else:
            self._collection = model.add_subcollection(self.collection_name if name is None else name)

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


needs.part()(Part)
