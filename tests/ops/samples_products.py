"""Rows of products, joins and sums over lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from samples import A, Row

import dynet_lite as dy

ROWS: list[Row] = []


def rows_of(name: str, call: Any, ref: Any, lists: Any, bad: Any = (), wrong: Any = (), **more: Any) -> None:
    for k, args in enumerate(lists):
        ROWS.append(Row(name, call, args, ref, bad=bad if k == 0 else (), wrong=wrong if k == 0 else (), **more))


rows_of(
    "matmul",
    lambda x, y: x * y,
    lambda x, y: x @ y,
    [
        [A(3, 4), A(4)],
        [A(3, 4), A(4, 5)],
        [A(3, 3), A(3, 3)],
        [A(3, 4), A(4, batch=3)],
        [A(3, 4), A(4, 2, batch=3)],
        [A(3, 4, batch=2), A(4, 5, batch=2)],
        [A(3, 4, batch=2), A(4)],
        [A(1, 7), A(7)],
        [A(20, 33), A(33)],
        [A(1, 1), A(1)],
    ],
    bad=[[(3, 4), (3,)], [(3,), (3,)], [(2, 3, 4), (3,)], [(3, 4), (4, 2, 2)], [(3, 4), (5, 4)]],
)
rows_of(
    "matmul",
    lambda x, y: x @ y,
    lambda x, y: np.outer(x, y),
    [[A(3), A(1, 4)]],
    note="outer",
)


def affine(b: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    y = sum(w @ x for w, x in zip(rest[::2], rest[1::2], strict=True)) if rest else 0
    nd = np.ndim(y) if rest else b.ndim
    return b.reshape(b.shape + (1,) * (nd - b.ndim)) + y


rows_of(
    "affine_transform",
    lambda *es: dy.affine_transform(list(es)),
    affine,
    [
        [A(3), A(3, 4), A(4)],
        [A(3), A(3, 4), A(4), A(3, 2), A(2)],
        [A(3), A(3, 4), A(4, 5)],
        [A(3, 5), A(3, 4), A(4, 5)],
        [A(3), A(3, 4), A(4, batch=2)],
        [A(3), A(3, 4), A(4, batch=2), A(3, 2), A(2)],
        [A(3, batch=2), A(3, 4), A(4, batch=2)],
        [A(3, batch=2), A(3, 4), A(4, 5, batch=2)],
        [A(3, batch=2), A(3, 4, batch=2), A(4, 2), A(3, 4), A(4, 2)],
        [A(3), A(3, 4, batch=2), A(4, 2, batch=2)],
        [A(17), A(17, 9), A(9)],
    ],
    bad=[
        [(3,), (3, 4)],
        [(3,), (3, 4), (5,)],
        [(2,), (3, 4), (4,)],
        [(3,), (3, 4), (4,), (2, 4), (4,)],
        [(3,), (3, 4), "4x2", (3, 4), "4x3"],
    ],
    wrong=[
        (lambda: dy.affine_transform([]), ValueError),
        (lambda: dy.affine_transform(dy.inputVector([1.0])), TypeError),
        (lambda: dy.affine_transform(None), TypeError),
        (lambda: dy.affine_transform([None]), TypeError),
    ],
)
rows_of("affine_transform", lambda b: dy.affine_transform([b]), lambda b: b, [[A(3)], [A(3, 2, batch=2)]], note="bias")


for _d in (0, 1, 2):
    rows_of(
        "concatenate",
        lambda *es, _d=_d: dy.concatenate(list(es), d=_d),
        lambda *xs, _d=_d: np.concatenate(
            [x.reshape(x.shape + (1,) * (max(_d + 1, max(v.ndim for v in xs)) - x.ndim)) for x in xs], axis=_d
        ),
        [
            [A(3), A(3), A(3)] if _d else [A(3), A(2), A(4)],
            [A(2, 3), A(2, 3)],
            [A(2, 3, batch=2), A(2, 3)],
            [A(2, 3, 2), A(2, 3, 2)],
            [A(5)],
        ],
        bad=[[(2, 3), (3, 2)], ["3x2", "3x3"]] if _d < 2 else [[(2, 3), (3, 3)]],
        wrong=[
            (lambda: dy.concatenate([]), ValueError),
            (lambda: dy.concatenate([dy.inputVector([1.0])], d=-1), ValueError),
            (lambda: dy.concatenate([dy.inputVector([1.0])], d=7), ValueError),
            (lambda: dy.concatenate([dy.random_normal(1 << 20)] * 4096), ValueError),
            (lambda: dy.concatenate([dy.random_normal(1 << 20)] * 4097), ValueError),
            (lambda: dy.concatenate([dy.inputVector([1.0])], d="x"), TypeError),
        ],
        note=f"d{_d}",
    )
rows_of(
    "concatenate",
    lambda *es: dy.concatenate(list(es)),
    lambda *xs: np.concatenate(xs),
    [[A(2), A(3), A(2)], [A(2, 3), A(1, 3)]],
)
rows_of(
    "concatenate_to_batch",
    lambda *es: dy.concatenate_to_batch(list(es)),
    lambda *xs: np.concatenate(xs, axis=-1),
    [[A(3), A(3)], [A(2, 3, batch=2), A(2, 3), A(2, 3, batch=3)], [A(3)]],
    bad=[[(3,), (4,)], [(3,), (3, 1)]],
    wrong=[
        (lambda: dy.concatenate_to_batch([]), ValueError),
        (lambda: dy.concatenate_to_batch([dy.random_normal(1, batch_size=1 << 20)] * 4096), ValueError),
        (lambda: dy.concatenate_to_batch([dy.random_normal(1, batch_size=1 << 20)] * 4097), ValueError),
    ],
    whole=True,
)
for _name, _scale in (("esum", lambda n: 1.0), ("average", lambda n: 1.0 / n)):
    rows_of(
        _name,
        lambda *es, _n=_name: getattr(dy, _n)(list(es)),
        lambda *xs, _s=_scale: sum(xs) * _s(len(xs)),
        [
            [A(3), A(3), A(3)],
            [A(2, 3), A(2, 3)],
            [A(3, batch=2), A(3), A(3, batch=2)],
            [A(3), A(3, batch=2)],
            [A(4)],
            [A(21)] * 9,
        ],
        bad=[[(3,), (4,)], ["3x2", "3x3"]],
        wrong=[
            (lambda _n=_name: getattr(dy, _n)([]), ValueError),
            (lambda _n=_name: getattr(dy, _n)(dy.inputVector([1.0])), TypeError),
            (lambda _n=_name: getattr(dy, _n)([dy.inputVector([1.0]), None]), TypeError),
        ],
    )
