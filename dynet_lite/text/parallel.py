"""Pairs of sequences: two files line by line, or one file with two columns and a tab between."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from dynet_lite.errors import DataError

from .lines import numbered_lines

__all__ = ["Pair", "read_pair_files", "read_pairs", "read_parallel"]


@dataclass(slots=True)
class Pair:
    """What is read and what is to be written. `others` are further right answers, for scores."""

    source: list[str]
    target: list[str]
    others: list[list[str]] = field(default_factory=list)

    @property
    def references(self) -> list[list[str]]:
        """All right answers."""
        return [self.target, *self.others]

    def __len__(self) -> int:
        return len(self.source)


def read_parallel(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> list[Pair]:
    """Line n of one file and line n of the other, words with blanks between. Pairs of two empty lines are left out.

    DataError when one file is longer, or a line is empty in one file only.
    """
    left, right = list(numbered_lines(source)), list(numbered_lines(target))
    if len(left) != len(right):
        short, name = (len(left), source) if len(left) < len(right) else (len(right), target)
        raise DataError(f"{os.fspath(name)}:{short + 1}: expected {max(len(left), len(right))} lines, got {short}")
    out = []
    for (number, a), (_, b) in zip(left, right, strict=True):
        pair = Pair(a.split(), b.split())
        if bool(pair.source) != bool(pair.target):
            name = target if pair.source else source
            raise DataError(f"{os.fspath(name)}:{number}: expected text, since the other file has some in this line")
        if pair.source:
            out.append(pair)
    return out


def read_pairs(path: str | os.PathLike[str]) -> list[Pair]:
    """Lines SOURCE<tab>TARGET, words with blanks between. Empty lines are skipped; another line is a DataError."""
    out = []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) != 2 or not all(column.strip() for column in columns):
            raise DataError(f"{os.fspath(path)}:{number}: expected SOURCE<tab>TARGET, got {line[:60]!r}")
        out.append(Pair(columns[0].split(), columns[1].split()))
    return out


def read_pair_files(paths: Sequence[str]) -> list[Pair]:
    """Files with two columns, or two parallel files: two without a tab in the first line."""
    if len(paths) == 2 and not any("\t" in next(numbered_lines(path), (0, ""))[1] for path in paths):
        return read_parallel(paths[0], paths[1])
    return [pair for path in paths for pair in read_pairs(path)]
