"""StackedRNNState: states of several builders on top of each other, seen as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dynet_lite._core import Expression
from dynet_lite.needs import part


@part()
class StackedRNNState:
    """States of which each takes the output of the one before as its input.

    ``StackedRNNState([first.initial_state(), second.initial_state()])``
    """

    def __init__(self, states: Iterable[Any], prev: StackedRNNState | None = None) -> None:
        self._states = tuple(states)
        if not self._states:
            raise ValueError("[StackedRNNState] needs at least one state")
        self._prev = prev

    def add_input(self, x: Any) -> StackedRNNState:
        """The states after one more input."""
        states = []
        for state in self._states:
            states.append(state.add_input(x))
            x = states[-1].output()
        return StackedRNNState(states, self)

    def add_inputs(self, xs: Iterable[Any]) -> list[StackedRNNState]:
        """The stacked states after each of several inputs."""
        out: list[StackedRNNState] = []
        for x in xs:
            out.append((out[-1] if out else self).add_input(x))
        return out

    def transduce(
        self,
        xs: Iterable[Any],
        after: Iterable[int] | None = None,
        *,
        lengths: Iterable[int] | None = None,
        reverse: bool = False,
    ) -> list[Expression]:
        """The outputs after each of several inputs; `after`, `lengths` and `reverse` as for the states themselves."""
        out: Any = xs if hasattr(xs, "transduced") else list(xs)  # one of a length that is not known: dynet_lite/onnx
        lists = {"after": after, "lengths": lengths}
        how: dict[str, Any] = {name: list(given) for name, given in lists.items() if given is not None}
        if reverse:
            how["reverse"] = reverse
        for state in self._states:
            out = state.transduce(out, **how)
        return out  # type: ignore[no-any-return]

    def output(self) -> Expression | None:
        """The output of the last state; None before any input."""
        output: Expression | None = self._states[-1].output()
        return output

    def h(self) -> tuple[Expression, ...]:
        """h of each layer of each state."""
        return tuple(e for state in self._states for e in state.h())

    def s(self) -> tuple[Expression, ...]:
        """s() of each state, one after the other."""
        return tuple(e for state in self._states for e in state.s())

    def prev(self) -> StackedRNNState | None:
        """The stacked state before the last input; None at the start."""
        return self._prev
