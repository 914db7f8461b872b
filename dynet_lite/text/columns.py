"""Sentences with a label per word that marks spans: chunks, names. IOB columns, as of CoNLL-2000 and CoNLL-2003.

    EU B-ORG          one word and its label a line, other columns between them, an empty line after each sentence
    rejects O

With a tab in a line columns are separated by tabs, else by blanks. Lines that begin with # before a sentence are comments.
Labels are kept as IOB2: B-X begins a span, I-X goes on with it, O is outside. Files in IOB1 (I-X begins a span unless
another X stands right before it) and IOBES are converted. Does not know the engine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynet_lite.errors import DataError

from .corpora import read_nltk
from .forms import chosen_form, is_span_label, one_mark, split_tagged
from .lines import numbered_lines, split_words
from .trees import Tree, load_nltk_trees, read_trees

__all__ = [
    "LabeledSentence",
    "Span",
    "chunks_of_tree",
    "load_nltk_chunks",
    "parse_columns",
    "parse_rows",
    "read_chunks_of_trees",
    "read_columns",
    "read_labeled",
    "spans",
    "to_bioes",
    "to_iob1",
    "to_iob2",
]

_BEFORE_NOUNS = ("ADJP", "QP", "ADVP", "UCP", "NML", "NX", "NAC")

Span = tuple[int, int, str]  # first word, word after the last, type


@dataclass(slots=True)
class LabeledSentence:
    """Words with a label each (IOB2), and with a tag each if the file has tags."""

    forms: list[str]
    labels: list[str]
    tags: list[str] = field(default_factory=list)
    features: Any = field(default=None, compare=False, repr=False)  # numbers of the words: WordFeatures

    def __len__(self) -> int:
        return len(self.forms)


def read_columns(path: str | os.PathLike[str], label: int = -1) -> list[LabeledSentence]:
    """The sentences of a file of columns: one word per line, and an empty line after each sentence.

    The word is the first column and the tag the second, if there are at least three and it does not hold the labels. `label`
    is the number of the column with the labels, by default the last. A malformed file is a DataError, an unreadable one an
    OSError.
    """
    return list(parse_columns(numbered_lines(path), os.fspath(path), label))


def parse_columns(lines: Iterable[tuple[int, str]], name: str = "<text>", label: int = -1) -> Iterator[LabeledSentence]:
    """Sentences from numbered lines. Messages call the file `name`."""

    def is_comment(columns: list[str]) -> bool:
        named = len(columns) > 3 and "=" in columns[1:3]  # "# text = Take the U-Bahn." ends like a label
        return named or not is_span_label(columns[-1])

    for rows in parse_rows(lines, name, is_comment):
        labels = []
        for number, columns in rows:
            if not -len(columns) <= label < len(columns):
                raise DataError(f"{name}:{number}: expected the label in column {label}, got {len(columns)} columns")
            if not is_span_label(columns[label]):
                raise DataError(f"{name}:{number}: expected O, B-TYPE or I-TYPE as label, got {columns[label]!r}")
            labels.append(columns[label])
        width = len(rows[0][1])
        tags = [columns[1] for _, columns in rows] if width > 2 and label not in (1, 1 - width) else []
        yield LabeledSentence([columns[0] for _, columns in rows], to_iob2(labels), tags)


def parse_rows(
    lines: Iterable[tuple[int, str]], name: str, is_comment: Callable[[list[str]], bool]
) -> Iterator[list[tuple[int, list[str]]]]:
    """The rows of each sentence, (line number, columns), from numbered lines: two columns at least, as many in each row.

    With a tab in a line columns are separated by tabs, else by blanks. Lines that begin with # before a sentence are left out
    if is_comment(columns) says so, and -DOCSTART- lines always.
    """
    rows: list[tuple[int, list[str]]] = []
    for number, line in lines:
        columns = line.rstrip(" \t\r").split("\t") if "\t" in line else split_words(line)
        if columns in ([], [""]) or columns[0].startswith("-DOCSTART-"):
            if rows:
                yield rows
                rows = []
            continue
        if not rows and line[0] == "#" and is_comment(columns):
            continue
        if len(columns) < 2:
            raise DataError(f"{name}:{number}: expected a word and a label with a blank or a tab between, got {line!r}")
        if not columns[0]:
            raise DataError(f"{name}:{number}: expected a word before the first tab, got {line!r}")
        if rows and len(columns) != len(rows[0][1]):
            raise DataError(
                f"{name}:{number}: expected {len(rows[0][1])} columns as in the line before, got {len(columns)}"
            )
        rows.append((number, columns))
    if rows:
        yield rows


def read_labeled(path: str | os.PathLike[str], label: int = -1, form: str = "auto") -> list[LabeledSentence]:
    """Sentences with labelled spans, from a file of IOB columns, of word|label sentences, or of trees, whose chunks are
    taken.

    form: one of FORMS. "auto" recognises the format
    label: for columns, as in read_columns()

    DataError if the file holds none of these.
    """
    name, found = os.fspath(path), chosen_form(path, form)
    if found.kind == "trees":
        return read_chunks_of_trees(path)
    if found.kind != "tagged":
        return read_columns(path, label)
    out = []
    mark = one_mark(found, name)
    for number, line in numbered_lines(path):
        words, labels = split_tagged(line, mark, f"{name}:{number}")
        if bad := next((x for x in labels if not is_span_label(x)), None):
            raise DataError(f"{name}:{number}: expected O, B-TYPE or I-TYPE after each {mark}, got {bad!r}")
        if words:
            out.append(LabeledSentence(words, to_iob2(labels)))
    return out


def to_iob2(labels: Sequence[str]) -> list[str]:
    """IOB2 from IOB1, IOB2 or BIOES (E or L ends a span; S or U is a span of one word)."""
    out: list[str] = []
    before = "O"
    for label in labels:
        prefix, _, kind = label.partition("-")
        if label != "O":
            goes_on = prefix in "IEL" and before != "O" and before.partition("-")[2] == kind
            label = f"{'I' if goes_on else 'B'}-{kind}"
        out.append(label)
        before = "O" if prefix in "ESUL" else label  # a span that has ended is not gone on with
    return out


def to_iob1(labels: Sequence[str]) -> list[str]:
    """IOB1 from IOB2: B-X only directly after another span of the same type, otherwise I-X (Ramshaw and Marcus 1995)."""
    out: list[str] = []
    for i, label in enumerate(labels):
        prefix, _, kind = label.partition("-")
        parted = prefix == "B" and i > 0 and labels[i - 1].partition("-")[2] == kind
        out.append(label if label == "O" or parted else f"I-{kind}")
    return out


def to_bioes(labels: Sequence[str]) -> list[str]:
    """BIOES from IOB2: E-X ends a span of several words, S-X is a span of one word (Ratinov and Roth 2009)."""
    out: list[str] = []
    for label, after in zip(labels, [*labels, "O"][1:], strict=True):
        prefix, _, kind = label.partition("-")
        goes_on = after == f"I-{kind}"
        if label != "O" and not goes_on:
            label = f"{'S' if prefix == 'B' else 'E'}-{kind}"
        out.append(label)
    return out


def spans(labels: Sequence[str]) -> list[Span]:
    """The spans in IOB2 labels: (first word, word after the last, type). An I-X that continues nothing begins a span."""
    out: list[Span] = []
    start, kind = 0, ""
    for i, label in enumerate([*labels, "O"]):
        prefix, _, now = label.partition("-")
        if kind and (prefix != "I" or now != kind):
            out.append((start, i, kind))
            kind = ""
        if prefix != "O" and not kind:
            start, kind = i, now
    return out


def load_nltk_chunks(name: str) -> tuple[list[LabeledSentence], list[LabeledSentence], list[LabeledSentence]]:
    """Training, dev and test sentences of a chunked NLTK corpus.

    'conll2000' and 'conll2002' keep their own division; the dev part of 'conll2000' is empty. Other corpora are not
    divided. In corpora of trees, such as 'treebank', chunks are found by rule.
    """
    if name == "treebank":
        return [chunks_of_tree(tree) for tree in load_nltk_trees(name)], [], []
    files = read_nltk(name, "fileids", "files")
    parts: list[list[LabeledSentence]] = [[], [], []]
    for file in files:
        part = 1 if file.endswith("testa") else 2 if "test" in file else 0
        rows = read_nltk(name, "iob_sents", "chunks; try 'conll2000'", file)
        parts[part] += [
            LabeledSentence([w for w, _, _ in row], to_iob2([c for _, _, c in row]), [t for _, t, _ in row])
            for row in rows if row
        ]  # fmt: skip
    if not parts[0]:
        parts = [[*parts[1], *parts[2]], [], []]
    return parts[0], parts[1], parts[2]


# ---- chunks of trees -------------------------------------------------------------------------------------------------


def read_chunks_of_trees(path: str | os.PathLike[str]) -> list[LabeledSentence]:
    """The chunks of the trees in a file of brackets: see chunks_of_tree()."""
    trees = (tree.without_empty() for tree in read_trees(path))
    return [chunks_of_tree(tree) for tree in trees if tree is not None]


def chunks_of_tree(tree: Tree) -> LabeledSentence:
    """The flat phrases of a tree, as chunks: neighbouring words that hang from the same phrase.

    A verb phrase inside a verb phrase continues its chunk ("has been saved"), and so do words before the noun of a
    noun phrase ("a sad but beautiful story"). Words that hang from a clause (S, SBAR, ...) and punctuation are
    outside. The result is close to the chunks of CoNLL-2000, but not equal.
    """
    forms: list[str] = []
    tags: list[str] = []
    labels: list[str] = []
    open_chunk: Tree | None = None  # what the word before belongs to
    todo: list[tuple[Tree, Tree | None, Tree | None]] = [(tree, None, None)]  # node, its parent, the parent's phrase
    while todo:
        node, parent, phrase = todo.pop()
        if node.children:
            own = phrase if _goes_on(node, parent) else node
            todo += [(child, node, own) for child in reversed(node.children)]
            continue
        kind = _kind(phrase.label) if phrase else ""
        inside = bool(kind) and not kind.startswith("S") and not _is_punctuation(node)
        labels.append("O" if not inside else f"{'I' if phrase is open_chunk else 'B'}-{kind}")
        open_chunk = phrase if inside else None
        forms.append(node.word)
        tags.append(node.label)
    return LabeledSentence(forms, labels, tags)


def _goes_on(node: Tree, parent: Tree | None) -> bool:
    """Whether the words of a phrase belong to the chunk of the phrase above it."""
    if parent is None:
        return False
    kind, above = _kind(node.label), _kind(parent.label)
    return kind == above == "VP" or (above == "NP" and kind in _BEFORE_NOUNS and node is not parent.children[-1])


def _kind(label: str) -> str:
    """NP of NP-SBJ-1, NP=2 and WHNP."""
    return (label.split("-")[0].split("=")[0] or label).removeprefix("WH")


def _is_punctuation(leaf: Tree) -> bool:
    return leaf.label == "PUNCT" or not any(c.isalnum() or c in "$%&" for c in leaf.word)
