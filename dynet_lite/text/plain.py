"""Sentences as lists of words and nothing else, from files of several kinds and from NLTK, for language models.

Does not know the engine.
"""

from __future__ import annotations

import os

from dynet_lite.errors import DataError

from .conllu import iter_conllu
from .corpora import load_nltk_tagged, read_nltk
from .lines import numbered_lines
from .trees import iter_trees

__all__ = ["load_nltk_words", "read_words"]

TREES = (".ptb", ".sst", ".mrg")


def read_words(path: str | os.PathLike[str]) -> list[list[str]]:
    """The sentences of a file: CoNLL-U (.conllu), trees in brackets (.ptb, .sst, .mrg) or lines of words and blanks.

    Empty lines and empty elements of trees are left out. A malformed file is a DataError.
    """
    ending = os.path.splitext(os.fspath(path))[1]
    if ending == ".conllu":
        return [sentence.forms for sentence in iter_conllu(path)]
    if ending in TREES:
        trees = (tree.without_empty() for tree in iter_trees(path))
        return [tree.words() for tree in trees if tree is not None]
    return [words for _, line in numbered_lines(path) if (words := line.split())]


def load_nltk_words(name: str) -> list[list[str]]:
    """The sentences of the NLTK corpus `name`, without the empty elements of tagged ones ('treebank')."""
    try:
        return [sentence.forms for sentence in load_nltk_tagged(name)]
    except DataError as error:
        if "has no tags" not in str(error):
            raise
    return [list(words) for words in read_nltk(name, "sents", "sentences; try 'treebank' or 'gutenberg'") if words]
