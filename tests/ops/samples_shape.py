"""Rows of ops that move numbers: reshape, transpose, everything that picks, selects or slices; indexing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples import A, Row

import dynet_lite as dy

ROWS: list[Row] = []
Attrs = Callable[[np.random.Generator], dict[str, Any]]


def vector() -> Any:
    return dy.inputVector([1.0, 2.0, 3.0])


def matrix() -> Any:
    return dy.inputTensor(np.arange(12.0).reshape(3, 4))


# ---- the same memory -----------------------------------------------------------------------------------------------


def fortran(x: np.ndarray, dim: Any) -> np.ndarray:
    return x.reshape(dim, order="F")


for _arg, _dim in [
    (A(12), (3, 4)),
    (A(3, 4), (12,)),
    (A(3, 4), 12),
    (A(2, 3, 2, batch=3), (4, 3)),
    (A(6, batch=2), (2, -1)),
    (A(2, 2, 2), (2, 2, 1, 2, 1, 1, 1)),
]:
    ROWS.append(
        Row(
            "reshape",
            lambda x, dim: dy.reshape(x, dim),
            [_arg],
            fortran,
            attrs={"dim": _dim},
            bad=[[(5,)], ["7x3"]],
            wrong=[
                (lambda: dy.reshape(vector(), (0, 3)), ValueError),
                (lambda: dy.reshape(vector(), (-2,)), ValueError),
                (lambda: dy.reshape(vector(), (-1, -1)), ValueError),
                (lambda: dy.reshape(vector(), (1 << 16,) * 4 + (-1,)), ValueError),
                (lambda: dy.reshape(vector(), (1 << 31,)), (ValueError, IndexError)),
                (lambda: dy.reshape(vector(), ()), ValueError),
                (lambda: dy.reshape(vector(), (1,) * 8), ValueError),
                (lambda: dy.reshape(vector(), (3,), 0), ValueError),
                (lambda: dy.reshape(vector(), "x"), TypeError),
                (lambda: dy.reshape(vector(), None), TypeError),
            ],
        )
    )
for _arg, _dim, _batch in [
    (A(12), (3,), 4),
    (A(3, batch=4), (3, 4), 1),
    (A(2, 3, batch=2), (4,), 3),
    (A(6, batch=2), (-1,), 4),
]:
    ROWS.append(
        Row(
            "reshape",
            lambda x, dim, batch: dy.reshape(x, dim, batch),
            [_arg],
            lambda x, dim, batch: x.ravel(order="F").reshape((*dim, batch), order="F"),
            attrs={"dim": _dim, "batch": _batch},
            whole=True,
            note="batch",
        )
    )
for _arg in (A(3), A(2, 3, batch=2)):
    ROWS.append(Row("nobackprop", lambda x: dy.nobackprop(x), [_arg], lambda x: x, surrogate=lambda x: 0 * x))

for _arg, _dims in [
    (A(3, 4), (1, 0)),
    (A(5), (1, 0)),
    (A(3, 1), (1, 0)),
    (A(3, 4, batch=3), (1, 0)),
    (A(2, 3, 4), (0, 2, 1)),
    (A(2, 3, 4, batch=2), (2, 1, 0)),
    (A(2, 3, 4), (1, 2, 0)),
    (A(2, 3, 4, batch=2), (2, 0, 1)),
    (A(2, 1, 4), (1, 0, 2)),
    (A(2, 3, 2, 2, 3), (3, 1, 4, 0, 2)),
    (A(33, 18), (1, 0)),
    (A(2, 3), (0, 1)),
    (A(2, 3), (1, 2, 0)),
]:
    ROWS.append(
        Row(
            "_transpose",
            lambda x, dims: dy.transpose(x, dims),
            [_arg],
            lambda x, dims: np.transpose(x.reshape(x.shape + (1,) * (len(dims) - x.ndim)), dims),
            attrs={"dims": _dims},
            wrong=[
                (lambda: dy.transpose(matrix(), (0, 0)), ValueError),
                (lambda: dy.transpose(matrix(), (0,)), ValueError),
                (lambda: dy.transpose(matrix(), (1, 2)), ValueError),
                (lambda: dy.transpose(matrix(), (-1, 0)), ValueError),
                (lambda: dy.transpose(matrix(), range(8)), ValueError),
                (lambda: dy.transpose(matrix(), "ab"), TypeError),
            ],
        )
    )
ROWS.append(Row("_transpose", lambda x: dy.transpose(x), [A(3, 4)], lambda x: x.T, note="default", bad=[[(2, 3, 4)]]))


# ---- picking -------------------------------------------------------------------------------------------------------


def index(n: int) -> Attrs:
    return lambda rng: {"i": int(rng.integers(-n, n))}


def picked(x: np.ndarray, ids: list[int], d: int) -> np.ndarray:
    """One index per batch element, the last axis of x; a batch or a list of one goes with any."""
    n = max(x.shape[-1], len(ids))
    items = [np.take(x[..., e % x.shape[-1]], ids[e % len(ids)], axis=d) for e in range(n)]
    return np.stack([np.atleast_1d(i) for i in items], axis=-1)


def indices(n: int, k: int) -> Attrs:
    return lambda rng: {"ids": rng.integers(-n, n, k).tolist()}


for _arg, _d in [
    (A(7), 0),
    (A(3, 4), 0),
    (A(3, 4), 1),
    (A(7, batch=3), 0),
    (A(3, 4, batch=2), 0),
    (A(3, 4, batch=2), 1),
    (A(2, 3, 4), 1),
    (A(2, 3, 1), 1),
]:
    ROWS.append(
        Row(
            "_pick",
            lambda x, i, _d=_d: dy.pick(x, i, _d),
            [_arg],
            lambda x, i, _d=_d: np.take(x, i, axis=_d),
            attrs=index(_arg.shape[_d]),
            note=f"d{_d}",
            wrong=[
                (lambda: dy.pick(vector(), 3), IndexError),
                (lambda: dy.pick(vector(), -4), IndexError),
                (lambda: dy.pick(vector(), 2**40), IndexError),
                (lambda: dy.pick(vector(), 0, 1), ValueError),
                (lambda: dy.pick(vector(), 0, -1), ValueError),
                (lambda: dy.pick(vector(), "a"), TypeError),
                (lambda: dy.pick(vector(), 1.5), ValueError),
                (lambda: dy.pick(vector(), None), TypeError),
                (lambda: dy.pick(None, 1), TypeError),
            ],
        )
    )
for _arg, _d, _k in [
    (A(5, batch=3), 0, 3),
    (A(3, 4, batch=3), 1, 3),
    (A(3, 4, batch=3), 0, 3),
    (A(3, 4), 0, 5),
    (A(6), 0, 2),
    (A(6), 0, 1),
    (A(2, 3, batch=2), 1, 1),
]:
    _n = _arg.shape[_d]
    ROWS.append(
        Row(
            "_pick_batch",
            lambda x, ids, _d=_d: dy.pick_batch(x, ids, _d),
            [_arg],
            lambda x, ids, _d=_d: picked(x, ids, _d),
            attrs=indices(_n, _k),
            whole=True,
            note=f"d{_d}",
            bad=[["7,7x2"]] if _k > 2 else (),
            wrong=[
                (lambda: dy.pick_batch(vector(), []), ValueError),
                (lambda: dy.pick_batch(vector(), [0, 3]), IndexError),
                (lambda: dy.pick_batch(vector(), [0, -4]), IndexError),
                (lambda: dy.pick_batch(vector(), ["a"]), TypeError),
                (lambda: dy.pick_batch(vector(), None), TypeError),
                (lambda: dy.pick_batch(vector(), [0], 1), ValueError),
            ],
        )
    )
for _arg, _d, _k in [
    (A(5, 3), 0, 4),
    (A(3, 5), 1, 2),
    (A(5, batch=2), 0, 3),
    (A(3, 4, batch=2), 1, 5),
    (A(2, 3), 0, 1),
]:
    ROWS.append(
        Row(
            "_select",
            lambda x, ids, _d=_d: dy.select_cols(x, ids) if _d else dy.select_rows(x, ids),
            [_arg],
            lambda x, ids, _d=_d: np.take(x, ids, axis=_d),
            attrs=indices(_arg.shape[_d], _k),
            note=f"d{_d}",
            bad=[[(7,)]] if _d else (),
            wrong=[
                (lambda: dy.select_rows(matrix(), []), ValueError),
                (lambda: dy.select_rows(matrix(), [3]), IndexError),
                (lambda: dy.select_cols(matrix(), [0, 4]), IndexError),
                (lambda: dy.select_cols(matrix(), 1), TypeError),
                (lambda: dy.select_cols(matrix(), [None]), TypeError),
            ],
        )
    )
for _arg in (A(3, batch=4), A(2, 3, batch=2), A(3)):
    ROWS.append(
        Row(
            "pick_batch_elem",
            lambda x, i: dy.pick_batch_elem(x, i),
            [_arg],
            lambda x, i: x[..., i][..., None],
            attrs=index(_arg.batch),
            whole=True,
            wrong=[
                (lambda: dy.pick_batch_elem(vector(), 1), IndexError),
                (lambda: dy.pick_batch_elem(vector(), -2), IndexError),
                (lambda: dy.pick_batch_elem(vector(), "a"), TypeError),
            ],
        )
    )
for _arg, _k in [(A(3, batch=4), 2), (A(2, 3, batch=2), 4), (A(3, batch=3), 1), (A(3), 3)]:
    ROWS.append(
        Row(
            "_pick_batch_elems",
            lambda x, ids: dy.pick_batch_elems(x, ids),
            [_arg],
            lambda x, ids: x[..., ids],
            attrs=indices(_arg.batch, _k),
            whole=True,
            wrong=[
                (lambda: dy.pick_batch_elems(vector(), []), ValueError),
                (lambda: dy.pick_batch_elems(vector(), [1]), IndexError),
                (lambda: dy.pick_batch_elems(vector(), ["a"]), TypeError),
            ],
        )
    )


# ---- ranges and slices ---------------------------------------------------------------------------------------------


def start(n: int, length: int) -> Attrs:
    return lambda rng: {"s": int(rng.integers(0, n - length + 1)), "n": length}


for _arg, _d, _len in [
    (A(7), 0, 3),
    (A(3, 6), 0, 2),
    (A(3, 6), 1, 4),
    (A(7, batch=3), 0, 3),
    (A(3, 4, batch=2), 1, 2),
    (A(2, 5, 3), 1, 2),
    (A(3, 4, batch=2), 1, 4),
    (A(9, 2), 0, 7),
]:
    ROWS.append(
        Row(
            "_pick_range",
            lambda x, s, n, _d=_d: dy.pick_range(x, s, s + n, _d),
            [_arg],
            lambda x, s, n, _d=_d: np.take(x, range(s, s + n), axis=_d),
            attrs=start(_arg.shape[_d], _len),
            note=f"d{_d}",
            wrong=[
                (lambda: dy.pick_range(vector(), 2, 2), ValueError),
                (lambda: dy.pick_range(vector(), 2, 1), ValueError),
                (lambda: dy.pick_range(vector(), 2, 4), IndexError),
                (lambda: dy.pick_range(vector(), -1, 1), IndexError),
                (lambda: dy.pick_range(vector(), 0, 9), IndexError),
                (lambda: dy.pick_range(vector(), 0, 1, 1), ValueError),
                (lambda: dy.pick_range(vector(), 0, "a"), TypeError),
            ],
        )
    )
for _arg, _strides, _from, _to in [
    (A(7), [2], [], []),
    (A(7), [3], [1], [6]),
    (A(5, 6), [2, 3], [0, 1], [5, 6]),
    (A(5, 6, batch=4), [1, 2, 2], [1], []),
    (A(4, 3, 2, batch=2), [2, 1, 1, 2], [1, 0, 0, 1], []),
    (A(4, 3, 2, 5), [1, 2, 1, 2], [], [3]),
    (A(4, batch=5), [1, 1], [0, 2], [4, 4]),
]:
    ROWS.append(
        Row(
            "_slice",
            lambda x, strides, f, t: dy.strided_select(x, strides, f, t),
            [_arg],
            lambda x, strides, f, t: x[
                tuple(
                    slice(
                        f[i] if i < len(f) else 0, t[i] if i < len(t) else None, strides[i] if i < len(strides) else 1
                    )
                    for i in range(x.ndim)
                )
            ],
            attrs={"strides": _strides, "f": _from, "t": _to},
            whole=True,
            wrong=[
                (lambda: dy.strided_select(vector(), [0]), ValueError),
                (lambda: dy.strided_select(vector(), [-1]), ValueError),
                (lambda: dy.strided_select(vector(), [1], [1], [1]), ValueError),
                (lambda: dy.strided_select(vector(), [1], [0], [4]), IndexError),
                (lambda: dy.strided_select(vector(), [1], [-1], [2]), IndexError),
                (lambda: dy.strided_select(vector(), [1, 1, 1]), ValueError),
                (lambda: dy.strided_select(vector(), ["a"]), (TypeError, ValueError)),
                (lambda: dy.strided_select(vector(), [1.5]), ValueError),
                (lambda: dy.strided_select(vector(), [float("inf")]), ValueError),
                (lambda: dy.strided_select(vector(), [1], [0.5]), ValueError),
                (lambda: dy.strided_select(vector(), [1], [0], [1.5]), ValueError),
            ],
        )
    )
for _arg, _op, _index in [
    (A(5, 4), "_slice", np.s_[::-1]),
    (A(5, 4, batch=3), "_slice", np.s_[4:0:-2, ::2]),
    (A(5, 4, batch=3), "_slice", np.s_[1, 1:3, ::2]),
    (A(3, 4, 2), "_slice", np.s_[-1, ..., 0]),
    (A(5, 4), "_pick_range", np.s_[1:4]),
    (A(5, 4), "_pick_range", np.s_[:, -2:]),
    (A(5, 4), "_select", np.s_[[0, -1, 0]]),
    (A(5, 4), "_select", np.s_[1:, [True, False, True, True]]),
    (A(5, 4), "reshape", np.s_[:, None, 2]),
]:
    ROWS.append(
        Row(
            _op,
            lambda x, _i=_index: x[_i],
            [_arg],
            lambda x, _i=_index: x[_i],
            whole=_arg.batch > 1,
            note=f"index {_index}",
        )
    )
