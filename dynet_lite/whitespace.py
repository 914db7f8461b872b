"""Words of a line, cut at the white space that C knows. Does not know the engine."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^ \t\n\v\f\r]+")


def split_words(line: str) -> list[str]:
    """The words of a line: what stands between blanks, tabs and ends of lines, the white space that C knows.

    str.split() also cuts at no-break spaces and other white space beyond ASCII, which may stand inside a word (8 1/2).
    """
    return _WORD.findall(line)
