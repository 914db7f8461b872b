"""GRUBuilder: the gated recurrent unit in DyNet's form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dynet_lite import _core
from dynet_lite._core import Expression
from dynet_lite.builders.base import CellWeights, FusedBuilder, Layer, PlainSequence, Sequence, Tensors, rates
from dynet_lite.builders.part import add_weight


class GRUBuilder(FusedBuilder):
    """Gated recurrent units (Cho et al. 2014): h = (1 - z) h' + z tanh(Whx x + Whh (r h') + bh).

    z = sigmoid(Wzx x + Wzh h' + bz), r likewise. ``GRUBuilder(layers, input_dim, hidden_dim, model)``. Parameters per
    layer: Wzx, Wzh, bz, Wrx, Wrh, br, Whx, Whh, bh. Dropout is plain, drawn anew at each step: on the input of each layer
    and on the output, not on the state.
    """

    collection_name = "gru-builder"
    kind = "gru"

    def _add_layer(self, collection: Any, input_dim: int) -> Layer:
        n = self.hidden_dim
        layer = []
        for gate in "zrh":
            layer += [
                add_weight(collection, f"W{gate}x", (n, input_dim)),
                add_weight(collection, f"W{gate}h", (n, n)),
                add_weight(collection, f"b{gate}", (n,), 0),
            ]
        return layer

    def _cell_weights(self, layer: list[Expression]) -> CellWeights:
        zx, zh, bz, rx, rh, br, hx, hh, bh = layer
        return (bz, br, bh), (zx, rx, hx), ((zh, rh), hh)

    def _sequence(self, update: bool) -> Sequence:
        return DroppedSequence(self, update) if self._rates[0] else PlainSequence(self, update)

    def set_dropout(self, f: float) -> None:
        """Plain dropout at this rate, on the inputs of the layers and on the output, for states started from now on."""
        self._rates = rates(self._rates, f, 0.0)

    def set_dropouts(self, d: float, d_r: float) -> None:
        raise AttributeError("GRUBuilder has no variational dropout; use set_dropout(p)")

    def set_dropout_masks(self, batch_size: int = 1) -> None:
        raise AttributeError("GRUBuilder has no variational dropout, so no masks; use set_dropout(p)")


class DroppedSequence(Sequence):
    """A GRU with dropout that is drawn anew at each step."""

    def __init__(self, builder: GRUBuilder, update: bool) -> None:
        super().__init__(builder, update)
        self.p = builder._rates[0]
        self.layers = builder._stack(update).apart()

    def step(self, x: Any, h: Tensors | None, c: Tensors | None) -> tuple[Tensors, Tensors | None]:
        out = []
        for i, layer in enumerate(self.layers):
            (x,) = layer.step(_core.dropout(x, self.p), None if h is None else (h[i],), None)
            out.append(x)
        return tuple(out), None

    def outputs(
        self, xs: Iterable[Any], h: Tensors | None, c: Tensors | None, after: list[int] | None = None
    ) -> list[Expression]:
        out = list(xs)
        for i, layer in enumerate(self.layers):
            out = layer.run([_core.dropout(x, self.p) for x in out], None if h is None else (h[i],), None, after=after)
        return out

    def output(self, h: Expression) -> Expression:
        return _core.dropout(h, self.p)
