"""Sentences with a tag per word, from files of any form that has them. Does not know the engine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice

from dynet_lite.errors import DataError

from .columns import parse_rows
from .conllu import Sentence, iter_conllu, read_conllu
from .forms import Form, chosen_form, is_span_label, one_mark, split_tagged
from .lines import numbered_lines
from .records import Conllu, Source, Tagged
from .trees import iter_trees

__all__ = ["read_tagged", "tagged_source"]

_SAMPLE = 100  # sentences that are looked at for tags where a file is not read whole


def read_tagged(path: str | os.PathLike[str], column: int = 0, form: str = "auto") -> list[Sentence]:
    """Tagged sentences of a file. The tags are in `Sentence.upos`.

    The file holds CoNLL-U, columns (a word and its tag on each line, separated by tabs or blanks, and an empty line
    after each sentence), sentences of word_tag, word|tag or word/tag, or trees in brackets. It may be gzipped.

    column: for columns, the number of the one with the tags; the word is column 0. With 0 it is found: the second of
        two; also the second of more, if the last one holds span labels (CoNLL-2000) or the third one heads
        (Malt-TAB). Otherwise a DataError asks
    form: one of FORMS. "auto" recognises the format

    DataError if the file holds none of these, or if no word of CoNLL-U has a universal tag.
    """
    name, found = os.fspath(path), chosen_form(path, form)
    if found.kind == "conllu":
        sentences = read_conllu(path)
        _need_tags(sentences, f"{name}: expected tags in the column UPOS, which is empty")
        return sentences
    if found.kind == "trees":
        trees = (tree.without_empty() for tree in iter_trees(path))
        leaves = ([node for node in tree.nodes() if not node.children] for tree in trees if tree is not None)
        return [Sentence([leaf.word for leaf in row], [leaf.label for leaf in row]) for row in leaves]
    if found.kind == "columns" or (found.fields and found.kind in ("table", "text")):
        return _read_columns(path, column, found)
    if found.kind == "tagged":
        mark, out = one_mark(found, name), []
        for number, line in numbered_lines(path):
            words, tags = split_tagged(line, mark, f"{name}:{number}")
            if words:
                out.append(Sentence(words, tags))
        return out
    if not any(line.strip() for _, line in numbered_lines(path)):
        return []
    raise DataError(
        f"{name}: expected CoNLL-U, columns, trees or sentences of word_tag, word|tag or word/tag, got something else; "
        "--form says which it is, and what does not fit is then named"
    )


def tagged_source(path: str | os.PathLike[str], form: str = "auto") -> Source:
    """The source for a Stream of what read_tagged() gives: CoNLL-U or sentences of word_tag. DataError for other files."""
    found = chosen_form(path, form)
    if found.kind == "conllu":
        first = list(islice(iter_conllu(path), _SAMPLE))
        empty = f"which is empty in the first {len(first)} sentences"
        _need_tags(first, f"{os.fspath(path)}: expected tags in the column UPOS, {empty}")
        return Conllu()
    if found.kind == "tagged":
        return Tagged(one_mark(found, os.fspath(path)))
    raise DataError(
        f"{os.fspath(path)}: expected CoNLL-U or sentences of word_tag, which are read bit by bit; got {found.kind}"
    )


def _need_tags(sentences: Sequence[Sentence], otherwise: str) -> None:
    """DataError with these words if no word of some sentences has a tag."""
    if sentences and all(tag == "_" for sentence in sentences for tag in sentence.upos):
        raise DataError(otherwise)


def _read_columns(path: str | os.PathLike[str], column: int, form: Form) -> list[Sentence]:
    name, out = os.fspath(path), []
    blocks = list(parse_rows(numbered_lines(path), name, form.is_comment))
    fields = {len(block[0][1]) for block in blocks}
    if not column and fields and max(fields) > 2:
        column = 1
        rows = [cells for block in blocks for _, cells in block]
        if not all(is_span_label(cells[-1]) for cells in rows) and not all(
            len(cells) in (3, 4) and cells[2].isascii() and cells[2].isdigit() for cells in rows
        ):
            raise DataError(
                f"{name}: expected a word and its tag in each line, got {max(fields)} columns; say which one has the tag "
                "with --column N (the word is column 0, -1 is the last)"
            )
    column = column or 1
    for block in blocks:
        for number, cells in block:
            if not -len(cells) <= column < len(cells) or not cells[column] or not cells[0]:
                raise DataError(
                    f"{name}:{number}: expected a word and its tag in column {column}, got {len(cells)} columns"
                )
            if " " in cells[column]:
                raise DataError(
                    f"{name}:{number}: expected a tag without blanks in column {column}, got {cells[column]!r}"
                )
        out.append(Sentence([cells[0] for _, cells in block], [cells[column] for _, cells in block]))
    return out
