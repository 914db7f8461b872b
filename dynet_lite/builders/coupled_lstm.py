"""CoupledLSTMBuilder and FastLSTMBuilder: LSTMs whose forget gate is 1 minus the input gate."""

from __future__ import annotations

from typing import Any

from dynet_lite import _core
from dynet_lite._core import Expression
from dynet_lite.builders.base import CellWeights, FusedBuilder, Layer, PlainSequence, Sequence, Tensors
from dynet_lite.builders.part import add_weight


class CoupledLSTMBuilder(FusedBuilder):
    """An LSTM with tied gates and full peepholes, DyNet's first LSTM (Greff et al. 2015 call the tie CIFG).

    i = sigmoid(Wxi x + Whi h' + Wci c' + bi), g = tanh(Wxc x + Whc h' + bc), c = (1 - i) c' + i g,
    o = sigmoid(Wxo x + Who h' + Wco c + bo), h = o tanh(c).

    ``CoupledLSTMBuilder(layers, input_dim, hidden_dim, model)``. Parameters per layer: Wxi, Whi, Wci, bi, Wxo, Who, Wco,
    bo, Wxc, Whc, bc. Dropout is variational: one mask per sequence for the input of each layer, its previous h and what
    the peepholes see of its cell.
    """

    collection_name = "lstm-builder"
    kind = "coupled"
    has_cell = True
    peephole_matrix = True

    def _add_layer(self, collection: Any, input_dim: int) -> Layer:
        n = self.hidden_dim
        layer = []
        for gate in "ioc":
            layer.append(add_weight(collection, f"Wx{gate}", (n, input_dim)))
            layer.append(add_weight(collection, f"Wh{gate}", (n, n)))
            if gate != "c":
                layer.append(add_weight(collection, f"Wc{gate}", (n, n if self.peephole_matrix else 1)))
            layer.append(add_weight(collection, f"b{gate}", (n,), 0))
        return layer

    def _cell_weights(self, layer: list[Expression]) -> CellWeights:
        xi, hi, ci, bi, xo, ho, co, bo, xc, hc, bc = layer
        b, wx, u = (bi, bo, bc), (xi, xo, xc), (hi, ho, hc)
        return b, wx, ((u, ci, co) if self.peephole_matrix else (u,))

    def _sequence(self, update: bool) -> Sequence:
        return PeepholeSequence(self, update) if self._drops() else PlainSequence(self, update)

    def set_dropout(self, f: float) -> None:
        """Variational dropout at this rate, for states started from now on."""
        super().set_dropouts(f, f)

    def set_dropouts(self, d: float, d_r: float) -> None:
        raise AttributeError(f"{self.whoami()} has one dropout rate; use set_dropout(p)")


class PeepholeSequence(Sequence):
    """A coupled LSTM with dropout, from ordinary nodes: what the peepholes see of the cell is masked too."""

    def __init__(self, builder: CoupledLSTMBuilder, update: bool) -> None:
        super().__init__(builder, update)
        self.weights = [builder._layer_expressions(layer, update) for layer in builder._parameters]
        self.masks: list[tuple[Expression | None, ...]] | None = None

    def draw_masks(self, batch_size: int) -> None:
        builder: Any = self.builder
        n, p = builder.hidden_dim, builder._rates[0]
        self.masks = [
            tuple(_core._drop_mask(size, p, batch_size) for size in (n if i else builder.input_dim, n, n))
            for i in range(builder.layers)
        ]

    def step(self, x: Any, h: Tensors | None, c: Tensors | None) -> tuple[Tensors, Tensors | None]:
        if self.masks is None or self.reverted(self.masks[0]):
            self.draw_masks(_core._batch_of(x))
        assert self.masks is not None
        new_h, new_c = [], []
        for i, (weights, masks) in enumerate(zip(self.weights, self.masks, strict=True)):
            x, cell = _core._peephole_step(weights, masks, x, h and h[i], c and c[i])
            new_h.append(x)
            new_c.append(cell)
        return tuple(new_h), tuple(new_c)


class FastLSTMBuilder(CoupledLSTMBuilder):
    """CoupledLSTMBuilder without the effect of peepholes.

    Parameters as CoupledLSTMBuilder, with columns {hidden,1} in place of the peephole matrices: DyNet's builder has them
    and does not use them, and neither does this one. Dropout, which DyNet's builder takes and ignores, is variational.
    """

    collection_name = "fast-lstm-builder"
    kind = "fast"
    peephole_matrix = False

    def _sequence(self, update: bool) -> Sequence:
        return super(CoupledLSTMBuilder, self)._sequence(update)
