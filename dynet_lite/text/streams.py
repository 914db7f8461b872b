"""Examples of files that need not fit into memory: read in windows, which are shuffled and cut into mini-batches one by one.

    stream = Stream(["a.txt", "b.txt.gz"], Plain(), batch=64, window=200)
    for epoch in range(1, 11):
        for batch in stream.batches(seed=1, epoch=epoch):   # or batches(...)[1200:], to go on after 1,200 mini-batches
            train([record.example() for record in batch])

In memory are the examples of one window. The order depends on the seed, the number of the epoch and the files alone:
every process of several gets the same mini-batches, and parses of each what it has to do. Does not know the engine.
"""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar, overload

from .batching import minibatches
from .lines import need_file
from .records import Place, Record, Source, records

__all__ = ["Batches", "Stream"]

E = TypeVar("E")


class Stream(Sequence[E], Generic[E]):
    """The examples of files, in order, read anew in each epoch and never all in memory.

    files: names, or pairs of names for parallel files; gzipped or not
    source: what the files hold: Plain(), Tagged("_"), Conllu() or Parallel()
    batch: examples in a mini-batch
    window: mini-batches in a window. One window is in memory at a time, is shuffled, and is sorted by length
    take: a function that makes the example from what `source` gives
    shard: (k, n) parses only the examples k, k + n, k + 2n, ...
    progress: called now and then with the number of bytes read, while examples are counted

    len(), `words` and slices of batches() need the number of examples. For that, the files are read once without
    parsing.
    """

    def __init__(
        self, files: Sequence[str | Sequence[str]], source: Source, *, batch: int, window: int = 200,
        take: Callable[[Any], E] | None = None, shard: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None,
    ) -> None:  # fmt: skip
        if batch < 1 or window < 1:
            raise ValueError(f"expected a batch and a window of at least 1, got {batch} and {window}")
        if not 0 <= shard[0] < shard[1]:
            raise ValueError(f"expected a shard (k, n) with 0 <= k < n, got {shard}")
        self.files = [(name,) if isinstance(name, (str, os.PathLike)) else tuple(name) for name in files]
        for names in self.files:
            if len(names) != source.files:
                raise ValueError(f"expected {source.files} files side by side, got {len(names)}")
            for name in names:
                need_file(name)
        self.source, self.batch, self.window, self.take, self.shard = source, batch, window, take, shard
        self.progress = progress
        self.sizes = [sum(os.path.getsize(name) for name in names) for names in self.files]
        self._index: _Index | None = None

    # ---- the examples in order -----------------------------------------------------------------------------------

    def records(self, start: Place | None = None) -> Iterator[tuple[Record, Place]]:
        """The records of all shards from a place on, each with the place that follows it."""
        take, parse = self.take, self.source.parse
        making = parse if take is None else lambda *args: take(parse(*args))
        return records(self.files, self.source, making, start or Place(0, 1, (0,) * self.source.files))

    def __iter__(self) -> Iterator[E]:
        first, step = self.shard
        for record, _ in islice(self.records(), first, None, step):
            yield record.example()

    def __len__(self) -> int:
        first, step = self.shard
        return -(-(self.counted.examples - first) // step) if self.counted.examples > first else 0

    @overload
    def __getitem__(self, at: int) -> E: ...
    @overload
    def __getitem__(self, at: slice) -> list[E]: ...
    def __getitem__(self, at: int | slice) -> Any:
        """Reads from the beginning: for a few examples."""
        if isinstance(at, slice):
            return list(islice(self, *at.indices(len(self))))
        if at < 0:
            at += len(self)
        for example in islice(self, at, at + 1):
            return example
        raise IndexError(f"example {at} of {len(self)}")

    @property
    def words(self) -> int:
        """The sum of the lengths of all examples."""
        return self.counted.words

    @property
    def fingerprint(self) -> int:
        """A digest of the files as they were when their examples were counted. Changed files have another one."""
        return zlib.crc32(repr(self.counted).encode())

    # ---- mini-batches ---------------------------------------------------------------------------------------------

    def batches(self, seed: int | None = 0, epoch: int = 1) -> Batches[E]:
        """The mini-batches of an epoch, each a list of Record. With seed None they come in the order of the files."""
        return Batches(self, seed, epoch)

    @property
    def counted(self) -> _Index:
        """What a first pass over the files has counted. It is made when it is first asked for."""
        if self._index is None:
            self._index = self._count()
        return self._index

    def _count(self) -> _Index:
        """Goes through all files and notes where each window begins."""
        index = _Index([], 0, 0, 0)
        width, left = self.batch * self.window * self.shard[1], 0
        place = Place(0, 1, (0,) * self.source.files)
        for record, after in self.records():
            if not left:
                index.starts.append(place)
                left = width
                if self.progress is not None:
                    self.progress(sum(self.sizes[: place.file]) + sum(place.bytes))
            left -= 1
            place = after
            index.examples += 1
            index.words += record.size
            index.digest = zlib.crc32("\n".join(record.lines).encode("utf-8", "surrogatepass"), index.digest)
        return index

    def _window(self, number: int, start: Place) -> tuple[list[Record], Place]:
        """The records of this shard in the window that begins at a place, and the place after them."""
        first, step = self.shard
        found, place = [], start
        for k, (record, after) in enumerate(islice(self.records(start), self.batch * self.window * step)):
            place = after
            if k % step == first:
                found.append(record)
        return found, place


@dataclass
class _Index:
    starts: list[Place]  # of windows
    examples: int
    words: int
    digest: int


@dataclass
class Batches(Generic[E]):
    """The mini-batches of one epoch of a Stream, read window by window. It has a len() and slices [n:], like a list."""

    stream: Stream[E]
    seed: int | None
    epoch: int
    start: int = 0

    def __len__(self) -> int:
        s = self.stream
        return max(0, -(-len(s) // s.batch) - self.start)

    def __getitem__(self, at: slice) -> Batches[E]:
        if not isinstance(at, slice) or at.stop is not None or at.step not in (None, 1) or (at.start or 0) < 0:
            raise TypeError("mini-batches of a stream have slices [n:] and nothing else")
        return Batches(self.stream, self.seed, self.epoch, self.start + (at.start or 0))

    def __iter__(self) -> Iterator[list[Record]]:
        s = self.stream
        number, skip = divmod(self.start, s.window)
        if number:
            if number >= len(s.counted.starts):
                return
            place = s.counted.starts[number]
        else:
            place = Place(0, 1, (0,) * s.source.files)
        while True:
            window, place = s._window(number, place)
            if not window:
                return
            yield from islice(self._cut(window, number), skip, None)
            del window
            number, skip = number + 1, 0

    def _cut(self, window: list[Record], number: int) -> Iterator[list[Record]]:
        s = self.stream
        if self.seed is None:
            return minibatches(window, s.batch)
        return minibatches(
            window, s.batch, seed=random.Random(f"{self.seed} {self.epoch} {number}"), key=len, pool=s.window
        )
