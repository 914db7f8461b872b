"""Rows of products and convolutions, normalisation, determinants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .rows_reduce import fixed
from .table import row
from .writer import Dims, Made, Value, Writer


def product(w: Writer, x: Value, y: Value, dims: Dims) -> str:
    """x {m,k} times y {k} or {k,n}, with the dims that the result shall have. The axes are reversed: y comes first."""
    left = w.lift(x, 2, force=True)
    made: Dims
    if len(y.dims) > 1:
        out, made = w.op("MatMul", y.name, left), (x.dims[0], y.dims[1])
    elif x.batched:
        row_vector = w.op("Unsqueeze", y.name, w.ints(-2))
        out, made = w.op("Squeeze", w.op("MatMul", row_vector, left), w.ints(-2)), (x.dims[0],)
    else:
        out, made = w.op("MatMul", y.name, left), (x.dims[0],)
    return out if made == dims else w.reshaped(out, x.batched or y.batched, dims)


@row("matmul")
def matmul(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    return product(w, xs[0], xs[1], node.dims)


@row("affine_transform")
def affine_transform(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    first = len(xs) % 2
    terms = [product(w, a, b, node.dims) for a, b in zip(xs[first::2], xs[first + 1 :: 2], strict=True)]
    out = w.lift(w.cut(xs[0], len(node.dims)), len(node.dims)) if first else terms.pop(0)
    for term in terms:
        out = w.op("Add", term, out)
    return out


@row("_attention_scores")
def attention_scores(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    v, keys, query = xs
    batch = max(keys.batch, query.batch)
    summed = w.op("Tanh", w.op("Add", keys.name, w.lift(query, len(keys.dims))))
    return product(w, v, Value(summed, keys.dims, batch), node.dims)


@row("contract3d_1d")
def contract3d_1d(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    return w.reshaped(w.einsum("ijl,l->ij", *xs), node.batched, node.dims)


@row("contract3d_1d_1d")
def contract3d_1d_1d(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    return w.reshaped(w.einsum("ijl,l,j->i", *xs), node.batched, node.dims)


@row("filter1d_narrow")
def filter1d_narrow(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x, f = xs
    columns, width = (*x.dims, 1)[1], (*f.dims, 1)[1]
    filters = f.dims[2] if len(f.dims) > 2 else 1
    image, bank = w.lift(x, 2, force=True), w.lift(f, 3, force=True)
    steps, out = columns - width + 1, ""
    for i in range(width):
        part = Value(w.slice(image, -2, i, i + steps), (x.dims[0], steps), x.batch)
        weights = Value(w.slice(bank, -2, i, i + 1), (f.dims[0], 1, filters), f.batch)
        term = w.einsum("rn,rik->kn", part, weights)
        out = w.op("Add", out, term) if out else term
    return w.reshaped(out, node.batched, node.dims)


def circular(w: Writer, node: Made, xs: Sequence[Value], sign: int) -> str:
    u, v = (w.cut(x, 1) for x in xs)
    n = u.dims[0]
    places = (np.arange(n)[:, None] + sign * np.arange(n)) % n  # [k, j]
    turned = Value(w.op("Gather", v.name, w.constant(places.astype(np.int64)), axis=-1), (n, n), v.batch)  # {j,k}
    return w.reshaped(w.einsum("jk,j->k", turned, u), node.batched, node.dims)


@row("circ_conv")
def circ_conv(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    return circular(w, node, xs, -1)


@row("circ_corr")
def circ_corr(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    return circular(w, node, xs, 1)


# ---- images ----------------------------------------------------------------------------------------------------------


def pads(sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int], valid: bool) -> list[int]:
    """Zeros before and after each axis; as many rows come out as there are steps."""
    if valid:
        return [0] * (2 * len(sizes))
    total = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(sizes, kernel, stride, strict=True)]
    return [t // 2 for t in total] + [t - t // 2 for t in total]


@row("conv2d", "conv2d_bias")
def conv2d(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x, f = xs[:2]
    bias = xs[2] if len(xs) > 2 else None
    height, width, channels = (*x.dims, 1, 1)[:3]
    _, _, _, filters = (*f.dims, 1, 1, 1)[:4]
    kernel, stride = [(*f.dims, 1)[1], f.dims[0]], node["stride"][::-1]
    image, bank = w.lift(x, 3, force=True), w.lift(f, 4, force=True)
    if not x.batched:
        image = w.op("Unsqueeze", image, w.ints(0))
    groups = 1
    if (
        f.batched
    ):  # filters that differ inside a mini-batch: its elements stand behind one another, as groups of channels
        fixed(x, "conv2d")
        fixed(f, "conv2d")
        groups = f.batch
        image = image if x.batched else w.op("Expand", image, w.ints(groups, 1, 1, 1))
        image = w.op("Reshape", image, w.ints(1, groups * channels, width, height))
        bank = w.op("Reshape", bank, w.ints(groups * filters, channels, *kernel))
    around = pads((width, height), kernel, stride, bool(node["is_valid"]))
    inside = bias is not None and groups == 1 and not bias.batched
    inputs = [image, bank, *([bias.name] if bias is not None and inside else [])]
    out = w.op("Conv", *inputs, kernel_shape=kernel, strides=stride, pads=around, group=groups)
    if bias is not None and not inside:
        out = w.op("Reshape", out, w.ints(-1, filters, *reversed((*node.dims, 1)[:2])))
        out = w.op("Add", out, w.reshaped(bias.name, bias.batched, (1, 1, filters)))
    if f.batched:
        return w.op("Reshape", out, w.ints(*([node.batch] if node.batched else []), *reversed(node.dims)))
    return w.reshaped(out, True, node.dims) if node.batched else w.op("Reshape", out, w.ints(*reversed(node.dims)))


@row("maxpooling2d")
def maxpooling2d(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x, kernel, stride = xs[0], node["ksize"][::-1], node["stride"][::-1]
    height, width, _ = (*x.dims, 1, 1)[:3]
    image = w.lift(x, 3, force=True)
    if not x.batched:
        image = w.op("Unsqueeze", image, w.ints(0))
    around = pads((width, height), kernel, stride, bool(node["is_valid"]))
    out = w.op("MaxPool", image, kernel_shape=kernel, strides=stride, pads=around)
    return w.reshaped(out, True, node.dims) if node.batched else w.op("Reshape", out, w.ints(*reversed(node.dims)))


# ---- normalisation, determinant --------------------------------------------------------------------------------------


@row("layer_norm")
def layer_norm(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    x, gain, bias = xs
    axes = w.ints(*[-(d + 1) for d in range(len(x.dims))])
    rank = len(node.dims)
    d = w.op("Sub", x.name, w.op("ReduceMean", x.name, axes, keepdims=1))
    deviation = w.op("Sqrt", w.op("ReduceMean", w.op("Mul", d, d), axes, keepdims=1))
    safe = w.op("Where", w.op("Equal", deviation, w.number(0)), w.number(1), deviation)
    normal = w.op("Div", d, safe)
    gain, bias = w.cut(gain, rank), w.cut(bias, rank)
    return w.op("Add", w.op("Mul", normal, w.lift(gain, rank)), w.lift(bias, rank))


@row("logdet")
def logdet(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    det = w.op("Det", w.lift(xs[0], 2, force=True))
    return w.reshaped(w.op("Log", w.op("Abs", det)), node.batched, (1,))
