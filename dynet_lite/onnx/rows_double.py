"""Rows of the ops that are computed with numbers of double length: the Gamma function, an inverse, a softmax with bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .rows_elementwise import both
from .table import row
from .writer import Made, Value, Writer

FLOAT, DOUBLE = 1, 11


def double(w: Writer, x: float) -> str:
    return w.constant(np.array(x, dtype=np.float64))


def cast(w: Writer, x: str, to: int) -> str:
    return w.op("Cast", x, to=to)


def log_gamma(w: Writer, x: str) -> str:
    """Of floats: reflection below 1/2, the recurrence of eight steps, then Stirling's series (Abramowitz, Stegun: Handbook
    of mathematical functions, 1964, 6.1.17, 6.1.15 and 6.1.41)."""
    wide, half = cast(w, x, DOUBLE), double(w, 0.5)
    small = w.op("Less", wide, half)
    z = w.op("Where", small, w.op("Sub", double(w, 1), wide), wide)
    product = z
    for k in range(1, 8):
        product = w.op("Mul", product, w.op("Add", z, double(w, k)))
    z = w.op("Add", z, double(w, 8))
    inverse = w.op("Div", double(w, 1), z)
    square, series = w.op("Mul", inverse, inverse), double(w, 1 / 1188)
    for c in (1 / 1680, 1 / 1260, 1 / 360, 1 / 12):
        series = w.op("Sub", double(w, c), w.op("Mul", square, series))
    found = w.op("Sub", w.op("Mul", w.op("Sub", z, half), w.op("Log", z)), z)
    found = w.op("Add", found, w.op("Add", w.op("Mul", inverse, series), double(w, math.log(2 * math.pi) / 2)))
    found = w.op("Sub", found, w.op("Log", product))
    angle = w.op("Mul", double(w, math.pi), w.op("Sub", wide, w.op("Floor", w.op("Add", wide, half))))
    turned = w.op("Log", w.op("Div", double(w, math.pi), w.op("Abs", w.op("Sin", angle))))
    found = cast(w, w.op("Where", small, w.op("Sub", turned, found), found), FLOAT)
    return w.op("Where", w.op("IsInf", x), w.number(math.inf), found)


@row("lgamma")
def lgamma(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    return log_gamma(w, xs[0].name)


@row("poisson")
def poisson(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    u, v = both(w, xs)
    return w.op("Add", w.op("Sub", w.op("Exp", u), w.op("Mul", v, u)), log_gamma(w, w.op("Add", v, w.number(1))))


@row("inverse")
def inverse(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    """Gauss and Jordan, with the largest pivot of each column, on [batch, n, 2 n]: a turn of the loop for each column."""
    n = node.dims[0]
    batched = xs[0].batched
    name = cast(w, w.lift(xs[0], 2, force=True), DOUBLE)
    name = name if batched else w.op("Unsqueeze", name, w.ints(0))
    unit = w.op("Expand", w.constant(np.eye(n)), w.op("Shape", name))
    places = w.constant(np.arange(n, dtype=np.int64).reshape(n, 1))

    def turn(k: str, tables: list[str]) -> list[str]:
        (a,) = tables
        here = w.op("Equal", places, k)  # [n, 1]
        column = w.op("Abs", w.op("Gather", a, w.op("Reshape", k, w.ints(1)), axis=2))
        free = w.op("GreaterOrEqual", places, k)
        best = w.op("ArgMax", w.op("Where", free, column, double(w, -1)), axis=1, keepdims=1)  # [batch, 1, 1]
        chosen = w.op("Equal", best, places)
        pivots = w.op("GatherND", a, w.op("Squeeze", best, w.ints(2)), batch_dims=1)
        pivots = w.op("Unsqueeze", pivots, w.ints(1))  # [batch, 1, 2 n]
        moved = w.op("Where", chosen, w.op("Gather", a, w.op("Reshape", k, w.ints(1)), axis=1), a)
        normal = w.op("Div", pivots, w.op("Gather", pivots, w.op("Reshape", k, w.ints(1)), axis=2))
        factor = w.op("Gather", moved, w.op("Reshape", k, w.ints(1)), axis=2)
        return [w.op("Where", here, normal, w.op("Sub", moved, w.op("Mul", factor, normal)))]

    (found,) = w.loop(w.scalar(n), [w.op("Concat", name, unit, axis=2)], turn, double=True)
    out = cast(w, w.slice(found, 2, n, 2 * n), FLOAT)
    return out if batched else w.reshaped(w.op("Squeeze", out, w.ints(0)), False, node.dims)


@row("constrained_softmax")
def constrained_softmax(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    """Sorted by bound / e^x, those at the front are cut while their share of what is left exceeds the bound."""
    n = node.dims[0]
    x, u = (cast(w, name, DOUBLE) for name in w.alike(xs, 1))
    weight = w.op("Exp", w.op("Sub", x, w.op("ReduceMax", x, w.ints(-1), keepdims=1)))
    zero, last = double(w, 0), w.scalar(-1)
    tight = w.op("Where", w.op("Greater", weight, zero), w.op("Div", u, weight), double(w, math.inf))
    _, order = w.op_n(2, "TopK", tight, w.ints(n), axis=-1, largest=0)
    e, bound = (w.op("GatherElements", name, order, axis=-1) for name in (weight, u))
    rest = w.op("CumSum", e, last, reverse=1)
    mass = w.op("Sub", double(w, 1), w.op("CumSum", bound, last, exclusive=1))
    free = w.op("Not", w.op("Less", w.op("Mul", bound, rest), w.op("Mul", e, mass)))
    behind = w.op("CumSum", cast(w, free, DOUBLE), last)
    front = w.op("Equal", behind, zero)  # the first one that is free, and all behind it, are not cut
    cut = w.op("ScatterElements", x, order, cast(w, front, DOUBLE), axis=-1)
    held = w.op("ReduceSum", w.op("Mul", u, cut), w.ints(-1), keepdims=1)
    others = w.op("ReduceSum", w.op("Mul", weight, w.op("Sub", double(w, 1), cut)), w.ints(-1), keepdims=1)
    left = w.op("Max", w.op("Sub", double(w, 1), held), zero)
    share = w.op("Div", w.op("Mul", weight, left), others)
    out = cast(w, w.op("Where", w.op("Greater", cut, zero), u, share), FLOAT)
    return out if len(node.dims) == 1 else w.reshaped(out, node.batched, node.dims)
