"""What a text file holds: told by what stands in it, never by the ending of its name.

    conllu    ten columns with tabs between, the first one a number
    trees     trees in brackets
    columns   a word and what belongs to it a line, an empty line after each sentence
    tagged    a sentence a line, each word with its tag: word_tag, word|tag or word/tag
    table     lines with the same number of fields, tabs or ||| between
    text      a sentence a line

The first lines of a file decide. Where they fit two forms `sure` is False, and the reader asks. Does not know the engine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from dynet_lite.errors import DataError

from .lines import need_file, numbered_lines, split_words
from .trees import parse_trees

__all__ = ["FORMS", "Form", "chosen_form", "form_of", "has_brackets", "is_span_label", "one_mark", "split_tagged"]

FORMS = ("auto", "text", "conllu", "trees", "columns", "word_tag", "word|tag", "word/tag")  # what a reader may be told
BARS = "|||"

_SAMPLE = 400  # lines that are looked at
_MARKS = "_|/"
_CONLLU = re.compile(r"(0\.1|1|1-\d+)[\t ]")


@dataclass(frozen=True, slots=True)
class Form:
    """The format that a file seems to have.

    `fields` is the number of columns, 0 if it differs from line to line. `mark` is the sign between word and tag.
    """

    kind: str
    sure: bool = True
    fields: int = 0
    mark: str = ""

    def is_comment(self, cells: Sequence[str]) -> bool:
        """Whether a row that begins with # is a comment, as opposed to the first word of a sentence."""
        return len(cells) != self.fields if self.fields else "=" in cells or not is_span_label(cells[-1])


def form_of(path: str | os.PathLike[str]) -> Form:
    """Guesses the format of a file from its first lines. An empty file is text.

    If several marks fit tagged text, `mark` has all of them.
    """
    need_file(path)
    lines = [line for _, line in islice(numbered_lines(path), _SAMPLE)]
    full = [line for line in lines if split_words(line)]
    rows = [line for line in full if not line.startswith("-DOCSTART-")]
    while rows and rows[0].startswith("#") and not is_span_label(split_words(rows[0])[-1]):
        del rows[0]  # a comment
    if not rows:
        return Form("text")
    first = next((row for row in rows if row[0] != "#"), rows[0])  # a comment may end like a span label: U-Bahn.
    if _is_conllu(first):
        return Form("conllu")
    return (
        _columns(rows, "" in (line.strip(" \t\r") for line in lines[: _last(lines)])) or _trees(full) or _tagged(rows)
    )


def _is_conllu(line: str) -> bool:
    """Whether a line is the first word of CoNLL-U, as opposed to a sentence with a number before it; also where blanks have
    taken the place of tabs, so that the reader can say so."""
    tabs = "\t" in line
    cells = line.split("\t") if tabs else split_words(line)
    return bool(_CONLLU.match(line)) and len(cells) >= 8 and (tabs or cells[6] == "_" or cells[6].isdecimal())


def _last(lines: Sequence[str]) -> int:
    """The number of lines up to the last one that is not empty."""
    return max(i for i, line in enumerate(lines, 1) if split_words(line))


def _columns(rows: list[str], parted: bool) -> Form | None:
    """Columns or a table, if all rows have as many fields. parted: there are empty lines between some."""
    if all(f" {BARS} " in row for row in rows):
        return Form("table", fields=2)
    tabs = any("\t" in row for row in rows)
    rows = [row for row in rows if not row.startswith("#" if tabs else "# ") or "\t" in row] or rows  # without comments
    cells = [row.strip("\r").split("\t") if tabs else split_words(row) for row in rows]
    fields = len(cells[0])
    if fields < 2 or any(len(row) != fields for row in cells):
        return None
    if all(is_span_label(row[-1]) for row in cells):
        return Form("columns", fields=fields)
    if tabs:
        words = not any(" " in row[-1] for row in cells)
        return Form("columns" if parted and words else "table", sure=parted and words, fields=fields)
    if fields <= 4 and not cells[0][0].startswith("(") and not _tagged(rows).mark:
        # Words with blanks between: verses may have two words in each line, too.
        return Form("columns", sure=False, fields=fields) if parted and len(rows) >= 10 else Form("text", fields=fields)
    return None


def _trees(full: list[str]) -> Form | None:
    if not full[0].lstrip(" \t").startswith("(") or "\t" in full[0].strip(" \t"):
        return None
    try:
        next(parse_trees(full))
    except DataError:
        depth = 0
        for token in re.findall(r"[()]|[^ \t()]+", " ".join(full)):
            depth = max(0, depth + (token == "(") - (token == ")"))
            if not depth and token not in "()":  # a sentence that begins with a bracket
                return None
    return Form("trees")


def _tagged(rows: list[str]) -> Form:
    """Text; with tags if each word has one, or most have and there are far fewer tags than words. Sure is only the former."""
    words = [word for row in rows for word in split_words(row)]
    found: dict[str, tuple[bool, int]] = {}  # mark: (some words have none, number of tags)
    for mark in _MARKS:
        halves = [(left, right) for left, _, right in (word.rpartition(mark) for word in words) if left and right]
        tags, whole = len({right for _, right in halves}), len(halves) == len(words)
        if len(words) > 1 and (whole or (len(halves) * 2 >= len(words) >= 10 and tags * 4 <= len(halves))):
            found[mark] = not whole, tags
    if not found:
        return Form("text")
    best = min(found.values())
    marks = "".join(mark for mark, how in found.items() if how == best)
    return Form(
        "tagged", sure=not best[0] and best[1] * 2 <= len(words) and len(words) >= 10 and len(marks) == 1, mark=marks
    )


def chosen_form(path: str | os.PathLike[str], form: str) -> Form:
    """What the caller says that a file holds, one of FORMS, or what it looks like."""
    if form == "auto":
        return form_of(path)
    if form not in FORMS:
        raise ValueError(f"expected one of {', '.join(FORMS)} as form, got {form!r}")
    return Form("tagged", mark=form[4]) if form.startswith("word") else Form(form)


def one_mark(form: Form, name: str) -> str:
    """What stands between a word and its tag; DataError where it cannot be told."""
    if len(form.mark) > 1:
        asked = " or ".join(f"--form 'word{mark}tag'" for mark in form.mark)
        raise DataError(
            f"{name}: expected one mark between words and tags, got {' and '.join(form.mark)} in all words; say {asked}"
        )
    return form.mark


def is_span_label(text: str) -> bool:
    """Whether this is O or a type of a span with a letter before it: B-NP, I-NP, E-NP, S-NP, U-NP, L-NP."""
    return text == "O" or (len(text) > 2 and text[1] == "-" and text[0] in "BIESUL")


def has_brackets(path: str | os.PathLike[str]) -> bool:
    """Whether a file seems to hold trees in brackets, as opposed to columns or a table."""
    return form_of(path).kind == "trees"


def split_tagged(
    line: str, mark: str = "_", where: str = "input of a model that reads tags, too"
) -> tuple[list[str], list[str]]:
    """The words and the tags of a line of word_tag; the last mark of a word counts. DataError, which begins with `where`, for a
    word without a tag."""
    words, tags = [], []
    for item in split_words(line):
        word, _, tag = item.rpartition(mark)
        if not word or not tag:
            raise DataError(f"{where}: expected WORD{mark}TAG, got {item!r}")
        words.append(word)
        tags.append(tag)
    return words, tags
