"""SimpleRNNBuilder: h = tanh(Wx x + Wh h' + b)."""

from __future__ import annotations

from typing import Any

from dynet_lite._core import Expression
from dynet_lite.builders.base import CellWeights, FusedBuilder, Layer, rates
from dynet_lite.builders.part import add_weight


class SimpleRNNBuilder(FusedBuilder):
    """Elman's recurrent network: h = tanh(Wx x + Wh h' + b) in each layer.

    ``SimpleRNNBuilder(layers, input_dim, hidden_dim, model)``. Parameters per layer: Wx {hidden,input}, Wh
    {hidden,hidden}, b {hidden}.
    """

    collection_name = "simple-rnn-builder"
    kind = "rnn"

    def _add_layer(self, collection: Any, input_dim: int) -> Layer:
        n = self.hidden_dim
        return [
            add_weight(collection, "Wx", (n, input_dim)),
            add_weight(collection, "Wh", (n, n)),
            add_weight(collection, "b", (n,), 0),
        ]

    def _cell_weights(self, layer: list[Expression]) -> CellWeights:
        wx, wh, b = layer
        return b, wx, (wh,)

    def set_dropouts(self, d: float, d_h: float) -> None:  # the name that DyNet gives it here
        """Dropout of the layers' inputs at rate d and of their previous h's at rate d_h, one mask each per sequence."""
        self._rates = rates(self._rates, d, d_h)
