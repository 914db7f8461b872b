"""CoNLL-U (https://universaldependencies.org/format.html), read and written.

The reader keeps what taggers and parsers need and nothing else: multiword ranges (3-4) and empty nodes (5.1) are
skipped, comments and the columns FEATS, DEPS and MISC are not stored. It does not judge the annotation
(tag names, one root, no cycle); it does refuse lines that are not CoNLL-U, with file, line and what was
expected. What it skips stays where only some columns of a text are written anew: annotated_conllu().
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dynet_lite.errors import DataError

from .lines import numbered_lines, split_words

__all__ = [
    "Sentence",
    "annotated_conllu",
    "format_conllu",
    "is_conllu",
    "iter_conllu",
    "parse_conllu",
    "read_conllu",
    "sentence_of",
]

NO_HEAD = -1  # the head is not annotated ("_" in the file)
_COLUMNS = 10
_FIRST = re.compile(r"(0\.1|1|1-\d+)\t")  # how the first line of a sentence begins
_COMMENT = re.compile(r"#\s*([\w.:]+ = |newdoc\b|newpar\b)")


@dataclass(slots=True)
class Sentence:
    """One sentence. All lists have the length of the sentence; those without annotation are empty.

    `heads` count words from 1, 0 is the root and -1 stands for "not annotated". `upos` holds the tags, also
    when they come from a corpus that has its own tag set; `xpos` those of the language (column XPOS), and is empty if no
    word has one. `features`, if any, are numbers of the words (WordFeatures).
    """

    forms: list[str]
    upos: list[str] = field(default_factory=list)
    lemmas: list[str] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    deprels: list[str] = field(default_factory=list)
    xpos: list[str] = field(default_factory=list)
    features: Any = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.forms)


def read_conllu(path: str | os.PathLike[str]) -> list[Sentence]:
    """The sentences of a CoNLL-U file, in order. A malformed file is a DataError, an unreadable one an OSError."""
    return list(iter_conllu(path))


def iter_conllu(path: str | os.PathLike[str]) -> Iterator[Sentence]:
    """Like read_conllu(), one sentence at a time."""
    return parse_conllu((line for _, line in numbered_lines(path)), os.fspath(path))


def parse_conllu(lines: Iterable[str], name: str = "<text>", start: int = 1) -> Iterator[Sentence]:
    """Sentences from lines of CoNLL-U. Messages call the file `name`, and its first line number is `start`."""
    forms: list[str] = []
    lemmas: list[str] = []
    upos: list[str] = []
    xpos: list[str] = []
    heads: list[int] = []
    deprels: list[str] = []
    first = 0
    for number, line in enumerate(lines, start):
        line = line.rstrip("\r\n")
        if not line or line.isspace():
            if forms:
                _check_heads(heads, name, first)
                yield Sentence(forms, upos, lemmas, heads, deprels, _given(xpos))
                forms, lemmas, upos, xpos, heads, deprels = [], [], [], [], [], []
            continue
        if line[0] == "#":
            continue
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            blanks = " with blanks" * (len(columns) == 1 and len(line.split()) == _COLUMNS)
            raise DataError(f"{name}:{number}: expected 10 columns separated by tabs, got {len(columns)}{blanks}")
        ident, form, lemma, tag, local_tag, _, head, deprel, _, _ = columns
        if not (form and lemma and tag and local_tag and head and deprel):
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
        xpos.append(local_tag)
        if head == "_":
            heads.append(NO_HEAD)
        elif head.isascii() and head.isdigit():
            heads.append(int(head))
        else:
            raise DataError(f"{name}:{number}: expected a word number, 0 or '_' as head, got {head!r}")
        deprels.append(deprel)
    if forms:  # the empty line after the last sentence is often missing
        _check_heads(heads, name, first)
        yield Sentence(forms, upos, lemmas, heads, deprels, _given(xpos))


def _given(column: list[str]) -> list[str]:
    """The column, or nothing if no word has a value."""
    return column if any(value != "_" for value in column) else []


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


# ---- one sentence as text ------------------------------------------------------------------------------------------


def is_conllu(text: str) -> bool | None:
    """Whether a text is CoNLL-U, judged by its first line that is neither empty nor a comment. None if there are only comments."""
    lines = [line for line in text.split("\n") if line.strip()]
    first = next((line for line in lines if not line.startswith("#")), "")
    if not first:
        return None if lines and all(map(_COMMENT.match, lines)) else False
    return bool(_FIRST.match(first)) and first.count("\t") == _COLUMNS - 1


def sentence_of(text: str, features: Any = None) -> Sentence:
    """The sentence of a text: a line of words separated by blanks, or the lines of one sentence in CoNLL-U.

    features: an array (words, numbers) for it

    A text without words gives an empty sentence. DataError for malformed CoNLL-U, or for more than one sentence.
    """
    if is_conllu(text) is False:
        return Sentence(split_words(text), features=features)
    sentences = list(parse_conllu(text.split("\n"), "input"))
    if len(sentences) > 1:
        raise DataError(f"input: expected one sentence, got {len(sentences)}")
    sentence = sentences[0] if sentences else Sentence([])
    sentence.features = features
    return sentence


def _column(values: list[str] | list[int], i: int) -> str:
    return str(values[i]) if values and values[i] != NO_HEAD else "_"


def format_conllu(sentence: Sentence) -> Iterator[str]:
    """The lines of a sentence in CoNLL-U: ten columns for each word, and an empty line at the end."""
    for i, form in enumerate(sentence.forms):
        lemma, tag, local_tag = (_column(column, i) for column in (sentence.lemmas, sentence.upos, sentence.xpos))
        head, relation = _column(sentence.heads, i), _column(sentence.deprels, i)
        yield f"{i + 1}\t{form}\t{lemma}\t{tag}\t{local_tag}\t_\t{head}\t{relation}\t_\t_"
    yield ""


def annotated_conllu(text: str, sentence: Sentence) -> Iterator[str]:
    """The lines of a sentence in CoNLL-U, given the text that sentence_of() read it from.

    If the text is CoNLL-U, only universal tags, heads and relations are replaced, and DEPS is emptied where the head
    has changed. Otherwise this is format_conllu().
    """
    if is_conllu(text) is False:
        yield from format_conllu(sentence)
        return
    i = 0
    for line in text.split("\n"):
        line = line.rstrip("\r")
        columns = line.split("\t")
        if columns[0] == str(i + 1) and not line.startswith("#"):
            before = columns[6]
            columns[3], columns[6], columns[7] = (
                _column(sentence.upos, i),
                _column(sentence.heads, i),
                _column(sentence.deprels, i),
            )
            columns[8] = columns[8] if columns[6] == before else "_"
            i += 1
        yield "\t".join(columns)
    yield ""
