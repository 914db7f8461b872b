"""Memory in which the ranks of one machine lay down numbers for one another: each writes its own, all read.

A message between two processes takes rounds in which both must look; here a rank lays down what it has and goes on, and
everyone adds up for himself, in the order of the ranks. Each rank has three files without a name: a list of what it has laid
down, with the heads of its last conversations, and two that take turns. A rank writes over one of these two only when all
others have taken what lay there. Nothing is left when processes end, however they end. Linux only; elsewhere, and between
machines, MPI sends everything. The memory itself is in cext/bindings/board.pxi.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dynet_lite import _core

__all__ = ["Board", "Laid", "LaidSum", "Said"]

Array = np.ndarray[Any, Any]
Address = tuple[int, list[int], int]

MOST_RANKS = 4  # everyone reads what all have: with more ranks messages are cheaper
LARGE = 4 << 20  # bytes of a sum that MPI adds up as fast, and behind the backward pass
MOST = 64 << 20  # bytes of sums that lie there at once
NONE: Address = (0, [], 0)


class Board(_core._Board):
    """What this rank lays down, and what the others have laid down."""

    @staticmethod
    def possible(ranks: int) -> bool:
        """Whether ranks that are all on this machine can do this; DYNET_LITE_SHARED_MEMORY=0 forbids it."""
        forbidden = os.environ.get("DYNET_LITE_SHARED_MEMORY", "1") == "0"
        return hasattr(os, "memfd_create") and ranks <= MOST_RANKS and not forbidden


class Said:
    """The heads of a conversation, like a request of MPI."""

    def __init__(self, board: Board, serial: int, head: tuple[float, ...]) -> None:
        self._board, self._serial = board, serial
        board.say(serial, head)

    def Test(self) -> bool:  # noqa: N802 (as MPI names it)
        """Whether all ranks have said theirs."""
        return self._board.all_said(self._serial)

    def alike(self, n: int) -> bool:
        """Whether the first n numbers of all ranks are the same, after Test()."""
        return self._board.alike(self._serial, n)

    def heads(self) -> Array:
        """Of all ranks, (ranks, numbers), after Test()."""
        return self._board.heads(self._serial)


class Laid:
    """Numbers that this rank has laid down, and those of the others, like a request of MPI. They are good until taken()."""

    def __init__(self, board: Board, number: int) -> None:
        self._board, self._number = board, number

    def Test(self) -> bool:  # noqa: N802
        """Whether all ranks have laid down theirs."""
        return self._board.complete(self._number)

    def flags(self, n: int) -> Array:
        """How many ranks have a gradient of each of the n `flagged`, the last numbers of the gradients."""
        return self._board.flags(self._number, n)

    def sum_grads(self, parameters: list[Any], touched: Array) -> None:
        """The sums of what all ranks have become the gradients; see _core._sum_grads()."""
        self._board.sum_grads(self._number, parameters, touched)

    def set_rows(self, tables: list[Any]) -> None:
        """The same for rows of tables, which then are taken; see _core._set_rows()."""
        self._board.set_rows(self._number, tables)
        self.taken()

    def taken(self) -> None:
        """This rank needs them no longer."""
        self._board.taken(self._number)


class LaidSum(Laid):
    """A sum over the ranks: `numbers`, float32, become it."""

    def __init__(self, board: Board, numbers: Array) -> None:
        super().__init__(board, board.lay(numbers.view(np.uint8), True))
        self._numbers, self._done = numbers, False

    def Test(self) -> bool:  # noqa: N802
        """Adds up if all ranks have laid down theirs; whether that is done. ValueError if they differ in size."""
        if self._done or not super().Test():
            return self._done
        first, *others = [part.view(np.float32) for part in self._board.read(self._number)]
        if any(part.size != self._numbers.size for part in (first, *others)):
            raise ValueError("[distributed] the ranks add up arrays of different sizes")
        for k, part in enumerate(others):
            np.add(self._numbers if k else first, part, out=self._numbers)
        self.taken()
        self._done = True
        return True
