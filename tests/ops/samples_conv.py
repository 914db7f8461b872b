"""Rows of convolutions, pooling, bilinear maps and matrix functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from samples import A, Row, spread

import dynet_lite as dy

ROWS: list[Row] = []


def image() -> Any:
    return dy.inputTensor(np.ones((5, 4, 2)))


def filters() -> Any:
    return dy.inputTensor(np.ones((3, 2, 2, 3)))


# ---- two dims ------------------------------------------------------------------------------------------------------


def padded(
    x: np.ndarray, k: tuple[int, ...], stride: tuple[int, ...], valid: bool, fill: float
) -> tuple[np.ndarray, list[int]]:
    """An image with TensorFlow's padding, and the number of places of the window along rows and columns."""
    n = x.shape[:2]
    if valid:
        return x, [(n[i] - k[i]) // stride[i] + 1 for i in (0, 1)]
    out = [-(-n[i] // stride[i]) for i in (0, 1)]
    pads = [max(0, (out[i] - 1) * stride[i] + k[i] - n[i]) for i in (0, 1)]
    width = [(p // 2, p - p // 2) for p in pads] + [(0, 0)]
    return np.pad(x, width, constant_values=fill), out


def windows(x: np.ndarray, k: tuple[int, ...], stride: tuple[int, ...], valid: bool, fill: float) -> Any:
    x = x.reshape(x.shape + (1,) * (3 - x.ndim))
    x, out = padded(x, k, stride, valid, fill)
    for i in range(out[0]):
        for j in range(out[1]):
            yield i, j, out, x[i * stride[0] : i * stride[0] + k[0], j * stride[1] : j * stride[1] + k[1]]


def conv2d(x: np.ndarray, f: np.ndarray, b: Any = 0.0, *, stride: Any, is_valid: bool) -> np.ndarray:
    f = f.reshape(f.shape + (1,) * (4 - f.ndim))
    y = None
    for i, j, out, window in windows(x, f.shape[:2], stride, is_valid, 0.0):
        y = np.zeros((*out, f.shape[3])) if y is None else y
        y[i, j] = np.einsum("hwc,hwco->o", window, f)
    return y + b


def maxpool(x: np.ndarray, ksize: Any, stride: Any, is_valid: bool) -> np.ndarray:
    y = None
    for i, j, out, window in windows(x, ksize, stride, is_valid, -np.inf):
        y = np.zeros((*out, window.shape[2])) if y is None else y
        y[i, j] = window.max((0, 1))
    assert y is not None
    return y if x.ndim > 2 else y[..., 0]


for _x, _f, _stride in [
    (A(5, 4, 2), A(3, 2, 2, 3), (1, 1)),
    (A(5, 4, 2), A(3, 2, 2, 3), (2, 1)),
    (A(7, 8, 1), A(2, 3, 1, 2), (2, 3)),
    (A(5, 4, 2, batch=3), A(3, 2, 2, 3), (1, 2)),
    (A(5, 4, 2, batch=2), A(2, 2, 2, 2, batch=2), (1, 1)),
    (A(5, 4, 2), A(2, 2, 2, 2, batch=2), (1, 1)),
    (A(5, 4), A(2, 3), (1, 1)),
    (A(4, 4, 3), A(1, 1, 3, 2), (1, 1)),
    (A(4, 4, 1), A(4, 4, 1, 2), (3, 3)),
    (A(6, 6, 1), A(1, 2, 1, 2), (4, 3)),
]:
    for _valid in (True, False):
        ROWS.append(
            Row(
                "conv2d",
                lambda x, f, stride, is_valid: dy.conv2d(x, f, stride, is_valid),
                [_x, _f],
                conv2d,
                attrs={"stride": _stride, "is_valid": _valid},
                bad=[[(5, 4, 2), (3, 2, 1, 3)], [(5,), (3, 2)], ["5,4,2x2", "3,2,2,3x3"]]
                + ([[(2, 2, 1), (3, 2, 1, 1)]] if _valid else []),
                wrong=[
                    (lambda: dy.conv2d(image(), filters(), [1]), ValueError),
                    (lambda: dy.conv2d(image(), filters(), [0, 1]), ValueError),
                    (lambda: dy.conv2d(image(), filters(), [-1, 1]), ValueError),
                    (lambda: dy.conv2d(image(), filters(), "ab"), TypeError),
                    (lambda: dy.conv2d(image(), None, [1, 1]), TypeError),
                ],
                note="valid" if _valid else "same",
            )
        )
        ROWS.append(
            Row(
                "conv2d_bias",
                lambda x, f, b, stride, is_valid: dy.conv2d_bias(x, f, b, stride, is_valid),
                [_x, _f, A(_f.shape[3] if len(_f.shape) > 3 else 1, batch=_x.batch if _x.shape[0] == 5 else 1)],
                conv2d,
                attrs={"stride": _stride, "is_valid": _valid},
                bad=[[(5, 4, 2), (3, 2, 2, 3), (2,)]],
                note="valid" if _valid else "same",
            )
        )
for _x, _k, _stride in [
    (A(6, 4, 2, draw=spread), (2, 2), (2, 2)),
    (A(5, 4, 2, draw=spread), (3, 2), (1, 1)),
    (A(5, 7, draw=spread), (3, 3), (2, 2)),
    (A(5, 4, 2, batch=3, draw=spread), (2, 3), (1, 2)),
    (A(6, 5, 1, draw=spread), (1, 2), (4, 3)),
]:
    for _valid in (True, False):
        ROWS.append(
            Row(
                "maxpooling2d",
                lambda x, ksize, stride, is_valid: dy.maxpooling2d(x, ksize, stride, is_valid),
                [_x],
                maxpool,
                attrs={"ksize": _k, "stride": _stride, "is_valid": _valid},
                bad=[[(5,)], [(2, 3, 4, 5)]] + ([[(2, 1)], [(1, 1)]] if _valid and _k == (3, 3) else []),
                wrong=[
                    (lambda: dy.maxpooling2d(image(), [2], [1, 1]), ValueError),
                    (lambda: dy.maxpooling2d(image(), [0, 1], [1, 1]), ValueError),
                    (lambda: dy.maxpooling2d(image(), [2, 2], [0, 1]), ValueError),
                    (lambda: dy.maxpooling2d(image(), [2, 2], 1), ValueError),
                    (lambda: dy.maxpooling2d(image(), [9, 2], [1, 1]), ValueError),
                    (lambda: dy.maxpooling2d(image(), [2, None], [1, 1]), TypeError),
                ],
                note="valid" if _valid else "same",
            )
        )


# ---- one dim -------------------------------------------------------------------------------------------------------


def narrow(x: np.ndarray, f: np.ndarray) -> np.ndarray:
    f = f.reshape(f.shape + (1,) * (3 - f.ndim))
    places = x.shape[1] - f.shape[1] + 1
    return np.stack([np.einsum("rw,rwk->k", x[:, t : t + f.shape[1]], f) for t in range(places)], axis=1)


for _args in (
    [A(3, 6), A(3, 2, 4)],
    [A(3, 6), A(3, 2)],
    [A(3, 6, batch=2), A(3, 3, 2)],
    [A(3, 6, batch=2), A(3, 6, 2, batch=2)],
    [A(1, 4), A(1, 1, 1)],
):
    ROWS.append(
        Row(
            "filter1d_narrow",
            lambda x, f: dy.filter1d_narrow(x, f),
            _args,
            narrow,
            bad=[[(3, 6), (2, 2, 4)], [(3, 2), (3, 3, 1)], [(3, 2, 2), (3, 1, 1)], ["3,2x2", "3,2x3"]],
        )
    )
for _name, _sign in (("circ_conv", -1), ("circ_corr", 1)):
    for _args in (
        [A(5), A(5)],
        [A(4, batch=3), A(4, batch=3)],
        [A(4), A(4, batch=2)],
        [A(4, batch=2), A(4)],
        [A(1), A(1)],
    ):
        ROWS.append(
            Row(
                _name,
                lambda u, v, _n=_name: getattr(dy, _n)(u, v),
                _args,
                lambda u, v, _s=_sign: np.array(
                    [sum(u[j] * v[(k + _s * j) % len(u)] for j in range(len(u))) for k in range(len(u))]
                ),
                bad=[[(3,), (4,)], [(3, 2), (3, 2)], ["3x2", "3x3"]],
            )
        )
for _arg, _n in [(A(6, 3), 2), (A(6), 3), (A(4, 2, batch=3), 2), (A(4, 3), 1)]:
    ROWS.append(
        Row(
            "_sum_dims",
            lambda x, n: dy.fold_rows(x, n),
            [_arg],
            lambda x, n: x.reshape(x.shape[0] // n, n, *(x.shape[1:] or (1,))).sum(1),
            attrs={"n": _n},
            bad=[[(7, 2)]] if _n > 1 else (),
            wrong=[(lambda: dy.fold_rows(dy.inputVector([1.0, 2.0]), 0), ValueError)],
            note="fold_rows",
        )
    )
for _arg, _n in [(A(3, 6), 2), (A(3, 6), 6), (A(3, 5, batch=2), 3), (A(3, 4), 1)]:
    ROWS.append(
        Row(
            "esum",
            lambda x, n: dy.kmh_ngram(x, n),
            [_arg],
            lambda x, n: sum(x[:, j : x.shape[1] - n + 1 + j] for j in range(n)),
            attrs={"n": _n},
            bad=[[(7,)]],
            wrong=[(lambda: dy.kmh_ngram(dy.inputTensor(np.ones((2, 3))), 4), ValueError)],
            note="kmh_ngram",
        )
    )


# ---- bilinear maps -------------------------------------------------------------------------------------------------

for _args in (
    [A(2, 3, 4), A(4)],
    [A(2, 3, 4), A(4, batch=3)],
    [A(2, 3, 4, batch=2), A(4)],
    [A(2, 3, 4, batch=2), A(4, batch=2)],
):
    ROWS.append(
        Row(
            "contract3d_1d",
            lambda x, y: dy.contract3d_1d(x, y),
            _args,
            lambda x, y: x @ y,
            bad=[[(2, 3, 4), (3,)], [(2, 3, 4), (4, 2)], ["2,3,4x2", "4x3"]],
        )
    )
    ROWS.append(
        Row(
            "contract3d_1d",
            lambda x, y, b: dy.contract3d_1d_bias(x, y, b),
            [*_args, A(2, 3)],
            lambda x, y, b: x @ y + b,
            bad=[[(2, 3, 4), (4,), b] for b in [(2,), (1,), (2, 3, 2)]],
            note="bias",
        )
    )
    for _z in (A(3), A(3, batch=_args[1].batch)):
        ROWS.append(
            Row(
                "contract3d_1d_1d",
                lambda x, y, z: dy.contract3d_1d_1d(x, y, z),
                [*_args, _z],
                lambda x, y, z: x @ y @ z,
                bad=[[(2, 3, 4), (4,), (2,)], [(2, 3, 4), (3,), (3,)], [(2, 3, 4), "4x2", "3x3"]],
            )
        )
    ROWS.append(
        Row(
            "contract3d_1d_1d",
            lambda x, y, z, b: dy.contract3d_1d_1d_bias(x, y, z, b),
            [*_args, A(3), A(2)],
            lambda x, y, z, b: x @ y @ z + b,
            bad=[[(2, 3, 4), (4,), (3,), b] for b in [(2, 3), (1,), (3,)]],
            note="bias",
        )
    )


# ---- matrix functions ----------------------------------------------------------------------------------------------


def regular(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Matrices (the batch is the last axis) that are far from singular; rows need exchanging."""
    x = 0.3 * rng.standard_normal(shape)
    n = shape[0]
    return x + 1.5 * np.roll(np.eye(n), 1, axis=0).reshape(n, n, *([1] * (len(shape) - 2)))


for _arg in (A(1, 1, draw=regular), A(2, 2, draw=regular), A(4, 4, draw=regular), A(3, 3, batch=3, draw=regular)):
    ROWS.append(
        Row("inverse", lambda x: dy.inverse(x), [_arg], np.linalg.inv, bad=[[(2, 3)], [(2,)], [(2, 2, 2)]], tol=5e-6)
    )
    ROWS.append(
        Row(
            "logdet",
            lambda x: dy.logdet(x),
            [_arg],
            lambda x: np.linalg.slogdet(x)[1],
            bad=[[(2, 3)], [(2, 2, 2)]],
            tol=5e-6,
        )
    )
