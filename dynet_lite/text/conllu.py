"""Reader of CoNLL-U files (https://universaldependencies.org/format.html).

Keeps what taggers and parsers need and nothing else: multiword ranges (3-4) and empty nodes (5.1) are
skipped, comments and the columns XPOS, FEATS, DEPS and MISC are not stored. It does not judge the annotation
(tag names, one root, no cycle); it does refuse lines that are not CoNLL-U, with file, line and what was
expected.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dynet_lite.errors import DataError

from .lines import numbered_lines

__all__ = ["Sentence", "iter_conllu", "parse_conllu", "read_conllu"]

NO_HEAD = -1  # the head is not annotated ("_" in the file)
_COLUMNS = 10


@dataclass(slots=True)
class Sentence:
    """One sentence. All lists have the length of the sentence; those without annotation are empty.

    `heads` count words from 1, 0 is the root and -1 stands for "not annotated". `upos` holds the tags, also
    when they come from a corpus that has its own tag set.
    """

    forms: list[str]
    upos: list[str] = field(default_factory=list)
    lemmas: list[str] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    deprels: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.forms)


def read_conllu(path: str | os.PathLike[str]) -> list[Sentence]:
    """All sentences of a file, in order. A malformed file is a DataError, an unreadable one an OSError."""
    return list(iter_conllu(path))


def iter_conllu(path: str | os.PathLike[str]) -> Iterator[Sentence]:
    """As read_conllu, one sentence at a time."""
    return parse_conllu((line for _, line in numbered_lines(path)), os.fspath(path))


def parse_conllu(lines: Iterable[str], name: str = "<text>") -> Iterator[Sentence]:
    """Sentences from lines of text; `name` stands for the file in messages."""
    forms: list[str] = []
    lemmas: list[str] = []
    upos: list[str] = []
    heads: list[int] = []
    deprels: list[str] = []
    number = first = 0
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r\n")
        if not line or line.isspace():
            if forms:
                _check_heads(heads, name, first)
                yield Sentence(forms, upos, lemmas, heads, deprels)
                forms, lemmas, upos, heads, deprels = [], [], [], [], []
            continue
        if line[0] == "#":
            continue
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            raise DataError(f"{name}:{number}: expected 10 columns separated by tabs, got {len(columns)}")
        ident, form, lemma, tag, _, _, head, deprel, _, _ = columns
        if not (form and lemma and tag and head and deprel):
            raise DataError(f"{name}:{number}: expected no empty column, '_' stands for nothing")
        if ident != str(len(forms) + 1):
            if _is_skipped(ident):
                continue
            raise DataError(f"{name}:{number}: expected word number {len(forms) + 1}, got {ident!r}")
        if not forms:
            first = number
        forms.append(form)
        lemmas.append(lemma)
        upos.append(tag)
        if head == "_":
            heads.append(NO_HEAD)
        elif head.isascii() and head.isdigit():
            heads.append(int(head))
        else:
            raise DataError(f"{name}:{number}: expected a word number, 0 or '_' as head, got {head!r}")
        deprels.append(deprel)
    if forms:  # the empty line after the last sentence is often missing
        _check_heads(heads, name, first)
        yield Sentence(forms, upos, lemmas, heads, deprels)


def _is_skipped(ident: str) -> bool:
    """Whether `ident` is a multiword range (3-4) or an empty node (5.1)."""
    for mark in "-.":
        left, found, right = ident.partition(mark)
        if found and left.isascii() and left.isdigit() and right.isascii() and right.isdigit():
            return True
    return False


def _check_heads(heads: list[int], name: str, first: int) -> None:
    if max(heads) > len(heads):
        word = next(i for i, head in enumerate(heads) if head > len(heads))
        raise DataError(
            f"{name}: expected heads from 0 to {len(heads)} in the sentence that begins in line {first}, "
            f"got {heads[word]} at word {word + 1}"
        )
