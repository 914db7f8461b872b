"""Rows of the recurrent cells: steps of builders that stand as nodes of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .rows_products import product
from .table import Lowering, row
from .writer import Made, Value, Writer


def cell(*ops: str) -> Callable[[Lowering], Lowering]:
    """row() for ops that take {D,1} where they need {D}, and the reverse: the function gets as many dims as the result has."""

    def fitting(w: Writer, x: Value, rank: int) -> Value:
        x = w.cut(x, rank)
        more = max(0, rank - len(x.dims))
        return Value(w.lift(x, rank, force=True), x.dims + (1,) * more, x.batch, x.symbol) if more else x

    def enter(f: Lowering) -> Lowering:
        return row(*ops)(lambda w, node, xs: f(w, node, [fitting(w, x, len(node.dims)) for x in xs]))

    return enter


def total(w: Writer, *names: str) -> str:
    out = names[0]
    for name in names[1:]:
        out = w.op("Add", out, name)
    return out


def blocks(w: Writer, name: str, n: int) -> list[str]:
    """n equal blocks of rows."""
    return w.op_n(n, "Split", name, axis=-1, num_outputs=n)


def rows(w: Writer, name: str, size: int, first: int, count: int = 1) -> str:
    """Blocks of rows of a vector or matrix."""
    return w.slice(name, -1, first * size, (first + count) * size)


def times(w: Writer, u: Value, h: Value) -> str:
    return product(w, u, h, (u.dims[0], *h.dims[1:]))


def gated(w: Writer, o: str, c: str) -> str:
    return w.op("Mul", o, w.op("Tanh", c))


def lstm_gates_of(w: Writer, sums: str, forget_bias: float) -> list[str]:
    i, f, o, g = blocks(w, sums, 4)
    if forget_bias:
        f = w.op("Add", f, w.number(forget_bias))
    return [w.op("Sigmoid", i), w.op("Sigmoid", f), w.op("Sigmoid", o), w.op("Tanh", g)]


@cell("_lstm_start")
def lstm_start(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    i, _, o, g = lstm_gates_of(w, xs[0].name, node["forget_bias"])
    c = w.op("Mul", i, g)
    return gated(w, o, c), c


@cell("_lstm_step")
def lstm_step(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    proj, h, c, wh = xs
    i, f, o, g = lstm_gates_of(w, total(w, proj.name, times(w, wh, h)), node["forget_bias"])
    new = w.op("Add", w.op("Mul", f, c.name), w.op("Mul", i, g))
    return gated(w, o, new), new


@cell("_lstm_gates")
def lstm_gates(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    return w.op("Concat", *lstm_gates_of(w, xs[0].name, node["forget_bias"]), axis=-1)


@cell("vanilla_lstm_c")
def vanilla_lstm_c(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    i, f, _, g = blocks(w, xs[1].name, 4)
    return w.op("Add", w.op("Mul", f, xs[0].name), w.op("Mul", i, g))


@cell("vanilla_lstm_h")
def vanilla_lstm_h(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    _, _, o, _ = blocks(w, xs[1].name, 4)
    return gated(w, o, xs[0].name)


@cell("_rnn_step")
def rnn_step(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    proj, h, wh = xs
    return w.op("Tanh", total(w, proj.name, times(w, wh, h)))


@cell("_gru_start")
def gru_start(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    z, _, a = blocks(w, xs[0].name, 3)
    return w.op("Mul", w.op("Sigmoid", z), w.op("Tanh", a))


@cell("_gru_step")
def gru_step(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    proj, h, uzr, uh = xs
    n = node.dims[0]
    zr = w.op("Sigmoid", total(w, rows(w, proj.name, n, 0, 2), times(w, uzr, h)))
    z, r = blocks(w, zr, 2)
    reset = Value(w.op("Mul", r, h.name), h.dims, node.batch)
    a = w.op("Tanh", total(w, rows(w, proj.name, n, 2), times(w, uh, reset)))
    return w.op("Add", w.op("Mul", w.op("Sub", w.number(1), z), h.name), w.op("Mul", z, a))


@cell("_coupled_lstm_start")
def coupled_lstm_start(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    i, o, g = blocks(w, xs[0].name, 3)
    c = w.op("Mul", w.op("Sigmoid", i), w.op("Tanh", g))
    if len(xs) > 1:
        o = total(w, o, times(w, xs[1], Value(c, node.dims, node.batch)))
    return gated(w, w.op("Sigmoid", o), c), c


@cell("_coupled_lstm_step")
def coupled_lstm_step(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    proj, h, c, u = xs[:4]
    i, o, g = blocks(w, total(w, proj.name, times(w, u, h)), 3)
    if len(xs) > 4:
        i = total(w, i, times(w, xs[4], c))
    i = w.op("Sigmoid", i)
    kept = w.op("Mul", w.op("Sub", w.number(1), i), c.name)
    new = w.op("Add", kept, w.op("Mul", i, w.op("Tanh", g)))
    if len(xs) > 4:
        o = total(w, o, times(w, xs[5], Value(new, node.dims, node.batch)))
    return gated(w, w.op("Sigmoid", o), new), new


# ---- trees -----------------------------------------------------------------------------------------------------------


@cell("_tree_lstm_leaf")
def tree_lstm_leaf(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    i, o, g = blocks(w, xs[0].name, 3)
    c = w.op("Mul", w.op("Sigmoid", i), w.op("Tanh", g))
    return gated(w, w.op("Sigmoid", o), c), c


def tree_node(w: Writer, iog: str, forget: Sequence[tuple[str, Value]], bias: float) -> tuple[str, str]:
    """iog: the sums of i, o, g; forget: per child the sum of its forget gate and its cell."""
    i, o, g = blocks(w, iog, 3)
    c = w.op("Mul", w.op("Sigmoid", i), w.op("Tanh", g))
    for f, cell in forget:
        c = w.op("Add", c, w.op("Mul", w.op("Sigmoid", w.op("Add", f, w.number(bias))), cell.name))
    return gated(w, w.op("Sigmoid", o), c), c


@cell("_nary_tree_lstm")
def nary_tree_lstm(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    iog, f, *rest = xs
    n = node.dims[0]
    children = [rest[j : j + 3] for j in range(0, len(rest), 3)]
    acts = [times(w, u, h) for h, _, u in children]
    sums = total(w, *[rows(w, act, n, 0, 3) for act in acts], iog.name)
    forget = [(total(w, *[rows(w, act, n, 3 + k) for act in acts], f.name), c) for k, (_, c, _) in enumerate(children)]
    return tree_node(w, sums, forget, node["forget_bias"])


@cell("_child_sum_tree_lstm")
def child_sum_tree_lstm(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    iog, f, uiog, uf, *rest = xs
    hs, cs = rest[0::2], rest[1::2]
    batch = max(h.batch for h in hs)
    joined = Value(total(w, *[h.name for h in hs]), hs[0].dims, batch)
    forget = [(total(w, times(w, uf, h), f.name), c) for h, c in zip(hs, cs, strict=True)]
    return tree_node(w, total(w, times(w, uiog, joined), iog.name), forget, node["forget_bias"])
