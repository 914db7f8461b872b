"""Tensor: what Expression.tensor_value() gives; numbers out of a graph with DyNet's few methods on them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dynet_lite.initializers import generator

__all__ = [
    "Tensor",
]

Array = np.ndarray[Any, np.dtype[Any]]
Axes = tuple[Array, ...]


@lru_cache(maxsize=64)
def other_axes(shape: tuple[int, ...], dim: int) -> tuple[Axes, Axes]:
    """The positions along the axes before and after one. With indices along that one they choose elements of an array, as in
    np.take_along_axis, which makes them anew each time and takes five times as long."""
    axes = np.ix_(*map(np.arange, shape))
    return axes[:dim], axes[dim + 1 :]


class Tensor:
    """Numbers with dims and a batch, copied out of a graph: what ``x.tensor_value()`` gives."""

    def __init__(self, array: Array, dim: tuple[tuple[int, ...], int] | None = None) -> None:
        if dim is None:
            raise TypeError(
                "[Tensor] x.tensor_value() gives these; to put numbers into a graph, write dy.inputTensor(array)"
            )
        self._array, self._dim = array, dim

    def as_numpy(self) -> Array:
        """The numbers: dims, then the batch as last axis when it is not 1."""
        return self._array

    def dim(self) -> tuple[tuple[int, ...], int]:
        """((d1, ...), batch size)."""
        return self._dim

    def _ordered(self, keys: Array, dim: int, num: int, what: str) -> Array:
        """Indices along dim of the num largest keys, largest first, ties by position."""
        sizes = self._dim[0]
        if not 0 <= dim < len(sizes):
            raise IndexError(f"[{what}] dim {dim} of a tensor with dims {sizes}")
        if not 1 <= num <= sizes[dim]:
            raise ValueError(f"[{what}] num must be between 1 and {sizes[dim]}; got {num}")
        if num == 1:
            largest: Array = keys.argmax(axis=dim, keepdims=True)
            return largest
        order: Array = (-keys).argsort(axis=dim, kind="stable")
        return order[(slice(None),) * dim + (slice(num),)]

    def _like(self, array: Array, dim: int) -> Tensor:
        sizes = list(self._dim[0])
        sizes[dim] = array.shape[dim]
        return Tensor(array, (tuple(sizes), self._dim[1]))

    def argmax(self, dim: int = 0, num: int = 1) -> Tensor:
        """Indices of the num largest numbers along dim, largest first; that dim becomes num."""
        return self._like(self._ordered(self._array, dim, num, "argmax"), dim)

    def topk(self, dim: int = 0, num: int = 1) -> tuple[Tensor, Tensor]:
        """(values, indices) of the num largest numbers along dim, largest first; that dim becomes num."""
        indices = self._ordered(self._array, dim, num, "topk")
        before, after = other_axes(self._array.shape, dim)
        at = (*before, indices, *after)
        return self._like(self._array[at], dim), self._like(indices, dim)

    def categorical_sample_log_prob(self, dim: int = 0, num: int = 1) -> Tensor:
        """Indices drawn along dim, the numbers being log-probabilities (not need be normalised); that dim becomes num.

        Drawn with replacement, by the largest of the numbers plus Gumbel noise.
        """
        draws = []
        for _ in range(num):
            noise = generator().gumbel(size=self._array.shape)
            draws.append(self._ordered(self._array + noise, dim, 1, "categorical_sample_log_prob"))
        if not draws:
            raise ValueError(f"[categorical_sample_log_prob] num must be positive; got {num}")
        return self._like(np.concatenate(draws, axis=dim), dim)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._array, dtype=dtype)

    def __repr__(self) -> str:
        return f"<tensor {self._dim[0]} X {self._dim[1]}: {self._array!r}>"
