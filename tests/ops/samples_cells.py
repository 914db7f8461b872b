"""Rows of the recurrent cells: one node per step, with outputs h and c where the cell has both."""

from __future__ import annotations

from typing import Any

import numpy as np
from samples import A, Array, Row

import dynet_lite as dy
from dynet_lite import _core

ROWS: list[Row] = []


def row(op: str, call: Any, ref: Any, args: Any, bad: Any = (), **more: Any) -> None:
    """Weights differ between the copies of a row, and a cell shares them: copies need not run together."""
    ROWS.append(Row(op, call, args, ref, bad=bad, batches=False, tol=4e-6, gtol=4e-5, **more))


def both(h: Any) -> Any:
    """The two outputs of a cell, one above the other."""
    return dy.concatenate([h, _core._second(h)])


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


# ---- LSTM -------------------------------------------------------------------------------------------------------


def lstm(proj: Array, h: Any = 0.0, c: Any = 0.0, wh: Any = None, forget_bias: float = 1.0) -> Array:
    i, f, o, g = np.split(proj if wh is None else proj + wh @ h, 4)
    new = sigmoid(f + forget_bias) * c + sigmoid(i) * np.tanh(g)
    return np.concatenate([sigmoid(o) * np.tanh(new), new])


for _bias in (1.0, -0.5):
    for _args in ([A(12)], [A(12, batch=3)], [A(68)], [A(8, 2, batch=2)]):
        row("_lstm_start", lambda x, b=_bias: both(_core._lstm_start(x, b)),
            lambda x, b=_bias: lstm(x, forget_bias=b), _args, bad=[[(6,)]])  # fmt: skip
for _args in (
    [A(12), A(3), A(3), A(12, 3)],
    [A(68), A(17), A(17), A(68, 17)],
    [A(12, batch=3), A(3, batch=3), A(3, batch=3), A(12, 3)],
    [A(12, batch=3), A(3), A(3), A(12, 3)],
    [A(12), A(3, batch=2), A(3), A(12, 3)],
    [A(12), A(3), A(3, batch=2), A(12, 3)],
    [A(8, 3), A(2, 3), A(2, 3), A(8, 2)],
    [A(8, 3, batch=2), A(2, 3), A(2, 3, batch=2), A(8, 2)],
):
    row("_lstm_step", lambda *es: both(_core._lstm_step(*es)), lstm, _args,
        bad=[[(12,), (4,), (3,), (12, 3)], [(12,), (3,), (4,), (12, 3)], [(12,), (3,), (3,), (12, 4)],
             [(13,), (3,), (3,), (12, 3)], ["12x2", "3x3", (3,), (12, 3)], [(12,), (3,), (3,), (3, 12)]],
        )  # fmt: skip


def gates(x: Array, forget_bias: float = 1.0) -> Array:
    i, f, o, g = np.split(x, 4)
    return np.concatenate([sigmoid(i), sigmoid(f + forget_bias), sigmoid(o), np.tanh(g)])


for _args in ([A(12)], [A(8, 3, batch=2)]):
    row("_lstm_gates", lambda x: _core._lstm_gates(x), gates, _args, bad=[[(7,)]])
for _args in ([A(3), A(12)], [A(3, batch=2), A(12, batch=2)], [A(3), A(12, batch=2)], [A(5, batch=2), A(20)]):
    row("vanilla_lstm_c", lambda c, g: _core.vanilla_lstm_c(c, g),
        lambda c, g: g[:len(c)] * g[3 * len(c):] + g[len(c):2 * len(c)] * c, _args, bad=[[(3,), (8,)], [(3,), (13,)]])  # fmt: skip
    row("vanilla_lstm_h", lambda c, g: _core.vanilla_lstm_h(c, g),
        lambda c, g: g[2 * len(c):3 * len(c)] * np.tanh(c), _args, bad=[[(3,), (8,)], [(3,), (13,)]])  # fmt: skip

# ---- simple RNN, GRU ----------------------------------------------------------------------------------------------

for _args in (
    [A(3), A(3), A(3, 3)],
    [A(19), A(19), A(19, 19)],
    [A(3, batch=2), A(3, batch=2), A(3, 3)],
    [A(3, batch=2), A(3), A(3, 3)],
    [A(3), A(3, batch=2), A(3, 3)],
    [A(3, 2), A(3, 2), A(3, 3)],
):
    row("_rnn_step", lambda *es: _core._rnn_step(*es), lambda p, h, w: np.tanh(p + w @ h), _args,
        bad=[[(3,), (4,), (3, 3)], [(3,), (3,), (3, 4)], ["3x2", "3x3", (3, 3)]])  # fmt: skip


def gru(proj: Array, h: Any = None, uzr: Any = None, uh: Any = None) -> Array:
    z, r, a = np.split(proj, 3)
    if h is None:
        return sigmoid(z) * np.tanh(a)
    n = len(h)
    z, r = sigmoid(z + uzr[:n] @ h), sigmoid(r + uzr[n:] @ h)
    return (1 - z) * h + z * np.tanh(a + uh @ (r * h))


for _args in ([A(9)], [A(9, batch=3)], [A(6, 2)]):
    row("_gru_start", lambda x: _core._gru_start(x), gru, _args, bad=[[(7,)]])
for _args in (
    [A(9), A(3), A(6, 3), A(3, 3)],
    [A(51), A(17), A(34, 17), A(17, 17)],
    [A(9, batch=2), A(3, batch=2), A(6, 3), A(3, 3)],
    [A(9, batch=2), A(3), A(6, 3), A(3, 3)],
    [A(9), A(3, batch=2), A(6, 3), A(3, 3)],
    [A(9, 2), A(3, 2), A(6, 3), A(3, 3)],
):
    row("_gru_step", lambda *es: _core._gru_step(*es), gru, _args,
        bad=[[(9,), (4,), (6, 3), (3, 3)], [(9,), (3,), (6, 4), (3, 3)], [(9,), (3,), (6, 3), (4, 3)]])  # fmt: skip

# ---- coupled LSTM: DyNet's CoupledLSTMBuilder has peepholes, its FastLSTMBuilder has none ---------------------------


def coupled(proj: Array, h: Any, c: Any, u: Any, ci: Any = 0.0, co: Any = 0.0) -> Array:
    i, o, g = np.split(proj + u @ h, 3)
    i = sigmoid(i + (ci @ c if np.ndim(ci) else 0))
    new = (1 - i) * c + i * np.tanh(g)
    o = sigmoid(o + (co @ new if np.ndim(co) else 0))
    return np.concatenate([o * np.tanh(new), new])


def coupled_start(proj: Array, co: Any = 0.0) -> Array:
    n = len(proj) // 3
    return coupled(proj, np.zeros((n, *proj.shape[1:])), 0.0, np.zeros((3 * n, n)), co=co)


def coupled_node(name: str) -> Any:
    return lambda *es: both(_core._cell_node(name, list(es)))


for _args in ([A(9)], [A(9, batch=2)], [A(9), A(3, 3)], [A(9, batch=2), A(3, 3)], [A(9, 2), A(3, 3)]):
    row("_coupled_lstm_start", coupled_node("_coupled_lstm_start"), coupled_start, _args,
        bad=[[(8,)], [(9,), (3, 4)]])  # fmt: skip
for _args in (
    [A(9), A(3), A(3), A(9, 3)],
    [A(9), A(3), A(3), A(9, 3), A(3, 3), A(3, 3)],
    [A(51), A(17), A(17), A(51, 17), A(17, 17), A(17, 17)],
    [A(9, batch=2), A(3, batch=2), A(3, batch=2), A(9, 3), A(3, 3), A(3, 3)],
    [A(9, batch=2), A(3), A(3), A(9, 3), A(3, 3), A(3, 3)],
    [A(9), A(3, batch=2), A(3), A(9, 3), A(3, 3), A(3, 3)],
    [A(9, 2), A(3, 2), A(3, 2), A(9, 3), A(3, 3), A(3, 3)],
):
    row("_coupled_lstm_step", coupled_node("_coupled_lstm_step"), coupled, _args,
        bad=[[(9,), (4,), (3,), (9, 3)], [(9,), (3,), (4,), (9, 3)], [(9,), (3,), (3,), (9, 4)],
             [(9,), (3,), (3,), (9, 3), (3, 3)], [(9,), (3,), (3,), (9, 3), (3, 3), (4, 3)]])  # fmt: skip

# ---- tree LSTMs -----------------------------------------------------------------------------------------------------


def tree(sums: Array, forget: list[Array], cells: list[Array], forget_bias: float) -> Array:
    i, o, g = np.split(sums, 3)
    c = sigmoid(i) * np.tanh(g) + sum(sigmoid(f + forget_bias) * k for f, k in zip(forget, cells, strict=True))
    return np.concatenate([sigmoid(o) * np.tanh(c), c])


def nary(iog: Array, f: Array, *rest: Array, forget_bias: float = 0.5) -> Array:
    h, c, u = rest[0::3], rest[1::3], rest[2::3]
    n = len(f)
    total: Any = sum(w @ x for w, x in zip(u, h, strict=True))
    forget = [f + total[(3 + k) * n : (4 + k) * n] for k in range(len(h))]
    return tree(iog + total[: 3 * n], forget, list(c), forget_bias)


def child_sum(iog: Array, f: Array, uiog: Array, uf: Array, *rest: Array, forget_bias: float = 0.5) -> Array:
    h, c = rest[0::2], rest[1::2]
    return tree(iog + uiog @ sum(h), [f + uf @ x for x in h], list(c), forget_bias)


for _args in ([A(9)], [A(9, batch=2)], [A(6, 2)]):
    row(
        "_tree_lstm_leaf", lambda x: both(_core._tree_lstm_leaf(x)), lambda x: tree(x, [], [], 0.0), _args, bad=[[(7,)]]
    )
for _args in (
    [A(9), A(3), A(3), A(3), A(15, 3)],
    [A(9), A(3), A(3), A(3), A(15, 3), A(3), A(3), A(15, 3)],
    [A(51), A(17), A(17), A(17), A(85, 17), A(17), A(17), A(85, 17)],
    [A(9), A(3), *[A(3), A(3), A(18, 3)] * 3],
    [A(9, batch=2), A(3, batch=2), *[A(3, batch=2), A(3, batch=2), A(15, 3)] * 2],
    [A(9), A(3, batch=2), A(3), A(3, batch=2), A(15, 3), A(3, batch=2), A(3), A(15, 3)],
    [A(9, 2), A(3, 2), *[A(3, 2), A(3, 2), A(15, 3)] * 2],
):
    row("_nary_tree_lstm", lambda iog, f, *es: both(_core._nary_tree_lstm(iog, f, list(es), 0.5)), nary, _args,
        bad=[[(9,), (4,), (3,), (3,), (15, 3)], [(9,), (3,), (3,), (3,)], [(9,), (3,), (3,), (3,), (9, 3)],
             [(9,), (3,), (4,), (3,), (15, 3)], [(9,), (3,), (3,), (4,), (15, 3)]])  # fmt: skip
for _args in (
    [A(9), A(3), A(9, 3), A(3, 3), A(3), A(3)],
    [A(9), A(3), A(9, 3), A(3, 3), *[A(3)] * 6],
    [A(51), A(17), A(51, 17), A(17, 17), *[A(17)] * 4],
    [A(9, batch=2), A(3, batch=2), A(9, 3), A(3, 3), *[A(3, batch=2)] * 4],
    [A(9), A(3, batch=2), A(9, 3), A(3, 3), A(3), A(3, batch=2), A(3, batch=2), A(3)],
    [A(9, 2), A(3, 2), A(9, 3), A(3, 3), *[A(3, 2)] * 4],
):
    row("_child_sum_tree_lstm",
        lambda iog, f, a, b, *es: both(_core._child_sum_tree_lstm(iog, f, a, b, list(es), 0.5)), child_sum, _args,
        bad=[[(9,), (4,), (9, 3), (3, 3), (3,), (3,)], [(9,), (3,), (9, 4), (3, 3), (3,), (3,)],
             [(9,), (3,), (9, 3), (3, 3), (3,)], [(9,), (3,), (9, 3), (3, 3), (3,), (4,)]])  # fmt: skip
