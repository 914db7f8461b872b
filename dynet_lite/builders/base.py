"""What all recurrent builders share: states, sequences, parameters in a graph, dropout.

A builder owns parameters. ``initial_state()`` starts a Sequence, the thing that makes nodes; an RNNState is a point in it:
the h's (and cells) of all layers after some inputs. States are cheap and never change, so that a search may branch; they are
compiled (cext/bindings/states.pxi), as programs make one for every input.
Nothing here computes; each builder's file says which cell it uses.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from typing import Any, ClassVar

import numpy as np

from dynet_lite import _core, config
from dynet_lite._core import Expression, Parameters, RNNState
from dynet_lite.builders.part import Part, folder
from dynet_lite.errors import StaleExpressionError
from dynet_lite.kept import since_renewal
from dynet_lite.needs import Told, number, wrong_vector

Tensors = tuple[Expression, ...]
Layer = list[Parameters]
Joined = Expression | tuple[Expression, ...]  # a tuple: of expressions one above the other
CellWeights = tuple[Joined, Joined, tuple[Joined, ...]]


LAYERS = 10_000  # of a builder, at most: a size in the place of their number would take all memory


def positive(value: Any, what: str, least: int = 1, most: int | None = None) -> int:
    """A whole number of at least `least`, and at most `most`, or ValueError."""
    try:
        number = operator.index(value)
    except TypeError:
        if not isinstance(value, (float, np.floating)) or not np.isfinite(value):
            raise ValueError(f"[builder] {what} must be a whole number; got {value!r}") from None
        number = int(value)  # hidden_dim / 2 is common
        if number != value and not config.is_dynet():  # DyNet cuts it off
            raise ValueError(f"[builder] {what} must be a whole number; got {value!r}") from None
    if number < least:
        raise ValueError(f"[builder] {what} must be {least} or more; got {value}")
    if most is not None and number > most:
        raise ValueError(f"[builder] {what} must be {most} or less; got {value}")
    return number


def rate(value: Any, what: str = "set_dropout") -> float:
    """A dropout rate, or ValueError."""
    try:
        p = value if type(value) is float else number(value)
    except (TypeError, ValueError):
        raise TypeError(f"[{what}] a rate must be a number in [0, 1); got {value!r}") from None
    if not 0 <= p < 1:
        raise ValueError(f"[{what}] a rate must be in [0, 1); got {value}")
    return p


def rates(before: tuple[float, float], d: Any, d_r: Any) -> tuple[float, float]:
    """The two rates of a builder. When they are others, what uses the builder and was recorded is recorded anew."""
    plain = type(d) in (float, int) and type(d_r) in (float, int)
    if plain and (d, d_r) == before:  # programs say so for each sentence
        return before
    now = rate(d), rate(d_r)
    if now != before:
        _core.structure_changed()
    return now


class Sequence(_core.BuilderRun):
    """One run of a builder over inputs: makes the nodes of each step. ``builder`` and ``update`` say for whom and how.

    ``step`` takes an input and the previous (h, c) and gives the next; h and c are tuples with one expression per layer.
    h is None at zero state. c is None where the cell has none, or where the cells are the second outputs of the h's.
    """

    def step(self, x: Any, h: Tensors | None, c: Tensors | None) -> tuple[Tensors, Tensors | None]:
        raise NotImplementedError

    def outputs(
        self, xs: Iterable[Any], h: Tensors | None, c: Tensors | None, after: list[int] | None = None
    ) -> list[Expression]:
        """h of the last layer after each input."""
        return [state[0][-1] for state in self.states(xs, h, c, after)]

    def states(
        self, xs: Iterable[Any], h: Tensors | None, c: Tensors | None, after: list[int] | None = None
    ) -> list[tuple[Tensors, Tensors | None]]:
        """(h, c) after each input. after: the number of the input that each follows, -1 for (h, c); None: the one before it."""
        out: list[tuple[Tensors, Tensors | None]] = []
        for i, x in enumerate(xs):
            before = i - 1 if after is None else after[i]
            out.append(self.step(x, *(out[before] if before >= 0 else (h, c))))
        return out

    def output(self, h: Expression) -> Expression:
        """What a state shows as its output, from h of the last layer."""
        return h

    def shown(self, hs: list[Expression]) -> list[Expression]:
        """output() of each of these."""
        return hs if type(self).output is Sequence.output else [self.output(h) for h in hs]

    def draw_masks(self, batch_size: int) -> None:
        """New dropout masks for inputs of this batch size; nothing where there is no such dropout."""

    def goes_on(self) -> bool:
        """Was the current graph not renewed since the start? It may have been reverted."""
        return since_renewal(self.stamp)


class FusedSequence(Sequence):
    """A sequence of a builder whose step is one cell node per layer, made by its ``stack``; the masks are drawn at the
    first input."""

    fused = True

    def draw_masks(self, batch_size: int) -> None:
        if self.builder._drops():
            self.stack = self.unmasked().masked(self.builder, batch_size)


class PlainSequence(FusedSequence):
    """A sequence that started without dropout and stays so, whatever is set before its first input."""

    plain = True

    def draw_masks(self, batch_size: int) -> None:
        """There are none."""


def _wrong_start(builder: Any, vecs: Any) -> Told | None:
    """What is wrong with the contents of a first state."""
    if vecs is None:
        return None
    n = builder.layers
    counts = (n, 2 * n) if builder.has_cell else (n,)
    if not isinstance(vecs, (list, tuple)):
        return (
            TypeError,
            f"vecs must be a list of expressions of shape {{{builder.hidden_dim}}}; got {type(vecs).__name__}",
        )
    if len(vecs) not in counts:
        return (
            ValueError,
            f"vecs: {' or '.join(map(str, counts))} expressions are needed for {n} layers; got {len(vecs)}",
        )
    return wrong_vector("a state", builder.hidden_dim, vecs)


class _OfGraph(threading.local):
    """What a builder keeps of the current graph of each thread."""

    def __init__(self) -> None:
        self.now = _core.BuilderOfGraph()


class RNNBuilder(Part):
    """Base of the recurrent builders.

    Parameters are called ``NAME/layer0/Wx``, ...; name: that of the builder's collection, for those who read its files.
    """

    of_graph: ClassVar[tuple[str, ...]] = ("_here",)
    needs: ClassVar = {"initial_state__vecs": _wrong_start}
    has_cell: ClassVar[bool] = False

    def __init__(self, layers: int, input_dim: int, hidden_dim: int, model: Any, *, name: str | None = None) -> None:
        self.layers = positive(layers, "layers", most=LAYERS)
        self.input_dim = positive(input_dim, "input_dim", least=0)  # programs make builders that they never use
        self.hidden_dim = positive(hidden_dim, "hidden_dim")
        self._begin_collection(model, name)
        alone = self.layers == 1 and self._collection is model  # one of the layers of a BiRNNBuilder
        self._parameters = [
            self._add_layer(self._collection if alone else folder(self._collection, f"layer{i}"),
                            self.hidden_dim if i else self.input_dim)
            for i in range(self.layers)
        ]  # fmt: skip
        self._forget_graph()

    def _forget_graph(self) -> None:
        self._here = _OfGraph()

    # ---- for builders to fill in ----------------------------------------------------------------------------------

    def _add_layer(self, collection: Any, input_dim: int) -> Layer:
        """Adds the parameters of one layer, in DyNet's order."""
        raise NotImplementedError

    def _sequence(self, update: bool) -> Sequence:
        raise NotImplementedError

    def _layer_expressions(self, layer: Layer, update: bool) -> list[Expression]:
        """The parameters of a layer as expressions of the current graph."""
        return list(layer) if update else [_core.nobackprop(p) for p in layer]

    # ---- states -----------------------------------------------------------------------------------------------------

    def initial_state(self, vecs: SequenceOf[Any] | None = None, update: bool = True) -> RNNState:
        """The state before any input.

        vecs: initial h's, one per layer; for LSTMs cells, or cells and then h's (as RNNState.s()). None: zeros.
        update=False: what is computed from this state gives the builder's parameters no gradient.
        """
        return self._here.now.begin(self._sequence(bool(update)), vecs)

    def initial_state_from_raw_vectors(self, vecs: Iterable[Any], update: bool = True) -> RNNState:
        """initial_state() from lists of numbers."""
        return self.initial_state([_core.inputVector(v) for v in vecs], update)

    # ---- parameters ---------------------------------------------------------------------------------------------------

    def get_parameters(self) -> list[Layer]:
        """The parameters, a list per layer."""
        return [[p._anew() for p in layer] for layer in self._parameters]

    def get_parameter_expressions(self) -> list[list[Expression]]:
        """The parameters as the last initial_state() of this graph uses them, a list per layer."""
        here, stamp = self._here.now, _core.cg().version()
        if here.shown is not None and here.shown[0] == stamp:
            return here.shown[1]
        started = here.started()
        if started is None or not since_renewal(started[0]):
            raise StaleExpressionError(f"[{self.whoami()}] call initial_state() in this graph first")
        shown = [self._layer_expressions(layer, started[1]) for layer in self._parameters]
        here.shown = (stamp, shown)
        return shown

    @property
    def spec(self) -> tuple[Any, ...]:
        """The arguments that make such a builder again, without the model."""
        return (self.layers, self.input_dim, self.hidden_dim)

    @classmethod
    def from_spec(cls, spec: SequenceOf[Any], model: Any) -> RNNBuilder:
        """A builder from its spec, with new parameters in a sub-collection of model."""
        return cls(*[*spec[:3], model, *spec[3:]])

    # ---- dropout --------------------------------------------------------------------------------------------------------

    def set_dropout(self, f: float) -> None:
        """Dropout at this rate, for sequences whose first input comes from now on. ValueError unless 0 <= f < 1."""
        raise NotImplementedError

    def disable_dropout(self) -> None:
        """No dropout: set_dropout(0)."""
        self.set_dropout(0.0)

    # ---- the rest -------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<{self.whoami()}: {self.layers} layers, {self.input_dim} to {self.hidden_dim}>"


class FusedBuilder(RNNBuilder):
    """A builder whose step is one cell node per layer, with (variational) dropout on inputs and previous h's.

    The masks are drawn once per sequence (Gal and Ghahramani 2016): each input of a layer is multiplied by one mask, each
    previous h by another.
    """

    kind: ClassVar[str]

    def __init__(self, layers: int, input_dim: int, hidden_dim: int, model: Any, *, name: str | None = None) -> None:
        super().__init__(layers, input_dim, hidden_dim, model, name=name)
        self._rates = (0.0, 0.0)

    def _cell_weights(self, layer: list[Expression]) -> CellWeights:
        """b, Wx and the recurrent weights of the cell, from _layer_expressions()."""
        raise NotImplementedError

    def _forget_bias(self) -> float:
        return 1.0

    def _sequence(self, update: bool) -> Sequence:
        return FusedSequence(self, update)

    def _all_weights(self, update: bool) -> list[Any]:
        return [self._cell_weights(self._layer_expressions(layer, update)) for layer in self._parameters]

    def _stack(self, update: bool) -> Any:
        """The layers in the current graph, without masks; one for all sequences."""
        return self._here.now.stack(self, update)

    # ---- dropout --------------------------------------------------------------------------------------------------------

    def _drops(self) -> bool:
        return any(self._rates)

    def set_dropout(self, f: float) -> None:
        """Dropout of inputs and previous h's of all layers at this rate, one mask per sequence. ValueError unless 0 <= f < 1."""
        self.set_dropouts(f, f)

    def set_dropouts(self, d: float, d_r: float) -> None:
        """Dropout of the layers' inputs at rate d and of their previous h's at rate d_r, one mask each per sequence.

        ValueError unless 0 <= d < 1, and likewise d_r.
        """
        self._rates = rates(self._rates, d, d_r)

    def set_dropout_masks(self, batch_size: int = 1) -> None:
        """New masks for the sequence that initial_state() started last, for inputs of this batch size.

        Without this call the masks are drawn at the first input, for its batch size. Before initial_state() it does
        nothing.
        """
        size = positive(batch_size, "batch_size")
        latest = self._here.now.latest()
        if latest is not None and since_renewal(latest.stamp):  # else it is of the graph before
            latest.draw_masks(size)
