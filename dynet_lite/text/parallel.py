"""Pairs of sequences: two files line by line, or files of two or three columns."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dynet_lite.errors import DataError

from .forms import BARS
from .lines import numbered_lines, split_words

__all__ = ["Pair", "read_pairs", "read_parallel", "source_tokens", "spelled"]

SPACE = "<sp>"  # a blank, where tokens are letters
_FEATURES = re.compile(r"[A-Z0-9(){}/.,+*_-]+(;[\w(){}/.,+*-]+)*|[\w\[\]]+=[^|=]+([|;][\w\[\]]+=[^|=]+)*|_")


@dataclass(slots=True)
class Pair:
    """A source and a target, both lists of tokens. `others` are further right answers, which scores accept."""

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
    """Pairs from two files: line n of one with line n of the other, words separated by blanks.

    Pairs of two empty lines are left out. DataError if one file is longer, or if a line is empty in one file only.
    """
    left, right = list(numbered_lines(source)), list(numbered_lines(target))
    if len(left) != len(right):
        short, name = (len(left), source) if len(left) < len(right) else (len(right), target)
        raise DataError(f"{os.fspath(name)}:{short + 1}: expected {max(len(left), len(right))} lines, got {short}")
    out = []
    for (number, a), (_, b) in zip(left, right, strict=True):
        pair = Pair(split_words(a), split_words(b))
        if bool(pair.source) != bool(pair.target):
            name = target if pair.source else source
            raise DataError(f"{os.fspath(name)}:{number}: expected text, since the other file has some in this line")
        if pair.source:
            out.append(pair)
    return out


def read_pairs(path: str | os.PathLike[str], letters: bool = False) -> list[Pair]:
    """Pairs from a file with two or three columns, words separated by blanks. The file may be gzipped.

    A line is SOURCE<tab>TARGET, or SOURCE ||| TARGET if all lines have that mark. It may also be
    LEMMA<tab>FORM<tab>FEATURES or LEMMA<tab>FEATURES<tab>FORM: the source is then the lemma followed by its features
    (N;PL or Number=Plur|Case=Nom) as tokens, and the target is the form. Empty lines are skipped. Any other line is a
    DataError.

    letters: spell both sides, with <sp> for a blank; features stay whole
    """
    name = os.fspath(path)
    lines = [(number, line) for number, line in numbered_lines(path) if split_words(line)]
    bars = bool(lines) and all(BARS in line for _, line in lines)
    rows: list[list[str]] = []
    for number, line in lines:
        columns = [column.strip(" \t\r") for column in line.split(BARS if bars else "\t")]
        if not all(columns) or (len(columns) != len(rows[0]) if rows else not 2 <= len(columns) <= 3 - bars):
            wanted = "SOURCE ||| TARGET" if bars else "SOURCE<tab>TARGET"
            if rows and len(rows[0]) == 3:
                wanted = "three columns with tabs between as in the lines before"
            raise DataError(f"{name}:{number}: expected {wanted}, got {line[:60]!r}")
        rows.append(columns)
    if not rows or len(rows[0]) == 2:
        return [Pair(source_tokens(a, letters), source_tokens(b, letters)) for a, b in rows]
    third = _features_are_last(rows, name)
    return [
        Pair(
            source_tokens(f"{row[0]}\t{row[2 if third else 1]}", letters),
            source_tokens(row[1 if third else 2], letters),
        )
        for row in rows
    ]


def _features_are_last(rows: Sequence[Sequence[str]], name: str) -> bool:
    """Whether of three columns the third holds the features, and not the second; DataError if that is not clear."""
    looks = [all(_FEATURES.fullmatch(row[i]) for row in rows) for i in (1, 2)]
    if looks[0] == looks[1]:
        raise DataError(
            f"{name}: expected SOURCE<tab>TARGET or LEMMA<tab>FORM<tab>FEATURES, got three columns of which "
            f"{'the last two' if looks[0] else 'none'} look like features (N;PL or Number=Plur|Case=Nom)"
        )
    return looks[1]


def source_tokens(text: str, letters: bool = False) -> list[str]:
    """The tokens of one side of a pair: its words, or its letters with <sp> for blanks. What follows a tab are features."""
    words, _, features = text.partition("\t")
    tokens = split_words(words)
    if letters:
        tokens = [SPACE if letter == " " else letter for letter in " ".join(tokens)]
    return tokens + [feature for feature in re.split(r"[;|]", features.strip(" \t\r")) if feature]


def spelled(tokens: Iterable[str]) -> str:
    """The text that letters make, the reverse of source_tokens(text, letters=True)."""
    return "".join(" " if token == SPACE else token for token in tokens)
