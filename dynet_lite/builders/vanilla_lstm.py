"""VanillaLSTMBuilder, also called LSTMBuilder: the standard LSTM, with or without layer normalisation."""

from __future__ import annotations

from typing import Any, ClassVar

from dynet_lite import _core
from dynet_lite._core import Expression
from dynet_lite.builders.base import CellWeights, FusedBuilder, Layer, Sequence, Tensors, rate
from dynet_lite.builders.part import add_weight
from dynet_lite.kept import Kept
from dynet_lite.needs import number
from dynet_lite.ops import pick_range


class VanillaLSTMBuilder(FusedBuilder):
    """Long short-term memory (Hochreiter and Schmidhuber 1997; forget gate: Gers et al. 2000), without peepholes.

    i, f, o = sigmoid, g = tanh of the four blocks of Wx x + Wh h' + b, forget_bias added to f;
    c = f c' + i g, h = o tanh(c).

    ``VanillaLSTMBuilder(layers, input_dim, hidden_dim, model, ln_lstm=False, forget_bias=1.0)``. Parameters per layer: Wx
    {4 hidden,input}, Wh {4 hidden,hidden}, b {4 hidden}. With ``ln_lstm`` the two products and the cell are layer-normalised
    (Ba et al. 2016): six more per layer, gains and biases for Wh h', Wx x and c, in the builder's collection (norm_h_gain,
    norm_h_bias, ...).
    Dropout is variational; that of weights, set_weight_dropout(), is one draw for all sequences of a graph, until an update.
    """

    collection_name = "vanilla-lstm-builder"
    kind = "lstm"
    has_cell = True
    of_graph: ClassVar[tuple[str, ...]] = (*FusedBuilder.of_graph, "_dropped")

    def __init__(
        self,
        layers: int,
        input_dim: int,
        hidden_dim: int,
        model: Any,
        ln_lstm: bool = False,
        forget_bias: float = 1.0,
        *,
        name: str | None = None,
    ) -> None:
        self.ln_lstm = bool(ln_lstm)
        self.forget_bias = number(forget_bias, "forget_bias")
        self._norms: list[Layer] = []
        self._weight_rate = 0.0
        super().__init__(layers, input_dim, hidden_dim, model, name=name)

    def _add_layer(self, collection: Any, input_dim: int) -> Layer:
        layer = self._add_weights(collection, input_dim)
        if self.ln_lstm:
            n = self.hidden_dim
            self._norms.append([
                add_weight(collection, f"norm_{of}_{what}", (size,), init)
                for of, size in (("h", 4 * n), ("x", 4 * n), ("c", n))
                for what, init in (("gain", 1), ("bias", 0))
            ])  # fmt: skip
        return layer

    def _add_weights(self, collection: Any, input_dim: int) -> Layer:
        n = self.hidden_dim
        return [
            add_weight(collection, "Wx", (4 * n, input_dim)),
            add_weight(collection, "Wh", (4 * n, n)),
            add_weight(collection, "b", (4 * n,), 0),
        ]

    def _forget_graph(self) -> None:
        super()._forget_graph()
        self._dropped = Kept()  # Wh's

    def set_weight_dropout(self, p: float) -> None:
        """Drops a share p of the numbers of Wh, 0 <= p < 1, in states started from now on; the others are divided by 1 - p.

        The same numbers at every step of all sequences of a graph, so that they still run together; others in the next graph,
        and in sequences that start after an update. A cell, which is recorded as a part of a graph, cannot use it: CellError.
        It is DropConnect on the recurrent weights, "weight drop": Merity, Keskar, Socher, Regularizing and optimizing LSTM
        language models (2018). ValueError for another p.
        """
        p = rate(p, "set_weight_dropout")
        if p != self._weight_rate:
            self._weight_rate = p
            _core.structure_changed()
            self._forget_graph()

    def disable_dropout(self) -> None:
        """No dropout, of weights neither: set_dropout(0) and set_weight_dropout(0)."""
        super().disable_dropout()
        self.set_weight_dropout(0.0)

    def _layer_expressions(self, layer: Layer, update: bool) -> list[Expression]:
        wx, wh, *others = super()._layer_expressions(layer, update)
        return [wx, self._dropped_out(wh, (id(layer[1]), update)), *others] if self._weight_rate else [wx, wh, *others]

    def _dropped_out(self, wh: Expression, key: tuple[int, bool]) -> Expression:
        """Wh with the mask of this graph."""
        _core.see_no_cell("set_weight_dropout()")
        return self._dropped.get(key, lambda: _core.dropout(wh, self._weight_rate))

    def _cell_weights(self, layer: list[Expression]) -> CellWeights:
        wx, wh, b = layer
        return b, wx, (wh,)

    def _forget_bias(self) -> float:
        return self.forget_bias

    def _sequence(self, update: bool) -> Sequence:
        return NormedSequence(self, update) if self.ln_lstm else super()._sequence(update)

    @property
    def spec(self) -> tuple[Any, ...]:
        """The arguments that make such a builder again, without the model."""
        return (self.layers, self.input_dim, self.hidden_dim, self.ln_lstm, self.forget_bias)


class NormedSequence(Sequence):
    """A layer-normalised LSTM: ordinary nodes and the LSTM's loose parts."""

    def __init__(self, builder: VanillaLSTMBuilder, update: bool) -> None:
        super().__init__(builder, update)
        self.weights = [builder._layer_expressions(layer, update) for layer in builder._parameters]
        self.norms = [list(layer) if update else [_core.nobackprop(p) for p in layer] for layer in builder._norms]
        self.masks: list[tuple[Expression | None, Expression | None]] | None = None
        self.zero: Expression | None = None

    def draw_masks(self, batch_size: int) -> None:
        builder: Any = self.builder
        p, p_h = builder._rates
        self.masks = [
            (
                _core._drop_mask(builder.hidden_dim if i else builder.input_dim, p, batch_size),
                _core._drop_mask(builder.hidden_dim, p_h, batch_size),
            )
            for i in range(builder.layers)
        ]

    def step(self, x: Any, h: Tensors | None, c: Tensors | None) -> tuple[Tensors, Tensors | None]:
        builder: Any = self.builder
        n = builder.hidden_dim
        if self.masks is None or self.reverted(m for layer in self.masks for m in layer):
            self.draw_masks(_core._batch_of(x))
        assert self.masks is not None
        new_h, new_c = [], []
        for i, ((wx, wh, b), (gh, bh, gx, bx, gc, bc)) in enumerate(zip(self.weights, self.norms, strict=True)):
            mask_x, mask_h = self.masks[i]
            sums = b + _core.layer_norm(wx * _core._masked(x, mask_x), gx, bx)
            if h is not None:
                sums = sums + _core.layer_norm(wh * _core._masked(h[i], mask_h), gh, bh)
            gates = _core._lstm_gates(sums, builder.forget_bias)
            cell = _core.vanilla_lstm_c(c[i] if c is not None else self._zero(), gates)
            x = _core.cmult(pick_range(gates, 2 * n, 3 * n), _core.tanh(_core.layer_norm(cell, gc, bc)))
            new_h.append(x)
            new_c.append(cell)
        return tuple(new_h), tuple(new_c)

    def _zero(self) -> Expression:
        if self.zero is None or self.reverted([self.zero]):
            self.zero = _core.zeros(self.builder.hidden_dim)
        return self.zero


LSTMBuilder = VanillaLSTMBuilder
