"""Running rows of the table in the engine and comparing: the scalar that gradients are taken of, numeric gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from samples import Array, Row, evaluate

import dynet_lite as dy
from dynet_lite import _core

STRATEGIES = ("none", "depth", "agenda", "greedy", "auto")


@contextmanager
def graph(strategy: str = "greedy", seed: int = 1) -> Iterator[Any]:
    """A graph of its own with a strategy; random nodes draw from the seed."""
    before = _core.settings.strategy
    _core.settings.strategy = strategy
    _core.set_seed(seed)
    try:
        with _core.ComputationGraph() as g:
            yield g
    finally:
        _core.settings.strategy = before


def as_input(x: Array) -> Any:
    """An input expression from an array whose last axis is the batch."""
    return dy.inputTensor(x, batched=True) if x.shape[-1] > 1 else dy.inputTensor(x[..., 0])


def value_of(e: Any) -> Array:
    """The value with the batch as last axis."""
    y = e.npvalue()
    return y if e.dim()[1] > 1 else y[..., None]


def gradient_of(e: Any) -> Array:
    g = e.gradient()
    return g if e.dim()[1] > 1 else g[..., None]


# ---- an asymmetric scalar: square root of a weighted sum of squares ------------------------------------------------
# Every element has a weight and a shift of its own, so that no two of them, and no two signs, can stand for each other.


@cache
def weights(size: int, seed: int = 7) -> tuple[Array, Array]:
    rng = np.random.default_rng([seed, size])
    return rng.uniform(0.5, 1.5, size).astype(np.float32), rng.uniform(0.2, 0.8, size).astype(np.float32)


def scalar(y: Any) -> Any:
    """The scalar of an expression of any shape and batch."""
    shape, batch = y.dim()
    size = int(np.prod(shape)) * batch
    w, c = weights(size)
    flat = dy.reshape(y, (size,))
    return dy.sqrt(dy.inputTensor(w[None, :]) * dy.square(flat + dy.inputVector(c)))


def scalar_np(y: Array) -> float:
    """The same of an array whose last axis is the batch."""
    w, c = weights(y.size)
    return float(np.sqrt(np.sum(w.astype(np.float64) * (y.ravel(order="F") + c) ** 2)))


# ---- rows in the engine -----------------------------------------------------------------------------------------------


def sample(row: Row, seed: int) -> tuple[list[Array], dict[str, Any]]:
    """Arguments and attributes of one copy."""
    rng = np.random.default_rng([seed, len(row.label)])
    return [a.sample(rng) for a in row.args], row.draw_attrs(rng)


def loss_of(row: Row, y: Any) -> Any:
    return scalar(row.after[0](y) if row.after else y)


def reference(row: Row, y: Array, arrays: Sequence[Array], attrs: dict[str, Any]) -> Callable[..., Any]:
    """The NumPy function of a row; for a random one, what this draw did."""
    if row.oracle is not None:
        return row.oracle(y, *arrays, **attrs)
    assert row.ref is not None, f"{row.label}: a row needs ref or oracle"
    return row.ref


def wanted_gradients(
    row: Row, ref: Callable[..., Any], arrays: Sequence[Array], attrs: dict[str, Any], together: bool = False
) -> list[Array]:
    """Gradients of the scalar by central differences in float64, entry by entry.

    together: all arguments are one and the same; the gradient is that of the first.
    """
    y0 = evaluate(ref, arrays, row.whole, attrs)
    slope_ref = row.surrogate or ref
    s0 = evaluate(slope_ref, arrays, row.whole, attrs) if row.surrogate else None

    def f(values: Sequence[Array]) -> float:
        y = evaluate(slope_ref, values, row.whole, attrs)
        if s0 is not None:
            y = y0 + (y - s0)
        return scalar_np(row.after[1](y) if row.after else y)

    h = 1e-6
    grads = []
    for j in range(1 if together else len(arrays)):
        grad = np.zeros(arrays[j].shape)
        for at in np.ndindex(grad.shape):
            side = []
            for sign in (h, -h):
                moved = arrays[j].copy()
                moved[at] += sign
                side.append(f([moved if together or i == j else a for i, a in enumerate(arrays)]))
            grad[at] = (side[0] - side[1]) / (2 * h)
        grads.append(grad)
    return grads


def close(given: Array, wanted: Array, rtol: float, what: str, atol: float = 1e-6) -> None:
    """Differences relative to the largest number; NaN only against NaN, infinities exactly."""
    assert given.shape == wanted.shape, f"{what}: shape {given.shape}, wanted {wanted.shape}"
    finite = np.isfinite(wanted)
    assert np.array_equal(given[~finite], wanted[~finite], equal_nan=True), f"{what}: {given} instead of {wanted}"
    off = np.abs(given[finite] - wanted[finite])
    limit = atol + rtol * np.max(np.abs(wanted[finite]), initial=0.0)
    assert np.all(off <= limit), f"{what}: off by {off.max():.3g} (allowed {limit:.3g})\n{given}\ninstead of\n{wanted}"


def ops_used(g: Any) -> set[str]:
    """Names of the ops in a graph."""
    return _core.graph_ops(g)
