"""Reads DyNet's cluster files: which word is in which class.

A line of a file for classes is ``CLASS WORD [COUNT]``; of one for a tree ``SYMBOL SYMBOL ...<TAB>WORD [COUNT]``, the
symbols being the way from the root, such as the bits that Brown clustering gives. Does not know the engine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dynet_lite.errors import DataError, MissingFileError
from dynet_lite.needs import shown
from dynet_lite.whitespace import split_words


def word_ids(dic: Any, who: str) -> dict[str, int]:
    """Words and their ids out of a dict, a Dict or a Vocab. ValueError unless the ids are 0, 1, 2, ..."""
    ids = {word: dic[word] for word in dic}
    if sorted(ids.values()) != list(range(len(ids))):
        raise ValueError(f"[{who}] the dictionary should have unique ids from 0 to the number of words - 1")
    return ids


def lines_of(source: Any, who: str) -> Iterator[tuple[str, str]]:
    """(line, where it is) of a file, or of a list of lines; empty lines are left out."""
    if isinstance(source, (str, bytes, os.PathLike)):
        try:
            with open(source, encoding="utf-8") as f:
                lines = f.read().split("\n")
        except FileNotFoundError as e:
            raise MissingClusterFile(e.errno, e.strerror, e.filename) from None
        except UnicodeDecodeError as e:
            raise DataError(f"[{who}] {os.fspath(source)!r}: the text must be UTF-8; {e}") from None
        where = f"{os.fspath(source)!r}"
    else:
        lines, where = list(source), "cluster line"
    for number, line in enumerate(lines, 1):
        if not isinstance(line, str):
            raise TypeError(f"[{who}] {where} {number} must be text; got {shown(line)}")
        if line.strip():
            yield line.rstrip("\r\n"), f"[{who}] {where}, line {number}"


class MissingClusterFile(MissingFileError, ValueError):
    """A cluster file is not there; DyNet raises ValueError."""


class UnknownWord(ValueError, RuntimeError):
    """A word of a cluster file is not in the dictionary; DyNet raises RuntimeError."""


def _id_of(word: str, ids: Mapping[str, int], seen: set[str], where: str) -> int:
    if word not in ids:
        raise UnknownWord(f"{where}: {word!r} is not in the dictionary")
    if word in seen:
        raise DataError(f"{where}: {word!r} stands in the file twice")
    seen.add(word)
    return ids[word]


def read_classes(source: Any, ids: Mapping[str, int], who: str) -> list[list[int]]:
    """The ids of the words of each class; classes and words in the order of the file."""
    classes: dict[str, list[int]] = {}
    seen: set[str] = set()
    for line, where in lines_of(source, who):
        fields = split_words(line)
        if len(fields) < 2:
            raise DataError(f"{where}: CLASS WORD is needed; got {line!r}")
        classes.setdefault(fields[0], []).append(_id_of(fields[1], ids, seen, where))
    return _not_empty(list(classes.values()), source, who)


def read_paths(source: Any, ids: Mapping[str, int], who: str) -> list[tuple[list[str], int]]:
    """(symbols of the way from the root, id of the word) in the order of the file."""
    out = []
    seen: set[str] = set()
    for line, where in lines_of(source, who):
        path, _, rest = line.strip(" \t\r\n").partition("\t")
        if not split_words(path) or not split_words(rest):
            raise DataError(f"{where}: symbols, a tab and a word are needed; got {line!r}")
        out.append((split_words(path), _id_of(split_words(rest)[0], ids, seen, where)))
    return _not_empty(out, source, who)


def _not_empty(found: list[Any], source: Iterable[Any], who: str) -> list[Any]:
    if not found:
        raise DataError(f"[{who}] {source!r:.200} holds no word")
    return found
