"""A stack whose contents an LSTM summarises (Dyer, Ballesteros, Ling, Matthews, Smith 2015)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dynet_lite import Expression

__all__ = ["StackLSTM"]


class StackLSTM:
    """A list of vectors that grows and shrinks at its end, with the state of a recurrent network after each of them.

    ``StackLSTM(state)`` is empty; `state` is what stands for the empty stack: a state of a recurrent builder that has
    an output, such as ``builder.initial_state().add_input(start)``. Popping computes nothing: the state below is
    still there. If all pushes are known beforehand, as in training on gold actions, one call for all of them is
    cheaper: ``state.transduce(items, after=...)``.
    """

    __slots__ = ("_items", "_states")

    def __init__(self, state: Any) -> None:
        if state.output() is None:
            raise ValueError("[StackLSTM] the state of an empty stack needs an output: give it an input")
        self._items: list[Expression] = []
        self._states = [state]

    def push(self, item: Expression) -> None:
        self._states.append(self._states[-1].add_input(item))
        self._items.append(item)

    def extend(self, items: Iterable[Expression]) -> None:
        """push() of each, cheaper."""
        items = list(items)
        self._states += self._states[-1].add_inputs(items)
        self._items += items

    def pop(self) -> Expression:
        """Takes off the last item. IndexError when there is none."""
        item = self._items.pop()
        self._states.pop()
        return item

    def copy(self) -> StackLSTM:
        """A stack of the same items that grows and shrinks by itself."""
        new = StackLSTM(self._states[0])
        new._items, new._states = self._items[:], self._states[:]
        return new

    def output(self) -> Expression:
        """The output of the network for the whole stack."""
        output: Expression = self._states[-1].output()
        return output

    def __getitem__(self, i: int) -> Expression:
        return self._items[i]

    def __len__(self) -> int:
        return len(self._items)
