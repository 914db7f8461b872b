"""Which parameter of a model is which of a file that gives it another name.

Parameters without a name are called _0, _1, ... after their place. So are those in files that were written before builders
gave names, and those of programs in which dynet_lite stands in for DyNet. Who may import: whoever finds parameters by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["by_place"]

UNNAMED = re.compile(r"(?:.*/)?_\d+")


def by_place(ours: Iterable[str], theirs: Iterable[str]) -> dict[str, str] | None:
    """{their name: our name}: by name where the names are equal, else by place.

    By place if there are as many of them and, wherever two names differ, one is that of a parameter without a name. None
    when neither goes. Whoever asks compares the shapes.
    """
    ours, theirs = list(ours), list(theirs)
    if set(ours) == set(theirs):
        return {name: name for name in theirs}
    pairs = list(zip(theirs, ours, strict=False))
    if len(ours) != len(theirs) or not all(a == b or UNNAMED.fullmatch(a) or UNNAMED.fullmatch(b) for a, b in pairs):
        return None
    return dict(pairs)
