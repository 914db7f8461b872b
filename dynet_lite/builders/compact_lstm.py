"""CompactVanillaLSTMBuilder: the standard LSTM, with Gaussian noise on the weights if wanted."""

from __future__ import annotations

from typing import Any

from dynet_lite import _core
from dynet_lite.builders.base import FusedSequence, Sequence
from dynet_lite.builders.vanilla_lstm import VanillaLSTMBuilder
from dynet_lite.needs import number


class CompactVanillaLSTMBuilder(VanillaLSTMBuilder):
    """The LSTM of VanillaLSTMBuilder with forget bias 1, plus set_weightnoise().

    ``CompactVanillaLSTMBuilder(layers, input_dim, hidden_dim, model)``. In DyNet this builder saves memory; here both make
    the same nodes. Parameters per layer: Wx, Wh, b.
    """

    collection_name = "compact-vanilla-lstm-builder"

    def __init__(self, layers: int, input_dim: int, hidden_dim: int, model: Any, *, name: str | None = None) -> None:
        self._noise = 0.0
        super().__init__(layers, input_dim, hidden_dim, model, name=name)

    def set_weightnoise(self, std: float) -> None:
        """Gaussian noise of this standard deviation on all weights (Graves 2011), drawn once per sequence; 0: none.

        For states started from now on. A sequence with noise shares no matrix with others, so it batches less.
        """
        std = number(std, "a standard deviation")
        if not 0 <= std < float("inf"):
            raise ValueError(f"[set_weightnoise] a standard deviation must be >= 0; got {std}")
        if std != self._noise:
            self._noise = std
            _core.structure_changed()

    def _sequence(self, update: bool) -> Sequence:
        return NoisySequence(self, update) if self._noise else super()._sequence(update)

    @property
    def spec(self) -> tuple[Any, ...]:
        """The arguments that make such a builder again, without the model."""
        return (self.layers, self.input_dim, self.hidden_dim)


class NoisySequence(FusedSequence):
    """A sequence with weights of its own: those of the builder plus noise."""

    def __init__(self, builder: CompactVanillaLSTMBuilder, update: bool) -> None:
        super().__init__(builder, update)
        std = builder._noise
        self.weights = [
            builder._cell_weights([_core.noise(e, std) for e in builder._layer_expressions(layer, update)])
            for layer in builder._parameters
        ]

    def unmasked(self) -> Any:
        return _core.CellStack(self.builder.kind, self.weights, self.builder.forget_bias)
