"""Rows of random ops. What a node drew is read off its value; distributions are tested in test_random.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples import A, Row, nonzero

import dynet_lite as dy

ROWS: list[Row] = []
vector = lambda: dy.inputVector([1.0, 2.0, 3.0])  # noqa: E731


def probability(rng: np.random.Generator) -> dict[str, float]:
    return {"p": float(np.float32(rng.uniform(0.2, 0.7)))}


def masked(y: np.ndarray, x: np.ndarray, p: float) -> Callable[..., Any]:
    """What a dropout did: a factor for each number, 0 or 1 / (1 - p)."""
    factor = np.where(y == 0, 0.0, 1 / (1 - p))
    return lambda x, p: x * factor


def wrong_p(call: Callable[..., Any]) -> list[tuple[Callable[[], Any], type[Exception]]]:
    return [(lambda v=v: call(v), ValueError) for v in (1.0, -0.1, 1.5, float("nan"), float("inf"))] + [
        (lambda: call(None), TypeError),
        (lambda: call("x"), TypeError),
    ]


SHAPES = [A(6, draw=nonzero), A(3, 4, batch=3, draw=nonzero), A(41, draw=nonzero), A(2, 3, 4, batch=2, draw=nonzero)]
for _arg in SHAPES:
    for _name in ("dropout", "dropout_batch", "block_dropout"):
        ROWS.append(
            Row(
                _name,
                lambda x, p, _n=_name: getattr(dy, _n)(x, p),
                [_arg],
                oracle=masked,
                attrs=probability,
                whole=True,
                wrong=wrong_p(lambda p, _n=_name: getattr(dy, _n)(vector(), p))[1 if _name == "block_dropout" else 0 :],
            )
        )
    for _d in range(len(_arg.shape)):
        ROWS.append(
            Row(
                "dropout_dim",
                lambda x, p, _d=_d: dy.dropout_dim(x, _d, p),
                [_arg],
                oracle=masked,
                attrs=probability,
                whole=True,
                note=f"d{_d}",
                wrong=[
                    *wrong_p(lambda p: dy.dropout_dim(vector(), 0, p)),
                    (lambda: dy.dropout_dim(vector(), 1, 0.5), ValueError),
                    (lambda: dy.dropout_dim(vector(), -1, 0.5), ValueError),
                    (lambda: dy.dropout_dim(vector(), 1, 0.0), ValueError),
                ],
            )
        )
    ROWS.append(
        Row(
            "noise",
            lambda x, s: dy.noise(x, s),
            [_arg],
            oracle=lambda y, x, s: lambda v, s, _n=y - x: v + _n,
            attrs=lambda rng: {"s": float(rng.uniform(0.1, 1))},
            whole=True,
            wrong=[
                (lambda: dy.noise(vector(), -1.0), ValueError),
                (lambda: dy.noise(vector(), float("nan")), ValueError),
                (lambda: dy.noise(vector(), None), TypeError),
            ],
        )
    )


def drawn(y: np.ndarray, **attrs: Any) -> Callable[..., Any]:
    return lambda **_: y


def random_row(name: str, call: Callable[..., Any], attrs: Any, wrong: Any) -> None:
    bad_dims = [
        (lambda: call((0,)), ValueError),
        (lambda: call((-1,)), ValueError),
        (lambda: call(()), ValueError),
        (lambda: call((2,) * 8), ValueError),
        (lambda: call((2**30, 2**30)), ValueError),
        (lambda: call("ab"), TypeError),
        (lambda: call(None), TypeError),
    ]
    for dim in ((5,), (3, 4)):
        ROWS.append(
            Row(
                name,
                lambda _dim=dim, **a: call(_dim, **a),
                [],
                oracle=drawn,
                attrs=attrs,
                whole=True,
                wrong=bad_dims + wrong,
                note="x".join(map(str, dim)),
            )
        )


def pair(a: str, b: str, ordered: bool = False) -> Callable[[np.random.Generator], dict[str, float]]:
    def draw(rng: np.random.Generator) -> dict[str, float]:
        u, v = float(rng.uniform(-1, 1)), float(rng.uniform(0.5, 2))
        return {a: u, b: u + v if ordered else v}

    return draw


random_row(
    "random_normal",
    lambda dim, mean=0.0, stddev=1.0: dy.random_normal(dim, mean, stddev),
    pair("mean", "stddev"),
    [(lambda: dy.random_normal(3, 0, -1), ValueError), (lambda: dy.random_normal(3, batch_size=0), ValueError)],
)
random_row(
    "random_uniform",
    lambda dim, left=0.0, right=1.0: dy.random_uniform(dim, left, right),
    pair("left", "right", ordered=True),
    [
        (lambda: dy.random_uniform(3, 1, 0), ValueError),
        (lambda: dy.random_uniform(3, 0, float("nan")), ValueError),
        (lambda: dy.random_uniform(3, float("inf"), float("inf")), ValueError),
        (lambda: dy.random_uniform(3, -3e38, 3e38), ValueError),
    ],
)
random_row(
    "random_bernoulli",
    lambda dim, p=0.5, scale=1.0: dy.random_bernoulli(dim, p, scale),
    lambda rng: {"p": float(rng.uniform(0, 1)), "scale": float(rng.uniform(0.5, 2))},
    [(lambda: dy.random_bernoulli(3, 1.5), ValueError), (lambda: dy.random_bernoulli(3, -0.5), ValueError)],
)
random_row(
    "random_gumbel",
    lambda dim, mu=0.0, beta=1.0: dy.random_gumbel(dim, mu, beta),
    pair("mu", "beta"),
    [(lambda: dy.random_gumbel(3, 0, -1), ValueError)],
)
