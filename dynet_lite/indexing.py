"""What ``expression[index]`` means.

As in NumPy: ints (the dim is removed), slices with steps, None, Ellipsis, a list of ints or a boolean mask along one
dim. As in DyNet: a position after the last dim stands for the mini-batch, and what has no dim left is {1}. A result
that lies in one piece is not copied. Gradients flow through all of it.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from dynet_lite import _core, config

__all__ = ["getitem"]


def getitem(x: Any, index: Any) -> Any:
    """x[index]: what the index chooses, in x's graph.

    IndexError when out of range or with too many indices, ValueError when nothing is left, TypeError for no index.
    """
    # x[i], and what is made of ints and slices, is in the core (forms.pxi) unless something is wrong.
    if type(index) is _core.IndexStandIn:
        return _core._pick(x, index, 0)  # type: ignore[arg-type]
    if type(index) is bool and config.is_dynet():
        return _core._pick(x, int(index), 0)  # labels of two classes; elsewhere one may take it for a mask
    return _Selection(x, index if isinstance(index, tuple) else (index,)).result()


class _Selection:
    """An index, position by position: slices and ints first, in one step; then lists; then the shape."""

    def __init__(self, x: Any, index: tuple[Any, ...]) -> None:
        self.x = x
        shape, batch = x.dim()
        self.sizes = [*shape, batch]
        self.nd = len(shape)
        self.start = [0] * (self.nd + 1)
        self.step = [1] * (self.nd + 1)
        self.count = list(self.sizes)
        self.shape: list[int | None] = []  # of the result: a position of x, or None for a new dim
        self.removed = False
        self.list_at = -1
        self.ids: list[int] = []
        at = 0
        for item in self._expand(index):
            if item is None:
                self.shape.append(None)
                continue
            if self._take(at, item) and at < self.nd:
                self.shape.append(at)
            at += 1
        self.shape += list(range(at, self.nd))

    def _expand(self, index: tuple[Any, ...]) -> list[Any]:
        """The index without Ellipsis; the right number of whole slices stands in its place."""
        used = sum(1 for i in index if i is not None and i is not Ellipsis)
        dots = sum(1 for i in index if i is Ellipsis)
        if used > self.nd + 1:
            raise IndexError(f"[x[...]] {used} indices for an expression of {self.nd} dims and the batch")
        if dots > 1:
            raise IndexError("[x[...]] only one ... may stand in an index")
        out: list[Any] = []
        for item in index:
            if item is Ellipsis:
                out += [slice(None)] * max(0, self.nd - used)
            else:
                out.append(item)
        return out

    def _take(self, at: int, item: Any) -> bool:
        """Note what is wanted at one position; False when the dim is removed."""
        size = self.sizes[at]
        if isinstance(item, slice):
            start, stop, step = _whole(item).indices(size)
            self.start[at], self.step[at] = start, step
            self.count[at] = len(range(start, stop, step))
            if self.count[at] == 0:
                raise ValueError(f"[x[...]] the slice {_text(item)} of {self.where(at)} is empty")
            return True
        if isinstance(item, (list, np.ndarray)) and not (isinstance(item, np.ndarray) and item.ndim == 0):
            self._take_list(at, item)
            return True
        if isinstance(item, (bool, np.bool_)) or not hasattr(item, "__index__"):
            raise TypeError(f"[x[...]] an index is an int, a slice, None, ..., a list of ints or a mask; got {item!r}")
        i = item.__index__()
        if not -size <= i < size:
            raise IndexError(f"[x[...]] index {i} is out of range for {self.where(at)}")
        self.start[at], self.count[at] = i % size, 1
        self.removed = self.removed or at < self.nd
        return False

    def _take_list(self, at: int, item: Any) -> None:
        size = self.sizes[at]
        if self.list_at >= 0:
            raise IndexError("[x[...]] only one list or mask may stand in an index; index twice: x[rows][:, cols]")
        array = np.asarray(item)
        if array.size == 0:
            raise ValueError(f"[x[...]] an empty list selects nothing of {self.where(at)}")
        if array.ndim != 1 or array.dtype.kind not in "biu":
            raise TypeError("[x[...]] a list in an index holds ints or booleans, in one dim")
        if array.dtype.kind == "b":
            if len(array) != size:
                raise IndexError(f"[x[...]] a mask of {len(array)} for {self.where(at)}")
            array = np.flatnonzero(array)
        if array.size == 0:
            raise ValueError(f"[x[...]] the mask selects nothing of {self.where(at)}")
        if array.min() < -size or array.max() >= size:
            raise IndexError(f"[x[...]] indices {array.min()}..{array.max()} are out of range for {self.where(at)}")
        self.list_at, self.ids = at, array.tolist()

    def where(self, at: int) -> str:
        return f"dim {at} of size {self.sizes[at]}" if at < self.nd else f"a batch of {self.sizes[at]}"

    def result(self) -> Any:
        y = self._sliced()
        if self.list_at == self.nd:
            y = _core._pick_batch_elems(y, self.ids, len(self.ids))
        elif self.list_at >= 0:
            y = _core._select(y, self.ids, self.list_at, len(self.ids))
        if self.removed or None in self.shape:
            sizes, batch = y.dim()
            y = _core.reshape(y, [1 if d is None else sizes[d] for d in self.shape] or [1], batch)
        return y

    def _sliced(self) -> Any:
        """The part of x that slices and ints choose; all dims are still there."""
        cut = [i for i in range(self.nd + 1) if self.count[i] != self.sizes[i] or self.step[i] != 1]
        if not cut:
            return self.x
        last = cut[-1]
        if len(cut) == 1 and last < self.nd and self.step[last] == 1:
            return _core._pick_range(self.x, self.start[last], self.count[last], last)
        return _core._slice(self.x, self.start[: last + 1], self.step[: last + 1], self.count[: last + 1])


def _whole(item: slice) -> slice:
    """The slice with ints where programs write half / 2; where dynet_lite stands in for DyNet cut off, as there."""
    if not isinstance(item.start, float) and not isinstance(item.stop, float):
        return item
    cut = config.is_dynet()
    parts = (item.start, item.stop, item.step)
    return slice(*(int(v) if isinstance(v, float) and (v.is_integer() or cut and isfinite(v)) else v for v in parts))


def _text(item: slice) -> str:
    parts = ["" if v is None else str(v) for v in (item.start, item.stop)]
    return ":".join(parts + ([str(item.step)] if item.step is not None else []))
