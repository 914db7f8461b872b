"""The files of pairs that a program is given: two parallel files or files of columns, read whole or piece by piece."""

from __future__ import annotations

from collections.abc import Sequence

from dynet_lite.errors import DataError

from .forms import BARS
from .lines import need_file, numbered_lines
from .parallel import Pair, read_pairs, read_parallel, source_tokens
from .records import Columns, Parallel, Source

__all__ = ["pair_source", "read_pair_files"]


def read_pair_files(paths: Sequence[str], letters: bool = False) -> list[Pair]:
    """Pairs from files of columns (see read_pairs()), or from two parallel files (see read_parallel()).

    Two files are parallel if their first lines have neither a tab nor |||.
    """
    if not _are_parallel(paths):
        return [pair for path in paths for pair in read_pairs(path, letters)]
    pairs = read_parallel(paths[0], paths[1])
    if letters:
        sides = ([source_tokens(" ".join(side), True) for side in (pair.source, pair.target)] for pair in pairs)
        pairs = [Pair(source, target) for source, target in sides]
    return pairs


def pair_source(paths: Sequence[str], letters: bool = False) -> tuple[list[tuple[str, ...]], Source]:
    """For a Stream of what read_pair_files() gives: its files and its source.

    In files of columns the first line tells how both sides are separated. DataError for three columns: which of them
    holds the features is known after the last line only.
    """
    if _are_parallel(paths):
        return [tuple(paths)], Parallel(letters)
    marks = set()
    for path in paths:
        number, line = next(((n, line) for n, line in numbered_lines(path) if line.strip()), (1, ""))
        marks.add("\t" if "\t" in line else BARS)
        if line.count("\t") > 1:
            raise DataError(
                f"{path}:{number}: expected SOURCE<tab>TARGET, since the file is read piece by piece; got three columns"
            )
    if len(marks) > 1:
        raise DataError(
            f"{', '.join(paths)}: expected the same kind of files, got both SOURCE<tab>TARGET and SOURCE ||| TARGET"
        )
    return [(path,) for path in paths], Columns(marks.pop(), letters)


def _are_parallel(paths: Sequence[str]) -> bool:
    for path in paths:
        need_file(path)
    first = [next(numbered_lines(path), (0, ""))[1] for path in paths]
    return len(paths) == 2 and not any("\t" in line or BARS in line for line in first)
