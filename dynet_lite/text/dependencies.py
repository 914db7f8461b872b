"""Dependency trees as lists of heads: what is a tree, what is projective, how good a parse is. Does not know the engine.

A sentence of n words has n heads; words count from 1 and 0 stands for the root, as in Sentence.heads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dynet_lite.errors import DataError

from .columns import parse_rows
from .conllu import Sentence, read_conllu
from .corpora import read_nltk
from .forms import form_of
from .lines import numbered_lines

__all__ = [
    "AttachmentScores",
    "attachment_scores",
    "is_projective",
    "is_tree",
    "load_nltk_dependencies",
    "need_trees",
    "projective_heads",
    "read_dependencies",
]


def is_tree(heads: Sequence[int]) -> bool:
    """Whether the root reaches every word, and exactly one word hangs from the root."""
    n = len(heads)
    if any(not 0 <= head <= n for head in heads) or sum(head == 0 for head in heads) != 1:
        return False
    safe = {0}
    for word in range(1, n + 1):
        path = []
        while word not in safe:
            if word in path:
                return False
            path.append(word)
            word = heads[word - 1]
        safe.update(path)
    return True


def _crossed(heads: Sequence[int]) -> int:
    """The dependent of the shortest arc that has a word between its ends that does not hang below its head; 0 if none."""
    worst, length = 0, len(heads) + 2
    for dependent, head in enumerate(heads, 1):
        low, high = min(head, dependent), max(head, dependent)
        if high - low >= length:
            continue
        for word in range(low + 1, high):
            while word not in (head, 0):  # climb; the root is below nothing but itself
                word = heads[word - 1]
            if word != head:
                worst, length = dependent, high - low
                break
    return worst


def is_projective(heads: Sequence[int]) -> bool:
    """Whether all words between a word and its head descend from that head. `heads` must be a tree."""
    return _crossed(heads) == 0


def projective_heads(heads: Sequence[int]) -> list[int]:
    """The heads of a projective tree that is close to the given one.

    As long as arcs cross, the shortest crossed arc is moved up to the head of its head (Nivre and Nilsson 2005,
    without their encoding in labels).
    """
    lifted = list(heads)
    while dependent := _crossed(lifted):
        lifted[dependent - 1] = lifted[lifted[dependent - 1] - 1]
    return lifted


def need_trees(sentences: Iterable[Sentence], name: str) -> None:
    """DataError, with the words of the sentence, if a sentence has no tags or its heads do not make a tree."""
    for number, sentence in enumerate(sentences, 1):
        if not (len(sentence.heads) == len(sentence.deprels) == len(sentence.upos) == len(sentence)):
            raise DataError(f"{name}: expected tags, heads and relations in sentence {number}: {_start(sentence)}")
        if not is_tree(sentence.heads):
            raise DataError(f"{name}: expected a tree with one root in sentence {number}: {_start(sentence)}")


def read_dependencies(path: str | os.PathLike[str]) -> list[Sentence]:
    """The sentences of a file, each with a tree. Anything else is a DataError.

    The file holds CoNLL-U, or four columns (word, tag, head and relation: Malt-TAB), where the relation may be
    missing.
    """
    sentences = _read_malt_tab(path) if 3 <= form_of(path).fields <= 4 else read_conllu(path)
    need_trees(sentences, os.fspath(path))
    return sentences


def _read_malt_tab(path: str | os.PathLike[str]) -> list[Sentence]:
    name, out = os.fspath(path), []
    for block in parse_rows(numbered_lines(path), name, form_of(path).is_comment):
        for number, cells in block:
            if not (cells[2].isascii() and cells[2].isdigit() and int(cells[2]) <= len(block)):
                raise DataError(f"{name}:{number}: expected a number from 0 to {len(block)} as head, got {cells[2]!r}")
        rows = [cells for _, cells in block]
        heads = [int(cells[2]) for cells in rows]
        relations = [
            cells[3] if len(cells) > 3 else "dep" if head else "root" for cells, head in zip(rows, heads, strict=True)
        ]
        out.append(Sentence([cells[0] for cells in rows], [cells[1] for cells in rows], [], heads, relations))
    return out


def _start(sentence: Sentence) -> str:
    return " ".join(sentence.forms[:8]) + (" ..." if len(sentence) > 8 else "")


@dataclass
class AttachmentScores:
    """Counts of words with the right head (`heads`), and with the right relation as well (`labeled`).

    `universal` compares only the part of a relation before the colon, as the scorer of the CoNLL 2018 shared task
    does. Punctuation counts. `uas`, `las` and `universal_las` are the shares.
    """

    words: int = 0
    heads: int = 0
    labeled: int = 0
    universal: int = 0

    def __str__(self) -> str:
        return f"LAS {self.las:.2%}, UAS {self.uas:.2%}, LAS without subtypes {self.universal_las:.2%}"

    @property
    def uas(self) -> float:
        """The share of words with the right head, from 0 to 1."""
        return self.heads / max(1, self.words)

    @property
    def las(self) -> float:
        """The share of words with the right head and relation."""
        return self.labeled / max(1, self.words)

    @property
    def universal_las(self) -> float:
        """The same, of relations the part before the colon."""
        return self.universal / max(1, self.words)


def attachment_scores(gold: Iterable[Sentence], parsed: Iterable[Sentence]) -> AttachmentScores:
    """Compares two parses of the same sentences. ValueError if the numbers of words differ."""
    score = AttachmentScores()
    for right, guess in zip(gold, parsed, strict=True):
        if not len(right) == len(right.heads) == len(guess.heads) == len(guess.deprels):
            raise ValueError(f"expected a parse of {len(right)} words, got {len(guess.heads)} heads: {_start(right)}")
        score.words += len(right)
        for i, head in enumerate(right.heads):
            if head == guess.heads[i]:
                score.heads += 1
                score.labeled += right.deprels[i] == guess.deprels[i]
                score.universal += right.deprels[i].split(":")[0] == guess.deprels[i].split(":")[0]
    return score


def load_nltk_dependencies(name: str) -> list[Sentence]:
    """The sentences of an NLTK corpus of dependencies ('dependency_treebank'), with tags, heads and relations.

    If the corpus has no relations, they are "root" and "dep". Sentences with several roots are left out.
    """
    graphs = read_nltk(name, "parsed_sents", "dependencies; try 'dependency_treebank'")
    if not graphs or not hasattr(graphs[0], "nodes"):
        raise DataError(f"the NLTK corpus {name!r} has no dependencies; try 'dependency_treebank'")
    sentences = []
    for graph in graphs:
        words = [graph.nodes[i] for i in range(1, len(graph.nodes))]
        heads = [word["head"] for word in words]
        relations = [word["rel"] or ("dep" if word["head"] else "root") for word in words]
        if is_tree(heads):
            sentences.append(Sentence([w["word"] for w in words], [w["tag"] for w in words], [], heads, relations))
    if not sentences:
        raise DataError(f"the NLTK corpus {name!r} holds no tree")
    return sentences
