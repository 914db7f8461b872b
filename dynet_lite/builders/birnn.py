"""BiRNNBuilder: layers of two recurrent builders, one for each direction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from dynet_lite import _core, config
from dynet_lite._core import Expression, RNNState
from dynet_lite.builders.base import LAYERS, positive
from dynet_lite.builders.part import Part, place
from dynet_lite.needs import many


class BiRNNBuilder(Part):
    """A bidirectional network of several layers, each with a forward and a backward builder of one layer.

    ``BiRNNBuilder(num_layers, input_dim, hidden_dim, model, rnn_builder_factory, builder_layers=None)``: hidden_dim, which
    must be even, is shared between the directions; the factory is a builder class, called as
    ``rnn_builder_factory(1, input_dim, hidden_dim / 2, model)``; or pass pairs of builders as builder_layers. Parameters are
    called ``NAME/layer0/forward/Wx``, ``NAME/layer0/backward/Wx``, ...; name: that of the builder's collection.
    """

    collection_name = "birnn"
    needs: ClassVar = {"es": many("an input", lambda self: self.builder_layers[0][0].input_dim)}

    def __init__(
        self,
        num_layers: int,
        input_dim: int,
        hidden_dim: int,
        model: Any,
        rnn_builder_factory: Callable[..., Any],
        builder_layers: Iterable[tuple[Any, Any]] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        layers, hidden = positive(num_layers, "num_layers", most=LAYERS), positive(hidden_dim, "hidden_dim")
        if hidden % 2:
            raise ValueError(f"[BiRNNBuilder] hidden_dim must be even; got {hidden}")
        if builder_layers is not None:
            builder_layers = [(forward, backward) for forward, backward in builder_layers]
            if not builder_layers:
                raise ValueError("[BiRNNBuilder] builder_layers: a pair of builders for each layer is needed; got none")
        self._spec = (num_layers, input_dim, hidden_dim, rnn_builder_factory, builder_layers)
        self._begin_collection(model, name)
        self.model = self._collection
        if builder_layers is not None:
            self.builder_layers = list(builder_layers)
            return
        self.builder_layers = [
            tuple(rnn_builder_factory(1, hidden if i else input_dim, hidden // 2, where) for where in self._places(i))
            for i in range(layers)
        ]

    def _places(self, layer: int) -> Iterable[Any]:
        """The collections of the two builders of a layer, made one by one."""
        here = self.model if config.is_dynet() else self.model.add_subcollection(f"layer{layer}")
        for direction in ("forward", "backward"):
            yield here if config.is_dynet() else place(here.add_subcollection(direction))

    @property
    def spec(self) -> tuple[Any, ...]:
        """The arguments that make such a builder again, without the model."""
        return self._spec

    @classmethod
    def from_spec(cls, spec: Any, model: Any) -> BiRNNBuilder:
        """A builder from its spec, with new parameters in a sub-collection of model."""
        num_layers, input_dim, hidden_dim, factory, *rest = spec
        return cls(num_layers, input_dim, hidden_dim, model, factory, *rest)

    def set_dropout(self, p: float) -> None:
        """set_dropout(p) of all builders."""
        for pair in self.builder_layers:
            for builder in pair:
                builder.set_dropout(p)

    def disable_dropout(self) -> None:
        """disable_dropout() of all builders."""
        for pair in self.builder_layers:
            for builder in pair:
                builder.disable_dropout()

    def _below(self, xs: list[Any], layers: list[Any], lengths: Iterable[int] | None = None) -> list[Any]:
        """What goes out of these layers."""
        for forward, backward in layers:
            if lengths is not None:
                ahead = forward.initial_state().transduce(xs, lengths=lengths)
                back = backward.initial_state().transduce(xs, lengths=lengths, reverse=True)
            else:
                ahead = forward.initial_state().transduce(xs)
                back = backward.initial_state().transduce(xs[::-1])
                back.reverse()
            xs = ahead.joined(back) if hasattr(ahead, "joined") else _core._join_pairs(ahead, back)
        return xs

    def add_inputs(self, es: Iterable[Any]) -> list[tuple[RNNState, RNNState]]:
        """The states (forward, backward) of the last layer at each input."""
        xs = self._below(list(es), self.builder_layers[:-1])
        forward, backward = self.builder_layers[-1]
        ahead = forward.initial_state().add_inputs(xs)
        back = backward.initial_state().add_inputs(xs[::-1])
        return list(zip(ahead, reversed(back), strict=True))

    def transduce(self, es: Iterable[Any], *, lengths: Iterable[int] | None = None) -> list[Expression]:
        """The outputs of both directions of the last layer at each input {input_dim}, one above the other: {hidden_dim}.

        lengths: the inputs are so many sentences, one behind the other, as for RNNState.transduce().
        """
        # A sequence of a length that is not known (dynet_lite/onnx) goes through as it is.
        xs: Any = es if hasattr(es, "transduced") else list(es)
        return self._below(xs, self.builder_layers, lengths if lengths is None else list(lengths))

    def __repr__(self) -> str:
        return f"<{self.whoami()}: {len(self.builder_layers)} layers of {self.builder_layers[0]}>"
