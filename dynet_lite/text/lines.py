"""Lines of text files and their words, for the readers: UTF-8, packed by gzip or not, or a DataError with file and line."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from typing import IO

from dynet_lite.errors import DataError
from dynet_lite.whitespace import split_words

__all__ = ["need_file", "numbered_lines", "split_words", "unpacked"]

_GZIP = b"\x1f\x8b"  # the first bytes of a packed file


def unpacked(file: IO[bytes]) -> IO[bytes]:
    """The file itself, or what gzip has packed in it, as its first bytes tell. `file` was opened by `open(name, "rb")`."""
    head: bytes = file.peek(2)[:2]  # type: ignore[attr-defined]
    return gzip.open(file, "rb") if head == _GZIP else file  # type: ignore[return-value]


def need_file(path: str | os.PathLike[str]) -> None:
    """DataError for a pipe: what is read more than once, at first to see what it is, has to be a file."""
    name = os.fspath(path)
    if stat.S_ISFIFO(os.stat(name).st_mode):
        raise DataError(f"{name}: expected a file, since it is read more than once; got a pipe")


def numbered_lines(path: str | os.PathLike[str] | int, name: str = "") -> Iterator[tuple[int, str]]:
    """Yields (number, line without its end) for each line of a file, starting with 1. Gzipped files are unpacked.

    DataError if a file has no line feed but carriage returns inside, as old ones of Macs: it would be one line, whose words
    hold for those of a single row.

    path: a file, or the number of an open one (0 is standard input), which stays open
    name: what messages call the file
    """
    number_of_file = isinstance(path, int) and not isinstance(path, bool)  # False is not standard input
    name = name or str(path if number_of_file else os.fspath(path))  # type: ignore[arg-type]
    # Lines end at \n only: str.splitlines() also breaks at U+2028 and the like, which may stand inside a word.
    with open(path, "rb", closefd=not number_of_file) as file:
        try:
            for number, line in enumerate(unpacked(file), 1):
                if number == 1 and not line.endswith(b"\n") and b"\r" in line.rstrip(b"\r"):
                    raise DataError(f"{name}: expected lines that end with a line feed, got carriage returns alone")
                try:
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise DataError(f"{name}:{number}: expected UTF-8 text, {error.reason}") from None
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise DataError(f"{name}: expected a whole file packed by gzip, got a damaged one") from None
