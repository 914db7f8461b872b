"""Examples of files one after the other, cut out and not yet parsed: how long they are, and where the next begins.

Cutting is cheap beside parsing. Several processes that share the examples of a file all cut, and each parses its own. A place in
a file is known exactly, so that reading can begin there. Sees nothing but the standard library and the readers of single files.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dynet_lite.errors import DataError

from .conllu import Sentence, parse_conllu
from .forms import split_tagged
from .lines import split_words, unpacked
from .parallel import Pair, source_tokens

__all__ = ["Columns", "Conllu", "Parallel", "Place", "Plain", "Record", "Source", "Tagged", "records"]

Line = tuple[int, str]  # its number, and its text without the end


class Place(NamedTuple):
    """Where a record begins: which file, which line of it, and how many bytes stand before it (in each of parallel files)."""

    file: int = 0
    line: int = 1
    bytes: tuple[int, ...] = (0,)


class Source:
    """What a file of a Stream holds: how lines become examples.

    `files` is the number of files side by side. With `blocks`, an example ends at an empty line instead of at each
    line. length(lines) is the length of the example that parse(lines, name) makes; 0 means that there is none.
    """

    files: ClassVar[int] = 1
    blocks: ClassVar[bool] = False

    def length(self, lines: Sequence[str]) -> int:
        """The length of the example that parse() makes of these lines; 0: there is none."""
        raise NotImplementedError

    def parse(self, lines: Sequence[str], names: Sequence[str], number: int) -> Any:
        """The example of these lines, one or more of each file. Messages give the names of the files and the line number."""
        raise NotImplementedError


class Plain(Source):
    """A sentence per line, words separated by blanks, for a Stream. An example is a list of words."""

    def length(self, lines: Sequence[str]) -> int:
        return len(split_words(lines[0]))

    def parse(self, lines: Sequence[str], names: Sequence[str], number: int) -> list[str]:
        return split_words(lines[0])


class Tagged(Plain):
    """A sentence per line, each word followed by `mark` and its tag, for a Stream. An example is a Sentence."""

    def __init__(self, mark: str = "_") -> None:
        self.mark = mark

    def parse(self, lines: Sequence[str], names: Sequence[str], number: int) -> Sentence:  # type: ignore[override]
        return Sentence(*split_tagged(lines[0], self.mark, f"{names[0]}:{number}"))


class Conllu(Source):
    """CoNLL-U, for a Stream. An example is a Sentence."""

    blocks = True

    def length(self, lines: Sequence[str]) -> int:
        words = sum(line.partition("\t")[0].isdigit() for line in lines)
        return words or int(any(line[0] != "#" for line in lines))  # what is malformed is not passed over

    def parse(self, lines: Sequence[str], names: Sequence[str], number: int) -> Sentence:
        for sentence in parse_conllu(lines, names[0], number):
            return sentence
        raise DataError(f"{names[0]}:{number}: expected a sentence, got no word that begins with its number")


class Parallel(Source):
    """Two files side by side, for a Stream: line n of one and line n of the other make a Pair."""

    files = 2

    def __init__(self, letters: bool = False) -> None:
        self.letters = letters

    def length(self, lines: Sequence[str]) -> int:
        return next((n for n in map(len, self._sides(lines)) if n), 0)

    def parse(self, lines: Sequence[str], names: Sequence[str], number: int) -> Pair:
        source, target = self._sides(lines)
        if not source or not target:
            name = names[0 if target else 1]
            raise DataError(f"{name}:{number}: expected text, since the other file has some in this line")
        return Pair(source, target)

    def _sides(self, lines: Sequence[str]) -> list[list[str]]:
        sides = [split_words(line) for line in lines]
        return [source_tokens(" ".join(side), True) for side in sides] if self.letters else sides


class Columns(Source):
    """A pair a line, `mark` between source and target: a Pair. letters: as for Parallel."""

    def __init__(self, mark: str = "\t", letters: bool = False) -> None:
        self.mark, self.letters = mark, letters

    def length(self, lines: Sequence[str]) -> int:
        source = lines[0].partition(self.mark)[0]
        return len(source_tokens(source, self.letters)) or int(bool(split_words(lines[0])))  # malformed: see parse()

    def parse(self, lines: Sequence[str], names: Sequence[str], number: int) -> Pair:
        columns = [column.strip(" \t\r") for column in lines[0].split(self.mark)]
        if len(columns) != 2 or not all(columns):
            wanted = "SOURCE<tab>TARGET" if self.mark == "\t" else f"SOURCE {self.mark} TARGET"
            raise DataError(f"{names[0]}:{number}: expected {wanted}, got {lines[0][:60]!r}")
        source, target = (source_tokens(column, self.letters) for column in columns)
        return Pair(source, target)


@dataclass(slots=True, eq=False)
class Record:
    """An example of a Stream that has not been parsed yet. len() is its length."""

    lines: Sequence[str]
    size: int
    names: Sequence[str]
    number: int  # of its first line
    parse: Callable[[Sequence[str], Sequence[str], int], Any]

    def __len__(self) -> int:
        return self.size

    def example(self) -> Any:
        """The parsed example. A malformed one is a DataError with file and line."""
        return self.parse(self.lines, self.names, self.number)


def records(
    entries: Sequence[Sequence[str]], source: Source, parse: Callable[..., Any], start: Place
) -> Iterator[tuple[Record, Place]]:
    """Each example of the files from `start` on, with the place at which the next begins.

    entries: for each file its name, or of parallel files their names. DataError for what is no UTF-8, a damaged packed file, or
    parallel files that have not the same number of lines.
    """
    for index in range(start.file, len(entries)):
        names = entries[index]
        at = start if index == start.file else Place(index, 1, (0,) * source.files)
        cut = _blocks if source.blocks else _rows
        for lines, number, place in cut(names, at):
            if size := source.length(lines):
                yield Record(lines, size, names, number, parse), place


def _rows(names: Sequence[str], start: Place) -> Iterator[tuple[list[str], int, Place]]:
    """Line by line, of all files at once."""
    if len(names) == 1:
        for number, (line, after) in enumerate(_lines(names[0], start.line, start.bytes[0]), start.line):
            yield [line], number, Place(start.file, number + 1, (after,))
        return
    sides = [_lines(name, start.line, at) for name, at in zip(names, start.bytes, strict=True)]
    number = start.line
    while True:
        found = [next(side, None) for side in sides]
        if None in found:
            break
        rows = [row for row in found if row is not None]
        place = Place(start.file, number + 1, tuple(after for _, after in rows))
        yield [line for line, _ in rows], number, place
        number += 1
    if any(row is not None for row in found):
        name = next(name for name, row in zip(names, found, strict=True) if row is None)
        raise DataError(f"{name}:{number}: expected as many lines as in the other file, got {number - 1}")


def _blocks(names: Sequence[str], start: Place) -> Iterator[tuple[list[str], int, Place]]:
    """The lines up to an empty one, or to the end of the file."""
    block: list[str] = []
    first = number = start.line
    after = start.bytes[0]
    for line, after in _lines(names[0], start.line, start.bytes[0]):
        number += 1
        if line and not line.isspace():
            block.append(line)
            continue
        if block:
            yield block, first, Place(start.file, number, (after,))
        block, first = [], number
    if block:
        yield block, first, Place(start.file, number, (after,))


def _lines(name: str, number: int, at: int) -> Iterator[tuple[str, int]]:
    """The lines from byte `at` on, which is where line `number` begins, with the byte after each. Bytes are those of
    the text, also
    where gzip has packed it: then what stands before has to be unpacked once more."""
    with open(name, "rb") as packed:
        try:
            file = unpacked(packed)
            file.seek(at)
            for line in file:
                at += len(line)
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise DataError(f"{name}:{number}: expected UTF-8 text, {error.reason}") from None
                yield text.rstrip("\r\n"), at
                number += 1
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise DataError(f"{os.fspath(name)}: expected a whole file packed by gzip, got a damaged one") from None
