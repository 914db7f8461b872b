"""Lines of text files, for the readers: UTF-8 or a DataError that names the file and the line."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator

from dynet_lite.errors import DataError

__all__ = ["has_brackets", "numbered_lines"]


def numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """(number, line without its end) of each line; a file whose name ends in .gz is unpacked. The first number is 1."""
    name = os.fspath(path)
    # Lines end at \n only: str.splitlines() also breaks at U+2028 and the like, which may stand inside a word.
    with gzip.open(name, "rb") if name.endswith(".gz") else open(name, "rb") as file:
        try:
            for number, line in enumerate(file, 1):
                try:
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise DataError(f"{name}:{number}: expected UTF-8 text, {error.reason}") from None
        except (gzip.BadGzipFile, EOFError):
            raise DataError(f"{name}: expected a file packed by gzip") from None


def has_brackets(path: str | os.PathLike[str]) -> bool:
    """Whether a file looks as if it held trees in brackets, and not columns or a table."""
    for _, line in numbered_lines(path):
        if line.strip():
            last = line.split()[-1]
            return line.lstrip().startswith("(") and "\t" not in line and last != "O" and last[1:2] != "-"
    return False
