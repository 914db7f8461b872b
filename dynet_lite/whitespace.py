"""Words of a line, cut at the white space that C knows. Does not know the engine."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^ \t\n\v\f\r]+")


def split_words(line: str) -> list[str]:
    """The words of a line, separated by blanks, tabs and line ends (the white space of ASCII).

    str.split() would also cut at no-break spaces and the like, which may be part of a word (8 1/2).
    """
    return _WORD.findall(line)
