"""Word vectors between files and tables, under the names that DyNet has in C++ only.

The formats and the reader are dynet_lite.text's: a word and its numbers a line, with or without word2vec's first line;
and word2vec's binary form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynet_lite._core import LookupParameters
from dynet_lite.compat.words import Dict
from dynet_lite.files import replacing

__all__ = ["fill_from_embeddings", "read_pretrained_embeddings", "save_pretrained_embeddings"]

Vector = np.ndarray[Any, np.dtype[np.float32]]


def read_pretrained_embeddings(fname: Any, d: Dict) -> dict[int, Vector]:
    """{id: float32 vector} of the words of a file. A Dict that is not frozen takes in all of them.

    Of a frozen one, words of the file that it does not have are left out. DataError (a ValueError) when a line is malformed.
    """
    from dynet_lite.text.vectors import read_vectors

    found = read_vectors(fname, d if d.is_frozen() else None)
    return {d.convert(word): vector for word, vector in zip(found.words, found.matrix, strict=True)}


def fill_from_embeddings(p: LookupParameters, fname: Any, dic: Any) -> int:
    """Set rows of a table (V, D) to the vectors of a file, for the words of dic (a dict, Dict or Vocab: word to row).

    Rows of words that are not in the file stay as they are. Returns how many were set. ValueError when the vectors do not have
    D numbers, IndexError when an id is no row; then nothing has changed.
    """
    from dynet_lite.text.vectors import read_vectors

    ids = {word: dic[word] for word in dic}
    values = p._values()
    if ids and not 0 <= min(ids.values()) <= max(ids.values()) < len(values):
        raise IndexError(f"[fill_from_embeddings] the ids go from {min(ids.values())} to {max(ids.values())}; {p.name()} "
                         f"has {len(values)} rows")  # fmt: skip
    found = read_vectors(fname, ids)
    if values.shape != (len(values), found.size):
        raise ValueError(f"[fill_from_embeddings] vectors of {found.size} numbers; {p.name()} has shape {p.shape()}")
    for word, vector in zip(found.words, found.matrix, strict=True):
        values[ids[word]] = vector
    p.init_from_array(values)
    return len(found)


def save_pretrained_embeddings(fname: Any, d: Dict, lp: LookupParameters) -> None:
    """Write the rows of a table for the words of d, a line each, as GloVe does.

    ValueError when there are too few rows, or when the file could not be read again: because of NaN or infinity, a word with a
    line end or a tab before a digit, or a first word that is empty, has a blank, or looks like a header with its number. Then
    nothing is written.
    """
    from dynet_lite.text.vectors import reads

    words = d.get_words()
    if len(words) > len(lp):
        raise ValueError(f"[save_pretrained_embeddings] {len(words)} words, but {lp.name()} has {len(lp)} rows")
    bad = [word for word in words if "\n" in word] + [word for word in words[:1] if not word or " " in word]
    if bad:  # the first line tells how many numbers there are
        raise ValueError(f"[save_pretrained_embeddings] a word has no line end, the first one no blank; got {bad[0]!r}")
    rows = lp._values()[: len(words)]
    if not np.isfinite(rows).all():
        raise ValueError(f"[save_pretrained_embeddings] {lp.name()} has NaN or infinity")

    def line(word: str, row: Vector) -> str:
        return word + "".join(f" {v:.9g}" for v in row.ravel(order="F"))

    for i, (word, row) in enumerate(zip(words, rows, strict=True)):
        if (i == 0 or "\t" in word) and not reads(line(word, row), word, row.size, first=i == 0):
            raise ValueError(
                f"[save_pretrained_embeddings] the line {line(word, row)!r} would not be read as the word {word!r}"
            )
    with replacing(fname) as f:
        for word, row in zip(words, rows, strict=True):
            f.write((line(word, row) + "\n").encode())
