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


class Size(int):
    """The size of a mini-batch that stands for a name. It may be compared and handed on; its number means nothing."""

    symbol: str

    def _unknown(self, *_: Any) -> Any:
        raise Unsupported(
            f"[onnx] {self.symbol}, a size of mini-batches, is not known before the file runs: nothing can be computed from it"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _unknown
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __float__ = _unknown


def sized(batch: int, symbol: str | None) -> int:
    """What a program sees as the size of a mini-batch. symbol: its name, if it has one."""
    if symbol is None:
        return batch
    size = Size(batch)
    size.symbol = symbol
    return size


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
