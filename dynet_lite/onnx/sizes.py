"""Sizes: those that are not known before the file runs, what a traced function sees of them; trailing ones of dims.

Who may import: this package.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dynet_lite import _core
from dynet_lite._core import Expression

from .writer import Dims, Unsupported


class Size:
    """The size of a mini-batch that stands for a name: it may be compared, and handed on to what makes a mini-batch of this size.

    It is no int, so that a loop over a range, or an array of this size, is an error and not one of the size that is pretended.
    """

    def __init__(self, e: Expression, pretended: int, trace: Any) -> None:
        self.e, self.pretended, self.trace = e, pretended, trace
        self.symbol: str = trace.symbols[pretended]

    def filled(self, made: Expression, number: float) -> None:
        """Says of an expression that was made with this size how a file makes it: as many of a number as there are of e."""

        def write(w: Any, get: Any) -> str:
            return str(w.repeated(w.number(number), made.shape, get(self.e).name))

        self.trace.enter(made, (self.e,), write, self.symbol)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.pretended == other.pretended

    def __hash__(self) -> int:
        return hash(self.symbol)

    def __lt__(self, other: Any) -> bool:
        return self._less(other, self.pretended < number(other))

    def __gt__(self, other: Any) -> bool:
        return self._less(other, self.pretended > number(other))

    def __le__(self, other: Any) -> bool:
        return self._less(other, self.pretended <= number(other))

    def __ge__(self, other: Any) -> bool:
        return self._less(other, self.pretended >= number(other))

    def _less(self, other: Any, found: bool) -> bool:
        """With one and less, it compares as a mini-batch does; what else is less is not known."""
        return found if self == other or number(other) <= 1 else self._unknown()

    def __repr__(self) -> str:
        return self.symbol

    def _unknown(self, *_: Any) -> Any:
        raise Unsupported(
            f"[onnx] {self.symbol}, a size of mini-batches, is not known before the file runs: nothing can be computed from it "
            "(a mean is dy.mean_batches)"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _unknown
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __float__ = _unknown
    __index__ = __int__ = _unknown


def sized(trace: Any, e: Expression, batch: int) -> int | Size:
    """What a program sees as the size of the mini-batch of e."""
    return Size(e, batch, trace) if batch in trace.symbols else batch


def number(size: Any) -> int:
    """What a size is, or pretends to be."""
    found: int = getattr(size, "pretended", size)
    return found


def longer(symbol: str, more: int) -> str:
    """The name of a length that is so much more: n+1 and -1 are n again."""
    found = re.fullmatch(r"(.+?)([+-]\d+)?", symbol)
    assert found is not None
    total = int(found[2] or 0) + more
    return f"{found[1]}{total:+d}" if total else found[1]


def explain(error: Exception, names: Mapping[int, str]) -> None:
    """Adds to the text of an error which of its numbers stand for a name."""
    if not error.args or not isinstance(error.args[0], str):
        return
    text = error.args[0]
    known = [f"{n} stands for {name}" for n, name in names.items() if re.search(rf"(?<!\d){n}(?!\d)", text)]
    if known:
        error.args = (f"{text}; {' and '.join(known)}, not known before the file runs", *error.args[1:])


def cut(dims: Dims) -> Dims:
    """Without trailing ones: where the engine takes {D}, {D,1} will do."""
    while len(dims) > 1 and dims[-1] == 1:
        dims = dims[:-1]
    return tuple(dims)


def with_dims(e: Expression, dims: Dims) -> Expression:
    """The same numbers with as many trailing ones as these dims have."""
    return e if e.shape == dims else _core.reshape(e, dims)
