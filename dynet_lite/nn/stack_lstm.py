"""A stack whose contents an LSTM summarises (Dyer, Ballesteros, Ling, Matthews, Smith 2015)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dynet_lite import Expression
from dynet_lite.needs import part

__all__ = ["StackLSTM"]


@part()
class StackLSTM:
    """A stack of vectors, with the state of a recurrent network for each height of the stack.

        stack = StackLSTM(builder.initial_state().add_input(start))  # empty
        stack.push(x)
        stack.output()  # the network's output for the whole stack

    `start` stands for the empty stack, so that it has an output, too. Popping computes nothing, because the state
    below is still there. If all pushes are known beforehand, as in training on gold actions, one call for all of them
    is faster: `state.transduce(items, after=...)`.
    """

    __slots__ = ("_items", "_states")

    def __init__(self, state: Any) -> None:
        if state.output() is None:
            raise ValueError("[StackLSTM] the state of an empty stack needs an output: give it an input")
        self._items: list[Expression] = []
        self._states = [state]

    def push(self, item: Expression) -> None:
        """Adds an item on top; the network reads it."""
        self._states.append(self._states[-1].add_input(item))
        self._items.append(item)

    def extend(self, items: Iterable[Expression]) -> None:
        """push() for each item, in one call."""
        items = list(items)
        self._states += self._states[-1].add_inputs(items)
        self._items += items

    def pop(self) -> Expression:
        """Removes the last item. IndexError if the stack is empty."""
        item = self._items.pop()
        self._states.pop()
        return item

    def copy(self) -> StackLSTM:
        """An independent stack of the same items."""
        new = StackLSTM(self._states[0])
        new._items, new._states = self._items[:], self._states[:]
        return new

    def output(self) -> Expression:
        """The network's output for the whole stack."""
        output: Expression = self._states[-1].output()
        return output

    def __getitem__(self, i: int) -> Expression:
        return self._items[i]

    def __len__(self) -> int:
        return len(self._items)
