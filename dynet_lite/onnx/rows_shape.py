"""Rows of the ops that move numbers without computing: picking, slicing, joining, reshaping, transposing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .rows_reduce import fixed
from .table import row
from .writer import Made, Unsupported, Value, Writer

FAR = 2**31


@row("concatenate")
def concatenate(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    if len(xs) == 1 and len(xs[0].dims) == len(node.dims):
        return w.op("Identity", xs[0].name)
    return w.op("Concat", *w.alike(xs, len(node.dims)), axis=-(node["d"] + 1))


@row("concatenate_to_batch")
def concatenate_to_batch(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    if len(xs) == 1:
        return w.op("Identity", xs[0].name)
    for x in xs:
        fixed(x, "concatenate_to_batch")
    rank = len(node.dims)
    names = [w.lift(x, rank, force=True) for x in xs]
    return w.op(
        "Concat", *[n if x.batched else w.op("Unsqueeze", n, w.ints(0)) for n, x in zip(names, xs, strict=True)], axis=0
    )


@row("_pick")
def pick(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x, axis = xs[0], -(node["dim"] + 1)
    name = w.lift(x, node["dim"] + 1, force=True)
    return w.reshaped(w.op("Gather", name, w.ints(node["index"]), axis=axis), x.batched, node.dims)


@row("_pick_range")
def pick_range(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    name = w.lift(xs[0], node["d"] + 1, force=True)
    name = w.slice(name, -(node["d"] + 1), node["start"], node["start"] + node["n"])
    return name if len(node.dims) == max(len(xs[0].dims), node["d"] + 1) else w.reshaped(name, node.batched, node.dims)


@row("_select")
def select(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    name = w.lift(xs[0], node["dim"] + 1, force=True)
    return w.op("Gather", name, w.ints(*node["ids"]), axis=-(node["dim"] + 1))


@row("_slice")
def strided(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x = xs[0]
    name, squeeze = x.name, False
    for i, (start, step, count) in enumerate(zip(node["start"], node["step"], node["count"], strict=True)):
        of_batch = i == len(x.dims)
        whole = x.batch if of_batch else x.dims[i]
        if count == whole and (start, step if count > 1 else 1) == (0, 1):
            continue
        if of_batch:
            fixed(x, "slice")
            squeeze = count == 1
        end = start + step * count
        name = w.slice(name, 0 if of_batch else -(i + 1), start, end if end >= 0 else -FAR, step)
    if squeeze:
        name = w.op("Squeeze", name, w.ints(0))
    return w.reshaped(name, node.batched, node.dims)


@row("pick_batch_elem")
def pick_batch_elem(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x = xs[0]
    if not x.batched:
        return w.op("Identity", x.name)
    return w.op("Squeeze", w.op("Gather", x.name, w.ints(node["v"]), axis=0), w.ints(0))


@row("_pick_batch_elems")
def pick_batch_elems(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x = xs[0]
    name = x.name if x.batched else w.op("Unsqueeze", x.name, w.ints(0))
    name = w.op("Gather", name, w.ints(*node["vs"]), axis=0)
    return name if node.batched else w.op("Squeeze", name, w.ints(0))


@row("reshape")
def reshape(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x = xs[0]
    if x.batch == node.batch:
        return w.reshaped(x.name, node.batched, node.dims)
    if x.symbol:
        raise Unsupported(f"[onnx] reshape: would mix the elements of {x.symbol}, whose length is not known")
    return w.op("Reshape", x.name, w.ints(*([node.batch] if node.batched else []), *reversed(node.dims)))


@row("_transpose")
def transpose(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x, dims = xs[0], node["dims"]
    rank = len(dims)
    name, first = w.lift(x, rank, force=True), int(x.batched)
    perm = [first + rank - 1 - dims[rank - 1 - a] for a in range(rank)]
    name = w.op("Transpose", name, perm=[*range(first), *perm])
    return name if len(node.dims) == rank else w.reshaped(name, x.batched, node.dims)
