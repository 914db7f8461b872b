"""Pretrained word vectors in text files: word2vec's (a first line with two numbers) and GloVe's (without)."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any

from dynet_lite.errors import DataError

from .lines import numbered_lines

__all__ = ["WordVectors", "read_vectors"]

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float32]]


class WordVectors:
    """Words and the matrix of their vectors, a row each (float32)."""

    def __init__(self, words: list[str], matrix: Matrix) -> None:
        self.words, self.matrix = words, matrix
        self._rows = {word: i for i, word in enumerate(words)}

    @property
    def size(self) -> int:
        """Numbers of a vector."""
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return self.row(word) is not None

    def row(self, word: object) -> int | None:
        """The row of a word, or else of the word in lower case."""
        row = self._rows.get(word)  # type: ignore[call-overload]
        return self._rows.get(word.lower()) if row is None and isinstance(word, str) else row

    def fill(self, table: Matrix, words: Iterable[str]) -> int:
        """Puts the vector of each of `words` that has one in its row of `table`, (words, size); how many that were."""
        if table.shape[1] != self.size:
            raise DataError(f"the pretrained vectors have {self.size} numbers each, expected {table.shape[1]}")
        found = 0
        for i, word in enumerate(words):
            row = self.row(word)
            if row is not None:
                table[i] = self.matrix[row]
                found += 1
        return found


def read_vectors(path: str | os.PathLike[str], keep: Container[str] | None = None) -> WordVectors:
    """The vectors of a text file (or .gz); with `keep`, only of words in it, as they stand or in lower case.

    A malformed file is a DataError that names the line. Of a word that comes twice the first vector stays.
    """
    import numpy as np  # here, since most users of this package have no vectors

    name = os.fspath(path)
    words: dict[str, None] = {}
    rows: list[Matrix] = []
    size = 0
    for number, line in numbered_lines(path):
        parts = line.rstrip(" \t").split(" ")
        if number == 1 and len(parts) == 2 and all(p.isascii() and p.isdigit() for p in parts):
            size = int(parts[1])
            continue
        if not line.strip():
            continue
        size = size or len(parts) - 1
        if size < 1 or len(parts) <= size:
            raise DataError(f"{name}:{number}: expected a word and {max(size, 1)} numbers, got {len(parts) - 1} numbers")
        word = " ".join(parts[:-size])  # some words of GloVe files have blanks
        if word in words or (keep is not None and word not in keep):
            continue
        try:
            row = np.array(parts[-size:], dtype=np.float32)
        except ValueError:
            raise DataError(f"{name}:{number}: expected {size} numbers after {word!r}") from None
        if not np.isfinite(row).all():
            raise DataError(f"{name}:{number}: expected finite numbers after {word!r}")
        words[word] = None
        rows.append(row)
    if not size:
        raise DataError(f"{name}: expected word vectors, got an empty file")
    return WordVectors(list(words), np.stack(rows) if rows else np.zeros((0, size), np.float32))
