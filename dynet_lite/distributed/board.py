"""Memory in which the ranks of one machine lay down numbers for one another: each writes its own, all read.

A message between two processes takes rounds in which both must look; here a rank lays down what it has and goes on, and
everyone adds up for himself, in the order of the ranks. Each rank has three files without a name: a list of what it has laid
down, and two that take turns. A rank writes over one of them only when all others have taken what lay there. Nothing is left
when processes end, however they end. Linux on x86 only, where what is written first is also seen first; elsewhere, and
between machines, MPI sends everything.
"""

from __future__ import annotations

import mmap
import os
import platform
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["Board", "Laid", "LaidSum"]

Array = np.ndarray[Any, Any]
Address = tuple[int, list[int], int]

SLOTS = 1 << 14  # of the list: so many things may lie there at once
MOST_RANKS = 4  # everyone reads what all have: with more ranks messages are cheaper
LARGE = 4 << 20  # bytes of a sum that MPI adds up as fast, and behind the backward pass
MOST = 64 << 20  # bytes of sums that lie there at once
SIGN, LAID, TAKEN, LIST = 0, 1, 2, 3  # places of the list
NONE: Address = (0, [], 0)


class _Memory:
    """A file that lies in memory. It may grow in another process."""

    def __init__(self, file: int) -> None:
        self.file = file
        self._bytes: Array = np.empty(0, np.uint8)

    def reserve(self, size: int) -> None:
        if size > self._bytes.size:
            os.ftruncate(self.file, max(size, 2 * self._bytes.size, 1 << 16))

    def part(self, start: int, end: int) -> Array:
        if end > self._bytes.size:
            self._bytes = np.frombuffer(mmap.mmap(self.file, os.fstat(self.file).st_size), np.uint8)
        return self._bytes[start:end]

    def list(self) -> memoryview:
        """Its numbers: one by one a memoryview is faster than an array."""
        return memoryview(mmap.mmap(self.file, 8 * (LIST + 3 * SLOTS))).cast("q")


class Board:
    """What this rank lays down, and what the others have laid down."""

    @staticmethod
    def possible(ranks: int) -> bool:
        """Whether ranks that are all on this machine can do this; DYNET_LITE_SHARED_MEMORY=0 forbids it."""
        here = hasattr(os, "memfd_create") and platform.machine() in ("x86_64", "AMD64")
        return here and ranks <= MOST_RANKS and os.environ.get("DYNET_LITE_SHARED_MEMORY", "1") != "0"

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self._own = [_Memory(os.memfd_create("dynet_lite")) for _ in range(3)]
        os.ftruncate(self._own[0].file, 8 * (LIST + 3 * SLOTS))
        self._list = self._own[0].list()
        self._list[SIGN] = int.from_bytes(os.urandom(7), "little")
        self._files: list[list[_Memory]] = []
        self._lists: list[memoryview] = []
        self._half, self._at = 0, 0
        self._last = [0, 0]  # the number of what was laid into each half last
        self._lying: dict[int, int] = {}  # what this rank has not taken yet: number -> bytes of a sum
        self.lying = 0  # bytes of sums

    @property
    def address(self) -> Address:
        """For open() of the others."""
        return os.getpid(), [m.file for m in self._own], self._list[SIGN]

    def open(self, addresses: Sequence[Address]) -> bool:
        """Opens what the others have; False where that cannot be."""
        try:
            for rank, (process, files, sign) in enumerate(addresses):
                mine = rank == self.rank
                paths = [f"/proc/{process}/fd/{f}" for f in files]
                memory = self._own if mine else [_Memory(os.open(path, os.O_RDWR | os.O_CLOEXEC)) for path in paths]
                self._files.append(memory)
                self._lists.append(memory[0].list())
                if self._lists[-1][SIGN] != sign:
                    return False
        except (IndexError, OSError, ValueError):
            return False
        return True

    # ---- a step ----------------------------------------------------------------------------------------------------

    def has_room(self) -> bool:
        """Whether the others have taken what lies where this rank would write."""
        return bool(self._lying) or all(one[TAKEN] >= self._last[1 - self._half] for one in self._lists)

    def lay(self, size: int, fill: Callable[[Array], Any], of_sum: bool = False) -> int:
        """Lays down what fill(array) writes, uint8; its number. There must be room."""
        if not self._lying:
            self._half, self._at = 1 - self._half, 0
        elif len(self._lying) >= SLOTS:
            raise RuntimeError(f"[distributed] {SLOTS} messages at once are too many; larger buckets make fewer")
        number = self._list[LAID] + 1
        memory = self._own[1 + self._half]
        memory.reserve(self._at + size)
        fill(memory.part(self._at, self._at + size))
        place = LIST + 3 * (number % SLOTS)
        self._list[place], self._list[place + 1], self._list[place + 2] = self._half, self._at, size
        self._list[LAID] = number  # from here on others may read it
        self._at += -(-size // 64) * 64
        self._last[self._half] = number
        self._lying[number] = size if of_sum else 0
        self.lying += self._lying[number]
        return number

    def complete(self, number: int) -> bool:
        """Whether all ranks have laid down what has this number."""
        return all(one[LAID] >= number for one in self._lists)

    def read(self, number: int) -> list[Array]:
        """What all ranks have laid down under this number: good until taken()."""
        out, place = [], LIST + 3 * (number % SLOTS)
        for files, one in zip(self._files, self._lists, strict=True):
            half, at, size = one[place], one[place + 1], one[place + 2]
            out.append(files[1 + half].part(at, at + size))
        return out

    def taken(self, number: int) -> None:
        """This rank needs it no longer."""
        self.lying -= self._lying.pop(number)
        self._list[TAKEN] = min(self._lying) - 1 if self._lying else self._list[LAID]


class Laid:
    """Numbers that this rank has laid down, and those of the others, like a request of MPI.

    fill(array): writes so many float32.
    """

    def __init__(self, board: Board, count: int, fill: Callable[[Array], Any]) -> None:
        self._board = board
        self._number = board.lay(4 * count, lambda place: fill(place.view(np.float32)), True)

    def Test(self) -> bool:  # noqa: N802 (as MPI names it)
        """Whether all ranks have laid down theirs."""
        return self._board.complete(self._number)

    def parts(self) -> list[Array]:
        """The numbers of all ranks: good until taken()."""
        return [part.view(np.float32) for part in self._board.read(self._number)]

    def taken(self) -> None:
        """This rank needs them no longer."""
        self._board.taken(self._number)


class LaidSum(Laid):
    """A sum over the ranks: `numbers` become it."""

    def __init__(self, board: Board, numbers: Array) -> None:
        super().__init__(board, numbers.size, lambda place: np.copyto(place, numbers))
        self._numbers, self._done = numbers, False

    def Test(self) -> bool:  # noqa: N802
        """Adds up if all ranks have laid down theirs; whether that is done. ValueError if they differ in size."""
        if self._done or not super().Test():
            return self._done
        first, *others = self.parts()
        if any(part.size != self._numbers.size for part in (first, *others)):
            raise ValueError("[distributed] the ranks add up arrays of different sizes")
        for k, part in enumerate(others):
            np.add(self._numbers if k else first, part, out=self._numbers)
        self.taken()
        self._done = True
        return True
