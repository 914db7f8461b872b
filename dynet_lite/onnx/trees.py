"""Tree LSTMs over trees that are not known before the file runs: a Loop over a table of states, a row a node.

Row 0 of the table is nobody's: zeros, for a child that is not there. Who may import: this package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite.builders import ChildSumTreeLSTMBuilder, NaryTreeLSTMBuilder

from .symbolic import Children, Chosen, Get, Sequence, trace, weight
from .writer import Unsupported, Writer

# (states of the children, sums of a node's input) -> sums of i, o, g [3, h] and of the forget gates [children, h]
Gates = Callable[[Writer, str, str, str], tuple[str, str]]


def tree(builder: Any, xs: Sequence, children: Any) -> Sequence:
    """The outputs of a tree LSTM at the nodes of a tree: `builder.node(x, children).output()` for each node.

    builder: NaryTreeLSTMBuilder or ChildSumTreeLSTMBuilder
    xs: the inputs of the nodes, zeros for a node without one; children come before their parents
    children: an input of onnx.Children, with as many columns as the n-ary builder has children
    """
    if not isinstance(children, Chosen) or not isinstance(children.spec, Children):
        raise TypeError(f"[onnx] tree: an input declared as onnx.Children is needed; got {type(children).__name__}")
    if type(builder) not in (NaryTreeLSTMBuilder, ChildSumTreeLSTMBuilder):
        raise Unsupported(
            f"[onnx] tree: NaryTreeLSTMBuilder and ChildSumTreeLSTMBuilder have a form; {type(builder).__name__} has none"
        )
    spec = children.spec
    if spec.length != xs.symbol or xs.backwards:
        raise ValueError(f"[onnx] tree: the inputs have the length {xs.symbol}, the children {spec.length}")
    if isinstance(builder, NaryTreeLSTMBuilder) and spec.most != builder.N:
        raise ValueError(
            f"[onnx] tree: the builder has {builder.N} children; declare onnx.Children({spec.length!r}, {builder.N})"
        )
    for layer in builder._parameters:
        xs = _layer(builder, layer, xs, children.name)
    return xs


def _layer(builder: Any, layer: list[Any], xs: Sequence, children: str) -> Sequence:
    wx, b, wf, bf, *us = layer
    sums = xs.map(lambda x: dy.affine_transform([b, wx, x])).e
    forget = xs.map(lambda x: dy.affine_transform([bf, wf, x])).e
    h = builder.hidden_dim
    gates = n_ary(us, h) if isinstance(builder, NaryTreeLSTMBuilder) else child_sum(us, h)

    def write(w: Writer, get: Get) -> str:
        nodes, rows = get(sums).name, w.op("Add", children, w.ints(1))
        size = w.op("Add", w.op("Shape", nodes, start=0, end=1), w.ints(1))
        empty = w.op("Expand", w.number(0), w.op("Concat", size, w.ints(h), axis=0))

        def step(turn: str, tables: list[str]) -> list[str]:
            mine = w.op("Gather", rows, turn, axis=0)
            hs, cs = (w.op("Gather", table, mine, axis=0) for table in tables)
            own = w.op("Gather", nodes, turn, axis=0)
            iog, f = gates(w, hs, own, w.op("Gather", get(forget).name, turn, axis=0))
            i, o, g = w.op_n(3, "Split", iog, axis=0, num_outputs=3)
            kept = w.op("Mul", w.op("Sigmoid", w.op("Add", f, w.number(builder.forget_bias))), cs)
            c = w.op(
                "Add", w.op("Mul", w.op("Sigmoid", i), w.op("Tanh", g)), w.op("ReduceSum", kept, w.ints(0), keepdims=1)
            )
            new = w.op("Mul", w.op("Sigmoid", o), w.op("Tanh", c))
            at = w.op("Reshape", w.op("Add", turn, w.ints(1)), w.ints(1, 1))
            return [w.op("ScatterND", table, at, row) for table, row in zip(tables, (new, c), strict=True)]

        states, _ = w.loop(w.length(nodes), [empty, empty], step)
        return w.op("Slice", states, w.ints(1), w.ints(2**31), w.ints(0))

    return Sequence(trace().place((h,), xs.e.batch_size, xs.symbol, (sums, forget), write), xs.symbol)


def n_ary(us: list[Any], h: int) -> Gates:
    """The rows of each child's U: its part in i, o, g and in the forget gate of each child."""
    n = len(us)

    def gates(w: Writer, hs: str, own: str, forget: str) -> tuple[str, str]:
        u = weight(w, us[0], lambda: np.concatenate([x.as_array().T for x in us]), ".children")
        acts = w.op("MatMul", w.op("Reshape", hs, w.ints(1, n * h)), u)
        acts = w.op("Reshape", acts, w.ints(3 + n, h))
        iog = w.op("Add", w.slice(acts, 0, 0, 3), w.op("Reshape", own, w.ints(3, h)))
        return iog, w.op("Add", w.slice(acts, 0, 3, 3 + n), forget)

    return gates


def child_sum(us: list[Any], h: int) -> Gates:
    """U on the sum of the children, and on each for its forget gate."""
    of_sum, of_each = us

    def gates(w: Writer, hs: str, own: str, forget: str) -> tuple[str, str]:
        both = weight(w, of_sum, lambda: of_sum.as_array().T)
        each = weight(w, of_each, lambda: of_each.as_array().T)
        acts = w.op("MatMul", w.op("ReduceSum", hs, w.ints(0), keepdims=1), both)
        iog = w.op("Add", w.op("Reshape", acts, w.ints(3, h)), w.op("Reshape", own, w.ints(3, h)))
        return iog, w.op("Add", w.op("MatMul", hs, each), forget)

    return gates
