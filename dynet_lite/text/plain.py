"""Sentences as lists of words and nothing else, from files of several kinds and from NLTK, for language models.

Does not know the engine.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import islice
from typing import Any

from dynet_lite.errors import DataError

from .columns import parse_rows
from .conllu import iter_conllu
from .corpora import load_nltk_tagged, read_nltk
from .forms import Form, chosen_form, one_mark, split_tagged
from .lines import numbered_lines, split_words
from .records import Conllu, Plain, Source, Tagged
from .trees import iter_trees

__all__ = ["load_nltk_words", "read_words", "words_source"]


def read_words(path: str | os.PathLike[str], form: str = "auto") -> list[list[str]]:
    """The sentences of a file as lists of words, without annotation.

    The file holds lines of words, CoNLL-U, trees in brackets, columns (the word is the first) or sentences of
    word_tag. It may be gzipped. Empty lines, and empty elements of trees, are left out.

    form: one of FORMS. "auto" recognises the format

    DataError if a file is malformed, fits two formats, or is a table of labels and texts.
    """
    name, found = os.fspath(path), _sentences(path, form)
    if found.kind == "conllu":
        return [sentence.forms for sentence in iter_conllu(path)]
    if found.kind == "trees":
        trees = (tree.without_empty() for tree in iter_trees(path))
        return [tree.words() for tree in trees if tree is not None]
    if found.kind == "columns":
        blocks = parse_rows(numbered_lines(path), name, found.is_comment)
        return [[cells[0] for _, cells in block] for block in blocks]
    if found.kind == "tagged" and found.sure:
        mark = one_mark(found, name)
        lines = (split_tagged(line, mark, f"{name}:{number}")[0] for number, line in numbered_lines(path))
        return [words for words in lines if words]
    return [words for _, line in numbered_lines(path) if (words := split_words(line))]


def words_source(path: str | os.PathLike[str], form: str = "auto") -> tuple[Source, Callable[[Any], list[str]] | None]:
    """The source, and `take`, for a Stream of what read_words() gives: lines of words, CoNLL-U or word_tag.

    DataError for other files.
    """
    name, found = os.fspath(path), _sentences(path, form)
    if found.kind == "conllu":
        return Conllu(), _forms
    if found.kind == "tagged" and found.sure:
        return Tagged(one_mark(found, name)), _forms
    if found.kind in ("columns", "trees"):
        raise DataError(
            f"{name}: expected lines of words, CoNLL-U or word_tag, which are read bit by bit; got {found.kind}"
        )
    return Plain(), None


def _forms(sentence: Any) -> list[str]:
    forms: list[str] = sentence.forms
    return forms


def _sentences(path: str | os.PathLike[str], form: str) -> Form:
    """What the file holds; DataError where it may be more than text."""
    name, found = os.fspath(path), chosen_form(path, form)
    if found.kind == "table" or (found.kind in ("columns", "tagged") and not found.sure and _many(path)):
        asked = {"columns": "columns", "table": "columns", "tagged": f"'word{found.mark[:1]}tag'"}[found.kind]
        raise DataError(
            f"{name}: expected sentences, got what may be more than text; say --form text or --form {asked}"
        )
    return found


def _many(path: str | os.PathLike[str]) -> bool:
    """Whether a file has ten words or more: fewer look like tagged ones by chance."""
    words = (word for _, line in numbered_lines(path) for word in split_words(line))
    return len(list(islice(words, 10))) == 10


def load_nltk_words(name: str) -> list[list[str]]:
    """The sentences of an NLTK corpus ('treebank'), as lists of words. Empty elements are left out."""
    try:
        return [sentence.forms for sentence in load_nltk_tagged(name)]
    except DataError as error:
        if "has no tags" not in str(error):
            raise
    return [list(words) for words in read_nltk(name, "sents", "sentences; try 'treebank' or 'gutenberg'") if words]
