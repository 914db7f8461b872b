"""Rows of sums and the like, softmax and what stands on it, losses of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .table import LOWERINGS, Lowering, row
from .writer import Array, Made, Unsupported, Value, Writer


def reduced(w: Writer, kind: str, x: Value, name: str, dims: Sequence[int], batch: bool = False) -> str:
    """A reduction over dims (and the mini-batch); they disappear, none left gives {1}."""
    axes = [-(d + 1) for d in dims] + ([0] if batch and x.batched else [])
    if not axes:
        return name
    out = w.op(kind, name, w.ints(*axes), keepdims=0)
    if len(dims) == len(x.dims):
        out = w.reshaped(out, x.batched and not batch, (1,))
    return out


def every(x: Value) -> range:
    return range(len(x.dims))


def over_elements(kind: str) -> Lowering:
    return lambda w, node, xs: reduced(w, kind, xs[0], xs[0].name, every(xs[0]))


def over_batch(kind: str) -> Lowering:
    return lambda w, node, xs: reduced(w, kind, xs[0], xs[0].name, (), True)


def along(kind: str) -> Lowering:
    return lambda w, node, xs: reduced(w, kind, xs[0], xs[0].name, (node["d"],))


for _op, _kind in {"sum_elems": "ReduceSum", "mean_elems": "ReduceMean", "l2_norm": "ReduceL2"}.items():
    LOWERINGS[_op] = over_elements(_kind)
for _op, _kind in {"sum_batches": "ReduceSum", "mean_batches": "ReduceMean"}.items():
    LOWERINGS[_op] = over_batch(_kind)
for _op, _kind in {"max_dim": "ReduceMax", "min_dim": "ReduceMin", "logsumexp_dim": "ReduceLogSumExp"}.items():
    LOWERINGS[_op] = along(_kind)


@row("_sum_dims")
def sum_dims(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    return reduced(w, "ReduceSum", xs[0], xs[0].name, node["dims"], bool(node["batch"]))


@row("_mean_dims")
def mean_dims(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    if node["divisor"] > 0:
        return w.op("Div", sum_dims(w, node, xs), w.number(node["divisor"]))
    return reduced(w, "ReduceMean", xs[0], xs[0].name, node["dims"], bool(node["batch"]))


@row("_std_dims")
def std_dims(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x, batch = xs[0], bool(node["batch"])
    axes = [-(d + 1) for d in node["dims"]] + ([0] if batch and x.batched else [])
    mean = w.op("ReduceMean", x.name, w.ints(*axes), keepdims=1) if axes else x.name
    d = w.op("Sub", x.name, mean)
    return w.op("Sqrt", reduced(w, "ReduceMean", x, w.op("Mul", d, d), node["dims"], batch))


@row("dot_product")
def dot_product(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    rank = max(len(x.dims) for x in xs)
    product = w.op("Mul", *[w.lift(x, rank) for x in xs])
    return reduced(w, "ReduceSum", Value(product, (1,) * rank, node.batch), product, range(rank))


@row("cumsum")
def cumsum(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    return w.op("CumSum", xs[0].name, w.constant(np.array(-(node["d"] + 1), dtype=np.int64)))


@row("_argmax")
def argmax(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    d, size = node["d"], xs[0].dims[node["d"]]
    best = w.op("ArgMax", xs[0].name, axis=-(d + 1), keepdims=1)
    places = np.arange(size, dtype=np.int64).reshape((size,) + (1,) * d)
    return w.op("Cast", w.op("Equal", best, w.constant(places)), to=1)


@row("kmax_pooling")
def kmax_pooling(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x, axis, k = xs[0], -(node["d"] + 1), w.ints(node["k"])
    name = w.lift(x, node["d"] + 1, force=True)
    _, places = w.op_n(2, "TopK", name, k, axis=axis)
    in_order, _ = w.op_n(2, "TopK", places, k, axis=axis, largest=0)
    return w.op("GatherElements", name, in_order, axis=axis)


# ---- softmax ---------------------------------------------------------------------------------------------------------


@row("softmax")
def softmax(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    return w.op("Softmax", w.lift(xs[0], len(node.dims), force=True), axis=-(node["d"] + 1))


@row("log_softmax")
def log_softmax(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    return w.op("LogSoftmax", w.lift(xs[0], len(node.dims), force=True), axis=-(node["d"] + 1))


@row("_log_softmax_restricted")
def log_softmax_restricted(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    mask = np.full(xs[0].dims[0], -np.inf, dtype=np.float32)
    mask[node["restrict"]] = 0
    return w.op("LogSoftmax", w.op("Add", xs[0].name, w.constant(mask)), axis=-1)


def threshold(w: Writer, x: str, n: int) -> str:
    """tau of sparsemax along the last axis, which is kept with length 1: Martins, Astudillo 2016, algorithm 1."""
    one = w.number(1)
    ordered, _ = w.op_n(2, "TopK", x, w.ints(n), axis=-1)
    sums = w.op("CumSum", ordered, w.constant(np.array(-1, dtype=np.int64)))
    counts = w.constant(np.arange(1, n + 1, dtype=np.float32))
    inside = w.op("Cast", w.op("Greater", w.op("Add", w.op("Mul", ordered, counts), one), sums), to=1)
    size = w.op("ReduceSum", inside, w.ints(-1), keepdims=1)
    total = w.op("ReduceSum", w.op("Mul", ordered, inside), w.ints(-1), keepdims=1)
    return w.op("Div", w.op("Sub", total, one), size)


@row("_segment_sum")
def segment_sum(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    """A product with a matrix of 0 and 1: [segments, n] times [.., n, inner]."""
    ids, n = np.array(node["ids"]), node["n"]
    chosen = (ids[None, :] == np.arange(n)[:, None]).astype(np.float32)
    if node["mean"]:
        chosen /= np.maximum(chosen.sum(1, keepdims=True), 1)
    inner = int(np.prod(node.dims[:-1], dtype=int))
    flat = w.reshaped(xs[0].name, xs[0].batched, (inner, len(ids)))
    return w.reshaped(w.op("MatMul", w.constant(chosen), flat), node.batched, node.dims)


@row("_segment_max")
def segment_max(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    """The largest of rows of equal length: short segments come with their first member again."""
    members = [[k for k, i in enumerate(node["ids"]) if i == s] for s in range(node["n"])]
    longest = max(map(len, members))
    table = np.array([group + group[:1] * (longest - len(group)) for group in members], dtype=np.int64)
    rank = len(xs[0].dims)
    return w.op("ReduceMax", w.op("Gather", xs[0].name, w.constant(table), axis=-rank), w.ints(-rank), keepdims=0)


@row("sparsemax")
def sparsemax(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x = xs[0]
    return w.op("Relu", w.op("Sub", x.name, threshold(w, x.name, x.dims[0])))


@row("sparsemax_loss")
def sparsemax_loss(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x, labels = w.cut(xs[0], 1), node["v"]
    tau = threshold(w, x.name, x.dims[0])
    square, limit = w.op("Mul", x.name, x.name), w.op("Mul", tau, tau)
    inside = w.op("Cast", w.op("Greater", x.name, tau), to=1)
    support = w.op("ReduceSum", w.op("Mul", inside, w.op("Sub", square, limit)), w.ints(-1), keepdims=1)
    wanted = w.op("Gather", x.name, w.ints(*labels), axis=-1)
    mean = w.op("ReduceMean", wanted, w.ints(-1), keepdims=1)
    half = w.op("Mul", w.op("Add", support, w.number(1 / len(labels))), w.number(0.5))
    return w.op("Sub", half, mean)


# ---- labels ----------------------------------------------------------------------------------------------------------


def fixed(x: Value, op: str) -> None:
    """Labels that are part of the program need a mini-batch of a known size."""
    if x.symbol:
        raise Unsupported(f"[onnx] {op}: labels or indices per element of {x.symbol}, whose length is not known")


def picked(w: Writer, x: Value, name: str, ids: Sequence[int], dim: int, dims: tuple[int, ...]) -> str:
    """Element ids[e] along dim of batch element e; dims: those of the result."""
    axis = -(dim + 1)
    if len(ids) == 1:
        return w.reshaped(w.op("Gather", name, w.ints(*ids), axis=axis), x.batched, dims)
    if x.batched:
        shape = [x.batch, *reversed(x.dims)]
        shape[axis] = 1
        where = np.array(ids, dtype=np.int64).reshape([-1] + [1] * len(x.dims))
        name = w.op("GatherElements", name, w.constant(np.broadcast_to(where, shape).copy()), axis=axis)
    else:
        name = w.op("Gather", name, w.ints(*ids), axis=axis)
        at = len(x.dims) + axis
        name = w.op("Transpose", name, perm=[at, *(a for a in range(len(x.dims)) if a != at)])
    return w.reshaped(name, True, dims)


@row("_pick_batch")
def pick_batch(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    fixed(xs[0], "pick_batch")
    return picked(w, xs[0], xs[0].name, node["indices"], node["dim"], node.dims)


@row("pickneglogsoftmax")
def pickneglogsoftmax(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    if len(node["v"]) > 1:
        fixed(xs[0], "pickneglogsoftmax")
    return w.op("Neg", picked(w, xs[0], w.op("LogSoftmax", xs[0].name, axis=-1), node["v"], 0, (1,)))


def margins(w: Writer, name: str, labels: Array, axis: int, size: int, margin: float) -> str:
    """The sum along an axis over all but the label of max(0, margin - x[label] + x]). labels: length 1 along the axis."""
    right = w.op("GatherElements", name, w.constant(labels), axis=axis)
    terms = w.op("Relu", w.op("Add", w.op("Sub", w.number(margin), right), name))
    places = np.arange(size).reshape((size,) + (1,) * (-axis - 1))
    others = w.constant((labels != places).astype(np.float32))
    return w.op("ReduceSum", w.op("Mul", terms, others), w.ints(axis), keepdims=0)


@row("hinge")
def hinge(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x = xs[0]
    fixed(x, "hinge")
    labels = np.array(node["v"], dtype=np.int64)
    labels = np.broadcast_to(labels[:, None], (x.batch, 1)).copy() if x.batched else labels
    name = x.name if len(x.dims) == 1 else w.reshaped(x.name, x.batched, x.dims[:1])
    out = margins(w, name, labels, -1, x.dims[0], node["m"])
    return w.reshaped(out, x.batched, (1,))


@row("hinge_dim")
def hinge_dim(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x, d = xs[0], node["d"]
    fixed(x, "hinge_dim")
    rows, columns = (*x.dims, 1)[:2]
    shape = (columns, 1) if d == 0 else (1, rows)
    labels = np.array(node["v"], dtype=np.int64).reshape(*((x.batch,) if x.batched else ()), *shape)
    name = w.lift(x, 2, force=True)
    out = margins(w, name, labels, -(d + 1), x.dims[d] if d < len(x.dims) else 1, node["m"])
    return w.reshaped(out, x.batched, node.dims)
