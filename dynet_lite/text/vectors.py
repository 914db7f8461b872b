"""Pretrained word vectors in files: of word2vec, as text or binary, and of GloVe, as text without a first line."""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Container, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from dynet_lite.errors import DataError

from .lines import need_file, numbered_lines, unpacked

__all__ = ["WordVectors", "read_vectors"]

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float32]]

_TAB = re.compile(r"\t(?=[-+]?\.?[0-9])")
_LONGEST = 10_000  # bytes of a word or of a first line; what goes on for longer is none


class WordVectors:
    """Words and their vectors, the rows of a float32 matrix."""

    def __init__(self, words: list[str], matrix: Matrix) -> None:
        self.words, self.matrix = words, matrix
        self._rows = {word: i for i, word in enumerate(words)}

    @property
    def size(self) -> int:
        """How many numbers a vector has."""
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
        """Copies the vectors of known words into the rows of `table`, an array (words, size). Returns how many words had
        one.
        """
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
    """The word vectors of a file: text, or word2vec's binary format, gzipped or not.

    keep: only words in it, as written or in lower case

    A malformed file is a DataError that names the line, or in a binary file the number of the word. If a word comes
    twice, the first vector counts.
    """
    import numpy as np  # here, since most users of this package have no vectors

    name = os.fspath(path)
    need_file(path)
    shape = _binary_shape(path)
    words: dict[str, None] = {}
    rows: list[Matrix] = []
    size = shape[1] if shape else 0
    for where, word, row in _binary(path, *shape) if shape else _text(path):
        if word in words or (keep is not None and word not in keep):
            continue
        if not isinstance(row, np.ndarray):
            try:
                if "_" in "".join(row):  # Python's digits may have it
                    raise ValueError
                with np.errstate(over="ignore"):
                    row = np.array(row, dtype=np.float32)
            except ValueError:
                raise DataError(f"{where}: expected {len(row)} numbers after {word!r}") from None
        if not np.isfinite(row).all():
            raise DataError(f"{where}: expected finite numbers after {word!r}")
        size = len(row)
        words[word] = None
        rows.append(row)
    size = size or _size_of_text(path)
    if not size:
        raise DataError(f"{name}: expected word vectors, got an empty file")
    return WordVectors(list(words), np.stack(rows) if rows else np.zeros((0, size), np.float32))


# ---- text --------------------------------------------------------------------------------------------------------------


def _parts(line: str) -> list[str]:
    """What blanks separate in a line, or tabs before numbers; a word may be a tab."""
    return _TAB.sub(" ", line.rstrip(" \t\r")).split(" ")


def _is_header(parts: list[str]) -> bool:
    return len(parts) == 2 and all(p.isascii() and p.isdigit() for p in parts)


def reads(line: str, word: str, size: int, first: bool) -> bool:
    """Is a line read as this word and so many numbers? first: it is the first one of a file."""
    parts = _parts(line.removeprefix("\ufeff") if first else line)
    return " ".join(parts[:-size]) == word and not (first and (len(parts) > size + 1 or _is_header(parts)))


def _text(path: str | os.PathLike[str]) -> Iterator[tuple[str, str, Any]]:
    """(file and line, word, numbers as strings) of each line."""
    size = 0
    for number, line in numbered_lines(path):
        parts = _parts(line)
        if number == 1 and _is_header(parts):
            size = int(parts[1])
            continue
        if not line.strip():
            continue
        size = size or len(parts) - 1
        where = f"{os.fspath(path)}:{number}"
        if size < 1 or len(parts) <= size:
            raise DataError(f"{where}: expected a word and {max(size, 1)} numbers, got {len(parts) - 1} numbers")
        yield where, " ".join(parts[:-size]), parts[-size:]  # some words of GloVe files have blanks


def _size_of_text(path: str | os.PathLike[str]) -> int:
    """Numbers of a vector, of a file of which no word was kept; 0 if it is empty."""
    for _, line in numbered_lines(path):
        parts = _parts(line)
        return int(parts[1]) if _is_header(parts) else len(parts) - 1
    return 0


# ---- binary ------------------------------------------------------------------------------------------------------------


def _binary_shape(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """(words, numbers) of a file in the binary form of word2vec; None if it is text.

    Both begin with a line of two numbers. In text a line with a word and so many numbers in digits follows.
    """
    with _opened(path) as file:
        first = file.readline(_LONGEST)
        parts = _parts(first.decode("latin-1").rstrip("\n"))
        if not first.endswith(b"\n") or not _is_header(parts):
            return None
        words, size = map(int, parts)
        if size < 1:
            raise DataError(
                f"{os.fspath(path)}:1: expected numbers of words and of their numbers, got {first.decode('latin-1').strip()!r}"
            )
        second = file.read(_LONGEST).split(b"\n")[0].decode("latin-1")
    return None if words == 0 or _all_numbers(_parts(second)[1:]) else (words, size)


def _all_numbers(parts: list[str]) -> bool:
    """Whether these are numbers in digits, or nearly so: a text file may have mistakes."""
    plain = [part for part in parts if part]
    right = sum(set(part) <= set("0123456789+-.eEinfaINFA") for part in plain)
    return right * 2 >= len(plain) and right > 0


def _binary(path: str | os.PathLike[str], count: int, size: int) -> Iterator[tuple[str, str, Any]]:
    """(file and number of the word, word, vector): a word, a blank, float32 numbers with the lowest byte first, and a line end
    or none."""
    import numpy as np

    name = os.fspath(path)
    with _opened(path) as file:
        file.readline(_LONGEST)
        for i in range(1, count + 1):
            where = f"{name}: word {i} of {count:,}"
            try:
                word = _word(file).decode("utf-8")
            except UnicodeDecodeError as error:
                raise DataError(f"{where}: expected UTF-8 text, {error.reason}") from None
            except ValueError as error:
                raise DataError(f"{where}: {error}") from None
            data = file.read(4 * size)
            if len(data) < 4 * size:
                raise DataError(
                    f"{where}: expected {size} numbers after {word!r}, got {len(data) // 4} and the end of the file"
                )
            yield where, word, np.frombuffer(data, dtype="<f4").astype(np.float32)
        if file.read(2).strip():
            raise DataError(f"{name}: expected {count:,} words, got more")


def _word(file: IO[bytes]) -> bytes:
    word = bytearray()
    while (c := file.read(1)) != b" ":
        if not c:
            raise ValueError("expected a word, got the end of the file")
        if c == b"\n" and not word:  # the end of the row before
            continue
        word += c
        if len(word) > _LONGEST:
            raise ValueError(f"expected a word and a blank, got {_LONGEST:,} bytes without one")
    if not word:
        raise ValueError("expected a word, got a blank")
    return bytes(word)


class _opened:
    """The bytes of a file, unpacked if gzip has packed it; a damaged pack is a DataError."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name, self.file = os.fspath(path), open(path, "rb")

    def __enter__(self) -> IO[bytes]:
        inside: Any = unpacked(self.file)
        return inside if inside is self.file else io.BufferedReader(inside)  # type: ignore[no-any-return]

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.file.close()
        if isinstance(error, (gzip.BadGzipFile, EOFError, zlib.error)):
            raise DataError(f"{self.name}: expected a whole file packed by gzip, got a damaged one") from None
