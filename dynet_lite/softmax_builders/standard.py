"""StandardSoftmaxBuilder: one matrix and one bias for all classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dynet_lite import _core
from dynet_lite.builders.base import positive
from dynet_lite.builders.part import add_weight
from dynet_lite.softmax_builders.base import SoftmaxBuilder, draw, one_or_all


class StandardSoftmaxBuilder(SoftmaxBuilder):
    """p(. | x) = softmax(W x + b).

    ``StandardSoftmaxBuilder(input_dim, num_classes, pc, bias=True, init=None)``. Parameters: W {num_classes,input_dim}, and
    b {num_classes}, which begins at 0, unless bias=False.

    init: how W begins, see ParameterCollection.add_parameters(). None is DyNet's, whose range shrinks with the number of
    classes: with thousands of them all scores are near 0 and learning is slow. ``init="fan-in"`` (FanInInitializer) does not
    depend on their number; take it for words.
    """

    collection_name = "standard-softmax-builder"

    def __init__(
        self, input_dim: int, num_classes: int, pc: Any, bias: bool = True, init: Any = None, *, name: str | None = None
    ) -> None:
        super().__init__(input_dim, pc, name)
        self.num_classes = positive(num_classes, "num_classes")
        self._w = add_weight(self._collection, "W", (self.num_classes, self.input_dim), init)
        self._b = add_weight(self._collection, "b", (self.num_classes,), 0) if bias else None

    def full_logits(self, x: Any, update: bool = True) -> Any:
        """W x + b: x {input_dim} -> {num_classes}."""
        return self._scores(self._w, self._b, x, update)

    def neg_log_softmax(self, x: Any, c: int, update: bool = True) -> Any:
        return _core.pickneglogsoftmax(self.full_logits(x, update), c)

    def neg_log_softmax_batch(self, x: Any, c: Iterable[int], update: bool = True) -> Any:
        return _core.pickneglogsoftmax(self.full_logits(x, update), self._labels(x, c))

    def sample(self, x: Any) -> Any:
        return one_or_all(draw(self.full_logits(x)), x)

    @property
    def spec(self) -> tuple[Any, ...]:
        """The arguments that make such a builder again, without the collection."""
        return (self.input_dim, self.num_classes, self._b is not None)

    @classmethod
    def from_spec(cls, spec: Any, model: Any) -> StandardSoftmaxBuilder:
        """A builder from its spec, with new parameters in a sub-collection of model."""
        input_dim, num_classes, bias = spec
        return cls(input_dim, num_classes, model, bias)

    def __repr__(self) -> str:
        return f"<{self.whoami()}: {self.input_dim} to {self.num_classes}>"
