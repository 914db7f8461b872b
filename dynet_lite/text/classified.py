"""Texts with a class each: files of two columns with a tab or ||| between, or a corpus of NLTK with categories."""

from __future__ import annotations

import os
import random
import re
from dataclasses import dataclass

from dynet_lite.errors import DataError

from .corpora import read_nltk
from .forms import BARS
from .lines import numbered_lines, split_words
from .trees import Tree, read_trees

__all__ = ["ClassifiedText", "load_nltk_classified", "read_classified", "read_polarity_of_trees"]

_COLUMN_NAMES = ("label", "class", "category", "target", "sentiment", "polarity")
_PREFIX = "__label__"
_BLANKS = " \t\r"
_BLANK = re.compile("[ \t\r]")


@dataclass(slots=True)
class ClassifiedText:
    """The words of a text, and its class."""

    words: list[str]
    label: str

    def __len__(self) -> int:
        return len(self.words)


def read_classified(path: str | os.PathLike[str]) -> list[ClassifiedText]:
    """The texts of a file with a class and a text on each line, words separated by blanks. The file may be gzipped.

    A line is CLASS<tab>TEXT or TEXT<tab>CLASS; or the same with ||| instead of the tab, if all lines have it; or
    __label__CLASS TEXT. Of two columns, the class is the one with fewer different values, and the first if both have
    as many. Empty lines are skipped, and so is a first line that names the columns (label, sentence, ...). A
    malformed file is a DataError, an unreadable one an OSError.
    """
    name = os.fspath(path)
    lines = [(number, line) for number, line in numbered_lines(path) if split_words(line)]
    prefixed = bool(lines) and all(line.startswith(_PREFIX) for _, line in lines)
    mark = "" if prefixed else BARS if lines and all(BARS in line for _, line in lines) else "\t"
    rows = []
    for number, line in lines:
        columns = [column.strip(_BLANKS) for column in (line.split(mark) if mark else _BLANK.split(line, 1))]
        if len(columns) != 2 or not all(columns):
            wanted = {"": f"{_PREFIX}CLASS TEXT", BARS: "CLASS ||| TEXT or TEXT ||| CLASS"}
            raise DataError(
                f"{name}:{number}: expected {wanted.get(mark, 'CLASS<tab>TEXT or TEXT<tab>CLASS')}, got {line[:60]!r}"
            )
        rows.append((columns[0].removeprefix(_PREFIX) if prefixed else columns[0], columns[1]))
    if (
        rows
        and any(title.lower() in _COLUMN_NAMES for title in rows[0])
        and all(len(split_words(x)) == 1 for x in rows[0])
    ):
        del rows[0]
    first, second = ({row[i] for row in rows} for i in range(2))
    if len(second) < len(first) and not prefixed:
        return [ClassifiedText(split_words(text), label) for text, label in rows]
    return [ClassifiedText(split_words(text), label) for label, text in rows]


def load_nltk_classified(name: str, seed: int = 1) -> list[ClassifiedText]:
    """The texts of an NLTK corpus with categories ('sentence_polarity', 'movie_reviews'), shuffled.

    If each category is a single file, a text is a sentence; otherwise a text is a file.
    """
    categories = read_nltk(name, "categories", "categories; try 'sentence_polarity'")
    files = {label: read_nltk(name, "fileids", "files", categories=[label]) for label in categories}
    out = []
    for label in sorted(categories):
        if len(files[label]) == 1:
            sentences = read_nltk(name, "sents", "sentences", categories=[label])
            out += [ClassifiedText(list(words), label) for words in sentences if words]
        else:
            texts = (read_nltk(name, "words", "words", file) for file in files[label])
            out += [ClassifiedText(words, label) for words in texts if words]
    random.Random(seed).shuffle(out)
    return out


def read_polarity_of_trees(path: str | os.PathLike[str]) -> list[ClassifiedText]:
    """The sentences of a sentiment treebank (classes 0 to 4 at the root) as "negative" and "positive"; neutral ones are
    left out.
    """
    out = []
    for number, tree in enumerate(read_trees(path), 1):
        if tree.label not in ("0", "1", "2", "3", "4"):
            raise DataError(
                f"{os.fspath(path)}: expected a class from 0 to 4 at the root of tree {number}, got {tree.label!r}"
            )
        if tree.label != "2":
            out.append(ClassifiedText(tree.words(), _polarity(tree)))
    return out


def _polarity(tree: Tree) -> str:
    return "positive" if tree.label > "2" else "negative"
