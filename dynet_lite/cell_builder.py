"""CellBuilder: a recurrent builder whose step is a cell of one's own.

Who may import: the package; users reach it as ``dy.CellBuilder``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dynet_lite import _core
from dynet_lite.cells import made_alike, scanned
from dynet_lite.needs import PLAIN, part, renamed, shown

__all__ = ["CellBuilder"]


@part()
class CellBuilder:
    """A recurrent builder from ``cell(state, x)``, which returns the next state, or a pair (next state, output).

    zero: a function that makes the state before the first input, in the current graph. The builder owns no parameters.
    """

    def __init__(self, cell: Any, zero: Callable[[], Any] | None = None) -> None:
        if not _core.is_cell(cell):
            raise TypeError(f"[CellBuilder] a cell is needed: write @dy.cell above {getattr(cell, '__name__', cell)!s}")
        self.cell, self.zero = cell, zero

    def initial_state(self, state: Any = None) -> CellState:
        """The state before any input: `state`, made up as the cell takes it, or what ``zero`` makes. ValueError without both."""
        if state is None and self.zero is None:
            raise ValueError("[CellBuilder] initial_state() needs a state: this builder has no `zero`")
        return CellState(self, self.zero() if state is None and self.zero is not None else state)

    def __repr__(self) -> str:
        return f"<CellBuilder of {self.cell.__name__}>"


@part()
class CellState:
    """A state of a CellBuilder: ``add_input``, ``add_inputs`` and ``transduce`` as those of other builders."""

    _part_of = "CellBuilder"  # what messages name (needs.py)

    def __init__(self, builder: CellBuilder, state: Any, output: Any = None, prev: CellState | None = None) -> None:
        self._builder, self._state, self._output, self._prev = builder, state, output, prev

    def add_input(self, x: Any) -> CellState:
        """The state after one more input."""
        return self._after(x)[0]

    def add_inputs(self, xs: Iterable[Any]) -> list[CellState]:
        """The states after each of several inputs."""
        out, now = [], self
        for x in xs:
            now = now.add_input(x)
            out.append(now)
        return out

    def transduce(self, xs: Iterable[Any], *, lengths: Iterable[int] | None = None, reverse: bool = False) -> Any:
        """A list of the outputs after each of several inputs, with the loop in C.

        reverse: the inputs are read from the last to the first; the outputs keep the order of the inputs.
        lengths: the inputs are so many sentences, one behind the other, and each of these begins at this state.
        """
        of_a_file = hasattr(xs, "lengths")  # of a length that is not known before a file runs
        given: Any = xs if of_a_file or isinstance(xs, list) else list(xs)
        try:
            outputs, _, paired = scanned(self._builder.cell, self._state, given, reverse, lengths)
        except PLAIN as error:
            if not of_a_file:
                self._fed(error, _shapes_text(given))
            raise
        if of_a_file:
            from dynet_lite.onnx.makeup import sequences

            return sequences(outputs if paired else _shown(outputs))
        return outputs if paired else [_shown(s) for s in outputs]

    def _after(self, x: Any) -> tuple[CellState, bool]:
        """The state after x, and whether the cell gives an output of its own."""
        try:
            given = self._builder.cell(self._state, x)
        except PLAIN as error:
            self._fed(error, _shape_text(x))
            raise
        if made_alike(given, self._state):
            return CellState(self._builder, given, _shown(given), self), False
        if isinstance(given, tuple) and len(given) == 2 and made_alike(given[0], self._state):
            return CellState(self._builder, *given, self), True
        raise _core.not_a_step(self._builder.cell)

    def _fed(self, error: Exception, given: str) -> None:
        """Makes an error inside the cell say whose cell it is and what it got. The user's own words stay as they are."""
        about = f"the cell {self._builder.cell.__name__} got an input {given} in a state {_shape_text(self._state)}"
        if len(error.args) == 1 and str(error.args[0]).startswith("["):
            error.args = (f"{renamed(error, 'CellBuilder')}; {about}",)
        elif hasattr(error, "add_note"):  # from Python 3.11 on
            error.add_note(f"[CellBuilder] {about}")

    def output(self) -> Any:
        """What the cell gave besides the state; else h of the state, or its first part. None before any input."""
        return self._output

    def state(self) -> Any:
        """The state as the cell gave it."""
        return self._state

    def s(self) -> tuple[Any, ...]:
        """The parts of the state."""
        if isinstance(self._state, _core.Expression):
            return (self._state,)
        named = _core.named_parts(self._state)
        return tuple(self._state if named is None else named.values())

    def prev(self) -> CellState | None:
        """The state before the last input; None at the start."""
        return self._prev

    def b(self) -> CellBuilder:
        """The builder."""
        return self._builder


def _shapes_text(xs: list[Any]) -> str:
    """The shape of the first input that has another one than those before it; of all, if there is none."""
    shapes = [_shape_text(x) for x in xs]
    for k, shape in enumerate(shapes):
        if shape != shapes[0]:
            return f"{shape}, the inputs before it {shapes[0]} (number {k} of {len(xs)})"
    return shapes[0] if shapes else "of none"


def _shape_text(value: Any) -> str:
    """Shapes, in the structure that they are in."""
    named = _core.named_parts(value)
    if named is not None:
        return ", ".join(f"{name}={_shape_text(one)}" for name, one in named.items())
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_shape_text, value))})"
    return shown(value)


def _shown(state: Any) -> Any:
    named = _core.named_parts(state)
    if named is not None:
        return named["h"] if "h" in named else next(iter(named.values()))
    return state[0] if isinstance(state, (tuple, list)) else state
